"""Workers with a quadratic each, in NumPy and as a problem, on which methods are compared with their algorithms."""

from __future__ import annotations

import numpy as np

import theory as th


class Quadratics:
    """f_i(x) = 1/2 sum_j c_ij (x_j - b_ij)^2, drawn from one seed."""

    def __init__(self, workers: int, d: int):
        self.rng, shape = np.random.default_rng(0), (workers, d)
        self.curvatures, self.centres = self.rng.uniform(0.5, 2.0, shape), self.rng.standard_normal(shape)
        self.optimum = (self.curvatures * self.centres).sum(axis=0) / self.curvatures.sum(axis=0)
        self.problem = th.function(self.value, self.gradients, d=d, n=workers)

    def value(self, x) -> float:
        """The mean over the workers."""
        return float((self.curvatures * (x - self.centres) ** 2).sum(axis=1).mean() / 2.0)

    def gradients(self, x):
        """The gradients of all workers: at one x, or each at its own."""
        return self.curvatures * (x - self.centres)


def top(v, k):
    """The k largest entries of every row."""
    v = np.atleast_2d(v)
    kept, index = np.zeros_like(v), np.argsort(-np.abs(v), axis=1)[:, :k]
    np.put_along_axis(kept, index, np.take_along_axis(v, index, 1), 1)
    return kept
