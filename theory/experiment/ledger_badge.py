"""A badge of the ledger, as SVG: how many claims there are of each verdict."""

from __future__ import annotations

from html import escape
from typing import Any

from .ledger_page import counted

HEIGHT, PAD, LETTER = 20, 7, 6.1  # pixels; the mean width of a letter, which `textLength` then enforces
GOOD, BAD, HEAD = "#00614a", "#a8071a", "#3b434c"


def badge(results: Any) -> str:
    """How many claims there are of each verdict, as SVG.

    Parameters
    ----------
    results : sequence of Verification

    Returns
    -------
    str
        Red if there is an alarm.  Verdicts that no claim has are left out, alarms never.

    Examples
    --------
    >>> from theory.claims import verify
    >>> "1 hold" in badge([verify("topk.contraction", quick=True)])
    True
    """
    counts = counted(results)
    left = f"{counts.pop('claims')} claims"
    right = ", ".join(f"{n} {name.partition(',')[0]}" for name, n in counts.items() if n != "0" or name == "alarms")
    first, second = (round(LETTER * len(text)) + 2 * PAD for text in (left, right))
    colour = GOOD if counts["alarms"] == "0" else BAD
    said = escape(f"The ledger: {left}: {right}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="{HEIGHT}" role="img" '
        f'aria-label="{said}">',
        f"<title>{said}</title>",
        f'<rect width="{first + second}" height="{HEIGHT}" rx="3" fill="{colour}"/>',
        f'<path d="M{first} 0H3a3 3 0 0 0-3 3v{HEIGHT - 6}a3 3 0 0 0 3 3h{first - 3}z" fill="{HEAD}"/>',
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
        f'<text x="{PAD}" y="14" textLength="{first - 2 * PAD}">{escape(left)}</text>',
        f'<text x="{first + PAD}" y="14" textLength="{second - 2 * PAD}">{escape(right)}</text>',
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"
