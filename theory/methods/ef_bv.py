"""EF-BV: compressed differences with one factor for what is learnt and one for what is used; EF21 and DIANA in one.

One step, in the notation of the paper::

    d_i = C(grad f_i(x) - h_i), which i sends
    x = x - eta (h + nu mean d_i)
    h_i = h_i + lambda d_i, at i
    h = h + lambda mean d_i, at all
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import require, traits
from .custom import check_method, method
from .difference_steps import Difference, difference, factors_of, longest_step, step_of_theorem
from .sampling import Split
from .types import Run


@traits(state=("h",), stores=(0, 1), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem, takes_unbiased=True)
class EFBV(NamedTuple):
    """Workers learn lambda C(p) of the difference p between gradient and memory; x moves by memory and nu C(p).

    lambda = nu = 1 is EF21; nu = 1 with an unbiased compressor and lambda <= 1/(1 + omega) is DIANA.  Between two steps
    a worker stores h_i (``memory_bytes``) and their mean h (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        One that contracts, or an unbiased one.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.difference_step` with :func:`theory.bounds.ef_bv_ratio` has those of the
        theorem.
    lam, nu : float, optional
        lambda and nu, in (0, 1]; by default the best of the theorem, :func:`theory.bounds.ef_bv_factor`.
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
        """What its theorem says of the method on this problem."""
        return difference(self, problem, workers, factors=factors_of(self, problem.d, workers))
