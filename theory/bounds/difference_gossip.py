"""DCD-PSGD and ECD-PSGD: which compression errors they bear, exactly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .closed_form import formula
from .gossip import response, spectrum

ENOUGH = 1e200  # squares of what is larger would exceed the largest float


@formula
def dcd_threshold(eigenvalues: ArrayLike) -> float:
    r"""Largest relative compression error that DCD-PSGD bears, without gradients.

    Title: The compression error that DCD-PSGD bears, exactly.
    Setting: x_i = x_i + C(z_i), z_i = sum_j W_ij x_j - x_i, E C(z) = z, errors independent, E||C(z) - z||^2 = alpha^2
    ||z||^2, on a graph whose workers are all alike (a ring, a torus, a hypercube, a complete graph).
    Statement: the second moments are bounded if and only if alpha^2 < N/sum_{i >= 2} (1 - lambda_i)/(1 + lambda_i).
    Kind: identity.
    Latex: \alpha^2<\frac N{\sum_{i\ge2}\frac{1-\lambda_i}{1+\lambda_i}}
    Proof: Mode i has E_i = lambda_i^2 E_i + (alpha^2/N) sum_j (1 - lambda_j)^2 E_j. The radius is 1 where (alpha^2/N)
    sum_i (1 - lambda_i)^2/(1 - lambda_i^2) = 1; long sample paths mislead, as rare events carry the second moment.
    Source: derived; mode i has E_i = lambda_i^2 E_i + (alpha^2/N) sum_j (1 - lambda_j)^2 E_j.
    eigenvalues (array_like, shape (N,)): Of W.

    >>> round(dcd_threshold([1.0, 0.5]), 6)
    6.0
    """
    return np.size(eigenvalues) / response(eigenvalues)


@formula("workers >= 3")
def ring_dcd_share(workers: int) -> float:
    r"""Share of the coordinates that DCD-PSGD with rand-k must send on a ring.

    Title: The share of coordinates that DCD-PSGD must send on a ring.
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
    r"""Exact factor per round of DCD-PSGD without gradients, in the long run.

    Title (run): The covariance of DCD-PSGD is that of the operator.
    Setting: as for :func:`dcd_threshold`.
    Statement: E sum_i ||x_i - mean||^2 is multiplied by the spectral radius of diag(lambda_i^2) + (alpha^2/N) 1 v^T,
    v_i = (1 - lambda_i)^2, over the modes i >= 2; the mean's own moment grows by what they add to it.
    Statement (run): After T rounds without gradients E sum_i ||x_i - mean||^2 is that of the covariance operator.
    Kind: identity.
    Latex (run): P_{t+1}=WP_tW+\alpha^2\operatorname{diag}\big((W-I)P_t(W-I)\big)
    Proof (run): rand-k without bias errs by (d/k - 1)||z||^2, independently for each worker.
    Source: derived, as :func:`dcd_threshold`.
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
    errors are. Compared with what independent errors without bias may be: on a ring of 8 it allows 1/255 of that.
    Source: [tang2018communication], Theorem 1, as remembered, where errors have no bias; derived for any: a round
    multiplies the distances from the mean by at most rho + alpha mu. Returned is alpha^2.
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
    Proof: (1 - 2/t) x_t + (2/t) z = x_{t+1}, so that the error is e = (1 - 2/t) e + (2/t) xi, whatever the models do; t
    (t - 1) e is a sum with the variances 4 (s - 1)^2 v.
    Source: derived; the paper's Lemma 12 has the bound 2 v/t (:func:`ecd_error_bound`).
    update: t, at least 2; after the first the variance is 4 v.
    variance: v.

    >>> ecd_error(2, 1.0), round(ecd_error(3, 9.0), 6)
    (1.0, 5.0)
    """
    return 2.0 * variance / 3.0 * (2 * update - 1) / (update * (update - 1))


@formula("update >= 2")
def ecd_error_bound(update: int, variance: float) -> float:
    r"""Bound of the variance of ECD-PSGD's estimate, in the paper.

    Title: The lemma on ECD-PSGD's estimates.
    Setting: as for :func:`ecd_error`, with E||xi||^2 <= v = sigma~^2/2.
    Statement: E||xhat - x_{t+1}||^2 <= sigma~^2/t = 2 v/t; the limit of the exact value is 2/3 of it.
    Kind: upper.
    Latex: \mathbb E\|\hat x-x_{t+1}\|^2\le\frac{\tilde\sigma^2}t
    Proof: The exact value is (2 t - 1)/(3 t - 3) of it: all of it at t = 2, where it is attained, and 2/3 later.
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
    r"""Variance of ECD-PSGD's estimate for quantizers, whose errors grow with what they quantize.

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

    Title: The relative compression error that ECD-PSGD bears, exactly.
    Setting: ECD-PSGD on f_i(x) = (mu/2) ||x||^2 with the constant step eta, descent = eta mu; E C(z) = z, errors
    independent, E||C(z) - z||^2 = omega ||z||^2, on a graph whose workers are all alike, |lambda_i - descent| < 1.
    Statement: the second moments of the models tend to 0 if omega < N/sum_i lambda_i^2/(1 - (lambda_i - descent)^2),
    over all modes, the mean's too, and grow without bound if it is larger; so without descent every omega > 0 is too
    much, and with a small one nearly 2 N descent is.
    Kind: identity.
    Latex: \omega<\frac N{\sum_i\frac{\lambda_i^2}{1-(\lambda_i-\eta\mu)^2}}
    Proof: Late rounds: z/t is half the last step of x, so that the estimates move by xi with E||xi||^2 = omega
    ||x_{t+1} - x_t||^2, a random walk that the factor 1 - 2/t slows polynomially. In mode i, with a = lambda_i -
    descent, w = y - lambda_i e/(1 - a) has w' = a w - lambda_i xi/(1 - a), and the step is (a - 1) w; hence the error
    E||xi||^2 reproduces itself with the factor (omega/N) sum_i lambda_i^2/(1 - a^2), and so does w, geometrically.
    Source: derived.
    eigenvalues (array_like, shape (N,)): Of W.
    descent: eta mu, the step times the curvature.

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
    r"""Second moment of ECD-PSGD's models after some rounds on a quadratic, over that of the common start.

    Title: The second moments of ECD-PSGD with a relative compression error.
    Setting: as for :func:`ecd_threshold`; all models start at one x_0 that the neighbours know.
    Statement: (1/N) sum_i E||x_i||^2/||x_0||^2 is the sum over the modes of what the recursion for models, errors of
    estimates and their products gives: y' = (lambda - descent) y + lambda e, e' = (1 - 2/t) e + (2/t) xi, z = (1 - t/2)
    y + (t/2) y', E xi^2 = (omega/N) sum E z^2.
    Kind: identity.
    Proof: The modes are linear; the errors of the workers are independent and alike, so that every mode gets an N-th of
    their sum.
    Source: derived.
    eigenvalues (array_like, shape (N,)): Of W.
    descent: eta mu, the step times the curvature.
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
