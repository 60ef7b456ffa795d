"""Claims about EF21 and related methods: their lemma and theorems, noise, both directions, and how they are related."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity, RandK, Scaled, TopK
from ...methods import CLAG, EF21, EF21BC, EF21P, EF21SGDM, EFBV
from ...problems import quadratic, ridge
from .. import claim, equality, identity, lower, upper
from ..factories import compressor_law, crossing, gaussian
from ..memory.error_feedback import unchanging
from ..memory.exact_rates import squared_radius
from ..mutants import Lopsided, Scaling, growth

LEARNS_HALF = partial(EFBV, lam=0.5, nu=1.0)


def known_of(result) -> np.ndarray:
    """What is known of the mean gradient."""
    (known,) = result.server.values()
    return known.ravel()


def _lazy(delta, trigger, step):
    return CLAG(Scaling(delta, over=True), unchanging(step), trigger=trigger)


@claim(
    "clag.memory",
    of=bounds.clag_decay,
    subject=_lazy,
    mutants={
        "silent up to eight times the trigger": lambda delta, trigger, step: _lazy(delta, 8.0 * trigger, step),
        "a compressor that contracts less": lambda delta, trigger, step: _lazy(delta - 0.1, trigger, step),
        "half of each message is added to the estimate": lambda delta, trigger, step: LEARNS_HALF(
            Scaling(delta, over=True), unchanging(step)
        ),
    },
)
def _(context):
    for delta, trigger in ((0.75, 0.25), (0.75, 2.0), (0.36, 5.0)):
        q = (1.0 - delta) ** 0.5
        beta = (1.0 - delta) / (1.0 - q)  # the gradient moves in the direction of its error, by this share of it:
        share = (1.0 - q) / q if trigger <= beta else (1.0 - delta) / (trigger - (1.0 - delta))
        x, error = errors_of(context, context.subject(delta, trigger, q * share / (1.0 + q)), 2)
        kept = (error[1] - max(beta, trigger) * (x[1] - x[0]) ** 2) / error[0]
        law = bounds.clag_decay(delta, trigger)
        yield identity(f"share of G that is forgotten, delta={delta:g}, zeta={trigger:g}", float(1.0 - kept), law, 1e-9)
    x, error = errors_of(context, context.subject(1.0, 4.0 + 1e-9, 0.1), 8)
    found, law = (
        np.max(error[1:] / np.diff(x)[:-1] ** 2),
        bounds.clag_decay(1.0, 4.0) * bounds.clag_ratio(1.0, 4.0) ** 2,
    )
    yield identity("largest G_t/R of 8 steps in full precision, zeta=4", float(found), law, 1e-7)


def errors_of(context, method, steps: int):
    """x_0, ..., x_T and G_0, ..., G_(T-1) of a run with x^2/2 from 1."""
    problem, x, error = quadratic([1.0], covariance=0.0), [1.0], []
    for t in range(1, steps + 1):
        result = context.run64(method, problem, steps=t, x0=np.ones(1), seed=0)
        error.append(float((known_of(result) - x[-1])[0] ** 2))
        x.append(float(result.last[0]))
    return np.array(x), np.array(error)


KIN: dict[str, Any] = {
    "EF21": EF21(TopK(2), unchanging(1.0)),
    "EF21-SGDM": EF21SGDM(TopK(2), unchanging(1.0), momentum=1.0),
    "EF21-P": EF21P(TopK(2), unchanging(1.0)),
    "EF-BV": EFBV(RandK(2, unbiased=True), unchanging(1.0)),
    "CLAG": CLAG(TopK(2), unchanging(1.0), trigger=2.0),
    "LAG": CLAG(Identity(), unchanging(1.0), trigger=4.0),
}
CURVATURES = np.array([1.0, 0.7, 0.5, 0.2, 0.1, 0.05])  # L = 1


def descended(context, name, step: float, steps: int):
    """f(x_t) - f* and ||grad f(x_t)||^2, t = 0, ..., T, of a run of two workers with the same quadratic."""
    problem, x0 = quadratic(CURVATURES, covariance=0.0), context.normal(6, "x0")
    method = KIN[name]._replace(step=unchanging(step))
    x = np.array(context.iterates(method, problem, name, steps=steps, x0=x0, workers=2))
    return 0.5 * x**2 @ CURVATURES, x**2 @ CURVATURES**2


def theorem_of(name: str, mu: float = 0.0) -> tuple[float, float]:
    """The longest step of a method's theorem on that quadratic, and the share of its error that is forgotten."""
    third = 1.0 / 3.0  # delta of top-2 of 6; omega of rand-2 is 2, of the mean of two messages 1
    learnt, used = (bounds.ef_bv_error(bounds.ef_bv_factor(omega), omega=omega) for omega in (2.0, 1.0))
    ratio, decay = {
        "EF-BV": (bounds.ef_bv_ratio(learnt, used), 1.0 - learnt**0.5),
        "CLAG": (bounds.clag_ratio(third, 2.0), bounds.clag_decay(third, 2.0)),
        "LAG": (bounds.clag_ratio(1.0, 4.0), bounds.clag_decay(1.0, 4.0)),
    }.get(name, (bounds.clag_ratio(third), bounds.clag_decay(third)))
    return bounds.difference_step(ratio, lipschitz=1.0, workers_lipschitz=1.0, mu=mu, decay=decay), decay


