"""The page of refuted statements, in print, as quoted and as read here: the statement, the witness, what holds.

The template (``errata_page.md``) has their text.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..claims import Verification, find_claim, list_claims
from ..reporting.files import rendered
from .claim_citation import checks_of, command, plain
from .ledger_page import witness

NAMES = {"in print": "erratum", "quoted": "quoted", "reading": "reading"}  # how anchors begin
WORDS = {  # relation to the source, and how the statement and what holds instead are introduced
    "in print": ("In print", "Refuted.", "What holds"),
    "quoted": ("Quoted from", "As quoted, refuted.", "What holds"),
    "reading": ("Read from", "So read, refuted.", "Instead"),
}


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
        if claim.refuted in NAMES:
            ids += [other for other in (id, *claim.see) if other not in ids]
    return ids


def errata(results: dict[str, Verification]) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    results : dict
        Id to result, for each of :func:`refuted_claims`.

    Returns
    -------
    str
    """
    functions = (anchor, checks_of, command, find_claim, link, plain, witness)
    claims = [find_claim(id) for id in refuted_claims()]
    kinds = {text: [claim for claim in claims if claim.refuted == text] for text in NAMES}
    common = {function.__name__: function for function in functions} | {"words": WORDS, "results": results}
    return rendered(Path(__file__).with_name("errata_page.md"), kinds=kinds, **common)


def anchor(id: str) -> str:
    """The name of a statement's entry on the page."""
    return f"{NAMES[find_claim(id).refuted]}-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def link(id: str) -> str:
    """A link from a page of ``docs`` to the entry of a claim."""
    return f"[`{id}`](claims/{id.split('.')[0]}.md#{re.sub(r'[^a-z0-9_-]', '', id.lower())})"
