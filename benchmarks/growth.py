"""How seconds and memory grow with the work: ``python -m benchmarks growth [--quick]``.

Each line varies one number and keeps the others.  Seconds are the processor's, the least of some turns; memory is the
most that NumPy held at any time of a call (`tracemalloc`).  A slope is that of the logarithms, by least squares over
the larger half of the sizes, where what a call costs anyway counts little.  The exponent beside it is what the
algorithm should need.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import theory as th
from theory.plots import save_figure
from theory.plots.appearance import COLUMN
from theory.problems import base
from theory.reporting.json_values import read_record, record_path, write_record
from theory.studies.shared.curves import canvas, guide, legend_below, looks

NAME = "benchmark-growth"
FIGURES = Path(__file__).resolve().parent.parent / "figures"
ABOVE = 0.1  # a slope that exceeds its exponent by more is marked
TURNS = 3
SHORT = 0.02  # seconds: a call that takes less is repeated


class Line(NamedTuple):
    """What is varied, and the exponents that are expected.

    ``make(size)`` returns the call to be measured; ``seconds`` and ``memory`` are exponents, or None where it is not
    asked.
    """

    what: str
    against: str
    sizes: tuple[int, ...]
    make: Callable[[int], Callable[[], object]]
    seconds: float | None
    memory: float | None


class Grown(NamedTuple):
    """The measurements of a line; ``memory`` is in bytes."""

    what: str
    against: str
    sizes: list
    seconds: list
    memory: list
    expected: tuple


# --- what is varied ---------------------------------------------------------------------------------------------------


def sparse_problem(n: int, d: int, nnz: int):
    """Logistic regression with ``nnz`` entries in each of n rows."""
    rng = np.random.default_rng(0)
    columns = (rng.integers(0, d // nnz, (n, nnz)) + d // nnz * np.arange(nnz)).ravel()
    entries = rng.choice([-1.0, 1.0], n * nnz) / nnz**0.5
    X = sp.csr_matrix((entries, columns, np.arange(0, n * nnz + 1, nnz)), (n, d))
    return th.logistic((X, np.where(rng.random(n) < 0.5, -1.0, 1.0)), l2=1.0 / n)


def evaluation(problem):
    """f and its gradient."""
    x, out = np.full(problem.d, 0.01), np.empty(problem.d)
    return lambda: base.value_and_gradient(problem, x, out)


def steps(method, problem, count: int, **how):
    """So many steps of a method."""
    return lambda: th.run(method, problem, steps=count, record_every=count, **({"workers": 1} | how))


def plain(problem, count: int):
    """Steps of plain SGD on sparse rows."""
    method = th.ParallelSGD(th.Identity(sparse=True), step=th.Constant(0.1), compress="loss", sampling="shuffle")
    return steps(method, problem, count)


def memory_sgd(d: int, workers: int, count: int = 20, **how):
    """Steps of SGD with top-k and error feedback on a dense quadratic."""
    problem = th.quadratic(np.linspace(1.0, 2.0, d), covariance=0.1)
    method = th.ParallelSGD(th.TopK(max(1, d // 100)), step=th.Constant(0.1), feedback=th.ErrorFeedback())
    return steps(method, problem, count, workers=workers, **how)


def message(bits: int, d: int):
    """A vector to bits and back."""
    v, c, stream = np.random.default_rng(0).standard_normal(d, dtype=np.float32), th.qsgd_bits(bits), th.key(0)
    return lambda: th.decode(th.encode(c, v, stream), d=v.size)


def powers(first: int, last: int, by: int = 1) -> tuple[int, ...]:
    """2**first, ..., 2**last."""
    return tuple(2**k for k in range(first, last + 1, by))


def lines(quick: bool = False) -> list[Line]:
    """All lines; with ``quick`` at small sizes."""
    few = 6 if quick else 0  # powers of two fewer
    n, d, nnz = 2 ** (14 - few), 2 ** (16 - few), 2**6 >> (few // 2)
    return [
        Line(
            "f and its gradient, sparse rows",
            "n",
            powers(12 - few, 17 - few),
            lambda size: evaluation(sparse_problem(size, d, nnz)),
            1.0,
            None,
        ),
        Line(
            "an epoch of SGD, sparse rows",
            "n",
            powers(12 - few, 17 - few),
            lambda size: plain(sparse_problem(size, d, nnz), size),
            1.0,
            None,
        ),
        Line(
            "an epoch of SGD, sparse rows",
            "nnz",
            powers(3, 9 - few // 2),
            lambda size: plain(sparse_problem(n, d, size), n),
            1.0,
            None,
        ),
        Line(
            "a step of SGD, sparse rows (and x, once)",
            "d",
            powers(12 - few, 17 - few),
            lambda size: plain(sparse_problem(n, size, nnz), 4 * n),
            0.0,
            1.0,
        ),
        Line(
            "top-k with error feedback, dense",
            "d",
            powers(10 - few // 2, 18 - few - few // 2),
            lambda size: memory_sgd(size, 4),
            1.0,
            1.0,
        ),
        Line(
            "the same, in one process",
            "N",
            powers(0, 10 - few, 1 if quick else 2),
            lambda size: memory_sgd(2 ** (12 - few), size),
            1.0,
            1.0,
        ),
        Line(
            "the same",
            "replicas",
            powers(0, 10 - few, 1 if quick else 2),
            lambda size: memory_sgd(2 ** (10 - few), 1, replicas=size),
            1.0,
            1.0,
        ),
        Line(
            "QSGD, vector to bits and back",
            "bits",
            (2, 4, 8, 15),  # from 2**14 levels on, every level takes double precision
            lambda size: message(size, 2 ** (20 - few)),
            1.0,
            1.0,
        ),
    ]


# --- measuring --------------------------------------------------------------------------------------------------------


def seconds_of(call, turns: int) -> float:
    """The least of some turns of the processor's seconds; the first call, which compiles, does not count."""
    call()
    begin = time.process_time()
    call()
    times = max(1, int(SHORT / max(time.process_time() - begin, 1e-6)))
    taken = []
    for _ in range(turns):
        begin = time.process_time()
        for _ in range(times):
            call()
        taken.append((time.process_time() - begin) / times)
    return min(taken)


