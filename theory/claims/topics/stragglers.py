"""Claims about stragglers: order statistics, the number to wait for, wall clock, and the bias of the fastest."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...cluster.stragglers import Pareto, ShiftedExponential, race, run_fastest_k
from ...measure import exactly, mean_interval, paired_interval
from ...problems import ridge
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, upper

N = 16
RATES = (1.0, 2.0, 4.0, 8.0, 8.0)
TARGETS = np.array([5.0, -1.0, 3.0, 0.0, 1.0])  # f_i = (x - b_i)^2/2, one row for each worker


def _order_statistics(context, times, ks, mean, variance):
    """Mean and variance of the k-th of N times; ``context.subject`` says which entry is called the k-th."""
    rounds, checks = context.samples(40_000, 20_000), []
    law, place = context.subject(times)
    waits, _ = race(law, workers=N, fastest=N, rounds=rounds, seed=context.stream())
    for k in ks:
        found = waits[:, place(k)]
        level = context.level(2 * len(ks))
        checks.append(equality(f"E X_({k}), n = {N}", mean_interval(found, level), mean(k)))
        squares = (found - mean(k)) ** 2
        checks.append(equality(f"Var X_({k}), n = {N}", mean_interval(squares, level), variance(k)))
    return Measurement(*checks, samples=rounds)


@claim(
    "stragglers.exponential",
    title="The k-th of n exponential times",
    statement="For X_i = s + Exp(mu), E X_(k) = s + (H_n - H_{n-k})/mu and Var X_(k) = sum_{j<=k} 1/(mu (n-j+1))^2.",
    latex=r"\mathbb{E}X_{(k)}=s+\frac{H_n-H_{n-k}}{\mu}",
    source="Renyi, On the theory of order statistics, 1953 (restated)",
    kind="equality",
    tight_where="everywhere",
    proof="While j workers are left, the next one comes after Exp(j mu), independent of the past.",
    bound=bounds.exponential_order_mean,
    subject=lambda times: (times, lambda k: k - 1),
    mutants={
        "one worker too many": lambda times: (times, lambda k: min(k, N - 1)),
        "the shift forgotten": lambda times: (times._replace(shift=0.0), lambda k: k - 1),
        "a rate 10 % too high": lambda times: (times._replace(rate=1.1 * times.rate), lambda k: k - 1),
    },
)
def _(context):
    s, mu = 1.0, 2.0
    return _order_statistics(
        context,
        ShiftedExponential(s, mu),
        (8, 1, 14, 16),
        lambda k: bounds.exponential_order_mean(N, k, shift=s, rate=mu),
        lambda k: bounds.exponential_order_variance(N, k, rate=mu),
    )


@claim(
    "stragglers.pareto",
    title="The k-th of n Pareto times",
    statement="For P(X > x) = (x_m/x)^a, E X_(k) = x_m prod_{j<=k} (n-j+1)/(n-j+1-1/a), and the second moment is the"
    " same with 2/a.",
    latex=r"\mathbb{E}X_{(k)}=x_m\prod_{j=1}^{k}\frac{n-j+1}{n-j+1-1/a}",
    source="derived",
    kind="equality",
    tight_where="everywhere; finite iff n - k + 1 > 1/a (the variance: 2/a)",
    proof="log(X/x_m) is Exp(a): a product of independent factors.",
    bound=bounds.pareto_order_mean,
    subject=lambda times: (times, lambda k: k - 1),
    mutants={
        "one worker too many": lambda times: (times, lambda k: min(k, N - 1)),
        "the shape off by one": lambda times: (Pareto(times.shape + 1.0, times.scale), lambda k: k - 1),
        "exponential times with the same mean": lambda times: (
            ShiftedExponential(0.0, (times.shape - 1.0) / (times.shape * times.scale)),
            lambda k: k - 1,
        ),
    },
)
def _(context):
    a, scale = 4.0, 0.5  # the k below leave at least 4 workers behind: moments up to the 16th exist
    return _order_statistics(
        context,
        Pareto(a, scale),
        (8, 1, 12),
        lambda k: bounds.pareto_order_mean(N, k, shape=a, scale=scale),
        lambda k: bounds.pareto_order_variance(N, k, shape=a, scale=scale),
    )


@claim(
    "stragglers.best-k",
    title="How many workers to wait for",
    statement="Where k gradients save k times as many rounds, the least E X_(k)/k is at k = kappa n for many workers,"
    " kappa/(1-kappa) + log(1-kappa) = s mu; for n = 100 it is that k to within 1.",
    latex=r"\frac{\kappa}{1-\kappa}+\log(1-\kappa)=s\mu",
    source="derived",
    kind="upper",
    tight_where="at k = kappa n",
    proof="H_n - H_{n-k} is about -log(1-kappa); differentiate (s mu - log(1-kappa))/kappa.",
    bound=bounds.fastest_fraction,
    subject=bounds.fastest_fraction,
    mutants={
        "wait for all": lambda s_mu: 1.0,
        "without the logarithm": lambda s_mu: s_mu / (1.0 + s_mu),
        "wait for a tenth": lambda s_mu: 0.1,
    },
)
def _(context):
    n, rounds, checks = 100, context.samples(4000, 1500), []
    for case, s_mu in enumerate((1.0, 0.5, 2.0)):
        k = min(n, max(1, round(n * context.subject(s_mu))))
        times = ShiftedExponential(s_mu, 1.0)
        waits, _ = race(times, workers=n, fastest=n, rounds=rounds, seed=context.stream(case))
        best = bounds.fastest_k(n, shift=s_mu, rate=1.0)
        label = f"s mu = {s_mu:g}, n = {n}, k = {k}"
        for other in (best // 2, (best + n) // 2, n):
            gain = paired_interval(waits[:, k - 1] / k, waits[:, other - 1] / other, context.level(9))
            checks.append(upper(f"time a gradient less that of k = {other}, {label}", gain, 0.0))
        checks.append(upper(f"distance from the exact k, {label}", exactly(abs(k - best)), 1.0))
    return Measurement(*checks, samples=3 * rounds)


@claim(
    "stragglers.inclusion",
    title="Who is among the fastest",
    statement="With rates mu_i, worker i is among the k fastest with the probability that a sum over all sets gives:"
    " each step adds a worker in proportion to its rate among those that are left.",
    latex=r"P(S)=\sum_{i\in S}P(S\setminus\{i\})\,\frac{\mu_i}{\mu_i+\sum_{j\notin S}\mu_j}",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="Exponential times have no memory.",
    bound=bounds.inclusion_probabilities,
    subject=lambda rates: rates,
    mutants={
        "all workers alike": lambda rates: np.ones(len(rates)),
        "the slow ones twice as fast": lambda rates: np.maximum(2.0, rates),
    },
)
def _(context):
    rounds, checks = context.samples(40_000, 20_000), []
    for k in (2, 3, 1):
        speeds = context.subject(np.array(RATES))
        chosen = race(
            ShiftedExponential(0.5, 1.0),
            workers=len(RATES),
            fastest=k,
            rounds=rounds,
            speeds=speeds,
            seed=context.stream(k),
        )[1]
        predicted = bounds.inclusion_probabilities(k, RATES)
        for i in (0, 3):
            hits = (chosen == i).any(axis=1).astype(float)
            interval = mean_interval(hits, context.level(6))
            checks.append(equality(f"P(worker {i} counts), k = {k}", interval, predicted[i]))
    return Measurement(*checks, samples=3 * rounds)


@claim(
    "stragglers.wall-clock",
    title="Wall clock of fastest-k SGD",
    statement="On (mu/2)||x||^2, t rounds that wait for k of n workers give E||x_t||^2 = r^t ||x_0||^2 + (1 - r^t)"
    " gamma sigma^2/(k mu (2 - gamma mu)), r = (1 - gamma mu)^2, after t E X_(k) seconds on average.",
    latex=r"t=\frac{\log\frac{\epsilon-\phi/k}{\|x_0\|^2-\phi/k}}{\log r},\quad\text{seconds}=t\,\mathbb{E}X_{(k)}",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="sgd.constant-step with the variance of a mean of k; who is fast does not depend on the gradients.",
    bound=bounds.fastest_rounds,
    subject=lambda k, step: {"fastest": k, "step": step},
    mutants={
        "one worker less": lambda k, step: {"fastest": k - 1, "step": step},
        "two workers more": lambda k, step: {"fastest": k + 2, "step": step},
        "a step 10 % too long": lambda k, step: {"fastest": k, "step": 1.1 * step},
    },
)
def _(context):
    d, mu, sigma2, step, start, n, k, rounds = 10, 2.0, 30.0, 0.1, 40.0, 8, 4, 25
    replicas, shift, rate = context.samples(2000, 1000), 0.5, 1.0
    result = run_fastest_k(
        quadratic(np.full(d, mu), covariance=sigma2 / d),
        workers=n,
        rounds=rounds,
        times=ShiftedExponential(shift, rate),
        x0=np.full(d, np.sqrt(start / d)),
        replicas=replicas,
        seed=context.stream(),
        record_every=rounds,
        **context.subject(k, step),
    )
    distance = bounds.sgd_constant_step_exact(rounds, mu=mu, step=step, variance=sigma2 / k, distance=start)
    seconds = rounds * bounds.exponential_order_mean(n, k, shift=shift, rate=rate)
    needed = bounds.fastest_rounds(distance, k, mu=mu, step=step, variance=sigma2, distance=start)
    level = context.level(2)
    return Measurement(
        equality(
            f"E||x_t||^2, t = {rounds}, k = {k} of {n}",
            mean_interval(2.0 / mu * result.replica_values[-1], level),
            distance,
        ),
        equality("seconds", mean_interval(result.replica_seconds[-1], level), seconds),
        identity("rounds to that distance, by the formula", needed, rounds),
        samples=replicas,
    )


def _fastest_mean(context, weights, speeds, checks=1):
    """Where x settles on the mean of (x - b_i)^2/2 with one row for each worker: E x_T / (1 - (1-eta)^T)."""
    replicas, rounds, step = context.samples(4000, 2000), 20, 0.2
    problem = ridge((np.ones((TARGETS.size, 1)), TARGETS), l2=0.0)
    result = run_fastest_k(
        problem,
        workers=TARGETS.size,
        fastest=2,
        rounds=rounds,
        step=step,
        speeds=speeds,
        times=ShiftedExponential(0.5, 1.0),
        weights=weights,
        shards="contiguous",
        replicas=replicas,
        seed=context.stream(),
        record_every=rounds,
    )
    scale = 1.0 - (1.0 - step) ** rounds
    interval = mean_interval(result.last[:, 0], context.level(checks)).scaled(1.0 / scale)
    return interval, replicas, result.weights


@claim(
    "stragglers.bias",
    title="The fastest are not everybody",
    statement="Plain averaging of the k fastest workers' gradients minimises sum_i (pi_i/k) f_i instead of the mean of"
    " all f_i.",
    latex=r"\mathbb{E}\,\frac1k\sum_{i\in S}g_i=\sum_i\frac{\pi_i}{k}\,g_i",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="E of the indicator of i in S is pi_i, and who is fast does not depend on the gradients.",
    bound=bounds.inclusion_probabilities,
    subject=("plain", RATES),
    mutants={
        "all workers alike: no bias": ("plain", None),
        "weights 1/(n pi_i): no bias": ("inclusion", RATES),
    },
)
def _(context):
    interval, replicas, _ = _fastest_mean(context, *context.subject)
    predicted = float(bounds.inclusion_probabilities(2, RATES) @ TARGETS) / 2.0
    note = f"the minimum of the mean is at {TARGETS.mean():g}"
    return Measurement(equality("where x settles, k = 2 of 5", interval, predicted), samples=replicas, note=note)


@claim(
    "stragglers.horvitz-thompson",
    title="The cure of the bias",
    statement="With weights 1/(n pi_i), pi_i the probability that worker i counts, the fastest workers' gradients have"
    " the mean of all as their expectation.",
    latex=r"\mathbb{E}\sum_{i\in S}\frac{g_i}{n\pi_i}=\frac1n\sum_ig_i",
    source="Horvitz, Thompson, A generalization of sampling without replacement, JASA 1952",
    bibtex="horvitz1952generalization",
    kind="equality",
    tight_where="everywhere",
    proof="E of the indicator of i in S is pi_i.",
    bound=bounds.horvitz_thompson_weights,
    subject=lambda weights: weights,
    mutants={
        "plain averaging": lambda weights: np.full(weights.size, 0.5),
        "probabilities of other rates": lambda weights: bounds.horvitz_thompson_weights(
            bounds.inclusion_probabilities(2, RATES[::-1])
        ),
    },
)
def _(context):
    settled, replicas, used = _fastest_mean(context, "inclusion", RATES, checks=2)
    rounds = context.samples(40_000, 20_000)
    chosen = race(
        ShiftedExponential(0.5, 1.0),
        workers=TARGETS.size,
        fastest=2,
        rounds=rounds,
        speeds=RATES,
        seed=context.stream("one step"),
    )[1]
    weighted = (context.subject(used) * TARGETS)[chosen].sum(axis=1)
    predicted = float(TARGETS.mean())
    return Measurement(
        equality("one step from 0, k = 2 of 5, with its weights", mean_interval(weighted, context.level(2)), predicted),
        equality("where x settles", settled, predicted),
        samples=replicas + rounds,
    )
