"""Statistics of a data set that matter for a linear model, for comparing the twin of RCV1 with the real file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .dataset import DataError, Dataset, require_binary

LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)  # of the non-zeros of a row
VALUE_LEVELS = (0.05, 0.5, 0.95)  # of the values
RANKS = (1, 10, 100, 1_000, 10_000)  # of the column frequencies


class Statistics(NamedTuple):
    """The numbers that are compared; see `describe` for their definitions."""

    n: int
    d: int
    positive: int
    negative: int
    nnz: int
    nnz_quantiles: tuple[int, ...]
    columns_used: int
    frequencies: tuple[int, ...]
    row_norms: tuple[float, float]
    value_quantiles: tuple[float, ...]
    mean_norm2: float
    singular: tuple[float, ...]
    batch_bound: float
    optimum: float
    train_accuracy: float
    held_out_accuracy: float


# The real file: 23,756 documents of RCV1-v2 in two classes (a test recomputes them if the file exists).
REAL = Statistics(
    n=23_756,
    d=47_236,
    positive=11_830,
    negative=11_926,
    nnz=1_784_250,
    nnz_quantiles=(7, 19, 36, 60, 100, 181, 618),
    columns_used=28_189,
    frequencies=(10_136, 6_306, 2_615, 372, 10),
    row_norms=(1.0, 1.0),
    value_quantiles=(0.028752, 0.073267, 0.222212),
    mean_norm2=0.022087,
    singular=(0.025883, 0.012151, 0.006356),
    batch_bound=229.105,
    optimum=0.189270,
    train_accuracy=0.97685,
    held_out_accuracy=0.96387,
)


def _fit(X, y):
    """Minimiser of (1/n) sum log(1 + exp(-b_i a_i'x)) + (1/2n) ||x||^2."""
    from sklearn.linear_model import LogisticRegression  # imported here: takes a second

    # scikit-learn minimises C * sum of losses + ||x||^2 / 2: C = 1 is lambda = 1/n
    return LogisticRegression(C=1.0, fit_intercept=False, tol=1e-6, max_iter=1000).fit(X, y).coef_.ravel()


def describe(data: Dataset, splits: int = 3) -> Statistics:
    """Measure a sparse data set of two classes without zero rows.

    Parameters
    ----------
    data : Dataset
        Rows a_i, labels b_i.
    splits : int
        Number of splits over which the held-out accuracy is averaged, at least 1.

    Returns
    -------
    Statistics
        ``nnz_quantiles`` at 0, 5, 25, 50, 75, 95 and 100 % of the rows; ``frequencies``: entries in the columns of rank
        1, 10, 100, 1,000 and 10,000; ``row_norms``: least and largest; ``value_quantiles`` at 5, 50 and 95 % of the
        entries; ``mean_norm2``: ||mean of a_i||^2; ``singular``: the three largest sigma^2 / n of X; ``batch_bound``:
        B_D(0) = n sum ||grad f_i||^2 / ||sum grad f_i||^2 for the logistic loss at x = 0, grad f_i = -b_i a_i / 2;
        ``optimum`` f* and ``train_accuracy`` with lambda = 1/n; ``held_out_accuracy``: the mean over splits with the
        seeds 0, 1, ..., 80 % to train on.

    Raises
    ------
    DataError
        If the data are dense or not of two classes.

    Examples
    --------
    >>> from theory.data import make_dataset
    >>> X = sp.csr_array(np.tile(np.eye(4), (3, 1)))
    >>> found = describe(make_dataset(X, [1, 1, -1, -1] * 3, "four corners"), splits=1)
    >>> found.nnz, round(found.batch_bound, 6), found.train_accuracy
    (12, 4.0, 1.0)
    """
    from scipy.sparse.linalg import svds  # slow to import

    require_binary(data)
    if not sp.issparse(data.X):
        raise DataError(f"{data.name}: describe is for sparse data; this is a dense matrix")
    X, y, n = data.X, data.y, data.n
    lengths = np.diff(X.indptr)
    frequencies = np.sort(np.bincount(X.indices, minlength=data.d))[::-1]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    mean, direction = X.T @ np.ones(n) / n, X.T @ y / n
    start = np.random.Generator(np.random.Philox(0)).random(min(X.shape))  # svds would draw a random start each time
    sigma = svds(X, k=3, v0=start, return_singular_vectors=False)
    x = _fit(X, y)
    margins = y * (X @ x)
    held_out = []
    for seed in range(splits):
        train, rest = data.split(0.8, seed)
        held_out.append(np.mean(rest.y * (rest.X @ _fit(train.X, train.y)) > 0))
    return Statistics(
        n=n,
        d=data.d,
        positive=int(np.sum(y > 0)),
        negative=int(np.sum(y < 0)),
        nnz=data.nnz,
        nnz_quantiles=tuple(round(float(q)) for q in np.quantile(lengths, LEVELS)),
        columns_used=int(np.count_nonzero(frequencies)),
        frequencies=tuple(int(frequencies[rank - 1]) for rank in RANKS if rank <= data.d),
        row_norms=(float(norms.min()), float(norms.max())),
        value_quantiles=tuple(float(q) for q in np.quantile(X.data, VALUE_LEVELS)),
        mean_norm2=float(mean @ mean),
        singular=tuple(float(s * s / n) for s in sorted(sigma, reverse=True)),
        batch_bound=float(np.mean(norms**2) / (direction @ direction)),
        optimum=float(np.mean(np.logaddexp(0.0, -margins)) + x @ x / (2 * n)),
        train_accuracy=float(np.mean(margins > 0)),
        held_out_accuracy=float(np.mean(held_out)),
    )


def outlines(real: Dataset, twin: Dataset) -> dict:
    """Values for a figure of two data sets: histograms of the non-zeros per row, and column frequencies at some ranks.

    Parameters
    ----------
    real, twin : Dataset

    Returns
    -------
    dict
        ``edges``, ``shares``, ``ranks`` and ``frequencies``, as `theory.plots.curves.draw_rows` takes them.
    """
    both = {"real RCV1 (subsets)": real, twin.name: twin}
    longest = max(np.diff(data.X.indptr).max() for data in both.values())
    edges = np.unique(np.rint(np.geomspace(6, longest + 1, 33)))
    columns = max(data.d for data in both.values())
    ranks = np.unique(np.rint(np.geomspace(1, columns, 400))).astype(np.int64)
    shares, frequencies = {}, {}
    for name, data in both.items():
        shares[name] = np.histogram(np.diff(data.X.indptr), edges)[0] / (data.n * np.diff(np.log(edges)))
        frequency = np.zeros(columns, np.int64)
        frequency[: data.d] = np.sort(np.bincount(data.X.indices, minlength=data.d))[::-1]
        frequencies[name] = frequency[ranks - 1]
    return {"edges": edges, "shares": shares, "ranks": ranks, "frequencies": frequencies}
