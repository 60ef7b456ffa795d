"""Claims about signs: their errors, their bits, and descent along them.

On gradients of real data: the part that the scaled sign keeps.  Descent along signs: four ways in which it fails, and
signs of momenta, which do not.
"""

from __future__ import annotations

import math
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import QSGD, Bucketed, Identity, ScaledSign, Sign, TwoScaleSign, encode
from ...measure import Interval
from ...methods import ParallelSGD, Signum
from ...methods.schedules import Constant
from ...problems import batch_gradient, function, gradient, quadratic, ridge, softmax, solve
from ...wire import bits_for, open_frame
from .. import certain, claim, equality, identity, lower, upper
from ..factories import Input, equal_magnitudes, gaussian
from ..memory.mem_sgd import rcv1
from ..mutants import Messages, WrongSign

# --- Errors of signs -------------------------------------------------------------------------------------------------

L2 = partial(ScaledSign, 2)


def spike(d: int) -> np.ndarray:
    """The vector with one entry -3 and zeros elsewhere."""
    return np.where(np.arange(d) == d // 2, -3.0, 0.0)


INPUTS = (
    gaussian(1000),
    gaussian(1000, 3),
    equal_magnitudes(1000),
    Input("one spike, d=1000", lambda context: spike(1000)),
)


def relative_error(context, v) -> Interval:
    """||C(v) - v||^2/||v||^2 of the compressor that the subject makes, which draws nothing."""
    found = context.moments(context.subject(), v, 2)
    return certain(found.error[0] / found.squared_norm)


def same(label, measured, predicted):
    """Equal, up to rounding in sums of a thousand numbers."""
    return identity(label, measured, predicted, tolerance=1e-9)


def errors(context, formula, rule=same, inputs=INPUTS):
    """Checks of the relative error at some vectors."""
    for vector in inputs:
        v = vector.make(context)
        yield rule(f"error, {vector.label}", relative_error(context, v), formula(v))


@claim(
    "sign.error",
    of=bounds.scaled_sign_error,
    subject=ScaledSign,
    mutants={
        "the scale ||v||_2/sqrt(d)": L2,
        "half the scale": partial(WrongSign, 1, 0.5),
        "small entries become 0": partial(WrongSign, 1, 1.0, True),
    },
)
def _(context):
    yield from errors(context, bounds.scaled_sign_error)


@claim(
    "sign.contraction",
    of=bounds.scaled_sign_contraction,
    subject=ScaledSign,
    mutants={"the scale ||v||_2/sqrt(d)": L2, "half the scale": partial(WrongSign, 1, 0.5)},
)
def _(context):
    for d in (4, 100, 1000):
        error = relative_error(context, spike(d))
        yield same(f"error, one spike, d={d}", error, 1.0 - bounds.scaled_sign_contraction(d))
    yield from errors(context, lambda v: 1.0 - bounds.scaled_sign_contraction(v.size), rule=upper)


@claim(
    "sign.l2.error",
    of=bounds.l2_sign_error,
    subject=L2,
    mutants={
        "the scale ||v||_1/d": ScaledSign,
        "half the scale": partial(WrongSign, 2, 0.5),
        "small entries become 0": partial(WrongSign, 2, 1.0, True),
    },
)
def _(context):
    yield from errors(context, bounds.l2_sign_error)


@claim(
    "sign.l2.contraction",
    of=bounds.l2_sign_error,
    subject=L2,
    refuted="question",
    see=("sign.l2.error", "sign.contraction"),
)
def _(context):
    for d in (10_000, 100):
        yield upper(f"error, one spike, d={d}", relative_error(context, spike(d)), 1.0)


def skewed(context) -> np.ndarray:
    """A third of the entries negative, and five times as large."""
    return np.abs(context.normal(1000)) * np.where(np.arange(1000) % 3 == 0, -5.0, 1.0)


SKEWED = Input("a third negative and larger, d=1000", skewed)


def WrongTwoScales(where=np.greater_equal, scale=np.mean) -> Messages:
    """Signs with two scales, divided or averaged otherwise."""

    def wrong(v, samples, rng):
        side = where(v, 0.0)
        parts = [np.where(kept, scale(v[kept]) if kept.any() else 0.0, 0.0) for kept in (side, ~side)]
        return np.tile(sum(parts), (samples, 1))

    return wrong


def inverted_bytes(v, samples, rng):
    """Sides as bytes, the other side by ``~``: 254 and 255 in place of 0 and 1, as in GRACE (PyTorch)."""
    negative = (v < 0.0).astype(np.uint8)
    scales = [v[side].mean() if side.any() else 0.0 for side in (v < 0.0, v >= 0.0)]
    return np.tile(scales[0] * negative + scales[1] * ~negative, (samples, 1))


WRONG_SCALES = {
    "~ of a mask of bytes, which is 255 where the mask is 0": lambda: inverted_bytes,
    "one scale": ScaledSign,
    "the scales are medians": partial(WrongTwoScales, scale=np.median),
    "all that are not 0 share one scale": partial(WrongTwoScales, np.not_equal),
}


@claim("sign.two-scale.error", of=bounds.two_scale_sign_error, subject=TwoScaleSign, mutants=WRONG_SCALES)
def _(context):
    yield from errors(context, bounds.two_scale_sign_error, inputs=(*INPUTS, SKEWED))


@claim(
    "sign.two-scale.contraction",
    of=bounds.two_scale_sign_contraction,
    subject=TwoScaleSign,
    mutants={"the scales are twice the means": partial(WrongTwoScales, scale=lambda side: 2.0 * np.mean(side))},
)
def _(context):
    for d in (4, 100, 1000):
        error = relative_error(context, -spike(d))
        yield same(f"error, one positive entry, d={d}", error, 1.0 - bounds.two_scale_sign_contraction(d))
    yield from errors(context, lambda v: 1.0 - bounds.two_scale_sign_contraction(v.size), upper, (*INPUTS, SKEWED))


# --- bits -------------------------------------------------------------------------------------------------------------


def sent(v, bucket: int, inner=ScaledSign, dtype=np.float32) -> int:
    """The payload of an encoded message."""
    return open_frame(encode(Bucketed(inner(), bucket), v, 0, wire_dtype=dtype)).payload_bits


@claim(
    "sign.bits",
    of=bounds.bucketed_bits,
    subject=sent,
    mutants={
        "32 bits more a bucket": lambda v, m, *how: sent(v, m, *how) + 32 * math.ceil(v.size / m),
        "scales for all buckets together": lambda v, m, *how: sent(v, v.size, *how),
        "the last bucket is filled up": lambda v, m, *how: sent(np.resize(v, m * math.ceil(v.size / m)), m, *how),
    },
    measured_by="the package's run",
    fixed={"floats": "signs and levels have one or two scales per bucket; no compressor has more"},
)
def _(context):
    zeros = Input("zeros, d=64", lambda context: np.zeros(64))
    for vector in (*INPUTS, zeros, gaussian(10_000)):
        v = vector.make(context)
        for bucket, (scales, sign) in product((64, 8192), enumerate((ScaledSign, TwoScaleSign), 1)):
            bits = context.subject(v, bucket, sign)
            predicted = bounds.bucketed_bits(v.size, bucket, 1, floats=scales)
            yield identity(f"bits, {vector.label}, m={bucket}, scales {scales}", bits, predicted, tolerance=0.0)
    v = gaussian(1000).make(context)
    for s, dtype in product((3, 7), (np.float32, np.float64)):
        width, floats = bits_for(2 * s + 1), 8 * np.dtype(dtype).itemsize
        predicted = bounds.bucketed_bits(v.size, 64, width, float_bits=floats)
        label = f"bits, {2 * s + 1} levels, m=64, floats of {floats} bits"
        yield identity(label, context.subject(v, 64, partial(QSGD, s), dtype), predicted, tolerance=0.0)


# --- Gradients of real data ------------------------------------------------------------------------------------------


@cache
def digits():
    """Softmax on a quarter of the handwritten digits, lambda = 1/n, and its minimum."""
    from ...data import load_data

    data, _ = load_data("digits-10").split(0.25, seed=0)
    problem = softmax((data.X / 16.0, data.y), 1.0 / data.n)
    return problem, solve(problem).x


def gradients(problem, optimum, rng):
    """Full gradients at 0 and on the way to the minimum, and of a mini-batch at both."""
    origin, batch = np.zeros(problem.d), rng.integers(0, problem.n, 32)
    yield "full, x=0", gradient(problem, origin)
    yield "full, x=0.9 x*", gradient(problem, 0.9 * optimum)
    yield "batch of 32, x=0", batch_gradient(problem, batch, origin)
    yield "batch of 32, x=x*", batch_gradient(problem, batch, optimum)


@claim(
    "sign.density.rcv1",
    of=bounds.sign_density,
    subject=(ScaledSign, L2),
    mutants={
        "the scale ||v||_2/sqrt(d)": (L2, L2),
        "half the scale": (partial(WrongSign, 1, 0.5), L2),
        "the scale ||v||_1/d in place of the l2 scale": (ScaledSign, ScaledSign),
    },
    see=("sign.error", "sign.l2.error", "sign.l2.contraction"),
)
def _(context):
    def error(make, g):
        found = context.moments(make(), g, 2)
        return float(found.error[0] / found.squared_norm)

    (sign, l2), kept = context.subject, []
    rng, (text, optimum) = np.random.default_rng(context.stream()), rcv1(context, share=0.125)
    for name, problem, x in (("digits", *digits()), (text.name, text, optimum.x)):
        for where, g in gradients(problem, x, rng):
            label, found = f"{name}, {where}", error(sign, g)
            phi = bounds.sign_density(g)
            yield identity(f"share kept over phi, {label}", (1.0 - found) / float(phi), phi, 1e-6)
            kept.append(1.0 - found)
            if problem is not text:
                yield lower(f"delta, {label}", kept[-1], 0.2)
                continue
            yield upper(f"delta and share of non-zeros, {label}", kept[-1], np.count_nonzero(g) / g.size)
            far = error(l2, g)
            yield identity(f"error with the l2 scale, {label}", far, bounds.l2_sign_error(g), 1e-6)
            if context.data is None:
                yield upper(f"delta, {label}", kept[-1], 0.1)
                yield lower(f"error with the l2 scale, {label}", far, 1.0)
    shown = [", ".join(f"{share:.2g}" for share in kept[i : i + 4]) for i in (0, 4)]
    yield f"delta at x=0, at 0.9 x*, of a batch at 0, at x*: digits {shown[0]}; {text.name} {shown[1]}"


# --- Descent along signs ---------------------------------------------------------------------------------------------

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
    title="Skewed noise makes sign descent climb",
    statement="For min x/4 with the stochastic gradient 4 (probability 1/4) or -1 (3/4), a step along the sign raises"
    " E f by gamma/8.",
    latex=r"\mathbb{E}\,f(x_{t+1})=f(x_t)+\gamma/8",
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
    yield equality("change of E f in a step / gamma", -context.subject(np.where(drawn < 0.25, 4.0, -1.0)) / 4.0, 0.125)


@claim(
    "sign.fails.kink",
    title="Descent along signs of subgradients stays on a line",
    statement="For f(x) = e |x1 + x2| + |x1 - x2|, 0 < e < 1, descent along signs of subgradients (that of 0 is +1)"
    " from (1, 1) keeps x1 + x2, so f >= 2 e forever, for every sequence of steps.",
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
    title="Sign descent fails on a smooth problem, too",
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


VALLEY = function(  # (x - y)^2/2 + 3 y and (x - y)^2/2 - 3 y
    lambda x: 0.5 * (x[0] - x[1]) ** 2,
    lambda x: (x[0] - x[1]) * np.array([1.0, -1.0]) + np.array([[0.0, 3.0], [0.0, -3.0]]),
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
    d = 4
    for steps, step, a, L, aggregation in ((1, 0.25, 0.5, 2.0, "mean"), (8, 0.5, 0.9, 3.0, "majority")):
        method, problem, x0 = context.subject(step, a, aggregation), quadratic([L] * d, covariance=0.0), steps * step
        x = np.array(context.iterates(method, problem, steps=steps, workers=3, x0=np.full(d, x0), seed=0))
        plain: dict[str, Any] = {"step": step, "d": d, "gap": L * d * x0**2 / 2.0, "vote": aggregation != "mean"}
        law = bounds.sign_momentum_gradient(steps, **plain, lipschitz=L, workers_lipschitz=L, momentum=a)
        found, label = L * d * float(np.abs(x[:-1]).mean()), f"T={steps}, gamma={step:g}, a={a:g}, {aggregation}"
        about = f"mean ||grad f||_1, {label}"
        yield identity(about, found, law, 1e-9) if steps == 1 else upper(about, found, law)
        yield identity(f"distance to the minimum at the end, {label}", float(np.abs(x[-1]).sum()), 0.0, 1e-9)
    for steps, a, variance, zeta, vote in ((5, 0.3, 0.5, 0.3, False), (3, 0.7, 2.0, 0.5, True)):
        late, noise, errors = 0.0, 1.0, []
        for _ in range(steps):  # m - grad f is late by at most so many steps, and has this share of the variance
            errors.append(0.1 * np.sqrt(d) * 5.0 * late + np.sqrt(variance * noise))
            late, noise = (1.0 - a) * (late + 1.0), (1.0 - a) ** 2 * noise + a**2
        wrong = (4.0 if vote else 2.0) * (np.sqrt(d) * np.mean(errors) + zeta / 2.0)
        plain = {"step": 0.1, "d": d, "gap": 3.0, "lipschitz": 2.0, "workers_lipschitz": 5.0, "vote": vote}
        law = bounds.sign_momentum_gradient(steps, **plain, momentum=a, variance=variance, apart=zeta)
        label = f"the sum of the proof, m's errors by recursion, a={a:g}, sigma^2={variance:g}"
        yield identity(label, float(3.0 / (0.1 * steps) + 0.1 * 2.0 * d / 2.0 + wrong), law)
    step, steps = 1e-3, 8000
    skewed = ridge((np.ones((4, 1)), np.array([3.0, -1.0, -1.0, -1.0])), l2=0.0)  # the signs of three in four are wrong
    plain = {"step": step, "d": 1, "gap": 0.0, "lipschitz": 1.0, "workers_lipschitz": 1.0}
    runs = range(context.samples(8, 4))
    for a in (1.0, 0.05):
        method, law = context.subject(step, a), bounds.sign_momentum_gradient(steps, momentum=a, variance=3.0, **plain)
        means = [steady(context, method, skewed, steps, "skewed", k, x0=np.zeros(1)) for k in runs]
        yield upper(f"mean ||grad f||_1, skewed noise, a={a:g}", np.array(means), law)
    found = steady(context, method, quadratic([1.0], covariance=0.0), steps, x0=np.full(1, 0.5), seed=0)
    law = bounds.sign_momentum_gradient(steps, momentum=a, **plain | {"gap": 0.125})
    yield upper(f"mean ||grad f||_1 from 0.5, no noise, a={a:g}", found, law)
    b, step, steps = 2.0, 0.01, 10_000
    apart = ridge((np.ones((2, 1)), np.array([-b, b])), l2=0.0)
    method = context.subject(step, 1.0, shards="contiguous")
    found = steady(context, method, apart, steps, workers=2, x0=np.full(1, -b), seed=0)
    plain = {"step": step, "gap": b**2 / 2.0, "apart": b}
    law = bounds.sign_momentum_gradient(steps, d=1, lipschitz=1.0, workers_lipschitz=1.0, **plain)
    yield upper("mean ||grad f||_1, two workers that disagree", found, law)
    method = context.subject(step, 1.0, "majority", shards="contiguous")
    iterates = context.iterates(method, VALLEY, steps=steps, record_every=10, workers=2, x0=np.r_[3.0, 0.0], seed=0)
    found = float(np.mean([2.0 * abs(x - y) for x, y in iterates]))
    plain = {"step": step, "gap": 4.5, "apart": 3.0}
    law = bounds.sign_momentum_gradient(steps, d=2, lipschitz=2.0, workers_lipschitz=2.0, vote=True, **plain)
    yield upper("mean ||grad f||_1, two workers that disagree, majority", found, law)
