"""Mini-batch SGD that sums the gradients of a batch, as in Yin et al., with this package's methods, which average."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compressors.identity import Identity
from ..methods.schedules import Constant
from ..methods.sgd import ParallelSGD
from .checks import Context


def sums(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """The method for the step ``step`` of each gradient."""
    return ParallelSGD(Identity(), step=Constant(batch * step), batch=batch, average=average)


def not_scaled(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """The step of one gradient for the mean of a batch."""
    return sums(batch, step / batch, average)


def one_for_all(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """One gradient, counted B times."""
    return sums(batch, step, average)._replace(batch=1)


def shorter(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """Steps a tenth smaller."""
    return sums(batch, 0.9 * step, average)


def thrice(batch: int, step: float, average: str = "last") -> ParallelSGD:
    """Steps three times as large."""
    return sums(batch, 3.0 * step, average)


def path(
    context: Context, problem: Any, start: ArrayLike, *, batch: int, step: float, rounds: int, replicas: int
) -> np.ndarray:
    """Values F(w_k) of runs of the claim's subject: a row for each round from 0, a column for each replica."""
    return context.run(
        context.subject(batch, step),
        problem,
        "path",
        batch,
        rounds,
        workers=1,
        steps=rounds,
        replicas=replicas,
        x0=start,
        record_every=1,
        wire_dtype=np.float64,
    ).replica_values
