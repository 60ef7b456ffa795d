"""The six words of every verdict, on claims, studies, sources and the atlas, with their marks and colours."""

from __future__ import annotations

HOLDS, LOOSELY, VACUOUS, PART, OPEN, FAILS = "holds", "holds loosely", "vacuous", "in part", "undecided", "fails"
GREEN, AMBER, RED = "#009E73", "#B07800", "#D55E00"
SCALE = {  # word: what it means, its mark, its colour
    HOLDS: ("the numbers agree, and a stated number that is wrong by 25 % would have been noticed", "✓", GREEN),
    LOOSELY: ("they agree; a larger error would have passed (the factor is a column)", "~", AMBER),
    VACUOUS: ("they agree, but the bound is above the trivial value where it was evaluated", "○", AMBER),
    PART: ("true in some of the cases, false in others", "◐", AMBER),
    OPEN: ("the samples, or seeds, do not settle it", "?", AMBER),
    FAILS: ("the numbers contradict it", "✗", RED),
}
UNJUDGED = "–"  # for entries that are shown but not judged
SHARP = 1.25  # "holds": a stated number that is wrong by this factor would have been noticed


def marked(word: str, note: str = "") -> str:
    """A verdict as HTML, with its mark and colour; a dash if nothing is judged.

    Examples
    --------
    >>> marked("fails", "as expected (quoted)")
    '<span style="color:#009E73">✗ fails, as expected (quoted)</span>'
    """
    if word not in SCALE:
        return word
    _, mark, colour = SCALE[word]
    colour = GREEN if note else colour  # a statement that was expected to fail raises no alarm
    return f'<span style="color:{colour}">{mark} {word}{f", {note}" if note else ""}</span>'
