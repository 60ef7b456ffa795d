"""Small SVG pictures for the ledger's page: the tightness of a bound, and an interval beside the prediction."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["check_picture", "number", "tightness_bar"]

BAR, HIGH = 88, 10  # the bar's width and height; four fifths of the width represent the ratio 1
RAISED = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
WIDTH, LEFT, RIGHT = 250, 8, 242  # the picture of a check, and where its axis begins and ends


def number(value: float | None, digits: int = 4) -> str:
    """Format a number for display.

    Examples
    --------
    >>> number(2.84678e8), number(-0.5), number(1e-10)
    ('2.847·10⁸', '−0.5', '10⁻¹⁰')
    """
    if value is None:
        return "–"
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    factor, _, power = f"{value:.{digits}g}".replace("-", "−").partition("e")
    if not power:
        return factor
    factor = {"1": "", "−1": "−"}.get(factor, f"{factor}·")
    return f"{factor}10{power.replace('+', '').replace('−0', '−').lstrip('0').translate(RAISED)}"


def finite(*values: Any) -> bool:
    """Whether all are finite numbers."""
    return all(value is not None and math.isfinite(value) for value in values)


def tightness_bar(ratio: float | None) -> str:
    """Measured / bound as a bar that ends at 1.25, with a line at 1.  Without a finite ratio there is no bar."""
    if ratio is None or not finite(ratio):
        return ""
    one = 0.8 * BAR
    width = min(max(ratio, 0.0), 1.25) * one
    return (
        f'<svg width="{BAR}" height="{HIGH + 4}" viewBox="0 0 {BAR} {HIGH + 4}" preserveAspectRatio="none" '
        f'aria-hidden="true"><rect class="track" y="4" width="{BAR}" height="{HIGH - 4}"/>'
        f'<rect class="bar" y="2" width="{width:.1f}" height="{HIGH}"/>'
        f'<path class="one" d="M{one:.1f} 0v{HIGH + 4}"/></svg>'
    )


def check_picture(check: Any) -> str:
    """The interval of a check (blue, with a dot at the estimate) beside the prediction (an orange line).

    The region excluded by a bound is shaded, as is the tolerance of a rate or a limit.
    """
    estimate, low, high = check.interval[:3]
    predicted, rule = check.predicted, check.rule
    if not finite(estimate, predicted):
        return ""
    low, high = (end if finite(end) else estimate for end in (low, high))
    band = check.tolerance if rule in ("rate", "limit") else 0.0
    ends = [low, high, estimate, predicted - band, predicted + band]
    if rule in ("upper", "lower"):
        ends.append(0.0)  # an axis from 0, so that lengths can be compared with the bound
    first, last = min(ends), max(ends)
    if last - first <= 1e-9 * max(abs(first), abs(last)):  # equal, as for identities: margins on both sides
        room = abs(first) or 1.0
        first, last = first - room, last + room
    else:
        room = 0.06 * (last - first)
        first, last = first - room * (first != 0.0 or rule not in ("upper", "lower")), last + room

    def x(value: float) -> float:
        return LEFT + (RIGHT - LEFT) * (value - first) / (last - first)

    shaded = {"upper": (predicted, last), "lower": (first, predicted)}
    shaded |= dict.fromkeys(("rate", "limit"), (predicted - band, predicted + band))
    parts = []
    if rule in shaded:
        start, end = map(x, shaded[rule])
        parts.append(f'<rect class="band" x="{start:.1f}" y="2" width="{end - start:.1f}" height="20"/>')
    parts += [
        f'<path class="axis" d="M{LEFT} 22H{RIGHT}"/><path class="mark" d="M{x(predicted):.1f} 2v20"/>',
        f'<path class="whisker" d="M{x(low):.1f} 8v8m0-4H{x(high):.1f}m0-4v8"/>' if high > low else "",
        f'<circle class="dot" cx="{x(estimate):.1f}" cy="12" r="3.5"/>',
        f'<text x="{LEFT}" y="33">{number(first, 3)}</text>',
        f'<text x="{RIGHT}" y="33" text-anchor="end">{number(last, 3)}</text>',
    ]
    return f'<svg width="{WIDTH}" height="36" aria-hidden="true">{"".join(parts)}</svg>'
