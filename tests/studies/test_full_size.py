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
from theory.studies.memory import mem_sgd


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
