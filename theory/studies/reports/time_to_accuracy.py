"""Statements, tables and the figure of the study of time to accuracy."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ... import bounds
from ...cluster import NETWORKS
from ...plots.figure_style import COLUMN, colours
from ...plots.text import number
from ..shared.entry_keys import slug
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement, faster
from ..time_to_accuracy import CHOSEN_BY, CLOSE, FULL, MANY, Options, curves, fit_steps, methods, step_times

PAPER = "the NUQSGD paper, of networks on ImageNet"


def statements(rows, times, speed, n: int, options: Options) -> list[Statement]:
    """Verdicts on the lecture's statements, on one of the NUQSGD paper and on ours; those based on the model say so."""
    most, lecture, abstract = options.workers[-1], "lecture/slide-", "nuqsgd/abstract-faster-end-to-end-than-"
    at = {(t.network, t.method, t.workers, t.batch): t for t in times}
    networks = list(dict.fromkeys(t.network for t in times))
    share = {name: at[name, FULL, most, options.batch] for name in networks}
    shares = {name: t.exchange / t.step for name, t in share.items()}
    in_exchange = ", ".join(f"{name} {part:.0%}" for name, part in shares.items())
    few, many = options.batches[0], options.batches[-1]
    pass_times = {
        name: {b: at[name, FULL, most, b].step * n / (most * b) for b in options.batches} for name in networks
    }
    shorter = (
        f"{k}: {number(t[few])} s a pass with B = {few}, {number(t[many])} s with {many}" for k, t in pass_times.items()
    )
    passes = {row.batch: row.passes for row in rows if (row.method, row.workers) == (FULL, most)}
    by_batch = ", ".join(f"B = {b}: {number(passes[b])}" for b in options.batches)
    said = [
        Statement(
            "network-takes-most",
            f"with {most} machines the network takes most of the time of full-precision SGD.",
            [faster(t.gradient, t.exchange) for t in share.values()],
            f"Share of a step in the exchange (model): {in_exchange} with batches of {options.batch}. The lecture "
            'quotes "on more than 8 machines".',
            bears_on=(f"{lecture}why-so-slow-more-than-8",),
            values=shares,
        ),
        Statement(
            "shorter-pass",
            "a bigger batch means less communication, hence a shorter pass.",
            [all(x > y for x, y in itertools.pairwise(t.values())) for t in pass_times.values()],
            f"{'; '.join(shorter)} (model).",
            bears_on=(f"{lecture}a-bigger-batch-means-less",),
            values={name: {f"B = {b}": seconds for b, seconds in t.items()} for name, t in pass_times.items()},
        ),
        Statement(
            "more-passes",
            "a bigger batch means more passes.",
            [passes[many] > CLOSE * min(passes.values())] if all(map(math.isfinite, passes.values())) else [],
            f"{by_batch} passes, {most} workers, measured.",
            bears_on=(f"{lecture}a-large-batch-needs-more-passes",),
            values={f"B = {b}": found for b, found in passes.items()},
        ),
    ]

    def sooner(id, text, mine, theirs, show, source, about):
        pairs = {name: [at[name, m, most, options.batch].total for m in (mine, theirs)] for name in networks}
        ratios = {name: b / a for name, (a, b) in pairs.items()}
        trials = [faster(*pair) for pair in pairs.values()]
        said.append(Statement(id, text, trials, show(pairs, ratios), source, about, ratios))

    def gains(pairs, ratios):
        times = ", ".join(f"{name} {number(ratio)}" for name, ratio in ratios.items())
        return f"Times as fast: {times} (measured steps, gradients and coding; the network is a model)."

    def seconds(pairs, ratios):
        return "; ".join(f"{name} {number(a)} s against {number(b)} s" for name, (a, b) in pairs.items()) + (
            " (the network is a model)."
        )

    idle, uniform, halving = "conef/slide-efficient-communication-reduces-idle", "QSGD, 4 bits", "NUQSGD, 4 bits"
    known = dict.fromkeys(row.method for row in rows)
    for method in (m for m in known if m != FULL):
        nuqsgd = method.startswith("NUQSGD")
        about = f"{abstract}data-parallel-sgd" if nuqsgd else f"{lecture}performance-of-qsgd-compute"
        text = f"{method}: faster to the accuracy than full precision, {most} workers."
        sooner(f"{slug(method)}-sooner", text, method, FULL, gains, PAPER if nuqsgd else OURS, (about, idle))
    if {uniform, halving} <= set(known):
        text = f"{halving}: faster to the accuracy than {uniform}, {most} workers."
        sooner("nuqsgd-below-qsgd", text, halving, uniform, seconds, PAPER, (f"{abstract}qsgd",))
    best = {c.network: c.workers[int(np.argmax(c.speed_up))] for c in speed if c.method == FULL}
    fastest = ", ".join(f"{name}: {best[name]}" for name in networks)
    said.append(
        Statement(
            "more-machines",
            f"more than {most} machines do not pay.",
            [best[name] <= most for name in networks],
            f"Fastest number of workers with full precision (model): {fastest}, of those up to {MANY[-1]}.",
            OURS,
            (f"{lecture}why-so-slow-more-than-8", f"{lecture}the-100x-worse-curve"),
            best,
        )
    )
    return said


