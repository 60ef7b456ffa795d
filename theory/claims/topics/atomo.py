"""Claims about ATOMO: on singular values, and on entries."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import SpectralAtomo
from .. import claim, equality, identity
from ..laws import Input, compressor_law, gaussian
from ..mutants.spectral import CLIPPED, REDRAWN, UNDIVIDED, WrongAtomo

ROWS, COLUMNS = 12, 6
STEEP = np.array([8.0, 4.0, 2.0, 1.0, 1.0, 0.5])  # one of these has probability 1 at a budget of 3


def matrix(context, singular_values, rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    """A matrix with these singular values and random singular vectors, row by row in one vector."""
    s = np.asarray(singular_values, float)
    left, _ = np.linalg.qr(context.normal((rows, s.size), "left"))
    right, _ = np.linalg.qr(context.normal((columns, s.size), "right"))
    return np.ascontiguousarray((left * s) @ right.T).ravel()


def spectrum_of(v, rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    """The singular values of the matrix."""
    return np.linalg.svd(v.reshape(rows, columns), compute_uv=False)


STEEP_MATRIX = Input("steep spectrum", lambda context: matrix(context, STEEP))
FLAT_MATRIX = Input("equal singular values", lambda context: matrix(context, np.ones(COLUMNS)))
FLAT_WIDE = Input("equal singular values, 5 x 8", lambda context: matrix(context, np.ones(5), 5, 8))
DIAGONAL = Input("diagonal, so that a triplet is one entry", lambda context: (np.eye(ROWS, COLUMNS) * STEEP).ravel())
GAUSSIAN = Input("Gaussian matrix", lambda context: context.normal(ROWS * COLUMNS))


def spectral(budget: float, rows: int = ROWS, columns: int = COLUMNS, made=SpectralAtomo):
    """ATOMO on the singular values of a matrix of this shape."""
    return made(rows, columns, budget)


FAULTS = {
    "probabilities cut off at 1 without sharing what that saves": partial(
        spectral, made=partial(WrongAtomo, fault=CLIPPED)
    ),
    "drawn again until the number is the budget": partial(spectral, made=partial(WrongAtomo, fault=REDRAWN)),
    "division by the probability forgotten": partial(spectral, made=partial(WrongAtomo, fault=UNDIVIDED)),
}
CUT_OFF, AGAIN, FORGOTTEN = ({name: wrong} for name, wrong in FAULTS.items())
MORE = {"half a triplet more": lambda budget, *shape: spectral(budget + 0.5, *shape)}

compressor_law(
    "atomo.spectral.unbiased",
    spectral,
    at=[(STEEP_MATRIX, {"budget": 2.0}), (STEEP_MATRIX, {"budget": 3.0})],
    quantity="bias",
    samples=40_000,
    quick=6_000,
    mutants=AGAIN | FORGOTTEN,
    of=bounds.atomo_variance,
)

compressor_law(
    "atomo.spectral.variance",
    spectral,
    at=[(STEEP_MATRIX, {"budget": 3.0}), (GAUSSIAN, {"budget": 2.0})],
    formula=lambda v, budget: bounds.atomo_variance(spectrum_of(v), budget) / float(v @ v),
    samples=40_000,
    quick=6_000,
    mutants=FAULTS | MORE,
    of=bounds.atomo_variance,
)

compressor_law(
    "atomo.spectral.worst",
    spectral,
    at=[
        (FLAT_MATRIX, {"budget": 2.0}),
        (STEEP_MATRIX, {"budget": 2.0}, "upper"),
        (FLAT_WIDE, {"budget": 1.5, "rows": 5, "columns": 8}),
    ],
    formula=lambda v, budget, rows=ROWS, columns=COLUMNS: bounds.spectral_atomo_variance(rows, columns, budget),
    samples=40_000,
    quick=6_000,
    mutants=FORGOTTEN | {"half a triplet less": lambda budget, **shape: spectral(budget - 0.5, **shape)},
    of=bounds.spectral_atomo_variance,
    see=("atomo.spectral.unbiased",),
)

compressor_law(
    "atomo.spectral.budget",
    spectral,
    at=[(DIAGONAL, {"budget": budget}) for budget in (1.5, 3.0, 4.5)],
    quantity="nonzeros",
    formula=lambda v, budget: budget,
    samples=40_000,
    quick=6_000,
    mutants=CUT_OFF | MORE,
    of=bounds.atomo_probabilities,
    see=("atomo.spectral.unbiased",),
)


def least_by_duality(g, budget: float) -> float:
    """The Lagrangian dual of the least second moment, maximized over its one multiplier."""

    def dual(log_multiplier):
        m = math.exp(log_multiplier)
        best = np.minimum(1.0, np.abs(g) / math.sqrt(m))
        return m * budget - float(np.sum(g**2 / best + m * best))

    return -scipy.optimize.minimize_scalar(dual, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-10}).fun


def least_by_search(g, budget: float) -> float:
    """The least second moment, found by scipy.optimize."""
    found = scipy.optimize.minimize(
        lambda q: np.sum(g**2 / q),
        np.full(len(g), budget / len(g)),
        method="SLSQP",
        bounds=[(1e-3, 1.0)] * len(g),
        constraints={"type": "eq", "fun": lambda q: q.sum() - budget},
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return float(found.fun)


@claim(
    "atomo.optimal",
    of=bounds.atomo_probabilities,
    subject=bounds.atomo_probabilities,
    mutants={
        "cut off at 1 without sharing what that saves": lambda g, budget: np.minimum(
            1.0, budget * np.abs(g) / np.abs(g).sum()
        ),
        "all equal": lambda g, budget: np.full(len(g), budget / len(g)),
        "in proportion to the squares": lambda g, budget: np.clip(budget * g**2 / np.sum(g**2), 1e-12, 1.0),
    },
)
def _(context):
    for name, g, budget in (("steep", STEEP, 3.0), ("Gaussian", context.normal(12), 4.0), ("flat", np.ones(5), 2.5)):
        p, label = context.subject(g, budget), f"second moment, {name}, budget {budget:g}"
        second, rest = float(np.sum(g**2 / p)), np.abs(g[p < 1.0])
        yield identity(f"{label}, against the dual", second, least_by_duality(g, budget), 1e-9)
        yield identity(f"{label}, against scipy.optimize", second, least_by_search(g, budget), 1e-6)
        left = budget - np.count_nonzero(p == 1.0)
        yield identity(f"{label}, in closed form", second - float(g @ g), rest.sum() ** 2 / left - rest @ rest, 1e-9)
        yield identity(f"sum of p, {name}", p.sum(), budget)


@claim(
    "atomo.ternary",
    of=bounds.ternary_budget,
    subject=bounds.ternary_budget,
    mutants={
        "the norms exchanged": lambda g, norm: 1.0 / bounds.ternary_budget(g, norm),
        "the other norm": lambda g, norm: bounds.ternary_budget(g, math.inf if norm == 2.0 else 2.0),
        "sqrt(d), the largest it can be": lambda g, norm: math.sqrt(len(g)),
    },
)
def _(context):
    for vector in (gaussian(64), gaussian(64, 3)):
        g = vector.make(context)
        for norm, name in ((2.0, "QSGD, s = 1"), (math.inf, "TernGrad")):
            budget, label = context.subject(g, norm), f"{name}, {vector.label}"
            p = bounds.atomo_probabilities(g, float(budget))
            away = np.abs(p - np.abs(g) / np.linalg.norm(g, norm)).max()
            yield identity(f"largest difference of probabilities, {label}", away, 0.0)
            yield identity(f"non-zeros, {label}", float(bounds.qsgd_nonzeros_exact(g, 1, norm=norm)), budget)
            variance = float(bounds.qsgd_variance_exact(g, 1, norm=norm))
            yield identity(f"variance, {label}", variance, bounds.atomo_variance(g, float(budget)))


@claim(
    "atomo.spectral-or-entries",
    of=bounds.spectral_beats_entrywise,
    subject=spectral,
    mutants=FORGOTTEN | MORE,
)
def _(context):
    for name, first, *shape in (
        ("Gaussian", 0.0, ROWS, COLUMNS),
        ("rank one and a little noise", 40.0, ROWS, COLUMNS),
        ("Gaussian, 5 x 8", 0.0, 5, 8),
    ):
        v = matrix(context, [first], *shape) + context.normal(math.prod(shape), name)
        entries = np.abs(v).sum() ** 2 / sum(shape)  # E||Q||^2 of entry-wise ATOMO with budget 1 (rows + columns)
        found = context.moments(context.subject(1.0, *shape), v, context.samples(40_000, 6_000), name)
        ratio = bounds.spectral_beats_entrywise(spectrum_of(v, *shape), v, *shape)
        yield equality(f"ratio of second moments over its root, {name}", found.second / entries / float(ratio), ratio)
        yield f"{name}: {float(ratio) ** 2:.3g} times the second moment of entries."
