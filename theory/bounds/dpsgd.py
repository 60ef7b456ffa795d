"""D-PSGD and gradient tracking on quadratics, exactly: how far the models are apart, their floor and their bias."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .closed_form import formula
from .gossip import spectrum


def _modes(eigenvalues: ArrayLike, step: float, curvature: float) -> np.ndarray:
    """Factors lambda_i - eta a of all modes, which must be below 1 in absolute value."""
    values = spectrum(eigenvalues) - step * curvature
    require(bool(np.all(np.abs(values) < 1)), "step", step, "one with |lambda_i - eta a| < 1 for all eigenvalues")
    return np.sort(values)


@formula
def dpsgd_consensus(eigenvalues: ArrayLike, *, step: float, curvature: float, variance: float) -> float:
    r"""How far the models of D-PSGD are apart in the end, with the same quadratic at every worker.

    Title: How far the models of D-PSGD are apart.
    Setting: x_i = sum_j W_ij x_j - eta (a (x_i - x*) + xi_i) in one coordinate, noise independent, E xi_i^2 = sigma^2.
    Statement: E sum_i (x_i - mean)^2 tends to sum_{i >= 2} eta^2 sigma^2/(1 - (lambda_i - eta a)^2).
    Kind: identity.
    Latex: \mathbb E\sum_i(x_i-\bar x)^2\to\sum_{i\ge2}\frac{\eta^2\sigma^2}{1-(\lambda_i-\eta a)^2}
    Proof: Mode i is u = (lambda_i - eta a) u + eta xi.
    Source: derived; mode i is multiplied by lambda_i - eta a.
    eigenvalues (array_like, shape (N,)): Of W.
    step: eta, with |lambda_i - eta a| < 1 for all i.
    curvature: a.

    >>> round(dpsgd_consensus([1.0, 0.5], step=0.5, curvature=1.0, variance=4.0), 6)
    1.0
    """
    modes = _modes(eigenvalues, step, curvature)[:-1]
    return float(np.sum(step**2 * variance / (1.0 - modes**2)))


@formula("step > 0", "curvature > 0", "step * curvature < 2")
def dpsgd_floor(workers: int, *, step: float, curvature: float, variance: float) -> float:
    r"""Floor of the mean model of D-PSGD, with quadratics of the same curvature: that of parallel SGD, on any graph.

    Title: The floor of D-PSGD is that of parallel SGD.
    Setting: as for :func:`dpsgd_consensus`; the workers' minima may differ, x* is their mean.
    Statement: E (mean - x*)^2 tends to eta sigma^2/(N a (2 - eta a)), whatever the graph, and also with messages that
    preserve the mean, as CHOCO-SGD's.
    Kind: identity.
    Latex: \mathbb E(\bar x-x^*)^2\to\frac{\eta\,\sigma^2}{N\,a\,(2-\eta a)}
    Proof: The mean of the models moves by the mean of the gradients; for equal curvatures that is the gradient at the
    mean, with the noise of N workers.
    Source: derived; the mean moves by the mean of the gradients, which is that at the mean.
    step: eta.
    curvature: a.

    >>> dpsgd_floor(2, step=1.0, curvature=1.0, variance=4.0)
    2.0
    """
    return step * variance / (workers * curvature * (2.0 - step * curvature))


@formula("count(energies) == count(eigenvalues)", "energies >= 0")
def dpsgd_disagreement(eigenvalues: ArrayLike, energies: ArrayLike, *, step: float, curvature: float) -> float:
    r"""How far different data keep the models of D-PSGD apart, without noise.

    Title: Different data keep the models of D-PSGD apart.
    Setting: x_i = sum_j W_ij x_j - eta a (x_i - b_i), in one coordinate.
    Statement: the models tend to sum_i (x_i - mean)^2 = sum_{i >= 2} (eta a/(1 - lambda_i + eta a))^2 c_i^2, c_i the
    coefficient of b for the i-th eigenvector.
    Kind: identity.
    Latex: \sum_i(x_i-\bar x)^2\to\sum_{i\ge2}\Big(\frac{\eta a}{1-\lambda_i+\eta a}\Big)^2c_i^2
    Proof: The fixed point of x = W x - eta a (x - b), in the basis of eigenvectors.
    Source: derived; the fixed point is (I - W + eta a I)^-1 eta a b.
    eigenvalues (array_like, shape (N,)): Of W; the first is 1.
    energies (array_like, shape (N,)): The c_i^2, in the same order.
    step: eta, with |lambda_i - eta a| < 1 for all i.
    curvature: a.

    >>> round(dpsgd_disagreement([1.0, 0.5], [0.0, 4.0], step=0.5, curvature=1.0), 6)
    1.0
    """
    _modes(eigenvalues, step, curvature)
    values, squares = np.asarray(eigenvalues, float).ravel(), np.asarray(energies, float).ravel()
    others = np.arange(values.size) != np.argmax(values)
    share = step * curvature / (1.0 - values[others] + step * curvature)
    return float(np.sum(share**2 * squares[others]))


@formula("0 < weight < 1", "curvatures > 0", "count(curvatures) == 2", "count(minima) == 2")
def dpsgd_bias(weight: float, *, step: float, curvatures: ArrayLike, minima: ArrayLike) -> float:
    r"""Bias of D-PSGD's mean model, for two workers with different data.

    Title: Different data bias the mean of D-PSGD.
    Setting: two workers that give each other the weight w; f_i = (a_i/2)(x - b_i)^2, gradients without noise.
    Statement: the mean of the models tends to x* - eta a_1 a_2 (a_1 - a_2)(b_1 - b_2)/(2 (a_1 + a_2) D), D = w (a_1 +
    a_2) + eta a_1 a_2, and x* = (a_1 b_1 + a_2 b_2)/(a_1 + a_2): biased unless the curvatures or the minima agree.
    Kind: identity.
    Latex: \bar x-x^*\to-\frac{\eta\,a_1a_2(a_1-a_2)(b_1-b_2)}{2(a_1+a_2)\big(w(a_1+a_2)+\eta a_1a_2\big)}
    Proof: Each model rests where its neighbour's pull balances its gradient, so that the gradients are not taken at the
    same point.
    Source: derived, from the fixed point of x = W x - eta A (x - b).
    weight: w.
    step: eta, so short that the eigenvalues of W - eta A are above -1.
    curvatures (pair of float): a_1 and a_2, above 0.
    minima (pair of float): b_1 and b_2.

    >>> dpsgd_bias(0.5, step=0.25, curvatures=(2.0, 1.0), minima=(12.0, 0.0))
    -0.5
    """
    (a, other), (b, c) = np.asarray(curvatures, float).tolist(), np.asarray(minima, float).tolist()
    first, second = 2.0 - weight - step * a, 2.0 - weight - step * other  # the diagonal of I + W - eta A
    require(first > 0 and first * second > weight**2, "step", step, "one for which the models stay bounded")
    below = weight * (a + other) + step * a * other
    return -step * a * other * (a - other) * (b - c) / (2.0 * (a + other) * below)


@formula("curvature > 0")
def gradient_tracking_factor(eigenvalues: ArrayLike, *, step: float, curvature: float) -> float:
    r"""Exact factor per step of gradient tracking on quadratics of the same curvature, without noise.

    Title: The factor of gradient tracking on quadratics.
    Title (unbiased): Gradient tracking has no bias
    Setting: f_i = (a/2)(x - b_i)^2; y_i = sum_j W_ij y_j + g_i - (g_i before), x_i = sum_j W_ij x_j - eta y_i.
    Setting (unbiased): f_i = (a_i/2)(x - b_i)^2; y_i = sum_j W_ij y_j + g_i - (g_i before), x_i = sum_j W_ij x_j - eta
    y_i.
    Statement: ||x - x*||, x* the mean of the b_i, is multiplied in the long run by the largest modulus of the mean's
    factor 1 - eta a and, for every other mode, of the roots of (z - lambda)^2 + eta a (z - 1); if it is below 1, all
    models converge to x*.
    Statement (unbiased): With different data and curvatures every model of gradient tracking converges to the minimum
    of the mean, if the step is short.
    Kind: identity.
    Kind (unbiased): identity.
    Latex: \varrho=\max\{|1-\eta a|,\ |z|:(z-\lambda_i)^2+\eta a(z-1)=0\}
    Latex (unbiased): x_i\to x^*=\frac{\sum_ia_ib_i}{\sum_ia_i}
    Proof: x_{t+1} - lambda x_t = lambda (x_t - lambda x_{t-1}) - eta a (x_t - x_{t-1}) in each mode; for lambda = 1 the
    other root is 1, which tracking excludes.
    Proof (unbiased): The mean of the y_i is the mean of the gradients, and a fixed point has equal x_i and y_i = 0.
    Source: derived; x_{t+1} - lambda x_t = lambda (x_t - lambda x_{t-1}) - eta a (x_t - x_{t-1}) in each mode.
    Source (unbiased): derived; Nedic, Olshevsky, Shi, SIAM J. Optim. 27 (2017).
    eigenvalues (array_like, shape (N,)): Of W.
    step: eta.
    curvature: a.

    >>> round(gradient_tracking_factor([1.0, 0.0], step=0.25, curvature=1.0), 4)
    0.75
    """
    values, s = np.sort(spectrum(eigenvalues)), step * curvature
    found = [abs(1.0 - s)]
    for value in values[:-1]:
        found.append(float(np.abs(np.roots([1.0, s - 2.0 * value, value**2 - s])).max()))
    return max(found)
