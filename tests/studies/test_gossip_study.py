"""Compressed gossip: curves against runs, formulas against sums by hand, verdicts from made-up numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory.data import make_dataset
from theory.studies import gossip as study
from theory.studies.reports import gossip as made
from theory.studies.reports import gossip_page as page
from theory.studies.shared.problems import digits
from theory.wire.frame import open_frame

OPTIONS = study.Options(rounds=40, batch=2, seeds=1, features=20)


@pytest.fixture(scope="module")
def problem():
    raw = digits()
    two = make_dataset(raw.X, np.where(raw.y < 5, 1.0, -1.0), "two")
    data = study.even_rows(two, 0, 2 * study.EVEN)
    return th.logistic(data, 1.0 / data.n)


def cell_of(problem, workers=9, shards=made.SHUFFLED):
    best = th.solve(problem)
    return study.Cell(problem, best.fun, np.asarray(best.x), th.Ring(), workers, shards, [0.25, 1.0], OPTIONS)


@pytest.mark.parametrize(
    ("losses", "first", "found"),
    [
        ([5.0, 3.0, 1.0, 2.0], 1, (2, 1.0)),
        ([1.0, 3.0, math.inf, math.inf], 2, (0, 1.0)),
        ([math.inf] * 3, 1, (1, math.inf)),
        ([2.0], 0, (0, 2.0)),
    ],
)
def test_the_search_climbs_and_tells_if_all_diverge(losses, first, found):
    assert study.search(lambda k: losses[k], list(range(len(losses))), first) == found


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
    assert set(made.PUBLISHED) | set(made.CELLS) == set(ways)
    for name, way in ways.items():
        assert 0.0 < th.delta(way[made.CHOCO], 100) <= 1.0
        if name.startswith(study.UNBIASED):
            assert th.omega(way[made.DCD], 100) > 0.0
    assert ways["rand 10 %"][made.ECD] == th.RandK(10, unbiased=True) and ways["top 1 %"][made.CHOCO] == th.TopK(1)
    v = np.random.default_rng(0).standard_normal(100)
    for name in ("QSGD 4 bits", "QSGDinf 4 bits", "NUQSGD 4 bits"):
        assert open_frame(th.encode(ways[name][made.DCD], v, 0)).payload_bits == 4 * 100 + 32


def test_a_trial_is_a_run(problem):
    cell, L = cell_of(problem, shards=made.SORTED), th.lipschitz(problem)
    found = cell.trial(lambda **given: th.DPSGD(**given), 0.25, seed=3)
    method = th.DPSGD(step=th.Constant(0.25 / L), graph=th.Ring(), batch=2, shards="by_label")
    done = th.run(method, problem, workers=9, steps=40, seed=3, record_every=2)
    assert np.array_equal(found.gap, done.history["f"] - cell.least)
    assert np.array_equal(found.apart, done.consensus / 9) and found.sent == 32.0
    assert np.array_equal(found.bits, 64.0 * problem.d * done.history["step"])  # from two neighbours
    assert found.loss == pytest.approx(found.gap[-5:].mean()) and found.consensus == pytest.approx(
        found.apart[-5:].mean()
    )


def test_a_run_that_ends_above_the_start_diverges(problem):
    cell = cell_of(problem)
    assert math.isinf(cell.trial(lambda **given: th.DPSGD(**given), 1e4, seed=0).loss)
    rows = np.arange(study.RECORDS + 1.0)
    rising = study.Trial(rows, 1.0 + rows, rows, rows, 1.0)
    assert math.isinf(rising.loss) and math.isinf(rising.consensus)
    assert rising._replace(gap=2.0 - rows / 20).loss == pytest.approx(1.1)
    assert math.isinf(rising._replace(gap=(2.0 - rows / 20)[:-1]).loss)  # it ended early
    assert math.isinf(rising._replace(gap=2.0 - rows / 20, apart=2.0**rows).loss)  # the mean stays, the models do not


@pytest.mark.parametrize("shards", [made.SHUFFLED, made.SORTED])
def test_the_expected_consensus_is_that_of_the_recursion(problem, shards):
    """Gradients fixed at x but for l2: the covariance of all workers' models, iterated until it stays."""
    N, l2, step, batch = 9, problem.l2, 20.0, 2
    x = np.random.default_rng(0).standard_normal(problem.d)
    W = th.mixing(th.Ring(), N)
    A, b = np.asarray(problem.A), problem.b
    order = np.argsort(b, kind="stable") if shards == made.SORTED else np.arange(problem.n)
    rows = -(b / (1.0 + np.exp(b * (A @ x))))[:, None] * A
    parts = rows[order].reshape(N, -1, problem.d)
    means = parts.mean(axis=1)
    noise = np.square(parts - means[:, None]).sum(axis=2).mean() / batch
    M, away = W.matrix - step * l2 * np.eye(N), np.eye(N) - 1.0 / N
    X, P = np.zeros_like(means), np.zeros((N, N))
    for _ in range(4000):
        X, P = M @ X - step * means, M @ P @ M.T + step**2 * noise * np.eye(N)
    expected = (np.square(away @ X).sum() + np.trace(away @ P)) / N
    found = study.expected_consensus(problem, x, W, step, batch, shards)
    assert found == pytest.approx(expected, rel=1e-6)
    other = made.SORTED if shards == made.SHUFFLED else made.SHUFFLED
    assert abs(study.expected_consensus(problem, x, W, step, batch, other) / found - 1.0) > 0.02


