"""The index of the sources: every entry is whole, names what exists, and its command names what is there."""

from __future__ import annotations

import importlib
import re
import shlex
import tomllib
from collections import Counter

import pytest
from conftest import ROOT

import theory as th
from theory.claims import list_claims
from theory.reporting.files import shipped
from theory.studies.shared.configuration import shipped_studies

ITEMS = tomllib.loads((ROOT / "docs" / "sources" / "index.toml").read_text(encoding="utf-8"))["item"]
FIELDS = ["source", "id", "kind", "says", "printed", "ours", "command", "measured", "verdict", "reason"]
SOURCES = ["lecture", "nuqsgd", "mem-sgd", "conef", "cr-psgd"]
KINDS = {"theorem", "lemma", "corollary", "definition", "algorithm", "figure", "table", "experiment", "statement"}
VERDICTS = {
    "holds",
    "holds with another constant",
    "ordering holds",
    "ordering does not hold",
    "refuted as printed",
    "shown, not judged",
    "not ours",
}
NO_REASON_NEEDED = {"holds", "ordering holds"}
DECIMAL = r"\d[\d,]*\.\d+(?:e[+-]\d+)?"
EMPTY_IF_NOT_OURS = {"ours", "command", "measured"}

CLAIMS = set(list_claims())
STUDIES = set(shipped_studies())
PAGES = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("studies.md", "choose.md"))
MEASURED = dict(re.findall(r"<!-- begin: \S+ -m theory.experiment study (\S+) -->(.*?)<!-- end", PAGES, re.DOTALL))
NAMES = {
    "claim": CLAIMS.__contains__,
    "study": STUDIES.__contains__,
    "figure": lambda name: (ROOT / "figures" / f"{name}.png").is_file(),
    "lecture": lambda name: len(list((ROOT / "notebooks").glob(f"{name}-*.md"))) == 1,
    "bound": lambda name: name in dir(th.bounds),
    "method": lambda name: not name.startswith("_") and hasattr(th, name),
    "test": lambda name: (ROOT / name).is_file(),
}


def complaints(items: list[dict]) -> list[str]:
    """What is wrong with the entries, each with its source and id."""
    found = []
    for item in items:
        if list(item) != FIELDS or not all(isinstance(item[field], list if field == "ours" else str) for field in item):
            found.append(f"{item.get('source')}, {item.get('id')}: fields {list(item)}")
        else:
            found += [f"{item['source']}, {item['id']}: {wrong}" for wrong in wrongs(item)]
    if not found:
        found += [f"{id}: twice" for id, n in Counter((item["source"], item["id"]) for item in items).items() if n > 1]
        if [item["source"] for item in items] != sorted((i["source"] for i in items), key=SOURCES.index):
            found.append("the sources are mixed")
    return found


def wrongs(item: dict) -> list[str]:
    """What is wrong with one entry that has all fields."""
    found = []
    for field, known in (("source", SOURCES), ("kind", KINDS), ("verdict", VERDICTS)):
        if item[field] not in known:
            found.append(f"{field} {item[field]!r}")
    may_be_empty = {"reason"} if item["verdict"] in NO_REASON_NEEDED else set()
    if item["verdict"] == "not ours":
        may_be_empty = EMPTY_IF_NOT_OURS
    found += [f"{field} is empty" for field in FIELDS if not item[field] and field not in may_be_empty]
    for field in ("says", "printed", "measured", "reason"):
        if item[field] != " ".join(item[field].split()) or item[field].count("$") % 2 or item[field].count("`") % 2:
            found.append(f"{field}: blanks, $ or ` do not match")
    for name in item["ours"]:
        kind, _, what = name.partition(":")
        if kind not in NAMES or not NAMES[kind](what):
            found.append(f"there is no {name}")
    if len(set(item["ours"])) < len(item["ours"]):
        found.append("ours names something twice")
    if item["command"] and not runs(item["command"], item["ours"]):
        found.append(f"command {item['command']!r}")
    return found


