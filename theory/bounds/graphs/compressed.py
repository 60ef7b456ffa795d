"""Compressed gossip: CHOCO, DCD-PSGD and ECD-PSGD.

CHOCO-Gossip and CHOCO-SGD send compressed differences.  For DCD-PSGD and ECD-PSGD the formulas are the exact
compression errors that they tolerate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula
from .gossip import response, spectrum

# --- CHOCO-Gossip and CHOCO-SGD --------------------------------------------------------------------------------------

RATES = {"theorem": 82.0, "derived": 17.0}


@formula("0 < rho <= 1", "beta >= rho", "beta <= 2 - rho", "form in ('derived', 'quoted')")
def choco_gamma(rho: float, beta: float, delta: float, form: str = "derived") -> float:
    """Consensus step of CHOCO-Gossip and CHOCO-SGD in their theorems.

    Setting: a mixing matrix with the spectral gap rho and ||I - W|| = beta; a compressor with contraction delta.
    Statement: gamma_c = rho delta/(16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta).
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
    r"""Rate c of CHOCO-Gossip in its theorem.

    Setting: as for :func:`choco_gamma`.
    Statement: Every round multiplies E_t = E sum_i (||x_i - mean||^2 + ||x_i - xhat_i||^2), where xhat_i includes the
    message of the round, by at most 1 - c.
    Kind: upper.

    Statement (derived): Every round multiplies E_t by at most 1 - rho^2 delta/17.
    Source (derived): derived from :func:`choco_lemma_factor`, as beta is at most 2 - rho.

    Statement (theorem): Every round multiplies E_t by at most 1 - rho^2 delta/82.
    Source (theorem): [koloskova2019decentralized], Theorem 2.

    Title (gossip): CHOCO-Gossip, from its lemmas.
    Statement (gossip): With gamma_c = rho delta/(16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta), the two
    lemmas on the terms of a round give a factor of at most 1 - rho^2 delta/17; the theorem has 82 in place of 17.
    Kind (gossip): lower.
    Source (gossip): [koloskova2019decentralized], Theorem 2, with rho and not rho^2 in the numerator of gamma_c.
    Known (gossip): derived

    Latex (derived, gossip): \mathcal E_{t+1}\le\Big(1-\tfrac{\rho^2\delta}{17}\Big)\,\mathcal
    E_t,\quad\gamma_c=\frac{\rho\,\delta}{16\rho+\rho^2+4\beta^2+2\rho\beta^2-8\rho\delta}
    Proof (derived, gossip): Young's inequality for x - mean and for x - xhat, the contraction for the latter; the
    larger of the two sums of coefficients is below 1 - rho^2 delta/17, where beta <= 2 - rho is used.

    rho: The spectral gap.
    form (str): "theorem" for 82, "derived" for 17.

    >>> choco_rate(1.0, 0.82), choco_rate(1.0, 0.17, form="derived")
    (0.01, 0.01)
    """
    return rho**2 * delta / RATES[form]


