"""Methods with unbiased compressed differences: DCGD, DIANA, MARINA, DASHA, ProxSkip, and QSVRG.

The methods have N workers with f = mean f_i and exact gradients; f is L-smooth, f_i is L_i-smooth, and L~^2 is the mean
of the L_i^2.  Their compressors draw independently: E Q(v) = v, E||Q(v) - v||^2 <= omega ||v||^2.

QSVRG is quantized SGD with variance reduction from Alistarh et al., "QSGD", NIPS 2017, section 3.2.  In an epoch from y
every worker sends, in each of T steps, Q(grad f_j(x) - grad f_j(y) + grad f(y)) for a row j; the next y is the mean of
the T iterates.  f is the mean of convex, L-smooth f_j, and mu-strongly convex.
"""

from __future__ import annotations

import math

from ...core import require
from ..closed_form import formula

# --- Steps and rates -------------------------------------------------------------------------------------------------


@formula("largest > 0", "workers > 0")
def dcgd_step(lipschitz: float, *, omega: float, workers: float, largest: float) -> float:
    r"""Longest step of DCGD's theorem.

    Setting: unbiased compressed gradients, f_i convex and L_i-smooth; see :func:`dcgd_rate`.
    Statement: gamma <= 1/(L + 2 omega L_max/N).
    Kind: identity.
    Source: derived, see :func:`dcgd_rate`; [khirirat2018distributed].
    workers: N; for correlated messages omega divided by the variance factor of their mean.
    largest: L_max, the largest L_i.

    >>> dcgd_step(1.0, omega=2.0, workers=4, largest=1.0)
    0.5
    """
    return 1.0 / (lipschitz + 2.0 * omega * largest / workers)


@formula("0 < step * mu <= 1", "0 < mu <= lipschitz", "at_minimum >= 0", "workers > 0", "largest > 0", "split > 0")
def dcgd_rate(
    steps: int,
    *,
    step: float,
    mu: float,
    distance: float,
    omega: float,
    workers: float,
    at_minimum: float,
    variance: float = 0.0,
    lipschitz: float | None = None,
    largest: float = 1.0,
    split: float = 1.0,
) -> float:
    r"""Bound on the squared distance after T steps of DCGD, gradient descent with unbiased compressed gradients.

    Setting: x <- x - gamma mean Q(g_i), g_i an unbiased gradient of f_i with the variance sigma^2; f_i convex and
    L_i-smooth, f = mean f_i L-smooth and mu-strongly convex; any s > 0 with gamma (L + (1 + 1/s) omega L_max/N) < 2.
    Statement: E||x_T - x*||^2 <= (1 - r)^T ||x_0 - x*||^2 + (1 - (1 - r)^T) gamma^2 ((1 + s) omega G* + (1 + omega)
    sigma^2)/(N r), r = gamma mu (2 - gamma (L + (1 + 1/s) omega L_max/N)), G* = mean ||grad f_i(x*)||^2. With s = 1 and
    gamma at most :func:`dcgd_step`, r >= gamma mu.
    Kind: tight.
    Latex: \mathbb{E}\|x_T-x^*\|^2\le(1-r)^T\|x_0-x^*\|^2+\frac{1-(1-r)^T}r\,
    \frac{\gamma^2((1+s)\omega G^*+(1+\omega)\sigma^2)}N,\quad
    r=\gamma\mu\big(2-\gamma(L+(1+\tfrac1s)\tfrac{\omega L_{\max}}N)\big)
    Attained: by mu ||x||^2/2 for all workers with random sparsification, s to infinity; and in the first step from x*,
    s to 0.
    Proof: E||g||^2 <= ||grad f||^2 + (omega/N) mean ||grad f_i||^2 + (1 + omega) sigma^2/N; mean ||grad f_i||^2 <= (1 +
    s) G* + (1 + 1/s) mean ||grad f_i - grad f_i(x*)||^2, whose mean is at most L_max <grad f, x - x*>; ||grad f||^2 <=
    L <grad f, x - x*>, and <grad f, x - x*> >= mu ||x - x*||^2.
    Source: derived. For exact gradients: [khirirat2018distributed].
    at_minimum: G*, the mean of ||grad f_i(x*)||^2.
    lipschitz: L; if it is omitted, r = gamma mu, for s = 1 and steps up to :func:`dcgd_step`.
    largest: L_max, the largest L_i.
    split: s.

    >>> dcgd_rate(1, step=0.5, mu=1.0, distance=1.0, omega=1.0, workers=2, at_minimum=1.0)
    0.75
    >>> dcgd_rate(1, step=0.5, mu=1.0, distance=1.0, omega=0.0, workers=1, at_minimum=0.0, lipschitz=1.0)
    0.25
    """
    noise, r = (1.0 + split) * omega * at_minimum + (1.0 + omega) * variance, step * mu
    require(lipschitz is not None or split == 1, "split", split, "1 without lipschitz")
    if lipschitz is not None:
        r *= 2.0 - step * (lipschitz + (1.0 + 1.0 / split) * omega * largest / workers)
    require(r > 0.0, "step", step, "gamma (L + (1 + 1/s) omega L_max/N) below 2")
    left = (1.0 - r) ** steps
    return left * distance + (1.0 - left) * step**2 * noise / (workers * r)