def runs(command: str, ours: list[str]) -> bool:
    """Whether what a command names exists, and is among ``ours``."""
    words = shlex.split(command)
    if words[0] == "make":
        return re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE) is not None
    if words[:3] == ["python", "-m", "pytest"]:
        return (ROOT / words[3]).is_file() and f"test:{words[3]}" in ours
    if words[:3] != ["python", "-m", "theory.experiment"]:
        return False
    subcommand, names = words[3], words[4:]
    if subcommand == "verify":
        return bool(names) and CLAIMS.issuperset(names) and {f"claim:{name}" for name in names} <= set(ours)
    if subcommand == "study":
        return bool(names) and STUDIES.issuperset(names) and {f"study:{name}" for name in names} <= set(ours)
    if subcommand == "run":
        return len(names) == 2 and names[0] == "--config" and names[1] in shipped()
    return subcommand == "list" and not names


def test_the_index_is_whole_and_names_what_exists():
    assert complaints(ITEMS) == []
    assert {item["source"] for item in ITEMS} == set(SOURCES)
    assert {item["verdict"] for item in ITEMS} == VERDICTS


@pytest.mark.parametrize("item", [item for item in ITEMS if " study " in item["command"]], ids=lambda item: item["id"])
def test_numbers_that_a_study_measured_are_those_of_its_page(item):
    # A study that is measured again changes its page; the index must follow.
    studies = [name.removeprefix("study:") for name in item["ours"] if name.startswith("study:")]
    page = set(re.findall(DECIMAL, "".join(MEASURED[study] for study in studies)))
    assert set(re.findall(DECIMAL, item["measured"])) - page == set()


GOOD = next(item for item in ITEMS if item["verdict"] == "holds with another constant")
FOREIGN = next(item for item in ITEMS if item["verdict"] == "not ours")


@pytest.mark.parametrize(
    "change",
    [
        *({field: [] if field == "ours" else ""} for field in FIELDS),
        {"verdict": "nearly holds"},
        {"kind": "remark"},
        {"source": "rumour"},
        {"ours": ["claim:no.such-claim"]},
        {"ours": ["study:no-such-study"]},
        {"ours": ["figure:no-such-figure"]},
        {"ours": ["lecture:99"]},
        {"ours": ["bound:no_such_bound"]},
        {"ours": ["method:NoSuchMethod"]},
        {"ours": ["test:tests/no_such_test.py"]},
        {"ours": ["rumour:qsgd.variance"]},
        {"command": "python -m theory.experiment verify no.such-claim"},
        {"command": "python -m theory.experiment study no-such-study"},
        {"command": "python -m theory.experiment run --config no-such-configuration"},
        {"command": "python -m theory.experiment no-such-command"},
        {"command": "python -m pytest tests/no_such_test.py"},
        {"command": "make no-such-target"},
        {"measured": "half a formula: $x"},
    ],
    ids=str,
)
def test_a_broken_entry_is_found(change):
    assert complaints([GOOD]) == []
    assert complaints([GOOD | change])


def test_a_missing_field_and_a_second_entry_of_one_name_are_found():
    for field in FIELDS:
        assert complaints([{name: text for name, text in GOOD.items() if name != field}])
    assert complaints([GOOD, GOOD])


@pytest.mark.parametrize("field", [field for field in FIELDS if field not in EMPTY_IF_NOT_OURS])
def test_what_is_not_ours_still_says_what_it_is_and_why(field):
    assert complaints([FOREIGN]) == []
    assert complaints([FOREIGN | {field: ""}])


def test_each_page_has_every_entry_with_its_verdict(monkeypatch):
    pytest.importorskip("numpydoc", reason="documentation: numpydoc is not installed (make docs installs it)")
    monkeypatch.syspath_prepend(ROOT / "docs")
    make = importlib.import_module("_make")
    assert list(make.SOURCES) == SOURCES
    assert set(make.VERDICTS) == VERDICTS
    overview = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    assert all(f"| {verdict} |" in overview for verdict in VERDICTS)
    for source in SOURCES:
        items = [item for item in ITEMS if item["source"] == source]
        page = make.source_page(source, items)
        entries = page.split("\n## ")[1:]
        assert len(entries) == len(items)
        for item, entry in zip(items, entries, strict=True):
            assert f": **{item['verdict']}.**" in entry
            assert not item["command"] or f"`{item['command']}`" in entry
            assert len(re.findall(r"^: ", entry, re.MULTILINE)) == 2 + sum(bool(item[f]) for f in EMPTY_IF_NOT_OURS)
    failing = [item for item in ITEMS if item["verdict"] == "ordering does not hold"]
    assert make.source_summary(ITEMS).count("**Cause:**") == len(failing)
