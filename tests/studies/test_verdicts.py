"""How studies decide: rules against cases with a known answer, and that nothing else in the studies sets a verdict."""

from __future__ import annotations

import ast
import math
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT

from theory.measure import Interval
from theory.reporting.figure_records import read_record, record_path
from theory.studies import report
from theory.studies.shared.configuration import shipped_studies
from theory.studies.shared.entry_keys import slug
from theory.studies.shared.verdicts import (
    Compare,
    Spread,
    Statement,
    Trial,
    at_most,
    at_most_times,
    below,
    between,
    both,
    diverges,
    faster,
    judged,
    opposite,
    within,
)

WORDS = {"holds", "fails", "undecided", "in part"}
FOLDER = ROOT / "theory" / "studies"
NAMES = list(shipped_studies())


def test_intervals_err_as_often_as_they_say():
    """Of pairs without a difference 2.5 % are on each side of the interval, and half are inside one of 50 %."""
    rng = np.random.default_rng(0)
    shared, n = rng.standard_normal((4000, 5)), 4000
    mine, theirs = (shared + rng.standard_normal((n, 5)) for _ in range(2))
    found = [below(a, b) for a, b in zip(mine, theirs, strict=True)]
    for verdict in ("holds", "fails"):
        assert abs(found.count(verdict) / n - 0.025) < 4 * math.sqrt(0.025 * 0.975 / n), verdict
    half = [below(a, b, level=0.5) for a, b in zip(mine, theirs, strict=True)]
    assert abs(half.count("undecided") / n - 0.5) < 4 * 0.5 / math.sqrt(n)
    # means with their deviations, of the same runs as if they were independent, are sure less often
    apart = [
        below(*(Spread(x.mean(), x.std(), 5) for x in pair)) for pair in zip(mine[:1000], theirs[:1000], strict=True)
    ]
    assert apart.count("undecided") > 0.95 * 1000


def test_seeds_decide_in_pairs():
    """The same difference at every seed is sure, however far the seeds lie apart; without the pairs it is not."""
    seeds = np.array([1.0, 5.0, 9.0])
    assert below(seeds, seeds + 0.1) == "holds" and below(seeds + 0.1, seeds) == "fails"
    assert below(seeds, seeds[::-1] + 0.1) == "undecided"
    assert below(Spread(5.0, 3.2, 3), Spread(5.1, 3.2, 3)) == "undecided"
    assert at_most(seeds + 0.1, seeds, 0.2) == "holds" and below(seeds, seeds + 0.1, by=0.2) == "fails"


@pytest.mark.parametrize(
    "rule", [at_most, below, lambda a, b: within(a, b, 2.0), lambda a, b: at_most_times(a, b, 2.0)]
)
def test_one_seed_decides_nothing(rule):
    assert rule([1.0], [5.0]) == rule([5.0], [1.0]) == rule([1.0], 7.0) == "undecided"
    assert rule(Spread(1.0, 0.0, 1), Spread(5.0, 0.0, 1)) == "undecided"


def test_equal_values():
    same = [0.3, 0.5, 0.4]
    assert at_most(same, same) == "holds" and below(same, same) == "fails" and within(same, same, 1.1) == "holds"
    assert at_most([0.2, 0.2], 0.2) == "holds" and below([0.2, 0.2], 0.2) == "fails"


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_runs_that_diverge_are_worse_than_all_others(lost):
    gone, good = [lost, lost, lost], [2.0, 2.1, 2.2]
    for rule in (at_most, below):
        assert rule(gone, good) == "fails" and rule(good, gone) == "holds" and rule(gone, gone) == "undecided"
        assert rule([lost], good) == "fails" and rule(good, [lost]) == "holds"
    assert at_most_times(gone, good, 9.0) == "fails" and within(good, gone, 9.0) == "fails"
    assert (diverges(gone), diverges(good)) == ("holds", "fails")


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_one_seed_that_diverged_decides_nothing(lost):
    """Only where all pairs agree there is a verdict: the pairs that ended by their interval, the others by who did."""
    mine, theirs = [2.0, 2.1, 2.0, 2.0, 2.1], [1.0, 1.0, 1.1, 1.0, lost]
    for rule in (at_most, below, lambda a, b: at_most_times(a, b, 1.1), lambda a, b: below(a, b, 0.1)):
        assert rule(mine, theirs) == rule(theirs, mine) == "undecided"
        assert rule([1.0, 1.1, 1.0, 1.0, 1.1], [2.0, 2.0, 2.1, 2.0, lost]) == "holds"  # who ends lower ends always
        assert rule([2.0, 2.0, 2.1, 2.0, lost], [1.0, 1.1, 1.0, 1.0, 1.1]) == "fails"
        assert rule([1.0, 1.1, 1.0, lost], [2.0, 2.0, 2.1, lost]) == "undecided"  # both diverged with the last seed
        assert rule([lost] * 3, [1.0, 1.0, lost]) == rule([1.0, lost], [2.0, 2.0]) == "undecided"
        assert rule([1.0, 1.1, lost], 9.0) == "undecided" and rule([1.0, 1.1, 1.2], 9.0) == "holds"
        for pair in (
            (Spread(lost, 0.0, 3), Spread(1.0, 0.1, 3)),
            (Spread(lost, lost, 3), mine),
            (mine, Spread(lost, lost, 3)),
        ):
            assert rule(*pair) == "undecided"  # a mean does not say at how many seeds
    assert diverges(theirs) == "undecided"
    # those that ended are compared as they would be alone, also by their logarithms
    assert at_most_times([1.5, 150.0, 15_000.0], [1.0, 100.0, 10_000.0], 1.6) == "holds"
    assert at_most_times([1.5, 150.0, 15_000.0, 1.0], [1.0, 100.0, 10_000.0, lost], 1.6) == "holds"


