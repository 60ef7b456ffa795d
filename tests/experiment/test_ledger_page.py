"""The ledger's page: it is complete, it asks for nothing from outside, and it does what its controls say."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from chromium import Chromium
from conftest import ROOT
from markupsafe import escape

from theory.bounds.bibliography import KNOWLEDGE, entries, fields, reference
from theory.claims import claim, equality, find_claim, identity, list_claims, lower, rate, upper, verify
from theory.claims.base import REGISTRY, registered
from theory.claims.judgement import CERTIFICATE, MEASURED_BY, VERDICT
from theory.claims.records import measured, read_records
from theory.claims.verification import judged
from theory.experiment.claim_citation import Origin, bibtex_of, markdown_of, record_of
from theory.experiment.cli import main
from theory.experiment.ledger_page import NAMES, alarms, badge, errata, number, page, refuted_claims
from theory.measure import Interval, exactly
from theory.reporting.formulas import FormulaError, mathml
from theory.reporting.scale import SCALE

CHEAP = ["topk.contraction", "qsgd.variance", "qsgd.bits.theorem-3.4", "randk.variance"]  # no long compilation
MADE = Origin("0123456789abcdef", "2031-02-03")
FACTS = dict(seed=0, quick=True, versions={"theory": "0"}, known=4, made=MADE)


@pytest.fixture(scope="module")
def results():
    return [verify(id, quick=True) for id in CHEAP]


@pytest.fixture
def own():
    """Register claims, and forget them afterwards."""
    before = dict(registered())
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


class Reader(HTMLParser):
    """Elements with their attributes, the text of each claim's rows, and whether every element is closed."""

    VOID = {"meta", "col", "wbr", "input", "br", "link", "img"}

    def __init__(self, text: str):
        super().__init__()
        self.elements, self.stack, self.texts, self.row = [], [], {}, None
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "tbody" and "id" in dict(attributes):
            self.row = dict(attributes)["id"]
            self.texts[self.row] = ""
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, text):
        if self.row is not None:
            self.texts[self.row] += text

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


# --- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [id for id in list_claims() if find_claim(id).latex])
def test_every_formula_is_typeset(id):
    text = mathml(find_claim(id).latex)
    assert "<math" in text and "\\" not in text and " style=" not in text
    ET.fromstring(f"<p>{text}</p>")  # well formed: it may stand in any page


@pytest.mark.parametrize("latex", [r"\nosuch x", r"\frac{1}{", "a}", r"\left( x", "x^", "", r"\mathop{x}"])
def test_a_formula_that_is_not_understood_is_refused(latex):
    with pytest.raises(FormulaError, match="^latex: "):
        mathml(latex)


def symbols(latex: str) -> list[tuple[str, str]]:
    tree = ET.fromstring(f"<p>{mathml(latex)}</p>")
    return [(e.tag, e.text) for e in tree.iter() if (e.text or "").strip()]


def test_what_the_translation_gets_wrong_is_corrected():
    assert symbols(r"\Big\|x\Big\|") == [("mo", "‖"), ("mi", "x"), ("mo", "‖")]
    assert symbols(r"\Big\{x\Big\}") == [("mo", "{"), ("mi", "x"), ("mo", "}")]
    assert symbols(r"\mathrm{rand}_k") == [("mi", "rand"), ("mi", "k")]
    assert symbols(r"\arg\min_p \omega") == [("mi", "arg"), ("mi", "min"), ("mi", "p"), ("mi", "ω")]
    assert "<munder><mi>sup</mi><mi>v</mi></munder>" in mathml(r"\sup_v x")
    assert '<mo form="prefix" lspace="0" rspace="0">−</mo>' in mathml(r"a\to-1")
    assert 'form="prefix"' not in mathml("a - 1")


def test_a_long_formula_may_break_before_relations_but_not_within_norms():
    assert mathml(r"a \le b = c").count("<math") == 3
    assert mathml(r"\|a = b\| |c = d| (e = f)").count("<math") == 1
    assert mathml("a + b").count("<math") == 1 and mathml("a + b + c + d + e + f").count("<math") == 2
    assert mathml(r"a = b,\quad c = d").count("<span>") == 2


# --- numbers and pictures ---------------------------------------------------------------------------------------------


