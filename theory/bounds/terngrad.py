"""Convergence of SGD with TernGrad: its Lemma 1, and what follows where the gradient points to the minimum strongly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula


@formula("descent >= 0", "offset >= 0", "slope >= 0")
def terngrad_step(step: float, distance: float, descent: float, offset: float, slope: float) -> float:
    r"""Expected squared distance to the minimum after one step of TernGrad.

    Title: A step of TernGrad.
    Setting: w' = w - gamma Q(g), where Q is TernGrad (scale ``max|g_i|``), E g = grad C(w), and ``E max|g_i| ||g||_1 <=
    A + B ||w - w*||^2``; h = ||w - w*||^2.
    Statement: If E max|g| ||g||_1 <= A + B h with h = ||w - w*||^2, a step with TernGrad leaves E h' <= (1 + gamma^2 B)
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
    Statement: SGD with TernGrad comes to the minimum almost surely if the steps have an infinite sum and their squares
    a finite one; where <w - w*, grad C> >= mu ||w - w*||^2, E h_T is at most Lemma 1 applied T times, which tends to 0.
    Kind: tight (attained where both assumptions are equalities).
    Latex: \mathbb{E}\,h_T\le h_0\prod_t r_t+A\sum_t\gamma_t^2\prod_{s>t}r_s,\quad r_t=1-2\gamma_t\mu+\gamma_t^2B
    Proof: Lemma 1 makes h_t an almost supermartingale: Robbins and Siegmund.
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
