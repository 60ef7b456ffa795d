"""Claims about signs: their errors and their bits."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np

from ... import bounds
from ...compressors import QSGD, Bucketed, ScaledSign, TwoScaleSign, encode
from ...measure import Interval
from ...wire import bits_for, open_frame
from .. import certain, claim, identity, upper
from ..laws import Input, equal_magnitudes, gaussian
from ..mutants import Messages
from ..mutants.sign import WrongSign

L2 = partial(ScaledSign, 2)


def spike(d: int) -> np.ndarray:
    """The vector with one entry -3 and zeros elsewhere."""
    return np.where(np.arange(d) == d // 2, -3.0, 0.0)


INPUTS = (
    gaussian(1000),
    gaussian(1000, 3),
    equal_magnitudes(1000),
    Input("one spike, d=1000", lambda context: spike(1000)),
)


def relative_error(context, v) -> Interval:
    """||C(v) - v||^2/||v||^2 of the compressor that the subject makes, which draws nothing."""
    found = context.moments(context.subject(), v, 2)
    return certain(found.error[0] / found.squared_norm)


def same(label, measured, predicted):
    """Equal, up to rounding in sums of a thousand numbers."""
    return identity(label, measured, predicted, tolerance=1e-9)


def errors(context, formula, rule=same, inputs=INPUTS):
    """Checks of the relative error at some vectors."""
    for vector in inputs:
        v = vector.make(context)
        yield rule(f"error, {vector.label}", relative_error(context, v), formula(v))


@claim(
    "sign.error",
    of=bounds.scaled_sign_error,
    subject=ScaledSign,
    mutants={
        "the scale ||v||_2/sqrt(d)": L2,
        "half the scale": partial(WrongSign, 1, 0.5),
        "small entries become 0": partial(WrongSign, 1, 1.0, True),
    },
)
def _(context):
    yield from errors(context, bounds.scaled_sign_error)


@claim(
    "sign.contraction",
    of=bounds.scaled_sign_contraction,
    subject=ScaledSign,
    mutants={"the scale ||v||_2/sqrt(d)": L2, "half the scale": partial(WrongSign, 1, 0.5)},
)
def _(context):
    for d in (4, 100, 1000):
        error = relative_error(context, spike(d))
        yield same(f"error, one spike, d={d}", error, 1.0 - bounds.scaled_sign_contraction(d))
    yield from errors(context, lambda v: 1.0 - bounds.scaled_sign_contraction(v.size), rule=upper)


@claim(
    "sign.l2.error",
    of=bounds.l2_sign_error,
    subject=L2,
    mutants={
        "the scale ||v||_1/d": ScaledSign,
        "half the scale": partial(WrongSign, 2, 0.5),
        "small entries become 0": partial(WrongSign, 2, 1.0, True),
    },
)
def _(context):
    yield from errors(context, bounds.l2_sign_error)


@claim(
    "sign.l2.contraction",
    of=bounds.l2_sign_error,
    subject=L2,
    refuted="question",
    see=("sign.l2.error", "sign.contraction"),
)
def _(context):
    for d in (10_000, 100):
        yield upper(f"error, one spike, d={d}", relative_error(context, spike(d)), 1.0)


def skewed(context) -> np.ndarray:
    """A third of the entries negative, and five times as large."""
    return np.abs(context.normal(1000)) * np.where(np.arange(1000) % 3 == 0, -5.0, 1.0)


SKEWED = Input("a third negative and larger, d=1000", skewed)


def WrongTwoScales(where=np.greater_equal, scale=np.mean) -> Messages:
    """Signs with two scales, divided or averaged otherwise."""

    def wrong(v, samples, rng):
        side = where(v, 0.0)
        parts = [np.where(kept, scale(v[kept]) if kept.any() else 0.0, 0.0) for kept in (side, ~side)]
        return np.tile(sum(parts), (samples, 1))

    return wrong


def inverted_bytes(v, samples, rng):
    """Sides as bytes, the other side by ``~``: 254 and 255 in place of 0 and 1, as in GRACE (PyTorch)."""
    negative = (v < 0.0).astype(np.uint8)
    scales = [v[side].mean() if side.any() else 0.0 for side in (v < 0.0, v >= 0.0)]
    return np.tile(scales[0] * negative + scales[1] * ~negative, (samples, 1))


WRONG_SCALES = {
    "~ of a mask of bytes, which is 255 where the mask is 0": lambda: inverted_bytes,
    "one scale": ScaledSign,
    "the scales are medians": partial(WrongTwoScales, scale=np.median),
    "all that are not 0 share one scale": partial(WrongTwoScales, np.not_equal),
}


@claim("sign.two-scale.error", of=bounds.two_scale_sign_error, subject=TwoScaleSign, mutants=WRONG_SCALES)
def _(context):
    yield from errors(context, bounds.two_scale_sign_error, inputs=(*INPUTS, SKEWED))


@claim(
    "sign.two-scale.contraction",
    of=bounds.two_scale_sign_contraction,
    subject=TwoScaleSign,
    mutants={"the scales are twice the means": partial(WrongTwoScales, scale=lambda side: 2.0 * np.mean(side))},
)
def _(context):
    for d in (4, 100, 1000):
        error = relative_error(context, -spike(d))
        yield same(f"error, one positive entry, d={d}", error, 1.0 - bounds.two_scale_sign_contraction(d))
    yield from errors(context, lambda v: 1.0 - bounds.two_scale_sign_contraction(v.size), upper, (*INPUTS, SKEWED))


# --- bits -------------------------------------------------------------------------------------------------------------


def sent(v, bucket: int, inner=ScaledSign, dtype=np.float32) -> int:
    """The payload of an encoded message."""
    return open_frame(encode(Bucketed(inner(), bucket), v, 0, wire_dtype=dtype)).payload_bits


@claim(
    "sign.bits",
    of=bounds.bucketed_bits,
    subject=sent,
    mutants={
        "32 bits more a bucket": lambda v, m, *how: sent(v, m, *how) + 32 * math.ceil(v.size / m),
        "scales for all buckets together": lambda v, m, *how: sent(v, v.size, *how),
        "the last bucket is filled up": lambda v, m, *how: sent(np.resize(v, m * math.ceil(v.size / m)), m, *how),
    },
    measured_by="the package's run",
    fixed={"floats": "signs and levels have one scale a bucket, or two; no compressor has more"},
)
def _(context):
    zeros = Input("zeros, d=64", lambda context: np.zeros(64))
    for vector in (*INPUTS, zeros, gaussian(10_000)):
        v = vector.make(context)
        for bucket, (scales, sign) in product((64, 8192), enumerate((ScaledSign, TwoScaleSign), 1)):
            bits = context.subject(v, bucket, sign)
            predicted = bounds.bucketed_bits(v.size, bucket, 1, floats=scales)
            yield identity(f"bits, {vector.label}, m={bucket}, scales {scales}", bits, predicted, tolerance=0.0)
    v = gaussian(1000).make(context)
    for s, dtype in product((3, 7), (np.float32, np.float64)):
        width, floats = bits_for(2 * s + 1), 8 * np.dtype(dtype).itemsize
        predicted = bounds.bucketed_bits(v.size, 64, width, float_bits=floats)
        label = f"bits, {2 * s + 1} levels, m=64, floats of {floats} bits"
        yield identity(label, context.subject(v, 64, partial(QSGD, s), dtype), predicted, tolerance=0.0)
