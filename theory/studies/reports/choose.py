"""Statements, tables and the figure of the study of how to choose."""

from __future__ import annotations

import math

from ...cluster import NETWORKS
from ...plots.figure_style import COLUMN, PAGE
from ...plots.text import bits as bits_text
from ...plots.text import factor, number
from ..bits_to_accuracy import DENSE
from ..choose import PLAIN, SLOWER, Choice, Options, Seconds, alone, decide, situations
from ..shared.entry_keys import slug
from ..shared.panels import canvas
from ..shared.report import Study, Table
from ..shared.verdicts import Statement
from ..time_to_accuracy import CLOSE

ALT = (
    "How many times as fast as the better full precision each method is to the stricter accuracy, against the network "
    "from slow to fast, a panel for each data set, with a line at 1 and one for a single worker"
)


def _named(t: Seconds) -> str:
    return f"{t.method}, B = {t.batch}"


def _chosen(choice: Choice) -> tuple[str, str]:
    if choice.gain >= CLOSE:
        return _named(choice.best), factor(choice.gain)
    return f"nothing beats {_named(choice.plain)}", factor(choice.gain)


def decision_table(times) -> Table:
    """A row for each situation: the best by bits, the best by seconds, both against full precision, and one worker."""
    head = (
        "data",
        "accuracy",
        "network (model)",
        "fewest bits",
        "fewer than plain",
        "fewest seconds",
        "sooner than plain",
        "one worker, sooner than plain",
    )
    cells = []
    for problem, accuracy, network, rows in situations(times):
        by_bits, by_seconds = decide(rows, "bits"), decide(rows, "total")
        cells.append(
            (
                problem,
                f"{accuracy:g}",
                network,
                *_chosen(by_bits),
                *_chosen(by_seconds),
                factor(by_seconds.plain.total / alone(rows)),
            )
        )
    return Table("What to take", head, cells)


def run_table(name: str, n: int, d: int, runs, coding, accuracies) -> Table:
    """The measurements on one problem."""
    head = (
        "method",
        "N",
        "B",
        *(f"steps to {a:g}" for a in accuracies),
        f"step · L at {accuracies[-1]:g}",
        "bits a message",
        f"payload to {accuracies[-1]:g}",
        "gradient, ms",
        "coding, ms",
    )
    row, cells = min(r.row for r in runs), []
    for method, workers, batch in dict.fromkeys((r.method, r.workers, r.batch) for r in runs):
        mine = [r for r in runs if (r.method, r.workers, r.batch) == (method, workers, batch)]
        end, spent = mine[-1], coding[batch][method] if workers > 1 else 0.0
        cells.append(
            (
                method,
                str(workers),
                str(batch),
                *(f"{r.steps:.0f}" if math.isfinite(r.steps) else "never" for r in mine),
                number(end.step),
                f"{end.message_bits:,.0f}" if workers > 1 else "-",
                bits_text(end.bits) if workers > 1 and math.isfinite(end.bits) else "-",
                number(1e3 * batch * row),
                number(1e3 * spent),
            )
        )
    return Table(f"Measured, {name}: n = {n:,}, d = {d:,}", head, cells)


def statements(times) -> list[Statement]:
    """Verdicts on common rules of thumb."""
    found = [(p, a, n, decide(rows, "bits"), decide(rows, "total"), alone(rows)) for p, a, n, rows in situations(times)]
    bits, about = {(p, a): b for p, a, _, b, _, _ in found}, ("lecture/last-slide-the-optimal-algorithm",)
    fewest = (f"{p}, {a:g}: {_named(b.best)} {factor(b.gain)}" for (p, a), b in bits.items())
    said = [
        Statement(
            "fewer-bits",
            "a compressed method sends fewer bits to the accuracy than dense and lossless sparse full precision.",
            [b.gain >= CLOSE for b in bits.values()],
            f"{'; '.join(fewest)}.",
            bears_on=about,
            values={f"{p}, {a:g}": b.gain for (p, a), b in bits.items()},
        )
    ]
    for network in dict.fromkeys(n for _, _, n, *_ in found):
        here = [(p, a, t) for p, a, n, _, t, _ in found if n == network]
        gains = "; ".join(f"{p}, {a:g}: {_named(t.best)} {factor(t.gain)}" for p, a, t in here)
        said.append(
            Statement(
                f"sooner-{slug(network)}",
                f"{network}: a compressed method is there sooner than dense and lossless sparse full precision.",
                [t.gain >= CLOSE for _, _, t in here],
                f"Times as fast (measured steps, gradients and coding; the network is a model): {gains}.",
                bears_on=about,
            )
        )
    same = [b.best.method == t.best.method for _, _, _, b, t, _ in found]
    sooner = [min(t.plain.total, t.best.total) * CLOSE <= one for *_, t, one in found]
    slow = [f"{p}, {a:g}, {n}" for (p, a, n, *_), good in zip(found, sooner, strict=True) if not good]
    return [
        *said,
        Statement(
            "bits-are-seconds",
            "what sends the fewest bits takes the fewest seconds.",
            [s and t.gain >= 1.0 for s, (*_, t, _) in zip(same, found, strict=True)],
            f"The compressed method of fewest bits is that of fewest seconds in {sum(same)} of {len(same)} cases, and "
            f"sooner than full precision in {sum(t.gain >= CLOSE for *_, t, _ in found)} of them all.",
        ),
        Statement(
            "many-workers",
            f"{max(t.workers for t in times)} workers are sooner there than one that sends nothing.",
            sooner,
            f"Not where: {'; '.join(slow) or 'never'}.",
        ),
    ]


