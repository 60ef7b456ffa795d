"""Report on Mem-SGD's figures 2 and 3: verdicts on the published orderings, tables, and the figure."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ...core.repetitions import spread
from ...plots.figure_style import COLUMN
from ...plots.text import bits as bits_text
from ...plots.text import number
from ..mem_sgd import Options, Size
from ..shared.entry_keys import slug
from ..shared.panels import band, canvas, looks
from ..shared.report import OURS, Study, Table, interval
from ..shared.verdicts import FAILS, Statement, Trial, at_most, at_most_times, below, both

CLOSE, WORSE, ORDER = 0.01, 2.0, 10.0  # "slightly behind", "much worse", "an order of magnitude"
AS_LOW = 1.25  # the factor for "as low", which is the "close" of the other studies
DENSE, SPARSE = "SGD, dense message", "SGD, lossless sparse message"

# the authors' stored losses (epfml/sparsifiedSGD, results/), after 3 epochs of Figure 2 and 10 of Figure 3
PUBLISHED = {
    "dense": (
        {
            "SGD": 0.28294,
            "top-1": 0.28269,
            "rand-1": 0.28325,
            "rand-2": 0.28304,
            "rand-3": 0.28299,
            "rand-1, no shift": 0.2866,
            "top-1, no memory": 2.502,
        },
        {
            "SGD": 0.28234,
            "top-1": 0.28228,
            "rand-1": 0.28265,
            "QSGD 8 bits": 0.28235,
            "QSGD 4 bits": 0.28326,
            "QSGD 2 bits": 0.29384,
        },
    ),
    "rcv1": (
        {"SGD": 0.08496, "top-10": 0.08496, "rand-10": 0.08499, "rand-10, no shift": 0.0866},
        {"SGD": 0.08477, "top-1": 0.08477, "QSGD 8 bits": 0.08477, "QSGD 4 bits": 0.0848, "QSGD 2 bits": 0.08531},
    ),
}
PUBLISHED_ROWS = {"dense": (400_000, "epsilon"), "rcv1": (677_399, "RCV1")}
FAR = 100.0  # times f of SGD: no number from there on
CUT = 300.0  # of the figure, at this factor of the lowest end
X_LABELS = {"epochs": "epochs", "counted": "bits, as the authors count", "sent": "payload bits, as sent"}
TITLES = {"rcv1": "RCV1", "dense": "a dense problem", "rcv1-ridge": "ridge regression on RCV1"}


# --- statements -------------------------------------------------------------------------------------------------------


def _as_low(curve, other) -> Trial:
    """Whether f - f* at the end is at most `AS_LOW` times that of the other."""
    return at_most_times(curve.gap[:, -1], other.gap[:, -1], AS_LOW)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.3g}"


def _ends(curves) -> dict[str, dict[str, float]]:
    """Mean of f - f* at the end, and half of its 95 % interval, by method."""
    ends = {curve.label: spread(curve.gap[:, -1]) for curve in curves}
    return {name: {"mean": end.mean, "half": end.half} for name, end in ends.items()}


def _with_intervals(curves) -> str:
    return ", ".join(f"{curve.label} {interval(curve.gap[:, -1])}" for curve in curves)


def statements_two(curves, ks, least: float, entry: str = "") -> list[Statement]:
    """Verdicts on Figure 2: as good as SGD with shift and memory, but not without either.

    ``entry`` begins the keys of the index of sources: "mem-sgd/figure-2-epsilon-", or that of RCV1.
    """
    by = {curve.label: curve for curve in curves}
    sgd, few, said = by["SGD"].mean[-1], ks[0], []
    top, rand = ([by[f"{name}-{k}"] for k in ks] for name in ("top", "rand"))
    end = {label: curve.gap[:, -1] for label, curve in by.items()}
    steps = {label: {"epoch": curve.after(1), "end": curve.mean[-1]} for label, curve in by.items()}

    def say(id, text, trials, numbers, values, *entries):
        said.append(Statement(id, text, trials, numbers, bears_on=entries if entry else (), values=values))

    text = (
        f"Top-{few} with memory and shift converges as SGD with the same steps does (f - f* at most "
        f"{AS_LOW:g} times SGD's)."
    )
    times, ends = top[0].mean[-1] / sgd, _ends([by["SGD"], *top])
    numbers = f"{times:.3f} times. f - f* at the end: {_with_intervals([by['SGD'], *top])}."
    same = ["mem-sgd/abstract-the-same-rate", f"{entry}top-k-with-memory"]
    same += [] if "rcv1" in entry else ["mem-sgd/remark-2-5"]
    say("top-as-sgd", text, [_as_low(top[0], by["SGD"])], numbers, {"times": times} | ends, *same)

    text = f"Rand-k with memory and shift is only slightly behind SGD (f at most {100 * CLOSE:.0f} % above)."
    above = {c.label: 100 * (c.mean[-1] - sgd) / (least + sgd) for c in rand}  # in per cent of f
    trials = [at_most(end[name], end["SGD"], CLOSE * (least + sgd)) for name in above]
    each = (
        f"{name} {much:+.2f} % of f ({by[name].mean[-1] / sgd:.3g} times f - f*)"
        if much < 100 * FAR
        else f"{name} diverges"
        for name, much in above.items()
    )
    say("rand-slightly-behind", text, trials, f"{', '.join(each)}.", above, f"{entry}random-k-with-memory")
    if len(ks) > 1:
        text = "The more random entries are sent, the lower the loss after the same epochs."
        trials = [below(end[b.label], end[a.label]) for a, b in itertools.pairwise(rand)]
        gaps = {c.label: c.mean[-1] for c in rand}
        numbers = f"f - f*: {', '.join(f'{name} {number(gap)}' for name, gap in gaps.items())}."
        say("more-is-lower", text, trials, numbers, gaps, f"{entry}random-k-with-memory")
    for curve in (rand[0], top[0]):
        name, bare = curve.label, f"{curve.label}, no shift"
        text = f"Without the shift, {name} is much worse (f - f* at least {WORSE:g} times as large)."
        falls = below(end[name], curve.gap[:, 0])
        trials = [both(at_most_times(end[name], end[bare], 1.0 / WORSE), falls)]
        pairs = [f"{number(steps[bare][key])} against {number(steps[name][key])}" for key in ("epoch", "end")]
        values = {"without": steps[bare], "with": steps[name]}
        id, numbers = (
            f"{name.partition('-')[0]}-needs-shift",
            "f - f* {} after one epoch, {} at the end.".format(*pairs),
        )
        say(id, text, trials, numbers, values, f"{entry}without-the-shift")
    name, bare = top[0].label, f"top-{few}, no memory"
    text = (
        f"Without memory, top-{few} stalls (f - f* at least {WORSE:g} times as large as with it, and after one epoch "
        "it falls by less than half)."
    )
    first = by[bare].gap[:, np.abs(by[bare].epochs - 1).argmin()]
    trials = [both(at_most_times(end[name], end[bare], 1.0 / WORSE), at_most_times(first, end[bare], 2.0))]
    numbers = (
        f"f - f* {number(steps[bare]['epoch'])} after one epoch and {number(steps[bare]['end'])} at the end, against "
        f"{number(steps[name]['end'])} with memory."
    )
    values = {"without": steps[bare], "with": {"end": steps[name]["end"]}}
    where = "conef/slide-why-error-feedback-is-necessary" if "rcv1" in entry else f"{entry}without-memory"
    say("top-needs-memory", text, trials, numbers, values, where)
    return said


def _compared(curves, ks) -> tuple[list, list]:
    """The curves that the statements on bits compare: top-k, and QSGD with 4 and 8 bits."""
    by = {curve.label: curve for curve in curves}
    return [by[f"top-{k}"] for k in sorted({1, ks[0]})], [by[f"QSGD {bits} bits"] for bits in (4, 8)]


def goal_of(curves, ks) -> np.ndarray:
    """By seed the lowest f - f* that all of them reach that do not diverge; bits are compared up to there."""
    tops, rivals = _compared(curves, ks)
    ends = np.array([curve.gap[:, -1] for curve in tops + rivals])
    return np.where(np.isfinite(ends), ends, 0.0).max(axis=0)


def statements_three(curves, ks, entry: str = "") -> list[Statement]:
    """Verdicts on Figure 3: top-k is as good as QSGD in the same epochs, with far fewer bits."""
    by, both_ways = {curve.label: curve for curve in curves}, ("counted", "sent")
    tops, rivals = _compared(curves, ks)
    about, said = (f"{entry}loss-against-epochs",) if entry else (), []
    for top in tops:
        text = (
            f"{top.label.capitalize()} reaches f - f* of QSGD with 4 and 8 bits in the same epochs (at most "
            f"{AS_LOW:g} times it)."
        )
        end, trials = _ends([top, *rivals]), [_as_low(top, rival) for rival in rivals]
        numbers = f"After {top.epochs[-1]:g} epochs: {_with_intervals([top, *rivals])}.{_by_the_rate(top, rivals)}"
        said.append(Statement(f"{top.label}-as-qsgd", text, trials, numbers, bears_on=about, values=end))
    others: dict[str, tuple[Any, tuple[str, ...]]]
    others = {f"QSGD with {bits} bits": (rival, both_ways) for bits, rival in zip((4, 8), rivals, strict=True)}
    others["SGD"] = by["SGD"], ("counted",) if DENSE in by else both_ways
    if DENSE in by:
        others["SGD in dense messages"] = by[DENSE], ("sent",)
        others["SGD in lossless sparse messages"] = by[SPARSE], ("sent",)
    goal = goal_of(curves, ks)
    for top, (text, (other, ways)) in itertools.product(tops, others.items()):
        reduced = ("mem-sgd/abstract-communication-reduced",) if top.label == "top-1" and text.startswith("SGD") else ()
        about = (f"{entry}loss-against-bits", *reduced) if entry else ()
        said.append(_fewer_bits(top, other, text, goal, ways)._replace(bears_on=about))
    return said


def _by_the_rate(top, rivals) -> str:
    """A remark on gamma0 if ``top`` is behind with another one than its rival."""
    ahead = [
        rival for rival in rivals if _as_low(top, rival).verdict == FAILS and not math.isclose(rival.shift, top.shift)
    ]
    ratios = ", ".join(f"{rival.shift / top.shift:g} times that of {rival.label}" for rival in ahead)
    return f" Its gamma0, chosen after one epoch, is {ratios}, which may be why." if ahead else ""


def _fewer_bits(top, other, text: str, goal, ways) -> Statement:
    """Whether ``top`` needs ten times fewer bits than ``other`` to the goal: as counted by the authors, or as sent."""
    said = f"{top.label.capitalize()} needs at least {ORDER:g} times fewer bits than {text} to the same loss."
    pairs = {way: [curve.bits_until(goal, way) for curve in (top, other)] for way in ways}
    ratios = {way: float(np.median(theirs / mine)) for way, (mine, theirs) in pairs.items()}
    words = {"counted": "as the authors count", "sent": "as sent"}
    numbers = ", ".join(f"{_times(ratio)} times {words[way]}" for way, ratio in ratios.items()) + "."
    trials = [at_most_times(mine, theirs, 1.0 / ORDER) for mine, theirs in pairs.values()]
    return Statement(f"{top.label}-than-{slug(text)}", said, trials, numbers, values=ratios)


# --- the study --------------------------------------------------------------------------------------------------------


def report(size: Size, options: Options, least: float, two, three) -> Study:
    """The study of one problem from its curves: those of Figure 2, and of Figure 3 if there are any."""
    dense, own = options.problem == "dense", options.problem == "rcv1-ridge"
    steps, means = ({}, {}) if own else PUBLISHED[options.problem]
    losses = ("f - f*, 1 epoch", "at the end", "f", "published f")
    rows = [(c.label, f"{c.shift:,.0f}", *_losses(c, least, steps)) for c in two]
    tables = [Table(f"Figure 2, {options.epochs} epochs", ("method", "a", *losses), rows)]
    entries = ["" if own else f"mem-sgd/figure-{k}-{'epsilon' if dense else 'rcv1'}-" for k in (2, 3)]
    said = statements_two(two, options.ks, least, entries[0])
    if three:
        if not dense:  # SGD's two messages on sparse data: all coordinates, or index and value of the non-zeros
            all_of_it = three[0]._replace(label=DENSE, counted=64.0 * size.d, sent=32.0 * size.d)
            three = [*three, all_of_it, three[0]._replace(label=SPARSE)]
        goal = goal_of(three, options.ks)
        rows = [(c.label, number(1.0 / (c.shift * size.l2)), *_losses(c, least, means)) for c in three]
        tables.append(Table(f"Figure 3, {options.long_epochs} epochs", ("method", "gamma0", *losses), rows))
        title = f"Figure 3 in bits: a message, and all until f - f* is {number(goal.mean())}"
        head = ("method", "counted", "sent", "all, counted", "all, sent")
        tables.append(Table(title, head, [(c.label, *_bits(c, goal)) for c in three]))
        said += statements_three(three, options.ks, entries[1])
    if own:
        fewer = ("mem-sgd/figure-3-rcv1-loss-against-epochs",)
        said = [one._replace(source=OURS, bears_on=fewer if one.id.endswith("as-qsgd") else ()) for one in said]
    shown = "Against epochs, for top-k and for rand-k with memory, with and without shift"
    if three:
        shown = (
            "Above: against epochs, for top-k and rand-k with memory, with and without shift, and for SGD, top-k, "
            "rand-k and QSGD with the best step sizes. Below: the last of these against bits, as the authors count "
            "them and as they are sent"
        )
    more = f", {size.n:,} rows" if options.rows else ""
    return Study(
        "mem-sgd",
        f"Mem-SGD against SGD{' and QSGD' if three else ''}: {TITLES[options.problem]}{more}",
        _setting(size, options, least),
        {"figure 2": two, **({"figure 3": three} if three else {})},
        tables,
        said,
        lambda: draw(two, three),
        f"Suboptimality, logarithmic. {shown}",
    )


def _setting(size: Size, options: Options, least: float) -> str:
    dense, own = options.problem == "dense", options.problem == "rcv1-ridge"
    rows = "" if dense else f", {size.nonzeros / size.n:.0f} non-zeros a row"
    n, source = PUBLISHED_ROWS[options.problem.removesuffix("-ridge")]
    rates, shift = ", ".join(f"{rate:g}" for rate in options.rates), f"{options.delay:g} d/k".removeprefix("1 ")
    local = f" {'QSGD compresses' if dense else 'SGD and QSGD compress'} the gradient of the loss, and the worker " + (
        "applies the l2 term itself." if dense else "applies the l2 term itself, so that sparse rows stay sparse."
    )
    why = "these documents are synthetic"
    if n != size.n:
        why = f"an epoch there has {n / size.n:.0f} times as many steps in which a memory can be sent"
    published = (
        "The paper has logistic regression only, whose gradients are bounded; those of ridge regression are not, and "
        "what a memory sends late can be too long a step."
        if own
        else f"The published losses are on {n:,} rows of {source}: orderings can be compared with them, numbers "
        f"cannot, since {why}."
    )
    third = (
        f" Figure 3: steps gamma0/(1 + gamma0 l2 t) and the plain mean; of {rates} each "
        "method has the gamma0 with the lowest f after one epoch of another run, and keeps it for all "
        f"{options.long_epochs} epochs: on so coarse a grid another one may be better at the end, and orders that are "
        "close may come from the choice of gamma0. QSGD has s = 2^bits levels of the "
        "norm of the whole vector, Elias codes and no memory."
    )
    counted = (
        " Bits are counted as in the authors' notebook (`th.bounds.mem_sgd_counted_bits`), or sent: the "
        "payload; they are compared up to the lowest f - f* that top-k and QSGD with 4 and 8 bits all reach, and "
        "between two records log(f - f*) is taken as linear."
    )
    if not options.long_epochs:
        third = counted = ""
        local = " SGD compresses the gradient of the loss, and the worker" + local.partition("the worker")[2]
    return (
        'The experiments of Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018). '
        f"{'Ridge' if own else 'Logistic'} regression on "
        f"{size.name}: n = {size.n:,}, d = {size.d:,}{rows}, l2 = 1/n. One worker, one row a step, independent draws; "
        f"x_0 = 0; {options.seeds} run(s) of each method with the same seeds, of which f - f* is the mean, with ± its "
        f"95 % interval. f* = {least:.7f}. Figure 2: steps 2/(l2 (a + t)) and weights "
        f"(a + t)^2 in the average, with a = {shift}, or {options.no_delay:g} without the shift; SGD has "
        f"the a of k = {options.ks[0]}.{third} Sparsifiers compress the whole gradient (Algorithm 1)."
        f"{local}{counted} {published}"
    )


def _losses(curve, least: float, published: dict) -> tuple[str, ...]:
    mean = curve.mean[-1]
    shown = f"{published[curve.label]:.5g}" if curve.label in published else "-"
    return (number(curve.after(1)), interval(curve.gap[:, -1]), f"{least + mean:.5g}", shown)


def _bits(curve, goal) -> tuple[str, ...]:
    until = (curve.bits_until(goal, which).mean() for which in ("counted", "sent"))
    every = (bits_text(bits) if math.isfinite(bits) else "never" for bits in until)
    return (f"{curve.counted:,.0f}", f"{curve.sent:,.0f}", *every)


# --- the figure -------------------------------------------------------------------------------------------------------


def draw(two, three):
    """Above: Figure 2 for top-k and for rand-k, and Figure 3 in epochs; below: Figure 3 in bits, twice, and its legend.

    Without Figure 3 there are two panels.
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
        look_of = _looks(plain + sent)
        _panel(grid[0, 2], plain, "epochs", look_of)
        grid[0, 2].set_title("Figure 3: the best gamma0")
        _panel(grid[1, 0], plain, "counted", look_of)
        _panel(grid[1, 1], sent, "sent", look_of)
        grid[1, 2].axis("off")
        lines = {line.get_label(): line for axes in (grid[1, 0], grid[1, 1]) for line in axes.get_lines()}
        grid[1, 2].legend(lines.values(), lines.keys(), loc="center left", title="Figure 3, in epochs and in bits")
    return figure


