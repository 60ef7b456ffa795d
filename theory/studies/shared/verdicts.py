"""How studies decide: the one home of rules and verdicts.

A statement has trials, one for each case.  What was computed or counted needs no interval: its trial is True or False.
What depends on a seed is decided by the interval of a difference at equal seeds, at the level ``LEVEL``: "undecided" if
the interval contains the margin, or if there is one seed only.  Where a run diverged all pairs of seeds must agree:
a pair of which one run diverged is decided by that, one of which both did is open.  Times that were measured once are
told apart from a factor of ``TIMES`` on.  The verdict on the statement is that of its trials, and nothing else can set
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import require
from ...measure import Interval, student_interval
from ...measure.intervals import exactly, quantile
from ...reporting.files import nearest

LEVEL = 0.95  # of intervals over the seeds
TIMES = 1.1  # times of one measurement differ by so much from one to the next
HOLDS, FAILS, PART, OPEN = "holds", "fails", "in part", "undecided"
ORDER = (FAILS, OPEN, HOLDS)  # of trials that must all hold


class Trial(NamedTuple):
    """The verdict on one case, its numbers for the page, which adds the verdict, and these by name."""

    verdict: str
    shown: str = ""
    values: Mapping[str, Any] = {}


def word(trial) -> str:
    """The verdict of a trial: a bool, a verdict, or a `Trial`.

    Raises
    ------
    ValueError
        For anything else: a misspelt verdict would be one of its own.
    """
    if isinstance(trial, (bool, np.bool_)):
        return HOLDS if trial else FAILS
    found = trial.verdict if isinstance(trial, Trial) else trial
    require(isinstance(found, str) and found in ORDER, "trial", trial, f"a bool, a Trial, or one of {sorted(ORDER)}")
    return found


def judged(trials: Iterable[Any]) -> str:
    """The verdict on a statement from its trials: bools, verdicts, or trials.

    One word if all agree; if any fails "in part" if any holds, and "fails" if none does; otherwise "undecided", also
    without trials.

    Examples
    --------
    >>> judged([True, True]), judged([True, False]), judged(["holds", "undecided"])
    ('holds', 'in part', 'undecided')
    >>> judged(["fails", "undecided"]), judged(["fails", "undecided", "holds"]), judged([])
    ('fails', 'in part', 'undecided')
    """
    seen = {word(trial) for trial in trials}
    if len(seen) == 1:
        return seen.pop()
    if FAILS in seen:
        return PART if HOLDS in seen else FAILS
    return OPEN


def both(*trials) -> str:
    """The verdict on one case that asks for several things: the weakest.

    Examples
    --------
    >>> both(True, "undecided"), both("undecided", False), both(True, "holds")
    ('undecided', 'fails', 'holds')
    """
    return min(map(word, trials), key=ORDER.index)


def opposite(trial) -> str:
    """The verdict on the contrary: what holds fails.

    Examples
    --------
    >>> opposite("holds"), opposite("undecided")
    ('fails', 'undecided')
    """
    return ORDER[-1 - ORDER.index(word(trial))]


# --- rules for values by seed -----------------------------------------------------------------------------------------


class Spread(NamedTuple):
    """What a record has in place of values by seed: mean, standard deviation of the values, and number of seeds.

    The mean is not finite where a run diverged.
    """

    mean: float
    deviation: float
    seeds: int

    def scaled(self, factor: float) -> Spread:
        """The same of the values times a factor."""
        return Spread(factor * self.mean, factor * self.deviation, self.seeds)


def at_most(mine, theirs, margin: float = 0.0, level: float = LEVEL) -> str:
    """Whether a mean is at most ``margin`` above another, by the interval of the difference at equal seeds.

    Parameters
    ----------
    mine, theirs : array_like of shape (seeds,), `Spread`, or Interval
        Values seed by seed, where less is better; what is not finite diverged, or never got there.  Two `Spread` are
        taken as independent.  With an `Interval`, or values, ``theirs`` may be a number; two intervals must not
        overlap.
    margin, level : float

    Returns
    -------
    str
        "undecided" with a single seed.  Where values are not finite, a verdict that all pairs of seeds share: the
        worse one of a pair is the one that diverged, "undecided" if both did, and the other pairs by their interval.
        A side that diverged at every seed loses against one that did at none, also if it has another number of seeds.
        A `Spread` does not say how many diverged, and decides nothing then.

    Raises
    ------
    ValueError
        If the two have different numbers of seeds.

    Examples
    --------
    >>> at_most([1.0, 1.1, 0.9], [1.2, 1.3, 1.1]), at_most([1.0, 1.4, 0.6], [1.0, 0.9, 1.1]), at_most([1.0], [2.0])
    ('holds', 'undecided', 'undecided')
    >>> at_most([1.0, 1.1, math.inf], [2.0, 2.1, 2.2]), at_most([1.0, 1.1, 0.9], [1.2, 1.3, math.inf])
    ('undecided', 'holds')
    >>> at_most(Spread(1.0, 0.1, 5), Spread(2.0, 0.1, 5)), at_most(Spread(math.inf, 0.0, 5), Spread(2.0, 0.1, 5))
    ('holds', 'undecided')
    """
    return _decided(mine, theirs, level, lambda d: HOLDS if d.high <= margin else FAILS if d.low > margin else OPEN)


def below(mine, theirs, by: float = 0.0, level: float = LEVEL) -> str:
    """Whether a mean is more than ``by`` below another; parameters as for `at_most`.

    Examples
    --------
    >>> below([1.0, 1.1], [1.0, 1.1]), below([1.0, 1.1, 0.9], [1.2, 1.3, 1.1], by=0.1)
    ('fails', 'holds')
    """
    return _decided(mine, theirs, level, lambda d: HOLDS if d.high < -by else FAILS if d.low >= -by else OPEN)


def at_most_times(mine, theirs, factor: float, level: float = LEVEL) -> str:
    """Whether a mean is at most ``factor`` times another: of values above 0 by the interval of the log of their ratio.

    Parameters as for `at_most`; with a `Spread` it is the interval of the difference.

    Examples
    --------
    >>> at_most_times([1.0, 10.0], [1.0, 11.0], 2.0), at_most_times([1.0, 10.0], [0.1, 1.1], 2.0)
    ('holds', 'fails')
    """
    if isinstance(mine, Spread) or isinstance(theirs, Spread):
        return at_most(mine, theirs.scaled(factor) if isinstance(theirs, Spread) else theirs, 0.0, level)
    logs = [np.asarray(values, float) for values in (mine, theirs)]
    if all((values[np.isfinite(values)] > 0.0).all() for values in logs):
        return at_most(np.log(logs[0]), np.log(logs[1]), math.log(factor), level)
    return at_most(mine, factor * logs[1], 0.0, level)


def within(mine, theirs, factor: float, level: float = LEVEL) -> str:
    """Whether the ratio of two means above 0 lies between 1/``factor`` and ``factor``; as `at_most_times`.

    Examples
    --------
    >>> within([1.0, 1.1], [1.0, 1.2], 2.0), within([1.0, 1.1], [4.0, 4.1], 2.0)
    ('holds', 'fails')
    """
    return both(at_most_times(mine, theirs, factor, level), at_most_times(theirs, mine, factor, level))


def between(found: Interval, low: float, high: float) -> str:
    """Whether a value lies between two numbers, by its interval.

    Examples
    --------
    >>> between(Interval(0.5, 0.45, 0.55), 0.4, 0.6), between(Interval(0.5, 0.3, 0.7), 0.4, 0.6)
    ('holds', 'undecided')
    """
    return both(at_most(found, high), at_most(found.scaled(-1.0), -low))


def diverges(values) -> str:
    """Whether runs diverge: at every seed "holds", at none "fails", and at some "undecided".

    Examples
    --------
    >>> diverges([math.inf, math.nan]), diverges([1.0, math.inf]), diverges([1.0, 2.0])
    ('holds', 'undecided', 'fails')
    """
    lost = ~np.isfinite(np.asarray(values, float))
    return HOLDS if lost.all() else OPEN if lost.any() else FAILS


def faster(mine, theirs, factor: float = TIMES) -> str:
    """Whether one measured time is shorter than another; "undecided" if they differ by less than a factor.

    Times by seed, of which each is a count times one measurement, by the interval of the log of their ratio.

    Examples
    --------
    >>> faster(1.0, 2.0), faster(2.0, 1.0), faster(1.0, 1.05)
    ('holds', 'fails', 'undecided')
    >>> faster([1.0, 1.2], [2.0, 2.4]), faster([1.0, 2.0], [2.0, 1.0]), faster([1.0, 1.0], [1.05, 1.05])
    ('holds', 'undecided', 'undecided')
    """
    if np.ndim(mine) > 0:
        less, more = (at_most_times(*pair, 1.0 / factor) == HOLDS for pair in ((mine, theirs), (theirs, mine)))
        return HOLDS if less else FAILS if more else OPEN
    return HOLDS if mine * factor < theirs else FAILS if mine > factor * theirs else OPEN


def _decided(mine, theirs, level: float, judge: Callable[[Interval], str]) -> str:
    """What ``judge`` says of the interval of mine - theirs; where runs diverged, what all pairs of seeds agree on."""
    if isinstance(mine, Interval):
        other = theirs if isinstance(theirs, Interval) else exactly(theirs)
        return judge(Interval(mine.estimate - other.estimate, mine.low - other.high, mine.high - other.low, level))
    if isinstance(mine, Spread) or isinstance(theirs, Spread):
        known = all(isinstance(one, Spread) and math.isfinite(one.mean) and one.seeds > 1 for one in (mine, theirs))
        return judge(_independent(mine, theirs, level)) if known else OPEN
    first = np.atleast_1d(np.asarray(mine, float))
    second = np.broadcast_to(theirs, first.shape) if np.ndim(theirs) == 0 else np.asarray(theirs, float)
    lost, gone = ~np.isfinite(first), ~np.isfinite(second)
    if lost.all() or gone.all():
        return OPEN if lost.any() and gone.any() else FAILS if lost.any() else HOLDS
    if min(first.size, second.size) < 2:
        return OPEN
    require(first.shape == second.shape, "theirs", second.shape, f"as many seeds as mine, {first.shape}")
    ended = ~(lost | gone)
    said = {OPEN if a and b else FAILS if a else HOLDS for a, b in zip(lost, gone, strict=True) if a or b}
    if ended.any():
        said.add(judge(student_interval(first[ended] - second[ended], level)) if ended.sum() > 1 else OPEN)
    return said.pop() if len(said) == 1 else OPEN


def _independent(mine: Spread, theirs: Spread, level: float) -> Interval:
    """The interval of a difference of means of independent runs: Student's, with the fewest degrees of freedom."""
    freedom = min(mine.seeds, theirs.seeds) - 1
    error = math.hypot(*(one.deviation / math.sqrt(one.seeds - 1) for one in (mine, theirs)))
    half, mean = quantile(level, freedom) * error, mine.mean - theirs.mean
    return Interval(mean, mean - half, mean + half, level, freedom + 1)


