"""Robust rules of one pass: the median, the trimmed mean, the geometric median, and Krum's choice of messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core import require, setting
from . import robust_kernels as kernels
from .robust import check_bad, check_less_than_half, decoded, move_robustly
from .types import Messages, Run


@setting
class Median(NamedTuple):
    """In every coordinate the median of the messages; the mean of the middle two for an even number of workers.

    Notes
    -----
    It stands fewer than half of the workers, :func:`theory.bounds.median_deviation`.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.robust_mean(Median(), [[1.0], [2.0], [-np.inf]])  # what is not finite counts as 0
    array([1.])
    """

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
    """Where the sum of the distances to the messages is least.

    The coordinate-wise median is tried first, and then each message: that is the minimum if the directions from it to
    the others sum to a vector no longer than the number of messages there.  Else Weiszfeld's iteration goes on from the
    median, v = (sum of x_i / r_i) / (sum of 1 / r_i), r_i = ||x_i - v||, until the directions sum to nearly 0.

    Parameters
    ----------
    iterations : int
        At most so many; what is reached then is taken.
    tolerance : float
        How long the mean of the directions, which are unit vectors, may be at the end.  The sum of the distances is
        then above the least by at most N times this times the distance to the minimum.

    Notes
    -----
    Vardi and Zhang, "The multivariate L1-median and associated data depth", PNAS 2000, for the step at a message;
    Pillutla, Kakade, Harchaoui, "Robust aggregation for federated learning", IEEE TSP 2022, as a rule of a server.
    It stands fewer than half of the workers, :func:`theory.bounds.geometric_median_robustness`.

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
        """Any number will do."""

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
        How many workers may be hostile, with 2 f + 2 < N.

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
        How many workers may be hostile, with 2 f + 2 < N.
    m : int
        How many messages are averaged, from 1 to N - f.

    Notes
    -----
    Blanchard et al. 2017.  What is proved for m > 1 there is about m selections one after the other, with 2 f + 2 <
    N - m; this is the common form, which scores once.

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