def test_ratios_are_compared_by_their_logarithms():
    """Ratios of 1.5 at every seed, which are sure, though the differences go from 0.5 to 5,000."""
    theirs = np.array([1.0, 100.0, 10_000.0])
    assert at_most_times(1.5 * theirs, theirs, 1.6) == "holds" and at_most_times(1.5 * theirs, theirs, 1.4) == "fails"
    assert within(1.5 * theirs, theirs, 1.6) == within(theirs, 1.5 * theirs, 1.6) == "holds"
    assert at_most_times([0.0, 0.0], [1.0, 1.1], 2.0) == "holds"  # without a logarithm: the difference


def test_intervals_numbers_and_times():
    assert between(Interval(0.5, 0.4, 0.6), 0.4, 0.6) == "holds"
    assert between(Interval(0.7, 0.61, 0.8), 0.4, 0.6) == "fails"
    assert between(Interval(0.55, 0.5, 0.7), 0.4, 0.6) == "undecided"
    assert below(Interval(1.0, 0.9, 1.1), Interval(2.0, 1.2, 3.0)) == "holds"
    assert below(Interval(1.0, 0.9, 1.3), Interval(2.0, 1.2, 3.0)) == "undecided"
    assert faster(1.0, 1.2) == "holds" and faster(1.2, 1.0) == "fails" and faster(1.0, 1.0) == "undecided"
    assert faster(1.0, math.inf) == "holds"
    slow = np.array([1.3, 1.4, 1.2])  # by seed: the interval of the ratio must leave a tenth out
    assert faster([1.0, 1.1, 0.9], slow) == "holds" and faster(slow, [1.0, 1.1, 0.9]) == "fails"
    assert faster([1.0, 1.4, 0.9], slow) == faster(slow, 0.95 * slow) == faster([1.0], [9.0]) == "undecided"
    assert faster(slow, [math.inf] * 3) == "holds" and faster([math.inf] * 3, slow) == "fails"
    with pytest.raises(ValueError, match=r"theirs: got \(2,\), allowed: as many seeds as mine"):
        at_most([1.0, 2.0, 3.0], [1.0, 2.0])


def test_a_statement_is_judged_by_its_trials():
    assert judged([True, np.True_, "holds", Trial("holds")]) == "holds" and judged([]) == "undecided"
    assert judged(["undecided", "fails"]) == "fails" and judged(["holds", "undecided"]) == "undecided"
    assert judged([True, False, "undecided"]) == "in part"
    assert both("undecided", True) == "undecided" and both(True, False, "undecided") == "fails"
    assert [opposite(one) for one in (True, "undecided", "fails")] == ["fails", "undecided", "holds"]
    said = Statement("id", "It is so.", [Trial("holds", "a: 1 against 2"), Trial("fails", "b: 3 against 2"), True])
    assert said.verdict == "in part" and said.count() == 2
    assert said.numbers == "a: 1 against 2 (holds); b: 3 against 2 (fails)."
    assert said._replace(said="Numbers.").numbers == "Numbers."
    assert Statement("id", "It is so.", []).numbers == "It was not measured."
    with pytest.raises(AttributeError):
        said.verdict = "holds"


def test_numbers_of_a_statement_have_one_name_each():
    trials = [Trial("holds", "a: 1 against 2", {"a": {"SGD": 1, "QSGD": 2}}), Trial("fails", values={"b": 3}), True]
    said = Statement("id", "It is so.", trials, values={"ratio": 0.5})
    assert said.by_name == {"trials": 3, "holding": 2, "a": {"SGD": 1, "QSGD": 2}, "b": 3, "ratio": 0.5}
    for taken in ("holding", "a"):
        with pytest.raises(ValueError, match=f"values: got .*'{taken}'.*, allowed: other names than trials, holding"):
            said._replace(values={taken: 1}).by_name  # noqa: B018


