"""The network model of a job, and its predicted exchange times beside those of a record."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ..plots.text import bits, number, text_table
from ..reporting.files import ConfigurationError
from .configuration import Cell, Configuration
from .records import Record
from .theorems import Constants

UNITS = {"alpha": ("us a message", 1e6), "beta": ("ns a byte sent", 1e9), "gamma": ("ns a byte added", 1e9)}


class Exchange(NamedTuple):
    """The exchange of one run: its kind, bytes per message, milliseconds of a round as measured and modelled."""

    title: str
    kind: str
    size: float
    measured: float
    model: float


def calibration_text(calibration: Any) -> str:
    """Alpha, beta and gamma with their intervals, the quality of the fit, and every measured time."""
    rows = []
    for (name, (unit, scale)), low, high in zip(UNITS.items(), calibration.low, calibration.high, strict=True):
        value = getattr(calibration.network, name)
        rows.append((name, number(scale * value), f"{number(scale * low)} to {number(scale * high)}", unit))
    a, b, c = calibration.network
    times = [_timed(s, s.starts * a + s.sent * b + s.added * c) for s in calibration.samples]
    lines = [
        f"{calibration.ranks} ranks",
        "",
        text_table([("", "", "95 % interval", "")], rows, left=(0, 3)),
        "",
        text_table([("call", "bytes", "measured, us", "model, us", "model/measured")], times),
        "",
        f"R^2 of the logarithms {calibration.r2:.3f}; median relative error {calibration.median_error:.0%}",
    ]
    if calibration.held_out:
        whole = [_timed(row, row.model) for row in calibration.held_out]
        error = np.median([abs(row.model / row.seconds - 1.0) for row in calibration.held_out])
        head = [("whole round", "bytes a message", "measured, us", "model, us", "model/measured")]
        said = f"median relative error on rounds of the exchange, which took no part in the fit: {error:.0%}"
        lines += ["", text_table(head, whole), "", said]
    if calibration.oversubscribed:
        lines.append(
            "more ranks than processors: they wait for each other's turns, which no start-up, byte or addition\n"
            "counts, so the model is out of its domain and its error is what it is"
        )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > (os.cpu_count() or 1):
        lines.append(
            f"this machine is busy (load average {load:.1f} on {os.cpu_count()} processors): waits for a processor\n"
            "are in the times, and in no term of the model"
        )
    return "\n".join(lines)


def _timed(row: Any, model: float) -> tuple[str, ...]:
    """The cells of what was timed."""
    times = number(1e6 * row.seconds), number(1e6 * model), number(model / row.seconds)
    return row.kind, f"{row.size:,}", *times


def compare_exchange(record: Record, network: Any) -> list[Exchange]:
    """The exchange of a round for every run of a record, measured on rank 0 and by the model.

    Raises
    ------
    ConfigurationError
        If the record was made without ranks: nothing was exchanged.
    """
    from ..cluster import round_seconds
    from ..methods.topology import reduced
    from .flagship import make_jobs

    ranks = record.experiment["ranks"]
    if ranks < 2:
        raise ConfigurationError(f"record: {record.folder} was made by one process; make one with mpirun")
    values = record.experiment["configuration"]
    configuration = Configuration.from_dict({k: v for k, v in values.items() if v is not None})
    constants = Constants(**record.experiment["constants"])
    fields = [{name: run[name] for name in Cell._fields[1:]} for run in record.results.values()]
    cells = [Cell(label, **values) for label, values in zip(record.results, fields, strict=True)]
    found = []
    for job in make_jobs(configuration, cells, constants):
        run = record.results[job.cell.label]
        if run["rounds"] == 0:
            continue
        low, high, _ = reduced(job.method, constants.d)
        size = 4.0 * (high - low) if high > low else run["message_bytes_up"] / run["rounds"]
        model = round_seconds(
            network, job.method, constants.d, ranks=ranks, workers=job.cell.workers, message_bytes=size
        )
        kind = "reduced" if high > low else "gathered"
        found.append(Exchange(job.title, kind, size, 1e3 * run["seconds_exchange"] / run["rounds"], 1e3 * model))
    return found


def exchange_text(rows: list[Exchange], oversubscribed: bool) -> str:
    """The table of :func:`compare_exchange`, and the model's error."""
    cells = [
        (row.title, row.kind, bits(8 * row.size), *map(number, (row.measured, row.model, row.model / row.measured)))
        for row in rows
    ]
    head = [("", "messages", "a message", "measured, ms", "model, ms", "model/measured")]
    error = np.median([abs(row.model / row.measured - 1.0) for row in rows])
    lines = [
        text_table(head, cells, left=(0, 1)),
        "",
        f"median relative error of the model: {error:.0%}",
        "measured: rank 0's seconds from its own message to everybody's; that it waits for the slowest rank and for a\n"
        "processor that others use is part of them, and no part of the model",
    ]
    if oversubscribed:
        lines.append("out of the model's domain: more ranks than processors")
    return "\n".join(lines)
