"""Claims about Byzantine workers: what robust means tolerate, what they cost, and where attacks lead SGD."""

from __future__ import annotations

import numpy as np
import scipy  # its parts load when they are used

from ... import bounds
from ...methods import (
    NNM,
    Attack,
    Attacked,
    GeometricMedian,
    Krum,
    Mean,
    Median,
    OneSided,
    ParallelSGD,
    TrimmedMean,
    robust_mean,
)
from ...methods.schedules import Constant
from ...problems import function, quadratic
from .. import certain, claim, equality, identity, upper

LIES = (-1e9, -1.0, 0.0, 1.0, 1e9)


def of_all(aggregate):
    """An aggregate of the honest and the others' messages, as a function of both."""
    return lambda honest, lies: aggregate(np.concatenate([honest, lies]))


def lied_to(aggregate, honest, bad) -> float:
    """Squared distance from the mean of the honest, in units of their own mean square, at the worst of six attacks."""
    center = honest.mean(axis=0)
    spread = np.mean(np.sum((honest - center) ** 2, axis=1))
    places = [np.full((bad, honest.shape[1]), lie) for lie in LIES] + [honest[:bad]]
    return max(float(np.sum((aggregate(honest, lies) - center) ** 2) / spread) for lies in places)


median = of_all(lambda x: np.median(x, axis=0))


