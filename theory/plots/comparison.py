"""Comparison of several methods on one problem: runs, table and figure."""

from __future__ import annotations

import base64
import csv
import html
import inspect
import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..cluster.history import seeds_of
from ..core import require
from ..core.arguments import advise, finite_number
from ..core.result import SHOWN_LEVEL, Result, collection, save_several, spread
from ..core.settings import check_keywords
from ..measure.slopes import common_goal, reached
from ..methods.schedules import Constant
from ..methods.theory_steps import LongStepWarning, with_theory_step
from ..reporting.files import write_whole
from .appearance import LOOKS, bits, differences, looks, number, short, style, text_table
from .curves import Curve, check_axis, draw_curves, draw_panels
from .sweep import cells_of, choose_steps, measure, warm_up

COLUMNS = ("step", "samples", "rounds", "bits_up", "bits_down", "seconds", "gradient_norm", "f")
TIE = " ≈"  # behind a value that is within noise of the lowest


class UnequalMethodsWarning(UserWarning):
    """The compared methods differ in more than their compressors and feedback rules.

    Examples
    --------
    >>> issubclass(UnequalMethodsWarning, UserWarning)
    True
    """


@collection("comparison")
@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Result of `compare`: it prints as a table, and shows table and figure in a notebook.

    Attributes
    ----------
    labels : tuple of str
    results : tuple of scipy.optimize.OptimizeResult
        The result of `theory.run` for each method.
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
        For each method the search for its step, if there was one.
    baseline : str
        The label of the method to which all are compared; if empty, this is the lowest one.
    tolerance : float or None
        Relative excess over the baseline's f - f* up to which a method counts as equally good.
    """

    labels: tuple[str, ...]
    results: tuple
    optimum: Any
    x: Any
    title: str = ""
    repeats: tuple = ()
    goal: float | None = None
    choices: tuple[str, ...] = ()
    baseline: str = ""
    tolerance: float | None = None

    @property
    def lower(self) -> float:
        """A certified lower bound on f*; without a certificate the lowest f that was found."""
        gap = self.optimum.get("gap", 0.0)
        if math.isfinite(gap):
            return float(self.optimum.fun - gap)
        ends = [np.nanmin(result.history["f"]) for results in self._all() for result in results]
        return float(np.nanmin([self.optimum.fun, *ends]))

    @property
    def epsilon(self) -> float:
        """The accuracy up to which bits and seconds are counted."""
        if self.goal is not None:
            return self.goal
        worst = [max(results, key=lambda result: result.fun) for results in self._all()]
        good = [result for result in worst if result.success] or worst
        return common_goal([float(result.fun) - self.lower for result in good])

    def _all(self) -> list[tuple]:
        """For each method its results, with all seeds."""
        others = self.repeats or ((),) * len(self.results)
        return [(result, *more) for result, more in zip(self.results, others, strict=True)]

    def _to(self, results: Any, column: str) -> list[float]:
        """For each seed, bits or seconds until f - f* <= epsilon; infinite if a run does not reach it."""
        return [
            reached(result.history[column] - result.history[column][0], result.history["f"] - self.lower, self.epsilon)
            for result in results
        ]

    def _ties(self) -> list[bool]:
        """Whether a method is within noise of the lowest: the interval of their difference, seed by seed, contains 0.

        With a baseline: whether it is as good as the baseline, that is, the interval begins at 0 or below.  With a
        tolerance: whether the interval of its excess over (1 + tolerance) times the baseline ends at 0 or below.
        """
        gaps = np.array([[result.fun for result in results] for results in self._all()]) - self.lower
        base = self.labels.index(self.baseline) if self.baseline else int(np.argmin(gaps.mean(axis=1)))
        # all methods draw the same rows with the same seed
        apart = [spread(gap - (1.0 + (self.tolerance or 0.0)) * gaps[base]) for gap in gaps]
        if self.tolerance is None:
            return [k != base and one.low <= 0.0 for k, one in enumerate(apart)]
        return [k != base and (one.mean if math.isnan(one.half) else one.high) <= 0.0 for k, one in enumerate(apart)]

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self._all()[0])

    @property
    def rows(self) -> list[dict]:
        """A dict for each method: means over the seeds, and half of their intervals (95 %) in ``..._half``.

        label, gap (f - f*), bits_to and seconds_to (to epsilon, infinite if it is not reached), bits_up and bits_down
        of a worker, seconds, gradient_norm, each with its half, which is NaN with one seed; steps, samples, rounds,
        seeds; within_noise (of the lowest gap, or as good as the baseline; False for these), success, message.
        """
        rows = []
        for label, results, tie in zip(self.labels, self._all(), self._ties(), strict=True):
            ends = [result.history[-1] for result in results]
            failed = next((result for result in results if not result.success), results[0])
            several: dict[str, Any] = {
                "gap": [result.fun - self.lower for result in results],
                "bits_to": self._to(results, "payload_bits_up"),
                "seconds_to": self._to(results, "seconds"),
                "bits_up": [end["payload_bits_up"] for end in ends],
                "bits_down": [end["payload_bits_down"] for end in ends],
                **{name: [end[name] for end in ends] for name in ("seconds", "gradient_norm")},
            }
            row: dict[str, Any] = {"label": label}
            for name, found in several.items():
                row[name], row[f"{name}_half"], _ = spread(found)
            row |= {"steps": results[0].nit, "samples": int(ends[0]["samples"]), "rounds": int(ends[0]["rounds"])}
            row |= {"seeds": len(results), "within_noise": tie}
            rows.append(row | {"success": bool(failed.success), "message": failed.message})
        return rows

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame`` indexed by the label."""
        try:
            import pandas
        except ImportError:
            raise ImportError("pandas is not installed: pip install pandas") from None
        return pandas.DataFrame(self.rows).set_index("label")

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """The rows as comma-separated values, in a file, or without a path as a string.

        Parameters
        ----------
        path : path, optional

        Returns
        -------
        str or None
        """
        return text_of_rows(self.rows, path)

    def save(self, path: str | Path) -> None:
        """Save all results in a folder, for :func:`theory.load_result`.

        Parameters
        ----------
        path : path
            The folder; results that were saved there before are replaced, and a folder with other files is rejected.
        """
        optimum = Result({name: self.optimum[name] for name in ("x", "fun", "gap", "message") if name in self.optimum})
        members = [result for results in self._all() for result in results]
        save_several(path, type(self).__name__.lower(), self._plain(), [optimum, *members])

    def _plain(self) -> dict:
        names = ("labels", "x", "title", "goal", "choices", "baseline", "tolerance", "seeds")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def loaded(cls, plain: dict, results: list[Result]) -> Comparison:
        """The results that `save` wrote."""
        return cls(**cls._fields_of(plain, results))

    @staticmethod
    def _fields_of(plain: dict, results: list[Result]) -> dict:
        optimum, *members = results
        several = [members[k : k + plain["seeds"]] for k in range(0, len(members), plain["seeds"])]
        first, others = tuple(one[0] for one in several), tuple(tuple(one[1:]) for one in several)
        x = plain["x"] if isinstance(plain["x"], str) else tuple(plain["x"])
        fields = {name: plain[name] for name in ("title", "goal", "baseline", "tolerance")}
        fields |= {name: tuple(plain[name]) for name in ("labels", "choices")}
        return fields | {"results": first, "repeats": others, "optimum": optimum, "x": x}

    def _texts(self) -> tuple[list[list[str]], list[list[str]]]:
        near = f"to {number(self.epsilon)}"
        head = [
            ["", "", "bits", "seconds", "", "", "bits", "bits", "total"],
            ["method", "f - f*", near, near, "samples", "rounds", "up", "down", "s"],
        ]
        return head, [
            [
                row["label"] + ("" if row["success"] else " *"),
                _with_half(row, "gap", number) + (TIE if row["within_noise"] else ""),
                _with_half(row, "bits_to", bits),
                _with_half(row, "seconds_to", _two_digits),
                f"{row['samples']:,}",
                f"{row['rounds']:,}",
                bits(row["bits_up"]),
                bits(row["bits_down"]),
                _with_half(row, "seconds", _two_digits),
            ]
            for row in self.rows
        ]

    def _notes(self) -> list[str]:
        """How steps were chosen, and why the runs with a star did not succeed."""
        certified = math.isfinite(self.optimum.get("gap", 0.0))
        steps = [] if certified else [f"f*: {self.optimum.get('message', 'the best found')}"]
        if not certified and self.lower < self.optimum.fun:
            steps = [f"f*: the least f in these runs, {self.lower:.6g}; `solve` found {self.optimum.fun:.6g}, no lower"]
        steps += [f"{label}: step {how}" for label, how in zip(self.labels, self.choices, strict=False) if how]
        if self.seeds > 1:
            steps.append(f"means over {self.seeds} seeds ± half of their intervals of {SHOWN_LEVEL:.0%}")
        if any(self._ties()):
            steps.append(f"{TIE.strip()} {self._tie_means()}")
        return [*steps, *(f"* {row['label']}: {row['message']}" for row in self.rows if not row["success"])]

    def _tie_means(self) -> str:
        if not self.baseline:
            return "within noise of the lowest: their difference, seed by seed, has an interval with 0"
        if self.tolerance is None:
            return f"as good as {self.baseline}: their difference, seed by seed, has an interval that begins below 0"
        most = f"at most {self.tolerance:.3g} times its f - f* above"
        how = "also at the upper end of the interval" if self.seeds > 1 else "in one run"
        return f"as good as {self.baseline}: {most}, {how}"

    @property
    def table(self) -> str:
        """The table as a string, with its title; bits are those of one worker."""
        head, rows = self._texts()
        return "\n".join([*([self.title] if self.title else []), text_table(head, rows), *self._notes()])

    def plot(
        self,
        x: str | Sequence[str] = "bits",
        *,
        ax: Any = None,
        size: tuple[float, float] | None = None,
        title: str | None = "",
        note: bool = True,
        labels: Any = None,
    ) -> Any:
        """The figure of the same runs against other axes, with or without title and small print.

        Parameters
        ----------
        x : str or sequence of str
            "bits", "samples", "rounds" or "seconds".
        ax : matplotlib.axes.Axes, optional
            Axes of another figure, on which the curves are drawn with a legend, in that figure's style; needs a single
            ``x``.
        size : (float, float), optional
            Inches of the whole figure.
        title : str or None
            None for none; by default data and number of workers.
        note : bool
            Whether there is small print below.
        labels : dict or sequence of str, optional
            Names in the legend in place of the labels; a dict replaces only its keys.

        Returns
        -------
        matplotlib.figure.Figure

        Warns
        -----
        UserWarning
            If there are more curves than line styles.

        Examples
        --------
        >>> import theory as th
        >>> problem = th.quadratic([1.0, 2.0], covariance=1.0)
        >>> found = th.compare({"a": th.ParallelSGD(step=0.1)}, problem, workers=1, steps=9, seed=range(3))
        >>> figure = found.plot("rounds", size=(3.4, 2.5), title=None, note=False, labels={"a": "SGD"})
        >>> [text.get_text() for text in figure.legends[0].get_texts()][0]
        'SGD'
        """
        panels = _axes(x)
        if isinstance(labels, Mapping):
            unknown = [name for name in labels if name not in self.labels]
            require(not unknown, "labels", unknown, f"a dict with some of {', '.join(self.labels)}")
            labels = [labels.get(name, name) for name in self.labels]
        names = self.labels if labels is None else tuple(labels)
        require(len(names) == len(self.labels), "labels", labels, f"{len(self.labels)} names")
        curves = [
            Curve(name, first.history, None, tuple(other.history for other in others))
            for name, (first, *others) in zip(names, self._all(), strict=True)
        ]
        if len(curves) > LOOKS:
            warnings.warn(f"plot: {len(curves)} curves have {LOOKS} line styles, so some look alike", stacklevel=2)
        start = float(self.results[0].history["f"][0]) - self.lower if self.results[0].history["step"][0] == 0 else None
        if ax is not None:
            require(len(panels) == 1, "x", x, "one axis with ax")
            with style():
                ax.set_prop_cycle(looks())
                draw_curves(ax, curves, panels[0], self.lower, start)
                ax.legend()
            if title:
                ax.set_title(title)
            return ax.get_figure()
        title = self.title if title == "" else title or ""
        figure = draw_panels(curves, self.lower, title=title, start=start, panels=panels, small_print=note, size=size)
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


