"""Gossip: every worker has a vector, and all want the mean; each hears only its neighbours.

With messages Q(x_j) one round is, for the mixing matrix W (``Gossip``)::

    every worker j sends Q(x_j) to its neighbours
    x_i = x_i + sum_j W_ij (Q(x_j) - Q(x_i))

The mean stays, but errors that do not shrink with the distances never let them vanish.  CHOCO-Gossip sends differences
to what the neighbours know already, and those do vanish::

    q_j = Q(x_j - xhat_j), which j sends to its neighbours
    xhat_j = xhat_j + q_j, at j and at its neighbours
    x_i = x_i + gamma sum_j W_ij (xhat_j - xhat_i)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .graphs import Ring
from .on_graphs import choco_step, on_graph
from .schedules import Constant
from .types import Run


@on_graph(descends=False)
class Gossip(NamedTuple):
    """Averaging with neighbours, of vectors or of what a compressor leaves of them.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of the vector that a worker sends; full precision by default.
    graph : graph
        Who hears whom.

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
        One that contracts, such as ``TopK(10)`` or ``Scaled(QSGD(4), 0.5)``; full precision by default.
    graph : graph
        Who hears whom.
    gamma : float, optional
        The consensus step, above 0 and at most 1; by default that of the theorem, ``bounds.choco_gamma``, which is
        very cautious.

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
