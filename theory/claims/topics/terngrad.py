"""Claims about TernGrad: its variance, sharing and clipping, and its convergence."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import QSGD, ClippedTernGrad, TernGrad, compress, new_symbols, propose, quantize, settle, state_size
from ...core.random import key
from ...methods import ParallelSGD
from ...methods.schedules import Constant, InverseTime, step_size
from ...problems import ridge
from .. import assumption, claim, equality, identity
from ..laws import Input, compressor_law, gaussian
from ..mutants.quantizers import INVERTED, NEAREST, WrongRounding


def extremal(d: int) -> Input:
    """One coordinate -1, the others 1/(sqrt(d) + 1)."""
    return Input(
        f"the worst vector, d={d}", lambda context: np.append(-1.0, np.full(d - 1, 1.0 / (math.sqrt(d) + 1.0)))
    )


compressor_law(
    "terngrad.variance",
    TernGrad,
    at=[(extremal(400), {}), (gaussian(400), {}, "upper"), (gaussian(400, 3), {}, "upper")],
    formula=lambda v: bounds.ternary_inf_variance(v.size),
    of=bounds.ternary_inf_variance,
    quick=4_000,
    mutants={
        "the 2-norm as the scale": lambda: QSGD(1),
        "the probability inverted": lambda: WrongRounding(0, norm=math.inf, fault=INVERTED),
        "to the nearest level": lambda: WrongRounding(0, norm=math.inf, fault=NEAREST),
        "clipped first": ClippedTernGrad,
    },
)


def sum_of_messages(c, vectors, stream) -> np.ndarray:
    """The sum of the workers' messages, after they agreed on a scale if ``c`` shares it."""
    d, agreed = vectors[0].size, np.zeros(1)
    states = [np.zeros(state_size(c, d)) for _ in vectors]
    if c == TernGrad(shared=True):
        for v, state in zip(vectors, states, strict=True):
            own = np.zeros(1)
            propose(c, state, v, np.uint64(0), own)
            agreed = np.maximum(agreed, own)
        for state in states:
            settle(c, d, state, agreed)
    total = np.zeros(d)
    for i, (v, state) in enumerate(zip(vectors, states, strict=True)):
        symbols = new_symbols(c, d, np.empty(0, np.float32))
        quantize(c, state, v, key(stream, i), symbols)
        total += float(symbols.value[0]) * symbols.level[:d]
    return total


@claim(
    "terngrad.shared",
    of=bounds.terngrad_downlink_bits,
    subject=partial(TernGrad, shared=True),
    mutants={"every worker its own scale": TernGrad, "more levels than three": lambda: QSGD(2, math.inf)},
    measured_by="the package's run",
)
def _(context):
    d = 20_000
    for workers in (2, 4):
        rng = np.random.default_rng(context.stream(workers))
        shape = rng.choice([-1.0, 1.0], d) * rng.uniform(0.3, 1.0, d)
        vectors = [shape * rng.uniform(0.5, 1.0) for _ in range(workers)]
        total = sum_of_messages(context.subject(), vectors, context.stream(workers))
        distinct = np.unique(np.round(total / np.abs(total).max(), 9)).size
        label = f"log2 of the number of values of the sum of {workers} messages, d={d}"
        yield identity(label, math.log2(distinct), bounds.terngrad_downlink_bits(workers))


def restored_gaussian(context, clip: float):
    """Density, second moment and squared bias of what is restored from Gaussian vectors."""
    d, predicted = 20_000, bounds.clipped_gaussian(clip)
    rng, density, second, bias = np.random.default_rng(context.stream("vectors")), [], [], []
    for i in range(context.samples(200, 100)):
        v = rng.standard_normal(d)
        restored = compress(context.subject(clip), v, key(context.stream("rounding"), i), wire_dtype=np.float64)
        density.append(np.count_nonzero(restored) / d)
        second.append(np.sum(restored**2) / np.sum(v**2))
        cut = np.maximum(np.abs(v) - np.abs(restored).max(), 0.0)  # the bias of the restored vector
        bias.append(np.sum(cut**2) / np.sum(v**2))
    yield equality(f"density, d=20000, c={clip:g}", density, predicted.density, tolerance=1e-4)
    yield equality(f"second moment, c={clip:g}", second, predicted.second_moment, tolerance=1e-4)
    yield equality(f"squared bias, c={clip:g}", bias, predicted.squared_bias, tolerance=1e-2)


@claim(
    "terngrad.clip",
    of=bounds.clipped_gaussian,
    subject=ClippedTernGrad,
    mutants={
        "clipped later by a fifth": lambda clip: ClippedTernGrad(1.2 * clip),
        "clipped earlier by a fifth": lambda clip: ClippedTernGrad(0.8 * clip),
        "not clipped": lambda clip: TernGrad(),
    },
    measured_by="the package's run",
)
def _(context):
    for clip in (2.5, 2.0):
        yield from restored_gaussian(context, clip)
    yield "the tolerances of 1e-4, and 1e-2 for the small bias, are for d = 20000 instead of infinity"


