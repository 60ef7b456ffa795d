"""Claims about unbiased differences: DIANA, MARINA, PermK, DASHA and ProxSkip, each as the method that runs."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import Bernoulli, PermK, RandK
from ...core import setting
from ...methods import DASHA, DCGD, DIANA, MARINA, ProxSkip
from ...methods.schedules import Constant
from ...problems import gradient, quadratic, ridge, solve, value
from .. import claim, equality, identity, upper
from ..laws import loglog_rate
from ..mutants.stability import descent, diana, marina, moment_matrix

OWN = {"shards": "contiguous"}  # row i is worker i's


def own_rows(vectors, b, l2):
    """A ridge regression with a row for each worker, so that its gradients are exact: f, and its L, L~ and L_max."""
    problem = ridge((vectors, b), l2=l2)
    each = np.sum(vectors**2, axis=1) + l2
    largest = float(np.linalg.eigvalsh(vectors.T @ vectors)[-1]) / len(b) + l2
    return problem, {"lipschitz": largest, "quadratic": math.sqrt(np.mean(each**2)), "largest": float(each.max())}


def gradients(problem, x):
    """The workers' gradients at x, a row for each."""
    return (problem.A @ x - problem.b)[:, None] * problem.A + problem.l2 * x


def regression(context, workers: int = 6, d: int = 4):
    """One with random rows."""
    return own_rows(context.normal((workers, d), "A"), 3.0 * context.normal(workers, "b"), 0.2)


# --- DIANA ------------------------------------------------------------------------------------------------------------

SPARSE = partial(RandK, 1, unbiased=True)  # of 4 coordinates: omega = 3


@claim(
    "diana.rate",
    of=bounds.diana_rate,
    subject=lambda step: DIANA(SPARSE(), Constant(step), **OWN),
    mutants={
        "no shifts": lambda step: DCGD(SPARSE(), Constant(step), **OWN),
        "shifts that learn all of a message": lambda step: DIANA(SPARSE(), Constant(step), alpha=1.0, **OWN),
        "a step twenty times as long": lambda step: DIANA(SPARSE(), Constant(20.0 * step), **OWN),
    },
)
def _(context):
    (problem, known), w, alpha = regression(context), 3.0, 0.25
    N, optimum = len(problem.b), solve(problem).x
    step = bounds.diana_step(known["lipschitz"], omega=w, workers=N, largest=known["largest"])
    at_optimum, replicas = gradients(problem, optimum), context.samples(200)

    def lyapunov(x, h):
        return np.sum((x - optimum) ** 2, axis=-1) + 4.0 * w * step**2 / (N * alpha) * np.mean(
            np.sum((h - at_optimum) ** 2, axis=-1), axis=-1
        )

    start = lyapunov(np.zeros_like(optimum), np.zeros_like(at_optimum))
    for steps in (50, 800):
        found = context.run64(context.subject(step), problem, steps, workers=N, steps=steps, replicas=replicas)
        shifts = found.state.pieces.get("h, workers here")
        h = np.zeros((replicas, *at_optimum.shape)) if shifts is None else found.state.whole("h, workers here")
        bound = bounds.diana_rate(steps, step=step, mu=problem.l2, alpha=alpha, start=1.0, omega=w, workers=N)
        yield upper(f"V_T/V_0, ridge, rand-1 of 4, N={N}, T={steps}", lyapunov(found.last, h) / start, bound)


@claim(
    "diana.shifts",
    title="DIANA's shifts reach the gradients at the minimum",
    statement="On strongly convex functions with exact gradients, h_i tends to grad f_i(x*), so that the messages tend to "
    "0 although no worker's gradient does.",
    kind="identity",
    source="[mishchenko2019distributed]; a consequence of its Lyapunov function, diana.rate",
    subject=partial(DIANA, **OWN),
    mutants={
        "shifts that learn a thousandth": partial(DIANA, alpha=0.001, **OWN),
        "shifts that learn all of a message": partial(DIANA, alpha=1.0, **OWN),
        "no compressor's noise, but rows of all": partial(DIANA, shards="shared"),
    },
    see=("diana.rate",),
)
def _(context):
    problem, known = regression(context)
    N, optimum = len(problem.b), solve(problem).x
    step = bounds.diana_step(known["lipschitz"], omega=3.0, workers=N, largest=known["largest"])
    found = context.run64(context.subject(SPARSE(), Constant(step)), problem, workers=N, steps=20_000)
    h, at_optimum = found.state.whole("h, workers here")[0], gradients(problem, optimum)
    yield identity("largest |h_i - grad f_i(x*)| / largest |grad f_i(x*)|", np.abs(h - at_optimum).max(), 0.0, 1e-7)
    yield upper("the mean of the h_i, against the largest", np.abs(h.mean(axis=0)).max(), 1e-6 * np.abs(h).max())


