"""Robust rules: median, trimmed mean, geometric median, Krum, and mixing of messages before such a rule.

Rules tolerate more if messages are mixed first, or if a centre is stored between rounds.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core import require, setting
from ...core.random import derive, shuffle
from ..types import Messages, Run
from . import kernels
from .servers import aggregate, check_bad, check_less_than_half, check_rule, decoded, move_robustly

# --- Robust rules of one pass ----------------------------------------------------------------------------------------


@setting
class Median(NamedTuple):
    """The coordinate-wise median of the messages; for an even number of workers the mean of the middle two.

    Notes
    -----
    It tolerates fewer than half of the workers, :func:`theory.bounds.median_deviation`.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.robust_mean(Median(), [[1.0], [2.0], [-np.inf]])  # what is not finite counts as 0
    array([1.])
    """

    def check_workers(self, n: int) -> None:
        """Any number is allowed."""

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
    """The coordinate-wise mean of the messages without the f smallest and the f largest numbers.

    Parameters
    ----------
    f : int
        Maximum number of hostile workers, less than half of all.

    Notes
    -----
    Yin, Chen, Ramchandran, Bartlett, "Byzantine-robust distributed learning: towards optimal statistical rates", ICML
    2018.  No rule tolerates more: :func:`theory.bounds.least_robustness`.

    Examples
    --------
    >>> import theory as th
    >>> th.robust_mean(TrimmedMean(1), [[1.0], [2.0], [3.0], [1e9]])
    array([2.5])
    """

    f: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_bad(self.f)

    def check_workers(self, n: int) -> None:
        """Reject too few workers."""
        check_less_than_half(self, n)

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
    """The point with the least sum of distances to the messages.

    The coordinate-wise median is tried first, then each message. A message is the minimum if the unit vectors from it
    to the others have a sum whose norm is at most the number of messages at that point. Otherwise Weiszfeld's iteration
    starts from the median, v = (sum of x_i / r_i) / (sum of 1 / r_i), r_i = ||x_i - v||, and stops when the sum of the
    unit vectors is almost 0.

    Parameters
    ----------
    iterations : int
        Maximum number of iterations; the last point is the result.
    tolerance : float
        Largest norm of the mean of the unit vectors at the end. The sum of the distances then exceeds the minimum by at
        most N times ``tolerance`` times the distance to the minimum.

    Notes
    -----
    Vardi and Zhang, "The multivariate L1-median and associated data depth", PNAS 2000, for the step at a message;
    Pillutla, Kakade, Harchaoui, "Robust aggregation for federated learning", IEEE TSP 2022, as a rule of a server. It
    tolerates fewer than half of the workers, :func:`theory.bounds.geometric_median_robustness`.

    Examples
    --------
    >>> import theory as th
    >>> th.robust_mean(GeometricMedian(), [[0.0, 0.0], [0.0, 0.0], [9.0, 9.0]])
    array([0., 0.])
    """

    iterations: int = 1000
    tolerance: float = 1e-9

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.iterations >= 1, "iterations", self.iterations, "an integer, at least 1")
        require(0.0 < self.tolerance < 1.0, "tolerance", self.tolerance, "a number above 0 and below 1")

    def check_workers(self, n: int) -> None:
        """Any number is allowed."""

    def plain(self, messages: np.ndarray, centre: np.ndarray, t: int) -> np.ndarray:
        """The same in NumPy."""

        def directions(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
            distances = np.linalg.norm(messages - x, axis=1)
            factors = np.divide(1.0, distances, out=np.zeros(len(messages)), where=distances > 0.0)
            return factors, factors @ (messages - x), int(np.sum(distances == 0.0))

        v = np.median(messages, axis=0)
        _, total, same = directions(v)
        if np.linalg.norm(total) - same <= self.tolerance * len(messages):
            return v
        for x in messages:
            _, total, same = directions(x)
            if np.linalg.norm(total) <= same:
                return x
        for _ in range(self.iterations):
            factors, total, same = directions(v)
            if (norm := np.linalg.norm(total)) - same <= self.tolerance * len(messages):
                break
            v = v + (1.0 - same / norm) / factors.sum() * total
        return v

    def aggregate(rule: Any, sent: np.ndarray, n: int, t: int, out: np.ndarray) -> None:
        kernels.least_distances(sent, n, rule.iterations, rule.tolerance, out)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta times the geometric median."""
        move_robustly(self, run, decoded(run, received))


