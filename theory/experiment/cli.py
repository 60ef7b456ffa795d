"""The command line.  Every rank parses the same arguments, only rank 0 prints, and all exit with the same code."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from ..reporting.files import ConfigurationError, FileRefused, RecordError, nearest, versions
from .command_parser import (
    PROGRAM,
    Parser,
    add_json_flag,
    add_run_flags,
    check_folder,
    configuration_of,
    parser_of,
    say,
    unwritten,
    write_json,
)
from .method_names import ALIASES
from .ranks import world
from .records import read_record
from .study_command import figures, run_study, shard, study, study_in

# --- the commands -----------------------------------------------------------------------------------------------------


def _run(argv: list[str], comm: Any, flagship: bool = False) -> int:
    if flagship:
        text = (
            "Eight workers minimise regularised logistic regression with full-precision, quantized and sparsified\n"
            "SGD.  Prints what each method cost in bits and what the theorems say; leaves a record and a figure.\n\n"
            f"commands: {', '.join(COMMANDS)} (each has --help)"
        )
        parser = parser_of("", text, f"mpirun -n 8 {PROGRAM} --data rcv1.svm.bz2 --methods sgd,qsgd-4,top-100-memory")
        parser.usage = f"{PROGRAM} [command] [options]"
    else:
        text = (
            "Run a configuration: a TOML file, flags, or both.  A record's own configuration.toml repeats it.\n"
            "One with the key `study` is run as `study` does, and takes the flags of `study`."
        )
        parser = parser_of("run", text, f"{PROGRAM} run --config runs/<record>/configuration.toml --seed 1")
    add_run_flags(parser)
    add_json_flag(parser)
    written = study_in(argv, parser)
    if written is not None:
        return run_study(argv, written, comm)
    options = parser.parse_args(argv)
    check_folder(parser, json=options.json)
    configuration = configuration_of(parser, options)

    from ..cluster import abort_on_error
    from .flagship import experiment
    from .ranks import Stopping

    with abort_on_error(comm):
        try:
            stopping = Stopping(options.checkpoint, options.every, options.resume, options.patience).checked()
            command = f"{PROGRAM} {shlex.join(sys.argv[1:])}".strip()
            return experiment(
                configuration, comm=comm, command=command, say=say, stopping=stopping, json_file=options.json
            )
        except ConfigurationError as error:
            parser.error(str(error))


def _list(argv: list[str], comm: Any) -> int:
    text = "List methods, data, studies and claims by name; of one kind each with its source and theorems."
    parser = parser_of("list", text, f"{PROGRAM} list compressors --json compressors.json")
    parser.add_argument("kind", nargs="?", metavar="KIND", help="methods, compressors, problems, ... (default: names)")
    add_json_flag(parser)
    options = parser.parse_args(argv)
    from .listings import KINDS, listing

    if options.kind not in (None, *KINDS):
        parser.error(f"got {options.kind}, allowed: {nearest(options.kind, KINDS)}")
    check_folder(parser, json=options.json)
    if not Parser.speaks:
        return 0
    if options.kind or options.json:
        found = {kind: listing(kind) for kind in KINDS if options.kind in (None, kind)}
        if options.json:
            write_json(options.json, {kind: [one._asdict() for one in some] for kind, some in found.items()})
        if options.kind and options.json != "-":
            say(repr(found[options.kind]))
        return 0
    from ..data import NAMES

    say("methods (B: bits, K: entries, a number or the letter k for a five-hundredth of the dimension)")
    for name, alias in ALIASES.items():
        say(f"  {name:<16}{alias.about}")
    say("  or any compressor, feedback rule and server: natural, topk(k=9)+memory, qsgd(s=3)+momentum(0.9)")
    say("  with local steps: identity+local(8); or a Python file with methods of your own: my_file.py")
    say("\ndata (or the path of a LIBSVM file, plain, .gz or .bz2, or of a folder that `shard` made)")
    for name in NAMES:
        say(f"  {name}" + ("  (synthetic, the default)" if name == "rcv1-like" else ""))
    from ..studies.shared.configuration import about, shipped_studies

    say("\nstudies (for study, or run --config)")
    for name in shipped_studies():
        say(f"  {name:<20}{about(name)}")
    from ..claims import list_claims

    say("\nclaims (for verify)")
    for claim in list_claims():
        say(f"  {claim}")
    return 0


def _explain(argv: list[str], comm: Any) -> int:
    text = "Explain claims: statement, source, why they are true and where they are tight."
    parser = parser_of("explain", text, f"{PROGRAM} explain qsgd.variance")
    parser.add_argument("ids", nargs="+", metavar="ID", help="claims, or files that register some; see `list`")
    ids = parser.parse_args(argv).ids
    from ..claims import explain
    from .ledger import NoSuchClaim, chosen

    try:
        texts = [explain(id) for id in chosen(ids)]
    except NoSuchClaim as error:
        parser.error(str(error))
    if Parser.speaks:
        say("\n\n".join(texts))
    return 0


def _certificate(argv: list[str], comm: Any) -> int:
    text = (
        "Check the proofs of claims for all parameters; shows each result, its region, and how signs were decided.\n"
        "Exits with 1 if one was not proved."
    )
    parser = parser_of("certificate", text, f"{PROGRAM} certificate ef.exact --coq > ef.v")
    parser.add_argument("ids", nargs="*", metavar="ID", help="claims with a proof (default: all)")
    parser.add_argument("--coq", action="store_true", help="print the sum of squares of one claim as a file for coqc")
    options = parser.parse_args(argv)
    if importlib.util.find_spec("sympy") is None:
        parser.error("SymPy, which checks the proofs, is not installed (pip install 'sgd-theory[proofs]')")
    from ..claims.proofs import check, find_proof, list_proofs
    from ..claims.proofs.coq_files import coq

    ids = options.ids or list_proofs()
    if unknown := [id for id in ids if find_proof(id) is None]:
        parser.error(f"got {unknown[0]}, allowed: a claim with a proof; {nearest(unknown[0], list_proofs())}")
    if options.coq and len(ids) != 1:
        parser.error("--coq: needs one claim")
    if not Parser.speaks:
        return 0
    if options.coq:
        try:
            say(coq(ids[0]).rstrip())
        except ValueError as error:
            parser.error(f"--coq: {error}")
        return 0
    found = [check(one) for one in map(find_proof, ids) if one is not None]
    for one in found:
        say(f"{one.claim}: {one}")
        if options.ids:
            say("".join(f"  {step}\n" for step in one.shown).rstrip())
    return 0 if all(one.proved for one in found) else 1


def _verify(argv: list[str], comm: Any) -> int:
    text = (
        "Verify claims: measure, compare with the closed form, let every mutant try to pass.\n"
        "Exits with 1 unless every claim holds, or is refuted as expected, and no mutant survives."
    )
    parser = parser_of("verify", text, f"{PROGRAM} verify qsgd.variance --quick --html ledger.html")
    add = parser.add_argument
    add("ids", nargs="*", metavar="ID", help="claims, or files that register some (default: all); see `list`")
    add("--refuted", action="store_true", help="statements that are refuted, and the correct ones")
    add("--quick", action="store_true", help="fewer samples: half a second per claim on average, more if undecided")
    add("--write", metavar="FILE", help="write the measurements into this file of records")
    add("--read", metavar="FILE", help="judge the measurements in this file, such as docs/claims.jsonl")
    add("--data", metavar="NAME", help="for claims about data: a name or a LIBSVM file in place of rcv1-like")
    add("--seed", type=int, default=0, metavar="S")
    add("--json", metavar="FILE", help="also write the ledger to this file")
    add("--html", metavar="FILE", help="write it as a page, and as JSON next to it (or at --json)")
    add("--markdown", metavar="FILE", help="write the claims with references, BibTeX and commit to this file")
    add("--author", default="", metavar="NAME", help="author of your own claims, for citations (default: none)")
    add("--badge", metavar="FILE", help="write an SVG with the numbers of verdicts to this file")
    add("--errata", metavar="FOLDER", help="write errata.md, the page of refuted statements, into this folder")
    options = parser.parse_args(argv)
    from ..claims import list_claims
    from .ledger import NoSuchClaim, chosen
    from .ledger_page import refuted_claims

    try:
        named = chosen(options.ids)
    except NoSuchClaim as error:
        parser.error(str(error))
    if not 0 <= options.seed < 2**63:
        parser.error(f"--seed: got {options.seed}, allowed: 0 to 2**63 - 1")
    if options.write and options.data:
        parser.error("--write: not with --data, since records are of the package's own data")
    if options.read and (options.data or options.write):
        parser.error("--read: not with --data or --write, which need a measurement")
    if options.errata and not os.path.isdir(options.errata):
        parser.error(f"--errata: there is no folder {options.errata}")
    check_folder(parser, json=options.json, html=options.html, markdown=options.markdown, badge=options.badge)
    check_folder(parser, write=options.write)
    ids = list(dict.fromkeys(named + (refuted_claims() if options.refuted else []))) or list_claims()
    if options.errata and not set(refuted_claims()) <= set(ids):
        parser.error("--errata: needs all refuted statements among the claims; add --refuted")
    if options.html:
        missing = [name for name in ("jinja2", "latex2mathml") if importlib.util.find_spec(name) is None]
        if missing:
            parser.error(f"--html: {missing[0]}, which the page needs, is not installed (pip install {missing[0]})")
        options.json = options.json or os.path.splitext(options.html)[0] + ".json"
        if os.path.abspath(options.json) == os.path.abspath(options.html):
            parser.error(f"--html: and --json both name {options.html}")

    from ..cluster import abort_on_error
    from .ledger import verify_all

    files: dict[str, Any] = dict(json_file=options.json, html_file=options.html, errata_folder=options.errata)
    files |= dict(
        markdown_file=options.markdown, badge_file=options.badge, record_file=options.write, author=options.author
    )
    if options.read:
        files["records"] = _recorded(parser, options.read, ids)
    data = _own_data(parser, options.data) if options.data else None
    with abort_on_error(comm):
        return verify_all(ids, options.seed, options.quick, say, data=data, comm=comm, **files)


def _recorded(parser: Parser, path: str, ids: list[str]) -> list:
    """The records of these claims in a file."""
    from ..claims.records import read_records

    try:
        records = read_records(path)
        return [records[id] for id in ids]
    except (RecordError, FileRefused, OSError) as error:
        parser.error(f"--read: {error}")
    except KeyError as error:
        parser.error(f"--read: {path} has no record of {error.args[0]}")


def _own_data(parser: Parser, name: str) -> Any:
    """The data of this name; every rank loads them."""
    from ..data import DataError, load_data

    try:
        data = load_data(name)
    except DataError as error:
        parser.error(f"--data: {error}")
    if data.task != "binary":
        parser.error(f"--data: got {name}, whose labels are not two classes; allowed: data of two classes")
    return data


def _audit(argv: list[str], comm: Any) -> int:
    text = (
        "Audit compressors: unbiased? variance or contraction against the closed form, on many inputs and on the\n"
        "worst one that a search finds; non-zeros, bits and time.  Exits with 1 if one contradicts what it states."
    )
    parser = parser_of("audit", text, f"{PROGRAM} audit QSGD TopK --quick")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="classes, families, or files that register some (default: all)")
    add("--d", type=int, default=640, metavar="D", help="length of the vectors (default: %(default)s)")
    add("--quick", action="store_true", help="a quarter of the samples")
    add("--seed", type=int, default=0, metavar="S")
    add("--markdown", metavar="FILE", help="write the page of the documentation and its figure")
    add("--figure", metavar="FILE", help="write the figure to this path, as PNG and PDF")
    add_json_flag(parser)
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
    check_folder(parser, markdown=options.markdown, figure=options.figure, json=options.json)

    from ..cluster import abort_on_error
    from ..core.arguments import usable_cores
    from .audit_command import NoSuchCompressor, audit_all, chosen

    try:
        pairs = chosen(options.names, options.d)
    except NoSuchCompressor as error:
        parser.error(str(error))
    processes = options.processes or (1 if options.markdown else usable_cores())
    given = (pairs, options.d, options.seed, options.quick, options.markdown, options.figure, say, processes)
    with abort_on_error(comm):
        return audit_all(*given, comm, options.json)


def _sources(argv: list[str], comm: Any) -> int:
    text = (
        "The statements of lectures and papers, entry by entry (docs/sources/index.toml), with their verdicts.\n"
        "With names: each piece of evidence and the numbers.  Exits with 1 if anything in the index is wrong."
    )
    parser = parser_of("sources", text, f"{PROGRAM} sources nuqsgd/abstract")
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="sources, or prefixes of the keys of entries (default: all)")
    options = parser.parse_args(argv)
    if not Parser.speaks:
        return 0
    from .sources_index import show_index

    try:
        return show_index(options.names, say=say)
    except (ConfigurationError, RecordError, ValueError) as error:
        parser.error(str(error))


def _atlas(argv: list[str], comm: Any) -> int:
    text = (
        "The atlas: for a method on a class of functions, the stated bound, the value reached, and their gap.\n"
        "Exits with 1 if a formula is below a worst case.  With --solve, the worst cases are computed again (PEPit)."
    )
    parser = parser_of("atlas", text, f"{PROGRAM} atlas --json atlas.json")
    add = parser.add_argument
    add("--json", metavar="FILE", help="also write the rows to this file")
    add(
        "--solve",
        nargs="*",
        metavar="CASE",
        help="first solve these cases again (default: all), and store the solutions",
    )
    options = parser.parse_args(argv)
    check_folder(parser, json=options.json)
    if not Parser.speaks:
        return 0
    from ..worst import CASES
    from .atlas import show_atlas, solve_cases

    if unknown := [id for id in options.solve or () if id not in CASES]:
        parser.error(f"--solve: got {unknown[0]}, allowed: {', '.join(CASES)}")
    if options.solve is not None:
        try:
            solve_cases(options.solve, say)
        except ImportError as error:
            parser.error(f"--solve: {error}")
    return show_atlas(options.json, say)


def _plot(argv: list[str], comm: Any) -> int:
    text = "Draw the figure of a record again, and print its table."
    parser = parser_of("plot", text, f"{PROGRAM} plot runs/<record>")
    parser.add_argument("record", metavar="RECORD", help="the folder of a record, complete or not")
    parser.add_argument("--out", metavar="FOLDER", help="folder of the figure (default: that of the record)")
    add_json_flag(parser)
    options = parser.parse_args(argv)
    check_folder(parser, json=options.json)
    from .record_table import draw_record, report

    try:
        record = read_record(options.record)
        if not record.results:
            raise RecordError(f"{options.record} holds no run ({record.status} {record.reason})".replace(" )", ")"))
        if options.out:
            os.makedirs(options.out, exist_ok=True)
    except (RecordError, OSError) as error:
        parser.error(str(error))
    if Parser.speaks:
        try:
            say(report(record))
            if options.json:
                write_json(options.json, record.results)
            paths = draw_record(record, options.out)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # lines that lack something, or hold another
            parser.error(f"{options.record} is not a complete record: {type(error).__name__}: {error}")
        for path in paths:
            say(f"figure: {path}")
    return 0


def _calibrate(argv: list[str], comm: Any) -> int:
    text = (
        "Measure the cost of a message on these ranks: seconds to start one, to send a byte, and to add a byte.\n"
        "With --record, the model's time of a round of exchange beside the measured one, for every run of a record."
    )
    parser = parser_of("calibrate", text, f"mpirun -n 2 {PROGRAM} calibrate --out network.json")
    parser.add_argument("--out", metavar="FILE", help="write measurements and fit as JSON to this file")
    parser.add_argument("--record", metavar="FOLDER", help="a record made by this number of ranks on this machine")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and turns")
    options = parser.parse_args(argv)
    if comm is None or comm.Get_size() < 2:
        parser.error("started as one process; a network needs at least two: mpirun -n 2 " + PROGRAM + " calibrate")
    if options.out and not os.path.isdir(os.path.dirname(options.out) or "."):
        parser.error(f"--out: there is no folder {os.path.dirname(options.out)}")
    try:
        record = read_record(options.record) if options.record else None
        if record is not None and record.experiment.get("ranks") != comm.Get_size():
            raise RecordError(f"{options.record} was made by {record.experiment.get('ranks')} ranks; start as many")
    except RecordError as error:
        parser.error(str(error))

    from ..cluster import abort_on_error, calibrate, save_calibration
    from .flagship import make_jobs
    from .record_table import calibration_text, compare_exchange, exchange_text

    with abort_on_error(comm):
        less: dict[str, Any] = {"sizes": (64, 4096, 262_144), "turns": 3} if options.quick else {}
        found = calibrate(comm, **less)
        if Parser.speaks:
            say(calibration_text(found))
            if record is not None:
                say("\n" + exchange_text(compare_exchange(record, found.network, make_jobs), found.oversubscribed))
            if options.out:
                say(f"network: {save_calibration(options.out, found)} (theory.load_network reads it)")
    return 0


def _warm(argv: list[str], comm: Any) -> int:
    text = (
        "Compile ahead, in several processes, so that a session need not wait: every compressor, problem and feedback\n"
        "rule, and every way to run them.  Later runs find it in the cache folder and start minutes earlier."
    )
    parser = parser_of("warm", text, f"{PROGRAM} warm QSGD TopK logistic -j 4")
    parser.add_argument("names", nargs="*", metavar="NAME", help="jobs (default: all); see --list")
    parser.add_argument("-j", type=int, metavar="N", dest="processes", help="processes (default: the usable cores)")
    parser.add_argument("--list", action="store_true", help="list all names without compiling")
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
            say("\n".join(names))
        return 0
    with abort_on_error(comm):
        return from_root(comm, lambda: warm(names, options.processes, say))


def _version(argv: list[str], comm: Any) -> int:
    text = "Print the versions of all software involved, for bug reports."
    parser_of("version", text, f"{PROGRAM} version").parse_args(argv)
    if Parser.speaks:
        say("\n".join(f"{name} {found}" for name, found in versions().items()))
    return 0


COMMANDS = {
    "run": _run,
    "list": _list,
    "explain": _explain,
    "certificate": _certificate,
    "verify": _verify,
    "audit": _audit,
    "study": study,
    "figures": figures,
    "sources": _sources,
    "atlas": _atlas,
    "plot": _plot,
    "calibrate": _calibrate,
    "shard": shard,
    "warm": _warm,
    "version": _version,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    comm = world()
    Parser.speaks = comm is None or comm.Get_rank() == 0
    try:
        if argv and not argv[0].startswith("-"):
            if argv[0] not in COMMANDS:
                parser_of("", "", "").error(f"unknown command {argv[0]!r}: {nearest(argv[0], COMMANDS)}")
        if sys.flags.optimize > 1:
            parser_of("", "", "").error("python -OO removes docstrings, in which theorems are stated; use -O")
        command = COMMANDS[argv[0]] if argv and not argv[0].startswith("-") else None
        code = command(argv[1:], comm) if command is not None else _run(argv, comm, flagship=True)
        return code or int(bool(unwritten))
    except KeyboardInterrupt as stopped:  # before or between runs; a run stops at its next evaluation
        if Parser.speaks:
            print("interrupted", file=sys.stderr, flush=True)
        code = getattr(stopped, "exit_code", 130)
        if comm is not None and comm.Get_size() > 1:
            comm.Abort(code)
        return code
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
