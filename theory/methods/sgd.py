"""Parallel SGD: each of N workers draws a mini-batch, and the compressed messages are averaged."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..compressors.base import quantize
from ..compressors.full_precision import Identity
from ..compressors.sparsifiers.random_and_top_k import Share
from ..core import require, setting, traits
from ..core.arguments import LARGEST_BATCH, is_whole
from ..problems.base import dimension
from ..problems.matrix import CSR
from .adaptive.adam import Sharded
from .gradients import SAMPLING, SHARDS, Split, known_shards
from .memory.error_feedback import NoFeedback, has_memory, step_factors
from .schedule_values import Rate
from .schedules import THEORY, Function, Last, Polynomial, Uniform, as_step, averaging_weight, batch_size, step_size
from .server import choose_server, takes_the_step
from .topology import ReduceScatter, choose_topology
from .types import Run, Vector

AVERAGES = ("last", "uniform", "quadratic")
COMPRESS = ("full", "loss")
EXCHANGES = ("auto", "gather", "reduce")
AGGREGATIONS = ("mean", "majority")


@traits(sparse_rows=True)
@setting
class ParallelSGD(NamedTuple):
    """Mini-batch SGD on N workers with compressed messages and an optional memory.

    Parameters
    ----------
    compressor : compressor, optional
        Compressor of the vector that a worker sends.  By default full precision: all coordinates, or on sparse data the
        non-zeros with their positions.
    step : Constant, InverseTime, Cosine, Warmup, float, function or "theory"
        Step sizes; a number is a constant one, ``lambda t: ...`` is the step at t = 0, 1, 2, ..., and "theory" is that
        of the theorem that covers the method on the problem (:func:`theory.theory_step`). `run` and `compare` require
        it unless they are given ``step`` themselves.
    feedback : feedback rule
        The rule for the part that was not sent: `NoFeedback`, `ErrorFeedback`, `PartialErrorFeedback`,
        `ContractiveErrorFeedback`, `ImprovedContractiveErrorFeedback` or `LinearSketchFeedback`.
    batch : int or GrowingBatch
        Gradients that each worker averages in a step; constant or growing.
    average : {"last", "uniform", "quadratic"} or an averaging weight
        Which iterate is the result: the last; the mean of all; the mean with weights (shift + t)**2, where shift is
        the step size's own; or a setting of :mod:`theory.methods.schedules`, such as ``Suffix(start)``.
    sampling : {"iid", "shuffle"}
        Rows are drawn independently with replacement (as theorems assume), or every pass is a new shuffle.
    shards : {"shared", "contiguous", "by_label"} or Split
        The rows that a worker draws from; a worker's weight in the mean is its fraction n_w / n of the rows.
        :func:`theory.split` makes parts of different sizes and distributions.
    compress : {"full", "loss"}
        "full" compresses the gradient including the l2 term, as in the papers; "loss" compresses only the gradient of
        the loss, and every worker applies the l2 term locally.
    exchange : {"auto", "gather", "reduce"}
        With "gather" every worker receives the messages of all others, with "reduce" only their sum; "auto" reduces if
        messages can be added before they are decoded (full precision, rand-k with a shared seed, sketches, PowerSGD).
    momentum : float
        The factor of the velocity in each step, from 0 (none) to below 1: u = momentum u + mean Q, x = x - gamma u,
        after decompression. It is short for ``server=Momentum(momentum)``.
    nesterov : bool
        Look-ahead: x = x - gamma (mean Q + momentum u).
    aggregation : {"mean", "majority"}
        The weighted mean of the messages, or its sign in every coordinate (+1 for zero), which is a majority vote if
        the messages are signs. It is short for ``server=Majority()``.
    radius : float
        After every step, x is projected onto the ball of this radius around 0; infinite for no projection. It is short
        for ``server=Projected(radius)``.
    server : server rule, optional
        The rule that moves the model by the received messages, in place of the four short forms: `Mean`, `Momentum`,
        `Majority`, `Projected`, `Adam`, `LAMB`, `Sharded`, or your own.
    topology : topology, optional
        Who receives which messages, in place of the short form ``exchange``: `AllGather` or `AllReduce`.

    Raises
    ------
    ValueError
        If a value is outside its domain.

    Examples
    --------
    >>> from theory import Constant, ErrorFeedback, TopK
    >>> ParallelSGD(TopK(2), step=Constant(0.1), feedback=ErrorFeedback()).batch
    1
    """

    compressor: NamedTuple | None = None
    step: NamedTuple | None = None
    feedback: Any = NoFeedback()
    batch: int | NamedTuple = 1
    average: str | NamedTuple = "last"
    sampling: str = "iid"
    shards: str | Split = "shared"
    compress: str = "full"
    exchange: str = "auto"
    momentum: float = 0.0
    nesterov: bool = False
    aggregation: str = "mean"
    radius: float = math.inf
    server: Any = None
    topology: Any = None

    @property
    def local_steps(self) -> int:
        """1: the workers communicate after every step."""
        return 1

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once.

        With a memory e the step size is applied before compression: ``eta_sent`` is eta, ``eta_received`` 1.  Without
        one e = 0, and it is applied to the mean: ``eta_sent`` is 1, ``eta_received`` eta.
        """
        p = self.feedback.load(run)  # p = e
        run.add_gradient(p, at=run.x, scale=run.eta_sent)  # p = e + eta g
        message = self.topology.compress(run, self.compressor, p)  # Q(p)
        self.feedback.store(run, p, message)  # e = p - Q(p)
        received = self.topology.exchange(run, message)  # the messages of all workers, or their mean
        run.add_to_average(run.x)  # of the iterates
        self.server.update(run, received)  # the server moves x

    def result(self, run: Run) -> Vector:
        """The average of the iterates, or the last one."""
        return run.averaged()

    def step_factors(self, run: Run) -> tuple[Rate, Rate]:
        """The factors before and after compression."""
        return step_factors(self.feedback, run, takes_the_step(self.server))

    def settled(self, problem: Any) -> ParallelSGD:
        """The same method with defaults and "auto" resolved."""
        compressor, compress = choose_compressor(self.compressor, self.compress, problem)
        return self._replace(
            compressor=compressor,
            compress=compress,
            feedback=choose_feedback(self.feedback, compressor),
            server=self.server or choose_server(self.momentum, self.nesterov, self.aggregation, self.radius),
            topology=self.topology
            or choose_topology(self.exchange, compressor, int(dimension(problem)), isinstance(self.server, Sharded)),
        )

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_parts(self)
        for name, known in (("compress", COMPRESS), ("aggregation", AGGREGATIONS)):
            require(getattr(self, name) in known, name, getattr(self, name), " or ".join(map(repr, known)))
        require(0.0 <= self.momentum < 1.0, "momentum", self.momentum, "a number from 0 to below 1")
        require(self.momentum > 0.0 or not self.nesterov, "nesterov", self.nesterov, "False without momentum")
        memory = has_memory(self.feedback)
        require(
            self.aggregation == "mean" or not (memory or self.momentum),
            "aggregation",
            self.aggregation,
            "'mean' with momentum or a memory",
        )
        require(self.radius > 0.0, "radius", self.radius, "a number above 0")
        require(
            self.radius == math.inf or not memory,
            "radius",
            self.radius,
            "infinite with a memory, which ignores the projection",
        )
        short = (self.momentum, self.nesterov, self.aggregation, self.radius) == (0.0, False, "mean", math.inf)
        require(
            self.server is None or short,
            "server",
            self.server,
            "None with momentum, nesterov, aggregation or radius, which are short for a server",
        )


