"""The stages of ZeRO: one trajectory, and the bytes of the formulas in memory and on the wire, also on ranks."""

from __future__ import annotations

import numpy as np
import pytest
import zero_job as job
from conftest import ROOT, run_mpi

import theory as th
from theory import bounds
from theory.cluster import run_zero
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
    data = (rng.standard_normal((60, 7)), np.arange(60) % 3)
    network = th.two_layer(data, width=5, activation=activation, l2=0.01)
    rule = th.Adam(rate=2.0, beta1=0.8, beta2=0.99, eps=1e-4, decay=0.1)
    found = [run_zero(network, 4, stage, steps=20, step=0.01, server=rule).x for stage in range(4)]
    assert all(np.array_equal(x, found[0]) for x in found)
    expected = textbook(network, 0.01, 20, rule)
    np.testing.assert_allclose(found[0], expected, atol=2e-5)
    assert np.abs(expected - initial_point(network, 0)).max() > 0.1


@pytest.mark.parametrize("share, memory", [(1.0, False), (0.25, False), (0.25, True)])
def test_held_and_sent_are_those_of_the_formulas(share, memory):
    rng = np.random.default_rng(2)
    network = th.two_layer((rng.standard_normal((40, 12)), np.arange(40) % 4), width=8)  # 96 and 32 parameters
    for stage in range(4):
        run = run_zero(network, RANKS, stage, steps=3, share=share, memory=memory)
        known = dict(optimizer_bytes=8.0, gradient_bytes=4.0, parameter_bytes=4.0, memory=4.0 * memory)
        expected = bounds.zero_memory(network.d, RANKS, stage, **known)
        assert run.held == {name: expected.terms[name] for name in run.held}
        assert run.sent == pytest.approx(bounds.zero_volume(network.d, RANKS, stage, share), rel=1e-12)


def test_a_memory_keeps_what_was_not_sent():
    network = job.make_network()
    whole = run_zero(network, RANKS, 2, steps=20)
    assert np.array_equal(run_zero(network, RANKS, 2, steps=20, memory=True).x, whole.x)
    # with signs of single gradients Adam cannot tell: plain momentum can, whose sums show what was lost
    rule = th.Adam(beta1=0.0, beta2=0.0, eps=1e6)  # x moves by about g / 1e6
    known = dict(steps=40, step=1e6 * 0.1, server=rule)
    full, lost, kept = (
        run_zero(network, RANKS, 3, share=share, memory=memory, **known).x
        for share, memory in ((1.0, False), (0.2, False), (0.2, True))
    )
    assert np.linalg.norm(kept - full) < 0.5 * np.linalg.norm(lost - full)


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
        assert found[f"sent {case}"] == here.sent == found[f"bytes {case}"].mean() / 4


@pytest.mark.parametrize(
    "known, name",
    [
        (dict(stage=4), "stage"),
        (dict(share=0.0), "share"),
        (dict(share=1.5), "share"),
        (dict(step=-1.0), "step"),
        (dict(workers=61), "workers"),
        (dict(memory="no"), "memory"),
        (dict(steps=0), "steps"),
    ],
)
def test_refusals(known, name):
    with pytest.raises(ValueError, match=f"^{name}"):
        run_zero(job.make_network(), **known)


def test_refusals_of_types():
    with pytest.raises(TypeError, match="^network"):
        run_zero(th.quadratic(np.ones(8), covariance=0.0))
    with pytest.raises(TypeError, match="^server"):
        run_zero(job.make_network(), server=th.Momentum(0.9))
