"""The command ``shard``: a file, or synthetic data of full size, to a folder that ranks map."""

from __future__ import annotations

from typing import Any

from ..reporting.files import ConfigurationError
from ..reporting.progress import Progress
from .command_parser import PROGRAM, parser_of, say
from .ranks import from_root


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
    add("--rows", type=int, metavar="R", help="rows of synthetic data (default: those of the real ones)")
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
