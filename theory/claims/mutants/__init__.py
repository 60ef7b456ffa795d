"""Mutants: deliberately wrong compressors, rules and methods, which claims must refute."""

from collections.abc import Callable

import numpy as np

Messages = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]  # of v: many at once, as `moments` takes them
