"""``run`` executes one method on one problem, in the simulator or on MPI ranks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import require
from ..core.arguments import flag
from ..core.bound_calls import CODING, EXCHANGE, GRADIENT
from ..core.result import Result
from ..core.settings import digest
from ..methods.messages import (
    ABSENT,
    BITS,
    BYTES,
    DOWN_BITS,
    DOWN_BYTES,
    HEARD_BITS,
    HEARD_BYTES,
    LINK_BITS,
    LINK_BYTES,
    REDUCED,
    SCATTERED,
)
from ..methods.sampling import drawn
from ..methods.server import server_state
from ..methods.types import Run, Vector
from ..problems.base import value_and_gradient
from . import mpi
from .context import after_rounds, consensus_of
from .driver import Driver, make_run
from .machines import in_turn
from .setup import Setup, prepare
from .simulator import Memory, replicate

DONE, WORSE, DIVERGED, STOPPED = 0, 1, 2, 99  # status codes; 99 is SciPy's code for a stop by the callback
HOPELESS = 1e9  # a run has diverged if f exceeds this many times 1 + |f(x_0)|

HISTORY = np.dtype(
    [
        ("step", np.int64),
        ("samples", np.int64),
        ("rounds", np.int64),
        (("bits_up", "payload_bits_up"), np.float64),
        (("bits_down", "payload_bits_down"), np.float64),
        ("message_bytes_up", np.float64),
        ("message_bytes_down", np.float64),
        ("seconds", np.float64),
        ("seconds_gradient", np.float64),
        ("seconds_coding", np.float64),
        ("seconds_exchange", np.float64),
        ("f", np.float64),
        ("gradient_norm", np.float64),
    ]
)
COMPRESSION_ERROR = np.dtype([("vector", np.float64), ("error", np.float64)])


def run(
    method: Any,
    problem: Any,
    *,
    workers: int,
    steps: int | None = None,
    seed: int = 0,
    samples: int | None = None,
    x0: ArrayLike | None = None,
    replicas: int = 1,
    record_every: int | None = None,
    callback: Callable[..., object] | None = None,
    dtype: DTypeLike = np.float64,
    wire_dtype: DTypeLike = np.float32,
    comm: Any = None,
    compression_error: bool = False,
    fast: bool = True,
) -> Result:
    """Run a method on a problem and record its costs.

    Parameters
    ----------
    method : ParallelSGD, LocalSGD or a method of your own
        The method; see :func:`theory.method`.
    problem : problem
        From :func:`theory.logistic`, :func:`theory.ridge`, :func:`theory.softmax`, :func:`theory.quadratic`, ...
    workers : int
        Number N of workers.  With ``comm``, the number of ranks divides it.
    steps : int, optional
        Number of steps; for ``LocalSGD`` local steps, a multiple of those in a round.
    seed : int
        The same seed gives the same bits, in the simulator and on any number of ranks.
    samples : int, optional
        Instead of ``steps``: the budget T of each worker.  The run ends before a round that would take a worker over
        T gradients.  The history's ``samples`` is the sum over the workers: at most N T.
    x0 : array_like, shape (d,), optional
        Start; if omitted, :func:`theory.initial_point`: zero, or the random weights of a network.  For methods on
        graphs, whose workers have models of their own, also of shape (workers, d): one for each.
    replicas : int
        Independent repetitions, in the simulator.  Then ``x`` and ``last`` have shape (replicas, d), ``funs`` has each
        replica's f, ``fun`` and the history's f are their mean.
    record_every : int, optional
        Steps between two rows of the history, rounded up to whole rounds; by default about 50 rows.
    callback : callable, optional
        Called as ``callback(intermediate_result)`` after every row (on rank 0); may raise ``StopIteration``.
    dtype : float64 or float32
        Type of x, the memories and the data.
    wire_dtype : float32 or float64
        Type of floats in messages.
    comm : mpi4py communicator, optional
        Runs on its ranks.  Every rank calls with the same arguments and gets the same result; the history's seconds
        are rank 0's.
    compression_error : bool
        Whether to measure what the workers' messages lose, in the last round before every row of the history.
    fast : bool
        Whether the round function is called once and its operations replayed in compiled code, or replaced by a
        compiled loop; if False, the round function that `show` prints runs in every round, in Python.  The bits are the
        same.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (the average that the method chooses), ``fun``, ``last`` (the last iterate), ``history``, ``memory`` (the
        error memories, shape (workers, d); on MPI those of this rank; decoded if stored compressed), ``memory_bytes``
        (bytes that each worker stores between steps), ``server`` (the vectors that the server rule keeps beside x, by
        name; not with replicas or sparse rows; of a `Sharded` rule the slices here), ``server_bytes`` (their bytes, for
        each worker), ``nit``, ``success``, ``status`` and ``message``.
        A method on a graph adds ``models`` (the last ones, shape (workers, d); on MPI those of this rank) and
        ``consensus``: for each row of the history the sum of their squared distances from their mean; with replicas
        of shape (rows, replicas).  ``x`` is then the mean over the workers, and a worker's ``bits_down`` are those of
        its neighbours' messages.
        With ``compression_error``, ``compression_error``: for each row of the history the means over the workers of
        ``vector``, ||p||^2 of what a worker compressed in the phase "up", and ``error``, ||p - Q(p)||^2; NaN where
        nothing was.
        ``success`` is false if the run diverged, which stops it, or ended above f(x_0); ``message`` has the reason.

    Raises
    ------
    ValueError
        For an argument outside its domain; the message names it.

    Notes
    -----
    The history has a row for each evaluation of f, the first before the first step.  Its columns are ``step``;
    ``samples``, of all workers together; ``rounds`` of communication; ``payload_bits_up`` and ``payload_bits_down``
    (``bits_up`` and ``bits_down`` for short), what a worker sent and received so far, without frames;
    ``message_bytes_up`` and ``message_bytes_down``, with them; ``seconds``, and of these ``seconds_gradient``,
    ``seconds_coding`` and ``seconds_exchange``; ``f`` and ``gradient_norm`` at ``x``.  ``history["f"]`` is an array,
    and ``history.to_pandas()`` a ``DataFrame``.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = th.ParallelSGD(th.Identity(), step=th.Constant(0.5))
    >>> th.run(method, problem, workers=2, steps=3, x0=np.ones(4)).x
    array([0.125, 0.125, 0.125, 0.125])
    """
    flag("fast", fast)
    require(callback is None or callable(callback), "callback", callback, "a function", TypeError)
    setup = prepare(
        method,
        problem,
        workers=workers,
        steps=steps,
        seed=seed,
        samples=samples,
        x0=x0,
        replicas=replicas,
        record_every=record_every,
        dtype=dtype,
        wire_dtype=wire_dtype,
        comm=comm,
        compression_error=compression_error,
    )
    if replicas > 1:
        require(not compression_error, "compression_error", compression_error, "False with replicas > 1")
        require(comm is None, "comm", comm, "None with replicas > 1: replicas run in the simulator")
        require(callback is None, "callback", callback, "None with replicas > 1")
        return _run_replicas(setup, replicas, fast)
    transport: Memory | mpi.Ranks = Memory()
    if comm is not None:
        mpi.agree(
            comm,
            digest(
                (method, problem, workers, setup.records, setup.watched, seed, setup.start, str(dtype), str(wire_dtype))
            ),
        )
        transport = mpi.Ranks(comm)
        driver = in_turn(comm, lambda: _warmed_up(setup, transport, fast))
    else:
        driver = Driver(make_run(setup, transport), fast)
    result = _run_once(driver, callback, transport)
    transport.close()
    return result


# --- one run ----------------------------------------------------------------------------------------------------------


def _warmed_up(setup: Setup, transport: Any, fast: bool) -> Driver:
    """The driver, for which everything that a round calls was compiled (or loaded), without communication."""
    run = make_run(setup, transport)
    driver = Driver(run)
    return driver if fast else Driver(run, fast)


def _evaluate(problem: Any, x: Vector) -> tuple[float, float]:
    slope = np.empty_like(x)
    found = value_and_gradient(problem, x, slope)
    # not by BLAS: its threads wait by spinning, and take a processor from the other ranks until the next record
    return found, math.sqrt(np.square(slope, dtype=np.float64).sum())


def _run_once(driver: Driver, callback: Callable[..., object] | None, transport: Any) -> Result:
    comm, run, setup = transport.comm, driver.run, driver.run.setup
    history = np.zeros(setup.records.size, HISTORY)
    consensus = np.zeros(setup.records.size if run.own_models else 0)
    seconds, status, message, done = 0.0, DONE, "all steps done", 0
    for k, record in enumerate(setup.records):
        begin = time.perf_counter()
        driver.advance(done, int(record))
        seconds += time.perf_counter() - begin
        done = int(record)
        with after_rounds(run, done):
            x = setup.method.result(run)[0, 0]
            last = run.last()[0, 0] if callback is not None or run.own_models else None  # may need all ranks
            if run.own_models:
                consensus[k] = consensus_of(run)[0]
        history[k] = _row(setup, done, transport.total(run).sum(axis=0), run.nanoseconds, seconds)
        if comm is None or comm.Get_rank() == 0:
            history["f"][k], history["gradient_norm"][k] = _evaluate(setup.problem, x)
            status, message = _verdict(history, k)
            if status == DONE and callback is not None and last is not None:
                with after_rounds(run, done):
                    memory = setup.method.feedback.error(run)[0]
                intermediate = Result(
                    x=x.copy(),
                    last=last.copy(),
                    memory=memory,
                    fun=history["f"][k],
                    nit=int(history["step"][k]),
                    history=history[: k + 1],
                    **({"models": run.x[0].copy()} if run.own_models else {}),
                )
                try:
                    callback(intermediate_result=intermediate)
                except StopIteration:
                    status, message = STOPPED, f"stopped by the callback after step {history['step'][k]}"
        if comm is not None:
            status, message = mpi.share_report(comm, history[k : k + 1], status, message)
        if status != DONE:
            history = history[: k + 1]
            break
    status, message = ended(history, status, message)
    with after_rounds(run, done):
        memory, last = setup.method.feedback.error(run)[0], run.last()[0, 0].copy()
        kept = {name: vectors[0, 0] for name, vectors in server_state(setup.method, run).items()}
    more = {"compression_error": _compression_error(run, transport, history.size)} if setup.watched.size else {}
    if run.own_models:
        more |= {"models": run.x[0].copy(), "consensus": consensus[: history.size]}
    return Result(
        x=x.copy(),
        fun=float(history["f"][-1]),
        funs=history["f"][-1:].copy(),
        last=last,
        history=history,
        memory=memory,
        memory_bytes=setup.memory_bytes,
        server=kept,
        server_bytes=setup.server_bytes,
        nit=int(history["step"][-1]),
        success=status == DONE,
        status=status,
        message=message,
        **more,
    )


def _compression_error(run: Run, transport: Any, records: int) -> np.ndarray:
    """The means over all workers that sent a message, in their order."""
    every = run.errors[:records]
    if transport.ranks > 1:
        every = np.concatenate(list(transport.gathered(every)), axis=1)
    found = np.zeros(records, COMPRESSION_ERROR)
    sent = np.isfinite(every[:, :, :1])  # not by inactive workers
    with np.errstate(invalid="ignore"):
        found["vector"], found["error"] = (np.where(sent, every, 0.0).sum(axis=1) / sent.sum(axis=1)).T
    return found


def _row(setup: Setup, rounds: int, sent: np.ndarray, nanoseconds: np.ndarray, seconds: float) -> np.ndarray:
    """A row of the history without f: costs are per worker.

    A worker receives the messages of all others and of the model, on a graph those of its neighbours; reduced values
    are sent and received once, and of scattered ones it receives its slice.
    """
    row, workers = np.zeros((), HISTORY), setup.workers
    steps = int(rounds) * setup.method.local_steps
    row["step"], row["rounds"] = steps, rounds
    row["samples"] = workers * drawn(setup.batches, steps) - sent[ABSENT]
    row["seconds"] = seconds
    for name, alone, both, once, down, links, heard in (
        ("payload_bits", *sent[[BITS, REDUCED, SCATTERED, DOWN_BITS, LINK_BITS, HEARD_BITS]]),
        (
            "message_bytes",
            sent[BYTES],
            sent[REDUCED] / 8,
            sent[SCATTERED] / 8,
            *sent[[DOWN_BYTES, LINK_BYTES, HEARD_BYTES]],
        ),
    ):
        row[f"{name}_up"] = (alone + both + once + links) / workers
        row[f"{name}_down"] = (alone * (workers - 1) + both + once / workers + heard) / workers + down
    for name, kind in (("gradient", GRADIENT), ("coding", CODING), ("exchange", EXCHANGE)):
        row[f"seconds_{name}"] = nanoseconds[kind] * 1e-9
    return row


def _verdict(history: np.ndarray, k: int) -> tuple[int, str]:
    f = history["f"]
    if np.isfinite(f[k]) and (k == 0 or f[k] <= HOPELESS * (1.0 + abs(f[0]))):
        return DONE, "all steps done"
    step, what = history["step"][k], f"is {f[k]:.3g}" if np.isfinite(f[k]) else "is no longer finite"
    before = f"f was {f[k - 1]:.6g} at step {history['step'][k - 1]}" if k else "already at the start"
    return DIVERGED, f"diverged: f {what} at step {step} ({before}); try a smaller step size or more feedback"


def ended(history: np.ndarray, status: int, message: str) -> tuple[int, str]:
    """What is said at the end: a run that ends above its start did all its steps, and was no success."""
    f = history["f"]
    if status != DONE or f.size < 2 or history["step"][0] != 0 or f[-1] <= f[0]:
        return status, message
    return WORSE, f"all steps done, but f = {f[-1]:.6g} is above f(x_0) = {f[0]:.6g}; try a smaller step size"


# --- replicas ---------------------------------------------------------------------------------------------------------


def _run_replicas(setup: Setup, replicas: int, fast: bool) -> Result:
    begin = time.perf_counter()
    runs = replicate(setup, replicas, fast)
    seconds = time.perf_counter() - begin
    history = np.zeros(setup.records.size, HISTORY)
    for k, record in enumerate(setup.records):
        share = seconds * record / max(1, setup.records[-1])
        history[k] = _row(setup, record, runs.sent[:, k].mean(axis=0), np.zeros(4), share)
        history["f"][k] = runs.values[:, k].mean()
    history["gradient_norm"] = np.nan  # not evaluated for replicas
    status, message = next((v for k in range(history.size) if (v := _verdict(history, k))[0]), (DONE, "all steps done"))
    status, message = ended(history, status, message)
    more = {"models": runs.models, "consensus": runs.consensus.T.copy()} if runs.models.size else {}
    return Result(
        x=runs.chosen,
        fun=float(history["f"][-1]),
        funs=runs.values[:, -1].copy(),
        last=runs.last,
        history=history,
        replica_values=runs.values.T.copy(),
        replica_last=runs.last_values.T.copy(),
        memory=runs.errors,
        memory_bytes=setup.memory_bytes,
        server_bytes=setup.server_bytes,
        nit=int(history["step"][-1]),
        success=status == DONE,
        status=status,
        message=message,
        **more,
    )
