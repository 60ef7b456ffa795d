"""Where EF21 stops: what gradient noise leaves of it, and how long steps may be if both directions are compressed."""

from __future__ import annotations

import math

from .closed_form import formula


@formula("3 / 4 <= delta <= 1", "noise >= 0", "0 < momentum <= 1")
def ef21_bias(delta: float, noise: float, momentum: float = 1.0) -> float:
    r"""How far from the minimum gradient noise keeps EF21, as the step size tends to 0, whatever the number of workers.

    Title (stalls): Gradient noise keeps EF21 away from the minimum.
    Title (momentum): Momentum lets EF21 approach the minimum in spite of gradient noise.
    Setting: all workers have f = x^2/2 and gradients x + sigma or x - sigma by a fair coin of their own; C(v) is (1 +
    q) v for v > 0 and (1 - q) v for v < 0, q = sqrt(1 - delta) <= 1/2; EF21 with momentum a, in its stationary law.
    Statement: -E x = q E|u|, u = v_i - g_i before compression: q sigma (2 - q)/(1 + (1 - q)^2) without momentum (a = 1)
    as the step size tends to 0, and at most a q sigma sqrt(2/(2 - a))/(1 - q) with it.
    Statement (stalls): As the step size tends to 0, E x = -q sigma (2 - q)/(1 + (1 - q)^2), for any number of workers.
    Statement (momentum): As the step size tends to 0, |E x| <= a q sigma sqrt(2/(2 - a))/(1 - q), which vanishes with
    a.
    Kind: upper; without momentum an identity.
    Kind (stalls): identity.
    Kind (momentum): upper.
    Latex (stalls): -\mathbb{E}x=\frac{q(2-q)\sigma}{1+(1-q)^2},\quad q=\sqrt{1-\delta}
    Latex (momentum): |\mathbb{E}x|\le\frac{aq\sigma}{1-q}\sqrt{\frac2{2-a}}
    Proof: In the stationary law E C(u) = 0, so E u = -q E|u|, and E u = E v - E g with E g = 0 and E v = E x. As u -
    C(u) = -q |u|, the next u is the change of v less q |u|. Without momentum v is x +- sigma: after x + sigma |u|
    becomes q |u| or 2 sigma + q |u|, after x - sigma it becomes q |u| or 2 sigma - q |u|, and the means after either
    solve two equations. With momentum the change of v has the variance 2 a^2 sigma^2/(2 - a), and E|u| is at most its
    root plus q E|u|.
    Source: derived; that EF21 with noise does not converge is [fatkhullin2023momentum], Theorem 1, for top-1 in the
    plane, from memory.
    noise: sigma.
    momentum: a; 1 is EF21.

    >>> ef21_bias(0.75, 1.0), round(float(ef21_bias(0.75, 1.0, momentum=0.1)), 4)
    (0.6, 0.1026)
    """
    q = math.sqrt(1.0 - delta)
    if momentum == 1.0:
        return q * noise * (2.0 - q) / (1.0 + (1.0 - q) ** 2)
    return momentum * q * noise * math.sqrt(2.0 / (2.0 - momentum)) / (1.0 - q)


@formula("1 <= up < 2", "1 <= down < 2")
def both_ways_frontier(up: float, down: float = 1.0) -> float:
    r"""Longest stable step of EF21-BC with compressors that send too much.

    Setting: f = (lambda/2) ||x||^2 on all workers; the workers' messages are C(v) = c v, the model's D(v) = d v, c and
    d in [1, 2): contractions with delta = 1 - (c - 1)^2.
    Statement: stable if and only if s = gamma lambda < 2 (2/c - 1) (2/d - 1): of gradient descent's 2, each direction
    takes a factor of its own, and one that is not compressed none.
    Kind: identity.
    Latex: \gamma\lambda<2\,\frac{2-c}c\,\frac{2-d}d
    Proof: x, h and g move by a matrix whose eigenvalues solve (z - 1) (z - 1 + c) (z - 1 + d) + s c d z^2 = 0, of which
    one is -1 at s*.
    Source: derived.
    up, down: c and d.

    >>> both_ways_frontier(1.0), both_ways_frontier(1.6), both_ways_frontier(1.6, 1.6)
    (2.0, 0.5, 0.125)
    """
    return 2.0 * (2.0 / up - 1.0) * (2.0 / down - 1.0)
