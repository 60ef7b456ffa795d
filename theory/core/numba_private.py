"""All uses of Numba's private interface, in one place: a new version may remove or change it.

``pyproject.toml`` allows the versions of Numba with which the tests have passed.  `OLDEST` and `NEWEST` are the first
and the last of them; with any other, :mod:`theory.core.inlined_kernels` compiles the standard way, and
:func:`theory.core.bound_calls.check_layout` refuses another layout of arguments.
"""

from __future__ import annotations

import os
from typing import Any

import llvmlite.binding as llvm
from numba.core import cgutils, config, ir
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, compile_result
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.event import Listener, register
from numba.core.extending import _Intrinsic as Intrinsic
from numba.core.runtime import rtsys as runtime
from numba.core.serialize import dumps

__all__ = [
    "NEWEST",
    "OLDEST",
    "CompileResult",
    "Compiler",
    "Dispatcher",
    "Intrinsic",
    "JITCodeLibrary",
    "Listener",
    "NullCache",
    "NumbaError",
    "cgutils",
    "compile_result",
    "config",
    "dumps",
    "ir",
    "llvm",
    "register",
    "runtime",
    "used",
]

OLDEST, NEWEST = (0, 61), (0, 68)


class _Random:
    """Endless random integers of 48 bits."""

    def __next__(self) -> int:
        return int.from_bytes(os.urandom(6), "little")


# The name of machine code contains the number of its function.  Numba counts functions in each process, so two closures
# of one name (one loaded and one compiled, or stored by two processes) could get the same number and be confused.
FunctionIdentity._unique_ids = _Random()

used: dict[Any, tuple[str, ...]] = {  # beside the names above, and attributes of instances
    CompileResult: ("_rebuild", "_reduce", "_replace", "fndesc", "library", "lifted", "signature"),
    Compiler: ("compile_extra",),
    FunctionIdentity: ("_unique_ids",),
    Dispatcher: ("compile", "enable_caching", "get_call_template", "get_overload"),
    JITCodeLibrary: (
        "_ensure_finalized",
        "_finalize_dynamic_globals",
        "_verify_declare_only_symbols",
        "codegen",
        "enable_object_caching",
        "get_pointer_to_function",
        "has_dynamic_globals",
        "serialize_using_bitcode",
        "serialize_using_object_code",
    ),
}
