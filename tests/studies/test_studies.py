"""Studies: their numbers against independent computations, their verdicts, the command and its page."""

from __future__ import annotations

import math
import sys
import types
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT

import theory as th
from theory.bounds import atomo_variance, nuqsgd_variance, qsgd_inf_variance, qsgd_variance
from theory.claims.quantizers.ternary import ACCURACY, NOISE, START, STEP, iterations_taken, typical_factor
from theory.core import require, setting
from theory.data.epsilon import Correlated, generate
from theory.experiment import ConfigurationError
from theory.experiment.cli import main
from theory.measure import moments
from theory.methods.schedules import step_size
from theory.plots import new_figure
from theory.reporting.json_values import read_record, record_path, write_record
from theory.reporting.progress import track
from theory.studies import STUDIES, StudyConfiguration, collect, report, run_study
from theory.studies.cost import choose, epoch_seconds
from theory.studies.delay import lock_free
from theory.studies.memory import mem_sgd
from theory.studies.quantizers import bits_to_accuracy as bits
from theory.studies.quantizers import nuqsgd, ternary_dimension
from theory.studies.shared.configuration import FILES, chosen, shipped_studies
from theory.studies.shared.problems import digits, iterates
from theory.studies.shared.report import Study, Table, as_markdown, as_text, put_below_mark
from theory.studies.shared.verdicts import Statement
from theory.studies.sparsifiers import spectrum


@pytest.fixture(scope="module")
def pictures():
    return digits()


@pytest.fixture(scope="module")
def small(pictures):
    return th.softmax(pictures, 1.0 / pictures.n)


def test_ranks_that_cannot_share_the_workers_are_said_so():
    alone = [epoch_seconds.Epoch("NUQSGD 4 bits", 1, False, 4.0, 1.0, 1.0, 0.0, 2.0, math.nan)]
    for ranks, told in ((1, "on one rank, or without"), (3, "on one rank only: 3 ranks do not divide 2 workers")):
        (statement,) = report(
            "epoch-seconds", {"epochs": alone, "name": "data", "n": 5, "d": 3, "ranks": ranks}
        ).statements
        assert statement.verdict == "undecided" and told in statement.numbers


# --- bits to accuracy -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def costs(small):
    ways = {name: way for name, way in bits.methods(small.d).items() if way.family in ("float32", "QSGD 4 bits")}
    return {row.method: row for row in bits.costs_of(small, "small", accuracy=0.1, limit=400, seeds=2, ways=ways)}


def test_fixed_widths_are_what_they_must_be(costs, small):
    """Dense: 32 bits a coordinate.  Packed: 4 bits, and a float for each of two buckets."""
    d = small.d
    assert costs[bits.DENSE].width == 32.0
    assert np.array_equal(costs[bits.DENSE].bits, 32.0 * d * costs[bits.DENSE].steps)
    packed = costs["QSGD 4 bits, packed"]
    assert packed.width == pytest.approx(4.0 + 2 * 32 / d, rel=1e-12)
    assert packed.dense == pytest.approx(costs[bits.DENSE].bits.mean() / packed.bits.mean())
    assert packed.sparse == pytest.approx(costs[bits.SPARSE].bits.mean() / packed.bits.mean())


def test_a_code_changes_the_bits_and_nothing_else(costs):
    packed, elias, entropy = (costs[f"QSGD 4 bits, {code}"] for code in ("packed", "Elias", "entropy"))
    for one in (elias, entropy):
        assert one.step == packed.step and np.array_equal(one.steps, packed.steps)
    assert (entropy.bits < elias.bits).all() and (elias.bits < packed.bits).all()
    dense, sparse = costs[bits.DENSE], costs[bits.SPARSE]
    assert np.array_equal(dense.steps, sparse.steps) and dense.sparse == pytest.approx(1.0 / sparse.dense)


def test_the_accuracy_was_reached_then_and_not_before(costs, small):
    """The same run once more, without a callback: f of the history is above the goal until the row that counts."""
    best, start = th.solve(small).fun, th.value(small, np.zeros(small.d))
    row, reached = costs[bits.DENSE], []
    for seed in (0, 1):
        method = th.ParallelSGD(
            th.Identity(), step=th.Constant(row.step / th.lipschitz(small)), batch=16, compress="loss"
        )
        history = th.run(method, small, workers=8, steps=400, seed=seed, record_every=5).history
        there = history["f"] - best <= 0.1 * (start - best)
        assert there.any() and not there[0]
        reached.append(history["step"][there.argmax()])
    assert row.steps.tolist() == reached


