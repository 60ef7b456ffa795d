"""Lloyd-Max quantizers of the normal law: the levels with the least mean squared error, and that error.

The levels are compiled into the kernels of :class:`theory.LloydMax`.
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

import numpy as np

from .closed_form import formula

MOST_BITS = 8
STEPS = 40  # of Newton's method; from the sixth on they are rounding errors
SETTLED = 1e-12  # the last of them, relative to the largest level


def _density(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _beyond(ends: np.ndarray) -> np.ndarray:
    """P(x > end) of a standard normal x; of 128 numbers, which do not deserve the half second of SciPy's import."""
    return np.array([0.5 * math.erfc(end / math.sqrt(2.0)) for end in ends])


def _cells(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends of the cells of the positive levels, their probabilities, and the densities at their ends."""
    ends = np.concatenate([[0.0], 0.5 * (levels[1:] + levels[:-1]), [np.inf]])
    return ends, -np.diff(_beyond(ends)), _density(ends)


def _tridiagonal_solution(lower: np.ndarray, middle: np.ndarray, upper: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gaussian elimination without pivots: row sums of the matrix are positive here, by log-concavity."""
    middle, right = middle.copy(), right.copy()
    for i in range(1, right.size):
        factor = lower[i - 1] / middle[i - 1]
        middle[i] -= factor * upper[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= middle[-1]
    for i in range(right.size - 2, -1, -1):
        right[i] = (right[i] - upper[i] * right[i + 1]) / middle[i]
    return right


@functools.cache
def _positive_levels(bits: int) -> np.ndarray:
    """Solve "each level is the mean of its cell" by Newton's method."""
    n = 2 ** (bits - 1)
    # for many levels their density is that of the normal law to the power 1/3, a normal law of variance 3
    levels = np.array([NormalDist(sigma=math.sqrt(3.0)).inv_cdf(0.5 + (i + 0.5) / (2 * n)) for i in range(n)])
    for _ in range(STEPS):
        ends, share, height = _cells(levels)
        mean = (height[:-1] - height[1:]) / share
        below = 0.5 * height[:-1] * (mean - ends[:-1]) / share  # derivative by the lower end, and of that by a level
        above = np.append(0.5 * height[1:-1] * (ends[1:-1] - mean[:-1]) / share[:-1], 0.0)
        below[0] = 0.0  # the lowest cell begins at 0
        step = _tridiagonal_solution(-below[1:], 1.0 - below - above, -above[:-1], mean - levels)
        levels = levels + step
        if np.abs(step).max() < 1e-14 * levels[-1]:
            break
    moved = float(np.abs(step).max())  # by the last step, which estimates what is left of the error
    if not moved < SETTLED * levels[-1]:
        raise ArithmeticError(f"the levels of {bits} bits still move by {moved:.3g} in step {STEPS} of Newton's method")
    levels.flags.writeable = False
    return levels


@formula(f"1 <= bits <= {MOST_BITS}")
def lloyd_max_levels(bits: int) -> np.ndarray:
    """Positive levels of the Lloyd-Max quantizer of the standard normal law.

    Setting: 2^bits levels, symmetric about 0; a number is rounded to the nearest of them.
    Statement: each level is the mean of the numbers that are rounded to it, ``y = E[x | x -> y]``; the solution is
    unique, as the logarithm of the density is concave, and has the least E(x - Q(x))^2.
    Kind: identity (to rounding; by Newton's method).
    Source: Lloyd, IEEE Trans. Inf. Theory 28, 1982; [max1960quantizing]. Unique: Fleischer, IEEE Int. Conv. Rec. 1,
    1964.
    bits: From 1 to 8.

    Returns
    -------
    numpy.ndarray, shape (2**(bits - 1),)
        Increasing; the negative levels mirror them.

    Raises
    ------
    ValueError
        If bits is outside its domain.

    >>> lloyd_max_levels(2)
    array([0.4528, 1.5104])
    """
    return _positive_levels(int(bits)).copy()


@formula(f"0 <= bits <= {MOST_BITS}")
def lloyd_max_distortion(bits: int) -> float:
    r"""Least mean squared error of a quantizer with 2^bits levels for a standard normal number.

    Title: The least error of b bits for a normal number.
    Setting: x standard normal, rounded to the nearest of the levels of lloyd_max_levels.
    Statement: ``D_b = E(x - Q(x))^2 = 1 - E Q(x)^2 = 1 - 2 sum_i p_i y_i^2`` with the probability p_i of the positive
    level y_i; D_0 = 1 (nothing is sent) and D_1 = 1 - 2/pi.
    Kind: identity.
    Latex: D_b=\mathbb E(x-Q(x))^2=1-2\sum_i p_i y_i^2
    Proof: Each level is the mean of its cell, so E x Q(x) = E Q(x)^2.
    Source: derived: each level is the mean of its cell, so E x Q(x) = E Q(x)^2.
    bits: From 0 to 8.

    Raises
    ------
    ValueError
        If bits is outside its domain.

    >>> lloyd_max_distortion(1), lloyd_max_distortion(2), lloyd_max_distortion(4)
    (0.3634, 0.1175, 0.0095)
    """
    if bits == 0:
        return 1.0
    levels = _positive_levels(int(bits))
    _, share, _ = _cells(levels)
    return float(1.0 - 2.0 * np.sum(share * levels**2))
