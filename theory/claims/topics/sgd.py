"""Claims about SGD on quadratics, where everything has a closed form: step sizes, floors, workers."""

from __future__ import annotations

import math

import numpy as np

from ... import bounds
from ...cluster.run import run
from ...compressors.codec import compress
from ...compressors.identity import Identity
from ...compressors.qsgd import QSGD
from ...compressors.sparsifiers import RandK
from ...core.random import key
from ...measure import loglog_slope, mean_interval
from ...methods.schedules import Constant, InverseTime, Polynomial
from ...methods.sgd import ParallelSGD
from ...problems.quadratics import quadratic
from ..base import claim
from ..checks import Measurement, equality, rate, upper

MU, SIGMA2, D = 2.0, 3.0, 20  # the isotropic quadratic (mu/2)||x||^2 in 20 dimensions, noise of total variance 3
RSS = "Rakhlin, Shamir, Sridharan, Making gradient descent optimal, ICML 2012"


def isotropic():
    """F(x) = (mu/2)||x||^2 with Gaussian noise of variance SIGMA2, spread over all coordinates."""
    return quadratic(np.full(D, MU), covariance=SIGMA2 / D)


def distances(context, step, records, *, workers=1, start=0.0, replicas=1000, name=""):
    """||x_T||^2 for the T in ``records`` (every so many steps), one row for each replica."""
    every, steps = records
    x0 = np.full(D, start / math.sqrt(D))
    result = run(
        ParallelSGD(Identity(), step=step),
        isotropic(),
        workers=workers,
        steps=steps,
        replicas=replicas,
        seed=context.stream(name),
        x0=x0,
        record_every=every,
        wire_dtype=np.float64,
    )
    return result.history["step"], 2.0 / MU * result.replica_last.T


@claim(
    "sgd.inverse-time",
    title="SGD with the step 1/(mu t), exactly",
    statement="On (mu/2)||x||^2 with noise of variance sigma^2 and N workers, E||x_T||^2 = sigma^2/(N mu^2 T) at every"
    " T, from any start.",
    latex=r"\mathbb{E}\|x_T\|^2=\frac{\sigma^2}{N\mu^2T}",
    source=f"derived; shows that the constant 1 in E||x_T - x*||^2 <= G^2/(mu^2 T) is attained ({RSS}, Lemma 1, has 4)",
    bibtex="rakhlin2012making",
    kind="equality",
    tight_where="everywhere",
    proof="T x_T = (T - 1) x_{T-1} - noise/mu: x_T is minus the mean of T noises over mu.",
    bound=bounds.sgd_inverse_time_exact,
    subject=lambda workers: (InverseTime(c=1.0, mu=MU, shift=1.0), workers),
    mutants={
        "shift 2: the steps begin one late": lambda workers: (InverseTime(1.0, MU, 2.0), workers),
        "c = 2: steps twice as large": lambda workers: (InverseTime(2.0, MU, 1.0), workers),
        "the same noise for all workers": lambda workers: (InverseTime(1.0, MU, 1.0), 1),
    },
)
def _(context):
    replicas, checks = context.samples(1000, 500), []
    for workers in (4, 1):
        step, simulated = context.subject(workers)
        times, found = distances(
            context, step, (10, 100), workers=simulated, start=30.0, replicas=replicas, name=f"N={workers}"
        )
        for T in (100, 10):
            interval = mean_interval(found[:, times == T][:, 0], context.level(4))
            predicted = bounds.sgd_inverse_time_exact(T, mu=MU, variance=SIGMA2 / workers)
            checks.append(equality(f"E||x_T||^2, T={T}, N={workers}", interval, predicted))
    return Measurement(*checks, samples=2 * replicas)


