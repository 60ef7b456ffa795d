"""Claims about exact rates of error feedback without noise: a witness from below, a certificate from above.

A certificate is a quadratic form in rational numbers: rho V - V_+ minus multiples of what is known to be positive.  A
form without negative pivot is a sum of squares, so that the rate holds for every function, compressor and dimension.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ... import bounds
from ...methods import ErrorFeedback, ParallelSGD
from ...problems import quadratic
from .. import claim, identity, upper
from ..mutants.shared import LeakyFeedback, Scaling, WrongFeedback
from .feedback import beyond_the_frontier, unchanging

RATIONAL = ((2, Fraction(1, 5)), (3, Fraction(2, 5)), (9, Fraction(4, 11)))  # (kappa, s) at which roots are rational


class Proof(NamedTuple):
    """Factors of what a proof consists of: all 1 in the true one."""

    rate: int | Fraction = 1
    curved: int | Fraction = 1
    contracts: int | Fraction = 1
    cross: int = 1


WRONG_PROOFS = {
    "the function's multiplier doubled": Proof(curved=2),
    "the function's multiplier halved": Proof(curved=Fraction(1, 2)),
    "the compressor's multiplier doubled": Proof(contracts=2),
    "the compressor's multiplier halved": Proof(contracts=Fraction(1, 2)),
    "V without its mixed term": Proof(cross=0),
    "a rate that is 1 % lower": Proof(rate=Fraction(99, 100)),
}


def rational(value: float) -> Fraction:
    """The fraction that a closed form rounds."""
    return Fraction(value).limit_denominator(100_000)


def unit_forms(n: int) -> list[np.ndarray]:
    """Symbols x_1, ..., x_n: rational vectors, whose sums and multiples are linear combinations."""
    return [np.array([Fraction(int(i == j)) for j in range(n)], dtype=object) for i in range(n)]


def dot(a, b):
    """<a, b> as a symmetric matrix."""
    return (np.outer(a, b) + np.outer(b, a)) / Fraction(2)


def pivots(form) -> list[Fraction]:
    """Pivots of a rational symmetric matrix, all at least 0 if it is a sum of squares, exactly."""
    left = form.copy()
    found: list[Fraction] = []
    for k in range(len(left)):
        if left[k, k] == 0 and any(left[k]):
            return [*found, Fraction(-1)]
        found.append(left[k, k])
        if left[k, k]:
            left = left - np.outer(left[k], left[k]) / left[k, k]
    return found


def most_negative(found: list[Fraction]) -> float:
    """The most negative pivot, 0 if there is none."""
    return float(min(Fraction(0), *found))


def known(kappa: int, s: Fraction):
    """L, eta, rho and the multiplier with mu = 1, from the closed forms."""
    at = dict(mu=1.0, lipschitz=float(kappa))
    delta = 1.0 - float(s) ** 2
    eta, rho = bounds.exact_feedback_step(delta, **at), bounds.exact_feedback_rate(delta, kappa)
    return kappa, rational(eta), rational(rho), rational(bounds.exact_feedback_multiplier(delta, **at))


def error_feedback_form(kappa: int, s: Fraction, proof: Proof, workers: int = 1):
    """The form that error feedback's proof says is a sum of squares; every worker has its own function and memory."""
    L, eta, rho, multiplier = known(kappa, s)
    x, *symbols = unit_forms(1 + 3 * workers)
    e, g, after = symbols[:workers], symbols[workers : 2 * workers], symbols[2 * workers :]
    sent = [e[i] + eta * g[i] - after[i] for i in range(workers)]

    def V(x, e):
        mean = sum(e) / Fraction(workers)
        return dot(x, x) - 2 * proof.cross * dot(x, mean) + dot(mean, mean) + sum(dot(m, m) for m in e) / (s * workers)

    curved = sum((L + 1) * dot(g[i], x) - dot(g[i], g[i]) - L * dot(x, x) for i in range(workers)) / (L - 1)
    kept = sum(s**2 * dot(e[i] + eta * g[i], e[i] + eta * g[i]) - dot(after[i], after[i]) for i in range(workers)) / s
    step = V(x - sum(sent) / Fraction(workers), after)
    return proof.rate * rho * V(x, e) - step - (proof.curved * multiplier * curved + proof.contracts * kept) / workers


def ef21_form(kappa: int, s: Fraction, proof: Proof):
    """The form that EF21's proof says is a sum of squares: g, g+ gradients, h, h+ their estimates."""
    L, eta, rho, multiplier = known(kappa, s)
    g, after, h, learnt = unit_forms(4)

    def V(g, h):
        return (1 + s) * dot(g, g) - 2 * proof.cross * dot(g, h) + dot(h, h)

    change = g - after
    curved = ((L + 1) * dot(change, eta * h) - dot(change, change) - L * eta**2 * dot(h, h)) / (L - 1)
    kept = s**2 * dot(after - h, after - h) - dot(after - learnt, after - learnt)
    weight = proof.curved * multiplier * s / eta**2
    return proof.rate * rho * V(g, h) - V(after, learnt) - weight * curved - proof.contracts * kept


def squared_radius(matrix) -> float:
    """The factor of ||z||^2 a step in the long run."""
    return float(np.abs(np.linalg.eigvals(np.array(matrix, float))).max() ** 2)


def feedback_matrix(step: float, factor: float, *slopes: float):
    """A step of (x, e_1, ..., e_N) on f_i = slope_i x^2/2 with C(v) = factor v."""
    x, *e = np.eye(1 + len(slopes))
    p = [m + step * slope * x for m, slope in zip(e, slopes, strict=True)]
    return [x - factor * sum(p) / len(p), *((1.0 - factor) * sent for sent in p)]


