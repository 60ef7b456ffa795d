"""Plain SGD on a quadratic with drawn noise, fused: the same bits as the general step, many steps' noise at once.

Such a step is a few multiplications for each coordinate, and nearly all of the time went to what surrounds them: keys,
clocks, messages, one normal number after the other.  This loop draws the noise of many steps together, which does not
depend on x, and then takes the steps.  It is for full precision, one draw a worker, no memory and no momentum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..dispatch import borrowing, kernel
from ..problems.quadratic import add_drawn_noise, add_mean_gradient
from ..random import fill_keys, fill_normals
from ..settings import setting
from .layout import Forgotten, new_dense, new_iterate, new_memory, project, remember
from .parallel_sgd import DRAWN, GRADIENT, INSIDE, OUTSIDE, REDUCED, WEIGHT, now

__all__ = ["FEW", "Drawn", "advance_drawn"]

FEW = 256  # up to this length of x the fused loop is used; longer vectors keep a processor busy as they are
TOGETHER = 64  # steps whose noise is drawn together, at most
NUMBERS = 2**15  # normal numbers that are held at a time, about: they stay in the processor's cache


@setting
class Drawn(NamedTuple):
    """Plain arrays, for gradients with drawn noise that are sent as they are."""


@new_iterate.register(Drawn)
def _(layout, x0, workers, averaging):
    return new_dense(x0, averaging, False)


@new_memory.register(Drawn)
def _(layout, x, workers, compressor, wire):
    return Forgotten(np.empty(x.x.size, x.x.dtype))


@borrowing
@kernel
def _step(problem, weights, rate, l2, noise, x, p, value, total):
    """What the workers send, as rows of ``value``, and their mean in ``total``; then x moves.  ``noise``: (w, j)."""
    inside, outside = rate[INSIDE], rate[OUTSIDE]
    for w in range(weights.size):
        for j in range(x.size):
            p[j] = inside * l2 * x[j]
        add_mean_gradient(problem, inside, x, p)
        add_drawn_noise(problem, noise[w], inside, p)
        for j in range(x.size):
            value[w, j] = p[j]
    for j in range(x.size):
        mean = 0.0
        for w in range(weights.size):
            mean += weights[w] * value[w, j]
        total[j] = mean
        x[j] += -outside * total[j]


@kernel
def advance_drawn(problem, shards, plan, streams, state, rates):
    """As ``simulator.advance``, for the layout `Drawn`: one step for each row of ``rates``."""
    x, p, value, total = state.x, state.memory.p, state.symbols.value, state.symbols.value[plan.here]
    time = np.empty(2, np.int64)
    begin = now(plan.clock, time)
    together = max(1, min(TOGETHER, rates.shape[0], NUMBERS // (plan.here * plan.d)))
    high, low, room = np.empty(together, np.uint32), np.empty(together, np.uint32), np.empty((4, together), np.uint32)
    noise = np.empty((plan.here, plan.d, together))
    for first in range(0, rates.shape[0], together):
        count = min(together, rates.shape[0] - first)
        for w in range(plan.here):
            fill_keys(streams[2, w], np.int64(rates[first, DRAWN]), high[:count], low[:count])
            fill_normals(high[:count], low[:count], room, noise[w])
        for k in range(count):
            if rates[first + k, WEIGHT] > 0.0:
                remember(x, rates[first + k, WEIGHT])
            _step(problem, shards.weight, rates[first + k], plan.sent_l2, noise[:, :, k], x.x, p, value, total)
            if plan.radius < np.inf:
                project(x, plan.radius)
    state.tally[REDUCED] += 8 * value.itemsize * plan.d * plan.here * rates.shape[0]
    state.tally[GRADIENT] += now(plan.clock, time) - begin
