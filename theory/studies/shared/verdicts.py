"""How studies decide: the one home of rules and verdicts.

A statement has trials, one for each case.  What was computed or counted needs no interval: its trial is True or False.
What depends on a seed is decided by the interval of a difference at equal seeds, at the level ``LEVEL``: "undecided" if
the interval contains the margin, or if there is one seed only.  Times that were measured once are told apart from a
factor of ``TIMES`` on.  The verdict on the statement is that of its trials, and nothing else can set it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import require
from ...measure import Interval, student_interval
from ...measure.intervals import exactly, quantile

LEVEL = 0.95  # of intervals over the seeds
TIMES = 1.1  # times of one measurement differ by so much from one to the next
HOLDS, FAILS, PART, OPEN = "holds", "fails", "in part", "undecided"
ORDER = (FAILS, OPEN, HOLDS)  # of trials that must all hold


class Trial(NamedTuple):
    """The verdict on one case, and its numbers for the page."""

    verdict: str
    shown: str = ""


def word(trial) -> str:
    """The verdict of a trial: a bool, a verdict, or a `Trial`."""
    if isinstance(trial, (bool, np.bool_)):
        return HOLDS if trial else FAILS
    return trial.verdict if isinstance(trial, Trial) else trial


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
    """What a record has in place of values by seed: mean, standard deviation of the values, and number of seeds."""

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
        Values seed by seed, where less is better; what is not finite diverged.  Two `Spread` are taken as independent.
        With an `Interval`, or values, ``theirs`` may be a number; two intervals must not overlap.
    margin, level : float

    Returns
    -------
    str
        "undecided" with a single seed, or if both diverged.

    Raises
    ------
    ValueError
        If the two have different numbers of seeds.

    Examples
    --------
    >>> at_most([1.0, 1.1, 0.9], [1.2, 1.3, 1.1]), at_most([1.0, 1.4, 0.6], [1.0, 0.9, 1.1]), at_most([1.0], [2.0])
    ('holds', 'undecided', 'undecided')
    >>> at_most(Spread(1.0, 0.1, 5), Spread(2.0, 0.1, 5)), at_most(Spread(math.inf, 0.0, 5), Spread(2.0, 0.1, 5))
    ('holds', 'fails')
    """
    found = _difference(mine, theirs, level)
    if isinstance(found, str):
        return found
    return HOLDS if found.high <= margin else FAILS if found.low > margin else OPEN


def below(mine, theirs, by: float = 0.0, level: float = LEVEL) -> str:
    """Whether a mean is more than ``by`` below another; parameters as for `at_most`.

    Examples
    --------
    >>> below([1.0, 1.1], [1.0, 1.1]), below([1.0, 1.1, 0.9], [1.2, 1.3, 1.1], by=0.1)
    ('fails', 'holds')
    """
    found = _difference(mine, theirs, level)
    if isinstance(found, str):
        return found
    return HOLDS if found.high < -by else FAILS if found.low >= -by else OPEN


def at_most_times(mine, theirs, factor: float, level: float = LEVEL) -> str:
    """Whether a mean is at most ``factor`` times another: of values above 0 by the interval of the log of their ratio.

    Parameters as for `at_most`; with a `Spread` it is the interval of the difference.

    Examples
    --------
    >>> at_most_times([1.0, 10.0], [1.0, 11.0], 2.0), at_most_times([1.0, 10.0], [0.1, 1.1], 2.0)
    ('holds', 'fails')
    """
    if isinstance(theirs, Spread):
        return at_most(mine, theirs.scaled(factor), 0.0, level)
    logs = [np.asarray(values, float) for values in (mine, theirs)]
    if all((values > 0.0).all() for values in logs):
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


def faster(mine: float, theirs: float, factor: float = TIMES) -> str:
    """Whether one measured time is shorter than another; "undecided" if they differ by less than a factor.

    Examples
    --------
    >>> faster(1.0, 2.0), faster(2.0, 1.0), faster(1.0, 1.05)
    ('holds', 'fails', 'undecided')
    """
    return HOLDS if mine * factor < theirs else FAILS if mine > factor * theirs else OPEN


