"""``run`` executes one method on one problem, in the simulator or on MPI ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..core import require
from ..core.arguments import flag, is_whole
from ..core.bound_calls import once
from ..core.digests import digest
from ..core.result import Result
from ..core.settings import known_keywords
from ..core.stored_arrays import Piece, State
from ..core.vectors import read_only
from ..methods.server import server_state
from ..methods.types import Run, Vector
from ..problems.base import gradient, value, value_and_gradient
from ..problems.evaluate import is_large, mean_over_rows
from ..problems.linear import Logistic, Ridge
from ..problems.numpy_function import FunctionProblem
from . import mpi
from .checkpoints import Checkpoints, interval, resumed
from .context import after_rounds, consensus_of
from .driver import Driver, make_run
from .failures import PATIENCE, Watch, abort_unless_all_raise
from .history import (
    COMPRESSION_ERROR,
    DIVERGED,
    DONE,
    HISTORY,
    STOPPED,
    WORSE,
    Targets,
    ended,
    line_of,
    read_targets,
    row_of,
    run_seeds,
    seeds_of,
    verdict,
)
from .mpi import in_turn
from .setup import Setup, prepare
from .simulator import Memory, replicate
from .state import CONSENSUS, ROWS, continued, owned, resume_run


@known_keywords
def run(
    method: Any,
    problem: Any,
    *,
    workers: int,
    steps: int | None = None,
    seed: int | Sequence[int] = 0,
    samples: int | None = None,
    epochs: float | None = None,
    step: Any = None,
    tol: float | None = None,
    target: float | Mapping[str, float] | None = None,
    verbose: bool = False,
    x0: ArrayLike | None = None,
    replicas: int = 1,
    record_every: int | None = None,
    callback: Callable[..., object] | None = None,
    dtype: DTypeLike = np.float64,
    wire_dtype: DTypeLike = np.float32,
    comm: Any = None,
    compression_error: bool = False,
    fast: bool = True,
    checkpoint: str | Path | None = None,
    every: int | str = "10min",
    resume: str | Path | Result | None = None,
    identity: str = "",
    patience: float = PATIENCE,
) -> Result:
    """Run a method on a problem and record its costs.

    Parameters
    ----------
    method : ParallelSGD, LocalSGD or another method
        The method; see :func:`theory.method`.
    problem : problem
        From :func:`theory.logistic`, :func:`theory.ridge`, :func:`theory.softmax`, :func:`theory.quadratic`, ...
    workers : int
        Number N of workers.  With ``comm``, it must be a multiple of the number of ranks.
    steps : int, optional
        Number of steps; for ``LocalSGD`` the number of local steps, a multiple of those in a round.
    seed : int or sequence of int
        The same seed gives bit-identical results in the simulator and on any number of ranks. With several seeds there
        is one run for each, and the result is a tuple that prints the mean with its interval.
    samples : int, optional
        Instead of ``steps``: the budget T of each worker.  The run ends before a round that would take a worker over
        T gradients.  The history's ``samples`` is the sum over the workers: at most N T.
    epochs : float, optional
        Instead of ``steps``: passes of all workers together over the rows, samples = epochs n / N.
    step : float, step size or "theory", optional
        Replaces the method's own step: a number for a constant step, or "theory" for the step of the theorem that
        covers the method on this problem, see :func:`theory.theory_step`; the result's ``theory`` names the theorem.
    tol : float, optional
        Stop when ``||grad f(x)||`` is at most this number; short for ``target={"gradient_norm": tol}``.
    target : float or dict, optional
        Stop at the first row of the history that reaches one of these: ``gap`` (f - f*, f* computed by
        :func:`theory.solve`; a number alone is a gap), ``f``, ``gradient_norm``; or that has spent ``bits`` (sent by a
        worker), ``seconds``, ``samples`` (of all workers) or ``rounds``.  ``record_every`` determines how often this is
        checked. A run that ends without reaching its target has ``status`` 3, and ``success`` is False.
    verbose : bool
        Whether to print a line for each row of the history (on rank 0).
    x0 : array_like, shape (d,), optional
        Start; if omitted, :func:`theory.initial_point`: zero, or the random weights of a network.  For methods on
        graphs, whose workers have their own models, also of shape (workers, d), one for each.
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
        Whether to measure the compression error of the workers' messages in the last round before every row of the
        history.
    fast : bool
        Whether the round function is called once and its operations replayed in compiled code, or replaced by a
        compiled loop; if False, the round function that `show` prints runs in every round, in Python, with
        bit-identical results.
    checkpoint : path, optional
        A folder for the state of the run: the last two checkpoints are retained, one of them at the end.  SIGTERM and
        SIGUSR1 then write another checkpoint and end the process with exit code 75.
    every : int or str
        Steps between two checkpoints, rounded up to whole rounds, or a time: "30s", "10min", "2h".
    resume : path or result, optional
        Continues from the last complete checkpoint of a folder, or from a result, bit-identical to a run that never
        stopped, also with more ``steps`` or on another number of ranks. All other arguments that affect the result must
        be the same. If the folder of ``checkpoint`` has no checkpoint yet, the run starts. User-defined functions are
        compared by their code, and by the values and functions that it names.
    identity : str
        A name that is compared in place of the method and the problem, for runs with checkpoints that depend on objects
        which cannot be compared, such as an open file; the error names these objects. Change the name when the code
        changes.
    patience : float
        Seconds for which a rank waits for another one that does not answer, after which the job is ended; 0 for no
        limit.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (the average that the method defines), ``fun``, ``last`` (the last iterate), ``history``, ``memory`` (the
        error memories, shape (workers, d); on MPI those of this rank; decoded if stored compressed), ``memory_bytes``
        (bytes that each worker stores between steps), ``server`` (the vectors that the server rule stores in addition
        to x, by name; not with replicas or sparse rows; of a `Sharded` rule the slices here), ``server_bytes`` (their
        bytes, for each worker), ``nit``, ``success``, ``status`` and ``message``.
        A method on a graph adds ``models`` (the last ones, shape (workers, d); on MPI those of this rank) and
        ``consensus``: for each row of the history the sum of their squared distances from their mean; with replicas
        of shape (rows, replicas).  ``x`` is then the mean over the workers, and a worker's ``bits_down`` are those of
        its neighbours' messages.
        With ``compression_error``, ``compression_error``: for each row of the history the means over the workers of
        ``vector``, ||p||^2 of the vector that a worker compressed in the phase "up", and ``error``, ||p - Q(p)||^2; NaN
        if nothing was compressed.
        ``state``, from which ``resume=result`` continues.
        With ``step="theory"``, ``theory``: the step, its theorem and the theorem's assumptions.
        ``success`` is false if the run diverged, which stops it (``status`` 2), ended above f(x_0) (1), missed its
        target (3) or was stopped by the callback (99); ``message`` states the reason.

    Raises
    ------
    ValueError
        If an argument is outside its domain; the message names it.

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
    seeds = seeds_of(seed)
    if not is_whole(seed) and np.iterable(seed):
        arguments = {name: given for name, given in locals().items() if name not in ("seeds", "seed")}
        return cast(Any, run_seeds)(
            lambda one: run(**arguments, seed=one), seeds, replicas, checkpoint=checkpoint, resume=resume
        )
    require(comm is None or hasattr(comm, "Get_size"), "comm", comm, "None, or a communicator of mpi4py", TypeError)
    one_group = comm is None or not getattr(comm, "is_inter", False)
    require(one_group, "comm", "an intercommunicator", "one of a single group, such as comm.Merge()")
    with Watch(comm, patience) as watch, abort_unless_all_raise(comm):
        flag("fast", fast)
        flag("verbose", verbose)
        if step is not None:
            require(hasattr(method, "_replace"), "method", method, "a method, such as ParallelSGD(...)", TypeError)
            method = method._replace(step=step)
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
            epochs=epochs,
            identity=identity,
        )
        targets = read_targets(tol, target, setup.problem)
        if replicas > 1:
            require(not (targets.goals or targets.budgets), "tol and target", (tol, target), "None with replicas > 1")
            require(not compression_error, "compression_error", compression_error, "False with replicas > 1")
            require(comm is None, "comm", comm, "None with replicas > 1: replicas run in the simulator")
            require(callback is None, "callback", callback, "None with replicas > 1")
        require(checkpoint != "", "checkpoint", checkpoint, "the path of a folder; '.' is the current one")
        folder = None if checkpoint is None else Path(checkpoint)
        keeper = Checkpoints(folder, interval(every, setup.method.local_steps), comm, setup.method.local_steps)
        watch.last = keeper.ending
        if comm is not None:
            given = (
                method,
                problem,
                workers,
                setup.records,
                setup.watched,
                seed,
                setup.start,
                str(dtype),
                tuple(targets),
            )
            mpi.agree(comm, digest((*given, str(wire_dtype), str(checkpoint), str(every), resume is None)))
        with keeper.listening():
            state, rows = resumed(resume, folder, setup, comm), np.empty(0, bool)
            if state is not None:
                setup, rows = continued(setup, state)
                keeper.seconds = state.notes["seconds"]
            if replicas > 1:
                return _run_replicas(setup, replicas, fast, keeper, state, rows)
            transport: Memory | mpi.Ranks = Memory()
            if comm is None:
                driver = Driver(make_run(setup, transport), fast)
            else:
                transport = mpi.Ranks(comm)
                driver = in_turn(comm, lambda: _warmed_up(setup, transport, fast))
            result = _run_once(driver, callback, transport, keeper, state, rows, targets, verbose)
            driver.run.release()
            transport.close()
            return result


