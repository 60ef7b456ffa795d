"""``run``: one method on one problem, in the simulator or on MPI ranks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..compressors.base import check, shares_stream
from ..methods.choose import choose_layout
from ..methods.feedback import check_feedback, store_bytes
from ..methods.frontier import warn_of_frontier
from ..methods.layout import averaged, current, error_of
from ..methods.local_sgd import Local, LocalSGD, check_single_message
from ..methods.parallel_sgd import (
    BITS,
    BYTES,
    CODING,
    DRAWN,
    EXCHANGE,
    GRADIENT,
    REDUCED,
    ParallelSGD,
    Plan,
    averaging,
    make_rates,
    new_state,
    reduced,
)
from ..methods.plain import advance_plain
from ..methods.remembering import RememberingTogether
from ..methods.sampling import make_shards
from ..methods.sparse import SparseGradient
from ..problems.base import dimension, gradient, regularization, rows, value
from ..problems.linear import astype, slope
from ..random import key
from ..result import Result
from ..schedules import LARGEST_BATCH, Last, Suffix, batch_size
from ..settings import digest, require
from ..wire.frame import header_template, overhead
from . import mpi, simulator

RECORDS = 50  # how many points a history has unless record_every says otherwise
DONE, STOPPED, DIVERGED = 0, 99, 2  # status codes; 99 is SciPy's for a callback that stopped the run
HOPELESS = 1e9  # a run has diverged where f is that many times 1 + |f(x_0)|

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


class _Setup(NamedTuple):
    """A run, checked and translated into what the kernels take."""

    problem: NamedTuple
    compressor: NamedTuple
    rule: tuple  # feedback, step sizes, averaging weights, the batches of the first steps
    layout: NamedTuple
    shards: NamedTuple
    plan: Plan
    purposes: np.ndarray
    x0: np.ndarray
    wire: np.ndarray
    header: bytes
    records: np.ndarray  # rounds after which the history gets a row
    local_steps: int  # steps in a round
    plain: bool
    memory_bytes: int


def run(
    method,
    problem,
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
    comm=None,
) -> Result:
    """Run a method on a problem and record what it cost.

    Parameters
    ----------
    method : ParallelSGD or LocalSGD
        What the workers do in a step.
    problem : problem
        From :func:`theory.logistic`, :func:`theory.ridge`, :func:`theory.softmax`, :func:`theory.quadratic`, ...
    workers : int
        Number N of workers.  With ``comm``, the number of ranks divides it.
    steps : int, optional
        Number of steps; for ``LocalSGD`` of local steps, a multiple of those in a round.
    seed : int
        The same seed gives the same bits, in the simulator and on any number of ranks.
    samples : int, optional
        Instead of ``steps``: the budget T of each worker.  The run ends before a round that would take a worker over
        T gradients.  The history's ``samples`` is the sum over the workers: at most N T.
    x0 : array_like, shape (d,), optional
        Start; zero if omitted.
    replicas : int
        Independent repetitions, in the simulator.  Then ``x`` and ``last`` have shape (replicas, d), ``funs`` holds
        each replica's f, ``fun`` and the history's f their mean.
    record_every : int, optional
        Steps between two rows of the history, rounded up to whole rounds; by default about 50 rows.
    callback : callable, optional
        Called as ``callback(intermediate_result)`` after every row (on rank 0); may raise ``StopIteration``.
    dtype : float64 or float32
        Of x, the memories and the data.
    wire_dtype : float32 or float64
        Of floats in messages.
    comm : mpi4py communicator, optional
        Run on its ranks.  Every rank calls with the same arguments and gets the same result; the history's seconds
        are rank 0's.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (the average that the method chooses), ``fun``, ``last`` (the last iterate), ``history``, ``memory`` (what
        the workers did not send, shape (workers, d); on MPI those of this rank; decoded where it is held compressed),
        ``memory_bytes`` (what each worker holds of it between two steps), ``nit``, ``success``, ``status`` and
        ``message``; a run that diverges stops, with ``success`` false and the reason in ``message``.

    Raises
    ------
    ValueError
        For an argument outside its domain; the message names it.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = th.ParallelSGD(th.Identity(), step=th.Constant(0.5))
    >>> th.run(method, problem, workers=2, steps=3, x0=np.ones(4)).x
    array([0.125, 0.125, 0.125, 0.125])
    """
    setup = _prepare(
        method, problem, workers, steps, seed, samples, x0, replicas, record_every, dtype, wire_dtype, comm
    )
    if replicas > 1:
        require(comm is None, "comm", comm, "None with replicas > 1: replicas run in the simulator")
        require(callback is None, "callback", callback, "None with replicas > 1")
        return _run_replicas(setup, replicas)
    exchange = None
    if comm is not None:
        mpi.agree(comm, digest((method, problem, workers, setup.records, seed, setup.x0, str(dtype), str(wire_dtype))))
        exchange = mpi.Exchange(comm, setup.compressor, setup.plan, setup.header, setup.shards.weight, setup.wire.dtype,
                                isinstance(setup.layout, Local))  # fmt: skip
        mpi.in_turn(comm, lambda: _rehearse(setup, exchange))
    return _run_once(setup, callback, exchange)


# --- checks -----------------------------------------------------------------------------------------------------------


def _prepare(method, problem, workers, steps, seed, samples, x0, replicas, record_every, dtype, wire_dtype, comm):
    require(isinstance(method, (ParallelSGD, LocalSGD)), "method", method, "a method, such as ParallelSGD(...)",
            TypeError)  # fmt: skip
    method.domain()  # what _replace changed was not checked yet
    require(dimension.implements(type(problem)), "problem", type(problem).__name__,
            "a problem, from logistic, ridge, softmax or quadratic", TypeError)  # fmt: skip
    for name, number in (("workers", workers), ("replicas", replicas)):
        require(isinstance(number, (int, np.integer)) and number >= 1, name, number, "a whole number, at least 1")
    for name, number in (("steps", steps), ("samples", samples), ("record_every", record_every)):
        good = number is None or (isinstance(number, (int, np.integer)) and number >= 1)
        require(good, name, number, "a whole number, at least 1")
    require((steps is None) != (samples is None), "steps and samples", (steps, samples), "exactly one of the two")
    dtype, wire_dtype = np.dtype(dtype), np.dtype(wire_dtype)
    for name, kind in (("dtype", dtype), ("wire_dtype", wire_dtype)):
        require(kind in (np.float32, np.float64), name, kind, "float32 or float64")
    fitting = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and 0 <= int(seed) < 2**64
    require(fitting, "seed", seed, "a whole number from 0 to 2**64 - 1")
    batches, steps = plan_batches(method.batch, steps, samples, method.local_steps)
    rounds = steps // method.local_steps
    ranks, rank = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
    require(workers % ranks == 0, "workers", workers, f"a multiple of the number of ranks, {ranks}")

    problem = astype(problem, dtype)
    d = int(dimension(problem))
    check(method.compressor, d)
    check_feedback(method.feedback, method.compressor, d)
    if rank == 0:
        warn_of_frontier(method, d)
    x0 = np.zeros(d, dtype) if x0 is None else np.ascontiguousarray(x0, dtype)
    require(x0.shape == (d,), "x0", f"shape {x0.shape}", f"shape ({d},)")
    require(bool(np.isfinite(x0).all()), "x0", "NaN or Inf", "finite numbers")
    average = averaging(method)
    if isinstance(average, Suffix):
        require(average.start < steps, "average", average, f"a suffix that starts before the last of {steps} steps")
    shards = make_shards(method.shards, method.sampling, int(rows(problem)), workers, getattr(problem, "b", None))
    smallest, largest = int((shards.stop - shards.start).min()), int(batches.max())
    require(not shards.shuffle or largest <= smallest, "batch", largest,
            f"at most the rows of a worker, {smallest}, where they are drawn without replacement")  # fmt: skip
    l2 = float(regularization(problem))
    header = header_template(method.compressor, d, wire_dtype)
    low, high, numbers = reduced(method, d)
    if isinstance(method, LocalSGD):
        check_single_message(method, d)
    whole = method.compress == "full"
    here = workers // ranks
    plan = Plan(
        d, int(workers), rank * here, here, largest, l2 if whole else 0.0, 0.0 if whole else l2,
        not isinstance(average, Last), overhead(header), int(time.CLOCK_MONOTONIC), low, high, numbers,
        here + 1 if high > low else int(workers), bool(shares_stream(method.compressor)),
        method.momentum, method.nesterov, method.aggregation == "majority", method.radius,
    )  # fmt: skip
    every = -(-record_every // method.local_steps) if record_every else max(1, rounds // RECORDS)
    records = np.unique(np.append(np.arange(0, rounds, every), rounds)).astype(np.int64)
    rule = (method.feedback, method.step, average, batches)
    purposes = np.array([key(seed, purpose) for purpose in simulator.PURPOSES], np.uint64)
    bits = 8 * wire_dtype.itemsize, 8 * dtype.itemsize
    layout = choose_layout(method, problem, plan.opening > 0, *bits)
    plain = isinstance(layout, SparseGradient) and largest == 1 and slope.implements(type(problem))
    wire = np.empty(0, wire_dtype)
    memory_bytes = sum(store_bytes(method.feedback, method.compressor, d, *bits))
    memory_bytes += d * dtype.itemsize if isinstance(layout, RememberingTogether) else 0
    return _Setup(problem, method.compressor, rule, layout, shards, plan, purposes, x0, wire, header, records,
                  method.local_steps, plain, memory_bytes)  # fmt: skip


def plan_batches(batch, steps, samples, local_steps: int = 1) -> tuple[np.ndarray, int]:
    """The sizes of the first steps' batches (the last of them is that of all later steps, too), and how many steps.

    With ``samples``, as many whole rounds as a worker's budget pays for.
    """
    if isinstance(batch, int):
        sizes = np.array([batch], np.int64)
        first, affordable = local_steps * batch, int(samples or 0) // batch
    else:
        sizes = np.array(_growing(batch, steps, samples), np.int64)
        first, affordable = int(sizes[:local_steps].sum()), int(np.searchsorted(sizes.cumsum(), samples or 0, "right"))
    if steps is None:
        steps = affordable - affordable % local_steps
        require(steps >= 1, "samples", samples, f"at least {first}, what the first round takes of each worker")
    require(steps % local_steps == 0, "steps", steps, f"a multiple of local_steps = {local_steps}")
    return sizes[: int(steps)], int(steps)


def _growing(batch, steps, samples) -> list[int]:
    """The sizes of the batches of so many steps, or until a worker's budget is exceeded."""
    sizes: list[int] = []
    spent = 0
    while len(sizes) < steps if samples is None else spent <= samples:
        size = batch_size(batch, len(sizes))
        whole = isinstance(size, (int, np.integer)) and size >= 1
        require(whole and (size <= LARGEST_BATCH or samples is not None), "batch", f"{size!r} at step {len(sizes)}",
                f"whole numbers from 1 to {LARGEST_BATCH}")  # fmt: skip
        sizes.append(min(int(size), 2**52))
        spent += int(size)
    return sizes


