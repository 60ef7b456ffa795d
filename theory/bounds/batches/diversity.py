"""Gradient diversity: its effect on mini-batches, lower bounds from the data, and mechanisms that raise it.

The lower bounds of the batch-size bound B_D hold at every point.

The mechanisms are DropConnect, Langevin noise and one-level quantization.  A mechanism replaces grad f_i by a random
g_i with E g_i = m grad f_i.  Its ``factor`` r = mean E||g_i||^2/(m^2 M^2), at least 1, is the factor by which it raises
the second moment of a gradient; all other results follow from r and B_D.  ``n`` is given if repeats of a row in a batch
share their noise (the source's setting), and None if every draw has its own.
"""

from __future__ import annotations

import math

from ...core import require
from ..closed_form import formula

# --- Mini-batches and gradient diversity -----------------------------------------------------------------------------


@formula("gradient_squared >= 0", "second_moment >= gradient_squared")
def batch_bound(second_moment: float, gradient_squared: float) -> float:
    r"""Batch-size bound B_D of a set of gradients.

    Title: Gradient diversity and the batch-size bound.
    Setting: f = (1/n) sum f_i at one point x.
    Statement: B_D = n sum ||grad f_i||^2/||sum grad f_i||^2 = M^2/||grad f||^2 is n for orthogonal gradients, 1 for
    equal ones, and the same for copies of the data joined.
    Kind: identity.
    Latex: B_D(w)=\frac{n\sum_i\|\nabla f_i(w)\|^2}{\|\sum_i\nabla f_i(w)\|^2}=\frac{M^2(w)}{\|\nabla f(w)\|^2}
    Proof: sum ||g_i||^2 = n M^2 and ||sum g_i||^2 = n^2 ||grad f||^2; copies multiply the first by r, the second by
    r^2, and n by r.
    Source: [yin2018gradient], Definitions 4 and 5; copies: derived.

    Title (differential): Differential gradient diversity, without dense rows.
    Statement (differential): For the differences of gradients at two points, ||(s_i - s'_i) a_i + l2 u||^2 = (s_i -
    s'_i)^2 ||a_i||^2 + 2 l2 (s_i - s'_i) a_i'u + l2^2 ||u||^2, u = w - w', gives B_D(w, w') from margins alone.
    Latex (differential): B_D(w,w')=\frac{n\sum_i\|\nabla f_i(w)-\nabla f_i(w')\|^2}{\|\sum_i(\nabla f_i(w)-\nabla
    f_i(w'))\|^2}
    Source (differential): [yin2018gradient], Definition 6.

    Title (sampled): Gradient diversity from samples.
    Statement (sampled): Means of ||g||^2 over draws, and of <g, g'> over pairs of different draws, estimate M^2 and
    ||grad f||^2 without bias; Fieller's interval for their ratio covers B_D. If repeats of a row share the noise of a
    mechanism, the same holds with M^2/B for ||grad f||^2.
    Proof (sampled): Different draws are independent, so E<g, g'> = ||E g||^2; a draw with itself has E||g||^2. With
    shared noise the groups of draws are independent, and the draws of a group are not.
    Source (sampled): derived; Fieller, 1954.

    second_moment: M^2(x), at least ``gradient_squared`` (Cauchy-Schwarz).
    gradient_squared: ||grad f(x)||^2, at least 0.

    Returns
    -------
    float
        At least 1; infinite at a stationary point.

    >>> batch_bound(4.0, 2.0)
    2.0
    """
    return max(1.0, second_moment / gradient_squared) if gradient_squared > 0 else float("inf")


