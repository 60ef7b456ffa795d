"""Claims about adaptive steps, and about ZeRO.

Adaptive steps: the length of the steps of Adam and LAMB, and the law of Adam with a frozen variance.  ZeRO: the bytes
that workers hold and send, with error feedback and compressed gradients.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from ... import bounds
from ...cluster import run_zero
from ...compressors import CountSketch, Identity, ScaledSign, TopK
from ...methods import (
    LAMB,
    Adam,
    ErrorFeedback,
    LinearSketchFeedback,
    Momentum,
    NoFeedback,
    OneBitAdam,
    ParallelSGD,
    Sharded,
)
from ...methods.schedules import Constant
from ...problems import function, quadratic, two_layer
from .. import claim, identity, upper
from ..local.local_sgd import recurrence_root
from ..mutants import LeakyFeedback, Scaling

# --- Adaptive steps --------------------------------------------------------------------------------------------------

FACTORS = ((0.9, 0.999), (0.9, 0.99), (0.5, 0.9), (0.9, 0.9))  # beta1, beta2

LONG = 1500  # steps, after which the bias corrections of the recommended factors are nearly 1


def path(context, method, problem, steps: int, x0) -> np.ndarray:
    """x_0, ..., x_T of the package's run; NaN after it has diverged."""
    seen = context.iterates(method, problem, "path", workers=2, steps=steps, x0=x0)
    return np.array(seen + [np.full(len(x0), np.nan)] * (steps + 1 - len(seen)))


def growing_steps(context, server, growth: float, steps: int, eta: float = 1.0) -> np.ndarray:
    """|x_{t+1} - x_t| of Adam's step for gradients that grow by a factor, on one worker."""
    times = count()
    problem = function(lambda x: 0.0, lambda x, rng: np.array([growth ** next(times)]), d=1)
    seen = context.iterates(ParallelSGD(Identity(), Constant(eta), server=server), problem, steps=steps)
    return np.abs(np.diff([float(x[0]) for x in seen]))


@claim(
    "adam.step",
    of=bounds.adam_step,
    subject=lambda beta1, beta2: Adam(1.0, beta1, beta2, eps=0.0),
    mutants={
        "eps a tenth of the first gradient": lambda beta1, beta2: Adam(1.0, beta1, beta2, eps=0.1),
        "beta1 and beta2 exchanged": lambda beta1, beta2: Adam(1.0, beta2, beta1, eps=0.0),
        "heavy ball": lambda beta1, beta2: Momentum(beta1),
    },
)
def _(context):
    for (beta1, beta2), eta in zip(FACTORS, (1.0, 0.3, 2.0, 1.0), strict=True):
        steps = growing_steps(context, context.subject(beta1, beta2), beta2 / beta1, 150, eta)
        for t in (1, 2, 10, 150):
            label = f"gradients that grow, beta1={beta1:g}, beta2={beta2:g}, gamma={eta:g}, t={t}"
            yield identity(label, steps[t - 1], bounds.adam_step(beta1, beta2, t, eta), 1e-9)
    last = growing_steps(context, context.subject(0.9, 0.999), 0.999 / 0.9, LONG)[-1]
    yield identity(f"the recommended factors, t={LONG:,}", last, bounds.adam_step(0.9, 0.999, LONG), 1e-9)
    longest = float(bounds.adam_step(0.9, 0.999, 150))
    for factor in (1.0, 1.05, 1.2):
        steps = growing_steps(context, context.subject(0.9, 0.999), factor, 150)
        yield upper(f"the last step, gradients that grow by {factor:g}", steps[-1], longest)


@claim(
    "adam.step.printed",
    of=bounds.adam_step_in_print,
    subject=lambda beta1, beta2: Adam(1.0, beta1, beta2, eps=0.0),
    refuted="in print",
    quote=r"The effective stepsize has two upper bounds: $|\Delta_t| \leq \alpha\cdot(1-\beta_1)/\sqrt{1-\beta_2}$ in"
    r" the case $(1-\beta_1) > \sqrt{1-\beta_2}$, and $|\Delta_t| \leq \alpha$ otherwise.",
    see=("adam.step",),
)
def _(context):
    for beta1, beta2 in FACTORS[:2]:  # the recommended factors, and two of the second case
        longest = growing_steps(context, context.subject(beta1, beta2), beta2 / beta1, LONG).max()
        label = f"gradients that grow by {beta2 / beta1:.3g}, beta1={beta1:g}, beta2={beta2:g}"
        yield upper(label, longest, bounds.adam_step_in_print(beta1, beta2))


