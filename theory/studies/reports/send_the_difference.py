"""Statements, tables and the figure of the study of workers whose data differ."""

from __future__ import annotations

import math

import numpy as np

from ...plots.text import bits, number
from ..send_the_difference import (
    ALPHAS,
    BATCHES,
    GOAL,
    L2,
    LOCAL,
    LONGEST,
    NETWORK,
    SEARCHED,
    TIMES,
    Curve,
    Options,
    Outcome,
    Shards,
)
from ..shared.entry_keys import slug
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import HOLDS, OPEN, Compare, Statement, Trial, below, word

ALONE = "shuffled"
SHOWN = ("GD", "DCGD", "EF", "EF21", "DIANA", "MARINA, PermK", "ProxSkip", "local SGD")
DIFFERENCES = ("EF21", "DIANA", "MARINA, PermK", "ProxSkip")
ENDS, UP, BOTH, ROUNDS = (
    lambda row: row.gap,
    lambda row: row.up,
    lambda row: np.add(row.up, row.down),
    lambda row: row.rounds,
)
AFTER = "ends lower than"
PAIRS = (  # id, metric, the method that is said to be better, the others, text
    ("floor", ENDS, "DIANA", ("DCGD",), f"DIANA {AFTER} DCGD, with the same messages."),
    ("ef21-ef", ENDS, "EF21", ("EF",), f"EF21 {AFTER} error feedback, with the same top-k."),
    ("momentum-noise", ENDS, "EF21-SGDM, batches", ("EF21, batches",), f"With batches EF21-SGDM {AFTER} EF21."),
    ("momentum-exact", UP, "EF21", ("EF21-SGDM",), "With whole gradients EF21 sends fewer bits than EF21-SGDM."),
    ("marina-diana", UP, "MARINA", ("DIANA",), "MARINA sends fewer bits than DIANA, with the same rand-k."),
    ("perm-k", UP, "MARINA, PermK", ("MARINA",), "MARINA sends fewer bits with PermK than with rand-k."),
    ("dasha-marina", UP, "DASHA", ("MARINA",), "DASHA sends fewer bits than MARINA."),
    ("shared", UP, "MARINA", ("MARINA, shared rand-k",), "MARINA sends fewer bits if workers draw coordinates apart."),
    ("lazy", UP, "CLAG", ("EF21",), "Workers that are silent now and then (CLAG) send fewer bits than with EF21."),
    ("reduced", ENDS, "VR-MARINA, batches", ("EF21, batches",), f"With batches VR-MARINA {AFTER} EF21."),
    ("top-k-rand-k", UP, "EF21", ("DIANA",), "EF21 with top-k sends fewer bits than DIANA with rand-k."),
    ("alpha", UP, SEARCHED, ("DIANA",), "DIANA sends fewer bits with the best alpha than with its theorem's."),
    ("signs", ENDS, "EF21", ("Signum",), f"EF21 {AFTER} signs of momenta."),
    ("local", ENDS, "ProxSkip", ("local SGD",), f"ProxSkip {AFTER} local SGD."),
    ("rounds", ROUNDS, "ProxSkip", ("GD",), "ProxSkip communicates in fewer rounds than GD."),
    ("fewer-bits", UP, "", DIFFERENCES, "A worker sends fewer bits than with GD."),
    ("both-ways", BOTH, "", DIFFERENCES, "It sends and receives fewer bits than with GD's all-reduce."),
    ("down", BOTH, "EF21-BC", ("EF21",), "Sent and received together, EF21-BC takes fewer bits than EF21."),
)


def statements(rows: list[Outcome], shards: list[Shards]) -> list[Statement]:
    """Verdicts, each for every order of the rows and number of workers."""
    apart = {(one.order, one.workers): one.at_minimum for one in shards}
    (even, workers), said = next(((v, n) for (order, n), v in apart.items() if order == ALONE)), []
    sorted_ones = {order: v for (order, n), v in apart.items() if n == workers and order != ALONE}
    shown = {order: f"by {order}: {v:.3g} against {even:.3g}" for order, v in sorted_ones.items()}
    trials = [Trial(word(v > even), shown[order]) for order, v in sorted_ones.items()]
    said.append(Statement("differ", "Sorted shards differ more at x* than shuffled ones.", trials, source=OURS))
    for id, metric, better, others, text in PAIRS:
        pairs = [(one, "GD") for one in others] if not better else [(better, one) for one in others]
        compare = Compare(metric, pairs, below, ("order", "workers"), named=not better)
        said.append(Statement(id, text, compare(rows), source=OURS))
    grown = [(row.method, row.times >= 4.0) for row in rows if not math.isnan(row.predicted)]
    best = {name: [row.times for row in rows if row.method == name] for name, _ in grown}
    ranges = ", ".join(f"{name} {min(times):g} to {max(times):g}" for name, times in best.items())
    numbers = f"In {sum(longer for _, longer in grown)} of {len(grown)} cases; {ranges} times."
    text = "The best step is at least four times the theorem's."
    said.append(Statement("longer-steps", text, [longer for _, longer in grown], numbers, OURS))
    return [*said, *orders(rows)]


