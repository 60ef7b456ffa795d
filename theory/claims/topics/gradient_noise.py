"""Claims about the noise of quantized gradients, as QSGD bounds it and as its text can be read."""

from __future__ import annotations

import numpy as np

from ... import bounds
from ...compressors import QSGD, compress
from ...core.random import key
from .. import claim, upper

GAUSSIAN = "grad f = (1/4, ..., 1/4), g - grad f standard normal in 64 dimensions: sigma^2 = 64 and E||g||^2 = 68"


def quantized(context, s, mean, noise, *path):
    """Samples of ||Q(g) - grad f||^2 for g = grad f + noise(rng, d), where all 64 partial derivatives are ``mean``."""
    d, samples = 64, context.samples(4000, 2000)
    rng, slope, found = np.random.default_rng(context.stream(*path)), np.full(d, mean), np.empty(samples)
    context.used.add("compressor")
    for r in range(samples):
        g = slope + noise(rng, d)
        received = compress(context.subject(s), g, key(context.stream(*path), r), wire_dtype=np.float64)
        found[r] = np.sum((received - slope) ** 2)
    return found


def normal(rng, d):
    """Standard normal noise."""
    return rng.standard_normal(d)


def signs(rng, d):
    """Noise of equal magnitudes, for which one level is worst."""
    return rng.choice([-1.0, 1.0], d)


@claim(
    "qsgd.gradient-noise",
    of=bounds.averaged_variance,
    subject=QSGD,
    mutants={"one level instead of s": lambda s: QSGD(1)},
)
def _(context):
    for s, mean, noise, second in ((16, 0.25, normal, 68.0), (1, 0.0, signs, 64.0)):
        path = () if s == 16 else (s,)
        bound = bounds.averaged_variance(64.0, second, workers=1, omega=bounds.qsgd_variance(64, s, form="paper"))
        found = quantized(context, s, mean, noise, *path)
        yield upper(f"E||Q(g) - grad f||^2, d=64, s={s}, {noise.__name__}", found, bound)
    yield GAUSSIAN


@claim(
    "qsgd.gradient-noise.reading",
    of=bounds.qsgd_variance,
    subject=QSGD,
    refuted="reading",
    quote=r"If $\hat g(x)$ is a stochastic gradient for $f$ at $x$ with second moment bound $B$, then $Q_s(\hat g(x))$"
    r" is a stochastic gradient for $f$ at $x$ with variance bound $\min(\frac{n}{s^2}, \frac{\sqrt n}{s})B$.",
    see=("qsgd.gradient-noise", "qsgd.variance.paper"),
)
def _(context):
    bound = bounds.qsgd_variance(64, 16, form="paper") * 68.0
    yield upper("E||Q(g) - grad f||^2, d=64, s=16", quantized(context, 16, 0.25, normal), bound)
    yield GAUSSIAN
