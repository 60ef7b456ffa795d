"""The example of docs/add-a-claim.md is short and right, and claims in files of one's own are claims."""

from __future__ import annotations

import ast
import itertools
import json
import re
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from conftest import ROOT

import theory as th
from theory.claims import certain, claim, equality, find_claim, identity, list_claims, load_claims, upper
from theory.claims.base import REGISTRY
from theory.claims.factories import compressor_law, gaussian
from theory.claims.judgement import overall
from theory.claims.records import measured
from theory.experiment.claim_citation import Origin, command, record_of
from theory.experiment.cli import main
from theory.measure import betting_interval
from theory.reporting.files import FileRefused

FILE = ROOT / "docs" / "examples" / "dealt_coordinates.py"
PAGE = ROOT / "docs" / "add-a-claim.md"
PARITY = """
from theory.claims import claim, identity

@claim("{id}", title="Even", statement="Twice an integer is even.", source="derived", kind="identity",
       subject={factor}, mutants={{"three times": 3}})
def _(context):
    yield identity("the remainder of 7 times as much", 7 * context.subject % 2, 0)
"""

LAW = """
import theory as th
from theory.claims.judgement import overall
from theory.claims.factories import compressor_law, gaussian

about = {"of": th.bounds.rand_k_variance, "at": [(gaussian(9), {"k": 3})]}
compressor_law("randk.variance", th.RandK, **about, mutants={"m": th.TopK})
"""


@pytest.fixture
def own(tmp_path):
    """Make a file with a claim; forget it, and what else was loaded, afterwards."""
    list_claims()  # all topics are loaded, so that forgetting leaves the package's own
    claims, modules = dict(REGISTRY), set(sys.modules)

    def write(name, text=None, id="parity.even", factor=2):
        (tmp_path / name).write_text(PARITY.format(id=id, factor=factor) if text is None else text)
        return tmp_path / name

    yield write
    REGISTRY.clear()
    REGISTRY.update(claims)
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith((str(tmp_path), str(FILE.parent))):
            del sys.modules[name]


# --- the example -----------------------------------------------------------------------------------------------------


def test_it_has_less_than_60_lines():
    text = FILE.read_text(encoding="utf-8")
    spoken = range(1, ast.parse(text).body[0].end_lineno + 1)  # the docstring
    assert len([n for n, line in enumerate(text.splitlines(), 1) if line.strip() and n not in spoken]) < 60


def test_the_page_shows_the_file_and_its_cells_run(own, monkeypatch, capsys):
    page = PAGE.read_text(encoding="utf-8").partition("\n## Which interval\n")[0]
    (shown,) = re.findall(r"^<!-- file: (\S+) -->$", page, re.MULTILINE)
    assert (PAGE.parent / shown).resolve() == FILE
    cells = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1:]  # the first is the file
    monkeypatch.chdir(PAGE.parent)
    space = {"__name__": "__main__"}
    for cell in cells:
        exec(compile(cell, str(PAGE), "exec"), space)
    found = re.findall(r"^mean\.dealt: (\w+)", capsys.readouterr().out, re.MULTILINE)
    assert found == ["holds", "fails"]  # as the page says: first the right formula, then the wrong one


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_example_holds_and_refutes_its_mutants(own, seed):
    assert load_claims(FILE) == ["mean.dealt"]
    result = th.verify("mean.dealt", seed=seed, quick=True)
    assert result.verdict == "holds" and len(result.mutants) == 3 and result.ok, str(result)


