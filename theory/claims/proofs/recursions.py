"""Proofs of exact moments, linear recursions, and CHOCO-Gossip's rate.

For moments and recursions: one step, its fixed point, and induction over the steps.  CHOCO-Gossip's rate follows from
its lemmas, as do the distances of CHOCO-SGD.
"""

from __future__ import annotations

from typing import Any

from .execute import Change
from .proof_list import nonnegative, positive, proof, zero
from .symbols import Region

# --- CHOCO-Gossip's rate from its lemmas -----------------------------------------------------------------------------

GRAPHS = Region(rho=(0, 1), delta=(0, 1), beta=(0, "2 - rho"))


@proof(
    "choco.gossip",
    region=GRAPHS,
    states="both sums of coefficients in choco_lemma_factor are at most 1 - rho^2 delta/17 with the theorem's step, as "
    "beta <= 2 - rho on every graph",
    variants={
        "16 for 17": Change("choco_rate", "RATES[form]", "16"),
        "rho^2 in the step": Change("choco_gamma", "rho if form", "rho**2 if form"),
    },
)
def _(x):
    gamma = x.bounds.choco_gamma(x.rho, x.beta, x.delta)
    factor = x.bounds.choco_lemma_factor(x.rho, x.beta, x.delta, gamma)
    yield nonnegative("1 - c - max(p, q)", 1 - x.bounds.choco_rate(x.rho, x.delta, form="derived") - factor)


@proof(
    "choco-sgd.consensus",
    region=Region(rho=(0, 1), delta=(0, 1), N=(1, "inf"), eta=(0, "inf"), G=(0, "inf")),
    states="the fixed point of E = (1 + c/2)(1 - c) E + (1 + 2/c) 2 N eta^2 G is at most 12 N eta^2 G/c^2, c = rho^2 "
    "delta/82, G = M^2",
    variants={"7 for 12": Change("choco_consensus", "12.0 *", "7.0 *")},
    given=("choco.gossip.run",),
)
def _(x):
    c = x.bounds.choco_rate(x.rho, x.delta)
    fixed = (1 + 2 / c) * 2 * x.N * x.eta**2 * x.G / (1 - (1 + c / 2) * (1 - c))
    bound = x.bounds.choco_consensus(x.rho, x.delta, step=x.eta, second_moment=x.G, workers=x.N)
    yield nonnegative("what is left", bound - fixed)


# --- Exact moments and linear recursions -----------------------------------------------------------------------------

POSITIVE = (0, "inf")


@proof(
    "sgd.constant-step",
    region=Region(mu=POSITIVE, eta=(0, "1/mu"), V=POSITIVE, D=POSITIVE, T=(1, "inf"), P=(0, 1)),
    states="a_{t+1} = (1 - eta mu)^2 a_t + eta^2 V from a_0 = D, for every T by induction; V = sigma^2, P = "
    "(1 - eta mu)^T",
    variants={
        "1 - eta mu for 2 - eta mu": Change("sgd_constant_step_floor", "(2.0 - step * mu)", "(1.0 - step * mu)"),
        "(1 - eta mu)^T": Change("sgd_constant_step_exact", "(2 * steps)", "(1 * steps)"),
    },
)
def _(x):
    x.power(1 - x.eta * x.mu, x.T, x.P)

    def after(steps):
        return x.bounds.sgd_constant_step_exact(steps, mu=x.mu, step=x.eta, variance=x.V, distance=x.D)

    yield zero("a step", after(x.T + 1) - (1 - x.eta * x.mu) ** 2 * after(x.T) - x.eta**2 * x.V)
    yield zero("the start", after(0) - x.D)


@proof(
    "sgd.constant-step.bound",
    region=Region(mu=POSITIVE, eta=(0, "1/(2*mu)"), G=POSITIVE, D=POSITIVE, T=(1, "inf"), P=(0, 1)),
    states="a_{t+1} = (1 - 2 eta mu) a_t + eta^2 G from a_0 = D, for every T by induction; G = M^2, P = "
    "(1 - 2 eta mu)^T",
    variants={"eta mu once": Change("sgd_constant_step", "1.0 - 2.0 * step", "1.0 - 1.0 * step")},
)
def _(x):
    left = 1 - 2 * x.eta * x.mu
    x.power(left, x.T, x.P)

    def after(steps):
        return x.bounds.sgd_constant_step(steps, mu=x.mu, step=x.eta, second_moment=x.G, distance=x.D)

    yield zero("a step", after(x.T + 1) - left * after(x.T) - x.eta**2 * x.G)
    yield zero("the start", after(0) - x.D)


