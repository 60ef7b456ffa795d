"""Claims about quantizers after a random rotation: DRIVE and EDEN, and how they compare with TurboQuant."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.linalg import hadamard

from ... import bounds
from ...compressors import QSGD, LloydMax, Rotated, ScaledSign, Sign, compress, eden, encode
from ...core.random import key
from ...wire.frame import open_frame
from ..base import claim
from ..checks import equality, identity, lower, upper
from .qsgd import flat
from .sign import spike

DRIVE = "Vargaftik et al., DRIVE, NeurIPS 2021"
EDEN = "Vargaftik et al., EDEN, ICML 2022"
TURBOQUANT = "Zandieh, Daliri, Hadian, Mirrokni, TurboQuant, arXiv 2504.19874"


def drive(uniform: bool):
    """Signs with the best scale after a rotation."""
    return Rotated(ScaledSign(), uniform)


def pair(d: int, ratio: float) -> np.ndarray:
    """The vector with the entries -2 and 2 ratio, and zeros elsewhere."""
    v = np.zeros(d)
    v[d // 3], v[d - 1] = -2.0, 2.0 * ratio
    return v


def without_signs():
    """The best scaled signs after Hadamard's matrix alone."""

    def restored(v, rng, samples):
        H = hadamard(v.size) / math.sqrt(v.size)
        x = H @ v
        return np.tile(H @ np.where(x < 0.0, -1.0, 1.0) * np.abs(x).mean(), (samples, 1))

    return restored


def fixed_rotation(bits: int, uniform: bool):
    """EDEN with one bit, where every message is rotated in the same way."""

    def restored(v, rng, samples):
        R, _ = np.linalg.qr(rng.standard_normal((v.size, v.size)))
        x = R @ v
        return np.tile(R.T @ np.where(x < 0.0, -1.0, 1.0) * (v @ v) / np.abs(x).sum(), (samples, 1))

    return restored


def sampled(context, subject, v, samples: int, *path):
    """Relative squared errors, and products of neighbouring errors, of a compressor or of a function."""
    if hasattr(subject, "_fields"):
        found = context.moments(subject, v, samples, *path)
        return found.error / found.squared_norm, found.cross / found.squared_norm
    error = subject(v, np.random.default_rng(context.stream(*path)), samples + samples % 2) - v
    return np.sum(error**2, axis=1) / (v @ v), np.sum(error[::2] * error[1::2], axis=1) / (v @ v)


def _vectors(context, d: int):
    return (("one spike", spike(d)), ("equal magnitudes", flat(d)), ("Gaussian cubed", context.normal(d) ** 3))


# --- the best scale ---------------------------------------------------------------------------------------------------


@claim(
    "rotation.sign.uniform",
    title="Scaled signs after a uniform rotation",
    statement="With the best scale E||C(v) - v||^2 = (1 - 1/d)(1 - 2/pi) ||v||^2, for every v.",
    latex=r"\mathbb E\|C(v)-v\|^2=\Big(1-\tfrac1d\Big)\Big(1-\tfrac2\pi\Big)\|v\|^2",
    source=f"derived; stated in {DRIVE}",
    bibtex="vargaftik2021drive",
    kind="equality",
    tight_where="everywhere",
    proof="The error at u on the sphere is 1 - ||u||_1^2/d, and E||u||_1^2 = 1 + (d - 1) 2/pi.",
    bound=bounds.rotated_sign_error,
    subject=partial(drive, True),
    mutants={
        "no rotation": ScaledSign,
        "random signs times Hadamard": partial(drive, False),
        "the unbiased scale": partial(eden, 1, uniform=True),
        "the scale ||v||_2/sqrt(d)": lambda: Rotated(ScaledSign(2), True),
        "the scale 1": lambda: Rotated(Sign(), True),
    },
)
def _(context):
    samples, dims = context.samples(8_000, 3_000), (2, 8, 30)
    for d in dims:
        for name, v in _vectors(context, d):
            error, _ = sampled(context, context.subject(), v, samples, d, name)
            label = f"error, {name}, d={d}"
            yield equality(label, error, bounds.rotated_sign_error(d))


