"""Runs in stages: CR-PSGD-Catalyst, and QSVRG with the parameters of its theorem.

CR-PSGD-Catalyst uses growing batches for smooth functions that need not be convex, by proximal problems.  Algorithm 2
of Yu and Jin (ICML 2019)::

    for k = 1, ..., K = floor(sqrt(N T)):
        h(x) = f(x) + (theta/2) ||x - y||^2
        y = CR-PSGD on h from y, with a budget of floor(sqrt(T/N)) gradients for each worker

QSVRG has a row of the history for each epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .. import bounds
from ..compressors.closed_forms import omega
from ..compressors.full_precision import Identity
from ..compressors.quantizers.qsgd import QSGD
from ..core import require
from ..core.arguments import finite_number, real_array, whole_number
from ..core.random import key
from ..core.result import Result
from ..methods.differences.diana import QSVRG
from ..methods.schedules import Constant, GrowingBatch
from ..methods.sgd import ParallelSGD
from ..problems.base import check_problem, dimension, rows
from ..problems.constants import lipschitz, max_lipschitz, strong_convexity
from ..problems.evaluate import gradient, value
from ..problems.quadratics import proximal
from .run import DIVERGED, DONE, ended, run

# --- CR-PSGD-Catalyst ------------------------------------------------------------------------------------------------

FULL = Identity()

COSTS = (
    "step",
    "samples",
    "rounds",
    "bits_up",
    "bits_down",
    "message_bytes_up",
    "message_bytes_down",
    "seconds",
    "seconds_gradient",
    "seconds_coding",
    "seconds_exchange",
)


def catalyst(
    problem: Any,
    *,
    workers: int,
    samples: int,
    first: int = 1,
    rho: float | None = None,
    theta: float | None = None,
    step: float | None = None,
    seed: int = 0,
    x0: ArrayLike | None = None,
    comm: Any = None,
    compressor: NamedTuple = FULL,
    wire_dtype: DTypeLike = np.float32,
    record_every: int | None = None,
    callback: Callable[[np.ndarray], object] | None = None,
) -> Result:
    """Run CR-PSGD-Catalyst: parallel SGD with growing batches on a sequence of proximal problems.

    Parameters
    ----------
    problem : problem
        Smooth; it need not be convex.
    workers : int
        Number N of workers.
    samples : int
        T, the budget of gradients of each worker, at least N times the square of ``first``.
    first : int
        B_1, the first batch of every proximal problem.
    rho : float, optional
        Growth of the batches, in (1, 1/(1 - nu)), nu = step (theta - L) (2 - (theta + L) step); by default
        ``bounds.optimal_rho``, the square root of 2 with the other defaults.
    theta : float, optional
        Weight of the proximal term, above L; 3 L by default.
    step : float, optional
        Step size, below 2/(theta + L); 1/(theta + L) by default.
    seed : int
        The same seed gives bit-identical results.
    x0 : array_like, shape (d,), optional
        Start; zero if omitted.
    comm : mpi4py communicator, optional
        Communicator of the ranks on which it runs, as in `run`.
    compressor : compressor
        Compressor of the messages; the theorem assumes full precision.
    wire_dtype : float32 or float64
        Type of floats in messages.
    record_every : int, optional
        Steps between two rows of the history, rounded up to whole proximal problems; by default one row per problem.
    callback : callable, optional
        Called with y_k, read-only, before each proximal problem.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` and ``last`` (the last y), ``fun``, ``history`` (f and its gradient at y_0, ..., y_K, with the costs so
        far), ``mean_squared_gradient`` (over y_0, ..., y_{K-1}, as in the theorem), ``outer`` (K), ``nit`` (all
        rounds), ``success``, ``status`` and ``message``.

    Raises
    ------
    ValueError
        If an argument is outside its domain; the message names it.

    Notes
    -----
    ``theory.bounds.batches.growing`` is the theorem's bound, ``theory.bounds.catalyst_rounds`` the number of rounds.

    Yu, Jin, "On the computation and communication complexity of parallel SGD with dynamic batch sizes for stochastic
    non-convex optimization", ICML 2019, Algorithm 2.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.saturating_quadratic([1.0, 1.0], covariance=0.0)
    >>> result = catalyst(problem, workers=2, samples=32, x0=[1.0, -1.0])  # 8 times the batches 1, 1, 2
    >>> result.outer, int(result.history["samples"][-1]), int(result.history["rounds"][-1])
    (8, 64, 24)
    >>> round(float(result.history["f"][0]), 3), bool(result.fun < 0.25)
    (0.5, True)
    """
    y = start_at(problem, x0)
    if record_every is not None:
        whole_number("record_every", record_every)
    whole_number("workers", workers), whole_number("samples", samples), whole_number("first", first)
    L = lipschitz(problem)
    theta = bounds.catalyst_theta(L) if theta is None else finite_number("theta", theta)
    require(theta > L, "theta", theta, f"a number above L = {L:g}, so that the proximal problems are convex")
    gamma = 1.0 / (theta + L) if step is None else finite_number("step", step)
    limit = bounds.growth_limit(theta - L, theta + L, gamma)
    rho = bounds.optimal_rho(theta - L, theta + L, gamma) if rho is None else finite_number("rho", rho)
    require(1.0 < rho < limit, "rho", rho, f"a number in (1, 1/(1 - nu)) = (1, {limit:.6g})")
    outer, budget = bounds.catalyst_budget(samples, workers)
    require(
        budget >= first,
        "samples",
        samples,
        f"at least workers * first**2 = {workers * first**2}: one round of every proximal problem",
    )
    method = ParallelSGD(compressor, step=Constant(gamma), batch=GrowingBatch(rho, first))

    rows: list[Any] = []
    spent: Any = 0
    done: Any = None
    for k in range(outer):
        if callback is not None:
            y.flags.writeable = False
            callback(y)
        h = proximal(problem, y, theta)
        done = run(
            method,
            h,
            workers=workers,
            samples=budget,
            seed=int(key(seed, "catalyst", k)),
            x0=y,
            comm=comm,
            record_every=budget,
            wire_dtype=wire_dtype,
        )
        rows.append(after(spent, done.history[0]))  # at y = centre, h and its gradient are those of f
        spent = after(spent, done.history[-1])
        y = done.last
        if done.status == DIVERGED:
            break
    end = spent.copy()
    end["f"], end["gradient_norm"] = value(problem, y), float(np.linalg.norm(gradient(problem, y)))
    squares = [float(row["gradient_norm"]) ** 2 for row in rows]
    history = np.array([*_recorded(rows, record_every), end])
    status, message = (done.status, done.message) if done.status == DIVERGED else ended(history, DONE, "all steps done")
    return Result(
        x=y,
        last=y.copy(),
        fun=float(end["f"]),
        history=history,
        outer=len(rows),
        nit=int(end["step"]),
        mean_squared_gradient=float(np.mean(squares)),
        success=status == DONE,
        status=status,
        message=message,
    )


def start_at(problem: Any, x0: ArrayLike | None) -> np.ndarray:
    """A checked copy of x_0."""
    check_problem(problem)
    y = np.zeros(problem.d) if x0 is None else real_array("x0", x0).copy()
    require(y.shape == (problem.d,), "x0", f"shape {y.shape}", f"shape ({problem.d},)")
    require(bool(np.isfinite(y).all()), "x0", "NaN or Inf", "finite numbers")
    return y


def _recorded(rows: Any, record_every: int | None) -> list:
    """The first row, and each at least ``record_every`` steps after the previous recorded one."""
    recorded = rows[:1]
    for row in rows[1:]:
        if record_every is None or row["step"] - recorded[-1]["step"] >= record_every:
            recorded.append(row)
    return recorded


def after(spent: Any, row: Any) -> Any:
    """A row of the history of an inner run, plus the costs before it."""
    row = row.copy()
    if isinstance(spent, np.void):
        for name in COSTS:
            row[name] += spent[name]
    return row


# --- QSVRG with the parameters of its theorem ------------------------------------------------------------------------


def qsvrg(
    problem: Any,
    compressor: NamedTuple | None = None,
    *,
    workers: int,
    epochs: int,
    inner: int | None = None,
    step: float | None = None,
    seed: int = 0,
    x0: ArrayLike | None = None,
    comm: Any = None,
    wire_dtype: DTypeLike = np.float32,
) -> Result:
    """Run QSVRG: stochastic variance-reduced gradients, quantized without bias.

    Parameters
    ----------
    problem : problem
        A strongly convex mean of n smooth convex functions, such as ridge or logistic regression.
    compressor : compressor, optional
        Unbiased; ``QSGD(ceil(sqrt(d)))`` by default, as in the theorem.
    workers : int
        Number N of workers.
    epochs : int
        Number of epochs.
    inner : int, optional
        T, the steps of an epoch; ``bounds.qsvrg_inner`` by default.
    step : float, optional
        Step size; ``bounds.qsvrg_step`` by default.
    seed : int
        The same seed gives bit-identical results.
    x0 : array_like, shape (d,), optional
        The first y; zero if omitted.
    comm : mpi4py communicator, optional
        Communicator of the ranks on which it runs, as in `run`.
    wire_dtype : float32 or float64
        Type of floats in messages.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (the last y), ``fun``, ``history`` (f and its gradient at every y, with the costs so far), ``inner`` and
        ``step`` (T and eta), ``nit`` (all steps), ``success``, ``status`` and ``message``.  A worker's costs include
        its part of the full gradients, which are summed: d floats up and d floats down per epoch. ``samples`` counts
        two gradients per step and n per epoch.

    Raises
    ------
    ValueError
        If an argument is outside its domain; the message names it.
    TypeError
        If the compressor has no known variance.

    Notes
    -----
    ``theory.bounds.qsvrg_factor`` is the factor of an epoch, ``theory.bounds.qsvrg_bits`` the number of bits.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> rng = np.random.default_rng(0)
    >>> problem = th.ridge((rng.standard_normal((30, 4)), rng.standard_normal(30)), l2=1.0)
    >>> result = qsvrg(problem, workers=2, epochs=3)
    >>> gaps = result.history["f"] - th.solve(problem).fun
    >>> bool(gaps[-1] < 0.9**3 * gaps[0])
    True
    """
    check_problem(problem)
    d, n = int(dimension(problem)), int(rows(problem))
    L, mu = max_lipschitz(problem), strong_convexity(problem)
    require(n > 0, "problem", problem, "a mean of n functions: its gradients are evaluated twice")
    require(mu > 0.0, "problem", f"mu = {mu:g}", "a strongly convex one: give it an l2 term")
    whole_number("epochs", epochs)
    if inner is not None:
        whole_number("inner", inner)
    compressor = QSGD(math.isqrt(d - 1) + 1) if compressor is None else compressor
    inner = bounds.qsvrg_inner(L, mu, omega(compressor, d)) if inner is None else inner
    eta = float(bounds.qsvrg_step(L, omega(compressor, d)) if step is None else step)
    method = QSVRG(compressor, Constant(eta), inner)
    steps: dict = {"steps": epochs * inner, "record_every": inner}
    options: dict = {"workers": workers, "seed": seed, "comm": comm, "wire_dtype": wire_dtype}
    done = run(method, problem, x0=start_at(problem, x0), **options, **steps)
    return Result(done | {"inner": inner, "step": eta})
