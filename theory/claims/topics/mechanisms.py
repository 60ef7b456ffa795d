"""Claims about mechanisms that raise gradient diversity: DropConnect, Langevin noise, one-level quantization."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...measure import ratio_interval
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import DropConnect, Langevin, QuantizedGradients, batch_bound, diversified, ridge, second_moment
from ...problems import gradient as gradient_of
from .. import claim, equality, identity, lower, upper
from .diversity import rows_of

BATCH, DROP = 6, 0.4


def means(context, problem, x, samples, batch, *path):
    """||mean gradient of a batch||^2 for ``samples`` batches, drawn with replacement: of steps of length 1 from x."""
    method = ParallelSGD(Identity(), step=Constant(1.0), batch=batch)
    return np.sum((x - context.run64(method, problem, batch, *path, steps=1, replicas=samples, x0=x).last) ** 2, axis=1)


def plain(context, n=5, d=4):
    """Ridge regression on few rows, so that batches repeat them, and a point.

    All gradients have positive products, whatever the seed: B_D <= n there.
    """
    X, b, x = (np.abs(context.normal(size, name)) + 0.1 for name, size in (("X", (n, d)), ("b", n), ("x", d)))
    return ridge((X, -b), 1.0), x


def factor_of(mechanism, problem, x):
    """The factors of the second moment and of the mean under a mechanism, by the closed forms."""
    moment = second_moment(problem, x)
    if isinstance(mechanism, DropConnect):
        return bounds.drop_connect_factor(mechanism.drop), 1.0 - mechanism.drop
    if isinstance(mechanism, Langevin):
        return bounds.langevin_factor(mechanism.deviation, x.size, moment), 1.0
    g = rows_of(problem, x)
    return bounds.quantized_factor(np.mean(np.abs(g).sum(axis=1) * np.linalg.norm(g, axis=1)), moment), 1.0


def langevin(problem, x, factor=2.0):
    """Noise that multiplies the second moment at x by a factor."""
    return Langevin(float(np.sqrt((factor - 1.0) * second_moment(problem, x) / x.size)))


def by_passes(context, mechanism, g, samples):
    """The ratio n sum E||g_i||^2/E||sum g_i||^2 over passes with each row once, from the definitions of mechanisms."""
    rng, shape = np.random.default_rng(context.stream("passes", type(mechanism).__name__)), (samples, *g.shape)
    if isinstance(mechanism, DropConnect):
        drawn = g * (rng.random(shape) >= mechanism.drop)
    elif isinstance(mechanism, Langevin):
        drawn = g + mechanism.deviation * rng.standard_normal(shape)
    else:
        size = np.linalg.norm(g, axis=1, keepdims=True)
        drawn = np.sign(g) * size * (rng.random(shape) * size < np.abs(g))
    return partial(ratio_interval, len(g) * np.sum(drawn**2, axis=(1, 2)), np.sum(drawn.sum(axis=1) ** 2, axis=1))


def mechanism_law(id, mechanism_at, mutants, **facts):
    """A claim about batches of disturbed gradients, whose noise is or is not shared by the repeats of a row."""

    def measure(context):
        problem, x = plain(context)
        mechanism, samples, n = mechanism_at(problem, x), context.samples(40_000, 12_000), problem.n
        factor, kept = factor_of(mechanism, problem, x)
        moment = factor * (kept**2 * second_moment(problem, x))
        for shared, name in ((False, "fresh"), (True, "shared")):
            bound = bounds.mechanism_batch_bound(batch_bound(problem, x), factor, n if shared else None)
            predicted = bounds.minibatch_second_moment(moment, moment / bound, BATCH)
            simulated = context.subject(problem, mechanism, shared)
            of_mean, of_one = (means(context, simulated, x, samples, batch, name) for batch in (BATCH, 1))
            yield equality(f"E||mean of a batch||^2, {name} noise, B={BATCH}, n={n}", of_mean, predicted)
            yield equality(f"mean E||g_i||^2, {name} noise", of_one, moment)
            yield identity(f"the problem's B, {name} noise", batch_bound(simulated, x), bound, 1e-9)
        passes = by_passes(context, mechanism, rows_of(problem, x), samples)
        yield equality("n sum E||g_i||^2/E||sum g_i||^2, shared noise", passes, bound)

    return claim(
        id,
        of=bounds.mechanism_batch_bound,
        subject=diversified,
        mutants={
            "shared for fresh, fresh for shared": lambda p, m, shared: diversified(p, m, not shared),
            "always shared": lambda p, m, shared: diversified(p, m, True),
        }
        | mutants,
        **facts,
    )(measure)


mechanism_law(
    "mechanism.drop-connect",
    lambda problem, x: DropConnect(DROP),
    {"one in five dropped, not two": lambda p, m, shared: diversified(p, DropConnect(0.2), shared)},
)

mechanism_law(
    "mechanism.langevin",
    langevin,
    {"noise of twice the variance": lambda p, m, shared: diversified(p, Langevin(2**0.5 * m.deviation), shared)},
)

mechanism_law(
    "mechanism.quantized",
    lambda problem, x: QuantizedGradients(),
    {"the l2 term left out": lambda p, m, shared: diversified(p._replace(l2=0.0), m, shared)},
)


@claim(
    "mechanism.theorem-7",
    of=bounds.mechanism_batch_bound,
    subject=batch_bound,
    mutants={
        "what is added to the second moment is the same for all rows": lambda noisy, x: (
            second_moment(noisy, x)
            / (second_moment(noisy, x) - second_moment(noisy.problem, x) + np.sum(gradient_of(noisy.problem, x) ** 2))
        ),
        "the factor 1 - p of the mean forgotten": lambda noisy, x: (
            batch_bound(noisy, x) * (1.0 - getattr(noisy.mechanism, "drop", 0.0)) ** 2
        ),
    },
)
def _(context):
    problem, x = plain(context, n=12)
    # near a minimum gradients cancel, and B_D exceeds n
    opposed, origin = ridge((np.ones((4, 2)), np.array([1.0, -1.0, 2.0, -1.9])), 0.0), np.zeros(2)
    for mechanism in (DropConnect(DROP), langevin(problem, x), QuantizedGradients()):
        found, name = context.subject(diversified(problem, mechanism, True), x), type(mechanism).__name__
        yield lower(f"{name}: B, n=12", found, batch_bound(problem, x))
        yield upper(f"{name}: B, n=12, and n", found, 12.0)
        passes = by_passes(context, mechanism, rows_of(problem, x), context.samples(16_000, 8_000))
        yield equality(f"{name}: n sum E||g_i||^2/E||sum g_i||^2, n=12", passes, found)
        bound = bounds.mechanism_batch_bound(batch_bound(problem, x), factor_of(mechanism, problem, x)[0], 12)
        yield identity(f"{name}: B by its formula", found, bound, 1e-9)
        yield lower(f"{name}: B where B_D > n = 4", context.subject(diversified(opposed, mechanism, True), origin), 4.0)


@claim(
    "mechanism.rounds",
    of=bounds.mechanism_rounds,
    subject=lambda r: r,
    mutants={
        "a batch that grows by r^2": lambda r: r * r,
        "a batch that stays": lambda r: 1.0,
    },
)
def _(context):
    problem, x = plain(context)
    moment, squared = second_moment(problem, x), float(np.sum(gradient_of(problem, x) ** 2))
    batch, r, bound = 4, 3.0, batch_bound(problem, x)
    size, plainly = int(batch * context.subject(r)), bounds.minibatch_second_moment(moment, squared, batch)
    for shared, name in ((False, "fresh"), (True, "shared")):
        noisy = diversified(problem, langevin(problem, x, r), shared)
        found = means(context, noisy, x, context.samples(20_000, 8_000), size, name)
        more = (1.0 - 1.0 / r) * squared / batch
        repeats = (1.0 - 1.0 / (r * batch)) * (r - 1.0) * moment / problem.n if shared else 0.0
        yield equality(f"E||mean of 12||^2, {name} noise", found, plainly + more + repeats)
        n = problem.n if shared else None
        ratio = r * bound / bounds.mechanism_batch_bound(bound, r, n)
        yield identity(f"rounds, n={n}", float(ratio), bounds.mechanism_rounds(bound, r, n), 1e-10)
    for bound, r, n in ((3.0, 1.5, 8), (12.0, 4.0, 30)):
        ratio, label = r * bound / bounds.mechanism_batch_bound(bound, r, n), f"rounds, B_D={bound:g}, r={r:g}, n={n}"
        yield identity(label, float(ratio), bounds.mechanism_rounds(bound, r, n), 1e-10)
    yield f"noise that triples M^2; B={batch} without it, 12 with it"
