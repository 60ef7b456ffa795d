"""The parser of a command: one that prints on rank 0 only, and the flags that commands share."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from ..reporting.files import write_whole
from .method_names import FLAGSHIP
from .records import PROBLEMS, Configuration, plain

USAGE_ERROR = 2  # as in argparse


PROGRAM = "python -m theory.experiment"


class Parser(argparse.ArgumentParser):
    """An argument parser that prints on rank 0 only."""

    speaks = True

    def error(self, message: Any) -> NoReturn:
        """Exit with the message, and with the nearest flag if one is not known."""
        unknown = message.removeprefix("unrecognized arguments: ").split()[:1]
        if message.startswith("unrecognized arguments: --"):
            near = difflib.get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, n=1)
            message += f"; did you mean {near[0]}?" if near else ""
        line = " ".join(str(message).split())
        self.exit(USAGE_ERROR, f"{self.prog}: error: {line} (--help has the usage)\n")

    def _print_message(self, message, file=None):
        if Parser.speaks:
            super()._print_message(message, file)


def add_config_flag(parser: argparse.ArgumentParser) -> None:
    """The flag --config."""
    text = "configuration, a TOML file or a name that `list` shows; the flags below override it"
    parser.add_argument("--config", metavar="FILE", help=text)


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a run: those of a configuration, and those for stopping and continuing it."""
    default = Configuration()
    add = parser.add_argument
    add_config_flag(parser)
    add(
        "--data",
        metavar="NAME",
        help=f"name, LIBSVM, CSV or parquet file, or folder of shards (default: {default.data}); see `list`",
    )
    add("--features", type=int, metavar="D", help="columns of a LIBSVM file (default: its highest index)")
    add("--target", metavar="COLUMN", help="column of a CSV or parquet file that has the labels")
    add("--scaled", action="store_true", default=None, help="divide each column by its largest magnitude")
    add("--problem", metavar="NAME", help=f"one of {', '.join(PROBLEMS)} (default: {default.problem}, by the labels)")
    add("--l2", type=float, metavar="L", help="weight of (1/2)||x||^2 (default: 1/n)")
    add("--workers", type=int, metavar="N", help=f"workers, a multiple of the ranks (default: {default.workers})")
    add("--batch", type=int, metavar="B", help=f"rows in each worker's mini-batch (default: {default.batch})")
    add("--steps", type=int, metavar="T", help=f"rounds (default: {default.steps})")
    text = "more rounds, up to a hundred times as many, for a method whose bound is vacuous with T"
    add("--until-bound", action="store_true", default=None, help=text)
    add("--seed", type=int, metavar="S", help=f"seed (default: {default.seed})")
    add(
        "--repeats",
        type=int,
        metavar="R",
        help=f"runs of each method, for means and intervals (default: {default.repeats})",
    )
    add(
        "--methods",
        metavar="NAMES",
        help=f"see `list`; or topk(k=9)+memory, or a file.py (default: {len(FLAGSHIP)} methods)",
    )
    text = (
        "every method's step: a number, 'theory', or 'best' of 2^e/L (default: a method's own, else c/(mu (shift + t)))"
    )
    add("--step", type=_number_or_name, metavar="S", help=text)
    add("--out", metavar="FOLDER", help=f"folder of records (default: {default.out})")
    add("--checkpoint", metavar="FOLDER", help="store states of runs in this folder; SIGTERM and SIGUSR1 exit with 75")
    add("--every", metavar="N", default="10min", help="steps between two checkpoints, or a time: 30s, 10min, 2h")
    add("--resume", metavar="FOLDER", help="continue from this folder; that of --checkpoint may be empty")
    add("--patience", type=float, metavar="S", default=600.0, help="seconds to wait for a rank; 0 for no limit")


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def parser_of(command: str, text: str, example: str) -> Parser:
    """The parser of a command, with a description and an example."""
    return Parser(
        prog=f"{PROGRAM} {command}".strip(),
        description=text,
        epilog=f"example:\n  {example}",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def configuration_of(parser: Parser, options: argparse.Namespace) -> Configuration:
    """The configuration of a file, with the overrides of the flags."""
    try:
        base = Configuration.from_toml(options.config) if options.config else Configuration()
        names = [field.name for field in fields(Configuration)]
        given = {k: v for k, v in vars(options).items() if k in names and v is not None}
        configuration = Configuration.from_dict(base.as_dict() | given)
        _require_data(configuration)
        return configuration
    except ValueError as error:
        parser.error(str(error))


def _require_data(configuration: Configuration) -> None:
    from ..data.load import require_known  # takes longer to import than it takes to refuse a flag

    try:
        require_known(configuration.data)
    except ValueError as error:
        raise ValueError(f"data: {error}") from None


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    """The flag --json."""
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON to this file; - prints them")


def check_folder(parser: Parser, **paths: str | None) -> None:
    """Refuse files in folders that do not exist."""
    for flag, path in paths.items():
        if path and path != "-" and not os.path.isdir(os.path.dirname(path) or "."):
            parser.error(f"--{flag}: there is no folder {os.path.dirname(path)}")


def write_json(path: str, values: Any) -> None:
    """Write values as JSON to a file, or print them for "-"."""
    text = json.dumps(plain(values), indent=1, ensure_ascii=False, allow_nan=False)
    if path == "-":
        say(text)
    else:
        write_whole(Path(path), text + "\n")


def say(text: str) -> None:
    """Print at once; if that is not possible, the work continues and files are still written."""
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader of the pipe has closed it
        raise
    except OSError as error:
        if not unwritten:
            print(f"standard output cannot be written: {error.strerror}", file=sys.stderr, flush=True)
        unwritten.append(text)


unwritten: list[str] = []  # what `say` could not print
