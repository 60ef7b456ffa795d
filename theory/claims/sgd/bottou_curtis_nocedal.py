"""Claims about the theorems of Bottou, Curtis and Nocedal on SGD, with their constants and with sharp ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime
from ...problems import function
from .. import claim, equality, identity, upper
from .averages import schedule
from .rates import CONSTANT, MU, SIGMA2, distances


def gaps(step_sizes, diagonal, variance, gap):
    """E f(x_t) - f*, exactly, on a quadratic, from a start where every coordinate has the same share of ``gap``."""
    h = np.asarray(diagonal, float)
    start = np.sqrt(2.0 * gap / h.size / h)
    return bounds.quadratic_moments_exact(step_sizes, diagonal=h, variance=variance, start=start) @ h / 2.0


def biased(step_sizes, lipschitz, noise, gap, first, second):
    """The same on L x^2/2 where E g = ``first`` L x and E g^2 = noise + ``second`` (L x)^2."""
    found = [gap]
    for step in step_sizes * lipschitz:
        found.append((1.0 - 2.0 * first * step + second * step**2) * found[-1] + step**2 * noise / lipschitz / 2.0)
    return np.array(found)


BIASED = ((0.5, 0.4), (1.5, 4.0))  # their mu and M_G


def largest_ratio(law, bound):
    """Of a law to its bound, over all steps; infinite where a wrong bound is 0."""
    law, bound = np.asarray(law, float), np.asarray(bound, float)
    return float(np.max(np.divide(law, bound, out=np.full(law.shape, np.inf), where=bound != 0.0)))


@claim(
    "bottou.constant-step",
    of=bounds.bottou_constant_step,
    subject=lambda alpha: (Constant(alpha), 1),
    mutants=CONSTANT,
)
def _(context):
    alpha = 0.3 / MU
    step, workers = context.subject(alpha)
    found = distances(context, step, (2, 40), start=3.0**0.5, workers=workers, replicas=context.samples(2000, 1000))
    for T in (40, 2):
        bound = bounds.bottou_constant_step(T, mu=MU, lipschitz=MU, step=alpha, noise=SIGMA2, gap=MU / 2.0 * 3.0)
        yield equality(f"E f(x_T) - f*, L = c, alpha L=0.3, T={T}", MU / 2.0 * found[T], bound)
    for first, second in BIASED:
        known: dict[str, Any] = dict(mu=2.0, lipschitz=2.0, step=0.15 * first / second, noise=3.0, gap=0.7)
        law = biased(np.full(5, known["step"]), 2.0, 3.0, 0.7, first, second)
        bound = bounds.bottou_constant_step(5, **known, first=first, second=second)
        yield identity(f"E f(x_5) - f*, E g={first:g} grad f, M_G={second:g}", law[5], bound)
    law = gaps(np.full(100, 0.1), [1.0, 4.0], [0.5, 0.5], 2.0)
    way = [bounds.bottou_constant_step(t, mu=1.0, lipschitz=4.0, step=0.1, noise=1.0, gap=2.0) for t in range(101)]
    yield upper("largest ratio over T <= 100, L/c=4, alpha L=0.4", largest_ratio(law, way), 1.0)


@claim(
    "bottou.constant-step.paper",
    of=bounds.bottou_constant_step,
    subject=1.0,
    mutants={"steps 1.5 times as large": 1.5, "steps a quarter as large": 0.25},
)
def _(context):
    for share, T, first, second in (
        (1.0, 400, 1, 1),
        (0.5, 400, 1, 1),
        (0.05, 2, 1, 1),
        *((1.0, 9, *b) for b in BIASED),
    ):
        step = share / 2.0 * first / second
        known: dict[str, Any] = dict(mu=2.0, lipschitz=2.0, step=step, noise=1.0, gap=1.0, form="paper")
        law = biased(np.full(T, context.subject * step), 2.0, 1.0, 1.0, first, second)
        bound = [bounds.bottou_constant_step(t, **known, first=first, second=second) for t in range(T + 1)]
        yield upper(f"E f(x_T) - f*, alpha L={share:g} mu/M_G, mu={first:g}, M_G={second:g}, T={T}", law[T], bound[T])
        yield upper("largest ratio on the way", largest_ratio(law, bound), 1.0)


@claim(
    "bottou.decreasing-step",
    of=bounds.bottou_decreasing_step,
    subject=1.0,
    mutants={"steps a tenth as large": 0.1, "steps a fifth as large": 0.2},
)
def _(context):
    for diagonal, variance, factor, T in (
        ([1.0], [1.0], 1.0, 5_000),
        ([1.0, 10.0], [0.0, 1.0], 1.0, 5_000),
        ([1.0, 10.0], [1.0, 0.0], 1.0, 5_000),
        ([1.0], [1.0], 5.0, 1),
    ):
        h = max(diagonal)
        beta, shift = (factor * one for one in bounds.bottou_decreasing_step_plan(mu=1.0, lipschitz=h))
        law = gaps(context.subject * schedule(InverseTime(beta, 1.0, shift), T), diagonal, variance, 0.5)
        known = {"mu": 1.0, "lipschitz": h, "noise": 1.0, "gap": 0.5, "beta": beta, "shift": shift}
        at = np.unique(np.geomspace(1, T, 60).astype(int))
        bound = [bounds.bottou_decreasing_step(t, **known) for t in at]
        label = f"L/c={h:g}, beta c={beta:g}, the noise where the curvature is {diagonal[int(np.argmax(variance))]:g}"
        yield upper(f"E f(x_T) - f*, T={T}, {label}", law[T], bound[-1])
        yield upper("largest ratio on the way", largest_ratio(law[at], bound), 1.0)
    for first in (0.5, 1.5):
        known = {"mu": 2.0, "lipschitz": 2.0, "first": first, "second": first**2}
        beta, shift = (5.0 * one for one in bounds.bottou_decreasing_step_plan(**known))
        law = biased(np.array([context.subject * beta / shift]), 2.0, 3.0, 0.2, first, first**2)
        nearly = bounds.bottou_decreasing_step(1, **known, noise=3.0, gap=0.2, beta=beta, shift=shift)
        yield upper(f"E f(x_1) - f*, beta c mu=10, E g={first:g} grad f", law[1], nearly)
    plan = bounds.bottou_decreasing_step_plan(mu=1.0, lipschitz=2.0)
    best = min(np.linspace(1.1, 4.0, 291), key=lambda beta: beta**2 / (beta - 1.0))
    yield identity("the best beta c, by search", float(best), plan[0], tolerance=1e-9)


def wavy(context, step, steps, replicas):
    """The mean of ||grad f||^2 over the iterates, f = x^2 + 3 sin^2 x (L = 8, not convex), noise of variance 1."""
    squares = []

    def gradient(x, rng):
        slope = 2.0 * x + 3.0 * np.sin(2.0 * x)
        squares.append(slope**2)
        return slope + rng.standard_normal(x.size)

    problem, method = function(lambda x: 0.0, gradient, d=replicas), ParallelSGD(Identity(), step=Constant(step))
    context.run64(method, problem, steps=steps, x0=np.full(replicas, 3.0))
    return np.mean(squares, axis=0)


@claim(
    "bottou.nonconvex",
    of=bounds.bottou_nonconvex,
    subject=1.0,
    mutants={"steps 1.2 times as large": 1.2, "steps 0.8 times as large": 0.8},
)
def _(context):
    L, T = 2.0, 50
    for share, first, second in ((0.4, 1.0, 1.0), (1.0, 1.0, 1.0), *((0.6, *b) for b in BIASED)):
        alpha = share * first / second / L
        law = biased(np.full(T, context.subject * alpha), L, 3.0, 0.7, first, second)
        left = law[T] / (T * alpha * (first - alpha * L * second / 2.0))
        measured = 2.0 * L * float(law[:T].mean())
        known: dict[str, Any] = dict(lipschitz=L, step=alpha, noise=3.0, gap=0.7, first=first, second=second)
        label = f"mean ||grad f||^2 + what f(x_T) leaves, (L/2)x^2, alpha L={share:g} mu/M_G, mu={first:g}"
        yield identity(label, measured + left, bounds.bottou_nonconvex(T, **known))
        yield upper("mean ||grad f||^2, as printed", measured, bounds.bottou_nonconvex(T, **known, form="paper"))
    found = wavy(context, 0.05, 500, context.samples(1000, 400))
    bound = bounds.bottou_nonconvex(500, lipschitz=8.0, step=0.05, noise=1.0, gap=9.0 + 3.0 * math.sin(3.0) ** 2)
    yield upper("x^2 + 3 sin^2 x, alpha L=0.4, T=500", found, bound)


@claim(
    "bottou.minibatch",
    of=bounds.bottou_constant_step_floor,
    subject=lambda alpha, m: ((alpha, 1.0 / m), (alpha / m, 1.0)),
    mutants={
        "the single gradients keep the step alpha": lambda alpha, m: ((alpha, 1.0 / m), (alpha, 1.0)),
        "the batch's noise is not averaged": lambda alpha, m: ((alpha, 1.0), (alpha / m, 1.0)),
        "both steps smaller by 10 %": lambda alpha, m: ((0.9 * alpha, 1.0 / m), (0.9 * alpha / m, 1.0)),
    },
)
def _(context):
    L = 0.5

    def settled(step, variance, size):
        """The floor, and the number of gradients that reduce the excess by the factor e."""
        law = gaps(np.full(4000, step), [L], variance, 1.0)
        return law[-1], 2.0 * size / math.log((law[0] - law[-1]) / (law[2] - law[-1]))

    for alpha, m in ((1.0, 8), (0.25, 2)):
        both = ((alpha, 1.0 / m, m), (alpha / m, 1.0, 1))
        taken = zip(context.subject(alpha, m), (m, 1), strict=True)
        found = [settled(step, variance, size) for (step, variance), size in taken]
        for (floor, needed), (step, noise, size) in zip(found, both, strict=True):
            predicted = bounds.bottou_constant_step_floor(mu=L, lipschitz=L, step=step, noise=noise)
            yield identity(f"floor, {size} of {m} a step, alpha L={step * L:g}", floor, predicted, tolerance=1e-9)
            exact = -size / 2.0 / math.log1p(-step * L)
            yield identity(f"gradients per factor e, {size} of {m} a step", needed, exact, tolerance=1e-9)
        printed = [
            bounds.bottou_constant_step_floor(mu=L, lipschitz=L, step=step, noise=noise, form="paper")
            for step, noise, _ in both
        ]
        yield identity("floors by the printed bound", *printed)
        y = alpha * L / (2.0 - alpha * L)
        floor, slower = settled(2.0 * y / (m + y) / L, 1.0, 1)
        yield identity(f"a single step with the floor of the batch, m={m}", floor, found[0][0], tolerance=1e-9)
        ratio = m * math.atanh(y / m) / math.atanh(y)
        yield identity(
            f"gradients, batch over single, at that floor, m={m}", found[0][1] / slower, ratio, tolerance=1e-9
        )
