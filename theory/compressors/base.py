"""What every compressor answers: the generic functions, and the one container that symbols travel in.

A compressor is a :func:`theory.settings.setting` of numbers and other compressors.  Written in one file, it registers

``capacity``  how much room its symbols take (and ``parts``, if it is made of several messages),
``quantize``  a vector becomes symbols (norms, indices, levels: sparse stays sparse),
``accumulate``  symbols become a multiple of the restored vector, added to a vector,
``pack``, ``unpack``, ``payload_bits``  symbols become bits and come back,

and, in Python, its closed forms (:func:`omega` or :func:`delta`, :func:`expected_nonzeros`,
:func:`expected_payload_bits`) and, where the dimension matters, :func:`check`.  As ``restore(quantize(v))`` and
``decode(encode(v))`` run through the same symbols, they agree by construction.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np

from ..dispatch import generic, kernel


class Symbols(NamedTuple):
    """One message before it is packed.  One type for all compressors, so that Numba compiles few variants.

    Attributes
    ----------
    count : numpy.ndarray of int64, shape (3 * parts,)
        How many entries of ``index``, ``value`` and ``level`` are in use, for each part.
    index : numpy.ndarray of uint32
        Positions.
    value : numpy.ndarray of float32 or float64
        Numbers as they stand on the wire: the dtype of this array *is* the wire's, so storing rounds.
    level : numpy.ndarray of int32
        Signed whole numbers.
    scratch : numpy.ndarray of uint32
        Work space, 0, 1, 2, ... at the start; who relies on that restores it.
    """

    count: np.ndarray
    index: np.ndarray
    value: np.ndarray
    level: np.ndarray
    scratch: np.ndarray


capacity = generic(
    "capacity",
    "capacity(c, d) -> (int, int, int, int): room for index, value, level and scratch for vectors of length d.",
)
parts = generic(
    "parts",
    "parts(c, d) -> int: how many triples of counts its symbols need (1; a combinator: those of all its parts).",
    lambda c, d: 1,
)
state_size = generic(
    "state_size",
    "state_size(c, d) -> int: length of the float64 state that a worker keeps between messages (0: none).",
    lambda c, d: 0,
)
quantize = generic(
    "quantize",
    "quantize(c, state, v, stream, symbols): fill symbols with the message for v; randomness from the key `stream`. "
    "v is an array or any vector of theory.vectors (then entry, largest and nonzeros are asked).",
)
accumulate = generic(
    "accumulate",
    "accumulate(c, symbols, weight, out): out += weight * (the vector that the receiver restores).",
)
payload_bits = generic("payload_bits", "payload_bits(c, symbols, d) -> int: exact length of the packed symbols.")
pack = generic(
    "pack",
    "pack(c, symbols, d, buffer, cursor) -> int: write the symbols at bit `cursor` of the uint8 buffer (zeroed from "
    "there on, and long enough); return the cursor behind them.",
)
unpack = generic(
    "unpack",
    "unpack(c, buffer, cursor, end, d, symbols) -> int: read what pack wrote; return the cursor behind it, or -1 when "
    "the bits before `end` do not hold a valid message. Never reads or writes out of bounds.",
)


def _max_payload_bits(c, d, float_bits):
    indices, values, levels, _ = capacity(c, d)
    return 64 + 32 * indices + float_bits * values + 32 * levels


max_payload_bits = generic(
    "max_payload_bits",
    "max_payload_bits(c, d, float_bits) -> int: no payload for vectors of length d is longer (for buffers).",
    _max_payload_bits,
)


def _restore(c, symbols, out):
    out[:] = 0.0
    accumulate(c, symbols, 1.0, out)


def _compress_into(c, state, v, stream, symbols, out):
    quantize(c, state, v, stream, symbols)
    restore(c, symbols, out)


restore = generic("restore", "restore(c, symbols, out): out = the vector that the receiver restores.", _restore)
compress_into = generic(
    "compress_into",
    "compress_into(c, state, v, stream, symbols, out): quantize and restore in one pass where that is faster.",
    _compress_into,
)


@kernel
def new_symbols(c, d, wire):
    """Empty symbols for vectors of length d; ``wire`` is an empty array whose dtype is that of floats on the wire."""
    indices, values, levels, scratch = capacity(c, d)
    numbers = np.empty(scratch, np.uint32)
    for j in range(scratch):  # NumPy's arange takes seconds to compile
        numbers[j] = j
    return Symbols(
        np.zeros(3 * parts(c, d), np.int64),
        np.empty(indices, np.uint32),
        np.empty(values, wire.dtype),
        np.empty(levels, np.int32),
        numbers,
    )


# --- closed forms and checks: Python only, dispatched on the class of the compressor ----------------------------------


@singledispatch
def check(c, d: int) -> None:
    """Raise ``ValueError`` if the compressor ``c`` cannot be used on vectors of length ``d``."""


@singledispatch
def omega(c, d: int) -> float:
    """Variance factor of an unbiased compressor: sup E||Q(v) - v||^2 / ||v||^2 over vectors of length d."""
    raise TypeError(f"{type(c).__name__} is not unbiased (or has no closed form): omega is not defined, see delta")


@singledispatch
def delta(c, d: int) -> float:
    """Contraction factor: the largest delta with E||C(v) - v||^2 <= (1 - delta) ||v||^2 for vectors of length d."""
    raise TypeError(f"{type(c).__name__} is not a contraction (or has no closed form): delta is not defined, see omega")


@singledispatch
def expected_nonzeros(c, v) -> float:
    """Expected number of non-zero coordinates of the restored vector, for this vector ``v``."""
    raise TypeError(f"{type(c).__name__}: no closed form for the expected non-zeros")


@singledispatch
def expected_payload_bits(c, v) -> float:
    """Expected payload of one message in bits, for this vector ``v`` (float32 on the wire)."""
    raise TypeError(f"{type(c).__name__}: no closed form for the expected payload")
