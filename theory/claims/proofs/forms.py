"""Quadratic forms: linear combinations of vectors, their inner products, and pivots; of fractions or of symbols.

A form without negative pivot is a sum of squares, of numbers as of vectors of any dimension.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np


def unit_forms(n: int) -> list[np.ndarray]:
    """Vectors x_1, ..., x_n, whose sums and multiples are linear combinations."""
    return [np.array([Fraction(int(i == j)) for j in range(n)], dtype=object) for i in range(n)]


def dot(a, b) -> np.ndarray:
    """<a, b> as a symmetric matrix."""
    return (np.outer(a, b) + np.outer(b, a)) / Fraction(2)


def square(a) -> np.ndarray:
    """||a||^2 as a symmetric matrix."""
    return np.outer(a, a)


def between(x, g, y, h, mu, lipschitz) -> np.ndarray:
    """What f(x) - f(y) is at least, less itself: of mu-strongly convex L-smooth f with gradients g at x and h at y.

    f(x) - f(y) >= <h, x - y> + (mu/2)||x - y||^2 + ||g - h - mu (x - y)||^2/(2 (L - mu)), the interpolation inequality.
    """
    d = x - y
    u = g - h - mu * d
    return dot(h, d) + mu * square(d) / 2 + square(u) / (2 * (lipschitz - mu))


class Decrease(NamedTuple):
    """That V falls: rate V - V_+ less multiples of what is at least 0 is a sum of squares.

    Attributes
    ----------
    vectors : tuple of str
        Their names.
    rate : number
    before, after : array
        V and V_+ as symmetric matrices.
    known : dict
        Name to (multiplier, form) of an inequality: the form is at least 0.
    """

    vectors: tuple[str, ...]
    rate: Any
    before: np.ndarray
    after: np.ndarray
    known: dict[str, tuple[Any, np.ndarray]]

    @property
    def left(self) -> np.ndarray:
        """The form that has to be a sum of squares."""
        return self.rate * self.before - self.after - sum(weight * form for weight, form in self.known.values())


def is_zero(number) -> bool:
    """Whether a number or a symbol is 0."""
    return number.vanishes() if hasattr(number, "vanishes") else number == 0


def pivots(form) -> list:
    """Pivots of a symmetric matrix, exactly: all at least 0 if it is a sum of squares; -1 where that is impossible.

    Examples
    --------
    >>> x, y = unit_forms(2)
    >>> pivots(square(x - y) + square(y)), pivots(dot(x, y))
    ([Fraction(1, 1), Fraction(1, 1)], [-1])
    """
    return [pivot for pivot, _ in completed_squares(form)]


def completed_squares(form) -> list[tuple[Any, np.ndarray]]:
    """A form as pivots times squares of linear combinations, which are given by their coefficients."""
    left, found = np.array(form, object), list[tuple[Any, np.ndarray]]()
    for k in range(len(left)):
        pivot = left[k, k]
        if is_zero(pivot):
            if not all(is_zero(one) for one in left[k]):
                return [*found, (-1, left[k])]
            found.append((Fraction(0), left[k]))
            continue
        found.append((pivot, left[k] / pivot))
        left = left - np.outer(left[k], left[k]) / pivot
    return found
