"""The command ``figures``: redraw figures from their records, or measure first if there is none.

It also draws the figure of a record.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..reporting.files import ConfigurationError, RecordError, nearest
from ..reporting.json_values import FOLDER, FigureRecord, read_record, record_path, write_record
from . import audit_command
from .ranks import from_root
from .record_table import figure_of
from .records import Configuration, Record
from .records import read_record as read_run


class Figure(NamedTuple):
    """One figure of the folder.

    Attributes
    ----------
    name : str
        Name of its files, without an extension.
    how : dict
        The settings of the measurement, for the record.
    collect : callable
        ``collect(comm, say)`` measures and returns the values of the figure: the only slow part.
    draw : callable
        ``draw(found)`` returns the figure.
    """

    name: str
    how: dict
    collect: Callable
    draw: Callable


# --- the figures ------------------------------------------------------------------------------------------------------


def known_figures() -> dict[str, Figure]:
    """All figures by name: the flagship, the compressors, RCV1 beside its twin, and one per study of the package."""
    from ..studies.shared.configuration import StudyConfiguration, shipped_studies

    found = [
        Figure(
            "flagship",
            {"configuration": "the default"},
            _collect_flagship,
            lambda found: figure_of(Record(Path(), **found)),
        ),
        Figure("compressors", {"audit": "all"}, _on_root(audit_command.collect), _draw_compressors),
        Figure("rcv1-like", {"data": "RCV1 and its twin"}, _on_root(_collect_twin), _draw_twin),
        *map(_of_study, map(StudyConfiguration.from_toml, shipped_studies())),
    ]
    return {figure.name: figure for figure in found}


def _on_root(collect):
    """A ``collect`` that measures on rank 0 only; the other ranks get None."""

    def collected(comm, say):
        found: list = []
        from_root(comm, lambda: found.append(collect(say)))  # an error in the configuration ends all ranks
        return found[0] if found else None

    return collected


def _of_study(e: Any) -> Figure:
    from ..studies import drawn, how_of, measure, report

    return Figure(
        f"study-{e.name}",
        how_of(e),
        _on_root(lambda say: measure(e)[0]),
        lambda found: drawn(report(e.study, found, e.name)),
    )


def _of_file(path: str, folder: str | Path, record: str | None) -> list[Figure]:
    """The figures of a user's file: for a TOML file its own; for a study all that have a record, or else its own."""
    from ..studies.shared.configuration import experiment_of

    e = experiment_of(path)
    if path.endswith(".toml"):
        return [_of_study(e)]
    name = Path(path).name
    here = sorted((Path(folder) / FOLDER).glob("study-*.json")) if record is None else [Path(record)]
    records = [read_record(one) for one in here if record or name in one.read_text(encoding="utf-8")]
    mine = [one.how for one in records if Path(str(one.how.get("study"))).name == name]
    return [_of_study(e._replace(name=how["experiment"])) for how in mine] or [_of_study(e)]


def _of_record(path: Path) -> Figure:
    """The figure of a record of one of the package's studies that was run with a user's configuration."""
    from ..studies import STUDIES, StudyConfiguration

    record = read_record(path)
    study, folder = str(record.how.get("study")), f" --figures {path.parent.parent}"
    if study not in STUDIES:
        own = study if study.endswith(".py") else "FILE"
        raise ConfigurationError(f"{path} is of {study}, which runs only if it is named: figures {own}{folder}")

    def refused(comm, say):
        raise ConfigurationError(f"{record.figure}: --fresh needs the configuration: figures FILE.toml --fresh{folder}")

    return _of_study(StudyConfiguration(record.how["experiment"], study, ""))._replace(how=record.how, collect=refused)


def _draw_compressors(found):
    return audit_command.figure_of(**found)


def _collect_twin(say: Any) -> dict:
    from ..data import DataError, load_data
    from ..data.description import outlines
    from ..studies.shared.problems import BINARY, data_file

    path = data_file(BINARY)
    if path is None:
        raise ConfigurationError(f"rcv1-like: needs the real file {BINARY} in the folder that THEORY_DATA names")
    try:
        return outlines(load_data(path, n_features=47_236), load_data("rcv1-like"))
    except DataError as error:
        raise ConfigurationError(str(error)) from None


def _draw_twin(found):
    from ..plots.curves import draw_rows

    return draw_rows(**found)


# --- the flagship -----------------------------------------------------------------------------------------------------


def _collect_flagship(comm: Any, say: Any) -> dict | None:
    from .flagship import experiment

    with tempfile.TemporaryDirectory() as out:
        told = lambda text: text.startswith("record:") or say(text)  # noqa: E731  # its record is temporary
        code = experiment(Configuration(out=out), comm=comm, command="figures flagship", say=told)
        if code:
            raise KeyboardInterrupt
        if comm is not None and comm.Get_rank() > 0:
            return None
        (folder,) = Path(out).iterdir()
        return flagship_found(read_run(folder))


def flagship_found(record: Record) -> dict:
    """Values of the figure of a record of ``run``: its lines without the command, and its histories."""
    if not record.results:
        raise RecordError(f"{record.folder} holds no run")
    stored = {key: value for key, value in record.experiment.items() if key not in ("command", "started", "versions")}
    stored["configuration"] = {k: v for k, v in record.experiment["configuration"].items() if k not in ("out", "data")}
    return {"experiment": stored, "results": record.results, "histories": record.histories}


def _draw_flagship(found):
    return figure_of(Record(Path(), **found))


# --- the command ------------------------------------------------------------------------------------------------------


