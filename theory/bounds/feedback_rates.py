"""Error feedback and contractive error feedback: convergence rates of SGD with a memory.

f is bounded from below by f*; ``gap`` is f(x_0) - f*, ``distance`` the squared norm ||x_0 - x*||^2.  Steps are counted
as in the package, t = 0, ..., T - 1.  All workers' gradients have the mean grad f(x_t), and each worker has a memory.
"""

from __future__ import annotations

import math

from ..core import require
from ._domain import non_negative, positive, whole
from .closed_form import formula
from .contractive import below_frontier, conef_factor, conef_frontier, limit_moment
from .memory import memory_error

__all__ = [
    "conef",
    "conef_noise",
    "conef_noise_frontier",
    "ef_sgd",
    "ef_sgd_convex",
    "ef_sgd_convex_step",
    "ef_sgd_variance",
]


def _in_delta(delta: float) -> None:
    require(0 < delta <= 1, "delta", delta, "a number in (0, 1]")


@formula
def ef_sgd(
    steps: int,
    *,
    delta: float,
    lipschitz: float,
    step: float,
    second_moment: float,
    gap: float,
    rho: float | None = 1.0,
    memory: str = "paper",
    reading: str = "derived",
    averaged_second_moment: float | None = None,
    terms: bool = False,
):
    """Mean squared gradient of SGD with error feedback on a smooth function.

    Setting: f is L-smooth, E||g_t||^2 <= G^2, a contraction delta, constant step size gamma, 0 < rho < 2.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= f(x_0) - f* over gamma (1 - rho/2) T, plus L gamma G^2/(2 - rho), plus
    L^2 E/(rho (2 - rho)), where E bounds the memory's mean squared norm: 4 (1 - delta) gamma^2 G^2/delta^2 (paper) or
    the sharp form of ``memory_error``.  The best rho, at most 1, is (sqrt(E^2 + 2 A E) - E)/A, E taken times L^2 and
    A = 2 (f(x_0) - f*)/(gamma T) + L gamma G^2.
    quoted: rho = 1 with L gamma G^2/2 as its second term, half of what the proof gives: false, see the claim
    ``ef.nonconvex.quoted``.
    Kind: upper; the best rho with the sharp memory is tight (attained at delta = 1, where it is SGD's bound, by
    L x^2/2 with noise in its stationary law).
    Source: Karimireddy, Rebjock, Stich, Jaggi, "Error feedback fixes SignSGD", ICML 2019, Theorem II, for one worker,
    as others quote it (the text was not at hand); the form with any rho by the same proof, with -<a, b> <=
    -(1 - rho/2) ||a||^2 + ||a - b||^2/(2 rho) for the gradients at x_t and at x_t - e_t.  N workers (derived): x_t
    minus the mean memory is SGD's iterate, so the second moment of the *averaged* gradient may replace G^2 in the
    second term.
    second_moment: G^2 of one worker's gradient, at least 0.
    rho (float, optional): In (0, 2); None takes the best.
    memory ({"paper", "sharp"}):
    reading ({"derived", "quoted"}): ``quoted`` requires rho = 1.
    averaged_second_moment (float, optional): Bound on E||mean over workers of the gradients||^2.
    terms: Return the three terms instead of their sum.

    Returns
    -------
    float or tuple of float

    >>> ef_sgd(100, delta=0.5, lipschitz=1.0, step=0.1, second_moment=1.0, gap=1.0, terms=True)
    (0.2, 0.1, 0.08)
    >>> ef_sgd(100, delta=0.5, lipschitz=1.0, step=0.1, second_moment=1.0, gap=1.0, rho=None, memory="sharp")
    0.2771
    """
    whole(1, steps=steps)
    _in_delta(delta)
    positive(lipschitz=lipschitz, step=step)
    non_negative(second_moment=second_moment, gap=gap)
    require(rho is None or 0 < rho < 2, "rho", rho, "a number in (0, 2), or None for the best")
    require(reading in ("derived", "quoted"), "reading", reading, "'derived' or 'quoted'")
    require(reading == "derived" or rho == 1, "rho", rho, "1 with the quoted reading")
    averaged = second_moment if averaged_second_moment is None else averaged_second_moment
    non_negative(averaged_second_moment=averaged)
    start, noise = 2.0 * gap / (step * steps), lipschitz * step * averaged
    error = lipschitz**2 * memory_error(delta, step, second_moment, form=memory)
    if rho is None:
        rho = best_rho(start + noise, error)
    if rho == 0:  # no memory: the limit of rho to 0
        parts = (start / 2.0, noise / 2.0, 0.0)
    else:
        parts = (start / (2.0 - rho), noise / (2.0 - rho), error / (rho * (2.0 - rho)))
    if reading == "quoted":
        parts = (parts[0], parts[1] / 2.0, parts[2])
    return parts if terms else sum(parts)


