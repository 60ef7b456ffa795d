"""Mini-batch SGD compared with serial SGD: the steps and numbers of gradients that Theorems 2 to 5 of Yin et al. print.

As in ``batch_rates``, the gradients of a batch are *summed*, and the promise is (1 + delta/2) eps, delta = (B - 1)/B_D.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .batch_rates import batch_delta
from .closed_form import formula


class BatchSchedule(NamedTuple):
    """The prescription of a theorem for an accuracy, and its guarantee.

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

    Title (printed): The printed steps and numbers of gradients.
    Setting: as for :func:`minibatch_smooth`; the gradients of a batch are *summed*.
    Statement: gamma = eps/(beta M^2) and T >= (2/eps^2) M^2 beta (F(w_0) - F*) give min_k E||grad F(w_k)||^2 <= (1 +
    delta/2) eps.
    Statement (printed): With the step and the number T of gradients that Theorems 2 to 5 print for an accuracy eps,
    their bounds are (1 + delta/2) eps; so the largest batch for 1.5 eps is B_D + 1.
    Kind: upper.
    Kind (printed): identity.
    Latex (printed): B=\delta B_D+1\;\Rightarrow\;(1+\tfrac\delta2)\,\varepsilon
    Proof (printed): Half of eps is what is left of the start, the other half, times 1 + delta, the noise.
    Source: [yin2018gradient], Theorem 2, as printed.
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
