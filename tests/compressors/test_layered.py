"""A compressor for each layer: against the layers one by one, reductions against gathers, and what it refuses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import theory as th
from theory.compressors import reference, summed
from theory.core import setting
from theory.core.random import derive, key

ROWS, COLUMNS, OUT = 12, 8, 5
D = COLUMNS * (ROWS + OUT)
SHAPES = ((ROWS, COLUMNS), (COLUMNS, OUT))


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    return th.two_layer((rng.normal(size=(60, ROWS)), np.arange(60) % OUT), COLUMNS, l2=1e-3)


def powersgd(network, warm=True, rank=2):
    return th.by_layer(network, lambda rows, columns: th.PowerSGD(rows, columns, rank, warm))


def test_every_layer_has_its_own_message(network):
    v, stream = np.random.default_rng(1).normal(size=D), key(4)
    layers = th.layers(network)
    for make in (
        lambda rows, columns: th.TopK(rows),
        lambda rows, columns: th.SpectralAtomo(rows, columns, 1.5),
        lambda rows, columns: th.PowerSGD(rows, columns, 2),
        lambda rows, columns: th.Bucketed(th.QSGD(7), 16) if columns == OUT else th.Identity(),
    ):
        c = th.by_layer(network, make)
        assert isinstance(c, th.ByLayer) and c.size == ROWS * COLUMNS
        alone = [
            th.compress(make(*shape), v[layer], np.uint64(derive(stream, k)))
            for k, (layer, shape) in enumerate(zip(layers, SHAPES, strict=True))
        ]
        assert th.compress(c, v, stream).tobytes() == np.concatenate(alone).tobytes()
        assert th.decode(th.encode(c, v, stream)).tobytes() == np.concatenate(alone).tobytes()


def test_three_layers_nest():
    c = th.ByLayer(4, th.TopK(1), th.ByLayer(6, th.TopK(2), th.Identity()))
    v = np.random.default_rng(2).normal(size=13)
    expected = v.copy()
    for part, k in ((slice(0, 4), 1), (slice(4, 10), 2)):
        expected[part] = reference(th.TopK(k), v[part], np.uint64(0), np.float64)
    assert th.compress(c, v, key(0), wire_dtype=np.float64).tolist() == expected.tolist()


def test_closed_forms_are_those_of_the_worst_layer(network):
    cold, v = powersgd(network, warm=False), np.random.default_rng(3).normal(size=D)
    assert th.delta(cold, D) == pytest.approx(2 / 8)  # rank 2 of min(12, 8), and of min(8, 5): 2/5
    atomo = th.by_layer(network, lambda rows, columns: th.SpectralAtomo(rows, columns, 1.5))
    assert th.omega(atomo, D) == max(th.omega(th.SpectralAtomo(*shape, 1.5), shape[0] * shape[1]) for shape in SHAPES)
    assert th.expected_payload_bits(cold, v) == 32 * 2 * (ROWS + COLUMNS + COLUMNS + OUT)
    assert th.expected_nonzeros(th.ByLayer(40, th.TopK(3), th.TopK(4)), v) == 7


def test_one_layer_needs_no_wrapper():
    problem = th.softmax((np.eye(6), [0, 1, 2, 0, 1, 2]), l2=0)
    assert th.by_layer(problem, lambda rows, columns: th.BestRank(rows, columns, 2)) == th.BestRank(6, 3, 2)


# --- messages that are added ------------------------------------------------------------------------------------------


def test_what_is_added_is_what_both_layers_add(network):
    low, high = summed(powersgd(network), D)
    assert high - low == 2 * (COLUMNS + OUT)  # Q of both layers; P is agreed on before
    assert summed(th.ByLayer(40, th.Identity(), th.TopK(3)), D) == (0, 0)
    assert summed(th.ByLayer(40, th.Identity(), th.ByLayer(20, th.Identity(), th.TopK(3))), D) == (0, 0)


@pytest.mark.parametrize("warm", [True, False])
def test_a_reduction_sends_the_factors_and_is_powersgd_of_the_mean(network, warm):
    """With the full batch all workers agree, and so do a reduction, a gather, and NumPy's projection."""
    c, x = powersgd(network, warm), th.initial_point(network, 1)
    common = {"step": th.Constant(0.5), "sampling": "shuffle", "batch": 60}
    found = {
        exchange: th.run(
            th.ParallelSGD(c, exchange=exchange, **common),
            network,
            workers=1,
            steps=1,
            x0=x,
            wire_dtype=np.float64,
        )
        for exchange in ("reduce", "gather")
    }
    for result in found.values():
        assert result.history["bits_up"][-1] == 64 * 2 * (ROWS + COLUMNS + COLUMNS + OUT)
    np.testing.assert_allclose(found["reduce"].x, found["gather"].x, rtol=1e-9, atol=1e-12)
    for layer, shape in zip(th.layers(network), SHAPES, strict=True):
        moved = ((x - found["reduce"].x)[layer] / 0.5).reshape(shape)
        assert np.linalg.matrix_rank(moved, tol=1e-9) == 2
        G = th.gradient(network, x)[layer].reshape(shape)
        U = np.linalg.svd(moved)[0][:, :2]
        np.testing.assert_allclose(U @ (U.T @ G), moved, atol=1e-9)  # the projection onto its range


