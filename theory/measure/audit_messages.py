"""The messages of an audit (bits, entropy, lossless baselines, seconds), and the result of an audit.

The lossless baselines are a general-purpose compressor (zlib) and the entropy, a lower bound for codes of single
symbols.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..compressors.base import (
    buffer_bits,
    new_symbols,
    pack,
    payload_bits,
    quantize,
    restore,
    shares_stream,
    state_size,
    unpack,
)
from ..compressors.closed_forms import expected_payload_bits
from ..compressors.codec import compress, decode, encode
from ..core.random import derive, key
from ..wire.bits import bits_for
from ..wire.frame import WireError, open_frame
from .audit_tables import law_table, lay_out, sheet, wire_table
from .intervals import Interval, mean_interval

# --- The result of an audit ------------------------------------------------------------------------------------------

ROUNDING = 1e-14  # a squared relative bias below this is rounding to float32, not bias


class InputRow(NamedTuple):
    """One input: z-score of the bias and interval of its square, relative squared error, non-zeros.

    ``along`` is the mean of <Q(v) - v, v>/||v||^2, in which a wrong factor shows long before it does in the bias.
    """

    name: str
    z: float
    bias: Interval
    along: Interval
    error: Interval
    nonzeros: Interval
    nonzeros_stated: float | None

    @property
    def biased(self) -> bool:
        """Whether there is a bias, in any direction or along v, that exceeds rounding errors."""
        return self.bias.low > ROUNDING or max(self.along.low, -self.along.high) > math.sqrt(ROUNDING)


class Worst(NamedTuple):
    """The largest relative squared error found, measured again with new random numbers, and its vector."""

    error: Interval
    where: str
    v: np.ndarray
    evaluations: int


class Wire(NamedTuple):
    """A message for one Gaussian vector (or the first input): bits per coordinate in four ways, and the frame's bytes.

    ``entropy`` is that of the symbols (levels and gaps, pooled over many messages; floats count in full), None if the
    symbols of a combinator cannot be separated; ``zlib`` compresses the restored float32 vector.
    """

    input: str
    nonzeros: float
    nonzeros_stated: float | None
    stated: float | None
    coded: Interval
    entropy: float | None
    zlib: float
    frame: int


class Timing(NamedTuple):
    """Nanoseconds per coordinate on one thread, float32, fastest of a few calls; and those of a copy of the vector."""

    d: int
    encode: float
    decode: float
    copy: float


class Audit(NamedTuple):
    """Result of :func:`audit`; it prints as a report.

    Attributes
    ----------
    compressor : NamedTuple
        The audited compressor.
    d : int
        Length of the vectors.
    omega, delta : float or None
        The closed forms; None if there is none.
    rows : tuple of InputRow
        One for each input vector.
    worst : Worst
        The worst vector that the search found.
    wire : Wire or None
        Measurements of its messages; None for a Python function, which has no message format.
    timing : Timing or None
        Its speed; None for a Python function.
    faults : tuple of str
        Contradictions to the stated properties or to the contract.
    verdict : str
        "as stated", "nothing stated", or the faults.
    samples : int
        Draws for each input.
    state : int
        Length of the state that a worker stores between messages; the audit resets it for each message.
    seed : int
        The seed.
    """

    compressor: NamedTuple
    d: int
    omega: float | None
    delta: float | None
    rows: tuple[InputRow, ...]
    worst: Worst
    wire: Wire | None
    timing: Timing | None
    faults: tuple[str, ...]
    verdict: str
    samples: int
    state: int
    seed: int

    @property
    def ok(self) -> bool:
        """Whether there are no faults."""
        return not self.faults

    @property
    def unbiased(self) -> bool:
        """Whether no input showed a bias."""
        return not any(row.biased for row in self.rows)

    @property
    def z(self) -> float:
        """The largest z-score of the bias over the inputs."""
        return max(row.z for row in self.rows)

    @property
    def measured(self) -> InputRow:
        """The input with the largest relative error."""
        return max(self.rows, key=lambda row: row.error.estimate)

    def __str__(self) -> str:
        return sheet(self)

    def __repr__(self) -> str:
        return sheet(self)


class AuditTable(tuple):
    """Several audits; they print as two tables."""

    @property
    def ok(self) -> bool:
        """Whether no audit has faults."""
        return all(one.ok for one in self)

    def __str__(self) -> str:
        return "\n\n".join(lay_out(*table(self)) for table in (law_table, wire_table))

    __repr__ = __str__


# --- Baselines -------------------------------------------------------------------------------------------------------


class Deflated(NamedTuple):
    """Numbers of bits after zlib, of the packed payload and of the vector as float32.

    Attributes
    ----------
    payload : int
        Bits of the compressed payload.
    vector : int
        Bits of the compressed vector, as float32.
    """

    payload: int
    vector: int


def empirical_entropy(symbols: Any) -> float:
    """Entropy of the empirical distribution of the symbols, in bits per symbol.

    Parameters
    ----------
    symbols : array_like
        The sequence of symbols.

    Returns
    -------
    float

    Examples
    --------
    >>> empirical_entropy([0, 0, 1, 1])
    1.0
    """
    _, counts = np.unique(np.asarray(symbols), return_counts=True)
    share = counts / max(counts.sum(), 1)
    return float(-(share * np.log2(share)).sum()) + 0.0


def zlib_bits(c: Any, v: np.ndarray, key: Any) -> Deflated:
    """Size of a payload, and of the vector itself, after zlib at its best level.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    v : numpy.ndarray of float32 or float64, shape (d,)
        The vector.
    key : int
        Stream of the random numbers, see :func:`theory.key`.

    Returns
    -------
    Deflated

    Examples
    --------
    >>> from theory import QSGD
    >>> bits = zlib_bits(QSGD(7), np.zeros(10_000), 0)
    >>> bits.payload < 40_000 / 20, bits.vector < 320_000 / 20
    (True, True)
    """
    message = encode(c, v, key)
    payload = message[open_frame(message).start :]
    raw = np.asarray(v, np.float32).tobytes()
    return Deflated(8 * len(zlib.compress(payload, 9)), 8 * len(zlib.compress(raw, 9)))


# --- The messages of an audit ----------------------------------------------------------------------------------------

SLACK = 1e-9  # relative rounding error of a closed form in float64

SECONDS = 1.0  # seconds for the inputs, and again for the search, unless the numbers of samples are given

MESSAGES = 200  # messages whose bits are counted and whose symbols are pooled


CALLS = 5  # repetitions, of which the fastest counts


def closed_form(function: Callable[..., float], *given: Any) -> float | None:
    """The value of the function; None if there is no closed form."""
    try:
        return float(function(*given))
    except TypeError:
        return None


def seed_of(seed: int, *path: Any) -> int:
    """A seed of its own for each part of an audit."""
    return int(key(seed, "audit", *path))


EMPTY = np.iinfo(np.int32).min


def _pieces(array: Any, used: Any, unused: int) -> list | None:
    """The entries of ``index`` or ``level`` that each part uses; None if that is unknown.

    Parts usually have pieces of equal size; then all the entries that they use were written.  With another layout,
    every written entry must be in use.
    """
    n = used.size
    room = array.size // n
    if array.size % n == 0 and (used <= room).all():
        pieces = [array[p * room : p * room + used[p]] for p in range(n)]
        if all((piece != unused).all() for piece in pieces):
            return pieces
    written = array[array != unused]
    return [written] if written.size == used.sum() else None


def _entropy(symbols: Any) -> float:
    """Empirical entropy of all the symbols together, in bits."""
    symbols = np.concatenate(symbols) if symbols else np.empty(0, int)
    if symbols.size == 0:
        return 0.0
    _, counts = np.unique(symbols, return_counts=True)
    return float(-(counts * np.log2(counts / symbols.size)).sum())


def _entropy_bits(c: Any, d: int, v: Any, seed: int) -> tuple[Interval, float | None]:
    """Payload bits of many messages, and the entropy of their symbols in bits per message."""
    symbols, wire_bits = new_symbols(c, d, np.empty(0, np.float32)), np.empty(MESSAGES)
    stream, state = key(seed_of(seed, "wire")), np.zeros(state_size(c, d))
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
    entropy = (_entropy(levels) + _entropy(gaps) + raw) / MESSAGES if known else None
    return mean_interval(wire_bits, certain=True), entropy


def audit_wire(c: Any, d: int, name: str, v: np.ndarray, row: InputRow, seed: int) -> tuple[Wire, list[str]]:
    """Lengths and contents of the messages for v, and their faults."""
    faults, numbers = [], int(key(seed_of(seed, "message")))
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
    stated = closed_form(expected_payload_bits, c, v)
    if stated is not None and differs(bits, stated) and abs(bits.estimate - stated) > 1e-6 * stated:
        again = _entropy_bits(c, d, v, seed_of(seed, "payload again"))[0]
        if differs(again, stated):
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


def _fastest(call: Callable[[], Any], calls: int) -> float:
    best, since = math.inf, time.perf_counter()
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now - since > SECONDS:
            break
    return best


def audit_timing(c: Any, d: int, seed: int, calls: int) -> Timing:
    """Nanoseconds per coordinate for encoding and decoding."""
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


def differs(interval: Interval, value: float) -> bool:
    """Whether a stated value is outside the interval, up to rounding."""
    slack = SLACK * max(1.0, abs(value))
    return not interval.low - slack <= value <= interval.high + slack
