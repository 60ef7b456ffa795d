"""The model of a round beside measured rounds, and what it says of thousands of ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...cluster.cost_model import NETWORKS
from ...cluster.round_model import RoundModel, Work, fit_rounds
from ...plots.figure_style import COLUMN, colours
from ...plots.text import number
from ..scale import FULL, Coded, Options, Round, work_of
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import Statement

ALLOWED = 0.25  # median relative error on rounds that were not fitted
TERMS = {"entry": "a non-zero", "own": "a worker's coordinate", "addition": "a byte added"}
PARTS = ("computing", "coding", "waiting", "wire")


class Modelled(NamedTuple):
    """A round of one method on so many ranks of an assumed network, term by term."""

    network: str
    method: str
    d: int
    ranks: int
    parts: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds."""
        return sum(self.parts.values())


def errors(model: RoundModel, rounds: list[Round]) -> np.ndarray:
    """Relative errors of the model."""
    return np.array([model.total(one.work) / one.seconds - 1.0 for one in rounds])


def modelled(model: RoundModel, coding: dict[str, Coded], options: Options) -> list[Modelled]:
    """All methods on all networks, one worker on each rank."""
    found = []
    for network, numbers in NETWORKS.items():
        for d, nonzeros, batch in options.models:
            for ranks in options.ranks:
                for name, coded in coding.items():
                    work = work_of(name, coded, d, batch, nonzeros, ranks, ranks, coded.bytes * d)
                    found.append(Modelled(network, name, d, ranks, model.seconds(work, numbers)))
    return found


def pays(rows: list[Modelled], network: str, d: int, method: str) -> list[int]:
    """Numbers of ranks on which a round of the method is shorter than one of full precision."""
    at = {(one.method, one.ranks): one.total for one in rows if (one.network, one.d) == (network, d)}
    return [ranks for name, ranks in at if name == method and at[method, ranks] < at[FULL, ranks]]


def _between(some: list[int], every: tuple) -> str:
    """Numbers of ranks, as they lie among all."""
    if not some:
        return "nowhere"
    first, last = f"{some[0]:,}" if some[0] != every[0] else "", f"{some[-1]:,}" if some[-1] != every[-1] else ""
    if not first and not last:
        return f"everywhere, {every[0]:,} to {every[-1]:,}"
    return " ".join(filter(None, (f"from {first}" if first else "", f"up to {last}" if last else "")))


