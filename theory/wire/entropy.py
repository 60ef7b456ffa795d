"""Entropy coding of signed integers: the shortest of a few codes, selected by leading flags.

Either all levels are sent; or the number of non-zeros, their positions (Golomb-Rice) and only their levels.  Levels are
sent by rANS, preceded by the frequencies; or, if there are few, each in a gamma code or all in the width of the
largest.  The sender chooses by estimates; the length that it states is exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core import kernel
from .bits import bits_for, read, write
from .elias import delta_length, gamma_length, read_delta, read_gamma, write_delta, write_gamma
from .golomb import rice_bits
from .rans import (
    ESCAPE,
    SYMBOLS,
    TOTAL,
    count_words,
    decode_symbols,
    encode_symbols,
    fold,
    frequencies,
    histogram,
    model_bits,
    read_model,
    unfold,
    write_model,
)
from .unary import read_unary, write_unary

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
    """Write an array of int32; return the cursor behind it."""
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
    """Read numbers of size up to ``largest`` into all of ``level``; return the cursor, or -1 where there are none."""
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
