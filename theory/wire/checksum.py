"""The 64-bit hash XXH3, for the checksum of messages.

Y. Collet's XXH3 with seed 0, as https://github.com/Cyan4973/xxHash specifies it.  It reads 64 bytes at a time, which is
about ten times as fast as zlib's CRC-32; and it is compiled, so that the messages of a round need no call of Python.
Numbers are read with their lowest byte first, as they are stored by all processors that Numba supports.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..core import kernel
from ..core.numba_private import cgutils

i64, u64 = np.int64, np.uint64

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
START = (P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0])
P1, P2, P3, MIX, LAST_MIX = (u64(p) for p in (*P64[:3], 0x165667919E3779F9, 0x9FB21C651E98DF25))
STRIPE, BLOCK = 64, 1024  # bytes that are added at a time, and those after which the sums are mixed

_BYTE, _HALF, _WORD, _WIDE = (ir.IntType(bits) for bits in (8, 32, 64, 128))
_WORDS = ir.VectorType(_WORD, 8)


# --- memory behind an address -----------------------------------------------------------------------------------------


def _load(builder, address, kind):
    """The number or numbers behind an address, which need not be aligned."""
    found = builder.load(builder.inttoptr(address, kind.as_pointer()))
    found.align = 1
    return found


def _reader(kind):
    @intrinsic
    def read(typingctx, address):
        def codegen(context, builder, signature, args):
            found = _load(builder, args[0], kind)
            return found if kind == _WORD else builder.zext(found, _WORD)

        return types.uint64(types.int64), codegen

    return read


_one, _four, _eight = _reader(_BYTE), _reader(_HALF), _reader(_WORD)


@intrinsic
def _secret(typingctx):
    """The address of the secret."""

    def codegen(context, builder, signature, args):
        return builder.ptrtoint(context.insert_const_bytes(builder.module, SECRET), _WORD)

    return types.int64(), codegen


@intrinsic
def _new_sums(typingctx):
    """The address of eight sums, valid until the function returns."""

    def codegen(context, builder, signature, args):
        sums = cgutils.alloca_once(builder, _WORDS)
        builder.store(_constants(START), sums)
        return builder.ptrtoint(sums, _WORD)

    return types.int64(), codegen


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _constants(numbers: Any) -> ir.Constant:
    return ir.Constant(_WORDS, list(numbers))


def _secret_words(at: int) -> ir.Constant:
    return _constants(int.from_bytes(SECRET[k : k + 8], "little") for k in range(at, at + STRIPE, 8))


def _add(builder, sums, words, secret):
    """Add to every sum its neighbour's word, and the product of the halves of its own word, masked."""
    masked = builder.xor(words, secret)
    halves = builder.and_(masked, _constants([0xFFFFFFFF] * 8)), builder.lshr(masked, _constants([32] * 8))
    neighbours = ir.Constant(ir.VectorType(_HALF, 8), [1, 0, 3, 2, 5, 4, 7, 6])
    return builder.add(builder.add(sums, builder.shuffle_vector(words, words, neighbours)), builder.mul(*halves))


@intrinsic
def _add_block(typingctx, sums, address):
    """Add 1,024 bytes to the sums, and mix them."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], _WORDS.as_pointer())
        now = builder.load(pointer)
        for n in range(BLOCK // STRIPE):
            words = _load(builder, builder.add(args[1], _WORD(STRIPE * n)), _WORDS)
            now = _add(builder, now, words, _secret_words(8 * n))
        now = builder.xor(now, builder.lshr(now, _constants([47] * 8)))
        now = builder.mul(builder.xor(now, _secret_words(len(SECRET) - STRIPE)), _constants([P32[0]] * 8))
        builder.store(now, pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def _add_stripe(typingctx, sums, address, secret):
    """Add 64 bytes to the sums."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], _WORDS.as_pointer())
        words, secret = (_load(builder, address, _WORDS) for address in args[1:])
        builder.store(_add(builder, builder.load(pointer), words, secret), pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def _fold(typingctx, a, b):
    """The product in 128 bits, its halves combined."""

    def codegen(context, builder, signature, args):
        product = builder.mul(*(builder.zext(x, _WIDE) for x in args))
        return builder.xor(builder.trunc(product, _WORD), builder.trunc(builder.lshr(product, _WIDE(64)), _WORD))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def _reverse(typingctx, word):
    """The word with its bytes in the other order."""
    return types.uint64(types.uint64), lambda context, builder, signature, args: builder.bswap(args[0])


@kernel
def _rotate(x, by):
    return (x << u64(by)) | (x >> u64(64 - by))


@kernel
def _mix(h, first, factor, last):
    h = (h ^ (h >> u64(first))) * factor
    return h ^ (h >> u64(last))


@kernel
def _pair(address, secret):
    """Mix 16 bytes."""
    return _fold(_eight(address) ^ _eight(secret), _eight(address + 8) ^ _eight(secret + 8))


# --- the function -----------------------------------------------------------------------------------------------------


@kernel
def xxh3(address, size):
    """XXH3 of the ``size`` bytes at an address, as uint64."""
    secret, last = _secret(), address + size
    if size > 240:
        return _long(address, size)
    if size > 128:
        h = u64(size) * P1
        for k in range(0, 128, 16):
            h += _pair(address + k, secret + k)
        h = _mix(h, 37, MIX, 32)
        for k in range(128, size - 15, 16):
            h += _pair(address + k, secret + k - 125)
        return _mix(h + _pair(last - 16, secret + 119), 37, MIX, 32)
    if size > 16:
        h = u64(size) * P1
        for k in range(0, (size + 31) // 32):  # from both ends inwards
            h += _pair(address + 16 * k, secret + 32 * k) + _pair(last - 16 * (k + 1), secret + 32 * k + 16)
        return _mix(h, 37, MIX, 32)
    if size > 8:
        low = _eight(address) ^ _eight(secret + 24) ^ _eight(secret + 32)
        high = _eight(last - 8) ^ _eight(secret + 40) ^ _eight(secret + 48)
        return _mix(u64(size) + _reverse(low) + high + _fold(low, high), 37, MIX, 32)
    if size > 3:
        h = (_four(last - 4) + (_four(address) << u64(32))) ^ _eight(secret + 8) ^ _eight(secret + 16)
        h = (h ^ _rotate(h, 49) ^ _rotate(h, 24)) * LAST_MIX
        h = (h ^ ((h >> u64(35)) + u64(size))) * LAST_MIX
        return h ^ (h >> u64(28))
    if size > 0:
        h = (_one(address) << u64(16)) | (_one(address + size // 2) << u64(24)) | _one(last - 1) | u64(size << 8)
        h ^= _four(secret) ^ _four(secret + 4)
    else:
        h = _eight(secret + 56) ^ _eight(secret + 64)
    h = _mix(h, 33, P2, 29) * P3
    return h ^ (h >> u64(32))


@kernel
def _long(address, size):
    """XXH3 of more than 240 bytes: whole blocks, whole stripes, and the last 64 bytes, which may overlap with them."""
    sums, secret, last = _new_sums(), _secret(), address + size
    while address + BLOCK < last:
        _add_block(sums, address)
        address += BLOCK
    while address + STRIPE < last:
        _add_stripe(sums, address, secret)
        address, secret = address + STRIPE, secret + 8
    secret = _secret()
    _add_stripe(sums, last - STRIPE, secret + 121)
    h = u64(size) * P1
    for k in range(0, STRIPE, 16):
        h += _fold(_eight(sums + k) ^ _eight(secret + 11 + k), _eight(sums + k + 8) ^ _eight(secret + 19 + k))
    return _mix(h, 37, MIX, 32)
