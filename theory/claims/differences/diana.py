"""Claims about unbiased differences: DIANA, MARINA, PermK, DASHA, ProxSkip and QSVRG.

Each difference method is measured as the method that runs.  For QSVRG: the second moment of its gradients, the factor
of an epoch, the rate and the bits.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...cluster import qsvrg
from ...compressors import QSGD, Bernoulli, Elias, Identity, PermK, RandK, omega
from ...methods import DASHA, DCGD, DIANA, MARINA, QSVRG, ProxSkip
from ...methods.schedules import Constant
from ...problems import max_lipschitz, quadratic, ridge, solve, strong_convexity, value
from ...wire import bits_for
from .. import certain, claim, equality, identity, upper

# --- Unbiased differences --------------------------------------------------------------------------------------------

OWN: dict[str, Any] = {"shards": "contiguous"}  # row i is worker i's


def own_rows(vectors, b, l2):
    """A ridge regression with a row for each worker, so that its gradients are exact: f, and its L, L~ and L_max."""
    problem = ridge((vectors, b), l2=l2)
    each = np.sum(vectors**2, axis=1) + l2
    largest = float(np.linalg.eigvalsh(vectors @ vectors.T)[-1]) / len(b) + l2
    return problem, {"lipschitz": largest, "quadratic": math.sqrt(np.mean(each**2)), "largest": float(each.max())}


def gradients(problem, x):
    """The workers' gradients at x, a row for each."""
    return (problem.A @ x - problem.b)[:, None] * problem.A + problem.l2 * x


def regression(context, workers: int = 6, d: int = 4):
    """One with random rows."""
    return own_rows(context.normal((workers, d), "A"), 3.0 * context.normal(workers, "b"), 0.2)


def longer(method, factor=12.0, **more):
    """The method with steps so much longer."""
    return lambda c, step, **own: method(c, Constant(factor * step.eta), **more, **own)


def coins(omega: float):
    """Each coordinate with probability 1/(1 + omega), times 1 + omega."""
    return Bernoulli(1.0 / (1.0 + omega))


# --- DIANA ------------------------------------------------------------------------------------------------------------

SPARSE = partial(RandK, 1, unbiased=True)  # of 4 coordinates: omega = 3


@claim(
    "diana.rate",
    of=bounds.diana_rate,
    subject=lambda c, step, **own: DIANA(c, Constant(step), **own),
    mutants={
        "no shifts": lambda c, step, **own: DCGD(c, Constant(step), **own),
        "shifts that learn all of a message": lambda c, step, **own: DIANA(c, Constant(step), alpha=1.0, **own),
        "a step twenty times as long": lambda c, step, **own: DIANA(c, Constant(20.0 * step), **own),
    },
)
def _(context):
    wide = {N: own_rows(0.5 * context.normal((N, 4), "wide", N), context.normal(N, "b", N), 1.0) for N in (48, 96)}
    for (problem, known), where, steps, k in (
        (regression(context), "from 0", 50, 1),
        (regression(context), "from 0", 800, 1),
        (wide[48], "from x*", 2, 1),
        (wide[96], "from x*", 2, 1),
    ):
        N, optimum, w, alpha = len(problem.b), solve(problem).x, 4.0 / k - 1.0, k / 4.0
        step = bounds.diana_step(known["lipschitz"], omega=w, workers=N, largest=known["largest"])
        at_optimum, x0 = gradients(problem, optimum), optimum if where == "from x*" else np.zeros(4)
        options = {"workers": N, "steps": steps, "replicas": context.samples(200), "x0": x0}
        found = context.run64(context.subject(RandK(k, unbiased=True), step, **OWN), problem, where, steps, **options)
        given = found.state.pieces.get("h, workers here")
        h = found.state.whole("h, workers here") if given else np.zeros((1, N, 4))
        weight = 4.0 * w * step**2 / (N * alpha)
        V = [
            np.sum((x - optimum) ** 2, axis=-1) + weight * np.mean(np.sum((g - at_optimum) ** 2, axis=-1), axis=-1)
            for x, g in ((found.last, h), (x0, np.zeros((N, 4))))
        ]
        rate = {"mu": problem.l2, "alpha": alpha, "start": float(np.mean(V[1])), "omega": w, "workers": N}
        label = f"V_T, ridge, rand-{k} of 4, N={N}, T={steps}, {where}"
        yield upper(label, V[0], bounds.diana_rate(steps, step=step, **rate))
    d = context.samples(60_000)
    for w, mu, noise, step, N in ((3.0, 0.5, 2.0, 0.1, 4), (1.5, 2.0, 0.5, 0.2, 2)):  # from x* = 0 without a shift
        alpha, problem, at = 1.0 / (1.0 + w), quadratic(np.full(d, mu), covariance=noise), {"x0": np.zeros(d)}
        found = context.run64(context.subject(coins(w), step), problem, "noise", N, workers=N, steps=1, **at)
        h = found.state.whole("h, workers here")[0] if found.state.pieces.get("h, workers here") else np.zeros((N, d))
        V = found.last**2 + 4.0 * w * step**2 / (N * alpha) * np.mean(h**2, axis=0)
        rate = {"step": step, "mu": mu, "alpha": alpha, "start": 0.0, "omega": w, "workers": N, "variance": noise}
        added = min(step * mu, alpha / 2.0) * bounds.diana_rate(10, **rate)  # a geometric sum of what a step adds
        yield equality(f"V after a step from x*, omega={w:g}, mu={mu:g}, sigma^2={noise:g}, N={N}", V, added)


