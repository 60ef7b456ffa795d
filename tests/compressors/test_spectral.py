"""Compressors of matrices against their plain references; the kernels below them against numpy.linalg."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theory as th
from theory import bounds
from theory.compressors import new_symbols, pack, payload_bits, quantize, reference, restore, state_size, unpack
from theory.compressors.base import opening, opening_is_maximum, propose, settle, shares_stream, summed, update_state
from theory.compressors.kernels.linear_algebra import load_scaled, orthonormalize, spread, squarest, svd
from theory.core.random import key, normal
from theory.studies.shared.messages import spectral_methods, spectral_trade

repeatable = settings(deadline=None, derandomize=True, max_examples=60)
WIDE = np.float64


def matrix(rows, columns, seed, kind="normal"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    if kind == "rank two":
        X = rng.standard_normal((rows, 2)) @ rng.standard_normal((2, columns))
    elif kind == "ones":
        X = np.ones((rows, columns))
    elif kind == "whole":
        X = rng.integers(-1, 2, (rows, columns)).astype(float)
    elif kind == "graded":
        X *= 10.0 ** -rng.uniform(0, 8, columns)
    elif kind == "zero columns":
        X[:, ::2] = 0.0
    elif kind == "zero":
        X[:] = 0.0
    return X


KINDS = ["normal", "rank two", "ones", "whole", "graded", "zero columns", "zero"]


# --- linear algebra ---------------------------------------------------------------------------------------------------


@repeatable
@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 2**32), st.sampled_from(KINDS))
def test_singular_values_against_lapack(q, n, seed, kind):
    q, n = min(q, n), max(q, n)
    X = matrix(q, n, seed, kind)
    vectors, turned, values = X.ravel().copy(), np.empty(q * q), np.empty(q)
    rank = svd(vectors, q, n, turned, values)
    W, T = vectors.reshape(q, n), turned.reshape(q, q)
    size = np.linalg.norm(X)
    np.testing.assert_allclose(values, np.linalg.svd(X, compute_uv=False), rtol=1e-12, atol=1e-13 * size)
    np.testing.assert_allclose(T @ T.T, np.eye(q), atol=1e-13)
    np.testing.assert_allclose(T.T @ W, X, atol=1e-13 * size)
    assert rank == np.count_nonzero(values) and (np.diff(values) <= 0).all()
    U = W[:rank] / values[:rank, None]
    np.testing.assert_allclose(U @ U.T, np.eye(rank), atol=1e-7 if kind == "graded" else 1e-10)
    if kind in ("rank two", "ones", "zero"):
        assert rank == min(q, {"rank two": 2, "ones": 1, "zero": 0}[kind])


def test_singular_values_of_larger_matrices():
    for q, n in ((64, 64), (10, 3000), (90, 100)):
        X = matrix(q, n, q)
        vectors, turned, values = X.ravel().copy(), np.empty(q * q), np.empty(q)
        svd(vectors, q, n, turned, values)
        np.testing.assert_allclose(values, np.linalg.svd(X, compute_uv=False), rtol=1e-12)


@repeatable
@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 2**32), st.sampled_from(KINDS))
def test_orthonormal_columns(n, r, seed, kind):
    X = matrix(n, min(n, r), seed, kind)
    r = X.shape[1]
    columns = X.ravel().copy()
    orthonormalize(columns, n, r)
    Q = columns.reshape(n, r)
    gram = Q.T @ Q
    kept = np.diag(gram) > 0.5
    np.testing.assert_allclose(gram, np.diag(kept.astype(float)), atol=1e-12)
    if kind != "graded":  # there a small column may count as dependent or not
        assert kept.sum() == np.linalg.matrix_rank(X)
    np.testing.assert_allclose(Q @ (Q.T @ X), X, atol=1e-10 * np.abs(X).max() + 1e-300)


@pytest.mark.parametrize("scale", [1.0, 1e-310, 5e-324, 1e300, 1.7e308])
def test_loading_scales_by_a_power_of_two(scale):
    X = np.array([[1.0, -1.0, 0.5], [0.25, 1.0, 0.0]]) * scale
    for by_columns in (False, True):
        out = np.empty(6)
        e = load_scaled(X.ravel(), 2, 3, by_columns, out)
        held = out.reshape(3, 2).T if by_columns else out.reshape(2, 3)
        assert 0.5 <= np.abs(held).max() < 1.0
        np.testing.assert_array_equal(np.ldexp(held, e), X)


@repeatable
@given(st.integers(1, 20), st.floats(0.05, 1.0), st.integers(0, 2**32))
def test_probabilities_of_the_kernel_and_of_the_formula(n, share, seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.standard_cauchy(n) ** 2)[::-1]
    rank = int(rng.integers(1, n + 1))
    values[rank:] = 0.0
    p = np.empty(n)
    spread(values, rank, share * n, p)
    np.testing.assert_allclose(p, bounds.atomo_probabilities(values, share * n), rtol=1e-12, atol=1e-15)
    assert p.sum() == pytest.approx(min(share * n, rank), rel=1e-12)
    assert (p[:rank] > 0).all() and (p <= 1).all() and not p[rank:].any()


# --- plain references -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["normal", "rank two", "zero columns", "zero"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (9, 1), (8, 5), (5, 8), (33, 6)])
def test_each_is_its_definition(shape, kind):
    q = min(shape)
    for c in (
        th.SpectralAtomo(*shape, 0.4 * q),
        th.SpectralAtomo(*shape, q),
        th.BestRank(*shape, (q + 1) // 2),
        th.QuantizedSpectrum(*shape, 1),
        th.QuantizedSpectrum(*shape, 5),
        th.PowerSGD(*shape, (q + 1) // 2),
    ):
        for seed in range(3):
            X, stream = matrix(*shape, seed, kind), key(seed, "plain")
            restored = th.compress(c, X.ravel(), stream, wire_dtype=WIDE).reshape(shape)
            expected = reference(c, X.ravel(), stream, WIDE).reshape(shape)
            np.testing.assert_allclose(restored, expected, atol=1e-11 * np.linalg.norm(X))


def test_whole_budgets_and_ranks_lose_nothing():
    X = matrix(7, 4, 0)
    for c in (th.SpectralAtomo(7, 4, 4), th.BestRank(7, 4, 4), th.PowerSGD(7, 4, 4)):
        np.testing.assert_allclose(th.compress(c, X.ravel(), 1, wire_dtype=WIDE), X.ravel(), atol=1e-13)
    low = matrix(7, 4, 0, "rank two")
    for c in (th.SpectralAtomo(7, 4, 2), th.BestRank(7, 4, 2), th.PowerSGD(7, 4, 3)):
        np.testing.assert_allclose(th.compress(c, low.ravel(), 1, wire_dtype=WIDE), low.ravel(), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e30, 1e37])
def test_weights_stand_half_in_either_factor(scale):
    """What v can hold, the float32 of the wire can: also where the square of a number, or a whole weight, would not."""
    X = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]]) * scale
    for c in (th.SpectralAtomo(2, 3, 2), th.BestRank(2, 3, 2)):
        np.testing.assert_allclose(th.compress(c, X.ravel(), 0) / scale, X.ravel() / scale, rtol=1e-6)


def test_bits():
    X = matrix(12, 5, 0).ravel()
    for c, expected in (
        (th.BestRank(12, 5, 2), 2 + 2 * 17 * 32),
        (th.PowerSGD(12, 5, 3), 3 * 17 * 32),
        (th.SpectralAtomo(12, 5, 5), 3 + 5 * 17 * 32),
    ):
        assert th.expected_payload_bits(c, X) == pytest.approx(expected, rel=1e-12)
        symbols = new_symbols(c, 60, np.empty(0, np.float32))
        quantize(c, np.zeros(state_size(c, 60)), X, key(0), symbols)
        assert payload_bits(c, symbols, 60) == expected
    assert len(th.encode(th.SpectralAtomo(12, 5, 1), np.zeros(60), 0)) < 50
    low = matrix(12, 5, 0, "ones").ravel()
    assert th.expected_payload_bits(th.SpectralAtomo(12, 5, 3), low) == 3 + 17 * 32


@pytest.mark.parametrize("c", [th.SpectralAtomo(12, 5, 2), th.BestRank(12, 5, 2), th.QuantizedSpectrum(12, 5, 5)])
def test_foreign_payloads_are_refused(c):
    """A number of triplets, or a level, that cannot be; and every cut."""
    v, symbols = matrix(12, 5, 1).ravel(), new_symbols(c, 60, np.empty(0, np.float32))
    quantize(c, np.zeros(0), v, key(1), symbols)
    size = payload_bits(c, symbols, 60)
    buffer = np.zeros(size // 8 + 9, np.uint8)
    assert pack(c, symbols, 60, buffer, 0) == size == unpack(c, buffer, 0, size, 60, symbols)
    for cut in (0, 1, 2, 40, size - 32, size - 1):
        assert unpack(c, buffer, 0, cut, 60, symbols) == -1
    full = np.full(5000, 255, np.uint8)
    assert unpack(c, full, 0, 8 * full.size, 60, symbols) == -1
    if type(c) is th.QuantizedSpectrum:
        one = np.zeros(200, np.uint8)
        for level in range(1, 9):
            one[0] = 1 | (level - 1) << 3
            assert (unpack(c, one, 0, 1600, 60, symbols) > 0) == (level <= 5)


def test_factors():
    assert th.omega(th.SpectralAtomo(12, 5, 2), 60) == 1.5
    assert th.omega(th.QuantizedSpectrum(12, 16, 1), 192) == bounds.qsgd_variance(12, 1)
    assert th.delta(th.BestRank(12, 5, 2), 60) == th.delta(th.PowerSGD(5, 12, 2, warm=False), 60) == 0.4
    for c, function in ((th.PowerSGD(5, 12, 2), th.delta), (th.BestRank(5, 12, 2), th.omega)):
        with pytest.raises(TypeError):
            function(c, 60)
    assert [squarest(d) for d in (1, 2, 7, 12, 36, 200)] == [(1, 1), (2, 1), (7, 1), (4, 3), (6, 6), (20, 10)]


# --- PowerSGD ---------------------------------------------------------------------------------------------------------


def orth(P):
    return np.linalg.qr(P)[0]


def test_a_warm_start_is_the_last_message():
    """Subspace iteration in NumPy, on a matrix that moves a little."""
    rows, columns, rank = 12, 8, 3
    c, state = th.PowerSGD(rows, columns, rank), np.zeros(state_size(th.PowerSGD(rows, columns, rank), 96))
    symbols, out = new_symbols(c, 96, np.empty(0)), np.empty(96)
    Q = np.array([[normal(key(3), j * rank + k) for k in range(rank)] for j in range(columns)])
    for t in range(8):
        M = matrix(rows, columns, 0) + 0.1 * matrix(rows, columns, t + 1)
        P = orth(M @ Q)
        Q = M.T @ P
        quantize(c, state, np.ascontiguousarray(M.ravel()), key(3), symbols)
        restore(c, symbols, out)
        update_state(c, M.size, state, symbols)
        np.testing.assert_allclose(out.reshape(rows, columns), P @ Q.T, atol=1e-11)


def test_a_cold_start_forgets():
    c, v = th.PowerSGD(6, 5, 2, warm=False), matrix(6, 5, 0).ravel()
    state, symbols, out = np.zeros(state_size(c, 30)), new_symbols(c, 30, np.empty(0)), np.empty(30)
    for stream in (key(1), key(2)):
        quantize(c, state, v, stream, symbols)
        restore(c, symbols, out)
        update_state(c, v.size, state, symbols)
        assert (out == th.compress(c, v, stream, wire_dtype=WIDE)).all()


def test_columns_that_died_are_drawn_anew():
    """After a matrix of rank one, the second column of Q is zero; the next matrix needs it."""
    c = th.PowerSGD(6, 5, 2)
    state, symbols, out = np.zeros(state_size(c, 30)), new_symbols(c, 30, np.empty(0)), np.empty(30)
    for kind in ("ones", "zero", "rank two"):
        v = matrix(6, 5, 0, kind).ravel()
        quantize(c, state, v, key(1, kind), symbols)
        restore(c, symbols, out)
        update_state(c, v.size, state, symbols)
        np.testing.assert_allclose(out, v, atol=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_together_are_one_that_holds_the_mean(workers):
    rows, columns, rank = 9, 7, 2
    c, d = th.PowerSGD(rows, columns, rank), rows * columns
    assert shares_stream(c) and opening(c, d) == rows * rank and not opening_is_maximum(c)
    first, last = summed(c, d)
    assert (first, last) == (rows * rank, (rows + columns) * rank)
    states, one = np.zeros((workers, state_size(c, d))), np.zeros(state_size(c, d))
    for t in range(4):  # also with the warm start that each of them keeps
        held = [np.ascontiguousarray(matrix(rows, columns, 10 * t + w).ravel()) for w in range(workers)]
        numbers = np.empty((workers, opening(c, d)))
        for w in range(workers):
            propose(c, states[w], held[w], key(t), numbers[w])
        messages = [new_symbols(c, d, np.empty(0)) for _ in range(workers)]
        for w in range(workers):
            settle(c, d, states[w], numbers.mean(axis=0))
            quantize(c, states[w], held[w], key(t), messages[w])
        for message in messages[1:]:  # outside the range they are the same, bit for bit
            assert (message.value[:first] == messages[0].value[:first]).all()
        total = messages[0]
        total.value[first:last] = np.mean([m.value[first:last] for m in messages], axis=0)
        out, alone, symbols = np.empty(d), np.empty(d), new_symbols(c, d, np.empty(0))
        restore(c, total, out)
        quantize(c, one, np.mean(held, axis=0), key(t), symbols)
        restore(c, symbols, alone)
        np.testing.assert_allclose(out, alone, atol=1e-12)
        for w in range(workers):
            update_state(c, d, states[w], total)
        update_state(c, d, one, symbols)


# --- formulas ---------------------------------------------------------------------------------------------------------


@repeatable
@given(st.integers(1, 15), st.floats(0.05, 1.0), st.integers(0, 2**32))
def test_atomo_variance_is_the_sum_over_its_probabilities(n, share, seed):
    values = np.random.default_rng(seed).standard_normal(n) ** 3
    p = bounds.atomo_probabilities(values, share * n)
    expected = np.sum(values**2 / p) - values @ values
    assert bounds.atomo_variance(values, share * n) == pytest.approx(expected, rel=1e-9, abs=1e-12 * (values @ values))
    worst = bounds.spectral_atomo_variance(n, n + 3, share * n) * (values @ values)
    assert bounds.atomo_variance(values, share * n) <= worst * (1 + 1e-12) + 1e-12


def test_atomo_of_little():
    assert bounds.atomo_probabilities([0.0, 3.0, 0.0], 2).tolist() == [0.0, 1.0, 0.0]
    assert bounds.atomo_probabilities([0.0, 0.0], 1).tolist() == [0.0, 0.0]
    assert bounds.atomo_variance([0.0, 3.0], 2) == bounds.atomo_variance([0.0], 1) == 0.0
    assert bounds.atomo_probabilities([-1e300, 1e300], 1.0).tolist() == [0.5, 0.5]
    assert bounds.ternary_budget([1e200, 1e200], 3.0) == pytest.approx(2 / 2 ** (1 / 3))


def test_cold_power_sgd_against_samples_in_numpy():
    """The bound is attained by flat spectra, and above the mean error of others, where Halko's is the sharper one."""
    rng = np.random.default_rng(0)
    for s, tight in ((np.array([1.0, 1, 1, 1, 0]), True), (0.3 ** np.arange(5), False)):
        X = np.diag(s)
        errors = []
        for _ in range(400):
            P = orth(X @ rng.standard_normal((5, 3)))
            errors.append(np.linalg.norm(X - P @ P.T @ X) ** 2)
        mean, bound = np.mean(errors), bounds.power_sgd_cold_error(s, 3)
        assert mean == pytest.approx(bound, rel=1e-9) if tight else bounds.best_rank_error(s, 3) <= mean <= bound
        if not tight:
            assert mean <= bounds.power_sgd_halko(s, 3) < bound


