"""Averages of the workers' gradients in a step, and of the iterates of SGD.

Steps are counted as in the package: t = 0, 1, ..., T - 1.  Averages of iterates are over x_0, ..., x_{T-1}. The results
cover weighted, uniform and suffix averages, smooth functions, the lower bound for uniform averaging, and the optimal
limit.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula
from .rates import sgd_inverse_time

# --- Averages --------------------------------------------------------------------------------------------------------


@formula("second_moment >= variance")
def averaged_variance(
    variance: float, second_moment: float, *, workers: int, batch: int = 1, omega: float = 0
) -> float:
    r"""Variance of the mean of N workers' compressed mini-batch gradients.

    Title: With N workers the noise is divided by N.
    Setting: every worker draws its own batch of B rows i.i.d. and compresses the batch's mean with independent random
    numbers; E Q(v) = v and E||Q(v) - v||^2 <= omega ||v||^2; at one point x, sigma^2 = E||g - grad f||^2 and M^2 =
    E||g||^2 = sigma^2 + ||grad f||^2 of one row.
    Statement: The mean of N workers' unbiased compressed gradients has the variance (sigma^2 + omega (sigma^2 + ||grad
    f||^2))/N.
    Kind: identity (an equality if E||Q(v) - v||^2 = omega ||v||^2, as for identity and rand-k).
    Latex: \mathbb{E}\Big\|\tfrac1N\sum_wQ(g^w)-\nabla f\Big\|^2=\frac{\sigma^2+\omega(\sigma^2+\|\nabla f\|^2)}{N}
    Attained: by compressors with E||Q(v) - v||^2 = omega ||v||^2 for every v, such as random-k.
    Proof: Given g, the error Q(g) - g has mean zero, so E||Q(g) - grad f||^2 = omega E||g||^2 + sigma^2; workers are
    independent.
    Source: derived: E||Q(g) - grad f||^2 = E||Q(g) - g||^2 + E||g - grad f||^2. ([alistarh2017qsgd], Theorem 3.2 prints
    only the first term as the variance; see the claim qsgd.gradient-noise.)

    Title (gradient-noise): Noise of a quantized stochastic gradient.
    Statement (gradient-noise): E||Q(g) - grad f||^2 <= sigma^2 + min(d/s^2, sqrt(d)/s) E||g||^2: the noise of
    quantization is added to the sampling noise.
    Kind (gradient-noise): upper.
    Latex (gradient-noise): \mathbb{E}\|Q_s(g)-\nabla f\|^2\le\sigma^2+\min(d/s^2,\sqrt d/s)\,\mathbb{E}\|g\|^2
    Proof (gradient-noise): Given g, Q(g) - g has mean zero: E||Q(g) - grad f||^2 = E||Q(g) - g||^2 + E||g - grad f||^2.
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
    """Bound on the second moment of the mean of N workers' compressed mini-batch gradients.

    Setting: as for :func:`averaged_variance`.
    Statement: E||mean of Q(g_w)||^2 <= ||grad f||^2 + (sigma^2/B + omega (sigma^2/B + ||grad f||^2))/N.
    Kind: tight, like averaged_variance.
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
    r"""Bound on f - f* at the linearly weighted average of SGD.

    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, any start, projection allowed; step sizes 2/(mu (t + 2)),
    weights t + 1: ``InverseTime(c=2, mu=mu, shift=2)``, ``Polynomial(shift=1, power=1)``.
    Statement: E f(xbar_T) - f* <= 2 M^2/(mu (T + 1)).
    Kind: upper.
    Source: [lacoste2012simpler]; [bubeck2015convex], Theorem 3.9. With N workers, mini-batches and unbiased compression
    M^2 is :func:`averaged_second_moment`, as the proof uses only the applied gradient.

    Title (slope.rcv1): The rate 1/T on RCV1.
    Statement (slope.rcv1): Plain SGD with steps 2/(mu (a + t)), mu = lambda = 1/n, and weights (a + t)^2 has E
    f(xbar_T) - f* ~ 1/T on logistic regression.
    Kind (slope.rcv1): rate.
    Latex (slope.rcv1): \mathbb{E}f(\bar x_T)-f^*=\Theta(1/T)
    Source (slope.rcv1): [lacoste2012simpler] (weights t); [rakhlin2012making].

    Statement (weighted-average): Steps 2/(mu (t + 2)) and weights t + 1 give E f(xbar_T) - f* <= 2 M^2/(mu (T + 1)),
    where M^2 bounds the second moment of the gradient that is applied: the mean over workers.
    Latex (weighted-average): \mathbb{E}f(\bar x_T)-f^*\le\frac{2M^2}{\mu(T+1)}
    Attained (weighted-average): (mu/2) x^2 with noise such that E g^2 = M^2, as T grows, up to Jensen's inequality and
    the term of x_T.
    Proof (weighted-average): sgd.average, with sums in closed form.
    Source (weighted-average): [lacoste2012simpler]; [bubeck2015convex], Theorem 3.9.

    >>> sgd_weighted_average(99, mu=0.1, second_moment=1.0)
    0.2
    """
    return 2.0 * second_moment / (mu * (steps + 1.0))


@formula
def sgd_uniform_average(steps: int, *, mu: float, second_moment: float) -> float:
    """Bound on f - f* at the uniform average of SGD with the step size 1/(mu (t + 1)).

    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, any start, projection allowed.
    Statement: E f(xbar_T) - f* <= M^2 (1 + log T)/(2 mu T).
    Kind: upper; the logarithm cannot be removed (Rakhlin, Shamir, Sridharan, ICML 2012, Theorem 3).
    Attained: (mu/2) x^2 with noise such that E g^2 = M^2, as T grows, up to Jensen's inequality and the term of x_T.
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
    r"""Bound on f - f* at any weighted average of SGD with any step sizes.

    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2; step sizes gamma_t, weights w_t of x_t, t = 0, ..., T - 1.
    Statement: with A_0 = min(||x_0 - x*||^2, M^2/mu^2), A_{t+1} = max(0, 1 - 2 mu gamma_t) A_t + gamma_t^2 M^2 and c_t
    = (w_t/(2 gamma_t)) (1 - mu gamma_t) - w_{t-1}/(2 gamma_{t-1}) (without the last term at t = 0), E f(xbar_T) - f* <=
    (sum max(0, c_t) A_t + (M^2/2) sum w_t gamma_t)/sum w_t.
    Kind: upper. It contains :func:`sgd_weighted_average` and :func:`sgd_uniform_average`.
    Source: derived: 2 gamma_t (f(x_t) - f*) <= (1 - mu gamma_t) a_t - a_{t+1} + gamma_t^2 M^2, a_t = E||x_t - x*||^2 <=
    A_t, times w_t/(2 gamma_t), summed; then Jensen's inequality. M^2 as in sgd_weighted_average.

    Title (averages): Averages on logistic regression.
    Statement (averages): For weights t + 1 with steps 2/(mu (t + 2)), and for equal weights and the last half with
    steps 1/(mu t), also on logistic regression E f(xbar_T) - f* is below 2 M^2/(mu (T + 1)), M^2 (1 + log T)/(2 mu T)
    and the suffix's bound.
    Attained (averages): almost, before Jensen's inequality, with a strong l2 term and the largest E||g_t||^2 of the
    run.
    Source (averages): [lacoste2012simpler]; [rakhlin2012making], Theorems 2 and 5.

    Title (sgd.rcv1): SGD on ridge regression, RCV1.
    Statement (sgd.rcv1): With steps 8/(mu (a + t)), mu = lambda = 1/n, and weights (a + t)^2, E f(xbar_T) - f* on ridge
    regression is below the bound for averaged SGD with the constants of the level set of the start.
    Attained (sgd.rcv1): not here: the constants are those at the start, and the data are benign (sgd.average)
    Source (sgd.rcv1): [lacoste2012simpler] (weights t); derived for these weights (bounds.sgd_average)

    Statement (average): Without Jensen's inequality, and with the term that the proof drops at its end, the bound on E
    f(xbar_T) - f* for any weights and steps is an equality on (mu/2) x^2 with noise such that E g^2 = M^2.
    Kind (average): tight.
    Latex (average): \mathbb{E}f(\bar x_T)-f^*\le\frac{\sum_t\max(0,c_t)A_t+\frac{M^2}2\sum_tw_t\gamma_t}{\sum_tw_t}
    Attained (average): as stated; Jensen's inequality is strict there.
    Proof (average): 2 gamma_t (f(x_t) - f*) <= (1 - mu gamma_t) a_t - a_{t+1} + gamma_t^2 M^2, times w_t/(2 gamma_t),
    summed.

    step_sizes (array_like): gamma_t, above 0.
    weights (array_like): w_t, at least 0 and not all 0, as many as step sizes.
    distance: At least 0; may be infinite.

    >>> t = np.arange(99)
    >>> sgd_average(2 / (0.1 * (t + 2)), t + 1, mu=0.1, second_moment=1.0) <= sgd_weighted_average(
    ...     99, mu=0.1, second_moment=1.0)
    True
    """
    eta, w = np.asarray(step_sizes, float).ravel(), np.asarray(weights, float).ravel()
    bound = min(distance, second_moment / mu**2)  # E||grad f||^2 <= M^2 and mu ||x - x*|| <= ||grad f||
    bounds = []
    for shrink, added in zip(np.maximum(0.0, 1.0 - 2.0 * mu * eta).tolist(), (eta**2).tolist(), strict=True):
        bounds.append(bound)
        bound = shrink * bound + added * second_moment
    half = w / (2.0 * eta)
    left = half * (1.0 - mu * eta)
    left[1:] -= half[:-1]
    noise = 0.5 * second_moment * np.dot(w, eta)
    return (np.dot(np.maximum(0.0, left), bounds) + noise) / float(w.sum())


