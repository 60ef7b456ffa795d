"""Bits in a byte buffer: single values, floats, and whole arrays of small integers.

Bit number b of a message is bit ``b & 7`` (counted from the lowest) of byte ``b >> 3``, and a value of several bits is
written lowest bit first.  So eight values of w bits fill exactly w bytes, wherever they begin, and can be read or
written as one 64-bit word.

Writers expect zeros from the cursor on and enough space; readers expect that the requested bits exist.  When reading
foreign bytes, check that before the call.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..core import kernel, no_refcount, uncounted
from ..core.numba_private import cgutils

i32, i64, u8, u64 = np.int32, np.int64, np.uint8, np.uint64

_BIG = sys.byteorder == "big"
TILE, WORDS = 1024, 128  # values of small width that are packed via bytes together, in words of eight


# --- operations that NumPy does not have ------------------------------------------------------------------------------


@intrinsic
def load_word(typingctx, buffer, byte):
    """Load eight bytes from ``byte`` on, little-endian, possibly unaligned."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        word = builder.load(pointer)
        word.align = 1
        return builder.bswap(word) if _BIG else word

    return types.uint64(buffer, types.int64), codegen


@intrinsic
def store_word(typingctx, buffer, byte, word):
    """The inverse of ``load_word``."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        builder.store(builder.bswap(args[2]) if _BIG else args[2], pointer).align = 1
        return context.get_dummy_value()

    return types.void(buffer, types.int64, types.uint64), codegen


@intrinsic
def on_stack(typingctx, zero, size):
    """An array of ``size`` numbers of the type of ``zero``, not initialized and valid until the function returns.

    ``np.empty`` allocates on the heap, which takes as long as packing a hundred numbers.
    """
    if not isinstance(size, types.IntegerLiteral):
        return None
    made = cast(Any, types).Array(cast(Any, types).unliteral(zero), 1, "C")

    def codegen(context, builder, signature, args):
        kind, count = context.get_data_type(made.dtype), size.literal_value
        array, width = context.make_array(made)(context, builder), context.get_abi_sizeof(kind)
        shape, strides = (cgutils.pack_array(builder, [ir.IntType(64)(n)]) for n in (count, width))
        context.populate_array(
            array,
            data=cgutils.alloca_once(builder, kind, size=count),
            shape=shape,
            strides=strides,
            itemsize=ir.IntType(64)(width),
            meminfo=None,
        )
        return array._getvalue()

    return made(zero, size), codegen


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
def load_signs(typingctx, array, first):
    """Sign bits of the 32 floats from ``first`` on, as a uint32 with the first in the lowest bit."""
    if array.layout != "C":
        return None

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        lanes = ir.VectorType(data.type.pointee, 32)
        numbers = builder.load(builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer()))
        numbers.align = array.dtype.bitwidth // 8
        below = builder.fcmp_ordered("<", numbers, ir.Constant(lanes, None))
        word = builder.bitcast(below, ir.IntType(32))
        return builder.bitreverse(word) if _BIG else word

    return types.uint32(array, types.int64), codegen


@intrinsic
def fetch_early(typingctx, array, i, write):
    """Prefetch ``array[i]``, which need not exist."""
    if not isinstance(write, types.IntegerLiteral):
        return None

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer.type], ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        )
        builder.call(hint, [pointer, number(write.literal_value), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64, write), codegen


@intrinsic
def _bit_length(typingctx, n):
    def codegen(context, builder, signature, args):
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.int64(types.uint64), codegen


@kernel
def bit_length(n):
    """Number of binary digits of an integer; 0 for 0."""
    return _bit_length(u64(n))


@kernel
def bits_for(n):
    """Number of bits for any of 0, 1, ..., n - 1.

    Parameters
    ----------
    n : int
        At least 1.

    Returns
    -------
    int
        The smallest b with 2**b >= n.

    Examples
    --------
    >>> bits_for(1), bits_for(5), bits_for(8)
    (0, 3, 3)
    """
    return _bit_length(u64(n - 1)) if n > 1 else 0


# --- one value --------------------------------------------------------------------------------------------------------


@no_refcount
@kernel
def write(buffer, cursor, value, width):
    """Write the lowest ``width`` <= 64 bits of ``value``; return the cursor after them."""
    word = u64(value)
    if width < 64:
        word &= (u64(1) << u64(width)) - u64(1)
    byte, shift, left = cursor >> 3, cursor & 7, width
    if byte + 9 <= buffer.size:
        store_word(buffer, byte, load_word(buffer, byte) | (word << u64(shift)))
        if shift + width > 64:
            buffer[byte + 8] = u8(word >> u64(64 - shift))
        return cursor + width
    while left > 0:
        buffer[byte] |= u8((word << u64(shift)) & u64(255))
        word >>= u64(8 - shift)
        left -= 8 - shift
        byte, shift = byte + 1, 0
    return cursor + width


@no_refcount
@kernel
def read(buffer, cursor, width):
    """Read ``width`` <= 64 bits as uint64.  The bits must exist."""
    byte, shift = cursor >> 3, cursor & 7
    word = u64(0)
    if byte + 9 <= buffer.size:
        word = load_word(buffer, byte) >> u64(shift)
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


@no_refcount
@kernel
def write_float(buffer, cursor, values, i):
    """Write ``values[i]``, a float32 in 32 bits or a float64 in 64; return the cursor after it."""
    return write(buffer, cursor, float_to_bits(values[i]), 8 * values.itemsize)


@no_refcount
@kernel
def read_float(buffer, cursor, values, i):
    """Read a float of the dtype of ``values`` into ``values[i]``; return the cursor after it."""
    width = 8 * values.itemsize
    values[i] = bits_to_float(read(buffer, cursor, width), values[i])
    return cursor + width


# --- arrays -----------------------------------------------------------------------------------------------------------


@kernel
def write_floats(buffer, cursor, values):
    """Write an array of float32 or float64; return the cursor after them.  If byte-aligned, a word at a time."""
    n, i, per_word = values.size, 0, 8 // values.itemsize
    if cursor & 7 == 0:
        byte = cursor >> 3
        while i + per_word <= n:
            word = float_to_bits(values[i])
            if per_word == 2:
                word |= float_to_bits(values[i + 1]) << u64(32)
            store_word(buffer, byte, word)
            byte += 8
            i += per_word
        cursor = byte << 3
    for j in range(i, n):
        cursor = write_float(buffer, cursor, values, j)
    return cursor


@kernel
def read_floats(buffer, cursor, values):
    """Read what :func:`write_floats` wrote into all of ``values``; return the cursor after it."""
    n, i, per_word = values.size, 0, 8 // values.itemsize
    if cursor & 7 == 0:
        byte = cursor >> 3
        while i + per_word <= n:
            word = load_word(buffer, byte)
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


@no_refcount
@kernel
def _squeeze(word, width):
    """Pack eight bytes below 2^width into 8 * width bits: merge neighbours, then pairs, then fours."""
    one, two, four = u64(0x00FF00FF00FF00FF), u64(0x0000FFFF0000FFFF), u64(0x00000000FFFFFFFF)
    word = (word & one) | ((word & ~one) >> u64(8 - width))
    word = (word & two) | ((word & ~two) >> u64(16 - 2 * width))
    return (word & four) | ((word & ~four) >> u64(32 - 4 * width))


@no_refcount
@kernel
def _stretch(word, width):
    """The inverse of ``_squeeze``; bits above 8 * width are ignored."""
    four = (u64(1) << u64(4 * width)) - u64(1)
    two = ((u64(1) << u64(2 * width)) - u64(1)) * u64(0x0000000100000001)
    one = ((u64(1) << u64(width)) - u64(1)) * u64(0x0001000100010001)
    word = (word & four) | ((word & (four << u64(4 * width))) << u64(32 - 4 * width))
    word = (word & two) | ((word & (two << u64(2 * width))) << u64(16 - 2 * width))
    return (word & one) | ((word & (one << u64(width))) << u64(8 - width))


@uncounted
@kernel
def write_array(buffer, cursor, values, offset, width):
    """Write ``values[i] + offset`` in ``width`` <= 32 bits each; return the cursor after them.

    For small widths eight values form one 64-bit word; the part that does not fill a byte is carried over.
    """
    n, i = values.size, 0
    byte, shift = cursor >> 3, u64(cursor & 7)
    if 1 <= width <= 8 and n >= 16 and byte + 8 <= buffer.size:
        carry = u64(buffer[byte]) if shift else u64(0)
        end = 8 * min(n // 8, (buffer.size - byte - 8) // width + 1)
        tile, above = on_stack(u8(0), TILE), i32(offset)  # 32 bits, so that the processor takes many at a time
        words = on_stack(u64(0), WORDS)
        for start in range(0, end, TILE):
            piece = values[start : min(start + TILE, end)]
            for k in range(piece.size):
                tile[k] = u8(i32(piece[k]) + above)
            for k in range(piece.size // 8):  # separate from the sequential part, so that it vectorizes
                words[k] = _squeeze(load_word(tile, 8 * k), width)
            for k in range(piece.size // 8):
                word = words[k]
                low = carry | (word << shift)
                carry = (word >> u64(1)) >> (u64(63) - shift) if width == 8 else low >> u64(8 * width)
                store_word(buffer, byte, low)
                byte += width
        if carry:
            buffer[byte] = u8(carry)
        i = end
        cursor += i * width
    elif width > 8 and byte + 8 <= buffer.size:
        carry = u64(buffer[byte])
        i = min(n, 8 * (buffer.size - byte - 8) // width)
        for j in range(i):  # words are only written: reading back recent writes of another size is slow
            carry |= u64(i64(values[j]) + offset) << shift
            shift += u64(width)
            store_word(buffer, byte, carry)
            carry >>= shift & u64(56)
            byte += i64(shift >> u64(3))
            shift &= u64(7)
        cursor += i * width
    for j in range(i, n):
        cursor = write(buffer, cursor, i64(values[j]) + offset, width)
    return cursor


@uncounted
@kernel
def read_array(buffer, cursor, values, offset, width):
    """Read what :func:`write_array` wrote into all of ``values``; return the cursor after it."""
    n, i = values.size, 0
    byte, shift = cursor >> 3, u64(cursor & 7)
    if 1 <= width <= 8 and n >= 16 and byte + 9 <= buffer.size:
        end = 8 * min(n // 8, (buffer.size - byte - 9) // width + 1)
        tile, above = on_stack(u8(0), TILE), i32(offset)  # 32 bits, so that the processor takes many at a time
        words = on_stack(u64(0), WORDS)
        for start in range(0, end, TILE):
            piece = values[start : min(start + TILE, end)]
            for k in range(piece.size // 8):
                words[k] = (load_word(buffer, byte) >> shift) | ((u64(buffer[byte + 8]) << u64(1)) << (u64(63) - shift))
                byte += width
            for k in range(piece.size // 8):  # separate from the loads, so that it vectorizes
                store_word(tile, 8 * k, _stretch(words[k], width))
            for k in range(piece.size):
                piece[k] = i32(tile[k]) - above
        i = end
        cursor += i * width
    for j in range(i, n):
        values[j] = i64(read(buffer, cursor, width)) - offset
        cursor += width
    return cursor
