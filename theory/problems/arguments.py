"""Arguments of the functions that make problems: checked data, and its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import require
from ..core.advice import advise
from ..core.arguments import finite_number, real_array
from ..data import DataError, Dataset, make_dataset
from ..data.dataset import UNSCALED
from .matrix import frozen


def label_of(data: Dataset) -> np.ndarray:
    """Name and notes of the data as bytes, which kernels can be given: a line each."""
    # a string in a tuple makes Numba use its slow type lookup in every call of a kernel: 60 us instead of 2
    lines = (" ".join(text.splitlines()) for text in (data.name, *data.notes))
    return frozen(np.frombuffer("\n".join(lines).encode(), dtype=np.uint8), np.uint8)


def l2_of(l2: float | None, n: int) -> float:
    """The weight of (1/2)||x||^2: 1/n unless it is given, so that the term does not outweigh one row."""
    return 1.0 / n if l2 is None else finite_number("l2", l2)


class UnscaledDataWarning(UserWarning):
    """Columns differ by orders of magnitude, so that no step size suits all of them.

    Examples
    --------
    >>> issubclass(UnscaledDataWarning, UserWarning)
    True
    """


def dataset(data: Any, classes: bool = False, texts: int = 2) -> Dataset:
    """Checked data of a Dataset or a pair (X, y), with a warning if their columns have very different scales.

    The labels of a pair are numbers; with ``classes`` two labels are mapped to -1 and +1, also texts, and up to
    ``texts`` of these are numbered.
    """
    if not isinstance(data, Dataset):
        require(isinstance(data, tuple) and len(data) == 2, "data", type(data).__name__, "a Dataset or a pair (X, y)")
        X, y = data
        labels = y if classes else real_array("y", y, error=DataError)
        data = make_dataset(X, labels, "data", texts=texts)
        if not classes:
            data = Dataset(data.X, frozen(labels, np.float64), data.name, data.task)
    if data.scale_ratio >= UNSCALED:
        advise(
            f"{data.name}: columns differ by a factor of {data.scale_ratio:.1g} in scale, so a step that is "
            "short enough for the largest is far too short for the others; data.scaled() divides each by its largest "
            "magnitude",
            UnscaledDataWarning,
        )
    return data
