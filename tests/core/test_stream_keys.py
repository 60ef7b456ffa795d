"""No key of a random stream is used twice, and neighbours know nothing of each other: over steps, workers, replicas,
purposes and seeds, also where counters have more than 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

from theory.cluster.context import PURPOSES, fill_stream_keys
from theory.core.random import derive, fill_bits, key

REPLICAS, WORKERS, STEPS = 3, 9, 600  # the ninth is the model, whose messages have a stream of their own
STARTS = (0, 2**32 - STEPS // 2, 2**53 - STEPS)
DRAWS = 2**15


def step_keys(seed: int, start: int) -> np.ndarray:
    """The keys that a run uses in a round, shape (purposes and replicas, workers, steps)."""
    own = [derive(key(seed, purpose), r) for purpose in (*PURPOSES, "clients") for r in range(REPLICAS)]
    out = np.empty((len(own), WORKERS, STEPS), np.uint64)
    fill_stream_keys(np.array(own, np.uint64), 0, start, out)
    return out


def test_no_key_is_used_twice():
    found = [step_keys(seed, start) for seed in (0, 1, 2**32, 2**64 - 1) for start in STARTS]
    assert found[1][3, 4, -1] == derive(derive(derive(key(0, PURPOSES[1]), 0), 4), 2**32 + STEPS // 2 - 1)
    every = np.concatenate([one.ravel() for one in found])
    assert np.unique(every).size == every.size == 4 * 3 * 5 * REPLICAS * WORKERS * STEPS


def test_keys_that_forget_an_order_or_a_bit_would_be_noticed():
    replicas, workers, steps = (np.arange(n, dtype=np.uint64) for n in (REPLICAS, WORKERS, STEPS))
    mixed = replicas[:, None, None] ^ workers[:, None] ^ steps
    assert np.unique(mixed).size < mixed.size
    narrow = np.unique(np.concatenate([(steps + np.uint64(start)) & np.uint64(2**32 - 1) for start in (0, 2**32)]))
    assert narrow.size < 2 * STEPS


def draws(stream: int) -> np.ndarray:
    """Numbers of a stream around 0, and beyond 32 bits of its counter."""
    high, low = np.empty(DRAWS, np.uint32), np.empty(DRAWS, np.uint32)
    fill_bits(np.uint64(stream), 2**32 - DRAWS // 2, high, low)
    return high / 2.0**32 - 0.5


def z(x: np.ndarray, y: np.ndarray) -> float:
    """The correlation in standard deviations, the largest over three shifts of the counter."""
    shifts = ((x[1:], y[:-1]), (x, y), (x[:-1], y[1:]))
    return max(abs(float(a @ b)) / (a.std() * b.std() * np.sqrt(a.size)) for a, b in shifts)


def path(seed=5, purpose="rounding", replica=0, worker=3, step=7) -> np.uint64:
    return derive(derive(derive(key(seed, purpose), replica), worker), step)


@pytest.mark.parametrize(
    "change",
    [{"step": 8}, {"step": 7 + 2**32}, {"worker": 4}, {"replica": 1}, {"purpose": "sampling"}, {"seed": 6}]
    + [{"worker": 7, "step": 3}],  # exchanged
    ids=str,
)
def test_neighbours_are_uncorrelated(change):
    x, y = draws(path()), draws(path(**change))
    assert z(x, y) < 6.0  # below with probability 1 - 6e-9
    assert z(x, np.roll(x, 1)) > 100.0  # a stream that is another one, a draw later
    differing = np.bitwise_count(step_keys(5, 0)[4, 3] ^ step_keys(5, 1)[4, 3])  # of a step and the next
    assert abs(differing.mean() - 32.0) < 6.0 * 4.0 / np.sqrt(STEPS)
