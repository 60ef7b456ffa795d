"""Report on Mem-SGD's figures 2 and 3: tables, and verdicts on the published orderings."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...plots.text import bits as bits_text
from ...plots.text import number
from ..shared.entry_keys import slug
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import FAILS, Statement, at_most, at_most_times, below, both
from .mem_sgd_figure import draw

CLOSE, WORSE, ORDER = 0.01, 2.0, 10.0  # "slightly behind", "much worse", "an order of magnitude"
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


class Size(NamedTuple):
    """The problem: name of the data, rows, columns, entries, weight of the l2 term."""

    name: str
    n: int
    d: int
    nonzeros: int
    l2: float


FAR = 100.0  # times f of SGD: no number from there on
TITLES = {"rcv1": "RCV1", "dense": "a dense problem", "rcv1-ridge": "ridge regression on RCV1"}


# --- statements -------------------------------------------------------------------------------------------------------


def _spread(curve) -> float:
    """The range of f - f* at the end, over the seeds."""
    end = curve.gap[:, -1]
    return float(end.max()) - float(end.min())


def _as_low(curve, other) -> str:
    """Whether f - f* at the end is higher by at most the spread of the seeds, which both share."""
    return at_most(curve.gap[:, -1], other.gap[:, -1], max(_spread(curve), _spread(other)))


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.5 else f"{ratio:.3g}"


def _ends(curves) -> dict[str, dict[str, float]]:
    """Mean and spread of f - f* at the end, by method."""
    return {curve.label: {"mean": curve.mean[-1], "spread": _spread(curve)} for curve in curves}


def _with_spreads(ends) -> str:
    return ", ".join(f"{name} {number(end['mean'])} (spread {number(end['spread'])})" for name, end in ends.items())


def statements_two(curves, ks, least: float, entry: str = "") -> list[Statement]:
    """Verdicts on Figure 2: as good as SGD with shift and memory, but not without either.

    ``entry`` begins the keys of the index of sources: "mem-sgd/figure-2-epsilon-", or that of RCV1.
    """
    by = {curve.label: curve for curve in curves}
    sgd, few, said = by["SGD"].mean[-1], ks[0], []
    top, rand = ([by[f"{name}-{k}"] for k in ks] for name in ("top", "rand"))
    end = {label: curve.gap[:, -1] for label, curve in by.items()}

    def say(id, text, trials, numbers, values, *entries):
        said.append(Statement(id, text, trials, numbers, bears_on=entries if entry else (), values=values))

    times, ends = top[0].mean[-1] / sgd, _ends([by["SGD"], *top])
    same = ["mem-sgd/abstract-the-same-rate", f"{entry}top-k-with-memory"]
    say(
        "top-as-sgd",
        f"Top-{few} with memory and shift converges as SGD with the same steps does (f - f* at most the spread of the "
        "seeds above SGD's).",
        [_as_low(top[0], by["SGD"])],
        f"{times:.3f} times. f - f* at the end: {_with_spreads(ends)}.",
        {"times": times} | ends,
        *(same if "rcv1" in entry else [*same, "mem-sgd/remark-2-5"]),
    )
    above = {c.label: 100 * (c.mean[-1] - sgd) / (least + sgd) for c in rand}  # in per cent of f
    each = (
        f"{c.label} {above[c.label]:+.2f} % of f ({c.mean[-1] / sgd:.3g} times f - f*)"
        if above[c.label] < 100 * FAR
        else f"{c.label} diverges"
        for c in rand
    )
    say(
        "rand-slightly-behind",
        f"Rand-k with memory and shift is only slightly behind SGD (f at most {100 * CLOSE:.0f} % above).",
        [at_most(end[c.label], end["SGD"], CLOSE * (least + sgd)) for c in rand],
        ", ".join(each) + ".",
        above,
        f"{entry}random-k-with-memory",
    )
    if len(ks) > 1:
        gaps = {c.label: c.mean[-1] for c in rand}
        say(
            "more-is-lower",
            "The more random entries are sent, the lower the loss after the same epochs.",
            [below(end[b.label], end[a.label]) for a, b in zip(rand[:-1], rand[1:], strict=True)],
            f"f - f*: {', '.join(f'{name} {number(gap)}' for name, gap in gaps.items())}.",
            gaps,
            f"{entry}random-k-with-memory",
        )
    for curve in (rand[0], top[0]):
        bare = by[f"{curve.label}, no shift"]
        falls = below(end[curve.label], curve.gap[:, 0])
        shifted, plain = ({"epoch": c.after(1), "end": c.mean[-1]} for c in (curve, bare))
        say(
            f"{curve.label.partition('-')[0]}-needs-shift",
            f"Without the shift, {curve.label} is much worse (f - f* at least {WORSE:g} times as large).",
            [both(at_most_times(end[curve.label], end[bare.label], 1.0 / WORSE), falls)],
            f"f - f* {number(plain['epoch'])} against {number(shifted['epoch'])} after one epoch, "
            f"{number(plain['end'])} against {number(shifted['end'])} at the end.",
            {"without": plain, "with": shifted},
            f"{entry}without-the-shift",
        )
    bare = by[f"top-{few}, no memory"]
    first = bare.gap[:, np.abs(bare.epochs - 1).argmin()]
    without = {"epoch": bare.after(1), "end": bare.mean[-1]}
    say(
        "top-needs-memory",
        f"Without memory, top-{few} stalls (f - f* at least {WORSE:g} times as large as with it, and after one epoch "
        "it falls by less than half).",
        [
            both(
                at_most_times(end[top[0].label], end[bare.label], 1.0 / WORSE),
                at_most_times(first, end[bare.label], 2.0),
            )
        ],
        f"f - f* {number(without['epoch'])} after one epoch and {number(without['end'])} at the end, against "
        f"{number(top[0].mean[-1])} with memory.",
        {"without": without, "with": {"end": top[0].mean[-1]}},
        "conef/slide-why-error-feedback-is-necessary" if "rcv1" in entry else f"{entry}without-memory",
    )
    return said


def _compared(curves, ks) -> tuple[list, list]:
    """The curves that the statements on bits compare: top-k, and QSGD with 4 and 8 bits."""
    by = {curve.label: curve for curve in curves}
    return [by[f"top-{k}"] for k in sorted({1, ks[0]})], [by[f"QSGD {bits} bits"] for bits in (4, 8)]


def goal_of(curves, ks) -> float:
    """The lowest f - f* that all of them reach; bits are compared up to there."""
    tops, rivals = _compared(curves, ks)
    return max(curve.mean[-1] for curve in tops + rivals if math.isfinite(curve.mean[-1]))


def statements_three(curves, ks, entry: str = "") -> list[Statement]:
    """Verdicts on Figure 3: top-k is as good as QSGD in the same epochs, with far fewer bits."""
    by, both_ways = {curve.label: curve for curve in curves}, ("counted", "sent")
    tops, rivals = _compared(curves, ks)
    ends = [_ends([top, *rivals]) for top in tops]
    said = [
        Statement(
            f"{top.label}-as-qsgd",
            f"{top.label.capitalize()} reaches f - f* of QSGD with 4 and 8 bits in the same epochs (or is above it by "
            "at most the spread of the seeds).",
            [_as_low(top, rival) for rival in rivals],
            f"After {top.epochs[-1]:g} epochs: {_with_spreads(end)}.{_by_the_rate(top, rivals)}",
            bears_on=(f"{entry}loss-against-epochs",) if entry else (),
            values=end,
        )
        for top, end in zip(tops, ends, strict=True)
    ]
    others: list[tuple[str, Any, tuple[str, ...]]] = [
        ("QSGD with 4 bits", rivals[0], both_ways),
        ("QSGD with 8 bits", rivals[1], both_ways),
    ]
    if DENSE in by:
        others += [
            ("SGD", by["SGD"], ("counted",)),
            ("SGD in dense messages", by[DENSE], ("sent",)),
            ("SGD in lossless sparse messages", by[SPARSE], ("sent",)),
        ]
    else:
        others.append(("SGD", by["SGD"], both_ways))
    goal = goal_of(curves, ks)
    fewer = [_fewer_bits(top, other, text, goal, ways) for top in tops for text, other, ways in others]
    about, reduced = (f"{entry}loss-against-bits",), ("mem-sgd/abstract-communication-reduced",)
    return said + [
        one._replace(bears_on=about + (reduced if one.id.startswith("top-1-than-sgd") else ()) if entry else ())
        for one in fewer
    ]


def _by_the_rate(top, rivals) -> str:
    """A remark on gamma0 if ``top`` is behind with another one than its rival."""
    ahead = [rival for rival in rivals if _as_low(top, rival) == FAILS and not math.isclose(rival.shift, top.shift)]
    ratios = ", ".join(f"{rival.shift / top.shift:g} times that of {rival.label}" for rival in ahead)
    return f" Its gamma0, chosen after one epoch, is {ratios}, which may be why." if ahead else ""


def _fewer_bits(top, other, text: str, goal: float, ways) -> Statement:
    """Whether ``top`` needs ten times fewer bits than ``other`` to the goal: as counted by the authors, or as sent."""
    said = f"{top.label.capitalize()} needs at least {ORDER:g} times fewer bits than {text} to the same loss."
    mine, theirs = ([curve.bits_until(goal, way) for way in ways] for curve in (top, other))
    id = f"{top.label}-than-{slug(text)}"
    if not all(map(math.isfinite, mine)):
        return Statement(id, said, [False], f"{top.label.capitalize()} does not come there.")
    ratios = {way: b / a for way, a, b in zip(ways, mine, theirs, strict=True)}
    words = {"counted": "as the authors count", "sent": "as sent"}
    numbers = ", ".join(f"{_times(ratio)} times {words[way]}" for way, ratio in ratios.items()) + "."
    return Statement(id, said, [ratio >= ORDER for ratio in ratios.values()], numbers, values=ratios)


# --- the study --------------------------------------------------------------------------------------------------------


def report(size: Size, options, least: float, two, three) -> Study:
    """The study of one problem from its curves.

    Parameters
    ----------
    size : Size
    options : Options
    least : float
        f*.
    two, three : list of Curve

    Returns
    -------
    Study
    """
    dense, own = options.problem == "dense", options.problem == "rcv1-ridge"
    steps, means = ({}, {}) if own else PUBLISHED[options.problem]
    losses = ("f - f*, 1 epoch", "at the end", "spread", "f", "published f")
    tables = [
        Table(
            f"Figure 2, {options.epochs} epochs",
            ("method", "a", *losses),
            [(c.label, f"{c.shift:,.0f}", *_losses(c, least, steps)) for c in two],
        )
    ]
    entries = ["" if own else f"mem-sgd/figure-{k}-{'epsilon' if dense else 'rcv1'}-" for k in (2, 3)]
    said = statements_two(two, options.ks, least, entries[0])
    if three:
        three = three + _other_messages(size, three[0], dense)
        goal = goal_of(three, options.ks)
        tables += [
            Table(
                f"Figure 3, {options.long_epochs} epochs",
                ("method", "gamma0", *losses),
                [(c.label, number(1.0 / (c.shift * size.l2)), *_losses(c, least, means)) for c in three],
            ),
            Table(
                f"Figure 3 in bits: a message, and all until f - f* is {number(goal)}",
                ("method", "counted", "sent", "all, counted", "all, sent"),
                [(c.label, *_bits(c, goal)) for c in three],
            ),
        ]
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


def _setting(size: Size, options, least: float) -> str:
    dense, own = options.problem == "dense", options.problem == "rcv1-ridge"
    rows = "" if dense else f", {size.nonzeros / size.n:.0f} non-zeros a row"
    n, source = PUBLISHED_ROWS[options.problem.removesuffix("-ridge")]
    rates = ", ".join(f"{rate:g}" for rate in options.rates)
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
        f"x_0 = 0; {options.seeds} run(s) of each method with the same seeds, of which f - f* is the mean and spread "
        f"the largest less the smallest at the end. f* = {least:.7f}. Figure 2: steps 2/(l2 (a + t)) and weights "
        f"(a + t)^2 in the average, with a = {_shift(options)}, or {options.no_delay:g} without the shift; SGD has "
        f"the a of k = {options.ks[0]}.{third} Sparsifiers compress the whole gradient (Algorithm 1)."
        f"{local}{counted} {published}"
    )


def _shift(options) -> str:
    return "d/k" if options.delay == 1.0 else f"{options.delay:g} d/k"


def _losses(curve, least: float, published: dict) -> tuple[str, ...]:
    mean = curve.mean[-1]
    shown = f"{published[curve.label]:.5g}" if curve.label in published else "-"
    return (number(curve.after(1)), number(mean), number(_spread(curve)), f"{least + mean:.5g}", shown)


def _bits(curve, goal: float) -> tuple[str, ...]:
    until = (curve.bits_until(goal, which) for which in ("counted", "sent"))
    every = (bits_text(bits) if math.isfinite(bits) else "never" for bits in until)
    return (f"{curve.counted:,.0f}", f"{curve.sent:,.0f}", *every)


def _other_messages(size: Size, sgd, dense: bool) -> list:
    """SGD's curve again for its two messages on sparse data: all coordinates, or index and value of the non-zeros."""
    if dense:
        return []
    return [sgd._replace(label=DENSE, counted=64.0 * size.d, sent=32.0 * size.d), sgd._replace(label=SPARSE)]
