"""Kernels compiled for inlining into other kernels, without the parts that only a call from Python or C needs.

Numba compiles every function that a kernel calls as if Python might also call it: with wrappers for calls from Python
and from C, as separate machine code, and once more for every literal that a caller passes.  Callers inline the kernel,
so none of this ever runs, yet it takes longer than compiling the kernel itself.  :func:`callee_of` omits it; kernels
that Python calls are compiled as usual.  A kernel of the package must not be recursive.

This uses parts of Numba that may change: with an untested version, everything is compiled the standard way, which takes
longer and gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from .fingerprints import generics, name_of
from .numba_private import NEWEST, OLDEST, Compiler, JITCodeLibrary, compile_result, ir, llvm


class Recorded(Compiler):
    """Numba's compiler; its library records which implementations were called and what it was compiled from.

    ``library.recorded`` contains pairs of a generic and a class, by name, and code objects, including those of linked
    libraries.
    """

    def compile_extra(self, func: Any) -> Any:
        """Compile a function as Numba does."""
        result = super().compile_extra(func)
        choices, compiled = choices_of(result.library)
        typemap = result.fndesc.typemap or {}
        here = set()
        for expression, signature in (result.fndesc.calltypes or {}).items():
            if isinstance(expression, ir.Expr) and expression.op == "call":
                called = typemap.get(expression.func.name)
                identity = getattr(getattr(called, "typing_key", None), "identity", None)
                if identity in generics:
                    cls = getattr(signature.args[0], "instance_class", None)
                    here.add((identity, name_of(cls) if cls else ""))
        result.library.recorded = choices | here, compiled | {func.__code__}
        return result


def choices_of(library: Any) -> tuple[frozenset, frozenset]:
    """What was recorded for a library, or else for the libraries that were linked into it."""
    own = getattr(library, "recorded", None)
    if own is not None:
        return own
    parts = [choices_of(linked) for linked in library._linking_libraries]
    return frozenset().union(*(part[0] for part in parts)), frozenset().union(*(part[1] for part in parts))


class _Unplaced:
    """A code generator without storage for a function's environment."""

    def __init__(self, codegen: Any):
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: no code reads the environment."""


class _Callee(JITCodeLibrary):
    """Optimized LLVM code, ready to be linked into other libraries; never machine code."""

    @property
    def codegen(self) -> Any:
        return _Unplaced(self._codegen)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        return self.serialize_using_bitcode()


class _Compiler(Recorded):
    """Numba's compiler, with `_Callee` as its library."""

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *others: Any):
        if library is None:
            library = _Callee(target_context.codegen(), "callee")
            library.enable_object_caching()
        super().__init__(typing_context, target_context, library, *others)


def rebuild_callee(target_context: Any, payload: Any) -> Any:
    """Restore a compiled callee from its stored form, as Numba does for kernels."""
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


TRIED = OLDEST <= numba.version_info.short <= NEWEST
LITERALS = (types.IntegerLiteral, types.BooleanLiteral)
OPTIONS: dict[str, Any] = (
    {"pipeline_class": _Compiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if TRIED
    else {"pipeline_class": Recorded}
)


def callee_of(dispatcher: Any) -> Any:
    """The same kernel with the same options, to be called by other kernels."""
    options = {k: v for k, v in dispatcher.targetoptions.items() if k not in ("nopython", "boundscheck")}
    return numba.njit(**options | OPTIONS)(dispatcher.py_func)


def stand_in(dispatcher: Any, make: Callable[[], Any]) -> None:
    """Make kernels that call ``dispatcher`` use what ``make()`` returns; it is called at first use."""
    if not TRIED:
        return
    made: list[Any] = []

    def callee() -> Any:
        if not made:
            made.append(make())
        return made[0]

    def get_call_template(args: Any, kws: Any) -> Any:
        plain = tuple(a.literal_type if isinstance(a, LITERALS) else a for a in args)
        return callee().get_call_template(plain, kws)

    dispatcher.get_call_template = get_call_template
    dispatcher.get_overload = lambda signature: callee().get_overload(signature)
