"""Mechanisms that increase gradient diversity: DropConnect, Langevin noise and one-level quantization.

A mechanism replaces grad f_i(x), l2 term included, by a random g_i with a larger second moment:

* :class:`DropConnect`: every coordinate is dropped with probability p; E g_i = (1 - p) grad f_i;
* :class:`Langevin`: g_i = grad f_i + N(0, sigma^2 I), as in stochastic gradient Langevin dynamics;
* :class:`QuantizedGradients`: coordinate j becomes sign(g_j) ||g||_2 with probability |g_j|/||g||_2, else 0.

`diversified` wraps a problem so that every method draws such gradients.  A user-defined mechanism registers `disturb`,
`kept` and `disturbed_moments`.  For their effect on the useful batch size see
:func:`theory.bounds.mechanism_batch_bound`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..bounds.batches.diversity import mechanism_batch_bound
from ..core import generic, kernel, registers, require, setting
from ..core.random import derive, normal, uniform
from ..core.vectors import add_entry, entry
from .base import PER_DRAW, PER_STEP, add_loss_gradient, dimension, gradient, moments, regularization, rows, value
from .constants import lipschitz, second_moment_and_norm2, strong_convexity
from .evaluate import rows_between
from .linear import norm2

disturb = generic(
    "disturb",
    "disturb(mechanism, problem, i, stream, weight, x, out): out += weight * the disturbed gradient "
    "of f_i at x, l2 term included; `stream` is the key of its random numbers.",
)
kept = generic("kept", "kept(mechanism) -> float: the factor m in E g_i = m grad f_i.", lambda mechanism: 1.0)
disturbed_moments = generic(
    "disturbed_moments",
    "disturbed_moments(mechanism, problem, x, out) -> float: the mean of E||g_i||^2 at the array x; out = grad f(x).",
)


# --- the mechanisms ---------------------------------------------------------------------------------------------------


@setting
class DropConnect(NamedTuple):
    """Each coordinate of a gradient is dropped with probability ``drop``; kept coordinates are not rescaled.

    So E g_i = (1 - drop) grad f_i, and the expected step is multiplied by 1 - drop.

    Parameters
    ----------
    drop : float
        p, from 0 to below 1.

    Examples
    --------
    >>> DropConnect(0.25)
    DropConnect(drop=0.25)
    """

    drop: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 <= self.drop < 1.0, "drop", self.drop, "a probability, from 0 to below 1")

    def disturb(mechanism, problem, i, stream, weight, x, out):
        masked = Masked(out, stream, mechanism.drop)  # one mask for the loss and the l2 term: no gradient is formed
        add_loss_gradient(problem, i, stream, weight, x, masked)
        _add_l2(problem, weight, x, masked)

    def kept(mechanism):
        return 1.0 - mechanism.drop

    def disturbed_moments(mechanism, problem, x, out):
        return (1.0 - mechanism.drop) * moments(problem, x, out)


@setting
class Langevin(NamedTuple):
    """Gaussian noise N(0, deviation^2 I) is added to every gradient.

    Parameters
    ----------
    deviation : float
        sigma, at least 0.

    Examples
    --------
    >>> Langevin(0.5)
    Langevin(deviation=0.5)
    """

    deviation: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 <= self.deviation < math.inf, "deviation", self.deviation, "a finite number, at least 0")

    def disturb(mechanism, problem, i, stream, weight, x, out):
        add_loss_gradient(problem, i, stream, weight, x, out)
        _add_l2(problem, weight, x, out)
        for j in range(dimension(problem)):
            add_entry(out, j, weight * (mechanism.deviation * normal(stream, j)))

    def disturbed_moments(mechanism, problem, x, out):
        return moments(problem, x, out) + out.size * mechanism.deviation * mechanism.deviation


@setting
class QuantizedGradients(NamedTuple):
    """Every gradient is quantized, without bias, with one level: its Euclidean norm.

    The compressor ``QSGD(1)`` quantizes the mean over a worker's batch; this mechanism quantizes each row's gradient.

    Examples
    --------
    >>> QuantizedGradients()
    QuantizedGradients()
    """

    def disturb(mechanism, problem, i, stream, weight, x, out):
        g = np.empty(dimension(problem))  # its norm is needed before its first coordinate
        _whole_gradient(problem, i, stream, x, g)
        norm = math.sqrt(norm2(g))
        for j in range(g.size):
            if uniform(stream, j) * norm < abs(g[j]):
                add_entry(out, j, weight * (norm if g[j] > 0.0 else -norm))

    def disturbed_moments(mechanism, problem, x, out):
        g, n, total = np.empty(out.size), rows(problem), 0.0
        for i in range(n):
            _whole_gradient(problem, i, np.uint64(0), x, g)
            size = 0.0
            for j in range(g.size):
                size += abs(g[j])
            total += size * math.sqrt(norm2(g))
        gradient(problem, x, out)
        return total / n


@registers
class Masked(NamedTuple):
    """A vector that accepts additions only in the coordinates that the mask of ``stream`` keeps."""

    out: np.ndarray
    stream: np.uint64
    drop: float

    def add_entry(v, j, amount):
        if uniform(v.stream, j) >= v.drop:
            add_entry(v.out, j, amount)


@kernel
def _add_l2(problem, weight, x, out):
    l2 = regularization(problem)
    if l2 != 0.0:
        for j in range(dimension(problem)):
            add_entry(out, j, weight * (l2 * entry(x, j)))


@kernel
def _whole_gradient(problem, i, stream, x, g):
    """``g`` = the gradient of f_i at x, with the l2 term."""
    for j in range(g.size):
        g[j] = 0.0
    add_loss_gradient(problem, i, stream, 1.0, x, g)
    _add_l2(problem, 1.0, x, g)


# --- the problem ------------------------------------------------------------------------------------------------------


@setting
class Diversified(NamedTuple):
    """A finite sum whose gradients are changed by a mechanism; made by `diversified`.

    f is that of ``problem``.  ``regularization`` is 0, since the l2 term is part of every gradient.

    Parameters
    ----------
    problem : Logistic, Ridge or Softmax
        The problem whose gradients are changed.
    mechanism : DropConnect, Langevin or QuantizedGradients
        The mechanism that is applied to them.
    shared : bool
        Whether repeats of a row in a worker's batch share their noise; otherwise every draw has its own.
    """

    problem: Any
    mechanism: NamedTuple
    shared: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.problem.n

    @property
    def d(self) -> int:
        """Length of x."""
        return self.problem.d

    @property
    def b(self) -> np.ndarray:
        """Labels of the rows."""
        return self.problem.b

    @property
    def l2(self) -> float:
        """0: the l2 term is part of every gradient."""
        return 0.0

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32."""
        return self.problem.dtype

    @property
    def name(self) -> str:
        """Name for tables and records."""
        return f"{self.problem.name}, {self.mechanism}"

    def __repr__(self) -> str:
        return f"Diversified({self.problem!r}, {self.mechanism!r}, shared={self.shared})"

    def rows(problem):
        return rows(problem.problem)

    def dimension(problem):
        return dimension(problem.problem)

    def regularization(problem):
        return 0.0

    def value(problem, x):
        return value(problem.problem, x)

    def gradient(problem, x, out):
        gradient(problem.problem, x, out)
        factor = kept(problem.mechanism)
        if factor != 1.0:
            for j in range(out.size):
                out[j] *= factor

    def moments(problem, x, out):
        moment, factor = disturbed_moments(problem.mechanism, problem.problem, x, out), kept(problem.mechanism)
        if factor != 1.0:
            for j in range(out.size):
                out[j] *= factor
        return moment

    def gradient_noise(problem):
        return PER_STEP if problem.shared else PER_DRAW

    def add_loss_gradient(problem, i, stream, weight, x, out):
        own = derive(stream, i) if problem.shared else np.uint64(stream)
        disturb(problem.mechanism, problem.problem, i, own, weight, x, out)

    def without_mechanism(problem) -> Any:
        return problem.problem

    def rows_between(problem, first: int, last: int) -> Any:
        part = rows_between(problem.problem, first, last)
        return None if part is None else problem._replace(problem=part)

    def lipschitz(problem, comm: Any = None) -> float:
        return lipschitz(problem.problem, comm)

    def strong_convexity(problem) -> float:
        return strong_convexity(problem.problem)

    def batch_bound(problem, x: ArrayLike, comm: Any = None) -> float:
        moment, _ = second_moment_and_norm2(problem, x, comm)
        plain, squared = second_moment_and_norm2(problem.problem, x, comm)
        if plain == 0.0:  # only noise, if any
            return float(rows(problem)) if problem.shared and moment > 0.0 else math.inf
        factor = max(1.0, moment / (kept(problem.mechanism) ** 2 * plain))
        n = rows(problem) if problem.shared else None
        return mechanism_batch_bound(max(1.0, plain / squared) if squared > 0.0 else math.inf, factor, n)


