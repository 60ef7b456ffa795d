"""EF21 and related methods against their algorithms in NumPy, and two ranks against one process."""

from __future__ import annotations

import warnings

import difference_job
import numpy as np
import pytest
from quadratics import Quadratics, top
from ranks_job import require_same_bits, run_on_ranks

import theory as th

WORKERS, D, STEP, STEPS = 4, 6, 0.2, 25
KNOWN = Quadratics(WORKERS, D)
PROBLEM, gradients = KNOWN.problem, KNOWN.gradients


def momentum(a):
    def by_hand(x):
        v, g = gradients(x), np.zeros((WORKERS, D))
        for _ in range(STEPS):
            g = g + top(v - g, 2)
            x = x - STEP * g.mean(axis=0)
            v = (1.0 - a) * v + a * gradients(x)
        return x

    return by_hand


def model_compressed(x):
    w = x
    for _ in range(STEPS):
        x = x - STEP * gradients(w).mean(axis=0)
        w = w + top(x - w, 3)[0]
    return x


def both_ways(x):
    h, g = np.zeros((WORKERS, D)), np.zeros(D)
    for _ in range(STEPS):
        h = h + top(gradients(x) - h, 2)
        g = g + top(h.mean(axis=0) - g, 3)[0]
        x = x - STEP * g
    return x


def two_factors(x):
    h = np.zeros((WORKERS, D))
    for _ in range(STEPS):
        d = top(gradients(x) - h, 2)
        x = x - STEP * (h.mean(axis=0) + 0.8 * d.mean(axis=0))
        h = h + 0.6 * d
    return x


def controlled(x):
    e, h = np.zeros((WORKERS, D)), np.zeros((WORKERS, D))
    for _ in range(STEPS):
        g = gradients(x)
        message = top(0.2 * e + g - h, 2)
        e = e + g - h - message
        h = h + message
        x = x - STEP * h.mean(axis=0)
    return x


def muon(a, oracle, down=3):
    def by_hand(x):
        w, m, g = x, gradients(x), np.zeros((WORKERS, D))
        for _ in range(STEPS):
            g = g + top(m - g, 2)
            x = x - STEP * oracle(g.mean(axis=0))
            w = w + top(x - w, down)[0]
            m = (1.0 - a) * m + a * gradients(w)
        return x

    return by_hand


def nearly_orthogonal(v):
    """Of a square and of a wide matrix U V', of which three Newton-Schulz steps change the singular values."""
    found = []
    for M in (v[:4].reshape(2, 2), v[4:].reshape(1, 2)):
        U, s, Vt = np.linalg.svd(M / np.linalg.norm(M), full_matrices=False)
        for _ in range(3):
            s = s * (15.0 - 10.0 * s**2 + 3.0 * s**4) / 8.0
        found.append((U * s @ Vt).ravel())
    return np.concatenate(found)


def lazily(k, zeta):
    def by_hand(x):
        g, before = np.zeros((WORKERS, D)), None
        for _ in range(STEPS):
            now = gradients(x)
            change = np.zeros_like(now) if before is None else now - before
            sends = (np.square(now - g).sum(axis=1) > zeta * np.square(change).sum(axis=1))[:, None]
            g, before = g + sends * top(now - g, k), now
            x = x - STEP * g.mean(axis=0)
        return x

    return by_hand


def signs(a, vote):
    def by_hand(x):
        m = gradients(x)
        for _ in range(STEPS):
            mean = np.where(m < 0.0, -1.0, 1.0).mean(axis=0)
            x = x - STEP * (np.where(mean < 0.0, -1.0, 1.0) if vote else mean)
            m = (1.0 - a) * m + a * gradients(x)
        return x

    return by_hand


