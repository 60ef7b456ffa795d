"""Proofs of Mem-SGD's sharp lemmas and of the theorem that they add up to."""

from __future__ import annotations

from ...topics import mem_sgd
from ..execute import Change
from ..forms import between, dot, square, unit_forms
from ..proof_list import nonnegative, positive, proof, squares, zero
from ..region import Region


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
    "that the shift a allows; G = G^2, D = ||x_0 - x*||^2",
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
