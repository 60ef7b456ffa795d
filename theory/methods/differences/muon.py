"""EF21-Muon: steps of a fixed length in a norm, such as the spectral one, from compressed differences.

One step, with the linear minimisation oracle of a norm, LMO(G) = argmin of <G, Z> over ||Z|| <= 1::

    M_i = (1 - a) M_i + a grad f_i(W, xi), at i
    R_i = C(M_i - G_i), which i sends; G_i = G_i + R_i, at i
    G = G + mean R_i, at the server
    X = X + t LMO(G)
    S = D(X - W), which the server sends; W = W + S, at all

For the spectral norm and G = U S V' the oracle is -U V', which Newton-Schulz steps approximate by products of matrices.
The other norms are spectral norms of matrices of other shapes: a column is divided by its Euclidean norm, a number by
its absolute value.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...compressors.full_precision import Identity
from ...compressors.kernels.linear_algebra import load_scaled
from ...core import kernel, require, traits
from ...core.arguments import is_whole
from ...core.bound_calls import at, operation
from ...problems.network import layer_shapes
from ..custom import check_method, method
from ..gradients import Split
from ..types import Run
from .both_ways import check_second

# --- Newton-Schulz steps ---------------------------------------------------------------------------------------------


@kernel
def product(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """``out = A B``, summed in a fixed order, so that results are bit-identical on all ranks."""
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            out[i, j] = 0.0
        for k in range(B.shape[0]):
            for j in range(B.shape[1]):
                out[i, j] += A[i, k] * B[k, j]


@kernel
def orthogonalize(v: np.ndarray, rows: int, columns: int, iterations: int) -> None:
    """Replace the matrix v, stored row by row, by nearly U V' of v = U S V'; 0 stays 0.

    Begins with X = v/||v||_F; a step is X (15 - 10 X'X + 3 (X'X)^2)/8.
    """
    q, n, wide = min(rows, columns), max(rows, columns), rows < columns
    if q == 1:  # a column, or a number: in place
        load_scaled(v, rows, columns, False, v)
        square = 0.0
        for j in range(n):
            square += v[j] * v[j]
        for j in range(n if square > 0.0 else 0):
            v[j] /= math.sqrt(square)
        return
    flat, Y, A, B = np.empty(n * q), np.empty((n, q)), np.empty((q, q)), np.empty((q, q))
    load_scaled(v, rows, columns, wide, flat)  # the transpose of a wide matrix
    size = math.sqrt(np.sum(flat * flat))
    if size == 0.0:
        return
    X = (flat / size).reshape(n, q)
    for _ in range(iterations):
        product(X.T, X, A)
        product(A, A, B)
        for i in range(q):
            for j in range(q):
                B[i, j] = (3.0 * B[i, j] - 10.0 * A[i, j] + (15.0 if i == j else 0.0)) / 8.0
        product(X, B, Y)
        X, Y = Y, X
    for i in range(rows):
        for j in range(columns):
            v[i * columns + j] = X[j, i] if wide else X[i, j]


@operation
class Orthogonalize(NamedTuple):
    """Replace each matrix in Y by its nearest orthogonal one, up to Newton-Schulz; ``shapes`` has a row for each."""

    Y: np.ndarray
    shapes: np.ndarray
    iterations: int

    def _row(pointer: Any, t: int, r: int, w: int) -> None:
        b = at(pointer)
        y, begin = b.Y[r, w], 0
        for k in range(b.shapes.shape[0]):
            rows, columns = b.shapes[k, 0], b.shapes[k, 1]
            orthogonalize(y[begin : begin + rows * columns], rows, columns, b.iterations)
            begin += rows * columns


# --- EF21-Muon -------------------------------------------------------------------------------------------------------

NORMS = ("spectral", "sign", "euclidean")


@traits(state=("g", "w"), stores=(0, 2), listed=True, own_step=True, descends=False)
@method
class EF21Muon(NamedTuple):
    """Steps of length t in a norm, along estimates of the gradients from compressed differences.

    The norm of x is the largest of its layers' norms, so that each layer moves by the full length.  With the default
    compressor and one worker it is Muon without look-ahead.  With a constant t the iterates end at a distance from the
    minimum that is proportional to it.  Between two steps a worker stores M_i and G_i (``memory_bytes``); the mean G of
    the G_i and W are beside the model (``server_bytes``).

    Parameters
    ----------
    compressor : compressor
        C, of the workers' messages: one that contracts, such as ``TopK(10)``, or of each layer, such as
        ``th.by_layer(problem, lambda rows, columns: th.PowerSGD(rows, columns, 2))``.
    step : Constant or InverseTime
        t, the length of a step in the norm.
    momentum : float
        a, the weight of the new gradient, in (0, 1].
    norm : {"spectral", "sign", "euclidean"} or tuple of (int, int)
        Of a layer: the largest singular value of its matrix, the largest entry (steps along signs; that of 0 is 0), or
        the Euclidean norm.  Or the shapes of the matrices that make up x, for their spectral norms.
    iterations : int
        Newton-Schulz steps; :func:`theory.bounds.newton_schulz_value` is their effect on a singular value.
    down : compressor
        D, of the model's messages: one that contracts.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.

    Notes
    -----
    Gruntkowska, Gaponov, Tovmasyan, Richtárik, "Error feedback for Muon and friends" (2025), from G_i = 0, W = x and
    M_i = the first gradient, as quoted by others; of the paper the abstract was read.  It has rates of order 1/sqrt(K)
    without noise and K^(-1/4) with it, from memory; :func:`theory.bounds.muon_gradient` is derived here.  The released
    code of Muon (Jordan and others, 2024) has Nesterov's look-ahead and takes five steps of another polynomial, from
    memory, whose values do not tend to 1; those here do, from below, so that no step is longer than t.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> muon = EF21Muon(step=th.Constant(0.5), norm=((2, 2),))
    >>> th.run(muon, problem, workers=2, steps=1, x0=np.array([3.0, 0.0, 0.0, 1.0])).x.round(6)
    array([2.5, 0. , 0. , 0.5])
    """

    compressor: NamedTuple = Identity()
    step: NamedTuple | None = None
    momentum: float = 0.1
    norm: str | tuple = "spectral"
    iterations: int = 10
    down: NamedTuple = Identity()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        p, m, known, g = run.scratch(), run.rows("m"), run.rows("known"), run.vector("g")
        z, w, change = run.vector("z"), run.vector("w", start=run.start), run.vector("change")
        a = run.once("a", lambda: run.rates.beginning(1.0, self.momentum))  # a; 1 in the first step
        run.add_to_average(run.x)  # of the iterates
        run.scale(m, 1.0 - a)
        run.add_gradient(m, at=w, scale=a)  # M_i = (1 - a) M_i + a gradient at W
        run.set(p, m, minus=known)  # p = M_i - G_i
        message = run.compress(self.compressor, p, to_server=True)  # R_i = C(p)
        run.add(known, message)  # G_i = G_i + R_i
        run.add(g, run.gather(message))  # G = G + mean R_i
        run.set(z, g)
        shapes = run.once("shapes", lambda: self.matrices(run.problem, run.d))
        run.call(Orthogonalize(z, shapes, self.iterations), run.single)  # -LMO(G)
        run.add(run.x, z, scale=-run.eta)  # X = X + t LMO(G)
        run.set(change, run.x, minus=w)  # X - W
        run.add(w, run.broadcast(run.compress(self.down, change, phase="down")))  # W = W + D(X - W)

    def matrices(self, problem: Any, d: int) -> np.ndarray:
        """The shapes of the matrices whose largest singular value is the norm of x."""
        layers = layer_shapes(problem)
        known: dict[Any, Any] = {"spectral": layers, "sign": [(1, 1)] * d, "euclidean": [(m * n, 1) for m, n in layers]}
        shapes = np.array(known.get(self.norm, self.norm), np.int64)
        require(shapes.prod(axis=1).sum() == d, "norm", self.norm, f"shapes of matrices with {d} entries in all")
        return shapes

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        check_second("down", self.down)
        require(0.0 < self.momentum <= 1.0, "momentum", self.momentum, "a number above 0, up to 1")
        require(self.iterations >= 0, "iterations", self.iterations, "an integer, at least 0")
        shapes = self.norm if isinstance(self.norm, tuple) else ()
        good = shapes and all(len(pair) == 2 and all(is_whole(n) and n >= 1 for n in pair) for pair in shapes)
        require(good or self.norm in NORMS, "norm", self.norm, f"{', '.join(map(repr, NORMS))}, or shapes as ((3, 2),)")
