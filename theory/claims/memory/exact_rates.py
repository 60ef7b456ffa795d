"""Claims about exact rates of compressed gradient descent, and the longest stable step.

The rates have a witness from below and a certificate from above.  A certificate is a quadratic form: rho V - V_+ minus
multiples of what is known to be positive.  A form without negative pivot is a sum of squares, so that the rate holds
for every function, compressor and dimension.  The claims compute it exactly where L/mu and s make it rational;
theory/claims/proofs proves it for all L/mu and s.

The longest stable step comes from exact second moments on scalar quadratics.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from ... import bounds
from ...methods import ErrorFeedback, ParallelSGD
from ...problems import quadratic
from ...worst import worst_case
from .. import claim, identity, lower, upper
from ..factories import crossing
from ..mutants import LeakyFeedback, Scaling, WrongFeedback, descent, diana, ef21, error_feedback, growth
from ..proofs.exact_rates import WRONG, Weights, descent_at, descent_form, ef21_form, error_feedback_form, known
from ..proofs.execute import Formulas
from ..proofs.proof_list import pivots
from ..runs import worst_run
from .error_feedback import beyond_the_frontier, unchanging

# --- Exact rates of compressed gradient descent ----------------------------------------------------------------------

RATIONAL = ((2, Fraction(1, 5)), (3, Fraction(2, 5)), (9, Fraction(4, 11)))  # (kappa, s) at which roots are rational


def most_negative(found: list[Fraction]) -> float:
    """The most negative pivot, 0 if there is none."""
    return float(min(Fraction(0), *found))


def forms_at(kappa: int, s: Fraction):
    """The closed forms at a point where they are rational, exactly."""
    return known(Formulas(bounds), Fraction(kappa), s)


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
    yield from worst_run(context, "ef", 8)
    yield from worst_run(context, "ef21", 4)


@claim(
    "ef.exact.certificate",
    of=bounds.exact_feedback_multiplier,
    subject=Weights(),
    mutants=WRONG,
    see=("ef.exact",),
)
def _(context):
    for name, form in (("error feedback", error_feedback_form), ("EF21", ef21_form)):
        for kappa, s in RATIONAL:
            found = pivots(form(forms_at(kappa, s), context.subject).left)
            where = f"{name}, L/mu={kappa}, s={s}"
            yield identity(f"most negative pivot, {where}", most_negative(found), 0.0, 0.0)
            yield identity(f"number of squares, {where}", sum(pivot > 0 for pivot in found), 1.0, 0.0)
        for ratio, missing in ((4.0, 0.3), (30.0, 0.05)):  # the formula in floats, where its root is irrational
            left = np.array(form(known(bounds, ratio, missing), context.subject).left, float)
            values, where = np.linalg.eigvalsh(left), f"{name}, L/mu={ratio:g}, s={missing:g}"
            yield identity(f"smallest over largest eigenvalue, {where}", values[0] / values[-1], 0.0)


@claim(
    "ef.exact.workers",
    of=bounds.exact_feedback_rate,
    subject=(Weights(), ErrorFeedback()),
    mutants={name: (proof, ErrorFeedback()) for name, proof in WRONG.items()}
    | {"messages summed, not averaged": (Weights(), WrongFeedback(outside=3.0))},
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
        left = pivots(error_feedback_form(forms_at(kappa, s), proof, workers=3).left)
        yield identity(f"most negative pivot, {where}", most_negative(left), 0.0, 0.0)
    yield from worst_run(context, "ef-workers", 3)


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
    for steps in (6, 7):
        yield from worst_run(context, "ef-different", steps)
    six, seven = (worst_case("ef-different", steps) for steps in (6, 7))
    (first, second), delta = six.case.constants, 1.0 - six.case.s**2
    one = bounds.exact_feedback_rate(delta, (first[1] + second[1]) / (first[0] + second[0]))
    label = f"worst case of 7 steps over that of 6, {first}, {second}"
    yield lower(f"{label}, against one worker on the mean function", seven.value / six.value, float(one))
    yield upper(label, seven.value / six.value, bounds.two_workers_feedback_rate(delta, first, second))
    yield "Where condition numbers differ, worst cases of a few steps are slower than the worst instance for all steps"
    yield "that is known, and faster than the formula. No instance between the two is known, and no proof."


# --- without memory ---------------------------------------------------------------------------------------------------


def worst_step(step: float, s: float, kappa: float, measure: str) -> float:
    """The largest factor of a step on (x_1^2 + kappa x_2^2)/2, over starts and errors on circles."""
    start, turn = np.linspace(0.0, np.pi / 2, 181)[:, None], np.linspace(0.0, 2.0 * np.pi, 361)
    slopes, x = np.array([1.0, kappa]), np.stack([np.cos(start), np.sin(start)])
    g = slopes[:, None, None] * x
    moved = x - step * (g + s * np.linalg.norm(g, axis=0) * np.stack([np.cos(turn), np.sin(turn)])[:, None])
    weights = slopes if measure == "gap" else np.ones(2)
    return float((np.einsum("i,ijk->jk", weights, moved**2) / np.einsum("i,ijk->jk", weights, x**2)).max())


@claim(
    "ef.exact.no-memory",
    of=bounds.compressed_descent_rate,
    subject=(Weights(), "gap", 1.0),
    mutants={name: (proof, "gap", 1.0) for name, proof in list(WRONG.items())[:4]}
    | {"the distance in place of f - f*": (Weights(), "distance", 1.0)}
    | {"(1 + s) mu in place of (1 - s) mu in the step": (Weights(), "gap", (0.8 + 2.4) / (1.2 + 2.4))},
)
def _(context):
    proof, measure, factor = context.subject
    for kappa, s in RATIONAL:
        delta, where = 1.0 - float(s) ** 2, f"L/mu={kappa}, s={s}"
        step = factor * bounds.compressed_descent_step(delta, mu=1.0, lipschitz=float(kappa))
        rate = bounds.compressed_descent_rate(delta, kappa)
        yield identity(f"worst step, {measure}, {where}", worst_step(step, float(s), kappa, measure), rate, 1e-9)
        found = pivots(descent_form(*descent_at(Formulas(bounds), Fraction(kappa), s), proof))
        yield identity(f"most negative pivot, {where}", most_negative(found), 0.0, 0.0)
        yield lower(f"rate of error feedback, {where}", float(bounds.exact_feedback_rate(delta, kappa)), float(rate))
    yield from worst_run(context, "compressed-gd", 4)


# --- The longest stable step of compressed methods -------------------------------------------------------------------

SHARED = "one coin for all workers"


def around(method, frontier, settings):
    """Where a method's second moments begin to grow; their growth at the frontier, and at shorter steps."""
    for where, arguments in settings.items():
        edge = frontier(*arguments)
        shorter = max(growth(method(share * edge, *arguments)) for share in (0.01, 0.1, 0.5, 0.9, 0.999))
        found = crossing(0.0, 50.0, lambda step: growth(method(step, *arguments)) < 1.0, 60)  # noqa: B023
        yield identity(f"step from which on they grow, {where}", found, edge, tolerance=1e-7)
        yield identity(f"growth at s* = {edge:.4g}, {where}", growth(method(edge, *arguments)), 1.0, tolerance=1e-9)
        yield upper(f"largest growth at 0.01 s* to 0.999 s*, {where}", shorter, 1.0 - 1e-6)


