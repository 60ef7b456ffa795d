"""A compressor for each layer of the vector, for matrices of different shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ...core import kernel, require, setting
from ...core.random import derive
from ...problems.network import layer_shapes
from ...wire.frame import nests_too_deeply
from .. import base
from ..closed_forms import check, delta, expected_nonzeros, expected_payload_bits, omega, reference
from ..full_precision import Identity
from ..quantizers.qsgd import QSGD
from ..registry import LARGEST_D, check_compressor, check_dimension, register
from ..sparsifiers.random_and_top_k import RandK, TopK


@setting
class ByLayer(NamedTuple):
    """The compressor ``first`` on the first ``size`` coordinates, and ``rest`` on the others.

    For more than two layers ``rest`` is also a ByLayer; :func:`by_layer` makes it from a problem. If the messages of
    both compressors can be added, so can these, and workers reduce instead of gathering.

    Parameters
    ----------
    size : int
        Length of the first layer, at least 1.
    first, rest : compressor
        The compressors of the first layer and of the other layers. If one of them requires shared random numbers, both
        use them.

    Examples
    --------
    >>> from theory import QSGD, TopK
    >>> ByLayer(100, TopK(5), QSGD(7))
    ByLayer(size=100, first=TopK(k=5), rest=QSGD(s=7, norm=2.0, code=Packed()))
    """

    size: int
    first: NamedTuple
    rest: NamedTuple

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1 <= self.size < LARGEST_D, "size", self.size, f"an integer from 1 to {LARGEST_D - 1}")
        check_compressor("first", self.first)
        check_compressor("rest", self.rest)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        first = reference(c.first, v[: c.size], derive(stream, 0), wire)
        return np.concatenate([first, reference(c.rest, v[c.size :], derive(stream, 1), wire)])

    def capacity(c, d):
        indices, values, levels, scratch = base.capacity(c.first, c.size)
        more_indices, more_values, more_levels, more_scratch = base.capacity(c.rest, d - c.size)
        _, added = base.summed(c, d)
        return indices + more_indices, added + values + more_values, levels + more_levels, max(scratch, more_scratch)

    def parts(c, d):
        return base.parts(c.first, c.size) + base.parts(c.rest, d - c.size)

    def state_size(c, d):
        return base.state_size(c.first, c.size) + base.state_size(c.rest, d - c.size)

    def quantize(c, state, v, stream, symbols):
        first, rest = _both(c, symbols, v.size)
        kept = base.state_size(c.first, c.size)
        base.quantize(c.first, state[:kept], v[: c.size], derive(stream, 0), first)
        base.quantize(c.rest, state[kept:], v[c.size :], derive(stream, 1), rest)
        _copy_added(c, v.size, symbols, first, rest, False)

    def accumulate(c, symbols, weight, out):
        first, rest = _both(c, symbols, out.size)
        _copy_added(c, out.size, symbols, first, rest, True)
        base.accumulate(c.first, first, weight, out[: c.size])
        base.accumulate(c.rest, rest, weight, out[c.size :])

    def shares_stream(c):
        return base.shares_stream(c.first) or base.shares_stream(c.rest)

    def summed(c, d):
        low, high = base.summed(c.first, c.size)
        low_rest, high_rest = base.summed(c.rest, d - c.size)
        both = high > low and high_rest > low_rest
        return 0, (high - low) + (high_rest - low_rest) if both else 0

    def opening(c, d):
        return base.opening(c.first, c.size) + base.opening(c.rest, d - c.size)

    def opening_is_maximum(c):
        return base.opening_is_maximum(c.first) or base.opening_is_maximum(c.rest)

    def propose(c, state, v, stream, numbers):
        kept, own = base.state_size(c.first, c.size), base.opening(c.first, c.size)
        base.propose(c.first, state[:kept], v[: c.size], derive(stream, 0), numbers[:own])
        base.propose(c.rest, state[kept:], v[c.size :], derive(stream, 1), numbers[own:])

    def settle(c, d, state, numbers):
        kept, own = base.state_size(c.first, c.size), base.opening(c.first, c.size)
        if own > 0:
            base.settle(c.first, c.size, state[:kept], numbers[:own])
        if base.opening(c.rest, d - c.size) > 0:
            base.settle(c.rest, d - c.size, state[kept:], numbers[own:])

    def update_state(c, d, state, symbols):
        first, rest = _both(c, symbols, d)
        _copy_added(c, d, symbols, first, rest, True)
        kept = base.state_size(c.first, c.size)
        base.update_state(c.first, c.size, state[:kept], first)
        base.update_state(c.rest, d - c.size, state[kept:], rest)

    def payload_bits(c, symbols, d):
        first, rest = _both(c, symbols, d)
        return base.payload_bits(c.first, first, c.size) + base.payload_bits(c.rest, rest, d - c.size)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        first = base.max_payload_bits(c.first, c.size, float_bits)
        return first + base.max_payload_bits(c.rest, d - c.size, float_bits)

    def pack(c, symbols, d, buffer, cursor):
        first, rest = _both(c, symbols, d)
        return base.pack(c.rest, rest, d - c.size, buffer, base.pack(c.first, first, c.size, buffer, cursor))

    def unpack(c, buffer, cursor, end, d, symbols):
        first, rest = _both(c, symbols, d)
        cursor = base.unpack(c.first, buffer, cursor, end, c.size, first)
        if cursor >= 0:
            cursor = base.unpack(c.rest, buffer, cursor, end, d - c.size, rest)
        if cursor >= 0:
            _copy_added(c, d, symbols, first, rest, False)
        return cursor

    def check(c, d: int) -> None:
        check_dimension(d)
        require(c.size < d, "size", c.size, f"less than the length of the vector, {d}")
        for name, inner, length in (("first", c.first, c.size), ("rest", c.rest, d - c.size)):
            try:
                check(inner, length)
            except ValueError as error:
                raise ValueError(f"ByLayer: {name}, on {length} coordinates: {error}") from None
        several = base.opening(c.first, c.size) > 0 and base.opening(c.rest, d - c.size) > 0
        alike = base.opening_is_maximum(c.first) == base.opening_is_maximum(c.rest)
        require(
            alike or not several,
            "rest",
            c.rest,
            f"a compressor whose workers combine numbers as those of {type(c.first).__name__} do, by maximum or mean",
        )

    def omega(c, d: int) -> float:
        return max(omega(c.first, c.size), omega(c.rest, d - c.size))

    def delta(c, d: int) -> float:
        return min(delta(c.first, c.size), delta(c.rest, d - c.size))

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return expected_nonzeros(c.first, v[: c.size]) + expected_nonzeros(c.rest, v[c.size :])

    def expected_payload_bits(c, v: np.ndarray) -> float:
        return expected_payload_bits(c.first, v[: c.size]) + expected_payload_bits(c.rest, v[c.size :])


def by_layer(problem: Any, make: Callable[[int, int], NamedTuple]) -> Any:
    """A compressor for each layer of a problem.

    Parameters
    ----------
    problem : problem
        Its layers are those of :func:`theory.layers`.
    make : callable
        ``make(rows, columns)`` returns the compressor of a layer that is a matrix of this shape.

    Returns
    -------
    compressor
        For one layer the result of ``make``; for more a :class:`ByLayer` whose ``rest`` has the others. If these would
        nest too deeply for messages, each half of the layers is a ByLayer.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> network = th.two_layer((np.eye(6), [0, 1, 2, 0, 1, 2]), width=4)
    >>> by_layer(network, lambda rows, columns: th.PowerSGD(rows, columns, rank=2)).rest
    PowerSGD(rows=4, columns=3, rank=2, warm=True)
    """
    require(callable(make), "make", type(make).__name__, "a function of rows and columns", TypeError)
    shapes = layer_shapes(problem)
    made = [make(rows, columns) for rows, columns in shapes]
    for c in made:
        check_compressor("make", c)
    sizes = [rows * columns for rows, columns in shapes]
    found = _nested(sizes, made, lambda n: 1)
    return _nested(sizes, made, lambda n: n // 2) if nests_too_deeply(found) else found


def _nested(sizes, made, split):
    """The compressors of several layers as one, of which the first ``split(n)`` of n are divided from the others."""
    if len(made) == 1:
        return made[0]
    k = split(len(made))
    return ByLayer(sum(sizes[:k]), _nested(sizes[:k], made[:k], split), _nested(sizes[k:], made[k:], split))


# --- the fast path ----------------------------------------------------------------------------------------------------

# The numbers that are summed over the workers must be one range.  So the values of both messages are preceded by copies
# of the added numbers, first those of the first message and then those of the rest.


@kernel
def _both(c, symbols, d):
    """The symbols of both messages."""
    _, added = base.summed(c, d)
    n, indices, values, levels, scratch = base.room_of(c.first, c.size)
    first = base.section(symbols, (0, 0, added, 0, 0), (n, indices, values, levels, scratch))
    return first, base.section(symbols, (n, indices, added + values, levels, 0), base.room_of(c.rest, d - c.size))


@kernel
def _copy_added(c, d, symbols, first, rest, back):
    """Copy the numbers that are added up to their range, or ``back``."""
    _, added = base.summed(c, d)
    low, high = base.summed(c.first, c.size)
    low_rest, _ = base.summed(c.rest, d - c.size)
    for j in range(added):
        inner, k = (first.value, low + j) if j < high - low else (rest.value, low_rest + j - (high - low))
        if back:
            inner[k] = symbols.value[j]
        else:
            symbols.value[j] = inner[k]


# --- closed forms -----------------------------------------------------------------------------------------------------


def _examples(d: int) -> list:
    if d < 2:  # a single coordinate has no layers
        return [TopK(1), Identity()]
    half = d // 2
    return [
        ByLayer(half, TopK(1), QSGD(7)),
        ByLayer(half, RandK(max(1, half // 5), unbiased=True, shared=True), Identity()),
    ]


register(ByLayer, 56, _examples)
