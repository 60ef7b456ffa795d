"""Operations: kernels bound to their arguments in memory, so that a compiled loop can call them by address.

A NamedTuple of arguments is written to memory in the layout that Numba's machine code expects.  This layout is internal
to Numba and may change with a version.  So at first use a kernel reads back arrays of every rank, and numbers, from
such bytes (:func:`check_layout`); it only returns the stored numbers and follows no address.

An *operation* is a NamedTuple of arguments with a kernel that does one thing for one row (one replica and one worker):
``Gradient``, ``Quantize``, ...  To *bind* it means to write the arguments into memory once, in Numba's layout, and to
compile the kernel for their types; the result is a pair of addresses.  A round of a method is a list of such pairs, and
:func:`replay` runs it, round after round and row after row, for any method.  So a kernel is compiled for a problem, or
for a compressor, and never for a pair of them.

>>> @operation
... class Shift(NamedTuple):
...     X: np.ndarray
...     by: float
...     def _row(pointer, t, r, w):
...         b = at(pointer)
...         x = b.X[r, w]
...         for j in range(x.size):
...             x[j] += t * b.by
>>> X = np.zeros((1, 2, 3))
>>> bind(Shift(X, 0.5), 1, Owners.first(2))(4)
>>> X
array([[[2., 2., 2.],
        [2., 2., 2.]]])
"""

from __future__ import annotations

import ctypes
import functools
import struct
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .compile_cache import F, kernel, no_refcount, uncounted
from .numba_private import NumbaError
from .vectors import inside, read_only, writable

# --- Arguments of kernels in memory ----------------------------------------------------------------------------------


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

    The bytes do not own the arrays, so the NamedTuple must live as long as the bytes.
    """
    return encoded(value, *encoder_of(numba.typeof(value)))


def encoded(value: Any, encoder: Callable[[Any, list], None], form: str) -> np.ndarray:
    """The same, with the result of `encoder_of` for the value's type."""
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


# --- check of Numba's layout ------------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """Numbers of several sizes, and arrays, one of them read-only."""

    small: bool
    truths: np.ndarray
    half: np.float32
    singles: np.ndarray
    closed: np.ndarray
    end: np.int32


class Sample(NamedTuple):
    """Arrays of every rank that kernels take, and numbers.

    Numba stores arrays of one rank alike, whatever their order and their type of number.
    """

    first: bool
    one: np.ndarray
    two: np.ndarray
    three: np.ndarray
    four: np.ndarray
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
    """Number k of a `Sample`: first those of each array, `PLACES` for each, then the scalars."""
    b = at(pointer)
    m = b.inner
    found = _number(b.one, k) + _number(b.two, k - 16) + _number(b.three, k - 32) + _number(b.four, k - 48)
    found += _number(m.truths, k - 64) + _number(m.singles, k - 80) + _number(m.closed, k - 96)
    if k == 112:
        found = np.int64(b.first) + 2 * np.int64(m.small) + 4 * np.int64(m.half) + 32 * np.int64(m.end)
    if k == 113:
        found = np.int64(b.key) + np.int64(b.last)
    return found


def _sample() -> Sample:
    one, two, three, four = (np.zeros((*range(2, 2 + rank), 2))[..., 0] for rank in (1, 2, 3, 4))  # not contiguous
    closed = np.zeros(9)
    closed.flags.writeable = False
    inner = Numbers(True, np.zeros(2, np.bool_), np.float32(5.0), np.zeros(4, np.float32), closed, np.int32(-7))
    return Sample(True, one, two, three, four, inner, np.uint64(2**40), -3.0)


def _expected(sample: Sample) -> dict[int, int]:
    arrays = [a for a in (*sample, *sample.inner) if isinstance(a, np.ndarray)]
    wanted = {112: 1 + 2 + 4 * 5 + 32 * -7, 113: 2**40 - 3}
    for n, a in enumerate(arrays):
        numbers = a.size, a.itemsize, a.ctypes.data, *a.shape, *a.strides
        wanted |= {PLACES * n + k: numbers[k] if k < len(numbers) else 0 for k in range(PLACES)}
    return wanted


