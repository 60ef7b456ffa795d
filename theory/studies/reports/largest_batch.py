"""Tables, statements and the figure of the study of the largest batch."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ... import bounds
from ...plots.figure_style import COLUMN
from ...plots.lecture import curve, hline, marks
from ...plots.text import number
from ..largest_batch import LEVEL, LOOKS, Options
from ..shared.entry_keys import slug
from ..shared.panels import canvas, looks
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import HOLDS, Statement, at_most, at_most_times, below, count, within, word

APART, NEAR, CLEAR = 4.0, 2.0, 2.0  # factors: measured over predicted; of two speed-ups; between two predictions
POINTS = 0.005  # relevant difference of held-out accuracy


def table(thresholds) -> Table:
    """One row for each data set and T."""
    cells = [
        line(
            f"{t.data} | {t.passes:g} | {t.rows:,} | {number(t.step)} | {number(t.predicted)} | "
            f"{number(bounds.largest_batch(t.mean))} | {number(t.stable)} | "
            f"{number(ratio.estimate)} ({number(ratio.low)} to {number(ratio.high)}) | {t.told}"
        )
        for t in thresholds
        for ratio in [t.at_bound.ratio]
    ]
    head = line(
        "data | T/n | rows | gamma · L_max | predicted | from sums | 2/(gamma L) | f - f* at predicted, over serial |"
        " measured"
    )
    return Table("The largest batch without loss", head, cells)


def mechanism_table(tried) -> Table:
    """One row for each mechanism."""
    price = {name: t.serial.mean() / tried[0][1].serial.mean() for name, t in tried}
    cells = [
        line(f"{name} | {t.data} | {number(t.step)} | {number(t.predicted)} | {number(price[name])} | {t.told}")
        for name, t in tried
    ]
    head = line("mechanism | data | gamma · L_max | predicted | f - f*, serial over none | measured")
    return Table("The largest batch with mechanisms that make gradients more diverse", head, cells)


def speed_table(speeds) -> Table:
    """One row for each data set and batch."""
    cells = [
        line(
            f"{s.data} | {s.batch} | {number(s.step)} | {number(s.rounds.mean())} | {number(s.measured)} | "
            f"{number(s.predicted)} | {s.ideal:g}"
        )
        for s in speeds
    ]
    head = line("data | batch = workers | gamma · L_max | rounds | speed-up | predicted | ideal")
    return Table("Rounds to the goal", head, cells)


def mechanism_statements(tried) -> list[Statement]:
    """Verdicts on the mechanisms: a larger batch, and at what price."""
    (_, plain), *others = tried
    about = ("lecture/yin-et-al-2018-arxiv-1706-05699-theorem-7",)

    def say(id, text, trials, values, shown, begin="", source=""):
        numbers = ", ".join(f"{name} {told}" for name, told in shown.items())
        return Statement(id, f"{text}.", trials, f"{begin}{numbers}.", source, about, values)

    bound = {name: t.predicted for name, t in tried}
    price = {name: float(t.serial.mean() / plain.serial.mean()) for name, t in tried}
    batch = {name: {"measured": t.measured, "least": t.surely, "most": t.at_most} for name, t in tried}
    raised, cheap = "dropped coordinates, noise and quantization raise the", "a mechanism costs serial SGD nothing"
    larger = (
        f"{raised} largest batch without loss, against serial SGD with the same mechanism (surely, by the intervals)"
    )
    free = f"{cheap}: it ends where it does without one (within 10 %)"
    more, most, as_low = (
        [t.predicted > plain.predicted for _, t in others],
        [below(plain.ends, t.ends) for _, t in others],
        [at_most_times(t.serial, plain.serial, 1.1) for _, t in others],
    )
    bounds_told, price_told = ({name: number(x) for name, x in found.items()} for found in (bound, price))
    return [
        say("mechanisms-bound", f"{raised} batch-size bound B_D in training", more, bound, bounds_told),
        say("mechanisms-batch", larger, most, batch, {name: t.told for name, t in tried}),
        say("mechanisms-free", free, as_low, price, price_told, "f - f* over that without: ", OURS),
    ]


def _named(found) -> str:
    return "; ".join(found) or "none"


def statements(thresholds, points, speeds, factor: float) -> list[Statement]:
    """Verdicts on the lecture's statements, and on ours about held-out accuracy and the speed-up."""
    cases, slide, said = len(thresholds), "lecture/slide-", []

    def say(id, text, trials, numbers, about, values, source=""):
        told = numbers.format(count(trials))
        said.append(Statement(id, text, trials, told, source, (slide + about,), values))

    text = f"a batch of B_D + 1 reaches what serial SGD does with as many gradients, up to a factor of {factor:g}."
    trials = [at_most(t.at_bound.ratio, factor) for t in thresholds]
    short = [t.where for t in thresholds if t.at_bound.ratio.low > factor]
    numbers = f"Surely so in {{}} of {cases} cases, surely not in {len(short)}. Not: {_named(short)}."
    about, values = "theorem-mini-batch-sgd-is-as-accurate", {"surely not": len(short)}
    say("reaches-serial", text, trials, numbers, about, values)

    tried: dict[tuple[str, float], int] = {}
    for p in points:
        tried[p.data, p.passes] = max(p.batch, tried.get((p.data, p.passes), 0))
    # if the largest tried batch may be without loss, larger ones may be, too
    open_end = {t.where: t.at_most >= tried[t.data, t.passes] for t in thresholds}
    ends = {t.where: t.ends._replace(high=math.inf) if open_end[t.where] else t.ends for t in thresholds}
    text = f"batches much larger than that lose: the largest batch without loss is at most {APART:g} (B_D + 1)."
    trials = [at_most(ends[t.where], APART * t.predicted) for t in thresholds]
    batches = {t.where: {"measured": t.measured, "predicted": t.predicted} for t in thresholds}
    above = [t for t in thresholds if t.surely > APART * t.predicted]
    far = [f"{t.where} ({t.measured} against {number(t.predicted)})" for t in above]
    numbers = f"Surely so in {{}} of {cases} cases. Larger batches do no harm on: {_named(far)}."
    say("larger-lose", text, trials, numbers, "main-contribution-a-batch-size", batches)

    at_one_time = ((a, b) for a, b in itertools.combinations(thresholds, 2) if a.passes == b.passes)
    in_order = (sorted(pair, key=lambda t: t.predicted) for pair in at_one_time)
    pairs = [(low, high) for low, high in in_order if high.predicted > CLEAR * low.predicted]
    text = (
        f"of two data sets whose B_D differ by more than a factor of {CLEAR:g}, the more diverse one allows larger"
        " batches."
    )
    trials = [below(ends[low.where], ends[high.where]) for low, high in pairs]
    wrong = [f"{a.data} before {b.data}, T = {a.passes:g} n" for a, b in pairs if b.at_most <= a.surely]
    numbers = f"Surely so in {{}} of {len(pairs)} pairs with one T; surely not: {_named(wrong)}."
    say("diverse-allows-larger", text, trials, numbers, "big-batches-beget-redundancy", {})

    text = f"where the training loss does not suffer, held-out accuracy falls by no more than {100 * POINTS:g} points."
    right = {(p.data, p.passes, p.batch): p.accuracy for p in points}
    pairs = [(right[t.data, t.passes, t.measured], right[t.data, t.passes, 1]) for t in thresholds]
    trials = [at_most(-at_largest, -serial, POINTS) for at_largest, serial in pairs]
    lost = [100 * float(serial.mean() - at_largest.mean()) for at_largest, serial in pairs]
    falls = {t.where: fall for t, fall in zip(thresholds, lost, strict=True)}
    by_case = zip(trials, falls.items(), strict=True)
    fallen = _named([f"{where} ({fall:.1f} points)" for how, (where, fall) in by_case if word(how) != HOLDS])
    numbers = (
        f"At the largest batch without loss, against serial SGD: surely so in {{}} of {cases} cases. Not surely:"
        f" {fallen}."
    )
    say("held-out", text, trials, numbers, "large-batches-generalise-worse", falls, OURS)

    for name in dict.fromkeys(s.data for s in speeds):
        mine = [s for s in speeds if s.data == name]
        text = f"{name}: the speed-up in rounds is B/(1 + (B - 1)/B_D), within a factor of {NEAR:g}."
        trials = [within(mine[0].rounds, s.predicted * s.rounds, NEAR) for s in mine]
        good, last = sum(1.0 / NEAR <= s.measured / s.predicted <= NEAR for s in mine), mine[-1]
        numbers = (
            f"So for {good} of {len(mine)} batches; at B = {last.batch} it is {number(last.measured)}, predicted"
            f" {number(last.predicted)}, ideal {last.ideal:g}."
        )
        about = "gradient-diversity-controls-distributed"
        say(f"speed-up-{slug(name)}", text, trials, numbers, about, {"near": good}, OURS)
    return said


