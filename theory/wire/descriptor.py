"""Descriptors: a compressor as bytes, its code and then its fields, and back."""

from __future__ import annotations

import math
import struct
from typing import Any

from ..core.settings import field_types

NESTING = 8  # maximum nesting depth of compressors: a receiver compiles what a foreign message describes
FOREIGN = 128  # codes from here on are for users
LEVEL_CODE = (
    "LevelCode"  # the annotation of a field that is a code of levels, whose numbers are not those of compressors
)

_class_of: dict[int, type] = {}
_code_of: dict[type, int] = {}
_level_codes: dict[int, type] = {}
_level_code_of: dict[type, int] = {}


class WireError(ValueError):
    """A message is truncated, altered, or not of this package."""


def register_wire(code: int, cls: type) -> type:
    """Register the wire code of a compressor's class.

    Parameters
    ----------
    code : int
        From 1 to 255; those from 128 on are for classes outside this package.  A code is never reused for another
        class.
    cls : type
        A setting whose fields are ``int``, ``float``, ``bool`` or other settings.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ValueError
        If the code is taken by a class of another name, or out of range.
    """
    return _add(code, cls, 1, _class_of, _code_of)


def register_code(number: int, cls: type) -> type:
    """Register the number of a code of levels, such as `theory.Elias`.

    Parameters
    ----------
    number : int
        From 0 to 255; those from 128 on are for classes outside this package.
    cls : type
        A setting whose fields are ``int``, ``float`` or ``bool``.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ValueError
        If the number is taken by a class of another name, or out of range.

    Examples
    --------
    >>> from theory import Elias
    >>> register_code(1, Elias)
    <class 'theory.compressors.level_codes.Elias'>
    """
    return _add(number, cls, 0, _level_codes, _level_code_of)


def _add(code: int, cls: type, first: int, class_of: dict[int, type], code_of: dict[type, int]) -> type:
    if not first <= code <= 255:
        raise ValueError(
            f"code: got {code}, allowed: an integer from {first} to 255; from 128 on are free for your own"
        )
    known = class_of.get(code)
    if known is not None and known.__qualname__ != cls.__qualname__:  # a notebook cell may run twice
        free = next((n for n in range(FOREIGN, 256) if n not in class_of), None)
        raise ValueError(
            f"code: got {code}, which belongs to {known.__name__}; allowed: a code that is not taken; from 128 on are "
            f"free for your own{'' if free is None else f', {free} say'}"
        )
    class_of[code], code_of[cls] = cls, code
    return cls


def _whole(n: int) -> bytes:
    n, out = (n << 1) ^ (n >> 63), bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def nests_too_deeply(c: Any) -> bool:
    """Whether a compressor has others inside each other, more than receivers accept.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.

    Returns
    -------
    bool

    Examples
    --------
    >>> from theory import QSGD, Bucketed
    >>> nests_too_deeply(Bucketed(QSGD(7), 16))
    False
    """
    return depth_of(c) > NESTING


def depth_of(c: Any) -> int:
    """How many compressors are inside each other, at most."""
    inside = (inner for inner in c if isinstance(inner, tuple) and type(inner) not in _level_code_of)
    return max((1 + depth_of(inner) for inner in inside), default=0)


def describe(c: Any, level_code: bool = False) -> bytes:
    """The bytes of a compressor, or of a code of levels."""
    code = (_level_code_of if level_code else _code_of).get(type(c))
    if code is None:
        raise TypeError(f"{type(c).__name__} has no code on the wire: see theory.register")
    out = bytes([code])
    for (_, hint), value in zip(field_types(type(c)).items(), c, strict=True):
        if hint == "float":
            out += struct.pack("<d", value)
        elif hint == "bool":
            out += bytes([value])
        elif hint == "int":
            out += _whole(value)
        elif hint == LEVEL_CODE:
            out += describe(value, level_code=True)
        else:
            out += describe(value)
    return out


def parse(text: bytes, at: int, depth: int, level_code: bool = False) -> tuple[Any, int]:
    """Inverse of ``describe``: the compressor and the position behind it.  IndexError at the end of the bytes."""
    cls = (_level_codes if level_code else _class_of).get(text[at])
    if cls is None:
        raise WireError(f"message: unknown compressor (code {text[at]})")
    if depth > NESTING:
        raise WireError(f"message: its compressors are nested more than {NESTING} deep")
    at, fields = at + 1, []
    for name, hint in field_types(cls).items():
        if hint == "float":
            number = struct.unpack_from("<d", text, at)[0]
            if math.isnan(number):
                raise WireError(f"message: {name} is NaN")
            fields.append(number)
            at += 8
        elif hint == "bool":
            if text[at] > 1:
                raise WireError(f"message: {name} is neither True nor False")
            fields.append(bool(text[at]))
            at += 1
        elif hint == "int":
            n, shift = 0, 0
            while True:
                n |= (text[at] & 127) << shift
                at, shift = at + 1, shift + 7
                if text[at - 1] < 128:
                    break
                if shift > 63:
                    raise WireError(f"message: {name} is too large")
            fields.append((n >> 1) ^ -(n & 1))
        else:
            code = hint == LEVEL_CODE  # which is no compressor inside another
            inner, at = parse(text, at, depth + (not code), level_code=code)
            fields.append(inner)
    return cls(*fields), at
