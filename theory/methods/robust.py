"""Robust servers: the model moves against a mean that a few hostile workers cannot pull away.

A *robust rule* is a setting with a kernel, ``aggregate(rule, sent, n, t, out)``, of the decoded messages of n workers,
and a plain reference, ``plain(messages, centre, t)``.  Used as a server it moves x as `Mean` does; `Robust` hands its
result to another server.  Each worker counts once, whatever its share of the data.

f workers may send anything.  A message that contains NaN, an infinity or a number beyond 1e100 counts as the vector 0,
as one of theirs.  The messages of each worker are needed, not their sum: ``exchange="gather"`` where they could be
added (full precision, rand-k with a shared seed, sketches, PowerSGD).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core import generic, require, setting
from ..core.arguments import is_whole
from ..core.bound_calls import at, operation
from ..core.permutations import shuffle
from ..core.random import derive
from . import robust_kernels as kernels
from .server import Mean, check_server, takes_the_step
from .types import Messages, Run, Vector

__all__ = [
    "Bucketing",
    "CenteredClipping",
    "GeometricMedian",
    "Krum",
    "Median",
    "MultiKrum",
    "NNM",
    "Robust",
    "TrimmedMean",
    "decoded",
    "move_robustly",
    "robust_mean",
]

aggregate = generic(
    "aggregate",
    "aggregate(rule, sent, n, t, out): out = the robust mean of the first n rows of ``sent``, which may be "
    "overwritten, in round t; ``out`` contains that of the round before.",
    inline=False,
)


MEAN = Mean()


@operation
class Aggregate(NamedTuple):
    """Y = the robust mean of the messages of the workers that act, those with a weight; NaN if they are too few."""

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


def _check_bad(f: int) -> None:
    require(f >= 0, "f", f, "an integer, at least 0: how many workers may be hostile")


def _check_less_than_half(rule: Any, n: int) -> None:
    require(2 * rule.f < n, "f", rule.f, f"less than half of the {n} workers")


def _check_rule(name: str, rule: Any) -> None:
    known = aggregate.implements(type(rule))
    require(known, name, rule, "a robust rule, such as TrimmedMean(1)", TypeError)


@setting
class Median(NamedTuple):
    """In every coordinate the median of the messages; the mean of the middle two for an even number of workers.

    Notes
    -----
    It stands fewer than half of the workers, :func:`theory.bounds.median_deviation`.

    Examples
    --------
    >>> import numpy as np
    >>> robust_mean(Median(), [[1.0], [2.0], [-np.inf]])  # what is not finite counts as 0
    array([1.])
    """

    def __bool__(self) -> bool:
        """Return True: a tuple without fields would be false, and be taken for no server."""
        return True

    def check_workers(self, n: int) -> None:
        """Any number will do."""

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        return np.median(messages, axis=0)

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.trimmed_mean(sent, n, (n - 1) // 2, out)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta times the median."""
        move_robustly(self, run, decoded(run, received))


