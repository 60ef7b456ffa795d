"""The audit: the stated properties of a compressor, compared with measurements.

Bias, variance or contraction on many inputs and on the worst vector that a search finds, non-zeros, bits and time.
Everything goes through the generics, so a compressor needs no extra code.

A fault is reported only after a second measurement, with new and more random numbers, so that the selection of the
worst input causes no false alarm.
"""

from __future__ import annotations

import math
import time
import zlib
from typing import NamedTuple

import numpy as np

from ..compressors.base import (
    buffer_bits,
    capacity,
    check,
    delta,
    expected_nonzeros,
    expected_payload_bits,
    new_symbols,
    omega,
    pack,
    payload_bits,
    quantize,
    restore,
    shares_stream,
    state_size,
    unpack,
)
from ..compressors.codec import compress, decode, encode
from ..compressors.numpy_function import FunctionCompressor, check_parts
from ..core import require
from ..core.random import derive, key
from ..wire.bits import bits_for
from ..wire.frame import WireError, open_frame
from .audit_rows import ROUNDING, Audit, InputRow, Timing, Wire, Worst
from .inputs import as_inputs
from .intervals import Interval, mean_interval
from .monte_carlo import moments
from .search import worst_vectors

__all__ = ["audit"]

SLACK = 1e-9  # relative rounding error of a closed form in float64
CONFIRM = 4  # factor of the number of samples to confirm a fault
MESSAGES = 200  # messages whose bits are counted and whose symbols are pooled
SECONDS = 1.0  # seconds for the inputs, and again for the search, unless the numbers of samples are given
CALLS = 5  # repetitions, of which the fastest counts
LEAST, MOST = 128, 4096  # default samples for an input
EFFORT = (100, 4000)  # default number of vectors that a search tries
DRAWS = 16  # samples for each vector of a search


# --- the law ----------------------------------------------------------------------------------------------------------


def _closed_form(function, *given) -> float | None:
    try:
        return float(function(*given))
    except TypeError:
        return None


def _z(samples) -> float:
    """The mean of the samples in units of its standard error."""
    mean, noise = float(samples.mean()), float(samples.std(ddof=1)) / math.sqrt(samples.size)
    if abs(mean) <= ROUNDING:
        return 0.0
    return mean / noise if noise > 1e-9 * abs(mean) else math.copysign(math.inf, mean)  # the same bias in every draw


def _row(c, name: str, v, samples: int, seed: int, threads: int) -> InputRow:
    found = moments(c, v, samples, seed=seed, threads=threads)
    return InputRow(
        name,
        _z(found.cross / found.squared_norm),
        found.bias(),
        found.variance(),
        mean_interval(found.nonzeros),
        _closed_form(expected_nonzeros, c, v),
    )


def _seed(seed: int, *path) -> int:
    return int(key(seed, "audit", *path))


class _Bench(NamedTuple):
    """A compressor and how it is sampled."""

    c: NamedTuple
    d: int
    samples: int
    seed: int
    threads: int

    def row(self, name, v, *path, effort=1) -> InputRow:
        return _row(self.c, name, v, effort * self.samples, _seed(self.seed, name, *path), self.threads)


def _differs(interval: Interval, value: float) -> bool:
    slack = SLACK * max(1.0, abs(value))
    return not interval.low - slack <= value <= interval.high + slack


def _law_faults(bench: _Bench, rows, worst: Worst, inputs, ceilings) -> list[str]:
    """Contradictions of the samples to the closed forms; each is confirmed by a second measurement."""
    faults = []
    if "omega" in ceilings:
        for row in (row for row in rows if row.bias.low > ROUNDING):
            again = bench.row(row.name, inputs[row.name], "bias again", effort=CONFIRM)
            if again.bias.low > ROUNDING:
                size = math.sqrt(again.bias.estimate)
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
        if row.nonzeros_stated is not None and _differs(row.nonzeros, row.nonzeros_stated):
            nonzeros = bench.row(row.name, inputs[row.name], "non-zeros again", effort=CONFIRM).nonzeros
            if _differs(nonzeros, row.nonzeros_stated):
                faults.append(
                    f"non-zeros differ from their closed form! ({nonzeros.estimate:.4g}, not "
                    f"{row.nonzeros_stated:.4g}, on {row.name})"
                )
                break
    return faults


# --- the wire ---------------------------------------------------------------------------------------------------------

EMPTY = np.iinfo(np.int32).min


