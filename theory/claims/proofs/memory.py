"""Proofs of error feedback's lemmas and theorems, of ConEF's and of Mem-SGD's.

Error feedback's lemmas are those on smooth functions, Mem-SGD's the sharp ones; each theorem is what its lemmas add up
to.
"""

from __future__ import annotations

from fractions import Fraction

from ..memory import contractive as conef_rates
from ..memory import error_feedback, mem_sgd
from .execute import Change
from .proof_list import between, dot, nonnegative, positive, proof, square, squares, unit_forms, zero
from .symbols import Region

# --- Error feedback's lemmas on smooth functions ---------------------------------------------------------------------

POSITIVE = (0, "inf")


@proof(
    "ef.descent",
    region=Region(L=POSITIVE, eta=POSITIVE, rho=(0, 2)),
    states="the bound less the smoothness inequality from y to y - eta g and a multiple of L ||x - y|| >= ||grad f(x) "
    "- grad f(y)|| is one square; the noise enters both sides alike",
    variants={
        "a third of rho": Change("ef_sgd_descent", "rho / 2.0", "rho / 3.0"),
        "3 rho in the memory": Change("ef_sgd_descent", "(2.0 * rho)", "(3.0 * rho)"),
        "eta^2 L/3": Change("ef_sgd_descent", "second_moment / 2.0", "second_moment / 3.0"),
    },
)
def _(x):
    g, apart, e = unit_forms(3)  # grad f(x), grad f(x) - grad f(y), x - y = e
    known = dict(lipschitz=x.L, step=x.eta, rho=x.rho)
    gradient, moment, memory = (
        x.bounds.ef_sgd_descent(**known, **({"gradient": 0, "second_moment": 0, "memory": 0} | {name: 1}))
        for name in ("gradient", "second_moment", "memory")
    )
    yield zero("the noise", moment - x.L * x.eta**2 / 2)
    rise = -x.eta * dot(g - apart, g)  # <grad f(y), -eta grad f(x)>
    smooth = x.eta / (2 * x.rho) * (x.L**2 * square(e) - square(apart))
    yield squares("what is left", gradient * square(g) + memory * square(e) - rise - smooth, 1)


@proof(
    "ef.memory.step",
    region=Region(delta=(0, 1), eta=POSITIVE),
    states="the bound less (1 - delta) E||e + eta g||^2 is one square",
    variants={
        "1/delta for 2/delta": Change(
            "ef_sgd_memory_step", "2.0 * (1.0 - delta) / delta", "1.0 * (1.0 - delta) / delta"
        ),
        "1 - delta for the memory": Change("ef_sgd_memory_step", "1.0 - delta / 2.0", "1.0 - delta"),
    },
)
def _(x):
    e, g = unit_forms(2)
    nothing = {"memory": 0, "gradient": 0, "variance": 0}
    of = {n: x.bounds.ef_sgd_memory_step(x.delta, step=x.eta, **(nothing | {n: 1})) for n in nothing}
    bound = of["memory"] * square(e) + of["gradient"] * square(g)
    yield squares("memory and gradient", bound - (1 - x.delta) * square(e + x.eta * g))
    yield zero("noise", of["variance"] - (1 - x.delta) * x.eta**2)


@proof(
    "ef.memory",
    region=Region(q=(0, 1), t=POSITIVE, P=(0, 1), eta=POSITIVE, G=POSITIVE),
    states="the root of the bound follows r_{t+1} = q (r_t + eta G) from r_0 = 0, for every t and in the limit; q = "
    "sqrt(1 - delta), P = q^t, G^2 = E||g||^2",
    variants={"q^2 in the limit": Change("memory_error", "(q * (1.0 + q)", "(q * q * (1.0 + q)")},
)
def _(x):
    x.power(x.q, x.t, x.P)
    delta = 1 - x.q**2

    def root(steps):
        return x.bounds.memory_error(delta, x.eta, x.G**2, steps=steps).root()

    yield zero("r_{t+1}", root(x.t + 1) - x.q * (root(x.t) + x.eta * x.G))
    yield zero("r_1", root(1) - x.q * x.eta * x.G)
    yield zero("the limit", root(None) - x.q * (root(None) + x.eta * x.G))


@proof(
    "ef.memory.paper",
    region=Region(q=(0, 1), eta=POSITIVE, G=POSITIVE),
    states="it is at least the sharp bound; q = sqrt(1 - delta)",
    variants={"1 for 4": Change("memory_error", "second_moment * 4.0", "second_moment * 1.0")},
    given=("ef.memory",),
)
def _(x):
    paper, sharp = (x.bounds.memory_error(1 - x.q**2, x.eta, x.G, form=form) for form in ("paper", "sharp"))
    yield nonnegative("paper - sharp", paper - sharp)


