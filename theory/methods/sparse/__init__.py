"""Rows for sparse data: the cost of a step depends on the non-zeros of its rows and messages, not on the dimension."""

from . import top_k  # noqa: F401  # how the largest entries of these rows are found
