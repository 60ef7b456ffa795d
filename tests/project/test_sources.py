"""The index of the sources: every entry is whole, its verdict is that of its evidence, its numbers are from records."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest
from conftest import ROOT

import theory as th
from theory.claims import list_claims
from theory.experiment.cli import main
from theory.experiment.record_values import KeyRefused, Records, fill
from theory.experiment.sources_index import Entry, complaints, judged, read_index
from theory.reporting.files import ConfigurationError, shipped
from theory.reporting.scale import marked
from theory.studies.shared.configuration import shipped_studies
from theory.studies.shared.verdicts import Statement

INDEX = ROOT / "docs" / "sources" / "index.toml"
ENTRIES, RECORDS = read_index(INDEX), Records(ROOT / "figures")
JUDGED = {entry.key: judged(entry, RECORDS) for entry in ENTRIES}
SOURCES = ["lecture", "nuqsgd", "mem-sgd", "conef", "cr-psgd"]
KINDS = {"theorem", "lemma", "corollary", "definition", "algorithm", "figure", "table", "experiment", "statement"}
STUDIES = set(shipped_studies())
NAMES = {
    "study": STUDIES.__contains__,
    "figure": lambda name: (ROOT / "figures" / f"{name}.png").is_file(),
    "lecture": lambda name: len(list((ROOT / "notebooks").glob(f"{name}-*.md"))) == 1,
    "bound": lambda name: name in dir(th.bounds),
    "method": lambda name: not name.startswith("_") and hasattr(th, name),
    "test": lambda name: (ROOT / name).is_file(),
}


def wrongs(entry: Entry) -> list[str]:
    """What is wrong with the fields of an entry that are not evidence."""
    found = [f"source {entry.source!r}"] * (entry.source not in SOURCES)
    found += [f"kind {entry.kind!r}"] * (entry.kind not in KINDS)
    found += [f"{field} is empty" for field in ("id", "says", "printed") if not getattr(entry, field)]
    shown = entry.relation != "–" or entry.evidence
    if shown and not (entry.measured and entry.commands() and [*entry.evidence, *entry.ours]):
        found.append("nothing is measured, run or named")
    for field in ("says", "printed", "measured", "because", "reason"):
        text = getattr(entry, field)
        if text != " ".join(text.split()) or text.count("$") % 2 or text.count("`") % 2:
            found.append(f"{field}: blanks, $ or ` do not match")
    for name in entry.ours:
        kind, _, what = name.partition(":")
        if kind not in NAMES or not NAMES[kind](what):
            found.append(f"there is no {name}")
    if len(set(entry.ours)) < len(entry.ours):
        found.append("ours names something twice")
    return found + [f"command {command!r}" for command in entry.commands() if not runs(command)]


def runs(command: str) -> bool:
    """Whether what a command names exists."""
    words = shlex.split(command)
    if words[0] == "make":
        return re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE) is not None
    if words[:3] == ["python", "-m", "pytest"]:
        return all((ROOT / name.partition("::")[0]).is_file() for name in words[3:])
    if words[:3] != ["python", "-m", "theory.experiment"] or len(words) < 4:
        return False
    known = {"verify": set(list_claims()), "study": STUDIES}.get(words[3])
    if known is not None:
        return len(words) > 4 and known.issuperset(words[4:])
    return words[3:] == ["list"] or (words[3:5] == ["run", "--config"] and words[5] in shipped())


def test_the_index_is_whole_and_names_what_exists():
    assert {entry.key: wrongs(entry) for entry in ENTRIES if wrongs(entry)} == {}
    assert [entry.source for entry in ENTRIES] == sorted((e.source for e in ENTRIES), key=SOURCES.index)
    assert {entry.source for entry in ENTRIES} == set(SOURCES)


def test_evidence_exists_and_nothing_that_bears_on_an_entry_is_forgotten():
    assert complaints(ENTRIES, RECORDS, STUDIES) == []


# --- mutants of the index -----------------------------------------------------------------------------------------


def some(key: str) -> Entry:
    return next(entry for entry in ENTRIES if entry.key == key)


DENSE = some("mem-sgd/figure-2-epsilon-top-k-with-memory-and-sgd")
FAILS = (one for one in JUDGED.values() if one.verdict == "fails" and not one.left_out)
ROUNDS = next(one.entry for one in FAILS if len(one.evidence) > 1)
REFUTED = some("lecture/qsgd-alistarh-et-al-nips-2017-corollary-2-2-and-theorem-3-4-step-size")
FOREIGN = next(entry for entry in ENTRIES if entry.relation == "–" and not entry.evidence)


def test_a_verdict_cannot_be_raised():
    with pytest.raises(TypeError, match="verdict"):
        Entry(**ROUNDS._asdict(), verdict="holds")
    # Without the evidence that fails it would hold in part, or hold: only with a reason that is printed.
    left = [piece.key for piece in JUDGED[ROUNDS.key].evidence if piece.status == "fails"]
    raised = ROUNDS._replace(evidence=[key for key in ROUNDS.evidence if key not in left], left_out=left)
    assert judged(raised, RECORDS).verdict != "fails"
    assert any("because" in line for line in complaints([raised], RECORDS))
    assert complaints([raised._replace(because="It is left out, and this is why.")], RECORDS) == []


class With(Records):
    """Records in which a study has one more statement."""

    def __init__(self, name, said):
        super().__init__(ROOT / "figures")
        self.claim, self.values = RECORDS.claim, RECORDS.values
        more = RECORDS.study(name)
        more = more._replace(statements=[*more.statements, said])
        self.study = lambda other: more if other == name else RECORDS.study(other)


def test_a_study_that_contradicts_an_entry_is_noticed():
    said = Statement("more", "CR-PSGD is slower.", [False], "Slower.", bears_on=(DENSE.key,))
    others = [entry for entry in ENTRIES if entry != DENSE]
    with_more = With("mem-sgd-dense", said)
    (line,) = complaints(ENTRIES, with_more, ["mem-sgd-dense"])
    assert "mem-sgd-dense#more (fails) concerns it and is neither evidence nor left out" in line
    taken = DENSE._replace(evidence=[*DENSE.evidence, "study:mem-sgd-dense#more"])
    assert complaints([*others, taken], with_more, ["mem-sgd-dense"]) == []
    assert judged(taken, with_more).verdict == "fails"
    for wrong, answer in (("mem-sgd/no-such-entry", "not an entry"), ("mem-sgd/figure", "an entry, but several")):
        lines = complaints(ENTRIES, With("mem-sgd-dense", said._replace(bears_on=(wrong,))), ["mem-sgd-dense"])
        assert len(lines) == 1 and lines[0].endswith(answer)
    silent = complaints([*others, taken], With("mem-sgd-dense", said._replace(bears_on=())), ["mem-sgd-dense"])
    assert len(silent) == 1 and "is its evidence, and does not state that it concerns it" in silent[0]


def test_the_verdict_is_the_weakest_of_the_evidence():
    assert JUDGED[REFUTED.key].verdict == "fails"
    right = [key for key in REFUTED.evidence if "printed" not in key]
    assert judged(REFUTED._replace(evidence=right), RECORDS).verdict == "holds loosely"
    order = ("fails", "undecided", "in part", "vacuous", "holds loosely", "holds")
    for one in JUDGED.values():
        if one.entry.relation == "–":
            assert one.verdict == "–"
        else:
            assert one.verdict == min((piece.status for piece in one.evidence), key=order.index)


def test_what_holds_far_below_its_bound_holds_loosely_with_the_factor():
    """The theorems that lemmas give together are judged by their runs."""
    local = "mem-sgd/reference-local-sgd-stich-2018"
    for key, id in (("mem-sgd/theorem-2-4", "memsgd.theorem"), (local, "local-sgd.theorem")):
        one = JUDGED[key]
        (piece,) = [piece for piece in one.evidence if piece.key == f"claim:{id}"]
        run = [check for check in RECORDS.claim(id).checks if check.interval.samples and not check.assumed]
        most = max(check.interval.low / check.predicted for check in run)  # a bound below it would be contradicted
        assert one.verdict == piece.status == "holds loosely" and piece.passing == pytest.approx(1 / most)


@pytest.mark.parametrize(
    "change",
    [
        {"relation": "nearly"},
        {"evidence": []},
        {"evidence": ["claim:no.such-claim"]},
        {"evidence": ["claim:qsgd.variance#no-such-check"]},
        {"evidence": ["study:mem-sgd-dense"]},
        {"evidence": ["study:mem-sgd-dense#no-such-statement"]},
        {"evidence": ["study:no-such-study#statement"]},
        {"evidence": ["test:tests/project/test_sources.py::test_no_such_test"]},
        {"evidence": ["rumour:qsgd.variance"]},
        {"evidence": [*DENSE.evidence, *DENSE.evidence]},
        {"left_out": ["claim:qsgd.variance"]},
        {"because": "No reason."},
        {"relation": "–", "reason": ""},
        {"measured": "{study:mem-sgd-dense.no-such-table:n}"},
        {"measured": "{study:mem-sgd-dense.three.sgd.gap:n}"},
        {"measured": "{study:mem-sgd-dense.size.n.n:n}"},
        {"measured": "{study:mem-sgd-dense#no-such-statement.times:n}"},
        {"measured": "{study:mem-sgd-dense#top-as-sgd.no-such-number:n}"},
        {"measured": "{study:mem-sgd-dense#top-as-sgd.sgd:n}"},
        {"measured": "{claim:qsgd.variance.no-such-field:n}"},
        {"measured": "{bound:no_such_bound(1):n}"},
        {"measured": "{bound:qsgd_variance(0, 1):n}"},
        {"measured": "{study:mem-sgd-dense.size.n + 7:n}"},
        {"measured": "{study:mem-sgd-dense.size.n:q}"},
    ],
    ids=str,
)
def test_broken_evidence_is_found(change):
    assert complaints([DENSE], RECORDS) == []
    assert complaints([DENSE._replace(**change)], RECORDS)
    assert complaints([DENSE, DENSE], RECORDS)


@pytest.mark.parametrize(
    "change",
    [
        *({field: ""} for field in ("source", "id", "kind", "says", "printed", "measured")),
        {"kind": "remark"},
        *(
            {"ours": [name]}
            for name in ("study:no", "figure:no", "lecture:99", "bound:no", "method:No", "test:no.py", "no:1")
        ),
        *(
            {"command": f"python -m theory.experiment {name}"}
            for name in ("verify no", "study no", "run --config no", "no")
        ),
        {"command": "python -m pytest tests/no_such_test.py"},
        {"command": "make no-such-target"},
        {"measured": "half a formula: $x"},
    ],
    ids=str,
)
def test_a_broken_entry_is_found(change):
    assert wrongs(DENSE) == [] and wrongs(FOREIGN) == []
    assert wrongs(DENSE._replace(**change))


def test_an_unknown_field_is_refused(tmp_path):
    (tmp_path / "index.toml").write_text('[[item]]\nid = "x"\nverdict = "holds"\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="x: got id, verdict, allowed: source, id"):
        read_index(tmp_path / "index.toml")


def test_numbers_are_those_of_the_record_and_arithmetic_is_checked():
    n, d = RECORDS.values("mem-sgd-dense")["size"].n, RECORDS.values("mem-sgd-dense")["size"].d
    assert fill("{study:mem-sgd-dense.size.n:,.0f} rows, $x^{2}$", RECORDS) == f"{n:,} rows, $x^{{2}}$"
    assert (
        fill("{100 * study:mem-sgd-dense.size.d / study:mem-sgd-dense.size.n:.1f} %", RECORDS) == f"{100 * d / n:.1f} %"
    )
    said = next(said for said in RECORDS.study("largest-batch").statements if said.id == "held-out")
    held = "study:largest-batch#held-out"
    assert fill(f"{{{held}.holding:n}} of {{{held}.trials:n}}", RECORDS) == f"{said.count()} of {len(said.trials)}"
    assert fill(f"{{{held}.digits-t-0-25-n:.1f}}", RECORDS) == f"{said.values['digits, T = 0.25 n']:.1f}"
    assert fill("{bound:qsgd_variance(64, 4):.3f}", RECORDS) == f"{th.bounds.qsgd_variance(64, 4):.3f}"
    for wrong in ("{study:mem-sgd-dense.size.n ** 2:n}", "{len(study:mem-sgd-dense.size.n):n}"):
        with pytest.raises(KeyRefused, match="allowed: keys|not a key"):
            fill(wrong, RECORDS)


# --- pages and the command ----------------------------------------------------------------------------------------


def test_each_page_has_every_entry_with_its_verdict_and_its_evidence(monkeypatch):
    pytest.importorskip("numpydoc", reason="documentation: numpydoc is not installed (make docs installs it)")
    monkeypatch.syspath_prepend(ROOT / "docs")
    make = importlib.import_module("_make")
    assert list(make.SOURCES) == SOURCES
    for source in SOURCES:
        items = [one for one in JUDGED.values() if one.entry.source == source]
        entries = make.source_page(source, items).split("\n## ")[1:]
        assert len(entries) == len(items)
        for one, entry in zip(items, entries, strict=True):
            assert f"**Verdict:** **{marked(one.verdict)}**" in entry
            assert not re.search(r"(study|claim|bound):\w", entry)  # every key became a number or a link
            assert all(f"`{command}`" in entry for command in one.entry.commands())
            assert ("*Because:* " in entry) == bool(one.left_out) == ("\n- **Left out:** " in entry)
            assert entry.count("(*") >= sum(not piece.key.startswith("test:") for piece in one.evidence)
    summary = make.source_summary(list(JUDGED.values()))
    rows = re.findall(r"^\| \[(.+?)\]\(.*\) \| .* (\d+) \|$", summary, re.MULTILINE)
    assert sum(int(n) for _, n in rows) == len(ENTRIES) and len(rows) == len(SOURCES)


def test_the_command_prints_verdicts_and_evidence(capsys):
    assert main(["sources", ROUNDS.key]) == 0
    said = capsys.readouterr().out
    assert f"{ROUNDS.key}: fails, " in said and "    fails         claim:" in said
    with pytest.raises(SystemExit, match="2"):
        main(["sources", "no-such-source"])
    assert "no entry begins with no-such-source" in capsys.readouterr().err
