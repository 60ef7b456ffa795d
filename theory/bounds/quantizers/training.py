"""Parallel SGD with unbiased quantizers (QSGD, NUQSGD): convergence, and the rounds and bits for an accuracy.

Every worker sends Q(g) with E Q(v) = v and E||Q(v) - v||^2 <= omega ||v||^2, where omega is, for example,
:func:`theory.bounds.qsgd_variance` or :func:`theory.bounds.nuqsgd_variance`.
"""

from __future__ import annotations

import math

from ..closed_form import formula
from ..sgd.averages import averaged_variance
from ..sgd.rates import sgd_smooth_convex, sgd_smooth_convex_step


@formula("form in ('sharp', 'paper')", "second_moment >= variance", "distance > 0")
def quantized_sgd_convex_step(
    steps: int,
    *,
    omega: float,
    lipschitz: float,
    variance: float,
    second_moment: float,
    distance: float,
    workers: int = 1,
    form: str = "sharp",
) -> float:
    """The constant step of quantized parallel SGD on a smooth convex function.

    Setting: as for :func:`quantized_sgd_convex`.
    Statement: The step is that of :func:`sgd_smooth_convex_step` for one worker of variance v = (sigma^2 + omega
    M^2)/N; R^2 = ``distance``.
    Kind: identity.

    Statement (sharp): gamma = 1/(L + sqrt(v T)/R).
    Source (sharp): derived.

    Statement (paper): gamma = 1/(L + sqrt(v T/2)/R).
    Source (paper): [alistarh2017qsgd], Theorem 3.4, with sqrt N in the correct place and with the noise of the
    gradients themselves.

    variance: sigma^2 of one worker's gradient.
    second_moment: M^2, at least sigma^2.
    distance: R^2.

    >>> quantized_sgd_convex_step(
    ...     25, omega=1.0, lipschitz=1.0, variance=3.0, second_moment=5.0, distance=25.0, workers=2
    ... ) == 1 / 3
    True
    """
    noise = averaged_variance(variance, second_moment, workers=workers, omega=omega)
    return sgd_smooth_convex_step(steps, lipschitz=lipschitz, variance=noise, distance=distance, form=form)