def _pieces(array, used, unused: int) -> list | None:
    """The entries of ``index`` or ``level`` that each part uses; None if that is unknown.

    Parts usually have pieces of equal size: then all that they use was written.  With another layout, every written
    entry must be in use.
    """
    n = used.size
    room = array.size // n
    if array.size % n == 0 and (used <= room).all():
        pieces = [array[p * room : p * room + used[p]] for p in range(n)]
        if all((piece != unused).all() for piece in pieces):
            return pieces
    written = array[array != unused]
    return [written] if written.size == used.sum() else None


def _entropy(symbols) -> float:
    """Empirical entropy of all the symbols together, in bits."""
    symbols = np.concatenate(symbols) if symbols else np.empty(0, int)
    if symbols.size == 0:
        return 0.0
    _, counts = np.unique(symbols, return_counts=True)
    return float(-(counts * np.log2(counts / symbols.size)).sum())


def _entropy_bits(c, d: int, v, seed: int) -> tuple[Interval, float | None]:
    """Payload bits of many messages, and the entropy of their symbols in bits per message."""
    symbols, wire_bits = new_symbols(c, d, np.empty(0, np.float32)), np.empty(MESSAGES)
    stream, state = key(_seed(seed, "wire")), np.zeros(state_size(c, d))
    levels, gaps, raw, known = [], [], 0.0, True
    for i in range(MESSAGES):
        state[:] = 0.0
        symbols.level[:], symbols.index[:] = EMPTY, np.uint32(0xFFFFFFFF)
        quantize(c, state, v, np.uint64(derive(stream, i)), symbols)
        wire_bits[i] = payload_bits(c, symbols, d)
        count = symbols.count.reshape(-1, 3)
        floats = 32.0 * float(count[:, 1].sum())
        raw, known = raw + floats, known and floats <= wire_bits[i]  # otherwise not all of them are sent
        pieces = _pieces(symbols.level, count[:, 2], EMPTY)
        known = known and pieces is not None
        levels += [piece.copy() for piece in pieces or ()]
        if shares_stream(c):  # the receiver knows the positions
            continue
        pieces = _pieces(symbols.index, count[:, 0], 0xFFFFFFFF)
        known = known and pieces is not None
        for piece in pieces or ():
            steps = np.diff(piece.astype(np.int64), prepend=-1)
            if piece.size and (steps > 0).all():
                gaps.append(steps)
            else:
                raw += bits_for(d) * piece.size
    return mean_interval(wire_bits), (_entropy(levels) + _entropy(gaps) + raw) / MESSAGES if known else None


def _wire(c, d: int, name: str, v, row: InputRow, seed: int) -> tuple[Wire, list[str]]:
    faults, numbers = [], int(key(_seed(seed, "message")))
    try:
        message, restored = encode(c, v, numbers), compress(c, v, numbers)
        opened = open_frame(message)
        frame = opened.start
        symbols = new_symbols(c, d, np.empty(0, np.float32))
        quantize(c, np.zeros(state_size(c, d)), v, np.uint64(numbers), symbols)
        counted = int(payload_bits(c, symbols, d))
        if counted != opened.payload_bits:
            faults.append(f"payload_bits counts {counted} bits, pack writes {opened.payload_bits}!")
        if decode(message).tobytes() != restored.tobytes():
            faults.append("decodes to another vector than it compresses to!")
        compress(c, np.zeros(d), numbers)
    except WireError as error:
        faults.append(f"its own message is refused! ({error})")
        frame, restored = 0, v
    except ValueError as error:  # not finite
        faults.append(f"not finite! ({error})")
        frame, restored = 0, v
    bits, entropy = _entropy_bits(c, d, v, seed)
    stated = _closed_form(expected_payload_bits, c, v)
    if stated is not None and _differs(bits, stated) and abs(bits.estimate - stated) > 1e-6 * stated:
        again = _entropy_bits(c, d, v, _seed(seed, "payload again"))[0]
        if _differs(again, stated):
            faults.append(f"payload differs from its closed form! ({again.estimate:.5g} bits, not {stated:.5g})")
    squeezed = 8.0 * len(zlib.compress(restored.astype(np.float32).tobytes(), 6))
    wire = Wire(
        name,
        row.nonzeros.estimate,
        row.nonzeros_stated,
        None if stated is None else stated / d,
        bits.scaled(1.0 / d),
        None if entropy is None else entropy / d,
        squeezed / d,
        frame,
    )
    return wire, faults


# --- time -------------------------------------------------------------------------------------------------------------


def _fastest(call, calls: int) -> float:
    best, since = math.inf, time.perf_counter()
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now - since > SECONDS:
            break
    return best


