"""What an audit of a compressor returns."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .audit_tables import law_table, lay_out, sheet, wire_table
from .intervals import Interval

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
        """Whether there is a bias, in any direction or along v, that is more than rounding."""
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
    """Result of :func:`audit`; it prints as a sheet.

    Attributes
    ----------
    compressor : NamedTuple
        What was audited.
    d : int
        Length of the vectors.
    omega, delta : float or None
        The closed forms, None where there is none.
    rows : tuple of InputRow
        One for each input vector.
    worst : Worst
        The worst vector that the search found.
    wire : Wire or None
        Measurements of its messages; None for a Python function, which has no format of its own.
    timing : Timing or None
        Its speed; None for a Python function.
    faults : tuple of str
        Contradictions to the stated properties or to the contract.
    verdict : str
        "as stated", "nothing stated", or the faults.
    samples : int
        Draws for each input.
    state : int
        Length of the state that a worker stores between messages; here it is reset for each.
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
    """Several audits; it prints as two tables."""

    @property
    def ok(self) -> bool:
        """Whether no audit has faults."""
        return all(one.ok for one in self)

    def __str__(self) -> str:
        return "\n\n".join(lay_out(*table(self)) for table in (law_table, wire_table))

    __repr__ = __str__