def test_who_never_comes_there_is_said_to(small):
    ways = {"dense": bits.Way("float32", th.Identity()), "sparse": bits.Way("float32", th.Identity(sparse=True))}
    for row in bits.costs_of(small, "small", accuracy=1e-6, limit=20, seeds=1, ways=ways):
        assert np.isinf(row.steps).all() and np.isinf(row.bits).all() and math.isnan(row.step)
        assert row.dense == row.sparse == 0.0
    with pytest.raises(ValueError, match="accuracy: got 1"):
        bits.costs_of(small, "small", accuracy=1.0)


@pytest.mark.parametrize(
    ("steps", "best"),
    [
        (lambda e: 10 + (e - 3) ** 2, 3),
        (lambda e: 10 + (e + 4) ** 2, -4),
        (lambda e: math.inf if e > -2 else 10 - e, -2),
        (lambda e: math.inf, None),
    ],
)
def test_the_best_step_is_found(steps, best):
    assert bits.best_step(lambda e, cap: steps(e), 1000) == best


def test_a_search_for_a_step_says_nothing_of_those_that_are_too_long(small):
    """After it they warn again."""

    def steps_at(e, cap):
        plan = th.ParallelSGD(th.Identity(), step=th.Constant(2.0**e / th.lipschitz(small)))
        return th.run(plan, small, workers=1, steps=2, seed=e).fun

    with warnings.catch_warnings():
        warnings.simplefilter("error", th.LongStepWarning)
        bits.best_step(steps_at, 2, first=8, low=7)
        with pytest.raises(th.LongStepWarning):
            steps_at(6, 2)


def test_seeds_that_never_get_there_are_counted():
    row = bits.Cost("p", "m", 1.0, np.array([5.0, math.inf]), np.array([50.0, math.inf]), math.nan, 0.0, 0.0)
    cells = bits._table("p", [row, row._replace(steps=row.steps[1:]), row._replace(steps=row.steps[:1])]).rows
    assert [one[2] for one in cells] == ["1 of 2 never", "never", "5"]


# --- NUQSGD -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", nuqsgd.THREE)
def test_chord_sums_agree_with_sampling(name):
    v = np.random.default_rng(3).standard_t(3.0, 100)
    found = moments(nuqsgd.compressors(4, 40)[name], v, 4000, seed=1)
    assert nuqsgd.relative_variance(v, *nuqsgd.levels_of(name, 4), 40) in found.variance()


@pytest.mark.parametrize("name", [*nuqsgd.THREE, *nuqsgd.RELEASED])
def test_every_quantizer_has_as_many_levels_as_bits_allow(name):
    for b in (2, 4, 6):
        levels, norm = nuqsgd.levels_of(name, b)
        assert levels.size == 2 ** (b - 1) and levels[-1] == 1.0
        assert (levels[0] == 0.0) == ("no zero" not in name)
        assert norm == (math.inf if "inf" in name else 2.0)


def test_no_variance_is_above_its_worst_case():
    rng = np.random.default_rng(0)
    vectors = {"Gaussian": rng.standard_normal(500), "lognormal": rng.lognormal(0.0, 2.0, 500)}
    for row in nuqsgd.variances(vectors, (2, 3, 4, 5), (64, 500)):
        s = 2 ** (row.bits - 1) - 1
        worst = {
            "QSGD": qsgd_variance(row.bucket, s),
            "QSGDinf": qsgd_inf_variance(row.bucket, s),
            "NUQSGD": nuqsgd_variance(row.bucket, s - 1),
        }
        assert 0.0 < row.variance <= worst[row.quantizer]


def test_the_released_levels_give_what_was_measured_with_them():
    """Per coordinate and far below the first level 1/15, the variance is close to d/225: 36.4 at d = 8192."""
    v = np.random.default_rng(0).standard_normal(8192)
    assert nuqsgd.relative_variance(v, *nuqsgd.levels_of("QSGD, no zero", 4), 8192) == pytest.approx(8192 / 225 - 1)


def test_training_counts_the_same_bits_for_all_three(pictures):
    rows = nuqsgd.train(
        th.softmax, pictures, name="digits", workers=2, batch=16, steps=20, records=4, seeds=2, length=8.0
    )
    named = {row.method: row for row in rows}
    assert list(named) == ["float32", *nuqsgd.THREE]
    assert named["float32"].bits == 32.0 and (named["float32"].variance == 0.0).all()
    assert len({named[name].bits for name in nuqsgd.THREE}) == 1
    assert named["QSGD"].bits == pytest.approx(4.0 + 32 / 640)
    for name in nuqsgd.THREE:
        row = named[name]
        assert np.array_equal(row.step, [0, 5, 10, 15, 20]) and row.setting == "digits, 2 workers"
        assert row.gap[0] > row.gap[-1] > 0.0
        assert row.variance.shape == row.loss.shape == row.accuracy.shape == (2,)
        assert row.variance.mean() == pytest.approx(row.noise.mean(), rel=1e-6)
        assert row.loss.mean() == pytest.approx(row.gap[-1], rel=1e-6)  # the last quarter of four records
        assert (0.5 < row.accuracy).all() and (row.accuracy <= 1.0).all()
    # at x = 0 the gradient is the same for all: the first variance is a chord sum of that batch
    part, _ = pictures.split(0.8, seed=0)
    start = math.log(10) - th.solve(th.softmax(part, nuqsgd.L2), 1e-9).fun
    assert named["NUQSGD"].gap[0] == pytest.approx(start, rel=1e-6)


