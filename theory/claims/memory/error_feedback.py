"""Claims about error feedback: its identity, the size of the memory, and rates on smooth functions.

The rates come with their lemmas, the sums of these, the theorem as it is quoted, and limits.
"""

from __future__ import annotations

import itertools
import math
import warnings
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity, RandK, TopK
from ...core.random import key
from ...measure import loglog_slope
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD, UnstableMemoryWarning
from ...methods.schedules import Constant, InverseTime, Polynomial, step_size
from ...problems import function, lipschitz, quadratic, saturating_quadratic, value
from .. import claim, equality, identity, upper
from ..factories import loglog_rate
from ..mutants import Forgetful, Scaling, WrongFeedback
from ..runs import coin, over, squared_gradients, stationary, under

# --- Error feedback --------------------------------------------------------------------------------------------------


@contextmanager
def beyond_the_frontier():
    """Suppress warnings: claims and their mutants may cross a memory's frontier on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableMemoryWarning)
        yield


def beside_sgd(context, compressor, feedback, wire_dtype=np.float32):
    """A run of 60 steps with 3 workers on a quadratic of 20 dimensions, and SGD's iterate with the same gradients."""
    d, schedule = 20, InverseTime(c=4.0, mu=1.0, shift=20.0)
    curvature, start, options = np.linspace(0.5, 2.0, d), context.normal(d), dict(workers=3, steps=60)
    method = ParallelSGD(compressor, step=schedule, feedback=feedback, average=Polynomial(20.0, 2.0))
    with beyond_the_frontier():
        noisy, how = quadratic(curvature, covariance=0.3), dict(x0=start, wire_dtype=wire_dtype, of=lambda now: now)
        results = context.iterates(method, noisy, **options, **how)
    # The same noise alone: without curvature, the gradients of the same seed are pure noise.
    flat = quadratic(np.zeros(d), covariance=0.3)
    noise = context.run64(ParallelSGD(Identity(), step=schedule), flat, **options).last
    points = np.array([result.last for result in results[:-1]])  # x_0, ..., x_{T-1}
    sizes = np.array([step_size(schedule, t) for t in range(60)])
    return results[-1], start + noise - curvature * (sizes @ points)


@claim(
    "ef.identity",
    title="Error feedback is SGD up to its memory",
    statement="x_t minus the workers' mean memory is the iterate of SGD that uses the same gradients uncompressed, for"
    " every compressor.",
    latex=r"x_t - \tfrac1N\sum_w e_t^w = x_0 - \sum_{s<t}\gamma_s\tfrac1N\sum_w g_s^w",
    source="[karimireddy2019error], proof of Theorem II; [stich2018sparsified], section 3",
    kind="identity",
    attained="everywhere",
    proof="x loses mean Q(p); e = p - Q(p) with p = gamma g + e. So x - mean e loses mean gamma g.",
    subject=(TopK(3), ErrorFeedback()),
    mutants={
        "a memory that forgets, in half of the steps, to subtract what was sent": (Forgetful(TopK(3)), ErrorFeedback()),
        "the step size not folded in before the memory is stored": (TopK(3), WrongFeedback(inside=0.0)),
        "x moves by half of what was sent": (TopK(3), WrongFeedback(outside=0.5)),
    },
)
def _(context):
    result, virtual = beside_sgd(context, *context.subject)
    found = result.last - result.memory.mean(axis=0)
    error = float(np.abs(found - virtual).max() / np.abs(virtual).max())
    yield identity("largest difference / largest entry, d=20, N=3, T=60", error, 0.0)
    yield f"messages are in float32; the largest entry of the memories is {np.abs(result.memory).max():.2g}"


def constant_gradient(d: int):
    """A quadratic whose minimum is so far away that its gradient is the all-ones vector everywhere, to 1e-10."""
    far = 1e12
    return quadratic(np.full(d, 1.0 / far), covariance=0.0, optimum=-far)