@proof(
    "ef.nonconvex",
    region=Region(T=(1, "inf"), delta=(0, 1), L=POSITIVE, eta=POSITIVE, G=POSITIVE, gap=POSITIVE),
    states="the theorem is what its lemmas add up to, summed over T steps; G = M^2",
    variants={
        "gamma L M^2/2": Change("ef_sgd", "lipschitz * step * averaged", "lipschitz * step * averaged / 2"),
        "the gap once": Change("ef_sgd", "2.0 * gap", "1.0 * gap"),
        "2 for 4 in the memory, not in its lemma": Change("composed", 'form="paper")', 'form="paper") / 2'),
    },
    given=("ef.descent", "ef.memory.paper", "ef.identity"),
)
def _(x):
    known = dict(delta=x.delta, lipschitz=x.L, step=x.eta, second_moment=x.G, gap=x.gap)
    yield zero("its lemmas", x.bounds(error_feedback.composed)(x.T, **known) - x.bounds.ef_sgd(x.T, **known))


@proof(
    "ef.nonconvex.variance",
    region=Region(
        T=(1, "inf"), q=(0, 1), L=POSITIVE, eta=(0, "1/(4*L)"), V=POSITIVE, gap=POSITIVE, N=(1, "inf"), b=(0, "1/4")
    ),
    states="the theorem is at least what its lemmas add up to, for every step size that it allows, as eta L and b = "
    "eta L sqrt(1 - delta)/delta are at most 1/4; V = sigma^2, q = sqrt(1 - delta)",
    variants={
        "the gap three times": Change("ef_sgd_variance", "4.0 * gap", "3.0 * gap"),
        "sigma^2/N": Change("ef_sgd_variance", "2.0 * step * lipschitz", "1.0 * step * lipschitz"),
        "the memory's half": Change("ef_sgd_variance", "4.0 * (step", "2.0 * (step"),
    },
    given=("ef.descent", "ef.memory.step", "ef.identity"),
)
def _(x):
    delta, q, eta = 1 - x.q**2, x.q, x.eta
    known = dict(delta=delta, lipschitz=x.L, step=eta, variance=x.V, gap=x.gap, workers=x.N)
    with x.assumed():
        theorem = x.bounds.ef_sgd_variance(x.T, **known)
    memory = x.bounds.ef_sgd_memory_step(delta, step=eta, memory=0, gradient=1, variance=0) / (delta / 2)  # its limit
    fall = -x.bounds.ef_sgd_descent(lipschitz=x.L, step=eta, gradient=1, second_moment=1, memory=memory)
    together = x.bounds(error_feedback.composed_from_variance)(x.T, **known)
    yield zero("lemmas times their fall over a quarter of eta", together * fall - theorem * eta / 4)
    a, b = eta * x.L, eta * x.L * q / delta
    yield zero("the fall", fall / eta - Fraction(1, 4) - (Fraction(1, 4) - a) / 2 - 2 * (Fraction(1, 16) - b**2))
    yield positive("is at least a quarter of eta", (Fraction(1, 4) - a) / 2 + 2 * (Fraction(1, 16) - x.b**2))


@proof(
    "conef.theorem",
    region=Region(
        T=(1, "inf"),
        L=POSITIVE,
        eta=(0, "1/(2*L)"),
        V=POSITIVE,
        more=POSITIVE,
        gap=POSITIVE,
        N=(1, "inf"),
        P=POSITIVE,
        theta=POSITIVE,
        r=(0, "1/(1 + theta)"),
    ),
    states="the theorem is what its lemmas add up to, with eta L <= 1/2 that leaves a quarter of eta E||grad f||^2; P, "
    "the limit of E||p||^2/(eta^2 M^2), is any number in both; more = M^2 - sigma^2, V = sigma^2",
    variants={
        "the gap twice": Change("conef", "4.0 * gap", "2.0 * gap"),
        "the memory's half": Change("conef", "slope * lipschitz *", "0.5 * slope * lipschitz *"),
        "theta not times r": Change("conef", "slope * theta * residual", "slope * theta"),
    },
    given=("conef.identity", "conef.memory.bound", "ef.descent"),
)
def _(x):
    x.bounds.given["limit_moment"] = lambda theta, residual: x.P
    known = dict(theta=x.theta, residual=x.r, lipschitz=x.L, step=x.eta, variance=x.V, second_moment=x.V + x.more)
    known |= {"gap": x.gap, "workers": x.N}
    for shared in (False, True):
        together = x.bounds(conef_rates.composed)(x.T, **known, shared=shared)
        yield zero("its lemmas" + ", shared coins" * shared, together - x.bounds.conef(x.T, **known, shared=shared))
    fall = x.bounds.ef_sgd_descent(lipschitz=x.L, step=x.eta, gradient=1, second_moment=1, memory=0)
    yield nonnegative("a step falls by a quarter", -fall - x.eta / 4)


