"""A compressor of one's own that is handed in to be graded: a function, a class or a value; and a first look at it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..compressors.base import quantize
from ..compressors.closed_forms import check
from ..compressors.numpy_function import FunctionCompressor
from ..core import require
from .base import Claim
from .diagnosis import Case, draw


class Fault(Exception):
    """Something that is wrong with a compressor, whatever it should do."""


# --- what was handed in -----------------------------------------------------------------------------------------------


class Handed(NamedTuple):
    """A compressor as it was handed in: a function of a vector, or a factory of compressors; and its own settings."""

    function: Any
    factory: Any
    settings: dict[str, Any]

    def made(self, case_settings: dict[str, Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """What is measured in a case."""
        if self.factory is not None:
            made = self.factory(*args, **kwargs)
            made = made.function if isinstance(made, FunctionCompressor) else made
            if not callable(made) or any(p.name == "samples" for p in _parameters(made)):
                return made  # a compressor, or a function of many messages, as in `moments`
            return _many(functools.partial(_call, made, {}))
        return _many(functools.partial(_call, self.function, case_settings))


def _call(function: Callable, settings: dict[str, Any], v: np.ndarray, rng: np.random.Generator) -> Any:
    """One message: the vector first, ``rng`` by its name or place, the settings by name, else in their order."""
    parameters = _parameters(function)[1:]
    left = {name: value for name, value in settings.items() if not isinstance(value, np.ndarray)}
    given = {p.name: left.pop(p.name) for p in parameters if p.name in left}
    if any(p.name == "rng" for p in parameters):
        given["rng"] = rng
    others = [p.name for p in parameters if p.name not in given and p.default is p.empty]
    if "rng" not in given and len(others) > len(left):  # a generator under another name
        given[others.pop(0)] = rng
    return function(v, **given | dict(zip(others, left.values(), strict=False)))


def _parameters(function: Callable) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some NumPy functions have no signature
        return []
    return [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY, p.KEYWORD_ONLY)]


def _many(once: Callable) -> Callable:
    """A function of one message as one of many, as `moments` takes it."""

    def messages(v: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        try:
            return np.array([np.asarray(once(v.copy(), rng), float) for _ in range(samples)])
        except Exception as error:
            raise Fault(f"it raises {type(error).__name__}: {error}") from error

    messages.once = once  # type: ignore[attr-defined]
    return messages


def handed_in(mine: Any, claim: Claim, settings: dict[str, Any]) -> Handed:
    """What was handed in; raise ``TypeError`` if it is no compressor."""
    if isinstance(mine, FunctionCompressor):
        return Handed(mine.function, None, settings)
    if hasattr(mine, "_fields") and quantize.implements(type(mine)):
        return Handed(None, lambda *args, **kwargs: mine, mine._asdict() | settings)
    require(callable(mine), "compressor", mine, "a compressor, its class, or a function of a vector", TypeError)
    function = mine.func if isinstance(mine, functools.partial) else mine
    required = [p.name for p in _parameters(mine) if p.default is p.empty]
    makes = not isinstance(mine, np.ufunc) and (not required or required[0] in set(_names(claim)) - {"v"})
    return Handed(None, mine, settings) if makes or isinstance(function, type) else Handed(mine, None, settings)


def _names(claim: Claim) -> list[str]:
    return [p.name for p in _parameters(claim.subject)]


# --- settings ---------------------------------------------------------------------------------------------------------


def settings_of(claim: Claim, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments with which a claim calls its subject, by name."""
    names = [name for name in _names(claim) if name not in kwargs]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def shown(settings: dict[str, Any]) -> str:
    """The settings as a string, without vectors."""
    said = ", ".join(f"{name} = {value}" for name, value in settings.items() if not isinstance(value, np.ndarray))
    return said or "no settings"


# --- what can be seen without the claim -------------------------------------------------------------------------------


def look_at(handed: Handed, case: Case) -> str:
    """What one call at v = 0 shows to be wrong, or ""; raise a `Fault` if a call at v cannot be measured."""
    args, kwargs = case.given
    try:
        made = handed.made(case.settings, args, kwargs)
    except Exception as error:
        raise Fault(f"it cannot be made with {shown(case.settings)}: {type(error).__name__}: {error}") from None
    if not hasattr(made, "once"):
        try:
            if not callable(made):
                check(made, case.v.size)
            draw(made, case.v, 1, 0)
        except Exception as error:
            raise Fault(f"{made!r} fails on {case.label}: {type(error).__name__}: {error}") from None
        return ""
    once, where = made.once, f"for v of length {case.v.size}, {shown(case.settings)}"
    v, rng = case.v.copy(), np.random.default_rng(0)
    try:
        with np.errstate(all="ignore"):
            found = once(v, rng)
            again = once(case.v.copy(), np.random.default_rng(0))
            at_zero = once(np.zeros(case.v.size), rng)
    except Exception as error:
        raise Fault(f"{where} it raises {type(error).__name__}: {error}") from None
    if found is None:
        raise Fault("it returns None: is `return` missing?")
    if np.asarray(found).dtype.kind in "biuc" and not (np.abs(found) == 1).all():  # bare signs are another error
        dtype = np.asarray(found).dtype
        raise Fault(f"it returns an array of {dtype}, which cannot hold the message: return an array of floats")
    try:
        found, again, at_zero = (np.asarray(one, float) for one in (found, again, at_zero))
    except (TypeError, ValueError):
        raise Fault(f"it returns {type(found).__name__}, not an array of {case.v.size} numbers") from None
    if found.shape != case.v.shape:
        raise Fault(f"it returns an array of shape {found.shape}, not {case.v.shape}: one number for each coordinate")
    if not np.array_equal(v, case.v):
        raise Fault("it changes v itself, and the caller, who needs v - Q(v), has lost it: work on v.copy()")
    if not np.isfinite(found).all():
        raise Fault(f"{where} the message is not finite")
    if not np.array_equal(found, again):
        raise Fault("its random numbers do not come from rng: with the same rng it returns something else")
    if not np.isfinite(at_zero).all():
        return "v = 0 gives 0/0, a message of NaN: return zeros if the norm is 0"
    return "v = 0 is not sent as 0" if at_zero.any() else ""