# --- spectra ----------------------------------------------------------------------------------------------------------


def test_a_spectrum_by_hand():
    X = np.zeros((5, 2))
    X[1], X[3] = (3.0, 0.0), (0.0, 4.0)  # singular values 4 and 3; two rows and two columns: 4 floats a triplet
    found = spectrum.spectrum_of(X)
    assert found.singular_values == pytest.approx((4.0, 3.0))
    assert found.rank_one == pytest.approx(16 / 25) and found.rank_two == pytest.approx(1.0)
    assert found.stable == pytest.approx(25 / 16) and found.floats == 4
    assert found.criterion == pytest.approx(7 * 2 / 7)
    assert found.spectral == pytest.approx((49 - 25) / 25)  # p = 4/7 and 3/7
    assert found.entrywise == 0.0  # four entries may be sent, there are two


def test_one_row_has_rank_one_and_triplets_win(pictures):
    rows = spectrum.spectra(pictures, "digits", batches=(1, 8))
    assert [(row.place, row.batch) for row in rows] == [
        (place, batch) for place in ("at 0", "midway", "near x*") for batch in (1, 8, pictures.n)
    ]
    for row in rows:
        if row.batch == 1:
            assert len(row.singular_values) == 1 and row.rank_one == pytest.approx(1.0)
            assert row.spectral == 0.0 < row.entrywise
        assert row.spectral == pytest.approx(
            atomo_variance(row.singular_values, 1.0) / np.sum(np.square(row.singular_values))
        )
        assert len(row.singular_values) <= min(row.batch, 9)  # the residuals of a row sum to zero over the classes


def test_the_full_gradient_at_zero(pictures):
    """At W = 0 all classes have probability 1/10: the gradient is A'(1/10 - Y)/n."""
    onehot = np.eye(10)[pictures.y.astype(int)]
    G = np.asarray(pictures.X).T @ (0.1 - onehot) / pictures.n
    (row,) = (r for r in spectrum.spectra(pictures, "d", batches=()) if r.place == "at 0")
    assert row.singular_values == pytest.approx(np.linalg.svd(G, compute_uv=False)[:9], rel=1e-9)


def test_places_are_where_they_say(small):
    places, best = iterates(small), th.solve(small).fun
    start = th.value(small, places["at 0"])
    assert start == pytest.approx(math.log(10))
    assert 0.05 < (th.value(small, places["midway"]) - best) / (start - best) <= 0.1 + 1e-3
    assert th.value(small, places["near x*"]) - best <= 1e-3 * start


def test_a_place_that_is_not_reached_is_not_called_midway():
    rows = np.diag([1.0, 1e-4])  # 1e-8 of the curvature has most of f
    with pytest.raises(ArithmeticError, match="midway: f is .* after 2000 steps"):
        iterates(th.ridge((rows, np.array([1.0, 10.0])), l2=1e-12))


# --- ternary ----------------------------------------------------------------------------------------------------------


def test_full_precision_takes_what_the_recursion_says():
    """E||x_{t+1}||^2 = (1 - a)^2 E||x_t||^2 + a^2 E||xi||^2, and groups of four scatter around it."""
    square, steps = START, 0
    while square > ACCURACY:
        square, steps = (1.0 - STEP) ** 2 * square + STEP**2 * NOISE, steps + 1

    def simulate(method, problem, key, **options):
        return th.run(method, problem, seed=0, **options)

    taken, all_there = iterations_taken(simulate, th.Identity(), 1.0, 256, 16)
    assert all_there and abs(taken.mean() - steps) <= 1.0


def test_the_factor_of_a_gaussian_vector():
    """||v||_1/||v||_2 of x_0 + noise: E|a + z| sqrt(d/(a^2 + 1)) for z ~ N(0, 1), nearly, a^2 = START/NOISE."""
    d, a = 4096, math.sqrt(START / NOISE)
    z = np.random.default_rng(1).standard_normal(10**6)
    assert typical_factor(d, 2.0) == pytest.approx(np.abs(a + z).mean() * math.sqrt(d / (a * a + 1.0)), rel=1e-3)