# --- one run ----------------------------------------------------------------------------------------------------------


def _start(setup):
    streams = simulator.make_streams(setup.purposes, 0, setup.plan)
    state = new_state(setup.compressor, setup.layout, setup.shards, setup.plan, setup.x0, setup.wire)
    return streams, state


def _rehearse(setup, exchange) -> None:
    """Compile (or load) everything that a run calls, without a message to anyone."""
    streams, state = _start(setup)
    exchange.rehearse(setup.problem, setup.shards, setup.plan, streams, state, _rates(setup, 0, 1)[0])
    _evaluate(setup.problem, setup.x0)
    x = np.empty_like(setup.x0)
    averaged(state.x, x)
    current(state.x, x)
    error_of(state.memory, 0, state.x, x)


def _rates(setup, start, stop):
    """What the rules say for the rounds ``start`` to ``stop``: a row each, or a row for each of their local steps."""
    feedback, schedule, average, batches = setup.rule
    rates = make_rates(feedback, schedule, average, batches, start * setup.local_steps, stop * setup.local_steps)
    if isinstance(setup.layout, Local):
        return rates.reshape(stop - start, setup.local_steps, rates.shape[1])
    return rates


def _evaluate(problem, x):
    slope = np.empty_like(x)
    gradient(problem, x, slope)
    return float(value(problem, x)), float(np.linalg.norm(slope.astype(np.float64)))


