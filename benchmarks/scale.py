"""A thousand ranks, on paper that was checked: a model of a round, fitted on two ranks, and where compression pays.

``python -m benchmarks scale`` takes two minutes.  Rounds are measured on two ranks, and some on one of them alone: that
tells coding from computing.  The model is fitted to a part of them, and the others tell its error.  More ranks, and
other networks, are the model's alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from theory.cluster import run
from theory.cluster.cost.network import NETWORKS
from theory.cluster.cost.round import RoundModel, Work, exchanged, fit_rounds
from theory.cluster.mpi import oversubscribed
from theory.compressors import QSGD, Bucketed, Identity, ScaledSign, TopK, decode, encode
from theory.core.interrupts import wait
from theory.core.random import key
from theory.methods import ErrorFeedback, NoFeedback, ParallelSGD
from theory.methods.schedules import Constant
from theory.methods.theory_steps import DenseStepWarning
from theory.plots.appearance import COLUMN, number
from theory.problems import logistic
from theory.reporting.progress import track
from theory.studies.shared.curves import canvas, legend_below, looks
from theory.studies.shared.messages import TURNS, seconds_in_turn
from theory.studies.shared.report import OURS, Study, Table
from theory.studies.shared.verdicts import FAILS, HOLDS, OPEN, Statement, opposite

from .ranks import job

NAME = "benchmark-scale"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
FULL, LEVELS, SIGN, TOP = "full precision", "QSGD, 4 bits", "EF-sign", "EF, top 1 %"
DIMENSIONS, BATCHES, WORKERS = (4096, 16_384, 65_536, 262_144), (1, 16, 128), (2, 4, 8)  # the ends of all are fitted
NONZEROS, ROWS = 64, 2048
MODELS = ((47_236, 76, 64), (1_000_000, 1000, 64))  # coordinates, non-zeros of a row, rows of a batch: by the model
RANKS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)  # likewise
LONG = 262_144  # coordinates of the message whose coding is timed
SPELL, MOST_ROUNDS, REPEATS = 0.15, 2000, 5  # seconds of a run, its most rounds, runs of which the median counts
FIRST, ALONE = 20, 2000  # rounds of one rank that warm up, and those whose times are recorded


class Round(NamedTuple):
    """A measured round: what a rank did, its seconds, bytes of a message, and whether the model was fitted to it."""

    work: Work
    d: int
    batch: int
    workers: int
    seconds: float
    message_bytes: float
    fitted: bool


class Coded(NamedTuple):
    """Seconds a coordinate of coding one long message, and its bytes a coordinate."""

    encode: float
    decode: float
    bytes: float


def compressor_of(name: str, d: int) -> Any:
    """The compressor of a method for vectors of length d."""
    return {
        FULL: Identity(), LEVELS: Bucketed(QSGD(7), min(512, d)), SIGN: ScaledSign(), TOP: TopK(max(1, d // 100)),
    }[name]  # fmt: skip


def method_of(name: str, d: int, batch: int = 1) -> ParallelSGD:
    """A method that sends the whole gradient."""
    memory = ErrorFeedback() if name in (SIGN, TOP) else NoFeedback()
    return ParallelSGD(compressor_of(name, d), step=Constant(1e-3), batch=batch, feedback=memory)


def coding_of(name: str, turns: int) -> Coded:
    """Coding of a long Gaussian vector on one core; full precision is added, not coded."""
    v = np.random.default_rng(int(key(0, "scale"))).standard_normal(LONG, dtype=np.float32)
    c, stream = compressor_of(name, LONG), int(key(0, "scale", name))
    message = encode(c, v, stream)
    decode(message, dtype=np.float32)  # compiled before timing
    works = (lambda: encode(c, v, stream), lambda: decode(message, dtype=np.float32))
    taken = seconds_in_turn(works, turns).min(axis=0).tolist()
    own, all_ = (0.0, 0.0) if name == FULL else (taken[0] / LONG, taken[1] / LONG)
    return Coded(own, all_, len(message) / LONG)


def work_of(name: str, coded: Coded, d: int, batch: int, nonzeros: int, workers: int, ranks: int, size: float) -> Work:
    """What a rank does in a round; it has the symbols of its own messages, and decodes those of others."""
    here = workers // ranks
    coding = d * (here * coded.encode + (workers - here) * coded.decode)
    moved = exchanged(method_of(name, d), d, ranks=ranks, workers=workers, message_bytes=size)
    return Work(name, ranks, here * batch * nonzeros, here * d, d, coding, *moved)


def sparse_rows(d: int, nonzeros: int) -> Any:
    """Logistic regression with so many non-zeros in each row."""
    rng, count = np.random.default_rng(0), ROWS * nonzeros
    columns = (rng.integers(0, d // nonzeros, (ROWS, nonzeros)) + d // nonzeros * np.arange(nonzeros)).ravel()
    entries = rng.choice([-1.0, 1.0], count) / math.sqrt(nonzeros)
    X = sp.csr_matrix((entries, columns, np.arange(0, count + 1, nonzeros)), (ROWS, d))
    return logistic((X, np.where(rng.random(ROWS) < 0.5, -1.0, 1.0)), 1.0 / ROWS)


def measured(method: Any, problem: Any, workers: int, comm: Any, repeats: int) -> tuple[float, float]:
    """Seconds of a round, the slowest rank's, and bytes of a message: the median of some runs."""

    def once(rounds: int) -> tuple[float, float]:
        last = run(method, problem, workers=workers, steps=rounds, record_every=rounds, comm=comm).history[-1]
        seconds = float(last["seconds"]) / rounds
        every = np.empty(comm.Get_size())
        comm.Allgather(np.array([seconds]), every)
        return float(every.max()), float(last["message_bytes_up"]) / rounds

    once(2)
    rounds = int(min(MOST_ROUNDS, max(4, SPELL / once(4)[0])))
    taken = [once(rounds) for _ in range(repeats)]
    return float(np.median([seconds for seconds, _ in taken])), taken[0][1]


