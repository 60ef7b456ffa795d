"""Statements, tables and the figure of the study of topologies."""

from __future__ import annotations

import math

import numpy as np

from ...cluster.cost_model import Network
from ...plots.figure_style import colours
from ...plots.text import number
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import OPEN, TIMES, Statement, faster
from ..topologies import ASSUMED, KINDS, REDUCE, RING, STAR, TOPOLOGIES, Options, crossing, rounds_to, seconds_of

FACTOR = 2.0  # how close a model has to be
TENTH = 0.1  # to which gossip shrinks the distances from the mean


def size_text(size: float) -> str:
    """Bytes with a binary unit.

    Examples
    --------
    >>> size_text(64), size_text(4096), size_text(1_048_576), size_text(1.5e9)
    ('64 B', '4 KiB', '1 MiB', '1.4 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.2g} {unit}" if size < 9.95 else f"{size:.0f} {unit}"
        size /= 1024
    raise AssertionError


def statements(rows, network: Network, many: bool, options: Options) -> list[Statement]:
    """Verdicts on the measured exchanges, where there were two ranks, and on the model's for more nodes."""
    at = {(row.topology, row.size): row for row in rows}
    real = not many and all(not math.isnan(row.seconds) for row in rows)
    why = (
        "There were more ranks than processors: no order of times is claimed."
        if many
        else "It was measured on one rank: mpirun -n 2."
    )
    said = []
    for id, topology, what in (("ring", RING, "an exchange of neighbours"), ("reduce", REDUCE, "an all-reduce")):
        pairs = {size: (at[topology, size].seconds, at[STAR, size].seconds) for size in options.sizes if real}
        times = ", ".join(f"{size_text(size)} {number(mine / star)}" for size, (mine, star) in pairs.items())
        text = f"two ranks: {what} is faster than a star of the two."
        trials = [faster(*pair) for pair in pairs.values()]
        said.append(Statement(f"two-{id}", text, trials, f"Times over the star's: {times}." if real else why, OURS))
    over = {t: [row.model / row.seconds for row in rows if real and row.topology == t] for t in TOPOLOGIES}
    good = [1 / FACTOR <= r <= FACTOR for own in over.values() for r in own]
    parts = (f"{topology} {number(min(own))} to {number(max(own))}" for topology, own in over.items() if own)
    numbers = f"In {sum(good)} of {len(good)}; model over measured: {', '.join(parts)}." if real else why
    said.append(Statement("two-model", "two ranks: the model is within a factor of two.", good, numbers, OURS))
    model = {(t, n, m): seconds_of(network, t, n, m) for t in TOPOLOGIES for n in options.nodes for m in options.sizes}
    cases = [(n, m) for n in options.nodes for m in options.sizes]
    for id, topology, what in (("ring", RING, "a round of gossip on a ring"), ("reduce", REDUCE, "an all-reduce")):
        ratios = [model[topology, *case] / model[STAR, *case] for case in cases]
        said.append(
            Statement(
                f"model-{id}",
                f"by the model, {', '.join(map(str, options.nodes))} nodes: {what} is faster than a star.",
                [faster(model[topology, *case], model[STAR, *case]) for case in cases],
                f"The star takes {number(1.0 / max(ratios))} to {number(1.0 / min(ratios))} times as long.",
                OURS,
            )
        )
    limits = {n: crossing(network, n) for n in options.nodes}
    lengths = ", ".join(f"{n} nodes {size_text(m) if math.isfinite(m) else 'never'}" for n, m in limits.items())
    text = "by the model, a round of gossip on a ring is faster than an all-reduce."
    trials = [faster(model[RING, *case], model[REDUCE, *case]) for case in cases]
    ring = Statement("ring-below-reduce", text, trials, source=OURS)
    open_ = f", {ring.count(OPEN)} undecided" if ring.count(OPEN) else ""
    numbers = f"In {ring.count()} of {len(cases)} cases{open_}; the all-reduce is faster for messages longer than: "
    rounds = {n: rounds_to(TENTH, n) for n in options.nodes}
    gossip = {(n, m): rounds[n] * model[RING, n, m] for n, m in cases}
    ratios = [gossip[case] / model[REDUCE, *case] for case in cases]
    return [
        *said,
        ring._replace(said=f"{numbers}{lengths}."),
        Statement(
            "gossip-takes-longer",
            f"by the model, gossip until the distances are at {TENTH:g} of what they were takes longer than an"
            " all-reduce, after which they are 0.",
            [faster(model[REDUCE, *case], gossip[case]) for case in cases],
            f"{number(min(ratios))} to {number(max(ratios))} times as long; rounds: "
            f"{', '.join(f'{n} nodes {r}' for n, r in rounds.items())}.",
            OURS,
        ),
    ]


