"""Averages of SGD's iterates: smooth functions, suffixes, the lower bound for plain averaging, and the optimal limit.

Steps are counted as in the package: t = 0, 1, ..., T - 1; averages are over x_0, ..., x_{T-1}.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .closed_form import formula
from .sgd import sgd_inverse_time


@formula("lipschitz >= mu")
def sgd_smooth_last(steps: int, *, mu: float, lipschitz: float, second_moment: float, form: str = "sharp") -> float:
    r"""Suboptimality of the last iterate of a smooth function with the step size 1/(mu (t + 1)).

    Title (sharp): The last iterate on smooth functions: constant 1/2.
    Setting: f is mu-strongly convex, f(x) - f* <= (L/2)||x - x*||^2, E||g_t||^2 <= G^2, any start, projection allowed.
    Statement: E f(x_T) - f* <= (L/2) times :func:`sgd_inverse_time`; with Q = G^2/mu^2 that is at most sharp: (L/2) Q
    (T - H_T)/(T (T - 1)); simple: L Q/(2 (T + 1)); paper: 2 L Q/(T + 1).
    Statement (sharp): Steps 1/(mu t) on a smooth function: E f(x_T) - f* <= (L/2) (G^2/mu^2) (T - H_T)/(T (T - 1)), at
    most L G^2/(2 mu^2 (T + 1)); the constant 1/2 is attained.
    Kind: rate and upper; the constant 1/2 of the simple form cannot be improved.
    Latex (sharp):
    \mathbb{E}f(x_T)-f^*\le\frac{L}{2}\,\frac{G^2}{\mu^2}\,\frac{T-H_T}{T(T-1)}\le\frac{LG^2}{2\mu^2(T+1)}
    Kind (sharp): tight.
    Latex (sharp):
    \mathbb{E}f(x_T)-f^*\le\frac{L}{2}\,\frac{G^2}{\mu^2}\,\frac{T-H_T}{T(T-1)}\le\frac{LG^2}{2\mu^2(T+1)}
    Attained (sharp): (mu/2) x^2 at every T, with noise that fills E g^2 up to G^2
    Proof (sharp): f - f* <= (L/2)||x - x*||^2 and sgd.inverse-time.bound.
    Source: [rakhlin2012making], Theorem 1 (paper, whose T counts the start); sharp is derived.
    Source (sharp): derived; [rakhlin2012making], Theorem 1, has 2 instead of 1/2.
    form ({"sharp", "simple", "paper"}):

    >>> [round(sgd_smooth_last(3, mu=1.0, lipschitz=2.0, second_moment=1.0, form=form), 4)
    ...  for form in ("sharp", "simple", "paper")]
    [0.1944, 0.25, 1.0]
    """
    return lipschitz / 2.0 * sgd_inverse_time(steps, mu=mu, second_moment=second_moment, form=form)


@formula("form in ('sharp', 'paper')", "0 < alpha < 1")
def sgd_suffix_average(steps: int, *, alpha: float, mu: float, second_moment: float, form: str = "sharp") -> float:
    r"""Suboptimality of the mean of the last alpha T iterates with the step size 1/(mu (t + 1)).

    Title (sharp): The mean of the last iterates.
    Setting: f is mu-strongly convex, kinks allowed, E||g_t||^2 <= G^2, any start, projection allowed; alpha T is an
    integer: ``Suffix((1 - alpha) T)``.
    Statement: E f(mean) - f* is at most G^2/(mu T) times sharp: (1 + log(1/(1 - alpha)))/(2 alpha); paper: (2 + 2.5
    log(1/(1 - alpha)))/alpha.
    Statement (sharp): Steps 1/(mu t): the mean of the last alpha T iterates has E f - f* <= (1 + log(1/(1 - alpha)))
    G^2/(2 alpha mu T).
    Kind: upper. :func:`sgd_average` is smaller for the same steps and weights.
    Latex (sharp): \mathbb{E}f(\bar x)-f^*\le\frac{1+\log\frac1{1-\alpha}}{2\alpha}\,\frac{G^2}{\mu T}
    Attained (sharp): (mu/2) x^2 with noise that fills E g^2 up to G^2, as T grows, but for Jensen's inequality and what
    x_T leaves.
    Proof (sharp): sgd.average, with sums in closed form.
    Source: [rakhlin2012making], Theorem 5 (paper); sharp is derived: with t_0 = (1 - alpha) T and a_t <= Q/t, the sum
    of E f(x_t) - f* from t_0 on is at most (mu/2) t_0 a_{t_0} + (G^2/(2 mu)) (1/(t_0 + 1) + ... + 1/T).
    Source (sharp): derived; sharpens [rakhlin2012making], Theorem 5, by a factor between 4 and 5.

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
    r"""Lower bound for plain averaging if the minimum is on the boundary of the constraint.

    Title (sharp): Plain averaging at the edge of the constraint: at least log(T)/T.
    Setting: f = (1/2)||x||^2 + x_1 on the box [0, 1]^d, g = x + (Z, 0, ...), Z uniform on [-1, 3], projected SGD with
    the step size c/(t + 1).
    Statement: for any start, E f(xbar_T) - f* is at least sharp: (c/(8 T)) (1/T_0 + ... + 1/(T - 1)), T_0 = max(1, c)
    rounded up; paper: (c/(16 T)) (1/T_0 + ... + 1/(T - 1)), T_0 = max(2, c/2) rounded up.
    Statement (sharp): On ||x||^2/2 + x_1 over the box [0, 1]^d, with noise uniform on [-1, 3] and steps c/t, E
    f(xbar_T) - f* >= (c/(8 T)) (1/T_0 + ... + 1/(T - 1)), T_0 = max(1, c), from any start.
    Kind: lower.
    Latex (sharp): \mathbb{E}f(\bar x_T)-f^*\ge\frac{c}{8T}\sum_{t=T_0}^{T-1}\frac1t
    Attained (sharp): up to 7/6 at T = 2 and 1.6 as T grows: see sgd.uniform-average.logarithm
    Proof (sharp): From t >= c on (1 - c/t) x_t >= 0, so that E x_{t+1} >= (c/t) E max(0, -Z) = c/(8 t).
    Source: [rakhlin2012making], Theorem 3 (paper); sharp is derived: from t >= c on (1 - c/t) x_t >= 0, so that E
    x_{t+1} >= (c/t) E max(0, -Z) = c/(8 t).
    Source (sharp): derived; [rakhlin2012making], Theorem 3, has 16 instead of 8.

    >>> [round(sgd_uniform_average_lower(5, form=form), 6) for form in ("sharp", "paper")]  # (1 + 13/12)/40, 13/12/80
    [0.052083, 0.013542]
    """
    share, first = (8.0, max(1.0, c)) if form == "sharp" else (16.0, max(2.0, c / 2.0))
    return c / (share * steps) * math.fsum(1.0 / t for t in range(math.ceil(first), int(steps)))