def collect(quick: bool, data: None, comm: Any) -> dict:
    """Rounds on the two ranks of ``comm``, and some on one of them."""
    sizes = ((512, 2048, 8192), (1, 4, 16), (2, 4)) if quick else (DIMENSIONS, BATCHES, WORKERS)
    dimensions, batches, workers = sizes
    turns, repeats = (3, 1) if quick else (TURNS, REPEATS)
    coding = {name: coding_of(name, turns) for name in (FULL, LEVELS, SIGN, TOP)}
    found, ends, own = [], [{axis[0], axis[-1]} for axis in sizes], comm.Split(comm.Get_rank())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DenseStepWarning)  # it is the cost that is measured
        for d in track(dimensions, "coordinates", here=comm.Get_rank() == 0):
            problem = sparse_rows(d, NONZEROS)
            for name, batch, N in product(coding, batches, workers):
                fitted = all(x in end for x, end in zip((d, batch, N), ends, strict=True))
                for many, among in ((2, comm), (1, own))[: 1 + fitted]:
                    if many == 2 or comm.Get_rank() == 0:
                        seconds, size = measured(method_of(name, d, batch), problem, N, among, repeats)
                        work = work_of(name, coding[name], d, batch, NONZEROS, N, many, size)
                        found.append([list(work), d, batch, N, seconds, size, fitted])
                wait(comm.Ibarrier())
        alone, problem = method_of(FULL, dimensions[1], batches[-1]), sparse_rows(dimensions[1], NONZEROS)
        history = run(alone, problem, workers=1, steps=FIRST + ALONE, record_every=1).history
    own.Free()
    times = np.diff(history["seconds"])[FIRST:].astype(np.float32)
    coded = {name: list(one) for name, one in coding.items()}
    return {"rounds": found, "coding": coded, "times": times, "oversubscribed": oversubscribed(comm)}


# --- what it says -----------------------------------------------------------------------------------------------------

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


def modelled(model: RoundModel, coding: dict[str, Coded]) -> list[Modelled]:
    """All methods on all networks, one worker on each rank."""
    found = []
    for network, numbers in NETWORKS.items():
        for d, nonzeros, batch in MODELS:
            for ranks in RANKS:
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

    def shorter(mine: float, full: float) -> str:  # of a model: by more than it errs
        return HOLDS if mine * factor < full else FAILS if mine > factor * full else OPEN

    return {n: shorter(at[method, n], at[FULL, n]) for name, n in at if name == method}


def stretches(some: list[int], every: tuple) -> str:
    """Some numbers of ranks, as they follow each other among all."""
    found: list[list[int]] = []
    for n in some:
        if found and every.index(n) == every.index(found[-1][-1]) + 1:
            found[-1].append(n)
        else:
            found.append([n])
    return ", ".join(f"{one[0]:,}" + (f" to {one[-1]:,}" if len(one) > 1 else "") for one in found) or "nowhere"


