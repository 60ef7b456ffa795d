"""What runs on several ranks: the exchange of a round, and the flagship with its memory."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from theory.reporting.json_values import from_json, to_json

from . import ENVIRONMENT
from .pairing import Row, versus

HERE = Path(__file__).resolve().parent
SECONDS, HOURS = 300, 4 * 3600  # after which a job is ended: by default, and one at full size

MINIMAL = """
import resource
import numba
from mpi4py import MPI

numba.njit(lambda x: x)(1.0)
MPI.COMM_WORLD.Barrier()
print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f} MB")
"""


def mpirun() -> str:
    """``mpirun`` beside this Python, else on the PATH."""
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.is_file() else shutil.which("mpirun")
    if found is None:
        raise FileNotFoundError("no mpirun beside this Python or on the PATH (pip install mpich)")
    return found


def start(n: int, *arguments, seconds: float = SECONDS, **variables) -> str:
    """What ``mpirun -n N python ARGUMENTS`` prints."""
    command = [mpirun(), "-n", str(n), sys.executable, *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=HERE.parent,
        env=ENVIRONMENT | variables,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))} on {n} ranks ended with {process.returncode}:\n{text}")
    return text


def job(collect) -> None:
    """The main part of a module that `measured` starts: measure on all ranks, and print the values on rank 0."""
    from mpi4py import MPI

    found = collect(*json.loads(sys.argv[1]), MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(to_json(found), allow_nan=False))


def measured(module, n: int, quick: bool, data=None) -> dict:
    """What ``module.collect(quick, data, comm)`` returns on so many ranks."""
    arguments = json.dumps([quick, None if data is None else str(Path(data).resolve())])
    text = start(n, "-m", module.__name__, arguments, seconds=HOURS)
    return from_json(json.loads(text.strip().splitlines()[-1]))


def exchange(given):
    """The exchange of an MPI round, against the same two calls of mpi4py alone."""
    for n in (2, 8):
        text = start(n, "-m", "benchmarks.exchange_job", 5 * given.turns)
        for found in json.loads(text.strip().splitlines()[-1]):
            bare, gather, whole = (np.array(found[name]) for name in ("bare", "gather", "round"))
            size = f"{n} ranks, messages of {found['bytes'] / 1000:.0f} kB"
            yield Row(
                f"Exchange of a round, {size}",
                "bare Allgather + Allgatherv",
                gather / bare,
                ("at most", 1.3),
                versus(gather, bare),
            )
            yield Row(
                "the same with checksums and unpacking",
                "bare Allgather + Allgatherv",
                whole / bare,
                ("at most", 3.0 if found["bytes"] < 10**5 else 2.0 if n == 2 else 1.5),
                versus(whole, bare),
            )


def overlap(given):
    """A round whose messages travel while the next gradients are computed, against one that waits."""
    for d, uneven in ((2_000, 0.0), (2_000, 1.0), (250_000, 0.0)):
        found = json.loads(start(2, "-m", "benchmarks.overlap_job", d, uneven).strip().splitlines()[-1])
        told = f"Messages of {found['bytes'] / 1000:.0f} kB that travel while 2 ranks compute"
        yield Row(
            "the same, one rank in turn takes twice as long" if uneven else told,
            "a round that waits for them",
            np.array(found["ratios"]),
            ("at most", 1.0),
            f"{found['overlaps'] * 1e3:.3g} ms : {found['waits'] * 1e3:.3g} ms",
        )


def _peaks(text: str) -> list[float]:
    """MB that ranks held, as they said."""
    return [float(mb) for mb in re.findall(r"^peak ([\d.]+) MB$", text, re.MULTILINE)]


def flagship(given):
    """Memory and wall time of ``mpirun -n 8 python -m theory.experiment``, beside ranks that only begin."""
    quick = given.turns < 10
    begin = time.perf_counter()
    minimal = _peaks(start(8, "-c", MINIMAL))
    waited = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--out", f"{folder}/runs", *(["--steps", "20"] if quick else [])]
        if given.path is not None:
            arguments += ["--data", given.path]
        walls, peaks = [], []
        for _ in range(2):  # the second run finds what the first one compiled
            begin = time.perf_counter()
            text = start(8, "-m", "benchmarks.rank_memory", *arguments, THEORY_CACHE=f"{folder}/cache")
            walls.append(time.perf_counter() - begin)
            peaks.append(_peaks(text))
    what = "Flagship, 8 ranks" + (", 20 steps" if quick else "")
    states = (("nothing compiled or cached", 38.0, 400.0), ("all compiled and cached", 10.0, 250.0))
    for wall, peak, (state, seconds, megabytes) in zip(walls, peaks, states, strict=True):
        most, middle = np.array([max(peak)]), f"{np.median(peak):.0f} MB in the middle"
        yield Row(f"{what}, {state}: most memory of a rank", "", most, ("at most", megabytes), middle, " MB")
        target = None if quick else ("at most", seconds)
        yield Row(f"{what}, {state}: wall time", "", np.array([wall]), target, "", " s")
    what = "for comparison: 8 ranks that import mpi4py and Numba, and compile one function"
    yield Row(f"{what}: most memory of a rank", "", np.array([max(minimal)]), None, "", " MB")
    yield Row(f"{what}: wall time", "", np.array([waited]), None, "", " s")
