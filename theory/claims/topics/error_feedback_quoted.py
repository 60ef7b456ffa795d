"""A claim that refutes the rate of error feedback as it is quoted, with a witness within all assumptions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import bounds
from ...core.random import key
from ...methods import ErrorFeedback, ParallelSGD
from ...problems import function
from .. import claim, upper
from ..mutants.shared import Scaling
from ..scalar_ef import over, squared_gradients
from .feedback import unchanging


def _huber(x) -> float:
    """x^2/2 for |x| <= 1, continued linearly, summed over the coordinates."""
    size = np.abs(x)
    return float(np.sum(np.where(size < 1.0, size**2 / 2.0, size - 0.5)))


def _bounded_gradient(x, rng) -> np.ndarray:
    """Its gradient with noise +-sqrt(1 - x^2) where |x| < 1: each coordinate has the second moment 1 at every x."""
    noise = np.sqrt(np.maximum(0.0, 1.0 - x**2))
    return np.clip(x, -1.0, 1.0) + rng.choice((-1.0, 1.0), x.size) * noise


@claim(
    "ef.nonconvex.quoted",
    of=bounds.ef_sgd,
    subject=Scaling,
    refuted="quoted",
    see=("ef.nonconvex", "ef.nonconvex.sharp"),
)
def _(context):
    missing, size, d, steps = 0.05, 0.9, 10_000, 100
    delta, found = 1.0 - missing**2, []
    quoted: dict[str, Any] = dict(delta=delta, lipschitz=1.0, step=size, second_moment=1.0, reading="quoted")
    method = ParallelSGD(context.subject(delta, over=True), step=unchanging(size), feedback=ErrorFeedback())
    for r in range(context.samples(96, 24)):
        options: dict[str, Any] = dict(steps=steps, x0=np.zeros(d), seed=int(key(context.stream(), r)))
        path = context.iterates(method, function(_huber, _bounded_gradient, d), **options)
        found.append(np.mean(np.clip(path[:-1], -1.0, 1.0) ** 2))
    law = functools.partial(squared_gradients, over(delta), size, bounded=True)
    start = float(law(0.0, 3000)[-1])  # the stationary law
    from_start = bounds.ef_sgd(3000, gap=start / 2.0, **quoted)
    where = f"C(v) = {1 + missing:g} v, delta={delta:g}, gamma L={size:g}"
    bound = bounds.ef_sgd(steps, gap=0.0, **quoted)
    yield upper(f"mean of E||grad f(x_t)||^2, {where}, T={steps}", found, bound)
    yield upper("its exact value", law(0.0, steps).mean(), bound)
    yield upper("its exact value, T=3000", law(0.0, 3000).mean(), bounds.ef_sgd(3000, gap=0.0, **quoted))
    label = f"least of E||grad f(x_t)||^2, exactly, x_0^2={start:.4f}, T=3000"
    yield upper(label, law(start, 3000).min(), from_start)
    yield (
        "f = x^2/2 for |x| <= 1, linear beyond, noise +-sqrt(1 - x^2): E||g||^2 = 1 at every x; from x* for the"
        " mean; 10,000 independent coordinates, both sides divided by their number; the stationary E||grad f||^2 is"
        f" {start:.4f}"
    )
