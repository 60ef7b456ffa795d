"""EF21, EF21 with momentum, EF-BV, CLAG and LAG: workers send compressed differences.

EF21 sends the compressed difference between a worker's gradient and its estimate g_i. One step, in the notation of the
paper::

    c_i = C(grad f_i(x) - g_i), which i sends
    g_i = g_i + c_i, at i
    g = g + mean c_i, at all
    x = x - gamma g

With momentum the gradient is replaced by v_i, its running mean over the steps::

    v_i = (1 - a) v_i + a grad f_i(x, xi)

EF-BV has one factor for the memory and one for the step; EF21 and DIANA are special cases.

One step, in the notation of the paper::

    d_i = C(grad f_i(x) - h_i), which i sends
    x = x - gamma (h + nu mean d_i)
    h_i = h_i + lambda d_i, at i
    h = h + lambda mean d_i, at all

In CLAG and LAG a worker sends only if its gradient differs enough from its estimate g_i.  One step, in the notation of
the paper::

    c_i = C(grad f_i(x) - g_i), which i sends, if ||grad f_i(x) - g_i||^2 > zeta ||grad f_i(x) - grad f_i(x')||^2, x'
    the model before; else nothing, c_i = 0
    g_i = g_i + c_i, at i
    g = g + mean c_i, at all
    x = x - gamma g
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...compressors.full_precision import Identity
from ...compressors.wrappers.forward import SkipZero
from ...core import require, traits
from ..custom import check_method, method
from ..gradients import Split
from ..types import Run
from .steps import Difference, difference, factors_of, longest_step, step_of_theorem

# --- EF21, and EF21 with momentum ------------------------------------------------------------------------------------


@traits(state=("g",), stores=(0, 1), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class EF21(NamedTuple):
    """Workers send compressed changes of their gradients; x moves along the resulting estimates of the gradients.

    Between two steps a worker stores g_i (``memory_bytes``) and their mean g (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        A contraction, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes; the theorem has :func:`theory.bounds.difference_step`.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step; with noise the error tends to a floor, see `EF21SGDM`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Richtárik, Sokolov, Fatkhullin, "EF21: a new, simpler, theoretically better, and practically faster error feedback"
    (NeurIPS 2021), Algorithm 2, started with g_i = 0; :func:`theory.bounds.exact_feedback_rate` is its exact rate.

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
        """The theorem of the method on this problem."""
        return difference(self, problem, workers, momentum=1.0)


@traits(state=("g",), stores=(0, 2), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class EF21SGDM(NamedTuple):
    """EF21 with momentum before compression, which averages the gradient noise that gives EF21 a floor.

    Between two steps a worker stores v_i and g_i (``memory_bytes``) and the mean g of these (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        A contraction, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes; the theorem has :func:`theory.bounds.ef21_momentum_step`.
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
        """The theorem of the method on this problem."""
        return difference(self, problem, workers, momentum=self.momentum)


# --- EF-BV -----------------------------------------------------------------------------------------------------------


@traits(state=("h",), stores=(0, 1), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem, takes_unbiased=True)
class EFBV(NamedTuple):
    """Workers add lambda C(p) to their memory, p being gradient minus memory; x moves along memory plus nu C(p).

    lambda = nu = 1 is EF21; nu = 1 with an unbiased compressor and lambda <= 1/(1 + omega) is DIANA.  Between two steps
    a worker stores h_i (``memory_bytes``) and their mean h (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        One that contracts, or an unbiased one.
    step : Constant or InverseTime
        Step sizes; the theorem has :func:`theory.bounds.difference_step` with :func:`theory.bounds.ef_bv_ratio`.
    lam, nu : float, optional
        lambda and nu, in (0, 1]; by default the optimal ones of the theorem, :func:`theory.bounds.ef_bv_factor`.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step, as in `EF21`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Condat, Yi, Richtárik, "EF-BV: a unified theory of error feedback and variance reduction mechanisms for biased and
    unbiased compression in distributed optimization" (NeurIPS 2022), Algorithm 1, without a proximal step, from h_i =
    0.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(EFBV(th.TopK(2), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x  # as EF21
    array([0. , 0. , 0.5, 0.5])
    """

    compressor: NamedTuple
    step: NamedTuple
    lam: float | None = None
    nu: float | None = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, own, h = run.scratch(), run.rows("own"), run.vector("h")
        lam, nu = run.once("factors", lambda: factors_of(self, run.d, run.workers))
        run.add_to_average(run.x)  # of the iterates
        run.set(p, own, scale=-1.0)
        run.add_gradient(p, at=run.x)  # p = gradient at x - h_i
        message = run.compress(self.compressor, p)  # d_i = C(p)
        received = run.gather(message)  # d = mean d_i
        run.add(run.x, h, scale=-run.eta)
        run.add(run.x, received, scale=-nu * run.eta)  # x = x - eta (h + nu d)
        run.add(own, message, scale=lam)  # h_i = h_i + lambda d_i
        run.add(h, received, scale=lam)  # h = h + lambda d

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        for name in ("lam", "nu"):
            value = getattr(self, name)
            fitting = value is None or (isinstance(value, (int, float)) and 0.0 < value <= 1.0)
            require(fitting, name, value, "a number above 0, up to 1, or None for the best")

    def differences(self, problem: Any, workers: int) -> Difference:
        """The theorem of the method on this problem."""
        return difference(self, problem, workers, factors=factors_of(self, problem.d, workers))


# --- CLAG and LAG ----------------------------------------------------------------------------------------------------


@traits(state=("g",), stores=(0, 3), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class CLAG(NamedTuple):
    """EF21 in which a worker sends only if its gradient has changed enough; in full precision it is LAG.

    A silent worker sends one bit (`SkipZero`).  Between two steps a worker stores its gradient, and g_i
    (``memory_bytes``), and their mean g (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        A contraction, such as ``TopK(10)``; full precision, the default, is LAG.
    step : Constant or InverseTime
        Step sizes; the theorem has :func:`theory.bounds.difference_step` with :func:`theory.bounds.clag_ratio`.
    trigger : float
        zeta, at least 0; 0 is EF21. In the first step all workers send.
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
        """The theorem of the method on this problem."""
        return difference(self, problem, workers, trigger=self.trigger)
