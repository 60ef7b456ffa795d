"""Entropy coding of a compressor's symbols.

A compressor whose messages contain only counts, increasing positions, floats and levels, besides its name, d and its
settings, declares this by :data:`coded`; its symbols can then be packed generically: counts that the receiver cannot
know in a delta code, positions by Golomb-Rice, floats unchanged, and all levels of all parts together by
:mod:`theory.wire.entropy`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...core import generic, require, setting
from ...wire.bits import read_floats, write_floats
from ...wire.entropy import levels_bits, longest_levels, read_levels, write_levels
from ...wire.integers import delta_length, gap_bits, longest_gaps, read_delta, read_gaps, write_delta, write_gaps
from ..base import compress_into
from ..closed_forms import delta, omega, reference
from ..full_precision import Identity
from ..quantizers.geometric_levels import NUQSGD
from ..quantizers.qsgd import QSGD
from ..quantizers.ternary import ClippedTernGrad, Ternary, TernGrad
from ..registry import register
from ..sparsifiers.random_and_top_k import RandK, TopK
from .bucketed import Bucketed, bucket, bucket_count
from .forward import forwards

coded = generic(
    "coded",
    "coded(c, d) -> (positions, values, largest): its symbols' contents.  positions: how many increasing positions "
    "below d (0: none; -1: any number).  values: how many floats (-1: one for each position).  largest: the size of "
    "the largest level, of which there are then d in level[:d] (0: none).  Any such symbols restore to a vector.",
)


@coded.register(QSGD)
def _(c, d):
    return 0, 1, c.s


@coded.register(Ternary, TernGrad, ClippedTernGrad)
def _(c, d):
    return 0, 1, 1


@coded.register(NUQSGD)
def _(c, d):
    return 0, 1, c.s + 1


@coded.register(TopK, RandK)
def _(c, d):
    return c.k, -1, 0


@coded.register(Identity)
def _(c, d):
    return (-1, -1, 0) if c.sparse else (0, d, 0)


@coded.register(Bucketed)
def _(c, d):
    return 0, 0, coded(c.inner, c.size)[2]  # the levels; the rest is per bucket


@forwards
@setting
class EntropyCoded(NamedTuple):
    """The ``inner`` compressor with its symbols entropy coded.

    Parameters
    ----------
    inner : compressor
        A compressor that declares the contents of its symbols (``coded``): QSGD, NUQSGD, Ternary, TernGrad,
        ClippedTernGrad, TopK, RandK, Identity, and buckets of them.

    Examples
    --------
    >>> from theory import QSGD
    >>> EntropyCoded(QSGD(s=7))
    EntropyCoded(inner=QSGD(s=7, norm=2.0, code=Packed()))
    """

    inner: NamedTuple

    def domain(self) -> None:
        """Reject values outside the domain."""
        known = ", ".join(sorted(cls.__name__ for cls in coded.table))
        innermost = self.inner.inner if isinstance(self.inner, Bucketed) else self.inner
        allowed = f"a compressor whose symbols can be coded, or buckets of it: {known}"
        fitting = coded.implements(type(self.inner)) and coded.implements(type(innermost))
        require(fitting and not isinstance(innermost, Bucketed), "inner", self.inner, allowed, TypeError)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        return reference(c.inner, v, stream, wire)  # coding changes only the bits

    def compress_into(c, state, v, stream, symbols, out):
        compress_into(c.inner, state, v, stream, symbols, out)

    def payload_bits(c, symbols, d):
        bits = head_bits(c.inner, symbols, d)
        return bits + levels_bits(symbols.level[:d]) if coded(c.inner, d)[2] > 0 else bits

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        largest = coded(c.inner, d)[2]
        bits = longest_head(c.inner, d, float_bits)
        return bits + longest_levels(d, largest) if largest > 0 else bits

    def pack(c, symbols, d, buffer, cursor):
        cursor = pack_head(c.inner, symbols, d, buffer, cursor)
        return write_levels(buffer, cursor, symbols.level[:d]) if coded(c.inner, d)[2] > 0 else cursor

    def unpack(c, buffer, cursor, end, d, symbols):
        largest = coded(c.inner, d)[2]
        cursor = unpack_head(c.inner, buffer, cursor, end, d, symbols)
        if cursor < 0 or largest == 0:
            return cursor
        return read_levels(buffer, cursor, end, largest, symbols.level[:d])

    def omega(c, d: int) -> float:
        return omega(c.inner, d)

    def delta(c, d: int) -> float:
        return delta(c.inner, d)


# --- all but the levels, part by part ---------------------------------------------------------------------------------


def _head_bits(c, symbols, d):
    positions, values, _ = coded(c, d)
    bits, count = 8 * symbols.value.itemsize * symbols.count[1], symbols.count[0]
    if positions < 0:
        bits += delta_length(count + 1)
    return bits + gap_bits(symbols.index[:count], d) if positions != 0 else bits


def _longest_head(c, d, float_bits):
    positions, values, _ = coded(c, d)
    count = d if positions < 0 else positions
    bits = float_bits * (count if values < 0 else values)
    if positions < 0:
        return bits + delta_length(d + 1) + 2 * d
    return bits + longest_gaps(count, d) if positions > 0 else bits


def _pack_head(c, symbols, d, buffer, cursor):
    positions, values, _ = coded(c, d)
    count = symbols.count[0]
    if positions < 0:
        cursor = write_delta(buffer, cursor, count + 1)
    if positions != 0:
        cursor = write_gaps(buffer, cursor, symbols.index[:count], d)
    return write_floats(buffer, cursor, symbols.value[: symbols.count[1]])


def _unpack_head(c, buffer, cursor, end, d, symbols):
    count, values, largest = coded(c, d)
    if count < 0:
        count, cursor = read_delta(buffer, cursor, end, d + 1)
        if count < 0:
            return -1
        count -= 1
    if count > d:
        return -1
    if count > 0:
        cursor = read_gaps(buffer, cursor, end, d, symbols.index[:count])
        if cursor < 0:
            return -1
    if values < 0:
        values = count
    if cursor + 8 * symbols.value.itemsize * values > end:
        return -1
    symbols.count[0], symbols.count[1], symbols.count[2] = count, values, d if largest > 0 else 0
    return read_floats(buffer, cursor, symbols.value[:values])


head_bits = generic("head_bits", "head_bits(c, symbols, d) -> int: length of all but the levels.", _head_bits)
longest_head = generic("longest_head", "longest_head(c, d, float_bits) -> int: bound of head_bits.", _longest_head)
pack_head = generic(
    "pack_head",
    "pack_head(c, symbols, d, buffer, cursor) -> int: as pack, all but levels.",
    _pack_head,
    inline=False,
)
unpack_head = generic(
    "unpack_head",
    "unpack_head(c, buffer, cursor, end, d, symbols) -> int: as unpack, all but the levels.",
    _unpack_head,
    inline=False,
)


@head_bits.register(Bucketed)
def _(c, symbols, d):
    bits = 0
    for b in range(bucket_count(c, d)):
        length = min(c.size, d - b * c.size)
        bits += head_bits(c.inner, bucket(c, symbols, b, length, d), length)
    return bits


@longest_head.register(Bucketed)
def _(c, d, float_bits):
    return bucket_count(c, d) * longest_head(c.inner, min(c.size, d), float_bits)


@pack_head.register(Bucketed)
def _(c, symbols, d, buffer, cursor):
    for b in range(bucket_count(c, d)):
        length = min(c.size, d - b * c.size)
        cursor = pack_head(c.inner, bucket(c, symbols, b, length, d), length, buffer, cursor)
    return cursor


@unpack_head.register(Bucketed)
def _(c, buffer, cursor, end, d, symbols):
    for b in range(bucket_count(c, d)):
        length = min(c.size, d - b * c.size)
        cursor = unpack_head(c.inner, buffer, cursor, end, length, bucket(c, symbols, b, length, d))
        if cursor < 0:
            return -1
    return cursor


register(
    EntropyCoded,
    52,
    lambda d: [
        EntropyCoded(QSGD(7)),
        EntropyCoded(TopK(max(1, d // 10))),
        EntropyCoded(Bucketed(QSGD(7), 16)),
    ],
)
