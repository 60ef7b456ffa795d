"""CHOCO-SGD, DCD-PSGD and ECD-PSGD: compressed messages between neighbours.

CHOCO-SGD takes a gradient step, then CHOCO-Gossip with compressed differences of the models.  One step, in the notation
of the paper::

    x_i = x_i - gamma g_i,  g_i a stochastic gradient at x_i
    q_j = Q(x_j - xhat_j), which j sends to its neighbours
    xhat_j = xhat_j + q_j, at j and at its neighbours
    x_i = x_i + gamma_c sum_j W_ij (xhat_j - xhat_i)

In DCD-PSGD and ECD-PSGD messages are compressed without bias.  DCD sends the difference of a model to its predecessor,
and the model becomes what the neighbours decode::

    z_i = sum_j W_ij x_j - gamma g_i - x_i
    x_i = x_i + C(z_i), at i and at its neighbours

ECD sends an extrapolation, from which the neighbours estimate the model with errors that decrease like 1/t::

    x_i' = sum_j W_ij xhat_j - gamma g_i,  g_i a stochastic gradient at x_i
    z_i = (1 - t/2) x_i + (t/2) x_i'
    xhat_i = (1 - 2/t) xhat_i + (2/t) C(z_i), at i and at its neighbours
    x_i = x_i'
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..gradients import Split
from ..schedules import InverseTime
from ..types import Run
from .gossip import choco_step, on_graph
from .weights import Ring

# --- CHOCO-SGD -------------------------------------------------------------------------------------------------------


@on_graph(copies=1)
class ChocoSGD(NamedTuple):
    """Decentralized SGD with compressed differences, which converges for every contraction.

    Parameters
    ----------
    compressor : compressor, optional
        A contraction, such as ``TopK(10)`` or ``Scaled(QSGD(4), 0.5)``; full precision by default.
    step : Constant or InverseTime
        Step sizes; required.
    graph : graph
        Who receives whose messages.
    gamma : float, optional
        The consensus step, above 0 and at most 1; by default that of the theorem, ``bounds.choco_gamma``, which is very
        small. ``bounds.choco_best_gamma`` finds the best one for random sparsification.
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


# --- DCD-PSGD and ECD-PSGD -------------------------------------------------------------------------------------------


@on_graph(copies=1)
class DCDPSGD(NamedTuple):
    """Difference-compressed D-PSGD.

    It diverges if the compressor's relative error is too large for the graph: see ``bounds.dcd_threshold``.

    Parameters
    ----------
    compressor : compressor, optional
        Unbiased; full precision by default. The theorem requires a small error.
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
    Neighbours know all models at the start.  Tang, Gan, Zhang, Zhang, Liu, "Communication compression for decentralized
    training" (NeurIPS 2018), Algorithm 1.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = DCDPSGD(th.Identity(), th.Constant(0.5), shards="shared")
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
        W, z, x = run.mixing(self.graph), run.scratch(), run.copies("x", run.start)
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(z, at=run.x, scale=-run.eta)  # z_i = -eta g_i
        run.add(z, x, weights=W.minus_identity)  # z_i = sum_j W_ij x_j - eta g_i - x_i
        run.add(x, run.hear(run.compress(self.compressor, z), W))  # x_j = x_j + C(z_j)
        run.set(run.x, run.own(x))


@on_graph(copies=1)
class ECDPSGD(NamedTuple):
    """Extrapolation-compressed D-PSGD.

    The theorem requires a compression error that does not grow with the vector. The error of quantizers such as QSGD
    and NUQSGD is proportional to the vector, and z grows like t: see ``bounds.ecd_error``.

    Parameters
    ----------
    compressor : compressor, optional
        Unbiased, such as ``NUQSGD(4)`` or ``QSGD(4)``; full precision by default.
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
    Neighbours know all models at the start.  Tang, Gan, Zhang, Zhang, Liu, "Communication compression for decentralized
    training" (NeurIPS 2018), Algorithm 2; with NUQSGD, Algorithm 3 of Ramezani-Kebrya, Faghri, Markov, Aksenov,
    Alistarh, Roy, "NUQSGD: Provably communication-efficient data-parallel SGD via nonuniform quantization" (JMLR 2021).

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = ECDPSGD(th.Identity(), th.Constant(0.5), shards="shared")
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
        """One step, t = 1, 2, ...; each line is for all workers at once."""
        W, z, xhat = run.mixing(self.graph), run.scratch(), run.copies("xhat", run.start)
        new, share = run.rows("x'"), run.once("2/t", lambda: run.rates.steps(InverseTime(2.0, 1.0)))
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(new, at=run.x, scale=-run.eta)  # x_i' = -eta g_i
        run.add(new, run.own(xhat))  # x_i' = xhat_i - eta g_i
        run.add(new, xhat, weights=W.minus_identity)  # x_i' = sum_j W_ij xhat_j - eta g_i
        run.set(z, run.x, scale=1.0 - 1.0 / share)
        run.add(z, new, scale=1.0 / share)  # z_i = (1 - t/2) x_i + (t/2) x_i'
        heard = run.hear(run.compress(self.compressor, z), W)  # C(z_j) of the neighbours
        run.add(xhat, heard, keep=1.0 - share, scale=share)  # xhat_j = (1 - 2/t) xhat_j + (2/t) C(z_j)
        run.set(run.x, new)  # x_i = x_i'