@claim(
    "sgd.inverse-time.bound",
    title="SGD with the step 1/(mu t), in general",
    statement="E||x_T - x*||^2 <= (G^2/mu^2) (T - H_T)/(T (T - 1)), at most G^2/(mu^2 (T + 1)), if E||g||^2 <= G^2.",
    latex=r"\mathbb{E}\|x_T-x^*\|^2\le\frac{G^2}{\mu^2}\,\frac{T-H_T}{T(T-1)}",
    source=f"derived; sharpens {RSS}, Lemma 1, by a factor of 4",
    bibtex="rakhlin2012making",
    kind="upper",
    tight_where="to first order on the isotropic quadratic, if G^2 is the second moment near the minimum",
    proof="a_{t+1} <= (1 - 2/(t+1)) a_t + Q/(t+1)^2, Q = G^2/mu^2; times t (t + 1) it telescopes.",
    bound=bounds.sgd_inverse_time,
    subject=InverseTime(c=1.0, mu=MU, shift=1.0),
    mutants={
        "c = 4: steps four times as large": InverseTime(4.0, MU, 1.0),
        "c = 0.25: steps a quarter as large": InverseTime(0.25, MU, 1.0),
    },
)
def _(context):
    replicas = context.samples(1000, 500)
    times, found = distances(context, context.subject, (5, 100), replicas=replicas, start=0.5)
    # E||g||^2 = mu^2 a_t + sigma^2 with a_0 = 1/4 and a_t = sigma^2/(mu^2 t): at most 2 sigma^2, at t = 1
    second, checks = 2.0 * SIGMA2, []
    for T in (100, 10, 5):
        interval = mean_interval(found[:, times == T][:, 0], context.level(3))
        checks.append(upper(f"E||x_T||^2, T={T}", interval, bounds.sgd_inverse_time(T, mu=MU, second_moment=second)))
    return Measurement(*checks, samples=replicas)


@claim(
    "sgd.inverse-time.slope",
    title="The rate 1/T",
    statement="With the step 1/(mu t), log E||x_T - x*||^2 falls by 1 per log T.",
    latex=r"\frac{d\log\mathbb{E}\|x_T-x^*\|^2}{d\log T}=-1",
    source=f"{RSS}, Lemma 1",
    bibtex="rakhlin2012making",
    kind="rate",
    proof="sgd.inverse-time.",
    bound=bounds.sgd_inverse_time_exact,
    subject=InverseTime(c=1.0, mu=MU, shift=1.0),
    mutants={
        "c = 0.25: below 1/2 the rate is T^(-2c)": InverseTime(0.25, MU, 1.0),
        "a constant step": InverseTime(1e8, MU, 1e9),
    },
)
def _(context):
    replicas = context.samples(1000, 500)
    times, found = distances(context, context.subject, (10, 200), replicas=replicas, start=1.0)
    slope = loglog_slope(times[1:], found[:, 1:], level=context.level(1))
    note = "window 10 <= T <= 200: the law is exact from T = 1 on, so any window would do; tolerance 0.05"
    return Measurement(rate("slope of E||x_T||^2 in T", slope, -1.0, 0.05), samples=replicas, note=note)


@claim(
    "sgd.constant-step",
    title="SGD with a constant step, exactly",
    statement="On (mu/2)||x||^2 with noise of variance sigma^2, E||x_T||^2 = r^T ||x_0||^2 + (1 - r^T) gamma sigma^2/"
    "(mu (2 - gamma mu)), r = (1 - gamma mu)^2: fast at first, then a floor.",
    latex=r"\mathbb{E}\|x_T\|^2\to\frac{\gamma\sigma^2}{\mu(2-\gamma\mu)}",
    source="derived",
    kind="equality",
    tight_where="everywhere",
    proof="a_{t+1} = (1 - gamma mu)^2 a_t + gamma^2 sigma^2.",
    bound=bounds.sgd_constant_step_exact,
    subject=lambda gamma: (Constant(gamma), 1),
    mutants={
        "a step 10 % too large": lambda gamma: (Constant(1.1 * gamma), 1),
        "noise averaged over two workers, not one": lambda gamma: (Constant(gamma), 2),
    },
)
def _(context):
    replicas, gamma, checks = context.samples(2000, 1000), 0.1, []
    step, workers = context.subject(gamma)
    times, found = distances(context, step, (5, 40), replicas=replicas, start=2.0, workers=workers)
    for T in (40, 5):
        interval = mean_interval(found[:, times == T][:, 0], context.level(2))
        predicted = bounds.sgd_constant_step_exact(T, mu=MU, step=gamma, variance=SIGMA2, distance=4.0)
        checks.append(equality(f"E||x_T||^2, T={T}, gamma mu={gamma * MU:g}", interval, predicted))
    return Measurement(*checks, samples=replicas)