def test_its_formula_is_the_mean_over_all_ways_to_deal(own):
    load_claims(FILE)
    bound = find_claim("mean.dealt").of
    d, k, workers = 5, 2, 2
    v = np.array([[1.0, -2.0, 0.5, 3.0, 1.5], [2.0, 1.0, 0.0, 2.0, -1.0]])
    errors = []
    for order in itertools.permutations(range(d)):
        kept = np.array(order) // k == np.arange(workers)[:, None]
        errors.append(np.sum(((d / k * v * kept).mean(0) - v.mean(0)) ** 2))
    assert np.mean(errors) == pytest.approx(bound(d, k, workers, np.mean(np.sum(v**2, 1)), np.sum(v.mean(0) ** 2)))
    for wrong in ((d, 3, workers, 1.0, 1.0), (d, 0, workers, 1.0, 1.0)):
        with pytest.raises(ValueError, match="^k: "):
            bound(*wrong)
    with pytest.raises(ValueError, match="^square_of_mean: "):
        bound(d, k, workers, 1.0, 1.1)


# --- what a measurement may yield ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "measure, words",
    [
        (lambda context: [], "got no check"),
        (lambda context: [3.0, identity("x", 1.0, 1.0)], r"got 3\.0"),
        (lambda context: 0.5, r"got 0\.5"),
        (lambda context: [identity("x", np.ones(3), 1.0)], "samples have `equality`"),
    ],
    ids=["nothing", "a number among checks", "a number", "samples where a number is meant"],
)
def test_what_is_no_check_is_refused(own, measure, words):
    claim("own.odd", title="t", statement="s", kind="identity", source="derived", subject=None, see=("qsgd.variance",))(
        measure
    )
    with pytest.raises(TypeError, match=words):
        th.verify("own.odd")


def test_a_law_takes_a_function_and_names_what_it_lacks(own):
    def quarter(v, rng):
        return 4.0 * v * (rng.random(v.size) < 0.25)

    def make(k=0, kept=0):
        return th.compressor(quarter)

    case = [(gaussian(48), {"k": 12})]
    facts = {"of": th.bounds.rand_k_variance, "mutants": {"one fewer": lambda k: th.RandK(k - 1)}}
    compressor_law("own.quarter", make, at=case, **facts)
    assert th.verify("own.quarter", quick=True).verdict == "holds"  # omega = d/k - 1, as of coins
    compressor_law("own.quarter", make, at=[(gaussian(48), {"kept": 12})], **facts)
    with pytest.raises(ValueError, match="at: got 'settings without k'"):
        th.verify("own.quarter")
    with pytest.raises(ValueError, match="at: got 'tight', allowed: equality or upper or lower"):
        compressor_law("own.quarter", make, at=[(*case[0], "tight")], **facts)


def a_claim(id, measure, **facts):
    usual = {"title": "t", "statement": "s", "kind": "identity", "source": "my notes", "see": ("qsgd.variance",)}
    claim(id, **usual | {"subject": None} | facts)(measure)


@pytest.mark.parametrize(
    "measured, predicted, words",
    [
        (None, 0.5, r"measured: got None for 'x', allowed: all samples"),
        ("0.5", 0.5, r"measured: got '0\.5' for 'x'"),
        (["a", "b"], 0.5, r"measured: got \['a', 'b'\] for 'x'"),
        ([[1.0], [1.0, 2.0]], 0.5, r"measured: got .* for 'x', allowed: all samples"),
        (np.ones((50, 20)), 0.5, r"measured: got shape \(50, 20\) for 'x', allowed: \(samples,\)"),
        ([0.5], 0.5, r"measured: got a sample of one for 'x', allowed: all samples, or certain\(\.\.\.\)"),
        (np.float64(0.5), 0.5, r"measured: got a sample of one for 'x', .*`identity`"),
        ([0.5, 0.6], "0.5", r"predicted: got '0\.5' for 'x', allowed: a number"),
        ([0.5, 0.6], np.ones(3), r"predicted: got shape \(3,\) for 'x', allowed: a number"),
    ],
)
def test_what_is_no_sample_is_refused_by_its_name(measured, predicted, words):
    with pytest.raises((TypeError, ValueError), match=words):
        equality("x", measured, predicted)


