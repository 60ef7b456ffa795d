"""Variance against bits: many compressors on one pair of axes, with the lower bound for unbiased ones."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .style import PAGE, colours, new_figure, style

MARKERS = "osD^vP<>X*phd8"
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
        (share * (floats + math.ceil(math.log2(d))), variance, "a float and its position"),
        (entropy + share, variance, "a sign, and its share of the positions' entropy"),
    )


def _place(axes: Any, points: Any, places: Any, others: Any) -> None:
    """Place each label as near to its point as possible without hiding a point or another label."""
    figure = axes.figure
    renderer = figure.canvas.get_renderer()
    at = axes.transData.transform(places)
    unit = figure.dpi / 72.0
    taken = [(x - 2.6 * unit, y - 2.6 * unit, x + 2.6 * unit, y + 2.6 * unit) for x, y in at]
    taken += [tuple(other.get_window_extent(renderer).extents) for other in others]
    frame = axes.get_window_extent(renderer)
    groups: dict[int, list[str]] = {}  # coincident points share a label of several lines
    for i in sorted(range(len(points)), key=lambda i: tuple(at[i])):
        there = next((j for j in groups if np.hypot(*(at[i] - at[j])) < 2.5 * unit), i)
        groups.setdefault(there, []).append(points[i].label.replace("=True", ""))
    for i, labels in groups.items():
        x, y = at[i]
        text = axes.annotate("\n".join(labels), places[i], xytext=(0, 0), textcoords="offset points", fontsize=LABEL)
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
    """Relative squared error against bits per coordinate, both logarithmic.

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

    points = list(points)
    families, cycle = list(dict.fromkeys(point.family for point in points)), colours()
    with style():
        figure, grid = new_figure(1, 1, width=PAGE, height=0.95 * PAGE)
        axes = grid[0, 0]
        foot = min([point.error for point in points if point.error > EXACT], default=1.0) / 2.0
        places = [(point.bits, max(point.error, foot)) for point in points]
        for point, place in zip(points, places, strict=True):
            n = families.index(point.family)
            colour = cycle[n % len(cycle)]
            axes.plot(
                *place,
                marker=MARKERS[n % len(MARKERS)],
                color=colour,
                linestyle="",
                markersize=4.5,
                markerfacecolor=colour if point.unbiased else "white",
                markeredgewidth=0.9,
                zorder=3,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = min(p[0] for p in places), max(p[0] for p in places)
        axes.set_xlim(low / 2.0, high * 2.5)
        axes.set_ylim(min(p[1] for p in places) / 2.0, max(p[1] for p in places) * 3.0)
        lines = []
        for (x, y, what), dashes in zip(_least_curves(v, floats), ((0, (5, 2)), (0, (1, 1.2))), strict=True):
            lines += axes.plot(x, y, color="0.35", linestyle=dashes, marker="", linewidth=1.1, label=what, zorder=2)
        axes.set_xlabel("payload, bits a coordinate")
        axes.set_ylabel(r"$\mathrm{E}\|C(v)-v\|^2 / \|v\|^2$")
        if any(point.error <= EXACT for point in points):
            axes.axhline(foot, color="0.6", linewidth=0.5, marker="", linestyle="-")
            axes.text(low / 1.9, foot * 0.97, "no error but that of rounding", fontsize=LABEL, color="0.4", va="top")
        if title:
            axes.set_title(title)
        handles = [
            Line2D(
                [],
                [],
                marker=MARKERS[n % len(MARKERS)],
                color=cycle[n % len(cycle)],
                linestyle="",
                markersize=4.5,
                label=family,
            )
            for n, family in enumerate(families)
        ]
        handles.append(Line2D([], [], marker="o", color="0.3", linestyle="", label="filled: unbiased"))
        handles.append(
            Line2D([], [], marker="o", color="0.3", linestyle="", markerfacecolor="white", label="open: biased")
        )
        first = figure.legend(handles=handles, loc="outside lower center", ncols=6, handlelength=1.2, columnspacing=1.2)
        price = r"least for unbiased ones, $\|v\|_1^2/(k\|v\|^2)-1$, if a non-zero costs"
        legend = axes.legend(
            handles=lines, loc="center left", handlelength=2.5, fontsize=6, title=price, title_fontsize=6
        )
        figure.add_artist(first)
        figure.canvas.draw()
        _place(axes, points, places, [legend])
    return figure
