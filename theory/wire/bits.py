"""Bits in a buffer of bytes: single values, floats, and whole arrays of small numbers.

Bit number b of a message is bit ``b & 7`` (counted from the lowest) of byte ``b >> 3``, and a value of several bits is
written lowest bit first.  So eight values of w bits fill exactly w bytes, wherever they begin, and one 64-bit word
reads or writes them at once on the usual machines.

Writers expect zeros from the cursor on and room for what they write; readers expect that the bits they are asked for
exist.  Who reads foreign bytes checks that before the call.
"""

from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ..dispatch import inlined, kernel

__all__ = [
    "bit_length", "bits_for", "bits_to_float", "float_to_bits", "read", "read_array", "read_float", "read_floats",
    "write", "write_array", "write_float", "write_floats",
]  # fmt: skip

i64, u8, u64 = np.int64, np.uint8, np.uint64

_BIG = sys.byteorder == "big"


# --- what NumPy has no name for ---------------------------------------------------------------------------------------


@intrinsic
def _load(typingctx, buffer, byte):
    """Eight bytes from ``byte`` on, the first one lowest; wherever they lie."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        word = builder.load(pointer)
        word.align = 1
        return builder.bswap(word) if _BIG else word

    return types.uint64(buffer, types.int64), codegen


@intrinsic
def _store(typingctx, buffer, byte, word):
    """The inverse of ``_load``."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        builder.store(builder.bswap(args[2]) if _BIG else args[2], pointer).align = 1
        return context.get_dummy_value()

    return types.void(buffer, types.int64, types.uint64), codegen


@intrinsic
def float_to_bits(typingctx, x):
    """The IEEE bits of a float32 as uint32, of a float64 as uint64."""
    word = types.uint32 if x == types.float32 else types.uint64

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(signature.return_type.bitwidth))

    return word(x), codegen


@intrinsic
def bits_to_float(typingctx, word, like):
    """The float with these IEEE bits, of the type of ``like`` (float32 or float64)."""

    def codegen(context, builder, signature, args):
        if signature.args[1] == types.float32:
            return builder.bitcast(builder.trunc(args[0], ir.IntType(32)), ir.FloatType())
        return builder.bitcast(args[0], ir.DoubleType())

    return like(types.uint64, like), codegen


@intrinsic
def _bit_length(typingctx, n):
    def codegen(context, builder, signature, args):
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.int64(types.uint64), codegen


@kernel
def bit_length(n):
    """How many binary digits a whole number has; 0 for 0."""
    return _bit_length(u64(n))


@kernel
def bits_for(n):
    """Bits to write any of 0, 1, ..., n - 1."""
    return _bit_length(u64(n - 1)) if n > 1 else 0


# --- one value --------------------------------------------------------------------------------------------------------


@inlined
@kernel
def write(buffer, cursor, value, width):
    """Write the lowest ``width`` <= 64 bits of ``value``; return the cursor behind them."""
    word = u64(value)
    if width < 64:
        word &= (u64(1) << u64(width)) - u64(1)
    byte, shift, left = cursor >> 3, cursor & 7, width
    if byte + 9 <= buffer.size:
        _store(buffer, byte, _load(buffer, byte) | (word << u64(shift)))
        if shift + width > 64:
            buffer[byte + 8] = u8(word >> u64(64 - shift))
        return cursor + width
    while left > 0:
        buffer[byte] |= u8((word << u64(shift)) & u64(255))
        word >>= u64(8 - shift)
        left -= 8 - shift
        byte, shift = byte + 1, 0
    return cursor + width


@inlined
@kernel
def read(buffer, cursor, width):
    """Read ``width`` <= 64 bits as uint64.  The bits must exist."""
    byte, shift = cursor >> 3, cursor & 7
    word = u64(0)
    if byte + 9 <= buffer.size:
        word = _load(buffer, byte) >> u64(shift)
        if shift + width > 64:
            word |= u64(buffer[byte + 8]) << u64(64 - shift)
    else:
        have = -shift
        while have < width:
            part = u64(buffer[byte])
            word |= part << u64(have) if have >= 0 else part >> u64(-have)
            byte, have = byte + 1, have + 8
    if width < 64:
        word &= (u64(1) << u64(width)) - u64(1)
    return word