@formula("largest > 0", "workers > 0")
def diana_step(lipschitz: float, *, omega: float, workers: float, largest: float) -> float:
    r"""Longest step of DIANA's theorem.

    Setting: f_i convex and L_i-smooth, alpha <= 1/(1 + omega); see :func:`diana_rate`.
    Statement: gamma <= 1/(L + 6 omega L_max/N).
    Kind: identity.
    Source: [gorbunov2020unified], the corollary about DIANA, from memory, with L_max in place of L; derived again, see
    :func:`diana_rate`. The method is [mishchenko2019distributed], whose step has other constants.
    workers: N; for correlated messages omega divided by the variance factor of their mean.
    largest: L_max, the largest L_i.

    >>> diana_step(1.0, omega=2.0, workers=4, largest=1.0)
    0.25
    """
    return 1.0 / (lipschitz + 6.0 * omega * largest / workers)


@formula("0 < step * mu <= 1", "start >= 0", "0 < alpha <= 1", "alpha * (1 + omega) <= 1 + 1e-12", "workers > 0")
def diana_rate(
    steps: int,
    *,
    step: float,
    mu: float,
    alpha: float,
    start: float,
    omega: float,
    workers: float,
    variance: float = 0.0,
) -> float:
    r"""Bound on DIANA's Lyapunov function after T steps.

    Setting: m_i = Q(g_i - h_i), x <- x - gamma mean (h_i + m_i), h_i <- h_i + alpha m_i with alpha <= 1/(1 + omega),
    g_i an unbiased gradient of f_i with the variance sigma^2; f_i convex and L_i-smooth, f = mean f_i L-smooth and
    mu-strongly convex; gamma at most :func:`diana_step`.
    Statement: E V_T <= (1 - r)^T V_0 + gamma^2 (1 + 5 omega) sigma^2/(N r), r = min(gamma mu, alpha/2), V = ||x -
    x*||^2 + 4 omega gamma^2/(N alpha) mean ||h_i - grad f_i(x*)||^2.
    Kind: upper.
    Latex: \mathbb{E}V_T\le(1-r)^TV_0+\frac{\gamma^2(1+5\omega)\sigma^2}{Nr},\quad r=\min(\gamma\mu,\tfrac\alpha2)
    Proof: E||h_i+ - h_i*||^2 <= (1 - alpha) ||h_i - h_i*||^2 + alpha ||grad f_i - h_i*||^2 + alpha sigma^2; the squared
    error of the mean message is at most (omega/N) mean ||grad f_i - h_i||^2 <= (2 omega/N) (mean ||grad f_i - h_i*||^2
    + mean ||h_i - h_i*||^2), h_i* = grad f_i(x*), mean ||grad f_i - h_i*||^2 <= 2 L_max (f - f*); the factor of f - f*
    is 2 gamma - gamma^2 (2 L + 12 omega L_max/N) >= 0.
    Source: derived; the method is [mishchenko2019distributed], and V is that of [gorbunov2020unified], from memory.
    start: V_0.

    >>> diana_rate(2, step=0.25, mu=1.0, alpha=0.5, start=16.0, omega=1.0, workers=2)
    9.0
    """
    r = min(step * mu, alpha / 2.0)
    return (1.0 - r) ** steps * start + step**2 * (1.0 + 5.0 * omega) * variance / (workers * r)