@claim(
    "sgd.constant-step.bound",
    title="The floor of a constant step, in general",
    statement="E||x_T - x*||^2 <= r^T ||x_0 - x*||^2 + (1 - r^T) gamma M^2/(2 mu), r = 1 - 2 gamma mu, if"
    " E||g||^2 <= M^2 and gamma <= 1/(2 mu).",
    latex=r"\mathbb{E}\|x_T-x^*\|^2\le(1-2\gamma\mu)^T\|x_0-x^*\|^2+\frac{\gamma M^2}{2\mu}",
    source="Yin et al., AISTATS 2018, Theorem 5 with B = 1",
    bibtex="yin2018gradient",
    kind="tight",
    tight_where="the isotropic quadratic at its stationary law, with M^2 the second moment there: for every gamma, not"
    " only in the limit of gamma to 0",
    proof="a_{t+1} <= (1 - 2 gamma mu) a_t + gamma^2 M^2, with equality for (mu/2)||x||^2 where E||g||^2 = M^2; its"
    " stationary law has M^2 = 2 sigma^2/(2 - gamma mu).",
    bound=bounds.sgd_constant_step,
    subject=lambda gamma: (Constant(gamma), 1),
    mutants={
        "a step 10 % too large": lambda gamma: (Constant(1.1 * gamma), 1),
        "noise averaged over two workers, not one": lambda gamma: (Constant(gamma), 2),
    },
)
def _(context):
    replicas, gamma = context.samples(2000, 1000), 0.1
    step, workers = context.subject(gamma)
    times, found = distances(context, step, (2, 40), replicas=replicas, start=0.0, workers=workers)
    second = 2.0 * SIGMA2 / (2.0 - gamma * MU)  # from x_0 = x* on it grows to this
    floor = bounds.sgd_constant_step_floor(MU, gamma, second, form="bound")
    at_2 = bounds.sgd_constant_step(2, mu=MU, step=gamma, second_moment=second, distance=0.0)
    late = mean_interval(found[:, times == 40][:, 0], context.level(2))
    early = mean_interval(found[:, times == 2][:, 0], context.level(2))
    return Measurement(
        equality(f"stationary E||x||^2, gamma mu={gamma * MU:g}", late, floor, tolerance=1e-7),  # (1 - 0.2)^80 remains
        upper("E||x_T||^2, T=2, from the minimum", early, at_2),
        samples=replicas,
    )