@setting
class Krum(NamedTuple):
    """The message with the least sum of squared distances to its N - f - 2 nearest others.

    Parameters
    ----------
    f : int
        Maximum number of hostile workers, with 2 f + 2 < N.

    Notes
    -----
    Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine learning with adversaries: Byzantine tolerant gradient descent",
    NIPS 2017; :func:`theory.bounds.krum_robustness`.

    Examples
    --------
    >>> import theory as th
    >>> th.robust_mean(Krum(1), [[1.0], [1.5], [2.5], [4.0], [99.0]])
    array([1.5])
    """

    f: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_bad(self.f)

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
        Maximum number of hostile workers, with 2 f + 2 < N.
    m : int
        Number of messages that are averaged, from 1 to N - f.

    Notes
    -----
    Blanchard et al. 2017.  Their proof for m > 1 is about m successive selections, with 2 f + 2 < N - m; this is the
    common form, which computes the scores once.

    Examples
    --------
    >>> import theory as th
    >>> th.robust_mean(MultiKrum(1, 2), [[1.0], [1.5], [2.5], [4.0], [99.0]])
    array([1.25])
    """

    f: int
    m: int

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_bad(self.f)
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


# --- Mixing before a rule, and stored centres ------------------------------------------------------------------------


@setting
class NNM(NamedTuple):
    """Nearest-neighbour mixing: another rule, applied after each message is replaced by the mean of its N - f nearest.

    Parameters
    ----------
    f : int
        Maximum number of hostile workers, less than half of all.
    inner : robust rule
        The rule that is applied to the mixed messages.

    Notes
    -----
    Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan, "Fixing by mixing: a recipe for optimal Byzantine ML under
    heterogeneity", AISTATS 2023; :func:`theory.bounds.mixed_robustness`.

    Examples
    --------
    >>> import theory as th
    >>> th.robust_mean(NNM(1, th.Median()), [[0.0], [1.0], [2.0], [99.0]])
    array([1.])
    """

    f: int
    inner: Any

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_bad(self.f)
        check_rule("inner", self.inner)

    def check_workers(self, n: int) -> None:
        """Reject too few workers."""
        check_less_than_half(self, n)
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
    """Messages are averaged in buckets of s, which are drawn in every round; another rule is applied to the means.

    A bucket with a hostile worker is hostile: the other rule must tolerate f of ceil(N / s) buckets.

    Parameters
    ----------
    s : int
        Messages in a bucket, from 1 to N; the last bucket has the remaining ones.
    inner : robust rule
        The rule for the means.
    seed : int
        Seed of the buckets, which all workers know.

    Notes
    -----
    Karimireddy, He, Jaggi, "Byzantine-robust learning on heterogeneous datasets via bucketing", ICLR 2022.

    Examples
    --------
    >>> import theory as th
    >>> th.robust_mean(Bucketing(2, th.Median()), [[3.0], [3.0], [3.0], [3.0], [99.0], [3.0]])
    array([3.])
    """

    s: int
    inner: Any
    seed: int = 0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.s >= 1, "s", self.s, "an integer, at least 1")
        require(0 <= self.seed < 2**63, "seed", self.seed, "an integer from 0 to 2**63 - 1")
        check_rule("inner", self.inner)

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
    """The result v of the round before plus the mean of the clipped differences between the messages and v.

    v = v + mean of (x_i - v) min(1, radius / ||x_i - v||); before the first round v = 0.

    Parameters
    ----------
    radius : float
        Radius, above 0, to which differences are clipped.
    iterations : int
        Number of iterations in a round.

    Notes
    -----
    Karimireddy, He, Jaggi, "Learning from history for Byzantine robust optimization", ICML 2021, where workers send
    momenta.  One worker moves v by at most radius / N in an iteration.

    Examples
    --------
    >>> import theory as th
    >>> th.robust_mean(CenteredClipping(1.0), [[0.5], [-0.5], [99.0], [0.0]])
    array([0.25])
    """

    radius: float
    iterations: int = 1

    @property
    def state(self) -> tuple[str, ...]:
        """The vector that is stored from round to round."""
        return ("centre",)

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.radius < math.inf, "radius", self.radius, "a finite number above 0")
        require(self.iterations >= 1, "iterations", self.iterations, "an integer, at least 1")

    def check_workers(self, n: int) -> None:
        """Any number is allowed."""

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
