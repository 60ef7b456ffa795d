"""Kernels: functions compiled with Numba, whose machine code is stored (`stored_code`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from .compiling import when_compiling
from .fingerprints import file_of
from .inlined_kernels import Recorded, callee_of, rebuild_callee, stand_in
from .interrupts import uninterrupted
from .numba_private import CompileResult
from .private_files import cache_root
from .stored_code import Stored, external, loaded_files

__all__ = [
    "cache_root",
    "external",
    "force_inline",
    "kernel",
    "loaded_files",
    "no_refcount",
    "uncounted",
    "when_compiling",
]

F = TypeVar("F", bound=Callable[..., Any])  # a compiled function keeps its type signature for the type checker


def kernel(function: F, **options: Any) -> F:
    """Compile with Numba, release the GIL, and store the machine code on disk (for functions of the package).

    Parameters
    ----------
    function : callable
        What ``numba.njit`` compiles.
    **options
        Of ``numba.njit``.

    Returns
    -------
    callable
        The compiled function; ``.py_func`` is the plain one.

    Examples
    --------
    >>> @kernel
    ... def add(a, b):
    ...     return a + b
    >>> add(1, 2)
    3
    """
    dispatcher = numba.njit(nogil=True, error_model="numpy", pipeline_class=Recorded, **options)(function)
    compiles = dispatcher.compile

    @functools.wraps(compiles)
    def whole(signature: Any) -> Any:
        with uninterrupted():
            return compiles(signature)

    dispatcher.compile = whole
    if file_of(cast(Any, function).__code__.co_filename) is None:
        return dispatcher
    dispatcher._cache = Stored(dispatcher, lambda context, parts: CompileResult._rebuild(context, *parts), "kernel")

    def called() -> Any:
        made = callee_of(dispatcher)
        made._cache = Stored(made, rebuild_callee, "callee")
        return made

    stand_in(dispatcher, called)
    return dispatcher


def force_inline(dispatcher: F) -> F:
    """Make LLVM inline a kernel into its callers, whatever its size; used above ``@kernel``.

    A call that is not inlined counts references to every array in its arguments, atomically: for a problem of five
    arrays that doubles the time of a sparse step.  Use it for code that runs once per row or entry.

    Parameters
    ----------
    dispatcher : kernel
        It is changed in place.

    Returns
    -------
    kernel
        The same.

    Examples
    --------
    >>> @force_inline
    ... @kernel
    ... def twice(x):
    ...     return 2 * x
    >>> twice(2)
    4
    """
    cast(Any, dispatcher).targetoptions["forceinline"] = True
    return dispatcher


def no_refcount(dispatcher: F) -> F:
    """Like :func:`force_inline`, without reference counts: for a kernel that creates, returns and stores no array.

    With branches, reference counts survive inlining; reading a few bits took ten times as long.

    Parameters
    ----------
    dispatcher : kernel
        It is changed in place.

    Returns
    -------
    kernel
        The same.

    Examples
    --------
    >>> @no_refcount
    ... @kernel
    ... def first(v):
    ...     return v[0]
    """
    return force_inline(uncounted(dispatcher))


def uncounted(dispatcher: F) -> F:
    """Compile a kernel without reference counts and without inlining; it must not create, store or return an array.

    Views into arrays are allowed.  If a vector is processed in small pieces, counting them takes longer than the work.

    Parameters
    ----------
    dispatcher : kernel
        It is changed in place.

    Returns
    -------
    kernel
        The same.

    Examples
    --------
    >>> @uncounted
    ... @kernel
    ... def last_of_half(v):
    ...     return v[: v.size // 2][-1]
    """
    cast(Any, dispatcher).targetoptions["_nrt"] = False
    return dispatcher