@collection("sweep")
@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Comparison):
    """Result of `compare` with a grid: a `Comparison` of its cells, and all their records as a long table.

    Attributes
    ----------
    cells : tuple of dict
        For each cell the value of ``method`` and of each axis: a number, or a setting as text.
    drawn : tuple of int
        The seeds.
    """

    cells: tuple[dict, ...] = ()
    drawn: tuple[int, ...] = ()

    @property
    def records(self) -> list[dict]:
        """A dict for each cell, seed and row of the history.

        method, the axes of the grid (the axis ``step`` is ``step_size``), seed, step, samples, rounds, bits_up and
        bits_down (of a worker, so far), seconds, gradient_norm, fun, gap (f - f*).
        """
        rows = []
        for cell, results in zip(self.cells, self._all(), strict=True):
            for seed, result in zip(self.drawn, results, strict=True):
                columns = [result.history[name].tolist() for name in COLUMNS]
                for *values, f in zip(*columns, strict=True):
                    told = dict(zip(COLUMNS, values, strict=False))  # all but the last
                    rows.append({**cell, "seed": seed, **told, "fun": f, "gap": f - self.lower})
        return rows

    def to_pandas(self) -> Any:
        """The records as a ``pandas.DataFrame``; ``rows`` has a dict for each cell."""
        try:
            import pandas
        except ImportError:
            raise ImportError("pandas is not installed: pip install pandas") from None
        return pandas.DataFrame(self.records)

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """The records as comma-separated values, in a file, or without a path as a string."""
        return text_of_rows(self.records, path)

    def _plain(self) -> dict:
        return super()._plain() | {"cells": list(self.cells), "drawn": list(self.drawn)}

    @classmethod
    def loaded(cls, plain: dict, results: list[Result]) -> Sweep:
        """The results that `save` wrote."""
        return cls(**cls._fields_of(plain, results), cells=tuple(plain["cells"]), drawn=tuple(plain["drawn"]))