@claim(
    "ef21.theorem",
    of=bounds.difference_gradient,
    subject=1.0,
    mutants={"steps of twice the length": 2.0, "steps of 40 times the length": 40.0},
)
def _(context):
    top = quadratic([2.0, 0.5], covariance=0.0)  # gradient descent from the steepest direction: one step to the minimum
    step = 0.5 * context.subject
    x = np.array(context.iterates(EF21(Identity(), unchanging(step)), top, steps=1, x0=np.array([1.0, 0.0]), seed=0))
    law = bounds.difference_gradient(2, step=step, gap=1.0, error=0.0, decay=1.0)
    yield identity("gradient descent, mean of two ||grad f||^2", float(np.mean(x**2 @ [4.0, 0.25])), law, 1e-8)
    for steps, step, gap, error, decay in ((200, 0.3, 2.0, 9.0, 0.1), (90, 0.8, 3.0, 2.0, 0.3)):
        memory = error * (1.0 - decay) ** np.arange(steps)  # f falls by gamma/2 (||grad f||^2 - G_t), to f*
        law = bounds.difference_gradient(steps, step=step, gap=gap, error=error, decay=decay)
        yield upper(f"its lemmas as equalities, A={decay:g}", 2.0 * gap / (step * steps) + memory.mean(), law)
    for name in KIN:
        step, decay = theorem_of(name)
        gaps, squares = descended(context, name, step * context.subject, 160)
        law = bounds.difference_gradient(160, step=step, gap=gaps[0], error=squares[0], decay=decay)
        yield upper(f"{name}, mean ||grad f||^2 over 160 steps", float(squares[:160].mean()), law, trivial=squares[0])


@claim(
    "ef21.pl",
    of=bounds.difference_gap,
    subject=bounds.difference_gap,
    mutants={"three times the rate": lambda steps, step, **known: bounds.difference_gap(3 * steps, step=step, **known)},
)
def _(context):
    mu = CURVATURES.min()
    flat = quadratic([1.0, mu], covariance=0.0)  # gradient descent from the flattest direction: one step
    (_, x) = context.iterates(EF21(Identity(), unchanging(1.0)), flat, steps=1, x0=np.array([0.0, 1.0]), seed=0)
    law = context.subject(1, step=1.0, mu=mu, gap=0.5 * mu, error=0.0, decay=1.0)
    yield upper("gradient descent, f(x_1) - f*", float(0.5 * mu * x[1] ** 2), law)
    for steps, step, c, gap, error in ((3, 0.5, 0.4, 1.5, 2.0), (5, 0.3, 0.9, 0.7, 3.0)):
        decay, found, memory = 2.0 * step * c, gap, error  # the longest step of this A where mu is c
        for _ in range(steps):
            found, memory = (1.0 - step * c) * found + 0.5 * step * memory, (1.0 - decay) * memory
        law = context.subject(steps, step=step, mu=c, gap=gap, error=error, decay=decay)
        yield identity(f"its lemmas as equalities, f - f* + gamma G/A, A={decay:g}", found + step * memory / decay, law)
    for name in KIN:
        step, decay = theorem_of(name, mu)
        gaps, squares = descended(context, name, step, 400)
        law = context.subject(400, step=step, mu=mu, gap=gaps[0], error=squares[0], decay=decay)
        yield upper(f"{name}, f(x_400) - f*", float(gaps[-1]), law, trivial=gaps[0])