SPLIT = {"shards": "contiguous"}
CASES = {
    "Signum": (th.Signum(th.Constant(STEP), 0.3, **SPLIT), signs(0.3, vote=False)),
    "Signum, vote": (th.Signum(th.Constant(STEP), 0.3, "majority", **SPLIT), signs(0.3, vote=True)),
    "EF21": (th.EF21(th.TopK(2), th.Constant(STEP), **SPLIT), momentum(1.0)),
    "EF21-SGDM": (th.EF21SGDM(th.TopK(2), th.Constant(STEP), momentum=0.3, **SPLIT), momentum(0.3)),
    "EF21-SGDM, 1": (th.EF21SGDM(th.TopK(2), th.Constant(STEP), momentum=1.0, **SPLIT), momentum(1.0)),
    "EF21-P": (th.EF21P(th.TopK(3), th.Constant(STEP), **SPLIT), model_compressed),
    "EF21-BC": (th.EF21BC(th.TopK(2), th.Constant(STEP), down=th.TopK(3), **SPLIT), both_ways),
    "EF-BV": (th.EFBV(th.TopK(2), th.Constant(STEP), lam=0.6, nu=0.8, **SPLIT), two_factors),
    "EControl": (th.EControl(th.TopK(2), th.Constant(STEP), control=0.2, **SPLIT), controlled),
    "EF21-Muon": (
        th.EF21Muon(th.TopK(2), th.Constant(STEP), 0.3, ((2, 2), (1, 2)), 3, th.TopK(3), **SPLIT),
        muon(0.3, nearly_orthogonal),
    ),
    "EF21-Muon, signs": (
        th.EF21Muon(th.TopK(2), th.Constant(STEP), 1.0, "sign", **SPLIT),
        muon(1.0, np.sign, down=D),  # entries of equal size would be a matter of rounding
    ),
    "EF21-Muon, one norm": (
        th.EF21Muon(th.TopK(2), th.Constant(STEP), 0.3, "euclidean", down=th.TopK(3), **SPLIT),
        muon(0.3, lambda v: v / np.linalg.norm(v)),
    ),
    "CLAG": (th.CLAG(th.TopK(2), th.Constant(STEP), trigger=2.0, **SPLIT), lazily(2, 2.0)),
    "LAG": (th.CLAG(step=th.Constant(STEP), trigger=2.0, **SPLIT), lazily(D, 2.0)),
}


def run(method, steps=STEPS, **options):
    return th.run(method, PROBLEM, workers=WORKERS, steps=steps, x0=np.ones(D), wire_dtype=np.float64, **options)


