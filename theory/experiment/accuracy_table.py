"""Bits and seconds to one accuracy, for each method of a record: means over its repetitions."""

from __future__ import annotations

import textwrap

from ..measure.crossings import common_goal, reached
from ..plots.text import bits, mean_text, number, seconds, text_table
from ..reporting.terminal import line_width
from .records import Record
from .theorems import Constants


def repetitions(record: Record) -> dict[str, list[str]]:
    """The labels of the runs that differ in their seed alone, by the label of the first."""
    found: dict[str, list[str]] = {}
    for label in record.results:
        found.setdefault(label.partition(" #")[0], []).append(label)
    return found


def goal_table(record: Record) -> str:
    """The table as a string; empty if no method succeeded.

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
