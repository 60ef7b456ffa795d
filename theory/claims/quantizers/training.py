"""Claims about QSGD and NUQSGD in training: convergence with the quantizer in the run, rounds and bits.

The convex theorem is attained, asymptotically in T, by ``one_sided``: far from the minimum every coordinate of the
gradient is a small constant, near it a steep wall reflects; so the mean of the iterates is no better than the iterates.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import NUQSGD, QSGD, Elias
from ...methods import ParallelSGD
from ...methods.schedules import Constant, Suffix
from ...problems import function, quadratic, saturating_quadratic, value
from .. import assumption, claim, identity, upper
from ..memory.error_feedback import mean_squared_gradient

D, N, STEPS = 64, 2, 200
QSGD_4 = (partial(QSGD, 4, code=Elias()), bounds.qsgd_variance(D, 4))  # omega = 1, attained by equal magnitudes
NUQSGD_1 = (partial(NUQSGD, 1, code=Elias()), bounds.nuqsgd_variance(D, 1))  # omega = 3, likewise


def one_sided(slope: float, lipschitz: float):
    """Sum of h(x_j), h' = min(L x, slope); 2 D gradients, which add the rows of a Hadamard matrix or minus them."""
    signs = np.ones((1, 1))
    while len(signs) < D:
        signs = np.block([[signs, signs], [signs, -signs]])
    signs, corner = np.concatenate([signs, -signs]), slope / lipschitz

    def value(x):
        near = np.minimum(x, corner)
        return float(np.sum(0.5 * lipschitz * near**2 + slope * (x - near)))

    return function(value, lambda x, i: np.minimum(lipschitz * x, slope) + signs[i], d=D, n=2 * D, lipschitz=lipschitz)


def hardest(omega: float, steps: int, workers: int = N) -> tuple[Any, dict]:
    """The problem on which T steps from distance 1 achieve least, and its constants."""
    noise = math.sqrt((1.0 + omega) / workers)  # of one coordinate of the mean message
    slope, lipschitz = 2.0 * noise / math.sqrt(steps), 6.0 * noise * math.sqrt(D)
    constants = {"lipschitz": lipschitz, "variance": D, "second_moment": D * (1.0 + 8.0 * slope**2), "distance": 1.0}
    return one_sided(slope, lipschitz), constants | {"omega": omega, "workers": workers}


def train(context, compressor, problem, step: float, steps: int, workers: int = N):
    """Runs of parallel SGD from distance 1; the result is the mean of x_1, ..., x_T."""
    method = ParallelSGD(compressor, step=Constant(step), average=Suffix(1))
    options = {"workers": workers, "steps": steps + 1, "replicas": context.samples(192, 96), "record_every": steps + 1}
    return context.run(method, problem, x0=np.full(D, 1.0 / math.sqrt(D)), wire_dtype=np.float32, **options)


def largest_gap(steps: int, *, lipschitz, inverse_h, noise, distance) -> Fraction:
    """The largest mean gap that the one-step inequality allows while ||x - x*||^2 stays above 0.

    The inequality, with 1/gamma = L + 1/h: ||x+ - x*||^2 <= ||x - x*||^2 - 2 gamma gap + gamma h v in expectation.
    """
    gamma, h = 1 / Fraction(lipschitz + inverse_h), 1 / Fraction(inverse_h)

    def left(gap):
        squared = Fraction(distance)
        for _ in range(steps):
            squared += gamma * h * noise - 2 * gamma * gap
        return squared

    return left(0) / (left(0) - left(1))


def convergence(context, omega: float, form: str = "sharp", promised: str = "sharp"):
    """The gap of runs with the quantizer; and the theorem, as what its lemmas give."""
    factor, make, workers = context.subject
    problem, constants = hardest(omega, STEPS, workers)
    eta = factor * bounds.quantized_sgd_convex_step(STEPS, **constants, form=form)
    found = train(context, make(), problem, eta, STEPS, workers)
    bound = bounds.quantized_sgd_convex(STEPS, **constants, form=promised)
    yield upper(f"E f(mean) - f*, hardest problem, d={D}, N={workers}, T={STEPS}", found.funs, bound)
    squared = [np.sum(problem.mean_gradient(x) ** 2) for x in found.last]
    yield assumption("E||g||^2 at x_T", D + np.array(squared), constants["second_moment"])
    for inverse, distance, L, T, W, w in ((2, 25, 3, 25, 2, 1.5), (1, 9, 8, 16, 4, 3.0)):  # the roots are rational
        v = Fraction(inverse**2 * distance * (1 if form == "sharp" else 2), T)
        second = W * float(v) / (0.5 + w)  # v = (sigma^2 + omega M^2)/W with sigma^2 = M^2/2
        known: dict[str, Any] = dict(lipschitz=L, variance=second / 2, second_moment=second, distance=distance)
        lemmas = largest_gap(T, lipschitz=L, inverse_h=inverse, noise=v, distance=distance)
        theorem = bounds.quantized_sgd_convex(T, omega=w, workers=W, **known, form=promised)
        label = f"1/h={inverse}, L={L}, T={T}, N={W}, omega={w:g}"
        yield identity(f"largest mean gap that the lemmas allow, {label}", float(lemmas), theorem)


@claim(
    "qsgd.step",
    lemmas=("sgd.smooth-convex", "qsgd.gradient-noise"),
    of=partial(bounds.quantized_sgd_convex, form="same step"),
    subject=(1.0, QSGD_4[0], 4),
    mutants={
        "sqrt N on the other side, as printed": (0.25, QSGD_4[0], 4),
        "steps six times as large": (6.0, QSGD_4[0], 4),
    },
)
def _(context):
    return convergence(context, QSGD_4[1], "paper", "same step")


