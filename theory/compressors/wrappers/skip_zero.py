"""A compressor that sends one bit in place of the zero vector."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...core import kernel, setting
from ...core.vectors import entry, length
from ...wire.bits import read, write
from .. import base
from ..checks import check_compressor
from ..closed_forms import check_stateless, delta, expected_nonzeros, omega, reference
from ..registry import register
from ..sparsifiers import TopK
from .forward import forwards


@forwards
@setting
class SkipZero(NamedTuple):
    """The message of ``inner`` after a bit; that bit alone if the vector is zero.

    Parameters
    ----------
    inner : compressor
        Without a state of its own.

    Notes
    -----
    What a worker of :class:`theory.CLAG` sends: nothing but the bit, where its gradient has not changed enough.

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