@proof(
    "conef.improved.theorem",
    region=Region(
        T=(1, "inf"),
        L=POSITIVE,
        eta=(0, "1/(2*L)"),
        V=POSITIVE,
        more=POSITIVE,
        gap=POSITIVE,
        N=(1, "inf"),
        P=POSITIVE,
        theta=(0, 1),
        r=(0, "1/(1 + theta)"),
    ),
    states="iConEF's lemmas add up to ConEF's theorem with theta^2 or theta r in place of theta; theta < 1, P as for "
    "conef.theorem, more = M^2 - sigma^2, V = sigma^2",
    variants={
        "theta for theta^2": Change("iconef_variance", "theta**2", "theta"),
        "theta for theta r": Change("iconef_variance", "theta * residual", "theta"),
    },
    given=("conef.improved", "conef.theorem"),
)
def _(x):
    x.bounds.given["limit_moment"] = lambda theta, residual: x.P
    known = dict(residual=x.r, lipschitz=x.L, step=x.eta, variance=x.V, second_moment=x.V + x.more, gap=x.gap)
    known["workers"] = x.N
    for version in (1, 2):
        together = x.bounds(conef_rates.composed_in_parts)(version, x.T, theta=x.theta, **known)
        alike = x.bounds.iconef_variance(x.theta, x.r, f"v{version}")
        yield zero(f"version {version}", together - x.bounds.conef(x.T, theta=alike, **known))


@proof(
    "conef.memory.bound",
    instance="the limit of many steps",
    region=Region(p=(0, 1), u=("p", 1), eta=POSITIVE, G=POSITIVE),
    states="its limit is the fixed point of P = (eta G + sqrt(r P))^2 + theta r P, times kappa; r = p^2, theta = "
    "(1 - u^2)/p^2 with p < u < 1, which is every theta below 1/r - 1",
    variants={"(1 - kappa) for its square": Change("limit_moment", "(1.0 - kappa)) ** 2", "1.0) ** 2")},
)
def _(x):
    residual, theta = x.p**2, (1 - x.u**2) / x.p**2
    limit = x.bounds.conef_memory(theta, residual, x.eta, x.G**2) / x.bounds.conef_factor(theta, residual)
    root = limit.root()
    yield zero("fixed point", (x.eta * x.G + x.p * root) ** 2 + theta * residual * limit - limit)
    yield positive("kappa < 1", 1 - x.bounds.conef_factor(theta, residual))


@proof(
    "conef.memory",
    instance="the limit of many steps",
    region=Region(p=(0, 1), theta=(0, "1/p**2 - 1"), s=(0, "p"), eta=POSITIVE, G=POSITIVE),
    states="the limit is the fixed point of P = eta^2 G (1 + 2 m) + kappa P, times kappa, with m = s (1 + m); s = "
    "shrink <= p = sqrt(r), G = M^2",
    variants={"1 - s for 1 + s": Change("conef_memory_exact", "(1.0 + shrink) /", "(1.0 - shrink) /")},
)
def _(x):
    kappa, mean = x.bounds.conef_factor(x.theta, x.p**2), x.s / (1 - x.s)
    limit = x.bounds.conef_memory_exact(x.theta, x.p**2, x.s, x.eta, x.G) / kappa
    yield zero("fixed point", x.eta**2 * x.G * (1 + 2 * mean) + kappa * limit - limit)


# --- Mem-SGD's sharp lemmas and their theorem ------------------------------------------------------------------------


