"""Compiled loops that take the place of a method's text where almost nothing is left to do in a step.

Each gives the same bits as the text (tests/methods/test_fast.py).  Each is compiled for a problem, as a step is so
short that a call by address would be felt; its compressor is always the same, so it belongs to no pair.
"""

from .noisy_quadratic import DrawnLoop
from .sparse_row import PlainLoop

__all__ = ["LOOPS", "fast_loop"]

LOOPS: tuple = (PlainLoop, DrawnLoop)


def fast_loop(run):
    """The loop that carries out a run's rounds, or None where that is the text."""
    found = next((loop for loop in LOOPS if loop.fits(run)), None)
    return found and found(run)
