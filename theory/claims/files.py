"""Claims from outside the package, in a Python file of one's own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core import require
from .base import REGISTRY

__all__ = ["FileRefused", "load_claims", "run_file"]


class FileRefused(ValueError):
    """A file that cannot be run as one's own; what goes wrong while it runs is shown as it is."""


def run_file(path: str | Path) -> ModuleType:
    """Run a Python file as a module that bears its name, so that what it registers knows where it stands.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    module

    Raises
    ------
    FileRefused
        If there is no such file, or another module with its name is at work.
    """
    path = Path(path)
    require(path.is_file() and path.suffix == ".py", "path", str(path), "a Python file that exists", FileRefused)
    name, path = path.stem, path.resolve()
    # Under the name of one of Python's own modules it would be what others import later.
    require(
        name not in sys.stdlib_module_names, "path", str(path), f"another name: Python has a module {name}", FileRefused
    )
    taken = sys.modules.get(name)
    if taken is not None:
        here = getattr(taken, "__file__", None)
        same = here is not None and Path(here).resolve() == path
        require(same, "path", str(path), f"another name: there is a module {name} already", FileRefused)
    spec: Any = importlib.util.spec_from_file_location(name, path)  # a loader is there for every .py file
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # a file that failed may be mended and run again
        del sys.modules[name]
        if taken is not None:
            sys.modules[name] = taken
        raise
    return module


def load_claims(path: str | Path) -> list[str]:
    """Run a Python file and return the ids of the claims that it registers.

    From then on ``verify``, ``explain`` and ``list_claims`` know them, as they know the claims of the package.  A file
    may be loaded again after it was changed.

    Parameters
    ----------
    path : str or Path
        A file that uses :func:`theory.claims.claim`.

    Returns
    -------
    list of str
        In the order of the file.

    Raises
    ------
    FileRefused
        A ValueError: if there is no such file, another module has its name, or it registers no claim.
    ValueError
        If an id is taken by a claim from elsewhere, or :func:`theory.claims.claim` refuses an argument.

    Examples
    --------
    >>> load_claims("nowhere.py")
    Traceback (most recent call last):
        ...
    theory.claims.files.FileRefused: path: got 'nowhere.py', allowed: a Python file that exists
    """
    before = dict(REGISTRY)
    for id in [id for id, known in before.items() if known.file and Path(known.file) == Path(path).resolve()]:
        del REGISTRY[id]  # what the file no longer says is gone
    try:
        run_file(path)
    except BaseException:
        REGISTRY.clear()
        REGISTRY.update(before)
        raise
    found = [id for id, known in REGISTRY.items() if before.get(id) is not known]
    if not found:
        REGISTRY.update(before)
        raise FileRefused(f"path: got {str(path)!r}, allowed: a file that registers a claim (theory.claims.claim)")
    return found