def test_numbers_as_they_are_read():
    found = [number(v) for v in (0.123456, -2.0, 0.0, math.nan, math.inf, -math.inf, None)]
    assert found == ["0.1235", "−2", "0", "not a number", "∞", "−∞", "–"]
    found = [number(v) for v in (2.84678e8, 1e-10, -1e-5, 3e300, 99999.9, -1.5e-7)]
    assert found == ["2.847·10⁸", "10⁻¹⁰", "−10⁻⁵", "3·10³⁰⁰", "10⁵", "−1.5·10⁻⁷"]


def pictures(result, **changes) -> list[str]:
    """The pictures of the page of this result alone: a bar in its row, and one for each check below."""
    text = page([dataclasses.replace(result, mutants={}, **changes)], **FACTS)
    return re.findall("<svg.*?</svg>", text, re.DOTALL)


def bars(result, ratio: float) -> list[str]:
    return [
        p
        for p in pictures(result, measured=ratio, predicted=1.0, checks=(upper("", exactly(ratio), 1.0),))
        if 'class="bar"' in p
    ]


def check_picture(result, check) -> str:
    return "".join(p for p in pictures(result, measured=0.0, predicted=0.0, checks=(check,)) if 'class="dot"' in p)


def test_the_bar_is_as_long_as_the_ratio(results):
    def width(ratio: float) -> float:
        (bar,) = bars(results[0], ratio)
        return float(re.search(r'class="bar"[^>]* width="([\d.]+)"', bar)[1])

    assert width(0.5) == pytest.approx(width(1.0) / 2, abs=0.1)
    assert width(1.25) == width(70.0) == pytest.approx(88.0)
    assert width(-1.0) == width(0.0) == 0.0
    assert [bars(results[0], v) for v in (math.nan, math.inf, -math.inf)] == [[]] * 3


def place(picture: str, pattern: str) -> float:
    return float(re.search(pattern, picture)[1])


def test_the_picture_of_a_check_shows_the_interval_beside_the_prediction(results):
    picture = check_picture(results[0], upper("", Interval(5.0, 4.0, 6.0, samples=9), 10.0))
    line, dot = place(picture, r'class="mark" d="M([\d.]+)'), place(picture, r'cx="([\d.]+)"')
    low, high = place(picture, r'class="whisker" d="M([\d.]+)'), place(picture, r"H([\d.]+)m0-4v8")
    assert low < dot < high < line
    assert (dot - low) == pytest.approx(high - dot, abs=0.11)
    assert (line - dot) == pytest.approx(5 * (dot - low), abs=0.6)  # to scale
    shade = place(picture, r'class="band" x="([\d.]+)"')
    assert shade == line  # what the bound excludes lies beyond it


@pytest.mark.parametrize(
    "check",
    [
        identity("", 0.0, 0.0),
        identity("", 7.0, 7.0),
        equality("", Interval(-1e300, -2e300, 1e300), 0.0),
        lower("", exactly(2.0), 1.0),
        rate("", Interval(-1.0, -1.1, -0.9), -1.0, 0.2),
        upper("", Interval(1.0, 0.5, math.inf), 2.0),
        upper("", exactly(1e-12), 1e9),
    ],
)
def test_pictures_hold_no_wrong_coordinates(results, check):
    places = re.findall(r'(?:cx|x|width)="([^"]*)"', check_picture(results[0], check))
    assert places and all(-1.0 <= float(value) <= 251.0 for value in places)


@pytest.mark.parametrize("check", [upper("", exactly(math.nan), 1.0), upper("", exactly(1.0), math.inf)])
def test_there_is_no_picture_of_what_is_no_number(results, check):
    assert check_picture(results[0], check) == ""


# --- the page ---------------------------------------------------------------------------------------------------------


def test_each_claim_stands_once_with_all_that_is_known(results):
    text = page(results, **FACTS)
    reader = Reader(text)
    assert [a["id"] for a in reader.named("tbody") if "id" in a] == CHEAP
    assert "{%" not in text
    for result in results:
        known, shown = find_claim(result.id), reader.texts[result.id]
        for fact in (known.title, known.statement, known.cited, known.proof, *known.mutants, *known.bibtex):
            assert fact in shown
        assert all(check.label in shown for check in result.checks)
        assert f"python -m theory.experiment verify {result.id} --seed 0 --quick" in shown
        assert all(f'<a href="#{other}">' in text or other not in CHEAP for other in known.see)
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    controls = {a["aria-controls"] for a in reader.named("button") if "aria-controls" in a}
    assert controls == {f"more-{id}" for id in CHEAP} and controls <= set(ids)