@claim(
    "rotation.sign.hadamard",
    title="Scaled signs after random signs and Hadamard's matrix",
    statement="With the best scale E||C(v) - v||^2 <= ||v||^2/2 for every v, with equality at e_i + e_j; a single"
    " non-zero is restored without error.",
    latex=r"\mathbb E\|C(v)-v\|^2\le\tfrac12\|v\|^2",
    source="derived, with Khintchine's inequality (Szarek, Studia Math. 58, 1976)",
    bibtex="vargaftik2021drive",
    kind="tight",
    tight_where="e_i + e_j",
    proof="E|sum_j s_j v_j| >= ||v||/sqrt(2), so E||Rv||_1^2/d >= (E||Rv||_1)^2/d >= ||v||^2/2.",
    bound=bounds.hadamard_sign_contraction,
    subject=partial(drive, False),
    mutants={
        "no random signs": without_signs,
        "no rotation": ScaledSign,
        "the scale ||v||_2/sqrt(d)": lambda: Rotated(ScaledSign(2)),
        "the scale 1": lambda: Rotated(Sign()),
        "a uniform rotation": partial(drive, True),
    },
)
def _(context):
    samples = context.samples(4_000, 1_000)
    for d in (2, 8, 64):
        error, _ = sampled(context, context.subject(), pair(d, 1.0), 16, d)
        half = 1.0 - bounds.hadamard_sign_contraction(d)
        yield identity(f"error of the worst message, e_i + e_j, d={d}", error.max(), half, 1e-9)
    error, _ = sampled(context, context.subject(), spike(64), 16, "spike")
    yield identity("error of the worst message, one spike, d=64", error.max(), 0.0)
    row, three = hadamard(64)[37] / 1.0, np.eye(64)[:3].sum(axis=0)
    for name, v in (("a row of H", row), ("three equal entries", three), *_vectors(context, 64)[1:]):
        error, _ = sampled(context, context.subject(), v, samples, name)
        bound = 1.0 - bounds.hadamard_sign_contraction(64)
        yield upper(f"error, {name}, d=64", error, bound)


# --- the unbiased scale -----------------------------------------------------------------------------------------------


@claim(
    "rotation.eden.unbiased",
    title="EDEN is unbiased after a uniform rotation",
    statement="With the scale ||v||^2/<Rv, q> and a uniform rotation the mean is v, for any levels q.",
    latex=r"\mathbb E\,R^\top\tfrac{\|v\|^2}{\langle Rv,q\rangle}q=v",
    source=f"derived; stated in {EDEN}",
    bibtex="vargaftik2022eden",
    kind="equality",
    proof="Given Rv the part of R^T q orthogonal to v has a symmetric law, and the scale makes <Q(v), v> = ||v||^2.",
    subject=eden,
    mutants={
        "random signs times Hadamard": lambda bits, uniform: eden(bits),
        "the best scale": lambda bits, uniform: eden(bits, False, uniform),
        "the same rotation in every message": fixed_rotation,
    },
)
def _(context):
    samples = context.samples(16_000, 4_000)
    for bits in (1, 2, 3):
        v = pair(8, 0.5) + 0.25 * spike(8)
        _, cross = sampled(context, context.subject(bits, uniform=True), v, samples, bits)
        label = f"||E Q(v) - v||^2/||v||^2, {bits} bits, d=8"
        yield equality(label, cross, 0.0)