@inlined
@kernel
def write_float(buffer, cursor, values, i):
    """Write ``values[i]``, a float32 in 32 bits or a float64 in 64; return the cursor behind it."""
    return write(buffer, cursor, float_to_bits(values[i]), 8 * values.itemsize)


@inlined
@kernel
def read_float(buffer, cursor, values, i):
    """Read a float of the dtype of ``values`` into ``values[i]``; return the cursor behind it."""
    width = 8 * values.itemsize
    values[i] = bits_to_float(read(buffer, cursor, width), values[i])
    return cursor + width


# --- arrays -----------------------------------------------------------------------------------------------------------


@kernel
def write_floats(buffer, cursor, values):
    """Write an array of float32 or float64; return the cursor behind them.  At a whole byte, a word at a time."""
    n, i, per_word = values.size, 0, 8 // values.itemsize
    if cursor & 7 == 0:
        byte = cursor >> 3
        while i + per_word <= n:
            word = float_to_bits(values[i])
            if per_word == 2:
                word |= float_to_bits(values[i + 1]) << u64(32)
            _store(buffer, byte, word)
            byte += 8
            i += per_word
        cursor = byte << 3
    for j in range(i, n):
        cursor = write_float(buffer, cursor, values, j)
    return cursor


@kernel
def read_floats(buffer, cursor, values):
    """Read what :func:`write_floats` wrote into all of ``values``; return the cursor behind it."""
    n, i, per_word = values.size, 0, 8 // values.itemsize
    if cursor & 7 == 0:
        byte = cursor >> 3
        while i + per_word <= n:
            word = _load(buffer, byte)
            if per_word == 2:
                values[i] = bits_to_float(word & u64(0xFFFFFFFF), values[i])
                values[i + 1] = bits_to_float(word >> u64(32), values[i])
            else:
                values[i] = bits_to_float(word, values[i])
            byte += 8
            i += per_word
        cursor = byte << 3
    for j in range(i, n):
        cursor = read_float(buffer, cursor, values, j)
    return cursor


@kernel
def write_array(buffer, cursor, values, offset, width):
    """Write ``values[i] + offset`` in ``width`` <= 32 bits each; return the cursor behind them.

    For small widths eight values make one 64-bit word; the word's part that does not fill a byte is carried on.
    """
    n, i = values.size, 0
    if width <= 8 and n >= 16:
        byte, shift = cursor >> 3, u64(cursor & 7)
        carry = u64(buffer[byte]) if shift else u64(0)
        while i + 8 <= n and byte + 8 <= buffer.size:
            word = u64(0)
            for k in range(8):
                word |= u64(i64(values[i + k]) + offset) << u64(k * width)
            low = carry | (word << shift)
            carry = (word >> u64(1)) >> (u64(63) - shift) if width == 8 else low >> u64(8 * width)
            _store(buffer, byte, low)
            byte += width
            i += 8
        if carry:
            buffer[byte] = u8(carry)
        cursor += i * width
    for j in range(i, n):
        cursor = write(buffer, cursor, i64(values[j]) + offset, width)
    return cursor


@kernel
def read_array(buffer, cursor, values, offset, width):
    """Read what :func:`write_array` wrote into all of ``values``; return the cursor behind it."""
    n, i = values.size, 0
    if width <= 8 and n >= 16:
        byte, shift, mask = cursor >> 3, u64(cursor & 7), (u64(1) << u64(width)) - u64(1)
        while i + 8 <= n and byte + 9 <= buffer.size:
            word = (_load(buffer, byte) >> shift) | ((u64(buffer[byte + 8]) << u64(1)) << (u64(63) - shift))
            for k in range(8):
                values[i + k] = i64((word >> u64(k * width)) & mask) - offset
            byte += width
            i += 8
        cursor += i * width
    for j in range(i, n):
        values[j] = i64(read(buffer, cursor, width)) - offset
        cursor += width
    return cursor
