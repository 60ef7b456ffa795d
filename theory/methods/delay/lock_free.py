"""Lock-free SGD: threads that share x in memory, each with compression and a private memory, or without both.

One step of a thread, in the notation of the paper (Parallel-Mem-SGD, Algorithm 2)::

    for every thread w, at its own pace:   g = gradient of a random row at the current x
                                           p = gamma g + m
                                           m = p - Q(p)
                                           --------------
                                           x = x - Q(p)

No thread waits and nothing is locked.  If two threads update the same coordinate at the same time, one update may be
lost, so runs with more than one thread are not bit-identical.
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from ...compressors.closed_forms import check, expected_payload_bits
from ...compressors.full_precision import Identity
from ...compressors.sparsifiers.random_and_top_k import TopK
from ...core import require
from ...core.arguments import real_array, whole_number
from ...core.bound_calls import encode
from ...core.interrupts import Stretches, in_threads
from ...core.random import derive, key
from ...core.result import Result
from ...problems.base import dimension, regularization, rows, value
from ...problems.linear import astype, is_slope_times_row
from ...problems.matrix import CSR
from ..gradients import make_shards, new_order
from ..memory.error_feedback import NoFeedback, keeps_the_rest, step_factors
from ..schedule_values import fill_steps
from ..schedules import Last, as_step
from ..sgd import ParallelSGD, averaging
from .lock_free_loop import ETA, choose, new_private, new_shared, read_out, slope_address, with_memory, without_memory

CLOCKS = ("thread", "shared")
DONE, DIVERGED = 0, 2
DEEPEST = 200.0  # -log of the scale of x at which x is rescaled
BLOCK = 2**20  # steps of a thread whose rates are stored at a time
HISTORY = np.dtype(
    [
        ("step", np.int64),
        ("rounds", np.int64),
        ("samples", np.int64),
        ("payload_bits_up", np.float64),
        ("seconds", np.float64),
        ("f", np.float64),
    ]
)


class Rules(NamedTuple):
    """Constants of a run: the l2 weight that is compressed with the gradient, and the one applied to x directly."""

    batch: int
    sent_l2: float
    local_l2: float


def run_lock_free(
    method: ParallelSGD,
    problem: Any,
    *,
    threads: int,
    steps: int,
    seed: int = 0,
    x0: ArrayLike | None = None,
    clock: str = "thread",
    record_every: int | None = None,
) -> Result:
    """Run a method on threads that share x without locks: Parallel-Mem-SGD, or plain lock-free SGD.

    Parameters
    ----------
    method : ParallelSGD
        With ``TopK`` or ``RandK`` and a memory: Parallel-Mem-SGD.  With ``Identity``: plain SGD, where a step touches
        only the entries of its row.  The result is the last iterate, so its ``average`` is "last".
    problem : Logistic or Ridge
        On sparse or dense rows.
    threads : int
        With one thread, the result is that of ``run`` with one worker (and float64 messages), up to rounding.
    steps : int
        Steps of each thread.
    seed : int
        Thread w draws what worker w of :func:`theory.run` draws.
    x0 : array_like, shape (d,), optional
        Start; zero if omitted.
    clock : {"thread", "shared"}
        The number t in the step size of thread w's s-th step: "thread" is s = 0, 1, 2, ..., as in Algorithm 2; "shared"
        is ``threads * s + w``, as if all steps were counted together.
    record_every : int, optional
        Steps of a thread between two rows of the history, at which all threads synchronize; by default only the start
        and the end.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (the last iterate), ``fun``, ``memory`` (the threads' error memories, shape (threads, d)), ``history``
        (step, rounds, samples, payload_bits_up, seconds, f; the bits are those of a thread's steps as messages),
        ``seconds``, ``nit`` (steps of each thread), ``threads``, ``repeatable`` (whether the same call gives
        bit-identical results: with one thread), ``success``, ``status`` and ``message``.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the loop does not support the method; the message names the reason.

    Notes
    -----
    * Each thread takes full steps, so x is updated ``threads`` times as often as with one thread.
    * The paper's experiment takes gamma_t = 1/(1 + t); its released code 1/(1 + lambda t) with lambda = 1/n, counts t
      by the position in a pass that the threads share (``clock="shared"``), and shuffles the rows.  The step here is
      the method's own, and rows are drawn independently unless its ``sampling`` is "shuffle".
    * The l2 term of a memory is applied lazily, when a thread next touches a coordinate, with the x_j of that time, so
      the cost of a step depends only on its row and its message. With one thread this is exact.
    * A gradient is delayed by the steps of other threads since its thread read x: as for `AsyncSGD`, by at most N - 1
      on average (:func:`theory.bounds.async_lateness`).
    * A thread may read a mixture of older and newer coordinates.  Aligned numbers of eight bytes are read and written
      atomically on the machines that Numba supports.

    Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", NeurIPS 2018, Algorithm 2; Niu, Recht, Re, Wright,
    "Hogwild!", NeurIPS 2011.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.ridge((np.eye(4), np.ones(4)), l2=0.0)
    >>> method = th.ParallelSGD(th.RandK(1), step=th.Constant(0.5), feedback=th.ErrorFeedback())
    >>> result = th.run_lock_free(method, problem, threads=1, steps=400)
    >>> result.repeatable, bool(result.fun < 1e-6)
    (True, True)
    """
    if isinstance(method, ParallelSGD) and method.compressor is None:
        method = method._replace(compressor=Identity(sparse=True))
    _check(method, problem, threads, steps, clock, record_every)
    problem = astype(problem, np.float64)
    d, l2 = int(dimension(problem)), float(regularization(problem))
    check(method.compressor, d)
    x0 = np.zeros(d) if x0 is None else np.ascontiguousarray(real_array("x0", x0))
    require(x0.shape == (d,), "x0", f"shape {x0.shape}", f"shape ({d},)")
    require(bool(np.isfinite(x0).all()), "x0", "NaN or Inf", "finite numbers")

    plain = isinstance(method.compressor, Identity)
    local = plain or method.compress == "loss"  # without a memory, l2 term and gradient update x alike
    rules = Rules(cast(int, method.batch), 0.0 if local else l2, l2 if local else 0.0)
    rates, first = _rates(method, threads, 0, min(BLOCK, steps), clock), 0
    marks = _marks(rates, rules.local_l2, 0, steps, record_every)  # refuses long steps
    shards = make_shards("shared", method.sampling, int(rows(problem)), threads)
    streams = [_streams(seed, w) for w in range(threads)]
    order = [new_order(shards, 1) for _ in range(threads)]
    private = [new_private(x0, not plain, isinstance(method.compressor, TopK)) for _ in range(threads)]
    code, kept = slope_address(problem), encode(problem)
    data = kept.ctypes.data
    bits = _message_bits(method, problem, d)
    shared, x, memory = new_shared(x0, threads), x0.copy(), np.zeros((threads, d))

    stopped = threading.Event()
    stretches = [Stretches(stopped) for _ in range(threads)]

    def advance(w: int, start: int, stop: int) -> None:
        stretches[w].over(start, stop, partial(stretch, w))

    def stretch(w: int, start: int, stop: int) -> None:
        now = rates[w][start - first : stop - first]
        if plain:
            without_memory(problem.A, code, data, shards, rules, order[w], streams[w], shared, now, w, start)
        else:
            with_memory(
                problem.A,
                code,
                data,
                method.compressor,
                shards,
                rules,
                order[w],
                streams[w],
                shared,
                private[w],
                now,
                w,
                start,
            )

    def row(step: int) -> Any:
        return (step, step, step * threads * method.batch, step * bits, seconds, float(value(problem, x)))

    stretch(0, 0, 0)  # compiles, not timed
    seconds, done = 0.0, 0
    history = [row(0)]
    with ThreadPoolExecutor(threads) as pool:
        while done < steps and np.isfinite(history[-1][-1]):
            if done > first:
                rates, first = _rates(method, threads, done, min(done + BLOCK, steps), clock), done
                marks = _marks(rates, rules.local_l2, done, steps, record_every)
            for step, recorded in marks:
                begin = time.perf_counter()
                in_threads(pool, stopped, advance, range(threads), [done] * threads, [step] * threads)
                seconds += time.perf_counter() - begin
                done = step
                for w in range(threads):
                    read_out(shared, private[w], x, memory[w])
                shared.v[:], shared.scale[:] = x, 1.0
                if recorded:
                    history.append(row(step))
                    if not np.isfinite(history[-1][-1]):
                        break
    kept = np.array(history, HISTORY)
    fun, finite = float(kept["f"][-1]), bool(np.isfinite(kept["f"][-1]))
    message = "all steps done" if finite else f"f is no longer finite at step {done}; try a smaller step size"
    return Result(
        x=x,
        fun=fun,
        memory=memory,
        history=kept,
        seconds=seconds,
        nit=done,
        threads=threads,
        repeatable=threads == 1,
        success=finite,
        status=DONE if finite else DIVERGED,
        message=message,
    )


def _message_bits(method: Any, problem: Any, d: int) -> float:
    """Payload bits of a step of a thread as a message: its k entries, or the average rows without compression."""
    c = method.compressor
    if not isinstance(c, Identity):
        return expected_payload_bits(c, np.ones(d))
    entries = problem.A.data.size / problem.n if isinstance(problem.A, CSR) else d
    v, one = np.zeros(d), Identity(sparse=True)
    empty = expected_payload_bits(one, v)
    v[0] = 1.0
    return empty + method.batch * entries * (expected_payload_bits(one, v) - empty)


def _check(method: Any, problem: Any, threads: Any, steps: Any, clock: Any, record_every: Any) -> None:
    require(isinstance(method, ParallelSGD), "method", method, "a method, such as ParallelSGD(...)", TypeError)
    require(
        is_slope_times_row(problem),
        "problem",
        type(problem).__name__,
        "a problem of rows and margins, from logistic or ridge",
        TypeError,
    )
    for name, number in (("threads", threads), ("steps", steps), ("record_every", record_every)):
        if number is not None or name != "record_every":
            whole_number(name, number)
    own = not isinstance(method.step, str)
    require(
        own, "step", method.step, "a number or a step size: no theorem of the package is about threads without locks"
    )
    require(clock in CLOCKS, "clock", clock, " or ".join(map(repr, CLOCKS)))
    compressor = method.compressor
    require(
        isinstance(compressor, Identity) or choose.implements(type(compressor)),
        "compressor",
        compressor,
        "TopK(k) or RandK(k) with a memory, or Identity(sparse=True) for plain SGD",
    )
    require(not getattr(compressor, "shared", False), "compressor", compressor, "a RandK that is not shared")
    kept = keeps_the_rest(method.feedback)
    plain = isinstance(compressor, Identity) and type(method.feedback) is NoFeedback
    require(
        kept or plain,
        "feedback",
        method.feedback,
        "ErrorFeedback(): what a thread does not send it stores uncompressed; with Identity also NoFeedback()",
    )
    require(
        isinstance(averaging(method), Last),
        "average",
        method.average,
        "'last': the threads have no iterate in common that could be averaged",
    )
    require(method.shards == "shared", "shards", method.shards, "'shared'")
    require(
        (method.momentum, method.aggregation) == (0.0, "mean"),
        "momentum and aggregation",
        (method.momentum, method.aggregation),
        "(0.0, 'mean')",
    )
    require(
        method.server is None and method.topology is None,
        "server and topology",
        (method.server, method.topology),
        "(None, None): threads share x",
    )
    require(isinstance(method.batch, int), "batch", method.batch, "an integer, at least 1")
    require(method.radius == math.inf, "radius", method.radius, "infinite: threads do not wait for a projection")
    require(method.exchange == "auto", "exchange", method.exchange, "'auto': nothing is exchanged")


def _streams(seed: int, w: int) -> np.ndarray:
    """Thread w's keys for rows and for rounding: those of worker w in the simulator's first replica."""
    return np.array([derive(np.uint64(derive(key(seed, what), 0)), w) for what in ("sampling", "rounding")], np.uint64)


def _rates(method: Any, threads: int, start: int, stop: int, clock: Any) -> list[np.ndarray]:
    """The rates of each thread's steps from ``start`` to ``stop``, one row per step."""
    each = 1 if clock == "thread" else threads
    count = each * (stop - start)
    eta = np.empty(count)
    fill_steps(as_step(method.step), each * start, eta)
    steps_of: Any = SimpleNamespace(eta=eta, rates=SimpleNamespace(constant=lambda number: np.full(count, number)))
    factors: Any = step_factors(method.feedback, steps_of)
    rates = np.stack([eta, *factors], axis=1)
    if clock == "thread":
        return [rates] * threads
    return [np.ascontiguousarray(rates[w::threads]) for w in range(threads)]


def _marks(rates: list[np.ndarray], l2: Any, start: int, steps: int, record_every: Any) -> Any:
    """The steps after which all threads stop, as pairs: the step, and whether the history gets a row.

    They stop to record, before the scale of x nears the smallest float, and where the rates end.
    """
    shrunk = l2 * np.array([r[:, ETA] for r in rates])
    require(
        bool((shrunk < 1.0).all()),
        "step",
        f"eta * l2 up to {shrunk.max():.6g}",
        "below 1: larger steps would reverse x; try a larger shift",
    )
    deep = np.floor(np.cumsum(-np.log1p(-shrunk).sum(axis=0)) / DEEPEST)
    stop, every = start + len(rates[0]), record_every or steps
    recorded = {*range(start - start % every + every, stop + 1, every)} | ({steps} if stop == steps else set())
    return [(int(s), s in recorded) for s in sorted(recorded | {stop, *(start + 1 + np.flatnonzero(np.diff(deep)))})]
