"""Mem-SGD: its memory lemma, its theorem, and the bits that its authors count.

The lemma and the theorem are those of Stich, Cordonnier and Jaggi.  Step sizes are 8/(mu (a + t)); a is called the
shift, and alpha > 4 is a parameter of the proof.

The number of bits of a message in their figures differs from the number of bits sent.
"""

from __future__ import annotations

import math

from ...core import require
from ..closed_form import formula

# --- The memory lemma and the theorem --------------------------------------------------------------------------------


def _rho(alpha: float) -> float:
    return 4.0 * alpha / ((alpha - 4.0) * (alpha + 1.0) ** 2)


@formula("0 < k <= d", "alpha > 4", "reading in ('correct', 'transcript', 'remark')")
def mem_sgd_shift(d: int, k: float, alpha: float = 5.0, reading: str = "correct") -> float:
    """Smallest shift that Mem-SGD's theorem allows.

    Setting: as for :func:`mem_sgd`; rho = 4 alpha / ((alpha - 4) (alpha + 1)^2).
    Statement: The theorem requires a > 1 and the condition of the table.
    Kind: identity.

    Statement (correct): The condition is ((alpha + 1) d/k + rho)/(rho + 1) <= a.
    Source (correct): derived. It agrees with Remark 2.5, "any a > 1 works for some alpha > 4": for alpha -> 4 it allows
    every a > 1. The memory lemma was checked under this condition with its worst case (``memory_error_schedule``).

    Statement (transcript): The condition is (alpha + 1) d/k + rho/(rho + 1) <= a.
    Source (transcript): [stich2018sparsified], Theorem 2.4, read only in a transcript, which may have lost a long
    fraction bar; the printed condition was not available. It contradicts Remark 2.5.

    Statement (remark): The remark has a = (alpha + 2) d/k.
    Source (remark): [stich2018sparsified], Remark 2.5, read in the same transcript.

    k: Coordinates per message; a value below 1 means ultra-sparsification.

    >>> [mem_sgd_shift(1000, 10, reading=reading) for reading in ("correct", "transcript", "remark")]
    [386.1, 600.4, 700.0]
    """
    rho = _rho(alpha)
    return {
        "correct": ((alpha + 1.0) * d / k + rho) / (rho + 1.0),
        "transcript": (alpha + 1.0) * d / k + rho / (rho + 1.0),
        "remark": (alpha + 2.0) * d / k,
    }[reading]


@formula("0 < k <= d", "shift > 1")
def mem_sgd_alpha(d: int, k: float, shift: float) -> float:
    """Largest alpha that a shift allows in Mem-SGD's theorem; it gives the smallest bound.

    Setting: as for :func:`mem_sgd`.
    Statement: the largest alpha > 4 with mem_sgd_shift(d, k, alpha) <= shift, by bisection.
    Kind: identity.
    Source: derived from [stich2018sparsified], Theorem 2.4, in its correct reading; the left side
    increases with alpha from 1 to infinity.

    >>> mem_sgd_alpha(1000, 10, shift=mem_sgd_shift(1000, 10, alpha=5.0))
    5.0
    """
    low, high = math.log(1e-14), math.log(2.0 + shift * k / d)  # of alpha - 4; above `high` the shift is too small
    while low < (middle := 0.5 * (low + high)) < high:  # until they are neighbours
        if mem_sgd_shift(d, k, 4.0 + math.exp(middle)) <= shift:
            low = middle
        else:
            high = middle
    alpha = 4.0 + math.exp(low)
    require(mem_sgd_shift(d, k, alpha) <= shift, "shift", shift, "a larger one: alpha would be 4 to rounding")
    return alpha


