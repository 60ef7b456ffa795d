"""How studies decide: rules against cases with a known answer, and that nothing else in the studies sets a verdict."""

from __future__ import annotations

import ast
import math
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT
from scipy.stats import binom, norm

from theory.measure import Interval, median_interval
from theory.reporting.json_values import read_record, record_path
from theory.studies import report
from theory.studies.shared.configuration import shipped_studies, slug
from theory.studies.shared.verdicts import (
    LEVEL,
    Compare,
    Statement,
    Trial,
    at_most,
    at_most_times,
    below,
    between,
    both,
    bounded,
    diverges,
    faster,
    judged,
    opposite,
    within,
)

WORDS = {"holds", "holds loosely", "vacuous", "in part", "undecided", "fails"}
FOLDER = ROOT / "theory" / "studies"
NAMES = list(shipped_studies())
SIX = np.array([0.3, 0.5, 0.4, 0.9, 0.1, 0.6])


def law(n: int) -> float:
    """How often the sign test says "holds" at the margin: the tail of Binomial(n, 1/2) that is at most 2.5 %."""
    return max(tail for tail in binom.sf(np.arange(-1, n), n, 0.5) if tail <= 0.025)


SHAPES = {  # of the differences of many experiments, with their median
    "normal": (lambda rng, shape: rng.standard_normal(shape), 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), math.log(2.0)),
    "lognormal": (lambda rng, shape: np.exp(rng.standard_normal(shape)), 1.0),
    "a rare bad seed": (
        lambda rng, shape: 0.01 * rng.standard_normal(shape) + 1e3 * (rng.random(shape) < 0.1),
        0.01 * norm.ppf(0.5 / 0.9),
    ),
    "a seed that diverges": (
        lambda rng, shape: np.where(rng.random(shape) < 0.1, math.inf, rng.standard_normal(shape)),
        norm.ppf(0.5 / 0.9),
    ),
    "times with 5 % noise": (lambda rng, shape: np.exp(0.05 * rng.standard_normal(shape)), 1.0),
    "times with 10 % noise": (lambda rng, shape: np.exp(0.1 * rng.standard_normal(shape)), 1.0),
}
MANY = 2000  # experiments


def shares(found) -> dict[str, float]:
    """How often each word is said."""
    words = [one if isinstance(one, str) else one.verdict for one in found]
    return {verdict: words.count(verdict) / len(words) for verdict in WORDS}


@pytest.mark.parametrize("n", [6, 8, 10])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_rule_errs_as_often_as_the_binomial_law_says(shape, n):
    """At the margin itself, on either side, whatever the distribution, at the numbers of seeds in use."""
    draw, median = SHAPES[shape]
    differences = draw(np.random.default_rng(0), (MANY, n))
    found = shares(at_most(one, 0.0, margin=median) for one in differences)
    for verdict in ("holds", "fails"):
        assert abs(found[verdict] - law(n)) < 3.0 * math.sqrt(law(n) / MANY), verdict


@pytest.mark.parametrize("n", [6, 8, 10])
@pytest.mark.parametrize("rows, p", [(360, 0.95), (360, 0.002)])
def test_accuracies_of_which_few_rows_differ_err_no_more_often(rows, p, n):
    """Equal values count for neither side, so that ties never make a verdict more likely."""
    rng = np.random.default_rng(1)
    mine, theirs = (rng.binomial(rows, p, (MANY, n)) / rows for _ in range(2))
    found = shares(below(a, b) for a, b in zip(mine, theirs, strict=True))
    for verdict in ("holds", "fails"):
        assert found[verdict] <= law(n) + 3.0 * math.sqrt(law(n) / MANY), verdict


@pytest.mark.parametrize("n", [6, 10])
@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_times_measured_in_turn_err_as_often(noise, n):
    rng = np.random.default_rng(2)
    mine, theirs = np.exp(noise * rng.standard_normal((2, MANY, n)))
    found = shares(faster(a, b) for a, b in zip(mine, theirs, strict=True))
    assert max(abs(found[v] - law(n)) for v in ("holds", "fails")) < 3.0 * math.sqrt(law(n) / MANY)


@pytest.mark.parametrize("n", [6, 10])
@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_sixteen_trials_at_the_margin_err_no_more_often_than_one(shared, n):
    """Of trials that are independent, and of such as share most of their noise: "fails" and "in part" together."""
    rng, many = np.random.default_rng(3), 1000
    differences = shared * rng.standard_normal((many, 1, n)) + rng.standard_normal((many, 16, n))
    found = shares(judged([below(one, 0.0) for one in trials]) for trials in differences)
    allowed = 0.025 + 3.0 * math.sqrt(0.025 / many)
    assert found["fails"] + found["in part"] <= allowed and found["holds"] <= allowed


