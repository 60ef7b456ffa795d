"""Contractive error feedback (ConEF, iConEF), and error feedback through one linear sketch.

In contractive error feedback (ConEF) the memory itself is compressed, without bias::

    for every worker:     p = gamma g + (1 - beta) e
                          send Delta = Q(p)
                          e = C(beta e + p - Delta)
    x = x - mean of Delta

With beta = 0 this is ConEF; with beta > 0 the memory is fed back in part.

In improved contractive error feedback (iConEF) the error of the compressed memory is compressed again::

    u = p - Delta         the error of the message
    a = C(u)              first version;  second version: a = Q(u)
    b = C(u - a)
    e = a + b             both are stored

This is ConEF whose error compressor is ``Residual(C, C)`` or ``Residual(Q, C)``.  Given u, the mean of e is u, because
C is unbiased; its variance is theta times the error of a.

Error feedback through one linear sketch is the rule of the released code for contractive error feedback::

    for every worker:     p = gamma g + (1 - beta) U S
                          send Delta = Q(p)
                          S = S + sketch(gamma g - Delta)
    x = x - mean of Delta

The hash is drawn once, so S is the sketch of the true residual, the sum of all gamma g - Delta: nothing is compressed
twice, and the error of U S consists of collisions only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compressors import CountSketch
from ...compressors.base import Symbols, accumulate, new_symbols, opening, quantize, state_size
from ...compressors.closed_forms import check
from ...compressors.codec import check_parts
from ...compressors.wrappers.composed import Residual
from ...core import require, setting
from ...core.bound_calls import CODING, at, operation
from ...core.random import derive
from ..messages import payload_bytes
from ..types import Message, Run, Vector
from .error_feedback import check_beta

# --- Contractive error feedback (ConEF) ------------------------------------------------------------------------------


@setting
class ContractiveErrorFeedback(NamedTuple):
    """The memory e = C(p - Q(p)) is stored compressed, as a message of C.

    Parameters
    ----------
    error_compressor : compressor
        C; the theory requires an unbiased compressor, with the variance factor theta = ``omega(C, d)``; a biased one
        causes a warning.  Its random numbers are independent across workers.
    beta : float
        From 0 to 1: the fraction of the memory that is not fed back in a step, p = gamma g + (1 - beta) e.

    Notes
    -----
    "Contractive error feedback for gradient compression", arXiv 2312.08538.  With residual = 1 - delta(Q), the memory
    is bounded if kappa = (1 + theta) residual < 1 (:func:`theory.bounds.conef_factor`); with fresh random numbers,
    rand-k and a count sketch it grows exactly by kappa in every step.  A sketch with ``hash=FIXED`` multiplies the
    content of a bucket by the number of its coordinates in every step: use it through :class:`LinearSketchFeedback`
    instead.

    Examples
    --------
    >>> from theory import QSGD, Bucketed
    >>> ContractiveErrorFeedback(Bucketed(QSGD(s=15), 40)).beta
    0.0
    """

    error_compressor: NamedTuple
    beta: float = 0.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        good = quantize.implements(type(self.error_compressor))
        require(good, "error_compressor", self.error_compressor, "a compressor, such as Natural()", TypeError)
        check_beta(self.beta)

    def load(self, run: Run) -> Vector:
        """Start with p = (1 - beta) e."""
        p, e = run.scratch(), run.stored("error", self.error_compressor)
        run.set(p, e, scale=1.0 - self.beta)
        return p

    def store(self, run: Run, p: Vector, message: Message) -> None:
        """Store e = C(beta e + p - Q(p))."""
        e = run.stored("error", self.error_compressor)
        run.add(p, message, scale=-1.0)  # p = p - Q(p)
        if self.beta > 0.0:
            run.add(p, e, scale=self.beta)  # p = p + beta e
        run.set(e, p)  # e = C(p): what is stored is compressed

    def error(self, run: Run) -> np.ndarray:
        """The error memory, decoded."""
        decoded = np.zeros((run.replicas, run.workers_here, run.d), run.dtype)
        run.add(decoded, run.stored("error", self.error_compressor))
        return decoded

    def memory_bytes(self, compressor: Any, d: int, wire_bits: int, own_bits: int) -> int:
        """The longest message of C."""
        return payload_bytes(self.error_compressor, d, wire_bits)

    def check(self, compressor: Any, d: int) -> None:
        """Reject an error compressor whose messages cannot be decoded without the other workers."""
        check_error_compressor("error_compressor", self.error_compressor, d)


def check_error_compressor(name: str, compressor: Any, d: int) -> None:
    """Raise ``ValueError`` unless memories of length d can be stored in the compressor's messages."""
    check_parts(name, compressor)
    check(compressor, d)
    plain = state_size(compressor, d) == 0 and opening(compressor, d) == 0
    require(plain, name, compressor, "a compressor without a state of its own and without numbers that workers share")
    if isinstance(compressor, CountSketch):
        counters = compressor.rows * compressor.width
        require(counters <= d, f"{name}: rows * width", counters, f"at most the length of the memory, {d}")


