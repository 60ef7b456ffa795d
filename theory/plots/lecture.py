"""Figures of the lectures in one call, with one style and one meaning of marks and lines.

Marks are measured, with 99 % intervals if they are means over independent runs; a solid line is an exact law; a
dashed line is a bound; a dotted one is a model or a comparison. ``k`` is the index of a curve's colour and mark.

A picture is composed from the inside out: curves are put into a `panel` with axes, and panels into `draw`.

>>> law = [exact([1, 2, 3], [1, 4, 9], label="law"), measured([1, 2], [[1.0, 3.9], [1.1, 4.0]], label="runs")]
>>> draw(panel(law, x="n", y="squares", log="y"))  # in a notebook: the picture
<IPython.core.display.Image object>
"""

from __future__ import annotations

import inspect
import io
import textwrap
import warnings
from typing import Any, NamedTuple

import numpy as np

from ..core import require
from . import notebook as interactive
from .appearance import COLUMN, new_figure, plain_ticks, style
from .lecture_curves import (
    bars,
    bound,
    colour,
    contours,
    curve,
    dot,
    dotted,
    exact,
    hline,
    marks,
    measured,
    rounded,
    single,
    vline,
)
from .notebook import ExplainAsserts

__all__ = [
    "Panel",
    "bars",
    "begin_lecture",
    "bound",
    "colour",
    "contours",
    "curve",
    "dot",
    "dotted",
    "draw",
    "exact",
    "explore",
    "figure",
    "hline",
    "marks",
    "measured",
    "paint",
    "panel",
    "rounded",
    "show",
    "single",
    "vline",
]


# JupyterLab breaks lines of results within words; now between them, and code has a scroll bar instead.
WHOLE_WORDS = (
    "<style>.jp-OutputArea-output pre { word-break: normal; overflow-wrap: normal; overflow-x: auto; }"
    ".jp-RenderedMarkdown.jp-OutputArea-output pre { white-space: pre; }</style>"
)


def begin_lecture() -> None:
    """Begin a lecture: show warnings and failed checks of its cells in a short form.

    A warning is one line without a path, and one line for each kind in a cell. A failed check states the expected and
    the actual value. Long lines do not break within words.
    """
    shell = interactive.notebook()
    if shell is not None:
        from IPython.display import HTML, display

        if not any(isinstance(known, ExplainAsserts) for known in shell.ast_transformers):
            shell.ast_transformers.append(ExplainAsserts())
        display(HTML(WHOLE_WORDS))
    shown: set[tuple] = set()

    def show_warning(message: Any, category: Any, *_: Any) -> None:
        place = (getattr(shell, "execution_count", None), category)
        if place not in shown:
            shown.add(place)
            print(f"{category.__name__}: {' '.join(str(message).split())}")

    warnings.showwarning = show_warning  # type: ignore[assignment]  # as Python shows it, with fewer names


def show(*functions: Any) -> Any:
    """Show the source of compiled kernels, or of anything else, as a cell's output.

    Parameters
    ----------
    *functions : callable

    Returns
    -------
    IPython.display.Markdown
    """
    from IPython.display import Markdown

    text = "\n".join(inspect.getsource(getattr(function, "py_func", function)) for function in functions)
    return Markdown(f"```python\n{text}```")


# --- the picture ------------------------------------------------------------------------------------------------------


class Panel(NamedTuple):
    """Axes and the curves drawn on them."""

    things: list
    settings: dict
    log: str
    base2: bool
    ticks: dict
    legend: str | None


def panel(
    *things: Any,
    x: str = "",
    y: Any = "",
    title: str = "",
    log: str = "",
    base2: bool = False,
    xlim: Any = None,
    ylim: Any = None,
    xticks: Any = None,
    yticks: Any = None,
    legend: Any = "best",
) -> Panel:
    """Make axes with the curves drawn on them.

    Parameters
    ----------
    *things : callable or sequence
        `curve` and the like, also in lists.
    x, y, title : str
        Labels.
    log : str
        Which axes are logarithmic: "x", "y" or "xy".
    base2 : bool
        Ticks of a logarithmic x-axis at powers of two.
    xlim, ylim : tuple, optional
    xticks, yticks : sequence or dict, optional
        The only values with a label; a dict from values to labels.
    legend : str or None
        Its place, as in matplotlib, or "outside"; None for no legend.
    """
    require(set(log) <= {"x", "y"}, "log", log, '"x", "y" or "xy"')
    settings = {"xlabel": x, "ylabel": y, "title": title}
    settings |= {name: limits for name, limits in (("xlim", xlim), ("ylim", ylim)) if limits is not None}
    found = {name: values for name, values in (("x", xticks), ("y", yticks)) if values is not None}
    return Panel(list(_flat(things)), settings, log, base2, found, legend)


