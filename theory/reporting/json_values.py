"""Values to JSON and back: numbers, strings, lists, tuples, dicts, arrays and NamedTuples of this package; no pickle.

A JSON object that represents anything but a dict with string keys is marked by a first key that begins with "!"::

    {"!type": "theory.measure.intervals.Interval", "estimate": 0.5, ...}   a NamedTuple, by the names of its fields
    {"!tuple": [...]}   {"!dict": [[key, value], ...]}   {"!float": "nan"}   {"!array": "float64", "shape": [2], ...}
    {"!columns": {"step": <array>, ...}}                                   a structured array, by its columns

Floats are written with all digits, so that what is read equals what was written, and gives the same figure.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

__all__ = ["from_json", "to_json"]

PACKAGE = __name__.partition(".")[0]
PLAIN = "biuf"  # the kinds of arrays: booleans, integers, floats


def to_json(value: Any) -> Any:
    """Convert a value to JSON types.

    Parameters
    ----------
    value : number, str, None, list, tuple, dict, ndarray or NamedTuple
        NamedTuples must belong to this package and be found in their module by name.

    Returns
    -------
    object
        For ``json.dumps(..., allow_nan=False)``.

    Raises
    ------
    TypeError
        For anything else, such as a function or an object with state.

    Examples
    --------
    >>> to_json({"pair": (1, float("inf"))})
    {'pair': {'!tuple': [1, {'!float': 'inf'}]}}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"!float": repr(float(value))}
    if isinstance(value, list):
        return [to_json(part) for part in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("!") for key in value):
            return {key: to_json(part) for key, part in value.items()}
        return {"!dict": [[to_json(key), to_json(part)] for key, part in value.items()]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if _named_tuple(name) is not type(value):
            raise TypeError(f"value: got a {name}, allowed: NamedTuples of the package, which their name finds again")
        return {"!type": name} | {field: to_json(part) for field, part in zip(value._fields, value, strict=True)}
    if isinstance(value, tuple):
        return {"!tuple": [to_json(part) for part in value]}
    if isinstance(value, np.ndarray) and value.dtype.names:
        return {"!columns": {name: to_json(np.ascontiguousarray(value[name])) for name in value.dtype.names}}
    if isinstance(value, np.ndarray) and value.dtype.kind in PLAIN:
        # a float32 with its own shortest digits, not those of the nearest float64
        parts = map(float, value.ravel().astype(str)) if value.dtype == np.float32 else value.ravel().tolist()
        return {"!array": value.dtype.name, "shape": list(value.shape), "values": [to_json(part) for part in parts]}
    kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    raise TypeError(
        f"value: got {kind}, allowed: numbers, strings, lists, tuples, dicts, arrays and NamedTuples of them"
    )


def from_json(value: Any) -> Any:
    """Inverse of :func:`to_json`.

    Parameters
    ----------
    value : object
        What ``json.loads`` returns.

    Raises
    ------
    ValueError
        For an unknown mark, or a NamedTuple that is not in the package or has other fields: it was written by another
        version.

    Examples
    --------
    >>> from_json(to_json({"pair": (1, float("inf"))}))
    {'pair': (1, inf)}
    """
    if isinstance(value, list):
        return [from_json(part) for part in value]
    if not isinstance(value, dict):
        return value
    mark = next(iter(value), "")
    if not mark.startswith("!"):
        return {key: from_json(part) for key, part in value.items()}
    held = value[mark]
    if mark == "!float":
        return float(held)
    if mark == "!tuple":
        return tuple(from_json(part) for part in held)
    if mark == "!dict":
        return {from_json(key): from_json(part) for key, part in held}
    if mark == "!array":
        return np.array(from_json(value["values"]), dtype=held).reshape(value["shape"])
    if mark == "!columns":
        columns = from_json(held)
        rows = np.zeros(len(next(iter(columns.values()))), [(name, part.dtype) for name, part in columns.items()])
        for name, part in columns.items():
            rows[name] = part
        return rows
    if mark == "!type":
        cls, given = _named_tuple(held), {name: from_json(part) for name, part in value.items() if name != mark}
        if cls is None or set(given) != set(cls._fields):
            raise ValueError(f"{held} with {', '.join(given)}: there is no such type; another version wrote this")
        return cls(**given)
    raise ValueError(f"{mark}: this mark is unknown; another version wrote this")


def _named_tuple(name: str) -> Any:
    """The NamedTuple of the package with this full name; None if there is none."""
    module, _, own = name.rpartition(".")
    if module.partition(".")[0] != PACKAGE:
        return None
    try:
        cls = getattr(importlib.import_module(module), own, None)
    except ImportError:
        return None
    return cls if isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields") else None
