"""Evaluation of problems from Python at checked points, by means over blocks of rows; and checks of gradients.

Means are computed in blocks that are added in a fixed order: bit-identical results alone and on any ranks.  Points are
checked, since kernels check neither length nor type.  A gradient is compared with differences of its function, at a
point or along one random direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import python_generic, require
from ..core.arguments import advise, real_array, whole_number
from ..core.digests import digest
from ..core.interrupts import IN_ROUNDS, wait
from ..core.private_files import map_of
from ..core.random import derive, key
from . import base
from .base import check_problem, dimension, rows
from .matrix import CSR, some_rows
from .numpy_function import FunctionProblem

# --- Means over all rows ---------------------------------------------------------------------------------------------

BLOCK = 1024  # rows; more where there would be too many blocks

MOST = 64  # blocks, and thus the number of ranks that share the work

LARGE = 2**24  # entries of a matrix: from there on f is computed in blocks

SAMPLED = 1000  # entries of an array by which ranks compare it


@python_generic
def rows_between(problem: Any, first: int, last: int) -> Any:
    """The problem with only the rows from ``first`` to before ``last``, nothing copied; None if it has no such parts.

    Its f is the mean of the same f_i, each with the whole l2 term.  A class must register its own ``rows_between``: of
    other classes it is not known which arrays have an entry for each row.
    """
    return None


def part_of_rows(problem: Any, first: int, last: int) -> Any:
    """`rows_between` for a problem whose only arrays with an entry for each row are A and b."""
    return problem._replace(A=some_rows(problem.A, first, last), b=problem.b[first:last])


def is_large(problem: Any) -> bool:
    """Whether its matrix is so large that f is always computed in blocks, with ranks by all of them."""
    A = getattr(problem, "A", None)
    entries = A.data if isinstance(A, CSR) else A
    return isinstance(entries, np.ndarray) and entries.size >= LARGE


class RowBlocks:
    """Blocks of consecutive rows, shared out among ranks in their order, and means over all rows.

    Means are summed up a binary tree whose leaves are the blocks: the bits depend neither on the number of ranks nor on
    whether there are any.  A rank reads its own rows only, and sends and receives a few vectors.

    Parameters
    ----------
    n : int
        Number of rows.
    whole : object
        The object with all rows.
    part : callable
        ``part(first, last)`` returns an object with only these rows, or None if there is none.  Then there is one
        block, which every rank has.
    comm : mpi4py communicator, optional
        Its ranks share the blocks.

    Attributes
    ----------
    parts : dict of int to object
        The blocks here, by their numbers.
    """

    def __init__(self, n: int, whole: Any, part: Callable[[int, int], Any], comm: Any = None) -> None:
        count = min(MOST, -(-n // BLOCK))
        if count < 2 or part(0, 1) is None:
            count, comm = 1, None
        self.comm, self.edges = comm, [k * n // count for k in range(count + 1)]
        ranks, rank = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
        runs = [r * count // ranks for r in range(ranks + 1)]
        self._nodes = [_nodes(0, count, *run) for run in zip(runs, runs[1:], strict=False)]
        mine = range(runs[rank], runs[rank + 1])
        self.parts = {k: part(self.edges[k], self.edges[k + 1]) if count > 1 else whole for k in mine}
        self._mine, self._root = self._nodes[rank], (0, count)

    def rows(self, k: int) -> slice:
        """The rows of block k among those here."""
        first = self.edges[min(self.parts)]
        return slice(self.edges[k] - first, self.edges[k + 1] - first)

    def mean(self, length: int, fill: Callable[[int, Any, np.ndarray], object]) -> np.ndarray:
        """The mean over all rows of a vector for each: ``fill(k, part, out)`` adds the mean over block k to zeros."""
        n = self.edges[-1]

        def leaf(k: int) -> np.ndarray:
            out = np.zeros(length)
            fill(k, self.parts[k], out)
            out *= (self.edges[k + 1] - self.edges[k]) / n
            return out

        found = {node: _sum(*node, {}, leaf) for node in self._mine}
        if self.comm is None:
            return found[self._root]
        ranks = self.comm.Get_size()
        width = -(-length // ranks)  # of the piece that a rank adds up
        mine, theirs = np.zeros(ranks * width), np.empty((ranks, width))
        pieces: dict[tuple[int, int], np.ndarray] = {}
        for turn in range(max(map(len, self._nodes))):
            mine[:length] = found.pop(self._mine[turn]) if turn < len(self._mine) else 0.0
            wait(self.comm.Ialltoall(mine, theirs), IN_ROUNDS)
            pieces |= {nodes[turn]: theirs[r].copy() for r, nodes in enumerate(self._nodes) if turn < len(nodes)}
        whole = np.empty((ranks, width))
        wait(self.comm.Iallgather(_sum(*self._root, pieces, None), whole), IN_ROUNDS)
        return whole.reshape(-1)[:length]


def _nodes(low: int, high: int, first: int, last: int) -> list[tuple[int, int]]:
    """The fewest nodes of the tree below (low, high) that have the leaves from ``first`` to before ``last``."""
    if first >= last or high <= first or last <= low:
        return []
    if first <= low and high <= last:
        return [(low, high)]
    middle = (low + high) // 2
    return _nodes(low, middle, first, last) + _nodes(middle, high, first, last)


def _sum(low: int, high: int, known: dict[tuple[int, int], np.ndarray], leaf: Any) -> np.ndarray:
    """The sum of a node: known, or that of its children."""
    if (low, high) in known:
        return known[low, high]
    if high - low == 1:
        return leaf(low)
    middle = (low + high) // 2
    total = _sum(low, middle, known, leaf)
    total += _sum(middle, high, known, leaf)
    return total


def blocks_of(problem: Any, comm: Any = None) -> RowBlocks:
    """The blocks of a problem; a single one if it has no parts."""
    return RowBlocks(int(rows(problem)), problem, lambda first, last: rows_between(problem, first, last), comm)


def mean_over_rows(problem: Any, length: int, mean: Callable, comm: Any = None) -> np.ndarray:
    """The mean over all rows of a vector for each row.

    Parameters
    ----------
    problem : problem
        The problem.
    length : int
        Length of the vectors.
    mean : callable
        ``mean(part, out)`` writes the mean over the rows of a part of the problem to ``out``.
    comm : mpi4py communicator, optional
        Each rank takes its blocks of rows.  Without it, or if the problem has no parts, all are taken here.

    Returns
    -------
    ndarray, shape (length,)
    """
    return blocks_of(problem, comm).mean(length, lambda k, part, out: mean(part, out))


def check_same(comm: Any, what: str, problem: Any, *points: Any) -> None:
    """Raise ``ValueError`` on all ranks unless they were given the same problem and points."""
    if comm is None:
        return
    mine = np.frombuffer(bytes.fromhex(digest((_sample(problem), *points))), np.uint8)
    all_of_them = np.empty((comm.Get_size(), mine.size), np.uint8)
    wait(comm.Iallgather(mine, all_of_them))
    require(bool((all_of_them == all_of_them[0]).all()), what, "other values on some ranks", "the same on all ranks")


def _sample(value):
    """A value with about a thousand entries of each large array, in place of all."""
    if isinstance(value, np.ndarray) and map_of(value) is not None:
        return value  # a digest of it is known
    if isinstance(value, np.ndarray):
        return value.shape, value.reshape(-1)[:: max(1, value.size // SAMPLED)]
    if isinstance(value, tuple):
        return type(value).__name__, *(_sample(part) for part in value)
    return getattr(value, "__qualname__", value)  # of a function, its name


# --- Evaluation of problems from Python ------------------------------------------------------------------------------


def point(problem: Any, x: ArrayLike) -> np.ndarray:
    """A checked copy of x, in the problem's type, or in float64 if x is float64."""
    base.check_problem(problem)
    x = np.asarray(x)
    require(x.dtype.kind in "fiu", "x", f"type {x.dtype}", "real numbers")
    require(x.shape == (problem.d,), "x", f"shape {x.shape}", f"shape ({problem.d},), one number for each column")
    require(bool(np.isfinite(x).all()), "x", "NaN or Inf", "finite numbers")
    narrow = x.dtype == np.float32 and problem.dtype == np.float32
    return np.array(x, dtype=np.float32 if narrow else np.float64, order="C")


