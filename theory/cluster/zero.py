"""The stages of ZeRO: training in which workers divide parameters, gradients and moments among themselves.

Stage 0 is data parallelism.  In stage 1 each worker stores a slice of the moments, in stage 2 also of the gradients,
and in stage 3 also of the parameters.  In stage 3 a layer is gathered for its forward pass and again for its backward
pass, as in the paper, and discarded after each.  Two of these gathers could be avoided: in the backward pass the first
layer's parameters are needed only for the l2 term, and the last layer's could still be stored.  With two layers this is
all of stage 3's extra communication; in a deep network it is little.  The code is the same for all stages; stored bytes
and sent numbers are counted from the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..bounds.adaptive import STAGES
from ..core import require
from ..core.arguments import finite_number, flag, whole_number
from ..core.random import generator, key
from ..methods.adaptive.adam import Adam
from ..problems.network import TANH, TwoLayer, initial_point, layer_shapes, layers
from .rows import slice_edges

ADAM = Adam()
STORED = ("parameters", "gradients", "optimizer", "memory")


class ZeroRun(NamedTuple):
    """The bytes that workers stored and the numbers that they sent.

    Parameters
    ----------
    x : ndarray of float32, shape (d,)
        The parameters at the end, of all workers together.
    held : dict of str to int
        Bytes that a worker stores at an update, for the worker with the most: ``parameters``, ``gradients``,
        ``optimizer``, ``memory``.
    sent : float
        Numbers that a worker sends in a step, the mean of all workers.
    """

    x: np.ndarray
    held: dict[str, int]
    sent: float


class Options(NamedTuple):
    """The options of `run_zero`."""

    stage: int
    step: float
    server: Adam
    share: float
    memory: bool
    seed: int


class Together:
    """All workers in this process."""

    def __init__(self, workers: int) -> None:
        self.workers, self.here = workers, range(workers)

    def scatter(self, rows: list[np.ndarray], edges: np.ndarray) -> list[np.ndarray]:
        """For each worker here, its slice of every worker's row."""
        return [np.stack([row[a:b] for row in rows]) for a, b in pairs(edges)]

    def gather(self, slices: list[np.ndarray], edges: np.ndarray) -> np.ndarray:
        """All workers' slices, one after the other."""
        return np.concatenate(slices)

    def all(self, value: int) -> list[int]:
        """The value of each process."""
        return [value]