def test_a_row_shows_what_secures_the_claim_what_would_pass_its_code_and_how_to_cite_it(results):
    texts = Reader(page(results, **FACTS)).texts
    for result in results:
        shown, known = texts[result.id], find_claim(result.id)
        assert result.certificate in shown and result.measured_by in shown and result.source_known in shown
        assert known.code in shown and known.cite in shown and known.cite == f"{result.id}@1"
        assert result.passes in shown


def test_mutants_are_shown_with_what_they_measured(results):
    result = results[CHEAP.index("qsgd.variance")]
    assert set(result.mutant_checks) == set(result.mutants)
    shown = Reader(page(results, **FACTS)).texts["qsgd.variance"]
    inverted = result.mutant_checks["rounding with the probability inverted"][0].interval.estimate
    assert number(inverted) in shown and inverted > 2 * result.predicted
    written = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert written["mutant_checks"]["rounding with the probability inverted"][0]["measured"] == inverted


def test_nothing_leaves_the_page(results):
    text = page(results, **FACTS)
    reader = Reader(text)
    tags = {tag for tag, _ in reader.elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "base", "video", "audio", "source"}
    for tag, attributes in reader.elements:
        assert "src" not in attributes and "style" not in attributes and "action" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith(("#", "data:", "https://doi.org/10.")), tag
    assert not re.search(r"url\(|@import|https?://", re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1])
    (policy,) = [a["content"] for a in reader.named("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    for tag in ("style", "script"):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_each_claim_can_be_cited(results):
    """With full references, a link that names the version, BibTeX, and the commit and the day of the page."""
    text = page(results, **FACTS)
    reader = Reader(text)
    ids = {attributes.get("id") for _, attributes in reader.elements}
    dois = {a["href"] for a in reader.named("a") if a["href"].startswith("https")}
    assert f"Of {MADE}" in text and str(MADE) == "commit 0123456789abcdef, 2031-02-03"
    for result in results:
        known, shown = find_claim(result.id), reader.texts[result.id]
        assert known.cite in ids and bibtex_of(result, MADE) in shown and str(MADE) in shown
        for entry in known.bibtex:
            assert reference(entry) in shown and entry in shown
            assert f"https://doi.org/{fields(re.search('{(.*?),', entry)[1])['doi']}" in dois
    assert 'class="source"' in text and "line-clamp" not in text


@pytest.mark.parametrize("key", entries())
def test_a_reference_has_all_authors_year_place_and_doi(key):
    found, text = fields(key), reference(entries()[key])
    place = found.get("booktitle") or found.get("journal") or found["note"]
    names = [author.partition(",")[0] for author in found["author"].split(" and ")]
    assert all(name in text for name in names if name.isascii() and "\\" not in name)
    assert f"({found['year']})" in text and text.endswith(f"doi:{found['doi']}")
    assert place.replace("{", "").replace("}", "").replace("--", "–") in text and not set(text) & set("{}\\")


def test_bibtex_of_a_claim_survives_tex(results):
    found = bibtex_of(results[1], MADE)
    assert found.startswith("@misc{theory-qsgd-variance-1,\n") and "year         = {2031}" in found
    assert "Verdict: holds; commit 0123456789abcdef, 2031-02-03" in found
    odd = dataclasses.replace(results[1], verdict="100 % & x_0 {")
    assert r"100 \% \& x\_0 \{" in bibtex_of(odd, MADE)


def test_words_that_judge_are_explained_where_they_stand(results):
    texts = Reader(page(results, **FACTS)).texts
    for result in results:
        for words, word in (
            (VERDICT, result.verdict),
            (CERTIFICATE, result.certificate),
            (MEASURED_BY, result.measured_by),
            (KNOWLEDGE, result.source_known),
        ):
            assert f"{word}: {words[word]}" in texts[result.id], (result.id, word)


def test_the_documentation_explains_the_words_as_the_page_does():
    pages = ("claims", "add-a-claim")
    text = "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in pages)
    for words in (CERTIFICATE, MEASURED_BY, KNOWLEDGE):
        for word, meaning in words.items():
            assert f"| {word} | {meaning} |" in text
    for word, (meaning, mark, _) in SCALE.items():
        assert f"| {mark} {word} | {meaning}" in text


def test_of_a_formula_that_gives_zero_the_difference_is_shown(results):
    odd = [identity("error", 4e-15, 0.0, 1e-12), equality("bias", Interval(0.01, -0.1, 0.2, samples=9), 0.0)]
    for check, beside in zip(odd, ("within\u202f10⁻¹²", "0 within the interval"), strict=True):
        wrong = dataclasses.replace(results[0], measured=0.0, predicted=0.0, checks=(check,))
        shown = Reader(page([wrong], **FACTS)).texts[CHEAP[0]]
        assert shown.count("difference from the formula") >= 2 and shown.count(beside) >= 2
    assert "within 1e-09 of the formula" in markdown_of(wrong, MADE)


def test_a_claim_is_exported_as_markdown_and_json(results):
    links = [a for a in Reader(page(results, **FACTS)).named("a") if "download" in a]
    held = {a["download"]: base64.b64decode(a["href"].partition("base64,")[2]).decode() for a in links}
    assert len(held) == 2 * len(results)
    for result in results:
        known, record = find_claim(result.id), json.loads(held[f"{result.id}.json"])
        assert record == json.loads(json.dumps(record_of(result, MADE, mutant_checks=False)))
        assert record["references"] == [reference(entry) for entry in known.bibtex] and record["date"] == MADE.date
        text = held[f"{result.id}.md"]
        assert text == markdown_of(result, MADE) and f"`{known.cite}`, {MADE}." in text and known.latex in text
        assert all(entry in text for entry in (*known.bibtex, bibtex_of(result, MADE)))
        assert text.count(": caught\n") == len(result.mutants) and f"- **Verdict:** {result.verdict} (" in text


def test_the_command_exports_claims(capsys, tmp_path):
    names = {name: tmp_path / f"one.{name}" for name in ("markdown", "json", "badge")}
    code, out, _ = run(capsys, "topk.contraction", "--quick", *(w for n, p in names.items() for w in (f"--{n}", p)))
    assert code == 0 and f"Markdown: {names['markdown']}" in out and f"badge: {names['badge']}" in out
    (record,) = json.loads(names["json"].read_text())["results"]
    assert record["cite"] == "topk.contraction@1" and record["mutant_checks"]
    assert "`topk.contraction@1`" in names["markdown"].read_text(encoding="utf-8")
    assert run(capsys, "topk.contraction", "--badge", "nowhere/b.svg")[0] == 2


def test_the_badge_counts(results):
    text = badge(results)
    ET.fromstring(text)
    mutants = sum(len(find_claim(id).mutants) for id in CHEAP)
    said = f"4 claims: 3 hold, 1 fail, {mutants} of {mutants} mutants caught, 0 alarms"
    assert mutants > 5 and said in text and "vacuous" not in text
    alarm = badge([dataclasses.replace(results[0], verdict="undecided"), *results[1:]])
    assert "2 hold" in alarm and "1 alarms" in alarm and len({*re.findall("#[0-9a-f]{6}", alarm + text)}) == 3


def test_an_order_that_is_consistent_raises_no_alarm(results):
    assert alarms(dataclasses.replace(results[0], verdict="holds loosely")) == []


def test_texts_are_escaped(own):
    evil = "<script>alert('1')</script> & \"x\" {{ rows }} {% raw %}"
    claim(
        "coin.evil",
        title=evil,
        statement=evil + ".",
        source=evil,
        kind="identity",
        subject=1.0,
        proof=evil,
        attained=evil,
        mutants={evil: 2.0},
        bibtex="@misc{x, title = {" + evil + "}}",
    )(lambda context: [identity(evil, context.subject, 1.0), evil])
    text = page([verify("coin.evil")], **FACTS)
    reader = Reader(text)
    assert len(reader.named("script")) == 1 and "<script>alert" not in text
    assert reader.texts["coin.evil"].count(evil) >= 8
    assert text.count(escape(evil)) >= 9  # in the attributes, too


@pytest.mark.parametrize(("measured", "predicted"), [(0.0, 0.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, math.inf)])
def test_ratios_that_are_no_numbers_sort_last(results, measured, predicted):
    check = upper("odd", exactly(measured), predicted)
    odd = dataclasses.replace(results[0], measured=measured, predicted=predicted, checks=(check,))
    (row,) = [a for a in Reader(page([odd], **FACTS)).named("tbody") if "id" in a]
    assert row["data-tightness"] == ("0" if math.isinf(predicted) else "")


def summary(results) -> str:
    text = page(results, **FACTS)
    return text[text.index("<header>") : text.index("</header>")]


def test_the_summary_counts(results):
    text = summary(results)
    assert "<b>4</b>claims" in text and "<b>3</b>hold" in text and "<b>1</b>fail, as expected" in text
    assert "<b>0</b>alarms" in text and "No alarm" in text
    assert "qsgd.bits.theorem-3.4" in text and "qsgd.code-length" in text  # what is refuted, and what holds instead


def test_the_summary_says_how_well_a_refuted_statement_is_known(results, own):
    facts = dict(statement="So it is said.", source="Theorem 1", kind="upper", subject=2.0, see=("topk.contraction",))

    def said(refuted: str, quote: str = "") -> str:
        claim("coin.said", title="Said", refuted=refuted, quote=quote, **facts)(
            lambda context: [upper("heads", context.subject, 1.0)]
        )
        text = summary([verify("coin.said")])
        del REGISTRY["coin.said"]
        return text[text.index("Said:") :]

    assert "The text was not available" in said("quoted") and "nobody claims it" in said("question")
    assert "the reading is ours" in said("reading", "At most one head.")
    printed = said("in print", "At most one head.")
    assert "at hand" not in printed and "reading" not in printed


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"verdict": "fails"}, "fails"),
        ({"verdict": "undecided"}, "undecided"),
        ({"mutants": {"idle": "survived"}}, "mutant survived: idle"),
        ({"refuted": "quoted"}, "expected to fail: holds"),
    ],
)
def test_what_is_not_expected_is_an_alarm(results, changes, reason):
    wrong = dataclasses.replace(results[0], **changes)
    assert alarms(wrong) == [reason]
    text = summary([wrong, *results[1:]])
    assert "<b>1</b>alarms" in text and reason in text and "No alarm" not in text
    assert wrong.ok is False


