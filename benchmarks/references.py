"""What others would write: a plain dense Mem-SGD in Numba, and one in NumPy in the style of the paper's own code."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(error_model="numpy")
def dense_scan(data, indices, indptr, b, l2, k, c, shift, rows, m, x, u):
    """Mem-SGD, top-k, one worker: the memory is an array, and one pass over it adds the l2 term and finds the top k.

    Returns the weighted average, of which ``u`` is the part that moved; x changes at k entries a step only.
    """
    total, best = 0.0, np.empty(k, np.int64)
    size = np.empty(k)
    for t in range(rows.size):
        i, eta = rows[t], c / (l2 * (shift + t))
        margin = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            margin += data[p] * x[indices[p]]
        slope = -b[i] / (1.0 + math.exp(b[i] * margin))
        for p in range(indptr[i], indptr[i + 1]):
            m[indices[p]] += eta * slope * data[p]
        total += (shift + t) ** 2
        size[:] = -1.0  # the largest so far, falling
        for j in range(m.size):
            m[j] += eta * l2 * x[j]
            here = abs(m[j])
            if here > size[k - 1]:
                q = k - 1
                while q > 0 and here > size[q - 1]:
                    size[q], best[q] = size[q - 1], best[q - 1]
                    q -= 1
                size[q], best[q] = here, j
        for q in range(k):
            j = best[q]
            x[j] -= m[j]
            u[j] -= total * m[j]
            m[j] = 0.0
    return (total * x - u) / total


def numpy_steps(X, b, l2, k, c, shift, rows, start, memory, x):
    """Mem-SGD as its authors' released code does it: a dense gradient, argpartition, a dense average in every step.

    It goes on from the step ``start``: while memories are full of zeros, argpartition is many times slower.
    """
    d, average = X.shape[1], x.copy()
    for t, i in enumerate(rows, start):
        row = X[i]
        eta = c / (l2 * (shift + t))
        slope = -b[i] / (1.0 + np.exp(b[i] * (row @ x).item()))
        gradient = (slope * row).toarray().ravel() + l2 * x
        update = eta * gradient + memory
        top = np.argpartition(np.abs(update), -k)[-k:]
        memory = update
        sent = np.zeros(d)
        sent[top] = update[top]
        memory[top] = 0.0
        x -= sent
        rho = 6 * (t + shift) ** 2 / ((1 + t) * (6 * shift**2 + t * (1 + 6 * shift) + 2 * t**2))
        average = average * (1 - rho) + x * rho
    return average


def numpy_qsgd(v, s, generator):
    """QSGD as one writes it in NumPy: the restored vector."""
    norm = np.linalg.norm(v)
    size = np.abs(v) * (s / norm)
    level = np.floor(size)
    level += generator.random(v.size, dtype=v.dtype) < size - level
    return np.sign(v) * level * (norm / s)