@formula("0 < k <= d", "one of shift, alpha", "alpha > 4", "shift > 1")
def mem_sgd_memory(
    d: int, k: float, step: float, second_moment: float, *, shift: float | None = None, alpha: float | None = None
) -> float:
    r"""Bound on the mean squared norm of Mem-SGD's memory.

    Setting: step sizes proportional to 1/(a + t), a k-contraction, E||grad f_i(x_t)||^2 <= second_moment; a and alpha
    as in :func:`mem_sgd`.
    Statement: E||m_t||^2 <= step_t^2 (4 alpha/(alpha - 4)) (d/k)^2 second_moment.
    Kind: upper.
    Latex: \mathbb{E}\|m_t\|^2\le\gamma_t^2\,\frac{4\alpha}{\alpha-4}\,\frac{d^2}{k^2}\,M^2
    Attained: in the limit alpha to infinity, k/d to 0: C(v) = (1 - sqrt(1 - k/d)) v and a constant gradient reach the
    constant 4.
    Proof: E||m+||^2 <= (1 - k/(2d)) E||m||^2 + (2d/k) gamma^2 M^2, and induction; gamma decreases slowly enough.
    Source: [stich2018sparsified], Lemma 3.2, read in a transcript, with the condition of :func:`mem_sgd_shift`.
    step: The step size at t.
    shift (float, optional): a; the largest alpha that it allows is used.

    >>> mem_sgd_memory(1000, 10, step=0.01, second_moment=1.0, alpha=5.0)
    20.0
    """
    if alpha is None:
        assert shift is not None
        alpha = mem_sgd_alpha(d, k, shift)
    return step**2 * (4.0 * alpha / (alpha - 4.0)) * (d / k) ** 2 * second_moment


@formula("shift > 0")
def mem_sgd_weight_sum(steps: int, shift: float) -> float:
    """Sum of the weights of Mem-SGD's average.

    Setting: weights w_t = (a + t)^2, t = 0, ..., T - 1.
    Statement: S_T = (T/6) (2 T^2 + 6 a T - 3 T + 6 a^2 - 6 a + 1), at least T^3/3 for a >= 1.
    Kind: identity.
    Source: [stich2018sparsified], Theorem 2.4.
    shift: a.

    >>> mem_sgd_weight_sum(3, shift=2.0)  # 4 + 9 + 16
    29.0
    """
    T, a = float(steps), float(shift)
    return T * (T - 1.0) * (2.0 * T - 1.0) / 6.0 + a * T * (T - 1.0) + a * a * T


def _pull(mu: float, lipschitz: float, form: str) -> float:
    """The factor of gamma ||m||^2 in Lemma 3.1."""
    if form == "paper":
        return mu + 2.0 * lipschitz
    return mu / 2.0 + (2.0 * lipschitz - mu) ** 2 / (2.0 * (3.0 * lipschitz - mu))


@formula("lipschitz >= mu", "memory >= 0", "form in ('paper', 'sharp')")
def mem_sgd_iterate(
    *,
    mu: float,
    lipschitz: float,
    step: float,
    distance: float,
    second_moment: float,
    gap: float,
    memory: float,
    form: str = "paper",
) -> float:
    r"""Bound on the squared distance of x_t minus the memory from the minimum after a step.

    Setting: f is mu-strongly convex and L-smooth, y_t = x_t - m_t, y_{t+1} = y_t - gamma g_t with E g_t = grad f(x_t).
    Latex: \mathbb{E}\|y_{t+1}-x^*\|^2\le(1-\tfrac{\mu\gamma}2)\|y_t-x^*\|^2+\gamma^2M^2-\gamma(f(x_t)-f^*)+\gamma
    c\|m_t\|^2
    Proof: mu/2 ||x - m||^2 + f(x) - f* - 2 <g, x - m> <= c ||m||^2: subtract multiples of the interpolation
    inequalities between x and x*; the remainder is concave in (x, g) with its maximum at x = u m, g = L x.

    Statement (paper): E||y_{t+1} - x*||^2 <= (1 - mu gamma/2) E||y_t - x*||^2 + gamma^2 M^2 - gamma E(f(x_t) - f*) +
    gamma c E||m_t||^2 with c = mu + 2L.
    Kind (paper): upper.
    Source (paper): [stich2018sparsified], Lemma 3.1.

    Statement (sharp): E||y_{t+1} - x*||^2 <= (1 - mu gamma/2) E||y_t - x*||^2 + gamma^2 M^2 - gamma E(f(x_t) - f*) +
    gamma c E||m_t||^2 with c = mu/2 + (2L - mu)^2/(2 (3L - mu)), which is at most 3L/4.
    Kind (sharp): tight.
    Attained (sharp): by L x^2/2 with x = (2L - mu)/(3L - mu) m, and any noise.
    Source (sharp): derived; sharpens [stich2018sparsified], Lemma 3.1.

    distance: E||y_t - x*||^2 (squared).
    gap: E f(x_t) - f*.
    memory: E||m_t||^2.

    >>> mem_sgd_iterate(mu=1.0, lipschitz=1.0, step=0.5, distance=1.0, second_moment=1.0, gap=0.5, memory=1.0)
    2.25
    """
    return (
        (1.0 - mu * step / 2.0) * distance
        + step**2 * second_moment
        - step * gap
        + step * _pull(mu, lipschitz, form) * memory
    )


