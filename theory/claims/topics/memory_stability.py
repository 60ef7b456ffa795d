"""Claims about the longest stable step of compressed methods: exact second moments on scalar quadratics."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...methods import ErrorFeedback, ParallelSGD
from ...problems import quadratic
from .. import claim, identity, upper
from ..mutants.shared import Scaling
from ..mutants.stability import descent, diana, ef21, error_feedback, growth, marina, moment_matrix, scaling
from .feedback import unchanging

SHARED = "one coin for all workers"


def crossing(method, arguments, high=50.0):
    """The step at which the second moments begin to grow, by bisection."""
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if growth(method(middle, *arguments)) < 1.0 else (low, middle)
    return low


def around(method, frontier, settings):
    """Where a method's second moments begin to grow; their growth at the frontier, and at shorter steps."""
    for where, arguments in settings.items():
        edge = frontier(*arguments)
        shorter = max(growth(method(share * edge, *arguments)) for share in (0.01, 0.1, 0.5, 0.9, 0.999))
        yield identity(f"step from which on they grow, {where}", crossing(method, arguments), edge, tolerance=1e-7)
        yield identity(f"growth at s* = {edge:.4g}, {where}", growth(method(edge, *arguments)), 1.0, tolerance=1e-9)
        yield upper(f"largest growth at 0.01 s* to 0.999 s*, {where}", shorter, 1.0 - 1e-6)


@claim(
    "frontier.dcgd",
    of=bounds.dcgd_frontier,
    subject=descent,
    mutants={
        SHARED: partial(descent, shared=True),
        "half of the variance": lambda s, omega, workers: descent(s, omega / 2, workers),
    },
)
def _(context):
    settings = {"omega=9, N=3": (9.0, 3), "omega=0.5, N=2": (0.5, 2), "omega=9, N=4": (9.0, 4)}
    return around(context.subject, bounds.dcgd_frontier, settings)


EF_SETTINGS = {"p=0.3, N=2": (0.3, 2), "p=0.5, N=1": (0.5, 1), "p=0.1, N=4": (0.1, 4), "p=0.9, N=3": (0.9, 3)}


@claim(
    "frontier.ef",
    of=bounds.ef_frontier,
    subject=error_feedback,
    mutants={
        SHARED: partial(error_feedback, shared=True),
        "without memory": partial(error_feedback, kept=0.0),
        "half of the memory forgotten": partial(error_feedback, kept=0.5),
    },
)
def _(context):
    return around(context.subject, bounds.ef_frontier, EF_SETTINGS)


with_memory = partial(bounds.ef_frontier, workers=math.inf)


def without_memory(a):
    """Descent whose steps are a times as long."""
    return bounds.dcgd_frontier(0.0) / a


@claim(
    "frontier.ef.scaling",
    of=bounds.ef_frontier,
    subject=(Scaling, with_memory),
    mutants={
        "a compressor that contracts half as much": (lambda delta: Scaling(delta / 2), with_memory),
        "a compressor that contracts more": (lambda delta: Scaling(1 - (1 - delta) / 2), with_memory),
        "the frontier without memory": (Scaling, without_memory),
        "the frontier of gradient descent": (Scaling, lambda a: bounds.dcgd_frontier(0.0)),
        "the frontier of one worker with Bernoulli(a)": (Scaling, bounds.ef_frontier),
    },
)
def _(context):
    (compressor, frontier), d, steps = context.subject, 3, 40
    kept = {delta: 1.0 - math.sqrt(1.0 - delta) for delta in (0.3, 0.75)}
    yield from around(scaling, frontier, {f"a={a:.4g}": (a,) for a in kept.values()})
    for delta, a in kept.items():
        edge = frontier(a)
        ((_, step),) = scaling(edge, a)
        method = ParallelSGD(compressor(delta), step=unchanging(edge), feedback=ErrorFeedback())
        how = {"workers": 2, "steps": steps, "x0": np.ones(d), "record_every": steps, "wire_dtype": np.float64}
        found = context.run(method, quadratic(np.ones(d), covariance=0.0), **how).last[0]
        exact = np.linalg.matrix_power(step, steps)[0, 0]
        yield identity(f"x_t of a run at s* = {edge:.4g}, t={steps}, a={a:.4g}", found, exact, tolerance=1e-9)
    without = {f"a={a:.4g}, no memory": (a,) for a in (*kept.values(), 1.0)}
    yield from around(partial(scaling, kept=0.0), without_memory, without)


@claim(
    "frontier.ef.cycle",
    of=bounds.ef_cycle_factor,
    subject=error_feedback,
    mutants={
        "without memory": partial(error_feedback, kept=0.0),
        "half of the memory forgotten": partial(error_feedback, kept=0.5),
    },
)
def _(context):
    for p, s in ((0.3, 0.2), (0.3, bounds.ef_frontier(0.3)), (0.8, 1.0)):
        silent, sending = (moment_matrix([step]) for step in context.subject(s, p, 1))
        cycle = sending @ np.linalg.inv(np.eye(4) - silent)  # any number of silent steps, then a message
        yield identity(f"p={p:g}, s={s:.4g}", cycle[0, 0], bounds.ef_cycle_factor(p, s), tolerance=1e-9)


@claim(
    "frontier.ef21",
    of=bounds.ef_frontier,
    subject=ef21,
    mutants={
        SHARED: partial(ef21, shared=True),
        "half of each message is learnt": partial(ef21, learnt=0.5),
    },
)
def _(context):
    return around(context.subject, bounds.ef_frontier, EF_SETTINGS)


@claim(
    "frontier.marina",
    of=bounds.marina_frontier,
    subject=marina,
    mutants={
        SHARED: partial(marina, shared=True),
        "the gradient is never sent in full": partial(marina, full=False),
        "the gradient is sent in full half as often": lambda s, p, omega, workers: marina(s, p / 2, omega, workers),
    },
)
def _(context):
    settings = {"p=0.1, omega=9, N=4": (0.1, 9.0, 4), "p=1/2, omega=1, N=2": (0.5, 1.0, 2)}
    return around(context.subject, bounds.marina_frontier, settings)


@claim(
    "frontier.diana",
    of=bounds.diana_frontier,
    subject=diana,
    mutants={
        SHARED: partial(diana, shared=True),
        "shifts that learn all of a message": partial(diana, alpha=1.0),
        "shifts that learn half as fast": lambda s, omega, workers: diana(s, omega, workers, alpha=0.5 / (1 + omega)),
    },
)
def _(context):
    settings = {"omega=9, N=4": (9.0, 4), "omega=1, N=2": (1.0, 2), "omega=3, N=3": (3.0, 3)}
    return around(context.subject, bounds.diana_frontier, settings)
