"""A server's state divided over the workers: the same bits, less memory, and the bytes of the formula."""

from __future__ import annotations

from typing import NamedTuple

import mpi_sharded as job
import numpy as np
import pytest
from conftest import ROOT, run_mpi

import theory as th
from theory import bounds
from theory.cluster.driver import make_run
from theory.cluster.rows import Shard
from theory.cluster.setup import prepare
from theory.cluster.simulator import Memory
from theory.core import require, setting

RANKS, FLOAT = 4, 4


def test_the_bits_are_those_of_the_rule_itself():
    rng = np.random.default_rng(1)
    problem = th.logistic((rng.standard_normal((50, 12)), np.sign(rng.standard_normal(50))), l2=0.1)
    memory, step = th.ErrorFeedback(), th.Constant(0.05)
    for server in (th.Mean(), th.Momentum(0.9, nesterov=True), th.OuterStep(0.5, 0.5), th.Adam(decay=0.1)):
        for c, rule in ((None, th.NoFeedback()), (th.TopK(3), memory), (th.PowerSGD(3, 4, rank=1), memory)):
            known = dict(workers=4, steps=15)
            whole = th.run(th.ParallelSGD(c, step, rule, server=server), problem, **known)
            divided = th.run(th.ParallelSGD(c, step, rule, server=th.Sharded(server)), problem, **known)
            assert np.array_equal(whole.x, divided.x) and np.array_equal(whole.memory, divided.memory)
            assert whole.server_bytes == 4 * divided.server_bytes
            assert all(np.array_equal(whole.server[name], divided.server[name]) for name in whole.server)


def test_slices_are_counted_as_sent_and_received():
    """Full precision: all values up, a slice of their sum and of x each way; the same bits up and down as a ring."""
    whole, divided = job.train(False, 4), job.train(True, 4)
    size = FLOAT * job.D * job.STEPS
    for result, up, down in ((whole, size, size), (divided, size * 5 / 4, size)):
        row = result.history[-1]
        assert (row["message_bytes_up"], row["message_bytes_down"]) == (up, down)


@pytest.mark.mpi
def test_ranks_keep_slices_and_send_what_the_formula_says(tmp_path):
    file = tmp_path / "found.npz"
    done = run_mpi(RANKS, ROOT / "tests" / "mpi_sharded.py", file, timeout=300)
    assert done.returncode == 0, done.stderr
    found, simulated = np.load(file), job.train(True, RANKS)
    for divided in (False, True):
        assert np.array_equal(found[f"x, divided={divided}"], simulated.x)
        sent = found[f"bytes, divided={divided}"] / (FLOAT * job.STEPS)
        assert sent.mean() == pytest.approx(bounds.zero_volume(job.D, RANKS, stage=int(divided)), rel=1e-12)
    assert found["state, divided=False"].tolist() == RANKS * [2 * FLOAT * job.D]
    assert found["state, divided=True"].tolist() == [2 * FLOAT * n for n in (25, 25, 25, 26)]
    assert simulated.server_bytes == 2 * FLOAT * 26
    for name in ("message_bytes_up", "message_bytes_down"):
        assert np.array_equal(found[f"{name}, divided=True"], simulated.history[name])


@setting
class Trusting(NamedTuple):
    """A rule that moves each of two layers by a share of its length, up to ``beyond`` the end of the model."""

    beyond: int = 0

    by_coordinate = True  # in one process, where the slice is the whole

    def check(self, problem, d):
        require(d != 7, "d", d, "another")

    def update(self, run, received):
        u = run.vector("update")
        run.set(u, received)
        layers = slice(0, 1), slice(1, run.d + self.beyond)
        run.rescale_layers(u, run.x, layers=layers, low=0.5, high=2.0)
        run.add(run.x, u, scale=-run.eta_received)


def test_layers_lie_within_the_slice():
    def trying(server, d=6):
        problem, method = th.quadratic(np.arange(1.0, d + 1), covariance=0.0), th.ParallelSGD(step=th.Constant(0.1))
        return th.run(method._replace(server=server), problem, workers=3, steps=4, x0=np.ones(d))

    assert np.array_equal(trying(Trusting()).x, trying(th.Sharded(Trusting())).x)
    for server in (Trusting(1), th.Sharded(Trusting(1))):
        with pytest.raises(ValueError, match=r"layers: got slice\(1, 7, None\), allowed: .* divide the 6 coordinates"):
            trying(server)
    for server in (Trusting(), th.Sharded(Trusting())):  # the check of the rule inside
        with pytest.raises(ValueError, match="^d: got 7"):
            trying(server, d=7)


def test_a_slice_has_its_own_end():
    method = th.ParallelSGD(step=th.Constant(0.1), server=th.Sharded(Trusting()))
    run = make_run(prepare(method, th.quadratic(np.ones(6), covariance=0.0), workers=3, steps=1), Memory())
    vars(run).update(workers_here=1, first_here=1)  # as on the second of three ranks
    part = Shard(run)
    assert (part.low, part.high, part.d) == (2, 4, 2) and part.x.shape == (1, 1, 2)
    with pytest.raises(ValueError, match="layers: .* divide the 2 coordinates"):
        part.rescale_layers(part.vector("update"), part.x, layers=(slice(0, 6),))
