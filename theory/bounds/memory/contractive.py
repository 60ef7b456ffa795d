"""Contractive error feedback (ConEF): the size of a compressed memory, and rates of SGD with it.

In all formulas p_t = gamma_t g_t + e_t, Delta_t = Q(p_t) is sent and e_{t+1} = C(p_t - Delta_t) is stored, e_0 = 0,
where E||Q(v) - v||^2 <= residual ||v||^2 and C is unbiased, E||C(v) - v||^2 <= theta ||v||^2, with independent random
numbers.  So ``residual`` is 1 - delta (the talk on ConEF calls it delta) and ``theta`` is the omega of the error
compressor.  ``equal C`` means that E||C(v) - v||^2 = theta ||v||^2 for every v, as for a fresh count sketch.

In the rates, steps are counted as in the package, t = 0, ..., T - 1, and all workers' gradients have the mean grad
f(x_t).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula

# --- The size of the memory ------------------------------------------------------------------------------------------


def below_frontier(theta: float, factor: float, frontier: str) -> None:
    """Raise ValueError for a memory whose mean square grows without bound; the message names the frontier."""
    require(factor < 1, "theta", theta, f"a number with kappa = {factor:.6g} below 1, that is {frontier}")


@formula
def conef_factor(theta: float, residual: float) -> float:
    r"""Growth factor of the mean square of a compressed memory in a step.

    Setting: ConEF without gradients, g_t = 0: e_{t+1} = C(e_t - Q(e_t)).
    Statement: E||e_{t+1}||^2 <= kappa E||e_t||^2 with kappa = (1 + theta) residual.
    Kind: tight (an equality if both compressors' errors are equalities, as for random-k and a fresh count sketch).
    Source: derived: E||C(u)||^2 = ||u||^2 + E||C(u) - u||^2. Algorithm: [li2023contractive].

    Title (frontier): Condition for a bounded compressed memory.
    Statement (frontier): Without gradients random-k and a fresh count sketch multiply E||e||^2 in every step by kappa =
    (1 + theta) r, so it tends to 0 if and only if kappa < 1; with independent buckets that is w > r (d - 1)/(1 - r).
    Kind (frontier): identity.
    Latex (frontier): \mathbb{E}\|e_{t+1}\|^2=(1+\theta)\,r\,\mathbb{E}\|e_t\|^2

    Title (quantizer): Quantizers that keep a memory bounded at 90 % compression.
    Statement (quantizer): With random-k and k = d/10 for the gradients, QSGD with 16 levels and a norm for every 40
    coordinates keeps kappa < 1 (about 6 bits a coordinate); with 4 levels kappa > 1 already for Gaussian vectors.
    Kind (quantizer): upper.
    Latex (quantizer): 0.9\,(1+\theta_{16})<1<0.9\,(1+\theta_4)
    Attained (quantizer): by vectors whose entries lie half-way between two levels.
    Proof (quantizer): theta is at most the closed form of QSGD's variance for a bucket; for a given vector it is the
    chord sum.
    Source (quantizer): derived; algorithm: [li2023contractive].

    Returns
    -------
    float
        kappa; the memory is bounded in mean square if it is below 1.

    >>> conef_factor(theta=0.5, residual=0.5), conef_factor(theta=9.0, residual=0.9)
    (0.75, 9.0)
    """
    return (1.0 + theta) * residual


@formula("version in ('conef', 'v1', 'v2')")
def conef_frontier(residual: float, version: str = "conef") -> float:
    """Variance of the error compressor from which a compressed memory is unbounded.

    Setting: ConEF, or iConEF in its version v1 or v2 (see :func:`iconef_variance`).
    Statement: kappa < 1 if and only if theta is below the number of the table.
    Kind: identity.
    Source: derived: solve (1 + theta) residual = 1, with theta^2 (v1) or theta residual (v2) in place of theta.

    Statement (conef): kappa < 1 if and only if theta < 1/residual - 1.

    Statement (v1): kappa < 1 if and only if theta < sqrt(1/residual - 1).

    Statement (v2): kappa < 1 if and only if theta < (1/residual - 1)/residual.

    Returns
    -------
    float
        theta; infinite if the residual is 0.

    >>> conef_frontier(0.8), conef_frontier(0.8, version="v1"), conef_frontier(0.8, version="v2")
    (0.25, 0.5, 0.3125)
    """
    if residual == 0:
        return math.inf
    theta = 1.0 / residual - 1.0
    return {"conef": theta, "v1": math.sqrt(theta), "v2": theta / residual}[version]


@formula("memory >= 0")
def conef_loss(theta: float, memory: float, workers: int = 1) -> float:
    r"""Bound on the mean squared error of compressing the memory in a step, given its size after the step.

    Setting: ConEF on N workers, each with E||e_{t+1}||^2 = M; C's random numbers are independent across workers.
    Statement: xi_t, the mean of C(u) - u over the workers, has the mean 0 and E||xi_t||^2 <= theta M/((1 + theta) N).
    Kind: tight (an equality if C's error is one: ``equal C``).
    Latex:
    x_t-\tfrac1N\sum_we_t^w=x_0-\sum_{s<t}\tfrac{\gamma}{N}\sum_wg_s^w-\sum_{s<t}\xi_s,\quad\mathbb{E}\|\xi_s\|^2=\frac{\theta}{(1+\theta)N}\mathbb{E}\|e_{s+1}\|^2
    Source: derived: E||C(u) - u||^2 <= theta ||u||^2 is equivalent to E||C(u) - u||^2 <= theta/(1 + theta) E||C(u)||^2.

    Title (identity): The error of a compressed memory has mean zero.
    Statement (identity): x_t minus the workers' mean memory is SGD's iterate minus the sum of the error compressor's
    errors; these have mean zero, are uncorrelated from step to step, and N workers divide the variance of their mean by
    N.
    Kind (identity): identity.
    Latex (identity):
    x_t-\tfrac1N\sum_we_t^w=x_0-\sum_{s<t}\tfrac{\gamma}{N}\sum_wg_s^w-\sum_{s<t}\xi_s,\quad\mathbb{E}\|\xi_s\|^2=\frac{\theta}{(1+\theta)N}\mathbb{E}\|e_{s+1}\|^2
    Proof (identity): x - mean e decreases by mean (Q(p) + C(p - Q(p)) - e), which is gamma mean g + xi with xi = mean
    (C(u) - u).

    memory: M.

    >>> conef_loss(0.5, 6.0, workers=4)
    0.5
    """
    return theta / (1.0 + theta) * memory / workers


@formula("version in ('v1', 'v2')")
def iconef_variance(theta: float, residual: float, version: str) -> float:
    r"""Relative variance theta_e of iConEF's memory, which is stored in two parts.

    Title: A compressed memory in two parts.
    Setting: a part a = C(u) (v1) or a = Q(u) (v2) of the error u is stored, and C(u - a) beside it, with fresh random
    numbers; e = a + C(u - a).
    Statement: E e = u and E||e - u||^2 <= theta_e ||u||^2 with theta_e = theta^2 (v1) or theta residual (v2). So all
    results for ConEF hold with theta_e in place of theta. v1 reduces the variance only if theta < 1, v2 always.
    Kind: identity (an equality if both compressors' errors are equalities).
    Latex: \theta_{\mathrm{v1}}=\theta^2,\qquad\theta_{\mathrm{v2}}=\theta r
    Source: derived: the mean squared error of C(u - a) is theta times ||u - a||^2, that of the first part.
    residual: 1 - delta of the gradient compressor, in [0, 1); v1 does not use it.

    Returns
    -------
    float
        theta_e.

    >>> iconef_variance(2.0, 0.75, version="v1"), iconef_variance(2.0, 0.75, version="v2")
    (4.0, 1.5)
    """
    return theta**2 if version == "v1" else theta * residual


@formula("form in ('sharp', 'minkowski')", "steps >= 0")
def conef_memory(
    theta: float, residual: float, step: float, second_moment: float, form: str = "sharp", steps: int | None = None
) -> float:
    r"""Bound on the mean squared norm of a compressed memory with a constant step size.

    Setting: ConEF, constant step size gamma, E||g_t||^2 <= M^2; g_{t+1} does not depend on C's random numbers in step t
    (it may depend on x_{t+1}, which does not yet depend on them).
    Proof: E||p_{t+1}||^2 = E||gamma g + u||^2 + E||C(u) - u||^2 for u = p_t - Delta_t; then Minkowski's inequality, for
    the first part (sharp) or for both (minkowski).
    Source: derived; theta = 0 gives ``memory_error``.

    Statement (sharp): With kappa = (1 + theta) residual, E||e_t||^2 <= kappa P_{t-1}, where P_0 = gamma^2 M^2 and
    P_{t+1} = (gamma M + sqrt(residual P_t))^2 + theta residual P_t. For t -> infinity P tends to gamma^2 M^2/(sqrt(1 -
    theta residual) - sqrt(residual))^2 = gamma^2 M^2 (sqrt(residual) + sqrt(1 - theta residual))^2/(1 - kappa)^2.
    Kind (sharp): tight.
    Latex (sharp): \mathbb{E}\|e_t\|^2\le\frac{\kappa\,\gamma^2M^2}{(\sqrt{1-\theta r}-\sqrt
    r)^2}\le\frac{\kappa\,\gamma^2M^2}{(1-\sqrt\kappa)^2}
    Attained (sharp): at every t by Q(v) = (1 - sqrt(r)) v, an equal C, and gradients along the last error p_t -
    Delta_t, scaled to E||g||^2 = M^2.

    Statement (minkowski): With kappa = (1 + theta) residual, E||e_t||^2 <= gamma^2 M^2 kappa ((1 - kappa^(t/2))/(1 -
    sqrt(kappa)))^2.
    Kind (minkowski): upper.

    step: gamma.
    steps (int, optional): t, at least 0, with any kappa; None is the limit, which requires kappa < 1.

    >>> conef_memory(0.5, 0.5, 1.0, 1.0), conef_memory(0.5, 0.5, 1.0, 1.0, form="minkowski")
    (29.6969, 41.7846)
    """
    kappa = conef_factor(theta, residual)
    if steps is not None:
        if form == "sharp":
            return float(conef_memory_schedule(theta, residual, np.full(int(steps), step), second_moment)[-1])
        q, grown = math.sqrt(kappa), 0.0
        for _ in range(int(steps)):
            grown = q + q * grown
        return second_moment * step**2 * (grown * grown)
    below_frontier(theta, kappa, f"theta < 1/residual - 1 = {conef_frontier(residual):.6g}")
    if form == "minkowski":
        return step**2 * second_moment * kappa / (1.0 - math.sqrt(kappa)) ** 2
    return step**2 * second_moment * kappa * limit_moment(theta, residual)


def limit_moment(theta: float, residual: float) -> float:
    """The limit of P_t/(gamma^2 M^2) in :func:`conef_memory`."""
    kappa = (1.0 + theta) * residual
    return ((math.sqrt(residual) + math.sqrt(1.0 - theta * residual)) / (1.0 - kappa)) ** 2


@formula("steps >= 0")
def conef_memory_schedule(theta: float, residual: float, steps: ArrayLike, second_moment: float) -> np.ndarray:
    """Bound on the mean squared norm of a compressed memory with any step sizes.

    Setting: as for :func:`conef_memory`, step sizes gamma_0, gamma_1, ...
    Statement: E||e_{t+1}||^2 <= (1 + theta) residual P_t, where P_0 = gamma_0^2 M^2 and
    P_{t+1} = (gamma_{t+1} M + sqrt(residual P_t))^2 + theta residual P_t.
    Kind: tight, like the sharp form of conef_memory.
    Source: derived, as for conef_memory.
    steps (array_like): gamma_0, ..., gamma_{T-1}, at least 0.

    Returns
    -------
    numpy.ndarray
        The bound for t = 0, ..., T.

    >>> conef_memory_schedule(1.0, 0.25, [1.0, 1.0], 1.0)  # P_1 = (1 + 1/2)^2 + 1/4
    array([0.  , 0.5 , 1.25])
    """
    kappa = conef_factor(theta, residual)
    sizes = np.asarray(steps, float).ravel()
    moment, found = 0.0, [0.0]
    for eta in sizes.tolist():
        moment = (eta + math.sqrt(residual * moment)) ** 2 + theta * residual * moment
        found.append(kappa * moment)
    return second_moment * np.asarray(found)


@formula("steps >= 0", "0 <= shrink <= sqrt(residual)", "shrink < 1")
def conef_memory_exact(
    theta: float, residual: float, shrink: float, step: float, second_moment: float, steps: int | None = None
) -> float:
    r"""Exact mean squared norm of a compressed memory, for a gradient that is constant or has mean zero.

    Setting: ConEF with E||Q(v) - v||^2 = residual ||v||^2 and E(v - Q(v)) = shrink v for every v, an equal C, constant
    step size gamma and the same gradient g in every step, ||g||^2 = M^2.  Or gradients of mean zero given the past,
    E||g_t||^2 = M^2; then shrink = 0 for any mean of Q.
    Statement: E||e_t||^2 = kappa P_{t-1} with kappa = (1 + theta) residual, P_0 = gamma^2 M^2, and
    P_t = gamma^2 M^2 (1 + 2 shrink (1 - shrink^t)/(1 - shrink)) + kappa P_{t-1}; for t -> infinity
    E||e_t||^2 = gamma^2 M^2 kappa/(1 - kappa) (1 + shrink)/(1 - shrink).
    Kind: identity.
    Latex: \mathbb{E}\|e_\infty\|^2=\gamma^2M^2\,\frac{\kappa}{1-\kappa}\,\frac{1+r}{1-r},\qquad\kappa=(1+\theta)r
    Source: derived: E p_t is a geometric series, and <g, E(C(u))> = shrink <g, E p>.
    shrink: In [0, sqrt(residual)]: ``residual`` for random-k and random blocks without d/k, sqrt(residual) for
        Q(v) = (1 - sqrt(residual)) v, and 0 for gradients of mean zero.
    step: gamma.
    steps (int, optional): t, at least 0, with any kappa; None is the limit, which requires kappa < 1.

    >>> conef_memory_exact(0.5, 0.5, 0.5, 1.0, 1.0), conef_memory_exact(0.5, 0.5, 0.0, 1.0, 1.0)
    (9.0, 3.0)
    """
    kappa = conef_factor(theta, residual)
    if steps is None:
        below_frontier(theta, kappa, f"theta < 1/residual - 1 = {conef_frontier(residual):.6g}")
        return step**2 * second_moment * kappa / (1.0 - kappa) * (1.0 + shrink) / (1.0 - shrink)
    moment = mean = 0.0  # of p before the first step: there is none
    for _ in range(int(steps)):
        moment = 1.0 + 2.0 * shrink * mean + kappa * moment
        mean = 1.0 + shrink * mean
    return step**2 * second_moment * kappa * moment


# --- Rates -----------------------------------------------------------------------------------------------------------


def _moment_factor(theta: float, residual: float, accounting: str) -> float:
    """E||p_t||^2/(gamma^2 M^2), its bound or its value for gradients of mean zero."""
    kappa = conef_factor(theta, residual)
    below_frontier(theta, kappa, f"theta < 1/residual - 1 = {conef_frontier(residual):.6g}")
    return limit_moment(theta, residual) if accounting == "worst" else 1.0 / (1.0 - kappa)


@formula("0 < step <= 0.5 / lipschitz", "second_moment >= variance")
def conef(
    steps: int,
    *,
    theta: float,
    residual: float,
    lipschitz: float,
    step: float,
    variance: float,
    second_moment: float,
    gap: float,
    workers: int = 1,
    shared: bool = False,
) -> float:
    r"""Bound on the mean squared gradient of SGD with contractive error feedback on a smooth function.

    Setting: f is L-smooth; each of N workers' gradients has the mean grad f(x_t), a variance of at most sigma^2,
    independent of the others', and E||g||^2 <= M^2; constant step size gamma <= 1/(2L); kappa = (1 + theta) residual <
    1, ``residual`` = 1 - delta of the gradient compressor and theta the omega of the error compressor; C's random
    numbers are independent across steps and workers.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= 4 (f(x_0) - f*)/(gamma T) + 2 L gamma sigma^2/N + 2 L gamma theta
    residual P M^2/N + 2 L^2 gamma^2 kappa P M^2, with P the limit in ``conef_memory``, 1/(sqrt(1 - theta residual) -
    sqrt(residual))^2. If all workers share the random numbers of C, the third term is not divided by N.
    Kind: upper.
    Latex: \tfrac1T\sum_t\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{4(f(x_0)-f^*)}{\gamma
    T}+\frac{2L\gamma}{N}(\sigma^2+\theta rPM^2)+2L^2\gamma^2\kappa PM^2
    Source: derived; the rate is that of [li2023contractive]. Proof: x_t minus the mean memory moves by -gamma mean g -
    xi with xi = mean (C(u) - u), E xi = 0, E||xi||^2 <= theta residual P gamma^2 M^2/N; then the descent lemma, and
    ||mean e||^2 <= mean ||e||^2.

    Title (improved.theorem): iConEF on a smooth function.
    Statement (improved.theorem): The theorem on ConEF holds for iConEF with theta^2 (first version) or theta r (second)
    in place of theta, so that the second has less noise than ConEF with any error compressor.
    Latex (improved.theorem): \tfrac1T\sum_t\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{4(f(x_0)-f^*)}{\gamma
    T}+\frac{2L\gamma}{N}(\sigma^2+\theta_erP_eM^2)+2L^2\gamma^2\kappa_eP_eM^2
    Proof (improved.theorem): conef.theorem; given u, the memory a + C(u - a) has the mean u and the variance theta ||u
    - a||^2 (conef.improved).
    Source (improved.theorem): constants derived; the rate is that of [li2023contractive].

    step: gamma, in (0, 1/(2L)].
    variance, second_moment: sigma^2 and M^2 of one worker, 0 <= sigma^2 <= M^2.
    shared: Whether all workers share C's random numbers.

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if kappa is not below 1.

    >>> conef(100, theta=0.5, residual=0.5, lipschitz=1.0, step=0.1, variance=1.0, second_moment=1.0, gap=1.0,
    ...       workers=4)
    1.5389
    """
    moment = _moment_factor(theta, residual, "worst") * second_moment
    slope = 2.0 * lipschitz * step
    return (
        4.0 * gap / (step * steps)
        + slope * variance / workers
        + slope * theta * residual * moment / (1 if shared else workers)
        + slope * lipschitz * step * conef_factor(theta, residual) * moment
    )


@formula("accounting in ('worst', 'zero-mean')", "second_moment >= variance")
def conef_noise(
    theta: float, residual: float, variance: float, second_moment: float, accounting: str = "worst"
) -> float:
    r"""Noise of one worker that contractive error feedback does not correct.

    Setting: as for :func:`conef`.
    Statement: x_t minus the mean memory is the iterate of SGD whose gradients have the variance sigma^2 + theta
    residual P M^2, with E||p_t||^2 = P gamma^2 M^2. Error feedback has the variance sigma^2 (theta = 0). The unbiased
    compressor that keeps a fraction 1 - residual of the coordinates has sigma^2 + omega M^2, omega = residual/(1 -
    residual).
    Source: derived, as for conef_memory.

    Statement (worst): P <= 1/(sqrt(1 - theta residual) - sqrt(residual))^2.
    Kind (worst): upper.

    Statement (zero-mean): P = 1/(1 - kappa) for gradients of mean zero and compressors whose errors are equalities.

    Title (noise): The noise of ConEF lies between that of error feedback and that of an unbiased compressor.
    Statement (noise): With gradients of mean zero, ConEF has the noise sigma^2 + theta r M^2/(1 - kappa) of each
    worker, which N workers divide by N: that of error feedback at theta = 0, and less than sigma^2 + (d/k - 1) M^2,
    that of unbiased random-k, if and only if theta < k/d.
    Latex (noise): \sigma^2\le\sigma^2+\frac{\theta r}{1-\kappa}M^2<\sigma^2+\frac{r}{1-r}M^2\iff\theta<1-r
    Proof (noise): conef.identity: each step adds the noise of C to that of the gradient, theta r E||p||^2.
    Source (noise): derived; algorithm: [li2023contractive].

    Kind (zero-mean, noise): identity.

    variance, second_moment: sigma^2 and M^2.
    accounting ({"worst", "zero-mean"}):

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if kappa is not below 1.

    >>> [conef_noise(0.25, 0.5, 1.0, 1.0, accounting) for accounting in ("worst", "zero-mean")]
    [3.3981, 1.3333]
    """
    moment = _moment_factor(theta, residual, accounting)
    return variance + theta * residual * moment * second_moment


@formula("0 < residual < 1", "accounting in ('worst', 'zero-mean')")
def conef_noise_frontier(residual: float, accounting: str = "worst") -> float:
    """Variance of the error compressor up to which a compressed memory has less noise than an unbiased compressor.

    Setting: the noise of :func:`conef_noise`, compared with that of random-k times d/k, which keeps as many
    coordinates, sigma^2 + residual/(1 - residual) M^2.
    Statement: The noise is smaller if and only if theta is below the number of the table.
    Kind: identity.
    Source: derived: theta (1 - residual) = (sqrt(1 - theta residual) - sqrt(residual))^2 is quadratic in s = sqrt(1 -
    theta residual).

    Statement (worst): The noise is smaller if and only if theta < (1 - s^2)/residual with s = residual^(3/2) + (1 -
    residual) sqrt(1 + residual).

    Statement (zero-mean): The noise is smaller if and only if theta < 1 - residual.

    Returns
    -------
    float
        theta.

    >>> conef_noise_frontier(0.9), conef_noise_frontier(0.9, accounting="zero-mean")
    (0.0185, 0.1)
    """
    if accounting == "zero-mean":
        return 1.0 - residual
    s = residual**1.5 + (1.0 - residual) * math.sqrt(1.0 + residual)
    return (1.0 - s * s) / residual
