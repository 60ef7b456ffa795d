"""Quantizers that send a scale and a coded level for each coordinate, and Lloyd-Max levels.

Levels are signed integers, int32 from ``-low`` to ``high``.  Their codes are settings, ``QSGD(7, code=Elias())``.  A
user-defined code is a setting with these functions, registered under a number:

``code_bits``  how many bits levels take, and ``longest_levels`` at most;
``write_levels``, ``read_levels``  levels become bits and back;
``expected_code_bits``  in Python: their expected number, where it is known.

The messages are a float, the scale, and then a level for each coordinate.  A compressor with
``@inherits(ScaleAndLevels)`` has the bits of such messages, one with ``@inherits(Quantizer, ScaleAndLevels)`` defines
only its scale and how levels are drawn.  Both process blocks of coordinates that stay in cache while they are drawn and
written, or read and restored.

Lloyd-Max levels are the best use of b bits per coordinate for a vector of normal numbers. After a random rotation the
entries of any vector are almost normal: see ``wrappers/rotated.py``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...bounds.quantizers.rotations import MOST_BITS, lloyd_max_levels
from ...core import generic, kernel, no_refcount, python_generic, require, setting, uncounted
from ...core.vectors import add_entry
from ...wire import entropy
from ...wire import symbols as levels
from ...wire.bits import bits_for, read_array, read_float, write_array, write_float
from ...wire.frame import register_code
from ...wire.integers import omega_length
from .. import base
from ..base import fixed_bits
from ..kernels.norms import norm_of
from ..registry import register

# --- Codes of levels -------------------------------------------------------------------------------------------------

LevelCode: TypeAlias = Any  # the annotation tells frames that the field is a code

PIECE = 5120  # levels that are read together and fit in cache: whole bytes in any width

code_bits = generic(
    "code_bits", "code_bits(code, level, low, high) -> int: how many bits write_levels writes.", inline=False
)

longest_levels = generic(
    "longest_levels",
    "longest_levels(code, n, low, high) -> int: no n levels take more bits (for buffers).",
    interpreted=True,
)

write_levels = generic(
    "write_levels",
    "write_levels(code, buffer, cursor, level, low, high) -> int: write the levels at bit `cursor` of the buffer, "
    "zeroed from there on and long enough; return the cursor behind them.",
    inline=False,
)

read_levels = generic(
    "read_levels",
    "read_levels(code, buffer, cursor, end, level, low, high) -> int: fill `level`; return the cursor behind, or -1 "
    "when the bits before `end` do not hold such levels. Never reads or writes out of bounds.",
    inline=False,
)

in_pieces = generic(
    "in_pieces",
    "in_pieces(code) -> bool: whether levels may be written and read a few at a time, with the same bits.",
    lambda code: False,
)


@python_generic
def expected_code_bits(code: Any, position: Any, low: int, high: int) -> float:
    """Expected bits of levels that round the numbers ``position`` up or down without bias."""
    raise TypeError(f"{type(code).__name__}: no closed form for the expected payload")


def check_code(code: Any) -> None:
    """Reject an argument that is not a code of levels."""
    got = code if isinstance(code, (str, bool)) else type(code).__name__
    require(write_levels.implements(type(code)), "code", got, "a code of levels, such as Elias()", TypeError)


@uncounted
@kernel
def _read_checked(buffer, cursor, level, low, high, width):
    cursor, top = read_array(buffer, cursor, level, low, width), np.int32(0)
    for j in range(level.size):
        top = max(top, level[j])
    return cursor if top <= high else -1


@setting
class Packed(NamedTuple):
    """All levels in the same number of bits, ``ceil(log2(low + high + 1))``.

    Examples
    --------
    >>> from theory import QSGD, Packed
    >>> QSGD(7) == QSGD(7, code=Packed())
    True
    """

    def code_bits(code, level, low, high):
        return level.size * bits_for(low + high + 1)

    def longest_levels(code, n, low, high):
        return n * bits_for(low + high + 1)

    def write_levels(code, buffer, cursor, level, low, high):
        return write_array(buffer, cursor, level, low, bits_for(low + high + 1))

    def read_levels(code, buffer, cursor, end, level, low, high):
        width = bits_for(low + high + 1)
        if cursor + level.size * width > end:
            return -1
        for start in range(0, level.size, PIECE):
            piece = level[start : min(start + PIECE, level.size)]
            cursor = _read_checked(buffer, cursor, piece, low, high, width)
            if cursor < 0:
                return -1
        return cursor

    def in_pieces(code):
        return True

    def expected_code_bits(code, position: Any, low: int, high: int) -> float:
        return float(len(position) * bits_for(low + high + 1))


@setting
class Elias(NamedTuple):
    """The number of non-zeros, then for each its distance from the previous one, its sign and its magnitude.

    All numbers except the sign are in Elias omega codes; suitable if most levels are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from theory import QSGD, Elias, expected_payload_bits
    >>> v = np.eye(1, 1000)[0]
    >>> expected_payload_bits(QSGD(7, code=Elias()), v), expected_payload_bits(QSGD(7), v)
    (43.0, 4032.0)
    """

    def code_bits(code, level, low, high):
        return levels.levels_bits(level)

    def longest_levels(code, n, low, high):
        size = max(low, high)
        longest = omega_length(size)
        for digits in range(1, 32):  # the length of a code depends only on the number of digits
            if (1 << (digits - 1)) <= size:
                longest = max(longest, omega_length(1 << (digits - 1)))
        return omega_length(n + 1) + 6 + n * (2 + longest)

    def write_levels(code, buffer, cursor, level, low, high):
        return levels.write_levels(buffer, cursor, level)

    def read_levels(code, buffer, cursor, end, level, low, high):
        return levels.read_levels(buffer, cursor, end, max(low, high), level)

    def expected_code_bits(code, position: Any, low: int, high: int) -> float:
        return bounds.expected_elias_bits(position)


@setting
class RANS(NamedTuple):
    """An entropy coder: rANS preceded by the frequencies, or a simpler code if that is shorter.

    It has the shortest messages for every number of levels, and is the slowest code. `theory.EntropyCoded` also codes
    positions, and codes the levels of all buckets together.

    Examples
    --------
    >>> import numpy as np
    >>> from theory import QSGD, RANS, encode, key
    >>> v = np.random.default_rng(0).standard_normal(10_000)
    >>> len(encode(QSGD(7, code=RANS()), v, key(0))) < len(encode(QSGD(7), v, key(0)))
    True
    """

    def code_bits(code, level, low, high):
        return entropy.levels_bits(level)

    def longest_levels(code, n, low, high):
        return entropy.longest_levels(n, max(low, high))

    def write_levels(code, buffer, cursor, level, low, high):
        return entropy.write_levels(buffer, cursor, level)

    def read_levels(code, buffer, cursor, end, level, low, high):
        return entropy.read_levels(buffer, cursor, end, max(low, high), level)


PACKED = Packed()

for number, cls in enumerate((Packed, Elias, RANS)):
    register_code(number, cls)


# --- Quantizers that send a float ------------------------------------------------------------------------------------

f64, i32 = np.float64, np.int32  # in kernels float() keeps float32

TILE = 1024  # coordinates whose random bits are drawn together, four per draw

BLOCK = 5 * TILE  # levels that are written or read together and fit in cache; whole bytes, also for trits

level_range = generic(
    "level_range", "level_range(c) -> (low, high): levels are integers from -low to high.", interpreted=True
)

code_of = generic("code_of", "code_of(c) -> code: how the levels are sent.", lambda c: PACKED, interpreted=True)

sent_scale = generic(
    "sent_scale", "sent_scale(c, state, v, wire) -> float: the scale, as a float of the array `wire`.", counted=False
)

grid_of = generic("grid_of", "grid_of(c) -> what fill_levels needs besides the scale.", lambda c: ())

fill_levels = generic(
    "fill_levels",
    "fill_levels(c, grid, v, start, scale, stream, words, unit, out): out[j] = unit * level, in the dtype of out. v: "
    "part of the vector, from coordinate `start` on, a multiple of TILE. words: work space for TILE / 2.",
    counted=False,
)

table_of = generic(
    "table_of",
    "table_of(c, scale, kind) -> array of this dtype: what level_value looks up.",
    lambda c, scale, kind: (),
)

level_value = generic(
    "level_value",
    "level_value(c, table, scale, level) -> float: what the receiver restores from a level.",
    lambda c, table, scale, level: scale * level,
)


@no_refcount
@kernel
def _restore(c, table, scale, level, out):
    for j in range(out.size):
        out[j] = out.dtype.type(level_value(c, table, scale, level[j]))


class ScaleAndLevels:
    """The bits of a scale and d levels."""

    def payload_bits(c, symbols, d):
        low, high = level_range(c)
        return 8 * symbols.value.itemsize + code_bits(code_of(c), symbols.level[:d], low, high)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return float_bits + longest_levels(code_of(c), d, *level_range(c))

    def pack(c, symbols, d, buffer, cursor):
        low, high = level_range(c)
        cursor = write_float(buffer, cursor, symbols.value, 0)
        return write_levels(code_of(c), buffer, cursor, symbols.level[:d], low, high)

    def unpack(c, buffer, cursor, end, d, symbols):
        low, high = level_range(c)
        if cursor + 8 * symbols.value.itemsize > end:
            return -1
        cursor = read_float(buffer, cursor, symbols.value, 0)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, d
        return read_levels(code_of(c), buffer, cursor, end, symbols.level[:d], low, high)

    def expected_payload_bits(c, v: Any) -> float:
        return 32.0 + expected_code_bits(code_of(c), v, *level_range(c))


class Quantizer:
    """A scale, and levels drawn without bias."""

    def capacity(c, d):
        return 0, 1, d, TILE // 2

    def quantize(c, state, v, stream, symbols):
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        scale, level = f64(symbols.value[0]), symbols.level[: v.size]
        fill_levels(c, grid_of(c), v, 0, scale, stream, symbols.scratch, i32(1), level)

    def quantize_rest(c, state, v, stream, symbols):
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        scale, grid = f64(symbols.value[0]), grid_of(c)
        table = table_of(c, scale, f64)
        for start in range(0, v.size, BLOCK):
            piece = v[start : min(start + BLOCK, v.size)]
            level = symbols.level[start : start + piece.size]
            fill_levels(c, grid, piece, start, scale, stream, symbols.scratch, i32(1), level)
            for j in range(piece.size):  # while both are in cache
                piece[j] = piece.dtype.type(f64(piece[j]) - level_value(c, table, scale, level[j]))

    def compress_into(c, state, v, stream, symbols, out):
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        scale = f64(symbols.value[0])
        fill_levels(c, grid_of(c), v, 0, scale, stream, symbols.scratch, out.dtype.type(scale), out)

    def accumulate(c, symbols, weight, out):
        scale = f64(symbols.value[0])
        table = table_of(c, scale, f64)
        for j in range(symbols.count[2]):
            add_entry(out, j, weight * level_value(c, table, scale, symbols.level[j]))

    def restore(c, symbols, out):
        scale = f64(symbols.value[0])
        _restore(c, table_of(c, scale, out.dtype), scale, symbols.level, out)

    def encode_into(c, state, v, stream, symbols, buffer, cursor):
        if not in_pieces(code_of(c)):
            base.quantize(c, state, v, stream, symbols)
            return base.pack(c, symbols, v.size, buffer, cursor)
        (low, high), grid = level_range(c), grid_of(c)
        symbols.value[0] = sent_scale(c, state, v, symbols.value)
        scale, cursor = f64(symbols.value[0]), write_float(buffer, cursor, symbols.value, 0)
        for start in range(0, v.size, BLOCK):
            piece = v[start : min(start + BLOCK, v.size)]
            level = symbols.level[: piece.size]
            fill_levels(c, grid, piece, start, scale, stream, symbols.scratch, i32(1), level)
            cursor = write_levels(code_of(c), buffer, cursor, level, low, high)
        return cursor

    def decode_into(c, buffer, cursor, end, symbols, out):
        if not in_pieces(code_of(c)):
            cursor = base.unpack(c, buffer, cursor, end, out.size, symbols)
            if cursor >= 0:
                base.restore(c, symbols, out)
            return cursor
        if cursor + 8 * symbols.value.itemsize > end:
            return -1
        low, high = level_range(c)
        cursor = read_float(buffer, cursor, symbols.value, 0)
        scale = f64(symbols.value[0])
        table = table_of(c, scale, out.dtype)
        for start in range(0, out.size, BLOCK):
            piece = out[start : min(start + BLOCK, out.size)]
            level = symbols.level[: piece.size]
            cursor = read_levels(code_of(c), buffer, cursor, end, level, low, high)
            if cursor < 0:
                return -1
            _restore(c, table, scale, level, piece)
        return cursor


# --- Lloyd-Max levels ------------------------------------------------------------------------------------------------

# the positive levels of 1, 2, 3, ... bits, one after the other: those of b bits begin at 2^(b - 1) - 1
LEVELS = np.concatenate([lloyd_max_levels(bits) for bits in range(1, MOST_BITS + 1)])


@setting
class LloydMax(NamedTuple):
    """Each coordinate is rounded to the nearest of 2^bits levels; the message has one scale for all coordinates.

    The levels are those of the standard normal law, for the coordinates divided by ||v||/sqrt(d). With one bit they are
    the signs, where the sign of 0 is +1.

    Parameters
    ----------
    bits : int
        Bits per coordinate, from 1 to 8.
    unbiased : bool
        Scale the levels q by ||v||^2/<v, q>, so that <Q(v), v> = ||v||^2: after a uniform rotation the mean is then v.
        If False, scale them by <v, q>/||q||^2, which minimizes the error; with one bit this is ``ScaledSign()``.

    Notes
    -----
    Vargaftik et al., "DRIVE" (NeurIPS 2021) for one bit, "EDEN" (ICML 2022); both rotate first, as :func:`eden` does.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.compress(LloydMax(bits=1), np.array([0.5, -2.5, 0.0]), 0)
    array([ 1., -1.,  1.])
    """

    bits: int
    unbiased: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(1 <= self.bits <= MOST_BITS, "bits", self.bits, f"an integer from 1 to {MOST_BITS}")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        norm = norm_of(v, 2.0)
        if norm == 0.0:
            return np.zeros(v.size)
        z = v.astype(float) / norm
        levels = lloyd_max_levels(c.bits)
        size = levels[np.searchsorted(0.5 * (levels[1:] + levels[:-1]), np.abs(z) * math.sqrt(v.size))]
        along, square = np.cumsum(np.abs(z) * size)[-1], np.cumsum(size * size)[-1]  # added one by one
        scale = float(np.dtype(wire).type(norm / along if c.unbiased else norm * (along / square)))
        return np.where(v < 0.0, -scale, scale) * size

    def capacity(c, d):
        return 0, 1, d, 0

    def quantize(c, state, v, stream, symbols):
        norm, root, along, square = norm_of(v, 2.0), math.sqrt(v.size), 0.0, 0.0
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, v.size
        symbols.value[0] = 0.0
        symbols.level[: v.size] = i32(0)
        if norm == 0.0 or norm == np.inf:
            symbols.value[0] = norm
            return
        begin = (1 << (c.bits - 1)) - 1
        for j in range(v.size):
            z = abs(f64(v[j])) / norm
            p = _nearest(z * root, begin)
            size = LEVELS[begin + p]
            along += z * size
            square += size * size
            symbols.level[j] = i32(2 * p + (v[j] < 0))
        symbols.value[0] = norm / along if c.unbiased else norm * (along / square)

    def accumulate(c, symbols, weight, out):
        scale, begin = f64(symbols.value[0]), (1 << (c.bits - 1)) - 1
        for j in range(symbols.count[2]):
            code = symbols.level[j]
            size = scale * LEVELS[begin + (code >> 1)]
            add_entry(out, j, weight * (-size if code & 1 else size))

    def fixed_bits(c, d, float_bits):
        return float_bits + d * c.bits

    def pack(c, symbols, d, buffer, cursor):
        cursor = write_float(buffer, cursor, symbols.value, 0)
        return write_array(buffer, cursor, symbols.level[:d], 0, c.bits)

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + fixed_bits(c, d, 8 * symbols.value.itemsize) > end:
            return -1
        cursor = read_float(buffer, cursor, symbols.value, 0)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, 1, d
        cursor = read_array(buffer, cursor, symbols.level[:d], 0, c.bits)
        return -1 if symbols.value[0] < 0 else cursor  # NaN is valid: it shows the receiver that the sender diverged

    def delta(c, d: int) -> float:
        if c.unbiased or c.bits > 1:
            raise TypeError(f"{c!r} has no closed form for its contraction; LloydMax(1) has, and so has Rotated of it")
        return bounds.scaled_sign_contraction(d=d)

    def omega(c, d: int) -> float:
        raise TypeError(f"{c!r} is biased: omega is not defined; see eden({c.bits}, uniform=True)")

    def expected_nonzeros(c, v: np.ndarray) -> float:
        return float(len(v) if np.any(v) else 0)


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _nearest(x, begin):
    """Position, among the begin + 1 positive levels, of the one next to x >= 0."""
    low, high = 0, begin
    while low < high:
        middle = (low + high) >> 1
        if x > 0.5 * (LEVELS[begin + middle + 1] + LEVELS[begin + middle]):
            low = middle + 1
        else:
            high = middle
    return low


register(LloydMax, 22, lambda d: [LloydMax(1), LloydMax(3, unbiased=True)])
