"""The model of a round: its terms are found again, and lateness is what sampling says."""

from __future__ import annotations

import numpy as np
import pytest

import theory as th
from theory.cluster.round_model import COMPUTED, SENT, RoundModel, Work, exchanged, fit_rounds, lateness
from theory.studies import scale
from theory.studies.reports import scale as pages

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


def test_compression_pays_where_its_round_is_shorter():
    rows = [
        pages.Modelled("net", name, 10, ranks, {"wire": seconds})
        for name, by_ranks in ((scale.FULL, {8: 2.0, 16: 2.0}), (scale.SIGN, {8: 1.0, 16: 3.0}))
        for ranks, seconds in by_ranks.items()
    ]
    assert pages.pays(rows, "net", 10, scale.SIGN) == [8]


@pytest.mark.parametrize("off, verdict", [(1.0, "holds"), (1.6, "fails")])
def test_the_error_is_that_of_the_rounds_that_were_not_fitted(off, verdict):
    """Times of a model, where those that are held out are longer by a factor."""
    options = scale.Options(models=((1000, 10, 8),), ranks=(8, 16, 32, 64))
    coding = {name: scale.Coded(0.0 if name == scale.FULL else 1e-9, 2e-9, 4.0) for name in (scale.FULL, scale.SIGN)}
    true, rounds = RoundModel(TERMS, dict.fromkeys(coding, 1.0), TIMES), []
    for d in options.dimensions:
        for name, coded in coding.items():
            for batch in options.batches:
                for workers in options.workers:
                    work = scale.work_of(name, coded, d, batch, 64, workers, 2, 4.0 * d)
                    held = d in options.dimensions[1:-1]
                    seconds = true.total(work) * (off if held else 1.0)
                    rounds.append(scale.Round(work, d, batch, workers, seconds, 4.0 * d, not held))
    study = pages.report(rounds, coding, TIMES, 2, False, options)
    assert study.statements[0].verdict == verdict
    assert pages.report(rounds, coding, TIMES, 1, False, options).statements[0].verdict == "undecided"
    assert pages.report(rounds, coding, TIMES, 2, True, options).statements[0].verdict == "undecided"
