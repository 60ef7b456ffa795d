"""Error feedback: the size of the memory.

Throughout, e_{t+1} = p_t - C(p_t) with p_t = e_t + eta_t g_t, e_0 = 0, and E||C(v) - v||^2 <= (1 - delta) ||v||^2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .closed_form import formula


@formula("form in ('sharp', 'paper')", "steps >= 0")
def memory_error(
    delta: float, step: float, second_moment: float, form: str = "sharp", steps: int | None = None
) -> float:
    r"""Mean squared norm of a memory with a constant step size.

    Title (paper): Size of a memory, as quoted.
    Setting: C contracts with the factor delta, E||g_t||^2 <= second_moment, constant step size.
    Statement: E||e_t||^2 is at most sharp: step^2 second_moment (1 - delta) ((1 - q^t)/(1 - q))^2 with q = sqrt(1 -
    delta); for t -> infinity this is step^2 second_moment (1 - delta) (1 + q)^2/delta^2; paper: step^2 second_moment 4
    (1 - delta)/delta^2.
    Statement (paper): With a contraction delta, a constant step and E||g||^2 <= G^2: E||e_t||^2 <= 4 (1 -
    delta)/delta^2 eta^2 G^2.
    Kind: tight (sharp, attained at every t by C(v) = (1 - q) v and a constant gradient), upper (paper).
    Kind (paper): upper.
    Latex (sharp): \mathbb{E}\|e_t\|^2\le\eta^2G^2\frac{(1-\delta)(1+\sqrt{1-\delta})^2}{\delta^2}
    Latex (paper): \mathbb{E}\|e_t\|^2\le\frac{4(1-\delta)}{\delta^2}\eta^2G^2
    Attained (sharp): C(v) = (1 - sqrt(1 - delta)) v and a constant gradient
    Attained (paper): in the limit of delta to 0, where it agrees with ef.memory
    Proof (sharp): With q = sqrt(1 - delta) and Minkowski's inequality, ||e_{t+1}|| <= q (||e_t|| + eta G) in mean
    square; the geometric series gives q/(1 - q), whose square is the formula.
    Proof (paper): Young's inequality with the parameter delta/(2 (1 - delta)) and a geometric series.
    Source: [karimireddy2019error], Lemma 3 (paper); the sharp form is derived: sqrt(E||e_{t+1}||^2) <= q
    (sqrt(E||e_t||^2) + step sqrt(second_moment)) by Minkowski.
    Source (sharp): derived; sharpens [karimireddy2019error], Lemma 3 (4 (1 - delta)/delta^2)
    Source (paper): [karimireddy2019error], Lemma 3.
    steps (int, optional): t, for the sharp form; None is the limit.

    >>> memory_error(0.05, 1.0, 1.0), memory_error(0.05, 1.0, 1.0, form="paper")
    (1481.756, 1520.0)
    """
    require(steps is None or (form == "sharp" and steps >= 0), "steps", steps, "None, or t >= 0 with the sharp form")
    if form == "paper":
        return step**2 * second_moment * 4.0 * (1.0 - delta) / delta**2
    q = math.sqrt(1.0 - delta)
    grown = 1.0 if steps is None else 1.0 - q**steps
    return step**2 * second_moment * (q * (1.0 + q) / delta * grown) ** 2


@formula("steps >= 0")
def memory_error_schedule(delta: float, steps: ArrayLike, second_moment: float) -> np.ndarray:
    """Mean squared norm of a memory with any step sizes.

    Setting: C contracts with the factor delta, E||g_t||^2 <= second_moment, step sizes eta_0, eta_1, ...
    Statement: E||e_t||^2 <= second_moment (sum_{j < t} q^(t-j) eta_j)^2 with q = sqrt(1 - delta).
    Kind: tight (attained at every t by C(v) = (1 - q) v and a constant gradient).
    Source: derived, as the sharp form of :func:`memory_error`.
    steps (array_like): eta_0, ..., eta_{T-1}, at least 0.

    Returns
    -------
    numpy.ndarray
        The bound for t = 0, ..., T.

    >>> memory_error_schedule(0.75, [1.0, 1.0], 1.0)
    array([0.  , 0.25 , 0.5625])
    """
    steps = np.asarray(steps, float).ravel()
    q, root, roots = math.sqrt(1.0 - delta), 0.0, [0.0]
    for eta in steps.tolist():
        root = q * (root + eta)
        roots.append(root)
    return second_moment * np.square(roots)