def value(problem: Any, x: ArrayLike) -> float:
    """f(x), with the L2 term.

    Parameters
    ----------
    problem : problem
        The problem.
    x : array_like, shape (d,)
        The point.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If x has the wrong shape, or contains NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> value(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    6.25
    """
    return float(base.value(problem, point(problem, x)))


def gradient(problem: Any, x: ArrayLike) -> np.ndarray:
    """Full gradient of f at x, with the L2 term.

    Parameters
    ----------
    problem : problem
        The problem.
    x : array_like, shape (d,)
        The point.

    Returns
    -------
    ndarray, shape (d,)
        float32 if both x and the problem are, else float64.

    Raises
    ------
    ValueError
        If x has the wrong shape, or contains NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> gradient(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0.0, 0.0])
    array([-1.5, -2. ])
    """
    x = point(problem, x)
    out = np.empty_like(x)
    base.gradient(problem, x, out)
    return out


def sample_gradient(problem: Any, i: int, x: ArrayLike, *, seed: int = 0) -> np.ndarray:
    """Gradient of f_i at x, with the L2 term, where f is the mean of f_0 .. f_{n-1}.

    Parameters
    ----------
    problem : problem
        The problem.
    i : int
        0 to n - 1.  For a Quadratic (saturating or not), whose gradients are random, it is the number of the draw.
    x : array_like, shape (d,)
        The point.
    seed : int
        Seed of the draws of a Quadratic; unused for other problems.

    Returns
    -------
    ndarray, shape (d,)

    Raises
    ------
    ValueError
        If i is not a row, or x has the wrong shape or contains NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> sample_gradient(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), 1, [0.0, 0.0])
    array([ 0., -4.])
    """
    return batch_gradient(problem, [i], x, seed=seed)


