"""Generic functions: one name, one implementation per NamedTuple type, callable from Python and from ``@njit``.

A setting (a compressor, a step size, a problem) is a ``NamedTuple``.  A *generic* looks at the class of its first
argument and runs the implementation that was registered for that class.  Inside compiled code the same lookup happens
once, at compile time, so that it costs nothing there.

>>> from typing import NamedTuple
>>> class Halve(NamedTuple):
...     times: int
>>> apply = generic("apply", "apply(c, x): what the setting c does to the number x.")
>>> @apply.register(Halve)
... def _(c, x):
...     return x / 2.0**c.times
>>> apply(Halve(3), 8.0)
1.0

Numba stores compiled code on disk, but it notices only changes in the file of the function that it stores, not in what
that function calls.  So the folder is named by a digest of the source.  The packages that only use kernels (``LEAVES``)
are left out of it, unless the kernel stands in one of them, so that work on a figure does not compile everything again.
A function that was compiled for a type with an implementation from elsewhere (a notebook's, say) is never stored.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import inspect
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numba
from numba.core import types
from numba.core.caching import FunctionCache
from numba.extending import overload

from .callee import OPTIONS, CalleeImpl, callee_of, stand_in

PACKAGE = Path(__file__).resolve().parent
LEAVES = frozenset(
    {"data", "bounds", "measure", "claims", "plots", "experiment"}
)  # no other package's kernels call these
SHARED = "claims/instruments"  # in a leaf, but types of files that begin so are compiled into the core's kernels
KEPT_VERSIONS = 24  # folders of compiled code kept on disk: for each state of the source its core and a leaf or two

F = TypeVar("F", bound=Callable[..., Any])  # what is compiled keeps the signature that it is written with

_foreign: set[type] = set()  # classes with an implementation from outside the package


# --- compiled code on disk ------------------------------------------------------------------------------------------


@functools.cache
def _region_of(source: str | None) -> str | None:
    """What part of the package a file is in: "" for its core, the name of a leaf, or None outside the package."""
    try:
        inside = Path(source).resolve().relative_to(PACKAGE) if source else None
    except ValueError:
        inside = None
    if inside is None:
        return None
    return inside.parts[0] if inside.parts[0] in LEAVES and not inside.as_posix().startswith(SHARED) else ""


def _region(function: Callable[..., Any]) -> str | None:
    """The same for where a function stands."""
    try:
        return _region_of(inspect.getsourcefile(function))
    except TypeError:
        return None


def source_digest(region: str = "", root: Path = PACKAGE) -> str:
    """Digest of the source of the core and of one leaf, and of the versions that shape compiled code."""
    digest = hashlib.sha256(f"{sys.version} {numba.__version__}".encode())
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside.parts[0] == region or inside.parts[0] not in LEAVES or inside.as_posix().startswith(SHARED):
            digest.update(str(inside).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_root() -> Path:
    """The user's cache folder (``THEORY_CACHE`` overrides it), or a temporary one where that cannot be written."""
    home, base = os.environ.get("THEORY_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if home is not None:
        root = Path(home)
    elif base is not None:
        root = Path(base) / "theory"
    else:
        root = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "theory"
    try:
        root.mkdir(parents=True, exist_ok=True)
        if os.access(root, os.W_OK):
            return root
    except OSError:
        pass  # a read-only home: compiled code then lives as long as the temporary folder does
    return Path(tempfile.gettempdir()) / f"theory-{os.getuid()}"


@functools.cache
def cache_folder(region: str = "") -> Path:
    """Where compiled code of this state of the source is stored; older states are pruned."""
    root = _cache_root() / "compiled"
    folder = root / (source_digest(region) + (f"-{region}" if region else ""))
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    states = sorted((p for p in root.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True)
    for stale in states[KEPT_VERSIONS:]:
        shutil.rmtree(stale, ignore_errors=True)
    return folder


def _mentions_foreign(value: object) -> bool:
    """Whether a Numba type or signature contains a class that was implemented outside the package."""
    if isinstance(value, (tuple, list)):
        return any(_mentions_foreign(part) for part in value)
    if isinstance(value, types.Type):
        if getattr(value, "instance_class", None) in _foreign:
            return True
        if isinstance(value, cast(Any, types).CPointer):
            return _mentions_foreign(value.dtype)
        return any(_mentions_foreign(part) for part in getattr(value, "types", ()))
    return False


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that several processes write to."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held: contextlib.AbstractContextManager = contextlib.nullcontext()
        except OSError:  # some file systems of clusters have no locks
            held = _made(folder / "lock.held")
        with held:
            yield


@contextlib.contextmanager
def _made(path: Path, patience: float = 30.0) -> Iterator[None]:
    """The same by a folder that one process alone can make.

    To store takes milliseconds; whoever is seen to hold it for longer than ``patience`` seconds was killed.
    """
    holder, since = None, time.monotonic()
    while True:
        try:
            path.mkdir()
            break
        except FileExistsError:
            with contextlib.suppress(OSError):  # it may be gone by now
                stat = path.stat()
                if holder != (stat.st_ino, stat.st_mtime_ns):
                    holder, since = (stat.st_ino, stat.st_mtime_ns), time.monotonic()
                elif time.monotonic() - since > patience:
                    path.rmdir()
            time.sleep(0.01)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.rmdir()


SHARED_PIECES = "what all methods share"
CONTAINERS = tuple(f"{__package__}.{part}" for part in ("methods.", "compressors.base", "problems.matrix"))


def _piece(signature) -> str:
    """Whose kernel has this signature: the class of its first argument, or of what that points to, its first field."""
    first = signature[0] if isinstance(signature, (tuple, list)) and signature else None
    if isinstance(first, cast(Any, types).CPointer):
        first = next(iter(getattr(first.dtype, "types", ())), None)
    cls = getattr(first, "instance_class", None)
    return SHARED_PIECES if cls is None or cls.__module__.startswith(CONTAINERS) else cls.__name__


def _tell_who_watches(what: str, folder: Path, stored: bool) -> None:
    """One line, where somebody sits at a terminal or a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    watched = sys.stderr is not None and (sys.stderr.isatty() or shell is not None)
    if watched and os.environ.get("THEORY_PROGRESS") != "0" and "PYTEST_CURRENT_TEST" not in os.environ:
        later = f"next time it is loaded from {folder}" if stored else "not stored, as it is not the package's own"
        print(f"theory: compiling {what} (some seconds; {later})", file=sys.stderr, flush=True)


_teller: list[Callable[[str, Path, bool], object]] = [_tell_who_watches]
_told: set[str] = set()


def when_compiling(tell: Callable[[str, Path, bool], object] | None) -> None:
    """Have ``tell(what, folder, stored)`` called when a kernel is not found in the cache; None: nobody is told.

    ``what`` is a compressor, a problem or what is common; each is told once.  By default there is a line on standard
    error where that is a terminal, or in a notebook.
    """
    _teller[:] = [] if tell is None else [tell]


class _Cache(FunctionCache):
    """Numba's cache on disk, but for signatures whose callees it could not tell apart."""

    def load_overload(self, sig, target_context):
        foreign = _mentions_foreign(sig)
        found = None if foreign else super().load_overload(sig, target_context)
        if found is None and _teller and (what := _piece(sig)) not in _told:
            _told.add(what)
            _teller[0](what, _cache_root(), not foreign)
        return found

    def save_overload(self, sig, data):
        if not _mentions_foreign(sig):
            with _alone(Path(self.cache_path)):  # two processes that store at once would mix up Numba's index
                super().save_overload(sig, data)


class _CalleeCache(_Cache):
    """The same for kernels as kernels call them, which are stored beside the others."""

    _impl_class = CalleeImpl

    def _index_key(self, sig, codegen):
        return (*super()._index_key(sig, codegen), "callee")


def kernel(function: F, **options) -> F:
    """Compile with Numba, without the interpreter lock, and store the machine code on disk (if it is the package's)."""
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    region = _region(function)
    if region is None:
        return dispatcher
    dispatcher._cache = _stored(_Cache, function, region)

    def called():
        callee = callee_of(dispatcher)
        callee._cache = _stored(_CalleeCache, function, region)
        return callee

    stand_in(dispatcher, called)
    return dispatcher


def _stored(kind, function, region: str):
    """A cache for a function, in the package's folder."""
    saved = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder(region))  # read once, here; other packages keep their own folder
    try:
        return kind(function)
    finally:
        numba.config.CACHE_DIR = saved


def inlined(dispatcher: F) -> F:
    """Have LLVM copy a kernel into its callers, whatever its size; used above ``@kernel``.

    A call that is not inlined counts references to every array in its arguments, atomically: for a problem of five
    arrays that doubles the time of a sparse step.  Worth it for what runs once a row or once an entry.
    """
    cast(Any, dispatcher).targetoptions["forceinline"] = True
    return dispatcher


def borrowing(dispatcher: F) -> F:
    """As :func:`inlined`, for a kernel that neither makes nor returns nor keeps an array: references are not counted.

    Where there are branches the counting survives the copying; to read a few bits took ten times as long.
    """
    cast(Any, dispatcher).targetoptions["_nrt"] = False
    return inlined(dispatcher)


# --- generic functions ----------------------------------------------------------------------------------------------


class GenericFunction(Protocol):
    """What :func:`generic` makes: a function that dispatches on the class of its first argument."""

    __name__: str
    table: dict[type, Any]

    def __call__(self, setting: Any, /, *arguments: Any) -> Any:
        """Run the implementation for the class of ``setting``."""

    def register(self, *classes: type) -> Callable[[F], F]:
        """Decorate an implementation for these classes."""

    def in_python(self, *classes: type) -> Callable[[F], F]:
        """Decorate an implementation that is never compiled."""

    def implements(self, cls: type) -> bool:
        """Whether there is an implementation for this class."""


def generic(
    name: str, doc: str, default: Callable[..., Any] | None = None, *, inline: bool = True, interpreted: bool = False
) -> GenericFunction:
    """Make a generic function.

    Parameters
    ----------
    name : str
    doc : str
        Its contract: arguments, shapes and what it returns.
    default : function, optional
        Runs for classes without an implementation of their own.
    inline : bool
        Whether every kernel that calls it gets a copy, as with :func:`inlined`.  False for what is long and runs once
        a message: LLVM optimizes each copy again, at every level of the calls, and that is what a first run waits for.
    interpreted : bool
        Whether Python interprets the implementation where it is called from Python: for a few sums, which would take
        longer to compile.

    Returns
    -------
    function
        Dispatches on the class of its first argument.  ``.register(cls)`` is a decorator that adds an implementation,
        ``.in_python(cls)`` one that is never compiled, for classes that kernels do not see;
        ``.table`` maps classes to compiled implementations; ``.implements(cls)`` tells whether one exists.
    """
    table: dict[Any, Any] = {}
    home = _region_of(sys._getframe(1).f_code.co_filename)  # a leaf's generic is called by that leaf's kernels alone
    fallback: Any = kernel(default) if default is not None else None

    def call(setting, *arguments):
        implementation = table.get(type(setting), fallback)
        if implementation is None:
            known = ", ".join(sorted(cls.__name__ for cls in table)) or "none"
            raise TypeError(
                f"{name}: no implementation for {type(setting).__name__} (known: {known}); "
                f"write one and decorate it with @{name}.register({type(setting).__name__})"
            )
        return (implementation.py_func if interpreted else implementation)(setting, *arguments)

    def typed(setting, *arguments):
        # Numba compiles the plain function once for each signature and process; the caller is what is stored.
        implementation = table.get(getattr(setting, "instance_class", None), fallback)
        return implementation and implementation.py_func

    def register(*classes):
        def decorate(function):
            implementation, here = kernel(function), _region(function)
            for cls in classes:
                if here is None or here not in ("", home):
                    _foreign.add(cls)
                table[cls] = implementation
            return implementation

        return decorate

    def in_python(*classes):
        def decorate(function):
            function.py_func = function
            table.update(dict.fromkeys(classes, function))
            return function

        return decorate

    made = cast(Any, call)  # a function with attributes
    made.in_python = in_python
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    made.register, made.table = register, table
    made.implements = lambda cls: cls in table or fallback is not None
    overload(call, strict=False, jit_options={"error_model": "numpy", "forceinline": inline} | OPTIONS)(typed)
    return made
