"""Workers with heterogeneous data: the limit of local steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from .closed_form import formula


@formula
def local_sgd_fixed_point(curvatures: ArrayLike, minimisers: ArrayLike, *, step: float, local_steps: int) -> np.ndarray:
    r"""Fixed point of local gradient descent if each worker has its own quadratic.

    Title (fixed-point): Where local steps on different data end.
    Setting: f_k(x) = (x - b_k)' A_k (x - b_k)/2 for worker k, all workers with equal weights in the mean; in every
    round each takes H local steps of the constant size eta, and then all average. Exact gradients, or rows that a
    worker draws independently for each step from its own data; then the statement is about E x.
    Statement: the only fixed point is ``(sum_k (I - M_k))^-1 sum_k (I - M_k) b_k`` with ``M_k = (I - eta A_k)^H``, and
    it attracts. For H = 1 it is the minimiser of the mean of the f_k; for H to infinity, and 0 < eta A_k < 2, the plain
    mean of the b_k.
    Statement (fixed-point): If each worker has a quadratic of its own, rounds of H local steps of size eta end in the
    minimiser of other quadratics, those with the curvatures I - (I - eta A_k)^H.
    Kind: identity.
    Latex (fixed-point): x_\infty=\Big(\sum_k (I-M_k)\Big)^{-1}\sum_k (I-M_k)\,b_k,\quad M_k=(I-\eta A_k)^H
    Proof (fixed-point): H steps take x to b_k + M_k (x - b_k), and the mean over k is affine. A row drawn afresh for
    each step does not depend on where the worker is, so E x moves in the same way.
    Source: derived: H steps take x to b_k + M_k (x - b_k), and the mean over k is affine. That the fixed point of local
    steps differs from the minimiser: [malinovskiy2020local].
    Source (fixed-point): derived; [malinovskiy2020local].
    curvatures (array_like, shape (N, d, d) or (N,)): The A_k, symmetric; numbers if d = 1.
    minimisers (array_like, shape (N, d) or (N,)): The b_k.
    step: eta.

    Returns
    -------
    numpy.ndarray, shape (d,)

    Raises
    ------
    ValueError
        If an argument is outside its domain, or rounds of this length and step do not contract.

    >>> local_sgd_fixed_point([1.0, 3.0], [0.0, 1.0], step=0.1, local_steps=1)
    array([0.75])
    >>> local_sgd_fixed_point([1.0, 3.0], [0.0, 1.0], step=0.1, local_steps=1000)
    array([0.5])
    """
    b = np.asarray(minimisers, float)
    b = b[:, None] if b.ndim == 1 else b
    A = np.asarray(curvatures, float)
    A = A[:, None, None] if A.ndim == 1 else A
    require(b.ndim == 2 and bool(np.isfinite(b).all()), "minimisers", b.shape, "(N, d), finite")
    fits = A.shape == (*b.shape, b.shape[1]) and bool(np.isfinite(A).all()) and np.allclose(A, A.transpose(0, 2, 1))
    require(fits, "curvatures", A.shape, f"({b.shape[0]}, {b.shape[1]}, {b.shape[1]}), finite, symmetric")
    unit = np.eye(b.shape[1])
    kept = np.stack([np.linalg.matrix_power(unit - step * a, int(local_steps)) for a in A])
    radius = float(np.abs(np.linalg.eigvalsh(kept.mean(axis=0))).max())
    require(
        radius < 1, "step", step, f"one with which a round contracts: the mean of the M_k has the norm {radius:.4g}"
    )
    moved = unit - kept
    return np.linalg.solve(moved.sum(axis=0), np.einsum("kij,kj->i", moved, b))
