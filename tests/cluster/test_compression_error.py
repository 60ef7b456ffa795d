"""The compression error of a run: what its messages lose, the same however the run is carried out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import theory as th

X = sp.random(60, 90, 0.2, format="csr", random_state=1)
LABELS = np.where(np.arange(60) % 3 == 0, -1.0, 1.0)
STEP = th.Constant(0.1)


def ratio(result) -> float:
    found = result.compression_error[1:]
    return float(found["error"].sum() / found["vector"].sum())


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_top_k_on_the_first_step(memory, dense):
    """Worker by worker, by hand: with the whole data as its batch in shuffled order, all send the same vector."""
    problem = th.logistic((X.toarray() if dense else X, LABELS), 0.05)
    feedback = th.ErrorFeedback() if memory else th.NoFeedback()
    method = th.ParallelSGD(th.TopK(7), step=STEP, feedback=feedback, batch=60, sampling="shuffle")
    result = th.run(method, problem, workers=2, steps=1, compression_error=True)
    slope = np.asarray(th.gradient(problem, np.zeros(90))) * (0.1 if memory else 1.0)
    rest = np.sort(np.abs(slope))[:-7]
    assert np.isnan(result.compression_error["error"][0])  # before the first round nothing was sent
    assert result.compression_error["vector"][1] == pytest.approx(slope @ slope, rel=1e-6)
    assert result.compression_error["error"][1] == pytest.approx(rest @ rest, rel=1e-6)


@pytest.mark.parametrize(
    "method",
    [
        th.ParallelSGD(th.QSGD(3), step=STEP),
        th.ParallelSGD(th.RandK(5, shared=True), step=STEP),
        th.ParallelSGD(th.TopK(5), step=STEP, feedback=th.ErrorFeedback()),
        th.LocalSGD(th.TopK(5), step=STEP, local_steps=4, feedback=th.ErrorFeedback()),
    ],
    ids=["QSGD", "a shared choice, reduced", "memory", "local steps"],
)
def test_measuring_changes_nothing_and_both_ways_agree(method):
    found = []
    for rows in (X, X.toarray()):
        problem = th.logistic((rows, LABELS), 0.05)
        plain = th.run(method, problem, workers=3, steps=40)
        fast, slow = (
            th.run(method, problem, workers=3, steps=40, compression_error=True, fast=fast) for fast in (True, False)
        )
        assert np.array_equal(plain.x, fast.x) and np.array_equal(plain.x, slow.x)
        found += [ratio(fast), ratio(slow)]
    assert found == pytest.approx([found[0]] * 4, rel=1e-9) and 0.0 < found[0] < 1.0


def test_an_unbiased_sparsifier_adds_d_over_k_less_one():
    """Over 40 workers and 60 rounds, 2,400 messages: within 5 % of omega, and a factor of two would not be."""
    problem = th.logistic((X, LABELS), 0.05)
    method = th.ParallelSGD(th.RandK(9, unbiased=True), step=th.Constant(1e-3))
    result = th.run(method, problem, workers=40, steps=60, record_every=1, compression_error=True)
    assert ratio(result) == pytest.approx(90 / 9 - 1, rel=0.05)


@pytest.mark.parametrize(
    "method, problem",
    [
        (th.ParallelSGD(th.Identity(sparse=True), STEP, compress="loss"), th.logistic((X, LABELS), 0.05)),
        (th.ParallelSGD(th.Identity(), STEP), th.quadratic(np.ones(4), covariance=1.0)),
    ],
    ids=["sparse rows", "drawn gradients"],
)
def test_where_a_compiled_loop_would_take_over(method, problem):
    found = th.run(method, problem, workers=2, steps=6, compression_error=True).compression_error[1:]
    assert (found["vector"] > 0).all() and (found["error"] <= 1e-12 * found["vector"]).all()


@th.method
class SomeSend(NamedTuple):
    """Two of the workers send, drawn in each round."""

    step: NamedTuple = STEP
    batch: int = 1
    shards: str = "shared"
    compressor: NamedTuple = th.TopK(5)
    one_by_one = True

    def round(self, run):
        run.choose(2)
        g = run.scratch()
        run.set_gradient(g, at=run.x)
        run.add(run.x, run.gather(run.compress(self.compressor, g)), scale=-0.1)


def test_inactive_workers_are_left_out():
    result = th.run(SomeSend(), th.logistic((X, LABELS), 0.05), workers=4, steps=9, compression_error=True)
    assert np.isfinite(result.compression_error["error"][1:]).all()
