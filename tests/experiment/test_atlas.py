"""The atlas: its rows are computed from formulas, solutions and evidence, and a wrong one is noticed."""

from __future__ import annotations

import json
import math

import pytest

from theory.claims import find_claim
from theory.experiment import atlas
from theory.experiment.cli import main
from theory.worst import CASES, compared, solution_of


@pytest.fixture(scope="module")
def rows():
    return atlas.atlas_rows()


def test_each_case_and_each_bound_on_a_class_has_a_row(rows):
    of_cases = [row for row in rows if row.how.startswith("SDP")]
    assert len(of_cases) == len(CASES)
    assert len(rows) > len(CASES) + 30
    for row in rows:
        assert row.method and row.functions and row.regime and row.verdict and row.claims
        assert all(find_claim(id).id == id for id in row.claims)


def test_the_largest_gap_comes_first_and_unknown_ones_last(rows):
    gaps = [-math.inf if row.gap is None else row.gap for row in rows]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 1.0 and rows[-1].gap is None


def test_a_row_says_what_its_case_says(rows):
    found = compared(CASES["ef.4"], solution_of(CASES["ef.4"]))
    (row,) = [row for row in rows if row.regime == CASES["ef.4"].regime and row.method == "error feedback"]
    assert (row.ours, row.below, row.gap, row.verdict) == (found.ours, found.below, found.gap, "holds")
    assert row.certificate == "symbolic" and row.printed == row.ours  # quoted from its paper


def test_what_follows_from_a_printed_theorem_is_not_called_printed(rows):
    printed = {row.printed for row in rows if row.method == "EF21" and row.how.startswith("SDP, and")}
    assert printed == {None}
    assert find_claim("ef.exact").source_known == "quoted"


def test_what_lemmas_allow_together_is_not_called_reached(rows):
    composed = [row for row in rows if "composition" in row.certificate and not row.how.startswith("SDP")]
    assert len(composed) >= 5
    assert all(row.gap is None and row.how.startswith("its lemmas together; ") for row in composed)


def test_no_gap_is_negative(rows):
    """A bound below what is reached would be refuted; of a sampled number the lower end of the interval counts."""
    assert min(row.gap for row in rows if row.gap is not None) > -1e-3


def test_the_command_writes_json_and_fails_for_a_refuted_formula(tmp_path, monkeypatch, capsys):
    file = tmp_path / "atlas.json"
    case = CASES["ef.4"]
    monkeypatch.setattr(atlas, "read_records", dict)  # the cases alone
    assert main(["atlas", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert len(found) == len(CASES) and capsys.readouterr().out.count("\n") >= len(CASES)
    assert {row["certificate"] for row in found} == {"not measured here"}
    monkeypatch.setitem(atlas.CASES, case.id, case._replace(ours=lambda: 0.9 * float(case.ours())))
    assert main(["atlas"]) == 1
    assert "| fails |" in capsys.readouterr().out
