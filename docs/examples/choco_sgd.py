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
        g, p, xhat = run.scratch(), run.rows("p"), run.copies("xhat")
        run.set_gradient(g, at=run.x)  # g_i = gradient at x_i
        run.add(run.x, g, scale=-run.eta)  # x_i = x_i - eta g_i
        run.set(p, run.x, minus=run.own(xhat))  # p_i = x_i - xhat_i
        received = run.gather(run.compress(self.compressor, p))  # q_j = Q(p_j) of all
        run.add(xhat, received)  # xhat_j = xhat_j + q_j
        minus_identity = run.once("W - I", lambda: ring(run.workers) - np.eye(run.workers))
        run.add(run.x, xhat, scale=self.gamma, weights=minus_identity)  # x_i = x_i + gamma sum_j (W - I)_ij xhat_j