@formula("0 < rho <= 1", "rounds >= 0", "start >= 0")
def choco_gossip(rho: float, delta: float, rounds: int, start: float) -> float:
    r"""Bound on the distances after T rounds of CHOCO-Gossip with the theorem's consensus step.

    Title: CHOCO-Gossip with the theorem's step.
    Setting: as for :func:`choco_rate`.
    Statement: The distances from the mean are at most (1 - rho^2 delta/82)^T E_0 after T rounds.
    Kind: upper.
    Latex: \mathbb E\sum_i\|x_i-\bar x\|^2\le\Big(1-\tfrac{\rho^2\delta}{82}\Big)^T\mathcal E_0
    Source: [koloskova2019decentralized], Theorem 2.
    Known: quoted

    Title (gossip.quoted): The consensus step of CHOCO-Gossip, as printed.
    Statement (gossip.quoted): With gamma_c = rho^2 delta/(16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta), E_T
    <= (1 - rho^2 delta/82)^T E_0.
    Latex (gossip.quoted): \gamma_c=\frac{\rho^2\delta}{16\rho+\rho^2+4\beta^2+2\rho\beta^2-8\rho\delta}\ \Rightarrow\
    \mathcal E_T\le\Big(1-\tfrac{\rho^2\delta}{82}\Big)^T\mathcal E_0
    Proof (gossip.quoted): In full precision, delta = 1, CHOCO-Gossip is x = (I + gamma_c (W - I)) x, and the slowest
    mode has the factor 1 - gamma_c rho. With rho^2 in gamma_c that is 1 - O(rho^3), and the stated rate is 1 -
    O(rho^2).
    Source (gossip.quoted): [koloskova2020decentralized], Theorem 4.1, as the step of [koloskova2019decentralized],
    Theorem 2.
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

    Setting: as for :func:`choco_rate`, with any consensus step gamma_c.
    Statement: with a = gamma_c rho/2, b = delta/2, E_{t+1} <= max(p, q) E_t, where p = (1 + a)(1 - rho gamma_c)^2 +
    (1 - delta)(1 + 1/b) gamma_c^2 beta^2 and q = (1 + 1/a) gamma_c^2 beta^2 + (1 - delta)(1 + b)(1 + gamma_c beta)^2.
    Kind: upper.
    Latex: \mathcal E_{t+1}\le\max(p,q)\,\mathcal E_t
    Proof: x_{t+1} - mean = (I + gamma_c (W - I))(x_t - mean) + gamma_c (W - I)(xhat - x_t), and x_{t+1} - xhat
    likewise; then ||u + v||^2 <= (1 + a)||u||^2 + (1 + 1/a)||v||^2, and the contraction.
    Source: derived, following the proof of [koloskova2019decentralized], Theorem 2, from memory.
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
    r"""Bound on the distances of CHOCO-SGD's models from their mean, with constant steps of the theorem.

    Title: Distances between the models of CHOCO-SGD.
    Setting: E||g_i||^2 <= M^2, all models start at 0; c as in :func:`choco_rate`.
    Statement: E sum_i ||x_i - mean||^2 <= 12 N gamma^2 M^2/c^2 at all times.
    Kind: upper.
    Latex: \mathbb E\sum_i\|x_i-\bar x\|^2\le\frac{12N\gamma^2M^2}{c^2}
    Proof: A round of gossip multiplies E_t by at most 1 - c, and a gradient step then adds at most gamma^2 M^2 to each
    of its two parts for each worker: the fixed point of E = (1 + c/2)(1 - c) E + (1 + 2/c) 2 N gamma^2 M^2 is at most
    8 N gamma^2 M^2/c^2.
    Source: [koloskova2019decentralized], in the proof of Theorem 4, as remembered; derived again.
    Known: remembered
    rho: The spectral gap, in (0, 1].
    step: gamma.

    >>> round(choco_consensus(1.0, 0.82, 0.01, 1.0, 1), 4)
    12.0
    """
    return 12.0 * workers * step**2 * second_moment / choco_rate(rho, delta) ** 2


def _growth(values: np.ndarray, kept: float, gamma: float) -> np.ndarray:
    """Matrix of what one round adds to the second moments of all modes: x x, x (x - xhat) and (x - xhat)^2, in turn.

    With p = x - xhat before sending: xhat gains kept p and an error e, E e^2 = kept (1 - kept) (mean of p^2 over the
    workers); then x' = (1 + gamma_c l) x - gamma_c l ((1 - kept) p - e), p' = x' - xhat', l = lambda - 1.  The identity
    is subtracted by hand, as a small ``kept`` leaves little else.
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
    r"""Exact asymptotic factor per round of CHOCO-Gossip with random sparsification.

    Title: The exact factor of CHOCO-Gossip with random sparsification.
    Setting: each coordinate of a difference is sent with the same probability (rand-k: k/d), without scaling and
    independently of the other workers; a vertex-transitive graph (a ring, a torus, a hypercube).
    Statement: E sum_i ||x_i - mean||^2 falls like the t-th power of the spectral radius of the second moments' matrix.
    Kind: identity.
    Latex: \lim_t\big(\mathbb E\|X_t-\bar X\|^2\big)^{1/t}=\varrho(M_{\gamma_c})
    Proof: The covariance of (x, xhat) has an exact recursion; on a vertex-transitive graph it separates into one
    recursion of three numbers for each eigenvector, coupled by the mean error.
    Source: derived; in the basis of eigenvectors only the errors couple the modes, by the mean over all workers.

    Title (best-gamma): The best consensus step is far from the theorem's.
    Statement (best-gamma): With the step found by search, CHOCO-Gossip with rand-k on a ring contracts by the exact
    factor, and no other step has a smaller one.
    Kind (best-gamma): lower.
    Latex (best-gamma): \gamma_c^*=\arg\min_{\gamma_c}\varrho(M_{\gamma_c})
    Proof (best-gamma): By computing the factor on a fine grid.
    Source (best-gamma): derived.

    eigenvalues (array_like, shape (N,)): Of W.
    kept: The fraction of coordinates that are sent.
    gamma: The consensus step.

    >>> round(choco_factor([1.0, 0.5, 0.5], 1.0, 1.0), 6)
    0.25
    """
    return math.exp(_log_factor(spectrum(eigenvalues), kept, gamma))


