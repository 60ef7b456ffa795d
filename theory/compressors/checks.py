"""Checks that several compressors share."""

from __future__ import annotations

from typing import Any

from ..core import require
from .base import quantize

LARGEST_D = 2**31 - 1  # positions are uint32 on the wire, and Python's len is signed on some systems


def check_dimension(d: int) -> None:
    """Raise ValueError for a length outside the range that compressors accept."""
    require(isinstance(d, int) and 1 <= d <= LARGEST_D, "d", d, f"an integer from 1 to {LARGEST_D}")


def check_kept(c: Any, d: int) -> None:
    """Raise ValueError if the compressor keeps more coordinates than there are."""
    check_dimension(d)
    require(c.k <= d, "k", c.k, f"at most the length of the vector, {d}")


def check_compressor(name: str, c: Any) -> None:
    """Raise an error, with the name of the argument, unless c is a compressor."""
    require(quantize.implements(type(c)), name, c, "a compressor, such as QSGD(7)", TypeError)