@claim(
    "sgd.weighted-average",
    title="The weighted average of SGD",
    statement="Steps 2/(mu (t + 2)) and weights t + 1 give E f(xbar_T) - f* <= 2 G^2/(mu (T + 1)), where G^2 bounds the"
    " second moment of the gradient that is applied: the mean over workers.",
    latex=r"\mathbb{E}f(\bar x_T)-f^*\le\frac{2G^2}{\mu(T+1)}",
    source="Lacoste-Julien, Schmidt, Bach, arXiv 1212.2002; Bubeck 2015, Theorem 3.9",
    bibtex="lacoste2012simpler",
    kind="upper",
    proof="2 eta (f(x_t) - f*) <= (1 - mu eta) a_t - a_{t+1} + eta^2 G^2; times (t + 1)/(2 eta) it telescopes.",
    bound=bounds.sgd_weighted_average,
    subject=2.0,
    mutants={"steps a hundred times too small": 0.02},
)
def _(context):
    replicas, workers, steps, start = context.samples(1000, 300), 4, 100, 2.0
    method = ParallelSGD(Identity(), step=InverseTime(context.subject, MU, 2.0), average=Polynomial(1.0, 1.0))
    x0 = np.full(D, start / math.sqrt(D))
    result = run(
        method,
        isotropic(),
        workers=workers,
        steps=steps,
        replicas=replicas,
        x0=x0,
        record_every=steps,
        seed=context.stream(),
        wire_dtype=np.float64,
    )
    second = (MU * start) ** 2 + SIGMA2 / workers  # largest at the start
    bound = bounds.sgd_weighted_average(steps, mu=MU, second_moment=second)
    interval, f0, t = mean_interval(result.funs, context.level(2)), MU / 2.0 * start**2, np.arange(steps)
    general = bounds.sgd_average(2.0 / (MU * (t + 2)), t + 1.0, mu=MU, second_moment=second, distance=start**2)
    return Measurement(
        upper(f"E f(xbar_T) - f*, T={steps}, N={workers}", interval, bound, trivial=f0),
        upper("the same, by sgd_average", interval, general, trivial=f0),
        samples=replicas,
    )


@claim(
    "sgd.workers",
    title="N workers divide the noise by N",
    statement="The mean of N workers' unbiased compressed gradients has the variance (sigma^2 + omega (sigma^2 +"
    " ||grad f||^2))/N.",
    latex=r"\mathbb{E}\Big\|\tfrac1N\sum_wQ(g^w)-\nabla f\Big\|^2=\frac{\sigma^2+\omega(\sigma^2+\|\nabla f\|^2)}{N}",
    source="derived; cf. QSGD, NIPS 2017, section 3",
    bibtex="alistarh2017qsgd",
    kind="equality",
    tight_where="compressors with E||Q(v) - v||^2 = omega ||v||^2 for every v, such as random-k",
    proof="Given g, the error Q(g) - g has mean zero, so E||Q(g) - grad f||^2 = omega E||g||^2 + sigma^2; workers are"
    " independent.",
    bound=bounds.averaged_variance,
    subject=lambda k, workers, eta: (RandK(k, unbiased=True), workers, eta),
    mutants={
        "all workers draw the same numbers": lambda k, workers, eta: (RandK(k, unbiased=True), 1, eta),
        "messages summed, not averaged": lambda k, workers, eta: (RandK(k, unbiased=True), workers, eta * workers),
        "factor d/k forgotten": lambda k, workers, eta: (RandK(k), workers, eta),
    },
)
def _(context):
    replicas, k, eta, start, checks, columns = context.samples(4000, 2000), 5, 0.1, np.full(D, 0.2), [], []
    counts = (1, 4, 16)
    squared = float(MU**2 * start @ start)  # ||grad f||^2
    for N in counts:
        compressor, workers, step = context.subject(k, N, eta)
        result = run(
            ParallelSGD(compressor, step=Constant(step)),
            isotropic(),
            workers=workers,
            steps=1,
            x0=start,
            replicas=replicas,
            seed=context.stream(N),
            wire_dtype=np.float64,
        )
        columns.append(np.sum(((start - result.last) / eta - MU * start) ** 2, axis=1))
        predicted = bounds.averaged_variance(SIGMA2, SIGMA2 + squared, workers=N, omega=bounds.rand_k_variance(D, k))
        checks.append(equality(f"variance, N={N}", mean_interval(columns[-1], context.level(4)), predicted))
    law = loglog_slope(counts, np.stack(columns, axis=1), level=context.level(4))
    return Measurement(*reversed(checks), rate("slope in N", law, -1.0, 0.1), samples=3 * replicas)


