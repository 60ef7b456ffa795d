"""What is said while kernels are compiled: a line, or in a notebook a bar: for what, how many, and since when."""

from __future__ import annotations

import html
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from numba import types

from .fingerprints import NAME

__all__ = ["CompileBar", "bars_above", "tell", "when_compiling"]

USUAL, SHARED = 12, 40  # kernels that one class needs, and what all methods share: where the bar is full


class CompileBar:
    """Shows the progress of compiling as the output of a cell, and closes when the cell ends.

    How many kernels a cell needs is known only when it has ended, so the bar starts from the usual number and grows.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The notebook's; it says when a cell ends.
    """

    def __init__(self, shell: Any):
        self._shell, self._handle, self._shown = shell, None, 0.0
        self._pieces: list[str] = []
        self._done = self._total = 0
        self._since, self._later = 0.0, ""

    def piece(self, what: str, later: str, shared: bool) -> None:
        """From now on kernels of this piece are compiled, too."""
        if not self._pieces:
            self._since, self._done, self._total = time.monotonic(), 0, 0
            self._shell.events.register("post_run_cell", self.close)
        self._pieces.append(what)
        self._total, self._later = self._total + (SHARED if shared else USUAL), later
        self._show()

    def kernel(self) -> None:
        """One more kernel is compiled."""
        if self._pieces:
            self._done += 1
            self._total = max(self._total, self._done + 1)
            if time.monotonic() - self._shown > 0.2:
                self._show()

    def close(self, *_: Any) -> None:
        """The cell has ended."""
        if self._pieces:
            self._shell.events.unregister("post_run_cell", self.close)
            self._show(ended=True)
            self._pieces, self._handle = [], None

    def _show(self, ended: bool = False) -> None:
        from IPython.display import display

        self._shown = time.monotonic()
        kernels = f"{self._done} kernel{'' if self._done == 1 else 's'}"
        # the cell may have done other work since, so its seconds are not those of compiling
        text = f"{'compiled' if ended else 'compiling'} {', '.join(self._pieces)}: {kernels}"
        text += f"; {self._later}" if ended else f", {self._shown - self._since:.0f} s"
        share = 1.0 if ended else self._done / self._total
        bar = "" if ended else f'<progress value="{share:.3f}" style="width: 12em"></progress> '
        data = {
            "text/plain": text if ended else f"[{'#' * int(20 * share):<20}] {text}",
            "text/html": f"<small>{bar}{html.escape(text)}</small>",
        }
        if self._handle is None:
            again = _printed[0].taken_back() if _printed else ""
            self._handle = display(data, raw=True, display_id=True)
            sys.stdout.write(again)
        else:
            self._handle.update(data, raw=True)


BETWEEN, PAUSE = 4.0, 30.0  # seconds between two lines; without a kernel, after which a new spell begins
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # what launchers tell a process


class Printed:
    """What a cell has printed so far, so that a bar can stand above it and not within a table.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The notebook's; it says when a cell begins, and what it displays.
    """

    def __init__(self, shell: Any):
        self._shell = shell
        self._text: list[str] = []
        self._alone = True  # nothing but text, so that all of it can be printed again
        shell.events.register("pre_run_cell", self._begin)
        shell.display_pub.register_hook(self._other)
        for stream, note in ((sys.stdout, self._text.append), (sys.stderr, self._other)):
            self._listen(stream, note)

    def _listen(self, stream: Any, note: Callable[[Any], object]) -> None:
        write = stream.write

        def heard(text: str) -> int:
            note(text)
            return write(text)

        stream.write = heard

    def _begin(self, *_: Any) -> None:
        self._text.clear()
        self._alone = True

    def _other(self, what: Any) -> Any:
        self._alone = False
        return what

    def taken_back(self) -> str:
        """The text, which is no longer seen; empty if the cell has shown something else, too."""
        text = "".join(self._text)
        if not (text and self._alone):
            return ""
        sys.stdout.flush()
        self._shell.display_pub.clear_output()
        self._text.clear()  # it is printed again
        return text