def check_parts(method: Any) -> None:
    """Check the common parts of `ParallelSGD` and `LocalSGD`."""
    step, allowed = as_step(method.step), 'a number, a step size such as Constant(0.1), or "theory"'
    text = isinstance(step, str)
    require(
        step is None or (step == THEORY if text else isinstance(step, Function) or step_size.implements(type(step))),
        "step",
        step,
        allowed,
        ValueError if text else TypeError,
    )
    require(
        _is_part(method.feedback, "load") or _is_part(method.feedback, "as_conef"),
        "feedback",
        method.feedback,
        "a feedback rule, such as ErrorFeedback()",
        TypeError,
    )
    require(
        method.compressor is None
        or isinstance(method.compressor, Share)
        or quantize.implements(type(method.compressor)),
        "compressor",
        method.compressor,
        "a compressor, such as TopK(10)",
        TypeError,
    )
    require(
        method.server is None or _is_part(method.server, "update"),
        "server",
        method.server,
        "a server rule, such as Momentum(0.9)",
        TypeError,
    )
    require(
        getattr(method.server, "with_memory", True) or not has_memory(method.feedback),
        "server",
        method.server,
        "Mean, Momentum or Adam with a memory: a vote or a projection would ignore it",
    )
    require(
        method.topology is None or method.exchange == "auto",
        "topology",
        method.topology,
        "None with exchange, which is short for a topology",
    )
    require(
        method.topology is None or _is_part(method.topology, "exchange"),
        "topology",
        method.topology,
        "a topology, such as AllGather()",
        TypeError,
    )
    require(
        not isinstance(method.topology, ReduceScatter) or isinstance(method.server, Sharded),
        "topology",
        method.topology,
        "AllReduce() unless the server is Sharded: a worker would know a slice of the mean only",
    )
    check_batch(method.batch)
    require(known_shards(method.shards), "shards", method.shards, f"{' or '.join(map(repr, SHARDS))} or a Split")
    for name, known in (("sampling", SAMPLING), ("exchange", EXCHANGES)):
        require(getattr(method, name) in known, name, getattr(method, name), " or ".join(map(repr, known)))
    averaging(method)


