"""Which branches of its formula a claim evaluates: ways of a condition, and which argument a minimum or maximum takes.

A formula's source is compiled once more, with a recorder in each condition, and runs so while the claim is measured.
So are the functions that it calls; the private ones of its package count as a part of it.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from ..bounds.closed_form import total

__all__ = ["branches", "compiled", "definition", "parts", "picks", "watched", "ways_of"]

RECORDER = "__way__"  # a name in the globals of a formula while it is watched


def _plain(of: Callable | None) -> FunctionType | None:
    """The function below the checks of a formula and a `functools.partial`."""
    function = inspect.unwrap(getattr(of, "func", of)) if of is not None else None
    return function if isinstance(function, FunctionType) else None


def _names(code: CodeType) -> set[str]:
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def parts(of: Callable | None) -> list[FunctionType]:
    """The formula, and all functions of its package that it calls."""
    found: list[FunctionType] = []
    todo = [] if _plain(of) is None else [_plain(of)]
    while todo:
        function = todo.pop()
        if function is not None and function not in found and definition(function) is not None:
            found.append(function)
            todo += _named(function, _names(function.__code__))
    return found


def _named(function: FunctionType, names: Iterable[str]) -> list[FunctionType]:
    """The functions of its package among these names."""
    given = (function.__globals__.get(name) for name in sorted(names))
    plain = (inspect.unwrap(one) for one in given if callable(one))
    home = function.__module__.rpartition(".")[0]
    functions = [one for one in plain if isinstance(one, FunctionType) and one.__module__ != total.__module__]
    return [one for one in functions if one.__module__.rpartition(".")[0] == home]


@functools.cache
def definition(function: FunctionType) -> ast.FunctionDef | None:
    """The definition, without its decorators, at its place in the file; None if the source is not at hand."""
    if function.__closure__:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    ast.increment_lineno(definition, function.__code__.co_firstlineno - 1)
    definition.decorator_list = []
    return definition


def picks(node: ast.AST) -> bool:
    """Whether it is a minimum or maximum of several arguments."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("min", "max")
        and len(node.args) > 1
        and not node.keywords
        and not any(isinstance(one, ast.Starred) for one in node.args)
    )


def _said(test: ast.AST) -> str:
    return " ".join(ast.unparse(test).split())


def ways_of(name: str, node: ast.AST) -> list[str]:
    """What the recorder writes at a node, by the number of the way."""
    if isinstance(node, ast.Call):
        return [f"{name}: {_said(node)} takes {_said(one)}" for one in node.args]
    test = _said(node.test)  # type: ignore[attr-defined]
    return [f"{name}: not {test}" if " " not in test else f"{name}: not ({test})", f"{name}: {test}"]


# --- all branches -----------------------------------------------------------------------------------------------------


def branches(of: Callable | None, every: bool = False, called: bool = False) -> list[str]:
    """The branches of a formula; of one with several forms, those of the form that ``of`` fixes.

    Parameters
    ----------
    of : callable or None
        The formula, or a `functools.partial` of it.
    every : bool
        Those of its other forms, too.
    called : bool
        Those of the formulas that it calls, too.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from theory import bounds
    >>> branches(bounds.normal_median_variance)[:2]
    ['normal_median_variance: not (workers == math.inf)', 'normal_median_variance: workers == math.inf']
    """
    found: dict[str, None] = {}
    first, done = _plain(of), list[FunctionType]()
    todo = [(first, {} if every or first is None else _words(of, first))]
    while todo:
        function, words = todo.pop(0)
        tree = definition(function) if function is not None and function not in done else None
        if function is not None and tree is not None:
            done.append(function)
            names: set[str] = set()
            found.update(dict.fromkeys(_listed(function.__name__, tree.body, words, names)))
            for other in _named(function, (name for name in names if called or name.startswith("_"))):
                known = inspect.signature(other).parameters  # a form is passed on under its name
                todo.append((other, {name: value for name, value in words.items() if name in known}))
    return list(found)