def test_iterations_grow_for_the_2_norm_alone():
    rows, slopes = ternary_dimension.iterations_by_dimension((16, 64), replicas=16, seed=3)
    assert len(rows) == 8
    taken = {(row.method, row.d): row for row in rows}
    assert 1.8 < taken["ternary, 2-norm", 64].steps / taken["ternary, 2-norm", 16].steps < 2.3
    for flat in ("full precision", "QSGD, s = sqrt(d)"):
        assert 0.8 < taken[flat, 64].steps / taken[flat, 16].steps < 1.25
        assert slopes[flat][0].estimate < 0.2
    assert all(row.best <= row.steps for row in rows)


def test_the_bound_is_the_first_t_below_the_accuracy():
    """(1 - (2 a - a^2)/factor)^T (4 - floor) + floor <= 1 with a = 0.05, E||xi||^2 = 0.1, floor = 0.1 a/(2 - a)."""
    for factor in (1.0, 4.0, 32.0):
        floor = 0.005 / 1.95
        T = math.ceil(math.log((1.0 - floor) / (4.0 - floor)) / math.log(1.0 - 0.0975 / factor))
        assert ternary_dimension.predicted_steps(factor) == T


# --- Mem-SGD ----------------------------------------------------------------------------------------------------------


def curve(label, *gaps, shift=1.0, counted=64.0, sent=48.0, apart=0.0):
    """Ten runs, ``apart`` at the end, of as many epochs as there are gaps after the first; ten steps in an epoch."""
    gap = np.array([gaps] * 10, dtype=float)
    gap[:, -1] += np.linspace(-0.5 * apart, 0.5 * apart, 10)
    return mem_sgd.Curve(label, shift, np.arange(gap.shape[1], dtype=float), gap, counted, sent, 10)


def test_bits_until_a_goal_lie_between_records():
    one = curve("top-1", 1.0, 0.1, 0.001)
    assert one.bits_until(0.01) == pytest.approx(48.0 * 15) and one.bits_until(0.01, "counted") == pytest.approx(960.0)
    assert one.bits_until(0.001) == pytest.approx(48.0 * 20) and (one.bits_until(2.0) == 0.0).all()
    assert np.isinf(one.bits_until(1e-4)).all() and one.after(1) == pytest.approx(0.1)
    assert one.bits_until(np.where(np.arange(10) < 5, 0.01, 0.001)).tolist() == pytest.approx([720.0] * 5 + [960.0] * 5)


@pytest.fixture(scope="module")
def tiny():
    X, y, _ = generate(Correlated(n=400, d=20))
    return th.logistic((X, y), 1.0 / 400)


def test_step_sizes_and_averages_are_those_of_the_paper(tiny):
    options = mem_sgd.Options(problem="dense", ks=(1, 4), delay=2.0, no_delay=1.0)
    two = {way.label: way for way in mem_sgd.figure_two(tiny, options)}
    assert list(two) == [
        "SGD",
        "top-1",
        "top-4",
        "top-1, no shift",
        "rand-1",
        "rand-4",
        "rand-1, no shift",
        "top-1, no memory",
    ]
    assert two["top-4"].method.step.shift == 10.0 and two["SGD"].method.step.shift == 40.0  # 2 d/k
    assert two["rand-1, no shift"].method.step.shift == 1.0
    assert step_size(two["rand-4"].method.step, 6) == pytest.approx(2.0 * 400 / 16)
    for label, way in two.items():
        assert way.method.average == "quadratic" and way.method.batch == 1 and way.method.compress == "full"
        assert (way.method.feedback == th.ErrorFeedback()) == (
            "rand" in label or "top" in label and "memory" not in label
        )
        assert way.counted == 64 * (20 if label == "SGD" else 4 if "4" in label else 1)
    three = {way.label: way for way in mem_sgd.figure_three(tiny, options)}
    assert list(three) == ["SGD", "top-1", "rand-1", "QSGD 2 bits", "QSGD 4 bits", "QSGD 8 bits"]
    assert three["QSGD 4 bits"].method.compressor == th.Bucketed(th.QSGD(16, code=th.Elias()), 20)
    assert all(way.method.average == "uniform" for way in three.values())
    for t in (0, 7):
        assert step_size(mem_sgd.with_rate(10.0, 0.05), t) == pytest.approx(10.0 / (1.0 + 10.0 * 0.05 * t))