@formula("lipschitz >= 0", "max_lipschitz >= lipschitz * (1 - 1e-09)")
def expected_smoothness(
    lipschitz: float, max_lipschitz: float, *, batch: int = 1, workers: int = 1, omega: float = 0.0
) -> float:
    r"""Expected smoothness of an averaged, compressed mini-batch gradient.

    Setting: f = (1/n) sum f_i, convex, all f_i minimal at x* and L_max-smooth, f L-smooth; N workers draw B rows each
    with replacement, compress their mean without bias and with the variance factor omega, and average.
    Statement: If all f_i are convex, L_max-smooth and minimal at x*, the mean of N workers' compressed batches of B
    rows has E||g||^2 <= 2 S (f(x) - f*), S = L (1 - 1/N) + (1 + omega) (L (1 - 1/B) + L_max/B)/N. Steps up to 1/S are
    contractions in expectation. On quadratics with rows of equal norm, steps above 2/S are not.
    Kind: tight.
    Latex:
    \mathbb{E}\|g\|^2\le2\Big(L(1-\tfrac1N)+\tfrac{1+\omega}N\big(L(1-\tfrac1B)+\tfrac{L_{\max}}B\big)\Big)(f-f^*)
    Attained: least squares with orthogonal rows of one norm, and random-k.
    Proof: ||grad f_i||^2 <= 2 L_max (f_i - f_i*), averaged, ||grad f||^2 <= 2 L (f - f*), and independence.
    Source: derived, from ||grad f_i(x)||^2 <= 2 L_max (f_i(x) - f_i*), averaged, and independence; without compression
    it is the expected smoothness of Gower et al., "SGD: general analysis and improved rates", ICML 2019, for sampling
    with replacement (the paper was not available).
    lipschitz, max_lipschitz: L and L_max.
    batch, workers: B and N.

    >>> expected_smoothness(1.0, 9.0), expected_smoothness(1.0, 9.0, batch=8), expected_smoothness(1.0, 9.0, workers=8)
    (9.0, 2.0, 2.0)
    """
    own = lipschitz * (1.0 - 1.0 / batch) + max_lipschitz / batch
    return lipschitz * (1.0 - 1.0 / workers) + (1.0 + omega) * own / workers


@formula("reduction in ('mean', 'sum')", "gradient_squared >= 0", "second_moment >= gradient_squared", "n >= batch")
def minibatch_second_moment(
    second_moment: float, gradient_squared: float, batch: int, n: int | None = None, reduction: str = "mean"
) -> float:
    """Second moment of a mini-batch gradient.

    Setting: B rows drawn uniformly from n, with replacement (n=None) or without.
    Statement: for the *sum* of the B gradients, with B_D = M^2/||grad f||^2, with replacement: B M^2 (1 + (B - 1)/B_D);
    without: B M^2 (1 + ((B - 1)/(n - 1)) (n/B_D - 1)). For the *mean* divide by B^2.
    Kind: identity.
    Source: [yin2018gradient], Lemma 1 (with replacement, sums); without replacement derived: E<g_i, g_j> = (n^2 ||grad
    f||^2 - n M^2)/(n (n - 1)) for i != j.
    second_moment: M^2(x) = (1/n) sum ||grad f_i(x)||^2.
    gradient_squared: ||grad f(x)||^2.
    n (int, optional): Number of rows, for draws without replacement.
    reduction: The source sums the gradients of a batch; the methods of this package average them.

    >>> minibatch_second_moment(4.0, 1.0, batch=3), minibatch_second_moment(4.0, 1.0, batch=4, n=4)
    (2.0, 1.0)
    """
    pair = gradient_squared  # E<g_i, g_j> of two rows of the batch
    if n is not None and n > 1:
        pair = (n * gradient_squared - second_moment) / (n - 1)
    whole = batch * second_moment + batch * (batch - 1) * pair
    return whole if reduction == "sum" else whole / batch**2


