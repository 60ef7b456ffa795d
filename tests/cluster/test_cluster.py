"""The same bits in the simulator and on any number of ranks; a job that goes wrong ends, and says why, once."""

from __future__ import annotations

import functools
import os
import re
import threading
import time

import numpy as np
import pytest
from conftest import ROOT, run_mpi
from mpi_job import GROUPS, STEPS, digest, make_problem, methods
from thread_ranks import first_of

import theory as th
from theory.cluster.setup import prepare

JOB = ROOT / "tests" / "mpi_job.py"
LIMIT = 300  # seconds, for a machine that compiles everything anew
ENDS_WITHIN = 10.0  # seconds from the error to the end of the whole job


@functools.cache
def simulated(workers: int, name: str, seed: int = 3) -> str:
    """Digest of the simulator's runs of a group of methods."""
    return digest([th.run(m, make_problem(), workers=workers, steps=STEPS, seed=seed) for m in GROUPS[name]()])


@pytest.mark.mpi
@pytest.mark.parametrize(
    "workers, ranks, names",
    [
        (10, 2, list(GROUPS)),
        (3, 3, ["methods"]),  # one worker on each of several ranks
        *(pytest.param(w, r, list(GROUPS), marks=pytest.mark.full) for w, r in ((8, 1), (8, 4), (8, 8), (10, 5))),
    ],
)
def test_bits_do_not_depend_on_the_ranks(workers, ranks, names):
    """Of each kind of message, of memories that are held compressed, of local steps and growing batches."""
    done = run_mpi(ranks, JOB, workers, "digests", *names, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"digest of (\w+): (\w+)", done.stdout))
    assert found == {name: simulated(workers, name) for name in names}


def test_the_digest_would_notice():
    assert simulated(3, "methods", seed=4) != simulated(3, "methods") != simulated(10, "methods")


@pytest.mark.mpi
@pytest.mark.parametrize("what, message", [("raise", "on purpose"), ("raise on all", "steps")])
def test_a_rank_that_raises_ends_the_job_with_one_traceback(what, message):
    begin = time.monotonic()
    done = run_mpi(2, JOB, 8, *what.split(), timeout=LIMIT)
    warm = run_mpi(2, JOB, 8, *what.split(), timeout=LIMIT) if time.monotonic() - begin > ENDS_WITHIN else done
    for job in (done, warm):
        assert job.returncode != 0
        assert job.stderr.count("Traceback") == 1, job.stderr
        assert message in job.stderr and "rank 0 of 2 failed" in job.stderr


@pytest.mark.mpi
@pytest.mark.parametrize("what", ["other seed", "other data"])
def test_ranks_with_other_arguments_notice(what):
    done = run_mpi(2, JOB, 8, *what.split(), timeout=LIMIT)
    assert done.returncode != 0
    assert "got other arguments or data than rank 0" in done.stderr
    assert done.stderr.count("Traceback") == 1


@pytest.mark.mpi
def test_a_killed_rank_leaves_nobody_behind():
    done = run_mpi(2, JOB, 6, "kill", timeout=LIMIT)
    assert done.returncode != 0
    pids = [int(pid) for pid in re.findall(r"pid (\d+)", done.stdout)]
    assert pids
    deadline = time.monotonic() + ENDS_WITHIN
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, pids))


