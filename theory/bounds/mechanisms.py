"""Mechanisms that raise gradient diversity: DropConnect, Langevin noise, one-level quantization.

A mechanism replaces grad f_i by a random g_i with E g_i = m grad f_i.  Its ``factor`` r = mean E||g_i||^2/(m^2 M^2), at
least 1, is the factor by which it raises the second moment of a gradient; the rest follows from it and from B_D.  ``n``
is given if repeats of a row in a batch share their noise (the source's setting), and None if every draw has its own.
"""

from __future__ import annotations

from .closed_form import formula


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

    Title (drop-connect): DropConnect.
    Title (langevin): Langevin noise.
    Title (quantized): Quantized gradients.
    Title (theorem-7): What a mechanism does to the batch-size bound.
    Setting: the mechanism multiplies the second moment by r (relative to the squared mean); its noise is fresh for each
    draw (n=None), or drawn once for each of the n rows and shared by the repeats of a row in a batch.
    Statement: fresh: B = r B_D. Shared: B = n sum E||g_i||^2/E||sum g_i||^2 = r B_D/(1 + (r - 1) B_D/n), which lies
    between B_D and n: it is at least B_D iff B_D <= n (or r = 1).
    Statement (drop-connect): With coordinates dropped with probability p, B = B_D/(1 - p) for noise that is fresh in
    every draw, and n A/(A + (1 - p) X) if repeats of a row share it; A = sum ||grad f_i||^2, X = sum_{j != k} <grad
    f_j, grad f_k>.
    Statement (langevin): With N(0, sigma^2 I) added, B = B_D (1 + d sigma^2/M^2) for fresh noise, and (n A + n^2 d
    sigma^2)/(A + X + n d sigma^2) if repeats of a row share it.
    Statement (quantized): With each gradient quantized to one level of its norm and S = sum ||grad f_i||_1 ||grad
    f_i||_2, B = S/(n ||grad f||^2) for fresh noise, and n S/(S + X) if repeats of a row share it.
    Statement (theorem-7): With noise that repeats of a row share, B_D <= B <= n for all three mechanisms if B_D <= n,
    and B > n if B_D > n.
    Kind: identity.
    Kind (drop-connect): identity.
    Kind (langevin): identity.
    Kind (quantized): identity.
    Kind (theorem-7): lower.
    Latex (drop-connect): B=\frac{B_D}{1-p}\quad\text{or}\quad\frac{nA}{A+(1-p)X}
    Latex (langevin): B=B_D\Big(1+\frac{d\sigma^2}{M^2}\Big)\quad\text{or}\quad\frac{nA+n^2d\sigma^2}{A+X+nd\sigma^2}
    Latex (quantized): B=\frac{S}{n\|\nabla f\|^2}\ \text{or}\ \frac{nS}{S+X},\quad S=\sum_i\|\nabla f_i\|_1\|\nabla
    f_i\|_2
    Latex (theorem-7): B_D\le n\ \Rightarrow\ B_D\le B\le n,\qquad B_D>n\ \Rightarrow\ B>n
    Proof (drop-connect): E g = (1 - p) v and E||g||^2 = (1 - p)||v||^2; only repeats of a row may have dependent noise.
    Proof (langevin): E||g||^2 = ||v||^2 + d sigma^2.
    Proof (quantized): E||Q(v)||^2 = ||v||_1 ||v||_2.
    Proof (theorem-7): 1/B is a mean of 1/B_D, with the weight 1/r, and 1/n.
    Source: shared: [yin2018gradient], section 4.4, supplement 4 and Theorem 7, in one formula for all three mechanisms;
    fresh: derived. With A = sum ||grad f_i||^2 and X = sum_{j != k} <grad f_j, grad f_k>, it is n A/(A + (1 - p) X) for
    DropConnect, (n A + n^2 d sigma^2)/(A + X + n d sigma^2) for Langevin noise, and n S/(S + X), S = sum ||grad f_i||_1
    ||grad f_i||_2, for quantization.
    Source (drop-connect): [yin2018gradient], section 4.4 and supplement 4 (shared); fresh: derived.
    Source (langevin): [yin2018gradient], section 4.4 and supplement 4 (shared); fresh: derived.
    Source (quantized): [yin2018gradient], section 4.4 and supplement 4 (shared); fresh: derived.
    Source (theorem-7): [yin2018gradient], Theorem 7; B <= n: derived.
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
    r"""Factor by which a mechanism changes the number of rounds, each with the largest batch that the bound allows.

    Title: Mechanisms do not save rounds.
    Setting: theorems whose number of gradients T grows with the second moment (as r) at a given accuracy, whose step
    for unbiased gradients shrinks with it, and whose batch may grow to a constant times the batch-size bound.
    Statement: A mechanism that multiplies the second moment by r, and the batch by r, gives rounds that are no better:
    the second moment of a round's mean gradient grows by (1 - 1/r) ||grad f||^2/B, and by (1 - 1/(rB)) (r - 1) M^2/n
    more if repeats of a row share the noise.
    Kind: identity.
    Latex: \mathbb{E}\|\bar g_{rB}\|^2=\mathbb{E}\|\bar g_B\|^2+\frac{(1-1/r)\|\nabla f\|^2}{B}
    Proof: (1/(rB)) (r M^2) + (1 - 1/(rB)) (mean product of two draws), which is ||grad f||^2 for fresh noise and ||grad
    f||^2 + (r - 1) M^2/n for shared.
    Source: derived from [yin2018gradient], Lemma 1 and section 4.4, who leave it at two opposing effects.
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
