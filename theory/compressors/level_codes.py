"""Codes of levels, the signed integers that a quantizer sends: settings, ``QSGD(7, code=Elias())``.

A code of your own is one more setting with these functions, registered under a number:

``code_bits``  how many bits levels take, and ``longest_levels`` at most;
``write_levels``, ``read_levels``  levels become bits and back;
``expected_code_bits``  in Python: their expected number, where it is known.

Levels are int32, from ``-low`` to ``high``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .. import bounds
from ..core import generic, kernel, python_generic, require, setting, uncounted
from ..wire import entropy, levels
from ..wire.bits import bits_for, read_array, write_array
from ..wire.descriptor import register_code
from ..wire.elias import omega_length

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
    """Reject what is not a code of levels."""
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
    """The number of non-zeros, then for each the distance from the previous one, its sign and its size.

    All in Elias omega codes, but for the sign; good where most levels are zero.

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
    """An entropy coder: rANS with the frequencies before it, or a simpler code where that is shorter.

    The best at every number of levels, and the slowest.  `theory.EntropyCoded` also codes positions, and the levels of
    all buckets together.

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
