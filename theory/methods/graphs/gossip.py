"""Gossip, D-PSGD and gradient tracking: every worker has a model and exchanges messages with its neighbours only.

In gossip every worker has a vector, and the goal is their mean. For the mixing matrix W and messages Q(x_j), a round of
``Gossip`` is::

    every worker j sends Q(x_j) to its neighbours
    x_i = x_i + sum_j W_ij (Q(x_j) - Q(x_i))

The mean does not change, but the distances do not tend to 0 if the errors do not decrease with them. CHOCO-Gossip
compresses the differences to the neighbours' copies, which tend to 0::

    q_j = Q(x_j - xhat_j), which j sends to its neighbours
    xhat_j = xhat_j + q_j, at j and at its neighbours
    x_i = x_i + gamma_c sum_j W_ij (xhat_j - xhat_i)

In D-PSGD every worker takes a gradient step, and averages with its neighbours.  One step, in the notation of the
paper::

    every worker j sends x_j to its neighbours
    x_i = sum_j W_ij x_j - gamma g_i,  g_i a stochastic gradient at x_i

In gradient tracking every worker estimates the gradient of the mean, so that different data cause no bias. One step, in
the notation of the papers, where y_i and the previous gradient start at 0::

    every worker j sends y_j and x_j to its neighbours
    y_i = sum_j W_ij y_j + g_i - (g_i of the step before),  g_i a stochastic gradient at x_i
    x_i = sum_j W_ij x_j - gamma y_i

The mean of the y_i is always the mean of the g_i.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ...compressors.base import opening
from ...compressors.closed_forms import delta
from ...compressors.full_precision import Identity
from ...core import require
from ...problems.base import dimension
from ..custom import check_method, method
from ..gradients import Split
from ..schedules import Constant
from ..types import Run
from .weights import Mixing, Ring, mixing

# --- Common parts of methods on graphs -------------------------------------------------------------------------------

T = TypeVar("T")


def on_graph(*, copies: int = 0, rows: int = 0, descends: bool = True) -> Callable[[type[T]], type[T]]:
    """Make a method on a graph of a NamedTuple with ``round(run)``, ``compressor``, ``step`` and ``graph``.

    Between two steps a worker stores ``copies`` vectors for each neighbour and for itself, and ``rows`` others.
    If the method is not a descent method, there are no gradients, and its step size is not used.
    """

    def decorate(cls: type[T]) -> type[T]:
        made: Any = cls
        made.models, made.settled, made.domain = "workers", _settled, _domain
        made.stores, made.descends = (copies, rows), descends
        return cast(type[T], method(made))

    return decorate


def _settled(self: Any, problem: Any) -> Any:
    """The same method, with full precision where there is no compressor."""
    compressor = Identity() if self.compressor is None else self.compressor
    require(
        int(opening(compressor, int(dimension(problem)))) == 0,
        "compressor",
        compressor,
        "on a graph, one whose workers combine nothing before they send: they do not hear all others",
    )
    return self._replace(compressor=compressor)


def _domain(self: Any) -> None:
    """Reject values outside the domain."""
    check_method(self)
    gamma = getattr(self, "gamma", None)
    fitting = isinstance(gamma, (int, float, np.integer, np.floating)) and 0.0 < gamma <= 1.0
    require(gamma is None or fitting, "gamma", gamma, "a number above 0 and at most 1")


def choco_step(gamma: float | None, compressor: Any, W: Mixing, d: int) -> float:
    """The consensus step gamma_c, by default that of CHOCO's theorem."""
    from ... import bounds

    return bounds.choco_gamma(W.gap, W.beta, delta(compressor, d)) if gamma is None else float(gamma)


def stored_bytes(method: Any, workers: int, d: int, own_bits: int) -> int:
    """Bytes that a worker stores between steps: its copies of the neighbours' vectors, and its own vectors.

    The number is that of the worker with the most neighbours.
    """
    copies, rows = method.stores
    heard = int(mixing(method.graph, workers).hears.sum(axis=1).max()) if hasattr(method, "graph") else 0
    return (copies * heard + rows) * d * own_bits // 8


# --- Gossip ----------------------------------------------------------------------------------------------------------


