"""Kernels of robust means: the messages of n workers are the first n rows of ``sent``, which may be overwritten.

Other arrays have the length of the number of workers, or its square; none has the size of all messages.  Sums and
squares are taken in double precision, whatever the precision of the rows.
"""

from __future__ import annotations

import numpy as np

from ...core import kernel

LARGEST = 1e100  # of a coordinate of a message: sums of squares of such numbers are finite


@kernel
def active_first(sent, weight):
    """Move the messages of the workers that act to the front; return how many they are.

    A message with NaN or a number beyond ``LARGEST`` counts as the vector 0: only a hostile worker sends it, and a rule
    that tolerates any message tolerates this one.
    """
    n = 0
    for s in range(weight.size):
        if weight[s] > 0.0:
            a, row, good = sent[s], sent[n], True
            for j in range(a.size):
                good = good and abs(a[j]) <= LARGEST  # False for NaN
            for j in range(a.size):
                row[j] = a[j] if good else 0.0
            n += 1
    return n


@kernel
def trimmed_mean(sent, n, f, out):
    """``out`` = in every coordinate the mean of the n numbers without the f smallest and the f largest."""
    column = np.empty(n)
    for j in range(out.size):
        for i in range(n):
            column[i] = sent[i, j]
        column.sort()
        total = 0.0
        for i in range(f, n - f):
            total += column[i]
        out[j] = total / (n - 2 * f)


@kernel
def squared_distance(a, b):
    """||a - b||^2."""
    total = 0.0
    for j in range(a.size):
        gap = np.float64(a[j]) - b[j]
        total += gap * gap
    return total


@kernel
def squared_distances(sent, n):
    """The matrix of ||x_i - x_k||^2."""
    squares = np.zeros((n, n))
    for i in range(n):
        for k in range(i):
            squares[i, k] = squares[k, i] = squared_distance(sent[i], sent[k])
    return squares


@kernel
def weighted_mean(sent, factors, out):
    """``out`` = the mean of the rows with these weights."""
    total = factors.sum()
    for j in range(out.size):
        value = 0.0
        for i in range(factors.size):
            value += factors[i] * sent[i, j]
        out[j] = value / total


@kernel
def best_scores(sent, n, f, m, out):
    """``out`` = the mean of the m messages with the least sums of squared distances to their n - f - 2 nearest."""
    squares, scores, kept = squared_distances(sent, n), np.empty(n), np.zeros(n)
    for i in range(n):
        scores[i] = np.sort(squares[i])[: n - f - 1].sum()  # the first is its own, 0
    for i in np.argsort(scores, kind="mergesort")[:m]:  # the first of equal ones
        kept[i] = 1.0
    weighted_mean(sent, kept, out)


@kernel
def pull(sent, n, factors, x, j):
    """Coordinate j of the sum of the messages' directions from x, whose distances are 1/factors."""
    total = 0.0
    for i in range(n):
        total += factors[i] * (sent[i, j] - x[j])
    return total


@kernel
def inverse_distances(sent, n, x, factors):
    """``factors`` = 1/||x_i - x||, 0 for those at x; how many these are, and the norm of the sum of the directions."""
    same, square = 0, 0.0
    for i in range(n):
        distance = np.sqrt(squared_distance(sent[i], x))
        same += distance == 0.0
        factors[i] = 1.0 / distance if distance > 0.0 else 0.0
    for j in range(x.size):
        square += pull(sent, n, factors, x, j) ** 2
    return same, np.sqrt(square)


@kernel
def least_distances(sent, n, iterations, tolerance, out):
    """``out`` = the point with the least sum of distances: a message, or by Weiszfeld's iteration from the median.

    A message is the minimum if the directions of the others sum to at most their number there, and another point if
    they sum to 0; at a message that is not, the step is that of Vardi and Zhang.
    """
    factors = np.empty(n)
    trimmed_mean(sent, n, (n - 1) // 2, out)
    same, norm = inverse_distances(sent, n, out, factors)
    if norm - same <= tolerance * n:  # of two messages the point between them, and not the first
        return
    for i in range(n):
        for j in range(out.size):
            out[j] = sent[i, j]
        same, norm = inverse_distances(sent, n, out, factors)
        if norm <= same:
            return
    trimmed_mean(sent, n, (n - 1) // 2, out)
    for _ in range(iterations):
        same, norm = inverse_distances(sent, n, out, factors)
        if norm - same <= tolerance * n:
            return
        share = (1.0 - same / norm) / factors.sum()
        for j in range(out.size):
            out[j] += share * pull(sent, n, factors, out, j)


@kernel
def mix_nearest(sent, n, f):
    """Replace each message by the mean of its n - f nearest, itself among them."""
    squares, near = squared_distances(sent, n), np.empty((n, n - f), np.int64)
    for i in range(n):
        squares[i, i] = -1.0  # itself comes first
        near[i] = np.argsort(squares[i], kind="mergesort")[: n - f]
    column = np.empty(n)
    for j in range(sent.shape[1]):
        for i in range(n):
            column[i] = sent[i, j]
        for i in range(n):
            total = 0.0
            for k in range(n - f):
                total += column[near[i, k]]
            sent[i, j] = total / (n - f)


@kernel
def mix_buckets(sent, order, s):
    """Replace the first rows by the means of s messages each, in this order; the last may have fewer."""
    n, column = order.size, np.empty(order.size)
    for j in range(sent.shape[1]):
        for i in range(n):
            column[i] = sent[order[i], j]
        for low in range(0, n, s):
            sent[low // s, j] = column[low : low + s].mean()


@kernel
def clip_to_centre(sent, n, radius, iterations, out):
    """Move ``out``, the centre, by the mean of the differences from it, each clipped to the radius; repeatedly."""
    shares = np.empty(n)
    for _ in range(iterations):
        for i in range(n):
            distance = np.sqrt(squared_distance(sent[i], out))
            shares[i] = (radius / distance if distance > radius else 1.0) / n
        for j in range(out.size):
            moved = 0.0
            for i in range(n):
                moved += shares[i] * (np.float64(sent[i, j]) - out[j])
            out[j] += moved
