"""Claims about gradient descent under the Polyak-Lojasiewicz inequality, and under strong convexity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity
from ...methods import ParallelSGD
from ...methods.schedules import Constant
from ...problems import lipschitz, pl_constant, quadratic, sine_quadratic
from .. import claim, identity, upper
from ..worst_runs import worst_run
from .polyak_lojasiewicz import searched, sine


def _descent(context, problem, start, step, steps):
    """f(x_t) for t = 0, ..., T of gradient descent on a problem without noise, by the package's run."""
    known = {"steps": steps, "x0": np.array(start), "record_every": 1}
    return context.run64(ParallelSGD(Identity(), step=Constant(step)), problem, **known).history["f"]


@claim(
    "pl.gd",
    of=bounds.pl_gd,
    subject=1.0,
    mutants={"steps a fiftieth as large": 0.02, "steps eight times as large": 8.0},
)
def _(context):
    sines = sine_quadratic([1.0, 0.9], 0.0)
    for name, problem, mu, start, share in (
        ("sines", sines, pl_constant(sines).mu, (2.6, 2.4), 1.0),
        *(("(mu/2)||x||^2", quadratic([2.0, 2.0], 0.0), 2.0, (1.0, -2.0), share) for share in (0.3, 1.5, 1.9)),
    ):
        L = lipschitz(problem)
        f = _descent(context, problem, start, context.subject * share / L, 20)
        known = {"mu": mu, "lipschitz": L, "step": share / L, "gap": f[0]}
        for T in (20, 5, 1):
            for form in ("simple", "sharp"):
                bound = bounds.pl_gd(T, **known, form=form)
                reached = float(f[T]) if T < len(f) else np.inf  # it diverged
                yield upper(f"f(x_{T}) - f*, {name}, gamma L={share:g}, {form}", reached, bound, trivial=f[0])


@claim(
    "pl.gd.one-step",
    of=bounds.pl_gd,
    subject=1.0,
    mutants={"a step of 0.05/L": 0.05, "a step of 2.2/L": 2.2},
)
def _(context):
    problem = sine_quadratic([1.0], 0.0)
    L, mu = lipschitz(problem), pl_constant(problem).mu

    def left(u):
        f, slope = sine(u)
        return -sine(u - context.subject * slope / L)[0] / f

    worst, where = searched(left, 1e-3, 40.0)
    known: dict[str, Any] = {"mu": mu, "lipschitz": L, "step": 1.0 / L, "gap": 1.0}
    yield upper("worst f(x_+)/f(x)", -worst, bounds.pl_gd(1, **known), trivial=1.0)
    yield upper("the same, sharp", -worst, bounds.pl_gd(1, form="sharp", **known), trivial=1.0)
    yield upper("with the published mu", -worst, bounds.pl_gd(1, **(known | {"mu": 1.0 / 32.0})), trivial=1.0)
    yield f"at |x| = {abs(where):.5g}"


@claim(
    "pl.gd.strongly-convex",
    of=bounds.gd_strongly_convex,
    subject=1.0,
    mutants={"a step 10 % too small": 0.9, "a step 5 % too large": 1.05},
)
def _(context):
    problem, T = quadratic([0.5, 4.0], 0.0), 8
    for gamma, start in ((0.25, (1.0, 0.0)), (0.46, (0.0, 1.0))):
        f = _descent(context, problem, start, context.subject * gamma, T)
        predicted = bounds.gd_strongly_convex(T, mu=0.5, lipschitz=4.0, step=gamma, gap=f[0])
        yield identity(f"f(x_{T}) - f*, gamma L = {4 * gamma:g}", f[T], predicted, tolerance=1e-11)
    for method, steps in (("gd", 3), ("gd-long", 2), ("proximal", 3)):
        yield from worst_run(context, method, steps)
