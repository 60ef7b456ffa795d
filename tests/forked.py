"""Run code in a fresh process that has the imports already: it is forked from one that does nothing but import.

A process of its own costs two to five seconds of imports.  The lectures and the pages of the documentation need one
each, since they register classes and change settings.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from pathlib import Path

import pytest

IMPORTED = (
    *("IPython.core.interactiveshell", "matplotlib.pyplot", "scipy.stats", "sklearn.datasets", "sklearn.linear_model"),
    *("sympy", "theory.claims", "theory.experiment.cli", "theory.measure", "theory.plots.lecture"),
)
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(list(IMPORTED))


def run_forked(function, *args, folder: Path, cwd: Path, timeout: float) -> None:
    """Call a function of a module in a fork, and fail the test with what it printed unless it returns."""
    log = folder / "printed.txt"
    process = SERVER.Process(target=_call, args=(function, args, log, cwd))
    process.start()
    process.join(timeout)
    late = process.is_alive()
    try:
        os.killpg(process.pid, signal.SIGKILL)  # also what it has started
    except ProcessLookupError:
        pass
    process.join()
    if late or process.exitcode != 0:
        said = f"not finished after {timeout} s" if late else f"exit code {process.exitcode}"
        printed = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        pytest.fail(f"{said}\n{printed[-5000:]}", pytrace=False)


def _call(function, args, log: Path, cwd: Path) -> None:
    os.setsid()
    with open(log, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(cwd)
    try:
        function(*args)
    except BaseException:
        traceback.print_exc()
        sys.exit(1)


def run_blocks(blocks: list[tuple[str, str]]) -> None:
    """Run pieces of code, each with the name of its place, in one namespace."""
    space = {"__name__": "__main__"}
    for place, text in blocks:
        print(f"--- {place}", flush=True)
        exec(compile(text, place, "exec"), space)  # noqa: S102


def run_lecture(cells: list[str]) -> None:
    """Run the cells as the kernel of a notebook does, and show the value of each last line.

    Claims on the documents of RCV1 take up to 20 s, and the tests of claims measure them: they are explained instead.
    """
    from IPython.core.interactiveshell import InteractiveShell

    import theory as th

    measure = th.verify
    th.verify = lambda id, **options: th.claims.explain(id) if id.endswith(".rcv1") else measure(id, **options)
    shell = InteractiveShell.instance()
    for cell in cells:
        print(f"--- {cell}", flush=True)
        shell.run_cell(cell, store_history=True).raise_error()