def draw(thresholds, points, speeds, factor: float):
    """Loss and accuracy against the batch; measured against predicted; speed-up against workers."""
    passes = list(dict.fromkeys(t.passes for t in thresholds))
    with canvas(2, 2, 2.0 * COLUMN) as (figure, grid):
        look_of = looks(dict.fromkeys(t.data for t in thresholds))
        for axes in grid.flat:
            axes.set_xscale("log", base=2)
        for axes in grid[1]:
            axes.set_yscale("log", base=2)
        first = [t for t in thresholds if t.passes == passes[0]]
        _against_batch(grid[0], first, points, look_of, factor)
        _thresholds(grid[1, 0], thresholds, look_of, passes)
        _speeds(grid[1, 1], speeds, look_of)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _against_batch(panels, thresholds, points, look_of, factor: float) -> None:
    """Left f - f* over serial SGD's, with a star at the predicted batch; right the held-out accuracy."""
    left, right = panels
    star: dict = {"marker": "*", "linestyle": ""}
    for t in thresholds:
        look, colour = look_of[t.data], look_of[t.data]["color"]
        mine = [p for p in points if (p.data, p.passes) == (t.data, t.passes)]
        shown = [p for p in mine if p.ratio.estimate <= 20.0 * factor]
        marks([p.batch for p in shown], [p.ratio for p in shown], colour, t.data, **look)(left)
        if math.isfinite(t.at_bound.ratio.estimate):
            at = t.at_bound.batch, t.at_bound.ratio.estimate
            left.plot(*at, color=colour, markersize=9, markeredgecolor="white", zorder=4, **star)
        kept = [p for p in mine if np.isfinite(p.accuracy).all()]
        curve([p.batch for p in kept], [100.0 * p.accuracy.mean() for p in kept], **look)(right)
    left.plot([], [], color="0.4", markersize=8, label="at the predicted largest batch", **star)
    hline(factor)(left)
    left.set(yscale="log", ylabel=r"$f-f^*$ over that of serial SGD")
    right.set_ylabel("held-out accuracy, %")
    for axes in panels:
        axes.set(xlabel="batch $B$", title=f"after {thresholds[0].passes:g} n gradients")


