"""The results of a measurement: checks of a number against a prediction, and their arguments.

A measured value may be an array of independent samples, for their mean; a computed number; an `Interval`; or a function
from a level to an `Interval`.  Outcomes, an array of bool, are counted.  ``verify`` counts the random ones and makes
all intervals hold simultaneously, at each of its attempts.

Samples that are all equal are judged as a number.  This does not detect a rare event: if one draw in a thousand is
different, a thousand samples may all be equal. `said_of_equal` adds this remark to the verdict. For outcomes the number
is never certain: `share_interval` accounts for unobserved events, as does `betting_interval` for a known range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from numbers import Real
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
ONE, MANY = "a sample of one", "all samples, or certain(...) for a number that is no mean of draws"


class Check(NamedTuple):
    """A measured number, its prediction, and the rule that compares them.

    Attributes
    ----------
    label : str
        Description of the measured number.
    rule : {"identity", "equality", "upper", "lower", "rate", "limit"}
    measured : array_like, float, Interval or callable
        The samples, the computed number, or its interval.
    predicted : float
        The closed form, or the bound.
    tolerance : float
        Identity: of the difference, relative to the prediction, or absolute if that is 0.  Rate, limit: distance
        from the predicted number.  Equality, upper, lower: relative rounding.
    trivial : float or None
        A bound that is no better than this at the evaluated point holds vacuously.
    assumed : bool
        An assumption of the theorem, checked along the run; it is not evidence for the theorem's formula.
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

    @property
    def equal(self) -> bool:
        """Whether all samples were the same number, which is then judged."""
        return self.interval.samples > 0 and self.interval.low == self.interval.high

    def settled(self, level: float) -> Check:
        """The check with its interval at this level, and without the samples."""
        if self.interval is not UNSETTLED:
            return self
        found = self.measured
        if callable(found):
            found = found(level)
        elif not isinstance(found, Interval):
            found = np.asarray(found)
            mean = share_interval if found.dtype == bool else mean_interval
            found = mean(found, level) if found.ndim else exactly(float(found))
        if math.isinf(found.high - found.low) and math.isfinite(found.estimate):  # all samples are equal
            found = found._replace(low=found.estimate, high=found.estimate)
        return self._replace(interval=found, measured=found if found is self.measured else found.estimate)


def _check(
    label: str,
    rule: str,
    measured: Any,
    predicted: float,
    tolerance: float,
    trivial: float | None = None,
    assumed: bool = False,
) -> Check:
    if not (callable(measured) or isinstance(measured, (Interval, Real))):
        shape = _shape("measured", label, measured, "all samples, or a computed number")
        if len(shape) > 1:
            raise ValueError(
                f"measured: got shape {shape} for {label!r}, allowed: (samples,), one number for each draw"
            )
        if shape == (1,):
            raise ValueError(f"measured: got {ONE} for {label!r}, allowed: {MANY}")
    if not isinstance(predicted, Real) and _shape("predicted", label, predicted, "a number"):
        raise ValueError(f"predicted: got shape {np.shape(predicted)} for {label!r}, allowed: a number")
    check = Check(label, rule, measured, float(predicted), tolerance, trivial, assumed)
    waits = callable(measured) or (not isinstance(measured, Interval) and np.ndim(measured) > 0)
    return check if waits else check.settled(0.0)


def _shape(name: str, label: str, given: Any, allowed: str) -> tuple[int, ...]:
    """The shape of numbers; text, None and rows of different lengths are refused."""
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.empty(0, object)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name}: got {given!r:.60} for {label!r}, allowed: {allowed}")
    return found.shape


