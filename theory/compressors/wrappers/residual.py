"""Two compressors, one after the other: the second compresses what the first one left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...core import kernel, setting
from ...core.random import derive
from .. import base
from ..checks import check_compressor
from ..closed_forms import check_stateless, delta, omega, reference
from ..natural import Natural
from ..registry import register
from ..sparsifiers import TopK


@setting
class Residual(NamedTuple):
    """A(v) + B(v - A(v)): what the first compressor A leaves out, the second one, B, compresses.

    If B is unbiased, so is the sum; its variance factor is that of B times the share that A leaves out.

    Parameters
    ----------
    first, second : compressor
        A and B, without a state of their own.

    Notes
    -----
    As the error compressor of :class:`theory.ContractiveErrorFeedback` it gives improved contractive error feedback
    (arXiv 2312.08538): with A = B in the first version, and with the gradient's own compressor as A in the second.

    Examples
    --------
    >>> from theory import Natural, TopK
    >>> Residual(TopK(10), Natural())
    Residual(first=TopK(k=10), second=Natural())
    """

    first: NamedTuple
    second: NamedTuple

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_compressor("first", self.first)
        check_compressor("second", self.second)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        first = reference(c.first, v, derive(stream, 0), wire)
        rest = (v - first).astype(v.dtype)
        return first.astype(v.dtype) + reference(c.second, rest, derive(stream, 1), wire)

    def capacity(c, d):
        indices, values, levels, scratch = base.capacity(c.first, d)
        more_indices, more_values, more_levels, more_scratch = base.capacity(c.second, d)
        room = 2 * d + max(scratch, more_scratch)  # the rest is stored before the scratch that both use
        return indices + more_indices, values + more_values, levels + more_levels, room

    def parts(c, d):
        return base.parts(c.first, d) + base.parts(c.second, d)

    def quantize(c, state, v, stream, symbols):
        first, second = _halves(c, symbols, v.size)
        rest = symbols.scratch[: v.size * v.itemsize // 4].view(v.dtype)
        rest[:] = v
        base.quantize(c.first, state, v, derive(stream, 0), first)
        base.accumulate(c.first, first, -1.0, rest)
        base.quantize(c.second, state, rest, derive(stream, 1), second)

    def accumulate(c, symbols, weight, out):
        first, second = _halves(c, symbols, out.size)
        base.accumulate(c.first, first, weight, out)
        base.accumulate(c.second, second, weight, out)

    def payload_bits(c, symbols, d):
        first, second = _halves(c, symbols, d)
        return base.payload_bits(c.first, first, d) + base.payload_bits(c.second, second, d)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return base.max_payload_bits(c.first, d, float_bits) + base.max_payload_bits(c.second, d, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        first, second = _halves(c, symbols, d)
        return base.pack(c.second, second, d, buffer, base.pack(c.first, first, d, buffer, cursor))

    def unpack(c, buffer, cursor, end, d, symbols):
        first, second = _halves(c, symbols, d)
        cursor = base.unpack(c.first, buffer, cursor, end, d, first)
        return base.unpack(c.second, buffer, cursor, end, d, second) if cursor >= 0 else -1

    def check(c, d: int) -> None:
        check_stateless("Residual: first", c.first, d)
        check_stateless("Residual: second", c.second, d)

    def omega(c, d: int) -> float:
        try:
            left_out = 1.0 - delta(c.first, d)
        except TypeError:
            left_out = omega(c.first, d)
        return omega(c.second, d) * left_out  # bounds.iconef_variance, for any first compressor


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _halves(c, symbols, d):
    """The symbols of both messages."""
    n, indices, values, levels, scratch = base.room_of(c.first, d)
    first = base.section(symbols, (0, 0, 0, 0, 2 * d), (n, indices, values, levels, scratch))
    return first, base.section(symbols, (n, indices, values, levels, 2 * d), base.room_of(c.second, d))


register(Residual, 53, lambda d: [Residual(TopK(max(1, d // 10)), Natural()), Residual(Natural(), Natural())])
