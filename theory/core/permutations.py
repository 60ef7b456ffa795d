"""Random permutations that depend on a key alone."""

from __future__ import annotations

import numpy as np

from .compile_cache import kernel
from .random import integer


@kernel
def shuffle(order: np.ndarray, stream: np.uint64) -> None:
    """Fisher-Yates: a uniform permutation of 0, 1, ... that depends on the stream alone."""
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        j = integer(stream, i, i + 1)
        order[i], order[j] = order[j], order[i]
