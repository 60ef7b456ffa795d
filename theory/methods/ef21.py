"""EF21: workers send compressed differences between their gradient and what is known of it.

One step, in the notation of the paper::

    c_i = C(grad f_i(x) - g_i), which i sends
    g_i = g_i + c_i, at i
    g = g + mean c_i, at all
    x = x - eta g
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import traits
from .custom import method
from .types import Run

__all__ = ["EF21"]


@traits(state=("g",), stores=(0, 1))
@method
class EF21(NamedTuple):
    """What workers send is the compressed change of their gradient; x moves by what is known of the gradients.

    Between two steps a worker stores g_i (``memory_bytes``) and their mean g (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        One that contracts, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step; with noise the method tends to a floor.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Richtárik, Sokolov, Fatkhullin, "EF21: a new, simpler, theoretically better, and practically faster error feedback"
    (NeurIPS 2021), Algorithm 2, from g_i = 0; :func:`theory.bounds.exact_feedback_rate` has its exact rate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(EF21(th.TopK(2), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0. , 0. , 0.5, 0.5])
    """

    compressor: NamedTuple
    step: NamedTuple
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, known, g = run.scratch(), run.rows("known"), run.vector("g")
        run.add_to_average(run.x)  # of the iterates
        run.set(p, known, scale=-1.0)
        run.add_gradient(p, at=run.x)  # p = gradient at x - g_i
        message = run.compress(self.compressor, p)  # C(p)
        run.add(known, message)  # g_i = g_i + C(p)
        run.add(g, run.gather(message))  # g = g + mean C(p)
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g
