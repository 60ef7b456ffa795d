"""Claims about large batches: where they certainly lose, and problems on which everything is exact.

As in the source, ``step`` is gamma of a *sum* of gradients; the package's own method averages, with the step B gamma.
"""

from __future__ import annotations

import math

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import Interval, mean_interval
from ...methods.schedules import Constant
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..batch_sums import independent
from ..checks import Measurement, equality, identity, lower, upper
from .batch_rates import YIN, averaged

MU, D = 1.0, 10


def serial_step(batch, step):
    """The package's method for sums of ``batch`` gradients with the step ``step`` each."""
    return ParallelSGD(Identity(), step=Constant(batch * step), batch=batch)


def not_scaled(batch, step):
    """The step of one gradient for the mean of a batch."""
    return ParallelSGD(Identity(), step=Constant(step), batch=batch)


def one_for_all(batch, step):
    """One gradient, counted B times."""
    return ParallelSGD(Identity(), step=Constant(batch * step), batch=1)


def shorter(batch, step):
    """Steps a tenth smaller."""
    return ParallelSGD(Identity(), step=Constant(0.9 * batch * step), batch=batch)


def norms2(method, *, start, rounds, replicas, seed, d=4):
    """||w_K||^2 of the package's method on (MU/2)||w||^2, noise of variance MU^2 as around points of the sphere."""
    problem = quadratic(np.full(d, MU), covariance=MU**2 / d)
    result = run(
        method,
        problem,
        workers=1,
        steps=rounds,
        replicas=replicas,
        seed=seed,
        record_every=rounds,
        x0=np.full(d, math.sqrt(start / d)),
        wire_dtype=np.float64,
    )
    return 2.0 / MU * result.funs


@claim(
    "batch.quadratic",
    title="Every batch on the quadratic, exactly",
    statement="On (mu/2)||w||^2 with gradients of M^2 = mu^2 (1 + ||w||^2), r_{k+1} = (1 - gamma mu B)^2 r_k + B"
    " gamma^2 mu^2 for r = E||w||^2; it settles at gamma mu/(2 - gamma mu B).",
    latex=r"r_{k+1}=(1-\gamma\mu B)^2r_k+B\gamma^2\mu^2\;\to\;\frac{\gamma\mu}{2-\gamma\mu B}",
    source=f"derived, for the construction of {YIN}, Theorem 6",
    bibtex="yin2018gradient",
    kind="equality",
    tight_where="everywhere",
    proof="A sum of B gradients is B mu w plus noise of variance B mu^2.",
    bound=bounds.sphere_quadratic_distance,
    subject=serial_step,
    mutants={
        "step gamma for the mean of the batch": not_scaled,
        "one gradient counted B times": one_for_all,
        "steps a tenth smaller": shorter,
    },
)
def _(context):
    step, replicas, checks = 0.02, context.samples(4000, 1000), []
    rounds = {80: 8, 49: 3, 25: 5, 10: 10, 1: 40}  # for the first, the start is forgotten
    for batch, K in rounds.items():
        found = norms2(
            context.subject(batch, step), start=0.01, rounds=K, replicas=replicas, seed=context.stream(batch)
        )
        predicted = bounds.sphere_quadratic_distance(K, batch=batch, step=step, mu=MU, distance=0.01)
        checks.append(
            equality(f"E||w_K||^2, gamma mu=0.02, B={batch}, K={K}", mean_interval(found, context.level(6)), predicted)
        )
        if batch == 80:
            floor = bounds.sphere_quadratic_floor(batch, step, MU)
            checks.append(equality(f"the same, settled, B={batch}", checks[-1].interval, floor, tolerance=1e-3))
    return Measurement(
        *checks, samples=replicas * len(rounds), note="the package's method, which averages: step B gamma"
    )


# --- the construction of Theorem 6 ------------------------------------------------------------------------------------


def shrunk(rng, batch, rows, replicas):
    """Steps too short by the factor 0.6."""
    return 0.6 * independent(rng, batch, rows, replicas)


def on_the_sphere(draw, *, batch, step, start, rounds, replicas, rng):
    """||w_k||^2 for k = 0, ..., K, a row for each; the points are +-e_j, and w_0 is in their hull: sum |w_j| <= 1."""
    w = np.tile(start, (replicas, 1))
    found = [np.sum(w**2, axis=1)]
    for _ in range(rounds):
        counts = draw(rng, batch, 2 * D, replicas)
        drawn = counts.sum(axis=1, keepdims=True)
        w = w - step * MU * (drawn * w - (counts[:, :D] - counts[:, D:]))
        found.append(np.sum(w**2, axis=1))
    return np.array(found)


