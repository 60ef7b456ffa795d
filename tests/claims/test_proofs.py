"""Proofs for all parameters: each is checked, each wrong version fails, no claim is called proved without a check."""

import importlib.util
import shutil
import subprocess
from fractions import Fraction

import pytest

from theory import bounds
from theory.claims import find_claim, list_claims, verify
from theory.claims.proofs import (
    Change,
    Formulas,
    Region,
    Symbols,
    Unproved,
    certificate,
    check,
    dot,
    find_proof,
    list_proofs,
    pivots,
    proof,
    square,
    unit_forms,
    zero,
)
from theory.claims.proofs.coq_files import coq
from theory.claims.proofs.proof_list import PROOFS, secured
from theory.experiment.cli import main

needs_sympy = pytest.mark.skipif(importlib.util.find_spec("sympy") is None, reason="SymPy is not installed")
WRONG = [(id, variant) for id in list_proofs() for variant in find_proof(id).variants]


@needs_sympy
@pytest.mark.parametrize("id", list_proofs())
def test_the_proof_of_a_claim_is_checked(id):
    found = check(find_proof(id))
    assert found.proved, found.missing
    assert found.domain and found.signs and found.shown and id in list_claims()
    assert all(other in list_claims() for other in found.given)


@needs_sympy
@pytest.mark.parametrize("id, variant", WRONG)
def test_a_wrong_version_is_not_proved(id, variant):
    found = check(find_proof(id), variant)
    assert not found.proved and found.missing


def test_every_proof_has_a_wrong_version_of_the_package_s_formula():
    assert all(any(isinstance(one, Change) for one in find_proof(id).variants.values()) for id in list_proofs())


def test_the_six_wrong_multipliers_are_among_them():
    wrong = find_proof("ef.exact.certificate").variants
    assert set(find_claim("ef.exact.certificate").mutants) <= set(wrong) and len(wrong) >= 6


@needs_sympy
def test_a_claim_is_symbolic_if_its_proof_was_checked(monkeypatch):
    result = verify("ef.exact.certificate", quick=True)
    assert result.certificate == "symbolic" and "0 < z < 1" in str(result) and "signs" in str(result)
    assert result.as_dict()["proof"]["proved"]
    wrong = check(find_proof("ef.exact.certificate"), "V without its mixed term")
    monkeypatch.setattr("theory.claims.verification.certificate", lambda id: wrong)
    result = verify("ef.exact.certificate", quick=True)
    assert result.certificate == "identity" and "not proved" in str(result)


@needs_sympy
def test_a_proof_from_measured_lemmas_is_a_composition():
    kinds = {id: secured(certificate(id)) for id in list_proofs()}
    assert kinds["ef.exact"] == kinds["qsvrg.rate"] == "symbolic"  # what they use is proved
    assert kinds["memsgd.theorem"] == "symbolic composition"  # memsgd.memory is measured
    assert list(kinds.values()).count("symbolic") >= 25


def test_without_sympy_the_extra_is_named_and_nothing_is_proved(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = check(find_proof("ef.exact.certificate"))
    assert not found.proved and "sgd-theory[proofs]" in found.missing
    monkeypatch.setattr("theory.claims.verification.certificate", lambda id: found)
    result = verify("ef.exact.certificate", quick=True)
    assert result.certificate == "identity" and "sgd-theory[proofs]" in str(result)


# --- the machine ------------------------------------------------------------------------------------------------------


def test_formulas_are_executed_on_fractions_without_rounding():
    exact = Formulas(bounds)
    assert exact.exact_feedback_rate(Fraction(24, 25), 2) == Fraction(9, 25)
    assert exact.rand_k_variance(10, 3) == Fraction(7, 3)
    assert exact.qsvrg_bits(100, 10, 232, form="paper") == 6632  # 2.8 is 14/5
    with pytest.raises(Unproved, match="delta"):
        exact.exact_feedback_rate(Fraction(5, 4), 2)


def test_a_wrong_formula_is_a_piece_of_the_source():
    wrong = Formulas(bounds, [Change("rand_k_variance", "- 1.0", "- 2.0")])
    assert wrong.rand_k_variance(10, 3) == Fraction(4, 3)
    with pytest.raises(ValueError, match="a piece that rand_k_variance has once"):
        _ = Formulas(bounds, [Change("rand_k_variance", "- 7.0", "- 2.0")]).rand_k_variance


@needs_sympy
@pytest.mark.parametrize(
    "expression, sign",
    [
        (lambda x: x.z - x.z**2, 1),
        (lambda x: x.s - x.z**2, -1),
        (lambda x: (x.z - x.s) ** 2 - x.z**2 + 2 * x.z * x.s - x.s**2, 0),
        (lambda x: x.z - Fraction(1, 2), None),
        (lambda x: x.z * x.z - x.z + Fraction(1, 5), None),  # -1/20 at z = 1/2
    ],
)
def test_signs_are_those_on_the_whole_region(expression, sign):
    x = Symbols(Region(z=(0, 1), s=(0, "z**2")))
    assert x.sign(expression(x)) == sign


@needs_sympy
def test_a_branch_that_is_not_that_of_the_whole_region_is_no_proof():
    @proof("choco.best-gamma", region=Region(r=(1, "inf"), s=(0, "r")), states="", variants={"none": {}})
    def _(x):
        found = x.bounds.qsgd_variance(x.r**2, x.s)
        yield zero("one of the branches", (found - x.r / x.s + 1) * (found - x.r**2 / (4 * x.s**2)))

    found = check(PROOFS.pop("choco.best-gamma"))  # the first where 2 s <= r alone
    assert not found.proved and "for granted" in found.missing


@needs_sympy
def test_roots_are_exact_or_refused():
    x = Symbols(Region(z=(0, 1)))
    assert ((1 - 2 * x.z + x.z**2).root() - (1 - x.z)).vanishes()
    with pytest.raises(Unproved, match="not rational"):
        (1 + x.z).root()


def test_pivots_of_forms():
    x, y = unit_forms(2)
    assert pivots(square(x - 2 * y)) == [1, 0]
    assert min(pivots(dot(x, y))) < 0 and min(pivots(square(x) - square(y))) < 0


def test_no_claim_says_by_itself_that_it_is_proved():
    assert not any(find_claim(id).certificate == "symbolic" for id in list_claims())
    assert certificate("qsgd.bits-to-accuracy") is None


# --- Coq --------------------------------------------------------------------------------------------------------------


@needs_sympy
@pytest.mark.parametrize("wrong", [("", ""), ("* 16)", "* 17)")])
def test_coq_checks_the_exact_rates(tmp_path, wrong):
    """The file as it is; and with a piece of a formula changed, which Coq refuses."""
    if shutil.which("coqc") is None:
        pytest.skip("coqc is not installed")
    text = coq("ef.exact")
    assert text.count("Theorem rate_") == 2 and wrong[0] in text
    (tmp_path / "certificate.v").write_text(text.replace(*wrong) if wrong[0] else text)
    found = subprocess.run(["coqc", "certificate.v"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (found.returncode == 0) == (wrong == ("", "")), found.stderr


@needs_sympy
def test_what_coq_has_not_seen_is_not_exported():
    with pytest.raises(ValueError, match="allowed: ef.exact, ef.exact.certificate"):
        coq("randk.variance")


@needs_sympy
def test_the_command(capsys):
    assert main(["certificate", "randk.variance"]) == 0
    assert "for all d > 1, 1 < k < d" in capsys.readouterr().out
    assert main(["certificate", "ef.exact", "--coq"]) == 0
    assert "Theorem rate_EF21" in capsys.readouterr().out
