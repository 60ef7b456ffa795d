"""A network with one hidden layer and a softmax output, and the layers of x.

Layers are the slices of x that a server rule or a compressor treats separately; they have the shapes of matrices.  The
variable of most problems is one layer.  A network's has one for each matrix of weights.

The network is a nonconvex problem with layers. f(W, V) = (1/n) sum_i [log sum_k exp(z_ik) - z_{i b_i}] + (l2/2)
(||W||^2 + ||V||^2),   z_i = V' phi(W' a_i),

with the d x m matrix W, the m x K matrix V, and a function phi of each entry.  x has W first, then V, both row by row:
a sparse row touches m neighbouring numbers for each of its entries, and all of V.  With r the loss's gradient in the
scores z (the probabilities, less 1 at the true class), s = W'a and h = phi(s), the gradient of loss_i is the pair of
matrices of rank one a g' and h r', g = phi'(s) * V r.  Bias: append a column of ones to the data.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import force_inline, kernel, python_generic, require, setting, traits
from ..core.arguments import finite_number, is_whole
from ..core.random import generator, key
from ..core.vectors import add_entry, dense_part, scale_of
from .base import add_loss_gradient, check_problem, dataset, dimension, label_of, rows
from .evaluate import part_of_rows, point, rows_between
from .linear import check_l2, entry_type, name_of, norm2, row_count
from .matrix import CSR, as_matrix, frozen, row_norm2
from .matrix import shape as shape_of
from .multinomial import MOST_CLASSES, add_outer, check_classes, log_sum, residuals, row_scores
from .noisy_gradients import Diversified
from .quadratics import Proximal

# --- Layers of x -----------------------------------------------------------------------------------------------------


@python_generic
def layers(problem: Any) -> tuple[slice, ...]:
    """The slices of x that are its layers, in order; a single slice for problems without layers.

    Parameters
    ----------
    problem : problem
        Any problem.

    Returns
    -------
    tuple of slice
        Each begins where the previous one ends, and together they cover x. ``x[layer].reshape(shape)``, with the shapes
        from `layer_shapes`, are the matrices of a network.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> th.layers(th.quadratic(np.ones(5), covariance=0.0))
    (slice(0, 5, None),)
    >>> th.layers(th.two_layer((np.eye(3), [0, 1, 1]), width=4))
    (slice(0, 12, None), slice(12, 20, None))
    """
    check_problem(problem)
    return (slice(0, int(dimension(problem))),)


@python_generic
def layer_shapes(problem: Any) -> tuple[tuple[int, int], ...]:
    """Rows and columns of the matrix in each layer of x, which is stored row by row.

    Parameters
    ----------
    problem : problem
        By default a layer is a matrix with a single column; that of `softmax` has a row for each feature and a column
        for each class, and a network from `two_layer` has two matrices.

    Returns
    -------
    tuple of (int, int)
        In the order of `layers`.

    Examples
    --------
    >>> from theory.problems import ridge, softmax
    >>> layer_shapes(ridge((np.eye(3), [1.0, 2.0, 3.0]), l2=0)), layer_shapes(softmax((np.eye(3), [0, 1, 1]), l2=0))
    (((3, 1),), ((3, 2),))
    """
    return tuple((layer.stop - layer.start, 1) for layer in check_layers(layers(problem), int(dimension(problem))))


@python_generic
def start_of(problem: Any, seed: int) -> np.ndarray:
    """Where a run starts; a class of problems registers its own."""
    return np.zeros(int(dimension(problem)))


def initial_point(problem: Any, seed: int = 0) -> np.ndarray:
    """The default start of a run: 0, or random weights for a network.

    Parameters
    ----------
    problem : problem
        Any problem.
    seed : int
        Seed of the weights; unused for other problems. :func:`theory.run` passes its own seed.

    Returns
    -------
    ndarray of float64, shape (d,)

    Notes
    -----
    At 0 the gradient of a network is 0, and the units of a layer would remain equal.

    Examples
    --------
    >>> from theory.problems import ridge
    >>> initial_point(ridge((np.eye(2), [1.0, 2.0]), l2=0))
    array([0., 0.])
    """
    check_problem(problem)
    good = is_whole(seed) and 0 <= int(seed) < 2**64
    require(good, "seed", seed, "an integer from 0 to 2**64 - 1")
    return start_of(problem, int(seed))


# A problem within a problem has its layers.
for ask in (layers, layer_shapes):
    ask.register(Diversified)(lambda problem, ask=ask: ask(problem.problem))
    ask.register(Proximal)(lambda problem, ask=ask: ask(problem.inner))

start_of.register(Diversified)(lambda problem, seed: start_of(problem.problem, seed))

start_of.register(Proximal)(lambda problem, seed: start_of(problem.inner, seed))


def slices_of(shapes: Any) -> tuple[slice, ...]:
    """Consecutive slices for matrices of these shapes."""
    ends = np.cumsum([rows * columns for rows, columns in shapes]).tolist()
    return tuple(slice(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True))


def check_layers(given: Any, d: int) -> tuple[slice, ...]:
    """The layers as slices with both ends; ``ValueError`` unless they divide d coordinates in order."""
    told = f"slices that divide the {d} coordinates in order, such as (slice(0, {d}),)"
    require(isinstance(given, (tuple, list)), "layers", given, told)
    found, end = [], 0
    for part in given:
        good = isinstance(part, slice) and (part.start or 0) == end and part.step in (None, 1)
        require(good, "layers", part, told)
        stop = d if part.stop is None else part.stop
        require(is_whole(stop) and end < stop <= d, "layers", part, told)
        found.append(slice(end, int(stop)))
        end = int(stop)
    require(end == d, "layers", given, told)
    return tuple(found)


# --- A network with one hidden layer and a softmax output ------------------------------------------------------------

TANH, RELU = range(2)

ACTIVATIONS = {"tanh": TANH, "relu": RELU}

WIDEST = 65_536  # scratch of a gradient: two numbers per unit


# --- one row ----------------------------------------------------------------------------------------------------------


@force_inline
@kernel
def _activate(kind, h):
    """Replace the scores h by phi(h)."""
    if kind == TANH:
        for k in range(h.size):
            h[k] = math.tanh(h[k])
    else:
        for k in range(h.size):
            h[k] = max(h[k], 0.0)


@force_inline
@kernel
def _times_slope(kind, h, g):
    """Multiply g by phi'(s), where h = phi(s); the slope of relu at 0 is 0."""
    if kind == TANH:
        for k in range(h.size):
            g[k] *= 1.0 - h[k] * h[k]
    else:
        for k in range(h.size):
            g[k] = g[k] if h[k] > 0.0 else 0.0


