"""Forwarding to the inner compressor, a scaled compressor, and one bit in place of the zero vector.

`Forwarding` has one function for each generic that a wrapper does not define itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import inherits, kernel, require, setting
from ...core.vectors import entry, length
from ...wire.bits import read, write
from .. import base
from ..base import accumulate, summed
from ..closed_forms import check, check_stateless, delta, expected_nonzeros, expected_payload_bits, omega, reference
from ..quantizers.qsgd import QSGD
from ..registry import check_compressor, register
from ..sparsifiers.random_and_top_k import TopK

# --- Forwarding to the inner compressor ------------------------------------------------------------------------------


class Forwarding:
    """The default functions of a wrapper with a field ``inner``."""

    inner: Any

    def capacity(c, d):
        return base.capacity(c.inner, d)

    def parts(c, d):
        return base.parts(c.inner, d)

    def state_size(c, d):
        return base.state_size(c.inner, d)

    def quantize(c, state, v, stream, symbols):
        base.quantize(c.inner, state, v, stream, symbols)

    def accumulate(c, symbols, weight, out):
        base.accumulate(c.inner, symbols, weight, out)

    def shares_stream(c):
        return base.shares_stream(c.inner)

    def opening(c, d):
        return base.opening(c.inner, d)

    def opening_is_maximum(c):
        return base.opening_is_maximum(c.inner)

    def propose(c, state, v, stream, numbers):
        base.propose(c.inner, state, v, stream, numbers)

    def settle(c, d, state, numbers):
        base.settle(c.inner, d, state, numbers)

    def update_state(c, d, state, symbols):
        base.update_state(c.inner, d, state, symbols)

    def payload_bits(c, symbols, d):
        return base.payload_bits(c.inner, symbols, d)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return base.max_payload_bits(c.inner, d, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        return base.pack(c.inner, symbols, d, buffer, cursor)

    def unpack(c, buffer, cursor, end, d, symbols):
        return base.unpack(c.inner, buffer, cursor, end, d, symbols)

    def check(c: Any, d: int) -> None:
        check(c.inner, d)

    def expected_nonzeros(c: Any, v: np.ndarray) -> float:
        return expected_nonzeros(c.inner, v)


forwards = inherits(Forwarding)


# --- A compressor times a factor -------------------------------------------------------------------------------------


@forwards
@setting
class Scaled(NamedTuple):
    """The message of ``inner``; the receiver multiplies the decoded vector by ``factor``.

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


# --- construction from omega ------------------------------------------------------------------------------------------


def scaled(inner: Any, d: int) -> Scaled:
    """An unbiased compressor, scaled by 1/(1 + omega) to a contraction of vectors of length ``d``.

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


# --- A compressor that sends one bit in place of the zero vector -----------------------------------------------------


@forwards
@setting
class SkipZero(NamedTuple):
    """The message of ``inner`` after one bit; only the bit if the vector is zero.

    Parameters
    ----------
    inner : compressor
        A compressor without state.

    Notes
    -----
    A worker of :class:`theory.CLAG` sends only the bit if its gradient has not changed enough.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> nothing, ones = (len(th.encode(SkipZero(th.TopK(2)), v, 0)) for v in (np.zeros(8), np.ones(8)))
    >>> ones - nothing  # bytes: 1 bit against 1 + 2 (32 + 3)
    8
    """

    inner: NamedTuple

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_compressor("inner", self.inner)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        return reference(c.inner, v, stream, wire) if v.any() else np.zeros(v.size)

    def capacity(c, d):
        indices, values, levels, scratch = base.capacity(c.inner, d)
        return indices, values, levels + 1, scratch  # the last level is the bit

    def quantize(c, state, v, stream, symbols):
        symbols.count[:] = 0
        symbols.level[symbols.level.size - 1] = 0
        for j in range(length(v)):
            if entry(v, j) != 0.0:  # also where it is NaN
                symbols.level[symbols.level.size - 1] = 1
                base.quantize(c.inner, state, v, stream, _message(symbols))
                break

    def accumulate(c, symbols, weight, out):
        if symbols.level[symbols.level.size - 1] == 1:
            base.accumulate(c.inner, _message(symbols), weight, out)

    def payload_bits(c, symbols, d):
        follows = symbols.level[symbols.level.size - 1] == 1
        return 1 + base.payload_bits(c.inner, _message(symbols), d) if follows else 1

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return 1 + base.max_payload_bits(c.inner, d, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        follows = symbols.level[symbols.level.size - 1]
        cursor = write(buffer, cursor, follows, 1)
        return base.pack(c.inner, _message(symbols), d, buffer, cursor) if follows == 1 else cursor

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor >= end:
            return -1
        symbols.count[:] = 0
        follows = np.int32(read(buffer, cursor, 1))
        symbols.level[symbols.level.size - 1] = follows
        return base.unpack(c.inner, buffer, cursor + 1, end, d, _message(symbols)) if follows == 1 else cursor + 1

    def check(c, d: int) -> None:
        check_stateless("SkipZero: inner", c.inner, d)

    def omega(c, d: int) -> float:
        return omega(c.inner, d)

    def delta(c, d: int) -> float:
        return delta(c.inner, d)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return expected_nonzeros(c.inner, v) if np.any(v) else 0.0


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _message(symbols):
    """The symbols of the message, without the bit."""
    level = symbols.level[: symbols.level.size - 1]
    return base.Symbols(symbols.count, symbols.index, symbols.value, level, symbols.scratch)


register(SkipZero, 60, lambda d: [SkipZero(TopK(max(1, d // 10)))])