@setting
class TrimmedMean(NamedTuple):
    """In every coordinate the mean of the messages without the f smallest and the f largest.

    Parameters
    ----------
    f : int
        How many workers may be hostile, less than half of all.

    Notes
    -----
    Yin, Chen, Ramchandran, Bartlett, "Byzantine-robust distributed learning: towards optimal statistical rates", ICML
    2018.  No rule stands more: :func:`theory.bounds.least_robustness`.

    Examples
    --------
    >>> robust_mean(TrimmedMean(1), [[1.0], [2.0], [3.0], [1e9]])
    array([2.5])
    """

    f: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        _check_bad(self.f)

    def check_workers(self, n: int) -> None:
        """Reject too few workers."""
        _check_less_than_half(self, n)

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        return np.sort(messages, axis=0)[self.f : len(messages) - self.f].mean(axis=0)

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.trimmed_mean(sent, n, rule.f, out)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta times the trimmed mean."""
        move_robustly(self, run, decoded(run, received))


@setting
class GeometricMedian(NamedTuple):
    """Where the sum of the distances to the messages is least, nearly: Weiszfeld's iteration with smoothed distances.

    v = (sum of x_i / r_i) / (sum of 1 / r_i), r_i^2 = ||x_i - v||^2 + (smoothing scale)^2, from the coordinate-wise
    median on.  ``scale`` is the median distance from there; the iteration ends if v moves by at most tolerance scale.

    Parameters
    ----------
    iterations : int
        At most so many.
    tolerance, smoothing : float
        In units of the scale, above 0.

    Notes
    -----
    Pillutla, Kakade, Harchaoui, "Robust aggregation for federated learning", IEEE TSP 2022, with the smoothed
    iteration.  It stands fewer than half of the workers, :func:`theory.bounds.geometric_median_robustness`.

    Examples
    --------
    >>> robust_mean(GeometricMedian(), [[0.0, 0.0], [0.0, 0.0], [9.0, 9.0]]).round(3)
    array([0., 0.])
    """

    iterations: int = 100
    tolerance: float = 1e-6
    smoothing: float = 1e-6

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.iterations >= 1, "iterations", self.iterations, "an integer, at least 1")
        for name in ("tolerance", "smoothing"):
            require(0.0 < getattr(self, name) < 1.0, name, getattr(self, name), "a number above 0 and below 1")

    def check_workers(self, n: int) -> None:
        """Any number will do."""

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        v = np.median(messages, axis=0)
        scale = np.sort(np.linalg.norm(messages - v, axis=1))[len(messages) // 2]
        for _ in range(self.iterations if scale * kernels.LARGEST > 1.0 else 0):
            shares = 1.0 / np.sqrt(np.sum((messages - v) ** 2, axis=1) + (self.smoothing * scale) ** 2)
            before, v = v, shares @ messages / shares.sum()
            if np.linalg.norm(v - before) <= self.tolerance * scale:
                break
        return v

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.weiszfeld(sent, n, rule.iterations, rule.tolerance, rule.smoothing, out)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta times the geometric median."""
        move_robustly(self, run, decoded(run, received))


@setting
class Krum(NamedTuple):
    """The message with the least sum of squared distances to its N - f - 2 nearest others.

    Parameters
    ----------
    f : int
        How many workers may be hostile, with 2 f + 2 < N.

    Notes
    -----
    Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine learning with adversaries: Byzantine tolerant gradient descent",
    NIPS 2017; :func:`theory.bounds.krum_robustness`, :func:`theory.bounds.krum_resilience`.

    Examples
    --------
    >>> robust_mean(Krum(1), [[1.0], [1.5], [2.5], [4.0], [99.0]])
    array([1.5])
    """

    f: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        _check_bad(self.f)

    def check_workers(self, n: int) -> None:
        """Reject too few workers."""
        require(2 * self.f + 2 < n, "f", self.f, f"an integer with 2 f + 2 < {n}, the number of workers")

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        return MultiKrum(self.f, 1).plain(messages, centre, t)

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.best_scores(sent, n, rule.f, 1, out)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta times the chosen message."""
        move_robustly(self, run, decoded(run, received))


@setting
class MultiKrum(NamedTuple):
    """The mean of the m messages with the least scores of `Krum`, all chosen at once.

    Parameters
    ----------
    f : int
        How many workers may be hostile, with 2 f + 2 < N.
    m : int
        How many messages are averaged, from 1 to N - f.

    Notes
    -----
    Blanchard et al. 2017.  What is proved for m > 1 there is about m selections one after the other, with 2 f + 2 <
    N - m; this is the common form, which scores once.

    Examples
    --------
    >>> robust_mean(MultiKrum(1, 2), [[1.0], [1.5], [2.5], [4.0], [99.0]])
    array([1.25])
    """

    f: int
    m: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        _check_bad(self.f)
        require(self.m >= 1, "m", self.m, "an integer, at least 1")

    def check_workers(self, n: int) -> None:
        """Reject too few workers."""
        require(2 * self.f + 2 < n, "f", self.f, f"an integer with 2 f + 2 < {n}, the number of workers")
        require(self.m <= n - self.f, "m", self.m, f"at most N - f = {n - self.f}")

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        squares = np.sum((messages[:, None] - messages) ** 2, axis=2)
        scores = np.sort(squares, axis=1)[:, : len(messages) - self.f - 1].sum(axis=1)
        return messages[np.argsort(scores, kind="stable")[: self.m]].mean(axis=0)

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.best_scores(sent, n, rule.f, rule.m, out)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta times the mean of the chosen messages."""
        move_robustly(self, run, decoded(run, received))


