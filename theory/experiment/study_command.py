"""The commands ``study``, ``figures`` and ``shard``, and their arguments.

``study`` runs experiments that are studies, one after the other or shared by ranks.  ``shard`` writes a file, or
synthetic data of full size, to a folder that ranks map.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from ..reporting.files import ConfigurationError, RecordError, find_toml, read_toml
from ..reporting.json_values import hint
from ..reporting.progress import Progress
from .command_parser import PROGRAM, Parser, add_config_flag, check_folder, parser_of, say
from .ranks import from_root, shared_out
from .records import read_record

# --- The commands ``study`` and ``figures`` --------------------------------------------------------------------------


def study(argv: list[str], comm: Any) -> int:
    """The command ``study``; its exit code."""
    text = (
        "Run studies: statements of lectures and papers on compressors in training, measured, with tables, a figure\n"
        "and a verdict on each.  `run --config NAME` does the same for one."
    )
    parser = parser_of("study", text, f"{PROGRAM} study ternary-dimension --figures figures")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="studies, or files: my.py with one, my.toml (default: all); see `list`"
    )
    _study_flags(parser)
    options = parser.parse_args(argv)
    from ..studies.shared.configuration import chosen, experiment_of

    try:
        experiments = [experiment_of(name) for name in chosen(options.names)]
    except ConfigurationError as error:
        parser.error(str(error))
    return _run_studies(parser, options, experiments, comm)


def study_in(argv: list[str], parser: Parser) -> Any:
    """The study given by ``--config``; None if it is not a study."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    early.add_argument("--config")
    try:
        path = early.parse_known_args(argv)[0].config
        if path is None or "study" not in read_toml(find_toml(path)):
            return None
        from ..studies.shared.configuration import StudyConfiguration

        return StudyConfiguration.from_toml(path)
    except argparse.ArgumentError:
        return None  # the full parser reports the error
    except ConfigurationError as error:
        parser.error(hint(path) or str(error))


def run_study(argv: list[str], experiment: Any, comm: Any) -> int:
    """The command ``run`` for the configuration of a study; its exit code."""
    parser = parser_of("run", f"Run the study {experiment.study}.", f"{PROGRAM} run --config {experiment.name} --quick")
    add_config_flag(parser)
    _study_flags(parser)
    return _run_studies(parser, parser.parse_args(argv), [experiment], comm)


def _study_flags(parser: Any) -> None:
    add = parser.add_argument
    add("--quick", action="store_true", help="smaller problems, fewer methods")
    add("--seed", type=int, metavar="S", help="seed (default: 0)")
    add("--data", metavar="NAME", help="data in place of RCV1 in two classes: a name or a LIBSVM file")
    add("--topics", metavar="FILE", help="the multi-label file of RCV1 (default: the one in the folder THEORY_DATA)")
    add("--figures", metavar="FOLDER", help="write a figure of each study into this folder, as PNG and PDF")
    add("--markdown", metavar="FOLDER", help="write a page of each study into this folder, NAME.md, and draw figures")


def _run_studies(parser: Parser, options: Any, experiments: Any, comm: Any) -> int:
    """Check the flags, which override the files of the experiments, and run."""
    from ..studies.shared.configuration import GIVEN, takes

    given = {name: getattr(options, name) for name in GIVEN if getattr(options, name) is not None}
    if not 0 <= given.get("seed", 0) < 2**62:
        parser.error(f"--seed: got {options.seed}, allowed: 0 to 2**62 - 1")
    taken = {experiment.name: takes(experiment.study) for experiment in experiments}
    for name in given:
        without = ", ".join(one for one, held in taken.items() if name not in held)
        if all(name not in held for held in taken.values()):
            parser.error(f"--{name}: {without} would ignore it, as collect has no parameter {name}")
        if without and Parser.speaks:
            say(f"--{name}: ignored by {without}, whose collect has no parameter {name}")
    experiments = [e._replace(**{k: v for k, v in given.items() if k in taken[e.name]}) for e in experiments]
    for experiment in experiments:
        if experiment.topics and not os.path.isfile(experiment.topics):
            parser.error(f"--topics: there is no file {experiment.topics}")
    check_folder(parser, markdown=options.markdown)
    from ..cluster import abort_on_error
    from ..data import NAMES, DataError, load_data

    try:
        for data in {experiment.data for experiment in experiments} - {None, *NAMES}:
            if Parser.speaks:
                load_data(data)
        if options.figures:
            os.makedirs(options.figures, exist_ok=True)
    except (DataError, OSError) as error:
        parser.error(str(error))
    with abort_on_error(comm):
        try:
            return study_all(experiments, options.quick, options.figures, options.markdown, say, comm)
        except ConfigurationError as error:
            parser.error(str(error))


