"""QSVRG: quantized SGD with variance reduction, of Alistarh et al., "QSGD", NIPS 2017, section 3.2.

In an epoch from y every worker sends, in each of T steps, Q(grad f_j(x) - grad f_j(y) + grad f(y)) for a row j; the
next y is the mean of the T iterates.  f is the mean of convex, L-smooth f_j, and mu-strongly convex.
"""

from __future__ import annotations

import math

from .closed_form import formula


@formula("anchor_gap >= 0")
def svrg_second_moment(gap: float, anchor_gap: float, lipschitz: float) -> float:
    r"""Second moment of a variance-reduced gradient.

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
    r"""Factor of the gap in an epoch of QSVRG.

    Title (rate): QSVRG gains a factor of 0.9 an epoch.
    Setting: as in this module; E Q(v) = v, E||Q(v) - v||^2 <= omega ||v||^2; N workers draw and quantize independently;
    a constant step size with eta A < 2.
    Statement: E f(y+) - f* <= rho (f(y) - f*) with rho = (2/(mu eta T) + eta C)/(2 - eta A), A = 2 L (1 - 1/N) + C and
    C = 4 L (1 + omega)/N.
    Statement (rate): With QSGD at s = sqrt(d), eta = 1/(10 (1 + omega) L) and T = ceil(20 (1 + omega) L/mu), E f(y_p) -
    f* <= 0.9^p (f(y_0) - f*): an epoch's factor is at most 7/8.
    Kind: upper.
    Latex: \rho=\frac{2/(\mu\eta T)+\eta C}{2-\eta A},\quad A=2L\big(1-\tfrac1N\big)+C,\ C=\tfrac{4L(1+\omega)}N
    Latex (rate): \mathbb{E}f(y_p)-f^*\le 0.9^p\,(f(y_0)-f^*)
    Attained: nowhere that is known; its lemmas are
    Proof (rate): qsvrg.factor at these eta and T: (1 + 0.4)/(2 - 0.4) for N = 1, and less for more workers.
    Source: derived, after Johnson, Zhang, NIPS 2013, Theorem 1 (N = 1, omega = 0). In expectation ||x+ - x*||^2 <= ||x
    - x*||^2 - 2 eta (f(x) - f*) + eta^2 ||mean Q||^2; the second moment of the mean is at most (1 - 1/N) times ||grad
    f||^2 <= 2 L (f - f*) and (1 + omega)/N times that of svrg_second_moment; sum over the epoch.
    Source (rate): [alistarh2017qsgd], Theorem 3.6, which has eta = O(1/L) and T = O(L/mu); the constants are derived.
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
    Statement: eta = 1/(10 (1 + omega) L); with T = :func:`qsvrg_inner` an epoch's factor is at most 7/8 for every N.
    Kind: identity.
    Source: [alistarh2017qsgd], Theorem 3.6, asks for eta = O(1/L) and T = O(L/mu) and promises 0.9; the constants are
    those of [bubeck2015convex], Theorem 6.5, for L (1 + omega).

    >>> qsvrg_step(lipschitz=2.0, omega=0.25)
    0.04
    """
    return 1.0 / (10.0 * (1.0 + omega) * lipschitz)


@formula("0 < mu <= lipschitz")
def qsvrg_inner(lipschitz: float, mu: float, omega: float = 0.0) -> int:
    """Steps of an epoch of QSVRG.

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
    Statement: sharp: T bits + F d; paper: (F + 2.8 d)(T + 1) + F d, for s = sqrt(d) levels, whatever ``bits``.
    Kind: tight (sharp, for codes of fixed width), upper (paper).
    Latex (sharp): \mathrm{bits}\le T\,\mathbb{E}|\mathrm{code}(Q_s)| + Fd\ \ [\le (F+2.8d)(T+1)+Fd]
    Source: derived; [alistarh2017qsgd], Theorem 3.6 (paper), with a code that exists by its Corollary 3.3.
    inner (int): T.
    bits (float): Of a message.
    float_bits (int): F.

    >>> qsvrg_bits(d=100, inner=10, bits=232.0), qsvrg_bits(d=100, inner=10, bits=232.0, form="paper")
    (5520.0, 6632.0)
    """
    quantized = inner * bits if form == "sharp" else (float_bits + 2.8 * d) * (inner + 1)
    return quantized + float_bits * d
