"""All of RCV1's rows: seconds to an accuracy beside scikit-learn, an epoch against the data, and memory of ranks.

``python -m benchmarks full-size`` takes about half an hour; the twin of RCV1 is generated first, where it is not there.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import numpy as np

import theory as th
from theory.data.sharding import FULL_SIZE
from theory.data.twin_shards import full_size
from theory.plots import save_figure
from theory.reporting.json_values import write_record

from . import whole
from .epochs import epoch
from .full_size_ranks import ALLOWED, GOALS, VECTORS
from .pairing import in_turn
from .ranks import start

NAME, COMMAND = "benchmark-full-size", "full-size"
EPOCHS = (20, 4, 0.5)  # of SGD, Mem-SGD and QSGD
PARTS = (32, 16, 8, 4, 2, 1)
NEAR = 0.2  # an epoch's seconds may be so far from linear in the non-zeros
RANKS, WORKERS, ROUNDS = (1, 2, 4, 8), 8, 100
TURNS = 9


def sgd_epochs(data, quick: bool) -> list[tuple[int, int, list[float]]]:
    """Of parts of the data rows, non-zeros, and seconds of the processor of epochs of SGD, all parts in turn."""
    parts, calls = [], {}
    for part in PARTS[-2:] if quick else PARTS:
        n = data.n // part
        X = data.X[:n]
        problem = th.logistic((X, data.y[:n]), 1.0 / n)
        step = th.InverseTime(c=2.0, mu=1.0 / n, shift=float(n))
        plain = th.ParallelSGD(th.Identity(sparse=True), step=step, compress="loss", sampling="shuffle")
        parts.append((n, int(X.nnz)))
        calls[str(n)] = epoch(plain, problem)
    seconds = in_turn(TURNS, **calls)
    print(f"    {data.n:,} rows: {np.median(seconds[str(data.n)]):.3g} s an epoch", file=sys.stderr, flush=True)
    return [(n, nnz, seconds[str(n)].tolist()) for n, nnz in parts]


def memory(rows: int, quick: bool) -> list[list]:
    """For each number of ranks the MB of each: of its rows, at most in all, and at the end of what no file backs."""
    found = []
    for ranks in RANKS[:2] if quick else RANKS:
        for _ in range(2):  # the second finds all compiled
            text = start(ranks, "-m", "benchmarks.full_size_job", rows, 5 if quick else ROUNDS)
        found.append(json.loads(text.strip().splitlines()[-1]))
        print(f"    {ranks} ranks: at most {max(one[1] for one in found[-1]):.0f} MB", file=sys.stderr, flush=True)
    return found


def measure(quick: bool = False) -> dict:
    """All of it."""
    rows = 2000 if quick else FULL_SIZE["rcv1-like"]
    data = full_size(rows)
    return {
        "epochs": sgd_epochs(data, quick),
        "ranks": memory(rows, quick),
        "whole": whole.measure(data, quick, EPOCHS, GOALS),
        "entries": int(data.X.nnz),
    }


def tables(found: dict) -> list[list[tuple[str, ...]]]:
    """Seconds to an accuracy; an epoch against the data; memory of ranks."""
    told, start_gap = found["whole"], math.log(2.0) - found["whole"]["f_star"]
    first = [("one process, seconds of the processor", *(f"to f - f* = {g:g}" for g in GOALS), "shift")]
    for name, curve in told["curves"].items():
        shown = map(whole.shown, whole.reached(curve, [g / start_gap for g in GOALS]))
        first.append((name, *shown, f"{told['shift'][name]:,.0f}" if name in told["shift"] else ""))
    last = found["epochs"][-1]
    second = [("rows", "non-zeros", "an epoch of SGD", "a non-zero", "against all rows", "range", f"within {NEAR:.0%}")]
    for n, nnz, seconds in found["epochs"]:
        ratios, middle = np.array(seconds) / nnz / (np.array(last[2]) / last[1]), float(np.median(seconds))
        near = "met" if abs(np.median(ratios) - 1.0) <= NEAR else "**not met**"
        told_ = (f"{n:,}", f"{nnz:,}", f"{middle:.3g} s", f"{1e9 * middle / nnz:.2f} ns", f"{np.median(ratios):.3f}")
        second.append((*told_, f"{ratios.min():.2f} to {ratios.max():.2f}", near))
    third = [
        ("ranks", "its rows, MB", "a rank held at most", "beside its rows", "of no file, at the end", "allowed", "")
    ]
    allowed = VECTORS * 8e-6 * told["d"] + ALLOWED
    for held in found["ranks"]:
        most = max(held, key=lambda one: one[1] - one[0])
        beside = most[1] - most[0]
        row = (str(len(held)), *(f"{x:.0f}" for x in (most[0], most[1], beside, most[2], allowed)))
        third.append((*row, "met" if beside <= allowed else "**not met**"))
    return [first, second, third]


def full(quick: bool = False, folder=whole.FIGURES) -> dict:
    """Measure, and draw the figure; its record lies beside it, except with ``quick``."""
    begin = time.perf_counter()
    found = measure(quick)
    if not quick:
        write_record(folder, NAME, {"benchmark": COMMAND, "seed": 0}, time.perf_counter() - begin, found)
        save_figure(draw(found), Path(folder) / NAME)
    return found


def draw(found: dict):
    """Suboptimality against seconds."""
    return whole.draw(found["whole"])
