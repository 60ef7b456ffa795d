"""Server rules against the algorithms in NumPy, what they keep, and what they refuse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from quadratics import Quadratics, top

import theory as th
from theory.core import setting

WORKERS, D, ETA, STEPS = 4, 6, 0.05, 12
KNOWN = Quadratics(WORKERS, D)
gradients = KNOWN.gradients
LAYERS = (slice(0, 2), slice(2, 6))
X0 = np.linspace(-2.0, 1.5, D)


def found(method, steps=STEPS, **options):
    return th.run(method, KNOWN.problem, workers=WORKERS, steps=steps, wire_dtype=np.float64, x0=X0, **options)


def scaled_sign(v):
    return np.sqrt((v * v).mean(axis=-1, keepdims=True)) * np.where(v < 0.0, -1.0, 1.0)


def error_feedback(x, update):
    """Steps of a rule on top-2 messages with memories in units of the gradient."""
    e = np.zeros((WORKERS, D))
    for t in range(1, STEPS + 1):
        p = gradients(x) + e
        sent = top(p, 2)
        e, x = p - sent, update(x, sent.mean(axis=0), t)
    return x, e


class Moments:
    """m / (sqrt(v) + eps)."""

    def __init__(self, eps):
        self.m, self.v, self.eps = np.zeros(D), np.zeros(D), eps

    def __call__(self, g, t):
        self.m, self.v = 0.9 * self.m + 0.1 * g, 0.999 * self.v + 0.001 * g * g
        return self.m / (1 - 0.9**t) / (np.sqrt(self.v / (1 - 0.999**t)) + self.eps)


def test_ef_adam():
    moments = Moments(1e-8)
    x, e = error_feedback(X0, lambda x, g, t: x - ETA * (moments(g, t) + 0.1 * x))
    method = th.ef_adam(th.TopK(2), th.Constant(ETA), server=th.Adam(decay=0.1), shards="contiguous")
    result = found(method)
    assert result.x == pytest.approx(x, rel=1e-11) and result.memory == pytest.approx(e, rel=1e-11, abs=1e-14)
    assert result.server["m"] == pytest.approx(moments.m) and result.server["v"] == pytest.approx(moments.v)
    assert (result.memory_bytes, result.server_bytes) == (8 * D, 2 * 8 * D)


def test_ef_lamb_by_layers():
    moments = Moments(1e-6)

    def update(x, g, t):
        u, x = moments(g, t) + 0.1 * x, x.copy()
        for part in LAYERS:
            x[part] -= ETA * min(max(np.linalg.norm(x[part]), 0.5), 2.0) * u[part] / np.linalg.norm(u[part])
        return x

    x, e = error_feedback(X0, update)
    server = th.LAMB(decay=0.1, low=0.5, high=2.0, layers=LAYERS)
    result = found(th.ef_lamb(th.TopK(2), th.Constant(ETA), server=server, shards="contiguous"))
    assert result.x == pytest.approx(x, rel=1e-11) and result.memory == pytest.approx(e, rel=1e-11, abs=1e-14)


def test_lamb_moves_by_the_direction_where_x_is_zero():
    problem = th.quadratic(np.ones(4), optimum=np.ones(4), covariance=0.0)
    result = th.run(th.ParallelSGD(step=th.Constant(0.25), server=th.LAMB(eps=0.0)), problem, workers=2, steps=1)
    assert result.x == pytest.approx(0.25 * np.ones(4))


def test_one_bit_adam():
    x, m, v, d, e = X0, np.zeros(D), np.zeros(D), np.zeros((WORKERS, D)), np.zeros(D)
    for t in range(STEPS):
        if t < 5:
            g = gradients(x).mean(axis=0)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        else:
            p = 0.9 * m + 0.1 * gradients(x) + d
            sent = scaled_sign(p)
            d, s = p - sent, sent.mean(axis=0) + e
            m = scaled_sign(s)
            e = s - m
        x = x - ETA * m / (np.sqrt(v) + 1e-8)
    result = found(th.OneBitAdam(th.Constant(ETA), 5, shards="contiguous"))
    assert result.x == pytest.approx(x, rel=1e-10) and result.memory == pytest.approx(d, rel=1e-9, abs=1e-13)
    assert result.server["server error"] == pytest.approx(e, rel=1e-9, abs=1e-13)
    assert (result.memory_bytes, result.server_bytes) == (8 * D, 3 * 8 * D)


@pytest.mark.parametrize("momentum, nesterov", [(0.0, False), (0.9, False), (0.9, True)])
def test_outer_steps(momentum, nesterov):
    x, u = X0, np.zeros(D)
    for _ in range(STEPS // 3):
        y = np.tile(x, (WORKERS, 1))
        for _ in range(3):
            y = y - ETA * gradients(y)
        moved = (x - y).mean(axis=0)
        u = momentum * u + moved
        x = x - 0.7 * (moved + momentum * u if nesterov else u)
    server = th.OuterStep(0.7, momentum, nesterov)
    result = found(th.LocalSGD(step=th.Constant(ETA), local_steps=3, server=server, shards="contiguous"))
    assert result.x == pytest.approx(x, rel=1e-12) and result.server_bytes == (8 * D if momentum else 0)


def test_adam_as_an_outer_step():
    x, moments = X0, Moments(1e-8)
    for t in range(1, STEPS // 3 + 1):
        y = np.tile(x, (WORKERS, 1))
        for _ in range(3):
            y = y - ETA * gradients(y)
        x = x - 0.2 * moments((x - y).mean(axis=0), t)
    method = th.LocalSGD(step=th.Constant(ETA), local_steps=3, server=th.Adam(0.2), shards="contiguous")
    assert found(method).x == pytest.approx(x, rel=1e-11)


def test_one_bit_adam_leaves_what_had_no_gradient():
    problem = th.quadratic(np.array([1.0, 2.0, 3.0, 1.0]), covariance=0.0)
    x0 = np.array([1.0, -1.0, 0.0, 2.0])
    result = th.run(th.OneBitAdam(th.Constant(0.01), 3), problem, workers=2, steps=20, x0=x0)
    assert result.server["v"][2] == result.x[2] == 0.0 and result.server["m"][2] != 0.0


def methods():
    step = th.Constant(0.05)
    return [
        th.ef_adam(th.TopK(9), step, compress="loss"),
        th.conef_adam(th.TopK(9), th.Natural(), step, batch=2),
        th.conef_lamb(th.TopK(9), th.HalfPrecision(), step),
        th.OneBitAdam(step, 10, eps=0.01),
        th.LocalSGD(th.TopK(9), step, 4, th.ErrorFeedback(), server=th.OuterStep(0.7, 0.9, True)),
    ]


@pytest.mark.parametrize("method", methods(), ids=lambda m: type(m.server).__name__ + type(m).__name__)
def test_replicas_and_the_text_give_the_same_bits(method):
    data = th.load_data("digits")
    problem = th.logistic((data.X[:300] / 16.0, data.y[:300]), l2=0.01)
    result = th.run(method, problem, workers=4, steps=40)
    text = th.run(method, problem, workers=4, steps=40, fast=False)
    assert np.array_equal(result.x, text.x) and result.fun < 0.8 * result.history["f"][0]
    replicas = th.run(method, problem, workers=4, steps=40, replicas=3)
    assert np.array_equal(replicas.last[0], result.last) and replicas.server_bytes == result.server_bytes


def test_a_rule_of_your_own_says_what_it_keeps():
    from typing import NamedTuple

    from theory.core import setting

    @setting
    class Signed(NamedTuple):
        beta: float = 0.9
        state = ("m",)

        def update(self, run, received):
            m = run.vector("m")
            run.add(m, received, keep=self.beta, scale=1.0 - self.beta)
            run.x -= float(run.eta_received) * np.sign(m)

    result = found(th.ParallelSGD(step=th.Constant(ETA), server=Signed(), shards="contiguous"))
    assert result.server_bytes == 8 * D and result.server["m"].shape == (D,)


def test_layers_of_wrapped_problems():
    problem = th.softmax((np.eye(4), [0, 1, 2, 1]), l2=0.1)
    assert th.layers(problem) == (slice(0, 12),)
    assert th.layers(th.proximal(problem, np.zeros(12), 1.0)) == (slice(0, 12),)


def test_the_rule_of_the_documentation_is_its_pseudo_code():
    import importlib.util

    from conftest import ROOT

    spec = importlib.util.spec_from_file_location("lion_server", ROOT / "docs" / "examples" / "lion_server.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, m = X0, np.zeros(D)
    for _ in range(STEPS):
        g = gradients(x).mean(axis=0)
        x, m = x - ETA * np.where(0.9 * m + 0.1 * g >= 0.0, 1.0, -1.0), 0.99 * m + 0.01 * g
    method = th.ParallelSGD(step=th.Constant(ETA), server=module.Lion(), shards="contiguous")
    for server in (module.Lion(), th.Sharded(module.Lion())):
        assert found(method._replace(server=server)).x == pytest.approx(x, rel=1e-12)


@setting
class Twice(NamedTuple):
    """x = x - 2 eta g: a rule without fields."""

    def update(self, run, received):
        run.add(run.x, received, scale=-2.0 * run.eta_received)


def test_a_rule_without_fields_is_the_rule_that_runs():
    """A tuple without fields is false; the rule that was given must not be taken for none."""
    for method in (th.ParallelSGD(step=ETA), th.LocalSGD(step=ETA, local_steps=1)):
        twice = found(method._replace(server=Twice()))
        assert twice.x == pytest.approx(found(method, step=2 * ETA).x, rel=1e-12)
    signs = th.ParallelSGD(th.Sign(), step=ETA)
    x = X0
    for _ in range(STEPS):
        votes = np.where(gradients(x) < 0.0, -1.0, 1.0).sum(axis=0)
        x = x - ETA * np.where(votes >= 0.0, 1.0, -1.0)  # a tie counts as +1
    assert found(signs._replace(server=th.Majority(), shards="contiguous")).x == pytest.approx(x, rel=1e-12)


def test_a_topology_without_fields_is_the_one_that_runs():
    gathered = found(th.ParallelSGD(step=ETA, topology=th.AllGather()))
    assert gathered.history["bits_down"][-1] == (WORKERS - 1) * gathered.history["bits_up"][-1]
