"""Gradient diversity at a point, between two points or along a trajectory: exact, or from samples with an interval."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import bounds
from ..core import generic, kernel, require
from ..core.arguments import is_whole
from ..core.random import derive, integer, key
from ..problems import base
from ..problems.constants import batch_bound, second_moment, second_moment_and_norm2
from ..problems.evaluate import check_same, mean_over_rows, point
from ..problems.linear import margin, norm2, slope
from ..problems.matrix import add_row, row_norm2
from ..problems.multinomial import Softmax, add_outer, residuals, scores
from .intervals import LEVEL, Interval, exactly, mean_interval, quantile

SYMBOLS = {"diversity": "Delta", "batch_bound": "B_D", "second_moment": "M^2", "gradient_squared": "||g||^2"}
GROUPS = 64  # of samples: an interval is computed from their independent estimates


class Diversity(NamedTuple):
    """Result of `diversity`.

    Attributes
    ----------
    diversity : float
        Delta = sum ||g_i||^2/||sum g_i||^2 = B_D/n; NaN if gradients are random and there is no n.
    batch_bound : float
        B_D = M^2/||g||^2, at least 1; infinite where the mean gradient g is 0.
    second_moment : float
        M^2 = (1/n) sum ||g_i||^2.
    gradient_squared : float
        ||g||^2, g = (1/n) sum g_i.
    intervals : DiversityIntervals
        The same four numbers as `Interval`, of width 0 if computed exactly.
    """

    diversity: float
    batch_bound: float
    second_moment: float
    gradient_squared: float
    intervals: DiversityIntervals

    def __str__(self) -> str:
        lines = []
        for name, symbol in SYMBOLS.items():
            interval = getattr(self.intervals, name)
            shown = str(interval) if interval.samples else f"{interval.estimate:.6g}"
            lines.append(f"{name:<18}{symbol:<9}{shown}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


class DiversityIntervals(NamedTuple):
    """An `Interval` for each of the four numbers of `Diversity`.

    Attributes
    ----------
    diversity : Interval
        Of Delta, as in `Diversity`.
    batch_bound : Interval
        Of B_D.
    second_moment : Interval
        Of M^2.
    gradient_squared : Interval
        Of ||g||^2.
    """

    diversity: Interval
    batch_bound: Interval
    second_moment: Interval
    gradient_squared: Interval


class DiversityAlong(NamedTuple):
    """The four numbers of `Diversity` at every point of a trajectory, each an array.

    Attributes
    ----------
    diversity : ndarray
        At each point Delta, as in `Diversity`.
    batch_bound : ndarray
        At each point B_D.
    second_moment : ndarray
        At each point M^2.
    gradient_squared : ndarray
        At each point ||g||^2.
    """

    diversity: np.ndarray
    batch_bound: np.ndarray
    second_moment: np.ndarray
    gradient_squared: np.ndarray


# --- one row ----------------------------------------------------------------------------------------------------------


def _difference_linear(problem, i, x, y, two, weight, out, scratch):
    m = margin(problem, i, x)
    s = slope(problem, i, m)
    if two:
        far = margin(problem, i, y)
        s -= slope(problem, i, far)
        m -= far
    add_row(problem.A, i, weight * s, out)
    return s * s * row_norm2(problem.A, i) + 2.0 * base.regularization(problem) * s * m


difference = generic(
    "difference",
    "difference(problem, i, x, y, two, weight, out, scratch) -> float: for the gradient g of loss_i at x (less that at "
    "y if `two`): out += weight * g, without the l2 term; returns ||g + l2 u||^2 - ||l2 u||^2, u = x (- y).  `scratch` "
    "has 4 rows of scratch_size(problem) numbers.",
    _difference_linear,
)
scratch_size = generic("scratch_size", "scratch_size(problem) -> int: row length of `scratch`.", lambda problem: 0)


@scratch_size.register(Softmax)
def _(problem):
    return problem.classes


@difference.register(Softmax)
def _(problem, i, x, y, two, weight, out, scratch):
    z, r, far, s = scratch[0], scratch[1], scratch[2], scratch[3]
    scores(problem, i, x, z)
    r[:] = z
    residuals(r, problem.b[i])
    if two:
        scores(problem, i, y, far)
        s[:] = far
        residuals(s, problem.b[i])
        for k in range(z.size):
            z[k] -= far[k]
            r[k] -= s[k]
    size2, along = 0.0, 0.0
    for k in range(z.size):
        size2 += r[k] * r[k]
        along += r[k] * z[k]  # <a r', X> = r' X'a
        r[k] *= weight
    add_outer(problem.A, i, r, out)
    return size2 * row_norm2(problem.A, i) + 2.0 * base.regularization(problem) * along


# --- sums over rows ---------------------------------------------------------------------------------------------------


@kernel
def _exact(problem, x, y, two, out, scratch):
    """M^2; out = the mean of the gradients (differences, if `two`)."""
    n, l2, total, size2 = base.rows(problem), base.regularization(problem), 0.0, 0.0
    for j in range(out.size):
        u = np.float64(x[j]) - (y[j] if two else 0.0)
        out[j] = l2 * u
        size2 += u * u
    for i in range(n):
        total += difference(problem, i, x, y, two, 1.0 / n, out, scratch)
    return total / n + l2 * l2 * size2


@kernel
def _sampled(problem, x, y, two, stream, squares, products, out, scratch):
    """Row k of ``squares``: ||g||^2 of the draws of group k; ``products[k]``: the mean <g, g'> over its pairs."""
    n, l2 = base.rows(problem), base.regularization(problem)
    size2, size = 0.0, squares.shape[1]
    for j in range(out.size):
        u = np.float64(x[j]) - (y[j] if two else 0.0)
        size2 += u * u
    for k in range(squares.shape[0]):
        for j in range(out.size):
            out[j] = size * l2 * (np.float64(x[j]) - (y[j] if two else 0.0))
        total = 0.0
        for b in range(size):
            i = integer(stream, k * size + b, n)
            squares[k, b] = difference(problem, i, x, y, two, 1.0, out, scratch) + l2 * l2 * size2
            total += squares[k, b]
        products[k] = (norm2(out) - total) / (size * (size - 1.0))


