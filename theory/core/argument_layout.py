"""Arguments of kernels in memory: a NamedTuple as the bytes in which Numba's machine code expects it.

The layout of arrays and tuples is Numba's own affair and may change with a version.  So at first use a kernel reads
back arrays of every rank, order and type of number from such bytes (:func:`check_layout`); it only returns what stands
there, and follows no address.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from .compile_cache import kernel, no_refcount, uncounted


@functools.cache
def encoder_of(tp: Any) -> tuple[Callable[[Any, list], None], str]:
    """Memory layout of a Numba type: a function that lists the numbers of a value, and their struct format."""
    if isinstance(tp, types.Array):
        dimensions = tp.ndim

        def array(value: np.ndarray, out: list) -> None:
            out += (0, 0, value.size, value.itemsize, value.__array_interface__["data"][0])
            out += value.shape
            out += value.strides

        return array, "q" * (5 + 2 * dimensions)
    if isinstance(tp, types.BaseTuple):
        parts = [encoder_of(part) for part in tp.types]
        encoders = [encode for encode, _ in parts]

        def members(value: Any, out: list) -> None:
            for encode, part in zip(encoders, value, strict=True):
                encode(part, out)

        return members, "".join(
            _aligned(form) if isinstance(part, types.BaseTuple) else form
            for part, (_, form) in zip(tp.types, parts, strict=True)
        )
    number = {
        types.boolean: "?",
        types.int64: "q",
        types.uint64: "Q",
        types.float64: "d",
        types.float32: "f",
        types.int32: "i",
        types.uint32: "I",
    }.get(tp)
    if number is None:
        raise TypeError(f"a kernel's arguments: got {tp}, allowed: arrays, numbers and NamedTuples of these")
    return (lambda value, out: out.append(value)), number


def _aligned(form: str) -> str:
    """The struct format, padded at both ends to the alignment of its widest number."""
    widest = max((c for c in form if c.isalpha() or c == "?"), key=struct.calcsize, default="")
    return f"0{widest}{form}0{widest}" if widest else ""


def encode(value: NamedTuple) -> np.ndarray:
    """Encode a NamedTuple of arrays, numbers and NamedTuples as the bytes that a kernel reads.

    The bytes do not own the arrays: whoever keeps the bytes must keep the NamedTuple, too.
    """
    return encoded(value, *encoder_of(numba.typeof(value)))


def encoded(value: Any, encoder: Callable[[Any, list], None], form: str) -> np.ndarray:
    """The same, by what `encoder_of` says of the value's type."""
    numbers: list = []
    encoder(value, numbers)
    room = np.zeros(struct.calcsize("@" + _aligned(form)) or 1, np.uint8)
    struct.pack_into("@" + form, room.data, 0, *numbers)
    return room


@intrinsic
def at(typing_context: Any, pointer: Any) -> Any:
    """The NamedTuple behind a kernel's first argument."""
    tp = pointer.dtype

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        model = context.data_model_manager[tp]
        data = builder.bitcast(arguments[0], model.get_data_type().as_pointer())
        return model.from_data(builder, builder.load(data, align=1))

    return tp(pointer), code


def compiled_for(compiled: Any, behind: Any, *others: Any) -> tuple[int, Any]:
    """Address and result type of a kernel whose first argument points to the Numba type ``behind``."""
    signature = (cast(Any, types).CPointer(behind), *others)
    if signature not in compiled.overloads:
        compiled.compile(signature)
    found = compiled.overloads[signature]
    return found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name), found.signature.return_type


# --- whether it is still Numba's layout -------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """Arrays of every type of number, one of them read-only."""

    small: bool
    truths: np.ndarray
    bytes: np.ndarray
    half: np.float32
    singles: np.ndarray
    integers: np.ndarray
    unsigned: np.ndarray
    keys: np.ndarray
    shorter: np.ndarray
    closed: np.ndarray
    end: np.int32


class Sample(NamedTuple):
    """Arrays of every rank that kernels take, contiguous in C's and Fortran's order and not at all, and numbers."""

    first: bool
    c1: np.ndarray
    a1: np.ndarray
    c2: np.ndarray
    f2: np.ndarray
    a2: np.ndarray
    c3: np.ndarray
    f3: np.ndarray
    a3: np.ndarray
    c4: np.ndarray
    f4: np.ndarray
    a4: np.ndarray
    inner: Numbers
    key: np.uint64
    last: float


