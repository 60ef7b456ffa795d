"""Row kernels of adaptive server rules: moments, the ratio of the first to the root of the second, trust ratios."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.bound_calls import at, operation


@operation
class Moments(NamedTuple):
    """Update both moments: Y = beta1 Y + (1 - beta1) P and V = beta2 V + (1 - beta2) P**2."""

    P: np.ndarray
    Y: np.ndarray
    V: np.ndarray
    beta1: float
    beta2: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        g, m, v, beta1, beta2 = b.P[r, w], b.Y[r, w], b.V[r, w], b.beta1, b.beta2
        for j in range(g.size):
            m[j] = beta1 * m[j] + (1.0 - beta1) * g[j]
            v[j] = beta2 * v[j] + (1.0 - beta2) * (g[j] * g[j])


@operation
class Adapt(NamedTuple):
    """Set Y = m / (sqrt(v) + eps), m = X / (1 - beta1^(t + 1)), v = V / (1 - beta2^(t + 1)) in round t; 0 where V is.

    With the factors 0 the moments are taken as they are.
    """

    Y: np.ndarray
    X: np.ndarray
    V: np.ndarray
    beta1: float
    beta2: float
    eps: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        u, m, v = b.Y[r, w], b.X[r, w], b.V[r, w]
        first, second = 1.0 - b.beta1 ** (t + 1.0), 1.0 - b.beta2 ** (t + 1.0)
        for j in range(u.size):
            if v[j] == 0.0:
                u[j] = 0.0
            else:
                u[j] = (m[j] / first) / (np.sqrt(v[j] / second) + b.eps)


@operation
class Trust(NamedTuple):
    """Each layer of Y times phi(||x||)/||y||, phi(z) = min(max(z, low), high); 1 where one of the norms is 0.

    Layer k is from ``edges[k]`` to before ``edges[k + 1]``.
    """

    Y: np.ndarray
    X: np.ndarray
    edges: np.ndarray
    low: float
    high: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        u, x = b.Y[r, w], b.X[r, w]
        for k in range(b.edges.size - 1):
            square, own = 0.0, 0.0
            for j in range(b.edges[k], b.edges[k + 1]):
                square += np.float64(u[j]) * u[j]
                own += np.float64(x[j]) * x[j]
            if square > 0.0 and own > 0.0:
                ratio = min(max(np.sqrt(own), b.low), b.high) / np.sqrt(square)
                for j in range(b.edges[k], b.edges[k + 1]):
                    u[j] *= ratio
