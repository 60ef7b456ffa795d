"""Files with claims: those of the package, in a folder for each subject, and a user's own."""

from __future__ import annotations

import importlib
from pathlib import Path

from ..core.subjects import SUBJECTS
from ..reporting.files import FileRefused, run_file
from .base import REGISTRY, registered

HERE = Path(__file__).parent
_waiting = {path.stem + subject: path for subject in SUBJECTS for path in sorted((HERE / subject).glob("[a-z]*.py"))}


def load_package(id: str = "") -> bool:
    """Import the package's files in which this id stands, without an id all of them; return whether there were any."""
    found = [key for key, path in _waiting.items() if not id or f'"{id}"' in path.read_text(encoding="utf-8")]
    for key in found:
        path = _waiting[key]
        importlib.import_module(f".{path.parent.name}.{path.stem}", __package__)
        _waiting.pop(key, None)
    return bool(found)


def order(file: str) -> tuple[int, str]:
    """Where the claims of a file stand in the list: by subject, and those from outside the package behind them."""
    path = Path(file)
    own = path.parent.parent == HERE and path.parent.name in SUBJECTS
    return (list(SUBJECTS).index(path.parent.name), path.stem) if own else (len(SUBJECTS), "")


def load_claims(path: str | Path) -> list[str]:
    """Run a Python file and return the ids of the claims that it registers.

    ``verify``, ``explain`` and ``list_claims`` then know them like the claims of the package.  A file may be loaded
    again after a change.

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
        If an id is taken by a claim from elsewhere, or :func:`theory.claims.claim` rejects an argument.

    Examples
    --------
    >>> load_claims("nowhere.py")
    Traceback (most recent call last):
        ...
    theory.reporting.files.FileRefused: path: got 'nowhere.py', allowed: a Python file that exists
    """
    before = dict(registered())
    for id in [id for id, known in before.items() if known.file and Path(known.file) == Path(path).resolve()]:
        del REGISTRY[id]  # claims no longer in the file are removed
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
