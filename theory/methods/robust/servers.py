"""Robust servers: the model moves along a mean that few hostile workers cannot move far.

A *robust rule* is a setting with a kernel, ``aggregate(rule, sent, n, t, out)``, of the decoded messages of n workers,
and a plain reference, ``plain(messages, centre, t)``.  Used as a server it moves x as `Mean` does; `Robust` hands its
result to another server.  All workers have equal weight, independent of their number of rows.

f workers may send arbitrary messages.  A message that contains NaN, an infinity or a number beyond 1e100 counts as the
vector 0 and as one of theirs. The messages of each worker are needed, not their sum, so use ``exchange="gather"`` if
they could be added (full precision, rand-k with a shared seed, sketches, PowerSGD).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core import generic, require, setting
from ...core.arguments import real_array, whole_number
from ...core.bound_calls import at, operation
from ..server import Mean, check_server, takes_the_step
from ..types import Messages, Run, Vector
from . import kernels

aggregate = generic(
    "aggregate",
    "aggregate(rule, sent, n, t, out): out = the robust mean of the first n rows of ``sent``, which may be "
    "overwritten, in round t; ``out`` contains that of the round before.",
    inline=False,
)


MEAN = Mean()


@operation
class Aggregate(NamedTuple):
    """Y = the robust mean of the messages of the active workers, those with a weight; NaN if they are too few."""

    rule: NamedTuple
    others: np.ndarray
    Y: np.ndarray
    weight: np.ndarray
    least: int

    def _row(pointer: Any, t: int, r: int, w: int) -> None:
        b = at(pointer)
        n = kernels.active_first(b.others[r], b.weight)
        if n >= b.least:
            aggregate(b.rule, b.others[r], n, t, b.Y[r, w])
        else:  # so that the run stops: fewer than the rule was checked for
            b.Y[r, w][:] = np.nan


def decoded(run: Run, received: Messages) -> Vector:
    """The message of each worker, decoded: shape (replicas, workers, d)."""
    each = received.symbols.count.shape[1] == run.workers
    require(each, "exchange", "a sum of the messages", "'gather', where a server looks at the message of each worker")
    sent = run.copies("sent")
    run.set(sent, received)
    return sent


def move_robustly(rule: Any, run: Run, sent: Vector, server: Any = MEAN) -> None:
    """Move x as a server does with the robust mean of the messages."""
    acting = int(getattr(run.setup.method, "clients", None) or run.workers)
    rule.check_workers(acting)
    g = run.vector("centre")
    run.call(Aggregate(rule, sent, g, run.weight, acting), run.single)  # g = the robust mean of what was sent
    server.update(run, g)  # x = x - eta g


def check_bad(f: int) -> None:
    """Reject a negative number of hostile workers."""
    require(f >= 0, "f", f, "an integer, at least 0: how many workers may be hostile")


def check_less_than_half(rule: Any, n: int) -> None:
    """Reject too few workers."""
    require(2 * rule.f < n, "f", rule.f, f"less than half of the {n} workers")


def check_rule(name: str, rule: Any) -> None:
    """Reject an argument that is not a robust rule."""
    known = aggregate.implements(type(rule))
    require(known, name, rule, "a robust rule, such as TrimmedMean(1)", TypeError)


@setting
class Robust(NamedTuple):
    """A robust rule, and another server that moves x with its result in place of the mean.

    Parameters
    ----------
    rule : robust rule
        Such as `Median` or `TrimmedMean`.
    server : server rule
        Such as `Momentum` or `Adam`.

    Examples
    --------
    >>> from theory import Momentum, TrimmedMean
    >>> Robust(TrimmedMean(2), Momentum(0.9)).state
    ('velocity',)
    """

    rule: Any
    server: Any = Mean()

    @property
    def state(self) -> tuple[str, ...]:
        """The vectors that the rule and the server store."""
        return (*getattr(self.rule, "state", ()), *getattr(self.server, "state", ()))

    @property
    def takes_step(self) -> bool:
        """Whether the server applies the step size."""
        return takes_the_step(self.server)

    @property
    def with_memory(self) -> bool:
        """Whether the server uses the error memory's part of the messages."""
        return bool(getattr(self.server, "with_memory", True))

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_rule("rule", self.rule)
        plain = hasattr(self.server, "update") and not aggregate.implements(type(self.server))
        require(plain, "server", self.server, "a server of one vector, such as Momentum(0.9)", TypeError)

    def check(self, problem: Any, d: int) -> None:
        """Check the server."""
        check_server(self.server, problem, d)

    def update(self, run: Run, received: Messages) -> None:
        """Move x as the server does, with the robust mean."""
        move_robustly(self.rule, run, decoded(run, received), self.server)


def robust_mean(rule: Any, messages: ArrayLike, *, centre: ArrayLike | None = None, t: int = 0) -> np.ndarray:
    """The robust mean of messages, computed by the kernels of servers.

    Parameters
    ----------
    rule : robust rule
        `Median`, `TrimmedMean`, `GeometricMedian`, `Krum`, `MultiKrum`, `NNM`, `Bucketing` or `CenteredClipping`.
    messages : array_like, shape (N, d)
        One for each worker.
    centre : array_like, shape (d,), optional
        The result of the round before, for `CenteredClipping`; by default 0.
    t : int
        The round, for `Bucketing`.

    Returns
    -------
    ndarray, shape (d,)

    Raises
    ------
    TypeError
        If ``rule`` is not a robust rule.
    ValueError
        If there are too few workers or the shapes do not fit.

    Examples
    --------
    >>> from theory import TrimmedMean
    >>> robust_mean(TrimmedMean(1), [[1.0, 0.0], [2.0, 0.0], [1e9, -1e9]])
    array([2., 0.])
    """
    check_rule("rule", rule)
    sent = real_array("messages", messages).copy()
    require(sent.ndim == 2 and sent.size > 0, "messages", f"shape {sent.shape}", "shape (N, d)")
    whole_number("t", t, low=0)
    rule.check_workers(len(sent))
    out = np.zeros(sent.shape[1]) if centre is None else real_array("centre", centre).copy()
    fits = out.shape == sent.shape[1:] and bool(np.isfinite(out).all())
    require(fits, "centre", f"shape {out.shape}", f"shape ({sent.shape[1]},), finite numbers")
    n = kernels.active_first(sent, np.ones(len(sent)))
    aggregate(rule, sent, n, int(t), out)
    return out
