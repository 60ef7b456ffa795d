"""A problem given by Python functions. Nothing is compiled for it, so it starts at once but runs slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core import registers, require
from ..core.arguments import real_array, whole_number
from ..core.random import generator
from ..core.settings import wants_two
from .base import add_loss_gradient, dimension, gradient, moments, regularization, rows, value

EXACT, DRAWN, ROW, ALL_ROWS = range(4)  # what the gradient function returns


@registers
class FunctionProblem(NamedTuple):
    """F and its stochastic gradients as Python functions; made by `function`.

    Parameters
    ----------
    f : callable
        ``f(x)``, without the l2 term.
    slope : callable
        The gradient function.
    kind : int
        The kind of its result: EXACT, DRAWN, ROW or ALL_ROWS.
    d, n : int
        Length of x, and number of losses; 0 where gradients are drawn.
    l2 : float
        Weight of (1/2)||x||^2.
    constants : dict
        Known constants of f: ``lipschitz``, ``strong_convexity``, ``minimizer``.
    dtype : dtype
        Type of x.
    """

    f: Callable
    slope: Callable
    kind: int
    d: int
    n: int
    l2: float
    constants: dict
    dtype: np.dtype = np.dtype(np.float64)

    def known(self, name: str) -> Any:
        """A constant of f, as the user states it."""
        found = self.constants.get(name)
        what = "an array" if name == "minimizer" else "a number"
        require(found is not None, name, None, f"{what}, given as function(..., {name}=...)")
        return found

    def row_gradient(self, i: int, stream: Any, x: np.ndarray) -> np.ndarray:
        """The gradient of loss i at x, or a drawn gradient, without the l2 term."""
        x = x.copy()  # the function may modify it
        if self.kind == EXACT:
            found = self.slope(x)
        elif self.kind == DRAWN:
            found = self.slope(x, generator(stream))
        else:
            found = self.slope(x, i) if self.kind == ROW else np.asarray(self.slope(x))[i]
        return _of_shape(found, (self.d,), "gradient")

    def mean_gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient of f at x, without the l2 term; NaN where gradients are drawn."""
        if self.kind == ALL_ROWS:
            return _of_shape(self.slope(x.copy()), (self.n, self.d), "gradient").mean(axis=0)
        if self.kind == DRAWN:
            return np.full(self.d, np.nan)
        return np.mean([self.row_gradient(i, 0, x) for i in range(max(1, self.n))], axis=0)

    def lipschitz(problem, comm: Any = None) -> float:
        return problem.known("lipschitz")

    def strong_convexity(problem) -> float:
        return problem.known("strong_convexity")

    def known_minimum(problem) -> tuple[np.ndarray, float, str] | None:
        x = problem.constants["minimizer"]
        return None if x is None else (x, problem.constants["strong_convexity"] or 0.0, "stated by the user")


def _of_shape(found: Any, shape: Any, name: str) -> np.ndarray:
    found = real_array(name, found)
    require(found.shape == shape, name, f"shape {found.shape}", f"a function that returns an array of shape {shape}")
    return found


def function(
    value: Callable,
    gradient: Callable,
    d: int,
    *,
    n: int = 0,
    l2: float = 0.0,
    lipschitz: float | None = None,
    strong_convexity: float | None = None,
    minimizer: Any = None,
) -> FunctionProblem:
    """Make a problem from Python functions, for every method, in the simulator and over MPI.

    Nothing is compiled for it: it starts at once, and a gradient takes about 20 µs more than the function.  At its
    start a run compares one random directional derivative with the values and warns if it differs;
    :func:`theory.check_gradient` compares all coordinates.

    Parameters
    ----------
    value : callable
        ``value(x)`` is f(x), without the l2 term.
    gradient : callable
        With n losses, ``gradient(x, i)`` is the gradient of loss i, or ``gradient(x)`` an array of shape (n, d) with
        all of them, and f is their mean; ``shards="contiguous"`` gives each of n workers its own loss.  With n = 0,
        ``gradient(x)`` is the gradient of f, or ``gradient(x, rng)`` a stochastic gradient, drawn with the
        ``numpy.random.Generator`` rng.
    d : int
        Length of x.
    n : int
        Number of losses; 0 for none.
    l2 : float
        Weight of (1/2)||x||^2, which is added to f.
    lipschitz, strong_convexity : float, optional
        L and mu of f with the l2 term, if known.
    minimizer : array_like, shape (d,), optional
        The minimizer of f, if known.

    Returns
    -------
    FunctionProblem
        The problem.

    Raises
    ------
    TypeError
        If ``value`` or ``gradient`` is not callable.
    ValueError
        If another argument is outside its domain; during a run, if a gradient has the wrong shape.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> A = np.array([[1.0, 2.0], [2.0, 0.0]])
    >>> problem = th.function(lambda x: np.mean((A @ x) ** 2) / 2.0, lambda x: A * (A @ x)[:, None], d=2, n=2)
    >>> method = th.ParallelSGD(step=th.Constant(0.25), shards="contiguous")
    >>> th.run(method, problem, workers=2, steps=2, x0=np.ones(2)).x
    array([-0.015625,  0.09375 ])
    """
    for name, given in (("value", value), ("gradient", gradient)):
        require(callable(given), name, given, "a function of x", TypeError)
    for name, number, low in (("d", d, 1), ("n", n, 0)):
        whole_number(name, number, low)
    require(0.0 <= l2 < np.inf, "l2", l2, "a finite number, at least 0")
    if minimizer is not None:
        minimizer = _of_shape(minimizer, (d,), "minimizer")
    both = wants_two(gradient)
    kind = (ROW if both else ALL_ROWS) if n else (DRAWN if both else EXACT)
    constants = {"lipschitz": lipschitz, "strong_convexity": strong_convexity, "minimizer": minimizer}
    return FunctionProblem(value, gradient, kind, int(d), int(n), float(l2), constants)


rows.in_python(FunctionProblem)(lambda problem: problem.n)
dimension.in_python(FunctionProblem)(lambda problem: problem.d)
regularization.in_python(FunctionProblem)(lambda problem: problem.l2)


@value.in_python(FunctionProblem)
def _(problem, x):
    found = np.asarray(problem.f(x))
    require(found.size == 1, "value", f"shape {found.shape}", "a function that returns a number")
    return float(found.reshape(())) + 0.5 * problem.l2 * float(x @ x)


@gradient.in_python(FunctionProblem)
def _(problem, x, out):
    out[:] = problem.mean_gradient(x) + problem.l2 * x


@add_loss_gradient.in_python(FunctionProblem)
def _(problem, i, stream, weight, x, out):
    out += weight * problem.row_gradient(int(i), stream, x)


@moments.in_python(FunctionProblem)
def _(problem, x, out):
    if problem.kind == DRAWN:  # their distribution is unknown
        out[:] = np.nan
        return np.nan
    found = [problem.row_gradient(i, i, x) + problem.l2 * x for i in range(max(1, problem.n))]
    out[:] = np.mean(found, axis=0)
    return float(np.mean([g @ g for g in found]))