def bars_above() -> None:
    """From now on a notebook's bars stand above what their cell prints, also where it has begun to print.

    Examples
    --------
    >>> bars_above()  # outside of a notebook: nothing
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and hasattr(shell, "kernel") and not _printed:
        _printed.append(Printed(shell))


_printed: list[Printed] = []  # at most one
SHARED_PIECES = "what all methods share"
CONTAINERS = tuple(f"{NAME}.{part}" for part in ("methods.", "compressors.base", "problems.matrix"))


def _piece(signature: Any) -> str:
    """Whose kernel has this signature: class of the first argument, or of its first field if that is a pointer."""
    first = signature[0] if isinstance(signature, (tuple, list)) and signature else None
    if isinstance(first, cast(Any, types).CPointer):
        first = next(iter(getattr(first.dtype, "types", ())), None)
    cls = getattr(first, "instance_class", None)
    return SHARED_PIECES if cls is None or cls.__module__.startswith(CONTAINERS) else cls.__name__


def tell(signature: object, folder: Path | None, stored: bool) -> None:
    """Say that a kernel with this signature is not found and is compiled now, and count it in the bar."""
    what = _piece(signature)
    if _teller and what not in _told:
        _told.add(what)
        _teller[0](what, folder, stored)
    if _bars:
        _bars[0].kernel()
    elif _teller == [_tell_who_watches]:
        _SPELL.kernel(what)


def _tell_who_watches(what: str, folder: Path | None, stored: bool) -> None:
    """A line if standard error is a terminal; in a notebook a bar, as the output of the cell that waits."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if os.environ.get("THEORY_PROGRESS") == "0" or "PYTEST_CURRENT_TEST" in os.environ:
        return
    later = f"next time it is loaded from {folder}" if stored else "not stored, as it is not the package's own"
    if shell is not None and hasattr(shell, "kernel"):
        if not _bars:
            _bars.append(CompileBar(shell))
        _bars[0].piece(what, later, what == SHARED_PIECES)
    elif sys.stderr is not None and (sys.stderr.isatty() or shell is not None):
        print(f"theory: compiling {what} (some seconds; {later})", file=sys.stderr, flush=True)


class Spell:
    """A time of compiling without a notebook: a line every few seconds, in a terminal and in a file, on one rank."""

    def __init__(self) -> None:
        self._since = self._last = self._spoke = -math.inf
        self._kernels = 0

    def kernel(self, what: str) -> None:
        """One more kernel is compiled."""
        now = time.monotonic()
        if now - self._last > PAUSE:
            self._since = self._spoke = now
            self._kernels = 0
        self._last, self._kernels = now, self._kernels + 1
        if now - self._spoke < BETWEEN or _unwatched() or sys.stderr is None:
            return
        self._spoke = now
        said = f"compiling {what}, {self._kernels} kernels so far, for {now - self._since:.0f} s"
        print(f"theory: {said}", file=sys.stderr, flush=True)


def _unwatched() -> bool:
    """Whether nobody is to be told: a test, whoever asked for silence, and ranks other than the first."""
    rank = next((os.environ[name] for name in RANKS if name in os.environ), "0")
    return os.environ.get("THEORY_PROGRESS") == "0" or "PYTEST_CURRENT_TEST" in os.environ or rank != "0"


_SPELL = Spell()
_bars: list[CompileBar] = []  # at most one
_teller: list[Callable[[str, Path | None, bool], object]] = [_tell_who_watches]
_told: set[str] = set()


def when_compiling(tell: Callable[[str, Path | None, bool], object] | None) -> None:
    """Call ``tell(what, folder, stored)`` when a kernel is not found in the cache; None: no call.

    By default a line is printed on standard error if that is a terminal, and a notebook shows a bar.

    Parameters
    ----------
    tell : callable or None
        ``what`` names a compressor, a problem or the common part, each once; ``folder`` is the cache, and ``stored``
        tells whether the code will be found there next time.

    Examples
    --------
    >>> when_compiling(None)  # from now on nobody is told
    """
    _teller[:] = [] if tell is None else [tell]