# --- Improved contractive error feedback (iConEF) --------------------------------------------------------------------


@setting
class ImprovedContractiveErrorFeedback(NamedTuple):
    """The memory is stored in two parts: an approximation, and its compressed error.

    Parameters
    ----------
    error_compressor : compressor
        C, unbiased with variance factor theta.
    version : {1, 2}
        The first approximates by C, the second by the gradient's own compressor Q.

    Notes
    -----
    "Contractive error feedback for gradient compression", arXiv 2312.08538.  It is equivalent to ConEF with theta**2 in
    the first version, which is an improvement only if theta < 1, and with theta (1 - delta(Q)) in the second.

    Examples
    --------
    >>> from theory import Natural, TopK
    >>> ImprovedContractiveErrorFeedback(Natural()).as_conef(TopK(3))
    ContractiveErrorFeedback(error_compressor=Residual(first=TopK(k=3), second=Natural()), beta=0.0)
    """

    error_compressor: NamedTuple
    version: int = 2

    def domain(self) -> None:
        """Reject values outside the domain."""
        good = quantize.implements(type(self.error_compressor))
        require(good, "error_compressor", self.error_compressor, "a compressor, such as Natural()", TypeError)
        require(self.version in (1, 2), "version", self.version, "1 or 2")

    def as_conef(self, compressor: Any) -> ContractiveErrorFeedback:
        """The equivalent ConEF rule for a gradient compressor."""
        first = self.error_compressor if self.version == 1 else compressor
        return ContractiveErrorFeedback(Residual(first, self.error_compressor))

    def memory_bytes(self, compressor: Any, d: int, wire_bits: int, own_bits: int) -> int:
        """The longest message of both parts."""
        return payload_bytes(self.as_conef(compressor).error_compressor, d, wire_bits)

    def check(self, compressor: Any, d: int) -> None:
        """Reject compressors whose messages cannot be decoded without the other workers."""
        check_error_compressor("error_compressor", self.error_compressor, d)
        check_parts("compressor", self.as_conef(compressor).error_compressor)
        plain = state_size(compressor, d) == 0 and opening(compressor, d) == 0
        require(
            self.version == 1 or plain,
            "version",
            self.version,
            f"1 with {type(compressor).__name__}, which has a state or numbers that workers share",
        )


# --- Error feedback through one linear sketch ------------------------------------------------------------------------


@setting
class LinearSketchFeedback(NamedTuple):
    """The memory is a count sketch S with one hash for the whole run, to which gamma g - Delta is added.

    Parameters
    ----------
    sketch : CountSketch
        Its hash is drawn once, from its seed, independent of the meaning of ``hash`` for single messages: independent
        buckets for ``FRESH`` and ``FIXED``, equally full ones for ``BALANCED``.  Its rows are averaged.
    beta : float
        From 0 to 1: the fraction of the memory that is not fed back in a step.

    Notes
    -----
    The rule is that of RandomBlock_hook.py in the authors' code for "Contractive error feedback", arXiv 2312.08538. If
    all n coordinates of a bucket are sent in every step, it is stable if and only if (1 - beta) n < 2
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
        """Start with p = (1 - beta) U S."""
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
