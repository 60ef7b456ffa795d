"""Compressors from Python: functions from a vector to the decoded vector or to the bytes of its message.

A compressor can be a single Python function: nothing is compiled for it, so it starts at once but runs slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..core import kernel, require, setting
from ..core.arguments import as_given, finite_number, float_type, is_whole, whole_number
from ..core.random import generator
from ..core.settings import wants_two
from ..wire.frame import WireError, header_template, message_size, open_frame, overhead, seal
from . import base
from .base import (
    accumulate,
    capacity,
    compress_into,
    max_payload_bits,
    new_symbols,
    pack,
    payload_bits,
    quantize,
    restore,
    unpack,
)
from .closed_forms import check, delta, omega
from .full_precision import Lossless
from .registry import check_compressor

# --- Compressors from Python -----------------------------------------------------------------------------------------

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))

ROOM = 16  # numbers that a foreign message may allocate per coordinate that the receiver allows

SPARE_ROOM = 2**20  # and in addition, since a sketch does not shrink with its vector


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


def _enter(c: Any, v: Any, wire_dtype: Any) -> np.ndarray:
    """Validate vector and compressor; return the vector as a contiguous array."""
    require(base.quantize.implements(type(c)), "c", c, "a compressor, such as TopK(10)", TypeError)
    check_parts("c", c)
    v = as_given("v", v)
    allowed = "an array of float32 or float64 (convert with np.asarray(v, float))"
    got = v.dtype.name if v.dtype.isnative else f"{v.dtype.name}, its bytes in another order,"
    require(v.dtype in DTYPES, "v", got, allowed, TypeError)
    require(v.ndim == 1, "v", f"{v.ndim} dimensions", "an array of one dimension (flatten with v.ravel())")
    float_type("wire_dtype", wire_dtype)
    require(v.size > 0, "v", f"shape {v.shape}", "at least one number")
    check(c, v.size)
    v = np.ascontiguousarray(v)
    bad = _first_bad(v)
    require(bad < 0, "v", f"{v[bad]} at position {bad}", "finite numbers only")
    return v


def _stream(key: Any) -> np.uint64:
    """Validate the key of a stream of random numbers."""
    fitting = is_whole(key) and 0 <= int(key) < 2**64
    require(fitting, "key", key, "an integer from 0 to 2**64 - 1, such as theory.key(seed, 'rounding')")
    return np.uint64(key)


def _fits(symbols: Any, out: Any) -> None:
    if _first_bad(symbols.value) >= 0:
        raise ValueError(
            f"v: its values or their norm overflow {symbols.value.dtype} on the wire, "
            "allowed: smaller numbers, or wire_dtype=np.float64"
        )
    if out is not None and _first_bad(out) >= 0:
        raise ValueError(f"v: the restored vector overflows {out.dtype}, allowed: smaller numbers, or v as float64")


def compress(
    c: Any, v: np.ndarray, key: Any, *, wire_dtype: DTypeLike = np.float32, out: np.ndarray | None = None
) -> np.ndarray:
    """The vector that the receiver decodes from the message for ``v``.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    v : array_like of float32 or float64, shape (d,)
        The vector; a list of floats is allowed.
    key : int
        Stream of the random numbers, see :func:`theory.key`.
    wire_dtype : dtype
        Floats of the message: float32 or float64.
    out : numpy.ndarray, optional
        Array for the result, with the shape and dtype of v.

    Returns
    -------
    numpy.ndarray, shape (d,)
        In the dtype of v.

    Raises
    ------
    ValueError
        If v is not finite, does not fit the compressor or overflows the floats of the message, or if the key is
        invalid.

    Examples
    --------
    >>> from theory import TopK
    >>> compress(TopK(2), np.array([1.0, -3.0, 2.0]), 0)
    array([ 0., -3.,  2.])
    """
    v, stream = _enter(c, v, wire_dtype), _stream(key)
    if out is None:
        out = np.empty_like(v)
    fitting = isinstance(out, np.ndarray) and out.shape == v.shape and out.dtype == v.dtype and out.flags.c_contiguous
    require(fitting and out.flags.writeable, "out", out, f"a contiguous, writable array of {v.dtype}, length {v.size}")
    symbols = new_symbols(c, v.size, np.empty(0, wire_dtype))
    base.compress_into(c, np.zeros(base.state_size(c, v.size)), v, stream, symbols, out)
    _fits(symbols, out)
    return out


def encode_payload(
    c: Any, state: np.ndarray, v: np.ndarray, stream: Any, symbols: Any, buffer: np.ndarray, cursor: int
) -> int:
    """Write the payload for v at bit ``cursor``, by the fastest implementation of c; return the cursor after it."""
    if base.encode_into.implements(type(c)):
        return base.encode_into(c, state, v, stream, symbols, buffer, cursor)
    base.quantize(c, state, v, stream, symbols)
    return base.pack(c, symbols, v.size, buffer, cursor)


def decode_payload(c: Any, buffer: np.ndarray, cursor: int, end: int, symbols: Any, out: np.ndarray) -> int:
    """Read a payload into ``out``, by the fastest implementation of c; return the cursor after it, or -1."""
    if base.decode_into.implements(type(c)):
        return base.decode_into(c, buffer, cursor, end, symbols, out)
    cursor = base.unpack(c, buffer, cursor, end, out.size, symbols)
    if cursor >= 0:
        base.restore(c, symbols, out)
    return cursor


def encode(c: Any, v: np.ndarray, key: Any, *, wire_dtype: DTypeLike = np.float32) -> bytes:
    """Encode ``v`` as a message: frame and payload.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    v : array_like of float32 or float64, shape (d,)
        The vector; a list of floats is allowed.
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
        As for :func:`compress`.

    Examples
    --------
    >>> from theory import TopK
    >>> decode(encode(TopK(2), np.array([1.0, -3.0, 2.0]), 0))
    array([ 0., -3.,  2.])
    """
    v, stream = _enter(c, v, wire_dtype), _stream(key)
    if isinstance(c, FunctionCompressor):
        c, v = WIRE, np.ascontiguousarray(c.apply(v, stream), v.dtype)
    header = header_template(c, v.size, wire_dtype)
    symbols = new_symbols(c, v.size, np.empty(0, wire_dtype))
    # pages of zeros cost nothing until written; counting the bits of a code first would double the time
    longest = base.buffer_bits(c, v.size, 8 * symbols.value.itemsize)
    buffer = np.zeros(message_size(header, longest), np.uint8)
    begin = 8 * overhead(header)
    end = encode_payload(c, np.zeros(base.state_size(c, v.size)), v, stream, symbols, buffer, begin)
    _fits(symbols, None)
    return buffer[: seal(buffer, header, end - begin)].tobytes()


def _room(c: Any, d: int) -> int:
    """Upper bound on the numbers in the symbols of ``c``, in Python integers."""
    sizes = base.capacity.table[type(c)].py_func(c, d)  # these do not overflow
    here = 3 * int(base.parts(c, d)) + sum(int(n) for n in sizes)
    return max([here, *(_room(inner, d) for inner in c if base.capacity.implements(type(inner)))])


def _admit(c: Any, d: int, max_d: int, exact: bool = False) -> None:
    """Check the frame of a foreign message before anything is allocated for it."""
    if exact and d != max_d:
        raise WireError(f"message: for a vector of length {d}, allowed: the receiver's d = {max_d}")
    if d > max_d:
        raise WireError(f"message: for a vector of length {d}, allowed: up to max_d = {max_d}")
    try:
        check(c, d)
    except ValueError as error:
        raise WireError(f"message: its compressor does not fit its length ({error})") from None
    room = _room(c, d)
    if not 0 <= room <= ROOM * max_d + SPARE_ROOM:
        raise WireError(f"message: its compressor needs {room} numbers, too many for max_d = {max_d}")


def decode(
    message: Any,
    d: int | None = None,
    *,
    compressor: Any = None,
    max_d: int = 10**6,
    dtype: DTypeLike = np.float64,
) -> np.ndarray:
    """Decode a message into its vector.

    Parameters
    ----------
    message : bytes-like
        The message, from any source: it is validated before use.
    d : int, optional
        The length of the vector that the receiver expects; a message for another length is rejected.
    compressor : compressor, optional
        The compressor that the receiver expects; a message of another one is rejected, and nothing is compiled for it.
    max_d : int
        Without ``d``: the longest vector that is accepted. A message cannot make the receiver allocate more.
    dtype : dtype
        Type of the result: float64, or float32, which takes half the time and memory.

    Returns
    -------
    numpy.ndarray of ``dtype``, shape (d,)
        For a vector v of this dtype, the result of ``compress``.

    Raises
    ------
    WireError
        If the message is truncated, altered or not a message of this package, or if the receiver expects another
        compressor or length.
    TypeError
        If ``message`` is not bytes-like.

    Examples
    --------
    >>> from theory import TopK, key
    >>> decode(encode(TopK(1), np.array([0.0, 2.0, -1.0]), key(0)), d=3)
    array([0., 2., 0.])
    """
    float_type("dtype", dtype)
    stated = whole_number("max_d", max_d) if d is None else whole_number("d", d)
    try:
        message = memoryview(message).cast("B")
    except TypeError:
        raise TypeError(f"message: got {type(message).__name__}, allowed: bytes, as encode returns them") from None
    if compressor is not None:
        check_compressor("compressor", compressor)
    c, length, wire_dtype, start, bits = open_frame(message)
    if compressor is not None and c != compressor:
        raise WireError(f"message: of {c}, allowed: the receiver's {compressor}")
    _admit(c, length, stated, exact=d is not None)
    buffer = np.frombuffer(message, np.uint8).copy()  # writable like all other buffers: one Numba type
    symbols = new_symbols(c, length, np.empty(0, wire_dtype))
    end = 8 * start + bits
    out = np.empty(length, dtype)
    if decode_payload(c, buffer, 8 * start, end, symbols, out) != end:
        raise WireError("message: its payload is not valid for its compressor")
    if _first_bad(symbols.value) >= 0 or _first_bad(out) >= 0:
        raise WireError("message: it holds numbers that are not finite")
    return out


# --- A compressor given by one Python function -----------------------------------------------------------------------

WIRE = Lossless()  # the encoding of its vectors


@setting
class FunctionCompressor(NamedTuple):
    """A compressor that sends the result of a Python function in full precision; see `compressor`.

    Parameters
    ----------
    function : callable
        ``function(v)`` or ``function(v, rng)``.
    random : bool
        Whether the function takes ``rng``.
    factors : dict
        The known factors: ``omega``, ``delta``.
    """

    function: Any
    random: bool
    factors: dict

    def __repr__(self) -> str:
        return f"compressor({getattr(self.function, '__name__', type(self.function).__name__)})"

    def apply(self, v: np.ndarray, stream: Any) -> np.ndarray:
        """The vector that is sent for v."""
        v = np.array(v)  # the function may modify it
        found = np.asarray(self.function(v, generator(stream)) if self.random else self.function(v), float)
        require(found.shape == v.shape, "function", f"shape {found.shape}", f"an array of shape {v.shape}")
        return found


def compressor(function: Callable, *, omega: float | None = None, delta: float | None = None) -> FunctionCompressor:
    """Make a compressor from a Python function, for every method, in the simulator and over MPI.

    Its vectors are sent in full precision, as all numbers or as non-zeros with positions, whichever is shorter.  For
    other codes, and for speed, write a class: see "Add a compressor" in the documentation.

    Parameters
    ----------
    function : callable
        ``function(v)`` returns the vector that is sent for v, an array of the same shape; ``function(v, rng)`` may draw
        with the ``numpy.random.Generator`` rng.
    omega : float, optional
        The variance factor, if the function is unbiased.
    delta : float, optional
        The contraction factor, if it is known.

    Returns
    -------
    FunctionCompressor
        The compressor.

    Raises
    ------
    TypeError
        If ``function`` is not callable.
    ValueError
        If omega or delta is outside its domain.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> half = th.compressor(lambda v: np.where(np.abs(v) > np.median(np.abs(v)), v, 0.0))
    >>> half
    compressor(<lambda>)
    >>> th.compress(half, np.array([1.0, -4.0, 2.0, 0.5]), 0)
    array([ 0., -4.,  2.,  0.])
    """
    require(callable(function), "function", function, "a function of a vector", TypeError)
    require(delta is None or 0.0 <= finite_number("delta", delta) <= 1.0, "delta", delta, "a number from 0 to 1")
    require(omega is None or 0.0 <= finite_number("omega", omega) < np.inf, "omega", omega, "a number, at least 0")
    return FunctionCompressor(function, wants_two(function), {"omega": omega, "delta": delta})


def check_parts(name: str, c: Any) -> None:
    """Raise ``TypeError`` if a Python function is inside another compressor, whose kernels cannot call it."""
    for part in c if isinstance(c, tuple) and not isinstance(c, FunctionCompressor) else ():
        require(
            not isinstance(part, FunctionCompressor),
            name,
            f"a function within {type(c).__name__}",
            "a function by itself, or a class (see add-a-compressor)",
            TypeError,
        )
        check_parts(name, part)


def _stated(c: FunctionCompressor, name: str) -> float:
    if c.factors[name] is None:
        raise TypeError(f"{name}: not known for a function, unless it is stated in compressor(..., {name}=...)")
    return float(c.factors[name])


omega.register(FunctionCompressor)(lambda c, d: _stated(c, "omega"))

delta.register(FunctionCompressor)(lambda c, d: _stated(c, "delta"))

max_payload_bits.register(FunctionCompressor)(lambda c, d, float_bits: max_payload_bits(WIRE, d, float_bits))

for function in (capacity, accumulate, payload_bits, pack, unpack, restore):
    function.in_python(FunctionCompressor)(lambda c, *arguments, function=function: function(WIRE, *arguments))


@quantize.in_python(FunctionCompressor)
def _(c, state, v, stream, symbols):
    quantize(WIRE, state, c.apply(v, stream), stream, symbols)


@compress_into.in_python(FunctionCompressor)
def _(c, state, v, stream, symbols, out):
    quantize(c, state, v, stream, symbols)
    restore(c, symbols, out)