for name, (make, omega) in {"qsgd": QSGD_4, "nuqsgd": NUQSGD_1}.items():

    @claim(
        f"{name}.convergence",
        lemmas=("sgd.smooth-convex", "qsgd.gradient-noise"),
        of=bounds.quantized_sgd_convex,
        subject=(1.0, make, N),
        mutants={"steps a sixth as large": (1 / 6, make, N), "steps six times as large": (6.0, make, N)},
    )
    def _(context, omega=omega):
        return convergence(context, omega)


@claim(
    "qsgd.bits-to-accuracy",
    lemmas=("qsgd.convergence", "qsgd.elias-length"),
    of=bounds.quantized_sgd_bits,
    subject=(1.0, QSGD_4[0]),
    mutants={
        "a third of the rounds": (1 / 3, QSGD_4[0]),
        "every level in the same number of bits": (1.0, partial(QSGD, 4)),
    },
)
def _(context):
    share, make = context.subject
    problem, constants = hardest(QSGD_4[1], STEPS)
    eps = float(bounds.quantized_sgd_convex(STEPS, **constants))
    rounds = round(share * bounds.quantized_sgd_rounds(eps, **constants))
    found = train(context, make(), problem, bounds.quantized_sgd_convex_step(STEPS, **constants), rounds)
    yield upper(f"E f(mean) - f* after {rounds} rounds", found.funs, eps)
    sent = float(found.history["bits_up"][-1] / found.history["rounds"][-1]) * rounds  # one round more was run
    promised = bounds.quantized_sgd_bits(eps * (1 + 1e-9), bits=bounds.qsgd_elias_length(D, 4), **constants)
    yield upper("bits that a worker sent in these rounds", sent, promised)
    other = {"omega": 2.5, "lipschitz": 5.0, "variance": 3.0, "second_moment": 7.0, "distance": 4.0, "workers": 8}
    more = {"omega": 0.5, "distance": 9.0}
    for target, known in ((1e-3, constants), (0.1, constants), (2.0, constants), (0.05, other), (0.2, other | more)):
        x, R = bounds.quantized_sgd_rounds(target, **known) ** -0.5, math.sqrt(known["distance"])
        c = R * math.sqrt((known["variance"] + known["omega"] * known["second_moment"]) / known["workers"])
        gap = c * x + known["lipschitz"] * R**2 / 2.0 * x**2
        yield identity(f"the theorem after the rounds for eps={target:g}, omega={known['omega']:g}", gap, target, 1e-9)
        whole = bounds.quantized_sgd_bits(target, bits=50.0, **known)
        yield identity("bits of as many messages of 50, rounded up", whole, 50.0 * math.ceil(x**-2 * (1 - 1e-12)))


@claim(
    "qsgd.nonconvex",
    of=bounds.quantized_sgd_smooth,
    subject=(1.0, QSGD),
    mutants={"steps four times as large": (4.0, QSGD), "one level": (1.0, lambda s: QSGD(1))},
)
def _(context):
    factor, make = context.subject
    for s, L, eta, steps, variance, start, workers in (
        (4, 2.0, 0.2, 100, 16.0, 0.0, 2),
        (4, 2.0, 0.2, 100, 16.0, 12.0, 2),
        (3, 3.0, 0.15, 60, 9.0, 0.0, 4),
        (3, 3.0, 0.15, 40, 9.0, 8.0, 4),
    ):
        problem, x0 = quadratic(np.full(D, L), covariance=variance / D), np.full(D, start / math.sqrt(D))
        method = ParallelSGD(make(s), step=Constant(factor * eta))
        options = {"workers": workers, "steps": steps, "record_every": 1, "replicas": context.samples(300, 80)}
        found = context.run64(method, problem, str(start), x0=x0, **options)
        squares = 2.0 * L * found.replica_last[:-1].mean(axis=0)  # 2 L f is the squared gradient
        known = {"omega": bounds.qsgd_variance(D, s), "lipschitz": L, "variance": variance, "gap": L * start**2 / 2.0}
        bound = bounds.quantized_sgd_smooth(steps, step=eta, workers=workers, **known)
        label = f"T={steps}, sigma^2={variance:g}, ||x_0||={start:g}, s={s}, L={L:g}, N={workers}"
        yield upper(f"mean of E||grad f||^2, {label}", squares, bound)


@claim(
    "nuqsgd.nonconvex",
    of=bounds.quantized_sgd_smooth,
    subject=(1.0, NUQSGD_1[0]),
    mutants={"steps five times as large": (5.0, NUQSGD_1[0]), "QSGD with one level": (1.0, partial(QSGD, 1))},
)
def _(context):
    L, eta, steps, (factor, make) = 2.0, 0.2, 100, context.subject
    method, omega = ParallelSGD(make(), step=Constant(factor * eta)), NUQSGD_1[1]
    for make_problem, name, start in (
        (saturating_quadratic, "a quadratic that saturates", math.sqrt(D / 3.0)),  # where it is steepest
        (quadratic, "a quadratic", 12.0),
    ):
        problem, x0 = make_problem(np.full(D, L), covariance=16.0 / D), np.full(D, start / math.sqrt(D))
        known = {"workers": N, "steps": steps, "replicas": context.samples(96, 48)}
        squares = mean_squared_gradient(context, method, problem, x0, **known)
        given = {"omega": omega, "lipschitz": L, "variance": 16.0, "gap": value(problem, x0)}
        bound = bounds.quantized_sgd_smooth(steps, step=eta, workers=N, **given)
        yield upper(f"mean of E||grad f||^2, {name}, T={steps}, sigma^2=16, ||x_0||={start:.3g}", squares, bound)
