"""Claims about EControl: what it forgets of its errors, and what noise leaves of it, of error feedback and of EF21."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ... import bounds
from ...compressors import TopK, Ultra
from ...methods import EF21, EControl, ErrorFeedback, ParallelSGD
from ...problems import quadratic, ridge
from .. import claim, equality, identity, lower, upper
from ..memory.error_feedback import unchanging
from ..memory.exact_rates import squared_radius
from ..mutants import moment_matrix, tosses
from .ef21 import CURVATURES

# --- what it forgets --------------------------------------------------------------------------------------------------


def lemma(q, eta):
    """Step of (||r||, ||e||) if the inequalities of the proof are equalities and the gradients do not change."""
    return np.array([[q * (1.0 + eta), q * eta**2], [1.0, 1.0 - eta]])


@claim(
    "econtrol.step",
    of=bounds.econtrol_decay,
    subject=(lemma, 1.0),
    mutants={
        "no error in the message": (lambda q, eta: lemma(q, 0.0), 1.0),
        "twice the part of the error": (lambda q, eta: lemma(q, 2.0 * eta), 1.0),
        "steps of 60 times the length": (lemma, 60.0),
    },
)
def _(context):
    matrix, factor = context.subject
    for delta, eta in ((0.3, 0.04), (0.75, 0.2), (0.96, 0.3)):  # eta up to (1 - q)/2, where w is an eigenvector's entry
        law, where = bounds.econtrol_decay(delta, eta), f"delta={delta:g}, eta={eta:g}"
        kept = squared_radius(matrix((1.0 - delta) ** 0.5, eta)) ** 0.5
        yield identity(f"the lemma as equalities, 1 - growth in the long run, {where}", 1.0 - kept, law, 1e-9)
    problem, x0 = quadratic(CURVATURES, covariance=0.0), context.normal(6, "x0")
    for k, eta in ((2, 0.05), (4, 0.1)):
        decay, q = bounds.econtrol_decay(k / 6.0, eta), (1.0 - k / 6.0) ** 0.5
        step = bounds.difference_step(q / decay, lipschitz=1.0, workers_lipschitz=1.0, decay=decay)
        method = EControl(TopK(k), unchanging(factor * step), control=eta)
        x = np.array(context.iterates(method, problem, k, steps=160, x0=x0, workers=2))
        gaps, squares = 0.5 * x**2 @ CURVATURES, x**2 @ CURVATURES**2
        law = bounds.difference_gradient(160, step=step, gap=gaps[0], error=q**2 * squares[0], decay=decay)
        yield upper(f"top-{k}, mean ||grad f||^2 over 160 steps", float(squares[:160].mean()), law, trivial=squares[0])


# --- what noise leaves ------------------------------------------------------------------------------------------------


def control(x, e, h, g, sent, s, eta, learnt=1.0):
    """The rows of a step of EControl on x^2/2 - zeta_i x, of x, all e_i and all h_i."""
    message = sent * (eta * e + g - h)
    e, h = e + g - h - message, h + learnt * message
    return x - s * h.mean(axis=0), e, h


def feedback(x, e, h, g, sent, s, eta):
    """Error feedback."""
    message = sent * (e + g)
    return x - s * message.mean(axis=0), e + g - message, h


def ef21(x, e, h, g, sent, s, eta):
    """EF21: nothing of the error is sent, so that it need not be stored."""
    h = h + sent * (g - h)
    return x - s * h.mean(axis=0), e, h


def stationary(rule, delta, *, step, control, variance, spread, workers, form) -> float:
    """E x^2 after 2^14 steps from 0, from all outcomes of the coins."""
    rows = np.eye(2 + 3 * workers)  # of x, the e_i and h_i, 1, and the noise
    x, e, h = rows[0], rows[1 : 1 + workers], rows[1 + workers : 1 + 2 * workers]
    n, noise = 2 + 2 * workers, rows[2 + 2 * workers :]
    zeta = (spread**0.5 * (-1.0) ** np.arange(workers))[:, None] * rows[n - 1]
    coins: Any = (
        tosses(delta, workers) if form == "coin" else [(1.0, np.full((workers, 1), 1.0 - (1.0 - delta) ** 0.5))]
    )
    steps = [(p, np.vstack([*rule(x, e, h, x - zeta + noise, b, step, control), rows[n - 1]])) for p, b in coins]
    moved = moment_matrix((p, A[:, :n]) for p, A in steps)
    moved[:, -1] += variance * moment_matrix((p, A[:, n:]) for p, A in steps) @ np.eye(workers).ravel()
    return float(np.linalg.matrix_power(moved, 2**14)[0, -1])


SETTINGS: tuple[tuple[float, float, dict[str, Any]], ...] = (  # delta, eta, and the rest
    (0.5, 0.2, {"step": 0.05, "variance": 2.0, "spread": 9.0, "workers": 4}),
    (0.3, 0.1, {"step": 0.04, "variance": 1.5, "spread": 6.0, "workers": 2}),
)
RULES = {"EControl": control, "EF": feedback, "EF21": ef21}
SPLIT: dict[str, Any] = {"shards": "contiguous"}
METHODS: dict[str, Any] = {
    "EControl": lambda C, step, eta: EControl(C, step, control=eta, **SPLIT),
    "EF": lambda C, step, eta: ParallelSGD(C, step, feedback=ErrorFeedback(), **SPLIT),
    "EF21": lambda C, step, eta: EF21(C, step, **SPLIT),
}


@claim(
    "econtrol.floor",
    of=bounds.feedback_floor,
    subject=(RULES, METHODS),
    mutants={
        "EF21 in place of EControl": (RULES | {"EControl": ef21}, METHODS | {"EControl": METHODS["EF21"]}),
        "error feedback in place of EControl": (RULES | {"EControl": feedback}, METHODS | {"EControl": METHODS["EF"]}),
        "half of each message is added to the estimate": (RULES | {"EControl": partial(control, learnt=0.5)}, METHODS),
        "a quarter of the part of the error, in the run": (
            RULES,
            METHODS | {"EControl": lambda C, step, eta: METHODS["EControl"](C, step, eta / 4.0)},
        ),
    },
)
def _(context):
    rules, methods = context.subject
    for delta, eta, at in SETTINGS:
        law = partial(bounds.feedback_floor, delta, control=eta, **at)
        zeta, noise = at["spread"] ** 0.5 * (-1.0) ** np.arange(at["workers"]), at["variance"] ** 0.5
        problem = ridge((np.ones((2 * zeta.size, 1)), np.ravel(zeta[:, None] + [noise, -noise])), l2=0.0)
        how = dict(x0=np.zeros(1), workers=zeta.size, replicas=context.samples(3000, 700), steps=100)
        for name, made in methods.items():
            where = f"{name}, delta={delta:g}, N={zeta.size}"
            for form in ("coin", "multiple"):
                exact = stationary(rules[name], delta, control=eta, form=form, **at)
                yield identity(f"E x^2 by all outcomes, {form}, {where}", exact, law(method=name, form=form), 1e-8)
            if zeta.size < 4:
                continue
            method = made(Ultra(delta), unchanging(at["step"]), eta)  # in one dimension it is the coin
            found = context.run64(method, problem, where, **how).last.ravel() ** 2
            yield equality(f"E x^2 of a run, coin, {where}", found, law(method=name))
            if name == "EControl":
                both = {other: law(method=other) for other in ("EF", "EF21")}
                yield upper(f"the same, against the lower of EF and EF21, {where}", found, min(both.values()))
        alike = law(spread=0.0)
        yield lower(f"EControl against EF where data are alike, delta={delta:g}", alike, law(spread=0.0, method="EF"))
