"""A claim about the exact rate of compressed gradient descent without memory, and its certificate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ... import bounds
from .. import claim, identity, lower
from ..proofs.execute import Formulas
from ..proofs.forms import pivots
from ..proofs.topics.exact_feedback import WRONG, Weights, descent_at, descent_form
from ..worst_runs import worst_run
from .exact_feedback_rates import RATIONAL, most_negative


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
