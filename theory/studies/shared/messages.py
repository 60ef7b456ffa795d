"""Costs of the messages of a compressor, and what spectral compression costs and saves.

The costs are bits and their closed form, error, and time on one core.  Spectral compression: steps and bits to one
accuracy, measured on a problem of matrices.  A lecture says "8 times less communication for 2.5 times more iterations",
and "Currently testing".  That is an empirical statement, not a theorem, with two readings: fewer bits per step, or
fewer bits until the accuracy is reached. Here both are measured, for every method at its own best constant step size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...bounds import bucketed_bits, geometric_levels
from ...cluster.run import STOPPED, run
from ...compressors import (
    NUQSGD,
    BestRank,
    Bucketed,
    EntropyCoded,
    Identity,
    PowerSGD,
    QuantizedSpectrum,
    ScaledSign,
    SpectralAtomo,
    TwoScaleSign,
    compress,
    decode,
    encode,
)
from ...core import require
from ...core.random import key
from ...methods import ErrorFeedback, NoFeedback, ParallelSGD
from ...methods.schedules import Constant
from ...problems import lipschitz, solve, value
from ...wire.frame import open_frame
from ..quantizers.nuqsgd import relative_variance
from .problems import Way

# --- Costs of one message of a compressor ----------------------------------------------------------------------------

TURNS = 15


class Message(NamedTuple):
    """One message for one vector.

    Attributes
    ----------
    input, method : str
    d : int
    form : float
        Bits of the payload in closed form; NaN if they depend on the vector.
    bits : int
        Bits of the payload of an encoded message.
    error : float
        E||C(v) - v||^2 / ||v||^2, exactly.
    encode, decode, memory : ndarray of float32, shape (turns,)
        Nanoseconds per coordinate on one core, turn by turn: vector to message, message to vector, and the passes of a
        memory.
    """

    input: str
    method: str
    d: int
    form: float
    bits: int
    error: float
    encode: np.ndarray
    decode: np.ndarray
    memory: np.ndarray


def payload_form(compressor, d: int) -> float:
    """The closed form of the payload of a packed message; NaN for a coded one."""
    if isinstance(compressor, Identity):
        return bucketed_bits(d, d, 32, floats=0)
    if isinstance(compressor, EntropyCoded):
        return math.nan
    inner = compressor.inner
    if isinstance(inner, (ScaledSign, TwoScaleSign)):
        return bucketed_bits(d, compressor.size, 1, floats=1 + isinstance(inner, TwoScaleSign))
    return bucketed_bits(d, compressor.size, math.ceil(math.log2(2 * inner.s + 3)))


def error_of(compressor, v) -> float:
    """E||C(v) - v||^2 / ||v||^2, without sampling."""
    if isinstance(compressor, EntropyCoded):
        return error_of(compressor.inner, v)
    if isinstance(compressor, Bucketed) and isinstance(compressor.inner, NUQSGD):
        levels = geometric_levels(compressor.inner.s, compressor.inner.ratio)
        return relative_variance(v, levels, 2.0, compressor.size)
    v = np.asarray(v, float)
    return float(np.sum((compress(compressor, v, 0) - v) ** 2) / (v @ v))


def seconds_in_turn(works: Sequence[Callable[[], Any]], turns: int = TURNS) -> np.ndarray:
    """CPU seconds of each on this thread, a row for each turn of all, so that other load affects all of them."""
    found = np.zeros((turns, len(works)))
    for taken in found:
        for k, work in enumerate(works):
            begin = time.thread_time()
            work()
            taken[k] = time.thread_time() - begin
    return found


def memory_passes(v) -> Callable[[], None]:
    """The passes p = gamma g + e and e = p - C(p) in NumPy, without allocation."""
    p, e, restored = np.empty_like(v), np.zeros_like(v), v.copy()

    def remember():
        np.multiply(v, v.dtype.type(0.1), out=p)
        np.add(p, e, out=p)
        np.subtract(p, restored, out=e)

    return remember


def measure_messages(name: str, v, ways: dict[str, Way], seed: int = 0, turns: int = TURNS) -> list[Message]:
    """The message of each method for the vector v, and its times on one core, the methods in turn."""
    v, rows = np.asarray(v, np.float32), []
    works: list[Callable[[], Any]] = []
    remember = memory_passes(v)
    stream = int(key(seed, "messages", name))
    for way in ways.values():
        c = way.compressor
        message = encode(c, v, stream)
        decode(message, dtype=np.float32)  # compiled before timing
        keep = remember if isinstance(way.feedback, ErrorFeedback) else lambda: None
        works += [partial(encode, c, v, stream), partial(decode, message, dtype=np.float32), keep]
        rows.append((v.size, payload_form(c, v.size), open_frame(message).payload_bits, error_of(c, v)))
    taken = (1e9 / v.size * seconds_in_turn(works, turns)).astype(np.float32).T.reshape(len(rows), 3, turns)
    return [Message(name, method, *row, *times) for method, row, times in zip(ways, rows, taken, strict=True)]


def round_seconds(row: Message, workers: int, bandwidth: float) -> np.ndarray:
    """Coding and exchange of a round, turn by turn.

    A worker encodes once, receives the others' messages and decodes all of them.

    Examples
    --------
    >>> once = np.ones(1)
    >>> row = Message("v", "m", d=1000, form=4e3, bits=4000, error=0.1, encode=once, decode=0.5 * once, memory=0 * once)
    >>> round_seconds(row, workers=2, bandwidth=1e6)  # 1000 (1 + 2 0.5) ns, and 4000 bits at a million a second
    array([0.004])
    """
    coding = row.d * 1e-9 * (row.encode + row.memory + workers * row.decode)
    return coding + (workers - 1) * row.bits / bandwidth


# --- What spectral compression costs and saves -----------------------------------------------------------------------

EVERY = 2  # steps between evaluations of f


class Trade(NamedTuple):
    """The cost of one method to reach the accuracy.

    Attributes
    ----------
    name : str
    step : float
        The step size with the fewest steps; NaN if it never reached the accuracy.
    steps : float
        Infinite if it never reached the accuracy.
    bits : float
        Payload of a worker until then.
    steps_ratio : float
        Its steps over those of the first method.
    bits_ratio : float
        The bits of the first method over its own, until then.
    message_ratio : float
        The same for the bits of a step.
    """

    name: str
    step: float
    steps: float
    bits: float
    steps_ratio: float
    bits_ratio: float
    message_ratio: float


def spectral_methods(rows: int, columns: int) -> dict[str, tuple[NamedTuple, NamedTuple]]:
    """Compressors of rows x columns matrices to compare, each with its feedback; full precision first.

    Examples
    --------
    >>> list(spectral_methods(64, 10))[:2]
    ['full precision', 'spectral ATOMO, budget 1']
    """
    q, plain, memory = min(rows, columns), NoFeedback(), ErrorFeedback()
    methods: dict[str, tuple[NamedTuple, NamedTuple]] = {"full precision": (Identity(), plain)}
    for budget in sorted({1, min(2, q), min(3, q)}):
        methods[f"spectral ATOMO, budget {budget}"] = (SpectralAtomo(rows, columns, budget), plain)
    methods["rounded singular values, s = 1"] = (QuantizedSpectrum(rows, columns, 1), plain)
    methods["rounded singular values, s = 2"] = (QuantizedSpectrum(rows, columns, 2), plain)
    methods["best rank 1, memory"] = (BestRank(rows, columns, 1), memory)
    methods["PowerSGD, rank 1, memory"] = (PowerSGD(rows, columns, 1, warm=False), memory)
    return methods


def spectral_trade(
    problem, *, accuracy=0.05, steps=2000, workers=4, batch=8, replicas=4, seed=0, methods=None, step_sizes=None
) -> list[Trade]:
    """Steps and bits that each method takes until f(x_t) - f* is at most ``accuracy`` times f(x_0) - f*.

    Parameters
    ----------
    problem : Softmax
        The problem, or another one with an attribute ``shape`` (rows, columns).
    accuracy : float
        In (0, 1).
    steps : int
        Maximum number of steps of a run.
    workers, batch : int
    replicas : int
        Runs over which steps and bits are averaged, with the seeds ``seed``, ``seed + 1``, ...
    seed : int
    methods : dict, optional
        Name to (compressor, feedback), the first being the baseline; by default `spectral_methods`.
    step_sizes : sequence of float, optional
        Candidates for the constant step size of each method, chosen for the fewest steps; by default 1/L times powers
        of two from 1 to 128: near 0, the curvature of f is much less than L.

    Returns
    -------
    list of Trade
        One for each method, in their order.

    Raises
    ------
    ValueError
        If ``accuracy`` is not between 0 and 1.
    """
    require(0.0 < accuracy < 1.0, "accuracy", accuracy, "a number between 0 and 1")
    methods = methods or spectral_methods(*problem.shape)
    step_sizes = step_sizes or [2.0**e / lipschitz(problem) for e in range(8)]
    best = solve(problem).fun
    goal = best + accuracy * (value(problem, np.zeros(problem.d)) - best)
    table: list = []
    for name, (compressor, feedback) in methods.items():
        found, limit = (math.inf, math.inf, math.nan), steps
        for size in step_sizes:
            method = ParallelSGD(compressor, step=Constant(size), feedback=feedback, batch=batch)
            taken = [_until(goal, method, problem, workers, limit, seed + r) for r in range(replicas)]
            count, bits = np.mean(taken, axis=0)
            found = min(found, (float(count), float(bits), size))
            limit = min(steps, 4 * found[0]) if math.isfinite(found[0]) else steps  # slower runs are irrelevant
        first = table[0] if table else Trade(name, found[2], found[0], found[1], 1.0, 1.0, 1.0)
        ratios = (found[0] / first.steps, first.bits / found[1]) if math.isfinite(found[0]) else (math.inf, 0.0)
        table.append(Trade(name, found[2], found[0], found[1], *ratios, math.prod(ratios) if ratios[1] else math.nan))
    return table


def _until(goal, method, problem, workers, steps, seed) -> tuple[float, float]:
    """Steps and bits until f is first at most the goal; infinite if never."""

    def stop(intermediate_result):
        if intermediate_result.fun <= goal:
            raise StopIteration

    result = run(method, problem, workers=workers, steps=int(steps), seed=seed, record_every=EVERY, callback=stop)
    if result.status != STOPPED:
        return math.inf, math.inf
    return float(result.nit), float(result.history["bits_up"][-1])
