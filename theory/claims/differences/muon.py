"""Claims about EF21-Muon: Newton-Schulz steps, and the rate of steps of a fixed length under generalised smoothness."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...compressors import Identity, TopK
from ...methods import EF21, EF21Muon
from ...problems import function, quadratic
from .. import claim, identity, upper
from ..memory.error_feedback import unchanging

# --- the oracle -------------------------------------------------------------------------------------------------------


def oracle(context, G, iterations):
    """What a step of length 1 on <G, X> subtracts from X."""
    plane = function(lambda x: float(G.ravel() @ x), lambda x: G.ravel(), d=G.size)
    method = EF21Muon(step=unchanging(1.0), norm=(G.shape,), iterations=iterations)
    return -context.run64(method, plane, steps=1, x0=np.zeros(G.size)).last.reshape(G.shape)


def by_hand(cubic: bool, scale: Any):
    """Steps of another polynomial, or from another multiple of G."""

    def found(context, G, iterations):
        X = G / scale(G)
        for _ in range(iterations):
            S = X.T @ X
            fifth = (15.0 * np.eye(len(S)) - 10.0 * S + 3.0 * S @ S) / 8.0
            X = X @ ((3.0 * np.eye(len(S)) - S) / 2.0 if cubic else fifth)
        return X

    return found


@claim(
    "muon.oracle",
    of=bounds.newton_schulz_value,
    subject=oracle,
    mutants={
        "steps of the cubic polynomial": by_hand(True, np.linalg.norm),
        "divided by the largest singular value": by_hand(False, lambda G: np.linalg.norm(G, 2)),
        "the gradient, divided by its norm": lambda context, G, iterations: G / np.linalg.norm(G),
    },
)
def _(context):
    for values, iterations in (((0.1, 0.4, 0.9), 2), ((0.3, 0.8), 3)):
        U, _, Vt = np.linalg.svd(context.normal((6, len(values)), len(values)), full_matrices=False)
        found = U.T @ context.subject(context, U * np.array(values) @ Vt, iterations) @ Vt.T
        for i, value in enumerate(np.array(values) / np.linalg.norm(values)):
            law = bounds.newton_schulz_value(float(value), iterations)
            yield identity(f"singular value {value:.3f} after {iterations} steps", float(found[i, i]), law, 1e-9)
        others = float(np.abs(found - np.diag(np.diag(found))).max())
        yield identity(f"by other singular vectors, {len(values)} columns", others, 0.0, 1e-9)


# --- the rate ---------------------------------------------------------------------------------------------------------


def muon(compressor, t, **how):
    """The method of the theorem."""
    return EF21Muon(compressor, unchanging(t), momentum=1.0, **how)


def steep(steps: int, t: float, flat: float, growth: float, d: int):
    """Slopes of a function that is quadratic between 0, t, 2 t, ...; its sum over d coordinates; the gap of steps t."""
    curvatures, ends, top = np.zeros(steps), t * np.arange(1, steps + 1), 0.0
    for k in range(steps):  # the curvature is flat/d + growth times the slope at the upper end
        curvatures[k] = (flat / d + growth * top) / (1.0 - growth * t)
        top += t * curvatures[k]

    def parts(x):
        return np.clip(np.abs(x)[..., None] - ends + t, 0.0, t), np.maximum(np.abs(x)[..., None] - ends, 0.0)

    def value(x):
        within, beyond = parts(x)
        return float(np.sum((within**2 / 2.0 + t * beyond) @ curvatures))

    slope = lambda x: np.sign(x) * (parts(x)[0] @ curvatures)  # noqa: E731
    return slope, function(value, slope, d=d), value(np.full(d, ends[-1]))


def nuclear(x, shape) -> float:
    """The sum of the singular values of the matrices of this shape in x."""
    return float(np.linalg.svd(x.reshape(-1, *shape), compute_uv=False).sum())


@claim(
    "muon.theorem",
    of=bounds.muon_gradient,
    subject=muon,
    mutants={
        "steps of twice the length": lambda C, t, **how: muon(C, 2.0 * t, **how),
        "the gradients themselves": lambda C, t, norm=None, iterations=0, **how: EF21(C, unchanging(t), **how),
        "the Euclidean norm": lambda C, t, norm=None, **how: muon(C, t, norm="euclidean", **how),
        "no Newton-Schulz steps": lambda C, t, iterations=0, **how: muon(C, t, iterations=0, **how),
    },
)
def _(context):
    for steps, t, flat, growth, d in ((4, 0.25, 3.0, 0.5, 3), (7, 0.5, 2.0, 0.2, 5)):
        (slope, problem, gap), method = steep(steps, t, flat, growth, d), context.subject(Identity(), t, norm="sign")
        law = bounds.muon_gradient(steps, step=t, gap=gap, lipschitz=flat, growth=growth)
        x = np.array(context.iterates(method, problem, steps=steps, x0=np.full(d, steps * t)))
        found = float(np.abs(slope(x[:-1])).sum(axis=1).mean())
        yield identity(f"mean ||grad f||_1, signs, K={steps}, L_0={flat:g}, L_1={growth:g}", found, law, 1e-9)
    shape, L = (4, 3), 2.0
    for steps, t, iterations in ((3, 0.5, 1), (6, 0.25, 8)):
        U = np.linalg.qr(context.normal(shape, "start"))[0]
        method = context.subject(Identity(), t, norm=(shape,), iterations=iterations)
        x = context.iterates(method, quadratic([L] * 12, covariance=0.0), steps=steps, x0=(steps * t * U).ravel())
        e, gap = bounds.newton_schulz_value(3.0**-0.5, iterations), 1.5 * L * (steps * t) ** 2
        law = bounds.muon_gradient(steps, step=t, gap=gap, lipschitz=3.0 * L, exact=e)
        found = L * float(np.mean([nuclear(one, shape) for one in x[:-1]]))
        yield upper(f"mean ||grad f||_*, spectral norm, {iterations} Newton-Schulz steps", found, law)
    t, y, steps = 0.25, 0.1, 400
    x = np.array(context.iterates(context.subject(Identity(), t), quadratic([L], covariance=0.0), steps=steps, x0=[y]))
    amplitude = float((np.abs(x[1:]) + np.abs(x[:-1])).max())
    yield identity("largest |x_k| + |x_{k+1}|, one number", amplitude, t, 1e-9)
    law = bounds.muon_gradient(steps, step=t, gap=L * y**2 / 2.0, lipschitz=L)
    yield upper("mean |f'| on the way between y and y - t", L * float(np.abs(x[:-1]).mean()), law)
    others = {"growth": 0.3, "exact": 0.7, "delta": 0.5, "start": 0.2, "ratio": 0.6, "dual": 2.0}
    more = {"growth": 0.2, "exact": 0.9, "delta": 0.75, "start": 0.3, "ratio": 1.5, "dual": 1.5}
    for steps, t, how in ((5, 0.02, others), (9, 0.03, more)):
        q, k = (1.0 - how["delta"]) ** 0.5, np.arange(1, steps + 1)
        errors = np.mean(q**k) * how["start"]  # as each step multiplies them by q and adds q times the change
        errors += how["ratio"] * t * L * np.mean([np.sum(q ** np.arange(1, j)) for j in k])
        late, wrong = np.sum(q ** np.arange(1, 999)), (1.0 + how["exact"]) * how["dual"]
        rest = how["exact"] - how["growth"] * t * (0.5 + wrong * how["ratio"] * late)
        found = (4.0 / (t * steps) + L * t / 2.0 + wrong * errors) / rest
        law = bounds.muon_gradient(steps, step=t, gap=4.0, lipschitz=L, **how)
        yield identity(f"the sum of the proof, step by step, K={steps}", float(found), law, 1e-9)
    b = context.normal((2, 6), "centres")
    spread = np.array([[1.0, 2.0, 1.0, 3.0, 1.0, 1.0], [2.0] * 6]), np.array([[1.0] * 6, [3.0] * 6])
    # in the norm the curvature of f is at most flat, and the gradients of the f_i change by at most flat times ratio
    sign = "sign", (1, 1), 6.0**0.5, spread[0].mean(axis=0).sum(), np.linalg.norm(spread[0], axis=1).mean()
    spectral = ((3, 2),), (3, 2), 2.0**0.5, 2.0 * 2.0, 2.0 * 2.0**0.5
    for c, (norm, shape, dual, flat, moved) in zip(spread, (sign, spectral), strict=True):
        problem = function(lambda x, c=c: np.sum(c * (x - b) ** 2) / 4.0, lambda x, c=c: c * (x - b), d=6, n=2)
        mean, best = c.mean(axis=0), (c * b).sum(axis=0) / c.sum(axis=0)
        gap, start = float(mean @ (2.0 - best) ** 2) / 2.0, float(np.linalg.norm(c * (2.0 - b), axis=1).mean())
        how = {"gap": gap, "lipschitz": float(flat), "ratio": float(moved / flat), "dual": dual, "start": start}
        for kept, t, steps in ((2, 0.02, 800), (4, 0.03, 500)):
            method = context.subject(TopK(kept), t, norm=norm, iterations=40, shards="contiguous")
            x = context.iterates(method, problem, steps=steps, x0=np.full(6, 2.0), workers=2)
            sizes = [nuclear(mean * (one - best), shape) for one in x[:-1]]
            law = bounds.muon_gradient(steps, step=t, delta=kept / 6.0, **how)
            yield upper(f"mean ||grad f||_*, top-{kept}, {norm}", float(np.mean(sizes)), law, trivial=sizes[0])
