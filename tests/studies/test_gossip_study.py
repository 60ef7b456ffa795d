"""Compressed gossip: curves against runs, the candidates for the step by hand, verdicts from made-up numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import theory as th
from theory.data import make_dataset
from theory.studies.graphs import gossip as study
from theory.studies.shared.problems import digits
from theory.wire.frame import open_frame

OPTIONS = study.Options(rounds=40, batch=2, seeds=1, features=20)


@pytest.fixture(scope="module")
def problem():
    raw = digits()
    two = make_dataset(raw.X, np.where(raw.y < 5, 1.0, -1.0), "two")
    data = study.even_rows(two, 0, 2 * study.EVEN)
    return th.logistic(data, 1.0 / data.n)


def cell_of(problem, workers=9, shards=study.SHUFFLED):
    return study.Cell("p", "ring", workers, shards, problem, th.solve(problem).fun, [0.25, 1.0], OPTIONS)


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        (lambda step, gamma: abs(step - 4.0) + abs(gamma - 0.1), (4.0, 0.1)),
        (lambda step, gamma: math.inf if step > 0.5 else 1.0 / step, (0.5, 0.3)),
        (lambda step, gamma: math.inf, (1.0, 0.3)),
    ],
)
def test_step_and_gamma_are_climbed_to_and_stay_if_all_diverge(loss, found):
    steps = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    cell = SimpleNamespace(steps=steps, trial=lambda gamma, step, seed: SimpleNamespace(loss=loss(step, gamma)))
    assert study.tuned(cell, lambda gamma: gamma, [0.03, 0.1, 0.3, 1.0], 0) == found


def test_the_grid_has_the_values_of_the_theorems(problem):
    """1/(2 L + sigma sqrt(T/N)), with the variance of all rows at 0 over the batch, and sqrt(N/(T + 1))."""
    L, T, N = th.lipschitz(problem), OPTIONS.rounds, 9
    A, b = np.asarray(problem.A), problem.b
    rows = -0.5 * b[:, None] * A
    variance = np.square(rows - rows.mean(axis=0)).sum(axis=1).mean() / OPTIONS.batch
    grid = study.steps_of(problem, N, OPTIONS)
    assert grid == sorted(grid) and set(study.MULTIPLES) <= set(grid) and len(grid) == 10
    for theirs in (1.0 / (2.0 * L + math.sqrt(variance * T / N)), math.sqrt(N / (T + 1))):
        assert min(abs(step / L - theirs) for step in grid) <= 1e-12 * theirs


def test_choco_gets_contractions_and_the_others_no_bias():
    ways = study.compressors(100)
    assert set(study.PUBLISHED) | set(study.CELLS) | {study.PLAIN} == set(ways)
    for name, (plain, contracting) in ways.items():
        assert 0.0 < th.delta(contracting, 100) <= 1.0
        if name.startswith(study.UNBIASED):
            assert th.omega(plain, 100) > 0.0
    assert ways["rand 10 %"][0] == th.RandK(10, unbiased=True) and ways["top 1 %"][1] == th.TopK(1)
    v = np.random.default_rng(0).standard_normal(100)
    for name in ("QSGD 4 bits", "QSGDinf 4 bits", "NUQSGD 4 bits"):
        assert open_frame(th.encode(ways[name][0], v, 0)).payload_bits == 4 * 100 + 32


def test_a_trial_is_a_run(problem):
    cell, L = cell_of(problem, shards=study.SORTED), th.lipschitz(problem)
    found = cell.trial(lambda **given: th.DPSGD(**given), 0.25, seed=3)
    method = th.DPSGD(step=th.Constant(0.25 / L), graph=th.Ring(), batch=2, shards="by_label")
    done = th.run(method, problem, workers=9, steps=40, seed=3, record_every=2)
    assert np.array_equal(found.gap, done.history["f"] - cell.least)
    assert np.array_equal(found.apart, done.consensus / 9) and found.sent == 32.0
    assert np.array_equal(found.bits, 64.0 * problem.d * done.history["step"])  # from two neighbours
    assert found.loss == pytest.approx(found.gap[-5:].mean())


def test_a_run_that_ends_above_the_start_diverges(problem):
    cell = cell_of(problem)
    assert math.isinf(cell.trial(lambda **given: th.DPSGD(**given), 1e4, seed=0).loss)
    rows = np.arange(study.RECORDS + 1.0)
    rising = study.Run(rows, 1.0 + rows, rows, rows, 1.0)
    assert math.isinf(rising.loss)
    assert rising._replace(gap=2.0 - rows / 20).loss == pytest.approx(1.1)
    assert math.isinf(rising._replace(gap=(2.0 - rows / 20)[:-1]).loss)  # it ended early
    assert math.isinf(rising._replace(gap=2.0 - rows / 20, apart=2.0**rows).loss)  # the mean stays, the models do not


SEEDS = 1.0 + 0.001 * np.arange(10)


def outcome(method, compressor, loss, problem="p", graph="ring", workers=8, shards=study.SHUFFLED, **more):
    row = study.Outcome(
        problem, graph, workers, shards, method, compressor, 1.0, math.nan, 4.0, loss * SEEDS, 1.0, 1e3, math.nan
    )
    return row._replace(**more)


def test_published_accuracies_within_half_a_point_are_read_as_alike():
    kept = [(name, row) for name, row in study.PUBLISHED.items() if row[study.DCD] != "diverges"]
    apart = {name: abs(float(row[study.DCD]) - float(row[study.CHOCO])) for name, row in kept}
    assert {name for name, points in apart.items() if points < 0.5} == {
        "QSGD 16 bits", "QSGD 8 bits", "rand 50 %", "top 50 %", "top 10 %", "sign",
    }  # fmt: skip


def test_a_row_that_diverges_is_shown_as_such():
    table = study.published_table("p", [outcome(study.DCD, "rand 10 %", math.inf, omega=9.0)])
    (line,) = (line for line in table.rows if line[0] == "rand 10 %")
    assert line[1:] == ("diverges", "", "91.87", "4", "6.59", "diverges", "", "")
