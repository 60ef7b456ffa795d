"""Studies: statements of lectures and papers that are no theorems, measured in training, with a table and a figure.

Each is a file with a function ``study(quick, seed, data, topics)`` that returns a :class:`~.report.Study`.
"""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path

from .report import Study, as_markdown, as_text, put_between_marks, write_whole

__all__ = ["STUDIES", "run_studies", "run_study"]

STUDIES = {
    "bits-to-accuracy": "bits to one accuracy, against dense and against sparse float32",
    "nuqsgd": "NUQSGD against QSGD and QSGDinf at equal bits: variance, loss, held-out accuracy",
    "spectrum": "singular values of real gradients, and whether spectral beats entry-wise sparsification",
    "ternary-dimension": "ternary quantization with the 2-norm: iterations against the dimension",
}
FIRST = "# Studies\n"  # a page that does not exist yet


def run_study(name: str, quick: bool = False, seed: int = 0, data=None, topics=None) -> Study:
    """Run one study.

    Parameters
    ----------
    name : str
        A key of ``STUDIES``.
    quick : bool
        Smaller problems, fewer methods.
    seed : int
    data : str, optional
        What stands for RCV1 in two classes: a name or a LIBSVM file; by default its synthetic twin.
    topics : str, optional
        The multi-label file of RCV1; by default the one in the folder ``THEORY_DATA``, if there is one.

    Returns
    -------
    Study
    """
    module = importlib.import_module(f".{name.replace('-', '_')}", __name__)
    return module.study(quick=quick, seed=seed, data=data, topics=topics)


def run_studies(names, quick, seed, data, topics, figures, markdown, say) -> int:
    """Run studies, show what they found, draw their figures, and write them into a page.

    Parameters
    ----------
    names : sequence of str
        Keys of ``STUDIES``.
    quick : bool
    seed : int
    data, topics : str, optional
        As for `run_study`.
    figures : str, optional
        Folder for the figures, ``study-<name>`` as PNG and PDF.
    markdown : str, optional
        A page that gets each study between its marks; figures then go to ``figures`` beside the page's folder unless
        told otherwise.
    say : callable
        Gets the texts.

    Returns
    -------
    int
        0.
    """
    if markdown and figures is None:
        figures = str(Path(markdown).resolve().parent.parent / "figures")
    for name in names:
        begin = time.perf_counter()
        study = run_study(name, quick, seed, data, topics)
        say(as_text(study))
        say(f"{name}: {time.perf_counter() - begin:.0f} s, seed {seed}{', quick' if quick else ''}\n")
        if figures:
            from ...plots import save_figure

            Path(figures).mkdir(parents=True, exist_ok=True)
            for path in save_figure(study.draw(), Path(figures) / f"study-{name}"):
                say(f"figure: {path}")
        if markdown:
            page = Path(markdown)
            text = page.read_text(encoding="utf-8") if page.exists() else FIRST
            link = os.path.relpath(Path(figures).resolve(), page.resolve().parent)
            body = as_markdown(study, (Path(link) / f"study-{name}.png").as_posix())
            write_whole(page, put_between_marks(text, name, study.title, body))
            say(f"page: {markdown}")
    return 0
