"""Claims about PowerSGD."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors import PowerSGD, new_symbols, propose, quantize, restore, settle, state_size
from ...core.random import key
from .. import certain, claim, equality, identity, limit, lower, upper
from ..mutants.spectral import WrongPowerSGD, repeat
from .atomo import COLUMNS, ROWS, STEEP, matrix


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
    statement="Workers that average P and then Q restore what one worker would that holds the mean of their matrices.",
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
