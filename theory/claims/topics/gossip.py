"""Claims about decentralized averaging."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...measure import exactly
from ..base import claim
from ..checks import Measurement, identity, upper


def ring(x):
    """A round of gossip: every worker takes the mean of its own vector and its two neighbours'."""
    return (x + np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)) / 3.0


def chain(x):
    """The ring with one link cut; a worker with one neighbour keeps 2/3 of its own vector."""
    left, right = np.concatenate([x[:1], x[:-1]]), np.concatenate([x[1:], x[-1:]])
    return (x + left + right) / 3.0


@claim(
    "gossip.ring",
    title="Gossip on a ring",
    statement="If everybody replaces its vector by the mean of three, its own and its two neighbours', the mean stays"
    " and the distances from it shrink at least by 1 - (2/3) (1 - cos(2 pi/N)).",
    latex=r"\|X_+-\bar X\|_F\le\Big(1-\tfrac23\big(1-\cos\tfrac{2\pi}N\big)\Big)\|X-\bar X\|_F",
    source="the eigenvalues of a circulant matrix",
    kind="tight",
    tight_where="a cosine around the ring",
    proof="W is symmetric with the eigenvalues 1/3 + (2/3) cos(2 pi j/N); its largest below 1 belongs to j = 1,"
    " and from N = 4 on that is at least 1/3, while none is below -1/3.",
    bound=bounds.ring_gossip_factor,
    subject=ring,
    mutants={
        "a chain: one link is cut": chain,
        "weights 1/2 and 1/4": lambda x: x / 2 + np.roll(x, 1, axis=0) / 4 + np.roll(x, -1, axis=0) / 4,
        "without one's own": lambda x: (np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)) / 2,
        "one neighbour is heard twice": lambda x: (x + 2 * np.roll(x, 1, axis=0)) / 3,
    },
)
def _(context):
    checks = []
    for N in (4, 9, 16, 36):
        factor = bounds.ring_gossip_factor(N)
        slowest = np.cos(2 * np.pi * np.arange(N) / N)[:, None]
        after = float(np.linalg.norm(context.subject(slowest)) / np.linalg.norm(slowest))
        checks.append(identity(f"a cosine, N={N}", after, factor))
        x = context.normal((N, 3), N)
        y = context.subject(x)
        checks.append(identity(f"the mean moves, N={N}", np.abs(y.mean(axis=0) - x.mean(axis=0)).max(), 0.0))
        left = float(np.linalg.norm(y - y.mean(axis=0)) / np.linalg.norm(x - x.mean(axis=0)))
        checks.append(upper(f"random vectors, N={N}", exactly(left), factor))
    return Measurement(*checks)
