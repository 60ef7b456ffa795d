"""Stragglers: the time of the k fastest of n workers, the best k, and the bias of their mean."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core import require
from ..closed_form import formula
from ..sgd.rates import sgd_constant_step_floor

MOST_WORKERS = 20  # for sums over all subsets


@formula("shift >= 0", "rate > 0", "1 <= k <= n")
def exponential_order_mean(n: int, k: int, *, shift: float, rate: float) -> float:
    r"""Mean of the k-th smallest of n shifted exponential times.

    Title: The k-th smallest of n exponential times.
    Setting: X_i = s + Exp(mu), i.i.d.
    Statement: For X_i = s + Exp(mu), E X_(k) = s + (H_n - H_{n-k})/mu and Var X_(k) = sum_{j<=k} 1/(mu (n-j+1))^2.
    Kind: identity.
    Latex: \mathbb{E}X_{(k)}=s+\frac{H_n-H_{n-k}}{\mu}
    Proof: While j workers remain, the next one arrives after Exp(j mu), independent of the past.
    Source: Renyi's representation, 1953.
    n, k: 1 <= k <= n.
    shift: s.
    rate: mu.

    >>> exponential_order_mean(2, 2, shift=1.0, rate=0.5)  # 1 + (1/2 + 1)/0.5
    4.0
    """
    return shift + math.fsum(1.0 / (n - j + 1) for j in range(1, k + 1)) / rate


@formula("rate > 0", "1 <= k <= n")
def exponential_order_variance(n: int, k: int, *, rate: float) -> float:
    """Variance of the k-th smallest of n (shifted) exponential times.

    Setting: X_i = s + Exp(mu), i.i.d.
    Statement: Var X_(k) = sum_{j=1}^k 1/(mu (n-j+1))^2, for every s.
    Kind: identity.
    Source: Renyi's representation, 1953.
    n, k: 1 <= k <= n.
    rate: mu.

    >>> exponential_order_variance(2, 2, rate=0.5)  # (1/4 + 1)/0.25
    5.0
    """
    return math.fsum(1.0 / (n - j + 1) ** 2 for j in range(1, k + 1)) / rate**2


def _pareto_moment(n: int, k: int, power: float, shape: float, scale: float) -> float:
    """E X_(k)^power, infinite unless n - k + 1 > power/a."""
    if n - k + 1 <= power / shape:
        return math.inf
    return scale**power * math.prod((n - j + 1) / (n - j + 1 - power / shape) for j in range(1, k + 1))


@formula("shape > 0", "scale > 0", "1 <= k <= n")
def pareto_order_mean(n: int, k: int, *, shape: float, scale: float = 1.0) -> float:
    r"""Mean of the k-th smallest of n Pareto times.

    Title: The k-th smallest of n Pareto times.
    Setting: P(X_i > x) = (x_m/x)^a for x >= x_m, i.i.d.
    Statement: For P(X > x) = (x_m/x)^a, E X_(k) = x_m prod_{j<=k} (n-j+1)/(n-j+1-1/a), and the second moment is the
    same with 2/a.
    Kind: identity.
    Latex: \mathbb{E}X_{(k)}=x_m\prod_{j=1}^{k}\frac{n-j+1}{n-j+1-1/a}
    Attained: everywhere; finite iff n - k + 1 > 1/a (the variance: 2/a)
    Proof: log(X/x_m) is Exp(a): a product of independent factors.
    Source: derived: log(X/x_m) is Exp(a), so by Renyi's representation X_(k) is a product of independent factors.
    n, k: 1 <= k <= n.
    shape: a.
    scale: x_m.

    Returns
    -------
    float
        Infinite unless n - k + 1 > 1/a.

    >>> pareto_order_mean(2, 1, shape=1.0), pareto_order_mean(2, 2, shape=1.0)  # 2/(2 - 1), and too heavy a tail
    (2.0, inf)
    """
    return _pareto_moment(n, k, 1.0, shape, scale)


@formula("shape > 0", "scale > 0", "1 <= k <= n")
def pareto_order_variance(n: int, k: int, *, shape: float, scale: float = 1.0) -> float:
    """Variance of the k-th smallest of n Pareto times.

    Setting: as for :func:`pareto_order_mean`.
    Statement: Var X_(k) = E X_(k)^2 - (E X_(k))^2 with E X_(k)^2 = x_m^2 prod_{j=1}^k (n-j+1)/(n-j+1-2/a), finite iff
    n - k + 1 > 2/a.
    Kind: identity.
    Source: derived, as pareto_order_mean.
    n, k: 1 <= k <= n.
    shape, scale: a and x_m.

    Returns
    -------
    float
        Infinite if the second moment is infinite.

    >>> pareto_order_variance(1, 1, shape=4.0)  # 2 - (4/3)^2
    0.2222
    """
    second = _pareto_moment(n, k, 2.0, shape, scale)
    return second - _pareto_moment(n, k, 1.0, shape, scale) ** 2 if math.isfinite(second) else math.inf


@formula("0 <= shift_rate < inf")
def fastest_fraction(shift_rate: float) -> float:
    r"""Optimal fraction of the workers to wait for, with many workers.

    Title: Number of workers to wait for.
    Setting: times s + Exp(mu); a round waits for k = kappa n of n workers, n large; the number of rounds is
    proportional to 1/k.
    Statement: If the number of rounds is proportional to 1/k, E X_(k)/k is smallest at k = kappa n for many workers,
    with kappa/(1-kappa) + log(1-kappa) = s mu; for n = 100 the best k differs from it by at most 1.
    Kind: upper (the limit of :func:`fastest_k`/n).
    Latex: \frac{\kappa}{1-\kappa}+\log(1-\kappa)=s\mu
    Attained: at k = kappa n
    Proof: H_n - H_{n-k} is about -log(1-kappa); differentiate (s mu - log(1-kappa))/kappa.
    Source: derived: H_n - H_{n-k} -> -log(1-kappa); the derivative of (s mu - log(1-kappa))/kappa.
    shift_rate: s mu.

    Returns
    -------
    float
        kappa in [0, 1).

    Raises
    ------
    ValueError
        If ``shift_rate`` is negative.

    >>> fastest_fraction(1.0)  # 0.682/0.318 + log(0.318) = 1.00
    0.6822
    """
    low, high = 0.0, shift_rate + 1.0 + 2.0 * math.sqrt(shift_rate)  # of y = -log(1 - kappa): e^y - 1 - y = s mu

    def rise(y: float) -> float:
        if y > 1.0:
            return math.expm1(min(y, 700.0)) - y
        return math.fsum(y**k / math.factorial(k) for k in range(2, 20))  # without the cancellation of e^y - 1 - y

    while low < (mid := 0.5 * (low + high)) < high:  # until they are neighbours
        low, high = (mid, high) if rise(mid) < shift_rate else (low, mid)
    return -math.expm1(-low)


@formula("n >= 1", "one of rate, shape", "shift >= 0", "rate > 0", "shape > 0")
def fastest_k(n: int, *, shift: float = 0.0, rate: float | None = None, shape: float | None = None) -> int:
    """Number k of n workers to wait for, if the number of rounds is proportional to 1/k.

    Setting: times s + Exp(mu) (``rate``) or Pareto with x_m = 1 (``shape``).
    Statement: the k that minimises E X_(k)/k, the smallest one if there are several.
    Kind: identity.
    Source: derived.
    shift, rate (float): s, at least 0, and mu, above 0.
    shape (float): a, above 0, in place of ``rate``.

    Raises
    ------
    ValueError
        If an argument is outside its domain, if not exactly one of ``rate`` and ``shape`` is given, or if no order
        statistic has a mean.

    >>> fastest_k(2, shift=0.0, rate=1.0), fastest_k(2, shift=9.0, rate=1.0)  # 1/2 < (3/2)/2; 9.5 > 10.5/2
    (1, 2)
    """
    if rate is not None:
        times = [exponential_order_mean(n, k, shift=shift, rate=rate) / k for k in range(1, n + 1)]
    else:
        assert shape is not None
        times = [pareto_order_mean(n, k, shape=shape) / k for k in range(1, n + 1)]
        require(math.isfinite(times[0]), "shape", shape, f"a number above 1/n = {1 / n:.3g}: else no time has a mean")
    return 1 + min(range(n), key=times.__getitem__)


@formula("accuracy > 0", "k >= 1", "step * mu < 2", "step > 0")
def fastest_rounds(accuracy: float, k: int, *, mu: float, step: float, variance: float, distance: float) -> float:
    r"""Number of rounds of fastest-k SGD on the isotropic quadratic until the mean squared distance is ``accuracy``.

    Setting: f = (mu/2)||x||^2, the mean of k workers' gradients mu x + noise, E||noise||^2 = sigma^2 each, identically
    distributed workers, constant step size gamma < 2/mu; one round takes E X_(k) on average, independent of the
    gradients.
    Statement: E||x_t||^2 = r^t ||x_0||^2 + (1 - r^t) phi/k with r = (1 - gamma mu)^2 and the floor phi/k, so t =
    log((eps - phi/k)/(||x_0||^2 - phi/k))/log r; infinite if eps <= phi/k. The wall-clock time is t E X_(k).
    Kind: identity (t as a real number).
    Source: derived; :func:`sgd_constant_step_exact <theory.bounds.sgd.rates.sgd_constant_step_exact>` with variance
    sigma^2/k.

    Title (wall-clock): Wall-clock time of fastest-k SGD.
    Statement (wall-clock): On (mu/2)||x||^2, t rounds that wait for k of n workers give E||x_t||^2 = r^t ||x_0||^2 + (1
    - r^t) gamma sigma^2/(k mu (2 - gamma mu)), r = (1 - gamma mu)^2, after t E X_(k) seconds on average.
    Latex (wall-clock): t=\frac{\log\frac{\epsilon-\phi/k}{\|x_0\|^2-\phi/k}}{\log
    r},\quad\text{seconds}=t\,\mathbb{E}X_{(k)}
    Proof (wall-clock): sgd.constant-step with the variance of a mean of k; the set of the fastest does not depend on
    the gradients.
    Source (wall-clock): derived.

    accuracy: eps.
    mu, step: Above 0, step < 2/mu.
    variance, distance: sigma^2 of one worker and ||x_0||^2.

    Returns
    -------
    float
        0 if the start has the accuracy.

    >>> fastest_rounds(1.0, 4, mu=1.0, step=0.5, variance=0.0, distance=16.0)  # 16/4^2 = 1
    2.0
    >>> fastest_rounds(1.0, 1, mu=1.0, step=0.5, variance=3.0, distance=16.0)  # the floor is 0.5 3/1.5 = 1
    inf
    """
    floor = sgd_constant_step_floor(mu, step, variance / k)
    if distance <= accuracy:
        return 0.0
    if accuracy <= floor:
        return math.inf
    lost = step * mu * (2.0 - step * mu)  # 1 - r
    return math.log((accuracy - floor) / (distance - floor)) / math.log1p(-lost) if lost < 1.0 else 1.0


@formula("vector(rates)", "rates > 0", f"count(rates) <= {MOST_WORKERS}", "1 <= k <= count(rates)")
def inclusion_probabilities(k: int, rates: ArrayLike) -> np.ndarray:
    r"""Probability of each worker to be among the k fastest.

    Setting: independent times s + Exp(mu_i) with one s and rates that may differ.
    Statement: P(S | the first j are S without i) = mu_i/(sum of the remaining rates), recursively over all sets; pi_i =
    P(i in the set of k). For k = 1, pi_i = mu_i/sum mu; the sum of all pi_i is k.
    Kind: identity.
    Source: derived: exponential times are memoryless.

    Title (inclusion): Probability of being among the fastest.
    Statement (inclusion): With rates mu_i, a sum over all sets gives the probability that worker i is among the k
    fastest: each step adds one of the remaining workers with a probability proportional to its rate.
    Latex (inclusion): P(S)=\sum_{i\in S}P(S\setminus\{i\})\,\frac{\mu_i}{\mu_i+\sum_{j\notin S}\mu_j}
    Proof (inclusion): Exponential times are memoryless.

    Title (bias): The mean of the fastest workers is biased.
    Statement (bias): Plain averaging of the k fastest workers' gradients minimises sum_i (pi_i/k) f_i instead of the
    mean of all f_i.
    Latex (bias): \mathbb{E}\,\frac1k\sum_{i\in S}g_i=\sum_i\frac{\pi_i}{k}\,g_i
    Proof (bias): E of the indicator of i in S is pi_i, and the set of the fastest does not depend on the gradients.

    Source (inclusion, bias): derived.

    k: From 1 to n.
    rates (array_like, shape (n,)): The mu_i, above 0; at most 20 of them, since the sum runs over all sets.

    Returns
    -------
    numpy.ndarray, shape (n,)

    >>> inclusion_probabilities(1, [1.0, 3.0]), inclusion_probabilities(2, [1.0, 3.0])
    (array([0.25, 0.75]), array([1., 1.]))
    """
    rates = np.asarray(rates, float)
    n = rates.size
    sets = {0: 1.0}
    for _ in range(int(k)):
        grown: dict[int, float] = {}
        for chosen, probability in sets.items():
            left = [i for i in range(n) if not chosen >> i & 1]
            total = math.fsum(rates[i] for i in left)
            for i in left:
                grown[chosen | 1 << i] = grown.get(chosen | 1 << i, 0.0) + probability * rates[i] / total
        sets = grown
    return np.array([math.fsum(p for chosen, p in sets.items() if chosen >> i & 1) for i in range(n)])


@formula("vector(probabilities)", "0 < probabilities <= 1 + 1e-12")
def horvitz_thompson_weights(probabilities: ArrayLike) -> np.ndarray:
    r"""Weights with which the sum of the fastest gradients is an unbiased estimate of the mean of all.

    Title: Weights that remove the bias.
    Setting: worker i is used with probability pi_i > 0, independent of its gradient.
    Statement: With weights 1/(n pi_i), pi_i the probability that worker i is used, the fastest workers' gradients have
    the mean of all as their expectation. Plain averaging, 1/k each, has the expectation sum_i (pi_i/k) g_i instead,
    which is the same for all g only if pi_i = k/n for all i.
    Kind: identity.
    Latex: \mathbb{E}\sum_{i\in S}\frac{g_i}{n\pi_i}=\frac1n\sum_ig_i
    Proof: E of the indicator of i in S is pi_i.
    Source: [horvitz1952generalization].
    probabilities (array_like, shape (n,)): The pi_i in (0, 1].

    Returns
    -------
    numpy.ndarray, shape (n,)
        1/(n pi_i).

    Raises
    ------
    ValueError
        If a probability is outside (0, 1].

    >>> horvitz_thompson_weights([0.25, 0.5])
    array([2., 1.])
    """
    pi = np.asarray(probabilities, float)
    return 1.0 / (pi.size * pi)