@claim(
    "rotation.eden.variance",
    title="Variance of EDEN with one bit",
    statement="After a uniform rotation E||Q(v) - v||^2 = (d E[1/||u||_1^2] - 1) ||v||^2 for every v, with u uniform on"
    " the sphere: 4/pi - 1 for d = 2, growing to pi/2 - 1.",
    latex=r"\frac{\mathbb E\|Q(v)-v\|^2}{\|v\|^2}=d\,\mathbb E\frac1{\|u\|_1^2}-1"
    r"=d(d-2)\int_0^\infty t\,\big(e^{t^2/2}\operatorname{erfc}(t/\sqrt2)\big)^d\,dt-1",
    source=f"derived; the operator is that of {EDEN}",
    bibtex="vargaftik2022eden",
    kind="equality",
    tight_where="everywhere",
    proof="||Q(v)||^2 = d ||v||^4/||Rv||_1^2; its mean from that of a Gaussian vector, and 1/x^2 = int t exp(-t x) dt.",
    bound=bounds.rotated_sign_variance,
    subject=partial(eden, 1, uniform=True),
    mutants={
        "the best scale": partial(eden, 1, False, True),
        "random signs times Hadamard": partial(eden, 1),
        "no rotation": partial(LloydMax, 1, True),
        "the scale ||v||_2/sqrt(d)": lambda: Rotated(ScaledSign(2), True),
        "the scale 1": lambda: Rotated(Sign(), True),
    },
)
def _(context):
    samples, dims = context.samples(12_000, 5_000), (2, 3, 8, 30)
    for d in dims:
        for name, v in (("one spike", spike(d)), ("Gaussian cubed", context.normal(d) ** 3)):
            error, _ = sampled(context, context.subject(), v, samples, d, name)
            predicted = bounds.rotated_sign_variance(d)
            yield equality(f"variance, {name}, d={d}", error, predicted)


@claim(
    "rotation.eden.hadamard",
    title="EDEN is biased after random signs and Hadamard's matrix",
    statement="For two non-zeros a and b = r a with r < 1 every message of EDEN with one bit restores (1 + r^2) a e_i:"
    " the squared bias is r^2 ||v||^2, for every d.",
    latex=r"Q(a e_i+b e_j)=\tfrac{a^2+b^2}{a}e_i,\qquad\|\mathbb E\,Q(v)-v\|^2=\tfrac{b^2}{a^2}\|v\|^2",
    source=f"derived; {EDEN}, use this rotation in practice",
    bibtex="vargaftik2022eden",
    kind="identity",
    proof="An entry of Rv has the sign of its part with a, and ||Rv||_1 = sqrt(d) |a|; R^T sign(Rv) = +-sqrt(d) e_i.",
    bound=bounds.hadamard_sign_bias,
    subject=partial(eden, 1),
    mutants={
        "a uniform rotation": partial(eden, 1, uniform=True),
        "the best scale": partial(eden, 1, False),
        "no rotation": partial(LloydMax, 1, True),
        "two bits": partial(eden, 2),
    },
)
def _(context):
    for d in (2, 8, 50):  # 50: filled up to 64
        for ratio in (0.25, 0.8):
            error, cross = sampled(context, context.subject(), pair(d, ratio), 32, d)
            predicted = bounds.hadamard_sign_bias(ratio)
            yield identity(f"squared bias, r={ratio}, d={d}", cross.mean(), predicted, 1e-9)
            yield identity(f"error of the worst message, r={ratio}, d={d}", error.max(), predicted, 1e-9)


def own_rotations(v, workers: int, stream) -> np.ndarray:
    """The mean of the messages of workers that all have v, each with a rotation of its own."""
    c = eden(1, uniform=True)
    return np.mean([compress(c, v, key(stream, i), wire_dtype=np.float64) for i in range(workers)], axis=0)


def one_rotation(v, workers: int, stream) -> np.ndarray:
    """All workers rotate in the same way."""
    return own_rotations(v, 1, stream)


def _hadamard_mean(v, workers: int, stream) -> np.ndarray:
    c = eden(1)
    return np.mean([compress(c, v, key(stream, i), wire_dtype=np.float64) for i in range(workers)], axis=0)


