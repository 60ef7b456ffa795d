"""Faults of GRACE's compressors, written again in NumPy: the grader names each, and a right version of each passes.

Facts from github.com/sands-lab/grace (BSD 2-clause); docs/performance.md lists them with files and commits.
"""

import re

import numpy as np
import pytest
from numbers_of_others import PAGE

import theory as th
from theory.claims.sparsifiers.spectral import COLUMNS, ROWS

# --- 1-bit SGD: the two sides have two scales -------------------------------------------------------------------------


def two_means(v, negative):
    return [v[side].mean() if side.any() else 0.0 for side in (negative, ~negative)]


def one_bit_of_bytes(v):
    """The mask travels as bytes, whose ~ is 255 and 254, and not 1 and 0."""
    low, high = two_means(v, v < 0)
    sent = (v < 0).astype(np.uint8)
    return sent * low + ~sent * high


def one_bit(v):
    low, high = two_means(v, v < 0)
    return np.where(v < 0, low, high)


# --- random-k ---------------------------------------------------------------------------------------------------------


def rand_k_by_integers(v, rng, k):
    """Integers in place of a permutation, and where one is drawn twice, the entries are added."""
    kept = np.zeros(v.size)
    chosen = rng.integers(0, v.size, k)
    np.add.at(kept, chosen, v[chosen])
    return kept


def rand_k_scaled(v, rng, k):
    return v.size / k * rand_k_by_integers(v, rng, k)


def rand_k_beyond_the_end(v, rng, k):
    """The integers end at d, one too far: NumPy and TensorFlow on a processor raise, but only when d is drawn."""
    kept = np.zeros(v.size)
    chosen = rng.integers(0, v.size + 1, k)
    np.add.at(kept, chosen, v[chosen])
    return kept


def rand_k(v, rng, k):
    return np.where(rng.permutation(v.size) < k, v, 0.0)


# --- thresholds -------------------------------------------------------------------------------------------------------


def threshold_of_signed(v, size):
    """The largest entry may be far below the largest magnitude; if all are negative, everything is sent."""
    return np.where(np.abs(v) >= size * v.max(), v, 0.0)


def threshold(v, size):
    return np.where(np.abs(v) >= size * np.abs(v).max(), v, 0.0)


# --- natural compression: powers of two -------------------------------------------------------------------------------


def exponents(v):
    return np.floor(np.log2(np.abs(v), where=v != 0, out=np.zeros(v.size))).astype(int)


def natural_in_whole_numbers(v, rng):
    """2^low is computed in whole numbers, where 2^-1 is 0; then the probability is set to 1/2."""
    low = exponents(v)
    unit = np.where(low < 0, 0.0, np.exp2(low))
    up = np.divide(np.abs(v), unit, out=np.full(v.size, 1.5), where=unit > 0) - 1.0
    return np.sign(v) * np.exp2(low + (rng.random(v.size) < up))


def natural_in_a_byte(v, rng):
    """The smallest exponent stands for 0, and is decoded as 2^-110."""
    low = exponents(v)
    exponent = np.where(v == 0, -110, low + (rng.random(v.size) < np.abs(v) / np.exp2(low) - 1.0))
    return np.where(v < 0, -1.0, 1.0) * np.exp2(exponent)


def natural(v, rng):
    low = exponents(v)
    return np.sign(v) * np.exp2(low + (rng.random(v.size) < np.abs(v) / np.exp2(low) - 1.0))


# --- TernGrad, PowerSGD -----------------------------------------------------------------------------------------------


def ternary(v, rng):
    top = np.abs(v).max()
    return top * np.sign(v) * (top * rng.random(v.size) < np.abs(v))


def ternary_of_clipped(v, rng):
    """Clipped to 2.5 deviations from the mean, which are 0 for equal entries, and for a single one."""
    return ternary(np.clip(v, -2.5 * v.std(), 2.5 * v.std()), rng)


