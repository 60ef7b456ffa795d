"""Operations: kernels bound to their arguments, so that a compiled loop can call them by address.

An *operation* is a NamedTuple of arguments with a kernel that does one thing for one row (one replica and one worker):
``Gradient``, ``Quantize``, ...  To *bind* it means to write the arguments into memory once, in Numba's layout, and to
compile the kernel for their types; what remains are two addresses.  A round of a method is a list of such pairs, and
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

import functools
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .argument_layout import at, check_layout, compiled_for, encoded, encoder_of
from .compile_cache import F, kernel
from .handles import inside, read_only, writable
from .numba_private import NumbaError

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
        """The owners at present, from where kernels read them, whatever became of the views' shapes."""
        return writable(self.index)[: writable(self.count)[0]]

    def become(self, index: np.ndarray) -> None:
        """Replace the owners; there are at most as many as at first."""
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
