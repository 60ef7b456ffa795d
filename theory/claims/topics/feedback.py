"""Claims about error feedback: the identity behind it, and the size of the memory."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import Identity, TopK
from ...methods import ErrorFeedback, ParallelSGD, UnstableMemoryWarning
from ...methods.schedules import InverseTime, Polynomial, step_size
from ...problems import quadratic
from .. import claim, identity, upper
from ..mutants.shared import Forgetful, Scaling, WrongFeedback


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
    title="Error feedback is SGD in disguise",
    statement="x_t minus the workers' mean memory is the iterate of SGD that uses the same gradients uncompressed, for"
    " every compressor.",
    latex=r"x_t - \tfrac1N\sum_w e_t^w = x_0 - \sum_{s<t}\eta_s\tfrac1N\sum_w g_s^w",
    source="[karimireddy2019error], proof of Theorem II; [stich2018sparsified], section 3",
    kind="identity",
    attained="everywhere",
    proof="x loses mean Q(p); e = p - Q(p) with p = eta g + e. So x - mean e loses mean eta g.",
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
    yield f"messages carry float32; the memories hold {np.abs(result.memory).max():.2g} at most"


def constant_gradient(d: int):
    """A quadratic whose minimum is so far away that its gradient is the all-ones vector everywhere, to 1e-10."""
    far = 1e12
    return quadratic(np.full(d, 1.0 / far), covariance=0.0, optimum=-far)


def memories_after(context, compressor, step, problem, workers, steps) -> np.ndarray:
    """Squared norms of the workers' memories after ``steps`` steps."""
    method = ParallelSGD(compressor, step=step, feedback=ErrorFeedback())
    return np.sum(context.run64(method, problem, workers=workers, steps=steps).memory ** 2, axis=1)


def unchanging(eta):
    """The constant step size eta, to 1e-10, as a schedule of the type in Mem-SGD's claims: compiled once."""
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
