"""The parts that a kernel in this process was compiled from: code, constants, defaults, closures, options, fields.

A function's code, defaults and closure name other kernels, intrinsics, classes and constants.  All of them that belong
to the package are compared, so that stored machine code runs only if it would be compiled from the same parts again.
Line numbers, comments and docstrings are not compared.

Which implementation a generic runs depends on types; these *choices* are recorded while compiling.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import sys
import types as python
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import types

from .numba_private import Dispatcher, Intrinsic

PACKAGE = Path(__file__).resolve().parents[1]
NAME = __name__.partition(".")[0]
LITERALS = (bool, int, float, complex, str, bytes, type(None), type(...))
generics: dict[str, Any] = {}  # by module and name; `generic` adds each


class Node(NamedTuple):
    """A function, kernel or class: its own content, the nodes that it names, and its file in the package.

    ``own`` is empty if it names an object of an unknown kind.
    """

    own: bytes
    others: tuple[Any, ...]
    file: str | None


@functools.cache
def file_of(source: str) -> str | None:
    """Path of a source file in the package, or None outside."""
    try:
        return Path(source).resolve().relative_to(PACKAGE).as_posix()
    except ValueError:
        return None


def name_of(thing: Any) -> str:
    """Module and name of a class or function."""
    return f"{thing.__module__}:{thing.__qualname__}"


def _is_inside_name(module: str) -> bool:
    return module == NAME or module.startswith(f"{NAME}.")


def _is_inside(thing: Any) -> bool:
    return _is_inside_name(getattr(thing, "__module__", None) or "")


HAS_DOCSTRING = 0x4000000  # of a code object's flags, from Python 3.14 on; before, the first constant of a function
SHAPING = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR  # Numba clears others under a profiler


def code_text(code: python.CodeType) -> str:
    """The parts of a code object that determine its behaviour, without positions, file names and docstrings."""
    constants = list(code.co_consts)
    if sys.version_info >= (3, 14):
        documented = bool(code.co_flags & HAS_DOCSTRING)
    else:  # code objects of comprehensions have no place for a docstring
        function = code.co_flags & inspect.CO_NEWLOCALS and not code.co_name.startswith("<")
        documented = bool(function) and isinstance(constants[0], str)
    if documented:
        constants[0] = None
    return repr(
        (
            code.co_code.hex(),
            [_constant(value) for value in constants],
            (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
            (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & SHAPING),
            getattr(code, "co_exceptiontable", b"").hex(),
        )
    )


def _constant(value: object) -> str:
    if isinstance(value, python.CodeType):
        return code_text(value)
    if isinstance(value, tuple):
        return f"({','.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_constant, value)))}}}"
    return repr(value)


def _names(code: python.CodeType) -> list[str]:
    """Names of globals and attributes in a code object and those inside it."""
    inner = (name for value in code.co_consts if isinstance(value, python.CodeType) for name in _names(value))
    return list(dict.fromkeys((*code.co_names, *inner)))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _Content:
    """Collects the text of a node, and the nodes that it names."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.known = True
        self.others: list[Any] = []

    def add(self, value: Any, names: Iterable[str] = ()) -> None:
        """Add a value; of a module of the package, add the values of these names."""
        say = self.text.append
        if isinstance(value, enum.Enum):
            say(f"{name_of(type(value))}.{value.name}")
            self.add(value.value)
        elif isinstance(value, LITERALS):
            say(f"{type(value).__name__} {value!r}")
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            say(f"{value.dtype.descr} {value.shape} {value.flags.f_contiguous} {_digest(value.tobytes())}")
        elif isinstance(value, np.generic):
            say(f"{value.dtype} {value.tobytes().hex()}")
        elif isinstance(value, (tuple, list, np.ndarray)):
            self._class(type(value))
            say(f"{len(value)}:")
            for part in value:
                self.add(part)
        elif isinstance(value, dict):
            say(f"dict {len(value)}:")
            for key, part in value.items():
                self.add(key)
                self.add(part)
        elif isinstance(value, (set, frozenset)):
            say(f"set {sorted(map(repr, value))}")
        elif isinstance(value, python.ModuleType):
            say(f"module {value.__name__}")
            if _is_inside_name(value.__name__):
                for name in names:
                    if name in vars(value):
                        say(name)
                        self.add(vars(value)[name], names)
        elif isinstance(value, functools.partial):
            self.add((value.func, value.args, value.keywords))
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, Intrinsic):
            self.add(value._defn)
        elif isinstance(value, (python.FunctionType, Dispatcher)):
            plain: Any = getattr(value, "py_func", value)
            if hasattr(plain, "identity"):
                say(f"generic {plain.identity} {plain.options}")
            elif file_of(plain.__code__.co_filename) is not None or _is_inside(plain):
                self._other(value)
            else:
                say(name_of(plain))
        elif isinstance(value, (range, slice)):
            say(repr(value))
        elif isinstance(value, python.MethodType):
            self.add((value.__func__, value.__self__))
        elif hasattr(value, "__wrapped__"):
            self.add(value.__wrapped__)
        elif isinstance(value, types.ExternalFunction):
            say(f"{value.symbol} {value.sig}")
        elif isinstance(value, (types.Type, np.dtype)) or type(value).__module__.startswith("llvmlite."):
            say(str(value))
        elif type(value).__module__ in ("typing", "numpy", "builtins"):  # type variables, NumPy's and C functions
            say(f"{type(value).__name__} {getattr(value, '__name__', '')}")
        else:
            self.known = False

    def _class(self, cls: type) -> None:
        if _is_inside(cls):
            self._other(cls)
        else:
            self.text.append(name_of(cls))

    def _other(self, thing: Any) -> None:
        if thing not in self.others:
            self.others.append(thing)
        self.text.append(f"#{self.others.index(thing)}")

    def function(self, function: python.FunctionType) -> None:
        """Add code, defaults, closure and the globals that the code names."""
        code = function.__code__
        names = _names(code)
        self.text += [name_of(function), code_text(code)]
        self.add((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            try:
                self.add(cell.cell_contents, names)
            except ValueError:  # not assigned yet
                self.text.append("empty")
        for name in names:
            if name in function.__globals__:
                self.text.append(name)
                self.add(function.__globals__[name], names)

    def class_(self, cls: type) -> None:
        """Add fields with types and defaults; of an enumeration add its members, of any other class its functions."""
        self.text += [name_of(cls), *(name_of(base) for base in cls.__mro__)]
        fields = getattr(cls, "_fields", None)
        if fields is not None:
            self.add((fields, {k: str(v) for k, v in cls.__dict__.get("__annotations__", {}).items()}))
            self.add(getattr(cls, "_field_defaults", {}))
        elif issubclass(cls, enum.Enum):
            self.add([(member.name, member.value) for member in cls])
        else:
            for name, value in vars(cls).items():
                if isinstance(value, python.FunctionType):
                    self.text.append(name)
                    self.add(value)


@functools.cache
def node(thing: Any) -> Node:
    """The node of a function, a kernel or a class."""
    content, file = _Content(), None
    if isinstance(thing, type):
        content.class_(thing)
        file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    elif isinstance(thing, Dispatcher):
        content.text.append(f"kernel {sorted(map(str, thing.targetoptions.items()))}")
        content._other(thing.py_func)
    else:
        content.function(thing)
        file = thing.__code__.co_filename
    own = hashlib.sha256("\n".join(content.text).encode()).digest() if content.known else b""
    return Node(own, tuple(content.others), file and file_of(file))


def reached(roots: Iterable[Any], look: Callable[[Any], Node] = node) -> dict[Any, Node]:
    """All nodes that can be reached from some functions, kernels and classes, in a fixed order."""
    found: dict[Any, Node] = {}
    ahead = list(roots)[::-1]
    while ahead:
        thing = ahead.pop()
        if thing not in found:
            found[thing] = look(thing)
            ahead += found[thing].others[::-1]
    return found


def state_of(found: dict[Any, Node]) -> str | None:
    """Digest of the nodes reached and of the references between them; None if something in them is unknown."""
    if not all(own for own, _, _ in found.values()):
        return None
    number = {thing: i for i, thing in enumerate(found)}
    digest = hashlib.sha256()
    for own, others, _ in found.values():
        digest.update(own + b"".join(number[other].to_bytes(4, "little") for other in others))
    return digest.hexdigest()[:32]