@formula("quadratic > 0", "rows >= 0", "workers > 0")
def marina_step(
    lipschitz: float,
    *,
    p: float,
    omega: float,
    workers: float,
    quadratic: float,
    rows: float = 0.0,
    batch: int = 1,
) -> float:
    r"""Longest step in the theorems of MARINA and of VR-MARINA.

    Setting: f L-smooth, f_i L_i-smooth, exact gradients or B rows drawn independently; see :func:`marina_rate`.
    Statement: gamma <= 1/(L + sqrt((1 - p)/(p N) (omega L~^2 + (1 + omega) l^2/B))), l^2 the mean of the rows' squared
    smoothness constants, 0 for exact gradients.
    Kind: identity.
    Source: [gorbunov2021marina], Theorems 2.1 and 3.1, with L~ in place of L; derived again.
    workers: N; for correlated messages omega divided by the variance factor of their mean.
    quadratic: L~, the root of the mean of the L_i^2.
    rows: l, at most the largest smoothness constant of a row; 0 with exact gradients.

    >>> marina_step(1.0, p=0.5, omega=4.0, workers=4, quadratic=1.0)
    0.5
    """
    sampled = omega * quadratic**2 + (1.0 + omega) * rows**2 / batch
    return 1.0 / (lipschitz + math.sqrt((1.0 - p) / (p * workers) * sampled))


@formula
def marina_rate(steps: int, *, step: float, gap: float) -> float:
    r"""Bound on the mean squared gradient of MARINA and of VR-MARINA.

    Setting: x+ = x - gamma g, g_0 = grad f(x_0); with probability p g+ = grad f(x+), else g+ = g + mean Q(d_i), d_i =
    grad f_i(x+) - grad f_i(x), or the mean of the same difference over B rows drawn independently; f is L-smooth, f_i
    L_i-smooth; gamma at most :func:`marina_step`.
    Statement: the mean of E||grad f(x_t)||^2 over t < T is at most 2 (f(x_0) - f*)/(gamma T).
    Kind: upper.
    Latex: \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2(f(x_0)-f^*)}{\gamma T}
    Proof: E||g+ - grad f(x+)||^2 <= (1 - p) ||g - grad f(x)||^2 + (1 - p) A ||x+ - x||^2, A = (omega L~^2 + (1 + omega)
    l^2/B)/N; f(x+) <= f - gamma/2 ||grad f||^2 - (1/(2 gamma) - L/2) ||x+ - x||^2 + gamma/2 ||g - grad f||^2; add
    gamma/(2 p) times the first.
    Source: [gorbunov2021marina], Theorems 2.1 and 3.1; derived again.

    >>> marina_rate(100, step=0.5, gap=1.0)
    0.04
    """
    return 2.0 * gap / (step * steps)


@formula("quadratic > 0", "workers > 0", "form in ('smooth', 'paper')")
def dasha_step(lipschitz: float, *, omega: float, workers: float, quadratic: float, form: str = "smooth") -> float:
    r"""Longest step of DASHA's theorem, with exact gradients and a = 1/(1 + 2 omega).

    Setting: f L-smooth, f_i L_i-smooth, exact gradients; see :func:`dasha_rate`.
    Statement: gamma <= 1/(L + L~ sqrt(c omega (2 omega + 1)/N)) with the constant c of the table.
    Kind: identity.

    Statement (smooth): gamma <= 1/(L + L~ sqrt(2 omega (2 omega + 1)/N)), also without convexity.
    Source (smooth): derived, see dasha_rate.

    Statement (paper): gamma <= 1/(L + L~ sqrt(16 omega (2 omega + 1)/N)).
    Source (paper): [tyurin2023dasha], Theorem 6.1.

    workers: N; for correlated messages omega divided by the variance factor of their mean.
    quadratic: L~, the root of the mean of the L_i^2.

    >>> dasha_step(1.0, omega=4.0, workers=8, quadratic=1.0)
    0.25
    """
    c = 16.0 if form == "paper" else 2.0
    return 1.0 / (lipschitz + quadratic * math.sqrt(c * omega * (2.0 * omega + 1.0) / workers))


