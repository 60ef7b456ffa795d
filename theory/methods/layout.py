"""How x and the workers' memories are held, so that the text of a method does not depend on it.

This file names what a method asks for and answers it with plain arrays, where a step costs O(d);
:mod:`theory.methods.sparse` answers it for sparse rows and messages, where a step costs what these cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors.base import quantize, quantize_rest
from ..dispatch import generic, kernel
from ..settings import setting

__all__ = ["Dense", "averaged", "current", "elect", "error_of", "move", "new_iterate", "new_memory", "point",
           "project", "recall", "receiver", "remember", "retain", "shrink", "slow_down", "write_message"]  # fmt: skip

new_iterate = generic(
    "new_iterate",
    "new_iterate(layout, x0, workers, averaging): x held in this layout; starts at x0.",
    inline=False,
)
new_memory = generic(
    "new_memory",
    "new_memory(layout, x, workers, compressor, wire): the vectors of the local workers.",
    inline=False,
)
point = generic("point", "point(x): x as a vector of theory.vectors, for gradients and for messages to be added to.")
recall = generic(
    "recall",
    "recall(memory, w, x, l2) -> vector: what local worker w will compress, begun with what it kept and l2 * x.",
    inline=False,
)


def _write_message(memory, p, compressor, state, stream, symbols):
    quantize(compressor, state, p, stream, symbols)


write_message = generic(
    "write_message",
    "write_message(memory, p, compressor, state, stream, symbols): symbols = Q(p). Where the memory is p itself, take "
    "what the receiver restores off it in the same pass.",
    _write_message,
    inline=False,
)
retain = generic(
    "retain",
    "retain(memory, w, p, compressor, symbols, stream): of p = recall(...), keep what the receiver does not decode; "
    "`stream` is a fresh key.",
    inline=False,
)
shrink = generic("shrink", "shrink(x, factor): x *= factor.")
remember = generic("remember", "remember(x, weight): count x with this weight in the average of the iterates.")
current = generic("current", "current(x, out): out = x as a plain array.")
averaged = generic("averaged", "averaged(x, out): out = the weighted average as a plain array (x before any weight).")
receiver = generic("receiver", "receiver(x) -> vector: what messages are added to, x itself or its velocity.")
slow_down = generic(
    "slow_down",
    "slow_down(x, momentum, ahead, l2): before the messages of a step: x -= ahead * velocity, velocity = momentum * "
    "velocity - l2 * x.",
)
move = generic("move", "move(x, rate): after the messages of a step: x += rate * velocity.")
project = generic("project", "project(x, radius): the nearest point of the ball of this radius around 0.")
elect = generic("elect", "elect(x): the velocity, minus a mean of signs, becomes minus their majority; a tie is +1.")
error_of = generic(
    "error_of",
    "error_of(memory, w, x, out): out = what local worker w keeps, as a plain array.",
    inline=False,
)


@setting
class Dense(NamedTuple):
    """Plain arrays; x may have a velocity."""

    moving: bool = False


@setting
class DenseMemory(NamedTuple):
    """Plain arrays, and one more for each worker: what it did not send."""

    moving: bool = False


class DenseIterate(NamedTuple):
    """x, the weighted mean of the iterates so far, their total weight, and the velocity (empty: none is wanted)."""

    x: np.ndarray
    mean: np.ndarray
    total: np.ndarray
    velocity: np.ndarray


class Forgotten(NamedTuple):
    """One vector that the workers use in turn."""

    p: np.ndarray


class Kept(NamedTuple):
    """The workers' vectors, one row each."""

    e: np.ndarray


@kernel
def new_dense(x0, averaging, moving):
    """The iterate as plain arrays."""
    d = x0.size
    mean, velocity = np.zeros(d if averaging else 0, x0.dtype), np.zeros(d if moving else 0, x0.dtype)
    return DenseIterate(x0.copy(), mean, np.zeros(1), velocity)


@new_iterate.register(Dense, DenseMemory)
def _(layout, x0, workers, averaging):
    return new_dense(x0, averaging, layout.moving)


@new_memory.register(Dense)
def _(layout, x, workers, compressor, wire):
    return Forgotten(np.empty(x.x.size, x.x.dtype))


@new_memory.register(DenseMemory)
def _(layout, x, workers, compressor, wire):
    return Kept(np.zeros((workers, x.x.size), x.x.dtype))


@point.register(DenseIterate)
def _(x):
    return x.x


@recall.register(Forgotten)
def _(memory, w, x, l2):
    p = memory.p
    for j in range(p.size):
        p[j] = l2 * x.x[j]
    return p


@recall.register(Kept)
def _(memory, w, x, l2):
    p = memory.e[w]
    if l2 != 0.0:
        for j in range(p.size):
            p[j] += l2 * x.x[j]
    return p


@retain.register(Forgotten)
def _(memory, w, p, compressor, symbols, stream):
    pass


@write_message.register(Kept)
def _(memory, p, compressor, state, stream, symbols):
    quantize_rest(compressor, state, p, stream, symbols)


@retain.register(Kept)
def _(memory, w, p, compressor, symbols, stream):
    pass


@error_of.register(Forgotten)
def _(memory, w, x, out):
    out[:] = 0.0


@error_of.register(Kept)
def _(memory, w, x, out):
    for j in range(out.size):
        out[j] = memory.e[w, j]


@shrink.register(DenseIterate)
def _(x, factor):
    for j in range(x.x.size):
        x.x[j] *= factor


@receiver.register(DenseIterate)
def _(x):
    return x.velocity if x.velocity.size else x.x


@slow_down.register(DenseIterate)
def _(x, momentum, ahead, l2):
    for j in range(x.velocity.size):
        before, x.velocity[j] = x.velocity[j], momentum * x.velocity[j] - l2 * x.x[j]
        x.x[j] -= ahead * before


@move.register(DenseIterate)
def _(x, rate):
    for j in range(x.velocity.size):
        x.x[j] += rate * x.velocity[j]


@project.register(DenseIterate)
def _(x, radius):
    squared = 0.0
    for j in range(x.x.size):
        squared += np.float64(x.x[j]) * x.x[j]
    if squared > radius * radius:
        shrink(x, radius / np.sqrt(squared))


@elect.register(DenseIterate)
def _(x):
    for j in range(x.velocity.size):
        x.velocity[j] = 1.0 if x.velocity[j] > 0.0 else -1.0


@remember.register(DenseIterate)
def _(x, weight):
    if x.mean.size and weight > 0.0:
        x.total[0] += weight
        share = weight / x.total[0]
        for j in range(x.x.size):
            x.mean[j] += share * (x.x[j] - x.mean[j])


@current.register(DenseIterate)
def _(x, out):
    for j in range(out.size):
        out[j] = x.x[j]


@averaged.register(DenseIterate)
def _(x, out):
    for j in range(out.size):
        out[j] = x.mean[j] if x.total[0] > 0.0 else x.x[j]
