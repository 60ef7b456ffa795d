"""The random streams: published known answers, uniformity, and keys that do not meet."""

from __future__ import annotations

import math

import numpy as np
import pytest

from theory.core import kernel
from theory.core.random import bits, derive, fill_bits, integer, key, normal, threefry2x32, threefry2x32_13, uniform

N = 2**16
SIGMAS = 5.5  # with fixed keys these are one-time checks; a right generator fails one in 10**7


@kernel
def first_uniforms(stream, out):
    for i in range(out.size):
        out[i] = uniform(stream, i)


@kernel
def first_integers(stream, n, out):
    for i in range(out.size):
        out[i] = integer(stream, i, n)


@kernel
def first_normals(stream, out):
    for i in range(out.size):
        out[i] = normal(stream, i)


# counter, key, result: the file kat_vectors of Random123
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
KNOWN = [
    (threefry2x32, (0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
    (threefry2x32, (0xFFFFFFFF,) * 4, (0x1CB996FC, 0xBB002BE7)),
    (threefry2x32, PI, (0xC4923A9C, 0x483DF7A0)),
    (threefry2x32_13, (0, 0, 0, 0), (0x9D1C5EC6, 0x8BD50731)),
    (threefry2x32_13, (0xFFFFFFFF,) * 4, (0xFD36D048, 0x2D17272C)),
    (threefry2x32_13, PI, (0xBA3E4725, 0xF27D669E)),
]


@pytest.mark.parametrize(("function", "given", "answer"), KNOWN)
def test_known_answers(function, given, answer):
    c0, c1, k0, k1 = (np.uint32(x) for x in given)
    assert tuple(int(x) for x in function(k0, k1, c0, c1)) == answer


def test_bits_are_the_generator_at_key_and_counter():
    stream, i = np.uint64(0x13198A2E03707344), np.uint64(0x243F6A8885A308D3)
    assert int(bits(stream, i)) == 0xC4923A9C483DF7A0


def test_many_bits_are_the_generator_with_13_rounds():
    stream, first = key(3, "many"), 2**32 - 5  # the counter passes 32 bits
    high, low = np.empty(10, np.uint32), np.empty(10, np.uint32)
    fill_bits(stream, first, high, low)
    for i in range(10):
        c = divmod(first + i, 2**32)
        k = divmod(int(stream), 2**32)
        expected = threefry2x32_13(*(np.uint32(x) for x in (*k, *c)))
        assert (high[i], low[i]) == expected


def chi_square_is_usual(counts):
    """A chi-square statistic within SIGMAS of its mean, by the normal approximation."""
    expected = counts.sum() / counts.size
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = counts.size - 1
    return abs(statistic - freedom) < SIGMAS * math.sqrt(2 * freedom)


def test_every_byte_of_the_words_is_uniform():
    high, low = np.empty(N, np.uint32), np.empty(N, np.uint32)
    fill_bits(key(1, "bytes"), 0, high, low)
    for words in (high, low):
        for place in range(4):
            assert chi_square_is_usual(np.bincount(words >> np.uint32(8 * place) & np.uint32(255), minlength=256))
    assert chi_square_is_usual(np.bincount((high & 255).astype(int) * 16 + (low & 15), minlength=4096))


def test_uniform_numbers():
    u = np.empty(N)
    first_uniforms(key(0, "uniform"), u)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert chi_square_is_usual(np.bincount((u * 256).astype(int), minlength=256))
    for power in (1, 2, 3):
        mean, variance = 1 / (power + 1), 1 / (2 * power + 1) - 1 / (power + 1) ** 2
        assert abs((u**power).mean() - mean) < SIGMAS * math.sqrt(variance / N)
    for lag in (1, 2, 256):  # no correlation between neighbours
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < SIGMAS / math.sqrt(N)


@pytest.mark.parametrize("n", [1, 3, 100, 2**32 - 1])
def test_whole_numbers(n):
    k = np.empty(N, np.int64)
    first_integers(key(0, "integer", n), n, k)
    assert k.min() >= 0
    assert k.max() < n
    if 1 < n <= 100:
        assert chi_square_is_usual(np.bincount(k, minlength=n))


def test_normal_numbers():
    z = np.empty(N)
    first_normals(key(0, "normal"), z)
    moments = [0, 1, 0, 3, 0, 15]
    for power, moment in enumerate(moments, 1):
        variance = math.prod(range(1, 2 * power, 2)) - moment**2
        assert abs((z**power).mean() - moment) < SIGMAS * math.sqrt(variance / N)


def test_keys_of_different_paths_differ():
    purposes = ("sampling", "rounding")
    paths = [(seed, purpose, worker) for seed in range(20) for purpose in purposes for worker in range(20)]
    assert len({int(key(*path)) for path in paths}) == len(paths)
    assert key(0, "a", 1) == key(0, "a", 1)
    assert key(0, 1, 2) != key(0, 2, 1)
    assert key(0, 1) == derive(key(0), 1)
    stream = key(5)
    assert len({int(derive(stream, i)) for i in range(1000)} | {int(bits(stream, i)) for i in range(1000)}) == 2000
