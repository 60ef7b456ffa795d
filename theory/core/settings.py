"""Settings: NamedTuples that check their own domain and compare by type.

A plain ``NamedTuple`` has two traps.  ``TopK(10) == RandK(10)`` is true, and ``QSGD(2, 2)`` and ``QSGD(2, 2.0)`` are
two types for Numba, hence two compilations.  The decorator :func:`setting` fixes both: fields are converted to their
annotated type, equality and hash include the class, and ``domain`` rejects bad values at construction.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np

from .digests import digest
from .generics import registers

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

LONGEST = 1000  # characters of a value in an error
_CONVERT = {"int": int, "float": float, "bool": bool, "str": str}


def require(condition: object, name: str, got: object, allowed: str, error: type[Exception] = ValueError) -> None:
    """Raise an ``error`` that names the argument, its value and the allowed values, unless ``condition`` holds.

    Parameters
    ----------
    condition : object
        Whether the value is allowed.
    name : str
        Of the argument.
    got : object
        Its value, or what is wrong with it.
    allowed : str
        What would be allowed.
    error : type
        The exception that is raised.

    Examples
    --------
    >>> require(0 >= 1, "k", 0, "an integer from 1 to d")
    Traceback (most recent call last):
        ...
    ValueError: k: got 0, allowed: an integer from 1 to d
    """
    if not condition:
        raise error(f"{name}: got {shown(got)}, allowed: {allowed}")


def shown(value: object) -> str:
    """A value as an error shows it: its repr, shortened if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def is_whole(value: object) -> bool:
    """Whether a value is an integer of Python or NumPy; True and False are not integers."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _convert(name: str, hint: str, value: Any) -> Any:
    if hint.startswith("int | ") and not isinstance(value, tuple):  # a number, or a schedule of numbers
        hint = "int"
    convert = _CONVERT.get(hint)
    if convert is None or type(value) is convert:
        return value
    if hint == "bool":
        zero_or_one = is_whole(value) and value in (0, 1)
        require(zero_or_one or isinstance(value, np.bool_), name, value, "True or False")
    if hint == "int":
        integral = is_whole(value) or (isinstance(value, (float, np.floating)) and float(value).is_integer())
        require(integral, name, value, "an integer")
    if hint == "float":
        real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        within = not is_whole(value) or abs(value) <= sys.float_info.max  # NaN and infinity are floats
        require(real and within, name, value, "a number")
    if hint == "str":
        require(isinstance(value, str), name, value, "a string")
    return convert(value)


class SettingType(type):
    """The class of settings: `help` and completion show a setting's own attributes, and not the methods of a tuple."""

    def __dir__(cls) -> list[str]:
        hidden = set(dir(tuple)) - {"__doc__", "__module__"}
        hidden |= {"_asdict", "_make", "_field_defaults", "__annotations__", "__match_args__", "__orig_bases__"}
        return [name for name in super().__dir__() if name not in hidden]