@formula("c > 0")
def sgd_uniform_average_logarithm(c: float = 1.0) -> float:
    r"""The factor of log T in T E f(xbar_T), in the construction of :func:`sgd_uniform_average_lower`.

    Title (uniform-average.logarithm): The logarithm of plain averaging, with its factor.
    Setting: as there.
    Statement: (T E f(xbar_T) - S E f(xbar_S))/log(T/S) -> c kappa for S -> infinity, kappa = sum over n >= 1 of
    E[(S_n)^+]/n, where S_n is the sum of n numbers that are uniform on [-3, 1]: 0.2020. (Theorem 3 has c/16.)
    Statement (uniform-average.logarithm): In that construction T (E f(xbar_T) - f*) grows by c kappa for each unit of
    log T, kappa = 0.2020; the averages of the last half and with weights t + 1 do not grow.
    Kind: rate.
    Latex (uniform-average.logarithm): \frac{T\,\mathbb{E}[f(\bar x_T)-f^*]-S\,\mathbb{E}[f(\bar
    x_S)-f^*]}{\log(T/S)}\to c\sum_{n\ge1}\frac{\mathbb{E}[S_n^+]}{n}
    Proof (uniform-average.logarithm): t x_t/c follows V+ = max(0, V - Z), Lindley's recursion, whose stationary mean is
    Spitzer's sum; the mean of c E V/t over t < T is c kappa log(T)/T.
    Source: derived: V_t = t x_1/c follows V_{t+1} = max(0, V_t - Z) up to terms of the order 1/t, Lindley's recursion,
    whose stationary mean is Spitzer's sum; x_1 adds c E V/t to T times the mean, and its square vanishes.
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
    r"""The limit of T times the error of the uniform average of SGD near a minimum, which is optimal.

    Title (distance): Polyak-Ruppert: the limit of plain averaging, for every constant step.
    Setting: gradients H (x - x*) + xi, xi of mean zero and covariance C, independent; a constant step size below 2/L,
    or steps proportional to t^-a, 1/2 < a < 1.
    Statement: T E||xbar_T - x*||^2 -> tr(H^-1 C H^-1) (distance) and T (E f(xbar_T) - f*) -> tr(H^-1 C)/2 (gap), for
    every step size.
    Statement (distance): T E||xbar_T - x*||^2 -> tr(H^-1 C H^-1) and T (E f(xbar_T) - f*) -> tr(H^-1 C)/2, whatever the
    constant step below 2/L.
    Kind: rate, an identity in the limit.
    Kind (distance): identity.
    Latex (distance): T\,\mathbb{E}\|\bar x_T-x^*\|^2\to\operatorname{tr}(H^{-1}CH^{-1}),\quad T\,\mathbb{E}[f(\bar
    x_T)-f^*]\to\tfrac12\operatorname{tr}(H^{-1}C)
    Attained (distance): in the limit, on every quadratic
    Proof (distance): H xbar_T = (x_0 - x_T)/(gamma T) minus the mean of T noises.
    Source: Polyak, Juditsky, SIAM J. Control Optim. 30 (1992), Theorem 1; on the quadratic derived: H xbar_T is minus
    the mean of the noises plus (x_0 - x_T)/(gamma T).
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