def report(rounds: list, coding: dict, times: Any, ranks: int, oversubscribed: bool, options: Any) -> Study:
    """The study of these rounds."""
    options = Options(*options)
    rounds = [Round(Work(*one[0]), *one[1:]) for one in rounds]
    coding = {name: Coded(*one) for name, one in coding.items()}
    fitted, held = ([one for one in rounds if one.fitted == which] for which in (True, False))
    model = fit_rounds([one.work for one in fitted], [one.seconds for one in fitted], times)
    own, other = np.abs(errors(model, fitted)), np.abs(errors(model, held))
    rows = modelled(model, coding, options)
    sent = [name for name in coding if name != FULL]
    slow, fast = next(iter(NETWORKS)), list(NETWORKS)[-1]
    first, last = options.ranks[0], options.ranks[-1]
    ds = [one[0] for one in options.models]

    def ends(network: str, at: int) -> list[bool]:
        return [at in pays(rows, network, d, name) for d in ds for name in sent]

    where = {
        network: "; ".join(
            f"{name}, d = {d:,}: {_between(pays(rows, network, d, name), options.ranks)}" for d in ds for name in sent
        )
        for network in NETWORKS
    }
    error = f"Median {np.median(other):.0%}, nine in ten below {np.quantile(other, 0.9):.0%}, of {len(held)} rounds"
    said = [
        Statement(
            "error",
            f"On rounds that were not fitted the model's median relative error is at most {ALLOWED:.0%}.",
            [bool(np.median(other) <= ALLOWED)] if ranks > 1 and not oversubscribed else [],
            f"{error}; of those fitted {np.median(own):.0%}.",
            OURS,
        ),
        Statement(
            "pays-slow",
            f"On {slow}, compression shortens a round of {first} ranks.",
            ends(slow, first),
            f"By the model: {where[slow]}.",
            OURS,
        ),
        Statement(
            "stops",
            f"With {last:,} ranks none of the three shortens a round: messages are gathered, so that each rank receives"
            " and decodes those of all, where full precision is added on the way.",
            [not one for network in NETWORKS for one in ends(network, last)],
            "By the model, where a round is shorter than with full precision: "
            + ". ".join(f"{network}: {text}" for network, text in where.items())
            + ".",
            OURS,
        ),
        Statement(
            "fast-network",
            f"On {fast} none of the three shortens a round of any number of ranks.",
            [not pays(rows, fast, d, name) for d in ds for name in sent],
            f"By the model: {where[fast]}.",
            OURS,
        ),
    ]
    nano = {name: f"{1e9 * value:.3g}" if value > 1e-13 else "0" for name, value in model.terms.items()}
    timed, late = np.asarray(times, float), {}
    for n in (first, last):
        late[n] = number(1e6 * model.seconds(rounds[0].work._replace(ranks=n))["waiting"])
    tables = [
        Table(
            f"Seconds of a round on {ranks} rank{'s' * (ranks > 1)}: the model's error on rounds that were not fitted",
            ("method", "rounds", "median error", "nine in ten below", "longest over measured", "least over measured"),
            [
                (
                    name, str(len(mine)), f"{np.median(np.abs(mine)):.0%}", f"{np.quantile(np.abs(mine), 0.9):.0%}",
                    f"{1.0 + mine.max():.2f}", f"{1.0 + mine.min():.2f}",
                )
                for name in coding
                for mine in [errors(model, [one for one in held if one.work.method == name])]
            ],
        ),
        Table(
            "Fitted, nanoseconds",
            tuple(TERMS.get(name, f"a {name}") for name in nano),
            [tuple(nano.values())],
        ),
        Table(
            "Coding, nanoseconds a coordinate of one long message, and the factor in a round",
            ("method", "encode", "decode", "bits a coordinate", "factor"),
            [
                (name, f"{1e9 * one.encode:.3g}", f"{1e9 * one.decode:.3g}", f"{8 * one.bytes:.3g}",
                 f"{model.coding[name]:.3g}" if name != FULL else "-")
                for name, one in coding.items()
            ],
        ),
        *(
            Table(
                f"Modelled milliseconds of a round, d = {d:,}: computing + coding + waiting + wire",
                ("network", "method", *(f"{n:,}" for n in options.ranks[::3])),
                [
                    (network, name, *(
                        " + ".join(number(1e3 * one.parts[part]) for part in PARTS)
                        for n in options.ranks[::3]
                        for one in rows
                        if one[:4] == (network, name, d, n)
                    ))
                    for network in NETWORKS
                    for name in coding
                ],
            )
            for d in ds
        ),
    ]  # fmt: skip
    setting = (
        f"Rounds of parallel SGD on {ranks} rank{'s' * (ranks > 1)}{' that share cores' if oversubscribed else ''}:"
        f" logistic regression with {options.nonzeros} non-zeros a row, d in {list(options.dimensions)}, batches of"
        f" {list(options.batches)}, {list(options.workers)} workers; the median of runs. The model is fitted to those"
        f" that have the least or the most of all three, {len(fitted)} of {len(rounds)}. Its terms: computing (a round,"
        " a non-zero, a coordinate of a worker, a coordinate), coding (an own message encoded, those of all decoded,"
        " times a factor), waiting (the largest of all ranks' delays, drawn from those that were measured), wire"
        " (start-ups, bytes, bytes added). For more ranks the wire has the assumed numbers of a network; each rank has"
        f" one worker and a core, and is late as one core of this machine was in {timed.size:,} rounds of"
        f" {1e6 * np.median(timed):.0f} us, of which the latest took {1e6 * timed.max():,.0f} us: the first round of"
        f" those measured waits for {late[first]} us on {first} ranks and for {late[last]} us on {last:,}. Nothing"
        " overlaps."
    )

    def draw() -> Any:
        cycle = colours()
        with canvas(1, 1 + len(ds), 1.25 * COLUMN) as (figure, grid):
            check, *panels = grid[0]
            for k, name in enumerate(coding):
                for group, face in ((fitted, cycle[k]), (held, "none")):
                    mine = [one for one in group if one.work.method == name]
                    heights = [1e3 * model.total(one.work) for one in mine]
                    label = f"{name}, {'fitted' if group is fitted else 'held out'}"
                    check.plot(
                        [1e3 * one.seconds for one in mine], heights, "os^D"[k], color=cycle[k], markerfacecolor=face,
                        linestyle="", markersize=3, label=label,
                    )  # fmt: skip
            ends = [1e3 * min(one.seconds for one in rounds), 1e3 * max(one.seconds for one in rounds)]
            check.plot(ends, ends, color="0.4", linewidth=0.7, marker="", zorder=0)
            check.set(
                xscale="log",
                yscale="log",
                xlabel="measured, ms",
                ylabel="model, ms",
                title=f"a round, {ranks} rank{'s' * (ranks > 1)}",
            )
            for axes, d in zip(panels, ds, strict=True):
                for k, name in enumerate(coding):
                    for network, dashes in zip(NETWORKS, ("-", "--", ":"), strict=True):
                        mine = [one for one in rows if (one.network, one.method, one.d) == (network, name, d)]
                        axes.plot(
                            [one.ranks for one in mine], [1e3 * one.total for one in mine], dashes, color=cycle[k],
                            marker="", label=network if k == 0 else None,
                        )  # fmt: skip
                axes.set(xscale="log", yscale="log", xlabel="ranks (model)", title=f"d = {d:,} (model)")
                axes.set_ylabel("ms a round (model)")
            panels[0].legend(fontsize=6)
            handles, labels = check.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=6)
        return figure

    alt = "The model's milliseconds of a round against measured ones, and its milliseconds against ranks on networks"
    title = "A thousand ranks, on paper"
    return Study("scale", title, setting, {"rounds": rounds, "modelled": rows}, tables, said, draw, alt)
