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

from ..core.processors import usable_cores
from ..reporting.progress import Progress
from .processes import each

COMMON = "common"
FIRST = "EntropyCoded logistic-sparse Composed sparse-rows Residual Bucketed lock-free NUQSGD CountSketch QSGD".split()
# the slowest jobs; the first one compiles what jobs on sparse rows share
PROBLEMS = (
    "logistic ridge softmax two-layer nonconvex-logistic quadratic quadratic-full sine-valley sine-quadratic"
    " saturating-quadratic langevin dropconnect logistic-sparse ridge-sparse softmax-sparse two-layer-sparse"
    " nonconvex-logistic-sparse"
).split()
D = 64  # length of the test vectors: 8 x 8 for compressors of matrices
STEPS, WORKERS = 3, 2


class NoSuchJob(ValueError):
    """The name of an unknown job."""


# --- what there is to be compiled -------------------------------------------------------------------------------------


def _problem(family: str) -> Any:
    """A small problem of a family; with ``-sparse`` at its end, on sparse rows."""
    import theory as th

    rng = np.random.default_rng(0)
    X: Any = rng.standard_normal((40, D))
    signs, classes = np.where(rng.random(40) < 0.5, -1.0, 1.0), rng.integers(0, 3, 40)
    if family.endswith("-sparse"):
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
    return make[family.removesuffix("-sparse")]()


def _listed_runs() -> dict[str, list[tuple]]:
    """By job: problem, method and options of `theory.run`; the jobs of problems have the problems' names."""
    import theory as th

    def method(compressor: Any = th.Identity(), of: Any = th.ParallelSGD, **options: Any) -> Any:  # noqa: B008
        return of(compressor, **{"step": th.Constant(0.01), **options})

    top, memory, sparse = th.TopK(6), th.ErrorFeedback(), th.Identity(sparse=True)
    half, qsgd, sketch = th.HalfPrecision(), th.Bucketed(th.QSGD(15), 16), th.CountSketch(width=20)
    shrinking = th.InverseTime(2.0, 0.1, 60.0)
    local = {"of": th.LocalSGD, "local_steps": 4}
    both = ("logistic", "logistic-sparse")
    rules = [
        th.PartialErrorFeedback(0.3),
        *(th.ContractiveErrorFeedback(c) for c in (th.Natural(), half, qsgd, sketch)),
        *(th.ImprovedContractiveErrorFeedback(th.Natural(), version=k) for k in (1, 2)),
        th.LinearSketchFeedback(sketch, 0.9),
    ]
    found: dict[str, list[tuple]] = {
        COMMON: [
            ("quadratic", method(batch=2)),
            ("quadratic", method(top, feedback=memory, average="uniform")),
            ("quadratic", method(top, feedback=memory, average="uniform"), {"replicas": 3}),
            ("quadratic", method(th.QSGD(7), momentum=0.9, nesterov=True, radius=0.3)),
        ],
        "averages": [
            *(
                ("logistic", method(average=average, step=shrinking))
                for average in ("uniform", "quadratic", th.Suffix(2), th.Polynomial(3.0, 1.0))
            ),
            ("logistic", method(sampling="shuffle")),
            ("logistic", method(shards="by_label")),
            ("logistic", method(batch=th.GrowingBatch(1.3))),
        ],
        "server": [
            ("logistic", method(momentum=0.9)),
            ("logistic", method(momentum=0.9, nesterov=True, compress="loss")),
            ("logistic", method(radius=0.3)),
            ("logistic", method(th.Sign(), aggregation="majority")),
            ("logistic", method(exchange="gather")),
            ("logistic", method(server=th.Adam())),
            ("logistic", method(server=th.LAMB())),
            ("logistic", method(), {"dtype": np.float32}),
            ("logistic", method(top, feedback=memory), {"dtype": np.float32}),
        ],
        "local-steps": [
            *((problem, method(**local), {"steps": 8}) for problem in both),
            *((problem, method(top, feedback=memory, **local), {"steps": 8}) for problem in both),
            ("logistic", method(average="uniform", **local), {"steps": 8}),
        ],
        "sparse-rows": [
            *(
                ("logistic-sparse", method(c, feedback=rule))
                for c in (top, th.RandK(6), th.RandomBlock(6), th.Bernoulli(0.1), th.Ultra(0.5))
                for rule in (th.NoFeedback(), memory)
            ),
            ("logistic-sparse", method(top, feedback=memory, momentum=0.9)),
            ("logistic-sparse", method(sparse, compress="loss", momentum=0.9)),
            ("logistic-sparse", method(sparse, compress="loss", average="uniform"), {"replicas": 3}),
        ],
        "loops": [
            *((problem, method()) for problem in ("quadratic", "quadratic-full")),
            *(
                (problem, method(average="uniform", radius=2.0), {"replicas": 3})
                for problem in ("quadratic", "quadratic-full")
            ),
            ("logistic-sparse", method(sparse, compress="loss")),
        ],
    }
    for rule in rules:
        found.setdefault(type(rule).__name__, []).append(("quadratic", method(top, feedback=rule)))
    for problem in PROBLEMS:
        found[problem] = [(problem, method()), (problem, method(batch=2), {"replicas": 3})]
        if problem.endswith("-sparse"):
            found[problem] += [(problem, method(sparse, compress="loss"))]
            found[problem] += [(problem, method(top, feedback=memory, compress="loss"))]
    return found


def _do_runs(name: str) -> None:
    import theory as th

    for problem, method, *options in _listed_runs()[name]:
        th.run(method, _problem(problem), **{"workers": WORKERS, "steps": STEPS} | (options[0] if options else {}))
    if name.removesuffix("-sparse") in ("logistic", "ridge", "softmax"):
        th.solve(_problem(name), 1e-3)


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
            th.run(th.ParallelSGD(c, step=th.Constant(0.01), feedback=rule), problem, workers=WORKERS, steps=STEPS)
        th.decode(th.encode(c, v, th.key(0)))
        th.compress(c, v, th.key(0))


def _lock_free() -> None:
    import theory as th

    for problem in ("logistic", "logistic-sparse"):
        for c, rule in (
            (th.Identity(), th.NoFeedback()),
            (th.TopK(6), th.ErrorFeedback()),
            (th.RandK(6), th.ErrorFeedback()),
        ):
            method = th.ParallelSGD(c, step=th.Constant(0.01), feedback=rule)
            th.run_lock_free(method, _problem(problem), threads=2, steps=STEPS)


def jobs() -> dict[str, Callable[[], None]]:
    """The jobs by name: common kernels, compressors, rules, problems, and kinds of runs."""
    from ..compressors import registered

    found: dict[str, Callable[[], None]] = {cls.__name__: partial(_compressor, cls) for cls in registered()}
    return found | {name: partial(_do_runs, name) for name in _listed_runs()} | {"lock-free": _lock_free}


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
