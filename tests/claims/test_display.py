"""What a notebook shows: claims, explanations and verifications as HTML; claims by topic, words and source."""

import types
import xml.etree.ElementTree as ET

import pytest

import theory as th
from theory.claims import find_claim, verify


def well_formed(html: str) -> None:
    """Whether every element is closed."""
    ET.fromstring(f"<div>{html}</div>")


@pytest.fixture(scope="module")
def both():
    return verify(["topk.contraction", "randk.variance"], quick=True)


def test_claims_is_the_package_and_can_be_called():
    assert isinstance(th.claims, types.ModuleType) and th.claims.find_claim("qsgd.variance").id == "qsgd.variance"
    assert {claim.id.split(".")[0] for claim in th.claims("QSGD")} == {"qsgd"}
    assert len(th.claims()) == len(th.list_claims())
    assert all("alistarh" in f"{claim.cited} {claim.bibtex}".lower() for claim in th.claims(source="Alistarh"))
    assert "qsgd.unbiased" in [claim.id for claim in th.claims("random rounding unbiased")]
    with pytest.raises(ValueError, match="text: got 'qsdg', allowed: .* topics are qsgd"):
        th.claims("qsdg")


def test_claims_are_shown_with_formulas():
    found = th.claims("randk")
    assert repr(found).splitlines()[0].startswith("randk.unbiased") and "<math" in found._repr_html_()
    well_formed(found._repr_html_())
    claim = find_claim("randk.variance")
    assert len(repr(claim)) < 200 and "<math" in claim._repr_html_()
    well_formed(claim._repr_html_())


def test_a_topic_is_explained_by_its_claims():
    text = th.explain("QSGD")
    assert "qsgd.variance" in text and "<math" in text._repr_html_()
    assert th.explain("qsgd.variance")._repr_html_() == find_claim("qsgd.variance")._repr_html_()


def test_several_claims_are_verified(both):
    assert [result.id for result in both] == ["topk.contraction", "randk.variance"]
    assert repr(both).splitlines()[1].startswith("randk.variance: holds, measured 9")
    assert both._repr_html_().count("<svg") == 2
    well_formed(both._repr_html_())
    with pytest.raises(ValueError, match="the nearest are"):
        verify(["topk.contraction", "randk.varaince"])


def test_a_verification_shows_formula_bars_and_verdict(both):
    html = both[0]._repr_html_()
    assert "<math" in html and html.count("<svg") == len(both[0].checks) and "holds" in html
    well_formed(html)


def test_an_unknown_formula_is_shown_as_it_is():
    from theory.claims.display import formula

    assert formula(r"\nosuchthing{x}") == r"<code>\nosuchthing{x}</code>" and formula("") == ""
