"""DCGD, DIANA and QSVRG: unbiased compressed gradients and differences.

DCGD compresses gradients, DIANA their differences from shifts that are learned. A step of DIANA, in the notation of the
paper (DCGD is the same with h_i = 0)::

    m_i = Q(grad f_i(x) - h_i), which i sends
    x = x - gamma (h + mean m_i)
    h_i = h_i + alpha m_i, at i
    h = h + alpha mean m_i, at all

QSVRG sends compressed variance-reduced gradients, in epochs.

An epoch of T steps, in the notation of the paper::

    h = grad f(y)                                  in full precision: each worker sends its part
    T steps from x = y, in each of which every worker draws a row j and
        sends Q(grad f_j(x) - grad f_j(y) + h)
        x = x - gamma (mean of the messages)
    y = mean of the T iterates
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import bounds
from ...compressors.closed_forms import omega
from ...compressors.full_precision import Identity
from ...core import require, traits
from ...core.arguments import whole_number
from ...problems.base import dimension
from ...problems.constants import max_lipschitz, strong_convexity
from ..custom import check_method, check_share, method
from ..gradients import Split
from ..theory_steps import covered
from ..types import Run, Vector
from .steps import ROUNDING, theorem_constants
from .steps import unbiased_step_of_theorem as step_of_theorem

# --- DCGD and DIANA --------------------------------------------------------------------------------------------------


@method
@traits(theorem=("dcgd_step", "1/(L + 2 omega L_max/N)"), theory_step=step_of_theorem)
@traits(convex=True, gradients="noise")
class DCGD(NamedTuple):
    """Compressed gradients without shifts or memories: the baseline of methods that send differences.

    It is `ParallelSGD` without feedback; if the workers' gradients at the minimum are not 0, a constant step ends at a
    distance from it.

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
    """Workers send the compressed difference between their gradient and a shift, which learns the gradient's limit.

    Between two steps a worker stores h_i (``memory_bytes``) and their mean h (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        Unbiased, such as ``QSGD(3)``.
    step : Constant or InverseTime
        Step sizes.
    alpha : float, optional
        Learning rate of the shifts, above 0 and at most 1; by default 1/(1 + omega), the largest of the theorem.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`; with noise the error tends to a floor.

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


# --- QSVRG -----------------------------------------------------------------------------------------------------------

FULL = Identity()


@traits(state=("y", "h"), stores=(0, 0), listed=False, one_by_one=True)
@method
@traits(theorem=("qsvrg_step", "1/(10 (1 + omega) L)"), theory_step=step_of_theorem)
@traits(convex=True, gradients="rows")
class QSVRG(NamedTuple):
    """Stochastic variance-reduced gradients, quantized without bias.

    Parameters
    ----------
    compressor : compressor
        Unbiased; the theorem has ``QSGD(ceil(sqrt(d)))``.
    step : Constant
        The step size; the theorem has :func:`theory.bounds.qsvrg_step`.
    inner : int
        T, the steps of an epoch; 0 for those of the theorem, :func:`theory.bounds.qsvrg_inner`.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`; the average must be "last".

    Notes
    -----
    The paper of `QSGD`, section 3.2; :func:`theory.bounds.qsvrg_factor` is the factor of an epoch.  At the end of an
    epoch the result is the mean of its iterates, the next y; within an epoch it is the last iterate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.ridge((np.eye(4), np.ones(4)), l2=1.0)
    >>> result = th.run(QSVRG(th.QSGD(2), th.Constant(0.1), inner=50), problem, workers=2, steps=500)
    >>> bool(result.history["gradient_norm"][-1] < 1e-3)
    True
    """

    compressor: NamedTuple
    step: NamedTuple
    inner: int = 0
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, y, h, mean = run.scratch(), run.vector("y"), run.vector("h"), run.vector("mean")
        if run.every(self.inner):  # an epoch begins
            run.set(y, run.x if run.first else mean)
            run.set_full_gradient(p, at=y)
            run.set(h, run.reduce(run.compress(FULL, p, phase="full", reduce=True)))  # h = grad f(y)
            run.set(run.x, y)  # x = y
            run.set(mean, 0.0)
        run.add(mean, run.x, scale=1.0 / self.inner)  # of the iterates, the next y
        run.set_gradient(p, at=run.x)
        run.add_gradient(p, at=y, scale=-1.0, same_batch=True)
        run.add(p, h)  # p = grad f_j(x) - grad f_j(y) + h
        run.add(run.x, run.gather(run.compress(self.compressor, p)), scale=-run.eta)  # x = x - eta mean Q(p)

    def result(self, run: Run) -> Vector:
        """The mean of the iterates of the epoch that ends, or else the last one."""
        return run.vector("mean") if run.every(self.inner) and not run.first else run.x

    def settled(self, problem: Any) -> QSVRG:
        """The same method with the theorem's number of steps in an epoch, if none is given."""
        if self.inner:
            return self
        mu = strong_convexity(problem)
        require(mu > 0.0, "inner", 0, "a number of steps, as the problem is not strongly convex")
        w = omega(self.compressor, int(dimension(problem)))
        return self._replace(inner=bounds.qsvrg_inner(max_lipschitz(problem), mu, w))

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        whole_number("inner", self.inner, low=0)

    def longest_step(self, problem: Any, workers: int) -> float:
        """The step of the theorem."""
        return bounds.qsvrg_step(max_lipschitz(problem), omega(self.compressor, int(dimension(problem))))