@kernel
def _sampled_whole(problem, x, stream, squares, products, out, one):
    """Like `_sampled`, for gradients that are drawn or disturbed: each is formed, at cost O(d)."""
    n, l2, size = base.rows(problem), base.regularization(problem), squares.shape[1]
    rows, noise = derive(stream, 0), derive(stream, 1)
    for k in range(squares.shape[0]):
        total, shared = 0.0, derive(noise, k)
        out[:] = 0.0
        for b in range(size):
            i = integer(rows, k * size + b, n) if n > 0 else 0
            own = shared if base.gradient_noise(problem) == base.PER_STEP else derive(noise, k * size + b)
            for j in range(one.size):
                one[j] = l2 * x[j]
            base.add_loss_gradient(problem, i, own, 1.0, x, one)
            for j in range(one.size):
                out[j] += one[j]
            squares[k, b] = norm2(one)
            total += squares[k, b]
        products[k] = (norm2(out) - total) / (size * (size - 1.0))


# --- a ratio of two means ---------------------------------------------------------------------------------------------


def _at_least_one(tops: Any, bottoms: Any, level: float) -> Interval:
    """Fieller's interval for E[top]/E[bottom], known to be at least 1; open to infinity if E[bottom] may be 0.

    The values of the ratio rho for which a t-test on the pairs does not reject E[top - rho bottom] = 0.
    """
    K, top, bottom = tops.size, float(tops.mean()), float(bottoms.mean())
    (v11, v12), (_, v22) = np.cov(tops, bottoms) / K
    q = quantile(level, K - 1) ** 2
    a, b, c = bottom**2 - q * v22, top * bottom - q * v12, top**2 - q * v11  # a rho^2 - 2 b rho + c <= 0
    root = math.sqrt(max(0.0, b * b - a * c))
    estimate = max(1.0, top / bottom) if bottom > 0.0 else math.inf
    low, high = 1.0, math.inf
    if a > 0.0 and bottom > 0.0:
        low, high = (b - root) / a, (b + root) / a
    elif a < 0.0 < c:  # all rho but those between a negative and a positive root
        low = (b - root) / a
    low = max(1.0, float(low))
    return Interval(estimate, min(low, estimate), max(float(high), estimate), level, K)


# --- the public functions ---------------------------------------------------------------------------------------------


def _found(n: Any, moment: Interval, squared: Interval, bound: Interval) -> Diversity:
    share = bound.scaled(1.0 / n) if n else exactly(math.nan)
    intervals = DiversityIntervals(share, bound, moment, squared)
    return Diversity(share.estimate, bound.estimate, moment.estimate, squared.estimate, intervals)


def _ratio(moment: float, squared: float) -> float:
    return bounds.batch_bound(max(moment, squared), squared)  # rounding may put M^2 below ||g||^2


