"""Tables, statements and the figure of the study of the largest batch."""

from __future__ import annotations

import itertools
import math

from ... import bounds
from ...plots.text import number
from ..shared.report import OURS, Statement, Table
from ..shared.verdicts import verdict

__all__ = ["draw", "mechanism_statements", "mechanism_table", "speed_table", "statements", "table"]

APART, NEAR, CLEAR = 4.0, 2.0, 2.0  # factors: measured over predicted; of two speed-ups; between two predictions
POINTS = 0.005  # relevant difference of held-out accuracy


def predicted(threshold) -> float:
    """B_D + 1 with the least B_D."""
    return bounds.largest_batch(threshold.least)


def table(thresholds) -> Table:
    """One row for each data set and T."""
    head = (
        "data",
        "T/n",
        "rows",
        "gamma · L_max",
        "predicted",
        "from sums",
        "2/(gamma L)",
        "f - f* at predicted, over serial",
        "measured",
    )
    cells = []
    for t in thresholds:
        ratio = t.at_bound.ratio
        cells.append(
            (
                t.data,
                f"{t.passes:g}",
                f"{t.rows:,}",
                number(t.step),
                number(predicted(t)),
                number(bounds.largest_batch(t.mean)),
                number(t.stable),
                f"{number(ratio.estimate)} ({number(ratio.low)} to {number(ratio.high)})",
                f"{t.measured} ({t.surely} to {t.at_most})",
            )
        )
    return Table("The largest batch without loss", head, cells)


def mechanism_table(tried) -> Table:
    """One row for each mechanism."""
    head = ("mechanism", "data", "gamma · L_max", "predicted", "f - f*, serial over none", "measured")
    plain = tried[0][1]
    cells = [
        (
            name,
            t.data,
            number(t.step),
            number(predicted(t)),
            number(t.serial / plain.serial),
            f"{t.measured} ({t.surely} to {t.at_most})",
        )
        for name, t in tried
    ]
    return Table("The largest batch with mechanisms that make gradients more diverse", head, cells)


def mechanism_statements(tried) -> list[Statement]:
    """Verdicts on the mechanisms: a larger batch, and at what price."""
    (_, plain), *others = tried

    def numbers(of):
        return ", ".join(f"{name} {of(t)}" for name, t in tried) + "."

    larger = [predicted(t) > predicted(plain) for _, t in others]
    seen = sum(t.surely > plain.at_most for _, t in others)
    not_seen = sum(t.at_most < plain.surely for _, t in others)
    free = [t.serial <= 1.1 * plain.serial for _, t in others]
    return [
        Statement(
            "dropped coordinates, noise and quantization raise the batch-size bound B_D in training.",
            verdict(larger),
            numbers(lambda t: number(predicted(t))),
        ),
        Statement(
            "dropped coordinates, noise and quantization raise the largest batch without loss, against serial SGD with "
            "the same mechanism (surely, by the intervals).",
            _verdict(seen, not_seen, len(others)),
            numbers(lambda t: f"{t.measured} ({t.surely} to {t.at_most})"),
        ),
        Statement(
            "a mechanism costs serial SGD nothing: it ends where it does without one (within 10 %).",
            verdict(free),
            "f - f* over that without: " + numbers(lambda t: number(t.serial / plain.serial)),
            OURS,
        ),
    ]


def speed_table(speeds) -> Table:
    """One row for each data set and batch."""
    head = ("data", "batch = workers", "gamma · L_max", "rounds", "speed-up", "predicted", "ideal")
    return Table(
        "Rounds to the goal",
        head,
        [
            (
                s.data,
                f"{s.batch}",
                number(s.step),
                number(s.rounds),
                number(s.measured),
                number(s.predicted),
                f"{s.ideal:g}",
            )
            for s in speeds
        ],
    )


def _verdict(good: int, bad: int, total: int) -> str:
    """The verdict for all, none or some; "undecided" without counterexamples if not all are certain."""
    if good == total and total:
        return "holds"
    if bad == total and total:
        return "fails"
    return "undecided" if bad == 0 else "in part"


def _where(t) -> str:
    return f"{t.data}, T = {t.passes:g} n"


def _named(found) -> str:
    return "; ".join(found) or "none"


