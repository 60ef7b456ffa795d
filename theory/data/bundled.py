"""Data sets from scikit-learn: small real ones that it contains, and RCV1, which it downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .dataset import DataError

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
            f"rcv1: scikit-learn could not download it ({reason}). Two ways on: give the path of a LIBSVM file of it, "
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
