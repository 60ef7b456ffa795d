"""Gossip on a graph: averaging with neighbours, D-PSGD and gradient tracking.

D-PSGD and gradient tracking are solved exactly on quadratics: the distances between the models, their floor and their
bias.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula

# --- Decentralized averaging -----------------------------------------------------------------------------------------


@formula("workers >= 3")
def ring_gossip_factor(workers: int) -> float:
    r"""Contraction of the workers' distances from their mean by a round of gossip on a ring.

    Title: Gossip on a ring.
    Setting: N workers in a ring; in a round each worker replaces its vector by the mean of its own and its two
    neighbours' vectors.
    Statement: If every worker replaces its vector by the mean of its own and its two neighbours' vectors, the mean does
    not change, and the distances from it are multiplied by at most 1 - (2/3) (1 - cos(2 pi/N)). So it takes about
    N^2/13 rounds to reduce the distances by a factor e.
    Kind: tight.
    Latex: \|X_+-\bar X\|_F\le\Big(1-\tfrac23\big(1-\cos\tfrac{2\pi}N\big)\Big)\|X-\bar X\|_F
    Attained: by a cosine around the ring.
    Proof: W is symmetric with the eigenvalues 1/3 + (2/3) cos(2 pi j/N); its largest below 1 belongs to j = 1, and from
    N = 4 on that is at least 1/3, while none is below -1/3.
    Source: derived, from the eigenvalues of a circulant matrix.

    Raises
    ------
    ValueError
        If N is below 3: a worker then does not have two neighbours.

    >>> round(ring_gossip_factor(4), 4), round(ring_gossip_factor(36), 4)
    (0.3333, 0.9899)
    """
    return 1.0 - (2.0 / 3.0) * (1.0 - math.cos(2.0 * math.pi / workers))


@formula("graph in ('ring', 'torus', 'hypercube', 'complete', 'star')", "workers >= 3", "height >= 0")
def gossip_gap(graph: str, workers: int, height: int = 0) -> float:
    r"""Spectral gap of a graph with Metropolis weights: a round of gossip contracts by 1 - gap.

    Title: Spectral gaps of graphs.
    Setting: N workers; W has the weight 1/(1 + the larger degree) on each edge.
    Statement: 1 - max(|lambda_2|, |lambda_N|) is (2/3)(1 - cos(2 pi/N)) on a ring, (2/5)(1 - cos(2 pi/m)) on a torus
    whose longer side is m, 2/(1 + log2 N) on a hypercube, 1 on a complete graph, 1/N on a star.
    Kind: identity.
    Latex: 1-\max_{i\ge2}|\lambda_i|=\tfrac23\big(1-\cos\tfrac{2\pi}N\big),\ \tfrac25\big(1-\cos\tfrac{2\pi}m\big),\
    \tfrac2{1+\log_2N},\ 1,\ \tfrac1N
    Source: derived, from the eigenvalues of circulant matrices and of their products; a star's W is I - L/N, and L has
    0, 1 and N.

    Title (contraction): A round of gossip contracts by the spectral gap.
    Statement (contraction): A round multiplies the distances from the mean by at most 1 - gap, and by exactly that for
    the second eigenvector.
    Kind (contraction): tight.
    Latex (contraction): \|X_+-\bar X\|_F\le\max_{i\ge2}|\lambda_i|\,\|X-\bar X\|_F
    Attained (contraction): the second eigenvector of W.
    Proof (contraction): X - mean has no component along the first eigenvector, and W multiplies the others by their
    eigenvalues.
    Source (contraction): derived, from the spectral theorem.

    graph (str): "ring", "torus", "hypercube", "complete" or "star".
    workers: N, at least 3; on a hypercube a power of 2.
    height: For a torus, one side, 0 for a square; both sides are at least 3.

    >>> [round(gossip_gap(graph, 16), 4) for graph in ("ring", "torus", "hypercube", "complete", "star")]
    [0.0507, 0.4, 0.4, 1.0, 0.0625]
    """
    if graph == "ring":
        return 1.0 - ring_gossip_factor(workers)
    if graph == "torus":
        side = height or math.isqrt(workers)
        other = workers // side
        fitting = side * other == workers and min(side, other) >= 3
        require(fitting, "workers", workers, "the product of two sides, both at least 3")
        return 0.4 * (1.0 - math.cos(2.0 * math.pi / max(side, other)))
    if graph == "hypercube":
        bits = int(workers).bit_length() - 1
        require(workers == 1 << bits, "workers", workers, "a power of 2")
        return 2.0 / (1.0 + bits)
    return 1.0 if graph == "complete" else 1.0 / workers


def spectrum(eigenvalues: ArrayLike) -> np.ndarray:
    """The eigenvalues of a connected graph's mixing matrix: at least two, checked to be above -1, and one is 1."""
    values = np.asarray(eigenvalues, float).ravel()
    top = np.sort(values)[-2:]
    good = values.size >= 2 and bool(values.min() > -1.0 and abs(top[1] - 1.0) <= 1e-9 and top[0] < top[1])
    require(good, "eigenvalues", eigenvalues, "all N of a mixing matrix: one is 1, and the others are between -1 and 1")
    return values


