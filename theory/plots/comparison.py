"""Comparison of several methods on one problem: run them, tabulate them, draw them."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core import require
from ..core.advice import advise
from .curves import Curve, check_axis, draw_panels
from .figure_style import style
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
    x : str
        The axis of the figure.
    title : str
        Data and number of workers.
    """

    labels: tuple[str, ...]
    results: tuple
    optimum: Any
    x: str
    title: str = ""

    @property
    def lower(self) -> float:
        """A certified lower bound of f*."""
        return float(self.optimum.fun - self.optimum.get("gap", 0.0))

    @property
    def rows(self) -> list[dict]:
        """A dict for each method: label, gap (f - f*), samples, rounds, a worker's bits_up and bits_down, seconds."""
        rows = []
        for label, result in zip(self.labels, self.results, strict=True):
            end = result.history[-1]
            rows.append(
                {
                    "label": label,
                    "gap": float(result.fun) - self.lower,
                    "samples": int(end["samples"]),
                    "rounds": int(end["rounds"]),
                    "bits_up": float(end["payload_bits_up"]),
                    "bits_down": float(end["payload_bits_down"]),
                    "seconds": float(end["seconds"]),
                    "success": bool(result.success),
                    "message": result.message,
                }
            )
        return rows

    def _texts(self) -> tuple[list[str], list[list[str]]]:
        head = ["method", "f - f*", "samples", "rounds", "bits up", "bits down", "seconds"]
        return head, [
            [
                row["label"] + ("" if row["success"] else " *"),
                number(row["gap"]),
                f"{row['samples']:,}",
                f"{row['rounds']:,}",
                bits(row["bits_up"]),
                bits(row["bits_down"]),
                seconds(row["seconds"]),
            ]
            for row in self.rows
        ]

    def _notes(self) -> list[str]:
        """Why the runs with a star were no success."""
        return [f"* {row['label']}: {row['message']}" for row in self.rows if not row["success"]]

    @property
    def table(self) -> str:
        """The table as a string, with its title; bits are those of one worker."""
        head, rows = self._texts()
        return "\n".join([*([self.title] if self.title else []), text_table([head], rows), *self._notes()])

    @cached_property
    def figure(self):
        """The figure: f - f* against the chosen axis."""
        curves = [Curve(label, result.history) for label, result in zip(self.labels, self.results, strict=True)]
        start = float(self.results[0].history["f"][0]) - self.lower if self.results[0].history["step"][0] == 0 else None
        return draw_panels(curves, self.lower, title=self.title, start=start, panels=(self.x,))

    def __repr__(self) -> str:
        return self.table

    def _repr_html_(self) -> str:
        head, rows = self._texts()
        cells = "".join(f"<th>{html.escape(text)}</th>" for text in head)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{"left" if j == 0 else "right"}">{html.escape(text)}</td>'
                for j, text in enumerate(row)
            )
            + "</tr>"
            for row in rows
        )
        with io.BytesIO() as png, style():
            self.figure.savefig(png, format="png")
            image = base64.b64encode(png.getvalue()).decode()
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
            + "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
            + f'<img alt="suboptimality against {self.x}" style="max-width:32em" src="data:image/png;base64,{image}">'
        )


def compare(
    methods, problem, *, workers, steps=None, samples=None, x="bits", seed=0, labels=None, optimum=None, **options
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
    x : {"bits", "samples", "rounds", "seconds"}
        The axis of the figure.
    seed : int
        The same for all methods.
    labels : sequence of str, optional
        Names of the methods; by default the fields in which they differ.
    optimum : scipy.optimize.OptimizeResult, optional
        Result of `solve`; computed here if not given.
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

    check_axis(x)
    methods = [methods] if hasattr(methods, "_fields") else list(methods)  # a setting is itself a tuple
    for method in methods:
        require(hasattr(method, "_fields"), "methods", method, "methods, such as ParallelSGD(...)", TypeError)
    if not methods:
        raise ValueError("methods: got none, allowed: at least one")
    _warn_if_unequal(methods)
    labels = tuple(labels) if labels is not None else _labels(methods)
    if len(labels) != len(methods):
        raise ValueError(f"labels: got {len(labels)} for {len(methods)} methods, allowed: one for each")
    require((steps is None) != (samples is None), "steps and samples", (steps, samples), "exactly one of the two")
    optimum = solve(problem) if optimum is None else optimum
    options |= {"workers": workers, "steps": steps, "samples": samples, "seed": seed}
    results = tuple(run(method, problem, **options) for method in methods)
    name = getattr(problem, "name", type(problem).__name__.lower())
    taken = f"{results[0].nit:,} steps" if samples is None else f"{samples:,} samples each"
    title = f"{name}: {workers} worker{'s' if workers > 1 else ''}, {taken}, seed {seed}"
    return Comparison(labels, results, optimum, x, title)


def _warn_if_unequal(methods) -> None:
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


def _short(value) -> str:
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


def _labels(methods) -> tuple[str, ...]:
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
