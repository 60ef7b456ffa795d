"""Random quantization to any set of levels, equally spaced or not.

Throughout, ``r_i = |v_i| / scale`` with the scale ``||v||_2`` or ``||v||_inf``, a coordinate is rounded at random and
without bias to one of the two levels around ``r_i``, and ``psi`` is the piecewise linear function through the points
``(l, l^2)`` at the levels l.  So ``E Q_i^2 = scale^2 psi(r_i)``: everything about the second moment follows from psi.
If 0 is not a level, the lowest cell lies between minus and plus the smallest level.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .closed_form import formula


def _relative(v: ArrayLike, norm: float) -> tuple[np.ndarray, float]:
    """The magnitudes relative to the norm, and the norm."""
    size = np.abs(np.asarray(v, float).ravel())
    largest = size.max(initial=0.0)
    if largest == 0.0:
        return size, 0.0
    size = size / largest  # so that no square overflows or underflows
    scale = 1.0 if norm == math.inf else float(np.linalg.norm(size))
    return np.minimum(size / scale, 1.0), largest * scale


def _cells(r: np.ndarray, levels: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of the cell that each r lies in, counted from 0, and its two ends."""
    levels = np.asarray(levels, float)
    ends = levels if levels[0] == 0.0 else np.concatenate([[-levels[0]], levels])
    cell = np.clip(np.searchsorted(ends, r, side="right") - 1, 0, ends.size - 2)
    return cell, ends[cell], ends[cell + 1]


@formula("norm in (2, inf)", "increasing(levels)", "levels >= 0", "largest(levels) == 1")
def chord_positions(v: ArrayLike, levels: ArrayLike, norm: float = 2.0) -> np.ndarray:
    r"""Positions of the coordinates among the levels: the expected index of the drawn level.

    Setting: levels ``l_0 < l_1 < ... < 1`` (``l_0`` is 0, or minus the smallest level where 0 is none of them).
    Statement: ``u_i = j + (r_i - l_j)/(l_(j+1) - l_j)`` for ``r_i`` in ``[l_j, l_(j+1)]``; index j + 1 is drawn with
    probability ``u_i - j``, index j otherwise.
    Kind: identity.
    Latex: \mathbb{E}\,\mathrm{index}(Q(v)_i) = j + \frac{r_i-l_j}{l_{j+1}-l_j}
    Attained: everywhere
    Source: derived (the only way to round to two neighbours without bias).
    levels (array_like): Increasing, from [0, 1], the last one 1.
    norm ({2, inf}):

    Returns
    -------
    numpy.ndarray, shape (d,)

    >>> chord_positions([0.0, 0.75, 0.25, 1.0], [0.0, 0.5, 1.0], norm=float("inf"))
    array([0. , 1.5, 0.5, 2. ])
    """
    r, _ = _relative(v, norm)
    cell, low, high = _cells(r, levels)
    return cell + (r - low) / (high - low)


