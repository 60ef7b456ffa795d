"""SGD on a quadratic with drawn noise, exactly: second moments of every coordinate, for any steps and weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .closed_form import formula


def _checked(
    step_sizes: ArrayLike, diagonal: ArrayLike, variance: ArrayLike, start: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    eta, h = np.asarray(step_sizes, float).ravel(), np.atleast_1d(np.asarray(diagonal, float))
    c, x = np.asarray(variance, float), np.asarray(start, float)
    for name, given in (("variance", c), ("start", x)):
        require(given.shape in ((), h.shape), name, f"shape {given.shape}", f"a number or shape {h.shape}")
    return eta, h, c, np.broadcast_to(x, h.shape)


@formula("ndim(diagonal) <= 1", "count(diagonal) >= 1", "variance >= 0")
def quadratic_moments_exact(
    step_sizes: ArrayLike, *, diagonal: ArrayLike, variance: ArrayLike, start: ArrayLike
) -> np.ndarray:
    r"""Second moments of all iterates of SGD on a diagonal quadratic.

    Setting: f = (1/2) sum_j h_j (x_j - x*_j)^2, gradients h_j (x_j - x*_j) + xi_j with E xi_j^2 = c_j, independent over
    the steps; step sizes eta_t, fixed start.
    Statement: m_{t+1,j} = (1 - eta_t h_j)^2 m_{t,j} + eta_t^2 c_j for m_{t,j} = E(x_t - x*)_j^2. So E||x_t - x*||^2 =
    sum_j m_tj, E f(x_t) - f* = (1/2) sum_j h_j m_tj, E||grad f(x_t)||^2 = sum_j h_j^2 m_tj.
    Kind: identity.
    Source: derived.
    step_sizes (array_like, shape (T,)): The step size of each step.
    diagonal (array_like, shape (d,)): The h_j.
    variance (float or array_like, shape (d,)): The c_j, at least 0: of the noise that is applied, the mean over
        workers.
    start (float or array_like, shape (d,)): x_0 - x*.

    Returns
    -------
    ndarray, shape (T + 1, d)

    >>> quadratic_moments_exact([0.5, 0.5], diagonal=[1.0], variance=1.0, start=2.0).ravel().tolist()
    [4.0, 1.25, 0.5625]
    """
    eta, h, c, x = _checked(step_sizes, diagonal, variance, start)
    m = np.empty((eta.size + 1, h.size))
    m[0] = x**2
    for t, step in enumerate(eta):
        m[t + 1] = (1.0 - step * h) ** 2 * m[t] + step**2 * c
    return m


@formula(
    "ndim(diagonal) <= 1",
    "count(diagonal) >= 1",
    "variance >= 0",
    "count(weights) == count(step_sizes)",
    "sum(weights) != 0",
)
def quadratic_average_exact(
    step_sizes: ArrayLike, weights: ArrayLike, *, diagonal: ArrayLike, variance: ArrayLike, start: ArrayLike
) -> np.ndarray:
    r"""Second moments of a weighted average of the iterates of SGD on a diagonal quadratic.

    Setting: as for :func:`quadratic_moments_exact`; weights w_t of x_t, t = 0, ..., T - 1.
    Statement: with y_t = sum over s < t of w_s (x_s - x*), the moments of (x_t - x*, y_t) in each coordinate follow E x
    y <- (1 - eta h) (E x y + w E x^2) and E y^2 <- E y^2 + 2 w E x y + w^2 E x^2; the answer is E(y_T)_j^2/(sum w)^2.
    Kind: identity.
    Source: derived.
    step_sizes, weights (array_like, shape (T,)): The weights are not all 0.
    diagonal (array_like, shape (d,)): As for `quadratic_moments_exact`.
    variance, start (float or array_like, shape (d,)): As for `quadratic_moments_exact`.

    Returns
    -------
    ndarray, shape (d,)
        E(xbar_T - x*)_j^2.

    >>> quadratic_average_exact([0.5, 0.5], [1, 1], diagonal=[1.0], variance=1.0, start=2.0)  # x_1 = 1 - xi/2
    array([2.3125])
    """
    eta, h, c, x = _checked(step_sizes, diagonal, variance, start)
    w = np.asarray(weights, float).ravel()
    xx, xy, yy = x**2, np.zeros(h.size), np.zeros(h.size)
    for step, weight in zip(eta.tolist(), w.tolist(), strict=True):
        factor = 1.0 - step * h
        yy = yy + 2.0 * weight * xy + weight**2 * xx
        xy = factor * (xy + weight * xx)
        xx = factor**2 * xx + step**2 * c
    return yy / w.sum() ** 2
