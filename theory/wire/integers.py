"""Codes of integers: unary, Elias and Golomb-Rice.

Unary codes are of 0, 1, 2, ...: n zeros and a one, so n + 1 bits.  Elias codes are of 1, 2, 3, ...: omega (recursive),
gamma and delta.  The lengths are standard; within a group of binary digits the leading 1 comes first and the others
follow lowest first, as everywhere in this format.  Omega: start from "0"; while n > 1 prepend the binary digits of n
and let n = their number - 1.  So |omega(1)| = 1, 3 for 2 and 3, 6 for 4 to 7, 7 for 8 to 15, 11 for 16 to 31.

Notes
-----
P. Elias, "Universal codeword sets and representations of the integers", IEEE Trans. Inf. Theory 21 (1975).

Positions have Golomb-Rice codes of the gaps between them.  A gap g >= 1 is sent as (g - 1) >> b in unary and the b
lowest bits of g - 1 verbatim.  For k of d random positions, gaps are nearly geometric with success probability k/d, and
the best b follows from k and d, which both sides know.

Notes
-----
S. W. Golomb, "Run-length encodings", IEEE Trans. Inf. Theory 12 (1966); R. F. Rice, JPL publication 79-22 (1979); the
choice of b is that of A. Kiely, "Selecting the Golomb parameter in Rice coding", IPN progress report 42-159 (2004).
"""

from __future__ import annotations

import numpy as np

from ..core import kernel, no_refcount
from .bits import bit_length, read, write

# --- Unary codes of the integers 0, 1, 2, ... ------------------------------------------------------------------------

u64 = np.uint64


@no_refcount
@kernel
def write_unary(buffer, cursor, n):
    """Write the unary code of n >= 0; return the cursor after it."""
    return write(buffer, cursor + n, 1, 1)  # the zeros are already there


@kernel
def read_unary(buffer, cursor, end, limit):
    """Read a unary code that ends before bit ``end``; return (n, cursor), n = -1 if there is none up to ``limit``."""
    start = cursor
    while cursor < end and cursor - start <= limit:
        word = read(buffer, cursor, min(32, end - cursor))
        if word > 0:
            cursor += bit_length(word & (~word + u64(1)))  # behind the lowest one
            n = cursor - start - 1
            return (n if n <= limit else -1), cursor
        cursor += min(32, end - cursor)
    return -1, cursor


# --- Elias codes of the integers 1, 2, 3, ... ------------------------------------------------------------------------

LARGEST = 2**40 - 1  # code words of numbers up to this one fit in one 64-bit write (gamma: in two)


@kernel
def omega_length(n):
    """Bits of the omega code of n >= 1.

    Parameters
    ----------
    n : int
        The number that is coded, at least 1.

    Returns
    -------
    int
        Bits.

    Examples
    --------
    >>> [int(omega_length(n)) for n in (1, 2, 4)]
    [1, 3, 6]
    """
    length = 1
    while n > 1:
        digits = bit_length(n)
        length += digits
        n = digits - 1
    return length


@kernel
def omega_code(n):
    """The omega code of 1 <= n <= LARGEST, as a number sent lowest bit first, and its length."""
    code, length, rest = u64(0), 1, np.int64(n)
    while rest > 1:
        digits = bit_length(rest)
        group = (u64(rest) << u64(1)) & ((u64(1) << u64(digits)) - u64(1)) | u64(1)
        code = (code << u64(digits)) | group
        length += digits
        rest = digits - 1
    return code, length


@kernel
def write_omega(buffer, cursor, n):
    """Write the omega code of 1 <= n <= LARGEST; return the cursor after it."""
    code, length = omega_code(n)
    return write(buffer, cursor, code, length)


@kernel
def read_omega(buffer, cursor, end, limit):
    """Read an omega code that ends before bit ``end``; return (n, cursor), n = -1 if there is none up to ``limit``."""
    n = np.int64(1)
    while True:
        if cursor >= end:
            return -1, cursor
        if read(buffer, cursor, 1) == 0:
            return (n if n <= limit else -1), cursor + 1
        if n >= 40 or cursor + 1 + n > end:
            return -1, cursor
        digits = n
        n = np.int64((u64(1) << u64(digits)) | read(buffer, cursor + 1, digits))
        cursor += 1 + digits


