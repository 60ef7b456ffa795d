"""Tools for all tests: the real data, a compile cache of one's own, MPI jobs that leave nothing behind.

Each tool is a fixture and a function, ``from conftest import run_mpi``, for tests that use it in a parametrisation.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 3600.0  # seconds of a test that takes long by nature; others have those of pyproject.toml
REAL_DATA = Path(os.environ.get("THEORY_DATA", ROOT.parent / "shared" / "data"))

os.environ.setdefault("MPLBACKEND", "Agg")  # no window, here and in every process started from here


def pytest_runtest_setup(item) -> None:
    """Give tests marked `full` more time before a test that hangs ends the run."""
    if item.get_closest_marker("full"):
        faulthandler.cancel_dump_traceback_later()
        faulthandler.dump_traceback_later(PATIENCE, file=sys.__stderr__, exit=True)


def real_data(name: str) -> Path:
    """Path of a real data file, e.g. ``"rcv1_subsets_binary.svm.bz2"``; the test is skipped where there is none."""
    path = REAL_DATA / name
    if not path.is_file():
        pytest.skip(f"real data: no {name} in {REAL_DATA} (the variable THEORY_DATA names the folder)")
    return path


def find_mpirun() -> str:
    """``mpirun`` beside this Python, else on the PATH; the test is skipped where there is none."""
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.is_file() else shutil.which("mpirun")
    if found is None:
        pytest.skip(f"MPI: no mpirun beside {sys.executable} or on the PATH (pip install mpich)")
    return found


def run_mpi(n: int, *args, timeout: float = 120, env: dict | None = None, cwd=ROOT) -> subprocess.CompletedProcess:
    """Run ``mpirun -n N python ARGS...`` and give back what it printed.

    Parameters
    ----------
    n : int
        Number of ranks.
    *args
        What follows ``python``: ``"-m", "theory.experiment"``, or the path of a script.
    timeout : float
        Seconds after which all processes of the job are killed and the test fails.
    env : dict, optional
        Variables on top of the present ones; ``None`` as a value removes one.
    cwd : path
        Where to run; the repository's root by default, so that ``theory`` is found.

    Returns
    -------
    subprocess.CompletedProcess
        With ``returncode``, ``stdout`` and ``stderr`` (texts). A non-zero code is for the test to judge.
    """
    command = [find_mpirun(), "-n", str(n), sys.executable, *map(str, args)]
    given = env or {}
    paths = [str(ROOT / "tests"), given.get("PYTHONPATH", os.environ.get("PYTHONPATH"))]  # scripts that use this file
    variables = given | {"PYTHONPATH": os.pathsep.join(str(path) for path in paths if path)}
    return run_group(command, timeout=timeout, env=variables, cwd=cwd)


def run_group(command, *, timeout: float, env: dict | None = None, cwd=ROOT) -> subprocess.CompletedProcess:
    """Run a command in a process group of its own, of which nothing is left when this returns."""
    variables = {name: str(value) for name, value in {**os.environ, **(env or {})}.items() if value is not None}
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
        cwd=cwd,
        start_new_session=True,
    )
    late = False
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        late = True
        _end(process)
        out, err = process.communicate()
    finally:
        _end(process)  # also after an interrupt from the keyboard
    if late:
        pytest.fail(
            f"not finished after {timeout} s: {' '.join(map(str, command))}\n"
            f"--- stdout, its end\n{out[-2000:]}\n--- stderr, its end\n{err[-2000:]}",
            pytrace=False,
        )
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end(process) -> None:
    """Ask the job to end (mpirun then ends its ranks), and kill the group if it has not after five seconds."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
    _signal(process, signal.SIGKILL)


def _signal(process, which) -> None:
    try:
        os.killpg(process.pid, which)
    except (ProcessLookupError, PermissionError):  # nobody left; macOS says the latter of a group of zombies
        pass


@pytest.fixture(name="real_data", scope="session")
def _real_data():
    return real_data


@pytest.fixture(name="run_mpi", scope="session")
def _run_mpi():
    return run_mpi


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch) -> Path:
    """Give processes started by this test an empty cache folder (parsed data, compiled code).

    Code that this process has already compiled stays where it is.
    """
    folder = tmp_path / "cache"
    folder.mkdir(0o700)
    monkeypatch.setenv("THEORY_CACHE", str(folder))
    return folder
