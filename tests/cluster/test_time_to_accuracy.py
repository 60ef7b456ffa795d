"""Time to accuracy: costs of collectives, the model of a network, stragglers, and the commands and studies on them."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import comb

import theory as th
from theory import bounds
from theory.cluster import allreduce_seconds, fit_network, gather_seconds, race, reduce_seconds, save_calibration
from theory.cluster.calibration import Sample
from theory.cluster.collectives import ALLGATHERS, ALLREDUCES, Machine
from theory.cluster.cost_model import gathering
from theory.experiment.calibration import Exchange, calibration_text, exchange_text
from theory.experiment.cli import main
from theory.methods.worker_times import draw_time
from theory.studies import stragglers as straggler_study
from theory.studies import time_to_accuracy as study

# --- collectives ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 12, 16])
@pytest.mark.parametrize("name", ALLREDUCES)
def test_every_allreduce_leaves_the_sum_and_costs_what_it_must(name, ranks):
    words = 16 * ranks
    vectors = np.random.default_rng(ranks).integers(-99, 100, (ranks, words))
    results, cost = th.simulate_allreduce(name, vectors)
    assert (results == vectors.sum(axis=0)).all()
    assert cost == pytest.approx(bounds.allreduce_cost(name, ranks, words), rel=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
@pytest.mark.parametrize("name", ALLGATHERS)
def test_every_allgather_leaves_all_messages(name, ranks):
    vectors = np.random.default_rng(ranks).standard_normal((ranks, 3))
    results, cost = th.simulate_allgather(name, vectors)
    assert (results == vectors).all()
    assert cost == pytest.approx(bounds.allgather_cost(name, ranks, 3))


def test_the_formulas_by_hand():
    """p = 8, n = 800: what stands in textbooks."""
    assert bounds.allreduce_cost("ring", 8, 800) == (14, 1400, 700)
    assert bounds.allreduce_cost("recursive-doubling", 8, 800) == (3, 2400, 2400)
    assert bounds.allreduce_cost("rabenseifner", 8, 800) == (6, 1400, 700)
    assert bounds.allreduce_cost("tree", 8, 800) == (6, 4800, 2400)
    assert bounds.allreduce_cost("server", 8, 800) == (16, 12800, 5600)
    assert bounds.allreduce_cost("server-overlapped", 8, 800) == (2, 12800, 5600)
    # 6 ranks: two pairs fold into four ranks (3 more start-ups, 2 n more words, n/2 more additions)
    assert bounds.allreduce_cost("rabenseifner", 6, 800) == (7, 1200 + 1600, 600 + 400)
    assert bounds.allreduce_cost("recursive-doubling", 6, 800) == (4, 3200, 2400)


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


@pytest.mark.parametrize(("ranks", "gamma"), [(4, 0.0), (8, 0.0), (8, 2e-10), (64, 1e-9)])
def test_the_ring_overtakes_at_the_crossover(ranks, gamma):
    alpha, beta = 1e-5, 8e-10
    n = bounds.ring_doubling_crossover(ranks, alpha=alpha, beta=beta, gamma=gamma)

    def seconds(name, words):
        return bounds.allreduce_cost(name, ranks, words).seconds(alpha, beta, gamma)

    assert seconds("ring", 0.99 * n) > seconds("recursive-doubling", 0.99 * n)
    assert seconds("ring", 1.01 * n) < seconds("recursive-doubling", 1.01 * n)
    assert math.isinf(bounds.ring_doubling_crossover(2, alpha=1.0, beta=1.0))


def test_compressed_messages_must_be_half_as_many_times_smaller_as_there_are_ranks():
    n, ranks = 1_000_000, 8
    ring = bounds.allreduce_cost("ring", ranks, n).words
    for ratio, wins in ((3.9, False), (4.1, True)):
        assert (bounds.allgather_cost("ring", ranks, n / ratio).words < ring) == wins
    assert bounds.gather_break_even(ranks) == 4.0
    assert bounds.allreduce_words_lower_bound(ranks, n) == ring


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.allreduce_cost("rings", 4, 1), "algorithm: got 'rings'"),
        (lambda: bounds.allreduce_cost("ring", 0, 1), "ranks: got 0"),
        (lambda: bounds.allreduce_cost("ring", 2, -1), "words: got -1"),
        (lambda: bounds.allgather_cost("tree", 2, 1), "algorithm: got 'tree'"),
        (lambda: bounds.ring_doubling_crossover(6, alpha=1, beta=1), "ranks: got 6"),
        (lambda: bounds.ring_doubling_crossover(4, alpha=1, beta=0), "beta: got 0"),
        (lambda: bounds.gather_break_even(1), "ranks: got 1"),
        (lambda: bounds.CollectiveCost(1, 1, 1).seconds(-1, 0), "alpha: got -1"),
        (lambda: bounds.exponential_order_mean(3, 4, shift=0, rate=1), "k: got 4"),
        (lambda: bounds.exponential_order_mean(3, 1, shift=0, rate=0), "rate: got 0"),
        (lambda: bounds.pareto_order_mean(3, 0, shape=1), "k: got 0"),
        (lambda: bounds.pareto_order_variance(3, 1, shape=-1), "shape: got -1"),
        (lambda: bounds.fastest_fraction(-0.1), "shift_rate: got -0.1"),
        (lambda: bounds.fastest_k(3), "rate: got None, allowed: exactly one of rate and shape"),
        (lambda: bounds.fastest_k(2, shape=0.4), "shape: got 0.4"),
        (lambda: bounds.fastest_rounds(0.0, 1, mu=1, step=1, variance=1, distance=1), "accuracy: got 0"),
        (lambda: bounds.inclusion_probabilities(1, [1.0, 0.0]), r"rates: got \[1.0, 0.0\]"),
        (lambda: bounds.inclusion_probabilities(1, np.ones(21)), "rates: got"),
        (lambda: bounds.horvitz_thompson_weights([0.5, 0.0]), "probabilities: got"),
        (lambda: bounds.sgd_iterations(3.0, mu=1, second_moment=2, distance=1), "accuracy: got 3"),
        (lambda: bounds.compressed_distance(-1, mu=1, step=1, variance=1, distance=1), "steps: got -1"),
        (lambda: bounds.iterations_to_accuracy(1, mu=0, step=1, variance=1, distance=1), "mu: got 0"),
        (lambda: bounds.fewest_iterations(1, mu=1, variance=-1, distance=1), "variance: got -1"),
        (lambda: bounds.best_batch(0, 1, row=1, rest=1), "gradient_squared: got 0"),
        (lambda: bounds.utilisation(0, row=1, rest=1), "batch: got 0"),
        (lambda: bounds.ring_speed_up(2, work=0, words=1, alpha=1, beta=1), "work: got 0"),
        (lambda: bounds.ring_best_ranks(work=1, words=1, alpha=-1, beta=1), "alpha: got -1"),
        (lambda: th.simulate_allreduce("rings", np.ones((2, 2))), "algorithm: got 'rings'"),
        (lambda: th.simulate_allreduce("ring", np.ones(2)), "vectors: got"),
        (lambda: th.Network(-1.0, 0.0), "alpha: got -1"),
        (lambda: th.Network(1.0, math.inf), "beta: got inf"),
        (lambda: gather_seconds(th.Network(1.0, 1.0), 0, 1), "ranks: got 0"),
        (lambda: reduce_seconds(th.Network(1.0, 1.0), 2, -1), "size: got -1"),
    ],
)
def test_every_door_refuses_what_is_outside(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


# --- stragglers -------------------------------------------------------------------------------------------------------


def order_moment(n, k, cdf, density, low, high, power=1):
    """E X_(k)^power by integrating the density of the order statistic."""
    weight = k * comb(n, k, exact=True)
    return quad(
        lambda x: x**power * weight * cdf(x) ** (k - 1) * (1 - cdf(x)) ** (n - k) * density(x),
        low,
        high,
        epsabs=1e-12,
        epsrel=1e-10,
        limit=200,
    )[0]


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (5, 3), (8, 8)])
def test_order_statistics_against_their_integrals(n, k):
    s, mu, a, scale = 0.5, 2.0, 3.5, 1.5
    exponential = (lambda x: 1 - math.exp(-mu * (x - s)), lambda x: mu * math.exp(-mu * (x - s)), s, s + 30 / mu)
    mean = order_moment(n, k, *exponential)
    assert bounds.exponential_order_mean(n, k, shift=s, rate=mu) == pytest.approx(mean, rel=1e-8)
    second = order_moment(n, k, *exponential, power=2)
    assert bounds.exponential_order_variance(n, k, rate=mu) == pytest.approx(second - mean**2, rel=1e-6)
    pareto = (lambda x: 1 - (scale / x) ** a, lambda x: a / x * (scale / x) ** a, scale, math.inf)
    mean = order_moment(n, k, *pareto)
    assert bounds.pareto_order_mean(n, k, shape=a, scale=scale) == pytest.approx(mean, rel=1e-6)
    variance = order_moment(n, k, *pareto, power=2) - mean**2
    assert bounds.pareto_order_variance(n, k, shape=a, scale=scale) == pytest.approx(variance, rel=1e-4)


def test_heavy_tails_have_no_mean_from_where_on():
    """Finite iff n - k + 1 > 1/a: with a = 0.4 three workers must be left, counting the last one."""
    assert [math.isinf(bounds.pareto_order_mean(5, k, shape=0.4)) for k in (1, 2, 3, 4, 5)] == [False] * 3 + [True] * 2
    assert math.isinf(bounds.pareto_order_variance(5, 1, shape=0.4))


@pytest.mark.parametrize(("s_mu", "kappa"), [(0.5, 0.576), (1.0, 0.682), (2.0, 0.778), (0.0, 0.0)])
def test_the_share_worth_waiting_for(s_mu, kappa):
    found = bounds.fastest_fraction(s_mu)
    assert found == pytest.approx(kappa, abs=5e-4)
    assert found / (1 - found) + math.log1p(-found) == pytest.approx(s_mu, abs=1e-12)
    assert abs(bounds.fastest_k(1000, shift=s_mu, rate=1.0) - 1000 * found) <= 1.0


def test_inclusion_by_enumeration_of_all_orders():
    from itertools import permutations

    rates, k = np.array([1.0, 2.0, 5.0, 0.5]), 2
    expected = np.zeros(4)
    for order in permutations(range(4)):
        probability, left = 1.0, rates.sum()
        for i in order:
            probability, left = probability * rates[i] / left, left - rates[i]
        expected[list(order[:k])] += probability
    found = bounds.inclusion_probabilities(k, rates)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found.sum() == pytest.approx(k)


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fastest": 4}, "fastest: got 4"),
        ({"workers": 0}, "workers: got 0"),
        ({"rounds": 0}, "rounds: got 0"),
        ({"step": 0.0}, "step: got 0"),
        ({"weights": "none"}, "weights: got 'none'"),
        ({"weights": "inclusion", "times": th.Pareto(2.0), "speeds": [1, 2, 3]}, "weights: got 'inclusion'"),
        ({"speeds": [1, 2]}, "speeds: got"),
        ({"speeds": [1, 2, 0]}, "speeds: got 0"),
        ({"shards": "by_label"}, "shards: got 'by_label'"),
        ({"x0": [0.0, 1.0]}, "x0: got"),
        ({"x0": [math.nan]}, "x0: got 'NaN"),
        ({"seed": -1}, "seed: got -1"),
        ({"record_every": 0}, "record_every: got 0"),
        ({"batch": 0}, "batch: got 0"),
    ],
)
def test_fastest_k_refuses_what_is_outside(targets, change, message):
    how = {"workers": 3, "fastest": 2, "rounds": 2, "step": 0.1, "times": th.ShiftedExponential(0.0, 1.0)}
    with pytest.raises(ValueError, match=f"^{message}"):
        th.run_fastest_k(targets[0], **(how | change))


def test_types_are_refused_by_name(targets):
    with pytest.raises(TypeError, match="times: got 3"):
        race(3, workers=1, fastest=1, rounds=1)
    with pytest.raises(TypeError, match="problem: got"):
        th.run_fastest_k(3, workers=1, fastest=1, rounds=1, step=1.0, times=th.Pareto(1.0))
    with pytest.raises(ValueError, match="shape: got 0"):
        th.Pareto(0.0)
    with pytest.raises(ValueError, match="rate: got 0"):
        th.ShiftedExponential(1.0, 0.0)


# --- steps and batches ------------------------------------------------------------------------------------------------


def test_the_law_of_the_distance_against_its_recursion():
    mu, step, sigma2, N, B, omega, a = 2.0, 0.2, 3.0, 4, 5, 6.0, 7.0
    for _ in range(9):  # E||x - step Q||^2, term by term
        noise = (sigma2 / B + omega * (sigma2 / B + mu**2 * a)) / N
        a = (1 - step * mu) ** 2 * a + step**2 * noise
    law = {"mu": mu, "step": step, "variance": sigma2, "distance": 7.0, "workers": N, "batch": B, "omega": omega}
    assert bounds.compressed_distance(9, **law) == pytest.approx(a, rel=1e-12)
    assert bounds.iterations_to_accuracy(a, **law) == pytest.approx(9.0, rel=1e-9)
    assert math.isinf(bounds.iterations_to_accuracy(1e-6, **law))
    assert bounds.iterations_to_accuracy(8.0, **law) == 0.0
    without = bounds.compressed_distance(9, mu=mu, step=step, variance=sigma2, distance=7.0)
    assert without == pytest.approx(bounds.sgd_constant_step_exact(9, mu=mu, step=step, variance=sigma2, distance=7.0))


def test_the_best_step_beats_its_neighbours():
    law = {"mu": 1.0, "variance": 4.0, "distance": 30.0, "workers": 2, "batch": 2, "omega": 3.0}
    best = bounds.fewest_iterations(0.3, **law)
    for factor in (0.8, 0.99, 1.01, 1.2):
        assert best.iterations <= bounds.iterations_to_accuracy(0.3, step=factor * best.step, **law)
    assert best.iterations < bounds.iterations_to_accuracy(0.3, step=0.5 * best.step, **law)


def test_utilisation_and_ranks_by_hand():
    assert bounds.utilisation(8, row=1.0, rest=8.0) == 0.5
    work = {"work": 1.0, "words": 100.0, "alpha": 1e-3, "beta": 1e-3}
    best = bounds.ring_best_ranks(**work)  # sqrt(0.8/0.002) = 20
    assert best == pytest.approx(20.0)
    assert max(range(1, 60), key=lambda p: bounds.ring_speed_up(p, **work)) == 20
    assert bounds.ring_best_ranks(work=1.0, words=1000.0, alpha=1e-3, beta=1e-3) == 1.0


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
    assert "out of its domain" in calibration_text(found)
    (tmp_path / "bad.json").write_text("{}")
    for bad in (tmp_path / "bad.json", tmp_path / "none.json"):
        with pytest.raises(ValueError, match="path: got"):
            th.load_network(bad)


def test_the_table_shows_the_models_error():
    text = exchange_text(
        [Exchange("SGD", "reduced", 1000.0, 2.0, 1.0), Exchange("q", "gathered", 10.0, 1.0, 1.5)], True
    )
    assert "median relative error of the model: 50%" in text and "more ranks than processors" in text


def test_one_process_has_no_network(capsys, monkeypatch):
    from theory.experiment import cli

    monkeypatch.setattr(cli, "world", lambda: None)
    with pytest.raises(SystemExit) as stop:
        main(["calibrate"])
    assert stop.value.code == 2 and "mpirun -n 2" in capsys.readouterr().err


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
    return study.Steps(method, workers, batch, 1.0, steps, steps, steps, steps * workers * batch / 1000, 1e-6, size)


@pytest.fixture
def measured():
    options = study.Options(workers=(1, 4), batches=(4, 32), batch=32)
    rows, ways = [], study.methods(100)
    for name in ways:
        rows += [steps_row(name, n, b, 10 + 960 / (n * b)) for n, b in ((1, 32), (4, 32), (4, 4))]
    coding = {name: study.Coding(1e-5, 2e-6) for name in ways}
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
    said = study.statements(rows, times, study.curves(rows, times, ways, coding, 100, networks, 32), 1000, options)
    assert said[0].verdict == "fails" and said[-1].verdict == "fails"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": (2, 4)}, "workers: got"),
        ({"batches": (8, 2)}, "batches: got"),
        ({"batch": 7}, "batch: got 7"),
        ({"accuracy": 1.0}, "accuracy: got 1"),
        ({"seeds": 0}, "seeds: got 0"),
    ],
)
def test_options_are_checked(change, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        study.Options(**change)


def test_stragglers_are_judged_by_their_numbers():
    orders = [straggler_study.Order("t", 1, 1.0, 0.1, 1.05), straggler_study.Order("t", 2, 1.0, 0.1, 1.5)]
    clocks = [straggler_study.WallClock("t", k, 5, 5, seconds, 1.0) for k, seconds in ((4, 2.0), (16, 3.0))]
    plain = straggler_study.Biased("plain", 2, 1.0, 0.1, 1.0, 1.6)
    bias = [plain, plain._replace(weights="inclusion", measured=1.55, predicted=1.6)]
    said = straggler_study.statements(orders, [("t", 3, 4, 4.2)], clocks, bias)
    assert [s.verdict for s in said] == ["in part", "holds", "holds", "holds", "holds"]
    said = straggler_study.statements(orders, [("t", 13, 16, 10.9)], clocks, bias)
    assert [s.verdict for s in said][1:3] == ["fails", "fails"]
    endless = [row._replace(predicted_seconds=math.inf) if row.k == 16 else row for row in clocks]
    assert "all infinite (the mean)" in straggler_study.statements(orders, [("t", 4, 4, 4.2)], endless, bias)[3].numbers
