"""Checked arguments of a run, with all defaults of the method resolved."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from .. import __version__
from ..compressors.closed_forms import check
from ..compressors.codec import check_parts
from ..core import require
from ..core.arguments import (
    LARGEST_BATCH,
    MANY,
    MOST,
    finite_number,
    flag,
    float_type,
    is_whole,
    real_array,
    whole_number,
)
from ..core.digests import deep_digest, digest
from ..core.fingerprints import PACKAGE
from ..core.random import key
from ..core.stored_arrays import About
from ..core.vectors import read_only
from ..methods.custom import for_these_workers
from ..methods.gradients import Shards, drawn, make_shards, warn_of_unequal_parts
from ..methods.graphs.gossip import stored_bytes
from ..methods.local.local_sgd import LocalSGD, check_single_message
from ..methods.memory.error_feedback import check_feedback, memory_bytes
from ..methods.memory.stability import warn_if_unstable
from ..methods.schedules import Function, Suffix, batch_size
from ..methods.server import check_server, server_bytes
from ..methods.sgd import averaging
from ..methods.sparse.model import SparseRows, sparse_rows
from ..methods.theory_steps import TheoryStep, warn_of_dense_steps, warn_of_long_steps, with_theory_step
from ..problems.base import dimension, regularization, rows
from ..problems.evaluate import warn_of_wrong_gradient
from ..problems.linear import astype
from ..problems.network import initial_point
from .context import PURPOSES

UNKNOWN = "what cannot be compared"
RECORDS = 50  # default number of rows of a history


class Setup(NamedTuple):
    """A checked run with all defaults resolved.

    ``l2`` is the weight of the regularizer in the compressed vector, ``local_l2`` the one that every worker applies
    locally; ``start`` has the first model, or that of each worker; ``batches`` are the sizes of the first batches, the
    last of which holds for all later steps; ``own`` has the rows that each client draws in a round if it makes passes
    over its own rows, and is empty otherwise; the history gets a row after the rounds ``records``; ``watched`` has, for
    each round, the row of the compression errors, or -1; there are ``every`` rounds between two rows.  ``about()``
    describes the run, for comparison with a checkpoint.
    """

    method: Any
    problem: NamedTuple
    workers: int
    d: int
    l2: float
    local_l2: float
    average: NamedTuple
    batches: np.ndarray
    shards: Shards
    own: np.ndarray
    purposes: np.ndarray
    x0: np.ndarray
    start: np.ndarray
    wire: np.ndarray
    records: np.ndarray
    memory_bytes: int
    server_bytes: int
    sparse: SparseRows | None
    watched: np.ndarray
    replicas: int
    every: int
    about: Callable[[], dict]
    theory: TheoryStep | None

    def with_records(self, records: np.ndarray) -> Setup:
        """The same run, with a row of the history after these rounds; errors are watched if they were before."""
        watched = np.full(self.watched.size, -1, np.int64)
        if watched.size:
            last = records[records > 0]
            watched[last - 1] = np.arange(records.size - last.size, records.size)
        return self._replace(records=read_only(records), watched=read_only(watched))


def prepare(
    method: Any,
    problem: Any,
    *,
    workers: Any,
    steps: Any = None,
    seed: Any = 0,
    samples: Any = None,
    x0: Any = None,
    replicas: Any = 1,
    record_every: Any = None,
    dtype: Any = np.float64,
    wire_dtype: Any = np.float32,
    comm: Any = None,
    compression_error: Any = False,
    epochs: Any = None,
    identity: Any = "",
) -> Setup:
    """Check the arguments of `run` and resolve all defaults."""
    require(
        hasattr(method, "round") and hasattr(method, "domain") and not isinstance(method, type),
        "method",
        method,
        "a method, such as ParallelSGD(...)",
        TypeError,
    )
    method.domain()  # changes by _replace have not been checked
    require(
        dimension.implements(type(problem)),
        "problem",
        type(problem).__name__,
        "a problem, from logistic, ridge, softmax, quadratic or function",
        TypeError,
    )
    for name, number in (("workers", workers), ("replicas", replicas)):
        whole_number(name, number, high=MANY)
    for name, number in (("steps", steps), ("samples", samples), ("record_every", record_every)):
        if number is not None:
            whole_number(name, number)
    flag("compression_error", compression_error)
    require(isinstance(identity, str), "identity", identity, "a string", TypeError)
    given = (steps, samples, epochs)
    one = sum(number is not None for number in given) == 1
    require(one, "steps, samples and epochs", given, "exactly one of the three")
    if epochs is not None:
        samples = _samples(epochs, problem, int(workers))
    dtype, wire_dtype = float_type("dtype", dtype), float_type("wire_dtype", wire_dtype)
    fitting = is_whole(seed) and 0 <= int(seed) < 2**64
    require(fitting, "seed", seed, "an integer from 0 to 2**64 - 1")
    method, own = with_local_epochs(method, problem, int(workers))
    batches, steps = plan_batches(method.batch, steps, samples, method.local_steps)
    evaluated = workers * drawn(batches, steps)
    what = f"{steps}, with {workers} workers {evaluated:.3g} gradients"
    require(evaluated <= MOST, "steps", what, "up to 2**53 gradients of all workers together")
    rounds = steps // method.local_steps
    known = comm is None or hasattr(comm, "Get_size")
    require(known, "comm", comm, "None, or a communicator of mpi4py", TypeError)
    numbers = dict(workers=workers, seed=seed, replicas=replicas, dtype=str(dtype), wire_dtype=str(wire_dtype))
    ranks, rank = (1, 0) if comm is None else (comm.Get_size(), comm.Get_rank())
    require(workers % ranks == 0, "workers", workers, f"a multiple of the number of ranks, {ranks}")

    problem = astype(problem, dtype)
    d = int(dimension(problem))
    method = for_these_workers(method, int(workers), d)
    check_parts("compressor", method.compressor)
    rule, method = method.feedback, method.settled(problem)
    method, theory = with_theory_step(method, problem, int(workers))
    if isinstance(method.step, Function):
        method = method._replace(step=method.step.table(steps))
    check(method.compressor, d)
    check_feedback(rule, method.compressor, d)
    check_server(method.server, problem, d)
    if rank == 0:
        warn_if_unstable(rule, method.compressor, d)
    x0 = np.ascontiguousarray(initial_point(problem, int(seed)) if x0 is None else real_array("x0", x0), dtype)
    several = getattr(method, "models", "one") == "workers"
    each = several and x0.shape == (workers, d)
    allowed = f"shape ({d},)" + f" or ({workers}, {d})" * several
    require(each or x0.shape == (d,), "x0", f"shape {x0.shape}", allowed)
    require(bool(np.isfinite(x0).all()), "x0", "NaN or Inf", "finite numbers")
    start, x0 = np.atleast_2d(x0), x0.mean(axis=0) if each else x0
    average = averaging(method)
    if isinstance(average, Suffix):
        require(average.start < steps, "average", average, f"a suffix that starts before the last of {steps} steps")
    shards = make_shards(method.shards, method.sampling, int(rows(problem)), workers, getattr(problem, "b", None))
    require(int(batches.max()) <= LARGEST_BATCH, "batch", int(batches.max()), f"up to {LARGEST_BATCH}")
    if rank == 0:
        warn_of_unequal_parts(method, shards, int(workers))
    if several:  # on a graph all workers have equal weight
        shards = shards._replace(weight=np.full(workers, 1.0 / workers))
    smallest, largest = int((shards.stop - shards.start).min()), int(batches.max())
    require(
        not shards.shuffle or largest <= smallest or own.size > 0,
        "batch",
        largest,
        f"at most the rows of a worker, {smallest}, where they are drawn without replacement",
    )
    if isinstance(method, LocalSGD):
        check_single_message(method, d)
    l2, whole = float(regularization(problem)), method.compress == "full"
    every = -(-record_every // method.local_steps) if record_every else max(1, rounds // RECORDS)
    rows_of_history = rounds // every + 1
    require(rows_of_history <= MANY, "record_every", record_every, f"steps such that the history has up to {MANY} rows")
    records = np.unique(np.append(np.arange(0, rounds, every), rounds)).astype(np.int64)
    purposes = np.array([key(seed, purpose) for purpose in (*PURPOSES, "clients")], np.uint64)
    stored = memory_bytes(method.feedback, method.compressor, d, 8 * wire_dtype.itemsize, 8 * dtype.itemsize)
    if hasattr(method, "stores"):  # a user's method need not state what it stores
        stored = stored_bytes(method, int(workers), d, 8 * dtype.itemsize)
    sparse, wire = sparse_rows(method, problem, largest), np.empty(0, wire_dtype)
    if rank == 0:
        warn_of_dense_steps(method, problem, sparse)
        if theory is None:  # the step of a theorem is covered by it, however long its first steps are
            warn_of_long_steps(method, problem, steps, int(workers), int(batches[0]))
        warn_of_wrong_gradient(problem, x0)
    watched = np.full(rounds if compression_error else 0, -1, np.int64)
    about = About(lambda: _describe(method, problem, start, watched.size > 0, numbers, identity))
    batches, purposes, own = map(read_only, (batches, purposes, own))
    rows_of, start_of, stop_of, weight = (read_only(a) for a in (shards.rows, shards.start, shards.stop, shards.weight))
    shards = Shards(rows_of, start_of, stop_of, weight, shards.shuffle)
    return Setup(
        method,
        problem,
        int(workers),
        d,
        l2 if whole else 0.0,
        0.0 if whole else l2,
        average,
        batches,
        shards,
        own,
        purposes,
        x0,
        start,
        wire,
        records,
        stored,
        server_bytes(method, d, 8 * dtype.itemsize, int(workers)),
        sparse,
        watched,
        int(replicas),
        int(every),
        about,
        theory,
    ).with_records(records)


def with_local_epochs(method: Any, problem: Any, workers: int) -> tuple[Any, np.ndarray]:
    """The method with the local steps of the client with most rows, and the rows that each draws in a round."""
    epochs = getattr(method, "epochs", None)
    if epochs is None:
        return method, np.empty(0, np.int64)
    shards = make_shards(method.shards, method.sampling, int(rows(problem)), workers, getattr(problem, "b", None))
    own = int(epochs) * (shards.stop - shards.start)
    return method._replace(local_steps=-(-int(own.max()) // int(method.batch))), own


def _samples(epochs: Any, problem: Any, workers: int) -> int:
    """The budget of each worker for so many passes of all workers together over the rows."""
    n = int(rows(problem))
    require(0 < finite_number("epochs", epochs) < np.inf, "epochs", epochs, "a finite number above 0")
    require(n > 0, "epochs", epochs, "nothing, where a problem has no rows to pass over: give steps or samples")
    require(epochs * n <= MOST, "epochs", epochs, f"up to {MOST / n:.3g}, 2**53 gradients of all workers together")
    return max(1, int(epochs * n / workers * (1.0 + 1e-12)))  # whole up to rounding errors is whole


# the results of a run depend on the code of these subpackages
COMPUTING = ("core", "wire", "problems", "compressors", "methods", "cluster")


@cache
def package_code() -> str:
    """The software: versions, and a digest of the package's own code."""
    files = [path.read_bytes() for name in COMPUTING for path in sorted((PACKAGE / name).rglob("*.py"))]
    code = digest(np.frombuffer(b"".join(files), np.uint8))[:8]
    used = {"theory": __version__, "numpy": np.__version__, "numba": numba.__version__}
    return ", ".join([f"{name} {found}" for name, found in used.items()] + [f"code {code}", platform.machine()])


