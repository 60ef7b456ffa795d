"""The whole: seconds to an accuracy on RCV1 in one process, for packages and for ours, as one figure.

A method's clock is the processor's, and it stops while f is evaluated.  Packages run with the step sizes that they
choose themselves; each of ours with the best of the same few, and the times of the others are not counted.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, SGDClassifier

import theory as th
from theory.plots import save_figure
from theory.plots.appearance import COLUMN
from theory.problems import base
from theory.reporting.json_values import read_record, record_path, write_record
from theory.studies.shared.curves import canvas, legend_below, looks

from .epochs import CLOCKS, driver

NAME = "benchmark-whole"
FIGURES = Path(__file__).resolve().parent.parent / "figures"
TARGETS = (1e-2, 1e-3)  # of f(0) - f*
RECORDS = 4  # of an epoch, of SGDClassifier and of ours
K = 10
ITERATIONS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 30, 45)  # after which a solver that shows no iterates is stopped
SHIFTS = (0.1, 1.0, 10.0)  # times the default shift of the step sizes 2 / (mu (shift + t))
SGD, SAGA, LBFGS = "SGDClassifier", "scikit-learn's SAGA", "scikit-learn's L-BFGS"


def _rows(data):
    X = sp.csr_matrix(data.X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def classifier(data, l2, evaluate, epochs: int) -> list:
    """The curve of SGDClassifier: (seconds, f) after each part of an epoch; the seconds are those of whole epochs.

    A call has costs of its own, so that an epoch of four calls takes longer than one of one call.
    """
    X, y, spent, curve = _rows(data), np.asarray(data.y), 0.0, []
    parts = [(X[first::RECORDS], y[first::RECORDS]) for first in range(RECORDS)]
    timed, seen = (SGDClassifier(loss="log_loss", alpha=l2, fit_intercept=False, random_state=0) for _ in range(2))
    for _ in range(epochs):
        begin = time.process_time()
        timed.partial_fit(X, y, classes=[-1.0, 1.0])
        seconds = time.process_time() - begin
        for part, (rows, labels) in enumerate(parts, 1):
            seen.partial_fit(rows, labels, classes=[-1.0, 1.0])
            curve.append((spent + seconds * part / RECORDS, evaluate(seen.coef_.ravel())))
        spent += seconds
    return curve


def solver(name, data, l2, evaluate, iterations) -> list:
    """The curve of a solver of LogisticRegression: it is run again for every number of iterations."""
    X, curve = _rows(data), []
    for most in iterations:
        model = LogisticRegression(
            solver=name, C=1.0 / (l2 * data.n), fit_intercept=False, tol=1e-12, max_iter=most, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was stopped before it converged: that is what was asked for
            begin = time.process_time()
            model.fit(X, data.y)
            spent = time.process_time() - begin
        curve.append((spent, evaluate(model.coef_.ravel())))
    return curve


def ours(method, problem, epochs: float, records: int) -> list:
    """The curve of one of our methods: (seconds of the steps, f) at each record."""
    steps = int(epochs * problem.n)
    with mock.patch.object(driver, "time", CLOCKS), warnings.catch_warnings():
        warnings.simplefilter("ignore", th.LongStepWarning)  # among the steps that are tried some are too long
        history = th.run(method, problem, workers=1, steps=steps, record_every=max(1, steps // records)).history
    return [(float(row["seconds"]), float(row["f"])) for row in history[1:]]


def methods(problem):
    """Our methods: the step sizes' shift, and what makes the method of it."""
    n, d = problem.n, problem.d

    def sgd(step):
        return th.ParallelSGD(th.Identity(sparse=True), step=step, compress="loss", sampling="shuffle")

    def memory(step):
        return th.ParallelSGD(th.TopK(K), step=step, feedback=th.ErrorFeedback(), average="quadratic")

    def qsgd(step):
        return th.ParallelSGD(th.QSGD(7), step=step, average="quadratic")

    return {
        "plain SGD": (float(n), sgd),
        f"Mem-SGD, top {K}": (float(d) / K, memory),
        "QSGD, 4 bits": (float(d), qsgd),
    }, lambda shift: th.InverseTime(c=2.0, mu=problem.l2, shift=shift)


def reached(curve, targets) -> list:
    """Seconds to each target, of a curve of f - f* or a multiple; infinite where it does not get there."""
    return [min((seconds for seconds, gap in curve if gap <= target), default=np.inf) for target in targets]


