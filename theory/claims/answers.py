"""What is handed in to be graded: a round or a number, and a compressor of one's own.

An answer, a round or a number, is called where the right one is, and what differs is named.  A compressor of one's own
is a function, a class or a value; a first look at it needs no claim.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compressors.base import quantize
from ..compressors.closed_forms import check
from ..compressors.codec import FunctionCompressor
from ..core import require
from .base import Claim
from .diagnosis import Case, draw
from .exercises import Exercise

# --- Grading of a round or a number ----------------------------------------------------------------------------------


class Seen(NamedTuple):
    """A part of an answer and the right one, for the arguments ``given``, by name."""

    given: dict[str, Any]
    found: Any
    right: Any


def faults_of(answer: Callable, exercise: Exercise) -> list[str]:
    """What is wrong with an answer; empty if nothing is.

    Parameters
    ----------
    answer : callable
        Called with the exercise's arguments, by their place.
    exercise : Exercise

    Returns
    -------
    list of str
        A sentence for each part that is wrong, or what kept it from being compared.
    """
    names, several = list(inspect.signature(exercise.right).parameters), len(exercise.parts) > 1
    seen: list[list[Seen]] = [[] for _ in exercise.parts]
    for arguments in exercise.at:
        given, mine = dict(zip(names, arguments, strict=False)), copy.deepcopy(arguments)  # others have defaults
        where = _shown(given).removeprefix(", ") or "called without arguments"
        try:
            with np.errstate(all="ignore"):
                found = answer(*mine)
        except Exception as error:
            return [f"{where} it raises {type(error).__name__}: {error}"]
        if found is None:
            return ["it returns None: is `return` missing?"]
        changed = [name for name, a, b in zip(given, arguments, mine, strict=True) if not _same(a, b, 0.0)]
        if changed:
            return [f"it changes its argument {changed[0]}, which the caller still needs: work on a copy"]
        several_found = isinstance(found, (tuple, list)) or (isinstance(found, np.ndarray) and found.ndim > 0)
        if several and not (several_found and len(found) == len(exercise.parts)):
            return [f"it returns {type(found).__name__}, not {len(exercise.parts)} values: {', '.join(exercise.parts)}"]
        right = exercise.right(*arguments)
        for part, one, other in zip(seen, found if several else [found], right if several else [right], strict=True):
            part.append(Seen(given, one, other))
    whole = [[one._replace(right=exercise.whole(one.right)) for one in part] for part in seen]
    if _all_same(seen, exercise.tolerance) or _all_same(whole, exercise.tolerance):
        return []
    swapped = zip(seen, reversed(seen), strict=True)
    turned = [[a._replace(found=b.found) for a, b in zip(*two, strict=True)] for two in swapped]
    if several and _all_same(turned, exercise.tolerance):
        return [f"the values are right, but in another order: return {', '.join(exercise.parts)}"]
    for words, mistake in exercise.mistakes.items():
        if all(_same(one.found, mistake(*one.given.values()), exercise.tolerance) for one in seen[0]):
            return [words]
    parts = zip(exercise.parts, seen, strict=True)
    return [said for name, part in parts if (said := _named(name, part, exercise.tolerance))]


def _same(a: Any, b: Any, tolerance: float) -> bool:
    """Whether two results are equal up to rounding; objects that are no numbers count as equal if they are alike."""
    if np.iscomplexobj(a):
        return False
    try:
        a, b = np.asarray(a, float), np.asarray(b, float)
    except (TypeError, ValueError):
        return a == b if isinstance(a, (str, list)) else type(a) is type(b)
    return a.shape == b.shape and bool(np.all(_close(a, b, tolerance)))


def _close(a: np.ndarray, b: np.ndarray, tolerance: float) -> np.ndarray:
    """Which entries are equal up to rounding, that of float32 messages too: beside the largest entry of an array."""
    most = np.max(np.abs(b[np.isfinite(b)]), initial=1e-3) if b.ndim else 1e-3
    return np.isclose(a, b, rtol=tolerance, atol=tolerance * most, equal_nan=True)


def _all_same(seen: Sequence[Sequence[Seen]], tolerance: float) -> bool:
    return all(_same(one.found, one.right, tolerance) for part in seen for one in part)


def _shown(given: dict[str, Any]) -> str:
    """Arguments in short."""
    said = [f"{name} of shape {value.shape}" for name, value in given.items() if isinstance(value, np.ndarray)]
    said = [f"{n} = {v}" for n, v in given.items() if isinstance(v, (bool, int, float))] + said
    return f", for {', '.join(said)}" if said else ""


def _guesses(given: dict[str, Any]) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What a wrong answer may be, in words, and as a function of the right one."""
    yield "has the wrong sign", lambda y: -y
    if not given:  # of two numbers one is often the square or the half of the other, by chance
        return
    yield "is one too large", lambda y: y + 1
    yield "is one too small", lambda y: y - 1
    yield "is 1 minus what it should be", lambda y: 1 - y
    yield "is cut off to a whole number", np.trunc
    yield "is the reciprocal of what it should be", lambda y: 1 / y
    yield "is the square of what it should be", lambda y: y * y
    yield "is the square root of what it should be: it has to be squared", np.sqrt
    yield "is zero", np.zeros_like
    for name, value in given.items():
        yield f"is the argument {name}, unchanged", functools.partial(_first, value)
    sizes = {f"the size of {name}": v.size for name, v in given.items() if isinstance(v, np.ndarray)}
    known = {name: v for name, v in given.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    factors = {"2": 2.0, "4": 4.0, "log(2)": math.log(2.0)} | known | sizes
    for name, value in factors.items():
        powers = {name: 1, f"1/{name}": -1, f"{name}^2": 2, f"1/{name}^2": -2, f"sqrt({name})": 0.5}
        for word, power in powers.items() if value > 0 else ():
            yield f"is {word} times what it should be", functools.partial(np.multiply, float(value) ** power)


def _first(value: Any, right: Any) -> Any:
    return value


def _named(part: str, seen: Sequence[Seen], tolerance: float) -> str:
    """What is wrong with a part; empty if nothing is."""
    if any(np.iscomplexobj(one.found) for one in seen):
        return f"{part} is complex: is an absolute value or a real part missing?"
    wrong = [one for one in seen if not _same(one.found, one.right, tolerance)]
    if not wrong:
        return ""
    first = wrong[0]
    try:
        found, right = np.asarray(first.found, float), np.asarray(first.right, float)
    except (TypeError, ValueError):
        return f"{part} is {first.found!r:.40}, not {first.right!r:.40}{_shown(first.given)}"
    if found.shape != right.shape:
        return f"{part} has shape {found.shape}, not {right.shape}: {'one number' if not right.shape else 'an array'}"
    with np.errstate(all="ignore"):
        for number, (words, _) in enumerate(_guesses(first.given)):
            if all(_same(one.found, _guess(one, number), tolerance) for one in seen):
                return f"{part} {words}"
    at = int(np.argmax(~_close(found, right, tolerance)))
    which = f" in entry {at}" if right.shape else ""
    beside = "" if len(wrong) == len(seen) else f"; it is right in {len(seen) - len(wrong)} of {len(seen)} cases"
    return f"{part} is {found.flat[at]:.6g}{which}, not {right.flat[at]:.6g}{_shown(first.given)}{beside}"


def _guess(one: Seen, number: int) -> Any:
    guesses = [guess for _, guess in _guesses(one.given)]
    return guesses[number](np.asarray(one.right, float)) if number < len(guesses) else None


# --- A compressor of one's own that is handed in to be graded --------------------------------------------------------


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
