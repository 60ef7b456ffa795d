"""Claims about what is left of the compressor, with error feedback, after many steps."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import RandK, TopK
from ...measure import loglog_slope
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import Constant, InverseTime
from ...problems import quadratic
from .. import claim
from ..laws import loglog_rate
from ..mutants.shared import WrongFeedback


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
        "the same noise for every k, hence the narrow interval; within 0.03, for what is left of the compressor;"
        f" at T=50 the slope is {loglog_slope(sizes, np.stack(at[50], axis=1)).estimate:.3f}"
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