def measure(data, quick: bool = False, epochs=(20, 20, 20), goals=None) -> dict:
    """The curves of all contestants: seconds and (f - f*) / (f(0) - f*).

    ``epochs`` are those of our methods, which have the step size that comes first to the last of ``goals``: of f - f*,
    by default `TARGETS` times f(0) - f*.
    """
    problem = th.logistic(data, l2=1.0 / data.n)
    f_star, start = float(th.solve(problem).fun), float(base.value(problem, np.zeros(problem.d)))
    evaluate = lambda x: float(base.value(problem, np.ascontiguousarray(x, float)))  # noqa: E731
    targets = TARGETS if goals is None else [goal / (start - f_star) for goal in goals]
    curves, chosen = {}, {}

    def over_first(curve):
        return [(seconds, (f - f_star) / (start - f_star)) for seconds, f in curve]

    def keep(name, curve):
        curves[name] = over_first(curve)
        print(f"    {name}: {', '.join(map(shown, reached(curves[name], targets)))}", file=sys.stderr, flush=True)

    iterations = ITERATIONS[:3] if quick else ITERATIONS
    keep(SGD, classifier(data, problem.l2, evaluate, 3 if quick else 30))
    keep(SAGA, solver("saga", data, problem.l2, evaluate, iterations))
    keep(LBFGS, solver("lbfgs", data, problem.l2, evaluate, iterations))
    own, step = methods(problem)
    for (name, (shift, make)), most in zip(own.items(), epochs, strict=True):
        tried = {}
        for factor in SHIFTS[:1] if quick else SHIFTS:
            passes, records = (0.2, 4) if quick else (most, max(8, int(RECORDS * most)))
            curve = ours(make(step(factor * shift)), problem, passes, records)
            tried[factor] = (reached(over_first(curve), targets)[::-1], curve[-1][1], curve)
        best = min(tried, key=lambda factor: tried[factor][:2])
        chosen[name] = best * shift
        keep(name, tried[best][2])
    return {"data": data.name, "n": data.n, "d": data.d, "f_star": f_star, "curves": curves, "shift": chosen}


def shown(seconds: float) -> str:
    """Seconds to a target."""
    return "not reached" if np.isinf(seconds) else f"{seconds:.3g} s"


def table(found) -> list[tuple[str, ...]]:
    """A row for each contestant: its seconds to each target, and its shift."""
    rows = [("one process, seconds of the processor", *(f"to {g:g} of f(0) - f*" for g in TARGETS), "shift")]
    for name, curve in found["curves"].items():
        told = map(shown, reached(curve, TARGETS))
        rows.append((name, *told, f"{found['shift'][name]:,.0f}" if name in found["shift"] else ""))
    return rows


def draw(found):
    """Suboptimality against seconds, both logarithmic."""
    with canvas(1, 1, 1.25 * COLUMN) as (figure, grid):
        axes, look_of = grid[0][0], looks(found["curves"])
        for k, (name, curve) in enumerate(found["curves"].items()):
            seconds, gaps = np.array(curve).T
            look = look_of[name] | {"linestyle": "--" if k < 3 else "-", "markerfacecolor": "none" if k < 3 else None}
            axes.plot(seconds, np.maximum(gaps, 1e-9), label=name, markevery=max(1, len(gaps) // 12), **look)
        for target in TARGETS:
            axes.axhline(target, color="0.6", linewidth=0.7, zorder=0)
        axes.set(xscale="log", yscale="log", xlabel="seconds of one processor", ylabel="(f - f*) / (f(0) - f*)")
        axes.set_ylim(1e-5, 1.2)
        legend_below(figure, axes)
    return figure


def whole(data, quick: bool = False, folder=FIGURES) -> dict:
    """Measure, and draw the figure; its record lies beside it, except with ``quick``."""
    begin = time.perf_counter()
    found = measure(data, quick)
    if not quick:
        write_record(folder, NAME, {"benchmark": "whole", "seed": 0}, time.perf_counter() - begin, found)
        redraw(folder)
    return found


def redraw(folder=FIGURES) -> dict:
    """Draw the figure from its record."""
    found = read_record(record_path(folder, NAME)).found
    save_figure(draw(found), Path(folder) / NAME)
    return found
