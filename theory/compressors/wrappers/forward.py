"""Forwarding to the inner compressor: one function for each generic that a wrapper does not define itself."""

from __future__ import annotations

from ...core.generics import GENERICS, Class
from .. import base
from ..closed_forms import check, expected_nonzeros

__all__ = ["forwards"]


def _capacity(c, d):
    return base.capacity(c.inner, d)


def _parts(c, d):
    return base.parts(c.inner, d)


def _state_size(c, d):
    return base.state_size(c.inner, d)


def _quantize(c, state, v, stream, symbols):
    base.quantize(c.inner, state, v, stream, symbols)


def _accumulate(c, symbols, weight, out):
    base.accumulate(c.inner, symbols, weight, out)


def _shares_stream(c):
    return base.shares_stream(c.inner)


def _opening(c, d):
    return base.opening(c.inner, d)


def _opening_is_maximum(c):
    return base.opening_is_maximum(c.inner)


def _propose(c, state, v, stream, numbers):
    base.propose(c.inner, state, v, stream, numbers)


def _settle(c, d, state, numbers):
    base.settle(c.inner, d, state, numbers)


def _update_state(c, d, state, symbols):
    base.update_state(c.inner, d, state, symbols)


def _payload_bits(c, symbols, d):
    return base.payload_bits(c.inner, symbols, d)


def _max_payload_bits(c, d, float_bits):
    return base.max_payload_bits(c.inner, d, float_bits)


def _pack(c, symbols, d, buffer, cursor):
    return base.pack(c.inner, symbols, d, buffer, cursor)


def _unpack(c, buffer, cursor, end, d, symbols):
    return base.unpack(c.inner, buffer, cursor, end, d, symbols)


def _check(c, d):
    check(c.inner, d)


def _expected_nonzeros(c, v):
    return expected_nonzeros(c.inner, v)


FORWARDED = {
    function.__name__[1:]: function
    for function in (
        _capacity,
        _parts,
        _state_size,
        _quantize,
        _accumulate,
        _shares_stream,
        _opening,
        _opening_is_maximum,
        _propose,
        _settle,
        _update_state,
        _payload_bits,
        _max_payload_bits,
        _pack,
        _unpack,
        _check,
        _expected_nonzeros,
    )
}


def forwards(cls: Class) -> Class:
    """Class decorator for a wrapper with a field ``inner``: forward to it what the body does not define."""
    for name, function in FORWARDED.items():
        if name not in vars(cls):
            GENERICS[name](cls, function)
    return cls
