"""Arguments of the functions that make problems: checked numbers, labels and data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import require
from ..core.advice import advise
from ..data import Dataset, make_dataset
from ..data.dataset import UNSCALED
from .matrix import frozen

__all__ = ["UnscaledDataWarning", "dataset", "finite_number", "label_of"]


def finite_number(name: str, number: Any) -> float:
    """A checked number, in the argument of this name."""
    require(isinstance(number, (int, float, np.integer, np.floating)), name, number, "a number")
    return float(number)


def label_of(name: str) -> np.ndarray:
    """A name as bytes, which kernels can be given."""
    # a string in a tuple makes Numba use its slow type lookup in every call of a kernel: 60 us instead of 2
    return frozen(np.frombuffer(name.encode(), dtype=np.uint8), np.uint8)


class UnscaledDataWarning(UserWarning):
    """Columns differ by orders of magnitude, so that no step size suits all of them.

    Examples
    --------
    >>> issubclass(UnscaledDataWarning, UserWarning)
    True
    """


def dataset(data: Any) -> Dataset:
    """Checked data of a Dataset or a pair (X, y), with a warning if their columns have very different scales."""
    if not isinstance(data, Dataset):
        require(isinstance(data, tuple) and len(data) == 2, "data", type(data).__name__, "a Dataset or a pair (X, y)")
        X, y = data
        labels = np.asarray(y, dtype=np.float64)
        checked = make_dataset(X, labels, "data")
        # a pair has no notes about mapped labels, so its labels are not mapped
        data = Dataset(checked.X, frozen(labels, np.float64), checked.name, checked.task)
    if data.scale_ratio >= UNSCALED:
        advise(
            f"{data.name}: columns differ by a factor of {data.scale_ratio:.1g} in scale, so a step that is "
            "short enough for the largest is far too short for the others; data.scaled() divides each by its largest "
            "magnitude",
            UnscaledDataWarning,
        )
    return data
