"""Tables, figure and text of the study of gossip."""

from __future__ import annotations

import math

import numpy as np

from ...plots.figure_style import colours
from ...plots.text import number
from ..shared.panels import canvas
from ..shared.report import Study, Table
from .gossip import (
    ALL_REDUCE,
    CHOCO,
    CLOSE,
    DCD,
    FULL,
    METHODS,
    PLAIN,
    PUBLISHED,
    SHOWN,
    SHUFFLED,
    SORTED,
    WORSE,
    dcd_limit,
    statements,
    told,
)


def published_table(name: str, swept) -> Table:
    """The sweep: the published accuracies, and ours, f - f*."""
    here = [row for row in swept if row.problem == name]
    at = {(row.compressor, row.method): row for row in here}
    width = here[0].workers
    head = (
        "compressor",
        *(f"published: {m}" for m in METHODS),
        "bits a coordinate",
        "omega / limit",
        *(f"f - f*: {m}" for m in METHODS),
    )

    def ours(compressor: str, methods) -> list[str]:
        found = [at.get((compressor, method)) for method in methods]
        return ["" if row is None else told(row.loss) for row in found]

    lines = [
        (
            f"full precision (published: all-reduce, {ALL_REDUCE:.2f})",
            "",
            "",
            "",
            "32",
            "",
            *ours(PLAIN, (FULL, "", CHOCO)),
        )
    ]
    for c, accuracies in PUBLISHED.items():
        theirs = [accuracies.get(method, math.nan) for method in METHODS]
        told_there = ["" if math.isnan(a) else "diverges" if math.isinf(a) else f"{a:.2f}" for a in theirs]
        some = next((at[c, method] for method in METHODS if (c, method) in at), None)
        error = at[c, DCD].omega if (c, DCD) in at else math.nan
        sent = "" if some is None else number(some.sent)
        lines.append((c, *told_there, sent, number(error / dcd_limit("ring", width)), *ours(c, METHODS)))
    return Table(
        f"{name}: the sweep of Table 1, ring of {width}, shuffled shards; DCD in full precision is D-PSGD", head, lines
    )


def cells_table(name: str, shards: str, rows, share: float, ends: tuple[float, float]) -> Table:
    """F - f* on every graph, and what else was measured on the last ring; ``ends`` of its grid of steps get a star."""
    here = [row for row in rows if (row.problem, row.shards) == (name, shards)]
    places = list(dict.fromkeys((row.graph, row.workers) for row in here))
    last = next(place for place in reversed(places) if place[0] == "ring")
    at = {(row.graph, row.workers, row.method, row.compressor): row for row in here}
    lines = []
    for method, c in dict.fromkeys((row.method, row.compressor) for row in here):
        losses = [at[*place, method, c] for place in places]
        row = at[*last, method, c]
        spread = [
            f"{told(r.loss)} ± {number(r.spread)}" if r.spread and not r.diverged else told(r.loss) for r in losses
        ]
        gamma = "" if math.isnan(row.gamma) else f"; {number(row.gamma)}"
        kbit = "-" if math.isinf(row.bits) else f"{row.bits / 1e3:,.0f}"
        step = f"{number(row.step)}{'' if ends[0] < row.step < ends[1] else '*'}{gamma}"
        more = ("-", "-", "-") if row.diverged else (number(row.consensus), kbit, step)
        lines.append((f"{method}, {c}", *spread, *more))
    where = " ".join(map(str, last))
    more_heads = f"{where}: mean square distance", f"kbit received to {100 * share:g} %", "step · L; gamma"
    head = ("method", *(f"{graph} {n}" for graph, n in places), *more_heads)
    return Table(f"{name}, {shards} shards: f - f* at the end, and more on the {last[0]} of {last[1]}", head, lines)


