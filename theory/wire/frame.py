"""The frame of a message, and descriptors: a compressor as bytes and back.

A descriptor is a compressor as bytes: its code and then its fields.  The frame has what a receiver needs besides the
payload, including a checksum:

===============  =======================================================================================
bytes            content
===============  =======================================================================================
2                ``b"th"``
1                version of this format
1                floats of the payload: 4 for float32, 8 for float64
4                d, the length of the vector
1                length of the descriptor
that many        descriptor: the compressor's code, then its fields in order (an integer: 7 bits a byte,
                 lowest first; a float: 8 bytes; a truth value: 1 byte; a code of levels: its number, then its
                 fields; another compressor: its descriptor)
5                number of bits of the payload
4                checksum: XXH3 of all bytes before it, combined with XXH3 of all behind it (exclusive or),
                 the lower half
the rest         payload, filled up with zero bits to a whole byte
===============  =======================================================================================

All numbers have their lowest byte first.  The first six rows are constant during a run: they are the *header*, which
sender and receiver make once.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike

from ..core import kernel
from ..core.settings import field_types
from .checksum import xxh3

# --- Descriptors -----------------------------------------------------------------------------------------------------

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
    <class 'theory.compressors.quantizers.scaled_levels.Elias'>
    """
    return _add(number, cls, 0, _level_codes, _level_code_of)


