"""Mini-batch SGD compared with serial SGD after equally many gradients: rates, steps and numbers of gradients.

The theorems are 2 to 5 of Yin et al., for any step, and with the steps and numbers of gradients that they print for an
accuracy.  The source *sums* the gradients of a batch, w+ = w - gamma (g_1 + ... + g_B), so that a gradient moves w as
far in a batch as in a step of its own.  The methods of this package *average*: their step size is then B gamma.
``step`` is gamma here.

A batch of size B costs 1 + (B - 1)/B_D times the second moment of B single steps.  So every theorem has the factor 1 +
delta, delta = (B - 1)/B_D, where B_D is the infimum of the batch-size bound over all reachable points, and the
guaranteed accuracy is (1 + delta/2) eps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..closed_form import formula

# --- Steps and numbers of gradients as printed -----------------------------------------------------------------------


class BatchSchedule(NamedTuple):
    """The step and the number of gradients that a theorem prescribes for an accuracy, and its guarantee.

    Attributes
    ----------
    step : float
        gamma, of one gradient in a *sum*; the step size of methods that average is ``batch * step``.
    gradients : float
        T, a minimum; the theorems above take a multiple of the batch.
    largest : float
        The largest batch that the theorem allows besides B <= delta B_D + 1; infinite if it has no such limit.
    promised : float or None
        (1 + delta/2) eps; None if the batch is larger than ``largest``, where the theorem guarantees nothing.
    """

    step: float
    gradients: float
    largest: float
    promised: float | None


def _limited(step: float, gradients: float, mu: float, batch: int, promised: float) -> BatchSchedule:
    """A schedule that allows batches up to 1/(2 gamma mu), without a guarantee for larger ones."""
    largest = 0.5 / (step * mu)
    return BatchSchedule(step, gradients, largest, promised if batch <= largest * (1 + 1e-12) else None)


def _promise(accuracy: float, batch: int, batch_bound: float) -> float:
    """(1 + delta/2) eps."""
    return (1.0 + 0.5 * batch_delta(batch, batch_bound)) * accuracy


@formula("smoothness > 0", "second_moment > 0", "gap > 0", "0 < accuracy < inf")
def minibatch_smooth_schedule(
    accuracy: float, *, batch: int, smoothness: float, second_moment: float, gap: float, batch_bound: float
) -> BatchSchedule:
    r"""Step and number of gradients for an accuracy on smooth functions.

    Setting: as for :func:`minibatch_smooth`; the gradients of a batch are *summed*.
    Statement: gamma = eps/(beta M^2) and T >= (2/eps^2) M^2 beta (F(w_0) - F*) give min_k E||grad F(w_k)||^2 <= (1 +
    delta/2) eps.
    Kind: upper.
    Source: [yin2018gradient], Theorem 2, as printed.

    Title (printed): The printed steps and numbers of gradients.
    Statement (printed): With the step and the number T of gradients that Theorems 2 to 5 print for an accuracy eps,
    their bounds are (1 + delta/2) eps; so the largest batch for 1.5 eps is B_D + 1.
    Kind (printed): identity.
    Latex (printed): B=\delta B_D+1\;\Rightarrow\;(1+\tfrac\delta2)\,\varepsilon
    Proof (printed): Half of eps is the remainder of the initial error; the other half, times 1 + delta, is the noise.
    Source (printed): [yin2018gradient], Theorems 2 to 5.

    accuracy: eps, above 0.
    batch, smoothness, second_moment, gap, batch_bound (float or int): As for :func:`minibatch_smooth`.

    Returns
    -------
    BatchSchedule
        ``largest`` is infinite: the theorem has no other limit.

    >>> minibatch_smooth_schedule(0.5, batch=3, smoothness=1.0, second_moment=2.0, gap=1.0, batch_bound=2.0)
    BatchSchedule(step=0.25, gradients=16.0, largest=inf, promised=0.75)
    """
    promised = _promise(accuracy, batch, batch_bound)
    needed = 2.0 / accuracy**2 * second_moment * smoothness * gap
    return BatchSchedule(accuracy / (smoothness * second_moment), needed, math.inf, promised)


@formula("smoothness > 0", "second_moment > 0", "gap > 0", "0 < accuracy < 2 * gap", "0 < mu <= smoothness")
def minibatch_pl_schedule(
    accuracy: float, *, batch: int, smoothness: float, mu: float, second_moment: float, gap: float, batch_bound: float
) -> BatchSchedule:
    """Step and number of gradients for an accuracy under the Polyak-Lojasiewicz inequality.

    Setting: as for :func:`minibatch_pl`; the gradients of a batch are *summed*.
    Statement: gamma = 2 eps mu/(M^2 beta), T >= (M^2 beta/(4 mu^2 eps)) log(2 (F(w_0) - F*)/eps) and B <= 1/(2 gamma
    mu) give E F(w_T) - F* <= (1 + delta/2) eps.
    Kind: upper.
    Source: [yin2018gradient], Theorem 3, as printed.
    accuracy: eps, above 0.
    batch, smoothness, mu, second_moment, gap, batch_bound (float or int): As for :func:`minibatch_pl`.

    >>> found = minibatch_pl_schedule(0.5, batch=2, smoothness=1.0, mu=0.5, second_moment=2.0, gap=1.0, batch_bound=2.0)
    >>> found.step, found.gradients, found.largest, found.promised  # 0.25, 4 log 4, 4, 1.25 * 0.5
    (0.25, 5.545, 4.0, 0.625)
    """
    step = 2.0 * accuracy * mu / (second_moment * smoothness)
    needed = second_moment * smoothness / (4.0 * mu**2 * accuracy) * math.log(2.0 * gap / accuracy)
    return _limited(step, needed, mu, batch, _promise(accuracy, batch, batch_bound))


@formula("second_moment > 0", "distance > 0", "0 < accuracy < inf")
def minibatch_convex_schedule(
    accuracy: float, *, batch: int, second_moment: float, distance: float, batch_bound: float
) -> BatchSchedule:
    """Step and number of gradients for an accuracy on convex functions.

    Setting: as for :func:`minibatch_convex`; the gradients of a batch are *summed*.
    Statement: gamma = eps/M^2 and T >= M^2 ||w_0 - w*||^2/eps^2 give E F(average) - F* <= (1 + delta/2) eps.
    Kind: upper.
    Source: [yin2018gradient], Theorem 4, as printed.
    accuracy: eps, above 0.
    batch, second_moment, distance, batch_bound (float or int): As for :func:`minibatch_convex`.

    Returns
    -------
    BatchSchedule
        ``largest`` is infinite: the theorem has no other limit.

    >>> minibatch_convex_schedule(0.5, batch=3, second_moment=2.0, distance=4.0, batch_bound=2.0)
    BatchSchedule(step=0.25, gradients=32.0, largest=inf, promised=0.75)
    """
    promised = _promise(accuracy, batch, batch_bound)
    return BatchSchedule(accuracy / second_moment, second_moment * distance / accuracy**2, math.inf, promised)


@formula("second_moment > 0", "distance > 0", "0 < accuracy < 2 * distance")
def minibatch_strongly_convex_schedule(
    accuracy: float, *, batch: int, mu: float, second_moment: float, distance: float, batch_bound: float
) -> BatchSchedule:
    """Step and number of gradients for an accuracy on strongly convex functions.

    Setting: as for :func:`minibatch_strongly_convex`; the gradients of a batch are *summed*.
    Statement: gamma = eps mu/M^2, T >= (M^2/(2 mu^2 eps)) log(2 ||w_0 - w*||^2/eps) and B <= 1/(2 gamma mu) give E||w_T
    - w*||^2 <= (1 + delta/2) eps.
    Kind: upper.
    Source: [yin2018gradient], Theorem 5, as printed.
    accuracy: eps, above 0, below 2 ||w_0 - w*||^2.
    batch, mu, second_moment, distance, batch_bound (float or int): As for :func:`minibatch_strongly_convex`.

    >>> found = minibatch_strongly_convex_schedule(
    ...     0.5, batch=3, mu=0.5, second_moment=2.0, distance=1.0, batch_bound=2.0)
    >>> found.step, found.gradients, found.largest, found.promised  # 0.125, 8 log 4, 8, 1.5 * 0.5
    (0.125, 11.090, 8.0, 0.75)
    """
    step = accuracy * mu / second_moment
    needed = second_moment / (2.0 * mu**2 * accuracy) * math.log(2.0 * distance / accuracy)
    return _limited(step, needed, mu, batch, _promise(accuracy, batch, batch_bound))


# --- Rates for any step ----------------------------------------------------------------------------------------------


@formula
def batch_delta(batch: int, batch_bound: float) -> float:
    """The delta at which a batch is exactly as large as B = delta B_D + 1.

    Setting: mini-batches of B gradients at points where the batch-size bound is at least B_D.
    Statement: delta = (B - 1)/B_D.
    Kind: identity.
    Source: [yin2018gradient], Theorems 2 to 5, which assume B <= delta B_D + 1. The same for sums and for means of
    gradients.
    batch_bound: B_D, at least 1; may be infinite.

    >>> batch_delta(11, 20.0), batch_delta(1, 20.0)
    (0.5, 0.0)
    """
    return (batch - 1) / batch_bound


def needed_rounds(gradients: int, batch: int) -> int:
    """Number of rounds of one batch each; the batch must divide the number of gradients."""
    return int(gradients) // int(batch)


def _summands(start: float, unit: float, batch: int, batch_bound: float) -> float:
    """A bound: what is left of the start, the noise of single gradients, and delta times that for their batches."""
    return start + unit + batch_delta(batch, batch_bound) * unit


# --- smooth -----------------------------------------------------------------------------------------------------------


@formula("smoothness > 0", "second_moment > 0", "gap > 0", "gradients >= 1", "gradients % batch == 0")
def minibatch_smooth(
    gradients: int, *, batch: int, step: float, smoothness: float, second_moment: float, gap: float, batch_bound: float
) -> float:
    r"""Bound on the mean squared gradient over the rounds of mini-batch SGD on smooth functions, convex or not.

    Setting: F is beta-smooth and bounded below, M^2(w) <= M^2 and B_D(w) >= B_D at all points that are reached, T
    gradients in T/B rounds, w+ = w - gamma *sum* of B gradients (methods that average: step size B gamma).
    Statement: the mean over rounds of E||grad F(w_k)||^2, hence the least of them, is at most (F(w_0) - F*)/(gamma T) +
    (beta/2) gamma (1 + delta) M^2, delta = (B - 1)/B_D.
    Kind: upper (almost attained by (beta/2)||w||^2 in many dimensions at its stationary law, for T large, with gamma
    beta B = 1 and B near B_D; and far from the minimiser with short steps, by its first term).
    Latex: \frac BT\sum_k\mathbb{E}\|\nabla F(w_k)\|^2\le\frac{F(w_0)-F^*}{\gamma T}+\frac{\beta\gamma(1+\delta)M^2}2
    Proof: E F(w+) <= F(w) - gamma B ||grad F||^2 + (beta/2) gamma^2 B (1 + delta) M^2; sum over the rounds.
    Source: [yin2018gradient], Theorem 2, before its step size is put in.
    gradients: T, a multiple of ``batch``.
    smoothness: beta.
    second_moment: M^2.
    gap: F(w_0) - F*.
    batch_bound: B_D, at least 1.

    >>> minibatch_smooth(100, batch=5, step=0.1, smoothness=1.0, second_moment=2.0, gap=1.0, batch_bound=4.0)
    0.3
    """
    return _summands(gap / (step * gradients), 0.5 * smoothness * step * second_moment, batch, batch_bound)


@formula(
    "smoothness > 0",
    "second_moment > 0",
    "gap > 0",
    "0 < mu <= smoothness",
    "gradients >= 1",
    "batch >= 1",
    "gradients % batch == 0",
    "batch <= 0.5 / (step * mu)",
)
def minibatch_pl(
    gradients: int,
    *,
    batch: int,
    step: float,
    smoothness: float,
    mu: float,
    second_moment: float,
    gap: float,
    batch_bound: float,
) -> float:
    r"""Bound on the gap of mini-batch SGD on smooth functions with the Polyak-Lojasiewicz inequality.

    Setting: as for :func:`minibatch_smooth`, (1/2)||grad F||^2 >= mu (F - F*), and B <= 1/(2 gamma mu); the gradients
    of a batch are *summed* (methods that average: step size B gamma).
    Statement: E F(w_T) - F* <= r (F(w_0) - F*) + (1 - r) (1 + delta) beta gamma M^2/(4 mu), with r = (1 - 2 gamma mu
    B)^(T/B).
    Kind: tight (for one round on any F = (mu/2)||w||^2 and every batch; for many rounds almost, from its stationary law
    in many dimensions, where ||w|| hardly varies).
    Latex: \mathbb{E}F(w_T)-F^*\le r\,(F(w_0)-F^*)+(1-r)\frac{(1+\delta)\beta\gamma M^2}{4\mu},\quad r=(1-2\gamma\mu
    B)^{T/B}
    Proof: As batch.smooth, with ||grad F||^2 >= 2 mu (F - F*).
    Source: [yin2018gradient], Theorem 3, before its step size is put in, and without its 1 for 1 - r.
    gradients, batch, step, smoothness, second_moment, gap, batch_bound (float or int): As for :func:`minibatch_smooth`;
        ``step`` at most 1/(2 B mu).
    mu: Above 0, at most ``smoothness``.

    >>> minibatch_pl(2, batch=2, step=0.125, smoothness=1.0, mu=1.0, second_moment=2.0, gap=1.0, batch_bound=1.0)
    0.5625
    """
    rounds = needed_rounds(gradients, batch)
    left = (1.0 - 2.0 * step * mu * batch) ** rounds
    unit = (1.0 - left) * smoothness * step * second_moment / (4.0 * mu)
    return _summands(left * gap, unit, batch, batch_bound)


# --- convex -----------------------------------------------------------------------------------------------------------


@formula("second_moment > 0", "distance > 0", "gradients >= 1", "gradients % batch == 0")
def minibatch_convex(
    gradients: int, *, batch: int, step: float, second_moment: float, distance: float, batch_bound: float
) -> float:
    r"""Bound on the gap of the average iterate of mini-batch SGD on convex functions.

    Setting: F is convex, M^2(w) <= M^2 and B_D(w) >= B_D at all points that are reached, T gradients in T/B rounds, w+
    = w - gamma *sum* of B gradients (methods that average: step size B gamma), projection allowed.
    Statement: E F(mean of w_0, ..., w_{T/B - 1}) - F* <= ||w_0 - w*||^2/(2 gamma T) + (1 + delta) gamma M^2/2, delta =
    (B - 1)/B_D.
    Kind: tight (identical f_i = G abs(w) that w reaches after K rounds, for every batch; orthogonal f_i = n G abs(w_i)
    almost attain it, with B_D = n. For the mean of the gaps see :func:`signed_slopes_gap`: it is the bound minus E||w_K
    - w*||^2/(2 gamma T), for every delta).
    Latex: \mathbb{E}F(\bar w)-F^*\le\frac{\|w_0-w^*\|^2}{2\gamma T}+\frac{(1+\delta)\gamma M^2}2
    Proof: minibatch.step with <grad F, w - w*> >= F - F*, summed over the rounds.
    Source: [yin2018gradient], Theorem 4, before its step size is put in.
    gradients: T, a multiple of ``batch``.
    second_moment: M^2.
    distance: ||w_0 - w*||^2.
    batch_bound: B_D, at least 1.

    >>> minibatch_convex(100, batch=5, step=0.1, second_moment=2.0, distance=4.0, batch_bound=4.0)
    0.4
    """
    return _summands(distance / (2.0 * step * gradients), 0.5 * step * second_moment, batch, batch_bound)


@formula(
    "second_moment > 0",
    "distance > 0",
    "gradients >= 1",
    "batch >= 1",
    "gradients % batch == 0",
    "batch <= 0.5 / (step * mu)",
)
def minibatch_strongly_convex(
    gradients: int, *, batch: int, step: float, mu: float, second_moment: float, distance: float, batch_bound: float
) -> float:
    r"""Bound on the squared distance of mini-batch SGD to the minimiser of a strongly convex function.

    Setting: F is mu-strongly convex, M^2(w) <= M^2 and B_D(w) >= B_D at all points that are reached, B <= 1/(2 gamma
    mu), T gradients in T/B rounds, w+ = w - gamma *sum* of B gradients (methods that average: step size B gamma),
    projection allowed.
    Statement: E||w_T - w*||^2 <= r ||w_0 - w*||^2 + (1 - r) (1 + delta) gamma M^2/(2 mu), with r = (1 - 2 gamma mu
    B)^(T/B) and delta = (B - 1)/B_D.
    Kind: tight (for one round on any F = (mu/2)||w||^2 and every batch; for many rounds almost, from its stationary law
    in many dimensions, where ||w|| hardly varies).
    Latex: \mathbb{E}\|w_T-w^*\|^2\le r\,\|w_0-w^*\|^2+(1-r)\frac{(1+\delta)\gamma M^2}{2\mu},\quad r=(1-2\gamma\mu
    B)^{T/B}
    Proof: minibatch.step with <grad F, w - w*> >= mu ||w - w*||^2.
    Source: [yin2018gradient], Theorem 5, before its step size is put in, and without its 1 for 1 - r.
    gradients, batch, second_moment, distance, batch_bound (float or int): As for :func:`minibatch_convex`.
    step: gamma, above 0.

    >>> minibatch_strongly_convex(2, batch=2, step=0.125, mu=1.0, second_moment=2.0, distance=1.0, batch_bound=1.0)
    0.625
    """
    rounds = needed_rounds(gradients, batch)
    left = (1.0 - 2.0 * step * mu * batch) ** rounds
    unit = (1.0 - left) * step * second_moment / (2.0 * mu)
    return _summands(left * distance, unit, batch, batch_bound)
