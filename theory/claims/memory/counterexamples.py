"""Claims about error feedback where signs fail: counterexamples, and the span of the data.

Signs fail on non-smooth convex functions; there are counterexamples with a memory.  Their functions are not among the
package's problems, so they are given as Python functions; see :mod:`theory.claims.runs`.

The span of the data: error feedback stays near it, signs leave it, and the cost of that.  The sign of the released
experiment has three values and is not a compressor of the package: it is a Python function.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity, ScaledSign, TopK, compressor
from ...data import wilson_data
from ...methods import ErrorFeedback, ParallelSGD
from ...problems import accuracy, gradient, logistic, ridge, value
from ...problems.constants import one_thread
from .. import certain, claim, equality, identity, upper
from ..mutants import Scaling
from ..runs import follow
from .error_feedback import constant_gradient, unchanging

# --- Error feedback where signs fail ---------------------------------------------------------------------------------


def average(context, c, gradient, start, step, steps, kept) -> np.ndarray:
    """The mean of all iterates of `follow` but the last."""
    return np.mean([x for x, _ in follow(c, gradient, start, step, steps, kept, context=context)[:-1]], axis=0)


@claim(
    "ef.convex",
    of=partial(bounds.ef_sgd_convex, memory="sharp"),
    subject=lambda delta: (Scaling(delta), 1.0),
    mutants={
        "a compressor that contracts half as much": lambda delta: (Scaling(delta / 2.0), 1.0),
        "no memory": lambda delta: (Scaling(delta), 0.0),
        "a memory of which a tenth is lost": lambda delta: (Scaling(delta), 0.9),
    },
)
def _(context):
    gamma, sign = 0.01, lambda x, t: np.sign(x)
    for delta, steps in ((1.0, 100), (0.1, 1000)):
        c, kept = context.subject(delta)
        start, where = np.array([gamma * steps]), f"delta={delta:g}, T={steps}"
        found = abs(float(average(context, c, sign, start, gamma, steps, kept)[0]))
        known: dict[str, Any] = dict(delta=delta, second_moment=1.0, distance=float(start @ start))
        bound = bounds.ef_sgd_convex(steps, **known, step=gamma, memory="sharp")
        yield (identity if delta == 1.0 else upper)(f"f(xbar), f = |x|, C(v) = (1 - q) v, {where}", found, bound)
        yield upper("the same, as quoted", found, bounds.ef_sgd_convex(steps, **known, step=gamma))
        method = ParallelSGD(c, step=unchanging(gamma), feedback=ErrorFeedback(), average="uniform")
        x = context.run64(method, constant_gradient(1), steps=steps, x0=start).x  # x_t > 0, where |x| has the slope 1
        yield identity(f"f(xbar) on a line, by a loop for |x|, {where}", x[0], found, 1e-9)
        best = bounds.ef_sgd_convex_step(steps, **known, memory="sharp")
        grid = best * np.array([0.999, 1.0, 1.001])
        around = [float(bounds.ef_sgd_convex(steps, **known, step=s, memory="sharp")) for s in grid]
        yield identity(f"best step: slope of the bound there, {where}", (around[2] - around[0]) / around[1], 0.0, 1e-6)
    steps, start = 2000, np.linspace(0.5, 1.5, 10)
    known = dict(delta=bounds.top_k_contraction(10, 1), second_moment=10.0, distance=float(start @ start))
    step = bounds.ef_sgd_convex_step(steps, **known, memory="sharp")
    mean = average(context, TopK(1), sign, start, step, steps, context.subject(1.0)[1])
    bound = bounds.ef_sgd_convex(steps, **known, memory="sharp")
    label = f"f(xbar), f = ||x||_1, top-1 of 10, best step, T={steps}"
    yield upper(label, np.abs(mean).sum(), bound, trivial=float(start.sum()))


# --- where signs fail -------------------------------------------------------------------------------------------------


@claim(
    "ef.fixes.drift",
    title="With a memory, skewed noise does no harm",
    statement="For min sum_j x_j/4 with the gradients 4 (probability 1/4) or -1 (3/4) in every coordinate, the scaled"
    " sign climbs; with a memory a step lowers E f by gamma d/16, as a step of SGD does.",
    latex=r"\mathbb{E}f(x_T-e_T)-f(x_0)=-\gamma dT/16,\quad\frac{\mathbb{E}f(x_T)-f(x_0)}{\gamma dT}\to-\frac1{16}",
    source="[karimireddy2019error], Counterexample 1, in d coordinates",
    kind="identity",
    proof="ef.identity: x - e moves by -gamma g, and e stays bounded.",
    subject=1.0,
    mutants={"no memory": 0.0, "a memory of which half is lost": 0.5},
    see=("sign.fails.drift",),
)
def _(context):
    d, steps, eta = 64, 500, 0.001
    rng, virtual, found = np.random.default_rng(context.stream()), [], []
    for _ in range(context.samples(96, 12)):
        g = np.where(rng.random((steps, d)) < 0.25, 4.0, -1.0)
        known = (ScaledSign(), lambda x, t, g=g: g[t], np.zeros(d), eta, steps, context.subject, steps)
        *_, (last, e) = follow(*known, context=context)
        virtual.append((last - e).sum() / 4.0 / (eta * d * steps))
        found.append(last.sum() / 4.0 / (eta * d * steps))
    label = f"a step / (gamma d), d={d}, T={steps}"
    yield equality(f"change of E f(x - e) {label}", virtual, -1.0 / 16.0)
    yield upper(f"change of E f {label}", found, 0.0)
    yield f"f itself: {np.mean(found):.4f}: the difference is the memory at T={steps}, over gamma T"


@claim(
    "ef.fixes.kink",
    of=bounds.ef_sgd_convex,
    subject=1.0,
    mutants={"no memory": 0.0},
    see=("sign.fails.kink", "ef.convex"),
)
def _(context):
    for e in (0.1, 0.5):

        def gradient(x, t, e=e):
            plus, minus = np.where(np.array([x[0] + x[1], x[0] - x[1]]) < 0.0, -1.0, 1.0)  # at 0, the trap: +1
            return plus * e * np.ones(2) + minus * np.array([1.0, -1.0])

        def mean_value(c, start, step, steps, gradient=gradient, e=e):
            x = average(context, c, gradient, start, step, steps, context.subject)
            return e * abs(x[0] + x[1]) + abs(x[0] - x[1])

        known: dict[str, Any] = dict(delta=bounds.scaled_sign_contraction(2), second_moment=2.0 + 2.0 * e**2)
        at = known | dict(distance=2.0, memory="sharp")
        found = mean_value(ScaledSign(), np.ones(2), bounds.ef_sgd_convex_step(2000, **at), 2000)
        yield upper(f"f(xbar), e={e}, T=2000", found, bounds.ef_sgd_convex(2000, **at), trivial=2.0 * e)
        start, steps = np.array([1.0 + 1.0 / e, 1.0 - 1.0 / e]), 20
        at["distance"] = float(start @ start)
        step = (at["distance"] / known["second_moment"]) ** 0.5 / steps  # reaches the minimum in T steps
        for name, c, delta in (("scaled sign", ScaledSign(), known["delta"]), ("no compression", Identity(), 1.0)):
            bound = bounds.ef_sgd_convex(steps, **at | dict(delta=delta, step=step))
            found = mean_value(c, start, step, steps)
            yield (identity if delta == 1.0 else upper)(
                f"f(xbar), straight path, {name}, e={e}, T={steps}", found, bound
            )


@claim(
    "ef.fixes.smooth",
    title="With a memory, sign descent solves the smooth problem",
    statement="For f = <a1, x>^2 + <a2, x>^2 with a1,2 = +-(1, -1) + e (1, 1) and gradients of one term from (1, 1),"
    " where sign descent keeps f >= 8 e^2, the scaled sign with a memory reaches the minimum, 0, with a constant step.",
    latex=r"f(x_T)\to0",
    source="[karimireddy2019error], Counterexample 3; that the limit is 0 derived",
    kind="identity",
    proof="ef.identity: x - e follows SGD, whose noise vanishes at the minimum that both terms share; sign.contraction"
    " with delta = 1/2 makes ||e|| a multiple of the gradients, so that both fall geometrically.",
    subject=1.0,
    mutants={"no memory": 0.0},
    see=("sign.fails.smooth", "ef.convex"),
)
def _(context):
    e, steps, rng = 0.5, 2000, np.random.default_rng(context.stream("terms"))
    a, found = np.array([[1.0, -1.0], [-1.0, 1.0]]) + e, []
    for _ in range(context.samples(96, 8)):
        term = rng.integers(0, 2, steps)
        known = (lambda x, t, term=term: 2.0 * a[term[t]] * (a[term[t]] @ x), np.ones(2), 0.05, steps)
        *_, (x, _) = follow(ScaledSign(), *known, context.subject, steps, context=context)
        found.append(float(np.sum((a @ x) ** 2)))
    yield identity(f"largest f(x_T)/(8 e^2), e={e}, T={steps}", max(found) / (8.0 * e**2), 0.0)


@claim(
    "ef.fixes.line",
    of=bounds.sign_line_floor,
    subject=1.0,
    mutants={"no memory": 0.0},
    see=("sign.fails.line", "ef.identity"),
)
def _(context):
    d, steps = 6, 4000
    rng = np.random.default_rng(context.stream("problem"))
    A = np.eye(d) * 2.0 + 0.2 * rng.random((d, d)) + 0.1
    b = A @ rng.standard_normal(d)
    order = rng.integers(0, d, steps)

    def gradient(x, t):
        return A[order[t]] * (A[order[t]] @ x - b[order[t]])

    *_, (x, _) = follow(ScaledSign(), gradient, np.zeros(d), 0.05, steps, context.subject, steps, context=context)
    found = float(np.sum((A @ x - b) ** 2)) / (2 * d)
    yield identity(f"f(x_T) / the floor of signs, T={steps}", found / bounds.sign_line_floor(A, b), 0.0, 1e-9)


# --- The span of the data --------------------------------------------------------------------------------------------

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
    proof="ef.identity: x_t - e_t = -gamma times the sum of the gradients, each of which is a combination of rows.",
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
    title="Sign descent fits what does not generalise; a memory corrects this",
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