def identity(label: str, measured: float, predicted: float, tolerance: float = 1e-12) -> Check:
    """Two computed numbers that agree to machine precision.

    Parameters
    ----------
    label : str
        Description of the measured number.
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
    if np.ndim(measured) and not isinstance(measured, Interval):
        raise TypeError(f"measured: got an array for {label!r}, allowed: a computed number; samples have `equality`")
    return _check(label, "identity", measured, predicted, tolerance)


def equality(label: str, measured: Any, predicted: float, tolerance: float = ROUNDING) -> Check:
    """An equality in law: the interval contains the value (and is narrow enough to refute every mutant).

    Parameters
    ----------
    label : str
        Description of the measured number.
    measured : array_like, float, Interval or callable
        Samples whose mean is compared; a computed number as `certain`.
    predicted : float
        The closed form.
    tolerance : float
        Relative rounding.

    Returns
    -------
    Check
        To be yielded by the claim's measurement.

    Raises
    ------
    ValueError
        If there is a single number, which has no interval, or an array without one number per draw.

    Examples
    --------
    >>> equality("omega", [2.9, 3.1, 3.0], 3.0).rule
    'equality'
    """
    if isinstance(measured, Real):
        raise ValueError(f"measured: got {ONE} for {label!r}, allowed: {MANY}; two computed numbers have `identity`")
    return _check(label, "equality", measured, predicted, tolerance)


def upper(label: str, measured: Any, bound: float, trivial: float | None = None) -> Check:
    """An upper bound: it is above the interval.

    Parameters
    ----------
    label : str
        Description of the measured number.
    measured : array_like, float, Interval or callable
        Samples whose mean is compared, or the computed number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this is vacuous.

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
        Description of the measured number.
    measured : array_like, float, Interval or callable
        Samples whose mean is compared, or the computed number.
    bound : float
        The closed form.
    trivial : float, optional
        A bound that is no better than this is vacuous.

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
        Description of the measured number.
    measured : float, array_like, Interval or callable
        Such as the largest E||g||^2 during the run.
    bound : float
        The value that the theorem assumes, such as M^2.

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
    """A rate: the interval of the log-log slope contains the exponent and no number 0.1 away from it.

    An interval that is within the tolerance and does not contain the exponent *holds loosely*.

    Parameters
    ----------
    label : str
        Description of the measured number.
    slope : Interval or callable
        The measured slope.
    predicted : float
        The exponent of the theorem, or the slope of an exact law between the points that were measured.
    tolerance : float
        Beyond this distance from it the interval refutes it.  Below 0.1, it is also the distance of the numbers that
        must be excluded.

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
    'holds loosely'
    """
    return _check(label, "rate", slope, predicted, tolerance)


