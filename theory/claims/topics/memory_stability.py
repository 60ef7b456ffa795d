"""Claims about the longest stable step of compressed methods: exact second moments on scalar quadratics."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...methods import ErrorFeedback, ParallelSGD
from ...problems import quadratic
from .. import claim, identity, upper
from ..laws import crossing
from ..mutants.shared import Scaling
from ..mutants.stability import descent, diana, ef21, error_feedback, growth, marina, moment_matrix, scaling
from .feedback import unchanging

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


frontier_law(
    "frontier.ef21",
    bounds.ef_frontier,
    ef21,
    EF_SETTINGS,
    {
        "half of each message is learnt": partial(ef21, learnt=0.5),
    },
)


frontier_law(
    "frontier.marina",
    bounds.marina_frontier,
    marina,
    {"p=0.1, omega=9, N=4": (0.1, 9.0, 4), "p=1/2, omega=1, N=2": (0.5, 1.0, 2)},
    {
        "the gradient is never sent in full": partial(marina, full=False),
        "the gradient is sent in full half as often": lambda s, p, omega, workers: marina(s, p / 2, omega, workers),
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
