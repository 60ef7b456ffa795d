"""CHOCO-SGD: a gradient step, then CHOCO-Gossip with compressed differences of the models.

One step, in the notation of the paper::

    x_i = x_i - eta g_i,  g_i a stochastic gradient at x_i
    q_j = Q(x_j - xhat_j), which j sends to its neighbours
    xhat_j = xhat_j + q_j, at j and at its neighbours
    x_i = x_i + gamma sum_j W_ij (xhat_j - xhat_i)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .graphs import Ring
from .on_graphs import choco_step, on_graph
from .sampling import Split
from .types import Run


@on_graph(copies=1)
class ChocoSGD(NamedTuple):
    """Decentralized SGD with compressed differences, which converges for every contraction.

    Parameters
    ----------
    compressor : compressor, optional
        One that contracts, such as ``TopK(10)`` or ``Scaled(QSGD(4), 0.5)``; full precision by default.
    step : Constant or InverseTime
        Step sizes; required.
    graph : graph
        Who hears whom.
    gamma : float, optional
        The consensus step, above 0 and at most 1; by default that of the theorem, ``bounds.choco_gamma``, which is
        very cautious.  ``bounds.choco_best_gamma`` searches for the best for random sparsification.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterates the result averages.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `DPSGD`.

    Notes
    -----
    Koloskova, Stich, Jaggi, "Decentralized stochastic optimization and gossip algorithms with compressed communication"
    (ICML 2019), Algorithm 2.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = ChocoSGD(th.TopK(1), th.Constant(0.5), gamma=0.3, shards="shared")
    >>> th.run(method, problem, workers=4, steps=3, x0=np.ones(4)).x
    array([0.125, 0.125, 0.125, 0.125])
    """

    compressor: NamedTuple | None = None
    step: NamedTuple | None = None
    graph: Any = Ring()
    gamma: float | None = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "contiguous"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        W, g, p, xhat = run.mixing(self.graph), run.scratch(), run.rows("p"), run.copies("xhat")
        gamma = choco_step(self.gamma, self.compressor, W, run.d)  # by default the theorem's
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(g, at=run.x)  # g_i = gradient at x_i
        run.add(run.x, g, scale=-run.eta)  # x_i = x_i - eta g_i
        run.set(p, run.x, minus=run.own(xhat))  # p_i = x_i - xhat_i
        heard = run.hear(run.compress(self.compressor, p), W)  # q_j = Q(p_j) of the neighbours
        run.add(xhat, heard)  # xhat_j = xhat_j + q_j
        run.add(run.x, xhat, scale=gamma, weights=W.minus_identity)  # x_i = x_i + gamma sum_j W_ij (xhat_j - xhat_i)
