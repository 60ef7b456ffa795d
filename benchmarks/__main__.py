"""``python -m benchmarks [NAME ...] [--quick] [--data FILE]``: measure, print the table, write it to the docs.

``python -m benchmarks compile [--quick] [--lectures]`` does the same for what a first run compiles, ``growth`` for how
seconds and memory grow, ``whole`` for seconds to an accuracy, ``full-size`` for all of RCV1's rows,
``full-size-ranks`` for methods on them on eight ranks, ``scale`` for a model of a round on a thousand ranks: each in
tables of its own, all but the first with a figure.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from theory import Dataset, load_data
from theory.plots import save_figure
from theory.reporting.json_values import write_record
from theory.studies.shared.report import as_markdown, as_text, drawn

from . import (
    coding,
    compiling,
    diversity,
    epochs,
    feedback,
    full_size,
    full_size_ranks,
    gossip,
    growth,
    lock_free,
    ranks,
    replicas,
    report,
    scale,
    waits,
    whole,
)

FILE, COLUMNS = "rcv1_subsets_binary.svm.bz2", 47_236
BENCHMARKS = {
    "plain": epochs.plain,
    "memsgd": epochs.memsgd,
    "lockfree": lock_free.lock_free,
    "coding": coding.coding,
    "feedback": feedback.feedback,
    "replicas": replicas.replicas,
    "diversity": diversity.batch_bounds,
    "exchange": ranks.exchange,
    "overlap": ranks.overlap,
    "gossip": gossip.gossip,
    "flagship": ranks.flagship,
    "waits": waits.waits,
}
COMPILE, GROWTH, WHOLE, FULL = "compile", "growth", "whole", full_size.COMMAND
STUDIES = {"full-size-ranks": (full_size_ranks, 8), "scale": (scale, 2)}  # each on so many ranks
ALONE = (COMPILE, GROWTH, WHOLE, FULL, *STUDIES)  # tables by themselves
TURNS, QUICK_TURNS = 15, 5


class Given(NamedTuple):
    """What every benchmark gets: the data, the file they came from (None: the twin), how many turns to take."""

    data: Dataset
    path: Path | None
    turns: int


def find_data(given: Path | None) -> tuple[Dataset, Path | None]:
    """The file that was given, else the real one where there is one, else the twin."""
    folder = Path(os.environ.get("THEORY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    path = given or (folder / FILE if (folder / FILE).is_file() else None)
    if path is None:
        return load_data("rcv1-like"), None
    return load_data(path, n_features=COLUMNS if path.name == FILE else None), path.resolve()


def compile_table(quick: bool, lectures: bool) -> int:
    """The table of what a first run compiles."""
    rows = []
    for row in compiling.compiling(quick, lectures):
        rows.append(row)
        print("  " + "  ".join(filter(None, report.cells(row))), file=sys.stderr, flush=True)
    text = report.compile_table(rows)
    print(f"\n{text}\n\n{report.machine()}")
    if quick:
        print(f"not written to {report.PAGE.name}: that takes all of it, without --quick")
    else:
        report.write(f"Machine: {report.machine()}.\n\n{text}", name=COMPILE)
        print(f"written: docs/{report.PAGE.name}")
    return 0


def growth_table(quick: bool) -> int:
    """The table of slopes, and its figure."""
    rows = [growth.HEAD, *map(growth.cells, growth.growth(quick))]
    return _own_table(GROWTH, report.plain_table(rows), quick)


def whole_table(data: Path | None, quick: bool) -> int:
    """The table of seconds to an accuracy, and its figure."""
    found = whole.whole(find_data(data)[0], quick)
    about = f"Data: {found['data']}, n = {found['n']:,}, d = {found['d']:,}.  "
    return _own_table(WHOLE, report.plain_table(whole.table(found)), quick, about)


def full_tables(quick: bool) -> int:
    """The tables of data of full size, and the figure."""
    found = full_size.full(quick)
    told = found["whole"]
    about = f"Data: {told['data']}, n = {told['n']:,}, d = {told['d']:,}, {found['entries']:,} non-zeros.  "
    text = "\n\n".join(map(report.plain_table, full_size.tables(found)))
    return _own_table(FULL, text, quick, about, full_size_ranks.PAGE)


def study_tables(name: str, data: Path | None, quick: bool) -> int:
    """Tables, statements and the figure of what is measured on ranks; its record lies beside it, except if quick."""
    (module, n), begin = STUDIES[name], time.perf_counter()
    found = ranks.measured(module, 2 if quick else n, quick, data)
    seconds, study = time.perf_counter() - begin, module.report(**found)
    print(f"{as_text(study)}\n\n{report.machine()}")
    if quick:
        print(f"not written to {module.PAGE.name}: that takes all of it, without --quick")
        return 0
    write_record(whole.FIGURES, module.NAME, {"benchmark": name, "seed": 0}, seconds, found)
    save_figure(drawn(study), Path(whole.FIGURES) / module.NAME)
    report.write(as_markdown(study, f"../figures/{module.NAME}.png"), module.PAGE, name)
    print(f"written: docs/{module.PAGE.name}")
    return 0


def _own_table(name: str, text: str, quick: bool, about: str = "", page: Path = report.PAGE) -> int:
    print(f"\n{text}\n\n{report.machine()}")
    if quick:
        print(f"not written to {page.name}: that takes all of it, without --quick")
    else:
        report.write(f"{about}Machine: {report.machine()}.\n\n{text}", page, name)
        print(f"written: docs/{page.name}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure ratios in turn (A B A B ...); print the table; write docs/performance.md.",
        epilog="example: python -m benchmarks memsgd --quick",
    )
    parts = f"a part of it: {', '.join(BENCHMARKS)}; or one of {', '.join(ALONE)}, by itself"
    parser.add_argument("names", nargs="*", metavar="NAME", help=parts)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_TURNS} turns instead of {TURNS}; no page")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help=f"LIBSVM file; by default {FILE} in $THEORY_DATA, else the synthetic twin",
    )
    parser.add_argument(
        "--lectures", action="store_true", help=f"with {COMPILE}: every lecture from an empty cache, too"
    )
    options = parser.parse_args(arguments)
    if COMPILE in options.names or options.lectures:
        if options.names != [COMPILE]:
            parser.error(f"{COMPILE} is a table by itself: python -m benchmarks {COMPILE} [--quick] [--lectures]")
        return compile_table(options.quick, options.lectures)
    for name in options.names:
        if name in ALONE and options.names != [name]:
            parser.error(f"{name} is a table by itself: python -m benchmarks {name} [--quick]")
    if options.names == [GROWTH]:
        return growth_table(options.quick)
    if options.names == [WHOLE]:
        return whole_table(options.data, options.quick)
    if options.names == [FULL]:
        return full_tables(options.quick)
    if options.names and options.names[0] in STUDIES:
        return study_tables(options.names[0], options.data, options.quick)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(BENCHMARKS)}")
    (data, path), rows = find_data(options.data), []
    given = Given(data, path, QUICK_TURNS if options.quick else TURNS)
    print(f"data: {data.name}, n = {data.n:,}, d = {data.d:,}", flush=True)
    for name in options.names or BENCHMARKS:
        for row in BENCHMARKS[name](given):
            rows.append(row)
            print("  " + "  ".join(filter(None, report.cells(row))), file=sys.stderr, flush=True)
    text = report.table(rows)
    print(f"\n{text}\n\n{report.machine()}")
    if options.quick or options.names:
        print(f"not written to {report.PAGE.name}: that takes all of it, without --quick")
    else:
        about = f"Data: {data.name}, n = {data.n:,}, d = {data.d:,}.  Machine: {report.machine()}."
        report.write(f"{about}\n\n{text}")
        print(f"written: docs/{report.PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
