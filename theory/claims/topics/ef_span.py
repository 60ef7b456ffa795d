"""Claims about the span of the data: error feedback stays near it, signs leave it, and the cost of that.

The sign of the released experiment has three values and is not a compressor of the package: it is a Python function.
"""

from __future__ import annotations

import numpy as np

from ...compressors import Identity, ScaledSign, compressor
from ...data import wilson_data
from ...problems import accuracy, gradient, logistic, ridge, value
from ...problems.constants import one_thread
from .. import certain, claim, identity, upper
from ..paths import follow

ROWS, STEPS, STEP = 100, 80, 10.0  # as in the released experiment: full batches of least squares


def signs_or_zero(v):
    """The scaled sign of the released experiment, in which the sign of 0 is 0: three values, not one bit."""
    return np.abs(v).mean() * np.sign(v)


@one_thread
def distances(data, points) -> np.ndarray:
    """Of every row of ``points``, the distance to the span of the data's rows."""
    basis = np.linalg.qr(data.X.toarray().T)[0]
    return np.linalg.norm(points - (points @ basis) @ basis.T, axis=1)


def quarter_turns(v):
    """C(v) = v plus a quarter of v turned by 90 degrees, in two dimensions: the whole error leaves the line of v."""
    return v + 0.25 * np.array([-v[1], v[0]])


def trained(context, c, data, kept: float, step: float = STEP):
    """x_t and e_t of full-batch least squares on the data from 0, with the share ``kept`` of a memory."""
    problem = ridge(data, l2=0.0)
    return follow(c, lambda x, t: gradient(problem, x), np.zeros(data.d), step, STEPS, kept, context=context)


@claim(
    "ef.span",
    title="Error feedback stays near the span of the data",
    statement="For least squares from 0, x_t - e_t lies in the span of the rows, so the distance of x_t to it is"
    " at most ||e_t||.",
    latex=r"\operatorname{dist}(x_t,\operatorname{span}\{a_i\})\le\|e_t\|",
    source="[karimireddy2019error], the theorem on the span of the gradients",
    kind="identity",
    proof="ef.identity: x_t - e_t = -eta times the sum of the gradients, each of which is a combination of rows.",
    subject=1.0,
    mutants={"no memory": 0.0, "a memory of which a hundredth is lost": 0.99},
    see=("ef.identity",),
)
def _(context):
    data = wilson_data(ROWS, context.stream())[0]
    for name, c in (("1 bit", ScaledSign()), ("sign(0) = 0", compressor(signs_or_zero))):
        path = trained(context, c, data, context.subject)[1:]
        x, e = (np.array(points) for points in zip(*path, strict=True))
        away = distances(data, np.concatenate([x - e, x]))
        share = away[:STEPS] / np.linalg.norm(x, axis=1)
        yield identity(f"largest distance of x_t - e_t / ||x_t||, {name}", share.max(), 0.0, 1e-10)
        yield upper(f"largest distance of x_t - ||e_t||, {name}", (away[STEPS:] - np.linalg.norm(e, axis=1)).max(), 0.0)
    row, turned = np.array([0.6, 0.8]), compressor(quarter_turns)
    *_, (x, e) = follow(
        turned, lambda x, t: row * (row @ x - 1.0), np.zeros(2), 1.0, 1, context.subject, context=context
    )
    found = float(abs(x @ [-row[1], row[0]]))
    yield identity("distance of x_1, errors at right angles to the span", found, float(np.linalg.norm(e)))


@claim(
    "ef.span.held-out",
    title="Signs fit what does not generalise, a memory repairs it",
    statement="On wilson_data all methods fit the training rows, but the scaled sign's mean squared error on the"
    " held-out rows is more than five times that of the scaled sign with a memory, which is within 0.05 of gradient"
    " descent's.",
    source="[karimireddy2019error], the experiment on least squares with 80 full batches; held up for the sign of 0"
    " sent as +1 or as 0",
    kind="upper",
    proof="The solution in the span has the least norm and puts its weight on the feature that all rows share; ef.span"
    " keeps error feedback near it.",
    subject=1.0,
    mutants={"no memory": 0.0},
    see=("ef.span",),
)
def _(context):
    train, held_out = wilson_data(ROWS, context.stream())
    there, labels, notes = ridge(held_out, l2=0.0), logistic(held_out, l2=0.0), []

    def last(c, kept, step=STEP):
        *_, (x, _) = trained(context, c, train, kept, step)
        error = 2.0 * value(there, x)
        notes.append(f"{error:.2g} ({100.0 * accuracy(labels, x):.0f} %)")
        return x, error

    descent = last(Identity(), 0.0, 0.5)[1]
    for name, c in (("1 bit", ScaledSign()), ("sign(0) = 0", compressor(signs_or_zero))):
        _, alone = last(c, 0.0)
        x, error = last(c, context.subject)
        yield upper(f"held-out error with memory / without, {name}", certain(error / alone), 0.2)
        yield upper(f"training error with memory, {name}", 2.0 * value(ridge(train, l2=0.0), x), 1e-3)
        yield upper(f"held-out error with memory - gradient descent's, {name}", error - descent, 0.05)
    note = "held-out error (accuracy): gradient descent {}; the sign {}, with memory {}; with sign(0) = 0 {}, {}"
    yield note.format(*notes)
