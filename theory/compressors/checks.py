"""Checks that several compressors share."""

from __future__ import annotations

from ..core import require
from .base import quantize

LARGEST_D = 2**31 - 1  # positions are uint32 on the wire, and Python's len is signed on some systems


def check_dimension(d: int) -> None:
    """Refuse lengths that no compressor takes."""
    require(isinstance(d, int) and 1 <= d <= LARGEST_D, "d", d, f"an integer from 1 to {LARGEST_D}")


def check_kept(c, d: int) -> None:
    """Refuse a compressor that keeps more coordinates than there are."""
    check_dimension(d)
    require(c.k <= d, "k", c.k, f"at most the length of the vector, {d}")


def check_compressor(name: str, c) -> None:
    """Refuse what is no compressor, in the argument of this name."""
    require(quantize.implements(type(c)), name, c, "a compressor, such as QSGD(7)", TypeError)
