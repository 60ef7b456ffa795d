"""Compressors from Python: a vector in, the restored vector or the bytes of its message out; and who is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..dispatch import kernel
from ..settings import require
from ..wire.frame import WireError, header_template, message_size, open_frame, overhead, register_wire, seal
from .base import check, compress_into, new_symbols, pack, payload_bits, quantize, restore, state_size, unpack
from .bucketed import Bucketed
from .identity import Identity
from .qsgd import QSGD
from .sparsifiers import RandK, TopK

__all__ = ["compress", "compressor_examples", "decode", "encode", "register", "registered"]

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))

_examples: dict[type, Callable[[int], list]] = {}


# --- who is known -----------------------------------------------------------------------------------------------------


def register(cls: type, code: int, examples: Callable[[int], list]) -> type:
    """Make a compressor known: to the wire, to the property tests and to whatever goes through all of them.

    Parameters
    ----------
    cls : type
    code : int
        Its number on the wire; from 128 on for classes outside this package.
    examples : callable
        ``examples(d)`` returns ready instances for vectors of length d >= 1.

    Returns
    -------
    type
        The class.

    Examples
    --------
    >>> register(TopK, 2, lambda d: [TopK(max(1, d // 10))])
    <class 'theory.compressors.sparsifiers.TopK'>
    """
    register_wire(code, cls)
    for known in [old for old in _examples if old.__qualname__ == cls.__qualname__]:
        del _examples[known]  # a notebook's cell that runs twice makes its class twice
    _examples[cls] = examples
    return cls


def registered() -> tuple[type, ...]:
    """The classes of all known compressors, in the order in which they became known."""
    return tuple(_examples)


def compressor_examples(d: int) -> Iterator[NamedTuple]:
    """Ready instances of every known compressor, for vectors of length ``d``."""
    for examples in _examples.values():
        yield from examples(d)


register(Identity, 1, lambda d: [Identity(), Identity(sparse=True)])
register(TopK, 2, lambda d: [TopK(max(1, d // 10))])
register(RandK, 3, lambda d: [RandK(max(1, d // 10)), RandK(max(1, d // 10), unbiased=True)])
register(QSGD, 4, lambda d: [QSGD(7), QSGD(1, np.inf), QSGD(4, elias=True)])
register(Bucketed, 5, lambda d: [Bucketed(RandK(1, unbiased=True), 5), Bucketed(QSGD(7), 16)])


# --- doors ------------------------------------------------------------------------------------------------------------


@kernel
def _first_bad(v):
    """The first position of a NaN or an infinity, or -1."""
    bad = 0
    for j in range(v.size):
        bad += not (abs(v[j]) < np.inf)
    if bad:
        for j in range(v.size):
            if not (abs(v[j]) < np.inf):
                return j
    return -1


def _enter(c, v, wire_dtype) -> np.ndarray:
    """The vector as a contiguous array, once everything about it and the compressor is known to be in order."""
    require(quantize.implements(type(c)), "c", c, "a compressor, such as TopK(10)", TypeError)
    v = np.asarray(v)
    require(v.dtype in DTYPES, "v", v.dtype, "an array of float32 or float64 (convert with v.astype(float))", TypeError)
    require(v.ndim == 1, "v", f"{v.ndim} dimensions", "an array of one dimension (flatten with v.ravel())")
    require(np.dtype(wire_dtype) in DTYPES, "wire_dtype", wire_dtype, "float32 or float64")
    check(c, v.size)
    v = np.ascontiguousarray(v)
    bad = _first_bad(v)
    require(bad < 0, "v", f"{v[bad]} at position {bad}", "finite numbers only")
    return v


def _symbols(c, d: int, wire_dtype):
    symbols = new_symbols(c, d, np.empty(0, wire_dtype))
    symbols.value[:] = 0.0  # so that all of it can be looked through, used or not
    return symbols


def _fits(symbols, out) -> None:
    if _first_bad(symbols.value) >= 0:
        raise ValueError(
            f"v: its values or their norm overflow {symbols.value.dtype} on the wire, "
            "allowed: smaller numbers, or wire_dtype=np.float64"
        )
    if out is not None and _first_bad(out) >= 0:
        raise ValueError(f"v: the restored vector overflows {out.dtype}, allowed: smaller numbers, or v as float64")


def compress(c, v, key, *, wire_dtype=np.float32, out=None) -> np.ndarray:
    """What the receiver restores from the message for ``v``.

    Parameters
    ----------
    c : compressor
    v : numpy.ndarray of float32 or float64, shape (d,)
    key : int
        Stream of the random numbers, see :func:`theory.key`.
    wire_dtype : dtype
        Floats of the message: float32 or float64.
    out : numpy.ndarray, optional
        Room for the result, of the shape and dtype of v.

    Returns
    -------
    numpy.ndarray, shape (d,)
        Of the dtype of v.

    Raises
    ------
    ValueError
        If v is not finite, does not fit the compressor, or overflows the floats of the wire.

    Examples
    --------
    >>> compress(TopK(2), np.array([1.0, -3.0, 2.0]), 0)
    array([ 0., -3.,  2.])
    """
    v = _enter(c, v, wire_dtype)
    if out is None:
        out = np.empty_like(v)
    fitting = isinstance(out, np.ndarray) and out.shape == v.shape and out.dtype == v.dtype and out.flags.c_contiguous
    require(fitting, "out", out, f"a contiguous array of {v.dtype} of length {v.size}")
    symbols = _symbols(c, v.size, wire_dtype)
    compress_into(c, np.zeros(state_size(c, v.size)), v, np.uint64(key), symbols, out)
    _fits(symbols, out)
    return out


def encode(c, v, key, *, wire_dtype=np.float32) -> bytes:
    """The message for ``v``, frame and payload.

    Parameters
    ----------
    c : compressor
    v : numpy.ndarray of float32 or float64, shape (d,)
    key : int
        Stream of the random numbers, see :func:`theory.key`.
    wire_dtype : dtype
        Floats of the message: float32 or float64.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        As :func:`compress`.

    Examples
    --------
    >>> decode(encode(TopK(2), np.array([1.0, -3.0, 2.0]), 0))
    array([ 0., -3.,  2.])
    """
    v = _enter(c, v, wire_dtype)
    header = header_template(c, v.size, wire_dtype)
    symbols = _symbols(c, v.size, wire_dtype)
    quantize(c, np.zeros(state_size(c, v.size)), v, np.uint64(key), symbols)
    _fits(symbols, None)
    buffer = np.zeros(message_size(header, payload_bits(c, symbols, v.size)), np.uint8)
    begin = 8 * overhead(header)
    seal(buffer, header, pack(c, symbols, v.size, buffer, begin) - begin)
    return buffer.tobytes()


def decode(message, max_d: int = 10**7) -> np.ndarray:
    """The vector that a message holds.

    Parameters
    ----------
    message : bytes-like
        From anywhere: it is checked before anything is believed.
    max_d : int
        The longest vector to make room for.

    Returns
    -------
    numpy.ndarray of float64, shape (d,)
        For a float64 vector v, what ``compress`` returns.

    Raises
    ------
    WireError
        If the message is truncated, altered, foreign, or for a vector that is longer than ``max_d``.
    """
    c, d, wire_dtype, start, bits = open_frame(message)
    if d > max_d:
        raise WireError(f"message: for a vector of length {d}, allowed: up to max_d = {max_d}")
    try:
        check(c, d)
    except ValueError as error:
        raise WireError(f"message: its compressor does not fit its length ({error})") from None
    buffer = np.frombuffer(message, np.uint8).copy()  # writable, as all other buffers: one type for Numba
    symbols = _symbols(c, d, wire_dtype)
    end = 8 * start + bits
    if unpack(c, buffer, 8 * start, end, d, symbols) != end:
        raise WireError("message: its payload is not one of its compressor")
    out = np.empty(d)
    restore(c, symbols, out)
    if _first_bad(symbols.value) >= 0 or _first_bad(out) >= 0:
        raise WireError("message: it holds numbers that are not finite")
    return out
