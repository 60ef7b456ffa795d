"""DASHA: compressed differences with a momentum that needs no whole gradients.

A step, in the notation of the paper::

    h = grad f_i(x), at i
    m_i = Q(h - h_i - a (g_i - h_i)), which i sends
    h_i = h, g_i = g_i + m_i, at i
    g = g + mean m_i, at all
    x = x - eta g
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


@traits(state=("g",), stores=(0, 2))
@method
@traits(theorem=("dasha_step", "1/(L + L~ sqrt(2 omega (2 omega + 1)/N))"), theory_step=step_of_theorem)
class DASHA(NamedTuple):
    """Workers send compressed changes of their gradients, from which errors fade: no round is in full precision.

    Between two steps a worker stores h_i and g_i (``memory_bytes``) and the mean g (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        Unbiased, as for `MARINA`.
    step : Constant or InverseTime
        Step sizes.
    a : float, optional
        Momentum, above 0 and at most 1; by default 1/(1 + 2 omega), that of the theorem.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`.  The theorem is for exact gradients.

    Notes
    -----
    Tyurin, Richtárik, "DASHA: distributed nonconvex optimization with communication compression, optimal oracle
    complexity, and no client synchronization" (ICLR 2023), Algorithm 1, from g_i = h_i = 0;
    :func:`theory.bounds.dasha_rate` is its rate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(DASHA(th.Identity(), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0.25, 0.25, 0.25, 0.25])
    """

    compressor: NamedTuple
    step: NamedTuple
    a: float | Any = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, new, h_i, g_i, g = run.scratch(), run.rows("new"), run.rows("h"), run.rows("g"), run.vector("g")
        run.add_to_average(run.x)  # of the iterates
        run.set_gradient(new, at=run.x)  # h = grad f_i(x)
        run.set(p, new, minus=h_i)
        run.add(p, g_i, scale=-self.a)
        run.add(p, h_i, scale=self.a)  # p = h - h_i - a (g_i - h_i)
        message = run.compress(self.compressor, p)  # m_i = Q(p)
        run.set(h_i, new)  # h_i = h
        run.add(g_i, message)  # g_i = g_i + m_i
        run.add(g, run.gather(message))  # g = g + mean m_i
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g

    def settled(self, problem: Any) -> DASHA:
        """The same method with the momentum of the theorem, if none is given."""
        a = 1.0 / (1.0 + 2.0 * omega(self.compressor, int(dimension(problem)))) if self.a is None else self.a
        return self._replace(a=a)

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_share("a", self.a)

    def longest_step(self, problem: Any, workers: int) -> float:
        """The step of the theorem, without convexity."""
        f, w, N = theorem_constants(self, problem, workers)
        covered(abs(self.a * (1.0 + 2.0 * w) - 1.0) <= ROUNDING, f"a = {self.a:g} in place of 1/(1 + 2 omega)")
        return bounds.dasha_step(f.lipschitz, omega=w, workers=N, quadratic=f.quadratic)