@formula("first >= 0", "workers > 0")
def dasha_rate(steps: int, *, step: float, gap: float, omega: float, workers: float, first: float) -> float:
    r"""Bound on the mean squared gradient of DASHA, which starts with g_i = h_i = 0.

    Setting: m_i = Q(grad f_i(x) - h_i - a (g_i - h_i)), h_i <- grad f_i(x), g_i <- g_i + m_i, x <- x - gamma mean g_i
    with a = 1/(1 + 2 omega); f is L-smooth, f_i L_i-smooth; gamma at most :func:`dasha_step`.
    Statement: the mean of E||grad f(x_t)||^2 over t < T is at most 2 (f(x_0) - f*)/(gamma T) + omega (1 + 2 omega)
    G_0/(N T), G_0 = mean ||grad f_i(x_0)||^2.
    Kind: upper.
    Latex: \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2(f(x_0)-f^*)}{\gamma
    T}+\frac{\omega(1+2\omega)G_0}{NT}
    Proof: e_i+ = (1 - a) e_i + an error with E||.||^2 <= omega ||d_i - a e_i||^2, d_i the change of the gradient; (1 -
    a)^2 + 2 omega a^2 = 1 - a; add gamma/(2 a (2 - a)) (||mean e_i||^2 + 2 omega a/N mean ||e_i||^2) to f.
    Source: derived; the method is that of [tyurin2023dasha].
    first: G_0.

    >>> dasha_rate(100, step=0.5, gap=1.0, omega=1.0, workers=3, first=1.0)
    0.05
    """
    return 2.0 * gap / (step * steps) + omega * (1.0 + 2.0 * omega) * first / (workers * steps)


@formula("largest > 0")
def prox_skip_step(largest: float) -> float:
    """Longest step of ProxSkip's theorem.

    Setting: f_i L_max-smooth and mu-strongly convex, exact gradients; see :func:`prox_skip_rate`.
    Statement: gamma <= 1/L_max.
    Kind: identity.
    Source: [mishchenko2022proxskip], Theorem 3.6.
    largest: L_max, the largest L_i.

    >>> prox_skip_step(4.0)
    0.25
    """
    return 1.0 / largest


@formula("0 < step * mu <= 1", "form in ('sharp', 'paper')")
def prox_skip_rate(step: float, *, mu: float, p: float, form: str = "sharp") -> float:
    r"""Contraction factor of a step of ProxSkip for workers that average (Scaffnew).

    Setting: x^_i = x_i - gamma (grad f_i(x_i) - h_i); with probability p, jointly for all workers, x_i <- mean x^_j,
    h_i <- h_i + p/gamma (x_i - x^_i), else x_i <- x^_i; sum h_i = 0 at the start; every f_i is L_max-smooth and
    mu-strongly convex; gamma at most :func:`prox_skip_step`.
    Proof: With w_i = x_i - gamma grad f_i(x_i), x^_i = w_i + gamma h_i: averaging projects x^ - (gamma/p) h, so that E
    Psi+ <= mean ||w_i - w_i*||^2 + (1 - p^2) (gamma/p)^2 mean ||h_i - h_i*||^2, and ||w_i - w_i*|| <= (1 - gamma mu)
    ||x_i - x*||.

    Statement (sharp): E Psi+ <= max((1 - gamma mu)^2, 1 - p^2) Psi, Psi = mean ||x_i - x*||^2 + (gamma/p)^2 mean ||h_i
    - grad f_i(x*)||^2.
    Kind (sharp): tight.
    Latex (sharp): \mathbb{E}\Psi_+\le\max\big((1-\gamma\mu)^2,1-p^2\big)\Psi
    Attained (sharp): by mu x^2/2 for all workers where all have the same x, and by x^2/(2 gamma) where they differ in
    h_i.
    Source (sharp): derived; [mishchenko2022proxskip], Theorem 3.6, has 1 - min(gamma mu, p^2).

    Statement (paper): E Psi+ <= (1 - min(gamma mu, p^2)) Psi with the same Psi.
    Kind (paper): upper.
    Latex (paper): \mathbb{E}\Psi_+\le(1-\min(\gamma\mu,p^2))\Psi
    Source (paper): [mishchenko2022proxskip], Theorem 3.6; derived again.

    >>> prox_skip_rate(0.25, mu=1.0, p=0.5), prox_skip_rate(0.25, mu=1.0, p=0.75)
    (0.75, 0.5625)
    """
    return max((1.0 - step * mu) ** 2, 1.0 - p**2) if form == "sharp" else 1.0 - min(step * mu, p**2)


