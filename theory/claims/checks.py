"""What a measurement returns: checks of a number against a prediction, and what they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.random import key
from ..measure import LEVEL, Interval, exactly

__all__ = ["Check", "Context", "Measurement", "equality", "identity", "lower", "rate", "upper"]


ROUNDING = 1e-9  # relative rounding error allowed in an equality whose samples do not vary


class Check(NamedTuple):
    """A measured number, its prediction, and the rule that compares them.

    Attributes
    ----------
    label : str
        What was measured, and where.
    rule : {"identity", "equality", "upper", "lower", "rate"}
    interval : Interval
        The measured number.
    predicted : float
        The closed form, or the bound.
    tolerance : float
        Identity: of the difference, relative to the prediction, or absolute if that is 0.  Rate: distance from the
        predicted slope.  Equality, upper, lower: relative rounding.
    trivial : float or None
        A bound that is no better than this where it was evaluated holds vacuously.
    """

    label: str
    rule: str
    interval: Interval
    predicted: float
    tolerance: float
    trivial: float | None = None


def identity(label: str, measured: float, predicted: float, tolerance: float = 1e-12) -> Check:
    """Two computed numbers that agree to machine precision.

    Parameters
    ----------
    label : str
        What was measured, and where.
    measured : float
        The computed number.
    predicted : float
        The closed form.
    tolerance : float
        Tolerance of the difference, relative to the prediction; absolute if that is 0.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> identity("1/3 + 1/3", 1 / 3 + 1 / 3, 2 / 3).rule
    'identity'
    """
    return Check(label, "identity", exactly(measured), float(predicted), tolerance)


def equality(label: str, interval: Interval, predicted: float, tolerance: float = ROUNDING) -> Check:
    """An equality in law: the interval contains the value (and is narrow enough to refute every mutant).

    Parameters
    ----------
    label : str
        What was measured, and where.
    interval : Interval
        The measured number.
    predicted : float
        The closed form.
    tolerance : float
        Relative rounding.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> equality("omega", exactly(3.0), 3.0).rule
    'equality'
    """
    return Check(label, "equality", interval, float(predicted), tolerance)


def upper(label: str, interval: Interval, bound: float, trivial: float | None = None) -> Check:
    """An upper bound: the interval's upper end is below it.

    Parameters
    ----------
    label : str
        What was measured, and where.
    interval : Interval
        The measured number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this says nothing: it holds, vacuously.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> upper("E f - f*", exactly(0.5), bound=1.0).predicted
    1.0
    """
    return Check(label, "upper", interval, float(bound), ROUNDING, trivial)


def lower(label: str, interval: Interval, bound: float, trivial: float | None = None) -> Check:
    """A lower bound: the interval's lower end is above it.

    Parameters
    ----------
    label : str
        What was measured, and where.
    interval : Interval
        The measured number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this says nothing: it holds, vacuously.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> lower("E f - f*", exactly(0.5), bound=0.25).predicted
    0.25
    """
    return Check(label, "lower", interval, float(bound), ROUNDING, trivial)


def rate(label: str, slope: Interval, predicted: float, tolerance: float) -> Check:
    """A rate: the interval of the log-log slope is within the tolerance of the predicted slope.

    Parameters
    ----------
    label : str
        What was measured, and where.
    slope : Interval
        The measured slope.
    predicted : float
        The slope of the theorem.
    tolerance : float
        Maximum distance of the interval's ends from it.

    Returns
    -------
    Check
        To be handed to `Measurement`.

    Examples
    --------
    >>> from theory.measure import exactly
    >>> rate("error against steps", exactly(-1.01), -1.0, tolerance=0.05).tolerance
    0.05
    """
    return Check(label, "rate", slope, float(predicted), tolerance)


class Measurement:
    """Result of a claim's measurement: its checks, the headline first, the number of samples, and a remark.

    Parameters
    ----------
    *checks : Check
        All comparisons, the headline first.
    samples : int
        Number of samples; 0 if everything was computed.
    note : str
        A remark.
    """

    def __init__(self, *checks: Check, samples: int = 0, note: str = ""):
        self.checks, self.samples, self.note = checks, samples, note


@dataclass(frozen=True)
class Context:
    """The argument of a measurement.

    Attributes
    ----------
    subject : object
        What is measured: the claim's subject, or a mutant in its place.
    name : str
        The claim's id; it makes the random numbers of different claims independent.
    seed : int
        Seed of all random numbers, with ``name``.
    quick : bool
        Whether to use fewer samples.
    effort : int
        1 at first, increased while the verdict is undecided.
    data : Dataset or None
        Data to replace the default, for claims about data.
    """

    subject: Any
    name: str = ""
    seed: int = 0
    quick: bool = False
    effort: int = 1
    data: Any = None

    def samples(self, full: int, quick: int | None = None) -> int:
        """Number of samples; ``full`` is that of a full run at the first attempt."""
        return self.effort * ((quick or max(2, full // 4)) if self.quick else full)

    def level(self, checks: int) -> float:
        """The level of each of several intervals that must all hold together (Bonferroni)."""
        return 1.0 - (1.0 - LEVEL) / checks

    def stream(self, *path: int | str) -> int:
        """A seed for the purpose ``path``; another effort gives new random numbers."""
        return int(key(self.seed, "claim", self.name, self.effort, *path))

    def normal(self, size, *path: int | str) -> np.ndarray:
        """Standard normal numbers, the same at every effort: test vectors."""
        return np.random.default_rng(int(key(self.seed, "vector", self.name, *path))).standard_normal(size)
