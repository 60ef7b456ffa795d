"""SGD on smooth convex functions: the step that balances curvature and noise, with N workers, in both readings."""

from __future__ import annotations

import math

from .closed_form import formula


@formula("step > 0", "step * lipschitz < 1")
def sgd_smooth_convex_with_step(
    steps: int, *, lipschitz: float, step: float, variance: float, distance: float
) -> float:
    """Suboptimality of the uniform average on a smooth convex function, for any constant step size below 1/L.

    Setting: f is convex and L-smooth, E||g_t - grad f(x_t)||^2 <= sigma^2, constant step size eta < 1/L, projection
    allowed; the mean of x_1, ..., x_T (``Suffix(1)`` and T + 1 steps).
    Statement: E f(mean) - f* <= D_0/(2 eta T) + gamma sigma^2/2, where eta = 1/(L + 1/gamma), D_0 = ||x_0 - x*||^2.
    Kind: upper.
    Source: Bubeck, Convex optimization, Found. Trends Mach. Learn. 8 (2015), the proof of Theorem 6.3 with the mirror
    potential ||x||^2/2.
    step: eta in (0, 1/L).
    variance, distance: sigma^2 and D_0.

    >>> sgd_smooth_convex_with_step(2, lipschitz=1.0, step=0.5, variance=3.0, distance=4.0)  # gamma = 1
    3.5
    """
    gamma = step / (1.0 - step * lipschitz)
    return distance / (2.0 * step * steps) + gamma * variance / 2.0


@formula("form in ('sharp', 'paper', 'printed')", "variance > 0", "distance > 0")
def sgd_smooth_convex_step(
    steps: int, *, lipschitz: float, variance: float, distance: float, workers: int = 1, form: str = "sharp"
) -> float:
    r"""The constant step size for a smooth convex function, T steps and N workers.

    Title (step.printed): The step size for N workers, as printed.
    Setting: as for :func:`sgd_smooth_convex_with_step`; every worker's gradient has the variance sigma^2, and the mean
    of N is applied.
    Statement: with R^2 = ``distance``, sharp: eta = 1/(L + sigma sqrt(T/N)/R), the best in sgd_smooth_convex_with_step;
    paper: eta = 1/(L + 1/(gamma sqrt N)), gamma = (R/sigma) sqrt(2/T); printed: eta = 1/(L + sqrt(N)/gamma), which
    tends to 0 as N grows (the claim qsgd.step.printed).
    Statement (step.printed): With N workers, second moments of at most B and eta = 1/(L + sqrt(N)/gamma), gamma = R
    sqrt(2/(B T)), the mean of x_1, ..., x_T has E f - f* = O(R sqrt(2 B/(N T)) + L R^2/T): false whatever the constant,
    as that step tends to 0 when N grows.
    Kind: identity.
    Kind (step.printed): upper.
    Latex (step.printed): \eta=\frac1{L+\sqrt N/\gamma}\;\Rightarrow\;\mathbb{E}f(\bar
    x)-f^*=O\Big(R\sqrt{\frac{2B}{NT}}+\frac{LR^2}{T}\Big)
    Proof (step.printed): f = ||x||^2/2 on the unit ball, from its edge: L R^2 = 4 and f(x_0) - f* = 1/2. For N to
    infinity eta tends to 0, so that x stays where it is, and gap over bound tends to T/8; along T = sqrt(N) it grows
    like sqrt(N)/8, beyond every constant. (sigma^2 is B, as Theorem 3.4 has it; Corollary 2.2 does not say.) The mean
    of N gradients has sigma/sqrt(N) for sigma, which divides 1/gamma = (sigma/R) sqrt(T/2) of Theorem 2.1 by sqrt(N);
    the printed step multiplies by it.
    Source: [alistarh2017qsgd], Theorem 2.1, which is [bubeck2015convex], Theorem 6.3 (paper), and Corollary 2.2 and
    Theorem 3.4 (printed; paper with N > 1 is what Theorem 2.1 gives for the variance sigma^2/N).
    Source (step.printed): [alistarh2017qsgd], Corollary 2.2; the same step stands in Theorem 3.4, with B' for B.
    steps, workers: T and N.
    distance: R^2, above 0: ||x_0 - x*||^2 or, with a projection onto W, its supremum over x* in W.

    >>> [sgd_smooth_convex_step(32, lipschitz=1.0, variance=1.0, distance=16.0, workers=16, form=form)
    ...  for form in ("paper", "printed")]  # gamma = 1
    [0.8, 0.2]
    """
    balance = math.sqrt(variance * steps / distance)  # sharp: 1/gamma for one worker
    if form == "sharp":
        return 1.0 / (lipschitz + balance / math.sqrt(workers))
    factor = math.sqrt(workers) if form == "printed" else 1.0 / math.sqrt(workers)
    return 1.0 / (lipschitz + factor * balance / math.sqrt(2.0))


