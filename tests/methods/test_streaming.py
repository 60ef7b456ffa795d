"""Streaming DiLoCo against its algorithm in NumPy, against DiLoCo, and on ranks."""

from __future__ import annotations

import numpy as np
import pytest
import streaming_job
from ranks_job import require_same_bits, run_on_ranks

import theory as th
from theory.experiment.method_names import written_method

WORKERS, D, STEP = 4, 7, 0.1
RNG = np.random.default_rng(2)
CURVATURES, CENTRES = RNG.uniform(0.5, 2.0, (WORKERS, D)), RNG.standard_normal((WORKERS, D))
PROBLEM = th.function(
    lambda x: float((CURVATURES * (x - CENTRES) ** 2).sum()) / 2 / WORKERS,
    lambda x: CURVATURES * (x - CENTRES),
    d=D,
    n=WORKERS,
)


def by_hand(L, P, tau, alpha, gamma, beta, rounds, nesterov):
    """Every worker has its quadratic; the result of a message is stored until it has arrived."""
    x, y, v, size = np.ones(D), np.ones((WORKERS, D)), np.zeros(D), -(-D // P)
    sent = {}
    for t in range(1, rounds * L + 1):
        y = y - STEP * CURVATURES * (y - CENTRES)
        p = (t - 1) // L % P  # whose exchange ends this round
        part = slice(p * size, (p + 1) * size)
        if t % L == (L - tau) % L:
            sent[t + tau] = part, x[part] - y[:, part].mean(axis=0)
        if t in sent:
            part, delta = sent.pop(t)
            v[part] = beta * v[part] + delta
            x[part] -= gamma * (delta + beta * v[part] if nesterov else v[part])
            y[:, part] = alpha * y[:, part] + (1.0 - alpha) * x[part]
    return x


@pytest.mark.parametrize(
    ("L", "P", "tau", "alpha", "server"),
    [
        (1, 1, 0, 0.0, th.OuterStep(0.9)),
        (3, 1, 2, 0.4, th.OuterStep(0.7, 0.9, nesterov=True)),
        (3, 2, 0, 0.5, th.OuterStep(1.2, 0.3)),
        (4, 3, 3, 0.2, th.OuterStep(0.7, 0.5, nesterov=True)),  # fragments of 3, 3 and 1
    ],
)
def test_it_is_its_algorithm(L, P, tau, alpha, server):
    method = th.StreamingDiLoCo(
        th.Identity(), th.Constant(STEP), L, P, tau, alpha, server, shards="contiguous", batch=1
    )
    known = dict(workers=WORKERS, steps=11 * L, x0=np.ones(D), wire_dtype=np.float64)
    found = th.run(method, PROBLEM, **known).x
    text = by_hand(L, P, tau, alpha, server.rate, server.momentum, 11, server.nesterov)
    np.testing.assert_allclose(found, text, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("compressor", [th.Identity(), th.QSGD(7), th.TopK(9)])
def test_one_fragment_without_delay_and_blend_is_diloco(compressor):
    """Bit by bit where local SGD gathers; where it reduces, its sums are rounded in another order."""
    data, outer = th.load_data("digits"), th.OuterStep(0.7, 0.9, nesterov=True)
    problem = th.logistic((data.X[:400] / 16.0, data.y[:400]), l2=0.01)
    given = dict(step=th.InverseTime(2.0, 0.05, 100.0), local_steps=5, batch=3, shards="by_label", server=outer)
    known = dict(workers=4, steps=60, record_every=5, seed=3)
    gathered, summed, mine = (
        th.run(method, problem, **known)
        for method in (
            th.LocalSGD(compressor, **given, exchange="gather"),
            th.LocalSGD(compressor, **given),
            th.StreamingDiLoCo(compressor, **given),
        )
    )
    assert np.array_equal(mine.x, gathered.x)
    for column in ("f", "samples", "rounds", "bits_up", "bits_down", "message_bytes_up"):
        assert np.array_equal(mine.history[column], gathered.history[column]), column
    np.testing.assert_allclose(mine.x, summed.x, atol=1e-6)


def test_the_bytes_at_the_peak_fall_and_their_sum_does_not():
    """Of 64 coordinates 16 are sent at a time: each message has a frame of its own, and a bit for each fragment."""
    data = th.load_data("digits")
    problem = th.logistic((data.X[:400] / 16.0, data.y[:400]), l2=0.01)
    known = dict(workers=4, steps=60, record_every=5)
    whole = th.run(th.LocalSGD(th.Identity(), th.Constant(0.1), 20), problem, **known | {"record_every": 20}).history
    parts = th.run(th.StreamingDiLoCo(step=th.Constant(0.1), local_steps=5, fragments=4), problem, **known).history
    assert set(np.diff(whole["bits_up"])) == {64 * 32} and set(np.diff(parts["bits_up"])) == {16 * 32 + 4}
    assert parts["bits_up"][-1] == whole["bits_up"][-1] + 12 * 4
    peaks = [np.diff(history["message_bytes_up"]).max() for history in (whole, parts)]
    assert peaks[1] < 0.4 * peaks[0]


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    run = dict(workers=4, seed=1, x0=np.ones(D), problem=PROBLEM)
    method = th.StreamingDiLoCo(th.QSGD(7), th.Constant(STEP), 4, fragments=2, delay=2, blend=0.5, shards="contiguous")
    whole = th.run(method, steps=40, **run)
    th.run(method, steps=20, checkpoint=tmp_path / "state", **run)
    assert np.array_equal(th.run(method, steps=40, resume=tmp_path / "state", **run).x, whole.x)


def test_no_fragment_is_empty():
    """Seven coordinates in five fragments of ceil(7/5) = 2: the fifth would have none."""
    method = th.StreamingDiLoCo(step=th.Constant(STEP), fragments=5, shards="contiguous")
    with pytest.raises(ValueError, match="fragments: got 5, .* no fragment of 2 coordinates is empty"):
        th.run(method, PROBLEM, workers=WORKERS, steps=1)


def test_it_has_a_name_on_the_command_line():
    text = (
        "streaming-diloco(qsgd(s=7), local_steps=5, fragments=4, delay=2, blend=0.5, server=outerstep(0.7, 0.9, True))"
    )
    method = written_method(text, 100, 1).method
    assert isinstance(method, th.StreamingDiLoCo) and method.server == th.OuterStep(0.7, 0.9, nesterov=True)


@pytest.fixture(scope="module", params=[1, 2, 4])
def on_ranks(request, tmp_path_factory):
    return run_on_ranks(streaming_job, tmp_path_factory.mktemp("streaming"), request.param)


@pytest.mark.parametrize("name", streaming_job.METHODS)
def test_same_bits_on_ranks(name, on_ranks):
    require_same_bits(streaming_job, name, on_ranks)
