"""What all closed forms share: values that know their formula and its summands, and the rest of the docstring.

``@formula`` adds to a docstring what would be said everywhere: the common symbols, what is returned, what is raised.
Its values are numbers; that they remember their summands lets a claim find out which wrong formulas it would notice.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

from ._domain import number

__all__ = ["Value", "formula", "total"]

F = TypeVar("F", bound=Callable[..., Any])


class Value(float):
    """A number with its origin: the formula, its summands, and the part that is not the formula's.

    Multiplication by a number and addition keep the origin; anything else gives an ordinary number.

    Examples
    --------
    >>> half = 0.5 * total(start=3.0, noise=1.0)
    >>> half, half.terms
    (2.0, {'start': 1.5, 'noise': 0.5})
    """

    __array_priority__ = -1.0  # above NumPy's numbers, which let this class multiply, and below its arrays
    __slots__ = ("formula", "rest", "terms")

    formula: str
    terms: dict[str, float]
    rest: float

    def __new__(cls, value: float, formula: str = "", terms: dict[str, float] | None = None, rest: float = 0.0):
        new = super().__new__(cls, value)
        new.formula, new.terms, new.rest = formula, terms or {}, rest
        return new

    def _times(self, factor):
        if not isinstance(factor, Real):
            return NotImplemented
        c = float(factor)
        return Value(float(self) * c, self.formula, {k: c * v for k, v in self.terms.items()}, c * self.rest)

    def _plus(self, other, sign: float = 1.0):
        if not isinstance(other, Real):
            return NotImplemented
        more, rest, terms = sign * float(other), self.rest, self.terms
        if isinstance(other, Value) and other.formula == self.formula:
            rest += sign * other.rest
            terms = {k: terms.get(k, 0.0) + sign * other.terms.get(k, 0.0) for k in {**terms, **other.terms}}
        else:
            rest += more
        return Value(float(self) + more, self.formula, terms, rest)

    def __mul__(self, factor):
        return self._times(factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor):
        return self._times(1.0 / divisor) if isinstance(divisor, Real) and divisor else float(self) / divisor

    def __neg__(self):
        return self._times(-1.0)

    def __add__(self, other):
        return self._plus(other)

    __radd__ = __add__

    def __sub__(self, other):
        return self._plus(other, -1.0)

    def __rsub__(self, other):
        return self._times(-1.0)._plus(other)

    # NumPy's integers leave everything to the other side, because of the priority

    def __lt__(self, other):
        return float(self) < other

    def __le__(self, other):
        return float(self) <= other

    def __gt__(self, other):
        return float(self) > other

    def __ge__(self, other):
        return float(self) >= other

    def __rtruediv__(self, other):
        return other / float(self)

    def __rpow__(self, other, modulo=None):
        return other ** float(self)

    def __reduce__(self):
        return float, (float(self),)

    def scaled(self, factor: float) -> float:
        """The number if the formula were ``factor`` times as large."""
        return self.rest + factor * (float(self) - self.rest)

    def without(self, term: str) -> float:
        """The number if one summand were forgotten."""
        return float(self) - self.terms[term]


def _plain(name: str, reflected: bool):
    """An operation that forgets the origin: NumPy's numbers leave it to this class, as they leave multiplication."""
    operation = getattr(operator, name)
    if reflected:
        return lambda self, other: operation(other, float(self))
    return lambda self, other: operation(float(self), other)


for _name in ("lt", "le", "gt", "ge", "eq", "ne", "pow", "floordiv", "mod"):
    setattr(Value, f"__{_name}__", _plain(_name, reflected=False))
for _name in ("truediv", "pow", "floordiv", "mod"):
    setattr(Value, f"__r{_name}__", _plain(_name, reflected=True))


def total(**terms: Any) -> Any:
    """The sum of summands that have names; of arrays, an array.

    Examples
    --------
    >>> total(start=3.0, noise=1.0)
    4.0
    """
    if any(np.ndim(term) for term in terms.values()):
        return functools.reduce(np.add, terms.values())
    numbers = {name: float(term) for name, term in terms.items()}
    value = 0.0
    for term in numbers.values():
        value += term
    return Value(value, "", numbers)


# --- docstrings -------------------------------------------------------------------------------------------------------

SYMBOLS = {
    "batch": ("int", "B, at least 1."),
    "beta": ("float", "Share of the memory that is not fed back, in [0, 1)."),
    "d": ("int", "Dimension, at least 1."),
    "delta": ("float", "In (0, 1]."),
    "gap": ("float", "f(x_0) - f*, at least 0."),
    "lipschitz": ("float", "L, above 0."),
    "local_steps": ("int", "H, at least 1."),
    "mu": ("float", "Above 0."),
    "omega": ("float", "At least 0."),
    "p": ("float", "In (0, 1]."),
    "residual": ("float", "1 - delta of the gradient compressor, in [0, 1)."),
    "second_moment": ("float", "G^2, at least 0."),
    "step": ("float", "gamma, above 0."),
    "steps": ("int", "T, at least 1."),
    "theta": ("float", "omega of the error compressor, at least 0."),
    "v": ("array_like", "Finite numbers."),
    "variance": ("float", "sigma^2, at least 0."),
    "workers": ("int", "N, at least 1."),
}
RAISED = "Raises\n------\nValueError\n    If an argument is outside its domain."
PART = re.compile(r"\n+(?=(?:Setting|Statement|Kind|Source): )")
ENTRY = re.compile(
    r"(?P<names>[A-Za-z]\w*(?:, [A-Za-z]\w*)*)(?: \((?P<type>[^:]*)\))?:(?: (?P<text>.*(?:\n    .*)*))?$"
)


