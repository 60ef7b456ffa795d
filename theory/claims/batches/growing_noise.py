"""Claims about gradients with decreasing error: the theorems behind growing batches."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ... import bounds
from ...methods.schedules import GrowingBatch
from ...problems import logistic, sample_gradient
from .. import claim, identity, upper
from .growing import SIGMA2, train


@claim(
    "growing.linear-rate",
    of=bounds.shrinking_noise,
    subject=lambda tau: GrowingBatch(tau, 1, "ceil"),
    mutants={"batches of one throughout": lambda tau: 1},
    see=("cr-psgd.equality", "growing.linear-rate.recursion"),
)
def _(context):
    d, replicas = 20, context.samples(1600, 800)
    for c, L, step, tau, t in ((2.0, 2.0, 0.485, 2.0, 4), (2.0, 2.0, 0.485, 2.0, 2), (1.0, 2.0, 0.5, 1.3, 12)):
        gap = 1.0 if c == L else 6.0
        h = np.full(d, L) if c == L else np.array([c] + [L] * (d - 1))
        found = train(context, h, context.subject(tau), step, t, f"{c:g}", steps=t, gap=gap, replicas=replicas).funs
        known: dict[str, Any] = dict(step=step, curvature=c, lipschitz=L, noise=SIGMA2, decay=1.0 / tau, gap=gap)
        label = f"E f - f*, t={t}, c={c:g}, L={L:g}, alpha={step:g}, tau={tau:g}"
        yield upper(label, found, bounds.shrinking_noise(t, **known))


def turned(steps, *, step, curvature, lipschitz, noise, decay, gap, alignment=1.0, length=1.0):
    """E f(x_t) on (L/2)||x||^2 in the plane: the gradient turned, times mu_G, with noise of the variance M zeta^t."""
    cosine, left = alignment / length, np.sqrt(2.0 * gap / lipschitz) * np.eye(2)[0]
    turn = length * np.array([[cosine, -math.sqrt(1.0 - cosine**2)], [math.sqrt(1.0 - cosine**2), cosine]])
    move, spread = np.eye(2) - step * lipschitz * turn, np.zeros((2, 2))
    for t in range(steps):
        left, spread = move @ left, move @ spread @ move.T + step**2 * noise * decay**t * np.eye(2) / 2.0
    return 0.5 * lipschitz * float(left @ left + np.trace(spread))


def _omega(change):
    """`shrinking_noise` with another omega rho^t, made of (start, noise over c mu, alpha c mu, zeta, t)."""

    def wrong(t, *, step, curvature, lipschitz, noise, decay, gap, alignment=1.0, length=1.0):
        product = step * curvature * alignment
        return change(gap, step * lipschitz * noise / (curvature * alignment), product, decay, t)

    return wrong


@claim(
    "growing.linear-rate.recursion",
    of=bounds.shrinking_noise,
    subject=bounds.shrinking_noise,
    mutants={
        "rho = max(1 - alpha c mu, zeta)": _omega(lambda gap, low, a, zeta, t: max(low, gap) * max(1 - a, zeta) ** t),
        "omega = f(x_0) - f*": _omega(lambda gap, low, a, zeta, t: gap * max(1 - a / 2, zeta) ** t),
    },
)
def _(context):
    M, mu, length = 8.0, 0.5, 1.25
    a = (mu / length) ** 2  # step L mu
    for decay, gap, L in (
        (1.0 - a / 2.0, M / (2.0 * length**2), 2.0),
        (0.5, 0.1, 3.0),
        (0.99, 1.0, 2.0),
        (0.5, 50.0, 3.0),
    ):
        step = mu / (L * length**2)
        known: dict[str, Any] = dict(step=step, curvature=L, lipschitz=L, noise=M, decay=decay, gap=gap)
        known |= dict(alignment=mu, length=length)
        label = f"zeta={decay:.4g}, D_0={gap:.4g}, alpha L M/(c mu)={step * M / mu:.4g}"
        for t in (1, 30):
            exact = turned(t, **known)
            yield upper(f"E f - f* with turned gradients, t={t}, {label}", exact, context.subject(t, **known))
            yield identity("by the recursion", exact, bounds.shrinking_noise_recursion(t, **known), 1e-9)


@claim(
    "growing.gradients",
    of=bounds.growing_batch_gradients,
    subject=lambda tau: GrowingBatch(tau, 1, "ceil"),
    mutants={
        "growth beyond the interval": lambda tau: GrowingBatch(tau**2.5, 1, "ceil"),
        "batches barely grow": lambda tau: GrowingBatch(tau**0.05, 1, "ceil"),
    },
)
def _(context):
    d, replicas = 20, context.samples(400, 200)
    for s, step, c, short, M, gap, t in (  # omega is the start or noise; the mean gradient is ``short`` times that of f
        (1.0, 0.8, 1.0, 1.0, 4.0, 4.0, 6),
        (0.5, 0.4, 1.5, 0.8, 2.0, 3.0, 12),
        (0.5, 0.25, 2.0, 0.7, 16.0, 1.0, 16),
    ):
        known: dict[str, Any] = dict(step=step, curvature=c, lipschitz=c, noise=M, gap=gap)
        known |= dict(alignment=short, length=short)
        tau = 1.0 / (1.0 - s * step * c * short / 2.0)
        accuracy = 0.99 * max(gap, step * M / short) * tau**-t
        t = next(t for t in itertools.count() if bounds.shrinking_noise(t, **known, decay=1.0 / tau) <= accuracy)
        own: dict[str, Any] = dict(steps=t, gap=short * gap, replicas=replicas, variance=M)
        run = train(context, [short * c] * d, context.subject(tau), step, f"{c:g}", **own)
        yield upper(f"E f - f*, t={t}, tau={tau:.4g}", run.funs / short, accuracy)
        spent, label = float(run.history["samples"][-1]), f"gradients until eps={accuracy:.3g}, s={s:g}"
        sharp, paper = (bounds.growing_batch_gradients(accuracy, tau=tau, **known, form=f) for f in ("sharp", "paper"))
        yield upper(label, spent, sharp)
        yield upper(f"{label}, the paper's", spent, paper)
        whole = sharp - (t - 1.0) + 1.0 / (tau - 1.0)  # a sum of powers, below tau omega/(eps (tau - 1))
        yield identity("the paper's, from ceil(z) <= 2 z", 2.0 * whole, paper)
        limit = bounds.growing_batch_limit(step, curvature=c, lipschitz=c, alignment=short, length=short)
        yield identity("tau, at s = 1 its limit", 1.0 - s * (1.0 - 1.0 / limit), 1.0 / tau)


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
    of=bounds.inexact_gradients,
    subject=lambda L: 1.0 / L,
    mutants={"a step 10 % too long": lambda L: 1.1 / L, "a step 10 % too short": lambda L: 0.9 / L},
)
def _(context):
    decay, steps, d = 0.7, 12, 3
    for name, directions, L, error in (
        ("random", context.normal((steps, d)), 4.0, 2.0),
        ("always the same", np.ones((steps, d)), 3.0, 1.5),
    ):
        known: dict[str, Any] = dict(lipschitz=L, error=error)
        unit = directions / np.linalg.norm(directions, axis=1)[:, None]
        errors = unit * np.sqrt(error * decay ** np.arange(steps))[:, None]
        for diagonal in (np.full(d, L), np.array([1.0, 2.0, L])):
            found = inexact_descent(diagonal, np.full(d, 0.5), context.subject(L), errors)
            known["gap"], mu = 0.125 * diagonal.sum(), diagonal[0]
            for t in (2, steps):
                value, label = bounds.inexact_gradients(t, mu=mu, decay=decay, **known), f"t={t}, mu={mu:g}, L={L:g}"
                yield (identity if mu == L else upper)(f"f(x_t), {label}, errors {name}", found[t - 1], value)
    for g, mu, L, error in ((0.7, 1.0, 4.0, 2.0), (0.75, 1.25, 5.0, 3.0)):
        left = 3.0  # the recursion D -> q D + E_0 g^t/(2 L), summed; q = 1 - mu/L = 0.75
        for t in range(steps):
            left = 0.75 * left + error * g**t / (2.0 * L)
        closed = bounds.inexact_gradients(steps, mu=mu, lipschitz=L, error=error, decay=g, gap=3.0)
        yield identity(f"the recursion, q=0.75, g={g:g}", left, closed)


@claim(
    "growing.without-replacement",
    of=bounds.batch_error,
    subject=itertools.combinations,
    mutants={"rows drawn with replacement": lambda rows, size: itertools.product(rows, repeat=size)},
)
def _(context):
    rng = np.random.default_rng(context.stream())
    for n, size in ((5, 2), (5, 3), (5, 5), (7, 3)):
        problem, x = logistic((rng.standard_normal((n, 3)), (-1.0) ** np.arange(n)), l2=0.1), rng.standard_normal(3)
        gradients = np.array([sample_gradient(problem, i, x) for i in range(n)])
        centred = gradients - gradients.mean(axis=0)
        errors = [np.sum(centred[list(batch)].mean(axis=0) ** 2) for batch in context.subject(range(n), size)]
        value = bounds.batch_error(size, float(np.sum(centred**2)) / (n - 1), n)
        yield identity(f"E||e||^2, n={n}, B={size}, all batches", float(np.mean(errors)), value, 1e-12)
