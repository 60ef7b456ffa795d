"""The tables of a record, as a string."""

from __future__ import annotations

import math
import textwrap

import numpy as np

from ..measure.crossings import common_goal, reached
from ..plots.text import bits, factor, number, seconds, text_table
from ..reporting.terminal import line_width
from .configuration import AXES
from .drawing import describe
from .records import Record, repetitions
from .theorems import Constants
from .variance_table import variance_text

HEAD = (
    ("", "", "bits", "bits", "saving", "saving", "", "grad", "code", "exch", "bound on", "this run"),
    ("method", "f - f*", "up", "down", "dense", "sparse", "rounds", "s", "s", "s", "E f - f*", "is"),
)


def report(record: Record) -> str:
    """The tables, with their assumptions above and below; as wide as the terminal, at most 120 columns."""
    constants = Constants(**record.experiment["constants"])
    runs = list(record.results.values())
    rows: list = []
    notes: dict = {}
    for label, run in record.results.items():
        if " #" in label and run["success"]:  # repetitions are in the table below
            continue
        up, dense, sparse = run["payload_bits_up"], 32.0 * constants.d * run["rounds"], 0.0
        for other in runs:
            if other["family"] == "sgd-sparse" and all(other[axis] == run[axis] for axis in AXES):
                sparse = other["payload_bits_up"] * run["rounds"] / max(1, other["rounds"])
        mark = notes.setdefault((run["verdict"], run["sentence"]), len(notes) + 1)
        rows.append(
            [
                run["title"] + ("" if run["success"] else " *"),
                number(run["gap"]),
                bits(up),
                bits(run["payload_bits_down"]),
                factor(dense / up if up else 0.0),
                factor(sparse / up if up else 0.0),
                f"{run['rounds']:,}",
                seconds(run["seconds_gradient"]),
                seconds(run["seconds_coding"]),
                seconds(run["seconds_exchange"]),
                number(run["bound"]),
                f"{run['verdict']} [{mark}]",
            ]
        )
    samples = sorted({run["samples"] for run in runs})
    least = f"{samples[0]:,} to " if samples[0] < samples[-1] else ""
    seen = f"{least}{samples[-1]:,} samples a method ({samples[-1] / constants.n:.1f} passes)"
    lines = [describe(record), f"{seen}, seed {record.experiment['seed']}", ""]
    lines.append(text_table(HEAD, rows, left=(0, 11)))
    foot = [
        f"f - f* is certified from above: f(x) - (f_opt - gap), f_opt = {constants.optimum:.12f}, "
        f"gap = {constants.certificate:.1e}; f(x_0) - f* = {constants.trivial:.4f}",
        "bits: payload of a worker, all rounds; down: those of all others, or their sum; saving: of bits up, against"
        " full precision, dense (32 bits a coordinate) and sparse (lossless, index + value)",
        "grad, code, exch: rank 0's seconds in gradients, coding and exchange, all rounds",
        "a bound holds for a mean over runs: one run can only be below or above it, and where the bound is above "
        "f(x_0) - f* it says nothing (vacuous); its constants hold where f(x) <= f(x_0), as at all evaluations here "
        "unless said otherwise",
    ]
    foot += [f"* {run['title']}: {run['message']}" for run in runs if not run["success"]]
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
        found = {}
        for column in ("payload_bits_up", "seconds"):
            places = (history[column] - history[column][0] for history in histories)
            found[column] = float(np.mean([reached(at, gap, goal) for at, gap in zip(places, gaps, strict=True)]))
        total = float(np.mean([history["seconds"][-1] for history in histories]))
        up, spent = found["payload_bits_up"], found["seconds"]
        rows.append(
            [
                record.results[labels[0]]["title"],
                bits(up) if math.isfinite(up) else "-",
                seconds(spent) if math.isfinite(spent) else "-",
                seconds(total),
            ]
        )
    near, times = f"to {number(goal)}", max(map(len, groups.values()))
    head = (("", "bits", "seconds", "seconds"), ("method", near, near, "in all"))
    drawn = f", means over {times} runs with different seeds" if times > 1 else ""
    said = f"until f - f* = {number(goal)}, which three quarters of them reach: bits of a worker, and seconds{drawn}"
    return "\n".join([text_table(head, rows), *textwrap.wrap(said, line_width(), subsequent_indent="    ")])
