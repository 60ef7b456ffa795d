"""Data sets from scikit-learn, and data with several solutions that generalise differently.

scikit-learn contains small real data sets, and downloads RCV1.  In the data with several solutions, every row has
private features, and one feature determines the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arguments import is_whole
from ..core.random import key
from .dataset import DataError, Dataset, make_dataset

# --- Data sets from scikit-learn -------------------------------------------------------------------------------------

POSITIVE_TOPICS, NEGATIVE_TOPICS = ("CCAT", "ECAT"), ("GCAT", "MCAT")


def breast_cancer() -> Any:
    """Breast Cancer Wisconsin (Diagnostic): 569 x 30, unscaled; +1 benign, -1 malignant."""
    from sklearn.datasets import load_breast_cancer  # takes 0.9 s to import, so imported here

    X, y = load_breast_cancer(return_X_y=True)
    return X, np.where(y == 1, 1.0, -1.0), ("+1 is benign, -1 malignant",)


def digits() -> Any:
    """Handwritten digits, 8 x 8 grey values 0..16: 1,797 x 64; +1 even, -1 odd."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X, np.where(y % 2 == 0, 1.0, -1.0), ("+1 is an even digit, -1 an odd one",)


def digits_10() -> Any:
    """The digits in ten classes, 0 to 9."""
    from sklearn.datasets import load_digits

    return (*load_digits(return_X_y=True), ())


def diabetes() -> Any:
    """Diabetes progression after one year, a regression: 442 x 10, columns centred and of unit norm."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return X, y, ()


def rcv1() -> Any:
    """RCV1-v2, training part, in two classes by LIBSVM's rule: 20,242 x 47,236.

    Raises
    ------
    DataError
        If it is neither in scikit-learn's data folder nor can be downloaded.
    """
    from sklearn import datasets

    try:
        # the 23,149 training documents; all 804,414 would take 0.7 GB of memory in every rank that parses
        bunch = datasets.fetch_rcv1(subset="train")
    except OSError as error:  # URLError, time-outs and a full disk are all OSErrors
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"rcv1: scikit-learn could not download it ({reason}). Alternatives: give the path of a LIBSVM file of it, "
            'load_data("path/to/rcv1_train.binary.bz2", n_features=47236), or use the synthetic twin, '
            'load_data("rcv1-like")'
        ) from error
    return two_classes(bunch.data, bunch.target, list(bunch.target_names))


def two_classes(X: Any, topics: Any, names: Sequence[str]) -> Any:
    """LIBSVM's rule: + is CCAT or ECAT, - is GCAT or MCAT; a document of both, or of neither, is dropped.

    Parameters
    ----------
    X : csr matrix, shape (n, d)
    topics : sparse matrix, shape (n, number of topics)
        Non-zero where the document has the topic.
    names : list of str
        The topics' names, by column.

    Returns
    -------
    X, y, notes
    """
    topics = topics.tocsc()
    positive, negative = (
        np.asarray(topics[:, [names.index(name) for name in group]].sum(axis=1)).ravel() > 0
        for group in (POSITIVE_TOPICS, NEGATIVE_TOPICS)
    )
    rows = np.flatnonzero(positive != negative)
    dropped = X.shape[0] - rows.size
    note = f"+1 is CCAT or ECAT, -1 is GCAT or MCAT; {dropped} documents of both or neither are dropped (LIBSVM's rule)"
    return X[rows], np.where(positive[rows], 1.0, -1.0), (note,)


# --- Data on which solutions differ ----------------------------------------------------------------------------------


def wilson_data(rows: int, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Training and held-out data of ``rows`` points each in 12 ``rows`` dimensions, after Wilson et al. (2017).

    The label y is +1 or -1 with equal probability.  Coordinate 0 is y, coordinates 1 and 2 are 1, and only row i has
    ones in its block of coordinates 3 + 5i, ..., 7 + 5i: in the first if y = 1, in all five if y = -1.  So the private
    features of a row fit it as well as the one that generalises.  Of all solutions of least squares on the training
    rows, the one in their span (that of gradient descent) has almost no error on the held-out rows; a method that
    leaves the span can fit the training rows perfectly and still be wrong.

    Parameters
    ----------
    rows : int
        Number of rows of each part, at least 2.
    seed : int
        Seed of the labels.

    Returns
    -------
    train, held_out : Dataset
        Sparse, with 12 ``rows`` columns.

    Raises
    ------
    DataError
        If there are fewer than 2 rows.

    Notes
    -----
    Wilson, Roelofs, Stern, Srebro, Recht, "The marginal value of adaptive gradient methods in machine learning",
    NeurIPS 2017, section 3.3, in the form of Karimireddy, Rebjock, Stich, Jaggi, "Error feedback fixes SignSGD", ICML
    2019.

    Examples
    --------
    >>> train, held_out = wilson_data(100)
    >>> train
    Dataset(wilson: n=100, d=1200, nnz=604, binary)
    """
    if not is_whole(rows) or rows < 2:
        raise DataError(f"wilson_data: rows is {rows!r}; give an integer, at least 2")
    n = 2 * int(rows)
    rng = np.random.default_rng(int(key(seed, "wilson")))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    points, columns, values = [], [], []
    for i in range(n):
        private = 1 if y[i] > 0.0 else 5
        points += [i] * (3 + private)
        columns += [0, 1, 2, *range(3 + 5 * i, 3 + 5 * i + private)]
        values += [y[i]] + [1.0] * (2 + private)
    X = sp.csr_array((values, (points, columns)), shape=(n, 6 * n))
    half = n // 2
    train, test = slice(0, half), slice(half, n)
    return (
        make_dataset(X[train], y[train], "wilson", ("the rows to train on",)),
        make_dataset(X[test], y[test], "wilson", ("the rows to hold out",)),
    )