def test_two_sided_rules_err_no_more_often():
    """With the ratio at one end of the range, where one of the two tests is at its margin."""
    rng = np.random.default_rng(4)
    found = shares(within(2.0 * np.exp(one), 1.0, 2.0) for one in rng.standard_normal((MANY, 8)))
    assert max(found["holds"], found["fails"]) <= 0.025 + 3.0 * math.sqrt(0.025 / MANY)


def test_the_interval_beside_a_verdict_is_that_of_the_sign_test():
    """A margin is outside of it exactly where the rule decides."""
    rng = np.random.default_rng(5)
    for n in (5, 6, 9, 12):
        for one in rng.standard_normal((200, n)):
            margin = rng.standard_normal()
            assert (at_most(one, margin).verdict == "undecided") == (margin in median_interval(one, LEVEL))


def test_seeds_decide_in_pairs():
    """The same difference at every seed is sure, however far the seeds lie apart; without the pairs it is not."""
    seeds = np.array([1.0, 5.0, 9.0, 2.0, 7.0, 3.0])
    assert below(seeds, seeds + 0.1).verdict == "holds" and below(seeds + 0.1, seeds).verdict == "fails"
    assert below(seeds, seeds[::-1] + 0.1).verdict == "undecided"
    assert at_most(seeds + 0.1, seeds, 0.2).verdict == "holds" and below(seeds, seeds + 0.1, by=0.2).verdict == "fails"


@pytest.mark.parametrize(
    "rule", [at_most, below, faster, lambda a, b: within(a, b, 2.0), lambda a, b: at_most_times(a, b, 2.0)]
)
def test_five_seeds_decide_nothing_and_six_do(rule):
    for few in range(1, 6):
        assert rule(SIX[:few], 9.0 * SIX[:few]).verdict == rule(9.0 * SIX[:few], SIX[:few]).verdict == "undecided"
    assert rule(9.0 * SIX, SIX).verdict in ("fails", "undecided")
    assert within(SIX, 1.5 * SIX, 2.0).verdict == at_most(SIX, 9.0).verdict == "holds"


def test_equal_values_decide_nothing():
    assert {rule(SIX, SIX).verdict for rule in (at_most, below, faster)} == {"undecided"}
    assert at_most(SIX, SIX, 0.1).verdict == "holds" and below(SIX, SIX, 0.1).verdict == "fails"


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_runs_that_diverge_are_worse_than_all_others_and_counted(lost):
    bad = math.inf if math.isnan(lost) else lost
    gone, good = np.full(6, bad), SIX + 1.0
    for rule in (at_most, below, lambda a, b: at_most_times(a, b, 9.0)):
        assert rule(gone, good).verdict == "fails" and rule(good, gone).verdict == "holds"
        assert rule(gone, gone).verdict == rule(np.full(6, math.nan), good).verdict == "undecided"
    assert (diverges(np.full(6, lost)).verdict, diverges(good).verdict) == ("holds", "fails")
    one = good.copy()
    one[2] = bad
    found = at_most(one, good + 1.0)
    assert found.verdict == "undecided" and found.seeds.endswith("5 of 6 seeds, 1 diverged or never there")
    ten, other = np.r_[one, SIX[:4]], np.r_[good, SIX[:4]] + 1.0
    assert at_most(ten, other).verdict == "holds" and diverges(one).verdict == "undecided"  # nine of ten
    far = at_most(SIX, SIX + [0.1, 0.11, 0.1, 0.12, 0.1, 7.0])
    assert far.verdict == "holds" and far.seeds.endswith("5 of 6 seeds, 1 far off")


def test_ratios_are_shown_as_ratios():
    theirs = 10.0 ** np.arange(6)
    found = at_most_times(1.5 * theirs, theirs, 1.6)
    assert found.verdict == "holds" and found.seeds == "ratio 1.5 [1.5, 1.5], 6 of 6 seeds"
    assert at_most_times(1.5 * theirs, theirs, 1.4).verdict == "fails"
    assert at_most_times(np.zeros(6), theirs, 2.0).verdict == "holds"  # without a logarithm, too


def test_intervals_and_numbers():
    wide = Interval(0.55, 0.5, 0.7, 0.99)
    assert between(Interval(0.5, 0.41, 0.59, 0.99), 0.4, 0.6).verdict == "holds"
    assert between(Interval(0.7, 0.61, 0.8, 0.99), 0.4, 0.6).verdict == "fails"
    assert between(wide, 0.4, 0.6).verdict == "undecided"
    apart = Interval(1.0, 0.9, 1.1, 0.99), Interval(2.0, 1.2, 3.0, 0.99)
    assert below(*apart).verdict == "holds" and below(*apart[::-1]).verdict == "fails"
    assert below(Interval(1.0, 0.9, 1.3, 0.99), apart[1]).verdict == "undecided"
    assert below(*(one._replace(level=0.9) for one in apart)).verdict == "undecided"  # intervals that miss too often
    with pytest.raises(ValueError, match=r"theirs: got \(2,\), allowed: as many seeds as mine"):
        at_most([1.0, 2.0, 3.0], [1.0, 2.0])


