"""A claim about gradients of real data: the part kept by the scaled sign."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from ... import bounds
from ...compressors import ScaledSign
from ...problems import batch_gradient, gradient, softmax, solve
from .. import claim, identity, lower, upper
from ..mutants.sign import WrongSign
from .mem_sgd import rcv1

L2 = partial(ScaledSign, 2)


@cache
def digits():
    """Softmax on a quarter of the handwritten digits, lambda = 1/n, and its minimum."""
    from ...data import load_data

    data, _ = load_data("digits-10").split(0.25, seed=0)
    problem = softmax((data.X / 16.0, data.y), 1.0 / data.n)
    return problem, solve(problem).x


def gradients(problem, optimum, rng):
    """Full gradients at 0 and on the way to the minimum, and of a mini-batch at both."""
    origin, batch = np.zeros(problem.d), rng.integers(0, problem.n, 32)
    yield "full, x=0", gradient(problem, origin)
    yield "full, x=0.9 x*", gradient(problem, 0.9 * optimum)
    yield "batch of 32, x=0", batch_gradient(problem, batch, origin)
    yield "batch of 32, x=x*", batch_gradient(problem, batch, optimum)


@claim(
    "sign.density.rcv1",
    of=bounds.sign_density,
    subject=(ScaledSign, L2),
    mutants={
        "the scale ||v||_2/sqrt(d)": (L2, L2),
        "half the scale": (partial(WrongSign, 1, 0.5), L2),
        "the scale ||v||_1/d in place of the l2 scale": (ScaledSign, ScaledSign),
    },
    see=("sign.error", "sign.l2.error", "sign.l2.contraction"),
)
def _(context):
    def error(make, g):
        found = context.moments(make(), g, 2)
        return float(found.error[0] / found.squared_norm)

    (sign, l2), kept = context.subject, []
    rng, (text, optimum) = np.random.default_rng(context.stream()), rcv1(context, share=0.125)
    for name, problem, x in (("digits", *digits()), (text.name, text, optimum.x)):
        for where, g in gradients(problem, x, rng):
            label, found = f"{name}, {where}", error(sign, g)
            phi = bounds.sign_density(g)
            yield identity(f"share kept over phi, {label}", (1.0 - found) / float(phi), phi, 1e-6)
            kept.append(1.0 - found)
            if problem is not text:
                yield lower(f"delta, {label}", kept[-1], 0.2)
                continue
            yield upper(f"delta and share of non-zeros, {label}", kept[-1], np.count_nonzero(g) / g.size)
            far = error(l2, g)
            yield identity(f"error with the l2 scale, {label}", far, bounds.l2_sign_error(g), 1e-6)
            if context.data is None:
                yield upper(f"delta, {label}", kept[-1], 0.1)
                yield lower(f"error with the l2 scale, {label}", far, 1.0)
    shown = [", ".join(f"{share:.2g}" for share in kept[i : i + 4]) for i in (0, 4)]
    yield f"delta at x=0, at 0.9 x*, of a batch at 0, at x*: digits {shown[0]}; {text.name} {shown[1]}"
