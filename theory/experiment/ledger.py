"""The command ``verify``: claims in a ledger, as JSON, and as pages."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..measure.processors import usable_cores
from ..reporting.files import nearest, versions, write_whole
from ..reporting.progress import on_terminal
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
    formulas: bool = False,
    changed: bool = False,
    keep: bool = False,
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
    formulas : bool
        Whether to show the wrong formulas.
    changed : bool
        Whether to measure only claims whose kept evidence is out of date; the others are judged again.
    keep : bool
        Whether to keep what is measured.
    comm : mpi4py communicator, optional
        Its ranks share the claims; rank 0 shows and writes.

    Returns
    -------
    int
        0 if every claim holds, or was to be refuted and is, and no mutant survives; otherwise 1.
    """
    from ..claims import Verification, verify

    files: dict[str, Any] = dict(json_file=json_file, html_file=html_file, errata_folder=errata_folder)
    files |= dict(markdown_file=markdown_file, badge_file=badge_file, formulas=formulas)
    if changed or keep:
        results, interrupted = _from_evidence(ids, seed, quick, say, changed, keep)
        return _show(results, ids, seed, quick, None, interrupted, say, **files)
    mine = -(-len(ids) // (comm.Get_size() if comm is not None else 1))
    rows = Rows(mine, say) if html_file is not None and mine > 1 and (comm is None or comm.Get_rank() == 0) else None
    with _bar(mine, comm, rows is not None) as bar:

        def show(result: Any) -> None:
            bar.set_description(result.id)
            bar.update()
            if rows is not None:
                rows.show(result)

        def work(id: str) -> dict:
            bar.set_description(id)
            result = verify(id, seed=seed, quick=quick, data=data)
            show(result)
            return vars(result)

        if comm is None and data is None and len(ids) >= SEVERAL:
            found, interrupted = _in_processes(ids, seed, quick, show)
        else:
            found, interrupted = shared_out(comm, ids, work)
    results = [Verification(**found[k]) for k in sorted(found)]
    name = None if data is None else data.name
    return from_root(comm, lambda: _show(results, ids, seed, quick, name, interrupted, say, **files))


def _from_evidence(
    ids: list[str], seed: int, quick: bool, say: Callable[[str], object], changed: bool, keep: bool
) -> tuple[list, bool]:
    """Judge kept evidence, and what is measured now; the results, and whether there was an interruption."""
    from ..claims import find_claim, list_claims
    from ..claims.verification import judged
    from .kept_evidence import changed as changes
    from .kept_evidence import measured_apart, read_evidence, write_evidence

    evidence = read_evidence() if changed else {}
    why = changes(ids, evidence, seed, quick)
    for id, reason in why.items() if changed else ():
        say(f"{id}: measured, as {reason}")
    todo, fresh, interrupted = [id for id in ids if id in why], {}, False
    with _bar(len(todo), None) as bar:
        try:
            for one in measured_apart(todo, seed, quick):
                fresh[one.id] = one
                bar.update()
                if keep and len(fresh) % SEVERAL == 0:  # what is there stays, whatever happens
                    write_evidence(fresh.values())
        except KeyboardInterrupt:
            interrupted = True
    if keep:
        write_evidence(fresh.values())
    formulas = {find_claim(id).formula for id in ids} - {""}
    kin = [id for id in evidence if id in list_claims() and find_claim(id).formula in formulas and id not in ids]
    kin = [id for id in kin if id not in changes(kin, evidence, seed, quick)]  # they may secure a formula
    evidence |= fresh
    if changed:
        say(f"{len(fresh)} measured, {len(ids) - len(todo)} judged by evidence from before")
    return [judged(find_claim(id), evidence[id]) for id in [*ids, *kin] if id in evidence], interrupted


def _in_processes(ids: Any, seed: int, quick: bool, show: Any) -> tuple[dict[int, dict], bool]:
    """The results by the index of their claims, and whether there was an interruption; a process on each core."""
    from ..claims import find_claim

    items = [(id, find_claim(id).file, seed, quick) for id in ids]
    found: dict[int, dict] = {}
    try:
        for k, result in each(_one, items, usable_cores(), life=len(items)):
            found[k] = vars(result)
            show(result)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _one(item):
    """Verify one claim in another process, which does not know the claims of a file yet."""
    from ..claims import load_claims, verify
    from ..claims.base import REGISTRY

    id, file, seed, quick = item
    if file and id not in REGISTRY:
        load_claims(file)
    return verify(id, seed=seed, quick=quick)


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
    formulas: Any,
) -> int:
    """Show and write the ledger; return the exit code."""
    from ..claims import exit_code, formula_table, ledger, list_claims, resolution
    from ..claims.several_results import related, unclaimed, unevaluated
    from .claim_citation import markdown_of, origin, record_of

    asked_for, made = set(asked), origin()
    results = [result for result in related(results) if result.id in asked_for]
    left = unevaluated(results)
    if results:
        say(str(ledger(results)))
    for result in results:
        if not result.ok:
            say(f"\n{result}\n")
    if results and formulas:
        say(str(formula_table(results)))
    seconds = sum(result.seconds for result in results)
    tail = ", interrupted" if interrupted else ""
    say(f"{len(results)} of {len(asked)} claims in {seconds:.1f} s of work, seed {seed}{tail}")
    if results:
        say(resolution(results))
        branches = sum(map(len, left.values()))
        if branches:
            say(f"{branches} branches of {len(left)} formulas are evaluated by none of these claims")
    if len(results) >= len(list_claims()):
        say(f"no claim is about {len(unclaimed(results))} formulas")
    for name in left if formulas else ():
        say("\n".join([f"not evaluated, {name}:", *(f"  {way}" for way in left[name])]))
    if data is not None:
        say(f"claims about data: on {data}")
    code = exit_code(results)
    if json_file is not None:
        content = {
            "seed": seed,
            "quick": quick,
            "data": data,
            "versions": versions(),
            **made._asdict(),
            "interrupted": interrupted,
            "exit_code": code,
            "not_evaluated": left,
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


def _bar(total: int, comm: Any, shown: bool = False) -> Any:
    """A progress bar of the claims of this rank, on rank 0 and on a terminal, unless rows are shown."""
    from tqdm import tqdm

    elsewhere = comm is not None and comm.Get_rank() > 0
    return tqdm(total=total, unit=" claims", ncols=100, leave=False, disable=elsewhere or shown or not on_terminal())
