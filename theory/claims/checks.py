"""What a measurement yields: checks of a number against a prediction, and what they are given.

What is measured may be an array of independent samples, whose mean is meant; a computed number; an `Interval`; or a
function from a level to an `Interval`.  Outcomes, an array of bool, are counted.  ``verify`` counts those that vary and
makes all intervals hold together, at each of its attempts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core.random import key
from ..measure import LEVEL, Interval, exactly, mean_interval, share_interval
from ..measure.intervals import constant

UNSETTLED = exactly(float("nan"))
SURE = 1.0 - (1.0 - LEVEL) / 1000.0  # level of an estimate that a theorem then assumes
NEAR = 0.1  # a rate holds if exponents at this distance are excluded
EFFORTS = (1, 4, 16)  # factors on the number of samples, after which a verdict is undecided
ROUNDING = 1e-9  # relative rounding error allowed in an equality whose samples do not vary


class Check(NamedTuple):
    """A measured number, its prediction, and the rule that compares them.

    Attributes
    ----------
    label : str
        What was measured, and where.
    rule : {"identity", "equality", "upper", "lower", "rate", "limit"}
    measured : array_like, float, Interval or callable
        The samples, the computed number, or its interval.
    predicted : float
        The closed form, or the bound.
    tolerance : float
        Identity: of the difference, relative to the prediction, or absolute if that is 0.  Rate, limit: distance
        from the predicted number.  Equality, upper, lower: relative rounding.
    trivial : float or None
        A bound that is no better than this where it was evaluated holds vacuously.
    assumed : bool
        An assumption of the theorem, checked along the run: it says nothing about the theorem's formula.
    interval : Interval
        The measured number with its interval, once ``verify`` knows how many must hold together.
    """

    label: str
    rule: str
    measured: Any
    predicted: float
    tolerance: float
    trivial: float | None = None
    assumed: bool = False
    interval: Interval = UNSETTLED

    @property
    def varies(self) -> bool:
        """Whether the measured number is random."""
        if isinstance(self.measured, Interval):
            return self.measured.samples > 0
        return callable(self.measured) or np.ndim(self.measured) > 0

    def settled(self, level: float, sure: bool = False) -> Check:
        """The check with its interval at this level, and without the samples.

        Of what is ``sure``, such as a mutant that rounds to the nearest level, samples that do not vary are the number.
        """
        if self.interval is not UNSETTLED:
            return self
        found = self.measured
        if callable(found):
            found = found(level)
        elif not isinstance(found, Interval):
            found = np.asarray(found)
            mean = share_interval if found.dtype == bool else mean_interval
            found = mean(found, level) if found.ndim else exactly(float(found))
        if sure and math.isinf(found.high - found.low) and math.isfinite(found.estimate):
            found = found._replace(low=found.estimate, high=found.estimate)
        return self._replace(interval=found, measured=found.estimate)


def _check(
    label: str,
    rule: str,
    measured: Any,
    predicted: float,
    tolerance: float,
    trivial: float | None = None,
    assumed: bool = False,
) -> Check:
    check = Check(label, rule, measured, float(predicted), tolerance, trivial, assumed)
    waits = callable(measured) or (not isinstance(measured, Interval) and np.ndim(measured) > 0)
    return check if waits else check.settled(0.0)


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
        To be yielded by the claim's measurement.

    Raises
    ------
    TypeError
        If an array was measured.

    Examples
    --------
    >>> identity("1/3 + 1/3", 1 / 3 + 1 / 3, 2 / 3).rule
    'identity'
    """
    if np.ndim(measured):
        raise TypeError(f"measured: got an array for {label!r}, allowed: a computed number; samples have `equality`")
    return _check(label, "identity", measured, predicted, tolerance)


def equality(label: str, measured: Any, predicted: float, tolerance: float = ROUNDING) -> Check:
    """An equality in law: the interval contains the value (and is narrow enough to refute every mutant).

    Parameters
    ----------
    label : str
        What was measured, and where.
    measured : array_like, float, Interval or callable
        Samples of the mean, or the computed number.
    predicted : float
        The closed form.
    tolerance : float
        Relative rounding.

    Returns
    -------
    Check
        To be yielded by the claim's measurement.

    Examples
    --------
    >>> equality("omega", [2.9, 3.1, 3.0], 3.0).rule
    'equality'
    """
    return _check(label, "equality", measured, predicted, tolerance)