def best_rho(rest: float, error: float) -> float:
    """The rho in [0, 1] that minimises (rest rho + error)/(rho (2 - rho))."""
    if error == 0:
        return 0.0
    return 2.0 * error / (error + math.sqrt(error**2 + 2.0 * rest * error))  # as stated, also where rest is 0


@formula
def ef_sgd_variance(
    steps: int,
    *,
    delta: float,
    lipschitz: float,
    step: float,
    variance: float,
    gap: float,
    workers: int = 1,
    terms: bool = False,
):
    """Mean squared gradient of SGD with error feedback, using only the variance of the gradients.

    Setting: f is L-smooth, E||g_t - grad f(x_t)||^2 <= sigma^2 for each of N workers, whose noises are independent; a
    contraction delta; gamma <= min(1/(4L), delta/(4 L sqrt(1 - delta))).  Gradients need not be bounded.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= 4 (f(x_0) - f*)/(gamma T) + 2 gamma L sigma^2/N
    + 4 gamma^2 L^2 (1 - delta) sigma^2/delta.
    Kind: upper.
    Source: derived: E||e_{t+1}||^2 <= (1 - delta/2) E||e_t||^2 + (2 (1 - delta)/delta) gamma^2 E||grad f(x_t)||^2
    + (1 - delta) gamma^2 sigma^2, and the descent lemma at x_t minus the mean memory.
    variance: sigma^2 of one worker, at least 0.
    terms: Return the three terms instead of their sum.

    Returns
    -------
    float or tuple of float

    >>> ef_sgd_variance(100, delta=0.5, lipschitz=1.0, step=0.1, variance=1.0, gap=1.0, workers=4, terms=True)
    (0.4, 0.05, 0.04)
    """
    whole(1, steps=steps, workers=workers)
    _in_delta(delta)
    positive(lipschitz=lipschitz)
    non_negative(variance=variance, gap=gap)
    rest = math.sqrt(1.0 - delta)
    longest = min(1.0, delta / rest if rest > 0 else 1.0) / (4.0 * lipschitz)
    require(0 < step <= longest * (1 + 1e-12), "step", step, f"a number in (0, {longest:.6g}]")
    parts = (
        4.0 * gap / (step * steps),
        2.0 * step * lipschitz * variance / workers,
        4.0 * (step * lipschitz) ** 2 * (1.0 - delta) * variance / delta,
    )
    return parts if terms else sum(parts)


def _detour(delta: float, memory: str) -> float:
    """A bound on sqrt(E||e_t||^2)/(gamma G)."""
    _in_delta(delta)
    return math.sqrt(memory_error(delta, 1.0, 1.0, form=memory))


