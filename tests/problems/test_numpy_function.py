"""Problems and compressors given by Python functions: in every method, in the simulator and on ranks, uncompiled."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from conftest import ROOT
from ranks_job import require_same_bits, run_on_ranks

import theory as th
from theory.core.digests import digest

A = np.random.default_rng(0).standard_normal((12, 6))
B = np.random.default_rng(1).standard_normal(12)
L2 = 0.05


def value(x):
    return float(np.mean((A @ x - B) ** 2)) / 2.0


def row_gradient(x, i):
    return A[i] * (A[i] @ x - B[i])


def row_gradients(x):
    return A * (A @ x - B)[:, None]


def two_largest(v):
    kept = np.zeros_like(v)
    largest = np.argsort(-np.abs(v))[:2]
    kept[largest] = v[largest]
    return kept


def half_at_random(v, rng):
    return 2.0 * v * (rng.random(v.size) < 0.5)


RIDGE = th.ridge((A, B), l2=L2)
PROBLEM = th.function(value, row_gradient, d=6, n=12, l2=L2)
TOP, HALF = th.compressor(two_largest, delta=1 / 3), th.compressor(half_at_random, omega=1.0)
STEP = th.InverseTime(1.0, 0.5, 20.0)
RULES = {
    "none": th.NoFeedback(),
    "ef": th.ErrorFeedback(),
    "partial": th.PartialErrorFeedback(0.3),
    "conef": th.ContractiveErrorFeedback(HALF),
    "conef, natural": th.ContractiveErrorFeedback(th.Natural()),
    "iconef": th.ImprovedContractiveErrorFeedback(th.Natural(), version=1),
    "sketch": th.LinearSketchFeedback(th.CountSketch(3), beta=0.5),
}
METHODS = {name: th.ParallelSGD(TOP, STEP, rule, average="uniform") for name, rule in RULES.items()} | {
    "random": th.ParallelSGD(HALF, STEP),
    "momentum": th.ParallelSGD(TOP, STEP, momentum=0.5, nesterov=True, batch=3),
    "majority": th.ParallelSGD(TOP, STEP, aggregation="majority", shards="contiguous"),
    "radius": th.ParallelSGD(HALF, STEP, radius=0.5, sampling="shuffle"),
    "local": th.LocalSGD(TOP, STEP, 5, th.ErrorFeedback(), average="uniform"),
    "growing": th.ParallelSGD(HALF, STEP, batch=th.GrowingBatch(1.1)),
    "qsgd": th.ParallelSGD(th.QSGD(4), STEP),
    "full precision": th.ParallelSGD(step=STEP),
}
PARTS = ("x",)
WARNINGS = pytest.mark.filterwarnings(
    "ignore::theory.UnstableMemoryWarning", "ignore::theory.BiasedErrorCompressorWarning"
)


def train(name, problem=PROBLEM, **options):
    return th.run(METHODS[name], problem, workers=4, steps=40, record_every=20, seed=3, **options)


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    return run_on_ranks(sys.modules[__name__], tmp_path_factory.mktemp("functions"))


@WARNINGS
@pytest.mark.parametrize("name", METHODS)
def test_every_method_in_the_simulator_and_on_ranks(name, on_ranks):
    result = require_same_bits(sys.modules[__name__], name, on_ranks)
    assert result.success and result.fun < result.history["f"][0]
    assert np.array_equal(result.x, train(name, fast=False).x)


@WARNINGS
@pytest.mark.parametrize("name", METHODS)
def test_the_same_steps_as_with_a_compiled_problem(name):
    """The rows are drawn with the same keys, so that only sums are rounded in another order."""
    found, wanted = train(name, wire_dtype=np.float64), train(name, RIDGE, wire_dtype=np.float64)
    assert found.x == pytest.approx(wanted.x, rel=1e-9) and found.fun == pytest.approx(wanted.fun, rel=1e-9)
    assert found.history["gradient_norm"][-1] == pytest.approx(wanted.history["gradient_norm"][-1], rel=1e-8)


def test_a_function_is_the_compressor_that_it_describes():
    """Top-2 in Python against the package's, with its memory; and what its messages hold, the shorter of the two."""
    own = th.run(th.ParallelSGD(TOP, STEP, th.ErrorFeedback()), RIDGE, workers=3, steps=30, wire_dtype=np.float64)
    packaged = th.run(
        th.ParallelSGD(th.TopK(2), STEP, th.ErrorFeedback()), RIDGE, workers=3, steps=30, wire_dtype=np.float64
    )
    assert np.array_equal(own.x, packaged.x) and np.array_equal(own.memory, packaged.memory)
    assert own.history["bits_up"][-1] == 30 * (1 + 32 + 2 * (64 + 3))
    dense = th.run(th.ParallelSGD(th.compressor(np.sign), STEP), RIDGE, workers=3, steps=30)
    assert dense.history["bits_up"][-1] == 30 * (1 + 6 * 32)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_compress_encode_and_decode_agree(n):
    v = np.random.default_rng(n).standard_normal(n)
    for c in (TOP if n > 1 else HALF, HALF):
        sent = th.compress(c, v, 5)
        assert np.array_equal(sent, th.decode(th.encode(c, v, 5)))
        assert np.array_equal(sent, np.float32(c.apply(v, 5)).astype(float))
    assert th.omega(HALF, n) == 1.0
    with pytest.raises(TypeError, match="omega: not known"):
        th.omega(TOP, n)


