"""The argument of a round function: the rows of all replicas and workers, and the operations on them.

A method has a round function, ``method.round(run)``: one round, for all workers at once.  Its lines call the operations
below.  Either each is executed at once, round after round, in plain Python with compiled pieces; or the function is
called once, its calls are listed with their arguments, and the list is replayed by a compiled loop.  Both give the same
bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..compressors.base import shares_stream
from ..core import kernel, require
from ..core.arguments import whole_number
from ..core.bound_calls import OTHER, Owners
from ..core.digests import digest
from ..core.random import derive, generator, uniform
from ..core.settings import is_whole
from ..core.stored_arrays import State
from ..core.vectors import read_only, writable
from ..methods.gradients import CountGradients, Draw, FullGradient, Gradient, drawn, new_order
from ..methods.messages import ABSENT, COUNTERS, SKIPPED, CountSlices
from ..methods.rows import Average, Count
from ..methods.schedule_values import Rates
from ..methods.types import Scale, Setup, Vector
from ..problems.base import rows, without_mechanism
from .calls import in_round, is_always, real
from .exchange import GraphRows
from .rows import Phase, Shard, check_apart
from .state import fill_array

PURPOSES = ("sampling", "rounding", "noise", "memory")  # purposes of the workers' random numbers
ROUNDING, MEMORY, CLIENTS = 1, 3, 4  # in setup.purposes, which has one purpose more than the workers
COIN = 2**32  # apart from the rounds, for which clients are chosen


@kernel
def fill_stream_keys(purposes: np.ndarray, replica: int, first: int, out: np.ndarray) -> None:
    """Compute the keys of the workers from ``first`` on, for every purpose and the replicas from ``replica`` on."""
    for p in range(out.shape[0]):
        for r in range(out.shape[1]):
            stream = derive(purposes[p], replica + r)
            for w in range(out.shape[2]):
                out[p, r, w] = derive(stream, first + w)


class Run(GraphRows):
    """The rows of a run and the operations on them.

    Attributes
    ----------
    problem : problem
    workers, workers_here, first_here : int
        Number of workers, number in this process, and the index of the first of these.
    x : ndarray, shape (replicas, models, d)
        The model; or one per worker if the method has ``models = "workers"``.
    eta, eta_sent, eta_received : Rate
        The step size, and its two factors: for sent vectors (1 without a memory) and for received ones.
    l2, local_l2 : float
        The weight of the regularizer in the vector that is sent, and the weight that every worker applies locally.
    """

    sparse = False  # whether the rows are sparse

    def __init__(self, setup: Setup, transport: Any, replicas: int = 1, replica: int = 0) -> None:
        here = setup.workers // transport.ranks
        own_models = getattr(setup.method, "models", "one") == "workers"
        super().__init__(setup, replicas, here, here * transport.rank, own_models)
        self.setup, self.transport, self.problem = setup, transport, setup.problem
        self.l2, self.local_l2, self.weight = setup.l2, setup.local_l2, setup.shards.weight.copy()
        self.start = setup.start
        self.watched, self.errors = setup.watched, np.full((setup.records.size, here, 2), np.nan)
        self.mean_weights = self.weight[None]
        self._chooses = False  # whether some workers may be inactive
        self._drew = False  # whether a batch was drawn
        self._counts_each = False  # whether there is an average of the iterates for each worker
        self._keys = np.empty((len(PURPOSES), replicas, self.workers_here), np.uint64)
        self.sampling_keys, self._rounding_keys, self.noise_keys, _ = self._keys
        self._named: dict[tuple[int, str], np.ndarray] = {}  # keys for a second use of a purpose, by name
        self.sent = self._array("sent", (replicas, COUNTERS), np.int64, of="run")
        self.rates = Rates(setup.method.local_steps)
        self.eta = self.rates.steps(setup.method.step)
        self.eta_sent, self.eta_received = setup.method.step_factors(self)
        self.average_weight = self.rates.weights(setup.average)
        self._batch, self._drawn = self.rates.batches(setup.batches)
        self._own = setup.own[self.first_here : self.first_here + here]  # rows of a round, where clients draw their own
        order = new_order(setup.shards, here)
        self.order = read_only(self._array("order", (replicas, *order.shape), order.dtype))
        self._rows = np.zeros((replicas, self.workers_here, int(setup.batches.max())), np.int64)
        self.x = self._make_model()
        self.restart(replica)
        self._fix()

    def _make_model(self) -> Vector:
        x, self.mean = self.vector(".x"), self.vector(".mean")  # names that no round function will choose
        self.total = self._array("total", x.shape[:2], np.float64, of="models")
        return x

    def _start_model(self) -> None:
        mine = slice(self.first_here, self.first_here + self.workers_here) if self.start.shape[0] > 1 else slice(0, 1)
        self.x[:] = self.start[mine]

    def scratch(self) -> Vector:
        """A vector for each local worker, for one round; the same at every call."""
        return self._array(".p", (self.replicas, self.workers_here, self.d), self.dtype, of="round")

    def memory(self) -> Vector:
        """The workers' error memories, initially 0."""
        return self.rows(".error")

    def local(self) -> tuple[Vector, Vector]:
        """The workers' local models, and their gradients there."""
        return self.rows(".y"), self.rows(".g")

    def read(self, memory: Vector, factor: float = 1.0) -> np.ndarray:
        """The workers' memories times a factor, as plain arrays."""
        return memory * factor

    def last(self) -> Vector:
        """The model, as a plain array; the mean if there are several."""
        return self._mean_of(self.x, 1.0) if self.own_models else self.x

    def restart(self, replica: int) -> None:
        """Restart, with the replicas from ``replica`` on."""
        self._resumed, self._waiting = None, {}
        for owned in self._arrays.values():
            owned.array[:] = owned.start
        self._start_model()
        everybody = np.arange(self.workers)
        self._act(everybody, self.setup.shards.weight)
        self._listen()
        fill_stream_keys(self.setup.purposes, replica, self.first_here, self._keys)
        for purpose, name in self._named:
            self._fill_named(purpose, name)
        for phase in self._phases.values():
            self._fill_keys(phase, replica)
        vars(self)["replica"] = replica

    def begin_with(self, state: State, waiting: dict) -> None:
        """Continue from a state; ``waiting`` has pieces for arrays that are made later."""
        self._resumed, self._waiting = state, waiting
        for name in self._arrays:
            self._resume(name)

    def _resume(self, name: str) -> None:
        fill_array(self, self._resumed, name, self._arrays[name])

    def acting(self, chosen: np.ndarray, weights: np.ndarray) -> None:
        """Activate the workers that were active last."""
        self._act(chosen, weights[chosen])
        self._listen()

    def _fill_keys(self, phase: Phase, replica: int) -> None:
        """Fill in the keys of a phase: each worker's own, or worker 0's for all; the model is an extra worker."""
        if not phase.up:
            purpose = self.setup.purposes[ROUNDING]
            phase.keys[:] = [[derive(derive(purpose, replica + r), self.workers)] for r in range(self.replicas)]
        elif shares_stream(phase.compressor):
            purpose = self.setup.purposes[ROUNDING]
            phase.keys[:] = [[derive(derive(purpose, replica + r), 0)] for r in range(self.replicas)]
        else:
            phase.keys[:] = self._keys_of(ROUNDING, phase.name, "up")

    def _memory_keys(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The workers' keys for vectors that are stored under this name, and an array for those of a round."""
        return self._keys_of(MEMORY, name, "error"), np.empty_like(self._keys[MEMORY])

    def _keys_of(self, purpose: int, name: str, usual: str) -> np.ndarray:
        """The workers' keys for a purpose: a second use in a round, under another name, draws other numbers."""
        if name == usual:
            return self._keys[purpose]
        if (purpose, name) not in self._named:
            self._named[purpose, name] = np.empty_like(self._keys[purpose])
            self._fill_named(purpose, name)
        return self._named[purpose, name]

    def _fill_named(self, purpose: int, name: str) -> None:
        number = int(digest(name)[:15], 16)
        self._named[purpose, name][:] = [[derive(key, number) for key in row] for row in self._keys[purpose]]

    # --- coins -----------------------------------------------------------------------------------------------------

    def coin(self, p: float) -> bool:
        """A random choice, true with probability p, that all workers share: one per seed, replica and round."""
        chance = real("p", p, "a number from 0 to 1", lambda q: 0.0 <= q <= 1.0)
        require(
            self.replicas == 1,
            "replicas",
            self.replicas,
            "1 where a coin is tossed; the method says one_by_one = True",
        )
        stream = derive(derive(self.setup.purposes[CLIENTS], self.replica), COIN)
        return bool(uniform(stream, self.rates.now()) < chance)

    @property
    def round(self) -> int:
        """The number of this round, from 0 on."""
        return int(self.rates.now())

    @property
    def first(self) -> bool:
        """Whether this is the first round of the run."""
        return self.rates.now() == 0

    def every(self, rounds: int) -> bool:
        """Whether this round is the first of each group of this many rounds."""
        return self.rates.now() % whole_number("rounds", rounds) == 0

    def skip(self) -> None:
        """Mark this round as one without an exchange, which the history does not count."""
        self.check_layouts()
        self.python(self._skip, "skip", OTHER)

    def _skip(self, t: int) -> None:
        self.sent[:, SKIPPED] += 1

    # --- active workers --------------------------------------------------------------------------------------------

    def choose(self, clients: int) -> None:
        """From here on, activate this many workers per round, drawn without replacement.

        The others neither send nor receive messages, and means are over the active workers.
        """
        known = is_whole(clients) and 1 <= clients <= self.workers
        require(known, "clients", clients, f"an integer from 1 to {self.workers}, the number of workers")
        self._some_act()
        self.python(lambda t: self._choose(clients, t), "choose", OTHER)

    def _choose(self, clients: int, t: int) -> None:
        purpose = derive(self.setup.purposes[CLIENTS], self.replica)
        chosen = np.sort(generator(derive(purpose, t)).choice(self.workers, clients, replace=False))
        share = self.setup.shards.weight[chosen]
        self._act(chosen, share / share.sum())
        self._count_absent(t)

    def act(self, chosen: np.ndarray, weights: np.ndarray) -> None:
        """Activate the workers ``chosen[t]`` in round t, in increasing order, with their ``weights``."""
        fitting = isinstance(weights, np.ndarray) and weights.shape == (self.workers,) and weights.dtype.kind in "iuf"
        require(fitting, "weights", getattr(weights, "shape", weights), f"an array of shape ({self.workers},)")
        require(isinstance(chosen, (list, tuple, np.ndarray)), "chosen", chosen, "a list of the workers of each round")
        self._some_act()
        self.python(lambda t: self._act_as_given(chosen, weights, t), "act", OTHER)

    def _act_as_given(self, chosen: Any, weights: np.ndarray, t: int) -> None:
        mine = self._known(chosen, t)
        self._act(mine, weights[mine])
        self._count_absent(t)

    def _known(self, chosen: Any, t: int) -> np.ndarray:
        require(t < len(chosen), "chosen", f"{len(chosen)} rounds", f"the workers of each round, here of round {t}")
        mine = np.asarray(chosen[t])
        known = mine.ndim == 1 and mine.dtype.kind in "iu" and bool((mine[1:] > mine[:-1]).all())
        require(
            known and not (mine.size and (mine[0] < 0 or mine[-1] >= self.workers)),
            "chosen",
            mine,
            f"numbers of workers from 0 to {self.workers - 1}, increasing",
        )
        return mine

    def _act(self, chosen: np.ndarray, weights: np.ndarray) -> None:
        here = chosen[(chosen >= self.first_here) & (chosen < self.first_here + self.workers_here)] - self.first_here
        for owners, index in ((self.heard, chosen), (self.active, here)):
            owners.become(index)
        self.weight[:] = 0.0
        self.weight[chosen] = weights

    def _count_absent(self, t: int) -> None:
        """Count the gradients that inactive workers do not evaluate in this round."""
        steps = self.rates.every
        each = drawn(self.setup.batches, (t + 1) * steps) - drawn(self.setup.batches, t * steps)
        acting, own = self.heard.now(), self.setup.own
        self.sent[:, ABSENT] += self.workers * each - (int(own[acting].sum()) if own.size else acting.size * each)

    def _some_act(self) -> None:
        self.check_layouts()
        require(
            self.replicas == 1,
            "replicas",
            self.replicas,
            "1 where workers are chosen; the method says one_by_one = True",
        )
        require(self.links is None, "graph", self._graph, "without choosing workers: the mean would move")
        self._chooses = True
        self._check_average()
        for phase in self._phases.values():
            self._check_all_send(phase)

    def _check_all_send(self, phase: Phase) -> None:
        require(
            not (self._chooses and phase.high > phase.low),
            "topology",
            "AllReduce()",
            "AllGather() where workers are chosen: a sum has a part of each",
        )
        require(
            not (self._chooses and phase.numbers.shape[2]),
            "compressor",
            phase.compressor,
            "where workers are chosen, one whose workers agree on nothing before they send",
        )

    def _check_average(self) -> None:
        require(
            not (self._chooses and self._counts_each),
            "average",
            self.setup.average,
            "'last' where workers are chosen: each would average other steps",
        )

    def _all(self) -> tuple[Owners, Owners]:
        return Owners.first(self.workers_here), Owners.first(self.workers)

    # --- gradients -------------------------------------------------------------------------------------------------

    def set_gradient(self, g: Vector, *, at: Vector, scale: Scale = 1.0) -> None:
        """Set g = scale (each worker's mini-batch gradient at x), with the l2 term unless the server adds it."""
        self.set(g, at, self._scale(scale) * self.l2)
        self.add_loss_gradient(g, at=at, scale=scale)

    def add_gradient(self, p: Vector, *, at: Vector, scale: Scale = 1.0, same_batch: bool = False) -> None:
        """Add: p = p + scale (each worker's mini-batch gradient at x), with the l2 term unless the server adds it.

        ``same_batch``: use the previous batch, not a new one.
        """
        self.add(p, at, self._scale(scale) * self.l2)
        self.add_loss_gradient(p, at=at, scale=scale, same_batch=same_batch)

    def set_full_gradient(self, g: Vector, *, at: Vector, no_batch: bool = False) -> None:
        """Set g, for each worker, such that the mean over the workers is the gradient of f at x, with the l2 term.

        It is the mean gradient over all rows of the worker's shard.  If all workers share the rows, each takes a part
        of them, with the weight N.  The problem must be a mean of n functions; the history counts the gradients.
        ``no_batch``: the round evaluates no batch.
        """
        check_apart(at, g, "g", "at")
        if self.setup.shards.shuffle:
            self._draw()  # the shuffled pass continues
        shards, per = self._once("full", self._parts)
        problem = self._once("undisturbed", lambda: without_mechanism(self.problem))
        self.set(g, at, self.l2)
        self.call(FullGradient(problem, at, g, self._column(1.0), shards, per, self.first_here))
        self._count_gradients(-self.workers if no_batch else 0, int((shards.stop - shards.start).sum()))

    def _parts(self) -> tuple[Any, np.ndarray]:
        """The rows that each worker evaluates, and the divisor of their sum."""
        n, shards = int(rows(self.problem)), self.setup.shards
        require(n > 0, "problem", type(self.problem).__name__, "a mean of n functions")
        if self.setup.method.shards != "shared":
            return shards, (shards.stop - shards.start).astype(float)
        edges = np.arange(self.workers + 1) * n // self.workers
        parts = shards._replace(start=edges[:-1].astype(np.int64), stop=edges[1:].astype(np.int64))
        return parts, np.full(self.workers, n / self.workers)

    def _count_gradients(self, times: int, more: int) -> None:
        self.call(CountGradients(self.sent, self._batch.column(), times, more), self.single)

    def add_loss_gradient(self, p: Vector, *, at: Vector, scale: Scale = 1.0, same_batch: bool = False) -> None:
        """Add: p = p + scale (the mean of the losses' gradients over each worker's batch, at x), without the l2 term.

        ``same_batch``: use the previous batch, not a new one.
        """
        check_apart(at, p, "p", "at")
        size, before, batch = self._batch.column(), self._drawn.column(), self._rows
        require(self._drew or not same_batch, "same_batch", same_batch, "False for the first batch of a round")
        if same_batch:
            self._count_gradients(self.workers, 0)
        else:
            self._draw()
        own = (self._own, self._drawn_of_round())
        self.call(Gradient(self.problem, at, p, self._column(scale), batch, self.noise_keys, size, before, *own))

    def _draw(self) -> None:
        self._drew = True
        shards, all_here = self.setup.shards, self._once("all", self._all)[0]
        owners = all_here if shards.shuffle else self.active  # an inactive worker's shuffled pass continues
        size, before, order = self._batch.column(), self._drawn.column(), writable(self.order)
        own = (self._own, self._drawn_of_round())
        self.call(Draw(shards, order, self.sampling_keys, self.first_here, size, before, *own, self._rows), owners)

    def _drawn_of_round(self) -> int:
        """Rows that a client drew before this local step, if it has so many."""
        return self.rates.place[1] * int(self.setup.batches[0]) if self._own.size else 0

    def _act_with_rows(self, before: int, t: int) -> None:
        """Activate those of the chosen workers that have more than so many rows of their own in a round."""
        chosen = self.heard.now() - self.first_here
        here = chosen[(chosen >= 0) & (chosen < self.workers_here)]
        self.active.become(here[self._own[here] > before])

    @contextlib.contextmanager
    def _at(self, shift: int) -> Iterator[None]:
        self.rates.place = (self.rates.every, shift)
        try:
            yield
        finally:
            self.rates.place = (self.rates.every, 0)

    def local_steps(self) -> Iterator[int]:
        """Iterate over the local steps of a round: operations called in the loop belong to that step."""
        for h in range(self.rates.every):
            with self._at(h):
                if self._own.size:
                    self.python(partial(self._act_with_rows, self._drawn_of_round()), "act", OTHER)
                yield h
        if self._own.size:
            self.python(partial(self._act_with_rows, 0), "act", OTHER)

    # --- slices of the model ---------------------------------------------------------------------------------------

    def shard(self) -> Shard:
        """The operations on the slices of the model that the workers here store."""
        return self._once("shard", lambda: Shard(self))

    def gather_slices(self) -> None:
        """Gather the slices of the model, each from the worker that stores it."""
        self.call(CountSlices(self.sent, 8 * self.dtype.itemsize * self.d), self.single)
        self.transport.gather_slices(self)

    # --- the result ------------------------------------------------------------------------------------------------

    def add_to_average(self, X: Vector) -> None:
        """Add X to the average of the iterates."""
        if not is_always(self.average_weight, 0.0):
            fitting = X.shape == self.mean.shape and id(X) not in self._copies
            require(fitting, "X", f"shape {X.shape}", f"shape {self.mean.shape}, as run.x has it")
            self._counts_each |= self.own_models
            self._check_average()
            self.call(Average(X, self.mean, self.total, self.average_weight.column()), self._of(X))

    def add_local_to_average(self, Y: Vector) -> None:
        """Add every worker's Y to the average of the iterates; see `averaged_local`."""
        if not is_always(self.average_weight, 0.0):
            self._counts_each = True
            self._check_average()
            sums, totals = self._sums()
            self.call(Count(Y, sums, totals, self.average_weight.column()))

    def averaged(self) -> Vector:
        """The average of the iterates, or the model if there is none; the mean if there are several."""
        averaged = self.mean if self.total[0, 0] > 0.0 else self.x
        return self._mean_of(averaged, 1.0) if self.own_models else averaged

    def averaged_local(self) -> Vector:
        """The average of all workers' iterates, or the model if there is none."""
        if is_always(self.average_weight, 0.0):
            return self.x
        sums, totals = self._sums()
        if totals[0, 0] == 0.0:
            return self.x
        return self._mean_of(sums, totals[0, 0])

    def _mean_of(self, rows: np.ndarray, total: float) -> np.ndarray:
        """The mean of all workers' rows, divided by ``total``."""
        shape = (self.replicas, 1, self.d)
        sums, out = self._once(
            ("mean of", id(rows)), lambda: (np.empty(shape, rows.dtype), np.empty(shape, self.dtype))
        )
        self.transport.combine(self, rows, sums, 0, self.d, False)
        out[:] = sums / total
        return out

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The weighted sum of the iterates of each worker here, and the sum of the weights."""
        shape = (self.replicas, self.workers_here, self.d)
        return self._array("sums", shape, np.float64), self._array("sums, weights", shape[:2], np.float64)


@contextlib.contextmanager
def after_rounds(run: Run, t: int) -> Iterator[None]:
    """Context in which operations are executed at once, after t rounds, for all workers."""
    run.check_layouts()
    acting, weight = {"active": run.active, "heard": run.heard}, run.weight.copy()
    vars(run).update(zip(acting, run._once("all", run._all), strict=True))
    run.weight[:] = run.setup.shards.weight
    try:
        with in_round(run, t):
            yield
    finally:
        vars(run).update(acting)
        run.weight[:] = weight


def consensus_of(run: Run) -> np.ndarray:
    """For each replica, the sum over the models of ||x_w - mean||^2."""
    mean = run._mean_of(run.x, 1.0)
    squares = np.empty((run.replicas, run.workers_here))
    for r, w in np.ndindex(squares.shape):
        squares[r, w] = np.square((run.x[r, w] - mean[r, 0]).astype(np.float64)).sum()
    return run.transport.every(squares).sum(axis=1)
