"""Statements, tables and the figure of the study of EF-SignSGD and NUQSGD."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from ...plots.figure_style import COLUMN
from ...plots.text import bits as bits_text
from ...plots.text import number
from ..nuqsgd import L2, MOMENTUM
from ..shared.messages import Message, round_seconds
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table, line
from ..shared.verdicts import Compare, Statement, below, faster
from ..sign_and_nuqsgd import (
    BATCH,
    BEST_RATIO,
    CODED,
    EIGHT,
    FOUR,
    LARGE,
    LEVELS,
    SIGN,
    SMALL,
    STEPS,
    TWO_SCALES,
    WORKERS,
    best,
)

COMMON = 1.0  # the step size at which methods are compared with one for all
BANDWIDTHS = (1e9, 1e10, 1e11)  # bits per second
SIGNS = {SIGN: ("", ""), TWO_SCALES: ("-two-scales", " with two scales")}  # ends of an id, words of a statement
PRINTED = 128  # bits of a bucket of 64 in the paper
CLOSE = 1.25  # the factor for "close"


def seconds_to_goal(sent, trained) -> dict[tuple[str, str, float], np.ndarray]:
    """Rounds until the goal, seed by seed, times coding and exchange of one, by problem, method and bandwidth."""
    message = {(row.input, row.method): row for row in sent}
    return {
        (*place, b): row.rounds * round_seconds(message[place], WORKERS, b)
        for place, row in best(trained, "rounds").items()
        for b in BANDWIDTHS
    }


def _giga(bandwidth: float) -> str:
    return f"{bandwidth / 1e9:g}"


def _over(ratios: dict[str, float]) -> str:
    """Ratios with their names: "1 Gbit/s: 0.4, 10 Gbit/s: 1.1"."""
    return ", ".join(f"{name}: {number(ratio)}" for name, ratio in ratios.items())


def crossing(a: Message, b: Message, workers: int) -> float:
    """The bandwidth from which a round of ``a``, which sends fewer bits, takes longer than one of ``b``."""
    slower = round_seconds(a, workers, math.inf) - round_seconds(b, workers, math.inf)
    return (workers - 1) * (b.bits - a.bits) / slower if slower > 0 else math.inf


def message_statements(sent) -> list[Statement]:
    """The statements of the paper on messages and the time of a round."""
    first = {row.method: row for row in sent if row.input == sent[0].input}
    whole, two = bits_of_bucket(sent, SIGN), bits_of_bucket(sent, TWO_SCALES)
    packed = [row for row in sent if not math.isnan(row.form)]
    exact = [row.form == row.bits for row in packed]
    widths = {row.method: row.bits / row.d for row in first.values() if not math.isnan(row.form)}
    said = [
        Statement(
            "bucket",
            f"EF-SignSGD's messages with two scales have {PRINTED} bits for each bucket of {SMALL} values, as the "
            "paper counts (32 for each scaling factor, 64 for the signs).",
            [two == PRINTED],
            f"A bucket of {SMALL} takes {two} bits, {two / SMALL:g} a value, with two scales, and {whole} with one. "
            "What the paper's implementation sent is not judged.",
            bears_on=("nuqsgd/figure-18-bits-of-ef-signsgd",),
            values={"two scales": two, "a value": two / SMALL, "one scale": whole},
        ),
        Statement(
            "packed-length",
            "A packed message of d coordinates takes d b + 32 ceil(d/m) bits in buckets of m, b of a coordinate, and "
            "with two scales twice the 32.",
            exact,
            f"To the bit for {sum(exact)} of {len(packed)} messages. Bits a coordinate at "
            f"d = {sent[0].d:,}: {_over(widths)}.",
            bears_on=("lecture/slide-what-a-worker-sends",),
        ),
    ]
    rounds = (
        ("round-4", FOUR, "takes longer than one of 4-bit NUQSGD", ""),
        ("round-8", EIGHT, "takes about as long as one of 8-bit NUQSGD", f" (within a factor of {CLOSE:g})"),
    )
    for (id, other, text, rule), (sign, (end, scales)) in product(rounds, SIGNS.items()):
        pairs = {b: [round_seconds(first[name], WORKERS, b) for name in (sign, other)] for b in BANDWIDTHS}
        at = crossing(first[sign], first[other], WORKERS)
        ratios = {f"{_giga(b)} Gbit/s": mine / theirs for b, (mine, theirs) in pairs.items()}
        on = f". It takes longer from {_giga(float(f'{at:.2g}'))} Gbit/s on." if at < math.inf else "."
        said.append(
            Statement(
                id + end,
                f"With {WORKERS} workers a round of EF-SignSGD{scales} {text}{rule}.",
                [1 / CLOSE <= a / b <= CLOSE if rule else faster(b, a) for a, b in pairs.values()],
                f"Time over time, {sign} and {other}, d = {sent[0].d:,}: {_over(ratios)}{on}",
                bears_on=("nuqsgd/figure-18-time-of-an-epoch",),
                values=ratios | {"longer from": at / 1e9},
            )
        )
    return said


def training_statements(sent, trained) -> list[Statement]:
    """The statements of the paper on bits, seconds, loss and accuracy."""
    said, spent = [], seconds_to_goal(sent, trained)
    problems = list(dict.fromkeys(row.problem for row in trained))
    bits = {place: row.rounds * row.bits for place, row in best(trained, "rounds").items()}

    def fewer(mine: str, theirs: str) -> dict[str, Any]:
        """Verdicts on the bits of the first, and the second's over them."""
        pairs = {p: (bits[p, mine], bits[p, theirs]) for p in problems}
        ratios = {p: float(b.mean()) / float(a.mean()) for p, (a, b) in pairs.items()}
        said = f"Bits over bits, {theirs} and {mine}: {_over(ratios)}."
        return {"trials": [below(*pair) for pair in pairs.values()], "said": said, "values": ratios}

    whole, coding = ("nuqsgd/abstract-faster-end-to-end-than-ef-signsgd",), ("nuqsgd/abstract-with-non-trivial-coding",)
    codes = (("packed", FOUR, "packed", ()), ("coded", CODED, "with entropy coding", coding))
    for (id, other, how, about), (sign, (end, scales)) in product(codes, SIGNS.items()):
        times = {(p, b): (spent[p, sign, b], spent[p, other, b]) for p in problems for b in BANDWIDTHS}
        ratios = {f"{p}, {_giga(b)} Gbit/s": float(a.mean()) / float(m.mean()) for (p, b), (a, m) in times.items()}
        said += [
            Statement(
                f"{id}-end-to-end{end}",
                f"NUQSGD, {how}, beats EF-SignSGD{scales} end to end.",
                [faster(mine, theirs) for theirs, mine in times.values()],
                f"Seconds of coding and exchange to one loss, {sign} over {other}: {_over(ratios)}.",
                bears_on=whole + about,
                values=ratios,
            ),
            Statement(
                f"{id}-fewer-bits{end}",
                f"NUQSGD, {how}, takes fewer bits to the same loss than EF-SignSGD{scales}.",
                **fewer(other, sign),
                bears_on=about or whole,
            ),
        ]
    said.append(
        Statement(
            "two-scales-fewer-bits",
            "EF-SignSGD takes fewer bits to the same loss with two scales than with one.",
            **fewer(TWO_SCALES, SIGN),
            source=OURS,
        )
    )
    for id, step, how in (
        ("common", COMMON, "with one step size for all"),
        ("best", None, "each with its best step size"),
    ):
        rows = {(r.problem, r.method): r for r in trained if r.step == step} if step else best(trained)
        for sign, (end, scales) in SIGNS.items():
            chosen, pair = [rows[p, method] for p in problems for method in (FOUR, sign)], [(FOUR, sign)]
            lower = Compare(lambda r: r.loss, pair, below, ("problem",), show=lambda r: number(r.loss.mean()))
            higher = Compare(
                lambda r: -r.accuracy, pair, below, ("problem",), show=lambda r: f"{100 * r.accuracy.mean():.1f}"
            )
            said += [
                Statement(
                    f"lower-loss-{id}{end}",
                    f"NUQSGD trains to a lower loss than EF-SignSGD{scales} in as many rounds, {how} (f - f* of {FOUR} "
                    f"and {sign}).",
                    lower(chosen),
                ),
                Statement(
                    f"higher-accuracy-{id}{end}",
                    f"NUQSGD has a higher held-out accuracy than EF-SignSGD{scales}, {how} (in per cent).",
                    higher(chosen),
                ),
            ]
    names = list(dict.fromkeys(row.input for row in sent))
    error = {(row.input, row.method): row.error for row in sent}
    text = "; ".join(
        f"{name}: {number(error[name, FOUR])}, {number(error[name, EIGHT])}, {number(error[name, BEST_RATIO])}"
        for name in names
    )
    said.append(
        Statement(
            "eight-bits",
            "8 bits a coordinate make the error of NUQSGD at most half that of 4 bits.",
            [error[name, EIGHT] <= 0.5 * error[name, FOUR] for name in names],
            f"Relative variance with 4 bits, with 8, and with 8 and the best ratio: {text}. Levels 1/2 "
            "apart leave up to 1/8 however many there are; a ratio nearer to 1 does not.",
        )
    )
    return said


