"""Server rules, which move the model by the mean of the messages.

A *server rule* is a setting with one function, ``update(run, received)``; every worker executes it, and all have
bit-identical models. With a memory the step size is applied before compression and ``run.eta_received`` is 1; without a
memory it is gamma.

These attributes are optional.  ``takes_step = True``: the rule applies the step size itself, and ``run.eta_received``
is gamma also with a memory. ``state``: the names of the vectors that it stores from step to step in addition to the
model. ``sparse_rows = True``: ``update`` calls only ``run.add`` and ``run.scale``, of ``run.x``, ``received``, and at
most one vector in its state, so that it also works on sparse rows.
``by_coordinate = True``: each coordinate moves by itself, so that :class:`Sharded` may divide the rule.
``with_memory = False``: the rule would ignore the error memory's part of the messages; methods reject the combination.
:mod:`theory.methods.adaptive.adam` has Adam and LAMB.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..core import require, setting, traits
from .types import Messages, Run


@traits(sparse_rows=True, by_coordinate=True)
@setting
class Mean(NamedTuple):
    """x moves along the negative mean of the received messages: x = x - gamma mean Q.

    Examples
    --------
    >>> Mean()
    Mean()
    """

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta mean Q; the l2 term, if it is not in Q, multiplies x by 1 - eta l2 first."""
        run.scale(run.x, 1.0 - run.eta * run.local_l2)  # x = (1 - eta l2) x
        run.add(run.x, received, scale=-run.eta_received)  # x = x - eta mean Q


@traits(sparse_rows=True, by_coordinate=True)
@setting
class Momentum(NamedTuple):
    """Heavy ball, after decompression: u = beta u + mean Q, x = x - gamma u.

    Parameters
    ----------
    beta : float
        The factor of the velocity in each step, above 0 and below 1.
    nesterov : bool
        Look-ahead: x = x - gamma (mean Q + beta u).

    Examples
    --------
    >>> Momentum(0.9)
    Momentum(beta=0.9, nesterov=False)
    """

    beta: float
    nesterov: bool = False

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the vectors that are stored from step to step."""
        return ("velocity",)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.beta < 1.0, "beta", self.beta, "a number above 0 and below 1")

    def update(self, run: Run, received: Messages, rate: float = 1.0) -> None:
        """Set u = beta u + mean Q, and move x to x - eta u, or with look-ahead to x - eta (mean Q + beta u)."""
        u, eta = run.vector("velocity"), rate * run.eta_received
        l2 = run.eta_sent * run.local_l2  # 0, unless the l2 term is not in Q
        run.add(u, received, keep=self.beta)  # u = beta u + mean Q
        run.add(u, run.x, scale=l2)  # u = u + l2 x
        if self.nesterov:
            run.scale(run.x, 1.0 - eta * l2)  # x = x - eta l2 x
            run.add(run.x, received, scale=-eta)  # x = x - eta mean Q
            run.add(run.x, u, scale=-eta * self.beta)  # x = x - eta beta u
        else:
            run.add(run.x, u, scale=-eta)  # x = x - eta u


@traits(sparse_rows=True, by_coordinate=True)
@setting
class OuterStep(NamedTuple):
    """An outer step of local SGD: x = x - rate u, where u is the mean of the differences, or their velocity.

    Parameters
    ----------
    rate : float
        The outer step size gamma_s, above 0; 1 is plain averaging.  In `ParallelSGD`, a factor of the step size.
    momentum : float
        The factor of the velocity in each round, from 0 (none) to below 1: u = momentum u + mean Q.
    nesterov : bool
        Look-ahead: x = x - rate (mean Q + momentum u).

    Notes
    -----
    FedAvg with server momentum and DiLoCo (with ``nesterov=True``); :func:`theory.bounds.outer_step` is the best rate
    on quadratics, :func:`theory.bounds.outer_nesterov` the best pair.  For adaptive outer steps use :class:`Adam`.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> method = th.LocalSGD(step=th.Constant(0.5), local_steps=2, server=th.OuterStep(4.0 / 3.0))
    >>> th.run(method, problem, workers=2, steps=2, x0=np.ones(2), wire_dtype=np.float64).x  # q = 3/4
    array([0., 0.])
    """

    rate: float = 1.0
    momentum: float = 0.0
    nesterov: bool = False

    @property
    def state(self) -> tuple[str, ...]:
        """The velocity, if there is momentum."""
        return ("velocity",) if self.momentum else ()

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.rate < math.inf, "rate", self.rate, "a finite number above 0")
        require(0.0 <= self.momentum < 1.0, "momentum", self.momentum, "a number from 0 to below 1")
        require(self.momentum > 0.0 or not self.nesterov, "nesterov", self.nesterov, "False without momentum")

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - rate mean Q, or with momentum to x - rate u."""
        if self.momentum:
            Momentum(self.momentum, self.nesterov).update(run, received, rate=self.rate)
        else:
            run.scale(run.x, 1.0 - self.rate * run.eta * run.local_l2)  # x = (1 - rate l2) x
            run.add(run.x, received, scale=-self.rate * run.eta_received)  # x = x - rate mean Q