def response(eigenvalues: ArrayLike) -> float:
    """Sum of (1 - lambda)/(1 + lambda) over the eigenvalues of a mixing matrix; the eigenvalue 1 adds 0."""
    values = spectrum(eigenvalues)
    return float(np.sum((1.0 - values) / (1.0 + values)))


@formula("workers >= 3")
def ring_response(workers: int) -> float:
    r"""Sensitivity of a ring to errors in its messages: the mean of (1 - lambda)/(1 + lambda).

    Title: Sensitivity of a ring to errors.
    Setting: the eigenvalues of the ring of N workers with weights 1/3.
    Statement: (1/N) sum_j (1 - lambda_j)/(1 + lambda_j) = sqrt(3) (1 + q^N)/(1 - q^N) - 1, q = sqrt(3) - 2.
    Kind: identity.
    Latex: \frac1N\sum_j\frac{1-\lambda_j}{1+\lambda_j}=\sqrt3\,\frac{1+q^N}{1-q^N}-1,\quad q=\sqrt3-2
    Proof: (1 - lambda)/(1 + lambda) = 3/(2 + cos) - 1 with the Fourier coefficients q^k/sqrt(3) of 1/(2 + cos); the
    mean over N equidistant angles keeps those of the multiples of N.
    Source: derived, from the Fourier series of 1/(2 + cos).

    >>> round(ring_response(8), 5), round(ring_response(1000), 5)
    (0.73214, 0.73205)
    """
    q = (math.sqrt(3.0) - 2.0) ** int(workers)
    return math.sqrt(3.0) * (1.0 + q) / (1.0 - q) - 1.0


@formula
def noisy_gossip_floor(eigenvalues: ArrayLike, variance: float) -> float:
    r"""Limit of the distances in gossip if every message has an error of fixed variance.

    Title: Gossip with errors of fixed variance.
    Setting: x_i = x_i + sum_j W_ij (Q(x_j) - Q(x_i)); Q(x) = x + xi, the errors independent with mean 0 and E||xi||^2 =
    v, for example rounding at random to a grid.
    Statement: E sum_i ||x_i - mean||^2 tends to v sum_{i >= 2} (1 - lambda_i)/(1 + lambda_i), and not to 0.
    Kind: identity.
    Latex: \mathbb E\sum_i\|x_i-\bar x\|^2\to v\sum_{i\ge2}\frac{1-\lambda_i}{1+\lambda_i}
    Proof: Mode i has the stationary variance (1 - lambda_i)^2 v/(1 - lambda_i^2).
    Source: derived; mode i is multiplied by lambda_i and gets an error of variance (1 - lambda_i)^2 v.
    eigenvalues (array_like, shape (N,)): Of W; the first is 1, all are above -1.
    variance: v.

    >>> round(noisy_gossip_floor([1.0, 0.5], 3.0), 6)
    1.0
    """
    return variance * response(eigenvalues)


