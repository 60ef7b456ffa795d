"""A smooth strongly convex function through given points, gradients and values; and the messages of a case.

Every function of the class lies below the parabolas of curvature L that touch it at the points.  Less mu/2 ||x||^2 it
is convex, so that the convex envelope of the least of these parabolas is the largest function of the class: L - mu
times half the squared distance to a point of a hull, plus that point's height: a quadratic program over a simplex.
That it goes through all points, if any function of the class does: [taylor2017smooth].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import require

SETTLED = 1e-13  # of a slope on the simplex, relative to the numbers that it is made of
SAME = 1e-9  # relative distance below which two points are one
NEAR = 1e-2  # relative distance within which a vector is one that the worst case sends


def _simplex_minimum(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The weights w >= 0 of sum 1 that minimise w.H w/2 + b.w, H positive semidefinite: an active-set method.

    A support grows by the coordinate of the lowest slope.  On a support the minimiser with sum 1 is a linear system;
    where that is singular, a direction without curvature leads downhill as far as a weight becomes 0.
    """
    w = np.zeros(b.size)
    w[np.argmin(np.diag(H) / 2.0 + b)] = 1.0
    scale = float(np.abs(H).max() + np.abs(b).max()) or 1.0
    for _ in range(50 * b.size):
        slope = H @ w + b
        lowest = int(np.argmin(slope))
        if slope[lowest] >= slope @ w - SETTLED * scale:
            break
        support = sorted({*np.flatnonzero(w), lowest})
        while len(support) > 1:
            basis = np.linalg.svd(np.ones((1, len(support))))[2][1:].T  # directions of sum 0
            curvature = basis.T @ H[np.ix_(support, support)] @ basis
            down = -basis.T @ (H @ w + b)[support]
            step = np.linalg.lstsq(curvature, down, rcond=1e-12)[0]
            flat = down - curvature @ step
            endless = bool(np.linalg.norm(flat) > 1e-9 * scale)
            move = basis @ (flat if endless else step)
            shrinks = move < 0.0
            reach = np.full(len(support), np.inf)
            reach[shrinks] = w[support][shrinks] / -move[shrinks]
            length = float(reach.min())
            if length >= 1.0 and not endless:
                w[support] += move
                break
            gone = int(np.argmin(reach))
            w[support] += length * move
            w[support[gone]] = 0.0
            support.pop(gone)
        w = np.clip(w, 0.0, None)
        w /= w.sum()
    else:
        raise ArithmeticError(f"the interpolant's weights are not found in {50 * b.size} turns: no slope was settled")
    return w


class Interpolant(NamedTuple):
    """The function; made by `interpolant`.

    Attributes
    ----------
    mu, lipschitz : float
    anchors : ndarray, shape (n, d)
        Points of the hull.
    heights : ndarray, shape (n,)
        Its values there.
    """

    mu: float
    lipschitz: float
    anchors: np.ndarray
    heights: np.ndarray

    def _nearest(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return x minus its point of the hull, and the hull's height there."""
        width = self.lipschitz - self.mu
        away = x - self.anchors  # from x, so that what is nearly 0 is computed as such
        w = _simplex_minimum(width * away @ away.T, self.heights)
        return w @ away, float(w @ self.heights)

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        away, height = self._nearest(x)
        return height + (self.lipschitz - self.mu) / 2.0 * float(away @ away) + self.mu / 2.0 * float(x @ x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient at x."""
        return (self.lipschitz - self.mu) * self._nearest(x)[0] + self.mu * x


def interpolant(
    points: np.ndarray, gradients: np.ndarray, values: np.ndarray, *, mu: float, lipschitz: float
) -> Interpolant:
    """The largest mu-strongly convex L-smooth function with these gradients and values at these points.

    Parameters
    ----------
    points, gradients : array_like, shape (n, d)
    values : array_like, shape (n,)
        They must be those of such a function; up to rounding, or it goes through some of them only.
    mu, lipschitz : float
        0 <= mu < L.

    Returns
    -------
    Interpolant

    Raises
    ------
    ValueError
        If mu and L are not.

    Examples
    --------
    >>> f = interpolant([[0.0], [1.0]], [[0.0], [2.0]], [0.0, 0.75], mu=1.0, lipschitz=4.0)
    >>> round(f.value(np.array([1.0])), 12), f.gradient(np.array([1.0])).round(12)
    (0.75, array([2.]))
    """
    require(0.0 <= mu < lipschitz, "mu and lipschitz", (mu, lipschitz), "0 <= mu < lipschitz")
    x, g, f = (np.asarray(given, float) for given in (points, gradients, values))
    size = float(np.abs(x).max()) or 1.0
    first = [i for i in range(len(x)) if not any(np.abs(x[i] - x[k]).max() <= SAME * size for k in range(i))]
    x, g, f = x[first], g[first] - mu * x[first], f[first] - mu / 2.0 * (x[first] ** 2).sum(axis=1)
    width = lipschitz - mu
    return Interpolant(mu, lipschitz, x - g / width, f - (g**2).sum(axis=1) / (2.0 * width))


class RecordedMessages(NamedTuple):
    """A compressor with ||C(v) - v|| <= s ||v|| everywhere that sends what was recorded for the vectors of a case.

    Near one of them it makes the error that was recorded, no longer than allowed; any other vector is sent exactly.

    Attributes
    ----------
    s : float
        sqrt(1 - delta).
    vectors, errors : ndarray, shape (n, d)
        v and C(v) - v.
    """

    s: float
    vectors: np.ndarray
    errors: np.ndarray

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Return C(v)."""
        distance = np.linalg.norm(self.vectors - v, axis=1)
        k = int(np.argmin(distance))
        size, error = float(np.linalg.norm(v)), self.errors[k]
        length = float(np.linalg.norm(error))
        if length == 0.0 or distance[k] > NEAR * size:
            return v
        return v + error * min(1.0, self.s * size / length)
