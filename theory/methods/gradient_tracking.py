"""Gradient tracking: every worker estimates the gradient of the mean, so that different data leave no bias.

One step, in the notation of the papers; y_i starts at 0, and so does the gradient before the first::

    every worker j sends y_j and x_j to its neighbours
    y_i = sum_j W_ij y_j + g_i - (g_i of the step before),  g_i a stochastic gradient at x_i
    x_i = sum_j W_ij x_j - eta y_i

The mean of the y_i is always the mean of the g_i.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .graphs import Ring
from .on_graphs import on_graph
from .sampling import Split
from .types import Run


@on_graph(rows=2)
class GradientTracking(NamedTuple):
    """Decentralized SGD along an estimate of the mean gradient, which is gossiped, too: two messages in a step.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of both messages, full precision by default; the theory is about full precision.
    step : Constant or InverseTime
        Step sizes; required.
    graph : graph
        Who hears whom.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterates the result averages.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `DPSGD`.

    Notes
    -----
    Nedic, Olshevsky, Shi, "Achieving geometric convergence for distributed optimization over time-varying graphs" (SIAM
    J. Optim. 2017), DIGing; Qu, Li, "Harnessing smoothness to accelerate distributed optimization" (2018).

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = GradientTracking(step=th.Constant(0.5), shards="shared")
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
        W, sent_y, sent_x = run.mixing(self.graph), run.copies("y"), run.copies("x")
        g, g_before, y = run.scratch(), run.rows("g before"), run.rows("y")
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(g, at=run.x)  # g_i = gradient at x_i
        heard_y = run.hear(run.compress(self.compressor, y, phase="y"), W)  # Q(y_j) of the neighbours
        run.set(sent_y, heard_y)  # sent_y_j = Q(y_j)
        run.add(y, sent_y, weights=W.minus_identity)  # y_i = y_i + sum_j W_ij (sent_y_j - sent_y_i)
        run.add(y, g, minus=g_before)  # y_i = y_i + g_i - (g_i of the step before)
        run.set(g_before, g)  # for the next step
        heard_x = run.hear(run.compress(self.compressor, run.x), W)  # Q(x_j) of the neighbours
        run.set(sent_x, heard_x)  # sent_x_j = Q(x_j)
        run.add(run.x, sent_x, weights=W.minus_identity)  # x_i = x_i + sum_j W_ij (sent_x_j - sent_x_i)
        run.add(run.x, y, scale=-run.eta)  # x_i = x_i - eta y_i
