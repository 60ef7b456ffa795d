"""Claims about the longest stable step of compressed methods: exact second moments on scalar quadratics."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...measure import exactly
from ...methods.feedback import ErrorFeedback
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, identity, lower, upper
from ..mutants.shared import Scaling
from ..mutants.stability import descent, diana, ef21, error_feedback, growth, marina, moment_matrix, scaling
from .feedback import unchanging

STRICTLY = 1e-6  # minimum distance of the growth from 1, at a relative distance of 0.001 from s*
SHARED = "one coin for all workers"
NOTE = "a step multiplies the second moments by a matrix, written out over all outcomes of the coins; no sampling"


def around(method, frontier, settings) -> Measurement:
    """The growth of a method's second moments at its frontier, and just below and above it."""
    checks = []
    for where, arguments in settings.items():
        edge = frontier(*arguments)
        at, below, above = (growth(method(share * edge, *arguments)) for share in (1.0, 0.999, 1.001))
        checks += [
            identity(f"growth at s* = {edge:.4g}, {where}", at, 1.0, tolerance=1e-9),
            upper(f"growth at 0.999 s*, {where}", exactly(below), 1.0 - STRICTLY),
            lower(f"growth at 1.001 s*, {where}", exactly(above), 1.0 + STRICTLY),
        ]
    return Measurement(*checks, note=NOTE)


@claim(
    "frontier.dcgd",
    title="Longest step with unbiased compressors",
    statement="On quadratics with the curvature lambda, N workers and E|Q(v) - v|^2 = omega v^2, gradient descent is"
    " stable in mean square if and only if gamma lambda < 2/(1 + omega/N).",
    latex=r"\gamma\lambda<\frac{2}{1+\omega/N}",
    source="derived",
    kind="identity",
    tight_where="everywhere",
    proof="E x^2 is multiplied by (1 - s)^2 + s^2 omega/N, s = gamma lambda.",
    bound=bounds.dcgd_frontier,
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
    title="Longest step of error feedback",
    statement="On quadratics with the curvature lambda, N workers that send each number with probability p and keep a"
    " memory are stable in mean square if and only if gamma lambda < 2 N p (2 - p)/(N p^2 + 4 (1 - p)).",
    latex=r"\gamma\lambda<\frac{2Np(2-p)}{Np^2+4(1-p)}",
    source="derived; for one worker 2p/(2 - p)",
    bibtex="karimireddy2019error",
    kind="identity",
    tight_where="everywhere",
    proof="x^2, x e, e_i^2 and e_i e_j have a linear recursion in the mean; it has the eigenvalue 1 at the frontier.",
    bound=bounds.ef_frontier,
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
    title="Error feedback can take longer steps than gradient descent",
    statement="With C(v) = a v and a memory, f = (lambda/2)||x||^2, x_t tends to 0 if and only if gamma lambda <"
    " 2 (2 - a)/a, the frontier of infinitely many workers with Bernoulli(a); without memory it is 2/a, without"
    " compression 2.",
    latex=r"\gamma\lambda<\frac{2(2-a)}{a}",
    source="derived",
    bibtex="karimireddy2019error",
    kind="identity",
    tight_where="everywhere",
    proof="x and e move by a 2 x 2 matrix with the determinant 1 - a and the trace 2 - a - a s; it has the eigenvalue"
    " -1 at the frontier.",
    bound=bounds.ef_frontier,
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
    stable = around(scaling, frontier, {f"a={a:.4g}": (a,) for a in kept.values()})
    without = {f"a={a:.4g}, no memory": (a,) for a in (*kept.values(), 1.0)}
    plain, checks = around(partial(scaling, kept=0.0), without_memory, without), []
    for delta, a in kept.items():
        edge = frontier(a)
        ((_, step),) = scaling(edge, a)
        exact = np.linalg.matrix_power(step, steps)[0, 0]
        method = ParallelSGD(compressor(delta), step=unchanging(edge), feedback=ErrorFeedback())
        found = run(
            method,
            quadratic(np.ones(d), covariance=0.0),
            workers=2,
            steps=steps,
            seed=0,
            x0=np.ones(d),
            record_every=steps,
            wire_dtype=np.float64,
        ).last
        checks.append(identity(f"x_t at s* = {edge:.4g}, t={steps}, a={a:.4g}", found[0], exact, tolerance=1e-9))
    note = "growth: of x^2, x e and e^2 in a step, by the 2 x 2 matrix; x_t is what a run of the method has there"
    return Measurement(*stable.checks, *checks, *plain.checks, note=note)


@claim(
    "frontier.ef.cycle",
    title="Error feedback from one message to the next",
    statement="With one worker that sends with probability p, E x^2 is multiplied by 1 - 2s/p + (2 - p) s^2/p^2 from"
    " one message to the next, s = gamma lambda.",
    latex=r"\frac{\mathbb{E}x_+^2}{x^2}=1-\frac{2s}{p}+\frac{(2-p)s^2}{p^2}",
    source="derived",
    bibtex="karimireddy2019error",
    kind="identity",
    tight_where="everywhere",
    proof="x is multiplied by 1 - s K with a geometric number K of steps.",
    bound=bounds.ef_cycle_factor,
    subject=error_feedback,
    mutants={
        "without memory": partial(error_feedback, kept=0.0),
        "half of the memory forgotten": partial(error_feedback, kept=0.5),
    },
)
def _(context):
    checks = []
    for p, s in ((0.3, 0.2), (0.3, bounds.ef_frontier(0.3)), (0.8, 1.0)):
        silent, sending = (moment_matrix([step]) for step in context.subject(s, p, 1))
        cycle = sending @ np.linalg.inv(np.eye(4) - silent)  # any number of silent steps, then a message
        checks.append(identity(f"p={p:g}, s={s:.4g}", cycle[0, 0], bounds.ef_cycle_factor(p, s), tolerance=1e-9))
    return Measurement(*checks, note=NOTE)


@claim(
    "frontier.ef21",
    title="Longest step of EF21",
    statement="With Bernoulli(p) compressors EF21 has the frontier of error feedback, for any number of workers.",
    latex=r"\gamma\lambda<\frac{2Np(2-p)}{Np^2+4(1-p)}",
    source="derived; Richtarik, Sokolov, Fatkhullin, EF21, NeurIPS 2021, Theorem 3 (for such compressors the two"
    " methods are one)",
    bibtex="richtarik2021ef21",
    kind="identity",
    tight_where="everywhere",
    proof="x^2, x g, g_i^2 and g_i g_j have a linear recursion in the mean; it has the eigenvalue 1 at the frontier.",
    bound=bounds.ef_frontier,
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
    title="Longest step of MARINA",
    statement="MARINA is stable in mean square on quadratics if and only if s = gamma lambda is below the positive root"
    " of (1 - p) (1 + 2 omega/N) s^2 - (2 - 3p) s - 2p.",
    latex=r"(1-p)\big(1+\tfrac{2\omega}{N}\big)s^2-(2-3p)s-2p<0",
    source="derived; method: Gorbunov, Burlachenko, Li, Richtarik, MARINA, ICML 2021",
    bibtex="gorbunov2021marina",
    kind="identity",
    tight_where="everywhere",
    proof="x^2, x g and g^2 have a linear recursion in the mean; it has the eigenvalue 1 at the frontier.",
    bound=bounds.marina_frontier,
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
    title="Longest step of DIANA",
    statement="DIANA with alpha = 1/(1 + omega) is stable in mean square on quadratics if and only if s = gamma lambda"
    " is below the positive root of omega (N + 2 omega) s^2 - (2 N omega - N - 4 omega) s - 2N.",
    latex=r"\omega(N+2\omega)s^2-(2N\omega-N-4\omega)s-2N<0",
    source="derived; method: Mishchenko, Gorbunov, Takac, Richtarik, 2019",
    bibtex="mishchenko2019distributed",
    kind="identity",
    tight_where="everywhere",
    proof="x^2, x h, h_i^2 and h_i h_j have a linear recursion in the mean; it has the eigenvalue 1 at the frontier.",
    bound=bounds.diana_frontier,
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
