"""Kernels: functions compiled with Numba, whose machine code is stored in the user's cache folder.

Numba notices only changes in the file of the function that it stores, not in what that function calls.  So each stored
kernel has a digest of all that it was compiled from (`fingerprints`), and is compiled again when that has changed, and
not when something else has.  What was compiled with an implementation from outside the package, in a notebook for
example, is never stored.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba.core import config, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from . import callee
from .callee import Recorded, callee_of, choices_of, rebuild_callee, stand_in
from .compile_bar import CompileBar
from .fingerprints import NAME, Node, code_text, file_of, generics, name_of, node, reached, state_of
from .private_files import cache_root, read, say_once, unsafe, write

__all__ = ["cache_root", "external", "force_inline", "kernel", "loaded_files", "no_refcount", "when_compiling"]

DAY = 86_400.0
KEPT_DAYS, KEPT_BYTES, KEPT_STATES = 60.0, 2**30, 8  # how long and how much is kept; states of one kernel's source
NUMBA_OPTIONS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "LLVM_REFPRUNE_PASS")

F = TypeVar("F", bound=Callable[..., Any])  # a compiled function keeps its type signature for the type checker

external: set[type] = set()  # classes with an implementation from outside the package
_files: set[str] = set()


def loaded_files() -> frozenset[str]:
    """Files of the package from which the kernels were compiled that this process has compiled or loaded so far.

    Returns
    -------
    frozenset of str
        Paths relative to the package, ``"core/random.py"``: of the functions that were compiled, of what they call and
        of the classes that they name.  Files that only define a constant are not among them.
    """
    return frozenset(_files)


def _mentions_external(value: object) -> bool:
    """Whether a Numba type or signature contains a class that was implemented outside the package."""
    if isinstance(value, (tuple, list)):
        return any(_mentions_external(part) for part in value)
    if isinstance(value, types.Type):
        if getattr(value, "instance_class", None) in external:
            return True
        if isinstance(value, cast(Any, types).CPointer):
            return _mentions_external(value.dtype)
        return any(_mentions_external(part) for part in getattr(value, "types", ()))
    return False


SHARED_PIECES = "what all methods share"
CONTAINERS = tuple(f"{NAME}.{part}" for part in ("methods.", "compressors.base", "problems.matrix"))


def _piece(signature) -> str:
    """Whose kernel has this signature: class of the first argument, or of its first field if that is a pointer."""
    first = signature[0] if isinstance(signature, (tuple, list)) and signature else None
    if isinstance(first, cast(Any, types).CPointer):
        first = next(iter(getattr(first.dtype, "types", ())), None)
    cls = getattr(first, "instance_class", None)
    return SHARED_PIECES if cls is None or cls.__module__.startswith(CONTAINERS) else cls.__name__


def _tell_who_watches(what: str, folder: Path | None, stored: bool) -> None:
    """A line if standard error is a terminal; in a notebook a bar, as the output of the cell that waits."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if os.environ.get("THEORY_PROGRESS") == "0" or "PYTEST_CURRENT_TEST" in os.environ:
        return
    later = f"next time it is loaded from {folder}" if stored else "not stored, as it is not the package's own"
    if shell is not None and hasattr(shell, "kernel"):
        if not _bars:
            _bars.append(CompileBar(shell))
        _bars[0].piece(what, later, what == SHARED_PIECES)
    elif sys.stderr is not None and (sys.stderr.isatty() or shell is not None):
        print(f"theory: compiling {what} (some seconds; {later})", file=sys.stderr, flush=True)


_bars: list[CompileBar] = []  # at most one
_teller: list[Callable[[str, Path | None, bool], object]] = [_tell_who_watches]
_told: set[str] = set()


def when_compiling(tell: Callable[[str, Path | None, bool], object] | None) -> None:
    """Call ``tell(what, folder, stored)`` when a kernel is not found in the cache; None: no call.

    By default a line is printed on standard error if that is a terminal, and a notebook shows a bar.

    Parameters
    ----------
    tell : callable or None
        ``what`` names a compressor, a problem or the common part, each once; ``folder`` is the cache, and ``stored``
        tells whether the code will be found there next time.

    Examples
    --------
    >>> when_compiling(None)  # from now on nobody is told
    """
    _teller[:] = [] if tell is None else [tell]


