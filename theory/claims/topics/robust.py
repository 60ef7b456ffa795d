"""Claims about Byzantine workers: the robustness and the cost of the median of messages."""

from __future__ import annotations

import numpy as np

from ... import bounds
from .. import claim, equality, identity, upper

LIES = (-1e9, -1.0, 0.0, 1.0, 1e9)


def of_all(aggregate):
    """An aggregate of the honest and the others' messages, as a function of both."""
    return lambda honest, lies: aggregate(np.concatenate([honest, lies]))


def lied_to(aggregate, honest, bad) -> float:
    """Squared distance from the mean of the honest, in units of their own mean square, at the worst of six lies."""
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
        "one more liar than is counted": lambda honest, lies: median(honest, np.concatenate([lies, lies[:1]])),
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
        yield upper(f"largest of {tries} random ones, {label}", worst**0.5, most)


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