@formula("form in ('sharp', 'same step', 'paper')", "second_moment >= variance", "distance > 0")
def quantized_sgd_convex(
    steps: int,
    *,
    omega: float,
    lipschitz: float,
    variance: float,
    second_moment: float,
    distance: float,
    workers: int = 1,
    form: str = "sharp",
) -> float:
    r"""Bound on f - f* for quantized parallel SGD on a smooth convex function.

    Setting: f is convex and L-smooth, projection allowed; N workers with independent gradients, E||g - grad f||^2 <=
    sigma^2 and E||g||^2 <= M^2; the step of :func:`quantized_sgd_convex_step`; the mean of x_1, ..., x_T; R >= ||x_0 -
    x*||; v = (sigma^2 + omega M^2)/N.
    Kind: upper.
    Source: [alistarh2017qsgd], Theorem 3.4, which prints T = O(R^2 max(2 B'/(N eps^2), L/eps)), B' = min(d/s^2,
    sqrt(d)/s) M^2, for E f - f* <= eps; sigma^2 has to be added to B' (the claim qsgd.gradient-noise). NUQSGD, JMLR
    22(114), 2021, has the same theorem with its own omega, as remembered. The constants 1 and 1/2 are derived.

    Title (same step): The step size for N workers with QSGD.
    Statement (same step): With N workers, v = (sigma^2 + omega M^2)/N and gamma = 1/(L + 1/h), h = R sqrt(2/(v T)), the
    mean of x_1, ..., x_T has E f - f* <= (3/(2 sqrt 2)) R sqrt(v/T) + L R^2/(2 T), below sqrt 2 R sqrt(v/T) + L R^2/T.
    Latex (same step): \gamma=\frac1{L+1/h},\ h=R\sqrt{\tfrac{2}{vT}}\;\Rightarrow\;\mathbb{E}f(\bar x)-f^*\le
    \frac{3}{2\sqrt2}R\sqrt{\frac vT}+\frac{LR^2}{2T},\quad v=\frac{\sigma^2+\omega M^2}N
    Proof (same step): One step: E f(x+) - f* <= (||x - x*||^2 - E||x+ - x*||^2)/(2 gamma) + h v/2, where v is the
    variance of the mean message (qsgd.gradient-noise); sum over the steps.

    Source (sharp): derived; the correct reading of [alistarh2017qsgd], Corollary 2.2 and Theorem 3.4.

    Statement (paper): With that step E f - f* <= sqrt 2 R sqrt(v/T) + L R^2/T.

    Title (convergence): Convergence with QSGD, smooth and convex.
    Source (convergence): [alistarh2017qsgd], Theorem 3.4, with the missing noise term; the constants are derived.

    Title (nuqsgd.convergence): Convergence with NUQSGD, smooth and convex.
    Source (nuqsgd.convergence): [ramezani2021nuqsgd], as remembered; the constants are derived.

    Statement (sharp, convergence, nuqsgd.convergence): With v = (sigma^2 + omega M^2)/N and gamma = 1/(L + sqrt(v
    T)/R), the mean of x_1, ..., x_T has E f - f* <= R sqrt(v/T) + L R^2/(2 T).
    Latex (sharp, convergence, nuqsgd.convergence): \mathbb{E}f(\bar x)-f^*\le R\sqrt{\frac vT}+\frac{LR^2}{2T},\quad
    v=\frac{\sigma^2+\omega M^2}N
    Attained (sharp, convergence, nuqsgd.convergence): asymptotically, by a function with a small slope far from its
    minimum and a steep wall beyond the minimum, with large gradient noise.
    Proof (sharp, convergence, nuqsgd.convergence): As for qsgd.step; the step balances both terms.

    variance: sigma^2 of one worker's gradient.
    second_moment: M^2, at least sigma^2.
    distance: R^2.
    form ({"sharp", "same step", "paper"}):

    >>> quantized_sgd_convex(25, omega=1.0, lipschitz=1.0, variance=3.0, second_moment=5.0, distance=25.0, workers=2)
    2.5
    """
    noise = averaged_variance(variance, second_moment, workers=workers, omega=omega)
    return sgd_smooth_convex(steps, lipschitz=lipschitz, variance=noise, distance=distance, form=form)


@formula("eps > 0", "distance > 0", "second_moment >= variance")
def quantized_sgd_rounds(
    eps: float,
    *,
    omega: float,
    lipschitz: float,
    variance: float,
    second_moment: float,
    distance: float,
    workers: int = 1,
) -> float:
    """Number of rounds of quantized parallel SGD for an accuracy on a smooth convex function.

    Setting: as for :func:`quantized_sgd_convex`, with the sharp step for T rounds.
    Statement: E f(mean) - f* <= eps for every T >= ((c + sqrt(c^2 + 2 L R^2 eps))/(2 eps))^2 with c = R sqrt(v), v =
    (sigma^2 + omega M^2)/N; this T is at most R^2 max(4 v/eps^2, L/eps).
    Kind: identity (the bound is then eps).
    Source: derived: the positive root of c x + (L R^2/2) x^2 = eps, x = T^(-1/2). [alistarh2017qsgd], Theorem 3.4, has
    the order O(R^2 max(2 B'/(N eps^2), L/eps)).
    variance: sigma^2 of one worker's gradient.
    second_moment: M^2, at least sigma^2.
    distance: R^2.

    >>> quantized_sgd_rounds(2.5, omega=1.0, lipschitz=1.0, variance=3.0, second_moment=5.0, distance=25.0, workers=2)
    25.0
    """
    c2 = distance * averaged_variance(variance, second_moment, workers=workers, omega=omega)
    root = math.sqrt(c2) + math.sqrt(c2 + 2.0 * lipschitz * distance * eps)
    return (root / (2.0 * eps)) ** 2


