"""NUQSGD: levels that are dense near zero, and the levels of its authors' released code, which have no zero."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import bounds
from ..core import inherits, require, setting
from .kernels.geometric_levels import GeometricLevels
from .kernels.norms import norm_of
from .kernels.reference import ceil_to
from .level_codes import PACKED, Elias, LevelCode, check_code, expected_code_bits
from .qsgd import round_at_random
from .registry import register
from .scaled_levels import Quantizer, ScaleAndLevels


@inherits(GeometricLevels, Quantizer, ScaleAndLevels)
@setting
class NUQSGD(NamedTuple):
    """Random rounding to the levels 0, p^s, ..., p^2, p, 1 of the vector's norm.

    Parameters
    ----------
    s : int
        Number of levels strictly between 0 and 1, from 0 to 2000.
    ratio : float
        p, in (0, 1); 1/2 in the paper.  :func:`theory.optimal_ratio` minimizes the worst-case variance.
    norm : float
        2 for the Euclidean norm, ``inf`` for the largest absolute value.
    code : Packed, Elias or RANS
        How the indices of the levels (1 for p^s, s + 1 for 1), with signs, are sent: all in the same number of bits;
        the non-zeros in Elias omega codes; or entropy coded.

    Notes
    -----
    Ramezani-Kebrya, Faghri, Markov, Aksenov, Alistarh, Roy, "NUQSGD" (JMLR 22(114), 2021).  With s = 6, 15 signed
    levels take 4 bits per coordinate.  Levels below 1e-36 raise ValueError.

    Examples
    --------
    >>> NUQSGD(s=6)
    NUQSGD(s=6, ratio=0.5, norm=2.0, code=Packed())
    """

    s: int
    ratio: float = 0.5
    norm: float = 2.0
    code: LevelCode = PACKED

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0 <= self.s <= 2000, "s", self.s, "an integer from 0 to 2000")
        require(0.0 < self.ratio < 1.0, "ratio", self.ratio, "a number in (0, 1)")
        require(self.ratio**self.s >= 1e-36, "ratio", self.ratio, "such that ratio**s is at least 1e-36")
        require(self.norm in (2.0, math.inf), "norm", self.norm, "2 or inf")
        check_code(self.code)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        levels = np.append(0.0, np.cumprod([1.0] + c.s * [c.ratio])[::-1])  # 0, p^s, ..., p, 1
        return round_to_levels(v, ceil_to(norm_of(v, c.norm), v.dtype, wire), levels, stream)

    def level_shape(c):
        return c.s, c.ratio, c.norm, True

    def code_of(c):
        return c.code

    def omega(c, d: int) -> float:
        form = bounds.nuqsgd_variance if c.norm == 2.0 else bounds.nuqsgd_inf_variance
        return form(d=d, s=c.s, ratio=c.ratio)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return bounds.chord_nonzeros(v, bounds.geometric_levels(c.s, c.ratio), norm=c.norm)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        position = bounds.chord_positions(v, bounds.geometric_levels(c.s, c.ratio), norm=c.norm)
        return 32.0 + expected_code_bits(c.code, position, c.s + 1, c.s + 1)


@inherits(GeometricLevels, Quantizer, ScaleAndLevels)
@setting
class NUQSGDReleased(NamedTuple):
    """Random rounding to the levels of the authors' released code: plus and minus 1, 1/2, 1/4, ... of the norm, no 0.

    Parameters
    ----------
    bits : int
        Bits per coordinate, from 2 to 7: its sign and one of 2**(bits - 1) magnitudes.

    Notes
    -----
    Every bit pattern is a level, but a coordinate that is 0 is sent as plus or minus the smallest one: unbiased, at the
    cost of its square in variance.  So nothing is sparse, and ``bits`` does not correspond to s of :class:`NUQSGD`.

    Examples
    --------
    >>> NUQSGDReleased(bits=4)
    NUQSGDReleased(bits=4)
    """

    bits: int = 4

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(2 <= self.bits <= 7, "bits", self.bits, "an integer from 2 to 7")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        magnitudes = 0.5 ** np.arange(2 ** (c.bits - 1))[::-1]  # the lowest cell reaches from -l_1 to l_1
        return round_to_levels(
            v, ceil_to(norm_of(v, 2.0), v.dtype, wire), np.append(-magnitudes[0], magnitudes), stream
        )

    def level_shape(c):
        return 2 ** (c.bits - 1) - 1, 0.5, 2.0, False

    def omega(c, d: int) -> float:
        return bounds.nuqsgd_released_variance(d=d, bits=c.bits)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(len(v)) if np.any(v) else 0.0


# --- what they do, plainly --------------------------------------------------------------------------------------------


def round_to_levels(v: np.ndarray, scale: float, levels: Any, stream: Any) -> np.ndarray:
    """Each ``|v_i| / scale`` becomes one of the two levels around it, without bias; the sign is that of v_i."""
    if scale == 0.0:
        return np.zeros(v.size)
    r = np.minimum(np.abs(v.astype(float)) / scale, 1.0)
    j = np.clip(np.searchsorted(levels, r, side="right") - 1, 0, len(levels) - 2)  # l_j <= r <= l_(j+1)
    j = j + round_at_random((r - levels[j]) / (levels[j + 1] - levels[j]), stream).astype(int)
    return np.where(v < 0.0, -scale, scale) * levels[j]


register(NUQSGD, 14, lambda d: [NUQSGD(6), NUQSGD(3, 0.3, math.inf), NUQSGD(4, code=Elias())])
register(NUQSGDReleased, 15, lambda d: [NUQSGDReleased(4)])
