"""DCGD and DIANA: unbiased compressed gradients, as they are or as differences from shifts that learn.

A step of DIANA, in the notation of the paper; DCGD is the same with h_i = 0::

    m_i = Q(grad f_i(x) - h_i), which i sends
    x = x - eta (h + mean m_i)
    h_i = h_i + alpha m_i, at i
    h = h + alpha mean m_i, at all
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import bounds
from ..compressors.closed_forms import omega
from ..core import traits
from ..problems.base import dimension
from .custom import check_method, check_share, method
from .sampling import Split
from .theory_steps import covered
from .types import Run
from .unbiased_steps import ROUNDING, step_of_theorem, theorem_constants


@method
@traits(theorem=("dcgd_step", "1/(L + 2 omega L_max/N)"), theory_step=step_of_theorem)
@traits(convex=True, gradients="noise")
class DCGD(NamedTuple):
    """Compressed gradients without shifts or memories: the baseline of methods that send differences.

    It is `ParallelSGD` without feedback; where the workers' gradients at the minimum are not 0, a constant step stays
    at a distance from it.

    Parameters
    ----------
    compressor : compressor
        Unbiased, such as ``QSGD(3)``.
    step : Constant or InverseTime
        Step sizes.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`.

    Notes
    -----
    :func:`theory.bounds.dcgd_rate` is its rate; Khirirat, Feyzmahdavian, Johansson, "Distributed learning with
    compressed gradients" (2018).

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(DCGD(th.Identity(), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0.25, 0.25, 0.25, 0.25])
    """

    compressor: NamedTuple
    step: NamedTuple
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p = run.scratch()
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(p, at=run.x)  # grad f_i(x)
        received = run.gather(run.compress(self.compressor, p))  # m_i = Q(grad f_i(x)) of all
        run.add(run.x, received, scale=-run.eta)  # x = x - eta mean m_i

    def longest_step(self, problem: Any, workers: int) -> float:
        """The step of the theorem."""
        f, w, N = theorem_constants(self, problem, workers)
        return bounds.dcgd_step(f.lipschitz, omega=w, workers=N, largest=f.largest)


@traits(state=("h",), stores=(0, 1))
@method
@traits(theorem=("diana_step", "1/(L + 6 omega L_max/N)"), theory_step=step_of_theorem)
@traits(convex=True, gradients="noise")
class DIANA(NamedTuple):
    """Workers send the compressed difference between their gradient and a shift, which learns where it tends to.

    Between two steps a worker stores h_i (``memory_bytes``) and their mean h (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        Unbiased, such as ``QSGD(3)``.
    step : Constant or InverseTime
        Step sizes.
    alpha : float, optional
        How fast shifts learn, above 0 and at most 1; by default 1/(1 + omega), the longest of the theorem.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`; with noise the method tends to a floor.

    Notes
    -----
    Mishchenko, Gorbunov, Takáč, Richtárik, "Distributed learning with compressed gradient differences" (2019),
    Algorithm 1 without momentum or regularizer; :func:`theory.bounds.diana_rate` is its rate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(DIANA(th.Identity(), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0.25, 0.25, 0.25, 0.25])
    """

    compressor: NamedTuple
    step: NamedTuple
    alpha: float | Any = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, h_i, h = run.scratch(), run.rows("h"), run.vector("h")
        run.add_to_average(run.x)  # of the iterates
        run.set(p, h_i, scale=-1.0)
        run.add_gradient(p, at=run.x)  # p = grad f_i(x) - h_i
        message = run.compress(self.compressor, p)  # m_i = Q(p)
        received = run.gather(message)
        run.add(run.x, h, scale=-run.eta)
        run.add(run.x, received, scale=-run.eta)  # x = x - eta (h + mean m_i)
        run.add(h_i, message, scale=self.alpha)  # h_i = h_i + alpha m_i
        run.add(h, received, scale=self.alpha)  # h = h + alpha mean m_i

    def settled(self, problem: Any) -> DIANA:
        """The same method with the shifts' learning rate of the theorem, if none is given."""
        alpha = 1.0 / (1.0 + omega(self.compressor, int(dimension(problem)))) if self.alpha is None else self.alpha
        return self._replace(alpha=alpha)

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_share("alpha", self.alpha)

    def longest_step(self, problem: Any, workers: int) -> float:
        """The step of the theorem, for alpha up to 1/(1 + omega)."""
        f, w, N = theorem_constants(self, problem, workers)
        covered(self.alpha * (1.0 + w) <= 1.0 + ROUNDING, f"alpha = {self.alpha:g} above 1/(1 + omega)")
        return bounds.diana_step(f.lipschitz, omega=w, workers=N, largest=f.largest)
