"""Claims about how many steps SGD needs, and about steps c/(mu t) for any c: one quoted form is false."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime
from .. import certain, claim, equality, lower, upper
from .sgd import filled, fits


@claim(
    "sgd.steps-for",
    of=bounds.sgd_steps_for,
    subject=(1.0, 1.0),
    mutants={"a quarter of the steps": (1.0, 0.25), "steps three times as large": (3.0, 1.0)},
)
def _(context):
    larger, fewer = context.subject
    for distance, eps in ((1.0, 0.04), (0.25, 0.02)):
        step, steps = bounds.sgd_steps_for(eps, mu=1.0, second_moment=1.0, distance=distance)
        method, replicas = ParallelSGD(Identity(), step=Constant(larger * step)), context.samples(20_000, 10_000)
        path, _ = filled(context, method, round(fewer * steps), replicas=replicas, start=distance**0.5)
        yield upper(f"E x_T^2, D_0={distance:g}, eps={eps:g}, T={steps}", path[-1] ** 2, eps, trivial=distance)
        yield fits(path)
        after = partial(bounds.sgd_constant_step, mu=1.0, step=step, second_moment=1.0, distance=distance)
        yield upper(f"sgd.constant-step.bound after T={steps}", float(after(steps)), eps)
        yield lower("the same after 0.95 T, so that T is not too large", float(after(int(0.95 * steps))), eps)


@claim(
    "sgd.theta",
    of=bounds.sgd_scaled_inverse_time,
    subject=1.0,
    mutants={"steps a quarter as large": 0.25, "steps twice as large": 2.0},
)
def _(context):
    for c in (2.0, 0.6, 0.75, 1.0, 4.0):
        method, quiet = ParallelSGD(Identity(), step=InverseTime(context.subject * c, 1.0, 1.0)), int(2.0 * c) - 1
        path, _ = filled(context, method, 60, str(c), replicas=context.samples(40_000, 20_000), quiet=quiet)
        for T in (60, quiet + 3, quiet + 1):
            known: dict[str, Any] = {"c": c, "mu": 1.0, "second_moment": 1.0}
            squares = certain(path[T] ** 2)  # one number of two signs, if a single step moved x
            yield equality(f"E x_T^2, c={c:g}, T={T}", squares, bounds.sgd_scaled_inverse_time(T, **known))
            simple = bounds.sgd_scaled_inverse_time(T, **known, form="simple")
            yield upper(f"E x_T^2, c={c:g}, T={T}, simple", squares, simple)
        yield fits(path)


def _all_paths(c: float, start, steps: int) -> np.ndarray:
    """x_T on every path, one row each, for f = ||x||^2/2 on the half disc of x_1 >= 0 and steps c/t.

    The noise is (0, +-sqrt(1 - ||x||^2)), so that E||g||^2 = 1 at every x.
    """
    paths = np.array([start], float)
    for t in range(1, steps + 1):
        noise = np.sqrt(np.maximum(0.0, 1.0 - np.sum(paths**2, axis=1, keepdims=True))) * np.array([0.0, 1.0])
        paths = np.concatenate([paths - c / t * (paths + noise), paths - c / t * (paths - noise)])
        paths[:, 0] = np.maximum(paths[:, 0], 0.0)
        paths /= np.maximum(1.0, np.linalg.norm(paths, axis=1, keepdims=True))
    return paths


@claim(
    "sgd.theta.quoted",
    of=bounds.sgd_scaled_inverse_time,
    subject=_all_paths,
    refuted="quoted",
    see=("sgd.theta",),
)
def _(context):
    for name, c, start, T in (("(1, 0)", 2.0, (1.0, 0.0), 2), ("x*", 1.0, (0.0, 0.0), 1)):
        found = float(np.mean(np.sum(context.subject(c, start, T) ** 2, axis=1)))
        distance = float(np.sum(np.square(start)))
        bound = bounds.sgd_scaled_inverse_time(T, c=c, mu=1.0, second_moment=1.0, distance=distance, form="quoted")
        yield upper(f"E||x_{T}||^2, c={c:g}, from {name}", found, bound)
    yield (
        "f = ||x||^2/2 on the half disc ||x|| <= 1, x_1 >= 0, noise (0, +-sqrt(1 - ||x||^2)), every path; the first"
        " check is the worst case, the second needs only the segment [-1, 1]"
    )
