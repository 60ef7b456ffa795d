"""Methods on graphs: against NumPy, on ranks with the same bits, and what they refuse."""

from __future__ import annotations

from typing import NamedTuple

import graph_job
import numpy as np
import pytest
from conftest import ROOT, run_mpi
from quadratics import Quadratics, top
from ranks_job import require_same_bits, run_on_ranks

import theory as th

WORKERS, D, STEP = 8, 5, 0.05
KNOWN = Quadratics(WORKERS, D)
gradients, RNG = KNOWN.gradients, KNOWN.rng
START = RNG.standard_normal((WORKERS, D))
RING = th.mixing(th.Ring(), WORKERS).matrix


@pytest.fixture(scope="module", params=[2, *(pytest.param(n, marks=pytest.mark.full) for n in (1, 4, 8))])
def on_ranks(request, tmp_path_factory):
    return run_on_ranks(graph_job, tmp_path_factory.mktemp("graphs"), request.param)


@pytest.mark.parametrize("name", graph_job.METHODS)
def test_same_bits_on_ranks(name, on_ranks):
    require_same_bits(graph_job, name, on_ranks)


@pytest.mark.parametrize("name", graph_job.METHODS)
def test_same_bits_by_the_text(name):
    result, text = graph_job.train(name), graph_job.train(name, fast=False)
    assert np.array_equal(result.models, text.models)
    assert np.array_equal(result.history["bits_down"], text.history["bits_down"])


@pytest.mark.parametrize("what", ["raises", "killed"])
def test_a_rank_that_fails_ends_the_job(what):
    done = run_mpi(2, ROOT / "tests" / "graph_job.py", what, timeout=200)
    assert done.returncode != 0


# --- against the algorithms in NumPy, each worker with a quadratic of its own ----------------------------------------


def gossip():
    x = START
    for _ in range(30):
        x = x + (RING - np.eye(WORKERS)) @ top(x, 2)
    return x


def choco_gossip():
    x, known = START, np.zeros((WORKERS, D))
    for _ in range(30):
        known = known + top(x - known, 2)
        x = x + 0.3 * (RING - np.eye(WORKERS)) @ known
    return x


def dpsgd():
    x = START
    for _ in range(30):
        x = RING @ x - STEP * gradients(x)
    return x


def dcd():
    x = START
    for _ in range(30):
        x = x + top(RING @ x - STEP * gradients(x) - x, 2)
    return x


def ecd():
    x, known = START, START
    for t in range(1, 31):
        new = RING @ known - STEP * gradients(x)
        z = (1 - t / 2) * x + (t / 2) * new
        known = (1 - 2 / t) * known + (2 / t) * top(z, 4)
        x = new
    return x


def choco_sgd():
    x, known = START, np.zeros((WORKERS, D))
    for _ in range(30):
        x = x - STEP * gradients(x)
        known = known + top(x - known, 2)
        x = x + 0.3 * (RING - np.eye(WORKERS)) @ known
    return x


def tracking():
    x, y, before = START, np.zeros((WORKERS, D)), np.zeros((WORKERS, D))
    for _ in range(30):
        g = gradients(x)
        y, before = RING @ y + g - before, g
        x = RING @ x - STEP * y
    return x


REFERENCES = [
    (th.Gossip(th.TopK(2)), gossip),
    (th.ChocoGossip(th.TopK(2), gamma=0.3), choco_gossip),
    (th.DPSGD(step=th.Constant(STEP)), dpsgd),
    (th.DCDPSGD(th.TopK(2), th.Constant(STEP)), dcd),
    (th.ECDPSGD(th.TopK(4), th.Constant(STEP)), ecd),
    (th.ChocoSGD(th.TopK(2), th.Constant(STEP), gamma=0.3), choco_sgd),
    (th.GradientTracking(step=th.Constant(STEP)), tracking),
]


@pytest.mark.parametrize("method, reference", REFERENCES, ids=lambda part: getattr(part, "__name__", ""))
def test_is_the_algorithm_in_numpy(method, reference):
    problem = KNOWN.problem
    result = th.run(method, problem, workers=WORKERS, steps=30, wire_dtype=np.float64, x0=START)
    assert result.models == pytest.approx(reference(), rel=1e-10, abs=1e-12)
    assert result.x == pytest.approx(reference().mean(axis=0), rel=1e-10, abs=1e-12)
    apart = np.square(result.models - result.models.mean(axis=0)).sum()
    assert result.consensus[-1] == pytest.approx(apart, rel=1e-10)


def test_costs_are_those_of_the_links():
    """A worker sends one message, and receives those of its neighbours: two on a ring, N - 1 for the hub of a star."""
    problem, bits = th.quadratic(np.ones(6), covariance=0.0), 6 * 32
    ring = th.run(th.DPSGD(step=th.Constant(0.1), shards="shared"), problem, workers=8, steps=10).history[-1]
    assert ring["bits_up"] == 10 * bits and ring["bits_down"] == 10 * 2 * bits
    star = th.DPSGD(step=th.Constant(0.1), graph=th.Star(), shards="shared")
    row = th.run(star, problem, workers=8, steps=10).history[-1]
    assert row["bits_up"] == 10 * bits and row["bits_down"] == pytest.approx(10 * bits * 14 / 8)