PLACES = 16  # numbers of an array, at most


@no_refcount
@kernel
def _number(a, k):  # type: ignore[no-untyped-def]  # of arrays of any type
    """Number k of an array: its size, its item's size, its address, its shape, its strides; else 0."""
    if k == 0:
        return np.int64(a.size)
    if k == 1:
        return np.int64(a.itemsize)
    if k == 2:
        return np.int64(a.ctypes.data)
    for i in range(a.ndim):
        if k == 3 + i:
            return np.int64(a.shape[i])
        if k == 3 + a.ndim + i:
            return np.int64(a.strides[i])
    return np.int64(0)


@uncounted  # it would follow the address of an owner whose references are counted
@kernel
def _read_back(pointer, k, r, w):  # type: ignore[no-untyped-def]  # a kernel by address, as operations have them
    """Number k of a `Sample`: those of each array, `PLACES` from one to the next, and then those that are no arrays."""
    b = at(pointer)
    m = b.inner
    found = _number(b.c1, k) + _number(b.a1, k - 16) + _number(b.c2, k - 32) + _number(b.f2, k - 48)
    found += _number(b.a2, k - 64) + _number(b.c3, k - 80) + _number(b.f3, k - 96) + _number(b.a3, k - 112)
    found += _number(b.c4, k - 128) + _number(b.f4, k - 144) + _number(b.a4, k - 160)
    found += _number(m.truths, k - 176) + _number(m.bytes, k - 192) + _number(m.singles, k - 208)
    found += _number(m.integers, k - 224) + _number(m.unsigned, k - 240) + _number(m.keys, k - 256)
    found += _number(m.shorter, k - 272) + _number(m.closed, k - 288)
    if k == 304:
        found = np.int64(b.first) + 2 * np.int64(m.small) + 4 * np.int64(m.half) + 32 * np.int64(m.end)
    if k == 305:
        found = np.int64(b.key) + np.int64(b.last)
    return found


def _sample() -> Sample:
    def arrays(rank: int) -> Iterator[np.ndarray]:
        whole = np.zeros(tuple(range(2, 2 + rank)))
        yield whole
        if rank > 1:
            yield np.asfortranarray(whole)
        yield np.zeros((*whole.shape, 2))[..., 0]

    ranks = [array for rank in (1, 2, 3, 4) for array in arrays(rank)]
    kinds: tuple[Any, ...] = (np.bool_, np.uint8, np.float32, np.int64, np.uint32, np.uint64, np.int32)
    truths, few, *others = [np.zeros(2 + n, kind) for n, kind in enumerate(kinds)]
    closed = np.zeros(9)
    closed.flags.writeable = False
    inner = Numbers._make((True, truths, few, np.float32(5.0), *others, closed, np.int32(-7)))
    return Sample._make((True, *ranks, inner, np.uint64(2**40), -3.0))


def _expected(sample: Sample) -> dict[int, int]:
    arrays = [a for a in (*sample, *sample.inner) if isinstance(a, np.ndarray)]
    wanted = {304: 1 + 2 + 4 * 5 + 32 * -7, 305: 2**40 - 3}
    for n, a in enumerate(arrays):
        numbers = a.size, a.itemsize, a.ctypes.data, *a.shape, *a.strides
        wanted |= {PLACES * n + k: numbers[k] if k < len(numbers) else 0 for k in range(PLACES)}
    return wanted


@functools.cache
def check_layout() -> None:
    """Raise ``RuntimeError`` if Numba reads other arguments from the bytes than those that were encoded."""
    sample = _sample()
    data, tp = encode(sample), numba.typeof(sample)
    address, _ = compiled_for(_read_back, tp, types.int64, types.int64, types.int64)
    read = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)(address)
    for k, number in _expected(sample).items():
        found = read(data.ctypes.data, k, 0, 0)
        if found != number:
            raise RuntimeError(
                f"numba {numba.__version__} stores the arguments of kernels in another way than theory expects "
                f"(number {k} of the sample is {found}, not {number}); install a version that pyproject.toml allows"
            )
