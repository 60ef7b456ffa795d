"""EF21-P and EF21-BC: the model's messages are also compressed, with their own memory.

EF21-P: the model sends the compressed change of x, and workers take gradients at their estimate w of x::

    x = x - gamma mean Q(grad f_i(w)), Q unbiased
    w = w + C(x - w), which the model sends

EF21-BC: EF21 at the workers, and also at the model, whose messages are changes of the mean gradient::

    c_i = C(grad f_i(x) - h_i), which i sends
    h_i = h_i + c_i, at i; h = h + mean c_i, at the model
    g = g + D(h - g), which the model sends
    x = x - gamma g, at all
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compressors.base import quantize
from ...compressors.full_precision import Identity
from ...core import require, traits
from ..custom import check_method, method
from ..gradients import Split
from ..types import Run
from .steps import Difference, difference, longest_step, step_of_theorem


@traits(state=("w",), stores=(0, 0), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class EF21P(NamedTuple):
    """The model sends the compressed change of x; workers take gradients at their estimate w of x.

    Parameters
    ----------
    compressor : compressor
        C, of the model's messages: a contraction, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes; the theorem has :func:`theory.bounds.difference_step`.
    up : compressor
        Q, of the workers' messages, unbiased and without memory; full precision by default, as in the theorem.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step, as in `EF21`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Gruntkowska, Tyurin, Richtárik, "EF21-P and friends: improved theoretical communication complexity for distributed
    optimization with bidirectional compression" (ICML 2023), Algorithm 1, started with w = x; with ``up`` it is EF21-P
    + DCGD.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(EF21P(th.TopK(2), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0.25, 0.25, 0.  , 0.  ])
    """

    compressor: NamedTuple
    step: NamedTuple
    up: NamedTuple = Identity()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        g, w, change = run.scratch(), run.vector("w", start=run.start), run.vector("change")
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(g, at=w)  # g_i = gradient at w
        run.add(run.x, run.gather(run.compress(self.up, g, to_server=True)), scale=-run.eta)  # x = x - eta mean Q(g_i)
        run.set(change, run.x, minus=w)  # x - w
        run.add(w, run.broadcast(run.compress(self.compressor, change, phase="down")))  # w = w + C(x - w)

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_second("up", self.up)

    def differences(self, problem: Any, workers: int) -> Difference:
        """The theorem of the method on this problem: the error of w adds at most L ||x - w|| to a gradient."""
        require(isinstance(self.up, Identity), "up", self.up, "Identity(), as the theorem has it")
        found = difference(self, problem, workers)
        return found._replace(workers_lipschitz=found.lipschitz)


@traits(state=("h", "g"), stores=(0, 1), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class EF21BC(NamedTuple):
    """EF21 with compressed messages in both directions, each with its own memory.

    Between two steps a worker stores h_i (``memory_bytes``); the mean h and g are stored with the model
    (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        C, of the workers' messages: a contraction, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes; the theorem has :func:`theory.bounds.difference_step` with :func:`theory.bounds.ef21_bc_ratio`.
    down : compressor
        D, of the model's messages: one that contracts; with full precision, the default, it is EF21.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step, as in `EF21`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Fatkhullin, Sokolov, Gorbunov, Li, Richtárik, "EF21 with bells & whistles: practical algorithmic extensions of
    modern error feedback" (2021), EF21-BC, from h_i = g = 0.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = EF21BC(th.TopK(2), th.Constant(0.5), down=th.TopK(1))
    >>> th.run(method, problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0. , 0.5, 1. , 1. ])
    """

    compressor: NamedTuple
    step: NamedTuple
    down: NamedTuple = Identity()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, own, h, g, change = run.scratch(), run.rows("own"), run.vector("h"), run.vector("g"), run.vector("change")
        run.add_to_average(run.x)  # of the iterates
        run.set(p, own, scale=-1.0)
        run.add_gradient(p, at=run.x)  # p = gradient at x - h_i
        message = run.compress(self.compressor, p, to_server=True)  # C(p)
        run.add(own, message)  # h_i = h_i + C(p)
        run.add(h, run.gather(message))  # h = h + mean C(p)
        run.set(change, h, minus=g)  # h - g
        run.add(g, run.broadcast(run.compress(self.down, change, phase="down")))  # g = g + D(h - g)
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_second("down", self.down)

    def differences(self, problem: Any, workers: int) -> Difference:
        """The theorem of the method on this problem."""
        return difference(self, problem, workers, down=self.down)


def check_second(name: str, compressor: Any) -> None:
    """Reject a second argument that is not a compressor."""
    require(quantize.implements(type(compressor)), name, compressor, "a compressor, such as TopK(10)", TypeError)
