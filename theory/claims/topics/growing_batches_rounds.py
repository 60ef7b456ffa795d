"""Claims about CR-PSGD's number of rounds, and about the best growth of its batches."""

from __future__ import annotations

import math

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant, GrowingBatch
from ...problems import quadratic
from .. import claim, identity, lower, upper


@claim(
    "cr-psgd.rounds",
    of=bounds.growing_rounds,
    subject=lambda rho, first, budget, workers: (GrowingBatch(rho, first), budget),
    mutants={
        "batches stay as they are": lambda rho, first, budget, workers: (first, budget),
        "batches grow by the square": lambda rho, first, budget, workers: (GrowingBatch(rho**2, first), budget),
        "budget of all workers together": lambda rho, first, budget, workers: (
            GrowingBatch(rho, first),
            budget // workers,
        ),
    },
)
def _(context):
    problem, workers = quadratic([1.0], covariance=1.0), 4
    for rho, first, budget in ((1.1, 1, 20_000), (1.5, 4, 20_000), (1.1, 10, 100)):
        batch, spent = context.subject(rho, first, budget, workers)
        method = ParallelSGD(Identity(), step=Constant(0.1), batch=batch)
        run = context.run(method, problem, workers=workers, samples=spent, replicas=2, wire_dtype=np.float64)
        rounds, label = run.history["rounds"][-1], f"rounds, T={budget}, N={workers}, rho={rho:g}, B_1={first}"
        yield upper(label, rounds, bounds.growing_rounds(budget, rho, first))
        yield lower(label, rounds, math.floor(bounds.growing_rounds(budget, rho, first, batches="real")))


@claim(
    "cr-psgd.optimal-rho",
    of=bounds.optimal_rho,
    subject=bounds.optimal_rho,
    mutants={
        "half-way to 1/q": lambda mu, L: 0.5 * (1.0 + bounds.growth_limit(mu, L)),
        "q^(-1/3)": lambda mu, L: bounds.growth_limit(mu, L) ** (1.0 / 3.0),
    },
)
def _(context):
    from scipy.optimize import minimize_scalar

    for mu, L in ((1.0, 4.0), (1.0, 100.0), (0.9, 1.0)):
        q, limit, chosen = float(bounds.pl_contraction(mu, L)), bounds.growth_limit(mu, L), context.subject(mu, L)

        def factor(rho, q=q):
            return rho / ((rho - 1.0) * (1.0 - q * rho))

        best = minimize_scalar(factor, bounds=(1.0, 1.0 / q), method="bounded", options={"xatol": 1e-12}).x
        yield identity(f"rho - 1, mu={mu:g}, L={L:g}", best - 1.0, chosen - 1.0, 1e-5)
        yield identity("the factor there", factor(float(chosen)), 1.0 / (1.0 - math.sqrt(q)) ** 2, 1e-9)
        yield identity("alpha", math.log(1.0 / q) / math.log(chosen), 2.0, 1e-9)
        yield identity("q at gamma = 1/L, and the limit 1/q", q * limit, 1.0)
        yield identity("q", bounds.pl_contraction(mu, L), 1.0 - mu / L)
    yield "the minimiser is found numerically, hence to half of the digits"
