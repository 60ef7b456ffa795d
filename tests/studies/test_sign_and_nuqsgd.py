"""EF-SignSGD against NUQSGD: bits from encoded messages, verdicts from numbers, coded messages that change no run."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory.studies.quantizers import sign_and_nuqsgd as study
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
