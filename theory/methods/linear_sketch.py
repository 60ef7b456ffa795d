"""Error feedback through one linear sketch, as in the released code of contractive error feedback.

::

    for every worker:     p = eta g + (1 - beta) U S
                          send Delta = Q(p)
                          S = S + sketch(eta g - Delta)
    x = x - mean of Delta

The hash is drawn once, so S is the sketch of the true residual, the sum of all eta g - Delta: nothing is compressed
twice, and the only error of U S is collisions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compressors import CountSketch
from ..compressors.base import Symbols, accumulate, new_symbols, quantize
from ..core import require, setting
from ..core.bound_calls import CODING, at, operation
from ..core.random import derive
from .conef import check_error_compressor
from .feedback import check_beta
from .types import Message, Run, Vector


@setting
class LinearSketchFeedback(NamedTuple):
    """The memory is a count sketch S with one hash for the whole run, to which eta g - Delta is added.

    Parameters
    ----------
    sketch : CountSketch
        Its hash is drawn once, from its seed, whatever ``hash`` means for single messages: independent buckets for
        ``FRESH`` and ``FIXED``, equally full ones for ``BALANCED``.  Its rows are averaged.
    beta : float
        From 0 to 1: the share of the memory that is not fed back in every step.

    Notes
    -----
    As in RandomBlock_hook.py of the authors' code for "Contractive error feedback", arXiv 2312.08538.  A bucket into
    which n coordinates fall is stable, if all of them are sent in every step, if and only if (1 - beta) n < 2
    (:func:`theory.bounds.linear_sketch_factor`).

    Examples
    --------
    >>> LinearSketchFeedback(CountSketch(width=20), beta=0.9).beta
    0.9
    """

    sketch: CountSketch
    beta: float = 0.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(isinstance(self.sketch, CountSketch), "sketch", self.sketch, "a CountSketch", TypeError)
        require(not self.sketch.median, "sketch", self.sketch, "a sketch with median=False: the median is not linear")
        check_beta(self.beta)

    def load(self, run: Run) -> Vector:
        """Begin with p = (1 - beta) U S."""
        p = run.scratch()
        run.set(p, 0.0)
        self._estimate(run, p, 1.0 - self.beta)
        return p

    def store(self, run: Run, p: Vector, message: Message) -> None:
        """Store S = S + sketch(p - Q(p) - (1 - beta) U S), which is S + sketch(eta g - Q(p))."""
        run.add(p, message, scale=-1.0)
        self._estimate(run, p, self.beta - 1.0)
        run.call(Sketch(self._sketches(run), p))

    def error(self, run: Run) -> np.ndarray:
        """U S: the sketch's estimate of the error memory."""
        e = np.zeros((run.replicas, run.workers_here, run.d), run.dtype)
        self._estimate(run, e, 1.0)
        return e

    def _estimate(self, run: Run, p: Vector, weight: float) -> None:
        run.call(Estimate(self._sketches(run), p, weight))

    def _sketches(self, run: Run) -> Sketches:
        shape = (run.replicas, run.workers_here, self.sketch.rows * self.sketch.width)
        counters = run.array("sketch", shape, run.wire.dtype)
        key = np.array([derive(np.uint64(0), np.uint64(self.sketch.seed))], np.uint64)
        return run.once(
            "sketches",
            lambda: Sketches(self.sketch, counters, key, new_symbols(self.sketch, run.d, run.wire), np.empty(0)),
        )

    def memory_bytes(self, compressor: Any, d: int, wire_bits: int, own_bits: int) -> int:
        """The counters."""
        return self.sketch.rows * self.sketch.width * wire_bits // 8

    def check(self, compressor: Any, d: int) -> None:
        """Reject a sketch that is longer than the memory."""
        check_error_compressor("sketch", self.sketch, d)


class Sketches(NamedTuple):
    """Each worker's counters S, the key of the hash, and symbols to sketch with."""

    sketch: CountSketch
    counters: np.ndarray
    hash: np.ndarray
    symbols: Symbols
    state: np.ndarray


@operation(kind=CODING)
class Estimate(NamedTuple):
    """Add weight U S to P: the estimate of every coordinate from the worker's sketch."""

    s: Sketches
    P: np.ndarray
    weight: float

    def _row(pointer: Any, t: int, r: int, w: int) -> None:
        b = at(pointer)
        symbols, key, counters = b.s.symbols, b.s.hash[0], b.s.counters[r, w]
        symbols.index[0], symbols.index[1] = np.uint32(key), np.uint32(key >> np.uint64(32))
        for j in range(counters.size):
            symbols.value[j] = counters[j]
        accumulate(b.s.sketch, symbols, b.weight, b.P[r, w])


@operation(kind=CODING)
class Sketch(NamedTuple):
    """Add the sketch of P to S."""

    s: Sketches
    P: np.ndarray

    def _row(pointer: Any, t: int, r: int, w: int) -> None:
        b = at(pointer)
        symbols, counters = b.s.symbols, b.s.counters[r, w]
        quantize(b.s.sketch, b.s.state, b.P[r, w], b.s.hash[0], symbols)
        for j in range(counters.size):
            counters[j] += symbols.value[j]
