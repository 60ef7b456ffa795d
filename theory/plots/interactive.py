"""A picture with sliders in an interactive notebook; elsewhere only the picture."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from .figure_style import new_figure, style

# Set by interactive front ends (Jupyter's server, Visual Studio Code), and not by tools that only execute a notebook.
PEOPLE = ("JPY_SESSION_NAME", "VSCODE_PID", "VSCODE_CWD")


def explore(
    draw: Any,
    *,
    start: Any = None,
    width: Any = None,
    height: Any = None,
    columns: Any = 1,
    live: Any = None,
    **values: Any,
) -> Any:
    """Show a picture for given settings, with a slider for each of them if sliders can be shown.

    The picture for the initial settings is always shown, as an ordinary image. Sliders are added if the
    package ipywidgets is installed and the notebook is interactive; they redraw the same image.

    Parameters
    ----------
    draw : callable
        ``draw(axes, **settings)`` draws one picture; with more than one column ``axes`` is an array.
    start : dict, optional
        The initial settings; by default the middle one of the values.
    width, height : float, optional
        Size of the figure, in inches.
    columns : int
        Number of axes, side by side.
    live : bool, optional
        Whether to show sliders; by default determined from the environment.
    **values : sequence
        The allowed values of each argument of ``draw``.

    Raises
    ------
    ValueError
        If no values are given, or a setting of ``start`` is not one of its values.

    Examples
    --------
    >>> import math
    >>> from theory.plots import explore
    >>> def circle(axes, r):
    ...     _ = axes.plot([r * math.cos(t) for t in range(9)], [r * math.sin(t) for t in range(9)])
    >>> explore(circle, r=[1, 2, 4])  # in a notebook: the circle with r = 2
    <IPython.core.display.Image object>
    """
    from IPython.display import Image, display

    chosen = first_settings(values, start)

    def picture():
        return Image(data=render(draw, chosen, columns, width, height))

    sliders = make_sliders(values, chosen) if (somebody_looks() if live is None else live) else []
    if sliders:
        display(*sliders)
    shown = display(picture(), display_id=True)

    def redraw(change):
        chosen[change["owner"].description] = change["new"]
        shown.update(picture())

    for slider in sliders:
        slider.observe(redraw, names="value")


def first_settings(values: dict, start: dict | None) -> dict:
    """The initial settings; rejects values that no slider has."""
    if not values or not all(len(list(choices)) for choices in values.values()):
        raise ValueError("explore needs at least one argument of draw with its values, for example s=[1, 2, 4]")
    chosen = {name: list(choices)[len(list(choices)) // 2] for name, choices in values.items()}
    for name, value in (start or {}).items():
        if name not in values or value not in list(values[name]):
            allowed = f"one of {list(values[name])}" if name in values else f"only {', '.join(values)} can be set"
            raise ValueError(f"start has {name}={value!r}, allowed: {allowed}")
        chosen[name] = value
    return chosen


def render(draw: Any, chosen: dict, columns: int, width: float | None, height: float | None) -> bytes:
    """The picture as a PNG, in the package's style."""
    figure, axes = new_figure(1, columns, width=width, height=height)
    with style():
        draw(axes[0, 0] if columns == 1 else axes[0], **chosen)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=figure.dpi)
    return file.getvalue()


def notebook() -> Any:
    """IPython's shell, if this runs in one."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def somebody_looks() -> bool:
    """Whether the notebook is interactive, according to the environment."""
    return any(os.environ.get(name) for name in PEOPLE)


def make_sliders(values: dict, chosen: dict) -> list:
    """A slider for each setting, or none if ipywidgets is not installed."""
    try:
        from ipywidgets import SelectionSlider
    except ImportError:
        return []
    return [
        SelectionSlider(
            options=[(f"{value}", value) for value in choices],
            value=chosen[name],
            description=name,
            continuous_update=False,
        )
        for name, choices in values.items()
    ]