@claim(
    "rotation.workers",
    title="Each worker rotates in its own way",
    statement="The mean of N workers' messages for the same v, with independent uniform rotations, has 1/N of the"
    " variance of one.",
    latex=r"\mathbb E\Big\|\tfrac1N\sum_i Q_i(v)-v\Big\|^2=\tfrac1N\,\omega\,\|v\|^2",
    source=f"derived; stated in {DRIVE}",
    bibtex="vargaftik2021drive",
    kind="equality",
    proof="The errors are independent, with mean 0.",
    bound=bounds.rotated_sign_variance,
    subject=own_rotations,
    mutants={"the same rotation on every worker": one_rotation, "random signs times Hadamard": _hadamard_mean},
)
def _(context):
    samples, d = context.samples(3_000, 1_200), 8
    context.used.add("compressor")
    for workers in (2, 8):
        v = pair(d, 0.5)
        found = [np.sum((context.subject(v, workers, context.stream(workers, i)) - v) ** 2) for i in range(samples)]
        predicted = bounds.rotated_sign_variance(d) / workers
        yield equality(f"error of the mean, N={workers}, d={d}", np.array(found) / (v @ v), predicted)


# --- more bits --------------------------------------------------------------------------------------------------------


def _equally_likely(bits: int) -> np.ndarray:
    """Means of cells that are all equally likely."""
    from scipy.stats import norm

    ends = norm.ppf(np.linspace(0.5, 1.0, 2 ** (bits - 1) + 1))
    return 2**bits * (norm.pdf(ends[:-1]) - norm.pdf(ends[1:]))


def _equally_spaced(bits: int) -> np.ndarray:
    """Odd multiples of half a step, that of the Lloyd-Max levels next to 0."""
    return bounds.lloyd_max_levels(bits)[0] * (2.0 * np.arange(2 ** (bits - 1)) + 1.0)


def _distortion(levels) -> float:
    """E(x - Q(x))^2 of a normal number that goes to the nearest level, cell by cell by Gauss-Legendre quadrature."""
    at, weight = np.polynomial.legendre.leggauss(60)
    ends, total = np.concatenate([[0.0], 0.5 * (levels[1:] + levels[:-1]), [levels[-1] + 1.0]]), 0.0
    cells = [*zip(ends[:-1], ends[1:], levels, strict=True)]
    cells += [(ends[-1] + t, ends[-1] + t + 1.0, levels[-1]) for t in range(12)]  # the tail, to beyond 12
    for low, high, level in cells:
        x = 0.5 * (low + high) + 0.5 * (high - low) * at
        total += (high - low) * float(weight @ ((x - level) ** 2 * np.exp(-0.5 * x * x)))
    return total / math.sqrt(2.0 * math.pi)  # half the length, and both signs


@claim(
    "lloyd-max.distortion",
    title="The least error of b bits for a normal number",
    statement="E(x - Q(x))^2 = 1 - E Q(x)^2 for the Lloyd-Max levels, and any other symmetric levels have more.",
    latex=r"D_b=\mathbb E(x-Q(x))^2=1-2\sum_i p_i y_i^2",
    source="Max, Quantizing for minimum distortion, IRE Trans. Inf. Theory 6, 1960",
    bibtex="max1960quantizing",
    kind="identity",
    proof="Each level is the mean of its cell, so E x Q(x) = E Q(x)^2.",
    bound=bounds.lloyd_max_distortion,
    subject=bounds.lloyd_max_levels,
    mutants={
        "equally likely levels": _equally_likely,
        "equally spaced levels": _equally_spaced,
        "one percent too large": lambda bits: 1.01 * bounds.lloyd_max_levels(bits),
    },
)
def _(context):
    for bits in (1, 2, 3, 4, 8):
        levels = context.subject(bits)
        label = f"error by quadrature, {bits} bits"
        yield identity(label, _distortion(levels), bounds.lloyd_max_distortion(bits), 1e-9)
        for i in {0, len(levels) - 1}:
            for factor in (0.99, 1.01):
                other = np.array(levels)
                other[i] *= factor
                label = f"error with level {i + 1} times {factor}, {bits} bits"
                yield lower(label, _distortion(other), bounds.lloyd_max_distortion(bits))


