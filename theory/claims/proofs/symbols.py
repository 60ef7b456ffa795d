"""Symbols on a region: exact rational functions, and comparisons and signs that are decided and recorded.

A region is made of open intervals of symbols, in order, which are mapped onto positive parameters.  A symbol is a
rational function with its value at one point, by which it is compared.  A region gives every symbol an interval, whose
ends may depend on the symbols before it.  A symbol between l and h is l + (h - l)/(1 + t) with t > 0, and one above l
is l + t: if all coefficients of a polynomial in the t have one sign, so has the polynomial on the whole region.  On a
box they are its Bernstein coefficients, up to positive factors.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ... import bounds
from .execute import Change, Formulas, Surd, Unproved, evaluate

# --- Regions ---------------------------------------------------------------------------------------------------------

SAMPLES = tuple(Fraction(n, n + 4 - n % 7) for n in range(3, 20))  # parameters of the point at which is compared


class Region:
    """Open intervals of symbols, in order: ``Region(z=(0, 1), s=(0, "z**2"))``.

    Parameters
    ----------
    where : sequence of str
        Polynomials that are positive besides, for ends that are not rational: ``where=["3 - c**2"]``.
    **limits : (low, high)
        Numbers, or expressions in the symbols before; "inf" for no upper end.

    Examples
    --------
    >>> print(Region(z=(0, 1), s=(0, "z**2")))
    0 < z < 1, 0 < s < z**2
    """

    def __init__(self, where: Sequence[str] = (), **limits: tuple[Any, Any]):
        self.where = tuple(where)
        self.limits = {name: (str(low), str(high)) for name, (low, high) in limits.items()}

    def __str__(self) -> str:
        words = (f"{name} > {low}" if high == "inf" else f"{low} < {name} < {high}" for name, (low, high) in self)
        return ", ".join([*words, *(f"{text} > 0" for text in self.where)])

    def __iter__(self):
        return iter(self.limits.items())

    def at(self, parameters: Sequence[Any]) -> dict[str, Any]:
        """The point with these positive parameters, numbers or symbols."""
        found: dict[str, Any] = {}
        for (name, (low, high)), t in zip(self, parameters, strict=True):
            start = evaluate(low, found)
            found[name] = start + (t if high == "inf" else (evaluate(high, found) - start) / (1 + t))
        return found


# --- A symbol --------------------------------------------------------------------------------------------------------


class Symbol:
    """A rational function of the symbols, with its value at a point inside the region, by which it is compared."""

    __slots__ = ("at", "of", "text", "value")

    def __init__(self, value, at: float, of: Symbols, text: str = ""):
        self.value, self.at, self.of, self.text = value, at, of, text

    def _with(self, other, sign: str, turned: bool = False):
        if isinstance(other, (int, float, Fraction)):
            if isinstance(other, float) and not math.isfinite(other):
                raise Unproved("a symbol and infinity")
            other = self.of.number(Fraction(other), self.value.field)
        if not isinstance(other, Symbol):
            return NotImplemented
        a, b = (other, self) if turned else (self, other)
        return Symbol(
            OPERATIONS[sign](a.value, b.value), OPERATIONS[sign](a.at, b.at), self.of, self.of.said(sign, a, b)
        )

    def __add__(self, other):
        return self._with(other, "+")

    def __sub__(self, other):
        return self._with(other, "-")

    def __rsub__(self, other):
        return self._with(other, "-", turned=True)

    def __mul__(self, other):
        return self._with(other, "*")

    def __truediv__(self, other):
        return self._with(other, "/")

    def __rtruediv__(self, other):
        return self._with(other, "/", turned=True)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __pos__(self):
        return self

    def __pow__(self, exponent: int):
        if exponent == 0:
            return self.of.number(Fraction(1), self.value.field)
        text = f"({self.text} ^ {abs(exponent)})"
        return Symbol(self.value**exponent, self.at**exponent, self.of, text if exponent > 0 else f"(1 / {text})")

    def __abs__(self):
        return self.of.larger(self, -self)

    def __lt__(self, other):
        return NotImplemented if isinstance(other, Surd) else self.of.decided(other - self, strict=True)

    def __gt__(self, other):
        return NotImplemented if isinstance(other, Surd) else self.of.decided(self - other, strict=True)

    def __le__(self, other):
        return NotImplemented if isinstance(other, Surd) else self.of.decided(other - self, strict=False)

    def __ge__(self, other):
        return NotImplemented if isinstance(other, Surd) else self.of.decided(self - other, strict=False)

    def __eq__(self, other):
        difference = self - other
        if not isinstance(difference, Symbol) or difference.vanishes():
            return isinstance(difference, Symbol)
        # not equal: nowhere, to be shown
        self.of.decided(difference if difference.at > 0 else -difference, strict=True)
        return False

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self != 0

    def vanishes(self) -> bool:
        """Whether it is 0 everywhere."""
        return not self.value

    def root(self) -> Symbol:
        """The square root of a square; the sign is that inside the region."""
        return self.of.root(self)

    def larger(self, other) -> Symbol:
        """The larger of the two."""
        return self.of.larger(self, other)

    def raise_(self, base):
        """A power with this exponent."""
        return self.of.raised(base, self)

    def __format__(self, form: str) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.of.shown(self)

    __repr__ = __str__


def _quotient(a, b):
    if not b:
        raise Unproved("a division by 0")
    return a / b


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _quotient}


# --- Symbols on a region ---------------------------------------------------------------------------------------------


class Definition(NamedTuple):
    """A name for a value: how it is written out, and the formula or the square that it comes from."""

    name: str
    value: Symbol
    formula: str
    squared: bool = False


class Symbols:
    """The symbols of a region, as attributes; and the package's formulas, executed on them.

    Parameters
    ----------
    region : Region
    changes : sequence of Change
        Wrong formulas.
    choices : sequence of {0, 1}
        Which of two symbols is the larger one where the order is not known; further ones are 0.
    traced : bool
        Whether every value remembers, as text, how it was computed.

    Attributes
    ----------
    bounds : Formulas
        The formulas of `theory.bounds`; also by call, for a function from elsewhere.
    conditions : list of (Symbol, bool)
        What the comparisons took for granted: positive (strict) or at least 0.
    assumptions : list of Symbol
        What a theorem assumes to be at least 0, from `assumed`.
    """

    def __init__(
        self, region: Region, changes: Sequence[Change] = (), choices: Sequence[int] = (), traced: bool = False
    ):
        from sympy import QQ
        from sympy.polys.fields import field

        names = list(region.limits)
        self.region, self.bounds = region, Formulas(bounds, changes)
        self.conditions: list[tuple[Symbol, bool]] = []
        self.assumptions: list[Symbol] = []
        self.traced, self.definitions, self.divisors = traced, list[Definition](), list[Symbol]()
        self.choices, self._orders = list(choices), dict[Any, int]()
        self._powers: list[tuple[Any, Symbol, Symbol]] = []
        self._field, *variables = field(names, QQ)
        point = region.at(SAMPLES[: len(names)])
        self._rational = QQ
        self._point = [(one.numer, point[name]) for name, one in zip(names, variables, strict=True)]
        for name, variable in zip(names, variables, strict=True):
            setattr(self, name, Symbol(variable, float(point[name]), self, name))
        self._positive, *parameters = field([f"t_{name}" for name in names], QQ)
        inside = region.at([Symbol(t, math.nan, self) for t in parameters])
        self._ends = [(one.value.numer, one.value.denom) for one in inside.values()]
        here, self._known = {name: getattr(self, name) for name in names}, {}
        for text in region.where:
            known = evaluate(text, here)
            if known.at <= 0:
                raise ValueError(f"where: got {text}, allowed: what is positive at {point}")
            constant, [(factor, _)] = known.value.numer.factor_list()
            self._known[factor] = 1 if constant > 0 else -1

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name}: allowed: {', '.join(self.region.limits)}")

    def number(self, value: Fraction, field) -> Symbol:
        """A number as a constant symbol."""
        text = str(value) if value.denominator == 1 and value >= 0 else f"({value})"
        return Symbol(field(self._rational(value.numerator, value.denominator)), float(value), self, text)

    def said(self, sign: str, a: Symbol, b: Symbol) -> str:
        """An operation as text, if the symbols are traced, without what is added or multiplied in vain."""
        if not self.traced:
            return ""
        if sign == "/" and b.value.field == self._field:
            self.divisors.append(b)
        if sign in "+-" and b.text == "0" or sign in "*/" and b.text == "1":
            return a.text
        if sign == "+" and a.text == "0" or sign == "*" and a.text == "1":
            return b.text
        return (
            "0"
            if sign == "*" and "0" in (a.text, b.text) or sign == "/" and a.text == "0"
            else f"({a.text} {sign} {b.text})"
        )

    def let(self, name: str, value: Symbol) -> Symbol:
        """The same value with a name in what is traced."""
        if self.traced:
            self.definitions.append(Definition(name, value, value.text))
        return Symbol(value.value, value.at, self, name)

    def decided(self, difference, strict: bool) -> bool:
        """Whether a difference is positive (at least 0); by its value at one point, and recorded to be proved."""
        if not isinstance(difference, Symbol):
            return difference > 0 if strict else difference >= 0
        if difference.vanishes():
            return not strict
        above = difference.at > 0
        if not difference.value.numer.is_ground or not difference.value.denom.is_ground:
            self.conditions.append((difference, strict) if above else (-difference, not strict))
        return above

    def larger(self, a: Symbol, b) -> Symbol:
        """The larger of two; where the order is not known, one of them, as ``choices`` says."""
        sign = self.sign(a - b)
        if sign is not None:
            return a if sign >= 0 else a - (a - b)
        place = self._orders.setdefault((a - b).value, len(self._orders))
        if place == len(self.choices):
            self.choices.append(0)
        return a - (a - b) if self.choices[place] else a

    @contextlib.contextmanager
    def assumed(self):
        """A context in which comparisons are what a theorem assumes of its arguments: listed, and not proved."""
        before = len(self.conditions)
        yield
        self.assumptions += [difference for difference, _ in self.conditions[before:]]
        del self.conditions[before:]

    def power(self, base, exponent: Symbol, name: Symbol) -> Symbol:
        """Let a symbol stand for base**exponent; it must lie between the same limits."""
        self._powers.append((base, exponent, name))
        return name

    def raised(self, base, exponent: Symbol) -> Symbol:
        """A power whose exponent is a symbol that `power` has named, or a multiple of it, or a few more."""
        for known, steps, name in self._powers:
            for times in (1, 2):
                for more in (0, 1, 2, -1):
                    if (exponent - times * steps - more).vanishes() and (base - known).vanishes():
                        return name**times * known**more
        raise Unproved(f"a power with the exponent {exponent}")

    def root(self, square: Symbol) -> Symbol:
        """The square root of a square."""
        parts = []
        for polynomial in (square.value.numer, square.value.denom):
            constant, factors = polynomial.factor_list()
            root = evaluate_root(Fraction(int(constant.numerator), int(constant.denominator)))
            if any(power % 2 for _, power in factors):
                raise Unproved(f"the square root of {square} is not rational in these symbols")
            parts.append(self._field(self._rational(root.numerator, root.denominator)))
            for factor, power in factors:
                parts[-1] *= self._field(factor) ** (power // 2)
        found = Symbol(parts[0] / parts[1], math.nan, self)
        size, sign = math.sqrt(square.at), self._value(found)
        same = [one.name for one in self.definitions if one.squared and one.formula == square.text]
        name = same[0] if same else f"root{len(self.definitions)}"
        found = Symbol(found.value if sign >= 0 else -found.value, size, self, name)
        if self.traced and not same:
            self.definitions.append(Definition(name, found, square.text, squared=True))
        if not found.vanishes():
            self.conditions.append((found, False))
        return found

    def _value(self, symbol: Symbol) -> float:
        """The value inside the region."""
        point = [(variable, self._rational(*one.as_integer_ratio())) for variable, one in self._point]
        above, below = (p.evaluate(point) for p in (symbol.value.numer, symbol.value.denom))
        return float(Fraction(int(above.numerator), int(above.denominator))) / float(
            Fraction(int(below.numerator), int(below.denominator))
        )

    def sign(self, symbol) -> int | None:
        """1, -1 or 0 where it has this sign on the whole region; None if it is not known."""
        if not isinstance(symbol, Symbol):
            return (symbol > 0) - (symbol < 0)
        if symbol.vanishes():
            return 0
        found = 1
        for polynomial in (symbol.value.numer, symbol.value.denom):
            constant, factors = polynomial.factor_list()
            found *= 1 if constant > 0 else -1
            for factor, power in factors:
                one = self._sign_of_factor(factor)
                if one is None:
                    return None
                found *= one**power
        return found

    def _sign_of_factor(self, factor) -> int | None:
        """The sign that all coefficients of a polynomial have in the positive parameters, as a whole or by factor."""
        if factor in self._known:
            return self._known[factor]
        ring = self._positive.ring
        degrees = [max(power[i] for power in factor.monoms()) for i in range(len(self._ends))]
        powers = [
            [(n ** (e) * d ** (top - e)) for e in range(top + 1)]
            for (n, d), top in zip(self._ends, degrees, strict=True)
        ]
        inside = ring.zero
        for monomial, coefficient in factor.terms():
            term = ring(coefficient)
            for i, exponent in enumerate(monomial):
                term *= powers[i][exponent]
            inside += term
        below = [d for (_, d), top in zip(self._ends, degrees, strict=True) if top]
        if any(_one_sign(d) != 1 for d in below):
            return None
        whole = _one_sign(inside)
        if whole is not None:
            return whole
        constant, factors = inside.factor_list()
        found = 1 if constant > 0 else -1
        for part, power in factors:
            one = _one_sign(part)
            if one is None:
                return None
            found *= one**power
        return found

    def derivative(self, symbol: Symbol, name: str) -> Symbol:
        """The derivative by the symbol with this name."""
        return Symbol(symbol.value.diff(getattr(self, name).value), math.nan, self)

    def shown(self, symbol: Symbol) -> str:
        """A symbol as text, factored."""
        above, below = symbol.value.numer, symbol.value.denom
        if not above:
            return "0"
        return _factored(above) + (f"/({_factored(below)})" if below != 1 else "")


def evaluate_root(number: Fraction) -> Fraction:
    """The square root of a rational square."""
    return evaluate("sqrt(number)", {"number": number})


def _factored(polynomial) -> str:
    constant, factors = polynomial.factor_list()
    parts = [] if constant == 1 and factors else [str(constant)]
    parts += [f"({factor})" + (f"**{power}" if power > 1 else "") for factor, power in factors]
    return "*".join(parts)


def _one_sign(polynomial) -> int | None:
    """The sign that all coefficients have."""
    signs = {1 if c > 0 else -1 for c in polynomial.coeffs()}
    return signs.pop() if len(signs) == 1 else None
