"""Tables, statements and the figure of the study of the largest batch."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ... import bounds
from ...measure import Interval
from ...plots.figure_style import COLUMN
from ...plots.text import number
from ..largest_batch import LEVEL, LOOKS, Options
from ..shared.entry_keys import slug
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import HOLDS, Statement, at_most, at_most_times, below, within

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
            line(
                f"{t.data} | {t.passes:g} | {t.rows:,} | {number(t.step)} | {number(predicted(t))} | "
                f"{number(bounds.largest_batch(t.mean))} | {number(t.stable)} | "
                f"{number(ratio.estimate)} ({number(ratio.low)} to {number(ratio.high)}) | "
                f"{t.measured} ({t.surely} to {t.at_most})"
            )
        )
    return Table("The largest batch without loss", head, cells)


def mechanism_table(tried) -> Table:
    """One row for each mechanism."""
    head = ("mechanism", "data", "gamma · L_max", "predicted", "f - f*, serial over none", "measured")
    plain = tried[0][1]
    cells = [
        line(
            f"{name} | {t.data} | {number(t.step)} | {number(predicted(t))} | "
            f"{number(t.serial.mean() / plain.serial.mean())} | {t.measured} ({t.surely} to {t.at_most})"
        )
        for name, t in tried
    ]
    return Table("The largest batch with mechanisms that make gradients more diverse", head, cells)


def mechanism_statements(tried) -> list[Statement]:
    """Verdicts on the mechanisms: a larger batch, and at what price."""
    (_, plain), *others = tried

    bound = {name: predicted(t) for name, t in tried}
    price = {name: float(t.serial.mean() / plain.serial.mean()) for name, t in tried}
    batch = {name: {"measured": t.measured, "least": t.surely, "most": t.at_most} for name, t in tried}

    def numbers(found) -> str:
        return ", ".join(f"{name} {number(value)}" for name, value in found.items()) + "."

    about = ("lecture/yin-et-al-2018-arxiv-1706-05699-theorem-7",)
    return [
        Statement(
            "mechanisms-bound",
            "dropped coordinates, noise and quantization raise the batch-size bound B_D in training.",
            [predicted(t) > predicted(plain) for _, t in others],
            numbers(bound),
            bears_on=about,
            values=bound,
        ),
        Statement(
            "mechanisms-batch",
            "dropped coordinates, noise and quantization raise the largest batch without loss, against serial SGD with "
            "the same mechanism (surely, by the intervals).",
            [below(_ends(plain), _ends(t)) for _, t in others],
            ", ".join(f"{name} {b['measured']} ({b['least']} to {b['most']})" for name, b in batch.items()) + ".",
            bears_on=about,
            values=batch,
        ),
        Statement(
            "mechanisms-free",
            "a mechanism costs serial SGD nothing: it ends where it does without one (within 10 %).",
            [at_most_times(t.serial, plain.serial, 1.1) for _, t in others],
            "f - f* over that without: " + numbers(price),
            OURS,
            about,
            price,
        ),
    ]


def speed_table(speeds) -> Table:
    """One row for each data set and batch."""
    head = ("data", "batch = workers", "gamma · L_max", "rounds", "speed-up", "predicted", "ideal")
    return Table(
        "Rounds to the goal",
        head,
        [
            line(
                f"{s.data} | {s.batch} | {number(s.step)} | {number(s.rounds.mean())} | {number(s.measured)} | "
                f"{number(s.predicted)} | {s.ideal:g}"
            )
            for s in speeds
        ],
    )


def _ends(t) -> Interval:
    """The largest batch without loss, with what the intervals leave open."""
    return Interval(t.measured, t.surely, t.at_most)


def _where(t) -> str:
    return f"{t.data}, T = {t.passes:g} n"


def _named(found) -> str:
    return "; ".join(found) or "none"


def statements(thresholds, points, speeds, factor: float) -> list[Statement]:
    """Verdicts on the lecture's statements, and on ours about held-out accuracy and the speed-up."""
    slide = "lecture/slide-"
    reaches = Statement(
        "reaches-serial",
        f"a batch of B_D + 1 reaches what serial SGD does with as many gradients, up to a factor of {factor:g}.",
        [at_most(t.at_bound.ratio, factor) for t in thresholds],
        bears_on=(f"{slide}theorem-mini-batch-sgd-is-as-accurate",),
    )
    short = [_where(t) for t in thresholds if t.at_bound.ratio.low > factor]
    tried: dict[tuple[str, float], int] = {}
    for p in points:
        tried[p.data, p.passes] = max(p.batch, tried.get((p.data, p.passes), 0))
    # if the largest tried batch may be without loss, larger ones may be, too
    ends = {
        t[:3]: _ends(t) if t.at_most < tried[t.data, t.passes] else _ends(t)._replace(high=math.inf) for t in thresholds
    }
    loses = Statement(
        "larger-lose",
        f"batches much larger than that lose: the largest batch without loss is at most {APART:g} (B_D + 1).",
        [at_most(ends[t[:3]], APART * predicted(t)) for t in thresholds],
        bears_on=(f"{slide}main-contribution-a-batch-size",),
    )
    batches = {_where(t): {"measured": t.measured, "predicted": predicted(t)} for t in thresholds}
    far = [
        f"{where} ({b['measured']} against {number(b['predicted'])})"
        for t, (where, b) in zip(thresholds, batches.items(), strict=True)
        if t.surely > APART * b["predicted"]
    ]
    at_one_time = ((a, b) for a, b in itertools.combinations(thresholds, 2) if a.passes == b.passes)
    in_order = (sorted(pair, key=predicted) for pair in at_one_time)
    pairs = [(low, high) for low, high in in_order if predicted(high) > CLEAR * predicted(low)]
    diverse = Statement(
        "diverse-allows-larger",
        f"of two data sets whose B_D differ by more than a factor of {CLEAR:g}, the more diverse one allows larger"
        " batches.",
        [below(ends[low[:3]], ends[high[:3]]) for low, high in pairs],
        bears_on=(f"{slide}big-batches-beget-redundancy",),
    )
    wrong = [f"{a.data} before {b.data}, T = {a.passes:g} n" for a, b in pairs if b.at_most <= a.surely]
    held_trials, falls = [], {}
    for t in thresholds:
        own = {p.batch: p for p in points if (p.data, p.passes) == (t.data, t.passes)}
        how = at_most(-own[t.measured].accuracy, -own[1].accuracy, POINTS)
        held_trials.append(how)
        falls[_where(t)] = 100 * float(own[1].accuracy.mean() - own[t.measured].accuracy.mean())
    held = Statement(
        "held-out",
        f"where the training loss does not suffer, held-out accuracy falls by no more than {100 * POINTS:g} points.",
        held_trials,
        source=OURS,
        bears_on=(f"{slide}large-batches-generalise-worse",),
        values=falls,
    )
    by_case = zip(held_trials, falls.items(), strict=True)
    fallen = _named([f"{where} ({fall:.1f} points)" for how, (where, fall) in by_case if how != HOLDS])
    count = len(thresholds)
    said = [
        reaches._replace(
            said=f"Surely so in {reaches.count()} of {count} cases, surely not in {len(short)}. Not: {_named(short)}.",
            values={"surely not": len(short)},
        ),
        loses._replace(
            said=f"Surely so in {loses.count()} of {count} cases. Larger batches do no harm on: {_named(far)}.",
            values=batches,
        ),
        diverse._replace(
            said=f"Surely so in {diverse.count()} of {len(pairs)} pairs with one T; surely not: {_named(wrong)}."
        ),
        held._replace(
            said="At the largest batch without loss, against serial SGD: surely so in "
            f"{held.count()} of {count} cases. Not surely: {fallen}."
        ),
    ]
    for name in dict.fromkeys(s.data for s in speeds):
        mine = [s for s in speeds if s.data == name]
        last, first = mine[-1], mine[0].rounds
        near = [within(first, s.predicted * s.rounds, NEAR) for s in mine]
        good = sum(1.0 / NEAR <= s.measured / s.predicted <= NEAR for s in mine)
        said.append(
            Statement(
                f"speed-up-{slug(name)}",
                f"{name}: the speed-up in rounds is B/(1 + (B - 1)/B_D), within a factor of {NEAR:g}.",
                near,
                f"So for {good} of {len(mine)} batches; at B = {last.batch} it is {number(last.measured)}, predicted"
                f" {number(last.predicted)}, ideal {last.ideal:g}.",
                OURS,
                (f"{slide}gradient-diversity-controls-distributed",),
                {"near": good},
            )
        )
    return said


