"""A sweep: a method in all combinations of some settings and seeds, on disk and side by side if asked for."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..cluster.setup import with_local_epochs
from ..core import require
from ..core.arguments import whole_number
from ..core.digests import deep_digest
from ..core.result import Result, load_result
from ..methods.long_steps import LongStepWarning
from ..reporting.progress import Progress
from .setting_texts import short

KEPT = ("x", "fun", "history", "nit", "success", "status", "message")  # of a result: without the state to go on from


def cells_of(methods: Any, labels: Any, grid: Any, known: Any) -> tuple[list, list[dict], list[str], list[dict]]:
    """The methods of all cells, what a table says of each, their labels, and the arguments of `run` that differ.

    Parameters
    ----------
    methods : sequence of method or callable
        Each is taken in every combination of the grid: a method with other fields, or what a function makes.
    labels : sequence of str or None
    grid : dict
        For each axis its values.
    known : container of str
        The arguments of `run`, which may be axes, too.
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
    """The results of all cells with all seeds: read from ``out`` where they are there, and measured elsewhere.

    A result is written as soon as it is measured, so that a call which was ended goes on where it was.  Its name is a
    digest of all that determines it: method, problem, arguments, seed, and the package's code.
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
            if one.n_jobs > 1 and todo:  # idle processes would live on for minutes, and keep ours from ending
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
    kept = Result({name: result[name] for name in KEPT})
    if path is not None:
        kept.save(path)
    return task, kept


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
    """A run of one round: what is compiled or loaded in it is not the time of the runs that follow."""
    longer = ("samples", "callback", "record_every", "epochs", "tol", "target", "verbose")
    few = {name: value for name, value in options.items() if name not in longer}
    taken, _ = with_local_epochs(method, problem, options["workers"])
    run(method, problem, **few | {"steps": getattr(taken, "local_steps", 1), "seed": seed})
