"""``show`` prints the step of a method as it runs, line by line."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import textwrap
from typing import Any, NamedTuple

from ..core import require
from ..methods.compiled_loops import LOOPS
from ..methods.types import Run
from .calls import trace_calls
from .driver import make_run
from .mpi import Ranks
from .setup import prepare
from .simulator import Memory

WIDTH = 84  # of a line, in front of its operations


def show(method: Any, problem: Any = None, *, workers: int | None = None, comm: Any = None, t: int = 0) -> None:
    """Print the step of a method: its round function, and below each line the code that it calls in this run.

    Lines of the parts (a feedback rule, a topology, a server) are marked by a bar; only lines that are executed in this
    run are shown, and those that define names for them. The operations on rows that a line calls are on its right. If a
    compiled loop replaces the round function, the last lines are its name and the test that compares both; ``run(...,
    fast=False)`` runs the round function. ``show`` itself runs nothing.

    Without a problem, print the source of a function or class: ``show(QSGD.quantize)``.

    Parameters
    ----------
    method : ParallelSGD, LocalSGD or another method; a function or a class
        The object to show; see :func:`theory.method`.
    problem : problem, optional
        The problem of the method.
    workers : int, optional
        Number of workers: by default 2, and 8 for a method on a graph.
    comm : mpi4py communicator, optional
        Show the step as run on its ranks; rank 0 prints.
    t : int
        The round that is shown, for methods whose rounds differ, such as `OneBitAdam`: by default the first, 0.

    Raises
    ------
    ValueError
        If :func:`theory.run` rejects an argument.
    TypeError
        If no problem is given and ``method`` is neither a function nor a class.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.show(th.LocalSGD(step=th.Constant(0.1), local_steps=2), problem)
    LocalSGD, each line for all workers at once; here eta_received = 1:
    def round(self, run):
        # Local steps and an exchange; each line is for all workers at once.
        y, g = run.local()  # of each worker: its model, and the gradient there
        run.set(y, run.x)  # y = x                                                       -> Combine
        for _ in run.local_steps():
            run.add_local_to_average(y)  # of the workers' iterates
            run.set_gradient(g, at=y)  # g = gradient at y                               -> Combine, Draw, Gradient
            run.add(y, g, scale=-run.eta)  # y = y - eta g                               -> Combine
        p = self.feedback.load(run)  # p = e
            | NoFeedback.load: Start with p = 0.
            | p = run.scratch()
            | run.set(p, 0.0)                                                            -> Combine
            | return p
        run.add(p, run.x, minus=y)  # p = e + x - y                                      -> Difference
        message = self.topology.compress(run, self.compressor, p)  # Q(p)
            | AllReduce.compress: Q(p), a message for each worker.
            | return run.compress(compressor, p, reduce=True)                            -> Keys, Quantize
        self.feedback.store(run, p, message)  # e = p - Q(p)
            | NoFeedback.store: Store nothing.
        received = self.topology.exchange(run, message)  # the messages of all workers, or their mean
            | AllReduce.exchange: The mean of all messages, as one message.
            | return run.reduce(message)                                                 -> First, Combined
        self.server.update(run, received)  # the server moves x
            | Mean.update: Move x to x - eta mean Q; the l2 term, if it is not in Q, multiplies x by 1 - eta l2 first.
            | run.add(run.x, received, scale=-run.eta_received)  # x = x - eta mean Q    -> Accumulate
    """
    if problem is None:
        shown = getattr(method, "py_func", method)
        known = inspect.isfunction(shown) or inspect.isclass(shown)
        require(known, "problem", None, "a problem, on which the method's step is shown", TypeError)
        print(textwrap.dedent(inspect.getsource(shown)), end="")
        return
    if workers is None:
        workers = 2 if getattr(method, "graph", None) is None else 8
    require(isinstance(t, int) and t >= 0, "t", t, "the number of a round, from 0 on")
    setup = prepare(method, problem, workers=workers, steps=_steps(method) * (t + 1), comm=comm)
    run = make_run(setup, Memory() if comm is None else Ranks(comm))
    if comm is None or comm.Get_rank() == 0:
        print("\n".join(_lines(run, t)))


def _steps(method: Any) -> int:
    """The steps of one round; `prepare` rejects what is not a method."""
    steps = getattr(method, "local_steps", 1)
    return max(1, steps) if isinstance(steps, int) else 1


def _lines(run: Run, t: int) -> list[str]:
    """The lines that `show` prints."""
    method = run.setup.method
    text = type(method).round
    file, tree = text.__code__.co_filename, _tree(*trace_calls(run, method.round, t))
    try:
        source, first = inspect.getsourcelines(text)
        below = {line.number: node for line, node in tree.items()}
    except OSError:  # typed at the prompt: the source is not available, but the operations are
        source, first = ["def round(self, run):\n"], 0
        below = {0: {name: inner for node in tree.values() for name, inner in node.items()}}
    header = f"def round({', '.join(inspect.signature(text).parameters)}):"  # without the types of the arguments
    rows = ", sparse rows" if run.sparse else ""
    found = [f"{type(method).__name__}, each line for all workers at once{rows}:"]
    for k, line in enumerate(textwrap.dedent("".join(source)).splitlines(), first):
        known = _statements(file).get(k)
        if known is not None and known.is_docstring():
            words = line.replace("``", "").replace('"""', "").strip()
            found += [f"    # {words}".rstrip()] if words or k < known.last else []
            continue
        found.append(header if line.startswith("def round(") else line)
        _write(below.get(k, {}), len(line) - len(line.lstrip()) + 4, found)
        if known is not None and known.ends(k) and k not in below:
            found[-1] = f"{found[-1]:<{WIDTH}} (not in round {t})"
    found[0] = found[0][:-1] + _factors(run, "\n".join(found))
    loop = next((loop for loop in LOOPS if loop.fits(run)), None)
    if loop is not None:
        found.append(f"In its place runs {loop.name}, with bit-identical results: {loop.test}.")
    return found