@proof(
    "memsgd.iterate",
    region=Region(mu=(0, "inf"), L=("mu", "inf")),
    states="c ||m||^2 less mu/2 ||x - m||^2 + f(x) - f* - 2 <grad f(x), x - m> and multiples of two interpolation "
    "inequalities is a sum of two squares, with the sharp c; it is attained by L x^2/2; the paper's c is larger",
    variants={
        "(2L - mu)^2/(3L)": Change("_pull", "(2.0 * (3.0 * lipschitz - mu))", "(2.0 * 3.0 * lipschitz)"),
        "no mu/2": Change("_pull", "mu / 2.0 + (2.0", "0.0 + (2.0"),
    },
)
def _(x):
    mu, L = x.mu, x.L
    unit = dict(mu=mu, lipschitz=L, step=1, distance=0, second_moment=0, gap=0, memory=1)
    sharp = x.bounds.mem_sgd_iterate(**unit, form="sharp")
    d, g, m = unit_forms(3)  # x - x*, the gradient at x, the memory
    least = between(d, g, 0 * d, 0 * d, mu, L)  # of f(x) - f*

    most = -between(0 * d, 0 * d, d, g, mu, L)
    weight = 1 + 2 * L / (2 * L - mu)
    # f(x) - f* = weight (f - f*) - (weight - 1)(f - f*), bounded from above and from below
    needed = mu / 2 * square(d - m) - 2 * dot(g, d - m) + weight * most - (weight - 1) * least
    yield positive("multipliers", weight, weight - 1)
    yield squares("what is left", sharp * square(m) - needed, 2)
    at = (2 * L - mu) / (3 * L - mu)
    yield zero("attained", sharp - (mu / 2 * (at - 1) ** 2 + L / 2 * at**2 - 2 * L * at * (at - 1)))
    yield nonnegative("the paper's c", x.bounds.mem_sgd_iterate(**unit) - sharp)


@proof(
    "memsgd.recursion",
    region=Region(a=(4, "inf"), T=(0, "inf"), mu=(0, "inf"), start=(0, "inf"), A=(0, "inf"), B=(0, "inf")),
    states="by induction on T, for a > 4: weighted by w_t/eta_t the recursion telescopes, each a_t with a negative "
    "rest, and S_T and the sums of the bound grow by what the step T adds; attained where a_t = 0 from t = 1 on",
    variants={
        "T + 2a": Change("mem_sgd_recursion", "- sharp)", "- 0 * sharp)"),
        "65 T": Change("mem_sgd_recursion", "64.0 *", "65.0 *"),
        "a^2 (a - 3)": Change("mem_sgd_recursion", "shift - 4.0", "shift - 3.0"),
        "2 T + 1 in S_T": Change("mem_sgd_weight_sum", "2.0 * T - 1.0", "2.0 * T + 1.0"),
    },
)
def _(x):
    a, T, mu = x.a, x.T, x.mu
    sums = x.bounds.mem_sgd_weight_sum
    known = dict(mu=mu, shift=a, distance=x.start, second=x.A, third=x.B, form="sharp")

    def whole(T):  # S_T times the bound
        return sums(T, a) * x.bounds.mem_sgd_recursion(T, **known)

    weight, eta = (a + T) ** 2, 8 / (mu * (a + T))
    yield zero("S_{T+1} - S_T, S_0", sums(T + 1, a) - sums(T, a) - weight, sums(0, a))
    yield zero("what the step T adds", whole(T + 1) - whole(T) - weight * (eta * x.A + eta**2 * x.B))
    first = 8 / (mu * a)
    yield zero("the step 0", whole(1) - a**2 * ((1 / first - mu / 2) * x.start + first * x.A + first**2 * x.B))
    later = 8 / (mu * (a + T + 1))
    yield positive("the rest of each a_t is negative", weight / eta - (a + T + 1) ** 2 * (1 / later - mu / 2))


@proof(
    "memsgd.theorem",
    region=Region(
        d=(0, "inf"),
        k=(0, "d"),
        alpha=(4, "inf"),
        a=(4, "inf"),
        T=(1, "inf"),
        mu=(0, "inf"),
        L=("mu", "inf"),
        G=(0, "inf"),
        D=(0, "inf"),
    ),
    states="Theorem 2.4 is what its lemmas add up to, in the paper's constants and in the sharp ones, with any alpha "
    "that the shift a allows; G = M^2, D = ||x_0 - x*||^2",
    variants={
        "a^2 (a - 3)": Change("mem_sgd", "shift - 4.0", "shift - 3.0"),
        "65 T in the memory": Change("mem_sgd", "64.0 *", "65.0 *"),
        "alpha - 3 in the memory's lemma, not here": Change("composed", "alpha=alpha)", "alpha=alpha + 1)"),
    },
    given=("memsgd.iterate", "memsgd.memory", "memsgd.recursion", "ef.identity"),
)
def _(x):
    x.bounds.given["mem_sgd_alpha"] = lambda d, k, shift: x.alpha
    known = dict(d=x.d, k=x.k, alpha=x.alpha, shift=x.a, mu=x.mu, lipschitz=x.L, second_moment=x.G, distance=x.D)
    for form in ("paper", "sharp"):
        together = x.bounds(mem_sgd.composed)(x.T, form, **known)
        yield zero(f"its lemmas together, {form}", together - x.bounds.mem_sgd(x.T, form=form, **known))