def statements(thresholds, points, speeds, factor: float) -> list[Statement]:
    """Verdicts on the lecture's statements, and on ours about held-out accuracy and the speed-up."""
    enough = [_where(t) for t in thresholds if t.at_bound.ratio.high <= factor]
    short = [_where(t) for t in thresholds if t.at_bound.ratio.low > factor]
    said = [
        Statement(
            f"a batch of B_D + 1 reaches what serial SGD does with as many gradients, up to a factor of {factor:g}.",
            _verdict(len(enough), len(short), len(thresholds)),
            f"Surely so in {len(enough)} of {len(thresholds)} cases, surely not in {len(short)}. Not: {_named(short)}.",
        )
    ]
    tried: dict[tuple[str, float], int] = {}
    for p in points:
        tried[p.data, p.passes] = max(p.batch, tried.get((p.data, p.passes), 0))
    # if the largest tried batch may be without loss, larger ones may be, too
    near = [t for t in thresholds if t.at_most <= APART * predicted(t) and t.at_most < tried[t.data, t.passes]]
    far = [
        f"{_where(t)} ({t.measured} against {number(predicted(t))})"
        for t in thresholds
        if t.surely > APART * predicted(t)
    ]
    said.append(
        Statement(
            f"batches much larger than that lose: the largest batch without loss is at most {APART:g} (B_D + 1).",
            _verdict(len(near), len(far), len(thresholds)),
            f"Surely so in {len(near)} of {len(thresholds)} cases. Larger batches do no harm on: {_named(far)}.",
        )
    )
    right, wrong, asked = 0, [], 0
    for a, b in itertools.combinations(thresholds, 2):
        low, high = sorted((a, b), key=predicted)
        if a.passes == b.passes and predicted(high) > CLEAR * predicted(low):
            asked += 1
            right += high.surely > low.at_most
            if high.at_most < low.surely:
                wrong.append(f"{low.data} before {high.data}, T = {a.passes:g} n")
    said.append(
        Statement(
            f"of two data sets whose B_D differ by more than a factor of {CLEAR:g}, the more diverse one allows larger"
            " batches.",
            _verdict(right, len(wrong), asked),
            f"Surely so in {right} of {asked} pairs with one T; surely the other way round: {_named(wrong)}.",
        )
    )
    same, other = 0, []
    for t in thresholds:
        own = {p.batch: p for p in points if (p.data, p.passes) == (t.data, t.passes)}
        lost = own[1].accuracy - own[t.measured].accuracy
        same += lost <= POINTS
        if not lost <= POINTS:
            other.append(f"{_where(t)} ({100 * lost:.1f} points)")
    said.append(
        Statement(
            "where the training loss does not suffer, held-out accuracy falls by no more than"
            f" {100 * POINTS:g} points.",
            _verdict(same, len(other), len(thresholds)),
            f"At the largest batch without loss, against serial SGD: so in {same} of {len(thresholds)} cases. Not: "
            f"{_named(other)}.",
            OURS,
        )
    )
    for name in dict.fromkeys(s.data for s in speeds):
        mine = [s for s in speeds if s.data == name]
        good = [s for s in mine if 1.0 / NEAR <= s.measured / s.predicted <= NEAR]
        last = mine[-1]
        said.append(
            Statement(
                f"{name}: the speed-up in rounds is B/(1 + (B - 1)/B_D), within a factor of {NEAR:g}.",
                _verdict(len(good), len(mine) - len(good), len(mine)),
                f"So for {len(good)} of {len(mine)} batches; at B = {last.batch} it is "
                f"{number(last.measured)}, predicted"
                f" {number(last.predicted)}, ideal {last.ideal:g}.",
                OURS,
            )
        )
    return said


def draw(thresholds, points, speeds, factor: float):
    """Loss and accuracy against the batch; measured against predicted; speed-up against workers."""
    from matplotlib import rcParams

    from ...plots import new_figure, style
    from ...plots.figure_style import COLUMN, PAGE

    with style():
        figure, grid = new_figure(2, 2, width=PAGE, height=2.0 * COLUMN)
        names = list(dict.fromkeys(t.data for t in thresholds))
        looks = dict(zip(names, itertools.cycle(rcParams["axes.prop_cycle"]), strict=False))
        passes = list(dict.fromkeys(t.passes for t in thresholds))
        _against_batch(grid[0], [t for t in thresholds if t.passes == passes[0]], points, looks, factor, passes[0])
        _thresholds(grid[1, 0], thresholds, looks, passes)
        _speeds(grid[1, 1], speeds, looks)
        lines = {line.get_label(): line for line in grid[0, 0].get_lines() if not line.get_label().startswith("_")}
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=2)
    return figure


