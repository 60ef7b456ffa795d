"""Phase retrieval: recover x from the squares of linear measurements.

f(x) = (1/4n) sum_i ((a_i'x)^2 - b_i)^2 + (l2/2) ||x||^2.
It is smooth and not convex: x and -x are as good as each other.
"""

import math
from typing import NamedTuple

import numpy as np

from theory.core import require, setting
from theory.core.vectors import add_entry, entry
from theory.problems.base import add_loss_gradient


@setting
class PhaseRetrieval(NamedTuple):
    """The rows a_i of A, the intensities b_i, and the weight of the l2 term."""

    A: np.ndarray
    b: np.ndarray
    l2: float

    def domain(self):
        """Refuse values outside the domain."""
        A, b = self.A, self.b
        require(A.ndim == 2, "A", f"{A.ndim} dimensions", "a row for each measurement")
        require(b.shape == A.shape[:1], "b", f"shape {b.shape}", "a number for each row")
        finite = np.isfinite(A).all() and np.isfinite(b).all()
        require(bool(finite), "A and b", "NaN or infinite numbers", "finite numbers")
        require(0.0 <= self.l2 < math.inf, "l2", self.l2, "a finite number, at least 0")

    n = property(lambda self: self.A.shape[0], doc="Number of rows.")
    d = property(lambda self: self.A.shape[1], doc="Length of x.")
    dtype = property(lambda self: self.A.dtype, doc="Type of the entries.")
    name = property(lambda self: f"phase retrieval, d={self.d}", doc="What tables call it.")

    def rows(problem):
        return problem.A.shape[0]

    def dimension(problem):
        return problem.A.shape[1]

    def regularization(problem):
        return problem.l2

    def value(problem, x):
        n, d, total, square = problem.A.shape[0], problem.A.shape[1], 0.0, 0.0
        for i in range(n):
            margin = 0.0
            for j in range(d):
                margin += problem.A[i, j] * entry(x, j)
            total += (margin * margin - problem.b[i]) ** 2
        for j in range(d):
            square += entry(x, j) ** 2
        return 0.25 * total / n + 0.5 * problem.l2 * square

    def add_loss_gradient(problem, i, stream, weight, x, out):
        margin = 0.0
        for j in range(problem.A.shape[1]):
            margin += problem.A[i, j] * entry(x, j)
        slope = weight * (margin * margin - problem.b[i]) * margin
        for j in range(problem.A.shape[1]):
            add_entry(out, j, slope * problem.A[i, j])

    def gradient(problem, x, out):
        n = problem.A.shape[0]
        for j in range(out.size):
            out[j] = problem.l2 * x[j]
        for i in range(n):
            add_loss_gradient(problem, i, 0, 1.0 / n, x, out)

    def astype(problem, dtype):
        return problem._replace(A=problem.A.astype(dtype, copy=False))
