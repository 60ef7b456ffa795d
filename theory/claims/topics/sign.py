"""Claims about signs: their errors, and four ways in which sign descent fails."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors.codec import encode
from ...compressors.sign import ScaledSign
from ...compressors.wrappers.bucketed import Bucketed
from ...measure import exactly, mean_interval, moments
from ...wire.frame import open_frame
from ..base import claim
from ..checks import Measurement, equality, identity, lower, upper
from ..mutants.sign import WrongSign
from .qsgd import flat

KARIMIREDDY = "Karimireddy, Rebjock, Stich, Jaggi, Error feedback fixes SignSGD, ICML 2019"
TANG = "Tang et al., 1-bit Adam, ICML 2021"


def spike(d: int) -> np.ndarray:
    """The vector with one entry -3 and zeros elsewhere."""
    return np.where(np.arange(d) == d // 2, -3.0, 0.0)


def _error(c, v) -> float:
    found = moments(c, v, 2)
    return float(found.error[0] / found.squared_norm)


def _inputs(context):
    return (
        ("Gaussian", context.normal(1000)),
        ("Gaussian cubed", context.normal(1000) ** 3),
        ("equal magnitudes", flat(1000)),
        ("one spike", spike(1000)),
    )


@claim(
    "sign.error",
    title="Error of the scaled sign",
    statement="With the scale ||v||_1/d the error is (1 - phi^2) ||v||^2, phi = ||v||_1/(sqrt(d) ||v||_2).",
    latex=r"\Big\|\tfrac{\|v\|_1}{d}\operatorname{sign}v-v\Big\|^2=(1-\phi^2)\|v\|^2,\quad"
    r"\phi=\frac{\|v\|_1}{\sqrt d\,\|v\|_2}",
    source=f"{KARIMIREDDY}, Lemma 8",
    bibtex="karimireddy2019error",
    kind="identity",
    tight_where="everywhere",
    proof="||C(v)||^2 = <C(v), v> = ||v||_1^2/d.",
    bound=bounds.scaled_sign_error,
    subject=ScaledSign,
    mutants={
        "the scale ||v||_2/sqrt(d)": partial(ScaledSign, 2),
        "half the scale": partial(WrongSign, 1, 0.5),
        "small entries become 0": partial(WrongSign, 1, 1.0, True),
    },
)
def _(context):
    checks = []
    for name, v in _inputs(context):
        error = _error(context.subject(), v)
        checks.append(identity(f"error, {name}, d=1000", error, bounds.scaled_sign_error(v), tolerance=1e-9))
    return Measurement(*checks)


@claim(
    "sign.contraction",
    title="The scaled sign contracts by 1/d, and no more",
    statement="||C(v) - v||^2 <= (1 - 1/d) ||v||^2 for the signs times ||v||_1/d, with equality for one spike.",
    latex=r"\|C(v)-v\|^2\le(1-\tfrac1d)\|v\|^2",
    source=f"{KARIMIREDDY}, Lemma 8",
    bibtex="karimireddy2019error",
    kind="tight",
    tight_where="vectors with one non-zero",
    proof="||v||_1 >= ||v||_2, so phi^2 >= 1/d.",
    bound=bounds.scaled_sign_contraction,
    subject=ScaledSign,
    mutants={"the scale ||v||_2/sqrt(d)": partial(ScaledSign, 2), "half the scale": partial(WrongSign, 1, 0.5)},
)
def _(context):
    checks = []
    for d in (4, 100, 1000):
        predicted = 1.0 - bounds.scaled_sign_contraction(d)
        checks.append(identity(f"error, one spike, d={d}", _error(context.subject(), spike(d)), predicted, 1e-9))
    for name, v in _inputs(context):
        error = exactly(_error(context.subject(), v))
        checks.append(upper(f"error, {name}, d=1000", error, 1.0 - bounds.scaled_sign_contraction(1000)))
    return Measurement(*checks)


@claim(
    "sign.l2.error",
    title="Error of the sign with the l2 scale",
    statement="With the scale ||v||_2/sqrt(d) the error is 2 (1 - phi) ||v||^2, phi = ||v||_1/(sqrt(d) ||v||_2).",
    latex=r"\Big\|\tfrac{\|v\|_2}{\sqrt d}\operatorname{sign}v-v\Big\|^2=2(1-\phi)\|v\|^2",
    source="derived",
    bibtex="tang2021bit",
    kind="identity",
    tight_where="everywhere",
    proof="||C(v)|| = ||v|| and <C(v), v> = phi ||v||^2.",
    bound=bounds.l2_sign_error,
    subject=partial(ScaledSign, 2),
    mutants={
        "the scale ||v||_1/d": ScaledSign,
        "half the scale": partial(WrongSign, 2, 0.5),
        "small entries become 0": partial(WrongSign, 2, 1.0, True),
    },
)
def _(context):
    checks = []
    for name, v in _inputs(context):
        error = _error(context.subject(), v)
        checks.append(identity(f"error, {name}, d=1000", error, bounds.l2_sign_error(v), tolerance=1e-9))
    return Measurement(*checks)


@claim(
    "sign.l2.contraction",
    title="The sign with the l2 scale as a contraction",
    statement="The signs times ||v||_2/sqrt(d), the operator of 1-bit Adam, satisfy ||C(v) - v||^2 <= ||v||^2.",
    latex=r"\Big\|\tfrac{\|v\|_2}{\sqrt d}\operatorname{sign}v-v\Big\|^2\le\|v\|^2",
    source=f"our reading of {TANG}: what its assumption of a bounded error would mean for this operator alone",
    bibtex="tang2021bit",
    kind="upper",
    proof="False where phi < 1/2: a spike in 10,000 dimensions has the error 1.98 ||v||^2.",
    bound=bounds.l2_sign_error,
    subject=partial(ScaledSign, 2),
    text="reading",
    see=("sign.l2.error", "sign.contraction"),
)
def _(context):
    checks = []
    for d in (10_000, 100):
        checks.append(upper(f"error, one spike, d={d}", exactly(_error(context.subject(), spike(d))), 1.0))
    return Measurement(*checks)


# --- bits -------------------------------------------------------------------------------------------------------------


def _sent(v, bucket: int) -> int:
    """The payload of an encoded message."""
    return open_frame(encode(Bucketed(ScaledSign(), bucket), v, 0)).payload_bits


def _two_scales(v, bucket: int) -> int:
    return _sent(v, bucket) + 32 * math.ceil(v.size / bucket)


def _one_scale(v, bucket: int) -> int:
    return open_frame(encode(ScaledSign(), v, 0)).payload_bits


def _filled_up(v, bucket: int) -> int:
    return _sent(np.resize(v, bucket * math.ceil(v.size / bucket)), bucket)


@claim(
    "sign.bits",
    title="Bits of the scaled sign in buckets",
    statement="d coordinates in buckets of m take d + 32 ceil(d/m) bits, whatever they are: 96 for one bucket of 64.",
    latex=r"|\mathrm{code}(C(v))| = d+32\lceil d/m\rceil",
    source="derived; the NUQSGD paper (JMLR 22(114), 2021) counts 128 bits for a bucket of 64, with two scales",
    bibtex="ramezani2021nuqsgd",
    kind="identity",
    tight_where="everywhere",
    proof="A bit says which sign, and one float32 a bucket gives the size of all of them.",
    bound=partial(bounds.bucketed_bits, bits=1),
    subject=_sent,
    mutants={
        "64 bits of scales a bucket, as the paper counts": _two_scales,
        "one scale for all buckets": _one_scale,
        "the last bucket is filled up": _filled_up,
    },
)
def _(context):
    checks = []
    for name, v in (*_inputs(context), ("zeros", np.zeros(64)), ("Gaussian", context.normal(10_000))):
        for bucket in (64, 8192):
            bits = context.subject(v, bucket)
            label = f"bits, {name}, d={v.size}, m={bucket}"
            checks.append(identity(label, bits, bounds.bucketed_bits(v.size, bucket, 1), tolerance=0.0))
    return Measurement(*checks)


# --- descent along signs ----------------------------------------------------------------------------------------------
# A rule turns a stochastic (sub)gradient into a direction.  The claims state which points sign descent cannot reach; a
# mutant reaches them.


def sign_of(g):
    """The sign, that of 0 is +1."""
    return np.where(g < 0, -1.0, 1.0)


def full_precision(g):
    """The gradient itself."""
    return g


def numpy_sign(g):
    """The sign, that of 0 is 0."""
    return np.sign(g)


def _descend(direction, gradient, x, steps: int, step: float, value):
    """The least value on the way, and the last point; the step falls as 1/sqrt(t)."""
    x, best = np.array(x, float), value(x)
    for t in range(steps):
        x = x - step / math.sqrt(1.0 + t) * direction(gradient(x, t))
        best = min(best, value(x))
    return best, x


@claim(
    "sign.fails.line",
    title="One sign pattern, one line",
    statement="If all rows of a least-squares problem have positive entries (n = d, b = A x*), descent along signs of"
    " single rows' gradients from 0 stays on the line of the vector of ones, so f >= min_a f(a 1) > 0 = f(x*).",
    latex=r"x_t\in\operatorname{span}\{\mathbf 1\},\quad f(x_t)\ge\frac1{2n}"
    r"\Big(\|b\|^2-\frac{\langle b,A\mathbf 1\rangle^2}{\|A\mathbf 1\|^2}\Big)",
    source=f"lecture; {KARIMIREDDY}, Theorem I",
    bibtex="karimireddy2019error",
    kind="lower",
    proof="The gradient of row i is a positive or negative multiple of a_i, whose signs are all equal.",
    bound=bounds.sign_line_floor,
    subject=sign_of,
    mutants={"the gradient itself": full_precision},
)
def _(context):
    d = 6
    rng = np.random.default_rng(context.stream("problem"))
    A = np.eye(d) * 2.0 + 0.2 * rng.random((d, d)) + 0.1
    b = A @ rng.standard_normal(d)
    order = rng.integers(0, d, context.samples(8000, 4000))
    floor = bounds.sign_line_floor(A, b)

    def value(x):
        return float(np.sum((A @ x - b) ** 2)) / (2 * d)

    def gradient(x, t):
        return A[order[t]] * (A[order[t]] @ x - b[order[t]])

    x, best, spread = np.zeros(d), math.inf, 0.0
    for t in range(order.size):
        x = x - 0.1 / (1.0 + t / 500.0) * context.subject(gradient(x, t))
        best, spread = min(best, value(x)), max(spread, float(np.ptp(x)))
    return Measurement(
        lower("least f on the way", exactly(best), floor, trivial=0.0),
        identity("largest spread of the entries of x_t", spread, 0.0, tolerance=1e-9),
    )


@claim(
    "sign.fails.drift",
    title="Skewed noise makes signs climb",
    statement="For min x/4 with the stochastic gradient 4 (probability 1/4) or -1 (3/4), a step along the sign raises"
    " E f by eta/8.",
    latex=r"\mathbb{E}\,f(x_{t+1})=f(x_t)+\eta/8",
    source=f"{KARIMIREDDY}, Counterexample 1",
    bibtex="karimireddy2019error",
    kind="equality",
    tight_where="away from the ends of the interval [-1, 1]",
    proof="The mean of the sign is 1/4 - 3/4 = -1/2, and f has the slope 1/4.",
    subject=sign_of,
    mutants={
        "the gradient itself": full_precision,
        "the sign of the mean of 64 gradients": lambda g: sign_of(g.reshape(-1, 64).mean(axis=1)),
    },
)
def _(context):
    samples = 64 * context.samples(2000, 500)
    rng = np.random.default_rng(context.stream("gradients"))
    g = np.where(rng.random(samples) < 0.25, 4.0, -1.0)
    drift = mean_interval(-context.subject(g) / 4.0)  # of f, in units of eta
    return Measurement(equality("change of E f in a step / eta", drift, 0.125), samples=samples)


@claim(
    "sign.fails.kink",
    title="Signs of subgradients stay on a line",
    statement="For f(x) = e |x1 + x2| + |x1 - x2|, 0 < e < 1, descent along signs of subgradients (that of 0 is +1)"
    " from (1, 1) keeps x1 + x2, so f >= 2 e for ever, for every sequence of steps.",
    latex=r"x_1+x_2=\text{const},\quad f(x_t)\ge 2\varepsilon",
    source=f"{KARIMIREDDY}, Counterexample 2",
    bibtex="karimireddy2019error",
    kind="lower",
    proof="The subgradient has the signs of +-(1, -1), as e < 1.",
    subject=(sign_of, sign_of),
    mutants={
        "the subgradient itself": (full_precision, sign_of),
        "sign(0) = 0, as NumPy has it": (numpy_sign, numpy_sign),
    },
)
def _(context):
    direction, kink = context.subject
    checks = []
    for e in (0.1, 0.5):

        def value(x, e=e):
            return e * abs(x[0] + x[1]) + abs(x[0] - x[1])

        def gradient(x, t, e=e):
            return kink(x[0] + x[1]) * e * np.ones(2) + kink(x[0] - x[1]) * np.array([1.0, -1.0])

        best, _ = _descend(direction, gradient, (1.0, 1.0), 4000, 0.25, value)
        checks.append(lower(f"least f on the way, e={e}", exactly(best), 2.0 * e, trivial=0.0))
    return Measurement(*checks)


@claim(
    "sign.fails.smooth",
    title="Signs fail on a smooth problem too",
    statement="For f = <a1, x>^2 + <a2, x>^2 with a1,2 = +-(1, -1) + e (1, 1), descent along signs of gradients of one"
    " term from (1, 1) keeps x1 + x2, so f >= 8 e^2 while min f = 0.",
    latex=r"x_1+x_2=\text{const},\quad f(x_t)\ge 8\varepsilon^2",
    source=f"{KARIMIREDDY}, Counterexample 3",
    bibtex="karimireddy2019error",
    kind="lower",
    proof="The gradient of each term has the signs of +-(1, -1); for x = (1, 1) + c (1, -1), f = 8 c^2 + 8 e^2.",
    subject=(sign_of, False),
    mutants={"the gradient itself": (full_precision, False), "both terms in the batch": (sign_of, True)},
)
def _(context):
    direction, both = context.subject
    e, rng = 0.5, np.random.default_rng(context.stream("terms"))
    a = np.array([[1.0, -1.0], [-1.0, 1.0]]) + e
    term = rng.integers(0, 2, 4000)

    def value(x):
        return float(np.sum((a @ x) ** 2))

    def gradient(x, t):
        return 2.0 * a.T @ (a @ x) if both else 2.0 * a[term[t]] * (a[term[t]] @ x)

    best, _ = _descend(direction, gradient, (1.0, 1.0), term.size, 0.1, value)
    return Measurement(lower("least f on the way, e=0.5", exactly(best), 8.0 * e**2, trivial=0.0))
