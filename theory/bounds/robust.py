"""Robust means of the workers' messages (median, geometric median, Krum, mixing): robustness and cost."""

from __future__ import annotations

import math

import numpy as np

from .closed_form import formula


@formula("0 <= bad < workers / 2", "workers % 2 == 1")
def median_deviation(workers: int, bad: int) -> float:
    r"""Maximum distance of the median, with Byzantine workers, from the mean of the honest numbers.

    Title: Robustness of the median.
    Setting: N numbers, N odd, of which f < N/2 may be arbitrary; the other N - f have the mean m and the standard
    deviation s (divided by N - f). For vectors, coordinate by coordinate.
    Statement: If f of N workers send arbitrary messages, N odd, the squared distance of the coordinate-wise median from
    the mean of the honest messages is at most (N - 1)/(N + 1 - 2f) times their own mean squared distance from it.
    Kind: tight (all f Byzantine numbers far above, (N - 1)/2 honest ones at one value and the others at a larger one).
    Latex: \|\mathrm{med}-\bar x\|^2\le\frac{N-1}{N+1-2f}\cdot\frac1{N-f}\sum_{i\ \mathrm{honest}}\|x_i-\bar x\|^2
    Attained: the Byzantine messages far above, (N - 1)/2 honest messages at one point and the others at another
    Proof: The median is at most the honest number of rank k = (N + 1)/2; the h - k + 1 honest numbers from that rank on
    raise the honest mean, and the distance to the k - 1 others raises the variance.
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

    Setting: N independent numbers with the law N(m, sigma^2), N odd.
    Statement: The value is ``N Var(median)/sigma^2``; it is 1 for the mean. It grows with N to pi/2.
    Kind: identity.
    Source: the density of a middle order statistic, integrated numerically; the limit is Laplace's.

    Title (price): Cost of the median without Byzantine workers.
    Statement (price): The median of N normal numbers has pi/2 times the variance of their mean for large N, and 1.346
    times for N = 3.
    Latex (price): N\,\mathrm{Var}(\mathrm{med})/\sigma^2\to\tfrac{\pi}{2}
    Proof (price): The middle of N = 2m + 1 numbers has the density proportional to (F (1 - F))^m f; with that of the
    normal law, integrated.
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


@formula("0 <= bad < workers / 2")
def least_robustness(workers: int, bad: int) -> float:
    r"""Smallest robustness factor kappa of any rule against f of N workers; the trimmed mean attains it.

    Setting: F is (f, kappa)-robust if ``||F(x_1, ..., x_N) - m_S||^2 <= kappa (1/|S|) sum over S of ||x_i - m_S||^2``
    for any vectors and every set S of N - f of them with mean m_S.
    Statement: No F is robust with a factor below f/(N - 2f).
    Kind: tight (N - 2f honest vectors at one point and f at another, the hostile ones far beyond the N - 2f).
    Latex: \kappa\ge\frac{f}{N-2f}
    Attained: N - 2f honest vectors at one point and f at another
    Proof: Let N - f vectors be 0 and f be v. With S the zeros F is 0; with S the f and N - 2f zeros m_S = f v/(N - f)
    and the spread is f (N - 2f)/(N - f)^2 ||v||^2.
    Source: Allouah et al., "Fixing by mixing: a recipe for optimal Byzantine ML under heterogeneity", AISTATS 2023,
    from memory; the proof is derived.

    Title (trimmed-mean): The trimmed mean has the smallest robustness factor.
    Statement (trimmed-mean): The coordinate-wise mean without the f smallest and the f largest numbers is (f, kappa)-
    robust with kappa = f/(N - 2f), and with no smaller factor.
    Latex (trimmed-mean): \|\mathrm{TM}-\bar x_S\|^2\le\frac{f}{N-2f}\cdot\frac1{N-f}\sum_{i\in S}\|x_i-\bar x_S\|^2
    Proof (trimmed-mean): It increases in each number, so it is largest with all hostile numbers above: it is then the
    mean of the N - 2f largest of N - f numbers, by Cauchy and Schwarz at most sqrt(f/(N - 2f)) standard deviations
    above their mean.
    Source (trimmed-mean): derived. Allouah et al. 2023, from memory, have 6f/(N - 2f) (1 + f/(N - 2f)).

    Title (floor): Distance of gradient descent with a trimmed mean from the optimum.
    Statement (floor): Where honest workers have ``||x - b_i||^2/2``, gradient descent with the trimmed mean of the
    gradients ends at a squared distance of at most f/(N - 2f) times the spread of the b_i from their mean.
    Latex (floor): \|x_\infty-\bar b\|^2\le\frac{f}{N-2f}\cdot\frac1{N-f}\sum_{i\in S}\|b_i-\bar b\|^2
    Proof (floor): x tends to the point c with TM(c - b_i) = 0; the factor of the trimmed mean bounds its distance.
    Source (floor): derived.

    workers: N.
    bad: f.

    >>> least_robustness(20, 4)
    0.3333333333333333
    """
    return bad / (workers - 2.0 * bad)


@formula("0 <= bad < workers / 2")
def geometric_median_robustness(workers: int, bad: int) -> float:
    r"""Robustness factor of the geometric median against f of N workers.

    Title: Robustness of the geometric median.
    Setting: as for `least_robustness`; the point with the least sum of distances.
    Statement: It is (f, kappa)-robust with kappa = 4 (1 + f/(N - 2f))^2.
    Kind: upper.
    Latex: \kappa=4\Big(1+\frac{f}{N-2f}\Big)^2
    Proof: The sum of distances at it is at most that at m_S; each of the N - f in S is nearer to m_S than to it by at
    most their distance, and each other vector is farther from m_S than from it by at most the same distance: (N - 2f)
    ||F - m_S|| <= 2 sum over S of ||x_i - m_S||.
    Source: Allouah et al., AISTATS 2023, from memory; the proof is derived.
    workers: N.
    bad: f.

    >>> geometric_median_robustness(20, 0)
    4.0
    """
    return 4.0 * (1.0 + least_robustness(workers, bad)) ** 2


@formula("0 <= bad", "2 * bad + 2 < workers")
def krum_robustness(workers: int, bad: int) -> float:
    r"""Robustness factor of Krum against f of N workers.

    Title: Robustness of Krum.
    Setting: as for `least_robustness`; the message with the least sum of squared distances to its N - f - 2 nearest
    others.
    Statement: Krum is (f, kappa)-robust with kappa = (1 + sqrt 2)^2 (N - f)/(N - 2f - 1).
    Kind: upper.
    Latex: \kappa=(1+\sqrt2)^2\,\frac{N-f}{N-2f-1}
    Proof: Its score is at most that of each i in S, hence at most the mean over S of the sums of squared distances
    within S: 2 (N - f) times the spread. At least N - 2f - 1 of its nearest, itself included, are in S: add their
    distances to it and to m_S as vectors.
    Source: derived. Allouah et al., AISTATS 2023, from memory, have 6 (N - f)/(N - 2f) for N - f - 1 nearest others.
    workers: N.
    bad: f.

    >>> round(krum_robustness(20, 0), 3)
    6.135
    """
    return (1.0 + math.sqrt(2.0)) ** 2 * (workers - bad) / (workers - 2.0 * bad - 1.0)


@formula("0 <= bad < workers / 2", "robustness >= 0")
def mixed_robustness(workers: int, bad: int, robustness: float) -> float:
    r"""Robustness factor of a rule against f of N workers after mixing with nearest neighbours.

    Title: Robustness of a rule after mixing with nearest neighbours.
    Setting: as for `least_robustness`; each vector is replaced by the mean of its N - f nearest, itself included, and a
    (f, kappa)-robust rule is applied.
    Statement: Mixing and the rule together are (f, 8f/(N - f) (kappa + 1))-robust.
    Kind: upper.
    Latex: \kappa'=\frac{8f}{N-f}\,(\kappa+1)
    Proof: N_i and S have the same size and differ in at most f vectors, and those of N_i are nearer to x_i: the mixed
    y_i, i in S, have a mean squared distance of at most 8f/(N - f) spreads from m_S. This is their spread and the
    square of the distance of their mean; Cauchy and Schwarz give the factor kappa + 1.
    Source: Allouah et al., AISTATS 2023, Lemma 1, from memory; the proof is derived.
    workers: N.
    bad: f.
    robustness: kappa.

    >>> mixed_robustness(20, 4, least_robustness(20, 4))
    2.6666666666666665
    """
    return 8.0 * bad / (workers - bad) * (robustness + 1.0)
