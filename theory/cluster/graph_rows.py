"""Operations of methods on graphs: messages that only neighbours hear, and mixing with what they sent."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..compressors.identity import Identity
from ..core import require
from ..methods.graphs import Mixing, mixing
from ..methods.messages import CountLinks
from ..methods.types import Scale, Vector
from .exchange import Exchange
from .message_handles import Message, Messages
from .rows import same_setting


class GraphRows(Exchange):
    """Operations on a graph.

    Copies of what the workers know, ``run.copies(name)``, have a row for each worker.  On an MPI rank only the rows of
    its own workers and of those that they hear are used.

    Attributes
    ----------
    links : Mixing or None
        The mixing matrix, once the round function has asked for it.
    start : ndarray, shape (workers, d) or (1, d)
        The models at the start.
    """

    start: np.ndarray
    _chooses: bool

    def __init__(self, *rows: Any) -> None:
        super().__init__(*rows)
        self.links: Mixing | None = None
        self._graph: Any = None

    def mixing(self, graph: Any) -> Mixing:
        """The mixing matrix of a graph; from here on workers hear only their neighbours."""
        if self.links is None:
            require(self.own_models, "models", "one", "'workers' on a graph: each has a model of its own")
            self._graph, vars(self)["links"] = graph, mixing(graph, self.workers)
            self._listen()
        require(same_setting(graph, self._graph), "graph", graph, f"one for all exchanges of a round: {self._graph}")
        return cast(Mixing, self.links)

    def _listen(self) -> None:
        """Restrict what is heard here to the workers of this process and their neighbours."""
        if self.links is not None:
            require(not self._chooses, "graph", self._graph, "without choosing workers: the mean would move")
            known = np.flatnonzero(self.links.hears[self.first_here : self.first_here + self.workers_here].any(axis=0))
            self.heard.become(known)

    def hear(self, message: Message, W: Mixing) -> Messages:
        """Send every worker the messages of its neighbours, and its own."""
        phase = self._sent(message)
        require(W is self.links, "W", type(W).__name__, "what run.mixing(graph) returns")
        require(phase.up and phase.high == phase.low, "phase", phase.name, "one of the workers', without reduce")
        self.transport.hear(self, phase, W)
        hearers = self._once("hearers", lambda: W.hears.sum(axis=0) - 1)
        self.call(CountLinks(phase.lengths, hearers, self.sent, phase.frame, self.first_here))
        return self._received(phase, phase.symbols, self.weight, self.heard)

    def average(self, x: Vector) -> None:
        """Set each worker's x to the mean over all workers, which send theirs in full precision.

        For methods with ``models = "workers"``: ``run.average(run.x)`` in every round, or where ``run.every(n)``, with
        ``run.skip()`` in the rounds between.
        """
        require(self.own_models, "models", "one", "'workers': the one model is the same for all")
        require(self.links is None, "graph", self._graph, "none: on a graph nobody hears all")
        received = self.copies("of all, to average")
        self.set(received, self.gather(self.compress(Identity(), x, phase="average")))
        mean = self._once("mean of all", lambda: np.full((self.workers, self.workers), 1.0 / self.workers))
        self.set(x, 0.0)
        self.add(x, received, weights=mean)

    def _add_weighted(self, y: Vector, x: Vector, scale: Scale, weights: np.ndarray) -> None:
        super()._add_weighted(y, x, scale, weights)
        if self.links is not None:  # on a rank, the copies of others are not up to date
            self._once(("weights", id(weights)), lambda: self._check_heard(weights))

    def _check_heard(self, weights: np.ndarray) -> np.ndarray:
        heard = self.links is not None and not weights[~self.links.hears].any()
        require(
            heard, "weights", "not 0 for a pair that is no edge", "on a graph those of neighbours, W.minus_identity"
        )
        return weights