# --- Averages of SGD's iterates --------------------------------------------------------------------------------------


@formula("form in ('sharp', 'simple', 'paper')", "lipschitz >= mu")
def sgd_smooth_last(steps: int, *, mu: float, lipschitz: float, second_moment: float, form: str = "sharp") -> float:
    r"""Bound on f - f* at the last iterate of SGD on a smooth function with the step size 1/(mu (t + 1)).

    Setting: f is mu-strongly convex, f(x) - f* <= (L/2)||x - x*||^2, E||g_t||^2 <= M^2, any start, projection allowed.
    Statement: E f(x_T) - f* <= (L/2) times :func:`sgd_inverse_time`.

    Title (sharp): The last iterate on smooth functions: constant 1/2.
    Statement (sharp): Steps 1/(mu t) on a smooth function: E f(x_T) - f* <= (L/2) (M^2/mu^2) (T - H_T)/(T (T - 1)), at
    most L M^2/(2 mu^2 (T + 1)); the constant 1/2 is attained.
    Kind (sharp): tight.
    Latex (sharp):
    \mathbb{E}f(x_T)-f^*\le\frac{L}{2}\,\frac{M^2}{\mu^2}\,\frac{T-H_T}{T(T-1)}\le\frac{LM^2}{2\mu^2(T+1)}
    Attained (sharp): (mu/2) x^2 at every T, with noise such that E g^2 = M^2
    Proof (sharp): f - f* <= (L/2)||x - x*||^2 and sgd.inverse-time.bound.
    Source (sharp): derived; [rakhlin2012making], Theorem 1, has 2 instead of 1/2.

    Statement (simple): E f(x_T) - f* <= L (M^2/mu^2)/(2 (T + 1)); the constant 1/2 cannot be improved.
    Source (simple): derived.

    Statement (paper): E f(x_T) - f* <= 2 L (M^2/mu^2)/(T + 1).
    Source (paper): [rakhlin2012making], Theorem 1, whose T counts the start.

    Kind (simple, paper): upper.

    form ({"sharp", "simple", "paper"}):

    >>> [round(sgd_smooth_last(3, mu=1.0, lipschitz=2.0, second_moment=1.0, form=form), 4)
    ...  for form in ("sharp", "simple", "paper")]
    [0.1944, 0.25, 1.0]
    """
    return lipschitz / 2.0 * sgd_inverse_time(steps, mu=mu, second_moment=second_moment, form=form)