def limit(label: str, computed: float, value: float, tolerance: float) -> Check:
    """A computed number that is near its limit.

    Parameters
    ----------
    label : str
        Description of the computed number.
    computed : float
        A number near its limit, such as the slope of a bound between two large T.
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
    """A number that is not a mean of draws, or samples that are known to have the same value in every draw.

    Equal samples alone do not exclude other values. Here equality is known beforehand, for example of |x|^2 for x =
    +-1, so the value is a computed number; for a mutant it need not be true. A single number is computed, such as the
    largest ratio over the drawn instances.

    Parameters
    ----------
    samples : float, array_like of shape (n,), or callable
        Or a function from a level to an interval.

    Returns
    -------
    Interval, numpy.ndarray or callable
        To be given to a check; samples that differ remain samples.

    Examples
    --------
    >>> certain([2.0, 2.0, 2.0]).half, certain(2.0).half, certain([1.0, 2.0])
    (0.0, 0.0, array([1., 2.]))
    """
    if callable(samples):

        def interval(level: float) -> Interval:
            found = samples(level)
            return exactly(found.estimate) if math.isinf(found.high - found.low) else found

        return interval
    samples = np.asarray(samples, float)
    return exactly(float(samples.flat[0])) if constant(samples) else samples


def said_of_equal(checks: Iterable[Check]) -> str:
    """What has to be said of samples that were all equal, for the first check with such; empty without one.

    Examples
    --------
    >>> said_of_equal([equality("x", [2.0] * 50, 2.0).settled(LEVEL)])
    "All 50 samples of 'x' are equal and judged as a number; what is rarer than 24 % of the draws may be missed."
    """
    for check in checks:
        if check.equal:
            n = check.interval.samples
            rare = 100.0 * -math.expm1(math.log1p(-LEVEL) / n)  # equal n times with a probability above 1 - LEVEL
            outcomes = " Outcomes, 0 or 1, have to be an array of bool." if check.interval.estimate in (0, 1) else ""
            said = f"All {n} samples of {check.label!r} are equal and judged as a number"
            return f"{said}; what is rarer than {rare:.2g} % of the draws may be missed.{outcomes}"
    return ""


class Measurement:
    """What a claim yielded: its checks, the headline first, with intervals that all hold together, and its remarks.

    Parameters
    ----------
    yielded : iterable of Check or str
        Checks, and remarks as strings.
    context : Context, optional
        That of the measurement, which knows its name and whether random numbers were drawn.

    Raises
    ------
    TypeError
        If there is something else, or no check.
    ValueError
        If random numbers were drawn, and a bound is compared with a single number that is not said to be `certain`.
    """

    def __init__(self, yielded: Iterable[Check | str], context: Context | None = None) -> None:
        found = list(_looked_through(yielded, context)) if isinstance(yielded, Iterable) else [yielded]
        wrong = [one for one in found if not isinstance(one, (Check, str))]
        if wrong or not any(isinstance(one, Check) for one in found):
            got = f"{wrong[0]!r:.60}" if wrong else "no check"
            name = "" if context is None else f" of {context.name}"
            raise TypeError(f"measurement{name}: got {got}, allowed: to yield checks, such as equality(...)")
        checks = sorted((one for one in found if isinstance(one, Check)), key=lambda check: check.assumed)
        level = 1.0 - (1.0 - LEVEL) / (len(EFFORTS) * max(1, sum(check.varies for check in checks)))
        self.checks = tuple(check.settled(level) for check in checks)
        self.note = " ".join(one for one in found if isinstance(one, str))
        arrays = {id(raw.measured): check.interval.samples for raw, check in zip(checks, self.checks, strict=True)}
        self.samples = sum(arrays.values())  # one array may serve two checks


def _looked_through(yielded: Iterable[Any], context: Context | None) -> Iterator[Any]:
    """What is yielded; after random numbers were drawn, a bound on a single number is refused."""
    for one in yielded:
        bound = isinstance(one, Check) and one.rule in ("upper", "lower") and not one.assumed
        if bound and isinstance(one.measured, Real) and context is not None and context.drawn:
            raise ValueError(f"measured: got {ONE} for {one.label!r}, allowed: {MANY}")
        yield one
        if context is not None and isinstance(yielded, Iterator):
            context.drawn.clear()  # a list was made at once, and all its checks come after the draws


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
    drawn : set of str
        For which purposes the measurement drew random numbers itself, since its latest check.
    """

    subject: Any
    name: str = ""
    seed: int = 0
    quick: bool = False
    effort: int = 1
    data: Any = None
    used: set[str] = field(default_factory=set)
    drawn: set[str] = field(default_factory=set)

    def samples(self, full: int, quick: int | None = None) -> int:
        """Number of samples; ``full`` is that of a full run at the first attempt."""
        return self.effort * ((quick or max(2, full // 4)) if self.quick else full)

    def stream(self, *path: int | str) -> int:
        """A seed for the purpose ``path``; another effort gives new random numbers."""
        self.drawn.add("/".join(map(str, path)))
        return self._stream(*path)

    def _stream(self, *path: int | str) -> int:
        return int(key(self.seed, "claim", self.name, self.effort, *path))

    def normal(self, size: int | tuple[int, ...], *path: int | str) -> np.ndarray:
        """Standard normal numbers, the same at every effort: test vectors."""
        return np.random.default_rng(int(key(self.seed, "vector", self.name, *path))).standard_normal(size)

    def run(self, method: Any, problem: Any, *path: int | str, **options: Any) -> Any:
        """The package's run; without a ``seed``, with one for the purpose ``path``."""
        from ..cluster.run import run

        self.used.add("run")
        return run(method, problem, **{"seed": self._stream(*path)} | options)

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