def test_reductions_of_several_workers(network):
    """The mean of P P'M_i is P P' of the mean: on every layer the sum of ranks is that of one message."""
    method = th.ParallelSGD(powersgd(network), step=th.Constant(0.2), feedback=th.ErrorFeedback(), batch=5)
    result = th.run(method, network, workers=4, steps=30, seed=2)
    assert result.success and result.history["bits_up"][-1] == 30 * 32 * 2 * (ROWS + COLUMNS + COLUMNS + OUT)
    one = th.run(method._replace(feedback=th.NoFeedback()), network, workers=4, steps=1, seed=2)
    moved = one.x - th.initial_point(network, 2)
    for layer, shape in zip(th.layers(network), SHAPES, strict=True):
        assert np.linalg.matrix_rank(moved[layer].reshape(shape), tol=1e-6) == 2


def test_maxima_and_means_cannot_be_combined_in_one_message():
    mixed = th.ByLayer(16, th.TernGrad(shared=True), th.PowerSGD(4, 4, 1))
    with pytest.raises(ValueError, match="by maximum or mean"):
        th.check(mixed, 32)
    th.check(th.ByLayer(16, th.TernGrad(shared=True), th.Identity()), 32)


# --- refusals ---------------------------------------------------------------------------------------------------------


# --- many layers ------------------------------------------------------------------------------------------------------


@setting
class Deep(NamedTuple):
    """As much of a problem as `by_layer` asks for: layers of 2, 3, 4, ... rows."""

    layers: int

    def layer_shapes(problem):
        return tuple((2 + k, 1) for k in range(problem.layers))


def test_few_layers_nest_one_by_one():
    c = th.by_layer(Deep(9), lambda rows, columns: th.TopK(1))
    for k in range(8):
        assert isinstance(c, th.ByLayer) and c.size == 2 + k and c.first == th.TopK(1)
        c = c.rest
    assert c == th.TopK(1)


def test_messages_of_many_layers_can_be_decoded():
    """One by one they would nest more deeply than receivers accept."""
    layers = 11
    c = th.by_layer(Deep(layers), lambda rows, columns: th.TopK(rows - 1))
    v = np.random.default_rng(0).normal(size=sum(2 + k for k in range(layers))).astype(np.float32).astype(float)
    expected, end = v.copy(), 0
    for k in range(layers):
        part = expected[end : end + 2 + k]
        part[np.argmin(np.abs(part))] = 0.0
        end += 2 + k
    restored = th.decode(th.encode(c, v, 0))
    assert np.array_equal(restored, expected) and end == v.size