def batch_gradient(problem: Any, indices: ArrayLike, x: ArrayLike, *, seed: int = 0) -> np.ndarray:
    """Mean of the gradients of f_i at x over the given i, including repetitions, with the L2 term.

    Parameters
    ----------
    problem : Logistic, Ridge, Softmax, TwoLayer, Quadratic, SaturatingQuadratic or Diversified
        The problem.
    indices : array_like of int
        At least one, each from 0 to n - 1.  For a Quadratic, the numbers of the draws.
    x : array_like, shape (d,)
        The point.
    seed : int
        Seed of the draws of a Quadratic and of the noise of a Diversified problem; unused for other problems.

    Returns
    -------
    ndarray, shape (d,)
        float32 if both x and the problem are, else float64.

    Raises
    ------
    ValueError
        If there are no indices, one is not a row, or x has the wrong shape or contains NaN or Inf.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> batch_gradient(ridge(([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0]), l2=0), [0, 1, 1, 1], [0.0, 0.0])
    array([-0.75, -3.  ])
    """
    x = point(problem, x)
    picked = np.asarray(indices)
    require(picked.ndim == 1 and picked.size > 0, "indices", f"shape {picked.shape}", "at least one row number")
    require(picked.dtype.kind in "iu", "indices", f"type {picked.dtype}", "integers")
    last = (problem.n or 2**63) - 1
    inside = (picked >= 0) & (picked <= last)
    require(bool(inside.all()), "indices", picked[~inside][:3].tolist(), f"row numbers from 0 to {last}")
    stream = key(seed, "sample_gradient")
    out = np.zeros_like(x)
    fresh = bool(problem.n) and base.gradient_noise(problem) == base.PER_DRAW  # the same noise wherever a row occurs
    for place, i in enumerate(picked):
        own = np.uint64(derive(stream, np.uint64(i)))
        own = np.uint64(derive(own, np.uint64(place))) if fresh else own
        base.add_loss_gradient(problem, int(i), own, 1.0 / picked.size, x, out)
    return out + (problem.l2 * x).astype(out.dtype)


@python_generic
def accuracy(problem: Any, x: ArrayLike) -> float:
    """Fraction of the rows that are classified correctly.

    Logistic problems predict by the side of the hyperplane a_i'x = 0; a margin of 0 predicts -1. Softmax and TwoLayer
    predict the class with the largest score; ties go to the lowest class.

    Parameters
    ----------
    problem : Logistic, NonconvexLogistic, Softmax or TwoLayer
        The problem with the rows, for example of held-out data, in which all classes must occur.
    x : array_like, shape (d,)
        The point.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If the problem has no classes.

    Examples
    --------
    >>> from theory.problems import logistic
    >>> accuracy(logistic(([[1.0, 0.0], [0.0, 1.0]], [1, -1]), l2=0), [1.0, 1.0])
    0.5
    """
    raise TypeError(f"accuracy: {type(problem).__name__} does not classify; use value, or a Logistic problem")


# --- Checks of gradients ---------------------------------------------------------------------------------------------

DIRECTIONS = ("all", "random")

