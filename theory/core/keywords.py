"""Keyword arguments of functions: one that is not known is refused with the nearest that is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from .settings import _spelled

__all__ = ["check_keywords", "known_keywords"]

F = TypeVar("F", bound=Callable[..., Any])


def known_keywords(function: F) -> F:
    """Decorator: a keyword that the function does not know is refused with the nearest one that it does.

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
    """Refuse keywords that none of these functions has, with the nearest one that they have."""
    several = [p for function in functions for p in inspect.signature(function).parameters.values()]
    names = tuple(p.name for p in several if p.kind is not p.VAR_KEYWORD)
    _spelled(SimpleNamespace(__name__=called, _fields=names), given)
