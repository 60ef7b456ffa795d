"""Signum: workers send the signs of their momenta.

A step, in the notation of the paper::

    m_i = (1 - a) m_i + a grad f_i(x, xi)
    s_i = sign(m_i), which i sends
    x = x - eta mean s_i, or x = x - eta sign(mean s_i) with a majority vote
"""

from __future__ import annotations

from typing import NamedTuple

from ..compressors.sign import Sign
from ..core import require, traits
from .custom import check_method, method
from .sampling import Split
from .server import Majority, Mean
from .sgd import AGGREGATIONS
from .types import Run

SIGN = Sign()


@traits(stores=(0, 1), listed=True, own_step=True, descends=False)
@method
@traits(compressor=SIGN)
class Signum(NamedTuple):
    """Descent along the signs of running means of gradients, one bit for each coordinate.

    Every coordinate moves by the step size, also where the gradient is 0 (the sign of 0 is +1) or small: a constant
    step, 1e-3 rather than 1/L, ends at a distance from the minimum that is in proportion to it, and on sparse data
    coordinates move that no row has.  Where workers' data differ, votes can cancel or err far from the minimum.
    Between two steps a worker stores m_i (``memory_bytes``).

    Parameters
    ----------
    step : Constant or InverseTime
        Step sizes.
    momentum : float
        a, the weight of the new gradient, in (0, 1]; 1 is sign descent.
    aggregation : {"mean", "majority"}
        Whether x moves by the mean of the signs, or by their majority vote, +1 where it is tied.
    batch, average, sampling, shards : int, and str
        As in `ParallelSGD`.

    Notes
    -----
    Bernstein, Wang, Azizzadenesheli, Anandkumar, "signSGD: compressed optimisation for non-convex problems" (ICML
    2018), from m_i = the first gradient; :func:`theory.bounds.sign_momentum_gradient` is its rate.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> th.run(Signum(th.Constant(0.25)), problem, workers=2, steps=3, x0=np.array([2.0, -1.0])).x
    array([ 1.25, -0.25])
    """

    step: NamedTuple
    momentum: float = 0.1
    aggregation: str = "mean"
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        m = run.rows("m")
        a = run.once("a", lambda: run.rates.beginning(1.0, self.momentum))  # a; 1 in the first step
        run.add_to_average(run.x)  # of the iterates
        run.scale(m, 1.0 - a)
        run.add_gradient(m, at=run.x, scale=a)  # m_i = (1 - a) m_i + a gradient at x
        received = run.gather(run.compress(SIGN, m))  # sign(m_i) of all
        server = Majority() if self.aggregation == "majority" else Mean()
        server.update(run, received)  # x = x - eta mean sign(m_i), or the sign of the mean

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        require(0.0 < self.momentum <= 1.0, "momentum", self.momentum, "a number above 0, up to 1")
        known = " or ".join(map(repr, AGGREGATIONS))
        require(self.aggregation in AGGREGATIONS, "aggregation", self.aggregation, known)