def _run_once(setup, callback, exchange):
    plan, comm = setup.plan, exchange and exchange.comm
    streams, state = _start(setup)
    history = np.zeros(setup.records.size, HISTORY)
    x, last = np.empty_like(setup.x0), np.empty_like(setup.x0)
    seconds, status, message, done = 0.0, DONE, "all steps done", 0
    if exchange is None:
        drive = advance_plain if setup.plain else partial(simulator.advance, setup.layout)
        none = _rates(setup, 0, 0)
        drive(setup.problem, setup.compressor, setup.shards, plan, streams, state, 0, none)  # compiles, off the clock
    for k, step in enumerate(setup.records):
        rates = _rates(setup, done, step)
        begin = time.perf_counter()
        if exchange is None:
            drive(setup.problem, setup.compressor, setup.shards, plan, streams, state, done, rates)
        else:
            mpi.advance(exchange, setup.problem, setup.shards, plan, streams, state, done, rates)
        done = int(step)
        seconds += time.perf_counter() - begin
        averaged(state.x, x)
        current(state.x, last)
        history[k] = _row(setup, done, state.tally, seconds)
        if comm is None or comm.Get_rank() == 0:
            history["f"][k], history["gradient_norm"][k] = _evaluate(setup.problem, x)
            status, message = _verdict(history, k)
            if status == DONE and callback is not None:
                intermediate = Result(x=x.copy(), last=last.copy(), fun=history["f"][k],
                                              nit=int(history["step"][k]), history=history[: k + 1])  # fmt: skip
                try:
                    callback(intermediate_result=intermediate)
                except StopIteration:
                    status, message = STOPPED, f"stopped by the callback after step {history['step'][k]}"
        if comm is not None:
            status, message = mpi.share_report(comm, history[k : k + 1], status, message)
        if status != DONE:
            history = history[: k + 1]
            break
    memory = np.empty((plan.here, plan.d), setup.x0.dtype)
    for w in range(plan.here):
        error_of(state.memory, w, state.x, memory[w])
    return Result(x=x, fun=float(history["f"][-1]), funs=history["f"][-1:].copy(), last=last, history=history,
                          memory=memory, memory_bytes=setup.memory_bytes, nit=int(history["step"][-1]),
                          success=status == DONE, status=status, message=message)  # fmt: skip