@setting
class NNM(NamedTuple):
    """Nearest-neighbour mixing: each message becomes the mean of its N - f nearest, itself included; then another rule.

    Parameters
    ----------
    f : int
        How many workers may be hostile, less than half of all.
    inner : robust rule
        The rule for what was mixed.

    Notes
    -----
    Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan, "Fixing by mixing: a recipe for optimal Byzantine ML under
    heterogeneity", AISTATS 2023; :func:`theory.bounds.mixed_robustness`.

    Examples
    --------
    >>> robust_mean(NNM(1, Median()), [[0.0], [1.0], [2.0], [99.0]])
    array([1.])
    """

    f: int
    inner: Any

    def domain(self) -> None:
        """Reject values outside the domain."""
        _check_bad(self.f)
        _check_rule("inner", self.inner)

    def check_workers(self, n: int) -> None:
        """Reject too few workers."""
        _check_less_than_half(self, n)
        self.inner.check_workers(n)

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        squares = np.sum((messages[:, None] - messages) ** 2, axis=2) - np.eye(len(messages))
        near = np.argsort(squares, axis=1, kind="stable")[:, : len(messages) - self.f]
        return np.asarray(self.inner.plain(messages[near].mean(axis=1), centre, t))

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.mix_nearest(sent, n, rule.f)
        aggregate(rule.inner, sent, n, t, out)

    def update(self, run: Run, received: Messages) -> None:
        """Mix, and move x as the other rule does."""
        move_robustly(self, run, decoded(run, received))


