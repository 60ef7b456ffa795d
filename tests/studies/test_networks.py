"""The studies of networks: data and plans, what is recorded of runs, comparisons by seeds, verdicts, and small runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory.methods.memory.error_feedback import memory_bytes
from theory.studies.adaptive import network_adaptive
from theory.studies.batches import network_cr_psgd
from theory.studies.memory import network_questions
from theory.studies.quantizers import network_compressors
from theory.studies.shared import networks as training
from theory.studies.shared.conef_training import EF, fixed
from theory.studies.shared.networks import Trained, best_of, compared

SEEDS = 10


@pytest.fixture(scope="module")
def task():
    options = network_compressors.Options(tasks=("digits",), width=8)
    (found,) = training.tasks(options, rows=300)
    return found


def row(method="m", end=0.5, accuracy=0.9, *, step=1.0, spread=0.001, group="g", success=True, seeds=SEEDS, test=None):
    """A run with four records, whose seeds lie ``spread`` apart."""
    apart = spread * (np.arange(seeds) - (seeds - 1) / 2)[:, None]
    loss = (np.linspace(2.0, end, 4) + apart).astype(np.float32)
    held = loss if test is None else (np.linspace(2.0, test, 4) + apart).astype(np.float32)
    accuracies = (np.linspace(0.1, accuracy, 4) + apart).astype(np.float32)
    counts = np.array([0, 10, 20, 30])
    return Trained(
        "digits", group, method, step, 0.01, 0.3, counts, 8 * counts, loss, held, accuracies, 4.0, 0, success
    )


def ended(one, *seeds):
    """The same, but these seeds diverge."""
    loss = one.loss.copy()
    loss[list(seeds), -1] = np.inf
    return one._replace(loss=loss, success=False)


# --- data and training ------------------------------------------------------------------------------------------------


def test_tasks_are_networks_on_both_parts(task):
    assert task.problem.n == 300 and task.test.n == 359  # a fifth is held out, then 300 of the other rows are taken
    assert task.problem.dtype == np.float32 and task.problem.activation == "tanh" and task.problem.l2 == 1e-4
    assert th.layer_shapes(task.problem) == ((64, 8), (8, 10)) == th.layer_shapes(task.test)


def test_topics_need_a_file(monkeypatch):
    monkeypatch.delenv("THEORY_DATA", raising=False)
    options = network_compressors.Options(tasks=("topics",))
    with pytest.raises(ValueError, match="tasks: got .*'digits' too: without --topics FILE"):
        training.tasks(options)


def test_topics_have_their_most_frequent_features(real_data):
    options = network_compressors.Options(tasks=("topics",), features=50, width=4)
    (found,) = training.tasks(options, str(real_data("rcv1_subsets_topics.svm.bz2")))
    assert found.problem.features == 50 and found.problem.classes == found.test.classes == 4


def test_training_takes_the_best_step_with_all_seeds(task):
    plans = {
        ("a", "SGD"): lambda step: th.ParallelSGD(step=th.Constant(step), batch=4),
        ("a", "wild"): lambda step: th.ParallelSGD(th.RandK(5, unbiased=True), step=th.Constant(1e20 * step)),
    }
    found = training.train(task, plans, (0.01, 0.3), [3, 4], workers=2, records=4, steps=20)
    named = {(one.method, one.step): one for one in found}
    assert named["SGD", 0.3].loss.shape == (2, 5) and named["SGD", 0.01].loss.shape == (1, 5)
    for s, seed in enumerate((3, 4)):
        method = plans["a", "SGD"](0.3)
        done = th.run(method, task.problem, workers=2, steps=20, seed=seed, dtype=np.float32, record_every=5)
        np.testing.assert_array_equal(named["SGD", 0.3].loss[s], done.history["f"].astype(np.float32))
        assert named["SGD", 0.3].accuracy[s, -1] == np.float32(th.accuracy(task.test, done.x))
        assert named["SGD", 0.3].test_loss[s, -1] == pytest.approx(th.value(task.test, done.x), rel=1e-6)
    assert named["SGD", 0.3].rounds.tolist() == [0, 5, 10, 15, 20]
    best = best_of(found)
    assert best["digits", "SGD"].step == 0.3 and best["digits", "SGD"].bits == 32.0
    assert not best["digits", "wild"].success and math.isinf(best["digits", "wild"].end)
    assert training.percent(best["digits", "wild"]) == "diverged in 2 of 2 runs"
    assert np.isinf(best["digits", "wild"].loss[:, -1]).all()  # the record tells which runs diverged
    assert (best["digits", "SGD"].shortest, best["digits", "SGD"].longest) == (0.01, pytest.approx(9.0))  # widened once
    assert best["digits", "wild"].shortest < 1e-7  # four shorter ones were tried
    assert training.step_text(best["digits", "SGD"], 0.1) == "0.03"
    assert training.step_text(best["digits", "SGD"]._replace(longest=0.3), 0.1) == "0.03*"


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_a_record_has_the_best_rows_with_the_same_ends_and_the_curves_that_are_drawn():
    rows = [row("a", 0.5, step=1.0), row("a", 0.7, step=2.0, seeds=1), row("b", success=False)]
    short = training.recorded(rows, ("loss",))
    assert [(one.method, one.step) for one in short] == [("a", 1.0), ("b", rows[2].step)]
    assert short[0].loss.shape == rows[0].loss.shape and short[0].test_loss.shape == (SEEDS, 1)
    np.testing.assert_allclose(short[0].loss, rows[0].loss, rtol=1e-5)
    assert training.percent(short[0]) == training.percent(rows[0])


def not_worse(one, other, margin, of="accuracy"):
    (trial,) = compared([one._replace(method="a"), other._replace(method="b")], [("a", "b")], margin, of)
    return trial.verdict


def test_differences_at_equal_seeds_decide():
    good, bad = row(accuracy=0.95), row(accuracy=0.90)
    assert not_worse(good, bad, 0.0) == "holds" and not_worse(bad, good, 0.0) == "fails"
    assert not_worse(bad, good, 0.06) == "holds" and not_worse(good, bad, -0.06) == "fails"
    noisy = bad._replace(
        accuracy=bad.accuracy[::-1] + np.float32(0.05) * np.linspace(-2, 2, SEEDS, dtype=np.float32)[:, None]
    )
    assert not_worse(noisy, good, 0.0) == "undecided"
    assert not_worse(row(end=0.2), row(end=0.3), 0.0, "loss") == "holds"
    failed = ended(row(), *range(SEEDS))
    assert not_worse(failed, good, 1.0) == "fails" and not_worse(good, failed, -1.0) == "holds"
    assert not_worse(failed, failed, 1.0) == "undecided"
    one, two = ended(good, 2), ended(good, 2, 5)
    assert not_worse(one, bad, 0.0) == "holds"  # nine of ten are better
    assert not_worse(two, bad, 0.0) == not_worse(bad, two, -0.06) == "undecided"
    assert training.percent(one) == f"diverged in 1 of {SEEDS} runs"
    unknown = row(success=False)  # records that do not tell which of them did
    assert not_worse(unknown, good, 1.0) == not_worse(good, unknown, 1.0) == "undecided"
    assert not_worse(row(seeds=1), row(accuracy=0.1, seeds=1), 0.0) == "undecided"


def test_numbers_that_are_rounding_are_shown_as_such():
    assert training.interval([1e-17, 3e-17]) == "0 ± 0" and training.interval([1e-11]) == "1.00e-11"
    assert training.percent(row(accuracy=0.9, spread=1e-5)) == "90.0 ± 0.0"
    assert training.training_loss(row(success=False)) == f"diverged in at least one of {SEEDS} runs"


# --- compressors ------------------------------------------------------------------------------------------------------


def test_plans_have_the_sizes_that_their_names_say(task):
    options, d = network_compressors.Options(), task.problem.d
    found = {method: plan(1.0) for (_, method), plan in network_compressors.plans(task, options).items()}
    v, shapes = np.random.default_rng(0).standard_normal(d), ((64, 8), (8, 10))
    for b in options.bits:
        for name in ("NUQSGD", "QSGD", "QSGDinf"):
            c = found[f"{name}, {b} bits"].compressor
            assert th.expected_payload_bits(c, v) == pytest.approx(b * d + 32 * math.ceil(d / 512), rel=0.01)
    for r in options.ranks:
        c = found[f"PowerSGD, rank {r}, memory"].compressor
        assert th.expected_payload_bits(c, v) == 32 * r * sum(map(sum, shapes))
    for name, part in ((EF, 1.0), (fixed(0.6), 0.4), (fixed(0.9), 0.1)):
        method = found[network_compressors.sent(name, 0.1)]
        kept = memory_bytes(method.feedback, method.compressor, d, 32, 32)
        assert kept == pytest.approx(4 * d * part, abs=4) and method.compressor.k == int(0.1 * d)
    assert all(method.momentum == 0.9 for name, method in found.items() if name != network_compressors.MAJORITY)
    assert found[network_compressors.MAJORITY].step == th.Constant(network_compressors.VOTE)


def test_spectra_are_shares_of_the_layers(task):
    rows = network_compressors.spectra(task, {"start": th.initial_point(task.problem)}, 16, 2, seed=0)
    assert [(one.layer, one.shape, one.batch) for one in rows] == [
        (1, (64, 8), 16),
        (2, (8, 10), 16),
        (1, (64, 8), 300),
        (2, (8, 10), 300),
    ]
    g = th.gradient(task.problem, th.initial_point(task.problem))[th.layers(task.problem)[1]].reshape(8, 10)
    s2 = np.linalg.svd(g.astype(float), compute_uv=False) ** 2
    assert rows[3].second == pytest.approx(s2[:2].sum() / s2.sum(), rel=1e-4)
    assert all(0 < one.first <= one.second <= one.fourth <= 1 + 1e-12 for one in rows)


# --- adaptive steps ---------------------------------------------------------------------------------------------------


def test_adaptive_methods_store_what_their_names_say(task):
    options, d = network_adaptive.Options(), task.problem.d
    kept = {one.method: one for one in network_adaptive.stored(task, options)}
    assert {method for _, method in network_adaptive.plans(task, options)} == set(kept)
    moments = {"SGD": 4, "EFSGD": 4, "1-bit": 12}  # bytes a coordinate: with momentum; m, v and the server's error
    for method, one in kept.items():
        assert one.server == moments.get(method.partition(" ")[0].rstrip(","), 8) * d, method
    for method in ("Adam", "Adam, NUQSGD, 4 bits", "Adam, blocks alone", "LAMB", "SGD with momentum"):
        assert kept[method].memory == 0
    for method in ("EF-Adam, blocks", "EF-Adam, top-k", "EF-LAMB", "EF-LAMB, blocks by layer", "EFSGD, blocks"):
        assert kept[method].memory == 4 * d
    for saving in (0.6, 0.8, 0.9):
        assert kept[network_adaptive.sketched("ConEF-Adam", saving)].memory == pytest.approx(
            4 * d * (1 - saving), abs=4
        )
    assert kept["EF-LAMB, half precision"].memory == pytest.approx(2 * d, rel=0.05)


def test_adaptive_plans_are_the_recipes_of_the_package(task):
    options = network_adaptive.Options()
    found = {method: plan(0.1) for (_, method), plan in network_adaptive.plans(task, options).items()}
    block = th.RandomBlock(int(0.05 * task.problem.d))
    assert found["EF-Adam, blocks"] == th.ef_adam(block, th.Constant(0.1), batch=8)
    assert found["EF-LAMB, half precision"] == th.conef_lamb(block, th.HalfPrecision(), th.Constant(0.1), batch=8)
    sketch = found["ConEF-LAMB, sketch, 80 %"]
    assert sketch.feedback.beta == 0.9 and sketch._replace(feedback=th.ErrorFeedback()) == found["EF-LAMB"]
    assert found["1-bit Adam"].warmup == 60 and found["1-bit Adam"].eps == 1e-8
    assert found["1-bit Adam, eps 0.001"] == found["1-bit Adam"]._replace(eps=1e-3)
    by_layer = found["EF-LAMB, blocks by layer"].compressor
    assert by_layer == th.by_layer(task.problem, lambda rows, columns: th.RandomBlock(int(0.05 * rows * columns)))


def test_adaptive_variances_when_frozen_are_those_of_the_warmup(task):
    options = network_adaptive.Options(steps=20)  # three of them in full precision
    tiny, eased = network_adaptive.frozen(task, options, 0.01, seed=3)
    done = th.run(
        th.OneBitAdam(th.Constant(0.01), 3, batch=8), task.problem, workers=8, steps=3, seed=3, dtype=np.float32
    )
    root = np.sqrt(done.server["v"].astype(float))
    size = np.linalg.norm(done.server["m"].astype(float)) / math.sqrt(task.problem.d)
    assert tiny.middle == np.median(root) and tiny.zero == 0.0
    assert tiny.longest == pytest.approx(size / (root.min() + 1e-8)) and tiny.longest > 1000
    assert eased.longest == pytest.approx(size / (root.min() + 1e-3)) and (tiny.eps, eased.eps) == (1e-8, 1e-3)


def test_adaptive_bytes_under_zero_are_those_of_the_bound(task):
    rows = network_adaptive.stored(task, network_adaptive.Options())
    cells = {cell[0]: cell[3:] for cell in network_adaptive.divided(rows).rows}
    alike = next(names for names in cells if names.startswith("Adam; "))
    assert "LAMB" in alike.split("; ") and cells[alike] == ("120.0", "31.4", "16.6", "1.9")  # as in the paper on ZeRO
    memory = next(sizes for names, sizes in cells.items() if names.startswith("EF-Adam, blocks"))
    assert memory == tuple(f"{th.bounds.zero_memory(7.5e9, 64, s, memory=4.0) / 1e9:.1f}" for s in range(4))
    assert next(sizes for names, sizes in cells.items() if names.startswith("1-bit"))[1:] == ("-", "-", "-")


# --- CR-PSGD ----------------------------------------------------------------------------------------------------------


def test_all_methods_take_as_many_gradients():
    options = network_cr_psgd.Options(samples=4000)
    found = {method: plan(0.5) for (_, method), plan in network_cr_psgd.plans(options).items()}
    rounds = network_cr_psgd.rounds_of(options)
    assert sum(th.bounds.growing_batches(4000, options.rho, options.batch)) <= 4000
    assert (
        rounds * network_cr_psgd.fixed_batch(options)
        <= 4000
        < (rounds + 1) * network_cr_psgd.fixed_batch(options) + 4000
    )
    assert found["local SGD, H = 16"].local_steps == 16 and found["CR-PSGD"].batch.first == options.batch
    assert found["parallel SGD"].batch == 8


def test_rounds_to_a_goal():
    goals = np.array([1.1, 0.1, 0.6, 2.5, 1.6])
    assert network_cr_psgd.rounds_to(row(end=0.5, spread=0.0, seeds=5), goals).tolist() == [20, math.inf, 30, 0, 10]


# --- questions --------------------------------------------------------------------------------------------------------


def test_held_out_losses_at_equal_training_loss():
    """Both fall linearly: to 0.5 and to 1.0; the first is at 1.0 after two thirds of the way."""
    one, other = row(end=0.5, test=0.8, spread=0.0), row(end=1.0, test=1.3, spread=0.0)
    mine, theirs = network_questions.at_equal_loss(one, other)
    assert mine == pytest.approx(2.0 - 1.2 * 2 / 3) and theirs == pytest.approx(1.3)


def test_barriers_and_curvature_of_a_known_function():
    """f = (x^2 - 1)^2: its minima are -1 and 1, the barrier between them is f(0) = 1, and the curvature there is 8."""
    problem = th.function(lambda x: float((x[0] ** 2 - 1) ** 2), lambda x: 4 * x * (x**2 - 1), d=1)
    left, right = np.array([-1.0]), np.array([1.0])
    assert network_questions.barrier(problem, left, right) == pytest.approx(1.0)
    assert network_questions.barrier(problem, right, right) == 0.0
    assert network_questions.sharpness(problem, right) == pytest.approx(8.0, rel=1e-6)


def test_probabilities_are_those_of_the_kernels(task):
    x = 3.0 * th.initial_point(task.problem, 2)
    P = network_questions.probabilities(task.test, x)
    assert np.mean(P.argmax(axis=1) == task.test.b) == th.accuracy(task.test, x)
    loss = -np.log(P[np.arange(task.test.n), task.test.b]).mean()
    assert th.value(task.test, x) == pytest.approx(loss + 0.5 * task.test.l2 * x @ x, rel=1e-6)


def test_pairs_of_compressors_are_unbiased_and_biased(task):
    found = {
        method: plan(1.0) for (_, method), plan in network_questions.plans(task, network_questions.Options()).items()
    }
    d = task.problem.d
    for unbiased, biased in network_questions.MEMORIES:
        pair = [found[name].feedback.error_compressor for name in (unbiased, biased)]
        assert th.omega(pair[0], d) > 0.0 and pair[1].inner == pair[0]
        with pytest.raises(TypeError):
            th.omega(pair[1], d)
        assert found[unbiased].compressor == found[biased].compressor
    for unbiased, biased in network_questions.MESSAGES:
        assert th.omega(found[unbiased].compressor, d) > 0.0 and found[unbiased].feedback == th.NoFeedback()
        assert found[biased].feedback != th.NoFeedback()


def test_models_with_and_without_consensus(task):
    options = network_questions.Options(workers=4, steps=20, rows=300)
    one = network_questions._models(task, network_questions.ONE, "shared", 0.2, 3, options)
    method = th.ParallelSGD(step=th.Constant(0.2), batch=8)
    done = th.run(method, task.problem, workers=4, steps=20, seed=3, dtype=np.float32)
    np.testing.assert_allclose(one[0], done.x, rtol=1e-4, atol=1e-6)  # one local step is a step of parallel SGD
    apart = network_questions._models(task, network_questions.OTHERS, "own", 0.2, 3, options)
    assert len(apart) == 4
    part = th.two_layer((np.asarray(task.problem.A)[75:150], task.problem.b[75:150]), 8, l2=1e-4, dtype=np.float32)
    assert part.classes == 10  # all of them are in this part
    x0 = th.initial_point(task.problem, 4)
    alone = th.run(method, part, workers=1, steps=20, seed=4, x0=x0, dtype=np.float32)
    np.testing.assert_array_equal(apart[1], alone.x.astype(float))


# --- options and quick runs -------------------------------------------------------------------------------------------
