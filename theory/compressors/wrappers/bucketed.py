"""A compressor applied to consecutive buckets of the vector, each with its own randomness."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...core import kernel, require, setting, uncounted
from ...core.random import derive
from .. import base
from ..closed_forms import check, delta, expected_nonzeros, expected_payload_bits, omega, reference
from ..quantizers.qsgd import QSGD
from ..registry import LARGEST_D, check_compressor, check_dimension, register
from ..sparsifiers.random_and_top_k import RandK


@setting
class Bucketed(NamedTuple):
    """The ``inner`` compressor on consecutive buckets of ``size`` coordinates; the last one may be shorter.

    Parameters
    ----------
    inner : compressor
        The compressor of each bucket.
    size : int
        At least 1.

    Examples
    --------
    >>> from theory import QSGD
    >>> Bucketed(QSGD(s=7), size=512)
    Bucketed(inner=QSGD(s=7, norm=2.0, code=Packed()), size=512)
    """

    inner: NamedTuple
    size: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1 <= self.size <= LARGEST_D, "size", self.size, f"an integer from 1 to {LARGEST_D}")
        check_compressor("inner", self.inner)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        buckets = [v[begin : begin + c.size] for begin in range(0, v.size, c.size)]
        return np.concatenate([reference(c.inner, x, derive(stream, b), wire) for b, x in enumerate(buckets)])

    def capacity(c, d):
        n = bucket_count(c, d)
        indices, values, levels, scratch = base.capacity(c.inner, min(c.size, d))
        return n * indices, n * values, n * levels, scratch

    def parts(c, d):
        return bucket_count(c, d) * base.parts(c.inner, min(c.size, d))

    def state_size(c, d):
        return bucket_count(c, d) * base.state_size(c.inner, min(c.size, d))

    def quantize(c, state, v, stream, symbols):
        room = base.state_size(c.inner, min(c.size, v.size))
        for b in range(bucket_count(c, v.size)):
            piece = v[b * c.size : min((b + 1) * c.size, v.size)]
            kept = state[b * room : b * room + base.state_size(c.inner, piece.size)]
            base.quantize(c.inner, kept, piece, derive(stream, b), bucket(c, symbols, b, piece.size, v.size))

    def compress_into(c, state, v, stream, symbols, out):
        _compress_buckets(c, state, v, stream, symbols, out)

    def accumulate(c, symbols, weight, out):
        for b in range(bucket_count(c, out.size)):
            piece = out[b * c.size : min((b + 1) * c.size, out.size)]
            base.accumulate(c.inner, bucket(c, symbols, b, piece.size, out.size), weight, piece)

    def shares_stream(c):
        return base.shares_stream(c.inner)

    def summed(c, d):
        size, n = min(c.size, d), bucket_count(c, d)
        low, high = base.summed(c.inner, size)
        _, last = base.summed(c.inner, d - (n - 1) * c.size)
        _, values, _, _ = base.capacity(c.inner, size)
        return 0, (n - 1) * values + last if low == 0 and high == values else 0

    def opening(c, d):
        return bucket_count(c, d) * base.opening(c.inner, min(c.size, d))

    def opening_is_maximum(c):
        return base.opening_is_maximum(c.inner)

    def propose(c, state, v, stream, numbers):
        for b in range(bucket_count(c, v.size)):
            kept, own = _own(c, state, numbers, b, v.size)
            base.propose(c.inner, kept, v[b * c.size : min((b + 1) * c.size, v.size)], derive(stream, b), own)

    def settle(c, d, state, numbers):
        for b in range(bucket_count(c, d)):
            kept, own = _own(c, state, numbers, b, d)
            base.settle(c.inner, min(c.size, d - b * c.size), kept, own)

    def update_state(c, d, state, symbols):
        room = base.state_size(c.inner, min(c.size, d))
        for b in range(bucket_count(c, d)):
            length = min(c.size, d - b * c.size)
            kept = state[b * room : b * room + base.state_size(c.inner, length)]
            base.update_state(c.inner, length, kept, bucket(c, symbols, b, length, d))

    def payload_bits(c, symbols, d):
        bits = 0
        for b in range(bucket_count(c, d)):
            length = min(c.size, d - b * c.size)
            bits += base.payload_bits(c.inner, bucket(c, symbols, b, length, d), length)
        return bits

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return bucket_count(c, d) * base.max_payload_bits(c.inner, min(c.size, d), float_bits)

    def pack(c, symbols, d, buffer, cursor):
        return _pack_buckets(c, symbols, d, buffer, cursor)

    def unpack(c, buffer, cursor, end, d, symbols):
        return _unpack_buckets(c, buffer, cursor, end, d, symbols)

    def check(c, d: int) -> None:
        check_dimension(d)
        for length, _ in lengths(c, d):
            try:
                check(c.inner, length)
            except ValueError as error:
                raise ValueError(f"Bucketed(size={c.size}) has a bucket of {length} coordinates: {error}") from None

    def omega(c, d: int) -> float:
        return max(omega(c.inner, length) for length, _ in lengths(c, d))

    def delta(c, d: int) -> float:
        return min(delta(c.inner, length) for length, _ in lengths(c, d))

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return sum(expected_nonzeros(c.inner, piece) for piece in pieces(c, v))

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return sum(expected_payload_bits(c.inner, piece) for piece in pieces(c, v))


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def bucket_count(c, d):
    """Number of buckets of a vector of length d."""
    return (d + c.size - 1) // c.size


@kernel
def _room(c, length, d):
    """Numbers of counts, indices, values and levels of a bucket in a vector of length d, and scratch for ``length``."""
    size = min(c.size, d)  # the size depends on d, not on what a foreign message claims
    indices, values, levels, _ = base.capacity(c.inner, size)
    _, _, _, scratch = base.capacity(c.inner, length)
    return 3 * base.parts(c.inner, size), indices, values, levels, scratch


def _bucket(c, symbols, b, length, d):
    """The symbols of bucket number b, for ``length`` coordinates, within those of a vector of length d."""
    n, indices, values, levels, scratch = _room(c, length, d)
    return base.Symbols(
        symbols.count[n * b : n * (b + 1)],
        symbols.index[indices * b : indices * (b + 1)],
        symbols.value[values * b : values * (b + 1)],
        symbols.level[levels * b : levels * (b + 1)],
        symbols.scratch[:scratch],
    )


bucket = kernel(_bucket)
_views = uncounted(kernel(_bucket))  # for callers that do not count references either


@uncounted
@kernel
def _compress_buckets(c, state, v, stream, symbols, out):
    room = base.state_size(c.inner, min(c.size, v.size))
    for b in range(bucket_count(c, v.size)):
        begin, end = b * c.size, min((b + 1) * c.size, v.size)
        kept = state[b * room : b * room + base.state_size(c.inner, end - begin)]
        here = _views(c, symbols, 0, end - begin, v.size)  # reused by all buckets: it stays in cache
        base.compress_into(c.inner, kept, v[begin:end], derive(stream, b), here, out[begin:end])


@uncounted
@kernel
def _pack_buckets(c, symbols, d, buffer, cursor):
    for b in range(bucket_count(c, d)):
        length = min(c.size, d - b * c.size)
        cursor = base.pack(c.inner, _views(c, symbols, b, length, d), length, buffer, cursor)
    return cursor


@uncounted
@kernel
def _unpack_buckets(c, buffer, cursor, end, d, symbols):
    for b in range(bucket_count(c, d)):
        length = min(c.size, d - b * c.size)
        cursor = base.unpack(c.inner, buffer, cursor, end, length, _views(c, symbols, b, length, d))
        if cursor < 0:
            return -1
    return cursor


@kernel
def _own(c, state, numbers, b, d):
    """Bucket number b's part of a state and of the numbers of an opening."""
    room, several = base.state_size(c.inner, min(c.size, d)), base.opening(c.inner, min(c.size, d))
    length = min(c.size, d - b * c.size)
    kept = state[b * room : b * room + base.state_size(c.inner, length)]
    return kept, numbers[b * several : b * several + base.opening(c.inner, length)]


# --- closed forms -----------------------------------------------------------------------------------------------------


def lengths(c: Bucketed, d: int) -> list[tuple[int, int]]:
    """The distinct lengths of buckets, each with its count."""
    full, rest = divmod(d, c.size)
    return [(length, times) for length, times in ((c.size, full), (rest, 1)) if length and times]


def pieces(c: Bucketed, v: np.ndarray) -> list:
    """The vector cut into its buckets."""
    return [v[start : start + c.size] for start in range(0, len(v), c.size)]


register(Bucketed, 5, lambda d: [Bucketed(RandK(1, unbiased=True), 5), Bucketed(QSGD(7), 16)])
