"""Claims about late gradients and lock-free SGD.

Late gradients: how long steps may be, how fast they are, what noise leaves, and what overlap gains.  Lock-free SGD with
memory: what threads computed equals what they sent plus what they stored.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy  # its parts load when they are used
import scipy.sparse as sp

from ... import bounds
from ...compressors import TopK
from ...core.random import derive, integer, key
from ...methods import ErrorFeedback, ParallelSGD, run_lock_free
from ...methods.delay.late import AsyncSGD, DelayedSGD, FixedTime, Pareto, ShiftedExponential, arrivals
from ...methods.schedules import InverseTime
from ...problems import quadratic, ridge
from .. import certain, claim, equality, identity, limit, lower, upper
from ..memory.error_feedback import unchanging
from ..mutants import WrongFeedback

# --- Late gradients --------------------------------------------------------------------------------------------------


def late(delay: int, step: float) -> DelayedSGD:
    """SGD with full messages that are so many rounds late."""
    return DelayedSGD(step=unchanging(step), delay=delay)


LATER = {
    "one round later": lambda delay, step: late(delay + 1, step),
    "one round earlier": lambda delay, step: late(delay - 1, step),
}


@claim("delay.limit", of=bounds.delay_limit, subject=late, mutants=LATER)
def _(context):
    for delay in (1, 2, 5):
        shrinks, grows = 0.0, 2.5  # eta L; no delay allows more than 2
        while grows - shrinks > 0.004:
            middle = 0.5 * (shrinks + grows)
            method, known = context.subject(delay, middle / 4.0), dict(steps=500, x0=np.ones(1), workers=2, seed=0)
            x = context.run64(method, quadratic([4.0], covariance=0.0), **known).last
            shrinks, grows = (middle, grows) if abs(x[0]) < 1.0 else (shrinks, middle)
        edge = bounds.delay_limit(delay)
        yield limit(f"largest gamma L that shrinks |x| in 500 steps, tau={delay}", shrinks, edge, 0.02 * edge)


@claim("delay.factor", of=bounds.delay_factor, subject=late, mutants=LATER, see=("delay.limit",))
def _(context):
    for delay, share in ((1, 0.1), (1, 0.24), (2, 0.1), (1, 0.8), (2, 0.5), (4, 0.3)):
        method, problem = context.subject(delay, share / 2.0), quadratic([2.0], covariance=0.0)
        x = np.ravel(context.iterates(method, problem, steps=120, x0=np.ones(1), seed=0))[-4:] / 1e-30
        real = share < bounds.delay_best_step(delay)  # one root is the largest, or two that are conjugate
        found = x[3] / x[2] if real else math.sqrt((x[1] * x[3] - x[2] ** 2) / (x[0] * x[2] - x[1] ** 2))
        where = f"tau={delay}, s={share:g}"
        yield identity(f"factor of a step after 120, {where}", float(found), bounds.delay_factor(share, delay), 1e-6)


@claim(
    "delay.best",
    of=bounds.delay_best_step,
    subject=bounds.delay_best_step,
    mutants={
        "1/(tau + 1)": lambda delay: 1.0 / (delay + 1.0),
        "half of the stable steps": lambda delay: bounds.delay_limit(delay) / 2.0,
    },
    see=("delay.factor",),
)
def _(context):
    for delay in (1, 2, 4):
        best, edge = context.subject(delay), bounds.delay_limit(delay)
        of = scipy.optimize.minimize_scalar(bounds.delay_factor, args=(delay,), bounds=(0.0, edge), method="bounded")
        yield identity(f"the fastest of all, tau={delay}", best, float(of.x), 1e-3)
        method, problem = late(delay, best), quadratic([1.0], covariance=0.0)
        x = np.ravel(context.iterates(method, problem, steps=160, x0=np.ones(1), seed=0))[-3:]
        found = (x[1] - math.sqrt(abs(x[1] ** 2 - x[0] * x[2]))) / x[0]  # x = (a + b t) r^t, as two roots meet
        yield identity(f"factor of a step after 160, tau={delay}", found, delay / (delay + 1.0), 1e-5)


@claim("delay.variance", of=bounds.delay_variance, subject=late, mutants=LATER, see=("delay.factor",))
def _(context):
    d = context.samples(40_000, 10_000)
    for delay, share in ((1, 0.3), (2, 0.25), (3, 0.2)):
        method, problem = context.subject(delay, share), quadratic(np.ones(d), covariance=1.0)
        x = context.run64(method, problem, f"{delay}", steps=80, x0=np.zeros(d)).last
        law = bounds.delay_variance(share, delay, share)
        yield equality(f"E x^2 after 80 steps, tau={delay}, s={share:g}", x**2, law)


def slope(context, method, kappa: float, mu: float = 1.0) -> float:
    """Logarithm of the factor of a step, in the later half of a run with the curvatures mu and kappa mu."""
    problem, steps = quadratic([mu, kappa * mu], covariance=0.0), int(12 * (kappa + 1))
    x = np.abs(context.iterates(method, problem, steps=steps, x0=np.ones(2), seed=0)).max(axis=1)
    later = np.log(x[len(x) // 2 :])
    return float(np.polyfit(np.arange(len(later)), later, 1)[0])


@claim(
    "overlap.step",
    of=bounds.overlap_step,
    subject=bounds.overlap_step,
    mutants={
        "1/L": lambda mu, lipschitz: 1.0 / lipschitz,
        "2/(L + mu)": lambda mu, lipschitz: 2.0 / (lipschitz + mu),
        "1/(4 L), where nothing oscillates": lambda mu, lipschitz: 0.25 / lipschitz,
    },
    see=("delay.factor",),
)
def _(context):
    for mu, kappa in ((1.0, 2.0), (0.4, 10.0), (3.0, 25.0)):
        found = slope(context, late(1, context.subject(mu, kappa * mu)), kappa, mu)
        yield identity(f"ln of the factor of a step, mu={mu:g}, kappa={kappa:g}", found, -math.log1p(1.0 / kappa), 0.02)


def faster(context, kappa: float, compute: float, exchange: float, step: float = 1.0) -> float:
    """Seconds to an accuracy without overlap, over those with it, by the slopes of runs."""
    alone = slope(context, late(0, 2.0 / (1.0 + kappa)), kappa)
    both = slope(context, late(1, step * bounds.overlap_step(1.0, kappa)), kappa)
    return both / alone * (compute + exchange) / max(compute, exchange)


@claim(
    "overlap.gain",
    of=bounds.overlap_gain,
    subject=faster,
    mutants={
        "no delay": lambda context, kappa, compute, exchange: (compute + exchange) / max(compute, exchange),
        "half of the step": partial(faster, step=0.5),
    },
    see=("overlap.step",),
)
def _(context):
    for kappa, compute, exchange in ((2.0, 2.0, 2.0), (10.0, 0.5, 1.5)):
        found, law = context.subject(context, kappa, compute, exchange), bounds.overlap_gain(compute, exchange, kappa)
        yield identity(f"times faster, kappa={kappa:g}, {compute:g} and {exchange:g} s", found, law, 0.02)


def at_random(step: float, workers: int) -> AsyncSGD:
    """Asynchronous SGD whose next worker is each with the same probability."""
    return AsyncSGD(step=unchanging(step))


CLOCKS = {
    "workers take turns": lambda step, workers: AsyncSGD(step=unchanging(step), times=FixedTime()),
    "one worker is five times as fast": lambda step, workers: AsyncSGD(
        step=unchanging(step), speeds=(5.0,) + (1.0,) * (workers - 1)
    ),
    "nothing is late": lambda step, workers: late(0, step),
}


def ends(context, step: float, noise: float, *, workers: int, rounds: int, d: int = 1):
    """The models after some arrivals, each in a run of its own, on |x|^2/2."""
    known: dict[str, Any] = dict(workers=workers, steps=rounds, x0=np.ones(d), replicas=context.samples(4000, 800))
    return context.run64(context.subject(step, workers), quadratic(np.ones(d), covariance=noise), rounds, **known).last


@claim("async.mean", of=bounds.async_mean, subject=at_random, mutants=CLOCKS)
def _(context):
    for share, workers, rounds in ((0.5, 4, 6), (0.3, 3, 10)):
        x = ends(context, share, 0.0, workers=workers, rounds=rounds)[:, 0]
        law = bounds.async_mean(share, workers, rounds)
        yield equality(f"E x after {rounds} arrivals, N={workers}, s={share:g}", x, law)


@claim("async.moment", of=bounds.async_moment, subject=at_random, mutants=CLOCKS, see=("async.mean",))
def _(context):
    for share, workers, rounds in ((0.5, 4, 6), (0.3, 3, 10)):
        x = ends(context, share, 1.0, workers=workers, rounds=rounds, d=20)
        law = bounds.async_moment(share, workers, rounds, deviation=share)
        yield equality(f"E x^2 after {rounds} arrivals, N={workers}, s={share:g}", (x**2).mean(axis=1), law)


@claim("async.variance", of=bounds.async_variance, subject=at_random, mutants=CLOCKS, see=("async.moment",))
def _(context):
    steps, problem = context.samples(40_000, 12_000), quadratic(np.ones(50), covariance=1.0)
    for share, workers in ((0.5, 4), (0.3, 3)):
        known: dict[str, Any] = dict(workers=workers, steps=steps, x0=np.zeros(50))
        known["record_every"] = 40  # nearly independent
        x = np.array(context.iterates(context.subject(share, workers), problem, f"{share}", **known)[3:])
        law = bounds.async_variance(share, workers, deviation=share)
        yield equality(f"E x^2 after many arrivals, N={workers}, s={share:g}", (x**2).mean(axis=1), law)


def growth(share: float, workers: int) -> float:
    """Logarithm of the factor of E x^2 in an arrival, after many."""
    before, after = (bounds.async_moment(share, workers, rounds) for rounds in (100 * workers, 100 * workers + 100))
    return math.log(after / before) / 100.0


@claim(
    "async.limit",
    of=bounds.async_limit,
    subject=bounds.async_limit,
    mutants={
        "that of workers who take turns": lambda workers: bounds.delay_limit(workers - 1),
        "sqrt(2/N)": lambda workers: math.sqrt(2.0 / workers),
    },
    see=("async.moment",),
)
def _(context):
    for workers in (2, 4, 16):
        edge = scipy.optimize.brentq(growth, 0.5 / workers, 2.0, args=(workers,))
        yield identity(f"where E x^2 neither grows nor shrinks, N={workers}", context.subject(workers), edge, 1e-6)
    known: dict[str, Any] = dict(workers=4, steps=30, x0=np.ones(1), replicas=context.samples(4000, 800))
    for share, side in ((0.7, upper), (1.4, lower)):
        method, problem = at_random(share * context.subject(4), 4), quadratic([1.0], covariance=0.0)
        x = context.run64(method, problem, f"{share}", **known).last
        yield side(f"E x^2 after 30 arrivals at {share:g} of it, N=4", float((x**2).mean()), 1.0)


def late_by(times, workers: int, rounds: int, speeds=None) -> np.ndarray:
    """How many rounds late each arrival is."""
    return arrivals(times, workers=workers, rounds=rounds, seed=1, speeds=speeds).late


@claim(
    "async.lateness",
    of=bounds.async_lateness,
    subject=late_by,
    mutants={
        "the arrival itself is counted": lambda *run: late_by(*run) + 1,
        "one worker more": lambda times, workers, rounds, speeds=None: late_by(times, workers + 1, rounds),
    },
    see=("async.moment",),
)
def _(context):
    law, slow = bounds.async_lateness(5, 400), (1.0, 1.0, 1.0, 1.0, 0.01)
    for name, times, workers, rounds in (
        ("in turn", FixedTime(), 5, 400),
        ("exponential", ShiftedExponential(0.0, 1.0), 5, 400),
        ("Pareto, a=0.9", Pareto(0.9), 5, 400),
        ("in turn", FixedTime(), 8, 100),
    ):
        found = context.subject(times, workers, rounds)
        label = f"mean, N={workers}, T={rounds}, {name}"
        yield upper(label, float(found.mean()), bounds.async_lateness(workers, rounds))
    found = context.subject(FixedTime(), 5, 400, slow)
    yield upper(f"mean, one of 5 a hundred times slower (up to {found.max()} late)", float(found.mean()), law)


# --- Lock-free SGD with memory ---------------------------------------------------------------------------------------

FAR, SHIFT = 1e12, 10.0  # where the minimum is: the gradient of row i is then -FAR * a_i at every x, to 1e-10

LOST = 0.05  # far above the loss with two threads: at most 0.004 in 7000 runs on a busy machine


def _rounded_up(share, digits):
    """The fraction, rounded so coarsely that the order of the threads' steps hardly matters."""
    return math.ceil(10**digits * share - 1e-5) / 10**digits


