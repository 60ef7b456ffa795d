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

from .compile_cache import F, external, kernel
from .fingerprints import file_of, generics, name_of
from .inlined_kernels import OPTIONS

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")
Class = TypeVar("Class", bound=type)

Register = Callable[[type, Callable[..., Any]], object]
GENERICS: dict[str, Register] = {}  # generics by name, for `registers`
_waiting: dict[str, list[tuple[type, Callable[..., Any]]]] = {}  # functions of classes that stand before the generic


def _known(name: str, register: Register) -> None:
    """Register class bodies with this generic from now on, and those that were defined before it now."""
    GENERICS[name] = register
    for cls, function in _waiting.pop(name, ()):
        register(cls, function)


class GenericFunction(Protocol):
    """Type of a generic: a function that dispatches on the class of its first argument."""

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
    name: str,
    doc: str,
    default: Callable[..., Any] | None = None,
    *,
    inline: bool = True,
    interpreted: bool = False,
    counted: bool = True,
) -> GenericFunction:
    """Make a generic function.

    Parameters
    ----------
    name : str
        What the function is called, and what functions in class bodies are called that implement it.
    doc : str
        Its contract: arguments, shapes and what it returns.
    default : function, optional
        Runs for classes without an implementation of their own.
    inline : bool
        Whether it is inlined into every kernel that calls it, as with :func:`force_inline`.  False for long code that
        runs once per message: LLVM optimizes each copy again at every call level, which slows down the first run.
    interpreted : bool
        Whether calls from Python run the implementation uncompiled: for short sums that take longer to compile than to
        run.
    counted : bool
        False if it neither creates, stores nor returns an array: it is then compiled without reference counts, as with
        :func:`uncounted`.

    Returns
    -------
    function
        Dispatches on the class of its first argument.  ``.register(cls)`` is a decorator that adds an implementation,
        ``.in_python(cls)`` one that is never compiled, for classes that kernels never take;
        ``.table`` maps classes to compiled implementations; ``.implements(cls)`` tells whether one exists.

    Examples
    --------
    >>> double = generic("double", "double(x) -> int: twice x.", lambda x: 2 * x)
    >>> double(4)
    8
    """
    table: dict[Any, Any] = {}
    by_name: dict[str, Any] = {}  # the same table; stored code knows classes by name
    fallback: Any = kernel(default) if default is not None else None

    def call(setting: Any, *arguments: Any) -> Any:
        implementation = table.get(type(setting), fallback)
        if implementation is None:
            known = ", ".join(sorted(cls.__name__ for cls in table)) or "none"
            raise TypeError(
                f"{name}: no implementation for {type(setting).__name__} (known: {known}); "
                f"write a function {name} in the body of {type(setting).__name__}, below @setting"
            )
        return (implementation.py_func if interpreted else implementation)(setting, *arguments)

    def typed(setting, *arguments):  # type: ignore[no-untyped-def]  # Numba compares signatures, with annotations
        # Numba compiles the plain function once per signature and process; only the caller is stored.
        implementation = table.get(getattr(setting, "instance_class", None), fallback)
        return implementation and implementation.py_func

    def register(*classes: type) -> Callable[[F], F]:
        def decorate(function: F) -> F:
            implementation = kernel(function)
            if file_of(function.__code__.co_filename) is None:
                external.update(classes)
            for cls in classes:
                table[cls] = by_name[name_of(cls)] = implementation
            return implementation

        return decorate

    def in_python(*classes: type) -> Callable[[Any], Any]:
        def decorate(function: Any) -> Any:
            function.py_func = function
            table.update(dict.fromkeys(classes, function))
            by_name.update(dict.fromkeys(map(name_of, classes), function))
            return function

        return decorate

    made = cast(Any, call)  # a function with attributes
    made.in_python = in_python
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    made.register, made.table = register, table
    _known(name, lambda cls, function: register(cls)(function))
    made.implements = lambda cls: cls in table or fallback is not None
    options = {"error_model": "numpy", "forceinline": inline} | OPTIONS
    if not inline:  # else a caller without reference counts would pass this on to code that allocates arrays
        options["_nrt"] = True
    if not counted:
        options["_nrt"] = False
    overload(call, strict=False, jit_options=options)(typed)
    made.options = sorted((name, str(value)) for name, value in options.items())
    made.identity = f"{sys._getframe(1).f_globals.get('__name__')}:{name}"
    made.choose = lambda cls: by_name.get(cls, fallback)
    generics[made.identity] = made
    return made


def python_generic(function: Callable[..., T]) -> _SingleDispatchCallable[T]:
    """Decorator: a generic called only from Python; the function is the default implementation.

    Parameters
    ----------
    function : callable
        Its first parameter is the setting.

    Returns
    -------
    callable
        ``functools.singledispatch`` of it, with which class bodies register as with :func:`generic`.

    Examples
    --------
    >>> @python_generic
    ... def price(thing) -> float:
    ...     return 1.0
    >>> price("anything")
    1.0
    """
    made = singledispatch(function)
    _known(function.__name__, lambda cls, own: made.register(cls)(own))
    return made


def registers(cls: Class) -> Class:
    """Class decorator: a function in the body that is named like a generic is its implementation for this class.

    Its first parameter is the setting and must not be called ``self``, which marks methods.  :func:`setting` also
    registers such functions.

    Parameters
    ----------
    cls : type
        A NamedTuple.

    Returns
    -------
    type
        The same class.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> width = generic("width", "width(c) -> int: how wide it is.")
    >>> @registers
    ... class Box(NamedTuple):
    ...     side: int
    ...     def width(c):
    ...         return c.side
    >>> width(Box(3))
    3
    """
    for name, function in list(vars(cls).items()):
        own = inspect.isfunction(function) and not name.startswith("_")
        if own and next(iter(inspect.signature(function).parameters), "self") != "self":
            if name in GENERICS:
                GENERICS[name](cls, function)
            else:
                _waiting.setdefault(name, []).append((cls, function))
    return cls


def inherits(*bodies: type) -> Callable[[Class], Class]:
    """Class decorator: add the functions in these bodies to this class's implementations of generics.

    A NamedTuple has no base classes; this decorator lets several share functions.  Definitions in the class itself, or
    in an earlier body, take precedence.

    Parameters
    ----------
    *bodies : type
        Classes that contain only functions named like generics.

    Returns
    -------
    callable
        Returns the class that it is given.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> area = generic("area", "area(c) -> int: how large it is.")
    >>> class Square:
    ...     def area(c):
    ...         return c.side * c.side
    >>> @inherits(Square)
    ... class Tile(NamedTuple):
    ...     side: int
    >>> area(Tile(3))
    9
    """

    def decorate(cls: Class) -> Class:
        for body in bodies:
            for name, function in vars(body).items():
                if not name.startswith("_") and name not in vars(cls):
                    setattr(cls, name, function)
                    GENERICS[name](cls, function)
        return cls

    return decorate
