"""Wrong formulas that most claims once accepted: tests/formula_mutants.toml lists them, and who notices now.

Every wrong formula is compared with the evidence of the claim, which test_claims.py keeps up to date.
"""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import pytest

from theory.claims import blind_spots, find_claim, formula_mutants
from theory.claims.evidence import measured
from theory.experiment.kept_evidence import read_evidence

EVIDENCE = read_evidence()

LISTED = tomllib.loads((Path(__file__).parents[1] / "formula_mutants.toml").read_text(encoding="utf-8"))["wrong"]
BY_CLAIM = {id: list(group) for id, group in itertools.groupby(LISTED, key=lambda wrong: wrong["claim"])}
FULL = {id for id, group in BY_CLAIM.items() if any(wrong.get("full") for wrong in group)}
CASES = [pytest.param(id, marks=pytest.mark.full) if id in FULL else id for id in BY_CLAIM]


def notices(checks, formula: str, mutant: str) -> bool:
    """Whether a check refutes the wrong formula."""
    if mutant.startswith("x "):
        blind = blind_spots(checks, formula)
        factor = float(mutant.removeprefix("x "))
        return factor < blind.low * (1.0 - 1e-9) or factor > blind.high * (1.0 + 1e-9)
    return formula_mutants(checks, formula)[mutant]


@pytest.mark.parametrize("id", CASES)
def test_wrong_formulas_are_noticed_where_the_list_says_so(id):
    checks = (EVIDENCE.get(id) or measured(find_claim(id), quick=True)).truth.checks
    for wrong in BY_CLAIM[id]:
        caught = notices(checks, wrong["formula"], wrong["mutant"])
        assert caught == (wrong["caught"] is True), f"{id}: {wrong['formula']} {wrong['mutant']}"


def test_the_list():
    assert len({(wrong["claim"], wrong["mutant"]) for wrong in LISTED}) == len(LISTED) >= 28
    assert sum(wrong["caught"] is True for wrong in LISTED) >= len(LISTED) - 4
    for wrong in LISTED:
        assert find_claim(wrong["claim"]).formula == wrong["formula"], wrong
        assert wrong["caught"] is True or len(wrong["caught"]) > 20, "a reason"