def memories_after(context, compressor, step, problem, workers, steps) -> np.ndarray:
    """Squared norms of the workers' memories after ``steps`` steps."""
    method = ParallelSGD(compressor, step=step, feedback=ErrorFeedback())
    return np.sum(context.run64(method, problem, workers=workers, steps=steps).memory ** 2, axis=1)


def unchanging(eta):
    """The constant step size gamma, to 1e-10, as a schedule of the type in Mem-SGD's claims: compiled once."""
    return InverseTime(c=eta, mu=1e-15, shift=1e15)


@claim(
    "ef.memory",
    of=bounds.memory_error,
    subject=Scaling,
    mutants={
        "a compressor that contracts half as much": lambda d: Scaling(d / 2),
        "a compressor that contracts twice as much": lambda d: Scaling(2 * d),
    },
)
def _(context):
    eta, d, falling = 0.1, 10, InverseTime(0.1, 1.0, 5.0)
    for delta, steps in ((0.05, 1000), (0.05, 20), (0.3, 200)):
        found = memories_after(context, context.subject(delta), unchanging(eta), constant_gradient(d), 1, steps)[0]
        where = f"constant gradient, delta={delta}, t={steps}"
        at = bounds.memory_error(delta, eta, float(d), steps=None if steps == 1000 else steps)
        yield identity(f"||e||^2, {where}", found, at, 1e-8)
        found = memories_after(context, context.subject(delta), falling, constant_gradient(d), 1, steps)[0]
        at = bounds.memory_error_schedule(delta, [step_size(falling, t) for t in range(steps)], float(d))[-1]
        yield identity(f"the same, with falling steps, {where}", found, at, 1e-8)
    noise, workers = quadratic(np.full(d, 1e-12), covariance=1.0), context.samples(1600, 400)
    found = memories_after(context, context.subject(0.3), unchanging(eta), noise, workers, 50)
    yield upper("||e||^2, gradients of mean zero, delta=0.3, t=50", found, bounds.memory_error(0.3, eta, float(d)))


@claim(
    "ef.memory.paper",
    of=partial(bounds.memory_error, form="paper"),
    subject=Scaling,
    mutants={"a compressor that contracts half as much": lambda d: Scaling(d / 2)},
    see=("ef.memory",),
)
def _(context):
    for delta in (0.01, 0.05, 0.3):
        steps = int(40 / delta)
        found = memories_after(context, context.subject(delta), unchanging(0.1), constant_gradient(10), 1, steps)[0]
        bound = bounds.memory_error(delta, 0.1, 10.0, form="paper")
        yield upper(f"||e||^2, constant gradient, delta={delta}, t={steps}", found, bound)


# --- The rates of error feedback on smooth functions -----------------------------------------------------------------


def mean_squared_gradient(context, method, problem, start, *, steps, replicas, workers=1, wire_dtype=np.float32):
    """The mean over the steps of ||grad f(x_t)||^2, t = 0, ..., T - 1, one number for each replica."""
    options = dict(workers=workers, steps=steps, x0=start, record_every=1, wire_dtype=wire_dtype)
    results = [context.run(method, problem, r, **options) for r in range(replicas)]
    return np.array([np.mean(result.history["gradient_norm"][:-1] ** 2) for result in results])


# --- smooth functions: two lemmas -------------------------------------------------------------------------------------


def feedback_step(q, L, step, x, e, variance):
    """On L x^2/2 with C(v) = (1 - q) v: E e_+^2, and E f(x_+ - e_+) - f(x - e)."""
    y, p = x - e, e + step * L * x
    return q**2 * (p**2 + step**2 * variance), L / 2.0 * ((y - step * L * x) ** 2 + step**2 * variance - y**2)