def _tick(gain: float) -> str:
    return f"{'✓' if gain >= CLOSE else '✗'} {factor(gain)}"


def tick_tables(times) -> tuple[Table, ...]:
    """Case by case: does a compressed method beat full precision, and do many workers beat one; by how much."""
    networks = tuple(dict.fromkeys(t.network for t in times))
    compressed: dict[tuple[str, ...], list[str]] = {}
    together: dict[tuple[str, ...], list[str]] = {}
    for problem, accuracy, _, rows in situations(times):
        case, by_seconds = (problem, f"{accuracy:g}"), decide(rows, "total")
        compressed.setdefault(case, [_tick(decide(rows, "bits").gain)]).append(_tick(by_seconds.gain))
        sooner = alone(rows) / min(by_seconds.plain.total, by_seconds.best.total)
        together.setdefault(case, []).append(_tick(sooner))
    count = max(t.workers for t in times)
    return (
        Table(
            f"Does a compressed method beat full precision? ✓: by at least {CLOSE:g}x, in bits, and in seconds on each "
            "network",
            ("data", "accuracy", "bits", *networks),
            [(*case, *cells) for case, cells in compressed.items()],
        ),
        Table(
            f"Are {count} workers, with the best method, sooner there than one that sends nothing?",
            ("data", "accuracy", *networks),
            [(*case, *cells) for case, cells in together.items()],
        ),
    )


def draw(times, options: Options):
    """Speed-up over full precision, against the network: a panel for each problem, a line for each method."""
    names, networks = (list(dict.fromkeys(getattr(t, field) for t in times)) for field in ("problem", "network"))
    accuracy = options.accuracies[-1]
    handles: dict = {}
    with canvas(1, len(names), 0.95 * COLUMN, min(PAGE, COLUMN * len(names))) as (figure, grid):
        for axes, name in zip(grid[0], names, strict=True):
            here = [t for t in times if (t.problem, t.accuracy) == (name, accuracy)]
            for method in sorted(dict.fromkeys(t.method for t in here), key=PLAIN.__contains__):
                gains = []
                for network in networks:
                    rows = [t for t in here if t.network == network]
                    own = min(t.total for t in rows if t.method == method and t.workers > 1)
                    gains.append(decide(rows, "total").plain.total / own if math.isfinite(own) else math.nan)
                look = {"color": "0.35", "linestyle": "-" if method == DENSE else "-."} if method in PLAIN else {}
                (line,) = axes.plot(range(len(networks)), gains, zorder=2 + len(handles), **look)
                handles.setdefault("top-k + memory" if method.startswith("top-") else method, line)
            one = [
                decide(rows := [t for t in here if t.network == n], "total").plain.total / alone(rows) for n in networks
            ]
            (line,) = axes.plot(range(len(networks)), one, color="0.6", linestyle=(0, (1, 1)), marker="")
            handles.setdefault("one worker alone", line)
            axes.axhline(1.0, color="0.2", linewidth=0.8, marker="", zorder=1)
            axes.set_yscale("log")
            axes.set_xticks(range(len(networks)), [n.replace(" ", "\n") for n in networks])
            axes.set(xlabel="network (model)", title=name)
        grid[0, 0].set_ylabel(f"times as fast to {accuracy:g} as\nthe better full precision (model)")
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def report(runs, times, coded, shapes, options: Options) -> Study:
    """The study of these runs; ``shapes`` has the rows and columns of each problem, ``coded`` its seconds of coding."""
    networks = SLOWER | NETWORKS
    tables = [
        run_table(name, n, d, [run for run in runs if run.problem == name], coded[name], options.accuracies)
        for name, n, d in shapes
    ]
    assumed = "; ".join(
        f"{name}: {1e6 * n.alpha:g} us a message, {n.beta * 1e9:g} ns a byte" for name, n in networks.items()
    )
    setting = (
        f"Logistic regression, l2 = 1/n, {options.workers} workers, until f - f* is at most this share (the accuracy) "
        "of f(0) - f*. Each "
        f"method has the better batch of {' and '.join(map(str, options.batches))} rows a worker, and the constant "
        "step size, a power of two over L, that takes the fewest steps. *Plain* is full precision: the better of dense "
        f"and lossless sparse messages, each with its better batch; what gains less than {CLOSE:g}x does not beat it. "
        f"Means over {options.seeds} seed{'s' * (options.seeds > 1)}; bits are the payload that a worker sends. Steps, "
        "the seconds of a row's gradient and those of coding (encode a gradient, decode the messages of all into full "
        "vectors, keep a memory) are measured on one core of this machine. The network is a model with assumed "
        f"numbers ({assumed}; 4 Gbyte a second of additions): dense full precision is reduced, the others are "
        "gathered; nothing overlaps, nobody is late. The last column is full precision on one worker that sends "
        "nothing, against the plain method on all of them. Quantizers have buckets of 512, TernGrad and the sign the "
        "whole vector. The dense rows are synthetic, of the shape of epsilon."
    )
    return Study(
        "choose",
        "How to choose a method",
        setting,
        {"runs": runs, "times": times},
        [decision_table(times), *tables],
        statements(times),
        lambda: draw(times, options),
        ALT,
        tick_tables(times),
    )
