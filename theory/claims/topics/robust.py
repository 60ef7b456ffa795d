"""Claims about Byzantine workers: the robustness and the cost of the median of messages."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...measure import LEVEL, Interval, exactly, mean_interval
from ..base import claim
from ..checks import Measurement, equality, identity, upper

LIES = (-1e9, -1.0, 0.0, 1.0, 1e9)


def median(honest, lies):
    """The median over workers, coordinate by coordinate."""
    return np.median(np.concatenate([honest, lies]), axis=0)


def lied_to(aggregate, honest, bad) -> float:
    """Squared distance from the mean of the honest, in units of their own mean square, at the worst of six lies."""
    center = honest.mean(axis=0)
    spread = np.mean(np.sum((honest - center) ** 2, axis=1))
    places = [np.full((bad, honest.shape[1]), lie) for lie in LIES] + [honest[:bad]]
    return max(float(np.sum((aggregate(honest, lies) - center) ** 2) / spread) for lies in places)


@claim(
    "robust.median",
    title="What the median stands",
    statement="If f of N workers send anything, N odd, the squared distance of the coordinate-wise median from the mean"
    " of the honest messages is at most (N - 1)/(N + 1 - 2f) times their own mean squared distance from it.",
    latex=r"\|\mathrm{med}-\bar x\|^2\le\frac{N-1}{N+1-2f}\cdot\frac1{N-f}\sum_{i\ \mathrm{honest}}\|x_i-\bar x\|^2",
    source="derived; in one dimension Boyd, 1971, and Hawkins, JASA 1971, on the spread of ordered numbers",
    kind="tight",
    tight_where="the liars far above, (N - 1)/2 honest messages at one point and the others at another",
    proof="The median is at most the honest number of rank k = (N + 1)/2; the h - k + 1 honest ones from it on pull"
    " their mean up, and the k - 1 others pay for it in the variance.",
    bound=bounds.median_deviation,
    subject=median,
    mutants={
        "the mean": lambda honest, lies: np.concatenate([honest, lies]).mean(axis=0),
        "the rank above the middle": lambda honest, lies: np.sort(np.concatenate([honest, lies]), axis=0)[
            (len(honest) + len(lies) + 1) // 2
        ],
        "one more liar than is counted": lambda honest, lies: median(honest, np.concatenate([lies, lies[:1]])),
    },
)
def _(context):
    checks, tries, rng = [], context.samples(2000, 300), np.random.default_rng(context.stream())
    for workers, bad in ((9, 2), (9, 4), (15, 3)):
        square = bounds.median_deviation(workers, bad) ** 2
        honest = np.where(np.arange(workers - bad) < (workers - 1) // 2, 0.0, 1.0)[:, None]
        checks.append(
            identity(f"worst case, squared, N={workers}, f={bad}", lied_to(context.subject, honest, bad), square)
        )
        drawn = (rng.standard_normal((workers - bad, 5)) ** 3 for _ in range(tries))
        worst = max(lied_to(context.subject, honest, bad) for honest in drawn)
        checks.append(upper(f"largest of {tries} random ones, N={workers}, f={bad}", exactly(worst), square))
    return Measurement(*checks, samples=3 * tries)


@claim(
    "robust.price",
    title="What the median costs where nobody lies",
    statement="The median of N normal numbers has pi/2 times the variance of their mean for large N, and 1.346 times"
    " for N = 3.",
    latex=r"N\,\mathrm{Var}(\mathrm{med})/\sigma^2\to\tfrac{\pi}{2}",
    source="Laplace; the density of a middle order statistic",
    kind="equality",
    proof="The middle of N = 2m + 1 numbers has the density proportional to (F (1 - F))^m f; with that of the"
    " normal law, integrated.",
    bound=bounds.normal_median_variance,
    subject=lambda draws: np.median(draws, axis=1),
    mutants={
        "the mean": lambda draws: draws.mean(axis=1),
        "the median of all but two": lambda draws: np.median(draws[:, 2:], axis=1),
        "the middle of the range": lambda draws: (draws.min(axis=1) + draws.max(axis=1)) / 2,
    },
)
def _(context):
    checks, tries, rng = [], context.samples(400_000, 200_000), np.random.default_rng(context.stream())
    for workers in (3, 21):
        found = context.subject(rng.standard_normal((tries, workers)))
        square: Interval = mean_interval(workers * found * found, context.level(2))
        checks.append(equality(f"N Var(median), N={workers}", square, bounds.normal_median_variance(workers)))
    many = bounds.normal_median_variance(10_001)
    checks.append(identity("N Var(median), computed for N=10001, and pi/2", many, np.pi / 2, tolerance=1e-4))
    return Measurement(*checks, samples=2 * tries, note=f"intervals at level {LEVEL} together")
