"""Proofs of QSVRG's factor and rate."""

from __future__ import annotations

from ..execute import Change
from ..forms import square, unit_forms
from ..proof_list import nonnegative, positive, proof, squares, zero
from ..region import Region


@proof(
    "qsvrg.second-moment",
    region=Region(L=(0, "inf"), x=(0, "inf"), y=(0, "inf")),
    states="2 ||u||^2 + 2 ||w||^2 - ||u - w||^2 is a square, for u = grad f_j(x) - grad f_j(x*) and w = that at y less "
    "its mean, which has no larger second moment, where E||grad f_j - grad f_j(x*)||^2 <= 2 L (f - f*)",
    variants={"3 L (f(x) - f*)": Change("svrg_second_moment", "4.0 * lipschitz * gap", "3.0 * lipschitz * gap")},
)
def _(x):
    u, w = unit_forms(2)
    yield squares("||u||^2 and ||w||^2", 2 * square(u) + 2 * square(w) - square(u - w), 1)
    bound = x.bounds.svrg_second_moment(x.x, x.y, lipschitz=x.L)
    yield zero("twice 2 L (f - f*) at x and at y", bound - 2 * 2 * x.L * x.x - 2 * 2 * x.L * x.y)


def epoch(x, gap, step, workers):
    """What a step adds to ||x - x*||^2 in an epoch from f(y) - f* = 1, at a gap f(x) - f*."""
    rows = x.bounds.svrg_second_moment(gap, 1, lipschitz=x.L)
    moment = (1 - 1 / workers) * 2 * x.L * gap + (1 + x.w) / workers * rows
    return -2 * step * gap + step**2 * moment


@proof(
    "qsvrg.factor",
    region=Region(
        L=(0, "inf"),
        mu=(0, "L"),
        w=(0, "inf"),
        N=(1, "inf"),
        T=(1, "inf"),
        eta=(0, "2/(2*L*(1 - 1/N) + 4*L*(1 + w)/N)"),
    ),
    states="the mean gap of an epoch that the lemmas allow, from ||y - x*||^2 <= 2 (f(y) - f*)/mu, is the factor times "
    "f(y) - f*; w = omega, T steps, N workers, a step size eta A < 2",
    variants={
        "2 L for 4 L": Change("qsvrg_factor", "4.0 * lipschitz", "2.0 * lipschitz"),
        "N for 1 - 1/N": Change("qsvrg_factor", "(1.0 - 1.0 / workers)", "1.0"),
        "1/(mu eta T)": Change("qsvrg_factor", "2.0 / (mu", "1.0 / (mu"),
    },
    given=("qsvrg.second-moment",),
)
def _(x):
    nothing, one = epoch(x, 0, x.eta, x.N), epoch(x, 1, x.eta, x.N)
    allowed = (2 / x.mu + x.T * nothing) / (x.T * (nothing - one))
    factor = x.bounds.qsvrg_factor(x.T, step=x.eta, lipschitz=x.L, mu=x.mu, omega=x.w, workers=x.N)
    yield zero("largest mean gap", allowed - factor)
    yield positive("a step lowers it", nothing - one)


@proof(
    "qsvrg.rate",
    region=Region(L=(0, "inf"), mu=(0, "L"), w=(0, "inf"), N=(1, "inf"), T=("20*(1 + w)*L/mu", "inf")),
    states="with the theorem's step and any T of at least 20 (1 + omega) L/mu the factor of an epoch is at most 7/8, "
    "for every number N of workers, and 7/8 < 0.9; w = omega",
    variants={
        "a step of 1/(4 (1 + omega) L)": Change("qsvrg_step", "10.0 *", "4.0 *"),
        "a step of 1/(20 (1 + omega) L)": Change("qsvrg_step", "10.0 *", "20.0 *"),
    },
    given=("qsvrg.factor",),
)
def _(x):
    eta = x.bounds.qsvrg_step(x.L, x.w)
    factor = x.bounds.qsvrg_factor(x.T, step=eta, lipschitz=x.L, mu=x.mu, omega=x.w, workers=x.N)
    yield nonnegative("7/8 - factor", 7 / (0 * x.L + 8) - factor)
