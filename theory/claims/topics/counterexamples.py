"""Claims about error feedback where signs fail: non-smooth convex functions, and the counterexamples with a memory.

Their functions are not among the package's problems, so they are given as Python functions; see :mod:`.paths`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.sign import ScaledSign
from ...compressors.sparsifiers import TopK
from ...measure import exactly, mean_interval
from ...methods.feedback import ErrorFeedback
from ...methods.sgd import ParallelSGD
from ..base import claim
from ..checks import Measurement, identity, rate, upper
from ..mutants.shared import Scaling
from ..paths import follow
from .feedback import constant_gradient, unchanging

EF = "Karimireddy, Rebjock, Stich, Jaggi, Error feedback fixes SignSGD, ICML 2019"


def average(path) -> np.ndarray:
    """The mean of all iterates but the last."""
    points = [x for x, _ in path]
    return np.mean(points[:-1], axis=0)


@claim(
    "ef.convex",
    title="Error feedback on a convex function, smooth or not",
    statement="E f(xbar) - f* <= ||x_0 - x*||^2/(2 gamma T) + gamma G^2 (1/2 + m), xbar the mean of T iterates, with"
    " m = q/(1 - q), q = sqrt(1 - delta); the quoted m = 2 q/delta is larger.",
    latex=r"\mathbb{E}f(\bar x)-f^*\le\frac{\|x_0-x^*\|^2}{2\gamma T}+\gamma G^2\Big(\frac12+\frac{q}{1-q}\Big)",
    source=f"derived; sharpens {EF}, the theorem on convex functions",
    bibtex="karimireddy2019error",
    kind="tight",
    tight_where="delta = 1: |x| from x_0 = gamma T; for every delta, but for the first steps, C(v) = (1 - q) v there",
    proof="As for SGD at x - e; f(x_t) - f* <= <g, x_t - x*> = <g, x_t - e_t - x*> + <g, e_t>, and ||e|| <= gamma G m.",
    bound=bounds.ef_sgd_convex,
    subject=lambda delta: (Scaling(delta), 1.0),
    mutants={
        "a compressor that contracts half as much": lambda delta: (Scaling(delta / 2.0), 1.0),
        "no memory": lambda delta: (Scaling(delta), 0.0),
        "a memory of which a tenth is lost": lambda delta: (Scaling(delta), 0.9),
    },
)
def _(context):
    gamma, checks, runs = 0.01, [], []
    for delta, steps in ((1.0, 100), (0.1, 1000)):
        c, kept = context.subject(delta)
        start = np.array([gamma * steps])
        found = abs(float(average(follow(c, lambda x, t: np.sign(x), start, gamma, steps, kept))[0]))
        known: dict[str, Any] = dict(delta=delta, second_moment=1.0, distance=float(start @ start), step=gamma)
        bound, label = bounds.ef_sgd_convex(steps, **known, memory="sharp"), f"delta={delta:g}, T={steps}"
        if delta == 1.0:
            checks.append(identity(f"f(xbar), f = |x|, {label}", found, bound, 1e-9))
        else:
            checks.append(upper(f"f(xbar), f = |x|, C(v) = (1 - q) v, {label}", exactly(found), bound, float(start[0])))
            quoted = bounds.ef_sgd_convex(steps, **known)
            checks.append(upper("the same, as quoted", exactly(found), quoted, trivial=float(start[0])))
        method = ParallelSGD(c, step=unchanging(gamma), feedback=ErrorFeedback(), average="uniform")
        x = run(
            method,
            constant_gradient(1),
            workers=1,
            steps=steps,
            seed=0,
            x0=start,
            record_every=steps,
            wire_dtype=np.float64,
        ).x
        runs.append(identity(f"f(xbar), C(v) = (1 - q) v, by run, {label}", x[0], found, 1e-9))
    d, k, steps, start = 10, 1, 2000, np.linspace(0.5, 1.5, 10)
    known = dict(delta=bounds.top_k_contraction(d, k), second_moment=float(d), distance=float(start @ start))
    known.update(memory="sharp")
    step = bounds.ef_sgd_convex_step(steps, **known)
    _, kept = context.subject(1.0)
    mean = average(follow(TopK(k), lambda x, t: np.sign(x), start, step, steps, kept))
    bound, label = bounds.ef_sgd_convex(steps, **known), f"f(xbar), f = ||x||_1, top-{k} of {d}, best step, T={steps}"
    checks.append(upper(label, exactly(np.abs(mean).sum()), bound, trivial=float(start.sum())))
    note = "by run: on a linear function, since x_t > 0 on the way, where |x| has the slope 1"
    return Measurement(*checks, *runs, note=note)


# --- where signs fail -------------------------------------------------------------------------------------------------


@claim(
    "ef.fixes.drift",
    title="With a memory, skewed noise does no harm",
    statement="For min sum_j x_j/4 with the gradients 4 (probability 1/4) or -1 (3/4) in every coordinate, the scaled"
    " sign climbs; with a memory a step lowers E f by eta d/16, as a step of SGD does.",
    latex=r"\frac{\mathbb{E}f(x_T)-f(x_0)}{\eta dT}\to-\frac1{16}",
    source=f"{EF}, Counterexample 1, in d coordinates",
    bibtex="karimireddy2019error",
    kind="rate",
    proof="ef.identity: x - e moves by -eta g, and e stays bounded.",
    subject=1.0,
    mutants={"no memory": 0.0, "a memory of which half is lost": 0.5},
    see=("sign.fails.drift",),
)
def _(context):
    d, steps, eta, replicas = 8, 500, 0.001, context.samples(60, 15)
    rng, found = np.random.default_rng(context.stream()), np.empty(replicas)
    for r in range(replicas):
        g = np.where(rng.random((steps, d)) < 0.25, 4.0, -1.0)
        *_, (last, _) = follow(ScaledSign(), lambda x, t, g=g: g[t], np.zeros(d), eta, steps, context.subject, steps)
        found[r] = last.sum() / 4.0 / (eta * d * steps)
    note = f"tolerance 0.03: the memory at T={steps}, over eta T; in one coordinate the scaled sign is the identity"
    label = f"change of E f a step / (eta d), d={d}, T={steps}"
    return Measurement(rate(label, mean_interval(found), -1.0 / 16.0, 0.03), samples=replicas, note=note)


@claim(
    "ef.fixes.kink",
    title="With a memory, signs leave the line",
    statement="For f(x) = e |x1 + x2| + |x1 - x2| from (1, 1), where signs keep f >= 2 e for ever, the scaled sign with"
    " a memory obeys ef.convex with delta = 1/2: f(xbar) falls below 2 e.",
    latex=r"f(\bar x)\le DG\sqrt{(1+2m)/T}<2\varepsilon",
    source=f"{EF}, Counterexample 2 and the theorem on convex functions",
    bibtex="karimireddy2019error",
    kind="upper",
    proof="ef.convex with sign.contraction in two dimensions.",
    bound=bounds.ef_sgd_convex,
    subject=1.0,
    mutants={"no memory": 0.0},
    see=("sign.fails.kink", "ef.convex"),
)
def _(context):
    steps, start, checks = 2000, np.ones(2), []
    for e in (0.1, 0.5):

        def gradient(x, t, e=e):
            plus, minus = np.where(np.array([x[0] + x[1], x[0] - x[1]]) < 0.0, -1.0, 1.0)  # at 0, the trap: +1
            return plus * e * np.ones(2) + minus * np.array([1.0, -1.0])

        second = 2.0 + 2.0 * e**2
        known: dict[str, Any] = dict(delta=bounds.scaled_sign_contraction(2), second_moment=second, distance=2.0)
        known.update(memory="sharp")
        step = bounds.ef_sgd_convex_step(steps, **known)
        x = average(follow(ScaledSign(), gradient, start, step, steps, context.subject))
        found, bound = e * abs(x[0] + x[1]) + abs(x[0] - x[1]), bounds.ef_sgd_convex(steps, **known)
        checks.append(upper(f"f(xbar), e={e}, T={steps}", exactly(found), bound, trivial=2.0 * e))
    return Measurement(*checks)


@claim(
    "ef.fixes.smooth",
    title="With a memory, signs solve the smooth problem",
    statement="For f = <a1, x>^2 + <a2, x>^2 with a1,2 = +-(1, -1) + e (1, 1) and gradients of one term from (1, 1),"
    " where signs keep f >= 8 e^2, the scaled sign with a memory obeys ef.convex and falls below 8 e^2.",
    latex=r"\tfrac12\mathbb{E}f(\bar x)\le\frac{\|x_0\|^2}{2\gamma T}+\gamma G^2(\tfrac12+m)<4\varepsilon^2",
    source=f"{EF}, Counterexample 3 and the theorem on convex functions",
    bibtex="karimireddy2019error",
    kind="upper",
    proof="ef.convex with sign.contraction in two dimensions; G^2 = 20 is twice the squared gradient at the"
    " start, and none on the way is larger.",
    bound=bounds.ef_sgd_convex,
    subject=1.0,
    mutants={"no memory": 0.0},
    see=("sign.fails.smooth", "ef.convex"),
)
def _(context):
    e, steps, second, replicas = 0.5, 600, 20.0, context.samples(32, 8)
    a, rng = np.array([[1.0, -1.0], [-1.0, 1.0]]) + e, np.random.default_rng(context.stream("terms"))
    known: dict[str, Any] = dict(
        delta=bounds.scaled_sign_contraction(2), second_moment=second, distance=2.0, memory="sharp"
    )
    step, met = bounds.ef_sgd_convex_step(steps, **known), []

    def value(term):
        def gradient(x, t):
            g = 2.0 * a[term[t]] * (a[term[t]] @ x)
            met.append(float(g @ g))
            return g

        x = average(follow(ScaledSign(), gradient, np.ones(2), step, steps, context.subject))
        return float(np.sum((a @ x) ** 2))

    found = [value(rng.integers(0, 2, steps)) for _ in range(replicas)]
    bound = 2.0 * bounds.ef_sgd_convex(steps, **known)  # the mean of the terms is f/2
    return Measurement(
        upper(f"E f(xbar), e={e}, T={steps}", mean_interval(found), bound, trivial=8.0 * e**2),
        upper("largest squared gradient on the way", exactly(max(met)), second),
        samples=replicas,
    )


@claim(
    "ef.fixes.line",
    title="With a memory, signs solve least squares",
    statement="For least squares whose rows have positive entries, where signs of single rows' gradients stay above"
    " min_a f(a 1) > 0, the scaled sign with a memory reaches a thousandth of that.",
    source=f"lecture; {EF}, Theorem I",
    bibtex="karimireddy2019error",
    kind="upper",
    proof="x - e stays in the span of the rows' gradients, which is everything, and gradients vanish at x*.",
    bound=bounds.sign_line_floor,
    subject=1.0,
    mutants={"no memory": 0.0},
    see=("sign.fails.line", "ef.identity"),
)
def _(context):
    d, steps = 6, 4000
    rng = np.random.default_rng(context.stream("problem"))
    A = np.eye(d) * 2.0 + 0.2 * rng.random((d, d)) + 0.1
    b = A @ rng.standard_normal(d)
    order = rng.integers(0, d, steps)

    def gradient(x, t):
        return A[order[t]] * (A[order[t]] @ x - b[order[t]])

    *_, (x, _) = follow(ScaledSign(), gradient, np.zeros(d), 0.05, steps, context.subject, steps)
    floor = bounds.sign_line_floor(A, b)
    found = float(np.sum((A @ x - b) ** 2)) / (2 * d)
    return Measurement(upper(f"f(x_T), T={steps}, against the floor / 1000", exactly(found), floor / 1000.0))
