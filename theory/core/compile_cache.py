"""Kernels: functions compiled with Numba, and the folder on disk that stores their machine code.

Numba notices only changes in the file of the function that it stores, not in what that function calls.  So the folder
is named after a digest of the source.  The packages that only use kernels (``LEAVES``) are left out of it, unless the
kernel is in one of them, so that work on a figure does not compile everything again.  A function that was compiled for
a type with an implementation from outside the package (a notebook's, say) is never stored.
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
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.core.caching import FunctionCache

from .callee import CalleeImpl, callee_of, stand_in
from .compile_bar import CompileBar

__all__ = ["cache_folder", "external", "force_inline", "kernel", "no_refcount", "source_digest", "when_compiling"]

PACKAGE = Path(__file__).resolve().parents[1]
NAME = __name__.partition(".")[0]
LEAVES = frozenset(
    {"data", "bounds", "measure", "claims", "plots", "studies", "experiment"}
)  # no other package's kernels call these
SHARED = ("claims/mutants", "bounds/lloyd_max.py")  # in a leaf, but compiled into kernels of the core
KEPT_VERSIONS = 24  # number of folders kept on disk: for each state of the source, the core and a leaf or two

F = TypeVar("F", bound=Callable[..., Any])  # a compiled function keeps its type signature for the type checker

external: set[type] = set()  # classes with an implementation from outside the package


@functools.cache
def region_of_file(source: str | None) -> str | None:
    """The region of a file: "" for the core, the name of a leaf, or None outside the package."""
    try:
        inside = Path(source).resolve().relative_to(PACKAGE) if source else None
    except ValueError:
        inside = None
    if inside is None:
        return None
    return inside.parts[0] if inside.parts[0] in LEAVES and not inside.as_posix().startswith(SHARED) else ""


def region_of(function: Callable[..., Any]) -> str | None:
    """The region of the file in which a function is defined."""
    try:
        return region_of_file(inspect.getsourcefile(function))
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


def cache_root() -> Path:
    """The user's cache folder (``THEORY_CACHE`` overrides it), or a temporary one if that is not writable."""
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
        pass  # read-only home: compiled code lasts as long as the temporary folder
    return Path(tempfile.gettempdir()) / f"theory-{os.getuid()}"


@functools.cache
def cache_folder(region: str = "") -> Path:
    """Folder for the compiled code of this state of the source; older states are pruned."""
    root = cache_root() / "compiled"
    folder = root / (source_digest(region) + (f"-{region}" if region else ""))
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    states = sorted((p for p in root.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True)
    for stale in states[KEPT_VERSIONS:]:
        shutil.rmtree(stale, ignore_errors=True)
    return folder


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


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that several processes write to."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            exclusive: contextlib.AbstractContextManager = contextlib.nullcontext()
        except OSError:  # some cluster file systems have no locks
            exclusive = _lock_folder(folder / "lock.folder")
        with exclusive:
            yield


@contextlib.contextmanager
def _lock_folder(path: Path, patience: float = 30.0) -> Iterator[None]:
    """Fallback lock: an atomic mkdir.  A lock older than ``patience`` seconds is stale and is broken."""
    holder, since = None, time.monotonic()
    while True:
        try:
            path.mkdir()
            break
        except FileExistsError:
            with contextlib.suppress(OSError):  # it may be gone already
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
CONTAINERS = tuple(f"{NAME}.{part}" for part in ("methods.", "compressors.base", "problems.matrix"))


def _piece(signature) -> str:
    """Whose kernel has this signature: class of the first argument, or of its first field if that is a pointer."""
    first = signature[0] if isinstance(signature, (tuple, list)) and signature else None
    if isinstance(first, cast(Any, types).CPointer):
        first = next(iter(getattr(first.dtype, "types", ())), None)
    cls = getattr(first, "instance_class", None)
    return SHARED_PIECES if cls is None or cls.__module__.startswith(CONTAINERS) else cls.__name__


def _tell_who_watches(what: str, folder: Path, stored: bool) -> None:
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
_teller: list[Callable[[str, Path, bool], object]] = [_tell_who_watches]
_told: set[str] = set()


def when_compiling(tell: Callable[[str, Path, bool], object] | None) -> None:
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


class _Cache(FunctionCache):
    """Numba's disk cache, except for signatures whose callees it cannot tell apart."""

    def load_overload(self, sig, target_context):
        is_external = _mentions_external(sig)
        found = None if is_external else super().load_overload(sig, target_context)
        if found is None and _teller and (what := _piece(sig)) not in _told:
            _told.add(what)
            _teller[0](what, cache_root(), not is_external)
        if found is None and _bars:
            _bars[0].kernel()
        return found

    def save_overload(self, sig, data):
        if not _mentions_external(sig):
            with _alone(Path(self.cache_path)):  # concurrent writes would corrupt Numba's index
                super().save_overload(sig, data)


class _CalleeCache(_Cache):
    """Disk cache of callees, stored beside the other kernels."""

    _impl_class = CalleeImpl

    def _index_key(self, sig, codegen):
        return (*super()._index_key(sig, codegen), "callee")


class _Later:
    """A kernel's disk cache, made when it is first used: most of the 800 kernels are not, and looking up is slow."""

    def __init__(self, dispatcher, make):
        self._dispatcher, self._make = dispatcher, make

    def __getattr__(self, name):
        cache = self._dispatcher._cache = self._make()
        return getattr(cache, name)


def kernel(function: F, **options) -> F:
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
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    region = region_of(function)
    if region is None:
        return dispatcher
    dispatcher._cache = _Later(dispatcher, lambda: _stored(_Cache, function, region))

    def called():
        callee = callee_of(dispatcher)
        callee._cache = _stored(_CalleeCache, function, region)
        return callee

    stand_in(dispatcher, called)
    return dispatcher


def _stored(kind, function, region: str):
    """The disk cache of a function, in the package's folder."""
    saved = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder(region))  # read only here; other packages keep their own folder
    try:
        return kind(function)
    finally:
        numba.config.CACHE_DIR = saved


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
