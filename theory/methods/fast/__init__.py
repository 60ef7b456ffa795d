"""Compiled loops that replace a method's round function where a step does very little work.

Each gives the same bits as the round function (tests/methods/test_fast.py).  Each is compiled per problem, as a step is
so short that a call by address would be noticeable; its compressor is fixed, so no pairs are compiled.
"""

from __future__ import annotations

from typing import Any

from ..types import Run
from .noisy_quadratic import DrawnLoop
from .sparse_row import PlainLoop

LOOPS: tuple = (PlainLoop, DrawnLoop)


def fast_loop(run: Run) -> Any:
    """The compiled loop for a run, or None if the round function is to be used."""
    found = next((loop for loop in LOOPS if loop.fits(run)), None)
    return found and found(run)
