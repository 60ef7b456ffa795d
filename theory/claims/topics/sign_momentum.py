"""Claims about signs of momenta: their theorem, attained, under skewed noise, and where workers' data differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity, Sign
from ...methods import ParallelSGD, Signum
from ...methods.schedules import Constant
from ...problems import function, quadratic, ridge
from .. import claim, identity, upper


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
