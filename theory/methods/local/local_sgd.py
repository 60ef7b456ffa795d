"""Local SGD: every worker takes H local steps, and then the workers average their model differences.

One round, in the notation of the papers (``Q`` compresses, ``e`` is a worker's error memory)::

    for every worker w:   y = x
                          H times: y = y - gamma_t g,  g = mean of the batch's gradients at y
                          p = (x - y) + e
                          send Q(p)
                          e = p - Q(p)
    x = x - mean over w of Q(p)

With H = 1 and without compression it is parallel SGD.  The result is the last x, or a weighted mean over all steps of
all workers' y, which they sum locally and combine on request.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compressors.base import opening
from ...core import require, setting, traits
from ...problems.base import dimension
from ..adaptive.adam import Sharded
from ..gradients import Split
from ..memory.error_feedback import NoFeedback
from ..schedule_values import Rate
from ..schedules import Last
from ..server import Mean
from ..sgd import averaging, check_parts, choose_compressor, choose_feedback
from ..topology import choose_topology
from ..types import Run, Vector


@traits(local_models=True)
@setting
class LocalSGD(NamedTuple):
    """Local SGD with compressed model differences and an optional memory.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of the model difference that a worker sends, in a single message.  By default full precision.
    step : Constant or InverseTime
        Step sizes, by the number t of the local step.
    local_steps : int
        H, the number of steps between exchanges.
    feedback : feedback rule
        The rule for the part of the difference that was not sent.
    batch : int or GrowingBatch
        Gradients that each worker averages in a local step.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result: the last; or a weighted mean over the steps and workers, as in `ParallelSGD`.
    sampling : {"iid", "shuffle"}
    shards : {"shared", "contiguous", "by_label"}
        How and from which rows a worker draws, as in `ParallelSGD`.
    exchange : {"auto", "gather", "reduce"}
        How messages are exchanged, as in `ParallelSGD`.
    server : server rule, optional
        The rule that moves the model by the mean of the differences: `Mean`, `OuterStep`, `Momentum`, `Adam`, or your
        own.
    topology : topology, optional
        Who receives which messages, in place of the short form ``exchange``: `AllGather` or `AllReduce`.

    Raises
    ------
    ValueError
        If a value is outside its domain.

    Notes
    -----
    Stich, "Local SGD converges fast and communicates little" (2019), Algorithm 1, with the step 4/(mu (a + t)) and the
    weights (a + t)**2; see :func:`theory.bounds.local.local_sgd`.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = th.LocalSGD(th.Identity(), step=th.Constant(0.5), local_steps=3)
    >>> result = th.run(method, problem, workers=2, steps=6, x0=np.ones(4))
    >>> float(result.x[0]), int(result.history["rounds"][-1])
    (0.015625, 2)
    """

    compressor: NamedTuple | None = None
    step: NamedTuple | None = None
    local_steps: int = 0
    feedback: Any = NoFeedback()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"
    exchange: str = "auto"
    server: Any = None
    topology: Any = None

    @property
    def sparse_rows(self) -> bool:
        """Whether the result is the last model: averages of all workers' iterates touch every coordinate."""
        return isinstance(averaging(self), Last)

    @property
    def compress(self) -> str:
        """The part that is compressed, as in `ParallelSGD`: "full"."""
        return "full"

    def round(self, run: Run) -> None:
        """Local steps and an exchange; each line is for all workers at once."""
        y, g = run.local()  # of each worker: its model, and the gradient there
        run.set(y, run.x)  # y = x
        for _ in run.local_steps():
            run.add_local_to_average(y)  # of the workers' iterates
            run.set_gradient(g, at=y)  # g = gradient at y
            run.add(y, g, scale=-run.eta)  # y = y - eta g
        p = self.feedback.load(run)  # p = e
        run.add(p, run.x, minus=y)  # p = e + x - y
        message = self.topology.compress(run, self.compressor, p)  # Q(p)
        self.feedback.store(run, p, message)  # e = p - Q(p)
        received = self.topology.exchange(run, message)  # the messages of all workers, or their mean
        self.server.update(run, received)  # the server moves x

    def result(self, run: Run) -> Vector:
        """The average of all workers' iterates, or the last model."""
        return run.averaged_local()

    def step_factors(self, run: Run) -> tuple[Rate, Rate]:
        """The factors before and after compression: model differences already include the step sizes."""
        one = run.rates.constant(1.0)
        return one, one

    def settled(self, problem: Any) -> LocalSGD:
        """The same method with defaults and "auto" resolved."""
        compressor, _ = choose_compressor(self.compressor, "full", problem)
        return self._replace(
            compressor=compressor,
            feedback=choose_feedback(self.feedback, compressor),
            server=self.server or Mean(),
            topology=self.topology
            or choose_topology(self.exchange, compressor, int(dimension(problem)), isinstance(self.server, Sharded)),
        )

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_parts(self)
        require(
            self.local_steps >= 1,
            "local_steps",
            self.local_steps,
            "an integer, at least 1: how many steps lie between two exchanges",
        )


def check_single_message(method: LocalSGD, d: int) -> None:
    """Reject compressors that combine numbers across workers before they quantize."""
    require(
        int(opening(method.compressor, d)) == 0,
        "compressor",
        method.compressor,
        "with LocalSGD, one whose workers combine nothing before they send",
    )
