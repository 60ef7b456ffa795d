"""The command ``warm``: compile compressors, problems, rules and loops ahead, in several processes.

A kernel is compiled once for a problem, a compressor or a feedback rule, and never for a pair of them, so that a few
steps of one run with each of them are enough.  Kernels common to nearly all runs come first, in one process; then every
process finds them on disk, and no kernel is compiled twice.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.processors import usable_cores
from ..reporting.progress import on_terminal
from .processes import each

__all__ = ["COMMON", "NoSuchJob", "chosen", "jobs", "warm"]

COMMON = "common"
FIRST = (
    "EntropyCoded",
    "logistic-sparse",
    "Composed",
    "sparse-rows",
    "Residual",
    "Bucketed",
    "lock-free",
    "NUQSGD",
    "CountSketch",
    "QSGD",
)  # the slowest jobs; the first one compiles what jobs on sparse rows share
D = 64  # length of the test vectors: 8 x 8 for compressors of matrices
STEPS, WORKERS = 3, 2


class NoSuchJob(ValueError):
    """The name of an unknown job."""


# --- what there is to be compiled -------------------------------------------------------------------------------------


def _method(compressor=None, **options):
    import theory as th

    return th.ParallelSGD(th.Identity() if compressor is None else compressor, **{"step": th.Constant(0.01), **options})


def _run(method: Any, problem: Any, **options: Any) -> None:
    from ..cluster import run

    run(method, problem, **{"workers": WORKERS, "steps": STEPS, **options})


def _table():
    """A few rows with labels and targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, D))
    return X, np.where(rng.random(40) < 0.5, -1.0, 1.0), rng.integers(0, 3, 40)


def _problem(family: str, sparse: bool = False) -> Any:
    """A small problem of a family."""
    import theory as th

    X, signs, classes = _table()
    if sparse:
        from scipy.sparse import random

        X = random(40, 3 * D, 0.05, format="csr", random_state=0)
    rough = np.random.default_rng(1).standard_normal((12, 12)) / 4.0
    make: dict[str, Callable] = {
        "logistic": lambda: th.logistic((X, signs), l2=0.01),
        "ridge": lambda: th.ridge((X, signs), l2=0.01),
        "softmax": lambda: th.softmax((X, classes), l2=0.01),
        "two-layer": lambda: th.two_layer((X, classes), width=8, l2=0.01),
        "nonconvex-logistic": lambda: th.nonconvex_logistic((X, signs), 0.01),
        "quadratic": lambda: th.quadratic(np.linspace(0.5, 1.5, D), covariance=0.5),
        "quadratic-full": lambda: th.quadratic(np.linspace(0.5, 1.5, 12), covariance=rough @ rough.T),
        "sine-valley": lambda: th.sine_valley(),
        "sine-quadratic": lambda: th.sine_quadratic(np.ones(6), 0.5, 1.0),
        "saturating-quadratic": lambda: th.saturating_quadratic(np.ones(6), covariance=0.25),
        "langevin": lambda: th.diversified(th.ridge((X, signs), l2=0.01), th.Langevin(0.1)),
        "dropconnect": lambda: th.diversified(th.ridge((X, signs), l2=0.01), th.DropConnect(0.8)),
    }
    return make[family]()


def _common() -> None:
    """Compile what nearly every run calls: rows, rates, averages, the server, draws, the loop."""
    import theory as th

    problem = _problem("quadratic")
    _run(_method(th.Identity(), batch=2), problem)
    _run(_method(th.TopK(6), feedback=th.ErrorFeedback(), average="uniform"), problem)
    _run(_method(th.TopK(6), feedback=th.ErrorFeedback(), average="uniform"), problem, replicas=3)
    _run(_method(th.QSGD(7), momentum=0.9, nesterov=True, radius=0.3), problem)


def _compressor(cls: type) -> None:
    """Steps with and without memory, a message encoded and decoded, for every type among the class's examples."""
    from numba import typeof

    import theory as th

    problem, v, seen = _problem("quadratic"), np.linspace(-1.0, 1.0, D), set()
    for c in th.compressor_examples(D):
        if type(c) is not cls or typeof(c) in seen:
            continue
        seen.add(typeof(c))
        for rule in (th.NoFeedback(), th.ErrorFeedback()):
            _run(_method(c, feedback=rule), problem)
        th.decode(th.encode(c, v, th.key(0)))
        th.compress(c, v, th.key(0))


def _family(family: str, sparse: bool) -> None:
    """Steps, replicas, f and its minimum."""
    import theory as th

    problem = _problem(family, sparse)
    _run(_method(th.Identity()), problem)
    _run(_method(th.Identity(), batch=2), problem, replicas=3)
    if sparse:
        for c, rule in ((th.Identity(sparse=True), th.NoFeedback()), (th.TopK(6), th.ErrorFeedback())):
            _run(_method(c, feedback=rule, compress="loss"), problem)
    if family in ("logistic", "ridge", "softmax"):
        th.solve(problem, 1e-3)


def _rule(name: str) -> None:
    """Steps with a feedback rule, for any compressor of the memory."""
    import theory as th

    half, qsgd, sketch = th.HalfPrecision(), th.Bucketed(th.QSGD(15), 16), th.CountSketch(width=20)
    memories: dict[str, list] = {
        "PartialErrorFeedback": [th.PartialErrorFeedback(0.3)],
        "ContractiveErrorFeedback": [th.ContractiveErrorFeedback(c) for c in (th.Natural(), half, qsgd, sketch)],
        "ImprovedContractiveErrorFeedback": [
            th.ImprovedContractiveErrorFeedback(th.Natural(), version=k) for k in (1, 2)
        ],
        "LinearSketchFeedback": [th.LinearSketchFeedback(sketch, 0.9)],
    }
    for rule in memories[name]:
        _run(_method(th.TopK(6), feedback=rule), _problem("quadratic"))