@claim(
    "dcgd.rate",
    of=bounds.dcgd_rate,
    subject=DCGD,
    mutants={
        "a step twenty times as long": longer(DCGD, 20.0),
        "no steps": longer(DCGD, 1e-9),
        "half of the variance": lambda c, step, **own: DCGD(Bernoulli(0.4), step, **own),
    },
)
def _(context):
    (problem, known), w, d = regression(context), 3.0, context.samples(30_000)
    for factor, step, mu, noise, start, N, T in (  # all workers have mu x^2/2, and noise of their own
        (0.0, 0.5, 1.0, 0.0, 1.0, 4, 3),
        (3.0, 0.3, 0.8, 0.5, 2.0, 4, 3),
        (1.5, 0.2, 1.5, 2.0, 0.5, 2, 4),
    ):
        equal, at = quadratic(np.full(d, mu), covariance=noise), {"workers": N, "steps": T, "x0": np.full(d, start)}
        found = context.run64(context.subject(coins(factor), Constant(step)), equal, "equal", N, **at).last ** 2
        given = {"step": step, "mu": mu, "omega": factor, "distance": start**2, "at_minimum": 0.0, "variance": noise}
        law = bounds.dcgd_rate(T, workers=N, lipschitz=mu, largest=mu, split=1e9, **given)
        label = f"E x_{T}^2, {mu:g} x^2/2 for all of {N} workers, omega={factor:g}, sigma^2={noise:g}"
        yield equality(label, found, law) if factor else identity(label, found.max(), law, 1e-8)
    for b, step, factor, N in ((1.0, 1e-3, 3.0, 2), (1.5, 2e-3, 2.0, 4)):
        v, signs = context.normal(d, "v") / math.sqrt(d), np.where(np.arange(N) % 2, -1.0, 1.0)
        apart, _ = own_rows(np.tile(v, (N, 1)), b * signs, 0.1)  # x* = 0
        at = {"workers": N, "steps": 1, "x0": np.zeros(d)}
        found = d * context.run64(context.subject(coins(factor), Constant(step), **OWN), apart, N, **at).last ** 2
        given = {"step": step, "mu": 0.1, "distance": 0.0, "omega": factor, "workers": N}
        law = bounds.dcgd_rate(1, at_minimum=b**2 * float(v @ v), lipschitz=1.2, split=1e-3, **given)
        yield equality(f"E||x_1 - x*||^2 from x_0 = x*, N={N}, omega={factor:g}", found, law)
    N, optimum = len(problem.b), solve(problem).x
    mu = float(np.linalg.eigvalsh(problem.A.T @ problem.A)[0]) / N + problem.l2
    step = bounds.dcgd_step(known["lipschitz"], omega=w, workers=N, largest=known["largest"])
    at_minimum = float(np.mean(np.sum(gradients(problem, optimum) ** 2, axis=1)))
    for steps, x0 in ((60, context.normal(4, "far") * 30.0), (1_000, np.zeros(4))):
        at = {"workers": N, "steps": steps, "replicas": context.samples(200), "x0": x0}
        found = context.run64(context.subject(SPARSE(), Constant(step), **OWN), problem, steps, **at).last
        given = {"step": step, "mu": mu, "distance": float(np.sum((x0 - optimum) ** 2)), "omega": w, "workers": N}
        law = bounds.dcgd_rate(steps, at_minimum=at_minimum, **given)
        yield upper(f"E||x_T - x*||^2, ridge, rand-1 of 4, N={N}, T={steps}", np.sum((found - optimum) ** 2, -1), law)


