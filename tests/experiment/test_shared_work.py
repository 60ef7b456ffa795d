"""`verify`, `audit` and `study` on ranks: each takes its share, and what is shown is that of one process."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import run_mpi

import theory as th
from theory.claims import verify
from theory.claims.base import REGISTRY, registered
from theory.experiment.cli import main
from theory.experiment.ranks import shared_out
from theory.reporting.json_values import read_record

CLAIMS = ["qsgd.variance", "topk.contraction", "ef.span", "memsgd.theorem", "randk.variance"]


def ledger(path) -> list[dict]:
    found = json.loads(path.read_text(encoding="utf-8"))["results"]
    return [{name: value for name, value in result.items() if name != "seconds"} for result in found]


def test_alone_every_item_is_done_here():
    assert shared_out(None, "abc", str.upper) == ({0: "A", 1: "B", 2: "C"}, False)


def test_an_interruption_keeps_what_is_done():
    def work(item):
        if item == 2:
            raise KeyboardInterrupt
        return item

    assert shared_out(None, [0, 1, 2, 3], work) == ({0: 0, 1: 1}, True)


@pytest.mark.slow
def test_ranks_share_claims(tmp_path, capsys):
    assert main(["verify", "--quick", *CLAIMS, "--json", str(tmp_path / "one.json")]) == 0
    alone = capsys.readouterr().out
    done = run_mpi(2, "-m", "theory.experiment", "verify", "--quick", *CLAIMS, "--json", tmp_path / "ranks.json")
    assert done.returncode == 0, done.stderr
    assert ledger(tmp_path / "one.json") == ledger(tmp_path / "ranks.json")
    verdicts = [[line.split()[0:3] for line in text.splitlines() if "." in line[:20]] for text in (alone, done.stdout)]
    assert verdicts[0][: len(CLAIMS)] == verdicts[1][: len(CLAIMS)]


@pytest.mark.slow
def test_ranks_share_compressors():
    done = run_mpi(2, "-m", "theory.experiment", "audit", "--quick", "TopK", "QSGD")
    assert done.returncode == 0, done.stderr
    rows = [line.partition("(")[0] for line in done.stdout.splitlines() if line.startswith(("TopK(", "QSGD("))]
    count = len(rows) // 2  # each is in the table of variances, and in that of bits
    assert set(rows) == {"TopK", "QSGD"} and f"{count} of {count} compressors" in done.stdout, done.stdout


@pytest.mark.slow
def test_ranks_share_studies(tmp_path):
    names = ["spectrum", "conef-digits"]
    done = run_mpi(2, "-m", "theory.experiment", "study", "--quick", *names, "--figures", tmp_path, timeout=500)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert f"\n{name}: " in done.stdout and (tmp_path / f"study-{name}.png").stat().st_size > 5000


@pytest.mark.full
@pytest.mark.slow
def test_ranks_run_a_study_together(tmp_path):
    names = ["stragglers", "epoch-seconds"]
    done = run_mpi(2, "-m", "theory.experiment", "study", "--quick", *names, "--figures", tmp_path, timeout=500)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert f"\n{name}: " in done.stdout and (tmp_path / f"study-{name}.png").stat().st_size > 5000
    delays = read_record(tmp_path / "records" / "study-stragglers.json").found["delays"]
    assert {row.ranks for row in delays} == {2} and all(row.measured >= row.clock for row in delays)


def fastest_k(comm=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((64, 5))
    problem, found = th.logistic((X, np.sign(X[:, 0] + 0.1)), 0.1), []
    for compressor in (None, th.QSGD(7), th.TopK(2)):
        result = th.run_fastest_k(
            problem,
            workers=4,
            fastest=2,
            rounds=20,
            step=0.5,
            times=th.Pareto(2.0),
            compressor=compressor,
            delay=1e-4,
            comm=comm,
        )
        assert result.measured_seconds[-1] >= 1e-4 * result.history["seconds"][-1]
        found.append(float(result.last.sum()))
    return found


@pytest.mark.slow
def test_the_fastest_on_ranks_with_delays():
    done = run_mpi(2, __file__)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == fastest_k()


if __name__ == "__main__":
    from mpi4py import MPI

    with th.abort_on_error(MPI.COMM_WORLD):
        values = fastest_k(MPI.COMM_WORLD)
        if MPI.COMM_WORLD.Get_rank() == 0:
            json.dump(values, sys.stdout)


@pytest.mark.slow
def test_an_error_of_one_rank_reaches_all():
    """The second study, on the second rank, refuses these data; without an agreement the first rank would wait."""
    names = ["spectrum", "mem-sgd-rcv1"]
    done = run_mpi(2, "-m", "theory.experiment", "study", "--quick", "--data", "diabetes", *names, timeout=100)
    assert done.returncode == 2 and "error: " in done.stderr, done.stderr


def test_data_that_claims_cannot_use_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["verify", "--quick", "--data", "diabetes", "memsgd.theorem.rcv1"])
    assert "two classes" in capsys.readouterr().err


@pytest.mark.slow
def test_claims_on_data_of_ones_own(tmp_path, capsys):
    path = tmp_path / "ledger.json"
    names = ["ridge.minimum.rcv1", "ridge.sgd.rcv1"]
    assert main(["verify", "--quick", "--data", "digits", *names, "--json", str(path)]) == 0
    assert "digits" in json.loads(path.read_text(encoding="utf-8"))["data"] and "on digits" in capsys.readouterr().out


def test_processes_share_claims(tmp_path, capsys):
    """From eight claims on, each core has a process; a claim of a user's file is known there, too."""
    own = tmp_path / "own_claims.py"
    own.write_text(
        "from theory.claims import claim, identity\n"
        '@claim("own.sum", title="A sum", statement="1 + 1 is 2.", source="derived", kind="identity", subject=1,\n'
        '       mutants={"two": 2})\n'
        "def _(context):\n"
        '    yield identity("sum", context.subject + 1, 2)\n',
        encoding="utf-8",
    )
    cheap = ["topk.contraction", "randk.variance", "randk.unbiased", "randk.contraction", "zero.volume", "zero.example"]
    every = [*cheap, "qsgd.variance"]
    arguments = ["verify", "--quick", str(own), *every]
    before = dict(registered())
    try:
        assert main([*arguments, "--json", str(tmp_path / "many.json")]) == 0
        many = capsys.readouterr().out
        found = [verify(id, quick=True) for id in ("own.sum", *every)]
    finally:
        REGISTRY.clear()
        REGISTRY.update(before)
    expected = [
        {name: value for name, value in json.loads(json.dumps(one.as_dict())).items() if name != "seconds"}
        for one in found
    ]
    written = ledger(tmp_path / "many.json")  # and how to cite them
    assert [{name: row[name] for name in one} for row, one in zip(written, expected, strict=True)] == expected
    assert "8 of 8 claims" in many


