"""The pages of refuted statements, in print, as quoted and as read here: the statement, the witness, what holds.

The template (``errata_page.md``) has their text.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..claims import Verification, find_claim, list_claims
from ..reporting.files import rendered
from .claim_citation import checks_of, command, plain
from .ledger_page import CARE, witness

NAMES = {"in print": "erratum", "quoted": "quoted", "reading": "reading"}  # how anchors begin
WORDS = {  # relation to the source, and how the statement and what holds instead are introduced
    "in print": ("In print", "Refuted.", "What holds"),
    "quoted": ("Quoted from", "As quoted, refuted.", "What holds"),
    "reading": ("Read from", "So read, refuted.", "Instead"),
}
PAGES = {"in print": "errata.md", "quoted": "errata-quoted.md", "reading": "errata-readings.md"}  # by text of a claim


def refuted_claims() -> list[str]:
    """The ids of the statements that are expected to be refuted, each followed by what holds instead.

    Examples
    --------
    >>> found = refuted_claims()
    >>> found[found.index("qsgd.bits.theorem-3.4") + 1]
    'qsgd.code-length'
    """
    ids = []
    for id in list_claims():
        claim = find_claim(id)
        if claim.refuted in PAGES:
            ids += [other for other in (id, *claim.see) if other not in ids]
    return ids


def errata(results: dict[str, Verification]) -> dict[str, str]:
    """The pages, in Markdown.

    Parameters
    ----------
    results : dict
        Id to result, for each of :func:`refuted_claims`.

    Returns
    -------
    dict
        File name to text.
    """
    functions = (checks_of, command, find_claim, plain, witness)
    common = {function.__name__: function for function in functions} | {"anchor": _anchor, "results": results}
    claims = [find_claim(id) for id in refuted_claims()]
    pages = {}
    for text, name in PAGES.items():
        words = dict(zip(("origin", "refuted", "instead"), WORDS[text], strict=True), care=CARE[text], text=text)
        here = [claim for claim in claims if claim.refuted == text]
        pages[name] = rendered(Path(__file__).with_name("errata_page.md"), claims=here, **words, **common)
    return pages


def _anchor(id: str) -> str:
    return f"{NAMES[find_claim(id).refuted]}-" + re.sub(r"[^a-z0-9]+", "-", id.lower())
