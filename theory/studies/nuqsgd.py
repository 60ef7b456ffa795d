"""NUQSGD against QSGD and QSGDinf at equal bits: exact variances on synthetic and real gradients, and training.

The variances are sums of chords, without sampling.  The training has the paper's momentum 0.9, weight decay (here the
l2 term, part of the gradient that is sent), 4 bits and buckets of 8192.  The paper has mini-batches of 128, and
simulates k GPUs by k independent mini-batches, aggregated after quantization; here 128 rows are the batch of a single
worker.  With 8 workers batches are of 32, as in the paper's comparison under small mini-batches, on 8 GPUs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..bounds import (
    chord_variance,
    geometric_levels,
    nuqsgd_released_levels,
    optimal_ratio,
)
from ..cluster import run
from ..compressors import NUQSGD, Bucketed, Identity, qsgd_bits
from ..core import require
from ..core.random import key
from ..data import Dataset
from ..methods import ParallelSGD
from ..methods.schedules import Constant
from ..problems import accuracy, batch_gradient, gradient, lipschitz, logistic, softmax, solve
from ..reporting.progress import track
from .shared.problems import digits, iterates, rcv1

BITS, BUCKET = 4, 8192
FINEST = 119  # levels of NUQSGD that floats can tell apart: with 8 bits there are codes for 126
SWEEP_BITS, SWEEP_BUCKETS = (2, 3, 4, 5, 6), (128, 1024, 8192)
THREE = ("QSGD", "QSGDinf", "NUQSGD")
RELEASED = ("QSGD, no zero", "QSGDinf, no zero", "NUQSGD, no zero")
BATCH, L2, MOMENTUM = 128, 1e-4, 0.9
SEEDS = 5
LONGER = 8.0  # on softmax the bound of L is far above the curvature along the run


class Variance(NamedTuple):
    """The exact relative variance of one quantizer at one vector: E||Q(v) - v||^2 / ||v||^2."""

    input: str
    bits: int
    bucket: int
    quantizer: str
    variance: float


class Training(NamedTuple):
    """One method on one problem.

    Attributes
    ----------
    problem : str
    workers, batch : int
    method : str
    bits : float
        Payload bits per coordinate and message.
    variance, loss, accuracy : ndarray, shape (seeds,)
        Exact relative variance of its quantizer at its own mini-batch gradients, mean along the run; f - f* on the
        training part, mean over the last quarter of the run; accuracy on the held-out part, at the end.
    step, gap, noise : ndarray, shape (records,)
        Along the run: step, f - f* and variance, means over seeds.
    """

    problem: str
    workers: int
    batch: int
    method: str
    bits: float
    variance: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    step: np.ndarray
    gap: np.ndarray
    noise: np.ndarray

    @property
    def setting(self) -> str:
        """Problem and workers, as text."""
        return f"{self.problem}, {self.workers} worker{'s' if self.workers > 1 else ''}"


# --- variances --------------------------------------------------------------------------------------------------------


def levels_of(quantizer: str, bits: int, d: int = BUCKET) -> tuple[np.ndarray, float]:
    """Levels and norm of a quantizer with ``bits`` bits per coordinate, sign included.

    Examples
    --------
    >>> levels_of("NUQSGD", 3)
    (array([0.  , 0.25, 0.5 , 1.  ]), 2.0)
    """
    most = 2 ** (bits - 1) - 1  # levels above zero
    norm = math.inf if "inf" in quantizer else 2.0
    if quantizer == "NUQSGD, no zero":
        return nuqsgd_released_levels(bits), norm
    if quantizer == "NUQSGD, best ratio":
        return geometric_levels(most - 1, optimal_ratio(most - 1, d) if most > 1 else 0.5), norm
    if quantizer.startswith("NUQSGD"):
        return geometric_levels(most - 1), norm
    if quantizer.endswith("no zero"):
        return np.linspace(1.0, 2 * most + 1, most + 1) / (2 * most + 1), norm
    return np.arange(most + 1) / most, norm


def relative_variance(v, levels, norm: float, bucket: int) -> float:
    """E||Q(v) - v||^2 / ||v||^2 for rounding to these levels in buckets, exactly.

    Examples
    --------
    >>> relative_variance(np.array([3.0, 4.0]), [0.0, 1.0], 2.0, bucket=2)  # (3 2 + 4 1) / 25
    0.4
    """
    v = np.asarray(v, float)
    total = sum(chord_variance(v[j : j + bucket], levels, norm) for j in range(0, v.size, bucket))
    return total / float(v @ v)


def inputs(text: Dataset, pictures: Dataset, seed: int = 0, size: int = 8 * BUCKET) -> dict[str, np.ndarray]:
    """Synthetic vectors with light and heavy tails, and gradients at 0 and near the optimum: full, and of 128 rows."""
    rng = np.random.default_rng(int(key(seed, "nuqsgd", "inputs")))
    found = {
        "Gaussian": rng.standard_normal(size),
        "Laplace": rng.laplace(size=size),
        "Student t3": rng.standard_t(3.0, size),
        "lognormal 1.5": rng.choice([-1.0, 1.0], size) * rng.lognormal(0.0, 1.5, size),
    }
    for name, problem in (("logistic", logistic(text, L2)), ("softmax", softmax(pictures, L2))):
        places = iterates(problem)
        rows = rng.choice(problem.n, BATCH, replace=False)
        for place in ("at 0", "near x*"):
            found[f"{name} {place}"] = gradient(problem, places[place])
            found[f"{name} {place}, batch"] = batch_gradient(problem, rows, places[place])
    return found


def variances(vectors, bits=(BITS,), buckets=(BUCKET,), quantizers=THREE) -> list[Variance]:
    """Exact relative variances of quantizers over vectors, bits and bucket sizes."""
    return [
        Variance(name, b, size, q, relative_variance(v, *levels_of(q, b, min(size, v.size)), size))
        for name, v in vectors.items()
        for b in bits
        for size in buckets
        for q in quantizers
    ]


# --- training ---------------------------------------------------------------------------------------------------------


def compressors(bits: int = BITS, bucket: int = BUCKET) -> dict[str, NamedTuple]:
    """Full precision, and the three quantizers at the same number of bits."""
    uniform = qsgd_bits(bits)
    return {
        "float32": Identity(),
        "QSGD": Bucketed(uniform, bucket),
        "QSGDinf": Bucketed(uniform._replace(norm=math.inf), bucket),
        "NUQSGD": Bucketed(NUQSGD(min(2 ** (bits - 1) - 2, FINEST)), bucket),
    }


def train(
    make,
    data: Dataset,
    *,
    name: str,
    workers: int,
    batch: int,
    steps=400,
    records=20,
    seeds=SEEDS,
    seed=0,
    bits=BITS,
    bucket=BUCKET,
    length=1.0,
) -> list[Training]:
    """Train with each quantizer at the same bits and step size, on 80 % of the rows.

    Parameters
    ----------
    make : callable
        ``make(data, l2)``: :func:`theory.logistic` or :func:`theory.softmax`.
    data : Dataset
    name : str
        Name of the problem in the rows.
    workers, batch : int
    steps, records : int
        Number of rounds, and of those at which variance and loss are recorded.
    seeds : int
    seed : int
    bits, bucket : int
    length : float
        The step size is 1 - momentum times this over L, for all methods.

    Returns
    -------
    list of Training
    """
    require(1 <= records <= steps, "records", records, "an integer from 1 to the number of steps")
    part, held_out = data.split(0.8, seed=0)
    problem, test = make(part, L2), make(held_out, L2)
    best = solve(problem, 1e-9).fun
    step = Constant((1.0 - MOMENTUM) * length / lipschitz(problem))
    rng = np.random.default_rng(int(key(seed, "nuqsgd", "rows")))
    drawn = [rng.choice(problem.n, min(batch, problem.n), replace=False) for _ in range(records + 1)]
    rows = []
    for method, compressor in track(compressors(bits, bucket).items(), name):
        seen, held, width = [], [], math.nan
        plan = ParallelSGD(compressor, step=step, batch=batch, momentum=MOMENTUM)
        levels: Any = None if method == "float32" else levels_of(method, bits)
        for r in range(seeds):
            here: list = []

            def watch(intermediate_result, here=here, levels=levels):
                x = intermediate_result.last
                g = batch_gradient(problem, drawn[len(here)], x)
                noise = 0.0 if levels is None else relative_variance(g, levels[0], levels[1], bucket)
                here.append((intermediate_result.nit, intermediate_result.fun - best, noise))

            every = max(1, steps // records)
            done = run(plan, problem, workers=workers, steps=steps, seed=seed + r, callback=watch, record_every=every)
            seen.append(np.array(here[: records + 1]))
            held.append(accuracy(test, done.last))
            width = done.history["bits_up"][-1] / (done.history["step"][-1] * problem.d)
        table, late = np.array(seen), max(1, records // 4)
        by_seed = table[:, :, 2].mean(axis=1), table[:, -late:, 1].mean(axis=1), np.array(held)
        curves = table.mean(axis=0).T.astype(np.float32)
        rows.append(Training(name, workers, batch, method, float(width), *by_seed, *curves))
    return rows


# --- what holds -------------------------------------------------------------------------------------------------------


def collect(quick: bool, seed: int, data: str | None) -> dict:
    """Variances on synthetic and real gradients, then training at equal bits."""
    text, pictures = rcv1(data, 2000 if quick else None), digits()
    vectors = inputs(text, pictures, seed, (2 if quick else 8) * BUCKET)
    names = (*THREE, "NUQSGD, best ratio", *RELEASED)
    rows = variances(vectors, quantizers=names)
    sweep = variances(vectors, (2, 4, 6) if quick else SWEEP_BITS, SWEEP_BUCKETS[-2:] if quick else SWEEP_BUCKETS)
    options = {"steps": 40, "records": 4, "seeds": 2, "seed": seed} if quick else {"seed": seed}
    label = text.name.split(" (")[0]
    trained: list[Training] = []
    for name, make, source, length in (
        (f"logistic, {label}", logistic, text, 1.0),
        ("softmax, digits", softmax, pictures, LONGER),
    ):
        for workers, batch in ((1, BATCH), (8, BATCH // 4)):
            trained += train(make, source, name=name, workers=workers, batch=batch, length=length, **options)
    lengths = {name: v.size for name, v in vectors.items()}
    return {
        "rows": rows,
        "sweep": sweep,
        "trained": trained,
        "lengths": lengths,
        "label": label,
        "columns": (text.d, pictures.d * 10),
        "rounds": options.get("steps", 400),
        "seeds": options.get("seeds", SEEDS),
    }