def draw(curves, rows, sizes, share: float):
    """Loss against rounds and bits, and consensus against rounds: a row for each problem and kind of shards."""
    places = list(dict.fromkeys((c.problem, c.graph, c.workers, c.shards) for c in curves))
    start = {size.problem: size.start for size in sizes}
    looks = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"), ("-", "v"), ("--", "P"), ("-.", "X"), (":", "*"))
    with canvas(len(places), 3, 0.9 + 1.75 * len(places)) as (figure, grid):
        for panels, place in zip(grid, places, strict=True):
            here = {(c.method, c.compressor): c for c in curves if c[:4] == place}
            ceiling, top, lost = 3.0 * start[place[0]], 0.0, []
            for k, shown in enumerate(SHOWN):
                if shown not in here:
                    continue
                c = here[shown]
                gap, apart = np.asarray(c.gap, float), np.asarray(c.apart, float)
                ended = next(row.diverged for row in rows if row[:6] == c[:6])
                label = f"{shown[0]}, {shown[1]}"
                look: dict = {"color": colours()[k], "linestyle": looks[k][0], "marker": looks[k][1]}
                look |= {"markersize": 2.5, "markevery": 5, "zorder": 2 + k}
                top = max(top, 0.0 if ended else float(apart.max()))
                places_of = ((panels[0], c.rounds, gap), (panels[1], c.bits / 1e6, gap), (panels[2], c.rounds, apart))
                for axes, x, height in places_of:
                    with np.errstate(invalid="ignore"):
                        middle = height.mean(axis=0)
                    seen = np.isfinite(middle) & (middle > 0) & (x > 0 if axes is panels[1] else x >= 0)
                    if axes is not panels[2]:
                        middle = np.minimum(middle, ceiling)
                    axes.plot(x[seen], middle[seen], label=label if axes is panels[0] else None, **look)
                    if not ended:
                        low, high = height[:, seen].min(axis=0), height[:, seen].max(axis=0)
                        axes.fill_between(x[seen], low, high, color=look["color"], alpha=0.2, linewidth=0)
                if ended:
                    lost.append(label)
            if lost:
                told_here = "diverge: " + "\n".join(lost)
                panels[0].text(0.99, 0.985, told_here, transform=panels[0].transAxes, ha="right", va="top", fontsize=6)
            row = next((r for r in rows if r[:4] == place and r.method == FULL), None)
            if row is not None and not math.isnan(row.expected):
                panels[2].axhline(
                    row.expected, color="black", linewidth=0.8, linestyle=(0, (6, 2)), label="D-PSGD, for quadratics"
                )
            panels[0].axhline(share * start[place[0]], color="0.6", linewidth=0.7, zorder=0)
            panels[1].axhline(share * start[place[0]], color="0.6", linewidth=0.7, zorder=0)
            title = f"{'RCV1' if 'rcv1' in place[0] else place[0]}, {place[3]}, {place[1]} of {place[2]}"
            panels[0].set(ylabel=r"$f-f^*$", xlabel="rounds", yscale="log", title=title)
            panels[1].set(xlabel="payload received by a worker, Mbit", xscale="log", yscale="log", ylabel=r"$f-f^*$")
            panels[2].set(xlabel="rounds", yscale="log", ylabel="mean square distance")
            for axes in panels[:2]:
                axes.set_ylim(top=(20.0 if lost else 1.5) * start[place[0]])
            panels[2].set_ylim(top=10.0 * max(top, 0.0 if row is None or math.isnan(row.expected) else row.expected))
        handles: list = []
        labels: list[str] = []
        for panel in (grid[0, 0], grid[0, 2]):
            more = panel.get_legend_handles_labels()
            handles, labels = handles + more[0], labels + more[1]
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def make_report(rows, curves, swept, sizes, graphs, options, multiples, gammas, share: float) -> Study:
    """The study of these runs."""
    swept_names = list(dict.fromkeys(row.problem for row in swept))
    tables = [published_table(name, swept) for name in swept_names]
    last = max(row.workers for row in rows)
    for size in sizes:
        theirs = size.L * math.sqrt(last / (options.rounds + 1.0))  # D-PSGD's is between the others
        ends = min(*multiples, theirs), max(*multiples, theirs)
        tables += [cells_table(size.problem, shards, rows, share, ends) for shards in (SHUFFLED, SORTED)]
    sets = "; ".join(f"{s.problem}: n = {s.n:,}, d = {s.d:,}, l2 = 1/n, f(0) - f* = {number(s.start)}" for s in sizes)
    gaps = ", ".join(f"{kind} {n}: {number(gap)}" for kind, n, gap in graphs)
    setting = (
        f"Logistic regression. {sets}. Of the text only the most frequent words are used, so that the study takes"
        " minutes; rows are shuffled, and some are left out, so that all workers have equally many. A worker averages"
        f" {options.batch} gradients in a round; there are {options.rounds} rounds and {options.seeds} seeds. Shuffled"
        " shards are random rows; sorted ones are consecutive rows sorted by label, so that nearly every worker has a"
        f" single label. Spectral gaps: {gaps}. Every method has the best constant step out of the same grid, chosen"
        " with one seed by a search that starts at 1/L and stops at the first worse step:"
        f" {', '.join(f'{m:g}' for m in multiples)} over L, 1/(2L + sigma sqrt(T/N)) of"
        " D-PSGD's theorem, from memory, and sqrt(N/(T + 1)) of CHOCO's (* is the shortest or"
        " longest of them: another might be better). CHOCO's gamma is chosen with"
        f" it, out of {', '.join(f'{g:g}' for g in gammas)}, its theorem's value and the best for random"
        " sparsification. CHOCO gets unbiased quantizers divided by 1 + omega; DCD and ECD get rand-k without bias; the"
        " theorems of DCD and ECD do not cover signs and top-k. f - f* is that of the mean model, the mean over the"
        " last quarter of the rounds. ± is the standard deviation over the seeds, and with"
        " it a verdict on losses is by the interval of the difference at equal seeds. A cell is called divergent if"
        " every"
        " step that was tried"
        f" diverges with the first seed, or any of the {options.seeds} seeds diverges at the chosen step: f exceeds ten"
        " times f(0), or ends above f(0), or the models drift apart (the square distances end above 100 times their"
        " median). Bits exclude message headers; a message goes to every neighbour. kbit: what a worker receives until"
        f" f - f* is at most {100 * share:g} % of f(0) - f*. Consensus, or mean square distance: the mean"
        " square distance of the models from their mean; the formulas for quadratics (dpsgd_consensus +"
        " dpsgd_disagreement) take l2 for the curvature, and noise and shard gradients at x*. The published numbers are"
        " test accuracies of a deep network, ours are convex losses: only orderings can be compared, and a verdict says"
        " nothing about the authors' runs. Published accuracies within half a point are read as alike. Alike, here:"
        f" within a factor of {CLOSE:g} of f - f*; far worse: {WORSE:g} times."
        " omega / limit: the compressor's worst relative error over the threshold of DCD without gradients."
    )
    return Study(
        "gossip",
        "Compressed gossip on rings and tori",
        setting,
        {"rows": rows, "swept": swept},
        tables,
        statements(rows, swept),
        lambda: draw(curves, rows, sizes, share),
        "A row of panels for each problem and kind of shards, on the ring: f - f* against rounds, against the payload"
        " that a worker receives, and the mean square distance of the models against rounds with a line of the"
        " formulas for quadratics; D-PSGD, ECD, DCD and CHOCO; runs that diverge leave the picture at the top",
    )
