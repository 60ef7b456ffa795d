"""Functions that interpolate given points and gradients, and one step from any state.

`interpolant` is a smooth strongly convex function through given points, gradients and values; `RecordedMessages` sends
the messages of a case. Every function of the class is below the parabolas of curvature L that touch it at the points.
After subtracting mu/2 ||x||^2 it is convex, so the convex envelope of the minimum of these parabolas gives the largest
function of the class: L - mu times half the squared distance to a point of a hull, plus that point's height.
Evaluating it is a quadratic program over a simplex.  If any function of the class goes through all points, this one
does [taylor2017smooth].

For one step from any state, the inequality that a lemma states is compared with the worst case.  A lemma gets a world
of unknowns (`solver.Unknowns`), adds the assumptions, and returns the quantity to be maximized. Expectations are over
two draws, g + noise and g - noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core import require

# --- A smooth strongly convex function through given points ----------------------------------------------------------

SETTLED = 1e-13  # of a slope on the simplex, relative to the numbers from which it is computed

SAME = 1e-9  # relative distance below which two points are one

NEAR = 0.1  # relative distance within which a vector is taken for one of the worst case; short ones are inexact


def _simplex_minimum(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The weights w >= 0 of sum 1 that minimise w.H w/2 + b.w, H positive semidefinite: an active-set method.

    A support grows by the coordinate with the lowest slope.  On a support the minimiser with sum 1 is found by a Newton
    step; a direction without curvature gets the smallest curvature above rounding errors, and is followed downhill
    until a weight becomes 0.
    """
    w = np.zeros(b.size)
    w[np.argmin(np.diag(H) / 2.0 + b)] = 1.0
    scale = float(np.abs(H).max() + np.abs(b).max()) or 1.0
    for _ in range(50 * b.size):
        slope = H @ w + b
        lowest = int(np.argmin(slope))
        if slope[lowest] >= slope @ w - SETTLED * scale:
            break
        support = sorted({*np.flatnonzero(w), lowest})
        while len(support) > 1:
            basis = np.linalg.svd(np.ones((1, len(support))))[2][1:].T  # directions of sum 0
            curvature = basis.T @ H[np.ix_(support, support)] @ basis
            down = -basis.T @ (H @ w + b)[support]
            curved, axes = np.linalg.eigh(curvature)
            move = basis @ (axes @ (axes.T @ down / np.maximum(curved, np.finfo(float).eps * scale)))
            shrinks = move < 0.0
            reach = np.full(len(support), np.inf)
            reach[shrinks] = w[support][shrinks] / -move[shrinks]
            length = float(reach.min())
            if length >= 1.0:
                w[support] += move
                break
            gone = int(np.argmin(reach))
            w[support] += length * move
            w[support[gone]] = 0.0
            support.pop(gone)
        w = np.clip(w, 0.0, None)
        w /= w.sum()
    else:
        raise ArithmeticError(f"the interpolant's weights are not found in {50 * b.size} turns: no slope was settled")
    return w


