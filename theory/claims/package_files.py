"""The files with the package's claims: each is imported when one of its claims is asked for, without a list."""

from __future__ import annotations

import importlib
from pathlib import Path

from ..core.subjects import SUBJECTS

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