@claim(
    "adam.scale",
    title="Adam does not depend on the scale of f",
    statement="With eps = 0 the iterates of Adam are the same for f and for a separable f whose parts are multiplied"
    " by any numbers above 0. With error feedback this holds if all parts are multiplied by the same number.",
    latex=r"x_t(cf)=x_t(f)",
    source="[kingma2015adam], section 2.1; with a memory: derived",
    kind="identity",
    proof="m and sqrt(v) are multiplied by the same number, in every coordinate; top-k commutes with a common factor.",
    subject=lambda: Adam(eps=0.0),
    mutants={
        "eps = 0.001": lambda: Adam(eps=1e-3),
        "heavy ball": lambda: Momentum(0.9),
        "eps = 0.00001": lambda: Adam(eps=1e-5),
    },
)
def _(context):
    curvatures, x0 = np.linspace(0.5, 2.0, 6), context.normal(6)
    parts = np.array([1e-3, 1.0, 1e3, 1e-2, 10.0, 2.0])
    for name, compressor, rule, factors in (
        ("full precision, each part by a number", Identity(), NoFeedback(), parts),
        ("full precision, f times 1000", Identity(), NoFeedback(), 1e3),
        ("top-2 with a memory, f / 1000", TopK(2), ErrorFeedback(), 1e-3),
    ):
        method = ParallelSGD(compressor, Constant(0.02), rule, server=context.subject())
        ours = path(context, method, quadratic(curvatures, covariance=0.0), 40, x0)
        theirs = path(context, method, quadratic(curvatures * factors, covariance=0.0), 40, x0)
        for t in (1, 40):
            moved, predicted = float(np.linalg.norm(theirs[t] - x0)), float(np.linalg.norm(ours[t] - x0))
            yield identity(f"||x_{t} - x_0||, {name}", moved, predicted, 1e-9)


def frozen(eta: float, warmup: int, beta1: float = 0.8, eps: float = 1e-3) -> OneBitAdam:
    """Adam whose variance no longer changes after the warm-up."""
    return OneBitAdam(Constant(eta), warmup, Identity(), beta1=beta1, eps=eps)


@claim(
    "adam.frozen",
    of=bounds.frozen_adam_rate,
    subject=frozen,
    mutants={
        "the variance goes on for a step": lambda eta, warmup, beta1: frozen(eta, warmup + 1, beta1),
        "the usual beta1": lambda eta, warmup, beta1: frozen(eta, warmup, beta1=0.9),
        "a larger eps": lambda eta, warmup, beta1: frozen(eta, warmup, beta1, eps=0.1),
        "gamma, not gamma (1 - beta1)": lambda eta, warmup, beta1: frozen(eta / (1.0 - beta1), warmup, beta1),
    },
)
def _(context):
    curvatures, x0, eps, warmup = np.array([1.0, 4.0]), np.array([2.0, 1.0]), 1e-3, 6
    problem = quadratic(curvatures, covariance=0.0)
    for eta, beta1 in ((0.004, 0.8), (0.02, 0.8), (0.004, 0.6)):
        x, m, v = x0.copy(), np.zeros(2), np.zeros(2)
        for _ in range(warmup):  # Adam, without bias correction
            g = curvatures * x
            m, v = beta1 * m + (1.0 - beta1) * g, 0.999 * v + 0.001 * g * g
            x = x - eta * m / (np.sqrt(v) + eps)
        root = (np.sqrt(v) + eps) ** -0.5
        y, n, seen = x / root, root * m, []
        for _ in range(40):
            n = beta1 * n + (1.0 - beta1) * (root * curvatures * root) * y
            y = y - eta * n
            seen.append(root * y)
        ours = path(context, context.subject(eta, warmup, beta1), problem, warmup + 40, x0)[warmup + 1 :]
        for t in (1, 10, 40):
            for j in (0, 1):
                label = f"x[{j}], {t} steps after the warm-up, gamma={eta:g}, beta1={beta1:g}"
                yield identity(label, ours[t - 1][j], seen[t - 1][j], 1e-9)
        scaled = curvatures * root**2
        found = max(recurrence_root(ours[:4, j]) for j in (0, 1))
        rate = bounds.frozen_adam_rate(scaled.min(), scaled.max(), eta, beta1)
        yield identity(f"rate, from four iterates of the run, gamma={eta:g}, beta1={beta1:g}", found, rate, 1e-6)


