"""QSVRG with the parameters of its theorem, a row of the history for each epoch."""

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
from ..core.result import Result
from ..methods.qsvrg import QSVRG
from ..methods.schedules import Constant
from ..problems.base import check_problem, dimension, rows
from ..problems.constants import max_lipschitz, strong_convexity
from .cr_psgd_catalyst import start_at
from .run import run


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
    method = QSVRG(compressor, Constant(eta), inner)
    steps: dict = {"steps": epochs * inner, "record_every": inner}
    options: dict = {"workers": workers, "seed": seed, "comm": comm, "wire_dtype": wire_dtype}
    done = run(method, problem, x0=start_at(problem, x0), **options, **steps)
    return Result(done | {"inner": inner, "step": eta})
