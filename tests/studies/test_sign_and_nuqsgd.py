"""EF-SignSGD against NUQSGD: bits from encoded messages, verdicts from numbers, coded messages that change no run."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory.studies import sign_and_nuqsgd as study
from theory.studies.shared import messages as one
from theory.studies.shared.problems import digits


@pytest.fixture(scope="module")
def sent():
    ways = study.methods()
    v = np.random.default_rng(5).standard_t(3.0, 1000)
    v[::3] = 0.0
    return v, {row.method: row for row in one.measure_messages("t", v, ways | study.coded(ways), turns=1)}


def test_packed_messages_are_as_long_as_their_form(sent):
    """A sign is one bit, 4 and 8 bits a level, and 32 for each of 16 buckets of 64, or for one of 1000."""
    _, rows = sent
    for bits, kind in ((1, "EF-sign"), (4, "NUQSGD 4 bits"), (8, "NUQSGD 8 bits")):
        for size, buckets in ((64, 16), (8192, 1)):
            row = rows[f"{kind}, {size}"]
            assert row.bits == row.form == 1000 * bits + 32 * buckets
    assert rows["float32"].bits == rows["float32"].form == 32_000
    signs = rows["EF-sign, 64"]
    assert study.bits_of_bucket([signs._replace(d=640, bits=10 * (64 + 32))], study.SIGN) == 96
    assert rows[study.TWO_SCALES].bits == rows[study.TWO_SCALES].form == 1000 + 2 * 32 * 16


def test_a_coded_message_restores_the_same_vector_in_fewer_bits(sent):
    _, rows = sent
    packed, coded = rows[study.FOUR], rows[study.CODED]
    assert math.isnan(coded.form) and coded.bits < packed.bits and coded.error == packed.error


def test_errors_are_those_of_the_buckets(sent):
    v, rows = sent
    pieces = [v[j : j + 64] for j in range(0, v.size, 64)]
    left = sum(th.bounds.scaled_sign_error(piece) * (piece @ piece) for piece in pieces)
    assert rows[study.SIGN].error == pytest.approx(left / (v @ v), rel=1e-6)
    found = th.measure.moments(th.Bucketed(th.NUQSGD(6), 8192), v, 4000, seed=1)
    assert rows[study.FOUR].error in found.variance()


def test_only_a_memory_costs_passes(sent):
    for name, row in sent[1].items():
        assert name.startswith("EF-sign") or 0.0 <= row.memory.min() < 0.1 * row.encode.min()
        assert row.encode.min() > 0.0 and row.decode.min() > 0.0
        assert not name.startswith("EF-sign") or row.memory.min() > 0.0


def test_rounds_cross_where_they_are_said_to():
    a = one.Message("v", "a", 1000, 1000.0, 1000, 0.1, 5.0, 2.0, 1.0)
    b = a._replace(method="b", bits=4000, encode=1.0, decode=1.0, memory=0.0)
    at = study.crossing(a, b, 8)
    assert at == pytest.approx(7 * 3000 / (1000e-9 * (5 + 1 + 16 - 1 - 8)))
    assert one.round_seconds(a, 8, at) == pytest.approx(one.round_seconds(b, 8, at))
    assert one.round_seconds(a, 8, 2 * at) > one.round_seconds(b, 8, 2 * at)
    assert math.isinf(study.crossing(b._replace(bits=1), a, 8))


def test_a_goal_that_is_never_reached_takes_for_ever():
    assert math.isinf(study.reached([0, 5], [1.0, 0.5], 0.1))
    assert study.reached([0, 5], [0.05, 0.5], 0.1) == 0.0


def _made_up(sign_is_slow: bool):
    """Two methods on one problem: the signs are slow and bad, or fast and good."""
    slow, far = (50.0, 0.5) if sign_is_slow else (0.1, 0.001)
    turns = 1.0 + 1e-3 * np.arange(10)
    rows = [
        one.Message("p", name, 10**6, form, bits, error, turns, turns, 0.0 * turns)
        for name, form, bits, error in (
            (study.FOUR, 4e6, 4_000_000, 0.12),
            (study.CODED, math.nan, 400_000, 0.12),
            (study.EIGHT, 8e6, 8_000_000, 0.1),
            (study.BEST_RATIO, 8e6, 8_000_000, 1e-4),
        )
    ]
    rows.insert(0, one.Message("p", study.SIGN, 10**6, 1.5e6, 1_500_000, 0.4, slow * turns, slow * turns, 0.0 * turns))
    rows.append(rows[0]._replace(method=study.TWO_SCALES, form=2e6, bits=2_000_000))
    apart = 1.0 + 1e-3 * np.arange(10)  # the seeds
    trained = [
        study.Training("p", row.method, step, row.bits / 10**6, 0.01 * apart, 0.9 * apart, 10.0 * apart, 1.0, 1.0, 1.0)
        for row in rows
        for step in study.STEPS
    ]
    accuracy, rounds = (0.5, 100.0) if sign_is_slow else (0.95, 5.0)
    return rows, [
        row._replace(loss=far * apart, accuracy=accuracy * apart, rounds=rounds * apart)
        if row.method in study.SIGNS
        else row
        for row in trained
    ]


def test_verdicts_follow_the_numbers():
    for slow in (True, False):
        said = {s.text: s.verdict for s in study.statements(*_made_up(slow))}
        verdict = "holds" if slow else "fails"
        of = [
            v
            for text, v in said.items()
            if "beats" in text or "longer" in text or "lower loss" in text or "accuracy" in text
        ]
        assert len(of) == 14  # each with one scale and with two
        assert [v for v in of if v != verdict] == []
        assert [v for text, v in said.items() if "packed, takes fewer bits" in text] == [verdict] * 2
        (pays,) = (v for text, v in said.items() if "with two scales than with one" in text)
        assert pays == "fails"  # as many rounds of more bits
        (here,) = (v for text, v in said.items() if "128 bits" in text)
        assert here == "holds"
        (eight,) = (v for text, v in said.items() if text.startswith("8 bits"))
        assert eight == "fails"


def test_a_message_of_another_length_is_noticed():
    rows, trained = _made_up(True)
    rows[1] = rows[1]._replace(bits=4_000_001)
    (form,) = (s for s in study.statements(rows, trained) if "ceil" in s.text)
    assert form.verdict == "in part" and "4 of 5" in form.numbers


def test_training_counts_packed_bits_and_codes_change_nothing_else():
    ways = {study.FOUR: study.methods()[study.FOUR]}
    rows, curves, gradient = study.train(
        th.softmax,
        digits(),
        ways | {"float32": study.methods()["float32"]},
        name="digits",
        rounds=20,
        records=4,
        seeds=2,
        steps=(8.0,),
        share=0.5,
    )
    packed, coded, full = rows
    assert (packed.method, coded.method, full.bits) == (study.FOUR, study.CODED, 32.0)
    assert packed.bits == pytest.approx(4 + 32 / 640)
    assert coded.bits < packed.bits
    assert repr(coded._replace(method=study.FOUR, bits=packed.bits)) == repr(packed)
    assert gradient.dtype == np.float32 and gradient.size == 640
    bits, gap = curves[study.FOUR, 8.0]
    assert np.array_equal(bits, packed.bits * 640 * np.array([0, 5, 10, 15, 20]))
    assert packed.loss.shape == packed.accuracy.shape == packed.rounds.shape == (2,)
    assert packed.loss.mean() == pytest.approx(gap[-1])  # of four records the last
    assert (
        packed.rounds.min()
        < np.interp(-math.log(0.5 * gap[0]), -np.log(gap), [0, 5, 10, 15, 20])
        < 1.1 * packed.rounds.max()
    )