def diversity(
    problem: Any,
    x: ArrayLike,
    other: Any = None,
    *,
    samples: Any = None,
    seed: int = 0,
    level: float = LEVEL,
    comm: Any = None,
) -> Diversity:
    """Gradient diversity at x, or of the differences of gradients between two points.

    With f_i including its l2 term and g_i = grad f_i(x), or grad f_i(x) - grad f_i(other):
    Delta = sum ||g_i||^2/||sum g_i||^2 and B_D = n Delta = M^2/||g||^2.

    Parameters
    ----------
    problem : Logistic, Ridge, Softmax, Quadratic, SaturatingQuadratic or Diversified
        For a Diversified problem, the numbers of its stochastic gradients: M^2 = (1/n) sum E||g_i||^2, and B is that of
        :func:`theory.bounds.mechanism_batch_bound`; ``gradient_squared`` is then M^2/B, the mean product of two draws.
    x : array_like, shape (d,)
        The point.
    other : array_like, shape (d,), optional
        A second point: the differential version, for problems with rows and without a mechanism.
    samples : int, optional
        Estimate from this many draws with replacement, at least 128; exact if omitted.
    seed : int
        Seed of the draws.
    level : float
        Level of each interval.
    comm : mpi4py communicator, optional
        Each rank takes its rows; all call with the same arguments and get results that are bit-identical to those
        without ``comm``. Samples, which are few, are drawn on every rank.

    Returns
    -------
    Diversity
        With intervals.  From samples, that of M^2 is the central limit theorem's; those of ||g||^2 and B_D (and of M^2
        if repeats of a row share their noise) are t-intervals from 64 independent groups, B_D's by Fieller's method,
        which gives infinity if ||g|| = 0 is not rejected.  Close to a stationary point in few dimensions the groups'
        estimates are skewed, and at a ``level`` very close to 1 the coverage of these two is below ``level``.

    Raises
    ------
    ValueError
        If a point has the wrong shape or contains NaN or Inf; if ``samples`` or ``level`` is outside its domain.
    TypeError
        If gradients are random or changed by a mechanism and ``other`` is given.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> found = diversity(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    >>> found.diversity, found.batch_bound, found.second_moment, found.gradient_squared
    (1.0, 2.0, 12.5, 6.25)
    """
    x, n = point(problem, x), int(base.rows(problem))
    whole = base.gradient_noise(problem) != base.NO_NOISE
    if other is not None:
        require(not whole, "other", type(problem).__name__, "None: its gradients are drawn", TypeError)
        other = point(problem, other)
        wider = np.promote_types(x.dtype, other.dtype)
        x, other = x.astype(wider), other.astype(wider)
    if samples is not None:
        return _from_samples(problem, x, other, n, samples, seed, level, whole)
    if other is not None:
        check_same(comm, "problem, x and other", problem, x, other)
        scratch = np.empty((4, scratch_size(problem)))

        def mean(part, out):
            out[-1] = _exact(part, x, other, True, out[:-1], scratch)

        found = mean_over_rows(problem, x.size + 1, mean, comm)
        moment, squared = float(found[-1]), float(found[:-1] @ found[:-1])
    elif whole and n > 0:
        moment, bound = second_moment(problem, x, comm), batch_bound(problem, x, comm)
        return _found(n, exactly(moment), exactly(moment / bound), exactly(bound))
    else:
        moment, squared = second_moment_and_norm2(problem, x, comm)
    return _found(n, exactly(moment), exactly(squared), exactly(_ratio(moment, squared)))


def _from_samples(
    problem: Any, x: Any, other: Any, n: Any, samples: Any, seed: Any, level: Any, whole: Any
) -> Diversity:
    good = is_whole(samples) and samples >= 2 * GROUPS
    require(good, "samples", samples, f"None, or an integer, at least {2 * GROUPS}")
    require(0 < level < 1, "level", level, "a number in (0, 1)")
    stream, two = np.uint64(key(seed, "diversity")), other is not None
    squares, products, out = np.empty((GROUPS, int(samples) // GROUPS)), np.empty(GROUPS), np.empty(x.size)
    if whole:
        _sampled_whole(problem, x, stream, squares, products, out, np.empty(x.size))
    else:
        scratch = np.empty((4, scratch_size(problem)))
        _sampled(problem, x, other if two else x, two, stream, squares, products, out, scratch)
    # within a group, repeats of a row may share their noise: then only the means of the groups are independent
    shared = base.gradient_noise(problem) == base.PER_STEP
    # rows of one length have gradients of one length, so equal samples may be certain
    moment = mean_interval(squares.mean(axis=1) if shared else squares.reshape(-1), level, certain=True)
    found = mean_interval(products, level, certain=True)
    low, high, estimate = (max(0.0, number) for number in (found.low, found.high, found.estimate))
    squared = found._replace(low=low, high=high, estimate=estimate)  # the estimated quantities are not negative
    return _found(n, moment, squared, _at_least_one(squares.mean(axis=1), products, level))


def diversity_along(problem: Any, points: Any, *, comm: Any = None) -> DiversityAlong:
    """Gradient diversity at many points, such as the iterates of a run.

    Parameters
    ----------
    problem : Logistic, Ridge, Softmax, Quadratic or SaturatingQuadratic
        The problem.
    points : array_like, shape (k, d)
        The points, one per row.
    comm : mpi4py communicator, optional
        Each rank takes its rows of the data, as in `diversity`.

    Returns
    -------
    DiversityAlong
        Four arrays of length k.

    Raises
    ------
    ValueError
        If a point has the wrong shape or contains NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> problem = ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0)
    >>> diversity_along(problem, [[0.0, 0.0], [2.0, 3.0], [3.0, 3.0]]).batch_bound
    array([2., 2., 2.])
    """
    points = np.asarray(points)
    require(points.ndim == 2, "points", f"shape {points.shape}", f"shape (k, {problem.d}), a point a row")
    found = np.array([diversity(problem, x, comm=comm)[:4] for x in points]).reshape(-1, 4)
    return DiversityAlong(*found.T.copy())
