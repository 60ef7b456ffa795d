"""Server rules: how the model moves with the mean of the messages.

A *server rule* is a setting with one function, ``update(run, received)``; every worker executes it, and all get the
same bits.  With a memory the step size is applied before compression, and ``run.outside`` is 1; without, it is eta.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..core import require, setting

__all__ = ["Majority", "Mean", "Momentum", "Projected", "choose_server"]


@setting
class Mean(NamedTuple):
    """x moves against the mean of what was received: x = x - eta mean Q.

    Examples
    --------
    >>> Mean()
    Mean()
    """

    def update(self, run, received):
        """X = (1 - eta l2) x - eta mean Q."""
        run.scale(run.x, 1.0 - run.eta * run.own_l2)
        run.accumulate(received, run.x, -run.outside)


@setting
class Momentum(NamedTuple):
    """Heavy ball, after decompression: u = beta u + mean Q, x = x - eta u.

    Parameters
    ----------
    beta : float
        The factor of the velocity in each step, above 0 and below 1.
    nesterov : bool
        Look-ahead: x = x - eta (mean Q + beta u).

    Examples
    --------
    >>> Momentum(0.9)
    Momentum(beta=0.9, nesterov=False)
    """

    beta: float
    nesterov: bool = False

    def domain(self):
        """Reject values outside the domain."""
        require(0.0 < self.beta < 1.0, "beta", self.beta, "a number above 0 and below 1")

    def update(self, run, received):
        """V = beta v - l2 x - mean Q, x = x + eta v, where v = -u; the look-ahead comes in two parts."""
        v, ahead = run.model("velocity"), self.beta if self.nesterov else 0.0
        rate = (1.0 + ahead) * run.outside
        run.slow(run.x, v, self.beta, ahead * run.outside, run.own_l2 * run.inside, rate)
        run.accumulate(received, v, -1.0)
        run.add(run.x, v, rate)


@setting
class Majority(NamedTuple):
    """x moves by the sign of the mean in every coordinate, +1 where it is 0: a majority vote if messages are signs.

    Examples
    --------
    >>> Majority()
    Majority()
    """

    def update(self, run, received):
        """X = (1 - eta l2) x - eta sign(mean Q)."""
        v = run.model("vote")
        run.scale(run.x, 1.0 - run.eta * run.own_l2)
        run.set(v, v, 0.0)
        run.accumulate(received, v, -1.0)
        run.vote(v)
        run.add(run.x, v, run.outside)


@setting
class Projected(NamedTuple):
    """After every step of another server rule, x is projected onto a ball around 0.

    Parameters
    ----------
    radius : float
        Radius of the ball, above 0.
    server : server rule
        The rule that moves x.

    Examples
    --------
    >>> Projected(2.0).server
    Mean()
    """

    radius: float
    server: Any = Mean()

    def domain(self):
        """Reject values outside the domain."""
        require(0.0 < self.radius < math.inf, "radius", self.radius, "a finite number above 0")

    def update(self, run, received):
        """Apply the other rule, then project x onto the ball."""
        self.server.update(run, received)
        run.project(run.x, self.radius)


def choose_server(momentum: float, nesterov: bool, aggregation: str, radius: float):
    """The server rule given by a method's short forms."""
    server = Majority() if aggregation == "majority" else Momentum(momentum, nesterov) if momentum > 0.0 else Mean()
    return server if radius == math.inf else Projected(radius, server)
