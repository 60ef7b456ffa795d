"""Messages while kernels are compiled: for what, how many, for how long, and where they are stored."""

from __future__ import annotations

import contextlib
import html
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from numba import types

from .fingerprints import NAME
from .numba_private import Listener, register

BETWEEN = 4.0  # seconds between two lines
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # what launchers tell a process
SHARED = "what all methods share"
CONTAINERS = tuple(f"{NAME}.{part}" for part in ("methods.", "compressors.base", "problems.matrix"))


class Announcer(Listener):
    """Prints a line at once in a terminal, then every few seconds; a notebook shows one line until the cell ends."""

    def __init__(self) -> None:
        self._whats: dict[str, None] = {}
        self._later = ""
        self._depth = self._kernels = 0  # how deeply compilations are nested
        self._since = self._last = 0.0
        self._watch: threading.Thread | None = None
        self._line: Any = None  # of a notebook
        register("numba:compile", self)

    def kernel(self, what: str, folder: Path | None, stored: bool) -> None:
        """Note that a kernel is being compiled."""
        rank = next((os.environ[name] for name in RANKS if name in os.environ), "0")
        progress = os.environ.get("THEORY_PROGRESS")
        if progress == "0" or (progress is None and "PYTEST_CURRENT_TEST" in os.environ) or rank != "0":
            return
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        begins = self._watch is None and self._line is None
        if begins:
            self._whats, self._kernels, self._since = {}, 0, time.monotonic()
        self._whats[what] = None
        self._kernels += 1
        self._later = f"next time loaded from {folder}" if stored else "not stored, as it is not the package's own"
        if hasattr(shell, "kernel"):
            self._in_notebook(shell)
        elif begins:
            self._begin()

    def _in_notebook(self, shell: Any) -> None:
        from IPython.display import display

        def close(*_: Any) -> None:
            shell.events.unregister("post_run_cell", close)
            self._line.update({"text/plain": "", "text/html": ""}, raw=True)
            self._line = None

        said = {"text/plain": self._text(), "text/html": f"<small>{html.escape(self._text())}</small>"}
        if self._line is None:
            shell.events.register("post_run_cell", close)
            self._line = display(said, raw=True, display_id=True)
        else:
            self._line.update(said, raw=True)

    def _begin(self) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            self._say()
        self._watch = threading.Thread(target=self._every_few_seconds, daemon=True)
        self._watch.start()

    def on_start(self, event: Any) -> None:
        """Numba begins to compile a function."""
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Numba has compiled it."""
        self._depth, self._last = max(0, self._depth - 1), time.monotonic()

    def _every_few_seconds(self) -> None:
        while True:
            time.sleep(BETWEEN)
            if self._depth:
                self._say()
            elif time.monotonic() - self._last > BETWEEN:
                self._watch = None
                return

    def _say(self) -> None:
        bars = sys.modules.get("tqdm")  # a line stands above a bar
        with contextlib.suppress(OSError, ValueError):  # standard error is closed
            if sys.stderr is not None:
                (print if bars is None else bars.tqdm.write)(f"theory: {self._text()}", file=sys.stderr)
                sys.stderr.flush()

    def _text(self) -> str:
        number = f"{self._kernels} kernel{'' if self._kernels == 1 else 's'}"
        seconds = time.monotonic() - self._since
        return f"compiling {', '.join(self._whats)}: {number} so far, for {seconds:.0f} s; {self._later}"


def _piece(signature: Any) -> str:
    """The class of a kernel: that of its first argument, or of the argument's first field if that is a pointer."""
    first = signature[0] if isinstance(signature, (tuple, list)) and signature else None
    if isinstance(first, cast(Any, types).CPointer):
        first = next(iter(getattr(first.dtype, "types", ())), None)
    cls = getattr(first, "instance_class", None)
    return SHARED if cls is None or cls.__module__.startswith(CONTAINERS) else cls.__name__


_tellers: list[Callable[[str, Path | None, bool], object]] = [Announcer().kernel]


def tell(signature: object, folder: Path | None, stored: bool) -> None:
    """Report that a kernel with this signature is not in the cache and is being compiled."""
    for teller in _tellers:
        teller(_piece(signature), folder, stored)


def when_compiling(tell: Callable[[str, Path | None, bool], object] | None) -> None:
    """Call ``tell(what, folder, stored)`` when a kernel is not found in the cache; with None nothing is called.

    By default lines are printed on standard error, or displayed in a notebook.

    Parameters
    ----------
    tell : callable or None
        ``what`` names a compressor, a problem or the common part, each once; ``folder`` is the cache, and ``stored``
        tells whether the code will be found there next time.

    Examples
    --------
    >>> when_compiling(None)  # no messages from now on
    """
    told: set[str] = set()

    def once(what: str, folder: Path | None, stored: bool) -> None:
        if tell is not None and what not in told:
            told.add(what)
            tell(what, folder, stored)

    _tellers[:] = [once] * (tell is not None)
