"""CHOCO-SGD: gossip on a ring with compressed differences of models.

Koloskova, Stich, Jaggi, "Decentralized stochastic optimization and gossip algorithms with compressed communication"
(ICML 2019), Algorithm 2.
"""

from typing import NamedTuple

import numpy as np

import theory as th


def ring(n):
    """The mixing matrix of a ring: a third for oneself and for each neighbour."""
    return sum(np.roll(np.eye(n), shift, axis=1) for shift in (-1, 0, 1)) / 3


@th.method
class ChocoSGD(NamedTuple):
    compressor: NamedTuple
    step: NamedTuple
    gamma: float = 0.3
    shards: str = "contiguous"  # each worker has rows of its own
    models = "workers"  # and a model
    listed = True  # round calls operations of the run and nothing else

    def round(self, run):
        p, known = run.vectors(), run.copies("known")
        run.set(p, run.x, run.l2)
        run.gradient(run.x, p)
        run.add(run.x, p, -run.eta)  # x = x - eta g
        run.set(p, run.x)
        run.add(p, run.own(known), -1.0)  # p = x - xhat
        messages = run.gather(run.compress(self.compressor, p))  # q = Q(x - xhat)
        run.accumulate_each(messages, known)  # xhat_j = xhat_j + q_j
        laplacian = run.once("W - I", lambda: ring(run.workers) - np.eye(run.workers))
        run.combine(run.x, known, laplacian, self.gamma)  # x = x + gamma sum_j W_ij (xhat_j - xhat_i)
