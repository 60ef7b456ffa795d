"""How many threads a measurement may use."""

from __future__ import annotations

import multiprocessing
import os


def usable_cores() -> int:
    """Number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def spare_cores() -> int:
    """Number of cores for threads of this process: one if it is one of a pool, which has a process for each core."""
    return 1 if multiprocessing.parent_process() is not None else usable_cores()