def upper(label: str, measured: Any, bound: float, trivial: float | None = None) -> Check:
    """An upper bound: it is above the interval.

    Parameters
    ----------
    label : str
        What was measured, and where.
    measured : array_like, float, Interval or callable
        Samples of the mean, or the computed number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this says nothing.

    Returns
    -------
    Check
        To be yielded by the claim's measurement.

    Examples
    --------
    >>> upper("E f - f*", 0.5, bound=1.0).predicted
    1.0
    """
    return _check(label, "upper", measured, bound, ROUNDING, trivial)


def lower(label: str, measured: Any, bound: float, trivial: float | None = None) -> Check:
    """A lower bound: it is below the interval.

    Parameters
    ----------
    label : str
        What was measured, and where.
    measured : array_like, float, Interval or callable
        Samples of the mean, or the computed number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this says nothing.

    Returns
    -------
    Check
        To be yielded by the claim's measurement.

    Examples
    --------
    >>> lower("E f - f*", 0.5, bound=0.25).predicted
    0.25
    """
    return _check(label, "lower", measured, bound, ROUNDING, trivial)


def assumption(label: str, measured: Any, bound: float) -> Check:
    """An assumption of the theorem, checked along the run: a number that is at most what the theorem assumes.

    Parameters
    ----------
    label : str
        What was measured, and where.
    measured : float, array_like, Interval or callable
        Such as the largest E||g||^2 on the way.
    bound : float
        What the theorem was given, such as G^2.

    Returns
    -------
    Check
        To be yielded; it does not count as evidence for the theorem's formula.

    Examples
    --------
    >>> assumption("largest E||g||^2", 1.9, 2.0).assumed
    True
    """
    return _check(label, "upper", measured, bound, ROUNDING, assumed=True)


def rate(label: str, slope: Any, predicted: float, tolerance: float = NEAR) -> Check:
    """A rate: the interval of the log-log slope contains the exponent, and none that is 0.1 away from it.

    An interval that is within the tolerance and does not contain the exponent is *order consistent*.

    Parameters
    ----------
    label : str
        What was measured, and where.
    slope : Interval or callable
        The measured slope.
    predicted : float
        The exponent of the theorem, or the slope of an exact law between the points that were measured.
    tolerance : float
        Beyond this distance from it the interval refutes it.  Below 0.1, what must be excluded is as near as this.

    Returns
    -------
    Check
        To be yielded by the claim's measurement.

    Examples
    --------
    >>> from theory.claims.judgement import judge
    >>> from theory.measure import Interval
    >>> judge(rate("E f - f* against T", Interval(-1.01, -1.05, -0.97), -1.0, tolerance=0.1))
    'holds'
    >>> judge(rate("E f - f* against T", Interval(-0.93, -0.95, -0.91), -1.0, tolerance=0.1))
    'order consistent'
    """
    return _check(label, "rate", slope, predicted, tolerance)


def limit(label: str, computed: float, value: float, tolerance: float) -> Check:
    """A computed number that is near its limit.

    Parameters
    ----------
    label : str
        What was computed, and where.
    computed : float
        A law where it is not yet its limit; such as the slope of a bound between two large T.
    value : float
        The limit.
    tolerance : float
        Maximum distance.

    Returns
    -------
    Check
        To be yielded by the claim's measurement.

    Examples
    --------
    >>> limit("slope of the bound", -0.999, -1.0, tolerance=0.05).rule
    'limit'
    """
    return _check(label, "limit", computed, value, tolerance)


def certain(samples: Any) -> Any:
    """Samples of what has one value in every draw, as the statement knows: that value, or the samples if they differ.

    That all samples were the same says little about what was not seen.  Here it is known beforehand, such as of |x|^2
    for x = +-1, so it is a computed number; of a mutant it need not be true.

    Parameters
    ----------
    samples : array_like, shape (n,), or callable
        Or a function from a level to an interval.

    Returns
    -------
    float, numpy.ndarray or callable
        To be given to a check.

    Examples
    --------
    >>> certain([2.0, 2.0, 2.0]), certain([1.0, 2.0])
    (2.0, array([1., 2.]))
    """
    if callable(samples):

        def interval(level: float) -> Interval:
            found = samples(level)
            return exactly(found.estimate) if math.isinf(found.high - found.low) else found

        return interval
    samples = np.asarray(samples, float)
    return float(samples[0]) if constant(samples) else samples


