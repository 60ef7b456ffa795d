"""The command line.  Every rank parses the same arguments, only rank 0 prints, and all exit with the same code."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import os
import shlex
import sys
from dataclasses import fields
from typing import Any, NoReturn

from ..reporting.compiling import announce_compiling
from ..reporting.files import ConfigurationError, RecordError, find_toml, nearest, read_toml
from .catalog import FAMILIES, FLAGSHIP
from .configuration import PROBLEMS, Configuration
from .launcher import world
from .records import read_record

USAGE_ERROR = 2  # as in argparse
PROGRAM = "python -m theory.experiment"


class Parser(argparse.ArgumentParser):
    """An argument parser that prints on rank 0 only."""

    speaks = True

    def error(self, message) -> NoReturn:
        """Exit with the message, and with the nearest flag if one is not known."""
        unknown = message.removeprefix("unrecognized arguments: ").split()[:1]
        if message.startswith("unrecognized arguments: --"):
            near = difflib.get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, n=1)
            message += f"; did you mean {near[0]}?" if near else ""
        super().error(message)

    def _print_message(self, message, file=None):
        if Parser.speaks:
            super()._print_message(message, file)


def _config_flag(parser) -> None:
    text = "configuration, a TOML file or a name that `list` shows; the flags below override it"
    parser.add_argument("--config", metavar="FILE", help=text)


def _shared_flags(parser) -> None:
    default = Configuration()
    add = parser.add_argument
    _config_flag(parser)
    add("--data", metavar="NAME", help=f"name or LIBSVM file (default: {default.data}); see `list`")
    add("--features", type=int, metavar="D", help="columns of a file (default: its highest index)")
    add("--scaled", action="store_true", default=None, help="divide each column by its largest magnitude")
    add("--problem", metavar="NAME", help=f"one of {', '.join(PROBLEMS)} (default: {default.problem}, by the labels)")
    add("--l2", type=float, metavar="L", help="weight of (1/2)||x||^2 (default: 1/n)")
    add("--workers", type=int, metavar="N", help=f"workers, a multiple of the ranks (default: {default.workers})")
    add("--batch", type=int, metavar="B", help=f"rows in each worker's mini-batch (default: {default.batch})")
    add("--steps", type=int, metavar="T", help=f"rounds (default: {default.steps})")
    add("--seed", type=int, metavar="S", help=f"seed (default: {default.seed})")
    add("--repeats", type=int, metavar="R", help=f"runs of each method, for a band (default: {default.repeats})")
    add(
        "--methods",
        metavar="NAMES",
        help=f"see `list`; or topk(k=9)+memory, or a file.py (default: {len(FLAGSHIP)} methods)",
    )
    add("--out", metavar="FOLDER", help=f"where records go (default: {default.out})")


def _parser(command: str, text: str, example: str) -> Parser:
    return Parser(
        prog=f"{PROGRAM} {command}".strip(),
        description=text,
        epilog=f"example:\n  {example}",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _configuration(parser: Parser, options) -> Configuration:
    try:
        base = Configuration.from_toml(options.config) if options.config else Configuration()
        names = [field.name for field in fields(Configuration)]
        given = {k: v for k, v in vars(options).items() if k in names and v is not None}
        return Configuration.from_dict(base.as_dict() | given)
    except ValueError as error:
        parser.error(str(error))


# --- the commands -----------------------------------------------------------------------------------------------------


def _run(argv, comm, flagship=False) -> int:
    if flagship:
        text = (
            "Eight workers minimise regularised logistic regression with full-precision, quantized and sparsified\n"
            "SGD.  Prints what each method cost in bits and what the theorems say; leaves a record and a figure.\n\n"
            f"commands: {', '.join(COMMANDS)} (each has --help)"
        )
        parser = _parser("", text, f"mpirun -n 8 {PROGRAM} --data rcv1.svm.bz2 --methods sgd,qsgd-4,top-100-memory")
        parser.usage = f"{PROGRAM} [command] [options]"
    else:
        text = (
            "Run a configuration: a TOML file, flags, or both.  A record's own configuration.toml repeats it.\n"
            "One with the key `study` is run as `study` does, and takes the flags of `study`."
        )
        parser = _parser("run", text, f"{PROGRAM} run --config runs/<record>/configuration.toml --seed 1")
    _shared_flags(parser)
    study = _study_in(argv, parser)
    if study is not None:
        return _run_study(argv, study, comm)
    configuration = _configuration(parser, parser.parse_args(argv))

    from ..cluster import abort_on_error
    from .flagship import experiment

    with abort_on_error(comm):
        try:
            command = f"{PROGRAM} {shlex.join(sys.argv[1:])}".strip()
            return experiment(configuration, comm=comm, command=command, say=_say)
        except ConfigurationError as error:
            parser.error(str(error))


def _list(argv, comm) -> int:
    text = "List methods, data, studies and claims by name."
    _parser("list", text, f"{PROGRAM} list").parse_args(argv)
    if not Parser.speaks:
        return 0
    from ..data import NAMES

    _say("methods (B: bits, K: entries, a number or the letter k for a five-hundredth of the dimension)")
    for name, (_, what) in FAMILIES.items():
        _say(f"  {name:<16}{what}")
    _say("  or any compressor, feedback rule and server: natural, topk(k=9)+memory, qsgd(s=3)+momentum(0.9)")
    _say("  with local steps: identity+local(8); or a Python file with methods of your own: my_file.py")
    _say("\ndata (or the path of a LIBSVM file, plain, .gz or .bz2)")
    for name in NAMES:
        _say(f"  {name}" + ("  (synthetic, the default)" if name == "rcv1-like" else ""))
    from ..studies.shared.configuration import about, shipped_studies

    _say("\nstudies (for study, or run --config)")
    for name in shipped_studies():
        _say(f"  {name:<20}{about(name)}")
    from ..claims import list_claims

    _say("\nclaims (for verify)")
    for claim in list_claims():
        _say(f"  {claim}")
    return 0


def _explain(argv, comm) -> int:
    text = "Explain claims: statement, source, why they are true and where they are tight."
    parser = _parser("explain", text, f"{PROGRAM} explain qsgd.variance")
    parser.add_argument("ids", nargs="+", metavar="ID", help="claims; see `list`")
    ids = parser.parse_args(argv).ids
    from ..claims import explain

    try:
        texts = [explain(id) for id in ids]
    except ValueError as error:
        parser.error(str(error))
    if Parser.speaks:
        _say("\n\n".join(texts))
    return 0


def _verify(argv, comm) -> int:
    text = (
        "Verify claims: measure, compare with the closed form, let every mutant try to pass.\n"
        "Exits with 1 unless every claim holds, or was to be refuted and is, and no mutant survives."
    )
    parser = _parser("verify", text, f"{PROGRAM} verify qsgd.variance --quick --html ledger.html")
    add = parser.add_argument
    add("ids", nargs="*", metavar="ID", help="claims, or files that register some (default: all); see `list`")
    add("--refuted", action="store_true", help="statements that are refuted, and what holds instead")
    add("--formula-mutants", action="store_true", help="show which wrong formulas each claim notices, and which not")
    add("--quick", action="store_true", help="fewer samples: at most half a second a claim on average")
    add("--changed", action="store_true", help="measure only what changed since it was kept; the rest is judged again")
    add("--keep", action="store_true", help="keep what is measured in docs/evidence, with what was executed for it")
    add("--data", metavar="NAME", help="for claims about data: a name or a LIBSVM file in place of rcv1-like")
    add("--seed", type=int, default=0, metavar="S")
    add("--json", metavar="FILE", help="write the ledger there as well")
    add("--html", metavar="FILE", help="write it as a page, and as JSON beside it (or at --json)")
    add("--errata", metavar="FOLDER", help="write the three pages of refuted statements there (with --refuted)")
    options = parser.parse_args(argv)
    from ..claims import list_claims
    from .errata_page import refuted_claims
    from .ledger import NoSuchClaim, chosen

    try:
        named = chosen(options.ids)
    except NoSuchClaim as error:
        parser.error(str(error))
    if not 0 <= options.seed < 2**63:
        parser.error(f"--seed: got {options.seed}, allowed: 0 to 2**63 - 1")
    if (options.changed or options.keep) and (options.data or comm is not None):
        parser.error("--changed and --keep: not with --data, nor with mpirun")
    if options.errata and not os.path.isdir(options.errata):
        parser.error(f"--errata: there is no folder {options.errata}")
    for flag, path in (("--json", options.json), ("--html", options.html)):
        if path and not os.path.isdir(os.path.dirname(path) or "."):
            parser.error(f"{flag}: there is no folder {os.path.dirname(path)}")
    ids = list(dict.fromkeys(named + (refuted_claims() if options.refuted else []))) or list_claims()
    if options.errata and not set(refuted_claims()) <= set(ids):
        parser.error("--errata: needs all refuted statements among the claims; add --refuted")
    if options.html:
        if importlib.util.find_spec("latex2mathml") is None:
            parser.error("--html: latex2mathml, which sets the formulas, is not installed (pip install latex2mathml)")
        options.json = options.json or os.path.splitext(options.html)[0] + ".json"
        if os.path.abspath(options.json) == os.path.abspath(options.html):
            parser.error(f"--html: and --json both name {options.html}")

    from ..cluster import abort_on_error
    from .ledger import verify_all

    files: dict[str, Any] = dict(json_file=options.json, html_file=options.html, errata_folder=options.errata)
    files |= dict(formulas=options.formula_mutants, changed=options.changed, keep=options.keep)
    data = _own_data(parser, options.data) if options.data else None
    with abort_on_error(comm):
        return verify_all(ids, options.seed, options.quick, _say, data=data, comm=comm, **files)


def _own_data(parser: Parser, name: str):
    """The data of this name; every rank loads them."""
    from ..data import DataError, load_data

    try:
        data = load_data(name)
    except DataError as error:
        parser.error(f"--data: {error}")
    if data.task != "binary":
        parser.error(f"--data: got {name}, whose labels are not two classes; allowed: data of two classes")
    return data


def _audit(argv, comm) -> int:
    text = (
        "Audit compressors: unbiased? variance or contraction against the closed form, on many inputs and on the\n"
        "worst one that a search finds; non-zeros, bits and time.  Exits with 1 if one contradicts what it states."
    )
    parser = _parser("audit", text, f"{PROGRAM} audit QSGD TopK --quick")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="classes, families, or files that register some (default: all)")
    add("--d", type=int, default=640, metavar="D", help="length of the vectors (default: %(default)s)")
    add("--quick", action="store_true", help="a quarter of the samples")
    add("--seed", type=int, default=0, metavar="S")
    add("--markdown", metavar="FILE", help="write the page of the documentation there, and its figure")
    add("--figure", metavar="FILE", help="write the figure there, as PNG and PDF")
    add(
        "-j",
        type=int,
        metavar="N",
        dest="processes",
        help="processes (default: the usable cores; 1 with --markdown, which shows times)",
    )
    options = parser.parse_args(argv)
    if not 1 <= options.d <= 10**6:
        parser.error(f"--d: got {options.d}, allowed: 1 to 1,000,000")
    if not 0 <= options.seed < 2**63:
        parser.error(f"--seed: got {options.seed}, allowed: 0 to 2**63 - 1")
    if options.processes is not None and options.processes < 1:
        parser.error(f"-j: got {options.processes}, allowed: at least 1")
    for flag, path in (("--markdown", options.markdown), ("--figure", options.figure)):
        if path and not os.path.isdir(os.path.dirname(path) or "."):
            parser.error(f"{flag}: there is no folder {os.path.dirname(path)}")

    from ..cluster import abort_on_error
    from ..measure.processors import usable_cores
    from .audit_command import NoSuchCompressor, audit_all, chosen

    try:
        pairs = chosen(options.names, options.d)
    except NoSuchCompressor as error:
        parser.error(str(error))
    processes = options.processes or (1 if options.markdown else usable_cores())
    given = (pairs, options.d, options.seed, options.quick, options.markdown, options.figure, _say, processes)
    with abort_on_error(comm):
        return audit_all(*given, comm)


def _study(argv, comm) -> int:
    text = (
        "Run studies: statements of lectures and papers on compressors in training, measured, with tables, a figure\n"
        "and a verdict on each.  `run --config NAME` does the same for one."
    )
    parser = _parser("study", text, f"{PROGRAM} study ternary-dimension --figures figures")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="studies, or Python files with one (default: all); see `list`"
    )
    _study_flags(parser)
    options = parser.parse_args(argv)
    from ..studies.shared.configuration import StudyConfiguration, chosen, own_study

    read = StudyConfiguration.from_toml
    try:
        experiments = [own_study(n) if n.endswith(".py") else read(n) for n in chosen(options.names)]
    except ConfigurationError as error:
        parser.error(str(error))
    return _run_studies(parser, options, experiments, comm)


def _study_in(argv, parser):
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
        parser.error(str(error))


def _run_study(argv, experiment, comm) -> int:
    parser = _parser("run", f"Run the study {experiment.study}.", f"{PROGRAM} run --config {experiment.name} --quick")
    _config_flag(parser)
    _study_flags(parser)
    return _run_studies(parser, parser.parse_args(argv), [experiment], comm)


def _study_flags(parser) -> None:
    add = parser.add_argument
    add("--quick", action="store_true", help="smaller problems, fewer methods")
    add("--seed", type=int, metavar="S", help="seed (default: 0)")
    add("--data", metavar="NAME", help="data in place of RCV1 in two classes: a name or a LIBSVM file")
    add("--topics", metavar="FILE", help="the multi-label file of RCV1 (default: the one in the folder THEORY_DATA)")
    add("--figures", metavar="FOLDER", help="write a figure of each study there, as PNG and PDF")
    add("--markdown", metavar="FILE", help="write the studies into this page, each between its marks, and draw figures")


def _run_studies(parser: Parser, options, experiments, comm) -> int:
    """Check the flags, which override the files of the experiments, and run."""
    given = {name: getattr(options, name) for name in ("seed", "data", "topics") if getattr(options, name) is not None}
    if not 0 <= given.get("seed", 0) < 2**62:
        parser.error(f"--seed: got {options.seed}, allowed: 0 to 2**62 - 1")
    experiments = [experiment._replace(**given) for experiment in experiments]
    for experiment in experiments:
        if experiment.topics and not os.path.isfile(experiment.topics):
            parser.error(f"--topics: there is no file {experiment.topics}")
    if options.markdown and not os.path.isdir(os.path.dirname(options.markdown) or "."):
        parser.error(f"--markdown: there is no folder {os.path.dirname(options.markdown)}")
    from ..cluster import abort_on_error
    from ..data import NAMES, DataError, load_data
    from .study_command import study_all

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
            return study_all(experiments, options.quick, options.figures, options.markdown, _say, comm)
        except ConfigurationError as error:
            parser.error(str(error))


def _figures(argv, comm) -> int:
    text = (
        "Draw the figures of a folder again, as PNG and PDF: from the records beside them, which takes seconds.\n"
        "Without a record, or with --fresh, what a figure shows is measured first and leaves a record.\n"
        "A figure's name is that of its file; a study's name stands for all of its figures."
    )
    parser = _parser("figures", text, f"{PROGRAM} figures study-spectrum flagship --figures figures")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="figures or studies (default: all); see --list")
    add("--list", action="store_true", help="list the source of each figure, and draw nothing")
    add("--fresh", action="store_true", help="measure again, also where there is a record")
    add(
        "--figures",
        default="figures",
        metavar="FOLDER",
        help="folder of figures and their records (default: %(default)s)",
    )
    add("--record", metavar="PATH", help="draw one figure from this record; for `flagship` also a folder in runs/")
    add("--tables", action="store_true", help="show the tables and statements of studies, too")
    add("--markdown", metavar="FILE", help="write the studies into this page, each between its marks")
    options = parser.parse_args(argv)
    from ..cluster import abort_on_error
    from ..reporting.figure_records import read_record as read_figure
    from ..reporting.figure_records import write_record
    from .figures import chosen, draw_figures, flagship_found, plan_text, records_of
    from .ranks import from_root

    if options.markdown and not os.path.isdir(os.path.dirname(options.markdown) or "."):
        parser.error(f"--markdown: there is no folder {os.path.dirname(options.markdown)}")
    try:
        figures = chosen(options.names)
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
            _say(plan_text(figures, records))
        return 0
    drawing: dict = {"comm": comm, "markdown": options.markdown, "tables": options.tables, "say": _say}
    with abort_on_error(comm):
        try:
            draw_figures(figures, options.figures, records, **drawing)
            from_root(comm, lambda: 0)  # the other ranks wait for the drawing
        except ConfigurationError as error:
            parser.error(str(error))
    return 0


def _sources(argv, comm) -> int:
    text = (
        "What lectures and papers state, entry by entry (docs/sources/index.toml), and the verdict of the evidence.\n"
        "With names: each piece of evidence and the numbers.  Ends with 1 if anything in the index is wrong."
    )
    parser = _parser("sources", text, f"{PROGRAM} sources nuqsgd/abstract")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="sources, or how the keys of entries begin (default: all)")
    add("--verify", nargs="+", metavar="CLAIM", help="first as `verify --quick --keep CLAIM`")
    options = parser.parse_args(argv)
    if not Parser.speaks:
        return 0
    from .kept_evidence import keep
    from .ledger import chosen
    from .sources_index import show_index

    try:
        if options.verify:
            keep(chosen(options.verify))
        return show_index(options.names, say=_say)
    except (ConfigurationError, RecordError, ValueError) as error:
        parser.error(str(error))


def _plot(argv, comm) -> int:
    text = "Draw the figure of a record again, and print its table."
    parser = _parser("plot", text, f"{PROGRAM} plot runs/<record>")
    parser.add_argument("record", metavar="RECORD", help="the folder of a record, complete or not")
    parser.add_argument("--out", metavar="FOLDER", help="where the figure goes (default: into the record)")
    options = parser.parse_args(argv)
    from .drawing import draw_record
    from .record_table import report

    try:
        record = read_record(options.record)
        if not record.results:
            raise RecordError(f"{options.record} holds no run ({record.status} {record.reason})".replace(" )", ")"))
        if options.out:
            os.makedirs(options.out, exist_ok=True)
    except (RecordError, OSError) as error:
        parser.error(str(error))
    if Parser.speaks:
        _say(report(record))
        for path in draw_record(record, options.out):
            _say(f"figure: {path}")
    return 0


def _calibrate(argv, comm) -> int:
    text = (
        "Measure what a message costs on these ranks: seconds to start one, for a byte, and to add a byte.\n"
        "With --record, the model's time of a round of exchange beside the measured one, for every run of a record."
    )
    parser = _parser("calibrate", text, f"mpirun -n 2 {PROGRAM} calibrate --out network.json")
    parser.add_argument("--out", metavar="FILE", help="write what was measured and fitted there, as JSON")
    parser.add_argument("--record", metavar="FOLDER", help="a record that as many ranks made on this machine")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and turns")
    options = parser.parse_args(argv)
    if comm is None or comm.Get_size() < 2:
        parser.error("started as one process; a network needs at least two: mpirun -n 2 " + PROGRAM + " calibrate")
    if options.out and not os.path.isdir(os.path.dirname(options.out) or "."):
        parser.error(f"--out: there is no folder {os.path.dirname(options.out)}")
    try:
        record = read_record(options.record) if options.record else None
        if record is not None and record.experiment["ranks"] != comm.Get_size():
            raise RecordError(f"{options.record} was made by {record.experiment['ranks']} ranks; start as many")
    except RecordError as error:
        parser.error(str(error))

    from ..cluster import abort_on_error, calibrate, save_calibration
    from .calibration import calibration_text, compare_exchange, exchange_text

    with abort_on_error(comm):
        less: dict[str, Any] = {"sizes": (64, 4096, 262_144), "turns": 3} if options.quick else {}
        found = calibrate(comm, **less)
        if Parser.speaks:
            _say(calibration_text(found))
            if record is not None:
                _say("\n" + exchange_text(compare_exchange(record, found.network), found.crowded))
            if options.out:
                _say(f"network: {save_calibration(options.out, found)} (theory.load_network reads it)")
    return 0


def _warm(argv, comm) -> int:
    text = (
        "Compile ahead, in several processes, what a session would wait for: every compressor, problem and feedback\n"
        "rule, and every way to run them.  Later runs find it in the cache folder, in minutes less."
    )
    parser = _parser("warm", text, f"{PROGRAM} warm QSGD TopK logistic -j 4")
    parser.add_argument("names", nargs="*", metavar="NAME", help="jobs (default: all); see --list")
    parser.add_argument("-j", type=int, metavar="N", dest="processes", help="processes (default: the usable cores)")
    parser.add_argument("--list", action="store_true", help="list all names, and compile nothing")
    options = parser.parse_args(argv)
    if options.processes is not None and options.processes < 1:
        parser.error(f"-j: got {options.processes}, allowed: at least 1")
    from ..cluster import abort_on_error
    from .compile_ahead import NoSuchJob, chosen, warm
    from .ranks import from_root

    try:
        names = chosen(options.names)
    except NoSuchJob as error:
        parser.error(str(error))
    if options.list:
        if Parser.speaks:
            _say("\n".join(names))
        return 0
    with abort_on_error(comm):
        return from_root(comm, lambda: warm(names, options.processes, _say))


COMMANDS = {
    "run": _run,
    "list": _list,
    "explain": _explain,
    "verify": _verify,
    "audit": _audit,
    "study": _study,
    "figures": _figures,
    "sources": _sources,
    "plot": _plot,
    "calibrate": _calibrate,
    "warm": _warm,
}


def _say(text: str) -> None:
    print(text, flush=True)


def main(argv=None) -> int:
    """Run the command; return the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    comm = world()
    Parser.speaks = comm is None or comm.Get_rank() == 0
    if Parser.speaks:
        announce_compiling()
    try:
        if argv and not argv[0].startswith("-"):
            if argv[0] not in COMMANDS:
                _parser("", "", "").error(f"unknown command {argv[0]!r}: {nearest(argv[0], COMMANDS)}")
            return COMMANDS[argv[0]](argv[1:], comm)
        return _run(argv, comm, flagship=True)
    except KeyboardInterrupt:  # before or between runs; a run stops at its next evaluation
        if Parser.speaks:
            print("interrupted", file=sys.stderr, flush=True)
        if comm is not None and comm.Get_size() > 1:
            comm.Abort(130)
        return 130
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
