"""Records of an experiment, and its configuration: flat, checked, and representable in TOML and JSON.

A configuration is immutable.  Two fields may be lists, ``workers`` and ``batch``: with the methods they span a grid,
one *cell* for each combination. All cells see the same number of samples.  The random stream of a cell is derived from
the seed and the cell's full name, so that adding a method, or a value to an axis, never changes the random numbers of
another cell.

A TOML file with the key ``study`` is another kind of experiment: see ``studies/configuration.py``.

A record is a folder with JSON lines and arrays, complete or interrupted, which any tool can read.

``record.jsonl``       one JSON object a line; its ``kind`` is ``experiment`` (configuration, versions, command, data,
                       constants: the first line), ``history`` (one evaluation of one run), ``result`` (one run is
                       done) or ``end`` (status; the last line)
``<run>.npz``          x (the chosen average) and last, for each run
``configuration.toml`` the configuration with which ``run --config`` repeats it
``table.txt``, ``figure.png``; `plot` adds ``figure.pdf``

The folder is called ``….unfinished`` until the end, so a folder without this suffix is complete or states why it is
not.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import os
import re
import time
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core import require
from ..core.arguments import LARGEST_BATCH, MANY, MOST, is_whole
from ..core.digests import digest
from ..reporting.files import (
    ConfigurationError,
    RecordError,
    UnreadableError,
    find_toml,
    inside,
    load_arrays,
    nearest,
    read_toml,
    write_whole,
)
from ..reporting.json_values import hint
from .method_names import FLAGSHIP, file_methods, find, is_file, named_in, split_names

# --- Configuration of an experiment ----------------------------------------------------------------------------------

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
        Replaces every method's own step: a constant, the step of the theorem that covers the method, or the constant
        with which the method ends lowest.
    c, shift : float
        Without ``step``, methods that state no step size use c / (mu (shift + t)); by default ``shift`` follows from
        the problem.
    bucket : int
        Coordinates that share one norm in QSGD.
    points : int
        Number of evaluations of f in a run.
    repeats : int
        Runs of each cell, with different seeds; with several, the figure has a band.
    until_bound : bool
        Whether a method whose bound is vacuous after ``steps`` runs until it is not, up to a hundred times as many
        steps.
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


# --- The record of an experiment -------------------------------------------------------------------------------------

UNFINISHED = ".unfinished"

LONGEST_LINE = 2**24  # bytes; a longer file is not a record

TITLES = {"payload_bits_up": "bits_up", "payload_bits_down": "bits_down"}  # aliases, as in a result's history


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts for JSON; numbers that are not finite become null, other values text."""
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def file_name(label: str) -> str:
    """A unique file name for a run's label."""
    plain = re.sub(r"[^A-Za-z0-9=.-]+", "_", label)[:100]
    return plain if plain == label else f"{plain}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"


class Recorder:
    """Writer of a record; every line is on disk before the next run starts.

    Parameters
    ----------
    root : path-like
        The folder of the records.
    name : str
        The identity of the experiment (the digest of its configuration).
    """

    def __init__(self, root: Any, name: str) -> None:
        root = Path(root)
        root.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
        for attempt in itertools.count(1):
            self.final = root / (f"{stamp}-{name}" + (f"-{attempt}" if attempt > 1 else ""))
            self.folder = root / (self.final.name + UNFINISHED)
            with contextlib.suppress(FileExistsError):
                if not self.final.exists():
                    self.folder.mkdir()  # atomic: of two processes, one gets the name
                    break
        self._lines = open(self.folder / "record.jsonl", "a", encoding="utf-8")

    def line(self, kind: str, **values: Any) -> None:
        """Append one line."""
        self._lines.write(json.dumps(plain({"kind": kind} | values), allow_nan=False) + "\n")

    def flush(self) -> None:
        """Force the appended lines to disk."""
        self._lines.flush()
        os.fsync(self._lines.fileno())

    def history(self, label: str, rows: np.ndarray) -> None:
        """Append the evaluations of a run: a structured array."""
        for row in rows:
            self.line("history", run=label, **{name: row[name] for name in rows.dtype.names or ()})

    def arrays(self, label: str, **arrays: Any) -> None:
        """Store arrays beside the lines, atomically."""
        path = self.folder / f"{file_name(label)}.npz"
        with open(path.with_suffix(".tmp"), "wb") as file:
            np.savez(file, **arrays)
        os.replace(path.with_suffix(".tmp"), path)

    def text(self, name: str, content: str) -> None:
        """Store a text file beside the lines, atomically."""
        write_whole(self.folder / name, content)

    def close(self, status: str, reason: str = "") -> Path:
        """Append the last line and give the folder its final name."""
        if not self._lines.closed:
            self.line("end", status=status, reason=reason, at=time.strftime("%Y-%m-%dT%H:%M:%S%z"))
            self.flush()
            self._lines.close()
            os.rename(self.folder, self.final)
            self.folder = self.final
        return self.folder


