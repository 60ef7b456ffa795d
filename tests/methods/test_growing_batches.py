"""Growing batches, Catalyst and local SGD: closed forms by hand, methods against loops by hand, doors, verdicts."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory import bounds
from theory.claims.topics.growing_batches import wavy, wavy_pl, wavy_slope
from theory.methods.schedules import GrowingBatch, batch_size
from theory.problems import base
from theory.studies import catalyst as catalyst_study
from theory.studies import cr_psgd as cr_psgd_study
from theory.studies.shared.curves import Curve, cost_table, synthetic

KNOWN = dict(mu=1.0, lipschitz=4.0, variance=3.0, workers=2, gap=5.0)


# --- CR-PSGD: closed forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize("rho, first", [(1.5, 1), (math.sqrt(2.0), 3), (2.0, 1), (1.01, 2)])
def test_the_batches_are_those_of_the_method(rho, first, rounding):
    batches = bounds.growing_batches(3000, rho, first, rounding)
    schedule = GrowingBatch(rho, first, rounding)
    assert list(batches) == [batch_size(schedule, t) for t in range(len(batches))]
    assert sum(batches) <= 3000 < sum(batches) + batch_size(schedule, len(batches))


def test_the_recursion_step_by_step():
    gap, q = 5.0, 1.0 - 0.2 * 1.0 * (2.0 - 4.0 * 0.2)
    for size in (1, 3, 9):
        gap = q * gap + 4.0 * 0.2**2 * 3.0 / (2.0 * 2 * size)
    assert bounds.cr_psgd((1, 3, 9), step=0.2, **KNOWN) == pytest.approx(gap, rel=1e-14)
    assert bounds.cr_psgd((), **KNOWN) == 5.0


@pytest.mark.parametrize("rho, first, rounds", [(1.1, 1, 30), (1.3, 4, 7)])
def test_the_geometric_sum_and_the_budget(rho, first, rounds):
    sizes = [first * rho**s for s in range(rounds)]
    summed = bounds.cr_psgd(sizes, **KNOWN)
    assert bounds.cr_psgd_geometric(rounds, rho=rho, first=first, **KNOWN) == pytest.approx(summed, rel=1e-12)
    assert bounds.growing_rounds(sum(sizes), rho, first, batches="real") == pytest.approx(rounds, rel=1e-12)
    spent = bounds.cr_psgd_rate(sum(sizes), rho=rho, first=first, batches="real", **KNOWN)
    assert summed < spent <= summed / (1.0 - (0.75 * rho) ** rounds)  # the budget's form drops the last factor


def test_the_budget_bounds_whole_batches_at_every_budget():
    rho = bounds.optimal_rho(1.0, 4.0)
    for samples in range(1, 400):
        exact = bounds.cr_psgd(bounds.growing_batches(samples, rho), **KNOWN)
        assert exact <= bounds.cr_psgd_rate(samples, **KNOWN)
        rounds = len(bounds.growing_batches(samples, rho))
        low = math.floor(bounds.growing_rounds(samples, rho, batches="real"))
        assert low <= rounds <= bounds.growing_rounds(samples, rho)


def test_the_best_growth_is_the_best_of_a_grid():
    q = 1.0 - 1.0 / 4.0
    grid = np.linspace(1.0 + 1e-4, 1.0 / q - 1e-4, 20_001)
    assert bounds.optimal_rho(1.0, 4.0) == pytest.approx(
        grid[np.argmin(grid / ((grid - 1) * (1 - q * grid)))], abs=1e-4
    )
    assert bounds.optimal_rho(1.0, 4.0) == pytest.approx(2.0 / math.sqrt(3.0))


def test_linear_speed_up_of_the_noise():
    one, many = (bounds.cr_psgd_rate(10**6, **(KNOWN | {"workers": N, "gap": 0.0})) for N in (1, 16))
    assert one == pytest.approx(16.0 * many, rel=1e-12)
    ten = bounds.cr_psgd_rate(10**7, **(KNOWN | {"workers": 1, "gap": 0.0}))
    assert one / ten == pytest.approx(10.0, rel=1e-4)


def test_the_pl_constant_of_the_wavy_function():
    assert wavy_pl() == pytest.approx(0.1755, abs=1e-4)
    x = np.linspace(-20.0, 20.0, 100_001)
    x = x[np.abs(x) > 1e-6]
    assert np.all(wavy_slope(x) ** 2 / 2.0 >= 0.999999 * wavy_pl() * wavy(x))
    numeric = (wavy(x + 1e-6) - wavy(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(wavy_slope(x), numeric, atol=1e-5)


# --- less and less noise ----------------------------------------------------------------------------------------------


def test_shrinking_noise_is_above_its_recursion():
    for step, decay, gap in itertools.product((0.05, 0.25), (0.3, 0.9, 1.0), (0.0, 1.0, 50.0)):
        known = dict(step=step, curvature=1.0, lipschitz=4.0, noise=2.0, decay=decay, gap=gap)
        left, noise = gap, 0.5 * step**2 * 4.0 * 2.0
        for t in range(60):
            assert bounds.shrinking_noise_recursion(t, **known) == pytest.approx(left, rel=1e-12, abs=1e-300)
            assert left <= bounds.shrinking_noise(t, **known) * (1.0 + 1e-12)
            left = (1.0 - step) * left + noise * decay**t


def test_gradients_until_an_accuracy():
    known = dict(step=0.25, curvature=1.0, lipschitz=4.0, noise=3.0, gap=2.0)
    tau = bounds.growing_batch_limit(0.25, curvature=1.0, lipschitz=4.0)
    assert tau == pytest.approx(8.0 / 7.0)
    assert bounds.growing_batch_gradients(0.01, tau=tau, **known) == pytest.approx(4.0 * 3.0 / (0.01 * 0.25))
    slower = 1.0 / (1.0 - 0.5 * 0.125)
    assert bounds.growing_batch_gradients(0.01, tau=slower, **known) == pytest.approx(4.0 * 3.0 / (0.5 * 0.01 * 0.25))


def test_inexact_gradients_where_the_two_factors_meet():
    known = dict(mu=1.0, lipschitz=4.0, error=2.0, gap=3.0)
    q, t = 0.75, 9
    closed = q**t * 3.0 + 2.0 / 8.0 * (q**t - 0.5**t) / (q - 0.5)
    assert bounds.inexact_gradients(t, decay=0.5, **known) == pytest.approx(closed, rel=1e-12)
    assert bounds.inexact_gradients(t, decay=q, **known) == pytest.approx(
        q**t * 3.0 + 0.25 * t * q ** (t - 1), rel=1e-12
    )


def test_batches_without_replacement_by_enumeration():
    numbers = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    for size in (1, 2, 4, 5):
        means = [np.mean(batch) for batch in itertools.combinations(numbers, size)]
        assert bounds.batch_error(size, np.var(numbers, ddof=1), 5) == pytest.approx(np.var(means), abs=1e-12)


# --- Catalyst and local SGD: closed forms -----------------------------------------------------------------------------


def test_catalyst_is_put_together_from_its_parts():
    L, theta, N, sizes = 2.0, 5.0, 3, (1, 1, 2)
    q = 1.0 - (theta - L) / (theta + L)
    noise = 4.0 / (2.0 * N * (theta + L)) * (q**2 / 1 + q / 1 + 1 / 2)
    expected = 2.0 * (theta + L) / (1.0 - q**3) * (6.0 / 10 + noise)
    known = dict(lipschitz=L, theta=theta, variance=4.0, workers=N, gap=6.0)
    assert bounds.catalyst(10, sizes, **known) == pytest.approx(expected, rel=1e-12)
    looser = bounds.catalyst(10, sizes, **known, form="distance")
    assert looser == pytest.approx(expected * (theta + L) / (theta - L), rel=1e-12)


def test_the_budget_of_catalyst_is_never_exceeded():
    for samples, workers in itertools.product((16, 100, 999, 10_000), (1, 3, 8, 16)):
        outer, inner = bounds.catalyst_budget(samples, workers)
        assert outer * inner <= samples
        assert outer <= math.sqrt(samples * workers) < outer + 1


def test_the_local_theorem_solves_its_recursion():
    T, mu, L, H, N, G2, sigma2, R2 = 400, 0.5, 1.0, 40, 4, 3.0, 2.0, 1.5
    a = bounds.local_sgd_shift(mu, L, H)
    assert a == 40.0
    bound = bounds.local_sgd(
        T, mu=mu, lipschitz=L, local_steps=H, second_moment=G2, variance=sigma2, workers=N, distance=R2
    )
    eta, weights = 4.0 / (mu * (a + np.arange(T))), (a + np.arange(T)) ** 2
    assert eta[0] <= 1.0 / (4.0 * L) * (1 + 1e-12) or a > 16 * L / mu
    left, spent = R2, 0.0
    for t in range(T):  # all of f - f* is spent as early as it can be
        grown = max(0.0, 1.0 - mu * eta[t]) * left + eta[t] ** 2 * sigma2 / N + 8.0 * L * eta[t] ** 3 * G2 * H**2
        e = grown / (eta[t] / 2.0)
        left, spent = 0.0, spent + weights[t] * e
    assert spent / weights.sum() <= bound


def test_orders_of_rounds():
    N, T = 8, 8192
    orders = {
        name: bounds.rounds_order(name, T, N)
        for name in ("parallel SGD", "local SGD", "local SGD, non-convex", "CR-PSGD", "CR-PSGD-Catalyst")
    }
    assert list(orders.values()) == pytest.approx([8192, 256, 4096, math.log(8192), 256 * math.log(1024)])


# --- the proximal problem ---------------------------------------------------------------------------------------------


def inner_problems():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), np.where(rng.random(12) < 0.5, -1.0, 1.0)
    return {
        "logistic": th.logistic((sp.csr_matrix(X), y), l2=0.2),
        "nonconvex": th.nonconvex_logistic((sp.csr_matrix(X), y), weight=0.3),
        "quadratic": th.quadratic([1.0, 2.0, 3.0], covariance=0.0, optimum=[1.0, 0.0, -1.0]),
    }


@pytest.mark.parametrize("name", ["logistic", "nonconvex", "quadratic"])
def test_the_proximal_problem_is_the_sum(name):
    f, theta, centre = inner_problems()[name], 1.7, np.array([0.5, -1.0, 2.0])
    h, x = th.proximal(f, centre, theta), np.array([0.3, 0.7, -0.2])
    assert th.value(h, x) == pytest.approx(th.value(f, x) + theta / 2.0 * np.sum((x - centre) ** 2), rel=1e-14)
    assert th.value(h, centre) == th.value(f, centre)
    np.testing.assert_allclose(th.gradient(h, x), th.gradient(f, x) + theta * (x - centre), rtol=1e-13)
    np.testing.assert_array_equal(th.gradient(h, centre), th.gradient(f, centre))
    rows = range(max(1, f.n))
    for i in rows:
        one = th.sample_gradient(h, i, x)
        np.testing.assert_allclose(one, th.sample_gradient(f, i, x) + theta * (x - centre), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(th.batch_gradient(h, rows, x), th.gradient(h, x), rtol=1e-12)
    assert th.lipschitz(h) == pytest.approx(th.lipschitz(f) + theta)
    assert th.strong_convexity(h) == pytest.approx(th.strong_convexity(f) + theta)
    assert (h.n, h.d, h.l2) == (f.n, f.d, f.l2 + theta)


def test_its_second_moment_is_that_of_its_gradients():
    f = inner_problems()["logistic"]
    h, x = th.proximal(f, [1.0, 2.0, -1.0], 0.8), np.array([0.1, 0.2, 0.3])
    squares = [np.sum(th.sample_gradient(h, i, x) ** 2) for i in range(f.n)]
    assert th.second_moment(h, x) == pytest.approx(np.mean(squares), rel=1e-12)
    out = np.empty(3)
    base.moments(h, x, out)
    np.testing.assert_allclose(out, th.gradient(h, x), rtol=1e-12)


def test_the_centre_is_a_copy():
    centre = np.ones(3)
    h = th.proximal(inner_problems()["quadratic"], centre, 1.0)
    centre[:] = 7.0
    np.testing.assert_array_equal(h.centre, np.ones(3))


# --- the methods ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saturating():
    return th.saturating_quadratic(np.ones(4), covariance=0.25)


def test_catalyst_is_a_loop_of_proximal_problems(saturating):
    N, T, start = 2, 50, np.full(4, 0.8)
    result = th.catalyst(saturating, workers=N, samples=T, x0=start, seed=3, wire_dtype=np.float64)
    outer, inner = 10, 5  # sqrt(2 * 50), sqrt(50 / 2)
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.25), batch=th.GrowingBatch(math.sqrt(2.0)))
    y, rounds, values = start, 0, [th.value(saturating, start)]
    for k in range(outer):
        done = th.run(
            method,
            th.proximal(saturating, y, 3.0),
            workers=N,
            samples=inner,
            x0=y,
            wire_dtype=np.float64,
            seed=int(th.key(3, "catalyst", k)),
        )
        y, rounds = done.last, rounds + done.nit
        values.append(th.value(saturating, y))
    np.testing.assert_array_equal(result.x, y)
    np.testing.assert_allclose(result.history["f"], values, rtol=1e-14)
    assert result.outer == outer and result.nit == rounds == 30 and result.success
    np.testing.assert_array_equal(result.history["rounds"], 3 * np.arange(11))  # batches 1, 1, 2
    np.testing.assert_array_equal(result.history["samples"], 8 * np.arange(11))
    assert result.history["bits_up"][-1] == 30 * 4 * 64
    norms = [np.sum(th.gradient(saturating, x) ** 2) for x in (start, y)]
    assert result.history["gradient_norm"][0] ** 2 == pytest.approx(norms[0])
    assert result.history["gradient_norm"][-1] ** 2 == pytest.approx(norms[1])
    assert result.mean_squared_gradient == pytest.approx(np.mean(result.history["gradient_norm"][:-1] ** 2))


def test_catalyst_without_noise_minimises():
    problem = th.saturating_quadratic(np.ones(4), covariance=0.0)
    result = th.catalyst(problem, workers=2, samples=800, x0=np.full(4, 1.5))
    assert result.fun < 1e-3 * result.history["f"][0]
    assert np.all(np.diff(result.history["f"]) < 0.0)
    fewer = th.catalyst(problem, workers=2, samples=800, x0=np.full(4, 1.5), record_every=30)
    steps = fewer.history["step"]
    assert set(steps) < set(result.history["step"]) and np.all(np.diff(steps[:-1]) >= 30)
    assert steps[0] == 0 and steps[-1] == result.nit
    assert np.array_equal(fewer.x, result.x) and fewer.mean_squared_gradient == result.mean_squared_gradient


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("theta", {"theta": 1.0}, r"above L = 1"),
        ("rho", {"rho": 2.5}, r"\(1, 1/\(1 - nu\)\) = \(1, 2\)"),
        ("rho", {"rho": 1.0}, r"\(1, 2\)"),
        ("samples", {"samples": 3}, r"at least workers = 4"),
        ("samples", {"samples": 15, "first": 2}, r"workers \* first\*\*2 = 16"),
        ("step", {"step": 0.6}, r"\(0, 2 / lipschitz = 0.5\)"),
        ("x0", {"x0": [1.0]}, "shape"),
        ("x0", {"x0": np.full(4, np.nan)}, "finite"),
        ("record_every", {"record_every": 0}, "at least 1"),
    ],
)
def test_catalyst_refuses(saturating, name, options, message):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, allowed: .*{message}"):
        th.catalyst(saturating, **({"workers": 4, "samples": 100} | options))


class FourRanks:
    """What `run` asks of a communicator before anything is sent."""

    def Get_size(self):
        return 4

    def Get_rank(self):
        return 0


def test_workers_that_the_ranks_do_not_divide(saturating):
    with pytest.raises(ValueError, match=r"^workers: got 6, allowed: a multiple of the number of ranks, 4"):
        th.catalyst(saturating, workers=6, samples=100, comm=FourRanks())
    with pytest.raises(ValueError, match=r"^workers: got 6, allowed: a multiple of the number of ranks, 4"):
        problem = th.quadratic([1.0, 2.0], covariance=1.0)
        th.run(th.cr_psgd(problem), problem, workers=6, samples=100, comm=FourRanks())


def test_cr_psgd_chooses_what_the_theorem_says():
    problem = th.quadratic([1.0, 4.0], covariance=1.0)
    options = dict(workers=2, seed=5, x0=[1.0, 1.0], replicas=2)
    chosen = th.run(th.cr_psgd(problem), problem, samples=300, **options)
    method = th.ParallelSGD(th.Identity(), step=th.Constant(0.25), batch=th.GrowingBatch(math.sqrt(4.0 / 3.0)))
    by_hand = th.run(method, problem, samples=300, **options)
    np.testing.assert_array_equal(chosen.x, by_hand.x)
    assert chosen.nit == len(bounds.growing_batches(300, math.sqrt(4.0 / 3.0)))
    assert chosen.history["samples"][-1] == 2 * sum(bounds.growing_batches(300, math.sqrt(4.0 / 3.0)))


@pytest.mark.parametrize(
    "name, problem, options, message",
    [
        ("rho", [1.0, 4.0], {"rho": 1.4}, r"\(1, 1/\(1 - nu\)\) = \(1, 1.33333\)"),
        ("rho", [1.0, 4.0], {"rho": 0.9}, r"\(1, 1.33333\)"),
        ("samples", [1.0, 4.0], {"samples": 3, "first": 4}, r"at least first = 4"),
        ("step", [1.0, 4.0], {"step": 0.5}, r"\(0, 2 / lipschitz = 0.5\)"),
        ("rho", [4.0, 4.0], {}, r"any number above 1: give rho="),
        ("rho", [49.0, 49.0], {}, r"any number above 1: give rho="),  # 1 - 49 (1/49) is no 0 in floating point
        ("mu", [1.0, 4.0], {"mu": 5.0}, r"a number in \(0, lipschitz = 4\]"),
    ],
)
def test_cr_psgd_refuses(name, problem, options, message):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, allowed: .*{message}"):
        th.cr_psgd(th.quadratic(problem, covariance=1.0), **options)


def test_cr_psgd_wants_the_pl_condition(saturating):
    with pytest.raises(TypeError, match="SaturatingQuadratic does not satisfy the Polyak-Lojasiewicz inequality"):
        th.cr_psgd(saturating)
    flat = th.logistic(([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]), l2=0.0)
    with pytest.raises(ValueError, match="l2"):
        th.cr_psgd(flat)


# --- refusals of the formulas -----------------------------------------------------------------------------------------

NOISE = dict(step=0.25, curvature=1.0, lipschitz=4.0, noise=1.0, gap=1.0)
LOCAL = dict(mu=1.0, lipschitz=2.0, local_steps=4, second_moment=2.0, variance=1.0, distance=1.0)
REFUSED = [
    ("mu", lambda: bounds.pl_contraction(2.0, 1.0)),
    ("mu", lambda: bounds.pl_contraction(0.0, 1.0)),
    ("step", lambda: bounds.growth_limit(1.0, 2.0, 1.0)),
    ("step", lambda: bounds.optimal_rho(1.0, 1.0)),
    ("step", lambda: bounds.optimal_rho(49.0, 49.0)),
    ("rho", lambda: bounds.cr_psgd_geometric(3, rho=4 / 3, **KNOWN)),
    ("rho", lambda: bounds.cr_psgd_rate(30, rho=1.0, **KNOWN)),
    ("samples", lambda: bounds.cr_psgd_rate(3, first=4, **KNOWN)),
    ("batches", lambda: bounds.cr_psgd_rate(3, batches="half", **KNOWN)),
    ("batches", lambda: bounds.cr_psgd((1, 0), **KNOWN)),
    ("workers", lambda: bounds.cr_psgd((1,), **(KNOWN | {"workers": 0}))),
    ("rounding", lambda: bounds.growing_batches(9, 2.0, rounding="up")),
    ("rho", lambda: bounds.growing_batches(9, 1.0)),
    ("samples", lambda: bounds.growing_batches(3, 2.0, 4)),
    ("batches", lambda: bounds.growing_rounds(9, 2.0, batches="none")),
    ("step", lambda: bounds.shrinking_noise(3, **(NOISE | {"step": 0.3}), decay=0.5)),
    ("decay", lambda: bounds.shrinking_noise(3, **NOISE, decay=1.5)),
    ("length", lambda: bounds.shrinking_noise_recursion(3, **NOISE, decay=0.5, alignment=1.0, length=0.5)),
    ("tau", lambda: bounds.growing_batch_gradients(0.1, tau=1.2, **NOISE)),
    ("accuracy", lambda: bounds.growing_batch_gradients(1.0, tau=1.1, **NOISE)),
    ("mu", lambda: bounds.inexact_gradients(1, mu=3.0, lipschitz=2.0, error=1.0, decay=0.5, gap=1.0)),
    ("n", lambda: bounds.batch_error(3, 1.0, 2)),
    ("theta", lambda: bounds.catalyst_factor(1.0, 1.0)),
    ("form", lambda: bounds.catalyst_factor(1.0, form="best")),
    ("batches", lambda: bounds.catalyst(2, (), lipschitz=1.0, variance=1.0, gap=1.0)),
    ("samples", lambda: bounds.catalyst_budget(3, 4)),
    ("shift", lambda: bounds.local_sgd(9, **LOCAL, shift=31.0)),
    ("variance", lambda: bounds.local_sgd(9, **(LOCAL | {"variance": 3.0}))),
    ("local_steps", lambda: bounds.local_sgd_shift(1.0, 1.0, 0)),
    ("form", lambda: bounds.local_sgd_deviation(0.1, local_steps=2, second_moment=1.0, form="exact")),
    ("since", lambda: bounds.local_sgd_deviation_exact(-1, step=0.1, curvature=1.0, variance=1.0)),
    ("samples", lambda: bounds.local_steps_limit(3, 4)),
    ("method", lambda: bounds.rounds_order("gossip", 10, 2)),
]


@pytest.mark.parametrize("name, call", REFUSED, ids=[f"{i}-{name}" for i, (name, _) in enumerate(REFUSED)])
def test_refusals_name_the_argument(name, call):
    with pytest.raises(ValueError, match=rf"^{re.escape(name)}: got .*, allowed: "):
        call()


# --- the studies' verdicts --------------------------------------------------------------------------------------------


def curve(label, rounds, end, order="parallel SGD"):
    at = np.array([1.0, float(rounds)])
    return Curve("toy", label, order, 1000.0 * at / at[-1], at, np.array([[1.0, end], [1.0, end]]))


def test_the_verdicts_of_cr_psgd():
    options = cr_psgd_study.Options(workers=10, samples=1000)
    rounds = len(bounds.growing_batches(1000, 1.1))

    def verdicts(growing, fixed=0.5, growing_rounds=rounds, stich=0.013):
        curves = [
            curve("parallel SGD, B = 1", 1000, 0.010),
            curve("fixed batch, step 1/L (B = 9)", rounds, fixed, ""),
            curve("fixed batch, decaying step (B = 9)", rounds, 0.4, ""),
            curve("local SGD (H = 10)", 100, 0.011),
            curve("Stich's local SGD (H = 10)", 100, stich),
            curve("CR-PSGD (rho = 1.1)", growing_rounds, growing),
        ]
        return [said.verdict for said in cr_psgd_study.statements(curves, options)]

    assert verdicts(0.012) == ["holds"] * 4
    assert verdicts(0.03)[1] == "fails"
    assert verdicts(0.012, fixed=0.001)[3] == "fails"
    assert verdicts(0.012, growing_rounds=900)[:1] == ["fails"]
    assert verdicts(0.012, growing_rounds=900)[2] == "fails"


def test_the_verdicts_of_catalyst():
    data = synthetic(60, 5)
    problem = catalyst_study.about(th.nonconvex_logistic(data, 0.01), "synthetic", 0.01)
    options = catalyst_study.Options(workers=8, samples=8192)

    def verdicts(end, rounds=1792):
        curves = [
            curve("parallel SGD, B = 1", 8192, 1e-4),
            curve("parallel SGD, fixed batch (B = 4)", 2048, 1e-3, ""),
            curve("local SGD (H = 2)", 4096, 1e-4),
            curve("CR-PSGD-Catalyst", rounds, end),
        ]
        curves[0] = curves[0]._replace(samples=np.array([500.0, 1500.0]), height=np.array([[3e-4, 1e-4], [3e-4, 1e-4]]))
        return [said.verdict for said in catalyst_study.statements(problem, curves, options)]

    assert verdicts(1.5e-4) == ["holds"] * 5
    assert verdicts(3e-4)[2] == "in part"  # parallel SGD: 2e-4 after as many gradients, 1e-4 at the end of the budget
    assert verdicts(3e-3) == ["holds", "holds", "fails", "fails", "holds"]
    assert verdicts(1.5e-4, rounds=5000)[:2] == ["fails", "fails"]
    assert verdicts(10.0)[-1] == "fails"


@pytest.mark.parametrize("every", [1, 2, 5])
def test_the_mean_so_far_leaves_out_the_end(every):
    squares = 7.0 - 0.5 * np.arange(11)  # on a line, so that fewer records do not matter
    found = catalyst_study.mean_so_far(np.arange(0, 11, every), squares[::every])
    by_hand = [squares[:t].mean() if t else squares[0] for t in range(0, 11, every)]
    np.testing.assert_allclose(found, by_hand, rtol=1e-14)


def test_the_table_puts_rounds_beside_their_order():
    table = cost_table("toy", [curve("CR-PSGD (rho = 1.1)", 50, 0.01, "CR-PSGD")], 1000, 10, "f - f*")
    assert table.rows == [("CR-PSGD (rho = 1.1)", "1,000", "50", "log T", "6.91", "0.01")]


def test_a_curve_knows_when_it_was_there():
    found = curve("CR-PSGD", 50, 0.01)
    assert (found.end, found.total, found.spread) == (pytest.approx(0.01), 50, 0.0)
    assert found.rounds_until([0.5, 0.001]).tolist() == [50.0, math.inf] and found.ends == pytest.approx([0.01, 0.01])


def test_a_batch_that_never_grows_is_said():
    problem = th.quadratic([1e-4, 1.0], covariance=1.0)
    with pytest.warns(UserWarning, match="L/mu = 1e\\+04 .* 20 gradients .* the batch of 1 grows"):
        method = th.cr_psgd(problem, samples=20)
    assert th.run(method, problem, workers=2, samples=20).history["rounds"][-1] == 20


def test_a_ball_gives_logistic_regression_a_constant_and_keeps_x_in_it():
    rng = np.random.default_rng(0)
    problem = th.logistic((rng.standard_normal((30, 3)), np.where(rng.random(30) < 0.5, -1.0, 1.0)), l2=0.0)
    with pytest.raises(ValueError):
        th.cr_psgd(problem)
    method = th.cr_psgd(problem, radius=0.2)
    result = th.run(method, problem, workers=2, samples=50, x0=np.ones(3))
    assert np.linalg.norm(result.last) <= 0.2 * (1 + 1e-12)
    with pytest.raises(ValueError, match="radius: got 100000.0"):
        th.pl_constant(problem, radius=1e5)
