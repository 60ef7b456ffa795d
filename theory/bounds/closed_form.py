"""What all closed forms share: arguments that are checked, and values that know their formula and its summands.

Values are numbers; that they remember their summands lets a claim find out which wrong formulas it would notice.  A
formula can also be wrong for a while (`at_source`), for all who call it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, TypeVar, cast, overload

import numpy as np

from .domains import domain
from .theorems import completed, theorem

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

    def __new__(
        cls, value: float, formula: str = "", terms: dict[str, float] | None = None, rest: float = 0.0
    ) -> Value:
        new = super().__new__(cls, value)
        new.formula, new.terms, new.rest = formula, terms or {}, rest
        return new

    def _times(self, factor: Any) -> Any:
        if not isinstance(factor, Real):
            return NotImplemented
        c = float(factor)
        return Value(float(self) * c, self.formula, {k: c * v for k, v in self.terms.items()}, c * self.rest)

    def _plus(self, other: Any, sign: float = 1.0) -> Any:
        if not isinstance(other, Real):
            return NotImplemented
        more, rest, terms = sign * float(other), self.rest, self.terms
        if isinstance(other, Value) and other.formula == self.formula:
            rest += sign * other.rest
            terms = {k: terms.get(k, 0.0) + sign * other.terms.get(k, 0.0) for k in {**terms, **other.terms}}
        else:
            rest += more
        return Value(float(self) + more, self.formula, terms, rest)

    def __mul__(self, factor: Any) -> Any:
        return self._times(factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        return self._times(1.0 / divisor) if isinstance(divisor, Real) and divisor else float(self) / divisor

    def __neg__(self) -> Value:
        return self._times(-1.0)

    def __add__(self, other: Any) -> Any:
        return self._plus(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return self._times(-1.0)._plus(other)

    # NumPy's integers leave everything to the other side, because of the priority

    def __lt__(self, other: Any) -> bool:
        return float(self) < other

    def __le__(self, other: Any) -> bool:
        return float(self) <= other

    def __gt__(self, other: Any) -> bool:
        return float(self) > other

    def __ge__(self, other: Any) -> bool:
        return float(self) >= other

    def __rtruediv__(self, other: Any) -> Any:
        return other / float(self)

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        return other ** float(self)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)

    def scaled(self, factor: float) -> float:
        """The number if the formula were ``factor`` times as large."""
        return self.rest + factor * (float(self) - self.rest)

    def without(self, term: str, share: float = 1.0) -> float:
        """The number if one summand, or a share of it, were forgotten."""
        return float(self) - share * self.terms[term]


def _plain(name: str, reflected: bool) -> Callable[[Any, Any], Any]:
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


# --- a formula that is wrong for a while ------------------------------------------------------------------------------


class Trial:
    """How a formula is wrong for a while, how often it was called meanwhile, and which summands it had.

    Attributes
    ----------
    calls : int
        Those of the formula by itself are not counted.
    terms : set of str
        Summands that were positive, beside others.
    """

    def __init__(self, factor: float, without: str) -> None:
        self.factor, self.missing = factor, without
        self.calls, self.terms, self.inside = 0, set[str](), False

    def changed(self, found: Any) -> Any:
        """What the wrong formula gives: each of its numbers times the factor, or without the summand."""
        self.calls += 1
        if isinstance(found, Value) and len(found.terms) > 1:
            self.terms.update(name for name, term in found.terms.items() if term > 0.0)
        if self.missing:
            return _without(found, self.missing) if isinstance(found, Value) and self.missing in found.terms else found
        return found if self.factor == 1.0 else _scaled(found, self.factor)


TRIALS: dict[str, Trial] = {}  # by the name of the formula


@contextlib.contextmanager
def at_source(formula: str, factor: float = 1.0, without: str = "") -> Iterator[Trial]:
    """Let a formula be wrong for a while, whoever calls it: by a factor, or without one of its summands.

    Parameters
    ----------
    formula : str
        Its name.
    factor : float
        Of all numbers that it returns; integers are rounded away from the right one.
    without : str
        A summand.

    Yields
    ------
    Trial
        It counts the calls.

    Examples
    --------
    >>> from theory import bounds
    >>> with at_source("rand_k_variance", 2.0) as trial:
    ...     wrong = bounds.rand_k_variance(10, 5)
    >>> wrong, bounds.rand_k_variance(10, 5), trial.calls
    (2.0, 1.0, 1)
    """
    before, TRIALS[formula] = TRIALS.get(formula), Trial(factor, without)
    try:
        yield TRIALS[formula]
    finally:
        if before is None:
            del TRIALS[formula]
        else:
            TRIALS[formula] = before


def _without(found: Value, term: str) -> Value:
    terms = {name: value for name, value in found.terms.items() if name != term}
    return Value(found.without(term), found.formula, terms, found.rest)


def _scaled(found: Any, factor: float) -> Any:
    if isinstance(found, tuple):
        each = [_scaled(one, factor) for one in found]
        return type(found)(*each) if hasattr(found, "_fields") else tuple(each)
    if isinstance(found, np.ndarray) and found.dtype.kind == "f":
        return factor * found
    if isinstance(found, (bool, np.bool_)) or not isinstance(found, Real):
        return found
    if isinstance(found, Fraction):  # a formula that is run exactly
        return found * Fraction(factor)
    if isinstance(found, Integral):
        return math.floor(int(found) * factor) if factor < 1.0 else math.ceil(int(found) * factor)
    return found * factor


# --- formulas ---------------------------------------------------------------------------------------------------------


@overload
def formula(given: F) -> F: ...
@overload
def formula(given: str = ..., *more: str) -> Callable[[F], F]: ...
def formula(given: Any = "", *more: str) -> Any:
    """Make a closed form of a function: checked arguments, values that know where they come from, a whole docstring.

    Parameters
    ----------
    given, *more : str
        Conditions on the arguments, such as ``"0 < step <= 1 / lipschitz"``, besides those of the common symbols.

    Returns
    -------
    function
        A decorator; or, without conditions, the closed form.

    Examples
    --------
    >>> @formula("half >= 1")
    ... def twice(half: float) -> float:
    ...     return 2.0 * half
    >>> twice(0.5)
    Traceback (most recent call last):
        ...
    ValueError: half: got 0.5, allowed: a number, at least 1
    """
    if callable(given):
        return _closed_form(given, ())
    return functools.partial(_closed_form, conditions=tuple(filter(None, (given, *more))))


def _closed_form(function: F, conditions: tuple[str, ...]) -> F:
    name, allowed = function.__name__, domain(function, conditions)
    check = allowed.check

    @functools.wraps(function)
    def closed_form(*arguments: Any, **named: Any) -> Any:
        check(arguments, named)
        trial = TRIALS.get(name) if TRIALS else None
        if trial is None or trial.inside:
            return _known(function(*arguments, **named), name)
        trial.inside = True
        try:
            return trial.changed(_known(function(*arguments, **named), name))
        finally:
            trial.inside = False

    closed_form.__doc__ = completed(function, allowed)
    vars(closed_form).update(domain=allowed, theorem=functools.partial(theorem, function))
    return cast(F, closed_form)


def _known(found: Any, name: str) -> Any:
    """A number that knows the formula that gave it."""
    if isinstance(found, Value):
        return Value(found, name, found.terms)
    return Value(found, name) if isinstance(found, float) else found
