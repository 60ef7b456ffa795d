"""The model of a round beside measured rounds, and what it says of thousands of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...cluster.cost_model import NETWORKS
from ...cluster.round_model import RoundModel, Work, fit_rounds
from ...plots.figure_style import COLUMN, colours
from ...plots.text import number
from ..scale import FULL, Coded, Options, Round, work_of
from ..shared.panels import canvas
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import HOLDS, Statement, faster, opposite

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


def misjudged(model: RoundModel, rounds: list[Round], method: str) -> float:
    """How far the model errs in how long a method's round is beside one of full precision: a factor, of nine in ten."""
    off = {(one.work.method, one[1:4]): model.total(one.work) / one.seconds for one in rounds}
    logs = [abs(math.log(ratio / off[FULL, where])) for (name, where), ratio in off.items() if name == method]
    return math.exp(float(np.quantile(logs, 0.9)))


def shortens(rows: list[Modelled], network: str, d: int, method: str, factor: float) -> dict[int, str]:
    """For each number of ranks whether a round of the method is shorter than one of full precision, by a factor."""
    at = {(one.method, one.ranks): one.total for one in rows if (one.network, one.d) == (network, d)}
    return {n: faster(at[method, n], at[FULL, n], factor) for name, n in at if name == method}


def stretches(some: list[int], every: tuple) -> str:
    """Some numbers of ranks, as they follow each other among all."""
    found: list[list[int]] = []
    for n in some:
        if found and every.index(n) == every.index(found[-1][-1]) + 1:
            found[-1].append(n)
        else:
            found.append([n])
    return ", ".join(f"{one[0]:,}" + (f" to {one[-1]:,}" if len(one) > 1 else "") for one in found) or "nowhere"


def report(rounds: list, coding: dict, times: Any, ranks: int, oversubscribed: bool, options: Any) -> Study:
    """The study of these rounds."""
    options = Options(*options)
    rounds = [Round(Work(*one[0]), *one[1:]) for one in rounds]
    coding = {name: Coded(*one) for name, one in coding.items()}
    fitted, held = ([one for one in rounds if one.fitted == which] for which in (True, False))
    model = fit_rounds([one.work for one in fitted], [one.seconds for one in fitted], times)
    own, other = np.abs(errors(model, fitted)), np.abs(errors(model, held))
    each = {name: errors(model, [one for one in held if one.work.method == name]) for name in coding}
    rows, sent = modelled(model, coding, options), [name for name in coding if name != FULL]
    factors = {name: misjudged(model, held, name) for name in sent}
    slow, fast = next(iter(NETWORKS)), list(NETWORKS)[-1]
    first, last = options.ranks[0], options.ranks[-1]
    ds, tested = [one[0] for one in options.models], ranks > 1 and not oversubscribed
    verdicts = {
        (network, d, name): shortens(rows, network, d, name, factors[name])
        for network, d, name in product(NETWORKS, ds, sent)
    }  # fmt: skip

    def trials(networks: Iterable[str], ranks: Iterable[int], which: Callable[[str], str] = str) -> list[str]:
        found = [which(verdicts[n, d, name][at]) for n in networks for d in ds for name in sent for at in ranks]
        return found if tested else []

    def where(network: str) -> str:
        told = {
            (d, name): stretches([n for n, word in verdicts[network, d, name].items() if word == HOLDS], options.ranks)
            for d in ds
            for name in sent
        }
        if set(told.values()) == {"nowhere"}:
            return f"{network}: nowhere"
        return f"{network}: {'; '.join(f'{name}, d = {d:,}: {text}' for (d, name), text in told.items())}"

    listed = ", ".join(f"{factor:.2f} for {name}" for name, factor in factors.items())
    shorter = (
        f"Numbers of ranks on which a round is shorter by more than the model errs (a factor of {listed}; one ratio in"
        " ten is further off)"
    )
    said = [
        Statement(
            "error",
            f"On rounds of {ranks} ranks that were not fitted the model's median relative error is at most"
            f" {ALLOWED:.0%}, method by method.",
            [bool(np.median(np.abs(mine)) <= ALLOWED) for mine in each.values()] if tested else [],
            f"{', '.join(f'{name} {np.median(np.abs(mine)):.0%}' for name, mine in each.items())}; of all"
            f" {np.median(other):.0%}, nine in ten below {np.quantile(other, 0.9):.0%}, of {len(held)} rounds; of those"
            f" fitted {np.median(own):.0%}.",
            OURS,
        ),
        Statement(
            "pays-slow",
            f"By the model, on {slow} compression shortens a round of {first} ranks.",
            trials([slow], [first]),
            f"{shorter}: {where(slow)}.",
            OURS,
        ),
        Statement(
            "stops",
            f"By the model, with {last:,} ranks none of the three compressed methods shortens a round.",
            trials(NETWORKS, [last], opposite),
            "Messages are gathered, so that each rank receives and decodes those of all, where full precision is added"
            f" on the way. {shorter}: {'. '.join(map(where, NETWORKS))}.",
            OURS,
        ),
        Statement(
            "fast-network",
            f"By the model, on {fast} none of the three compressed methods shortens a round of any number of ranks.",
            trials([fast], options.ranks, opposite),
            f"{shorter}: {where(fast)}.",
            OURS,
        ),
    ]
    nano = {name: f"{1e9 * value:.3g}" if value > 1e-13 else "0" for name, value in model.terms.items()}
    timed = np.asarray(times, float)
    waits = {n: 1e6 * model.seconds(held[0].work._replace(ranks=n))["waiting"] for n in (first, last)}
    most = 1e6 * (timed.max() - np.median(timed))
    late = {n: f"{'at least ' if wait > 0.5 * most else ''}{number(wait)} us on {n:,}" for n, wait in waits.items()}
    tables = [
        Table(
            f"Seconds of a round on {ranks} rank{'s' * (ranks > 1)}: the model's error on rounds that were not fitted",
            ("method", "rounds", "median error", "nine in ten below", "longest over measured", "least over measured"),
            [
                (
                    name, str(len(mine)), f"{np.median(np.abs(mine)):.0%}", f"{np.quantile(np.abs(mine), 0.9):.0%}",
                    f"{1.0 + mine.max():.2f}", f"{1.0 + mine.min():.2f}",
                )
                for name, mine in each.items()
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
        f" that have the least or the most of all three{', which are measured on one rank, too' * (ranks > 1)}:"
        f" {len(fitted)} of {len(rounds)}. Its terms: computing (a round, a non-zero, a coordinate of a worker, a"
        " coordinate), coding (own messages encoded, those of others decoded, times a factor), waiting (the largest of"
        " all ranks' delays, drawn from those that were measured), wire (start-ups, bytes, bytes added). It is the sum"
        " that is checked, not each term. For more ranks the wire has the assumed numbers of a network; each rank has"
        f" one worker and a core, and is late as one core of this machine was in {timed.size:,} rounds of"
        f" {1e6 * np.median(timed):.0f} us, of which the longest took {1e6 * timed.max():,.0f} us: a round of"
        f" {FULL}, d = {held[0].d:,}, waits for {late[first]} ranks and for {late[last]}. None is ever later than the"
        " longest of those that were measured, so that on many ranks waiting is too short. Nothing overlaps."
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
