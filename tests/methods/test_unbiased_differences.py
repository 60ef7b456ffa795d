"""DCGD, DIANA, MARINA, VR-MARINA, DASHA, ProxSkip and late gradients against their text in NumPy, and on ranks."""

from __future__ import annotations

from typing import NamedTuple

import differences
import numpy as np
import pytest
from quadratics import Quadratics
from ranks_job import require_same_bits, run_on_ranks

import theory as th

WORKERS, D, STEP, STEPS = 4, 6, 0.1, 30
KNOWN = Quadratics(WORKERS, D)
PROBLEM, gradients = KNOWN.problem, KNOWN.gradients
SHRINK = th.compressor(lambda v: 0.5 * v, omega=1.0)  # not unbiased, but without randomness: as the text says


def found(method, steps=STEPS, **options):
    options = {"wire_dtype": np.float64, "x0": np.ones(D), **options}
    return th.run(method, PROBLEM, workers=WORKERS, steps=steps, **options)


def coins(seed: int, p: float, steps: int = STEPS, replica: int = 0):
    """The coins of a run: those of a method that notes them."""
    seen = []

    @th.method
    class Toss(th.methods.ProxSkip):
        one_by_one = True

        def round(self, run):
            seen.append(run.coin(p))

    th.run(Toss(th.Constant(0.1), p=p), PROBLEM, workers=WORKERS, steps=steps, seed=seed)
    return seen


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    return run_on_ranks(differences, tmp_path_factory.mktemp("differences"))


@pytest.mark.parametrize("name", differences.METHODS)
def test_same_bits_on_ranks_and_by_the_text(name, on_ranks):
    result = require_same_bits(differences, name, on_ranks)
    assert np.array_equal(result.x, differences.train(name, fast=False).x)
    assert result.fun < 0.9 * result.history["f"][0]


@pytest.mark.parametrize("name", differences.CALLS)
def test_calls_of_several_runs_have_the_same_bits_on_ranks(name, on_ranks):
    result = differences.CALLS[name](None)
    for part in differences.OF_CALLS:
        assert np.array_equal(result.x if part == "x" else result.history[part], on_ranks[f"{name}, {part}"]), part


def test_dcgd_is_parallel_sgd():
    other = th.ParallelSGD(th.QSGD(3), th.Constant(STEP), shards="contiguous")
    assert np.array_equal(found(th.DCGD(th.QSGD(3), th.Constant(STEP), shards="contiguous")).x, found(other).x)


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_late_gradients_are_those_of_so_many_rounds_ago(delay):
    x = [np.ones(D)]
    for t in range(STEPS):
        x.append(x[t] - STEP * gradients(x[t - delay]).mean(axis=0) if t >= delay else x[t])
    result = found(th.DelayedSGD(step=th.Constant(STEP), delay=delay, shards="contiguous"))
    assert np.allclose(result.last, x[-1], rtol=1e-12)
    assert (result.memory_bytes, result.server_bytes) == (8 * D * min(delay, 1), 8 * D * max(delay - 1, 0))


@pytest.mark.parametrize("fast", [True, False])
def test_asynchronous_sgd_moves_by_the_gradient_at_what_its_worker_read(fast):
    speeds, seed = (1.0, 2.0, 0.5, 3.0), 7
    method = th.AsyncSGD(step=th.Constant(STEP), speeds=speeds, times=th.Pareto(1.5), shards="contiguous")
    result = found(method, seed=seed, fast=fast)
    came = th.arrivals(th.Pareto(1.5), workers=WORKERS, rounds=STEPS, seed=seed, speeds=speeds)
    x, read, began = np.ones(D), np.ones((WORKERS, D)), np.zeros(WORKERS, int)
    for t, w in enumerate(came.worker):
        x = x - STEP * gradients(read[w])[w]
        read[w] = x
        assert came.late[t] == t - began[w]
        began[w] = t + 1
    assert np.allclose(result.last, x, rtol=1e-12) and result.history["samples"][-1] == STEPS
    assert (np.diff(came.second) >= 0.0).all() and set(came.worker) == set(range(WORKERS))


def test_workers_that_take_turns_are_as_late_as_there_are_others():
    x = [np.ones(1)]
    for t in range(STEPS):
        x.append(x[t] - STEP * x[max(0, t - 3)])
    method = th.AsyncSGD(step=th.Constant(STEP), times=th.FixedTime())
    one = th.quadratic([1.0], covariance=0.0)
    assert np.allclose(th.run(method, one, workers=4, steps=STEPS, x0=np.ones(1)).last, x[-1], rtol=1e-12)