# --- on softmax -------------------------------------------------------------------------------------------------------


def test_gradients_of_softmax_are_matrices_that_these_take():
    rng = np.random.default_rng(0)
    problem = th.softmax((rng.standard_normal((40, 6)), rng.integers(0, 4, 40)), 0.1)
    f0 = th.value(problem, np.zeros(problem.d))
    for c in (th.SpectralAtomo(*problem.shape, 2), th.QuantizedSpectrum(*problem.shape, 2)):
        result = th.run(th.ParallelSGD(c, step=th.Constant(0.2), batch=20), problem, workers=2, steps=60)
        assert result.success and result.fun < f0
    for c in (th.BestRank(*problem.shape, 1), th.PowerSGD(*problem.shape, 1)):
        method = th.ParallelSGD(c, step=th.Constant(0.2), feedback=th.ErrorFeedback(), batch=20)
        result = th.run(method, problem, workers=2, steps=60)
        assert result.success and result.fun < f0
        assert result.history["bits_up"][-1] == pytest.approx(60 * 10 * 32, rel=0.01)


def test_the_trade_runs_and_counts():
    rng = np.random.default_rng(0)
    problem = th.softmax((rng.standard_normal((60, 8)), rng.integers(0, 5, 60)), 0.1)
    methods = spectral_methods(*problem.shape)
    methods = {name: methods[name] for name in ("full precision", "spectral ATOMO, budget 2", "best rank 1, memory")}
    table = spectral_trade(problem, accuracy=0.2, steps=400, workers=2, batch=30, replicas=2, methods=methods)
    assert [row.name for row in table] == list(methods) and all(math.isfinite(row.steps) for row in table)
    base = table[0]
    assert base.steps_ratio == base.bits_ratio == 1.0 and 0 < base.steps <= 400
    assert base.bits == pytest.approx(base.steps * 40 * 32)
    for row in table[1:]:
        assert row.steps_ratio == pytest.approx(row.steps / base.steps)
        assert row.bits_ratio == pytest.approx(base.bits / row.bits)
    assert table[2].message_ratio == pytest.approx(40 * 32 / (13 * 32 + 1), rel=1e-6)
    assert table[2].bits == pytest.approx(table[2].steps * (13 * 32 + 1), rel=1e-6)