GAUSSIAN = "grad f = (1/4, ..., 1/4), g - grad f standard normal in 64 dimensions: sigma^2 = 64 and E||g||^2 = 68"


def _noise_of_quantized_gradients(context, predict):
    """E||Q(g) - grad f||^2 for Gaussian gradients around a mean, d = 64, s = 16."""
    d, s, samples = 64, 16, context.samples(4000, 2000)
    rng = np.random.default_rng(context.stream())
    gradient = np.full(d, 0.25)
    found = np.empty(samples)
    for r in range(samples):
        g = gradient + rng.standard_normal(d)
        received = compress(context.subject(s), g, key(context.stream(), r), wire_dtype=np.float64)
        found[r] = np.sum((received - gradient) ** 2)
    sigma2, second = float(d), float(d + gradient @ gradient)
    return mean_interval(found), predict(bounds.qsgd_variance(d, s, form="paper"), sigma2, second), samples


@claim(
    "qsgd.gradient-noise",
    title="Noise of a quantized stochastic gradient",
    statement="E||Q(g) - grad f||^2 <= sigma^2 + min(d/s^2, sqrt(d)/s) E||g||^2: quantization comes on top of the"
    " sampling noise.",
    latex=r"\mathbb{E}\|Q_s(g)-\nabla f\|^2\le\sigma^2+\min(d/s^2,\sqrt d/s)\,\mathbb{E}\|g\|^2",
    source="derived; the correct reading of QSGD, NIPS 2017, Theorems 3.2 and 3.4",
    bibtex="alistarh2017qsgd",
    kind="upper",
    proof="Given g, Q(g) - g has mean zero: E||Q(g) - grad f||^2 = E||Q(g) - g||^2 + E||g - grad f||^2.",
    bound=bounds.averaged_variance,
    subject=QSGD,
    mutants={"one level instead of s": lambda s: QSGD(1)},
)
def _(context):
    interval, bound, samples = _noise_of_quantized_gradients(context, lambda omega, sigma2, B: sigma2 + omega * B)
    return Measurement(upper("E||Q(g) - grad f||^2, d=64, s=16", interval, bound), samples=samples, note=GAUSSIAN)


@claim(
    "qsgd.gradient-noise.reading",
    title="Noise of a quantized stochastic gradient, without that of the gradient itself",
    statement="Read as a bound on the noise of the whole stochastic gradient, E||Q(g) - grad f||^2 <="
    " min(d/s^2, sqrt(d)/s) E||g||^2 is too small: it vanishes for s to infinity. Read as a bound on the noise of the"
    " quantizer, E||Q(g) - g||^2, as in Lemma 3.1, it holds.",
    latex=r"\mathbb{E}\|Q_s(g)-\nabla f\|^2\le\min(d/s^2,\sqrt d/s)\,B",
    source="QSGD, NIPS 2017, Theorem 3.2, with the variance of Definition 2.1, that of the stochastic gradient",
    bibtex="alistarh2017qsgd",
    kind="upper",
    proof="min(d/s^2, sqrt(d)/s) E||g||^2 covers E||Q(g) - g||^2 alone; E||g - grad f||^2, the noise of g itself, comes"
    " on top and does not depend on s.",
    subject=QSGD,
    text="reading",
    quote=r"If $\hat g(x)$ is a stochastic gradient for $f$ at $x$ with second moment bound $B$, then $Q_s(\hat g(x))$"
    r" is a stochastic gradient for $f$ at $x$ with variance bound $\min(\frac{n}{s^2}, \frac{\sqrt n}{s})B$.",
    see=("qsgd.gradient-noise", "qsgd.variance.paper"),
)
def _(context):
    interval, bound, samples = _noise_of_quantized_gradients(context, lambda omega, sigma2, B: omega * B)
    return Measurement(upper("E||Q(g) - grad f||^2, d=64, s=16", interval, bound), samples=samples, note=GAUSSIAN)