def _spelled(klass: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as fields: a class may accept other ways to write them; unknown names are refused."""
    if hasattr(klass, "other_arguments") and not set(given) <= set(klass._fields):
        given = klass.other_arguments(dict(given))
    for name in given:
        if name not in klass._fields:
            near = difflib.get_close_matches(name, klass._fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(klass._fields) or 'none'}"
            raise TypeError(f"{klass.__name__}: got the argument {name!r}, {hint}")
    return given


def known_keywords(function: F) -> F:
    """Decorator: an unknown keyword is refused, and the error names the nearest known one.

    >>> @known_keywords
    ... def twice(*, number=1):
    ...     return 2 * number
    >>> twice(numbr=3)
    Traceback (most recent call last):
        ...
    TypeError: twice: got the argument 'numbr', did you mean number?
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_keywords(function.__name__, kwargs, function)
        return function(*args, **kwargs)

    return cast(F, call)


def check_keywords(called: str, given: dict[str, Any], *functions: Callable[..., Any]) -> None:
    """Refuse keywords that none of these functions has; the error names the nearest known one."""
    several = [p for function in functions for p in inspect.signature(function).parameters.values()]
    names = tuple(p.name for p in several if p.kind is not p.VAR_KEYWORD)
    _spelled(SimpleNamespace(__name__=called, _fields=names), given)


def wants_two(function: Callable) -> bool:
    """Whether a function requires two arguments.

    >>> wants_two(lambda v, rng: v), wants_two(lambda v, scale=2.0: v), wants_two(np.sign)
    (True, False, False)
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some NumPy functions have no signature
        return False
    wanted = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(wanted) == 2


def field_types(cls: Any) -> dict[str, str]:
    """The annotation of each field of a NamedTuple: "int", "float", ...

    NamedTuple stores unevaluated annotations (``from __future__ import annotations``) as forward references.
    """
    written = {}
    for part in reversed(cls.__mro__):  # fields may be those of a NamedTuple that several settings share
        for name, hint in vars(part).get("__annotations__", {}).items():
            hint = getattr(hint, "__forward_arg__", hint)
            written[name] = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    return written


def setting(cls: type[T]) -> type[T]:
    """Class decorator for a ``NamedTuple``: converted fields, a checked domain, equality that includes the class.

    The class may define ``domain(self)``, which raises ``ValueError`` for values outside the domain,
    ``_deferred(raw)``, which returns what stands for a setting whose values are not known yet, or None, and a
    static method ``other_arguments(given)``, which turns other keyword arguments into those of fields. A function
    in its body with the name of a generic and a first parameter that is not ``self`` is registered with that
    generic.

    Parameters
    ----------
    cls : type
        A NamedTuple.

    Returns
    -------
    type
        The class, with `SettingType` as its own.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> @setting
    ... class Keep(NamedTuple):
    ...     k: int
    ...     def domain(self):
    ...         require(self.k >= 1, "k", self.k, "an integer, at least 1")
    >>> Keep(3.0)
    Keep(k=3)
    >>> Keep(0)
    Traceback (most recent call last):
        ...
    ValueError: k: got 0, allowed: an integer, at least 1
    """
    # a NamedTuple with replaced methods; a metaclass can only be chosen when the class is made
    members = {name: value for name, value in vars(cls).items() if name != "__orig_bases__"}  # else cloudpickle fails
    made = cast(Any, SettingType(cls.__name__, cls.__bases__, members))
    make = made.__new__
    hints = field_types(cls)

    @functools.wraps(make)
    def __new__(klass: Any, *args: Any, **kwargs: Any) -> Any:
        raw = make(klass, *args, **_spelled(klass, kwargs))
        if hasattr(klass, "_deferred") and (later := klass._deferred(raw)) is not None:
            return later
        self = tuple.__new__(klass, (_convert(n, hints.get(n, ""), v) for n, v in zip(klass._fields, raw, strict=True)))
        if hasattr(klass, "domain"):
            self.domain()
        for name, value in zip(klass._fields, self, strict=True):
            require(type(value) is not int or -(2**63) <= value < 2**63, name, value, "an integer of 64 bits")
        return self

    made.__new__ = __new__
    plain = [
        p.replace(annotation=_CONVERT.get(hints.get(p.name, ""), p.empty))
        for p in list(inspect.signature(make).parameters.values())[1:]
    ]
    made.__signature__ = inspect.Signature(plain)  # QSGD(s: int, ...) and not ForwardRef('int')
    made.__eq__ = lambda self, other: type(self) is type(other) and digest(self) == digest(other)
    made.__ne__ = lambda self, other: not self == other
    made.__hash__ = lambda self: hash(digest(self))
    made.__bool__ = lambda self: True  # a tuple without fields is false, and Majority() is not "no server"
    return registers(made)


def constructed(value: Any) -> Any:
    """Construct the setting again by its class, so that values set by `_replace`, also in its parts, are checked.

    >>> from typing import NamedTuple
    >>> @setting
    ... class Keep(NamedTuple):
    ...     k: int
    >>> constructed(Keep(3)._replace(k=4.5))
    Traceback (most recent call last):
        ...
    ValueError: k: got 4.5, allowed: an integer
    """
    return type(value)(*map(constructed, value)) if hasattr(value, "_fields") else value


def traits(**stated: object) -> Callable[[type[T]], type[T]]:
    """Class decorator: properties of a class as attributes that are not fields.

    In the body of a NamedTuple ``sparse_rows = True`` has the same effect, but type checkers take it for a field.

    Parameters
    ----------
    **stated : object
        Names and values.

    Returns
    -------
    callable
        The decorator, which returns the same class.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> @traits(listed=True)
    ... @setting
    ... class Halve(NamedTuple):
    ...     times: int
    >>> Halve(3).listed, Halve(3)
    (True, Halve(times=3))
    """

    def decorate(cls: type[T]) -> type[T]:
        for name, value in stated.items():
            setattr(cls, name, value)
        return cls

    return decorate
