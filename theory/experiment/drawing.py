"""The figure of a record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .records import Record, repetitions
from .theorems import Constants, Theorem

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
    """What a figure shows, for a sentence."""
    e, workers = record.experiment, {run["workers"] for run in record.results.values()}
    by = f" with {_counted(max(workers), 'worker')} on {_counted(e['ranks'], 'rank')}" if len(workers) == 1 else ""
    return f"{e['problem'].lower()} loss on {e['data']['name']}{by}"


def shared_cores(record: Record) -> str:
    """What is said of the times of a record whose ranks had to share processors, or nothing."""
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
    return draw_panels(
        curves,
        constants.lower,
        title=f"{_counted(len(curves), 'method')} minimise{'s' * (len(curves) == 1)} {_setting(record)}.",
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
