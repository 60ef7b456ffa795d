"""CHOCO-Gossip and CHOCO-SGD: gossip with compressed differences."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula
from .gossip import spectrum

RATES = {"theorem": 82.0, "derived": 17.0}


@formula("0 < rho <= 1", "beta >= rho", "beta <= 2 - rho", "form in ('derived', 'quoted')")
def choco_gamma(rho: float, beta: float, delta: float, form: str = "derived") -> float:
    """Consensus step of CHOCO-Gossip and CHOCO-SGD in their theorem.

    Setting: a mixing matrix with the spectral gap rho and ||I - W|| = beta; a compressor with contraction delta.
    Statement: gamma = rho delta/(16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta).
    Kind: identity.
    Source: derived from the lemma of :func:`choco_lemma_factor`. The theorem ([koloskova2019decentralized], Theorem 2)
    is quoted in [koloskova2020decentralized], Theorem 4.1, with rho^2 in place of rho in the numerator; then the stated
    rate does not hold on long rings.
    rho: The spectral gap.
    form (str): "derived", or "quoted" for the numerator rho^2 delta.

    >>> round(choco_gamma(0.5, 1.0, 1.0), 4), round(choco_gamma(0.5, 1.0, 1.0, form="quoted"), 4)
    (0.0541, 0.027)
    """
    below = 16 * rho + rho**2 + 4 * beta**2 + 2 * rho * beta**2 - 8 * rho * delta
    return (rho if form == "derived" else rho**2) * delta / below


@formula("0 < rho <= 1", "form in ('theorem', 'derived')")
def choco_rate(rho: float, delta: float, form: str = "theorem") -> float:
    r"""Rate of CHOCO-Gossip in its theorem.

    Title (gossip): CHOCO-Gossip, from its lemmas.
    Setting: as for :func:`choco_gamma`.
    Statement: every round multiplies E_t = E sum_i (||x_i - mean||^2 + ||x_i - xhat_i||^2), xhat_i with what is sent in
    the round, by at most 1 - c, c = rho^2 delta/82; also c = rho^2 delta/17.
    Statement (gossip): With gamma = rho delta/(16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta), the two lemmas
    on what a round adds give a factor of at most 1 - rho^2 delta/17: the theorem has 82 in place of 17.
    Kind: upper.
    Kind (gossip): lower.
    Latex (derived): \mathcal E_{t+1}\le\Big(1-\tfrac{\rho^2\delta}{17}\Big)\,\mathcal
    E_t,\quad\gamma=\frac{\rho\,\delta}{16\rho+\rho^2+4\beta^2+2\rho\beta^2-8\rho\delta}
    Latex (gossip): \mathcal E_{t+1}\le\Big(1-\tfrac{\rho^2\delta}{17}\Big)\,\mathcal
    E_t,\quad\gamma=\frac{\rho\,\delta}{16\rho+\rho^2+4\beta^2+2\rho\beta^2-8\rho\delta}
    Proof (derived): Young's inequality for x - mean and for x - xhat, the contraction for the latter; the larger of the
    two sums of coefficients is below 1 - rho^2 delta/17, where beta <= 2 - rho is used.
    Proof (gossip): Young's inequality for x - mean and for x - xhat, the contraction for the latter; the larger of the
    two sums of coefficients is below 1 - rho^2 delta/17, where beta <= 2 - rho is used.
    Source: [koloskova2019decentralized], Theorem 2; 17 is derived from :func:`choco_lemma_factor`, as beta is at most 2
    - rho.
    Source (gossip): [koloskova2019decentralized], Theorem 2, with rho and not rho^2 in the numerator of gamma.
    Known (gossip): derived
    rho: The spectral gap.
    form (str): "theorem" for 82, "derived" for 17.

    >>> choco_rate(1.0, 0.82), choco_rate(1.0, 0.17, form="derived")
    (0.01, 0.01)
    """
    return rho**2 * delta / RATES[form]


@formula("0 < rho <= 1", "rounds >= 0", "start >= 0")
def choco_gossip(rho: float, delta: float, rounds: int, start: float) -> float:
    r"""Distances after rounds of CHOCO-Gossip with the theorem's consensus step.

    Title: CHOCO-Gossip with the theorem's step.
    Title (gossip.quoted): The consensus step of CHOCO-Gossip, as printed.
    Setting: as for :func:`choco_rate`.
    Statement: The distances from the mean are at most (1 - rho^2 delta/82)^T E_0 after T rounds.
    Statement (gossip.quoted): With gamma = rho^2 delta/(16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta), E_T <=
    (1 - rho^2 delta/82)^T E_0.
    Kind: upper.
    Latex: \mathbb E\sum_i\|x_i-\bar x\|^2\le\Big(1-\tfrac{\rho^2\delta}{82}\Big)^T\mathcal E_0
    Latex (gossip.quoted): \gamma=\frac{\rho^2\delta}{16\rho+\rho^2+4\beta^2+2\rho\beta^2-8\rho\delta}\ \Rightarrow\
    \mathcal E_T\le\Big(1-\tfrac{\rho^2\delta}{82}\Big)^T\mathcal E_0
    Proof (gossip.quoted): In full precision, delta = 1, CHOCO-Gossip is x = (I + gamma (W - I)) x, and the slowest mode
    has the factor 1 - gamma rho. With rho^2 in gamma that is 1 - O(rho^3), and the stated rate is 1 - O(rho^2).
    Source: [koloskova2019decentralized], Theorem 2.
    Source (gossip.quoted): [koloskova2020decentralized], Theorem 4.1, as the step of [koloskova2019decentralized],
    Theorem 2.
    Known: quoted
    Known (gossip.quoted): read
    rho: The spectral gap, in (0, 1].
    rounds: T.
    start: E_0.

    >>> round(choco_gossip(1.0, 0.82, 100, 1.0), 4)
    0.366
    """
    return (1.0 - choco_rate(rho, delta)) ** rounds * start


@formula("0 < rho <= 1", "0 < gamma <= 1", "beta >= rho", "beta <= 2 - rho")
def choco_lemma_factor(rho: float, beta: float, delta: float, gamma: float) -> float:
    r"""Factor of E_t in a round of CHOCO-Gossip, from its two lemmas.

    Setting: as for :func:`choco_rate`, with any consensus step gamma.
    Statement: with a = gamma rho/2, b = delta/2, E_{t+1} <= max(p, q) E_t, where p = (1 + a)(1 - rho gamma)^2 +
    (1 - delta)(1 + 1/b) gamma^2 beta^2 and q = (1 + 1/a) gamma^2 beta^2 + (1 - delta)(1 + b)(1 + gamma beta)^2.
    Kind: upper.
    Latex: \mathcal E_{t+1}\le\max(p,q)\,\mathcal E_t
    Proof: x_{t+1} - mean = (I + gamma (W - I))(x_t - mean) + gamma (W - I)(xhat - x_t), and x_{t+1} - xhat likewise;
    then ||u + v||^2 <= (1 + a)||u||^2 + (1 + 1/a)||v||^2, and the contraction.
    Source: derived, as the proof of [koloskova2019decentralized], Theorem 2, is remembered.
    rho: The spectral gap.

    >>> choco_lemma_factor(0.5, 1.0, 1.0, choco_gamma(0.5, 1.0, 1.0)) <= 1.0 - choco_rate(0.5, 1.0)
    True
    """
    a, b = gamma * rho / 2.0, delta / 2.0
    p = (1 + a) * (1 - rho * gamma) ** 2 + (1 - delta) * (1 + 1 / b) * (gamma * beta) ** 2
    q = (1 + 1 / a) * (gamma * beta) ** 2 + (1 - delta) * (1 + b) * (1 + gamma * beta) ** 2
    return max(p, q)


@formula("0 < rho <= 1")
def choco_consensus(rho: float, delta: float, step: float, second_moment: float, workers: int) -> float:
    r"""Distances of the models in CHOCO-SGD with a constant step and the theorem's consensus step.

    Title: How far the models of CHOCO-SGD are apart.
    Setting: E||g_i||^2 <= G^2, all models start at 0; c as in :func:`choco_rate`.
    Statement: E sum_i ||x_i - mean||^2 <= 12 N eta^2 G^2/c^2 at all times.
    Kind: upper.
    Latex: \mathbb E\sum_i\|x_i-\bar x\|^2\le\frac{12N\eta^2G^2}{c^2}
    Proof: A round of gossip takes the share c of E_t, and a gradient step then adds at most eta^2 G^2 to both parts of
    it for each worker: the fixed point of E = (1 + c/2)(1 - c) E + (1 + 2/c) 2 N eta^2 G^2 is at most 8 N eta^2
    G^2/c^2.
    Source: [koloskova2019decentralized], in the proof of Theorem 4, as remembered; derived: gradient steps add at most
    2 N eta^2 G^2 to E_t, between its gossip and what is sent next, so E_{t+1} <= (1 + c/2)(1 - c) E_t + (1 + 2/c) 2 N
    eta^2 G^2, whose fixed point is at most 8 N eta^2 G^2/c^2.
    Known: remembered
    rho: The spectral gap, in (0, 1].
    step: eta.

    >>> round(choco_consensus(1.0, 0.82, 0.01, 1.0, 1), 4)
    12.0
    """
    return 12.0 * workers * step**2 * second_moment / choco_rate(rho, delta) ** 2


def _growth(values: np.ndarray, kept: float, gamma: float) -> np.ndarray:
    """Matrix of what one round adds to the second moments of all modes: x x, x (x - xhat) and (x - xhat)^2, in turn.

    With p = x - xhat before sending: xhat gains kept p and an error e, E e^2 = kept (1 - kept) (mean of p^2 over the
    workers); then x' = (1 + gamma l) x - gamma l ((1 - kept) p - e), p' = x' - xhat', l = lambda - 1.  The identity is
    subtracted by hand, as a small ``kept`` leaves little else.
    """
    n, lam = values.size, values - 1.0
    M = np.zeros((3 * n, 3 * n))
    for i, l in enumerate(lam):
        step = gamma * l
        x = np.array([1.0 + step, -step * (1.0 - kept)])  # of (x, p)
        p = np.array([step, (1.0 - kept) * (1.0 - step)])  # x' - x + (1 - kept) p, without the error
        noise = np.array([step, step - 1.0])
        less = kept * (1.0 - step) + step  # 1 - p[1]
        rows = slice(3 * i, 3 * i + 3)
        M[rows, rows] = [
            [step * (2.0 + step), 2.0 * x[0] * x[1], x[1] ** 2],
            [x[0] * p[0], -kept - 2.0 * step**2 * (1.0 - kept), x[1] * p[1]],
            [p[0] ** 2, 2.0 * p[0] * p[1], less * (less - 2.0)],
        ]
        M[rows, 2::3] += (kept * (1.0 - kept) / n * np.array([noise[0] ** 2, noise[0] * noise[1], noise[1] ** 2]))[
            :, None
        ]
    return M


def _log_factor(values: np.ndarray, kept: float, gamma: float) -> float:
    """Logarithm of the factor per round, also where the factor itself is 1 to machine precision."""
    mean = 3 * int(np.argmax(values))  # of the mean nothing but its p changes
    M = np.delete(np.delete(_growth(values, kept, gamma), [mean, mean + 1], axis=0), [mean, mean + 1], axis=1)
    added = np.linalg.eigvals(M)
    with np.errstate(divide="ignore"):  # a factor of 0
        return float(0.5 * np.log1p(np.maximum(2.0 * added.real + np.abs(added) ** 2, -1.0)).max())


@formula("0 < kept <= 1", "0 < gamma <= 1")
def choco_factor(eigenvalues: ArrayLike, kept: float, gamma: float) -> float:
    r"""Exact factor per round of CHOCO-Gossip with random sparsification, in the long run.

    Title: The exact factor of CHOCO-Gossip with random sparsification.
    Title (best-gamma): The best consensus step is far from the theorem's.
    Setting: each coordinate of a difference is sent with the same probability (rand-k: k/d), without scaling and
    independently of the other workers; a graph whose workers are all alike (a ring, a torus, a hypercube).
    Statement: E sum_i ||x_i - mean||^2 falls like the t-th power of the spectral radius of the second moments' matrix.
    Statement (best-gamma): With the step found by search, CHOCO-Gossip with rand-k on a ring contracts by the exact
    factor that no other step improves.
    Kind: identity.
    Kind (best-gamma): lower.
    Latex: \lim_t\big(\mathbb E\|X_t-\bar X\|^2\big)^{1/t}=\varrho(M_\gamma)
    Latex (best-gamma): \gamma^*=\arg\min_\gamma\varrho(M_\gamma)
    Proof: The covariance of (x, xhat) has an exact recursion; on a graph whose workers are alike it falls apart into
    one of three numbers for each eigenvector, coupled by the mean error.
    Proof (best-gamma): The factor is computed on a fine grid, and none is smaller.
    Source: derived; in the basis of eigenvectors only the errors couple the modes, by the mean over all workers.
    Source (best-gamma): derived.
    eigenvalues (array_like, shape (N,)): Of W.
    kept: The share of coordinates that are sent.
    gamma: The consensus step.

    >>> round(choco_factor([1.0, 0.5, 0.5], 1.0, 1.0), 6)
    0.25
    """
    return math.exp(_log_factor(spectrum(eigenvalues), kept, gamma))


@formula("0 < kept <= 1")
def choco_best_gamma(eigenvalues: ArrayLike, kept: float) -> float:
    """Best consensus step of CHOCO-Gossip with random sparsification.

    Setting: as for :func:`choco_factor`.
    Statement: the gamma in (0, 1] with the smallest factor, found by search.
    Kind: identity.
    Source: derived; a grid in log gamma, from a hundredth of ``kept`` on, then Brent's search around its best point.
    eigenvalues (array_like, shape (N,)): Of W.
    kept: The share of coordinates that are sent, in (0, 1].

    >>> round(choco_best_gamma([1.0, 0.5, 0.5], 1.0), 4)
    1.0
    >>> round(choco_best_gamma([1.0, 0.5, 0.5], 1e-9) / choco_best_gamma([1.0, 0.5, 0.5], 1e-8), 4)  # linear in kept
    0.1
    """
    from scipy.optimize import minimize_scalar

    values = spectrum(eigenvalues)

    def found(log_gamma: float) -> float:
        return max(_log_factor(values, kept, math.exp(log_gamma)), -700.0)  # a factor of 0 is -inf

    grid = np.linspace(math.log(kept) - math.log(100.0), 0.0, 33)
    best = int(np.argmin([found(one) for one in grid]))
    ends = float(grid[max(0, best - 1)]), float(grid[min(32, best + 1)])
    inside = minimize_scalar(found, bounds=ends, method="bounded", options={"xatol": 1e-10}).x
    return math.exp(min((float(inside), *ends), key=found))
