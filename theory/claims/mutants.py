"""Mutants: deliberately wrong compressors, rules and methods, which claims must refute.

The compressors and feedback rules include an extremal one.  Wrong random rounding to geometric levels, wrong signs and
count sketches, sparsifiers with the faults of published code and wrong compressors of matrices are functions of a
vector, for `theory.measure.moments`.

Methods on f_i(x) = x^2/2 are random matrices, so that their second moments are exact.  The state is z = (x, one memory
per worker); a step is z <- A z with a random A, determined by the workers' coins. Every method here lists its A with
their probabilities, ``s`` is the step size, and rows are written as in the pseudo-code: ``x`` is the row that returns
x, so ``x - s * g`` is the row that returns x - s g.  E z z' then moves by the mean of the Kronecker squares, and its
spectral radius determines whether the method is stable in mean square.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..bounds import atomo_probabilities
from ..compressors.base import (
    accumulate,
    capacity,
    fixed_bits,
    pack,
    quantize,
    restore,
    state_size,
    unpack,
    update_state,
)
from ..compressors.wrappers.forward import forwards
from ..core import kernel, require, setting
from ..core.random import uniform
from ..core.vectors import add_entry, entry
from ..methods.memory.error_feedback import ErrorFeedback
from ..wire.bits import read_float, write_float
from ..wire.frame import register_wire

Messages = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]  # of v: many at once, as `moments` takes them

# --- Compressors and feedback rules for claims -----------------------------------------------------------------------


@setting
class Scaling(NamedTuple):
    """The multiple C(v) = (1 - sqrt(1 - delta)) v: it contracts exactly by delta, always in the same direction.

    For error feedback this is the worst case: every bound on the memory that uses only delta is attained by it.
    With ``over`` it is (1 + sqrt(1 - delta)) v, with the same contraction: the memory stores what was sent in excess.
    """

    factor: float
    over: bool = False

    def domain(self):
        """Reject values outside the domain."""
        require(0 < self.factor <= 1, "factor", self.factor, "a contraction factor delta in (0, 1]")

    def quantize(c, state, v, stream, symbols):
        missing = math.sqrt(1.0 - c.factor)
        kept = 1.0 + missing if c.over else 1.0 - missing
        for j in range(symbols.value.size):
            symbols.value[j] = kept * entry(v, j)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, symbols.value.size, 0

    def delta(c, d: int) -> float:
        return c.factor


@setting
class Lopsided(NamedTuple):
    """C(v) = (1 + q) v where v > 0 and (1 - q) v where v < 0, for each coordinate: a contraction with 1 - q^2."""

    q: float

    def quantize(c, state, v, stream, symbols):
        for j in range(symbols.value.size):
            symbols.value[j] = (1.0 + c.q if entry(v, j) > 0.0 else 1.0 - c.q) * entry(v, j)
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, symbols.value.size, 0

    def delta(c, d: int) -> float:
        return 1.0 - c.q**2


@setting
class WrongQSGD(NamedTuple):
    """QSGD with s levels, in plain form, with a fault: "inverted", "nearest" or "down".

    Inverted: up with the probability of down.  Nearest: to the nearest level.  Down: never up.
    """

    s: int
    fault: int = 0
    norm: float = 2.0

    def quantize(c, state, v, stream, symbols):
        total, largest = 0.0, 0.0
        for j in range(v.size):
            total += v[j] * v[j]
            largest = max(largest, abs(v[j]))
        scale = math.sqrt(total) if c.norm == 2.0 else largest
        for j in range(v.size):
            u = c.s * abs(v[j]) / scale
            low = math.floor(u)
            up = u - low > uniform(stream, j)
            if c.fault == INVERTED:
                up = not up
            elif c.fault == NEAREST:
                up = u - low >= 0.5
            elif c.fault == DOWN:
                up = False
            symbols.value[j] = math.copysign(scale * (low + up) / c.s, v[j])
        symbols.count[0], symbols.count[1], symbols.count[2] = 0, v.size, 0


INVERTED, NEAREST, DOWN = 1, 2, 3


@forwards
@setting
class Forgetful(NamedTuple):
    """A compressor whose memory, in half of the steps, does not subtract what was sent.

    A memory subtracts with the weight -1; with two workers or more, x moves with other weights.
    """

    inner: NamedTuple

    def capacity(c, d):
        index, values, levels, scratch = capacity(c.inner, d)
        return index, values, levels + 1, scratch

    def quantize(c, state, v, stream, symbols):
        quantize(c.inner, state, v, stream, symbols)
        symbols.level[symbols.level.size - 1] = np.int32(stream & np.uint64(1))

    def accumulate(c, symbols, weight, out):
        if weight != -1.0 or symbols.level[symbols.level.size - 1] == 0:
            accumulate(c.inner, symbols, weight, out)


@setting
class LeakyFeedback(NamedTuple):
    """Error feedback that keeps only a fraction of the memory: none at 0.

    The true rule is kept = 1.
    """

    kept: float = 1.0

    load, error, memory = ErrorFeedback.load, ErrorFeedback.error, ErrorFeedback.memory  # type: ignore[misc]

    def store(self, run, p, message):
        """Store e = kept (p - Q(p))."""
        run.add(p, message, scale=-1.0)
        run.scale(p, self.kept)


@setting
class WrongFeedback(NamedTuple):
    """Error feedback with the factor gamma**inside of the gradient and ``outside`` of what was received.

    The true rule is inside = 1, outside = 1.
    """

    inside: float = 1.0
    outside: float = 1.0

    load, store, error = ErrorFeedback.load, ErrorFeedback.store, ErrorFeedback.error  # type: ignore[misc]

    def step_factors(self, run):
        """The wrong factors before and after compression."""
        return run.eta**self.inside, run.rates.constant(self.outside)


# --- dense values as they are ----------------------------------------------------------------------------------------


@capacity.register(Scaling, Lopsided, WrongQSGD)
def _(c, d):
    return 0, d, 0, 0


@accumulate.register(Scaling, Lopsided, WrongQSGD)
def _(c, symbols, weight, out):
    for j in range(symbols.count[1]):
        add_entry(out, j, weight * symbols.value[j])


@fixed_bits.register(Scaling, Lopsided, WrongQSGD)
def _(c, d, float_bits):
    return d * float_bits


@pack.register(Scaling, Lopsided, WrongQSGD)
def _(c, symbols, d, buffer, cursor):
    for j in range(d):
        cursor = write_float(buffer, cursor, symbols.value, j)
    return cursor


@unpack.register(Scaling, Lopsided, WrongQSGD)
def _(c, buffer, cursor, end, d, symbols):
    if cursor + 8 * symbols.value.itemsize * d > end:
        return -1
    for j in range(d):
        cursor = read_float(buffer, cursor, symbols.value, j)
    symbols.count[0], symbols.count[1], symbols.count[2] = 0, d, 0
    return cursor


# --- around another compressor ----------------------------------------------------------------------------------------


register_wire(252, Lopsided)  # so that they can run; they are not among the public compressors

register_wire(253, Scaling)

register_wire(254, WrongQSGD)

register_wire(255, Forgetful)


# --- Wrong random rounding to geometric levels -----------------------------------------------------------------------

LEVELS_INVERTED, LEVELS_NEAREST, LEVELS_DOWN, NO_ZERO, SHIFTED, SWAPPED = 1, 2, 3, 4, 5, 6


def WrongRounding(s: int, ratio: float = 0.5, norm: float = 2.0, fault: int = 0) -> Messages:
    """Random rounding to 0, p^s, ..., p, 1 times a norm, with a fault.

    Inverted: up with the probability of down.  Nearest: to the nearest level.  Down: never up.  No zero: values below
    the smallest level become that level.  Shifted: a level's neighbour is sent.  Swapped: the two smallest levels above
    zero are exchanged.
    """
    levels = np.append(0.0, ratio ** np.arange(s, -1.0, -1.0))

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        scale = np.linalg.norm(v, norm)
        r = np.minimum(np.abs(v) / scale, 1.0)
        index = np.clip(np.searchsorted(levels, r, side="right") - 1, 0, s)
        chance = (r - levels[index]) / (levels[index + 1] - levels[index])
        chance = {LEVELS_INVERTED: 1.0 - chance, LEVELS_NEAREST: chance >= 0.5, LEVELS_DOWN: 0.0 * chance}.get(
            fault, chance
        )
        index = index + (rng.random((samples, v.size)) < chance)
        if fault == NO_ZERO:
            index = np.maximum(index, 1)
        elif fault == SHIFTED:
            index = np.where(index > 0, np.minimum(index + 1, s + 1), 0)
        elif fault == SWAPPED:
            index = np.where((index == 1) | (index == 2), 3 - index, index)
        return np.copysign(scale * levels[index], v)

    return wrong


# --- Wrong signs and count sketches ----------------------------------------------------------------------------------

SIGNS_FORGOTTEN, COLLIDING_SIGNS, ROWS_SUMMED = 1, 2, 3


def WrongSign(norm: int = 1, factor: float = 1.0, dead: bool = False) -> Messages:
    """The signs times ``factor`` times the scale of norm 1 (or 2), and 0 for entries not above 0.5 times it if dead."""

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        scale = np.linalg.norm(v, norm) / v.size ** (1.0 / norm)
        sent = np.where(v >= 0.0, factor * scale, -factor * scale)
        return np.tile(np.where(np.abs(v) <= 0.5 * scale, 0.0, sent) if dead else sent, (samples, 1))

    return wrong


def WrongSketch(width: int, rows: int = 1, fault: int = 0) -> Messages:
    """A count sketch with a fault.

    1: without signs.  2: one sign per bucket instead of per coordinate.  3: the rows are summed instead of averaged.
    """

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        total, first = np.zeros((samples, v.size)), width * np.arange(samples)[:, None]
        for _ in range(rows):
            bucket = rng.integers(0, width, total.shape)
            sign = 2.0 * rng.integers(0, 2, total.shape) - 1.0
            sign = {SIGNS_FORGOTTEN: np.ones(total.shape), COLLIDING_SIGNS: 2.0 * (bucket % 2) - 1.0}.get(fault, sign)
            counters = np.bincount((first + bucket).ravel(), (sign * v).ravel(), width * samples)
            total += sign * counters[first + bucket]
        return total / (1 if fault == ROWS_SUMMED else rows)

    return wrong


# --- Sparsifiers with the faults of published code -------------------------------------------------------------------

REPLACED, CUT, INSIDE, UNDIVIDED, ADDED = 1, 2, 3, 4, 5


def WrongSparsifier(k: int, fault: int, unbiased: bool = True) -> Messages:
    """Return k coordinates, times d/k if ``unbiased``, with a fault.

    Replaced: drawn with replacement, duplicates are sent once.  Added: duplicates are added.  Cut: a block that does
    not wrap around.  Inside: a block that always fits without wrapping.  Undivided: each coordinate with probability
    k/d, sent unscaled.
    """

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        d = v.size
        if fault == UNDIVIDED:
            return (rng.random((samples, d)) < k / d) * v
        kept = np.zeros((samples, d))
        if fault == ADDED:
            np.add.at(kept, (np.arange(samples)[:, None], rng.integers(0, d, (samples, k))), 1.0)
        elif fault == REPLACED:
            np.put_along_axis(kept, rng.integers(0, d, (samples, k)), 1.0, axis=1)
        else:
            after = np.arange(d) - rng.integers(0, d if fault == CUT else d - k + 1, (samples, 1))
            kept[(after >= 0) & (after < k)] = 1.0
        return (d / k if unbiased else 1.0) * kept * v

    return wrong


# --- Wrong compressors of matrices -----------------------------------------------------------------------------------

CLIPPED, REDRAWN, UNDIVIDED_FACTORS = 1, 2, 3


def WrongAtomo(rows: int, columns: int, budget: float, fault: int) -> Messages:
    """Spectral ATOMO with a fault, each of which occurs in published code.

    Clipped: probabilities are clipped at 1, and the excess is not redistributed.  Redrawn: drawn again until the number
    of triplets is the budget.  Undivided: kept triplets are sent unscaled.
    """

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        left, s, right = np.linalg.svd(v.reshape(rows, columns), full_matrices=False)
        p = atomo_probabilities(s, budget) if fault == UNDIVIDED_FACTORS else np.minimum(1.0, budget * s / s.sum())
        sent = rng.random((samples, s.size)) < p
        while fault == REDRAWN and (again := sent.sum(axis=1) != int(budget)).any():
            sent[again] = rng.random((np.count_nonzero(again), s.size)) < p
        weights = s if fault == UNDIVIDED_FACTORS else np.divide(s, p, out=np.zeros_like(s), where=p > 0.0)
        return sent @ np.einsum("ir,r,rj->rij", left, weights, right).reshape(s.size, -1)

    return wrong


def WrongPowerSGD(rows: int, columns: int, rank: int, warm: bool = False) -> Messages:
    """PowerSGD, from a fresh start, that divides P by its largest entry in place of orthonormalizing its columns."""

    def wrong(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        X = v.reshape(rows, columns)
        P = X @ rng.standard_normal((samples, columns, rank))
        P /= np.abs(P).max(axis=(1, 2), keepdims=True)
        return (P @ (P.transpose(0, 2, 1) @ X)).reshape(samples, -1)

    return wrong


@kernel
def repeat(c: Any, v: np.ndarray, stream: Any, symbols: Any, out: np.ndarray, errors: np.ndarray) -> None:
    """Compress v repeatedly, each time with the updated state; ``errors[t] = ||C_t(v) - v||^2``."""
    state = np.zeros(state_size(c, v.size))
    for t in range(errors.size):
        quantize(c, state, v, stream, symbols)
        restore(c, symbols, out)
        update_state(c, v.size, state, symbols)
        errors[t] = 0.0
        for j in range(v.size):
            errors[t] += (out[j] - v[j]) ** 2


# --- Methods on f_i(x) = x^2/2 as random matrices --------------------------------------------------------------------

Steps = Iterable[tuple[float, np.ndarray]]  # probabilities and matrices


def moment_matrix(steps: Steps) -> np.ndarray:
    """The matrix that moves E z z', flattened: the mean of the Kronecker squares of (probability, A)."""
    return sum((chance * np.kron(step, step) for chance, step in steps), np.zeros(()))