def orders(rows: list[Outcome]) -> list[Statement]:
    """Which theorem predicts who sends fewer bits: every pair of methods, and the pairs of each method."""
    cases: dict[tuple, list[Outcome]] = {}
    for row in rows:
        if not math.isnan(row.predicted):
            cases.setdefault((row.order, row.workers), []).append(row)
    pairs = [
        (a.method, b.method, below(a.up, b.up))
        for case in cases.values()
        for a in case
        for b in case
        if a.predicted < b.predicted
    ]
    found = []
    for name in ("", *dict.fromkeys(row.method for case in cases.values() for row in case)):
        mine = [verdict for *both, verdict in pairs if not name or name in both]
        numbers = f"In {mine.count(HOLDS)} of {len(mine)} pairs; undecided in {mine.count(OPEN)}."
        who = f"{name} or another method" if name else "one method or another"
        text = f"The theorems' rates say who sends fewer bits, {who}, each with its best step."
        found.append(Statement(slug(f"order {name}"), text, mine, numbers, OURS))
    return found


def _cell(values, show=number, lost="never") -> str:
    """Mean over the seeds that got there, and how many did not."""
    fine = [v for v in values if math.isfinite(v)]
    never = f" ({len(values) - len(fine)} of {len(values)} {lost})" if 0 < len(fine) < len(values) else ""
    return f"{show(float(np.mean(fine)))}{never}" if fine else lost


def least(rows: list[Outcome]) -> Table:
    """Who is the first, by each measure, of the methods that always got there."""
    body = []
    for order, n in dict.fromkeys((row.order, row.workers) for row in rows):
        here = [row for row in rows if (row.order, row.workers) == (order, n) and np.isfinite(row.up).all()]
        firsts = [min(here, key=lambda r: np.mean(cost(r))) for cost in (ROUNDS, UP, BOTH, lambda r: r.seconds)]
        costs = (_cell(f.rounds) for f in firsts[:1])
        sent = (_cell(firsts[1].up, bits), _cell(BOTH(firsts[2]), bits), _cell(firsts[3].seconds))
        body.append((order, str(n), *(f"{f.method}, {c}" for f, c in zip(firsts, (*costs, *sent), strict=True))))
    head = ("rows by", "workers", "rounds", "bits sent", "bits sent and received", f"seconds at {NETWORK}")
    return Table(f"Who is first at {GOAL:g} of f(0) - f*", head, body)


def alphas(rows: list[Outcome]) -> Table:
    """What a search for the rate of DIANA's shifts gains."""
    body = []
    by_name = {(row.order, row.workers, row.method): row for row in rows}
    for (order, workers, name), row in by_name.items():
        if name == SEARCHED:
            theirs = by_name[order, workers, "DIANA"]
            alpha = f"{row.alpha:g}{'*' if row.alpha in (ALPHAS[0], ALPHAS[-1]) else ''}"
            both = (f"{_cell(one.up, bits)} ({one.times:g})" for one in (row, theirs))
            body.append((order, str(workers), alpha, *both))
    head = ("rows by", "workers", "best alpha (1 + omega)", "bits sent with it (times)", "with alpha = 1/(1 + omega)")
    return Table("DIANA's shifts: the rate at which they learn, searched", head, body)