def test_one_random_number_is_no_sample(own):
    def one(context):
        yield upper("computed before anything is drawn", 0.5, 1.0)
        rng = np.random.default_rng(context.stream())
        yield context.subject("the mean of the samples", -rng.random(50).mean(), 0.0)

    a_claim("own.one", one, subject=upper)
    with pytest.raises(ValueError, match="got a sample of one for 'the mean of the samples'"):
        th.verify("own.one")
    a_claim("own.one", lambda context: list(one(context)), subject=upper)  # all checks are made at once
    with pytest.raises(ValueError, match="got a sample of one"):
        th.verify("own.one")
    a_claim("own.one", one, subject=lambda label, found, bound: upper(label, certain(found), bound))
    assert th.verify("own.one").verdict.startswith("holds")


def test_messages_of_the_wrong_shape_are_refused(own):
    for message, got in ((lambda v: v, r"shape \(20,\)"), (lambda v: None, "None"), (lambda v: "a", "'a'")):
        facts = {"of": th.bounds.rand_k_variance, "at": [(gaussian(20), {"k": 5})], "mutants": {"m": th.TopK}}
        compressor_law("own.law", lambda k, message=message: lambda v, samples, rng: message(v), **facts)
        with pytest.raises(ValueError, match=f"messages: got .*{got}.*, allowed: \\(samples, 20\\)"):
            th.verify("own.law", quick=True)


def test_equal_samples_are_judged_as_a_number_and_said_to_be_equal(own):
    a_claim("own.equal", lambda context: [equality("E x", np.full(50, 0.558342), 0.5)])
    found = th.verify("own.equal")
    assert found.verdict == "fails" and found.effort == 1
    assert "All 50 samples of 'E x' are equal" in found.note and "rarer than 24 % of the draws" in found.note
    assert "all 50 samples equal" in str(found) and "inf" not in str(found)
    a_claim("own.equal", lambda context: [upper("E x", np.full(50, 0.558342), 0.6)])
    assert th.verify("own.equal").verdict == "holds"


def test_a_false_theorem_about_what_is_deterministic_is_refuted(own):
    def biased(context):
        v, n = context.normal(16), context.samples(200)
        messages = np.array([context.subject(v) for _ in range(n)])
        yield equality("<E C(v), v>/||v||^2", messages @ v / (v @ v), 1.0)

    a_claim("own.unbiased", biased, subject=lambda v: np.abs(v).mean() * np.sign(v), mutants={"v": np.zeros_like})
    found = th.verify("own.unbiased")
    assert found.verdict == "fails" and found.mutants == {"v": "caught"}


def test_of_outcomes_what_was_not_seen_is_not_excluded(own):
    never = np.zeros(50, bool)
    a_claim("own.never", lambda context: [equality("P", never, 0.05), upper("P", never, 0.1)])
    found = th.verify("own.never")  # 1 - (half of 10^-6)^(1/50) = 0.25
    assert found.verdict == "undecided" and found.checks[0].interval.high > 0.2 and not found.note
    a_claim("own.never", lambda context: [equality("P", never.astype(int), 0.0)])
    assert "Outcomes, 0 or 1, have to be an array of bool" in th.verify("own.never").note
    bets = partial(betting_interval, never.astype(float), 0.0, 1.0)
    a_claim("own.never", lambda context: [equality("P", bets, 0.05)])
    assert th.verify("own.never").verdict == "undecided"


def test_a_claim_that_fails_says_why_in_one_line(own):
    samples = np.random.default_rng(0).normal(2.0, 0.1, 400)
    a_claim("own.why", lambda context: [upper("first", 1.0, 2.0), equality("the mean", samples, 1.0)])
    found = th.verify("own.why")
    assert not found.ok and re.fullmatch(
        r"fails by the check 'the mean': measured (1\.9|2\.0)\d* \(\[1\.9\d*, 2\.0\d*\]\), stated =  1", found.why
    )
    assert f"\n  why: {found.why}\n" in str(found) and "the mean" in found._repr_html_().split("why")[1]
    facts = {"subject": samples, "mutants": {"a larger one": samples + 0.001}}
    a_claim("own.why", lambda context: [equality("the mean", context.subject, 2.0)], **facts)
    assert "cannot tell this wrong version from the truth: a larger one" in th.verify("own.why").why
    a_claim("own.why", lambda context: [upper("the mean", samples, 3.0)], refuted="question")
    assert th.verify("own.why").why.startswith("the statement was to be refuted (question)")
    assert th.verify("topk.contraction", quick=True).why == ""


