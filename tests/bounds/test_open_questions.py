"""Closed forms of lecture 16 against a second encoding: local steps on different data, medians, gossip, least bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import theory as th
from theory import bounds


def test_least_bits():
    for omega in (1e-6, 0.1, 1.0, 63.0, 1e9):
        bits = bounds.least_unbiased_bits(64, omega)
        assert bits == pytest.approx(bounds.least_bits(64, bounds.scaled_contraction(omega)), rel=1e-6)
        # the mutual information of N(0, 1) and N(0, 1) plus noise of variance omega
        joint = np.array([[1.0, 1.0], [1.0, 1.0 + omega]])
        information = 0.5 * math.log2((1.0 + omega) / max(np.linalg.det(joint), 1e-300))
        assert omega > 1e6 or bits == pytest.approx(64 * information, rel=1e-6)
        assert (1 + omega) * bits >= 64 / (2 * math.log(2))
    assert bounds.least_unbiased_bits(64, 0.0) == bounds.least_bits(64, 1.0) == math.inf
    assert bounds.least_bits(64, 0.0) == bounds.least_unbiased_bits(64, math.inf) == 0.0
    quarter = bounds.least_bits(10, 1 - 4.0**-3)  # an error that is 4^3 times smaller takes 3 bits a coordinate
    assert quarter == pytest.approx(30.0)
    assert bounds.uniform_levels_gap("coin") - bounds.uniform_levels_gap("shared") == pytest.approx(0.5)


def test_no_compressor_states_less_than_the_least():
    d = 512
    v = np.random.default_rng(2).standard_normal(d)
    unbiased = (th.QSGD(1), th.QSGD(4), th.QSGD(64), th.NUQSGD(4), th.Natural(), th.TernGrad(), th.RandK(8, True))
    for c in unbiased:
        assert th.expected_payload_bits(c, v) >= bounds.least_unbiased_bits(d, th.omega(c, d)), c
    for c in (th.TopK(8), th.TopK(256)):
        assert th.expected_payload_bits(c, v) >= bounds.least_bits(d, th.delta(c, d)), c