@functools.cache
def check_layout() -> None:
    """Raise ``RuntimeError`` if Numba does not read the encoded arguments back from the bytes."""
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


# --- Operations ------------------------------------------------------------------------------------------------------

__all__ = [
    "CODING",
    "EXCHANGE",
    "GRADIENT",
    "OTHER",
    "Call",
    "Owners",
    "arrays_in",
    "at",
    "bind",
    "in_python",
    "operation",
    "pinned",
    "replay",
]

GRADIENT, CODING, EXCHANGE, OTHER = range(4)  # the kinds of calls, whose times are counted separately

CLOCK = int(time.CLOCK_MONOTONIC)


@intrinsic
def _invoke(typing_context: Any, code: Any, data: Any, t: Any, r: Any, w: Any) -> Any:
    """Call the compiled function at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 4)
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


@intrinsic
def _number_at(typing_context: Any, address: Any) -> Any:
    """The int64 at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), generate


_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))


@kernel
def replay(calls: np.ndarray, start: int, stop: int, time: np.ndarray, nanoseconds: np.ndarray) -> None:
    """Make the calls of rounds ``start`` to ``stop`` and sum the time of each kind.

    ``calls`` has a row for each: the addresses of code and arguments, the kind, how many replicas there are, and the
    addresses of the list of owners and of its length.  ``time`` is a buffer for two numbers.
    """
    _clock_gettime(CLOCK, time.ctypes)
    before = time[0] * 1_000_000_000 + time[1]
    for t in range(start, stop):
        for k in range(calls.shape[0]):
            code, data, owners, count = calls[k, 0], calls[k, 1], calls[k, 4], _number_at(calls[k, 5])
            for r in range(calls[k, 3]):
                for q in range(count):
                    _invoke(code, data, t, r, _number_at(owners + 8 * q))
            _clock_gettime(CLOCK, time.ctypes)
            now = time[0] * 1_000_000_000 + time[1]
            nanoseconds[calls[k, 2]] += now - before
            before = now


# --- kernels and calls ----------------------------------------------------------------------------------------------


class Owners(NamedTuple):
    """The owners whose rows a kernel is called for, in order: the first ``count[0]`` of the list."""

    index: np.ndarray  # type: ignore[assignment]  # tuple.index is never called
    count: np.ndarray  # type: ignore[assignment]  # tuple.count is never called

    @classmethod
    def first(cls, n: int) -> Owners:
        """Numbers 0 to n - 1; a round function can only read them."""
        return cls(read_only(np.arange(n, dtype=np.int64)), read_only(np.array([n], np.int64)))

    def now(self) -> np.ndarray:
        """The current owners, from the memory that kernels read, whatever the shapes of the views are."""
        return writable(self.index)[: writable(self.count)[0]]

    def become(self, index: np.ndarray) -> None:
        """Replace the owners; there may not be more of them than at the start."""
        writable(self.index)[: index.size], writable(self.count)[0] = index, index.size


class Call:
    """A step of every round, executed by ``call(t)``.

    Attributes
    ----------
    name : str
    kind : int
        Where its time is counted: GRADIENT, CODING, EXCHANGE or OTHER.
    arguments : NamedTuple or None
        The arguments that the kernel is bound to.
    addresses : ndarray of int64, or None
        Its row in the table of `replay`; None if it runs in Python.
    """

    def __init__(
        self,
        name: str,
        kind: int,
        function: Callable[[int], object] | None,
        arguments: Any = None,
        addresses: Any = None,
        keep: tuple = (),
    ):
        self.name, self.kind, self._function, self.arguments = name, kind, function, arguments
        self.addresses, self._keep = addresses, keep
        self.given: Any = None  # what the run has to say of it

    def __call__(self, t: int) -> None:
        """Execute round t."""
        if self._function is not None:
            self._function(t)
        else:
            replay(self.addresses[None], t, t + 1, np.empty(2, np.int64), np.zeros(4, np.int64))