def _long_errors(context, c, samples: int, *path) -> np.ndarray:
    """Relative squared errors on long Gaussian vectors, which stay Gaussian in any rotation."""
    found, d = np.empty(samples), 2**13
    context.used.add("compressor")
    for i in range(samples):
        stream = context.stream(*path, i)
        v = np.random.default_rng(stream).standard_normal(d)
        found[i] = np.sum((compress(c, v, stream, wire_dtype=np.float64) - v) ** 2) / (v @ v)
    return found


@claim(
    "rotation.eden.limit",
    title="EDEN with b bits for long vectors",
    statement="Lloyd-Max levels after a uniform rotation have the variance D/(1 - D) with the unbiased scale, and the"
    " error D with the best one: 0.571, 0.133, 0.0358 and 0.0096 against 0.363, 0.117, 0.0345 and 0.0095.",
    latex=r"\frac{\mathbb E\|Q(v)-v\|^2}{\|v\|^2}\to\frac{D_b}{1-D_b}",
    source=f"derived; stated in {EDEN}",
    bibtex="vargaftik2022eden",
    kind="equality",
    tight_where="everywhere",
    proof="The error is ||q||^2/<u, q>^2 - 1, and per coordinate E q^2 = E u q = 1 - D.",
    bound=bounds.eden_variance,
    subject=eden,
    mutants={
        "the best scale": lambda bits, unbiased: eden(bits, False),
        "always the unbiased scale": lambda bits, unbiased: eden(bits),
        "the scale 1": lambda bits, unbiased: Rotated(Sign()),
        "random rounding to as many levels of the norm": lambda bits, unbiased: QSGD(2 ** (bits - 1)),
    },
)
def _(context):
    samples = context.samples(80, 30)
    for bits in (1, 2, 3, 4):
        for unbiased in (True, False):
            error = _long_errors(context, context.subject(bits, unbiased), samples, bits, int(unbiased))
            predicted = bounds.eden_variance(bits) if unbiased else bounds.lloyd_max_distortion(bits)
            label = f"error, {bits} bits, {'unbiased' if unbiased else 'best'} scale, d=8192"
            yield equality(label, error, predicted)


# --- Gaussian projections, and TurboQuant -----------------------------------------------------------------------------


def _signs_back(x, G, factor: float) -> np.ndarray:
    """The signs of the projections, projected back: row by row, for vectors x and matrices G."""
    signs = np.where(np.einsum("nij,nj->ni", G, x) < 0.0, -1.0, 1.0)
    return factor * np.linalg.norm(x, axis=1, keepdims=True) * np.einsum("ni,nij->nj", signs, G)


def _gaussian(x, rng) -> np.ndarray:
    return rng.standard_normal((*x.shape, x.shape[1]))


def qjl(x, rng) -> np.ndarray:
    """Signs of as many Gaussian projections as coordinates, as unbiased estimates of the rows of x."""
    return _signs_back(x, _gaussian(x, rng), math.sqrt(math.pi / 2.0) / x.shape[1])


def _orthogonal(x, rng) -> np.ndarray:
    R, _ = np.linalg.qr(_gaussian(x, rng))
    return _signs_back(x, R, math.sqrt(math.pi / 2.0 / x.shape[1]))


def _normalized(x, rng) -> np.ndarray:
    G = _gaussian(x, rng)
    return _signs_back(x, G / np.linalg.norm(G, axis=2, keepdims=True), math.sqrt(math.pi / 2.0 / x.shape[1]))


def _without_factor(x, rng) -> np.ndarray:
    return qjl(x, rng) / math.sqrt(math.pi / 2.0)