def test_each_replica_has_its_own_arrivals_and_more_rounds_begin_with_the_same():
    one, method = th.quadratic([1.0], covariance=0.0), th.AsyncSGD(step=th.Constant(STEP))
    known = {"workers": 4, "x0": np.ones(1)}
    assert len(np.unique(th.run(method, one, steps=STEPS, replicas=6, **known).last)) == 6
    first = th.run(method, one, steps=11, **known)
    assert (
        th.run(method, one, steps=STEPS, resume=first, **known).last == th.run(method, one, steps=STEPS, **known).last
    )
    short, longer = (th.arrivals(th.Pareto(2.0), workers=3, rounds=n, seed=3) for n in (20, 50))
    assert all(np.array_equal(a, b[:20]) for a, b in zip(short, longer, strict=True))


def test_the_longest_step_of_asynchronous_sgd_is_that_of_its_order():
    problem = th.quadratic([0.5, 2.0], covariance=0.0)
    with pytest.warns(th.LongStepWarning, match="above 0.5"):  # 1/L for three workers that arrive at random
        th.run(th.AsyncSGD(step=0.6), problem, workers=3, steps=2)
    with pytest.warns(th.LongStepWarning, match="above 0.309"):  # and 0.618/L if they take turns
        th.run(th.AsyncSGD(step=0.35, times=th.FixedTime()), problem, workers=3, steps=2)


def test_the_longest_step_of_a_delay_is_said():
    problem = th.quadratic([0.5, 2.0], covariance=0.0)
    assert th.theory_step(th.DelayedSGD(step="theory", delay=1), problem, 2).step.eta == pytest.approx(0.125)
    with pytest.warns(th.LongStepWarning, match="above 0.5"):
        th.run(th.DelayedSGD(step=0.6, delay=1), problem, workers=2, steps=2)


def late(body):
    """A method whose round sends what it computed last, and does something else while the messages travel."""

    @th.method
    class Late(NamedTuple):
        step: NamedTuple = th.Constant(STEP)
        compressor: NamedTuple = th.TopK(2)

        def round(self, run):
            p = run.rows("unsent")
            message = run.compress(self.compressor, p)
            with th.methods.travelling(run, message) as received:
                run.set_gradient(p, at=run.x)
                body(run, message, p, received)
            run.add(run.x, received, scale=-run.eta)

    return Late()


def test_messages_that_travel_are_left_alone():
    for body in (
        lambda run, message, p, received: run.compress(th.TopK(2), p),
        lambda run, message, p, received: th.methods.travelling(run, message).__enter__(),
    ):
        with pytest.raises(ValueError, match="phase: got 'up'"):
            found(late(body))
    with pytest.raises(ValueError, match="Messages that this run has not made"):  # they are not here yet
        found(late(lambda run, message, p, received: run.add(run.x, received)))
    with pytest.raises(TypeError, match="messages"):
        found(late(lambda run, message, p, received: th.methods.travelling(run, p).__enter__()))
    other = found(late(lambda run, message, p, received: run.compress(th.TopK(2), p, phase="other")))
    assert np.array_equal(other.last, found(th.DelayedSGD(th.TopK(2), th.Constant(STEP))).last)


def test_late_gradients_go_on_where_they_stopped():
    method = th.DelayedSGD(th.QSGD(7), th.Constant(STEP), delay=3)
    first = found(method, steps=11)
    assert np.array_equal(found(method, resume=first).last, found(method).last)


def test_diana_is_the_algorithm():
    x, h = np.ones(D), np.zeros((WORKERS, D))
    for _ in range(STEPS):
        m = 0.5 * (gradients(x) - h)
        x = x - STEP * (h + m).mean(axis=0)
        h = h + 0.3 * m
    method = th.DIANA(SHRINK, th.Constant(STEP), alpha=0.3, shards="contiguous")
    result = found(method)
    assert result.x == pytest.approx(x, rel=1e-12)
    assert result.server["h"] == pytest.approx(h.mean(axis=0), rel=1e-12)
    assert (result.memory_bytes, result.server_bytes) == (8 * D, 8 * D)


def test_dasha_is_the_algorithm():
    x, h, g, a = np.ones(D), np.zeros((WORKERS, D)), np.zeros((WORKERS, D)), 0.25
    for _ in range(STEPS):
        new = gradients(x)
        m = 0.5 * (new - h - a * (g - h))
        h, g = new, g + m
        x = x - STEP * g.mean(axis=0)
    assert found(th.DASHA(SHRINK, th.Constant(STEP), a=a, shards="contiguous")).x == pytest.approx(x, rel=1e-12)