@claim(
    "ef.descent",
    of=bounds.ef_sgd_descent,
    subject=feedback_step,
    mutants={
        "the memory added, not subtracted": lambda q, L, step, x, e, s2: feedback_step(q, L, step, x, -e, s2),
        "half of the step": lambda q, L, step, x, e, s2: feedback_step(q, L, step / 2.0, x, e, s2),
    },
)
def _(context):
    for rho, L, step, variance in (
        (1.0, 2.0, 0.1, 0.0),
        (0.3, 2.0, 0.3, 0.0),
        (0.3, 1.5, 0.5, 3.0),
        (1.5, 1.0, 0.1, 0.0),
    ):
        found = context.subject(0.5, L, step, 1.0, rho, variance)[1]
        known = dict(lipschitz=L, step=step, gradient=L**2, second_moment=L**2 + variance, memory=rho**2, rho=rho)
        where = f"L x^2/2, e=rho x, rho={rho:g}, gamma L={step * L:g}, sigma^2={variance:g}"
        yield identity(f"E f(y_+) - f(y), {where}", found, bounds.ef_sgd_descent(**known))


@claim(
    "ef.memory.step",
    of=bounds.ef_sgd_memory_step,
    subject=feedback_step,
    mutants={
        "a compressor that contracts half as much": lambda q, *rest: feedback_step((0.5 + q * q / 2.0) ** 0.5, *rest),
        "a step twice as long": lambda q, L, step, *rest: feedback_step(q, L, 2.0 * step, *rest),
    },
)
def _(context):
    step = 0.1
    for delta, x, variance in ((0.5, 0.0, 2.0), (0.2, 0.0, 0.7), (0.01, 1.5, 0.0), (0.2, 3.0, 0.0)):
        e = 2.0 * (1.0 - delta) / delta * step * x
        found = context.subject(math.sqrt(1.0 - delta), 1.0, step, x, e, variance)[0]
        bound = bounds.ef_sgd_memory_step(delta, step=step, memory=e**2, gradient=x**2, variance=variance)
        yield upper(f"E e_+^2, x^2/2, delta={delta:g}, x={x:g}, e={e:.3g}, sigma^2={variance:g}", found, bound)


# --- their sums -------------------------------------------------------------------------------------------------------


def of_top_k(k, gamma, feedback=ErrorFeedback()):  # noqa: B008
    """SGD with top-k and a memory."""
    return ParallelSGD(TopK(k), step=Constant(gamma), feedback=feedback)


HARDLY_MOVING = {
    "what was sent is not applied to x": partial(of_top_k, feedback=WrongFeedback(outside=0.0)),
    "steps a hundred times too small": lambda k, gamma: of_top_k(k, gamma / 100.0),
}


def composed(steps, *, delta, lipschitz, step, second_moment, gap, rho=1.0):
    """Theorem II from its lemmas: the bound on the memory in ef.descent, summed over the steps."""
    known = dict(lipschitz=lipschitz, step=step, second_moment=second_moment, rho=rho)
    memory = bounds.memory_error(delta, step, second_moment, form="paper")
    rises, falls = (float(bounds.ef_sgd_descent(**known, gradient=g, memory=memory)) for g in (0.0, 1.0))
    return (gap / steps + rises) / (rises - falls)


@claim(
    "ef.nonconvex",
    lemmas=("ef.identity", "ef.memory.paper", "ef.descent"),
    of=bounds.ef_sgd,
    subject=of_top_k,
    mutants=HARDLY_MOVING,
    see=("ef.descent", "ef.memory.paper", "ef.nonconvex.sharp", "ef.identity"),
)
def _(context):
    d, k, gamma, steps, replicas = 10, 5, 0.05, 300, context.samples(96, 24)
    problem, start = saturating_quadratic(np.ones(d), covariance=0.02), np.full(d, 1.0 / math.sqrt(3.0))
    found = mean_squared_gradient(context, context.subject(k, gamma), problem, start, steps=steps, replicas=replicas)
    known: dict[str, Any] = dict(delta=bounds.top_k_contraction(d, k), lipschitz=lipschitz(problem), step=gamma)
    known |= dict(second_moment=problem.steepest + problem.noise, gap=value(problem, start))
    where, trivial = f"top-{k} of {d}, T={steps}", problem.steepest
    yield upper(f"mean of E||grad f(x_t)||^2, {where}", found, bounds.ef_sgd(steps, **known), trivial=trivial)
    best = bounds.ef_sgd(steps, **known, rho=None, memory="sharp")
    yield upper("the same, best rho, sharp memory", found, best, trivial=trivial)
    for T, delta, rho in ((300, 0.5, 1.0), (10, 0.1, 0.5), (10_000, 0.9, 1.5)):
        at = known | dict(delta=delta, rho=rho)
        yield identity(
            f"its lemmas together, delta={delta:g}, rho={rho:g}, T={T}", composed(T, **at), bounds.ef_sgd(T, **at)
        )
    yield f"a quadratic that saturates: ||grad f||^2 <= {trivial:.4g} everywhere, with equality at the start"


