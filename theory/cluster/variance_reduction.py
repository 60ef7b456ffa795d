"""QSVRG: QSGD with variance reduction, of Alistarh, Grubic, Li, Tomioka and Vojnovic (QSGD, NIPS 2017).

::

    for p = 1, 2, ...:
        h = grad f(y)                                  in full precision: each worker sends its part
        T steps from x = y, in each of which every worker draws a row j and
            sends Q(grad f_j(x) - grad f_j(y) + h)
            x = x - eta (mean of the messages)
        y = mean of the T iterates
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .. import bounds
from ..compressors.closed_forms import omega
from ..compressors.qsgd import QSGD
from ..core import require
from ..core.arguments import whole_number
from ..core.random import key
from ..core.result import Result
from ..methods.custom import method
from ..methods.schedules import Constant
from ..methods.types import Run
from ..problems.base import check_problem, dimension, regularization, rows
from ..problems.constants import max_lipschitz, strong_convexity
from ..problems.evaluate import gradient
from .cr_psgd_catalyst import after, start_at
from .run import DIVERGED, DONE, ended, run

__all__ = ["VarianceReduced", "qsvrg"]


@method
class VarianceReduced(NamedTuple):
    """An epoch of SVRG with compressed messages; made by `qsvrg`.

    Parameters
    ----------
    compressor : compressor
        Without bias.
    step : Constant
        The step size.
    anchor, full : ndarray, shape (d,)
        y, and the mean of the losses' gradients there.
    average : str
        "uniform": the result is the mean of the iterates.
    """

    compressor: NamedTuple
    step: NamedTuple
    anchor: np.ndarray
    full: np.ndarray
    average: str = "uniform"

    def round(self, run: Run) -> None:
        """One step; each line is for all workers at once."""
        y, h = run.once("anchor", lambda: [np.tile(v, (run.replicas, 1, 1)) for v in (self.anchor, self.full)])
        p = run.scratch()
        run.set_gradient(p, at=run.x)  # p = grad f_j(x)
        run.add_loss_gradient(p, at=y, scale=-1.0, same_batch=True)  # p = p - grad f_j(y)
        run.add(p, h)  # p = p + grad f(y)
        received = run.gather(run.compress(self.compressor, p))  # Q(p) of all
        run.add_to_average(run.x)  # the next y
        run.add(run.x, received, scale=-run.eta)  # x = x - eta mean Q(p)


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
        Without bias; ``QSGD(ceil(sqrt(d)))`` by default, the theorem's.
    workers : int
        Number N of workers.
    epochs : int
        Number of epochs.
    inner : int, optional
        T, the steps of an epoch; ``bounds.qsvrg_inner`` by default.
    step : float, optional
        Step size; ``bounds.qsvrg_step`` by default.
    seed : int
        The same seed gives the same bits.
    x0 : array_like, shape (d,), optional
        The first y; zero if omitted.
    comm : mpi4py communicator, optional
        Runs on its ranks, as in `run`.
    wire_dtype : float32 or float64
        Type of floats in messages.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` (the last y), ``fun``, ``history`` (f and its gradient at every y, with the costs so far), ``inner`` and
        ``step`` (T and eta), ``nit`` (steps in all), ``success``, ``status`` and ``message``.  A worker's costs include
        its part of the full gradients, which are summed: d floats up and d floats down an epoch.  ``samples`` counts
        two gradients a step and n an epoch.

    Raises
    ------
    ValueError
        For an argument outside its domain; the message names it.
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
    y = start_at(problem, x0)

    history: list[Any] = []
    spent: Any = 0
    for p in range(epochs):
        full = gradient(problem, y) - regularization(problem) * y
        done = run(
            VarianceReduced(compressor, Constant(eta), y, full),
            problem,
            workers=workers,
            steps=inner,
            seed=int(key(seed, "qsvrg", p)),
            x0=y,
            comm=comm,
            record_every=inner,
            wire_dtype=wire_dtype,
        )
        history.append(after(spent, done.history[0]))
        spent = after(spent, done.history[-1])
        spent["samples"] += n
        for name, size in (("bits", 8 * d), ("message_bytes", d)):
            for way in ("up", "down"):
                spent[f"{name}_{way}"] += size * np.dtype(wire_dtype).itemsize
        y = done.x
        if done.status == DIVERGED:
            break
    table = np.array([*history, spent])
    status, message = (done.status, done.message) if done.status == DIVERGED else ended(table, DONE, "all epochs done")
    return Result(
        x=y,
        fun=float(spent["f"]),
        history=table,
        inner=inner,
        step=eta,
        nit=int(spent["step"]),
        success=status == DONE,
        status=status,
        message=message,
    )