@claim(
    "batch.worst-case",
    title="Larger batches lose for certain, for delta below 1/3",
    statement="For f_i = (mu/2)||w - x_i||^2, ||x_i|| = 1, sum x_i = 0, T = c/(gamma mu) gradients in batches of at"
    " least delta E B_D + 1 and at most 1/(2 gamma mu) leave E||w_T - w*||^2 >= ((1 - exp(-2c))/4) (1 + delta) gamma"
    " M^2/mu.",
    latex=r"\mathbb{E}\|w_T-w^*\|^2\ge\frac{1-e^{-2c}}4\,(1+\delta)\frac{\gamma M^2}\mu",
    source=f"{YIN}, Theorem 6; the constant from its proof",
    bibtex="yin2018gradient",
    kind="lower",
    tight_where="for small gamma mu and large c, as far as ||w|| does not vary; delta is below 1/3 here once"
    " the start is forgotten, and batch.kink has a lower bound for every delta",
    proof="r_{k+1} >= (1 - 2 gamma mu B) r_k + (1 + delta) B gamma^2 mu^2, since E B_D >= 1 + 1/r; M^2 = 2 mu^2.",
    bound=bounds.minibatch_worst_case,
    subject=independent,
    mutants={"steps of 0.6 of that size": shrunk, "gradients averaged, not summed": averaged},
    see=("batch.worst-case.delta", "batch.kink"),
)
def _(context):
    step, passes, replicas, checks = 0.01, 1.5, context.samples(8000, 2000), []
    for batch in (50, 20, 5):
        rounds = math.ceil(passes / (step * MU) / batch)
        start = np.full(D, math.sqrt(bounds.sphere_quadratic_floor(batch, step, MU) / D))  # its delta is there at once
        found = on_the_sphere(
            context.subject,
            batch=batch,
            step=step,
            start=start,
            rounds=rounds,
            replicas=replicas,
            rng=np.random.default_rng(context.stream(batch)),
        )
        delta = min((batch - 1) / np.mean(1.0 + 1.0 / r) for r in found[:-1])
        bound = bounds.minibatch_worst_case(
            delta, passes=rounds * batch * step * MU, step=step, mu=MU, second_moment=2.0 * MU**2
        )
        interval = mean_interval(found[-1], context.level(3))
        checks.append(lower(f"E||w_T||^2, gamma mu=0.01, B={batch}, delta={delta:.2g}", interval, bound))
    return Measurement(*checks, samples=3 * replicas, note="delta by the measured means of B_D, the least over rounds")


def twice_the_batch(batch):
    """A batch beyond 1/(2 gamma mu)."""
    return 2 * batch, 12


def too_early(batch):
    """The start is counted."""
    return batch, 0


@claim(
    "batch.worst-case.delta",
    title="How much delta the worst case has",
    statement="In the construction of Theorem 6 the largest delta with B >= delta E B_D + 1 is at most (1 - 2 gamma"
    " mu)/(3 + 2 gamma mu) < 1/3 once the start is forgotten, however large the batch, up to 1/(2 gamma mu).",
    latex=r"\delta\le\frac{B-1}{1+1/r}\le\frac{1-2\gamma\mu}{3+2\gamma\mu}<\frac13",
    source=f"derived; what the proof of {YIN}, Theorem 6, leaves open",
    bibtex="yin2018gradient",
    kind="upper",
    proof="B_D = 1 + 1/||w||^2, E(1/||w||^2) >= 1/r, and r = gamma mu/(2 - gamma mu B).",
    bound=bounds.sphere_quadratic_delta,
    subject=lambda batch: (batch, 12),
    mutants={"batches of 1/(gamma mu)": twice_the_batch, "counted from the start on": too_early},
)
def _(context):
    replicas, checks, start = context.samples(8000, 2000), [], np.eye(D)[0]  # a vertex of the hull: ||w_0|| = 1
    for step in (0.01, 0.02):
        allowed = round(0.5 / (step * MU))
        batch, first = context.subject(allowed)
        found = on_the_sphere(
            independent,
            batch=batch,
            step=step,
            start=start,
            rounds=16,
            replicas=replicas,
            rng=np.random.default_rng(context.stream(allowed)),
        )
        # each round's mean of B_D; the largest delta of them
        intervals = [mean_interval(1.0 + 1.0 / r, context.level(2 * (17 - first))) for r in found[max(1, first) :]]
        if first == 0:
            intervals.append(Interval(2.0, 2.0, 2.0, samples=replicas))
        least = min(intervals, key=lambda interval: interval.estimate)
        delta = Interval(
            (batch - 1) / least.estimate, (batch - 1) / least.high, (batch - 1) / least.low, least.level, replicas
        )
        checks.append(
            upper(
                f"delta, gamma mu={step * MU:g}, B={allowed}",
                delta,
                bounds.sphere_quadratic_delta(0.5 / (step * MU), step, MU),
            )
        )
    return Measurement(*checks, samples=2 * replicas)