def _is_part(value: Any, name: str) -> bool:
    """Whether a value that is not a class has this function."""
    return hasattr(value, name) and not isinstance(value, type)


def check_batch(batch: Any) -> None:
    """Reject a value that is neither a positive integer nor a schedule of batch sizes."""
    number = is_whole(batch)
    known = number or (
        not isinstance(batch, bool) and batch_size.dispatch(type(batch)) is not batch_size.dispatch(object)
    )
    allowed = f"an integer, at least 1, or a schedule such as GrowingBatch(1.1); at most {LARGEST_BATCH}"
    require(known and not (number and not 1 <= batch <= LARGEST_BATCH), "batch", batch, allowed)


def choose_compressor(compressor: Any, compress: str, problem: Any) -> tuple[Any, str]:
    """The compressor, by default full precision: on sparse rows, messages with the non-zeros only.

    On sparse rows every worker applies the l2 term locally, since it touches every coordinate. Nothing is compressed,
    so the method is the same.
    """
    if compressor is not None:
        return compressor, compress
    sparse = isinstance(getattr(problem, "A", None), CSR)
    return Identity(sparse), "loss" if sparse else compress


def choose_feedback(feedback: Any, compressor: Any) -> Any:
    """The rule itself, or the equivalent rule that implements it."""
    return feedback.as_conef(compressor) if hasattr(feedback, "as_conef") else feedback


def averaging(method: Any) -> Any:
    """The averaging weight of a `ParallelSGD` or `LocalSGD`: a setting of :mod:`theory.methods.schedules`."""
    average = method.average
    if not isinstance(average, str):
        require(
            averaging_weight.implements(type(average)), "average", average, "a name or an averaging weight", TypeError
        )
        return average
    require(average in AVERAGES, "average", average, " or ".join(map(repr, AVERAGES)) + " or Suffix(start)")
    if average == "quadratic" and method.step != THEORY:
        shift: Any = getattr(method.step, "shift", None)
        require(
            shift is not None, "average", average, "with a step that has a shift, such as InverseTime(c, mu, shift)"
        )
        return Polynomial(shift, 2.0)
    return Last() if average == "last" else Uniform()  # quadratic, before its step is known: not Last
