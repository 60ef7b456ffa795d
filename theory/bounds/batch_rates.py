"""Mini-batch SGD compared with serial SGD after equally many gradients: Theorems 2 to 5 of Yin et al.

The source *sums* the gradients of a batch, w+ = w - gamma (g_1 + ... + g_B), so that a gradient moves w as far in a
batch as alone.  The methods of this package *average*: their step size is then B gamma.  ``step`` is gamma here.

A batch of size B costs 1 + (B - 1)/B_D times the second moment of B single steps.  So every theorem has the factor
1 + delta, delta = (B - 1)/B_D, where B_D is the infimum of the batch-size bound over all reachable points.
The theorems are *raw*, for any step; ``batch_schedules`` has the steps that are printed for an accuracy.
"""

from __future__ import annotations

from .closed_form import formula


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
    """Rounds of one batch each that so many gradients make; a batch must divide them."""
    return int(gradients) // int(batch)


def _summands(start: float, unit: float, batch: int, batch_bound: float) -> float:
    """A bound: what is left of the start, the noise of single gradients, and delta times that for their batches."""
    return start + unit + batch_delta(batch, batch_bound) * unit


# --- smooth -----------------------------------------------------------------------------------------------------------


@formula("smoothness > 0", "second_moment > 0", "gap > 0", "gradients >= 1", "gradients % batch == 0")
def minibatch_smooth(
    gradients: int, *, batch: int, step: float, smoothness: float, second_moment: float, gap: float, batch_bound: float
) -> float:
    r"""Mean squared gradient over the rounds of mini-batch SGD on smooth functions, convex or not.

    Setting: F is beta-smooth and bounded below, M^2(w) <= M^2 and B_D(w) >= B_D at all points that are reached, T
    gradients in T/B rounds, w+ = w - gamma *sum* of B gradients (methods that average: step size B gamma).
    Statement: the mean over rounds of E||grad F(w_k)||^2, hence the least of them, is at most (F(w_0) - F*)/(gamma T) +
    (beta/2) gamma (1 + delta) M^2, delta = (B - 1)/B_D.
    Kind: upper (nearly attained by (beta/2)||w||^2 in many dimensions at its stationary law, for T large, with gamma
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
    r"""Gap of mini-batch SGD on smooth functions with the Polyak-Lojasiewicz inequality.

    Setting: as for :func:`minibatch_smooth`, (1/2)||grad F||^2 >= mu (F - F*), and B <= 1/(2 gamma mu); the gradients
    of a batch are *summed* (methods that average: step size B gamma).
    Statement: E F(w_T) - F* <= r (F(w_0) - F*) + (1 - r) (1 + delta) beta gamma M^2/(4 mu), with r = (1 - 2 gamma mu
    B)^(T/B).
    Kind: tight (for one round on any F = (mu/2)||w||^2 and every batch; for many rounds nearly, from its stationary law
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
    r"""Gap of the average of mini-batch SGD on convex functions.

    Setting: F is convex, M^2(w) <= M^2 and B_D(w) >= B_D at all points that are reached, T gradients in T/B rounds, w+
    = w - gamma *sum* of B gradients (methods that average: step size B gamma), projection allowed.
    Statement: E F(mean of w_0, ..., w_{T/B - 1}) - F* <= ||w_0 - w*||^2/(2 gamma T) + (1 + delta) gamma M^2/2, delta =
    (B - 1)/B_D.
    Kind: tight (identical f_i = G abs(w) that w reaches after K rounds, for every batch; orthogonal f_i = n G abs(w_i)
    come near, with B_D = n. For the mean of the gaps see :func:`signed_slopes_gap`: it is the bound less E||w_K -
    w*||^2/(2 gamma T), for every delta).
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
    r"""Squared distance of mini-batch SGD to the minimiser of a strongly convex function.

    Setting: F is mu-strongly convex, M^2(w) <= M^2 and B_D(w) >= B_D at all points that are reached, B <= 1/(2 gamma
    mu), T gradients in T/B rounds, w+ = w - gamma *sum* of B gradients (methods that average: step size B gamma),
    projection allowed.
    Statement: E||w_T - w*||^2 <= r ||w_0 - w*||^2 + (1 - r) (1 + delta) gamma M^2/(2 mu), with r = (1 - 2 gamma mu
    B)^(T/B) and delta = (B - 1)/B_D.
    Kind: tight (for one round on any F = (mu/2)||w||^2 and every batch; for many rounds nearly, from its stationary law
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