# --- stored code ------------------------------------------------------------------------------------------------------


@functools.cache
def _text_of(tp: object) -> str:
    """A Numba type, or what makes it up, with the modules and fields of its classes."""
    if isinstance(tp, (tuple, list)):
        return f"({', '.join(map(_text_of, tp))})"
    if isinstance(tp, types.Type):
        key = "" if tp.key == tp.name else _text_of(tp.key)
        return f"{type(tp).__name__} {tp.name} {key}"
    if isinstance(tp, type):
        return f"{name_of(tp)} {getattr(tp, '_fields', '')}"
    return repr(tp)


@functools.cache
def _classes(tp: object) -> tuple[type, ...]:
    """The package's classes in a Numba type."""
    if isinstance(tp, (tuple, list)):
        return tuple(dict.fromkeys(cls for part in tp for cls in _classes(part)))
    if isinstance(tp, types.Type):
        return () if tp.key == tp.name else _classes(tp.key)
    return (tp,) if isinstance(tp, type) and tp.__module__.startswith(f"{NAME}.") else ()


@functools.cache
def _machine(codegen: Any) -> str:
    """Digest of what else shapes compiled code: versions, processor, options, and how this package compiles."""
    functions = [value for value in vars(callee).values() if getattr(value, "__module__", "") == callee.__name__]
    functions += [value for cls in functions if isinstance(cls, type) for value in vars(cls).values()]
    how = [code_text(function.__code__) for function in functions if hasattr(function, "__code__")]
    versions = sys.version, numba.__version__, llvmlite.__version__, np.__version__
    options = [(name, getattr(config, name, None)) for name in NUMBA_OPTIONS]
    return hashlib.sha256(repr((versions, codegen.magic_tuple(), options, how)).encode()).hexdigest()[:16]


def _roots(function: Callable[..., Any], classes: Iterable[type], choices: Iterable[tuple[str, str]]) -> list[Any]:
    """A kernel, classes in its signature, and the implementations that generics run now; None where there is none."""
    chosen = [generics[name].choose(cls) if name in generics else None for name, cls in choices]
    return [function, *classes, *chosen]