def projected(v, P):
    return (P @ (P.T @ v.reshape(ROWS, COLUMNS))).ravel()


def power_sgd_by_gram_schmidt(v, rng, rank):
    """Columns are divided by their lengths, also if these are 0."""
    P = v.reshape(ROWS, COLUMNS) @ rng.standard_normal((COLUMNS, rank))
    for i in range(rank):
        P[:, i] /= np.sqrt(np.sum(P[:, i] ** 2))
        P[:, i + 1 :] -= np.outer(P[:, i], P[:, i] @ P[:, i + 1 :])
    return projected(v, P)


def power_sgd(v, rng, rank):
    return projected(v, np.linalg.qr(v.reshape(ROWS, COLUMNS) @ rng.standard_normal((COLUMNS, rank)))[0])


FAULTS = [
    (one_bit_of_bytes, "sign.two-scale.error", "~ of a mask of bytes, which is 255 where the mask is 0"),
    (rand_k_by_integers, "randk.contraction", "drawn with replacement"),
    (rand_k_scaled, "randk.variance", "drawn with replacement, and duplicates are added"),
    (rand_k_beyond_the_end, "randk.contraction", "it raises IndexError: index 100 is out of bounds"),
    (threshold_of_signed, "threshold.contraction", "the largest entry with its sign, not the largest magnitude"),
    (natural_in_whole_numbers, "natural.variance", "up or down with the probability 1/2 where |v_i| < 1"),
    (natural_in_a_byte, "natural.variance", "v = 0 is not sent as 0"),
    (ternary_of_clipped, "terngrad.variance", "clipped first"),
    (power_sgd_by_gram_schmidt, "powersgd.cold", "v = 0 gives 0/0"),
]
RIGHT = [
    (one_bit, "sign.two-scale.error"),
    (rand_k, "randk.contraction"),
    (lambda v, rng, k: v.size / k * rand_k(v, rng, k), "randk.variance"),
    (threshold, "threshold.contraction"),
    (natural, "natural.variance"),
    (ternary, "terngrad.variance"),
    (power_sgd, "powersgd.cold"),
]


@pytest.mark.parametrize("mine, id, said", [pytest.param(*case, id=case[0].__name__) for case in FAULTS])
def test_a_fault_of_published_code_is_named(mine, id, said):
    found = th.grade(mine, id)
    assert not found and any(said in fault for fault in found.faults), found
    assert said in PAGE.read_text(encoding="utf-8").replace("\\|", "|")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("mine, id", RIGHT)
def test_a_right_version_passes(mine, id, seed):
    found = th.grade(mine, id, seed=seed)
    assert found, found


def test_what_is_published_differs_as_it_is_said():
    """What the sentences above and on the page say, in numbers."""
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(one_bit_of_bytes(np.array([-2.0, 1.0])), [-2.0 + 254.0, 255.0])
    np.testing.assert_array_equal(threshold_of_signed(np.array([-1.0, -1e-9]), 0.1), [-1.0, -1e-9])
    np.testing.assert_array_equal(ternary_of_clipped(np.array([3.0]), rng), [0.0])
    high, low = (natural_in_whole_numbers(np.full(40_000, x), rng).mean() for x in (0.99, 0.51))
    assert high == pytest.approx(0.75, abs=6 * 0.25 / 200) and low == pytest.approx(0.75, abs=6 * 0.25 / 200)
    assert natural_in_a_byte(np.zeros(1), rng)[0] == 2.0**-110


def test_what_fails_now_and_then_is_a_fault_and_no_crash():
    """Also where the message fails only at a vector that the claim does not have."""

    def now_and_then(v, rng, k):
        return rand_k(v, rng, k) if v.size == 100 or rng.random() < 0.99 else v[v.size]

    fault = th.grade(now_and_then, "randk.contraction").faults[0]
    assert re.match(r"on .*of length \d+, it raises IndexError", fault), fault
