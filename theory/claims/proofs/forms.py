"""Quadratic forms: linear combinations of vectors, their inner products, and pivots; of fractions or of symbols.

A form without negative pivot is a sum of squares, of numbers as of vectors of any dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

__all__ = ["between", "dot", "pivots", "square", "unit_forms"]


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


def _is_zero(number) -> bool:
    return number.vanishes() if hasattr(number, "vanishes") else number == 0


def pivots(form, order: Sequence[int] = ()) -> list:
    """Pivots of a symmetric matrix, exactly: all at least 0 if it is a sum of squares; -1 where that is impossible.

    Examples
    --------
    >>> x, y = unit_forms(2)
    >>> pivots(square(x - y) + square(y)), pivots(dot(x, y))
    ([Fraction(1, 1), Fraction(1, 1)], [-1])
    """
    order = list(order or range(len(form)))
    left = np.array(form, object)[np.ix_(order, order)]
    found: list = []
    for k in range(len(left)):
        pivot = left[k, k]
        if _is_zero(pivot):
            if not all(_is_zero(one) for one in left[k]):
                return [*found, -1]
            found.append(Fraction(0))
            continue
        found.append(pivot)
        left = left - np.outer(left[k], left[k]) / pivot
    return found
