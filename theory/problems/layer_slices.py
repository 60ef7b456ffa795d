"""The layers of a problem: slices of x that a rule may treat one by one, such as the matrices of a network."""

from __future__ import annotations

from ..core import question, require
from .base import dimension
from .noisy_gradients import Diversified
from .proximal_point import Proximal

__all__ = ["check_layers", "layers"]


@question
def layers(problem) -> tuple[slice, ...]:
    """The slices of x that are its layers, in order; a single one unless the problem is made of several.

    Parameters
    ----------
    problem : problem
        Any; a class of its own says ``layers(problem)`` in its body.

    Returns
    -------
    tuple of slice
        Each begins where the last one ends; together they are all of x.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.layers(th.quadratic(np.ones(5), covariance=0.0))
    (slice(0, 5, None),)
    """
    return (slice(0, int(dimension(problem))),)


@layers.register
def _(problem: Diversified):
    return layers(problem.problem)


@layers.register
def _(problem: Proximal):
    return layers(problem.inner)


def check_layers(given, d: int) -> tuple[slice, ...]:
    """The layers as slices with both ends; ``ValueError`` unless they divide d coordinates in order."""
    told = f"slices that divide the {d} coordinates in order, such as (slice(0, {d}),)"
    found, end = [], 0
    for part in given:
        good = isinstance(part, slice) and (part.start or 0) == end and part.step in (None, 1)
        require(good, "layers", part, told)
        stop = d if part.stop is None else part.stop
        require(end < stop <= d, "layers", part, told)
        found.append(slice(end, stop))
        end = stop
    require(end == d, "layers", given, told)
    return tuple(found)
