"""The interface of a compressor: the generic functions, and the container for symbols.

A compressor is a :func:`theory.core.setting` of numbers and other compressors.  It is written in one file and registers

``capacity``  how many symbols it needs at most (and ``parts``, if it is made of several messages),
``quantize``  a vector becomes symbols (norms, indices, levels: sparse stays sparse),
``accumulate``  symbols become a multiple of the restored vector, added to a vector,
``pack``, ``unpack``, ``payload_bits``  symbols become bits and back (``fixed_bits`` is enough where all messages for
vectors of one length are equally long),

if messages of several workers can be added before they are decoded, ``summed`` (and ``shares_stream``, ``opening`` and
the generics that go with it),

and, in Python, the functions of :mod:`theory.compressors.closed_forms`: a plain NumPy version, with which the tests
compare the kernels, its closed forms and, where the dimension matters, a check.  As ``restore(quantize(v))`` and
``decode(encode(v))`` run through the same symbols, they agree by construction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import generic, kernel, python_generic


class Symbols(NamedTuple):
    """One message before it is packed. There is one type for all compressors, so that Numba compiles few variants.

    Attributes
    ----------
    count : numpy.ndarray of int64, shape (3 * parts,)
        How many entries of ``index``, ``value`` and ``level`` are in use, for each part.
    index : numpy.ndarray of uint32
        Positions.
    value : numpy.ndarray of float32 or float64
        The numbers of the message: this array has the dtype of the message, so storing rounds.
    level : numpy.ndarray of int32
        Signed integers.
    scratch : numpy.ndarray of uint32
        Work space.
    """

    count: np.ndarray  # type: ignore[assignment]  # tuple.count is never called
    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    value: np.ndarray
    level: np.ndarray
    scratch: np.ndarray


capacity = generic(
    "capacity",
    "capacity(c, d) -> (int, int, int, int): lengths of index, value, level and scratch for vectors of length d.",
    interpreted=True,
)
parts = generic(
    "parts",
    "parts(c, d) -> int: how many triples of counts its symbols need (1; a combinator: those of all its parts).",
    lambda c, d: 1,
    interpreted=True,
)
state_size = generic(
    "state_size",
    "state_size(c, d) -> int: length of the float64 state that a worker stores between messages (0: none).",
    lambda c, d: 0,
    interpreted=True,
)
quantize = generic(
    "quantize",
    "quantize(c, state, v, stream, symbols): fill symbols with the message for v; randomness from the key `stream`. "
    "v is an array or any vector of theory.core.vectors (then entry, largest and nonzeros are called).",
    inline=False,
)
accumulate = generic(
    "accumulate",
    "accumulate(c, symbols, weight, out): out += weight * (the vector that the receiver restores).",
    inline=False,
)
fixed_bits = generic(
    "fixed_bits",
    "fixed_bits(c, d, float_bits) -> int: length of every payload for vectors of length d, if it is always the same. "
    "Then payload_bits, max_payload_bits and expected_payload_bits follow.",
    interpreted=True,
)


def _payload_bits(c, symbols, d):
    return fixed_bits(c, d, 8 * symbols.value.itemsize)


payload_bits = generic(
    "payload_bits",
    "payload_bits(c, symbols, d) -> int: exact length of the packed symbols.",
    _payload_bits,
    inline=False,
)
pack = generic(
    "pack",
    "pack(c, symbols, d, buffer, cursor) -> int: write the symbols at bit `cursor` of the uint8 buffer (zeroed from "
    "there on, and long enough); return the cursor behind them.",
    inline=False,
)
unpack = generic(
    "unpack",
    "unpack(c, buffer, cursor, end, d, symbols) -> int: read what pack wrote; return the cursor behind it, or -1 when "
    "the bits before `end` do not hold a valid message. Never reads or writes out of bounds.",
    inline=False,
)


def _most_bits(c: Any, d: int, float_bits: int) -> int:
    indices, values, levels, _ = capacity(c, d)
    return 64 + 32 * indices + float_bits * values + 32 * levels


@python_generic
def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
    """An upper bound on the bits of a payload, for buffers.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.
    float_bits : int
        Bits of a float in the message: 32 or 64.

    Returns
    -------
    int
        By default ``fixed_bits``, or for variable lengths the size of the uncoded symbols.

    Examples
    --------
    >>> from theory import TopK
    >>> max_payload_bits(TopK(3), 1000, 32)
    126
    """
    known = fixed_bits.implements(type(c))
    return fixed_bits(c, d, float_bits) if known else _most_bits(c, d, float_bits)


def buffer_bits(c: Any, d: int, float_bits: int) -> int:
    """Buffer size for the payload of any message, even if the compressor's own bound is too small.

    Packing checks no bounds, so a mistake in a user's compressor would overwrite memory.
    """
    return max(int(max_payload_bits(c, d, float_bits)), int(_most_bits(c, d, float_bits)))


def _restore(c, symbols, out):
    out[:] = 0.0
    accumulate(c, symbols, 1.0, out)


def _compress_into(c, state, v, stream, symbols, out):
    quantize(c, state, v, stream, symbols)
    restore(c, symbols, out)


def _quantize_rest(c, state, v, stream, symbols):
    quantize(c, state, v, stream, symbols)
    accumulate(c, symbols, -1.0, v)


quantize_rest = generic(
    "quantize_rest",
    "quantize_rest(c, state, v, stream, symbols): quantize v, and leave in v what the receiver does not restore, in "
    "one pass where that is faster: the same symbols, and the same numbers as accumulate(c, symbols, -1.0, v).",
    _quantize_rest,
    inline=False,
)
restore = generic(
    "restore", "restore(c, symbols, out): out = the vector that the receiver restores.", _restore, inline=False
)
compress_into = generic(
    "compress_into",
    "compress_into(c, state, v, stream, symbols, out): quantize and restore in one pass where that is faster.",
    _compress_into,
    inline=False,
)
encode_into = generic(
    "encode_into",
    "encode_into(c, state, v, stream, symbols, buffer, cursor) -> int: quantize and pack tile by tile, where that is "
    "faster (there is no default): the same bits, and floats in `value`; the other symbols are undefined.",
)
decode_into = generic(
    "decode_into",
    "decode_into(c, buffer, cursor, end, symbols, out) -> int: unpack and restore tile by tile, where that is faster "
    "(there is no default): the same numbers, and the same answer as unpack; after -1 `out` is undefined.",
)


# --- joint compression by several workers -----------------------------------------------------------------------------

shares_stream = generic(
    "shares_stream",
    "shares_stream(c) -> bool: whether all workers draw the same random numbers in a step (a shared seed).",
    lambda c: False,
    interpreted=True,
)
summed = generic(
    "summed",
    "summed(c, d) -> (int, int): the range of `value` that may be added up over the workers instead of sending whole "
    "messages; everything else in the symbols is then the same for all of them. (0, 0): messages cannot be added.",
    lambda c, d: (0, 0),
    interpreted=True,
)
opening = generic(
    "opening",
    "opening(c, d) -> int: how many numbers the workers combine before they quantize (0: none). Then propose and "
    "settle are also called. Without other workers, quantize uses its own proposal.",
    lambda c, d: 0,
    interpreted=True,
)
opening_is_maximum = generic(
    "opening_is_maximum",
    "opening_is_maximum(c) -> bool: whether those numbers are combined to their maximum (otherwise to their mean).",
    lambda c: False,
    interpreted=True,
)


propose = generic(
    "propose",
    "propose(c, state, v, stream, numbers): fill the numbers of the opening (float64) with this worker's.",
    lambda c, state, v, stream, numbers: None,
)
settle = generic(
    "settle",
    "settle(c, d, state, numbers): store the combined numbers in the worker's state, for the next quantize.",
    lambda c, d, state, numbers: None,
)
update_state = generic(
    "update_state",
    "update_state(c, d, state, symbols): update a worker's state from its own message, or from the sum of all "
    "where messages are added (a warm start).",
    lambda c, d, state, symbols: None,
)


# --- messages within messages -----------------------------------------------------------------------------------------


@kernel
def room_of(c, d):
    """Numbers of counts, indices, values, levels and scratch entries in the symbols of a compressor."""
    indices, values, levels, scratch = capacity(c, d)
    return 3 * parts(c, d), indices, values, levels, scratch


@kernel
def section(symbols, begin, room):
    """Symbols within symbols: given numbers of counts, indices, values, levels and scratch, from given offsets."""
    counts, indices, values, levels, scratch = begin
    return Symbols(
        symbols.count[counts : counts + room[0]],
        symbols.index[indices : indices + room[1]],
        symbols.value[values : values + room[2]],
        symbols.level[levels : levels + room[3]],
        symbols.scratch[scratch : scratch + room[4]],
    )


def new_symbols(c: Any, d: int, wire: np.ndarray) -> Symbols:
    """Empty symbols for vectors of length d; ``wire`` is an empty array with the dtype of the message's floats.

    Allocated by NumPy, which uses large pages: that halves the time for a long vector, and nothing needs compiling.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.
    wire : ndarray, shape (0,)
        float32 or float64.

    Returns
    -------
    Symbols
        With capacity for the longest message.
    """
    indices, values, levels, scratch = capacity(c, d)
    return Symbols(
        np.zeros(3 * parts(c, d), np.int64),
        np.empty(indices, np.uint32),
        np.zeros(values, wire.dtype),  # initialized, so that all of it can be compared, used or not
        np.empty(levels, np.int32),
        np.empty(scratch, np.uint32),
    )
