"""The state of a run between two rounds, by name, and how another run continues from it.

Random streams and kernels have no state.  So the state of a run consists of the arrays of `Rows.array`, the active
workers, the counters, and the history.  A process has the rows of its workers, or the coordinates of its slice; another
number of ranks reads other parts of the same pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import require
from ..core.stored_arrays import Piece, State
from ..methods.messages import LINK_BITS
from ..methods.types import Setup
from .rows import Owned

ROWS, CONSENSUS = ".history", ".consensus"  # no arrays of a run have these names
ACTING, TIMES, ERRORS = ".acting", ".nanoseconds", ".errors"
OF_REPLICAS = (".values", ".last_values", ".sent", ".consensus")  # a column for each row of the history
BESIDE = {ROWS, CONSENSUS, ACTING, TIMES, ERRORS, *OF_REPLICAS}


# --- the state of a run -----------------------------------------------------------------------------------------------


def _place(run: Any, owned: Owned) -> tuple[int, int, bool]:
    """The axis along which an array is a part of the whole, its offset, and whether every process has the same."""
    if run.setup.replicas > 1:
        return 0, run.replica, False
    if owned.of == "slice":
        return owned.array.ndim - 1, run.shard().low, False
    if owned.of in ("workers", "copies") or (owned.of == "models" and run.own_models):
        return 1, run.first_here, False
    return 0, 0, True


def owned(run: Any, rows: int = 0) -> Iterator[tuple[str, Piece]]:
    """The state of a run between two rounds, by name, with so many rows of the history; all processes call it."""
    for name, one in run._arrays.items():
        axis, first, shared = _place(run, one)
        array = one.array
        if one.of == "copies" and axis == 1:  # a rank knows those of its own workers for certain
            array = array[:, run.first_here : run.first_here + run.workers_here]
        if name == "sent":
            array = run.transport.total(run)
        if one.of != "round":
            yield name, Piece.of(array, axis, first, shared)
    for name, pieces in run._waiting.items():
        yield from ((name, piece) for piece in pieces if name not in run._arrays)
    acting = np.full(run.workers, np.nan)
    chosen = run.heard.now() if run.links is None else np.arange(run.workers)
    acting[chosen] = run.weight[chosen]
    yield ACTING, Piece.of(acting)
    yield TIMES, Piece.of(run.nanoseconds)
    if run.watched.size:
        yield ERRORS, Piece.of(run.errors[:rows], 1, run.first_here, False)


def copies_of(run: Any) -> Iterator[tuple[str, Piece]]:
    """The same, as copies: the arrays of the run will be used by other replicas."""
    for name, piece in owned(run):
        yield name, Piece.of(piece.read().copy(), piece.axis, piece.first, piece.shared)


def resume_run(run: Any, state: State, rows: np.ndarray | None = None) -> None:
    """Restore the state of a run; ``rows`` are the rows of the errors that belong to the history."""
    waiting = {  # a round function may ask for some of its arrays later
        name: [Piece.of(piece.read(), piece.axis, piece.first) for piece in pieces]
        for name, pieces in state.pieces.items()
        if name not in run._arrays and name not in BESIDE
    }
    run.begin_with(state._replace(pieces={**state.pieces, **waiting}), waiting)
    acting = np.empty(run.workers)
    state.fill(ACTING, acting)
    chosen = np.flatnonzero(~np.isnan(acting))
    good = chosen.size > 0 and bool(np.all((acting[chosen] >= 0.0) & np.isfinite(acting[chosen])))
    require(good, f"resume: {ACTING}", acting, "weights of the workers that acted last, at least 0")
    run.acting(chosen, acting)
    run.nanoseconds[:] = state.whole(TIMES)
    if run.watched.size and rows is not None:
        there = np.empty((rows.size, *run.errors.shape[1:]))
        state.fill(ERRORS, there, 1, run.first_here)
        run.errors[: int(rows.sum())] = there[rows]


def fill_array(run: Any, state: State, name: str, one: Owned) -> None:
    """Restore one array; an array that the state does not contain is computed anew in every round."""
    if one.of == "round" or name not in state.pieces:
        return
    axis, first, _ = _place(run, one)
    state.fill(name, one.array, axis, 0 if one.of == "copies" and axis == 1 else first)
    if name == "order":  # row numbers, which kernels do not check
        shards = run.setup.shards
        sizes = (shards.stop - shards.start)[run.first_here : run.first_here + run.workers_here]
        require(np.all(one.array < np.maximum(sizes, 1)[:, None]), f"resume: {name}", one.array, "numbers of rows")
    if name == "sent" and run.transport.rank > 0:  # rank 0 has the sum of what the links counted
        one.array[:, LINK_BITS:] = 0


# --- comparison of runs, and the history ------------------------------------------------------------------------------


def differences(mine: dict, theirs: dict) -> list[str]:
    """The differences between two runs, one per line."""
    found = []
    for name in mine:
        before, now = theirs.get(name, [None, "unknown"]), mine[name]
        if before[0] != now[0]:  # what a message says of a function has its address
            shown = f"was {before[-1]}, is {now[-1]}" if before[-1] != now[-1] else "its code has changed"
            found.append(f"{name} ({shown})")
    return found


def continued(setup: Setup, state: State) -> tuple[Setup, np.ndarray]:
    """The setup with the rounds of all rows of the history, and the old rows that are among them.

    A row at the end of a shorter run, between two rows of a longer one, is not.
    """
    before = state.whole(ROWS)["step"] // setup.method.local_steps
    rows = np.isin(before, setup.records) | (before % state.notes["every"] == 0)
    later = setup.records[(setup.records >= state.rounds) & ~np.isin(setup.records, before)]
    return setup.with_records(np.concatenate([before[rows], later])), rows
