"""Claims about private messages: what noise grants and costs, what clipping moves, what quantizing alone leaves."""

from __future__ import annotations

import math

import numpy as np

from ... import bounds
from ...compressors import QSGD, Bucketed, Identity, Private, compress
from ...methods import DCGD, ParallelSGD
from ...problems import quadratic, ridge
from .. import claim, equality, identity
from ..memory.error_feedback import unchanging

WRONG = {
    "noise in units of 1": lambda clip, noise: Private(Identity(), clip, noise / clip),
    "half of the noise": lambda clip, noise: Private(Identity(), clip, noise / 2.0),
}


def private(clip: float, noise: float) -> Private:
    """The vector itself, clipped and with noise."""
    return Private(Identity(), clip, noise)


def restored(context, c, v, samples: int, label: str) -> np.ndarray:
    """What is restored from so many independent messages for v, a row for each."""
    return compress(Bucketed(c, v.size), np.tile(v, samples), context.stream(label)).reshape(samples, v.size)


@claim(
    "privacy.gaussian",
    of=bounds.gaussian_privacy,
    subject=private,
    mutants=WRONG | {"no clipping": lambda clip, noise: Private(Identity(), 1e3, noise * clip / 1e3)},
)
def _(context):
    clip, g, samples = 0.5, np.array([3.0, -4.0, 0.0]), context.samples(80_000, 20_000)
    for epsilon, noise, steps in ((0.5, 1.5, 2), (0.8, 2.0, 4)):
        c, label = context.subject(clip, noise), f"epsilon={epsilon:g}, sigma={noise:g}, T={steps}"
        edge = epsilon * noise**2 + steps / 2.0  # beyond it the ratio of the densities is above e^epsilon
        present, absent = (
            restored(context, c, v, steps * samples, f"{label}, {v[0]:g}") @ g / (np.linalg.norm(g) * clip)
            for v in (g, 0.0 * g)
        )
        here, gone = (np.sum(along.reshape(samples, steps), axis=1) > edge for along in (present, absent))
        law = bounds.gaussian_privacy(epsilon, noise, steps)
        yield equality(f"P(present) - e^epsilon P(absent), {label}", here - math.exp(epsilon) * gone, law)


@claim("privacy.floor", of=bounds.private_floor, subject=private, mutants=WRONG)
def _(context):
    most = context.samples(40_000, 10_000)
    for step, curvature, workers, clip, size, d in ((0.5, 0.8, 4, 2.0, 0.3, most), (0.8, 2.0, 2, 0.5, 0.2, most // 2)):
        noise = size / math.sqrt(d)  # short enough that nothing is clipped
        method, problem = ParallelSGD(context.subject(clip, noise), step=unchanging(step)), np.full(d, curvature)
        x = context.run64(method, quadratic(problem, covariance=0.0), workers=workers, steps=60, x0=np.zeros(d)).last
        law, label = bounds.private_floor(step, curvature, clip, noise, d, workers), f"step={step:g}, N={workers}"
        yield equality(f"|x|^2 after 60 steps, {label}, C={clip:g}, lambda={curvature:g}, d={d}", d * x**2, law)


@claim(
    "privacy.clipping",
    of=bounds.clipped_fixed_point,
    subject=lambda clip: Private(Identity(), clip, 0.0),
    mutants={
        "no clipping": lambda clip: Identity(),
        "twice as long": lambda clip: Private(Identity(), 2.0 * clip, 0.0),
    },
)
def _(context):
    for few, workers, clip, away in ((1, 4, 1.5, 4.0), (2, 5, 0.5, 4.0), (3, 8, 100.0, 4.0), (1, 3, 100.0, 2.5)):
        b = np.where(np.arange(workers) < few, away, 0.0)
        method = DCGD(context.subject(clip), step=unchanging(0.5), shards="contiguous")
        x = context.run64(method, ridge((np.ones((workers, 1)), b), l2=0.0), workers=workers, steps=100).last
        law = bounds.clipped_fixed_point(1.0 - few / workers, away, clip)
        yield identity(f"{few} of {workers} workers at {away:g}, C={clip:g}", float(x[0]), law, 1e-9)


@claim(
    "privacy.quantized",
    of=bounds.quantized_exposure,
    subject=QSGD,
    mutants={"twice as many levels": lambda s: QSGD(2 * s), "with noise": lambda s: Private(QSGD(s), 1.0, 0.1)},
)
def _(context):
    samples = context.samples(80_000, 20_000)
    for d, s in ((4, 1), (9, 1), (16, 1), (16, 2), (25, 3)):
        c, label, law = context.subject(s), f"d={d}, s={s}", bounds.quantized_exposure(d, s)
        present, absent = (restored(context, c, v, samples, label) != 0.0 for v in (np.ones(d), np.zeros(d)))
        if s == 1:  # more levels leave no message without a coordinate
            difference = np.any(present, axis=1) - math.e * np.any(absent, axis=1)
            yield equality(f"P(present) - e P(absent), {label}", difference, law)
        yield equality(f"share of zeros, {label}", 1.0 - present.mean(axis=1), (1.0 - law) ** (1.0 / d))