STEP = float(np.finfo(float).eps) ** (1.0 / 3.0)  # central differences: equal errors of truncation and rounding

WRONG = 1e-3  # relative difference of two slopes above which a gradient is taken to be wrong

NEARBY = 1e-2  # a second point, as the first may be a kink


class WrongGradientWarning(UserWarning):
    """At the start of a run the given gradient differs from that of the function along a random direction.

    Examples
    --------
    >>> issubclass(WrongGradientWarning, UserWarning)
    True
    """


def check_gradient(problem: Any, x0: ArrayLike | None = None, *, direction: str = "all", seed: int = 0) -> float:
    """The distance of a problem's gradient from central differences of its value, like ``scipy.optimize.check_grad``.

    Parameters
    ----------
    problem : problem
        A problem whose gradient is not random.
    x0 : array_like, shape (d,), optional
        The point; by default a random point, as 0 is often a kink or a point of symmetry.
    direction : {"all", "random"}
        Compare every coordinate, or one random direction of norm 1, which takes two values in place of 2 d.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    float
        The 2-norm of the difference, or its magnitude along the direction. For a correct gradient of a smooth function
        it is about 1e-10 times the values.

    Raises
    ------
    ValueError
        If x0 has the wrong shape, or the gradients are random.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> right = th.function(lambda x: np.sum(x**2), lambda x: 2.0 * x, d=3)
    >>> wrong = th.function(lambda x: np.sum(x**2), lambda x: -2.0 * x, d=3)
    >>> th.check_gradient(right) < 1e-8, round(th.check_gradient(wrong, [1.0, 0.0, 0.0]), 6)
    (True, 4.0)
    """
    check_problem(problem)
    require(direction in DIRECTIONS, "direction", direction, " or ".join(map(repr, DIRECTIONS)))
    rng = np.random.Generator(np.random.Philox(whole_number("seed", seed, low=0)))
    d = int(dimension(problem))
    x = rng.standard_normal(d) if x0 is None else real_array("x0", x0)
    given = gradient(problem, x)
    known = bool(np.isfinite(given).all())
    require(known, "problem", problem, "one whose gradient is known and finite: only samples are drawn of this one")
    if direction == "random":
        return abs(float(np.subtract(*_slopes(problem, x, given, _unit(rng, d)))))
    axis, apart = np.zeros(d), np.empty(d)
    for j in range(d):
        axis[j] = 1.0
        apart[j] = np.subtract(*_slopes(problem, x, given, axis))
        axis[j] = 0.0
    return float(np.linalg.norm(apart))


def _unit(rng: np.random.Generator, d: int) -> np.ndarray:
    v = rng.standard_normal(d)
    return v / np.linalg.norm(v)


def _slopes(problem: Any, x: np.ndarray, given: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """The slope along v that a gradient states, and that of the values."""
    h = STEP * max(1.0, float(np.abs(x).max()))
    return float(given @ v), (value(problem, x + h * v) - value(problem, x - h * v)) / (2.0 * h)


def _differ(problem: Any, x: np.ndarray, v: np.ndarray) -> tuple[float, float] | None:
    """The two slopes if they differ by more than rounding; otherwise, or if the function cannot be evaluated, None."""
    try:
        stated, found = _slopes(problem, x, gradient(problem, x), v)
        rounding = 100.0 * np.finfo(float).eps / STEP * abs(value(problem, x))
    except Exception:  # outside the domain: a run that stays inside does not need this value
        return None
    same = abs(stated - found) <= WRONG * max(abs(stated), abs(found)) + rounding
    return None if same or not np.isfinite([stated, found]).all() else (stated, found)


def warn_of_wrong_gradient(problem: Any, x: np.ndarray) -> None:
    """Compare one random slope of a user's function at the start, and warn if it is wrong there and nearby."""
    if not isinstance(problem, FunctionProblem):
        return
    rng, x = np.random.Generator(np.random.Philox(0)), np.asarray(x, float)
    v, w = _unit(rng, x.size), _unit(rng, x.size)
    found = _differ(problem, x, v)
    if found is None or _differ(problem, x + NEARBY * max(1.0, float(np.abs(x).max())) * w, v) is None:
        return
    advise(
        f"gradient: along a random direction at the start its slope is {found[0]:.4g}, that of the values "
        f"{found[1]:.4g}: check the gradient (its sign, a factor, the mean over the rows); "
        "th.check_gradient(problem) compares all coordinates",
        WrongGradientWarning,
        depth=3,
    )
