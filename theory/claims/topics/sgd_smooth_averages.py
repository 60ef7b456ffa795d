"""Claims about SGD's averages where f is smooth, or only convex."""

from __future__ import annotations

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import InverseTime
from .. import claim, equality
from .sgd import filled, fits

# --- smooth: Theorems 1 and 2 -----------------------------------------------------------------------------------------


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
