"""Claims about Mem-SGD: its memory lemma and Theorem 2.4, where it is useful and where it is vacuous, and the rate."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...compressors.sparsifiers import TopK
from ...measure import exactly, loglog_slope, mean_interval
from ...methods.feedback import ErrorFeedback, NoFeedback
from ...methods.schedules import InverseTime
from ...methods.sgd import ParallelSGD
from ...problems import logistic, max_lipschitz, second_moment, solve
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, rate, upper
from ..mutants.shared import Scaling, WrongFeedback
from .feedback import constant_gradient, memories_after

SOURCE = "Stich, Cordonnier, Jaggi, Sparsified SGD with memory, NeurIPS 2018"


@claim(
    "memsgd.memory",
    title="Mem-SGD's memory",
    statement="With steps proportional to 1/(a + t) and a shift a that alpha allows, E||m_t||^2 <= eta_t^2 (4 alpha/"
    "(alpha - 4)) (d/k)^2 G^2.",
    latex=r"\mathbb{E}\|m_t\|^2\le\eta_t^2\,\frac{4\alpha}{\alpha-4}\,\frac{d^2}{k^2}\,G^2",
    source=f"{SOURCE}, Lemma 3.2, read in a transcript, with the condition ((alpha+1) d/k + rho)/(rho + 1) <= a",
    bibtex="stich2018sparsified",
    kind="upper",
    tight_where="in the limit alpha to infinity, k/d to 0: C(v) = (1 - sqrt(1 - k/d)) v and a constant gradient"
    " reach 4",
    proof="E||m+||^2 <= (1 - k/(2d)) E||m||^2 + (2d/k) eta^2 G^2, and induction; eta falls slowly enough for it.",
    bound=bounds.mem_sgd_memory,
    subject=lambda delta, shift: (Scaling(delta), shift),
    mutants={
        "a compressor that contracts half as much": lambda delta, shift: (Scaling(delta / 2), shift),
        "a shift far below the condition": lambda delta, shift: (Scaling(delta), 2.0),
    },
)
def _(context):
    d, mu, delta, checks = 10, 1.0, 0.02, []
    for alpha, steps in ((500.0, 1000), (500.0, 200), (5.0, 200)):
        shift = bounds.mem_sgd_shift(d, delta * d, alpha)
        compressor, a = context.subject(delta, shift)
        found = memories_after(compressor, InverseTime(8.0, mu, a), constant_gradient(d), 1, steps, 0)[0]
        bound = bounds.mem_sgd_memory(d, delta * d, 8.0 / (mu * (a + steps)), float(d), alpha=alpha)
        label = f"||m_t||^2, constant gradient, k/d={delta}, alpha={alpha:g}, t={steps}"
        checks.append(upper(label, exactly(found), bound))
    return Measurement(*checks)


@claim(
    "memsgd.theorem",
    title="Mem-SGD's Theorem 2.4 where it speaks",
    statement="Steps 8/(mu (a + t)), weights (a + t)^2: E f(xbar_T) - f* <= 4T(T + 2a) G^2/(mu S_T)"
    " + mu a^3 ||x_0 - x*||^2/(8 S_T) + 64 T (1 + 2L/mu) (4 alpha/(alpha - 4)) (d/k)^2 G^2/(mu S_T).",
    latex=r"\mathbb{E}f(\bar x_T)-f^*\le\frac{4T(T+2a)}{\mu S_T}G^2+\frac{\mu a^3}{8S_T}\|x_0-x^*\|^2"
    r"+\frac{64T(1+2L/\mu)}{\mu S_T}\,\frac{4\alpha}{\alpha-4}\,\frac{d^2}{k^2}G^2",
    source=f"{SOURCE}, Theorem 2.4 for one worker; for N synchronous workers derived, by the same proof",
    bibtex="stich2018sparsified",
    kind="upper",
    proof="ef.identity makes x - mean e an SGD iterate; the distance between the two costs (mu + 2L) eta ||m||^2 a"
    " step, which memsgd.memory bounds by O(eta^3); multiplied by the weights, the recursion telescopes.",
    bound=bounds.mem_sgd,
    subject=lambda k: (TopK(k), ErrorFeedback(), 8.0),
    mutants={
        "what was sent never reaches x": lambda k: (TopK(k), WrongFeedback(outside=0.0), 8.0),
        "x moves away from the minimum": lambda k: (TopK(k), WrongFeedback(outside=-1.0), 8.0),
        "steps a thousand times too small": lambda k: (TopK(k), ErrorFeedback(), 0.008),
    },
    see=("memsgd.memory", "ef.identity"),
)
def _(context):
    d, k, workers, mu, lipschitz, noise, shift = 10, 5, 2, 1.0, 1.2, 0.2, 40.0
    replicas, steps = context.samples(200, 50), 500
    compressor, feedback, c = context.subject(k)
    problem = quadratic(np.linspace(mu, lipschitz, d), covariance=noise / d)
    start = np.full(d, (2.0 / d) ** 0.5)
    method = ParallelSGD(compressor, step=InverseTime(c, mu, shift), feedback=feedback, average="quadratic")
    result = run(
        method,
        problem,
        workers=workers,
        steps=steps,
        replicas=replicas,
        x0=start,
        record_every=10,
        seed=context.stream(),
    )
    f0 = float(problem.diagonal @ start**2) / 2.0
    second = 2.0 * lipschitz * f0 + noise  # ||grad f||^2 <= 2 L (f - f*), largest at the start where all is right
    bound = bounds.mem_sgd(
        steps, mu=mu, lipschitz=lipschitz, second_moment=second, distance=float(start @ start), d=d, k=k, shift=shift
    )
    label = f"E f(xbar_T) - f*, top-{k} of {d}, L/mu={lipschitz / mu:g}, N={workers}, T={steps}"
    note = f"f(x_0) - f* = {f0:.3g}, so the bound says something from T of about 200 on"
    return Measurement(upper(label, mean_interval(result.funs), bound, trivial=f0), samples=replicas, note=note)


# --- on RCV1 ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _optimum(data, share):
    dataset = data.dataset if share == 1.0 else data.dataset.split(share, seed=0)[0]
    problem = logistic(dataset, l2=1.0 / dataset.n)
    return problem, solve(problem)


class _Keyed:
    """A data set that the cache identifies by its address."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __hash__(self):
        return id(self.dataset)

    def __eq__(self, other):
        return self.dataset is other.dataset