def figures(argv: list[str], comm: Any) -> int:
    """The command ``figures``; its exit code."""
    text = (
        "Draw the figures of a folder again, as PNG and PDF: from the records beside them, which takes seconds.\n"
        "Without a record, or with --fresh, what a figure shows is measured first and leaves a record.\n"
        "A figure's name is that of its file; a study's name stands for all of its figures."
    )
    parser = parser_of("figures", text, f"{PROGRAM} figures study-spectrum flagship --figures figures")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="figures, studies, or your own files: my.py, my.toml (default: all)")
    add("--list", action="store_true", help="list the source of each figure without drawing")
    add("--fresh", action="store_true", help="measure again, even if there is a record")
    add(
        "--figures",
        default="figures",
        metavar="FOLDER",
        help="folder of figures and their records (default: %(default)s)",
    )
    add("--record", metavar="PATH", help="draw one figure from this record; for `flagship` also a folder in runs/")
    add("--tables", action="store_true", help="also show the tables and statements of studies")
    add("--markdown", metavar="FOLDER", help="write a page of each study into this folder, NAME.md")
    options = parser.parse_args(argv)
    from ..cluster import abort_on_error
    from ..reporting.json_values import read_record as read_figure
    from ..reporting.json_values import write_record
    from .figures import chosen, draw_figures, flagship_found, known_figures, own_records, plan_text, records_of
    from .ranks import from_root

    check_folder(parser, markdown=options.markdown)
    try:
        figures = chosen(options.names, options.figures, options.record)
        if options.record and (len(figures) != 1 or options.fresh):
            parser.error("--record: allowed with the name of one figure, and without --fresh")
        if options.record and os.path.isdir(options.record):
            if figures[0].name != "flagship":
                parser.error(f"--record: got a folder, allowed: a file for {figures[0].name}")
            record = read_record(options.record)
            how = {"configuration": "of a record"}
            spent = sum(run["seconds"] for run in record.results.values())
            if Parser.speaks and not options.list:
                write_record(options.figures, "flagship", how, spent, flagship_found(record))
            options.record = None
        own = own_records(options.figures, known_figures()) if options.list and not options.names else {}
        records = records_of(figures, options.figures, options.fresh)
        if options.record:
            given = read_figure(options.record)
            records = {figures[0].name: given}
            if given.figure != figures[0].name:
                parser.error(f"--record: {options.record} is of {given.figure}")
    except (ConfigurationError, RecordError) as error:
        parser.error(str(error))
    if options.list:
        if Parser.speaks:
            say(plan_text(figures, records, own, options.figures))
        return 0
    drawing: dict = {"comm": comm, "markdown": options.markdown, "tables": options.tables, "say": say}
    with abort_on_error(comm):
        try:
            draw_figures(figures, options.figures, records, **drawing)
            from_root(comm, lambda: 0)  # the other ranks wait for the drawing
        except ConfigurationError as error:
            parser.error(str(error))
    return 0


# --- The command ``study`` -------------------------------------------------------------------------------------------


def study_all(
    experiments: Any, quick: bool, figures: Any, markdown: Any, say: Callable[[str], object], comm: Any = None
) -> int:
    """Measure and show studies; with several ranks these share the studies, and rank 0 shows.

    Studies whose runs use ranks are measured by all ranks together.

    Parameters
    ----------
    experiments : sequence of StudyConfiguration
    quick : bool
    figures, markdown : str, optional
        As in :func:`theory.studies.show_studies`.
    say : callable
        Called with the lines of output.
    comm : mpi4py communicator, optional

    Returns
    -------
    int
        0, 1 if a record cannot be written, or 130 after an interruption; the measurements so far are shown.
    """
    from ..studies import measure, show_studies, takes_ranks

    if comm is None or comm.Get_size() == 1:
        return show_studies([(e, partial(measure, e, quick)) for e in experiments], quick, figures, markdown, say)
    if comm.Get_rank() == 0:
        say(f"studies: {len(experiments)}, on {comm.Get_size()} ranks; they are shown when all are done")
    together = [e for e in experiments if takes_ranks(e.study)]
    apart = [e for e in experiments if e not in together]
    found, interrupted = shared_out(comm, apart, lambda e: measure(e, quick))
    measured: list = [(apart[k], partial(found.get, k)) for k in sorted(found)]
    for e in together if not interrupted else []:
        values = measure(e, quick, comm)  # on all ranks, from which rank 0 shows its own
        measured.append((e, lambda values=values: values))
    code = from_root(comm, lambda: show_studies(measured, quick, figures, markdown, say))
    return 130 if interrupted else code


# --- The command ``shard`` -------------------------------------------------------------------------------------------


def shard(argv: list[str], comm: Any) -> int:
    """Run the command; return the exit code."""
    text = (
        "Write data of any size to a folder of shards, reading them once; --data DIR then runs on it, and a rank maps\n"
        "and checks the rows of its workers only.  rcv1-like and epsilon-like are generated at full size."
    )
    parser = parser_of("shard", text, f"{PROGRAM} shard rcv1.svm.bz2 --out DIR --workers 8")
    add = parser.add_argument
    add("source", metavar="FILE", help="a LIBSVM file, plain, gzip or bzip2, or a name that `list` shows")
    add("--out", metavar="DIR", required=True, help="the folder to make")
    add("--workers", type=int, metavar="N", default=8, help="shards, each with its checksums (default: 8)")
    add("--features", type=int, metavar="D", help="columns of a file (default: its highest index)")
    add("--zero-based", action="store_true", help="the indices of the file count from 0")
    add("--rows", type=int, metavar="R", help="rows of synthetic data (default: those of the real data)")
    add("--threads", type=int, metavar="T", help="threads that parse or generate (default: the processors)")
    options = parser.parse_args(argv)

    from ..cluster import abort_on_error
    from ..data import shard as make

    def work() -> None:
        try:
            with Progress(f"shard {options.source}", 100, " %") as bar:
                data = make(
                    options.source,
                    options.out,
                    workers=options.workers,
                    n_features=options.features,
                    zero_based=options.zero_based,
                    rows=options.rows,
                    threads=options.threads,
                    progress=lambda share: bar.at(int(100 * share)),
                )
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        say(f"{data} in {options.out}, {options.workers} shards")
        for note in data.notes:
            say(f"  {note}")

    with abort_on_error(comm):
        try:
            from_root(comm, work)
        except ConfigurationError as error:
            parser.error(str(error))
    return 0