@dataclass
class Record:
    """A record that was read: the first line, and for each run its result and its history as a structured array."""

    folder: Path
    experiment: dict
    results: dict[str, dict] = field(default_factory=dict)
    histories: dict[str, np.ndarray] = field(default_factory=dict)
    status: str = "unfinished"
    reason: str = ""

    def arrays(self, label: str) -> dict[str, np.ndarray]:
        """The stored arrays of a run; nothing is unpickled."""
        return load_arrays(inside(self.folder, f"{file_name(label)}.npz"))


def repetitions(record: Record) -> dict[str, list[str]]:
    """The labels of the runs that differ only in their seed, by the label of the first."""
    found: dict[str, list[str]] = {}
    for label in record.results:
        found.setdefault(label.partition(" #")[0], []).append(label)
    return found


def read_record(folder: str | Path) -> Record:
    """Read a record's folder, complete or not.

    Raises
    ------
    RecordError
        If the folder is not a record.
    """
    folder = Path(folder)
    if folder.name == "record.jsonl":
        folder = folder.parent
    if not (folder / "record.jsonl").is_file():
        of_figure = folder.is_file() and hint(folder)
        raise RecordError(of_figure or f"{folder} is not a record: it has no record.jsonl")
    path = inside(folder, "record.jsonl")
    record: Any = None
    rows: dict[str, list[dict]] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(LONGEST_LINE), b""), 1):
            if not line.strip():
                continue
            try:
                values = json.loads(line)
                kind, label = values.pop("kind"), values.pop("run", None)
                if kind in ("history", "result") and not isinstance(label, str):
                    raise KeyError("run")
                if kind == "end":
                    status, reason = values["status"], values.get("reason", "")
            except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
                if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                    break  # a process that was killed while writing leaves half a line, only at the end
                raise RecordError(f"{path}, line {number}: not a line of a record") from None
            if number == 1:
                if kind != "experiment":
                    raise RecordError(f"{path}: the first line is of kind {kind!r}, not 'experiment'")
                record = Record(folder, values)
            elif kind == "history":
                rows.setdefault(label, []).append(values)
            elif kind == "result":
                record.results[label] = values
            elif kind == "end":
                record.status, record.reason = status, reason
    if record is None:
        raise RecordError(f"{path} is empty")
    for label, listed in rows.items():
        record.histories[label] = _history(path, label, listed)
    return record


def _history(path: Path, label: str, listed: list[dict]) -> np.ndarray:
    """The rows of a run as a structured array."""
    whole = {"step", "samples", "rounds"}
    names = [(TITLES[name], name) if name in TITLES else name for name in listed[0]]
    columns = [(name, np.int64 if name in whole else np.float64) for name in names]
    try:
        if any(row.keys() != listed[0].keys() for row in listed):
            raise ValueError("its rows have different columns")
        values = [tuple(math.nan if row[name] is None else row[name] for name in listed[0]) for row in listed]
        return np.array(values, dtype=columns)
    except (ValueError, TypeError, OverflowError) as error:
        raise RecordError(f"{path}: the history of run {label!r} cannot be read: {error}") from None
