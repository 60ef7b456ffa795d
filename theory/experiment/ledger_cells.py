"""Cells of the ledger's page: verdicts, intervals, comparisons and links, as HTML."""

from __future__ import annotations

from html import escape
from typing import Any

from ..claims.words import meaning
from .claim_citation import SIGNS, is_difference
from .ledger_pictures import number

__all__ = ["MARKS", "compared", "explained", "interval_of", "link", "table", "tone_of"]

DIFFERENCE = "difference from the formula"
NARROW = "\u202f"  # a non-breaking space
MARKS = {"holds": "✓", "holds, slack": "✓", "holds, loose": "~", "order consistent": "~"}
MARKS |= {"vacuous": "○", "refuted": "✗", "undecided": "?"}


def tone_of(verdict: str, text: str = "") -> str:
    """The class of a verdict, which has a colour; ``text`` says that a refuted one was to be refuted."""
    if verdict == "refuted":
        return "expected" if text else "refuted"
    weak = dict.fromkeys(("holds, loose", "order consistent", "vacuous"), "vacuous")
    return {"holds": "holds", "holds, slack": "holds", **weak}.get(verdict, "undecided")


def interval_of(interval: Any) -> str:
    """The ends of an interval, or a note that there is none."""
    return f"[{number(interval.low)}, {number(interval.high)}]" if interval.samples else "computed"


def explained(place: str, word: str, shown: str = "") -> str:
    """A word with what it means as its title; the details of a row say it, too."""
    text = meaning(place, word)
    shown = escape(shown or word)
    return f'<abbr title="{escape(text)}">{shown}</abbr>' if text else shown


def compared(check: Any, digits: int = 4) -> tuple[str, str]:
    """What was measured, and what it is compared with: a difference from a formula has nothing but a tolerance."""
    estimate = number(check.interval.estimate, digits)
    if is_difference(check):
        note = f'{estimate} <span class="interval">{DIFFERENCE}</span>'
        return (
            note,
            f"within{NARROW}{number(check.tolerance)}" if not check.interval.samples else "0 within the interval",
        )
    return estimate, f"{SIGNS[check.rule].replace(' ', NARROW)}{number(check.predicted, digits)}"


def link(id: str, ids: Any) -> str:
    """The id of a claim, as a link if it is on the page."""
    name = f'<span class="id">{escape(id)}</span>'
    return f'<a href="#{escape(id)}">{name}</a>' if id in ids else name


# --- the head and the foot --------------------------------------------------------------------------------------------


def table(caption: str, heads: str, rows: str) -> str:
    """A table within the page that scrolls by itself where it is too wide."""
    return (
        f'<div class="inner"><table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )
