"""The tables and the figure of a record, with the exchange times that a network model predicts.

The exchange times of the network model are shown beside those of the record.  The table of gradients and messages has
variance and diversity at both ends of a run, and the variance added by its compressor.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..measure.slopes import common_goal, reached
from ..methods.theorems import Constants, Theorem, Verdict, judge
from ..plots.appearance import bits, factor, mean_text, number, seconds, text_table
from ..reporting.files import ConfigurationError
from ..reporting.progress import line_width
from .records import AXES, Cell, Configuration, Record, repetitions

# --- The network model of a job --------------------------------------------------------------------------------------

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
            "counts, so the model does not apply and its error has no meaning"
        )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > (os.cpu_count() or 1):
        lines.append(
            f"this machine is busy (load average {load:.1f} on {os.cpu_count()} processors): waits for a processor\n"
            "are in the times, and in no term of the model"
        )
    return "\n".join(lines)


def _timed(row: Any, model: float) -> tuple[str, ...]:
    """The cells of the timed rounds."""
    times = number(1e6 * row.seconds), number(1e6 * model), number(model / row.seconds)
    return row.kind, f"{row.size:,}", *times


def compare_exchange(record: Record, network: Any, make_jobs: Callable[..., list[Any]]) -> list[Exchange]:
    """The exchange of a round for every run of a record, measured on rank 0 and by the model.

    ``make_jobs`` makes methods of its cells, as :func:`theory.experiment.flagship.make_jobs` does.

    Raises
    ------
    ConfigurationError
        If the record was made without ranks: nothing was exchanged.
    """
    from ..cluster import round_seconds
    from ..methods.topology import reduced

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


# --- The tables of a record, as a string -----------------------------------------------------------------------------

HEAD = (
    ("", "", "bits", "bits", "saving", "saving", "", "grad", "code", "exch", "bound on", "{what}"),
    ("method", "f - f*", "up", "down", "dense", "sparse", "rounds", "s", "s", "s", "E f - f*", "is"),
)


def _mean(runs: list[dict], name: str) -> float:
    return float(np.mean([run[name] for run in runs]))


def _verdict(runs: list[dict], constants: Constants) -> Verdict:
    """The recorded verdict of a run, or that of the mean of several runs."""
    if len(runs) == 1:
        bound = math.nan if runs[0]["bound"] is None else runs[0]["bound"]
        return Verdict(runs[0]["verdict"], bound, runs[0]["sentence"])
    gap, largest = (np.array([run[name] for run in runs], float) for name in ("gap", "largest_f"))  # None is NaN
    theorem = Theorem(**runs[0]["theorem"])
    return judge(
        theorem, runs[0]["taken"], gap.mean(), constants.trivial, largest.max(), constants.start, runs=len(runs)
    )


def report(record: Record) -> str:
    """The tables, with their assumptions above and below; they are as wide as the terminal, at most 120 columns."""
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


# --- The table of gradients and messages -----------------------------------------------------------------------------

VARIANCE_HEAD = (
    ("", "sigma^2", "B_D", "largest", "batch", "error of a message", "", ""),
    ("method", "at the end", "at the end", "batch", "used", "measured", "stated", ""),
)


def gradient_numbers(problem: Any, x: ArrayLike, comm: Any = None) -> dict:
    """sigma^2, B_D and the largest batch without loss at a point, if these are finite; every rank takes its rows."""
    from ..bounds.batches.limits import largest_batch
    from ..problems import batch_bound, gradient_variance

    bound, variance = batch_bound(problem, x, comm), gradient_variance(problem, x, comm)
    if not math.isfinite(variance):  # far out, where squares overflow
        return {}
    return {"variance": variance, "B_D": bound, "largest_batch": largest_batch(bound)}


def compression_ratio(result: Any) -> float:
    """The sum of ||p - Q(p)||^2 over that of ||p||^2, over the messages that were measured; NaN if none were."""
    found = result.compression_error[1:]
    whole = float(np.nansum(found["vector"]))  # no message, no number
    return float(np.nansum(found["error"])) / whole if whole > 0.0 else math.nan


def stated_ratio(compressor: Any, d: int) -> tuple[float, str]:
    """The largest ratio that a compressor states, in expectation: omega if it is unbiased, else 1 - delta."""
    from ..compressors import delta, omega

    for name, ratio in (("omega", lambda: omega(compressor, d)), ("1 - delta", lambda: 1.0 - delta(compressor, d))):
        try:
            return float(ratio()), name
        except TypeError:
            continue
    return math.nan, ""


def variance_text(record: Any) -> str:
    """The table; empty for a record without these numbers."""
    from .records import repetitions

    groups = [[record.results[label] for label in labels] for labels in repetitions(record).values()]
    groups = [runs for runs in groups if all(run.get("at_end") for run in runs)]
    start = record.experiment.get("at_start")
    if not groups or not start:
        return ""
    rows = [
        [
            run["title"],
            *(mean_text([one["at_end"][name] for one in runs], number) for name in ("variance", "B_D")),
            mean_text([one["at_end"]["largest_batch"] for one in runs], number),
            f"{run['workers'] * run['batch']:,}",
            mean_text([one["compression_measured"] for one in runs], number),
            number(run["compression_stated"]),
            run["compression_constant"],
        ]
        for runs in groups
        for run in runs[:1]
    ]
    times = max(map(len, groups))
    foot = [
        f"at the start: sigma^2 = {number(start['variance'])}, B_D = {number(start['B_D'])}, largest batch = "
        f"{number(start['largest_batch'])}; sigma^2: (1/n) sum ||grad f_i - grad f||^2; B_D: M^2/||grad f||^2; "
        "largest batch: B_D + 1, up to which mini-batch SGD loses at most a factor of 1.5 (bounds.largest_batch)",
        "error of a message: the sum of ||p - Q(p)||^2 over that of ||p||^2, over all workers' messages in the rounds "
        "before the evaluations, beside its bound in expectation, the compressor's omega or 1 - delta",
    ]
    if times > 1:
        foot.insert(0, f"means over {times} runs ± half of their 95 % intervals")
    lines = [text_table(VARIANCE_HEAD, rows, left=(0, 7))]
    for text in foot:
        lines += textwrap.wrap(text, line_width(), subsequent_indent="    ")
    return "\n".join(lines)


# --- The figure of a record ------------------------------------------------------------------------------------------

LARGE = 3.4  # inches: the height of a panel


def describe(record: Record) -> str:
    """The line above tables and figures: data, problem and number of workers."""
    e = record.experiment
    data, c = e["data"], Constants(**e["constants"])
    workers = sorted({r["workers"] for r in record.results.values()})
    batch = sorted({r["batch"] for r in record.results.values()})
    return (
        f"{data['name']}: n = {data['n']:,}, d = {data['d']:,}, {e['problem'].lower()}, l2 = {c.l2:.3g}; "
        f"{' or '.join(map(str, workers))} workers on {e['ranks']} rank{'s' if e['ranks'] > 1 else ''}, "
        f"batch {' or '.join(map(str, batch))}"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def _setting(record: Record) -> str:
    """A phrase for what a figure shows."""
    e, workers = record.experiment, {run["workers"] for run in record.results.values()}
    by = f" with {_counted(max(workers), 'worker')}" if len(workers) == 1 else ""
    return f"{e['problem'].lower()} loss on {e['data']['name']}{by}"


def shared_cores(record: Record) -> str:
    """A remark on the times of a record whose ranks had to share processors; otherwise empty."""
    e = record.experiment
    if not e.get("oversubscribed"):
        return ""
    return (
        f"; {e['ranks']} ranks share the {e['cores']} cores of rank 0's machine, so that exch is mostly waiting for "
        "ranks that do not run"
    )


def figure_of(record: Record) -> Any:
    """The figure of a record."""
    from ..plots import Curve, draw_panels

    constants = Constants(**record.experiment["constants"])
    curves: list[Curve] = []
    without: dict[str, list[str]] = {}
    for first, *others in repetitions(record).values():
        result, theorem = record.results[first], Theorem(**record.results[first]["theorem"])
        covered = theorem.function and result["verdict"] != "not covered"
        if not covered:
            without.setdefault(result["sentence"], []).append(result["title"])
        repeated = tuple(record.histories[other] for other in others)
        bound = cache(theorem.__call__) if covered else None
        curves.append(Curve(result["title"], record.histories[first], bound, repeated))
    runs = "curves are means" if any(curve.others for curve in curves) else "curves are one run each"
    bounds = " and, dotted, bounds" * any(curve.bound is not None for curve in curves)
    return draw_panels(
        curves,
        constants.lower,
        title=f"Measured curves{bounds}: {_setting(record)}",
        start=constants.trivial,
        notes=[
            f"{describe(record)}; time is that of rank 0{shared_cores(record)}",
            *(f"no bound for {'; '.join(titles)}: {why}" for why, titles in without.items()),
            f"f* is at least {constants.lower:.12g} (certificate {constants.certificate:.1e}); bounds are on means, "
            f"{runs}",
        ],
        panels=("bits", "seconds"),
        height=LARGE,
    )


def draw_record(
    record: Record, folder: str | Path | None = None, formats: Sequence[str] = ("png", "pdf")
) -> list[Path]:
    """Write the figure of a record into its folder, or another one, once for each format."""
    from ..plots import save_figure

    return save_figure(figure_of(record), Path(folder or record.folder) / "figure", formats)