@claim(
    "ef.nonconvex.sharp",
    of=bounds.ef_sgd,
    subject=lambda gamma: (Constant(gamma), ErrorFeedback(), 1),
    mutants={
        "a step 10 % too large": lambda gamma: (Constant(1.1 * gamma), ErrorFeedback(), 1),
        "x moves by 0.9 of what was sent": lambda gamma: (Constant(gamma), WrongFeedback(outside=0.9), 1),
        "noise averaged over two workers, not one": lambda gamma: (Constant(gamma), ErrorFeedback(), 2),
    },
)
def _(context):
    d, curvature, gamma = 100, 2.0, 0.1
    step, feedback, workers = context.subject(gamma)
    problem, method = quadratic(np.full(d, curvature), covariance=1.0 / d), ParallelSGD(TopK(d), step, feedback)
    options = dict(workers=workers, steps=60, replicas=context.samples(1000, 250), record_every=60)
    found = 2.0 * curvature * context.run(method, problem, **options).funs  # ||grad f||^2 = 2 L f
    sharp: dict[str, Any] = dict(rho=None, memory="sharp")
    second = 2.0 / (2.0 - gamma * curvature)  # from the stationary law
    limit = bounds.ef_sgd(1, delta=1.0, lipschitz=curvature, step=gamma, second_moment=second, gap=0.0, **sharp)
    yield equality(f"stationary E||grad f||^2, delta=1, gamma L={gamma * curvature:g}", found, limit, 1e-6)
    first = bounds.ef_sgd(1, delta=1.0, lipschitz=1.0, step=1.0, second_moment=1.0, gap=0.5, **sharp)
    yield identity("||grad f(x_0)||^2, x^2/2 from 1, delta=1, gamma L=1, T=1", 1.0, first)
    for sent in (over, under, coin):
        worst: tuple[Any, ...] = (0.0,)
        for delta, share in itertools.product((0.02, 0.1, 0.3, 0.6, 0.9, 0.99, 0.9975), (0.02, 0.1, 0.3, 0.6, 0.9)):
            q = math.sqrt(1.0 - delta)
            size = share * 2.0 * (1.0 - q) / (1.0 + q)  # gamma L: below twice this quotient, all three are stable
            squared = stationary(sent(delta), size)
            at: dict[str, Any] = dict(delta=delta, lipschitz=1.0, step=size, second_moment=squared + 1.0, gap=0.0)
            bound = bounds.ef_sgd(1, **at, **sharp)
            worst = max(
                worst, (squared / bound, squared, bound, f"delta={delta:g}, gamma L={size:.2g}"), key=lambda w: w[0]
            )
        _, squared, bound, where = worst
        yield upper(f"stationary law, {str(sent.__doc__)[:-1]}, nearest to the bound: {where}", squared, bound)


def composed_from_variance(steps, *, delta, lipschitz, step, variance, gap, workers):
    """The theorem from its lemmas: ef.memory.step in its limit, in ef.descent; both are linear in E||grad f||^2."""

    def change(gradient, variance, shared):
        grown, kept = (
            float(bounds.ef_sgd_memory_step(delta, step=step, memory=m, gradient=g, variance=v))
            for m, g, v in ((0.0, gradient, variance), (1.0, 0.0, 0.0))
        )
        known = dict(lipschitz=lipschitz, step=step, gradient=gradient, second_moment=gradient + shared)
        return float(bounds.ef_sgd_descent(**known, memory=grown / (1.0 - kept)))

    return (gap / steps + change(0.0, variance, variance / workers)) / -change(1.0, 0.0, 0.0)


