"""What makes robust rules stand more: messages that are mixed first, and a centre that is kept between rounds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core import require, setting
from ..core.permutations import shuffle
from ..core.random import derive
from . import robust_kernels as kernels
from .robust import aggregate, check_bad, check_less_than_half, check_rule, decoded, move_robustly
from .types import Messages, Run


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
    >>> import theory as th
    >>> th.robust_mean(CenteredClipping(1.0), [[0.5], [-0.5], [99.0], [0.0]])
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
