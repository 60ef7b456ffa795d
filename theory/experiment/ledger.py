"""The command ``verify``: claims in a ledger, as JSON, and as pages."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core.processors import usable_cores
from ..reporting.files import nearest, versions, write_whole
from ..reporting.progress import Progress
from .processes import each
from .ranks import from_root, shared_out

SEVERAL = 8  # claims, from which on further processes are worth their start


class NoSuchClaim(ValueError):
    """The name of an unknown claim, or a file without claims."""


def chosen(names: Sequence[str]) -> list[str]:
    """The ids of the claims with these names; the path of a Python file means all claims that it registers."""
    from ..claims import find_claim, list_claims, load_claims
    from ..reporting.files import FileRefused

    found: list[str] = []
    for name in names:
        if name.endswith(".py") or os.sep in name:
            try:
                found += load_claims(name)
            except FileRefused as error:
                raise NoSuchClaim(str(error)) from None
        else:
            try:
                found.append(find_claim(name).id)
            except ValueError as error:
                if name.partition("@")[0] in list_claims():  # with another version
                    raise NoSuchClaim(str(error)) from None
                raise NoSuchClaim(f"unknown claim {name!r}: {nearest(name, list_claims())}") from None
    return list(dict.fromkeys(found))


def verify_all(
    ids: Any,
    seed: int,
    quick: bool,
    say: Callable[[str], object],
    *,
    data: Any = None,
    json_file: Any = None,
    html_file: Any = None,
    markdown_file: Any = None,
    badge_file: Any = None,
    errata_folder: Any = None,
    record_file: Any = None,
    records: list | None = None,
    author: str = "",
    comm: Any = None,
) -> int:
    """Verify claims and show the ledger.

    An interruption shows and writes what was verified so far.

    Parameters
    ----------
    ids : sequence of str
    seed : int
    quick : bool
    say : callable
        Called with the lines of output.
    data : Dataset, optional
        For claims about data: replaces ``rcv1-like``.
    json_file : str, optional
        Path of the ledger as JSON.
    html_file : str, optional
        Path of the ledger as a page.
    markdown_file : str, optional
        Path of the claims in Markdown, each with its references and BibTeX.
    badge_file : str, optional
        Path of an SVG that counts verdicts.
    errata_folder : str, optional
        Folder of the three pages of refuted statements (in print, quoted, readings); all of them must be among ``ids``.
    record_file : str, optional
        Path of the file to which what was measured is written, beside the records of other claims that are there.
    records : list of ClaimRecord, optional
        Of these claims, to be judged in place of new measurements.
    author : str
        Of claims from outside the package, for how to cite them.
    comm : mpi4py communicator, optional
        Its ranks share the claims; rank 0 shows and writes.

    Returns
    -------
    int
        0 if every claim holds, or was to be refuted and is, and no mutant survives; otherwise 1.
    """
    from ..claims import find_claim, list_claims
    from ..claims.records import write_records
    from ..claims.verification import judged

    interrupted = False
    if records is None:
        records, interrupted = _measured(ids, seed, quick, say, data, html_file is not None, comm)

    def finish() -> int:
        if record_file is not None:
            write_records(record_file, records, list_claims())
            say(f"record: {record_file}")
        results = [judged(find_claim(record.id), record) for record in records]
        files = dict(json_file=json_file, html_file=html_file, errata_folder=errata_folder)
        files |= dict(markdown_file=markdown_file, badge_file=badge_file, author=author)
        return _show(results, ids, seed, quick, None if data is None else data.name, interrupted, say, **files)

    return from_root(comm, finish)


def _measured(
    ids: Any, seed: int, quick: bool, say: Callable[[str], object], data: Any, shown: bool, comm: Any
) -> tuple[list, bool]:
    """The records in the order of the claims, on rank 0, and whether there was an interruption."""
    from ..claims import find_claim
    from ..claims.records import from_line, measured, to_line
    from ..claims.verification import judged

    mine = -(-len(ids) // (comm.Get_size() if comm is not None else 1))
    leads = comm is None or comm.Get_rank() == 0
    rows = Rows(mine, say) if shown and mine > 1 and leads else None
    with Progress("verify", mine, " claims", here=leads and rows is None and mine >= SEVERAL) as progress:

        def show(record: Any) -> None:
            progress.done(f"verify {record.id}")
            if rows is not None:
                rows.show(judged(find_claim(record.id), record))

        def work(id: str) -> list:
            record = measured(find_claim(id), seed=seed, quick=quick, data=data)
            show(record)
            return [to_line(record), record.seconds]

        if comm is None and data is None and len(ids) >= SEVERAL:
            found, interrupted = _in_processes(ids, seed, quick, show)
        else:
            lines, interrupted = shared_out(comm, ids, work)
            found = {k: from_line(line)._replace(seconds=seconds) for k, (line, seconds) in lines.items()}
    return [found[k] for k in sorted(found)], interrupted


def _in_processes(ids: Any, seed: int, quick: bool, show: Any) -> tuple[dict[int, Any], bool]:
    """The records by the index of their claims, and whether there was an interruption; a process on each core."""
    from ..claims import find_claim

    items = [(id, find_claim(id).file, seed, quick) for id in ids]
    found: dict[int, Any] = {}
    try:
        for k, record in each(_one, items, usable_cores(), life=len(items)):
            found[k] = record
            show(record)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _one(item: tuple[str, str, int, bool]) -> Any:
    """Measure one claim in another process, which does not know the claims of a file yet."""
    from ..claims import find_claim, load_claims
    from ..claims.base import REGISTRY
    from ..claims.records import measured

    id, file, seed, quick = item
    if file and id not in REGISTRY:
        load_claims(file)
    return measured(find_claim(id), seed=seed, quick=quick)


def _show(
    results: Any,
    asked: Any,
    seed: Any,
    quick: Any,
    data: Any,
    interrupted: Any,
    say: Any,
    *,
    json_file: Any,
    html_file: Any,
    markdown_file: Any,
    badge_file: Any,
    errata_folder: Any,
    author: str,
) -> int:
    """Show and write the ledger; return the exit code."""
    from ..claims import exit_code, ledger, list_claims, resolution
    from ..claims.several_results import unclaimed
    from .claim_citation import markdown_of, origin, record_of

    made = origin(author)
    if results:
        say(str(ledger(results)))
    for result in results:
        if not result.ok:
            say(f"\n{result}\n")
    seconds = sum(result.seconds for result in results)
    tail = ", interrupted" if interrupted else ""
    say(f"{len(results)} of {len(asked)} claims in {seconds:.1f} s of work, seed {seed}{tail}")
    if results:
        say(resolution(results))
    if len(results) >= len(list_claims()):
        say(f"no claim is about {len(unclaimed(results))} formulas")
    if data is not None:
        say(f"claims about data: on {data}")
    code = exit_code(results)
    if json_file is not None:
        content = {
            "seed": seed,
            "quick": quick,
            "data": data,
            "versions": versions(),
            "commit": made.commit,
            "date": made.date,
            "interrupted": interrupted,
            "exit_code": code,
            "not_claimed": unclaimed(results),
            "results": [record_of(result, made) for result in results],
        }
        write_whole(Path(json_file), json.dumps(content, indent=1, allow_nan=False) + "\n")
        say(f"ledger: {json_file}")
    if html_file is not None and results:
        from .ledger_page import page

        facts: dict[str, Any] = dict(seed=seed, quick=quick, versions=versions(), known=len(list_claims()), made=made)
        write_whole(Path(html_file), page(results, interrupted=interrupted, **facts))
        say(f"page: {html_file}")
    if markdown_file is not None and results:
        write_whole(Path(markdown_file), "\n".join(markdown_of(result, made) for result in results))
        say(f"Markdown: {markdown_file}")
    if badge_file is not None and not interrupted:
        from .ledger_badge import badge

        write_whole(Path(badge_file), badge(results))
        say(f"badge: {badge_file}")
    if errata_folder is not None and not interrupted:
        from .errata_page import errata

        for name, text in errata({result.id: result for result in results}).items():
            path = os.path.join(errata_folder, name)
            write_whole(Path(path), text)
            say(f"errata: {path}")
    return 130 if interrupted else code


class Rows:
    """A line for each claim as it is verified, with the time that is left at this speed."""

    def __init__(self, total: int, say: Callable[[str], object]) -> None:
        self.total, self.say, self.begin, self.done = total, say, time.perf_counter(), 0
        say(f"{total} claims; each is shown when it is verified, with the time that is left at this speed")

    def show(self, result: Any) -> None:
        """Show one line."""
        self.done += 1
        spent = time.perf_counter() - self.begin
        left = spent / self.done * (self.total - self.done)
        rest = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
        flag = "" if result.ok else "  (!)"
        self.say(
            f"{self.done:>{len(str(self.total))}}/{self.total}  {result.id:<32} {result.verdict:<12} "
            f"measured {result.measured:<10.4g} predicted {result.predicted:<10.4g} {result.seconds:6.2f} s, "
            f"{rest} left{flag}"
        )
