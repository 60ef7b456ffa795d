"""SGD with uniform sparsification: how many iterations it takes."""

from __future__ import annotations

import math

from .closed_form import formula


@formula
def sparsified_iterations(p: float) -> float:
    """Factor by which uniform sparsification increases the iterations to the same accuracy.

    Title: Uniform sparsification costs 1/p times as many iterations.
    Setting: any SGD theorem whose number of iterations is proportional to M^2, a bound of the second moment of the
    gradients, with the step that the theorem chooses; every coordinate is kept with probability p and divided by p.
    Statement: With the share p of the coordinates and a step p times as long, SGD takes 1/p times as many iterations to
    the same accuracy, so that the number of coordinates sent stays the same.
    Kind: rate.
    Latex: T(p)=T(1)/p
    Proof: On (mu/2)||x||^2 everything decays with the factor 1 - p (2 a - a^2), a = gamma mu, towards the same floor.
    Source: lecture; derived: the second moment of the gradients, hence the number of iterations, grows by 1/p.

    >>> sparsified_iterations(0.125)
    8.0
    """
    return 1.0 / p


@formula("T >= 0", "step > 0", "step * mu < 2")
def sparsified_distance(T: int, mu: float, step: float, variance: float, distance: float, p: float) -> float:
    """Distance to the minimum with uniform sparsification, on the isotropic quadratic.

    Setting: f(x) = (mu/2) ``||x||^2``, gradients mu x + noise of this variance, each sparsified with E Q(g) = g and
    ``E||Q(g)||^2 = ||g||^2/p``; constant step p times ``step``.
    Statement: ``E||x_T||^2 = r^T distance + (1 - r^T) floor`` with r = 1 - p (2 a - a^2), a = step mu and
    floor = a variance/(mu^2 (2 - a)), which does not depend on p: with a step p times as long, everything takes 1/p
    times as many steps.
    Kind: identity.
    Source: derived: ``E||x - gamma Q(g)||^2 = (1 - 2 gamma mu) ||x||^2 + gamma^2 (mu^2 ||x||^2 + variance)/p``.
    T: Steps.
    mu, step: Above 0, with step mu below 2.
    variance, distance: Of the noise; of the start, ``||x_0||^2``.  At least 0.

    >>> sparsified_distance(0, mu=1.0, step=0.1, variance=3.0, distance=4.0, p=0.5)
    4.0
    """
    a = step * mu
    floor = a * variance / (mu**2 * (2.0 - a))
    kept = math.pow(1.0 - p * (2.0 * a - a * a), T)
    return kept * distance + (1.0 - kept) * floor