@formula("mean_square >= 0")
def compressed_gossip_floor(eigenvalues: ArrayLike, omega: float, mean_square: float) -> float:
    r"""Limit of the distances in gossip with directly compressed messages.

    Title: Gossip with directly compressed messages does not converge.
    Setting: as in :func:`noisy_gossip_floor`, with an unbiased compressor, E||Q(x) - x||^2 = omega ||x||^2, on a graph
    whose workers are all alike (a ring, a torus, a hypercube, a complete graph).
    Statement: with r = (omega/N) sum_{i >= 2} (1 - lambda_i)/(1 + lambda_i), E sum_i ||x_i - mean||^2 tends to N
    ||mean||^2 r/(1 - r) if r < 1, and grows without bound otherwise.
    Kind: identity.
    Latex: \mathbb E\sum_i\|x_i-\bar x\|^2\to N\|\bar x\|^2\frac r{1-r},\quad r=\frac\omega
    N\sum_{i\ge2}\frac{1-\lambda_i}{1+\lambda_i}
    Proof: Mode i is multiplied by lambda_i and gets an error with the variance (1 - lambda_i)^2 omega E||x_k||^2, which
    contains the distances themselves; the mean does not change.
    Source: derived.
    eigenvalues (array_like, shape (N,)): Of W.
    mean_square: ||mean||^2, at least 0; the mean never changes.

    >>> round(compressed_gossip_floor([1.0, 0.5], 3.0, 1.0), 6)
    2.0
    """
    count = np.size(eigenvalues)
    r = omega / count * response(eigenvalues)
    require(r < 1.0, "omega", omega, f"below {omega / r if r else math.inf:.4g}: distances grow without bound")
    return count * mean_square * r / (1.0 - r)


# --- D-PSGD and gradient tracking on quadratics, exactly -------------------------------------------------------------


def _modes(eigenvalues: ArrayLike, step: float, curvature: float) -> np.ndarray:
    """Factors lambda_i - gamma a of all modes, which must be below 1 in absolute value."""
    values = spectrum(eigenvalues) - step * curvature
    require(bool(np.all(np.abs(values) < 1)), "step", step, "one with |lambda_i - gamma a| < 1 for all eigenvalues")
    return np.sort(values)


@formula
def dpsgd_consensus(eigenvalues: ArrayLike, *, step: float, curvature: float, variance: float) -> float:
    r"""Limit of the distances between D-PSGD's models, with the same quadratic at every worker.

    Title: Distances between the models of D-PSGD.
    Setting: x_i = sum_j W_ij x_j - gamma (a (x_i - x*) + xi_i) in one coordinate, noise independent, E xi_i^2 =
    sigma^2.
    Statement: E sum_i (x_i - mean)^2 tends to sum_{i >= 2} gamma^2 sigma^2/(1 - (lambda_i - gamma a)^2).
    Kind: identity.
    Latex: \mathbb E\sum_i(x_i-\bar x)^2\to\sum_{i\ge2}\frac{\gamma^2\sigma^2}{1-(\lambda_i-\gamma a)^2}
    Proof: Mode i is u = (lambda_i - gamma a) u + gamma xi.
    Source: derived; mode i is multiplied by lambda_i - gamma a.
    eigenvalues (array_like, shape (N,)): Of W.
    step: gamma, with |lambda_i - gamma a| < 1 for all i.
    curvature: a.

    >>> round(dpsgd_consensus([1.0, 0.5], step=0.5, curvature=1.0, variance=4.0), 6)
    1.0
    """
    modes = _modes(eigenvalues, step, curvature)[:-1]
    return float(np.sum(step**2 * variance / (1.0 - modes**2)))


@formula("step > 0", "curvature > 0", "step * curvature < 2")
def dpsgd_floor(workers: int, *, step: float, curvature: float, variance: float) -> float:
    r"""Floor of the mean model of D-PSGD with equal curvatures, which is that of parallel SGD on any graph.

    Title: The floor of D-PSGD is that of parallel SGD.
    Setting: as for :func:`dpsgd_consensus`; the workers' minima may differ, x* is their mean.
    Statement: E (mean - x*)^2 tends to gamma sigma^2/(N a (2 - gamma a)), for any graph, and also with messages that
    preserve the mean, such as those of CHOCO-SGD.
    Kind: identity.
    Latex: \mathbb E(\bar x-x^*)^2\to\frac{\gamma\,\sigma^2}{N\,a\,(2-\gamma a)}
    Proof: The mean of the models moves by the mean of the gradients; for equal curvatures that is the gradient at the
    mean, with the noise of N workers.
    Source: derived.
    step: gamma.
    curvature: a.

    >>> dpsgd_floor(2, step=1.0, curvature=1.0, variance=4.0)
    2.0
    """
    return step * variance / (workers * curvature * (2.0 - step * curvature))


