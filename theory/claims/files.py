"""Claims from outside the package, in a user's Python file."""

from __future__ import annotations

from pathlib import Path

from ..reporting.files import FileRefused, run_file
from .base import REGISTRY, registered


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