def report(rounds: list, coding: dict, times: Any, oversubscribed: bool) -> Study:
    """The study of these rounds."""
    rounds = [Round(Work(*one[0]), *one[1:]) for one in rounds]
    coding = {name: Coded(*one) for name, one in coding.items()}
    fitted, held = ([one for one in rounds if one.fitted == which] for which in (True, False))
    model = fit_rounds([one.work for one in fitted], [one.seconds for one in fitted], times)
    own, other = np.abs(errors(model, fitted)), np.abs(errors(model, held))
    each = {name: errors(model, [one for one in held if one.work.method == name]) for name in coding}
    rows, sent = modelled(model, coding), [name for name in coding if name != FULL]
    factors = {name: misjudged(model, held, name) for name in sent}
    slow, fast = next(iter(NETWORKS)), list(NETWORKS)[-1]
    first, last = RANKS[0], RANKS[-1]
    ds = [one[0] for one in MODELS]
    verdicts = {
        (network, d, name): shortens(rows, network, d, name, factors[name])
        for network, d, name in product(NETWORKS, ds, sent)
    }  # fmt: skip

    def trials(networks: Iterable[str], ranks: Iterable[int], which: Callable[[str], Any] = str) -> list[Any]:
        found = [which(verdicts[n, d, name][at]) for n in networks for d in ds for name in sent for at in ranks]
        return [] if oversubscribed else found

    def where(network: str) -> str:
        told = {
            (d, name): stretches([n for n, word in verdicts[network, d, name].items() if word == HOLDS], RANKS)
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
            f"On rounds of 2 ranks that were not fitted the model's median relative error is at most"
            f" {ALLOWED:.0%}, method by method.",
            [bool(np.median(np.abs(mine)) <= ALLOWED) for mine in each.values()] if not oversubscribed else [],
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
            trials([fast], RANKS, opposite),
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
            "Seconds of a round on 2 ranks: the model's error on rounds that were not fitted",
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
                ("network", "method", *(f"{n:,}" for n in RANKS[::3])),
                [
                    (network, name, *(
                        " + ".join(number(1e3 * one.parts[part]) for part in PARTS)
                        for n in RANKS[::3]
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
    dimensions, batches, workers = (sorted({one[k] for one in rounds}) for k in (1, 2, 3))
    setting = (
        f"Rounds of parallel SGD on 2 ranks{' that share cores' if oversubscribed else ''}: logistic regression with"
        f" {NONZEROS} non-zeros a row, d in {dimensions}, batches of {batches}, {workers} workers; the median of runs."
        " The model is fitted to those that have the least or the most of all three, which are measured on one rank,"
        f" too: {len(fitted)} of {len(rounds)}. Its terms: computing (a round, a non-zero, a coordinate of a worker, a"
        " coordinate), coding (own messages encoded, those of others decoded, times a factor), waiting (the largest of"
        " all ranks' delays, drawn from those that were measured), wire (start-ups, bytes, bytes added). It is the sum"
        " that is checked, not each term. For more ranks the wire has the assumed numbers of a network; each rank has"
        f" one worker and a core, and is late as one core of this machine was in {timed.size:,} rounds of"
        f" {1e6 * np.median(timed):.0f} us, of which the longest took {1e6 * timed.max():,.0f} us: a round of"
        f" {FULL}, d = {held[0].d:,}, waits for {late[first]} ranks and for {late[last]}. None is ever later than the"
        " longest of those that were measured, so that on many ranks waiting is too short. Nothing overlaps."
    )

    def draw() -> Any:
        look_of = looks(coding)
        with canvas(1, 1 + len(ds), 1.25 * COLUMN) as (figure, grid):
            check, *panels = grid[0]
            for name in coding:
                for group, face in ((fitted, None), (held, "none")):
                    mine = [one for one in group if one.work.method == name]
                    heights = [1e3 * model.total(one.work) for one in mine]
                    label = f"{name}, {'fitted' if group is fitted else 'held out'}"
                    look = look_of[name] | {"linestyle": "", "markerfacecolor": face, "markersize": 3}
                    check.plot([1e3 * one.seconds for one in mine], heights, label=label, **look)
            ends = [1e3 * min(one.seconds for one in rounds), 1e3 * max(one.seconds for one in rounds)]
            check.plot(ends, ends, color="0.4", linewidth=0.7, marker="", zorder=0)
            check.set(
                xscale="log",
                yscale="log",
                xlabel="measured, ms",
                ylabel="model, ms",
                title="a round, 2 ranks",
            )
            for axes, d in zip(panels, ds, strict=True):
                for k, name in enumerate(coding):
                    for network, dashes in zip(NETWORKS, ("-", "--", ":"), strict=True):
                        mine = [one for one in rows if (one.network, one.method, one.d) == (network, name, d)]
                        look = look_of[name] | {"linestyle": dashes, "markevery": 2, "markersize": 3}
                        heights, label = [1e3 * one.total for one in mine], network if k == 0 else None
                        axes.plot([one.ranks for one in mine], heights, label=label, **look)
                axes.set(xscale="log", yscale="log", xlabel="ranks (model)", title=f"d = {d:,} (model)")
                axes.set_ylabel("ms a round (model)")
            panels[0].legend(fontsize=6)
            legend_below(figure, check, 4, fontsize=6)
        return figure

    alt = "The model's milliseconds of a round against measured ones, and its milliseconds against ranks on networks"
    title = "A thousand ranks, on paper"
    return Study("scale", title, setting, {"rounds": rounds, "modelled": rows}, tables, said, draw, alt)


if __name__ == "__main__":
    job(collect)
