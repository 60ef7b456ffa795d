"""Claims about descent along signs: four ways in which it fails."""

from __future__ import annotations

import numpy as np

from ... import bounds
from .. import claim, equality, identity, lower

# A rule turns a stochastic (sub)gradient into a direction.  The claims state which points sign descent cannot reach; a
# mutant reaches them.


def sign_of(g):
    """The sign, that of 0 is +1."""
    return np.where(g < 0, -1.0, 1.0)


def full_precision(g):
    """The gradient itself."""
    return g


def descend(direction, gradient, x, steps, value):
    """The least value on the way, and the largest spread of the entries of x."""
    x, best, spread = np.array(x, float), value(x), 0.0
    for t, step in enumerate(steps):
        x = x - step * direction(gradient(x, t))
        best, spread = min(best, value(x)), max(spread, float(np.ptp(x)))
    return best, spread


def falling(step: float, steps: int = 4000):
    """Steps that fall as 1/sqrt(t)."""
    return step / np.sqrt(1.0 + np.arange(steps))


@claim(
    "sign.fails.line",
    of=bounds.sign_line_floor,
    subject=sign_of,
    mutants={"the gradient itself": full_precision},
    measured_by="a loop of its own",
)
def _(context):
    d, rng = 6, np.random.default_rng(context.stream("problem"))
    A = np.eye(d) * 2.0 + 0.2 * rng.random((d, d)) + 0.1
    b = A @ rng.standard_normal(d)
    order = rng.integers(0, d, context.samples(8000, 4000))
    best, spread = descend(
        context.subject,
        lambda x, t: A[order[t]] * (A[order[t]] @ x - b[order[t]]),
        np.zeros(d),
        0.1 / (1.0 + np.arange(order.size) / 500.0),
        lambda x: float(np.sum((A @ x - b) ** 2)) / (2 * d),
    )
    yield lower("least f on the way", best, bounds.sign_line_floor(A, b), trivial=0.0)
    yield identity("largest spread of the entries of x_t", spread, 0.0, tolerance=1e-9)


@claim(
    "sign.fails.drift",
    title="Skewed noise makes signs climb",
    statement="For min x/4 with the stochastic gradient 4 (probability 1/4) or -1 (3/4), a step along the sign raises"
    " E f by eta/8.",
    latex=r"\mathbb{E}\,f(x_{t+1})=f(x_t)+\eta/8",
    source="[karimireddy2019error], Counterexample 1",
    kind="identity",
    attained="away from the ends of the interval [-1, 1]",
    proof="The mean of the sign is 1/4 - 3/4 = -1/2, and f has the slope 1/4.",
    subject=sign_of,
    mutants={
        "the gradient itself": full_precision,
        "the sign of the mean of 64 gradients": lambda g: sign_of(g.reshape(-1, 64).mean(axis=1)),
    },
)
def _(context):
    drawn = np.random.default_rng(context.stream("gradients")).random(64 * context.samples(2000, 500))
    yield equality("change of E f in a step / eta", -context.subject(np.where(drawn < 0.25, 4.0, -1.0)) / 4.0, 0.125)


@claim(
    "sign.fails.kink",
    title="Signs of subgradients stay on a line",
    statement="For f(x) = e |x1 + x2| + |x1 - x2|, 0 < e < 1, descent along signs of subgradients (that of 0 is +1)"
    " from (1, 1) keeps x1 + x2, so f >= 2 e for ever, for every sequence of steps.",
    latex=r"x_1+x_2=\text{const},\quad f(x_t)\ge 2\varepsilon",
    source="[karimireddy2019error], Counterexample 2",
    kind="lower",
    proof="The subgradient has the signs of +-(1, -1), as e < 1.",
    subject=(sign_of, sign_of),
    mutants={
        "the subgradient itself": (full_precision, sign_of),
        "sign(0) = 0, as NumPy has it": (np.sign, np.sign),
    },
    measured_by="a loop of its own",
)
def _(context):
    direction, kink = context.subject
    plus, minus = np.array([1.0, 1.0]), np.array([1.0, -1.0])
    for e in (0.1, 0.5):
        best, _ = descend(
            direction,
            lambda x, t, e=e: kink(plus @ x) * e * plus + kink(minus @ x) * minus,
            (1.0, 1.0),
            falling(0.25),
            lambda x, e=e: e * abs(x[0] + x[1]) + abs(x[0] - x[1]),
        )
        yield lower(f"least f on the way, e={e}", best, 2.0 * e, trivial=0.0)


@claim(
    "sign.fails.smooth",
    title="Signs fail on a smooth problem too",
    statement="For f = <a1, x>^2 + <a2, x>^2 with a1,2 = +-(1, -1) + e (1, 1), descent along signs of gradients of one"
    " term from (1, 1) keeps x1 + x2, so f >= 8 e^2 while min f = 0.",
    latex=r"x_1+x_2=\text{const},\quad f(x_t)\ge 8\varepsilon^2",
    source="[karimireddy2019error], Counterexample 3",
    kind="lower",
    proof="The gradient of each term has the signs of +-(1, -1); for x = (1, 1) + c (1, -1), f = 8 c^2 + 8 e^2.",
    subject=(sign_of, False),
    mutants={"the gradient itself": (full_precision, False), "both terms in the batch": (sign_of, True)},
    measured_by="a loop of its own",
)
def _(context):
    direction, both = context.subject
    e = 0.5
    a = np.array([[1.0, -1.0], [-1.0, 1.0]]) + e
    term = np.random.default_rng(context.stream("terms")).integers(0, 2, 4000)

    def gradient(x, t):
        rows = a if both else a[[term[t]]]
        return 2.0 * rows.T @ (rows @ x)

    best, _ = descend(direction, gradient, (1.0, 1.0), falling(0.1), lambda x: float(np.sum((a @ x) ** 2)))
    yield lower("least f on the way, e=0.5", best, 8.0 * e**2, trivial=0.0)