@kernel
def forward(problem, i, x, h, z):
    """Compute h = phi(W'a) and z = V'h for row a."""
    part, scale, K = dense_part(x), scale_of(x), z.size
    first = shape_of(problem.A)[1] * h.size
    row_scores(problem.A, i, part[:first], h)
    if scale != 1.0:
        for k in range(h.size):
            h[k] *= scale
    _activate(problem.kind, h)
    for c in range(K):
        z[c] = 0.0
    for k in range(h.size):
        unit, weights = h[k], part[first + k * K : first + (k + 1) * K]
        for c in range(K):
            z[c] += unit * weights[c]
    if scale != 1.0:
        for c in range(K):
            z[c] *= scale


@kernel
def back(problem, x, h, r, g):
    """Compute g = phi'(s) * V r."""
    part, scale, K = dense_part(x), scale_of(x), r.size
    first = shape_of(problem.A)[1] * h.size
    for k in range(h.size):
        weights, total = part[first + k * K : first + (k + 1) * K], 0.0
        for c in range(K):
            total += weights[c] * r[c]
        g[k] = scale * total
    _times_slope(problem.kind, h, g)


@force_inline
@kernel
def _add_gradient(problem, i, weight, h, r, g, out):
    """Add weight (a g', h r') to out; g and r are overwritten."""
    K, first = r.size, shape_of(problem.A)[1] * h.size
    for k in range(h.size):
        g[k] *= weight
    for c in range(K):
        r[c] *= weight
    add_outer(problem.A, i, g, out)
    for k in range(h.size):
        for c in range(K):
            add_entry(out, first + k * K + c, h[k] * r[c])


# --- the problem ------------------------------------------------------------------------------------------------------