@formula("count(energies) == count(eigenvalues)", "energies >= 0")
def dpsgd_disagreement(eigenvalues: ArrayLike, energies: ArrayLike, *, step: float, curvature: float) -> float:
    r"""Distances between D-PSGD's models if the workers' data differ, without noise.

    Title: The models of D-PSGD stay different if the data differ.
    Setting: x_i = sum_j W_ij x_j - gamma a (x_i - b_i), in one coordinate.
    Statement: the models tend to sum_i (x_i - mean)^2 = sum_{i >= 2} (gamma a/(1 - lambda_i + gamma a))^2 c_i^2, c_i
    the coefficient of b for the i-th eigenvector.
    Kind: identity.
    Latex: \sum_i(x_i-\bar x)^2\to\sum_{i\ge2}\Big(\frac{\gamma a}{1-\lambda_i+\gamma a}\Big)^2c_i^2
    Proof: The fixed point of x = W x - gamma a (x - b), in the basis of eigenvectors.
    Source: derived; the fixed point is (I - W + gamma a I)^-1 gamma a b.
    eigenvalues (array_like, shape (N,)): Of W; the first is 1.
    energies (array_like, shape (N,)): The c_i^2, in the same order.
    step: gamma, with |lambda_i - gamma a| < 1 for all i.
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
    Setting: two workers that give each other's model the weight w; f_i = (a_i/2)(x - b_i)^2, gradients without noise.
    Statement: the mean of the models tends to x* - gamma a_1 a_2 (a_1 - a_2)(b_1 - b_2)/(2 (a_1 + a_2) D), D = w (a_1 +
    a_2) + gamma a_1 a_2, and x* = (a_1 b_1 + a_2 b_2)/(a_1 + a_2): biased unless the curvatures or the minima agree.
    Kind: identity.
    Latex: \bar x-x^*\to-\frac{\gamma\,a_1a_2(a_1-a_2)(b_1-b_2)}{2(a_1+a_2)\big(w(a_1+a_2)+\gamma a_1a_2\big)}
    Proof: At the fixed point each model's gradient balances the averaging with its neighbour, so the gradients are
    taken at different points.
    Source: derived, from the fixed point of x = W x - gamma A (x - b).
    weight: w.
    step: gamma, so small that the eigenvalues of W - gamma A are above -1.
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
    r"""Exact asymptotic factor per step of gradient tracking on quadratics of the same curvature, without noise.

    Title: The factor of gradient tracking on quadratics.
    Setting: f_i = (a/2)(x - b_i)^2; y_i = sum_j W_ij y_j + g_i - (g_i before), x_i = sum_j W_ij x_j - gamma y_i.
    Statement: ||x - x*||, x* the mean of the b_i, is asymptotically multiplied by the largest modulus of the mean's
    factor 1 - gamma a and, for every other mode, of the roots of (z - lambda)^2 + gamma a (z - 1); if it is below 1,
    all models converge to x*.
    Kind: identity.
    Latex: \varrho=\max\{|1-\gamma a|,\ |z|:(z-\lambda_i)^2+\gamma a(z-1)=0\}
    Proof: x_{t+1} - lambda x_t = lambda (x_t - lambda x_{t-1}) - gamma a (x_t - x_{t-1}) in each mode; for lambda = 1
    the other root is 1, which tracking excludes.
    Source: derived; x_{t+1} - lambda x_t = lambda (x_t - lambda x_{t-1}) - gamma a (x_t - x_{t-1}) in each mode.

    Title (unbiased): Gradient tracking has no bias
    Setting (unbiased): f_i = (a_i/2)(x - b_i)^2; y_i = sum_j W_ij y_j + g_i - (g_i before), x_i = sum_j W_ij x_j -
    gamma y_i.
    Statement (unbiased): With different data and curvatures every model of gradient tracking converges to the minimum
    of the mean if the step is small.
    Latex (unbiased): x_i\to x^*=\frac{\sum_ia_ib_i}{\sum_ia_i}
    Proof (unbiased): The mean of the y_i is the mean of the gradients, and a fixed point has equal x_i and y_i = 0.
    Source (unbiased): derived; Nedic, Olshevsky, Shi, SIAM J. Optim. 27 (2017).

    eigenvalues (array_like, shape (N,)): Of W.
    step: gamma.
    curvature: a.

    >>> round(gradient_tracking_factor([1.0, 0.0], step=0.25, curvature=1.0), 4)
    0.75
    """
    values, s = np.sort(spectrum(eigenvalues)), step * curvature
    found = [abs(1.0 - s)]
    for value in values[:-1]:
        found.append(float(np.abs(np.roots([1.0, s - 2.0 * value, value**2 - s])).max()))
    return max(found)
