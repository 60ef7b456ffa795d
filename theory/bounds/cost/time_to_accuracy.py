"""Time to accuracy, and the number of rounds in which each method keeps the rate of parallel SGD.

Time to accuracy is (time of a step) x (steps to the accuracy), or (time of a pass) x (passes).  Gradients are averaged
over the batch of a worker and over the workers.  ``batch`` is B, the rows of *one* worker in a step; all N workers
together see N B rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..closed_form import formula
from ..sgd.averages import averaged_variance

# --- Number of rounds that keep the rate of parallel SGD with batches of one ------------------------------------------

ROUNDS = {
    "parallel SGD": ("T", "every gradient is averaged at once"),
    "local SGD": ("sqrt(N T)", "strongly convex: Stich, ICLR 2019"),
    "local SGD, non-convex": ("N^(3/4) T^(3/4)", "Yu, Yang, Zhu, AAAI 2019"),
    "CR-PSGD": ("log T", "under the PL condition: Yu, Jin, ICML 2019"),
    "CR-PSGD-Catalyst": ("sqrt(N T) log(T/N)", "smooth: Yu, Jin, ICML 2019"),
}


@formula("samples >= 1", "samples >= workers", f"method in {tuple(ROUNDS)}")
def rounds_order(method: str, samples: int, workers: int) -> float:
    r"""Order of the number of rounds in which a method keeps its rate, without constants.

    Title: Rounds in which each method keeps its rate.
    Setting: T gradients for each of N workers; O(1/(N T)) for f - f* where f is strongly convex or PL, O(1/sqrt(N T))
    for ||grad f||^2 where it is neither.
    Statement: With the local steps, batches and budgets of their theorems, parallel SGD takes T rounds, local SGD
    sqrt(N T), or N^(3/4) T^(3/4) without convexity, CR-PSGD log T up to a factor, and CR-PSGD-Catalyst sqrt(N T)
    log(T/N) up to a factor.
    Kind: rate.
    Latex: T,\quad\sqrt{NT},\quad N^{3/4}T^{3/4},\quad\log T,\quad\sqrt{NT}\log(T/N)
    Proof: T/H rounds of local SGD; cr-psgd.rounds; catalyst.rounds.
    Source: [yu2019computation], section 1, where they are compared; [stich2019local]; Yu, Yang, Zhu, AAAI 2019.
    method: A key of ``ROUNDS``.
    samples: T.

    >>> [rounds_order(name, 10_000, 1) for name in ("parallel SGD", "local SGD", "local SGD, non-convex")]
    [10000.0, 100.0, 1000.0]
    """
    T, N = float(samples), float(workers)
    return {
        "parallel SGD": T,
        "local SGD": math.sqrt(N * T),
        "local SGD, non-convex": (N * T) ** 0.75,
        "CR-PSGD": math.log(T),
        "CR-PSGD-Catalyst": math.sqrt(N * T) * math.log(T / N),
    }[method]


# --- Time to accuracy ------------------------------------------------------------------------------------------------


class FewestIterations(NamedTuple):
    """A step size and its number of steps.

    Attributes
    ----------
    step : float
        The step size.
    iterations : float
        The number of steps, not rounded.
    """

    step: float
    iterations: float


@formula("second_moment > 0", "0 < accuracy <= second_moment / (2 * mu ** 2)")
def sgd_iterations(accuracy: float, *, mu: float, second_moment: float, distance: float) -> float:
    r"""Number of steps with a constant step size that suffice for an accuracy.

    Title: Sufficient number of steps.
    Setting: f is mu-strongly convex, E||g||^2 <= M^2 for the applied *mean* g (of N workers' compressed batches:
    :func:`averaged_second_moment <theory.bounds.sgd.averages.averaged_second_moment>`), step eps mu/M^2.
    Statement: With the step eps mu/M^2, (M^2/(2 mu^2 eps)) log(2 ||x_0||^2/eps) steps bring E||x_T - x*||^2 to eps or
    below, where M^2 is the second moment of the applied gradient, compression included.
    Kind: upper.
    Latex: T=\frac{M^2}{2\mu^2\epsilon}\log\frac{2\|x_0-x^*\|^2}{\epsilon}
    Attained: approached on (mu/2)||x||^2 where the noise is far larger than the gradients
    Proof: sgd.constant-step.bound with half of eps for each of its two terms.
    Source: derived from sgd_constant_step: half of eps for each term; [yin2018gradient], Theorem 5 with B = 1.
    accuracy: eps in (0, M^2/(2 mu^2)], so that the step is at most 1/(2 mu).
    distance: ||x_0 - x*||^2.

    Returns
    -------
    float
        0 if the start has the accuracy.

    >>> sgd_iterations(0.5, mu=1.0, second_moment=2.0, distance=math.e / 4)  # 2 log(e)
    2.0
    """
    if distance <= accuracy:
        return 0.0
    return second_moment / (2.0 * mu**2 * accuracy) * math.log(2.0 * distance / accuracy)


def _law(mu: float, step: float, variance: float, omega: float, workers: int, batch: int) -> tuple[float, float]:
    """(1 - r, noise of a step) of a_{t+1} = r a_t + noise."""
    noise = step**2 * averaged_variance(variance, variance, workers=workers, batch=batch, omega=omega)
    share = step * mu
    return share * (2.0 - share * (1.0 + omega / workers)), noise


@formula("steps >= 0", "step * mu * (1 + omega / workers) <= 2", "step > 0")
def compressed_distance(
    steps: int,
    *,
    mu: float,
    step: float,
    variance: float,
    distance: float,
    workers: int = 1,
    batch: int = 1,
    omega: float = 0.0,
) -> float:
    r"""Mean squared distance on the isotropic quadratic with N workers, batches of B and a compressor.

    Title: Steps to an accuracy with compression, workers and batches.
    Setting: f = (mu/2)||x||^2, gradients mu x + noise, E||noise||^2 = sigma^2, each worker compresses the mean of its B
    gradients independently, E Q(v) = v, E||Q(v) - v||^2 = omega ||v||^2, constant step size gamma.
    Statement: On (mu/2)||x||^2, N workers with batches of B and an unbiased compressor with variance exactly omega
    ||v||^2 reach the accuracy after log((eps - a)/(||x_0||^2 - a))/log r steps, r = (1 - gamma mu)^2 + gamma^2 mu^2
    omega/N, a = gamma^2 (1 + omega) sigma^2/(N B (1 - r)).
    Kind: identity (an upper bound where the compressor's variance is at most omega ||v||^2).
    Latex: T=\frac{\log\frac{\epsilon-a}{\|x_0\|^2-a}}{\log r},\quad r=(1-\gamma\mu)^2+\gamma^2\mu^2\frac\omega N
    Attained: everywhere for rand-k
    Proof: E||x - gamma g||^2 = (1 - gamma mu)^2 ||x||^2 + gamma^2 Var g, and sgd.averaging for Var g.
    Source: derived from averaged_variance.
    variance, distance: sigma^2 and ||x_0||^2.
    workers, batch: N and B.
    omega: At least 0; 0 without compression, d/k - 1 for rand-k.

    >>> compressed_distance(1, mu=1.0, step=0.5, variance=2.0, distance=4.0, workers=2, batch=4, omega=2.0)
    2.1875
    """
    lost, noise = _law(mu, step, variance, omega, workers, batch)
    gone = -math.expm1(steps * math.log1p(-lost)) if lost < 1.0 else float(steps > 0)  # 1 - r^T
    return (1.0 - gone) * distance + (gone / lost if lost > 0.0 else float(steps)) * noise


@formula("accuracy > 0")
def iterations_to_accuracy(
    accuracy: float,
    *,
    mu: float,
    step: float,
    variance: float,
    distance: float,
    workers: int = 1,
    batch: int = 1,
    omega: float = 0.0,
) -> float:
    """Number of steps until :func:`compressed_distance` reaches the accuracy.

    Setting: as for :func:`compressed_distance`, with r < 1.
    Statement: T = log((eps - a)/(||x_0||^2 - a))/log r with the floor a = gamma^2 (1+omega) sigma^2/(N B (1 - r));
    infinite if eps <= a or r >= 1.
    Kind: identity (T as a real number).
    Source: derived.
    accuracy: eps.
    mu, step, variance, distance, workers, batch, omega (float or int): As for :func:`compressed_distance`.

    Returns
    -------
    float
        0 if the start has the accuracy.

    >>> iterations_to_accuracy(1.0, mu=1.0, step=0.5, variance=0.0, distance=16.0)  # 16/4^2 = 1
    2.0
    >>> iterations_to_accuracy(1.0, mu=1.0, step=0.5, variance=0.0, distance=8.0, workers=2, omega=2.0)  # r = 1/2
    3.0
    """
    lost, noise = _law(mu, step, variance, omega, workers, batch)
    if distance <= accuracy:
        return 0.0
    if lost <= 0.0:
        return math.inf
    floor = noise / lost
    if accuracy <= floor:
        return math.inf
    return math.log((accuracy - floor) / (distance - floor)) / math.log1p(-lost) if lost < 1.0 else 1.0


@formula("accuracy > 0", "0 < longest <= inf")
def fewest_iterations(
    accuracy: float,
    *,
    mu: float,
    variance: float,
    distance: float,
    workers: int = 1,
    batch: int = 1,
    omega: float = 0.0,
    longest: float = math.inf,
) -> FewestIterations:
    """The constant step size with the fewest steps to the accuracy.

    Setting: as for :func:`compressed_distance`; the step may be limited, for example to about 1/L if another direction
    has the curvature L.
    Statement: the step gamma that minimises :func:`iterations_to_accuracy`; without noise and limit it is
    1/(mu (1 + omega/N)).
    Kind: identity (found on a grid of 2000 step sizes, to 1e-9).
    Source: derived.
    accuracy, mu, variance, distance, workers, batch, omega (float or int): As for :func:`iterations_to_accuracy`.
    longest: The longest allowed step.

    >>> found = fewest_iterations(1.0, mu=1.0, variance=0.0, distance=8.0, workers=1, omega=1.0)  # r = 1/2
    >>> round(found.step, 6), round(found.iterations, 6)
    (0.5, 3.0)
    >>> fewest_iterations(1.0, mu=1.0, variance=0.0, distance=16.0, longest=0.5)  # 16/4^2 = 1
    FewestIterations(step=0.5, iterations=2.0)
    """

    def taken(step: float) -> float:
        return iterations_to_accuracy(
            accuracy, mu=mu, step=step, variance=variance, distance=distance, workers=workers, batch=batch, omega=omega
        )

    # r falls and the floor rises up to this step: no gain beyond it
    longest = min(longest, 1.0 / (mu * (1.0 + omega / workers)))
    # the floor is below eps iff step (noise + mu^2 (1 + omega/N) eps) < 2 mu eps
    noise = averaged_variance(variance, variance, workers=workers, batch=batch, omega=omega)
    limit = 2.0 * mu * accuracy / (noise + mu**2 * (1.0 + omega / workers) * accuracy)
    longest = min(longest, limit)
    grid = [longest * j / 2000 for j in range(1, 2001)]
    best = min(range(2000), key=lambda j: taken(grid[j]))
    low, high = grid[max(0, best - 1)], grid[min(1999, best + 1)]
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    while high - low > 1e-9 * longest:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if taken(a) <= taken(b) else (a, high)
    step = min((low, high, grid[best]), key=taken)
    return FewestIterations(step, taken(step))


@formula("gradient_squared > 0", "row > 0", "rest >= 0")
def best_batch(
    gradient_squared: float, variance: float, *, row: float, rest: float, workers: int = 1, omega: float = 0.0
) -> float:
    r"""Number of rows of a worker's batch that minimizes the time to an accuracy.

    Title: The batch that minimizes the time to an accuracy.
    Setting: the number of steps is proportional to the second moment of the applied gradient, G^2 (1 + omega/N) +
    (1+omega) sigma^2/(N B) (:func:`sgd_iterations`), and a step takes B c + tau.
    Statement: If the number of steps is proportional to M^2 and a step takes B c + tau, the time is smallest at B* =
    sqrt((1+omega) sigma^2 tau/(G^2 (N + omega) c)).
    Kind: lower.
    Latex: B^*=\sqrt{\frac{(1+\omega)\,\sigma^2\,\tau}{G^2\,(N+\omega)\,c}}
    Attained: at B*
    Proof: A + a B + b/B is smallest at B = sqrt(b/a).
    Source: derived: the product is a constant + G^2 (1 + omega/N) c B + (1+omega) sigma^2 tau/(N B).
    gradient_squared, variance: G^2 = ||grad f||^2, above 0, and sigma^2 of one row.
    row: c, seconds of a gradient of one row.
    rest: tau, the seconds of a step that do not depend on B (start-up, coding, exchange).

    Returns
    -------
    float
        As a real number; 0 if more than one row has no advantage.

    >>> best_batch(1.0, 4.0, row=1.0, rest=9.0)  # sqrt(4 9)
    6.0
    """
    return math.sqrt((1.0 + omega) * variance * rest / (gradient_squared * (workers + omega) * row))


@formula("batch > 0", "row > 0", "rest >= 0")
def utilisation(batch: float, *, row: float, rest: float) -> float:
    """Fraction of the time of a step that gradients take.

    Setting: a step takes B c + tau.
    Statement: B c/(B c + tau).
    Kind: identity.
    Source: derived.
    row: c.
    rest: tau.

    >>> utilisation(3, row=2.0, rest=2.0)
    0.75
    """
    return batch * row / (batch * row + rest)
