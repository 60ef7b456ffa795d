"""Checks of arguments, warnings for callers of the package, and subpackages that list their contents.

The arguments are counts, single numbers, types of floats, arrays of real numbers, and the number of threads that a
measurement may use.  Warnings are for code outside the package that calls `run`: each is given once, at the caller's
line.  ``theory.methods()`` lists the contents of `theory.methods`.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from numbers import Real
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .settings import is_whole, require

# --- Checks of arguments ---------------------------------------------------------------------------------------------

MOST = 2**53  # float64, in which costs are summed, represents every integer up to this one

LARGEST_BATCH = 10**8  # gradients of a worker in a step: more is a mistake

MANY = 2**24  # workers, replicas, threads: each has its own arrays


def whole_number(name: str, number: Any, low: int = 1, high: int = MOST) -> int:
    """Check that the argument of this name is an integer from low to high; True and False are not integers.

    Examples
    --------
    >>> whole_number("workers", True)
    Traceback (most recent call last):
        ...
    ValueError: workers: got True, allowed: an integer, at least 1
    """
    require(is_whole(number) and number >= low, name, number, f"an integer, at least {low}")
    require(number <= high, name, number, f"an integer, at most {high}")
    return int(number)


def finite_number(name: str, number: Any) -> float:
    """Check that the argument of this name is a number."""
    real = isinstance(number, (int, float, np.integer, np.floating)) and not isinstance(number, bool)
    within = not is_whole(number) or abs(number) <= sys.float_info.max
    require(real and within, name, number, "a number")
    return float(number)


def flag(name: str, value: Any) -> bool:
    """Check that the argument of this name is True or False: a string would count as True."""
    require(isinstance(value, (bool, np.bool_)), name, value, "True or False")
    return bool(value)


def float_type(name: str, dtype: DTypeLike) -> np.dtype:
    """Check a type of floats: float32 or float64 in the machine's byte order."""
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    fits = found is not None and found.isnative and found in (np.float32, np.float64)
    require(fits, name, dtype if found is None else found.name, "float32 or float64")
    return np.dtype(found)


def real_array(name: str, given: Any, dtype: DTypeLike = np.float64, error: type[Exception] = ValueError) -> np.ndarray:
    """Convert real numbers to an array, without a copy if possible; other types and masked arrays are refused.

    Examples
    --------
    >>> real_array("x0", [1, 2])
    array([1., 2.])
    >>> real_array("x0", [1, 2j])
    Traceback (most recent call last):
        ...
    ValueError: x0: got complex numbers, allowed: real numbers
    """
    found = as_given(name, given, error)
    if found.dtype.kind not in "fiub":
        raise error(f"{name}: got {_kind_of(found)}, allowed: real numbers")
    return np.asarray(found, dtype)


def as_given(name: str, given: Any, error: type[Exception] = ValueError) -> np.ndarray:
    """An array of whatever type it has."""
    if np.ma.isMaskedArray(given):
        raise error(f"{name}: got a masked array, allowed: numbers without a mask (its method filled)")
    try:
        return np.asarray(given)
    except ValueError:
        raise error(f"{name}: got rows of different lengths, allowed: rows of one length") from None


def _kind_of(found: np.ndarray) -> str:
    if found.dtype.kind == "c":
        return "complex numbers"
    if found.dtype.kind in "USO":
        odd = next((at for at, one in np.ndenumerate(found) if not isinstance(one, Real)), None)
        if odd is None:  # objects that are numbers
            return f"an array of objects (convert with np.asarray(..., float)), of shape {found.shape}"
        where = "" if not odd else f" at position {odd[0] if len(odd) == 1 else tuple(map(int, odd))}"
        shown = repr(found[odd].item() if isinstance(found[odd], np.generic) else found[odd])
        return f"{shown[:40]}{where}"
    return f"an array of type {found.dtype}"


def squarable(name: str, parts: Sequence[np.ndarray], error: type[Exception] = ValueError) -> None:
    """Refuse numbers whose squares have no finite sum: norms, losses and constants would be infinite."""
    for part in parts:
        if part.size:
            largest = max(float(part.max()), -float(part.min()))
            limit = (np.finfo(np.float64).max / part.size) ** 0.5
            if largest > limit:
                told = f"up to {limit:.3g}, so that squares can be summed"
                raise error(f"{name}: got the magnitude {largest:.3g}, allowed: {told}")


# --- Warnings for callers outside the package ------------------------------------------------------------------------

# modules between the caller and the check
ON_THE_WAY = (
    ".core.settings",
    ".core.generics",
    "functools",
    ".problems.constants",
    ".setup",
    ".problems.base",
    ".run",
    ".cluster.history",
    ".show_step",
    ".comparison",
    ".sweep",
    ".arguments",
    ".linear",
    ".multinomial",
    ".problems.nonconvex",
    ".problems.network",
)

_told: set[str] = set()  # warnings already given; Python forgets its own list when a filter changes


def outside(depth: int = 2) -> int | None:
    """The stack level, for `warnings.warn`, of a caller outside the package; None if the caller is in the package."""
    level, frame = depth, sys._getframe(depth)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").endswith(ON_THE_WAY):
        level, frame = level + 1, frame.f_back
    return None if frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0] else level


def advise(text: str, category: type[Warning], depth: int = 2) -> None:
    """Warn once with this text, unless the caller is in the package.

    Parameters
    ----------
    text : str
    category : type
        A subclass of `Warning`.
    depth : int
        Number of calls between this one and the first that may be the caller's.
    """
    level = outside(depth)
    if level is not None and text not in _told:
        _told.add(text)
        warnings.warn(text, category, stacklevel=level)


# --- How many threads a measurement may use --------------------------------------------------------------------------


def usable_cores() -> int:
    """Number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def spare_cores() -> int:
    """Number of cores for threads of this process: one if it is one of a pool, which has a process for each core."""
    return 1 if multiprocessing.parent_process() is not None else usable_cores()


# --- Subpackages that can be called ----------------------------------------------------------------------------------


class ListedSubpackage(ModuleType):
    """A package that lists its contents when it is called."""

    def __call__(self) -> Any:
        """The listing of this kind, as `theory.listing` returns it."""
        root, _, kind = self.__name__.rpartition(".")
        return import_module(root).listing(kind)


def lists_itself(package: str) -> None:
    """Make the package of this name callable."""
    sys.modules[package].__class__ = ListedSubpackage
