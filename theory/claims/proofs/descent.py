"""Proofs of the rates of gradient descent without convexity, and of QSVRG's factor and rate.

The rates of gradient descent follow from two smoothness and two PL inequalities.  With c = gamma L <= 1 the rate has a
root, which is rational in (c, p): mu/L = 2 p (2 - c p)/(4 - c - 2 c p + c p^2), and the rate is (1 - c p)^2.
"""

from __future__ import annotations

from typing import Any

from .execute import Change
from .proof_list import between, dot, nonnegative, positive, proof, square, squares, unit_forms, zero
from .symbols import Region

# --- The rates of gradient descent without convexity -----------------------------------------------------------------

SMALL = Region(c=(0, 1), p=(0, 1), L=(0, "inf"))

MIDDLE = Region(c=(1, 2), q=(0, 1), L=(0, "inf"), where=["3 - c**2"])

LARGE = Region(c=("17/10", 2), q=(0, 1), L=(0, "inf"), where=["c**2 - 3"])


def share(c, p):
    """mu/L where the rate is (1 - c p)^2."""
    return 2 * p * (2 - c * p) / (4 - c - 2 * c * p + c * p * p)


def multipliers(branch: int, x, mu):
    """Of the smoothness inequalities from x+ to x and from x to x+."""
    c, L = x.c, x.L
    if branch == 0:
        p = x.p
        above = 4 - c - 2 * c * p + c * p**2
        return (1 - c * p) * above / (4 - c - 4 * c * p - c * p**2 + c**2 * p + c**2 * p**2), 0
    if branch == 1:
        return L * (c + 1) / (2 * L + c * mu), L * (c - 1) / (2 * L + c * mu)
    below = L * (c - 1) ** 2 + c * mu * (2 - c)
    return L * (c - 1) / below, L * (2 - c) * (c - 1) / below


@proof(
    "pl.gd",
    region=(SMALL, MIDDLE, LARGE),
    states="r (f - f*) - (f_+ - f*) less multiples of two smoothness and two Polyak-Lojasiewicz inequalities is a sum "
    "of squares, with the sharp r in its three branches, c = gamma L; in the first mu/L = 2p(2 - cp)/(4 - c - 2cp + "
    "cp^2), which takes every value in (0, 1), in the others mu/L = q; the simple r is no smaller",
    variants={
        "3 for 4 in the root": Change("pl_gd", "4.0 * lipschitz**2", "3.0 * lipschitz**2"),
        "1.9 mu gamma in the middle": Change("pl_gd", "(2.0 + pull)", "(1.9 + pull)"),
        "(c - 1) for (c - 1)^2 for long steps": Change("pl_gd", "(c - 1.0) ** 2 / ", "(c - 1.0) / "),
        "3 - c for 2 - c": Change("pl_gd", "1.0 - pull * (2.0 - c)", "1.0 - pull * (3.0 - c)"),
    },
)
def _(x, branch):
    c, L = x.c, x.L
    mu = (share(c, x.p) if branch == 0 else x.q) * L
    if branch == 0:
        yield positive("mu/L rises with p", x.derivative(share(c, x.p), "p"))
        yield zero("from 0 to 1", share(c, 0), share(c, 1) - 1)
    known = dict(mu=mu, lipschitz=L, step=c / L, gap=1)
    rate = x.bounds.pl_gd(1, **known, form="sharp")
    forth, back = multipliers(branch, x, mu)
    here, after = (forth - back - rate) / (2 * mu), (1 - forth + back) / (2 * mu)
    yield nonnegative("multipliers", forth, back, here, after)
    g, h = unit_forms(2)
    start, moved = 0 * g, -1 * c / L * g
    smooth = forth * between(start, g, moved, h, -L, L) + back * between(moved, h, start, g, -L, L)
    yield squares("what is left", smooth - here * square(g) - after * square(h))
    yield nonnegative("the simple form", x.bounds.pl_gd(1, **known, form="simple") - rate)


@proof(
    "pl.strongly-convex",
    region=Region(mu=(0, "inf")),
    states="||g||^2/(2 mu) - (f - f*) less the inequality of strong convexity is one square",
    variants={"||g||^2/(3 mu)": Change("strong_convexity_gap", "2.0 *", "3.0 *")},
)
def _(x):
    d, g = unit_forms(2)  # x - x* and a subgradient at x: f(x*) >= f(x) - <g, d> + (mu/2) ||d||^2
    share = x.bounds.strong_convexity_gap(1, mu=x.mu)
    yield squares("what is left", share * square(g) - dot(g, d) + x.mu / 2 * square(d), 1)


@proof(
    "pl.sgd.step",
    region=Region(L=(0, "inf"), alpha=(0, "inf"), C=(0, "inf"), gap=(0, "inf"), g=(0, "C")),
    states="the expectation of the smoothness inequality at x - alpha g; C = M^2, g = ||grad f||^2",
    variants={"L M^2 alpha^2": Change("pl_sgd_step", "0.5 *", "1.0 *")},
)
def _(x):
    bound = x.bounds.pl_sgd_step(x.gap, lipschitz=x.L, step=x.alpha, gradient_squared=x.g, second_moment=x.C)
    yield zero(
        "f + <grad f, -alpha g> + (L/2) alpha^2 ||g||^2", x.gap - x.alpha * x.g + x.L / 2 * x.alpha**2 * x.C - bound
    )


CONVEX: dict[str, Any] = {"mu": (0, "inf"), "L": ("mu", "inf")}


@proof(
    "pl.gd.strongly-convex",
    region=(Region(**CONVEX, step=(0, "2/(L + mu)")), Region(**CONVEX, step=("2/(L + mu)", "2/L"))),
    states="r^2 (f - f*) - (f_+ - f*) less r, 1 - r and r - r^2 times the interpolation inequalities from x+ to x, "
    "from x+ to x* and from x to x* is a sum of two squares; r is attained by mu x^2/2 with short steps, by L x^2/2 "
    "with long ones",
    variants={
        "4 T for 2 T": Change("gd_strongly_convex", "(2 * steps)", "(4 * steps)"),
        "1 - 2 gamma mu": Change("gd_strongly_convex", "1.0 - step * mu", "1.0 - 2 * step * mu"),
    },
)
def _(x, branch):
    mu, L = x.mu, x.L
    rate = x.bounds.gd_strongly_convex(1, mu=mu, lipschitz=L, step=x.step, gap=1)
    r = rate.root()
    d, g, h = unit_forms(3)
    nothing, moved = 0 * d, d - x.step * g
    least = r * between(d, g, moved, h, mu, L) + (1 - r) * between(nothing, nothing, moved, h, mu, L)
    yield positive("multipliers", r, 1 - r)
    yield squares("what is left", least + (r - r**2) * between(nothing, nothing, d, g, mu, L), 2)
    yield zero("attained", rate - (1 - x.step * (mu if branch == 0 else L)) ** 2)


# --- QSVRG's factor and rate -----------------------------------------------------------------------------------------


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
