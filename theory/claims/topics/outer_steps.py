"""Claims about outer steps of local SGD: what they do on quadratics, exactly."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import LocalSGD, OuterStep
from ...methods.schedules import Constant
from ...problems import quadratic
from .. import claim, identity, upper
from ..worst_runs import worst_run

CASES = ((1.0, 100.0, 20, 0.005), (2.0, 10.0, 4, 0.1), (0.5, 4.0, 1, 0.2))  # mu, L, H, eta


def rounds(context, curvatures, H, eta, server, count):
    """The models of the package's local SGD from (1, ..., 1) on, two workers and exact gradients, one in each round."""
    problem, x0 = quadratic(curvatures, covariance=0.0), np.ones(len(curvatures))
    method = LocalSGD(Identity(), step=Constant(eta), local_steps=H, server=server)
    return np.array(context.iterates(method, problem, workers=2, steps=count * H, record_every=H, x0=x0))


@claim(
    "outer.rate",
    of=bounds.outer_rate,
    subject=bounds.outer_step,
    mutants={
        "plain averaging, gamma = 1": lambda mu, L, eta, H: 1.0,
        "gamma = 0.7": lambda mu, L, eta, H: 0.7,
        "the step of a single local step": lambda mu, L, eta, H: 2.0 / (eta * (mu + L)),
    },
)
def _(context):
    for mu, L, H, eta in CASES:
        h, label = np.array([mu, L]), f"mu={mu:g}, L={L:g}, H={H}, eta={eta:g}"
        best, subject = bounds.outer_rate(mu, L, eta, H), float(context.subject(mu, L, eta, H))
        x = rounds(context, h, H, eta, OuterStep(subject), 10)
        yield identity(f"contraction, ten rounds, {label}", np.abs(x[-1]).max() ** 0.1, best, 1e-9)
        moved = 1.0 - rounds(context, h, H, eta, OuterStep(1.0), 1)[-1]
        for name, share, curvature in zip(("q(mu)", "q(L)"), moved, h, strict=True):
            yield identity(f"{name}, {label}", share, bounds.local_gain(curvature, eta, H), 1e-9)
        for gamma in (0.7, 1.0, 1.2):
            after = np.abs(rounds(context, h, H, eta, OuterStep(gamma), 1)[-1]).max()
            yield identity(
                f"a round with gamma={gamma:g}, {label}", after, bounds.outer_rate(mu, L, eta, H, gamma), 1e-9
            )
            yield upper(f"gamma* is no worse than {gamma:g}", best, after)
        yield upper("1, against gamma*", 1.0, bounds.outer_step(mu, L, eta, H))
    yield from worst_run(context, "local-gd", 4)


@claim(
    "outer.nesterov",
    of=bounds.outer_nesterov,
    subject=lambda mu, L, eta, H: bounds.outer_nesterov(mu, L, eta, H)[:2],
    mutants={
        "the step 1/q(L)": lambda mu, L, eta, H: (
            1 / bounds.local_gain(L, eta, H),
            bounds.outer_nesterov(mu, L, eta, H)[1],
        ),
        "kappa = L/mu": lambda mu, L, eta, H: (
            bounds.outer_nesterov(mu, L, eta, H)[0],
            bounds.outer_nesterov(mu, L, 1e-9, 1)[1],
        ),
        "no momentum": lambda mu, L, eta, H: (bounds.outer_nesterov(mu, L, eta, H)[0], 0.0),
    },
)
def _(context):
    for mu, L, H, eta in CASES:
        h, best = np.array([mu, L]), bounds.outer_nesterov(mu, L, eta, H)
        label = f"mu={mu:g}, L={L:g}, H={H}, eta={eta:g}"

        def radius(gamma, beta, h=h, eta=eta, H=H):
            """The largest root of the recurrence that three rounds of the run follow, over both curvatures."""
            x = rounds(context, h, H, eta, OuterStep(gamma, beta, nesterov=beta > 0.0), 3)
            return max(recurrence_root(x[:, j]) for j in (0, 1))

        gamma, beta = map(float, context.subject(mu, L, eta, H))
        yield identity(f"spectral radius, from three rounds, {label}", radius(gamma, beta), best.rate, 1e-6)
        near = [
            radius(best.step * a, best.momentum * b) for a in (0.8, 0.95, 1.05, 1.2) for b in (0.8, 0.95, 1.05, 1.2)
        ]
        yield upper("no other pair nearby is better", best.rate, min(near))


def recurrence_root(x) -> float:
    """The largest modulus of the roots of z^2 = a z + b, where x_{t+1} = a x_t + b x_{t-1}, from x_0 to x_3."""
    matrix = np.array([[x[1], x[0]], [x[2], x[1]]])
    if abs(np.linalg.det(matrix)) <= 1e-13 * x[0] ** 2:  # a single root: no momentum
        return abs(float(x[1] / x[0]))
    a, b = np.linalg.solve(matrix, x[2:])
    return float(np.abs(np.roots([1.0, -a, -b])).max())