@formula("0 <= square_of_mean <= mean_square * (1 + 1e-12)", "form in ('PermK', 'independent', 'shared')")
def perm_k_error(workers: int, mean_square: float, square_of_mean: float, form: str = "PermK") -> float:
    r"""Mean squared error of the mean of N messages with the N parts of one permutation.

    Setting: Each of N workers sends in expectation a fraction 1/N of the coordinates of its v_i, times N.
    Kind: identity.
    Proof: One worker, drawn uniformly, sends a coordinate: the mean of the messages is there the v_ij of a random
    worker i.
    Source: derived; [szlendak2022permutation], where PermK is defined.

    Title (PermK): Disjoint parts of the coordinates have no error if all vectors are equal.
    Statement (PermK): With the N parts of one permutation, E||mean Q_i(v_i) - mean v_i||^2 = mean ||v_i||^2 - ||mean
    v_i||^2, exactly.
    Latex (PermK): \mathbb{E}\|\tfrac1N\sum_iQ_i(v_i)-\bar v\|^2=\tfrac1N\sum_i\|v_i\|^2-\|\bar v\|^2

    Statement (independent): With rand-k and k = d/N, independently for all workers, the error is (1 - 1/N) mean
    ||v_i||^2.
    Latex (independent): (1-\tfrac1N)\,\tfrac1N\sum_i\|v_i\|^2

    Statement (shared): With rand-k, k = d/N and the same coordinates for all workers, the error is (N - 1) ||mean
    v_i||^2.
    Latex (shared): (N-1)\,\|\bar v\|^2

    mean_square: (1/N) sum_i ||v_i||^2.
    square_of_mean: The square of the mean's norm.

    >>> perm_k_error(4, mean_square=1.0, square_of_mean=1.0), perm_k_error(4, 1.0, 1.0, form="independent")
    (0.0, 0.75)
    """
    if form == "shared":
        return (workers - 1.0) * square_of_mean
    if form == "independent":
        return (1.0 - 1.0 / workers) * mean_square
    return mean_square - square_of_mean


# --- QSVRG -----------------------------------------------------------------------------------------------------------


@formula("anchor_gap >= 0")
def svrg_second_moment(gap: float, anchor_gap: float, lipschitz: float) -> float:
    r"""Bound on the second moment of a variance-reduced gradient.

    Setting: f is the mean of convex, L-smooth f_j, with the minimizer x*; j is uniform.
    Statement: E||grad f_j(x) - grad f_j(y) + grad f(y)||^2 <= 4 L (f(x) - f*) + 4 L (f(y) - f*).
    Kind: upper; attained up to the factor 1 - 3/(4 n) by f_j = (L/2) x_j^2 at y = -x.
    Latex: \mathbb{E}\|\nabla f_j(x)-\nabla f_j(y)+\nabla f(y)\|^2\le 4L\,(f(x)-f^*)+4L\,(f(y)-f^*)
    Attained: up to 1 - 3/(4 n): f_j = (L/2) x_j^2, y = -x
    Source: Johnson, Zhang, NIPS 2013, in the proof of Theorem 1; [bubeck2015convex], Lemma 6.4 and Theorem 6.5: ||a +
    b||^2 <= 2||a||^2 + 2||b||^2 around grad f_j(x*), and E||grad f_j(x) - grad f_j(x*)||^2 <= 2 L (f(x) - f*).
    gap, anchor_gap: f(x) - f* and f(y) - f*.

    >>> svrg_second_moment(0.5, 0.25, lipschitz=2.0)
    6.0
    """
    return 4.0 * lipschitz * gap + 4.0 * lipschitz * anchor_gap