def _add(code: int, cls: type, first: int, class_of: dict[int, type], code_of: dict[type, int]) -> type:
    if not first <= code <= 255:
        raise ValueError(
            f"code: got {code}, allowed: an integer from {first} to 255; codes from 128 are free for user compressors"
        )
    known = class_of.get(code)
    if known is not None and known.__qualname__ != cls.__qualname__:  # a notebook cell may run twice
        free = next((n for n in range(FOREIGN, 256) if n not in class_of), None)
        raise ValueError(
            f"code: got {code}, which belongs to {known.__name__}; allowed: a code that is not taken; codes "
            f"from 128 are free for user compressors{'' if free is None else f', for example {free}'}"
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
            code = hint == LEVEL_CODE  # which is not a compressor inside another
            inner, at = parse(text, at, depth + (not code), level_code=code)
            fields.append(inner)
    return cls(*fields), at


# --- The frame of a message ------------------------------------------------------------------------------------------

MARK, VERSION = b"th", 2

FIXED = 9  # bytes of the header before the descriptor

TAIL = 9  # bytes between the header and the payload

FLOATS: dict[int, np.dtype] = {4: np.dtype(np.float32), 8: np.dtype(np.float64)}

i64, u8, u64 = np.int64, np.uint8, np.uint64


# --- descriptors ------------------------------------------------------------------------------------------------------


# --- frames -----------------------------------------------------------------------------------------------------------


def header_template(c: Any, d: int, wire_dtype: DTypeLike) -> bytes:
    """The constant part of every message of a run.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.
    wire_dtype : dtype
        float32 or float64.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        For another dtype, a length beyond 32 bits, or a compressor whose settings take more than 255 bytes or are
        nested more than 8 deep.
    TypeError
        If the compressor has no code.

    Examples
    --------
    >>> from theory import TopK
    >>> header_template(TopK(2), 5, np.float32) == header_template(TopK(3), 5, np.float32)
    False
    """
    size = np.dtype(wire_dtype).itemsize
    if FLOATS.get(size) != np.dtype(wire_dtype):
        raise ValueError(f"wire_dtype: got {np.dtype(wire_dtype)}, allowed: float32 or float64")
    if not 1 <= d < 2**32:
        raise ValueError(f"d: got {d}, allowed: an integer from 1 to 2**32 - 1")
    text = describe(c)
    if len(text) > 255:
        raise ValueError("compressor: its settings take more than 255 bytes on the wire")
    if nests_too_deeply(c):
        raise ValueError(
            f"compressor: got compressors nested {depth_of(c)} deep, allowed: at most {NESTING}, on the wire"
        )
    return MARK + struct.pack("<BBIB", VERSION, size, d, len(text)) + text


def overhead(header: bytes) -> int:
    """Number of bytes of a message before its payload.

    Parameters
    ----------
    header : bytes
        From `header_template`.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> from theory import TopK
    >>> header = header_template(TopK(2), 5, np.float32)
    >>> overhead(header) == message_size(header, 0)
    True
    """
    return len(header) + TAIL


def message_size(header: bytes, payload_bits: int) -> int:
    """Number of bytes of a whole message.

    Parameters
    ----------
    header : bytes
        From `header_template`.
    payload_bits : int
        Bits of the payload.

    Returns
    -------
    int
        Bytes: the frame, and the payload in whole bytes.

    Examples
    --------
    >>> from theory import TopK
    >>> header = header_template(TopK(2), 5, np.float32)
    >>> message_size(header, 9) - overhead(header)
    2
    """
    return len(header) + TAIL + (payload_bits + 7) // 8


@kernel
def _checksum(address, head, size):
    before, behind = xxh3(address, head + 5), xxh3(address + head + TAIL, size - head - TAIL)
    return (before ^ behind) & u64(0xFFFFFFFF)


def _address(message: Any) -> int:
    return np.frombuffer(message, np.uint8).__array_interface__["data"][0]


def seal(buffer: np.ndarray, header: bytes, payload_bits: int) -> int:
    """Write the frame around a payload that is already at byte ``overhead(header)`` of the buffer.

    Parameters
    ----------
    buffer : numpy.ndarray of uint8
        With the header at its beginning (it is written if missing).
    header : bytes
        From `header_template`.
    payload_bits : int
        Bits of the payload, below 2**40.

    Returns
    -------
    int
        Number of bytes of the whole message.

    Raises
    ------
    ValueError
        If the message does not fit in the buffer, or the payload is too long.
    """
    head, size = len(header), message_size(header, payload_bits)
    view = memoryview(cast(Any, buffer))  # arrays are buffers, which Python can express from 3.12 on
    if size > len(view) or not 0 <= payload_bits < 2**40:
        raise ValueError(f"payload_bits: got {payload_bits}, which does not fit in a buffer of {len(view)} bytes")
    view[:head] = header
    view[head : head + 5] = payload_bits.to_bytes(5, "little")
    view[head + 5 : head + 9] = int(_checksum(_address(view), head, size)).to_bytes(4, "little")
    return size


def _verify_tail(view: memoryview, head: int) -> int:
    payload_bits = int.from_bytes(view[head : head + 5], "little")
    size = head + TAIL + (payload_bits + 7) // 8
    if len(view) != size:
        raise WireError(f"message: {len(view)} bytes, but its frame says {size}: truncated or altered")
    if _checksum(_address(view), head, size) != int.from_bytes(view[head + 5 : head + 9], "little"):
        raise WireError("message: wrong checksum, so it was altered on the way")
    spare = -payload_bits & 7
    if spare and view[-1] >> (8 - spare):
        raise WireError("message: the bits after its payload are not zero")
    return payload_bits


def verify(message: Any, header: bytes) -> int:
    """Check a message whose header is known.

    Parameters
    ----------
    message : bytes-like
        From any source.
    header : bytes
        The header of this run, from :func:`header_template`.

    Returns
    -------
    int
        Bits of the payload, which begins at byte ``overhead(header)``.

    Raises
    ------
    WireError
        If it is not a complete message with this header.

    Examples
    --------
    >>> verify(b"noise", b"header")
    Traceback (most recent call last):
        ...
    theory.wire.frame.WireError: ...
    """
    view, head = memoryview(message), len(header)
    if len(view) < head + TAIL or view[:head] != header:
        raise WireError("message: truncated, altered, or made by another compressor or for another length")
    return _verify_tail(view, head)


@kernel
def write_frame(buffer, header, payload_bits):
    """As `seal`, for kernels; ``header`` is an array."""
    head, size = header.size, header.size + TAIL + (payload_bits + 7) // 8
    buffer[:head] = header
    for k in range(5):
        buffer[head + k] = u8(payload_bits >> (8 * k))
    checksum = _checksum(buffer.ctypes.data, head, size)
    for k in range(4):
        buffer[head + 5 + k] = u8(checksum >> u64(8 * k))
    return size


@kernel
def check_frame(buffer, start, size, header):
    """As `verify` for ``size`` bytes from ``start`` on, for kernels: -1 if they are no message with this header."""
    head, message = header.size, buffer[start : start + size]
    if size < head + TAIL or message.size != size:  # the last: beyond the end of the buffer
        return -1
    for k in range(head):
        if message[k] != header[k]:
            return -1
    payload_bits, checksum = i64(0), u64(0)
    for k in range(5):
        payload_bits |= i64(message[head + k]) << (8 * k)
    for k in range(4):
        checksum |= u64(message[head + 5 + k]) << u64(8 * k)
    if size != head + TAIL + (payload_bits + 7) // 8 or checksum != _checksum(message.ctypes.data, head, size):
        return -1
    if payload_bits & 7 and message[size - 1] >> (payload_bits & 7):
        return -1
    return payload_bits


class Opened(NamedTuple):
    """Contents of a frame: compressor, length, floats of the wire, first byte of the payload, its bits."""

    compressor: NamedTuple
    d: int
    wire_dtype: np.dtype
    start: int
    payload_bits: int


def open_frame(message: Any) -> Opened:
    """Read the frame of a message from an unknown sender.

    Parameters
    ----------
    message : bytes-like
        From any source.

    Returns
    -------
    Opened
        ``compressor, d, wire_dtype, start, payload_bits``; the compressor's domain is checked, but not whether it fits
        d.

    Raises
    ------
    WireError
        If it is not a complete message.

    Examples
    --------
    >>> from theory import TopK, encode, key
    >>> open_frame(encode(TopK(1), np.array([0.0, 2.0]), key(0)))[:2]
    (TopK(k=1), 2)
    """
    view = memoryview(message).cast("B")
    if len(view) < FIXED + TAIL or view[:2] != MARK:
        raise WireError("message: too short, or not a message of this package")
    version, size, d, length = struct.unpack_from("<BBIB", view, 2)
    if version != VERSION:
        raise WireError(f"message: format version {version}, this package reads version {VERSION}")
    if size not in FLOATS or d < 1 or len(view) < FIXED + length + TAIL:
        raise WireError("message: truncated, or its frame was altered")
    payload_bits = _verify_tail(view, FIXED + length)
    try:
        c, at = parse(bytes(view[FIXED : FIXED + length]), 0, 0)
    except WireError:
        raise
    except (IndexError, struct.error, ValueError, TypeError, OverflowError) as error:
        raise WireError(f"message: no valid compressor in its frame ({error})") from None
    if at != length:
        raise WireError("message: no valid compressor in its frame")
    return Opened(c, d, FLOATS[size], FIXED + length + TAIL, payload_bits)
