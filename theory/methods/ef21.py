"""EF21, and EF21 with momentum: workers send compressed differences to what is known of them.

One step of EF21, in the notation of the paper::

    c_i = C(grad f_i(x) - g_i), which i sends
    g_i = g_i + c_i, at i
    g = g + mean c_i, at all
    x = x - eta g

With momentum v_i stands for the gradient, and averages it over the steps::

    v_i = (1 - a) v_i + a grad f_i(x, xi)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import require, traits
from .custom import check_method, method
from .difference_steps import Difference, difference, longest_step, step_of_theorem
from .sampling import Split
from .types import Run


@traits(state=("g",), stores=(0, 1), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class EF21(NamedTuple):
    """What workers send is the compressed change of their gradient; x moves by what is known of the gradients.

    Between two steps a worker stores g_i (``memory_bytes``) and their mean g (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        One that contracts, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.difference_step` has those of the theorem.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step; with noise the method tends to a floor, see `EF21SGDM`.
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
    shards: str | Split = "shared"

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

    def differences(self, problem: Any, workers: int) -> Difference:
        """What its theorem says of the method on this problem."""
        return difference(self, problem, workers, momentum=1.0)


@traits(state=("g",), stores=(0, 2), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class EF21SGDM(NamedTuple):
    """EF21 with momentum before compression: it averages gradient noise, of which EF21 keeps a floor.

    Between two steps a worker stores v_i and g_i (``memory_bytes``) and the mean g of these (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        One that contracts, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.ef21_momentum_step` has those of the theorem.
    momentum : float
        a, the weight of the new gradient, in (0, 1]; 1 is EF21.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step, as in `EF21`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Fatkhullin, Tyurin, Richtárik, "Momentum provably improves error feedback!" (NeurIPS 2023), Algorithm 1, with v_i
    = the first batch's gradient and g_i = 0 at the start.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(EF21SGDM(th.TopK(2), th.Constant(0.5), momentum=1.0), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0. , 0. , 0.5, 0.5])
    """

    compressor: NamedTuple
    step: NamedTuple
    momentum: float = 0.1
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, v, known, g = run.scratch(), run.rows("v"), run.rows("known"), run.vector("g")
        a = run.once("a", lambda: run.rates.beginning(1.0, self.momentum))  # a; 1 in the first step
        run.add_to_average(run.x)  # of the iterates
        run.scale(v, 1.0 - a)
        run.add_gradient(v, at=run.x, scale=a)  # v_i = (1 - a) v_i + a gradient at x
        run.set(p, v, minus=known)  # p = v_i - g_i
        message = run.compress(self.compressor, p)  # C(p)
        run.add(known, message)  # g_i = g_i + C(p)
        run.add(g, run.gather(message))  # g = g + mean C(p)
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        require(0.0 < self.momentum <= 1.0, "momentum", self.momentum, "a number above 0, up to 1")

    def differences(self, problem: Any, workers: int) -> Difference:
        """What its theorem says of the method on this problem."""
        return difference(self, problem, workers, momentum=self.momentum)
