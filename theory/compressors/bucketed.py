"""A compressor applied to consecutive buckets of the vector, each with its own randomness."""

from __future__ import annotations

from typing import NamedTuple

from ..dispatch import kernel
from ..random import derive
from ..settings import require, setting
from .base import (
    Symbols,
    accumulate,
    capacity,
    check,
    compress_into,
    delta,
    expected_nonzeros,
    expected_payload_bits,
    max_payload_bits,
    omega,
    pack,
    parts,
    payload_bits,
    quantize,
    state_size,
    unpack,
)
from .checks import check_dimension

__all__ = ["Bucketed"]


@setting
class Bucketed(NamedTuple):
    """The ``inner`` compressor on consecutive buckets of ``size`` coordinates; the last one may be shorter.

    Parameters
    ----------
    inner : compressor
    size : int
        At least 1.

    Examples
    --------
    >>> from theory import QSGD
    >>> Bucketed(QSGD(s=7), size=512)
    Bucketed(inner=QSGD(s=7, norm=2.0, elias=False), size=512)
    """

    inner: NamedTuple
    size: int

    def domain(self):
        """Refuse values outside the domain."""
        require(self.size >= 1, "size", self.size, "a whole number, at least 1")
        require(quantize.implements(type(self.inner)), "inner", self.inner, "a compressor, such as QSGD(7)", TypeError)


@kernel
def _bucket(c, symbols, b, length):
    """The room of bucket number b within the symbols of all buckets."""
    n = 3 * parts(c.inner, c.size)
    indices, values, levels, _ = capacity(c.inner, c.size)
    _, _, _, scratch = capacity(c.inner, length)
    return Symbols(
        symbols.count[n * b : n * (b + 1)],
        symbols.index[indices * b : indices * (b + 1)],
        symbols.value[values * b : values * (b + 1)],
        symbols.level[levels * b : levels * (b + 1)],
        symbols.scratch[:scratch],
    )


@kernel
def _buckets(c, d):
    return (d + c.size - 1) // c.size


@capacity.register(Bucketed)
def _(c, d):
    n = _buckets(c, d)
    indices, values, levels, scratch = capacity(c.inner, c.size)
    return n * indices, n * values, n * levels, scratch


@parts.register(Bucketed)
def _(c, d):
    return _buckets(c, d) * parts(c.inner, c.size)


@state_size.register(Bucketed)
def _(c, d):
    return _buckets(c, d) * state_size(c.inner, c.size)


@quantize.register(Bucketed)
def _(c, state, v, stream, symbols):
    room = state_size(c.inner, c.size)
    for b in range(_buckets(c, v.size)):
        piece = v[b * c.size : min((b + 1) * c.size, v.size)]
        kept = state[b * room : b * room + state_size(c.inner, piece.size)]
        quantize(c.inner, kept, piece, derive(stream, b), _bucket(c, symbols, b, piece.size))


@compress_into.register(Bucketed)
def _(c, state, v, stream, symbols, out):
    room = state_size(c.inner, c.size)
    for b in range(_buckets(c, v.size)):
        begin, end = b * c.size, min((b + 1) * c.size, v.size)
        kept = state[b * room : b * room + state_size(c.inner, end - begin)]
        symbols_here = _bucket(c, symbols, 0, end - begin)  # the same for all buckets: it stays in the cache
        compress_into(c.inner, kept, v[begin:end], derive(stream, b), symbols_here, out[begin:end])


@accumulate.register(Bucketed)
def _(c, symbols, weight, out):
    for b in range(_buckets(c, out.size)):
        piece = out[b * c.size : min((b + 1) * c.size, out.size)]
        accumulate(c.inner, _bucket(c, symbols, b, piece.size), weight, piece)


@payload_bits.register(Bucketed)
def _(c, symbols, d):
    bits = 0
    for b in range(_buckets(c, d)):
        length = min(c.size, d - b * c.size)
        bits += payload_bits(c.inner, _bucket(c, symbols, b, length), length)
    return bits


@max_payload_bits.register(Bucketed)
def _(c, d, float_bits):
    return _buckets(c, d) * max_payload_bits(c.inner, c.size, float_bits)


@pack.register(Bucketed)
def _(c, symbols, d, buffer, cursor):
    for b in range(_buckets(c, d)):
        length = min(c.size, d - b * c.size)
        cursor = pack(c.inner, _bucket(c, symbols, b, length), length, buffer, cursor)
    return cursor


@unpack.register(Bucketed)
def _(c, buffer, cursor, end, d, symbols):
    for b in range(_buckets(c, d)):
        length = min(c.size, d - b * c.size)
        cursor = unpack(c.inner, buffer, cursor, end, length, _bucket(c, symbols, b, length))
        if cursor < 0:
            return -1
    return cursor


# --- closed forms -----------------------------------------------------------------------------------------------------


def lengths(c: Bucketed, d: int) -> list[tuple[int, int]]:
    """The different lengths of buckets, each with how many there are."""
    full, rest = divmod(d, c.size)
    return [(length, times) for length, times in ((c.size, full), (rest, 1)) if length and times]


def pieces(c: Bucketed, v) -> list:
    """The vector cut into its buckets."""
    return [v[start : start + c.size] for start in range(0, len(v), c.size)]


@check.register
def _(c: Bucketed, d: int) -> None:
    check_dimension(d)
    for length, _ in lengths(c, d):
        try:
            check(c.inner, length)
        except ValueError as error:
            raise ValueError(f"Bucketed(size={c.size}) has a bucket of {length} coordinates: {error}") from None


@omega.register
def _(c: Bucketed, d: int) -> float:
    return max(omega(c.inner, length) for length, _ in lengths(c, d))


@delta.register
def _(c: Bucketed, d: int) -> float:
    return min(delta(c.inner, length) for length, _ in lengths(c, d))


@expected_nonzeros.register
def _(c: Bucketed, v) -> float:
    return sum(expected_nonzeros(c.inner, piece) for piece in pieces(c, v))


@expected_payload_bits.register
def _(c: Bucketed, v) -> float:
    return sum(expected_payload_bits(c.inner, piece) for piece in pieces(c, v))
