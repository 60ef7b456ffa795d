"""Sparse signed integers in Elias omega codes: number of non-zeros, then distance, sign and size of each."""

from __future__ import annotations

import numpy as np

from ..core import kernel
from .bits import load_word, read, store_word, write
from .elias import omega_code, omega_length, read_omega, write_omega

i64, u8, u64 = np.int64, np.uint8, np.uint64

SHORT = 64  # numbers below have omega codes of up to 12 bits
TABLE = 2**12


@kernel
def levels_bits(level):
    """Number of bits of :func:`write_levels`: number of non-zeros + 1, then distance, sign and size of each."""
    bits, last, count = 0, -1, 0
    for j in range(level.size):
        if level[j] != 0:
            bits += omega_length(j - last) + 1 + omega_length(abs(i64(level[j])))
            last = j
            count += 1
    return bits + omega_length(count + 1)


@kernel
def write_levels(buffer, cursor, level):
    """Write an array of int32; return the cursor behind it."""
    count = 0
    for j in range(level.size):
        count += level[j] != 0
    cursor, last = write_omega(buffer, cursor, count + 1), -1
    code, length = np.empty(SHORT, np.uint64), np.empty(SHORT, np.int64)
    for n in range(1, SHORT):
        code[n], length[n] = omega_code(n)
    # bits not yet in the buffer are kept in a word, of which ``full`` < 32 bits are in use
    byte, full = cursor >> 3, cursor & 7
    word = u64(buffer[byte]) if full else u64(0)
    for j in range(level.size):
        if level[j] != 0:
            gap, size = j - last, abs(i64(level[j]))
            last = j
            if gap < SHORT and size < SHORT and byte + 8 <= buffer.size:
                word |= code[gap] << u64(full)
                full += length[gap]
                word |= u64(level[j] < 0) << u64(full)
                word |= code[size] << u64(full + 1)
                full += 1 + length[size]
                if full >= 32:
                    store_word(buffer, byte, word)
                    byte += 4
                    word >>= u64(32)
                    full -= 32
                continue
            _empty(buffer, byte, word, full)
            cursor = write_omega(buffer, 8 * byte + full, gap)
            cursor = write(buffer, cursor, level[j] < 0, 1)
            cursor = write_omega(buffer, cursor, size)
            byte, full = cursor >> 3, cursor & 7
            word = u64(buffer[byte]) if full else u64(0)
    _empty(buffer, byte, word, full)
    return 8 * byte + full


@kernel
def _empty(buffer, byte, word, full):
    for k in range((full + 7) // 8):
        buffer[byte + k] = u8((word >> u64(8 * k)) & u64(255))


@kernel
def _read_code(buffer, cursor, end, d, s, j):
    """Read the gap behind coordinate j, a sign and a level, checked; return (gap, level, cursor), gap = -1 if bad."""
    gap, cursor = read_omega(buffer, cursor, end, d - 1 - j)
    if gap < 0 or cursor >= end:
        return -1, 0, cursor
    negative = read(buffer, cursor, 1)
    size, cursor = read_omega(buffer, cursor + 1, end, s)
    if size < 0:
        return -1, 0, cursor
    return gap, (-size if negative else size), cursor


@kernel
def read_levels(buffer, cursor, end, s, level):
    """Read numbers of size up to s into all of ``level``; return the cursor, or -1 where none end before ``end``."""
    d = level.size
    level[:] = 0
    count, cursor = read_omega(buffer, cursor, end, d + 1)
    if count < 0:
        return -1
    table = np.zeros(TABLE if count > TABLE // 8 else 1, np.uint16)  # by the next 12 bits: number and length
    if table.size == TABLE:
        for n in range(1, SHORT):
            code, length = omega_code(n)
            for rest in range(0, TABLE, 1 << length):
                table[i64(code) + rest] = n + 256 * length
    j = i64(-1)
    for _ in range(count - 1):
        if table.size == TABLE and cursor + 64 <= end:
            word = load_word(buffer, cursor >> 3) >> u64(cursor & 7)
            first = i64(table[word & u64(TABLE - 1)])
            word >>= u64(first >> 8)
            second = i64(table[(word >> u64(1)) & u64(TABLE - 1)])
            if first > 0 and second > 0:
                j += first & 255
                size = second & 255
                if j >= d or size > s:
                    return -1
                level[j] = -size if word & u64(1) else size
                cursor += (first >> 8) + 1 + (second >> 8)
                continue
        gap, size, cursor = _read_code(buffer, cursor, end, d, s, j)
        if gap < 0:
            return -1
        j += gap
        level[j] = size
    return cursor
