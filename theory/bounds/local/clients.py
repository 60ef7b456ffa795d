"""Clients with heterogeneous data: fixed points and rates of local steps, absent clients, and personal models."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula

LARGEST = 1e100  # products of what is larger would exceed the largest float


@formula("prox >= 0")
def local_sgd_fixed_point(
    curvatures: ArrayLike, minimisers: ArrayLike, *, step: float, local_steps: int, prox: float = 0.0
) -> np.ndarray:
    r"""Fixed point of local gradient descent if each worker has its own quadratic.

    Setting: f_k(x) = (x - b_k)' A_k (x - b_k)/2 for worker k, all workers with equal weights in the mean; in every
    round each takes H local steps of the constant size gamma, and then all average. Exact gradients, or rows that a
    worker draws independently for each step from its own data; then the statement is about E x.
    Statement: The only fixed point is ``(sum_k (I - M_k))^-1 sum_k (I - M_k) b_k`` with ``M_k = (I - gamma A_k)^H``,
    and the iterates converge to it. For H = 1 it is the minimiser of the mean of the f_k. For H to infinity, and 0 <
    gamma A_k < 2, it is the plain mean of the b_k.
    Kind: identity.
    Source: derived. The fixed point of local steps differs from the minimiser: [malinovskiy2020local].

    Title (fixed-point): Fixed point of local steps on different data.
    Statement (fixed-point): If each worker has its own quadratic, rounds of H local steps of size gamma converge to the
    minimiser of the sum of other quadratics, with the curvatures I - (I - gamma A_k)^H.
    Latex (fixed-point): x_\infty=\Big(\sum_k (I-M_k)\Big)^{-1}\sum_k (I-M_k)\,b_k,\quad M_k=(I-\gamma A_k)^H
    Proof (fixed-point): H steps take x to b_k + M_k (x - b_k), and the mean over k is affine. A row that is drawn for
    each step is independent of the worker's iterate, so E x follows the same recursion.
    Source (fixed-point): derived; [malinovskiy2020local].

    Title (proximal): Fixed point of FedProx.
    Statement (proximal): If each adds rho/2 |y - x|^2 to its quadratic, x the model at the start of the round, rounds
    converge to the minimiser of the sum of the quadratics with the curvatures (I - (I - gamma (A_k + rho))^H) (A_k +
    rho)^-1 A_k: for long rounds it tends to x* as rho grows, for H = 1 it is x*.
    Latex (proximal): x_\infty=\Big(\sum_k P_k\Big)^{-1}\sum_k P_k b_k,\quad P_k=(I-(I-\gamma(A_k+\rho I))^H)\,
    (A_k+\rho I)^{-1}A_k
    Proof (proximal): The local steps contract to (A_k + rho)^-1 (A_k b_k + rho x), which is x minus (A_k + rho)^-1 A_k
    (x - b_k).
    Source (proximal): derived; the method is that of [li2020fedprox], whose rates are not used.

    curvatures (array_like, shape (N, d, d) or (N,)): The A_k, symmetric; numbers if d = 1.
    minimisers (array_like, shape (N, d) or (N,)): The b_k.
    step: gamma.
    prox: rho, the weight of FedProx's term; 0 for local SGD and FedAvg.

    Returns
    -------
    numpy.ndarray, shape (d,)

    Raises
    ------
    ValueError
        If an argument is outside its domain, or if rounds of this length and step do not contract.

    >>> local_sgd_fixed_point([1.0, 3.0], [0.0, 1.0], step=0.1, local_steps=1)
    array([0.75])
    >>> local_sgd_fixed_point([1.0, 3.0], [0.0, 1.0], step=0.1, local_steps=1000)
    array([0.5])
    """
    A, b = _quadratics(curvatures, minimisers)
    unit = np.eye(b.shape[1])
    stiff = A + prox * unit
    moved = _shares(stiff, step, local_steps)
    pull = np.stack([m @ np.linalg.solve(a, c) for m, a, c in zip(moved, stiff, A, strict=True)]) if prox else moved
    radius = float(np.abs(np.linalg.eigvals(unit - pull.mean(axis=0))).max())
    require(radius < 1, "step", step, f"one with which a round contracts: its factor is {radius:.4g}")
    return np.linalg.solve(pull.sum(axis=0), np.einsum("kij,kj->i", pull, b))


def _matrices(curvatures: ArrayLike) -> np.ndarray:
    """The A_k as symmetric matrices."""
    A = np.asarray(curvatures, float)
    A = A[:, None, None] if A.ndim == 1 else A
    fits = A.ndim == 3 and A.shape[1] == A.shape[2] and A.size > 0
    require(fits and np.allclose(A, A.transpose(0, 2, 1)), "curvatures", A.shape, "(N, d, d), symmetric")
    least = np.linalg.eigvalsh(A).min()
    require(least >= -1e-9 * np.abs(A).max(), "curvatures", least, "no negative eigenvalues")
    return A


def _quadratics(curvatures: ArrayLike, minimisers: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The A_k as matrices, and the b_k as vectors."""
    A, b = _matrices(curvatures), np.asarray(minimisers, float)
    b = b[:, None] if b.ndim == 1 else b
    require(b.shape == A.shape[:2], "minimisers", b.shape, f"{A.shape[:2]}, as the curvatures have it")
    return A, b


