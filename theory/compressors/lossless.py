"""Full precision in the shorter of two messages: all coordinates, or the non-zeros with their positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import kernel, setting
from ..core.vectors import entry
from ..wire.bits import bits_for, read, write
from .base import accumulate, pack, payload_bits, quantize, unpack
from .closed_forms import delta, expected_nonzeros, expected_payload_bits, omega
from .identity import COUNT_BITS, Identity
from .registry import register


@setting
class Lossless(NamedTuple):
    """The vector itself, rounded to the floats of the wire; one bit selects one of the two messages of `Identity`.

    Examples
    --------
    >>> Lossless()
    Lossless()
    """

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        index = np.flatnonzero(v)
        return index, v[index]

    def capacity(c, d):
        return d, d, 0, 0

    def quantize(c, state, v, stream, symbols):
        d, width = symbols.value.size, 8 * symbols.value.itemsize
        others = 0
        for j in range(d):
            others += entry(v, j) != 0.0
        sparse = COUNT_BITS + others * (bits_for(d) + width) < d * width
        quantize(Identity(sparse), state, v, stream, symbols)

    def accumulate(c, symbols, weight, out):
        accumulate(Identity(is_sparse(symbols)), symbols, weight, out)

    def payload_bits(c, symbols, d):
        return 1 + payload_bits(Identity(is_sparse(symbols)), symbols, d)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return 1 + d * float_bits

    def pack(c, symbols, d, buffer, cursor):
        sparse = is_sparse(symbols)
        return pack(Identity(sparse), symbols, d, buffer, write(buffer, cursor, 1 if sparse else 0, 1))

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + 1 > end:
            return -1
        sparse = read(buffer, cursor, 1) == 1
        cursor = unpack(Identity(sparse), buffer, cursor + 1, end, d, symbols)
        return cursor if sparse == is_sparse(symbols) else -1

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return 1.0 + min(expected_payload_bits(Identity(sparse), v) for sparse in (False, True))


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def is_sparse(symbols: Any) -> bool:
    """Whether the symbols list non-zeros: fewer numbers than coordinates (the length of ``value``)."""
    return symbols.count[1] < symbols.value.size


omega.register(Lossless, omega.dispatch(Identity))
delta.register(Lossless, delta.dispatch(Identity))
expected_nonzeros.register(Lossless, expected_nonzeros.dispatch(Identity))


register(Lossless, 54, lambda d: [Lossless()])
