"""Vectors that are held as the bits of a message, and taken apart again when they are wanted.

A worker that compresses its memory saves something only if nothing else remains of it.  So between two steps there are
the payloads, one row of bytes for each worker, and nothing of length d; to take one apart there is one set of symbols
for all workers of a process.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors import CountSketch
from ..compressors.base import (
    Symbols,
    accumulate,
    buffer_bits,
    check,
    max_payload_bits,
    new_symbols,
    opening,
    pack,
    quantize,
    state_size,
    unpack,
)
from ..dispatch import kernel
from ..settings import require

__all__ = ["Held", "add_held", "check_error_compressor", "hold", "new_held", "payload_bytes"]


class Held(NamedTuple):
    """A payload for each worker, its length in bits (-1: nothing is held, which stands for 0), and common symbols."""

    payload: np.ndarray
    bits: np.ndarray
    symbols: Symbols


@kernel
def new_held(compressor, d, workers, room, wire):
    """Nothing, in ``room`` bytes for each worker."""
    payload, bits = np.zeros((workers, room), np.uint8), np.full(workers, -1, np.int64)
    return Held(payload, bits, new_symbols(compressor, d, wire))


@kernel
def hold(compressor, held, w, v, stream):
    """Hold C(v) for local worker w, in place of what it held."""
    quantize(compressor, np.empty(0), v, stream, held.symbols)
    held.payload[w] = 0
    held.bits[w] = pack(compressor, held.symbols, v.size, held.payload[w], 0)


@kernel
def add_held(compressor, held, w, weight, out):
    """Add weight * (what local worker w holds) to out; NaN where that cannot be read, so that the run ends."""
    end = held.bits[w]
    if end >= 0:
        if unpack(compressor, held.payload[w], 0, end, out.size, held.symbols) == end:
            accumulate(compressor, held.symbols, weight, out)
        else:  # the symbols, which all share, hold another worker's vector
            out[:] = np.nan


def payload_bytes(compressor, d: int, float_bits: int) -> int:
    """Room for the payload of any vector; for a compressor from elsewhere, also where it counts its bits wrongly."""
    trusted = type(compressor).__module__.startswith(__name__.partition(".")[0] + ".")
    bits = max_payload_bits(compressor, d, float_bits) if trusted else buffer_bits(compressor, d, float_bits)
    return -(-int(bits) // 64) * 8 + 8  # bits are written in words of 64


def check_error_compressor(name: str, compressor, d: int) -> None:
    """Raise ``ValueError`` unless memories of length d can be held in the compressor's messages."""
    check(compressor, d)
    plain = state_size(compressor, d) == 0 and opening(compressor, d) == 0
    require(plain, name, compressor, "a compressor without a state of its own and without numbers that workers share")
    if isinstance(compressor, CountSketch):
        counters = compressor.rows * compressor.width
        require(counters <= d, f"{name}: rows * width", counters, f"at most the length of the memory, {d}")