@claim(
    "lamb.step",
    of=bounds.lamb_step,
    subject=lambda low, high, layers: LAMB(low=low, high=high, layers=layers),
    mutants={
        "all layers as one": lambda low, high, layers: LAMB(low=low, high=high),
        "Adam": lambda low, high, layers: Adam(),
        "phi without bounds": lambda low, high, layers: LAMB(layers=layers),
    },
)
def _(context):
    layers = slice(0, 3), slice(3, 4), slice(4, 10)
    x0 = context.normal(10) * np.repeat([0.1, 1.0, 10.0], [3, 1, 6])
    problem = quadratic(np.linspace(0.5, 3.0, 10), covariance=0.1)
    for eta, low, high in ((0.05, 0.5, 4.0), (0.02, 0.7, 3.0)):
        method = ParallelSGD(ScaledSign(), Constant(eta), ErrorFeedback(), server=context.subject(low, high, layers))
        xs = path(context, method, problem, 25, x0)
        for k, part in enumerate(layers):
            for t in (0, 24):
                moved = float(np.linalg.norm(xs[t + 1][part] - xs[t][part]))
                predicted = bounds.lamb_step(eta, float(np.linalg.norm(xs[t][part])), low, high)
                yield identity(f"layer {k}, step {t}, signs with a memory, gamma={eta:g}", moved, predicted, 1e-9)


@claim(
    "ef.momentum",
    of=bounds.momentum_memory,
    subject=(ErrorFeedback(), lambda beta: Momentum(beta)),
    mutants={
        "a memory of which a tenth is lost": (LeakyFeedback(0.9), lambda beta: Momentum(beta)),
        "no memory": (LeakyFeedback(0.0), lambda beta: Momentum(beta)),
        "Nesterov's momentum": (ErrorFeedback(), lambda beta: Momentum(beta, nesterov=True)),
    },
)
def _(context):
    rule, server = context.subject
    d, eta = 8, 0.05
    slope = np.linspace(0.5, 2.0, d)
    for name, compressor, gradient, steps, beta in (
        ("constant gradient", Scaling(0.5), lambda x: slope, 150, 0.8),
        ("constant gradient, beta=0.6", Scaling(0.75), lambda x: slope, 150, 0.6),
        ("a quadratic, top-2", TopK(2), lambda x: slope * x, 40, 0.8),
    ):
        method = ParallelSGD(compressor, Constant(eta), rule, server=server(beta))
        problem, options = function(lambda x: 0.0, gradient, d=d), {"workers": 2, "steps": steps, "x0": np.ones(d)}
        seen = context.iterates(method, problem, of=lambda now: (now.last, now.memory.mean(axis=0)), **options)
        ball, u, z, largest = np.ones(d), np.zeros(d), np.zeros(d), 0.0
        for t in range(steps):
            u = beta * u + eta * gradient(seen[t][0])
            ball, z = ball - u, beta * z + seen[t + 1][1]
            largest = max(largest, float(np.linalg.norm(seen[t + 1][1])))
        apart = float(np.linalg.norm(seen[-1][0] - ball))
        bound = bounds.momentum_memory(largest, beta)
        if name.startswith("constant gradient"):
            yield identity(f"||x_T - heavy ball||, {name}", apart, bound, 1e-9)
        yield identity(f"||x_T - heavy ball|| against ||z_T||, {name}", apart, float(np.linalg.norm(z)), 1e-9)
        yield upper(f"||z_T||, {name}", float(np.linalg.norm(z)), bound * (1.0 + 1e-12))


# --- ZeRO ------------------------------------------------------------------------------------------------------------

PSI, RANKS = 7.5e9, 64  # the example of the ZeRO paper

PRINTED = (120.0, 31.4, 16.6, 1.9)  # GB, by stage

D, WORKERS, SINGLE = 960, 8, 4.0


def _network(width=16):
    """A network whose layers divide evenly: 48 and 12 parameters times the width."""
    rng = np.random.default_rng(0)
    return two_layer((rng.standard_normal((48, 48)), np.arange(48) % 12), width=width)


def _exchanged(run, stage):
    """What would be held if stage 2 divided the parameters, not the gradients."""
    held = run.held
    swapped = held | {"parameters": held["gradients"], "gradients": held["parameters"]}
    return run._replace(held=swapped if stage == 2 else held)