def _flat(things):
    for thing in things:
        if callable(thing):
            yield thing
        elif thing is not None:
            yield from _flat(thing)


def paint(axes: Any, said: Panel) -> None:
    """Draw a panel on axes.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    said : Panel
    """
    if "x" in said.log:
        axes.set_xscale("log", **({"base": 2} if said.base2 else {}))
    if "y" in said.log:
        axes.set_yscale("log")
    for thing in said.things:
        thing(axes)
    axes.set(**said.settings)
    for name in said.log:
        plain_ticks(getattr(axes, f"{name}axis"))
    for name, values in said.ticks.items():
        axis = getattr(axes, f"{name}axis")
        labels = values.values() if isinstance(values, dict) else [f"{value:,g}" for value in values]
        axis.set_ticks(list(values), list(labels))
        axis.set_ticks([], minor=True)
    named = _from_top(axes)
    if said.legend is not None and named:
        outside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        place = outside if said.legend == "outside" else {"loc": said.legend, "frameon": True}
        axes.legend(*zip(*named, strict=True), **place, framealpha=0.8, edgecolor="none")


def _from_top(axes: Any) -> list[tuple[Any, str]]:
    """Handles and labels in the order of the curves at their right ends; vertical lines last, bars as they are."""

    def depth(handle: Any) -> float:
        line = handle[0] if isinstance(handle, tuple) else handle  # marks with bars are a tuple
        x, y = (np.asarray(values, float) for values in line.get_data())
        if line.get_transform() == axes.get_xaxis_transform(which="grid"):
            return np.inf
        seen = np.isfinite(x) & np.isfinite(y) & (x <= max(axes.get_xlim()))
        return -y[seen][np.argmax(x[seen])] if seen.any() else np.inf

    found = list(zip(*axes.get_legend_handles_labels(), strict=True))
    if any(not hasattr(h[0] if isinstance(h, tuple) else h, "get_data") for h, _ in found):
        return found
    return sorted(found, key=lambda item: depth(item[0]))


def figure(*panels: Panel, title: str = "", width: Any = None, height: Any = None, sharey: bool = False) -> Any:
    """The figure of some panels, side by side.

    Parameters
    ----------
    *panels : Panel
    title : str
        The message of the figure, above all panels.
    width, height : float, optional
        In inches.
    sharey : bool
        The same scale on all vertical axes, with labels at the first alone.

    Returns
    -------
    matplotlib.figure.Figure
    """
    aside = 1.4 if any(said.legend == "outside" for said in panels) else 0.0
    wide = {1: 1.35 * COLUMN, 2: 2.2 * COLUMN}.get(len(panels), 2.4 * COLUMN)
    width = width or wide + aside
    lines = textwrap.wrap(title, int(14 * width))  # as many characters fit in an inch
    height = (height or 0.95 * COLUMN) + 0.16 * len(lines)
    made, axes = new_figure(1, len(panels), width=width, height=height)
    with style():
        if lines:
            made.suptitle("\n".join(lines), x=0.01, horizontalalignment="left")
        for place, said in zip(axes[0], panels, strict=True):
            paint(place, said)
        if sharey:
            low = min(place.get_ylim()[0] for place in axes[0])
            high = max(place.get_ylim()[1] for place in axes[0])
            for j, place in enumerate(axes[0]):
                place.set_ylim(low, high)
                place.tick_params(axis="y", which="both", labelleft=j == 0)
                place.set_ylabel(place.get_ylabel() if j == 0 else "")
    return made


def draw(*panels: Panel, title: str = "", width: Any = None, height: Any = None, sharey: bool = False) -> None:
    """Show some panels, side by side, as the output of a cell.

    Parameters
    ----------
    *panels : Panel
    title : str
        The message of the figure, above all panels.
    width, height : float, optional
        In inches.
    sharey : bool
        The same scale on all vertical axes, with labels at the first alone.
    """
    from IPython.display import Image, display

    made, file = figure(*panels, title=title, width=width, height=height, sharey=sharey), io.BytesIO()
    with style():
        made.savefig(file, format="png", dpi=made.dpi)
    display(Image(data=file.getvalue()))


def explore(
    said: Any, *, start: Any = None, width: Any = 1.4 * COLUMN, height: Any = 0.95 * COLUMN, **values: Any
) -> None:
    """Show a panel for given settings, with a slider for each of them if sliders can be shown.

    Parameters
    ----------
    said : callable
        ``said(**settings)`` returns a `panel`.
    start : dict, optional
        The initial settings.
    width, height : float, optional
        In inches.
    **values : sequence
        The allowed values of each setting.
    """

    def drawn(axes, **settings):
        paint(axes, said(**settings))

    interactive.explore(drawn, start=start, width=width, height=height, **values)
