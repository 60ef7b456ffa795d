"""Claims about ATOMO, the best rank, rounded singular values and PowerSGD.

ATOMO: on singular values, and on entries.  The best rank and rounded singular values: what they cost and save.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...compressors import (
    BestRank,
    Identity,
    PowerSGD,
    QuantizedSpectrum,
    SpectralAtomo,
    new_symbols,
    propose,
    quantize,
    restore,
    settle,
    state_size,
)
from ...core.random import key
from ...measure import ratio_interval
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...problems import lipschitz, softmax, solve
from .. import certain, claim, equality, identity, limit, lower, upper
from ..factories import Input, compressor_law, gaussian
from ..mutants import CLIPPED, REDRAWN, WrongAtomo, WrongPowerSGD, repeat
from ..mutants import UNDIVIDED_FACTORS as UNDIVIDED

# --- ATOMO -----------------------------------------------------------------------------------------------------------

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


# --- The best rank and rounded singular values -----------------------------------------------------------------------


@claim(
    "best-rank.contraction",
    of=bounds.best_rank_contraction,
    subject=BestRank,
    mutants={
        "one triplet fewer": lambda rows, columns, rank: BestRank(rows, columns, rank - 1),
        "triplets at random, as they are": partial(WrongAtomo, fault=UNDIVIDED),
        "PowerSGD from a cold start": partial(PowerSGD, warm=False),
    },
)
def _(context):
    for rows, columns, rank in ((4, 7, 3), (9, 5, 2)):
        found = context.moments(context.subject(rows, columns, rank), np.eye(rows, columns).ravel(), 2)
        error, delta = float(found.error[0] / found.squared_norm), bounds.best_rank_contraction(rows, columns, rank)
        yield identity(f"error, equal singular values, {rows} x {columns}, r={rank}", error, 1.0 - delta, 1e-9)
    for vector in (FLAT_MATRIX, GAUSSIAN, STEEP_MATRIX):
        v, bound = vector.make(context), 1.0 - bounds.best_rank_contraction(ROWS, COLUMNS, 2)
        found = context.moments(context.subject(ROWS, COLUMNS, 2), v, 2, vector.label)
        error, label = float(found.error[0] / found.squared_norm), f"error, {vector.label}, r=2"
        if vector == FLAT_MATRIX:
            yield identity(label, error, bound, 1e-9)
            continue
        exact = bounds.best_rank_error(spectrum_of(v), 2) / float(v @ v)
        yield identity(f"{label}, against the singular values", error, exact, 1e-9)
        yield upper(label, error, bound)


rounded = partial(QuantizedSpectrum, ROWS, COLUMNS)

SPECTRUM_MUTANTS = {
    "the largest triplets as they are": lambda s: BestRank(ROWS, COLUMNS, s),
    "spectral ATOMO, division by the probability forgotten": lambda s: WrongAtomo(ROWS, COLUMNS, s, UNDIVIDED),
}

compressor_law(
    "spectrum.unbiased",
    rounded,
    at=[(GAUSSIAN, {"s": 1}), (GAUSSIAN, {"s": 3})],
    quantity="bias",
    samples=40_000,
    quick=6_000,
    mutants=SPECTRUM_MUTANTS,
    of=bounds.qsgd_variance_exact,
)


@claim(
    "spectrum.variance",
    of=bounds.qsgd_variance_exact,
    subject=rounded,
    mutants=SPECTRUM_MUTANTS | {"levels counted with zero, so one too many": lambda s: rounded(s + 1)},
)
def _(context):
    v = GAUSSIAN.make(context)
    for s in (1, 3):
        found = context.moments(context.subject(s), v, context.samples(40_000, 6_000), s)
        exact = bounds.qsgd_variance_exact(spectrum_of(v), s) / found.squared_norm
        yield equality(f"variance, Gaussian, s={s}", found.variance, exact)
        yield upper(f"variance, Gaussian, s={s}", found.variance, bounds.qsgd_variance(COLUMNS, s))


# --- a lecture's first numbers ----------------------------------------------------------------------------------------

NOTHING = NoFeedback()

STEPS, SIZE = 40, 16.0  # full precision then has 5 % of f(x_0) - f* left; 16/L is the best power of two for both


@cache
def digits():
    """Softmax on the handwritten digits, its L and its minimum."""
    from ...data import load_data

    data = load_data("digits-10")
    problem = softmax((data.X / 16.0, data.y), 1.0 / data.n)
    return problem, lipschitz(problem), float(solve(problem).fun)


def gaps(context, name: str, compressor, steps: int, feedback: Any = NOTHING):
    """f(x) - f* after ``steps`` steps in independent runs, and the bits that a worker sent in a step."""
    problem, L, best = digits()
    method = ParallelSGD(compressor, step=Constant(SIZE / L), batch=32, feedback=feedback)
    options = {"workers": 4, "steps": steps, "replicas": context.samples(64, 64), "record_every": steps}
    result = context.run(method, problem, name, **options)
    return result.funs - best, float(result.history["bits_up"][-1]) / steps


@claim(
    "spectral.trade.digits",
    title="8 times less communication for 2.5 times more iterations",
    statement="On softmax of the digits, spectral ATOMO with budget 1 sends at least 8 times fewer bits a step, and"
    " after 2.5 times the steps its f is not above that of full precision.",
    source="first numbers of the lecture, whose slide says 'Currently testing', read as bits a step; measured with 4"
    " workers, batches of 32 and the constant step size that is best for both",
    kind="upper",
    subject=SpectralAtomo,
    mutants={
        "twice the budget": lambda rows, columns, budget: SpectralAtomo(rows, columns, 2 * budget),
        "full precision": lambda rows, columns, budget: Identity(),
    },
)
def _(context):
    more = 5 * STEPS // 2
    full, bits = gaps(context, "full", Identity(), STEPS)
    spectral, fewer = gaps(context, "spectral", context.subject(*digits()[0].shape, 1.0), more)
    ratio = partial(ratio_interval, spectral, full)
    yield upper("mean f - f* after 100 steps over that of full precision after 40", lambda level: ratio(level=level), 1)
    yield lower("times fewer bits a step (expected: 640/74 = 8.6)", bits / fewer, 8.0)


SLIDE = "2.5 x more iterations, 8 x reduction in communication (currently testing)"

EIGHTH = 43  # steps with 74 numbers for 640 that send 8 times fewer bits in all than STEPS in full precision


def at_an_eighth(context):
    """The checks of 8 times less communication in all, at the same f."""
    compressor, feedback = context.subject(*digits()[0].shape)
    full, bits = gaps(context, "full", Identity(), STEPS)
    mine, fewer = gaps(context, "mine", compressor, EIGHTH, feedback)
    ratio = partial(ratio_interval, mine, full)
    yield upper("mean f - f* after 43 steps over that of full precision after 40", lambda level: ratio(level=level), 1)
    yield lower("times fewer bits in all", bits * STEPS / (fewer * EIGHTH), 8.0)


claim(
    "spectral.trade.in-all",
    title="Spectral ATOMO at 8 times less communication in all",
    statement="On softmax of the digits, spectral ATOMO with budget 1 comes to the f of full precision with 8 times"
    " fewer bits in all.",
    source="the lecture, whose slide says 'Currently testing', read as bits in all; measured with 4 workers, batches"
    " of 32 and the constant step size that is best for both",
    kind="upper",
    subject=lambda rows, columns: (SpectralAtomo(rows, columns, 1.0), NOTHING),
    proof="A message is 640/74 times smaller, so 43 steps send an eighth of the bits of 40 steps in full precision. The"
    " variance is that of one random triplet, and it costs more than the three additional steps gain.",
    refuted="reading",
    quote=SLIDE,
    see=("spectral.trade.digits", "spectral.trade.rank"),
)(at_an_eighth)


claim(
    "spectral.trade.rank",
    title="The best rank with a memory at 8 times less communication in all",
    statement="On softmax of the digits, the best rank 1 with a memory comes to the f of full precision with 8 times"
    " fewer bits in all.",
    source="the lecture, whose slide sends a best rank, with a memory added; measured as spectral.trade.in-all",
    kind="upper",
    proof="The memory sends later what rank 1 leaves out. Without a memory that part is lost, and f stays far above.",
    subject=lambda rows, columns: (BestRank(rows, columns, 1), ErrorFeedback()),
    mutants={
        "without a memory, as on the slide": lambda rows, columns: (BestRank(rows, columns, 1), NOTHING),
        "rank 2": lambda rows, columns: (BestRank(rows, columns, 2), ErrorFeedback()),
    },
)(at_an_eighth)


# --- PowerSGD --------------------------------------------------------------------------------------------------------


@claim(
    "powersgd.cold",
    of=bounds.power_sgd_cold_error,
    subject=partial(PowerSGD, ROWS, COLUMNS, warm=False),
    mutants={
        "columns not made orthonormal": partial(WrongPowerSGD, ROWS, COLUMNS),
        "one column fewer": lambda rank: PowerSGD(ROWS, COLUMNS, rank - 1, warm=False),
    },
)
def _(context):
    spectra = (("6 equal values", np.ones(6), 2), ("4 equal values", np.ones(4), 3), ("steep", STEEP, 4))
    for name, s, rank in spectra:
        v, label = matrix(context, s), f"error, {name}, r={rank}"
        found = context.moments(context.subject(rank), v, context.samples(40_000, 6_000), name)
        bound = bounds.power_sgd_cold_error(s, rank) / float(s @ s)
        yield (
            upper(label, found.variance, bound) if name == "steep" else equality(label, certain(found.variance), bound)
        )
    yield lower(f"{label}, the best rank", found.variance, bounds.best_rank_error(s, rank) / float(s @ s))


def errors(warm: bool, v, rank: int, steps: int, stream) -> np.ndarray:
    """Squared errors of PowerSGD, which compresses the same matrix again and again."""
    c, found = PowerSGD(ROWS, COLUMNS, rank, warm), np.empty(steps)
    repeat(c, v, stream, new_symbols(c, v.size, np.empty(0)), np.empty(v.size), found)
    return found


def errors_of_skewed(v, rank: int, steps: int, stream) -> np.ndarray:
    """The same, with P divided by its largest entry in place of an orthonormal basis."""
    X, found = v.reshape(ROWS, COLUMNS), []
    Q = np.random.default_rng(int(stream)).standard_normal((COLUMNS, rank))
    for _ in range(steps):
        P = X @ Q
        P /= np.abs(P).max()
        Q = X.T @ P
        found.append(np.sum((P @ Q.T - X) ** 2))
    return np.array(found)


@claim(
    "powersgd.warm",
    of=bounds.power_sgd_warm_factor,
    subject=partial(errors, True),
    mutants={
        "columns not made orthonormal": errors_of_skewed,
        "a new start in every step": partial(errors, False),
    },
    measured_by="the package's run",
)
def _(context):
    for values, rank in (([3.0, 2.0, 1.5, 0.5, 0.2, 0.1], 2), ([3.0, 2.5, 2.0, 1.4, 0.2, 0.1], 3)):
        s = np.array(values)
        found = context.subject(matrix(context, s), rank, 14, key(context.stream("start", rank)))
        best = float(bounds.best_rank_error(s, rank))
        excess, factor = found - best, bounds.power_sgd_warm_factor(s, rank)
        yield limit(f"excess of step 10 over that of step 9, r={rank}", excess[9] / excess[8], factor, 0.01)
        yield upper(f"error after 14 steps, relative to the best, r={rank}", found[-1] / best, 1.001)
        yield f"r={rank}: the excess at step 10 is {excess[9] / best:.1e} of the best error, far above rounding."


def together(c, workers, stream):
    """What PowerSGD restores when the workers combine their openings and their messages."""
    d = workers[0].size
    states = [np.zeros(state_size(c, d)) for _ in workers]
    mean = np.zeros(c.rows * c.rank)
    for state, v in zip(states, workers, strict=True):
        numbers = np.empty_like(mean)
        propose(c, state, v, stream, numbers)
        mean += numbers / len(workers)
    for state in states:
        settle(c, d, state, mean)
    return mean_of_messages(c, workers, states, stream)


def alone(c, workers, stream):
    """The wrong way: every worker makes its own basis, and messages are summed as if the bases were equal."""
    return mean_of_messages(c, workers, [np.zeros(state_size(c, v.size)) for v in workers], stream)


def mean_of_messages(c, workers, states, stream):
    """What is restored from the common first half and the mean of the second halves."""
    total, out = None, np.empty(workers[0].size)
    for state, v in zip(states, workers, strict=True):
        symbols = new_symbols(c, v.size, np.empty(0))
        quantize(c, state, v, stream, symbols)
        if total is None:
            total = symbols
            symbols.value[c.rows * c.rank :] /= len(workers)
        else:
            total.value[c.rows * c.rank :] += symbols.value[c.rows * c.rank :] / len(workers)
    restore(c, total, out)
    return out


@claim(
    "powersgd.linear",
    title="PowerSGD's messages can be added",
    statement="Workers that average P and then Q restore the same as one worker with the mean of their matrices.",
    latex=r"\hat P\Big(\frac1N\sum_i M_i^\top\hat P\Big)^\top=\hat P\hat P^\top\bar M,\quad"
    r" \hat P=\mathrm{orth}\Big(\frac1N\sum_i M_iQ\Big)",
    source="[vogels2019powersgd], section 3",
    kind="identity",
    proof="Both halves are linear in M_i once Q, then P^, is common.",
    subject=together,
    mutants={"every worker has a basis of its own": alone},
    measured_by="the package's run",
)
def _(context):
    c = PowerSGD(ROWS, COLUMNS, 2)
    for number in (2, 5):
        workers = [context.normal(ROWS * COLUMNS, number, i) for i in range(number)]
        mean, stream = np.mean(workers, axis=0), key(context.stream(number))
        away = np.linalg.norm(context.subject(c, workers, stream) - alone(c, [mean], stream)) / np.linalg.norm(mean)
        yield identity(f"distance from PowerSGD on the mean, {number} workers", float(away), 0.0)