# --- both sides of the frontiers --------------------------------------------------------------------------------------


# --- correlated messages, and MARINA's gradient -----------------------------------------------------------------------


def mean_law(id, part, make, mutants):
    """A claim about the error of the mean of N messages, as the step of a run whose gradients are given vectors."""

    def measure(context):
        for workers, d in ((4, 8), (3, 9), *([(3, 10)] if part == "PermK" else [])):
            common, own = context.normal(d, "common", d), context.normal((workers, d), "own", d)
            for share in (0.0, 0.5):
                v = common + share * own
                problem, _ = own_rows(v, -np.ones(workers), 0.0)
                method = DCGD(context.subject(d, workers), Constant(1.0), **OWN)
                options = {"workers": workers, "steps": 1, "x0": np.zeros(d), "replicas": context.samples(4000)}
                found = context.run64(method, problem, d, str(share), **options).last
                error = np.sum((found + v.mean(0)) ** 2, axis=1)
                square = float(np.sum(v.mean(0) ** 2))
                squares = float(np.mean(np.sum(v**2, axis=1))) if share else square, square
                predicted = bounds.perm_k_error(workers, *squares, form=part)
                label = f"error of the mean, N={workers}, d={d}, {share:g} of their own"
                none = part == "PermK" and share == 0.0  # exactly: no interval is needed
                yield identity(label, error.max(), predicted, 1e-12) if none else equality(label, error, predicted)

    claim(id, of=bounds.perm_k_error, part=part, subject=make, mutants=mutants)(measure)


def dealt(d, workers):
    """The parts of one permutation."""
    return PermK()


