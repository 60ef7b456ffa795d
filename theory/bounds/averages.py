"""Averages: of the workers' gradients in a step, and of the iterates of SGD.

Steps are counted as in the package: t = 0, 1, ..., T - 1; averages are over x_0, ..., x_{T-1}.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula


@formula("second_moment >= variance")
def averaged_variance(
    variance: float, second_moment: float, *, workers: int, batch: int = 1, omega: float = 0
) -> float:
    r"""Variance of the mean of N workers' compressed mini-batch gradients.

    Title: N workers divide the noise by N.
    Title (gradient-noise): Noise of a quantized stochastic gradient.
    Setting: every worker draws its own batch of B rows i.i.d. and compresses the batch's mean with independent random
    numbers; E Q(v) = v and E||Q(v) - v||^2 <= omega ||v||^2; at one point x, sigma^2 = E||g - grad f||^2 and M^2 =
    E||g||^2 = sigma^2 + ||grad f||^2 of one row.
    Statement: The mean of N workers' unbiased compressed gradients has the variance (sigma^2 + omega (sigma^2 + ||grad
    f||^2))/N.
    Statement (gradient-noise): E||Q(g) - grad f||^2 <= sigma^2 + min(d/s^2, sqrt(d)/s) E||g||^2: quantization comes on
    top of the sampling noise.
    Kind: identity (an equality if E||Q(v) - v||^2 = omega ||v||^2, as for identity and rand-k).
    Kind (gradient-noise): upper.
    Latex: \mathbb{E}\Big\|\tfrac1N\sum_wQ(g^w)-\nabla f\Big\|^2=\frac{\sigma^2+\omega(\sigma^2+\|\nabla f\|^2)}{N}
    Latex (gradient-noise): \mathbb{E}\|Q_s(g)-\nabla f\|^2\le\sigma^2+\min(d/s^2,\sqrt d/s)\,\mathbb{E}\|g\|^2
    Attained: compressors with E||Q(v) - v||^2 = omega ||v||^2 for every v, such as random-k.
    Proof: Given g, the error Q(g) - g has mean zero, so E||Q(g) - grad f||^2 = omega E||g||^2 + sigma^2; workers are
    independent.
    Proof (gradient-noise): Given g, Q(g) - g has mean zero: E||Q(g) - grad f||^2 = E||Q(g) - g||^2 + E||g - grad f||^2.
    Source: derived: E||Q(g) - grad f||^2 = E||Q(g) - g||^2 + E||g - grad f||^2. ([alistarh2017qsgd], Theorem 3.2 prints
    only the first part as the variance; see the claim qsgd.gradient-noise.)
    Source (gradient-noise): derived; the correct reading of [alistarh2017qsgd], Theorems 3.2 and 3.4.
    second_moment: M^2, at least ``variance``.
    workers, batch: N and B.

    >>> averaged_variance(3.0, 4.0, workers=2, batch=3, omega=9.0)  # (1 + 9 (1 + 1))/2
    9.5
    """
    noise = variance / batch
    return (noise + omega * (noise + second_moment - variance)) / workers


@formula("second_moment >= variance")
def averaged_second_moment(
    variance: float, second_moment: float, *, workers: int, batch: int = 1, omega: float = 0.0
) -> float:
    """Second moment of the mean of N workers' compressed mini-batch gradients.

    Setting: as for :func:`averaged_variance`.
    Statement: E||mean of Q(g_w)||^2 <= ||grad f||^2 + (sigma^2/B + omega (sigma^2/B + ||grad f||^2))/N.
    Kind: tight, as averaged_variance.
    Source: derived.
    second_moment: M^2, at least ``variance``.
    workers, batch: N and B.

    >>> averaged_second_moment(3.0, 4.0, workers=2, batch=3, omega=9.0)
    10.5
    """
    noise = averaged_variance(variance, second_moment, workers=workers, batch=batch, omega=omega)
    return second_moment - variance + noise


@formula
def sgd_weighted_average(steps: int, *, mu: float, second_moment: float) -> float:
    r"""Suboptimality of the linearly weighted average.

    Title (slope.rcv1): The rate 1/T on RCV1.
    Setting: f is mu-strongly convex, E||g_t||^2 <= G^2, any start, projection allowed; step sizes 2/(mu (t + 2)),
    weights t + 1: ``InverseTime(c=2, mu=mu, shift=2)``, ``Polynomial(shift=1, power=1)``.
    Statement: E f(xbar_T) - f* <= 2 G^2/(mu (T + 1)).
    Statement (weighted-average): Steps 2/(mu (t + 2)) and weights t + 1 give E f(xbar_T) - f* <= 2 G^2/(mu (T + 1)),
    where G^2 bounds the second moment of the gradient that is applied: the mean over workers.
    Statement (slope.rcv1): Plain SGD with steps 2/(mu (a + t)), mu = lambda = 1/n, and weights (a + t)^2 has E
    f(xbar_T) - f* ~ 1/T on logistic regression.
    Kind: upper.
    Kind (weighted-average): upper.
    Kind (slope.rcv1): rate.
    Latex (weighted-average): \mathbb{E}f(\bar x_T)-f^*\le\frac{2G^2}{\mu(T+1)}
    Latex (slope.rcv1): \mathbb{E}f(\bar x_T)-f^*=\Theta(1/T)
    Attained (weighted-average): (mu/2) x^2 with noise that fills E g^2 up to G^2, as T grows, but for Jensen's
    inequality and what x_T leaves.
    Proof (weighted-average): sgd.average, with sums in closed form.
    Source: [lacoste2012simpler]; [bubeck2015convex], Theorem 3.9. With N workers, mini-batches and unbiased compression
    G^2 is :func:`averaged_second_moment`, as the proof uses only the applied gradient.
    Source (weighted-average): [lacoste2012simpler]; [bubeck2015convex], Theorem 3.9.
    Source (slope.rcv1): [lacoste2012simpler] (weights t); [rakhlin2012making].

    >>> sgd_weighted_average(99, mu=0.1, second_moment=1.0)
    0.2
    """
    return 2.0 * second_moment / (mu * (steps + 1.0))


@formula
def sgd_uniform_average(steps: int, *, mu: float, second_moment: float) -> float:
    """Suboptimality of the uniform average with the step size 1/(mu (t + 1)).

    Setting: f is mu-strongly convex, E||g_t||^2 <= G^2, any start, projection allowed.
    Statement: E f(xbar_T) - f* <= G^2 (1 + log T)/(2 mu T).
    Kind: upper; the logarithm is real (Rakhlin, Shamir, Sridharan, ICML 2012, Theorem 3).
    Attained: (mu/2) x^2 with noise that fills E g^2 up to G^2, as T grows, but for Jensen's inequality and what x_T
    leaves.
    Proof: sgd.average, with sums in closed form.
    Source: derived by telescoping; classical.

    >>> sgd_uniform_average(1, mu=0.5, second_moment=1.0)
    1.0
    """
    return second_moment / (2.0 * mu * steps) * (1.0 + math.log(steps))


@formula(
    "step_sizes > 0",
    "count(step_sizes) >= 1",
    "count(weights) == count(step_sizes)",
    "weights >= 0",
    "some(weights)",
    "0 <= distance <= inf",
)
def sgd_average(
    step_sizes: ArrayLike, weights: ArrayLike, *, mu: float, second_moment: float, distance: float = math.inf
) -> float:
    r"""Suboptimality of any weighted average of SGD with any step sizes.

    Title (averages): Averages on logistic regression.
    Title (sgd.rcv1): SGD on ridge regression, RCV1.
    Setting: f is mu-strongly convex, E||g_t||^2 <= G^2; step sizes eta_t, weights w_t of x_t, t = 0, ..., T - 1.
    Statement: with A_0 = min(||x_0 - x*||^2, G^2/mu^2), A_{t+1} = max(0, 1 - 2 mu eta_t) A_t + eta_t^2 G^2 and c_t =
    (w_t/(2 eta_t)) (1 - mu eta_t) - w_{t-1}/(2 eta_{t-1}) (its last term absent at t = 0), E f(xbar_T) - f* <= (sum
    max(0, c_t) A_t + (G^2/2) sum w_t eta_t)/sum w_t.
    Statement (average): Before Jensen's inequality, and with what the proof drops at its end, the bound on E f(xbar_T)
    - f* for any weights and steps is an equality on (mu/2) x^2 with noise that fills E g^2 up to G^2.
    Statement (averages): Weights t + 1 with steps 2/(mu (t + 2)), all alike and the last half with steps 1/(mu t): on
    logistic regression, too, E f(xbar_T) - f* is below 2 G^2/(mu (T + 1)), G^2 (1 + log T)/(2 mu T) and the suffix's
    bound.
    Statement (sgd.rcv1): With steps 8/(mu (a + t)), mu = lambda = 1/n, and weights (a + t)^2, E f(xbar_T) - f* on ridge
    regression is below the bound for averaged SGD with the constants of the level set of the start.
    Kind: upper. It contains :func:`sgd_weighted_average` and :func:`sgd_uniform_average`.
    Kind (average): tight.
    Latex (average): \mathbb{E}f(\bar x_T)-f^*\le\frac{\sum_t\max(0,c_t)A_t+\frac{G^2}2\sum_tw_t\eta_t}{\sum_tw_t}
    Attained (averages): nearly, before Jensen's inequality, with a strong l2 term and the largest E||g_t||^2 on the
    way.
    Attained (sgd.rcv1): nowhere near here: the constants are those of the start, and the data is benign (sgd.average)
    Attained (average): as stated; Jensen's inequality is strict there.
    Proof (average): 2 eta_t (f(x_t) - f*) <= (1 - mu eta_t) a_t - a_{t+1} + eta_t^2 G^2, times w_t/(2 eta_t), summed.
    Source: derived: 2 eta_t (f(x_t) - f*) <= (1 - mu eta_t) a_t - a_{t+1} + eta_t^2 G^2, a_t = E||x_t - x*||^2 <= A_t,
    times w_t/(2 eta_t), summed; then Jensen's inequality. G^2 as in sgd_weighted_average.
    Source (averages): [lacoste2012simpler]; [rakhlin2012making], Theorems 2 and 5.
    Source (sgd.rcv1): [lacoste2012simpler] (weights t); derived for these weights (bounds.sgd_average)
    step_sizes (array_like): eta_t, above 0.
    weights (array_like): w_t, at least 0 and not all 0, as many as step sizes.
    distance: At least 0; may be infinite.

    >>> t = np.arange(99)
    >>> sgd_average(2 / (0.1 * (t + 2)), t + 1, mu=0.1, second_moment=1.0) <= sgd_weighted_average(
    ...     99, mu=0.1, second_moment=1.0)
    True
    """
    eta, w = np.asarray(step_sizes, float).ravel(), np.asarray(weights, float).ravel()
    bound = min(distance, second_moment / mu**2)  # E||grad f||^2 <= G^2 and mu ||x - x*|| <= ||grad f||
    bounds = []
    for shrink, added in zip(np.maximum(0.0, 1.0 - 2.0 * mu * eta).tolist(), (eta**2).tolist(), strict=True):
        bounds.append(bound)
        bound = shrink * bound + added * second_moment
    half = w / (2.0 * eta)
    left = half * (1.0 - mu * eta)
    left[1:] -= half[:-1]
    noise = 0.5 * second_moment * np.dot(w, eta)
    return (np.dot(np.maximum(0.0, left), bounds) + noise) / float(w.sum())