def test_what_a_gradient_function_may_be():
    """All rows at once, an exact gradient, one that is drawn: each against the package's own problem."""
    rows = th.function(value, row_gradients, d=6, n=12, l2=L2)
    assert np.array_equal(train("ef", rows).x, train("ef").x)

    exact = th.function(value, lambda x: row_gradients(x).mean(axis=0), d=6, l2=L2)
    method = th.ParallelSGD(step=th.Constant(0.2))
    x = np.zeros(6)
    for _ in range(10):
        x = x - 0.2 * th.gradient(RIDGE, x)
    assert th.run(method, exact, workers=2, steps=10, wire_dtype=np.float64).x == pytest.approx(x, rel=1e-12)

    noisy = th.function(lambda x: float(x @ x) / 2.0, lambda x, rng: x + rng.standard_normal(2), d=2)
    last = th.run(method, noisy, workers=2, steps=50, replicas=300).last
    wanted = 0.2**2 / 2.0 / (1.0 - 0.8**2)  # the stationary variance eta^2 sigma^2/N / (1 - (1 - eta)^2)
    assert np.mean(last**2) == pytest.approx(wanted, rel=0.2)  # 600 numbers: 3.5 standard deviations
    assert np.isnan(th.gradient(noisy, np.ones(2))).all()


def test_constants_are_those_that_are_stated():
    known = th.function(value, row_gradient, d=6, n=12, lipschitz=4.0, strong_convexity=0.5, minimizer=np.ones(6))
    assert (th.lipschitz(known), th.strong_convexity(known)) == (4.0, 0.5)
    assert np.array_equal(th.solve(known).x, np.ones(6)) and th.solve(known).fun == value(np.ones(6))


