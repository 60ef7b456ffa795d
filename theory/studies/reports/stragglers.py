"""Statements, tables and the figure of the study of stragglers."""

from __future__ import annotations

import math

from ...plots.figure_style import COLUMN
from ...plots.text import number
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Statement, faster
from ..stragglers import ACCURACY, LEVEL, SIGMA2, START, STEP, TIMES, WORKERS, D, mean_of

OVERHEAD = 0.25  # share by which a round with injected delays may be longer than its clock

ABOUT = ("lecture/slide-open-problem-stragglers",)


def delay_statements(rows) -> list[Statement]:
    """Verdicts on rounds with injected delays."""
    if not rows:
        return []
    ranks, over = rows[0].ranks, [row.measured / row.clock - 1.0 for row in rows]
    pairs = [[row for row in rows if row.compressor == name] for name in dict.fromkeys(row.compressor for row in rows)]
    where = "In one process" if ranks == 1 else f"On {ranks} ranks"
    return [
        Statement(
            "delays-as-the-clocks-say",
            f"with injected delays a round takes as long as the clocks say, up to {OVERHEAD:.0%} for everything else.",
            [0.0 <= share <= OVERHEAD for share in over],
            f"{where}: at most {max(over):.0%} longer in {len(rows)} settings.",
            OURS,
            ABOUT,
            {"most": max(over)},
        ),
        Statement(
            "fewer-by-the-real-clock",
            "waiting for fewer is faster by the real clock, with compressors, too.",
            [faster(few.measured, last.measured) for few, *_, last in pairs],
            "; ".join(
                f"{few.compressor}: k = {few.k} {number(few.measured)} s, k = {last.k} {number(last.measured)} s"
                for few, *_, last in pairs
            )
            + ".",
            OURS,
            ABOUT,
        ),
    ]


def statements(orders, waits, clocks, bias) -> list[Statement]:
    """Verdicts on waiting for fewer workers, from the measurements."""
    inside = [abs(row.measured - row.predicted) <= row.half for row in orders if math.isfinite(row.half)]
    pays, paid, wins, won = [], [], [], []
    for name, _, exact, _ in waits:
        rows = {row.k: row for row in clocks if row.times == name}
        best = min(rows.values(), key=lambda row: row.seconds)
        pays.append(rows[exact].seconds <= best.seconds)
        took = f"{number(rows[exact].seconds)} s, k = {best.k} {number(best.seconds)} s"
        paid.append(f"{name}: k = {exact} takes {took}")
    for name in dict.fromkeys(row.times for row in clocks):
        rows = {row.k: row for row in clocks if row.times == name}
        best, everybody = min(rows.values(), key=lambda row: row.seconds), rows[WORKERS]
        wins.append(best.k < WORKERS)
        last = "infinite (the mean)" if math.isinf(everybody.predicted_seconds) else f"{number(everybody.seconds)} s"
        won.append(f"{name}: k = {best.k} takes {number(best.seconds)} s, all {last}")
    best_k = (f"{name}: k = {measured} measured, {exact} by the closed form" for name, measured, exact, _ in waits)
    plain, cured = bias
    made = (
        (
            "order-statistics",
            "the closed forms of order statistics give the time of a round.",
            inside,
            f"{sum(inside)} of {len(inside)} means are within their {LEVEL:.0%} intervals (about one in a hundred is "
            "expected outside; those of one law are of the same rounds).",
        ),
        (
            "best-k",
            "the measured k with the least time a gradient is that of the closed form, to within one.",
            [abs(measured - exact) <= 1 for _, measured, exact, _ in waits],
            f"{'; '.join(best_k)} (of {WORKERS}).",
        ),
        (
            "pays",
            "it pays to wait for the k with the least E X_(k)/k.",
            pays,
            f"By the wall clock until the squared distance is {ACCURACY:g}: {'; '.join(paid)}. That k supposes that k "
            "gradients save k times as many rounds, which they do not where the start must be forgotten, too.",
        ),
        ("everybody-is-slower", "waiting for everybody is slower than waiting for fewer.", wins, f"{'; '.join(won)}."),
        (
            "weights-lead-back",
            "with workers of unequal speed plain averaging leads elsewhere, and weights 1/(n pi_i) lead back.",
            [abs(plain.measured - plain.minimum) > plain.half, abs(cured.measured - cured.minimum) <= cured.half],
            f"Minimum {plain.minimum:g}; plain {plain.measured:.3f} +- {plain.half:.3f} (closed form "
            f"{plain.predicted:.3f}); weighted {cured.measured:.3f} +- {cured.half:.3f}.",
        ),
    )
    return [Statement(*one, bears_on=ABOUT) for one in made]