@formula(
    "inner >= 1",
    "0 < mu <= lipschitz",
    "step > 0",
    "step * (2 * lipschitz * (1 - 1 / workers) + 4 * lipschitz * (1 + omega) / workers) < 2",
)
def qsvrg_factor(
    inner: int, *, step: float, lipschitz: float, mu: float, omega: float = 0.0, workers: int = 1
) -> float:
    r"""Factor by which an epoch of QSVRG reduces the gap.

    Setting: as in this module's docstring; E Q(v) = v, E||Q(v) - v||^2 <= omega ||v||^2; N workers draw and quantize
    independently; a constant step size with gamma A < 2.
    Statement: E f(y+) - f* <= rho (f(y) - f*) with rho = (2/(mu gamma T) + gamma C)/(2 - gamma A), A = 2 L (1 - 1/N) +
    C and C = 4 L (1 + omega)/N.
    Kind: upper.
    Latex: \rho=\frac{2/(\mu\gamma T)+\gamma C}{2-\gamma A},\quad A=2L\big(1-\tfrac1N\big)+C,\ C=\tfrac{4L(1+\omega)}N
    Attained: no instance is known; its lemmas are attained
    Source: derived, after Johnson, Zhang, NIPS 2013, Theorem 1 (N = 1, omega = 0). In expectation ||x+ - x*||^2 <= ||x
    - x*||^2 - 2 gamma (f(x) - f*) + gamma^2 ||mean Q||^2; the second moment of the mean is at most (1 - 1/N) times
    ||grad f||^2 <= 2 L (f - f*) and (1 + omega)/N times that of svrg_second_moment; sum over the epoch.

    Title (rate): QSVRG reduces the gap by the factor 0.9 in an epoch.
    Statement (rate): With QSGD at s = sqrt(d), gamma = 1/(10 (1 + omega) L) and T = ceil(20 (1 + omega) L/mu), E f(y_p)
    - f* <= 0.9^p (f(y_0) - f*): an epoch's factor is at most 7/8.
    Latex (rate): \mathbb{E}f(y_p)-f^*\le 0.9^p\,(f(y_0)-f^*)
    Proof (rate): qsvrg.factor at these gamma and T: (1 + 0.4)/(2 - 0.4) for N = 1, and less for more workers.
    Source (rate): [alistarh2017qsgd], Theorem 3.6, which has gamma = O(1/L) and T = O(L/mu); the constants are derived.

    inner (int): T.

    >>> qsvrg_factor(20, step=0.1, lipschitz=1.0, mu=1.0)  # (1 + 0.4)/(2 - 0.4)
    0.875
    """
    anchor = 4.0 * lipschitz * (1.0 + omega) / workers
    left = 2.0 - step * (2.0 * lipschitz * (1.0 - 1.0 / workers) + anchor)
    return (2.0 / (mu * step * inner) + step * anchor) / left


@formula
def qsvrg_step(lipschitz: float, omega: float = 0.0) -> float:
    """The step of QSVRG.

    Setting: as for :func:`qsvrg_factor`.
    Statement: gamma = 1/(10 (1 + omega) L); with T = :func:`qsvrg_inner` an epoch's factor is at most 7/8 for every N.
    Kind: identity.
    Source: [alistarh2017qsgd], Theorem 3.6, requires gamma = O(1/L) and T = O(L/mu) and states the factor 0.9; the
    constants are those of [bubeck2015convex], Theorem 6.5, for L (1 + omega).

    >>> qsvrg_step(lipschitz=2.0, omega=0.25)
    0.04
    """
    return 1.0 / (10.0 * (1.0 + omega) * lipschitz)


@formula("0 < mu <= lipschitz")
def qsvrg_inner(lipschitz: float, mu: float, omega: float = 0.0) -> int:
    """Number of steps of an epoch of QSVRG.

    Setting: as for :func:`qsvrg_factor`.
    Statement: T = ceil(20 (1 + omega) L/mu).
    Kind: identity.
    Source: as for :func:`qsvrg_step`.

    >>> qsvrg_inner(lipschitz=2.0, mu=1.0, omega=0.25)
    50
    """
    return math.ceil(20.0 * (1.0 + omega) * lipschitz / mu * (1.0 - 1e-12))


@formula("inner >= 1", "float_bits >= 1", "bits > 0", "form in ('sharp', 'paper')")
def qsvrg_bits(d: int, inner: int, bits: float, float_bits: int = 32, form: str = "sharp") -> float:
    r"""Bits that a worker sends in an epoch of QSVRG.

    Setting: T messages of at most ``bits`` bits in expectation, and a full gradient in d floats of F bits.

    Statement (sharp): The bits are at most T bits + F d.
    Kind (sharp): tight for codes of fixed width.
    Latex (sharp): \mathrm{bits}\le T\,\mathbb{E}|\mathrm{code}(Q_s)| + Fd\ \ [\le (F+2.8d)(T+1)+Fd]
    Source (sharp): derived; [alistarh2017qsgd], Theorem 3.6, has (F + 2.8 d)(T + 1) + F d.

    Statement (paper): The bits are at most (F + 2.8 d)(T + 1) + F d, for s = sqrt(d) levels, independent of ``bits``.
    Kind (paper): upper.
    Source (paper): [alistarh2017qsgd], Theorem 3.6, with the code of its Corollary 3.3.

    inner (int): T.
    bits (float): Expected bits of a message.
    float_bits (int): F.

    >>> qsvrg_bits(d=100, inner=10, bits=232.0), qsvrg_bits(d=100, inner=10, bits=232.0, form="paper")
    (5520.0, 6632.0)
    """
    quantized = inner * bits if form == "sharp" else (float_bits + 2.8 * d) * (inner + 1)
    return quantized + float_bits * d
