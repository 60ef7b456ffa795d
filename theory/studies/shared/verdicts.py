"""How studies decide: all rules for verdicts.

A statement has trials, one for each case, and each has one of the words below.  What was computed or counted needs no
interval: its trial is True or False.  What depends on a seed is decided for the *typical* seed: by the exact sign test
of the median of the differences at equal seeds, which errs in at most `ERROR` of all cases on either side, whatever the
distribution.  A difference equal to the margin counts for neither side, as does a pair of which both runs diverged; a
run that diverged alone is the worse one.  Six seeds are the fewest that can decide.  Times are measured so often, in
turn, and follow the same rule.

The verdict on a statement is that of its trials, and nothing else can set it.  "holds" and "fails" need all of them,
and no correction; where one trial suffices ("fails" beside undecided ones, "in part") its chance of an error is
corrected for the number of trials (Holm's first step).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import require
from ...measure import Interval, median_interval
from ...measure.intervals import exactly, sign_chance
from ...plots.appearance import number
from ...reporting.files import nearest
from ...reporting.scale import FAILS, HOLDS, LOOSELY, OPEN, PART, SHARP, VACUOUS

ERROR = 0.025  # how often a rule may say "holds", or "fails", where the truth is at the margin
LEVEL = 1.0 - 2.0 * ERROR  # of the intervals of medians beside verdicts, and of means in tables
FAR_OFF = 3.0  # quartile distances beyond the quartiles: Tukey's "far out"; and by a quarter of the median
FEW = 6  # so many trials are shown with their medians
ORDER = (FAILS, OPEN, VACUOUS, LOOSELY, HOLDS)  # of trials, from weak to strong
AGREE = ORDER[2:]


class Trial(NamedTuple):
    """The verdict on one case.

    Attributes
    ----------
    verdict : str
    shown : str
        Its numbers, for the page, which adds the verdict.
    values : dict
        Its numbers by name.
    chance : float
        How often the rule says this, or more, where the truth is at the margin; 0 for what was computed.
    seeds : str
        The typical difference with its interval, and how many seeds are near it.
    """

    verdict: str
    shown: str = ""
    values: Mapping[str, Any] = {}
    chance: float = 0.0
    seeds: str = ""


def as_trial(trial) -> Trial:
    """A trial of a bool, a verdict, or a `Trial`.

    Raises
    ------
    ValueError
        For anything else: a misspelt verdict would be one of its own.
    """
    if isinstance(trial, (bool, np.bool_)):
        return Trial(HOLDS if trial else FAILS)
    found = trial if isinstance(trial, Trial) else Trial(trial)
    known = isinstance(found.verdict, str) and found.verdict in ORDER
    require(known, "trial", trial, f"a bool, a Trial, or one of {sorted(ORDER)}")
    return found


def word(trial) -> str:
    """The verdict of a trial."""
    return as_trial(trial).verdict


def judged(trials: Iterable[Any]) -> str:
    """The verdict on a statement from its trials: bools, verdicts, or trials.

    The weakest if none fails, or all do; "undecided" without trials.  If some fail, for sure among so many, "in part"
    if others agree, for sure, and else "fails".

    Examples
    --------
    >>> judged([True, True]), judged([True, False]), judged(["holds", "undecided"])
    ('holds', 'in part', 'undecided')
    >>> judged(["fails", "undecided"]), judged(["fails", "undecided", "holds"]), judged([])
    ('fails', 'in part', 'undecided')
    >>> judged([Trial("fails", chance=1 / 64), "undecided"]), judged([Trial("fails", chance=1 / 128), "undecided"])
    ('undecided', 'fails')
    """
    found = [as_trial(trial) for trial in trials]
    words = {one.verdict for one in found}
    if not words or FAILS not in words or len(words) == 1:
        return min(words, key=ORDER.index, default=OPEN)
    sampled = sum(one.chance > 0.0 or one.verdict == OPEN for one in found)
    sure = {one.verdict for one in found if one.chance * sampled <= ERROR}
    if FAILS not in sure:
        return OPEN
    return PART if sure.intersection(AGREE) else FAILS


def both(*trials) -> Trial:
    """The verdict on one case that asks for several things: the weakest; corrected where one of them fails.

    Examples
    --------
    >>> both(True, "undecided").verdict, both("undecided", False).verdict, both(True, "holds").verdict
    ('undecided', 'fails', 'holds')
    """
    found = [as_trial(trial) for trial in trials]
    sampled = [one for one in found if one.chance > 0.0 or one.verdict == OPEN]
    weakest = min(found, key=lambda one: (ORDER.index(one.verdict), one.chance))
    if weakest.verdict != FAILS:
        return weakest._replace(chance=max(one.chance for one in found))
    chance = weakest.chance * len(sampled)
    return weakest._replace(verdict=FAILS if chance <= ERROR else OPEN, chance=chance)


def opposite(trial) -> Trial:
    """The verdict on the contrary: what holds fails.

    Examples
    --------
    >>> opposite("holds").verdict, opposite("undecided").verdict
    ('fails', 'undecided')
    """
    found = as_trial(trial)
    return found._replace(verdict={HOLDS: FAILS, FAILS: HOLDS}.get(found.verdict, found.verdict))


# --- rules for values by seed -----------------------------------------------------------------------------------------


def at_most(mine, theirs, margin: float = 0.0) -> Trial:
    """Whether a value is, for the typical seed, at most ``margin`` above another at the same seed.

    Parameters
    ----------
    mine, theirs : array_like of shape (seeds,), or Interval
        Values seed by seed, where less is better; infinite where a run diverged, or never got there.  ``theirs`` may be
        a number.  Two intervals must not overlap.
    margin : float
        A stated number.

    Returns
    -------
    Trial
        "undecided" with fewer than six seeds, since one difference in 32 has the same sign at five seeds by chance.

    Raises
    ------
    ValueError
        If the two have different numbers of seeds.

    Examples
    --------
    >>> six = np.array([1.0, 1.1, 0.9, 1.2, 1.0, 0.8])
    >>> found = at_most(six, six + [0.1, 0.2, 0.1, 0.3, 0.1, 9.0])
    >>> found.verdict, found.chance  # 1/64
    ('holds', 0.0156)
    >>> found.seeds
    'difference -0.15 [-9, -0.1], 5 of 6 seeds, 1 far off'
    >>> at_most(six, six[::-1]).verdict, at_most(six[:5], 9.0).verdict
    ('undecided', 'undecided')
    """
    if isinstance(mine, Interval):
        return _apart(mine, theirs if isinstance(theirs, Interval) else exactly(theirs + margin))
    mine, theirs = _pairs(mine, theirs)
    with np.errstate(invalid="ignore"):
        differences = mine - theirs
    return _by_signs(differences - margin, differences, "difference")


def below(mine, theirs, by: float = 0.0) -> Trial:
    """Whether a value is more than ``by`` below another, for the typical seed; parameters as for `at_most`.

    Examples
    --------
    >>> six = np.array([1.0, 1.1, 0.9, 1.2, 1.0, 0.8])
    >>> below(six, six).verdict, below(six, six + 0.2, by=0.1).verdict, below(six, six + 0.2, by=0.3).verdict
    ('undecided', 'holds', 'fails')
    """
    return at_most(mine, theirs, -by)


def at_most_times(mine, theirs, factor: float) -> Trial:
    """Whether a value is at most ``factor`` times another, for the typical seed; parameters as for `at_most`.

    Examples
    --------
    >>> ten = 10.0 ** np.arange(6)
    >>> at_most_times(1.5 * ten, ten, 2.0).seeds
    'ratio 1.5 [1.5, 1.5], 6 of 6 seeds'
    """
    mine, theirs = _pairs(mine, theirs)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _by_signs(mine - factor * theirs, mine / theirs, "ratio")


def within(mine, theirs, factor: float) -> Trial:
    """Whether the ratio of two values lies between 1/``factor`` and ``factor``, for the typical seed.

    Examples
    --------
    >>> ten = 10.0 ** np.arange(7)
    >>> within(ten, 1.5 * ten, 2.0).verdict, within(ten, 4.0 * ten, 2.0).verdict
    ('holds', 'fails')
    """
    above = at_most_times(mine, theirs, factor)
    return both(above, at_most_times(theirs, mine, factor))._replace(seeds=above.seeds)


def between(found: Interval, low: float, high: float) -> Trial:
    """Whether a value lies between two numbers, by its interval.

    Examples
    --------
    >>> between(Interval(0.5, 0.45, 0.55), 0.4, 0.6).verdict, between(Interval(0.5, 0.3, 0.7), 0.4, 0.6).verdict
    ('holds', 'undecided')
    """
    return both(_apart(found, exactly(high)), _apart(exactly(low), found))


def bounded(values, bound: float, trivial: float = math.inf) -> Trial:
    """Whether values are at most a stated bound, and how sharply.

    "holds loosely" if a bound `SHARP` times smaller would have held, too; "vacuous" if the bound is not below what is
    known without it.

    Examples
    --------
    >>> values = np.array([0.8, 0.9, 0.85, 0.9, 0.8, 0.9])
    >>> bounded(values, 1.0).verdict, bounded(values, 5.0).verdict, bounded(values, 5.0, trivial=4.0).verdict
    ('holds', 'holds loosely', 'vacuous')
    """
    found = at_most(values, bound)
    if found.verdict != HOLDS:
        return found
    loosely = at_most(values, bound / SHARP).verdict == HOLDS
    return found._replace(verdict=VACUOUS if bound >= trivial else LOOSELY if loosely else HOLDS)


def diverges(values) -> Trial:
    """Whether runs diverge, for the typical seed.

    Examples
    --------
    >>> [diverges(np.array([1.0] * whole + [math.inf] * lost)).verdict for whole, lost in ((0, 6), (1, 5), (6, 0))]
    ['holds', 'undecided', 'fails']
    """
    values = np.atleast_1d(np.asarray(values, float))
    return _by_signs(np.where(np.isfinite(values), 1.0, -1.0), values, "")


def faster(mine, theirs) -> Trial:
    """Whether a time is shorter than another, both measured as often, in turn: `at_most_times` with factor 1."""
    found = at_most_times(mine, theirs, 1.0)
    return found._replace(seeds=found.seeds.replace("seeds", "turns"))


def _pairs(mine, theirs) -> tuple[np.ndarray, np.ndarray]:
    """Both as values by seed."""
    first, second = (np.atleast_1d(np.asarray(values, float)) for values in (mine, theirs))
    good = first.shape == second.shape or 0 in (np.ndim(mine), np.ndim(theirs))
    require(good, "theirs", second.shape, f"as many seeds as mine, {first.shape}")
    first, second = np.broadcast_arrays(first, second)
    return first, second


def _by_signs(over: np.ndarray, shown: np.ndarray, name: str) -> Trial:
    """By the sign test, "holds" for numbers below 0; ``shown`` are the differences, or ratios, themselves."""
    n = over.size
    less, more = int((over < 0.0).sum()), int((over > 0.0).sum())
    chance = sign_chance(max(less, more), n)
    verdict = OPEN if chance > ERROR else HOLDS if less > more else FAILS
    ended = shown[np.isfinite(shown)]
    low, middle, high = np.quantile(ended, (0.25, 0.5, 0.75)) if ended.size else (0.0, 0.0, 0.0)
    away = max(FAR_OFF * (high - low), (SHARP - 1.0) * abs(middle))
    far = int((np.maximum(low - ended, ended - high) > away).sum())
    counts = (
        f"{count} {what}" for count, what in ((n - ended.size, "diverged or never there"), (far, "far off")) if count
    )
    told = ", ".join((f"{ended.size - far} of {n} seeds", *counts))
    if name and ended.size:
        found = median_interval(shown, LEVEL)
        told = f"{name} {number(found.estimate)} [{number(found.low)}, {number(found.high)}], {told}"
    return Trial(verdict, chance=chance, seeds=told)


def _apart(first: Interval, second: Interval) -> Trial:
    """Whether the first is below the second, by intervals that do not overlap."""
    chance = sum(0.5 * (1.0 - one.level) for one in (first, second))
    found = HOLDS if first.high < second.low else FAILS if first.low > second.high else OPEN
    return Trial(found if chance <= ERROR + 1e-12 else OPEN, chance=chance)


# --- statements -------------------------------------------------------------------------------------------------------


class Statement(NamedTuple):
    """A statement of a source, with the trials that decide it.

    Attributes
    ----------
    id : str
        Its name in the study: the index of sources and tests name it by this.
    text : str
    trials : list
        Bools, or what rules return.
    said : str
        The numbers, as a sentence; by default those of the trials, each with its verdict.  The typical differences of
        a few trials are added.
    source : str
        Whose it is, where it is not that of the lecture or paper that the study is about.
    bears_on : tuple of str
        The entries of the index of sources that it is about: their keys, or how these begin.
    values : dict
        Its numbers by name, or in dicts of them, for templates (:mod:`theory.experiment.record_values`).

    Examples
    --------
    >>> trials = [Trial("holds", "10 against 20", {"digits": 10}), Trial("fails", "30 against 20", {"topics": 30})]
    >>> said = Statement("fewer", "Fewer rounds.", trials, values={"at most": 20})
    >>> said.verdict, said.numbers
    ('in part', '10 against 20 (holds); 30 against 20 (fails).')
    >>> said.by_name
    {'trials': 2, 'holding': 1, 'digits': 10, 'topics': 30, 'at most': 20}
    """

    id: str
    text: str
    trials: Sequence[Any]
    said: str = ""
    source: str = ""
    bears_on: tuple[str, ...] = ()
    values: Mapping[str, Any] = {}

    @property
    def verdict(self) -> str:
        """The verdict of the trials."""
        return judged(self.trials)

    @property
    def numbers(self) -> str:
        """What was measured, as a sentence."""
        found = [as_trial(one) for one in self.trials]
        if self.said:
            told = "; ".join(one.seeds for one in found if one.seeds) if len(found) <= FEW else ""
            return f"{self.said} Typically: {told}." if told else self.said
        shown = (f"{one.shown} ({'; '.join(filter(None, (one.verdict, one.seeds)))})" for one in found if one.shown)
        return "; ".join(shown) + "." if any(one.shown for one in found) else "It was not measured."

    @property
    def by_name(self) -> dict[str, Any]:
        """The numbers by name: how many trials there are, how many hold, those of the trials, and its own.

        Raises
        ------
        ValueError
            If a name occurs twice.
        """
        found: dict[str, Any] = {"trials": len(self.trials), "holding": self.count()}
        for more in (*(one.values for one in self.trials if isinstance(one, Trial)), self.values):
            require(not found.keys() & more.keys(), "values", list(more), f"other names than {', '.join(found)}")
            found |= more
        return found

    def count(self, verdict: str = HOLDS) -> int:
        """How many trials have a verdict."""
        return count(self.trials, verdict)


def count(trials: Iterable[Any], verdict: str = HOLDS) -> int:
    """How many trials have a verdict."""
    return [word(trial) for trial in trials].count(verdict)


def counted(trials: Iterable[Any]) -> str:
    """How many trials there are of each verdict.

    Examples
    --------
    >>> counted([True, "holds", "undecided"])
    'Of 3 cases: 2 holds, 1 undecided.'
    """
    words = [word(trial) for trial in trials]
    return f"Of {len(words)} cases: {', '.join(f'{words.count(v)} {v}' for v in dict.fromkeys(words))}."


class Compare(NamedTuple):
    """Trials of pairs of methods, one for each case that has both.

    Attributes
    ----------
    metric : callable
        ``metric(row)``: the values by seed of a row, where less is better.
    pairs : sequence of (str, str)
        Methods, the ``method`` of a row: the first is compared with the second.
    rule : callable
        ``rule(mine, theirs)`` returns a trial.
    over : tuple of str
        Fields by which the cases are told apart; they name the trial: strings as they are, others with their name.
    where : dict
        Fields and values of the rows that count.
    show : callable, optional
        ``show(row)``: its number as text; by default the mean of its values.
    named : bool
        Whether both methods are named, too.

    Examples
    --------
    >>> class Row(NamedTuple):
    ...     task: str
    ...     method: str
    ...     loss: np.ndarray
    >>> rows = [Row("a", method, end + np.arange(6) / 10) for method, end in (("SGD", 1.0), ("QSGD", 2.0))]
    >>> (trial,) = Compare(lambda row: row.loss, [("SGD", "QSGD")], below)(rows)
    >>> trial.verdict, trial.shown
    ('holds', 'a: 1.25 against 2.25')
    """

    metric: Callable
    pairs: Sequence[tuple[str, str]]
    rule: Callable = at_most
    over: tuple[str, ...] = ("task",)
    where: dict[str, Any] = {}
    show: Callable[[Any], str] | None = None
    named: bool = False

    def __call__(self, rows) -> list[Trial]:
        """The trials of these rows; seeds that are not finite are counted.

        Raises
        ------
        ValueError
            If there are rows and none is of a method that is named, with the nearest ones.
        """
        methods = sorted({row.method for row in rows})
        for name in dict.fromkeys(name for pair in self.pairs for name in pair) if methods else ():
            require(name in methods, "pairs", name, f"a method of the rows; {nearest(name, methods)}")
        cases: dict[tuple, dict[str, Any]] = {}
        for row in rows:
            if all(getattr(row, key) == wanted for key, wanted in self.where.items()):
                held = ((key, getattr(row, key)) for key in self.over)
                case = tuple(value if isinstance(value, str) else f"{key} {value}" for key, value in held)
                cases.setdefault(case, {})[row.method] = row
        found = []
        for case, by in cases.items():
            for first, second in self.pairs:
                if first in by and second in by:
                    values = [self.metric(by[method]) for method in (first, second)]
                    name = ", ".join([*case, f"{first} against {second}"] if self.named else case)
                    mine, theirs = map(self._shown, (by[first], by[second]), values)
                    found.append(as_trial(self.rule(*values))._replace(shown=f"{name}: {mine} against {theirs}"))
        return found

    def _shown(self, row, values) -> str:
        text = f"{np.mean(values):.4g}" if self.show is None else self.show(row)
        lost = ~np.isfinite(np.atleast_1d(np.asarray(values, float)))
        return f"{text} ({lost.sum()} of {lost.size} never)" if lost.any() else text
