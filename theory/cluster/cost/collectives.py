"""Collective operations step by step, in this process: every message is simulated and counted.

A `Machine` moves messages in rounds.  In a round every rank sends one message and receives one at the same time, so a
round costs one start-up and the words of its longest message; its additions are those of the busiest rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...bounds.cost.collectives import CollectiveCost
from ...core import require


class Machine:
    """Counts start-ups, words and additions on the critical path, and rejects rounds that ranks cannot do at once."""

    def __init__(self) -> None:
        self.starts, self.words, self.adds = 0, 0, 0

    def round(self, messages: Any) -> dict[int, np.ndarray]:
        """Deliver messages ``(source, target, words)`` at once; return what each target received."""
        for name, ends in (("sources", [m[0] for m in messages]), ("targets", [m[1] for m in messages])):
            require(len(set(ends)) == len(ends), name, ends, "each rank once in a round")
        self.starts += 1
        self.words += max(m[2].size for m in messages)
        return {target: words.copy() for _, target, words in messages}

    def one_link(self, messages: Any) -> list[np.ndarray]:
        """Deliver messages to or from one rank: start-ups overlap, words are sequential."""
        self.starts += 1
        self.words += sum(m[2].size for m in messages)
        return [words.copy() for _, _, words in messages]

    def add(self, pairs: Any) -> None:
        """``a += b`` on several ranks at once."""
        for a, b in pairs:
            a += b
        self.adds += max((a.size for a, _ in pairs), default=0)

    def cost(self) -> CollectiveCost:
        """The counts so far."""
        return CollectiveCost(self.starts, self.words, self.adds)


def _pieces(vectors: np.ndarray) -> Any:
    """Split every rank's vector into p pieces."""
    return [np.array_split(v, len(vectors)) for v in vectors]


def _ring(machine: Machine, vectors: np.ndarray) -> None:
    p, pieces = len(vectors), _pieces(vectors)
    for step in range(p - 1):  # the sum of piece j travels from rank j + 1 around to rank j
        got = machine.round([(r, (r + 1) % p, pieces[r][(r - step) % p]) for r in range(p)])
        machine.add([(pieces[r][(r - 1 - step) % p], got[r]) for r in range(p)])
    for step in range(p - 1):
        got = machine.round([(r, (r + 1) % p, pieces[r][(r + 1 - step) % p]) for r in range(p)])
        for r in range(p):
            pieces[r][(r - step) % p][:] = got[r]


def _fold(p: int) -> tuple[int, list[int]]:
    """Number of pairs of ranks to merge, so that a power of two remains, and the remaining ranks."""
    extra = p - (1 << (p.bit_length() - 1))
    return extra, [2 * i for i in range(extra)] + list(range(2 * extra, p))


def _recursive_doubling(machine: Machine, vectors: np.ndarray) -> None:
    p = len(vectors)
    extra, left = _fold(p)
    if extra:
        got = machine.round([(2 * i + 1, 2 * i, vectors[2 * i + 1]) for i in range(extra)])
        machine.add([(vectors[r], words) for r, words in got.items()])
    distance = 1
    while distance < len(left):
        got = machine.round([(left[i], left[i ^ distance], vectors[left[i]]) for i in range(len(left))])
        machine.add([(vectors[r], words) for r, words in got.items()])
        distance *= 2
    if extra:
        for r, words in machine.round([(2 * i, 2 * i + 1, vectors[2 * i]) for i in range(extra)]).items():
            vectors[r][:] = words


def _rabenseifner(machine: Machine, vectors: np.ndarray) -> None:
    p, n = len(vectors), vectors[0].size
    extra, left = _fold(p)
    if extra:
        half = n // 2
        pairs = [(2 * i, 2 * i + 1) for i in range(extra)]
        swap = [(a, b, vectors[a][half:]) for a, b in pairs] + [(b, a, vectors[b][:half]) for a, b in pairs]
        got = machine.round(swap)
        machine.add([(vectors[a][:half], got[a]) for a, _ in pairs] + [(vectors[b][half:], got[b]) for _, b in pairs])
        for r, words in machine.round([(b, a, vectors[b][half:]) for a, b in pairs]).items():
            vectors[r][half:] = words
    span = {r: (0, n) for r in left}
    distance = len(left) // 2
    while distance:  # recursive halving: at the end every rank has the sum of one piece
        messages, kept = [], {}
        for i, r in enumerate(left):
            low, high = span[r]
            middle = (low + high) // 2
            mine, other = ((middle, high), (low, middle)) if i & distance else ((low, middle), (middle, high))
            messages.append((r, left[i ^ distance], vectors[r][slice(*other)]))
            kept[r] = mine
        got, span = machine.round(messages), kept
        machine.add([(vectors[r][slice(*span[r])], got[r]) for r in left])
        distance //= 2
    distance = 1
    while distance < len(left):  # and back
        got = machine.round([(r, left[i ^ distance], vectors[r][slice(*span[r])]) for i, r in enumerate(left)])
        theirs = {r: span[left[i ^ distance]] for i, r in enumerate(left)}
        for r in left:
            vectors[r][slice(*theirs[r])] = got[r]
        span = {r: (min(span[r][0], theirs[r][0]), max(span[r][1], theirs[r][1])) for r in left}
        distance *= 2
    if extra:
        for r, words in machine.round([(2 * i, 2 * i + 1, vectors[2 * i]) for i in range(extra)]).items():
            vectors[r][:] = words


def _tree(machine: Machine, vectors: np.ndarray) -> None:
    p, distance = len(vectors), 1
    while distance < p:
        got = machine.round([(r, r - distance, vectors[r]) for r in range(distance, p, 2 * distance)])
        machine.add([(vectors[r], words) for r, words in got.items()])
        distance *= 2
    while distance > 1:
        distance //= 2
        for r, words in machine.round(
            [(r - distance, r, vectors[r - distance]) for r in range(distance, p, 2 * distance)]
        ).items():
            vectors[r][:] = words


