"""A compressor times a factor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import require, setting
from ..base import accumulate, summed
from ..checks import check_compressor
from ..closed_forms import check, expected_payload_bits, omega, reference
from ..qsgd import QSGD
from ..registry import register
from .forward import forwards


@forwards
@setting
class Scaled(NamedTuple):
    """The message of ``inner``; the receiver multiplies the restored vector by ``factor``.

    An unbiased compressor with the variance factor omega becomes a contraction with delta = 1/(1 + omega) if the factor
    is 1/(1 + omega): see :func:`scaled`.

    Parameters
    ----------
    inner : compressor
        The compressor whose result is multiplied.
    factor : float
        In (0, 1].

    Examples
    --------
    >>> from theory import RandK
    >>> Scaled(RandK(10, unbiased=True), factor=0.1)
    Scaled(inner=RandK(k=10, unbiased=True, shared=False), factor=0.1)
    """

    inner: NamedTuple
    factor: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_compressor("inner", self.inner)
        require(0 < self.factor <= 1, "factor", self.factor, "a number in (0, 1]")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        return c.factor * reference(c.inner, v, stream, wire)

    def accumulate(c, symbols, weight, out):
        accumulate(c.inner, symbols, c.factor * weight, out)

    def summed(c, d):
        return summed(c.inner, d)

    def delta(c, d: int) -> float:
        found = bounds.scaled_contraction(omega(c.inner, d), c.factor)
        if found <= 0.0:
            raise TypeError(f"{c!r} is not a contraction for d = {d}: its factor is too large, see th.scaled(inner, d)")
        return found

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return expected_payload_bits(c.inner, v)


# --- what it does, plainly --------------------------------------------------------------------------------------------


def scaled(inner: Any, d: int) -> Scaled:
    """An unbiased compressor as a contraction of vectors of length ``d``: its factor is 1/(1 + omega).

    Parameters
    ----------
    inner : compressor
        Unbiased, with a closed form for omega.
    d : int
        Length of the vectors.

    Returns
    -------
    Scaled

    Raises
    ------
    TypeError
        If the inner compressor has no omega.
    ValueError
        If it cannot be used on vectors of length d.

    Examples
    --------
    >>> from theory import QSGD
    >>> scaled(QSGD(1), 100)
    Scaled(inner=QSGD(s=1, norm=2.0, code=Packed()), factor=0.1)
    """
    check_compressor("inner", inner)
    check(inner, d)
    return Scaled(inner, bounds.scaled_contraction(omega(inner, d)))


register(Scaled, 50, lambda d: [scaled(QSGD(3), d)])