@traits(with_memory=False, by_coordinate=True)
@setting
class Majority(NamedTuple):
    """x moves along the sign of the mean in every coordinate (+1 for 0): a majority vote if messages are signs.

    Examples
    --------
    >>> Majority()
    Majority()
    """

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta sign(mean Q); the l2 term, if it is not in Q, multiplies x by 1 - eta l2 first."""
        v = run.vector("vote")
        run.scale(run.x, 1.0 - run.eta * run.local_l2)  # x = (1 - eta l2) x
        run.set(v, received, scale=-1.0)  # v = -mean Q
        run.sign(v)  # v = sign(v), -1 where v is 0
        run.add(run.x, v, scale=run.eta_received)  # x = x + eta v


@traits(projects=True, with_memory=False)
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

    @property
    def state(self) -> tuple[str, ...]:
        """The vectors that the other rule stores."""
        return tuple(getattr(self.server, "state", ()))

    @property
    def takes_step(self) -> bool:
        """Whether the other rule applies the step size."""
        return takes_the_step(self.server)

    @property
    def sparse_rows(self) -> bool:
        """Whether the other rule works on sparse rows."""
        return bool(getattr(self.server, "sparse_rows", False))

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.radius < math.inf, "radius", self.radius, "a finite number above 0")

    def check(self, problem: Any, d: int) -> None:
        """Check the other rule."""
        check_server(self.server, problem, d)

    def update(self, run: Run, received: Messages) -> None:
        """Apply the other rule, then project x onto the ball."""
        self.server.update(run, received)
        run.project(run.x, radius=self.radius)


def choose_server(momentum: float, nesterov: bool, aggregation: str, radius: float) -> Any:
    """The server rule given by a method's short forms."""
    server = Majority() if aggregation == "majority" else Momentum(momentum, nesterov) if momentum > 0.0 else Mean()
    return server if radius == math.inf else Projected(radius, server)


def takes_the_step(rule: Any) -> bool:
    """Whether a server rule applies the step size itself, so that memories do not contain it."""
    return bool(getattr(rule, "takes_step", False))


def check_server(rule: Any, problem: Any, d: int) -> None:
    """Raise ``ValueError`` unless the rule can be used on the problem, with d coordinates."""
    check = getattr(type(rule), "check", None)
    if check is not None:
        check(rule, problem, d)


def server_bytes(method: Any, d: int, own_bits: int, workers: int) -> int:
    """Bytes that the server rule, or the method itself, stores beside x; floats have ``own_bits``.

    If the rule divides its state, those of the worker with the longest slice.
    """
    length = -(-d // workers) if divides_state(method.server) else d
    return len(_stored(method)) * length * own_bits // 8


def server_state(method: Any, run: Run) -> dict:
    """The vectors that a server rule stores, by name, as plain arrays; none on sparse rows."""
    if run.sparse:
        return {}
    where = run.shard() if divides_state(method.server) else run
    return {name: where.vector(name).copy() for name in _stored(method)}


def divides_state(rule: Any) -> bool:
    """Whether each worker stores a slice of the rule's state."""
    return bool(getattr(rule, "divided", False))


def _stored(method: Any) -> list[str]:
    return [name for part in (method, method.server) for name in getattr(part, "state", ())]