@formula("reduction in ('mean', 'sum')", "gradient_squared >= 0", "second_moment >= gradient_squared", "n >= batch")
def minibatch_step(
    distance: float,
    alignment: float,
    second_moment: float,
    gradient_squared: float,
    *,
    batch: int,
    step: float,
    n: int | None = None,
    reduction: str = "mean",
) -> float:
    r"""Expected squared distance to any point after one mini-batch step.

    Setting: x_+ = x - step * (mean or sum of the B gradients at x), any f_i, any point x*.
    Statement: E||x_+ - x*||^2 = ||x - x*||^2 - 2 c <grad f(x), x - x*> + step^2 E||mini-batch gradient||^2, with c =
    step for means and B step for sums, and :func:`minibatch_second_moment`. For sums with replacement and B = delta B_D
    + 1 the last term is (1 + delta) B step^2 M^2. With a projection, "<=".
    Kind: identity.
    Source: [yin2018gradient], Lemma 1 (sums, with replacement).

    Title (step): One mini-batch step.
    Statement (step): A step with the mean of B gradients drawn with replacement gives E||x+ - x*||^2 = ||x - x*||^2 - 2
    gamma <grad f, x - x*> + gamma^2 (1 + (B-1)/B_D) M^2/B.
    Latex (step): \mathbb{E}\|x_+-x^*\|^2=\|x-x^*\|^2-2\gamma\langle\nabla
    f,x-x^*\rangle+\tfrac{\gamma^2}{B}\Big(1+\tfrac{B-1}{B_D}\Big)M^2
    Proof (step): Two different draws of a batch are independent, so their gradients have the mean product ||grad f||^2
    = M^2/B_D; there are B (B-1) such pairs.
    Source (step): [yin2018gradient], Lemma 1 (which sums the gradients: its step times B)

    Title (step.without-replacement): One mini-batch step, rows without replacement.
    Statement (step.without-replacement): As minibatch.step with the last term gamma^2 (1 + ((B-1)/(n-1)) (n/B_D - 1))
    M^2/B.
    Latex (step.without-replacement): \mathbb{E}\|x_+-x^*\|^2=\|x-x^*\|^2-2\gamma\langle\nabla
    f,x-x^*\rangle+\tfrac{\gamma^2}{B}\Big(1+\tfrac{B-1}{n-1}(\tfrac n{B_D}-1)\Big)M^2
    Attained (step.without-replacement): everywhere; for B = n there is no noise.
    Proof (step.without-replacement): Two different rows have the mean product (n ||grad f||^2 - M^2)/(n - 1).
    Source (step.without-replacement): derived; the variant of [yin2018gradient], Lemma 1.

    distance: ||x - x*||^2 (squared).
    alignment: <grad f(x), x - x*>.
    second_moment, gradient_squared: M^2(x) and ||grad f(x)||^2.
    n (int, optional): Number of rows, for draws without replacement.
    reduction ({"mean", "sum"}):

    >>> minibatch_step(1.0, 0.5, 4.0, 1.0, batch=3, step=0.1)  # 1 - 2 * 0.1 * 0.5 + 0.01 * 2
    0.92
    """
    noise = minibatch_second_moment(second_moment, gradient_squared, batch, n, reduction)
    factor = step if reduction == "mean" else batch * step
    return distance - 2.0 * factor * alignment + step**2 * noise


# --- Lower bounds of the batch-size bound B_D that hold at every point -----------------------------------------------


@formula("n >= 1", "spectral > 0", "0 <= smallest_row <= spectral * (1 + 1e-9)")
def glm_batch_bound(n: int, smallest_row: float, spectral: float) -> float:
    r"""Lower bound of the batch-size bound of a generalized linear model.

    Setting: f_i(w) = l_i(x_i'w) with any differentiable l_i, no l2 term; the x_i are the rows of X. Also for models
    whose scores are X W with a matrix W, as in multinomial regression.
    Statement: B_D(w) >= n min_i ||x_i||^2/sigma_max(X)^2 at every w, and so for the differential version B_D(w, w'). It
    is at most n, and below 1 it is vacuous.
    Kind: tight (if all ||x_i|| are equal and the l_i'(x_i'w) are a top left singular vector of X; for the differential
    version with quadratic l_i, if w - w' is a top right singular vector).
    Latex: B_D(w)\ge\frac{n\min_i\|x_i\|^2}{\sigma_{\max}(X)^2}
    Proof: ||X's||^2 <= sigma_max^2 ||s||^2 for the slopes s, and sum ||s_i x_i||^2 >= min||x_i||^2 ||s||^2.
    Source: [yin2018gradient], Remark 1 and supplement 1.1. Supplement 5.5 prints the differential version without the
    factor n; that bound also holds, but it is never above 1.
    n: Number of rows.
    smallest_row: min_i ||x_i||^2 (squared).
    spectral: sigma_max(X)^2 (squared), above 0 and at least ``smallest_row``.

    >>> glm_batch_bound(12, smallest_row=1.0, spectral=3.0)  # say, four groups of three equal unit rows, orthogonal
    4.0
    """
    return n * smallest_row / spectral


