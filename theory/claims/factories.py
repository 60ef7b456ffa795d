"""Factories: claims of a common form in one paragraph."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from ..measure import loglog_slope
from .base import Claim, claim
from .checks import NEAR, Check, Context, certain, equality, lower, rate, upper

RULES = {"equality": equality, "upper": upper, "lower": lower}


class Input(NamedTuple):
    """A test vector: its name in labels, and how to make it."""

    label: str
    make: Callable[[Context], np.ndarray]


def gaussian(d: int, power: int = 1) -> Input:
    """Standard normal entries, or an odd power of them."""
    name = {1: "Gaussian", 3: "Gaussian cubed"}.get(power, f"Gaussian to the power {power}")
    return Input(f"{name}, d={d}", lambda context: context.normal(d, power) ** power)


def equal_magnitudes(d: int) -> Input:
    """The vector of norm 1 whose entries all have the same magnitude, with both signs."""
    return Input(f"equal magnitudes, d={d}", lambda context: np.where(np.arange(d) % 3 == 0, -1.0, 1.0) / math.sqrt(d))


def spike(d: int) -> Input:
    """The first unit vector."""
    return Input(f"one spike, d={d}", lambda context: np.eye(1, d)[0])


def loglog_rate(
    label: str, x: ArrayLike, samples: ArrayLike, predicted: float, tolerance: float = NEAR, **window: Any
) -> Check:
    """A rate: the slope of the logarithm of E y in that of x, with a column of samples of y for each x.

    Parameters
    ----------
    label : str
        Description of the measured number.
    x : array_like, shape (n,)
        Such as numbers of steps or of workers, above 0.
    samples : array_like, shape (m, n), or list of n arrays of m samples
        Independent rows.
    predicted, tolerance : float
        As for `rate`.
    **window
        As for `theory.measure.loglog_slope`: between which values of x.

    Returns
    -------
    Check
        To be yielded by the claim's measurement.

    Examples
    --------
    >>> loglog_rate("of 1/N", [1, 2, 4], [[1.0] * 3, [0.5] * 3, [0.25] * 3], -1.0, 0.1).predicted
    -1.0
    """
    rows = np.stack(samples, axis=1) if isinstance(samples, list) else samples
    return rate(label, lambda level: loglog_slope(x, rows, level=level, **window), predicted, tolerance)


def crossing(low: float, high: float, below: Callable[[float], bool], halvings: int) -> float:
    """Where ``below`` stops to hold, between ``low`` and ``high``, by bisection: the last point at which it held.

    Examples
    --------
    >>> round(crossing(0.0, 2.0, lambda x: x * x < 2.0, 40), 6)
    1.414214
    """
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def compressor_law(
    id: str,
    make: Callable,
    *,
    at: Sequence[tuple],
    quantity: str = "variance",
    formula: Callable[..., float] | None = None,
    samples: int = 16_000,
    quick: int = 2_000,
    mutants: Mapping[str, Callable],
    **facts: Any,
) -> Claim:
    """A claim about E of a quantity of a compressor's message, at given vectors.

    Parameters
    ----------
    id : str
    make : callable
        Makes the compressor from the settings of a case; a wrong one, or one of your own, may be a function
        ``(v, samples, rng)`` that returns so many messages as rows.
    at : sequence of (Input, dict) or (Input, dict, rule)
        Cases: a vector, the settings, and "equality" (the default), "upper" or "lower"; then "certain" if the quantity
        is known to be the same in every draw.
    quantity : {"variance", "bias", "nonzeros", "bits", "second"}
        "variance" is E||Q(v) - v||^2/||v||^2, "bias" ||E Q(v) - v||^2/||v||^2; the others as in `moments`.
    formula : callable, optional
        Its prediction, from the vector and the settings.  By default the formula that the claim is about (``of``),
        called with those of v, d and the settings that are its arguments; 0 without one, and for the bias.
    samples, quick : int
        Number of draws for a case.
    mutants : dict
        Name to what is called in place of ``make``.
    **facts
        As for `claim`.

    Returns
    -------
    Claim

    Raises
    ------
    ValueError
        If a rule is unknown, or `claim` refuses; when it is verified, if the formula needs another setting.

    Examples
    --------
    >>> from theory.claims import find_claim
    >>> find_claim("randk.variance").formula
    'rand_k_variance'
    """
    for rule in [case[2] for case in at if len(case) > 2]:
        require(rule in RULES, "at", rule, " or ".join(RULES))
    about = facts.get("of") if quantity != "bias" else None  # E Q(v) = v: there is nothing to compute
    predict = formula or (_prediction(about, quantity) if about else None)

    def measure(context: Context) -> Iterator[Check]:
        for number, (vector, settings, *words) in enumerate(at):
            v = vector.make(context)
            found = context.moments(context.subject(**settings), v, context.samples(samples, quick), number)
            given = "".join(f", {name}={value:g}" for name, value in settings.items())
            predicted = predict(v, **settings) if predict else 0.0
            rule, measured = RULES[words[0] if words else "equality"], getattr(found, quantity)
            label = f"{quantity}, {vector.label}{given}"
            yield rule(label, certain(measured) if "certain" in words else measured, predicted)

    return claim(id, subject=make, mutants=mutants, **facts)(measure)


def _prediction(of: Callable[..., float], quantity: str) -> Callable[..., float]:
    """A formula as a function of the vector and the settings; per ||v||^2 if it is that of one vector."""
    names = inspect.signature(of).parameters
    needed = {name for name, one in names.items() if one.default is one.empty}

    def predicted(v: np.ndarray, **settings: Any) -> float:
        given = {name: value for name, value in ({"v": v, "d": v.size} | settings).items() if name in names}
        lacking = ", ".join(sorted(needed - set(given)))
        require(
            not lacking, "at", f"settings without {lacking}", "settings for all arguments of the formula but v and d"
        )
        return of(**given) / (float(v @ v) if "v" in names and quantity in ("variance", "bias") else 1.0)

    return predicted
