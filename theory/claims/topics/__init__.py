"""The claims, by topic: a module of this folder is imported when one of its claims is asked for, without a list."""

import importlib
from pathlib import Path

_HERE = Path(__file__).parent
_waiting = {path.stem: path for path in sorted(_HERE.glob("*.py"), key=lambda path: path.stem) if path.stem[0] != "_"}


def load(id: str = "") -> bool:
    """Import the topics in whose text this id stands, without an id all of them; return whether there were any."""
    if id:
        found = [name for name, path in _waiting.items() if f'"{id}"' in path.read_text(encoding="utf-8")]
    else:
        found = list(_waiting)
    for name in found:
        importlib.import_module(f".{name}", __package__)
        _waiting.pop(name, None)
    return bool(found)


def order(file: str) -> str:
    """Where the claims of a file stand in the list: by topic, and those from outside the package behind them."""
    path = Path(file)
    return path.stem if path.parent == _HERE else "~"
