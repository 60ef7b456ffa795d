"""Claims about late gradients: how long steps may be, how fast they are, what noise leaves, and what overlap gains."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from ... import bounds
from ...methods.delayed import DelayedSGD
from ...problems import quadratic
from .. import claim, equality, identity, lower, upper
from .feedback import unchanging


def late(delay: int, step: float) -> DelayedSGD:
    """SGD with full messages that are so many rounds late."""
    return DelayedSGD(step=unchanging(step), delay=delay)


LATER = {
    "one round later": lambda delay, step: late(delay + 1, step),
    "one round earlier": lambda delay, step: late(delay - 1, step),
}


@claim("delay.limit", of=bounds.delay_limit, subject=late, mutants=LATER)
def _(context):
    for delay in (1, 2, 5):
        edge = bounds.delay_limit(delay)
        for share, side in ((0.98, upper), (1.02, lower)):
            method = context.subject(delay, share * edge / 4.0)
            known = dict(steps=1500, x0=np.ones(1), workers=2, seed=0)
            x = context.run64(method, quadratic([4.0], covariance=0.0), **known).last
            yield side(f"|x| after 1500 steps at {share:g} of it, tau={delay}", float(abs(x[0])), 1.0)


@claim("delay.factor", of=bounds.delay_factor, subject=late, mutants=LATER, see=("delay.limit",))
def _(context):
    for delay, share in ((1, 0.1), (1, 0.24), (2, 0.1), (1, 0.8), (2, 0.5), (4, 0.3)):
        method, problem = context.subject(delay, share / 2.0), quadratic([2.0], covariance=0.0)
        x = np.ravel(context.iterates(method, problem, steps=120, x0=np.ones(1), seed=0))[-4:] / 1e-30
        real = share < bounds.delay_best_step(delay)  # one root is the largest, or two that are conjugate
        found = x[3] / x[2] if real else math.sqrt((x[1] * x[3] - x[2] ** 2) / (x[0] * x[2] - x[1] ** 2))
        where = f"tau={delay}, s={share:g}"
        yield identity(f"factor of a step after 120, {where}", float(found), bounds.delay_factor(share, delay), 1e-6)


@claim(
    "delay.best",
    of=bounds.delay_best_step,
    subject=bounds.delay_best_step,
    mutants={
        "1/(tau + 1)": lambda delay: 1.0 / (delay + 1.0),
        "half of the stable steps": lambda delay: bounds.delay_limit(delay) / 2.0,
    },
    see=("delay.factor",),
)
def _(context):
    for delay in (1, 2, 4):
        best, edge = context.subject(delay), bounds.delay_limit(delay)
        of = minimize_scalar(bounds.delay_factor, args=(delay,), bounds=(0.0, edge), method="bounded")
        yield identity(f"the fastest of all, tau={delay}", best, float(of.x), 1e-3)
        method, problem = late(delay, best), quadratic([1.0], covariance=0.0)
        x = np.ravel(context.iterates(method, problem, steps=160, x0=np.ones(1), seed=0))[-3:]
        found = (x[1] - math.sqrt(abs(x[1] ** 2 - x[0] * x[2]))) / x[0]  # x = (a + b t) r^t, as two roots meet
        yield identity(f"factor of a step after 160, tau={delay}", found, delay / (delay + 1.0), 1e-5)


@claim("delay.variance", of=bounds.delay_variance, subject=late, mutants=LATER, see=("delay.factor",))
def _(context):
    d = context.samples(40_000, 10_000)
    for delay, share in ((1, 0.3), (3, 0.2)):
        method, problem = context.subject(delay, share), quadratic(np.ones(d), covariance=1.0)
        x = context.run64(method, problem, f"{delay}", steps=80, x0=np.zeros(d)).last
        law = bounds.delay_variance(share, delay, share)
        yield equality(f"E x^2 after 80 steps, tau={delay}, s={share:g}", x**2, law)


def slope(context, method, kappa: float) -> float:
    """Logarithm of the factor of a step, in the later half of a run with the curvatures 1 and kappa."""
    problem, steps = quadratic([1.0, kappa], covariance=0.0), int(12 * (kappa + 1))
    x = np.abs(context.iterates(method, problem, steps=steps, x0=np.ones(2), seed=0)).max(axis=1)
    later = np.log(x[len(x) // 2 :])
    return float(np.polyfit(np.arange(len(later)), later, 1)[0])


@claim(
    "overlap.step",
    of=bounds.overlap_step,
    subject=bounds.overlap_step,
    mutants={
        "1/L": lambda mu, lipschitz: 1.0 / lipschitz,
        "2/(L + mu)": lambda mu, lipschitz: 2.0 / (lipschitz + mu),
        "1/(4 L), where nothing oscillates": lambda mu, lipschitz: 0.25 / lipschitz,
    },
    see=("delay.factor",),
)
def _(context):
    for kappa in (2.0, 10.0, 25.0):
        found = slope(context, late(1, context.subject(1.0, kappa)), kappa)
        yield identity(f"ln of the factor of a step, kappa={kappa:g}", found, -math.log1p(1.0 / kappa), 0.02)


def faster(context, kappa: float, compute: float, exchange: float, step: float = 1.0) -> float:
    """Seconds to an accuracy without overlap, over those with it, by the slopes of runs."""
    alone = slope(context, late(0, 2.0 / (1.0 + kappa)), kappa)
    both = slope(context, late(1, step * bounds.overlap_step(1.0, kappa)), kappa)
    return both / alone * (compute + exchange) / max(compute, exchange)


@claim(
    "overlap.gain",
    of=bounds.overlap_gain,
    subject=faster,
    mutants={
        "no delay": lambda context, kappa, compute, exchange: (compute + exchange) / max(compute, exchange),
        "half of the step": partial(faster, step=0.5),
    },
    see=("overlap.step",),
)
def _(context):
    for kappa, compute, exchange in ((2.0, 1.0, 1.0), (10.0, 1.0, 3.0)):
        found, law = context.subject(context, kappa, compute, exchange), bounds.overlap_gain(compute, exchange, kappa)
        yield identity(f"times faster, kappa={kappa:g}, {compute:g} and {exchange:g} s", found, law, 0.02)