@claim(
    "ef.nonconvex.variance",
    lemmas=("ef.identity", "ef.memory.step", "ef.descent"),
    of=bounds.ef_sgd_variance,
    subject=of_top_k,
    mutants=HARDLY_MOVING,
    see=("ef.descent", "ef.memory.step", "ef.identity", "ef.workers"),
)
def _(context):
    d, k, workers, steps = 10, 5, 4, 300
    problem, start = quadratic(np.linspace(0.2, 1.0, d), covariance=0.05), np.full(d, 2.0)
    delta, L = bounds.top_k_contraction(d, k), lipschitz(problem)
    known = dict(lipschitz=L, variance=problem.noise, gap=value(problem, start))
    gamma = delta / (4.0 * L * math.sqrt(1.0 - delta))
    options = dict(steps=steps, replicas=context.samples(96, 24), workers=workers)
    found = mean_squared_gradient(context, context.subject(k, gamma), problem, start, **options)
    bound = bounds.ef_sgd_variance(steps, delta=delta, step=gamma, workers=workers, **known)
    first = float(np.sum((problem.diagonal * start) ** 2))
    yield upper(f"mean of E||grad f(x_t)||^2, top-{k} of {d}, N={workers}, T={steps}", found, bound, trivial=first)
    golden = (math.sqrt(5.0) - 1.0) / 2.0  # delta = sqrt(1 - delta): both conditions on gamma are active
    for T, N in ((300, 4), (10, 1), (100_000, 1)):
        at: dict[str, Any] = dict(delta=golden, step=0.25 / L, workers=N) | known
        yield identity(
            f"its lemmas together, N={N}, T={T}", composed_from_variance(T, **at), bounds.ef_sgd_variance(T, **at)
        )


# --- as it is quoted: a witness within all assumptions ----------------------------------------------------------------


def _huber(x) -> float:
    """x^2/2 for |x| <= 1, continued linearly, summed over the coordinates."""
    size = np.abs(x)
    return float(np.sum(np.where(size < 1.0, size**2 / 2.0, size - 0.5)))


def _bounded_gradient(x, rng) -> np.ndarray:
    """Its gradient with noise +-sqrt(1 - x^2) where |x| < 1: each coordinate has the second moment 1 at every x."""
    noise = np.sqrt(np.maximum(0.0, 1.0 - x**2))
    return np.clip(x, -1.0, 1.0) + rng.choice((-1.0, 1.0), x.size) * noise


@claim(
    "ef.nonconvex.quoted",
    of=bounds.ef_sgd,
    subject=Scaling,
    refuted="quoted",
    see=("ef.nonconvex", "ef.nonconvex.sharp"),
)
def _(context):
    missing, size, d, steps = 0.05, 0.9, 10_000, 100
    delta, found = 1.0 - missing**2, []
    quoted: dict[str, Any] = dict(delta=delta, lipschitz=1.0, step=size, second_moment=1.0, reading="quoted")
    method = ParallelSGD(context.subject(delta, over=True), step=unchanging(size), feedback=ErrorFeedback())
    for r in range(context.samples(96, 24)):
        options: dict[str, Any] = dict(steps=steps, x0=np.zeros(d), seed=int(key(context.stream(), r)))
        path = context.iterates(method, function(_huber, _bounded_gradient, d), **options)
        found.append(np.mean(np.clip(path[:-1], -1.0, 1.0) ** 2))
    law = partial(squared_gradients, over(delta), size, bounded=True)
    start = float(law(0.0, 3000)[-1])  # the stationary law
    from_start = bounds.ef_sgd(3000, gap=start / 2.0, **quoted)
    where = f"C(v) = {1 + missing:g} v, delta={delta:g}, gamma L={size:g}"
    bound = bounds.ef_sgd(steps, gap=0.0, **quoted)
    yield upper(f"mean of E||grad f(x_t)||^2, {where}, T={steps}", found, bound)
    yield upper("its exact value", law(0.0, steps).mean(), bound)
    yield upper("its exact value, T=3000", law(0.0, 3000).mean(), bounds.ef_sgd(3000, gap=0.0, **quoted))
    label = f"least of E||grad f(x_t)||^2, exactly, x_0^2={start:.4f}, T=3000"
    yield upper(label, law(start, 3000).min(), from_start)
    yield (
        "f is x^2/2 for |x| <= 1 and linear beyond; the noise is +-sqrt(1 - x^2), so that E||g||^2 = 1 at every x. The"
        " mean is from x*. The 10,000 coordinates are independent, and both sides are divided by their number. The"
        f" stationary E||grad f||^2 is {start:.4f}."
    )


