"""Contractive error feedback: convergence rates of SGD with a compressed memory.

Steps are counted as in the package, t = 0, ..., T - 1.  All workers' gradients have the mean grad f(x_t).
"""

from __future__ import annotations

import math

from .closed_form import formula
from .contractive import below_frontier, conef_factor, conef_frontier, limit_moment


def _moment_factor(theta: float, residual: float, accounting: str) -> float:
    """E||p_t||^2/(eta^2 G^2), its bound or its value for gradients of mean zero."""
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
    r"""Mean squared gradient of SGD with contractive error feedback on a smooth function.

    Title (improved.theorem): iConEF on a smooth function.
    Setting: f is L-smooth; each of N workers' gradients has the mean grad f(x_t), a variance of at most sigma^2,
    independent of the others', and E||g||^2 <= G^2; constant step size eta <= 1/(2L); kappa = (1 + theta) residual < 1,
    ``residual`` = 1 - delta of the gradient compressor and theta the omega of the error compressor; C's random numbers
    are independent across steps and workers.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= 4 (f(x_0) - f*)/(eta T) + 2 L eta sigma^2/N + 2 L eta theta residual P
    G^2/N + 2 L^2 eta^2 kappa P G^2, with P the limit in ``conef_memory``, 1/(sqrt(1 - theta residual) -
    sqrt(residual))^2. If all workers share the random numbers of C, the third term is not divided by N.
    Statement (improved.theorem): The theorem on ConEF holds for iConEF with theta^2 (first version) or theta r (second)
    in place of theta, so that the second has less noise than ConEF with any error compressor.
    Kind: upper.
    Latex: \tfrac1T\sum_t\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{4(f(x_0)-f^*)}{\eta T}+\frac{2L\eta}{N}(\sigma^2+\theta
    rPG^2)+2L^2\eta^2\kappa PG^2
    Latex (improved.theorem): \tfrac1T\sum_t\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{4(f(x_0)-f^*)}{\eta
    T}+\frac{2L\eta}{N}(\sigma^2+\theta_erP_eG^2)+2L^2\eta^2\kappa_eP_eG^2
    Proof (improved.theorem): conef.theorem; given u, the memory a + C(u - a) has the mean u and the variance theta ||u
    - a||^2 (conef.improved).
    Source: derived; the rate is that of [li2023contractive]. Proof: x_t minus the mean memory moves by -eta mean g - xi
    with xi = mean (C(u) - u), E xi = 0, E||xi||^2 <= theta residual P eta^2 G^2/N; the descent lemma there, and ||mean
    e||^2 <= mean ||e||^2.
    Source (improved.theorem): constants derived; the rate is that of [li2023contractive].
    step: eta, in (0, 1/(2L)].
    variance, second_moment: sigma^2 and G^2 of one worker, 0 <= sigma^2 <= G^2.
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

    Title (noise): Noise between error feedback's and that of an unbiased compressor.
    Setting: as for :func:`conef`.
    Statement: x_t minus the mean memory is the iterate of SGD whose gradients have the variance sigma^2 + theta
    residual P G^2, with E||p_t||^2 = P eta^2 G^2: P <= 1/(sqrt(1 - theta residual) - sqrt(residual))^2 (worst), P =
    1/(1 - kappa) for gradients of mean zero and compressors whose errors are equalities (zero-mean). Error feedback:
    sigma^2 (theta = 0). The unbiased compressor that keeps a share 1 - residual of the coordinates: sigma^2 + omega
    G^2, omega = residual/(1 - residual).
    Statement (noise): With gradients of mean zero, ConEF has the noise sigma^2 + theta r G^2/(1 - kappa) of each
    worker, which N workers divide by N: that of error feedback at theta = 0, and less than sigma^2 + (d/k - 1) G^2,
    that of unbiased random-k, if and only if theta < k/d.
    Kind: upper (worst), identity (zero-mean).
    Kind (noise): identity.
    Latex (worst): \sigma^2\le\sigma^2+\frac{\theta r}{1-\kappa}G^2<\sigma^2+\frac{r}{1-r}G^2\iff\theta<1-r
    Latex (noise): \sigma^2\le\sigma^2+\frac{\theta r}{1-\kappa}G^2<\sigma^2+\frac{r}{1-r}G^2\iff\theta<1-r
    Proof (worst): conef.identity: each step adds the noise of C to that of the gradient, theta r E||p||^2.
    Proof (noise): conef.identity: each step adds the noise of C to that of the gradient, theta r E||p||^2.
    Source: derived, as there.
    Source (noise): derived; algorithm: [li2023contractive].
    variance, second_moment: sigma^2 and G^2.
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
    """Variance of the error compressor up to which a compressed memory beats an unbiased compressor.

    Setting: the noise of :func:`conef_noise` beside that of random-k times d/k, which keeps as many coordinates,
    sigma^2 + residual/(1 - residual) G^2.
    Statement: the noise is smaller if and only if theta is below
    worst: (1 - s^2)/residual, s = residual^(3/2) + (1 - residual) sqrt(1 + residual);
    zero-mean: 1 - residual.
    Kind: identity.
    Source: derived: theta (1 - residual) = (sqrt(1 - theta residual) - sqrt(residual))^2 is quadratic in
    s = sqrt(1 - theta residual).

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