@formula
def ef_sgd_convex_step(steps: int, *, delta: float, second_moment: float, distance: float, memory: str = "paper"):
    """Step size that minimizes the bound of :func:`ef_sgd_convex`.

    Setting: as there.
    Statement: gamma = (D/G)/sqrt((1 + 2 m) T), D^2 = ||x_0 - x*||^2, with m = 2 sqrt(1 - delta)/delta (paper) or
    q/(1 - q), q = sqrt(1 - delta) (sharp).
    Kind: identity.
    Source: derived: a/gamma + b gamma is least at sqrt(a/b).
    second_moment: G^2, above 0.
    distance: Above 0.
    memory ({"paper", "sharp"}):

    >>> ef_sgd_convex_step(100, delta=0.75, second_moment=1.0, distance=1.0, memory="sharp")  # m = 1
    0.0577
    """
    whole(1, steps=steps)
    positive(second_moment=second_moment, distance=distance)
    return math.sqrt(distance / (second_moment * steps * (1.0 + 2.0 * _detour(delta, memory))))


@formula
def ef_sgd_convex(
    steps: int,
    *,
    delta: float,
    second_moment: float,
    distance: float,
    step: float | None = None,
    memory: str = "paper",
    terms: bool = False,
):
    """Suboptimality of the average of SGD with error feedback on a convex function, smooth or not.

    Setting: f is convex, E g_t is a subgradient at x_t, E||g_t||^2 <= G^2, a contraction delta, constant step size
    gamma; xbar is the mean of x_0, ..., x_{T-1}.
    Statement: E f(xbar) - f* <= ||x_0 - x*||^2/(2 gamma T) + gamma G^2 (1/2 + m) with m = 2 sqrt(1 - delta)/delta
    (paper) or q/(1 - q), q = sqrt(1 - delta) (sharp).  With the best step size this is D G sqrt((1 + 2 m)/T).
    Kind: upper.
    Source: Karimireddy, Rebjock, Stich, Jaggi, "Error feedback fixes SignSGD", ICML 2019, the theorem for convex
    functions (paper); sharp by the sharp form of ``memory_error``.  Proof: ||x_t - e_t - x*||^2 as for SGD, and
    ``E<g_t, e_t> <= G sqrt(E||e_t||^2)``.
    second_moment: G^2, above 0.
    distance: Above 0.
    step (float, optional): gamma, above 0; the best (:func:`ef_sgd_convex_step`) if not given.
    memory ({"paper", "sharp"}):
    terms: Return the two terms instead of their sum.

    Returns
    -------
    float or tuple of float

    >>> ef_sgd_convex(100, delta=0.75, second_moment=1.0, distance=1.0, step=0.1, memory="sharp", terms=True)
    (0.05, 0.15)
    >>> ef_sgd_convex(100, delta=0.75, second_moment=1.0, distance=1.0, memory="sharp")  # sqrt(3/100)
    0.1732
    """
    best = ef_sgd_convex_step(steps, delta=delta, second_moment=second_moment, distance=distance, memory=memory)
    step = best if step is None else step
    positive(step=step)
    parts = (distance / (2.0 * step * steps), step * second_moment * (0.5 + _detour(delta, memory)))
    return parts if terms else sum(parts)


def _moment_factor(theta: float, residual: float, accounting: str) -> float:
    """E||p_t||^2/(eta^2 G^2), its bound or its value for gradients of mean zero."""
    require(accounting in ("worst", "zero-mean"), "accounting", accounting, "'worst' or 'zero-mean'")
    kappa = conef_factor(theta, residual)
    below_frontier(kappa, f"theta < 1/residual - 1 = {conef_frontier(residual):.6g}")
    return limit_moment(theta, residual) if accounting == "worst" else 1.0 / (1.0 - kappa)