SEEDS = np.array([0.99, 1.0, 1.01])


def outcome(method, compressor, loss, problem="p", graph="ring", workers=8, shards=made.SHUFFLED, **more):
    row = made.Outcome(
        problem, graph, workers, shards, method, compressor, 1.0, math.nan, 4.0, loss * SEEDS, 1.0, math.nan, 1e3, 0.01,
        loss, math.nan,
    )  # fmt: skip
    return row._replace(**more)


def sweep(dcd, ecd, choco):
    """A sweep in which each method has one loss for all compressors."""
    losses = {made.DCD: dcd, made.ECD: ecd, made.CHOCO: choco}
    return [outcome(m, c, losses[m]) for c, methods in made.PUBLISHED.items() for m in methods]


@pytest.mark.parametrize(
    ("losses", "verdicts"),
    [
        ((1.0, 1.0, 1.0), "holds fails fails fails holds fails holds fails holds"),
        ((math.inf, math.inf, 1.0), "fails fails holds holds fails holds fails holds fails"),
        ((1.0, 3.0, 1.0), "fails holds fails fails holds fails holds fails holds"),
        ((2.5, math.inf, 1.0), "fails fails holds holds fails fails fails holds fails"),
    ],
)
def test_verdicts_on_the_table_follow_the_numbers(losses, verdicts):
    assert [said.verdict for said in made.table_statements(sweep(*losses))] == verdicts.split()


def test_published_accuracies_within_half_a_point_are_read_as_alike():
    apart = {name: abs(row[made.DCD] - row[made.CHOCO]) for name, row in made.PUBLISHED.items()}
    assert {name for name, points in apart.items() if points < 0.5} == {
        "QSGD 16 bits", "QSGD 8 bits", "rand 50 %", "top 50 %", "top 10 %", "sign",
    }  # fmt: skip


def test_verdicts_on_the_cells_follow_the_numbers():
    def cells(nuqsgd, qsgd, inf, shards=made.SHUFFLED, full=1.0):
        given = {"shards": shards}
        rows = [outcome(made.FULL, made.PLAIN, full, consensus=3.0, expected=1.0, bits=1e4, **given)]
        for name, loss in {"NUQSGD": nuqsgd, "QSGD": qsgd, "QSGDinf": inf}.items():
            rows.append(outcome(made.ECD, f"{name} 4 bits", loss, **given))
        rows.append(outcome(made.CHOCO, made.PLAIN, 1.0, bits=1e4, **given))
        return rows + [
            outcome(made.CHOCO, "NUQSGD 4 bits", 1.1, **given),
            outcome(made.DCD, "NUQSGD 4 bits", 1.0, **given),
        ]

    def verdicts(rows):
        return [said.verdict for said in made.cell_statements(rows)]

    first = verdicts(cells(1.0, 2.0, 1.1) + cells(1.0, math.inf, 1.1, made.SORTED, 2.0))
    assert first == ["holds", "holds", "holds", "fails", "holds", "in part", "holds", "holds", "fails"]
    both = cells(math.inf, math.inf, 1.0)
    assert verdicts(both)[:4] == ["undecided", "fails", "fails", "holds"]
    assert made.cell_statements(both)[0].numbers == "In all 1 cells both diverge."


def test_dcd_is_held_to_the_threshold_of_its_graph():
    """On a ring of 8 it is 1.366: rand 50 % has d/k - 1 = 1, rand 10 % has 9."""
    assert made.dcd_limit("ring", 8) == pytest.approx(1.36588, abs=1e-4)
    rows = [outcome(made.DCD, "rand 50 %", 1.0, omega=1.0), outcome(made.DCD, "rand 10 %", math.inf, omega=9.0)]
    assert made.limit_statement(rows, []).verdict == "holds"
    assert made.limit_statement([rows[0], rows[1]._replace(losses=SEEDS)], []).verdict == "in part"
    assert made.limit_statement([rows[0]._replace(losses=math.inf * SEEDS)], []).verdict == "fails"


def test_one_seed_that_diverges_is_not_yet_divergence():
    some = np.array([1.0, math.inf, 1.0])
    row, good = outcome(made.DCD, "rand 10 %", math.inf, omega=9.0, losses=some), outcome(made.CHOCO, "rand 10 %", 1.0)
    assert made.limit_statement([row], []).verdict == "undecided"
    swept = [one._replace(losses=some) if one.method == made.ECD else one for one in sweep(1.0, math.inf, 1.0)]
    said = {one.id: one.verdict for one in made.table_statements(swept)}
    assert said["ecd-diverges"] == "undecided"
    assert made.far(row, good) == made.alike(row, good) == made.alike(good, row) == "undecided"
    assert made.far(good, row) == "fails"  # whatever the third seed does, the first is not far worse


def test_a_row_that_diverges_is_shown_as_such():
    table = page.published_table("p", [outcome(made.DCD, "rand 10 %", math.inf, omega=9.0)])
    (line,) = (line for line in table.rows if line[0] == "rand 10 %")
    assert line[1:] == ("diverges", "", "91.87", "4", "6.59", "diverges", "", "")


@pytest.mark.parametrize("bad", [{"workers": (8,)}, {"workers": ()}, {"rounds": 5}, {"table": 2}, {"seeds": 0}])
def test_options_outside_the_domain_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        study.Options(**bad)