def statements(sent, trained) -> list[Statement]:
    """The statements of the paper on the two, with verdicts."""
    return [*message_statements(sent), *training_statements(sent, trained)]


def bits_of_bucket(sent, method: str) -> int:
    """Bits of a bucket of signs, from the messages, whose length is a multiple of it."""
    row = next(row for row in sent if row.method == method)
    return round(row.bits * SMALL / row.d)


def draw(sent, curves):
    """Loss against bits for each problem, and time of a round against bandwidth."""
    shown = {
        "float32": ("#7F7F7F", ":", "x"),
        SIGN: ("#D55E00", "-", "o"),
        TWO_SCALES: ("#000000", "-.", "v"),
        f"EF-sign, {LARGE}": ("#E69F00", "--", "o"),
        f"NUQSGD 4 bits, {SMALL}": ("#56B4E9", "--", "s"),
        FOUR: ("#0072B2", "-", "s"),
        CODED: ("#009E73", "-", "D"),
        EIGHT: ("#CC79A7", "-.", "^"),
    }
    with canvas(1, len(curves) + 1, 0.95 * COLUMN) as (figure, grid):
        for axes, (name, seen) in zip(grid[0], curves.items(), strict=False):
            for method, (bits, gap) in seen.items():
                if method in shown:
                    colour, dashes, mark = shown[method]
                    axes.plot(
                        bits[1:],
                        gap[1:],
                        color=colour,
                        linestyle=dashes,
                        marker=mark,
                        markevery=4,
                        markerfacecolor="none",
                        label=method,
                    )
            axes.set(xscale="log", yscale="log", xlabel="payload of a worker, bits", title=name)
        grid[0, 0].set_ylabel(r"$f(x_t)-f^*$")
        axes, bandwidth = grid[0, -1], np.geomspace(1e8, 1e12, 41)
        for row in (row for row in sent if row.input == sent[0].input and row.method in shown):
            colour, dashes, _ = shown[row.method]
            axes.plot(
                bandwidth / 1e9,
                [1e3 * round_seconds(row, WORKERS, b) for b in bandwidth],
                color=colour,
                linestyle=dashes,
                marker="",
                label=row.method,
            )
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="Gbit/s",
            ylabel="coding and exchange, ms",
            title=f"a round, d = {sent[0].d:,}",
        )
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _tables(sent, trained) -> list[Table]:
    cells: list[tuple[str, ...]]
    head: tuple[str, ...]
    cells = [
        line(
            f"{row.input}: {row.method} | {number(row.bits / row.d)} | "
            f"{'-' if math.isnan(row.form) else number(row.form / row.d)} | {number(row.error)} | "
            f"{number(row.encode)} | {number(row.decode)} | {number(row.memory)}"
        )
        for row in sent
    ]
    head = ("vector: method", "bits", "closed form", "relative error", "encode, ns", "decode, ns", "memory, ns")
    tables = [Table("One message: bits and nanoseconds a coordinate", head, cells)]
    cells = [
        (f"{row.input}: {row.method}", *(number(1e3 * round_seconds(row, WORKERS, b)) for b in BANDWIDTHS))
        for row in sent
    ]
    head = ("vector: method", *(f"{_giga(b)} Gbit/s" for b in BANDWIDTHS))
    tables.append(Table("Coding and exchange of a round, milliseconds", head, cells))
    fastest, by_step, cells, spent = (
        best(trained, "rounds"),
        {(r.problem, r.method, r.step): r for r in trained},
        [],
        [],
    )
    d = {row.input: row.d for row in sent}
    for (problem, method), row in best(trained).items():
        losses = [_with_deviation(by_step[problem, method, s].loss) for s in STEPS]
        taken, width = fastest[problem, method].rounds.mean(), fastest[problem, method].bits
        there = (f"{taken:.0f}", bits_text(taken * width * d[problem])) if taken < math.inf else ("never", "-")
        cells.append(
            (
                f"{problem}: {method}",
                number(row.bits),
                *losses,
                f"{100 * row.accuracy.mean():.1f} ± {100 * row.accuracy.std():.1f} %",
                *there,
            )
        )
        if not method.endswith("coded"):
            spent.append((f"{problem}: {method}", *map(number, (row.gradient, row.coding, row.whole))))
    names = (f"f - f*, {number(s * (1 - MOMENTUM))}/L" for s in STEPS)
    head = ("problem: method", "bits", *names, "held out", "rounds", "payload")
    tables.append(Table("Training, by step size", head, cells))  # "training" is the key of the rows
    head = ("problem: method", "gradients", "coding", "all")
    return [*tables, Table("A round of all workers in the simulator, milliseconds", head, spent)]


