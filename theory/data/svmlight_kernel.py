"""The compiled parser of LIBSVM text: from bytes to labels, indices and values."""

from __future__ import annotations

import numpy as np

from ..core import kernel

TAB, NEWLINE, RETURN, SPACE, HASH, PLUS, MINUS, DOT, COLON, ZERO, NINE = b"\t\n\r #+-.:09"
LARGE_A, LARGE_E, LARGE_Z, SMALL_A, SMALL_E, SMALL_Z, Q, I, D = b"AEZaezqid"

# reasons for stopping
FINE, BAD_LABEL, BAD_PAIR, BAD_VALUE, INDEX_BELOW, INDEX_PAST, NOT_FINITE = range(7)


@kernel
def _blank(c):
    """A space, a tab, or the first half of a Windows newline."""
    return c == SPACE or c == TAB or c == RETURN


@kernel
def number(text, start, stop):
    """Read text[start:stop] as a float: (value, 0) if exact, (0, 1) if Python must read it, (0, 2) if no number.

    An integer of up to 18 digits that is below 2^53 and a power of ten up to 22 are both exact in float64,
    so that their product or quotient is correctly rounded (Clinger 1990); other numbers are left to Python's ``float``.
    """
    i = start
    negative = False
    if i < stop and (text[i] == PLUS or text[i] == MINUS):
        negative = text[i] == MINUS
        i += 1
    mantissa = np.int64(0)
    digits = 0
    kept = 0
    exponent = 0
    dot = False
    while i < stop:
        c = np.int64(text[i])
        if ZERO <= c <= NINE:
            digits += 1
            if kept > 0 or c != ZERO:
                kept += 1
            if kept <= 18:
                mantissa = mantissa * 10 + (c - ZERO)
            if dot:
                exponent -= 1
        elif c == DOT and not dot:
            dot = True
        else:
            break
        i += 1
    if digits == 0:  # perhaps "nan" or "inf"
        letters = i < stop
        for j in range(i, stop):
            c = text[j]
            letters = letters and (LARGE_A <= c <= LARGE_Z or SMALL_A <= c <= SMALL_Z)
        return 0.0, 1 if letters else 2
    if i < stop and (text[i] == SMALL_E or text[i] == LARGE_E):
        i += 1
        below = False
        if i < stop and (text[i] == PLUS or text[i] == MINUS):
            below = text[i] == MINUS
            i += 1
        power = 0
        first = i
        while i < stop and ZERO <= text[i] <= NINE:
            power = min(power * 10 + (np.int64(text[i]) - ZERO), 100000)  # type: ignore[assignment]
            i += 1
        if i == first:
            return 0.0, 2
        exponent += -power if below else power
    if i != stop:
        return 0.0, 2
    if kept > 18 or mantissa > 9007199254740992 or exponent < -22 or exponent > 22:
        if mantissa != 0:
            return 0.0, 1
        exponent = 0
    ten = 1.0
    for _ in range(abs(exponent)):
        ten *= 10.0
    value = mantissa / ten if exponent < 0 else mantissa * ten
    return (-value if negative else value), 0


@kernel
def parse(text, stop, base, last, labels, ends, indices, values, hard):
    """Read whole lines of text[:stop] into the arrays; see `read_svmlight`.

    Indices have ``base`` subtracted and may be at most ``last``.  ``hard[:, k]`` is (start, stop, where) of a number
    that Python must read: ``where`` >= 0 is a place in ``values``, -1 - row a label.

    Returns
    -------
    (what, start, stop, line, rows, entries, hards, tidy, highest)
        ``what`` is the reason for stopping, at the token text[start:stop] in line ``line`` of the block (from 0).
    """
    i = 0
    line = rows = entries = hards = 0
    tidy = True
    highest = np.int64(-1)
    while i < stop:
        # one line
        while i < stop and _blank(text[i]):
            i += 1
        if i >= stop:
            break
        previous = np.int64(-1)
        started = False
        while i < stop and text[i] != NEWLINE:
            if text[i] == HASH:  # a comment: skip to the end of the line
                while i < stop and text[i] != NEWLINE:
                    i += 1
                break
            start = i
            colon = -1
            while i < stop and not _blank(text[i]) and text[i] != NEWLINE and text[i] != HASH:
                if text[i] == COLON and colon < 0:
                    colon = i
                i += 1
            if not started:
                started = True
                value, how = number(text, start, i)
                if how == 2:
                    return BAD_LABEL, start, i, line, rows, entries, hards, tidy, highest
                if how == 1:
                    hard[0, hards], hard[1, hards], hard[2, hards] = start, i, -1 - rows
                    hards += 1
                labels[rows] = value
            else:
                if colon < 0 or colon == start:
                    return BAD_PAIR, start, i, line, rows, entries, hards, tidy, highest
                # "qid:7" is for ranking; svmlight allows it in any file, and it is irrelevant here
                t0, t1, t2 = text[start], text[start + 1], text[start + 2]  # the newline ends the block
                if not (colon == start + 3 and t0 == Q and t1 == I and t2 == D):
                    index = np.int64(0)
                    j = start
                    below = text[j] == MINUS
                    if below or text[j] == PLUS:
                        j += 1
                    if j == colon:
                        return BAD_PAIR, start, i, line, rows, entries, hards, tidy, highest
                    while j < colon:
                        c = np.int64(text[j])
                        if c < ZERO or c > NINE:
                            return BAD_PAIR, start, i, line, rows, entries, hards, tidy, highest
                        index = min(index * 10 + (c - ZERO), np.int64(1) << 40)
                        j += 1
                    if below:
                        index = -index
                    if index < base:
                        return INDEX_BELOW, start, i, line, rows, entries, hards, tidy, highest
                    index -= base
                    if index > last:
                        return INDEX_PAST, start, i, line, rows, entries, hards, tidy, highest
                    value, how = number(text, colon + 1, i)
                    if how == 2:
                        return BAD_VALUE, start, i, line, rows, entries, hards, tidy, highest
                    if how == 1:
                        hard[0, hards], hard[1, hards], hard[2, hards] = colon + 1, i, entries
                        hards += 1
                    tidy = tidy and index > previous
                    previous = index
                    highest = max(highest, index)
                    indices[entries] = index
                    values[entries] = value
                    entries += 1
            while i < stop and _blank(text[i]):
                i += 1
        if started:
            ends[rows] = entries
            rows += 1
        i += 1  # the newline
        line += 1
    return FINE, 0, 0, line, rows, entries, hards, tidy, highest