@proof(
    "pl.sgd.constant",
    region=Region(mu=POSITIVE, L=("mu", "inf"), eta=(0, "1/(2*mu)"), G=POSITIVE, D=POSITIVE, T=(1, "inf"), P=(0, 1)),
    states="the bound of pl.sgd.step with ||grad f||^2 = 2 mu (f - f*), applied T times, for every T by induction; G = "
    "M^2, D = f(x_0) - f*, P = (1 - 2 eta mu)^T",
    variants={
        "L M^2 eta/(5 mu)": Change("pl_sgd_floor", "4.0 *", "5.0 *"),
        "eta mu once": Change("pl_sgd_constant_step", "1.0 - 2.0 * step", "1.0 - 1.0 * step"),
    },
    given=("pl.sgd.step",),
)
def _(x):
    x.power(1 - 2 * x.eta * x.mu, x.T, x.P)
    known = dict(lipschitz=x.L, step=x.eta)

    def after(steps):
        return x.bounds.pl_sgd_constant_step(steps, mu=x.mu, **known, second_moment=x.G, gap=x.D)

    now = after(x.T)
    step = x.bounds.pl_sgd_step(now, **known, gradient_squared=2 * x.mu * now, second_moment=x.G)
    yield zero("a step", after(x.T + 1) - step)
    yield zero("the start", after(0) - x.D)


@proof(
    "bottou.constant-step",
    region=Region(mu=POSITIVE, L=("mu", "inf"), eta=(0, "1/L"), M=POSITIVE, D=POSITIVE, T=(1, "inf"), P=(0, 1)),
    states="D_{t+1} = (1 - 2 mu eta (1 - eta L/2)) D_t + eta^2 L M/2 from D, for every T by induction; P = r^T",
    variants={"3 mu in the floor": Change("bottou_constant_step_floor", "2.0 * mu", "3.0 * mu")},
)
def _(x):
    left = 1 - 2 * x.mu * x.eta * (1 - x.eta * x.L / 2)
    x.power(left, x.T, x.P)

    def after(steps):
        return x.bounds.bottou_constant_step(steps, mu=x.mu, lipschitz=x.L, step=x.eta, noise=x.M, gap=x.D)

    yield zero("a step", after(x.T + 1) - left * after(x.T) - x.eta**2 * x.L * x.M / 2)
    yield zero("the start", after(0) - x.D)


@proof(
    "bottou.nonconvex",
    region=Region(L=POSITIVE, eta=(0, "1/L"), M=POSITIVE, D=POSITIVE, T=(1, "inf")),
    states="eta (1 - eta L/2) E||grad f||^2 <= f - E f(x+) + eta^2 L M/2, summed over T steps",
    variants={"the gap once": Change("bottou_nonconvex", "2.0 * gap", "1.0 * gap")},
)
def _(x):
    found = x.bounds.bottou_nonconvex(x.T, lipschitz=x.L, step=x.eta, noise=x.M, gap=x.D)
    yield zero("sum", (x.D / x.T + x.eta**2 * x.L * x.M / 2) / (x.eta * (1 - x.eta * x.L / 2)) - found)


@proof(
    "dpsgd.floor",
    instance="the fixed point",
    region=Region(N=(1, "inf"), a=POSITIVE, eta=(0, "2/a"), V=POSITIVE),
    states="the fixed point of m = (1 - eta a)^2 m + eta^2 V/N, V = sigma^2",
    variants={"1 - eta a for 2 - eta a": Change("dpsgd_floor", "(2.0 - step", "(1.0 - step")},
)
def _(x):
    floor = x.bounds.dpsgd_floor(x.N, step=x.eta, curvature=x.a, variance=x.V)
    yield zero("fixed point", (1 - x.eta * x.a) ** 2 * floor + x.eta**2 * x.V / x.N - floor)