@traits(support="all")  # a row touches the whole last layer, and as many numbers as there are units
@setting
class TwoLayer(NamedTuple):
    """A network with one hidden layer and a softmax output, made by `two_layer`; x holds its two matrices.

    Parameters
    ----------
    A : CSR or ndarray, shape (n, d)
        The rows a_i.
    b : ndarray of int64, shape (n,)
        Classes, from 0 to K - 1.
    l2 : float
        At least 0.
    classes : int
        K.
    width : int
        m, the number of hidden units.
    kind : int
        The activation: 0 for tanh, 1 for relu; the attribute ``activation`` has its name.
    label : ndarray of uint8
        The data's name in UTF-8, for tables and records: ``name`` reads it.
    """

    A: CSR | np.ndarray
    b: np.ndarray
    l2: float
    classes: int
    width: int
    kind: int
    label: np.ndarray

    @property
    def n(self) -> int:
        """Number of rows."""
        return row_count(self)

    @property
    def dtype(self) -> np.dtype:
        """Type of the entries, float64 or float32; sums are taken in float64."""
        return entry_type(self)

    @property
    def name(self) -> str:
        """Name of the data, for tables and records."""
        return name_of(self)

    @property
    def activation(self) -> str:
        """Name of the activation."""
        return list(ACTIVATIONS)[self.kind]

    @property
    def features(self) -> int:
        """Number of columns of the data."""
        return self.A.columns if isinstance(self.A, CSR) else self.A.shape[1]

    @property
    def d(self) -> int:
        """Length of x: all weights."""
        return self.width * (self.features + self.classes)

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_l2(self)
        check_classes(self)
        require(1 <= self.width <= WIDEST, "width", self.width, f"an integer from 1 to {WIDEST}")
        require(self.kind in ACTIVATIONS.values(), "kind", self.kind, "0 for tanh, 1 for relu")

    def __repr__(self) -> str:
        sizes = f"{self.features} x {self.width} x {self.classes}"
        return f"TwoLayer({self.name}: n={self.n}, {sizes}, {self.activation}, l2={self.l2:.6g}, {self.dtype})"

    def rows(problem):
        return shape_of(problem.A)[0]

    def dimension(problem):
        return problem.width * (shape_of(problem.A)[1] + problem.classes)

    def regularization(problem):
        return problem.l2

    def value(problem, x):
        n, total = rows(problem), 0.0
        h, z = np.empty(problem.width), np.empty(problem.classes)
        for i in range(n):
            forward(problem, i, x, h, z)
            total += log_sum(z) - z[problem.b[i]]
        return total / n + 0.5 * problem.l2 * norm2(x)

    def gradient(problem, x, out):
        n, shrink, part = rows(problem), problem.l2 * scale_of(x), dense_part(x)
        h, g, r = np.empty(problem.width), np.empty(problem.width), np.empty(problem.classes)
        for j in range(out.size):
            out[j] = shrink * part[j]
        for i in range(n):
            forward(problem, i, x, h, r)
            residuals(r, problem.b[i])
            back(problem, x, h, r, g)
            _add_gradient(problem, i, 1.0 / n, h, r, g, out)

    def moments(problem, x, out):
        """||a g' + l2 W||^2 = ||a||^2 ||g||^2 + 2 l2 <g, W'a> + l2^2 ||W||^2, and the same of h r' and V."""
        n, l2, total = rows(problem), problem.l2, 0.0
        h, g, r = np.empty(problem.width), np.empty(problem.width), np.empty(problem.classes)
        s, z = np.empty(problem.width), np.empty(problem.classes)
        for j in range(out.size):
            out[j] = l2 * x[j]
        for i in range(n):
            row_scores(problem.A, i, x[: x.size - h.size * r.size], s)
            forward(problem, i, x, h, z)
            for c in range(z.size):
                r[c] = z[c]
            residuals(r, problem.b[i])
            back(problem, x, h, r, g)
            units2, back2, out2, along = 0.0, 0.0, 0.0, 0.0
            for k in range(h.size):
                units2 += h[k] * h[k]
                back2 += g[k] * g[k]
                along += g[k] * s[k]
            for c in range(z.size):
                out2 += r[c] * r[c]
                along += r[c] * z[c]
            total += row_norm2(problem.A, i) * back2 + units2 * out2 + 2.0 * l2 * along
            _add_gradient(problem, i, 1.0 / n, h, r, g, out)
        return total / n + l2 * l2 * norm2(x)

    def layer_shapes(problem) -> tuple:
        return (problem.features, problem.width), (problem.width, problem.classes)

    def layers(problem) -> tuple:
        return slices_of(layer_shapes(problem))

    def start_of(problem, seed: int) -> np.ndarray:
        """Gaussian weights: for tanh with variance 2/(in + out) (Glorot and Bengio, 2010), for relu 2/in (He, 2015)."""
        found, rng = [], generator(key(seed, "weights"))
        for rows_of, columns in layer_shapes(problem):
            size = rows_of + columns if problem.kind == TANH else rows_of
            found.append(rng.standard_normal(rows_of * columns) * math.sqrt(2.0 / size))
        return np.concatenate(found)

    def accuracy(problem, x: ArrayLike) -> float:
        found = np.empty(problem.n, np.int64)
        classify(problem, point(problem, x), found)
        return float(np.mean(found == problem.b))

    def lipschitz(problem, comm: Any = None) -> NoReturn:
        _none("lipschitz", "the second derivatives of f grow with the weights")

    def max_lipschitz(problem) -> NoReturn:
        _none("max_lipschitz", "the second derivatives of a loss grow with the weights")

    def strong_convexity(problem) -> NoReturn:
        _none("strong_convexity", "f is not convex, and its negative curvature grows with the weights")

    def constant_of(problem) -> NoReturn:
        _none("pl_constant", "at weights of 0 the gradient is 0, and f is not at its minimum")