def _server(machine: Machine, vectors: np.ndarray) -> None:
    p, total = len(vectors), None
    for r in range(p):
        words = machine.round([(r, p, vectors[r])])[p]
        if total is None:
            total = words
        else:
            machine.add([(total, words)])
    for r in range(p):
        vectors[r][:] = machine.round([(p, r, total)])[r]


def _server_overlapped(machine: Machine, vectors: np.ndarray) -> None:
    p = len(vectors)
    total, *others = machine.one_link([(r, p, vectors[r]) for r in range(p)])
    for words in others:
        machine.add([(total, words)])
    for r, words in enumerate(machine.one_link([(p, r, total) for r in range(p)])):
        vectors[r][:] = words


def _server_sharded(machine: Machine, vectors: np.ndarray) -> None:
    p, pieces = len(vectors), _pieces(vectors)
    for step in range(1, p):
        got = machine.round([(r, (r + step) % p, pieces[r][(r + step) % p]) for r in range(p)])
        # a sent piece is not needed again, so a rank may add to its own piece in place
        machine.add([(pieces[r][r], got[r]) for r in range(p)])
    for step in range(1, p):
        got = machine.round([(r, (r + step) % p, pieces[r][r]) for r in range(p)])
        for r in range(p):
            pieces[r][(r - step) % p][:] = got[r]


ALLREDUCES: dict[str, Callable] = {
    "ring": _ring,
    "recursive-doubling": _recursive_doubling,
    "rabenseifner": _rabenseifner,
    "tree": _tree,
    "server": _server,
    "server-overlapped": _server_overlapped,
    "server-sharded": _server_sharded,
}


def _gather_ring(machine: Machine, blocks: np.ndarray) -> None:
    p = len(blocks)
    for step in range(p - 1):
        got = machine.round([(r, (r + 1) % p, blocks[r][(r - step) % p]) for r in range(p)])
        for r in range(p):
            blocks[r][(r - 1 - step) % p] = got[r]


def _gather_doubling(machine: Machine, blocks: np.ndarray) -> None:
    """Bruck's algorithm: in the j-th round a rank receives up to 2^j blocks from the rank 2^j further on."""
    p, have = len(blocks), 1
    while have < p:
        take = min(have, p - have)
        got = machine.round(
            [(r, (r - have) % p, np.concatenate([blocks[r][(r + j) % p] for j in range(take)])) for r in range(p)]
        )
        for r in range(p):
            for j, words in enumerate(np.split(got[r], take)):
                blocks[r][(r + have + j) % p] = words
        have += take


ALLGATHERS: dict[str, Callable] = {"ring": _gather_ring, "doubling": _gather_doubling}


def _checked(vectors: Any) -> Any:
    rows = np.array(vectors, float)
    require(rows.ndim == 2 and rows.shape[0] >= 1, "vectors", f"shape {rows.shape}", "(ranks, words), ranks >= 1")
    return list(rows)


def simulate_allreduce(algorithm: str | Callable, vectors: ArrayLike) -> tuple[np.ndarray, CollectiveCost]:
    """Add the vectors of all ranks, message by message.

    Parameters
    ----------
    algorithm : str or callable
        A key of ``ALLREDUCES``, or a schedule ``(machine, vectors) -> None``.
    vectors : array_like, shape (ranks, words)
        One vector for each rank.

    Returns
    -------
    results : ndarray, shape (ranks, words)
        Final vector of every rank.
    cost : CollectiveCost
        Counted on the critical path.

    Raises
    ------
    ValueError
        For an unknown name, a wrong shape, or a schedule in which a rank would send or receive twice at once.

    Examples
    --------
    >>> results, cost = simulate_allreduce("ring", np.ones((4, 8)))
    >>> bool((results == 4).all()), cost
    (True, CollectiveCost(starts=6, words=12, adds=6))
    """
    if isinstance(algorithm, str):
        require(algorithm in ALLREDUCES, "algorithm", algorithm, ", ".join(map(repr, ALLREDUCES)))
        algorithm = ALLREDUCES[algorithm]
    rows, machine = _checked(vectors), Machine()
    algorithm(machine, rows)
    return np.stack(rows), machine.cost()


def simulate_allgather(algorithm: str | Callable, vectors: ArrayLike) -> tuple[np.ndarray, CollectiveCost]:
    """Give every rank the vectors of all, message by message.

    Parameters
    ----------
    algorithm : str or callable
        A key of ``ALLGATHERS``, or a schedule ``(machine, blocks) -> None``; ``blocks[r][s]`` is rank r's copy of the
        vector of rank s, initially NaN for s != r.
    vectors : array_like, shape (ranks, words)
        One vector for each rank.

    Returns
    -------
    results : ndarray, shape (ranks, ranks, words)
    cost : CollectiveCost

    Raises
    ------
    ValueError
        As for :func:`simulate_allreduce`.

    Examples
    --------
    >>> simulate_allgather("doubling", np.ones((5, 2)))[1]
    CollectiveCost(starts=3, words=8, adds=0)
    """
    if isinstance(algorithm, str):
        require(algorithm in ALLGATHERS, "algorithm", algorithm, ", ".join(map(repr, ALLGATHERS)))
        algorithm = ALLGATHERS[algorithm]
    rows, machine = _checked(vectors), Machine()
    blocks = [[v.copy() if r == s else np.full_like(v, np.nan) for s, v in enumerate(rows)] for r in range(len(rows))]
    algorithm(machine, blocks)
    return np.array(blocks), machine.cost()
