"""Graphs of workers, and the weights with which each worker averages its own vector and its neighbours'.

A *graph* is a setting with ``edges(workers)``, from which Metropolis weights are made, or with ``weights(workers)``:
``Ring()``, ``Torus()``, ``Star()``, ``Hypercube()``, ``Complete()``, ``Edges(...)`` and ``MixingMatrix(...)``.
`mixing` turns it into a checked matrix with its spectral gap.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ...core import require, setting
from ...core.arguments import MANY, real_array, whole_number

CLOSE = 1e-12  # rounding errors of a computed matrix


class Mixing(NamedTuple):
    """A symmetric, doubly stochastic matrix W of a connected graph, and its spectrum.

    Attributes
    ----------
    matrix : ndarray, shape (workers, workers)
        W.
    minus_identity : ndarray, shape (workers, workers)
        W - I, whose rows sum to 0 up to a rounding error of the diagonal.
    hears : ndarray of bool, shape (workers, workers)
        Whether worker i receives the messages of worker j; always true for i = j.
    gap : float
        The spectral gap: 1 - the largest absolute value of an eigenvalue other than the first.
    beta : float
        The spectral norm of I - W.

    Examples
    --------
    >>> import theory as th
    >>> th.mixing(Ring(), 4).hears[0].tolist()
    [True, True, False, True]
    """

    matrix: np.ndarray
    minus_identity: np.ndarray
    hears: np.ndarray
    gap: float
    beta: float


@setting
class Ring(NamedTuple):
    """Every worker has two neighbours; all weights are 1/3.

    Examples
    --------
    >>> import theory as th
    >>> round(th.mixing(Ring(), 4).gap, 4)
    0.6667
    """

    def edges(self, workers: int) -> list[tuple[int, int]]:
        """The edges, as pairs of workers."""
        require(workers >= 3, "workers", workers, "at least 3 on a ring, where every worker has two neighbours")
        return [(w, (w + 1) % workers) for w in range(workers)]


@setting
class Torus(NamedTuple):
    """A grid with wrap-around: every worker has four neighbours; all weights are 1/5.

    Parameters
    ----------
    height : int
        Number of rows of the grid, at least 3 and of equal length; 0 for a square.

    Examples
    --------
    >>> import theory as th
    >>> round(th.mixing(Torus(), 16).gap, 4)
    0.4
    """

    height: int = 0

    def edges(self, workers: int) -> list[tuple[int, int]]:
        """The edges, as pairs of workers."""
        height = self.height or math.isqrt(workers)
        width = workers // max(1, height)
        fitting = height * width == workers and min(height, width) >= 3
        require(fitting, "workers", workers, "height * width of a torus, both at least 3; without a height, a square")
        grid = np.arange(workers).reshape(height, width)
        return [
            (int(a), int(b))
            for axis in (0, 1)
            for a, b in zip(grid.ravel(), np.roll(grid, -1, axis).ravel(), strict=True)
        ]


@setting
class Complete(NamedTuple):
    """All workers are neighbours; all weights are 1/N, and one round makes all vectors equal.

    Examples
    --------
    >>> import theory as th
    >>> round(th.mixing(Complete(), 5).gap, 4)
    1.0
    """

    def edges(self, workers: int) -> list[tuple[int, int]]:
        """The edges, as pairs of workers."""
        return [(a, b) for a in range(workers) for b in range(a)]


@setting
class Star(NamedTuple):
    """Worker 0 is the only neighbour of every other worker; the edges have the weight 1/N.

    Examples
    --------
    >>> import theory as th
    >>> round(th.mixing(Star(), 5).gap, 4)
    0.2
    """

    def edges(self, workers: int) -> list[tuple[int, int]]:
        """The edges, as pairs of workers."""
        return [(0, w) for w in range(1, workers)]


@setting
class Hypercube(NamedTuple):
    """Workers whose numbers differ in one bit are neighbours; all weights are 1/(1 + log2 N).

    Examples
    --------
    >>> import theory as th
    >>> round(th.mixing(Hypercube(), 8).gap, 4)
    0.5
    """

    def edges(self, workers: int) -> list[tuple[int, int]]:
        """The edges, as pairs of workers."""
        bits = workers.bit_length() - 1
        require(workers == 1 << bits, "workers", workers, "a power of 2 on a hypercube")
        return [(w, w ^ (1 << k)) for w in range(workers) for k in range(bits) if w < w ^ (1 << k)]


@setting
class Edges(NamedTuple):
    """A graph given by its edges, with Metropolis weights: 1/(1 + the larger of the two degrees) on each edge.

    Parameters
    ----------
    graph : networkx graph, or pairs of workers
        A networkx graph with a node for each worker, in the order of its nodes; or the edges as pairs of the workers'
        numbers 0, 1, ...

    Examples
    --------
    >>> import theory as th
    >>> th.mixing(Edges([(0, 1), (1, 2)]), 3).matrix.round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.333, 0.667]])
    """

    graph: Any

    def edges(self, workers: int) -> list[tuple[int, int]]:
        """The edges, as pairs of workers."""
        if not hasattr(self.graph, "nodes"):
            return [_pair(edge) for edge in self.graph]
        require(
            not self.graph.is_directed(), "graph", "a directed one", "an undirected one: neighbours hear each other"
        )
        number = {node: w for w, node in enumerate(self.graph.nodes)}
        require(len(number) == workers, "workers", workers, f"{len(number)}, the number of nodes of the graph")
        return [(number[a], number[b]) for a, b in self.graph.edges()]


def _pair(edge: Any) -> tuple[int, int]:
    """The workers of an edge: two integers."""
    try:
        a, b = edge
        return operator.index(a), operator.index(b)
    except (TypeError, ValueError):
        raise ValueError(f"graph: got the edge {edge!r}, allowed: a pair of integers, the workers' numbers") from None


@setting
class MixingMatrix(NamedTuple):
    """A graph given by its matrix of weights.

    Parameters
    ----------
    matrix : ndarray, shape (workers, workers)
        Symmetric, doubly stochastic, with a connected graph.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> round(th.mixing(MixingMatrix(np.array([[0.75, 0.25], [0.25, 0.75]])), 2).gap, 4)
    0.5
    """

    matrix: np.ndarray

    def weights(self, workers: int) -> np.ndarray:
        """The matrix."""
        W = np.array(real_array("matrix", self.matrix))
        require(W.shape == (workers, workers), "matrix", f"shape {W.shape}", f"shape ({workers}, {workers})")
        return W


def mixing(graph: Any, workers: int) -> Mixing:
    """The mixing matrix of a graph, its spectral gap and its norm.

    Parameters
    ----------
    graph : graph
        ``Ring()``, ``Torus()``, ``Star()``, ``Hypercube()``, ``Complete()``, ``Edges(...)`` or ``MixingMatrix(...)``.
    workers : int
        Number N of workers.

    Returns
    -------
    Mixing
        With ``matrix``, ``minus_identity``, ``hears``, ``gap`` and ``beta``.

    Raises
    ------
    ValueError
        If the matrix does not have a row for each worker, is not symmetric, is not doubly stochastic, has the
        eigenvalue -1, or has a graph that is not connected; or if the number of workers does not fit the graph.
    TypeError
        If the first argument is not a graph.

    Examples
    --------
    >>> import theory as th
    >>> W = mixing(th.Ring(), 8)
    >>> round(W.gap, 4), round(W.beta, 4)
    (0.1953, 1.3333)
    """
    known = not isinstance(graph, type) and (hasattr(graph, "edges") or hasattr(graph, "weights"))
    known = known and hasattr(graph, "_fields")
    require(known, "graph", graph, "a graph, such as Ring(), Edges(...) or MixingMatrix(...)", TypeError)
    whole_number("workers", workers, high=MANY)
    W = graph.weights(workers) if hasattr(graph, "weights") else metropolis(graph.edges(workers), workers)
    W = real_array("matrix", W)
    require(W.shape == (workers, workers), "matrix", f"shape {W.shape}", f"shape ({workers}, {workers})")
    require(bool(np.isfinite(W).all()), "matrix", "NaN or Inf", "finite numbers")
    require(np.abs(W - W.T).max() <= CLOSE, "matrix", "one that is not symmetric", "W = W^T")
    require(W.min() >= 0.0, "matrix", f"the weight {W.min():g}", "doubly stochastic: no weight below 0")
    sums = W.sum(axis=1)
    worst = int(np.abs(sums - 1.0).argmax())
    whole = abs(sums[worst] - 1.0) <= CLOSE * workers
    require(whole, "matrix", f"the sum {sums[worst]:g} in row {worst}", "doubly stochastic: every row sums to 1")
    W = 0.5 * (W + W.T)
    away = _unreached(W)
    told = f"no path from worker 0 to worker {away}"
    require(away < 0, "matrix" if hasattr(graph, "weights") else "graph", told, "a connected graph")
    eigenvalues = np.linalg.eigvalsh(W)
    require(
        workers == 1 or eigenvalues[0] > -1.0 + CLOSE,
        "matrix",
        "the eigenvalue -1",
        "eigenvalues above -1: workers with no weight of their own may alternate forever",
    )
    gap = 1.0 if workers == 1 else 1.0 - max(abs(eigenvalues[0]), abs(eigenvalues[-2]))
    minus_identity = W.copy()
    np.fill_diagonal(minus_identity, 0.0)
    np.fill_diagonal(minus_identity, -minus_identity.sum(axis=1))
    hears = (W > 0.0) | np.eye(workers, dtype=bool)
    return Mixing(W, minus_identity, hears, float(gap), float(1.0 - eigenvalues[0]))


def metropolis(edges: Any, workers: int) -> np.ndarray:
    """Metropolis weights: 1/(1 + the larger of the two degrees) on each edge, and the remainder on the diagonal."""
    linked = np.zeros((workers, workers), bool)
    for a, b in edges:
        known = 0 <= a < workers and 0 <= b < workers
        require(known, "edges", (a, b), f"pairs of workers from 0 to {workers - 1}")
        if a != b:
            linked[a, b] = linked[b, a] = True
    degrees = linked.sum(axis=1)
    W = linked / (1.0 + np.maximum(degrees[:, None], degrees[None, :]))
    np.fill_diagonal(W, 1.0 - W.sum(axis=1))
    return np.maximum(W, 0.0)  # a rounding error may leave -1e-17 for oneself


def _unreached(W: np.ndarray) -> int:
    """A worker that no path connects with worker 0, or -1."""
    reached = np.zeros(W.shape[0], bool)
    front = reached.copy()
    reached[0] = front[0] = True
    while front.any():
        front = (W[front] > 0.0).any(axis=0) & ~reached
        reached |= front
    return -1 if reached.all() else int(np.flatnonzero(~reached)[0])
