"""Claims about signs: their errors and bits, and four ways in which sign descent fails."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ... import bounds
from ...compressors import majority_vote
from ...compressors.codec import encode
from ...compressors.sign import ScaledSign, Sign
from ...compressors.wrappers.bucketed import Bucketed
from ...wire.frame import open_frame
from ..base import claim
from ..checks import equality, identity, lower, upper
from ..laws import Input, equal_magnitudes, gaussian
from ..mutants.sign import WrongSign

KARIMIREDDY = "Karimireddy, Rebjock, Stich, Jaggi, Error feedback fixes SignSGD, ICML 2019"
TANG = "Tang et al., 1-bit Adam, ICML 2021"
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


def relative_error(context, v) -> float:
    """||C(v) - v||^2/||v||^2 of the compressor that the subject makes."""
    found = context.moments(context.subject(), v, 2)
    return float(found.error[0] / found.squared_norm)


def same(label, measured, predicted):
    """Equal, up to rounding in sums of a thousand numbers."""
    return identity(label, measured, predicted, tolerance=1e-9)


def errors(context, formula, inputs=INPUTS, rule=same):
    """Checks of the relative error at some vectors."""
    for vector in inputs:
        v = vector.make(context)
        yield rule(f"error, {vector.label}", relative_error(context, v), formula(v))


@claim(
    "sign.error",
    title="Error of the scaled sign",
    statement="With the scale ||v||_1/d the error is (1 - phi^2) ||v||^2, phi = ||v||_1/(sqrt(d) ||v||_2).",
    latex=r"\Big\|\tfrac{\|v\|_1}{d}\operatorname{sign}v-v\Big\|^2=(1-\phi^2)\|v\|^2,\quad"
    r"\phi=\frac{\|v\|_1}{\sqrt d\,\|v\|_2}",
    bibtex="karimireddy2019error",
    tight_where="everywhere",
    proof="||C(v)||^2 = <C(v), v> = ||v||_1^2/d.",
    bound=bounds.scaled_sign_error,
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
    title="The scaled sign contracts by 1/d, and no more",
    statement="||C(v) - v||^2 <= (1 - 1/d) ||v||^2 for the signs times ||v||_1/d, with equality for one spike.",
    latex=r"\|C(v)-v\|^2\le(1-\tfrac1d)\|v\|^2",
    bibtex="karimireddy2019error",
    tight_where="vectors with one non-zero",
    proof="||v||_1 >= ||v||_2, so phi^2 >= 1/d.",
    bound=bounds.scaled_sign_contraction,
    subject=ScaledSign,
    mutants={"the scale ||v||_2/sqrt(d)": L2, "half the scale": partial(WrongSign, 1, 0.5)},
)
def _(context):
    spikes = [Input(f"one spike, d={d}", lambda context, d=d: spike(d)) for d in (4, 100, 1000)]
    yield from errors(context, lambda v: 1.0 - bounds.scaled_sign_contraction(v.size), spikes)
    yield from errors(context, lambda v: 1.0 - bounds.scaled_sign_contraction(v.size), rule=upper)


@claim(
    "sign.l2.error",
    title="Error of the sign with the l2 scale",
    statement="With the scale ||v||_2/sqrt(d) the error is 2 (1 - phi) ||v||^2, phi = ||v||_1/(sqrt(d) ||v||_2).",
    latex=r"\Big\|\tfrac{\|v\|_2}{\sqrt d}\operatorname{sign}v-v\Big\|^2=2(1-\phi)\|v\|^2",
    source="derived",
    bibtex="tang2021bit",
    tight_where="everywhere",
    proof="||C(v)|| = ||v|| and <C(v), v> = phi ||v||^2.",
    bound=bounds.l2_sign_error,
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
    title="The sign with the l2 scale as a contraction",
    statement="The signs times ||v||_2/sqrt(d), the operator of 1-bit Adam, satisfy ||C(v) - v||^2 <= ||v||^2.",
    latex=r"\Big\|\tfrac{\|v\|_2}{\sqrt d}\operatorname{sign}v-v\Big\|^2\le\|v\|^2",
    source=f"our reading of {TANG}: what its assumption of a bounded error would mean for this operator alone",
    bibtex="tang2021bit",
    kind="upper",
    proof="False where phi < 1/2: a spike in 10,000 dimensions has the error 1.98 ||v||^2.",
    bound=bounds.l2_sign_error,
    subject=L2,
    text="reading",
    see=("sign.l2.error", "sign.contraction"),
)
def _(context):
    for d in (10_000, 100):
        yield upper(f"error, one spike, d={d}", relative_error(context, spike(d)), 1.0)


@claim(
    "sign.density.gaussian",
    statement="For a long Gaussian vector phi = ||v||_1/(sqrt(d) ||v||_2) tends to sqrt(2/pi), so the scaled sign keeps"
    " 2/pi = 0.637 of the squared norm.",
    latex=r"\phi(v)\to\sqrt{2/\pi}",
    tight_where="as d grows",
    bound=bounds.sign_density_gaussian,
    subject=ScaledSign,
    mutants={"the scale ||v||_2/sqrt(d)": L2, "small entries become 0": partial(WrongSign, 1, 1.0, True)},
)
def _(context):
    rng = np.random.default_rng(context.stream())
    kept = [1.0 - relative_error(context, rng.standard_normal(10_000)) for _ in range(context.samples(400, 100))]
    yield equality("sqrt(share kept), d=10000", np.sqrt(kept), bounds.sign_density_gaussian(), tolerance=1e-4)
    yield "the tolerance of 1e-4 is for d = 10000 instead of infinity: E phi is about 1/(4 d) above the limit"


# --- bits -------------------------------------------------------------------------------------------------------------


def sent(v, bucket: int) -> int:
    """The payload of an encoded message."""
    return open_frame(encode(Bucketed(ScaledSign(), bucket), v, 0)).payload_bits


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
    subject=sent,
    mutants={
        "64 bits of scales a bucket, as the paper counts": lambda v, m: sent(v, m) + 32 * math.ceil(v.size / m),
        "one scale for all buckets": lambda v, m: sent(v, v.size),
        "the last bucket is filled up": lambda v, m: sent(np.resize(v, m * math.ceil(v.size / m)), m),
    },
    measured_by="the package's run",
)
def _(context):
    zeros = Input("zeros, d=64", lambda context: np.zeros(64))
    for vector in (*INPUTS, zeros, gaussian(10_000)):
        v = vector.make(context)
        for bucket in (64, 8192):
            bits = context.subject(v, bucket)
            predicted = bounds.bucketed_bits(v.size, bucket, 1)
            yield identity(f"bits, {vector.label}, m={bucket}", bits, predicted, tolerance=0.0)


def vote(vectors) -> int:
    """The payloads of one majority vote, up and down."""
    voted = majority_vote(vectors)
    up = sum(open_frame(encode(Sign(), v, 0)).payload_bits for v in vectors)
    return up + len(vectors) * open_frame(encode(Sign(), voted, 0)).payload_bits


@claim(
    "sign.majority-bits",
    statement="A majority vote takes 2 d bits for each worker, d up and d down, whatever the number of workers.",
    latex=r"2\,d\,N",
    bound=bounds.majority_vote_bits,
    subject=vote,
    mutants={
        "only up": lambda vectors: vote(vectors) // 2,
        "down once": lambda vectors: vote(vectors) - (len(vectors) - 1) * len(vectors[0]),
    },
    measured_by="the package's run",
)
def _(context):
    for workers, d in ((2, 70), (5, 1000)):
        bits = context.subject(context.normal((workers, d)))
        yield identity(f"bits, {workers} workers, d={d}", bits, bounds.majority_vote_bits(d, workers), tolerance=0.0)


# --- descent along signs ----------------------------------------------------------------------------------------------
# A rule turns a stochastic (sub)gradient into a direction.  The claims state which points sign descent cannot reach; a
# mutant reaches them.


def sign_of(g):
    """The sign, that of 0 is +1."""
    return np.where(g < 0, -1.0, 1.0)


def full_precision(g):
    """The gradient itself."""
    return g


def descend(direction, gradient, x, steps, value):
    """The least value on the way, and the largest spread of the entries of x."""
    x, best, spread = np.array(x, float), value(x), 0.0
    for t, step in enumerate(steps):
        x = x - step * direction(gradient(x, t))
        best, spread = min(best, value(x)), max(spread, float(np.ptp(x)))
    return best, spread


def falling(step: float, steps: int = 4000):
    """Steps that fall as 1/sqrt(t)."""
    return step / np.sqrt(1.0 + np.arange(steps))


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
    measured_by="a loop of its own",
)
def _(context):
    d, rng = 6, np.random.default_rng(context.stream("problem"))
    A = np.eye(d) * 2.0 + 0.2 * rng.random((d, d)) + 0.1
    b = A @ rng.standard_normal(d)
    order = rng.integers(0, d, context.samples(8000, 4000))
    best, spread = descend(
        context.subject,
        lambda x, t: A[order[t]] * (A[order[t]] @ x - b[order[t]]),
        np.zeros(d),
        0.1 / (1.0 + np.arange(order.size) / 500.0),
        lambda x: float(np.sum((A @ x - b) ** 2)) / (2 * d),
    )
    yield lower("least f on the way", best, bounds.sign_line_floor(A, b), trivial=0.0)
    yield identity("largest spread of the entries of x_t", spread, 0.0, tolerance=1e-9)


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
    drawn = np.random.default_rng(context.stream("gradients")).random(64 * context.samples(2000, 500))
    yield equality("change of E f in a step / eta", -context.subject(np.where(drawn < 0.25, 4.0, -1.0)) / 4.0, 0.125)


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
        "sign(0) = 0, as NumPy has it": (np.sign, np.sign),
    },
    measured_by="a loop of its own",
)
def _(context):
    direction, kink = context.subject
    plus, minus = np.array([1.0, 1.0]), np.array([1.0, -1.0])
    for e in (0.1, 0.5):
        best, _ = descend(
            direction,
            lambda x, t, e=e: kink(plus @ x) * e * plus + kink(minus @ x) * minus,
            (1.0, 1.0),
            falling(0.25),
            lambda x, e=e: e * abs(x[0] + x[1]) + abs(x[0] - x[1]),
        )
        yield lower(f"least f on the way, e={e}", best, 2.0 * e, trivial=0.0)


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
    measured_by="a loop of its own",
)
def _(context):
    direction, both = context.subject
    e = 0.5
    a = np.array([[1.0, -1.0], [-1.0, 1.0]]) + e
    term = np.random.default_rng(context.stream("terms")).integers(0, 2, 4000)

    def gradient(x, t):
        rows = a if both else a[[term[t]]]
        return 2.0 * rows.T @ (rows @ x)

    best, _ = descend(direction, gradient, (1.0, 1.0), falling(0.1), lambda x: float(np.sum((a @ x) ** 2)))
    yield lower("least f on the way, e=0.5", best, 8.0 * e**2, trivial=0.0)
