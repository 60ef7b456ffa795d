"""The middle carries methods that it does not know: see shapes.py, where each is a text of at most forty lines."""

from __future__ import annotations

import inspect
from typing import NamedTuple

import numpy as np
import pytest
import shapes
from ranks_job import require_same_bits, run_on_ranks

import theory as th


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    return run_on_ranks(shapes, tmp_path_factory.mktemp("shapes"))


@pytest.mark.parametrize("name", shapes.METHODS)
def test_same_bits_on_ranks_and_by_the_text(name, on_ranks):
    """Two ranks, the simulator, and the text run in Python in every round."""
    result, text = require_same_bits(shapes, name, on_ranks), shapes.train(name, fast=False)
    assert np.array_equal(result.x, text.x) and np.array_equal(result.memory, text.memory)
    assert result.fun < 0.8 * result.history["f"][0]


def test_the_result_is_the_mean_also_where_each_rank_has_one_model(on_ranks):
    assert np.array_equal(shapes.train("D-PSGD", workers=2).x, on_ranks["one worker on each rank"])


def test_a_callback_sees_the_mean_of_the_models(on_ranks):
    """Which takes all ranks, though rank 0 alone calls it."""
    seen = []
    shapes.train("D-PSGD", callback=lambda intermediate_result: seen.append(intermediate_result.last))
    assert len(seen) == 4 and np.array_equal(seen, on_ranks["means that a callback saw"])


def test_each_is_short_and_compiles_nothing_of_its_own():
    for cls in (shapes.DPSGD, shapes.ChocoSGD, shapes.Adam, shapes.FedAvg, shapes.EF21P):
        source, _ = inspect.getsourcelines(cls)
        assert len(source) <= 40 and not any("kernel" in line or "numba" in line for line in source), cls.__name__


def test_models_are_averaged_in_one_call():
    """On quadratics by hand: each worker steps alone, and after the rounds 0, 3, 6, ... all have the mean."""
    curvatures, centres = np.linspace(0.5, 2.0, 4)[:, None] * np.ones(3), np.arange(12.0).reshape(4, 3)
    problem = th.function(
        lambda x: float((curvatures * (x - centres) ** 2).sum()) / 8, lambda x: curvatures * (x - centres), d=3, n=4
    )
    method = shapes.PeriodicAveraging(th.Constant(0.1), period=3, batch=1)
    method = th.method(type("Apart", (shapes.PeriodicAveraging,), {"shards": "contiguous"}))(*method)
    result = th.run(method, problem, workers=4, steps=6, wire_dtype=np.float64, record_every=1)
    x = np.zeros((4, 3))
    for t in range(6):
        x = x - 0.1 * curvatures * (x - centres)
        x = np.tile(x.mean(axis=0), (4, 1)) if t % 3 == 0 else x
    assert np.allclose(result.models, x, rtol=1e-12)
    assert result.history["rounds"][-1] == 2 and result.history["bits_up"][-1] == 2 * 3 * 64


def test_a_compressor_may_change_during_a_run():
    """A schedule of compressors: top-1 in the first 20 rounds, top-10 from then on, with one memory."""

    @th.method
    class Switched(NamedTuple):
        step: NamedTuple
        compressor: NamedTuple
        later: NamedTuple
        after: int

        def round(self, run):
            p, e = run.scratch(), run.memory()
            run.set(p, e)
            run.add_gradient(p, at=run.x, scale=run.eta)
            early = run.round < self.after
            message = run.compress(self.compressor if early else self.later, p, phase="up" if early else "later")
            run.set(e, p)
            run.add(e, message, scale=-1.0)
            run.add(run.x, run.gather(message), scale=-1.0)

    problem = th.quadratic(np.ones(30), covariance=1.0, optimum=1.0)
    method = Switched(th.Constant(0.1), th.TopK(1), th.TopK(10), after=20)
    result = th.run(method, problem, workers=8, steps=50, record_every=10)
    assert np.diff(result.history["bits_up"]).tolist() == [370.0, 370.0, 3700.0, 3700.0, 3700.0]  # 37 bits an entry
    plain = th.ParallelSGD(th.TopK(1), step=0.1, feedback=th.ErrorFeedback())
    first = th.run(plain, problem, workers=8, steps=20, record_every=10)
    assert result.history["f"][:3].tolist() == first.history["f"].tolist()
