"""Forwarding to the inner compressor: one function for each generic that a wrapper does not define itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import inherits
from .. import base
from ..closed_forms import check, expected_nonzeros


class Forwarding:
    """What a wrapper with a field ``inner`` does where it does not say otherwise."""

    inner: Any

    def capacity(c, d):
        return base.capacity(c.inner, d)

    def parts(c, d):
        return base.parts(c.inner, d)

    def state_size(c, d):
        return base.state_size(c.inner, d)

    def quantize(c, state, v, stream, symbols):
        base.quantize(c.inner, state, v, stream, symbols)

    def accumulate(c, symbols, weight, out):
        base.accumulate(c.inner, symbols, weight, out)

    def shares_stream(c):
        return base.shares_stream(c.inner)

    def opening(c, d):
        return base.opening(c.inner, d)

    def opening_is_maximum(c):
        return base.opening_is_maximum(c.inner)

    def propose(c, state, v, stream, numbers):
        base.propose(c.inner, state, v, stream, numbers)

    def settle(c, d, state, numbers):
        base.settle(c.inner, d, state, numbers)

    def update_state(c, d, state, symbols):
        base.update_state(c.inner, d, state, symbols)

    def payload_bits(c, symbols, d):
        return base.payload_bits(c.inner, symbols, d)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return base.max_payload_bits(c.inner, d, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        return base.pack(c.inner, symbols, d, buffer, cursor)

    def unpack(c, buffer, cursor, end, d, symbols):
        return base.unpack(c.inner, buffer, cursor, end, d, symbols)

    def check(c: Any, d: int) -> None:
        check(c.inner, d)

    def expected_nonzeros(c: Any, v: np.ndarray) -> float:
        return expected_nonzeros(c.inner, v)


forwards = inherits(Forwarding)