# --- for every delta --------------------------------------------------------------------------------------------------


@claim(
    "batch.kink",
    title="Identical kinks: what a batch loses, for every delta",
    statement="If all f_i = G|w| + (mu/2) w^2, then B_D = 1 and delta = B - 1, and with B = 1/(2 gamma mu) every start"
    " ends in the cycle w^2 = (G/(3 mu))^2 = (1/8)(1 + delta) gamma M^2/mu, a quarter of what Theorem 5 allows.",
    latex=r"w_k^2\to\Big(\frac{\gamma BG}{2-\gamma\mu B}\Big)^2=\Big(\frac G{3\mu}\Big)^2=\frac18\,"
    r"(1+\delta)\frac{\gamma M^2}\mu",
    source=f"derived; extends {YIN}, Theorem 6, to every delta",
    bibtex="yin2018gradient",
    kind="identity",
    tight_where="everywhere",
    proof="From |w| = a a step leads to a (1 - gamma mu B) - gamma B G = -a.",
    bound=bounds.kink_cycle,
    subject=lambda batch, step: (batch, step),
    mutants={
        "gradients averaged, not summed": lambda batch, step: (1, step),
        "one gradient of the batch is lost": lambda batch, step: (batch - 1, step),
    },
)
def _(context):
    slope, mu, checks = 1.5, 0.5, []
    for batch, step in ((25, 0.04), (100, 0.01), (1000, 0.001)):
        used, own = context.subject(batch, step)
        w, share = 2.0, batch * step * mu
        for _ in range(200):
            w -= own * used * (slope * math.copysign(1.0, w) + mu * w)
        second = (slope + mu * abs(w)) ** 2
        limit = 0.5 * (1.0 + bounds.batch_delta(batch, 1.0)) * step * second / mu  # Theorem 5 for T to infinity
        checks.append(identity(f"w^2, delta={batch - 1}", w**2, bounds.kink_cycle(batch, step, mu, slope)))
        checks.append(
            identity(f"the same over Theorem 5's, delta={batch - 1}, gamma mu B={share:g}", w**2 / limit, 0.25)
        )
    return Measurement(*checks)


@claim(
    "batch.divergence",
    title="Too large a batch leads away",
    statement="If B > 2/(gamma mu), one step on a mu-strongly convex function has E||w+ - w*|| >= (gamma mu B - 1)"
    "||w - w*||, more than before; below, the quadratic with this mu converges to within its noise.",
    latex=r"B>\frac2{\gamma\mu}\;\Rightarrow\;\mathbb{E}\|w_+-w^*\|\ge(\gamma\mu B-1)\|w-w^*\|>\|w-w^*\|",
    source=f"{YIN}, supplement, Proposition 5; the factor derived",
    bibtex="yin2018gradient",
    kind="lower",
    tight_where="(mu/2)||w||^2, far from its minimum, where noise does not count",
    proof="E||w+|| >= ||E w+|| >= gamma B ||grad F|| - ||w||, and ||grad F|| >= mu ||w||.",
    bound=bounds.divergent_batch,
    subject=serial_step,
    mutants={"step gamma for the mean of the batch": not_scaled, "steps a tenth smaller": shorter},
)
def _(context):
    step, far, rounds, replicas, checks = 0.1, 1.0, 6, context.samples(4000, 1500), []
    limit = bounds.divergent_batch(step, MU)
    for batch in (round(1.1 * limit), round(1.05 * limit)):
        factor = step * MU * batch - 1.0
        for K in (1, rounds):
            found = norms2(
                context.subject(batch, step), start=far, rounds=K, replicas=replicas, seed=context.stream(batch, K)
            )
            checks.append(
                lower(
                    f"E||w_K||/||w_0||, K={K}, B={batch}, 2/(gamma mu)={limit:g}",
                    mean_interval(np.sqrt(found / far), context.level(5)),
                    factor**K,
                )
            )
    batch = round(0.9 * limit)
    found = norms2(
        context.subject(batch, step), start=far, rounds=rounds, replicas=replicas, seed=context.stream(batch)
    )
    checks.append(upper(f"the same, K={rounds}, B={batch}", mean_interval(np.sqrt(found / far), context.level(5)), 1.0))
    return Measurement(*checks, samples=5 * replicas)