def run_factor(context, feedback, step: float, s: float, mu: float, lipschitz: float, workers: int = 1) -> float:
    """The factor of ||x||^2 a step, after 60 and 62 steps of the package's run on two coordinates."""
    problem, known = quadratic(np.array([mu, lipschitz]), covariance=0.0), dict(x0=np.ones(2), seed=0)
    method = ParallelSGD(Scaling(1.0 - s**2, over=True), unchanging(step), feedback)
    with beyond_the_frontier():
        found = [context.run64(method, problem, steps=T, workers=workers, **known).last for T in (60, 62)]
    return float(np.linalg.norm(found[1]) / np.linalg.norm(found[0]))


@claim(
    "ef.exact",
    of=bounds.exact_feedback_rate,
    subject=lambda step: (step, ErrorFeedback()),
    mutants={
        "a step 10 % longer": lambda step: (1.1 * step, ErrorFeedback()),
        "a step 10 % shorter": lambda step: (0.9 * step, ErrorFeedback()),
        "a memory of which half is lost": lambda step: (step, LeakyFeedback(0.5)),
    },
    see=("ef.exact.certificate",),
)
def _(context):
    for kappa, s in ((2.0, 0.2), (4.0, 0.05), (30.0, 0.3), (30.0, 0.8)):
        delta, mu, L = 1.0 - s**2, 0.5, 0.5 * kappa
        step, feedback = context.subject(bounds.exact_feedback_step(delta, mu=mu, lipschitz=L))
        rate, where = bounds.exact_feedback_rate(delta, kappa), f"L/mu={kappa:g}, s={s:g}"
        both = [squared_radius(feedback_matrix(step, 1.0 + s, slope)) for slope in (mu, L)]
        yield identity(f"squared spectral radius, error feedback, {where}", max(both), rate, 1e-9)
        c = 1.0 + s
        both = [squared_radius([[1.0, -step], [c * a, 1.0 - c - c * step * a]]) for a in (mu, L)]
        yield identity(f"the same, EF21, {where}", max(both), rate, 1e-9)
        if s < rate - 0.1:  # so that the second eigenvalue, s/z, has died out
            found = run_factor(context, feedback, step, s, mu, L)
            yield identity(f"||x_62||/||x_60||, a run, {where}", found, rate, 1e-4)


@claim(
    "ef.exact.certificate",
    of=bounds.exact_feedback_multiplier,
    subject=Proof(),
    mutants=WRONG_PROOFS,
    see=("ef.exact",),
)
def _(context):
    for name, form in (("error feedback", error_feedback_form), ("EF21", ef21_form)):
        for kappa, s in RATIONAL:
            found = pivots(form(kappa, s, context.subject))
            where = f"{name}, L/mu={kappa}, s={s}"
            yield identity(f"most negative pivot, {where}", most_negative(found), 0.0, 0.0)
            yield identity(f"number of squares, {where}", sum(pivot > 0 for pivot in found), 1.0, 0.0)


@claim(
    "ef.exact.workers",
    of=bounds.exact_feedback_rate,
    subject=(Proof(), ErrorFeedback()),
    mutants={name: (proof, ErrorFeedback()) for name, proof in WRONG_PROOFS.items()}
    | {"messages summed, not averaged": (Proof(), WrongFeedback(outside=3.0))},
    see=("ef.exact.certificate",),
)
def _(context):
    proof, feedback = context.subject
    for kappa, s in RATIONAL:
        delta = 1.0 - float(s) ** 2
        rate, where = bounds.exact_feedback_rate(delta, kappa), f"N=3, L/mu={kappa}, s={s}"
        step = bounds.exact_feedback_step(delta, mu=1.0, lipschitz=float(kappa))
        found = run_factor(context, feedback, step, float(s), 1.0, float(kappa), workers=3)
        yield identity(f"||x_62||/||x_60||, a run, {where}", found, rate, 1e-4)
        left = pivots(error_feedback_form(kappa, s, proof, workers=3))
        yield identity(f"most negative pivot, {where}", most_negative(left), 0.0, 0.0)


@claim(
    "ef.exact.two-workers",
    certificate="conjecture",
    of=bounds.two_workers_feedback_rate,
    subject=1.0,
    mutants={"a step 10 % longer": 1.1, "a step 10 % shorter": 0.9},
    see=("ef.exact.workers",),
)
def _(context):
    for first, second, s in (
        ((1.0, 4.0), (2.0, 8.0), 0.3),
        ((1.0, 20.0), (0.1, 2.0), 0.1),
        ((1.0, 4.0), (1.0, 10.0), 0.3),
        ((1.0, 2.0), (3.0, 30.0), 0.5),
    ):
        delta, ends = 1.0 - s**2, list(zip(first, second, strict=True))
        step = context.subject * bounds.two_workers_feedback_step(delta, first, second)
        law, where = bounds.two_workers_feedback_rate(delta, first, second), f"{first}, {second}, s={s:g}"
        found = max(squared_radius(feedback_matrix(step, 1.0 + s, *slopes)) for slopes in ends)
        if first[0] * second[1] == first[1] * second[0]:
            yield identity(f"squared spectral radius, {where}", found, law, 1e-9)
        else:
            yield upper(f"the same, {where}", found, law)
            one = bounds.exact_feedback_rate(delta, sum(ends[1]) / sum(ends[0]))
            yield identity(f"one worker on the mean function, {where}", found, float(one), 1e-9)
    yield "Where the condition numbers differ, nobody has a better instance, or a proof."