# --- what is left of the compressor after many steps ------------------------------------------------------------------


@claim(
    "ef.free",
    of=bounds.mem_sgd,
    subject=(TopK, ErrorFeedback(), np.float32),
    mutants={  # in float64 messages, the type that another claim has compiled
        "random-k times d/k, no memory": (lambda k: RandK(k, unbiased=True), NoFeedback(), np.float64),
        "random-k, no memory": (RandK, NoFeedback(), np.float64),
    },
    see=("memsgd.theorem", "memsgd.slope.rcv1"),
)
def _(context):
    d, steps, replicas, sizes = 10, 1200, context.samples(400, 100), (1, 10)
    compressor, feedback, wire = context.subject
    problem, gaps = quadratic(np.linspace(1.0, 2.0, d), covariance=1.0 / d), []
    options = dict(workers=1, steps=steps, replicas=replicas, x0=np.full(d, 0.1), record_every=50, wire_dtype=wire)
    for k in sizes:
        method = ParallelSGD(compressor(k), step=InverseTime(2.0, 1.0, 10.0), feedback=feedback, average="quadratic")
        result = context.run(method, problem, **options)  # the same noise for every k
        gaps.append(result.replica_values.T)
    at = {int(T): [gap[:, t] for gap in gaps] for t, T in enumerate(result.history["step"])}
    label = f"slope of E f(xbar_T) - f* in k, T={steps}, k={sizes[0]} and {sizes[1]} of {d}"
    yield loglog_rate(label, sizes, at[steps], 0.0, 0.03)
    yield (
        "The noise is the same for every k, hence the narrow interval. The tolerance of 0.03 is for the effect of the"
        f" compressor that is left. At T=50 the slope is {loglog_slope(sizes, np.stack(at[50], axis=1)).estimate:.3f}"
    )


@claim(
    "ef.workers",
    of=bounds.ef_sgd_variance,
    subject=lambda N: (ErrorFeedback(), N),
    mutants={
        "workers that share one random stream": lambda N: (ErrorFeedback(), 1),
        "messages summed, not averaged": lambda N: (WrongFeedback(outside=float(N)), N),
    },
    see=("ef.nonconvex.variance", "sgd.workers"),
)
def _(context):
    d, k, curvature, gamma, counts = 200, 50, 1.0, 0.1, (1, 4, 16)
    problem, columns = quadratic(np.full(d, curvature), covariance=1.0 / d), []
    options = dict(steps=40, replicas=context.samples(400, 100), record_every=40)
    for N in counts:
        feedback, workers = context.subject(N)
        method = ParallelSGD(TopK(k), step=Constant(gamma), feedback=feedback)
        columns.append(2.0 * curvature * context.run(method, problem, N, workers=workers, **options).funs)
    label = f"slope of the floor in N, top-{k} of {d}, gamma L={gamma * curvature:g}"
    yield loglog_rate(label, counts, columns, -1.0)
    alone = bounds.sgd_constant_step_floor(curvature, gamma, 1.0) * curvature**2
    shown = ", ".join(f"N={N}: {np.mean(y) * N / alone:.3g}" for N, y in zip(counts, columns, strict=True))
    yield f"N times the floor over that of full-precision SGD: {shown}"
