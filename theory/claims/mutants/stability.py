"""Methods on f_i(x) = x^2/2 as random matrices, so that their second moments are exact.

The state is z = (x, one memory per worker); a step is z <- A z with a random A, determined by the workers' coins.
Every method here lists its A with their probabilities, ``s`` is the step size, and rows are written as in the
pseudo-code: ``x`` is the row that returns x, so ``x - s * g`` is the row that returns x - s g.  E z z' then moves by
the mean of the Kronecker squares, and its spectral radius determines whether the method is stable in mean square.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np

Steps = Iterable[tuple[float, np.ndarray]]  # probabilities and matrices


def moment_matrix(steps: Steps) -> np.ndarray:
    """The matrix that moves E z z', flattened: the mean of the Kronecker squares of (probability, A)."""
    return sum((chance * np.kron(step, step) for chance, step in steps), np.zeros(()))


def growth(steps: Steps) -> float:
    """The factor by which the second moments grow per step in the long run."""
    return float(np.abs(np.linalg.eigvals(moment_matrix(steps))).max())


def tosses(p: float, workers: int, shared: bool = False) -> Steps:
    """All outcomes of the workers' coins, 1 with probability p, and their probabilities."""
    if shared:
        yield 1.0 - p, np.zeros((workers, 1))
        yield p, np.ones((workers, 1))
        return
    for coins in itertools.product((0.0, 1.0), repeat=workers):
        sent = np.array(coins)[:, None]
        yield math.prod(np.where(sent, p, 1.0 - p).ravel()), sent


def state(workers: int) -> tuple[np.ndarray, np.ndarray]:
    """The row that returns x, and the rows that return the memories."""
    rows = np.eye(workers + 1)
    return rows[0], rows[1:]


def descent(s: float, omega: float, workers: int, *, shared: bool = False) -> Steps:
    """Descent x <- x - s mean Q(x); Q(v) is (1 + omega) v with probability 1/(1 + omega), else 0, here and below."""
    for chance, sent in tosses(1 / (1 + omega), workers, shared):
        yield chance, np.array([[1 - s * (1 + omega) * sent.mean()]])


def error_feedback(s: float, p: float, workers: int, *, shared: bool = False, kept: float = 1.0) -> Steps:
    """Let u_i = s x + e_i; x <- x - mean C(u_i); e_i <- kept (u_i - C(u_i)); C is Bernoulli(p)."""
    x, e = state(workers)
    u = s * x + e
    for chance, sent in tosses(p, workers, shared):
        yield chance, np.vstack([x - (sent * u).mean(axis=0), kept * (1 - sent) * u])


def ef21(s: float, p: float, workers: int, *, shared: bool = False, learnt: float = 1.0) -> Steps:
    """Move x <- x - s mean g_i; g_i <- g_i + learnt C(x - g_i); C is Bernoulli(p)."""
    x, g = state(workers)
    x = x - s * g.mean(axis=0)
    for chance, sent in tosses(p, workers, shared):
        yield chance, np.vstack([x, g + learnt * sent * (x - g)])


def diana(s: float, omega: float, workers: int, *, shared: bool = False, alpha: float | None = None) -> Steps:
    """Let q_i = Q(x - h_i); x <- x - s mean (h_i + q_i); h_i <- h_i + alpha q_i, alpha = 1/(1 + omega)."""
    x, h = state(workers)
    alpha = 1 / (1 + omega) if alpha is None else alpha
    for chance, sent in tosses(1 / (1 + omega), workers, shared):
        q = (1 + omega) * sent * (x - h)
        yield chance, np.vstack([x - s * (h + q).mean(axis=0), h + alpha * q])