# --- one run ----------------------------------------------------------------------------------------------------------


def _warmed_up(setup: Setup, transport: Any, fast: bool) -> Driver:
    """The driver, for which everything that a round calls was compiled (or loaded), without communication."""
    run = make_run(setup, transport)
    driver = Driver(run)
    return driver if fast else Driver(run, fast)


def _evaluate(problem: Any, x: Vector, comm: Any) -> tuple[float, float]:
    """F and the norm of its gradient; of large data in blocks, each rank those of its rows."""
    if is_large(problem):

        def mean(part: Any, out: np.ndarray) -> None:
            out[-1] = value_and_gradient(part, x, out[:-1])

        both = mean_over_rows(problem, x.size + 1, mean, comm)
        found, slope = float(both[-1]), both[:-1]
    else:
        slope = np.empty_like(x)
        found = value_and_gradient(problem, x, slope)
    # not by BLAS, whose threads wait by spinning and occupy a processor of other ranks until the next record
    with np.errstate(over="ignore"):  # if the squares overflow, the norm may still be finite
        square = np.square(slope, dtype=np.float64).sum()
    return found, math.sqrt(square) if square < math.inf else math.hypot(*slope)


def _at_start(problem: Any, x: Vector, comm: Any) -> tuple[float, float]:
    """The same at the start, cached for several runs; for two classes whose f depends only on A, b and l2."""
    cls = type(problem)
    key = (cls, value.table.get(cls), gradient.table.get(cls), problem.l2, digest((x,)))
    return once(lambda: _evaluate(problem, x, comm), key, (problem.A, problem.b))


