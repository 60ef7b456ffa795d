"""Progress on a terminal: samples seen, time left; silent in pipes, files and continuous integration."""

from __future__ import annotations

import os
import sys


def on_terminal(stream=None) -> bool:
    """Whether ``stream`` (standard error) is a terminal, also behind an MPI launcher.

    A launcher gives its ranks pipes, so that rank 0 never has a terminal. If ``/proc`` exists, the launcher's standard
    error is checked instead.  ``THEORY_PROGRESS=0`` or ``=1`` overrides the check.
    """
    decided = os.environ.get("THEORY_PROGRESS")
    if decided in ("0", "1"):
        return decided == "1"
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        return True
    process = os.getpid()
    for _ in range(4):  # this process, the launcher's proxy, the launcher
        try:
            with open(f"/proc/{process}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name.startswith(("mpirun", "mpiexec", "orterun", "prterun", "srun")):
                return os.path.realpath(f"/proc/{process}/fd/2").startswith(("/dev/pts/", "/dev/tty"))
            process = int(rest.split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def announce_compiling() -> None:
    """On a terminal, print one line when the first kernel has to be compiled, since that takes a while."""
    from ..core import when_compiling

    def tell(what, folder, stored) -> None:
        from tqdm import tqdm

        tqdm.write(f"compiling (once; kept in {folder})", file=sys.stderr)  # not into a bar
        when_compiling(None)

    when_compiling(tell if on_terminal() else None)


def track(items, label: str, total: int | None = None, quiet: bool | None = None):
    """Iterate over the items, with a progress bar on a terminal; for loops with iterations of seconds.

    Parameters
    ----------
    items : iterable
        The bar shows the item if it is a string, or its first part if that is one.
    label : str
    total : int, optional
        Number of items, if they have no length.
    quiet : bool, optional
        By default True unless on a terminal.
    """
    if not on_terminal() if quiet is None else quiet:
        yield from items
        return
    from tqdm import tqdm

    with tqdm(items, desc=label, total=total, file=sys.stderr, ncols=100, leave=False) as bar:
        for item in bar:
            name = item[0] if isinstance(item, tuple) and item else item
            if isinstance(name, str):
                bar.set_postfix_str(name)
            yield item


class Progress:
    """A progress bar over all samples of all runs.

    Parameters
    ----------
    total : int
        Samples of the whole experiment.
    quiet : bool, optional
        By default whether nobody watches.
    """

    def __init__(self, total: int, quiet: bool | None = None):
        self._bar = None
        self._base = 0
        if not (not on_terminal() if quiet is None else quiet):
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, unit=" samples", unit_scale=True, file=sys.stderr, ncols=100, leave=False, mininterval=0.2
            )

    def start(self, label: str) -> None:
        """Start a run."""
        if self._bar is not None:
            self._base = self._bar.n
            self._bar.set_description(label)

    def at(self, samples: int) -> None:
        """Update the number of samples of this run."""
        if self._bar is not None:
            self._bar.update(self._base + int(samples) - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
