"""Records of claims: what is written is read, and a number that is not what is measured is noticed."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from conftest import ROOT

from theory import bounds
from theory.claims import find_claim, list_claims
from theory.claims.records import (
    RecordDamaged,
    differences,
    from_line,
    measured,
    read_records,
    same_software,
    software,
    to_line,
    write_records,
)
from theory.claims.verification import judged
from theory.experiment.cli import main

RECORDS = read_records()
EXACT, SAMPLED = "bottou.constant-step.paper", "randk.variance"


def test_there_is_a_record_of_every_claim_in_its_quick_form():
    assert sorted(RECORDS) == sorted(list_claims())
    for id, record in RECORDS.items():
        assert (record.seed, record.quick) == (0, True) and set(record.versions) == set(software())
        assert set(record.formulas) <= set(bounds.__all__), id
    assert "qsgd_variance" in RECORDS["qsgd.variance"].formulas


def test_the_badge_says_what_the_records_do():
    """Counted here from the records, apart from how the badge counts."""
    results = [judged(find_claim(id), record) for id, record in RECORDS.items()]
    good = [result for result in results if result.ok]
    words = Counter("fail" if result.refuted else result.verdict for result in good)
    words["hold loosely"] = words.pop("holds loosely", 0)
    words["hold"] = words.pop("holds")
    mutants = Counter(fate for result in results for fate in result.mutants.values())
    text = (ROOT / "figures" / "ledger.svg").read_text(encoding="utf-8")
    said = re.search('aria-label="The ledger: (.*?)"', text)[1].replace("claims: ", "claims, ").split(", ")
    alarms = len(results) - len(good)
    wanted = {f"{n} {word}" for word, n in words.items() if n} | {f"{len(results)} claims", f"{alarms} alarms"}
    wanted |= {f"{mutants['caught']} of {mutants.total()} mutants caught"}
    assert set(said) == wanted, "make claims writes it again"


def test_a_record_is_read_as_it_was_written():
    for record in RECORDS.values():
        again = from_line(to_line(record))
        assert differences(record, again, 0.0) == [] and to_line(again) == to_line(record)
    infinite = RECORDS[EXACT].truth.checks[0]._replace(predicted=float("inf"))
    record = RECORDS[EXACT]._replace(truth=RECORDS[EXACT].truth._replace(checks=(infinite,)))
    assert "Infinity" not in to_line(record)
    assert from_line(to_line(record)).truth.checks[0].predicted == float("inf")


@pytest.mark.parametrize("line", ["", "[]", "{}", "not JSON", to_line(RECORDS[EXACT])[:-9]])
def test_what_is_no_record_is_refused(tmp_path, line):
    path = tmp_path / "claims.jsonl"
    path.write_text(f"{to_line(RECORDS[SAMPLED])}\n{line}\n", encoding="utf-8")
    with pytest.raises(RecordDamaged, match=r"claims\.jsonl, line 2: "):
        read_records(path)
    path.write_text(2 * f"{to_line(RECORDS[SAMPLED])}\n", encoding="utf-8")
    with pytest.raises(RecordDamaged, match="second record"):
        read_records(path)
    assert read_records(tmp_path / "none.jsonl") == {}


def edited(id: str, **changes):
    """The record of a claim after a change of its first check."""
    entry = json.loads(to_line(RECORDS[id]))
    entry["truth"]["checks"][0] |= changes
    return from_line(json.dumps(entry))


def test_an_edited_number_is_noticed_where_the_claim_is_measured():
    for id in (EXACT, SAMPLED):
        fresh = measured(find_claim(id), quick=True)
        if same_software(RECORDS[id]):
            assert differences(RECORDS[id], fresh) == []
        check = fresh.truth.checks[0]
        for name, number in (("predicted", check.predicted), ("measured", check.interval.estimate)):
            assert differences(edited(id, **{name: 1.01 * number}), fresh), name
        assert differences(edited(id, label="another"), fresh)
        for other in (dict(formulas=()), dict(used=("all",)), dict(seed=1), dict(quick=False), dict(mutants={})):
            assert differences(fresh._replace(**other), fresh), other


@pytest.mark.parametrize(("value", "same"), [(1e-31, True), (1e-3, False)])
def test_a_difference_counts_unless_it_is_a_rounding_error_of_the_largest_number(value, same):
    """Zero, measured by another processor, is another tiny number."""
    id = "sign.fails.line"  # the gradient itself reaches the minimum: 0, up to rounding errors
    assert (differences(edited(id, measured=value), edited(id, measured=2.0 * value)) == []) is same


def test_a_line_whose_numbers_are_the_same_stays_and_one_of_no_claim_goes(tmp_path):
    path = tmp_path / "claims.jsonl"
    write_records(path, [RECORDS[EXACT], RECORDS[SAMPLED]], RECORDS)
    before = path.read_text(encoding="utf-8")
    check = RECORDS[EXACT].truth.checks[0]
    write_records(path, [edited(EXACT, measured=check.interval.estimate * (1.0 + 1e-12))], RECORDS)
    assert path.read_text(encoding="utf-8") == before
    write_records(path, [edited(EXACT, measured=2.0)], RECORDS)
    assert read_records(path)[EXACT].truth.checks[0].interval.estimate == 2.0
    write_records(path, [], [SAMPLED])
    assert list(read_records(path)) == [SAMPLED]
    old = RECORDS[SAMPLED]._replace(versions=software() | {"numba": "0.1"})
    assert same_software(RECORDS[SAMPLED]._replace(versions=software())) and not same_software(old)
    write_records(path, [old], RECORDS)
    write_records(path, [RECORDS[SAMPLED]], RECORDS)
    assert read_records(path)[SAMPLED].versions == RECORDS[SAMPLED].versions


def test_the_command_writes_what_it_measured(tmp_path, capsys):
    path = tmp_path / "claims.jsonl"
    assert main(["verify", EXACT, SAMPLED, "--quick", "--write", str(path)]) == 0
    assert f"record: {path}" in capsys.readouterr().out
    found = read_records(path)
    assert sorted(found) == sorted([EXACT, SAMPLED])
    assert all(differences(found[id], measured(find_claim(id), quick=True)) == [] for id in found)
    page = tmp_path / "ledger.html"
    assert main(["verify", EXACT, "--read", str(path), "--html", str(page)]) == 0 and EXACT in page.read_text()
    for wrong in (["topk.contraction", "--read", str(path)], [EXACT, "--read", str(page)]):
        with pytest.raises(SystemExit, match="2"):
            main(["verify", *wrong])
        assert "--read: " in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["verify", EXACT, "--data", "digits", "--write", str(path)])
    assert "--write: not with --data" in capsys.readouterr().err
