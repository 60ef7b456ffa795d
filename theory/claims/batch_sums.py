"""Small finite sums, and mini-batch SGD on them for many replicas at once, measuring all quantities of the theorems.

At every iterate all n gradients are known, so that M^2(w) and B_D(w) are computed, not estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["Course", "FiniteSum", "around", "course", "independent", "least_squares", "same_row", "thrice"]


class FiniteSum(NamedTuple):
    """F = (1/n) sum f_i with its gradients at many points: w of shape (R, d) gives (R, n, d).

    ``gap`` is F - F*, ``optimum`` a minimiser; ``smoothness`` and ``mu`` (strong convexity, or the constant of the
    Polyak-Lojasiewicz inequality) are 0 if there is none; ``second_moment`` bounds M^2(w) at all reachable w, or is
    infinite.
    """

    name: str
    rows: int
    gradients: Callable
    gap: Callable
    optimum: np.ndarray
    smoothness: float = 0.0
    mu: float = 0.0
    second_moment: float = np.inf


class Course(NamedTuple):
    """Measurements along the run, a row for each round from 0 to K, a column for each replica.

    ``average_gap`` is F - F* at the mean of w_0, ..., w_{K-1}; ``most`` the largest M^2(w) on the way, ``bound`` the
    least B_D(w), both before the last step.
    """

    distance: np.ndarray
    gap: np.ndarray
    squared: np.ndarray
    average_gap: np.ndarray
    most: float
    bound: float


def independent(rng, batch, rows, replicas):
    """Number of times each row is drawn: B draws with replacement."""
    return rng.multinomial(batch, np.full(rows, 1.0 / rows), size=replicas)


def same_row(rng, batch, rows, replicas):
    """All B workers draw the same row."""
    return batch * np.eye(rows)[rng.integers(rows, size=replicas)]


def thrice(rng, batch, rows, replicas):
    """Steps three times as large."""
    return 3 * independent(rng, batch, rows, replicas)


def course(problem: FiniteSum, start, *, batch, step, rounds, replicas, rng, draw=independent) -> Course:
    """Run replicas of w+ = w - step * (sum of the gradients drawn by ``draw``), all from ``start``."""
    w = np.tile(np.asarray(start, float), (replicas, 1))
    distance, gap, squared = np.empty((3, rounds + 1, replicas))
    mean, most, bound = np.zeros_like(w), 0.0, np.inf
    for k in range(rounds + 1):
        g = problem.gradients(w)
        slope = g.mean(axis=1)
        distance[k] = np.sum((w - problem.optimum) ** 2, axis=1)
        gap[k], squared[k] = problem.gap(w), np.sum(slope**2, axis=1)
        if k == rounds:
            break
        moment = np.mean(np.sum(g**2, axis=2), axis=1)
        most = max(most, float(moment.max()))
        bound = min(bound, float(np.min(moment / np.maximum(squared[k], 1e-300))))
        mean += w / rounds
        w = w - step * np.einsum("rn,rnd->rd", draw(rng, batch, problem.rows, replicas), g)
    return Course(distance, gap, squared, problem.gap(mean), most, max(1.0, bound))


# --- problems ---------------------------------------------------------------------------------------------------------


def around(d: int, potential: Callable, slope: Callable, name: str, flat: int = 0, **constants) -> FiniteSum:
    """f_i(w) = h(w) - <x_i, w> with the points x_i = +-e_j for j < d - flat: M^2 = ||grad h||^2 + 1."""
    points = np.concatenate([np.eye(d)[: d - flat], -np.eye(d)[: d - flat]])
    return FiniteSum(name, len(points), lambda w: slope(w)[:, None, :] - points, potential, np.zeros(d), **constants)


def least_squares(seed: int, rows: int, d: int, rank: int | None = None) -> FiniteSum:
    """f_i = (1/2)(<a_i, w> - b_i)^2 with Gaussian data; of rank below d it is not strongly convex."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, d))
    if rank is not None:
        A = rng.standard_normal((rows, rank)) @ np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    b = A @ rng.standard_normal(d) + rng.standard_normal(rows)
    spectrum = np.linalg.eigvalsh(A.T @ A / rows)
    optimum = np.linalg.lstsq(A, b, rcond=None)[0]

    def gap(w):
        return 0.5 * np.mean(((w - optimum) @ A.T) ** 2, axis=1)

    return FiniteSum(
        "least squares",
        rows,
        lambda w: (w @ A.T - b)[:, :, None] * A,
        gap,
        optimum,
        float(spectrum[-1]),
        float(spectrum[0 if rank is None else d - rank]),
    )