@formula("shift > 0", "second >= 0", "third >= 0", "form in ('paper', 'sharp')")
def mem_sgd_recursion(
    steps: int, *, mu: float, shift: float, distance: float, second: float, third: float, form: str = "paper"
) -> float:
    r"""Bound on the weighted mean of the gaps in a recursion of Mem-SGD's type.

    Setting: a_{t+1} <= (1 - mu gamma_t/2) a_t + gamma_t^2 A + gamma_t^3 B - gamma_t e_t with a_t, e_t >= 0 and gamma_t
    = 8/(mu (a + t)); weights w_t = (a + t)^2, t = 0, ..., T - 1.
    Proof: Multiplied by w_t/gamma_t, the a_t telescope, each with a negative remainder; sum w_t gamma_t = 4T (T + 2a -
    1)/mu and sum w_t gamma_t^2 = 64 T/mu^2.

    Statement (paper): sum w_t e_t/S_T <= (mu a^3/8 a_0 + 4T (T + 2a)/mu A + 64 T/mu^2 B)/S_T.
    Kind (paper): upper.
    Latex (paper): \sum_{t<T}w_te_t\le\frac{\mu a^3}8a_0+\frac{4T(T+2a)}\mu A+\frac{64T}{\mu^2}B
    Source (paper): [stich2018sparsified], Lemma 3.3.

    Statement (sharp): sum w_t e_t/S_T <= (mu a^2 max(a - 4, 0)/8 a_0 + 4T (T + 2a - 1)/mu A + 64 T/mu^2 B)/S_T.
    Kind (sharp): tight.
    Latex (sharp): \sum_{t<T}w_te_t\le\frac{\mu a^2(a-4)_+}8a_0+\frac{4T(T+2a-1)}\mu A+\frac{64T}{\mu^2}B
    Attained (sharp): for a >= 4, by a sequence with a_t = 0 from t = 1 on.
    Source (sharp): derived; sharpens [stich2018sparsified], Lemma 3.3.

    shift: a.
    distance: a_0.
    second, third: A and B.

    >>> mem_sgd_recursion(100, mu=1.0, shift=10.0, distance=1.0, second=1.0, third=1.0)
    0.1247
    """
    weights = mem_sgd_weight_sum(steps, shift)
    sharp = form == "sharp"
    cube = shift**2 * max(shift - 4.0, 0.0) if sharp else shift**3
    return (
        mu * cube / (8.0 * weights) * distance
        + 4.0 * steps * (steps + 2.0 * shift - sharp) / (mu * weights) * second
        + 64.0 * steps / (mu**2 * weights) * third
    )


