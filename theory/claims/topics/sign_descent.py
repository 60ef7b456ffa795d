"""Claims about descent along signs: four ways in which it fails, and signs of momenta, which do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity, Sign
from ...methods import ParallelSGD, Signum
from ...methods.schedules import Constant
from ...problems import function, quadratic, ridge
from .. import certain, claim, equality, identity, lower, upper

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
    measured_by="the claim's own code",
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
    yield lower("least f on the way", certain(best), bounds.sign_line_floor(A, b), trivial=0.0)
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
    measured_by="the claim's own code",
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
        yield lower(f"least f on the way, e={e}", certain(best), 2.0 * e, trivial=0.0)


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
    measured_by="the claim's own code",
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
    yield lower("least f on the way, e=0.5", certain(best), 8.0 * e**2, trivial=0.0)


# --- signs of momenta -------------------------------------------------------------------------------------------------


def signum(step: float, momentum: float, aggregation: str = "mean", **how):
    """The method with a constant step size."""
    return Signum(Constant(step), momentum, aggregation, **how)


def steady(context, method, problem, steps: int, *path, **how) -> float:
    """The mean of |f'(x_t)| over every tenth step."""
    history = context.run64(method, problem, *path, steps=steps, record_every=10, **how).history
    return float(history["gradient_norm"].mean())


VALLEY = function(  # (x - y)^2/2 + y and (x - y)^2/2 - y
    lambda x: 0.5 * (x[0] - x[1]) ** 2,
    lambda x: (x[0] - x[1]) * np.array([1.0, -1.0]) + np.array([[0.0, 1.0], [0.0, -1.0]]),
    d=2,
    n=2,
)


@claim(
    "signum.theorem",
    of=bounds.sign_momentum_gradient,
    subject=signum,
    mutants={
        "without momentum": lambda step, a, *vote, **how: signum(step, 1.0, *vote, **how),
        "momentum after the signs": lambda step, a, *vote, **how: ParallelSGD(
            Sign(), step=Constant(a * step), momentum=1.0 - a, **how
        ),
        "steps of twice the length": lambda step, a, *vote, **how: signum(2.0 * step, a, *vote, **how),
        "the momenta themselves": lambda step, a, *vote, **how: ParallelSGD(
            Identity(), step=Constant(a * step), momentum=1.0 - a, **how
        ),
    },
)
def _(context):
    problem, d, L = quadratic([2.0] * 4, covariance=0.0), 4, 2.0
    for step, aggregation in ((0.25, "mean"), (0.5, "majority")):
        method = context.subject(step, 0.5, aggregation)
        x = np.array(context.iterates(method, problem, steps=1, workers=3, x0=np.full(d, step), seed=0))
        law = bounds.sign_momentum_gradient(
            1, step=step, d=d, gap=L * d * step**2 / 2.0, lipschitz=L, workers_lipschitz=L, vote=aggregation != "mean"
        )
        yield identity(f"||grad f||_1, one step of {step:g}, {aggregation}", L * float(np.abs(x[0]).sum()), law, 1e-9)
        found = float(np.abs(x[1]).sum())
        yield identity(f"distance to the minimum after one step of {step:g}, {aggregation}", found, 0.0, 1e-9)
    step, steps = 1e-3, 8000
    skewed = ridge((np.ones((4, 1)), np.array([3.0, -1.0, -1.0, -1.0])), l2=0.0)  # the signs of three in four are wrong
    plain: dict[str, Any] = {"step": step, "d": 1, "gap": 0.0, "lipschitz": 1.0, "workers_lipschitz": 1.0}
    runs = range(context.samples(8, 4))
    for a in (1.0, 0.05):
        method, law = context.subject(step, a), bounds.sign_momentum_gradient(steps, momentum=a, variance=3.0, **plain)
        means = [steady(context, method, skewed, steps, "skewed", k, x0=np.zeros(1)) for k in runs]
        yield upper(f"mean ||grad f||_1, skewed noise, a={a:g}", np.array(means), law)
    found = steady(context, method, quadratic([1.0], covariance=0.0), steps, x0=np.full(1, 0.5), seed=0)
    law = bounds.sign_momentum_gradient(steps, momentum=a, **plain | {"gap": 0.125})
    yield upper(f"mean ||grad f||_1 from 0.5, no noise, a={a:g}", found, law)
    b, step, steps = 1.0, 0.01, 10_000
    apart = ridge((np.ones((2, 1)), np.array([-b, b])), l2=0.0)
    common: dict[str, Any] = {"step": step, "gap": b**2 / 2.0, "apart": b}
    method = context.subject(step, 1.0, shards="contiguous")
    found = steady(context, method, apart, steps, workers=2, x0=np.full(1, -b), seed=0)
    law = bounds.sign_momentum_gradient(steps, d=1, lipschitz=1.0, workers_lipschitz=1.0, **common)
    yield upper("mean ||grad f||_1, two workers that disagree", found, law)
    method = context.subject(step, 1.0, "majority", shards="contiguous")
    iterates = context.iterates(method, VALLEY, steps=steps, record_every=10, workers=2, x0=np.array([b, 0.0]), seed=0)
    found = float(np.mean([2.0 * abs(x - y) for x, y in iterates]))
    law = bounds.sign_momentum_gradient(steps, d=2, lipschitz=2.0, workers_lipschitz=2.0, vote=True, **common)
    yield upper("mean ||grad f||_1, two workers that disagree, majority", found, law)