# --- both sides of the frontiers --------------------------------------------------------------------------------------


def runs_law(name, of, make, steps_of, settings, mutants, one_by_one: bool = False):
    """A claim that E x_t^2 of runs is that of the matrix whose spectral radius is 1 at the frontier."""

    def measure(context):
        d, t = (200, 6) if one_by_one else (20_000, 6)
        for where, arguments in settings.items():
            for share in (0.8, 1.25):
                s = share * of(*arguments)
                *_, omega, workers = arguments
                replicas = context.samples(400) if one_by_one else 1
                method = context.subject(Constant(s), *arguments)
                options = {"workers": workers, "steps": t, "x0": np.ones(d), "replicas": replicas}
                found = context.run64(method, quadratic(np.ones(d), covariance=0.0), where, str(share), **options)
                squares = found.last**2
                moments = moment_matrix(steps_of(s, *arguments))
                start = np.array([1.0, *np.full(math.isqrt(len(moments)) - 1, float(of is bounds.marina_frontier))])
                exact = float((np.linalg.matrix_power(moments, t) @ np.kron(start, start))[0])
                yield equality(
                    f"E x_{t}^2 of runs at {share:g} s*, {where}",
                    squares.mean(axis=1) if one_by_one else squares,
                    exact,
                )
                late = [float((np.linalg.matrix_power(moments, k) @ np.kron(start, start))[0]) for k in (400, 401)]
                grows = late[1] > late[0]
                yield identity(f"whether it grows in the end, at {share:g} s*, {where}", float(grows), float(share > 1))

    claim(f"frontier.{name}.runs", of=of, subject=make, mutants=mutants, see=(f"frontier.{name}",))(measure)


def coins(omega: float):
    """Each coordinate with probability 1/(1 + omega), times 1 + omega."""
    return Bernoulli(1.0 / (1.0 + omega))


runs_law(
    "dcgd",
    bounds.dcgd_frontier,
    lambda step, omega, workers: DCGD(coins(omega), step),
    descent,
    {"omega=1, N=2": (1.0, 2), "omega=3, N=4": (3.0, 4)},
    {
        "half of the variance": lambda step, omega, workers: DCGD(coins(omega / 2.0), step),
        "DIANA": lambda step, omega, workers: DIANA(coins(omega), step),
    },
)
runs_law(
    "diana",
    bounds.diana_frontier,
    lambda step, omega, workers: DIANA(coins(omega), step),
    diana,
    {"omega=1, N=2": (1.0, 2), "omega=3, N=3": (3.0, 3)},
    {
        "no shifts": lambda step, omega, workers: DCGD(coins(omega), step),
        "shifts that learn all of a message": lambda step, omega, workers: DIANA(coins(omega), step, alpha=1.0),
        "shifts that learn half as fast": lambda step, omega, workers: DIANA(coins(omega), step, 0.5 / (1.0 + omega)),
    },
)
runs_law(
    "marina",
    bounds.marina_frontier,
    lambda step, p, omega, workers: MARINA(coins(omega), step, p),
    marina,
    {"p=0.5, omega=1, N=2": (0.5, 1.0, 2), "p=0.3, omega=2, N=3": (0.3, 2.0, 3)},
    {
        "a coin of half the probability": lambda step, p, omega, workers: MARINA(coins(omega), step, p / 2.0),
        "half of the variance": lambda step, p, omega, workers: MARINA(coins(omega / 2.0), step, p),
        "no differences": lambda step, p, omega, workers: DCGD(coins(omega), step),
    },
    one_by_one=True,
)
