"""D-PSGD: every worker has a model, takes a gradient step, and averages with its neighbours.

One step, in the notation of the paper::

    every worker j sends x_j to its neighbours
    x_i = sum_j W_ij x_j - eta g_i,  g_i a stochastic gradient at x_i
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .graphs import Ring
from .on_graphs import on_graph
from .sampling import Split
from .types import Run


@on_graph()
class DPSGD(NamedTuple):
    """Decentralized parallel SGD: a gradient step, and the mean with the neighbours.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of the model that a worker sends, full precision by default.  Errors that do not vanish with the
        distances do not average out; `ChocoSGD` and `DCDPSGD` send differences.
    step : Constant or InverseTime
        Step sizes; required.
    graph : graph
        Who hears whom.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterates the result averages; always over the workers.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`; all workers have the same weight.

    Notes
    -----
    Lian, Zhang, Zhang, Hsieh, Zhang, Liu, "Can decentralized algorithms outperform centralized algorithms?" (NeurIPS
    2017), Algorithm 1.  What is sent is added as x_i + sum_j W_ij (x_j - x_i), so that rounding for the wire does not
    move the mean.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = DPSGD(step=th.Constant(0.5), shards="shared")
    >>> th.run(method, problem, workers=4, steps=3, x0=np.ones(4)).x
    array([0.125, 0.125, 0.125, 0.125])
    """

    compressor: NamedTuple | None = None
    step: NamedTuple | None = None
    graph: Any = Ring()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "contiguous"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        W, g, sent_x = run.mixing(self.graph), run.scratch(), run.copies("x")
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(g, at=run.x)  # g_i = gradient at x_i
        heard = run.hear(run.compress(self.compressor, run.x), W)  # Q(x_j) of the neighbours
        run.set(sent_x, heard)  # sent_x_j = Q(x_j)
        run.add(run.x, sent_x, weights=W.minus_identity)  # x_i = x_i + sum_j W_ij (sent_x_j - sent_x_i)
        run.add(run.x, g, scale=-run.eta)  # x_i = x_i - eta g_i
