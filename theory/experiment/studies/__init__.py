"""Studies: statements of lectures and papers that are no theorems, measured in training, with a table and a figure.

Each is a file with a function ``study(quick, seed, data, topics)`` that returns a :class:`~.report.Study`, a line in
``configuration.STUDIES``, and one TOML file for each experiment in ``theory/experiment/configurations``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from .configuration import STUDIES, StudyConfiguration, make_options, module_of
from .report import Study, as_markdown, as_text, put_between_marks, write_whole

__all__ = ["STUDIES", "StudyConfiguration", "page_of", "run_studies", "run_study"]

FIRST = "# Studies\n"  # a page that does not exist yet


def run_study(
    study: str, quick: bool = False, seed: int = 0, data: str | None = None, topics: str | None = None, options=None
) -> Study:
    """Run one study.

    Parameters
    ----------
    study : str
        A key of ``STUDIES``.
    quick : bool
        Smaller problems, fewer methods.
    seed : int
    data : str, optional
        What stands for RCV1 in two classes: a name or a LIBSVM file; by default the study's own choice.
    topics : str, optional
        The multi-label file of RCV1; by default the one in the folder ``THEORY_DATA``, if there is one.
    options : NamedTuple or dict, optional
        The study's own ``Options``, where it has some.

    Returns
    -------
    Study
    """
    if options is None or isinstance(options, dict):
        options = make_options(study, options or {})
    own = {} if options is None else {"options": options}
    return module_of(study).study(quick=quick, seed=seed, data=data, topics=topics, **own)


def page_of(study: str, markdown: str) -> Path:
    """The page that a study is written into: its own one, beside ``markdown``, if it has one."""
    page = Path(markdown)
    return page.with_name(getattr(module_of(study), "PAGE", page.name))


def run_studies(experiments, quick=False, figures=None, markdown=None, say=print) -> int:
    """Run experiments that are studies, show what they found, draw their figures, and write them into a page.

    Parameters
    ----------
    experiments : sequence of StudyConfiguration
    quick : bool
    figures : str, optional
        Folder for the figures, ``study-<name>`` as PNG and PDF.
    markdown : str, optional
        A page that gets each study between its marks (one that has a page of its own goes there, beside this one);
        figures then go to ``figures`` beside the page's folder unless told otherwise.
    say : callable
        Gets the texts.

    Returns
    -------
    int
        0.
    """
    if markdown and figures is None:
        figures = str(Path(markdown).resolve().parent.parent / "figures")
    for e in experiments:
        say(f"{e.name}: {e.about}")
        begin = time.perf_counter()
        study = run_study(e.study, quick, e.seed, e.data, e.topics, e.options)._replace(name=e.name)
        say(f"\n{as_text(study)}\n")
        say(f"{e.name}: {time.perf_counter() - begin:.0f} s, seed {e.seed}{', quick' if quick else ''}")
        if figures:
            from ...plots import save_figure

            Path(figures).mkdir(parents=True, exist_ok=True)
            for path in save_figure(study.draw(), Path(figures) / f"study-{e.name}"):
                say(f"figure: {path}")
        if markdown:
            page = page_of(e.study, markdown)
            text = page.read_text(encoding="utf-8") if page.exists() else FIRST
            link = os.path.relpath(Path(figures).resolve(), page.resolve().parent)
            body = as_markdown(study, (Path(link) / f"study-{e.name}.png").as_posix())
            write_whole(page, put_between_marks(text, e.name, study.title, body))
            say(f"page: {page}")
    return 0