# --- noise ------------------------------------------------------------------------------------------------------------


@claim(
    "ef21.momentum.noise",
    of=bounds.ef21_momentum_noise,
    subject=1.0,
    mutants={"steps of five times the length": 5.0},
)
def _(context):
    for workers, noise in ((1, 1.0), (4, 2.25)):  # neither compression nor momentum: x is the mean of the last noise
        method, replicas = (
            EF21SGDM(Identity(), unchanging(context.subject), momentum=1.0),
            context.samples(40_000, 20_000),
        )
        problem = ridge((np.ones((2, 1)), noise**0.5 * np.array([1.0, -1.0])), l2=0.0)
        how = dict(x0=np.zeros(1), replicas=replicas, workers=workers, steps=2)
        found = context.run64(method, problem, "plain", workers, **how).last.ravel() ** 2
        law = bounds.ef21_momentum_noise(1.0, momentum=1.0, variance=noise, workers=workers, split=1e-6)
        label = f"E||grad f||^2, in full precision, a=1, N={workers}"
        yield equality(label, found, law) if workers > 1 else identity(label, float(found.mean()), law, 1e-5)
    for delta, a, noise, workers, split in ((0.75, 0.2, 2.0, 5, 0.5), (0.36, 0.6, 3.0, 2, 2.0)):
        q = (1.0 - delta) ** 0.5  # what noise adds to Phi, over gamma/2, with the weights of its three parts
        of_messages, of_mean = (1.0 + 1.0 / split) / (1.0 - q), (1.0 + split) / a
        of_workers = 2.0 * q**2 / (1.0 - q) * a * of_messages
        found = a**2 * noise * (of_mean / workers + of_workers + (1.0 - delta) * of_messages)
        law = bounds.ef21_momentum_noise(delta, momentum=a, variance=noise, workers=workers, split=split)
        yield identity(f"what noise adds to Phi in a step, delta={delta:g}, a={a:g}, N={workers}", found, law)
    problem = ridge((np.ones((2, 1)), np.array([1.0, -1.0])), l2=0.0)
    for a, workers in ((1.0, 1), (0.2, 4)):
        step = context.subject * bounds.ef21_momentum_step(0.84, momentum=a, lipschitz=1.0, workers_lipschitz=1.0)
        method = EF21SGDM(Lopsided(0.4), unchanging(step), momentum=a)
        how = dict(x0=np.zeros(1), replicas=context.samples(400, 200), workers=workers, steps=100)
        found = context.run64(method, problem, workers, **how).last.ravel() ** 2
        law = bounds.ef21_momentum_noise(0.84, momentum=a, variance=1.0, workers=workers)
        yield upper(f"E||grad f||^2 after 100 steps, a={a:g}, N={workers}", found, law)


# --- both directions, and the constants L_i ---------------------------------------------------------------------------


def both_ways(s: float, up: float, down: float):
    """A step of (x, h, g) of EF21-BC on x^2/2."""
    x, h, g = np.eye(3)
    h = h + up * (x - h)
    g = g + down * (h - g)
    return [(1.0, np.array([x - s * g, h, g]))]


def _same_memory(s, up, down):
    x, h, g = np.eye(3)
    g = h + down * up * (x - h)
    return [(1.0, np.array([x - s * g, g, g]))]