def alone(d, workers):
    """As many coordinates, that each worker draws."""
    return RandK(d // workers, unbiased=True)


def together(d, workers):
    """As many coordinates, the same for all workers."""
    return RandK(d // workers, unbiased=True, shared=True)


def fewer(d, workers):
    """One coordinate fewer, which each worker draws."""
    return RandK(d // workers - 1, unbiased=True)


mean_law("permk.error", "PermK", dealt, {"everybody draws alone": alone, "all draw the same": together})

mean_law("permk.independent", "independent", alone, {"one permutation": dealt, "one coordinate fewer": fewer})

mean_law("permk.shared", "shared", together, {"everybody draws alone": alone, "one permutation": dealt})


# --- rates without convexity ------------------------------------------------------------------------------------------


def gradient_law(id, of, make, step_of, bound_of, mutants):
    """A claim about the mean squared gradient of a run with the longest step of the theorem."""

    def measure(context):
        for workers, k in ((6, 1), (12, 3)):
            problem, known = regression(context, workers)
            yield from of_runs(context, problem, known, k)

    def of_runs(context, problem, known, k):
        (N, d), w = problem.A.shape, 4.0 / k - 1.0
        step = step_of(known["lipschitz"], omega=w, workers=N, quadratic=known["quadratic"])
        gap = float(value(problem, np.zeros(d)) - solve(problem).fun)
        first = float(np.mean(np.sum(gradients(problem, np.zeros(d)) ** 2, axis=1)))
        for steps in (10, 200):
            mean = []
            for seed in range(context.samples(4, 2)):
                method = context.subject(RandK(k, unbiased=True), Constant(step), **OWN)
                found = context.run64(method, problem, steps, seed, workers=N, steps=steps, record_every=1)
                norms = np.full(steps, np.inf)
                norms[: len(found.history) - 1] = found.history["gradient_norm"][:-1]
                mean.append(np.mean(norms**2))
            bound = bound_of(steps, step=step, gap=gap, omega=w, workers=N, first=first)
            yield upper(f"mean of ||grad f(x_t)||^2, the largest of some runs, N={N}, T={steps}", max(mean), bound)

    claim(id, of=of, subject=make, mutants=mutants)(measure)


gradient_law(
    "marina.rate",
    bounds.marina_rate,
    partial(MARINA, p=0.25),
    partial(bounds.marina_step, p=0.25),
    lambda steps, step, gap, **others: bounds.marina_rate(steps, step=step, gap=gap),
    {"a step twelve times as long": longer(MARINA, p=0.25), "gradients, not differences": DCGD},
)

gradient_law(
    "dasha.rate",
    bounds.dasha_rate,
    DASHA,
    bounds.dasha_step,
    bounds.dasha_rate,
    {
        "a step twelve times as long": longer(DASHA),
        "all of the error is corrected at once": partial(DASHA, a=1.0),
    },
)


# --- ProxSkip ---------------------------------------------------------------------------------------------------------


def prox_skip(step, p, curvatures, *, weight=None):
    """ProxSkip on f_i = c_i x^2/2 as matrices of (x_1, ..., x_N, h_1, ..., h_N), with their probabilities."""
    N = len(curvatures)
    x, h = np.split(np.eye(2 * N), 2)
    moved = x - step * (np.array(curvatures)[:, None] * x - h)
    mean, weight = np.tile(moved.mean(axis=0), (N, 1)), p / step if weight is None else weight
    yield 1.0 - p, np.vstack([moved, h])
    yield p, np.vstack([mean, h + weight * (mean - moved)])


def worst_factor(steps, weight, N):
    """The largest E Psi+/Psi where the h_i sum to 0."""
    steps, scale = list(steps), np.sqrt(np.repeat([1.0, weight], N))
    centre = np.eye(N) - 1.0 / N
    inside = np.kron(np.diag([1.0, 0.0]), np.eye(N)) + np.kron(np.diag([0.0, 1.0]), centre)
    form = sum(chance * (scale[:, None] * A).T @ (scale[:, None] * A) for chance, A in steps)
    form = inside @ (form / np.outer(scale, scale)) @ inside
    return float(np.linalg.eigvalsh(form)[-1])


@claim(
    "prox-skip.factor",
    of=bounds.prox_skip_rate,
    part="sharp",
    subject=prox_skip,
    mutants={
        "control variates that learn half": lambda step, p, c: prox_skip(step, p, c, weight=0.5 * p / step),
        "control variates that learn without p": lambda step, p, c: prox_skip(step, p, c, weight=1.0 / step),
        "control variates with the wrong sign": lambda step, p, c: prox_skip(step, p, c, weight=-p / step),
        "no control variates": partial(prox_skip, weight=0.0),
    },
)
def _(context):
    for step, p, N, mu in ((0.25, 0.5, 2, 0.4), (0.25, 0.8, 3, 0.7), (0.1, 0.2, 3, 0.4), (0.5, 0.3, 2, 0.3)):
        among = itertools.product((mu, 0.5 / step, 1.0 / step), repeat=N)
        worst = max(worst_factor(context.subject(step, p, c), (step / p) ** 2, N) for c in among)
        predicted = bounds.prox_skip_rate(step, mu=mu, p=p)
        yield identity(f"largest E Psi+/Psi, gamma={step:g}, p={p:g}, N={N}", worst, predicted, 1e-9)


@claim(
    "prox-skip.runs",
    title="Runs of ProxSkip move by its matrices",
    statement="With a quadratic for each worker, (x_i - x*, h_i - grad f_i(x*)) of a run is multiplied by one of the "
    "two matrices of prox-skip.factor in each step, chosen by a coin that shows heads with probability p.",
    kind="identity",
    source="derived: every line of the method is linear",
    subject=ProxSkip,
    mutants={
        "a coin of half the probability": lambda step, p, **own: ProxSkip(step, p / 2.0, **own),
        "communication in every step": lambda step, p, **own: ProxSkip(step, 1.0, **own),
        "workers that draw from all rows": lambda step, p, **own: ProxSkip(step, p),
    },
    see=("prox-skip.factor",),
)
def _(context):
    a, b = np.array([[0.5], [1.0], [1.5]]), np.array([3.0, -1.0, 0.5])
    problem, known = own_rows(a, b, 0.1)
    optimum, step, p = solve(problem).x, bounds.prox_skip_step(known["largest"]), 0.4
    options = {"workers": 3, "x0": np.ones(1), "record_every": 1, "steps": context.samples(1000)}
    found = context.run64(context.subject(Constant(step), p, **OWN), problem, **options)
    coins = np.diff(found.history["rounds"])
    yield equality("share of the steps with communication", coins, p)
    short = context.run64(context.subject(Constant(step), p, **OWN), problem, **options | {"steps": 12})
    matrices = {chance == p: A for chance, A in prox_skip(step, p, a[:, 0] ** 2 + 0.1)}
    z = np.concatenate([np.full(3, 1.0 - optimum[0]), -gradients(problem, optimum)[:, 0]])
    for heads in np.diff(short.history["rounds"]):
        z = matrices[bool(heads)] @ z
    for i in range(3):
        yield identity(f"x_{i} - x* after 12 steps", float(short.models[i, 0] - optimum[0]), float(z[i]), 1e-8)


# --- QSVRG -----------------------------------------------------------------------------------------------------------

D, LEVELS = 16, 4  # s = sqrt(d)


def qsvrg_regression(context, d=D):
    """A ridge regression with 24 rows, its minimum, L of its rows and mu."""
    A, b = context.normal((24, d), "A"), 10.0 * context.normal(24, "b")
    problem = ridge((A / np.linalg.norm(A, axis=1)[:, None], b), l2=0.2)
    return problem, solve(problem).fun, max_lipschitz(problem), strong_convexity(problem)


@claim(
    "qsvrg.second-moment",
    of=bounds.svrg_second_moment,
    subject=-1.0,
    mutants={"the row's gradient at y added": 1.0},
)
def _(context):
    L, n = 2.0, 50
    for far in (-1.0, 0.0, 1.0):  # y = far x, x = (1, ..., 1)
        v = L * np.eye(n) * (1.0 + context.subject * far) + L / n * far
        gap, anchor_gap = L / 2.0, L / 2.0 * far**2
        predicted = bounds.svrg_second_moment(gap, anchor_gap, lipschitz=L)
        yield upper(
            f"E||v||^2, f_j = (L/2) x_j^2, n={n}, y = {far:g} x", float(np.mean(np.sum(v**2, axis=1))), predicted
        )


def largest_mean_gap(inner: int, *, step, lipschitz, mu, omega, workers) -> Fraction:
    """The largest mean of f(x_t) - f* in an epoch from f(y) - f* = 1 that the one-step inequality allows."""

    def left(gap):
        squared = 2 / Fraction(mu)  # ||y - x*||^2 <= 2 (f(y) - f*)/mu
        for _ in range(inner):
            rows = Fraction(float(bounds.svrg_second_moment(float(gap), 1.0, lipschitz=lipschitz)))
            moment = (1 - Fraction(1, workers)) * 2 * lipschitz * gap + (1 + Fraction(omega)) / workers * rows
            squared += -2 * step * gap + step**2 * moment
        return squared

    return left(Fraction(0)) / (left(Fraction(0)) - left(Fraction(1)))


class WithoutFull(QSVRG):
    """QSVRG that forgets the full gradient after the first step of an epoch."""

    share = 0.0

    def round(self, run):
        """One step."""
        begins = run.every(self.inner)
        QSVRG.round(self, run)
        if begins:
            run.scale(run.vector("h"), self.share)


class MinusFull(WithoutFull):
    """The same, with the sign wrong."""

    share = -1.0


@claim(
    "qsvrg.factor",
    lemmas=("qsvrg.second-moment",),
    of=bounds.qsvrg_factor,
    subject=(QSVRG, partial(QSGD, LEVELS)),
    mutants={
        "no full gradient: SGD": (WithoutFull, partial(QSGD, LEVELS)),
        "minus the full gradient": (MinusFull, partial(QSGD, LEVELS)),
    },
)
def _(context):
    problem, least, L, mu = qsvrg_regression(context)
    method, make = context.subject
    y = solve(problem).x + 0.1 * context.normal(D, "y")
    for workers in (1, 4):
        known = {"lipschitz": L, "mu": mu, "omega": omega(make(), D)}
        eta, inner = float(bounds.qsvrg_step(L, known["omega"])), bounds.qsvrg_inner(**known)
        epoch = method(make(), Constant(eta), inner)
        options = {"workers": workers, "steps": inner, "replicas": context.samples(96, 24)}
        gap = context.run64(epoch, problem, workers, x0=y, **options).funs - least
        start = float(context.run(epoch, problem, x0=y, workers=1, steps=1).history["f"][0] - least)
        factor = bounds.qsvrg_factor(inner, step=eta, workers=workers, **known)
        yield upper(f"gap after an epoch / gap before, ridge, N={workers}, T={inner}", gap / start, factor)
    for inner, step, L, mu, w, N in (
        (40, "1/16", 2, "1/2", "1/4", 1),
        (40, "1/16", 2, "1/2", 1, 4),
        (400, "1/64", 4, 1, 3, 2),
    ):
        exact = {"step": Fraction(step), "lipschitz": L, "mu": Fraction(mu), "omega": Fraction(w)}
        lemmas = largest_mean_gap(inner, workers=N, **exact)
        theorem = bounds.qsvrg_factor(inner, workers=N, **{name: float(x) for name, x in exact.items()})
        yield identity(f"largest mean gap that the lemmas allow, N={N}, T={inner}, omega={w}", float(lemmas), theorem)


@claim(
    "qsvrg.rate",
    lemmas=("qsvrg.factor",),
    of=bounds.qsvrg_factor,
    subject=(1.0, 1.0),
    mutants={"steps a hundredth as large": (0.01, 1.0), "a hundredth of the steps": (1.0, 0.01)},
)
def _(context):
    problem, least, L, mu = qsvrg_regression(context)
    (longer, more), w = context.subject, omega(QSGD(LEVELS), D)
    step, inner = longer * bounds.qsvrg_step(L, w), math.ceil(more * bounds.qsvrg_inner(L, mu, w))
    runs = [qsvrg(problem, workers=2, epochs=3, step=step, inner=inner, seed=context.stream(r)) for r in range(4)]
    context.used.add("run")
    for p in (1, 3):
        gaps = np.array([found.history["f"] - least for found in runs])
        yield upper(
            f"gap after {p} epochs / gap before, the largest of 4 runs",
            certain(np.max(gaps[:, p] / gaps[:, 0])),
            0.9**p,
        )
    for L, mu, w in ((1.0, 1.0, 0.25), (50.0, 1.0, 0.25), (7.0, 0.3, 3.0)):
        step, inner = longer * bounds.qsvrg_step(L, w), math.ceil(more * bounds.qsvrg_inner(L, mu, w))
        factor = bounds.qsvrg_factor(inner, step=step, lipschitz=L, mu=mu, omega=w)
        yield upper(f"factor of an epoch, L/mu={L / mu:.4g}, omega={w:g}", float(factor), 0.9)


@claim(
    "qsvrg.bits",
    of=bounds.qsvrg_bits,
    subject=partial(QSGD, LEVELS),
    mutants={"full precision": Identity, "twice the levels": partial(QSGD, 2 * LEVELS)},
)
def _(context):
    for inner, d, dtype in ((50, D, np.float32), (2, D, np.float32), (5, 10, np.float64)):
        problem, F = qsvrg_regression(context, d)[0], 8 * np.dtype(dtype).itemsize
        known = {"workers": 2, "epochs": 2, "step": 0.01, "seed": context.stream(inner), "wire_dtype": dtype}
        found = qsvrg(problem, context.subject(), inner=inner, **known)
        context.used.add("run")
        sent, fixed = certain(found.history["bits_up"][-1] / 2), F + d * bits_for(2 * LEVELS + 1)
        label = f"bits of a worker in an epoch, levels of 4 bits, T={inner}, d={d}, F={F}"
        yield equality(label, sent, bounds.qsvrg_bits(d, inner, fixed, F))
    problem, *_ = qsvrg_regression(context)
    coded = qsvrg(problem, QSGD(LEVELS, code=Elias()), workers=2, epochs=2, inner=50, step=0.01, seed=context.stream())
    bound = bounds.qsvrg_bits(D, 50, bounds.qsgd_elias_length(D, LEVELS))
    yield upper("the same in Elias codes, T=50", certain(coded.history["bits_up"][-1] / 2), float(bound))
    printed = float(bounds.qsvrg_bits(D, 50, 1.0, form="paper"))
    ideal = float(bounds.qsvrg_bits(D, 50, bounds.qsgd_arithmetic_length(D, LEVELS)))
    yield upper("the same in an arithmetic code, against the paper's bound", ideal, printed)
