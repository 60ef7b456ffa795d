"""Studies on as many rows as the sources have: small, on ranks, and from made-up runs."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import run_mpi

from benchmarks import full_size_ranks as study
from theory.reporting.json_values import from_json
from theory.studies import mem_sgd

SIZE = {"name": "data", "n": 1000, "d": 100, "entries": 5000}


def made_up(ends, seconds, held, shared=False):
    """The report on eight runs that end between two values, straight lines in log(f - f*), after so many seconds."""
    names = study.methods(100, study.Sizes(rows=1000))
    rows = []
    for name in names:
        heights = np.geomspace(1.0, np.linspace(*ends.get(name, [1e-3, 1e-3]), 8), 5).T
        clock = np.linspace(0.0, np.linspace(*seconds.get(name, [1.0, 1.0]), 8), 5).T
        rows.append(study.Trained(name, 1.0, 1, 4, heights, clock, np.arange(5.0)))
    times, sizes = {"loaded": 1.0, "solved": 1.0}, study.Sizes(rows=1000, seeds=8)._asdict()
    told = study.report(rows, held, SIZE, {"f": 0.1, "gap": 0.0}, times, shared, sizes)
    return {said.id: said.verdict for said in told.statements}


def test_verdicts_are_those_of_the_runs():
    fine = [study.Held(10.0, 100.0, 50.0), study.Held(20.0, 110.0, 50.0)]
    slow = {study.LEVELS: [2.0, 2.1], study.SIGN: [3.0, 3.1]}
    assert made_up({}, slow, fine) == {
        "memory-as-plain": "holds",
        "coded-as-batch": "holds",
        "seconds": "holds",
        "memory": "holds",
    }
    quick = {study.BATCH: [2.0, 2.1], study.SIGN: [3.0, 3.1]}
    higher = {study.MEMORY: [2e-3, 2.1e-3], study.SIGN: [5e-3, 5.1e-3]}
    limit = study.ALLOWED + study.VECTORS * 8e-6 * SIZE["d"]
    beyond = [study.Held(10.0, 10.0 + limit - 0.1, 0.0), study.Held(10.0, 10.0 + limit + 0.1, 0.0)]
    assert made_up(higher, quick, beyond) == {
        "memory-as-plain": "fails",
        "coded-as-batch": "in part",
        "seconds": "in part",
        "memory": "in part",
    }


def test_seconds_of_ranks_that_share_cores_or_of_the_first_record_decide_nothing():
    slow, held = {study.LEVELS: [2.0, 2.1], study.SIGN: [3.0, 3.1]}, [study.Held(10.0, 100.0, 50.0)]
    assert made_up({}, slow, held, shared=True)["seconds"] == "undecided"
    assert made_up({study.BATCH: [1e-12, 1e-12]}, slow, held)["seconds"] == "undecided"


def test_a_run_that_diverged_is_at_no_height():
    history = np.zeros(2, [("f", float), ("seconds", float), ("bits_up", float)])
    history["f"] = 1.0, 2.0
    fine, lost = (SimpleNamespace(history=history, status=status) for status in (0, 2))
    np.testing.assert_array_equal(
        study._trained("", 1.0, 1, 1, [fine, lost], 0.5).gap, np.float32([[0.5, 1.5], [0.5, np.inf]])
    )


def test_seconds_to_a_goal_are_interpolated_in_the_logarithm():
    row = study.Trained(
        "", 1.0, 1, 2, np.array([[1.0, 1e-2, 1e-4], [1.0, 0.5, 0.4]]), np.array([[0.0, 2.0, 6.0]] * 2), 0
    )
    found = row.until(1e-3)
    assert found[0] == pytest.approx(4.0, rel=1e-6) and math.isinf(found[1])
    assert row.until(2.0)[0] == 0.0  # it began there
    assert math.isnan(row.until(0.1)[0])  # before its second record


@pytest.mark.slow
@pytest.mark.mpi
def test_ranks_find_what_one_process_finds():
    found = []
    for ranks in (1, 2):
        done = run_mpi(ranks, "-m", "benchmarks.full_size_ranks", "[true, null]", timeout=300)
        assert done.returncode == 0, done.stderr
        found.append(from_json(json.loads(done.stdout.splitlines()[-1])))
    alone, shared = ([study.Held(*one) for one in each["held"]] for each in found)
    assert len(shared) == 2 and len(alone) == 1
    assert shared[0].shard + shared[1].shard == pytest.approx(alone[0].shard, rel=1e-3)
    rows = ([study.Trained(*row) for row in each["rows"]] for each in found)
    for mine, theirs in zip(*rows, strict=True):
        assert (mine.method, mine.rate, mine.rounds) == (theirs.method, theirs.rate, theirs.rounds)
        np.testing.assert_allclose(mine.gap, theirs.gap, rtol=1e-5)
        np.testing.assert_array_equal(mine.sent, theirs.sent)


def test_the_rows_of_figure_two_are_those_asked_for():
    few = mem_sgd.Options(rows=300, ks=(10,))
    assert mem_sgd._problem(few, None, False)[0].n == 300
    assert mem_sgd._problem(few, None, True)[0].n == 2000  # the quick form keeps its own
    assert mem_sgd._problem(few, "breast_cancer", False)[0].n == 569