def _pieces(function: Callable[..., Any]) -> tuple[str, dict[str, str], dict[str, str]]:
    """A short docstring's text, the entries of its parameters by names, and its other sections by title."""
    text = inspect.cleandoc(function.__doc__ or "")
    text = re.sub(r"\n\n(?=>>>)", "\n\nExamples\n--------\n", text, count=1)
    head, *sections = re.split(r"\n(?=[A-Z]\w+\n-{4,}\n)", text)
    signature = inspect.signature(function)
    kinds = {p.name: "" if p.annotation is p.empty else str(p.annotation) for p in signature.parameters.values()}
    entries, kept, last = {}, [], 0
    for found in re.finditer(rf"^{ENTRY.pattern}", head, re.MULTILINE):
        names = found["names"].split(", ")
        if set(names) <= set(kinds):
            kind = found["type"] or kinds[names[0]]
            entries[found["names"]] = f"{found['names']} : {kind}" + (f"\n    {found['text']}" if found["text"] else "")
            kept.append(head[last : found.start()])
            last = found.end() + 1
    head = "".join([*kept, head[last:]]).strip()
    return head, entries, {s.split("\n", 1)[0]: s.strip() for s in sections}


def _parameters(function: Callable[..., Any], entries: dict[str, str]) -> list[str]:
    """The entries of all parameters, in the order of the signature: those given, and the common symbols."""
    found, done = [], set()
    home = {name: names for names in entries for name in names.split(", ")}
    for name in inspect.signature(function).parameters:
        if name in home and home[name] not in done:
            done.add(home[name])
            found.append(entries[home[name]])
        elif name not in home and name in SYMBOLS:
            found.append(f"{name} : {SYMBOLS[name][0]}\n    {SYMBOLS[name][1]}")
    return found


def completed(function: Callable[..., Any]) -> str:
    """The docstring with what formulas share, in numpydoc's form."""
    head, entries, sections = _pieces(function)
    kind = str(function.__annotations__.get("return", "float")).replace("np.", "numpy.")
    parts = [PART.sub("\n\n", head)]
    some = bool(inspect.signature(function).parameters)
    listed = "\n".join(_parameters(function, entries)) if some else "None\n    It has no arguments."
    parts.append(sections.pop("Parameters", f"Parameters\n----------\n{listed}"))
    parts.append(sections.pop("Returns", f"Returns\n-------\n{kind}"))
    parts.append(sections.pop("Raises", RAISED if some else "Raises\n------\nTypeError\n    If an argument is given."))
    return "\n\n".join([*parts, *sections.values()]) + "\n"


def described(function: Callable[..., Any]) -> dict[str, str]:
    """What a formula's docstring says, by "title", "setting", "statement", "kind" and "source".

    Examples
    --------
    >>> from theory import bounds
    >>> described(bounds.qsgd_nonzeros_exact)["kind"]
    'identity.'
    """
    head = inspect.cleandoc(function.__doc__ or "").split("\n\nParameters\n---")[0]
    found = {"title": head.split("\n", 1)[0].rstrip(".")}
    for name, text in re.findall(r"^(Setting|Statement|Kind|Source): (.*?)(?=\n\n|\Z)", head, re.DOTALL | re.MULTILINE):
        found[name.lower()] = " ".join(text.split())
    return found


def formula(function: F) -> F:
    """Complete the docstring; let values know where they come from; name an argument that is a string.

    The arguments are checked for being numbers only after a failure, so that the formula is not slowed down.
    """
    name = function.__name__

    @functools.wraps(function)
    def closed_form(*arguments, **named):
        try:
            found = function(*arguments, **named)
        except TypeError:
            _name_the_string(function, arguments, named)
            raise
        if isinstance(found, Value):
            return Value(found, name, found.terms)
        return Value(found, name) if isinstance(found, float) else found

    closed_form.__doc__ = completed(function)
    return cast(F, closed_form)


def _name_the_string(function, arguments, named) -> None:
    """Reject a string that was passed for a number, by its name."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*arguments, **named).arguments
    except TypeError:
        return  # a missing or unknown argument: Python's own message is clear
    for name, value in given.items():
        wanted = str(signature.parameters[name].annotation)
        if wanted.startswith(("int", "float")) and not (value is None and "None" in wanted):
            number(**{name: value})
