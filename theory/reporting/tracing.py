"""Which code is executed, and which files are read: for results that are kept until one of them changes."""

from __future__ import annotations

import contextlib
import cProfile
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..core.compile_cache import loaded_files
from .dependencies import ROOT, WHOLE, Executed, Sources

__all__ = ["Trace", "merged", "traced"]

FILES: list[set[str]] = []  # of the traces that are under way; a hook cannot be removed
DATA = ("theory", "tests", "notebooks", "figures", "docs")  # folders of a checkout whose files may be read


def _opened(event: str, arguments: tuple) -> None:
    if event == "open" and FILES and isinstance(arguments[0], str) and arguments[1] in ("r", "rb", None):
        for files in FILES:
            files.add(os.path.abspath(arguments[0]))


class Trace:
    """What was executed and read while this process was traced."""

    def __init__(self) -> None:
        self.places: set[tuple[str, int]] = set()
        self.files: set[str] = set()
        self.compiled: set[str] = set()

    def executed(self, sources: Sources) -> dict[str, list[str]]:
        """The nodes that were executed, the files that were compiled into kernels, and those that were read."""
        found = sources.executed(self.places)
        for path in map(Path, self.files):
            inside = path.relative_to(ROOT) if path.is_relative_to(ROOT) else None
            if inside is not None and inside.parts[0] in DATA and path.suffix not in (".py", ".pyc") and path.is_file():
                found[inside.as_posix()] = [WHOLE]
        for file in self.compiled:
            found[f"theory/{file}"] = [WHOLE]
        return {file: found[file] for file in sorted(found)}


@contextlib.contextmanager
def traced() -> Iterator[Trace]:
    """Trace this process, with all threads that begin meanwhile.

    Yields
    ------
    Trace
        It is complete at the end.

    Raises
    ------
    ValueError
        If a profiler or a debugger is active, from Python 3.12 on.

    Examples
    --------
    >>> with traced() as trace:
    ...     found = Sources().node_at("theory/reporting/tracing.py", 1)
    >>> any(file.endswith("dependencies.py") for file, line in trace.places)
    True
    """
    trace, profilers = Trace(), []

    def begin(*_: object) -> None:
        profiler = cProfile.Profile(subcalls=False, builtins=False)
        profilers.append(profiler)
        profiler.enable()

    if not _hooked:
        sys.addaudithook(_opened)
        _hooked.append(True)
    FILES.append(trace.files)
    if sys.version_info < (3, 12):  # from then on a profiler sees all threads
        threading.setprofile(begin)
    begin()
    try:
        yield trace
    finally:
        profilers[0].disable()
        if sys.version_info < (3, 12):
            threading.setprofile(None)
        FILES.remove(trace.files)
        trace.compiled.update(loaded_files())
        for profiler in profilers:
            codes = (entry.code for entry in profiler.getstats())
            trace.places.update((c.co_filename, c.co_firstlineno) for c in codes if not isinstance(c, str))


def merged(several: Iterable[Executed]) -> dict[str, list[str]]:
    """All that was executed in several traces."""
    found: dict[str, set[str]] = {}
    for executed in several:
        for file, names in executed.items():
            found.setdefault(file, set()).update(names)
    return {file: sorted(found[file]) for file in sorted(found)}


_hooked: list[bool] = []
