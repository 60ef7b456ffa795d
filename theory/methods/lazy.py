"""CLAG and LAG: a worker sends only if its gradient has moved far enough from what is known of it.

One step, in the notation of the paper::

    c_i = C(grad f_i(x) - g_i), which i sends, if ||grad f_i(x) - g_i||^2 > zeta ||grad f_i(x) - grad f_i(x')||^2, x'
    the model before; else nothing, c_i = 0
    g_i = g_i + c_i, at i
    g = g + mean c_i, at all
    x = x - eta g
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..compressors.identity import Identity
from ..compressors.wrappers.skip_zero import SkipZero
from ..core import require, traits
from .custom import check_method, method
from .difference_steps import Difference, difference, longest_step, step_of_theorem
from .sampling import Split
from .types import Run


@traits(state=("g",), stores=(0, 3), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class CLAG(NamedTuple):
    """EF21 in which a worker is silent until its gradient has changed enough; LAG in full precision.

    A silent worker sends one bit (`SkipZero`).  Between two steps a worker stores its gradient, and g_i
    (``memory_bytes``), and their mean g (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        One that contracts, such as ``TopK(10)``; full precision, the default, is LAG.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.difference_step` with :func:`theory.bounds.clag_ratio` has those of the
        theorem.
    trigger : float
        zeta, at least 0; 0 is EF21.  In the first step all send.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step, as in `EF21`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Richtárik, Sokolov, Fatkhullin, Gasanov, Li, Gorbunov, "3PC: three point compressors for communication-efficient
    distributed training and a better theory for lazy aggregation" (ICML 2022), CLAG; Chen, Giannakis, Sun, Yin, "LAG:
    lazily aggregated gradient for communication-efficient distributed learning" (NeurIPS 2018) has the idea.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> lazy = th.run(CLAG(step=th.Constant(0.125), trigger=4.0), problem, workers=1, steps=3, x0=np.ones(4))
    >>> lazy.x, int(lazy.history["payload_bits_up"][-1])  # 128 bits, 1 and 1
    (array([0.625, 0.625, 0.625, 0.625]), 131)
    """

    compressor: NamedTuple = Identity()
    step: NamedTuple | None = None
    trigger: float = 1.0
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, known, g = run.scratch(), run.rows("known"), run.vector("g")
        gradient, change = run.rows("gradient"), run.rows("change")
        zeta = run.once("zeta", lambda: run.rates.beginning(0.0, self.trigger))  # zeta; 0 in the first step
        run.add_to_average(run.x)  # of the iterates
        run.set(change, gradient, scale=-1.0)
        run.set_gradient(gradient, at=run.x)
        run.add(change, gradient)  # gradient at x - gradient before
        run.set(p, gradient, minus=known)  # p = gradient at x - g_i
        run.drop(p, below=change, factor=zeta)  # p = 0 where ||p||^2 <= zeta ||change||^2
        message = run.compress(SkipZero(self.compressor), p)  # C(p), or a bit
        run.add(known, message)  # g_i = g_i + C(p)
        run.add(g, run.gather(message))  # g = g + mean C(p)
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        require(0.0 <= self.trigger < math.inf, "trigger", self.trigger, "a finite number, at least 0")

    def differences(self, problem: Any, workers: int) -> Difference:
        """What its theorem says of the method on this problem."""
        return difference(self, problem, workers, trigger=self.trigger)
