"""A bar in a notebook while a cell waits for kernels to be compiled: for what, how many, and since when."""

from __future__ import annotations

import html
import time
from typing import Any

USUAL, SHARED = 12, 40  # kernels that one class needs, and what all methods share: where the bar is full


class CompileBar:
    """Shows the progress of compiling as the output of a cell, and closes when the cell ends.

    How many kernels a cell needs is known only when it has ended, so the bar starts from the usual number and grows.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The notebook's; it says when a cell ends.
    """

    def __init__(self, shell):
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
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