def _words(of: Callable | None, function: FunctionType) -> dict[str, Any]:
    """The arguments that are words, such as the form, or that are left out, and their values."""
    given = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    given |= getattr(of, "keywords", {})
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _decided(test: ast.AST, words: Mapping[str, Any]) -> bool | None:
    """The value of a condition on words alone; None if it depends on numbers."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    if not names or not names <= set(words):
        return None
    return bool(eval(compile(ast.Expression(test), "<words>", "eval"), {}, dict(words)))  # type: ignore[arg-type]


def _listed(name: str, nodes: Any, words: Mapping[str, Any], names: set[str]) -> Iterator[str]:
    """Branches in the order of the source, and the names that are used; nothing from what words rule out."""
    for node in nodes:
        if isinstance(node, (ast.If, ast.IfExp)):
            decided = _decided(node.test, words)
            sides = (node.orelse, node.body)
            if decided is None:
                yield from ways_of(name, node)
                yield from _listed(name, [node.test], words, names)
            for way in (0, 1):
                if decided in (None, bool(way)):
                    side = sides[way]
                    yield from _listed(name, side if isinstance(side, list) else [side], words, names)
            if decided and isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Return, ast.Raise)):
                return
            continue
        if isinstance(node, ast.Name):
            names.add(node.id)
        if picks(node):
            yield from ways_of(name, node)
        yield from _listed(name, ast.iter_child_nodes(node), words, names)


# --- those that are taken ---------------------------------------------------------------------------------------------


class _Recording(ast.NodeTransformer):
    """Conditions, minima and maxima that tell which way they went."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _recorded(self, node: Any, value: ast.expr, take: str) -> ast.Call:
        ways = ast.Tuple([ast.Constant(way) for way in ways_of(self.name, node)], ast.Load())
        return ast.Call(ast.Name(RECORDER, ast.Load()), [ways, ast.Constant(take), value], [])

    def _condition(self, node: Any) -> Any:
        asked = self._recorded(node, node.test, "")
        self.generic_visit(node)
        asked.args[2] = node.test
        node.test = asked
        return node

    visit_If = visit_IfExp = _condition

    def visit_Call(self, node: ast.Call) -> Any:
        if not picks(node):
            return self.generic_visit(node)
        assert isinstance(node.func, ast.Name)
        asked = self._recorded(node, node, node.func.id)
        self.generic_visit(node)
        asked.args[2] = ast.Tuple(node.args, ast.Load())
        return asked


@contextlib.contextmanager
def watched(of: Callable | None) -> Iterator[set[str]]:
    """Watch a formula: the branches that are taken meanwhile.

    Parameters
    ----------
    of : callable or None
        The formula, or a `functools.partial` of it.

    Yields
    ------
    set of str
        Some of `branches`.

    Examples
    --------
    >>> from theory import bounds
    >>> with watched(bounds.normal_median_variance) as taken:
    ...     found = bounds.normal_median_variance(3)
    >>> "normal_median_variance: not (workers == math.inf)" in taken
    True
    """
    taken: set[str] = set()

    def way(ways: tuple[str, ...], take: str, value: Any) -> Any:
        if not take:
            taken.add(ways[bool(value)])
            return value
        found = min(value) if take == "min" else max(value)
        taken.add(ways[next(number for number, one in enumerate(value) if one is found)])
        return found

    changed: list[tuple[FunctionType, CodeType]] = []
    try:
        for function in parts(of):
            changed.append((function, function.__code__))
            function.__globals__[RECORDER] = way
            function.__code__ = _recording(function)
        yield taken
    finally:
        for function, code in changed:
            function.__code__ = code
            function.__globals__.pop(RECORDER, None)


@functools.cache
def _recording(function: FunctionType) -> CodeType:
    """The code of a function whose conditions tell which way they went."""
    tree = definition(function)
    assert tree is not None
    return compiled(function, _Recording(function.__name__).visit(copy.deepcopy(tree)))


def compiled(function: FunctionType, tree: ast.FunctionDef) -> CodeType:
    """The code of another definition of a function, in its place."""
    original, copied = function.__code__, ast.Module([tree], [])
    flags = original.co_flags & __future__.annotations.compiler_flag
    space = compile(ast.fix_missing_locations(copied), original.co_filename, "exec", flags, dont_inherit=True)
    code = next(one for one in space.co_consts if isinstance(one, CodeType) and one.co_name == original.co_name)
    return code.replace(co_firstlineno=original.co_firstlineno)
