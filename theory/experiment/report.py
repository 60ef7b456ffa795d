"""The table of a record, as text."""

from __future__ import annotations

import textwrap

from .drawing import describe
from .records import Record
from .table import WIDTH, bits, factor, number, seconds, text_table
from .theorems import Constants

HEAD = (
    ("", "", "a worker's bits", "", "saving vs", "", "", "seconds", "", "", "bound on", ""),
    ("method", "f - f*", "up", "down", "dense", "sparse", "rounds", "grad", "coding", "exch", "E f - f*", "this run"),
)


def report(record: Record) -> str:
    """The table, with what it rests on above and below; at most 120 columns wide."""
    constants = Constants(**record.experiment["constants"])
    runs = list(record.results.values())
    rows, notes = [], {}
    for run in runs:
        dense = 32.0 * constants.d * run["rounds"]
        sparse = next((r["payload_bits_up"] * run["rounds"] / max(1, r["rounds"]) for r in runs
                       if r["family"] == "sgd-sparse" and all(r[a] == run[a] for a in ("workers", "batch"))), None)  # fmt: skip
        up = run["payload_bits_up"]
        mark = notes.setdefault((run["verdict"], run["sentence"]), len(notes) + 1)
        rows.append([
            run["title"] + ("" if run["success"] else " *"), number(run["gap"]), bits(up), bits(run["payload_bits_down"]),
            factor(dense / up if up else 0.0), factor(sparse / up if up and sparse else 0.0), f"{run['rounds']:,}",
            seconds(run["seconds_gradient"]), seconds(run["seconds_coding"]), seconds(run["seconds_exchange"]),
            number(run["bound"]), f"{run['verdict']} [{mark}]",
        ])  # fmt: skip
    samples = sorted({run["samples"] for run in runs})
    seen = f"{samples[-1]:,} samples a method ({samples[-1] / constants.n:.1f} passes)"
    lines = [describe(record), f"{seen}, seed {record.experiment['seed']}", ""]
    lines.append(text_table(HEAD, rows, left=(0, 11)))
    foot = [
        f"f - f* is certified from above: f(x) - (f_opt - gap), f_opt = {constants.optimum:.12f}, "
        f"gap = {constants.certificate:.1e}; f(x_0) - f* = {constants.trivial:.4f}",
        "bits: payload of all rounds; down: the messages of all other workers; saving: of bits up; "
        "dense: 32 bits a coordinate, sparse: lossless index + value",
        "seconds: rank 0's, all steps; a bound holds for a mean over runs, so one run is only below or above it",
    ]
    foot += [f"* {run['title']}: {run['message']}" for run in runs if not run["success"]]
    foot += [f"[{mark}] {sentence}" for (_, sentence), mark in notes.items()]
    for text in foot:
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="    ")
    return "\n".join(lines)