@setting
class Bucketing(NamedTuple):
    """Messages are averaged in random buckets of s, drawn afresh in every round; another rule gets their means.

    A bucket with a hostile worker is hostile: the other rule must stand f of ceil(N / s) buckets.

    Parameters
    ----------
    s : int
        Messages in a bucket, from 1 to N; the last has what is left.
    inner : robust rule
        The rule for the means.
    seed : int
        Of the buckets, which all workers know.

    Notes
    -----
    Karimireddy, He, Jaggi, "Byzantine-robust learning on heterogeneous datasets via bucketing", ICLR 2022.

    Examples
    --------
    >>> robust_mean(Bucketing(2, Median()), [[3.0], [3.0], [3.0], [3.0], [99.0], [3.0]])
    array([3.])
    """

    s: int
    inner: Any
    seed: int = 0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.s >= 1, "s", self.s, "an integer, at least 1")
        require(0 <= self.seed < 2**63, "seed", self.seed, "an integer from 0 to 2**63 - 1")
        _check_rule("inner", self.inner)

    def check_workers(self, n: int) -> None:
        """Reject too few workers."""
        require(self.s <= n, "s", self.s, f"at most {n}, the number of workers")
        self.inner.check_workers(-(-n // self.s))

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        order = np.empty(len(messages), np.int64)
        shuffle(order, derive(np.uint64(self.seed), t))
        buckets = np.split(messages[order], range(self.s, len(messages), self.s))
        return np.asarray(self.inner.plain(np.stack([bucket.mean(axis=0) for bucket in buckets]), centre, t))

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        order = np.empty(n, np.int64)
        shuffle(order, derive(np.uint64(rule.seed), t))
        kernels.mix_buckets(sent, order, rule.s)
        aggregate(rule.inner, sent, (n + rule.s - 1) // rule.s, t, out)

    def update(self, run: Run, received: Messages) -> None:
        """Average in buckets, and move x as the other rule does."""
        move_robustly(self, run, decoded(run, received))


@setting
class CenteredClipping(NamedTuple):
    """The result v of the round before, moved by the mean of the messages' differences from it, each clipped.

    v = v + mean of (x_i - v) min(1, radius / ||x_i - v||); before the first round v = 0.

    Parameters
    ----------
    radius : float
        Longest difference that counts in full, above 0.
    iterations : int
        How often v moves in a round.

    Notes
    -----
    Karimireddy, He, Jaggi, "Learning from history for Byzantine robust optimization", ICML 2021, where workers send
    momenta.  One worker moves v by at most radius / N in an iteration.

    Examples
    --------
    >>> robust_mean(CenteredClipping(1.0), [[0.5], [-0.5], [99.0], [0.0]])
    array([0.25])
    """

    radius: float
    iterations: int = 1

    @property
    def state(self) -> tuple[str, ...]:
        """The vector that is kept from round to round."""
        return ("centre",)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.radius < math.inf, "radius", self.radius, "a finite number above 0")
        require(self.iterations >= 1, "iterations", self.iterations, "an integer, at least 1")

    def check_workers(self, n: int) -> None:
        """Any number will do."""

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""
        for _ in range(self.iterations):
            gaps = messages - centre
            lengths = np.maximum(np.linalg.norm(gaps, axis=1, keepdims=True), self.radius)
            centre = centre + (gaps * (self.radius / lengths)).mean(axis=0)
        return centre

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.clip_to_centre(sent, n, rule.radius, rule.iterations, out)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta times the centre."""
        move_robustly(self, run, decoded(run, received))


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
    >>> from theory import Momentum
    >>> Robust(TrimmedMean(2), Momentum(0.9)).state
    ('velocity',)
    """

    rule: Any
    server: Any = Mean()

    @property
    def state(self) -> tuple[str, ...]:
        """The vectors that both keep."""
        return (*getattr(self.rule, "state", ()), *getattr(self.server, "state", ()))

    @property
    def takes_step(self) -> bool:
        """Whether the server applies the step size."""
        return takes_the_step(self.server)

    @property
    def with_memory(self) -> bool:
        """Whether the server heeds what an error memory adds to the messages."""
        return bool(getattr(self.server, "with_memory", True))

    def domain(self) -> None:
        """Reject values outside the domain."""
        _check_rule("rule", self.rule)
        plain = hasattr(self.server, "update") and not aggregate.implements(type(self.server))
        require(plain, "server", self.server, "a server of one vector, such as Momentum(0.9)", TypeError)

    def check(self, problem: Any, d: int) -> None:
        """Check the server."""
        check_server(self.server, problem, d)

    def update(self, run: Run, received: Messages) -> None:
        """Move x as the server does, with the robust mean."""
        move_robustly(self.rule, run, decoded(run, received), self.server)


def robust_mean(rule: Any, messages: ArrayLike, *, centre: ArrayLike | None = None, t: int = 0) -> np.ndarray:
    """The robust mean of messages, by the kernels that servers run.

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
        If it is no robust rule.
    ValueError
        For too few workers, or shapes that do not fit.

    Examples
    --------
    >>> robust_mean(TrimmedMean(1), [[1.0, 0.0], [2.0, 0.0], [1e9, -1e9]])
    array([2., 0.])
    """
    _check_rule("rule", rule)
    sent = np.array(messages, float)
    require(sent.ndim == 2 and sent.size > 0, "messages", f"shape {sent.shape}", "shape (N, d)")
    require(is_whole(t) and t >= 0, "t", t, "an integer, at least 0")
    rule.check_workers(len(sent))
    out = np.zeros(sent.shape[1]) if centre is None else np.array(centre, float)
    fits = out.shape == sent.shape[1:] and bool(np.isfinite(out).all())
    require(fits, "centre", f"shape {out.shape}", f"shape ({sent.shape[1]},), finite numbers")
    n = kernels.active_first(sent, np.ones(len(sent)))
    aggregate(rule, sent, n, int(t), out)
    return out