@pytest.mark.parametrize("name", CASES)
def test_each_is_its_algorithm(name):
    method, by_hand = CASES[name]
    np.testing.assert_allclose(run(method).x, by_hand(np.ones(D)), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_replayed_and_in_python_it_gives_the_same_bits(name):
    result, text = run(CASES[name][0]), run(CASES[name][0], fast=False)
    assert np.array_equal(result.x, text.x) and np.array_equal(result.history["bits_up"], text.history["bits_up"])


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    return run_on_ranks(difference_job, tmp_path_factory.mktemp("differences"))


@pytest.mark.parametrize("name", difference_job.METHODS)
def test_same_bits_on_ranks(name, on_ranks):
    result = require_same_bits(difference_job, name, on_ranks)
    assert result.fun < 0.9 * result.history["f"][0]


def test_the_exact_rate_is_reached_on_ranks(on_ranks):
    rate = th.bounds.exact_feedback_rate(1.0 - difference_job.MISSING**2, difference_job.KAPPA)
    for name in ("EF21", "EF21P"):
        assert on_ranks[f"{name}, factor"] == pytest.approx(rate, rel=1e-4)


def test_messages_that_do_not_contract_are_told_before_the_run():
    for method, told in ((th.EF21, True), (th.EFBV, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(method(th.RandK(1, unbiased=True), th.Constant(1e-3), **SPLIT), steps=2)
        assert told == any("is no contraction, which the theorem of EF21" in str(one.message) for one in caught)


@pytest.mark.parametrize("inner", [th.TopK(3), th.QSGD(3), th.Bucketed(th.RandK(2), 8)])
def test_a_bit_says_whether_a_message_follows(inner):
    v, c = np.random.default_rng(1).standard_normal(20), th.SkipZero(inner)
    assert np.array_equal(th.decode(th.encode(c, v, 3)), th.decode(th.encode(inner, v, 3)))
    nothing = th.encode(c, np.zeros(20), 3)
    assert not th.decode(nothing).any()
    with pytest.raises(ValueError, match="inner: got .*, allowed: a compressor without a state"):
        th.compress(th.SkipZero(th.PowerSGD(4, 5, 1)), v, 3)


@pytest.mark.parametrize("momentum", [1.0, 0.3])
def test_the_step_of_theory_is_that_of_the_formula(momentum):
    """With one worker and exact gradients; and with noise that of the theorem about noise."""
    problem, noisy = th.quadratic([0.5, 2.0], covariance=0.0), th.quadratic([0.5, 2.0], covariance=1.0)
    step = th.theory_step(th.EF21(th.TopK(1), "theory"), problem, 1).step.eta
    q = np.sqrt(0.5)  # delta = 1/2
    ratio = (1.0 + q) / 0.5 - 1.0
    assert step == pytest.approx(min(1.0 / (2.0 + np.sqrt(2.0) * 2.0 * ratio), (1.0 - q) / (2.0 * 0.5)))
    found = th.theory_step(th.EF21SGDM(th.TopK(1), "theory", momentum=momentum), noisy, 4)
    assert found.formula == "ef21_momentum_step" and 0.0 < found.step.eta < step
    with pytest.raises(ValueError, match="no theorem of the package covers CLAG with noisy gradients"):
        th.theory_step(th.CLAG(step="theory"), noisy, 4)


def test_the_step_of_econtrol_is_that_of_its_contraction():
    """Without compression gradient descent has 1/L; beyond its part of the error there is no theorem."""
    problem, noisy = th.quadratic([0.5, 2.0], covariance=0.0), th.quadratic([0.5, 2.0], covariance=1.0)
    found = th.theory_step(th.EControl(th.Identity(), "theory", control=0.5), problem, 2)
    assert found.step.eta == pytest.approx(0.5)  # min(1/L, A/(2 mu)) = min(1/2, 1/2)
    default = th.EControl(th.TopK(1), th.Constant(0.1)).settled(problem)
    assert default.control == pytest.approx(0.25 / (1.0 + np.sqrt(0.5)) ** 2)  # delta = 1/2
    with pytest.raises(ValueError, match="no theorem of the package covers"):
        th.theory_step(th.EControl(th.TopK(1), "theory", control=0.9), problem, 2)
    with pytest.raises(ValueError, match="no theorem of the package covers EControl with noisy gradients"):
        th.theory_step(th.EControl(th.TopK(1), "theory"), noisy, 2)


@pytest.mark.parametrize(("method", "control"), [("EControl", 0.3), ("EF", 0.1), ("EF21", 0.1)])
def test_what_noise_leaves_is_that_of_a_loop(method, control):
    """With multiples of half the message, on two workers whose minima differ; x^2 over time and 4,000 repetitions."""
    rng, zeta, step = np.random.default_rng(5), np.array([2.0, -2.0]), 0.1
    x, e, h, squares = np.zeros(4000), np.zeros((4000, 2)), np.zeros((4000, 2)), []
    for _ in range(400):
        g = x[:, None] - zeta + 1.5 * rng.standard_normal(e.shape)
        sent = 0.5 * (e + g if method == "EF" else (control * e if method == "EControl" else 0.0) + g - h)
        e, h = e + g - h - sent, h + sent * (method != "EF")
        x = x - step * (sent if method == "EF" else h).mean(axis=1)
        squares.append(np.mean(x**2))
    known = dict(step=step, control=control, variance=2.25, spread=4.0, workers=2, method=method, form="multiple")
    assert np.mean(squares[200:]) == pytest.approx(th.bounds.feedback_floor(0.75, **known), rel=0.02)


def test_a_step_above_the_theorems_warns():
    problem = th.quadratic([0.5, 2.0], covariance=0.0)
    longest = th.EF21(th.TopK(1), th.Constant(1.0)).longest_step(problem, 2)
    with pytest.warns(th.LongStepWarning, match="the step of the theorem of EF21"):
        th.run(th.EF21(th.TopK(1), th.Constant(1.37 * longest)), problem, workers=2, steps=3)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (1, 5), (5, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_a_muon_step_is_the_nearest_orthogonal_matrix(shape, scale):
    G = scale * np.random.default_rng(0).standard_normal(shape)
    problem = th.function(lambda x: float(G.ravel() @ x), lambda x: G.ravel(), d=G.size)
    method = th.EF21Muon(step=th.Constant(0.5), norm=(shape,), iterations=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", th.WrongGradientWarning)  # of values that overflow
        x = th.run(method, problem, workers=2, steps=1, x0=np.zeros(G.size), wire_dtype=np.float64).x
    U, _, Vt = np.linalg.svd(G, full_matrices=False)
    np.testing.assert_allclose(x.reshape(shape), -0.5 * U @ Vt, rtol=0.0, atol=1e-12)


def test_muon_moves_each_layer_of_a_network_by_its_norm():
    """The norms of a network are those of its layers; a weight that no row has does not move along signs."""
    network = th.two_layer((np.eye(4)[[0, 1, 1]], [0, 1, 2]), width=3, l2=0.0)
    cases = {
        "spectral": ([(4, 3), (3, 3)], lambda M: np.linalg.norm(M, 2)),
        "euclidean": ([(12, 1), (9, 1)], np.linalg.norm),
        "sign": ([(1, 1)] * 21, lambda M: np.abs(M).max()),
    }
    for norm, (expected, size) in cases.items():
        method = th.EF21Muon(step=th.Constant(0.25), norm=norm, iterations=30, batch=64)
        assert np.array_equal(method.matrices(network, network.d), expected)
        start = th.initial_point(network, 0)
        moved = start - th.run(method, network, workers=1, steps=1, x0=start, wire_dtype=np.float64).x
        W, V = moved[:12].reshape(4, 3), moved[12:].reshape(3, 3)
        assert not W[2:].any()
        assert [size(W), size(V)] == pytest.approx([0.25, 0.25])
    with pytest.raises(ValueError, match="norm: got .*, allowed: shapes of matrices with 21 entries in all"):
        th.run(th.EF21Muon(step=th.Constant(0.25), norm=((4, 4),)), network, workers=1, steps=1)


def test_a_silent_worker_sends_one_bit():
    """LAG: the bits are those of the rounds in which a worker sends, and one for each."""
    sent, g, x, before = 0, np.zeros((WORKERS, D)), np.ones(D), None
    for _ in range(STEPS):
        now = gradients(x)
        change = np.zeros_like(now) if before is None else now - before
        sends = np.square(now - g).sum(axis=1) > 2.0 * np.square(change).sum(axis=1)
        sent, g, before = sent + sends.sum(), np.where(sends[:, None], now, g), now
        x = x - STEP * g.mean(axis=0)
    assert 0 < sent < WORKERS * STEPS
    bits = run(CASES["LAG"][0]).history["bits_up"][-1]
    assert bits == pytest.approx((sent * 64 * D + WORKERS * STEPS) / WORKERS)


def test_only_the_models_message_comes_down():
    assert run(CASES["EF21-BC"][0]).history["bits_down"][-1] == STEPS * 3 * (64 + 3)
    assert run(CASES["EF21-P"][0]).history["bits_down"][-1] == STEPS * 3 * (64 + 3)
    assert run(CASES["EF21-P"][0]).history["bits_up"][-1] == STEPS * 64 * D


def test_what_ef21_stores_is_counted_and_different_minima_leave_no_bias():
    result = run(CASES["EF21"][0], 400)
    assert (result.memory_bytes, result.server_bytes, result.server["g"].shape[-1]) == (8 * D, 8 * D, D)
    np.testing.assert_allclose(result.x, KNOWN.optimum, atol=1e-9)


def test_with_a_trigger_of_zero_it_is_ef21_and_with_one_factor_ef_bv_is():
    ef21 = run(th.EF21(th.TopK(2), th.Constant(STEP), **SPLIT)).x
    for method in (
        th.CLAG(th.TopK(2), th.Constant(STEP), trigger=0.0, **SPLIT),
        th.EFBV(th.TopK(2), th.Constant(STEP), **SPLIT),
        th.EF21BC(th.TopK(2), th.Constant(STEP), **SPLIT),
        th.EF21SGDM(th.TopK(2), th.Constant(STEP), momentum=1.0, **SPLIT),
    ):
        np.testing.assert_allclose(run(method).x, ef21, rtol=1e-9)
