"""Error feedback on x^2/2 with noise of variance 1: second moments of (x, e), exactly, step by step and in the limit.

A compressor is written as pairs (c, p): it sends c v with probability p.
"""

from __future__ import annotations

import math

import numpy as np

from .mutants.stability import moment_matrix

Sent = tuple[tuple[float, float], ...]  # pairs (c, p)


def law(sent: Sent, size: float) -> tuple[np.ndarray, np.ndarray]:
    """K and n: the second moments m of (x, e) become K m + n in a step of the length ``size``."""
    K = moment_matrix((p, np.array([[1.0 - c * size, -c], [(1.0 - c) * size, 1.0 - c]])) for c, p in sent)
    n = moment_matrix((p, np.array([[-c * size], [(1.0 - c) * size]])) for c, p in sent)
    return K, n[:, 0]


def squared_gradients(sent: Sent, size: float, start: float, steps: int, bounded: bool = False) -> np.ndarray:
    """E||grad f(x_t)||^2 for t = 0, ..., T - 1, from E x_0^2 = start.

    With ``bounded`` the noise is +-sqrt(1 - x^2), so that E||g||^2 = 1 at every x; for x_t in [-1, 1] at all t.
    """
    K, n = law(sent, size)
    if bounded:
        K[:, 0] -= n  # the noise has the variance 1 - x^2
    moments, found = np.array([start, 0.0, 0.0, 0.0]), np.empty(steps)
    for t in range(steps):
        found[t] = moments[0]
        moments = K @ moments + n
    return found


def stationary(sent: Sent, size: float) -> float:
    """E||grad f||^2 in the stationary law."""
    K, n = law(sent, size)
    return float(np.linalg.solve(np.eye(4) - K, n)[0])


def under(delta: float) -> Sent:
    """C(v) = (1 - sqrt(1 - delta)) v."""
    return ((1.0 - math.sqrt(1.0 - delta), 1.0),)


def over(delta: float) -> Sent:
    """C(v) = (1 + sqrt(1 - delta)) v."""
    return ((1.0 + math.sqrt(1.0 - delta), 1.0),)


def coin(delta: float) -> Sent:
    """C(v) = v with probability delta, otherwise 0."""
    return (1.0, delta), (0.0, 1.0 - delta)
