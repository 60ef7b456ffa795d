"""The history of a run: its rows, and how it ended."""

from __future__ import annotations

import numpy as np

from ..core.bound_calls import CODING, EXCHANGE, GRADIENT
from ..methods.messages import (
    ABSENT,
    BITS,
    BYTES,
    DOWN_BITS,
    DOWN_BYTES,
    HEARD_BITS,
    HEARD_BYTES,
    LINK_BITS,
    LINK_BYTES,
    REDUCED,
    SCATTERED,
    SERVER_BITS,
    SERVER_BYTES,
    SKIPPED,
)
from ..methods.sampling import drawn
from ..methods.types import Setup

DONE, WORSE, DIVERGED, MISSED, STOPPED = 0, 1, 2, 3, 99  # status codes; 99 is SciPy's for a stop by the callback
REACHED, SPENT = -1, -2  # while it runs: a target is reached, a budget spent
HOPELESS = 1e9  # a run has diverged if f exceeds this many times 1 + |f(x_0)|

HISTORY = np.dtype(
    [
        ("step", np.int64),
        ("samples", np.int64),
        ("rounds", np.int64),
        (("bits_up", "payload_bits_up"), np.float64),
        (("bits_down", "payload_bits_down"), np.float64),
        ("message_bytes_up", np.float64),
        ("message_bytes_down", np.float64),
        ("seconds", np.float64),
        ("seconds_gradient", np.float64),
        ("seconds_coding", np.float64),
        ("seconds_exchange", np.float64),
        ("f", np.float64),
        ("gradient_norm", np.float64),
    ]
)
COMPRESSION_ERROR = np.dtype([("vector", np.float64), ("error", np.float64)])


def row_of(setup: Setup, rounds: int, sent: np.ndarray, nanoseconds: np.ndarray, seconds: float) -> np.ndarray:
    """A row of the history without f: costs are per worker.

    A worker receives the messages of all others, unless the server alone does, and of the model, on a graph those of
    its neighbours; reduced values are sent and received once, and of scattered ones it receives its slice.
    """
    row, workers = np.zeros((), HISTORY), setup.workers
    steps = int(rounds) * setup.method.local_steps
    row["step"], row["rounds"] = steps, rounds - sent[SKIPPED]
    row["samples"] = workers * drawn(setup.batches, steps) - sent[ABSENT]
    row["seconds"] = seconds
    for name, alone, both, once, down, links, heard, server in (
        ("payload_bits", *sent[[BITS, REDUCED, SCATTERED, DOWN_BITS, LINK_BITS, HEARD_BITS, SERVER_BITS]]),
        (
            "message_bytes",
            sent[BYTES],
            sent[REDUCED] / 8,
            sent[SCATTERED] / 8,
            *sent[[DOWN_BYTES, LINK_BYTES, HEARD_BYTES, SERVER_BYTES]],
        ),
    ):
        row[f"{name}_up"] = (alone + both + once + links + server) / workers
        row[f"{name}_down"] = (alone * (workers - 1) + both + once / workers + heard) / workers + down
    for name, kind in (("gradient", GRADIENT), ("coding", CODING), ("exchange", EXCHANGE)):
        row[f"seconds_{name}"] = nanoseconds[kind] * 1e-9
    return row


def line_of(history: np.ndarray, k: int, steps: int) -> str:
    """What is printed of row k, with the number of steps of the run."""
    row = history[k]
    norm = f", ||grad f|| = {row['gradient_norm']:.3g}"
    spent = f"{row['payload_bits_up']:.3g} bits up, {row['seconds']:.3g} s"
    return f"step {row['step']:,} of {steps:,}: f = {row['f']:.6g}{norm}, {spent}"


def verdict(history: np.ndarray, k: int) -> tuple[int, str]:
    """Whether a run may go on after row k: status and message."""
    f = history["f"]
    if np.isfinite(f[k]) and (k == 0 or f[k] <= HOPELESS * (1.0 + abs(f[0]))):
        return DONE, "all steps done"
    step, what = history["step"][k], f"is {f[k]:.3g}" if np.isfinite(f[k]) else "is no longer finite"
    before = f"f was {f[k - 1]:.6g} at step {history['step'][k - 1]}" if k else "already at the start"
    return DIVERGED, f"diverged: f {what} at step {step} ({before}); try a smaller step size or more feedback"


def ended(history: np.ndarray, status: int, message: str) -> tuple[int, str]:
    """What is said at the end: a run that ends above its start did all its steps, and was no success."""
    f = history["f"]
    if status != DONE or f.size < 2 or history["step"][0] != 0 or f[-1] <= f[0]:
        return status, message
    return WORSE, f"all steps done, but f = {f[-1]:.6g} is above f(x_0) = {f[0]:.6g}; try a smaller step size"
