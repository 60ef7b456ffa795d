"""A composition counts only where its lemmas are claims of their own, which hold."""

from __future__ import annotations

import pytest

from theory import bounds
from theory.claims import find_claim, list_claims
from theory.claims.judgement import overall
from theory.claims.proofs import execute
from theory.claims.proofs.proof_list import check, find_proof
from theory.claims.records import measured, read_records
from theory.claims.verification import judged

RECORDS = read_records()
COMPOSED = [id for id in list_claims() if find_claim(id).lemmas]


def tree(id: str, above: tuple[str, ...] = ()) -> list[str]:
    """The lemmas of a claim, and theirs; raises where one is no claim, is refuted, or needs what it is for."""
    assert id not in above, f"{id} is a lemma of itself: {' < '.join(above)}"
    claim = find_claim(id)
    assert not claim.refuted, f"{id} is refuted"
    return [one for lemma in claim.lemmas for one in (lemma, *tree(lemma, (*above, id)))]


@pytest.mark.parametrize("id", COMPOSED)
def test_the_lemmas_of_a_composition_are_claims_that_hold(id):
    for lemma in dict.fromkeys(tree(id)):
        found = judged(find_claim(lemma), RECORDS[lemma])
        assert found.verdict.startswith("holds") and found.survivors == [], f"{id} needs {lemma}: {found}"


def test_a_composition_is_one_by_its_lemmas_alone():
    from theory.claims import claim

    assert len(COMPOSED) >= 20
    with pytest.raises(ValueError, match="^certificate: got 'composition', allowed: "):
        claim("own.composed", of=bounds.qsgd_variance, subject=1, mutants={"two": 2}, certificate="composition")
    for id in ("memsgd.theorem", "conef.theorem", "ef.nonconvex"):  # what is proved from lemmas names the same
        assert set(find_proof(id).given) <= set(find_claim(id).lemmas), id


def test_the_lemma_of_choco_gossip_is_measured(monkeypatch):
    """1.25 rho gamma in place of rho gamma, which the comparison of two formulas once accepted."""
    assert find_claim("choco.gossip").lemmas == ("choco.lemma",)
    right = bounds.choco_lemma_factor

    def wrong(rho, beta, delta, gamma):
        a, b = gamma * rho / 2.0, delta / 2.0
        p = (1 + a) * (1 - 1.25 * rho * gamma) ** 2 + (1 - delta) * (1 + 1 / b) * (gamma * beta) ** 2
        q = (1 + 1 / a) * (gamma * beta) ** 2 + (1 - delta) * (1 + b) * (1 + gamma * beta) ** 2
        return max(p, q)

    assert overall(measured(find_claim("choco.lemma"), quick=True).truth.checks) == "holds"
    monkeypatch.setattr(bounds, "choco_lemma_factor", wrong)
    assert wrong(1.0, 1.0, 1.0, 1.0 / 15.0) < right(1.0, 1.0, 1.0, 1.0 / 15.0)
    assert overall(measured(find_claim("choco.lemma"), quick=True).truth.checks) == "fails"


def test_the_certificate_of_the_exact_rates_is_for_all_parameters_and_without_rounding():
    """What the claim says of every function, compressor and dimension is proved on symbols, at s = 0, too."""
    pytest.importorskip("sympy", reason="proofs: SymPy is not installed")
    found = check(find_proof("ef.exact.certificate"))
    assert found.proved and "EF21" in found.states and "s = 0" in found.states
    assert execute.evaluate("0.1", {}) * 10 == 1  # decimals of a source are fractions
    source = " ".join(find_claim("ef.exact.certificate").cited.split())
    assert "certificates/EF21/upper_bound_CAS.wls" in source, "the multiplier of EF21 is the authors'"