@formula("n >= 1", "form in ('asymptotic', 'guaranteed', 'printed')")
def random_features_batch_bound(n: int, d: int, form: str = "asymptotic", failure: float = 1e-6) -> float:
    r"""Lower bound of the batch-size bound of a generalized linear model on random signs.

    Setting: n rows of d independent entries -1 or +1, so that ||x_i||^2 = d; losses as in :func:`glm_batch_bound`.
    Statement: The number of the table is a lower bound on B_D.
    Kind: lower.
    Source: [yin2018gradient], Proposition 2 (c d for some c, with probability 1 - c' exp(-c'' n)). Asymptotic constant
    derived from sigma_max ~ sqrt(n) + sqrt(d). Guaranteed: derived. E sigma_max <= sqrt(pi/2) E of that for Gaussian
    entries (contraction: E|g| = sqrt(2/pi)), which is at most sqrt(n) + sqrt(d) (Gordon); sigma_max is convex and
    1-Lipschitz, so above its mean by t with probability at most exp(-t^2/8) (Boucheron, Lugosi, Massart, "Concentration
    inequalities", Theorem 6.10, for entries in an interval of length 2).

    Statement (asymptotic): B_D at all w is asymptotically at least n d/(sqrt(n) + sqrt(d))^2 = d/(1 + sqrt(d/n))^2.
    This is the limit of the GLM bound as n and d grow at a fixed ratio, and it lies between d/4 and d for n >= d.
    Source (asymptotic): derived from sigma_max ~ sqrt(n) + sqrt(d).

    Statement (guaranteed): B_D at all w is at least n d/(sqrt(pi/2) (sqrt(n) + sqrt(d)) + sqrt(8 log(1/failure)))^2
    with probability at least 1 - failure, for every n and d.
    Proof (guaranteed): E sigma_max <= sqrt(pi/2) E of that for Gaussian entries (contraction: E|g| = sqrt(2/pi)), which
    is at most sqrt(n) + sqrt(d) (Gordon). sigma_max is convex and 1-Lipschitz, so it is above its mean by t with
    probability at most exp(-t^2/8) (Boucheron, Lugosi, Massart, "Concentration inequalities", Theorem 6.10, for entries
    in an interval of length 2).
    Source (guaranteed): derived.

    Statement (printed): B_D >= d/4 for n >= d. The source has c d; this constant c is that of the limit at n = d.
    Source (printed): [yin2018gradient], Proposition 2 (c d for some c, with probability 1 - c' exp(-c'' n)).

    Title (random-features): Gradient diversity of random signs.
    Statement (random-features): For n rows of d random signs B_D >= c d at every w: c approaches 1/(1 + sqrt(d/n))^2 as
    d and n grow.
    Kind (random-features): rate.

    Latex (asymptotic, random-features): B_D(w)\ge c\,d,\qquad c\to\Big(1+\sqrt{d/n}\Big)^{-2}

    n, d: At least 1; for ``form="printed"`` n >= d.
    failure: In (0, 1); for ``form="guaranteed"``.

    >>> random_features_batch_bound(400, 100)  # 100/(1 + 1/2)^2
    44.444
    >>> random_features_batch_bound(100, 100), random_features_batch_bound(100, 100, form="printed")
    (25.0, 25.0)
    """
    if form == "printed":
        require(n >= d, "n", n, f"at least d = {d}")
        return d / 4.0
    spectral = math.sqrt(n) + math.sqrt(d)
    if form == "guaranteed":
        require(0 < failure < 1, "failure", failure, "a probability in (0, 1)")
        spectral = math.sqrt(math.pi / 2.0) * spectral + math.sqrt(8.0 * math.log(1.0 / failure))
    return glm_batch_bound(n, d, max(d, spectral**2))


@formula("n >= 1", "degree >= 0", "degree <= n - 1")
def conflict_batch_bound(n: int, degree: int) -> float:
    r"""Lower bound of the batch-size bound if few gradients share coordinates.

    Setting: two rows are in conflict if the supports of their gradients overlap; rho is the largest number of rows that
    one row is in conflict with. No l2 term, which would put all rows in conflict.
    Statement: B_D(w) >= n/(rho + 1) at every w if no gradient shares a coordinate with more than rho others; the same
    for the differential version.
    Kind: tight (disjoint groups of rho + 1 rows with equal gradients).
    Latex: B_D(w)\ge\frac n{\rho+1}
    Proof: ||sum g_i||^2 has only the products of rows in conflict, and each is at most the mean of two squares.
    Source: [yin2018gradient], Remark 2 and Proposition 3.
    n: Number of rows.
    degree: rho, from 0 (orthogonal gradients) to n - 1.

    >>> conflict_batch_bound(12, degree=2)
    4.0
    """
    return n / (degree + 1)