class OnRanks:
    """One worker on each rank of an mpi4py communicator."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.workers, rank = comm, comm.Get_size(), comm.Get_rank()
        self.here = range(rank, rank + 1)

    def scatter(self, rows: list[np.ndarray], edges: np.ndarray) -> list[np.ndarray]:
        """As `Together.scatter`."""
        mine = int(np.diff(edges)[self.here.start])
        received = np.empty((self.workers, mine), rows[0].dtype)
        self.comm.Alltoallv([rows[0], (np.diff(edges), edges[:-1])], [received, (np.full(self.workers, mine), None)])
        return [received]

    def gather(self, slices: list[np.ndarray], edges: np.ndarray) -> np.ndarray:
        """As `Together.gather`."""
        whole = np.empty(int(edges[-1]), slices[0].dtype)
        self.comm.Allgatherv(slices[0], [whole, (np.diff(edges), edges[:-1])])
        return whole

    def all(self, value: int) -> list[int]:
        """As `Together.all`."""
        return self.comm.allgather(value)


class Worker(NamedTuple):
    """The arrays that a worker stores, by layer, and its rows of the data."""

    parameters: dict[int, np.ndarray]
    gradients: dict[int, np.ndarray]
    optimizer: dict[int, np.ndarray]  # both moments
    memory: dict[int, np.ndarray]
    rows: np.ndarray
    classes: np.ndarray

    def held(self) -> dict[str, int]:
        """Bytes of the stored arrays."""
        return {name: sum(a.nbytes for a in getattr(self, name).values()) for name in STORED}


class Training:
    """The workers of this process, and a step of theirs."""

    def __init__(self, network: TwoLayer, team: Together | OnRanks, options: Options) -> None:
        self.network, self.team, self.options = network, team, options
        self.shapes, self.sent = layer_shapes(network), 0
        self.edges = [slice_edges(rows * columns, team.workers) for rows, columns in self.shapes]
        start = initial_point(network, options.seed).astype(np.float32)
        self.workers = [self._new(i, [start[layer] for layer in layers(network)]) for i in team.here]

    def _new(self, i: int, start: list[np.ndarray]) -> Worker:
        stage, parts = self.options.stage, slice_edges(self.network.n, self.team.workers)
        whole = {k: W.copy() for k, W in enumerate(start)}
        mine = {k: W[self.own(k, i)].copy() for k, W in enumerate(start)}
        moments = {k: np.zeros((2, W.size), np.float32) for k, W in (mine if stage >= 1 else whole).items()}
        memory = {k: np.zeros_like(W) for k, W in whole.items()} if self.options.memory else {}
        rows = slice(int(parts[i]), int(parts[i + 1]))
        A = np.asarray(self.network.A[rows], np.float32)
        return Worker(mine if stage >= 3 else whole, {}, moments, memory, A, self.network.b[rows])

    def _held(self) -> dict[str, int]:
        """Bytes stored by a worker here, the largest over these workers."""
        each = [worker.held() for worker in self.workers]
        return {name: max(one[name] for one in each) for name in STORED}

    def own(self, k: int, i: int) -> slice:
        """Worker i's slice of layer k."""
        return slice(int(self.edges[k][i]), int(self.edges[k][i + 1]))

    def step(self, t: int) -> None:
        """One step of Adam; the differences between stages are in `layer`, `reduce` and `update`."""
        values = [[worker.rows] for worker in self.workers]
        for k in range(len(self.shapes)):  # forward
            W = self.layer(k)
            for a in values:
                a.append(self.activate(k, a[-1] @ W))
            del W  # before the next layer is gathered
        residuals = [self.residual(a.pop(), worker.classes) for a, worker in zip(values, self.workers, strict=True)]
        for k in reversed(range(len(self.shapes))):  # backward
            W = self.layer(k)
            for worker, a, r in zip(self.workers, values, residuals, strict=True):
                worker.gradients[k] = (a[k].T @ r + np.float32(self.network.l2) * W).ravel()
            if k > 0:
                residuals = [r @ W.T * self.slope(a[k]) for a, r in zip(values, residuals, strict=True)]
            del W
            self.reduce(k, t)  # from stage 2 on workers have slices of it from here on
        self.held = self._held()
        for k in range(len(self.shapes)):
            self.update(k, t)

    def layer(self, k: int) -> np.ndarray:
        """The parameters of a layer; in stage 3 they are gathered, and discarded after use."""
        if self.options.stage < 3:
            return self.workers[0].parameters[k].reshape(self.shapes[k])  # all workers' are equal
        W = self.gather([worker.parameters[k] for worker in self.workers], self.edges[k])
        return W.reshape(self.shapes[k])

    def reduce(self, k: int, t: int) -> None:
        """Replace the gradients by their mean over all workers: the whole mean, or each worker's slice."""
        at = self.chosen(k, t)
        ends = np.searchsorted(at, self.edges[k])  # of the slices, among the coordinates that are sent
        for worker in self.workers if self.options.memory else ():
            worker.gradients[k] += worker.memory[k]
            worker.memory[k][:] = worker.gradients[k]
            worker.memory[k][at] = 0.0
        slices = self.scatter([worker.gradients[k][at] for worker in self.workers], ends)
        whole = self.gather(slices, ends) if self.options.stage == 0 else None
        for i, worker, part in zip(self.team.here, self.workers, slices, strict=True):
            g = worker.gradients[k]
            g[:] = 0.0
            where, mean = (at, whole) if whole is not None else (at[ends[i] : ends[i + 1]], part)
            g[where] = mean
            if self.options.stage >= 2:
                worker.gradients[k] = g[self.own(k, i)].copy()

    def update(self, k: int, t: int) -> None:
        """Update the parameters: all of them, or each worker's slice, which is sent to the others if they store it."""
        stage = self.options.stage
        for i, worker in zip(self.team.here, self.workers, strict=True):
            x = worker.parameters[k][self.own(k, i) if stage in (1, 2) else slice(None)]
            g = worker.gradients.pop(k)[self.own(k, i) if stage == 1 else slice(None)]
            adam(self.options.server, self.options.step, t, x, g, *worker.optimizer[k])
        if stage in (1, 2):
            slices = [w.parameters[k][self.own(k, i)] for i, w in zip(self.team.here, self.workers, strict=True)]
            whole = self.gather(slices, self.edges[k])
            for worker in self.workers:
                worker.parameters[k][:] = whole

    def chosen(self, k: int, t: int) -> np.ndarray:
        """The coordinates of layer k that all workers send in step t: the same number of every slice."""
        share, edges = self.options.share, self.edges[k]
        if share == 1.0:
            return np.arange(edges[-1])
        rng = generator(key(self.options.seed, "coordinates", t, k))
        parts = [low + rng.choice(high - low, round(share * (high - low)), replace=False) for low, high in pairs(edges)]
        return np.sort(np.concatenate(parts))

    def scatter(self, rows: list[np.ndarray], ends: np.ndarray) -> list[np.ndarray]:
        """The mean of all workers' rows, of which each worker here gets its slice, added in the same order on ranks."""
        for i, row in zip(self.team.here, rows, strict=True):
            self.sent += row.size - int(ends[i + 1] - ends[i])
        scale = np.float32(1.0 / self.team.workers)
        return [scale * np.add.reduce(got, axis=0) for got in self.team.scatter(rows, ends)]

    def gather(self, slices: list[np.ndarray], ends: np.ndarray) -> np.ndarray:
        """All slices, at every worker."""
        self.sent += (self.team.workers - 1) * sum(part.size for part in slices)
        return self.team.gather(slices, ends)

    def activate(self, k: int, scores: np.ndarray) -> np.ndarray:
        """Apply phi to the scores, except in the last layer."""
        if k == len(self.shapes) - 1:
            return scores
        return np.tanh(scores) if self.network.kind == TANH else np.maximum(scores, 0.0)

    def residual(self, scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The contribution of each row to the gradient in its scores: the probabilities, minus 1 at the true class."""
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        scores[np.arange(classes.size), classes] -= 1.0
        return scores / np.float32(self.network.n / self.team.workers)  # the mean of the workers is that of all rows

    def slope(self, values: np.ndarray) -> np.ndarray:
        """The slope of phi where phi has these values."""
        return 1.0 - values * values if self.network.kind == TANH else (values > 0.0).astype(values.dtype)


def pairs(edges: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where each slice begins and ends."""
    return zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def adam(rule: Adam, step: float, t: int, x: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray) -> None:
    """Move x, m and v by a step of Adam; t counts from 1."""
    m *= rule.beta1
    m += (1.0 - rule.beta1) * g
    v *= rule.beta2
    v += (1.0 - rule.beta2) * g * g
    root = np.sqrt(v / (1.0 - rule.beta2**t)) + rule.eps
    u = np.divide(m / (1.0 - rule.beta1**t), root, out=np.zeros_like(m), where=v > 0.0)  # 0 where there was no gradient
    x -= step * rule.rate * (u + rule.decay * x)


def run_zero(
    network: TwoLayer,
    workers: int | None = None,
    stage: int = 3,
    *,
    steps: int = 10,
    step: float = 0.01,
    server: Adam = ADAM,
    share: float = 1.0,
    memory: bool = False,
    seed: int = 0,
    comm: Any = None,
) -> ZeroRun:
    """Train a network with Adam in a stage of ZeRO; in each step a worker uses all rows of its part of the data.

    Parameters
    ----------
    network : TwoLayer
        With dense rows, which are divided evenly up to one row.
    workers : int, optional
        Number of workers, at most one for each row: 4 by default; with ``comm`` the number of its ranks.
    stage : int
        0 (data parallelism) to 3.
    steps, step : int, float
        Number of steps and their size.
    server : Adam
        The update rule.
    share : float
        Above 0, at most 1: the fraction of the coordinates of each worker's slice of a layer that is sent, rounded to a
        whole number. All workers send the same coordinates, which are drawn in every step; the other entries of the
        mean gradient are 0.
    memory : bool
        Whether a worker has an error memory.
    comm : mpi4py communicator, optional
        One worker on each of its ranks.
    seed : int
        Seed of the initial weights and of the coordinates.

    Returns
    -------
    ZeroRun
        The same ``x`` in all stages, in one process and on ranks.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or if no coordinate of a slice would be sent.

    Notes
    -----
    [rajbhandari2020zero]; the formulas for the stored bytes and the sent numbers are :func:`theory.bounds.zero_memory`
    and :func:`theory.bounds.zero_volume`. The parameters and the gradient of one layer, and activations, are stored
    temporarily in addition.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> from theory.cluster import run_zero
    >>> rng = np.random.default_rng(0)
    >>> network = th.two_layer((rng.standard_normal((40, 6)), rng.integers(0, 2, 40)), width=8)
    >>> found = [run_zero(network, workers=4, stage=stage) for stage in range(4)]
    >>> [sum(run.held.values()) for run in found], [run.sent for run in found]
    ([1024, 640, 448, 256], [96.0, 96.0, 96.0, 144.0])
    >>> bool(np.array_equal(found[0].x, found[3].x))
    True
    """
    require(isinstance(network, TwoLayer), "network", network, "a network from two_layer", TypeError)
    require(isinstance(network.A, np.ndarray), "network", network, "one with dense rows")
    stage = whole_number("stage", stage, low=STAGES[0], high=STAGES[-1])
    require(0.0 < finite_number("share", share) <= 1.0, "share", share, "a number above 0, at most 1")
    require(0.0 < finite_number("step", step) < np.inf, "step", step, "a finite number above 0")
    require(isinstance(server, Adam), "server", server, "Adam(...)", TypeError)
    steps, memory = whole_number("steps", steps), flag("memory", memory)
    ranks = None if comm is None else comm.Get_size()
    require(ranks is None or workers in (None, ranks), "workers", workers, f"{ranks}, one on each rank")
    N = whole_number("workers", (ranks or 4) if workers is None else workers, high=network.n)
    team = Together(N) if comm is None else OnRanks(comm)
    training = Training(network, team, Options(stage, step, server, share, memory, seed))
    least = min(high - low for edges in training.edges for low, high in pairs(edges) if high > low)
    require(round(share * least) >= 1, "share", share, f"enough for one of the {least} of the smallest slice")
    for t in range(1, steps + 1):
        training.step(t)
    numbers = sum(team.all(training.sent)) / (team.workers * steps)
    held = {name: max(team.all(training.held[name])) for name in STORED}
    return ZeroRun(np.concatenate([training.layer(k).ravel() for k in range(len(training.shapes))]), held, numbers)