DECREASING: dict[str, Any] = {
    "mu": POSITIVE,
    "L": ("mu", "inf"),
    "b": POSITIVE,
    "a": ("(1 + b)*L/mu", "inf"),
    "M": POSITIVE,
}

DECREASING["t"] = POSITIVE


@proof(
    "bottou.decreasing-step",
    region=(Region(**DECREASING, more=POSITIVE), Region(**DECREASING, w=(0, 1))),
    states="if D_t <= nu/(a + t), then D_{t+1} <= (1 - mu eta) D_t + eta^2 L M/2 is at most nu/(a + t + 1), eta = "
    "beta/(a + t), beta = (1 + b)/mu, and D_0 <= nu/a: for every t by induction, whichever of the two in nu is larger",
    variants={
        "beta^2 L M/(4 (beta mu - 1))": Change("bottou_decreasing_step", "(2.0 * (first", "(4.0 * (first"),
        "half of the start": Change("bottou_decreasing_step", "shift * gap", "0.5 * shift * gap"),
    },
)
def _(x, branch):
    beta, y = (1 + x.b) / x.mu, x.a + x.t
    noise = beta**2 * x.L * x.M / (2 * x.b)
    gap = ((noise + x.more) if branch == 0 else noise * x.w) / x.a
    known = dict(mu=x.mu, lipschitz=x.L, noise=x.M, gap=gap, beta=beta, shift=x.a)
    now, later = (x.bounds.bottou_decreasing_step(t, **known) for t in (x.t, x.t + 1))
    eta = beta / y
    yield nonnegative("a step", later - (1 - x.mu * eta) * now - eta**2 * x.L * x.M / 2)
    yield nonnegative("the start", x.bounds.bottou_decreasing_step(0, **known) - gap)


SPECTRUM = Region(one=(-1, 1), two=(-1, "one"), V=POSITIVE)


@proof(
    "gossip.noisy",
    instance="three workers",
    region=SPECTRUM,
    states="the fixed point of each mode, m = lambda^2 m + (1 - lambda)^2 V, summed over the modes of three workers "
    "with the eigenvalues 1, one, two",
    variants={"1 - lambda below": Change("response", "(1.0 + values)", "(2.0 + values)")},
)
def _(x):
    modes = [(1 - value) ** 2 * x.V / (1 - value**2) for value in (x.one, x.two)]
    found = x.bounds.noisy_gossip_floor([1 + 0 * x.one, x.one, x.two], x.V)
    yield zero("three workers", sum(modes) - found)


@proof(
    "dpsgd.consensus",
    instance="three workers",
    region=Region(a=POSITIVE, one=(-1, 1), two=(-1, "one"), eta=(0, "(1 + two)/a"), V=POSITIVE),
    states="the fixed point of each mode, m = (lambda - eta a)^2 m + eta^2 V, summed over the modes of three "
    "workers with the eigenvalues 1, one, two, for |lambda - eta a| < 1; V = sigma^2",
    variants={"1 - mode": Change("dpsgd_consensus", "modes**2", "modes")},
)
def _(x):
    values = [1 + 0 * x.one, x.one, x.two]
    found = x.bounds.dpsgd_consensus(values, step=x.eta, curvature=x.a, variance=x.V)
    modes = [x.eta**2 * x.V / (1 - (value - x.eta * x.a) ** 2) for value in values[1:]]
    yield zero("three workers", sum(modes) - found)


@proof(
    "gossip.compressed",
    instance="three workers",
    region=Region(one=(-1, 1), two=(-1, "one"), w=(0, "3/((1 - one)/(1 + one) + (1 - two)/(1 + two))"), S=POSITIVE),
    states="E = sum over the modes of the fixed point of lambda^2 m + (1 - lambda)^2 (w/3)(E + 3 S), for three workers "
    "with the eigenvalues 1, one, two where r < 1; w = omega, S = ||mean||^2",
    variants={"r for 1 - r": Change("compressed_gossip_floor", "(1.0 - r)", "(2.0 - r)")},
)
def _(x):
    found = x.bounds.compressed_gossip_floor([1 + 0 * x.one, x.one, x.two], x.w, x.S)
    errors = x.w / 3 * (found + 3 * x.S)
    yield zero("fixed point", sum((1 - v) ** 2 / (1 - v**2) * errors for v in (x.one, x.two)) - found)