def diversified(problem: Any, mechanism: Any, shared: bool = False) -> Diversified:
    """The same f, with stochastic gradients that are changed by a diversity-inducing mechanism.

    The mechanism is applied to the gradient of f_i with its l2 term.  ``value``, ``solve``, ``lipschitz`` and
    ``strong_convexity`` are those of ``problem``.  ``gradient`` is the expected stochastic gradient: (1 - p) grad f for
    DropConnect, which is biased by that factor, and grad f for the others.  ``second_moment`` is the mean of
    E||g_i||^2, and ``batch_bound`` is the quantity that replaces B_D.

    Parameters
    ----------
    problem : Logistic, Ridge or Softmax
        The problem whose gradients are changed.
    mechanism : DropConnect, Langevin or QuantizedGradients
        The mechanism that is applied to them.
    shared : bool
        Whether repeats of a row in a worker's batch share their noise, as in Yin et al. (2018), who draw it once for
        each data point and iteration. Otherwise every draw has its own.

    Returns
    -------
    Diversified

    Raises
    ------
    TypeError
        If the problem is not a finite sum, or the mechanism is invalid.

    Examples
    --------
    >>> from theory.problems import ridge, second_moment, batch_bound
    >>> problem = ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0)
    >>> noisy = diversified(problem, Langevin(2.0))
    >>> second_moment(noisy, [0.0, 0.0])  # 12.5 + 2 * 4
    20.5
    >>> batch_bound(problem, [0.0, 0.0]), batch_bound(diversified(problem, DropConnect(0.5)), [0.0, 0.0])
    (2.0, 4.0)
    """
    finite = hasattr(problem, "n") and problem.n > 0 and not isinstance(problem, Diversified)
    require(finite, "problem", type(problem).__name__, "a sum over rows, from logistic, ridge or softmax", TypeError)
    require(
        disturb.implements(type(mechanism)),
        "mechanism",
        mechanism,
        "DropConnect(drop), Langevin(deviation) or QuantizedGradients()",
        TypeError,
    )
    require(isinstance(shared, (bool, np.bool_)), "shared", shared, "True or False", TypeError)
    return Diversified(problem, mechanism, bool(shared))
