"""Stored machine code: a file for each kernel, signature and state of the source that it was compiled from.

Numba notices only changes in the file of the function that it stores, not in the functions that it calls.  So a file
contains the digest of everything that the kernel was compiled from (`fingerprints`): it is used if the digest is the
same in this process, whatever else has changed.  Code that was compiled with an implementation from outside the
package, for example in a notebook, is never stored.
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
from typing import Any, cast

import llvmlite
import numba
import numpy as np
from numba import types

from . import inlined_kernels
from .compiling import tell
from .fingerprints import NAME, Node, code_text, file_of, generics, name_of, node, reached, state_of
from .inlined_kernels import choices_of
from .numba_private import NullCache, config, dumps, llvm, runtime
from .private_files import cache_root, read, say_once, unsafe, write

FORMAT = 2  # of a file
DAY = 86_400.0
MOST_DAYS, MOST_BYTES, MOST_STATES = 60.0, 2**30, 8  # how long and how much is stored; states of one kernel's source
NUMBA_OPTIONS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "LLVM_REFPRUNE_PASS")

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
    """Digest of what else determines compiled code: versions, processor, options, and how this package compiles."""
    here = vars(inlined_kernels)
    functions = [value for value in here.values() if getattr(value, "__module__", "") == here["__name__"]]
    functions += [value for cls in functions if isinstance(cls, type) for value in vars(cls).values()]
    how = [code_text(function.__code__) for function in functions if hasattr(function, "__code__")]
    versions = FORMAT, sys.version, numba.__version__, llvmlite.__version__, np.__version__
    options = [(name, getattr(config, name, None)) for name in NUMBA_OPTIONS]
    return hashlib.sha256(repr((versions, codegen.magic_tuple(), options, how)).encode()).hexdigest()[:16]


def _roots(function: Callable[..., Any], classes: Iterable[type], choices: Iterable[tuple[str, str]]) -> list[Any]:
    """A kernel, the classes in its signature, and the current implementations of generics; None where there is none."""
    chosen = [generics[name].choose(cls) if name in generics else None for name, cls in choices]
    return [function, *classes, *chosen]


class Stored(NullCache):
    """Numba's interface to the stored code of a kernel: a file for each signature and each state of the source."""

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
        """Find the machine code for a signature, or None.

        Only for a kernel that is not found does Numba import all that it can compile, which takes a fifth of a second
        and 20 MB.
        """
        runtime.initialize(target_context)  # the functions that stored code calls
        is_external = _mentions_external(signature)
        found = None if is_external else self._load(signature, target_context)
        if found is None:
            target_context.refresh()
            tell(signature, cache_root(), not is_external)
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
            if stored is None or stored[0].get("of") != [folder.name, key]:  # a file that was renamed
                continue
            choices = [tuple(choice) for choice in stored[0]["choices"]]
            roots = _roots(self._dispatcher.py_func, _classes(signature), choices)
            if None in roots or state_of(found := reached(roots)) != stored[0]["state"]:
                continue
            if state_of(reached(roots, node.__wrapped__)) != stored[0]["state"]:  # a constant was assigned since then
                continue
            if not _known(stored[0]["symbols"]):  # LLVM would end the process
                target_context.refresh()
                if not _known(stored[0]["symbols"]):
                    continue
            try:
                result = self._rebuild(target_context, pickle.loads(stored[1]))
            except Exception as error:  # of the versions named in the folder, but it cannot be loaded
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
        changed = state != state_of(reached(roots, node.__wrapped__))  # a constant was assigned after it was read
        if place is None or state is None or changed or foreign or dynamic or _mentions_external(signature):
            return
        folder, key = place
        if _unusable(folder):
            return
        content = dumps(result._replace(type_annotation="")._reduce())
        header = {
            "of": [folder.name, key],
            "choices": sorted(choices),
            "state": state,
            "symbols": _symbols(result.library),
        }
        if write(folder / f"{key}-{state}", header, content):
            _prune(folder, key)


def _known(symbols: list[str]) -> bool:
    return all(map(llvm.address_of_symbol, symbols))


def _symbols(library: Any) -> list[str]:
    """Functions and variables of the process that machine code refers to."""
    module = library._final_module
    every = [one for one in (*module.functions, *module.global_variables) if one.is_declaration]
    return sorted(one.name for one in every if not one.name.startswith("llvm."))


def _note(found: dict[Any, Node]) -> None:
    _files.update(node.file for node in found.values() if node.file is not None)


@functools.cache
def _unusable(folder: Path) -> bool:
    """Whether a folder of stored code cannot be trusted; if so, this is reported."""
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
    """Remove old states of a kernel; once a day also files long unused, and the oldest ones above the size limit."""
    with contextlib.suppress(OSError):
        states = sorted(folder.glob(f"{key}-*"), key=lambda path: path.stat().st_mtime)
        for path in states[:-MOST_STATES]:
            path.unlink(missing_ok=True)
    root = folder.parents[1]
    stamp = root / "pruned"
    with contextlib.suppress(OSError):
        if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY:
            return
        stamp.touch()
        prune(root)


def prune(root: Path, days: float = MOST_DAYS, size: int = MOST_BYTES) -> None:
    """Remove files below a folder that were unused for so many days, and the oldest ones above a total size."""
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
