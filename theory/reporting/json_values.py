"""Values to JSON and back, and the records of figures.

Values are numbers, strings, lists, tuples, dicts, arrays and NamedTuples of this package; nothing is pickled.  A JSON
object that represents anything but a dict with string keys is marked by a first key that begins with "!"::

    {"!type": "interval@1", "estimate": 0.5, ...}   a NamedTuple: its name, and its fields
    {"!tuple": [...]}   {"!dict": [[key, value], ...]}   {"!float": "nan"}   {"!array": "float64", "shape": [2], ...}
    {"!columns": {"step": <array>, ...}}            a structured array, by its columns

In a record a NamedTuple has the name of a schema (``schemas.toml``), which does not change when its class is moved.
Between the ranks of a job, which all run the same files, it has the path of its class.
Floats are written with all digits, so that a value read equals the value written, and gives the same figure.

A figure record is a small JSON file with the values of a figure, ``records/<figure>.json``.  Drawing a figure for the
first time writes such a record; from it the figure, and for a study also its tables and statements, can be redrawn
without measuring.  Its keys, one line each::

    format, figure   1, and the figure's name
    how              the settings: the study, its seed, ...
    seconds          time of the measurement
    versions         of the software
    found            the values, as :mod:`.json_values` writes them
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .files import FileRefused, RecordError, text_of, versions, write_whole

# --- Values to JSON and back -----------------------------------------------------------------------------------------

PACKAGE = __name__.partition(".")[0]

SCHEMAS = Path(__file__).with_name("schemas.toml")

PLAIN = "biuf"  # the kinds of arrays: booleans, integers, floats


# --- the names of NamedTuples -----------------------------------------------------------------------------------------


@functools.cache
def _schemas() -> dict[str, str]:
    """Each schema with the path of its class."""
    return tomllib.loads(SCHEMAS.read_text(encoding="utf-8"))


def schema_of(cls: type) -> str:
    """The name of the schema of a NamedTuple.

    Raises
    ------
    TypeError
        If it has none.
    """
    path = f"{cls.__module__}.{cls.__qualname__}"
    name = next((name for name, known in _schemas().items() if known == path), None)
    if name is None:
        raise TypeError(f"value: got a {path}, allowed: NamedTuples of {SCHEMAS.name}; a list or a dict of its fields")
    return name


def schema_class(name: str) -> Any:
    """The NamedTuple with this schema.

    Raises
    ------
    ValueError
        If there is no such schema.
    """
    if name not in _schemas():
        raise ValueError(f"{name}: there is no such schema; another version wrote this")
    return class_at(_schemas()[name])


def path_of(cls: type) -> str:
    """Module and name of a NamedTuple of this package.

    Raises
    ------
    TypeError
        If it is not of the package, or its module does not have it.
    """
    path = f"{cls.__module__}.{cls.__qualname__}"
    if cls.__module__.partition(".")[0] != PACKAGE or "." in cls.__qualname__:
        raise TypeError(f"value: got a {path}, allowed: NamedTuples of the package that their module has")
    return path


def class_at(path: str) -> Any:
    """The class at a path that :func:`path_of` returned."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


# --- values -----------------------------------------------------------------------------------------------------------


def to_json(value: Any, name_of: Callable[[type], str] = schema_of) -> Any:
    """Convert a value to JSON types.

    Parameters
    ----------
    value : number, str, None, list, tuple, dict, ndarray or NamedTuple
    name_of : callable
        Returns the name of the class of a NamedTuple: :func:`schema_of` for files, :func:`path_of` between ranks.

    Returns
    -------
    object
        For ``json.dumps(..., allow_nan=False)``.

    Raises
    ------
    TypeError
        For anything else, such as a function or an object with state, and for a NamedTuple without a name.

    Examples
    --------
    >>> to_json({"pair": (1, float("inf"))})
    {'pair': {'!tuple': [1, {'!float': 'inf'}]}}
    """
    to = functools.partial(to_json, name_of=name_of)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"!float": repr(float(value))}
    if isinstance(value, list):
        return [to(part) for part in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("!") for key in value):
            return {key: to(part) for key, part in value.items()}
        return {"!dict": [[to(key), to(part)] for key, part in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"!type": name_of(type(value))} | {
            field: to(part) for field, part in zip(value._fields, value, strict=True)
        }
    if isinstance(value, tuple):
        return {"!tuple": [to(part) for part in value]}
    if isinstance(value, np.ndarray) and value.dtype.names:
        return {"!columns": {name: to(np.ascontiguousarray(value[name])) for name in value.dtype.names}}
    if isinstance(value, np.ndarray) and value.dtype.kind in PLAIN:
        # a float32 with its own shortest digits, not those of the nearest float64
        parts = map(float, value.ravel().astype(str)) if value.dtype == np.float32 else value.ravel().tolist()
        return {"!array": value.dtype.name, "shape": list(value.shape), "values": [to(part) for part in parts]}
    kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    raise TypeError(
        f"value: got {kind}, allowed: numbers, strings, lists, tuples, dicts, arrays and NamedTuples of them"
    )


def from_json(value: Any, class_of: Callable[[str], Any] = schema_class) -> Any:
    """Inverse of :func:`to_json`.

    Parameters
    ----------
    value : object
        What ``json.loads`` returns.
    class_of : callable
        Returns the class with a name: :func:`schema_class` for files, :func:`class_at` between ranks.

    Raises
    ------
    ValueError
        For an unknown mark or schema, or other fields than those of the schema: it was written by another version.

    Examples
    --------
    >>> from_json(to_json({"pair": (1, float("inf"))}))
    {'pair': (1, inf)}
    """
    read = functools.partial(from_json, class_of=class_of)
    if isinstance(value, list):
        return [read(part) for part in value]
    if not isinstance(value, dict):
        return value
    mark = next(iter(value), "")
    if not mark.startswith("!"):
        return {key: read(part) for key, part in value.items()}
    held = value[mark]
    if mark == "!float":
        return float(held)
    if mark == "!tuple":
        return tuple(read(part) for part in held)
    if mark == "!dict":
        return {read(key): read(part) for key, part in held}
    if mark == "!array":
        return np.array(read(value["values"]), dtype=held).reshape(value["shape"])
    if mark == "!columns":
        columns = read(held)
        rows = np.zeros(len(next(iter(columns.values()))), [(name, part.dtype) for name, part in columns.items()])
        for name, part in columns.items():
            rows[name] = part
        return rows
    if mark == "!type":
        cls, given = class_of(held), {name: read(part) for name, part in value.items() if name != mark}
        if set(given) != set(cls._fields):
            fields = f"got {', '.join(given) or 'no fields'}, allowed: {', '.join(cls._fields)}"
            raise ValueError(f"{held}: {fields}; another version wrote this")
        return cls(**given)
    raise ValueError(f"{mark}: this mark is unknown; another version wrote this")


# --- Figure records --------------------------------------------------------------------------------------------------

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
    """The command that draws the figure of a record; empty for a file that is not the record of a figure."""
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
