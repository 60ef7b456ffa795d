"""PyTorch's communication hooks beside the compressors here: PowerSGD, and half precision.

The hooks are called as DistributedDataParallel calls them, with a bucket of one matrix and a group of one process.
What several workers do follows from the linearity of PowerSGD, which the claim `powersgd.linear` measures.
"""

import numpy as np
import pytest

import theory as th
from theory.claims.sparsifiers.spectral import COLUMNS, ROWS
from theory.compressors import new_symbols, quantize, restore, state_size, update_state

torch = pytest.importorskip("torch", reason='PyTorch is not installed: pip install "sgd-theory[peers]"')
dist = pytest.importorskip("torch.distributed", reason="this build of PyTorch has no torch.distributed")
default_hooks = pytest.importorskip("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
power_sgd = pytest.importorskip("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")

SHAPE, RANK, STEPS = (12, 7), 2, 6


@pytest.fixture(autouse=True, scope="module")
def group(tmp_path_factory):
    store = dist.FileStore(str(tmp_path_factory.mktemp("group") / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Bucket:
    """What hooks ask of a bucket of gradients."""

    def __init__(self, v, shape):
        self.values, self.shape = torch.tensor(v), shape

    def buffer(self):
        return self.values

    def gradients(self):
        return [self.values.view(self.shape)]

    def index(self):
        return 0

    def is_last(self):
        return True


def hooked(hook, state, v, shape=None):
    return hook(state, Bucket(v, shape)).wait().numpy().copy()


def power_state(rank, **options):
    about = {"use_error_feedback": False, "warm_start": True, "min_compression_rate": 1e-3} | options
    state = power_sgd.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2, **about)
    state.iter = 2  # the first steps are not compressed
    return state


def gradients():
    """Matrices that change slowly, as gradients do."""
    rng = np.random.default_rng(20261128)
    common = rng.standard_normal(SHAPE)
    return [(common + 0.3 * rng.standard_normal(SHAPE)).ravel() for _ in range(STEPS)]


@pytest.mark.parametrize("feedback", [False, True])
def test_steps_of_power_sgd_from_the_same_start(feedback):
    """Each step starts from the Q of the last one, and the error is added to the next gradient."""
    c, (rows, columns) = th.PowerSGD(*SHAPE, RANK), SHAPE
    d, stream = rows * columns, th.key(0)
    ours, symbols, error, out = np.zeros(state_size(c, d)), new_symbols(c, d, np.empty(0)), np.zeros(d), np.empty(d)
    ours[: columns * RANK] = np.random.default_rng(7).standard_normal(columns * RANK)
    theirs = power_state(RANK, use_error_feedback=feedback)
    theirs.q_memory_dict[0] = torch.tensor(ours[: columns * RANK])
    theirs.p_memory_dict[0] = torch.zeros(rows * RANK, dtype=torch.float64)
    for g in gradients():
        v = g + error
        quantize(c, ours, v, stream, symbols)
        update_state(c, d, ours, symbols)
        restore(c, symbols, out)
        error = feedback * (v - out)
        np.testing.assert_allclose(hooked(power_sgd.powerSGD_hook, theirs, g, SHAPE), out, rtol=0.0, atol=1e-12)


def hook_from_a_cold_start(epsilon):
    def sent(v, rng, rank):
        state = power_state(rank, warm_start=False, orthogonalization_epsilon=epsilon)
        state.rng = np.random.RandomState(rng.integers(2**31))
        return hooked(power_sgd.powerSGD_hook, state, v, (ROWS, COLUMNS))

    return sent


@pytest.mark.slow
def test_the_claim_on_power_sgd_holds_for_the_hook():
    """With an epsilon, as the documentation advises; with its default of 0 a matrix of zeros gives NaN."""
    found = th.grade(hook_from_a_cold_start(1e-12), "powersgd.cold")
    assert found, found
    rng, zeros = np.random.default_rng(0), np.zeros(ROWS * COLUMNS)
    assert np.isnan(hook_from_a_cold_start(0.0)(zeros, rng, 2)).all()
    assert not hook_from_a_cold_start(1e-12)(zeros, rng, 2).any()
    assert not th.compress(th.PowerSGD(ROWS, COLUMNS, 2), zeros, 0).any()


def test_the_hook_for_half_precision_rounds_to_the_nearest():
    """Ours is unbiased, and scales first: theirs loses what is below 2^-25, and overflows above 65504."""
    sent = lambda v: hooked(default_hooks.fp16_compress_hook, None, np.array(v))  # noqa: E731
    np.testing.assert_array_equal(sent([1e5, 1e-8, 1.0 + 2.0**-11, 0.1]), [np.inf, 0.0, 1.0, np.float16(0.1)])
    between = np.full(4_000, 1.0 + 2.0**-11)
    ours = th.compress(th.HalfPrecision(), between, 1)
    assert set(ours) == {1.0, 1.0 + 2.0**-10}
    assert ours.mean() == pytest.approx(between[0], abs=6 * 2.0**-11 / np.sqrt(between.size))
    np.testing.assert_allclose(th.compress(th.HalfPrecision(), np.array([1e5, 1e-3]), 1), [1e5, 1e-3], rtol=2.0**-10)
    assert "to the nearest float16" in th.grade(lambda v: sent(v), "half.variance").faults[0]