def _shares(A: np.ndarray, step: float, local_steps: int) -> np.ndarray:
    """The I - (I - gamma A_k)^H, by which local steps move the models."""
    unit = np.eye(A.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.stack([unit - np.linalg.matrix_power(unit - step * a, int(local_steps)) for a in A])
    require(bool(np.abs(found).max() < LARGEST), "step", step, f"one whose local steps grow by less than {LARGEST:g}")
    return found


@formula("step > 0", "local_steps >= 1", "server_step > 0")
def fedavg_factor(curvatures: ArrayLike, *, step: float, local_steps: int, server_step: float = 1.0) -> float:
    r"""Contraction factor of a round of federated averaging with exact gradients, if each client has its own quadratic.

    Title: Rate of FedAvg.
    Setting: as for `local_sgd_fixed_point`; the server moves by gamma_s times the mean difference.
    Statement: The fixed point is the same for every gamma_s, and a round asymptotically multiplies the distance from it
    by the spectral radius of I - gamma_s (1/N) sum_k (I - (I - gamma A_k)^H).
    Kind: identity.
    Latex: \rho\Big(I-\frac{\gamma_s}{N}\sum_k\big(I-(I-\gamma A_k)^H\big)\Big)
    Source: derived.
    curvatures (array_like, shape (N, d, d) or (N,)): The A_k, symmetric; numbers if d = 1.
    step: gamma.
    local_steps (int): H.
    server_step: gamma_s.

    >>> round(float(fedavg_factor([1.0, 3.0], step=0.1, local_steps=1)), 12)
    0.8
    """
    A = _matrices(curvatures)
    moved = _shares(A, step, local_steps).mean(axis=0)
    return float(np.abs(np.linalg.eigvals(np.eye(A.shape[1]) - server_step * moved)).max())


@formula("step > 0", "local_steps >= 1")
def scaffold_factor(curvatures: ArrayLike, *, step: float, local_steps: int) -> float:
    r"""Contraction factor of a round of SCAFFOLD with exact gradients and all clients, if each has its own quadratic.

    Title: SCAFFOLD converges to the minimum: its rate.
    Setting: f_k(x) = (x - b_k)' A_k (x - b_k)/2; H local steps along grad f_k - c_k + c, and option II of the paper:
    c_k is then the mean gradient of the client's steps, and c the mean of the c_k.
    Statement: The fixed point is the minimiser of the mean of the f_k for all gamma and H. The distance from it, and
    that of the c_k from the gradients there, are multiplied in a round by the spectral radius of a matrix: H steps take
    the deviations to M_k x + S_k (c_k - c), M_k = (I - gamma A_k)^H, S_k = gamma sum over h < H of (I - gamma A_k)^h.
    Kind: identity.
    Latex: x^+=\frac1N\sum_k\big(M_kx+S_k(c_k-c)\big),\quad c_k^+=c_k-c+\frac{x-M_kx-S_k(c_k-c)}{H\gamma}
    Proof: At x*, c_k = grad f_k(x*) and c = 0 the local steps are 0. The deviations follow a linear recursion.
    Source: derived; the algorithm is that of [karimireddy2020scaffold], whose rates are not used.
    curvatures (array_like, shape (N, d, d) or (N,)): The A_k, symmetric; numbers if d = 1.
    step: gamma.
    local_steps (int): H.

    >>> round(float(scaffold_factor([2.0, 2.0], step=0.1, local_steps=1)), 12)
    0.8
    """
    A = _matrices(curvatures)
    N, d = A.shape[:2]
    _shares(A, step, local_steps)  # checks the growth
    unit, length = np.eye(d), local_steps * step
    moves = np.zeros((N, d, (N + 1) * d))  # y_k as a function of x, c_1, ..., c_N
    for k, a in enumerate(A):
        powers = [np.linalg.matrix_power(unit - step * a, h) for h in range(int(local_steps) + 1)]
        moves[k, :, :d] = powers[-1]
        moves[k, :, d:] = np.tile(-step * sum(powers[:-1]) / N, N)
        moves[k, :, (k + 1) * d : (k + 2) * d] += step * sum(powers[:-1])
    everything = np.eye((N + 1) * d)
    x, own = everything[:d], everything[d:].reshape(N, d, -1)
    kept = own - own.mean(axis=0) + (x - moves) / length
    return float(np.abs(np.linalg.eigvals(np.concatenate([moves.mean(axis=0), *kept]))).max())


@formula("workers > 1", "1 <= clients <= workers", "spread >= 0")
def sampled_clients_variance(workers: int, clients: int, spread: float) -> float:
    r"""Variance of the mean of some clients, drawn without replacement.

    Title: The variance of sampling clients.
    Setting: m of N clients with the vectors v_i; S is their mean squared distance from their mean.
    Statement: E|mean over those drawn - mean over all|^2 = (N - m)/(m (N - 1)) S: it is 0 for m = N, and for m = 1 it
    is S, as with replacement.
    Kind: identity.
    Latex: \frac{N-m}{m\,(N-1)}\cdot\frac1N\sum_i\lVert v_i-\bar v\rVert^2
    Source: derived; the classical variance of sampling without replacement.
    workers: N.
    clients: m.
    spread: S.

    >>> sampled_clients_variance(5, 2, 8.0)
    3.0
    """
    return (workers - clients) / (clients * (workers - 1.0)) * spread


@formula("step > 0", "local_steps >= 1", "rounds >= 0", "clients >= 1", "server_step > 0")
def sampled_fedavg_gap(
    curvatures: ArrayLike,
    minimisers: ArrayLike,
    *,
    step: float,
    local_steps: int,
    rounds: int,
    clients: int,
    server_step: float = 1.0,
) -> float:
    r"""E f(x) - f* of federated averaging from x = 0 after a number of rounds with sampled clients.

    Title: The gap of FedAvg with sampled clients.
    Setting: as for `fedavg_factor`; in each round m of the N clients take part, drawn without replacement.
    Statement: With P_k = I - (I - gamma A_k)^H and y_k = P_k (x - b_k), a round moves x by -gamma_s times the mean of
    the drawn y_k: E x moves as with all clients, and the covariance of x is multiplied by I - gamma_s mean(P_k) on both
    sides, and drawing adds gamma_s^2 (N - m)/(m (N - 1)) times the expected covariance of the y_k among the clients.
    Kind: identity.
    Latex: \mathrm{Cov}\,x\leftarrow(I-\gamma_s\bar P)\,\mathrm{Cov}\,x\,(I-\gamma_s\bar P)
        +\gamma_s^2\frac{N-m}{m(N-1)}\,\mathbb{E}\Big(\frac1N\sum_k y_ky_k^{\top}-\bar y\bar y^{\top}\Big)
    Proof: The y_k are affine in x, and `sampled_clients_variance` in each direction.
    Source: derived.
    curvatures (array_like, shape (N, d, d) or (N,)): The A_k, symmetric; numbers if d = 1.
    minimisers (array_like, shape (N, d) or (N,)): The b_k.
    step: gamma.
    local_steps (int): H.
    rounds (int): Number of rounds.
    clients (int): m, at most N.
    server_step: gamma_s.

    Returns
    -------
    float
        Infinite where x or its covariance exceed 1e100 in a round.

    >>> sampled_fedavg_gap([1.0, 1.0], [1.0, -1.0], step=1.0, local_steps=1, rounds=1, clients=1)
    0.5
    """
    A, b = _quadratics(curvatures, minimisers)
    N, d = b.shape
    least = np.linalg.eigvalsh(A.mean(axis=0))[0]
    require(least > 0, "curvatures", least, "a mean with eigenvalues above 0: else f has no single minimum")
    require(1 <= clients <= N, "clients", clients, f"from 1 to {N}, all clients")
    best = np.linalg.solve(A.sum(axis=0), np.einsum("kij,kj->i", A, b))
    P = _shares(A, step, local_steps)
    v = np.einsum("kij,kj->ki", P, b - best)  # y_k = P_k z - v_k, with z = x - x*
    moved, still = P.mean(axis=0), v.mean(axis=0)
    Q, w, left = P - moved, v - still, np.eye(d) - server_step * moved
    drawn = server_step**2 * (N - clients) / (clients * max(N - 1, 1))
    mean, covariance = -best, np.zeros((d, d))  # of z
    for _ in range(int(rounds)):
        if max(np.abs(covariance).max(), np.abs(mean).max()) > LARGEST:
            return math.inf
        apart = Q @ mean - w  # E y_k less their mean
        spread = (Q @ covariance @ Q.transpose(0, 2, 1)).mean(axis=0) + apart.T @ apart / N
        covariance = left @ covariance @ left.T + drawn * spread
        mean = left @ mean + server_step * still
    return float(np.sum(A.mean(axis=0) * (covariance + np.outer(mean, mean))) / 2.0)


@formula("rounds >= 0", "0 < step < 2", "0 < kept <= 1", "0 < present <= 1")
def stale_memory_mean(rounds: int, *, step: float, kept: float, present: float) -> float:
    r"""E x - x* after a number of rounds of FedAvg with error feedback, if clients are often absent.

    Title: The cost of a stale memory in the mean.
    Setting: f_k(x) = |x - b_k|^2/2, local steps that make x - y = gamma (x - b_k), a compressor with E C(v) = delta v,
    error memories of the clients, 0 at first; a fraction q of the clients, drawn for each round, takes part, and the
    memory of an absent client does not change.
    Statement: E x - x* and the mean of the E e_k follow a linear recursion. The eigenvalues lambda of its matrix have
    the product
    1 - delta (q + gamma - q gamma) and the sum 2 - delta (q + gamma): for gamma far below q the mean converges as fast
    as without absent clients, with the factor 1 - gamma; for q far below gamma the memories limit the rate, with the
    factor 1 - q.
    Kind: identity.
    Latex: \begin{pmatrix}\mathbb{E}x-x^*\\\mathbb{E}\bar e\end{pmatrix}\leftarrow
        \begin{pmatrix}1-\delta\gamma&-\delta\\q(1-\delta)\gamma&1-q\delta\end{pmatrix}
        \begin{pmatrix}\mathbb{E}x-x^*\\\mathbb{E}\bar e\end{pmatrix}
    Proof: A participant sends C(e_k + gamma (x - b_k)) and stores the remainder; the draw is independent of the past,
    and the mean over the drawn clients is in expectation that over all.
    Source: derived.
    rounds (int): Number of rounds.
    step: gamma, below 2, so that local steps converge.
    kept: delta.
    present: q.

    >>> round(float(stale_memory_mean(1, step=0.5, kept=0.5, present=0.25)), 12)
    0.75
    """
    move = [[1.0 - kept * step, -kept], [present * (1.0 - kept) * step, 1.0 - present * kept]]
    return float(np.linalg.matrix_power(np.array(move), int(rounds))[0, 0])


@formula("workers > 1", "spread > 0", "noise >= 0")
def personal_weight(workers: int, spread: float, noise: float) -> float:
    r"""Best weight of a client's own model in a mixture with the common model.

    Title: The best mixture of a personal and a common model.
    Setting: Client i's data have the minimiser b_i + e_i in place of b_i, with independent errors of the variance s^2;
    the common model is the mean of all N, and client i takes the common model plus a times the difference between its
    own model and the common one. H local steps from the common model, a curvature of 1 and the step gamma give a = 1 -
    (1 - gamma)^H.
    Statement: The mean of E|y_i - b_i|^2 is (1 - a)^2 V + a^2 s^2 (1 - 1/N) + s^2/N, V the mean squared distance of the
    b_i from their mean; it is smallest for a = V/(V + s^2 (1 - 1/N)), which is neither 0 nor 1.
    Kind: identity.
    Latex: a^*=\frac{V}{V+s^2(1-1/N)}
    Proof: y_i - b_i = (1 - a)(mean of the b - b_i) + a (e_i - mean of the e) + mean of the e, three uncorrelated terms.
    Source: derived.
    workers: N.
    spread: V.
    noise: s^2.

    >>> personal_weight(4, 3.0, 4.0)
    0.5
    """
    return spread / (spread + noise * (1.0 - 1.0 / workers))