@formula("0 < kept <= 1")
def choco_best_gamma(eigenvalues: ArrayLike, kept: float) -> float:
    """Best consensus step of CHOCO-Gossip with random sparsification.

    Setting: as for :func:`choco_factor`.
    Statement: the gamma_c in (0, 1] with the smallest factor, found by search.
    Kind: identity.
    Source: derived; a grid in log gamma_c, from a hundredth of ``kept`` on, then Brent's search around its best point.
    eigenvalues (array_like, shape (N,)): Of W.
    kept: The fraction of coordinates that are sent, in (0, 1].

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


# --- DCD-PSGD and ECD-PSGD -------------------------------------------------------------------------------------------

ENOUGH = 1e200  # squares of what is larger would exceed the largest float


@formula
def dcd_threshold(eigenvalues: ArrayLike) -> float:
    r"""Largest relative compression error that DCD-PSGD tolerates, without gradients.

    Title: The compression error that DCD-PSGD tolerates.
    Setting: x_i = x_i + C(z_i), z_i = sum_j W_ij x_j - x_i, E C(z) = z, errors independent, E||C(z) - z||^2 = alpha^2
    ||z||^2, on a vertex-transitive graph (a ring, a torus, a hypercube, a complete graph).
    Statement: the second moments are bounded if and only if alpha^2 < N/sum_{i >= 2} (1 - lambda_i)/(1 + lambda_i).
    Kind: identity.
    Latex: \alpha^2<\frac N{\sum_{i\ge2}\frac{1-\lambda_i}{1+\lambda_i}}
    Proof: Mode i has E_i = lambda_i^2 E_i + (alpha^2/N) sum_j (1 - lambda_j)^2 E_j. The radius is 1 where (alpha^2/N)
    sum_i (1 - lambda_i)^2/(1 - lambda_i^2) = 1; simulations of long paths underestimate it, as rare events dominate the
    second moment.
    Source: derived; mode i has E_i = lambda_i^2 E_i + (alpha^2/N) sum_j (1 - lambda_j)^2 E_j.
    eigenvalues (array_like, shape (N,)): Of W.

    >>> round(dcd_threshold([1.0, 0.5]), 6)
    6.0
    """
    return np.size(eigenvalues) / response(eigenvalues)


@formula("workers >= 3")
def ring_dcd_share(workers: int) -> float:
    r"""Fraction of the coordinates that DCD-PSGD with rand-k must send on a ring.

    Title: The fraction of coordinates that DCD-PSGD must send on a ring.
    Setting: as for :func:`dcd_threshold`, on a ring with weights 1/3; rand-k scaled by d/k has alpha^2 = d/k - 1.
    Statement: k/d > 1 - (1/sqrt(3)) (1 - q^N)/(1 + q^N), q = sqrt(3) - 2; for N to infinity 1 - 1/sqrt(3).
    Kind: identity.
    Latex: \frac kd>1-\frac1{\sqrt3}\,\frac{1-q^N}{1+q^N}\to1-\frac1{\sqrt3}
    Proof: d/k - 1 < 1/response, and the response of a ring is sqrt(3) (1 + q^N)/(1 - q^N) - 1.
    Source: derived, from :func:`ring_response`.

    >>> round(ring_dcd_share(8), 5), round(ring_dcd_share(1000), 5)
    (0.42268, 0.42265)
    """
    q = (math.sqrt(3.0) - 2.0) ** int(workers)
    return 1.0 - (1.0 - q) / (1.0 + q) / math.sqrt(3.0)


@formula("alpha_squared >= 0")
def dcd_energy_factor(eigenvalues: ArrayLike, alpha_squared: float) -> float:
    r"""Exact asymptotic factor per round of DCD-PSGD without gradients.

    Setting: as for :func:`dcd_threshold`.
    Statement: E sum_i ||x_i - mean||^2 is multiplied by the spectral radius of diag(lambda_i^2) + (alpha^2/N) 1 v^T,
    v_i = (1 - lambda_i)^2, over the modes i >= 2; the moment of the mean grows by their contributions.
    Kind: identity.
    Source: derived, as :func:`dcd_threshold`.

    Title (run): The covariance of DCD-PSGD follows the operator.
    Statement (run): After T rounds without gradients E sum_i ||x_i - mean||^2 is that of the covariance operator.
    Latex (run): P_{t+1}=WP_tW+\alpha^2\operatorname{diag}\big((W-I)P_t(W-I)\big)
    Proof (run): Unbiased rand-k has the mean squared error (d/k - 1)||z||^2, independently for each worker.
    Source (run): derived.

    eigenvalues (array_like, shape (N,)): Of W.
    alpha_squared: alpha^2.

    >>> round(dcd_energy_factor([1.0, 0.5], 6.0), 6)
    1.0
    """
    response(eigenvalues)
    values = np.sort(np.asarray(eigenvalues, float).ravel())[:-1]
    matrix = np.diag(values**2) + alpha_squared / (values.size + 1) * np.ones((values.size, 1)) * (1.0 - values) ** 2
    return float(np.abs(np.linalg.eigvals(matrix)).max())


@formula
def dcd_condition(eigenvalues: ArrayLike) -> float:
    r"""Largest relative compression error that the theorem of DCD-PSGD allows.

    Title: The condition of DCD-PSGD's theorem is sufficient.
    Setting: as for :func:`dcd_threshold`, with ||C(z) - z||^2 <= alpha^2 ||z||^2, also for errors with a bias.
    Statement: it suffices that alpha < (1 - rho)/(2 mu), rho = max_{i >= 2} |lambda_i|, mu = max |lambda_i - 1|.
    Kind: lower.
    Latex: \alpha<\frac{1-\rho}{2\mu}
    Proof: Without gradients a round multiplies ||X - mean|| by at most rho + alpha mu, which is below 1, whatever the
    errors are. On a ring of 8 it allows 1/255 of the error that is tolerated if errors are independent and unbiased.
    Source: [tang2018communication], Theorem 1, as remembered, where errors are unbiased; derived for any errors. The
    returned value is alpha^2.
    Known: remembered
    eigenvalues (array_like, shape (N,)): Of W.

    >>> round(dcd_condition([1.0, 0.5]), 6)
    0.25
    """
    response(eigenvalues)
    values = np.sort(np.asarray(eigenvalues, float).ravel())
    rho, mu = max(abs(values[0]), abs(values[-2])), float(np.abs(values - 1.0).max())
    return ((1.0 - rho) / (2.0 * mu)) ** 2


@formula("update >= 2")
def ecd_error(update: int, variance: float) -> float:
    r"""Variance of ECD-PSGD's estimate of a model, for messages with errors of fixed variance.

    Title: The estimates of ECD-PSGD, for errors of fixed variance.
    Setting: xhat = (1 - 2/t) xhat + (2/t) C(z), z = (1 - t/2) x_t + (t/2) x_{t+1}; C(z) = z + xi, the xi independent
    with mean 0 and E||xi||^2 = v.
    Statement: E||xhat - x_{t+1}||^2 = (2 v/3)(2 t - 1)/(t (t - 1)) after the update t >= 2.
    Kind: identity.
    Latex: \mathbb E\|\hat x-x_{t+1}\|^2=\frac{2v}3\,\frac{2t-1}{t(t-1)}
    Proof: (1 - 2/t) x_t + (2/t) z = x_{t+1}, so that the error is e = (1 - 2/t) e + (2/t) xi, for any models; t (t - 1)
    e is a sum of terms with the variances 4 (s - 1)^2 v.
    Source: derived; the paper's Lemma 12 has the bound 2 v/t (:func:`ecd_error_bound`).
    update: t, at least 2; after the first update the variance is 4 v.
    variance: v.

    >>> ecd_error(2, 1.0), round(ecd_error(3, 9.0), 6)
    (1.0, 5.0)
    """
    return 2.0 * variance / 3.0 * (2 * update - 1) / (update * (update - 1))


@formula("update >= 2")
def ecd_error_bound(update: int, variance: float) -> float:
    r"""Bound on the variance of ECD-PSGD's estimate, as in the paper.

    Title: The paper's lemma on ECD-PSGD's estimates.
    Setting: as for :func:`ecd_error`, with E||xi||^2 <= v = sigma~^2/2.
    Statement: E||xhat - x_{t+1}||^2 <= sigma~^2/t = 2 v/t; the limit of the exact value is 2/3 of it.
    Kind: upper.
    Latex: \mathbb E\|\hat x-x_{t+1}\|^2\le\frac{\tilde\sigma^2}t
    Proof: The exact value is the bound times (2 t - 1)/(3 t - 3), which is 1 at t = 2 and tends to 2/3.
    Source: [tang2018communication], Lemma 12, as remembered.
    Known: remembered
    update: t.
    variance: v.

    >>> ecd_error_bound(4, 2.0)
    1.0
    """
    return 2.0 * variance / update


@formula("squares >= 0", "count(squares) >= 2")
def ecd_relative_error(squares: ArrayLike, omega: float) -> float:
    r"""Variance of ECD-PSGD's estimate for quantizers, whose errors are proportional to their argument.

    Title: The estimates of ECD-PSGD with quantizers get worse.
    Setting: as for :func:`ecd_error`, with E||C(z_t) - z_t||^2 = omega ||z_t||^2, for models that do not depend on the
    errors.
    Statement: V_t = (1 - 2/t)^2 V_{t-1} + (2/t)^2 omega ||z_t||^2, which is 4 omega sum_{s=2}^t (s - 1)^2 ||z_s||^2/(t
    (t - 1))^2. If the model moves by the same vector u in every step, x_t = t u, then ||z_t|| = (3/2) t ||u||, and V_t
    grows like (9/5) omega ||u||^2 t.
    Kind: identity.
    Latex: V_t=\Big(1-\frac2t\Big)^2V_{t-1}+\frac4{t^2}\,\omega\|z_t\|^2,\qquad x_t=tu:\ V_t\sim\tfrac95\,\omega\|u\|^2t
    Proof: The same recursion with errors in proportion to z, which contains t/2 times the last step.
    Source: derived.
    squares (array_like, shape (t,)): ||z_1||^2, ..., ||z_t||^2, t at least 2.

    >>> ecd_relative_error([7.0, 1.0], 1.0), round(ecd_relative_error([1.0] * 3, 9.0), 6)
    (1.0, 5.0)
    """
    z = np.asarray(squares, float).ravel()
    t, s = z.size, np.arange(1, z.size + 1)
    return float(4.0 * omega * np.sum((s - 1.0) ** 2 * z) / (t * (t - 1.0)) ** 2)


@formula("descent >= 0")
def ecd_threshold(eigenvalues: ArrayLike, descent: float) -> float:
    r"""Largest relative compression error with which ECD-PSGD converges on a quadratic.

    Title: The relative compression error that ECD-PSGD tolerates.
    Setting: ECD-PSGD on f_i(x) = (mu/2) ||x||^2 with the constant step gamma, descent = gamma mu; E C(z) = z, errors
    independent, E||C(z) - z||^2 = omega ||z||^2, on a vertex-transitive graph, |lambda_i - descent| < 1.
    Statement: the second moments of the models tend to 0 if omega < N/sum_i lambda_i^2/(1 - (lambda_i - descent)^2),
    over all modes including the mean's, and grow without bound if it is larger. So without descent no omega > 0 is
    tolerated, and with small descent the limit is about 2 N descent.
    Kind: identity.
    Latex: \omega<\frac N{\sum_i\frac{\lambda_i^2}{1-(\lambda_i-\gamma\mu)^2}}
    Proof: In late rounds z/t is half the last step of x, so that the estimates move by xi with E||xi||^2 = omega
    ||x_{t+1} - x_t||^2, a random walk that the factor 1 - 2/t changes only polynomially. In mode i, with a = lambda_i -
    descent, w = y - lambda_i e/(1 - a) has w' = a w - lambda_i xi/(1 - a), and the step is (a - 1) w; hence the error
    E||xi||^2 reproduces itself with the factor (omega/N) sum_i lambda_i^2/(1 - a^2), and so does w, geometrically.
    Source: derived.
    eigenvalues (array_like, shape (N,)): Of W.
    descent: gamma mu, the step times the curvature.

    >>> round(ecd_threshold([1.0, 0.0], 0.5), 6), ecd_threshold([1.0, 0.0], 0.0)
    (1.5, 0.0)
    """
    values = spectrum(eigenvalues)
    rest = 1.0 - (values - descent) ** 2
    require(np.all(rest[values < 1.0 - 1e-12] > 0.0) and rest.max() > 0.0, "descent", descent, "|lambda - descent| < 1")
    with np.errstate(divide="ignore"):
        return float(values.size / np.sum(values**2 / np.where(rest > 1e-15, rest, 0.0)))


@formula("descent >= 0", "omega >= 0", "rounds >= 1")
def ecd_second_moment(eigenvalues: ArrayLike, descent: float, omega: float, rounds: int) -> float:
    r"""Second moment of ECD-PSGD's models after some rounds on a quadratic, relative to that of the start.

    Title: The second moments of ECD-PSGD with a relative compression error.
    Setting: as for :func:`ecd_threshold`; all models start at one x_0 that the neighbours know.
    Statement: (1/N) sum_i E||x_i||^2/||x_0||^2 is the sum over the modes of a recursion for the moments of models,
    errors of estimates and their products: y' = (lambda - descent) y + lambda e, e' = (1 - 2/t) e + (2/t) xi, z = (1 -
    t/2) y + (t/2) y', E xi^2 = (omega/N) sum E z^2.
    Kind: identity.
    Proof: The modes are linear; the errors of the workers are independent and identically distributed, so that every
    mode receives 1/N of their sum.
    Source: derived.
    eigenvalues (array_like, shape (N,)): Of W.
    descent: gamma mu, the step times the curvature.
    rounds: T, at least 1.

    Returns
    -------
    float
        Infinite where a second moment exceeds 1e200 in a round.

    >>> ecd_second_moment([1.0, 0.0], 0.5, 0.0, rounds=2), ecd_second_moment([1.0, 0.0], 0.5, 1.0, rounds=2)
    (0.0625, 1.1875)
    """
    lam = spectrum(eigenvalues)
    a, N = lam - descent, lam.size
    yy, ye, ee = np.where(np.arange(N) == np.argmax(lam), 1.0, 0.0), np.zeros(N), np.zeros(N)
    for t in range(1, int(rounds) + 1):
        keep, share = 1.0 - 2.0 / t, 2.0 / t
        p, q = 1.0 - t / 2.0 + t / 2.0 * a, t / 2.0 * lam  # z = p y + q e
        noise = omega / N * float(np.sum(p * p * yy + 2.0 * p * q * ye + q * q * ee))
        yy, ye, ee = (
            a * a * yy + 2.0 * a * lam * ye + lam * lam * ee,
            keep * (a * ye + lam * ee),
            keep * keep * ee + share * share * noise,
        )
        if max(np.abs(yy).max(), np.abs(ye).max(), ee.max()) > ENOUGH:
            return math.inf
    return float(yy.sum())
