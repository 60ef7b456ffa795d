"""A symbol: a rational function with its value at one point, by which it is compared."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING

from .execute import Surd, Unproved

if TYPE_CHECKING:
    from .symbols import Symbols


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
        self.of.decided(
            difference if difference.at > 0 else -difference, strict=True
        )  # not equal: nowhere, to be shown
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