def rcv1(context, share=1.0):
    """Logistic regression with lambda = 1/n on a share of the user's data or of rcv1-like, and its minimum."""
    dataset = context.data
    if dataset is None:
        from ...data import load_data

        dataset = load_data("rcv1-like")
    return _optimum(_Keyed(dataset), share)


def first_time_below(bound, level: float) -> int:
    """The smallest power of two T with bound(T) <= level."""
    T = 1
    while bound(T) > level:
        T *= 2
    return T


@claim(
    "memsgd.theorem.rcv1",
    title="Mem-SGD's Theorem 2.4 on RCV1",
    statement="Theorem 2.4 holds on RCV1 with top-10 and a = 10 d/k, but is far above f(x_0) - f* at every T that"
    " one runs; so does Lemma 3.2.",
    source=f"{SOURCE}, Theorem 2.4",
    bibtex="stich2018sparsified",
    kind="upper",
    proof="memsgd.theorem; the factors are L/mu = n/4, (d/k)^2 and 1/mu = n.",
    bound=bounds.mem_sgd,
    subject=lambda k: (TopK(k), ErrorFeedback()),
    see=("memsgd.theorem", "memsgd.memory", "ef.identity"),
)
def _(context):
    problem, optimum = rcv1(context)
    n, d, k = problem.n, problem.d, min(10, problem.d)
    steps, replicas, mu, shift = context.samples(40_000, 4_000) // context.effort, 8, 1.0 / n, max(2.0, 10.0 * d / k)
    compressor, feedback = context.subject(k)
    method = ParallelSGD(compressor, step=InverseTime(8.0, mu, shift), feedback=feedback, average="quadratic")
    result = run(method, problem, workers=1, steps=steps, replicas=replicas, seed=context.stream(), record_every=steps)
    lipschitz, origin = max_lipschitz(problem), np.zeros(d)
    second = max(second_moment(problem, x) for x in (origin, *result.last))

    def bound(T):
        return bounds.mem_sgd(
            T,
            mu=mu,
            lipschitz=lipschitz,
            second_moment=second,
            distance=float(optimum.x @ optimum.x),
            d=d,
            k=k,
            shift=shift,
        )

    trivial = float(np.log(2.0) - optimum.fun)
    memory = mean_interval(np.sum(result.memory**2, axis=(1, 2)), context.level(2))
    of_lemma = bounds.mem_sgd_memory(d, k, 8.0 / (mu * (shift + steps)), second, shift=shift)
    note = (
        f"{problem.name}, n={n}, d={d}; f(x_0) - f* = {trivial:.3g}: the bound would speak from T of about "
        f"{first_time_below(bound, trivial):.1e} on"
    )
    gap = mean_interval(result.funs - optimum.fun, context.level(2))
    return Measurement(
        upper(f"E f(xbar_T) - f*, top-{k}, a = 10 d/k, T={steps}", gap, bound(steps), trivial=trivial),
        upper(f"E||m_T||^2, Lemma 3.2, T={steps}", memory, of_lemma),
        samples=replicas,
        note=note,
    )


