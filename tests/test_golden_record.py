"""Runs are what they were: rows of the golden record, some of them always, all of them with `make test-full`."""

from __future__ import annotations

import json

import golden_record
import pytest

RECORD = json.loads(golden_record.RECORD.read_text(encoding="utf-8"))
KINDS = ("compressors", "rules", "options", "local_steps", "problems", "replicas", "ranks")
KNOWN = [name for name in golden_record.cases() if name in RECORD["runs"]]  # what is younger has no row
SOME = [name for name in KNOWN if "ranks" not in golden_record.cases()[name][2]][::16]


def check(names) -> None:
    found = golden_record.measure_many(list(names))
    different = {name: golden_record.differences(name, found[name], RECORD) for name in found}
    assert {name: words for name, words in different.items() if words} == {}


@pytest.mark.parametrize("name", SOME)
def test_some_rows(name):
    check([name])


@pytest.mark.full
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.mpi) if k == "ranks" else k for k in KINDS])
def test_all_rows(kind):
    check(name for name in getattr(golden_record, kind)() if name in KNOWN)


def test_every_row_has_a_run():
    assert set(RECORD["runs"]) == set(KNOWN)