def growth(steps: Steps) -> float:
    """The factor by which the second moments grow per step in the long run."""
    return float(np.abs(np.linalg.eigvals(moment_matrix(steps))).max())


def tosses(p: float, workers: int, shared: bool = False) -> Steps:
    """All outcomes of the workers' coins, 1 with probability p, and their probabilities."""
    if shared:
        yield 1.0 - p, np.zeros((workers, 1))
        yield p, np.ones((workers, 1))
        return
    for coins in itertools.product((0.0, 1.0), repeat=workers):
        sent = np.array(coins)[:, None]
        yield math.prod(np.where(sent, p, 1.0 - p).ravel()), sent


def state(workers: int) -> tuple[np.ndarray, np.ndarray]:
    """The row that returns x, and the rows that return the memories."""
    rows = np.eye(workers + 1)
    return rows[0], rows[1:]


def descent(s: float, omega: float, workers: int, *, shared: bool = False) -> Steps:
    """Descent x <- x - s mean Q(x); Q(v) is (1 + omega) v with probability 1/(1 + omega), else 0, here and below."""
    for chance, sent in tosses(1 / (1 + omega), workers, shared):
        yield chance, np.array([[1 - s * (1 + omega) * sent.mean()]])


def error_feedback(s: float, p: float, workers: int, *, shared: bool = False, kept: float = 1.0) -> Steps:
    """Let u_i = s x + e_i; x <- x - mean C(u_i); e_i <- kept (u_i - C(u_i)); C is Bernoulli(p)."""
    x, e = state(workers)
    u = s * x + e
    for chance, sent in tosses(p, workers, shared):
        yield chance, np.vstack([x - (sent * u).mean(axis=0), kept * (1 - sent) * u])


def ef21(s: float, p: float, workers: int, *, shared: bool = False, learnt: float = 1.0) -> Steps:
    """Move x <- x - s mean g_i; g_i <- g_i + learnt C(x - g_i); C is Bernoulli(p)."""
    x, g = state(workers)
    x = x - s * g.mean(axis=0)
    for chance, sent in tosses(p, workers, shared):
        yield chance, np.vstack([x, g + learnt * sent * (x - g)])


def diana(s: float, omega: float, workers: int, *, shared: bool = False, alpha: float | None = None) -> Steps:
    """Let q_i = Q(x - h_i); x <- x - s mean (h_i + q_i); h_i <- h_i + alpha q_i, alpha = 1/(1 + omega)."""
    x, h = state(workers)
    alpha = 1 / (1 + omega) if alpha is None else alpha
    for chance, sent in tosses(1 / (1 + omega), workers, shared):
        q = (1 + omega) * sent * (x - h)
        yield chance, np.vstack([x - s * (h + q).mean(axis=0), h + alpha * q])
