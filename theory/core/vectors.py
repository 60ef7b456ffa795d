"""Generic access to vectors, so that kernels do not depend on their storage.

A plain array stores its entries.  An iterate may be stored as scale times array, a memory as a sum of two parts (see
:mod:`theory.methods.sparse`); they register their own implementations of the same generics.
"""

from __future__ import annotations

from .generics import generic


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