def _averages() -> None:
    import theory as th

    problem = _problem("logistic")
    for average in ("uniform", "quadratic", th.Suffix(2), th.Polynomial(3.0, 1.0)):
        _run(_method(average=average, step=th.InverseTime(2.0, 0.1, 60.0)), problem)
    for options in ({"sampling": "shuffle"}, {"shards": "by_label"}, {"batch": th.GrowingBatch(1.3)}):
        _run(_method(**options), problem)


def _server() -> None:
    import theory as th

    problem = _problem("logistic")
    _run(_method(momentum=0.9), problem)
    _run(_method(momentum=0.9, nesterov=True, compress="loss"), problem)
    _run(_method(radius=0.3), problem)
    _run(_method(th.Sign(), aggregation="majority"), problem)
    _run(_method(exchange="gather"), problem)
    _run(_method(server=th.Adam()), problem)
    _run(_method(server=th.LAMB()), problem)
    _run(_method(), problem, dtype=np.float32)
    _run(_method(th.TopK(6), feedback=th.ErrorFeedback()), problem, dtype=np.float32)


def _local() -> None:
    import theory as th

    for problem in (_problem("logistic"), _problem("logistic", sparse=True)):
        for c, rule in ((th.Identity(), th.NoFeedback()), (th.TopK(6), th.ErrorFeedback())):
            method = th.LocalSGD(c, step=th.Constant(0.01), local_steps=4, feedback=rule)
            _run(method, problem, steps=8)
    _run(
        th.LocalSGD(th.Identity(), step=th.Constant(0.01), local_steps=4, average="uniform"),
        _problem("logistic"),
        steps=8,
    )


def _sparse() -> None:
    """Sparse rows: compressors that send entries, with and without memory and momentum."""
    import theory as th

    problem, memory = _problem("logistic", sparse=True), th.ErrorFeedback()
    for c in (th.TopK(6), th.RandK(6), th.RandomBlock(6), th.Bernoulli(0.1), th.Ultra(0.5)):
        for rule in (th.NoFeedback(), memory):
            _run(_method(c, feedback=rule), problem)
    _run(_method(th.TopK(6), feedback=memory, momentum=0.9), problem)
    _run(_method(th.Identity(sparse=True), compress="loss", momentum=0.9), problem)
    _run(_method(th.Identity(sparse=True), compress="loss", average="uniform"), problem, replicas=3)


def _loops() -> None:
    """The compiled loops that replace a round function."""
    import theory as th

    for family in ("quadratic", "quadratic-full"):
        _run(_method(), _problem(family))
        _run(_method(average="uniform", radius=2.0), _problem(family), replicas=3)
    _run(_method(th.Identity(sparse=True), compress="loss"), _problem("logistic", sparse=True))


def _lock_free() -> None:
    import theory as th

    for sparse in (False, True):
        problem = _problem("logistic", sparse)
        for c, rule in (
            (th.Identity(), th.NoFeedback()),
            (th.TopK(6), th.ErrorFeedback()),
            (th.RandK(6), th.ErrorFeedback()),
        ):
            th.run_lock_free(_method(c, feedback=rule), problem, threads=2, steps=STEPS)


DENSE = (
    "logistic",
    "ridge",
    "softmax",
    "two-layer",
    "nonconvex-logistic",
    "quadratic",
    "quadratic-full",
    "sine-valley",
    "sine-quadratic",
    "saturating-quadratic",
    "langevin",
    "dropconnect",
)
SPARSE = ("logistic", "ridge", "softmax", "two-layer", "nonconvex-logistic")
RULES = ("PartialErrorFeedback", "ContractiveErrorFeedback", "ImprovedContractiveErrorFeedback", "LinearSketchFeedback")


def jobs() -> dict[str, Callable[[], None]]:
    """The jobs by name: common kernels, compressors, rules, problems, and kinds of runs."""
    from ..compressors import registered

    found: dict[str, Callable[[], None]] = {COMMON: _common}
    found |= {cls.__name__: partial(_compressor, cls) for cls in registered()}
    found |= {name: partial(_rule, name) for name in RULES}
    found |= {name: partial(_family, name, False) for name in DENSE}
    found |= {f"{name}-sparse": partial(_family, name, True) for name in SPARSE}
    return found | {
        "averages": _averages,
        "server": _server,
        "local-steps": _local,
        "sparse-rows": _sparse,
        "loops": _loops,
        "lock-free": _lock_free,
    }


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
    from tqdm import tqdm

    from ..core import when_compiling
    from ..core.compile_cache import cache_root

    when_compiling(None)  # shown by the bar
    begin, names = time.perf_counter(), list(names)
    processes = processes or usable_cores()
    rest = [name for name in names if name != COMMON]
    with tqdm(total=len(names), unit=" jobs", file=sys.stderr, ncols=100, disable=not on_terminal()) as bar:
        for part in (names[: len(names) - len(rest)], rest):
            for number, _ in each(do, part, processes):
                bar.update()
                bar.set_postfix_str(part[number])
    took, count = time.perf_counter() - begin, f"{len(names)} job{'s' * (len(names) != 1)}"
    say(f"{count} in {took:.0f} s, {min(processes, max(1, len(rest)))} at a time; compiled code is in {cache_root()}")
    return 0