@formula("form in ('sharp', 'paper')", "0 < alpha < 1")
def sgd_suffix_average(steps: int, *, alpha: float, mu: float, second_moment: float, form: str = "sharp") -> float:
    r"""Bound on f - f* at the mean of the last alpha T iterates with the step size 1/(mu (t + 1)).

    Setting: f is mu-strongly convex and may have kinks, E||g_t||^2 <= M^2, any start, projection allowed; alpha T is an
    integer: ``Suffix((1 - alpha) T)``.
    Kind: upper. :func:`sgd_average` is smaller for the same steps and weights.

    Title (sharp): The mean of the last iterates.
    Statement (sharp): Steps 1/(mu t): the mean of the last alpha T iterates has E f - f* <= (1 + log(1/(1 - alpha)))
    M^2/(2 alpha mu T).
    Latex (sharp): \mathbb{E}f(\bar x)-f^*\le\frac{1+\log\frac1{1-\alpha}}{2\alpha}\,\frac{M^2}{\mu T}
    Attained (sharp): (mu/2) x^2 with noise such that E g^2 = M^2, as T grows, up to Jensen's inequality and the term of
    x_T.
    Proof (sharp): sgd.average, with sums in closed form.
    Source (sharp): derived; sharpens [rakhlin2012making], Theorem 5, by a factor between 4 and 5.

    Statement (paper): E f(mean) - f* <= (2 + 2.5 log(1/(1 - alpha))) M^2/(alpha mu T).
    Source (paper): [rakhlin2012making], Theorem 5.

    >>> [round(sgd_suffix_average(100, alpha=0.5, mu=0.1, second_moment=1.0, form=form), 4)
    ...  for form in ("sharp", "paper")]  # (1 + log 2)/10, (4 + 5 log 2)/10
    [0.1693, 0.7466]
    """
    kept = alpha * steps
    require(abs(kept - round(kept)) <= 1e-9 * kept, "alpha", alpha, f"one with an integer alpha T, here {kept:g}")
    start, logarithm = (0.5, -0.5 * math.log1p(-alpha)) if form == "sharp" else (2.0, -2.5 * math.log1p(-alpha))
    return (start + logarithm) / alpha * second_moment / (mu * steps)