# --- statements -------------------------------------------------------------------------------------------------------


class Statement(NamedTuple):
    """A statement of a source, with the trials that decide it.

    Attributes
    ----------
    id : str
        Its name in the study: the index of sources and tests name it by this.
    text : str
    trials : list
        Bools, verdicts of rules, or `Trial`.
    said : str
        The numbers, as a sentence; by default those of the trials, each with its verdict.
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
        shown = "; ".join(f"{one.shown} ({one.verdict})" for one in self.trials if isinstance(one, Trial) and one.shown)
        return self.said or (f"{shown}." if shown else "It was not measured.")

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
        return [word(trial) for trial in self.trials].count(verdict)


class Compare(NamedTuple):
    """Trials of pairs of methods, one for each case that has both.

    Attributes
    ----------
    metric : callable
        ``metric(row)``: the values by seed of a row, where less is better.
    pairs : sequence of (str, str)
        Methods, the ``method`` of a row: the first is compared with the second.
    rule : callable
        ``rule(mine, theirs)`` returns a verdict.
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
    ...     loss: tuple
    >>> rows = [Row("a", "SGD", (1.0, 1.1)), Row("a", "QSGD", (2.0, 2.1))]
    >>> Compare(lambda row: row.loss, [("SGD", "QSGD")], below, ("task",), show=lambda row: f"{row.loss[0]:g}")(rows)
    [Trial(verdict='holds', shown='a: 1 against 2', values={})]
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
                    found.append(Trial(self.rule(*values), f"{name}: {mine} against {theirs}"))
        return found

    def _shown(self, row, values) -> str:
        text = f"{np.mean(values):.4g}" if self.show is None else self.show(row)
        if isinstance(values, (Interval, Spread)):
            return text
        lost = ~np.isfinite(np.atleast_1d(np.asarray(values, float)))
        return f"{text} ({lost.sum()} of {lost.size} never)" if lost.any() else text
