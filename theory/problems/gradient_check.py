"""Whether a gradient is that of its function: by differences, at a point or along one random direction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from ..core.advice import advise
from ..core.arguments import real_array, whole_number
from .base import check_problem, dimension
from .evaluate import gradient, value
from .numpy_function import FunctionProblem

DIRECTIONS = ("all", "random")
STEP = float(np.finfo(float).eps) ** (1.0 / 3.0)  # of central differences: errors of truncation and rounding are alike
WRONG = 1e-3  # relative difference of two slopes above which a gradient is taken to be wrong
NEARBY = 1e-2  # a second point, as the first may be a kink


class WrongGradientWarning(UserWarning):
    """The gradient that was given is not that of the function, along a random direction at the start of a run.

    Examples
    --------
    >>> issubclass(WrongGradientWarning, UserWarning)
    True
    """


def check_gradient(problem: Any, x0: ArrayLike | None = None, *, direction: str = "all", seed: int = 0) -> float:
    """The distance of a problem's gradient from central differences of its value, as ``scipy.optimize.check_grad``.

    Parameters
    ----------
    problem : problem
        One whose gradient is known: not drawn.
    x0 : array_like, shape (d,), optional
        The point; by default a random one, as 0 is often a kink or a point of symmetry.
    direction : {"all", "random"}
        Every coordinate, or one random direction of norm 1: two values in place of 2 d.
    seed : int
        Of the random numbers.

    Returns
    -------
    float
        The 2-norm of the difference; along one direction its magnitude there.  A right gradient of a smooth function
        has about 1e-10 of the values' size.

    Raises
    ------
    ValueError
        If x0 does not fit, or the gradients are drawn.

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
    """The two slopes, where they differ by more than rounding; None also where the function cannot be evaluated."""
    try:
        stated, found = _slopes(problem, x, gradient(problem, x), v)
        rounding = 100.0 * np.finfo(float).eps / STEP * abs(value(problem, x))
    except Exception:  # outside its domain: a run that does not go there needs no such value
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
