"""Digests of values and of a user's code, by which two runs are recognized as the same."""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import numpy as np

from .fingerprints import PACKAGE
from .private_files import map_of

# in a run's description the package's own code has a separate digest, and libraries have versions
LIBRARIES = (PACKAGE, *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")))
INSTALLED = {"site-packages", "dist-packages"}
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice, np.generic, np.dtype, enum.Enum)
MEMBERS = (*PLAIN, tuple, list, dict, np.ndarray, types.FunctionType, staticmethod, classmethod, property)


@functools.cache
def _is_own(file: str) -> bool:
    """Whether a file is neither of the package nor of a library."""
    path = Path(file).resolve()
    return not INSTALLED & set(path.parts) and not any(path.is_relative_to(folder) for folder in LIBRARIES)


class _Digest:
    """Collects values; a user's functions are identified by code, defaults and plain numbers in closures.

    With ``deep``, also by everything else in closures, the globals that they name, and the contents of the user's
    objects and classes.
    """

    def __init__(self, deep: bool) -> None:
        self.sha = hashlib.sha256()
        self.unknown: list[str] = []
        self._deep = deep
        self._seen: dict[int, Any] = {}  # functions and classes, which may name each other
        self._numbers: dict[int, tuple[int, Any]] = {}  # dicts and lists that were taken in

    def feed(self, value: Any, where: str = "the value") -> None:
        """Add a value; ``where`` is the name under which it is listed if it cannot be compared."""
        update = self.sha.update
        value = getattr(value, "py_func", value)
        if isinstance(value, tuple):
            update(f"{type(value).__module__}.{type(value).__qualname__}({len(value)}".encode())
            if self._deep and _is_own_class(type(value)):  # a setting of the user: its behaviour is in its class
                self.feed(type(value), where)
            for name, part in zip(getattr(value, "_fields", [where] * len(value)), value, strict=True):
                self.feed(part, name)
            update(b")")
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            update(f"array {value.dtype.str} {value.shape}".encode())
            known = map_of(value)
            if known is not None:  # of a checked file: it need not be read
                update(f"mapped {known.checksum}".encode())
            elif value.size:
                update(np.ascontiguousarray(value).view(np.uint8).data)
        elif isinstance(value, (dict, list)):
            self._inside(value, where)
        elif isinstance(value, (set, frozenset)):
            update(f"set {self._sorted(value, where)}".encode())
        elif isinstance(value, PLAIN):
            update(f"{type(value).__name__} {value!r};".encode())
        elif isinstance(value, types.ModuleType):
            update(f"module {value.__name__};".encode())
        elif isinstance(value, types.MethodType):
            self.feed((value.__func__, value.__self__), where)
        elif isinstance(value, functools.partial):
            self.feed((value.func, value.args, value.keywords), where)
        elif isinstance(value, (types.FunctionType, type)):
            self._named(value, where)
        elif isinstance(value, (types.BuiltinFunctionType, np.ufunc)) or _is_generic(value):
            update(f"function {getattr(value, '__module__', '')}.{value.__name__};".encode())
            bound = getattr(value, "__self__", None)
            if bound is not None and not isinstance(bound, types.ModuleType):
                self.feed(bound, where)
        elif self._deep and hasattr(value, "__dict__") and _is_own_class(type(value)):
            self.feed(type(value), where)
            self._inside(vars(value), where)
        else:
            update(f"{type(value).__module__}.{type(value).__qualname__};".encode())
            self.unknown.append(f"{where} ({type(value).__name__})")

    def _inside(self, value: Any, where: str) -> None:
        """Add a dict or a list, which may contain itself."""
        if id(value) in self._numbers:
            self.sha.update(f"number {self._numbers[id(value)][0]};".encode())
            return
        self._numbers[id(value)] = len(self._numbers), value
        self.sha.update(f"{type(value).__name__}({len(value)}".encode() if isinstance(value, list) else b"{")
        for part in self._sorted(value, where) if isinstance(value, dict) else value:
            self.feed(part, where)
            if isinstance(value, dict):
                self.feed(value[part], str(part))
        self.sha.update(b")" if isinstance(value, list) else b"}")
        if not self._deep:  # only a container that contains itself is abbreviated
            del self._numbers[id(value)]

    def _sorted(self, values: Any, where: str) -> list:
        """Keys of a dict or members of a set, in an order that is the same in every process."""
        listed = sorted(values, key=repr)
        if self._deep and any(" at 0x" in repr(value) for value in listed):
            self.unknown.append(f"{where} (keys without an order)")
        return listed

    def _named(self, thing: Any, where: str) -> None:
        self.sha.update(f"{type(thing).__name__} {thing.__module__}.{thing.__qualname__};".encode())
        if id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing
        if isinstance(thing, type):
            for cls in thing.__mro__ if self._deep else ():
                for name, value in vars(cls).items() if _is_own_class(cls) else ():
                    if isinstance(value, MEMBERS) and (name[:2] != "__" or isinstance(value, types.FunctionType)):
                        self.feed(getattr(value, "__func__", getattr(value, "fget", value)), name)
            return
        names = self._code(thing.__code__)
        self.feed((thing.__defaults__, thing.__kwdefaults__), where)
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            try:
                inside = cell.cell_contents
            except ValueError:  # not filled yet
                inside = None
            plain = isinstance(inside, (tuple, np.ndarray, *PLAIN))
            self.feed(inside if self._deep or plain else type(inside).__name__, name)
        if not self._deep or not _is_own(thing.__code__.co_filename):
            return
        for name in _globals(thing.__code__):
            if name in thing.__globals__:
                value = thing.__globals__[name]
                self.feed(value, name)
                if isinstance(value, types.ModuleType) and _is_own(getattr(value, "__file__", None) or __file__):
                    for inner in names:  # what the code may take from a module of the user
                        if inner in vars(value):
                            self.feed(vars(value)[inner], f"{name}.{inner}")

    def _code(self, code: types.CodeType) -> list[str]:
        """Add a code object; return the names in it and in those inside it."""
        names = list(code.co_names)
        self.sha.update(code.co_code + " ".join(code.co_names).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                names += self._code(constant)
            else:
                members = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant  # in any order
                self.sha.update(repr(members).encode())
        return list(dict.fromkeys(names))


def _globals(code: types.CodeType) -> list[str]:
    """The globals that a code object and those inside it name."""
    own = [one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inner = (name for value in code.co_consts if isinstance(value, types.CodeType) for name in _globals(value))
    return list(dict.fromkeys([*own, *inner]))


def _is_generic(value: Any) -> bool:
    return callable(value) and hasattr(value, "table") and hasattr(value, "__name__")


def _is_own_class(cls: type) -> bool:
    return cls.__module__ != "builtins" and _is_own(
        getattr(sys.modules.get(cls.__module__), "__file__", None) or "<cell>"
    )


def deep_digest(value: object) -> tuple[str, list[str]]:
    """A digest of all that a user's functions and classes name, and the names of objects that cannot be compared."""
    made = _Digest(deep=True)
    try:
        made.feed(value)
    except RecursionError:
        made.unknown.append("a structure that is too deep")
    return made.sha.hexdigest()[:32], made.unknown


def digest(value: object) -> str:
    """Type-sensitive digest of a value made of numbers, strings, arrays, tuples, dicts and functions.

    It does not cover what functions name besides plain numbers: these objects may differ between the ranks of a run.

    >>> digest((1, 2.0)) == digest((1, 2))
    False
    """
    made = _Digest(deep=False)
    made.feed(value)
    return made.sha.hexdigest()[:32]
