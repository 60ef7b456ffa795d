"""Codes of small symbols: signs, numbers -1, 0, 1, and sparse signed integers.

Signs of a vector are stored 32 per word: bit j & 31 of word j >> 5 is 1 where coordinate j is negative.  The numbers
-1, 0, 1 are stored five per byte (3**5 = 243), so 1.6 bits each; log2(3) = 1.585 is the minimum.  Sparse signed
integers have Elias omega codes: number of non-zeros, then distance, sign and size of each.
"""

from __future__ import annotations

import numpy as np

from ..core import kernel
from ..core.vectors import add_entry
from .bits import bits_for, load_signs, load_word, read, store_word, write
from .integers import omega_code, omega_length, read_omega, write_omega

# --- Signs of a vector, 32 per word ----------------------------------------------------------------------------------

u32, u64 = np.uint32, np.uint64


@kernel
def fill_signs(v, words):
    """Bit j & 31 of words[j >> 5] = whether v_j < 0."""
    d = v.size
    for k in range(d >> 5):
        words[k] = load_signs(v, 32 * k)
    if d & 31:
        word = u32(0)
        for j in range(d & ~31, d):
            word |= u32(v[j] < 0) << u32(j & 31)
        words[d >> 5] = word


@kernel
def add_signs(words, d, amount, out):
    """Add amount times the signs of d coordinates to ``out``."""
    for j in range(d):
        negative = (words[j >> 5] >> u32(j & 31)) & u32(1)
        add_entry(out, j, -amount if negative else amount)


@kernel
def restore_signs(words, scale, out):
    """Write scale times the signs to ``out``, without -0.0."""
    plus = out.dtype.type(scale)
    minus = out.dtype.type(0) - plus  # 0 and not -0.0 where the scale is 0, as in accumulate
    d = out.size
    for k in range(d >> 5):
        word, start = words[k], 32 * k
        for b in range(32):
            out[start + b] = minus if (word >> u32(b)) & u32(1) else plus
    for j in range(d & ~31, d):
        out[j] = minus if (words[j >> 5] >> u32(j & 31)) & u32(1) else plus


@kernel
def write_signs(buffer, cursor, words, d):
    """Write d bits; return the cursor after them."""
    whole = d >> 6
    for k in range(whole):
        cursor = write(buffer, cursor, u64(words[2 * k]) | (u64(words[2 * k + 1]) << u64(32)), 64)
    for j in range(64 * whole, d, 32):
        cursor = write(buffer, cursor, words[j >> 5], min(32, d - j))
    return cursor


@kernel
def read_signs(buffer, cursor, words, d):
    """Read d bits, which must be there; return the cursor after them."""
    whole = d >> 6
    for k in range(whole):
        word = read(buffer, cursor, 64)
        words[2 * k], words[2 * k + 1] = u32(word), u32(word >> u64(32))
        cursor += 64
    for j in range(64 * whole, d, 32):
        width = min(32, d - j)
        words[j >> 5] = u32(read(buffer, cursor, width))
        cursor += width
    return cursor


# --- Numbers -1, 0, 1 ------------------------------------------------------------------------------------------------

i32, i64, u32, u64 = np.int32, np.int64, np.uint32, np.uint64


@kernel
def _rest_bits(n):
    """Bits of a last group of n < 5."""
    return bits_for(3**n) if n > 0 else 0


@kernel
def trits_bits(d):
    """Number of bits of d trits: 8 for every five, and 2, 4, 5 or 7 for the rest."""
    return 8 * (d // 5) + _rest_bits(d % 5)


@kernel
def _five(trit, j):
    a = i64(trit[j]) + 3 * i64(trit[j + 1]) + 9 * i64(trit[j + 2]) + 27 * i64(trit[j + 3]) + 81 * i64(trit[j + 4])
    return u64(a + 121)


@kernel
def write_trits(buffer, cursor, trit):
    """Write an array of int32; return the cursor after it."""
    d, j = trit.size, 0
    while j + 40 <= d:
        word = u64(0)
        for k in range(8):
            word |= _five(trit, j + 5 * k) << u64(8 * k)
        cursor = write(buffer, cursor, word, 64)
        j += 40
    while j + 5 <= d:
        cursor = write(buffer, cursor, _five(trit, j), 8)
        j += 5
    number, power = i64(0), i64(1)
    for p in range(j, d):
        number += power * (i64(trit[p]) + 1)
        power *= 3
    return write(buffer, cursor, number, _rest_bits(d - j)) if d > j else cursor


@kernel
def _spread(number, trit, j, n):
    """Extract the digits of a group; return the remainder: 0 if the number has n digits."""
    number = u32(number)
    for p in range(j, j + n):
        third = u32(number // u32(3))
        trit[p] = i32(u32(number - third * u32(3))) - i32(1)
        number = third
    return number


@kernel
def read_trits(buffer, cursor, trit):
    """Read all of ``trit``; return the cursor, or -1 if a group is invalid.  The bits must exist."""
    d, j, bad = trit.size, 0, u32(0)
    while j + 40 <= d:
        word = read(buffer, cursor, 64)
        for k in range(8):
            bad |= _spread((word >> u64(8 * k)) & u64(255), trit, j + 5 * k, 5)
        cursor += 64
        j += 40
    while j + 5 <= d:
        bad |= _spread(read(buffer, cursor, 8), trit, j, 5)
        cursor += 8
        j += 5
    if d > j:
        bad |= _spread(read(buffer, cursor, _rest_bits(d - j)), trit, j, d - j)
        cursor += _rest_bits(d - j)
    return -1 if bad else cursor


# --- Sparse signed integers in Elias omega codes ---------------------------------------------------------------------

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
    """Write an array of int32; return the cursor after it."""
    count = 0
    for j in range(level.size):
        count += level[j] != 0
    cursor, last = write_omega(buffer, cursor, count + 1), -1
    code, length = np.empty(SHORT, np.uint64), np.empty(SHORT, np.int64)
    for n in range(1, SHORT):
        code[n], length[n] = omega_code(n)
    # bits not yet in the buffer are held in a word, of which ``full`` < 32 bits are in use
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