@claim(
    "robust.median",
    of=bounds.median_deviation,
    subject=median,
    mutants={
        "the mean": of_all(lambda x: x.mean(axis=0)),
        "the rank above the middle": of_all(lambda x: np.sort(x, axis=0)[(len(x) + 1) // 2]),
        "one hostile worker uncounted": lambda honest, lies: median(honest, np.concatenate([lies, lies[:1]])),
    },
)
def _(context):
    tries, rng = context.samples(1000, 250), np.random.default_rng(context.stream())
    for workers, bad in ((9, 2), (9, 4), (15, 3)):
        most, label = bounds.median_deviation(workers, bad), f"N={workers}, f={bad}"
        honest = np.where(np.arange(workers - bad) < (workers - 1) // 2, 0.0, 1.0)[:, None]
        yield identity(f"worst case, {label}", lied_to(context.subject, honest, bad) ** 0.5, most)
        drawn = (rng.standard_normal((workers - bad, 5)) ** 3 for _ in range(tries))
        worst = max(lied_to(context.subject, honest, bad) for honest in drawn)
        yield upper(f"largest of {tries} random ones, {label}", certain(worst**0.5), most)


@claim(
    "robust.price",
    of=bounds.normal_median_variance,
    subject=lambda draws: np.median(draws, axis=1),
    mutants={
        "the mean": lambda draws: draws.mean(axis=1),
        "the median of all but two": lambda draws: np.median(draws[:, 2:], axis=1),
        "the middle of the range": lambda draws: (draws.min(axis=1) + draws.max(axis=1)) / 2,
    },
)
def _(context):
    tries, rng = context.samples(400_000, 100_000), np.random.default_rng(context.stream())
    for N in (3, 21):
        found = context.subject(rng.standard_normal((tries, N)))
        yield equality(f"N Var(median), N={N}", N * found * found, bounds.normal_median_variance(N))
    yield identity("N=10001, against pi/2", np.pi / 2, bounds.normal_median_variance(10_001), tolerance=1e-4)


# --- robust servers --------------------------------------------------------------------------------------------------


def by(rule):
    """The kernels of a robust rule, as a function of the messages of all."""
    return lambda messages: robust_mean(rule, messages)


def mean_of_all(messages):
    """The plain mean."""
    return messages.mean(axis=0)


def pulled(aggregate, honest, lies) -> float:
    """Squared distance from the mean of the honest, in units of their spread."""
    center = honest.mean(axis=0)
    spread = np.mean(np.sum((honest - center) ** 2, axis=1))
    moved = aggregate(np.concatenate([honest, lies])) - center
    return float(np.sum(moved**2) / spread) if spread > 1e-12 else 0.0


def searched(context, aggregate, workers, bad, d=2) -> float:
    """The most that is found by local search over all messages, from random ones and from hostile ones far away."""
    rng = np.random.default_rng(context.stream("search", workers, bad))

    def negative(flat):
        messages = np.clip(flat, -1e6, 1e6).reshape(workers, d)  # far enough, and squares do not overflow
        return -pulled(aggregate, messages[bad:], messages[:bad])

    best = 0.0
    for far in np.geomspace(1.0, 1e3, context.samples(24, 6)):
        start = rng.standard_normal((workers, d))
        start[:bad] *= far
        best = max(
            best, -scipy.optimize.minimize(negative, start.ravel(), method="Powell", options={"maxfev": 1500}).fun
        )
    return best


def edge(workers, bad):
    """Honest and hostile messages at which the least factor is attained."""
    honest = np.where(np.arange(workers - bad) < bad, 0.0, 1.0)[:, None]
    return honest, np.full((bad, 1), 1e9)


SIZES = ((7, 2), (9, 3))


@claim(
    "robust.trimmed-mean",
    of=bounds.least_robustness,
    subject=lambda f: by(TrimmedMean(f)),
    mutants={
        "the mean": lambda f: mean_of_all,
        "one fewer cut": lambda f: by(TrimmedMean(f - 1)),
        "the median": lambda f: by(Median()),
    },
)
def _(context):
    for workers, bad in SIZES:
        rule, least, label = context.subject(bad), bounds.least_robustness(workers, bad), f"N={workers}, f={bad}"
        yield identity(f"worst case, {label}", pulled(rule, *edge(workers, bad)), least)
        yield upper(f"most that a search finds, {label}", certain(searched(context, rule, workers, bad)), least)


@claim(
    "robust.geometric-median",
    of=bounds.geometric_median_robustness,
    subject=lambda f: by(GeometricMedian()),
    mutants={"the mean": lambda f: mean_of_all, "the trimmed mean, one fewer cut": lambda f: by(TrimmedMean(f - 1))},
)
def _(context):
    for workers, bad in SIZES:
        found = searched(context, context.subject(bad), workers, bad)
        yield upper(f"N={workers}, f={bad}", certain(found), bounds.geometric_median_robustness(workers, bad))


def highest_score(f):
    """Krum with its order reversed."""
    return lambda x: x[np.argmax(np.sort(np.sum((x[:, None] - x) ** 2, axis=2), axis=1)[:, : len(x) - f - 1].sum(1))]


@claim(
    "robust.krum",
    of=bounds.krum_robustness,
    subject=lambda f: by(Krum(f)),
    mutants={"the highest score": highest_score, "nobody is hostile": lambda f: mean_of_all},
)
def _(context):
    for workers, bad in SIZES:
        found = searched(context, context.subject(bad), workers, bad)
        yield upper(f"N={workers}, f={bad}", certain(found), bounds.krum_robustness(workers, bad))


@claim(
    "robust.mixed",
    of=bounds.mixed_robustness,
    subject=lambda f: by(NNM(f, TrimmedMean(f))),
    mutants={
        "the mean of the mixed": lambda f: by(NNM(f, TrimmedMean(0))),
        "mixed with all but one": lambda f: by(NNM(1, TrimmedMean(f - 1))),
    },
)
def _(context):
    for workers, bad in (*SIZES, (9, 2)):
        found = searched(context, context.subject(bad), workers, bad)
        most = bounds.mixed_robustness(workers, bad, bounds.least_robustness(workers, bad))
        yield upper(f"N={workers}, f={bad}", certain(found), most)


def attacked(server, attack, bad, **more):
    """SGD with full messages, some of them hostile."""
    return ParallelSGD(None, exchange="gather", server=Attacked(server, attack, bad), **more)


@claim(
    "robust.floor",
    of=bounds.least_robustness,
    subject=lambda f: (TrimmedMean(f), f),
    mutants={
        "the mean": lambda f: (Mean(), f),
        "one fewer cut": lambda f: (TrimmedMean(f - 1), f),
        "one fewer hostile": lambda f: (TrimmedMean(f), f - 1),
    },
)
def _(context):
    for workers, bad in SIZES:
        b = np.concatenate([edge(workers, bad)[0][:, 0], np.zeros(bad)])
        problem = function(
            lambda x, b=b: float(((x[0] - b) ** 2).mean()) / 2, lambda x, b=b: x - b[:, None], d=1, n=workers
        )
        server, hostile = context.subject(bad)
        method = attacked(server, OneSided(-1e6), hostile, step=Constant(0.5), shards="contiguous")
        found = context.run(method, problem, workers=workers, steps=60, x0=np.zeros(1), wire_dtype=np.float64).last
        honest = b[: workers - bad]
        yield identity(
            f"squared distance from the mean, N={workers}, f={bad}",
            float((found[0] - honest.mean()) ** 2),
            bounds.least_robustness(workers, bad) * float(honest.var()),
            1e-9,
        )


@claim(
    "robust.breakdown",
    title="One worker moves the mean anywhere",
    statement="A single hostile worker sets the mean of N messages to any vector z: "
    "it sends N z less what the others send.",
    kind="identity",
    source="derived",
    subject=Mean,
    mutants={"the median": Median, "a trimmed mean": lambda: TrimmedMean(1)},
)
def _(context):
    for workers in (5, 20):
        z = 1e6 * context.normal(3, workers)
        attack = Attack(lambda honest, own, z=z, N=workers: N * z - honest.sum(axis=0))
        method = attacked(context.subject(), attack, 1, step=Constant(1.0))
        problem, x0 = quadratic(np.ones(3), covariance=1.0), np.ones(3)
        found = context.run(method, problem, workers=workers, steps=1, x0=x0, wire_dtype=np.float64).last
        yield identity(
            f"||x_1 - (x_0 - z)||/||z||, N={workers}",
            float(np.linalg.norm(found - x0 + z) / np.linalg.norm(z)),
            0.0,
            1e-9,
        )
