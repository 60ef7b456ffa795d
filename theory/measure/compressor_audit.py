"""The audit: the stated properties of a compressor, compared with measurements.

It measures bias, variance or contraction on many inputs and on the worst vector of a search, non-zeros, bits and time.
It uses the generic functions only, so a compressor needs no extra code.

A fault is reported only after a second measurement, with new and more random numbers, so that the selection of the
worst input causes no false alarm.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from ..compressors.base import capacity, quantize, state_size
from ..compressors.closed_forms import check, delta, expected_nonzeros, omega
from ..compressors.codec import FunctionCompressor, check_parts
from ..core import require
from .audit_messages import (
    CALLS,
    ROUNDING,
    SECONDS,
    SLACK,
    Audit,
    InputRow,
    Worst,
    audit_timing,
    audit_wire,
    closed_form,
    differs,
    seed_of,
)
from .inputs import as_inputs, worst_vectors
from .intervals import mean_interval
from .monte_carlo import moments

CONFIRM = 4  # factor of the number of samples to confirm a fault
LEAST, MOST = 128, 4096  # default samples for an input
EFFORT = (100, 4000)  # default number of vectors that a search tries
DRAWS = 16  # samples for each vector of a search


# --- the law ----------------------------------------------------------------------------------------------------------


def _z(samples: Any) -> float:
    """The mean of the samples in units of its standard error."""
    mean, noise = float(samples.mean()), float(samples.std(ddof=1)) / math.sqrt(samples.size)
    if abs(mean) <= ROUNDING:
        return 0.0
    return mean / noise if noise > 1e-9 * abs(mean) else math.copysign(math.inf, mean)  # the same bias in every draw


def _row(c: Any, name: str, v: Any, samples: int, seed: int, threads: int) -> InputRow:
    found = moments(c, v, samples, seed=seed, threads=threads)
    return InputRow(
        name,
        max(_z(found.cross / found.squared_norm), abs(_z(found.along / found.squared_norm))),
        # values that did not change in any draw of so many inputs are taken as certain
        mean_interval(found.cross / found.squared_norm, certain=True),
        mean_interval(found.along / found.squared_norm, certain=True),
        mean_interval(found.error / found.squared_norm, certain=True),
        mean_interval(found.nonzeros, certain=True),
        closed_form(expected_nonzeros, c, v),
    )


class _Bench(NamedTuple):
    """A compressor and how it is sampled."""

    c: NamedTuple
    d: int
    samples: int
    seed: int
    threads: int

    def row(self, name: str, v: Any, *path: Any, effort: int = 1) -> InputRow:
        return _row(self.c, name, v, effort * self.samples, seed_of(self.seed, name, *path), self.threads)


def _law_faults(bench: _Bench, rows: Any, worst: Worst, inputs: Any, ceilings: Any) -> list[str]:
    """Contradictions of the samples to the closed forms; each is confirmed by a second measurement."""
    faults = []
    if "omega" in ceilings:
        for row in (row for row in rows if row.biased):
            again = bench.row(row.name, inputs[row.name], "bias again", effort=CONFIRM)
            if again.biased:
                size = max(math.sqrt(max(0.0, again.bias.low)), abs(again.along.estimate))
                faults.append(f"biased! (by {size:.2g} of the norm on {row.name}, z = {again.z:.3g})")
                break
    for name, ceiling in ceilings.items():
        most = ceiling * (1.0 + SLACK) + 1e-12
        if worst.error.low > most:
            error = bench.row(worst.where, worst.v, "worst again", effort=CONFIRM).error
            if error.low > most:
                found = error.estimate if name == "omega" else 1.0 - error.estimate
                stated = ceiling if name == "omega" else 1.0 - ceiling
                side = "above" if name == "omega" else "below"
                faults.append(
                    f"{'above' if name == 'omega' else 'error above'} its closed form! "
                    f"({name} = {found:.4g}, {side} {stated:.4g}, on {worst.where})"
                )
    for row in rows:
        if row.nonzeros_stated is not None and differs(row.nonzeros, row.nonzeros_stated):
            nonzeros = bench.row(row.name, inputs[row.name], "non-zeros again", effort=CONFIRM).nonzeros
            if differs(nonzeros, row.nonzeros_stated):
                faults.append(
                    f"non-zeros differ from their closed form! ({nonzeros.estimate:.4g}, not "
                    f"{row.nonzeros_stated:.4g}, on {row.name})"
                )
                break
    return faults


# --- all of it --------------------------------------------------------------------------------------------------------


def _plan(c: Any, v: Any, threads: int, count: int, seconds: float) -> tuple[int, int]:
    """The numbers of samples and evaluations that fit into the time, as powers of two so that they seldom change."""
    moments(c, v, 2)
    begin = time.perf_counter()
    moments(c, v, 16)
    each = (time.perf_counter() - begin) / 16.0
    samples = 2 ** int(math.log2(max(2.0, threads * seconds / (each * count))))
    evaluations = 2 ** int(math.log2(max(2.0, seconds / (each * DRAWS))))
    return min(max(samples, LEAST), MOST), min(max(evaluations, EFFORT[0]), EFFORT[1])


def audit(
    compressor: Any,
    d: int = 1000,
    inputs: Any = None,
    *,
    seed: int = 0,
    samples: int | None = None,
    evaluations: int | None = None,
    threads: int = 2,
    quick: bool = False,
    timing: Any = None,
) -> Audit:
    """Compare a compressor with its stated properties, and measure its costs.

    Parameters
    ----------
    compressor : compressor
        A setting such as ``TopK(10)``, or a Python function wrapped by :func:`theory.compressor`, for which messages
        are not audited, as it has no message format.
    d : int
        Length of the vectors.
    inputs : optional
        Names from ``theory.measure.INPUTS``, a vector of length d, or a mapping from names to vectors; by default
        all names.  The columns about messages use the first one.
    seed : int
        The same seed draws the same numbers.
    samples : int, optional
        Draws for each input; by default as many as fit into a second, a power of two.
    evaluations : int, optional
        Vectors that the search tries; by default as many as fit into a second (2000 if ``samples`` is given).
    threads : int
        Number of threads; the result does not depend on it.
    quick : bool
        Use a quarter of the time.
    timing : (compressor, int), optional
        The compressor and the length that are timed: another instance of the class and a longer vector. By default
        those of the audit.

    Returns
    -------
    Audit
        With ``rows``, ``worst``, ``wire``, ``timing``, ``faults`` and ``verdict``; it can be printed.

    Raises
    ------
    TypeError
        If ``compressor`` is not a compressor.
    ValueError
        If it cannot be used on vectors of length d, or an input is unknown or has another length.

    Examples
    --------
    >>> from theory import QSGD
    >>> found = audit(QSGD(2), d=16, inputs=["gaussian", "flat"], samples=400, evaluations=200)
    >>> found.verdict, found.unbiased
    ('as stated', True)
    >>> found.worst.where, round(found.worst.error.estimate, 6)  # sqrt(d)/s - 1
    ('flat', 1.0)
    >>> import numpy as np
    >>> from theory import compressor
    >>> half = compressor(lambda v, rng: 2.0 * v * (rng.random(v.size) < 0.5), omega=0.5)  # it is 1
    >>> audit(half, d=16, samples=400, evaluations=100).verdict.split("!")[0]
    'above its closed form'
    """
    c, of_function = compressor, isinstance(compressor, FunctionCompressor)
    check_parts("compressor", compressor)
    require(
        quantize.implements(type(c)) and capacity.implements(type(c)),
        "compressor",
        c,
        "a compressor, such as QSGD(7)",
        TypeError,
    )
    require(d >= 1 and float(d).is_integer(), "d", d, "an integer, at least 1")
    require(samples is None or samples >= 4, "samples", samples, "an integer, at least 4")
    d = int(d)
    check(c, d)
    inputs = as_inputs(inputs, d, seed)
    first = next(iter(inputs))
    planned = _plan(c, inputs[first], threads, len(inputs), SECONDS / (4.0 if quick else 1.0))
    if evaluations is None:
        evaluations = planned[1] if samples is None else 2000
    samples = planned[0] if samples is None else int(samples)

    bench = _Bench(c, d, samples, seed, threads)
    stated = {"omega": closed_form(omega, c, d), "delta": closed_form(delta, c, d)}
    ceilings = {}
    if stated["omega"] is not None:
        ceilings["omega"] = stated["omega"]
    if stated["delta"] is not None:
        ceilings["delta"] = 1.0 - stated["delta"]
    rows = tuple(bench.row(name, v) for name, v in inputs.items())
    worst = _worst(bench, rows, inputs, evaluations, bool(ceilings))
    faults = _law_faults(bench, rows, worst, inputs, ceilings)
    if not all(math.isfinite(error.estimate) for error in (*(row.error for row in rows), worst.error)):
        faults.insert(0, "not finite!")
    wire, found = (None, []) if of_function else audit_wire(c, d, first, inputs[first], rows[0], seed)
    faults += found
    clocked, length = timing or (c, d)
    return Audit(
        c,
        d,
        stated["omega"],
        stated["delta"],
        rows,
        worst,
        wire,
        None if of_function else audit_timing(clocked, length, seed, CALLS),
        tuple(faults),
        "; ".join(faults) or ("as stated" if ceilings else "nothing stated"),
        samples,
        0 if of_function else int(state_size(c, d)),
        seed,
    )


def _worst(bench: _Bench, rows: Any, inputs: Any, evaluations: int, any_scale: bool) -> Worst:
    """Search, measure the vector found and the worst input again, and then the worse of the two once more."""
    known = max(rows, key=lambda row: row.error.estimate)
    ends = worst_vectors(
        bench.c,
        bench.d,
        starts={known.name: inputs[known.name]},
        evaluations=evaluations,
        samples=DRAWS,
        any_scale=any_scale,
        seed=seed_of(bench.seed, "search"),
    )
    candidates = [(known.name, inputs[known.name]), *((end.start, end.v) for end in ends)]
    errors = [bench.row(name, v, "candidate", i).error.low for i, (name, v) in enumerate(candidates)]  # what is certain
    best = int(np.argmax([np.inf if math.isnan(error) else error for error in errors]))
    name, v = candidates[best]
    return Worst(bench.row(name, v, "worst").error, name, v, ends[0].evaluations)