# --- Mechanisms that raise gradient diversity ------------------------------------------------------------------------


@formula("0 <= drop < 1")
def drop_connect_factor(drop: float) -> float:
    """Factor by which DropConnect raises the second moment of a gradient.

    Setting: every coordinate of grad f_i is dropped with probability p, so that E g_i = (1 - p) grad f_i.
    Statement: E||g_i||^2/(1 - p)^2 = ||grad f_i||^2/(1 - p), so r = 1/(1 - p).
    Kind: identity.
    Source: [yin2018gradient], section 4.4 and supplement 4 (the two moments).
    drop: p in [0, 1).

    Raises
    ------
    ValueError
        If p is outside its domain.

    >>> drop_connect_factor(0.75)
    4.0
    """
    return 1.0 / (1.0 - drop)


@formula("deviation >= 0", "second_moment > 0")
def langevin_factor(deviation: float, d: int, second_moment: float) -> float:
    """Factor by which Gaussian noise raises the second moment of a gradient.

    Setting: g_i = grad f_i + N(0, sigma^2 I_d).
    Statement: r = 1 + d sigma^2/M^2 with M^2 = (1/n) sum ||grad f_i||^2.
    Kind: identity.
    Source: [yin2018gradient], section 4.4 and supplement 4 (stochastic gradient Langevin dynamics).
    deviation: sigma.
    second_moment: M^2.

    >>> langevin_factor(0.5, d=8, second_moment=2.0)  # 1 + 8/4/2
    2.0
    """
    return 1.0 + d * deviation**2 / second_moment


@formula("second_moment > 0", "mean_norm_product >= second_moment")
def quantized_factor(mean_norm_product: float, second_moment: float) -> float:
    """Factor by which quantization to one level of the Euclidean norm raises the second moment of a gradient.

    Setting: coordinate j of g_i is sign(v_j) ||v||_2 with probability abs(v_j)/||v||_2, else 0, for v = grad f_i.
    Statement: E||g_i||^2 = ||v||_1 ||v||_2, so r = mean(||grad f_i||_1 ||grad f_i||_2)/M^2.
    Kind: identity.
    Source: [yin2018gradient], section 4.4 and supplement 4.
    mean_norm_product: (1/n) sum ||grad f_i||_1 ||grad f_i||_2; at least M^2.
    second_moment: M^2.

    >>> quantized_factor(35.0, 25.0)  # one gradient (3, 4): norms 7 and 5
    1.4
    """
    return max(1.0, mean_norm_product / second_moment)


