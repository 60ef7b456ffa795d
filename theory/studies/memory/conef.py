"""Contractive error feedback (ConEF) against full precision, random blocks without memory, and error feedback.

Softmax regression on 16 workers that send 10 or 5 % of the coordinates, as one random block.  A memory is stored as a
plain array (error feedback), as a fresh count sketch (the talk's algorithm), as one fixed linear sketch (as in the
authors' code) or quantized (as the theory allows).
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ...data import rcv1_topics
from ...plots.appearance import COLUMN, bits, number, seconds
from ...plots.lecture import curve, hline, paint, panel
from ...reporting.files import ConfigurationError
from ..shared.conef_training import (
    AUTHORS,
    BLOCK,
    BUCKET,
    EF,
    HALF,
    MOMENTUM,
    QUANTIZED,
    SGD,
    UNBIASED,
    Options,
    Outcome,
    Way,
    best_outcomes,
    fixed,
    most_frequent,
    sketched,
    train,
    ways,
)
from ..shared.curves import bars, canvas, looks
from ..shared.problems import digits, topics_file
from ..shared.report import OURS, Study, Table, interval, line
from ..shared.verdicts import Statement, Trial, at_most, below, count, diverges

SWEPT, SWEEP_SEEDS = (EF, fixed(0.6), fixed(0.9)), 6
LITTLE, FAR = 0.01, 0.05  # an accuracy within one point is "matched"; five points below is "far worse"
TALK = 0.1  # the share at which the talk compares ConEF that saves 60 and 90 % of the memory
FAMILIES = {  # in the figure: colour and mark
    "without memory": ("0.35", "s"),
    EF: ("k", "*"),
    "fresh sketch": ("#D55E00", "x"),
    "fixed sketch": ("#0072B2", "o"),
    "quantized": ("#009E73", "D"),
}


# --- the study --------------------------------------------------------------------------------------------------------


class Size(NamedTuple):
    """The data: name, rows, used columns, all columns, classes, and columns with an entry (for a sweep)."""

    name: str
    n: int
    columns: int
    features: int
    classes: int
    occurring: int


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """All methods at one share of communication, and, if the options ask for it, a sweep over the dimension."""
    file = topics_file(topics) if options.problem == "topics" else None
    source = digits() if file is None else rcv1_topics(file)
    if quick:
        options = options._replace(
            steps=min(options.steps, 60),
            seeds=min(options.seeds, 2),
            grid=options.grid[:2],
            momenta=options.momenta[-1:],
            features=min(options.features, 500),
            sweep=options.sweep[:2],
        )
    if options.share * min(options.features, source.d) * np.unique(source.y).size < 1:
        raise ConfigurationError(f"share: got {options.share!r}, allowed: at least one coordinate of a message")
    text = most_frequent(source, options.features)
    classes = np.unique(text.y).size
    d = text.d * classes
    chosen = ways(d, options.share)
    if quick:
        chosen = {name: way for name, way in chosen.items() if name != HALF and not name.startswith("iConEF")}
    rows = train(text, chosen, options, seed)
    last, swept = options.momenta[-1], []
    step = best_outcomes(row for row in rows if row.momentum == last)[EF].step
    for features in sorted({min(features, source.d) for features in options.sweep}):
        smaller = most_frequent(source, features)
        some = {name: ways(features * classes, options.share)[name] for name in SWEPT}
        few = options._replace(seeds=min(SWEEP_SEEDS, options.seeds), grid=(step,), momenta=(last,))
        swept += train(smaller, some, few, seed)
    occurring = int(np.unique(most_frequent(source, source.d).X.indices).size) if swept else 0
    size = Size("digits" if file is None else "RCV1's topics", text.n, text.d, source.d, classes, occurring)
    return {"rows": rows, "swept": swept, "chosen": list(chosen), "size": size, "options": options}


# --- statements -------------------------------------------------------------------------------------------------------


def _held_out(row: Outcome) -> float:
    """The mean accuracy, in per cent; NaN if it diverged."""
    return 100.0 * float(row.accuracy.mean()) if row.success else math.nan


def _percent(row: Outcome) -> str:
    return f"{_held_out(row):.1f}" if row.success else "diverged"


def _spread(row: Outcome) -> str:
    return interval(100.0 * row.accuracy, "{:.1f}".format) if row.success else "diverged"


def statements(rows, chosen: dict[str, Way], share: float, topics: bool = True) -> list[Statement]:
    """Verdicts on the talk's tables and on our own comparisons; each method with its best step unless stated otherwise.

    Each momentum is a case of its own, since the talk's slides do not mention any.  The talk's tables have 90 % less
    communication: with another share their statements are our comparison, too.
    """
    momenta = sorted({row.momentum for row in rows})
    of = [_statements([row for row in rows if row.momentum == m], chosen, share, topics) for m in momenta]
    if len(momenta) == 1:
        return of[0]
    return [
        one[0]._replace(
            trials=[trial for said in one for trial in said.trials],
            said=" ".join(
                f"Momentum {m:g}: {said.said} ({said.verdict})" for m, said in zip(momenta, one, strict=True)
            ),
            values={f"momentum {m:g}": said.by_name for m, said in zip(momenta, one, strict=True)},
        )
        for one in zip(*of, strict=True)
    ]


def _statements(rows, chosen: dict[str, Way], share: float, topics: bool) -> list[Statement]:
    """The statements at one momentum."""
    best = best_outcomes(rows)
    same = {row.method: row for row in rows if row.step == best[SGD].step}
    sgd, ef, low = best[SGD], best[EF], [name for name in (BLOCK, UNBIASED) if name in best]
    plain, wide = "conef/table-resnet18-", "conef/table-wideresnet-28-10-"
    tables = (f"{plain}on-cifar-10", f"{wide}on-cifar-10")[: 2 if topics else 1]
    talk = share == TALK  # what has a saving is in the talk's tables for 90 % less alone
    table, about = ("", tables) if talk else (OURS, ())
    fixed_ones, fresh_ones = ([make(s) for s in (0.6, 0.9) if make(s) in best] for make in (fixed, sketched))
    said: list[Statement] = []
    trials: list[Any]

    def say(id, text, trials, numbers, source=table, bears_on=about, values=None):
        said.append(Statement(id, text, trials, numbers, source, bears_on, values or {}))

    def close(names) -> list[Trial]:
        """Whether each is at most one point below EFSGD."""
        return [at_most(best[name].cost, ef.cost, LITTLE) for name in names]

    def of(names, shown) -> str:
        return "; ".join(f"{name}: {shown(name)}" for name in names)

    def kappa(name) -> str:
        return f"kappa = {number(chosen[name].kappa)}, {_percent(best[name])}"

    text = f"With {100 * (1 - share):.3g} % less communication EFSGD matches SGD (within one point of accuracy)."
    numbers = f"{_percent(ef)} against {_percent(sgd)}; training loss {number(ef.loss)} against {number(sgd.loss)}."
    say("efsgd", text, [at_most(ef.cost, sgd.cost, LITTLE)], numbers)

    def with_both_steps(name) -> str:
        others = f", {_percent(same[name])} with SGD's by one seed" if name in same else ""
        return f"{_percent(best[name])} with its best step{others}"

    text = "Random blocks without memory (rbSGD) are far worse than EFSGD (by five points)."
    trials = [at_most(ef.cost, best[name].cost, -FAR) for name in low]
    values = {f"{name}, SGD's step": _held_out(same[name]) for name in low if name in same}
    without = (*about[:1], f"{plain}blocks-without-memory")
    say("blocks-alone", text, trials, f"{of(low, with_both_steps)}; EFSGD {_percent(ef)}.", table, without, values)

    thumb = (*about, *(("conef/slide-rule-of-thumb-count-sketch",) if talk else ()))
    for id, how, names in (
        ("fixed-sketch", "as in the authors' code, one fixed linear sketch", fixed_ones),
        ("fresh-sketch", "as the theory reads it, a fresh sketch in every step", fresh_ones),
    ):
        text = f"ConEF that saves 60 and 90 % of the memory loses little, {how} (one point)."
        numbers = f"{of(names, lambda name: _percent(best[name]))}; EFSGD {_percent(ef)}."
        say(id, text, close(names), numbers, table, thumb, {name: _held_out(best[name]) for name in (*names, EF)})

    none = max((best[name] for name in low), key=lambda row: row.accuracy.mean() if row.success else 0.0)
    numbers = (
        f"{of(fixed_ones, lambda name: _spread(best[name]))}; {none.method}: {_spread(none)}. In the talk, with 90 % "
        "less communication, ConEF is 5.4 to 13.1 points above rbSGD on CIFAR-10."
    )
    trials = [below(best[name].cost, none.cost) for name in fixed_ones]
    values = {"without memory": _held_out(none)}
    say("fixed-above-none", "A fixed sketch is better than no memory.", trials, numbers, OURS, about, values)

    kept = [name for name, way in chosen.items() if way.kappa < 1.0 and name != EF and name in best]
    text = "A memory with kappa < 1 trains as EFSGD does (within one point)."
    slide = ("conef/slide-stochastic-quantization-as-error",) if topics and talk else ()
    say("kappa-below-one", text, close(kept), f"{of(kept, kappa)}.", OURS, slide)

    above = [name for name, way in chosen.items() if way.kappa >= 1.0 and name in best]
    trials, values = [diverges(best[name].cost) for name in above], {name: chosen[name].kappa for name in above}
    numbers = f"{of(above, kappa)}. Where the bound of theta is loose, it need not."
    say("kappa-above-one", "A memory with kappa >= 1 diverges.", trials, numbers, OURS, (), values)

    order = [name for name in (SGD, fixed(0.6), EF, fixed(0.9), BLOCK) if name in best]
    trials = [at_most(best[a].cost, best[b].cost) for a, b in itertools.pairwise(order)]
    whose = "the talk's order" if talk else "the order that the talk has with 90 % less communication"
    text = f"The accuracies are in {whose}: SGD, ConEF 60 %, EFSGD, ConEF 90 %, rbSGD."
    ends = ", ".join(f"{name} {_spread(best[name])}" for name in order)
    say("order", text, trials, f"{count(trials)} of {len(trials)} neighbours are: {ends}.")

    for name in low[1:]:
        text = "Unbiased blocks without memory lose accuracy against SGD."
        numbers, entry = f"{_spread(best[name])} against {_spread(sgd)}.", "conef/slide-unbiased-compressors-enlarge"
        say("unbiased-loses", text, [below(sgd.cost, best[name].cost)], numbers, table, (entry,))
    return said


def sweep_statement(rows) -> Statement:
    """Whether the loss of a compressed memory against error feedback falls with the dimension."""
    names = [name for name in dict.fromkeys(row.method for row in rows) if name != EF]
    points = {name: losses(rows, name) for name in names}
    texts = {
        name: ", ".join(f"{interval(100.0 * lost, '{:.1f}'.format)} (d = {d:,})" for d, lost in mine)
        for name, mine in points.items()
    }
    return Statement(
        "larger-models",
        "ConEF is more suitable for larger models: what it loses against EFSGD falls as d grows "
        "(from the least d to the largest).",
        [below(mine[-1][1], mine[0][1]) for mine in points.values()],
        f"Points of accuracy lost: {'; '.join(f'{name}: {text}' for name, text in texts.items())}.",
        bears_on=("conef/slide-conef-is-more-suitable",),
    )


def losses(rows, name: str) -> list[tuple[int, np.ndarray]]:
    """d, and the accuracy lost against error feedback, seed by seed; infinite if it diverged."""
    found = []
    for d in sorted({row.d for row in rows}):
        best = best_outcomes([row for row in rows if row.d == d])
        found.append((d, best[EF].accuracy + best[name].cost))
    return found


# --- tables, figure and text ------------------------------------------------------------------------------------------


def _cells(rows, chosen) -> list[tuple[str, ...]]:
    """A row for each momentum and method, with its best step."""
    table: list[tuple[str, ...]] = []
    for momentum, name in itertools.product(sorted({row.momentum for row in rows}), chosen):
        best = best_outcomes([row for row in rows if row.momentum == momentum])
        if name not in best:
            continue
        row, way = best[name], chosen[name]
        theory = "-" if math.isnan(way.kappa) else f"kappa = {number(way.kappa)}{': bounded' if way.kappa < 1 else ''}"
        if not math.isnan(way.damping):
            theory = f"{number(way.damping)} < 2: stable" if way.damping < 2 else f"{number(way.damping)}: unstable"
        tried = [one.step for one in rows if (one.method, one.momentum) == (name, momentum)]
        step = f"{row.step:g}{'*' if row.step in (min(tried), max(tried)) else ''}"
        saved = 100 * (1 - row.memory / best[EF].memory)
        table.append(
            line(
                f"{name} | {momentum:g} | {step} | {_spread(row)} | {number(row.loss)} | {row.rounds} | "
                f"{seconds(row.seconds)} | {bits(row.bits)} | {row.memory:,} | {saved:.1f} | {theory}"
            )
        )
    return table


def draw(rows, swept):
    """Accuracy against memory; by momentum, if there are several; by step size; and of a sweep the loss against d."""
    momenta = sorted({row.momentum for row in rows})
    last = [row for row in rows if row.momentum == momenta[-1]]
    best, done = best_outcomes(last), [row for row in rows if row.success]
    held = [row.accuracy.mean() for row in best.values() if row.success]
    floor = min(held) - 0.25 * (max(held) - min(held)) - 0.003
    look_of = looks((SGD, BLOCK, UNBIASED, EF, fixed(0.6), fixed(0.9), QUANTIZED))
    several = len(momenta) > 1
    with canvas(1, 2 + several + bool(swept), 1.0 * COLUMN) as (figure, grid):
        left, right = grid[0, 0], grid[0, 1 + several]
        for name, (colour, marker) in FAMILIES.items():
            mine = [row for row in best.values() if _family(row) == name]
            heights = [100 * row.accuracy if row.success else np.full(1, 100 * floor) for row in mine]
            sizes = [row.memory / best[EF].memory for row in mine]
            bars(left, sizes, heights, label=name, color=colour, marker=marker, linestyle="")
        if any(not row.success for row in best.values()):
            place = {"ha": "right", "va": "bottom", "transform": left.get_yaxis_transform()}
            left.text(0.97, 100 * floor, "diverged", fontsize=6, **place)
        left.set(xlabel="memory over that of EFSGD", ylabel="held-out accuracy, %")
        left.set_title(f"best steps, momentum {momenta[-1]:g}")
        tried = [row for row in last if row.success and row.method in look_of]
        by_step = []
        for name, look in look_of.items():
            ends = [best_outcomes([row for row in done if row.momentum == m]).get(name) for m in momenta]
            shown = [row for row in ends if row is not None]
            if several:
                bars(grid[0, 1], [row.momentum for row in shown], [100 * row.accuracy for row in shown], **look)
            mine = [row for row in tried if row.method == name]
            y = [_held_out(row) for row in mine]
            by_step.append(curve([row.step for row in mine], y, label=name, linewidth=0.8, **look))
        if several:
            grid[0, 1].set(xlabel="momentum", title="by momentum", xticks=momenta)
        ticks: dict[str, Any] = {"log": "x", "xticks": sorted({row.step for row in tried}), "legend": None}
        paint(right, panel(by_step, x=r"step size, times $(1-m)/L$", title="by step size", **ticks))
        right.set_ylim(bottom=max(right.get_ylim()[0], 100 * max(held) - 20))  # accuracies further below are not shown
        if swept:
            for name in SWEPT[1:]:
                points = [(d, 100 * lost) for d, lost in losses(swept, name) if np.isfinite(lost).all()]
                bars(grid[0, -1], [d for d, _ in points], [lost for _, lost in points], **look_of[name])
            ticks |= {"x": "d", "y": "points lost against EFSGD", "xticks": sorted({row.d for row in swept})}
            paint(grid[0, -1], panel(hline(0.0, k="0.7"), title="sweep over d", **ticks))
            grid[0, -1].tick_params(axis="x", labelsize=6)
        (families, labels), (lines, names) = (axes.get_legend_handles_labels() for axes in (left, right))
        small = {"fontsize": 6, "title_fontsize": 6}
        figure.legend(families, labels, loc="outside lower left", ncols=2, title="left panel: kinds of memory", **small)
        figure.legend(lines, names, loc="outside lower right", ncols=2, title="other panels: methods", **small)
    return figure


def _family(row: Outcome) -> str:
    """Which of ``FAMILIES`` a method belongs to."""
    known = [name for name in ("fresh sketch", "fixed sketch", EF) if name in row.method]
    return "without memory" if row.memory == 0 else known[0] if known else "quantized"


def report(rows, swept, chosen, size: Size, options: Options) -> Study:
    """The study of these outcomes: of the ``chosen`` methods, and of the sweep over the dimension if there was one."""
    name, d = size.name, size.columns * size.classes
    every = ways(d, options.share)
    chosen = {method: every[method] for method in chosen}
    head = line(
        "method | momentum | step | held out, % | training loss | rounds | seconds | payload | memory, bytes | "
        "saved, % | theory"
    )
    title = f"{name}: {100 * (1 - options.share):.3g} % less communication, best step"
    tables = [Table(title, head, _cells(rows, chosen))]
    steps, tried = sorted({row.step for row in rows}), {(row.method, row.momentum, row.step): row for row in rows}
    by_step = [
        (method, f"{m:g}", *(_percent(tried[method, m, s]) if (method, m, s) in tried else "-" for s in steps))
        for method in chosen
        for m in sorted({row.momentum for row in rows if row.method == method})
    ]
    title, head_of_steps = "Held-out accuracy by step size, %", ("method", "momentum", *(f"{step:g}" for step in steps))
    tables.append(Table(title, head_of_steps, by_step))
    said = statements(rows, chosen, options.share, name != "digits")
    failed = {row.method: row for row in rows if not any(r.success for r in rows if r.method == row.method)}
    if swept:
        cells = [(f"{row.d:,}", row.method, _spread(row), number(row.loss), f"{row.memory:,}") for row in swept]
        head = ("d", "method", "held out, %", "training loss", "memory, bytes")
        tables.append(Table("Sweep over the dimension", head, cells))
        said.append(sweep_statement(swept))
    more = ", and up to four more, as long as the best one lies at an end" if set(steps) - set(options.grid) else ""
    alone = "; methods that the talk does not compare have the last one alone" if len(options.momenta) > 1 else ""
    setting = (
        f"Softmax regression on {name}: the {size.columns:,} most frequent of {size.features:,} features, "
        f"{size.classes} classes, d = {d:,}, l2 = 1/n, 80 % of {size.n:,} rows for training. "
        f"{options.workers} workers with batches of {options.batch}, Nesterov momentum after "
        f"decompression ({', '.join(f'{m:g}' for m in options.momenta)}; the authors' code has {MOMENTUM:g}, the talk "
        f"names none{alone}), {options.steps} rounds, single "
        f"precision, {options.seeds} seeds. One random block of {100 * options.share:.3g} % of d, the same for all "
        f"workers. Step sizes {', '.join(f'{step:g}' for step in options.grid)} times (1 - momentum)/L{more}; "
        "a star marks a best step that is an end of what was tried. The table "
        'shows the one with the least training loss, with all seeds (the others have one). "Fixed sketch": the linear '
        f"sketch of the authors' code, with their beta = {AUTHORS:g} and with the beta that forgets fastest without "
        "gradients; theory is then "
        '(1 - beta) E K^2/E K < 2, K of a bucket\'s coordinates being sent. "Levels": QSGD in buckets of '
        f"{BUCKET}. kappa = (1 + theta)(1 - k/d) with the worst-case theta. Seconds are rough wall-clock times of one"
        f" run with all workers in one process; saved is relative to EFSGD's float32 memory."
    )
    if swept:
        setting += (
            f" The sweep has momentum {swept[0].momentum:g}, EFSGD's best step, {swept[0].step:g}, for all methods, "
            f"and {SWEEP_SEEDS} seeds; {size.occurring:,} of the features occur in the data."
        )
    if options.share != TALK:
        setting += (
            " The talk compares these savings with 90 % less communication, on 16 GPUs. With 95 % it has BERT-base "
            'alone, on 32 GPUs, with LAMB and ConEF 80 %, "not completed yet": that is not repeated here.'
        )
    if failed:
        setting += " " + " ".join(f"{row.method} {row.message.split(';')[0]}." for row in failed.values())
    if options.problem == "topics" and name == "digits":
        setting += " RCV1's topics were not there (THEORY_DATA names the folder, --topics the file)."
    found = {"outcomes": rows} | ({"sweep": swept} if swept else {})
    return Study(
        "conef",
        f"ConEF with {100 * (1 - options.share):.3g} % less communication, {name}",
        setting,
        found,
        tables,
        said,
        lambda: draw(rows, swept),
        "Held-out accuracy against memory over that of EFSGD, for methods without memory, sketched and quantized "
        "memories; accuracy by step size" + ("; points lost against EFSGD over the dimension" if swept else ""),
    )
