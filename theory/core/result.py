"""Results of runs and solvers, and the mean of a few repetitions with its interval.

A result is a dictionary whose entries are attributes; its history has named columns.  For several seeds, tables,
figures and rows show the mean of the repetitions.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .settings import require
from .stored_arrays import MANIFEST, DamagedError, State, entries_of, fetch, manifest_of, read_listed, state_from, store

# --- Result of runs and solvers --------------------------------------------------------------------------------------

PLAIN = (bool, int, float, str, type(None))

SHOWN = ("step", "samples", "rounds", "payload_bits_up", "payload_bits_down", "seconds", "f", "gradient_norm")

ENDS = 5  # rows at the beginning and at the end that are displayed


def _cell(value: object) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    if isinstance(value, (float, np.floating)):
        if math.isnan(value):
            return "-"
        return f"{value:,.0f}" if math.isfinite(value) and value == int(value) < 1e7 else f"{value:.5g}"
    return str(value)


class History(np.ndarray):
    """A history: a structured array with a row for each evaluation, displayed as a table.

    A column is an ordinary array: ``history["f"]``.

    Examples
    --------
    >>> import theory as th
    >>> method = th.ParallelSGD(step=th.Constant(0.5))
    >>> history = th.run(method, th.quadratic([1.0], covariance=0.0), workers=1, steps=2, x0=[1.0]).history
    >>> history.columns[:3], history["f"].tolist()
    (('step', 'samples', 'rounds'), [0.5, 0.125, 0.03125])
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.dtype.names or ())

    def to_pandas(self) -> Any:
        """The history as a ``pandas.DataFrame`` indexed by the step.

        Returns
        -------
        pandas.DataFrame
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("pandas is not installed: pip install pandas") from None
        table = pandas.DataFrame({name: np.asarray(self[name]) for name in self.columns})
        return table.set_index("step") if "step" in self.columns else table

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        plain = isinstance(found, History) and (found.dtype.names is None or found.ndim != 1)
        return found.view(np.ndarray) if plain else found

    def _cells(self) -> tuple[list[str], list[list[str]], list[str]]:
        """The displayed columns and rows, and the columns that are not displayed."""
        shown = [name for name in SHOWN if name in self.columns] or list(self.columns[:8])
        rows = [[_cell(row[name]) for name in shown] for row in self[: 2 * ENDS + 1]]
        if self.size > 2 * ENDS + 1:
            last = [[_cell(row[name]) for name in shown] for row in self[-ENDS:]]
            rows = [*rows[:ENDS], ["..."] * len(shown), *last]
        heads = [name.removeprefix("payload_") for name in shown]
        return heads, rows, [name for name in self.columns if name not in shown]

    def _more(self, others: list[str]) -> str:
        also = f"; also {', '.join(others)}" if others else ""
        return f"{self.size} rows{also}"

    def __repr__(self) -> str:
        if self.dtype.names is None or self.ndim != 1:
            return repr(self.view(np.ndarray))
        heads, rows, others = self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = ["  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)) for row in (heads, *rows)]
        return "\n".join([*lines, self._more(others)])

    __str__ = __repr__

    def _repr_html_(self) -> str | None:
        if self.dtype.names is None or self.ndim != 1:
            return None
        heads, rows, others = self._cells()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        more = html.escape(self._more(others))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{more}</p>"


class Result(dict):
    """A dictionary whose entries are attributes, like SciPy's ``OptimizeResult``, with the same names.

    Further fields are documented where they are set: :func:`theory.run`, :func:`theory.solve` etc.

    Attributes
    ----------
    x : ndarray
        The solution.
    fun : float
        The function's value there.
    last : ndarray
        For a run: the last iterate.
    history : History
        For a run: a structured array with a row for each evaluation, its columns named; ``to_pandas()`` makes a
        ``DataFrame`` of it.
    nit : int
        Number of steps.
    success : bool
        Whether it completed.
    status : int
        0 if it completed.
    message : str
        How it ended.

    Examples
    --------
    >>> Result(x=np.zeros(2), fun=0.0).fun
    0.0
    """

    x: np.ndarray
    fun: float
    last: np.ndarray
    history: History
    nit: int
    success: bool
    status: int
    message: str

    def __init__(self, *args: Any, **fields: Any):
        super().__init__(*args, **fields)
        history = self.get("history")
        if isinstance(history, np.ndarray) and history.dtype.names is not None:
            self["history"] = history.view(History)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        with np.printoptions(threshold=6, edgeitems=2, linewidth=100 - width):
            rows = [(name, repr(entry).replace("\n", "\n" + " " * (width + 2))) for name, entry in self.items()]
        return "\n".join(f"{name:>{width}}: {text}" for name, text in rows) or "Result()"

    def save(self, path: str | Path) -> None:
        """Save in a folder of NumPy files, for :func:`theory.load_result`; an earlier result in it is replaced.

        Parameters
        ----------
        path : path
            The folder.  On ranks one rank saves, to a folder of its own.

        Raises
        ------
        TypeError
            For a field that is neither a number, a string, an array, nor a dict of arrays.
        ValueError
            If something else has that name, or the folder has other files.
        """
        told, entries = self._stored()
        store(Path(path), {"result": 1, **told}, entries)

    def _stored(self) -> tuple[dict, list]:
        """The description of the result in a manifest, and its arrays."""
        plain, arrays, state = {}, [], None
        for name, value in self.items():
            value = value.item() if isinstance(value, np.generic) else value
            group = value if isinstance(value, dict) else {"": value}
            if isinstance(value, State):
                state = value
            elif isinstance(value, PLAIN):
                plain[name] = value
            else:
                require(
                    all(isinstance(array, np.ndarray) for array in group.values()),
                    name,
                    type(value).__name__,
                    "a number, a string, an array or a dict of arrays",
                    TypeError,
                )
                plain |= {name: {}} if isinstance(value, dict) else {}
                arrays += [({"field": name, "part": part}, np.asarray(array)) for part, array in group.items()]
        told = {} if state is None else {"state": manifest_of(state)}
        return {"fields": plain, **told}, arrays + ([] if state is None else entries_of(state))

    def _repr_html_(self) -> str | None:
        """A line on how the run ended, and its history."""
        history = self.get("history")
        if not isinstance(history, History) or not history.size:
            return f"<pre>{html.escape(repr(self))}</pre>"
        mark = "&#10003;" if self.get("success") else "&#10007;"
        said = html.escape(str(self.get("message", "")))
        first, last = (float(history["f"][k]) for k in (0, -1)) if "f" in history.columns else (math.nan, math.nan)
        fell = f"; f from {first:.6g} to {last:.6g}" if first == first else ""
        fields = ", ".join(f"<code>{html.escape(name)}</code>" for name in self)
        return f"<p>{mark} {said}{fell}</p>{history._repr_html_()}<p>fields: {fields}</p>"


COLLECTIONS: dict[str, Any] = {}  # classes of several results by name

MAKERS = {
    "runs": "run",
    "comparison": "compare",
    "sweep": "compare",
}  # the function that returns one, whose module has the class


def collection(name: str) -> Callable[[type], type]:
    """Class decorator: several results that are saved together; its ``loaded(plain, results)`` restores them."""

    def decorate(cls: type) -> type:
        COLLECTIONS[name] = cls
        return cls

    return decorate


def save_several(path: str | Path, name: str, plain: dict, results: Iterable[Result]) -> None:
    """Save several results in one folder, with the other fields of the collection of this name, for `load_result`."""
    stored = [result._stored() for result in results]
    entries = [({**about, "member": k}, array) for k, (_, arrays) in enumerate(stored) for about, array in arrays]
    store(Path(path), {"results": [told for told, _ in stored], "collection": name, "plain": plain}, entries)


def load_result(path: str | Path) -> Any:
    """Read a result, or several, that ``result.save(path)`` wrote.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    Result
        With the same fields; a result of `theory.run` can be given as ``resume``.  Results of `run` with several seeds,
        or of `compare`, are returned as such.

    Raises
    ------
    ValueError
        If the folder is incomplete or damaged, or contains no result.

    Examples
    --------
    >>> import tempfile
    >>> Result(x=np.ones(2), fun=0.5).save(tempfile.gettempdir() + "/result")
    >>> load_result(tempfile.gettempdir() + "/result").x
    array([1., 1.])
    """
    folder = Path(path)
    manifest = read_listed(folder)
    name = manifest.get("collection")
    known = manifest.get("result") == 1 or name in MAKERS
    require(known, "path", str(path), "a folder that result.save(path) wrote")
    try:
        return _made(folder, manifest, name)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DamagedError(f"{folder / MANIFEST} is damaged: {type(error).__name__} {error}") from None


def _made(folder: Path, manifest: dict, name: str | None) -> Any:
    if name is None:
        return _loaded(folder, manifest, manifest["arrays"])
    getattr(import_module(__name__.partition(".")[0]), MAKERS[name])  # loads the module with its class
    of = [[entry for entry in manifest["arrays"] if entry["member"] == k] for k in range(len(manifest["results"]))]
    results = [_loaded(folder, told, entries) for told, entries in zip(manifest["results"], of, strict=True)]
    return COLLECTIONS[name].loaded(manifest["plain"], results)


def _loaded(folder: Path, manifest: dict, entries: list[dict]) -> Result:
    found, pieces = dict(manifest["fields"]), []
    for entry in entries:
        if "piece" in entry:
            pieces.append(entry)
        elif entry["part"]:
            found[entry["field"]][entry["part"]] = fetch(folder, entry)
        else:
            found[entry["field"]] = fetch(folder, entry)
    if "state" in manifest:
        found["state"] = state_from(folder, manifest["state"], pieces)
    return Result(found)


# --- The mean of a few repetitions with its interval -----------------------------------------------------------------

SHOWN_LEVEL = 0.95  # of the intervals in tables and figures


class Spread(NamedTuple):
    """A mean, and half of its interval; that is NaN with one repetition.

    It can be shifted and scaled by numbers, and formatted like one; ``float`` is the mean.

    Attributes
    ----------
    mean, half : float
    samples : int
        Number of repetitions.

    Examples
    --------
    >>> found = Spread(0.5, 0.1, 3)
    >>> print(found - 0.25), f"{2 * found:.1f}", float(found)
    0.25 ± 0.1
    (None, '1.0 ± 0.2', 0.5)
    """

    mean: float
    half: float
    samples: int

    def __str__(self) -> str:
        return f"{self.mean:.6g}" + ("" if math.isnan(self.half) else f" ± {self.half:.2g}")

    def __format__(self, how: str) -> str:
        if not how:
            return str(self)
        return f"{self.mean:{how}}" + ("" if math.isnan(self.half) else f" ± {self.half:{how}}")

    def __float__(self) -> float:
        return self.mean

    def __add__(self, number: Any) -> Any:
        return Spread(self.mean + float(number), self.half, self.samples)

    def __sub__(self, number: Any) -> Spread:
        return self + -float(number)

    def __rsub__(self, number: Any) -> Spread:
        return Spread(float(number) - self.mean, self.half, self.samples)

    def __mul__(self, factor: Any) -> Any:
        return Spread(self.mean * float(factor), self.half * abs(float(factor)), self.samples)

    def __truediv__(self, number: Any) -> Spread:
        return self * (1.0 / float(number))

    def __radd__(self, number: Any) -> Any:
        return self + number

    def __rmul__(self, factor: Any) -> Any:
        return self * factor

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half


def spread(samples: Any, level: float = SHOWN_LEVEL) -> Spread:
    """The mean of repetitions with Student's interval, 95 % by default.

    Parameters
    ----------
    samples : array_like, shape (n,)
    level : float

    Returns
    -------
    Spread

    Examples
    --------
    >>> print(spread([1.0, 2.0, 3.0]), "and", spread([1.0]))  # 2 +- 4.303 / sqrt(3)
    2 ± 2.5 and 1
    """
    samples = np.asarray(samples, float)
    if samples.size == 1 or not np.isfinite(samples).all():
        return Spread(float(samples.mean()), math.nan, samples.size)
    from scipy.special import stdtrit  # slow to import

    t = float(stdtrit(samples.size - 1, 0.5 + 0.5 * level))
    return Spread(float(samples.mean()), t * float(samples.std(ddof=1)) / math.sqrt(samples.size), samples.size)
