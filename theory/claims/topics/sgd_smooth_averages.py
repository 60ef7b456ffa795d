"""Claims about SGD's averages where f is smooth, or only convex."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime, Uniform
from ...problems import function
from .. import certain, claim, equality, identity, upper
from .sgd import filled, fits

# --- smooth: Theorems 1 and 2 -----------------------------------------------------------------------------------------


@claim(
    "sgd.smooth-average",
    of=bounds.sgd_smooth_average,
    lemmas=("sgd.inverse-time.bound",),
    subject=1.0,
    mutants={"steps a quarter as large": 0.25, "steps eight times as large": 8.0},
)
def _(context):
    T, A = 60, [Fraction(1, 2)]
    known: dict[str, Any] = {"mu": 1.0, "lipschitz": 1.0, "second_moment": 1.0}
    for t in range(1, T):
        A.append((1 - Fraction(2, t)) * A[-1] + Fraction(1, t * t))
    norms = [math.sqrt(a) for a in A]
    for steps in (T, 2):
        bound = bounds.sgd_smooth_average(steps, **known)
        yield identity(f"(L/2) (mean of sqrt A_t)^2, T={steps}", 0.5 * (sum(norms[:steps]) / steps) ** 2, bound)
    method = ParallelSGD(Identity(), step=InverseTime(context.subject, 1.0, 1.0), average=Uniform())
    path, mean = filled(context, method, T, replicas=context.samples(40_000, 20_000), start=math.sqrt(0.5))
    for t in (T - 1, 10, 3, 1):
        yield equality(f"E x_t^2 = A_t, t={t}", certain(path[t] ** 2), float(A[t]))
    yield upper(f"E f(xbar_T) - f*, T={T}", mean**2 / 2.0, bounds.sgd_smooth_average(T, **known))
    yield fits(path)


@claim(
    "sgd.smooth-last",
    of=bounds.sgd_smooth_last,
    subject=1.0,
    mutants={"c = 0.25: steps a quarter as large": 0.25, "c = 2: steps twice as large": 2.0},
)
def _(context):
    method = ParallelSGD(Identity(), step=InverseTime(context.subject, 1.0, 1.0))
    path, _ = filled(context, method, 100, replicas=context.samples(40_000, 20_000))
    for T in (100, 3):
        bound = bounds.sgd_smooth_last(T, mu=1.0, lipschitz=1.0, second_moment=1.0)
        yield equality(f"E f(x_T) - f*, T={T}", path[T] ** 2 / 2.0, bound)
    yield fits(path)


# --- convex: no strong convexity --------------------------------------------------------------------------------------


def descended(context, slope, start, step, steps):
    """The mean of x_0, ..., x_{T-1} of subgradient descent, by the package's run."""
    method = ParallelSGD(Identity(), step=Constant(context.subject * step), average=Uniform())
    problem = function(lambda x: 0.0, slope, d=len(start))
    return context.run64(method, problem, steps=steps, x0=start).x


@claim(
    "sgd.convex",
    of=bounds.sgd_convex,
    subject=1.0,
    mutants={"steps half as large": 0.5, "steps twice as large": 2.0},
)
def _(context):
    for T in (2, 8):
        step, s = 0.5, 1.0 / (0.5 * T)
        mean = descended(context, lambda x, s=s: s * np.sign(x), np.ones(1), step, T)
        bound = bounds.sgd_convex(T, step=step, second_moment=s**2, distance=1.0)
        yield identity(f"f of the mean, s|x|, T={T}", s * abs(mean[0]), bound)
    step, steps = bounds.sgd_convex_steps_for(1.0, second_moment=4.0, distance=4.0)  # eps = 1, M = 2, R = 2
    start = np.full(steps, 2.0 / math.sqrt(steps))
    mean = descended(
        context, lambda x: 2.0 * (x.max() > 0.0) * np.eye(1, x.size, int(np.argmax(x)))[0], start, step, steps
    )
    label = f"f of the mean, 2 max(0, x_1, ..., x_{steps}), gamma and T for eps = 1"
    found = 2.0 * max(0.0, mean.max())
    yield identity(label, found, bounds.sgd_convex(steps, step=step, second_moment=4.0, distance=4.0))
    yield upper(label, found, 1.0 + 1e-12)
