"""Error feedback through one linear sketch: what the released code of contractive error feedback runs.

::

    for every worker:     p = eta g + (1 - beta) U S
                          send Delta = Q(p)
                          S = S + sketch(eta g - Delta)
    x = x - mean of Delta

The hash is drawn once and stays, so S is the sketch of the true residual, the sum of all eta g - Delta: nothing is
compressed twice, and U S is wrong by collisions alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compressors import CountSketch
from ..compressors.base import Symbols, accumulate, new_symbols, quantize
from ..dispatch import kernel
from ..random import derive
from ..settings import require, setting
from .feedback import bring_back, check_beta, check_feedback, keep, new_store, register_memory, store_bytes, stored
from .held import check_error_compressor

__all__ = ["LinearSketchFeedback"]


@setting
class LinearSketchFeedback(NamedTuple):
    """The memory is a count sketch S with one hash for the whole run, to which eta g - Delta is added.

    Parameters
    ----------
    sketch : CountSketch
        Its hash is drawn once, from its seed, whatever ``hash`` says of single messages: independent buckets for
        ``FRESH`` and ``FIXED``, equally full ones for ``BALANCED``.  Its rows are averaged.
    beta : float
        From 0 to 1: the share of the memory that is held back in every step.

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

    def domain(self):
        """Refuse values outside the domain."""
        require(isinstance(self.sketch, CountSketch), "sketch", self.sketch, "a CountSketch", TypeError)
        require(not self.sketch.median, "sketch", self.sketch, "a sketch with median=False: the median is not linear")
        check_beta(self.beta)


class Counters(NamedTuple):
    """The counters of each worker's sketch; the key of the hash, alone in an array; and symbols to sketch with.

    As a number the key would come back from compiled code as a Python int, whose type there depends on its size.
    """

    value: np.ndarray
    hash: np.ndarray
    symbols: Symbols


register_memory(LinearSketchFeedback)


@kernel
def _add_estimate(sketch, store, w, weight, out):
    """Add weight * U S, what the sketch says about every coordinate, to out."""
    symbols, key = store.symbols, store.hash[0]
    symbols.index[0], symbols.index[1] = np.uint32(key), np.uint32(key >> np.uint64(32))
    for b in range(store.value.shape[1]):
        symbols.value[b] = store.value[w, b]
    accumulate(sketch, symbols, weight, out)


@new_store.register(LinearSketchFeedback)
def _(feedback, compressor, p, workers, room, wire):
    sketch, key = feedback.sketch, np.empty(1, np.uint64)
    key[0] = derive(np.uint64(0), np.uint64(sketch.seed))
    value = np.zeros((workers, sketch.rows * sketch.width), wire.dtype)
    return Counters(value, key, new_symbols(sketch, p.size, wire))


@bring_back.register(LinearSketchFeedback)
def _(feedback, store, w, p):
    _add_estimate(feedback.sketch, store, w, 1.0 - feedback.beta, p)


@keep.register(LinearSketchFeedback)
def _(feedback, store, w, p, compressor, symbols, stream):
    accumulate(compressor, symbols, -1.0, p)
    _add_estimate(feedback.sketch, store, w, feedback.beta - 1.0, p)  # eta g - Delta is left
    quantize(feedback.sketch, np.empty(0), p, store.hash[0], store.symbols)
    for b in range(store.value.shape[1]):
        store.value[w, b] += store.symbols.value[b]


@stored.register(LinearSketchFeedback)
def _(feedback, store, w, out):
    out[:] = 0.0
    _add_estimate(feedback.sketch, store, w, 1.0, out)


@store_bytes.register
def _(feedback: LinearSketchFeedback, compressor, d: int, wire_bits: int = 32, own_bits: int = 64) -> tuple[int, int]:
    return feedback.sketch.rows * feedback.sketch.width * wire_bits // 8, 0


@check_feedback.register
def _(feedback: LinearSketchFeedback, compressor, d: int) -> None:
    check_error_compressor("sketch", feedback.sketch, d)