def test_how_sharp_a_bound_is():
    values = 0.1 * SIX + 0.8
    assert bounded(values, 0.9).verdict == "holds" and bounded(values, 1.2).verdict == "holds loosely"
    assert bounded(values, 1.2, trivial=1.1).verdict == "vacuous" and bounded(values, 0.8).verdict == "fails"
    assert bounded(values[:5], 9.0).verdict == "undecided"


def test_a_statement_is_judged_by_its_trials():
    assert judged([True, np.True_, "holds", Trial("holds")]) == "holds" and judged([]) == "undecided"
    assert judged(["undecided", "fails"]) == "fails" and judged(["holds", "undecided"]) == "undecided"
    assert judged([True, False, "undecided"]) == "in part"
    assert both("undecided", True).verdict == "undecided" and both(True, False, "undecided").verdict == "fails"
    assert [opposite(one).verdict for one in (True, "undecided", "fails")] == ["fails", "undecided", "holds"]
    assert judged(["holds", "holds loosely"]) == "holds loosely" and judged(["vacuous", "undecided"]) == "undecided"
    rare = Trial("fails", chance=1 / 64)
    assert judged([rare] * 3) == "fails"  # all of them
    assert judged([rare, "undecided"]) == judged([rare, Trial("holds", chance=1 / 64)]) == "undecided"
    assert judged([rare, True, True]) == "in part"  # what was computed is no further chance to err
    sure = rare._replace(chance=1 / 1024)
    assert judged([sure, *["undecided"] * 15]) == "fails" and judged([sure, *["undecided"] * 30]) == "undecided"
    assert judged([sure, Trial("holds", chance=1 / 1024)]) == "in part"
    assert both(rare, "undecided").verdict == "undecided" and both(sure, "undecided").verdict == "fails"
    said = Statement("id", "It is so.", [Trial("holds", "a: 1 against 2"), Trial("fails", "b: 3 against 2"), True])
    assert said.verdict == "in part" and said.count() == 2
    assert said.numbers == "a: 1 against 2 (holds); b: 3 against 2 (fails)."
    assert said._replace(said="Numbers.").numbers == "Numbers."
    by_seed = said._replace(said="Numbers.", trials=[at_most(SIX, SIX + 1.0)])
    assert by_seed.numbers == "Numbers. Typically: difference -1 [-1, -1], 6 of 6 seeds."
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
        Row(task, method, kind, tuple(end + 0.1 * np.arange(6)))
        for task, kind, ends in (("a", "x", (1.0, 2.0)), ("b", "x", (2.0, 1.0)), ("c", "y", (1.0, 2.0)))
        for method, end in zip(("SGD", "QSGD"), ends, strict=True)
    ]
    pairs = [("SGD", "QSGD"), ("SGD", "NUQSGD")]
    rows.append(Row("d", "NUQSGD", "x", (1.0,) * 6))  # in a case of its own
    compare = Compare(lambda row: row.loss, pairs, below, ("task",), {"kind": "x"}, lambda row: f"{row.loss[0]:g}")
    assert [trial[:2] for trial in compare(rows)] == [("holds", "a: 1 against 2"), ("fails", "b: 2 against 1")]
    named = compare._replace(named=True, where={}, over=("kind", "task"))(rows)
    both = "SGD against QSGD"
    assert [trial.shown.partition(":")[0] for trial in named] == [f"x, a, {both}", f"x, b, {both}", f"y, c, {both}"]
    assert Compare(lambda row: row.loss, pairs[:1], below)(rows)[0].shown == "a: 1.25 against 2.25"  # the means


class Scaled(NamedTuple):
    task: str
    workers: int
    method: str
    steps: list


def test_numbers_that_tell_cases_apart_are_named_and_seeds_that_never_ended_counted():
    ends = [1.0, 1.1, 0.9, 1.0, 1.2, math.inf], [2.0, 2.1, 2.2, 2.0, 2.1, 2.0]
    rows = [Scaled("gaussian", 4, method, steps) for method, steps in zip(("SGD", "QSGD"), ends, strict=True)]
    (one,) = Compare(lambda row: row.steps, [("SGD", "QSGD")], below, ("task", "workers"))(rows)
    assert one[:2] == ("undecided", "gaussian, workers 4: inf (1 of 6 never) against 2.067")


def test_a_misspelt_method_is_named():
    rows = [Row("a", method, "x", (1.0, 1.1)) for method in ("top-k with memory", "top-k alone")]
    compare = Compare(lambda row: row.loss, [("top-k with memory", "top-k alnoe")], below)
    with pytest.raises(ValueError, match="pairs: got 'top-k alnoe', allowed: .* did you mean top-k alone"):
        compare(rows)
    assert compare([]) == []


# --- one place -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_no_other_place_makes_a_verdict(path):
    """No string of the studies is a verdict, and none compares intervals or deviations itself, but the rules."""
    if path.name == "verdicts.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in WORDS]
    assert words == []
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"hypot", "ratio_interval"}


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