def text_of_rows(rows: list[dict], path: str | Path | None) -> str | None:
    """Rows as comma-separated values, in a file, or without a path as a string."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    if path is None:
        return text.getvalue()
    write_whole(Path(path), text.getvalue())
    return None


def _two_digits(value: float) -> str:
    """Seconds of runs that may be short: 12, 0.42, 0.00038."""
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def _with_half(row: dict, name: str, text: Any) -> str:
    """A mean as text, with half of its interval where there are several seeds."""
    mean, half = row[name], row[f"{name}_half"]
    if not math.isfinite(mean):
        return "-"
    return text(mean) + ("" if math.isnan(half) else f" ± {text(half)}")


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
    seed: int | Sequence[int] = 0,
    labels: Any = None,
    optimum: ArrayLike | None = None,
    step: Any = None,
    epsilon: Any = None,
    grid: Any = None,
    out: str | Path | None = None,
    jobs: int = 1,
    baseline: str | None = None,
    tolerance: Any = None,
    **options: Any,
) -> Comparison:
    """Run several methods on a problem with the same seed, workers and steps, or samples.

    Every method draws the same rows as in a separate run with this seed, so adding a method does not change the others.

    Parameters
    ----------
    methods : sequence or dict
        Settings such as `ParallelSGD`, or a single one; the keys of a dict are the labels.  With a ``grid`` also
        functions of the axes, which return a setting.
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
        The same for all methods.  With several seeds, table, figure and rows have means with their intervals (95 %),
        and methods within noise of the lowest are marked.
    labels : sequence of str, optional
        Names of the methods; by default the fields in which they differ.
    optimum : scipy.optimize.OptimizeResult, optional
        Result of `solve`; computed here if not given.
    step : {"best", "theory"}, float or step size, optional
        Replaces the methods' own steps. "best" searches for each method the constant step 2^e / L with the lowest final
        f, with the first seed; the text below the table lists the tried steps and the time. "theory" or a number is as
        in `run`; the text below the table names the theorem.
    epsilon : float, optional
        The table counts bits and seconds until f - f* <= epsilon; by default the accuracy that three quarters of the
        methods reach.
    grid : dict, optional
        ``{"compressor": [...], "step": [...]}``: every method in all combinations of these values.  An axis is a field
        of the method, or an argument of `run`, such as ``workers``.  The result is a `Sweep`, whose ``to_pandas()`` is
        a long table with a row for each cell, seed and record.
    out : path, optional
        A folder in which each run is saved when it is done; saved runs are not measured again.
    jobs : int
        Number of parallel processes, with joblib.
    baseline : str, optional
        The label of the method to which all are compared; by default the one that ends lowest.
    tolerance : float, optional
        With a baseline: a method with f - f* up to (1 + tolerance) times the baseline's counts as equally good.
    **options
        Passed on to `run`: ``record_every``, ``comm``, ``x0``, ``epochs``, ``target``, ...

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If there is no method, the numbers of labels and methods differ, the axis is unknown, or not exactly one of
        ``steps``, ``samples`` and ``epochs`` is given.
    TypeError
        If neither `compare` nor `run` has an argument of this name.

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
    from ..methods.custom import for_these_workers
    from ..problems import solve
    from ..problems.base import dimension

    check_keywords("compare", options, compare, run)
    _axes(x)
    if isinstance(methods, Mapping):
        require(labels is None, "labels", labels, "None with a dict of methods, whose keys are the labels")
        labels, methods = tuple(map(str, methods)), list(methods.values())
    single = hasattr(methods, "_fields") or callable(methods)  # a setting is itself a tuple
    methods = [methods] if single else list(methods)
    for method in methods:
        known = hasattr(method, "_fields") and not isinstance(method, type) or (callable(method) and grid is not None)
        require(known, "methods", method, "methods, such as ParallelSGD(...)", TypeError)
    if not methods:
        raise ValueError("methods: got none, allowed: at least one")
    require(epsilon is None or finite_number("epsilon", epsilon) > 0, "epsilon", epsilon, "a number above 0")
    seeds = seeds_of(seed)
    given = (steps, samples, options.get("epochs"))
    one = sum(number is not None for number in given) == 1
    require(one, "steps, samples and epochs", given, "exactly one of the three")
    several = grid is not None or out is not None or jobs != 1
    cells: list[dict] = []
    axes: list[dict] = []
    if several:
        arguments = set(inspect.signature(run).parameters) - {"method", "problem", "seed"}
        methods, cells, labels, axes = cells_of(methods, labels, {} if grid is None else grid, arguments)
    if step is not None and not (isinstance(step, str) and step == "best"):
        methods = [method._replace(step=step) for method in methods]
        for method in methods:
            method.domain()
        step = None
    if not several and (unequal := differences(methods, step)):
        advise(f"compare: {unequal}", UnequalMethodsWarning)
    labels = tuple(labels) if labels is not None else _labels(methods)
    if len(labels) != len(methods):
        raise ValueError(f"labels: got {len(labels)} for {len(methods)} methods, allowed: one for each")
    require(baseline is None or baseline in labels, "baseline", baseline, f"one of the labels, {', '.join(labels)}")
    require(tolerance is None or baseline is not None, "tolerance", tolerance, "None without a baseline")
    require(tolerance is None or finite_number("tolerance", tolerance) >= 0, "tolerance", tolerance, "at least 0")
    optimum = solve(problem) if optimum is None else optimum
    options |= {"workers": workers, "steps": steps, "samples": samples}
    choices: tuple[str, ...] = ()
    if not several and any(isinstance(method.step, str) for method in methods):  # "theory": refused before a run
        fitted = lambda method: for_these_workers(method, workers, dimension(problem))  # noqa: E731
        told = [with_theory_step(fitted(method).settled(problem), problem, workers)[1] for method in methods]
        choices = tuple("" if theory is None else str(theory) for theory in told)
    if step == "best":
        require(not several, "step", step, "a number or 'theory' with a grid, which may have steps itself")
        found = choose_steps(methods, problem, seed=seeds[0], **options)
        methods = [m._replace(step=Constant(choice.step)) for m, choice in zip(methods, found, strict=True)]
        choices = tuple(str(choice) for choice in found)
    if several:
        results = measure(methods, problem, seeds, axes, options, out, jobs, labels)
    else:
        for method in methods if step is None else ():
            warm_up(run, method, problem, seeds[0], options)
        with warnings.catch_warnings():
            if step == "best":  # which was measured
                warnings.simplefilter("ignore", LongStepWarning)
            results = [tuple(run(method, problem, seed=one, **options) for one in seeds) for method in methods]
    name = getattr(problem, "name", type(problem).__name__.lower())
    taken = f"{results[0][0].nit:,} steps" if samples is None else f"{samples:,} samples each"
    if len({result.nit for many in results for result in many}) > 1 and samples is None:
        taken = "until a target" if options.keys() & {"tol", "target"} else f"{options.get('epochs')} epochs"
    drawn = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    title = f"{name}: {workers} worker{'s' if workers > 1 else ''}, {taken}, {drawn}"
    first, repeats = tuple(many[0] for many in results), tuple(many[1:] for many in results)
    fields = (tuple(labels), first, optimum, x, title, repeats, epsilon, choices, baseline or "", tolerance)
    return Sweep(*fields, tuple(cells), seeds) if several else Comparison(*fields)


def _labels(methods: Any) -> tuple[str, ...]:
    """Labels: the compressor, and every other field in which the methods differ."""
    shown = [
        [short(getattr(method, "compressor", method)) if method.compressor else "full precision"] for method in methods
    ]
    if len({type(method) for method in methods}) > 1:
        shown = [[type(method).__name__, *words] for method, words in zip(methods, shown, strict=True)]
    names = dict.fromkeys(name for method in methods for name in method._fields if name != "compressor")
    for name in names:
        values = [short(getattr(method, name)) if hasattr(method, name) else "" for method in methods]
        if len(set(values)) == 1:
            continue
        for method, words, value in zip(methods, shown, values, strict=True):
            default = getattr(method, "_field_defaults", {})
            usual = name in default and value == short(default[name])
            usual = usual and not all(hasattr(other, name) for other in methods)  # fields that another method lacks
            if value and value != "NoFeedback" and not usual:
                words.append(value if hasattr(getattr(method, name), "_fields") else f"{name}={value}")
    return tuple(", ".join(words) for words in shown)
