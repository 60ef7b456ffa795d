"""The command ``audit``: compressors in two tables, as a page of the documentation and as a figure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core.arguments import usable_cores
from ..reporting.files import rendered
from ..reporting.progress import Progress
from .command_parser import write_json
from .ranks import each, from_root, shared_out

D = 640  # the length of a gradient of softmax regression on digits, 64 pixels x 10 classes
SHEETS = 3  # maximum number of compressors shown in full
TAIL = 12  # lines of a compiler message with file and line
TIMED = 100_000  # coordinates of the vectors that are timed
BEGIN, END = "<!-- begin: python -m theory.experiment audit -->", "<!-- end: python -m theory.experiment audit -->"
FIRST = f"# Compressors, audited\n\n{BEGIN}\n{END}\n"  # a page that does not exist yet


class NoSuchCompressor(ValueError):
    """The name of an unknown compressor."""


# --- the audited compressors ------------------------------------------------------------------------------------------


def family_of(c: Any) -> str:
    """The file in which a compressor is defined."""
    return type(c).__module__.rsplit(".", 1)[-1].replace("_", " ")


def load_file(path: str) -> set[type]:
    """Run a Python file and return the classes of compressors that it registers."""
    from ..compressors import registered
    from ..reporting.files import FileRefused, run_file

    before = set(registered())
    try:
        name = run_file(path).__name__
    except FileRefused as error:
        raise NoSuchCompressor(str(error)) from None
    return {cls for cls in registered() if cls not in before or cls.__module__ == name}


def chosen(names: Sequence[str], d: int) -> list[tuple]:
    """The compressors with these names for length d, each with another instance of its class for timing.

    A name is a class or a family, case-insensitive, or the path of a file that registers a class.
    """
    from ..compressors import compressor_examples

    files = [name for name in names if name.endswith(".py") or os.sep in name]
    classes: set[type] = set()
    for name in files:
        here = load_file(name)
        if not here:
            raise NoSuchCompressor(f"{name} registers no compressor")
        classes |= here
    pairs = list(zip(compressor_examples(d), compressor_examples(TIMED), strict=True))
    if not names:
        return pairs
    for name in (name for name in names if name not in files):
        plain = name.lower().replace("_", " ").replace("-", " ")
        here = {type(c) for c, _ in pairs if plain in (type(c).__name__.lower(), family_of(c))}
        if not here:
            from ..reporting.files import nearest

            known = sorted({type(c).__name__ for c, _ in pairs})
            raise NoSuchCompressor(f"unknown compressor {name!r}: {nearest(name, known)}")
        classes |= here
    return [pair for pair in pairs if type(pair[0]) in classes]


def why_not_compiled(c: Any, d: int, error: Any) -> str:
    """Which part of ``c`` does not compile, the file and line where it begins, and the end of Numba's message.

    ``error`` is raised in a caller of that part and lacks this information; so the parts are called one by one.
    """
    import numpy as np
    from numba import typeof

    from ..compressors.base import accumulate, capacity, new_symbols, pack, payload_bits, quantize, unpack
    from ..core.numba_private import NumbaError

    v, place, part = np.linspace(-1.0, 1.0, d), "", capacity
    try:
        symbols, state, buffer = new_symbols(c, d, np.empty(0, np.float32)), np.zeros(d), np.zeros(0, np.uint8)
        for part, given in (
            (quantize, (state, v, np.uint64(0), symbols)),
            (accumulate, (symbols, 1.0, np.zeros(d))),
            (payload_bits, (symbols, d)),
            (pack, (symbols, d, buffer, 0)),
            (unpack, (buffer, 0, 0, d, symbols)),
        ):
            own = part.table.get(type(c))
            if own is not None:
                own.compile(tuple(map(typeof, (c, *given))))
    except (NumbaError, TypeError) as found:
        error = found
        if type(c) in part.table:
            code = part.table[type(c)].py_func.__code__
            place = f"{part.__name__}, {code.co_filename}, line {code.co_firstlineno}:\n"
    return place + "\n".join([line for line in str(error).splitlines() if line.strip()][-TAIL:])


# --- the command ------------------------------------------------------------------------------------------------------


def audit_all(
    pairs: Any,
    d: int,
    seed: int,
    quick: bool,
    markdown: str | None,
    figure: str | None,
    say: Callable[[str], object],
    processes: int = 1,
    comm: Any = None,
    json_file: str | None = None,
) -> int:
    """Audit compressors, show the results, and draw.

    Parameters
    ----------
    pairs : sequence
        From :func:`chosen`.
    d : int
        Length of the vectors.
    seed : int
    quick : bool
    markdown, figure : str, optional
        Paths of a page and a figure (the extension of the figure is ignored).
    say : callable
        Called with the lines of output.
    processes : int
        Number of processes.  Results do not depend on it, except that times vary slightly.
    comm : mpi4py communicator, optional
        With several ranks, these share the compressors in place of the processes; rank 0 shows and writes.
    json_file : str, optional
        Where the results are written as JSON, "-" for standard output.

    Returns
    -------
    int
        1 if a compressor contradicts its stated properties or does not compile, else 0.
    """
    from ..measure import AuditTable
    from ..measure.audit_tables import name_of
    from ..reporting.files import write_whole
    from ..reporting.json_values import write_record

    begin, interrupted = time.perf_counter(), False
    answers: dict[int, Any] = {}
    if comm is not None and comm.Get_size() > 1 and _importable(pairs):
        answers, interrupted = _answers_of_ranks(pairs, d, seed, quick, comm)
    elif comm is None or comm.Get_rank() == 0:
        try:
            for number, answer in _answers(pairs, d, seed, quick, processes):
                answers[number] = answer
        except KeyboardInterrupt:
            interrupted = True

    def show() -> int:
        every = [answers[number] for number in range(len(pairs)) if number in answers]
        broken = [answer for answer in every if isinstance(answer, str)]
        found = [answer for answer in every if not isinstance(answer, str)]
        table = AuditTable(found)
        for answer in broken:
            say(answer)
        if found:
            say("\n\n".join(map(str, found)) if len(pairs) <= SHEETS else str(table))
        for one in found:
            if not one.ok:
                say(f"{one.compressor!r}: {one.verdict}")
        spent, tail = time.perf_counter() - begin, ", interrupted" if interrupted else ""
        say(f"{len(found)} of {len(pairs)} compressors in {spent:.0f} s, d = {d:,}, seed {seed}{tail}")
        if interrupted:
            return 130
        text, stem = FIRST, figure
        if markdown and os.path.exists(markdown):
            text = Path(markdown).read_text(encoding="utf-8")
        if markdown and figure is None:
            stem = str(Path(markdown).resolve().parent.parent / "figures" / "compressors")
        if json_file and found:
            audits = ({"name": name_of(one.compressor), **one._asdict(), "unbiased": one.unbiased} for one in found)
            write_json(json_file, list(audits))
        if stem and found:
            for path in draw(table, stem):
                say(f"figure: {path}")
            to, how = Path(_stem(stem)), {"audit": len(pairs), "d": d, "seed": seed, "quick": quick}
            say(f"record: {write_record(to.parent, to.name, how, spent, found_of(table))}")
        if markdown and found:
            write_whole(Path(markdown), page(table, _stem(stem), markdown, text))
            say(f"page: {markdown}")
        return 0 if table.ok and not broken else 1

    return from_root(comm, show)


def _one(given):
    """The audit of one compressor, or a string that explains why it does not compile."""
    from ..core.numba_private import NumbaError
    from ..measure import audit

    (c, timed), inputs, d, seed, quick = given
    try:
        return audit(c, d=d, inputs=inputs, seed=seed, quick=quick, timing=(timed, TIMED))
    except NumbaError as error:
        return f"{c!r} does not compile:\n{why_not_compiled(c, d, error)}\n"


def _several(given: Any) -> list:
    """The same for several, in one process: shared code is compiled once."""
    pairs, *others = given
    return [_one((pair, *others)) for pair in pairs]


def _work(pairs: Any, *how: Any) -> tuple[list[list[int]], list[tuple]]:
    """The indices of the compressors of each class, and the work; the slowest, with many types, come first."""
    from numba import typeof

    groups: dict[type, list[int]] = {}
    for number, (c, _) in enumerate(pairs):
        groups.setdefault(type(c), []).append(number)
    members = sorted(groups.values(), key=lambda group: -len({typeof(pairs[n][0]) for n in group}))
    return members, [([pairs[n] for n in group], *how) for group in members]


def _importable(pairs: Any) -> bool:
    """Whether other processes know all classes: one from a file is known only where the file was run."""
    own = __package__.partition(".")[0]
    return all(type(c).__module__.partition(".")[0] == own for c, _ in pairs)


def _answers_of_ranks(pairs: Any, d: int, seed: int, quick: bool, comm: Any) -> tuple[dict, bool]:
    """Index and audit (or string) of every compressor, on rank 0, and whether there was an interruption."""
    from ..measure import input_vectors

    members, work = _work(pairs, input_vectors(d, seed=seed), d, seed, quick)
    found, interrupted = shared_out(comm, work, _several)
    answers = {n: one for k, several in found.items() for n, one in zip(members[k], several, strict=True)}
    return answers, interrupted


def _answers(pairs: Any, d: int, seed: int, quick: bool, processes: int) -> Any:
    """Index and audit (or string) of every compressor, as they finish, with a progress bar on a terminal."""
    from ..measure import input_vectors

    inputs = input_vectors(d, seed=seed)
    members, work = _work(pairs, inputs, d, seed, quick)
    with Progress("audit", len(pairs), " compressors") as progress:
        if processes == 1 or len(members) == 1 or not _importable(pairs):
            for number, pair in enumerate(pairs):
                progress.start(f"audit {type(pair[0]).__name__}")
                yield number, _one((pair, inputs, d, seed, quick))
                progress.at(1)
            return
        for k, answers in each(_several, work, processes):
            progress.done(number=len(members[k]))
            yield from zip(members[k], answers, strict=True)


# --- the page and the figure ------------------------------------------------------------------------------------------


def page(table: Any, figure: str, markdown: str, text: str = FIRST) -> str:
    """The page ``text`` with the tables and the figure (``audit_page.md``) between its marks.

    Raises
    ------
    ValueError
        If the page has no marks.
    """
    from ..measure.audit_tables import law_table, wire_table

    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(
            f"{markdown}: got a page without marks, allowed: a new file, or one with the lines\n{BEGIN}\n{END}"
        )
    link = Path(os.path.relpath(Path(figure).resolve(), Path(markdown).resolve().parent) + ".png").as_posix()
    facts = dict(audits=table, law=law_table(table), wire=wire_table(table), timed=TIMED, figure=link)
    return f"{before}{BEGIN}\n{rendered(Path(__file__).with_name('audit_page.md'), **facts)}\n{END}{after}"


def _stem(figure: Any) -> str:
    """The path of a figure without its extension."""
    return str(figure).removesuffix(".png").removesuffix(".pdf")


def found_of(table: Any) -> dict:
    """Values of the figure: a point for each compressor at the Gaussian vector, d and the seed."""
    from ..measure.audit_tables import name_of
    from ..plots.tradeoff import Point

    points = []
    for one in table:
        (row,) = (row for row in one.rows if row.name == "gaussian")
        names = name_of(one.compressor), family_of(one.compressor)
        points.append(Point(*names, one.wire.coded.estimate, row.error.estimate, one.unbiased))
    return {"points": points, "d": table[0].d, "seed": table[0].seed}


def figure_of(points: Any, d: int, seed: int) -> Any:
    """The figure "variance against bits" of the audits, with the lower bound at their Gaussian vector."""
    from ..measure import input_vectors
    from ..plots.tradeoff import draw_tradeoff

    v = input_vectors(d, ["gaussian"], seed)["gaussian"]
    return draw_tradeoff(points, v, title=f"one Gaussian vector, d = {d:,}")


def draw(table: Any, stem: Any) -> list[Path]:
    """Write the figure of the audits."""
    from ..plots import save_figure

    stem = Path(_stem(stem))
    stem.parent.mkdir(parents=True, exist_ok=True)
    return save_figure(figure_of(**found_of(table)), stem)


def collect(say: Callable[[str], object]) -> dict:
    """Audit all compressors for the figure."""
    from ..measure import AuditTable

    say("compressors: auditing all of them")
    answers = dict(_answers(chosen([], D), D, 0, False, usable_cores()))
    return found_of(AuditTable([answers[number] for number in sorted(answers)]))
