"""Configuration of an experiment: flat, checked, immutable, and representable in TOML and JSON.

Two fields may be lists, ``workers`` and ``batch``: with the methods they span a grid, one *cell* for each combination.
All cells see the same number of samples.  The stream of a cell comes from the seed and the cell's own full name, so
that adding a method, or a value to an axis, never changes what another cell draws.

A TOML file with the key ``study`` is another kind of experiment: see ``studies/configuration.py``.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..core import require
from ..core.arguments import LARGEST_BATCH, MANY, MOST, is_whole
from ..core.digests import digest
from ..reporting.files import ConfigurationError, UnreadableError, find_toml, nearest, read_toml
from .catalog import FLAGSHIP, find
from .method_files import file_methods, is_file, named_in
from .method_names import split_names

AXES = ("workers", "batch")
SEED_LIMIT = 2**63
STEPS = ("theory", "best")
PROBLEMS = ("auto", "logistic", "softmax", "ridge")  # strongly convex, so that f* can be certified


_require = partial(require, error=ConfigurationError)


class Cell(NamedTuple):
    """One run of the grid: its label, method and axes, and its own seed."""

    label: str
    method: str
    workers: int
    batch: int
    steps: int
    seed: int


@dataclass(frozen=True)
class Configuration:
    """The axes and numbers of one experiment; every field is a key of the TOML file.

    Parameters
    ----------
    data : str
        A name that `theory.load_data` knows, or the path of a file: LIBSVM, or a table in CSV or parquet.
    features : int, optional
        Number of columns of a LIBSVM file; inferred by default.
    target : str, optional
        Column of a table that has the labels.
    scaled : bool
        Whether each column is divided by its largest magnitude.
    workers, batch : int or tuple of int
        Number of workers, and rows in each worker's mini-batch.
    steps : int
        Rounds of the first cell; the others run as many as needed for the same number of samples.
    seed : int
    methods : tuple of str
        Names of the catalogue (``python -m theory.experiment list``), or Python files with methods.
    problem : str
        "auto": logistic regression for two labels, ridge regression otherwise; or "logistic", "softmax", "ridge".
    l2 : float, optional
        Weight of (1/2)||x||^2; 1/n by default.
    step : float, {"theory", "best"} or None
        In place of every method's own step: a constant one, that of the theorem which covers the method, or the
        constant one with which the method ends lowest.
    c, shift : float
        Without ``step``: the step sizes c / (mu (shift + t)) of the methods that state none; without ``shift`` it
        follows from the problem.
    bucket : int
        Coordinates that share one norm in QSGD.
    points : int
        Number of evaluations of f in a run.
    repeats : int
        Runs of each cell, with different seeds: the figure has a band.
    until_bound : bool
        Whether a method whose bound is vacuous after ``steps`` gets the steps from which it is not, up to a hundred
        times as many.
    out : str
        Folder for the folder of the record.
    """

    data: str = "rcv1-like"
    features: int | None = None
    target: str | None = None
    scaled: bool = False
    workers: int | tuple[int, ...] = 8
    batch: int | tuple[int, ...] = 32
    steps: int = 120
    seed: int = 0
    methods: tuple[str, ...] = FLAGSHIP
    problem: str = "auto"
    l2: float | None = None
    step: float | str | None = None
    c: float = 8.0
    shift: float | None = None
    bucket: int = 512
    points: int = 25
    repeats: int = 1
    until_bound: bool = False
    out: str = "runs"

    def __post_init__(self):
        for name in AXES:
            values = getattr(self, name)
            values = tuple(values) if isinstance(values, (list, tuple)) else (values,)
            most = MANY if name == "workers" else LARGEST_BATCH
            good = values and all(is_whole(v) and 1 <= v <= most for v in values) and len(set(values)) == len(values)
            allowed = f"an integer of at least 1, or a list of different ones, to {most}"
            _require(good, name, getattr(self, name), allowed)
            object.__setattr__(self, name, values if len(values) > 1 else values[0])
        for name in ("steps", "bucket", "points", "repeats", "features"):
            value = getattr(self, name)
            good = (is_whole(value) and 1 <= value <= MOST) or (name == "features" and value is None)
            _require(good, name, value, "an integer of at least 1, up to 2**53")
        good = is_whole(self.seed) and 0 <= self.seed < SEED_LIMIT
        _require(self.target is None or isinstance(self.target, str), "target", self.target, "the name of a column")
        _require(good, "seed", self.seed, "an integer from 0 to 2**63 - 1")
        for name in ("scaled", "until_bound"):
            _require(isinstance(getattr(self, name), bool), name, getattr(self, name), "true or false")
        for name in ("l2", "shift", "c", "step"):
            value = getattr(self, name)
            if (value is None and name != "c") or (name == "step" and value in STEPS):
                continue
            good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
            _require(good, name, value, "a number above 0" + (", 'theory' or 'best'" if name == "step" else ""))
            object.__setattr__(self, name, float(value))
        _require(self.problem in PROBLEMS, "problem", self.problem, f"one of {', '.join(PROBLEMS)}")
        for name in ("data", "out"):
            value = getattr(self, name)
            _require(isinstance(value, str) and value, name, value, "a string")
        given = split_names(self.methods) if isinstance(self.methods, str) else self.methods
        good = isinstance(given, (list, tuple)) and all(isinstance(m, str) for m in given)
        _require(good, "methods", self.methods, "a list of names")
        names = [name.strip() for name in given if name.strip()]
        whole = [file_methods(name) if is_file(name) and not named_in(name)[1] else [name] for name in names]
        methods = tuple(dict.fromkeys(name for several in whole for name in several))
        _require(methods, "methods", self.methods, "at least one name")
        for name in methods:
            find(name)  # raises an error for unknown names, with the nearest known ones
        object.__setattr__(self, "methods", methods)

    @classmethod
    def from_dict(cls, values: dict) -> Configuration:
        """Make a configuration from a dict, such as a parsed TOML file or the first line of a record."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigurationError(f"unknown key {name!r}: {nearest(name, [*known, 'study'])}")
        return cls(**values)

    @classmethod
    def from_toml(cls, path: str | Path) -> Configuration:
        """Read a TOML file, or a configuration of this package by its name."""
        path = find_toml(path)
        try:
            return cls.from_dict(read_toml(path))
        except UnreadableError:
            raise
        except ValueError as error:
            raise ConfigurationError(f"{path}: {error}") from None

    def as_dict(self) -> dict:
        """The fields as plain values; lists instead of tuples, as in JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    def to_toml(self) -> str:
        """TOML that `from_toml` reads back; fields that are None are left out."""
        return "".join(f"{name} = {_toml(value)}\n" for name, value in self.as_dict().items() if value is not None)

    def digest(self) -> str:
        """Eight hexadecimal digits that identify the configuration, independent of the output folder."""
        values = replace(self, out="runs").as_dict() | {"methods": " ".join(self.methods)}
        absent = (("repeats", 1), ("until_bound", False), ("step", None))
        return digest({k: v for k, v in values.items() if (k, v) not in absent})[:8]

    def cells(self) -> list[Cell]:
        """The grid, method by method."""
        from ..core.random import key  # compiles, so it is imported late: --help and errors stay fast

        workers, batch = (v if isinstance(v, tuple) else (v,) for v in (self.workers, self.batch))
        samples = self.steps * workers[0] * batch[0]
        cells = []
        for method, n, b, again in itertools.product(self.methods, workers, batch, range(self.repeats)):
            label = method
            label += f" N={n}" if len(workers) > 1 else ""
            label += f" B={b}" if len(batch) > 1 else ""
            name = os.path.basename(method) if is_file(method) else method  # wherever the file is
            label += f" #{again + 1}" if again else ""
            path = (name, f"workers={n}", f"batch={b}", *([f"repeat={again}"] if again else []))
            seed = int(key(self.seed, *path)) % SEED_LIMIT
            cells.append(Cell(label, method, n, b, max(1, samples // (n * b)), seed))
        return cells


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)