def _thresholds(axes, thresholds, look_of, passes) -> None:
    """Measured against predicted largest batch; hollow except for the first T."""
    for t in thresholds:
        colour, marker = look_of[t.data]["color"], look_of[t.data]["marker"]
        face = {"markersize": 5, "markerfacecolor": colour if t.passes == passes[0] else "white"}
        marks([t.predicted], [t.ends], colour, marker="")(axes)
        axes.plot(t.predicted, t.measured, color=colour, marker=marker, linestyle="", **face)
    ends = [1.0, 1.5 * max(max(t.predicted, t.measured) for t in thresholds)]
    curve(ends, ends, None, linestyle="--", linewidth=0.8)(axes)
    title = ", ".join(f"{'filled' if p == passes[0] else 'hollow'}: {p:g} n" for p in passes)
    axes.set(xlabel="predicted largest batch, $B_D+1$", ylabel="measured largest batch", title=f"{title} gradients")


def _speeds(axes, speeds, look_of) -> None:
    """Speed-up in rounds: marks measured, lines predicted, dotted the ideal."""
    for name in dict.fromkeys(s.data for s in speeds):
        mine, look = [s for s in speeds if s.data == name], look_of[name]
        x = [s.batch for s in mine]
        curve(x, [s.predicted for s in mine], look["color"], linestyle="--")(axes)
        curve(x, [s.measured for s in mine], look["color"], linestyle="", marker=look["marker"])(axes)
    if speeds:
        top = [1, max(s.batch for s in speeds)]
        curve(top, top, "0.4", "ideal", linestyle=(0, (1, 1)))(axes)
    curve([], [], "0.4", "predicted", linestyle="--")(axes)
    curve([], [], "0.4", "measured", linestyle="", marker="o")(axes)
    axes.set(xlabel="workers $N = B$", ylabel="speed-up in rounds")
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
        f"at most {options.factor:g} times that of serial SGD for the typical seed (medians of the ratios); measured "
        f"is the largest power of two up to which all are, with what the {100 * LEVEL:g} % intervals of medians leave "
        "open in brackets. "
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