def test_an_interrupted_or_partial_ledger_says_so(results):
    text = page(results, **{**FACTS, "known": 99}, interrupted=True)
    assert "4 of 99" in text and "Interrupted" in text


def run(capsys, *arguments) -> tuple[int, str, str]:
    try:
        code = main(["verify", *map(str, arguments)])
    except SystemExit as stop:
        code = stop.code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_command_writes_the_page_and_the_numbers_beside_it(capsys, tmp_path):
    path = tmp_path / "ledger.html"
    path.write_text("old")
    code, out, _ = run(capsys, "topk.contraction", "--quick", "--seed", 5, "--html", path)
    assert code == 0 and f"page: {path}" in out
    assert "verify topk.contraction --seed 5 --quick" in path.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "ledger.json").read_text())["seed"] == 5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.html", "ledger.json"]  # no part is left
    code, out, _ = run(capsys, "topk.contraction", "--quick", "--html", path, "--json", tmp_path / "n.json")
    assert code == 0 and f"ledger: {tmp_path / 'n.json'}" in out


def test_a_page_that_cannot_be_finished_leaves_the_old_one(capsys, tmp_path, monkeypatch):
    path = tmp_path / "ledger.html"
    path.write_text("old")
    monkeypatch.setattr("theory.experiment.ledger.os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError):
        run(capsys, "topk.contraction", "--quick", "--html", path, "--json", tmp_path / "n.json")
    assert path.read_text() == "old"


def test_an_interruption_shows_what_there_is(capsys, tmp_path, monkeypatch):
    def one_then_stop(claim, **options):
        if claim.id != "topk.contraction":
            raise KeyboardInterrupt
        return measured(claim, **options)

    monkeypatch.setattr("theory.claims.records.measured", one_then_stop)
    path = tmp_path / "ledger.html"
    assert run(capsys, "topk.contraction", "qsgd.variance", "--quick", "--html", path)[0] == 130
    assert "Interrupted" in path.read_text(encoding="utf-8") and "topk.contraction" in path.read_text(encoding="utf-8")
    path.write_text("old")
    assert run(capsys, "qsgd.variance", "--quick", "--html", path)[0] == 130
    assert path.read_text() == "old"  # nothing was verified: better the old page than an empty one


# --- errata -----------------------------------------------------------------------------------------------------------


AGAIN = "run `make claims`"


def written(text: str) -> str:
    """The section of the page with the statements that are known in this way."""
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    return re.split(r"^## ", page, flags=re.MULTILINE)[1 + list(NAMES).index(text)]


def test_the_page_is_that_of_the_records():
    records = read_records()
    page = errata({id: judged(find_claim(id), records[id]) for id in refuted_claims()})
    assert page == (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"), f"docs/errata.md is out of date: {AGAIN}"
    for how in NAMES:
        known_so = [id for id in list_claims() if find_claim(id).refuted == how]
        assert known_so and all(f"[`{id}`](claims/" in written(how) for id in known_so)
    assert "do not refute it now" not in page


def test_errata_name_witness_and_correction(results, own):
    wanted = ["qsgd.bits.theorem-3.4", "qsgd.code-length"]
    for id in [id for id in REGISTRY if REGISTRY[id].refuted and id != wanted[0]]:
        del REGISTRY[id]
    assert refuted_claims() == wanted
    text = errata({id: verify(id, quick=True) for id in wanted})
    # equal magnitudes in 65,536 dimensions, four levels: entropy 65,536 (h(1/64) + 1/64) against 16.37 * 272 + 32
    row = next(line for line in text.splitlines() if line.startswith("| [Bits of QSGD"))
    measured, printed = (float(cell) for cell in row.split("|")[3:5])
    share, n = 1.0 / 64.0, 16.0 + 256.0
    entropy = -share * math.log2(share) - (1.0 - share) * math.log2(1.0 - share) + share
    logarithm = math.log2(2.0 * (16.0 + 65_536.0) / n)
    assert measured == pytest.approx(65_536 * entropy, rel=1e-4)
    assert printed == pytest.approx((3.0 + 1.5 * logarithm) * n + 32.0, rel=1e-4)
    o = (65_536 * entropy - 32.0) / n / logarithm - 3.0 / logarithm - 1.5
    assert f"{o:.3g} for d = 6.55e+04" in text and o > 1.7  # what the o(1) of the theorem would have to be
    assert "**What holds" in text and "*In print:* Alistarh" in text and "This is a reading" not in text
    assert "\n> Moreover, QSGD requires $(3 + " in text
    assert "**Why.**" in text and 'pytest tests/claims/test_claims.py -k "qsgd.bits.theorem-3.4"' in text
    assert text.count("\n### ") == 1


@pytest.mark.parametrize("how", NAMES)
def test_each_entry_has_witness_reason_derivation_and_test(how):
    for entry in written(how).split("\n### ")[1:]:
        name = re.search(r"^\[`([^`]+)`", entry, re.MULTILINE)[1]
        instead = "Instead" if how == "reading" else "What holds"
        assert "| fails |" in entry.split(f"**{instead}")[0], f"{name}: no witness"
        for part in ("efuted.", "Witness.", "Why."):
            assert f"{part}**" in entry, f"{name}: no {part}"
        assert f"**{instead}:" in entry and "*Derivation:*" in entry and "*Verdict:* holds" in entry, name
        assert f"verify {name} " in entry and f'pytest tests/claims/test_claims.py -k "{name}"' in entry
        assert not re.search(r"efuted\.\*\* The same", entry), f"{name} cannot be read alone"


def test_only_errata_accuse():
    printed, quoted, read = (written(how) for how in NAMES)
    for entry in printed.split("\n### ")[1:]:
        assert (
            "\n> " in entry and "*In print:*" in entry and "at hand" not in entry and "This is a reading" not in entry
        )
    for entry in quoted.split("\n### ")[1:]:
        assert "\n> " not in entry and "*Quoted from:*" in entry
        assert "**As quoted, refuted.**" in entry and "In print" not in entry
    for entry in read.split("\n### ")[1:]:
        assert "*Read from:*" in entry
        assert "**So read, refuted.**" in entry and ": false" not in entry
    assert "was not available: they are given as others quote them" in quoted and "the reading is ours" in read
    assert all(f'<a id="{NAMES[how]}-' in written(how) for how in NAMES)


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def opened(browser, results, tmp_path):
    """The page, open; afterwards nothing was asked for but the page, and the console is empty."""
    path = tmp_path / "ledger.html"
    path.write_text(page(results, **FACTS), encoding="utf-8")
    browser.size(1280, 900)
    browser.open(path.as_uri())
    yield browser
    browser.run("0")  # the events of what went before have come
    assert browser.complaints() == []
    assert {address.partition("#")[0] for address in browser.requests()} == {path.as_uri()}


ROWS = "[...document.querySelector('.ledger').tBodies]"


def visible(browser) -> list[str]:
    return browser.run(f"{ROWS}.filter(b => b.offsetHeight > 0).map(b => b.id)")


def choose(browser, id: str, value: str) -> None:
    browser.run(
        f"(() => {{ const f = document.getElementById({id!r}); f.value = {value!r}; "
        "f.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


@pytest.mark.parametrize(
    ("control", "value", "left"),
    [
        ("topic", "qsgd", ["qsgd.variance", "qsgd.bits.theorem-3.4"]),
        ("kind", "identity", ["randk.variance"]),
        ("verdict", "fails, as expected (in print)", ["qsgd.bits.theorem-3.4"]),
        ("search", "PROBABILITY rounding", ["qsgd.variance"]),
        ("search", "no such words", []),
        ("certificate", "symbolic", ["topk.contraction", "randk.variance"]),
        ("known", "derived", ["qsgd.variance", "randk.variance"]),
    ],
)
def test_filters(opened, control, value, left):
    assert visible(opened) == CHEAP
    choose(opened, control, value)
    assert visible(opened) == left
    assert opened.run("document.getElementById('shown').textContent") == f"{len(left)} of 4 claims"
    opened.run("document.querySelector('button[type=reset]').click()")
    opened.run("new Promise(done => setTimeout(done, 20))")
    assert visible(opened) == CHEAP


def test_sorting_by_the_heads_and_by_the_list(opened, results):
    tightness = {result.id: result.tightness for result in results}
    head = "document.querySelector('th[data-key=tightness]')"
    opened.run(f"{head}.querySelector('button').click()")
    assert visible(opened) == sorted(CHEAP, key=tightness.get)
    assert opened.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    opened.run(f"{head}.querySelector('button').click()")
    assert visible(opened) == sorted(CHEAP, key=tightness.get, reverse=True)
    assert opened.run(f"{head}.getAttribute('aria-sort')") == "descending"
    choose(opened, "sort", "id")
    choose(opened, "direction", "ascending")
    assert visible(opened) == sorted(CHEAP)
    assert opened.run(f"{head}.getAttribute('aria-sort')") == "none"
    choose(opened, "sort", "order")
    assert visible(opened) == CHEAP


def test_a_search_shows_matching_ids_first(opened):
    choose(opened, "search", "q")  # "equality" and "sequence" have it, too
    found = visible(opened)
    assert found[0] != CHEAP[0] and [id for id in found if "q" in id] == found[:2] and len(found) > 2


def test_sorting_by_resolution(opened, results):
    choose(opened, "sort", "resolution")
    assert visible(opened) == [
        *sorted(CHEAP[:2] + CHEAP[3:], key={result.id: result.passing for result in results}.get),
        CHEAP[2],
    ]


def test_the_table_of_theorems_leads_to_the_claims(opened):
    opened.run("document.querySelector('.theorems summary').click()")
    link = "document.querySelector('.theorems a[href=\\'#topk.contraction\\']')"
    assert opened.run(f"{link}.offsetHeight > 0")
    opened.run(f"{link}.click()")
    opened.run("new Promise(done => setTimeout(done, 50))")
    assert is_open(opened, "topk.contraction")


def test_rows_without_a_ratio_come_last(browser, results, tmp_path):
    path = tmp_path / "ledger.html"
    none = dataclasses.replace(results[0], measured=0.0, predicted=0.0)
    path.write_text(page([none, *results[1:]], **FACTS), encoding="utf-8")
    browser.size(1280, 900)
    browser.open(path.as_uri())
    choose(browser, "sort", "tightness")
    assert visible(browser)[-1] == CHEAP[0]
    choose(browser, "direction", "descending")
    assert visible(browser)[-1] == CHEAP[0]


def is_open(browser, id: str) -> bool:
    return browser.run(f"document.getElementById('more-{id}').offsetHeight > 0")


def test_a_row_opens_by_keyboard(opened):
    opened.run("document.querySelector('th:last-child button').focus()")
    opened.press("Tab")
    assert opened.run("document.activeElement.getAttribute('aria-controls')") == f"more-{CHEAP[0]}"
    assert opened.run("document.activeElement.matches(':focus-visible')")
    assert opened.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key, wanted in (("Enter", True), ("Enter", False), (" ", True)):
        opened.press(key)
        assert is_open(opened, CHEAP[0]) is wanted
        assert opened.run("document.activeElement.getAttribute('aria-expanded')") == str(wanted).lower()
    assert not any(is_open(opened, id) for id in CHEAP[1:])
    assert opened.run("location.hash") == f"#{CHEAP[0]}"


def test_a_fragment_opens_its_row(opened):
    choose(opened, "topic", "topk")  # also where a filter hides it
    opened.run("location.hash = '#qsgd.variance'")
    opened.run("new Promise(done => setTimeout(done, 50))")
    assert is_open(opened, "qsgd.variance") and not is_open(opened, "randk.variance")
    address = opened.run("location.href.split('#')[0]")
    opened.open("about:blank")
    opened.open(f"{address}#randk.variance")
    opened.run("new Promise(done => setTimeout(done, 50))")
    assert is_open(opened, "randk.variance")


def test_a_link_to_another_version_says_so(opened):
    for version, said in (("1", ""), ("7", "The link is to version 7 of qsgd.variance")):
        opened.run(f"location.hash = '#qsgd.variance@{version}'")
        opened.run("new Promise(done => setTimeout(done, 50))")
        assert is_open(opened, "qsgd.variance")
        assert opened.run("document.getElementById('changed').textContent").startswith(said)
        assert opened.run("document.getElementById('changed').hidden") is (said == "")


def test_an_export_is_a_file(opened, tmp_path):
    opened.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    opened.run("document.querySelector('a[download=\\'qsgd.variance.json\\']').click()")
    for _ in range(100):
        opened.run("new Promise(done => setTimeout(done, 50))")
        if (path := tmp_path / "qsgd.variance.json").is_file():
            break
    assert json.loads(path.read_text(encoding="utf-8"))["cite"] == "qsgd.variance@1"


@pytest.mark.parametrize("width", [1201, 1300, 1600])
def test_no_column_sticks_out(opened, width):
    opened.size(width, 900)
    opened.run("document.querySelectorAll('tr.details').forEach(row => row.hidden = false)")
    opened.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    parts = ".ledger > thead th, .ledger > tbody > tr.row > td, .inner"
    script = f"[...document.querySelectorAll('{parts}')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert opened.run(script) == 0
    assert opened.run("document.documentElement.scrollWidth") <= width


def test_formulas_are_laid_out(opened):
    """Browsers that know MathML put a denominator below its numerator; others set all in one line."""
    boxes = "[...document.querySelector('mfrac').children].map(e => e.getBoundingClientRect())"
    top, bottom = opened.run(f"{boxes}.map(b => [b.top, b.bottom])")
    assert top[1] <= bottom[0] + 1.0 and top[1] > top[0]


@pytest.mark.parametrize("width", [320, 390, 1199])
def test_on_a_phone_rows_are_cards_and_nothing_sticks_out(opened, width):
    opened.size(width, 844, mobile=True)
    opened.run("document.querySelector('.open-row').click()")
    assert opened.run("document.documentElement.scrollWidth") <= width
    assert opened.run("getComputedStyle(document.querySelector('tr.row')).display") == "grid"
    assert opened.run("document.querySelector('.ledger > thead').offsetHeight") == 0


def test_on_paper_there_are_rows_only(opened):
    opened.run("document.querySelector('.open-row').click()")
    opened.ask("Emulation.setEmulatedMedia", media="print")
    assert visible(opened) == CHEAP
    assert not is_open(opened, CHEAP[0])
    assert opened.run("document.querySelector('.controls').offsetHeight") == 0
    opened.ask("Emulation.setEmulatedMedia", media="")


def test_without_scripts_everything_is_shown(opened):
    opened.ask("Emulation.setScriptExecutionDisabled", value=True)
    opened.open(opened.run("location.href.split('#')[0]"))
    assert all(is_open(opened, id) for id in CHEAP)
    assert opened.run("document.querySelector('.controls').offsetHeight") == 0
    opened.ask("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(opened, scheme):
    """At least 4.5 to 1, for every colour that text has."""
    opened.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    names = ("ink", "soft", "link", "good", "vague", "bad", "expected", "paper", "shade")
    script = (
        "(names => { const box = document.body.appendChild(document.createElement('i')); "
        "return names.map(n => { box.style.color = `var(--${n})`; return getComputedStyle(box).color }) })"
    )
    found = dict(zip(names, opened.run(f"{script}({json.dumps(names)})"), strict=True))

    def luminance(colour):
        parts = [int(v) / 255 for v in re.findall(r"\d+", colour)[:3]]
        r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for name in names[:-2]:
        for ground in ("paper", "shade"):
            light, dark = sorted((luminance(found[name]), luminance(found[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)
    opened.ask("Emulation.setEmulatedMedia", features=[])


def test_rows_are_shown_as_they_come(capsys, tmp_path):
    code, out, _ = run(capsys, "topk.contraction", "randk.variance", "--quick", "--html", tmp_path / "l.html")
    lines = out.splitlines()
    assert code == 0 and lines[0].startswith("topk.contraction ") and " holds " in lines[0]
    assert lines[1].startswith("randk.variance ")


@pytest.mark.parametrize(
    "latex", [r"\operatorname*{arg\,min}_x f(x)", r"\operatorname*{ess\,sup}_x f", r"\operatorname* {maj}_i v_i"]
)
def test_a_starred_operator_has_its_index_below(latex):
    found = mathml(latex)
    assert "<munder><mi>" in found and "*" not in found
