"""What is wrong with a compressor: its messages are compared with those of the right one, and of known wrong ones.

A *case* is a vector and the settings under which a claim measures.  Every suspicion predicts the law of the messages:
a mutant of a claim, the right compressor with a factor or without signs, coordinates that share one random number.  The
first that agrees with what was drawn in all cases is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..compressors.codec import compress
from ..core import require
from ..core.random import derive, generator, key

DRAWS, FEW = 400, 40  # messages that are compared in each case; without chance
FAR = 6.0  # standard errors; at 400 draws of d = 1000 coordinates a right compressor stays below
CLOSE = 1e-5  # relative difference of numbers that are equal but for rounding, also in float32


class Case(NamedTuple):
    """A vector at which a claim measures, with the settings; ``given`` calls a factory as the claim does."""

    label: str
    v: np.ndarray
    settings: dict[str, Any]
    given: tuple[tuple, dict]

    def make(self, factory: Callable) -> Any:
        """What the factory makes of the settings."""
        return factory(*self.given[0], **self.given[1])


class Pair(NamedTuple):
    """Messages in question and right ones, as rows, for the vector v."""

    found: np.ndarray
    right: np.ndarray
    v: np.ndarray


class Suspicion(NamedTuple):
    """What may be wrong: a sentence, and messages that would follow, from a case, right messages and a seed."""

    sentence: str
    messages: Callable[[Case, np.ndarray, int], np.ndarray]


def draw(c: Any, v: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Messages of a compressor, or of a function ``(v, samples, rng)``, as rows."""
    if callable(c):
        return np.asarray(c(v, draws, generator(key(seed, "draws"))), float)
    stream = key(seed, "draws")
    return np.array([compress(c, v, int(derive(stream, i)), wire_dtype=np.float64) for i in range(draws)])


# --- two samples ------------------------------------------------------------------------------------------------------


