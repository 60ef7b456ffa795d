"""Methods of a user's Python file, for ``--methods my_file.py``."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from ..reporting.files import ConfigurationError, FileRefused, run_file


def is_file(name: str) -> bool:
    """Whether a name is the path of a Python file, with or without the name of one of its methods."""
    return named_in(name)[0].endswith(".py")


def named_in(name: str) -> tuple[str, str]:
    """Path and method of ``my_file.py:mine``; the method is empty if none is named.

    Examples
    --------
    >>> named_in("own/my_file.py:mine"), named_in("my_file.py")
    (('own/my_file.py', 'mine'), ('my_file.py', ''))
    """
    path, colon, method = name.rpartition(":")
    return (path, method) if colon and path.endswith(".py") else (name, "")


@functools.cache
def _loaded(path: str) -> dict:
    try:
        module = run_file(path)
    except FileRefused as error:
        raise ConfigurationError(f"methods: {error}") from error
    return {name: value for name, value in vars(module).items() if not name.startswith("_") and _is_method(value)}


def _is_method(value: Any) -> bool:
    return hasattr(value, "round") and hasattr(value, "domain") and not isinstance(value, type)


def file_methods(path: str) -> list[str]:
    """The names of the methods of a file, each with its path: ``my_file.py:mine``.

    Raises
    ------
    ConfigurationError
        If there is no such file, or it has no method.
    """
    found = [f"{path}:{name}" for name in _loaded(os.path.abspath(path))]
    if not found:
        raise ConfigurationError(
            f"methods: {Path(path).name} has no method; a method is a value of the file, "
            "such as mine = th.ParallelSGD(th.TopK(10), step=th.Constant(0.1), feedback=th.ErrorFeedback())"
        )
    return found


def method_of_file(name: str) -> Any:
    """The method ``my_file.py:mine``."""
    path, method = named_in(name)
    known = _loaded(os.path.abspath(path))
    if method not in known:
        raise ConfigurationError(f"methods: {path} has no method {method!r}; it has {', '.join(known) or 'none'}")
    return known[method]