def test_what_is_behind_a_verdict_is_said_in_sentences(own):
    a_claim("own.words", lambda context: [upper("x", np.random.default_rng(0).random(2000), 0.6)])
    said = str(th.verify("own.words"))
    assert (
        "  measured by: the claim's own code (the numbers come from the code of the claim, which is shown with it)"
        in said
    )
    assert "  source: my notes (from memory, not checked in a text)" in said


def test_a_claim_of_ones_own_is_cited_as_ones_own(own, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own("parity.py")
    for author, line in ((), False), (("--author", "E. Galois"), True):
        assert main(["verify", "parity.py", "topk.contraction", "--quick", "--markdown", "m.md", *author]) == 0
        mine, ours = re.split(r"(?m)^(?=# )", (tmp_path / "m.md").read_text())[1:]
        assert ("author       = {{E. Galois}}" in mine) is line and ("author" in mine) is line
        assert "commit" not in mine and "theory developers" not in mine and "@misc{parity-even-1," in mine
        assert "measured with the software theory" in mine and "ledger" not in mine
        assert "@misc{theory-topk-contraction-1," in ours and "Galois" not in ours and "author" in ours
    made = Origin("0123abc", "2031-02-03")
    assert record_of(th.verify("parity.even"), made)["commit"] == ""
    assert record_of(th.verify("topk.contraction", quick=True), made)["commit"] == "0123abc"


# --- the entry point -------------------------------------------------------------------------------------------------


def test_a_file_that_is_loaded_again_says_what_it_says_now(own):
    path = own("parity.py")
    assert load_claims(path) == ["parity.even"] and th.verify("parity.even").ok
    own("parity.py", id="parity.odd", factor=1)
    assert load_claims(path) == ["parity.odd"] and th.verify("parity.odd").verdict == "fails"
    assert "parity.even" not in list_claims()


def test_what_is_no_file_of_claims_is_refused(own, tmp_path):
    before, loaded = list_claims(), set(sys.modules)
    refusals = {
        "a Python file that exists": [tmp_path / "nowhere.py", own("notes.txt"), tmp_path],
        "a file that registers a claim": [own("silent.py", "x = 1\n")],
        "another name: Python has a module": [own("json.py"), own("colorsys.py")],
        "another name: there is a module pytest": [own("pytest.py")],
        "a name that is not taken": [own("thief.py", id="qsgd.variance"), own("by_law.py", LAW)],
    }
    for allowed, paths in refusals.items():
        for path in paths:
            with pytest.raises(ValueError, match=f"got .*, allowed: {allowed}"):
                load_claims(path)
    assert list_claims() == before and sys.modules["json"] is json
    assert sys.modules["pytest"] is pytest and not {"thief", "colorsys"} & (set(sys.modules) - loaded)


def test_a_file_that_fails_leaves_nothing_behind(own):
    path = own("half.py", PARITY.format(id="parity.even", factor=2) + "\nraise RuntimeError('no time')\n")
    with pytest.raises(FileRefused, match=r"cannot be run: RuntimeError: no time \(line \d+\)"):
        load_claims(path)
    assert "parity.even" not in list_claims() and "half" not in sys.modules
    assert load_claims(own("half.py")) == ["parity.even"]


def test_a_cell_of_a_notebook_may_be_changed_and_run_again(own):
    for cell, factor in (("/tmp/ipykernel_1/111.py", 1), ("/tmp/ipykernel_1/222.py", 2)):
        space = {"__name__": "__main__"}
        exec(compile(PARITY.format(id="parity.even", factor=factor), cell, "exec"), space)
    assert th.verify("parity.even").ok
    with pytest.raises(ValueError, match="a name that is not taken"):  # but not by a file, and no claim of the package
        load_claims(own("parity.py"))
    with pytest.raises(ValueError, match="a name that is not taken"):
        exec(compile(PARITY.format(id="qsgd.variance", factor=2), "/tmp/ipykernel_1/333.py", "exec"), space)


def test_the_bound_is_shown_with_its_home(own):
    load_claims(FILE)
    assert "dealt_coordinates.dealt_error(d: int" in " ".join(str(th.explain("mean.dealt")).split())
    assert "theory.bounds.rand_k_variance(d: " in find_claim("randk.variance").signature()
    assert find_claim("randk.variance").signature(annotated=False) == "theory.bounds.rand_k_variance(d, k)"


def test_the_command_takes_files_and_ids(own, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own("parity.py")
    assert main(["verify", "parity.py", "topk.contraction", "parity.py", "--quick", "--json", "l.json"]) == 0
    assert "2 of 2 claims" in capsys.readouterr().out
    written = json.loads((tmp_path / "l.json").read_text())
    assert [result["id"] for result in written["results"]] == ["parity.even", "topk.contraction"]
    assert command(th.verify("parity.even")) == "python -m theory.experiment verify parity.py --seed 0"
    own("parity.py", factor=1)
    assert main(["verify", "parity.py"]) == 1  # refuted
    assert re.search(r"^  \S.* computed .*  fails$", capsys.readouterr().out, re.MULTILINE)  # with the witness
    assert main(["explain", "parity.py"]) == 0 and "parity.even" in capsys.readouterr().out
    for name, text in (("nowhere.py", "a Python file that exists"), ("parity.evem", "did you mean parity.even")):
        with pytest.raises(SystemExit):
            main(["verify", name])
        assert text in capsys.readouterr().err


def test_the_page_of_the_ledger_shows_a_claim_from_a_file(own, capsys, tmp_path, monkeypatch):
    pytest.importorskip("latex2mathml", reason="the ledger's page: latex2mathml is not installed")
    monkeypatch.chdir(tmp_path)
    assert main(["verify", str(FILE), "--quick", "--html", "l.html"]) == 0
    shown = (tmp_path / "l.html").read_text(encoding="utf-8")
    assert "dealt_coordinates.dealt_error(d, k, workers, mean_square, square_of_mean)" in shown
    assert "examples/dealt_coordinates.py --seed 0 --quick" in shown


# --- no warnings of NumPy --------------------------------------------------------------------------------------------


def test_a_run_that_diverges_and_a_bound_of_0_give_no_warnings(own, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert th.verify("dcgd.rate", quick=True).ok  # a mutant overflows
        monkeypatch.setattr(th.bounds, "bottou_constant_step", lambda T, **known: 0.0)
        for id in ("bottou.constant-step", "bottou.constant-step.paper"):
            assert overall(measured(find_claim(id), quick=True).truth.checks) == "fails"


def test_the_norm_of_a_gradient_whose_squares_overflow_is_a_number():
    slope = np.array([3e200, -4e200])
    large = th.function(lambda x: slope @ x, lambda x: slope, d=2)
    norm = th.run(th.ParallelSGD(th.Identity(), th.Constant(1e-9)), large, workers=1, steps=1).history["gradient_norm"]
    assert norm[0] == pytest.approx(5e200)


def test_an_error_in_a_measurement_names_the_claim(own):
    @claim("mine.single", title="one", statement="one", kind="upper", source="derived", subject=3, mutants={"four": 4})
    def _(context):
        rng = np.random.default_rng(context.stream())
        yield upper("error", rng.standard_normal(9).mean(), 2.5)

    with pytest.raises(ValueError, match="a sample of one") as found:
        th.verify("mine.single")
    assert found.value.__notes__ == ["in the measurement of the claim mine.single"]
