"""The model of a round: its terms are found again, and lateness is what sampling says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import theory as th
from benchmarks import scale
from theory.cluster.cost.network import best_exchange
from theory.cluster.cost.round import COMPUTED, SENT, RoundModel, Work, exchanged, fit_rounds, lateness

TIMES = np.array([1e-4] * 19 + [1.1e-3])
TERMS = dict(zip((*COMPUTED, *SENT), (3e-6, 2e-9, 1e-9, 3e-9, 4e-6, 2e-10, 1e-10), strict=True))


def works(ranks=2):
    """Work of different size, so that no two terms go together."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(2, 6, (60, 6))
    parts = [(e, o, c, 1e-9 * k, s % 9 + 1, b, a) for e, o, c, k, s, b in sizes for a in [o * c % 1e6]]
    return [Work(("full", "coded")[k % 2], ranks, *part) for k, part in enumerate(parts)]


@pytest.mark.parametrize("ranks", [1, 2, 16])
def test_terms_are_found_again(ranks):
    true = RoundModel(TERMS, {"full": 1.0, "coded": 2.5}, TIMES)
    some = works(ranks)
    found = fit_rounds(some, [true.total(work) for work in some], TIMES)
    assert found.terms == pytest.approx(TERMS, rel=1e-3) and found.coding == pytest.approx(true.coding, rel=1e-3)


def test_delays_stretch_no_work_and_twice_the_work_has_twice_the_chances():
    model, (work, *_) = RoundModel(TERMS, {"full": 1.0}, TIMES), works()
    parts = model.seconds(work)
    pieces = work.ranks * (parts["computing"] + parts["coding"]) / np.median(TIMES)
    assert parts["waiting"] == lateness(TIMES, pieces) <= 1e-3
    assert model.seconds(work._replace(ranks=4096))["waiting"] == pytest.approx(1e-3)
    other = model.seconds(work, th.Network(1.0, 0.0))
    assert other["wire"] == work.starts and other["computing"] == parts["computing"]


@pytest.mark.parametrize("pieces", [1, 2, 7, 40])
def test_lateness_is_the_mean_of_the_largest_delay(pieces):
    """Of 20,000 rounds; the interval is five standard errors wide on each side."""
    times = np.array([1.0, 1.0, 1.0, 1.1, 1.5, 3.0, 0.9])
    drawn = np.random.default_rng(1).choice(times, (20_000, pieces)).max(axis=1) - 1.0
    drawn = np.maximum(drawn, 0.0)
    assert lateness(times, pieces) == pytest.approx(drawn.mean(), abs=5.0 * drawn.std() / np.sqrt(drawn.size))
    assert lateness(times, 0) == 0.0 <= lateness(times, 0.5) < lateness(times, 1)


def test_what_is_exchanged_is_what_the_network_model_counts():
    coded = th.ParallelSGD(th.QSGD(7), step=th.Constant(0.1))
    starts, sent, added = exchanged(coded, 1000, ranks=4, workers=8, message_bytes=600.0)
    net = th.Network(3e-5, 2e-9, 1e-10)
    seconds = th.round_seconds(net, coded, 1000, ranks=4, workers=8, message_bytes=600.0)
    assert starts * net.alpha + sent * net.beta + added * net.gamma == pytest.approx(seconds, rel=1e-12)


def test_what_is_no_measurement_is_refused():
    some = works()
    with pytest.raises(ValueError, match="works"):
        fit_rounds(some[:5], [1.0] * 5, TIMES)
    with pytest.raises(ValueError, match="seconds"):
        fit_rounds(some, [0.0] * len(some), TIMES)
    with pytest.raises(ValueError, match="times"):
        lateness([], 2)
    with pytest.raises(ValueError, match="pieces"):
        lateness([1.0], -1.0)


def test_numbers_of_ranks_are_told_with_their_gaps():
    every = (8, 16, 32, 64)
    assert scale.stretches([8, 16, 64], every) == "8 to 16, 64" and scale.stretches([], every) == "nowhere"


def of_study(off, ranks=(1, 2)):
    """The study's rounds, with times of a model; those that are held out are longer by a factor, method by method."""
    coding = {name: scale.Coded(*(0.0, 0.0) if name == scale.FULL else (1e-9, 2e-9), 4.0) for name in off}
    true, rounds = RoundModel(TERMS, dict.fromkeys(coding, 1.0), TIMES), []
    for d, batch, workers, many in product(scale.DIMENSIONS, scale.BATCHES, scale.WORKERS, ranks):
        for name, coded in coding.items():
            work = scale.work_of(name, coded, d, batch, 64, workers, many, 4.0 * d)
            held = d in scale.DIMENSIONS[1:-1]
            seconds = true.total(work) * (off[name] if held else 1.0)
            if many == 2 or not held:
                rounds.append(scale.Round(work, d, batch, workers, seconds, 4.0 * d, not held))
    return rounds, coding


