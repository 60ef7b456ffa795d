"""ProxSkip for federated learning, Scaffnew: local steps with control variates, and rounds that are skipped at random.

A step, in the notation of the paper, with one random choice for all workers::

    x_i = x_i - gamma (grad f_i(x_i) - h_i)
    with probability p: x = mean x_i, h_i = h_i + p/gamma (x - x_i), x_i = x
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...compressors.full_precision import Identity
from ...core import require, traits
from ...problems.constants import strong_convexity
from ..custom import check_method, check_share, method
from ..differences.steps import unbiased_step_of_theorem as step_of_theorem
from ..differences.steps import worker_constants
from ..gradients import Split
from ..schedules import step_size
from ..types import Run

FULL = Identity()


@method
@traits(stores=(0, 1), models="workers", listed=False, one_by_one=True, compressor=FULL)
@traits(theorem=("prox_skip_step", "1/L_max"), convex=True, theory_step=step_of_theorem)
class ProxSkip(NamedTuple):
    """Local steps corrected by control variates, with communication with probability p.

    Every worker has its own model, and stores h_i between two steps.  The history counts the rounds in which workers
    communicate, in full precision.

    Parameters
    ----------
    step : Constant or InverseTime
        Step sizes.
    p : float, optional
        Probability of communication, above 0 and at most 1; by default sqrt(gamma mu) with the mu of f; the theorem has
        the smallest mu of the f_i.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`; the result is the mean of the workers' models, which have equal weights, independent of
        their numbers of rows.

    Notes
    -----
    Mishchenko, Malinovsky, Stich, Richtárik, "ProxSkip: yes! local gradient steps provably lead to communication
    acceleration! finally!" (ICML 2022), Algorithm 2 (Scaffnew); :func:`theory.bounds.prox_skip_rate` is its rate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> result = th.run(ProxSkip(th.Constant(0.5), p=0.25), problem, workers=2, steps=40, x0=np.ones(4))
    >>> int(result.history["rounds"][-1]) < 40, bool(np.abs(result.x).max() < 1e-6)
    (True, True)
    """

    step: NamedTuple
    p: float | None = None
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        g, h, sent, eta = run.scratch(), run.rows("h"), run.copies("sent"), run.eta
        p = run.once("p", lambda: self.chance(run.problem))
        run.add_to_average(run.x)  # of the workers' iterates
        run.set_gradient(g, at=run.x)
        run.add(run.x, g, scale=-eta)
        run.add(run.x, h, scale=eta)  # x_i = x_i - eta (grad f_i(x_i) - h_i)
        if run.coin(p):
            run.add(h, run.x, scale=-p / eta)
            run.set(sent, run.gather(run.compress(FULL, run.x)))  # all x_i
            run.set(run.x, 0.0)
            run.add(run.x, sent, weights=run.once("mean", lambda: np.full((run.workers,) * 2, 1.0 / run.workers)))
            run.add(h, run.x, scale=p / eta)  # h_i = h_i + p/eta (mean x_i - x_i), x_i = mean x_i
        else:
            run.skip()

    def chance(self, problem: Any) -> float:
        """The probability of communication."""
        if self.p is not None:
            return self.p
        mu = strong_convexity(problem)
        require(mu > 0.0, "p", None, "a probability, as the problem is not strongly convex")
        return min(1.0, math.sqrt(step_size(self.step, 0) * mu))

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_share("p", self.p)

    def longest_step(self, problem: Any, workers: int) -> float:
        """The step of the theorem."""
        return bounds.prox_skip_step(worker_constants(self, problem, workers).largest)
