"""Rows for sparse data: a step costs what its rows and its messages hold, not the dimension."""

from . import search  # noqa: F401  # how the largest entries of these rows are found