@formula(
    "lipschitz >= mu",
    "0 < k <= d",
    "shift > 1",
    "alpha > 4",
    "averaged_second_moment >= 0",
    "form in ('paper', 'sharp')",
)
def mem_sgd(
    steps: int,
    *,
    mu: float,
    lipschitz: float,
    second_moment: float,
    distance: float,
    d: int,
    k: float,
    shift: float,
    alpha: float | None = None,
    averaged_second_moment: float | None = None,
    form: str = "paper",
) -> float:
    r"""Bound on f - f* at the weighted average of SGD with compression and memory.

    Setting: f is mu-strongly convex and L-smooth, E||grad f_i(x_t)||^2 <= M^2; a k-contraction (top-k, rand-k without
    d/k), memory; gamma_t = 8/(mu (a + t)), so ``InverseTime(c=8, mu=mu, shift=a)``; average weights (a + t)^2; a > 1
    and alpha > 4 with ((alpha + 1) d/k + rho)/(rho + 1) <= a (see :func:`mem_sgd_shift`).
    Kind: upper.
    Attained: nowhere; it is loose by orders of magnitude on sparse data, as no problem is the worst case of all three
    lemmas.
    Proof: memsgd.iterate with memsgd.memory is the recursion of memsgd.recursion. N synchronous workers that average:
    x_t minus the mean memory is still SGD's iterate with the averaged gradient, ||mean e||^2 <= mean ||e||^2, and Lemma
    3.2 holds for each worker; so in the first term the second moment of the *averaged* gradient may replace M^2.

    Statement (paper): E f(xbar_T) - f* <= 4T (T + 2a)/(mu S_T) M^2 + mu a^3/(8 S_T) ||x_0 - x*||^2 + 64 T (1 +
    2L/mu)/(mu S_T) (4 alpha/(alpha - 4)) (d/k)^2 M^2.
    Latex (paper): \mathbb{E}f(\bar x_T)-f^*\le\frac{4T(T+2a)}{\mu S_T}M^2+\frac{\mu a^3}{8S_T}\|x_0-x^*\|^2
    +\frac{64T(1+2L/\mu)}{\mu S_T}\,\frac{4\alpha}{\alpha-4}\,\frac{d^2}{k^2}M^2
    Source (paper): [stich2018sparsified], Theorem 2.4 for one worker; for N synchronous workers derived, by the same
    proof.

    Statement (sharp): The bound of the paper holds with T + 2a - 1, a^2 max(a - 4, 0) and c/mu with the c of
    :func:`mem_sgd_iterate` in place of T + 2a, a^3 and 1 + 2L/mu.
    Source (sharp): derived, by the sharp forms of [stich2018sparsified], Lemmas 3.1 and 3.3.

    Title (free): The asymptotic error does not depend on k.
    Statement (free): With memory and steps 2/(mu (a + t)), E f(xbar_T) - f* does not depend on k for large T: top-1 of
    ten coordinates reaches the error of full precision.
    Latex (free): \mathbb{E}f(\bar x_T)-f^*=\frac{C}{T}(1+o(1)),\quad C\ \text{the same for every}\ k
    Proof (free): x - e is an SGD iterate whose gradients are taken at a distance ||e|| = O(gamma d/k), which adds
    O(1/T^2).

    Title (theorem.rcv1): Mem-SGD's Theorem 2.4 on RCV1.
    Statement (theorem.rcv1): Theorem 2.4 holds on RCV1 with top-10 and a = 10 d/k, but the bound is far above f(x_0) -
    f* at every practical T; the same holds for Lemma 3.2.
    Proof (theorem.rcv1): memsgd.theorem; the factors are L/mu = n/4, (d/k)^2 and 1/mu = n.
    Source (theorem.rcv1): [stich2018sparsified], Theorem 2.4.

    Title (theorem.quadratic): The asymptotic ratio of Mem-SGD's Theorem 2.4 to a run.
    Statement (theorem.quadratic): On (mu/2) ||x||^2 from its minimum, with noise of variance sigma^2, Mem-SGD has E
    f(xbar_T) - f* ~ (96/125) sigma^2/(mu T) for every k; for a large shift M^2 tends to sigma^2, and the bound of
    Theorem 2.4 to 125/8 times that error.
    Kind (theorem.quadratic): identity.
    Latex (theorem.quadratic): T\,\mathbb{E}f(\bar x_T)\to\frac{96}{125}\frac{\sigma^2}\mu,\qquad
    T\cdot\text{bound}\to\frac{12\,M^2}\mu
    Attained (theorem.quadratic): Theorem 2.4 up to 125/8: 15/4 between its lemmas and the weighted mean of f(x_t) - f*,
    whose limit is (16/5) sigma^2/(mu T), and 25/6 between that mean and f at the average.
    Proof (theorem.quadratic): xbar_T - x* is the sum over s of c_s xi_s/S_T, c_s ~ (8/(5 mu)) (s^2 - s^7/T^5), whose
    squares sum to 64 T^5/(375 mu^2); S_T ~ T^3/3. The memory changes it by O(1/T^2). In the bound the terms of the
    start and of the memory are O(1/T^2), too, and 4T (T + 2a)/S_T ~ 12/T.
    Source (theorem.quadratic): derived, for [stich2018sparsified], Theorem 2.4.

    Title (slope.rcv1): The rate 1/T with top-10 and memory on RCV1.
    Statement (slope.rcv1): Mem-SGD with top-10, the same steps and weights keeps the rate 1/T: E f(xbar_T) - f* ~ 1/T.
    Latex (slope.rcv1): \mathbb{E}f(\bar x_T)-f^*=O\Big(\frac{M^2}{\mu T}\Big)\ \text{as}\ T\to\infty
    Proof (slope.rcv1): In Theorem 2.4 the compressor is only in the terms of order 1/T^2 and 1/T^3.

    Kind (free, slope.rcv1): rate.
    Source (free, slope.rcv1): [stich2018sparsified], Remark 2.6.

    shift: a.
    alpha (float, optional): By default the largest that ``shift`` allows.
    averaged_second_moment (float, optional): Bound on E||mean over workers of the gradients||^2.

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if alpha requires a larger shift.

    >>> mem_sgd(1000, mu=1.0, lipschitz=2.0, second_moment=1.0, distance=1.0, d=10, k=5, shift=14.0)
    0.0465
    """
    best = mem_sgd_alpha(d, k, shift)
    alpha = best if alpha is None else alpha
    require(4 < alpha <= best * (1 + 1e-12), "alpha", alpha, f"above 4 and at most {best} for the shift {shift}")
    first = second_moment if averaged_second_moment is None else averaged_second_moment
    weights, sharp = mem_sgd_weight_sum(steps, shift), form == "sharp"
    memory = mem_sgd_memory(d, k, 1.0, second_moment, alpha=alpha)
    cube = shift**2 * max(shift - 4.0, 0.0) if sharp else shift**3
    return (
        mu * cube / (8.0 * weights) * distance
        + 4.0 * steps * (steps + 2.0 * shift - sharp) / (mu * weights) * first
        + 64.0 * steps * _pull(mu, lipschitz, form) / (mu**2 * weights) * memory
    )


