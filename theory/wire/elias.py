"""Elias codes of the integers 1, 2, 3, ...: omega (recursive), gamma and delta.

The lengths are standard; within a group of binary digits the leading 1 comes first and the others follow lowest first,
as everywhere in this format.  Omega: start from "0"; while n > 1 prepend the binary digits of n and let n = their
number - 1.  So |omega(1)| = 1, 3 for 2 and 3, 6 for 4 to 7, 7 for 8 to 15, 11 for 16 to 31.

Notes
-----
P. Elias, "Universal codeword sets and representations of the integers", IEEE Trans. Inf. Theory 21 (1975).
"""

from __future__ import annotations

import numpy as np

from ..core import kernel
from .bits import bit_length, read, write

LARGEST = 2**40 - 1  # code words of numbers up to this one fit in one 64-bit write (gamma: in two)

u64 = np.uint64


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
    """Write the omega code of 1 <= n <= LARGEST; return the cursor behind it."""
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