def draw(times, speed, rows, options: Options):
    """Bars of a step, speed-up, utilisation against the batch, and time to accuracy against the batch.

    Whiskers and bands are the fewest and the most steps of a seed.
    """
    networks, names = list(dict.fromkeys(t.network for t in times)), list(dict.fromkeys(t.method for t in times))
    slow, most = networks[0], options.workers[-1]
    seen: dict = {(row.method, row.workers, row.batch): row for row in rows}
    cycle = colours()
    parts = (("gradient", cycle[4], None), ("coding", cycle[3], ".."), ("exchange", cycle[7], "//"))
    with canvas(2, 2, 1.75 * COLUMN) as (figure, grid):
        bars, gain, use, batch = grid.ravel()
        width, highest = 0.26, 0.0
        for j, p in enumerate(options.workers):
            for i, name in enumerate(names):
                (t,) = [t for t in times if (t.network, t.method, t.workers, t.batch) == (slow, name, p, options.batch)]
                if not math.isfinite(t.total):
                    continue
                x, bottom = j + (i - 1) * width, 0.0
                for part, colour, hatch in parts:
                    high = t.steps * getattr(t, part)
                    label = (part if part != "exchange" else "exchange (model)") if i == j == 0 else None
                    bars.bar(
                        x,
                        high,
                        0.85 * width,
                        bottom=bottom,
                        color=colour,
                        label=label,
                        hatch=hatch,
                        edgecolor="white",
                        linewidth=0.3,
                    )
                    bottom += high
                row = seen[name, p, options.batch]
                ends = [[(t.steps - row.fewest) * t.step], [(row.most - t.steps) * t.step]]
                bars.errorbar(x, bottom, yerr=ends, color="black", linestyle="", marker="", elinewidth=0.7, capsize=1.5)
                highest = max(highest, row.most * t.step)
                if j == len(options.workers) - 1:
                    bars.annotate(
                        name.split(",")[0],
                        (x, row.most * t.step),
                        rotation=90,
                        ha="center",
                        va="bottom",
                        fontsize=6,
                        xytext=(0, 2),
                        textcoords="offset points",
                    )
        bars.set_xticks(range(len(options.workers)), [str(p) for p in options.workers])
        bars.set_ylim(0.0, 1.5 * highest)  # the upper third is for the legend
        bars.set(
            xlabel=f"workers (left to right: {', '.join(n.split(',')[0] for n in names)})",
            ylabel=f"time to accuracy {options.accuracy:g}, s",
            title=f"{slow}, B = {options.batch}",
        )
        bars.legend(loc="upper left")
        for curve in (c for c in speed if c.network == slow):
            w, s = np.array(curve.workers), np.array(curve.speed_up)
            inside, beyond = w <= curve.model_from, w >= curve.model_from
            (line,) = gain.plot(w[inside], s[inside], linestyle="-", label=curve.method, zorder=3)
            gain.plot(
                w[beyond],
                s[beyond],
                linestyle=(0, (1, 1)),
                markerfacecolor="white",
                color=line.get_color(),
                marker=line.get_marker(),
            )
        w = np.array([1, *MANY])
        gain.plot(w, w, color="0.5", linestyle=(0, (4, 2)), marker="", label="ideal")
        gain.plot(
            [], [], color="0.4", linestyle=(0, (1, 1)), marker="o", markerfacecolor="white", label="steps fitted, too"
        )
        gain.set(
            xscale="log",
            yscale="log",
            xlabel="workers",
            ylabel="speed-up over one worker of SGD",
            title=f"{slow} (model)",
        )
        gain.set_xscale("log", base=2)
        gain.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
        gain.legend()
        for i, name in enumerate(names):
            for k, network in enumerate(networks[:2]):
                mine = sorted(
                    (t for t in times if (t.network, t.method, t.workers) == (network, name, most)),
                    key=lambda t: t.batch,
                )
                look = {"linestyle": ("-", (0, (4, 2)))[k], "color": cycle[i], "marker": "os^"[i]}
                use.plot(
                    [t.batch for t in mine],
                    [t.gradient / t.step for t in mine],
                    **look,
                    label=f"{name.split(',')[0]}, {network}",
                )
                finite = [t for t in mine if math.isfinite(t.total)]
                batch.plot([t.batch for t in finite], [t.total for t in finite], **look)
                extremes = [seen[name, most, t.batch] for t in finite]
                batch.fill_between(
                    [t.batch for t in finite],
                    [row.fewest * t.step for row, t in zip(extremes, finite, strict=True)],
                    [row.most * t.step for row, t in zip(extremes, finite, strict=True)],
                    color=cycle[i],
                    alpha=0.2,
                    linewidth=0,
                )
        for axes in (use, batch):
            axes.set_xscale("log", base=2)
            axes.set_xticks(options.batches, [str(b) for b in options.batches])
            axes.set_xlabel(f"rows in a worker's batch, B ({most} workers)")
        use.set(ylabel="share of a step in gradients (model)", ylim=(0, 1))
        use.legend(fontsize=6, loc="upper left")
        batch.set(yscale="log", ylabel=f"time to accuracy {options.accuracy:g}, s (model)")
    return figure