def passes_alone(script: str) -> None:
    """In a process that has imported nothing yet."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_one_claim_needs_one_file():
    script = (
        "import sys, theory as th\n"
        "th.explain('qsgd.variance')\n"
        "from theory.core.subjects import SUBJECTS\n"
        "files = [name for name in sys.modules if name.startswith(tuple(f'theory.claims.{s}.' for s in SUBJECTS))]\n"
        "assert files == ['theory.claims.quantizers.qsgd'], files\n"
        "every = th.list_claims()\n"
        "assert len(every) == len(set(every)) > 300 and every.index('qsgd.variance') < every.index('adam.step')\n"
    )
    passes_alone(script)


def test_the_id_of_a_file_that_is_not_loaded_is_taken():
    script = (
        "from theory.claims import claim\n"
        "try:\n"
        "    said = dict(title='x', statement='x', source='derived', kind='identity')\n"
        "    claim('qsgd.variance', **said, subject=1, mutants={'a': 2})(lambda context: [])\n"
        "except ValueError as error:\n"
        "    assert 'not taken' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('registered twice')\n"
    )
    passes_alone(script)


def test_a_run_asks_no_blas(monkeypatch):
    """Its threads wait for work by spinning, which takes a processor from other ranks."""
    problem = th.quadratic(np.linspace(1.0, 2.0, 100), covariance=0.0)

    def refuse(*_, **__):
        raise AssertionError("a run called BLAS")

    for module, name in ((np.linalg, "norm"), (np, "dot"), (np, "vdot"), (np, "inner"), (np, "matmul")):
        monkeypatch.setattr(module, name, refuse)
    result = th.run(th.ParallelSGD(step=th.Constant(0.1)), problem, workers=2, steps=3, x0=np.ones(100))
    slope = np.linspace(1.0, 2.0, 100) * result.x
    assert result.history["gradient_norm"][-1] == pytest.approx(np.sqrt(np.square(slope).sum()), rel=1e-12)


@pytest.mark.mpi
@pytest.mark.parametrize("told", ["1", None])
def test_what_it_costs_to_write_no_bytecode_is_said_once(told):
    done = run_mpi(2, "-m", "theory.experiment", "list", env={"PYTHONDONTWRITEBYTECODE": told, "THEORY_PROGRESS": None})
    assert done.returncode == 0 and done.stderr.count("bytecode") == (1 if told else 0), done.stderr
