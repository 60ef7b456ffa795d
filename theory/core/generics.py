"""Generic functions: one name, one implementation per NamedTuple type, callable from Python and from ``@njit``.

A setting (a compressor, a step size, a problem) is a ``NamedTuple``.  A *generic* looks at the class of its first
argument and runs the implementation that this class has in its body, under the generic's name.  Inside compiled code
the same lookup happens once, at compile time, so that it costs nothing there.

>>> from typing import NamedTuple
>>> apply = generic("apply", "apply(c, x): what the setting c does to the number x.")
>>> @registers
... class Halve(NamedTuple):
...     times: int
...     def apply(c, x):
...         return x / 2.0**c.times
>>> apply(Halve(3), 8.0)
1.0
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from numba.extending import overload

from .callee import OPTIONS
from .compile_cache import F, external, kernel, region_of, region_of_file

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

__all__ = ["GenericFunction", "generic", "question", "registers"]

T = TypeVar("T")
Class = TypeVar("Class", bound=type)

Register = Callable[[type, Callable[..., Any]], object]
GENERICS: dict[str, Register] = {}  # by name: how a class registers its own
_waiting: dict[str, list[tuple[type, Callable[..., Any]]]] = {}  # functions of classes that stand before the generic


def _known(name: str, register: Register) -> None:
    """From now on class bodies register with this generic; those that came before it do so now."""
    GENERICS[name] = register
    for cls, function in _waiting.pop(name, ()):
        register(cls, function)


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
        Whether every kernel that calls it gets a copy, as with :func:`force_inline`.  False for what is long and runs
        once a message: LLVM optimizes each copy again, at every level of the calls, what a first run waits for.
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
    home = region_of_file(sys._getframe(1).f_code.co_filename)  # only a leaf's own kernels call its generics
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
            implementation, here = kernel(function), region_of(function)
            for cls in classes:
                if here is None or here not in ("", home):
                    external.add(cls)
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
    _known(name, lambda cls, function: register(cls)(function))
    made.implements = lambda cls: cls in table or fallback is not None
    overload(call, strict=False, jit_options={"error_model": "numpy", "forceinline": inline} | OPTIONS)(typed)
    return made


def question(function: Callable[..., T]) -> _SingleDispatchCallable[T]:
    """Decorator: a generic that Python alone asks; the function answers for classes without an answer of their own."""
    made = singledispatch(function)
    _known(function.__name__, lambda cls, own: made.register(cls)(own))
    return made


def registers(cls: Class) -> Class:
    """Class decorator: a function in the body that is named like a generic is its implementation for this class.

    Its first parameter is the setting and must not be called ``self``, which is for methods.  :func:`setting` does the
    same.
    """
    for name, function in list(vars(cls).items()):
        own = inspect.isfunction(function) and not name.startswith("_")
        if own and next(iter(inspect.signature(function).parameters), "self") != "self":
            if name in GENERICS:
                GENERICS[name](cls, function)
            else:
                _waiting.setdefault(name, []).append((cls, function))
    return cls
