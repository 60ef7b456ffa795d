"""The interface of a problem, and the arguments of the functions that make problems.

A problem is a NamedTuple of arrays and numbers: f(x) = mean_i loss_i(x) + l2/2 ||x||^2.  Kernels and methods call
compiled generics, which each problem class registers.  ``x`` is an array or any vector of :mod:`theory.core.vectors`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import generic, python_generic, require
from ..core.arguments import advise, finite_number, real_array
from ..data import DataError, Dataset, make_dataset
from ..data.dataset import UNSCALED
from .matrix import frozen

# --- Arguments of the functions that make problems -------------------------------------------------------------------


def label_of(data: Dataset) -> np.ndarray:
    """Name and notes of the data as bytes, which kernels can be given: a line each."""
    # a string in a tuple makes Numba use its slow type lookup in every call of a kernel: 60 us instead of 2
    lines = (" ".join(text.splitlines()) for text in (data.name, *data.notes))
    return frozen(np.frombuffer("\n".join(lines).encode(), dtype=np.uint8), np.uint8)


def l2_of(l2: float | None, n: int) -> float:
    """The weight of (1/2)||x||^2: 1/n unless it is given, so that the term does not outweigh one row."""
    return 1.0 / n if l2 is None else finite_number("l2", l2)


class UnscaledDataWarning(UserWarning):
    """The scales of the columns differ by orders of magnitude, so no step size is suitable for all of them.

    Examples
    --------
    >>> issubclass(UnscaledDataWarning, UserWarning)
    True
    """


def dataset(data: Any, classes: bool = False, texts: int = 2) -> Dataset:
    """Checked data of a Dataset or a pair (X, y), with a warning if their columns have very different scales.

    The labels of a pair are numbers; with ``classes`` two labels are mapped to -1 and +1, also texts, and up to
    ``texts`` of these are numbered.
    """
    if not isinstance(data, Dataset):
        require(isinstance(data, tuple) and len(data) == 2, "data", type(data).__name__, "a Dataset or a pair (X, y)")
        X, y = data
        labels = y if classes else real_array("y", y, error=DataError)
        data = make_dataset(X, labels, "data", texts=texts)
        if not classes:
            data = Dataset(data.X, frozen(labels, np.float64), data.name, data.task)
    if data.scale_ratio >= UNSCALED:
        advise(
            f"{data.name}: columns differ by a factor of {data.scale_ratio:.1g} in scale, so a step that is "
            "short enough for the largest is far too short for the others; data.scaled() divides each by its largest "
            "magnitude",
            UnscaledDataWarning,
        )
    return data


# --- The interface of a problem --------------------------------------------------------------------------------------

NO_NOISE, PER_DRAW, PER_STEP = range(3)

rows = generic(
    "rows",
    "rows(problem) -> int: number n of losses; 0 where gradients are drawn, not picked from a sum.",
    interpreted=True,
)

dimension = generic("dimension", "dimension(problem) -> int: length d of x.", interpreted=True)

regularization = generic(
    "regularization", "regularization(problem) -> float: l2, the weight of (1/2)||x||^2.", interpreted=True
)

value = generic("value", "value(problem, x) -> float: f(x), with the l2 term.")

gradient = generic(
    "gradient", "gradient(problem, x, out) -> None: out = the full gradient at the array x, with the l2 term."
)

add_loss_gradient = generic(
    "add_loss_gradient",
    "add_loss_gradient(problem, i, stream, weight, x, out): out += weight * (gradient of loss_i at x), without the l2 "
    "term; touches only the support of loss_i. `stream` is a fresh key for problems whose gradients are drawn.",
)


def check_problem(problem: Any) -> None:
    """Reject an argument that is not a problem, such as the name of a data set."""
    got = problem if isinstance(problem, str) else type(problem).__name__
    allowed = "a problem, such as logistic(load_data('breast_cancer'))"
    require(dimension.implements(type(problem)), "problem", got, allowed, TypeError)


def is_drawn(problem: Any) -> bool:
    """Whether stochastic gradients are drawn around that of f, with noise of the known variance ``problem.noise``."""
    return rows(problem) == 0 and hasattr(problem, "noise")


SUPPORTS = ("row", "all")


def support(problem: Any) -> str | None:
    """Which coordinates `add_loss_gradient` changes, from the attribute ``support`` of the class; None: any of them.

    "row": those of row i of the matrix ``A`` and no others, each once (and each K times if x has K numbers for a
    column); "all": all of them, so that steps on sparse rows would save nothing.
    """
    said = getattr(problem, "support", None)
    require(said is None or said in SUPPORTS, "support", said, " or ".join(map(repr, SUPPORTS)))
    return said


@python_generic
def value_and_gradient(problem: Any, x: ArrayLike, out: np.ndarray) -> float:
    """f(x), with the full gradient at the array x written to ``out``; in one pass over the rows if a class has it."""
    gradient(problem, x, out)
    return float(value(problem, x))


@python_generic
def known_minimum(problem: Any) -> tuple[np.ndarray, float, str] | None:
    """A minimiser of f that is known in closed form, the strong convexity of f, and the reason; None otherwise.

    By default these are the attributes ``optimum`` and ``curvatures`` of a problem.
    """
    if not hasattr(problem, "optimum"):
        return None
    return problem.optimum.astype(np.float64), problem.curvatures[0], "the closed form"


@python_generic
def without_mechanism(problem: Any) -> Any:
    """The problem with the same f and undisturbed gradients: itself, unless it has a mechanism."""
    return problem


def _noise_of(problem):
    return PER_DRAW if rows(problem) == 0 else NO_NOISE


gradient_noise = generic(
    "gradient_noise",
    "gradient_noise(problem) -> int: the role of `stream` in add_loss_gradient: NO_NOISE, unused; PER_DRAW, "
    "a fresh key for every draw; PER_STEP, one key for a worker and step, so that what is derived from it and from the "
    "row is the same wherever a batch repeats a row.",
    _noise_of,
    interpreted=True,
)

moments = generic(
    "moments", "moments(problem, x, out) -> float: the mean of ||grad f_i(x)||^2 at the array x; out = grad f(x)."
)