def test_runs_are_those_of_run_and_the_lowest_rate_wins(tiny):
    options = mem_sgd.Options(problem="dense", ks=(2,), delay=1.0, no_delay=1.0)
    ways = [way for way in mem_sgd.figure_two(tiny, options) if way.label in ("SGD", "top-2")]
    found = mem_sgd.train(tiny, ways, 0.1, epochs=2, points=2, seeds=2, seed=5, label="")
    for way, mine in zip(ways, found, strict=True):
        for r in range(2):
            history = th.run(way.method, tiny, workers=1, steps=800, seed=5 + r, record_every=200).history
            assert mine.gap[r] == pytest.approx(history["f"] - 0.1, rel=1e-12)
        assert mine.epochs.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0] and mine.steps == 400
        assert mine.sent == history["bits_up"][-1] / 800
    assert found[0].sent == 32 * 20 and found[1].sent == 2 * (32 + 5)
    (best,) = mem_sgd.choose_rates(tiny, mem_sgd.figure_three(tiny, options)[:1], (1e-4, 1.0), seed=0)
    assert best.method.step == mem_sgd.with_rate(1.0, tiny.l2) and best.label == "SGD"


def test_a_run_that_leaves_the_finite_numbers_is_kept_as_infinite(tiny):
    way = mem_sgd.figure_two(tiny, mem_sgd.Options(problem="dense", ks=(2,)))[0]
    wild = way._replace(method=way.method._replace(step=th.InverseTime(1e300, 1e-8, 1.0)))
    (found,) = mem_sgd.train(tiny, [wild], 0.0, epochs=1, points=4, seeds=1, seed=0, label="")
    assert np.isfinite(found.gap[0, 0]) and np.isinf(found.mean[-1]) and np.isinf(found.bits_until(1e-3)).all()


def test_more_entries_than_columns_are_refused(tmp_path, capsys):
    file = tmp_path / "small.svm"
    file.write_text("+1 1:1\n-1 2:1\n+1 1:1 2:1\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--config", "mem-sgd-rcv1", "--data", str(file)])
    assert "ks: got (10, 20, 30), allowed: at most d = 2" in capsys.readouterr().err


# --- lock-free --------------------------------------------------------------------------------------------------------


def speed(method, threads, until, seconds, processor):
    return lock_free.Speed("p", method, threads, until, 100.0, [seconds] * 10, [processor] * 10, 0.1)


def test_speed_ups_are_over_one_thread():
    rows = [
        speed("SGD", 1, 4.0, 10.0, 10.0),
        speed("SGD", 2, 2.5, 6.0, 12.0),
        speed("rand-5", 1, math.inf, 9.0, 9.0),
        speed("rand-5", 2, 3.0, 5.0, 9.0),
    ]
    gain = lock_free.speed_ups(rows)
    assert gain["p", "SGD", 2].loss == 1.6 and gain["p", "SGD", 2].told == pytest.approx((10 / 6, 20 / 12))
    assert gain["p", "SGD", 1].told == (1.0, 1.0) and gain["p", "SGD", 1].wall.shape == (10,)
    assert math.isnan(gain["p", "rand-5", 2].loss) and gain["p", "rand-5", 2].told == pytest.approx((1.8, 2.0))
    assert [said.verdict for said in lock_free.statements(rows)] == ["holds", "holds"]


def test_processor_time_leaves_out_what_comes_before_the_first_step(tiny, monkeypatch):
    """Of two calls of 5 and 2 seconds of processor time, 3 are those of the steps."""
    clock = iter([10.0, 15.0, 17.0])
    monkeypatch.setattr(lock_free.time, "process_time", lambda: next(clock))
    options = lock_free.Options(epochs=1, points=1, repeats=1)
    way = lock_free.methods(tiny, 2, 1.0)["SGD"]
    found = lock_free._once(tiny, way, 1, 400, options, 0, 0.0, 0.5)
    assert found[3] == pytest.approx(3.0 * 1e6 / 400)


def test_threads_are_measured_on_the_same_number_of_rows(tiny):
    options = lock_free.Options(epochs=2, points=2, repeats=1, goal=0.5)
    rows = lock_free.measure(tiny, "tiny", 2, options)
    assert [(row.method, row.threads) for row in rows] == [(m, n) for m in ("SGD", "rand-2", "top-2") for n in (1, 2)]
    for row in rows:
        # 0.5 (f(0) - f*) is passed before the first of the four looks, at which f is lower still: in between, on a line
        assert (
            len(row.seconds) == len(row.processor) == 1
            and row.seconds[0] > 0
            and 0 < row.samples < 200
            and 0 < row.until
        )
        assert row.gap < 0.5 * math.log(2) and math.isfinite(row.until)


# --- how to choose ----------------------------------------------------------------------------------------------------


def taken(method, batch=16, workers=8, network="n", steps=10.0, exchange=1.0, coding=0.0, bits=320.0):
    case = ("p", network, method, workers, batch, 0.1, 1.0)
    return choose.Seconds(*case, np.full(10, coding), exchange, [steps] * 10, bits / steps)


