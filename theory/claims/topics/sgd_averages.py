"""Claims about averages of SGD's iterates: the logarithm of plain averaging, the gain from smoothness and suffixes."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.identity import Identity
from ...measure import exactly, mean_interval
from ...methods.schedules import Constant, InverseTime, Polynomial, Suffix, Uniform, averaging_weight, step_size
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, identity, lower, rate, upper
from .sgd import RSS

DIAGONAL, VARIANCE, START = np.array([0.5, 1.0, 2.0]), np.array([0.4, 0.1, 0.2]), np.array([1.0, -1.0, 0.5])


def schedule(rule, steps):
    """The step sizes, or the weights, of the first steps."""
    one = step_size if step_size.implements(type(rule)) else averaging_weight
    return np.array([one(rule, t) for t in range(steps)], float)


# --- at the edge of the constraint ------------------------------------------------------------------------------------


def on_the_box(context, step, average, records, replicas, start):
    """Projected SGD on x^2/2 + x over [0, 1], noise uniform on [-1, 3]: f of the average at ``records``."""
    rng = np.random.default_rng(context.stream())
    x, mean, total, found = np.full(replicas, start), np.zeros(replicas), 0.0, []
    eta, weights = schedule(step, records[-1]), schedule(average, records[-1])
    for t in range(records[-1]):
        if weights[t] > 0.0:
            total += weights[t]
            mean += weights[t] / total * (x - mean)
        x = np.clip(x - eta[t] * (x + rng.uniform(-1.0, 3.0, replicas)), 0.0, 1.0)
        if t + 1 in records:
            found.append(mean**2 / 2.0 + mean)
    return found


PLAIN = (InverseTime(1.0, 1.0, 1.0), Uniform())


@claim(
    "sgd.uniform-average.lower",
    title="Plain averaging at the edge of the constraint: at least log(T)/T",
    statement="On ||x||^2/2 + x_1 over the box [0, 1]^d, with noise uniform on [-1, 3] and steps c/t, E f(xbar_T) - f*"
    " >= (c/(16 T)) (1/T_0 + ... + 1/(T - 1)), T_0 = max(2, c/2), from any start.",
    latex=r"\mathbb{E}f(\bar x_T)-f^*\ge\frac{c}{16T}\sum_{t=T_0}^{T-1}\frac1t",
    source=f"{RSS}, Theorem 3",
    bibtex="rakhlin2012making",
    kind="lower",
    tight_where="up to a factor of 3.2 as T grows: see sgd.uniform-average.logarithm",
    proof="With probability 1/8 the noise is below -1/2 and pushes x_1 up by more than c/(2 t) even from 0, so E x_1 >="
    " c/(16 t).",
    bound=bounds.sgd_uniform_average_lower,
    subject=PLAIN,
    mutants={"the last half alone": (PLAIN[0], 0.5), "the last tenth alone": (PLAIN[0], 0.9)},
    see=("sgd.uniform-average.logarithm",),
)
def _(context):
    replicas, checks = context.samples(2000, 500), []
    for T in (10_000, 100):
        step, average = context.subject
        average = Suffix(int(average * T)) if isinstance(average, float) else average
        found = on_the_box(context, step, average, (T,), replicas, start=0.0)[0]
        checks.append(
            lower(
                f"E f(xbar_T) - f*, from the minimum, T={T}",
                mean_interval(found, context.level(2)),
                bounds.sgd_uniform_average_lower(T),
            )
        )
    return Measurement(*checks, samples=2 * replicas)


@claim(
    "sgd.uniform-average.logarithm",
    title="The logarithm of plain averaging, with its factor",
    statement="In that construction T (E f(xbar_T) - f*) grows by c kappa for each unit of log T, kappa = 0.2020; the"
    " averages of the last half and with weights t + 1 do not grow.",
    latex=r"\frac{T\,\mathbb{E}[f(\bar x_T)-f^*]-S\,\mathbb{E}[f(\bar x_S)-f^*]}{\log(T/S)}\to "
    r"c\sum_{n\ge1}\frac{\mathbb{E}[S_n^+]}{n}",
    source=f"derived; sharpens the factor c/16 of {RSS}, Theorem 3",
    bibtex="rakhlin2012making",
    kind="rate",
    proof="t x_t/c follows V+ = max(0, V - Z), Lindley's recursion, whose stationary mean is Spitzer's sum; the mean of"
    " c E V/t over t < T is c kappa log(T)/T.",
    bound=bounds.sgd_uniform_average_logarithm,
    subject=PLAIN,
    mutants={
        "steps twice as large": (InverseTime(2.0, 1.0, 1.0), Uniform()),
        "weights t + 1": (PLAIN[0], Polynomial(1.0, 1.0)),
    },
)
def _(context):
    replicas, window = context.samples(4000, 1000), (100, 3000)
    step, average = context.subject
    early, late = on_the_box(context, step, average, window, replicas, start=1.0)
    growth = (window[1] * late - window[0] * early) / np.log(window[1] / window[0])
    slope, note = (
        mean_interval(growth, context.level(1)),
        "window 100 <= T <= 3,000: before, the square of the mean and the start count",
    )
    kappa = bounds.sgd_uniform_average_logarithm()
    return Measurement(rate("growth of T E[f - f*] per log T", slope, kappa, 0.03), samples=replicas, note=note)


# --- exact laws -------------------------------------------------------------------------------------------------------


@claim(
    "sgd.average.exact",
    title="Averages on a quadratic, exactly",
    statement="On a diagonal quadratic with drawn noise the second moments of x_t and of any weighted average of the"
    " iterates follow a recursion of three numbers a coordinate, for any steps and weights.",
    latex=r"\mathbb{E}x_{t+1}^2=(1-\eta_th)^2\,\mathbb{E}x_t^2+\eta_t^2c",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="x_{t+1} = (1 - eta h) x_t - eta xi with xi independent of x_t and of the sum of the iterates.",
    bound=bounds.quadratic_average_exact,
    subject=lambda weights: (InverseTime(1.0, 0.5, 4.0), weights, 1),
    mutants={
        "the steps begin one late": lambda weights: (InverseTime(1.0, 0.5, 5.0), weights, 1),
        "the average begins one late": lambda weights: (InverseTime(1.0, 0.5, 4.0), Suffix(1), 1),
        "noise averaged over two workers, not one": lambda weights: (InverseTime(1.0, 0.5, 4.0), weights, 2),
    },
)
def _(context):
    replicas, steps, checks = context.samples(20_000, 8_000), 40, []
    for name, weights in (("uniform", Uniform()), ("weights t + 1", Polynomial(1.0, 1.0)), ("last half", Suffix(20))):
        step, average, workers = context.subject(weights)
        found = run(
            ParallelSGD(Identity(), step=step, average=average),
            quadratic(DIAGONAL, covariance=VARIANCE),
            workers=workers,
            steps=steps,
            replicas=replicas,
            x0=START,
            seed=context.stream(name),
            record_every=steps,
            wire_dtype=np.float64,
        ).funs
        law = bounds.quadratic_average_exact(
            schedule(InverseTime(1.0, 0.5, 4.0), steps),
            schedule(weights, steps),
            diagonal=DIAGONAL,
            variance=VARIANCE,
            start=START,
        )
        interval = mean_interval(found, context.level(3))
        checks.append(equality(f"E f(xbar_T) - f*, T={steps}, {name}", interval, float(DIAGONAL @ law) / 2.0))
    return Measurement(*checks, samples=3 * replicas)


@claim(
    "sgd.polyak-ruppert",
    title="Polyak-Ruppert: the limit of plain averaging, for every constant step",
    statement="T E||xbar_T - x*||^2 -> tr(H^-1 C H^-1) and T (E f(xbar_T) - f*) -> tr(H^-1 C)/2, whatever the constant"
    " step below 2/L.",
    latex=r"T\,\mathbb{E}\|\bar x_T-x^*\|^2\to\operatorname{tr}(H^{-1}CH^{-1}),\quad "
    r"T\,\mathbb{E}[f(\bar x_T)-f^*]\to\tfrac12\operatorname{tr}(H^{-1}C)",
    source="Polyak, Juditsky, SIAM J. Control Optim. 30 (1992), Theorem 1",
    bibtex="polyak1992acceleration",
    kind="equality",
    tight_where="in the limit, on every quadratic",
    proof="H xbar_T = (x_0 - x_T)/(gamma T) minus the mean of T noises.",
    bound=bounds.polyak_ruppert,
    subject=lambda step: (Constant(step), Uniform()),
    mutants={
        "the last half alone": lambda step: (Constant(step), Suffix(1_000)),
        "weights t + 1": lambda step: (Constant(step), Polynomial(1.0, 1.0)),
    },
)
def _(context):
    steps, replicas, checks = 2_000, context.samples(2000, 600), []
    problem = quadratic(DIAGONAL, covariance=VARIANCE)
    for size in (0.8, 0.4):
        step, average = context.subject(size)
        result = run(
            ParallelSGD(Identity(), step=step, average=average),
            problem,
            workers=1,
            steps=steps,
            x0=START,
            replicas=replicas,
            seed=context.stream(int(10 * size)),
            record_every=steps,
            wire_dtype=np.float64,
        )
        true, found = (
            bounds.quadratic_average_exact(
                schedule(Constant(size), steps),
                schedule(weights, steps),
                diagonal=DIAGONAL,
                variance=VARIANCE,
                start=START,
            )
            for weights in (Uniform(), average)
        )
        for of, samples, factor in (
            ("gap", result.funs, DIAGONAL / 2.0),
            ("distance", np.sum(result.x**2, axis=1), np.ones(3)),
        ):
            limit = bounds.polyak_ruppert(DIAGONAL, VARIANCE, of=of)
            measured = mean_interval(steps * samples, context.level(4))
            label = f"T times the {of}, step {size:g}, T={steps}"
            checks.append(equality(f"{label}: measured and exact", measured, steps * float(factor @ true)))
            checks.append(
                rate(f"{label}: exact and limit", exactly(steps * float(factor @ found)), limit, 0.02 * limit)
            )
    return Measurement(*checks, samples=2 * replicas, note="at T = 2,000 the exact law is within 2 % of its limit")


# --- smooth: Theorems 1 and 2 -----------------------------------------------------------------------------------------


@claim(
    "sgd.smooth-average",
    title="On smooth functions the plain average has no logarithm",
    statement="Steps 1/(mu t) on a smooth function: E f(xbar_T) - f* <= (L/2)(mean of sqrt A_t)^2 <= 2 L G^2/(mu^2 T).",
    latex=r"\mathbb{E}f(\bar x_T)-f^*\le\frac L2\Big(\frac1T\sum_{t<T}\sqrt{A_t}\Big)^2\le\frac{2LG^2}{\mu^2T}",
    source=f"derived; {RSS}, Theorem 2, has 16 instead of 2",
    bibtex="rakhlin2012making",
    kind="upper",
    tight_where="up to a factor of 2 on the isotropic quadratic with G^2 the second moment near the minimum: the law"
    " there is sigma^2/(mu T)",
    proof="The norm of a mean is at most the mean of the norms in L2, and E||x_t - x*||^2 <= A_t by"
    " sgd.inverse-time.bound.",
    bound=bounds.sgd_smooth_average,
    subject=(1.0, Uniform()),
    mutants={
        "c = 0.25: steps a quarter as large": (0.25, Uniform()),
        "c = 8: steps eight times as large": (8.0, Uniform()),
    },
)
def _(context):
    mu, variance, distance, T, checks = 1.0, 1.0, 1.0, 10_000, []
    c, average = context.subject
    eta, second = schedule(InverseTime(1.0, mu, 1.0), T), mu**2 * distance + variance
    moments = bounds.quadratic_moments_exact(eta, diagonal=[mu], variance=variance, start=distance**0.5)
    checks.append(upper("largest E||g_t||^2 on the way", exactly(float(mu**2 * moments.max() + variance)), second))
    for steps in (T, 100, 5):
        law = bounds.quadratic_average_exact(
            schedule(InverseTime(c, mu, 1.0), steps),
            schedule(average, steps),
            diagonal=[mu],
            variance=variance,
            start=distance**0.5,
        )
        bound = bounds.sgd_smooth_average(steps, mu=mu, lipschitz=mu, second_moment=second)
        checks.insert(-1, upper(f"E f(xbar_T) - f*, exactly, T={steps}", exactly(mu / 2.0 * float(law.sum())), bound))
    return Measurement(*checks)


@claim(
    "sgd.smooth-last",
    title="The last iterate on smooth functions: constant 1/2",
    statement="Steps 1/(mu t) on a smooth function: E f(x_T) - f* <= (L/2) (G^2/mu^2) (T - H_T)/(T (T - 1)), at most"
    " L G^2/(2 mu^2 (T + 1)); the constant 1/2 is attained.",
    latex=r"\mathbb{E}f(x_T)-f^*\le\frac{L}{2}\,\frac{G^2}{\mu^2}\,\frac{T-H_T}{T(T-1)}\le\frac{LG^2}{2\mu^2(T+1)}",
    source=f"derived; {RSS}, Theorem 1, has 2 instead of 1/2",
    bibtex="rakhlin2012making",
    kind="tight",
    tight_where="f = (mu/2)||x||^2, as T grows, if G^2 is the second moment near the minimum",
    proof="f - f* <= (L/2)||x - x*||^2 and sgd.inverse-time.bound.",
    bound=bounds.sgd_smooth_last,
    subject=1.0,
    mutants={
        "c = 0.25: steps a quarter as large": 0.25,
        "c = 2: steps twice as large": 2.0,
    },
)
def _(context):
    mu, T = 1.0, 20_000
    eta = schedule(InverseTime(context.subject, mu, 1.0), T)
    gap = mu / 2.0 * bounds.quadratic_moments_exact(eta, diagonal=[mu], variance=1.0, start=0.1)[:, 0]
    checks = []  # x_1 = -noise/mu, where E||g||^2 = 2; later it is 1 + 1/t
    for steps in (T, 100, 3):
        bound = bounds.sgd_smooth_last(steps, mu=mu, lipschitz=mu, second_moment=2.0)
        checks.append(upper(f"E f(x_T) - f*, exactly, T={steps}, G^2=2", exactly(gap[steps]), bound))
    limit = identity(f"2 T (E f(x_T) - f*) mu/sigma^2, T={T}", 2.0 * T * gap[T], 1.0, tolerance=1e-9)
    return Measurement(limit, *checks)
