"""Claims about gradients with decreasing error: the theorems behind growing batches."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from ... import bounds
from ...measure import exactly, mean_interval
from ...methods.schedules import GrowingBatch
from ...problems import logistic, sample_gradient
from ..base import claim
from ..checks import Measurement, identity, upper
from .growing_batches import SIGMA2, train

BCN = "Bottou, Curtis, Nocedal, Optimization methods for large-scale machine learning, SIAM Review 60 (2018)"
FS = "Friedlander, Schmidt, Hybrid deterministic-stochastic methods for data fitting, SIAM J. Sci. Comput. 34 (2012)"


@claim(
    "growing.linear-rate",
    title="Batches that grow geometrically give a linear rate",
    statement="With the step alpha <= min(1/L, 1/c) and batches ceil(tau^t), E f(x_t) - f* <= omega rho^t, rho ="
    " max(1 - alpha c/2, 1/tau), omega = max(alpha L M/c, f(x_0) - f*), where M is the variance of one gradient.",
    latex=r"\mathbb{E}f(x_t)-f^*\le\max\Big\{\frac{\bar\alpha LM}{c\mu},D_0\Big\}"
    r"\max\Big\{1-\frac{\bar\alpha c\mu}2,\frac1\tau\Big\}^t",
    source=f"{BCN}, Theorem 5.1 and Corollary 5.2",
    bibtex="bottou2018optimization",
    kind="upper",
    proof="D_{t+1} <= (1 - alpha c mu) D_t + alpha^2 L M zeta^t/2 and induction; only 2 c (f - f*) <= ||grad f||^2 is"
    " used, so PL is enough.",
    bound=bounds.shrinking_noise,
    subject=lambda tau: GrowingBatch(tau, 1, "ceil"),
    mutants={"batches of one throughout": lambda tau: 1},
    see=("cr-psgd.equality",),
)
def _(context):
    c, L, step, tau, start, replicas, checks = 1.0, 2.0, 0.5, 1.3, 2.0, context.samples(1000, 400), []
    known = dict(step=step, curvature=c, lipschitz=L, noise=SIGMA2, gap=0.5 * (c + L) * start**2)
    for t in (24, 12, 4):
        found, _ = train(
            context, [c, L], step, context.subject(tau), steps=t, start=start, replicas=replicas, name=f"t={t}"
        )
        measured = mean_interval(found, context.level(3))
        for what, bound in (("", bounds.shrinking_noise), (", the recursion solved", bounds.shrinking_noise_recursion)):
            checks.append(
                upper(f"E f - f*, t={t}{what}", measured, bound(t, **known, decay=1.0 / tau), trivial=known["gap"])
            )
    return Measurement(*checks, samples=3 * replicas)


@claim(
    "growing.linear-rate.recursion",
    title="The induction behind the linear rate",
    statement="The solution of D_{t+1} = (1 - alpha c mu) D_t + alpha^2 L M zeta^t/2 stays below omega rho^t for all t,"
    " with equality at t = 0.",
    latex=r"D_{t+1}=(1-\bar\alpha c\mu)D_t+\tfrac12\bar\alpha^2LM\zeta^t\le\omega\rho^{t+1}",
    source=f"{BCN}, Theorem 5.1, inequality (5.5)",
    bibtex="bottou2018optimization",
    kind="upper",
    tight_where="t = 0",
    proof="omega rho^t (1 - a + (alpha^2 L M/(2 omega)) (zeta/rho)^t) <= omega rho^t (1 - a/2), a = alpha c mu.",
    bound=bounds.shrinking_noise,
    subject=bounds.shrinking_noise,
    mutants={
        "rho = max(1 - alpha c mu, "
        "zeta)": lambda t, *, step, curvature, lipschitz, noise, decay, gap, alignment=1.0, length=1.0: (
            max(step * lipschitz * noise / (curvature * alignment), gap)
            * max(1.0 - step * curvature * alignment, decay) ** t
        ),
        "omega = f(x_0) - f*": lambda t, *, step, curvature, decay, gap, alignment=1.0, **known: (
            gap * max(1.0 - step * curvature * alignment / 2.0, decay) ** t
        ),
    },
)
def _(context):
    checks = []
    for step, c, L, M, decay, gap, alignment, length in (
        (0.5, 1.0, 2.0, 8.0, 0.5, 1.0, 1.0, 1.0),
        (0.5, 1.0, 2.0, 8.0, 0.75, 8.0, 1.0, 1.0),
        (0.1, 1.0, 2.0, 40.0, 0.99, 1.0, 0.5, 1.5),
        (0.5, 1.0, 2.0, 8.0, 0.5, 8.0, 1.0, 1.0),
    ):
        known = dict(
            step=step, curvature=c, lipschitz=L, noise=M, decay=decay, gap=gap, alignment=alignment, length=length
        )
        ratios = [bounds.shrinking_noise_recursion(t, **known) / context.subject(t, **known) for t in range(120)]
        label = (
            f"largest recursion / bound, zeta={decay:g}, D_0={gap:g}, alpha L M/(c mu)={step * L * M / c / alignment:g}"
        )
        checks.append(upper(label, exactly(max(ratios)), 1.0))
    return Measurement(*checks)


def _gradients_until(accuracy, tau, a, omega):
    """Number of gradients of batches ceil(tau^t) until omega max(1 - a/2, 1/tau)^t is at most the accuracy."""
    total, t, rho = 0.0, 0, max(1.0 - a / 2.0, 1.0 / tau)
    while omega * rho**t > accuracy:
        total += np.ceil(tau**t * (1.0 - 1e-12))
        t += 1
    return total


@claim(
    "growing.gradients",
    title="Growing batches need O(1/eps) gradients",
    statement="With tau = 1/(1 - s alpha c mu/2), 0 < s <= 1, batches ceil(tau^t) take at most 4 omega/(s eps alpha"
    " c mu) gradients until f - f* is at most eps in expectation.",
    latex=r"\sum_{j<t}\lceil\tau^j\rceil\le\frac{4\omega}{s\,\epsilon\,\bar\alpha c\mu}",
    source=f"{BCN}, Theorem 5.3",
    bibtex="bottou2018optimization",
    kind="upper",
    proof="ceil(z) <= 2 z for z >= 1, and the last tau^t is below tau omega/eps.",
    bound=bounds.growing_batch_gradients,
    subject=lambda s, a: 1.0 / (1.0 - s * a / 2.0),
    mutants={
        "tau = 1/(1 - alpha c mu/2)^2: beyond the interval": lambda s, a: (1.0 - a / 2.0) ** -2,
        "batches barely grow: eps is never reached in time": lambda s, a: 1.0 + 1e-3 * s * a,
    },
)
def _(context):
    step, c, L, M, gap, checks = 0.25, 1.0, 4.0, 3.0, 2.0, []
    known = dict(step=step, curvature=c, lipschitz=L, noise=M, gap=gap)
    a, omega = step * c, max(step * L * M / c, gap)
    for s, accuracy in itertools.product((1.0, 0.4), (1e-1, 1e-3)):
        proper = 1.0 / (1.0 - s * a / 2.0)
        found = _gradients_until(accuracy, context.subject(s, a), a, omega)
        bound = bounds.growing_batch_gradients(accuracy, tau=proper, **known)
        checks.append(upper(f"gradients until eps={accuracy:g}, s={s:g}", exactly(found), bound))
    return Measurement(*checks)


# --- errors of any kind -----------------------------------------------------------------------------------------------


def inexact_descent(diagonal, start, step, errors):
    """f(x_t) on (1/2) sum h_j x_j^2 for steps with gradients that are wrong by the rows of ``errors``."""
    x, found = np.array(start, float), []
    for e in errors:
        x = x - step * (diagonal * x + e)
        found.append(0.5 * float(diagonal @ (x * x)))
    return found


@claim(
    "growing.inexact",
    title="Gradient descent with wrong gradients",
    statement="With the step 1/L and errors of any kind, biased too, f(x_t) - f* <= q^t D_0 + (E_0/(2 L)) (q^t - g^t)/"
    "(q - g) if ||e_t||^2 = E_0 g^t, q = 1 - mu/L; an equality on (L/2)||x||^2, where q = 0.",
    latex=r"f(x_t)-f^*\le q^tD_0+\frac{E_0}{2L}\,\frac{q^t-g^t}{q-g}",
    source=f"{FS}, Theorem 2.2; constants derived",
    bibtex="friedlander2012hybrid",
    kind="tight",
    tight_where="(L/2)||x||^2, where q = 0, whatever the errors are; for q > 0 an upper bound alone",
    proof="f(x - (grad f + e)/L) <= f - ||grad f||^2/(2 L) + ||e||^2/(2 L): the terms with <grad f, e> cancel.",
    bound=bounds.inexact_gradients,
    subject=lambda L: 1.0 / L,
    mutants={
        "a step 10 % too long": lambda L: 1.1 / L,
        "a step 10 % too short": lambda L: 0.9 / L,
    },
)
def _(context):
    L, error, decay, steps, checks = 4.0, 2.0, 0.7, 12, []
    d = 3
    random = context.normal((steps, d))
    for name, directions in (("random", random), ("always the same", np.ones((steps, d)))):
        unit = directions / np.linalg.norm(directions, axis=1)[:, None]
        errors = unit * np.sqrt(error * decay ** np.arange(steps))[:, None]
        found = inexact_descent(np.full(d, L), np.full(d, 0.5), context.subject(L), errors)
        for t in (steps, 1):
            predicted = bounds.inexact_gradients(t, mu=L, lipschitz=L, error=error, decay=decay, gap=0.5 * L * d * 0.25)
            checks.append(identity(f"f(x_t), t={t}, mu=L, errors {name}", found[t - 1], predicted))
        diagonal = np.array([1.0, 2.0, L])
        found = inexact_descent(diagonal, np.full(d, 0.5), 1.0 / L, errors)
        predicted = bounds.inexact_gradients(
            steps, mu=1.0, lipschitz=L, error=error, decay=decay, gap=0.5 * diagonal.sum() * 0.25
        )
        checks.append(upper(f"f(x_t), t={steps}, mu=L/4, errors {name}", exactly(found[-1]), predicted))
    for g in (0.7, 0.75):  # the recursion D -> q D + E_0 g^t/(2 L), summed; q = 0.75
        left = 3.0
        for t in range(steps):
            left = 0.75 * left + 0.5 * error * g**t / L
        closed = bounds.inexact_gradients(steps, mu=1.0, lipschitz=L, error=error, decay=g, gap=3.0)
        checks.append(identity(f"the closed form against its recursion, q=0.75, g={g:g}", closed, left))
    return Measurement(*checks)


@claim(
    "growing.without-replacement",
    title="The error of a batch without replacement",
    statement="The mean of B of n gradients, drawn without replacement, is off by E||e||^2 = ((n - B)/(n B)) S^2, S^2 ="
    " (1/(n - 1)) sum ||grad f_i - grad f||^2.",
    latex=r"\mathbb{E}\|e\|^2=\frac{n-B}{nB}\,\frac1{n-1}\sum_i\|\nabla f_i-\nabla f\|^2",
    source=f"{FS}, section 3",
    bibtex="friedlander2012hybrid",
    kind="identity",
    tight_where="everywhere; for B = n the error is gone",
    proof="Two different draws have the covariance -S^2/n.",
    bound=bounds.batch_error,
    subject=functools.partial(itertools.combinations),
    mutants={"rows drawn with replacement": lambda rows, size: itertools.product(rows, repeat=size)},
)
def _(context):
    n, checks = 5, []
    rng = np.random.default_rng(context.stream())
    problem = logistic((rng.standard_normal((n, 3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0])), l2=0.1)
    x = rng.standard_normal(3)
    gradients = np.array([sample_gradient(problem, i, x) for i in range(n)])
    centred = gradients - gradients.mean(axis=0)
    spread = float(np.sum(centred**2)) / (n - 1)
    for size in (2, 3, 5):
        errors = [np.sum(centred[list(batch)].mean(axis=0) ** 2) for batch in context.subject(range(n), size)]
        predicted = bounds.batch_error(size, spread, n)
        checks.append(identity(f"E||e||^2, n={n}, B={size}", float(np.mean(errors)), predicted, 1e-12))
    return Measurement(*checks, note="all batches enumerated")
