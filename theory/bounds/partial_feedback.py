"""Partial feedback: a part of the memory is not fed back, and the memory itself is compressed.

Throughout, p_t = eta g_t + (1 - beta) e_t, Delta_t = Q(p_t) is sent and e_{t+1} = C(beta e_t + p_t - Delta_t) is kept;
beta = 0 is ConEF.  ``residual`` is 1 - delta of Q, ``theta`` the omega of the unbiased C, as in ``contractive``.
"""

from __future__ import annotations

import math

from .closed_form import formula
from .contractive import below_frontier, conef_factor


@formula("form in ('sparsifier', 'worst')")
def partial_factor(theta: float, residual: float, beta: float, form: str = "sparsifier") -> float:
    r"""Growth factor of a compressed memory in a step if a part of it is not fed back.

    Title (partial): A part of the memory stays at home.
    Setting: partial feedback without gradients, g_t = 0.
    Statement: E||e_{t+1}||^2 <= kappa E||e_t||^2 with sparsifier: kappa = (1 + theta) (residual + (1 - residual)
    beta^2), for a Q that sends every coordinate unchanged with the same probability 1 - residual (random-k, random
    blocks); worst: kappa = (1 + theta) (beta + (1 - beta) sqrt(residual))^2, for any Q. Both increase with beta, so
    beta = 0 is best if C's random numbers are fresh.
    Statement (partial): If p = eta g + (1 - beta) e and e = C(beta e + p - Q(p)), random-k and a fresh count sketch
    multiply E||e||^2 by (1 + theta) (r + (1 - r) beta^2) in every step without gradients: beta = 0 is best.
    Kind: tight (sparsifier: an equality if C's error is one; worst: attained by Q(v) = (1 - sqrt(residual)) v).
    Kind (partial): identity.
    Latex (sparsifier): \mathbb{E}\|e_{t+1}\|^2=(1+\theta)\big(r+(1-r)\beta^2\big)\mathbb{E}\|e_t\|^2
    Latex (partial): \mathbb{E}\|e_{t+1}\|^2=(1+\theta)\big(r+(1-r)\beta^2\big)\mathbb{E}\|e_t\|^2
    Source: derived: a coordinate that is sent keeps beta e, the others keep e; and ``||beta e + p - Q(p)||`` is at most
    ``beta ||e|| + sqrt(residual) ||p||`` in mean square.
    Source (partial): derived; the rule is that of the talk on contractive error feedback; [li2023contractive].

    Returns
    -------
    float
        kappa.

    >>> partial_factor(0.25, 0.25, 0.0), partial_factor(0.25, 0.25, 0.5), partial_factor(0.25, 0.25, 0.5, form="worst")
    (0.3125, 0.5469, 0.7031)
    """
    conef_factor(theta, residual)  # checks the domain
    if form == "sparsifier":
        return (1.0 + theta) * (residual + (1.0 - residual) * beta**2)
    return (1.0 + theta) * (beta + (1.0 - beta) * math.sqrt(residual)) ** 2


@formula("gradient in ('constant', 'zero-mean')")
def partial_memory(
    theta: float, residual: float, beta: float, step: float, second_moment: float, gradient: str = "constant"
) -> float:
    """Limit of the mean squared norm of a compressed memory if a part of it is not fed back.

    Setting: partial feedback; Q sends every coordinate unchanged with the same probability 1 - residual;
    E||C(v) - v||^2 = theta ||v||^2 for every v; constant step size eta.
    Statement: with kappa = partial_factor(theta, residual, beta), E||e_t||^2 tends to
    zero-mean: (1 + theta) residual eta^2 G^2/(1 - kappa), for gradients of mean zero given the past, E||g_t||^2 = G^2;
    constant: that, times 1 + 2 residual/((1 - residual) (1 - beta)), for one gradient of squared norm G^2.
    Kind: identity.
    Source: derived: the error before C is eta g + e where nothing is sent and beta e elsewhere; so its mean is
    E e = r (E e + eta g) + (1 - r) beta E e, r = residual.
    step: eta.

    Raises
    ------
    ValueError
        If an argument is outside its domain, also if kappa is not below 1.

    >>> partial_memory(0.5, 0.5, 0.0, 1.0, 1.0), partial_memory(0.5, 0.5, 0.5, 1.0, 1.0)
    (9.0, 60.0)
    """
    kappa = partial_factor(theta, residual, beta)
    below_frontier(theta, kappa, "(1 + theta) (residual + (1 - residual) beta^2) < 1")
    pull = 2.0 * residual / ((1.0 - residual) * (1.0 - beta)) if gradient == "constant" else 0.0
    return (1.0 + theta) * residual * step**2 * second_moment * (1.0 + pull) / (1.0 - kappa)