def report(rows, coding: dict, options: Options, name: str, n: int, d: int) -> Study:
    """The study of these steps and seconds of coding, on ``name`` (n rows, d columns), with the networks' model."""
    ways = methods(d)
    times = step_times(rows, ways, coding, d, NETWORKS)
    speed = curves(rows, times, ways, coding, d, NETWORKS, options.batch)
    most = options.workers[-1]

    def milli(seconds):
        return number(1e3 * seconds)

    head = ("method", "N", "B", "step · L", "steps", "passes", "gradient, ms", "coding, ms", "message, bytes")
    cells: list[tuple[str, ...]] = []
    seen = {(t.method, t.workers, t.batch): t for t in times if t.network == next(iter(NETWORKS))}
    for row in rows:
        t = seen[row.method, row.workers, row.batch]
        spread = f"{row.steps:.0f} ({row.fewest:.0f} to {row.most:.0f})" if math.isfinite(row.steps) else "never"
        cells.append(
            line(
                f"{row.method} | {row.workers} | {row.batch} | {number(row.step)} | {spread} | "
                f"{number(row.passes)} | {milli(t.gradient)} | {milli(t.coding)} | {row.message_bytes:,.0f}"
            )
        )
    tables = [Table(f"Measured: {name.split(' (')[0]}, n = {n:,}, d = {d:,}", head, cells)]
    head = (
        "network (model)",
        "method",
        "N",
        "B",
        "exchange, ms",
        "a step, ms",
        "a pass, s",
        "passes",
        "to accuracy, s",
    )
    cells = []
    for t in times:
        if t.batch == options.batch:
            a_pass = t.step * n / (t.workers * t.batch)
            passes = t.steps * t.workers * t.batch / n
            cells.append(
                line(
                    f"{t.network} | {t.method} | {t.workers} | {t.batch} | {milli(t.exchange)} | {milli(t.step)} | "
                    f"{number(a_pass)} | {number(passes)} | {number(t.total)}"
                )
            )
    tables.append(Table(f"Time of a pass times passes, B = {options.batch}: the exchange is a model", head, cells))
    cells = []
    for network in NETWORKS:
        for method in ways:
            a, b, worst = fit_steps([row for row in rows if row.method == method])
            t = next(t for t in times if (t.network, t.method, t.workers) == (network, method, most))
            rest = t.coding + t.exchange
            best = bounds.best_batch(a, b, row=t.gradient / t.batch, rest=rest, workers=most) if a > 0 else math.inf
            mine = [t for t in times if (t.network, t.method, t.workers) == (network, method, most)]
            fastest = min(mine, key=lambda t: t.total)
            cells.append(
                (
                    network,
                    method,
                    number(a),
                    number(b),
                    f"{worst:.0%}" if worst == worst else "-",
                    number(best),
                    str(fastest.batch),
                )
            )
    tables.append(
        Table(
            f"Steps = a + b/(N B), and the batch that is fastest with {most} workers (model)",
            ("network", "method", "a", "b", "largest error", "B* = sqrt(b tau/(a N c))", "fastest of those run"),
            cells,
        )
    )
    assumed = "; ".join(
        f"{title}: {1e6 * net.alpha:g} us a message, {net.beta * 1e9:g} ns a byte" for title, net in NETWORKS.items()
    )
    setting = (
        f"Logistic regression, l2 = 1/n, until f - f* is at most {options.accuracy:g} (f(0) - f*), with the constant "
        f"step size, a power of two over L, that takes the fewest steps in the mean of {CHOSEN_BY} other runs; means "
        f"over {options.seeds} seed{'s' * (options.seeds > 1)}. B is the batch of one worker. Steps, the seconds of a "
        "row's gradient and those of coding (encode once, decode the messages of all; seconds a coordinate of a long "
        "vector) are measured on one core of this machine; with one worker nothing is coded and nothing sent. The "
        "exchange is a model, alpha + beta m for a message of m bytes and gamma for additions, with assumed numbers "
        f"({assumed}; 4 Gbyte a second of additions): full precision is reduced, the others are gathered. Nothing "
        f"overlaps, nobody is late. Beyond {most} workers the steps are extrapolated by a + b/(N B), the form that the "
        "theory of averaged gradients has."
    )
    return Study(
        "time-to-accuracy",
        "Why is distributed SGD slow?",
        setting,
        {"steps": rows, "times": times, "curves": speed},
        tables,
        statements(rows, times, speed, n, options),
        lambda: draw(times, speed, rows, options),
        "Bars of gradient, coding and modelled exchange until one accuracy against the number of workers; speed-up "
        "over one worker, with the model's continuation; share of a step in gradients, and time to the accuracy, "
        "against the batch",
    )