def _timing(c, d: int, seed: int, calls: int) -> Timing:
    v = np.random.default_rng(seed % 2**32).standard_normal(d).astype(np.float32)
    symbols, state = new_symbols(c, d, np.empty(0, np.float32)), np.zeros(state_size(c, d))
    out, stream = np.empty_like(v), key(seed, "timing")
    quantize(c, state, v, stream, symbols)
    buffer = np.zeros(buffer_bits(c, d, 32) // 8 + 64, np.uint8)
    end = pack(c, symbols, d, buffer, 0)
    buffer = buffer[: end // 8 + 64].copy()  # clearing it costs no more than the length of the message
    read = new_symbols(c, d, np.empty(0, np.float32))

    def sender():
        state[:] = 0.0
        quantize(c, state, v, stream, symbols)
        buffer[:] = 0
        pack(c, symbols, d, buffer, 0)

    def receiver():
        if unpack(c, buffer, 0, end, d, read) == end:  # else the symbols contain arbitrary memory
            restore(c, read, out)

    receiver()
    unit = 1e9 / d
    return Timing(
        d,
        unit * _fastest(sender, calls),
        unit * _fastest(receiver, calls),
        unit * _fastest(lambda: np.copyto(out, v), 10 * calls),
    )


# --- all of it --------------------------------------------------------------------------------------------------------


def _plan(c, v, threads: int, count: int, seconds: float) -> tuple[int, int]:
    """The numbers of samples and evaluations that fit into the time, as powers of two so that they seldom change."""
    moments(c, v, 2)
    begin = time.perf_counter()
    moments(c, v, 16)
    each = (time.perf_counter() - begin) / 16.0
    samples = 2 ** int(math.log2(max(2.0, threads * seconds / (each * count))))
    evaluations = 2 ** int(math.log2(max(2.0, seconds / (each * DRAWS))))
    return min(max(samples, LEAST), MOST), min(max(evaluations, EFFORT[0]), EFFORT[1])


def audit(
    compressor,
    d: int = 1000,
    inputs=None,
    *,
    seed: int = 0,
    samples: int | None = None,
    evaluations: int | None = None,
    threads: int = 2,
    quick: bool = False,
    timing=None,
) -> Audit:
    """Compare a compressor with its stated properties, and measure its costs.

    Parameters
    ----------
    compressor : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.
    inputs : optional
        Names from ``theory.measure.INPUTS``, a vector of length d, or a mapping from names to vectors; by default
        all names.  The columns about the wire use the first one.
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
        What to time: another instance of the class and a longer vector.  By default the same.

    Returns
    -------
    Audit
        With ``rows``, ``worst``, ``wire``, ``timing``, ``faults`` and ``verdict``; it prints.

    Raises
    ------
    TypeError
        If it is not a compressor.
    ValueError
        If it cannot be used on vectors of length d, or an input is unknown or of another length.

    Examples
    --------
    >>> from theory import QSGD
    >>> found = audit(QSGD(2), d=16, inputs=["gaussian", "flat"], samples=400, evaluations=200)
    >>> found.verdict, found.unbiased
    ('as stated', True)
    >>> found.worst.where, round(found.worst.error.estimate, 6)  # sqrt(d)/s - 1
    ('flat', 1.0)
    """
    c = compressor
    require(
        not isinstance(compressor, FunctionCompressor),
        "compressor",
        "a function",
        "a class: an audit looks at its messages (see add-a-compressor)",
        TypeError,
    )
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
    stated = {"omega": _closed_form(omega, c, d), "delta": _closed_form(delta, c, d)}
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
    wire, found = _wire(c, d, first, inputs[first], rows[0], seed)
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
        _timing(clocked, length, seed, CALLS),
        tuple(faults),
        "; ".join(faults) or ("as stated" if ceilings else "nothing stated"),
        samples,
        int(state_size(c, d)),
        seed,
    )


def _worst(bench: _Bench, rows, inputs, evaluations: int, any_scale: bool) -> Worst:
    """Search, remeasure the vector found and the worst input, then the worse of the two once more."""
    known = max(rows, key=lambda row: row.error.estimate)
    ends = worst_vectors(
        bench.c,
        bench.d,
        starts={known.name: inputs[known.name]},
        evaluations=evaluations,
        samples=DRAWS,
        any_scale=any_scale,
        seed=_seed(bench.seed, "search"),
    )
    candidates = [(known.name, inputs[known.name]), *((end.start, end.v) for end in ends)]
    errors = [bench.row(name, v, "candidate", i).error.low for i, (name, v) in enumerate(candidates)]  # what is certain
    best = int(np.argmax([np.inf if math.isnan(error) else error for error in errors]))
    name, v = candidates[best]
    return Worst(bench.row(name, v, "worst").error, name, v, ends[0].evaluations)
