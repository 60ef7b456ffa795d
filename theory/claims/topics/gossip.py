"""Claims about decentralized averaging."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ..base import claim
from ..checks import identity, upper


def weighted(own, left, right):
    """A round of gossip on a ring with these weights of one's own vector and of the neighbours'."""
    return lambda x: own * x + left * np.roll(x, 1, axis=0) + right * np.roll(x, -1, axis=0)


def chain(x):
    """The ring with one link cut; a worker with one neighbour keeps 2/3 of its own vector."""
    return (x + np.concatenate([x[:1], x[:-1]]) + np.concatenate([x[1:], x[-1:]])) / 3.0


@claim(
    "gossip.ring",
    title="Gossip on a ring",
    statement="If everybody replaces its vector by the mean of three, its own and its two neighbours', the mean stays"
    " and the distances from it shrink at least by 1 - (2/3) (1 - cos(2 pi/N)).",
    latex=r"\|X_+-\bar X\|_F\le\Big(1-\tfrac23\big(1-\cos\tfrac{2\pi}N\big)\Big)\|X-\bar X\|_F",
    source="the eigenvalues of a circulant matrix",
    tight_where="a cosine around the ring",
    proof="W is symmetric with the eigenvalues 1/3 + (2/3) cos(2 pi j/N); its largest below 1 belongs to j = 1,"
    " and from N = 4 on that is at least 1/3, while none is below -1/3.",
    bound=bounds.ring_gossip_factor,
    subject=weighted(1 / 3, 1 / 3, 1 / 3),
    mutants={
        "a chain: one link is cut": chain,
        "weights 1/2 and 1/4": weighted(1 / 2, 1 / 4, 1 / 4),
        "without one's own": weighted(0, 1 / 2, 1 / 2),
        "one neighbour is heard twice": weighted(1 / 3, 2 / 3, 0),
    },
)
def _(context):
    for N in (4, 9, 16, 36):
        factor, x = bounds.ring_gossip_factor(N), context.normal((N, 3), N)
        slowest, y = np.cos(2 * np.pi * np.arange(N) / N)[:, None], context.subject(x)
        after = np.linalg.norm(context.subject(slowest)) / np.linalg.norm(slowest)
        yield identity(f"a cosine, N={N}", float(after), factor)
        yield identity(f"the mean moves, N={N}", np.abs(y.mean(axis=0) - x.mean(axis=0)).max(), 0.0)
        left = np.linalg.norm(y - y.mean(axis=0)) / np.linalg.norm(x - x.mean(axis=0))
        yield upper(f"random vectors, N={N}", left, factor)