@claim(
    "qjl.variance",
    title="Signs of Gaussian projections",
    statement="One bit of each of d Gaussian projections, scaled by sqrt(pi/2) ||v||/d, is unbiased with the variance"
    " (pi/2 - 1/d) ||v||^2.",
    latex=r"\mathbb E\|Q(v)-v\|^2=\Big(\tfrac\pi2-\tfrac1d\Big)\|v\|^2",
    source="derived; the operator is that of Zandieh, Daliri, Han, QJL, 2024",
    bibtex="zandieh2024qjl",
    kind="equality",
    tight_where="everywhere",
    proof="A row g has E||g||^2 = d, and E g sign<g, v> = sqrt(2/pi) v/||v||.",
    bound=bounds.qjl_variance,
    subject=qjl,
    mutants={
        "orthogonal projections": _orthogonal,
        "rows of equal length": _normalized,
        "the factor sqrt(pi/2) forgotten": _without_factor,
    },
)
def _(context):
    samples = context.samples(16_000, 6_000)
    for d in (2, 5, 20):
        v, rng = context.normal(d, d) ** 3, np.random.default_rng(context.stream(d))
        error = context.subject(np.tile(v, (samples + samples % 2, 1)), rng) - v
        squares, cross = np.sum(error**2, axis=1), np.sum(error[::2] * error[1::2], axis=1)
        found = squares / (v @ v)
        yield equality(f"variance, Gaussian cubed, d={d}", found, bounds.qjl_variance(d))
        found = cross / (v @ v)
        yield equality(f"||E Q(v) - v||^2/||v||^2, d={d}", found, 0.0)


def _rounded(x, bits: int) -> np.ndarray:
    """The Lloyd-Max levels of normal numbers."""
    if bits == 0:
        return np.zeros_like(x)
    levels = bounds.lloyd_max_levels(bits)
    return np.copysign(levels[np.searchsorted(0.5 * (levels[1:] + levels[:-1]), np.abs(x))], x)


def turboquant_prod(x, bits: int, rng) -> np.ndarray:
    """All bits but one for the Lloyd-Max levels of normal numbers, and one for the signs of what they leave out."""
    first = _rounded(x, bits - 1)
    return first + qjl(x - first, rng)


def _mse_alone(x, bits: int, rng) -> np.ndarray:
    return _rounded(x, bits)


def _prod_with_rotation(x, bits: int, rng) -> np.ndarray:
    first = _rounded(x, bits - 1)
    return first + _orthogonal(x - first, rng)


@claim(
    "rotation.turboquant",
    title="Variance of TurboQuant's unbiased quantizer",
    statement="On d normal coordinates b - 1 bits of Lloyd-Max levels, and one bit of Gaussian projections of what they"
    " leave out, have the variance (pi/2 - 1/d) D_{b-1} E||v||^2.",
    latex=r"\mathbb E\|Q(v)-v\|^2=\Big(\tfrac\pi2-\tfrac1d\Big)D_{b-1}\,\mathbb E\|v\|^2",
    source=f"derived; the operator is that of {TURBOQUANT}",
    bibtex="zandieh2025turboquant",
    kind="equality",
    tight_where="everywhere",
    proof="Given the first stage the second one has the variance of qjl.variance at what is left out.",
    bound=bounds.turboquant_prod_variance,
    subject=turboquant_prod,
    mutants={
        "all bits in the levels": _mse_alone,
        "orthogonal projections": _prod_with_rotation,
        "one bit more": lambda x, bits, rng: turboquant_prod(x, bits + 1, rng),
    },
)
def _(context):
    samples, d = context.samples(40_000, 16_000), 5
    for bits in (1, 2, 3, 4):
        rng = np.random.default_rng(context.stream(bits))
        x = rng.standard_normal((samples, d))
        found = np.sum((context.subject(x, bits, rng) - x) ** 2, axis=1) / d
        predicted = bounds.turboquant_prod_variance(bits, d)
        yield equality(f"variance, {bits} bits, d={d}", found, predicted)


