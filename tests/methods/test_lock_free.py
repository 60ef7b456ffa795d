"""Lock-free SGD: one thread is the simulator's worker, several see each other's work, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th
from theory.core.random import derive, integer

N_ROWS, D, L2 = 60, 150, 0.02
STEP = th.InverseTime(2.0, L2, 200.0)
MEMORY = th.ErrorFeedback()


@pytest.fixture(scope="module")
def problems():
    rng = np.random.default_rng(5)
    X = sp.random(N_ROWS, D, 0.06, format="csr", random_state=7)
    X.data = rng.standard_normal(X.data.size)
    y = np.where(rng.random(N_ROWS) < 0.5, -1.0, 1.0)
    wide = sp.random(N_ROWS, 5000, 0.01, format="csr", random_state=3)
    return {
        "sparse": th.logistic((X, y), l2=L2),
        "dense": th.logistic((X.toarray(), y), l2=L2),
        "wide": th.logistic((wide, y), l2=L2),
    }


# --- one thread -------------------------------------------------------------------------------------------------------

METHODS = {
    "top-k": dict(compressor=th.TopK(4), feedback=MEMORY),
    "top-k, batches, the l2 term applied directly": dict(
        compressor=th.TopK(4), feedback=MEMORY, batch=3, compress="loss"
    ),
    "rand-k": dict(compressor=th.RandK(9), feedback=MEMORY, batch=2),
    "rand-k, shuffled, the l2 term applied directly": dict(
        compressor=th.RandK(9), feedback=MEMORY, sampling="shuffle", compress="loss"
    ),
    "plain": dict(compressor=th.Identity(sparse=True), batch=2),
    "plain, shuffled": dict(compressor=th.Identity(sparse=True), sampling="shuffle", compress="loss"),
}


@pytest.mark.parametrize("held", ["sparse", "dense"])
@pytest.mark.parametrize("name", METHODS)
def test_one_thread_is_one_worker(problems, name, held):
    method = th.ParallelSGD(step=STEP, **METHODS[name])
    x0 = np.random.default_rng(1).standard_normal(D)
    expected = th.run(
        method, problems[held], workers=1, steps=250, seed=11, x0=x0, record_every=37, wire_dtype=np.float64
    )
    found = th.run_lock_free(method, problems[held], threads=1, steps=250, seed=11, x0=x0, record_every=37)
    np.testing.assert_allclose(found.x, expected.last, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.memory, expected.memory, rtol=1e-8, atol=1e-11)
    assert list(found.history["step"]) == list(expected.history["step"])
    np.testing.assert_allclose(found.history["f"], expected.history["f"], rtol=1e-9)
    assert found.repeatable and found.success and found.nit == 250


@pytest.mark.parametrize("compressor", [th.TopK(3), th.TopK(40), th.RandK(40)], ids=str)
def test_one_thread_on_many_blocks(problems, compressor):
    # from a start far away, where the l2 term alone makes entries large that no row has touched
    method = th.ParallelSGD(compressor, step=STEP, feedback=MEMORY)
    x0 = 5.0 * np.random.default_rng(2).standard_normal(5000) ** 3
    expected = th.run(method, problems["wide"], workers=1, steps=400, seed=2, x0=x0, wire_dtype=np.float64)
    found = th.run_lock_free(method, problems["wide"], threads=1, steps=400, seed=2, x0=x0)
    np.testing.assert_allclose(found.x, expected.last, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.memory, expected.memory, rtol=1e-8, atol=1e-12)


def test_a_scale_that_would_vanish_is_multiplied_out(problems):
    # 0.02 * 20 = 0.4 a step: 0.6**3000 is far below the smallest float64
    method = th.ParallelSGD(th.Identity(sparse=True), step=th.Constant(20.0), compress="loss")
    expected = th.run(method, problems["sparse"], workers=1, steps=3000, seed=4, wire_dtype=np.float64)
    found = th.run_lock_free(method, problems["sparse"], threads=1, steps=3000, seed=4)
    np.testing.assert_allclose(found.x, expected.last, rtol=1e-9)


def test_one_thread_gives_the_same_bits_again(problems):
    method = th.ParallelSGD(th.TopK(4), step=STEP, feedback=MEMORY)
    runs = [th.run_lock_free(method, problems["sparse"], threads=1, steps=90, seed=3) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    np.testing.assert_array_equal(runs[0].memory, runs[1].memory)


# --- several threads --------------------------------------------------------------------------------------------------


def drawn(seed, w, steps, n):
    """The rows that thread w draws."""
    stream = derive(np.uint64(derive(th.key(seed, "sampling"), 0)), w)
    return np.array([integer(np.uint64(stream), s, n) for s in range(steps)])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_see_each_others_work(threads):
    # On f = (1/2n) ||x - 1||^2 with one coordinate a row, a touch takes 1 - x_j to (1 - eta) (1 - x_j), whoever does it
    # and in whatever order.  A lost update leaves x_j behind, a gradient at an x_j that has moved since then is a bit
    # too long; a thread that did not see the others would lose all that they do.
    n, steps, eta, seed = 4000, 20_000, 0.05, 6
    problem = th.ridge((sp.eye_array(n, format="csr"), np.ones(n)), l2=0.0)
    method = th.ParallelSGD(th.Identity(sparse=True), step=th.Constant(eta))
    result = th.run_lock_free(method, problem, threads=threads, steps=steps, seed=seed)
    touches = sum(np.bincount(drawn(seed, w, steps, n), minlength=n) for w in range(threads))
    effective = np.log1p(-result.x) / np.log1p(-eta)
    if threads == 1:
        np.testing.assert_allclose(effective, touches, atol=1e-6)
    assert np.abs(effective - touches).sum() <= 0.05 * touches.sum()
    assert result.repeatable == (threads == 1)


@pytest.mark.parametrize("clock", ["thread", "shared"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_sent_and_what_is_kept_is_what_was_computed(threads, clock):
    # The minimum is so far away that the gradient of row i is -far * a_i everywhere.  So, whatever the order,
    # x_T less all memories is x_0 less all steps, but for updates that were lost.
    n, d, steps, far, seed = 50, 800, 3000, 1e12, 8
    A = abs(sp.random(n, d, 0.02, format="csr", random_state=1))
    step = th.InverseTime(c=1.0 / far, mu=1.0, shift=10.0)
    method = th.ParallelSGD(th.TopK(4), step=step, feedback=MEMORY)
    problem = th.ridge((A, np.full(n, far)), l2=0.0)
    result = th.run_lock_free(method, problem, threads=threads, steps=steps, seed=seed, clock=clock)
    expected = np.zeros(d)
    for w in range(threads):
        t = np.arange(steps) if clock == "thread" else threads * np.arange(steps) + w
        weight = np.bincount(drawn(seed, w, steps, n), 1.0 / (10.0 + t), minlength=n)
        expected += A.T @ weight
    found = result.x - result.memory.sum(axis=0)
    assert np.abs(result.memory).max() > 0
    if threads == 1:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert (found <= expected * (1.0 + 1e-9)).all()  # every step is upwards, so what is lost is missing
    assert found.sum() >= 0.95 * expected.sum()


@pytest.mark.parametrize("name", ["top-k", "rand-k", "plain"])
def test_threads_that_get_in_each_others_way_stay_sane(problems, name):
    # Few coordinates and more threads than cores: much is lost, nothing is torn, and f falls all the same.
    method = th.ParallelSGD(step=STEP, **METHODS[name])
    result = th.run_lock_free(method, problems["sparse"], threads=5, steps=4000, seed=1, record_every=2000)
    assert result.success and np.isfinite(result.x).all() and np.isfinite(result.memory).all()
    assert result.memory.shape == (5, D) and result.threads == 5 and not result.repeatable
    assert list(result.history["samples"]) == [0, *(2000 * 5 * method.batch * np.arange(1, 3))]
    optimum = th.solve(problems["sparse"])
    assert result.fun - optimum.fun < 0.1 * (result.history["f"][0] - optimum.fun)


def test_a_run_that_diverges_says_so(problems):
    method = th.ParallelSGD(th.TopK(4), step=th.Constant(1e200), feedback=MEMORY)
    result = th.run_lock_free(method, problems["sparse"], threads=1, steps=50, record_every=10)
    assert not result.success and result.status == 2
    assert "no longer finite at step 10" in result.message and result.nit == 10


# --- mem_sgd ----------------------------------------------------------------------------------------------------------


def test_mem_sgd_is_the_theorems_method(problems):
    method = th.mem_sgd(problems["sparse"], th.TopK(3))
    shift = th.bounds.mem_sgd_shift(D, 3, 5.0)
    expected = th.ParallelSGD(th.TopK(3), step=th.InverseTime(8.0, L2, shift), feedback=MEMORY, average="quadratic")
    assert method == expected
    assert th.mem_sgd(problems["dense"], th.RandK(3), alpha=6.0, batch=4, sampling="shuffle") == expected._replace(
        compressor=th.RandK(3),
        step=th.InverseTime(8.0, L2, th.bounds.mem_sgd_shift(D, 3, 6.0)),
        batch=4,
        sampling="shuffle",
    )
    # less than one coordinate a step, and a compressor whose k is no integer
    assert th.mem_sgd(problems["sparse"], th.Ultra(0.5)).step.shift == th.bounds.mem_sgd_shift(D, 0.5, 5.0)
    ridge = th.ridge((np.diag([1.0, 2.0, 3.0]), np.ones(3)), l2=0.1)  # mu is more than l2
    assert th.mem_sgd(ridge, th.TopK(1)).step.mu == pytest.approx(1 / 3 + 0.1)


def test_mem_sgd_takes_the_shifts_that_the_theorem_allows(problems):
    # the paper's own a = d/k, and anything above 1: some alpha above 4 allows it, and the bound can be computed
    for shift in (D / 3, 1.001):
        method = th.mem_sgd(problems["sparse"], th.TopK(3), shift=shift)
        alpha = th.bounds.mem_sgd_alpha(D, 3, method.step.shift)
        assert alpha > 4 and th.bounds.mem_sgd_shift(D, 3, alpha) <= shift
    least = th.bounds.mem_sgd_shift(D, 3, 7.0)
    assert th.mem_sgd(problems["sparse"], th.TopK(3), shift=least, alpha=7.0).step.shift == least


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_at_most_as_late_as_asynchronous_workers(threads):
    """What x has lost more than steps on time would take is what is late: x - s r with r = x/(1 - s)^late.

    Two threads on one coordinate lose updates, some of a hundred where both have a core, which hides how late the
    others are: only one thread, which is never late, is held to the law from below.
    """
    steps, step = 300_000, 1e-6
    problem = th.ridge((np.ones((1, 1)), np.zeros(1)), l2=0.0)

    def lateness(factor):
        method = th.ParallelSGD(step=th.Constant(factor * step))
        x = th.run_lock_free(method, problem, threads=threads, steps=steps, x0=np.ones(1)).x[0]
        return (np.log(x) / (threads * steps * np.log1p(-step)) - 1.0) / step

    law = th.bounds.async_lateness(threads, threads * steps)
    assert lateness(1.0) <= law + 0.1
    if threads == 1:
        assert lateness(1.0) >= law - 0.1
        assert lateness(1.001) > 10.0  # a step that is longer by a thousandth is noticed
