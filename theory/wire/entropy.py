"""Entropy coding of signed integers: rANS, and the shortest of a few codes.

rANS is an entropy coder: symbols of probability p take log2(1/p) bits each, fractions of a bit included.  A state x in
[2^16, 2^32) encodes the message so far.  A symbol of frequency f out of 2^14 that begins at c turns it into (x // f)
2^14 + c + x % f, which is about x / p; overflow is written as words of 16 bits.  The receiver starts from the last
state and decodes the symbols from the last to the first, reading the words in reverse.  At the end its states must
equal the sender's initial ones; few damaged messages pass this test.

Four interleaved states let the processor work on four symbols at once; short messages use one.

Symbols are 0 to 255: :func:`fold` maps levels 0, 1, -1, 2, -2, ... to 0, 1, 2, 3, 4, ....  A result of 255 or more has
the symbol ``ESCAPE``, and its remainder is sent separately.

Notes
-----
J. Duda, "Asymmetric numeral systems: entropy coding combining speed of Huffman coding with compression rate of
arithmetic coding", arXiv:1311.2540; F. Giesen, "Interleaved entropy coders", arXiv:1402.3392.

The shortest of a few codes is selected by leading flags.  Either all levels are sent; or the number of non-zeros, their
positions (Golomb-Rice) and only their levels.  Levels are sent by rANS, preceded by the frequencies; or, if there are
few, each in a gamma code or all in the width of the largest.  The sender chooses by estimates; the length that it
states is exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core import force_inline, kernel
from .bits import bits_for, read, write
from .integers import (
    delta_length,
    gamma_length,
    read_delta,
    read_gamma,
    read_unary,
    rice_bits,
    write_delta,
    write_gamma,
    write_unary,
)

# --- rANS, an entropy coder ------------------------------------------------------------------------------------------

i64, u8, u32, u64 = np.int64, np.uint8, np.uint32, np.uint64

TOTAL_BITS = 14

TOTAL = 1 << TOTAL_BITS

SYMBOLS = 256

ESCAPE = SYMBOLS - 1

LOW = u64(1 << 16)


@force_inline
@kernel
def fold(level):
    """Map 0, 1, -1, 2, -2, ... to 0, 1, 2, 3, 4, ..."""
    n = i64(level)
    return 2 * n - 1 if n > 0 else -2 * n


@force_inline
@kernel
def unfold(n):
    """The inverse of :func:`fold`."""
    return (n + 1) >> 1 if n & 1 else -(n >> 1)


# --- the model --------------------------------------------------------------------------------------------------------


@kernel
def histogram(level, skip, seen):
    """Count the symbols of the levels in ``seen``; with ``skip`` = 1 zeros are left out and symbols start at 0."""
    other = np.zeros((4, SYMBOLS + 1), np.int64)  # several tables, so that equal neighbours are independent
    fours = level.size - level.size % 4
    for j in range(0, fours, 4):
        for k in range(4):
            other[k, min(fold(level[j + k]), ESCAPE + skip)] += 1
    for j in range(fours, level.size):
        other[0, min(fold(level[j]), ESCAPE + skip)] += 1
    for s in range(SYMBOLS):
        seen[s] = other[0, s + skip] + other[1, s + skip] + other[2, s + skip] + other[3, s + skip]


@kernel
def frequencies(seen, freq):
    """Frequencies with sum 2^14 in proportion to the counts, never 0 for a symbol that occurs."""
    n, before, begin = np.int64(0), np.int64(0), np.int64(0)
    for s in range(SYMBOLS):
        n += seen[s]
    for s in range(SYMBOLS):
        before += seen[s]
        end = before * TOTAL // n
        freq[s], begin = end - begin, end
    for s in range(SYMBOLS):
        if seen[s] > 0 and freq[s] == 0:
            widest = 0
            for other in range(SYMBOLS):
                if freq[other] > freq[widest]:
                    widest = other
            freq[widest] -= 1
            freq[s] = 1


@kernel
def model_bits(freq):
    """Number of bits that :func:`write_model` writes."""
    bits, last = 8, _last(freq)
    for s in range(1, last + 1):
        bits += delta_length(freq[s] + 1)
    return bits


@kernel
def _last(freq):
    last = 0
    for s in range(SYMBOLS):
        if freq[s] > 0:
            last = s
    return last


@kernel
def write_model(buffer, cursor, freq):
    """Write the last symbol that occurs, then the frequencies of 1, 2, ... up to it; that of 0 is the remainder."""
    last = _last(freq)
    cursor = write(buffer, cursor, last, 8)
    for s in range(1, last + 1):
        cursor = write_delta(buffer, cursor, freq[s] + 1)
    return cursor


@kernel
def read_model(buffer, cursor, end, freq):
    """Read all of ``freq``, whose sum is then 2^14; return the cursor, or -1 if it is invalid."""
    if cursor + 8 > end:
        return -1
    freq[:] = 0
    last, left = i64(read(buffer, cursor, 8)), np.int64(TOTAL)
    cursor += 8
    for s in range(1, last + 1):
        more, cursor = read_delta(buffer, cursor, end, left + 1)
        if more < 0:
            return -1
        freq[s] = more - 1
        left -= more - 1
    if last > 0 and freq[last] == 0:
        return -1
    freq[0] = left
    return cursor


@kernel
def _begins(freq, begin):
    total = u32(0)
    for s in range(SYMBOLS):
        begin[s] = total
        total += freq[s]


# --- coding -----------------------------------------------------------------------------------------------------------

# The loop bodies are duplicated, as calls with array arguments would take longer than the arithmetic.


@kernel
def count_words(level, skip, ways, freq):
    """Number of 16-bit words that :func:`encode_symbols` writes before the states."""
    begin, state = np.empty(SYMBOLS, np.uint32), np.empty(4, np.uint64)
    _begins(freq, begin)
    state[:] = LOW
    fours = level.size - level.size % 4 if ways == 4 else 0
    words = 0
    for j in range(level.size):
        if skip == 0 or level[j] != 0:
            s, k = min(fold(level[j]) - skip, ESCAPE), (j & 3 if j < fours else 0)
            x, f = state[k], u64(freq[s])
            if x >= f << u64(32 - TOTAL_BITS):
                x >>= u64(16)
                words += 1
            whole = u64(u32(x) // u32(f))
            state[k] = (whole << u64(TOTAL_BITS)) + u64(begin[s]) + (x - whole * f)
    return words


@kernel
def encode_symbols(buffer, cursor, level, skip, ways, freq):
    """Write the words, then the states, of which there are ``ways``: 1 or 4 (only without ``skip``)."""
    begin, state = np.empty(SYMBOLS, np.uint32), np.empty(4, np.uint64)
    _begins(freq, begin)
    state[:] = LOW
    fours = level.size - level.size % 4 if ways == 4 else 0
    byte, shift = cursor >> 3, u64(cursor & 7)  # a word is two bytes, so the offset within a byte stays the same
    carry, start = (u64(buffer[byte]) if shift else u64(0)), byte
    for j in range(level.size):
        if skip == 0 or level[j] != 0:
            s, k = min(fold(level[j]) - skip, ESCAPE), (j & 3 if j < fours else 0)
            x, f = state[k], u64(freq[s])
            if x >= f << u64(32 - TOTAL_BITS):
                carry |= (x & u64(0xFFFF)) << shift
                buffer[byte], buffer[byte + 1] = u8(carry), u8(carry >> u64(8))
                carry >>= u64(16)
                byte += 2
                x >>= u64(16)
            whole = u64(u32(x) // u32(f))
            state[k] = (whole << u64(TOTAL_BITS)) + u64(begin[s]) + (x - whole * f)
    if carry:
        buffer[byte] = u8(carry)
    cursor += 8 * (byte - start)
    for k in range(ways):
        cursor = write(buffer, cursor, state[k], 32)
    return cursor


@kernel
def decode_symbols(buffer, first, last, level, skip, ways, freq):
    """Inverse of :func:`encode_symbols`; the words begin at bit ``first``, the states at bit ``last``.

    With ``skip`` = 1 the non-zero levels are filled.  ``ESCAPE`` is returned as its level.  Returns whether all words
    were used and the final states are correct.
    """
    begin, table = np.empty(SYMBOLS, np.uint32), np.empty(TOTAL, np.uint8)
    _begins(freq, begin)
    for s in range(SYMBOLS):
        for slot in range(begin[s], begin[s] + freq[s]):
            table[slot] = s
    state = np.empty(4, np.uint64)
    state[:] = LOW
    for k in range(ways):
        state[k] = read(buffer, last + 32 * k, 32)
    fours = level.size - level.size % 4 if ways == 4 else 0
    byte, shift, left = last >> 3, u64(last & 7), (last - first) // 16
    for j in range(level.size - 1, -1, -1):
        if skip == 0 or level[j] != 0:
            k = j & 3 if j < fours else 0
            x = state[k]
            slot = x & u64(TOTAL - 1)
            s = i64(table[slot])  # type: ignore[assignment]
            x = u64(freq[s]) * (x >> u64(TOTAL_BITS)) + slot - u64(begin[s])
            if x < LOW and left > 0:
                left -= 1
                byte -= 2
                word = u64(buffer[byte]) | u64(buffer[byte + 1]) << u64(8) | u64(buffer[byte + 2]) << u64(16)
                x = (x << u64(16)) | ((word >> shift) & u64(0xFFFF))
            state[k] = x
            level[j] = unfold(s + skip)
    return left == 0 and state[0] == LOW and state[1] == LOW and state[2] == LOW and state[3] == LOW


# --- Entropy coding of signed integers -------------------------------------------------------------------------------

f64, i64 = np.float64, np.int64

FOUR_WAYS = 2**14  # number of symbols from which four states pay off

SPARSE = 8  # positions are considered only if fewer than one in this many is non-zero


GAMMA, RANS, WIDTH = 0, 1, 2


class Plan(NamedTuple):
    """The chosen code, and the lengths of the parts that are known before writing."""

    skip: int  # 1: positions first, then only the non-zeros
    code: int
    freq: np.ndarray
    symbols: int | np.int64
    positions: int  # bits of the positions
    rest: int | np.int64  # bits of all symbols in gamma codes, or in their common width, or of those behind ESCAPE
    width: int


# --- planning ---------------------------------------------------------------------------------------------------------


@kernel
def _ways(n, skip):
    return 4 if n >= FOUR_WAYS and skip == 0 else 1


@kernel
def _escaped_bits(level, skip, least):
    """Bits of the gamma codes of ``symbol - least + 1`` of all symbols from ESCAPE on."""
    bits = 0
    for j in range(level.size):
        if fold(level[j]) - skip >= ESCAPE:
            bits += gamma_length(fold(level[j]) - skip - least + 1)
    return bits


@kernel
def _positions_bits(level, count):
    b, last = rice_bits(count, level.size), -1
    bits = delta_length(count + 1)
    for j in range(level.size):
        if level[j] != 0:
            bits += ((j - last - 1) >> b) + 1 + b
            last = j
    return bits


@kernel
def _plan_for(level, skip, positions):
    """The plan for all levels or for the non-zeros, and its approximate number of bits."""
    seen, freq = np.empty(SYMBOLS, np.int64), np.empty(SYMBOLS, np.int64)
    histogram(level, skip, seen)
    symbols, gammas, escaped, largest = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for s in range(ESCAPE):
        symbols += seen[s]
        gammas += seen[s] * gamma_length(s + 1)
        if seen[s] > 0:
            largest = np.int64(s)
    if seen[ESCAPE] > 0:
        symbols += seen[ESCAPE]
        gammas += _escaped_bits(level, skip, 0)
        escaped = _escaped_bits(level, skip, ESCAPE)
        for j in range(level.size):
            largest = max(largest, fold(level[j]) - skip)
    width = bits_for(largest + 1)
    alike = gamma_length(width + 1) + symbols * width
    code, bits = (WIDTH, alike) if alike < gammas else (GAMMA, gammas)
    if symbols == 0:
        return Plan(skip, code, freq, symbols, positions, bits, width), f64(positions)
    frequencies(seen, freq)
    ideal = f64(escaped + model_bits(freq) + bits_for(symbols + 1) + 32 * _ways(symbols, skip))
    for s in range(SYMBOLS):
        if seen[s] > 0:
            ideal += seen[s] * math.log2(TOTAL / freq[s])
    if ideal < bits:
        return Plan(skip, RANS, freq, symbols, positions, escaped, width), positions + ideal
    return Plan(skip, code, freq, symbols, positions, bits, width), f64(positions + bits)


@kernel
def _plan(level):
    zeros = 0
    for j in range(level.size):
        zeros += level[j] == 0
    every, bits = _plan_for(level, 0, 0)
    if SPARSE * (level.size - zeros) < level.size:
        some, fewer = _plan_for(level, 1, _positions_bits(level, level.size - zeros))
        if fewer < bits:
            return some
    return every


# --- bits -------------------------------------------------------------------------------------------------------------


@kernel
def levels_bits(level):
    """Number of bits that :func:`write_levels` writes."""
    if level.size == 0:
        return 0
    plan = _plan(level)
    if plan.code != RANS:
        return 3 + plan.positions + plan.rest
    ways = _ways(plan.symbols, plan.skip)
    words = count_words(level, plan.skip, ways, plan.freq)
    bits = 3 + plan.positions + model_bits(plan.freq) + bits_for(plan.symbols + 1)
    return bits + 16 * words + 32 * ways + plan.rest


@kernel
def longest_levels(n, largest):
    """Upper bound on the bits of n levels of size up to ``largest``.

    Gamma codes of all levels are one of the choices; rANS may take slightly more than its estimate.
    """
    gammas = n * gamma_length(2 * largest + 1)
    return 67 + gammas + gammas // 16


@kernel
def write_levels(buffer, cursor, level):
    """Write an array of int32; return the cursor after it."""
    if level.size == 0:
        return cursor
    plan = _plan(level)
    skip, ways = plan.skip, _ways(plan.symbols, plan.skip)
    cursor = write(buffer, cursor, 2 * plan.code + skip, 3)
    if skip:
        cursor = write_delta(buffer, cursor, plan.symbols + 1)
        b, last = rice_bits(plan.symbols, level.size), -1
        for j in range(level.size):
            if level[j] != 0:
                cursor = write_unary(buffer, cursor, (j - last - 1) >> b)
                cursor = write(buffer, cursor, j - last - 1, b)
                last = j
    if plan.code == WIDTH:
        cursor = write_gamma(buffer, cursor, plan.width + 1)
        for j in range(level.size):
            if skip == 0 or level[j] != 0:
                cursor = write(buffer, cursor, fold(level[j]) - skip, plan.width)
        return cursor
    least = 0
    if plan.code == RANS:
        before = write_model(buffer, cursor, plan.freq)
        first = before + bits_for(plan.symbols + 1)
        cursor = encode_symbols(buffer, first, level, skip, ways, plan.freq)
        write(buffer, before, (cursor - 32 * ways - first) // 16, first - before)
        if plan.rest == 0:
            return cursor
        least = ESCAPE
    for j in range(level.size):
        if fold(level[j]) - skip >= least:
            cursor = write_gamma(buffer, cursor, fold(level[j]) - skip - least + 1)
    return cursor


@kernel
def read_levels(buffer, cursor, end, largest, level):
    """Read numbers of size up to ``largest`` into all of ``level``; return the cursor, or -1 if they are invalid."""
    n = symbols = level.size
    if n == 0:
        return cursor
    if cursor + 3 > end:
        return -1
    skip, code = i64(read(buffer, cursor, 1)), i64(read(buffer, cursor + 1, 2))
    cursor += 3
    if skip:
        symbols, cursor = read_delta(buffer, cursor, end, n + 1)
        if symbols < 0:
            return -1
        symbols -= 1
        cursor = _read_places(buffer, cursor, end, symbols, level)
        if cursor < 0:
            return -1
    if code == GAMMA:
        return _read_gammas(buffer, cursor, end, largest, level, skip, 0)
    if code == WIDTH:
        return _read_alike(buffer, cursor, end, largest, level, skip, symbols)
    if code != RANS:
        return -1
    freq = np.empty(SYMBOLS, np.int64)
    width, ways = bits_for(symbols + 1), _ways(symbols, skip)
    cursor = read_model(buffer, cursor, end, freq)
    if cursor < 0 or cursor + width + 32 * ways > end:
        return -1
    for s in range(ESCAPE):
        if freq[s] > 0 and (s + skip + 1) // 2 > largest:
            return -1
    words, first = i64(read(buffer, cursor, width)), cursor + width
    cursor = first + 16 * words
    if words > symbols or cursor + 32 * ways > end:
        return -1
    if not decode_symbols(buffer, first, cursor, level, skip, ways, freq):
        return -1
    cursor += 32 * ways
    return _read_gammas(buffer, cursor, end, largest, level, skip, ESCAPE) if freq[ESCAPE] > 0 else cursor


@kernel
def _read_gammas(buffer, cursor, end, largest, level, skip, least):
    """Read the levels marked 1 with ``skip``, or all; or, if ``least`` is ESCAPE, those decoded as ESCAPE."""
    escaped = unfold(ESCAPE + skip)
    for j in range(level.size):
        if (level[j] == escaped) if least else (skip == 0 or level[j] != 0):
            more, cursor = read_gamma(buffer, cursor, end, 2 * largest + 1 - skip - least)
            if more < 0:
                return -1
            level[j] = unfold(more - 1 + least + skip)
    return cursor


@kernel
def _read_alike(buffer, cursor, end, largest, level, skip, symbols):
    width, cursor = read_gamma(buffer, cursor, end, 33)
    width -= 1
    if width < 0 or cursor + symbols * width > end:
        return -1
    for j in range(level.size):
        if skip == 0 or level[j] != 0:
            symbol = i64(read(buffer, cursor, width)) + skip
            if symbol > 2 * largest:
                return -1
            level[j] = unfold(symbol)
            cursor += width
    return cursor


@kernel
def _read_places(buffer, cursor, end, symbols, level):
    """Set ``symbols`` of the levels to 1, the others to 0."""
    n, last = level.size, -1
    b = rice_bits(symbols, n)
    level[:] = 0
    for _ in range(symbols):
        whole, cursor = read_unary(buffer, cursor, end, (n - 1) >> b)
        if whole < 0 or cursor + b > end:
            return -1
        last += 1 + ((whole << b) | i64(read(buffer, cursor, b)))
        if last >= n:
            return -1
        level[last] = 1
        cursor += b
    return cursor
