"""``show``: the step of a method as it runs, line by line."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from typing import Any

from ..core import require
from ..methods.fast import LOOPS
from ..methods.types import Run
from .calls import trace_calls
from .driver import make_run
from .mpi import Ranks
from .setup import prepare
from .simulator import Memory

__all__ = ["show"]

WIDTH = 84  # of a line, in front of its operations


def show(method: Any, problem: Any = None, *, workers: int | None = None, comm: Any = None) -> None:
    """Print the step of a method: its round function, and below each line what it calls in this run.

    Lines of the parts (a feedback rule, a topology, a server) are marked by a bar, with the operations on rows that
    they call on the right.  If a compiled loop replaces the round function, its name and the test that compares the two
    come last; ``run(..., fast=False)`` runs the round function.  Nothing is run.

    Without a problem, print the source of a function or class: ``show(QSGD.quantize)``.

    Parameters
    ----------
    method : ParallelSGD, LocalSGD or a method of your own; a function or a class
        What to show; see :func:`theory.method`.
    problem : problem, optional
        The problem of the method.
    workers : int, optional
        Number of workers: by default 2, and 8 for a method on a graph.
    comm : mpi4py communicator, optional
        Show the step as run on its ranks; rank 0 prints.

    Raises
    ------
    ValueError
        For arguments that :func:`theory.run` rejects.
    TypeError
        If there is no problem, and ``method`` is neither a function nor a class.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.show(th.LocalSGD(step=th.Constant(0.1), local_steps=2), problem)
    LocalSGD, each line for all 2 workers at once:
    def round(self, run):
        y, g = run.local()
        run.set(y, run.x)  # y = x                                                       -> Combine
        for _ in run.local_steps():
            run.add_local_to_average(y)  # of the workers' iterates
            run.set_gradient(g, at=y)                                                    -> Combine, Draw, Gradient
            run.add(y, g, scale=-run.eta)  # y = y - eta g                               -> Combine
        p = self.feedback.load(run)  # p = e
            | run.set(p, run.x, scale=l2)                                                -> Combine
        run.add(p, run.x, minus=y)  # p = p + x - y                                      -> Difference
        message = self.topology.compress(run, self.compressor, p)  # Q(p)
            | return run.compress(compressor, p, reduce=True)                            -> Keys, Quantize
        self.feedback.store(run, p, message)  # e = p - Q(p)
        received = self.topology.exchange(run, message)  # the messages of all workers, or their mean
            | return run.reduce(message)                                                 -> First, Combined
        self.server.update(run, received)  # x = x - mean Q(p)
            | run.add(run.x, received, scale=-run.eta_received)                          -> Accumulate
    """
    if problem is None:
        shown = getattr(method, "py_func", method)
        known = inspect.isfunction(shown) or inspect.isclass(shown)
        require(known, "problem", None, "a problem, on which the method's step is shown", TypeError)
        print(textwrap.dedent(inspect.getsource(shown)), end="")
        return
    if workers is None:
        workers = 2 if getattr(method, "graph", None) is None else 8
    setup = prepare(method, problem, workers=workers, steps=_steps(method), comm=comm)
    run = make_run(setup, Memory() if comm is None else Ranks(comm))
    if comm is None or comm.Get_rank() == 0:
        print("\n".join(_lines(run)))


def _steps(method: Any) -> int:
    """The steps of one round; `prepare` rejects what is not a method."""
    steps = getattr(method, "local_steps", 1)
    return max(1, steps) if isinstance(steps, int) else 1


def _lines(run: Run) -> list[str]:
    """The lines that `show` prints."""
    method = run.setup.method
    text = type(method).round
    try:
        source, first = inspect.getsourcelines(text)
    except OSError:  # typed at the prompt: the source is not available, but the operations are
        source, first = ["def round(self, run):\n"], text.__code__.co_firstlineno
    below, hidden = _below(trace_calls(run, method.round)), _docstring_lines(source)
    if len(source) == 1:
        below = {(text.__code__.co_filename, first): _merged(below)}
    header = f"def round({', '.join(inspect.signature(text).parameters)}):"  # without the types of the arguments
    rows = ", sparse rows" if run.sparse else ""
    found = [f"{type(method).__name__}, each line for all {run.workers} workers at once{rows}:"]
    for k, line in enumerate(textwrap.dedent("".join(source)).splitlines()):
        if k not in hidden:
            found.append(header if line.startswith("def round(") else line)
            _write(below.get((text.__code__.co_filename, first + k), {}), len(line) - len(line.lstrip()) + 4, found)
    loop = next((loop for loop in LOOPS if loop.fits(run)), None)
    if loop is not None:
        found.append(f"In its place runs {loop.name}, with the same bits: {loop.test}.")
    return found


def _merged(below: dict) -> dict:
    """Merge the operations of all lines."""
    return {name: inner for node in below.values() for name, inner in node.items()}


def _docstring_lines(source: list[str]) -> range:
    """Which lines of a function are its docstring."""
    if len(source) == 1:
        return range(0)
    first = ast.parse(textwrap.dedent("".join(source))).body[0].body[0]  # type: ignore[attr-defined]
    known = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return range(first.lineno - 1, first.end_lineno) if known else range(0)


def _below(operations: list[tuple]) -> dict:
    """For each line, what it calls: a tree of lines with operations as leaves."""
    tree: dict = {}
    for stack, operation in operations:
        node = tree
        for line in stack:
            node = node.setdefault(line, {})
        node[operation] = {}
    return tree


def _write(node: dict, indent: int, found: list[str]) -> None:
    """Append the lines below a line; operations go on its right."""
    operations = [name for name in node if isinstance(name, str)]
    if operations:
        found[-1] = f"{found[-1]:<{WIDTH}} -> {', '.join(operations)}"
    for line, inner in node.items():
        if not isinstance(line, str):
            found.append(" " * indent + "| " + linecache.getline(*line).strip())
            _write(inner, indent + 4, found)