@formula("form in ('sharp', 'paper')", "c > 0")
def sgd_uniform_average_lower(steps: int, c: float = 1.0, form: str = "sharp") -> float:
    r"""Lower bound for uniform averaging if the minimum is on the boundary of the constraint set.

    Setting: f = (1/2)||x||^2 + x_1 on the box [0, 1]^d, g = x + (Z, 0, ...), Z uniform on [-1, 3], projected SGD with
    the step size c/(t + 1).
    Kind: lower.

    Title (sharp): Uniform averaging on the boundary of the constraint set: at least of the order log(T)/T.
    Statement (sharp): On ||x||^2/2 + x_1 over the box [0, 1]^d, with noise uniform on [-1, 3] and steps c/t, E
    f(xbar_T) - f* >= (c/(8 T)) (1/T_0 + ... + 1/(T - 1)), T_0 = max(1, c), from any start.
    Latex (sharp): \mathbb{E}f(\bar x_T)-f^*\ge\frac{c}{8T}\sum_{t=T_0}^{T-1}\frac1t
    Attained (sharp): up to 7/6 at T = 2 and 1.6 as T grows: see sgd.uniform-average.logarithm
    Proof (sharp): From t >= c on (1 - c/t) x_t >= 0, so that E x_{t+1} >= (c/t) E max(0, -Z) = c/(8 t).
    Source (sharp): derived; [rakhlin2012making], Theorem 3, has 16 instead of 8.

    Statement (paper): For any start, E f(xbar_T) - f* >= (c/(16 T)) (1/T_0 + ... + 1/(T - 1)), T_0 = max(2, c/2)
    rounded up.
    Source (paper): [rakhlin2012making], Theorem 3.

    >>> [round(sgd_uniform_average_lower(5, form=form), 6) for form in ("sharp", "paper")]  # (1 + 13/12)/40, 13/12/80
    [0.052083, 0.013542]
    """
    share, first = (8.0, max(1.0, c)) if form == "sharp" else (16.0, max(2.0, c / 2.0))
    return c / (share * steps) * math.fsum(1.0 / t for t in range(math.ceil(first), int(steps)))


