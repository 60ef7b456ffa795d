"""Variance against bits of many compressors, with the lower bound for unbiased ones."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .appearance import PAGE, colours, new_figure, plain_ticks, style

# kinds of compressors by family; all others are compositions, or the user's
PANELS = {
    "quantizers": ("half", "lloyd max", "multilevel", "natural", "nuqsgd", "qsgd", "sign", "ternary"),
    "sparsifiers, low rank and sketches": (
        "bernoulli", "low rank", "optimal", "random block", "sketch", "sparsifiers", "spectral", "threshold",
    ),
    "compositions and others": (),
}  # fmt: skip
EXACT = 1e-6  # smaller relative errors are rounding errors and are drawn at the bottom
LABEL = 6.0  # points: size of a label at a point


class Point(NamedTuple):
    """One compressor at one vector: label, family, bits per coordinate, relative squared error, unbiased or not."""

    label: str
    family: str
    bits: float
    error: float
    unbiased: bool


def _least_curves(v: Any, floats: int) -> Any:
    """Bits per coordinate and least variance, for two costs of a non-zero."""
    from ..bounds import least_variance

    d = v.size
    most = np.abs(v).sum() ** 2 / float(v @ v)
    kept = np.geomspace(1.0, most * (1.0 - 1e-4), 200)
    variance = np.array([least_variance(v, k) for k in kept])
    share = kept / d
    entropy = -(share * np.log2(share) + (1.0 - share) * np.log2(1.0 - share))
    return (
        (
            share * (floats + math.ceil(math.log2(d))),
            variance,
            "least of unbiased ones, if a non-zero costs a float and its position",
        ),
        (
            entropy + share,
            variance,
            "least of unbiased ones, if it costs a sign and its share of the positions' entropy",
        ),
    )


def _place(axes: Any, points: Any, places: Any) -> None:
    """Place each label as near to its point as possible without hiding a point or another label."""
    from matplotlib.patheffects import withStroke

    figure = axes.figure
    renderer = figure.canvas.get_renderer()
    at = axes.transData.transform(places)
    unit = figure.dpi / 72.0
    taken = [(x - 2.6 * unit, y - 2.6 * unit, x + 2.6 * unit, y + 2.6 * unit) for x, y in at]
    frame = axes.get_window_extent(renderer)
    label = {"fontsize": LABEL, "path_effects": [withStroke(linewidth=1.5, foreground="white")]}
    groups: dict[int, list[str]] = {}  # coincident points share a label of several lines
    for i in sorted(range(len(points)), key=lambda i: tuple(at[i])):
        there = next((j for j in groups if np.hypot(*(at[i] - at[j])) < 2.5 * unit), i)
        groups.setdefault(there, []).append(points[i].label.replace("=True", ""))
    for i, labels in groups.items():
        x, y = at[i]
        text = axes.annotate("\n".join(labels), places[i], xytext=(0, 0), textcoords="offset points", **label)
        box = text.get_window_extent(renderer)
        w, h = box.width, box.height
        best = None
        for radius in (4, 8, 14, 22, 32, 46, 64, 90):
            for angle in np.arange(0.0, 2.0 * math.pi, math.pi / (4 if radius < 10 else 8)):
                cx = x + unit * radius * math.cos(angle) + 0.5 * w * np.sign(round(math.cos(angle), 6))
                cy = y + unit * radius * math.sin(angle) + 0.5 * h * np.sign(round(math.sin(angle), 6))
                new = (cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h)
                inside = new[0] >= frame.x0 and new[2] <= frame.x1 and new[1] >= frame.y0 and new[3] <= frame.y1
                pad = 2.0 * unit  # the layout changes slightly when saved at another resolution
                hidden = sum(
                    new[0] - pad < b[2] and b[0] < new[2] + pad and new[1] < b[3] and b[1] < new[3] for b in taken
                )
                if inside and (best is None or hidden < best[0]):
                    best = (hidden, new, radius)
            if best is not None and best[0] == 0:
                break
        if best is None:
            text.remove()
            continue
        _, new, radius = best
        text.set_position(((new[0] - x) / unit, (new[1] - y) / unit))
        taken.append(new)
        if radius > 8:
            ends = axes.transData.inverted().transform(
                [(x, y), (min(max(x, new[0]), new[2]), min(max(y, new[1]), new[3]))]
            )
            axes.plot(ends[:, 0], ends[:, 1], color="0.6", linewidth=0.4, marker="", linestyle="-", zorder=1)


def draw_tradeoff(points: Any, v: np.ndarray, *, title: str = "", floats: int = 32) -> Any:
    """Relative squared error against bits per coordinate, both logarithmic: a panel for each kind of compressor.

    Parameters
    ----------
    points : sequence of Point
        All measured at the vector v.
    v : numpy.ndarray
        Its ``||v||_1^2 / ||v||_2^2`` gives the lower bound for unbiased compressors.
    title : str
    floats : int
        Bits of a float.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.lines import Line2D

    foot = min([point.error for point in points if point.error > EXACT], default=1.0) / 2.0
    places = [(point.bits, max(point.error, foot)) for point in points]
    low, high = min(p[0] for p in places), max(p[0] for p in places)
    parts: dict[str, list[int]] = {title: [] for title in PANELS}
    for i, point in enumerate(points):
        parts[next((title for title, known in PANELS.items() if point.family in known), [*PANELS][-1])].append(i)
    parts = {title: those for title, those in parts.items() if those}
    with style():
        figure, grid = new_figure(len(parts), 1, width=PAGE, height=0.6 + 2.6 * len(parts))
        for axes, (name, those), colour in zip(
            grid[:, 0], parts.items(), (colours()[k] for k in (4, 5, 3)), strict=False
        ):
            for i in those:
                look = {"color": colour, "markerfacecolor": colour if points[i].unbiased else "white"}
                axes.plot(*places[i], "o", markersize=4.5, markeredgewidth=0.9, zorder=3, **look)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(low / 2.0, high * 2.5)
            axes.set_ylim(min(p[1] for p in places) / 2.0, max(p[1] for p in places) * 3.0)
            for (x, y, what), dashes in zip(_least_curves(v, floats), ((0, (5, 2)), (0, (1, 1.2))), strict=True):
                axes.plot(x, y, color="0.35", linestyle=dashes, marker="", linewidth=1.1, label=what, zorder=2)
            axes.set(xlabel="payload, bits a coordinate", ylabel=r"$\mathrm{E}\|C(v)-v\|^2 / \|v\|^2$")
            axes.set_title(f"{name}{': ' * bool(title)}{title}")
            if any(points[i].error <= EXACT for i in those):
                axes.axhline(foot, color="0.6", linewidth=0.5, marker="", linestyle="-")
                said = {"fontsize": LABEL, "color": "0.4", "va": "top"}
                axes.text(low / 1.9, foot * 0.97, "no error but that of rounding", **said)
        handles = [
            Line2D([], [], marker="o", color="0.3", linestyle="", markerfacecolor=face, label=label)
            for face, label in (("0.3", "filled: unbiased"), ("white", "open: biased"))
        ]
        figure.legend(
            handles=[*handles, *grid[0, 0].get_legend_handles_labels()[0]], loc="outside lower center", ncols=2
        )
        for axes in grid[:, 0]:
            plain_ticks(axes.xaxis)
            plain_ticks(axes.yaxis)
        figure.canvas.draw()
        for axes, those in zip(grid[:, 0], parts.values(), strict=True):
            _place(axes, [points[i] for i in those], [places[i] for i in those])
    return figure
