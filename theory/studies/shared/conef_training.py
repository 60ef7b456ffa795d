"""Methods and training of the study of contractive error feedback, at one fraction of communication."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ... import bounds
from ...cluster.run import DIVERGED, run
from ...compressors import QSGD, Bucketed, CountSketch, HalfPrecision, Identity, RandomBlock, omega
from ...core import require, setting
from ...core.random import key
from ...core.result import Result
from ...data import Dataset, make_dataset
from ...methods import (
    ContractiveErrorFeedback,
    ErrorFeedback,
    ImprovedContractiveErrorFeedback,
    LinearSketchFeedback,
    NoFeedback,
    ParallelSGD,
)
from ...methods.schedules import Constant
from ...problems import accuracy, lipschitz, softmax
from ...reporting.progress import track
from .problems import widened

MOMENTUM = 0.9  # Nesterov's, as in the authors' released code; the talk's slides do not mention momentum
MOMENTA = (0.0, 0.5, MOMENTUM)
AUTHORS = 0.9  # beta of the authors' scripts
BUCKET = 40
SGD, BLOCK, UNBIASED, EF = "SGD", "rbSGD", "rbSGD, unbiased", "EFSGD"
HALF, QUANTIZED = "ConEF, half precision", "ConEF, 15 levels"


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    problem : {"topics", "digits"}
        RCV1's four top-level topics, if the file exists, or handwritten digits.
    share : float
        Fraction of the coordinates sent in each step.
    features : int
        Number of columns that are used, the most frequent ones.
    workers, batch, steps, seeds : int
    momenta : tuple of float
        Nesterov's momentum, each with its own best step.
    grid : tuple of float
        Step sizes, in multiples of (1 - momentum)/L, with which the search for the best one begins.
    sweep : tuple of int
        Numbers of features for the sweep over the dimension; empty: no sweep.
    """

    problem: str = "topics"
    share: float = 0.1
    features: int = 2000
    workers: int = 16
    batch: int = 8
    steps: int = 300
    seeds: int = 10
    momenta: tuple = MOMENTA
    grid: tuple = (0.25, 1.0, 4.0, 16.0)
    sweep: tuple = ()

    def domain(self):
        """Reject values outside the domain."""
        require(self.problem in ("topics", "digits"), "problem", self.problem, "'topics' or 'digits'")
        require(0 < self.share < 1, "share", self.share, "a number between 0 and 1")
        for name in ("features", "workers", "batch", "steps", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        good = isinstance(self.grid, tuple) and self.grid and all(_number(step) and step > 0 for step in self.grid)
        require(good, "grid", self.grid, "one or more numbers above 0")
        good = isinstance(self.momenta, tuple) and self.momenta and all(_number(m) and 0 <= m < 1 for m in self.momenta)
        require(good, "momenta", self.momenta, "one or more numbers in [0, 1)")
        good = isinstance(self.sweep, tuple) and all(isinstance(m, int) and m >= 1 for m in self.sweep)
        require(good, "sweep", self.sweep, "integers, at least 1")


def _number(x) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


class Way(NamedTuple):
    """A method to compare.

    Attributes
    ----------
    compressor, feedback : setting
    kappa : float
        The theorem's growth factor of the memory per step; NaN if it does not apply.
    damping : float
        For a fixed sketch: (1 - beta) E K^2/E K for a bucket as full as the mean bucket of a coordinate; stable if
        below 2. NaN for the others.
    """

    compressor: NamedTuple
    feedback: NamedTuple
    kappa: float = math.nan
    damping: float = math.nan


class Outcome(NamedTuple):
    """One method with one step size: the best one with all seeds, others with one seed.

    Attributes
    ----------
    method : str
    d : int
        Length of a message, features times classes.
    momentum : float
    step : float
        In multiples of (1 - momentum)/L.
    accuracy : ndarray, shape (seeds,)
        On the held-out fifth of the rows, at the end; NaN for a run that diverged.
    loss : float
        f at the end, on the rows for training; mean over the seeds.
    rounds : int
    seconds : float
        Of one run, all workers in one process.
    bits : float
        Payload of a worker.
    memory : int
        Bytes that a worker stores between steps.
    success : bool
        Whether all runs completed.
    message : str
        Message of the first run that did not.
    """

    method: str
    d: int
    momentum: float
    step: float
    accuracy: np.ndarray
    loss: float
    rounds: int
    seconds: float
    bits: float
    memory: int
    success: bool
    message: str

    @property
    def cost(self) -> np.ndarray:
        """What is compared, seed by seed: the negative accuracy, infinite for a run that diverged."""
        return np.nan_to_num(-self.accuracy, nan=np.inf)


# --- what is compared -------------------------------------------------------------------------------------------------


def sketched(saving: float) -> str:
    """Name of a fresh sketch in the rows."""
    return f"ConEF, fresh sketch, {100 * saving:.0f} %"


def fixed(saving: float, authors: bool = True) -> str:
    """Name of the fixed sketch in the rows, with the authors' beta or the one that forgets fastest."""
    return f"ConEF, fixed sketch, {100 * saving:.0f} %, beta {AUTHORS if authors else 'fastest'}"


def ways(d: int, share: float) -> dict[str, Way]:
    """All methods, for messages with a fraction ``share`` of d coordinates."""
    k = max(1, int(share * d))
    residual, block = 1.0 - k / d, RandomBlock(k)
    found = {
        SGD: Way(Identity(), NoFeedback()),
        BLOCK: Way(block, NoFeedback()),
        UNBIASED: Way(RandomBlock(k, unbiased=True), NoFeedback()),
        EF: Way(block, ErrorFeedback(), residual),
    }
    for saving in (0.6, 0.9):
        sketch = CountSketch(max(1, round((1.0 - saving) * d)))
        theta = omega(sketch, d)
        found[sketched(saving)] = Way(block, ContractiveErrorFeedback(sketch), bounds.conef_factor(theta, residual))
        load = round(1.0 + theta)  # mean over the buckets of all coordinates
        ratio = 1.0 / (1.0 - bounds.linear_sketch_beta(load, k / d))
        for authors, beta in ((True, AUTHORS), (False, 1.0 - 1.0 / ratio)):
            feedback = LinearSketchFeedback(sketch, beta)
            found[fixed(saving, authors)] = Way(block, feedback, damping=(1.0 - beta) * ratio)
    fine, coarse = (Bucketed(QSGD(levels), BUCKET) for levels in (15, 7))
    for name, error in ((HALF, HalfPrecision()), (QUANTIZED, fine), ("ConEF, 7 levels", coarse)):
        kappa = bounds.conef_factor(omega(error, d), residual)
        found[name] = Way(block, ContractiveErrorFeedback(error), kappa)
    for version in (1, 2):
        theta = bounds.iconef_variance(omega(coarse, d), residual, f"v{version}")
        improved = ImprovedContractiveErrorFeedback(coarse, version)
        found[f"iConEF-v{version}, 7 levels"] = Way(block, improved, bounds.conef_factor(theta, residual))
    return found


def most_frequent(data: Dataset, features: int) -> Dataset:
    """The columns in which most rows have an entry, as a sparse matrix; all of them if there are no more.

    Examples
    --------
    >>> data = make_dataset(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]), [0, 1], "two")
    >>> most_frequent(data, 2).X.toarray().tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    X = sp.csr_array(data.X)
    if features < data.d:
        rows = np.bincount(X.indices, minlength=data.d)
        X = X[:, np.sort(np.argsort(-rows, kind="stable")[:features])]
    return make_dataset(X, data.y, data.name)


AT_EVERY_MOMENTUM = (SGD, BLOCK, UNBIASED, EF, *(make(s) for make in (fixed, sketched) for s in (0.6, 0.9)), QUANTIZED)


# --- training ---------------------------------------------------------------------------------------------------------


def train(data: Dataset, chosen: dict[str, Way], options: Options, seed: int = 0) -> list[Outcome]:
    """Train with each method on 80 % of the rows: each step size with one seed, the best one with all.

    Where the best step is an end of the grid, the grid is widened (`widened`).

    Parameters
    ----------
    data : Dataset
        With a sparse matrix, so that all data sets share compiled code.
    chosen : dict of str to Way
    options : Options
    seed : int

    Returns
    -------
    list of Outcome
        One for each method, momentum and step size; some methods are run with the last momentum alone.
    """
    part, held_out = data.split(0.8, seed=0)
    l2 = 1.0 / part.n
    problem, test = (softmax(half, l2, dtype=np.float32) for half in (part, held_out))
    unit = 1.0 / lipschitz(problem)
    keys = [int(key(seed + r, "conef")) % 2**62 for r in range(options.seeds)]
    found: list[Outcome] = []
    for name, way in track(chosen.items(), data.name):
        for momentum in options.momenta if name in AT_EVERY_MOMENTUM else options.momenta[-1:]:

            def once(step, r=0, way=way, momentum=momentum):
                return run_once(way, unit * (1.0 - momentum) * step, momentum, problem, options, keys[r])

            def row(step, runs, name=name, momentum=momentum):
                return _outcome(name, momentum, step, problem, test, runs)

            runs = {step: [once(step)] for step in options.grid}
            widened(runs, lambda step: [once(step)], lambda runs: math.inf if _failed(runs) else runs[0].fun)
            first = {step: row(step, runs[step]) for step in sorted(runs)}
            best = best_outcomes(first.values())[name]
            more = [once(best.step, r) for r in range(1, options.seeds)]
            first[best.step] = row(best.step, runs[best.step] + more)
            found += first.values()
    return found


def _failed(runs) -> list:
    """The runs that diverged."""
    return [done for done in runs if done.status == DIVERGED]


def run_once(way: Way, step: float, momentum: float, problem, options, seed: int, records: int = 5) -> Result:
    """One run in single precision, in which f is evaluated ``records`` times; a fixed hash is different for each seed.

    Parameters
    ----------
    way : Way
    step, momentum : float
    problem : Softmax
    options : NamedTuple
        With ``workers``, ``batch`` and ``steps``.
    seed, records : int

    Returns
    -------
    Result
    """
    feedback = way.feedback
    if isinstance(feedback, LinearSketchFeedback):
        feedback = feedback._replace(sketch=feedback.sketch._replace(seed=seed))
    how: dict = {"batch": options.batch, "momentum": momentum, "nesterov": momentum > 0.0}
    method = ParallelSGD(way.compressor, step=Constant(step), feedback=feedback, **how)
    how = {"workers": options.workers, "steps": options.steps, "record_every": max(1, options.steps // records)}
    return run(method, problem, seed=seed, dtype=np.float32, **how)


def _outcome(name: str, momentum: float, step: float, problem, test, runs) -> Outcome:
    failed = _failed(runs)
    held = [math.nan if done.status == DIVERGED else accuracy(test, done.last) for done in runs]
    shown = failed[0] if failed else runs[0]
    loss = math.nan if failed else float(np.mean([done.fun for done in runs]))
    seconds = float(np.mean([done.history["seconds"][-1] for done in runs]))
    sent, stored = float(shown.history["bits_up"][-1]), shown.memory_bytes
    ended = (np.array(held), loss, shown.nit, seconds, sent, stored, not failed, shown.message)
    return Outcome(name, problem.d, momentum, step, *ended)


def best_outcomes(rows) -> dict[str, Outcome]:
    """For each method the row with all seeds; of several the one with the least training loss."""
    found: dict[str, list[Outcome]] = {}
    for row in rows:
        found.setdefault(row.method, []).append(row)

    def rank(row: Outcome) -> tuple[int, bool, float]:
        return -row.accuracy.size, not row.success, row.loss if row.success else row.step

    return {name: min(tried, key=rank) for name, tried in found.items()}