def _rows(seed, w, steps, n):
    """The rows that thread w draws."""
    stream = np.uint64(derive(np.uint64(derive(key(seed, "sampling"), 0)), w))
    return np.array([integer(stream, s, n) for s in range(steps)])


def _conserved(context, threads, steps):
    """x_T less the memories, x_0 less all steps, and the largest entry of a memory; x_0 = 0 and all steps go upwards.

    Gradients do not depend on x here, so the order of the threads' steps does not matter.
    """
    context.used.add("run")
    feedback, combine = context.subject
    n, d, seed = 40, 600, context.stream()
    A = abs(sp.random_array((n, d), density=0.03, format="csr", rng=np.random.default_rng(0)))
    method = ParallelSGD(TopK(3), step=InverseTime(1.0 / FAR, 1.0, SHIFT), feedback=feedback)
    result = run_lock_free(method, ridge((A, np.full(n, FAR)), l2=0.0), threads=threads, steps=steps, seed=seed)
    weight = np.zeros(n)
    for w in range(threads):
        weight += np.bincount(_rows(seed, w, steps, n), 1.0 / (SHIFT + np.arange(steps)), minlength=n)
    return result.x - combine(result.memory, axis=0), A.T @ weight, float(np.abs(result.memory).max())


@claim(
    "memsgd.lockfree",
    title="Parallel-Mem-SGD with one thread is SGD up to its memory",
    statement="With one thread, x_t minus its memory is the iterate of SGD that uses the same gradients uncompressed.",
    latex=r"x_T - m_T = x_0 - \sum_{t<T}\gamma_t\,\nabla f_{i_t}",
    source="[stich2018sparsified], Algorithm 2 (Parallel-Mem-SGD); ef.identity for one worker",
    kind="identity",
    attained="everywhere",
    proof="x loses what is sent; the memory gains gamma g and loses what is sent.",
    subject=(ErrorFeedback(), np.sum),
    mutants={
        "the step size not folded in before the memory is stored": (WrongFeedback(inside=0.0), np.sum),
        "x moves by half of what was sent": (WrongFeedback(outside=0.5), np.sum),
        "the memory is not counted": (ErrorFeedback(), lambda memory, axis: 0.0),
    },
    see=("ef.identity", "memsgd.lockfree.lost"),
)
def _(context):
    steps = 300
    found, expected, kept = _conserved(context, 1, steps)
    error = float(np.abs(found - expected).max() / expected.max())
    yield identity(f"largest difference / largest entry, top-3 of 600, T={steps}", error, 0.0)
    yield f"the largest entry of the memory is {kept:.2g}, that of x - m {expected.max():.2g}"


