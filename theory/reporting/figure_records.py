"""Figure records: a small JSON file with the values of a figure, ``records/<figure>.json``.

Drawing a figure for the first time writes such a record; from it the figure, and for a study also its tables and
statements, can be redrawn without measuring.  Its keys, one line each::

    format, figure   1, and the figure's name
    how              what was run: the study, its seed, ...
    seconds          time of the measurement
    versions         of the software
    found            the values, as :mod:`.json_values` writes them
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from .files import FileRefused, RecordError, text_of, versions, write_whole
from .json_values import from_json, to_json

FORMAT = 1
FOLDER = "records"  # beside the figures
LARGEST = 2**28  # bytes of a record


class FigureRecord(NamedTuple):
    """A record that was read; ``found`` has the values."""

    figure: str
    how: dict
    seconds: float
    versions: dict
    found: dict


def record_path(folder: str | Path, figure: str) -> Path:
    """Path of the record of a figure, given the folder of the figures."""
    return Path(folder) / FOLDER / f"{figure}.json"


def write_record(folder: str | Path, figure: str, how: dict, seconds: float, found: dict) -> Path:
    """Write the record of a figure in ``folder``; the write is atomic.

    Parameters
    ----------
    folder : path-like
        Folder of the figures.
    figure : str
        The figure's name, without an extension.
    how : dict
        What was run, as JSON values.
    seconds : float
        Time of the measurement.
    found : dict
        Values that `to_json` takes; anything but a dict is written as ``returned``.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    TypeError
        For a value that a record cannot hold.
    """
    path, python = record_path(folder, figure), {k: v for k, v in versions().items() if k != "platform"}
    values = {"format": FORMAT, "figure": figure, "how": how, "seconds": round(seconds, 1), "versions": python}
    values["found"] = to_json(found if isinstance(found, dict) else {"returned": found})
    lines = [f"{json.dumps(key)}: {_lines(value, key == 'found')}" for key, value in values.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")
    return path


def hint(path: str | Path) -> str:
    """Of a file that is the record of a figure, the command that draws it; empty for all others."""
    try:
        record = read_record(path)
    except RecordError:
        return ""
    study = str(record.how.get("study", ""))
    name = study if study.endswith(".py") else record.figure
    return f"{path} is the record of a figure: python -m theory.experiment figures {name} --record {path} draws it"


def _lines(value: Any, open_up: bool) -> str:
    """Format as JSON: one line per value of ``found``, and per element of a list of them."""
    if not open_up:
        return _json(value)
    parts = []
    for key, held in value.items():
        many = isinstance(held, list) and held
        parts.append(f"{json.dumps(key)}: " + ("[\n" + ",\n".join(map(_json, held)) + "\n]" if many else _json(held)))
    return "{\n" + ",\n".join(parts) + "\n}"


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def read_record(path: str | Path) -> FigureRecord:
    """Read the record of a figure.

    Raises
    ------
    RecordError
        If there is no such file, it is not a record, or its version cannot be read.
    """
    path = Path(path)
    try:
        values = json.loads(text_of(path, LARGEST))
    except (OSError, FileRefused) as error:
        raise RecordError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, RecursionError):
        raise RecordError(f"{path} is not a record of a figure: it is not JSON") from None
    if not isinstance(values, dict) or not {"format", *FigureRecord._fields} <= set(values):
        raise RecordError(f"{path} is not a record of a figure: {', '.join(FigureRecord._fields)} are its keys")
    for key, kind in (("figure", str), ("how", dict), ("seconds", (int, float)), ("found", dict)):
        if not isinstance(values[key], kind):
            raise RecordError(f"{path} is not a record of a figure: {key} is {str(values[key])[:40]!r}")
    if values["format"] != FORMAT:
        raise RecordError(
            f"{path} is of format {values['format']!r}, and this version reads {FORMAT}; --fresh measures"
        )
    try:
        found = from_json(values["found"])
    except (ValueError, TypeError, KeyError, AttributeError, MemoryError) as error:
        raise RecordError(f"{path}: {error!r}; --fresh measures again") from None
    return FigureRecord(values["figure"], values["how"], values["seconds"], values["versions"], found)