@formula("norm in (2, inf)", "increasing(levels)", "levels >= 0", "largest(levels) == 1")
def chord_variance(v: ArrayLike, levels: ArrayLike, norm: float = 2.0) -> float:
    r"""Variance of random rounding to any set of levels, at one vector, as a chord sum.

    Title (variance.exact): Variance of NUQSGD at one vector, as a chord sum.
    Title (released): The levels of NUQSGD's released code.
    Title (tails): NUQSGD against QSGD at 4 bits and buckets of 8192, released levels.
    Title (tails.textbook): NUQSGD against QSGD at 4 bits and buckets of 8192, levels with a zero.
    Setting: each coordinate is rounded without bias to one of the two levels around it.
    Statement: ``E||Q(v) - v||^2 = scale^2 sum_i (psi(r_i) - r_i^2) = scale^2 sum_i (l_(j+1) - r_i)(r_i - l_j)``; for
    the 2-norm, relative to ``||v||^2``, that is ``sum_i psi(r_i) - 1``.
    Statement (variance.exact): E||Q(v) - v||^2 = ||v||^2 (sum psi(r_i) - 1), where psi joins the points (l, l^2) at the
    levels by chords; with the maximum norm as scale likewise.
    Statement (released): Rounding to plus and minus 1, 1/2, ..., 2^-7 (4 bits, no zero) is unbiased, has the variance
    of the chord sum, and no coordinate is ever zero; a coordinate 0 costs 4^-7 ||v||^2.
    Statement (tails): At 4 bits and buckets of 8192, NUQSGD has less than a tenth of QSGD's variance; QSGD with the
    maximum norm beats NUQSGD on light tails (Gaussian, Laplace) and loses to it on heavy ones (Student t, lognormal).
    Statement (tails.textbook): The same orderings hold for the levels of the papers, among which is zero.
    Kind: identity.
    Kind (tails): upper.
    Kind (tails.textbook): upper.
    Latex (released): \mathbb{E}\|Q(v)-v\|^2 = \|v\|^2\Big(\sum_i\psi(r_i)-1\Big),\quad \psi(r) = 4^{-7}\ (r \le 2^{-7})
    Latex (tails): \mathrm{Var}_{\mathrm{NUQSGD}} < \mathrm{Var}_{\mathrm{QSGD}\infty} \text{ on heavy tails, } > \text{
    on light ones}
    Latex (variance.exact): \mathbb{E}\|Q(v)-v\|^2 = \|v\|^2 \Big(\sum_i \psi(r_i) - 1\Big)
    Attained (variance.exact): everywhere.
    Proof (variance.exact): An unbiased choice between a and b has the second moment of the chord of r^2 through a and
    b.
    Source: derived (the second moment of an unbiased choice between a and b is the chord of r^2 through a and b).
    Source (variance.exact): derived.
    Source (released): the authors' released code (fartashf/nuqsgd, nuq/quantize.py); the law is derived;
    [ramezani2021nuqsgd].
    Source (tails): [ramezani2021nuqsgd], section on experiments, says that NUQSGD and QSGD with the maximum norm are
    about equal.
    Source (tails.textbook): derived; the released code has no zero; [ramezani2021nuqsgd].
    levels (array_like): Increasing, from [0, 1], the last one 1.  If 0 is not among them, values below the smallest are
        rounded to plus or minus it.
    norm ({2, inf}):

    >>> chord_variance([3.0, 4.0], [0.0, 1.0]), chord_variance([0.0, 4.0], [0.5, 1.0])
    (10.0, 4.0)
    """
    r, scale = _relative(v, norm)
    _, low, high = _cells(r, levels)
    return float(scale**2 * np.sum((high - r) * (r - low)))


@formula("norm in (2, inf)", "increasing(levels)", "levels >= 0", "largest(levels) == 1")
def chord_nonzeros(v: ArrayLike, levels: ArrayLike, norm: float = 2.0) -> float:
    r"""Expected number of non-zeros of random rounding to any set of levels, at one vector.

    Title: Non-zeros of NUQSGD at one vector.
    Setting: as for chord_variance.
    Statement: ``E||Q(v)||_0 = sum_i min(1, r_i / l_1)`` with the smallest level ``l_1`` above 0; d if 0 is no level and
    v is not zero.
    Kind: identity.
    Latex: \mathbb{E}\|Q(v)\|_0 = \sum_i \min(1, r_i/p^s)
    Attained: everywhere
    Proof: A coordinate becomes zero only in the lowest cell, with probability 1 - r_i/p^s.
    Source: derived.
    levels (array_like): Increasing, from [0, 1], the last one 1.
    norm ({2, inf}):

    >>> chord_nonzeros([0.0, 1.0, -4.0], [0.0, 0.5, 1.0], norm=float("inf"))
    1.5
    """
    r, scale = _relative(v, norm)
    given = np.asarray(levels, float)
    if given[0] > 0.0:
        return float(r.size) if scale > 0.0 else 0.0
    return float(np.minimum(1.0, r / given[1]).sum())
