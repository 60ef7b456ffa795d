"""One scale: every verdict is one of the six words, and no page and no code has another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

from theory.claims import find_claim
from theory.claims.records import read_records
from theory.claims.verification import judged
from theory.experiment.atlas import atlas_rows
from theory.experiment.sources_index import judge_index
from theory.reporting.scale import SCALE, UNJUDGED

OLD = re.compile(
    r"holds, (slack|loose|vacuous)|order consistent|(slack|refuted) by SDP|best of its conditions|below a relaxation"
    r"|refuted as printed|shown, not judged|ordering (holds|undecided|does not)|verdict [!=]= .refuted|CONSISTENT"
)


def texts() -> list[Path]:
    """Pages that people write, and code; a list of changes says what was."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*.py"), *ROOT.glob("notebooks/*.md")]
    for folder in ("theory", "benchmarks", "docs/sources"):
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".html", ".md", ".toml")]
    return [path for path in found if path.name.upper() != "CHANGELOG.MD"]


@pytest.mark.parametrize("old", ["holds, slack", "refuted by SDP", 'verdict == "refuted"', "ordering does not hold"])
def test_an_old_word_is_noticed(old):
    assert OLD.search(f"found: {old}")


def test_no_page_and_no_code_has_a_word_of_another_scale():
    found = {str(path.relative_to(ROOT)): OLD.search(path.read_text(encoding="utf-8")) for path in texts()}
    assert len(found) > 300 and {name: match[0] for name, match in found.items() if match} == {}


def test_every_verdict_is_one_of_the_six_words():
    claims = {judged(find_claim(id), record).verdict for id, record in read_records().items()}
    assert claims <= set(SCALE) - {"in part"} and {"holds", "holds loosely", "fails"} <= claims
    assert {one.verdict for one in judge_index()} <= {*SCALE, UNJUDGED}
    assert {row.verdict for row in atlas_rows()} <= {*SCALE, UNJUDGED}
    for page in [ROOT / "docs" / "performance.md", *(ROOT / "docs" / "studies").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        said = re.findall(r"^- \*\*(.+?)\*\*(?: \([^)]*\))?: “", text, re.MULTILINE)
        assert (said or page.stem in ("choose", "epoch-seconds")) and set(said) <= set(SCALE), page
