"""Statements, tables and the figure of the study of contractive error feedback."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...plots.figure_style import COLUMN
from ...plots.text import bits, number, seconds
from ..conef import SWEEP_SEEDS, SWEPT, Size
from ..shared.conef_training import (
    AUTHORS,
    BLOCK,
    BUCKET,
    EF,
    MOMENTUM,
    QUANTIZED,
    SGD,
    UNBIASED,
    Options,
    Outcome,
    Way,
    best_outcomes,
    fixed,
    sketched,
    ways,
)
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import HOLDS, Statement, at_most, below, diverges, judged

LITTLE, FAR = 0.01, 0.05  # an accuracy within one point is "matched"; five points below is "far worse"
TALK = 0.1  # the share at which the talk compares ConEF that saves 60 and 90 % of the memory


def _held_out(row: Outcome) -> float:
    """The mean accuracy, in per cent; NaN if it diverged."""
    return 100.0 * float(row.accuracy.mean()) if row.success else math.nan


def _percent(row: Outcome) -> str:
    return f"{_held_out(row):.1f}" if row.success else "diverged"


def _spread(row: Outcome) -> str:
    return f"{_percent(row)} ± {100 * row.accuracy.std():.1f}" if row.success else "diverged"


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
                f"Momentum {m:g}: {said.numbers} ({said.verdict})" for m, said in zip(momenta, one, strict=True)
            ),
            values={f"momentum {m:g}": said.by_name for m, said in zip(momenta, one, strict=True)},
        )
        for one in zip(*of, strict=True)
    ]


def _statements(rows, chosen: dict[str, Way], share: float, topics: bool) -> list[Statement]:
    """The statements at one momentum."""
    best, less = best_outcomes(rows), f"{100 * (1 - share):.3g} %"
    same = {row.method: row for row in rows if row.step == best[SGD].step}
    sgd, ef, low = best[SGD], best[EF], [name for name in (BLOCK, UNBIASED) if name in best]

    def close(names) -> list[str]:
        """Whether each is at most one point below EFSGD."""
        return [at_most(best[name].cost, ef.cost, LITTLE) for name in names if name in best]

    def kappas(names) -> str:
        return (
            "; ".join(f"{name}: kappa = {number(chosen[name].kappa)}, {_percent(best[name])}" for name in names) + "."
        )

    def percents(names) -> str:
        return "; ".join(f"{name}: {_percent(best[name])}" for name in names if name in best)

    plain, wide = "conef/table-resnet18-", "conef/table-wideresnet-28-10-"
    tables = (f"{plain}on-cifar-10", f"{wide}on-cifar-10")[: 2 if topics else 1]
    talk = share == TALK  # what has a saving is in the talk's tables for 90 % less alone
    table, about, memory = ("", tables, (f"{plain}memory-saving", f"{wide}memory-saving")) if talk else (OURS, (), ())
    without, thumb = f"{plain}blocks-without-memory", ("conef/slide-rule-of-thumb-count-sketch",) if talk else ()
    fixed_ones, fresh_ones = ([make(saving) for saving in (0.6, 0.9)] for make in (fixed, sketched))
    none = max((best[name] for name in low), key=lambda row: row.accuracy.mean() if row.success else 0.0)
    kept = [name for name, way in chosen.items() if way.kappa < 1.0 and name != EF and name in best]
    above = [name for name, way in chosen.items() if way.kappa >= 1.0 and name in best]
    order = [name for name in (SGD, fixed(0.6), EF, fixed(0.9), BLOCK) if name in best]
    in_order = [at_most(best[a].cost, best[b].cost) for a, b in zip(order, order[1:], strict=False)]
    whose = "the talk's order" if talk else "the order that the talk has with 90 % less communication"
    saved = {saving: 1.0 - best[fixed(saving)].memory / ef.memory for saving in (0.6, 0.9) if fixed(saving) in best}
    return [
        Statement(
            "efsgd",
            f"With {less} less communication EFSGD matches SGD (within one point of accuracy).",
            [at_most(ef.cost, sgd.cost, LITTLE)],
            f"{_percent(ef)} against {_percent(sgd)}; training loss {number(ef.loss)} against {number(sgd.loss)}.",
            table,
            about,
        ),
        Statement(
            "blocks-alone",
            "Random blocks without memory (rbSGD) are far worse than EFSGD (by five points).",
            [_far_below(found[name], ef) for found in (best, same) for name in low if name in found],
            "; ".join(
                f"{name}: {_percent(best[name])} with its best step"
                + (f", {_percent(same[name])} with SGD's" if name in same else "")
                for name in low
            )
            + f"; EFSGD {_percent(ef)}.",
            table,
            (*about[:1], without),
            {f"{name}, SGD's step": _held_out(same[name]) for name in low if name in same},
        ),
        *(
            Statement(
                id,
                f"ConEF that saves 60 and 90 % of the memory loses little, {text} (one point).",
                close(names),
                f"{percents(names)}; EFSGD {_percent(ef)}.",
                table,
                (*about, *thumb),
                {name: _held_out(best[name]) for name in (*names, EF) if name in best},
            )
            for id, text, names in (
                ("fixed-sketch", "as in the authors' code, one fixed linear sketch", fixed_ones),
                ("fresh-sketch", "as the theory reads it, a fresh sketch in every step", fresh_ones),
            )
        ),
        Statement(
            "fixed-above-none",
            "A fixed sketch is better than no memory.",
            [below(best[name].cost, none.cost) for name in fixed_ones if name in best],
            "; ".join(f"{name}: {_spread(best[name])}" for name in fixed_ones if name in best)
            + f"; {none.method}: {_spread(none)}. In the talk, with 90 % less communication, ConEF is 5.4 to 13.1 "
            "points above rbSGD on CIFAR-10.",
            OURS,
            about,
            {"without memory": _held_out(none)},
        ),
        Statement(
            "kappa-below-one",
            "A memory with kappa < 1 trains as EFSGD does (within one point).",
            close(kept),
            kappas(kept),
            OURS,
            ("conef/slide-stochastic-quantization-as-error",) if topics and talk else (),
        ),
        Statement(
            "kappa-above-one",
            "A memory with kappa >= 1 diverges.",
            [diverges(best[name].cost) for name in above],
            f"{kappas(above)} Where the bound of theta is loose, it need not.",
            OURS,
            values={name: chosen[name].kappa for name in above},
        ),
        Statement(
            "order",
            f"The accuracies are in {whose}: SGD, ConEF 60 %, EFSGD, ConEF 90 %, rbSGD.",
            in_order,
            f"{in_order.count(HOLDS)} of {len(in_order)} neighbours are: "
            + ", ".join(f"{name} {_spread(best[name])}" for name in order)
            + ".",
            table,
            about,
        ),
        Statement(
            "memory-saved",
            "A sketch of 40 and 10 % of d saves 60 and 90 % of the memory.",
            [abs(found - saving) <= 0.005 for saving, found in saved.items()],
            ", ".join(f"{100 * found:.1f} %" for found in saved.values())
            + f" of EFSGD's {ef.memory:,} bytes. In the talk 65 and 91 % of the buffer for ResNet18, 62 and 83 % for "
            "WideResNet.",
            bears_on=memory if topics else (),
            values={f"target {100 * saving:g} %": 100 * found for saving, found in saved.items()},
        ),
        *(
            Statement(
                "unbiased-loses",
                "Unbiased blocks without memory lose accuracy against SGD.",
                [below(sgd.cost, best[name].cost)],
                f"{_spread(best[name])} against {_spread(sgd)}.",
                table,
                ("conef/slide-unbiased-compressors-enlarge",),
            )
            for name in low[1:]
        ),
    ]


def _far_below(row: Outcome, ef: Outcome) -> str:
    """Whether a method is five points below EFSGD; one with another step than its best has the first seed alone."""
    if row.accuracy.size == 1 and row.success:
        return judged([row.accuracy[0] <= ef.accuracy[0] - FAR])
    return at_most(ef.cost, row.cost, -FAR)


def sweep_statement(rows) -> Statement:
    """Whether the loss of a compressed memory against error feedback falls with the dimension."""
    names = [name for name in dict.fromkeys(row.method for row in rows) if name != EF]
    points = {name: losses(rows, name) for name in names}
    texts = {
        name: ", ".join(f"{100 * lost.mean():.1f} ± {100 * lost.std():.1f} (d = {d:,})" for d, lost in mine)
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


def _cells(rows, chosen) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = []
    ranked = {m: best_outcomes([row for row in rows if row.momentum == m]) for m in sorted({r.momentum for r in rows})}
    for (momentum, best), name in itertools.product(ranked.items(), chosen):
        if name not in best:
            continue
        row, ef = best[name], best[EF]
        way = chosen[name]
        if not math.isnan(way.damping):
            theory = f"{number(way.damping)} < 2: stable" if way.damping < 2 else f"{number(way.damping)}: unstable"
        elif math.isnan(way.kappa):
            theory = "-"
        else:
            theory = f"kappa = {number(way.kappa)}{': bounded' if way.kappa < 1 else ''}"
        table.append(
            line(
                f"{name} | {momentum:g} | {row.step:g}{_end(row, rows)} | {_spread(row)} | {number(row.loss)} | "
                f"{row.rounds} | {seconds(row.seconds)} | {bits(row.bits)} | {row.memory:,} | "
                f"{100 * (1 - row.memory / ef.memory):.1f} | {theory}"
            )
        )
    return table


def _end(row: Outcome, rows) -> str:
    """A star if the step is the shortest or the longest of those tried."""
    tried = [one.step for one in rows if (one.method, one.momentum) == (row.method, row.momentum)]
    return "*" if row.step in (min(tried), max(tried)) else ""


def draw(rows, chosen, swept):
    """Accuracy against memory; by momentum; by step size; and, with a sweep, the loss of accuracy against d."""
    every, momenta = rows, sorted({row.momentum for row in rows})
    last = momenta[-1]
    rows = [row for row in rows if row.momentum == last]
    best = best_outcomes(rows)
    families = (
        ("without memory", "0.35", "s"),
        ("EFSGD", "k", "*"),
        ("fresh sketch", "#D55E00", "x"),
        ("fixed sketch", "#0072B2", "o"),
        ("quantized", "#009E73", "D"),
    )

    def family(name):
        if name == EF:
            return families[1]
        if best[name].memory == 0:
            return families[0]
        return families[2] if "fresh" in name else families[3] if "fixed" in name else families[4]

    shown = (SGD, BLOCK, UNBIASED, EF, fixed(0.6), fixed(0.9), QUANTIZED)
    with canvas(1, 4 if swept else 3, 1.0 * COLUMN) as (figure, grid):
        held = [row.accuracy.mean() for row in best.values() if row.success]
        floor = min(held) - 0.25 * (max(held) - min(held)) - 0.003
        axes, labelled = grid[0, 0], set()
        for name, row in best.items():
            label, colour, marker = family(name)
            y = 100 * (row.accuracy.mean() if row.success else floor)
            axes.errorbar(
                row.memory / best[EF].memory,
                y,
                yerr=100 * row.accuracy.std(),
                color=colour,
                marker=marker,
                linestyle="",
                markerfacecolor="none",
                elinewidth=0.7,
                label=None if label in labelled else label,
            )
            labelled.add(label)
        if any(not row.success for row in best.values()):
            axes.text(
                0.97, 100 * floor, "diverged", ha="right", va="bottom", fontsize=6, transform=axes.get_yaxis_transform()
            )
        axes.set(
            xlabel="memory over that of EFSGD", ylabel="held-out accuracy, %", title=f"best steps, momentum {last:g}"
        )
        axes, colours = grid[0, 1], {}
        for name, marker in zip(shown, "sPXov^D", strict=True):
            mine = [best_outcomes([r for r in every if r.method == name and r.momentum == m])[name] for m in momenta]
            mine = [row for row in mine if row.success]
            axes.errorbar(
                [row.momentum for row in mine],
                [100 * row.accuracy.mean() for row in mine],
                yerr=[100 * row.accuracy.std() for row in mine],
                marker=marker,
                markerfacecolor="none",
                linewidth=0.8,
                elinewidth=0.7,
            )
        axes.set(xlabel="momentum", title="by momentum")
        axes.set_xticks(momenta)
        axes = grid[0, 2]
        for name, marker in zip(shown, "sPXov^D", strict=True):
            mine = [row for row in rows if row.method == name and row.success]
            (line,) = axes.plot(
                [row.step for row in mine],
                [100 * row.accuracy.mean() for row in mine],
                marker=marker,
                markerfacecolor="none",
                linewidth=0.8,
                label=name,
            )
            colours[name] = line.get_color()
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 100 * max(held) - 20))  # accuracies further below are not shown
        axes.set_xscale("log")
        grid_steps = sorted({row.step for row in rows if row.method in shown and row.success})
        axes.set_xticks(grid_steps, [f"{step:g}" for step in grid_steps])
        axes.minorticks_off()
        axes.set(xlabel=r"step size, times $(1-m)/L$", title="by step size")
        if swept:
            axes = grid[0, 3]
            for name, marker in zip(SWEPT[1:], "v^", strict=True):
                points = [(d, lost) for d, lost in losses(swept, name) if np.isfinite(lost).all()]
                axes.errorbar(
                    [d for d, _ in points],
                    [100 * lost.mean() for _, lost in points],
                    yerr=[100 * lost.std() for _, lost in points],
                    marker=marker,
                    markerfacecolor="none",
                    linewidth=0.8,
                    elinewidth=0.7,
                    color=colours[name],
                    label=name,
                )
            axes.axhline(0.0, color="0.7", linewidth=0.6, marker="", linestyle="-")
            axes.set_xscale("log")
            dimensions = sorted({row.d for row in swept})
            axes.set_xticks(dimensions, [f"{n:,}" for n in dimensions], fontsize=6)
            axes.minorticks_off()
            axes.set(xlabel="d", ylabel="points lost against EFSGD", title="sweep over d")
        grid[0, 0].legend(fontsize=6)
        figure.legend(*grid[0, 2].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=6)
    return figure


def report(rows, swept, chosen, size: Size, options: Options) -> Study:
    """The study of these outcomes: of the ``chosen`` methods, and of the sweep over the dimension if there was one."""
    name, d = size.name, size.columns * size.classes
    every = ways(d, options.share)
    chosen = {method: every[method] for method in chosen}
    head: tuple[str, ...]
    head = (
        "method",
        "momentum",
        "step",
        "held out, %",
        "training loss",
        "rounds",
        "seconds",
        "payload",
        "memory, bytes",
        "saved, %",
        "theory",
    )
    tables = [
        Table(f"{name}: {100 * (1 - options.share):.3g} % less communication, best step", head, _cells(rows, chosen))
    ]
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
        f"{BUCKET}. kappa = (1 + theta)(1 - k/d) with the worst-case theta. Seconds, by the clock and rough, are "
        "those of one run with all workers in one process; saved is relative to EFSGD's float32 memory."
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
        lambda: draw(rows, chosen, swept),
        "Held-out accuracy against memory over that of EFSGD, for methods without memory, sketched and quantized "
        "memories; accuracy by step size" + ("; points lost against EFSGD over the dimension" if swept else ""),
    )