@formula("bits > 0", "eps > 0", "distance > 0", "second_moment >= variance")
def quantized_sgd_bits(
    eps: float,
    *,
    bits: float,
    omega: float,
    lipschitz: float,
    variance: float,
    second_moment: float,
    distance: float,
    workers: int = 1,
) -> float:
    r"""Bits that a worker of quantized parallel SGD sends for an accuracy on a smooth convex function.

    Title: Bits of QSGD for an accuracy.
    Setting: as for :func:`quantized_sgd_convex`, with the sharp step for T rounds; messages of at most ``bits`` bits in
    expectation, such as :func:`theory.bounds.qsgd_elias_length`.
    Statement: E f(mean) - f* <= eps after T = ceil(:func:`quantized_sgd_rounds`) rounds; until then a worker sends at
    most ``T bits`` bits.
    Kind: upper.
    Latex: \mathrm{bits}(\varepsilon)=T\,\mathbb{E}|\mathrm{code}(Q_s)|,\quad
    T\ge\Big(\tfrac{c+\sqrt{c^2+2LR^2\varepsilon}}{2\varepsilon}\Big)^2,\ c=R\sqrt v
    Proof: qsgd.convergence solved for T, times qsgd.elias-length.
    Source: derived.
    eps: Above 0.
    bits (float): Expected bits of a message.
    variance: sigma^2 of one worker's gradient.
    second_moment: M^2, at least sigma^2.
    distance: R^2.

    >>> constants = {"omega": 1.0, "lipschitz": 1.0, "variance": 3.0, "second_moment": 5.0, "distance": 25.0}
    >>> quantized_sgd_bits(2.5, bits=64.0, workers=2, **constants)
    1600.0
    """
    rounds = quantized_sgd_rounds(
        eps,
        omega=omega,
        lipschitz=lipschitz,
        variance=variance,
        second_moment=second_moment,
        distance=distance,
        workers=workers,
    )
    return math.ceil(float(rounds)) * float(bits)


@formula("step > 0", "step * lipschitz * (1 + omega / workers) < 2")
def quantized_sgd_smooth(
    steps: int, *, omega: float, lipschitz: float, step: float, gap: float, variance: float, workers: int = 1
) -> float:
    r"""Bound on the mean squared gradient of quantized parallel SGD without convexity.

    Title: Convergence with QSGD, without convexity.
    Setting: f is L-smooth; N workers with independent gradients of variance at most sigma^2; constant step size gamma
    with q = gamma L (1 + omega/N) < 2.
    Statement: the mean over t < T of E||grad f(x_t)||^2 is at most (2 (f(x_0) - f*)/(gamma T) + gamma L (1 + omega)
    sigma^2/N)/(2 - q).
    Kind: tight (on f = (L/2)||x||^2 once f(x_T) is small, if E||Q(v) - v||^2 = omega ||v||^2).
    Latex: \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2(f(x_0)-f^*)/(\gamma T)+\gamma
    L(1+\omega)\sigma^2/N}{2-\gamma L(1+\omega/N)}
    Attained: (L/2)||x||^2; the gradients here are Gaussian and do not have equal magnitudes
    Source: derived: E||mean Q(g)||^2 <= (1 + omega/N)||grad f||^2 + (1 + omega) sigma^2/N in the descent lemma.
    [alistarh2017qsgd], Theorem 3.5, has a random stopping time and states only orders of magnitude: (1/L) E||grad f||^2
    <= O(sqrt(L (f(x_1) - f*))/T + min(d/s^2, sqrt(d)/s) B/L), whose two sides have different units.

    Title (nuqsgd.nonconvex): Convergence with NUQSGD, without convexity.
    Source (nuqsgd.nonconvex): derived; [ramezani2021nuqsgd] has such a theorem with its own omega, as remembered.

    >>> quantized_sgd_smooth(100, omega=1.0, lipschitz=2.0, step=0.25, gap=25.0, variance=4.0, workers=2)  # (2+2)/1.25
    3.2
    """
    q = step * lipschitz * (1.0 + omega / workers)
    noise = step * lipschitz * (1.0 + omega) * variance / workers
    return (2.0 * gap / (step * steps) + noise) / (2.0 - q)
