"""Domains of arguments: conditions that are checked before a formula runs, and the symbols that formulas share.

A condition is a comparison in Python's syntax, such as ``"0 < delta <= 1"`` or ``"1 <= k <= d"``; its subject is the
first operand that is a bare name.  ``"one of first, second"`` requires exactly one of two optional arguments. For an
array (``ArrayLike``) a condition must hold for every entry, and all entries must be finite; ``vector(v)``,
``increasing(v)``, ``some(v)`` and ``power_of_two(d)`` are further conditions. A symbol's own condition (``SYMBOLS``)
holds wherever the symbol is a numeric argument, unless the formula has a condition with the same subject. Annotations
say which arguments are integers.  A number is finite unless one of its conditions names ``inf``, as ``1 <= batch_bound
<= inf`` does. Where an argument is an array, what is computed of it is summed, so that a number is one number.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core import require

# --- Domains of arguments --------------------------------------------------------------------------------------------

ROUNDING = 1e-12  # a limit that is computed from other arguments may be missed by rounding errors

KNOWN: dict[str, Any] = {
    "inf": math.inf,
    "pi": math.pi,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "abs": abs,
    "max": max,
    "min": min,
    "sum": np.sum,
    "count": np.size,
    "ndim": np.ndim,
    "shape": np.shape,
    "largest": lambda v: np.abs(v).max(initial=0.0),
    "vector": lambda v: np.ndim(v) == 1 and np.size(v) > 0,
    "increasing": lambda v: np.ndim(v) == 1 and np.size(v) > 0 and np.all(np.diff(v) > 0),
    "some": np.any,
    "power_of_two": lambda n: int(n) & (int(n) - 1) == 0,
}

PROPERTIES: dict[str, str] = {
    "vector": "a vector of at least one number",
    "increasing": "increasing numbers",
    "some": "numbers, not all 0",
    "power_of_two": "a power of two",
}

WORDS: dict[type, str] = {ast.Gt: "above", ast.GtE: "at least", ast.Lt: "below", ast.LtE: "at most"}

FINITE = "abs({}) < inf"

TURNED: dict[type, type] = {ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Lt: ast.Gt, ast.LtE: ast.GtE}

COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.In: lambda a, b: a in b,
}


class Limit(NamedTuple):
    """A comparison of the subject with an expression: the kind of comparison and the expression."""

    operator: type
    text: str
    code: Any
    computed: bool

    def said(self, values: Mapping[str, Any] | None) -> str:
        """The limit in words, with its value where it depends on other arguments."""
        shown = self.text
        if values is not None and self.computed:
            shown += f" = {float(eval(self.code, KNOWN, dict(values))):g}"
        return shown


class Condition(NamedTuple):
    """A condition on the arguments.

    Attributes
    ----------
    text : str
        As it was written.
    subject : str
        The argument that an error names.
    names : frozenset of str
        All names in it.
    limits : tuple
        Comparisons of the subject with expressions; empty if the condition has another form.
    code : code object
        To be evaluated with the arguments.
    """

    text: str
    subject: str
    names: frozenset[str]
    limits: tuple[Limit, ...]
    code: Any

    @property
    def words(self) -> tuple[Any, ...]:
        """The values that the subject may have, if they are listed."""
        listed = self.limits[0] if self.limits and self.limits[0].operator is ast.In else None
        return tuple(eval(listed.code, KNOWN)) if listed else ()

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it holds; for arrays, whether it holds for every entry."""
        if not self.limits:
            return bool(np.all(eval(self.code, KNOWN, dict(values))))
        found = values[self.subject]
        for limit in self.limits:
            edge = eval(limit.code, KNOWN, dict(values))
            if limit.computed and limit.operator in (ast.LtE, ast.GtE):
                edge = edge + (ROUNDING if limit.operator is ast.LtE else -ROUNDING) * abs(edge)
            if not np.all(COMPARE[limit.operator](found, edge)):
                return False
        return True

    def said(self, integer: bool = False, values: Mapping[str, Any] | None = None, many: bool = False) -> str:
        """The condition in words: "a number in (0, 1]", "an integer, at least 1"; of ``many``, "numbers above 0"."""
        what = "numbers" if many else "an integer" if integer else "a number"
        if self.text == FINITE.format(self.subject):
            return "a finite number"
        if self.text.partition("(")[0] in PROPERTIES:
            return PROPERTIES[self.text.partition("(")[0]]
        if self.text.startswith("one of "):
            return f"exactly {self.text.replace(', ', ' and ')}"
        if not self.limits:
            return f"{what} such that {self.text}"
        first, *rest = self.limits
        if first.operator is ast.In:
            *most, last = (part.strip() for part in first.text.strip("()").split(",") if part.strip())
            return f"{', '.join(most)} or {last}" if most else last
        if rest:
            low, high = (first, rest[0]) if first.operator in (ast.Gt, ast.GtE) else (rest[0], first)
            if integer and (low.operator, high.operator) == (ast.GtE, ast.LtE):
                return f"an integer from {low.said(values)} to {high.said(values)}"
            ends = ("(" if low.operator is ast.Gt else "["), (")" if high.operator is ast.Lt else "]")
            return f"{what} in {ends[0]}{low.said(values)}, {high.said(values)}{ends[1]}"
        if first.operator in (ast.Eq, ast.NotEq):
            return f"{what} that is {'not ' if first.operator is ast.NotEq else ''}{first.said(values)}"
        comma = "," if first.operator in (ast.GtE, ast.LtE) else ""
        return f"{what}{comma} {WORDS[first.operator]} {first.said(values)}"