class _Stored(NullCache):
    """Numba's interface to what is stored of a kernel: a file for each signature and each state of the source."""

    def __init__(self, dispatcher: Any, rebuild: Callable[[Any, Any], Any], kind: str):
        self._dispatcher, self._rebuild, self._kind = dispatcher, rebuild, kind

    def _place(self, signature: object, codegen: Any) -> tuple[Path, str] | None:
        """Folder and beginning of the name of the files for a signature."""
        root, function = cache_root(), self._dispatcher.py_func
        text = _text_of(signature)
        if root is None or " at 0x" in text:  # an object that no other process has
            return None
        file = file_of(function.__code__.co_filename)
        options = sorted(map(str, self._dispatcher.targetoptions.items()))
        key = hashlib.sha256(repr((file, function.__qualname__, self._kind, options, text)).encode()).hexdigest()
        title = f"{Path(str(file)).stem}.{function.__qualname__}".replace("<", "").replace(">", "")
        return root / "compiled" / _machine(codegen) / title, key[:24]

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Find the machine code for a signature, or None."""
        target_context.refresh()
        is_external = _mentions_external(signature)
        found = None if is_external else self._load(signature, target_context)
        if found is None and _teller and (what := _piece(signature)) not in _told:
            _told.add(what)
            _teller[0](what, cache_root(), not is_external)
        if found is None and _bars:
            _bars[0].kernel()
        return found

    def _load(self, signature: Any, target_context: Any) -> Any:
        place = self._place(signature, target_context.codegen())
        if place is None or _unusable(place[0]):
            return None
        folder, key = place
        try:
            names = [name for name in os.listdir(folder) if name.startswith(key)]
        except OSError:
            return None
        for name in names:
            stored = read(folder / name)
            if stored is None:
                continue
            choices = [tuple(choice) for choice in stored[0]["choices"]]
            roots = _roots(self._dispatcher.py_func, _classes(signature), choices)
            if None in roots or state_of(found := reached(roots)) != stored[0]["state"]:
                continue
            try:
                result = self._rebuild(target_context, pickle.loads(stored[1]))
            except Exception as error:  # of the versions named in the folder, yet it does not load
                say_once(f"{folder / name} cannot be loaded ({type(error).__name__}): it is written again")
                continue
            result.library.recorded = frozenset(choices), frozenset()
            _note(found)
            _touch(folder / name)
            return result
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store what was compiled, unless another process could not use it."""
        choices, compiled = choices_of(result.library)
        roots = _roots(self._dispatcher.py_func, _classes(signature), sorted(choices))
        found = reached(roots)
        _note(found)
        place = self._place(signature, result.library.codegen)
        known = {getattr(thing, "__code__", None) for thing in found}
        foreign = any(code not in known or file_of(code.co_filename) is None for code in compiled)
        dynamic = result.library.has_dynamic_globals or result.lifted
        state = state_of(found)
        changed = state != state_of(reached(roots, node.__wrapped__))  # a constant was assigned since it was looked at
        if place is None or state is None or changed or foreign or dynamic or _mentions_external(signature):
            return
        folder, key = place
        if _unusable(folder):
            return
        content = dumps(result._replace(type_annotation="")._reduce())
        if write(folder / f"{key}-{state}", {"choices": sorted(choices), "state": state}, content):
            _prune(folder, key)


def _note(found: dict[Any, Node]) -> None:
    _files.update(node.file for node in found.values() if node.file is not None)


@functools.cache
def _unusable(folder: Path) -> bool:
    """Whether a folder of stored code is not to be trusted, which is said."""
    if not folder.parent.exists():
        return False  # nothing is stored yet
    for level in (folder.parent, folder):
        why = unsafe(level)
        if why is not None:
            say_once(f"{level} {why}: nothing is loaded from there, or stored")
            return True
    return False


def _touch(path: Path) -> None:
    """Note that a file is in use, once a day."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def _prune(folder: Path, key: str) -> None:
    """Remove old states of a kernel; once a day what nobody used for a long time, and the oldest of too much."""
    with contextlib.suppress(OSError):
        states = sorted(folder.glob(f"{key}-*"), key=lambda path: path.stat().st_mtime)
        for path in states[:-KEPT_STATES]:
            path.unlink(missing_ok=True)
    root = folder.parents[1]
    stamp = root / "pruned"
    with contextlib.suppress(OSError):
        if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY:
            return
        stamp.touch()
        prune(root)


def prune(root: Path, days: float = KEPT_DAYS, size: int = KEPT_BYTES) -> None:
    """Remove files below a folder that nobody used for so many days, and the oldest while there are too many bytes."""
    files, total = [], 0
    for folder, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(OSError):
                about = os.lstat(os.path.join(folder, name))
                files.append((about.st_mtime, about.st_size, os.path.join(folder, name)))
                total += about.st_size
    for when, length, path in sorted(files):
        if total > size or time.time() - when > days * DAY:
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= length
    for folder, _, _ in os.walk(root, topdown=False):
        with contextlib.suppress(OSError):  # not empty
            if folder != str(root):
                os.rmdir(folder)


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
    if file_of(cast(Any, function).__code__.co_filename) is None:
        return dispatcher
    dispatcher._cache = _Stored(dispatcher, lambda context, parts: CompileResult._rebuild(context, *parts), "kernel")

    def called() -> Any:
        made = callee_of(dispatcher)
        made._cache = _Stored(made, rebuild_callee, "callee")
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
    """Compile a kernel without reference counts, and not inlined: it creates and stores no array, nor returns one.

    Views into arrays are fine.  Counting them costs more than the work where a vector comes in small pieces.

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
