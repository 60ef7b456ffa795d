"""Sparsifiers: k coordinates, or those above a threshold, are sent with their positions.

k is a number or a fraction of the vector's length. With a threshold the number of coordinates varies.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...core import inherits, require, setting
from ...core.vectors import entry, length
from ...wire.bits import bits_for, read, read_floats, write, write_floats
from ..kernels.norms import norm_of
from ..kernels.selection import (
    CountedPositions,
    Entries,
    add_entries,
    draw_subset,
    entries_bits,
    largest,
    list_at_least,
    plain_subset,
    read_pairs,
    read_positions,
    sort_indices,
    write_pairs,
    write_positions,
)
from ..registry import check_kept, register

# --- Compressors that send a fraction of the entries -----------------------------------------------------------------


class Share(NamedTuple):
    """The compressor ``TopK(0.01)`` before a run knows d: then k = 0.01 d, rounded, at least 1.

    Examples
    --------
    >>> from theory import TopK
    >>> TopK(0.01), TopK(0.01).of_length(1000), TopK(0.01).of_length(20)
    (TopK(k=0.01), TopK(k=10), TopK(k=1))
    """

    kind: type
    fields: tuple

    def of_length(self, d: int) -> Any:
        """The compressor for vectors of length d."""
        share, *others = self.fields
        return self.kind(max(1, round(share * d)), *others)

    def __repr__(self) -> str:
        shown = zip(self.kind._fields, self.fields, strict=True)  # type: ignore[attr-defined]
        return f"{self.kind.__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"


def share_of(raw: Any) -> Share | None:
    """A `Share` for a compressor whose k is between 0 and 1; None for others."""
    return Share(type(raw), tuple(raw)) if isinstance(raw.k, float) and 0.0 < raw.k < 1.0 else None


def of_length(c: Any, d: int) -> Any:
    """The compressor ``c`` for vectors of length d."""
    return c.of_length(d) if isinstance(c, Share) else c


# --- Sparsifiers -----------------------------------------------------------------------------------------------------

__all__ = ["RandK", "TopK", "draw_subset", "sort_indices"]

KEY_BITS = 64


class Kept:
    """The common functions of compressors that send k entries in the order of their positions."""

    k: int

    def accumulate(c, symbols, weight, out):
        add_entries(symbols, weight, out)

    def restore(c, symbols, out):
        begin = 0
        for p in range(symbols.count[0]):  # zeros up to an entry, then the entry: its cache line is loaded
            j = np.int64(symbols.index[p])
            out[begin:j] = 0.0
            out[j] = symbols.value[p] + 0.0
            begin = j + 1  # type: ignore[assignment]
        out[begin:] = 0.0

    def positions_bits(c, symbols, d):
        return c.k * bits_for(d)

    def pack_positions(c, symbols, d, buffer, cursor):
        return write_positions(buffer, cursor, c.k, d, symbols.index)

    def unpack_positions(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = c.k
        return read_positions(buffer, cursor, end, c.k, d, symbols.index)

    def fewest_values(c, d: int) -> int:
        return c.k

    def check(c, d: int) -> None:
        check_kept(c, d)


@inherits(Kept)
@setting
class TopK(NamedTuple):
    """The k entries with the largest absolute values; ties go to the lowest index.

    Parameters
    ----------
    k : int or float
        From 1 to the length d of the vector; in a run also a fraction of it, below 1: 0.01 is d/100, rounded.

    Examples
    --------
    >>> TopK(k=10)
    TopK(k=10)
    """

    k: int

    def _deferred(raw: Any) -> Any:
        return share_of(raw)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.k >= 1, "k", self.k, "an integer, at least 1")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(-np.abs(v), kind="stable")  # ties keep their order
        index = np.sort(order[: c.k])
        return index, v[index]

    def sends_entries(c) -> bool:
        return True

    def capacity(c, d):
        return c.k, c.k, 0, d

    def quantize(c, state, v, stream, symbols):
        largest(v, c.k, symbols.index, symbols.scratch)
        for p in range(c.k):
            symbols.value[p] = entry(v, symbols.index[p])
        symbols.count[0] = symbols.count[1] = c.k

    def fixed_bits(c, d, float_bits):
        return c.k * (bits_for(d) + float_bits)

    def pack(c, symbols, d, buffer, cursor):
        return write_pairs(buffer, cursor, c.k, d, symbols.index, symbols.value)

    def unpack(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = c.k
        return read_pairs(buffer, cursor, end, c.k, d, symbols.index, symbols.value)

    def delta(c, d: int) -> float:
        return bounds.top_k_contraction(d=d, k=c.k)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(min(c.k, int(np.count_nonzero(v))))


@inherits(Kept)
@setting
class RandK(NamedTuple):
    """k coordinates drawn uniformly without replacement.

    Parameters
    ----------
    k : int or float
        From 1 to the length d of the vector; in a run also a fraction of it, below 1: 0.01 is d/100, rounded.
    unbiased : bool
        Multiply the message by d/k, which makes it unbiased with the variance factor d/k - 1.  Otherwise the operator
        is
        a contraction with delta = k/d.
    shared : bool
        All workers draw the same coordinates.  A message then has the key of the draw and no positions, and the
        messages of several workers can be added before they are decoded.

    Examples
    --------
    >>> RandK(k=10, unbiased=True)
    RandK(k=10, unbiased=True, shared=False)
    """

    k: int
    unbiased: bool = False
    shared: bool = False

    def _deferred(raw: Any) -> Any:
        return share_of(raw)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.k >= 1, "k", self.k, "an integer, at least 1")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        index = plain_subset(stream, v.size, c.k)
        return index, (v.size / c.k if c.unbiased else 1.0) * v[index]

    def sends_entries(c) -> bool:
        return True

    def sends_evenly(c) -> bool:
        return True

    def capacity(c, d):
        return 2 * c.k + (2 if c.shared else 0), c.k, 0, 0  # positions, space to sort in, and the key of the draw

    def quantize(c, state, v, stream, symbols):
        d, index = length(v), symbols.index[: c.k]
        draw_subset(stream, d, index, symbols.index[c.k : 2 * c.k])
        factor = d / c.k if c.unbiased else 1.0
        for p in range(c.k):
            symbols.value[p] = factor * entry(v, index[p])
        if c.shared:
            symbols.index[2 * c.k] = np.uint32(np.uint64(stream) >> np.uint64(32))
            symbols.index[2 * c.k + 1] = np.uint32(np.uint64(stream) & np.uint64(0xFFFFFFFF))
        symbols.count[0] = symbols.count[1] = c.k

    def shares_stream(c):
        return c.shared

    def summed(c, d):
        return (0, c.k) if c.shared else (0, 0)

    def fixed_bits(c, d, float_bits):
        return (KEY_BITS if c.shared else c.k * bits_for(d)) + c.k * float_bits

    def pack(c, symbols, d, buffer, cursor):
        if not c.shared:
            return write_pairs(buffer, cursor, c.k, d, symbols.index, symbols.value)
        cursor = write(buffer, cursor, symbols.index[2 * c.k], 32)
        cursor = write(buffer, cursor, symbols.index[2 * c.k + 1], 32)
        return write_floats(buffer, cursor, symbols.value[: c.k])

    def unpack(c, buffer, cursor, end, d, symbols):
        symbols.count[0] = symbols.count[1] = c.k
        if not c.shared:
            return read_pairs(buffer, cursor, end, c.k, d, symbols.index, symbols.value)
        if c.k > d or cursor + KEY_BITS + c.k * 8 * symbols.value.itemsize > end:
            return -1
        high, low = read(buffer, cursor, 32), read(buffer, cursor + 32, 32)
        draw_subset((high << np.uint64(32)) | low, d, symbols.index[: c.k], symbols.index[c.k : 2 * c.k])
        symbols.index[2 * c.k], symbols.index[2 * c.k + 1] = high, low
        return read_floats(buffer, cursor + KEY_BITS, symbols.value[: c.k])

    def delta(c, d: int) -> float:
        if c.unbiased:
            raise TypeError("RandK(unbiased=True) multiplies by d/k and is not meant to contract: see omega")
        return bounds.rand_k_contraction(d=d, k=c.k)

    def omega(c, d: int) -> float:
        if not c.unbiased:
            raise TypeError("RandK is not unbiased: omega is not defined, see delta (or RandK(k, unbiased=True))")
        return bounds.rand_k_variance(d=d, k=c.k)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return c.k / len(v) * np.count_nonzero(v)


register(TopK, 2, lambda d: [TopK(max(1, d // 10))])

register(RandK, 3, lambda d: [RandK(k := max(1, d // 10)), RandK(k, unbiased=True), RandK(max(1, d // 3), True, True)])


# --- Entries above a threshold ---------------------------------------------------------------------------------------


@inherits(Entries, CountedPositions)
@setting
class Threshold(NamedTuple):
    """The non-zero entries of at least a given size.

    Parameters
    ----------
    size : float
        Entries with ``|v_j| >= size`` are sent.
    relative : bool
        Whether the size is relative to the largest ``|v_j|``, and at most 1. Then the operator is a contraction. With
        an absolute size it is not, as possibly no entry is sent.

    Examples
    --------
    >>> Threshold(size=0.01)
    Threshold(size=0.01, relative=False)
    """

    size: float
    relative: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.size < math.inf, "size", self.size, "a finite number above 0")
        require(not self.relative or self.size <= 1.0, "size", self.size, "at most 1 where it is relative")

    def sent_entries(c, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
        least = c.size * norm_of(v, math.inf) if c.relative else c.size
        index = np.flatnonzero((np.abs(v) >= least) & (v != 0.0))
        return index, v[index]

    def capacity(c, d):
        return d, d, 0, 0

    def quantize(c, state, v, stream, symbols):
        least = c.size * norm_of(v, math.inf) if c.relative else c.size
        count = list_at_least(v, least, symbols.index)
        for p in range(count):
            symbols.value[p] = v[symbols.index[p]]
        symbols.count[0] = symbols.count[1] = count

    def delta(c, d: int) -> float:
        if not c.relative:
            raise TypeError(
                "Threshold with an absolute size is no contraction, as it may send nothing: delta is not defined, see "
                "Threshold(size, relative=True) or TopK"
            )
        return bounds.threshold_contraction(d=d, size=c.size)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(_kept(c, v))

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return float(entries_bits(_kept(c, v), len(v), len(v), 32))


# --- the fast path ----------------------------------------------------------------------------------------------------


def _kept(c: Any, v: Any) -> int:
    sizes = [abs(float(x)) for x in v]
    least = c.size * max(sizes) if c.relative else c.size
    return sum(size >= least and size > 0.0 for size in sizes)


register(Threshold, 9, lambda d: [Threshold(0.5), Threshold(0.5, relative=True)])