def _describe(
    method: Any, problem: Any, start: np.ndarray, watched: bool, numbers: dict, identity: str
) -> dict[str, list[str]]:
    """The description of a run for comparison with another: for each part a digest, and a text for messages."""
    arrays = {name: part for name, part in zip(problem._fields, problem, strict=True) if _has_array(part)}
    others = {name: part for name, part in problem._asdict().items() if name not in arrays}
    code, unknown = deep_digest((method, type(method).round))
    rest, more = deep_digest((type(problem), others))
    given = [f"identity {identity}"] * bool(identity)  # in place of code that cannot be compared
    told = {
        "method": [*(given or [code]), repr(method)],
        "problem": [*(given or [rest]), f"{type(problem).__name__} with {others}"],
        UNKNOWN: [", ".join([] if identity else dict.fromkeys(unknown + more))],
        "data": [digest(arrays), f"{', '.join(arrays)} with digest {digest(arrays)[:8]}"],
        "x0": [digest(start), f"digest {digest(start)[:8]}"],
        "compression_error": [str(watched)],
        "version": [package_code()],
    }
    return {name: [str(number)] for name, number in numbers.items()} | told


def _has_array(part: Any) -> bool:
    return isinstance(part, np.ndarray) or (isinstance(part, tuple) and any(map(_has_array, part)))


def plan_batches(batch: Any, steps: Any, samples: Any, local_steps: int = 1) -> tuple[np.ndarray, int]:
    """The batch sizes of the first steps (the last holds for all later steps), and the number of steps.

    With ``samples``, as many whole rounds as a worker's budget allows.
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


def _growing(batch: Any, steps: Any, samples: Any) -> list[int]:
    """The batch sizes of ``steps`` steps, or until a worker's budget is exceeded."""
    sizes: list[int] = []
    spent = 0
    while len(sizes) < steps if samples is None else spent <= samples:
        size = batch_size(batch, len(sizes))
        require(
            is_whole(size) and size >= 1 and (size <= LARGEST_BATCH or samples is not None),
            "batch",
            f"{size!r} at step {len(sizes)}",
            f"integers from 1 to {LARGEST_BATCH}",
        )
        sizes.append(min(int(size), 2**52))
        spent += int(size)
    return sizes
