"""A claim of one's own: N workers deal out the coordinates among themselves, as one deals cards.

For N k = d this is Perm-K of Szlendak, Tyurin, Richtarik, "Permutation compressors for provably faster distributed
nonconvex optimization" (ICLR 2022).
"""

import numpy as np

from theory.claims import claim, equality, formula


@formula("1 <= k <= d / workers", "0 <= square_of_mean <= mean_square")
def dealt_error(d: int, k: int, workers: int, mean_square: float, square_of_mean: float) -> float:
    r"""Error of the mean of N messages with k dealt coordinates each.

    Setting: N workers share out random coordinates, k for each, and no coordinate is sent twice; Q(v) is what is sent,
    times d/k.
    Statement: the mean of the messages errs by d/(k N) times the mean squared norm, less the square of the mean.
    Kind: identity.
    Latex: \mathbb{E}\|\tfrac1N\sum_i Q_i(v_i)-\bar v\|^2 = \tfrac{d}{kN}\,\tfrac1N\sum_i\|v_i\|^2-\|\bar v\|^2
    Proof: At a coordinate only one worker speaks, so the square of the mean has no mixed terms:
    E||mean||^2 = (k/d) (d/k)^2 sum_i ||v_i||^2/N^2.  The mean is unbiased: subtract its square.
    Source: derived; Szlendak, Tyurin, Richtarik, ICLR 2022, where N k = d.
    mean_square: (1/N) sum_i ||v_i||^2.
    square_of_mean: The square of the mean's norm.

    >>> dealt_error(d=6, k=1, workers=3, mean_square=1.0, square_of_mean=0.5)
    1.5
    """
    return d / (k * workers) * mean_square - square_of_mean


def dealt(rng, d, k, workers):
    """Which coordinates each worker sends, one row for each: a shuffled pack, k cards for everyone."""
    return rng.permutation(d) // k == np.arange(workers)[:, None]


def own(rng, d, k, workers):
    return np.array([rng.permutation(d) < k for _ in range(workers)])


@claim(
    "mean.dealt",
    of=dealt_error,
    subject=dealt,
    mutants={
        "everybody draws alone": own,
        "all draw the same": lambda rng, d, k, workers: own(rng, d, k, 1),
        "one card fewer": lambda rng, d, k, workers: dealt(rng, d, k - 1, workers),
    },
)
def _(context):
    samples, d, k = context.samples(2000), 24, 4
    rng = np.random.default_rng(context.stream())
    for workers in (3, 6):
        v = context.normal(d, "common") + 0.5 * context.normal((workers, d), "own", workers)
        error = [
            np.sum(((v * context.subject(rng, d, k, workers)).mean(0) * d / k - v.mean(0)) ** 2) for _ in range(samples)
        ]
        predicted = dealt_error(d, k, workers, np.mean(np.sum(v**2, 1)), np.sum(v.mean(0) ** 2))
        yield equality(f"error, N={workers}", error, predicted)