@claim(
    "rotation.eden.turboquant",
    title="EDEN with b bits against TurboQuant with b + 1",
    statement="For long vectors the unbiased EDEN with b >= 2 bits has less variance than the unbiased TurboQuant with"
    " b + 1: their ratio is 2/(pi (1 - D_b)), and 1 for b = 1. With 2 bits against 3 it is 0.133 against 0.185.",
    latex=r"\frac{D_b/(1-D_b)}{(\pi/2)\,D_b}=\frac{2}{\pi(1-D_b)}\le1,\quad D_b\le D_1=1-\tfrac2\pi",
    source="derived; arXiv 2604.18555 disputes the comparison of arXiv 2504.19874",
    bibtex="zandieh2025turboquant",
    kind="upper",
    tight_where="b = 1",
    proof="The two closed forms; D_b falls with b.",
    bound=bounds.turboquant_prod_variance,
    subject=eden,
    mutants={
        "one bit fewer": lambda bits: eden(max(1, bits - 1)),
        "random rounding to as many levels of the norm": lambda bits: QSGD(2 ** (bits - 1)),
        "the scale 1": lambda bits: Rotated(Sign()),
    },
    see=("rotation.eden.limit", "rotation.turboquant"),
)
def _(context):
    samples = context.samples(80, 30)
    for bits in (2, 3):
        error = _long_errors(context, context.subject(bits), samples, bits)
        bound = bounds.turboquant_prod_variance(bits + 1)
        yield upper(f"variance of {bits} bits against {bits + 1}, d=8192", error, bound)
        yield equality(f"variance of {bits} bits, d=8192", error, bounds.eden_variance(bits))
    for bits in range(1, 9):
        ours, bound = float(bounds.eden_variance(bits)), bounds.turboquant_prod_variance(bits + 1)
        missing = math.pi / 2.0 * (1.0 - float(bounds.lloyd_max_distortion(bits)))
        yield identity(f"EDEN with {bits} bits times (pi/2)(1 - D), closed form", missing * ours, bound)
        yield upper(f"EDEN with {bits} bits against {bits + 1}, closed form", ours, bound)


# --- bits -------------------------------------------------------------------------------------------------------------


def _sent(v, bits: int, uniform: bool) -> int:
    """The payload of an encoded message."""
    return open_frame(encode(eden(bits, uniform=uniform), v, 0)).payload_bits


def _padding_left_out(v, bits: int, uniform: bool) -> int:
    padding = 0 if uniform else (1 << (v.size - 1).bit_length()) - v.size
    return _sent(v, bits, uniform) - bits * padding


@claim(
    "rotation.bits",
    title="Bits of a rotated message",
    statement="b bits a coordinate take 96 + b D bits, with D = d for a uniform rotation and the next power of two for"
    " Hadamard's matrix: nearly twice as many as b d where d is just above a power of two.",
    latex=r"|\mathrm{code}(Q(v))|=96+b\,2^{\lceil\log_2 d\rceil}",
    source="derived",
    bibtex="vargaftik2021drive",
    kind="identity",
    tight_where="everywhere",
    proof="The key of the rotation, one float32, and the levels of all rotated coordinates, the padding among them.",
    bound=bounds.rotated_bits,
    subject=_sent,
    mutants={
        "padding left out": _padding_left_out,
        "the key left out": lambda *given: _sent(*given) - 64,
        "the scale left out": lambda *given: _sent(*given) - 32,
    },
)
def _(context):
    context.used.add("compressor")
    for d, bits, uniform in ((64, 1, False), (65, 1, False), (100, 3, False), (1, 2, False), (65, 2, True)):
        found = context.subject(context.normal(d), bits, uniform)
        label = f"bits, d={d}, b={bits}{', uniform' if uniform else ''}"
        yield identity(label, found, bounds.rotated_bits(d, bits, uniform), tolerance=0.0)