def frontier_law(id, of, method, settings, mutants):
    """A claim about the longest stable step of a method, with the settings by their names."""
    mutants = {SHARED: partial(method, shared=True)} | mutants
    claim(id, of=of, subject=method, mutants=mutants)(lambda context: around(context.subject, of, settings))


frontier_law(
    "frontier.dcgd",
    bounds.dcgd_frontier,
    descent,
    {"omega=9, N=3": (9.0, 3), "omega=0.5, N=2": (0.5, 2), "omega=9, N=4": (9.0, 4)},
    {
        "half of the variance": lambda s, omega, workers: descent(s, omega / 2, workers),
    },
)


EF_SETTINGS = {"p=0.3, N=2": (0.3, 2), "p=0.5, N=1": (0.5, 1), "p=0.1, N=4": (0.1, 4), "p=0.9, N=3": (0.9, 3)}


frontier_law(
    "frontier.ef",
    bounds.ef_frontier,
    error_feedback,
    EF_SETTINGS,
    {
        "without memory": partial(error_feedback, kept=0.0),
        "half of the memory forgotten": partial(error_feedback, kept=0.5),
    },
)


frontier_law(
    "frontier.ef21",
    bounds.ef_frontier,
    ef21,
    EF_SETTINGS,
    {
        "half of each message is added to the estimate": partial(ef21, learnt=0.5),
    },
)


frontier_law(
    "frontier.diana",
    bounds.diana_frontier,
    diana,
    {"omega=9, N=4": (9.0, 4), "omega=1, N=2": (1.0, 2), "omega=3, N=3": (3.0, 3)},
    {
        "shifts that learn all of a message": partial(diana, alpha=1.0),
        "shifts that learn half as fast": lambda s, omega, workers: diana(s, omega, workers, alpha=0.5 / (1 + omega)),
    },
)