def draw(thresholds, points, speeds, factor: float):
    """Loss and accuracy against the batch; measured against predicted; speed-up against workers."""
    from matplotlib import rcParams

    with canvas(2, 2, 2.0 * COLUMN) as (figure, grid):
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
        kept = [p for p in mine if np.isfinite(p.accuracy).all()]
        right.plot(
            [p.batch for p in kept], [100.0 * p.accuracy.mean() for p in kept], markerfacecolor="none", **looks[t.data]
        )
    left.plot([], [], marker="*", markersize=8, linestyle="", color="0.4", label="at the predicted largest batch")
    left.axhline(factor, color="0.5", linewidth=0.8, linestyle="-", marker="")
    left.set(yscale="log", ylabel=r"$f-f^*$ over that of serial SGD")
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


def report(thresholds, points, speeds, mechanisms, options: Options, left) -> Study:
    """The study of these batches; ``left`` are the names of missing files."""
    setting = (
        "Logistic regression with l2 = 1/n; rows of norm 1 (columns over their largest magnitude before, where they "
        "have another); a fifth of the rows is held out. Serial SGD has the constant step gamma, a power of two over "
        "L_max, that leaves the least f after T gradients. A batch has the same gamma for each of its gradients, which "
        "in the package's terms, where a batch is averaged, is the step size B gamma; all evaluate T gradients, drawn "
        "with replacement. r copies of a part of the rows: drawn with replacement, they differ from the part alone "
        f"in l2 and T, which count all n rows. Means over {options.seeds} runs. A batch is without loss if f - f* is "
        f"at most {options.factor:g} times that of serial SGD (geometric means of the runs); measured is the largest "
        f"power of two up to which all are, with what {100 * LEVEL:g} % intervals of the ratio leave open in brackets. "
        f"Predicted is B_D + 1 (delta = 1), B_D the least at {LOOKS + 1} places on the way of serial SGD; beside it, "
        "with sum M^2 over sum ||grad f||^2 at these places, and 2/(gamma L), beyond which a step is too long for the "
        "largest curvature that f can have. "
        "The rounds of the speed-ups are those until f - f* is at most "
        f"{options.goal:g} (f(0) - f*), with a step chosen for each batch, by other seeds. Mechanisms: the same with "
        "gradients of which half of the coordinates are dropped, to which noise N(0, 0.06^2 I) is added, or which are "
        "quantized to one level, each with its own best step of serial SGD; B_D is then that of the disturbed "
        "gradients (bounds.mechanism_batch_bound), and f is the undisturbed one."
        f"{' Left out: ' + ', '.join(left) + '.' if left else ''}"
    )
    return Study(
        "largest-batch",
        "How large a batch?",
        setting,
        {"thresholds": thresholds, "points": points, "speeds": speeds},
        [table(thresholds), speed_table(speeds), mechanism_table(mechanisms)],
        statements(thresholds, points, speeds, options.factor) + mechanism_statements(mechanisms),
        lambda: draw(thresholds, points, speeds, options.factor),
        "f - f* after T gradients, and held-out accuracy, against the batch, a line for each data set with a mark at "
        "its predicted largest batch; measured against predicted largest batch; speed-up in rounds against workers",
    )
