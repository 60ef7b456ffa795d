"""Row draws, and the row kernels that depend on a problem: batch gradients and values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import generic, kernel
from ..core.bound_calls import GRADIENT, at, in_python, operation
from ..core.random import derive
from ..problems.base import PER_DRAW, PER_STEP, add_loss_gradient, gradient_noise, value
from ..problems.numpy_function import FunctionProblem
from .messages import ABSENT
from .rates import Column, number_at, rate_at
from .rows import row_of
from .sampling import Shards, draw_rows


@kernel
def batch_of(b, t, w):
    """How many rows the worker's batch has in this step, and how many it drew in earlier ones.

    ``own[w]`` is how many it draws in a round, ``before`` how many of these before this step; empty if all draw alike.
    """
    size, drawn = np.int64(rate_at(b.size, t)), np.int64(rate_at(b.drawn, t))
    if b.own.size > 0:
        return max(min(size, b.own[w] - b.before), 0), np.int64(t) * b.own[w] + b.before
    return size, drawn


@operation(kind=GRADIENT)
class Draw(NamedTuple):
    """batch[r, w] = the rows of the worker's batch in this step, after ``drawn`` rows in earlier steps.

    ``first`` is the number of the first worker here; ``order`` has each worker's row order in the current pass.
    """

    shards: Shards
    order: np.ndarray
    keys: np.ndarray
    first: int
    size: Column
    drawn: Column
    own: np.ndarray
    before: int
    batch: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        size, drawn = batch_of(b, t, w)
        draw_rows(b.shards, b.order[r], w, b.first + w, b.keys[r, w], drawn, b.batch[r, w, :size])


def _finish_gradient(rows, r, w, size):
    pass


gradient_target = generic(
    "gradient_target",
    "gradient_target(rows, r, w, size) -> vector: where the gradients of a worker's batch of this size are added up.",
    lambda rows, r, w, size: row_of(rows, r, w),
)
finish_gradient = generic(
    "finish_gradient",
    "finish_gradient(rows, r, w, size): after the batch: move the sum to its place.",
    _finish_gradient,
)


@operation(kind=GRADIENT, shared=("X",))
class Gradient(NamedTuple):
    """Add rate times the mean gradient of the losses of the worker's batch at X to P."""

    problem: NamedTuple
    X: np.ndarray
    P: np.ndarray
    rate: Column
    batch: np.ndarray
    keys: np.ndarray
    size: Column
    drawn: Column
    own: np.ndarray
    before: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        size, drawn = batch_of(b, t, w)
        weight = rate_at(b.rate, t) / size
        problem, x, p = b.problem, row_of(b.X, r, w), gradient_target(b.P, r, w, size)
        batch, noise = b.batch[r, w], b.keys[r, w]
        if gradient_noise(problem) == PER_STEP:
            noise = derive(b.keys[r, w], t * b.drawn.every + b.drawn.shift)
        for q in range(size):
            if gradient_noise(problem) == PER_DRAW:
                noise = derive(b.keys[r, w], drawn + q)
            add_loss_gradient(problem, np.int64(batch[q]), noise, weight, x, p)
        finish_gradient(b.P, r, w, size)


@in_python(Gradient, FunctionProblem)
def _(b, t, r, w):
    size, drawn = (int(number_at(column, t)) for column in (b.size, b.drawn))
    size = min(size, int(b.own[w]) - b.before) if b.own.size else size
    weight = number_at(b.rate, t) / size
    x, p = row_of(b.X, r, w), row_of(b.P, r, w)
    for q in range(size):
        noise = derive(b.keys[r, w], drawn + q)
        p += weight * b.problem.row_gradient(int(b.batch[r, w, q]), noise, x)


@operation(kind=GRADIENT, shared=("X",))
class FullGradient(NamedTuple):
    """Add rate / per times the sum of the gradients of the losses of all rows of the worker at X to P."""

    problem: NamedTuple
    X: np.ndarray
    P: np.ndarray
    rate: Column
    shards: Shards
    per: np.ndarray
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        start, stop = b.shards.start[b.first + w], b.shards.stop[b.first + w]
        problem, x, p = b.problem, row_of(b.X, r, w), gradient_target(b.P, r, w, stop - start)
        weight = rate_at(b.rate, t) / b.per[b.first + w]
        for q in range(start, stop):
            row = np.int64(b.shards.rows[q]) if b.shards.rows.size else q
            add_loss_gradient(problem, row, np.uint64(0), weight, x, p)
        finish_gradient(b.P, r, w, stop - start)


@in_python(FullGradient, FunctionProblem)
def _(b, t, r, w):
    x, p, weight = row_of(b.X, r, w), row_of(b.P, r, w), number_at(b.rate, t) / b.per[b.first + w]
    for q in range(int(b.shards.start[b.first + w]), int(b.shards.stop[b.first + w])):
        p += weight * b.problem.row_gradient(int(b.shards.rows[q]) if b.shards.rows.size else q, np.uint64(0), x)


@operation(kind=GRADIENT)
class CountGradients(NamedTuple):
    """Count gradients that all workers together evaluate besides their batches: ``times`` batches, and ``more``."""

    sent: np.ndarray
    size: Column
    times: int
    more: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.sent[r, ABSENT] -= b.times * np.int64(rate_at(b.size, t)) + b.more


@operation
class Value(NamedTuple):
    """out[r] = f(X[r, 0])."""

    problem: NamedTuple
    X: np.ndarray
    out: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        b.out[r] = value(b.problem, b.X[r, 0])


@in_python(Value, FunctionProblem)
def _(b, t, r, w):
    b.out[r] = value(b.problem, b.X[r, 0])
