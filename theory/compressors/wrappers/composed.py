"""Two compressors: the second is applied to the values that the first sends, or to its error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import kernel, require, setting
from ...core.random import derive
from .. import base
from ..closed_forms import check, check_stateless, delta, omega, reference, sent_entries
from ..full_precision import Identity
from ..kernels.selection import fewest_values, pack_positions, positions_bits, unpack_positions
from ..quantizers.geometric_levels import Natural
from ..quantizers.qsgd import QSGD
from ..registry import check_compressor, check_dimension, register
from ..sparsifiers.random_and_top_k import RandK, TopK

# --- One compressor applied to the values that another one sends -----------------------------------------------------


@setting
class Composed(NamedTuple):
    """The ``inner`` compressor, a sparsifier, chooses coordinates; the ``outer`` one compresses their values.

    The decoded vector is outer(inner(v)), where ``outer`` compresses the short vector of values, in place of the floats
    that ``inner`` would send; positions are sent as before.

    Parameters
    ----------
    outer : compressor
        The compressor of the values.
    inner : compressor
        A compressor whose decoded vector is linear in the values of its message: TopK, RandK, RandomBlock, Bernoulli,
        Threshold, Identity and others for which ``pack_positions`` is registered.

    Notes
    -----
    Horvath et al., "Natural compression" (MSML 2022), Theorem 5: for two unbiased compressors the variance factor is at
    most omega1 omega2 + omega1 + omega2, with omega1 that of ``outer`` at the length of the short vector. Workers round
    with their own random numbers even if they share those of ``inner``.

    Examples
    --------
    >>> from theory import QSGD, RandK
    >>> Composed(QSGD(7), RandK(10, unbiased=True))
    Composed(outer=QSGD(s=7, norm=2.0, code=Packed()), inner=RandK(k=10, unbiased=True, shared=False))
    """

    outer: NamedTuple
    inner: NamedTuple

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_compressor("outer", self.outer)
        check_compressor("inner", self.inner)
        known = ", ".join(sorted(cls.__name__ for cls in pack_positions.table))
        require(pack_positions.implements(type(self.inner)), "inner", self.inner, f"one of {known}", TypeError)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        index, value = sent_entries(c.inner, v.astype(float), derive(stream, 0))
        out = np.zeros(v.size)
        if index.size > 0:
            out[index] = reference(c.outer, value.astype(wire), derive(stream, 1), wire).astype(wire)
        return out

    def capacity(c, d):
        indices, values, levels, scratch = base.capacity(c.inner, d)
        more_indices, more_values, more_levels, more_scratch = base.capacity(c.outer, values)
        return indices + more_indices, values + more_values, levels + more_levels, scratch + more_scratch

    def parts(c, d):
        return base.parts(c.inner, d) + base.parts(c.outer, _values(c, d))

    def state_size(c, d):
        return base.state_size(c.inner, d) + base.state_size(c.outer, _values(c, d))

    def quantize(c, state, v, stream, symbols):
        d = v.size
        inside, kept = _inside(c, symbols, d), base.state_size(c.inner, d)
        base.quantize(c.inner, state[:kept], v, derive(stream, 0), inside)
        n = inside.count[1]
        if n > 0:
            outside, short = _outside(c, symbols, d, n), inside.value[:n]
            base.quantize(c.outer, state[kept : kept + base.state_size(c.outer, n)], short, derive(stream, 1), outside)
            base.restore(c.outer, outside, short)  # from here on the inner values are those of the receiver

    def accumulate(c, symbols, weight, out):
        base.accumulate(c.inner, _inside(c, symbols, out.size), weight, out)

    def payload_bits(c, symbols, d):
        inside = _inside(c, symbols, d)
        n = inside.count[1]
        bits = positions_bits(c.inner, inside, d)
        return bits + base.payload_bits(c.outer, _outside(c, symbols, d, n), n) if n > 0 else bits

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return base.max_payload_bits(c.inner, d, float_bits) + base.max_payload_bits(c.outer, _values(c, d), float_bits)

    def pack(c, symbols, d, buffer, cursor):
        inside = _inside(c, symbols, d)
        n = inside.count[1]
        cursor = pack_positions(c.inner, inside, d, buffer, cursor)
        return base.pack(c.outer, _outside(c, symbols, d, n), n, buffer, cursor) if n > 0 else cursor

    def unpack(c, buffer, cursor, end, d, symbols):
        inside = _inside(c, symbols, d)
        cursor = unpack_positions(c.inner, buffer, cursor, end, d, inside)
        if cursor < 0:
            return -1
        n = inside.count[1]
        if n > 0:
            outside = _outside(c, symbols, d, n)
            cursor = base.unpack(c.outer, buffer, cursor, end, n, outside)
            if cursor >= 0:
                base.restore(c.outer, outside, inside.value[:n])
        return cursor

    def check(c, d: int) -> None:
        check_dimension(d)
        check(c.inner, d)
        for n in {fewest_values(c.inner, d), _most_values(c, d)}:
            try:
                check(c.outer, n)
            except ValueError as error:
                raise ValueError(f"Composed: its inner compressor may send {n} values: {error}") from None

    def omega(c, d: int) -> float:
        return bounds.composed_variance(omega(c.outer, _most_values(c, d)), omega(c.inner, d))

    def delta(c, d: int) -> float:
        kept, n = delta(c.inner, d), _most_values(c, d)
        try:
            outer = delta(c.outer, n)
        except TypeError:
            outer = 1.0 - omega(c.outer, n)
        if outer <= 0.0:
            raise TypeError(
                f"{c!r} is not a contraction for d = {d}: the variance factor of its outer compressor is not below 1"
            )
        return bounds.composed_contraction(outer, kept)


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _values(c, d):
    """Maximum number of values in the inner message: the maximum length of the short vector."""
    _, values, _, _ = base.capacity(c.inner, d)
    return values


@kernel
def _inside(c, symbols, d):
    return base.section(symbols, (0, 0, 0, 0, 0), base.room_of(c.inner, d))


@kernel
def _outside(c, symbols, d, n):
    """The symbols of the outer message, for a short vector of length n."""
    return base.section(symbols, base.room_of(c.inner, d), base.room_of(c.outer, n))


def _most_values(c: Composed, d: int) -> int:
    return int(base.capacity(c.inner, d)[1])


register(
    Composed,
    51,
    lambda d: [Composed(QSGD(7), RandK(max(1, d // 10), unbiased=True)), Composed(QSGD(7), Identity(sparse=True))],
)


# --- Two compressors, one after the other ----------------------------------------------------------------------------


@setting
class Residual(NamedTuple):
    """A(v) + B(v - A(v)): the second compressor B compresses the error of the first compressor A.

    If B is unbiased, so is the sum; its variance factor is that of B times the relative error of A.

    Parameters
    ----------
    first, second : compressor
        A and B, both without state.

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
