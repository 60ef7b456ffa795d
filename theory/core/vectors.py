"""Generic access to vectors, and the handles and read-only arrays that a round function gets.

Kernels do not depend on the storage of vectors.  A plain array stores its entries.  An iterate may be stored as scale
times array, a memory as a sum of two parts (see :mod:`theory.methods.sparse`); they register their own implementations
of the same generics.

A round function gets handles and read-only arrays.  Kernels are called by address and check no bounds, so they must
never get an index, a length or a setting that a round function has changed.  Their data are inside a :class:`Handle`; a
round function can read arrays, but not write to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .generics import generic

# --- Generic access to vectors ---------------------------------------------------------------------------------------


def _entry(v, j):
    return v[j]


def _add_entry(v, j, amount):
    v[j] += amount


def _length(v):
    return v.size


def _dense_part(v):
    return v


def _scale_of(v):
    return 1.0


entry = generic("entry", "entry(v, j) -> float: coordinate j of the vector v.", _entry)

add_entry = generic("add_entry", "add_entry(v, j, amount): v[j] += amount.", _add_entry)

length = generic("length", "length(v) -> int: how many coordinates the vector v has.", _length)

dense_part = generic(
    "dense_part", "dense_part(v) -> array: the array a with v = scale_of(v) * a, where v has one.", _dense_part
)

scale_of = generic("scale_of", "scale_of(v) -> float: the scalar s with v = s * dense_part(v).", _scale_of)


# --- Handles and read-only arrays for round functions ----------------------------------------------------------------


class Handle:
    """A reference to an object of the run; it has no field that could be replaced.

    Parameters
    ----------
    inside : object
        What the run's operations use.

    Examples
    --------
    >>> made = Handle([1, 2])
    >>> inside(made)
    [1, 2]
    >>> made.name = "mine"
    Traceback (most recent call last):
        ...
    AttributeError: Handle.name: got 'mine', allowed: nothing; it can only be read
    """

    __slots__ = ("_inside",)
    _inside: Any

    def __init__(self, inside: Any) -> None:
        object.__setattr__(self, "_inside", inside)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name}: got {value!r}, allowed: nothing; it can only be read")


def inside(handle: Any) -> Any:
    """The object inside a handle; anything else is returned unchanged."""
    return handle._inside if isinstance(handle, Handle) else handle


def read_only(array: np.ndarray) -> np.ndarray:
    """The same memory as an array that cannot be made writable, as it could with ``flags.writeable``.

    Parameters
    ----------
    array : ndarray

    Returns
    -------
    ndarray

    Examples
    --------
    >>> counts = np.zeros(3, np.int64)
    >>> seen = read_only(counts)
    >>> counts[1] = 5
    >>> seen
    array([0, 5, 0])
    >>> seen.flags.writeable = True
    Traceback (most recent call last):
        ...
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    return np.asarray(_Shown(array))


def writable(view: np.ndarray) -> np.ndarray:
    """The array of which `read_only` made a view: for the kernels of the package."""
    return inside(view.base)


class _Shown(Handle):
    """The array interface of another array, read-only."""

    __slots__ = ()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        seen = self._inside.__array_interface__
        return seen | {"data": (seen["data"][0], True), "strides": self._inside.strides}
