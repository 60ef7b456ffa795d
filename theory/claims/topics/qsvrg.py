"""Claims about QSVRG: the second moment of its gradients, the factor of an epoch, the rate and the bits."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from ... import bounds
from ...cluster import qsvrg
from ...compressors import QSGD, Elias, Identity, omega
from ...methods import QSVRG
from ...methods.schedules import Constant
from ...problems import max_lipschitz, ridge, solve, strong_convexity
from ...wire import bits_for
from .. import certain, claim, equality, identity, upper

D, LEVELS = 16, 4  # s = sqrt(d)


def regression(context, d=D):
    """A ridge regression with 24 rows, its minimum, L of its rows and mu."""
    A, b = context.normal((24, d), "A"), 10.0 * context.normal(24, "b")
    problem = ridge((A / np.linalg.norm(A, axis=1)[:, None], b), l2=0.2)
    return problem, solve(problem).fun, max_lipschitz(problem), strong_convexity(problem)


@claim(
    "qsvrg.second-moment",
    of=bounds.svrg_second_moment,
    subject=-1.0,
    mutants={"the row's gradient at y added": 1.0},
)
def _(context):
    L, n = 2.0, 50
    for far in (-1.0, 0.0, 1.0):  # y = far x, x = (1, ..., 1)
        v = L * np.eye(n) * (1.0 + context.subject * far) + L / n * far
        gap, anchor_gap = L / 2.0, L / 2.0 * far**2
        predicted = bounds.svrg_second_moment(gap, anchor_gap, lipschitz=L)
        yield upper(
            f"E||v||^2, f_j = (L/2) x_j^2, n={n}, y = {far:g} x", float(np.mean(np.sum(v**2, axis=1))), predicted
        )


def largest_mean_gap(inner: int, *, step, lipschitz, mu, omega, workers) -> Fraction:
    """The largest mean of f(x_t) - f* in an epoch from f(y) - f* = 1 that the one-step inequality allows."""

    def left(gap):
        squared = 2 / Fraction(mu)  # ||y - x*||^2 <= 2 (f(y) - f*)/mu
        for _ in range(inner):
            rows = Fraction(float(bounds.svrg_second_moment(float(gap), 1.0, lipschitz=lipschitz)))
            moment = (1 - Fraction(1, workers)) * 2 * lipschitz * gap + (1 + Fraction(omega)) / workers * rows
            squared += -2 * step * gap + step**2 * moment
        return squared

    return left(Fraction(0)) / (left(Fraction(0)) - left(Fraction(1)))


class WithoutFull(QSVRG):
    """QSVRG that forgets the full gradient after the first step of an epoch."""

    share = 0.0

    def round(self, run):
        """One step."""
        begins = run.every(self.inner)
        QSVRG.round(self, run)
        if begins:
            run.scale(run.vector("h"), self.share)


class MinusFull(WithoutFull):
    """The same, with the sign wrong."""

    share = -1.0


@claim(
    "qsvrg.factor",
    lemmas=("qsvrg.second-moment",),
    of=bounds.qsvrg_factor,
    subject=(QSVRG, partial(QSGD, LEVELS)),
    mutants={
        "no full gradient: SGD": (WithoutFull, partial(QSGD, LEVELS)),
        "minus the full gradient": (MinusFull, partial(QSGD, LEVELS)),
    },
)
def _(context):
    problem, least, L, mu = regression(context)
    method, make = context.subject
    y = solve(problem).x + 0.1 * context.normal(D, "y")
    for workers in (1, 4):
        known = {"lipschitz": L, "mu": mu, "omega": omega(make(), D)}
        eta, inner = float(bounds.qsvrg_step(L, known["omega"])), bounds.qsvrg_inner(**known)
        epoch = method(make(), Constant(eta), inner)
        options = {"workers": workers, "steps": inner, "replicas": context.samples(96, 24)}
        gap = context.run64(epoch, problem, workers, x0=y, **options).funs - least
        start = float(context.run(epoch, problem, x0=y, workers=1, steps=1).history["f"][0] - least)
        factor = bounds.qsvrg_factor(inner, step=eta, workers=workers, **known)
        yield upper(f"gap after an epoch / gap before, ridge, N={workers}, T={inner}", gap / start, factor)
    for inner, step, L, mu, w, N in (
        (40, "1/16", 2, "1/2", "1/4", 1),
        (40, "1/16", 2, "1/2", 1, 4),
        (400, "1/64", 4, 1, 3, 2),
    ):
        exact = {"step": Fraction(step), "lipschitz": L, "mu": Fraction(mu), "omega": Fraction(w)}
        lemmas = largest_mean_gap(inner, workers=N, **exact)
        theorem = bounds.qsvrg_factor(inner, workers=N, **{name: float(x) for name, x in exact.items()})
        yield identity(f"largest mean gap that the lemmas allow, N={N}, T={inner}, omega={w}", float(lemmas), theorem)


@claim(
    "qsvrg.rate",
    lemmas=("qsvrg.factor",),
    of=bounds.qsvrg_factor,
    subject=(1.0, 1.0),
    mutants={"steps a hundredth as large": (0.01, 1.0), "a hundredth of the steps": (1.0, 0.01)},
)
def _(context):
    problem, least, L, mu = regression(context)
    (longer, more), w = context.subject, omega(QSGD(LEVELS), D)
    step, inner = longer * bounds.qsvrg_step(L, w), math.ceil(more * bounds.qsvrg_inner(L, mu, w))
    runs = [qsvrg(problem, workers=2, epochs=3, step=step, inner=inner, seed=context.stream(r)) for r in range(4)]
    context.used.add("run")
    for p in (1, 3):
        gaps = np.array([found.history["f"] - least for found in runs])
        yield upper(
            f"gap after {p} epochs / gap before, the largest of 4 runs",
            certain(np.max(gaps[:, p] / gaps[:, 0])),
            0.9**p,
        )
    for L, mu, w in ((1.0, 1.0, 0.25), (50.0, 1.0, 0.25), (7.0, 0.3, 3.0)):
        step, inner = longer * bounds.qsvrg_step(L, w), math.ceil(more * bounds.qsvrg_inner(L, mu, w))
        factor = bounds.qsvrg_factor(inner, step=step, lipschitz=L, mu=mu, omega=w)
        yield upper(f"factor of an epoch, L/mu={L / mu:.4g}, omega={w:g}", float(factor), 0.9)


@claim(
    "qsvrg.bits",
    of=bounds.qsvrg_bits,
    subject=partial(QSGD, LEVELS),
    mutants={"full precision": Identity, "twice the levels": partial(QSGD, 2 * LEVELS)},
)
def _(context):
    for inner, d, dtype in ((50, D, np.float32), (2, D, np.float32), (5, 10, np.float64)):
        problem, F = regression(context, d)[0], 8 * np.dtype(dtype).itemsize
        known = {"workers": 2, "epochs": 2, "step": 0.01, "seed": context.stream(inner), "wire_dtype": dtype}
        found = qsvrg(problem, context.subject(), inner=inner, **known)
        context.used.add("run")
        sent, fixed = certain(found.history["bits_up"][-1] / 2), F + d * bits_for(2 * LEVELS + 1)
        label = f"bits of a worker in an epoch, levels of 4 bits, T={inner}, d={d}, F={F}"
        yield equality(label, sent, bounds.qsvrg_bits(d, inner, fixed, F))
    problem, *_ = regression(context)
    coded = qsvrg(problem, QSGD(LEVELS, code=Elias()), workers=2, epochs=2, inner=50, step=0.01, seed=context.stream())
    bound = bounds.qsvrg_bits(D, 50, bounds.qsgd_elias_length(D, LEVELS))
    yield upper("the same in Elias codes, T=50", certain(coded.history["bits_up"][-1] / 2), float(bound))
    printed = float(bounds.qsvrg_bits(D, 50, 1.0, form="paper"))
    ideal = float(bounds.qsvrg_bits(D, 50, bounds.qsgd_arithmetic_length(D, LEVELS)))
    yield upper("the same in an arithmetic code, against the paper's bound", ideal, printed)