@claim(
    "memsgd.lockfree.lost",
    title="Updates that lock-free threads lose",
    statement="With two threads and steps of one sign, no coordinate of x_T minus the sum of the memories exceeds the"
    " sum of its steps. In total less than a twentieth of that sum is missing: these are the updates that were lost.",
    latex=r"\Big|x_0 - x_T + \sum_w m_T^w\Big| \le \Big|\sum_w\sum_{t<T}\gamma_t\,\nabla f_{i_t^w}\Big|"
    r"\quad \text{where all steps have one sign}",
    source="derived for [stich2018sparsified], Algorithm 2 (Parallel-Mem-SGD)",
    kind="upper",
    attained="where no two threads move the same coordinate at the same time",
    proof="A store writes what was read plus one step. If all steps go upwards, the last store of a coordinate is at"
    " most the sum of all of its steps; each memory is private and loses nothing.  That few updates are lost is"
    " measured: for a loss, two threads must move one coordinate within the same fraction of a microsecond.",
    subject=(ErrorFeedback(), np.sum),
    mutants={
        "x moves by twice what was sent": (WrongFeedback(outside=2.0), np.sum),
        "x moves by half of what was sent": (WrongFeedback(outside=0.5), np.sum),
        "the memories are counted twice": (ErrorFeedback(), lambda memory, axis: 2.0 * memory.sum(axis)),
    },
    repeatable=False,
    see=("memsgd.lockfree",),
)
def _(context):
    threads, steps = 2, context.samples(4000, 1000) // context.effort
    found, expected, _ = _conserved(context, threads, steps)
    touched = expected > 0
    worst = float((found[touched] / expected[touched]).max())
    share = 1.0 - float(found.sum() / expected.sum())
    largest = float(expected.max() / expected.sum())
    lost = "less than 1e-4" if share < 1e-4 else f"{share:.0e}"
    label = f"{threads} threads, top-3 of 600, T={steps}"
    yield upper(f"largest share of a coordinate's steps that arrived, {label}", certain(_rounded_up(worst, 4)), 1.0)
    yield upper(f"share of all steps that was lost, {label}", certain(_rounded_up(share, 2)), LOST)
    yield (
        f"The numbers are rounded up, since the run is not repeatable. This run lost {lost} of all steps. A thread that"
        " is interrupted during an update undoes what the others added to that coordinate, at most"
        f" {largest:.2g} of all steps."
    )