def test_memory_is_what_a_worker_keeps_of_its_neighbours():
    problem = th.quadratic(np.ones(6), covariance=0.0)
    method = th.ChocoSGD(th.TopK(2), th.Constant(0.1), gamma=0.3, shards="shared")
    assert th.run(method, problem, workers=8, steps=1).memory_bytes == 3 * 6 * 8


def test_a_callback_sees_the_models_and_show_needs_no_number_of_workers(capsys):
    problem, seen = th.quadratic(np.ones(3), covariance=0.0), []
    method = th.DPSGD(step=th.Constant(0.1), shards="shared")
    start = RNG.standard_normal((4, 3))

    def watch(intermediate_result):
        seen.append(intermediate_result.models)

    result = th.run(method, problem, workers=4, steps=3, x0=start, record_every=1, callback=watch)
    assert len(seen) == 4 and np.array_equal(seen[0], start) and np.array_equal(seen[-1], result.models)
    assert not np.array_equal(seen[1], seen[2])
    th.show(method, problem)
    assert capsys.readouterr().out.startswith("DPSGD, each line for all workers at once")


def test_replicas_are_runs():
    problem = th.quadratic(np.ones(6), covariance=1.0)
    method = th.ChocoSGD(th.RandK(2), th.Constant(0.1), gamma=0.3, shards="shared")
    several = th.run(method, problem, workers=4, steps=20, replicas=5, seed=3)
    assert several.models.shape == (5, 4, 6) and several.consensus.shape == (several.history.size, 5)
    alone = th.run(method, problem, workers=4, steps=20, seed=3)
    assert np.array_equal(several.models[0], alone.models)
    assert several.consensus[-1, 0] == alone.consensus[-1]


# --- graphs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "graph, workers, degree",
    [(th.Ring(), 9, 2), (th.Torus(), 16, 4), (th.Torus(3), 15, 4), (th.Hypercube(), 16, 4), (th.Complete(), 5, 4)],
)
def test_regular_graphs_have_equal_weights(graph, workers, degree):
    W = th.mixing(graph, workers)
    assert (W.hears.sum(axis=1) == degree + 1).all()
    assert W.matrix[W.hears] == pytest.approx(1 / (degree + 1))


def test_a_networkx_graph_in_the_order_of_its_nodes():
    networkx = pytest.importorskip("networkx")
    W = th.mixing(th.Edges(networkx.cycle_graph(6)), 6)
    assert W.matrix == pytest.approx(th.mixing(th.Ring(), 6).matrix)


class Drawing:
    """What `Edges` uses of a networkx graph."""

    nodes = ("c", "a", "b")

    def is_directed(self):
        return False

    def edges(self):
        return [("a", "b"), ("c", "a")]


def test_nodes_are_numbered_in_their_order():
    assert np.array_equal(th.mixing(th.Edges(Drawing()), 3).hears, [[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    with pytest.raises(ValueError, match="number of nodes"):
        th.mixing(th.Edges(Drawing()), 4)


def test_weights_of_a_graph_of_ones_own_are_of_all_workers():
    class Narrow(NamedTuple):
        def weights(self, workers):
            return np.full((workers - 1, workers - 1), 1.0 / (workers - 1))

    with pytest.raises(ValueError, match=r"matrix: got 'shape \(3, 3\)', allowed: shape \(4, 4\)"):
        th.mixing(Narrow(), 4)


@th.method
class OwnDPSGD(NamedTuple):
    """D-PSGD as a method of one's own: it has a graph, and does not say what a worker stores."""

    step: NamedTuple
    graph: NamedTuple = th.Ring()
    compressor: NamedTuple = th.Identity()
    shards: str = "contiguous"
    models = "workers"

    def round(self, run):
        W, g, copies = run.mixing(self.graph), run.scratch(), run.copies("copies")
        run.set_gradient(g, at=run.x)
        run.set(copies, run.hear(run.compress(self.compressor, run.x), W))
        run.add(run.x, copies, weights=W.minus_identity)
        run.add(run.x, g, scale=-run.eta)


def test_a_method_of_ones_own_may_have_a_graph():
    problem = KNOWN.problem
    known = dict(workers=WORKERS, steps=5, x0=START, wire_dtype=np.float64)
    mine = th.run(OwnDPSGD(th.Constant(STEP)), problem, **known)
    assert mine.memory_bytes == 0 and mine.models.shape == (WORKERS, D)
    theirs = th.run(th.DPSGD(step=th.Constant(STEP), shards="contiguous"), problem, **known)
    assert mine.models == pytest.approx(theirs.models, rel=1e-12)
    with pytest.raises(ValueError, match="at least 3 on a ring"):
        th.run(OwnDPSGD(th.Constant(STEP), shards="shared"), problem, workers=2, steps=1)


def test_what_is_not_heard_is_not_weighed():
    """On a rank, the copies of others are not up to date."""

    class Everybody(OwnDPSGD):
        def round(self, run):
            run.mixing(self.graph)
            run.add(run.x, run.copies("copies"), weights=np.full((WORKERS, WORKERS), 0.1))

    problem = th.quadratic(np.ones(D), covariance=0.0)
    with pytest.raises(ValueError, match="weights: got 'not 0 for a pair without an edge'"):
        th.run(Everybody(th.Constant(STEP), shards="shared"), problem, workers=WORKERS, steps=1)
