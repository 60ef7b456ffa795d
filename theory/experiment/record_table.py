"""The tables of a record, as a string."""

from __future__ import annotations

import math
import textwrap

import numpy as np

from ..measure.crossings import common_goal, reached
from ..plots.text import bits, factor, mean_text, number, seconds, text_table
from ..reporting.terminal import line_width
from .configuration import AXES
from .drawing import describe, shared_cores
from .records import Record, repetitions
from .theorems import Constants, Theorem, Verdict, judge
from .variance_table import variance_text

HEAD = (
    ("", "", "bits", "bits", "saving", "saving", "", "grad", "code", "exch", "bound on", "{what}"),
    ("method", "f - f*", "up", "down", "dense", "sparse", "rounds", "s", "s", "s", "E f - f*", "is"),
)


def _mean(runs: list[dict], name: str) -> float:
    return float(np.mean([run[name] for run in runs]))


def _verdict(runs: list[dict], constants: Constants) -> Verdict:
    """The verdict of a run as it was recorded, or that of the mean of several."""
    if len(runs) == 1:
        bound = math.nan if runs[0]["bound"] is None else runs[0]["bound"]
        return Verdict(runs[0]["verdict"], bound, runs[0]["sentence"])
    gap, largest = (np.array([run[name] for run in runs], float) for name in ("gap", "largest_f"))  # None is NaN
    theorem = Theorem(**runs[0]["theorem"])
    return judge(
        theorem, runs[0]["taken"], gap.mean(), constants.trivial, largest.max(), constants.start, runs=len(runs)
    )


def report(record: Record) -> str:
    """The tables, with their assumptions above and below; as wide as the terminal, at most 120 columns."""
    constants = Constants(**record.experiment["constants"])
    runs = list(record.results.values())
    rows: list = []
    notes: dict = {}
    steps: dict = {}
    groups = [[record.results[label] for label in labels] for labels in repetitions(record).values()]
    times = max(map(len, groups))
    for several in groups:
        run, failed = several[0], [one for one in several if not one["success"]]
        up, dense, sparse = _mean(several, "payload_bits_up"), 32.0 * constants.d * run["rounds"], 0.0
        for other in runs:
            if other["family"] == "sgd-sparse" and all(other[axis] == run[axis] for axis in AXES):
                sparse = other["payload_bits_up"] * run["rounds"] / max(1, other["rounds"])
        verdict = _verdict(several, constants)
        mark = notes.setdefault((verdict.word, verdict.sentence), len(notes) + 1)
        if run.get("step"):
            steps.setdefault(f"step {run['step']}, {run['step_origin']}", []).append(run["title"])
        rows.append(
            [
                run["title"] + (" *" if failed else ""),
                mean_text([one["gap"] for one in several], number),
                bits(up),
                bits(_mean(several, "payload_bits_down")),
                factor(dense / up if up else 0.0),
                factor(sparse / up if up else 0.0),
                f"{run['rounds']:,}",
                *(seconds(_mean(several, f"seconds_{name}")) for name in ("gradient", "coding", "exchange")),
                number(verdict.bound),
                f"{verdict.word} [{mark}]",
            ]
        )
    samples = sorted({run["samples"] for run in runs})
    least = f"{samples[0]:,} to " if samples[0] < samples[-1] else ""
    seen = f"{least}{samples[-1]:,} samples a method ({samples[-1] / constants.n:.1f} passes)"
    drawn = f"; means over {times} runs, f - f* ± half of its 95 % interval" if times > 1 else ""
    lines = [describe(record), f"{seen}, seed {record.experiment['seed']}{drawn}", ""]
    what = "this run" if times == 1 else "the mean"
    lines.append(text_table([[part.format(what=what) for part in line] for line in HEAD], rows, left=(0, 11)))
    foot = [
        f"f - f* is certified from above: f(x) - (f_opt - gap), f_opt = {constants.optimum:.12f}, "
        f"gap = {constants.certificate:.1e}; f(x_0) - f* = {constants.trivial:.4f}",
        "bits: payload of a worker, all rounds; down: those of all others, or their sum; saving: of bits up, against"
        " full precision, dense (32 bits a coordinate) and sparse (lossless, index + value)",
        "grad, code, exch: rank 0's seconds in gradients, coding and exchange, all rounds" + shared_cores(record),
        *(f"{step}: {', '.join(titles)}" for step, titles in steps.items()),
        *([record.experiment["unequal"]] if record.experiment.get("unequal") else []),
        "a bound holds for a mean over runs: one run can only be below or above it, and where the bound is above "
        "f(x_0) - f* it says nothing (vacuous); its constants hold where f(x) <= f(x_0), as at all evaluations here "
        "unless said otherwise",
    ]
    foot += [
        f"* {run['title']}{label.partition(' #')[1] and f', run {label.rpartition(chr(35))[2]}'}: {run['message']}"
        for label, run in record.results.items()
        if not run["success"]
    ]
    foot += [f"[{mark}] {sentence}" for (_, sentence), mark in notes.items()]
    for text in foot:
        lines += textwrap.wrap(text, line_width(), subsequent_indent="    ")
    for more in (goal_table(record), variance_text(record)):
        lines += ["", more] if more else []
    return "\n".join(lines)


def goal_table(record: Record) -> str:
    """Bits and seconds to one accuracy, means over repetitions, as a table; empty if no method succeeded.

    Parameters
    ----------
    record : Record

    Returns
    -------
    str
    """
    constants, groups = Constants(**record.experiment["constants"]), repetitions(record)
    ends = []
    for labels in groups.values():
        runs = [record.results[label] for label in labels]
        if all(run["success"] and run["gap"] is not None for run in runs):
            ends.append(max(run["gap"] for run in runs))
    if not ends:
        return ""
    goal, rows = common_goal(ends), []
    for labels in groups.values():
        histories = [record.histories[label] for label in labels]
        gaps = [history["f"] - constants.lower for history in histories]
        row = [record.results[labels[0]]["title"]]
        for column, text in (("payload_bits_up", bits), ("seconds", seconds)):
            places = (history[column] - history[column][0] for history in histories)
            row.append(mean_text([reached(at, gap, goal) for at, gap in zip(places, gaps, strict=True)], text))
        rows.append([*row, mean_text([history["seconds"][-1] for history in histories], seconds)])
    near, times = f"to {number(goal)}", max(map(len, groups.values()))
    head = (("", "bits", "seconds", "seconds"), ("method", near, near, "in all"))
    drawn = f", means over {times} runs ± half of their 95 % intervals" if times > 1 else ""
    said = f"until f - f* = {number(goal)}, which three quarters of them reach: bits of a worker, and seconds{drawn}"
    return "\n".join([text_table(head, rows), *textwrap.wrap(said, line_width(), subsequent_indent="    ")])