# --- convergence ------------------------------------------------------------------------------------------------------
# The stochastic gradients are d <u, w> u +- noise sqrt(d) u for one u of an orthonormal basis of worst vectors of
# TernGrad: then every inequality of the proof is an equality, for every w.


def worst_basis(prime: int) -> np.ndarray:
    """An orthonormal basis of vectors with one large entry and others 1/(sqrt(d) + 1) of it; d = prime + 1.

    The off-diagonal entries have the signs of Paley's skew conference matrix S, prime = 3 mod 4: S S' = (d - 1) I.
    """
    d, numbers = prime + 1, np.arange(prime)
    square = np.isin(np.subtract.outer(numbers, numbers) % prime, np.unique(numbers[1:] ** 2 % prime))
    S = np.ones((d, d))
    S[1:, 1:] = np.where(square, 1.0, -1.0)
    S[1:, 0] = -1.0
    U = np.where(np.eye(d) > 0, 1.0, S / (math.sqrt(d) + 1.0))
    return U / np.linalg.norm(U[0])


def extremal_data(noise: float, d: int, mu: float):
    """The rows and targets of C(w) = mu ||w||^2/2 + noise^2/2 as a mean of squares."""
    U = worst_basis(d - 1)
    return np.vstack([U, U]) * math.sqrt(mu * d), np.repeat([noise, -noise], d)


def constants(noise: float, d: int, mu: float) -> dict:
    """A and B for these data: max|g| ||g||_1 / ||g||^2 is the same for all gradients, the largest there is."""
    slope = d * (1.0 + bounds.ternary_inf_variance(d))
    return {"offset": mu * slope * noise**2, "slope": mu**2 * slope}


def distances(context, noise: float, mu: float, schedule, w, times, replicas: int):
    """||w_t||^2 at these times in independent runs: a row for each time."""
    problem, method = ridge(extremal_data(noise, w.size, mu), 0.0), ParallelSGD(context.subject, step=schedule)
    options = {"x0": w, "steps": max(times), "record_every": math.gcd(*times)}
    result = context.run64(method, problem, str(noise), replicas=replicas, **options)
    kept = np.isin(result.history["step"], times)
    return (2.0 * result.replica_last[kept] - noise**2) / mu


def stays_assumed(noise: float, mu: float, w):
    """The assumption of Lemma 1 at w, from the gradients of all samples."""
    (rows, targets), given = extremal_data(noise, w.size, mu), constants(noise, w.size, mu)
    g = rows * (rows @ w - targets)[:, None]
    found = float(np.mean(np.abs(g).max(axis=1) * np.abs(g).sum(axis=1)))
    return assumption("E max|g| ||g||_1 at the start", found, given["offset"] + given["slope"] * float(w @ w))


MUTANTS = {
    "the 2-norm as the scale": QSGD(1),
    "clipped first, at one standard deviation": ClippedTernGrad(1.0),
    "two levels above zero": QSGD(2, math.inf),
}


@claim(
    "terngrad.lemma-1",
    of=bounds.terngrad_step,
    subject=TernGrad(),
    mutants=MUTANTS,
)
def _(context):
    for noise, size, step, d, mu in ((0.0, 1.5, 0.1, 8, 1.0), (1.0, 0.5, 0.05, 4, 2.0), (1.0, 0.5, 0.02, 8, 1.5)):
        w = context.normal(d)
        w *= size / np.linalg.norm(w)
        (found,) = distances(context, noise, mu, Constant(step), w, [1], context.samples(20_000, 4_000))
        bound, label = bounds.terngrad_step(step, size**2, mu * size**2, **constants(noise, d, mu)), f"d={d}, mu={mu:g}"
        yield equality(f"E h after a step from h = {size**2:g}, noise {noise:g}, step {step:g}, {label}", found, bound)
        yield stays_assumed(noise, mu, w)


@claim(
    "terngrad.theorem-1",
    of=bounds.terngrad_distance,
    subject=TernGrad(),
    mutants=MUTANTS,
    see=("terngrad.lemma-1",),
)
def _(context):
    for noise, times, w, mu in ((0.5, [10, 40, 160], np.full(8, 1.0), 1.5), (0.6, [10, 40], np.full(4, 1.2), 0.8)):
        known, d = constants(noise, w.size, mu), w.size
        schedule = InverseTime(c=1.0, mu=mu, shift=known["slope"] / mu**2)  # at first mu/B
        steps, samples = [step_size(schedule, t) for t in range(max(times))], context.samples(6_000, 2_400)
        for T, found in zip(times, distances(context, noise, mu, schedule, w, times, samples), strict=True):
            bound = bounds.terngrad_distance(steps[:T], float(w @ w), mu, **known)
            yield equality(f"E h_T, steps 1/(B/mu + mu t), T={T}, d={d}, mu={mu:g}", found, bound)
        yield stays_assumed(noise, mu, w)
    yield "the limit itself, and that it is almost sure, is not measured"