def _with_deviation(values) -> str:
    """Mean and standard deviation over the seeds, without a warning where a run diverged."""
    with np.errstate(invalid="ignore"):
        return f"{number(values.mean())} ± {number(values.std())}"


def _edges(trained) -> str:
    """The methods whose best step is the longest or the shortest that was tried."""
    tried = {row.step for row in trained}
    edges = [f"{row.problem}, {row.method}" for row in best(trained).values() if row.step in (min(tried), max(tried))]
    return f"for {'; '.join(edges)}" if edges else "for none"


def report(sent, trained, curves, lengths: dict, share: float, rounds: int, seeds: int) -> Study:
    """The study of these messages and runs; ``lengths`` of the vectors, by name."""
    d = lengths
    setting = (
        "EF-sign: the signs of a bucket times its mean magnitude, with error feedback; with two scales, entries below "
        "0 become their mean, the others theirs, the quantizer of 1-bit SGD. NUQSGD: levels 0, 2^-s, ..., "
        f"1/2, 1 of a bucket's 2-norm, s = {LEVELS[4]} with 4 bits and {LEVELS[8]} with 8, without feedback. The "
        f"number behind a name is the size of a bucket. Vectors: Gaussian (d = {d['Gaussian']:,}) and the mini-batch "
        f"gradient where float32 ends ({', '.join(f'{name}: d = {d[name]:,}' for name in curves)}); float32, one core, "
        f"the least of some turns, a checksum included, the memory in NumPy. A round with {WORKERS} workers is one "
        f"encoding, {WORKERS} decodings, the passes of the memory, and {WORKERS - 1} messages received one after the "
        f"other; gradients are left out. Training: {WORKERS} workers, batches of {BATCH}, momentum {MOMENTUM:g}, "
        f"l2 = {L2:g} as part of what is sent, {rounds} rounds, 80 % of the rows, "
        f"{seeds} seeds, steps {', '.join(number(s * (1 - MOMENTUM)) for s in STEPS)} over L, of which the best one "
        f"is an edge of the grid {_edges(trained)}; one for all is {number(COMMON * (1 - MOMENTUM))}/L. f - f* is the "
        "mean over the last quarter, held-out accuracy that of the step size with the lowest one. Rounds "
        f"and a worker's payload are those until f - f* is {share:g} (f(0) - f*), means over the seeds with the "
        "fastest step size. The "
        "simulator counts bits without packing them; its times are the least between two records. Coded messages "
        "restore the same vectors; their bits are measured at mini-batch gradients along the run."
    )
    return Study(
        "sign-and-nuqsgd",
        "EF-SignSGD against NUQSGD",
        setting,
        {"messages": sent, "training": trained},
        _tables(sent, trained),
        statements(sent, trained),
        lambda: draw(sent, curves),
        "f - f* against the payload bits of a worker for logistic and softmax regression, both logarithmic, a line for "
        "each method; right: milliseconds of coding and exchange of a round against the bandwidth",
    )
