"""Evidence that is kept in a checkout, and which claims would have to be measured again.

One file for each topic below ``docs/evidence``, one claim a line.  A claim is unchanged while all that was executed for
it is what it was, with the same minor versions of Python, NumPy and Numba.
"""

from __future__ import annotations

import contextlib
import functools
import os
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..claims.evidence import Evidence, EvidenceDamaged, from_line, measured, to_line
from ..measure.processors import usable_cores
from ..reporting.dependencies import ROOT, Sources
from ..reporting.files import versions, write_whole
from ..reporting.tracing import Trace, merged, traced

__all__ = [
    "FOLDER",
    "changed",
    "keep",
    "measured_apart",
    "read_evidence",
    "same_software",
    "software",
    "write_evidence",
]

FOLDER = Path("docs", "evidence")  # below the root of a checkout


@functools.cache
def software() -> dict[str, str]:
    """The versions on which numbers depend."""
    found = versions()
    return {name: found[name] for name in ("python", "numpy", "numba")}


def same_software(kept: Mapping[str, str]) -> bool:
    """Whether numbers of these versions are those of the present ones: major and minor versions are the same."""
    return all(kept.get(name, "").split(".")[:2] == one.split(".")[:2] for name, one in software().items())


def read_evidence(folder: Path = ROOT / FOLDER) -> dict[str, Evidence]:
    """The evidence that is kept, by id; empty where there is no checkout.

    Raises
    ------
    EvidenceDamaged
        For a line that is not what was written.
    """
    found = {}
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            one = from_line(line)
            if one.id in found:
                raise EvidenceDamaged(f"evidence of {one.id}: twice, in {path}")
            found[one.id] = one
    return found


def write_evidence(evidence: Iterable[Evidence], folder: Path = ROOT / FOLDER) -> None:
    """Keep evidence, with what is there of other claims; that of claims that are no more is removed."""
    from ..claims.base import registered

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = registered()
    every = read_evidence(folder) | {one.id: one for one in evidence}
    files: dict[str, list[str]] = {path.stem: [] for path in folder.glob("*.jsonl")}
    for id in sorted(every):
        if id in known and not known[id].file:
            files.setdefault(Path(known[id].place[0]).stem, []).append(to_line(every[id]))
    for topic, lines in files.items():
        path = folder / f"{topic}.jsonl"
        if lines:
            write_whole(path, "\n".join(lines) + "\n")
        else:
            path.unlink()


def changed(ids: Iterable[str], kept: dict[str, Evidence], seed: int, quick: bool, root: Path = ROOT) -> dict[str, str]:
    """The claims that have to be measured, and why.

    Parameters
    ----------
    ids : iterable of str
    kept : dict
        The evidence.
    seed, quick : int and bool
        How they would be measured.
    root : path-like
        The checkout whose sources count.

    Returns
    -------
    dict of str to str
        Ids and reasons.
    """
    from ..claims import find_claim

    sources, found = Sources(root), {}
    for id in ids:
        one, claim = kept.get(id), find_claim(id)
        if one is None:
            found[id] = "there is no evidence"
        elif (one.seed, one.quick) != (seed, quick):
            found[id] = f"the evidence is of seed {one.seed}, {'quick' if one.quick else 'in full'}"
        elif one.version != claim.version or set(one.mutants) != set(claim.mutants):
            found[id] = "the statement or its mutants changed"
        elif not same_software(one.versions):
            found[id] = f"measured with {', '.join(f'{name} {v}' for name, v in one.versions.items())}"
        elif sources.digest(one.executed) != one.digest:
            found[id] = "what was executed for it changed"
    return found


# --- measuring ----------------------------------------------------------------------------------------------------


def measured_apart(ids: Sequence[str], seed: int, quick: bool) -> Iterator[Evidence]:
    """Measure each claim in a process of its own, traced, so that what was executed for it is known.

    The processes are forked, before any kernel is loaded: each loads its own.

    Yields
    ------
    Evidence
        As soon as it is there.

    Raises
    ------
    RuntimeError
        If a process failed; the message is its traceback.
    """
    from ..claims.base import registered

    registered()  # imports all topics
    todo = list(ids)[::-1]
    running: dict[int, tuple[int, str]] = {}
    try:
        while todo or running:
            while todo and len(running) < usable_cores():
                id = todo.pop()
                there, here = os.pipe()
                process = os.fork()
                if process == 0:
                    os.close(there)
                    _child(here, id, seed, quick)
                os.close(here)
                running[there] = (process, id)
            for pipe in _readable(list(running)):
                process, id = running.pop(pipe)
                with os.fdopen(pipe, "rb") as file:
                    answer = file.read().decode()
                os.waitpid(process, 0)
                if not answer.startswith("{"):
                    raise RuntimeError(f"{id}: {answer or 'its process was ended from outside: too little memory?'}")
                yield from_line(answer)
    finally:
        for pipe, (process, _) in running.items():
            os.close(pipe)
            os.kill(process, 9)
            os.waitpid(process, 0)


def _readable(pipes: list[int]) -> list[int]:
    from multiprocessing.connection import wait

    return [pipe for pipe in wait(pipes) if isinstance(pipe, int)]


def _child(pipe: int, id: str, seed: int, quick: bool) -> None:
    """Measure a claim, write the evidence as a line, and end without what a process does at its end."""
    try:
        answer = to_line(_traced(id, seed, quick))
    except BaseException:
        answer = traceback.format_exc()
    with os.fdopen(pipe, "wb") as file:
        file.write(answer.encode())
    os._exit(0)


def _traced(id: str, seed: int, quick: bool) -> Evidence:
    from ..claims import find_claim
    from ..data import load

    load.load_entry = lambda name: None  # stored data would hide what made them
    claim, sources, traces = find_claim(id), Sources(), list[Trace]()

    @contextlib.contextmanager
    def watch() -> Iterator[None]:
        with traced() as trace:
            traces.append(trace)
            yield

    found = measured(claim, seed=seed, quick=quick, watch=watch)
    file, line = claim.place
    own = sources.node_at(Path(file).relative_to(ROOT).as_posix(), line)
    executed = merged([*(trace.executed(sources) for trace in traces), {own.file: [own.name]} if own else {}])
    return found._replace(versions=software(), executed=executed, digest=sources.digest(executed))


def keep(ids: Sequence[str], seed: int = 0, quick: bool = True, folder: Path = ROOT / FOLDER) -> dict[str, Evidence]:
    """Measure claims, each in a process of its own, and keep the evidence."""
    found: dict[str, Evidence] = {}
    try:
        for one in measured_apart(ids, seed, quick):
            found[one.id] = one
    finally:
        write_evidence(found.values(), folder)
    return found
