"""Compressors and feedback rules for claims: an extremal one, and deliberately wrong ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...compressors.base import (
    accumulate,
    capacity,
    fixed_bits,
    pack,
    quantize,
    unpack,
)
from ...compressors.wrappers.forward import forwards
from ...core import require, setting
from ...core.random import uniform
from ...core.vectors import add_entry, entry
from ...methods.feedback import ErrorFeedback
from ...wire.bits import read_float, write_float
from ...wire.descriptor import register_wire


@setting
class Scaling(NamedTuple):
    """The multiple C(v) = (1 - sqrt(1 - delta)) v: it contracts exactly by delta, always in the same direction.

    For error feedback this is the worst case: every bound on the memory that uses only delta is attained by it.
    With ``over`` it is (1 + sqrt(1 - delta)) v, with the same contraction: the memory stores what was sent in excess.
    """

    factor: float
    over: bool = False

    def domain(self):
        """Reject values outside the domain."""
        require(0 < self.factor <= 1, "factor", self.factor, "a contraction factor delta in (0, 1]")

    def quantize(c, state, v, stream, symbols):
        missing = math.sqrt(1.0 - c.factor)
        kept = 1.0 + missing if c.over else 1.0 - missing
        for j in range(symbols.value.size):
            symbols.value[j] = kept * entry(v, j)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, symbols.value.size, 0

    def delta(c, d: int) -> float:
        return c.factor


@setting
class Lopsided(NamedTuple):
    """C(v) = (1 + q) v where v > 0 and (1 - q) v where v < 0, for each coordinate: a contraction with 1 - q^2."""

    q: float

    def quantize(c, state, v, stream, symbols):
        for j in range(symbols.value.size):
            symbols.value[j] = (1.0 + c.q if entry(v, j) > 0.0 else 1.0 - c.q) * entry(v, j)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, symbols.value.size, 0

    def delta(c, d: int) -> float:
        return 1.0 - c.q**2


@setting
class WrongQSGD(NamedTuple):
    """QSGD with s levels, in plain form, with a fault: "inverted", "nearest" or "down".

    Inverted: up with the probability of down.  Nearest: to the nearest level.  Down: never up.
    """

    s: int
    fault: int = 0
    norm: float = 2.0

    def quantize(c, state, v, stream, symbols):
        total, largest = 0.0, 0.0
        for j in range(v.size):
            total += v[j] * v[j]
            largest = max(largest, abs(v[j]))
        scale = math.sqrt(total) if c.norm == 2.0 else largest
        for j in range(v.size):
            u = c.s * abs(v[j]) / scale
            low = math.floor(u)
            up = u - low > uniform(stream, j)
            if c.fault == INVERTED:
                up = not up
            elif c.fault == NEAREST:
                up = u - low >= 0.5
            elif c.fault == DOWN:
                up = False
            symbols.value[j] = math.copysign(scale * (low + up) / c.s, v[j])
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, v.size, 0


INVERTED, NEAREST, DOWN = 1, 2, 3


@forwards
@setting
class Forgetful(NamedTuple):
    """A compressor whose memory, in half of the steps, does not subtract what was sent.

    A memory subtracts with the weight -1; with two workers or more, x moves with other weights.
    """

    inner: NamedTuple

    def capacity(c, d):
        index, values, levels, scratch = capacity(c.inner, d)
        return index, values, levels + 1, scratch

    def quantize(c, state, v, stream, symbols):
        quantize(c.inner, state, v, stream, symbols)
        symbols.level[symbols.level.size - 1] = np.int32(stream & np.uint64(1))

    def accumulate(c, symbols, weight, out):
        if weight != -1.0 or symbols.level[symbols.level.size - 1] == 0:
            accumulate(c.inner, symbols, weight, out)


@setting
class LeakyFeedback(NamedTuple):
    """Error feedback that keeps only a fraction of the memory: none at 0.

    The true rule is kept = 1.
    """

    kept: float = 1.0

    load, error, memory = ErrorFeedback.load, ErrorFeedback.error, ErrorFeedback.memory  # type: ignore[misc]

    def store(self, run, p, message):
        """Store e = kept (p - Q(p))."""
        run.add(p, message, scale=-1.0)
        run.scale(p, self.kept)


@setting
class WrongFeedback(NamedTuple):
    """Error feedback with the factor eta**inside of the gradient and ``outside`` of what was received.

    The true rule is inside = 1, outside = 1.
    """

    inside: float = 1.0
    outside: float = 1.0

    load, store, error = ErrorFeedback.load, ErrorFeedback.store, ErrorFeedback.error  # type: ignore[misc]

    def step_factors(self, run):
        """The wrong factors before and after compression."""
        return run.eta**self.inside, run.rates.constant(self.outside)


# --- dense values as they are: the messages of Scaling and WrongQSGD --------------------------------------------------


@capacity.register(Scaling, Lopsided, WrongQSGD)
def _(c, d):
    return 0, d, 0, 0


@accumulate.register(Scaling, Lopsided, WrongQSGD)
def _(c, symbols, weight, out):
    for j in range(symbols.count[1]):
        add_entry(out, j, weight * symbols.value[j])


@fixed_bits.register(Scaling, Lopsided, WrongQSGD)
def _(c, d, float_bits):
    return d * float_bits


@pack.register(Scaling, Lopsided, WrongQSGD)
def _(c, symbols, d, buffer, cursor):
    for j in range(d):
        cursor = write_float(buffer, cursor, symbols.value, j)
    return cursor


@unpack.register(Scaling, Lopsided, WrongQSGD)
def _(c, buffer, cursor, end, d, symbols):
    if cursor + 8 * symbols.value.itemsize * d > end:
        return -1
    for j in range(d):
        cursor = read_float(buffer, cursor, symbols.value, j)
    symbols.count[0], symbols.count[1], symbols.count[2] = 0, d, 0
    return cursor


# --- around another compressor ----------------------------------------------------------------------------------------


register_wire(252, Lopsided)  # so that they can run; they are not among the public compressors
register_wire(253, Scaling)
register_wire(254, WrongQSGD)
register_wire(255, Forgetful)
