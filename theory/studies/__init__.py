"""Studies: statements of lectures and papers that are not theorems, measured in training, with a table and a figure.

Each is a file of this folder with two functions, and one TOML file for each experiment in ``configurations``.
``collect`` measures and returns a dict of values for a record (:mod:`theory.reporting.json_values` lists the allowed
types).  It takes what it needs of ``quick``, ``seed``, ``data``, ``topics`` and ``options``; with a parameter ``comm``
it runs on ranks itself.
``report(**values)`` makes a :class:`~.shared.report.Study` from them: tables, statements and figure, without measuring.
"""

from __future__ import annotations

import inspect
import os
import time
from pathlib import Path

from ..reporting.files import ConfigurationError, write_whole
from ..reporting.json_values import to_json
from .shared.configuration import STUDIES, StudyConfiguration, make_options, module_of, takes
from .shared.report import Study, as_markdown, as_text, checked, drawn, put_below_mark

RESCUED = "figures"  # where the record goes if there is no folder and no report


def collect(
    study: str,
    quick: bool = False,
    seed: int = 0,
    data: str | None = None,
    topics: str | None = None,
    options=None,
    comm=None,
) -> dict:
    """Measure the values of one study.

    Parameters
    ----------
    study : str
        A key of ``STUDIES``, or the path of a Python file with a study.
    quick : bool
        Smaller problems, fewer methods.
    seed : int
    data : str, optional
        Data in place of RCV1 in two classes: a name or a LIBSVM file; by default the study's own choice.
    topics : str, optional
        The multi-label file of RCV1; by default the one in the folder ``THEORY_DATA``, if there is one.
    options : NamedTuple or dict, optional
        The study's ``Options``, if it has any.
    comm : mpi4py communicator, optional
        For a study that runs on ranks (:func:`takes_ranks`); all of them call.

    Returns
    -------
    dict
        For :func:`report`.
    """
    if options is None or isinstance(options, dict):
        options = make_options(study, options or {})
    given = {"quick": quick, "seed": seed, "data": data, "topics": topics, "options": options, "comm": comm}
    return module_of(study).collect(**{name: given[name] for name in takes(study)})


def takes_ranks(study: str) -> bool:
    """Whether a study runs on ranks itself, so that all of them measure it together: ``collect`` takes ``comm``."""
    return "comm" in takes(study)


def report(study: str, found: dict, name: str | None = None) -> Study:
    """Tables, statements and figure of the measured values; ``name`` is that of the experiment, if it has one.

    Raises
    ------
    ConfigurationError
        If the values are not those that ``report`` takes, or a table or a trial cannot be shown.
    """
    make = module_of(study).report
    signature = inspect.signature(make)
    try:
        signature.bind(**found)
    except TypeError:
        returned = ", ".join(map(repr, found)) if isinstance(found, dict) else f"a {type(found).__name__}"
        asked = ", ".join(map(repr, signature.parameters))
        raise ConfigurationError(f"{study}: collect returned {returned}, report takes a dict with {asked}") from None
    made = checked(make(**found))
    return made if name is None else made._replace(name=name)


def run_study(study: str, *args, **options) -> Study:
    """Run one study: :func:`collect`, which takes the same arguments, then :func:`report`."""
    return report(study, collect(study, *args, **options))


def write_page(folder: str | Path, study: Study, figures) -> Path:
    """Write the page of a study into a folder, with a link to its figure in the folder ``figures``; return its path."""
    page = Path(folder) / f"{study.name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    link = Path(os.path.relpath(Path(figures).resolve(), page.resolve().parent)) / f"study-{study.name}.png"
    write_whole(page, put_below_mark(text, study, as_markdown(study, link.as_posix())))
    return page


def measure(e: StudyConfiguration, quick: bool = False, comm=None) -> tuple[dict, float]:
    """The values of an experiment that is a study, and the seconds that it took."""
    begin = time.perf_counter()
    found = collect(e.study, quick, e.seed, e.data, e.topics, e.options, comm)
    return found, time.perf_counter() - begin


def how_of(e: StudyConfiguration, quick: bool = False) -> dict:
    """What was run, for the record of an experiment that is a study: of its files the names alone."""
    how = {"study": e.study, "experiment": e.name, "quick": quick, "seed": e.seed}
    how |= {key: Path(name).name for key, name in (("data", e.data), ("topics", e.topics)) if name is not None}
    return how if e.options is None else how | {"options": to_json(e.options._asdict())}


def show_studies(measured, quick=False, figures=None, markdown=None, say=print) -> int:
    """Show the results of experiments that are studies, draw their figures, and write them into a page.

    The record is written first: no mistake in a report loses what was measured.

    Parameters
    ----------
    measured : iterable of (StudyConfiguration, callable)
        Each with a function without arguments that measures it, or tells what was measured, as :func:`measure` does.
    quick : bool
        Whether they were measured with smaller problems.
    figures : str, optional
        Folder for the figures, ``study-<name>`` as PNG and PDF, and for their records.
    markdown : str, optional
        A folder that gets a page of each study, ``<name>.md``; figures then go to ``figures`` in the folder from which
        the command is called, by default.
    say : callable
        Called with the lines of output.

    Returns
    -------
    int
        0; 1 if what was measured cannot be written.
    """
    from ..reporting.json_values import write_record

    code = 0
    if markdown and figures is None:
        figures = "figures"
    for e, get in measured:
        say(f"{e.name}: {e.about}")
        found, seconds = get()

        def keep(folder, e=e, found=found, seconds=seconds):
            try:
                say(f"record: {write_record(folder, f'study-{e.name}', how_of(e, quick), seconds, found)}")
            except TypeError as error:
                say(f"no record, as collect returned what cannot be written: {error}")
                return 1
            return 0

        if figures:
            code |= keep(figures)
        try:
            study = report(e.study, found, e.name)
        except Exception:
            if not figures:
                keep(RESCUED)
            raise
        say(f"\n{as_text(study)}\n")
        say(f"{e.name}: {seconds:.0f} s, seed {e.seed}{', quick' if quick else ''}")
        if figures:
            from ..plots import save_figure

            Path(figures).mkdir(parents=True, exist_ok=True)
            for path in save_figure(drawn(study), Path(figures) / f"study-{e.name}"):
                say(f"figure: {path}")
        if markdown:
            say(f"page: {write_page(markdown, study, figures)}")
    return code