def _panel(axes, curves, against: str, look_of: dict) -> None:
    """Means of f - f* over the seeds, in bands of all seeds, from the first record after the start on.

    Values far above are outside the panel.
    """
    ends = sorted(curve.mean[-1] for curve in curves if math.isfinite(curve.mean[-1]))
    high = CUT * ends[0] if ends and ends[-1] > CUT * ends[0] else math.inf
    for curve in curves:
        x = curve.epochs if against == "epochs" else curve.epochs * curve.steps * getattr(curve, against)
        label = curve.label + (" (above)" if not (curve.mean[1:] < high).any() else "")
        look = look_of[curve.label]
        band(axes, x[1:], curve.gap[:, 1:], label=label, markevery=max(1, x.size // 8), markerfacecolor="none", **look)
    scale = "linear" if against == "epochs" else "log"
    axes.set(xscale=scale, yscale="log", xlabel=X_LABELS[against], ylabel=r"$f-f^*$")
    if math.isfinite(high):
        axes.set_ylim(0.5 * ends[0], high)


def _looks(curves) -> dict[str, dict]:
    """Colour, dashes and marker for each label, the same in all panels; SGD's for its lossless message."""
    same = {label: "SGD" for label in (curve.label for curve in curves) if label.startswith("SGD, lossless")}
    found = looks(dict.fromkeys(curve.label for curve in curves if curve.label not in same))
    return found | {label: found[other] for label, other in same.items()}