def _distances(a: np.ndarray, b: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Distances of two means in standard errors, one for each column; differences by rounding do not count."""
    reach = np.maximum(a.max(axis=0), b.max(axis=0)) - np.minimum(a.min(axis=0), b.min(axis=0))
    noise = np.zeros(a.shape[1])
    for one in (a, b):
        spread = one.var(axis=0)
        # a rare message may be far away
        noise += np.where(spread > 0, spread / len(one) + (reach / len(one)) ** 2, 0.0)
    noise = np.sqrt(noise)
    distance = np.abs(a.mean(axis=0) - b.mean(axis=0))
    distance = np.where(distance <= CLOSE * scale, 0.0, distance)
    return np.divide(distance, noise, out=np.where(distance > 0, np.inf, 0.0), where=noise > 0.01 * CLOSE * scale)


def _apart(a: np.ndarray, b: np.ndarray, scale: float | np.ndarray) -> float:
    """The largest distance of two means in standard errors, over the columns."""
    return float(np.max(_distances(a, b, scale)))


def _sums(rows: np.ndarray, v: np.ndarray) -> np.ndarray:
    """For each message the squared error, the squared norm, the error along v, and the number of non-zeros.

    What rounding left in place of 0 is none of them.
    """
    error, size = rows - v, float(v @ v)
    nonzero = np.abs(rows) > 1e-12 * math.sqrt(size)
    return np.column_stack(
        [
            (error**2).sum(axis=1) / size,
            (rows**2).sum(axis=1) / size,
            error @ v / size,
            np.count_nonzero(nonzero, axis=1) / v.size,
        ]
    )


def _same_coordinates(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> bool:
    """Whether each coordinate, and the means of all sums, agree."""
    scale = math.sqrt(float(v @ v) / v.size)
    return _apart(a, b, scale) < FAR and _apart(_sums(a, v), _sums(b, v), 1.0) < FAR


def _same_spread(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> bool:
    """Whether the sums vary equally much between messages, as they do if the coordinates are drawn alike."""
    first, second = (_sums(rows, v) for rows in (a, b))
    squares = [(sums - sums.mean(axis=0)) ** 2 for sums in (first, second)]
    return _apart(squares[0], squares[1], np.maximum(CLOSE, squares[1].mean(axis=0))) < FAR


def _same(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> bool:
    return _same_coordinates(a, b, v) and _same_spread(a, b, v)


# --- suspicions -------------------------------------------------------------------------------------------------------


def _factors(case: Case) -> dict[str, float]:
    """Factors that are easily forgotten, or applied where they should not be."""
    v, d = case.v, float(case.v.size)
    two, one, most = math.sqrt(float(v @ v)), float(np.abs(v).sum()), float(np.abs(v).max())
    found = {"-1": -1.0, "2": 2.0, "d": d, "sqrt(d)": math.sqrt(d), "||v||": two, "||v||^2": two * two}
    found |= {"||v||_1": one, "max|v_i|": most, "||v||_1/d": one / d}
    for name, value in case.settings.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 and math.isfinite(value):
            found |= {
                name: float(value),
                f"{name}/d": value / d,
                f"({name}/d)^2": (value / d) ** 2,
                f"{name}/||v||": value / two,
            }
            found |= {f"{name}/max|v_i|": value / most, f"{name}/||v||^2": value / two**2, f"{name}^2": value**2}
    for name in [name for name in found if name != "-1"]:
        turned = "/".join(reversed(name.split("/"))) if "/" in name and "(" not in name else f"1/{name}"
        found.setdefault(turned, 1.0 / found[name])
    return found


def _scaled(name: str, case: Case, right: np.ndarray, seed: int) -> np.ndarray:
    return _factors(case)[name] * right


def _selected(order: Callable[[np.ndarray], np.ndarray], case: Case, right: np.ndarray, seed: int) -> np.ndarray:
    """As many entries as the right compressor keeps, but those that come first in another order."""
    require(_still(right), "truth", "a compressor that draws", "one that selects without chance")
    kept = int(np.count_nonzero(right[0]))
    rows, chosen = np.zeros((2, case.v.size)), order(case.v)[:kept]
    rows[:, chosen] = case.v[chosen]
    return rows


SELECTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "it keeps the entries that are largest with their signs, not the largest magnitudes: sort by |v_i|": (
        lambda v: np.argsort(-v, kind="stable")
    ),
    "it keeps the smallest magnitudes: the order is turned round": lambda v: np.argsort(np.abs(v), kind="stable"),
}


def _of_mutant(mutant: Callable, case: Case, right: np.ndarray, seed: int) -> np.ndarray:
    return draw(case.make(mutant), case.v, DRAWS, seed)


def _suspicions(mutants: dict[str, Callable], cases: Sequence[Case]) -> Iterator[Suspicion]:
    for name, mutant in mutants.items():
        yield Suspicion(f"it measures like a known error: {name}", partial(_of_mutant, mutant))
    yield Suspicion(
        "the signs are lost: Q(v)_i >= 0 also where v_i < 0",
        lambda case, right, seed: np.abs(right),
    )
    for name in _factors(cases[0]):
        if all(name in _factors(case) for case in cases):
            what = "all signs are the opposite" if name == "-1" else f"it is {name} times what it should be"
            yield Suspicion(f"right up to a factor: {what}", partial(_scaled, name))
    for sentence, order in SELECTIONS.items():
        yield Suspicion(sentence, partial(_selected, order))


def _fits(
    suspicion: Suspicion, cases: Sequence[Case], found: Sequence[np.ndarray], right: Sequence[np.ndarray], seed: int
) -> bool:
    """Whether the suspicion agrees with the messages in all cases."""
    for case, rows, wanted in zip(cases, found, right, strict=True):
        try:
            predicted = suspicion.messages(case, wanted, seed)
        except (TypeError, ValueError):  # settings that the mutant does not have, or that are outside its domain
            return False
        if not _same_coordinates(rows, predicted, case.v) and not _equivalent((rows, predicted, wanted), case.v):
            return False
    return True


def _equivalent(samples: Sequence[np.ndarray], v: np.ndarray) -> bool:
    """Whether messages without chance are equally good: of entries of equal magnitude any may be kept."""
    sums = [_sums(rows[:1], v) for rows in samples]
    return all(map(_still, samples)) and all(np.allclose(one, sums[0], rtol=0.0, atol=1e-9) for one in sums[1:])


# --- other vectors ----------------------------------------------------------------------------------------------------


def probes(cases: Sequence[Case], truth: Callable, seed: int) -> list[Case]:
    """Other vectors for the settings of the cases: scaled, padded, shorter, huge and tiny ones."""
    found = []
    for case in {case.label: case for case in cases}.values():
        v = generator(key(seed, "probe")).standard_normal(case.v.size)
        v[[0, -1]] = 4.0, -5.0  # an error at an end is seen, also if only large entries are sent
        half = np.where(np.arange(v.size) % 2, 0.0, v)
        others = {
            "a Gaussian vector": v,
            "1000 times a Gaussian vector": 1000.0 * v,
            "a huge vector, 1e12 times a Gaussian one": 1e12 * v,
            "a tiny vector, 1e-12 times a Gaussian one (is a constant added to its norm?)": 1e-12 * v,
            "a vector of which every other entry is 0": half,
            "a vector of whole numbers": np.rint(3.0 * v),
            "a vector of one non-zero entry": np.where(np.arange(v.size) == v.size // 2, -2.0, 0.0),
            "a vector of another length": v[: (v.size + 1) // 2],
        }
        for label, vector in others.items():
            other = case._replace(label=label, v=vector)
            try:
                draw(other.make(truth), vector, 1, seed)
            except (TypeError, ValueError, IndexError):  # its length is part of the settings, or fewer than k
                continue
            found.append(other)
    return one_message(truth, found)


def _scales(make: Callable, case: Case, seed: int) -> bool:
    """Whether Q(8 v) has the law of 8 Q(v)."""
    longer = draw(case.make(make), 8.0 * case.v, DRAWS, seed)
    return _same_coordinates(longer, 8.0 * draw(case.make(make), case.v, DRAWS, seed + 1), 8.0 * case.v)


def same_law(pair: Pair) -> bool:
    """Whether messages have the law of the right ones, as far as coordinates and sums show it."""
    return _same_coordinates(*pair)


# --- diagnosis --------------------------------------------------------------------------------------------------------


def _still(rows: np.ndarray) -> bool:
    return bool((rows == rows[0]).all())


def pairs_of(subject: Callable, truth: Callable, cases: Sequence[Case], seed: int = 0) -> list[Pair]:
    """Messages of a compressor and of the right one, in each case.

    Parameters
    ----------
    subject, truth : callable
        Factories of the compressor in question and of the right one.
    cases : sequence of Case
    seed : int

    Returns
    -------
    list of Pair
    """
    found = []
    for case in cases:
        draws = FEW if _still(draw(case.make(truth), case.v, 8, seed)) else DRAWS
        mine, right = draw(case.make(subject), case.v, draws, seed), draw(case.make(truth), case.v, draws, seed + 1)
        found.append(Pair(mine, right, case.v))
    return found


def one_message(truth: Callable, cases: Sequence[Case]) -> list[Case]:
    """The cases, each once, but those where a right compressor without chance may choose between equal entries."""
    found = {}
    for case in cases:
        turned = draw(case.make(truth), case.v[::-1].copy(), 4, 0)[:, ::-1]
        messages = draw(case.make(truth), case.v, 4, 0)
        alike = np.allclose(messages, turned, rtol=CLOSE, atol=0.0)
        if alike or not (_still(messages) and _still(turned)):
            found[case.v.tobytes(), case.label] = case
    return list(found.values())


def is_biased(pairs: Sequence[Pair]) -> bool:
    """Whether the mean of the messages is not v where that of the right ones is: few claims measure that, too."""
    return any(_bias(pair.right, pair.v) < FAR <= _bias(pair.found, pair.v) for pair in pairs)


def _bias(rows: np.ndarray, v: np.ndarray) -> float:
    """How far <E Q(v) - v, v> and ||E Q(v) - v||^2 are from 0, in standard errors."""
    error, size = rows - v, float(v @ v)
    along, squared = error @ v / size, (error[::2] * error[1::2]).sum(axis=1) / size  # of two independent messages
    return max(_apart(sums[:, None], np.zeros((len(rows), 1)), 1.0) for sums in (along, squared))


def sends_more(pairs: Sequence[Pair], cases: Sequence[Case]) -> list[str]:
    """Where all messages have more non-zeros than the right ones, as from a threshold that several entries reach."""
    for pair, case in zip(pairs, cases, strict=True):
        ours, right = np.count_nonzero(pair.found, axis=1).min(), np.count_nonzero(pair.right, axis=1).max()
        if ours > right:
            return [f"on {case.label} it sends {ours} coordinates, not {right}: are several of them equally large?"]
    return []


def shares_its_coins(pairs: Sequence[Pair]) -> bool:
    """Whether each coordinate has the right law, and all together have not: they are not drawn independently."""
    return all(_same_coordinates(*pair) for pair in pairs) and not all(_same_spread(*pair) for pair in pairs)


def varies_in_number(pairs: Sequence[Pair]) -> bool:
    """Whether the number of non-zeros varies between messages, where that of the right ones does not."""
    ours, right = (
        [np.count_nonzero(rows, axis=1) for rows in side] for side in zip(*(p[:2] for p in pairs), strict=True)
    )
    return all(np.ptp(counts) == 0 for counts in right) and any(np.ptp(counts) > 0 for counts in ours)


def diagnose(
    pairs: Sequence[Pair],
    subject: Callable,
    truth: Callable,
    mutants: dict[str, Callable],
    cases: Sequence[Case],
    seed: int = 0,
) -> list[str]:
    """What is wrong with a compressor that a claim refuted.

    Parameters
    ----------
    pairs : sequence of Pair
        Its messages, and right ones.
    subject, truth : callable
        The factories of the compressor and of the right one.
    mutants : dict
        Factories of known wrong ones, by name.
    cases : sequence of Case
    seed : int

    Returns
    -------
    list of str
        Sentences; the first names the error, if it is a known one.
    """
    found, right = [pair.found for pair in pairs], [pair.right for pair in pairs]
    for suspicion in _suspicions(mutants, cases):
        if _fits(suspicion, cases, found, right, seed + 2) and not _fits(suspicion, cases, right, right, seed + 2):
            return [suspicion.sentence]
    if all(np.array_equal(rows, np.broadcast_to(case.v, rows.shape)) for rows, case in zip(found, cases, strict=True)):
        return ["it returns v itself: nothing is compressed"]
    if all(map(_still, found)) and not all(map(_still, right)):
        looks = all(_one_of(rows[0], wanted, case.v) for rows, wanted, case in zip(found, right, cases, strict=True))
        return [
            "every call returns the same message, which looks like one of the right ones: is a generator with a fixed "
            "seed made inside? Draw from the rng that is passed"
            if looks
            else "nothing is random: every call returns the same message, and its mean is not v"
        ]
    most = max(cases, key=lambda case: np.unique(np.abs(case.v)).size)
    if _scales(truth, most, seed + 3) and not _scales(subject, most, seed + 3):
        return ["Q(8 v) is not 8 Q(v): is a norm forgotten, or a constant used that does not grow with v?"]
    return described(pairs, cases)


def _one_of(row: np.ndarray, rows: np.ndarray, v: np.ndarray) -> bool:
    """Whether a message could be one of these: no sum is outside their range by more than their spread."""
    sums, known = _sums(row[None], v)[0], _sums(rows, v)
    spread = known.std(axis=0)
    return bool(np.all(np.abs(sums - known.mean(axis=0)) <= FAR * spread + CLOSE))


def described(pairs: Sequence[Pair], cases: Sequence[Case]) -> list[str]:
    """The first case that differs, in numbers."""
    for (rows, wanted, _), case in zip(pairs, cases, strict=True):
        ours, theirs = _sums(rows, case.v), _sums(wanted, case.v)
        if _same(rows, wanted, case.v):
            continue
        said, scale = [], math.sqrt(float(case.v @ case.v) / case.v.size)
        distances = _distances(rows, wanted, scale)
        j, unseen = int(np.argmax(distances)), (rows == 0.0).all(axis=0)
        if distances[j] >= FAR and unseen[j] and _bias(rows, case.v) < FAR:  # or it is sent more rarely than was looked
            said.append(f"in {len(rows)} messages coordinate {j} was never sent (v_{j} = {case.v[j]:.4g})")
        elif distances[j] >= FAR:
            said.append(
                f"the means differ, most at coordinate {j}: E Q(v)_{j} = {rows[:, j].mean():.4g}, "
                f"not {wanted[:, j].mean():.4g} (v_{j} = {case.v[j]:.4g})"
            )
        for column, name in ((0, "E||Q(v) - v||^2/||v||^2"), (3, "the share of non-zeros")):
            if _apart(ours[:, [column]], theirs[:, [column]], 1.0) >= FAR:
                said.append(f"{name} is {ours[:, column].mean():.4g}, not {theirs[:, column].mean():.4g}")
        if said:
            return [f"on {case.label}: {'; '.join(said)}"]
    return []