@formula
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
    terms: bool = False,
):
    """Mean squared gradient of SGD with contractive error feedback on a smooth function.

    Setting: f is L-smooth; each of N workers' gradients has the mean grad f(x_t), a variance of at most sigma^2,
    independent of the others', and E||g||^2 <= G^2; constant step size eta <= 1/(2L); kappa = (1 + theta) residual < 1,
    ``residual`` = 1 - delta of the gradient compressor and theta the omega of the error compressor; C's random numbers
    are independent across steps and workers.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= 4 (f(x_0) - f*)/(eta T) + 2 L eta sigma^2/N
    + 2 L eta theta residual P G^2/N + 2 L^2 eta^2 kappa P G^2, with P the limit in ``conef_memory``,
    1/(sqrt(1 - theta residual) - sqrt(residual))^2.  If C is linear and all workers share its random numbers, the third
    term is not divided by N.
    Kind: upper.
    Source: derived; the rate is that of ConEF, arXiv 2312.08538.  Proof: x_t minus the mean memory moves by
    -eta mean g - xi with xi = mean (C(u) - u), E xi = 0, E||xi||^2 <= theta residual P eta^2 G^2/N; the descent lemma
    there, and ||mean e||^2 <= mean ||e||^2.
    step: eta, in (0, 1/(2L)].
    variance, second_moment: sigma^2 and G^2 of one worker, 0 <= sigma^2 <= G^2.
    shared: Whether all workers share C's random numbers.
    terms: Return the four terms instead of their sum.

    Returns
    -------
    float or tuple of float

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if kappa is not below 1.

    >>> conef(100, theta=0.5, residual=0.5, lipschitz=1.0, step=0.1, variance=1.0, second_moment=1.0, gap=1.0,
    ...       workers=4, terms=True)
    (0.4, 0.05, 0.495, 0.5939)
    """
    whole(1, steps=steps, workers=workers)
    moment = _moment_factor(theta, residual, "worst") * second_moment
    positive(lipschitz=lipschitz)
    require(0 < step <= 0.5 / lipschitz, "step", step, f"a number in (0, 1/(2 L)] = (0, {0.5 / lipschitz:.6g}]")
    non_negative(variance=variance, gap=gap)
    require(second_moment >= variance, "second_moment", second_moment, f"a number, at least variance = {variance}")
    slope = 2.0 * lipschitz * step
    parts = (
        4.0 * gap / (step * steps),
        slope * variance / workers,
        slope * theta * residual * moment / (1 if shared else workers),
        slope * lipschitz * step * conef_factor(theta, residual) * moment,
    )
    return parts if terms else sum(parts)


@formula
def conef_noise(
    theta: float, residual: float, variance: float, second_moment: float, accounting: str = "worst"
) -> float:
    """Noise of one worker that contractive error feedback does not correct.

    Setting: as for :func:`conef`.
    Statement: x_t minus the mean memory is the iterate of SGD whose gradients have the variance
    sigma^2 + theta residual P G^2, with E||p_t||^2 = P eta^2 G^2: P <= 1/(sqrt(1 - theta residual) - sqrt(residual))^2
    (worst), P = 1/(1 - kappa) for gradients of mean zero and compressors whose errors are equalities (zero-mean).
    Error feedback: sigma^2 (theta = 0).  The unbiased compressor that keeps a share 1 - residual of the coordinates:
    sigma^2 + omega G^2, omega = residual/(1 - residual).
    Kind: upper (worst), identity (zero-mean).
    Source: derived, as there.
    variance, second_moment: sigma^2 and G^2, at least 0.
    accounting ({"worst", "zero-mean"}):

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if kappa is not below 1.

    >>> [conef_noise(0.25, 0.5, 1.0, 1.0, accounting) for accounting in ("worst", "zero-mean")]
    [3.3981, 1.3333]
    """
    moment = _moment_factor(theta, residual, accounting)
    non_negative(variance=variance, second_moment=second_moment)
    return variance + theta * residual * moment * second_moment


@formula
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
    residual: 1 - delta of the gradient compressor, in (0, 1).
    accounting ({"worst", "zero-mean"}):

    Returns
    -------
    float
        theta.

    >>> conef_noise_frontier(0.9), conef_noise_frontier(0.9, accounting="zero-mean")
    (0.0185, 0.1)
    """
    require(0 < residual < 1, "residual", residual, "a number in (0, 1)")
    require(accounting in ("worst", "zero-mean"), "accounting", accounting, "'worst' or 'zero-mean'")
    if accounting == "zero-mean":
        return 1.0 - residual
    s = residual**1.5 + (1.0 - residual) * math.sqrt(1.0 + residual)
    return (1.0 - s * s) / residual
