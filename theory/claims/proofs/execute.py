"""The package's own formulas, run on exact numbers: fractions, or symbols.

The source of a formula is compiled once more: its literals become fractions, a quotient or a power of integers stays
exact, and the functions that it calls are compiled in the same way.  What the decorator checks of the arguments is left
out, as a symbol has no value; what the body itself requires is evaluated with symbols, too.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...bounds.closed_form import told


class Unproved(ArithmeticError):
    """What cannot be computed exactly, or is not true."""


class NoExactForm(Unproved, AttributeError):
    """A function of a module that has no exact form here."""


class Change(NamedTuple):
    """A wrong formula: a piece of its source, and what stands there instead."""

    formula: str
    old: str
    new: str


def _exact(number):
    """A number without rounding: of a float, the fraction that it is."""
    return Fraction(number) if isinstance(number, float) and math.isfinite(number) else number


def _literal(text: str):
    """The decimal number that stands in a source."""
    return Fraction(text) if math.isfinite(float(text)) else float(text)


def _divide(a, b):
    return Fraction(a) / b if isinstance(a, int) else a / b


def _power(base, exponent):
    """A power with an integer or half-integer exponent."""
    exponent = _exact(exponent)
    if hasattr(exponent, "raise_"):
        return exponent.raise_(base)
    if not isinstance(exponent, (int, Fraction)) or 2 % getattr(exponent, "denominator", 1):
        raise Unproved(f"a power with the exponent {exponent}")
    half = int(2 * exponent)
    base = Fraction(base) if isinstance(base, (int, float)) else base
    return base ** (half // 2) if half % 2 == 0 else _root(base) ** half


def _root(number):
    """The square root of a square."""
    if hasattr(number, "root"):
        return number.root()
    number = Fraction(number)
    found = Fraction(math.isqrt(number.numerator), math.isqrt(number.denominator)) if number >= 0 else None
    if found is None:
        raise Unproved(f"the square root of {number} is not real")
    return found if found * found == number else Surd(number)


class Surd:
    """The square root of a rational number that is none; it can be compared with a positive symbol."""

    def __init__(self, square: Fraction):
        self.square = square

    def __ge__(self, other):
        return other > 0 and other * other <= self.square

    def __le__(self, other):
        return other > 0 and other * other >= self.square

    __gt__, __lt__ = __ge__, __le__


def _largest(*values):
    """The maximum; of symbols whose order is not known everywhere, one after another."""
    values = tuple(values[0]) if len(values) == 1 else values
    found = values[0]
    for one in values[1:]:
        found = (one if hasattr(one, "larger") else found).larger(found) if _symbolic(found, one) else max(found, one)
    return found


def _symbolic(*values) -> bool:
    return any(hasattr(one, "larger") for one in values)


def smallest(*values):
    """The minimum, likewise."""
    values = tuple(values[0]) if len(values) == 1 else values
    return -_largest(*(-one for one in values))


def _floor(v):
    """The largest integer below a number: of a symbol, that at one point, recorded as a condition."""
    if np.ndim(v):
        return np.array([_floor(one) for one in v], dtype=object)
    found = math.floor(getattr(v, "at", v))
    if not (v >= found and v < found + 1):
        raise Unproved(f"floor of {v}")
    return found


def _number(value):
    """``float`` and ``int`` of an exact number: itself."""
    return float(value) if isinstance(value, str) else _exact(value)


def _is_integer(value) -> bool:
    """Whether a number is whole; a symbol may be, and what is proved holds for all numbers."""
    return getattr(value, "denominator", 1) == 1


def _require(good, name: str, value, allowed: str) -> None:
    if not good:
        raise Unproved(f"{name}: got {value}, allowed: {allowed}")


def _positive(**values) -> None:
    for name, value in values.items():
        _require(value > 0, name, value, "a number above 0")


def _non_negative(**values) -> None:
    for name, value in values.items():
        _require(value >= 0, name, value, "a number, at least 0")


def _whole(low, **values) -> None:
    for name, value in values.items():
        _require(value >= low, name, value, f"at least {low}")


class _Names:
    """A module of which some functions are replaced; what is neither replaced nor exact is refused."""

    def __init__(self, name: str, **known):
        self._name = name
        vars(self).update(known)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NoExactForm(f"{self._name}.{name} has no exact form here")


_MATH = {"sqrt": _root, "inf": math.inf, "fsum": sum, "isfinite": lambda x: True}
_NUMPY = _Names(
    "numpy",
    abs=np.abs,
    asarray=lambda v, *_: np.asarray(v, object),
    atleast_1d=lambda v: np.atleast_1d(np.asarray(v, object)),
    square=lambda v: v * v,
    sum=lambda v, *axis: np.sum(v, *axis),
    all=lambda v: bool(np.all(v)),
    sort=lambda v: np.array(sorted(v), dtype=object),
    isfinite=lambda v: True,
    size=np.size,
    ones=lambda shape: np.ones(shape, object),
    zeros=lambda shape: np.zeros(shape, object),
    empty=lambda shape: np.zeros(shape, object),
    broadcast_to=np.broadcast_to,
    dot=np.dot,
    inf=math.inf,
    floor=_floor,
    minimum=lambda a, v: np.array([smallest(a, one) for one in v], dtype=object),
    linalg=_Names("numpy.linalg", norm=lambda v: _root(sum(v * v))),
)
REPLACED: dict[Any, Any] = {
    "float": _number,
    "int": _number,
    "max": _largest,
    "min": smallest,
    "require": _require,
    "positive": _positive,
    "non_negative": _non_negative,
    "whole": _whole,
    "number": lambda *_, **__: None,
}


SPEAK = ("require", "below_frontier")  # their text is for an error, and may have no exact form


class _Exactly(ast.NodeTransformer):
    """Literals, quotients and powers without rounding; no annotations."""

    def visit_Constant(self, node):
        if isinstance(node.value, float):
            return ast.Call(ast.Name("_literal", ast.Load()), [ast.Constant(repr(node.value))], [])
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        name = {ast.Div: "_divide", ast.Pow: "_power"}.get(type(node.op))
        return ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], []) if name else node

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in SPEAK:
            node.args = [ast.Constant("a domain") if isinstance(one, ast.JoinedStr) else one for one in node.args]
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "is_integer":
            return ast.Call(ast.Name("_is_integer", ast.Load()), [node.func.value], [])
        return node

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Div) and isinstance(node.target, ast.Name):
            quotient = ast.Call(ast.Name("_divide", ast.Load()), [ast.Name(node.target.id, ast.Load()), node.value], [])
            return ast.Assign([node.target], quotient)
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            argument.annotation = None
        return node

    def visit_FormattedValue(self, node):
        self.generic_visit(node)
        return ast.FormattedValue(node.value, ord("s"), None)  # fractions and symbols have no such formats


HELPERS = {"_literal": _literal, "_divide": _divide, "_power": _power, "_is_integer": _is_integer}


def evaluate(text: str, names: dict[str, Any]):
    """The value of an expression such as ``"1/2"`` or ``"z**2"``, exactly.

    Examples
    --------
    >>> evaluate("z**2/3", {"z": Fraction(1, 2)})
    Fraction(1, 12)
    """
    tree = ast.fix_missing_locations(_Exactly().visit(ast.parse(text, mode="eval")))
    return eval(compile(tree, "<exact>", "eval"), HELPERS | {"inf": math.inf, "sqrt": _root}, names)


class Formulas:
    """Exact forms of the package's functions, as attributes and by call.

    Parameters
    ----------
    module : module
        Whose functions are attributes: `theory.bounds`.
    changes : sequence of Change
        Wrong formulas: each must match one place of a source.

    Attributes
    ----------
    given : dict
        What stands in place of a function, or of the number ``pi``: a symbol for what has no exact form.

    Examples
    --------
    >>> from theory import bounds
    >>> Formulas(bounds).exact_feedback_rate(Fraction(24, 25), Fraction(2))
    Fraction(9, 25)
    """

    def __init__(self, module: ModuleType, changes: Sequence[Change] = ()):
        self._module, self._changes = module, tuple(changes)
        self._known: dict[Callable, Any] = {}
        self._used: set[Change] = set()
        self.given: dict[str, Any] = {}

    def __getattr__(self, name: str):
        return self.given[name] if name in self.given else self(getattr(self._module, name))

    def __call__(self, function: Callable) -> Callable:
        """The exact form of one function."""
        plain = inspect.unwrap(function)
        if plain not in self._known:
            self._known[plain] = None  # a name that is resolved when it is called, for functions that call each other
            self._known[plain] = self._compiled(plain)
        return self._known[plain]

    def unused(self) -> list[Change]:
        """The changes whose formula was never run."""
        return [change for change in self._changes if change not in self._used]

    def _compiled(self, function: FunctionType) -> Callable:
        source = textwrap.dedent(inspect.getsource(function))
        for change in self._changes:
            if change.formula == function.__name__:
                head, body = _parts(source)
                if body.count(change.old) != 1:
                    raise ValueError(f"change: got {change.old!r}, allowed: a piece that {change.formula} has once")
                source = head + body.replace(change.old, change.new)
                self._used.add(change)
        tree = ast.parse(source)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        tree = ast.fix_missing_locations(_Exactly().visit(tree))
        space: dict[str, Any] = dict(HELPERS)
        for name in names & (function.__globals__.keys() | REPLACED.keys()):
            space[name] = REPLACED.get(name) or self._converted(function.__globals__[name])
        exec(compile(tree, f"<exact {function.__name__}>", "exec", dont_inherit=True), space)
        allowed = getattr(function.__globals__.get(function.__name__), "domain", None)
        return space[function.__name__] if allowed is None else _checked(space[function.__name__], allowed)

    def _converted(self, value):
        if value is math:
            return _Names("math", **_MATH, **{name: one for name, one in self.given.items() if name == "pi"})
        if value is np:
            return _NUMPY
        if value is self._module:
            return self
        if isinstance(value, dict):
            return {key: self._converted(one) for key, one in value.items()}
        if isinstance(value, FunctionType) and value.__module__.startswith("theory."):
            return self.given.get(value.__name__) or (lambda *given, **named: self(value)(*given, **named))
        return _exact(value)


def _checked(exact: Callable, allowed: Any) -> Callable:
    """The exact form, whose arguments are in the domain of the formula where all of them are numbers."""

    def call(*given, **named):
        if all(isinstance(one, (int, Fraction)) for one in (*given, *named.values())):
            try:
                allowed.check(given, named)
            except ValueError as error:
                raise Unproved(str(error)) from None
        return told(exact.__name__, given, named, exact(*given, **named))

    return call


def _parts(source: str) -> tuple[str, str]:
    """A function's source up to the end of its docstring, and the rest."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    end = first.end_lineno if documented else first.lineno - 1
    lines = source.splitlines(keepends=True)
    return "".join(lines[:end]), "".join(lines[end:])
