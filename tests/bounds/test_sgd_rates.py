"""Bounds on SGD against independent recursions and numbers by hand, and the fused loop against the general one."""

import numpy as np
import pytest

import theory as th
from theory import bounds
from theory.core.random import _cosine, _log, fill_keys, fill_normals, kernel, normal
from theory.core.random import derive as derived

# --- steps for an accuracy --------------------------------------------------------------------------------------------


def test_the_recipe_where_nothing_is_to_do():
    assert bounds.sgd_steps_for(0.1, mu=1.0, second_moment=1.0, distance=0.05)[1] == 0


def test_scaled_inverse_time_as_quoted_agrees_up_to_three_quarters():
    for c in (0.6, 0.75):
        forms = [
            bounds.sgd_scaled_inverse_time(9, c=c, mu=1.0, second_moment=1.0, distance=0.0, form=form)
            for form in ("simple", "quoted")
        ]
        assert forms[0] == pytest.approx(forms[1], rel=1e-12)


def test_scaled_inverse_time_as_quoted_is_wrong_by_a_factor_of_at_most_nine_quarters():
    def worst(c):
        largest, share = 1.0, []  # of E||x_t - x*||^2 mu^2/G^2, which is at most 1 on W
        for t in range(1, 200):
            largest = min(1.0, max(0.0, 1.0 - 2.0 * c / t) * largest + c**2 / t**2)
            quoted = bounds.sgd_scaled_inverse_time(
                t, c=c, mu=1.0, second_moment=1.0, distance=1.0 if c >= 1.0 else 0.0, form="quoted"
            )
            share.append(largest / quoted)
        return max(share)

    assert max(worst(c) for c in np.linspace(0.51, 12.0, 100)) <= 2.25
    assert worst(2.0) == pytest.approx(2.25, rel=1e-12) and worst(1.0) == pytest.approx(2.0, rel=1e-12)
    assert max(worst(c) for c in (0.51, 0.6, 0.75)) <= 1.0


# --- exact laws -------------------------------------------------------------------------------------------------------


def test_polyak_ruppert_with_matrices():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, 4, 4))
    H, C = A @ A.T + np.eye(4), B @ B.T
    inverse = np.linalg.inv(H)
    assert bounds.polyak_ruppert(H, C) == pytest.approx(np.trace(inverse @ C @ inverse), rel=1e-10)
    assert bounds.polyak_ruppert(H, C, of="gap") == pytest.approx(np.trace(inverse @ C) / 2, rel=1e-10)


def test_the_factor_of_the_logarithm():
    # the stationary mean of V+ = max(0, V - Z), Z uniform on [-1, 3], on a fine grid instead of by Spitzer's sum
    width, top = 400, 12.0  # points for a unit
    v = np.arange(int(top * width)) / width
    density = np.eye(1, v.size)[0]
    jump = np.full(4 * width, 1.0 / (4 * width))  # from -3 + 1/(2 width) to 1 - 1/(2 width), moved by half a point
    for _ in range(200):
        spread = np.convolve(density, jump)  # index i is v = i/width - 3 + 1/(2 width)
        low = 3 * width
        density = spread[low : low + v.size].copy()
        density[0] += spread[:low].sum()
    mean = density @ v + (1 - density[0]) / (2 * width)
    assert bounds.sgd_uniform_average_logarithm() == pytest.approx(mean, rel=0.01)
    assert bounds.sgd_uniform_average_logarithm(3.0) == pytest.approx(3 * bounds.sgd_uniform_average_logarithm())


def test_averages_by_hand():
    assert bounds.sgd_uniform_average_lower(4, c=8.0, form="paper") == 0.0  # T_0 = 4
    assert bounds.sgd_uniform_average_lower(9, c=8.0) == pytest.approx(8 / 72 / 8)
    assert bounds.sgd_uniform_average_lower(6, c=8.0, form="paper") == pytest.approx(8 / 96 * (1 / 4 + 1 / 5))
    weights = np.arange(1000) >= 500
    steps = 1 / (0.1 * np.arange(1, 1001))
    assert bounds.sgd_average(steps, weights, mu=0.1, second_moment=1.0) < bounds.sgd_suffix_average(
        1000, alpha=0.5, mu=0.1, second_moment=1.0
    )


# --- Bottou, Curtis, Nocedal; smooth functions ------------------------------------------------------------------------


def test_bottou_with_biased_gradients_by_hand():
    # g = grad f/2 + noise of variance 3, f = x^2/2: mu = 1/2, M_G = 1/4; alpha = 1
    keywords = {"mu": 1.0, "lipschitz": 1.0, "step": 1.0, "noise": 3.0, "gap": 8.0, "first": 0.5, "second": 0.25}
    assert bounds.bottou_constant_step(1, **keywords) == pytest.approx(8 / 4 + 3 / 2)
    assert bounds.bottou_constant_step(1, **keywords, form="paper") == pytest.approx(8 / 2 + 3 / 2)


def test_the_shift_of_bottous_plan_is_that_of_inverse_time():
    # the largest step that is allowed, first/(L second), is the first one
    beta, shift = bounds.bottou_decreasing_step_plan(mu=0.5, lipschitz=4.0, first=0.5, second=2.0)
    rule = th.InverseTime(c=beta * 0.5, mu=0.5, shift=shift)
    assert th.methods.schedules.step_size(rule, 0) == pytest.approx(0.5 / (4.0 * 2.0), rel=1e-12)


# --- noise, many streams at once --------------------------------------------------------------------------------------


@kernel
def one_by_one(stream, first, out):
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = normal(derived(stream, first + k), i)


@kernel
def elementary(u, logs, cosines):
    for i in range(u.size):
        logs[i], cosines[i] = _log(1.0 - u[i]), _cosine(u[i])


@pytest.mark.parametrize("first", [0, 5, 2**33])
def test_normal_numbers_of_many_streams_are_those_of_each(first):
    stream, count = th.key(1, "noise"), 37
    high, low = np.empty((2, count), np.uint32)
    together, alone = np.empty((2, 9, count))
    fill_keys(stream, first, high, low)
    fill_normals(high, low, np.empty((4, count), np.uint32), together)
    one_by_one(stream, first, alone)
    assert np.array_equal(together, alone)


def test_logarithm_and_cosine_to_two_units_in_the_last_place():
    whole = np.random.default_rng(0).integers(0, 2**53, 100_000)
    ends = np.concatenate([np.arange(100), 2**53 - 1 - np.arange(100), 2**51 + np.arange(-50, 50)])
    u = np.concatenate([whole, ends, 2**50 * np.arange(8)]) * 2.0**-53
    logs, cosines = np.empty((2, u.size))
    elementary(u, logs, cosines)
    true = np.log1p(-u)
    assert np.all(np.abs(logs - true) <= 2 * np.spacing(np.abs(true)))
    assert logs[u == 0.0].tolist() == [0.0] * int(np.sum(u == 0.0))
    quarters = np.round(4 * u).astype(int)  # by the addition theorem, with an argument that is small and exact
    y = 2 * np.pi * (u - quarters / 4)
    true = np.choose(quarters % 4, [np.cos(y), -np.sin(y), -np.cos(y), np.sin(y)])
    assert np.all(np.abs(cosines - true) <= 3 * np.spacing(np.abs(true)))
    assert cosines[-8:].tolist() == pytest.approx(np.cos(np.pi / 4 * np.arange(8)), abs=1e-15)