def test_the_competitor_is_the_better_full_precision_with_its_better_batch():
    rows = [taken(bits.DENSE), taken(bits.SPARSE, bits=64.0), taken(bits.SPARSE, 128, bits=32.0, steps=2.0)]
    rows += [taken("top-k", bits=16.0), taken("top-k", 128, bits=40.0), taken(bits.DENSE, workers=1, exchange=0.0)]
    assert choose.decide(rows, "bits")[2] == 32.0 / 16.0
    assert choose.decide(rows, "total")[:2] == (rows[2], rows[3])  # 2 steps of 2 seconds against 10 of them
    assert choose.decide(rows, "total").gain == 4.0 / 20.0
    assert choose.alone(rows).total == 10.0
    (cells,) = choose.decision_table(rows).rows
    first, second = choose.tick_tables(rows)
    assert first.rows == [("p", "0.1", "✓ 2x", "✗ 0.2x")] and len(second.rows) == 1 and second.rows[0][2][0] in "✓✗"
    assert cells[3:5] == ("top-k, B = 16", "2x") and cells[5].startswith("nothing beats float32, lossless sparse, B")
    assert cells[7] == "0.4x"
    assert {s.verdict for s in choose.statements(rows)} == {"holds", "fails"}


def test_who_never_comes_there_is_not_chosen():
    rows = [taken(bits.DENSE), taken("QSGD", steps=math.inf), taken(bits.DENSE, workers=1)]
    rows[1] = rows[1]._replace(message_bits=32.0)
    assert choose.decide(rows, "bits").gain == choose.decide(rows, "total").gain == 0.0
    assert choose.decision_table(rows).rows[0][3].startswith("nothing beats")
    rows = [taken(bits.DENSE, steps=math.inf)._replace(message_bits=32.0), taken("QSGD"), taken(bits.DENSE, workers=1)]
    assert choose.decide(rows, "bits").gain == math.inf
    assert choose.decision_table(rows).rows[0][3].startswith("QSGD")


def test_seconds_are_put_together():
    """One worker sends nothing; eight take the best known exchange, the coding, and the gradients of their batch."""
    run = choose.Run("p", "top-2", 8, 16, 0.1, 1.0, [4.0, 6.0], 100.0, 40.0, 1e-6)
    ways = {"top-2": bits.Way("top-k", th.TopK(2), th.ErrorFeedback())}
    network = th.Network(1e-3, 1e-6)
    rows = [run, run._replace(workers=1)]
    many, one = choose.seconds_of(rows, ways, {16: {"top-2": np.full(3, 3e-5)}}, 100, {"n": network})
    assert many.exchange == th.round_seconds(
        network, th.ParallelSGD(th.TopK(2), step=th.Constant(1.0)), 100, ranks=8, message_bytes=40.0
    )
    full, both = run._replace(method="full"), {16: {"full": np.zeros(3), "top-2": np.zeros(3)}}
    ways |= {"full": bits.Way("full", th.Identity(), th.NoFeedback())}
    dense, _ = choose.seconds_of([full, run], ways, both, 100, {"n": network})
    assert dense.exchange == pytest.approx(3 * 1e-3 + 3 * 400 * 1e-6)  # recursive doubling, not 7 + 3 start-ups
    assert many.total == pytest.approx(5 * (16e-6 + 3e-5 + many.exchange)) and many.bits == 500.0
    assert one.total == pytest.approx(5 * 16e-6)


# --- texts, pages and the command -------------------------------------------------------------------------------------

STUDY = Study(
    "nuqsgd",
    "A title",
    "What was run.",
    {},
    [Table("Rows", ("name", "x|y"), [("a|b", "1")])],
    [
        Statement("so", "It is so.", [False], "1 of 3."),
        Statement("not", "It is not.", [True], "2 of 3.", "our comparison"),
    ],
    None,
    "a picture",
)


def test_texts_hold_everything():
    text, page = as_text(STUDY), as_markdown(STUDY, "../figures/study-nuqsgd.png")
    for part in ("What was run.", "Rows", "It is so.", "fails", "1 of 3."):
        assert part in text and part in page
    assert 'fails: "It is so."' in text and 'holds (our comparison): "It is not."' in text
    assert "**fails**: “It is so.”" in page and "**holds** (our comparison): “It is not.”" in page
    assert "a\\|b" in page and "![a picture](../figures/study-nuqsgd.png)" in page


def test_a_page_keeps_what_stands_above_the_mark():
    page = put_below_mark("# Mine\n\nkeep\n", STUDY, "first")
    page = put_below_mark(page, STUDY, "second")
    assert page.startswith("# Mine\n\nkeep\n") and "second" in page and "first" not in page
    assert put_below_mark(page, STUDY, "second") == page
    assert put_below_mark("", STUDY, "first").startswith(f"# {STUDY.title}\n")