def _factors(run: Run, shown: str) -> str:
    """The factors of the step size in this run, if the lines mention them."""
    told = []
    for name in ("eta_sent", "eta_received", "local_l2"):
        number = getattr(run, name)
        constant = getattr(number, "constant", number)
        value = "eta" if number is run.eta else "a rate" if constant is None else f"{constant:g}"
        told += [f"{name} = {value}"] if f"run.{name}" in shown else []
    return f"; here {', '.join(told)}:" if told else ":"


# --- the code below a line --------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A statement of a function: its file, its last line (of an ``if`` or a loop: the last before the body)."""

    file: str
    number: int
    function: str


def _tree(operations: list[tuple], reached: list[tuple]) -> dict:
    """For each line, its calls: a tree of lines, with operations as leaves."""
    tree: dict = {}
    for stack in reached:
        _below(tree, stack)
    for stack, operation in operations:  # "": a line whose operation another one includes
        _below(tree, stack)[operation] = {}
    return tree


def _below(tree: dict, stack: tuple) -> dict:
    for file, number, function in stack:
        known = _statements(file).get(number)
        tree = tree.setdefault(Line(file, known.last if known else number, function), {})
    return tree


class Statement(NamedTuple):
    """A statement: its first and its last line (of an ``if`` or a loop: before the body), and the function it is in."""

    first: int
    last: int
    node: ast.stmt
    function: Any

    def is_docstring(self) -> bool:
        """Whether it is only a string."""
        return isinstance(self.node, ast.Expr) and isinstance(self.node.value, ast.Constant)

    def ends(self, line: int) -> bool:
        """Whether this is its last line, and it is not only a string."""
        return self.last == line and not isinstance(self.node, ast.FunctionDef)

    def names(self, context: type) -> set[str]:
        """The names that it loads or stores; empty for an ``if`` or a loop."""
        found = () if hasattr(self.node, "body") else ast.walk(self.node)
        return {part.id for part in found if isinstance(part, ast.Name) and isinstance(part.ctx, context)}


@functools.lru_cache(maxsize=64)
def _statements(file: str) -> dict[int, Statement]:
    """For each line of a file, the statement that it is a part of."""
    found: dict[int, Statement] = {}

    def visit(node: ast.AST, function: Any) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                body = getattr(child, "body", None)
                last = max(child.lineno, body[0].lineno - 1) if body else child.end_lineno or child.lineno
                made = Statement(child.lineno, last, child, function)
                found.update(dict.fromkeys(range(child.lineno, last + 1), made))
            visit(child, child if isinstance(child, ast.FunctionDef) else function)

    with contextlib.suppress(SyntaxError):  # such as a cell of a notebook with a command for IPython
        visit(ast.parse("".join(linecache.getlines(file))), None)
    return found


def _relevant(node: dict) -> dict:
    """The lines that call operations, that return something, or that define a name used in one of these."""
    found: dict = {}
    used: set[str] = set()
    for line, inner in reversed(node.items()):
        if isinstance(line, str):
            found[line] = inner
            continue
        known, inner = _statements(line.file).get(line.number), _relevant(inner)
        defines = known is not None and bool(known.names(ast.Store) & used)
        returns = known is not None and isinstance(known.node, ast.Return) and known.node.value is not None
        if inner or defines or returns:
            found[line] = inner
            used |= known.names(ast.Load) if known else set()
    return dict(reversed(found.items()))


def _write(node: dict, indent: int, found: list[str]) -> None:
    """Append the lines below a line; operations go on its right."""
    operations = [name for name in node if isinstance(name, str) and name]
    if operations:
        found[-1] = f"{found[-1]:<{WIDTH}} -> {', '.join(operations)}"
    bar, titles, relevant = " " * indent + "| ", set(), _relevant(node)
    for line, inner in node.items():
        if isinstance(line, str):
            continue
        if line.function not in titles:
            titles.add(line.function)
            found.append(bar + _title(line))
        if line in relevant:
            found.extend(bar + text for text in _source(line))
            _write(inner, indent + 4, found)


def _title(line: Line) -> str:
    """The function that a line is in, and the first line of its docstring."""
    known = _statements(line.file).get(line.number)
    function = known and (known.node if isinstance(known.node, ast.FunctionDef) else known.function)
    about = (function and ast.get_docstring(function)) or ""
    return f"{line.function.rpartition('<locals>.')[2]}: {about.partition(chr(10))[0]}".rstrip()


def _source(line: Line) -> list[str]:
    """A statement in one line, below the comments above it."""
    known = _statements(line.file).get(line.number)
    first = above = known.first if known else line.number
    while linecache.getline(line.file, above - 1).lstrip().startswith("#"):
        above -= 1
    read = [linecache.getline(line.file, number).strip() for number in range(above, line.number + 1)]
    return [*read[: first - above], " ".join(read[first - above :])]