def draw(orders, curves, bias):
    """Time of a round against k, error against the wall clock, and the limit with the fastest workers."""
    with canvas(1, 3, 0.85 * COLUMN) as (figure, grid):
        left, middle, right = grid[0]
        for j, (name, times) in enumerate(TIMES.items()):
            rows = [row for row in orders if row.times == name]
            ks = [k for k in range(1, WORKERS + 1) if math.isfinite(mean_of(times, WORKERS, k))]
            (line,) = left.plot(ks, [mean_of(times, WORKERS, k) for k in ks], marker="", label=name)
            finite = [row for row in rows if math.isfinite(row.predicted)]
            left.plot(
                [row.k for row in finite],
                [row.measured for row in finite],
                linestyle="",
                marker="os^"[j],
                color=line.get_color(),
                markerfacecolor="none",
            )
        left.set(xlabel=f"k of {WORKERS} workers", ylabel="time of a round, s (lines: closed form)", yscale="log")
        left.set_xticks([1, 4, 8, 12, 16])
        left.legend(fontsize=6, handlelength=2.0)
        for k, (seconds, distance, _) in curves.items():
            middle.plot(seconds, distance, marker="", label=f"k = {k}")
        middle.axhline(ACCURACY, color="0.5", linewidth=0.8, linestyle=(0, (1, 1)), marker="")
        middle.set(xlabel="wall clock, s", ylabel=r"$\mathrm{E}\,\|x_t-x^*\|^2$", yscale="log", title=next(iter(TIMES)))
        middle.legend(fontsize=6, handlelength=2.0)
        for y, row in enumerate(bias):
            right.errorbar(
                row.measured,
                y,
                xerr=row.half,
                marker="os"[y],
                linestyle="",
                markerfacecolor="none",
                color=("#D55E00", "#0072B2")[y],
                capsize=2,
            )
            right.plot(
                row.predicted,
                y,
                marker="|",
                markersize=12,
                linestyle="",
                color="black",
                label="closed form" if y == 0 else None,
            )
        right.axvline(bias[0].minimum, color="0.5", linestyle=(0, (4, 2)), linewidth=0.9, marker="", label="minimum")
        right.set_yticks([0, 1], ["1/k each", "1/(n pi)"])
        right.set(xlabel="where x settles", ylim=(-0.7, 2.9))
        right.legend(loc="upper left")
    return figure


def _or(value: float, word: str) -> str:
    return word if math.isinf(value) else number(value)


def report(orders, waits, clocks, drawn, bias, rounds: int, replicas: int, delays) -> Study:
    """The study of these times and distances; ``drawn`` are the curves of the first law of times, by k."""
    tables = [
        Table(
            "Mean of the k-th of 16 times, in seconds",
            ("times", "k", "measured", "+-", "closed form"),
            [
                (row.times, str(row.k), number(row.measured), number(row.half), _or(row.predicted, "infinite"))
                for row in orders
            ],
        ),
        Table(
            "The k with the least E X_(k)/k, of 16",
            ("times", "measured", "closed form", "kappa n"),
            [(name, str(measured), str(exact), number(limit)) for name, measured, exact, limit in waits],
        ),
        Table(
            f"Until the squared distance is {ACCURACY:g}, from {START:g}",
            ("times", "k", "rounds", "closed form", "seconds", "closed form"),
            [
                line(
                    f"{row.times} | {row.k} | {_or(row.rounds, 'never')} | {_or(row.predicted_rounds, 'never')} | "
                    f"{_or(row.seconds, 'never')} | {_or(row.predicted_seconds, 'infinite')}"
                )
                for row in clocks
            ],
        ),
        Table(
            "Where x settles, the fastest 2 of 5 workers with rates 1, 2, 4, 8, 8",
            ("weights", "measured", "+-", "closed form", "minimum"),
            [
                (row.weights, number(row.measured), number(row.half), number(row.predicted), number(row.minimum))
                for row in bias
            ],
        ),
    ]
    tables.append(
        Table(
            "Injected delays: real seconds beside those of the clocks",
            ("sent", "k", "ranks", "clocks, s", "real, s", "bits of a worker", "f"),
            [
                line(
                    f"{row.compressor} | {row.k} | {row.ranks} | {number(row.clock)} | {number(row.measured)} | "
                    f"{row.bits:,.0f} | {number(row.f)}"
                )
                for row in delays
            ],
        )
    )
    setting = (
        f"Clocks are simulated: {rounds:,} rounds of {WORKERS} workers with independent times, shifted exponential "
        "(s + Exp(mu)) or Pareto with the tail x^-a. A round ends when k of them are ready; the others stop. "
        f"Intervals are at {LEVEL:.0%}, and none is given where the variance is infinite; where the closed form is "
        "infinite the measured mean means nothing and grows with the number of rounds. The second table supposes that "
        f"k gradients save k times as many rounds. The wall clock is that of SGD with the step {STEP:g} on "
        f"(mu/2)||x||^2, d = {D}, noise of variance {SIGMA2:g}, a mean over {replicas} runs; the mean of k gradients "
        "has a k-th of the variance, which lowers the floor and not the rate, so that fewer workers pay here. The last "
        "table has one row of data for each worker, f_i = (x - b_i)^2/2, and workers of unequal rates: the fast ones "
        "count more often. Injected delays: the same clocks, slept in real time before each message, on logistic "
        f"regression with d = {D}; under mpirun the ranks sleep at the same time, and all know who is stopped when."
    )
    return Study(
        "stragglers",
        "Who waits for whom",
        setting,
        {"orders": orders, "clocks": clocks, "biased": bias, "delays": delays},
        tables,
        statements(orders, waits, clocks, bias) + delay_statements(delays),
        lambda: draw(orders, drawn, bias),
        "Left: time of a round against the number of workers waited for, marks on the closed forms. Middle: squared "
        "distance against the wall clock for several k. Right: where x settles with plain and with weighted averages",
    )
