"""Claims about mechanisms that raise gradient diversity: DropConnect, Langevin noise, one-level quantization."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...core import kernel
from ...core.random import derive, integer
from ...measure import exactly, mean_interval, ratio_interval
from ...problems import DropConnect, Langevin, QuantizedGradients, batch_bound, diversified, ridge, second_moment
from ...problems import gradient as gradient_of
from ...problems.base import PER_STEP, add_loss_gradient, dimension, gradient_noise, rows
from ...problems.margins import norm2
from ..base import claim
from ..checks import Measurement, equality, identity, lower, upper
from .diversity import YIN, rows_of

BATCH, DROP = 6, 0.4


@kernel
def _batches(problem, x, stream, found):
    """``found[r]`` = ||mean of a batch of ``found.shape[1]`` draws||^2 and, in place 1, the mean of their ||g||^2."""
    batch, d = int(found[0, 0]), dimension(problem)
    mean, one = np.empty(d), np.empty(d)
    for r in range(found.shape[0]):
        draws, noise, total = derive(stream, 2 * r), derive(stream, 2 * r + 1), 0.0
        mean[:] = 0.0
        for b in range(batch):
            own = noise if gradient_noise(problem) == PER_STEP else derive(noise, b)
            one[:] = 0.0
            add_loss_gradient(problem, integer(draws, b, rows(problem)), own, 1.0, x, one)
            total += norm2(one)
            for j in range(d):
                mean[j] += one[j] / batch
        found[r, 0], found[r, 1] = norm2(mean), total / batch


def batches(problem, x, samples, seed, batch=BATCH):
    """||mean gradient of a batch||^2 and mean ||g||^2 for ``samples`` batches, drawn with replacement."""
    found = np.full((samples, 2), float(batch))
    _batches(problem, x, np.uint64(seed), found)
    return found[:, 0], found[:, 1]


def plain(context, n=5, d=4):
    """Ridge regression on few rows, so that batches repeat them, and a point.

    All gradients have positive products, whatever the seed: B_D <= n there.
    """
    X, b, x = (np.abs(context.normal(size, name)) + 0.1 for name, size in (("X", (n, d)), ("b", n), ("x", d)))
    return ridge((X, -b), 1.0), x


def norm_product(g):
    """The mean of ||g_i||_1 ||g_i||_2."""
    return np.mean(np.abs(g).sum(axis=1) * np.linalg.norm(g, axis=1))


def factor_of(mechanism, problem, x):
    """The factors of the second moment and of the mean under a mechanism, by the closed forms."""
    moment = second_moment(problem, x)
    if isinstance(mechanism, DropConnect):
        return bounds.drop_connect_factor(mechanism.drop), 1.0 - mechanism.drop
    if isinstance(mechanism, Langevin):
        return bounds.langevin_factor(mechanism.deviation, x.size, moment), 1.0
    return bounds.quantized_factor(norm_product(rows_of(problem, x)), moment), 1.0


def langevin(problem, x, factor=2.0):
    """Noise that multiplies the second moment at x by a factor."""
    return Langevin(float(np.sqrt((factor - 1.0) * second_moment(problem, x) / x.size)))


def by_passes(context, mechanism, g, shared, samples, level):
    """The ratio n sum E||g_i||^2/E||sum g_i||^2 over passes with each row once, from the definitions; fresh: two."""
    rng = np.random.default_rng(context.stream("passes", type(mechanism).__name__, int(shared)))
    shape, size = (samples, *g.shape), np.linalg.norm(g, axis=1, keepdims=True)

    def drawn():
        if isinstance(mechanism, DropConnect):
            return g * (rng.random(shape) >= mechanism.drop)
        if isinstance(mechanism, Langevin):
            return g + mechanism.deviation * rng.standard_normal(shape)
        return np.sign(g) * size * (rng.random(shape) * size < np.abs(g))

    first = drawn()
    second = first if shared else drawn()
    products = np.sum(first.sum(axis=1) * second.sum(axis=1), axis=1)
    return ratio_interval(len(g) * np.sum(first**2, axis=(1, 2)), products, level)


def _of_batches(context, mechanism_at):
    """Second moments of batches of disturbed gradients, with noise that is or is not shared by repeats of a row."""
    problem, x = plain(context)
    mechanism, samples, checks, exact, n = mechanism_at(problem, x), context.samples(80_000, 40_000), [], [], problem.n
    factor, kept = factor_of(mechanism, problem, x)
    moment = kept**2 * factor * second_moment(problem, x)
    for shared in (False, True):
        bound = bounds.mechanism_batch_bound(batch_bound(problem, x), factor, n if shared else None)
        predicted = bounds.minibatch_second_moment(moment, moment / bound, BATCH)
        simulated = context.subject(problem, mechanism, shared)
        of_mean, of_one = batches(simulated, x, samples, context.stream(int(shared)))
        name = "shared" if shared else "fresh"
        found = mean_interval(of_mean, context.level(6))
        checks.append(equality(f"E||mean of a batch||^2, {name} noise, B={BATCH}, n={n}", found, predicted))
        checks.append(equality(f"mean E||g_i||^2, {name} noise", mean_interval(of_one, context.level(6)), moment))
        passes = by_passes(context, mechanism, rows_of(problem, x), shared, samples // 5, context.level(6))
        exact.append(equality(f"n sum E||g_i||^2/E||sum g_i||^2, {name} noise", passes, batch_bound(simulated, x)))
    return Measurement(*checks, *exact, samples=2 * samples)


def _swapped(problem, mechanism, shared):
    return diversified(problem, mechanism, not shared)


def _always_shared(problem, mechanism, shared):
    return diversified(problem, mechanism, True)


COMMON = {
    "shared where it should be fresh, and the other way round": _swapped,
    "always shared": _always_shared,
}


@claim(
    "mechanism.drop-connect",
    title="DropConnect",
    statement="With coordinates dropped with probability p, B = B_D/(1 - p) for noise that is fresh in every draw, and"
    " n A/(A + (1 - p) X) if repeats of a row share it; A = sum ||grad f_i||^2, X = sum_{j != k} <grad f_j, grad f_k>.",
    latex=r"B=\frac{B_D}{1-p}\quad\text{or}\quad\frac{nA}{A+(1-p)X}",
    source=f"{YIN}, section 4.4 and supplement 4 (shared); fresh: derived",
    bibtex="yin2018gradient",
    kind="equality",
    tight_where="everywhere",
    proof="E g = (1 - p) v and E||g||^2 = (1 - p)||v||^2; only repeats of a row may have dependent noise.",
    bound=bounds.mechanism_batch_bound,
    subject=diversified,
    mutants={
        **COMMON,
        "one in five dropped, not two": lambda p, m, shared: diversified(p, DropConnect(0.2), shared),
    },
)
def _(context):
    return _of_batches(context, lambda problem, x: DropConnect(DROP))


@claim(
    "mechanism.langevin",
    title="Langevin noise",
    statement="With N(0, sigma^2 I) added, B = B_D (1 + d sigma^2/M^2) for fresh noise, and"
    " (n A + n^2 d sigma^2)/(A + X + n d sigma^2) if repeats of a row share it.",
    latex=r"B=B_D\Big(1+\frac{d\sigma^2}{M^2}\Big)\quad\text{or}\quad\frac{nA+n^2d\sigma^2}{A+X+nd\sigma^2}",
    source=f"{YIN}, section 4.4 and supplement 4 (shared); fresh: derived",
    bibtex="yin2018gradient",
    kind="equality",
    tight_where="everywhere",
    proof="E||g||^2 = ||v||^2 + d sigma^2.",
    bound=bounds.mechanism_batch_bound,
    subject=diversified,
    mutants={
        **COMMON,
        "noise of twice the variance": lambda p, m, shared: diversified(p, Langevin(2**0.5 * m.deviation), shared),
    },
)
def _(context):
    return _of_batches(context, langevin)


@claim(
    "mechanism.quantized",
    title="Quantized gradients",
    statement="With each gradient quantized to one level of its norm and S = sum ||grad f_i||_1 ||grad f_i||_2,"
    " B = S/(n ||grad f||^2) for fresh noise, and n S/(S + X) if repeats of a row share it.",
    latex=r"B=\frac{S}{n\|\nabla f\|^2}\ \text{or}\ \frac{nS}{S+X},\quad S=\sum_i\|\nabla f_i\|_1\|\nabla f_i\|_2",
    source=f"{YIN}, section 4.4 and supplement 4 (shared); fresh: derived",
    bibtex="yin2018gradient",
    kind="equality",
    tight_where="everywhere",
    proof="E||Q(v)||^2 = ||v||_1 ||v||_2.",
    bound=bounds.mechanism_batch_bound,
    subject=diversified,
    mutants={
        **COMMON,
        "the l2 term left out": lambda p, m, shared: diversified(p._replace(l2=0.0), m, shared),
    },
)
def _(context):
    return _of_batches(context, lambda problem, x: QuantizedGradients())


@claim(
    "mechanism.theorem-7",
    title="What a mechanism does to the batch-size bound",
    statement="With noise that repeats of a row share, B_D <= B <= n for all three mechanisms if B_D <= n, and B > n"
    " if B_D > n.",
    latex=r"B_D\le n\ \Rightarrow\ B_D\le B\le n,\qquad B_D>n\ \Rightarrow\ B>n",
    source=f"{YIN}, Theorem 7; B <= n: derived",
    bibtex="yin2018gradient",
    kind="lower",
    tight_where="B_D = n",
    proof="1/B is a mean of 1/B_D, with the weight 1/r, and 1/n.",
    bound=bounds.mechanism_batch_bound,
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
    checks = []
    mechanisms = (DropConnect(DROP), langevin(problem, x), QuantizedGradients())
    for mechanism in mechanisms:
        found, name = exactly(context.subject(diversified(problem, mechanism, True), x)), type(mechanism).__name__
        checks.append(lower(f"{name}: B, n=12", found, batch_bound(problem, x)))
        checks.append(upper(f"{name}: B, n=12, and n", found, 12.0))
        passes = by_passes(
            context, mechanism, rows_of(problem, x), True, context.samples(16_000, 8_000), context.level(3)
        )
        checks.append(equality(f"{name}: n sum E||g_i||^2/E||sum g_i||^2, n=12", passes, found.estimate))
    # near a minimum gradients cancel, and B_D exceeds n
    opposed = ridge((np.ones((4, 2)), np.array([1.0, -1.0, 2.0, -1.9])), 0.0)
    for mechanism in mechanisms:
        found = exactly(context.subject(diversified(opposed, mechanism, True), np.zeros(2)))
        checks.append(lower(f"{type(mechanism).__name__}: B where B_D > n = 4", found, 4.0))
    return Measurement(*checks)


@claim(
    "mechanism.rounds",
    title="Mechanisms do not save rounds",
    statement="A mechanism that multiplies the second moment by r, and the batch by r, gives rounds that are no better:"
    " the second moment of a round's mean gradient grows by (1 - 1/r) ||grad f||^2/B, and by (1 - 1/(rB)) (r - 1) M^2/n"
    " more if repeats of a row share the noise.",
    latex=r"\mathbb{E}\|\bar g_{rB}\|^2=\mathbb{E}\|\bar g_B\|^2+\frac{(1-1/r)\|\nabla f\|^2}{B}",
    source=f"derived from {YIN}, Lemma 1 and section 4.4, who leave it at two opposing effects",
    bibtex="yin2018gradient",
    kind="equality",
    tight_where="everywhere",
    proof="(1/(rB)) (r M^2) + (1 - 1/(rB)) (mean product of two draws), which is ||grad f||^2 for fresh noise and"
    " ||grad f||^2 + (r - 1) M^2/n for shared.",
    bound=bounds.mechanism_rounds,
    subject=lambda r: r,
    mutants={
        "a batch that grows by r^2": lambda r: r * r,
        "a batch that stays": lambda r: 1.0,
    },
)
def _(context):
    problem, x = plain(context)
    moment, squared = second_moment(problem, x), float(np.sum(gradient_of(problem, x) ** 2))
    batch, r = 4, 3.0
    size, samples, checks = int(batch * context.subject(r)), context.samples(40_000, 20_000), []
    plainly = bounds.minibatch_second_moment(moment, squared, batch)
    for shared in (False, True):
        noisy = diversified(problem, langevin(problem, x, r), shared)
        found, _ = batches(noisy, x, samples, context.stream(int(shared)), size)
        more = (1.0 - 1.0 / r) * squared / batch
        repeats = (1.0 - 1.0 / (r * batch)) * (r - 1.0) * moment / problem.n if shared else 0.0
        name = "shared" if shared else "fresh"
        checks.append(
            equality(
                f"E||mean of 12||^2, {name} noise", mean_interval(found, context.level(2)), plainly + more + repeats
            )
        )
    bound = batch_bound(problem, x)
    for n in (None, problem.n):
        ratio = r * bound / bounds.mechanism_batch_bound(bound, r, n)
        checks.append(identity(f"rounds, n={n}", bounds.mechanism_rounds(bound, r, n), ratio, 1e-10))
    return Measurement(*checks, samples=2 * samples, note=f"noise that triples M^2; B={batch} without it, 12 with it")
