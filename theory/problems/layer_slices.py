"""Layers of x: the slices that a server rule or a compressor treats apart, the matrices in them, and where runs start.

The variable of most problems is one layer.  A network's has one for each matrix of weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import python_generic, require
from ..core.arguments import is_whole
from .base import check_problem, dimension
from .noisy_gradients import Diversified
from .proximal_point import Proximal


@python_generic
def layers(problem: Any) -> tuple[slice, ...]:
    """The slices of x that are its layers, in order; a single one unless the problem is made of several.

    Parameters
    ----------
    problem : problem
        Any.

    Returns
    -------
    tuple of slice
        Each begins where the last one ends; together they are all of x.  ``x[layer].reshape(shape)``, with the shapes
        from `layer_shapes`, are the matrices of a network.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.layers(th.quadratic(np.ones(5), covariance=0.0))
    (slice(0, 5, None),)
    >>> th.layers(th.two_layer((np.eye(3), [0, 1, 1]), width=4))
    (slice(0, 12, None), slice(12, 20, None))
    """
    check_problem(problem)
    return (slice(0, int(dimension(problem))),)


@python_generic
def layer_shapes(problem: Any) -> tuple[tuple[int, int], ...]:
    """Rows and columns of the matrix in each layer of x, which is stored row by row.

    Parameters
    ----------
    problem : problem
        By default a layer is a matrix with a single column; that of `softmax` has a row for each feature and a column
        for each class, and a network from `two_layer` has two matrices.

    Returns
    -------
    tuple of (int, int)
        In the order of `layers`.

    Examples
    --------
    >>> from theory.problems import ridge, softmax
    >>> layer_shapes(ridge((np.eye(3), [1.0, 2.0, 3.0]), l2=0)), layer_shapes(softmax((np.eye(3), [0, 1, 1]), l2=0))
    (((3, 1),), ((3, 2),))
    """
    return tuple((layer.stop - layer.start, 1) for layer in check_layers(layers(problem), int(dimension(problem))))


@python_generic
def start_of(problem: Any, seed: int) -> np.ndarray:
    """Where a run starts; a class of problems registers its own."""
    return np.zeros(int(dimension(problem)))


def initial_point(problem: Any, seed: int = 0) -> np.ndarray:
    """Where a run starts if it is not told: at 0, or at random weights where the problem is a network.

    Parameters
    ----------
    problem : problem
        Any.
    seed : int
        Of the weights; unused for other problems.  :func:`theory.run` passes its own.

    Returns
    -------
    ndarray of float64, shape (d,)

    Notes
    -----
    At 0 the gradient of a network vanishes, and the units of a layer would remain equal to each other.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> initial_point(ridge((np.eye(2), [1.0, 2.0]), l2=0))
    array([0., 0.])
    """
    check_problem(problem)
    good = is_whole(seed) and 0 <= int(seed) < 2**64
    require(good, "seed", seed, "an integer from 0 to 2**64 - 1")
    return start_of(problem, int(seed))


# A problem within a problem has its layers.
for ask in (layers, layer_shapes):
    ask.register(Diversified)(lambda problem, ask=ask: ask(problem.problem))
    ask.register(Proximal)(lambda problem, ask=ask: ask(problem.inner))
start_of.register(Diversified)(lambda problem, seed: start_of(problem.problem, seed))
start_of.register(Proximal)(lambda problem, seed: start_of(problem.inner, seed))


def slices_of(shapes: Any) -> tuple[slice, ...]:
    """Consecutive slices for matrices of these shapes."""
    ends = np.cumsum([rows * columns for rows, columns in shapes]).tolist()
    return tuple(slice(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True))


def check_layers(given: Any, d: int) -> tuple[slice, ...]:
    """The layers as slices with both ends; ``ValueError`` unless they divide d coordinates in order."""
    told = f"slices that divide the {d} coordinates in order, such as (slice(0, {d}),)"
    require(isinstance(given, (tuple, list)), "layers", given, told)
    found, end = [], 0
    for part in given:
        good = isinstance(part, slice) and (part.start or 0) == end and part.step in (None, 1)
        require(good, "layers", part, told)
        stop = d if part.stop is None else part.stop
        require(is_whole(stop) and end < stop <= d, "layers", part, told)
        found.append(slice(end, int(stop)))
        end = int(stop)
    require(end == d, "layers", given, told)
    return tuple(found)