def test_each_of_several_cases_has_a_line():
    said = Statement("many", "So.", [True], "a 1 (holds; 6 of 6); b 2 (holds; 5 of 6); c.")
    page = as_markdown(STUDY._replace(statements=[said]), "")
    assert page.endswith("“So.”\n  - a 1 (holds; 6 of 6)\n  - b 2 (holds; 5 of 6)\n  - c.")


def test_the_command_writes_text_figure_and_page(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    assert main(["study", "ternary-dimension", "--quick", "--markdown", "docs/studies"]) == 0
    printed = capsys.readouterr().out
    assert "ternary, 2-norm" in printed and "Slope" in printed and "quick" in printed
    for ending in ("png", "pdf"):
        assert (tmp_path / "figures" / f"study-ternary-dimension.{ending}").stat().st_size > 5000
    page = tmp_path / "docs" / "studies" / "ternary-dimension.md"
    assert "(../../figures/study-ternary-dimension.png)" in page.read_text(encoding="utf-8")


# --- configurations ---------------------------------------------------------------------------------------------------


@setting
class Options(NamedTuple):
    k: int = 3
    label: str = "none"

    def domain(self):
        require(self.k >= 1, "k", self.k, "an integer, at least 1")


def echo(quick, seed, data, topics, options):
    """Measures nothing but what it was given."""
    return {"row": (str(quick), str(seed), str(data), str(topics), repr(options))}


def shown(row):
    """A study that shows it."""
    return STUDY._replace(tables=[Table("Given", ("quick", "seed", "data", "topics", "options"), [row])])


@pytest.fixture
def echoing(monkeypatch):
    """A study with options, ``echo``, beside the real ones."""
    module = types.ModuleType("theory.studies.sgd.echo")
    module.collect, module.report, module.Options = echo, shown, Options
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(STUDIES, "echo", "shows what it was given")
    monkeypatch.setitem(FILES, "echo", Path("sgd/echo.py"))


def run_echo(tmp_path, capsys, text, *flags) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    assert main(["run", "--config", str(path), *flags]) == 0
    return capsys.readouterr().out


def test_a_file_says_what_a_study_is_given_and_flags_override_it(echoing, tmp_path, capsys):
    out = run_echo(tmp_path, capsys, 'study = "echo"\nabout = "a line"\nseed = 4\nk = 7\n')
    assert out.startswith("mine: a line\n") and "Options(k=7, label='none')" in out
    assert "mine: 0 s, seed 4\n" in out and "False 4 None None" in " ".join(out.split())
    out = run_echo(tmp_path, capsys, 'study = "echo"\nseed = 4\nlabel = "so"\n', "--seed", "5", "--quick")
    assert (
        "mine: shows what it was given" in out
        and "Options(k=3, label='so')" in out
        and "True 5 None" in " ".join(out.split())
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('study = "echo"\nlable = "a"', "unknown key 'lable': did you mean label?"),
        ('study = "echo"\nsed = 1', "did you mean seed"),
        ('study = "echo"\nk = 0', "k: got 0, allowed: an integer, at least 1"),
        ('study = "echo"\nk = "many"', "k: got 'many'"),
        ('study = "echo"\nseed = -1', "seed: got -1"),
        ('study = "echo"\ndata = 3', "data: got 3, allowed: a string"),
        ('study = "ehco"', "unknown study 'ehco': did you mean echo?"),
        ("study = [", "is not a TOML file"),
        ('study = "ternary-dimension"\nk = 3', "unknown key 'k'"),
        ('studi = "echo"', "did you mean study?"),
        ('study = "echo"\ndata = "rcv1like"', "rcv1-like"),
    ],
)
def test_files_that_say_something_wrong_are_answered(echoing, tmp_path, capsys, text, answer):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--config", str(path)])
    assert answer in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nowhere.toml", "folder/nuqsgd", "nuqsg", "."])
def test_files_that_cannot_be_read_are_answered(capsys, name):
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--config", name])
    assert ("did you mean nuqsgd" if name == "nuqsg" else f"cannot read {name}") in capsys.readouterr().err


