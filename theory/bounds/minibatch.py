"""Mini-batches and gradient diversity."""

from __future__ import annotations

from .closed_form import formula


@formula("gradient_squared >= 0", "second_moment >= gradient_squared")
def batch_bound(second_moment: float, gradient_squared: float) -> float:
    r"""Batch-size bound B_D of a set of gradients.

    Title: Gradient diversity and the batch-size bound.
    Title (differential): Differential gradient diversity, without dense rows.
    Title (sampled): Gradient diversity from samples.
    Setting: f = (1/n) sum f_i at one point x.
    Statement: B_D = n sum ||grad f_i||^2/||sum grad f_i||^2 = M^2/||grad f||^2 is n for orthogonal gradients, 1 for
    equal ones, and the same for copies of the data joined.
    Statement (differential): For the differences of gradients at two points, ||(s_i - s'_i) a_i + l2 u||^2 = (s_i -
    s'_i)^2 ||a_i||^2 + 2 l2 (s_i - s'_i) a_i'u + l2^2 ||u||^2, u = w - w', gives B_D(w, w') from margins alone.
    Statement (sampled): Means of ||g||^2 over draws, and of <g, g'> over pairs of different draws, estimate M^2 and
    ||grad f||^2 without bias; Fieller's interval for their ratio holds B_D. The same for a mechanism whose noise
    repeats of a row share, with M^2/B for ||grad f||^2.
    Kind: identity.
    Latex: B_D(w)=\frac{n\sum_i\|\nabla f_i(w)\|^2}{\|\sum_i\nabla f_i(w)\|^2}=\frac{M^2(w)}{\|\nabla f(w)\|^2}
    Latex (differential): B_D(w,w')=\frac{n\sum_i\|\nabla f_i(w)-\nabla f_i(w')\|^2}{\|\sum_i(\nabla f_i(w)-\nabla
    f_i(w'))\|^2}
    Proof: sum ||g_i||^2 = n M^2 and ||sum g_i||^2 = n^2 ||grad f||^2; copies multiply the first by r, the second by
    r^2, and n by r.
    Proof (sampled): Different draws are independent, so E<g, g'> = ||E g||^2; a draw with itself has E||g||^2. With
    shared noise the groups of draws are independent, and the draws of a group are not.
    Source: [yin2018gradient], Definitions 4 and 5; copies: derived.
    Source (differential): [yin2018gradient], Definition 6.
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
    Statement: E||g(x)||^2 <= 2 S (f(x) - f*) with S = L (1 - 1/N) + (1 + omega) (L (1 - 1/B) + L_max/B)/N. So steps up
    to 1/S are contractions in expectation, and on quadratics with rows of equal norm those above 2/S are none.
    Statement (expected-smoothness): If all f_i are convex, L_max-smooth and minimal at x*, the mean of N workers'
    compressed batches of B rows has E||g||^2 <= 2 S (f(x) - f*), S = L (1 - 1/N) + (1 + omega) (L (1 - 1/B) +
    L_max/B)/N.
    Kind: upper.
    Latex:
    \mathbb{E}\|g\|^2\le2\Big(L(1-\tfrac1N)+\tfrac{1+\omega}N\big(L(1-\tfrac1B)+\tfrac{L_{\max}}B\big)\Big)(f-f^*)
    Kind (expected-smoothness): tight.
    Latex (expected-smoothness):
    \mathbb{E}\|g\|^2\le2\Big(L(1-\tfrac1N)+\tfrac{1+\omega}N\big(L(1-\tfrac1B)+\tfrac{L_{\max}}B\big)\Big)(f-f^*)
    Attained (expected-smoothness): least squares with orthogonal rows of one norm, and random-k.
    Proof (expected-smoothness): ||grad f_i||^2 <= 2 L_max (f_i - f_i*), averaged, ||grad f||^2 <= 2 L (f - f*), and
    independence.
    Source: derived, from ||grad f_i(x)||^2 <= 2 L_max (f_i(x) - f_i*), averaged, and independence; without compression
    it is the expected smoothness of Gower et al., "SGD: general analysis and improved rates", ICML 2019, for sampling
    with replacement (the text was not at hand).
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

    Title (step): One mini-batch step.
    Title (step.without-replacement): One mini-batch step, rows without replacement.
    Setting: x_+ = x - step * (mean or sum of the B gradients at x), any f_i, any point x*.
    Statement: E||x_+ - x*||^2 = ||x - x*||^2 - 2 c <grad f(x), x - x*> + step^2 E||mini-batch gradient||^2, with c =
    step for means and B step for sums, and :func:`minibatch_second_moment`. For sums with replacement and B = delta B_D
    + 1 the last term is (1 + delta) B step^2 M^2. With a projection, "<=".
    Statement (step): A step with the mean of B gradients drawn with replacement gives E||x+ - x*||^2 = ||x - x*||^2 - 2
    eta <grad f, x - x*> + eta^2 (1 + (B-1)/B_D) M^2/B.
    Statement (step.without-replacement): As minibatch.step with the last term eta^2 (1 + ((B-1)/(n-1)) (n/B_D - 1))
    M^2/B.
    Kind: identity.
    Kind (step): identity.
    Kind (step.without-replacement): identity.
    Latex (step): \mathbb{E}\|x_+-x^*\|^2=\|x-x^*\|^2-2\eta\langle\nabla
    f,x-x^*\rangle+\tfrac{\eta^2}{B}\Big(1+\tfrac{B-1}{B_D}\Big)M^2
    Latex (step.without-replacement): \mathbb{E}\|x_+-x^*\|^2=\|x-x^*\|^2-2\eta\langle\nabla
    f,x-x^*\rangle+\tfrac{\eta^2}{B}\Big(1+\tfrac{B-1}{n-1}(\tfrac n{B_D}-1)\Big)M^2
    Attained (step.without-replacement): everywhere; for B = n the noise is gone.
    Proof (step): Two different draws of a batch are independent, so their gradients have the mean product ||grad f||^2
    = M^2/B_D; there are B (B-1) such pairs.
    Proof (step.without-replacement): Two different rows have the mean product (n ||grad f||^2 - M^2)/(n - 1).
    Source: [yin2018gradient], Lemma 1 (sums, with replacement).
    Source (step): [yin2018gradient], Lemma 1 (which sums the gradients: its step times B)
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
