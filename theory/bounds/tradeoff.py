"""What no unbiased compressor can escape: variance against non-zeros."""

from __future__ import annotations

import numpy as np

from ..settings import require
from .sparsifiers import product_bound

__all__ = ["least_variance"]


def least_variance(v, nonzeros: float) -> float:
    """Least relative variance of an unbiased compressor that keeps so many coordinates in expectation.

    Setting: a fixed vector v; any Q with E Q(v) = v and at most k non-zero coordinates in expectation, whether its
    coordinates are independent or not.

    Statement: ``E||Q(v) - v||^2 / ||v||^2 >= ||v||_1^2 / (k ||v||_2^2) - 1``, and at least 0.

    Kind: lower (attained by every ternary quantizer, and by keeping i with probability proportional to ``|v_i|`` as
    long as none of these is above 1).

    Source: derived: it is `product_bound`, solved for the variance.

    Parameters
    ----------
    v : array_like
        Finite numbers, not all zero.
    nonzeros : float
        k, above 0.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> least_variance([1.0, 1.0, 1.0, 1.0], nonzeros=2)
    1.0
    """
    v = np.abs(np.asarray(v, float).ravel())
    require(bool(np.isfinite(v).all()) and bool(v.any()), "v", v, "finite numbers, not all zero")
    require(nonzeros > 0, "nonzeros", nonzeros, "a number above 0")
    v = v / v.max()  # so that no square overflows
    return max(0.0, product_bound(v) / (nonzeros * float(v @ v)) - 1.0)