def chosen(names: Sequence[str], folder: str | Path = "figures", record: str | None = None) -> list[Figure]:
    """The figures with these names: figures, studies with or without "study-", or a study's name for all its figures.

    A Python file with a study means all figures whose records in the folder, or at ``record``, were made by that study.

    Raises
    ------
    ConfigurationError
        For an unknown name, with the nearest known one; for a record in the folder that is of a user's file, with
        the name of that file, which is not run.
    """
    from ..studies.shared.configuration import shipped_studies

    known, studies = known_figures(), shipped_studies()
    found: list = []
    for name in names or known:
        if name.endswith((".py", ".toml")):
            own = _of_file(name, folder, record)
            known |= {figure.name: figure for figure in own}
            found += [figure.name for figure in own]
            continue
        plain = name.removesuffix(".png").removesuffix(".pdf")
        of_study = [f"study-{experiment}" for experiment, study in studies.items() if study == plain]
        here = [plain] if plain in known else [f"study-{plain}"] if f"study-{plain}" in known else of_study
        theirs = [path for one in (plain, f"study-{plain}") if (path := record_path(folder, one)).is_file()]
        if not here and theirs:
            known[theirs[0].stem] = _of_record(theirs[0])
            here = [theirs[0].stem]
        if not here:
            raise ConfigurationError(f"unknown figure {name!r}: {nearest(name, [*known, *studies])}")
        found += here
    return [known[name] for name in dict.fromkeys(found)]


def records_of(figures: Any, folder: str | Path, fresh: bool = False) -> dict[str, FigureRecord | None]:
    """The record of each figure; None if it has to be measured.

    Raises
    ------
    RecordError
        For a record that exists but cannot be read.
    """
    paths = {figure.name: record_path(folder, figure.name) for figure in figures}
    return {name: None if fresh or not path.is_file() else read_record(path) for name, path in paths.items()}


def own_records(folder: str | Path, known: Any) -> dict[str, FigureRecord]:
    """The records in a folder of the user's own studies and configurations, which are of no known figure."""
    paths = sorted((Path(folder) / FOLDER).glob("*.json"))
    found = {path.stem: read_record(path) for path in paths if path.stem not in known}
    return {name: record for name, record in found.items() if "study" in record.how}


def _drawn_by(record: FigureRecord, folder: str | Path) -> str:
    """The command that draws a figure of a user's file; such a file is run only if it is named."""
    study = str(record.how.get("study"))
    at = "" if str(folder) == "figures" else f" --figures {folder}"
    return f"of {study}: figures {study if study.endswith('.py') else record.figure}{at}"


def plan_text(
    figures: Any, records: Any, own: Mapping[str, FigureRecord] | None = None, folder: Any = "figures"
) -> str:
    """The source of each figure, one per line; figures of the user come last."""
    lines = []
    for figure in figures:
        record = records[figure.name]
        if record is None:
            lines.append(f"{figure.name:<26}from scratch: there is no record")
        else:
            said = ", ".join(
                f"{key} {value}" for key, value in record.how.items() if key in ("seed", "quick") and value
            )
            lines.append(
                f"{figure.name:<26}from its record; measuring took {record.seconds:.0f} s"
                + (f" ({said})" if said else "")
            )
    lines += [f"{name:<26}from its record, {_drawn_by(record, folder)}" for name, record in (own or {}).items()]
    return "\n".join(lines)


def draw_figures(
    figures: Any,
    folder: str | Path,
    records: Any,
    *,
    comm: Any = None,
    markdown: Any = None,
    tables: Any = False,
    say: Callable[[str], object] = print,
) -> None:
    """Draw figures as PNG and PDF: from their records, or after measuring, which writes a record.

    Parameters
    ----------
    figures : sequence of Figure
    folder : path-like
    records : dict of str to FigureRecord or None
        By figure; None to measure.  On ranks, rank 0 decides: the others may not see its files, or not yet.
    comm : mpi4py communicator, optional
        The flagship's workers then run on its ranks; everything else runs on rank 0.
    markdown : str, optional
        A folder into which a page of each study is written.
    tables : bool
        Whether to show the tables and statements of studies.
    say : callable
        Called with the lines of output, on rank 0 only.
    """
    root = comm is None or comm.Get_rank() == 0
    folder = Path(folder)
    missing = from_root(comm, lambda: [name for name, record in records.items() if record is None])
    for figure in sorted(figures, key=lambda figure: figure.name in missing):  # slow figures come last
        if figure.name in missing:
            if root:
                say(f"{figure.name}: measuring")
            begin = time.perf_counter()
            found = figure.collect(comm, say)
            if not root:
                continue
            seconds = time.perf_counter() - begin
            say(f"record: {write_record(folder, figure.name, figure.how, seconds, found)} ({seconds:.0f} s)")
        elif (record := records[figure.name]) is not None:
            found = record.found
        if root:
            _draw(figure, found, folder, markdown, tables, say)


def _draw(figure: Figure, found: dict, folder: Path, markdown: Any, tables: bool, say: Any) -> None:
    from ..plots import save_figure

    study = None
    if "study" in figure.how:
        from ..studies import drawn, report, write_page
        from ..studies.shared.report import as_text

        study = report(figure.how["study"], found, figure.how["experiment"])
    if study is not None and tables:
        say(f"\n{as_text(study)}\n")
    folder.mkdir(parents=True, exist_ok=True)
    for path in save_figure(figure.draw(found) if study is None else drawn(study), folder / figure.name):
        say(f"figure: {path}")
    if study is not None and markdown:
        say(f"page: {write_page(markdown, study, folder)}")
