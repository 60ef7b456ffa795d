"""Minima of three data sets by scikit-learn's solvers, and coefficients that R printed, beside `th.solve`."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets, linear_model
from sklearn.datasets import load_svmlight_file

import theory as th


def _data(name):
    """Standardised columns and labels of -1 and 1; heart_scale is distributed with LIBSVM."""
    if name == "heart_scale":
        found = load_svmlight_file(str(Path(__file__).with_name("heart_scale.bz2")))
        return found[0].toarray(), found[1]
    found = getattr(datasets, f"load_{name}")()
    A = (found.data - found.data.mean(axis=0)) / np.maximum(found.data.std(axis=0), 1e-12)
    return A, np.where(found.target > found.target.mean(), 1.0, -1.0)


SOLVERS = {"lbfgs": {"max_iter": 20_000}, "liblinear": {"max_iter": 20_000}, "saga": {"max_iter": 50_000}}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["breast_cancer", "digits", "wine", "heart_scale"])
def test_the_minimum_of_logistic_regression(name, solver):
    """To nine digits of f: their stopping rules bound gradients, not f - f*."""
    A, b = _data(name)
    l2 = 0.05
    problem = th.logistic((A, b), l2=l2)
    model = linear_model.LogisticRegression(
        C=1.0 / (l2 * len(b)), fit_intercept=False, solver=solver, tol=1e-9, random_state=0, **SOLVERS[solver]
    )
    theirs = th.value(problem, model.fit(A, b).coef_[0])
    assert theirs == pytest.approx(th.solve(problem).fun, rel=1e-9)


@pytest.mark.parametrize("solver", ["cholesky", "lsqr", "saga"])
def test_the_minimum_of_ridge_regression(solver):
    A, b = datasets.load_diabetes(return_X_y=True)
    A, b, l2 = A / A.std(axis=0), b - b.mean(), 0.1
    model = linear_model.Ridge(
        alpha=l2 * len(b), fit_intercept=False, solver=solver, tol=1e-11, max_iter=50_000, random_state=0
    )
    found = th.solve(th.ridge((A, b), l2=l2))
    np.testing.assert_allclose(model.fit(A, b).coef_, found.x, rtol=1e-6)


# James, Witten, Hastie, Tibshirani, An Introduction to Statistical Learning, section 4.3.4, by glm of R: the intercept,
# balance, income in thousands, student.  The data come with the package ISLP.
PRINTED = {
    "intercept": (-10.8690, 1.0),
    "balance": (0.0057, 1000.0),
    "income": (0.0030, 50.0),
    "student": (-0.6468, 1.0),
}
ISLP = importlib.util.find_spec("ISLP")


@pytest.mark.skipif(ISLP is None, reason="the data of the book are not installed: pip install --no-deps ISLP")
def test_coefficients_that_r_printed():
    path = Path(str(ISLP.origin)).parent / "data" / "Default.csv"
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    units = np.array([unit for _, unit in PRINTED.values()])  # so that the columns are alike
    A = np.array(
        [[1.0, float(row["balance"]), float(row["income"]) / 1000.0, float(row["student"] == "Yes")] for row in rows]
    )
    b = np.where([row["default"] == "Yes" for row in rows], 1.0, -1.0)
    found = th.solve(th.logistic((A / units, b), l2=1e-12), tolerance=1e-14).x / units
    np.testing.assert_allclose(found, [value for value, _ in PRINTED.values()], rtol=0.0, atol=5.1e-5)
