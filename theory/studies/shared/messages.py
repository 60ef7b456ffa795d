"""Costs of one message of a compressor: bits and their closed form, error, and time on one core."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...bounds import bucketed_bits, geometric_levels
from ...compressors import NUQSGD, Bucketed, EntropyCoded, Identity, ScaledSign, TwoScaleSign, compress, decode, encode
from ...core.random import key
from ...methods import ErrorFeedback
from ...wire.frame import open_frame
from ..nuqsgd import relative_variance
from .step_search import Way

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
    """The passes p = eta g + e and e = p - C(p) in NumPy, without allocation."""
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