@pytest.mark.parametrize("wrong", ["hold", "in part", Trial("Holds"), 1, None, np.float64(1.0)])
def test_what_is_no_trial_is_refused(wrong):
    for judge in (lambda one: judged([True, one]), both, opposite, lambda one: Statement("id", "So.", [one]).verdict):
        with pytest.raises(ValueError, match="trial: got .*, allowed: a bool, a Trial, or one of"):
            judge(wrong)


class Row(NamedTuple):
    task: str
    method: str
    kind: str
    loss: tuple


def test_pairs_are_compared_case_by_case():
    rows = [
        Row(task, method, kind, tuple(end + np.array([0.0, 0.1, 0.2])))
        for task, kind, ends in (("a", "x", (1.0, 2.0)), ("b", "x", (2.0, 1.0)), ("c", "y", (1.0, 2.0)))
        for method, end in zip(("SGD", "QSGD"), ends, strict=True)
    ]
    pairs = [("SGD", "QSGD"), ("SGD", "NUQSGD")]
    rows.append(Row("d", "NUQSGD", "x", (1.0, 1.1, 1.2)))  # in a case of its own
    compare = Compare(lambda row: row.loss, pairs, below, ("task",), {"kind": "x"}, lambda row: f"{row.loss[0]:g}")
    assert compare(rows) == [
        Trial("holds", "a: 1 against 2"),
        Trial("fails", "b: 2 against 1"),
    ]
    named = compare._replace(named=True, where={}, over=("kind", "task"))(rows)
    both = "SGD against QSGD"
    assert [trial.shown.partition(":")[0] for trial in named] == [f"x, a, {both}", f"x, b, {both}", f"y, c, {both}"]
    assert Compare(lambda row: row.loss, pairs[:1], below)(rows)[0].shown == "a: 1.1 against 2.1"  # the means


class Scaled(NamedTuple):
    task: str
    workers: int
    method: str
    steps: list


def test_numbers_that_tell_cases_apart_are_named_and_seeds_that_never_ended_counted():
    rows = [Scaled("gaussian", 4, "SGD", [1.0, 1.1, math.inf]), Scaled("gaussian", 4, "QSGD", [2.0, 2.1, 2.2])]
    (one,) = Compare(lambda row: row.steps, [("SGD", "QSGD")], below, ("task", "workers"))(rows)
    assert one == Trial("undecided", "gaussian, workers 4: inf (1 of 3 never) against 2.1")


def test_a_misspelt_method_is_named():
    rows = [Row("a", method, "x", (1.0, 1.1)) for method in ("top-k with memory", "top-k alone")]
    compare = Compare(lambda row: row.loss, [("top-k with memory", "top-k alnoe")], below)
    with pytest.raises(ValueError, match="pairs: got 'top-k alnoe', allowed: .* did you mean top-k alone"):
        compare(rows)
    assert compare([]) == []


# --- one home -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_no_other_place_makes_a_verdict(path):
    """No string of the studies is a verdict, and none compares intervals or deviations itself, but the rules."""
    if path.name == "verdicts.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in WORDS]
    assert words == []
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    allowed = {"paired_interval"} if path.name == "largest_batch.py" else set()  # of a ratio, for the record
    assert not called & {"hypot", "paired_interval", "ratio_interval"} - allowed


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_record_is_judged_again_without_data(name, monkeypatch):
    """Each statement of it has an id of its own, short and of letters, and its verdict is that of its trials."""
    import theory.data
    from theory.studies.shared import problems

    def refused(*args, **options):
        raise AssertionError("a report loads no data")

    for module in (theory.data, problems):
        for load in ("load_data", "rcv1_topics", "digits", "rcv1"):
            if hasattr(module, load):
                monkeypatch.setattr(module, load, refused)
    record = read_record(record_path(ROOT / "figures", f"study-{name}"))
    study = report(record.how["study"], record.found, name)
    ids = [said.id for said in study.statements]
    assert len(set(ids)) == len(ids) and all(id == slug(id) and len(id) <= 60 for id in ids)
    for said in study.statements:
        assert isinstance(said, Statement) and said.verdict == judged(said.trials) and said.verdict in WORDS
        assert said.numbers and all(isinstance(one, (bool, np.bool_, str, Trial)) for one in said.trials)
        assert len({slug(name) for name in said.by_name}) == len(said.by_name)
