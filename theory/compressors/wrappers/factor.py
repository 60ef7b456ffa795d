"""A compressor times a factor."""

from __future__ import annotations

from typing import NamedTuple

from ...core import require, setting
from ..base import (
    accumulate,
    capacity,
    check,
    delta,
    expected_nonzeros,
    expected_payload_bits,
    max_payload_bits,
    omega,
    opening,
    opening_is_maximum,
    pack,
    parts,
    payload_bits,
    propose,
    quantize,
    reference,
    settle,
    shares_stream,
    state_size,
    summed,
    unpack,
    update_state,
)
from ..checks import check_compressor
from ..qsgd import QSGD
from ..registry import register

__all__ = ["Scaled", "scaled"]


@setting
class Scaled(NamedTuple):
    """The message of ``inner``, of which the receiver restores ``factor`` times as much.

    An unbiased compressor with the variance factor omega becomes a contraction with delta = 1/(1 + omega) if the factor
    is 1/(1 + omega): see :func:`scaled`.

    Parameters
    ----------
    inner : compressor
        The compressor whose result is multiplied.
    factor : float
        In (0, 1].

    Examples
    --------
    >>> from theory import RandK
    >>> Scaled(RandK(10, unbiased=True), factor=0.1)
    Scaled(inner=RandK(k=10, unbiased=True, shared=False), factor=0.1)
    """

    inner: NamedTuple
    factor: float

    def domain(self):
        """Refuse values outside the domain."""
        check_compressor("inner", self.inner)
        require(0 < self.factor <= 1, "factor", self.factor, "a number in (0, 1]")


# --- what it does, plainly --------------------------------------------------------------------------------------------


@reference.register
def _(c: Scaled, v, stream, wire):
    return c.factor * reference(c.inner, v, stream, wire)


def scaled(inner, d: int) -> Scaled:
    """An unbiased compressor as a contraction of vectors of length ``d``: its factor is 1/(1 + omega).

    Parameters
    ----------
    inner : compressor
        Unbiased, with a closed form for omega.
    d : int
        Length of the vectors.

    Returns
    -------
    Scaled

    Raises
    ------
    TypeError
        If the inner compressor has no omega.
    ValueError
        If it cannot be used on vectors of length d.

    Examples
    --------
    >>> from theory import QSGD
    >>> scaled(QSGD(1), 100)
    Scaled(inner=QSGD(s=1, norm=2.0, elias=False), factor=0.1)
    """
    from ...bounds import scaled_contraction

    check_compressor("inner", inner)
    check(inner, d)
    return Scaled(inner, scaled_contraction(omega(inner, d)))


# --- the fast path ----------------------------------------------------------------------------------------------------


@capacity.register(Scaled)
def _(c, d):
    return capacity(c.inner, d)


@parts.register(Scaled)
def _(c, d):
    return parts(c.inner, d)


@state_size.register(Scaled)
def _(c, d):
    return state_size(c.inner, d)


@quantize.register(Scaled)
def _(c, state, v, stream, symbols):
    quantize(c.inner, state, v, stream, symbols)


@accumulate.register(Scaled)
def _(c, symbols, weight, out):
    accumulate(c.inner, symbols, c.factor * weight, out)


@payload_bits.register(Scaled)
def _(c, symbols, d):
    return payload_bits(c.inner, symbols, d)


@max_payload_bits.register(Scaled)
def _(c, d, float_bits):
    return max_payload_bits(c.inner, d, float_bits)


@pack.register(Scaled)
def _(c, symbols, d, buffer, cursor):
    return pack(c.inner, symbols, d, buffer, cursor)


@unpack.register(Scaled)
def _(c, buffer, cursor, end, d, symbols):
    return unpack(c.inner, buffer, cursor, end, d, symbols)


@shares_stream.register(Scaled)
def _(c):
    return shares_stream(c.inner)


@summed.register(Scaled)
def _(c, d):
    return summed(c.inner, d)


@opening.register(Scaled)
def _(c, d):
    return opening(c.inner, d)


@opening_is_maximum.register(Scaled)
def _(c):
    return opening_is_maximum(c.inner)


@propose.register(Scaled)
def _(c, state, v, stream, numbers):
    propose(c.inner, state, v, stream, numbers)


@settle.register(Scaled)
def _(c, d, state, numbers):
    settle(c.inner, d, state, numbers)


@update_state.register(Scaled)
def _(c, d, state, symbols):
    update_state(c.inner, d, state, symbols)


@check.register
def _(c: Scaled, d: int) -> None:
    check(c.inner, d)


@delta.register
def _(c: Scaled, d: int) -> float:
    from ...bounds import scaled_contraction

    found = scaled_contraction(omega(c.inner, d), c.factor)
    if found <= 0.0:
        raise TypeError(f"{c!r} is not a contraction for d = {d}: its factor is too large, see th.scaled(inner, d)")
    return found


@expected_nonzeros.register
def _(c: Scaled, v) -> float:
    return expected_nonzeros(c.inner, v)


@expected_payload_bits.register
def _(c: Scaled, v) -> float:
    return expected_payload_bits(c.inner, v)


register(Scaled, 50, lambda d: [scaled(QSGD(3), d)])
