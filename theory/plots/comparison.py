"""Comparison of several methods on one problem: run them, tabulate them, draw them."""

from __future__ import annotations

import base64
import html
import io
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from ..core.advice import advise
from ..measure.crossings import common_goal, reached
from ..methods.schedules import Constant
from .curves import Curve, check_axis, draw_panels
from .figure_style import style
from .step_choice import choose_steps
from .text import bits, number, seconds, text_table

__all__ = ["Comparison", "UnequalMethodsWarning", "compare"]


UNEQUAL = ("average", "step", "batch", "local_steps")  # what a fair comparison of compressors keeps the same


class UnequalMethodsWarning(UserWarning):
    """Methods that are compared differ in more than their compressors and feedback rules.

    Examples
    --------
    >>> issubclass(UnequalMethodsWarning, UserWarning)
    True
    """


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Result of `compare`: it prints as a table, and shows table and figure in a notebook.

    Attributes
    ----------
    labels : tuple of str
    results : tuple of scipy.optimize.OptimizeResult
        What `theory.run` returned for each method.
    optimum : scipy.optimize.OptimizeResult
        With a certified ``gap``: every f - f* here is f - (optimum.fun - optimum.gap), so an upper bound.
    x : str or tuple of str
        The axes of the figure.
    title : str
        Data and number of workers.
    repeats : tuple of tuple
        For each method the results with the other seeds.
    goal : float or None
        The accuracy of the columns "bits to" and "seconds to"; by default the f - f* that three quarters of
        the methods reach.
    choices : tuple of str
        For each method how its step was chosen, if it was.
    """

    labels: tuple[str, ...]
    results: tuple
    optimum: Any
    x: Any
    title: str = ""
    repeats: tuple = ()
    goal: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def lower(self) -> float:
        """A certified lower bound of f*."""
        return float(self.optimum.fun - self.optimum.get("gap", 0.0))

    @property
    def epsilon(self) -> float:
        """The accuracy to which bits and seconds are counted."""
        if self.goal is not None:
            return self.goal
        worst = [max(results, key=lambda result: result.fun) for results in self._all()]
        good = [result for result in worst if result.success] or worst
        return common_goal([float(result.fun) - self.lower for result in good])

    def _all(self) -> list[tuple]:
        """For each method its results, with all seeds."""
        others = self.repeats or ((),) * len(self.results)
        return [(result, *more) for result, more in zip(self.results, others, strict=True)]

    def _to(self, results: Any, column: str) -> float:
        """Mean over the seeds of bits or seconds until f - f* <= epsilon; infinite if a run never gets there."""
        found = [
            reached(result.history[column] - result.history[column][0], result.history["f"] - self.lower, self.epsilon)
            for result in results
        ]
        return float(np.mean(found))

    @property
    def rows(self) -> list[dict]:
        """A dict for each method, with means over the seeds.

        label, gap (f - f*), bits_to and seconds_to (to epsilon, infinite if it is not reached), samples, rounds, a
        worker's bits_up and bits_down, seconds, success, message.
        """
        rows = []
        for label, results in zip(self.labels, self._all(), strict=True):
            ends = [result.history[-1] for result in results]
            failed = next((result for result in results if not result.success), results[0])
            rows.append(
                {
                    "label": label,
                    "gap": float(np.mean([result.fun for result in results])) - self.lower,
                    "bits_to": self._to(results, "payload_bits_up"),
                    "seconds_to": self._to(results, "seconds"),
                    "samples": int(ends[0]["samples"]),
                    "rounds": int(ends[0]["rounds"]),
                    "bits_up": float(np.mean([end["payload_bits_up"] for end in ends])),
                    "bits_down": float(np.mean([end["payload_bits_down"] for end in ends])),
                    "seconds": float(np.mean([end["seconds"] for end in ends])),
                    "success": bool(failed.success),
                    "message": failed.message,
                }
            )
        return rows

    def _texts(self) -> tuple[list[list[str]], list[list[str]]]:
        near = f"to {number(self.epsilon)}"
        head = [
            ["", "", "bits", "seconds", "", "", "bits", "bits", "total"],
            ["method", "f - f*", near, near, "samples", "rounds", "up", "down", "s"],
        ]
        return head, [
            [
                row["label"] + ("" if row["success"] else " *"),
                number(row["gap"]),
                bits(row["bits_to"]) if math.isfinite(row["bits_to"]) else "-",
                seconds(row["seconds_to"]) if math.isfinite(row["seconds_to"]) else "-",
                f"{row['samples']:,}",
                f"{row['rounds']:,}",
                bits(row["bits_up"]),
                bits(row["bits_down"]),
                seconds(row["seconds"]),
            ]
            for row in self.rows
        ]

    def _notes(self) -> list[str]:
        """How steps were chosen, and why the runs with a star were no success."""
        steps = [f"{label}: step {how}" for label, how in zip(self.labels, self.choices, strict=False)]
        return [*steps, *(f"* {row['label']}: {row['message']}" for row in self.rows if not row["success"])]

    @property
    def table(self) -> str:
        """The table as a string, with its title; bits are those of one worker."""
        head, rows = self._texts()
        return "\n".join([*([self.title] if self.title else []), text_table(head, rows), *self._notes()])

    def plot(self, x: str = "bits") -> Any:
        """The figure against other axes, from the same runs.

        Parameters
        ----------
        x : str or sequence of str
            "bits", "samples", "rounds" or "seconds".

        Returns
        -------
        matplotlib.figure.Figure
        """
        panels = _axes(x)
        curves = [
            Curve(label, first.history, None, tuple(other.history for other in others))
            for label, (first, *others) in zip(self.labels, self._all(), strict=True)
        ]
        start = float(self.results[0].history["f"][0]) - self.lower if self.results[0].history["step"][0] == 0 else None
        figure = draw_panels(curves, self.lower, title=self.title, start=start, panels=panels)
        figure._repr_png_ = lambda: _png(figure)  # a notebook shows it, also without pyplot
        return figure

    @cached_property
    def figure(self) -> Any:
        """The figure: f - f* against the chosen axes."""
        return self.plot(self.x)

    def __repr__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        head, rows = self._texts()
        names = [" ".join(filter(None, parts)) for parts in zip(*head, strict=True)]
        cells = "".join(f"<th>{html.escape(text)}</th>" for text in names)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{"left" if j == 0 else "right"}">{html.escape(text)}</td>'
                for j, text in enumerate(row)
            )
            + "</tr>"
            for row in rows
        )
        image, panels = base64.b64encode(_png(self.figure)).decode(), _axes(self.x)
        width = 32 if len(panels) == 1 else 60
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
            + "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
            + f'<img alt="suboptimality against {" and ".join(panels)}" style="max-width:{width}em" '
            f'src="data:image/png;base64,{image}">'
        )


def _png(figure: Any) -> bytes:
    with io.BytesIO() as png, style():
        figure.savefig(png, format="png")
        return png.getvalue()


def _axes(x: Any) -> tuple[str, ...]:
    """The axes of a figure; each is known."""
    panels = (x,) if isinstance(x, str) else tuple(x)
    for panel in panels:
        check_axis(panel)
    return panels


def compare(
    methods: Any,
    problem: Any,
    *,
    workers: int,
    steps: int | None = None,
    samples: Any = None,
    x: ArrayLike = ("bits", "seconds"),
    seed: int = 0,
    labels: Any = None,
    optimum: ArrayLike | None = None,
    step: Any = None,
    epsilon: Any = None,
    **options: Any,
) -> Comparison:
    """Run several methods on a problem with the same seed, workers and steps, or samples.

    Every method draws the same rows as in a separate run with this seed: adding a method changes no other.

    Parameters
    ----------
    methods : sequence
        Settings such as `ParallelSGD`, or a single one.
    problem : problem
        The problem that all of them solve.
    workers : int
        Number of workers.
    steps : int, optional
        Number of steps of each method.
    samples : int, optional
        Instead of ``steps``: the budget of each worker, as in `run`.  Methods with different batches then take
        different numbers of steps.
    x : str or sequence of str
        The axes of the figure: "bits", "samples", "rounds" or "seconds"; ``plot`` draws others later.
    seed : int or sequence of int
        The same for all methods.  With several the table has means, and the figure medians in a band.
    labels : sequence of str, optional
        Names of the methods; by default the fields in which they differ.
    optimum : scipy.optimize.OptimizeResult, optional
        Result of `solve`; computed here if not given.
    step : {"best"}, optional
        Search for each method the constant step 2^e / L with which it ends lowest, with the first seed, in place of its
        own; what was tried, and how long that took, is said below the table.
    epsilon : float, optional
        The table counts bits and seconds until f - f* <= epsilon; by default what three
        quarters of the methods reach.
    **options
        Passed on to `run`: ``record_every``, ``comm``, ``x0``, ...

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If there is no method, the numbers of labels and methods differ, the axis is unknown, or not exactly one of
        ``steps`` and ``samples`` is given.

    Warns
    -----
    UnequalMethodsWarning
        If methods with different compressors or feedback rules also differ in average, step, batch or local steps.

    Examples
    --------
    >>> import theory as th
    >>> data = th.load_data("breast_cancer").scaled()
    >>> problem = th.logistic(data, l2=0.1)
    >>> step = th.Constant(1e-6)
    >>> both = th.compare([th.ParallelSGD(th.Identity(), step), th.ParallelSGD(th.TopK(3), step)], problem,
    ...                   workers=2, steps=10, x="rounds")
    >>> [row["label"] for row in both.rows]
    ['Identity', 'TopK(k=3)']
    """
    from ..cluster import run
    from ..problems import solve

    _axes(x)
    methods = [methods] if hasattr(methods, "_fields") else list(methods)  # a setting is itself a tuple
    for method in methods:
        require(hasattr(method, "_fields"), "methods", method, "methods, such as ParallelSGD(...)", TypeError)
    if not methods:
        raise ValueError("methods: got none, allowed: at least one")
    require(step in (None, "best"), "step", step, '"best", or nothing: the steps of the methods')
    require(epsilon is None or epsilon > 0, "epsilon", epsilon, "a number above 0")
    seeds = list(np.atleast_1d(np.asarray(seed)).tolist())
    require(seeds and len(set(seeds)) == len(seeds), "seed", seed, "an integer, or several different ones")
    require((steps is None) != (samples is None), "steps and samples", (steps, samples), "exactly one of the two")
    if step is None:
        _warn_if_unequal(methods)
    labels = tuple(labels) if labels is not None else _labels(methods)
    if len(labels) != len(methods):
        raise ValueError(f"labels: got {len(labels)} for {len(methods)} methods, allowed: one for each")
    optimum = solve(problem) if optimum is None else optimum
    options |= {"workers": workers, "steps": steps, "samples": samples}
    choices: tuple[str, ...] = ()
    if step == "best":
        found = choose_steps(methods, problem, seed=seeds[0], **options)
        methods = [m._replace(step=Constant(choice.step)) for m, choice in zip(methods, found, strict=True)]
        choices = tuple(str(choice) for choice in found)
    for method in methods if step is None else ():  # what is compiled or loaded in the first round is not its time
        short = {name: value for name, value in options.items() if name not in ("samples", "callback", "record_every")}
        run(method, problem, **short | {"steps": getattr(method, "local_steps", 1), "seed": seeds[0]})
    results = [tuple(run(method, problem, seed=one, **options) for one in seeds) for method in methods]
    name = getattr(problem, "name", type(problem).__name__.lower())
    taken = f"{results[0][0].nit:,} steps" if samples is None else f"{samples:,} samples each"
    drawn = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    title = f"{name}: {workers} worker{'s' if workers > 1 else ''}, {taken}, {drawn}"
    first, repeats = tuple(many[0] for many in results), tuple(many[1:] for many in results)
    return Comparison(labels, first, optimum, x, title, repeats, epsilon, choices)


def _warn_if_unequal(methods: Any) -> None:
    """Warn where a comparison of compressors or feedback rules would show other differences as well."""
    told = {name: {_short(getattr(m, name, None)) for m in methods} for name in ("compressor", "feedback", *UNEQUAL)}
    differ = [name for name in UNEQUAL if len(told[name]) > 1]
    if differ and (len(told["compressor"]) > 1 or len(told["feedback"]) > 1):
        values = "; ".join(f"{name}: {', '.join(sorted(told[name]))}" for name in differ)
        advise(
            f"compare: the methods differ in more than compressor and feedback ({values}), so that the table does not "
            "show what these alone do",
            UnequalMethodsWarning,
        )


def _short(value: Any) -> str:
    """A setting as a string, without fields that have their default value."""
    if not hasattr(value, "_fields"):
        return value if isinstance(value, str) else repr(value)
    default = getattr(value, "_field_defaults", {})
    parts = []
    for name, part in zip(value._fields, value, strict=True):
        if name in default and type(default[name]) is type(part) and default[name] == part:
            continue
        parts.append(
            _short(part)
            if hasattr(part, "_fields")
            else f"{name}={part:g}"
            if isinstance(part, float)
            else f"{name}={part!r}"
        )
    return type(value).__name__ + (f"({', '.join(parts)})" if parts else "")


def _labels(methods: Any) -> tuple[str, ...]:
    """Labels: the compressor, and every other field in which the methods differ."""
    shown = [
        [_short(getattr(method, "compressor", method)) if method.compressor else "full precision"] for method in methods
    ]
    if len({type(method) for method in methods}) > 1:
        shown = [[type(method).__name__, *words] for method, words in zip(methods, shown, strict=True)]
    names = dict.fromkeys(name for method in methods for name in method._fields if name != "compressor")
    for name in names:
        values = [_short(getattr(method, name)) if hasattr(method, name) else "" for method in methods]
        if len(set(values)) == 1:
            continue
        for method, words, value in zip(methods, shown, values, strict=True):
            default = getattr(method, "_field_defaults", {})
            usual = name in default and value == _short(default[name])
            usual = usual and not all(hasattr(other, name) for other in methods)  # fields that another method lacks
            if value and value != "NoFeedback" and not usual:
                words.append(value if hasattr(getattr(method, name), "_fields") else f"{name}={value}")
    return tuple(", ".join(words) for words in shown)
