"""Claims about ridge regression on RCV1: its minimum, and SGD's bound."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import Identity
from ...data import load_data
from ...methods import ParallelSGD
from ...methods.schedules import InverseTime, Polynomial
from ...problems import lipschitz, max_lipschitz, ridge, solve, value
from ...problems.matrix import to_scipy
from .. import assumption, claim, identity, upper
from .sgd_averages import schedule

DIGITS = 1e-9  # relative tolerance of the minimum; both solvers stop far below it
SPEAKS, MOST = 400, 2**16  # rounds of 256 samples; more where the bound is not yet clearly below f(x_0) - f*


@lru_cache(maxsize=2)
def _problem(data):
    """Ridge regression with lambda = 1/n on the user's data or rcv1-like, and its certified minimum."""
    if data is None:
        return _problem(load_data("rcv1-like"))
    problem = ridge(data, l2=1.0 / data.n)
    return problem, solve(problem)


@claim(
    "ridge.minimum.rcv1",
    of=bounds.ridge_minimum,
    subject=(1.0, 1.0),
    mutants={
        "lambda I in place of n lambda I": (0.0, 1.0),
        "2 n lambda I": (2.0, 1.0),
        "without the factor 1/2": (1.0, 2.0),
    },
)
def _(context):
    problem, best = _problem(context.data)
    A, b, l2 = to_scipy(problem.A), problem.b, problem.l2
    weight, factor = context.subject
    shift = weight * problem.n * l2 or l2
    dual = scipy.sparse.linalg.LinearOperator((problem.n,) * 2, matvec=lambda v: A @ (A.T @ v) + shift * v, dtype=float)
    most = 20_000 if weight else 5  # five show that the wrong system is wrong; many more hang on the last digit
    alpha, failed = scipy.sparse.linalg.cg(dual, b, rtol=1e-13, maxiter=most)
    yield identity("f*", float(best.fun), factor * bounds.ridge_minimum(float(b @ alpha), l2=l2), DIGITS)
    for l2 in (0.3, 2.0):
        small = ridge((context.normal((20, 5), "rows"), context.normal(20, "targets")), l2=l2)
        A, b = to_scipy(small.A), small.b
        alpha = np.linalg.solve(A @ A.T + (weight * small.n * l2 or l2) * np.eye(small.n), b)
        least = factor * bounds.ridge_minimum(float(b @ alpha), l2=l2)
        yield identity(f"f*, 20 Gaussian rows, lambda={l2:g}", float(solve(small).fun), least, DIGITS)
    yield f"{problem.name}, n={problem.n}, d={problem.d}; the certificate of the primal minimum is {best.gap:.1e}"
    if failed:
        yield "conjugate gradients stopped early"


@claim(
    "ridge.sgd.rcv1",
    of=bounds.sgd_average,
    subject=1.0,
    mutants={"steps a thousand times too small": 1e-3},
    see=("sgd.average",),
)
def _(context):
    problem, best = _problem(context.data)
    workers, batch, mu, origin = 8, 32, problem.l2, np.zeros(problem.d)
    L, largest, start = lipschitz(problem), max_lipschitz(problem), float(value(problem, origin))
    trivial, shift = start - best.fun, max(2.0, 32.0 * L / mu)
    step, average = InverseTime(8.0 * context.subject, mu, shift), Polynomial(shift, 2.0)
    method = ParallelSGD(Identity(sparse=True), step=step, batch=batch, average=average, compress="loss")
    moment = bounds.level_set_second_moment(largest, start)
    slope = min(moment, bounds.level_set_gradient(L, start, best.fun - best.gap))
    second = bounds.averaged_second_moment(moment - slope, moment, workers=workers, batch=batch)
    steps, bound = SPEAKS // 2, math.inf
    while bound > 0.75 * trivial and steps < MOST:
        steps *= 2
        etas, weights = schedule(InverseTime(8.0, mu, shift), steps), schedule(average, steps)
        bound = bounds.sgd_average(etas, weights, mu=mu, second_moment=second, distance=float(best.x @ best.x))
    known: dict[str, Any] = dict(workers=workers, steps=steps, record_every=steps // 8)
    result = context.run(method, problem, replicas=context.samples(48, 12), **known)
    yield upper(f"E f(xbar_T) - f*, T={steps}", result.funs - best.fun, bound, trivial=trivial)
    yield assumption("the largest f(x_t) that was evaluated", float(result.replica_last.max()), start)
    yield f"{problem.name}, n={problem.n}, N={workers}, B={batch}; the constants hold where f(x) <= f(x_0)"
