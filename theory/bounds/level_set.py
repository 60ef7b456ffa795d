"""Bounds of gradients on a level set {x: f(x) <= f(x_0)}, from smoothness alone."""

from __future__ import annotations

from .closed_form import formula


@formula("start >= minimum")
def level_set_gradient(lipschitz: float, start: float, minimum: float) -> float:
    """Largest squared norm of the full gradient on the level set of the start.

    Setting: f is L-smooth on R^d and bounded from below; f(x) <= f(x_0).
    Statement: ||grad f(x)||^2 <= 2 L (f(x_0) - f*).
    Kind: tight, for f = (L/2)||x||^2 at x_0.
    Source: folklore; minimise the quadratic upper bound f(x) - t ||grad f||^2 + (L/2) t^2 ||grad f||^2 over t.
    start: f(x_0), at least the minimum.
    minimum: f*, or a lower bound of it.

    >>> level_set_gradient(lipschitz=2.0, start=9.0, minimum=0.0)  # f = x^2 at x_0 = 3: (2 * 3)^2
    36.0
    """
    return 2.0 * lipschitz * (start - minimum)


@formula("max_lipschitz > 0", "start >= 0")
def level_set_second_moment(max_lipschitz: float, start: float) -> float:
    r"""Largest second moment of one sample's gradient on the level set of the start.

    Setting: f = (1/n) sum f_i, every f_i is L_max-smooth on R^d and not negative; f(x) <= f(x_0).
    Statement: If all f_i are L_max-smooth and at least 0, (1/n) sum ||grad f_i(x)||^2 <= 2 L_max f(x), and ||grad
    f(x)||^2 <= 2 L (f(x) - f*).
    Kind: tight, for f_i = (L_max/2)||x||^2 at x_0.
    Latex: \tfrac1n\sum_i\|\nabla f_i(x)\|^2\le2L_{\max}f(x)
    Source: derived: :func:`level_set_gradient` for each f_i, whose infimum is at least 0, averaged.
    max_lipschitz: L_max.
    start: f(x_0).

    >>> level_set_second_moment(max_lipschitz=0.25, start=2.0)
    1.0
    """
    return 2.0 * max_lipschitz * start