def operation(cls: Any = None, *, kind: int = OTHER, shared: tuple[str, ...] = ()) -> Any:
    """Make an operation of a NamedTuple with a function ``_row(pointer, t, r, w)``, which begins ``b = at(pointer)``.

    ``shared``: the fields of which one row may serve all owners.  See `in_python` for arguments that kernels cannot
    take.
    """
    if cls is None:
        return lambda cls: operation(cls, kind=kind, shared=shared)
    cls.kind, cls.shared, cls.plain, cls.kernel = kind, shared, {}, kernel(cls._row, no_cpython_wrapper=True)
    return cls


def in_python(made: Any, *classes: type) -> Callable[[F], F]:
    """Decorate a function ``(arguments, t, r, w)`` that replaces an operation whose first field is of such a class."""

    def decorate(function: F) -> F:
        made.plain.update(dict.fromkeys(classes, function))
        return function

    return decorate


def bind(arguments: Any, replicas: int, owners: Owners) -> Call:
    """Bind an operation to its arguments, for the rows of all replicas and these owners."""
    made = type(arguments)
    plain = made.plain.get(type(arguments[0]))
    if plain is not None:
        function = functools.partial(_each, plain, arguments, replicas, owners)
        return Call(made.__name__, made.kind, function, arguments)
    kind = _kind_of(arguments)
    if kind not in _known:
        _known[kind] = _prepared(made, arguments)
    address, encoder, form = _known[kind]
    data = encoded(arguments, encoder, form)
    numbers = (address, data.ctypes.data, made.kind, replicas, owners.index.ctypes.data, owners.count.ctypes.data)
    return Call(made.__name__, made.kind, None, arguments, np.array(numbers, np.int64), (data, owners))


_known: dict[tuple, tuple] = {}  # by kinds of arguments: the kernel's address and the memory layout


def _prepared(made: Any, arguments: Any) -> tuple:
    """Address of the kernel for such arguments, and their memory layout."""
    tp = numba.typeof(arguments)
    try:
        check_layout()
        return _entry(made.kernel, tp), *encoder_of(tp)
    except NumbaError as error:
        closed = [name for name, a in zip(arguments._fields, arguments, strict=True) if _is_closed(a)]
        if not closed:
            raise
        told = f"{made.__name__}: {', '.join(closed)}"
        raise TypeError(f"{told}: got an array that is read-only, allowed: one that can be written") from error


def _is_closed(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not value.flags.writeable


def arrays_in(value: Any) -> Iterator[np.ndarray]:
    """The arrays in nested tuples."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_in(part)


def pinned(array: Any) -> Iterator[weakref.ref]:
    """Weak references to an array and to those whose memory it shows.

    While there is one, NumPy refuses to resize the array, so that its memory stays where it is.
    """
    while isinstance(array, np.ndarray):
        yield weakref.ref(array)
        array = inside(array.base)


_once: dict[tuple, Any] = {}


def once(make: Callable[[], Any], key: Any, where: tuple) -> Any:
    """The result of ``make`` for the arrays in a tuple; computed once for each key if all arrays are read-only.

    It is not noticed if somebody opens such an array, changes it and closes it again, or changes a mapped file.
    """
    arrays = list(arrays_in(where))
    if any(cast(np.ndarray, shown()).flags.writeable for array in arrays for shown in pinned(array)):
        return make()
    if (whole := (key, *map(id, arrays))) not in _once:
        _once[whole] = make()
        for array in arrays:
            weakref.finalize(array, _once.pop, whole, None)
    return _once[whole]


def _kind_of(value: Any) -> Any:
    """All that the Numba type of a value depends on; asking Numba takes five times as long."""
    if isinstance(value, tuple):
        return (type(value), *map(_kind_of, value))
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    return (int, value >= 2**63) if type(value) is int else type(value)


def _entry(compiled: Any, tp: Any) -> int:
    """Address of the code for arguments of this type, compiled or loaded at first use."""
    return compiled_for(compiled, tp, types.int64, types.int64, types.int64)[0]


def _each(function: Callable[..., object], arguments: Any, replicas: int, owners: Owners, t: int) -> None:
    for r in range(replicas):
        for w in owners.now().tolist():
            function(arguments, t, r, w)