@functools.cache
def condition(text: str) -> Condition:
    """The condition that a comparison states.

    Examples
    --------
    >>> one = condition("1 <= k <= d")
    >>> one.subject, one.said(integer=True, values={"d": 10}), one.holds({"k": 11, "d": 10})
    ('k', 'an integer from 1 to d = 10', False)
    """
    if text.startswith("one of "):
        given = text.removeprefix("one of ").split(", ")
        count = " + ".join(f"({name} is not None)" for name in given)
        return Condition(text, given[0], frozenset(), (), compile(f"{count} == 1", "<condition>", "eval"))
    tree = ast.parse(text, mode="eval")
    compare = tree.body
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    known = called | {"inf", "pi"}  # an argument may have the name of a function, such as shape
    names = frozenset(used) - known
    code = compile(tree, f"<condition {text}>", "eval")
    operands = [compare.left, *compare.comparators] if isinstance(compare, ast.Compare) else []
    bare = [number for number, one in enumerate(operands) if isinstance(one, ast.Name) and one.id not in known]
    if not bare:
        if not names:
            raise TypeError(f"condition: got {text!r}, allowed: one that names an argument")
        return Condition(text, next(name for name in used if name in names), names, (), code)
    at = bare[0]
    if len(operands) > 3 or (len(operands) == 3 and at != 1):  # a chain of arguments: 0 < first <= second
        return Condition(text, typing.cast(ast.Name, operands[at]).id, names, (), code)
    limits = []
    for number, operator in enumerate(typing.cast(ast.Compare, compare).ops):
        other = operands[number + 1] if number == at else operands[number]
        kind = type(operator) if number == at else TURNED.get(type(operator), type(operator))
        shown = ast.unparse(other)
        depends = any(isinstance(node, ast.Name) and node.id not in known for node in ast.walk(other))
        limits.append(Limit(kind, shown, compile(ast.Expression(other), "<limit>", "eval"), depends))
    limits.sort(key=lambda limit: limit.operator not in (ast.Gt, ast.GtE))
    return Condition(text, typing.cast(ast.Name, operands[at]).id, names, tuple(limits), code)


