"""rANS, an entropy coder: symbols of probability p take log2(1/p) bits each, fractions of a bit included.

A state x in [2^16, 2^32) encodes the message so far.  A symbol of frequency f out of 2^14 that begins at c turns it
into (x // f) 2^14 + c + x % f, which is about x / p; overflow is written as words of 16 bits.  The receiver starts from
the last state and decodes the symbols from the last to the first, reading the words in reverse.  In the end its states
must equal the sender's initial ones: few damaged messages pass this test.

Four interleaved states let the processor work on four symbols at once; short messages use one.

Symbols are 0 to 255: :func:`fold` maps levels 0, 1, -1, 2, -2, ... to 0, 1, 2, 3, 4, ..., and what is 255 or more has
the symbol ``ESCAPE``, and its remainder is sent separately.

Notes
-----
J. Duda, "Asymmetric numeral systems: entropy coding combining speed of Huffman coding with compression rate of
arithmetic coding", arXiv:1311.2540; F. Giesen, "Interleaved entropy coders", arXiv:1402.3392.
"""

from __future__ import annotations

import numpy as np

from ..core import force_inline, kernel
from .bits import read, write
from .elias import delta_length, read_delta, write_delta

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
