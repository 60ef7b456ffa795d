"""Warnings for whoever calls `run` from outside the package: each is given once, at the caller's line."""

from __future__ import annotations

import sys
import warnings

# modules between the caller and the check
ON_THE_WAY = (
    ".core.settings",
    ".core.generics",
    "functools",
    ".problems.constants",
    ".setup",
    ".settings",
    ".run",
    ".several_seeds",
    ".show_step",
    ".comparison",
    ".sweep",
    ".arguments",
    ".linear",
    ".multinomial",
    ".nonconvex_regularizer",
    ".problems.network",
)

_told: set[str] = set()  # warnings already given; Python forgets its own list when a filter changes


def outside(depth: int = 2) -> int | None:
    """The stack level of the caller if it is outside the package, for `warnings.warn`; None if it is a part of it."""
    level, frame = depth, sys._getframe(depth)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").endswith(ON_THE_WAY):
        level, frame = level + 1, frame.f_back
    return None if frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0] else level


def advise(text: str, category: type[Warning], depth: int = 2) -> None:
    """Warn once with this text, unless the caller is a part of the package, which knows what it asks for.

    Parameters
    ----------
    text : str
    category : type
        A subclass of `Warning`.
    depth : int
        How many calls lie between this one and the first that may be the caller's.
    """
    level = outside(depth)
    if level is not None and text not in _told:
        _told.add(text)
        warnings.warn(text, category, stacklevel=level)