class Argument(NamedTuple):
    """An argument of a formula: its type and its allowed values, for the check and for the documentation."""

    name: str
    kind: str
    optional: bool
    conditions: tuple[Condition, ...]

    @property
    def integer(self) -> bool:
        """Whether it must be an integer."""
        return self.kind.split(" | ")[0] == "int"

    @property
    def array(self) -> bool:
        """Whether it is an array or array-like."""
        return self.kind.startswith("ArrayLike")

    @property
    def number(self) -> bool:
        """Whether it must be a number."""
        return self.kind.split(" | ")[0] in ("int", "float")

    def said(self) -> str:
        """The allowed values in words, such as ``In (0, 1].``."""
        own = [one for one in self.conditions if one.text != FINITE.format(self.name)]
        said = "; ".join(one.said(self.integer, many=self.array) for one in own)
        short = re.sub(r"(^|; )(?:a number|an integer|numbers),? ", r"\1", said)
        return f"{short[:1].upper()}{short[1:]}." if short else ""


class Domain(NamedTuple):
    """The arguments of a formula and their allowed values."""

    arguments: tuple[Argument, ...]
    signature: inspect.Signature
    quick: Callable[..., Any]

    def check(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> inspect.BoundArguments | None:
        """Raise ValueError for the first argument outside its domain; TypeError as Python does for a wrong call.

        Returns the arguments with Python's numbers in place of NumPy's and integers in place of whole floats; None if
        nothing has to be converted.
        """
        try:
            if self.quick(*arguments, **named) is True:
                return None
        except Exception:  # arrays, strings, None: looked at one by one
            pass
        try:
            bound = self.signature.bind(*arguments, **named)
        except TypeError:  # a missing or unknown argument: Python's own message, of the call itself, is clear
            return None
        bound.apply_defaults()
        values = dict(bound.arguments)
        alone = any(one.array for one in self.arguments)  # what is computed of an array is summed: of one number alone
        for argument in self.arguments:
            value = values[argument.name]
            if value is None and argument.optional:
                continue
            if argument.number:
                self._number(argument, value, alone)
            elif argument.array:
                values[argument.name] = self._array(argument, value)
        each = [(argument, one) for argument in self.arguments for one in argument.conditions]
        absent = {one.name for one in self.arguments if one.optional and values[one.name] is None}
        # those of one argument alone come first
        for argument, one in sorted(each, key=lambda pair: len(pair[1].names)):
            given = not one.names & absent
            if given and not one.holds(values):
                allowed = one.said(argument.integer, values, argument.array)
                require(False, argument.name, bound.arguments[argument.name], allowed)
        for argument in self.arguments:
            if argument.number and np.ndim(value := bound.arguments[argument.name]) == 0 and value is not None:
                value = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
                bound.arguments[argument.name] = int(value) if argument.integer else value
        return bound

    @staticmethod
    def _array(argument: Argument, value: Any) -> np.ndarray:
        try:
            found = np.asarray(value, float)
        except (TypeError, ValueError):
            found = np.array(math.nan)
        require(bool(np.isfinite(found).all()), argument.name, value, "finite numbers")
        return found

    @staticmethod
    def _number(argument: Argument, value: Any, alone: bool) -> None:
        what = "an integer" if argument.integer else "a number"
        allowed = next((one.said(argument.integer) for one in argument.conditions if one.limits), what)
        several = isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and (value.ndim == 0 or not alone)
        scalar = (isinstance(value, Real) and not isinstance(value, bool)) or several
        require(scalar, argument.name, value, allowed)
        if argument.integer and not isinstance(value, Integral):
            number = np.asarray(value, float)
            whole = np.isfinite(number).all() and np.all(number % 1 == 0)
            require(bool(whole), argument.name, value, allowed)


def domain(function: Callable[..., Any], given: Sequence[str]) -> Domain:
    """The domain of a formula, from its own conditions, those of the common symbols, and the types in its signature."""
    signature = inspect.signature(function)
    own: dict[str, list[Condition]] = {}
    replaced = set()
    for one in map(condition, given):
        if one.subject not in signature.parameters:
            raise TypeError(f"{function.__name__}: the condition {one.text!r} is about none of its arguments")
        own.setdefault(one.subject, []).append(one)
        replaced |= {one.subject} if one.limits else set()
    arguments = []
    for name, parameter in signature.parameters.items():
        noted = parameter.annotation  # a string, or a class where annotations are not postponed
        kind = "" if noted is parameter.empty else noted.__name__ if isinstance(noted, type) else str(noted)
        kind = "ArrayLike" if noted == ArrayLike else kind
        conditions = own.get(name, [])
        common = SYMBOLS[name].condition if name in SYMBOLS and kind.startswith(("int", "float")) else ""
        if common and name not in replaced:
            conditions = [condition(common), *conditions]
        if kind.startswith("float") and not any(re.search(r"\binf\b", one.text) for one in conditions):
            conditions = [*conditions, condition(FINITE.format(name))]
        optional = parameter.default is None or "None" in kind
        arguments.append(Argument(name, kind, optional, tuple(conditions)))
    return Domain(tuple(arguments), signature, _quick(signature, arguments))


def _quick(signature: inspect.Signature, arguments: Sequence[Argument]) -> Callable[..., Any]:
    """One expression that is True for numbers well inside the domain, and false or raises for all else."""
    tests, optional = [], any(one.optional for one in arguments)
    for one in arguments:
        if one.number and not one.optional:
            tests.append(f"type({one.name}) {'is int' if one.integer else 'in (int, float)'}")
        tests += [f"({each.text})" for each in one.conditions if not optional]
    tests += ["False"] if optional or any(one.array for one in arguments) else []
    bare = [
        p.replace(annotation=p.empty, default=p.default if p.default is p.empty else 0)
        for p in signature.parameters.values()
    ]
    parameters = str(inspect.Signature(bare))[1:-1]
    made = eval(f"lambda {parameters}: {' and '.join(tests) or 'True'}", dict(KNOWN))
    made.__defaults__ = tuple(
        p.default for p in signature.parameters.values() if p.default is not p.empty and p.kind is not p.KEYWORD_ONLY
    )
    made.__kwdefaults__ = {
        p.name: p.default
        for p in signature.parameters.values()
        if p.default is not p.empty and p.kind is p.KEYWORD_ONLY
    }
    return made


# --- The symbols that formulas share ---------------------------------------------------------------------------------


class Symbol(NamedTuple):
    """A common argument: what it means, and its domain."""

    meaning: str
    condition: str


SYMBOLS = {
    "batch": Symbol("B", "batch >= 1"),
    "batch_bound": Symbol("B_D", "1 <= batch_bound <= inf"),
    "beta": Symbol("Share of the memory that is not fed back", "0 <= beta < 1"),
    "d": Symbol("Dimension", "d >= 1"),
    "delta": Symbol("Contraction: error <= (1 - delta) ||v||^2", "0 < delta <= 1"),
    "distance": Symbol("||x_0 - x*||^2 (squared)", "distance >= 0"),
    "gap": Symbol("f(x_0) - f*", "gap >= 0"),
    "kappa": Symbol("L/mu", "kappa >= 1"),
    "lipschitz": Symbol("L", "lipschitz > 0"),
    "local_steps": Symbol("H", "local_steps >= 1"),
    "mu": Symbol("", "mu > 0"),
    "omega": Symbol("Variance factor: E||Q(v) - v||^2 <= omega ||v||^2", "omega >= 0"),
    "p": Symbol("", "0 < p <= 1"),
    "residual": Symbol("1 - delta of the gradient compressor", "0 <= residual < 1"),
    "s": Symbol("Number of levels above zero", "s >= 1"),
    "second_moment": Symbol("M^2", "second_moment >= 0"),
    "step": Symbol("gamma", "step > 0"),
    "steps": Symbol("T", "steps >= 1"),
    "theta": Symbol("omega of the error compressor", "theta >= 0"),
    "v": Symbol("Finite numbers", ""),
    "variance": Symbol("sigma^2", "variance >= 0"),
    "workers": Symbol("N", "workers >= 1"),
}
