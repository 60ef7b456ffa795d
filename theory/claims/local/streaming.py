"""Claims about Streaming DiLoCo on quadratics: its factor, and its longest outer step.

Both are read from runs of the package, in every fragment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...methods import OuterStep, StreamingDiLoCo
from ...methods.schedules import Constant
from ...problems import quadratic
from .. import claim, identity, upper

SETTINGS: tuple[tuple[Any, ...], ...] = (  # curvatures, and the arguments of the formulas; P is 2, 3, 1, 2
    ([0.5, 2.0], 0.1, 6, {"delay": 2, "blend": 0.3, "momentum": 0.6}),
    ([2.0, 0.3, 0.9], 0.2, 9, {"delay": 1, "blend": 0.6, "momentum": 0.3}),
    ([0.4], 0.3, 3, {"delay": 2, "blend": 0.5}),
    ([0.8, 0.3], 0.1, 8, {"delay": 3, "momentum": 0.4}),
)


def made(step, local_steps, outer, *, fragments, delay=0, blend=0.0, momentum=0.0, nesterov=True):
    """The method whose fragments are exchanged every ``local_steps`` steps."""
    server = OuterStep(outer, momentum, nesterov=nesterov) if momentum else OuterStep(outer)
    known: dict[str, Any] = {"fragments": fragments, "delay": delay, "blend": blend, "server": server}
    return StreamingDiLoCo(step=Constant(step), local_steps=local_steps // fragments, **known)


def radii(context, method, curvatures, at) -> list[float]:
    """For each curvature, in a fragment of its own, the factor of a period in the long run, from six of them.

    It is the largest root of the linear recurrence that the model follows.
    """
    problem, P, order = (
        quadratic(curvatures, covariance=0.0),
        method.fragments,
        1 + ("blend" in at) + ("momentum" in at),
    )
    known: dict[str, Any] = {"workers": 2, "steps": 7 * P * method.local_steps, "record_every": method.local_steps}
    x = np.array(context.iterates(method, problem, x0=np.ones(P), **known))
    found = []
    for p in range(P):
        own = x[p + 1 :: P, p]  # after each of its exchanges
        rows = np.array([own[i : i + order] for i in range(order)])
        found.append(float(np.abs(np.roots([1.0, *-np.linalg.lstsq(rows, own[order : 2 * order])[0][::-1]])).max()))
    return found


@claim(
    "streaming.factor",
    of=bounds.streaming_factor,
    subject=made,
    mutants={
        "nothing is late": lambda *given, **at: made(*given, **at | {"delay": 0}),
        "workers take the model as it is": lambda *given, **at: made(*given, **at | {"blend": 0.0}),
        "heavy ball": lambda *given, **at: made(*given, **at, nesterov=False),
        "a fragment half as often": lambda step, H, *given, **at: made(step, 2 * H, *given, **at),
    },
)
def _(context):
    for curvatures, step, H, at in SETTINGS:
        for outer in (0.7, 1.4):
            method = context.subject(step, H, outer, fragments=len(curvatures), **at)
            for h, found in zip(curvatures, radii(context, method, curvatures, at), strict=True):
                law = bounds.streaming_factor(h, step, H, outer=outer, **at)
                yield identity(f"{told(h, step, H, at)}, outer={outer:g}", found, law, 1e-6)


def told(h, step, H, at) -> str:
    """The arguments as a text."""
    return ", ".join([f"lambda={h:g}, gamma={step:g}, H={H}", *(f"{name}={value:g}" for name, value in at.items())])


@claim(
    "streaming.limit",
    of=bounds.streaming_limit,
    subject=bounds.streaming_limit,
    mutants={
        "the delay costs nothing": lambda *given, **at: bounds.streaming_limit(*given, **at | {"delay": 0}),
        "without the blend": lambda *given, **at: bounds.streaming_limit(*given, **at | {"blend": 0.0}),
        "without the momentum": lambda *given, **at: bounds.streaming_limit(*given, **at | {"momentum": 0.0}),
    },
)
def _(context):
    for curvatures, step, H, at in SETTINGS:
        for h in curvatures:
            longest = context.subject(h, step, H, **at)
            at_it, at_half = (
                radii(context, made(step, H, share * longest, fragments=1, **at), [h], at)[0] for share in (1.0, 0.5)
            )
            yield identity(f"factor at it, {told(h, step, H, at)}", at_it, 1.0, 1e-6)
            yield upper(f"factor at half of it, {told(h, step, H, at)}", at_half, 1.0)