class Interpolant(NamedTuple):
    """The function; made by `interpolant`.

    Attributes
    ----------
    mu, lipschitz : float
    anchors : ndarray, shape (n, d)
        Points of the hull.
    heights : ndarray, shape (n,)
        Values of the hull at these points.
    """

    mu: float
    lipschitz: float
    anchors: np.ndarray
    heights: np.ndarray

    def _nearest(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return x minus its point of the hull, and the hull's height there."""
        width = self.lipschitz - self.mu
        away = x - self.anchors  # from x, so that small differences are computed accurately
        w = _simplex_minimum(width * away @ away.T, self.heights)
        return w @ away, float(w @ self.heights)

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        away, height = self._nearest(x)
        return height + (self.lipschitz - self.mu) / 2.0 * float(away @ away) + self.mu / 2.0 * float(x @ x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient at x."""
        return (self.lipschitz - self.mu) * self._nearest(x)[0] + self.mu * x


def interpolant(
    points: np.ndarray, gradients: np.ndarray, values: np.ndarray, *, mu: float, lipschitz: float
) -> Interpolant:
    """The largest mu-strongly convex L-smooth function with these gradients and values at these points.

    Parameters
    ----------
    points, gradients : array_like, shape (n, d)
    values : array_like, shape (n,)
        They must be those of such a function, up to rounding; otherwise the interpolant misses some of them.
    mu, lipschitz : float
        0 <= mu < L.

    Returns
    -------
    Interpolant

    Raises
    ------
    ValueError
        If mu and L do not satisfy this.

    Examples
    --------
    >>> f = interpolant([[0.0], [1.0]], [[0.0], [2.0]], [0.0, 0.75], mu=1.0, lipschitz=4.0)
    >>> round(f.value(np.array([1.0])), 12), f.gradient(np.array([1.0])).round(12)
    (0.75, array([2.]))
    """
    require(0.0 <= mu < lipschitz, "mu and lipschitz", (mu, lipschitz), "0 <= mu < lipschitz")
    x, g, f = (np.asarray(given, float) for given in (points, gradients, values))
    size = float(np.abs(x).max()) or 1.0
    first = [i for i in range(len(x)) if not any(np.abs(x[i] - x[k]).max() <= SAME * size for k in range(i))]
    x, g, f = x[first], g[first] - mu * x[first], f[first] - mu / 2.0 * (x[first] ** 2).sum(axis=1)
    width = lipschitz - mu
    return Interpolant(mu, lipschitz, x - g / width, f - (g**2).sum(axis=1) / (2.0 * width))


class RecordedMessages(NamedTuple):
    """A compressor with ||C(v) - v|| <= s ||v|| everywhere that sends the recorded messages for the vectors of a case.

    Near one of these vectors its error is the recorded one, shortened to the allowed length; any other vector is sent
    exactly.

    Attributes
    ----------
    s : float
        sqrt(1 - delta).
    vectors, errors : ndarray, shape (n, d)
        v and C(v) - v.
    """

    s: float
    vectors: np.ndarray
    errors: np.ndarray

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Return C(v)."""
        distance = np.linalg.norm(self.vectors - v, axis=1)
        k = int(np.argmin(distance))
        size, error = float(np.linalg.norm(v)), self.errors[k]
        length = float(np.linalg.norm(error))
        if length == 0.0 or distance[k] > NEAR * size:
            return v
        return v + error * min(1.0, self.s * size / length)


# --- One step from any state, and inequalities -----------------------------------------------------------------------


def _two_draws(w: Any, g: Any) -> tuple[list, Any]:
    noise = w.unknown()
    return [g + noise, g - noise], noise**2


def _second_moment(draws: list) -> Any:
    return (draws[0] ** 2 + draws[1] ** 2) / 2


def lojasiewicz_step(w: Any, step: float, mu: float, L: float) -> Any:
    """The gap after a step of gradient descent from a gap of 1, under the Polyak-Lojasiewicz inequality.

    With the conditions of Rubbens, Hendrickx, Taylor, arXiv 2504.14377, Proposition 3.4, as implemented in PEPit.
    """
    f, x = w.function("SmoothQuadraticLojasiewiczFunctionExpensive", mu=mu, L=L), w.unknown()
    w.assume(f(x) <= 1.0)
    return f(x - step * f.gradient(x))


def noisy_lojasiewicz_step(w: Any, step: float, mu: float, L: float, second_moment: float) -> Any:
    """The same in expectation, with two stochastic gradients of this second moment."""
    f, x = w.function("SmoothQuadraticLojasiewiczFunctionExpensive", mu=mu, L=L), w.unknown()
    draws, _ = _two_draws(w, f.gradient(x))
    w.assume(f(x) <= 1.0)
    w.assume(_second_moment(draws) <= second_moment)
    return (f(x - step * draws[0]) + f(x - step * draws[1])) / 2


def noisy_smooth_step(w: Any, step: float, L: float, gap: float, gradient_squared: float, second_moment: float) -> Any:
    """E f - f* after a step of SGD on a smooth function, whose gap and gradient are given."""
    f, x = w.function("SmoothFunction", L=L), w.unknown()
    g = f.gradient(x)
    draws, _ = _two_draws(w, g)
    w.assume(f(x) <= gap)
    w.assume(g**2 >= gradient_squared)
    w.assume(_second_moment(draws) <= second_moment)
    return (f(x - step * draws[0]) + f(x - step * draws[1])) / 2


def step_with_second_moment(w: Any, step: float, mu: float, second_moment: float, distance: float) -> Any:
    """E ||x - x*||^2 after a step of SGD on a strongly convex function."""
    f, x = w.function("StronglyConvexFunction", mu=mu), w.unknown()
    draws, _ = _two_draws(w, f.gradient(x))
    w.assume(x**2 <= distance)
    w.assume(_second_moment(draws) <= second_moment)
    return _second_moment([x - step * g for g in draws])


def step_with_variance(w: Any, step: float, mu: float, L: float, variance: float, distance: float) -> Any:
    """The same on a smooth strongly convex function, with a variance."""
    f, x = w.function("SmoothStronglyConvexFunction", mu=mu, L=L), w.unknown()
    draws, noise = _two_draws(w, f.gradient(x))
    w.assume(x**2 <= distance)
    w.assume(noise <= variance)
    return _second_moment([x - step * g for g in draws])


def feedback_step(w: Any, step: float, mu: float, L: float, s: float) -> Any:
    """V = ||x - x* - e||^2 + ||e||^2/s after a step of error feedback from V = 1, for any x and memory e."""
    f, x, e, c = w.function("SmoothStronglyConvexFunction", mu=mu, L=L), w.unknown(), w.unknown(), w.unknown()
    p = e + step * f.gradient(x)
    w.assume((c - p) ** 2 <= s**2 * p**2)
    w.assume((x - e) ** 2 + e**2 / s <= 1.0)
    return (x - c - (p - c)) ** 2 + (p - c) ** 2 / s


def ef21_step(w: Any, step: float, mu: float, L: float, s: float) -> Any:
    """V = ||grad f - h||^2 + s ||grad f||^2 after a step of EF21 from V = 1, for any x and h."""
    f, x, h, c = w.function("SmoothStronglyConvexFunction", mu=mu, L=L), w.unknown(), w.unknown(), w.unknown()
    g, after = f.gradient(x), f.gradient(x - step * h)
    w.assume((c - (after - h)) ** 2 <= s**2 * (after - h) ** 2)
    w.assume((g - h) ** 2 + s * g**2 <= 1.0)
    return (after - h - c) ** 2 + s * after**2


def memory(w: Any, steps: int, step: float, s: float) -> Any:
    """||e||^2 after steps of error feedback with gradients of norm 1 at most, from e = 0."""
    e = w.zero
    for _ in range(steps):
        g, c = w.unknown(), w.unknown()
        w.assume(g**2 <= 1.0)
        p = e + step * g
        w.assume((c - p) ** 2 <= s**2 * p**2)
        e = p - c
    return e**2


def feedback_descent(w: Any, step: float, L: float, gradient: float, memory: float) -> Any:
    """The change of f at y in a step of error feedback, y = x - e, with ||grad f(x)||^2 and ||e||^2 given."""
    f, x, e = w.leaf("SmoothFunction", L=L), w.unknown(), w.unknown()
    g = f.gradient(x)
    w.assume(g**2 <= gradient)
    w.assume(g**2 >= gradient)
    w.assume(e**2 <= memory)
    return f(x - e - step * g) - f(x - e)


def memory_pull(w: Any, mu: float, L: float) -> Any:
    """The factor of eta ||m||^2 in a step of Mem-SGD from y = x - m, where ||m|| is 1 at most."""
    f, x, m = w.function("SmoothStronglyConvexFunction", mu=mu, L=L), w.unknown(), w.unknown()
    w.assume(m**2 <= 1.0)
    return mu / 2 * (x - m) ** 2 + f(x) - 2 * f.gradient(x) * (x - m)


def choco_round(w: Any, weight: float, gamma: float, s: float) -> Any:
    """E = sum ||x_i - mean||^2 + ||x_i - xhat_i||^2 after a round of CHOCO-Gossip of two workers from E = 1.

    They give each other this weight; xhat_i is the neighbour's copy of x_i after the message.
    """
    x, known, sent = ([w.unknown(), w.unknown()] for _ in range(3))

    def energy(x: list, known: list) -> Any:
        apart = x[0] - x[1]
        return apart**2 / 2 + (x[0] - known[0]) ** 2 + (x[1] - known[1]) ** 2

    w.assume(energy(x, known) <= 1.0)
    moved = [x[i] + gamma * weight * (known[1 - i] - known[i]) for i in range(2)]
    for i in range(2):
        w.assume((sent[i] - (moved[i] - known[i])) ** 2 <= s**2 * (moved[i] - known[i]) ** 2)
    return energy(moved, [known[i] + sent[i] for i in range(2)])


def variance_reduced_gradient(w: Any, L: float, gap: float, anchor_gap: float) -> Any:
    """E ||grad f_j(x) - grad f_j(y) + grad f(y)||^2 of two convex functions, with the gaps of f at x and y."""
    f = [w.leaf("SmoothConvexFunction", L=L) for _ in range(2)]
    (whole := (f[0] + f[1]) / 2).add_point((w.zero, w.zero, w.no_value))
    x, y = w.unknown(), w.unknown()
    w.assume(whole(x) <= gap)
    w.assume(whole(y) <= anchor_gap)
    anchor = [one.gradient(y) for one in f]
    return _second_moment([f[j].gradient(x) - anchor[j] + (anchor[0] + anchor[1]) / 2 for j in range(2)])


def local_step(w: Any, step: float, mu: float, L: float, distance: float, gap: float, deviation: float) -> Any:
    """||xbar - x*||^2 after a local step of two workers of the same f; distance and deviation at most, gap at least."""
    f = w.function("SmoothStronglyConvexFunction", mu=mu, L=L)
    x = [w.unknown(), w.unknown()]
    centre = (x[0] + x[1]) / 2
    w.assume(centre**2 <= distance)
    w.assume(((x[0] - centre) ** 2 + (x[1] - centre) ** 2) / 2 <= deviation)
    w.assume(f(centre) >= gap)
    return (centre - step * (f.gradient(x[0]) + f.gradient(x[1])) / 2) ** 2


def proximal_progress(w: Any, L: float, theta: float) -> Any:
    """||grad f(y)||^2 after a proximal step that lowers the smooth f by at most 1."""
    f, y, x = w.leaf("SmoothFunction", L=L), w.unknown(), w.unknown()
    value = f(x)
    w.assume((f.gradient(x) + theta * (x - y)) ** 2 <= 0.0)
    w.assume(f(y) - value - theta / 2 * (x - y) ** 2 <= 1.0)
    return f.gradient(y) ** 2


LEMMAS: dict[str, Callable[..., Any]] = {
    found.__name__: found
    for found in (
        lojasiewicz_step,
        noisy_lojasiewicz_step,
        noisy_smooth_step,
        step_with_second_moment,
        step_with_variance,
        feedback_step,
        ef21_step,
        memory,
        feedback_descent,
        memory_pull,
        choco_round,
        variance_reduced_gradient,
        local_step,
        proximal_progress,
    )
}
