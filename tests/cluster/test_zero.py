"""The stages of ZeRO: one trajectory, and the bytes of the formulas in memory and on the wire, also on ranks."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import zero_job as job
from conftest import ROOT, run_mpi
from thread_ranks import first_of

import theory as th
from theory import bounds
from theory.cluster import run_zero
from theory.cluster.zero import Options, Together, Training
from theory.problems import initial_point

RANKS = 4


def textbook(network, step, steps, rule):
    """Adam on the whole of the data, in double precision."""
    x = initial_point(network, 0)
    m, v = np.zeros_like(x), np.zeros_like(x)
    for t in range(1, steps + 1):
        g = th.gradient(network, x)
        m = rule.beta1 * m + (1 - rule.beta1) * g
        v = rule.beta2 * v + (1 - rule.beta2) * g**2
        u = m / (1 - rule.beta1**t) / (np.sqrt(v / (1 - rule.beta2**t)) + rule.eps)
        x = x - step * rule.rate * (u + rule.decay * x)
    return x


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_every_stage_takes_the_steps_of_adam(activation):
    rng = np.random.default_rng(1)
    data = (rng.standard_normal((61, 7)), np.arange(61) % 3)
    network = th.two_layer(data, width=5, activation=activation, l2=0.01)
    rule = th.Adam(rate=2.0, beta1=0.8, beta2=0.99, eps=1e-4, decay=0.1)
    found = [run_zero(network, 4, stage, steps=20, step=0.01, server=rule).x for stage in range(4)]
    assert all(np.array_equal(x, found[0]) for x in found)
    expected = textbook(network, 0.01, 20, rule)
    np.testing.assert_allclose(found[0], expected, atol=2e-5)
    assert np.abs(expected - initial_point(network, 0)).max() > 0.1


def test_a_memory_keeps_what_was_not_sent():
    network = job.make_network()
    whole = run_zero(network, RANKS, 2, steps=20)
    assert np.array_equal(run_zero(network, RANKS, 2, steps=20, memory=True).x, whole.x)
    # Adam's steps hardly show the size of a gradient; with a huge eps they are 0.1 g, whose sum shows what was lost
    rule = th.Adam(beta1=0.0, beta2=0.0, eps=1e6)
    known = dict(steps=40, step=1e6 * 0.1, server=rule)
    full, lost, kept = (
        run_zero(network, RANKS, 3, share=share, memory=memory, **known).x
        for share, memory in ((1.0, False), (0.2, False), (0.2, True))
    )
    assert np.linalg.norm(kept - full) < 0.5 * np.linalg.norm(lost - full)


def test_a_layer_is_dropped_before_the_next_is_gathered(monkeypatch):
    """In stage 3 no worker has two whole layers at once, and none while the parameters are updated."""
    gather, held, alive = Training.layer, Training._held, []

    def layer(self, k):
        assert not any(reference() is not None for reference in alive)
        W = gather(self, k)
        alive.append(weakref.ref(W.base))
        return W

    def count(self):
        assert not any(reference() is not None for reference in alive)
        return held(self)

    monkeypatch.setattr(Training, "layer", layer)
    monkeypatch.setattr(Training, "_held", count)
    training = Training(job.make_network(), Together(RANKS), Options(3, 0.01, th.Adam(), 1.0, False, 0))
    training.step(1)
    training.step(2)
    assert len(alive) == 8


def test_coordinates_without_a_gradient_stay_where_they_are():
    """As in the package's Adam, also with eps = 0."""
    run = run_zero(job.make_network(), RANKS, 3, steps=1, share=0.4, server=th.Adam(eps=0.0), step=0.01)
    moved = run.x - initial_point(job.make_network(), 0).astype(np.float32)
    assert np.isfinite(run.x).all() and 0.3 * 50 < np.count_nonzero(moved) < 0.6 * 50


@pytest.mark.mpi
def test_ranks_have_the_same_bits_and_send_what_they_say(tmp_path):
    file = tmp_path / "found.npz"
    done = run_mpi(RANKS, ROOT / "tests" / "zero_job.py", file)
    assert done.returncode == 0, done.stderr
    found = np.load(file)
    for case in job.CASES:
        here = job.train(case, workers=RANKS, steps=2 * job.STEPS)
        assert np.array_equal(found[f"x {case}"], here.x)
        assert found[f"held {case}"].tolist() == list(here.held.values())
        if case[1] == 1.0:
            assert here.sent == pytest.approx(bounds.zero_volume(50, RANKS, case[0]), rel=1e-12)
        assert found[f"sent {case}"] == here.sent == found[f"bytes {case}"].mean() / 4


def test_workers_are_the_ranks():
    with pytest.raises(ValueError, match="^workers: .*one on each rank"):
        run_zero(job.make_network(), workers=5, comm=first_of(4))