def _against_batch(panels, thresholds, points, looks, factor, passes):
    """Left f - f* over serial SGD's, with a star at the predicted batch; right the held-out accuracy."""
    left, right = panels
    for t in thresholds:
        mine = [p for p in points if (p.data, p.passes) == (t.data, t.passes)]
        drawn = [p for p in mine if p.ratio.estimate <= 20.0 * factor]
        x, y = [p.batch for p in drawn], [p.ratio.estimate for p in drawn]
        ends = [
            [max(0.0, p.ratio.estimate - p.ratio.low) for p in drawn],
            [max(0.0, p.ratio.high - p.ratio.estimate) for p in drawn],
        ]
        left.errorbar(x, y, yerr=ends, elinewidth=0.5, markerfacecolor="none", **looks[t.data])
        left.plot([], [], markerfacecolor="none", label=t.data, **looks[t.data])
        if math.isfinite(t.at_bound.ratio.estimate):
            left.plot(
                t.at_bound.batch,
                t.at_bound.ratio.estimate,
                marker="*",
                markersize=9,
                linestyle="",
                color=looks[t.data]["color"],
                markeredgecolor="white",
                zorder=4,
            )
        kept = [p for p in mine if math.isfinite(p.accuracy)]
        right.plot([p.batch for p in kept], [100.0 * p.accuracy for p in kept], markerfacecolor="none", **looks[t.data])
    left.plot([], [], marker="*", markersize=8, linestyle="", color="0.4", label="at the predicted largest batch")
    left.axhline(factor, color="0.5", linewidth=0.8, linestyle="-", marker="")
    left.set_yscale("log")
    left.set_ylabel(r"$f-f^*$ over that of serial SGD")
    right.set_ylabel("held-out accuracy, %")
    for axes in panels:
        axes.set_xscale("log", base=2)
        axes.set_xlabel("batch $B$")
        axes.set_title(f"after {passes:g} n gradients")


def _thresholds(axes, thresholds, looks, passes):
    """Measured against predicted largest batch; hollow except for the first T."""
    for t in thresholds:
        face = looks[t.data]["color"] if t.passes == passes[0] else "white"
        axes.errorbar(
            predicted(t),
            t.measured,
            yerr=[[t.measured - t.surely], [max(0, t.at_most - t.measured)]],
            marker=looks[t.data]["marker"],
            color=looks[t.data]["color"],
            markerfacecolor=face,
            linestyle="",
            elinewidth=0.8,
            markersize=5,
        )
    ends = [1.0, 1.5 * max(max(predicted(t), t.measured) for t in thresholds)]
    axes.plot(ends, ends, color="0.5", linestyle="--", marker="", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("predicted largest batch, $B_D+1$")
    axes.set_ylabel("measured largest batch")
    axes.set_title(", ".join(f"{'filled' if p == passes[0] else 'hollow'}: {p:g} n" for p in passes) + " gradients")


def _speeds(axes, speeds, looks):
    """Speed-up in rounds: marks measured, lines predicted, dotted the ideal."""
    for name in dict.fromkeys(s.data for s in speeds):
        mine, colour = [s for s in speeds if s.data == name], looks[name]["color"]
        x = [s.batch for s in mine]
        axes.plot(x, [s.predicted for s in mine], color=colour, linestyle="--", marker="")
        axes.plot(
            x,
            [s.measured for s in mine],
            color=colour,
            linestyle="",
            marker=looks[name]["marker"],
            markerfacecolor="none",
        )
    if speeds:
        top = max(s.batch for s in speeds)
        axes.plot([1, top], [1, top], color="0.4", linestyle=(0, (1, 1)), marker="", label="ideal")
    axes.plot([], [], color="0.4", linestyle="--", marker="", label="predicted")
    axes.plot([], [], color="0.4", linestyle="", marker="o", markerfacecolor="none", label="measured")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("workers $N = B$")
    axes.set_ylabel("speed-up in rounds")
    axes.legend()
