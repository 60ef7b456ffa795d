"""One compressor applied to the values that another one sends."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import kernel, require, setting
from ...core.random import derive
from .. import base
from ..checks import check_compressor, check_dimension
from ..closed_forms import check, delta, omega, reference, sent_entries
from ..identity import Identity
from ..kernels.coo import fewest_values, pack_positions, positions_bits, unpack_positions
from ..qsgd import QSGD
from ..registry import register
from ..sparsifiers import RandK


@setting
class Composed(NamedTuple):
    """The ``inner`` compressor, a sparsifier, chooses coordinates; the ``outer`` one compresses their values.

    The restored vector is outer(inner(v)), where ``outer`` compresses the short vector of values, in place of the
    floats that ``inner`` would send; positions are sent as before.

    Parameters
    ----------
    outer : compressor
        The compressor of the values.
    inner : compressor
        One whose restored vector is linear in the values of its message: TopK, RandK, RandomBlock, Bernoulli,
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
            base.restore(c.outer, outside, short)  # from here on the inner message has what the receiver will know

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
