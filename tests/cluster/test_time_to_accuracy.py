"""Time to accuracy: costs of collectives, the model of a network, stragglers, and the commands and studies on them."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest

import theory as th
from theory import bounds
from theory.cluster import allreduce_seconds, fit_network, race, save_calibration
from theory.cluster.cost.calibration import Sample
from theory.cluster.cost.collectives import ALLREDUCES, Machine
from theory.cluster.cost.network import gathering
from theory.experiment.record_table import Exchange, calibration_text, exchange_text
from theory.methods.delay.late import draw_time
from theory.studies.cost import time_to_accuracy as study

# --- collectives ------------------------------------------------------------------------------------------------------


def test_a_ring_that_does_not_divide_still_adds():
    vectors = np.random.default_rng(0).integers(-9, 9, (5, 7))
    for name in ALLREDUCES:
        assert (th.simulate_allreduce(name, vectors)[0] == vectors.sum(axis=0)).all(), name


def test_a_rank_cannot_send_or_receive_twice_at_once():
    one = np.ones(3)
    with pytest.raises(ValueError, match="sources: got"):
        Machine().round([(0, 1, one), (0, 2, one)])
    with pytest.raises(ValueError, match="targets: got"):
        Machine().round([(0, 2, one), (1, 2, one)])


# --- stragglers -------------------------------------------------------------------------------------------------------


def test_heavy_tails_have_no_mean_from_where_on():
    """Finite iff n - k + 1 > 1/a: with a = 0.4 three workers must be left, counting the last one."""
    assert [math.isinf(bounds.pareto_order_mean(5, k, shape=0.4)) for k in (1, 2, 3, 4, 5)] == [False] * 3 + [True] * 2
    assert math.isinf(bounds.pareto_order_variance(5, 1, shape=0.4))


def test_rounds_are_counted_until_the_first_replica_stops():
    problem = th.quadratic(np.array([1.0, 4.0]), covariance=1.0)
    how = dict(workers=3, fastest=2, rounds=60, times=th.Pareto(2.0), replicas=2, record_every=1, x0=np.ones(2))
    result = th.run_fastest_k(problem, step=10.0, **how)
    assert not result.success and "diverged" in result.message
    assert result.nit == result.history["rounds"][-1] < 60
    assert th.run_fastest_k(problem, step=0.1, **how).nit == 60


def test_draws_follow_their_laws():
    waits, chosen = race(th.Pareto(3.0, 2.0), workers=6, fastest=6, rounds=4000, seed=3)
    assert (np.diff(waits) >= 0).all() and (chosen == np.arange(6)).all()
    times = waits.ravel()
    assert times.min() >= 2.0
    assert np.mean(times > 4.0) == pytest.approx(1 / 8, abs=0.01)
    assert draw_time(th.ShiftedExponential(1.0, 0.5), 1 - math.exp(-1.0), 2.0) == pytest.approx(2.0)


def test_the_fastest_are_the_fastest():
    """k of n are the first k of the sorted times of all, and their workers."""
    everybody, _ = race(th.ShiftedExponential(0.0, 1.0), workers=7, fastest=7, rounds=50, seed=1)
    first, chosen = race(th.ShiftedExponential(0.0, 1.0), workers=7, fastest=3, rounds=50, seed=1)
    assert (first == everybody[:, :3]).all()
    assert (np.diff(chosen) > 0).all()
    slow = race(th.ShiftedExponential(0.0, 1.0), workers=3, fastest=1, rounds=2000, seed=1, speeds=[1, 1, 8])[1]
    assert np.mean(slow == 2) == pytest.approx(0.8, abs=0.04)


@pytest.fixture(scope="module")
def targets():
    b = np.array([4.0, 0.0, -1.0])
    return th.ridge((np.ones((3, 1)), b), l2=0.0), b


def test_who_waits_for_all_is_gradient_descent(targets):
    problem, b = targets
    result = th.run_fastest_k(
        problem,
        workers=3,
        fastest=3,
        rounds=5,
        step=0.5,
        times=th.Pareto(2.0),
        shards="contiguous",
        record_every=1,
        seed=4,
    )
    assert result.last[0, 0] == pytest.approx(b.mean() * (1 - 0.5**5), rel=1e-12)
    waits, _ = race(th.Pareto(2.0), workers=3, fastest=3, rounds=5, seed=4)
    assert result.replica_seconds[:, 0] == pytest.approx(np.append(0.0, np.cumsum(waits[:, -1])))
    assert result.history["rounds"].tolist() == [0, 1, 2, 3, 4, 5]
    assert result.history["f"][0] == pytest.approx(np.mean(b**2) / 2)


def test_the_fastest_count_and_nobody_else(targets):
    """One step from 0 with the step 1 and k = 1 lands on the target of the one who was fastest."""
    problem, b = targets
    result = th.run_fastest_k(
        problem,
        workers=3,
        fastest=1,
        rounds=1,
        step=1.0,
        times=th.ShiftedExponential(1.0, 1.0),
        shards="contiguous",
        replicas=20,
    )
    for r in range(20):
        _, chosen = race(th.ShiftedExponential(1.0, 1.0), workers=3, fastest=1, rounds=1, replica=r)
        assert result.last[r, 0] == pytest.approx(b[chosen[0, 0]])


def test_weights_are_horvitz_and_thompsons(targets):
    problem, _ = targets
    how = {"workers": 3, "fastest": 1, "rounds": 1, "step": 0.1, "times": th.ShiftedExponential(0.0, 1.0)}
    result = th.run_fastest_k(problem, speeds=[1, 1, 2], weights="inclusion", **how)
    assert result.weights == pytest.approx([4 / 3, 4 / 3, 2 / 3])
    assert th.run_fastest_k(problem, weights="inclusion", **how).weights == pytest.approx(np.ones(3))


# --- the model of the network -----------------------------------------------------------------------------------------


def test_a_round_of_the_exchange_by_hand():
    network, d = th.Network(alpha=1.0, beta=0.1, gamma=0.01), 80
    dense = th.ParallelSGD(th.Identity(), step=th.Constant(0.1))
    # 4 ranks, 320 bytes: 3 messages of 80 bytes out, 4 stretches of 80 bytes added, log2 4 start-ups and 240 bytes back
    assert th.round_seconds(network, dense, d, ranks=4) == pytest.approx(3 + 24 + 3.2 + 2 + 24)
    gathered = dense._replace(exchange="gather")
    with pytest.raises(ValueError, match="message_bytes: got None"):
        th.round_seconds(network, gathered, d, ranks=4)
    # sizes: 2 start-ups and 3 times 8 bytes; messages of 40 bytes: 2 start-ups and 120 bytes
    assert th.round_seconds(network, gathered, d, ranks=4, message_bytes=40) == pytest.approx(2 + 2.4 + 2 + 12)
    assert th.round_seconds(network, gathered, d, ranks=1) == 0.0
    # two workers a rank: twice the bytes
    two = th.round_seconds(network, gathered, d, ranks=4, workers=8, message_bytes=40)
    assert two == pytest.approx(2 + 4.8 + 2 + 24)
    with pytest.raises(ValueError, match="workers: got 6"):
        th.round_seconds(network, dense, d, ranks=4, workers=6)
    with pytest.raises(TypeError, match="network: got"):
        th.round_seconds((1, 2, 3), dense, d, ranks=4)


def test_textbook_times_scale_with_the_words():
    slow, fast = th.NETWORKS["1 Gbit/s"], th.NETWORKS["10 Gbit/s"]
    assert slow.beta == pytest.approx(8 / 1e9) and fast.beta == pytest.approx(8 / 1e10)
    assert allreduce_seconds(th.Network(0.0, 1.0), "ring", 4, 100) == 150.0
    assert gathering(8, 10_000) == "doubling" and gathering(7, 20_000) == "ring" and gathering(8, 10**6) == "ring"


def noisy_samples(network, spread, rng):
    rows = []
    for size in (64, 1024, 16_384, 262_144):
        for kind, counts in (("message", (1, size, 0)), ("all-gather", (3, 7 * size, 0)), ("addition", (0, 0, size))):
            time = np.dot(counts, network) * math.exp(spread * rng.standard_normal())
            rows.append(Sample(kind, size, *counts, time))
    return rows


def test_a_network_is_found_again():
    network = th.Network(3e-5, 2e-9, 5e-10)
    exact = fit_network(noisy_samples(network, 0.0, np.random.default_rng(0)))
    assert list(exact.network) == pytest.approx(list(network), rel=1e-9, abs=0.0)
    assert exact.r2 == pytest.approx(1.0) and exact.median_error < 1e-9
    hits = []
    for seed in range(60):
        found = fit_network(noisy_samples(network, 0.2, np.random.default_rng(seed)))
        hits.append([low <= true <= high for low, true, high in zip(found.low, network, found.high, strict=True)])
    # 95 % intervals: of 60 at least 50 hold the value (57 expected; fewer than 50 has a probability below 0.001)
    assert (np.sum(hits, axis=0) >= 50).all()


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(ValueError, match="samples: got 4"):
        fit_network([Sample("message", 1, 1.0, m, 0.0, 1.0 + m) for m in (1, 2, 3, 4)])
    with pytest.raises(ValueError, match="samples: got 'a time of 0'"):
        fit_network([Sample("message", 1, 1.0, 1.0, 1.0, 0.0)] * 4)


def test_a_calibration_is_written_whole_and_read_back(tmp_path):
    network = th.Network(3e-5, 2e-9, 5e-10)
    found = fit_network(noisy_samples(network, 0.1, np.random.default_rng(1)), ranks=8, oversubscribed=True)
    path = save_calibration(tmp_path / "network.json", found)
    assert th.load_network(path) == th.load_network(str(path)) == found.network
    stored = json.loads(path.read_text())
    assert stored["ranks"] == 8 and stored["oversubscribed"] is True and len(stored["samples"]) == 12
    assert os.listdir(tmp_path) == ["network.json"]
    assert "the model does not apply" in calibration_text(found)
    (tmp_path / "bad.json").write_text("{}")
    for bad in (tmp_path / "bad.json", tmp_path / "none.json"):
        with pytest.raises(ValueError, match="path: got"):
            th.load_network(bad)


def test_the_table_shows_the_models_error():
    text = exchange_text(
        [Exchange("SGD", "reduced", 1000.0, 2.0, 1.0), Exchange("q", "gathered", 10.0, 1.0, 1.5)], True
    )
    assert "median relative error of the model: 50%" in text and "more ranks than processors" in text


@pytest.mark.mpi
@pytest.mark.slow
def test_two_ranks_are_calibrated(run_mpi, tmp_path):
    path = tmp_path / "network.json"
    answer = run_mpi(2, "-m", "theory.experiment", "calibrate", "--quick", "--out", path, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert "alpha" in answer.stdout and "took no part in the fit" in answer.stdout
    assert all(number > 0 for number in th.load_network(path))


# --- studies ----------------------------------------------------------------------------------------------------------


def steps_row(method, workers, batch, steps, size=400.0):
    taken = steps * np.ones(8)
    return study.Steps(method, workers, batch, 1.0, taken, steps * workers * batch / 1000, [1e-6] * 8, size)


@pytest.fixture
def measured():
    options = study.Options(workers=(1, 4), batches=(4, 32), batch=32)
    rows, ways = [], study.methods(100)
    for name in ways:
        rows += [steps_row(name, n, b, 10 + 960 / (n * b)) for n, b in ((1, 32), (4, 32), (4, 4))]
    coding = {name: study.Coding(np.full(8, 1e-5), np.full(8, 2e-6)) for name in ways}
    return options, rows, ways, coding


def test_a_step_is_put_together_from_its_parts(measured):
    _, rows, ways, coding = measured
    times = study.step_times(rows, ways, coding, 100, {"slow": th.Network(1e-3, 0.0)})
    at = {(t.method, t.workers, t.batch): t for t in times}
    full = at["SGD", 4, 32]
    assert (full.gradient, full.coding) == (pytest.approx(32e-6), 0.0)
    assert full.exchange == pytest.approx(5e-3)  # 3 start-ups out, log2 4 back
    packed = at["QSGD, 4 bits", 4, 4]
    assert packed.coding == pytest.approx(1e-5 + 4 * 2e-6)
    assert packed.exchange == pytest.approx(4e-3)  # log2 4 for the sizes and for the messages
    assert packed.total == pytest.approx(70 * (4e-6 + 1.8e-5 + 4e-3))
    alone = at["QSGD, 4 bits", 1, 32]
    assert alone.coding == alone.exchange == 0.0


def test_steps_are_fitted_and_continued(measured):
    options, rows, ways, coding = measured
    a, b, worst = study.fit_steps([row for row in rows if row.method == "SGD"])
    assert (a, b) == (pytest.approx(10), pytest.approx(960)) and worst < 1e-9
    networks = {"none": th.Network(0.0, 0.0)}
    times = study.step_times(rows, ways, coding, 100, networks)
    curve = study.curves(rows, times, ways, coding, 100, networks, 32)[0]
    assert curve.workers == (1, 4, 8, 16, 32, 64, 128, 256) and curve.model_from == 4
    # without a network and coding, the steps alone decide
    assert curve.speed_up == pytest.approx([40 / (10 + 30 / n) for n in curve.workers])