def test_both_commands_do_the_same(echoing, tmp_path, capsys, monkeypatch):
    """`study NAME` is `run --config NAME`; the page and the figures are named after the experiment."""
    import theory.plots
    from theory.reporting import files

    for name, k in (("echo-one", 1), ("echo-two", 2)):
        (tmp_path / f"{name}.toml").write_text(f'study = "echo"\nk = {k}\n', encoding="utf-8")
    monkeypatch.setattr(files, "SHIPPED", tmp_path)
    monkeypatch.setattr(theory.plots, "save_figure", lambda figure, path: [path])
    monkeypatch.setitem(globals(), "STUDY", STUDY._replace(draw=lambda: new_figure()[0]))
    pages = {}
    for first in (["study", "echo-two"], ["run", "--config", "echo-two"]):
        page = tmp_path / first[0] / "echo-two.md"
        assert main([*first, "--seed", "2", "--figures", str(tmp_path), "--markdown", str(page.parent)]) == 0
        pages[first[0]] = (page.read_text(encoding="utf-8"), capsys.readouterr().out.replace(str(page), "page"))
    assert pages["study"] == pages["run"]
    assert (
        "study-echo-two.png" in pages["run"][0]
        and "<!-- below: python -m theory.experiment figures study-echo-two" in pages["run"][0]
    )
    assert "Options(k=2" in pages["run"][1] and "study-echo-two" in pages["run"][1]
    assert chosen(["echo"]) == chosen([]) == ["echo-one", "echo-two"]  # a study stands for all of its experiments
    assert chosen(["echo-two", "echo"]) == ["echo-two", "echo-one"]


def test_every_study_ships_and_every_file_can_be_read():
    found = {name: StudyConfiguration.from_toml(name) for name in shipped_studies()}
    assert {experiment.study for experiment in found.values()} == set(STUDIES)
    for name, experiment in found.items():
        assert experiment.name == name and experiment.about
    with pytest.raises(ConfigurationError, match="unknown key 'epochs'"):
        run_study("spectrum", options={"epochs": 3})


def test_a_bar_changes_nothing_and_stays_out_of_pipes(capsys, monkeypatch):
    items = {"a": 1, "b": 2}.items()
    assert list(track(items, "label", here=False)) == list(track(items, "label")) == list(items)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("THEORY_PROGRESS", "1")
    assert list(track(items, "label")) == list(items)
    assert "label" in capsys.readouterr().err


# what the quick form gets the other way round: too few steps to diverge, too few local steps for FedProx to help
SHORT = {"gossip": {"ecd-diverges"}, "clients": {"prox"}}
# their times are those of another machine, or of one that is busy
TIMED = {
    "choose",
    "epoch-seconds",
    "lock-free",
    "sign-and-nuqsgd",
    "stragglers",
    "time-to-accuracy",
}
# statements on data that the stored record has in another form: the twin of RCV1, and one rank in place of two
TWIN = {
    "epoch-seconds": {"not-on-two-ranks"},
    "largest-batch": {"speed-up-rcv1-like", "speed-up-rcv1-like-20-copies-of-1-20"},
    "lock-free": {"rcv1-like-as-sgd", "rcv1-like-steps"},
}


@pytest.mark.slow
@pytest.mark.parametrize("shipped", shipped_studies())
def test_every_configuration_of_a_study_runs_quickly_and_draws(shipped, tmp_path, monkeypatch):
    """No verdict is the opposite of that of the stored record, but where seconds decide or the form is too short."""
    from theory.plots import save_figure

    monkeypatch.delenv("THEORY_DATA", raising=False)
    name, options = shipped_studies()[shipped], StudyConfiguration.from_toml(shipped).options
    found = collect(name, quick=True, options=options)
    study = report(name, found)
    again = report(name, read_record(write_record(tmp_path, name, {"study": name}, 1.0, found)).found)
    shown = [repr((one.setting, one.tables, one.statements)) for one in (again, study)]  # a NaN equals no other NaN
    assert shown[0] == shown[1]
    assert study.name == name and study.statements and study.tables
    assert all(len(row) == len(table.head) for table in study.tables for row in table.rows)
    record = read_record(record_path(ROOT / "figures", f"study-{shipped}"))
    stored = {said.id: said.verdict for said in report(name, record.found, shipped).statements}
    quick = {said.id: said.verdict for said in study.statements}
    contrary = {id for id in quick if {quick[id], stored.get(id, "undecided")} == {"holds", "fails"}}
    assert name in TIMED or contrary <= SHORT.get(shipped, set())
    assert set(quick) - set(stored) <= TWIN.get(shipped, set())
    assert all(len(rows) > 0 for rows in study.rows.values())
    assert all(path.stat().st_size > 5000 for path in save_figure(study.draw(), tmp_path / name))
    assert as_text(study)
    if shipped.startswith("network-"):  # on digits alone
        assert len(study.statements) > 4 and "digits" in as_markdown(study, "figure.png")


def test_the_documentation_has_a_page_of_every_experiment():
    assert {page.stem for page in (ROOT / "docs" / "studies").glob("*.md")} == set(shipped_studies())
