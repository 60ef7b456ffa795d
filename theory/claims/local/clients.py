"""Claims about clients with different data: where rounds end, how fast, who is absent, and models of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...cluster import run
from ...compressors import Identity, RandK
from ...methods import SCAFFOLD, ErrorFeedback, FedAvg, FedProx, LocalSGD, NoFeedback, OuterStep, ParallelSGD
from ...methods.schedules import Constant
from ...problems import function, ridge
from .. import claim, equality, identity

WORKERS = 4


@claim(
    "federated.fixed-point",
    of=bounds.local_sgd_fixed_point,
    subject=lambda step, local_steps: (step, local_steps, "contiguous"),
    mutants={
        "one local step": lambda step, local_steps: (step, 1, "contiguous"),
        "all rows for everybody": lambda step, local_steps: (step, local_steps, "shared"),
        "steps of half the size": lambda step, local_steps: (step / 2.0, local_steps, "contiguous"),
    },
    see=("local-sgd.quadratic",),
)
def _(context):
    def end(rows, targets, l2, eta, H, rounds, replicas=1):
        step, local, shards = context.subject(eta, H)
        method = LocalSGD(Identity(), step=Constant(step), local_steps=local, shards=shards)
        known: dict[str, Any] = dict(workers=WORKERS, steps=rounds * local, replicas=replicas)
        return context.run64(method, ridge((rows, targets), l2=l2), len(rows), **known).last

    def fixed(rows, targets, l2, eta, H):
        own, b = np.array_split(rows, WORKERS), np.array_split(targets, WORKERS)
        A = np.stack([a.T @ a / len(a) + l2 * np.eye(rows.shape[1]) for a in own])
        right = np.stack([a.T @ c / len(a) for a, c in zip(own, b, strict=True)])
        return bounds.local_sgd_fixed_point(A, np.linalg.solve(A, right[:, :, None])[:, :, 0], step=eta, local_steps=H)

    for d, l2, H, eta in ((1, 0.0, 5, 0.1), (2, 0.3, 20, 0.05)):
        rows = 1.0 + 0.4 * context.normal((WORKERS, d), "rows", d)
        targets = context.normal(WORKERS, "targets", d)
        there, best = fixed(rows, targets, l2, eta, H), fixed(rows, targets, l2, eta, 1)
        label = f"d={d}, H={H}, gamma={eta:g}, {np.linalg.norm(there - best):.3g} from x*"
        away = float(np.linalg.norm(end(rows, targets, l2, eta, H, 600) - best))
        yield identity(f"distance from x*, {label}", away, float(np.linalg.norm(there - best)), 1e-6)
        off = float(np.linalg.norm(end(rows, targets, l2, eta, H, 600) - there))
        yield identity(f"distance from the fixed point, {label}", off, 0.0, 1e-9)
    rows, targets = np.repeat([[0.4], [0.8], [1.2], [1.6]], 3, axis=0), 2.0 + np.arange(12.0) % 5
    found = end(rows, targets, 0.0, 0.1, 5, 60, context.samples(2000, 1000))[:, 0]
    yield equality("E x, three rows each, drawn", found, fixed(rows, targets, 0.0, 0.1, 5)[0], 1e-6)


ALPHA = np.array([0.5, 0.8, 1.2, 1.6])  # rows of one number: the curvatures are their squares
OWN: dict[str, Any] = {"shards": "contiguous"}
TARGETS = np.array([3.0, -1.0, 2.0, 1.0])


def clients():
    """A client for each row, with its curvature and its minimiser."""
    return ridge((ALPHA[:, None], TARGETS), l2=0.0), ALPHA**2, TARGETS / ALPHA


def shrinking(context, method, steps: int, best: float) -> float:
    """Factor of a round, in the later rounds of a run."""
    x = np.ravel(context.iterates(method, clients()[0], workers=WORKERS, steps=steps, seed=0)) - best
    return float(abs(x[-1] / x[-11]) ** 0.1)


@claim(
    "federated.proximal",
    of=bounds.local_sgd_fixed_point,
    subject=lambda mu: FedProx(step=Constant(0.1), local_steps=8, mu=mu, **OWN),
    mutants={
        "FedAvg": lambda mu: FedAvg(step=Constant(0.1), local_steps=8, **OWN),
        "half the weight": lambda mu: FedProx(step=Constant(0.1), local_steps=8, mu=mu / 2.0, **OWN),
    },
    see=("federated.fixed-point",),
)
def _(context):
    problem, curvatures, own = clients()
    for mu in (0.5, 2.0):
        found = context.run64(context.subject(mu), problem, workers=WORKERS, steps=1600).last[0]
        law = bounds.local_sgd_fixed_point(curvatures, own, step=0.1, local_steps=8, prox=mu)[0]
        yield identity(f"x after 200 rounds, rho={mu:g}", float(found), float(law), 1e-9)


@claim(
    "federated.factor",
    of=bounds.fedavg_factor,
    subject=lambda beta, H, eta: FedAvg(step=Constant(eta), local_steps=H, server=OuterStep(beta), **OWN),
    mutants={
        "one local step fewer": lambda beta, H, eta: FedAvg(
            step=Constant(eta), local_steps=H - 1, server=OuterStep(beta), **OWN
        ),
        "no server step": lambda beta, H, eta: FedAvg(step=Constant(eta), local_steps=H, **OWN),
    },
)
def _(context):
    problem, curvatures, own = clients()
    for beta, H, eta in ((0.5, 4, 0.1), (1.5, 2, 0.05)):
        best = bounds.local_sgd_fixed_point(curvatures, own, step=eta, local_steps=H)[0]
        factor = bounds.fedavg_factor(curvatures, step=eta, local_steps=H, server_step=beta)
        found = shrinking(context, context.subject(beta, H, eta), 30 * H, float(best))
        yield identity(f"factor of a round, gamma_s={beta:g}, H={H}, gamma={eta:g}", found, factor, 1e-6)


@claim(
    "federated.scaffold",
    of=bounds.scaffold_factor,
    subject=lambda H, eta: SCAFFOLD(step=Constant(eta), local_steps=H, **OWN),
    mutants={
        "FedAvg": lambda H, eta: FedAvg(step=Constant(eta), local_steps=H, **OWN),
        "steps of half the size": lambda H, eta: SCAFFOLD(step=Constant(eta / 2.0), local_steps=H, **OWN),
    },
    see=("federated.fixed-point",),
)
def _(context):
    problem, curvatures, own = clients()
    best = float(np.sum(curvatures * own) / np.sum(curvatures))
    for H, eta in ((2, 0.1), (6, 0.05)):
        factor, label = bounds.scaffold_factor(curvatures, step=eta, local_steps=H), f"H={H}, gamma={eta:g}"
        found = shrinking(context, context.subject(H, eta), 50 * H, best)
        yield identity(f"factor of a round, {label}", found, factor, 1e-4)
        end = context.run64(context.subject(H, eta), problem, workers=WORKERS, steps=400 * H).last[0]
        yield identity(f"x after 400 rounds, {label}", float(end), best, 1e-9)


@claim(
    "federated.sampled",
    of=bounds.sampled_clients_variance,
    subject=lambda m: FedAvg(step=Constant(1.0), clients=m, **OWN),
    mutants={
        "one client more": lambda m: FedAvg(step=Constant(1.0), clients=m + 1, **OWN),
        "all of them": lambda m: FedAvg(step=Constant(1.0), **OWN),
    },
)
def _(context):
    rounds = context.samples(20_000, 1000)
    for m, targets in ((1, TARGETS), (2, TARGETS), (3, np.append(2.0 * TARGETS, 1.0))):
        N, problem = len(targets), ridge((np.ones((len(targets), 1)), targets), l2=0.0)
        # with steps of 1 a round forgets x: it is the mean of those drawn
        x = np.ravel(context.iterates(context.subject(m), problem, m, workers=N, steps=rounds))[1:]
        law = bounds.sampled_clients_variance(N, m, float(targets.var()))
        yield equality(f"squared error of the mean, m={m} of {N}", (x - targets.mean()) ** 2, law)


@claim(
    "federated.rounds",
    of=bounds.sampled_fedavg_gap,
    subject=lambda m, beta, eta, H: FedAvg(step=Constant(eta), local_steps=H, clients=m, server=OuterStep(beta), **OWN),
    mutants={
        "one client more": lambda m, beta, eta, H: FedAvg(
            step=Constant(eta), local_steps=H, clients=m + 1, server=OuterStep(beta), **OWN
        ),
        "one local step": lambda m, beta, eta, H: FedAvg(step=Constant(eta), clients=m, server=OuterStep(beta), **OWN),
        "no server step": lambda m, beta, eta, H: FedAvg(step=Constant(eta), local_steps=H, clients=m, **OWN),
    },
    see=("federated.sampled", "federated.factor"),
)
def _(context):
    problem, curvatures, own = clients()
    best = float(np.sum(curvatures * own) / np.sum(curvatures))
    for m, beta, eta, H, rounds in ((2, 0.5, 0.2, 3, 2), (3, 1.5, 0.1, 2, 3)):
        replicas = context.samples(10_000, 6000) // m  # the mean of more clients varies less
        known: dict[str, Any] = dict(workers=WORKERS, steps=H * rounds, replicas=replicas)
        x = context.run64(context.subject(m, beta, eta, H), problem, m, **known).last[:, 0]
        law = bounds.sampled_fedavg_gap(
            curvatures, own, step=eta, local_steps=H, rounds=rounds, clients=m, server_step=beta
        )
        label = f"m={m}, gamma_s={beta:g}, gamma={eta:g}, H={H}"
        yield equality(f"f - f* after {rounds} rounds, {label}", curvatures.mean() * (x - best) ** 2 / 2, law)


def with_memory(m: int, kept: int, step: float, feedback: Any = ErrorFeedback()):  # noqa: B008
    """FedAvg of some clients with rand-k of 16 coordinates and memories."""
    return FedAvg(RandK(kept), step=Constant(step), clients=m, feedback=feedback, batch=16, sampling="shuffle", **OWN)


@claim(
    "federated.stale-memory",
    of=bounds.stale_memory_mean,
    subject=with_memory,
    mutants={
        "no memory": lambda m, kept, step: with_memory(m, kept, step, NoFeedback()),
        "all take part": lambda m, kept, step: with_memory(WORKERS, kept, step),
        "half the step": lambda m, kept, step: with_memory(m, kept, step / 2.0),
        "half the coordinates": lambda m, kept, step: with_memory(m, kept // 2, step),
    },
    see=("federated.sampled",),
)
def _(context):
    d, replicas, centres = 16, context.samples(4000, 800), 2.0 + 0.1 * TARGETS
    rows = np.tile(np.sqrt(d) * np.eye(d), (WORKERS, 1))  # a client's mean square is |x - b_k|^2/2
    problem = ridge((rows, np.sqrt(d) * np.repeat(centres, d)), l2=0.0)
    for m, kept, rounds, step in ((1, 4, 4, 0.5), (2, 8, 3, 0.4)):
        known: dict[str, Any] = dict(workers=WORKERS, steps=rounds, replicas=replicas)
        x = context.run64(context.subject(m, kept, step), problem, m, **known).last
        law = bounds.stale_memory_mean(rounds, step=step, kept=kept / d, present=m / WORKERS)
        left = 1.0 - x.mean(axis=1) / centres.mean()
        yield equality(f"share of E x - x* left after {rounds} rounds, m={m}, k={kept}, gamma={step:g}", left, law)


def tuned(steps: int, b):
    """Everybody's model: the mean of all, and then local steps of size 0.1 with a client's own data."""
    N, d = b.shape
    problem = function(lambda x: float(np.sum((x - b) ** 2)) / (2 * N), lambda x: x - b, d=d, n=N)
    known: dict[str, Any] = dict(wire_dtype=np.float64, seed=0)
    common = FedAvg(step=Constant(1.0), **OWN)
    x = run(common, problem, workers=N, steps=1, x0=np.zeros(d), **known).last
    own = ParallelSGD(step=Constant(0.1))
    alone = (function(lambda x, c=c: float(np.sum((x - c) ** 2)) / 2, lambda x, c=c: x - c[None], d=d, n=1) for c in b)
    return np.stack([run(own, one, workers=1, steps=steps, x0=x, **known).last for one in alone])


@claim(
    "federated.personal",
    of=bounds.personal_weight,
    subject=tuned,
    mutants={
        "twice as many steps": lambda steps, b: tuned(2 * steps, b),
        "the common model": lambda steps, b: np.tile(b.mean(axis=0), (len(b), 1)),
        "their own": lambda steps, b: b,
    },
)
def _(context):
    d = context.samples(40_000, 10_000)
    for steps, V, N in ((4, 0.5, 3), (8, 2.0, 5)):
        share = 1.0 - 0.9**steps
        noise = V * (1.0 - share) / (share * (1.0 - 1.0 / N))  # for which so many steps are best
        places = np.linspace(-1.0, 1.0, N)
        true = places[:, None] * np.sqrt(V / np.mean(places**2)) * np.ones(d)
        own = true + np.sqrt(noise) * context.normal((N, d), steps)
        y, apart, weight = context.subject(steps, own), own - own.mean(axis=0), bounds.personal_weight(N, V, noise)
        fitted = np.mean((true - own.mean(axis=0)) * apart, axis=0) / np.mean(apart**2)
        yield equality(f"regression of b_i - y on the client's own, N={N}, V={V:g}", fitted, weight)
        loss = (1.0 - weight) ** 2 * V + weight**2 * noise * (1.0 - 1.0 / N) + noise / N
        yield equality(f"mean of |y_i - b_i|^2, {steps} local steps", np.mean((y - true) ** 2, axis=0), loss)