def _run_once(
    driver: Driver,
    callback: Callable[..., object] | None,
    transport: Any,
    keeper: Checkpoints,
    state: State | None,
    rows: np.ndarray,
    targets: Targets,
    verbose: bool,
) -> Result:
    comm, run, setup = transport.comm, driver.run, driver.run.setup
    history = np.zeros(setup.records.size, HISTORY)
    consensus = np.zeros(setup.records.size if run.own_models else 0)
    status, message, done, count = DONE, "all steps done", 0, 0
    if state is not None:
        done, count = state.rounds, int(rows.sum())
        history[:count], consensus[:count] = state.whole(ROWS)[rows], state.whole(CONSENSUS)[rows[: consensus.size]]
        resume_run(run, state, rows)
        if callback is not None and hasattr(callback, "state"):
            callback.state = state.notes["callback"]

    def now(rounds: int) -> State:
        notes = {"every": setup.every, "seconds": keeper.seconds, "callback": getattr(callback, "state", None)}
        more = {ROWS: history[:count], CONSENSUS: consensus[:count]}
        pieces = {name: [Piece.of(array)] for name, array in more.items()}
        for name, piece in owned(run, count):
            pieces.setdefault(name, []).append(piece)
        return State(setup.about, rounds, notes, pieces)

    for k in range(count, setup.records.size):
        keeper.advance(driver.advance, done, int(setup.records[k]), now)
        done = int(setup.records[k])
        with after_rounds(run, done):
            x = setup.method.result(run)[0, 0]
            last = run.last()[0, 0] if callback is not None or run.own_models else None  # may need all ranks
            if run.own_models:
                consensus[k] = consensus_of(run)[0]
        history[k] = row_of(setup, done, transport.total(run).sum(axis=0), run.nanoseconds, keeper.seconds)
        count = k + 1
        root = comm is None or comm.Get_rank() == 0
        if root or is_large(setup.problem):
            start = done == 0 and comm is None and type(setup.problem) in (Logistic, Ridge)
            history["f"][k], history["gradient_norm"][k] = (_at_start if start else _evaluate)(setup.problem, x, comm)
        if root:
            status, message = verdict(history, k)
            if verbose:
                print(line_of(history, k, int(setup.records[-1]) * setup.method.local_steps), flush=True)
            if status == DONE and callback is not None and last is not None:
                with after_rounds(run, done):
                    memory = setup.method.feedback.error(run)[0]
                intermediate = Result(
                    x=x.copy(),
                    last=last.copy(),
                    memory=memory,
                    fun=history["f"][k],
                    nit=int(history["step"][k]),
                    history=read_only(history[: k + 1]),
                    **({"models": run.x[0].copy()} if run.own_models else {}),
                )
                try:
                    callback(intermediate_result=intermediate)
                except StopIteration:
                    status, message = STOPPED, f"stopped by the callback after step {history['step'][k]}"
            if status == DONE:
                status, message = targets.look(history[k])
        if comm is not None:
            status, message = mpi.share_report(comm, history[k : k + 1], status, message)
        if status != DONE:
            history = history[: k + 1]
            break
        if done > 0:
            keeper.look(done, now)
    ending = now(done)
    if status != DIVERGED:
        keeper.write(ending)
    status, message = targets.ended(history, status, message)
    if status in (WORSE, DIVERGED) and isinstance(setup.problem, FunctionProblem):
        message += ", or check the gradient: th.check_gradient(problem)"
    if verbose and (comm is None or comm.Get_rank() == 0):
        print(message, flush=True)
    with after_rounds(run, done):
        x = setup.method.result(run)[0, 0]
        memory, last = setup.method.feedback.error(run)[0], run.last()[0, 0].copy()
        server = {name: vectors[0, 0] for name, vectors in server_state(setup.method, run).items()}
    more: dict[str, Any] = {} if setup.theory is None else {"theory": str(setup.theory)}
    if setup.watched.size:
        more["compression_error"] = _compression_error(run, transport, history.size)
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
        server=server,
        server_bytes=setup.server_bytes,
        nit=int(history["step"][-1]),
        success=status == DONE,
        status=status,
        message=message,
        state=ending,
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


# --- replicas ---------------------------------------------------------------------------------------------------------


def _run_replicas(
    setup: Setup, replicas: int, fast: bool, keeper: Checkpoints, state: State | None, rows: np.ndarray
) -> Result:
    runs, ending = replicate(setup, replicas, fast, keeper, state, rows)
    history = np.zeros(setup.records.size, HISTORY)
    for k, record in enumerate(setup.records):
        share = keeper.seconds * record / max(1, setup.records[-1])
        history[k] = row_of(setup, record, runs.sent[:, k].mean(axis=0), np.zeros(4), share)
        history["f"][k] = runs.values[:, k].mean()
    history["gradient_norm"] = np.nan  # not evaluated for replicas
    status, message = next((v for k in range(history.size) if (v := verdict(history, k))[0]), (DONE, "all steps done"))
    status, message = ended(history, status, message)
    more: dict[str, Any] = {} if setup.theory is None else {"theory": str(setup.theory)}
    if runs.models.size:
        more |= {"models": runs.models, "consensus": runs.consensus.T.copy()}
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
        state=ending,
        **more,
    )
