"""What is said while kernels are compiled."""

from __future__ import annotations

import time
from typing import Any

from ..core import when_compiling
from ..core.numba_private import Listener, register
from .progress import Heartbeat, Lines, silenced

__all__ = ["announce_compiling"]


def announce_compiling() -> None:
    """Print a line when the first kernel has to be compiled, and more of them while that takes."""
    if silenced():
        when_compiling(None)
    else:
        when_compiling(_Compiling().tell)


class _Compiling(Listener):
    """Lines while Numba compiles."""

    def __init__(self):
        self._lines: Lines | None = None
        self._depth, self._what = 0, ""  # functions that are being compiled, each for the one before
        self._kernels, self._since = 0, time.monotonic()
        self._beat: Heartbeat | None = None

    def tell(self, what: Any, folder: Any, stored: Any) -> None:
        """Name what is compiled next."""
        self._what = what
        if self._lines is None:
            self._lines, self._since = Lines(), time.monotonic()
            self._lines.now(f"compiling (once; kept in {folder})")
            register("numba:compile", self)
        self._lines.when_due(self._text())

    def _text(self) -> str:
        return f"compiling {self._what}, {self._kernels} kernels so far, for {time.monotonic() - self._since:.0f} s"

    def on_start(self, event: Any) -> None:
        """Numba begins to compile a function."""
        self._depth += 1
        if self._depth == 1 and self._lines is not None:
            self._kernels += 1
            self._lines.when_due(self._text())
            self._beat = Heartbeat(self._lines, self._text)
            self._beat.__enter__()

    def on_end(self, event: Any) -> None:
        """Numba has compiled it."""
        self._depth -= 1
        if self._depth <= 0 and self._beat is not None:
            self._beat.__exit__()
            self._beat = None