def asked(L, s: float) -> float:
    """L~ such that 2/(1 + s) of the theorem's step is the longest stable one of L_i x^2/2, C(v) = (1 + s) v."""
    slopes, n = np.asarray(L, float), len(L)
    x, *g = np.eye(1 + n)

    def factor(step: float) -> float:
        new = [gi + (1.0 + s) * (slope * x - gi) for gi, slope in zip(g, slopes, strict=True)]
        return squared_radius([x - step * sum(new) / n, *new])

    longest = crossing(0.0, 4.0 / slopes.mean(), lambda step: factor(step) < 1.0 + 1e-12, 60)
    return (2.0 / (1.0 + s) / longest - slopes.mean()) / bounds.clag_ratio(1.0 - s**2)


@claim(
    "ef21.both-ways.step",
    of=bounds.ef21_bc_ratio,
    subject=(both_ways, EF21BC),
    mutants={
        "one memory for both": (_same_memory, EF21BC),
        "the workers' messages alone": (lambda s, up, down: both_ways(s, up, 1.0), EF21BC),
        "the model's memory is not used": (both_ways, lambda c, step, down: EF21(c, step)),
    },
)
def _(context):
    matrix, made = context.subject
    for q, r in ((0.5, 0.0), (0.0, 0.7), (0.8, 0.6), (0.9, 0.95)):
        longest = crossing(0.0, 4.0, lambda s: growth(matrix(s, 1.0 + q, 1.0 + r)) < 1.0 + 1e-12, 50)  # noqa: B023
        asked = 2.0 * (1.0 + q * r) / ((1.0 + q) * (1.0 + r)) / max(longest, 1e-9) - 1.0
        law = bounds.ef21_bc_ratio(1.0 - q**2, 1.0 - r**2)
        yield identity(f"what the quadratic asks for, q={q:g}, q_D={r:g}", asked, law, 1e-6)
    delta = 0.19  # q = 0.9 in both directions: the longest stable step is 1.003 times the theorem's
    step = bounds.difference_step(bounds.ef21_bc_ratio(delta, delta), lipschitz=1.0, workers_lipschitz=1.0)
    for share, side in ((0.9, upper), (1.1, lower)):
        method = made(Scaling(delta, over=True), unchanging(share * step), down=Scaling(delta, over=True))
        last = context.run64(method, quadratic([1.0], covariance=0.0), steps=3000, x0=np.ones(1), seed=0).last
        yield side(f"|x| of a run after 3000 steps at {share:g} of the step", float(abs(last[0])), 1.0)


@claim(
    "ef21.weights",
    of=bounds.ef21_weighted,
    subject=asked,
    mutants={
        "the root of the mean of squares": lambda L, s: float(np.sqrt(np.mean(np.square(L)))),
        "the largest": lambda L, s: max(L),
        "the harmonic mean": lambda L, s: 1.0 / float(np.mean(1.0 / np.asarray(L))),
    },
)
def _(context):
    for L in ([1.0, 3.0], [0.1, 1.0, 5.0, 20.0]):
        for s in (0.5, 0.9, 0.99):
            found = context.subject(L, s)
            yield identity(f"L~ that the quadratics ask for, L_i={L}, s={s:g}", found, bounds.ef21_weighted(L), 1e-6)


def left_by_random(v, k: int, lam: float, unbiased: bool = True) -> float:
    """The error of the factor times random-k, whose mean is k/d of v if it is biased."""
    p = k / v.size
    return bounds.ef_bv_error(lam, omega=1.0 / p - 1.0 if unbiased else p - p**2, bias=0.0 if unbiased else 1.0 - p)


compressor_law(
    "ef21.factor",
    lambda k, lam, unbiased=True: Scaled(RandK(k, unbiased=unbiased), lam),
    of=bounds.ef_bv_error,
    formula=left_by_random,
    at=[
        (gaussian(40), {"k": 10, "lam": bounds.ef_bv_factor(3.0)}),
        (gaussian(40, power=3), {"k": 20, "lam": 0.9}),
        (gaussian(40), {"k": 10, "lam": 0.7, "unbiased": False}),
        (gaussian(40), {"k": 30, "lam": 0.5, "unbiased": False}),
    ],
    mutants={
        "without the factor": lambda k, lam, unbiased=True: RandK(k, unbiased=unbiased),
        "half of the factor": lambda k, lam, unbiased=True: Scaled(RandK(k, unbiased=unbiased), lam / 2),
    },
)
