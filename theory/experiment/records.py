"""The record of an experiment: a folder with JSON lines and arrays that any tool can read, complete or interrupted.

``record.jsonl``       one JSON object a line; its ``kind`` is ``experiment`` (configuration, versions, command, data,
                       constants: the first line), ``history`` (one evaluation of one run), ``result`` (one run is
                       done) or ``end`` (status; the last line)
``<run>.npz``          x (the chosen average) and last, for each run
``configuration.toml`` what ``run --config`` takes to do it again
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..reporting.arrays import inside, load_arrays
from ..reporting.figure_records import hint
from ..reporting.files import RecordError, write_whole

UNFINISHED = ".unfinished"
LONGEST_LINE = 2**24  # bytes; longer ones are nobody's record
TITLES = {"payload_bits_up": "bits_up", "payload_bits_down": "bits_down"}  # aliases, as in a result's history


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts for JSON; what is not finite is null, and what is none of these is its text."""
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
    """A file name for a run's label, which no other label has."""
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
        """The stored arrays of a run; no pickle."""
        return load_arrays(inside(self.folder, f"{file_name(label)}.npz"))


def repetitions(record: Record) -> dict[str, list[str]]:
    """The labels of the runs that differ in their seed alone, by the label of the first."""
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
