"""Decentralized averaging: workers communicate only with their neighbours."""

from __future__ import annotations

import math

from ..core import require
from ._domain import probability
from .closed_form import formula

__all__ = ["choco_gamma", "ring_gossip_factor"]


@formula
def ring_gossip_factor(workers: int) -> float:
    """Contraction of the workers' distances from their mean by a round of gossip on a ring.

    Setting: N workers in a ring; in a round each replaces its vector by the mean of it and its two neighbours'.
    Statement: the mean stays, and ``sum_k ||x_k - mean||^2`` is multiplied by at most the square of
    ``1 - (2/3) (1 - cos(2 pi/N))``.  So it takes about ``N^2/13`` rounds to gain a factor e.
    Kind: tight (x_k = cos(2 pi k/N)).
    Source: the eigenvalues of the circulant matrix with weights 1/3 are 1/3 + (2/3) cos(2 pi j/N).
    workers: N, at least 3.

    Raises
    ------
    ValueError
        If N is below 3: a worker then does not have two neighbours.

    >>> round(ring_gossip_factor(4), 4), round(ring_gossip_factor(36), 4)
    (0.3333, 0.9899)
    """
    whole = workers >= 3 and float(workers).is_integer()
    require(whole, "workers", workers, "an integer, at least 3: in a ring everybody has two neighbours")
    return 1.0 - (2.0 / 3.0) * (1.0 - math.cos(2.0 * math.pi / workers))


@formula
def choco_gamma(rho: float, beta: float, delta: float) -> float:
    """Consensus step of CHOCO-Gossip and CHOCO-SGD in their theorem.

    Setting: a mixing matrix with the spectral gap rho and ||I - W|| = beta; a compressor with contraction delta.
    Statement: gamma = rho^2 delta/(16 rho + rho^2 + 4 beta^2 + 2 rho beta^2 - 8 rho delta).
    Kind: identity.
    Source: Koloskova, Stich, Jaggi, ICML 2019, Theorem 2; ICLR 2020, Theorem 4.1.
    rho: The spectral gap, in (0, 1].
    beta: In (0, 2].
    delta: In (0, 1].

    >>> round(choco_gamma(1.0, 1.0, 1.0), 4)
    0.0667
    """
    probability(rho=rho, delta=delta)
    require(0 < beta <= 2, "beta", beta, "a number in (0, 2]")
    return rho**2 * delta / (16 * rho + rho**2 + 4 * beta**2 + 2 * rho * beta**2 - 8 * rho * delta)