def _row(setup, rounds, tally, seconds):
    """A row of the history without f: costs are per worker.

    It receives the messages that all others send; what is reduced it sends and receives once.
    """
    row, plan = np.zeros((), HISTORY), setup.plan
    steps = int(rounds) * setup.local_steps
    row["step"], row["rounds"], row["samples"] = steps, rounds, plan.workers * _drawn(setup, steps)
    row["seconds"] = seconds
    for name, sent, both in (("payload_bits", tally[BITS], tally[REDUCED]),
                             ("message_bytes", tally[BYTES], tally[REDUCED] / 8)):  # fmt: skip
        row[f"{name}_up"] = (sent + both) / plan.workers
        row[f"{name}_down"] = (sent * (plan.workers - 1) + both) / plan.workers
    for name, total in (("gradient", tally[GRADIENT]), ("coding", tally[CODING]), ("exchange", tally[EXCHANGE])):
        row[f"seconds_{name}"] = total * 1e-9
    return row


def _drawn(setup, steps):
    """How many gradients each worker has evaluated after so many steps."""
    feedback, schedule, average, batches = setup.rule
    return int(make_rates(feedback, schedule, average, batches, steps, steps + 1)[0, DRAWN])


def _verdict(history, k):
    f = history["f"]
    if np.isfinite(f[k]) and (k == 0 or f[k] <= HOPELESS * (1.0 + abs(f[0]))):
        return DONE, "all steps done"
    step, what = history["step"][k], f"is {f[k]:.3g}" if np.isfinite(f[k]) else "is no longer finite"
    before = f"f was {f[k - 1]:.6g} at step {history['step'][k - 1]}" if k else "already at the start"
    return DIVERGED, f"diverged: f {what} at step {step} ({before}); try a smaller step size or more feedback"


# --- replicas ---------------------------------------------------------------------------------------------------------


def _run_replicas(setup, replicas):
    begin = time.perf_counter()
    rates = _rates(setup, 0, setup.records[-1])
    runs = simulator.replicate(setup.problem, setup.compressor, setup.layout, setup.shards, setup.plan, setup.purposes,
                               setup.x0, setup.wire, setup.records, rates, replicas)  # fmt: skip
    seconds = time.perf_counter() - begin
    history = np.zeros(setup.records.size, HISTORY)
    for k, step in enumerate(setup.records):
        tally = np.zeros(6)
        tally[[BITS, BYTES, REDUCED]] = runs.sent[:, k].mean(axis=0)
        history[k] = _row(setup, step, tally, seconds * step / max(1, setup.records[-1]))
        history["f"][k] = runs.values[:, k].mean()
    history["gradient_norm"] = np.nan  # not evaluated for replicas
    status, message = next((v for k in range(history.size) if (v := _verdict(history, k))[0]), (DONE, "all steps done"))
    return Result(x=runs.chosen, fun=float(history["f"][-1]), funs=runs.values[:, -1].copy(), last=runs.last,
                          history=history, replica_values=runs.values.T.copy(), replica_last=runs.last_values.T.copy(),
                          memory=runs.errors, memory_bytes=setup.memory_bytes, nit=int(history["step"][-1]),
                          success=status == DONE, status=status, message=message)  # fmt: skip
