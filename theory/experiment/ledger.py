"""The command ``verify``: claims in a ledger, as JSON, and as pages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..claims import find_claim
from ..core.arguments import usable_cores
from ..reporting.files import nearest, versions, write_whole
from ..reporting.progress import Progress
from .claim_citation import markdown_of, origin, record_of
from .ranks import each, from_root, shared_out

SEVERAL = 8  # claims, from which on further processes are worth their start


class NoSuchClaim(ValueError):
    """The name of an unknown claim, or a file without claims."""


def chosen(names: Sequence[str]) -> list[str]:
    """The ids of the claims with these names; the path of a Python file means all claims that it registers."""
    from ..claims import list_claims, load_claims
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


class Files(NamedTuple):
    """Where the ledger is written; None for no file.

    Attributes
    ----------
    json_file : str
        Path of the ledger as JSON.
    html_file : str
        Path of the ledger as a page.
    markdown_file : str
        Path of the claims in Markdown, each with its references and BibTeX.
    badge_file : str
        Path of an SVG that counts verdicts.
    errata_folder : str
        Folder of the three pages of refuted statements (in print, quoted, readings); all of them must be among the ids.
    record_file : str
        Path of the file to which the measurements are written; records of other claims in it are kept.
    """

    json_file: str | None = None
    html_file: str | None = None
    markdown_file: str | None = None
    badge_file: str | None = None
    errata_folder: str | None = None
    record_file: str | None = None


def verify_all(
    ids: Any,
    seed: int,
    quick: bool,
    say: Callable[[str], object],
    *,
    data: Any = None,
    records: list | None = None,
    author: str = "",
    comm: Any = None,
    **files: Any,
) -> int:
    """Verify claims and show the ledger.

    After an interruption, the claims verified so far are shown and written.

    Parameters
    ----------
    ids : sequence of str
    seed : int
    quick : bool
    say : callable
        Called with the lines of output.
    data : Dataset, optional
        For claims about data: replaces ``rcv1-like``.
    records : list of ClaimRecord, optional
        Of these claims, to be judged in place of new measurements.
    author : str
        Author of claims from outside the package, for their citation.
    comm : mpi4py communicator, optional
        Its ranks share the claims; rank 0 shows and writes.
    **files : str, optional
        Fields of `Files`.

    Returns
    -------
    int
        0 if every claim holds, or is refuted as expected, and no mutant survives; otherwise 1.
    """
    interrupted, to = False, Files(**files)
    if records is None:
        records, interrupted = _measured(ids, seed, quick, data, comm, None if to.html_file is None else say)
    how = {"seed": seed, "quick": quick, "data": None if data is None else data.name, "interrupted": interrupted}
    return from_root(comm, lambda: _show(records, len(ids), how, to, say, author))


def _measured(ids: Any, seed: int, quick: bool, data: Any, comm: Any, tell: Callable | None) -> tuple[list, bool]:
    """The records in the order of the claims, on rank 0, and whether there was an interruption."""
    from ..claims.records import from_line, measured, to_line
    from ..claims.verification import judged

    mine = -(-len(ids) // (comm.Get_size() if comm is not None else 1))
    leads = comm is None or comm.Get_rank() == 0
    with Progress("verify", mine, " claims", here=leads and tell is None and mine >= SEVERAL) as progress:

        def show(record: Any) -> None:
            progress.done(f"verify {record.id}")
            if tell is not None and leads:
                one = judged(find_claim(record.id), record)
                numbers = f"measured {one.measured:<10.4g} predicted {one.predicted:<10.4g} {one.seconds:6.2f} s"
                tell(f"{one.id:<32} {one.verdict:<12} {numbers}" + ("" if one.ok else "  (!)"))

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
    items = [(id, find_claim(id).file, seed, quick) for id in ids]
    found: dict[int, Any] = {}
    try:
        for k, record in each(_one, items, usable_cores()):
            found[k] = record
            show(record)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _one(item: tuple[str, str, int, bool]) -> Any:
    """Measure one claim in another process, which does not know the claims of a file yet."""
    from ..claims import load_claims
    from ..claims.base import REGISTRY
    from ..claims.records import measured

    id, file, seed, quick = item
    if file and id not in REGISTRY:
        load_claims(file)
    return measured(find_claim(id), seed=seed, quick=quick)


def _show(records: list, asked: int, how: dict[str, Any], to: Files, say: Callable[[str], object], author: str) -> int:
    """Show and write the ledger; return the exit code."""
    from ..claims import exit_code, ledger, list_claims, resolution
    from ..claims.records import write_records
    from ..claims.tables import unclaimed
    from ..claims.verification import judged
    from .ledger_page import badge, errata, page

    def write(what: str, path: str | None, text: Callable[[], str], when: object = True) -> None:
        if path is not None and when:
            write_whole(Path(path), text())
            say(f"{what}: {path}")

    known, made, interrupted = list_claims(), origin(author), how["interrupted"]
    if to.record_file is not None:
        write_records(to.record_file, records, known)
        say(f"record: {to.record_file}")
    results = [judged(find_claim(record.id), record) for record in records]
    if results:
        say(str(ledger(results)))
    for result in results:
        if not result.ok:
            say(f"\n{result}\n")
    seconds = sum(result.seconds for result in results)
    tail = ", interrupted" if interrupted else ""
    say(f"{len(results)} of {asked} claims in {seconds:.1f} s of work, seed {how['seed']}{tail}")
    if results:
        say(resolution(results))
    if len(results) >= len(known):
        say(f"no claim is about {len(unclaimed(results))} formulas")
    if how["data"] is not None:
        say(f"claims about data: on {how['data']}")
    code = exit_code(results)

    def content() -> str:
        facts = {**how, "versions": versions(), **made._asdict(), "exit_code": code, "not_claimed": unclaimed(results)}
        facts["results"] = [record_of(result, made) for result in results]
        return json.dumps(facts, indent=1, allow_nan=False) + "\n"

    facts = {name: how[name] for name in ("seed", "quick", "interrupted")}
    write("ledger", to.json_file, content)
    html = partial(page, results, versions=versions(), known=len(known), made=made, **facts)
    write("page", to.html_file, html, results)
    write("Markdown", to.markdown_file, lambda: "\n".join(markdown_of(one, made) for one in results), results)
    write("badge", to.badge_file, lambda: badge(results), not interrupted)
    refuted = to.errata_folder and os.path.join(to.errata_folder, "errata.md")
    write("errata", refuted, lambda: errata({result.id: result for result in results}), not interrupted)
    return 130 if interrupted else code
