"""Error feedback that forgets: of what a message left out, only a share is kept.

::

    for every worker:     p = eta g + e
                          send Delta = Q(p)
                          e = share (p - Delta)
    x = x - mean of Delta
"""

from typing import NamedTuple

import numpy as np

from theory.compressors import accumulate
from theory.methods.feedback import bring_back, keep, new_store, register_memory, stored
from theory.settings import require, setting


@setting
class LeakyFeedback(NamedTuple):
    """Share 1 is error feedback, share 0 no feedback at all."""

    share: float

    def domain(self):
        """Refuse values outside the domain."""
        require(0.0 <= self.share <= 1.0, "share", self.share, "a number from 0 to 1")


register_memory(LeakyFeedback)


@new_store.register(LeakyFeedback)
def _(feedback, compressor, p, workers, room, wire):
    return np.zeros((workers, p.size), p.dtype)


@bring_back.register(LeakyFeedback)
def _(feedback, store, w, p):
    for j in range(p.size):
        p[j] += store[w, j]


@keep.register(LeakyFeedback)
def _(feedback, store, w, p, compressor, symbols, stream):
    accumulate(compressor, symbols, -1.0, p)  # what the receiver decodes: what is left is what it misses
    for j in range(p.size):
        store[w, j] = feedback.share * p[j]


@stored.register(LeakyFeedback)
def _(feedback, store, w, out):
    for j in range(out.size):
        out[j] = store[w, j]
