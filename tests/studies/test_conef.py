"""The studies of contractive error feedback: methods and their constants, verdicts, bisection, and small runs."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

import theory as th
from theory.bounds import block_kept_square, kept_square
from theory.cluster.calls import list_calls
from theory.cluster.driver import make_run
from theory.cluster.setup import prepare
from theory.cluster.simulator import Memory
from theory.experiment import ConfigurationError
from theory.methods.memory.error_feedback import memory_bytes
from theory.studies import run_study
from theory.studies.memory import conef_table_1
from theory.studies.memory.conef_table_1 import overlap, smallest
from theory.studies.shared import conef_training as training
from theory.studies.shared.conef_training import EF, QUANTIZED, SGD, UNBIASED, Options, Outcome, fixed, sketched
from theory.studies.shared.problems import digits, widened

D = 1000


# --- what is compared -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.05])
def test_constants_of_the_methods(share):
    """kappa by its definition; theta is (d-1)/w for a fresh sketch, 40/(4 15^2) for 15 levels in buckets of 40."""
    found = training.ways(D, share)
    assert found[EF].kappa == pytest.approx(1 - share)
    assert found[sketched(0.6)].kappa == pytest.approx((1 + 999 / 400) * (1 - share))
    assert found[sketched(0.9)].kappa == pytest.approx((1 + 999 / 100) * (1 - share))
    assert found[QUANTIZED].kappa == pytest.approx((1 + 40 / (4 * 15**2)) * (1 - share)) and found[QUANTIZED].kappa < 1
    assert math.isnan(found[SGD].kappa) and math.isnan(found[SGD].damping)
    for saving, load in ((0.6, 3), (0.9, 11)):
        ratio = kept_square(load, share) / (load * share)
        assert found[fixed(saving)].damping == pytest.approx(0.1 * ratio)
        assert found[fixed(saving, authors=False)].damping == pytest.approx(1.0)


def test_memories_have_the_size_that_their_names_say():
    found, full = training.ways(D, 0.1), 4 * D
    size = {name: memory_bytes(way.feedback, way.compressor, D, 32, 32) for name, way in found.items()}
    assert size[EF] == full and size[SGD] == size[UNBIASED] == 0
    for saving in (0.6, 0.9):
        assert size[fixed(saving)] == pytest.approx((1 - saving) * full)
        assert size[sketched(saving)] == pytest.approx((1 - saving) * full, abs=24)  # and the key of its hash
    assert size[QUANTIZED] == pytest.approx(D * (5 + 32 / 40) / 8, abs=24)  # a sign, four bits; a float a bucket


def test_the_most_frequent_columns_stay_in_their_order():
    X = np.array([[0.0, 1.0, 5.0, 0.0], [2.0, 0.0, 6.0, 0.0], [0.0, 3.0, 7.0, 4.0]])
    data = th.data.make_dataset(X, np.array([0.0, 1.0, 0.0]), "small")
    assert training.most_frequent(data, 2).X.toarray().tolist() == [[1.0, 5.0], [0.0, 6.0], [3.0, 7.0]]
    assert training.most_frequent(data, 9).X.toarray().tolist() == X.tolist()


def outcome(method, accuracy=0.95, step=1.0, loss=0.3, success=True, memory=4000, apart=0.0, d=1000, momentum=0.9):
    return Outcome(
        method,
        d,
        momentum,
        step,
        accuracy + apart * np.linspace(-1.0, 1.0, 10) if success else np.full(10, math.nan),
        loss if success else math.nan,
        10,
        1.0,
        3200.0,
        memory,
        success,
        "all steps done" if success else "diverged: f is 1e+20",
    )


def test_a_run_that_diverged_costs_more_than_all_and_takes_no_other_with_it():
    row = outcome("m", success=False)._replace(accuracy=np.array([0.9, math.nan, 0.8]))
    assert row.cost.tolist() == [-0.9, math.inf, -0.8]


def test_the_best_step_has_the_least_loss_of_those_that_came_to_their_end():
    rows = [outcome("a", step=0.25, loss=0.5), outcome("a", step=1.0, loss=0.2), outcome("a", step=4.0, success=False)]
    rows += [outcome("b", step=4.0, success=False), outcome("b", step=1.0, success=False)]
    rows += [outcome("c", step=1.0, success=False), outcome("c", step=4.0, loss=9.0)]
    best = training.best_outcomes(rows)
    assert [best[name].step for name in "abc"] == [1.0, 1.0, 4.0]
    assert [best[name].success for name in "abc"] == [True, False, True]


def test_a_grid_is_widened_until_the_best_step_is_inside():
    def search(best, times=4, grid=(1.0, 4.0)):
        tried = {step: abs(math.log(step / best)) for step in grid}
        widened(tried, lambda step: abs(math.log(step / best)), lambda cost: cost, times)
        return sorted(tried)

    assert search(70.0) == [1.0, 4.0, 16.0, 64.0, 256.0]
    assert search(0.2) == [0.0625, 0.25, 1.0, 4.0]
    assert search(70.0, times=1) == [1.0, 4.0, 16.0]  # and the best one is still an end
    assert search(1.0, grid=(1.0,)) == [1.0]
    tried = {1.0: math.inf, 4.0: math.inf}  # where all diverge, shorter ones are tried
    widened(tried, lambda step: abs(math.log(step / 0.06)) if step < 0.1 else math.inf, lambda cost: cost)
    assert sorted(tried) == [0.015625, 0.0625, 0.25, 1.0, 4.0]


# --- what holds -------------------------------------------------------------------------------------------------------


# --- table 1 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frontier", [1, 2, 7, 31, 32])
def test_bisection_finds_a_known_frontier_with_few_questions(frontier):
    asked = []
    assert smallest(lambda n: asked.append(n) or n >= frontier, range(1, 33)) == frontier
    assert len(asked) <= 6 and len(set(asked)) == len(asked)


def test_bisection_says_when_there_is_none():
    assert smallest(lambda n: False, range(1, 33)) is None
    assert smallest(lambda n: n >= 0.5, (0.1, 0.4, 0.6)) == 0.6


def test_overlap_is_that_of_the_fullest_bucket():
    """All d places of the block are counted, for the buckets that the sketch of each unit vector shows."""
    d, k = 30, 5
    sketch = th.CountSketch(width=6, hash=th.FIXED, seed=4)
    shared = np.array([th.compress(sketch, unit, 0) != 0 for unit in np.eye(d)])
    assert np.array_equal(shared, shared.T) and shared.sum(axis=1).max() > shared.sum(axis=1).min()
    blocks = np.array([np.isin(np.arange(d), (start + np.arange(k)) % d) for start in range(d)])
    kept = blocks.astype(int) @ shared  # coordinates of each one's bucket, for each start
    ratios = (kept**2).mean(axis=0) / kept.mean(axis=0)
    assert overlap(sketch._replace(hash=th.FRESH), d, k) == pytest.approx(ratios.max())
    assert overlap(th.CountSketch(width=1), 12, 3) == pytest.approx(3.0)  # the bucket of all always keeps k
    assert ratios.max() >= block_kept_square([0], d, k) / (k / d)


# --- options and runs -------------------------------------------------------------------------------------------------


def test_a_block_needs_a_coordinate():
    with pytest.raises(ConfigurationError, match="share"):
        run_study("conef", quick=True, options={"problem": "digits", "features": 1, "share": 0.01})


def test_the_key_of_a_fixed_hash_has_one_type():
    """Whatever the seed: of two types, everything that takes part in a step would be compiled twice."""
    found = []
    for seed in range(8):
        rule = th.LinearSketchFeedback(th.CountSketch(4, seed=seed))
        method = th.ParallelSGD(th.RandomBlock(2), step=th.Constant(0.1), feedback=rule)
        problem = th.quadratic(np.ones(8), covariance=0.0)
        run = make_run(prepare(method, problem, workers=1, steps=1), Memory())
        calls = list_calls(run, run.setup.method.round)
        found += [call.arguments.s for call in calls if call.name == "Sketch"]
    assert len(found) == 8 and len({numba.typeof(sketches) for sketches in found}) == 1
    assert len({int(sketches.hash[0]) >> 63 for sketches in found}) == 2  # some are above 2**63, and some below


@pytest.mark.slow
def test_a_small_run_keeps_the_books():
    """Payload: the start and k floats, or d floats, a round.  The fresh sketch diverges, the fixed one does not."""
    data = training.most_frequent(digits(), 64)
    options = Options(steps=40, seeds=2, grid=(1.0,), workers=4, momenta=(0.9,))
    chosen = {
        name: way for name, way in training.ways(640, 0.1).items() if name in (SGD, EF, sketched(0.9), fixed(0.9))
    }
    rows = {row.method: row for row in training.train(data, chosen, options)}
    assert rows[SGD].bits == 40 * 32 * 640 and rows[SGD].memory == 0
    assert rows[EF].bits == 40 * 32 * 64 and rows[EF].memory == 4 * 640
    assert rows[EF].success and rows[fixed(0.9)].success
    assert rows[SGD].loss < rows[EF].loss < rows[fixed(0.9)].loss < math.log(10)  # f(0), for ten classes
    assert not rows[sketched(0.9)].success and "diverged" in rows[sketched(0.9)].message
    assert np.isnan(rows[sketched(0.9)].accuracy).all() and rows[sketched(0.9)].rounds < 40


@pytest.mark.slow
def test_without_feedback_no_sketch_is_too_small():
    """beta = 1 feeds nothing back: then any sketch is bounded, and with beta = 0 the smallest is not."""
    options = conef_table_1.Options(steps=120, seeds=1, parts=64, grid=(1.0,))
    rows, reached = conef_table_1.frontiers((0.0, 1.0), options)
    nothing, all_of_it = rows[1], rows[0]
    assert nothing.bounded == nothing.stable == 1 / 64 and 0.0 < reached[1.0] < 1.0
    assert all_of_it.bounded > 1 / 64 and all_of_it.stable > 1 / 64
