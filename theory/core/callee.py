"""Kernels as other kernels call them: code to be copied into a caller, and nothing that the caller does not need.

Numba compiles whatever a kernel calls as if Python might call it, too: with two wrappers that take its arguments from
Python and from C, as machine code of its own, and once more for every number that some caller writes as a literal.
A caller has its own copy of it, so all this is never run, and it takes longer than to compile the kernel itself.
:func:`callee_of` leaves it out; what Python calls is compiled as ever.  A kernel of the package must not call itself.

This uses parts of Numba that may change: with a version that was not tried, everything is compiled as Numba does it,
which takes longer and gives the same code.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import types
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, compile_result

__all__ = ["OPTIONS", "CalleeImpl", "callee_of", "stand_in"]


class _Unplaced:
    """A code generator that has no place in memory to note a function's environment."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, environment) -> None:
        """Nothing: there is no code that would look there."""


class _Callee(JITCodeLibrary):
    """LLVM's code, optimized, ready to be linked into others; never machine code."""

    @property
    def codegen(self):
        return _Unplaced(self._codegen)

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self):
        return self.serialize_using_bitcode()


class _Compiler(Compiler):
    """Numba's, but into such a library."""

    def __init__(self, typing_context, target_context, library, *others):
        if library is None:
            library = _Callee(target_context.codegen(), "callee")
            library.enable_object_caching()
        super().__init__(typing_context, target_context, library, *others)


class CalleeImpl(CompileResultCacheImpl):
    """How it is read from the disk."""

    def rebuild(self, target_context, payload):
        """The compiled kernel, as Numba would make it."""
        (name, _, code), fndesc, environment, signature, objectmode, lifted, annotation, reload_init, _ = payload
        library = _Callee(target_context.codegen(), name)
        library._final_module = llvm.parse_bitcode(code)
        library._finalize_final_module()
        return compile_result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, fndesc, environment),
            fndesc=fndesc,
            type_annotation=annotation,
            signature=signature,
            objectmode=objectmode,
            lifted=lifted,
            reload_init=reload_init,
        )


TRIED = (0, 61) <= numba.version_info.short <= (0, 68)
LITERALS = (types.IntegerLiteral, types.BooleanLiteral)
OPTIONS: dict[str, Any] = (
    {"pipeline_class": _Compiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True} if TRIED else {}
)


def callee_of(dispatcher) -> Any:
    """The same kernel, with the same options, for callers."""
    options = {k: v for k, v in dispatcher.targetoptions.items() if k not in ("nopython", "boundscheck")}
    return numba.njit(**options | OPTIONS)(dispatcher.py_func)


def stand_in(dispatcher: Any, make) -> None:
    """Have kernels that call ``dispatcher`` find what ``make()`` returns, when they first do."""
    if not TRIED:
        return
    made: list[Any] = []

    def callee():
        if not made:
            made.append(make())
        return made[0]

    def get_call_template(args, kws):
        plain = tuple(a.literal_type if isinstance(a, LITERALS) else a for a in args)
        return callee().get_call_template(plain, kws)

    dispatcher.get_call_template = get_call_template
    dispatcher.get_overload = lambda signature: callee().get_overload(signature)
