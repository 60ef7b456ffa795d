"""Worst cases by a program of its own: cvxpy and interpolation conditions, with nothing of the package.

A vector is a row of coefficients over the unknown ones, whose Gram matrix G is the variable; f* = 0 at x* = 0.  The
conditions are those of Taylor, Hendrickx, Glineur, "Smooth strongly convex interpolation and exact worst-case
performance of first-order methods" (2017).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

MOST = 24  # unknown vectors
PRECISION = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


class Point(NamedTuple):
    """x, the gradient there, and the value."""

    x: np.ndarray
    g: np.ndarray
    f: Any


class Program:
    """Unknown vectors, functions, and what is assumed of them."""

    def __init__(self) -> None:
        self.gram = cp.Variable((MOST, MOST), PSD=True)
        self.known, self.limits = 0, []

    def vector(self) -> np.ndarray:
        self.known += 1
        return np.eye(MOST)[self.known - 1]

    def inner(self, u: np.ndarray, v: np.ndarray) -> Any:
        return cp.trace(self.gram @ ((np.outer(u, v) + np.outer(v, u)) / 2.0))

    def square(self, v: np.ndarray) -> Any:
        return self.inner(v, v)

    def worst(self, value: Any) -> float:
        """The largest value; vectors that nobody asked for are 0."""
        unused = [self.gram[i, i] == 0 for i in range(self.known, MOST)]
        problem = cp.Problem(cp.Maximize(value), self.limits + unused)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": the tests compare to six digits
            problem.solve(solver="CLARABEL", **PRECISION)
        return float(problem.value)


class Function:
    """A mu-strongly convex and L-smooth function (mu = -L: any smooth one) and its gradient at x*, 0 if not given."""

    def __init__(self, program: Program, mu: float, top: float, at_minimum: np.ndarray | None = None) -> None:
        self.program, self.mu, self.top = program, mu, top
        zero = np.zeros(MOST)
        self.points = [Point(zero, zero if at_minimum is None else at_minimum, 0.0)]

    def at(self, x: np.ndarray) -> Point:
        """The gradient and the value at x, with the conditions between x and all earlier points."""
        new = Point(x, self.program.vector(), cp.Variable())
        self.points.append(new)
        for old in self.points[:-1]:
            self._between(old, new)
            self._between(new, old)
        return new

    def _between(self, i: Point, j: Point) -> None:
        p, mu, top = self.program, self.mu, self.top
        tangent = j.f + p.inner(j.g, i.x - j.x)
        if np.isinf(top):
            curved = mu / 2.0 * p.square(i.x - j.x)
        else:
            bent = i.x - j.x - (i.g - j.g) / top
            curved = p.square(i.g - j.g) / (2.0 * top) + mu * top / (2.0 * (top - mu)) * p.square(bent)
        p.limits.append(i.f >= tangent + curved)


def message(p: Program, v: np.ndarray, s: float) -> np.ndarray:
    """Some C(v) with ||C(v) - v|| <= s ||v||."""
    c = p.vector()
    p.limits.append(p.square(c - v) <= s**2 * p.square(v))
    return c


# --- what methods leave, where the same was 1 at the start ------------------------------------------------------------


def gradient_descent(steps: int, mu: float, step: float, measure: str = "gap") -> float:
    """L = 1; ``measure``: gap, distance, or the gap for a distance of 1 ("per distance")."""
    p = Program()
    f, start = Function(p, mu, 1.0), p.vector()
    x = start
    for _ in range(steps):
        x = x - step * f.at(x).g
    p.limits.append((f.points[1].f if measure == "gap" else p.square(start)) <= 1.0)
    return p.worst(p.square(x) if measure == "distance" else f.at(x).f)


def compressed_descent(steps: int, mu: float, step: float, s: float) -> float:
    p = Program()
    f, x = Function(p, mu, 1.0), p.vector()
    for _ in range(steps):
        x = x - step * message(p, f.at(x).g, s)
    p.limits.append(f.points[1].f <= 1.0)
    return p.worst(f.at(x).f)


def error_feedback(steps: int, mu: float, step: float, s: float) -> float:
    """||x - e||^2 + ||e||^2/s."""
    p = Program()
    f, x, e = Function(p, mu, 1.0), p.vector(), np.zeros(MOST)
    p.limits.append(p.square(x) <= 1.0)
    for _ in range(steps):
        ahead = e + step * f.at(x).g
        c = message(p, ahead, s)
        x, e = x - c, ahead - c
    return p.worst(p.square(x - e) + p.square(e) / s)


def ef21(steps: int, mu: float, step: float, s: float) -> float:
    """||grad f||^2; h begins with 0."""
    p = Program()
    f, x, h = Function(p, mu, 1.0), p.vector(), np.zeros(MOST)
    for _ in range(steps):
        h = h + message(p, f.at(x).g - h, s)
        x = x - step * h
    p.limits.append(p.square(f.points[1].g) <= 1.0)
    return p.worst(p.square(f.at(x).g))


def heavy_ball(steps: int, mu: float, step: float, momentum: float, measure: str = "distance") -> float:
    """x_{t+1} = x_t - step g_t + momentum (x_t - x_{t-1})."""
    p = Program()
    f, x = Function(p, mu, 1.0), p.vector()
    before, start = x, x
    for _ in range(steps):
        x, before = x - step * f.at(x).g + momentum * (x - before), x
    p.limits.append((f.points[1].f if measure == "gap" else p.square(start)) <= 1.0)
    return p.worst(f.at(x).f if measure == "gap" else p.square(x))


def proximal_point(steps: int, mu: float, step: float) -> float:
    """f(x_T) where ||x_0 - x*||^2 was 1."""
    p = Program()
    f, x = Function(p, mu, np.inf), p.vector()
    p.limits.append(p.square(x) <= 1.0)
    for _ in range(steps):
        g, value = p.vector(), cp.Variable()
        x = x - step * g  # g is a subgradient where the step ends
        new = Point(x, g, value)
        f.points.append(new)
        for old in f.points[:-1]:
            f._between(old, new)
            f._between(new, old)
    return p.worst(f.points[-1].f)


def smallest_gradient(steps: int, step: float) -> float:
    """min ||grad f(x_t)||^2 of a 1-smooth function, convex or not, where f(x_0) - f(x_T) is at most 1."""
    p = Program()
    x, least = p.vector(), cp.Variable()
    first = Point(x, p.vector(), cp.Variable())
    f = Function(p, -1.0, 1.0)
    f.points = [first]
    x = x - step * first.g
    for _ in range(steps):
        x = x - step * f.at(x).g
    p.limits.append(first.f - f.points[-1].f <= 1.0)
    p.limits += [least <= p.square(one.g) for one in f.points]
    return p.worst(least)


def one_step_of_sgd(mu: float, step: float, *, noise: float, distance: float, functions: int) -> float:
    """E ||x_1 - x*||^2 for one of the functions at random, whose mean squared gradient at x* is noise^2."""
    p = Program()
    x = p.vector()
    at_minimum = [p.vector() for _ in range(functions - 1)] if noise > 0.0 else []
    at_minimum += [-np.sum(at_minimum, axis=0)] if at_minimum else [np.zeros(MOST)] * functions
    p.limits.append(p.square(x) <= distance**2)
    p.limits.append(sum(p.square(g) for g in at_minimum) / functions <= noise**2)
    after = [x - step * Function(p, mu, 1.0, g).at(x).g for g in at_minimum]
    return p.worst(sum(p.square(one) for one in after) / functions)


METHODS: dict[str, Callable[..., float]] = {
    "gd": gradient_descent,
    "compressed-gd": compressed_descent,
    "ef": error_feedback,
    "ef21": ef21,
    "heavy-ball": heavy_ball,
}