class Measurement:
    """What a claim yielded: its checks, the headline first, with intervals that all hold together, and its remarks.

    Parameters
    ----------
    yielded : iterable of Check or str
        Checks, and remarks as strings.
    sure : bool
        Samples that do not vary are a number: of what was made to be wrong that may be assumed.
    name : str
        The claim's id, for errors.

    Raises
    ------
    TypeError
        If there is something else, or no check.
    """

    def __init__(self, yielded: Iterable[Check | str], sure: bool = False, name: str = "") -> None:
        found = list(yielded) if isinstance(yielded, Iterable) else [yielded]
        wrong = [one for one in found if not isinstance(one, (Check, str))]
        if wrong or not any(isinstance(one, Check) for one in found):
            got = f"{wrong[0]!r:.60}" if wrong else "no check"
            raise TypeError(f"measurement of {name}: got {got}, allowed: to yield checks, such as equality(...)")
        checks = sorted((one for one in found if isinstance(one, Check)), key=lambda check: check.assumed)
        level = 1.0 - (1.0 - LEVEL) / (len(EFFORTS) * max(1, sum(check.varies for check in checks)))
        self.checks = tuple(check.settled(level, sure) for check in checks)
        self.note = " ".join(one for one in found if isinstance(one, str))
        arrays = {id(raw.measured): check.interval.samples for raw, check in zip(checks, self.checks, strict=True)}
        self.samples = sum(arrays.values())  # one array may serve two checks


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
    used : set of str
        Which parts of the package were run.
    """

    subject: Any
    name: str = ""
    seed: int = 0
    quick: bool = False
    effort: int = 1
    data: Any = None
    used: set[str] = field(default_factory=set)

    def samples(self, full: int, quick: int | None = None) -> int:
        """Number of samples; ``full`` is that of a full run at the first attempt."""
        return self.effort * ((quick or max(2, full // 4)) if self.quick else full)

    def stream(self, *path: int | str) -> int:
        """A seed for the purpose ``path``; another effort gives new random numbers."""
        return int(key(self.seed, "claim", self.name, self.effort, *path))

    def normal(self, size: int | tuple[int, ...], *path: int | str) -> np.ndarray:
        """Standard normal numbers, the same at every effort: test vectors."""
        return np.random.default_rng(int(key(self.seed, "vector", self.name, *path))).standard_normal(size)

    def run(self, method: Any, problem: Any, *path: int | str, **options: Any) -> Any:
        """The package's run; without a ``seed``, with one for the purpose ``path``."""
        from ..cluster.run import run

        self.used.add("run")
        return run(method, problem, **{"seed": self.stream(*path)} | options)

    def run64(self, method: Any, problem: Any, *path: int | str, steps: int, **options: Any) -> Any:
        """`run` with messages in float64, on one worker and recorded at the end, unless the options say otherwise."""
        usual = {"workers": 1, "record_every": steps, "wire_dtype": np.float64}
        return self.run(method, problem, *path, steps=steps, **usual | options)

    def iterates(
        self,
        method: Any,
        problem: Any,
        *path: int | str,
        steps: int,
        of: Callable[[Any], Any] = lambda result: result.last,
        **options: Any,
    ) -> list:
        """x_0, ..., x_T of `run64`, or what ``of`` reads from the result at each; fewer if it diverges."""
        seen: list = []

        def see(intermediate_result: Any) -> None:
            seen.append(of(intermediate_result))

        self.run64(method, problem, *path, steps=steps, callback=see, **{"record_every": 1} | options)
        return seen

    def moments(self, compressor: Any, v: ArrayLike, samples: int, *path: int | str, **options: Any) -> Any:
        """Samples of a compressor's error, bits and non-zeros at the vector v, for the purpose ``path``.

        In place of a compressor, a wrong one may be a function ``(v, samples, rng)``; see `theory.measure.moments`.
        """
        from ..measure import moments

        self.used.add("compressor")
        return moments(compressor, v, samples, **{"seed": self.stream(*path)} | options)
