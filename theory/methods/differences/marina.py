"""MARINA, VR-MARINA and DASHA: compressed differences of gradients at two points.

MARINA and VR-MARINA send whole gradients in some rounds. A step, in the notation of the paper, with one random choice
for all workers::

    with probability p: g = mean grad f_i(x), in full precision
    otherwise:          g = g + mean Q(grad f_i(x) - grad f_i(y)), where y is the previous x
    x = x - gamma g

In VR-MARINA the first line uses all rows of a worker, the second a batch, the same at both points.

DASHA has a momentum in place of rounds with whole gradients.

A step, in the notation of the paper::

    h = grad f_i(x), at i
    m_i = Q(h - h_i - a (g_i - h_i)), which i sends
    h_i = h, g_i = g_i + m_i, at i
    g = g + mean m_i, at all
    x = x - gamma g
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import bounds
from ...compressors.closed_forms import omega
from ...compressors.full_precision import Identity
from ...core import require, traits
from ...problems.base import dimension, rows
from ...problems.constants import max_lipschitz
from ..custom import check_method, check_share, method
from ..gradients import Split
from ..theory_steps import covered
from ..types import Run
from .steps import ROUNDING, theorem_constants
from .steps import unbiased_step_of_theorem as step_of_theorem

# --- MARINA and VR-MARINA --------------------------------------------------------------------------------------------

FULL = Identity()


@traits(state=("g", "before"), stores=(0, 0), listed=False, one_by_one=True)
@method
@traits(theorem=("marina_step", "1/(L + L~ sqrt((1 - p) omega/(p N)))"), theory_step=step_of_theorem)
class MARINA(NamedTuple):
    """Workers send compressed changes of their gradients, and with probability p the gradients themselves.

    Parameters
    ----------
    compressor : compressor
        Unbiased, such as ``QSGD(3)``, ``PermK()`` or ``RandK(10, unbiased=True, shared=True)``.
    step : Constant or InverseTime
        Step sizes.
    p : float, optional
        Probability of a round in full precision, above 0 and at most 1; by default 1/(1 + omega), which for rand-k is
        the fraction k/d. The first round is in full precision.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`.  The theorem is for exact gradients: see `VRMARINA`.

    Notes
    -----
    Gorbunov, Burlachenko, Li, Richtárik, "MARINA: faster non-convex distributed learning with compression" (ICML 2021),
    Algorithm 1; :func:`theory.bounds.marina_rate` is its rate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> th.run(MARINA(th.PermK(), th.Constant(0.5)), problem, workers=2, steps=2, x0=np.ones(4)).x
    array([0.25, 0.25, 0.25, 0.25])
    """

    compressor: NamedTuple
    step: NamedTuple
    p: float | Any = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, g, y = run.scratch(), run.vector("g"), run.vector("before")
        run.add_to_average(run.x)  # of the iterates
        if run.coin(self.p) or run.first:
            run.set_gradient(p, at=run.x)
            run.set(g, run.reduce(run.compress(FULL, p, phase="full", reduce=True)))  # g = mean grad f_i(x)
        else:
            run.set_gradient(p, at=run.x)
            run.add_gradient(p, at=y, scale=-1.0, same_batch=True)  # p = grad f_i(x) - grad f_i(y)
            run.add(g, run.gather(run.compress(self.compressor, p)))  # g = g + mean Q(p)
        run.set(y, run.x)  # y = x
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g

    def settled(self, problem: Any) -> Any:
        """The same method with the probability of the paper, if none is given."""
        chance = 1.0 / (1.0 + omega(self.compressor, int(dimension(problem)))) if self.p is None else self.p
        return self._replace(p=chance)

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_share("p", self.p)

    def longest_step(self, problem: Any, workers: int) -> float:
        """The step of the theorem, without convexity."""
        f, w, N = theorem_constants(self, problem, workers)
        return bounds.marina_step(f.lipschitz, p=self.p, omega=w, workers=N, quadratic=f.quadratic)


@traits(state=("g", "before"), stores=(0, 0), listed=False, one_by_one=True)
@method
@traits(
    theorem=("marina_step", "1/(L + sqrt((1 - p)/(p N) (omega L~^2 + (1 + omega) l^2/B)))"),
    theory_step=step_of_theorem,
    gradients="rows",
)
class VRMARINA(NamedTuple):
    """MARINA with batches: the gradients of all rows with probability p, otherwise the change of a batch's gradients.

    Parameters
    ----------
    compressor : compressor
        Unbiased, as for `MARINA`.
    step : Constant or InverseTime
        Step sizes.
    p : float, optional
        Probability of a round with all rows; by default the smaller of 1/(1 + omega) and B/(B + m), for batches of B
        and m = n/N rows of a worker. The first round uses all rows.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`.

    Notes
    -----
    The paper of `MARINA`, Algorithm 2; :func:`theory.bounds.marina_rate` is its rate.  The history counts the gradients
    of both points, and of all rows.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.ridge((np.eye(4), np.ones(4)), l2=0.0)
    >>> result = th.run(VRMARINA(th.RandK(2, True), th.Constant(1.0), p=0.5), problem, workers=2, steps=200)
    >>> bool(result.fun < 1e-6)
    True
    """

    compressor: NamedTuple
    step: NamedTuple
    p: float | Any = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, g, y = run.scratch(), run.vector("g"), run.vector("before")
        run.add_to_average(run.x)  # of the iterates
        if run.coin(run.once("p", lambda: self.chance(run.problem, run.workers))) or run.first:
            run.set_full_gradient(p, at=run.x, no_batch=True)  # of all rows
            run.set(g, run.reduce(run.compress(FULL, p, phase="full", reduce=True)))  # g = mean grad f_i(x)
        else:
            run.set_gradient(p, at=run.x)  # of a batch
            run.add_gradient(p, at=y, scale=-1.0, same_batch=True)  # p = grad f_ij(x) - grad f_ij(y)
            run.add(g, run.gather(run.compress(self.compressor, p)))  # g = g + mean Q(p)
        run.set(y, run.x)  # y = x
        run.add(run.x, g, scale=-run.eta)  # x = x - eta g

    def chance(self, problem: Any, workers: int) -> float:
        """The probability of a round with all rows."""
        if self.p is not None:
            return self.p
        batches = int(rows(problem)) / workers / self._rows_of_a_batch()
        return 1.0 / (1.0 + max(omega(self.compressor, int(dimension(problem))), batches))

    def _rows_of_a_batch(self) -> int:
        require(isinstance(self.batch, int), "batch", self.batch, "an integer, unless p is given")
        return int(self.batch)  # type: ignore[arg-type]

    def domain(self) -> None:
        """Reject values outside the domain."""
        MARINA.domain(self)  # type: ignore[arg-type]

    def longest_step(self, problem: Any, workers: int) -> float:
        """The step of the theorem, without convexity."""
        f, w, N = theorem_constants(self, problem, workers)
        known: dict = {"p": self.chance(problem, workers), "omega": w, "workers": N, "quadratic": f.quadratic}
        return bounds.marina_step(f.lipschitz, **known, rows=max_lipschitz(problem), batch=self._rows_of_a_batch())


# --- DASHA -----------------------------------------------------------------------------------------------------------


@traits(state=("g",), stores=(0, 2))
@method
@traits(theorem=("dasha_step", "1/(L + L~ sqrt(2 omega (2 omega + 1)/N))"), theory_step=step_of_theorem)
class DASHA(NamedTuple):
    """Workers send compressed changes of their gradients with a momentum, so that no round is in full precision.

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