def _difference(mine, theirs, level: float):
    """The interval of mine - theirs, or the verdict where there is none."""
    if isinstance(mine, Interval):
        other = theirs if isinstance(theirs, Interval) else exactly(theirs)
        return Interval(mine.estimate - other.estimate, mine.low - other.high, mine.high - other.low, level)
    apart = isinstance(mine, Spread)
    ends = [np.atleast_1d(np.asarray(one.mean if apart else one, float)) for one in (mine, theirs)]
    lost, gone = (not np.isfinite(end).all() for end in ends)
    if lost or gone:
        return OPEN if lost and gone else FAILS if lost else HOLDS
    if apart:
        return _independent(mine, theirs, level) if min(mine.seeds, theirs.seeds) > 1 else OPEN
    first, second = ends[0], np.broadcast_to(ends[1], ends[0].shape) if np.ndim(theirs) == 0 else ends[1]
    if min(first.size, second.size) < 2:
        return OPEN
    require(first.shape == second.shape, "theirs", second.shape, f"as many seeds as mine, {first.shape}")
    return student_interval(first - second, level)


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
        The numbers, as a sentence; by default those of the trials.
    source : str
        Whose it is, where it is not that of the lecture or paper that the study is about.
    bears_on : tuple of str
        The entries of the index of sources that it is about: their keys, or how these begin.

    Examples
    --------
    >>> Statement("fewer", "Fewer rounds.", [Trial("holds", "10 against 20")]).verdict
    'holds'
    """

    id: str
    text: str
    trials: Sequence[Any]
    said: str = ""
    source: str = ""
    bears_on: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict of the trials."""
        return judged(self.trials)

    @property
    def numbers(self) -> str:
        """What was measured, as a sentence."""
        shown = "; ".join(trial.shown for trial in self.trials if isinstance(trial, Trial))
        return self.said or (f"{shown}." if shown else "It was not measured.")

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
        Methods: the first is compared with the second.
    rule : callable
        ``rule(mine, theirs)`` returns a verdict.
    over : tuple of str
        Fields by which the cases are told apart; they name the trial.
    where : dict
        Fields and values of the rows that count.
    show : callable
        ``show(row)``: its number as text.
    named : bool
        Whether the first method is named, too.

    Examples
    --------
    >>> class Row(NamedTuple):
    ...     task: str
    ...     method: str
    ...     loss: tuple
    >>> rows = [Row("a", "SGD", (1.0, 1.1)), Row("a", "QSGD", (2.0, 2.1))]
    >>> Compare(lambda row: row.loss, [("SGD", "QSGD")], below, ("task",), show=lambda row: f"{row.loss[0]:g}")(rows)
    [Trial(verdict='holds', shown='a: 1 against 2 (holds)')]
    """

    metric: Callable
    pairs: Sequence[tuple[str, str]]
    rule: Callable = at_most
    over: tuple[str, ...] = ("task",)
    where: dict[str, Any] = {}
    show: Callable[[Any], str] = str
    named: bool = False

    def __call__(self, rows) -> list[Trial]:
        """The trials of these rows."""
        cases: dict[tuple, dict[str, Any]] = {}
        for row in rows:
            if all(getattr(row, key) == wanted for key, wanted in self.where.items()):
                cases.setdefault(tuple(str(getattr(row, key)) for key in self.over), {})[row.method] = row
        found = []
        for case, by in cases.items():
            for first, second in self.pairs:
                if first in by and second in by:
                    how = self.rule(self.metric(by[first]), self.metric(by[second]))
                    name = ", ".join([*case, first] if self.named else case)
                    shown = f"{self.show(by[first])} against {self.show(by[second])}"
                    found.append(Trial(how, f"{name}: {shown} ({how})"))
        return found
