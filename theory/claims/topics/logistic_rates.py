"""Claims that repeat the bounds on SGD on logistic regression with real data, without closed forms."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...data import load_data
from ...measure import mean_interval
from ...methods.schedules import Constant, InverseTime, Last, Polynomial, Suffix, Uniform
from ...methods.sgd import ParallelSGD
from ...problems import gradient, lipschitz, logistic, max_lipschitz, solve, value
from ..base import claim
from ..checks import Measurement, upper
from .sgd import RSS
from .sgd_averages import schedule

ROWS, ALL, STEPS, L2 = 100, 569, 300, 0.1
SHARES = (0.1, 0.05, 0.02)  # SGD's steps in units of 1/L_max, to choose from
DATA = f"Breast Cancer Wisconsin, {ROWS} rows: columns standardized, rows of norm 1"
NOTE = (
    f"{DATA}, l2={L2}. G^2 is 2 L_max times the largest E f(x_t) on the way: a loss that is at least 0 has"
    " ||grad f_i||^2 <= 2 L_max f_i"
)


@lru_cache(maxsize=4)
def small(l2=L2, rows=ROWS):
    """Logistic regression on the first rows of a real data set, and its minimum."""
    data = load_data("breast_cancer")
    X = np.asarray(data.X)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:rows]
    problem = logistic((X / np.linalg.norm(X, axis=1, keepdims=True), data.y[:rows]), l2=l2)
    return problem, solve(problem)


def runs(context, step, average, name):
    """SGD from 0: the result and G^2, a bound on E||g_t||^2 along the way at the level of three checks."""
    problem, _ = small()
    result = run(
        ParallelSGD(Identity(), step=step, average=average),
        problem,
        workers=1,
        steps=STEPS,
        record_every=1,
        replicas=context.samples(200, 80),
        seed=context.stream(name),
        wire_dtype=np.float64,
    )
    peak = result.replica_last.T[:, int(np.argmax(result.replica_last.mean(axis=1)))]
    highest = float(peak[0]) if np.ptp(peak) == 0.0 else mean_interval(peak, context.level(3)).high
    return result, bounds.level_set_second_moment(max_lipschitz(problem), highest)


def start_gap():
    """f(0) - f*, the trivial bound."""
    problem, best = small()
    return float(value(problem, np.zeros(problem.d)) - best.fun)


def distances(result, best):
    """||x_T - x*||^2 of every replica."""
    return np.sum((result.last - best.x) ** 2, axis=1)


@claim(
    "logistic.last",
    title="The last iterate on logistic regression",
    statement="With steps 1/(mu t), E||x_T - x*||^2 <= (G^2/mu^2) (T - H_T)/(T (T - 1)), and E f(x_T) - f* <= L/2 times"
    " that, on logistic regression with an l2 term.",
    source=f"derived (sgd.inverse-time.bound, sgd.smooth-last); sharpens {RSS}, Lemma 1 and Theorem 1",
    bibtex="rakhlin2012making",
    kind="upper",
    bound=bounds.sgd_inverse_time,
    subject=1.0,
    mutants={"steps a hundred times too small": 0.01},
)
def _(context):
    problem, best = small()
    result, second = runs(context, InverseTime(context.subject, L2, 1.0), Last(), "last")
    start = float(best.x @ best.x)
    far = mean_interval(distances(result, best), context.level(3))
    gap = mean_interval(result.replica_last.T[:, -1] - best.fun, context.level(3))
    smooth = bounds.sgd_smooth_last(STEPS, mu=L2, lipschitz=lipschitz(problem), second_moment=second)
    return Measurement(
        upper(f"E||x_T - x*||^2, T={STEPS}", far, bounds.sgd_inverse_time(STEPS, mu=L2, second_moment=second), start),
        upper(f"E f(x_T) - f*, T={STEPS}", gap, smooth, start_gap()),
        samples=result.funs.size,
        note=NOTE,
    )


@claim(
    "logistic.averages",
    title="Averages on logistic regression",
    statement="Weights t + 1 with steps 2/(mu (t + 2)), all alike and the last half with steps 1/(mu t): on logistic"
    " regression, too, E f(xbar_T) - f* is below 2 G^2/(mu (T + 1)), G^2 (1 + log T)/(2 mu T) and the suffix's bound.",
    source=f"Lacoste-Julien, Schmidt, Bach, arXiv 1212.2002; {RSS}, Theorems 2 and 5",
    bibtex="lacoste2012simpler",
    kind="upper",
    bound=bounds.sgd_weighted_average,
    subject=1.0,
    mutants={"steps a hundred times too small": 0.01},
)
def _(context):
    problem, best = small()
    one, two, half = InverseTime(context.subject, L2, 1.0), InverseTime(2.0 * context.subject, L2, 2.0), STEPS // 2
    trivial, checks = start_gap(), []
    for name, step, average in (
        ("weights t + 1", two, Polynomial(1.0, 1.0)),
        ("all alike", one, Uniform()),
        ("the last half", one, Suffix(half)),
    ):
        result, second = runs(context, step, average, name)
        interval, keywords = (
            mean_interval(result.funs - best.fun, context.level(3)),
            {"mu": L2, "second_moment": second},
        )
        smooth = bounds.sgd_smooth_average(STEPS, lipschitz=lipschitz(problem), **keywords)
        found = {
            "weights t + 1": [bounds.sgd_weighted_average(STEPS, **keywords)],
            "all alike": [bounds.sgd_uniform_average(STEPS, **keywords), smooth],
            "the last half": [
                bounds.sgd_suffix_average(STEPS, alpha=0.5, **keywords),
                bounds.sgd_average(schedule(InverseTime(1.0, L2, 1.0), STEPS), schedule(average, STEPS), **keywords),
            ],
        }[name]
        names = {
            "weights t + 1": [""],
            "all alike": [", by the logarithm", ", smooth"],
            "the last half": [", Theorem 5", ", by sgd_average"],
        }[name]
        checks += [
            upper(f"E f - f*, {name}{which}", interval, bound, trivial)
            for which, bound in zip(names, found, strict=True)
        ]
    return Measurement(*checks, samples=3 * result.funs.size, note=f"T={STEPS}. {NOTE}")


@claim(
    "logistic.constant-step",
    title="Constant steps on logistic regression",
    statement="sgd.constant-step.bound, bottou.constant-step and sgd.smooth-convex hold on logistic regression.",
    source="Yin et al., AISTATS 2018, Theorem 5 with B = 1; Bottou, Curtis, Nocedal 2018, Theorem 4.6; Bubeck 2015,"
    " Theorem 6.3",
    bibtex="bottou2018optimization",
    kind="upper",
    bound=bounds.bottou_constant_step,
    subject=1.0,
    mutants={"steps a hundred times too small": 0.01},
)
def _(context):
    problem, best = small()
    L, eta = lipschitz(problem), 0.5
    result, second = runs(context, Constant(context.subject * eta), Suffix(1), "constant")
    keywords = {"mu": L2, "lipschitz": L, "step": eta, "noise": second, "gap": start_gap()}
    far, start = mean_interval(distances(result, best), context.level(4)), float(best.x @ best.x)
    last = mean_interval(result.replica_last.T[:, -1] - best.fun, context.level(4))
    mean = mean_interval(result.funs - best.fun, context.level(4))
    return Measurement(
        upper("E f(x_T) - f*, sharp", last, bounds.bottou_constant_step(STEPS, **keywords), start_gap()),
        upper(
            "E f(x_T) - f*, Theorem 4.6",
            last,
            bounds.bottou_constant_step(STEPS, **keywords, form="paper"),
            start_gap(),
        ),
        upper(
            "E||x_T - x*||^2",
            far,
            bounds.sgd_constant_step(STEPS, mu=L2, step=eta, second_moment=second, distance=start),
            start,
        ),
        upper(
            "E f of the mean of x_1, ..., x_{T-1}, less f*",
            mean,
            bounds.sgd_smooth_convex_with_step(STEPS - 1, lipschitz=L, step=eta, variance=second, distance=start),
            start_gap(),
        ),
        samples=result.funs.size,
        note=f"eta={eta:g}, T={STEPS}; variances are bounded by G^2. {NOTE}",
    )


# --- one gradient or all of them --------------------------------------------------------------------------------------


def full_gradient(problem, step, steps):
    """f(x) after ``steps`` steps of gradient descent from 0."""
    x = np.zeros(problem.d)
    for _ in range(steps):
        x = x - step * gradient(problem, x)
    return float(value(problem, x))


@claim(
    "budget.one-beats-all",
    title="A budget of gradients: one at a time, or all at once?",
    statement="On logistic regression (n = 569, l2 = 1/n, L/mu = 58), SGD with B = 1 ends lower than gradient descent"
    " for budgets of n and of 3 n gradients: gradient descent with the best of 31 constant"
    " steps, SGD with the best of three; not so with L/mu = 1.1, nor for a budget"
    " of 5 n with L/mu = 11.",
    source="derived; a remark in the talk on CR-PSGD, which attributes it to Bottou, Bousquet (2008) and Bottou,"
    " Curtis, Nocedal, SIAM Review 60 (2018), and names no exceptions",
    bibtex="bottou2018optimization",
    kind="upper",
    proof="A step with one row costs n times less and moves x as far; what it adds is noise, and that is a matter of"
    " the last digits. It turns round after so many passes that gradient descent's factor, at most ((L - mu)/(L +"
    " mu))^2 a pass, falls below SGD's noise: soon if L/mu is small.",
    subject=((3, 1), 1.0 / ALL),
    mutants={"l2 = 1: L/mu = 1.1": ((3,), 1.0), "l2 = 0.01: L/mu = 11, five passes": ((5,), 0.01)},
)
def _(context):
    passes, l2 = context.subject
    (problem, best), checks = small(l2, ALL), []
    smooth, largest, replicas = lipschitz(problem), max_lipschitz(problem), context.samples(200, 40)

    def last(share, name, steps, replicas):
        method = ParallelSGD(Identity(), step=Constant(share / largest))
        found = run(
            method,
            problem,
            workers=1,
            steps=steps,
            replicas=replicas,
            seed=context.stream(name, steps),
            record_every=steps,
            wire_dtype=np.float64,
        )
        return found.funs - best.fun

    for number in passes:
        descent = min(full_gradient(problem, step / smooth, number) for step in np.linspace(0.5, 2.0, 31)) - best.fun
        # SGD's step is chosen with random numbers other than those of the measurement
        share = min(SHARES, key=lambda share: float(last(share, "choose", number * ALL, 6).mean()))  # noqa: B023
        interval = mean_interval(last(share, "measure", number * ALL, replicas), context.level(len(passes)))
        label = f"E f - f* of SGD against gradient descent, {number} n gradients, SGD's step {share:g}/L_max"
        checks.append(upper(label, interval, descent))
    return Measurement(*checks, samples=len(passes) * replicas, note=f"L/mu = {smooth / l2:.3g}")