@kernel
def gamma_length(n):
    """Bits of the gamma code of n >= 1: 2 floor(log2 n) + 1.

    Parameters
    ----------
    n : int
        The number that is coded, at least 1.

    Returns
    -------
    int
        Bits.

    Examples
    --------
    >>> [int(gamma_length(n)) for n in (1, 2, 4)]
    [1, 3, 5]
    """
    return 2 * bit_length(n) - 1


@kernel
def write_gamma(buffer, cursor, n):
    """Write the gamma code of 1 <= n <= LARGEST: as many zeros as n has digits behind the leading one, then n."""
    tail = bit_length(n) - 1
    cursor = write(buffer, cursor, u64(1) << u64(tail), tail + 1)
    return write(buffer, cursor, n, tail)


@kernel
def read_gamma(buffer, cursor, end, limit):
    """Read a gamma code that ends before bit ``end``; return (n, cursor), n = -1 if there is none up to ``limit``."""
    tail = 0
    while cursor < end and read(buffer, cursor, 1) == 0:
        cursor += 1
        tail += 1
        if tail > 40:
            return -1, cursor
    if cursor + 1 + tail > end:
        return -1, cursor
    n = np.int64((u64(1) << u64(tail)) | read(buffer, cursor + 1, tail))
    return (n if n <= limit else -1), cursor + 1 + tail


@kernel
def delta_length(n):
    """Bits of the delta code of n >= 1.

    Parameters
    ----------
    n : int
        The number that is coded, at least 1.

    Returns
    -------
    int
        Bits.

    Examples
    --------
    >>> [int(delta_length(n)) for n in (1, 2, 4)]
    [1, 4, 5]
    """
    digits = bit_length(n)
    return gamma_length(digits) + digits - 1


@kernel
def write_delta(buffer, cursor, n):
    """Write the delta code of 1 <= n <= LARGEST: the gamma code of its number of digits, then all but the first."""
    digits = bit_length(n)
    return write(buffer, write_gamma(buffer, cursor, digits), n, digits - 1)


@kernel
def read_delta(buffer, cursor, end, limit):
    """Read a delta code that ends before bit ``end``; return (n, cursor), n = -1 if there is none up to ``limit``."""
    digits, cursor = read_gamma(buffer, cursor, end, 41)
    if digits < 0 or cursor + digits - 1 > end:
        return -1, cursor
    n = np.int64((u64(1) << u64(digits - 1)) | read(buffer, cursor, digits - 1))
    return (n if n <= limit else -1), cursor + digits - 1


# --- Positions as Golomb-Rice codes of the gaps between them ---------------------------------------------------------

i64 = np.int64

GOLDEN = 0.6180339887498949  # (sqrt(5) - 1) / 2: where q + q^2 = 1


@kernel
def rice_bits(count, d):
    """The best b for ``count`` positions of d: the smallest with q + q^2 <= 1 for q = (1 - count/d)^(2^b).

    Uses only a division and products, which every machine rounds alike: both sides must get the same b.
    """
    q, b = 1.0 - count / d, 0
    while q > GOLDEN and b < 40:
        q *= q
        b += 1
    return b


@kernel
def gap_bits(index, d):
    """Number of bits that :func:`write_gaps` writes."""
    b, last, bits = rice_bits(index.size, d), i64(-1), 0
    for p in range(index.size):
        bits += ((i64(index[p]) - last - 1) >> b) + 1 + b
        last = i64(index[p])
    return bits


@kernel
def longest_gaps(count, d):
    """Upper bound on the bits of ``count`` increasing positions below d."""
    b = rice_bits(count, d)
    return count * (1 + b) + (d >> b)


@kernel
def write_gaps(buffer, cursor, index, d):
    """Write increasing positions below d; return the cursor after them."""
    b, last = rice_bits(index.size, d), i64(-1)
    for p in range(index.size):
        rest = i64(index[p]) - last - 1
        cursor = write(buffer, write_unary(buffer, cursor, rest >> b), rest, b)
        last = i64(index[p])
    return cursor


@kernel
def read_gaps(buffer, cursor, end, d, index):
    """Read increasing positions below d into all of ``index``; return the cursor, or -1 if they are invalid."""
    b, last = rice_bits(index.size, d), i64(-1)
    for p in range(index.size):
        whole, cursor = read_unary(buffer, cursor, end, (d - 1) >> b)
        if whole < 0 or cursor + b > end:
            return -1
        last += 1 + ((whole << b) | i64(read(buffer, cursor, b)))
        if last >= d:
            return -1
        index[p] = last
        cursor += b
    return cursor