def report(rows, curves, shards, source: str, options) -> Study:
    """The study of these runs."""
    rows, curves, options = [Outcome(*r) for r in rows], [Curve(*c) for c in curves], Options(*options)
    shards = [Shards(*s) for s in shards]
    differ = []
    for one in shards:
        constants = one.largest / one.lipschitz, one.mean / one.lipschitz
        cells = map(number, (*constants, one.at_zero, one.at_minimum, one.batch_bound))
        differ.append((one.order, str(one.workers), *cells))
    results = []
    for r in rows:
        times = f"{r.times:g}{'*' if r.times in (TIMES[0], LONGEST) else ''}"
        costs = (_cell(r.rounds), _cell(r.up, bits), _cell(r.down, bits), _cell(r.seconds))
        first = (f"{r.method}, by {r.order}, {r.workers}", number(r.step), times, number(r.by_theorem))
        results.append((*first, *(_cell(v, lost="diverged") for v in (r.gap, r.gradient)), *costs))
    head = ("rows by", "workers", "L_max/L", "mean L_i/L", "zeta² at 0", "zeta² at x*", "B_D at 0")
    columns = (
        "method",
        "theorem's step times L",
        "times",
        "f - f* with the theorem's",
        "f - f* with the best",
        "‖∇f‖²",
    )
    title = f"At the end, and until f - f* is {GOAL:g} of that at 0"
    tables = [
        least(rows),
        alphas(rows),
        Table("How the shards differ", head, differ),
        Table(title, (*columns, "rounds", "sent", "received", "seconds"), results),
    ]
    longest = max(r.times for r in rows)
    grid = ", ".join(f"{times:g}" for times in TIMES)
    setting = (
        f"Logistic regression (l2 = {L2:g}) on {options.rows:,} documents of {source}, their {options.features:,} most"
        f" frequent words; {options.steps} gradients of each worker, of all its rows, or (batches) of 1/{BATCHES} of"
        f" them; top-k and unbiased rand-k of {100 * options.share:g} %; local SGD has {LOCAL} local steps, EF21-SGDM"
        f" the momentum 0.1, CLAG and LAG the trigger 1, QSVRG epochs of {2 * BATCHES} steps. Each method has {grid}"
        " times the step of its theorem, chosen with a seed of its own by the bits to the accuracy, then by f - f* at"
        f" the end; where {TIMES[-1]:g} was best it went on, up to {longest:g}; * marks an end of the search. GD has"
        " 1/L, error feedback the step for one worker, local SGD 1/(4 L) of data"
        " that do not differ: no theorem of the package covers these two here. Signum has the momentum 0.1 and, as the"
        " theorem's step, the one with the least bound for this number of steps. DIANA's alpha is searched over"
        f" {', '.join(f'{a:g}' for a in ALPHAS)} times 1/(1 + omega), each with the step of the theorem times"
        " numbers as above; above 1 no theorem covers it. f - f* and ‖∇f‖² are relative to those"
        f" at 0, means over {options.seeds} seeds; where nothing is random all have the same values. zeta² is the mean"
        " of ‖∇f_i - ∇f‖² over ‖∇f(0)‖². A worker receives what all others send; GD's sums, and the message of"
        f" EF21-BC's server, arrive once. Seconds: two start-ups a round and all bytes of a worker's line at {NETWORK},"
        " a model, without gradients and coding. For a network on digits, of which no L is known, see"
        " `network-differences`."
    )

    def draw():
        names = list(dict.fromkeys(curve.order for curve in curves))
        with canvas(2, len(names), 4.6) as (figure, axes):
            for column, order in enumerate(names):
                for k, name in enumerate(SHOWN):
                    (one,) = (c for c in curves if (c.order, c.method) == (order, name))
                    for place, heights in zip(axes[:, column], (one.gap, one.gradient), strict=True):
                        place.plot(one.up[1:], np.maximum(heights[1:], 1e-12), label=name, markevery=3, zorder=2 + k)
                        place.set(xscale="log", yscale="log", ylim=(1e-10, 10.0))
                axes[0, column].set_title(f"rows by {order}" if order != ALONE else "shuffled rows")
                for place in axes[:, column]:
                    place.set_xlabel("bits sent by a worker")
            for place, label in zip(axes[:, 0], ("f - f*", "‖∇f‖²"), strict=True):
                place.set_ylabel(f"{label}, relative to 0")
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return figure

    measured = {"rows": rows, "curves": curves, "shards": shards}
    alt = (
        f"f - f* and the squared gradient against the bits that one of {options.workers[0]} workers sends, for"
        f" {len(SHOWN)} methods and three orders of the rows"
    )
    said, title = statements(rows, shards), "Your workers' data differ"
    return Study("send-the-difference", title, setting, measured, tables, said, draw, alt)
