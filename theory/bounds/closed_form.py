"""What all closed forms share: arguments that are checked, a whole docstring, and calls that can be watched."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast, overload

from .domains import domain
from .theorems import completed, theorem

F = TypeVar("F", bound=Callable[..., Any])

Watch = Callable[[str, tuple[Any, ...], dict[str, Any], Any], Any]  # of a call: its name, arguments and value

_WATCHES: list[Watch] = []  # of those who watch at the moment


def told(name: str, arguments: tuple[Any, ...], named: dict[str, Any], value: Any) -> Any:
    """The value of a call of a formula, once all who watch at the moment have seen it."""
    for watch in _WATCHES:
        value = watch(name, arguments, named, value)
    return value


@contextlib.contextmanager
def watched_calls(watch: Watch) -> Iterator[None]:
    """Show each call of a closed form to a function, whoever makes the call.

    Parameters
    ----------
    watch : callable
        Of the formula's name, the arguments by position, those by name, and the value; what it returns becomes the
        value of the call.

    Examples
    --------
    >>> from theory import bounds
    >>> with watched_calls(lambda name, arguments, named, value: 2.0 * value):
    ...     bounds.rand_k_variance(10, 5)
    2.0
    """
    _WATCHES.append(watch)
    try:
        yield
    finally:
        _WATCHES.pop()


@contextlib.contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count the calls of closed forms, whoever makes them.

    Yields
    ------
    collections.Counter
        Calls by the name of the formula; filled until the end of the context.

    Examples
    --------
    >>> from theory import bounds
    >>> with counted_calls() as calls:
    ...     found = bounds.rand_k_variance(10, 5)
    >>> dict(calls)
    {'rand_k_variance': 1}
    """
    calls = Counter[str]()

    def counted(name: str, arguments: tuple[Any, ...], named: dict[str, Any], value: Any) -> Any:
        calls[name] += 1
        return value

    with watched_calls(counted):
        yield calls


@overload
def formula(given: F) -> F: ...
@overload
def formula(given: str = ..., *more: str) -> Callable[[F], F]: ...
def formula(given: Any = "", *more: str) -> Any:
    """Make a closed form of a function: checked arguments, a whole docstring, and calls that can be watched.

    Parameters
    ----------
    given, *more : str
        Conditions on the arguments, such as ``"0 < step <= 1 / lipschitz"``, besides those of the common symbols.

    Returns
    -------
    function
        A decorator; or, without conditions, the closed form.

    Examples
    --------
    >>> @formula("half >= 1")
    ... def twice(half: float) -> float:
    ...     return 2.0 * half
    >>> twice(0.5)
    Traceback (most recent call last):
        ...
    ValueError: half: got 0.5, allowed: a number, at least 1
    """
    if callable(given):
        return _closed_form(given, ())
    return functools.partial(_closed_form, conditions=tuple(filter(None, (given, *more))))


def _closed_form(function: F, conditions: tuple[str, ...]) -> F:
    name, allowed = function.__name__, domain(function, conditions)
    check = allowed.check

    @functools.wraps(function)
    def closed_form(*arguments: Any, **named: Any) -> Any:
        check(arguments, named)
        found = function(*arguments, **named)
        found = float(found) if isinstance(found, float) else found  # a Python float, not one of NumPy's
        return told(name, arguments, named, found)

    closed_form.__doc__ = completed(function, allowed)
    vars(closed_form).update(domain=allowed, theorem=functools.partial(theorem, function))
    return cast(F, closed_form)
