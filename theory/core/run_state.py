"""The state of a run: named arrays in pieces, in memory or in a folder.

A *piece* is what one process has of an array: it states along which axis, and from where on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .settings import require
from .stored_arrays import fetch


class About:
    """What a run is: described when it is asked for the first time, or sent to another process.

    Parameters
    ----------
    describe : callable or dict
        Returns the description; or that itself.
    """

    def __init__(self, describe: Callable[[], dict] | dict) -> None:
        self._describe = describe

    def __call__(self) -> dict:
        if not isinstance(self._describe, dict):
            self._describe = self._describe()
        return self._describe

    def __reduce__(self) -> tuple:
        return About, (self(),)


def _itself(array: np.ndarray) -> np.ndarray:
    return array


class Piece(NamedTuple):
    """A part of a named array: rows ``first``, ``first + 1``, ... along ``axis``; ``shared``: all processes have it."""

    axis: int
    first: int
    size: int
    shared: bool
    read: Callable[[], np.ndarray]

    @classmethod
    def of(cls, array: np.ndarray, axis: int = 0, first: int = 0, shared: bool = True) -> Piece:
        """A piece of an array in memory."""
        return cls(axis, first, array.shape[axis], shared, functools.partial(_itself, array))


class State(NamedTuple):
    """The state of a run after some rounds.

    Attributes
    ----------
    about : callable
        Returns what the run is, for comparison with the one that goes on; see `differences`.
    rounds : int
    notes : dict
        Numbers beside the arrays, in JSON: seconds, rounds between two rows of the history, what a callback keeps.
    pieces : dict
        The pieces of each array that are known here.
    """

    about: Callable[[], dict]
    rounds: int
    notes: dict
    pieces: Mapping[str, list[Piece]]

    def __repr__(self) -> str:
        return f"State(after {self.rounds} rounds: {', '.join(sorted(self.pieces))})"

    def fill(self, name: str, out: np.ndarray, axis: int = 0, first: int = 0) -> None:
        """Read the rows from ``first`` on along ``axis``, as many as ``out`` has."""
        size, found = out.shape[axis], 0
        for piece in self.pieces[name]:
            low, high = max(first, piece.first), min(first + size, piece.first + piece.size)
            if low < high and found < size:
                there = piece.read()
                fitting = piece.axis == axis and there.dtype == out.dtype
                part = _rows(there, axis, low - piece.first, high - piece.first)
                target = _rows(out, axis, low - first, high - first)
                known = f"{part.dtype} of shape {part.shape}"
                require(fitting and part.shape == target.shape, f"resume: {name}", known, f"shape {target.shape}")
                target[...] = part
                found += high - low
        allowed = "the state of all workers, as checkpoints have it; the result of a rank has that of its own"
        require(found == size, f"resume: {name}", f"{found} of {size} rows", allowed)

    def whole(self, name: str) -> np.ndarray:
        """A whole array."""
        pieces = self.pieces[name]
        if len(pieces) == 1:
            return pieces[0].read()
        some, axis = pieces[0].read(), pieces[0].axis
        size = max(piece.first + piece.size for piece in pieces)
        out = np.empty((*some.shape[:axis], size, *some.shape[axis + 1 :]), some.dtype)
        self.fill(name, out, axis)
        return out


def _rows(array: np.ndarray, axis: int, start: int, stop: int) -> np.ndarray:
    return array[(slice(None),) * axis + (slice(start, stop),)]


# --- in a folder ------------------------------------------------------------------------------------------------------


def manifest_of(state: State) -> dict:
    """What the manifest of a folder says of a state."""
    return {"about": state.about(), "rounds": state.rounds, "notes": state.notes}


def entries_of(state: State, shared: bool = True) -> list[tuple[dict, np.ndarray]]:
    """The arrays of a state for :func:`theory.core.stored_arrays.add`, with or without what all have."""
    return [
        ({"piece": name, "axis": piece.axis, "first": piece.first, "shared": piece.shared}, piece.read())
        for name, pieces in state.pieces.items()
        for piece in pieces
        if shared or not piece.shared
    ]


def state_from(folder: Path, told: dict, entries: list[dict]) -> State:
    """The state in a folder, from what the manifest says; each array is read, and checked, when it is needed."""
    pieces: dict[str, list[Piece]] = {}
    for entry in entries:
        axis, read = entry["axis"], functools.partial(fetch, folder, entry)
        piece = Piece(axis, entry["first"], entry["shape"][axis], entry["shared"], read)
        pieces.setdefault(entry["piece"], []).append(piece)
    return State(About(told["about"]), told["rounds"], told["notes"], pieces)