def memory_of(call) -> int:
    """The most bytes that NumPy and Python held in a call, beyond what they held before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def grow(line: Line, turns: int = TURNS) -> Grown:
    """Measure one line."""
    seconds, memory = [], []
    for size in line.sizes:
        call = line.make(size)
        seconds.append(seconds_of(call, turns))
        memory.append(memory_of(call))
    return Grown(line.what, line.against, list(line.sizes), seconds, memory, (line.seconds, line.memory))


def slope(sizes, values) -> float:
    """The slope of the logarithms over the larger half of the sizes."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def slopes(grown: Grown) -> list[tuple[float, float] | None]:
    """Measured and expected slope of the seconds and of the memory; None where nothing is expected."""
    return [
        None if expected is None else (slope(grown.sizes, values), expected)
        for values, expected in zip((grown.seconds, grown.memory), grown.expected, strict=True)
    ]


def growth(quick: bool = False, folder=FIGURES) -> list[Grown]:
    """Measure all lines, and draw the figure; its record lies beside it, except with ``quick``."""
    begin, found = time.perf_counter(), []
    for line in lines(quick):
        found.append(grow(line, 2 if quick else TURNS))
        print("  " + "  ".join(filter(None, cells(found[-1]))), file=sys.stderr, flush=True)
    if not quick:
        how, values = {"benchmark": "growth"}, {"lines": [tuple(grown) for grown in found]}
        write_record(folder, NAME, how, time.perf_counter() - begin, values)
        redraw(folder)
    return found


# --- table and figure -------------------------------------------------------------------------------------------------

HEAD = (
    "what",
    "against",
    "sizes",
    "slope of seconds",
    "expected",
    "",
    "slope of memory",
    "expected",
    "",
    "the largest",
)


def cells(grown: Grown) -> tuple[str, ...]:
    """The row of the table."""
    row = [grown.what, grown.against, f"{grown.sizes[0]:,} to {grown.sizes[-1]:,}"]
    for found in slopes(grown):
        if found is None:
            row += ["", "", ""]
        else:
            measured, expected = found
            row += [f"{measured:.2f}", f"{expected:g}", "**above**" if measured > expected + ABOVE else ""]
    return *row, f"{grown.seconds[-1]:.3g} s, {grown.memory[-1] / 1e6:.3g} MB"


def draw(found):
    """Seconds on the left, memory on the right, against the size, over those of the smallest size."""
    several = [Grown(*values) for values in found["lines"]]
    with canvas(1, 2, 1.35 * COLUMN) as (figure, grid):
        look_of = looks([grown.what + grown.against for grown in several])
        for axes, name, which in zip(grid[0], ("seconds", "memory"), (0, 1), strict=True):
            for grown in several:
                if grown.expected[which] is None:
                    continue
                sizes, values = np.array(grown.sizes, float), np.array(getattr(grown, name))
                axes.plot(
                    sizes / sizes[0],
                    values / values[0],
                    label=f"{grown.what}: {grown.against}",
                    markerfacecolor="none",
                    **look_of[grown.what + grown.against],
                )
            widest = max(grown.sizes[-1] / grown.sizes[0] for grown in several)
            guide(axes, [1, widest], [1, widest], "proportional", zorder=0)
            axes.set(xscale="log", yscale="log", ylabel=f"{name}, times those of the smallest size")
            axes.set(xlabel="the number after the colon, times the smallest", ylim=(0.5, 2.0 * widest))
        legend_below(figure, grid[0][0], 2)
    return figure


def redraw(folder=FIGURES) -> None:
    """Draw the figure from its record."""
    save_figure(draw(read_record(record_path(folder, NAME)).found), Path(folder) / NAME)
