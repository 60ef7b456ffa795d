"""Plain SGD on a problem with drawn noise in one loop: the same bits as the round function, in batches of steps.

Such a step is a few multiplications per coordinate, and nearly all of the time is overhead: keys, messages, normal
numbers one by one.  This loop draws the noise of many steps together, since it does not depend on x, and then takes the
steps.  It is for full precision, one draw per worker, no memory and no momentum.
"""

from __future__ import annotations

import numpy as np

from ...compressors.identity import Identity
from ...core import kernel, no_refcount
from ...core.normals import fill_keys, fill_normals
from ...problems.quadratics import add_drawn_noise, add_mean_gradient
from ..feedback import NoFeedback
from ..messages import REDUCED
from ..server import Mean, Projected
from ..sgd import ParallelSGD
from ..topology import AllReduce
from ..types import Run

FEW = 256  # the loop is used up to this length of x; longer vectors need no help
TOGETHER = 64  # maximum number of steps whose noise is drawn together
NUMBERS = 2**15  # approximate number of normal numbers stored at a time: they stay in cache


class DrawnLoop:
    """Plain SGD with drawn noise: one draw per worker, full precision, messages that are summed.

    Parameters
    ----------
    run : Run
    """

    name = "theory.methods.fast.noisy_quadratic.drawn_loop"
    test = "tests/methods/test_fast.py::test_drawn_loop_is_the_text"

    def __init__(self, run: Run) -> None:
        self.run = run
        server = run.setup.method.server
        self._radius = server.radius if isinstance(server, Projected) else np.inf
        self.advance(0, 0)  # compiles

    @staticmethod
    def fits(run: Run) -> bool:
        """Whether this loop gives the same result as the round function."""
        method = run.setup.method
        server = method.server.server if isinstance(method.server, Projected) else method.server
        return (
            run.transport.ranks == 1
            and type(method) is ParallelSGD
            and add_mean_gradient.implements(type(run.problem))
            and run.d <= FEW
            and method.compressor == Identity()
            and (type(method.feedback), type(server), type(method.topology)) == (NoFeedback, Mean, AllReduce)
            and run.setup.batches.max() == 1
            and run.watched.size == 0
            and run.local_l2 == 0.0
        )

    def advance(self, start: int, stop: int) -> None:
        """Run the steps from ``start`` to ``stop``, whose rates are filled in."""
        run = self.run
        eta, weight = run.eta.column(), run.average_weight.column()
        drawn_loop(
            run.problem,
            run.x,
            run.mean,
            run.total,
            run.weight,
            run.noise_keys,
            eta.values,
            weight.values,
            run.l2,
            self._radius,
            run.wire,
            run.sent,
            start,
            stop,
        )


@kernel
def drawn_loop(problem, X, means, totals, weight, keys, etas, averages, l2, radius, wire, sent, start, stop):
    """Run the steps from ``start`` to ``stop`` of every replica."""
    workers, d = weight.size, X.shape[2]
    together = max(1, min(TOGETHER, stop - start, NUMBERS // (workers * d)))
    p, total, value = np.empty(d, X.dtype), np.empty(d, wire.dtype), np.empty((workers, d), wire.dtype)
    high, low, room = np.empty(together, np.uint32), np.empty(together, np.uint32), np.empty((4, together), np.uint32)
    noise = np.empty((workers, d, together))
    for r in range(sent.shape[0]):
        x, mean = X[r, 0], means[r, 0]
        for first in range(start, stop, together):
            count = min(together, stop - first)
            for w in range(workers):
                fill_keys(keys[r, w], first, high[:count], low[:count])
                fill_normals(high[:count], low[:count], room, noise[w])
            for k in range(count):
                t = first + k
                average = averages[t & (averages.size - 1)]
                if average > 0.0:
                    totals[r, 0] += average
                    share = average / totals[r, 0]
                    for j in range(d):
                        mean[j] += share * (x[j] - mean[j])
                _step(problem, weight, etas[t & (etas.size - 1)], l2, noise[:, :, k], x, p, value, total)
                if radius < np.inf:
                    _project(x, radius)
        sent[r, REDUCED] += 8 * value.itemsize * d * workers * (stop - start)


@no_refcount
@kernel
def _step(problem, weight, eta, l2, noise, x, p, value, total):
    """Compute the messages as rows of ``value`` and their mean in ``total``, and update x.  ``noise``: (w, j)."""
    for w in range(weight.size):
        for j in range(x.size):
            p[j] = l2 * x[j]
        add_mean_gradient(problem, 1.0, x, p)
        add_drawn_noise(problem, noise[w], 1.0, p)
        for j in range(x.size):
            value[w, j] = p[j]
    for j in range(x.size):
        mean = 0.0
        for w in range(weight.size):
            mean += weight[w] * value[w, j]
        total[j] = mean
        x[j] += -eta * total[j]


@no_refcount
@kernel
def _project(x, radius):
    squared = 0.0
    for j in range(x.size):
        squared += np.float64(x[j]) * x[j]
    if squared > radius * radius:
        factor = radius / np.sqrt(squared)
        for j in range(x.size):
            x[j] *= factor