# --- Bits as the authors count them ----------------------------------------------------------------------------------

INDEX_AND_VALUE = 64  # 32 bits each


@formula("method in ('sgd', 'entries', 'qsgd')", "0 < nonzeros <= d")
def mem_sgd_counted_bits(method: str, d: int, number: int | None = None, nonzeros: float | None = None) -> int:
    """Bits of a message as counted in the figures of the Mem-SGD paper.

    Setting: one gradient in R^d, which has ``nonzeros`` non-zeros on average if the data are sparse. QSGD with b bits
    has s = 2^b levels and the norm of the whole vector.
    Statement: SGD: 64 times the non-zeros, or 64 d for dense data. k entries: 64 k. QSGD: the minimum of (b + 1) d, 3 s
    (s + sqrt(d)) + 32 and, for sparse data, (b + 1 + 32) times the non-zeros, rounded up.
    Kind: identity, of a way of counting. None of these numbers is the length of a message: the second term of QSGD
    omits the logarithm of :func:`qsgd_code_length`, and on sparse data every non-zero is counted, sent or not; SGD's
    dense messages need no indices and take 32 d bits.
    Source: epfml/sparsifiedSGD, notebooks/plots.ipynb, which draws Figure 3 of [stich2018sparsified].
    number (int, optional): k for "entries", from 1 to d; b for "qsgd", from 1 to 24.
    nonzeros (float, optional): Non-zeros of a gradient, above 0 and at most d; omitted for dense data.

    >>> [mem_sgd_counted_bits("qsgd", 2000, b) for b in (2, 4, 8)]
    [617, 2947, 18000]
    """
    if method == "sgd":
        return math.ceil(INDEX_AND_VALUE * (d if nonzeros is None else nonzeros))
    most = d if method == "entries" else 24
    require(number is not None and 1 <= number <= most, "number", number, f"an integer from 1 to {most}")
    assert number is not None
    if method == "entries":
        return INDEX_AND_VALUE * number
    s = 2**number
    counts = [(number + 1) * d, 3 * s * (s + math.sqrt(d)) + 32]
    if nonzeros is not None:
        counts.append((number + 1 + 32) * nonzeros)
    return math.ceil(min(counts))


@formula("1 <= k <= d", "reading in ('counted', 'sent')")
def mem_sgd_bits_ratio(d: int, k: int, reading: str = "sent") -> float:
    r"""Ratio of the bits of SGD's message to those of a message of k entries, on dense data.

    Setting: gradients without zeros in R^d; k entries with their indices, or all of them.
    Kind: identity.

    Statement (sent): The ratio of the bits that have to be sent is 32 d/(k (32 + ceil(log2 d))), in single precision;
    the ratio of the bits that the figures count is d/k.
    Latex (sent): \frac{32\,d}{k(32+\lceil\log_2d\rceil)}
    Source (sent): derived; the figures are those of [stich2018sparsified].

    Statement (counted): The ratio of the bits that are counted is d/k, since the figures count d indices for SGD, which
    it need not send.
    Source (counted): epfml/sparsifiedSGD, notebooks/plots.ipynb, which draws Figure 3 of [stich2018sparsified].

    k: From 1 to d.

    >>> mem_sgd_bits_ratio(2000, 1, "counted"), mem_sgd_bits_ratio(2000, 1)
    (2000.0, 1488.372)
    """
    if reading == "counted":
        return d / k
    return 32.0 * d / (k * (32.0 + math.ceil(math.log2(d))))
