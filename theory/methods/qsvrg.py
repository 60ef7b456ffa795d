"""QSVRG: variance-reduced gradients in compressed messages, in epochs.

In the notation of the paper, for an epoch of T steps::

    h = grad f(y)                                  in full precision: each worker sends its part
    T steps from x = y, in each of which every worker draws a row j and
        sends Q(grad f_j(x) - grad f_j(y) + h)
        x = x - eta (mean of the messages)
    y = mean of the T iterates
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import bounds
from ..compressors.closed_forms import omega
from ..compressors.identity import Identity
from ..core import require, traits
from ..core.arguments import whole_number
from ..problems.base import dimension
from ..problems.constants import max_lipschitz, strong_convexity
from .custom import check_method, method
from .sampling import Split
from .types import Run, Vector
from .unbiased_steps import step_of_theorem

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
        Without bias; ``QSGD(ceil(sqrt(d)))`` is the theorem's.
    step : Constant
        The step size; :func:`theory.bounds.qsvrg_step` is the theorem's.
    inner : int
        T, the steps of an epoch; 0 for those of the theorem, :func:`theory.bounds.qsvrg_inner`.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`; the average is the last.

    Notes
    -----
    The paper of `QSGD`, section 3.2; :func:`theory.bounds.qsvrg_factor` is the factor of an epoch.  At the end of an
    epoch the result is its mean, the next y, and within an epoch the last iterate.

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
        """The same method with the theorem's steps in an epoch, if none are given."""
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