@formula("c > 0")
def sgd_uniform_average_logarithm(c: float = 1.0) -> float:
    r"""The factor of log T in T E f(xbar_T), in the construction of :func:`sgd_uniform_average_lower`.

    Setting: as for :func:`sgd_uniform_average_lower`.
    Statement: (T E f(xbar_T) - S E f(xbar_S))/log(T/S) -> c kappa for S -> infinity, kappa = sum over n >= 1 of
    E[(S_n)^+]/n, where S_n is the sum of n numbers that are uniform on [-3, 1]: 0.2020. (Theorem 3 has c/16.)
    Kind: rate.
    Source: derived: V_t = t x_1/c follows V_{t+1} = max(0, V_t - Z) up to terms of the order 1/t, Lindley's recursion,
    whose stationary mean is Spitzer's sum; x_1 adds c E V/t to T times the mean, and its square tends to 0.

    Title (uniform-average.logarithm): The factor of the logarithm in uniform averaging.
    Statement (uniform-average.logarithm): In that construction T (E f(xbar_T) - f*) grows by c kappa for each unit of
    log T, kappa = 0.2020; the averages of the last half and with weights t + 1 do not grow.
    Latex (uniform-average.logarithm): \frac{T\,\mathbb{E}[f(\bar x_T)-f^*]-S\,\mathbb{E}[f(\bar
    x_S)-f^*]}{\log(T/S)}\to c\sum_{n\ge1}\frac{\mathbb{E}[S_n^+]}{n}
    Proof (uniform-average.logarithm): t x_t/c follows V+ = max(0, V - Z), Lindley's recursion, whose stationary mean is
    Spitzer's sum; the mean of c E V/t over t < T is c kappa log(T)/T.
    Source (uniform-average.logarithm): derived; sharpens the factor c/16 of [rakhlin2012making], Theorem 3.

    >>> round(sgd_uniform_average_logarithm(), 4)
    0.202
    """
    kappa = Fraction(0)
    for n in range(1, 60):  # S_n = n - 4 (sum of n uniform numbers); its positive part by the law of Irwin and Hall
        m = n + 1
        terms = sum(Fraction((-1) ** k * math.comb(n, k)) * (Fraction(n, 4) - k) ** m for k in range(n // 4 + 1))
        kappa += Fraction(4 * terms) / (math.factorial(m) * n)
    return c * float(kappa)


@formula("of in ('distance', 'gap')")
def polyak_ruppert(hessian: ArrayLike, covariance: ArrayLike, of: str = "distance") -> float:
    r"""The optimal limit of T times the error of the uniform average of SGD near a minimum.

    Setting: gradients H (x - x*) + xi, xi of mean zero and covariance C, independent; a constant step size below 2/L,
    or steps proportional to t^-a, 1/2 < a < 1.
    Source: Polyak, Juditsky, SIAM J. Control Optim. 30 (1992), Theorem 1; on the quadratic derived.

    Title (distance): Polyak-Ruppert: the limit of uniform averaging for every constant step.
    Statement (distance): T E||xbar_T - x*||^2 -> tr(H^-1 C H^-1) and T (E f(xbar_T) - f*) -> tr(H^-1 C)/2, for every
    constant step below 2/L.
    Latex (distance): T\,\mathbb{E}\|\bar x_T-x^*\|^2\to\operatorname{tr}(H^{-1}CH^{-1}),\quad T\,\mathbb{E}[f(\bar
    x_T)-f^*]\to\tfrac12\operatorname{tr}(H^{-1}C)
    Attained (distance): in the limit, on every quadratic
    Proof (distance): H xbar_T = (x_0 - x_T)/(gamma T) minus the mean of T noise terms.

    Statement (gap): T (E f(xbar_T) - f*) -> tr(H^-1 C)/2 for every step size.

    Kind (distance, gap): identity.

    hessian (array_like, shape (d,) or (d, d)): H, positive definite; a vector is a diagonal.
    covariance (float or array_like, shape (), (d,) or (d, d)): C; a number c stands for c I.

    >>> polyak_ruppert([1.0, 2.0], 4.0), polyak_ruppert([1.0, 2.0], 4.0, of="gap")  # 4 + 1, (4 + 2)/2
    (5.0, 3.0)
    """
    H, C = np.atleast_1d(np.asarray(hessian, float)), np.asarray(covariance, float)
    d = H.shape[0]
    require(d >= 1 and H.shape in ((d,), (d, d)), "hessian", f"shape {H.shape}", "shape (d,) or (d, d)")
    require(C.shape in ((), (d,), (d, d)), "covariance", f"shape {C.shape}", f"a number, shape ({d},) or ({d}, {d})")
    H = np.diag(H) if H.ndim == 1 else H
    C = np.diag(np.broadcast_to(C, (d,))) if C.ndim < 2 else C
    require(bool(np.linalg.eigvalsh((H + H.T) / 2.0)[0] > 0), "hessian", hessian, "positive definite")
    require(
        bool(np.linalg.eigvalsh((C + C.T) / 2.0)[0] >= -1e-12 * np.abs(C).max()),
        "covariance",
        covariance,
        "positive semi-definite",
    )
    once = np.linalg.solve(H, C)
    return float(np.trace(once) / 2.0 if of == "gap" else np.trace(np.linalg.solve(H, once.T)))
