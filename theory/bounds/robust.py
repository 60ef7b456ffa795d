"""Robustness and cost of the median of the workers' messages."""

from __future__ import annotations

import math

import numpy as np

from .closed_form import formula


@formula("0 <= bad < workers / 2", "workers % 2 == 1")
def median_deviation(workers: int, bad: int) -> float:
    r"""Maximum distance of the median, with Byzantine workers, from the mean of the honest numbers.

    Title: What the median stands.
    Setting: N numbers, N odd, of which f < N/2 may be arbitrary; the other N - f have the mean m and the standard
    deviation s (divided by N - f). For vectors, coordinate by coordinate.
    Statement: If f of N workers send anything, N odd, the squared distance of the coordinate-wise median from the mean
    of the honest messages is at most (N - 1)/(N + 1 - 2f) times their own mean squared distance from it.
    Kind: tight (all f bad ones far above, (N - 1)/2 honest ones at one value and the others at a larger one).
    Latex: \|\mathrm{med}-\bar x\|^2\le\frac{N-1}{N+1-2f}\cdot\frac1{N-f}\sum_{i\ \mathrm{honest}}\|x_i-\bar x\|^2
    Attained: the liars far above, (N - 1)/2 honest messages at one point and the others at another
    Proof: The median is at most the honest number of rank k = (N + 1)/2; the h - k + 1 honest ones from it on pull
    their mean up, and the k - 1 others pay for it in the variance.
    Source: derived: the median is at most the honest number of rank k = (N + 1)/2, and that of h numbers is at most ``m
    + s sqrt((k - 1)/(h - k + 1))`` (Boyd, Univ. Beograd Publ. Elektrotehn. Fak. 365, 1971; Hawkins, JASA 1971).
    workers: N, odd.
    bad: f.

    Returns
    -------
    float
        In units of s.

    >>> median_deviation(9, 4)
    2.0
    """
    return math.sqrt((workers - 1.0) / (workers + 1.0 - 2.0 * bad))


@formula("workers == inf or workers % 2 == 1")
def normal_median_variance(workers: float) -> float:
    r"""Cost of the median without Byzantine workers: N times the variance of the median of N normal numbers.

    Title (price): What the median costs where nobody lies.
    Setting: N independent numbers with the law N(m, sigma^2), N odd.
    Statement: ``N Var(median)/sigma^2`` is what is returned; 1 would be the mean's. It grows with N to pi/2.
    Statement (price): The median of N normal numbers has pi/2 times the variance of their mean for large N, and 1.346
    times for N = 3.
    Kind: identity.
    Latex (price): N\,\mathrm{Var}(\mathrm{med})/\sigma^2\to\tfrac{\pi}{2}
    Proof (price): The middle of N = 2m + 1 numbers has the density proportional to (F (1 - F))^m f; with that of the
    normal law, integrated.
    Source: the density of a middle order statistic, integrated numerically; the limit is Laplace's.
    Source (price): Laplace; the density of a middle order statistic.
    workers (int): N, odd; math.inf gives pi/2.

    Raises
    ------
    ValueError
        If N is even or below 1.

    >>> round(normal_median_variance(3), 4), round(normal_median_variance(101), 4)
    (1.346, 1.5641)
    """
    if workers == math.inf:
        return math.pi / 2.0
    half = (workers - 1) / 2.0
    from scipy.special import gammaln, log_ndtr  # slow to import

    width = 12.0 if workers < 10 else 40.0 / math.sqrt(workers)  # more than thirty standard deviations, or all
    x = np.linspace(-width, width, 8001)
    log_constant = gammaln(workers + 1) - 2.0 * gammaln(half + 1) - 0.5 * math.log(2.0 * math.pi)
    density = np.exp(log_constant + half * (log_ndtr(x) + log_ndtr(-x)) - 0.5 * x * x)
    return float(workers * np.sum(x * x * density) * (x[1] - x[0]))