@on_graph(descends=False)
class Gossip(NamedTuple):
    """Averaging of vectors, or of compressed vectors, with neighbours.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of the vector that a worker sends; full precision by default.
    graph : graph
        Who receives whose messages.

    Notes
    -----
    ``run(..., x0=X)`` with one row for each worker gives the vectors.  Boyd, Ghosh, Prabhakar, Shah, "Randomized gossip
    algorithms" (2006); with a compressor, the scheme (Q2-G) of Koloskova, Stich, Jaggi (ICML 2019).

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem, X = th.quadratic(np.ones(2), covariance=0.0), np.arange(8.0).reshape(4, 2)
    >>> result = th.run(Gossip(graph=th.Ring()), problem, workers=4, steps=30, x0=X)
    >>> result.x, result.models[0].round(6)
    (array([3., 4.]), array([3., 4.]))
    """

    compressor: NamedTuple | None = None
    graph: Any = Ring()

    @property
    def step(self) -> Constant:
        """Not used: there are no gradients."""
        return Constant(1.0)

    def round(self, run: Run) -> None:
        """One round; each line is for all workers at once."""
        W, sent_x = run.mixing(self.graph), run.copies("x")
        heard = run.hear(run.compress(self.compressor, run.x), W)  # Q(x_j) of the neighbours
        run.set(sent_x, heard)  # sent_x_j = Q(x_j)
        run.add_to_average(run.x)  # of the iterates
        run.add(run.x, sent_x, weights=W.minus_identity)  # x_i = x_i + sum_j W_ij (sent_x_j - sent_x_i)


@on_graph(copies=1, descends=False)
class ChocoGossip(NamedTuple):
    """Averaging with neighbours by compressed differences, which converges for every contraction.

    Parameters
    ----------
    compressor : compressor, optional
        A contraction, such as ``TopK(10)`` or ``Scaled(QSGD(4), 0.5)``; full precision by default.
    graph : graph
        Who receives whose messages.
    gamma : float, optional
        The consensus step, above 0 and at most 1; by default that of the theorem, ``bounds.choco_gamma``, which is very
        small.

    Notes
    -----
    ``run(..., x0=X)`` with one row for each worker gives the vectors.  Koloskova, Stich, Jaggi, "Decentralized
    stochastic optimization and gossip algorithms with compressed communication" (ICML 2019), Algorithm 1 and Theorem 2.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem, X = th.quadratic(np.ones(2), covariance=0.0), np.arange(8.0).reshape(4, 2)
    >>> result = th.run(ChocoGossip(th.TopK(1), gamma=0.4), problem, workers=4, steps=200, x0=X)
    >>> result.models[0].round(4)
    array([3., 4.])
    """

    compressor: NamedTuple | None = None
    graph: Any = Ring()
    gamma: float | None = None

    @property
    def step(self) -> Constant:
        """Not used: there are no gradients."""
        return Constant(1.0)

    def round(self, run: Run) -> None:
        """One round; each line is for all workers at once."""
        W, p, xhat = run.mixing(self.graph), run.scratch(), run.copies("xhat")
        gamma = choco_step(self.gamma, self.compressor, W, run.d)  # by default the theorem's
        run.set(p, run.x, minus=run.own(xhat))  # p_i = x_i - xhat_i
        heard = run.hear(run.compress(self.compressor, p), W)  # q_j = Q(p_j) of the neighbours
        run.add(xhat, heard)  # xhat_j = xhat_j + q_j
        run.add_to_average(run.x)  # of the iterates
        run.add(run.x, xhat, scale=gamma, weights=W.minus_identity)  # x_i = x_i + gamma sum_j W_ij (xhat_j - xhat_i)


# --- D-PSGD ----------------------------------------------------------------------------------------------------------


@on_graph()
class DPSGD(NamedTuple):
    """Decentralized parallel SGD: a gradient step, and averaging with the neighbours.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of the model that a worker sends, full precision by default.  Errors that do not decrease with the
        distances do not average out; `ChocoSGD` and `DCDPSGD` send differences.
    step : Constant or InverseTime
        Step sizes; required.
    graph : graph
        Who receives whose messages.
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
    2017), Algorithm 1.  Messages are added as x_i + sum_j W_ij (x_j - x_i), so that rounding of the messages does not
    change the mean.

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


# --- Gradient tracking -----------------------------------------------------------------------------------------------


@on_graph(rows=2)
class GradientTracking(NamedTuple):
    """Decentralized SGD along an estimate of the mean gradient, itself averaged by gossip: two messages per step.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of both messages, full precision by default; the theory is about full precision.
    step : Constant or InverseTime
        Step sizes; required.
    graph : graph
        Who receives whose messages.
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
