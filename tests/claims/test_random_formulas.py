"""The program that draws wrong formulas: its changes, and that it tells what is noticed from what is not."""

from __future__ import annotations

import ast
import itertools

import pytest
import random_formulas
from random_formulas import Wrong, calling, changes, drawn, every_function, fate, functions, in_place, used_by

from theory.bounds.sparsifiers import spectral
from theory.claims.records import read_records

RECORDS = read_records()


def example(n: int, x: float) -> float:
    """An example."""
    return max(2.0 * x, x**2) / n + 1.0


def one(function, old: str, new: str) -> Wrong:
    """The change of this place to that."""
    return next(w for w in changes(function) if (ast.unparse(w.old), ast.unparse(w.new)) == (old, new))


def test_every_kind_of_change():
    found = {(w.kind, ast.unparse(w.new)) for w in changes(example)}
    assert {
        ("sign of a sum", "max(2.0 * x, x ** 2) / n - 1.0"),
        ("a summand dropped", "max(2.0 * x, x ** 2) / n"),
        ("a factor dropped", "max(2.0 * x, x ** 2)"),
        ("scale", "0.8 * (2.0 * x)"),
        ("exponent", "x ** 3"),
        ("min for max", "min(2.0 * x, x ** 2)"),
        ("N - 1 for N", "n - 1"),
    } <= found
    assert example(2, 3.0) == 5.5
    with in_place(one(example, "max(2.0 * x, x ** 2)", "min(2.0 * x, x ** 2)")) as hits:
        assert example(2, 3.0) == 4.0 and hits
    assert example(2, 3.0) == 5.5 and "__hit__" not in globals()


def test_the_draw_depends_on_the_seed_alone():
    first, again, other = ([str(w) for w in itertools.islice(drawn(seed), 12)] for seed in (1, 1, 2))
    assert first == again != other and len(set(first)) == 12
    modules = {function.__module__ for function in functions()}
    assert len(functions()) > 300 and not any(name.endswith("closed_form") for name in modules)


def test_a_private_function_belongs_to_the_formulas_that_use_it():
    known = {function.__name__: function for function in every_function()}
    assert {"lloyd_max_levels", "_positive_levels"} <= used_by(known["_cells"])
    assert "rotation.eden.limit" in calling(known["_cells"], RECORDS)


def test_what_is_noticed_disclosed_and_neither():
    function = vars(spectral.best_rank_contraction)["__wrapped__"]
    records = {"best-rank.contraction": RECORDS["best-rank.contraction"]}
    assert list(records)[0] in calling(function, RECORDS)
    scaled = one(function, "rank / min(rows, columns)", "0.8 * (rank / min(rows, columns))")
    assert fate(scaled, records)[0] == "noticed"
    same = scaled._replace(new=scaled.old)  # no change at all
    what = fate(same, records)
    assert what[0] == "neither" and "changed in none" in what[1]
    assert fate(scaled, {"qsgd.variance": RECORDS["qsgd.variance"]}) == ("disclosed", "no claim is about this formula")


def test_a_bound_that_is_only_weaker_is_disclosed():
    function = vars(spectral.best_rank_contraction)["__wrapped__"]
    record = RECORDS["best-rank.contraction"]
    larger = one(function, "rank / min(rows, columns)", "1.25 * (rank / min(rows, columns))")
    checks = random_formulas.checks_of(record.id)
    pairs = [
        (check, check._replace(rule=rule, predicted=factor * check.predicted))
        for check in checks[:1]
        for rule, factor in (("upper", 1.25), ("upper", 0.8), ("lower", 0.8), ("lower", 1.25), ("identity", 1.25))
    ]
    said = [random_formulas._weaker(ours._replace(rule=theirs.rule), theirs) for ours, theirs in pairs]
    assert said == [True, False, True, False, False] and fate(larger, {record.id: record})[0] == "noticed"


@pytest.mark.full
def test_forty_wrong_formulas(capsys, monkeypatch):
    """At least 38 of 40 are noticed or disclosed."""
    monkeypatch.setattr("sys.argv", ["random_formulas.py", "--seed", "1"])
    random_formulas.main()
    last = capsys.readouterr().out.splitlines()[-1]
    assert int(last.split(" neither")[0].split()[-1]) <= 2, last