@proof(
    "ecd.error",
    region=Region(t=(2, "inf"), V=POSITIVE),
    states="(t (t - 1))^2 times it grows by 4 (t - 1)^2 V in the update t, from V at t = 2: for every t by induction",
    variants={
        "2 t + 1": Change("ecd_error", "2 * update - 1", "2 * update + 1"),
        "V for 2 V": Change("ecd_error", "2.0 * variance", "1.0 * variance"),
    },
)
def _(x):
    def sums(t):
        return (t * (t - 1)) ** 2 * x.bounds.ecd_error(t, x.V)

    yield zero("an update", sums(x.t + 1) - sums(x.t) - 4 * x.t**2 * x.V)
    yield zero("the first", sums(2) - 4 * x.V)


@proof(
    "ecd.error.bound",
    region=Region(t=(2, "inf"), V=POSITIVE),
    states="it is at least ecd.error, with equality at t = 2",
    variants={"V/t": Change("ecd_error_bound", "2.0 * variance", "1.0 * variance")},
    given=("ecd.error",),
)
def _(x):
    yield nonnegative("what is left", x.bounds.ecd_error_bound(x.t, x.V) - x.bounds.ecd_error(x.t, x.V))
    yield zero("attained", x.bounds.ecd_error_bound(2, x.V) - x.bounds.ecd_error(2, x.V))


def batch_proof(id: str, states: str, n: bool) -> None:
    """Register the proof of a batch's second moment: squares and pairs, with or without replacement."""

    @proof(
        id,
        region=Region(B=(1, "inf"), G=POSITIVE, M=("G", "inf"), n=("B", "inf"), eta=POSITIVE, D=POSITIVE, a=POSITIVE),
        states=states,
        variants={
            "B^2 pairs": Change("minibatch_second_moment", "batch * (batch - 1)", "batch * batch"),
            "the alignment once": Change("minibatch_step", "- 2.0 *", "- 1.0 *"),
        },
    )
    def _(x):
        pair = (x.n**2 * x.G - x.n * x.M) / (x.n * (x.n - 1)) if n else x.G  # of the mean square of two rows
        whole = (x.B * x.M + x.B * (x.B - 1) * pair) / x.B**2
        rows = x.n if n else None
        found = x.bounds.minibatch_step(x.D, x.a, x.M, x.G, batch=x.B, step=x.eta, n=rows)
        yield zero("a step", x.D - 2 * x.eta * x.a + x.eta**2 * whole - found)
        yield positive("squares and pairs", x.n - 1)


MEANS = "a batch has B squares with the mean M and B (B - 1) pairs with the mean product "

batch_proof("minibatch.step", f"{MEANS}G = ||grad f||^2; a = <grad f, x - x*>", False)

batch_proof(
    "minibatch.step.without-replacement",
    f"{MEANS}that two different rows of n have, from n^2 G = n M + n (n - 1) times it; G = ||grad f||^2",
    True,
)


@proof(
    "sgd.workers",
    region=Region(V=POSITIVE, G=("V", "inf"), N=(1, "inf"), w=POSITIVE),
    states="E||Q(g) - g||^2 = w E||g||^2 and E||g - grad f||^2 = V add, and N independent workers divide them by N; G "
    "= E||g||^2, w = omega",
    variants={"omega sigma^2 only": Change("averaged_variance", "second_moment - variance)", "0 * variance)")},
)
def _(x):
    yield zero("variance", (x.V + x.w * x.G) / x.N - x.bounds.averaged_variance(x.V, x.G, workers=x.N, omega=x.w))


@proof(
    "catalyst.theta",
    region=Region(L=POSITIVE, theta=("L", "inf")),
    states="(theta + L)^2/(theta - L) less 8 L is a square over theta - L, 0 at the theta of the formula",
    variants={"4 L": Change("catalyst_theta", "3.0 *", "4.0 *")},
)
def _(x):
    best = x.bounds.catalyst_theta(x.L)
    cost = (x.theta + x.L) ** 2 / (x.theta - x.L)
    yield zero("a square", cost - 8 * x.L - (x.theta - best) ** 2 / (x.theta - x.L))
