"""Figures without global state: one style sheet, no pyplot, no window, matplotlib imported on demand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("theory.mplstyle")
COLUMN = 3.4  # inches: the width of one column in print
LOOKS = 12  # of curves, in the style sheet
PAGE = 2.0 * COLUMN  # the widest figure: it fits an A4 page (17.3 cm) without scaling


@contextmanager
def style() -> Any:
    """Context in which matplotlib uses the package's style; its settings are restored afterwards."""
    import matplotlib

    with matplotlib.rc_context(fname=STYLE):
        yield


def colours() -> list[str]:
    """The colours of the style's cycle, in its order; "C0" would be looked up only when the figure is drawn.

    Examples
    --------
    >>> colours()[:2]
    ['#000000', '#E69F00']
    """
    import matplotlib

    with style():
        return matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]


def looks() -> Any:
    """The cycle of colour, dashes and marker, of which no two are alike up to `LOOKS`."""
    import matplotlib

    with style():
        return matplotlib.rcParams["axes.prop_cycle"]


def new_figure(rows: int = 1, columns: int = 1, *, width: float | None = None, height: float | None = None) -> Any:
    """A figure and its axes, without a window and unknown to pyplot.

    Parameters
    ----------
    rows, columns : int
    width, height : float, optional
        In inches; by default a column's width for each column, and 0.8 of it for each row.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : ndarray of matplotlib.axes.Axes, shape (rows, columns)
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(width or COLUMN * columns, height or 0.8 * COLUMN * rows), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, squeeze=False)


def save_figure(figure: Any, stem: Any, formats: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write a figure to ``stem`` with each extension, atomically.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    stem = Path(stem)
    written = []
    engine = figure.get_layout_engine()
    with style():
        if engine is not None:  # once for all formats: it takes as long as the drawing
            engine.execute(figure)
            figure.set_layout_engine("none")
    for ending in formats:
        path = stem.with_name(f"{stem.name}.{ending}")
        part = stem.with_name(f".{stem.name}.{ending}.part")
        # without a date, the same curves give the same file
        metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending)
        with style():
            figure.savefig(part, format=ending, metadata=metadata)
        os.replace(part, path)
        written.append(path)
    figure.set_layout_engine(engine)
    return written
