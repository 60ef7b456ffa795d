"""Grading of a round or a number: an answer is called where the right one is, and what differs is named."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .exercises import Exercise


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
    if _all_same(seen, exercise.tolerance):
        return []
    if several:
        swapped = zip(seen, reversed(seen), strict=True)
        turned = [[a._replace(found=b.found) for a, b in zip(*two, strict=True)] for two in swapped]
        if _all_same(turned, exercise.tolerance):
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
