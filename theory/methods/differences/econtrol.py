"""EControl: differences with a part of the error, between error feedback and EF21.

One step, in the notation of the paper::

    D_i = C(eta e_i + grad f_i(x, xi) - h_i), which i sends
    e_i = e_i + grad f_i(x, xi) - h_i - D_i, at i
    h_i = h_i + D_i, at i
    h = h + mean D_i, at all
    x = x - gamma h
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import bounds
from ...compressors.closed_forms import delta
from ...core import traits
from ...problems.base import dimension
from ..custom import check_method, check_share, method
from ..gradients import Split
from ..theory_steps import covered
from ..types import Run
from .steps import Difference, longest_step, step_of_theorem, worker_constants


@traits(state=("e", "h"), stores=(0, 2), listed=True, longest_step=longest_step)
@method
@traits(theory_step=step_of_theorem)
class EControl(NamedTuple):
    """EF21 whose messages contain a part of the error, so that noise is averaged as by error feedback.

    Between two steps a worker stores e_i and h_i (``memory_bytes``) and the mean h of these (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        One that contracts, such as ``TopK(10)``.
    step : Constant or InverseTime
        Step sizes; :func:`theory.bounds.difference_step` with :func:`theory.bounds.econtrol_decay` has those of a
        theorem for exact gradients.
    control : float, optional
        eta, the part of the error, above 0 and at most 1; by default delta/(2 (1 + sqrt(1 - delta))^2).
    batch : int or GrowingBatch
        Gradients that each worker averages in a step, as in `EF21`.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Gao, Islamov, Stich, "EControl: fast distributed optimization with compression and error control" (ICLR 2024), from
    e_i = h_i = 0, from memory.  Its rate as quoted, without constants: with eta of the order of delta, L F_0
    (sigma^2/(N eps^2) + sigma/(delta^2 eps^(3/2)) + 1/(delta eps)) rounds until E||grad f||^2 <= eps, F_0 = f(x_0) -
    f*.  :func:`theory.bounds.feedback_floor` is its exact noise floor on a quadratic.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(EControl(th.TopK(2), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0. , 0. , 0.5, 0.5])
    """

    compressor: NamedTuple
    step: NamedTuple
    control: float | Any = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, e, known, h = run.scratch(), run.rows("e"), run.rows("known"), run.vector("h")
        run.add_to_average(run.x)  # of the iterates
        run.set(p, known, scale=-1.0)
        run.add_gradient(p, at=run.x)  # p = gradient at x - h_i
        run.add(p, e, scale=self.control)  # p = eta e_i + gradient at x - h_i
        message = run.compress(self.compressor, p)  # D_i = C(p)
        run.scale(e, 1.0 - self.control)
        run.add(e, p)
        run.add(e, message, scale=-1.0)  # e_i = e_i + gradient at x - h_i - D_i
        run.add(known, message)  # h_i = h_i + D_i
        run.add(h, run.gather(message))  # h = h + mean D_i
        run.add(run.x, h, scale=-run.eta)  # x = x - gamma h

    def settled(self, problem: Any) -> EControl:
        """The same method with the default part of the error, if none is given."""
        if self.control is not None:
            return self
        kept = float(delta(self.compressor, int(dimension(problem))))
        return self._replace(control=kept / (2.0 * (1.0 + (1.0 - kept) ** 0.5) ** 2))

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_share("control", self.control)

    def differences(self, problem: Any, workers: int) -> Difference:
        """The theorem of the method on this problem."""
        f, kept = worker_constants(self, problem, workers), float(delta(self.compressor, int(dimension(problem))))
        q, eta = (1.0 - kept) ** 0.5, self.settled(problem).control
        covered(eta < (1.0 - q) / (1.0 + q), f"control = {eta:g}, not below (1 - q)/(1 + q) = {(1 - q) / (1 + q):.4g}")
        decay = bounds.econtrol_decay(kept, eta)
        return Difference(q / decay, decay, f.lipschitz, f.quadratic, f.mu)
