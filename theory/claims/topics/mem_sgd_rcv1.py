"""Claims about Mem-SGD on RCV1: where Theorem 2.4 is vacuous, and the rate."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import Identity, TopK
from ...data import load_data
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import InverseTime
from ...problems import logistic, max_lipschitz, second_moment, solve
from .. import claim, upper
from ..laws import loglog_rate

SOLVED: dict[tuple[int, float], tuple] = {}  # with the data, so that no other data get their address


def rcv1(context, share=1.0):
    """Logistic regression with lambda = 1/n on a share of the user's data or of rcv1-like, and its minimum."""
    key = id(context.data), share
    if key not in SOLVED:
        dataset = load_data("rcv1-like") if context.data is None else context.data
        part = dataset if share == 1.0 else dataset.split(share, seed=0)[0]
        problem = logistic(part, l2=1.0 / part.n)
        SOLVED[key] = dataset, problem, solve(problem)
    return SOLVED[key][1:]


def first_time_below(bound, level: float) -> int:
    """The smallest power of two T with bound(T) <= level."""
    T = 1
    while bound(T) > level:
        T *= 2
    return T


@claim(
    "memsgd.theorem.rcv1",
    of=bounds.mem_sgd,
    subject=lambda k: (TopK(k), ErrorFeedback()),
    see=("memsgd.theorem", "memsgd.memory", "ef.identity"),
)
def _(context):
    problem, optimum = rcv1(context)
    n, d, k = problem.n, problem.d, min(10, problem.d)
    steps, mu, shift = context.samples(40_000, 4_000) // context.effort, 1.0 / n, max(2.0, 10.0 * d / k)
    compressor, feedback = context.subject(k)
    method = ParallelSGD(compressor, step=InverseTime(8.0, mu, shift), feedback=feedback, average="quadratic")
    result = context.run(method, problem, workers=1, steps=steps, replicas=24, record_every=steps)
    second = max(second_moment(problem, x) for x in (np.zeros(d), *result.last))
    known = dict(mu=mu, lipschitz=max_lipschitz(problem), second_moment=second, d=d, k=k, shift=shift)
    known["distance"], trivial = float(optimum.x @ optimum.x), float(np.log(2.0) - optimum.fun)
    label = f"E f(xbar_T) - f*, top-{k}, a = 10 d/k, T={steps}"
    yield upper(label, result.funs - optimum.fun, bounds.mem_sgd(steps, **known), trivial=trivial)
    of_lemma = bounds.mem_sgd_memory(d, k, 8.0 / (mu * (shift + steps)), second, shift=shift)
    yield upper(f"E||m_T||^2, Lemma 3.2, T={steps}", np.sum(result.memory**2, axis=(1, 2)), of_lemma)
    speaks = first_time_below(lambda T: bounds.mem_sgd(T, **known), trivial)
    where = f"{problem.name}, n={n}, d={d}; f(x_0) - f* = {trivial:.3g}"
    yield f"{where}: the bound would speak from T of about {speaks:.1e} on"


def _slope(context, share, replicas, first):
    """Slope of E f(xbar_T) - f* from T = first n to 4 first n, steps c/(mu (n/4 + t)), weights (n/4 + t)^2."""
    compressor, feedback, compress, c, part = context.subject
    problem, optimum = rcv1(context, share)
    n, schedule = problem.n, InverseTime(c, 1.0 / problem.n, problem.n // 4)
    method = ParallelSGD(compressor, step=schedule, feedback=feedback, average="quadratic", compress=compress)
    known = dict(workers=1, steps=4 * first * n, record_every=first * n // 4)
    result = context.run(method, problem, replicas=context.effort * replicas // part, **known)
    gaps, times, window = result.replica_values.T - optimum.fun, result.history["step"], (first * n, 4 * first * n)
    yield loglog_rate("slope of E f(xbar_T) - f* in T", times, gaps, -1.0, window=window)
    yield f"{problem.name}, n={n}; window {first} n <= T <= {4 * first} n: before, T is not large against the shift n/4"


@claim(
    "sgd.slope.rcv1",
    of=bounds.sgd_weighted_average,
    subject=(Identity(sparse=True), NoFeedback(), "loss", 2.0, 1),
    mutants={"steps a hundred times too small": (Identity(sparse=True), NoFeedback(), "loss", 0.02, 8)},
)
def _(context):
    return _slope(context, 1 / 32 if context.quick else 1 / 8, 64, 1)


@claim(
    "memsgd.slope.rcv1",
    of=bounds.mem_sgd,
    subject=(TopK(10), ErrorFeedback(), "full", 2.0, 1),
    mutants={"top-10 without memory": (TopK(10), NoFeedback(), "full", 2.0, 4)},
)
def _(context):
    return _slope(context, *((1 / 64, 16, 16) if context.quick else (1 / 8, 96, 4)))