def _slope(context):
    """Slope of E f(xbar_T) - f* in T, one worker, steps c/(mu (n/4 + t)) with mu = 1/n, weights (n/4 + t)^2."""
    compressor, feedback, compress, c, replicas = context.subject
    small = context.quick or replicas < 16  # a mutant is far off: an eighth of the rows and few replicas suffice
    problem, optimum = rcv1(context, share=0.125 if small else 1.0)
    n, replicas, tolerance = problem.n, context.effort * replicas, 0.2
    last = (2 if small else 4) * n
    method = ParallelSGD(
        compressor, step=InverseTime(c, 1.0 / n, n // 4), feedback=feedback, average="quadratic", compress=compress
    )
    result = run(method, problem, workers=1, steps=last, replicas=replicas, seed=context.stream(), record_every=n // 4)
    gaps, times = result.replica_values.T - optimum.fun, result.history["step"]
    slope = loglog_slope(times, gaps, window=(n // 4 + 1, last))
    note = (
        f"{problem.name}, n={n}; window n/2 <= T <= {last // n} n: before n/2, T is not large against the shift"
        f" n/4; tolerance {tolerance} for what is left of that"
    )
    return Measurement(rate("slope of E f(xbar_T) - f* in T", slope, -1.0, tolerance), samples=replicas, note=note)


@claim(
    "sgd.slope.rcv1",
    title="The rate 1/T on RCV1",
    statement="Plain SGD with steps 2/(mu (a + t)), mu = lambda = 1/n, and weights (a + t)^2 has E f(xbar_T) - f* ~ 1/T"
    " on logistic regression.",
    latex=r"\mathbb{E}f(\bar x_T)-f^*=\Theta(1/T)",
    source="Lacoste-Julien, Schmidt, Bach, arXiv 1212.2002 (weights t); Rakhlin, Shamir, Sridharan, ICML 2012",
    bibtex="lacoste2012simpler",
    kind="rate",
    bound=bounds.sgd_weighted_average,
    subject=(Identity(sparse=True), NoFeedback(), "loss", 2.0, 16),
    mutants={"steps a hundred times too small": (Identity(sparse=True), NoFeedback(), "loss", 0.02, 6)},
)
def _(context):
    return _slope(context)


@claim(
    "memsgd.slope.rcv1",
    title="The rate 1/T with top-10 and memory on RCV1",
    statement="Mem-SGD with top-10, the same steps and weights keeps the rate 1/T: E f(xbar_T) - f* ~ 1/T.",
    latex=r"\mathbb{E}f(\bar x_T)-f^*=O\Big(\frac{G^2}{\mu T}\Big)\ \text{as}\ T\to\infty",
    source=f"{SOURCE}, Remark 2.6",
    bibtex="stich2018sparsified",
    kind="rate",
    proof="In Theorem 2.4 the compressor is only in the terms of order 1/T^2 and 1/T^3.",
    bound=bounds.mem_sgd,
    subject=(TopK(10), ErrorFeedback(), "full", 2.0, 16),
    mutants={"top-10 without memory": (TopK(10), NoFeedback(), "full", 2.0, 6)},
)
def _(context):
    return _slope(context)
