"""Proofs of CHOCO-Gossip's rate from its lemmas, and of the distances of CHOCO-SGD."""

from __future__ import annotations

from ..execute import Change
from ..proof import nonnegative, proof
from ..region import Region

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
    "delta/82, G = G^2",
    variants={"7 for 12": Change("choco_consensus", "12.0 *", "7.0 *")},
    given=("choco.gossip.run",),
)
def _(x):
    c = x.bounds.choco_rate(x.rho, x.delta)
    fixed = (1 + 2 / c) * 2 * x.N * x.eta**2 * x.G / (1 - (1 + c / 2) * (1 - c))
    bound = x.bounds.choco_consensus(x.rho, x.delta, step=x.eta, second_moment=x.G, workers=x.N)
    yield nonnegative("what is left", bound - fixed)