def draw(rows, network: Network, options: Options):
    """Seconds of an exchange against its length: two ranks, measured and by the model, and more nodes by the model."""
    looks = {STAR: ("-", "o", 1), RING: ("--", "s", 4), REDUCE: ("-.", "^", 5)}
    lengths = np.geomspace(min(options.sizes), max(options.sizes), 60)
    many = (2, *options.nodes)
    height = math.ceil(len(many) / 2)
    with canvas(height, 2, 0.5 + 2.2 * height) as (figure, grid):
        for axes, nodes in zip(grid.ravel(), many, strict=False):
            for topology, (line, mark, k) in looks.items():
                what = "a round of gossip on a ring" if topology == RING else topology
                model = [1e6 * seconds_of(network, topology, nodes, m) for m in lengths]
                axes.plot(lengths, model, color=colours()[k], linestyle=line, marker="", label=f"{what}, model")
                own = [(row.size, 1e6 * row.seconds) for row in rows if row.topology == topology]
                if nodes == 2 and own and not math.isnan(own[0][1]):
                    axes.plot(*zip(*own, strict=True), mark, color=colours()[k], label=f"{what}, measured")
            if nodes > 2:
                rounds = rounds_to(TENTH, nodes)
                model = [1e6 * rounds * seconds_of(network, RING, nodes, m) for m in lengths]
                axes.plot(
                    lengths, model, color=colours()[4], linestyle=":", marker="", label="gossip to a tenth, model"
                )
                limit = crossing(network, nodes)
                if lengths[0] <= limit <= lengths[-1]:
                    axes.axvline(limit, color="0.5", linewidth=0.7, zorder=0)
            axes.set(xscale="log", yscale="log", xlabel="bytes of a message", ylabel="microseconds")
            axes.set_title(f"{nodes} nodes, measured and model" if nodes == 2 else f"{nodes} nodes, model")
        for axes in grid.ravel()[len(many) :]:
            axes.axis("off")
        found: dict = {}
        for axes in grid.ravel()[:2]:
            found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=3)
    return figure


def report(rows, network, low, high, ranks: int, oversubscribed: bool, options: Options) -> Study:
    """The study of these times."""
    net = Network(*network)
    at = {(row.topology, row.size): row for row in rows}
    head = ("bytes", *(name for t in KINDS for name in (f"{t}, µs", "model")), "fastest exchange", "model's")
    lines = []
    for size in options.sizes:
        here = [at[t, size] for t in TOPOLOGIES]
        cells = [number(1e6 * x) for t in KINDS for x in (at[t, size].seconds, at[t, size].model)]
        first = min(here, key=lambda row: row.seconds).topology if not math.isnan(here[0].seconds) else "-"
        lines.append((f"{size:,}", *cells, first, _fastest({row.topology: row.model for row in here})))
    tables = [Table("Two nodes", head, lines)]
    lines = []
    for n in options.nodes:
        for size in options.sizes:
            times = {t: seconds_of(net, t, n, size) for t in TOPOLOGIES}
            tenth = rounds_to(TENTH, n) * times[RING]
            cells = [number(1e6 * x) for x in (*times.values(), tenth)]
            lines.append((f"{n}", f"{size:,}", *cells, _fastest(times)))
    gossip = ("round of gossip, µs", "all-reduce, µs", "gossip to a tenth, µs")
    head = ("nodes", "bytes", "star, µs", *gossip, "fastest exchange")
    tables.append(Table("More nodes, by the model with these three numbers", head, lines))
    three = [
        f"{name} = {number(value)} s{unit}"
        for name, value, unit in zip(("alpha", "beta", "gamma"), net, ("", "/B", "/B"), strict=True)
    ]
    if low:
        three = [f"{text} ({number(a)} to {number(b)})" for text, a, b in zip(three, low, high, strict=True)]
    source = (
        f"fitted to messages there and back and to additions on the same ranks (95 % intervals): {', '.join(three)}"
        if ranks > 1
        else f"assumed, those of {ASSUMED}, as one rank measures none: {', '.join(three)}"
    )
    setting = (
        "A message of m bytes takes alpha + m beta seconds, adding m bytes gamma m; a node sends one message at a time."
        " In a star one of the nodes receives from all others, adds, and sends the sum back. In a ring every node"
        " sends to its two neighbours and adds what it hears: a round of gossip, which does not compute the mean."
        " After an all-reduce all have the sum; by the model it is the fastest of ring algorithm, recursive doubling"
        f" and Rabenseifner's. The three numbers are {source}. Two ranks are two nodes: a star of two, neighbours that"
        " have only each other, and an all-reduce of two; what they measure is the model's three numbers and whether it"
        " fits, not the contention of many nodes for one link. Both ranks are on one machine, so messages pass through"
        " memory, and alpha and beta of a network are larger. float32; times are the slower rank's, the fastest of"
        " several turns of many calls in a row, since other load only adds, and include calls from Python."
        f" Where times are compared, ratios between {1 / TIMES:.2g} and {TIMES:g} are undecided."
        " The lecture only asks a question (“Beyond Master Worker?”): the statements are ours."
        + (" There were more ranks than processors: no order of times is claimed." if oversubscribed else "")
    )
    return Study(
        "topologies",
        "A star, a ring or an all-reduce?",
        setting,
        {"rows": rows},
        tables,
        statements(rows, net, oversubscribed, options),
        lambda: draw(rows, net, options),
        "Microseconds of an exchange against the bytes of a message, logarithmic: for two nodes measured points on the"
        " model's lines, for more nodes the model's lines for a star, a round of gossip, gossip to a tenth of the"
        " distances, and an all-reduce, with a vertical line where an all-reduce overtakes a round of gossip",
    )


def _fastest(times: dict[str, float]) -> str:
    """The names of the fastest, which may be as fast as each other."""
    least = min(times.values())
    return " = ".join(name for name, value in times.items() if value <= least * (1 + 1e-9))
