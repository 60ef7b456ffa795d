"""Ternary quantization with a scale, and the convergence of SGD with TernGrad.

With a scale C, v_i becomes C sign(v_i) with probability ``|v_i|/C``, otherwise 0.  `terngrad_step` is Lemma 1 of
TernGrad; `terngrad_distance` follows from it under a condition of strong-convexity type.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..closed_form import formula

# --- Ternary quantization with a scale C -----------------------------------------------------------------------------


def _sizes(v: ArrayLike, scale: float | None = None) -> np.ndarray:
    size = np.abs(np.asarray(v, float).ravel())
    return size


@formula("scale > 0", "scale >= largest(v)")
def ternary_variance_exact(v: ArrayLike, scale: float) -> float:
    r"""Variance of ternary quantization at one vector.

    Title: Variance and non-zeros of ternary quantization.
    Setting: any scale C >= max|v_i|.
    Statement: E||Q(v) - v||^2 = C ||v||_1 - ||v||_2^2 and E||Q(v)||_0 = ||v||_1/C for every C >= max|v_i|.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)-v\|^2 = C\|v\|_1 - \|v\|_2^2,\quad \mathbb{E}\|Q(v)\|_0 = \|v\|_1/C
    Attained: everywhere.
    Proof: E Q_i^2 = C^2 |v_i|/C.
    Source: derived (``E Q_i^2 = C |v_i|``); for C = ||v||_2 [yin2018gradient], supplement 4.

    Title (unbiased): Ternary quantization is unbiased
    Statement (unbiased): C sign(v_i) with probability |v_i|/C, otherwise 0, is unbiased for every C >= max|v_i|.
    Latex (unbiased): \mathbb{E}\,Q(v) = v
    Source (unbiased): derived.

    scale: C, above 0 and at least ``max|v_i|``.

    >>> ternary_variance_exact([3.0, 4.0], scale=5.0), ternary_variance_exact([3.0, 4.0], scale=4.0)
    (10.0, 3.0)
    """
    size = _sizes(v, scale)
    return float(scale * size.sum() - size @ size)


@formula("scale > 0", "scale >= largest(v)")
def ternary_nonzeros_exact(v: ArrayLike, scale: float) -> float:
    """Expected number of non-zeros of ternary quantization at one vector.

    Setting: any scale C >= max|v_i|.
    Statement: ``E||Q(v)||_0 = ||v||_1 / C``.
    Kind: identity.
    Source: derived.
    scale: C, above 0 and at least ``max|v_i|``.

    >>> ternary_nonzeros_exact([3.0, -4.0], scale=5.0)
    1.4
    """
    return float(_sizes(v, scale).sum() / scale)


@formula
def ternary_product(v: ArrayLike) -> float:
    r"""Second moment times expected non-zeros of ternary quantization, which is the same for every scale.

    Title: Second moment times non-zeros does not depend on the scale.
    Setting: any scale C >= max|v_i|.
    Statement: (second moment) (expected non-zeros) = ||v||_1^2 for every C >= max|v_i|.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)\|^2 \cdot \mathbb{E}\|Q(v)\|_0 = \|v\|_1^2
    Attained: everywhere; no unbiased operator has a smaller product.
    Source: derived: the second moment is C ||v||_1, and the expected number of non-zeros is ||v||_1/C.

    >>> ternary_product([3.0, -4.0])
    49.0
    """
    return float(_sizes(v).sum() ** 2)


@formula
def ternary_l2_variance(d: int) -> float:
    r"""Worst relative variance of ternary quantization with the scale ||v||_2, which is QSGD with s = 1.

    Title: Ternary quantization with the 2-norm.
    Setting: any v in R^d.
    Statement: With C = ||v||_2: variance <= (sqrt(d) - 1) ||v||^2, and expected non-zeros ||v||_1/||v||_2 <= sqrt(d).
    Kind: tight (attained by vectors of equal magnitudes; 0 for vectors with a single non-zero).
    Latex: \mathbb{E}\|Q(v)-v\|^2 \le (\sqrt d - 1)\|v\|^2,\quad \mathbb{E}\|Q(v)\|_0 = \|v\|_1/\|v\|_2 \le \sqrt d
    Attained: by equal magnitudes; a single non-zero is sent without error
    Source: derived (``||v||_1 <= sqrt(d) ||v||_2``).

    >>> ternary_l2_variance(100)
    9.0
    """
    return math.sqrt(d) - 1.0


@formula
def ternary_iterations(d: int) -> float:
    r"""Largest factor by which ternary quantization with the scale ||v||_2 increases the iterations to an accuracy.

    Title: Ternary quantization with the 2-norm needs up to sqrt(d) times as many iterations.
    Setting: any SGD theorem whose number of iterations is proportional to M^2, a bound of the second moment of the
    gradients, with the step of the theorem; gradients in R^d.
    Statement: With the scale ||v||_2 and gradients of equal magnitudes, SGD with the step of its theorem takes a number
    of iterations to the same accuracy that grows as sqrt(d), though E||g||^2 does not depend on d.
    Kind: rate (attained if all gradients have equal magnitudes; for Gaussian ones the factor is sqrt(2 d / pi)).
    Latex: T(d)\propto\sqrt d
    Proof: E||Q(v)||^2 = ||v||_1 ||v||_2; on (1/2)||x||^2 it is that of uniform sparsification with p = 1/sqrt(d).
    Source: lecture; derived: the second moment of the gradients, hence the number of iterations, grows by
    ||v||_1/||v||_2 <= sqrt(d)

    >>> ternary_iterations(100)
    10.0
    """
    return 1.0 + ternary_l2_variance(d)


@formula
def ternary_inf_variance(d: int) -> float:
    r"""Worst relative variance of ternary quantization with the scale ||v||_inf: TernGrad.

    Title: Worst variance of TernGrad.
    Setting: any v in R^d.
    Statement: With C = max|v_i|: variance <= ((sqrt(d) - 1)/2) ||v||^2, the smallest worst-case variance of ternary
    quantization.
    Kind: tight.
    Latex: \sup_v \frac{\mathbb{E}\|Q(v)-v\|^2}{\|v\|^2} = \sup_v \frac{\|v\|_\infty\|v\|_1}{\|v\|_2^2} - 1 =
    \tfrac12(\sqrt d - 1)
    Attained: by one coordinate 1, the others 1/(sqrt(d) + 1)
    Source: derived: maximise (1 + sum x_i)/(1 + sum x_i^2) over equal x_i.

    >>> ternary_inf_variance(100)
    4.5
    """
    return 0.5 * (math.sqrt(d) - 1.0)


@formula
def ternary_nonzeros(d: int) -> float:
    """Largest expected number of non-zeros of ternary quantization with the scale ||v||_2.

    Setting: any v in R^d.
    Statement: ``E||Q(v)||_0 = ||v||_1/||v||_2 <= sqrt(d)``.  (With the scale ||v||_inf it can be d.)
    Kind: tight (attained by vectors of equal magnitudes).
    Source: derived.

    >>> ternary_nonzeros(10_000)
    100.0
    """
    return math.sqrt(d)


@formula
def terngrad_downlink_bits(workers: int) -> float:
    r"""Bits per coordinate for the sum of the workers' messages if they share their scale.

    Title: TernGrad with a shared scale.
    Setting: N workers, each with levels -1, 0, 1 of the same scale.
    Statement: If N workers share the largest of their scales, a coordinate of the sum of their messages has 2 N + 1
    possible values, so the downlink takes log2(2 N + 1) bits per coordinate.
    Kind: identity (an entropy coder may need less).
    Latex: \mathrm{downlink} = \log_2(2N+1)
    Source: [wen2017terngrad], scaler sharing.

    >>> round(terngrad_downlink_bits(1), 3), round(terngrad_downlink_bits(8), 3)
    (1.585, 4.087)
    """
    return math.log2(2 * workers + 1)


class ClippedGaussian(NamedTuple):
    """Effect of clipping on TernGrad of a long Gaussian vector; see :func:`clipped_gaussian`.

    Attributes
    ----------
    density : float
        Expected fraction of non-zeros.
    second_moment : float
        ``E||Q(v)||^2 / ||v||^2``.
    squared_bias : float
        ``||E Q(v) - v||^2 / ||v||^2``.
    clipped : float
        Fraction of the coordinates that are clipped.
    """

    density: float
    second_moment: float
    squared_bias: float
    clipped: float


@formula("clip > 0")
def clipped_gaussian(clip: float = 2.5) -> ClippedGaussian:
    r"""TernGrad with clipping at c standard deviations, for a long vector of independent centred Gaussian numbers.

    Setting: x standard normal, y = x clipped to [-c, c], and the scale c.
    Statement: density ``E|y|/c``, second moment ``c E|y|``, squared bias ``E(x - y)^2``, clipped ``P(|x| > c)``, with
    ``E|y| = 2 (f(0) - f(c)) + 2 c q`` and ``E(x - y)^2 = 2 ((1 + c^2) q - c f(c))``, f the normal density and q = P(x >
    c).
    Kind: identity, in the limit d to infinity.
    Source: derived; the clipping is that of [wen2017terngrad].

    Title (clip): TernGrad with clipping, on a Gaussian vector.
    Statement (clip): Clipping at 2.5 standard deviations makes 31.8 % of a long Gaussian vector non-zero, with 1.985
    ||v||^2 as the second moment and a squared bias of 0.24 %.
    Latex (clip): \mathrm{density} = \mathbb{E}|y|/c,\quad \mathbb{E}\|Q\|^2/\|v\|^2 = c\,\mathbb{E}|y|,\quad
    \mathrm{bias}^2 = \mathbb{E}(x-y)^2,\quad y = \mathrm{clip}(x, c)
    Attained (clip): as d grows; here d = 20000.
    Source (clip): derived, for the clipping of [wen2017terngrad].

    clip: c.

    >>> [round(number, 4) for number in clipped_gaussian(2.5)]
    [0.3176, 1.9847, 0.0024, 0.0124]
    """
    tail = 0.5 * math.erfc(clip / math.sqrt(2.0))
    there, centre = (math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) for x in (clip, 0.0))
    size = 2.0 * (centre - there) + 2.0 * clip * tail
    bias = 2.0 * ((1.0 + clip * clip) * tail - clip * there)
    return ClippedGaussian(size / clip, clip * size, bias, 2.0 * tail)


# --- Convergence of SGD with TernGrad --------------------------------------------------------------------------------


@formula("descent >= 0", "offset >= 0", "slope >= 0")
def terngrad_step(step: float, distance: float, descent: float, offset: float, slope: float) -> float:
    r"""Expected squared distance to the minimum after one step of TernGrad.

    Title: A step of TernGrad.
    Setting: w' = w - gamma Q(g), where Q is TernGrad (scale ``max|g_i|``), E g = grad C(w), and ``E max|g_i| ||g||_1 <=
    A + B ||w - w*||^2``; h = ||w - w*||^2.
    Statement: If E max|g| ||g||_1 <= A + B h with h = ||w - w*||^2, after a step with TernGrad E h' <= (1 + gamma^2 B)
    h - 2 gamma <w - w*, grad C(w)> + gamma^2 A.
    Kind: tight (attained where the assumption is an equality).
    Latex: \mathbb{E}\,h_{t+1}\le(1+\gamma_t^2B)\,h_t-2\gamma_t\langle w_t-w^*,\nabla C(w_t)\rangle+\gamma_t^2A
    Proof: E||Q(g)||^2 = max|g| ||g||_1, and E Q(g) = grad C(w).
    Source: [wen2017terngrad], Lemma 1.
    Known: quoted
    distance: h.
    descent: ``<w - w*, grad C(w)>``.
    offset, slope: A and B.

    >>> terngrad_step(step=0.1, distance=1.0, descent=1.0, offset=2.0, slope=3.0)
    0.85
    """
    here, noise = step**2 * slope * distance, step**2 * offset
    return distance + here - 2.0 * step * descent + noise


@formula("offset >= 0", "slope >= mu ** 2", "steps > 0", "count(steps) >= 1")
def terngrad_distance(steps: ArrayLike, distance: float, mu: float, offset: float, slope: float) -> float:
    r"""Expected squared distance to the minimum after many steps of TernGrad.

    Title: TernGrad converges.
    Setting: as for `terngrad_step`, and ``<w - w*, grad C(w)> >= mu ||w - w*||^2``; step sizes gamma_0, ...
    Statement: SGD with TernGrad converges to the minimum almost surely if the sum of the steps is infinite and that of
    their squares is finite; if <w - w*, grad C> >= mu ||w - w*||^2, E h_T is at most the bound of Lemma 1 applied T
    times, which tends to 0.
    Kind: tight (attained where both assumptions are equalities).
    Latex: \mathbb{E}\,h_T\le h_0\prod_t r_t+A\sum_t\gamma_t^2\prod_{s>t}r_s,\quad r_t=1-2\gamma_t\mu+\gamma_t^2B
    Proof: By Lemma 1, h_t is an almost supermartingale; then the theorem of Robbins and Siegmund.
    Source: derived: `terngrad_step` T times. [wen2017terngrad], Theorem 1 states that w_t tends to w* almost surely,
    under weaker assumptions and without a rate.
    Known: quoted
    steps (array_like): The step sizes, above 0.
    distance: h_0.
    offset, slope: A, at least 0, and B, at least mu^2, as follows from the assumptions.

    >>> terngrad_distance([0.1, 0.1], distance=1.0, mu=1.0, offset=2.0, slope=3.0)  # 0.83^2 + 0.02 (1 + 0.83)
    0.7255
    """
    sizes = np.asarray(steps, float).ravel()
    after = np.cumprod((1.0 - 2.0 * sizes * mu + sizes**2 * slope)[::-1])[::-1]
    later = np.append(after[1:], 1.0)
    return distance * after[0] + offset * float(np.sum(sizes**2 * later))
