"""The command ``warm``: compile compressors, problems, rules and loops ahead, in several processes.

A kernel is compiled once for a problem, a compressor or a feedback rule, and never for a pair of them, so that a few
steps of one run with each of them are enough.  Kernels common to nearly all runs come first, in one process; then every
process finds them on disk, and no kernel is compiled twice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.arguments import usable_cores
from ..reporting.progress import Progress
from .ranks import each

COMMON = "common"
# the slowest jobs; the first ones compile what jobs on sparse rows share
FIRST = ("flagship", "EntropyCoded", "logistic-sparse", "Composed", "sparse-rows", "Residual", "Bucketed", "lock-free")
D = 64  # length of the test vectors: 8 x 8 for compressors of matrices
STEPS, WORKERS = 3, 4  # workers: as many as the examples of `PermK` are for


class NoSuchJob(ValueError):
    """The name of an unknown job."""


# --- jobs -------------------------------------------------------------------------------------------------------------


def _problems() -> dict[str, Callable]:
    """A small problem of each family; with ``-sparse`` at its end, on sparse rows."""
    from scipy.sparse import random

    import theory as th

    rng = np.random.default_rng(0)
    X, sparse = rng.standard_normal((40, D)), random(40, 3 * D, 0.05, format="csr", random_state=0)
    signs, classes = np.where(rng.random(40) < 0.5, -1.0, 1.0), rng.integers(0, 3, 40)
    rough = np.random.default_rng(1).standard_normal((12, 12)) / 4.0
    of_rows: dict[str, Callable] = {
        "logistic": lambda rows: th.logistic((rows, signs), l2=0.01),
        "ridge": lambda rows: th.ridge((rows, signs), l2=0.01),
        "softmax": lambda rows: th.softmax((rows, classes), l2=0.01),
        "two-layer": lambda rows: th.two_layer((rows, classes), width=8, l2=0.01),
        "nonconvex-logistic": lambda rows: th.nonconvex_logistic((rows, signs), 0.01),
    }
    others: dict[str, Callable] = {
        "quadratic": lambda: th.quadratic(np.linspace(0.5, 1.5, D), covariance=0.5),
        "quadratic-full": lambda: th.quadratic(np.linspace(0.5, 1.5, 12), covariance=rough @ rough.T),
        "sine-valley": lambda: th.sine_valley(),
        "sine-quadratic": lambda: th.sine_quadratic(np.ones(6), 0.5, 1.0),
        "saturating-quadratic": lambda: th.saturating_quadratic(np.ones(6), covariance=0.25),
        "langevin": lambda: th.diversified(th.ridge((X, signs), l2=0.01), th.Langevin(0.1)),
        "dropconnect": lambda: th.diversified(th.ridge((X, signs), l2=0.01), th.DropConnect(0.8)),
    }
    dense = {name: partial(make, X) for name, make in of_rows.items()}
    return dense | others | {f"{name}-sparse": partial(make, sparse) for name, make in of_rows.items()}


def _listed_runs() -> dict[str, list[tuple]]:
    """By job: problem, method and options of `theory.run`; the jobs of problems have the problems' names."""
    import theory as th

    def sgd(compressor: Any = th.Identity(), of: Any = th.ParallelSGD, **fields: Any) -> Any:  # noqa: B008
        return of(compressor, **{"step": th.Constant(0.01), **fields})

    def runs(problem: str, *methods: Any, **options: Any) -> list[tuple]:
        return [(problem, method, options) for method in methods]

    top, memory, sparse = th.TopK(6), th.ErrorFeedback(), th.Identity(sparse=True)
    half, qsgd, sketch = th.HalfPrecision(), th.Bucketed(th.QSGD(15), 16), th.CountSketch(width=20)
    averages = ("uniform", "quadratic", th.Suffix(2), th.Polynomial(3.0, 1.0))
    shrinking, local = th.InverseTime(2.0, 0.1, 60.0), partial(sgd, of=th.LocalSGD, local_steps=4)
    averaged, within = sgd(top, feedback=memory, average="uniform"), sgd(average="uniform", radius=2.0)
    without_loss = sgd(sparse, compress="loss")
    sparsifiers = (top, th.RandK(6), th.RandomBlock(6), th.Bernoulli(0.1), th.Ultra(0.5))
    rules = [
        th.PartialErrorFeedback(0.3),
        *(th.ContractiveErrorFeedback(c) for c in (th.Natural(), half, qsgd, sketch)),
        *(th.ImprovedContractiveErrorFeedback(th.Natural(), version=k) for k in (1, 2)),
        th.LinearSketchFeedback(sketch, 0.9),
    ]
    found: dict[str, list[tuple]] = {
        COMMON: [
            *runs("quadratic", sgd(batch=2), averaged, sgd(th.QSGD(7), momentum=0.9, nesterov=True, radius=0.3)),
            *runs("quadratic", averaged, replicas=3),
        ],
        "averages": [
            *runs("logistic", *(sgd(average=average, step=shrinking) for average in averages)),
            *runs("logistic", sgd(sampling="shuffle"), sgd(shards="by_label"), sgd(batch=th.GrowingBatch(1.3))),
            *runs("quadratic", within, replicas=3),
            *runs("quadratic-full", within, replicas=3),
        ],
        "server": [
            *runs("logistic", sgd(momentum=0.9), sgd(momentum=0.9, nesterov=True, compress="loss"), sgd(radius=0.3)),
            *runs("logistic", sgd(th.Sign(), aggregation="majority"), sgd(exchange="gather")),
            *runs("logistic", sgd(server=th.Adam()), sgd(server=th.LAMB())),
            *runs("logistic", sgd(), sgd(top, feedback=memory), dtype=np.float32),
        ],
        "local-steps": [
            *runs("logistic", local(), local(top, feedback=memory), local(average="uniform"), steps=8),
            *runs("logistic-sparse", local(), local(top, feedback=memory), steps=8),
        ],
        "sparse-rows": [
            *runs("logistic-sparse", *(sgd(c, feedback=r) for c in sparsifiers for r in (th.NoFeedback(), memory))),
            *runs("logistic-sparse", sgd(top, feedback=memory, momentum=0.9)),
            *runs("logistic-sparse", sgd(sparse, compress="loss", momentum=0.9)),
            *runs("logistic-sparse", sgd(sparse, compress="loss", average="uniform"), replicas=3),
        ],
    }
    for rule in rules:
        found.setdefault(type(rule).__name__, []).extend(runs("quadratic", sgd(top, feedback=rule)))
    for problem in _problems():
        found[problem] = [*runs(problem, sgd()), *runs(problem, sgd(batch=2), replicas=3)]
        if problem.endswith("-sparse"):
            found[problem] += runs(problem, without_loss, sgd(top, feedback=memory, compress="loss"))
    return found


