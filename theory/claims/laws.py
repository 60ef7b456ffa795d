"""Factories: claims of a common form in one paragraph."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .base import Claim, claim
from .checks import Context, equality, lower, upper

__all__ = ["Input", "compressor_law", "equal_magnitudes", "gaussian", "spike"]

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
        Makes the compressor from the settings of a case.
    at : sequence of (Input, dict) or (Input, dict, rule)
        Cases: a vector, the settings, and "equality" (the default), "upper" or "lower".
    quantity : {"variance", "bias", "nonzeros", "bits", "second"}
        "variance" is E||Q(v) - v||^2/||v||^2, "bias" ||E Q(v) - v||^2/||v||^2; the others as in `moments`.
    formula : callable, optional
        Its prediction, from the vector and the settings.  By default the formula that the claim is about (``of``),
        called with those of v, d and the settings that are its arguments; 0 without one.
    samples, quick : int
        Number of draws for a case.
    mutants : dict
        Name to what is called in place of ``make``.
    **facts
        As for `claim`.

    Returns
    -------
    Claim

    Examples
    --------
    >>> from theory.claims import find_claim
    >>> find_claim("randk.variance").formula
    'rand_k_variance'
    """
    predict = formula or (_prediction(facts["of"], quantity) if facts.get("of") else None)

    def measure(context: Context):
        for number, (vector, settings, *rule) in enumerate(at):
            v = vector.make(context)
            found = context.moments(context.subject(**settings), v, context.samples(samples, quick), number)
            given = "".join(f", {name}={value:g}" for name, value in settings.items())
            predicted = predict(v, **settings) if predict else 0.0
            yield RULES[rule[0] if rule else "equality"](
                f"{quantity}, {vector.label}{given}", getattr(found, quantity), predicted
            )

    return claim(id, subject=make, mutants=mutants, **facts)(measure)


def _prediction(of: Callable[..., float], quantity: str) -> Callable[..., float]:
    """A formula as a function of the vector and the settings; per ||v||^2 if it is that of one vector."""
    names = inspect.signature(of).parameters

    def predicted(v, **settings):
        given = {name: value for name, value in ({"v": v, "d": v.size} | settings).items() if name in names}
        return of(**given) / (float(v @ v) if "v" in names and quantity in ("variance", "bias") else 1.0)

    return predicted
