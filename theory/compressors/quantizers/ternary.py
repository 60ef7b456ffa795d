"""Ternary quantization: a coordinate v_i becomes C sign(v_i) with probability ``|v_i|/C``, otherwise 0.

The scale C must be at least the largest magnitude. A larger scale gives fewer non-zeros and more variance; the product
``(second moment) (expected non-zeros) = ||v||_1^2`` is the same for every C.  A message has C, then five coordinates
per byte. The levels are drawn like those of QSGD with s = 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import generic, inherits, kernel, require, setting
from ...wire.symbols import read_trits, trits_bits, write_trits
from ..kernels.norms import ceil_to, norm_of
from ..registry import register
from .qsgd import draw_levels, round_at_random, round_up
from .scaled_levels import Quantizer, ScaleAndLevels

wanted_scale = generic("wanted_scale", "wanted_scale(c, state, v) -> float: the scale C before it is rounded up.")


# --- the plain reference ----------------------------------------------------------------------------------------------


def round_to_three(v: np.ndarray, size: float, stream: Any, wire: DTypeLike) -> np.ndarray:
    """C times -1, 0 or 1 for each coordinate, with C = size, and the same levels as those of QSGD with s = 1."""
    scale = ceil_to(size, v.dtype, wire)
    if scale == 0.0:
        return np.zeros(v.size)
    u = np.clip(v.astype(float) / scale, -1.0, 1.0)
    return scale * round_at_random(u, stream)


# --- common to all ----------------------------------------------------------------------------------------------------


@setting
class Trits(NamedTuple):
    """The code of levels -1, 0, 1: five per byte."""

    def code_bits(code, level, low, high):
        return trits_bits(level.size)

    def longest_levels(code, n, low, high):
        return trits_bits(n)

    def write_levels(code, buffer, cursor, level, low, high):
        return write_trits(buffer, cursor, level)

    def read_levels(code, buffer, cursor, end, level, low, high):
        return read_trits(buffer, cursor, level) if cursor + trits_bits(level.size) <= end else -1

    def in_pieces(code):
        return True

    def expected_code_bits(code, position: Any, low: int, high: int) -> float:
        return float(trits_bits(len(position)))


TRITS = Trits()


@kernel
def _cut(v, scale, unit, out):
    """Clip coordinates at the scale; only with clipping can any be above it."""
    for j in range(v.size):
        if abs(v[j]) > scale > 0.0:
            out[j] = unit if v[j] > 0 else -unit


class ThreeLevels:
    """The common part of these compressors, without the scale."""

    def level_range(c):
        return 1, 1

    def code_of(c):
        return TRITS

    def sent_scale(c, state, v, wire):
        return round_up(round_up(wanted_scale(c, state, v), v), wire)

    def fill_levels(c, grid, v, start, scale, stream, words, unit, out):
        draw_levels(v, start, scale, 1, stream, words, unit, out)
        if clips(c):
            _cut(v, scale, unit, out)

    def expected_nonzeros(c, v: Any) -> float:
        v = np.asarray(v, float)
        scale = wanted_scale(c, np.zeros(2), v)
        return bounds.ternary_nonzeros_exact(np.minimum(np.abs(v), scale), scale) if scale > 0.0 else 0.0


clips = generic("clips", "clips(c) -> bool: whether coordinates may exceed the scale.", lambda c: False)


# --- a fixed scale ----------------------------------------------------------------------------------------------------


@inherits(ThreeLevels, Quantizer, ScaleAndLevels)
@setting
class Ternary(NamedTuple):
    """Unbiased ternary quantization with a fixed scale.

    Parameters
    ----------
    scale : float
        C, above 0.  No ternary quantizer with a scale below ``max|v_i|`` is unbiased, so for a vector with a larger
        entry the scale is that entry: the scale in use is ``max(scale, max|v_i|)``.

    Examples
    --------
    >>> Ternary(scale=3.0)
    Ternary(scale=3.0)
    """

    scale: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.scale < math.inf, "scale", self.scale, "a finite number above 0")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        return round_to_three(v, max(c.scale, norm_of(v, np.inf)), stream, wire)

    def wanted_scale(c, state, v):
        top = norm_of(v, np.inf)
        return c.scale if top <= c.scale else top  # NaN remains NaN


# --- the largest magnitude --------------------------------------------------------------------------------------------


@inherits(ThreeLevels, Quantizer, ScaleAndLevels)
@setting
class TernGrad(NamedTuple):
    """Unbiased ternary quantization with the smallest possible scale: the largest magnitude.

    For a separate scale per layer, wrap it: ``Bucketed(TernGrad(), size)`` for layers of equal length.

    Parameters
    ----------
    shared : bool
        The workers agree on the largest of their scales before they quantize (an opening of one number), and use it.
        Then their levels can be added as small integers: the sum of N messages has 2 N + 1 possible values. Without a
        shared scale, or if an entry exceeds it, a worker uses its own scale.

    Notes
    -----
    Wen, Xu, Yan, Wu, Wang, Chen, Li, "TernGrad" (NIPS 2017).  The scale of a zero vector is 0, and so is the result.

    Examples
    --------
    >>> TernGrad()
    TernGrad(shared=False)
    """

    shared: bool = False

    def reference(
        c, v: np.ndarray, stream: Any, wire: DTypeLike
    ) -> np.ndarray:  # also with shared=True: no scale has been agreed on
        return round_to_three(v, norm_of(v, np.inf), stream, wire)

    def wanted_scale(c, state, v):
        scale = norm_of(v, np.inf)
        if c.shared and state[0] == 1.0:
            if scale < state[1]:  # NaN remains NaN
                scale = state[1]
            state[0] = 0.0
        return scale

    def state_size(c, d):
        return 2 if c.shared else 0  # whether a scale was settled since the last message, and its value

    def opening(c, d):
        return 1 if c.shared else 0

    def opening_is_maximum(c):
        return True

    def propose(c, state, v, stream, numbers):
        numbers[0] = norm_of(v, np.inf)

    def settle(c, d, state, numbers):
        state[0], state[1] = 1.0, numbers[0]

    def omega(c, d: int) -> float:
        return bounds.ternary_inf_variance(d)


# --- clipping ---------------------------------------------------------------------------------------------------------


@inherits(ThreeLevels, Quantizer, ScaleAndLevels)
@setting
class ClippedTernGrad(NamedTuple):
    """TernGrad after clipping of entries beyond ``clip`` standard deviations, which makes it biased.

    Parameters
    ----------
    clip : float
        c, above 0; 2.5 in the paper.  The standard deviation is the root mean square deviation of the entries from
        their mean, so a constant vector is clipped to 0.

    Examples
    --------
    >>> ClippedTernGrad()
    ClippedTernGrad(clip=2.5)
    """

    clip: float = 2.5

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.clip < math.inf, "clip", self.clip, "a finite number above 0")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        return round_to_three(v, min(norm_of(v, np.inf), c.clip * deviation(v)), stream, wire)

    def wanted_scale(c, state, v):
        return min(norm_of(v, np.inf), c.clip * deviation(v))

    def clips(c):
        return True


@kernel
def deviation(v):
    """Root mean square deviation of the entries from their mean, also if squares overflow or underflow."""
    top = norm_of(v, np.inf)
    if not 0.0 < top < np.inf:
        return top
    factor = 2.0 ** -math.frexp(top)[1] if top > 1e-300 else 2.0**1000
    total = 0.0
    for j in range(v.size):
        total += factor * v[j]
    mean, total = total / v.size, 0.0
    for j in range(v.size):
        x = factor * v[j] - mean
        total += x * x
    return math.sqrt(total / v.size) / factor


register(Ternary, 11, lambda d: [Ternary(3.0)])
register(TernGrad, 12, lambda d: [TernGrad(), TernGrad(shared=True)])
register(ClippedTernGrad, 13, lambda d: [ClippedTernGrad()])
