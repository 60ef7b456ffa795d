"""What `grade` knows of the exercises that ask for a round or a number: one table of right answers and arguments.

A name is that of the lecture and of the function to be written, ``"09.rows"``.  The functions here are those of the
lectures' solutions, or formulas of `theory.bounds`; arguments are passed by their place, so that names are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .. import bounds
from ..cluster import NETWORKS
from ..compressors import TopK


class Exercise(NamedTuple):
    """A right answer, the arguments with which an answer is called, names of its parts, and the allowed difference.

    ``mistakes`` are usual wrong answers, of an exercise with one part, by what a grade says of them.  ``whole`` makes a
    right number whole where the exercise asks for a count: both are right.
    """

    right: Callable
    at: Sequence[tuple]
    parts: tuple[str, ...] = ("the value",)
    tolerance: float = 1e-6
    mistakes: Mapping[str, Callable] = MappingProxyType({})
    whole: Callable = lambda right: right


# --- rounds -----------------------------------------------------------------------------------------------------------


def _largest(p: np.ndarray, k: int) -> np.ndarray:
    kept = np.zeros(p.size)
    chosen = np.argsort(np.abs(p))[p.size - k :]
    kept[chosen] = p[chosen]
    return kept


def _with_memory(x: np.ndarray, e: np.ndarray, gradient: np.ndarray, gamma: float, k: int) -> Any:
    p = e + gamma * gradient
    sent = _largest(p, k)
    return x - sent, p - sent


def _local_steps(x: np.ndarray, gradients: Sequence[Callable], gamma: float, H: int) -> np.ndarray:
    ends = []
    for gradient in gradients:
        y = x
        for _ in range(H):
            y = y - gamma * gradient(y)
        ends.append(y)
    return np.mean(ends, axis=0)


def _differences(x: np.ndarray, g: np.ndarray, gradients: Callable, k: int, gamma: float) -> Any:
    g = g + np.array([_largest(row, k) for row in gradients(x) - g])
    return x - gamma * g.mean(axis=0), g


def _outside(c: Any, gradients: np.ndarray, gammas: np.ndarray) -> Any:
    x, e = np.zeros(gradients.shape[1]), np.zeros(gradients.shape[1])
    for g, gamma in zip(gradients, gammas, strict=True):
        sent = _largest(g + e, c.k)
        x, e = x - gamma * sent, g + e - sent
    return x, e


def _debt(c: Any, gradients: np.ndarray, gammas: np.ndarray) -> np.ndarray:
    x, e = _outside(c, gradients, gammas)
    return x + gammas @ gradients - gammas[-1] * e


def _walk(gradients: Iterable[float]) -> float:
    x = e = 0.0
    for g in gradients:
        p = g + e
        sent = 1.0 if p >= 0 else -1.0
        x, e = x - sent, p - sent
    return x


def _corrected(x: float, H: int) -> float:
    slopes, minimisers, gamma = LECTURE_10
    own = slopes * (x - minimisers)
    y = np.full(3, float(x))
    for _ in range(H):
        y = y - gamma * (slopes * (y - minimisers) - own + own.mean())
    return y.mean()


def _dithered(x: np.ndarray, step: float, u: np.ndarray) -> Any:
    levels = np.rint(x / step + u)
    return levels, (levels - u) * step


def _trimmed(x: np.ndarray, F: int) -> np.ndarray:
    return np.sort(x, axis=-1)[..., F : x.shape[-1] - F].mean(axis=-1)


def _grows(p: float, s: float) -> float:
    sent = np.array([[(1 - s) ** 2, -2 * (1 - s), 1], [0, 0, 0], [0, 0, 0]])
    kept = np.array([[1, 0, 0], [s, 1, 0], [s**2, 2 * s, 1]])
    return float(np.abs(np.linalg.eigvals(p * sent + (1 - p) * kept)).max())


# --- numbers ----------------------------------------------------------------------------------------------------------


def _law_of_steps(c: float, steps: int, a0: float = 10.0) -> np.ndarray:
    a = [a0]
    for t in range(steps):
        a.append((1 - c / (t + 1)) ** 2 * a[-1] + (c / (MU * (t + 1))) ** 2 * SIGMA2)
    return np.array(a)


def _mean_of_iterates(T: int) -> float:
    return SIGMA2 / (MU * T) ** 2 * float(np.sum(np.cumsum(1.0 / np.arange(T - 1, 0, -1)) ** 2))


def _plan(epsilon: float, theta: float, mu: float, M2: float, a0: float) -> Any:
    gamma = 2 * mu * theta * epsilon / M2
    return gamma, math.ceil(math.log(a0 / ((1 - theta) * epsilon)) / (2 * gamma * mu))


def _floor(gamma: float, omega: float, N: int) -> float:
    kick = gamma**2 * (SIGMA2 + omega * SIGMA2) / N
    return kick / (1 - (1 - gamma * MU) ** 2 - gamma**2 * MU**2 * omega / N)


def _told(v: np.ndarray, k: float) -> float:
    return np.abs(v).sum() / np.min(np.abs(v) / bounds.optimal_probabilities(v, budget=k))


def _limit(beta1: float, beta2: float) -> float:
    ratio = beta1**2 / beta2
    return math.inf if ratio >= 1 else (1 - beta1) / math.sqrt((1 - beta2) * (1 - ratio))


def _least_noise(epsilon: float, delta: float, T: int) -> float:
    low, high = 0.01, 1e4
    for _ in range(100):
        middle = math.sqrt(low * high)
        private = bounds.gaussian_privacy(epsilon, middle, T) <= delta
        low, high = (low, middle) if private else (middle, high)
    return high


def _end(A: np.ndarray, b: np.ndarray, gamma: float, H: int) -> float:
    weight = 1 - (1 - gamma * A) ** H
    return float(np.sum(weight * b) / np.sum(weight))


# --- the table --------------------------------------------------------------------------------------------------------

MU, SIGMA2 = 0.5, 2.0  # of lecture 3
LECTURE_10 = (np.array([4.0, 1.0, 0.25]), np.array([1.0, 1.5, -2.0]), 0.1)  # curvatures, minimisers, gamma
DRAWN = np.random.default_rng(20)
FLOAT32 = 1e-5  # of what `compress` sends by default
V, W = DRAWN.standard_normal(12), DRAWN.standard_normal(7) ** 3
ROWS, TIMES = DRAWN.standard_normal((9, 4)), 1.0 + DRAWN.exponential(size=(2000, 32))
SLOPES = [lambda y, a=a, b=b: a * (y - b) for a, b in ((0.5, V[:4]), (1.5, V[4:8]), (4.0, V[8:]))]
GOSSIP = [np.array([1.0, *np.linspace(0.8, -0.3, 7)]), np.array([-0.4, 0.1, 1.0, 0.6])]  # eigenvalues
FALLING = 1.0 / (3.0 + np.arange(9))


def _slopes(x: np.ndarray) -> np.ndarray:
    """A row for each of three workers, in four dimensions."""
    return np.array([slope(x) for slope in SLOPES])


NET = NETWORKS["10 Gbit/s"]
X_AND_E = ("the new x", "the new memory")
EXERCISES: dict[str, Exercise] = {
    "ef.identity": Exercise(_with_memory, [(V, W[0] * V[::-1], V**2, 0.3, 3), (W, 0.0 * W, W - 2, 0.7, 2)], X_AND_E),
    "local-sgd.average": Exercise(
        _local_steps, [(V[:4], SLOPES, 0.1, 3), (V[4:8], SLOPES[:2], 0.3, 5)], ("the new x",)
    ),
    "01.overtakes": Exercise(
        lambda net, p: bounds.ring_doubling_crossover(p, alpha=net.alpha, beta=net.beta, gamma=net.gamma),
        [(NET, 64), (NETWORKS["1 Gbit/s"], 16), (NET, 8)],
        whole=math.ceil,
    ),
    "01.overlap": Exercise(lambda B, row, rest: (B * row + rest) / max(B * row, rest), [(8, 0.5, 3.0), (2, 0.1, 7.0)]),
    "01.best_wait": Exercise(
        lambda draws: 1 + int(np.argmin(np.sort(draws, axis=1).mean(axis=0) / np.arange(1, draws.shape[1] + 1))),
        [(TIMES,), (TIMES[:, :12] ** 3,), (TIMES[:, :5],)],
    ),
    "02.second_moment_without": Exercise(
        lambda M2, B_D, B, n: bounds.minibatch_second_moment(M2, M2 / B_D, B, n=n, reduction="sum"),
        [(2.0, 3.0, 4, 10), (5.0, 1.5, 7, 7), (3.0, 6.0, 2, 9)],
        mistakes={
            "this is the law with replacement: without it two rows of a batch always differ": (
                lambda M2, B_D, B, n: B * M2 * (1 + (B - 1) / B_D)
            ),
            "n in place of n - 1: the second row is one of the n - 1 others": (
                lambda M2, B_D, B, n: B * M2 * (1 + (B - 1) / n * (n / B_D - 1))
            ),
            "this is the variance: the square of the mean is missing": (
                lambda M2, B_D, B, n: B * (M2 - M2 / B_D) * (n - B) / (n - 1)
            ),
            "this is that of the mean of the batch, not of its sum": (
                lambda M2, B_D, B, n: M2 / B * (1 + (B - 1) / (n - 1) * (n / B_D - 1))
            ),
        },
    ),
    "02.enough": Exercise(
        lambda share, B_D: share / (1 - share) * (B_D - 1),
        [(0.5, 10.0), (0.85, 231.0), (0.3, 4.0)],
        whole=math.ceil,
        mistakes={
            "B_D in place of B_D - 1: the speed-up is B/(1 + (B - 1)/B_D)": (
                lambda share, B_D: share / (1 - share) * B_D
            ),
            "this is the speed-up to be reached, not the number of machines that reaches it": (
                lambda share, B_D: share * B_D
            ),
        },
    ),
    "02.most": Exercise(lambda x: bounds.sphere_quadratic_delta(0.5 / x, x, 1.0), [(0.1,), (0.01,), (0.03,)]),
    "03.plan": Exercise(
        _plan, [(0.1, 0.5, 0.5, 6.0, 16.0), (1e-3, 0.8, 2.0, 3.0, 5.0)], ("the step", "the number of steps")
    ),
    "03.exact_law": Exercise(_law_of_steps, [(0.25, 30), (0.7, 12), (1.5, 5)]),
    "03.uniform_law": Exercise(_mean_of_iterates, [(10,), (100,), (37,)]),
    "03.floor": Exercise(_floor, [(0.1, 3.0, 4), (0.3, 1.5, 2), (0.05, 7.0, 9)]),
    "04.saving": Exercise(lambda v: v.size * (v @ v) / np.abs(v).sum() ** 2, [(V,), (W,), (1e3 * V[:5],)]),
    "04.probabilities": Exercise(
        lambda v, k: bounds.optimal_probabilities(v, budget=k),
        [(V, 3.0), (W, 5.0), (W, 2.0)],
        mistakes={
            "what is clipped at 1 is not given to the others: the sum is below k": (
                lambda v, k: np.minimum(1, k * np.abs(v) / np.abs(v).sum())
            ),
            "proportional to the squares: the optimal ones are proportional to |v_i|": (
                lambda v, k: np.minimum(1, k * v**2 / (v @ v))
            ),
        },
    ),
    "04.careless": Exercise(
        lambda v, k: np.minimum(1, k * np.abs(v) / np.abs(v).sum()), [(V, 3.0), (W, 5.0), (W, 2.0)]
    ),
    "04.told": Exercise(_told, [(V, 3.0), (W, 5.0), (W, 2.0)]),
    "04.values": Exercise(
        lambda N, shared: 2 * N + 1 if shared else 3**N, [(2, True), (4, False), (7, True), (3, False)]
    ),
    "04.down": Exercise(
        lambda N: bounds.terngrad_downlink_bits(N),
        [(2,), (4,), (30,)],
        whole=math.ceil,
        mistakes={
            "these are the bits without a common scale: with it a sum takes 2N + 1 values": (
                lambda N: N * math.log2(3)
            ),
        },
    ),
    "04.second": Exercise(
        lambda v, C: v.size * C**2,
        [(V, 3.0), (W, 12.0), (V[:5], 0.7)],
        mistakes={
            "this is the variance: the exercise asks for E||Q(v)||^2": lambda v, C: v.size * C**2 - v @ v,
            "this is the second moment of ternary messages; with one bit no coordinate is 0": (
                lambda v, C: C * np.abs(v).sum()
            ),
        },
    ),
    "05.variance": Exercise(
        lambda v, levels: bounds.chord_variance(v, levels) / (v @ v),
        [(V, np.arange(4) / 3), (W, np.array([0.0, 0.25, 0.5, 1.0])), (3.0 * V, np.array([0.0, 0.1, 1.0]))],
    ),
    "05.ratio_for": Exercise(
        lambda omega: 1 + 2 * omega - math.sqrt((1 + 2 * omega) ** 2 - 1), [(0.01,), (0.125,), (2.0,)]
    ),
    "06.atomo": Exercise(
        lambda values, budget: bounds.atomo_probabilities(values, budget), [(V, 4.0), (W, 2.5), (W, 6.0)]
    ),
    "06.spent": Exercise(lambda a, q, b: 1 + (q - 1) * b / (a + q - 1), [(9.0, 10, 3.0), (30.0, 7, 2.0)]),
    "06.loss": Exercise(
        lambda a, q, b: ((a + q - 1) / b - 1) / ((q - 1) / (b - 1) - 1),
        [(9.0, 10, 3.0), (30.0, 7, 2.0), (300.0, 10, 3.0)],
    ),
    "06.rank_one": Exercise(lambda n: math.pi / math.sqrt(2 * n), [(100,), (7,), (2**12,)]),
    "07.drift": Exercise(lambda: (0.25, -0.5), [()], ("the mean gradient", "the mean sign")),
    "07.walk": Exercise(_walk, [(V,), (3.0 * W,), (np.where(V > 0, 4.0, -1.0),)]),
    "07.waiting": Exercise(
        lambda p: (1 - p) * (2 - p) / p**2,
        [(0.01,), (0.3,), (0.7,)],
        mistakes={
            "this is the variance of the waiting time: the square of its mean is missing": lambda p: (1 - p) / p**2,
            "this is the square of the mean, not the mean of the square": lambda p: ((1 - p) / p) ** 2,
            "this is the mean of the waiting time, not of its square": lambda p: (1 - p) / p,
            "counted from 1: a coordinate that is sent in this step has waited 0 steps": lambda p: (2 - p) / p**2,
        },
    ),
    "07.outside": Exercise(
        _outside, [(TopK(1), ROWS, FALLING), (TopK(2), ROWS - 1, FALLING**2)], X_AND_E, tolerance=FLOAT32
    ),
    "07.debt": Exercise(_debt, [(TopK(1), ROWS, FALLING), (TopK(2), ROWS - 1, FALLING**2)], tolerance=FLOAT32),
    "07.grows": Exercise(_grows, [(0.1, 0.2), (0.5, 1.2), (0.9, 0.3)]),
    "08.mean_share": Exercise(lambda theta: 1 / (1 + theta), [(0.5,), (3.0,), (9.0,)]),
    "08.shrunk_factor": Exercise(lambda theta, residual: residual / (1 + theta), [(0.5, 0.9), (3.0, 0.4)]),
    "08.better": Exercise(
        lambda load, residual: min((load / 2, "once"), (load**2, "v1"), (load * residual, "v2"))[1],
        [(4, 0.9), (4, 0.25), (0.25, 0.9), (0.4, 0.6)],
    ),
    "08.difference": Exercise(lambda q, gamma: 1 - q * gamma, [(0.3, 0.2), (0.7, 0.5)]),
    "08.together": Exercise(
        lambda q, gamma: np.array([[1 - q * gamma, -q], [gamma * (1 - q), 1 - q]]), [(0.3, 0.2), (0.7, 0.5)]
    ),
    "09.fixed": Exercise(
        lambda T, t, q, noise, gap: q**t * gap + noise * t / T * (1 - q**t) / (1 - q),
        [(700, 7, 0.49, 0.09, 2.0), (50, 3, 0.8, 4.0, 3.0)],
    ),
    "09.exponent": Exercise(
        lambda q, rho: min(1.0, math.log(1 / q) / math.log(rho)), [(0.49, 1.2), (0.49, 6.0), (0.7, 3.0)]
    ),
    "09.largest": Exercise(
        lambda T, N, mu, L, ratio: math.sqrt(ratio * mu * T / (64 * L * N)),
        [(10**7, 4, 0.7, 2.0, 0.5), (10**5, 9, 3.0, 5.0, 2.0)],
        whole=math.floor,
    ),
    "09.rows": Exercise(lambda n, S2, E: 1 / (1 / n + E / S2), [(1000, 5.0, 0.1), (30, 2.0, 0.7)], whole=math.ceil),
    "10.hosts": Exercise(
        lambda rank, ranks, workers: list(range(rank * (workers // ranks), (rank + 1) * (workers // ranks))),
        [(1, 2, 8), (3, 4, 12), (2, 5, 35)],
    ),
    "10.received": Exercise(
        lambda k, d, N: (N - 1) * k * (32 + math.ceil(math.log2(d))), [(20, 400, 8), (3, 1000, 2), (100, 70, 16)]
    ),
    "11.replaced_variance": Exercise(
        lambda d, k: (d - 1) / k,
        [(20, 10), (7, 3), (50, 80)],
        mistakes={
            "this is d/k - 1, the variance without replacement": lambda d, k: d / k - 1,
            "this is the second moment of one draw over k: the square of the mean is missing": lambda d, k: d / k,
        },
    ),
    "12.most": Exercise(lambda values: bounds.dcd_threshold(values), [(GOSSIP[0],), (GOSSIP[1],)]),
    "12.longest": Exercise(
        lambda least: (1 + least, (1 + least) ** 2 / 2),
        [(-0.3,), (0.2,), (-0.9,)],
        ("that of D-PSGD", "that of tracking"),
    ),
    "13.limit": Exercise(_limit, [(0.9, 0.999), (0.5, 0.9), (0.9, 0.8), (0.3, 0.7)]),
    "13.sketch": Exercise(lambda N: 4 / N, [(4,), (64,), (1000,)]),
    "13.kept": Exercise(
        lambda p, momentum: momentum / (1 - p) if momentum <= 1 - p else math.nan, [(0.05, 0.9), (0.3, 0.5), (0.3, 0.9)]
    ),
    "14.my_step": Exercise(
        _differences,
        [(V[:4], ROWS[:3], _slopes, 2, 0.1), (V[4:8], ROWS[3:6], _slopes, 1, 0.3)],
        ("the new x", "the new g"),
    ),
    "14.workers_for": Exercise(
        lambda goal, gamma, omega, G, mu: math.ceil(2 * gamma * omega * G / (mu * goal)),
        [(0.6, 0.05, 7.0, 2.0, 0.1), (0.03, 0.05, 7.0, 2.0, 0.3), (0.2, 0.7, 3.0, 5.0, 0.2)],
    ),
    "15.my_trimmed_mean": Exercise(
        lambda messages, f: _trimmed(messages.T, f), [(ROWS, 2), (ROWS**3, 3), (ROWS[:5], 1)]
    ),
    "15.my_end": Exercise(_end, [(np.array([0.5, 2.0, 4.0]), W[:3], 0.05, 8), (np.array([3.0, 0.2]), V[:2], 0.1, 30)]),
    "15.my_noise": Exercise(_least_noise, [(1.0, 1e-5, 1), (2.0, 1e-6, 100), (0.5, 1e-4, 30)], tolerance=0.011),
    "16.corrected": Exercise(_corrected, [(0.0, 16), (2.0, 3), (-3.0, 5)], ("the new x",)),
    "16.trimmed": Exercise(_trimmed, [(ROWS, 1), (V, 3), (ROWS.T, 2)]),
    "16.dithered": Exercise(
        _dithered, [(V, 0.5, DRAWN.random(12)), (W, 2.0, DRAWN.random(7))], ("the integers", "what is restored")
    ),
    "16.saving": Exercise(
        lambda omega, N: 32 / ((1 + omega / N) * bounds.least_unbiased_bits(1, omega)), [(0.1, 8), (3.0, 2), (20.0, 64)]
    ),
}
