"""Error feedback: the size of the memory, and the rates of SGD with it.

In all formulas e_{t+1} = p_t - C(p_t) with p_t = e_t + gamma_t g_t, e_0 = 0, and E||C(v) - v||^2 <= (1 - delta)
||v||^2.

The rates are accompanied by the inequalities of their proofs. f is bounded from below by f*; ``gap`` is f(x_0) - f*,
``distance`` the squared norm ||x_0 - x*||^2.  Steps are counted as in the package, t = 0, ..., T - 1.  All workers'
gradients have the mean grad f(x_t), and each worker has a memory.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula

# --- The size of the memory ------------------------------------------------------------------------------------------


@formula("form in ('sharp', 'paper')", "steps >= 0")
def memory_error(
    delta: float, step: float, second_moment: float, form: str = "sharp", steps: int | None = None
) -> float:
    r"""Bound on the mean squared norm of a memory with a constant step size.

    Setting: C contracts with the factor delta, E||g_t||^2 <= second_moment, constant step size.

    Title (paper): Size of a memory, as quoted.
    Statement (paper): With a contraction delta, a constant step and E||g||^2 <= M^2: E||e_t||^2 <= 4 (1 -
    delta)/delta^2 gamma^2 M^2.
    Kind (paper): upper.
    Latex (paper): \mathbb{E}\|e_t\|^2\le\frac{4(1-\delta)}{\delta^2}\gamma^2M^2
    Attained (paper): in the limit of delta to 0, where it agrees with ef.memory
    Proof (paper): Young's inequality with the parameter delta/(2 (1 - delta)) and a geometric series.
    Source (paper): [karimireddy2019error], Lemma 3.

    Statement (sharp): E||e_t||^2 <= step^2 second_moment (1 - delta) ((1 - q^t)/(1 - q))^2 with q = sqrt(1 - delta).
    For t -> infinity this is step^2 second_moment (1 - delta) (1 + q)^2/delta^2.
    Kind (sharp): tight.
    Latex (sharp): \mathbb{E}\|e_t\|^2\le\gamma^2M^2\frac{(1-\delta)(1+\sqrt{1-\delta})^2}{\delta^2}
    Attained (sharp): at every t by C(v) = (1 - sqrt(1 - delta)) v and a constant gradient
    Proof (sharp): With q = sqrt(1 - delta) and Minkowski's inequality, ||e_{t+1}|| <= q (||e_t|| + gamma M) in mean
    square; the geometric series gives q/(1 - q), whose square is the formula.
    Source (sharp): derived; sharpens [karimireddy2019error], Lemma 3 (4 (1 - delta)/delta^2)

    steps (int, optional): t, for the sharp form; None is the limit.

    >>> memory_error(0.05, 1.0, 1.0), memory_error(0.05, 1.0, 1.0, form="paper")
    (1481.756, 1520.0)
    """
    require(steps is None or (form == "sharp" and steps >= 0), "steps", steps, "None, or t >= 0 with the sharp form")
    if form == "paper":
        return step**2 * second_moment * 4.0 * (1.0 - delta) / delta**2
    q = math.sqrt(1.0 - delta)
    grown = 1.0 if steps is None else 1.0 - q**steps
    return step**2 * second_moment * (q * (1.0 + q) / delta * grown) ** 2


@formula("steps >= 0")
def memory_error_schedule(delta: float, steps: ArrayLike, second_moment: float) -> np.ndarray:
    """Bound on the mean squared norm of a memory with any step sizes.

    Setting: C contracts with the factor delta, E||g_t||^2 <= second_moment, step sizes gamma_0, gamma_1, ...
    Statement: E||e_t||^2 <= second_moment (sum_{j < t} q^(t-j) gamma_j)^2 with q = sqrt(1 - delta).
    Kind: tight (attained at every t by C(v) = (1 - q) v and a constant gradient).
    Source: derived, as the sharp form of :func:`memory_error`.
    steps (array_like): gamma_0, ..., gamma_{T-1}, at least 0.

    Returns
    -------
    numpy.ndarray
        The bound for t = 0, ..., T.

    >>> memory_error_schedule(0.75, [1.0, 1.0], 1.0)
    array([0.  , 0.25 , 0.5625])
    """
    steps = np.asarray(steps, float).ravel()
    q, root, roots = math.sqrt(1.0 - delta), 0.0, [0.0]
    for eta in steps.tolist():
        root = q * (root + eta)
        roots.append(root)
    return second_moment * np.square(roots)


# --- Rates -----------------------------------------------------------------------------------------------------------


@formula(
    "reading in ('derived', 'quoted')", "memory in ('sharp', 'paper')", "0 < rho < 2", "averaged_second_moment >= 0"
)
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
) -> float:
    r"""Bound on the mean squared gradient of SGD with error feedback on a smooth function.

    Setting: f is L-smooth, E||g_t||^2 <= M^2, a contraction delta, constant step size gamma, 0 < rho < 2.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= (f(x_0) - f*)/(gamma (1 - rho/2) T) + L gamma M^2/(2 - rho) + L^2
    E/(rho (2 - rho)), where E bounds the memory's mean squared norm (``memory_error``). The best rho, at most 1, is
    (sqrt(E^2 + 2 A E) - E)/A, with E multiplied by L^2 and A = 2 (f(x_0) - f*)/(gamma T) + L gamma M^2.
    Kind: upper.
    Source: [karimireddy2019error], Theorem II, for one worker, as others quote it (the paper was not available); the
    form with any rho by the same proof, with -<a, b> <= -(1 - rho/2) ||a||^2 + ||a - b||^2/(2 rho) for the gradients at
    x_t and at x_t - e_t. N workers (derived): x_t minus the mean memory is SGD's iterate, so the second moment of the
    *averaged* gradient may replace M^2 in the second term.

    Statement (paper): E = 4 (1 - delta) gamma^2 M^2/delta^2.

    Statement (sharp): E is the sharp form of ``memory_error``.
    Kind (sharp): tight with the best rho.
    Attained (sharp): at delta = 1, where it is SGD's bound, by L x^2/2 with noise in its stationary law.

    Title (nonconvex): Error feedback on a smooth function.
    Statement (nonconvex): The mean over T steps of E||grad f(x_t)||^2 is at most 2 (f(x_0) - f*)/(gamma T) + gamma L
    M^2 + 4 gamma^2 L^2 M^2 (1 - delta)/delta^2.
    Source (nonconvex): [karimireddy2019error], the theorem on non-convex smooth functions (Theorem II), with the middle
    term that a derivation by its method gives.

    Title (nonconvex.sharp): Error feedback on a smooth function, the sharp bound.
    Statement (nonconvex.sharp): With E||e||^2 as in ef.memory and the best rho, the mean of E||grad f(x_t)||^2 is at
    most ((f(x_0) - f*)/(gamma T) + gamma L M^2/2)/(1 - rho/2) + L^2 E||e||^2/(rho (2 - rho)).
    Kind (nonconvex.sharp): tight.
    Latex (nonconvex.sharp): \frac1T\sum_{t<T}\mathbb{E}\|\nabla
    f(x_t)\|^2\le\min_{0<\rho<2}\frac{A+L^2E/\rho}{2-\rho},\quad A=\frac{2(f(x_0)-f^*)}{\gamma T}+\gamma LM^2,\quad
    E=\gamma^2M^2\frac{(1-\delta)(1+\sqrt{1-\delta})^2}{\delta^2}
    Attained (nonconvex.sharp): for delta = 1 by SGD on L x^2/2 with noise, in its stationary law; within 1 % for C(v) =
    (1 + sqrt(1 - delta)) v there.
    Proof (nonconvex.sharp): ef.nonconvex with <a, b> >= (1 - rho/2) ||a||^2 - ||a - b||^2/(2 rho).
    Source (nonconvex.sharp): derived, by the method of [karimireddy2019error], the theorem on non-convex smooth
    functions (Theorem II)

    Title (nonconvex.quoted): Error feedback on a smooth function, as remembered.
    Statement (nonconvex.quoted): The mean over T steps of E||grad f(x_t)||^2, or the least of them, is at most 2
    (f(x_0) - f*)/(gamma T) + gamma L M^2/2 + 4 gamma^2 L^2 M^2 (1 - delta)/delta^2: this has half the middle term of
    ef.nonconvex, and it is false.
    Kind (nonconvex.quoted): upper.
    Latex (nonconvex.quoted): \min_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2(f(x_0)-f^*)}{\gamma T}+\frac{\gamma
    LM^2}{2}+\frac{4\gamma^2L^2M^2(1-\delta)}{\delta^2}
    Proof (nonconvex.quoted): C(v) = (1 + q) v has delta = 1 - q^2 and e_t = (q/(1 + q)) (x_t - x_{t-1}). So with k = (1
    + q) gamma x_{t+1} = (1 - k - q) x_t + q x_{t-1} -+ k sqrt(1 - x_t^2), which stays in [-1, 1], as q + sqrt((1 - k -
    q)^2 + k^2) = 0.995; there second moments follow a linear recursion, as E||g||^2 = 1. In first order the memory
    raises E||grad f||^2 by a multiple of q; the last term of the bound is of order q^2, and SGD alone already attains
    the middle term.
    Source (nonconvex.quoted): [karimireddy2019error], the theorem on non-convex smooth functions (Theorem II), as
    remembered; the paper was not available.

    Latex (paper, nonconvex): \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2(f(x_0)-f^*)}{\gamma T}+\gamma
    LM^2+\frac{4\gamma^2L^2M^2(1-\delta)}{\delta^2}
    Proof (paper, nonconvex): ef.identity makes y = x - mean e an SGD iterate: f(y) falls by gamma <grad f(y), grad
    f(x)>, which is at least gamma/2 (||grad f(x)||^2 - L^2 ||e||^2), and rises by gamma^2 L M^2/2 at most.

    second_moment: M^2 of one worker's gradient.
    rho (float, optional): In (0, 2); by default the best.
    memory ({"paper", "sharp"}):
    reading: ``quoted`` requires rho = 1.
    averaged_second_moment (float, optional): Bound on E||mean over workers of the gradients||^2.

    >>> ef_sgd(100, delta=0.5, lipschitz=1.0, step=0.1, second_moment=1.0, gap=1.0)  # 0.2 + 0.1 + 0.08
    0.38
    >>> ef_sgd(100, delta=0.5, lipschitz=1.0, step=0.1, second_moment=1.0, gap=1.0, rho=None, memory="sharp")
    0.2771
    """
    require(reading == "derived" or rho == 1, "rho", rho, "1 with the quoted reading")
    averaged = second_moment if averaged_second_moment is None else averaged_second_moment
    start, noise = 2.0 * gap / (step * steps), lipschitz * step * averaged
    error = lipschitz**2 * memory_error(delta, step, second_moment, form=memory)
    if rho is None:
        rho = best_rho(start + noise, error)
    if reading == "quoted":
        noise /= 2.0
    memory_term = error / (rho * (2.0 - rho)) if rho > 0 else 0.0  # no memory: the limit of rho to 0
    return start / (2.0 - rho) + noise / (2.0 - rho) + memory_term


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
) -> float:
    r"""Bound on the mean squared gradient of SGD with error feedback, from the variance of the gradients alone.

    Setting: f is L-smooth, E||g_t - grad f(x_t)||^2 <= sigma^2 for each of N workers, whose noises are independent; a
    contraction delta; gamma <= min(1/(4L), delta/(4 L sqrt(1 - delta))). Gradients need not be bounded.
    Statement: (1/T) sum_t E||grad f(x_t)||^2 <= 4 (f(x_0) - f*)/(gamma T) + 2 gamma L sigma^2/N + 4 gamma^2 L^2 (1 -
    delta) sigma^2/delta.
    Kind: upper.
    Latex: \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{4(f(x_0)-f^*)}{\gamma T}+\frac{2\gamma
    L\sigma^2}{N}+\frac{4\gamma^2L^2(1-\delta)\sigma^2}{\delta}
    Proof: ef.memory.step and ef.descent at x - mean e, whose noise is averaged, summed over the steps; the step size
    leaves at least a quarter of gamma E||grad f||^2.
    Source: derived: ``ef_sgd_memory_step`` and ``ef_sgd_descent`` at x_t minus the mean memory, summed; the rate is
    that of Stich and Karimireddy, "The error-feedback framework", JMLR 2020.

    Title (workers): With N workers and memories, the noise is divided by N.
    Statement (workers): With a constant step, the floor of E||grad f(x_t)||^2 falls as 1/N for N workers that send
    top-k messages and have memories.
    Kind (workers): rate.
    Latex (workers): \lim_{t\to\infty}\mathbb{E}\|\nabla f(x_t)\|^2\sim\frac{\gamma L\sigma^2}{(2-\gamma L)N}
    Proof (workers): x - mean e is an SGD iterate with noise of variance sigma^2/N; near the minimum the memories
    consist of independent noise, so the mean square of their mean is also divided by N.
    Source (workers): derived; the middle term of ef.nonconvex.variance; [karimireddy2019error].

    variance: sigma^2 of one worker.

    >>> ef_sgd_variance(100, delta=0.5, lipschitz=1.0, step=0.1, variance=1.0, gap=1.0, workers=4)  # .4 + .05 + .04
    0.49
    """
    rest = math.sqrt(1.0 - delta)
    longest = min(1.0, delta / rest if rest > 0 else 1.0) / (4.0 * lipschitz)
    require(0 < step <= longest * (1 + 1e-12), "step", step, f"a number in (0, {longest:.6g}]")
    return (
        4.0 * gap / (step * steps)
        + 2.0 * step * lipschitz * variance / workers
        + 4.0 * (step * lipschitz) ** 2 * (1.0 - delta) * variance / delta
    )


@formula("gradient >= 0", "memory >= 0", "0 < rho < 2")
def ef_sgd_descent(
    *, lipschitz: float, step: float, gradient: float, second_moment: float, memory: float, rho: float = 1.0
) -> float:
    r"""Bound on the change of f at x_t minus the mean memory in a step of SGD with error feedback.

    Setting: f is L-smooth, y_t = x_t - e_t with e_t the mean of the workers' memories, g_t the mean of their gradients,
    so that y_{t+1} = y_t - gamma g_t; E||g_t||^2 <= M^2; 0 < rho < 2.
    Statement: E f(y_{t+1}) - E f(y_t) <= -gamma (1 - rho/2) E||grad f(x_t)||^2 + gamma L^2 E||e_t||^2/(2 rho) + gamma^2
    L M^2/2.
    Kind: tight (attained by L x^2/2 with e_t = rho x_t, and any noise).
    Latex: \mathbb{E}f(y_{t+1})-\mathbb{E}f(y_t)\le-\gamma(1-\tfrac\rho2)\mathbb{E}\|\nabla f(x_t)\|^2+\frac{\gamma
    L^2}{2\rho}\mathbb{E}\|e_t\|^2+\frac{\gamma^2L}2M^2
    Attained: by L x^2/2 with e = rho x
    Proof: The descent lemma at y = x - e, and <a, b> >= (1 - rho/2) ||a||^2 - ||a - b||^2/(2 rho) for the gradients at
    x and y.
    Source: derived; a step in the proof of [karimireddy2019error], Theorem II.
    gradient: E||grad f(x_t)||^2.
    second_moment: M^2 of the mean gradient.
    memory: E||e_t||^2.

    >>> ef_sgd_descent(lipschitz=1.0, step=0.1, gradient=1.0, second_moment=2.0, memory=1.0)  # -0.05 + 0.05 + 0.01
    0.01
    """
    return (
        -step * (1.0 - rho / 2.0) * gradient
        + step * lipschitz**2 * memory / (2.0 * rho)
        + step**2 * lipschitz * second_moment / 2.0
    )


@formula("memory >= 0", "gradient >= 0")
def ef_sgd_memory_step(delta: float, *, step: float, memory: float, gradient: float, variance: float) -> float:
    r"""Bound on the mean squared norm of a memory after a step, given that before it.

    Setting: C contracts with the factor delta; E g = grad f, E||g - grad f||^2 <= sigma^2.
    Statement: E||e_{t+1}||^2 <= (1 - delta/2) E||e_t||^2 + (2 (1 - delta)/delta) gamma^2 E||grad f(x_t)||^2 + (1 -
    delta) gamma^2 sigma^2.
    Kind: upper. For C(v) = (1 - sqrt(1 - delta)) v and delta e_t = 2 (1 - delta) gamma grad f(x_t), only the middle
    term is too large, by the factor 1/(1 - delta/2).
    Latex:
    \mathbb{E}\|e_{t+1}\|^2\le(1-\tfrac\delta2)\mathbb{E}\|e_t\|^2+\tfrac{2(1-\delta)}\delta\gamma^2\mathbb{E}\|\nabla
    f(x_t)\|^2+(1-\delta)\gamma^2\sigma^2
    Attained: by C(v) = (1 - sqrt(1 - delta)) v with noise alone; also in the limit delta to 0 with delta e = 2 (1 -
    delta) gamma grad f
    Proof: Young's inequality with the parameter delta/(2 (1 - delta)).
    Source: derived: ||e + gamma grad f||^2 <= (1 + b) ||e||^2 + (1 + 1/b) gamma^2 ||grad f||^2 with b = delta/(2 (1 -
    delta)).
    memory: E||e_t||^2.
    gradient: E||grad f(x_t)||^2.

    >>> ef_sgd_memory_step(0.5, step=0.1, memory=1.0, gradient=1.0, variance=1.0)  # 0.75 + 0.02 + 0.005
    0.775
    """
    return (
        (1.0 - delta / 2.0) * memory
        + 2.0 * (1.0 - delta) / delta * step**2 * gradient
        + (1.0 - delta) * step**2 * variance
    )


def _detour(delta: float, memory: str) -> float:
    """A bound on sqrt(E||e_t||^2)/(gamma M)."""
    return math.sqrt(memory_error(delta, 1.0, 1.0, form=memory))


@formula("second_moment > 0", "distance > 0", "memory in ('sharp', 'paper')")
def ef_sgd_convex_step(
    steps: int, *, delta: float, second_moment: float, distance: float, memory: str = "paper"
) -> float:
    """Step size that minimizes the bound of :func:`ef_sgd_convex`.

    Setting: as for :func:`ef_sgd_convex`.
    Statement: gamma = (D/M)/sqrt((1 + 2 m) T), D^2 = ||x_0 - x*||^2, with the m of the table.
    Kind: identity.
    Source: derived: a/gamma + b gamma is smallest at sqrt(a/b).

    Statement (paper): gamma = (D/M)/sqrt((1 + 2 m) T) with m = 2 sqrt(1 - delta)/delta.

    Statement (sharp): gamma = (D/M)/sqrt((1 + 2 m) T) with m = q/(1 - q), q = sqrt(1 - delta).

    memory ({"paper", "sharp"}):

    >>> ef_sgd_convex_step(100, delta=0.75, second_moment=1.0, distance=1.0, memory="sharp")  # m = 1
    0.0577
    """
    return math.sqrt(distance / (second_moment * steps * (1.0 + 2.0 * _detour(delta, memory))))


@formula("second_moment > 0", "distance > 0", "memory in ('sharp', 'paper')")
def ef_sgd_convex(
    steps: int,
    *,
    delta: float,
    second_moment: float,
    distance: float,
    step: float | None = None,
    memory: str = "paper",
) -> float:
    r"""Bound on f - f* at the average iterate of SGD with error feedback on a convex function, smooth or not.

    Setting: f is convex, E g_t is a subgradient at x_t, E||g_t||^2 <= M^2, a contraction delta, constant step size
    gamma; xbar is the mean of x_0, ..., x_{T-1}.
    Statement (sharp): E f(xbar) - f* <= ||x_0 - x*||^2/(2 gamma T) + gamma M^2 (1/2 + m) with m = q/(1 - q), q = sqrt(1
    - delta). With the best step size this is D M sqrt((1 + 2 m)/T).
    Latex (sharp): \mathbb{E}f(\bar x)-f^*\le\frac{\|x_0-x^*\|^2}{2\gamma T}+\gamma M^2\Big(\frac12+\frac{q}{1-q}\Big)
    Attained (sharp): for delta = 1 by |x| from x_0 = gamma T; for every delta by C(v) = (1 - q) v there, except in the
    first steps
    Proof (sharp): The proof for SGD, applied at x - e; f(x_t) - f* <= <g, x_t - x*> = <g, x_t - e_t - x*> + <g, e_t>,
    and ||e|| <= gamma M m.
    Source (sharp): derived; sharpens [karimireddy2019error], the theorem on convex functions.

    Statement (paper): E f(xbar) - f* <= ||x_0 - x*||^2/(2 gamma T) + gamma M^2 (1/2 + m) with m = 2 sqrt(1 -
    delta)/delta.
    Kind (paper): upper.
    Source (paper): [karimireddy2019error], the theorem on convex functions.

    Title (fixes.kink): With a memory, sign descent converges at a kink.
    Statement (fixes.kink): For f(x) = e |x1 + x2| + |x1 - x2| from (1, 1), where sign descent keeps f >= 2 e forever,
    the scaled sign with a memory satisfies ef.convex with delta = 1/2: f(xbar) falls below 2 e.
    Latex (fixes.kink): f(\bar x)\le DM\sqrt{(1+2m)/T}<2\varepsilon
    Attained (fixes.kink): from (1 + 1/e, 1 - 1/e) the path is straight, and without compression f(xbar) is the bound.
    Proof (fixes.kink): ef.convex with sign.contraction in two dimensions.
    Source (fixes.kink): [karimireddy2019error], Counterexample 2 and the theorem on convex functions.

    Kind (sharp, fixes.kink): tight.

    step (float, optional): gamma, above 0; :func:`ef_sgd_convex_step` by default.
    memory ({"paper", "sharp"}):

    >>> ef_sgd_convex(100, delta=0.75, second_moment=1.0, distance=1.0, step=0.1, memory="sharp")  # .05 + .05 + .1
    0.2
    >>> ef_sgd_convex(100, delta=0.75, second_moment=1.0, distance=1.0, memory="sharp")  # sqrt(3/100)
    0.1732
    """
    best = ef_sgd_convex_step(steps, delta=delta, second_moment=second_moment, distance=distance, memory=memory)
    step = best if step is None else step
    noise = step * second_moment
    return distance / (2.0 * step * steps) + noise / 2.0 + noise * _detour(delta, memory)
