"""A claim about real gradients: what the scaled sign keeps of them."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from .. import bounds
from ..compressors.sign import ScaledSign
from ..measure import exactly, moments
from ..problems import batch_gradient, gradient, softmax, solve
from .base import Measurement, claim, identity, lower, upper
from .instruments_sign import WrongSign
from .memsgd import rcv1


@cache
def digits():
    """Softmax on a quarter of the handwritten digits, lambda = 1/n, and its minimum."""
    from ..data import load_data

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
    title="Density of real gradients",
    statement="EF-sign's delta is the density phi^2 = ||g||_1^2/(d ||g||_2^2) of the gradients: some tenths on the"
    " digits, below the share of non-zeros, hence some hundredths or less, on RCV1, where the sign with the l2 scale is"
    " no contraction.",
    latex=r"\delta(g)=\phi(g)^2=\frac{\|g\|_1^2}{d\,\|g\|_2^2}\le\frac{\|g\|_0}{d}",
    source="Karimireddy, Rebjock, Stich, Jaggi, Error feedback fixes SignSGD, ICML 2019, Lemma 8 and the figure on the"
    " density of gradients; Cauchy and Schwarz",
    bibtex="karimireddy2019error",
    kind="identity",
    proof="sign.error at these vectors; ||g||_1^2 <= ||g||_0 ||g||_2^2.",
    bound=bounds.sign_density,
    subject=ScaledSign,
    mutants={"the scale ||v||_2/sqrt(d)": partial(ScaledSign, 2), "half the scale": partial(WrongSign, 1, 0.5)},
    see=("sign.error", "sign.l2.error", "sign.l2.contraction"),
)
def _(context):
    rng, kept, errors, sparse = np.random.default_rng(context.stream()), [], [], []
    text, optimum = rcv1(context, share=0.125)
    for name, problem, x in (("digits", *digits()), (text.name, text, optimum.x)):
        for where, g in gradients(problem, x, rng):
            found, square = moments(context.subject(), g, 2), bounds.sign_density(g) ** 2
            error, label = float(found.error[0] / found.squared_norm), f"{name}, {where}"
            errors.append(identity(f"error / norm^2, {label}", error, 1.0 - square, 1e-6))
            kept.append(square)
            if problem is text:
                share = np.count_nonzero(g) / g.size
                sparse.append(upper(f"phi^2 and share of non-zeros, {label}", exactly(square), share))
                if context.data is None:
                    sparse.append(lower(f"error with the l2 scale, {label}", exactly(bounds.l2_sign_error(g)), 1.0))
    shown = [", ".join(f"{square:.2g}" for square in kept[i : i + 4]) for i in (0, 4)]
    note = f"phi^2 at x=0, at 0.9 x*, of a batch at 0, at x*: digits {shown[0]}; {text.name} {shown[1]}"
    return Measurement(*errors, *sparse, note=note)
