"""An epoch of plain sparse SGD and of Mem-SGD, in epochs of scikit-learn's SGDClassifier."""

from __future__ import annotations

import importlib
import time
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, SGDClassifier

import theory as th

from .pairing import Row, clocked, duration, in_turn, versus
from .references import dense_scan, numpy_steps

EPOCHS = 5  # of plain SGD in a run, and of the classifier in a call of fit, where its checks of the data count little
K = 10
NUMPY_STEPS = 300  # of the NumPy code, taken for an epoch in proportion
AGAINST = "SGDClassifier, an epoch"

driver = importlib.import_module("theory.cluster.checkpoints")  # which times the rounds
CLOCKS = SimpleNamespace(perf_counter=time.process_time, monotonic=time.monotonic)


def classifier(data, l2):
    """Seconds of one of its epochs."""
    X = sp.csr_matrix(data.X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    model = SGDClassifier(
        loss="log_loss", alpha=l2, fit_intercept=False, shuffle=True, tol=None, max_iter=EPOCHS, random_state=0
    )

    return clocked(lambda: model.fit(X, data.y), shares=EPOCHS)


def solver(name, data, l2):
    """Seconds of an epoch of SAGA, or of an iteration of L-BFGS, in scikit-learn: EPOCHS of them in a call of fit."""
    X = sp.csr_matrix(data.X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    model = LogisticRegression(
        solver=name, C=1.0 / (l2 * data.n), fit_intercept=False, tol=1e-12, max_iter=EPOCHS, random_state=0
    )

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it stops before it has converged, as it was told
            model.fit(X, data.y)

    return clocked(fit, shares=EPOCHS)


def epoch(method, problem, epochs=1, wire_dtype=np.float64):
    """Seconds of one epoch of a method: its steps alone, without the values of f that its history wants."""
    steps = epochs * problem.n

    def run() -> float:
        with mock.patch.object(driver, "time", CLOCKS):
            result = th.run(method, problem, workers=1, steps=steps, record_every=steps, wire_dtype=wire_dtype)
        return float(result.history["seconds"][-1]) / epochs

    return run


def call(method, problem):
    """Processor seconds of an epoch of a whole call of run, with f at its start and its end."""
    steps = EPOCHS * problem.n
    return clocked(lambda: th.run(method, problem, workers=1, steps=steps, record_every=steps), shares=EPOCHS)


def plain(given):
    """Plain SGD with lossless sparse messages, against SGDClassifier."""
    data = given.data
    problem = th.logistic(data, l2=1 / data.n)
    step = th.InverseTime(c=2.0, mu=1 / data.n, shift=data.d)
    methods = {
        sampling: th.ParallelSGD(th.Identity(sparse=True), step=step, compress="loss", sampling=sampling)
        for sampling in ("shuffle", "iid")
    }
    seconds = in_turn(
        3 * given.turns,
        theirs=classifier(data, problem.l2),
        **{name: epoch(method, problem, EPOCHS) for name, method in methods.items()},
        **{f"{name}, call": call(method, problem) for name, method in methods.items()},
        **{name: solver(name, data, problem.l2) for name in ("saga", "lbfgs")},
    )
    for name, what, least in (("shuffle", "shuffled rows", 2.0), ("iid", "i.i.d. rows", 1.9)):
        yield Row(
            f"SGD, {what}: how many times faster an epoch is",
            AGAINST,
            seconds["theirs"] / seconds[name],
            ("at least", least),
            versus(seconds[name], seconds["theirs"]),
        )
        whole, told = seconds[f"{name}, call"], f"the same of a whole call of run, {EPOCHS} epochs: checks and f, too"
        yield Row(told, AGAINST, seconds["theirs"] / whole, ("at least", 2.0), versus(whole, seconds["theirs"]))
    for name, what in (("saga", "an epoch of scikit-learn's SAGA"), ("lbfgs", "an iteration of scikit-learn's L-BFGS")):
        times = versus(seconds[name], seconds["theirs"])
        yield Row(f"for comparison: {what}", AGAINST, seconds[name] / seconds["theirs"], None, times)


def memsgd(given):
    """Mem-SGD with exact top-10, and what it costs as others write it."""
    data, n, d = given.data, given.data.n, given.data.d
    problem = th.logistic(data, l2=1 / n)
    c, shift = 2.0, 10.0 * d / K
    method = th.ParallelSGD(
        th.TopK(K), feedback=th.ErrorFeedback(), average="quadratic", step=th.InverseTime(c=c, mu=1 / n, shift=shift)
    )
    A, X, generator = problem.A, sp.csr_matrix(data.X), np.random.default_rng(0)

    memory, x, moved = (np.zeros(d) for _ in range(3))

    def scan():
        for zero in (memory, x, moved):
            zero[:] = 0.0
        rows = generator.integers(0, n, n)
        dense_scan(A.data, A.indices, A.indptr, problem.b, problem.l2, K, c, shift, rows, memory, x, moved)

    def authors():  # goes on where the scan ended
        rows = generator.integers(0, n, NUMPY_STEPS)
        numpy_steps(X, data.y, problem.l2, K, c, shift, rows, n, memory.copy(), x.copy())

    seconds = in_turn(
        given.turns,
        theirs=classifier(data, problem.l2),
        ours=epoch(method, problem),
        scan=clocked(scan),
        numpy=clocked(authors, shares=NUMPY_STEPS / n),
    )
    theirs = seconds["theirs"]
    for name, what, target in (
        ("ours", "Mem-SGD top-10, an epoch", ("at most", 18.0)),
        ("scan", "the same with a dense scan in Numba", None),
        ("numpy", f"the same in NumPy as its authors wrote it ({NUMPY_STEPS} steps scaled up)", None),
    ):
        yield Row(what, AGAINST, seconds[name] / theirs, target, versus(seconds[name], theirs))
    steps = f"{duration(seconds['ours'] / n)} a step"
    yield Row(
        "Mem-SGD top-10: how many times faster than the dense scan",
        "dense scan in Numba",
        seconds["scan"] / seconds["ours"],
        None,
        steps,
    )