@pytest.mark.parametrize("cls", [th.MARINA, th.VRMARINA])
def test_marina_is_the_algorithm(cls):
    seen, x = coins(7, 0.3), np.ones(D)
    assert 0 < sum(seen) < STEPS
    g = before = np.zeros(D)
    for t, full in enumerate(seen):
        if full or t == 0:
            g = gradients(x).mean(axis=0)
        else:
            g = g + 0.5 * (gradients(x) - gradients(before)).mean(axis=0)
        before, x = x, x - STEP * g
    result = found(cls(SHRINK, th.Constant(STEP), p=0.3, shards="contiguous"), seed=7)
    assert result.x == pytest.approx(x, rel=1e-12)
    full = sum(seen[1:]) + 1
    assert result.history["samples"][-1] == WORKERS * (2 * STEPS - full)  # a worker has one row


def test_prox_skip_is_the_algorithm():
    seen, x, h, p = coins(3, 0.3), np.ones((WORKERS, D)), np.zeros((WORKERS, D)), 0.3
    for met in seen:
        moved = x - STEP * (gradients(x) - h)
        x = np.tile(moved.mean(axis=0), (WORKERS, 1)) if met else moved
        h = h + p / STEP * (x - moved)
    result = found(th.ProxSkip(th.Constant(STEP), p=p, shards="contiguous"), seed=3)
    assert result.models == pytest.approx(x, rel=1e-11)
    assert result.history["rounds"][-1] == sum(seen)
    assert result.history["bits_up"][-1] == 64 * D * sum(seen)


def test_coins_depend_on_seed_and_replica_and_have_their_probability():
    first, again, other = coins(0, 0.3, 400), coins(0, 0.3, 400), coins(1, 0.3, 400)
    assert first == again != other
    assert abs(np.mean([*first, *other]) - 0.3) < 4 * np.sqrt(0.21 / 800)
    method = th.ProxSkip(th.Constant(STEP), p=0.3, shards="contiguous")
    rows = found(method, replicas=3).last
    assert np.array_equal(rows[0], found(method).last) and not np.array_equal(rows[0], rows[1])


def test_it_goes_on_where_it_stopped():
    method = th.ProxSkip(th.Constant(STEP), p=0.3, shards="contiguous")
    short = found(method, 13, record_every=5)
    assert np.array_equal(found(method, 25, record_every=5, resume=short).x, found(method, 25, record_every=5).x)
    permk = th.MARINA(th.PermK(), th.Constant(STEP), shards="contiguous")
    assert np.array_equal(found(permk, 25, resume=found(permk, 13)).x, found(permk, 25).x)


@pytest.mark.parametrize(
    "method",
    [
        th.DIANA(th.RandK(2, unbiased=True), th.Constant(STEP), shards="contiguous"),
        th.MARINA(th.PermK(), th.Constant(STEP), shards="contiguous"),
        th.MARINA(th.RandK(2, True, True), th.Constant(STEP), shards="contiguous"),
        th.VRMARINA(th.RandK(3, unbiased=True), th.Constant(STEP), p=0.5, shards="contiguous"),
        th.QSVRG(th.RandK(3, unbiased=True), th.Constant(STEP / 2), inner=30, shards="contiguous"),
        th.DASHA(th.RandK(3, unbiased=True), th.Constant(STEP / 2), shards="contiguous"),
        th.ProxSkip(th.Constant(STEP), p=0.3, shards="contiguous"),
    ],
)
def test_different_minima_leave_no_bias(method):
    """Which DCGD has."""
    assert np.abs(found(method, 1500).x - KNOWN.optimum).max() < 1e-6
    plain = th.DCGD(th.RandK(2, unbiased=True), th.Constant(STEP), shards="contiguous")
    assert np.abs(found(plain, 1500).x - KNOWN.optimum).max() > 1e-2


EXACT = th.quadratic([0.5, 2.0], covariance=0.0)


def test_messages_that_are_all_the_same_are_averaged_by_no_number_of_workers():
    """Of shared rand-k, the mean of N messages errs as one does; EF-BV's and DIANA's steps are those of one worker."""
    for make in (th.EFBV, th.DIANA):
        alone, many = (th.theory_step(make(th.RandK(1, True, shared=True), "theory"), EXACT, n).step for n in (1, 100))
        own = th.theory_step(make(th.RandK(1, True), "theory"), EXACT, 100).step
        assert alone == many and own.eta > many.eta
