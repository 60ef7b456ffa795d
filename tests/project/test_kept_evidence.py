"""Kept evidence: what a change makes out of date, exactly; and that evidence which was edited is noticed."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections import Counter

import pytest
from conftest import ROOT

from theory.claims import find_claim, list_claims
from theory.claims.evidence import EvidenceDamaged, _checksum, from_line, measured, same_numbers, to_line
from theory.claims.verification import judged
from theory.experiment.kept_evidence import changed, measured_apart, read_evidence, same_software, software
from theory.reporting.dependencies import Node, Sources

EVIDENCE = read_evidence()
WITH_TERMS = "bottou.constant-step.paper"  # exact, with a start and a noise as summands


@pytest.fixture
def copy(tmp_path):
    """A copy of the sources to edit."""
    shutil.copytree(ROOT / "theory", tmp_path / "theory", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@functools.cache
def now() -> set[str]:
    """What is out of date without an edit."""
    return out_of_date(ROOT)


def out_of_date(root) -> set[str]:
    return set(changed(EVIDENCE, EVIDENCE, 0, True, root))


def edit(root, file: str, old: str, new: str) -> None:
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


def executed(file: str, *names: str) -> set[str]:
    """The claims for which a definition, or its file as a whole, was executed."""
    wanted = {"*", *names}
    return {id for id, one in EVIDENCE.items() if wanted & set(one.executed.get(file, ()))}


# --- what depends on what -----------------------------------------------------------------------------------------


def test_there_is_evidence_for_every_claim_of_the_package():
    assert set(EVIDENCE) == {id for id in list_claims() if not find_claim(id).file}
    for id, one in EVIDENCE.items():
        assert one.digest and one.executed, id
        assert set(one.versions) == set(software())


@pytest.mark.slow
def test_the_badge_says_what_the_evidence_does():
    """Counted here from the evidence, apart from how the badge counts."""
    results = [judged(find_claim(id), EVIDENCE[id]) for id in list_claims() if id in EVIDENCE]
    good = [result for result in results if result.ok]
    words = Counter("refuted" if result.refuted else result.verdict for result in good)
    words["slack or loose"] = words.pop("holds, slack", 0) + words.pop("holds, loose", 0)
    words["hold"] = words.pop("holds")
    mutants = Counter(fate for result in results for fate in result.mutants.values())
    text = (ROOT / "figures" / "ledger.svg").read_text(encoding="utf-8")
    said = re.search('aria-label="The ledger: (.*?)"', text)[1].replace("claims: ", "claims, ").split(", ")
    alarms = len(results) - len(good)
    wanted = {f"{n} {word}" for word, n in words.items() if n} | {f"{len(results)} claims", f"{alarms} alarms"}
    wanted |= {f"{mutants['refuted']} of {mutants.total()} mutants caught"}
    assert set(said) == wanted, "verify --quick --changed --badge figures/ledger.svg writes it again"


def test_a_formula_makes_those_claims_out_of_date_that_executed_it(copy):
    before = now()
    file = "theory/bounds/quantization.py"
    edit(copy, file, "return root / s - 1.0 if", "return root / s - 1.5 if")
    after = out_of_date(copy)
    assert after - before == executed(file, "qsgd_variance") - before
    assert {"qsgd.variance", "qsgd.variance.paper"} <= after | before
    assert not {"qsgd.unbiased", "topk.contraction"} & (after - before)


def test_words_and_comments_change_nothing(copy):
    before = now()
    path = copy / "theory/bounds/quantization.py"
    path.write_text("# A comment.\n" + path.read_text(encoding="utf-8").replace("Source:", "Source: see"))
    topic = copy / "theory/claims/topics/qsgd.py"
    text = topic.read_text(encoding="utf-8").replace('title="QSGD is unbiased"', 'title="No bias"')
    topic.write_text(text.replace('see=("qsgd.variance",)', 'see=("qsgd.unbiased",)'), encoding="utf-8")
    assert out_of_date(copy) == before


def test_a_constant_makes_those_claims_out_of_date_that_name_it(copy):
    before = now()
    edit(copy, "theory/claims/topics/qsgd.py", "partial(WrongQSGD, fault=NEAREST)", "partial(WrongQSGD, fault=DOWN)")
    after = out_of_date(copy) - before  # ROUNDED, and MUTANTS, which is made of it
    assert {"qsgd.unbiased", "qsgd.variance", "qsgd.variance.exact"} - before <= after
    assert after <= {id for id in EVIDENCE if id.startswith("qsgd.")} and "qsgd.variance.paper" not in after


@pytest.mark.parametrize(
    ("file", "name", "one", "another"),
    [
        ("theory/compressors/qsgd.py", "QSGD", "qsgd.variance", "topk.contraction"),
        ("theory/compressors/kernels/norms.py", "", "qsgd.variance", WITH_TERMS),
    ],
    ids=["compressor", "kernel"],
)
def test_compiled_code_makes_those_claims_out_of_date_that_ran_it(copy, file, name, one, another):
    before = now()
    path = copy / file
    path.write_text(path.read_text(encoding="utf-8") + "\n\ndef more(x):\n    return x\n")
    after = out_of_date(copy) - before
    assert after == executed(file) - before  # the files in which something was compiled
    assert one in after | before and another not in after


def test_what_is_gone_and_another_version_are_changes(copy):
    (copy / "theory/compressors/qsgd.py").unlink()
    assert "qsgd.variance" in out_of_date(copy)
    assert same_software(software())
    for name in software():
        assert not same_software(software() | {name: "0.1.0"}) and not same_software({})


def test_what_is_measured_in_another_form_is_a_change():
    assert set(changed(["qsgd.variance"], EVIDENCE, 1, True)) == {"qsgd.variance"}
    assert set(changed(["qsgd.variance"], EVIDENCE, 0, False)) == {"qsgd.variance"}
    assert set(changed(["qsgd.variance"], {}, 0, True)) == {"qsgd.variance"}


def test_a_claim_measured_apart_tells_what_was_executed():
    (found,) = measured_apart(["qsgd.variance"], 0, True)
    assert "qsgd_variance" in found.executed["theory/bounds/quantization.py"]
    assert "compressor_law('qsgd.variance')" in found.executed["theory/claims/topics/qsgd.py"]
    assert found.executed["theory/compressors/qsgd.py"] == ["*"]
    assert not any(file.startswith("theory/compressors/topk") for file in found.executed)
    assert Sources().digest(found.executed) == found.digest
    assert judged(find_claim(found.id), found).ok


def test_constants_are_found_through_imports_classes_and_cached_functions(tmp_path):
    package = tmp_path / "theory"
    package.mkdir()
    (package / "__init__.py").write_text('"""Words alone."""\n')
    (package / "a.py").write_text(
        "import functools\nfrom . import b\nfrom .b import LIMIT as TOP\n\n"
        "@functools.cache\ndef stored():\n    return inner()\n\ndef inner():\n    return 1\n\n"
        "def run(x):\n    from .b import late\n    return min(x, TOP) + b.SHIFT + stored() + late + b.Setting().n\n"
    )
    (package / "b.py").write_text(
        "LIMIT = 3\nSHIFT = 4\nOTHER = 5\nDEFAULT = 6\nlate = 7\n\ndef unused():\n    return OTHER\n\n"
        "def made():\n    return DEFAULT\n\nclass Setting:\n    n: int = made()\n"
    )
    sources = Sources(tmp_path)
    assert sources.node_at("theory/__init__.py", 1) is None and sources.node_at("theory/a.py", 12).name == "run"
    found = sources.closure([Node("theory/a.py", "run")])
    names = {"LIMIT", "SHIFT", "late", "Setting", "made", "DEFAULT"}
    assert {node.name for node in found if node.file == "theory/b.py"} == names
    assert {node.name for node in found if node.file == "theory/a.py"} == {"run", "stored", "inner"}


# --- evidence that is not what was measured ---------------------------------------------------------------------------


def edited(id: str, change) -> str:
    """The line of a claim after a change of its entry, with a checksum that fits."""
    entry = json.loads(to_line(EVIDENCE[id]))
    del entry["checksum"]
    change(entry)
    return json.dumps(entry | {"checksum": _checksum(entry)})


def test_a_line_is_what_was_written():
    for id in list(EVIDENCE)[::20]:
        line = to_line(EVIDENCE[id])
        again = from_line(line)
        assert same_numbers(EVIDENCE[id], again, 0.0) == [] and to_line(again) == line
        with pytest.raises(EvidenceDamaged, match="edited"):
            from_line(line.replace('"quick":true', '"quick":false'))
    with pytest.raises(EvidenceDamaged):
        from_line(to_line(EVIDENCE[WITH_TERMS])[:-9])


def test_an_edited_number_is_noticed():
    line = to_line(EVIDENCE[WITH_TERMS])
    number = repr(EVIDENCE[WITH_TERMS].truth.checks[0].interval.estimate)
    with pytest.raises(EvidenceDamaged, match="edited"):
        from_line(line.replace(number, repr(float(number) * 1.01), 1))

    def scale(entry):
        entry["truth"][3][0][2] *= 1.01

    fresh = measured(find_claim(WITH_TERMS), quick=True)
    assert same_numbers(EVIDENCE[WITH_TERMS], fresh) == []
    assert same_numbers(from_line(edited(WITH_TERMS, scale)), fresh)  # where the claim is measured again


@pytest.mark.parametrize(("value", "same"), [(1e-31, True), (1e-3, False)])
def test_a_difference_counts_unless_it_is_a_rounding_error_of_the_largest_number(value, same):
    """Zero, measured by another processor, is another tiny number."""
    id = "sign.fails.line"  # the gradient itself reaches the minimum: 0, up to rounding errors

    def set_to(scale):
        def change(entry):
            entry["truth"][3][0][2] = scale * value

        return from_line(edited(id, change))

    assert (same_numbers(set_to(1.0), set_to(2.0)) == []) is same


def test_an_edited_digest_is_noticed():
    def other(entry):
        entry["digest"] = "0" * 16

    forged = from_line(edited(WITH_TERMS, other))
    assert changed([WITH_TERMS], {WITH_TERMS: forged}, 0, True)


def test_a_dropped_summand_is_noticed():
    def drop(entry):
        for row in entry["truth"][3]:
            if isinstance(row[3], list):
                row[3][2].pop("noise", None)
        entry["source"][2].pop("without noise", None)  # the wrong formula that was tried during the claim

    claim, forged = find_claim(WITH_TERMS), from_line(edited(WITH_TERMS, drop))
    assert any("summands" in line for line in same_numbers(forged, measured(claim, quick=True)))
    assert "without noise" in judged(claim, EVIDENCE[WITH_TERMS]).formula_mutants
    assert "without noise" not in judged(claim, forged).formula_mutants


def test_packages_of_an_environment_in_the_checkout_are_outside_it(tmp_path):
    own, installed = tmp_path / "theory" / "own.py", tmp_path / ".venv" / "lib" / "site-packages" / "theirs.py"
    for path in (own, installed):
        path.parent.mkdir(parents=True)
        path.write_text("def f():\n    return 1\n", encoding="utf-8")
    found = Sources(tmp_path).executed([(str(own), 1), (str(installed), 1)])
    assert found == {"theory/own.py": ["f"]}
