"""The figure of Mem-SGD's figures 2 and 3."""

from __future__ import annotations

import math

from ...plots.figure_style import COLUMN
from ..shared.panels import band, canvas


def draw(two, three):
    """Above: Figure 2 for top-k and for rand-k, and Figure 3 in epochs; below: Figure 3 in bits, twice, and its legend.

    Without Figure 3 there are two panels.

    Parameters
    ----------
    two, three : list of Curve

    Returns
    -------
    matplotlib.figure.Figure
    """
    with canvas(2 if three else 1, 3 if three else 2, (1.75 if three else 1.0) * COLUMN) as (figure, grid):
        for axes, name in zip(grid[0], ("top", "rand"), strict=False):
            drawn = [curve for curve in two if curve.label == "SGD" or curve.label.startswith(name)]
            _panel(axes, drawn, "epochs", _looks(drawn))
            axes.set_title(f"Figure 2: {name}-k, the theorem's steps")
            axes.legend(fontsize=6, handlelength=2.2)
        if not three:
            return figure
        plain = [curve for curve in three if not curve.label.endswith("message")]
        sent = [curve for curve in three if len(plain) == len(three) or curve.label != "SGD"]
        looks = _looks(plain + sent)
        _panel(grid[0, 2], plain, "epochs", looks)
        grid[0, 2].set_title("Figure 3: the best gamma0")
        _panel(grid[1, 0], plain, "counted", looks)
        _panel(grid[1, 1], sent, "sent", looks)
        grid[1, 2].axis("off")
        lines = {line.get_label(): line for axes in (grid[1, 0], grid[1, 1]) for line in axes.get_lines()}
        grid[1, 2].legend(lines.values(), lines.keys(), loc="center left", title="Figure 3, in epochs and in bits")
    return figure


CUT = 300.0  # factor of the lowest end
X_LABELS = {"epochs": "epochs", "counted": "bits, as the authors count", "sent": "payload bits, as sent"}


def _panel(axes, curves, against: str, looks: dict) -> None:
    """Means of f - f* over the seeds, in bands of all seeds, from the first record after the start on.

    Values far above are outside the panel.
    """
    ends = sorted(curve.mean[-1] for curve in curves if math.isfinite(curve.mean[-1]))
    high = CUT * ends[0] if ends and ends[-1] > CUT * ends[0] else math.inf
    for curve in curves:
        x = curve.epochs if against == "epochs" else curve.epochs * curve.steps * getattr(curve, against)
        label = curve.label + (" (above)" if not (curve.mean[1:] < high).any() else "")
        look = looks[curve.label]
        band(axes, x[1:], curve.gap[:, 1:], label=label, markevery=max(1, x.size // 8), markerfacecolor="none", **look)
    axes.set(
        xscale="linear" if against == "epochs" else "log", yscale="log", xlabel=X_LABELS[against], ylabel=r"$f-f^*$"
    )
    if math.isfinite(high):
        axes.set_ylim(0.5 * ends[0], high)


def _looks(curves) -> dict[str, dict]:
    """Colour, dashes and marker for each label, the same in all panels; SGD's for its lossless message."""
    from matplotlib import rcParams

    same = {label: "SGD" for label in (curve.label for curve in curves) if label.startswith("SGD, lossless")}
    labels = dict.fromkeys(curve.label for curve in curves if curve.label not in same)
    looks = dict(zip(labels, rcParams["axes.prop_cycle"](), strict=False))
    return looks | {label: looks[other] for label, other in same.items()}