def test_nothing_is_compiled_for_a_new_function(tmp_path):
    """In a fresh process, after the package's own pieces are in the cache."""
    script = tmp_path / "student.py"
    script.write_text(
        textwrap.dedent("""
        import numba.core.event, numpy as np, theory as th
        class Count(numba.core.event.Listener):
            compiled = 0
            def on_start(self, event):
                Count.compiled += 1
            def on_end(self, event):
                pass
        numba.core.event.register("numba:compile", Count())
        problem = th.function(lambda x: float(x @ x), lambda x, i: 2.0 * x * (i + 1), d=3, n=4)
        compressor = th.compressor(lambda v: np.where(np.arange(3) == np.argmax(np.abs(v)), v, 0.0))
        for rule in (th.NoFeedback(), th.ErrorFeedback()):
            result = th.run(th.ParallelSGD(compressor, th.Constant(0.01), rule), problem, workers=2, steps=5)
        print(Count.compiled)
    """)
    )
    command = [sys.executable, script]
    first, second = (subprocess.run(command, capture_output=True, text=True, cwd=ROOT) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert int(second.stdout) == 0


def test_ranks_with_other_functions_are_told_apart():
    """The digest that ranks compare sees code, constants and what a function was made with."""

    def scaled(factor):
        return lambda v: factor * v

    same = [digest(th.compressor(scaled(2.0))) for _ in range(2)]
    others = {
        digest(th.compressor(f))
        for f in (
            scaled(3.0),
            lambda v: v + 1.0,
            lambda v: v + 2.0,
            np.sign,
            np.abs,
            lambda v: np.sign(v),
            lambda v: np.floor(v),
        )
    }
    assert same[0] == same[1] and len(others | set(same)) == 8


# --- gradients that are wrong -----------------------------------------------------------------------------------------


def run_of(gradient, d=6, f=value, **options):
    problem = th.function(f, gradient, d=d, **options)
    return problem, lambda: th.run(th.ParallelSGD(step=0.01), problem, workers=1, steps=1)


WRONG = {
    "sign": lambda x: -row_gradients(x).mean(axis=0),
    "factor": lambda x: 2.0 * row_gradients(x).mean(axis=0),
    "sum": lambda x: row_gradients(x).sum(axis=0),
    "one coordinate": lambda x: row_gradients(x).mean(axis=0) * (np.arange(6) != 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_gradient_is_told_at_the_start(name, monkeypatch):
    monkeypatch.setattr("theory.core.arguments._told", set())
    problem, call = run_of(WRONG[name])
    with pytest.warns(th.WrongGradientWarning, match="check the gradient"):
        result = call()
    assert result.success or "check_gradient(problem)" in result.message
    assert th.check_gradient(problem) > 0.1


@pytest.mark.parametrize(
    ("gradient", "f", "options"),
    [
        (lambda x: row_gradients(x).mean(axis=0), value, {}),
        (row_gradients, value, {"n": 12}),
        (row_gradient, value, {"n": 12, "l2": L2}),
        (lambda x: (x > 0).astype(float), lambda x: np.sum(np.maximum(x, 0.0)), {}),  # a kink at the start
        (lambda x: np.zeros(6), lambda x: 7.0, {}),
        (lambda x: 1e-9 * x, lambda x: 0.5e-9 * float(x @ x) + 1e6, {}),  # less than the rounding of the values
        (lambda x, rng: x + rng.standard_normal(6), lambda x: 0.5 * float(x @ x), {}),  # drawn: unknown
    ],
)
def test_a_right_gradient_is_not_warned_of(gradient, f, options, recwarn, monkeypatch):
    monkeypatch.setattr("theory.core.arguments._told", set())
    run_of(gradient, f=f, **options)[1]()
    assert not [w for w in recwarn if w.category is th.WrongGradientWarning]


def test_a_function_that_is_defined_at_the_start_alone_runs():
    def on_the_line(x):
        if np.ptp(x) > 0.0:
            raise FloatingPointError("outside")
        return float(x @ x)

    problem = th.function(on_the_line, lambda x: 2.0 * x, d=6)
    assert th.run(th.ParallelSGD(step=0.1), problem, workers=1, steps=3, x0=np.ones(6)).success


def test_the_check_is_the_distance_from_differences():
    from scipy.optimize import check_grad

    x = np.linspace(-1.0, 1.0, 6)
    for scale in (1.0, 1.5):
        problem = th.function(value, lambda x, scale=scale: scale * row_gradients(x).mean(axis=0), d=6)
        scipy = check_grad(value, lambda x, scale=scale: scale * row_gradients(x).mean(axis=0), x)
        assert th.check_gradient(problem, x) == pytest.approx(scipy, abs=1e-6)
    assert th.check_gradient(RIDGE) < 1e-8 and th.check_gradient(RIDGE, direction="random") < 1e-8
    wrong = th.function(value, WRONG["sign"], d=6)
    assert 0.0 < th.check_gradient(wrong, x, direction="random") <= th.check_gradient(wrong, x)


def test_solve_finds_the_minimum_of_a_function():
    """Of a quadratic in closed form: certified by mu if that is stated, and else said to be the best found."""
    A, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, -2.0])
    value, slope = lambda x: 0.5 * x @ A @ x - b @ x, lambda x: A @ x - b
    least = float(value(np.linalg.solve(A, b)))
    plain = th.solve(th.function(value, slope, d=2))
    assert plain.fun == pytest.approx(least, abs=1e-12) and np.isnan(plain.gap) and "best found" in plain.message
    mu = float(np.linalg.eigvalsh(A)[0])
    stated = th.solve(th.function(value, slope, d=2, strong_convexity=mu))
    assert stated.success and 0.0 <= stated.gap < 1e-9 and stated.fun - stated.gap <= least <= stated.fun
    compared = th.compare(th.ParallelSGD(step=0.2), th.function(value, slope, d=2), workers=1, steps=9)
    assert "best found by L-BFGS" in compared.table
    drawn = th.function(value, lambda x, rng: slope(x) + rng.standard_normal(2), d=2)
    assert th.solve(drawn).fun == pytest.approx(least, abs=1e-6)  # by differences of values
