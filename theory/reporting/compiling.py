"""What is said while kernels are compiled."""

from __future__ import annotations

import sys
from typing import Any

from ..core import when_compiling
from ..core.numba_private import Listener, register
from .progress import Heartbeat, Lines, on_terminal, silenced

__all__ = ["announce_compiling"]


def announce_compiling() -> None:
    """Print a line when the first kernel has to be compiled; into a pipe or a file, more of them while that takes."""
    if silenced():
        when_compiling(None)
    elif on_terminal():
        when_compiling(_tell_once)
    else:
        when_compiling(_Compiling().tell)


def _tell_once(what: Any, folder: Any, stored: Any) -> None:
    from tqdm import tqdm

    tqdm.write(f"compiling (once; kept in {folder})", file=sys.stderr)  # not into a bar
    when_compiling(None)


class _Compiling(Listener):
    """Lines while Numba compiles."""

    def __init__(self):
        self._lines: Lines | None = None
        self._depth, self._what = 0, ""  # functions that are being compiled, each for the one before
        self._beat: Heartbeat | None = None

    def tell(self, what: Any, folder: Any, stored: Any) -> None:
        """Name what is compiled next."""
        self._what = what
        if self._lines is None:
            self._lines = Lines()
            self._lines.now(f"compiling (once; kept in {folder})")
            register("numba:compile", self)
        self._lines.when_due(self._text())

    def _text(self) -> str:
        return f"compiling {self._what}"

    def on_start(self, event: Any) -> None:
        """Numba begins to compile a function."""
        self._depth += 1
        if self._depth == 1 and self._lines is not None:
            self._lines.when_due(self._text())
            self._beat = Heartbeat(self._lines, self._text)
            self._beat.__enter__()

    def on_end(self, event: Any) -> None:
        """Numba has compiled it."""
        self._depth -= 1
        if self._depth <= 0 and self._beat is not None:
            self._beat.__exit__()
            self._beat = None