def alive(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.mpi
def test_a_callback_stops_all_ranks():
    done = run_mpi(2, JOB, 4, "callback", "stops", timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert "stopped everywhere" in done.stdout


def test_ranks_must_divide_the_workers():
    with pytest.raises(ValueError, match="workers: got 8, allowed: a multiple of the number of ranks, 3"):
        prepare(methods()[0], make_problem(), workers=8, steps=1, comm=first_of(3))


@pytest.mark.mpi
def test_the_script_of_the_documentation_runs_on_any_number_of_ranks(tmp_path):
    found = []
    for ranks in (1, 2):
        script = ROOT / "docs" / "examples" / "cluster_job.py"
        done = run_mpi(ranks, script, tmp_path / str(ranks), timeout=LIMIT, env={"PYTHONPATH": ROOT})
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / str(ranks) / "result.npz", allow_pickle=False) as stored:
            found.append((stored["x"].tobytes(), stored["history"]["f"]))
    assert found[0][0] == found[1][0] and np.isfinite(found[0][1]).all()
    assert found[0][1][-1] < found[0][1][0] == pytest.approx(np.log(2.0))


@pytest.mark.mpi
def test_the_method_in_15_lines_has_the_same_bits_on_ranks():
    """The file of docs/your-method.md, started as its commands do."""
    script = ROOT / "docs" / "examples" / "ef21.py"
    found = []
    for ranks in (1, 2):
        done = run_mpi(ranks, script, timeout=LIMIT, env={"PYTHONPATH": ROOT})
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.partition(f"{ranks} ranks: ")[2])
    assert found[0] == found[1] and re.fullmatch(r"f = 0\.\d{8}, x = [0-9a-f]{16}\n", found[0])
    own = re.search(r"^@th\.method\n.*?(?=\n\n\n)", script.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    assert len(list(filter(None, own.split("\n")))) == 15


TURNS = """
import sys, time
from pathlib import Path
from mpi4py import MPI
from theory.cluster.mpi import in_turn

comm = MPI.COMM_WORLD
here = comm.Split_type(MPI.COMM_TYPE_SHARED)
spans = []


def work():
    begin = time.monotonic()
    time.sleep(0.1)
    spans.append((begin, time.monotonic()))


in_turn(comm, work)
for row in comm.gather((comm.Get_rank(), here.Get_rank(), *spans[0]), root=0) or []:
    print("span", *row, flush=True)
"""


@pytest.mark.mpi
@pytest.mark.parametrize("machines", [1, 2])
def test_rank_0_compiles_first_then_one_rank_of_each_machine(tmp_path, machines):
    script = tmp_path / "turns.py"
    script.write_text(TURNS)
    env = {"PYTHONPATH": ROOT, "MPIR_CVAR_ODD_EVEN_CLIQUES": "1" if machines == 2 else None}  # MPICH then feigns two
    done = run_mpi(2 * machines, script, timeout=LIMIT, env=env)
    assert done.returncode == 0, done.stderr
    spans = [[float(v) for v in row.split()] for row in re.findall(r"span (.*)", done.stdout)]
    assert sorted(row[0] for row in spans) == list(range(2 * machines))
    firsts = [row for row in spans if row[1] == 0]
    if len(firsts) != machines:
        pytest.skip("MPI: this library does not feign machines")
    groups = [
        [row for row in spans if row[0] == 0],
        [row for row in firsts if row[0] != 0],
        [row for row in spans if row[1] != 0],
    ]
    for before, after in zip(groups, groups[1:], strict=False):
        for late in after:
            assert all(late[2] >= early[3] for early in before)
    assert all(late[2] >= groups[0][0][3] for late in groups[2])


LEFT = """
import gc
import numpy as np
import theory as th
from mpi4py import MPI

d = 2000
rng = np.random.default_rng(0)
problem = th.ridge((rng.standard_normal((16, d)), rng.standard_normal(16)), l2=0.1)
memory = dict(step=th.Constant(1e-4), feedback=th.ErrorFeedback())
methods = [
    th.ParallelSGD(th.TopK(3), **memory),
    th.LocalSGD(th.TopK(3), local_steps=2, **memory),
    th.ParallelSGD(step=th.Constant(1e-4), topology=th.AllReduce()),
    th.DelayedSGD(th.TopK(3), step=th.Constant(1e-4)),
    th.DPSGD(step=th.Constant(1e-4), graph=th.Ring()),
    th.ParallelSGD(step=th.Constant(1e-4), server=th.Sharded(th.Adam())),
]
for how in (dict(comm=MPI.COMM_WORLD), {}, dict(replicas=3)):
    for method in methods:
        th.run(method, problem, workers=4, steps=4, **how)  # what is made once stays
        gc.collect()
        gc.disable()
        th.run(method, problem, workers=4, steps=4, **how)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        gc.enable()
        held = {id(a): a for one in gc.garbage for a in gc.get_referents(one) if isinstance(a, np.ndarray)}
        vectors = MPI.COMM_WORLD.gather(sum(a.size >= d for a in held.values()))
        held.clear()
        gc.garbage.clear()
        if vectors is not None:
            print(*vectors, flush=True)
"""


@pytest.mark.slow
@pytest.mark.mpi
def test_a_run_that_has_ended_leaves_no_vectors_to_the_collector_of_cycles(tmp_path):
    job = tmp_path / "job.py"
    job.write_text(LEFT, encoding="utf-8")
    done = run_mpi(2, job, timeout=LIMIT, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"] * 2 * 3 * 6


def test_a_run_in_one_process_makes_no_thread(monkeypatch):
    """The end of a Thread object calls a function of Python, in which a Ctrl-C is ignored: one in four was lost."""
    made, known = [], threading.Thread.__init__
    monkeypatch.setattr(threading.Thread, "__init__", lambda self, *a, **b: made.append(a) or known(self, *a, **b))
    th.run(th.ParallelSGD(step=0.1), th.quadratic(np.ones(3), covariance=0.0), workers=2, steps=4)
    assert made == []