def _do_runs(name: str) -> None:
    import theory as th

    problems = _problems()
    for problem, method, options in _listed_runs()[name]:
        th.run(method, problems[problem](), **{"workers": WORKERS, "steps": STEPS} | options)
    if name.removesuffix("-sparse") in ("logistic", "ridge", "softmax"):
        th.solve(problems[name](), 1e-3)


def _compressor(cls: type) -> None:
    """Take steps with and without memory, encode and decode a message, for every type among the class's examples."""
    from numba import typeof

    import theory as th

    problem, v, seen = _problems()["quadratic"](), np.linspace(-1.0, 1.0, D), set()
    for c in th.compressor_examples(D):
        if type(c) is not cls or typeof(c) in seen:
            continue
        seen.add(typeof(c))
        for rule in (th.NoFeedback(), th.ErrorFeedback()):
            th.run(th.ParallelSGD(c, step=th.Constant(0.01), feedback=rule), problem, workers=WORKERS, steps=STEPS)
        th.decode(th.encode(c, v, th.key(0)))
        th.compress(c, v, th.key(0))


def _lock_free() -> None:
    import theory as th

    memory, problems = th.ErrorFeedback(), _problems()
    for problem in ("logistic", "logistic-sparse"):
        for c, rule in ((th.Identity(), th.NoFeedback()), (th.TopK(6), memory), (th.RandK(6), memory)):
            method = th.ParallelSGD(c, step=th.Constant(0.01), feedback=rule)
            th.run_lock_free(method, problems[problem](), threads=2, steps=STEPS)


def _flagship() -> None:
    """What a rank of the flagship compiles, messages included; where there is no MPI, nothing."""
    from ..problems.base import value
    from . import flagship

    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return
    configuration, comm = flagship.Configuration(), MPI.COMM_SELF
    _, problem, constants, cells = flagship.prepare(configuration, comm)
    flagship.compile_together(flagship.make_jobs(configuration, cells, constants), problem, comm, lambda _: None)
    flagship.gradient_numbers(problem, np.zeros(problem.d), comm)
    value(problem, np.zeros(problem.d))


def jobs() -> dict[str, Callable[[], None]]:
    """The jobs by name: common kernels, compressors, rules, problems, and kinds of runs."""
    from ..compressors import registered

    found: dict[str, Callable[[], None]] = {cls.__name__: partial(_compressor, cls) for cls in registered()}
    return (
        found
        | {name: partial(_do_runs, name) for name in _listed_runs()}
        | {"lock-free": _lock_free, "flagship": _flagship}
    )


def chosen(names: Sequence[str] = ()) -> list[str]:
    """The jobs with these names (default: all), case-insensitive, in the order of execution.

    Raises
    ------
    NoSuchJob
        For an unknown name.
    """
    known = {name.lower(): name for name in jobs()}
    for name in names:
        if name.lower() not in known:
            from ..reporting.files import nearest

            raise NoSuchJob(f"unknown {name!r}: {nearest(name, list(known.values()))}")
    wanted = {known[name.lower()] for name in names} or set(known.values())
    return [name for name in dict.fromkeys([COMMON, *FIRST, *known.values()]) if name in wanted]


# --- the command ------------------------------------------------------------------------------------------------------


def do(name: str) -> float:
    """Run one job; return its processor seconds."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the results of these runs do not matter
        jobs()[name]()
    return time.process_time() - begin


def warm(names: Sequence[str], processes: int | None, say: Callable[[str], object]) -> int:
    """Compile ahead.

    Parameters
    ----------
    names : sequence of str
        From :func:`chosen`.
    processes : int, optional
        Number of processes; by default the number of cores.
    say : callable
        Called with the lines of output.

    Returns
    -------
    int
        0.
    """
    from ..core import when_compiling
    from ..core.compile_cache import cache_root

    when_compiling(None)  # shown by the bar
    begin, names = time.perf_counter(), list(names)
    processes = processes or usable_cores()
    rest = [name for name in names if name != COMMON]
    with Progress("warm", len(names), " jobs") as progress:
        for part in (names[: len(names) - len(rest)], rest):
            for number, _ in each(do, part, processes):
                progress.done(f"warm {part[number]}")
    took, count = time.perf_counter() - begin, f"{len(names)} job{'s' * (len(names) != 1)}"
    say(f"{count} in {took:.0f} s, {min(processes, max(1, len(rest)))} at a time; compiled code is in {cache_root()}")
    return 0