rows_between.register(TwoLayer)(part_of_rows)


def _none(what: str, reason: str) -> NoReturn:
    raise TypeError(
        f"{what}: a TwoLayer network has none: {reason}; second_moment, gradient_variance and batch_bound "
        "exist at every point"
    )


@add_loss_gradient.register(TwoLayer)
def _(problem, i, stream, weight, x, out):
    h, g, r = np.empty(problem.width), np.empty(problem.width), np.empty(problem.classes)
    forward(problem, i, x, h, r)
    residuals(r, problem.b[i])
    back(problem, x, h, r, g)
    _add_gradient(problem, i, weight, h, r, g, out)


@kernel
def classify(problem, x, out):
    """``out[i]`` = the class with the largest score; ties go to the lowest."""
    h, z = np.empty(problem.width), np.empty(problem.classes)
    for i in range(rows(problem)):
        forward(problem, i, x, h, z)
        best = 0
        for c in range(1, z.size):
            if z[c] > z[best]:
                best = c
        out[i] = best


def two_layer(
    data: Any, width: int, activation: str = "tanh", *, l2: float = 0.0, dtype: DTypeLike = np.float64
) -> TwoLayer:
    """A network with one hidden layer and a softmax output: multinomial logistic regression of phi(W'a).

    f(W, V) = (1/n) sum_i [log sum_k exp(z_ik) - z_{i b_i}] + (l2/2) (||W||^2 + ||V||^2) with z_i = V' phi(W' a_i).
    f is nonconvex and has no constant L on the whole space, so `lipschitz` and `strong_convexity` raise ``TypeError``.
    x is W, then V, each row by row: :func:`theory.layers` are their slices, :func:`theory.layer_shapes` their shapes.

    Parameters
    ----------
    data : Dataset or (X, y)
        With 2 to 1024 different labels; in increasing order, they are the classes 0, 1, ..., K - 1.  There are no
        biases; a column of ones in the data adds them.
    width : int
        Number m of hidden units.
    activation : {"tanh", "relu"}
        phi, of each entry.  With tanh, f is smooth.
    l2 : float
        At least 0.
    dtype : {numpy.float64, numpy.float32}
        Type of the entries.

    Returns
    -------
    TwoLayer
        With ``n``, ``d`` (all weights), ``features``, ``width``, ``classes``, ``activation``, ``l2``, ``name`` and
        ``dtype``.

    Raises
    ------
    ValueError
        If an argument is outside its domain, the data have NaN or Inf or no rows, or there are fewer than 2 labels or
        more than 1024.

    Notes
    -----
    A run without ``x0`` starts from :func:`theory.initial_point`, random weights determined by its seed.

    Examples
    --------
    >>> problem = two_layer((np.eye(3), [7, 5, 7]), width=4)
    >>> problem, problem.d
    (TwoLayer(data: n=3, 3 x 4 x 2, tanh, l2=0, float64), 20)
    """
    data = dataset(data, classes=True)
    labels, b = np.unique(data.y, return_inverse=True)
    allowed = f"2 to {MOST_CLASSES} different labels"
    require(2 <= labels.size <= MOST_CLASSES, "data", f"{labels.size} different labels in {data.name}", allowed)
    require(activation in ACTIVATIONS, "activation", activation, "one of " + ", ".join(map(repr, ACTIVATIONS)))
    A, classes = as_matrix(data.X, dtype), frozen(b.reshape(-1), np.int64)
    made = TwoLayer(A, classes, finite_number("l2", l2), labels.size, width, ACTIVATIONS[activation], label_of(data))
    require(made.d < 2**31, "width", width, f"fewer than 2**31 weights, not {made.d:,}")
    return made
