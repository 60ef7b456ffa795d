"""Claims about the longest stable step of compressed methods: exact second moments on scalar quadratics."""

from __future__ import annotations

from functools import partial

from ... import bounds
from .. import claim, identity, upper
from ..laws import crossing
from ..mutants.stability import descent, diana, ef21, error_feedback, growth

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
        "half of each message is learnt": partial(ef21, learnt=0.5),
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
