"""Plotting functions of the lectures: one style, one meaning of marks and lines.

Marks are measured, with 99 % intervals if they are means over independent runs; a solid line is an exact law; a
dashed line is a bound. Colours are those of the style sheet, by their index in its cycle.
"""

from __future__ import annotations

import inspect

import numpy as np

from theory.measure import mean_interval

COLOURS = ("C4", "C5", "C3", "C6", "C2", "C1")
MARKS = ("o", "s", "^", "D", "v", "P")


def show(*functions):
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


def marks(axes, x, y, k=0, label=None):
    """Draw numbers, or intervals, as marks; an interval has a bar.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    x : array_like
    y : sequence of float or of intervals
        With ``estimate``, ``low`` and ``high``, as returned by `theory.measure.mean_interval`.
    k : int
        Index of colour and mark.
    label : str, optional
    """
    drawn = {"color": COLOURS[k], "marker": MARKS[k], "linestyle": "", "markerfacecolor": "none", "label": label}
    if not len(y) or not hasattr(y[0], "estimate"):
        axes.plot(x, y, **drawn)
        return
    bars = [[cell.estimate - cell.low for cell in y], [cell.high - cell.estimate for cell in y]]
    axes.errorbar(x, [cell.estimate for cell in y], yerr=np.maximum(bars, 0.0), elinewidth=0.8, capsize=1.5, **drawn)


def measured(axes, x, samples, k=0, label=None):
    """Draw means of the columns of samples, one row for each run, as marks with 99 % intervals.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    x : array_like
    samples : array_like, shape (runs, len(x))
    k : int
    label : str, optional
    """
    marks(axes, x, [mean_interval(column, 0.99) for column in np.transpose(samples)], k, label)


def exact(axes, x, y, k=0, label=None):
    """Draw an exact law: a solid line.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    x, y : array_like
    k : int
    label : str, optional
    """
    axes.plot(x, y, color=COLOURS[k], linestyle="-", marker="", label=label)


def bound(axes, x, y, k=0, label=None):
    """Draw a bound: a dashed line.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    x, y : array_like
    k : int
    label : str, optional
    """
    axes.plot(x, y, color=COLOURS[k], linestyle="--", marker="", label=label)


def ticks(axis, values):
    """Label only these values, for logarithmic axes of less than a decade or two.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
    values : sequence of float
    """
    axis.set_ticks(values, [f"{value:,g}" for value in values])
    axis.set_ticks([], minor=True)