def test_rounds_of_two_ranks_alone_do_not_tell_coding_from_computing():
    """Half the workers on each rank: what one computes is then in proportion to what it decodes."""
    for ranks, works_apart in (((2,), False), ((1, 2), True)):
        rounds, _ = of_study({scale.FULL: 1.0, scale.SIGN: 1.0}, ranks)
        fitted = [one for one in rounds if one.fitted]
        args = [one.work for one in fitted], [one.seconds for one in fitted], TIMES
        if works_apart:
            assert fit_rounds(*args).coding[scale.SIGN] == pytest.approx(1.0, rel=1e-3)
        else:
            with pytest.raises(ValueError, match="works.*apart"):
                fit_rounds(*args)


def test_how_far_the_model_misjudges_a_method_is_the_error_of_a_ratio():
    rounds, coding = of_study({scale.FULL: 1.6, scale.SIGN: 1.6})
    model = RoundModel(TERMS, dict.fromkeys(coding, 1.0), TIMES)
    held = [one for one in rounds if not one.fitted]
    assert scale.misjudged(model, held, scale.SIGN) == pytest.approx(1.0)
    rounds, _ = of_study({scale.FULL: 1.0, scale.SIGN: 1.6})
    assert scale.misjudged(model, [one for one in rounds if not one.fitted], scale.SIGN) == pytest.approx(1.6)


@pytest.mark.parametrize("ranks, encoded, decoded", [(1, 8, 0), (2, 4, 4), (8, 1, 7)])
def test_a_rank_decodes_what_others_sent(ranks, encoded, decoded):
    work = scale.work_of(scale.SIGN, scale.Coded(1.0, 100.0, 4.0), 10, 1, 5, 8, ranks, 40.0)
    assert work.coding == 10 * (encoded + 100 * decoded) and work.own == 10 * encoded


# --- what a round of a person's own method would cost -----------------------------------------------------------------


def test_the_best_collective_is_beside_the_packages_own():
    """1.2 kB on 256 ranks at 10 Gbit/s, by hand: 8 start-ups of 20 us with 1,200 bytes each, not 263."""
    problem = th.quadratic(np.ones(300), covariance=1.0)
    dense = th.cost(problem, th.ParallelSGD(step=0.1), ranks=256, network="10 Gbit/s")
    assert dense.best == pytest.approx(8 * (20e-6 + 1200 * (0.8e-9 + 0.25e-9)))
    assert dense.exchange > 255 * 20e-6 and dense.best_how == "all-reduce by recursive doubling"
    top = th.cost(problem, th.ParallelSGD(th.TopK(10), step=0.1, feedback=th.ErrorFeedback()), ranks=256)
    assert top.exchange < dense.exchange and top.best > dense.best  # compression wins against the slow one alone
    assert min(top.gradient, top.coding, top.waiting) >= 0.0 and "all-gather" in str(top)
    assert top.best_total == pytest.approx(top.gradient + top.coding + top.best + top.waiting)


def test_powersgd_waits_for_two_all_reduces():
    """One vector of 20 and one of 15 numbers: the second needs the sum of the first."""
    method = th.ParallelSGD(th.PowerSGD(20, 15, rank=1), step=0.1, feedback=th.ErrorFeedback())
    one = th.cluster.Network(1.0, 0.0)
    seconds, how = best_exchange(one, method, 300, ranks=8, workers=8, message_bytes=140.0)
    assert (seconds, how.count("all-reduce")) == (6.0, 2)
    assert th.round_seconds(one, method, 300, ranks=8) == 2 * (7 + 3)


def test_the_cost_of_a_run_that_was_done():
    problem = th.quadratic(np.ones(300), covariance=1.0)
    method = th.ParallelSGD(th.TopK(10), step=0.1, batch=2)
    found = th.cost(th.run(method, problem, workers=4, steps=20), method, ranks=8)
    assert found.message_bytes > 10 * (32 + 9) / 8 and found.gradient > 0.0
    with pytest.raises(ValueError, match="network: got '10 Gbit', allowed: 1 Gbit/s, 10 Gbit/s, 100 Gbit/s, or"):
        th.cost(problem, method, ranks=8, network="10 Gbit")
    with pytest.raises(ValueError, match="workers: got 9, allowed: a multiple of the number of ranks, 8"):
        th.cost(problem, method, ranks=8, workers=9)