@claim(
    "zero.memory",
    of=bounds.zero_memory,
    subject=(lambda stage: Sharded(Adam()) if stage else Adam(), run_zero),
    mutants={
        "the moments are not divided": (lambda stage: Adam(), run_zero),
        "always divided": (lambda stage: Sharded(Adam()), run_zero),
        "gradients are not divided": (
            lambda stage: Sharded(Adam()) if stage else Adam(),
            lambda network, workers, stage, **known: run_zero(network, workers, min(stage, 1), **known),
        ),
        "parameters are divided, not gradients": (
            lambda stage: Sharded(Adam()) if stage else Adam(),
            lambda network, workers, stage, **known: _exchanged(run_zero(network, workers, stage, **known), stage),
        ),
        "parameters are not divided": (
            lambda stage: Sharded(Adam()) if stage else Adam(),
            lambda network, workers, stage, **known: run_zero(network, workers, min(stage, 2), **known),
        ),
    },
)
def _(context):
    server, run = context.subject
    problem, network = quadratic(np.ones(D), covariance=1.0), _network()
    for name, compressor, rule, each in (
        ("no memory", Identity(), NoFeedback(), 0.0),
        ("error feedback", TopK(96), ErrorFeedback(), SINGLE),
        ("a sketch of a tenth", TopK(96), LinearSketchFeedback(CountSketch(width=D // 10), 0.9), 0.1 * SINGLE),
    ):
        for stage in (0, 1):
            method = ParallelSGD(compressor, Constant(0.01), rule, server=server(stage))
            known: dict[str, Any] = dict(workers=WORKERS, steps=3, dtype=np.float32, record_every=3)
            result = context.run(method, problem, name, **known)
            found = result.last.nbytes + D * SINGLE + result.server_bytes + result.memory_bytes  # D: the gradient
            predicted = bounds.zero_memory(D, WORKERS, stage, each, 2 * SINGLE, SINGLE, SINGLE)
            yield identity(f"bytes of a worker, stage {stage}, {name}", found, predicted)
    for memory in (False, True):
        for stage in (0, 1, 2, 3):
            found = run(network, WORKERS, stage, steps=2, share=0.125, memory=memory)
            alone = {  # bytes of the memory, the optimizer, a gradient and a parameter
                "parameters": (0.0, 0.0, 0.0, SINGLE),
                "gradients": (0.0, 0.0, SINGLE, 0.0),
                "optimizer": (0.0, 2 * SINGLE, 0.0, 0.0),
                "memory": (SINGLE * memory, 0.0, 0.0, 0.0),
            }
            for part, held in found.held.items():
                label = f"bytes of a network's {part}, stage {stage}" + ", error feedback" * memory
                yield identity(label, held, bounds.zero_memory(network.d, WORKERS, stage, *alone[part]))


@claim(
    "zero.volume",
    of=bounds.zero_volume,
    subject=run_zero,
    mutants={
        "stage 3 gathers the parameters once": lambda network, workers, stage, **known: run_zero(
            network, workers, min(stage, 2), **known
        ),
        "gradients in full": lambda network, workers, stage, **known: run_zero(
            network, workers, stage, **(known | {"share": 1.0})
        ),
        "the gradients are gathered, not the parameters": lambda network, workers, stage, **known: run_zero(
            network, workers, 0, **known
        ),
    },
)
def _(context):
    for share, workers, network in ((1.0, WORKERS, _network()), (0.125, WORKERS, _network()), (0.25, 4, _network(8))):
        for stage in (0, 1, 2, 3):
            run = context.subject(network, workers, stage, steps=2, share=share)
            label = f"numbers that a worker sends, N={workers}, stage {stage}, gradients times {share:g}"
            yield identity(label, run.sent, bounds.zero_volume(network.d, workers, stage, share))


@claim(
    "zero.example",
    of=bounds.zero_memory,
    subject=(bounds.zero_memory, bounds.zero_volume),
    mutants={
        "8 bytes of moments": (
            lambda psi, n, stage, memory=0.0: bounds.zero_memory(psi, n, stage, memory, optimizer_bytes=8.0),
            bounds.zero_volume,
        ),
        "a memory that is divided": (
            lambda psi, n, stage, memory=0.0: bounds.zero_memory(psi, n, stage, memory / n),
            bounds.zero_volume,
        ),
        "parameters gathered once": (
            bounds.zero_memory,
            lambda psi, n, stage=0, ratio=1.0: bounds.zero_volume(psi, n, min(stage, 2), ratio),
        ),
    },
)
def _(context):
    memory, volume = context.subject
    for stage, printed in enumerate(PRINTED):
        label = f"GB of a worker, stage {stage}, beside the printed number"
        yield identity(label, round(float(memory(PSI, RANKS, stage)) / 1e9, 1), printed)
        added = (memory(PSI, RANKS, stage, memory=4.0) - memory(PSI, RANKS, stage)) / 1e9
        yield identity(f"GB that error feedback adds, stage {stage}", float(added), 4.0 * PSI / 1e9)
    whole, third = float(volume(PSI, RANKS)), float(volume(PSI, RANKS, 3))
    ratio = float(memory(PSI, RANKS, 3, memory=4.0)) / float(memory(PSI, RANKS, 3))
    yield identity("error feedback at stage 3, times the memory", ratio, 17.0)
    yield identity("volume of stage 3 over data parallelism", third / whole, 1.5)
    yield identity("saved by a twentieth, data parallelism", 1.0 - float(volume(PSI, RANKS, 0, 0.05)) / whole, 0.95)
    saved = 1.0 - float(volume(PSI, RANKS, 3, 0.05)) / third
    yield identity("saved by a twentieth, stage 3", saved, 0.95 / 3.0)
    yield identity("stage 3 with gradients that cost nothing", float(volume(PSI, RANKS, 3, 0.0)) / whole, 1.0)
