"""Sweeps: methods in all combinations of settings, and the best constant step of each.

A sweep may have several seeds; on request it is stored on disk and run in parallel.  The best constant step is found by
a small search over powers of two, divided by L.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..cluster.setup import with_local_epochs
from ..core import require
from ..core.arguments import whole_number
from ..core.digests import deep_digest
from ..core.result import Result, load_result
from ..methods.schedules import Constant
from ..methods.theory_steps import LongStepWarning
from ..problems import lipschitz
from ..reporting.progress import Progress
from .appearance import short

# --- The best constant step of each method ---------------------------------------------------------------------------

LOW, HIGH = -12, 12  # exponents beyond which nothing is searched


class Choice(NamedTuple):
    """The steps that a search tried, and the best one.

    Attributes
    ----------
    exponent : int
        The best step is 2^exponent / L.
    step : float
    tried : tuple of int
        All exponents, in their order.
    seconds : float
        Of the runs.
    """

    exponent: int
    step: float
    tried: tuple[int, ...]
    seconds: float

    def __str__(self) -> str:
        low, high = min(self.tried), max(self.tried)
        where = ", the end of what is searched" if self.exponent in (LOW, HIGH) else ""
        return (
            f"2^{self.exponent}/L = {self.step:.3g}, best of 2^{low}/L to 2^{high}/L{where} ({len(self.tried)} runs, "
            f"{self.seconds:.2g} s)"
        )


def _search(gap_at: Any) -> tuple[int, dict[int, float]]:
    """The exponent with the smallest gap, searched upwards from 0, then downwards while it decreases; all gaps."""
    tried = {0: gap_at(0)}
    for way in (1, -1):
        e = way
        while LOW <= e <= HIGH and not (way < 0 and min(tried, key=lambda k: tried[k]) > 0):
            tried[e] = gap_at(e)
            if tried[e] > min(tried.values()) and math.isfinite(min(tried.values())):
                break
            if way > 0 and not math.isfinite(tried[e]):
                break
            e += way
    return min(tried, key=lambda k: (tried[k], k)), tried


def choose_steps(methods: Any, problem: Any, **options: Any) -> list[Choice]:
    """For each method, the constant step with the lowest final f, at the same budget and seed.

    Parameters
    ----------
    methods : sequence
        Their own steps do not matter.
    problem : problem
    **options
        Of `run`.

    Returns
    -------
    list of Choice

    Raises
    ------
    ValueError
        If a method diverges, or ends above its start, with every step that is tried.
    """
    from ..cluster import run

    try:
        smoothness = float(lipschitz(problem))
    except ValueError as error:
        known = "a number, or a problem whose L is known: function(..., lipschitz=...), where a rough value is enough"
        raise ValueError(f"step: got 'best', which searches among 2^e/L, allowed: {known}") from error
    found = []
    for method in methods:
        spent = 0.0

        def gap_at(e: int, method: Any = method) -> float:
            nonlocal spent
            result = run(method._replace(step=Constant(2.0**e / smoothness)), problem, **options)
            spent += float(result.history["seconds"][-1])
            return float(result.fun) if result.success and np.isfinite(result.fun) else math.inf

        exponent, tried = _search(gap_at)
        require(
            math.isfinite(tried[exponent]),
            "methods",
            method,
            f"one that some step suits: it diverged, or ended above its start, with each of 2^{min(tried)}/L to "
            f"2^{max(tried)}/L, L = {smoothness:.6g}",
        )
        found.append(Choice(exponent, 2.0**exponent / smoothness, tuple(tried), spent))
    return found


# --- A sweep ---------------------------------------------------------------------------------------------------------

SAVED = ("x", "fun", "history", "nit", "success", "status", "message")  # of a result: without the state to go on from


def cells_of(methods: Any, labels: Any, grid: Any, known: Any) -> tuple[list, list[dict], list[str], list[dict]]:
    """The methods of all cells, their entries in a table, their labels, and the arguments of `run` that differ.

    Parameters
    ----------
    methods : sequence of method or callable
        Each is taken in every combination of the grid: a method with changed fields, or the result of a function.
    labels : sequence of str or None
    grid : dict
        For each axis its values.
    known : container of str
        The arguments of `run`, which may also be axes.
    """
    require(isinstance(grid, Mapping), "grid", grid, "a dict, such as {'step': [0.1, 0.5]}", TypeError)
    for name, values in grid.items():
        several = not isinstance(values, str) and np.iterable(values) and not hasattr(values, "_fields")
        require(several and len(list(values)) > 0, f"grid: {name}", values, "a list of at least one value")
        taken = [callable(one) or name in one._fields or name in known for one in methods]
        fields = ", ".join(methods[0]._fields) if hasattr(methods[0], "_fields") else ""
        require(all(taken), "grid", name, f"fields of the method ({fields}), or arguments of run, such as workers")
    settings, told, names, options = [], [], [], []
    for k, one in enumerate(methods):
        for values in itertools.product(*grid.values()):
            cell = dict(zip(grid, values, strict=True))
            ours = {} if not hasattr(one, "_fields") else {name: cell[name] for name in cell if name in one._fields}
            method = one._replace(**ours) if hasattr(one, "_fields") else one(**cell)
            require(hasattr(method, "_fields"), "methods", method, "a function that returns a method", TypeError)
            method.domain()
            settings.append(method)
            options.append({} if not hasattr(one, "_fields") else {n: v for n, v in cell.items() if n not in ours})
            name = labels[k] if labels else type(method).__name__
            shown = {n: v if isinstance(v, (bool, int, float)) else _text(v) for n, v in cell.items()}
            told.append({"method": name, **{"step_size" if n == "step" else n: v for n, v in shown.items()}})
            parts = [f"{n}={v:g}" if isinstance(v, (int, float)) else v for n, v in shown.items()]
            names.append(", ".join([name] * (len(methods) > 1 or not parts) + parts))
    return settings, told, names, options


def _text(value: Any) -> str:
    return "full precision" if value is None else short(value)


def measure(
    methods: list, problem: Any, seeds: Any, each: list[dict], options: dict, out: Any, jobs: Any, labels: Any
) -> list[tuple[Result, ...]]:
    """The results of all cells with all seeds: read from ``out`` if they are stored there, otherwise measured.

    A result is written as soon as it is measured, so that an interrupted call can be continued.  Its name is a digest
    of everything that determines it: method, problem, arguments, seed, and the package's code.
    """
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    whole_number("jobs", jobs)
    require(options.get("comm") is None, "comm", options.get("comm"), "None with a grid, whose cells run side by side")
    tasks = [(k, seed) for k in range(len(methods)) for seed in seeds]
    paths = _paths(tasks, methods, problem, each, options, Path(out)) if out is not None else [None] * len(tasks)
    found: dict[tuple[int, int], Result] = {
        task: load_result(path) for task, path in zip(tasks, paths, strict=True) if path is not None and path.exists()
    }
    todo = [(task, path) for task, path in zip(tasks, paths, strict=True) if task not in found]
    label = f"{len(tasks)} runs" + (f", {len(found)} of them from {out}" if found else "")
    with Progress(label, len(todo), " runs") as bar:
        one = Parallel(n_jobs=int(jobs), return_as="generator_unordered", batch_size=1)
        work = (
            delayed(_measured)(task, labels[task[0]], methods[task[0]], problem, options | each[task[0]], path)
            for task, path in todo
        )
        try:
            for task, result in one(work):
                found[task] = result
                bar.done()
        finally:
            if one.n_jobs > 1 and todo:  # idle processes would remain for minutes, and delay the end of this one
                get_reusable_executor().shutdown(wait=True, kill_workers=True)
    return [tuple(found[k, seed] for seed in seeds) for k in range(len(methods))]


def _measured(task: tuple[int, int], label: str, method: Any, problem: Any, options: dict, path: Any) -> tuple:
    """One run, in any process."""
    from ..cluster import run

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LongStepWarning)  # which steps are too long is what a sweep shows
            warm_up(run, method, problem, task[1], options)
            result = run(method, problem, seed=task[1], **options)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{label}: {error}") from None
    saved = Result({name: result[name] for name in SAVED})
    if path is not None:
        saved.save(path)
    return task, saved


def _paths(tasks: list, methods: list, problem: Any, each: list[dict], options: dict, out: Path) -> list[Path]:
    """Where the result of each task is, or will be."""
    from ..cluster.setup import package_code

    given = {name: value for name, value in options.items() if name not in ("verbose", "patience")}
    common, unknown = deep_digest((type(problem).__qualname__, problem, given, package_code()))
    told = [deep_digest((method, type(method).round, more)) for method, more in zip(methods, each, strict=True)]
    for what in [unknown, *(names for _, names in told)]:
        require(not what, "out", ", ".join(dict.fromkeys(what)), "None where a method or problem cannot be compared")
    return [out / deep_digest((common, told[k][0], seed))[0] for k, seed in tasks]


def warm_up(run: Any, method: Any, problem: Any, seed: int, options: dict) -> None:
    """A run of one round, so that compiling and loading do not count in the time of the runs that follow."""
    longer = ("samples", "callback", "record_every", "epochs", "tol", "target", "verbose")
    few = {name: value for name, value in options.items() if name not in longer}
    taken, _ = with_local_epochs(method, problem, options["workers"])
    run(method, problem, **few | {"steps": getattr(taken, "local_steps", 1), "seed": seed})