@formula("1 <= factor <= inf", "n >= 1")
def mechanism_batch_bound(batch_bound: float, factor: float, n: int | None = None) -> float:
    r"""Batch-size bound of gradients after a mechanism.

    Setting: the mechanism multiplies the second moment by r (relative to the squared mean); its noise is fresh for each
    draw (n=None), or drawn once for each of the n rows and shared by the repeats of a row in a batch.
    Statement: fresh: B = r B_D. Shared: B = n sum E||g_i||^2/E||sum g_i||^2 = r B_D/(1 + (r - 1) B_D/n), which lies
    between B_D and n: it is at least B_D iff B_D <= n (or r = 1).
    Kind: identity.
    Source: shared: [yin2018gradient], section 4.4, supplement 4 and Theorem 7, in one formula for all three mechanisms;
    fresh: derived. With A = sum ||grad f_i||^2 and X = sum_{j != k} <grad f_j, grad f_k>, it is n A/(A + (1 - p) X) for
    DropConnect, (n A + n^2 d sigma^2)/(A + X + n d sigma^2) for Langevin noise, and n S/(S + X), S = sum ||grad f_i||_1
    ||grad f_i||_2, for quantization.

    Title (drop-connect): DropConnect.
    Statement (drop-connect): With coordinates dropped with probability p, B = B_D/(1 - p) for noise that is fresh in
    every draw, and n A/(A + (1 - p) X) if repeats of a row share it; A = sum ||grad f_i||^2, X = sum_{j != k} <grad
    f_j, grad f_k>.
    Latex (drop-connect): B=\frac{B_D}{1-p}\quad\text{or}\quad\frac{nA}{A+(1-p)X}
    Proof (drop-connect): E g = (1 - p) v and E||g||^2 = (1 - p)||v||^2; only repeats of a row may have dependent noise.

    Title (langevin): Langevin noise.
    Statement (langevin): With N(0, sigma^2 I) added, B = B_D (1 + d sigma^2/M^2) for fresh noise, and (n A + n^2 d
    sigma^2)/(A + X + n d sigma^2) if repeats of a row share it.
    Latex (langevin): B=B_D\Big(1+\frac{d\sigma^2}{M^2}\Big)\quad\text{or}\quad\frac{nA+n^2d\sigma^2}{A+X+nd\sigma^2}
    Proof (langevin): E||g||^2 = ||v||^2 + d sigma^2.

    Title (quantized): Quantized gradients.
    Statement (quantized): With each gradient quantized to one level of its norm and S = sum ||grad f_i||_1 ||grad
    f_i||_2, B = S/(n ||grad f||^2) for fresh noise, and n S/(S + X) if repeats of a row share it.
    Latex (quantized): B=\frac{S}{n\|\nabla f\|^2}\ \text{or}\ \frac{nS}{S+X},\quad S=\sum_i\|\nabla f_i\|_1\|\nabla
    f_i\|_2
    Proof (quantized): E||Q(v)||^2 = ||v||_1 ||v||_2.

    Title (theorem-7): Effect of a mechanism on the batch-size bound.
    Statement (theorem-7): With noise that repeats of a row share, B_D <= B <= n for all three mechanisms if B_D <= n,
    and B > n if B_D > n.
    Kind (theorem-7): lower.
    Latex (theorem-7): B_D\le n\ \Rightarrow\ B_D\le B\le n,\qquad B_D>n\ \Rightarrow\ B>n
    Proof (theorem-7): 1/B is a mean of 1/B_D, with the weight 1/r, and 1/n.
    Source (theorem-7): [yin2018gradient], Theorem 7; B <= n: derived.

    Source (drop-connect, langevin, quantized): [yin2018gradient], section 4.4 and supplement 4 (shared); fresh:
    derived.

    batch_bound: B_D, at least 1; infinite at a stationary point.
    factor: r, at least 1: :func:`drop_connect_factor`, :func:`langevin_factor` or :func:`quantized_factor`.
    n (int, optional): Number of rows, where repeats of a row share their noise.

    >>> mechanism_batch_bound(10.0, 4.0), mechanism_batch_bound(10.0, 4.0, n=30)  # 40/(1 + 30/30)
    (40.0, 20.0)
    """
    if n is None:
        return factor * batch_bound
    if factor == 1.0:
        return batch_bound
    return 1.0 / (1.0 / (factor * batch_bound) + (1.0 - 1.0 / factor) / n)  # also if one of them is infinite


@formula("1 <= batch_bound < inf", "1 <= factor < inf", "n >= 1")
def mechanism_rounds(batch_bound: float, factor: float, n: int | None = None) -> float:
    r"""Factor by which a mechanism changes the number of rounds with the largest allowed batch.

    Title: Mechanisms do not save rounds.
    Setting: theorems whose number of gradients T grows with the second moment (as r) at a given accuracy, whose step
    for unbiased gradients shrinks with it, and whose batch may grow to a constant times the batch-size bound.
    Statement: A mechanism that multiplies the second moment by r, and the batch by r, does not improve a round: the
    second moment of a round's mean gradient grows by (1 - 1/r) ||grad f||^2/B, and by a further (1 - 1/(rB)) (r - 1)
    M^2/n if repeats of a row share the noise.
    Kind: identity.
    Latex: \mathbb{E}\|\bar g_{rB}\|^2=\mathbb{E}\|\bar g_B\|^2+\frac{(1-1/r)\|\nabla f\|^2}{B}
    Proof: (1/(rB)) (r M^2) + (1 - 1/(rB)) (mean product of two draws), which is ||grad f||^2 for fresh noise and ||grad
    f||^2 + (r - 1) M^2/n for shared.
    Source: derived from [yin2018gradient], Lemma 1 and section 4.4, who only mention two opposing effects.
    batch_bound: B_D, at least 1 and finite.
    factor: r, at least 1 and finite.
    n (int, optional): Number of rows, where repeats of a row share their noise.

    Returns
    -------
    float
        At least 1.

    >>> mechanism_rounds(10.0, 4.0), mechanism_rounds(10.0, 4.0, n=30)
    (1.0, 2.0)
    """
    return 1.0 + (0.0 if n is None else (factor - 1.0) * batch_bound / n)