@formula("form in ('sharp', 'same step', 'paper')", "variance > 0", "distance > 0")
def sgd_smooth_convex(
    steps: int, *, lipschitz: float, variance: float, distance: float, workers: int = 1, form: str = "sharp"
) -> float:
    r"""Suboptimality of the uniform average on a smooth convex function, with the step size for T steps.

    Title (sharp): SGD on smooth convex functions.
    Title (paper): The step size for N workers.
    Setting: as for :func:`sgd_smooth_convex_step`, whose step of the same form is taken; the mean of x_1, ..., x_T.
    Statement: with R^2 = ``distance``, E f(mean) - f* is at most sharp: R sigma/sqrt(N T) + L R^2/(2 T); same step:
    (3/(2 sqrt 2)) R sigma/sqrt(N T) + L R^2/(2 T), with the paper's step; paper: sqrt 2 R sigma/sqrt(N T) + L R^2/T.
    Statement (sharp): With eta = 1/(L + sigma sqrt(T)/R), the mean of x_1, ..., x_T has E f - f* <= R sigma/sqrt(T) + L
    R^2/(2T) where ||x_0 - x*|| <= R.
    Statement (paper): With N workers of variance sigma^2 and eta = 1/(L + 1/(gamma sqrt N)), gamma = (R/sigma)
    sqrt(2/T), the mean of x_1, ..., x_T has E f - f* <= R sqrt(2 sigma^2/(N T)) + L R^2/T, if R^2 bounds ||x_0 - x*||^2
    or only half of it, as in Bubeck's theorem.
    Kind: upper.
    Latex (sharp): \mathbb{E}f(\bar x)-f^*\le\frac{R\sigma}{\sqrt T}+\frac{LR^2}{2T}
    Latex (paper): \eta=\frac1{L+1/(\gamma\sqrt N)}\;\Rightarrow\;\mathbb{E}f(\bar x)-f^*\le
    R\sqrt{\frac{2\sigma^2}{NT}}+\frac{LR^2}{T}
    Attained (sharp): as T grows, for the smooth term and half of the other, on Huber's function with the bend R/(eta T)
    Attained (paper): as for sgd.smooth-convex, with R^2 = ||x_0 - x*||^2/2
    Proof (sharp): f(x+) - f* <= (||x - x*||^2 - ||x+ - x*||^2)/(2 eta) + gamma ||xi||^2/2 in expectation, as 1/eta = L
    + 1/gamma pays for smoothness and for <xi, x+ - x>; sum up.
    Proof (paper): sgd.smooth-convex with sigma^2/N, the variance of the mean of the workers' gradients, and 2 R^2.
    Source: [alistarh2017qsgd], Theorem 2.1 and Corollary 2.2; [bubeck2015convex], Theorem 6.3 (paper). The others are
    derived: Bubeck's R^2 bounds the mirror potential, which is half the squared distance.
    Source (sharp): derived; [bubeck2015convex], Theorem 6.3, which is [alistarh2017qsgd], Theorem 2.1, has sqrt 2 and 1
    instead of 1 and 1/2.
    Source (paper): derived; the correct reading of [alistarh2017qsgd], Corollary 2.2 and Theorem 3.4.
    steps, workers: T and N.
    variance, distance: sigma^2 of one worker and R^2.

    >>> [sgd_smooth_convex(8, lipschitz=1.0, variance=4.0, distance=4.0, form=form)
    ...  for form in ("same step", "paper")]  # 3/2 + 1/4, 2 + 1/2
    [1.75, 2.5]
    """
    squared = {"sharp": 1.0, "same step": 9.0 / 8.0, "paper": 2.0}[form]
    noise = math.sqrt(squared * distance * variance / (workers * steps))
    smooth = lipschitz * distance / (steps * (1.0 if form == "paper" else 2.0))
    return noise + smooth
