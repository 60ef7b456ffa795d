"""The bits of a message as counted in the figures of Mem-SGD's authors, which differ from the bits sent."""

from __future__ import annotations

import math

from ..core import require
from .closed_form import formula

INDEX_AND_VALUE = 64  # 32 bits each


@formula("method in ('sgd', 'entries', 'qsgd')", "0 < nonzeros <= d")
def mem_sgd_counted_bits(method: str, d: int, number: int | None = None, nonzeros: float | None = None) -> int:
    """Bits of a message as counted in the figures of the Mem-SGD paper.

    Setting: one gradient in R^d, which has ``nonzeros`` non-zeros on average if the data are sparse. QSGD with b bits
    has s = 2^b levels and the norm of the whole vector.
    Statement: SGD: 64 times the non-zeros, or 64 d for dense data. k entries: 64 k. QSGD: the least of (b + 1) d, of 3
    s (s + sqrt(d)) + 32, and for sparse data of (b + 1 + 32) times the non-zeros, rounded up.
    Kind: identity, of an accounting. None of it is the length of a message: the second term of QSGD leaves out the
    logarithm of :func:`qsgd_code_length`, and on sparse data every non-zero is charged, sent or not; SGD's dense
    messages need no indices, 32 d bits.
    Source: epfml/sparsifiedSGD, notebooks/plots.ipynb, behind Figure 3 of [stich2018sparsified].
    number (int, optional): k for "entries", from 1 to d; b for "qsgd", from 1 to 24.
    nonzeros (float, optional): Non-zeros of a gradient, above 0 and at most d; omitted for dense data.

    >>> [mem_sgd_counted_bits("qsgd", 2000, b) for b in (2, 4, 8)]
    [617, 2947, 18000]
    """
    if method == "sgd":
        return math.ceil(INDEX_AND_VALUE * (d if nonzeros is None else nonzeros))
    most = d if method == "entries" else 24
    require(number is not None and 1 <= number <= most, "number", number, f"an integer from 1 to {most}")
    assert number is not None
    if method == "entries":
        return INDEX_AND_VALUE * number
    s = 2**number
    counts = [(number + 1) * d, 3 * s * (s + math.sqrt(d)) + 32]
    if nonzeros is not None:
        counts.append((number + 1 + 32) * nonzeros)
    return math.ceil(min(counts))


@formula("1 <= k <= d", "reading in ('counted', 'sent')")
def mem_sgd_bits_ratio(d: int, k: int, reading: str = "sent") -> float:
    r"""How many times fewer bits than SGD's a message of k entries has, on dense data.

    Setting: gradients without zeros in R^d; k entries with their indices, or all of them.
    Statement: counted: d/k, since the figures charge SGD for d indices that it need not send; sent: 32 d/(k (32 +
    ceil(log2 d))), in single precision.
    Kind: identity.
    Latex (sent): \frac{32\,d}{k(32+\lceil\log_2d\rceil)}
    Source: counted: epfml/sparsifiedSGD, notebooks/plots.ipynb, behind Figure 3 of [stich2018sparsified]; sent:
    derived.
    k: From 1 to d.

    >>> mem_sgd_bits_ratio(2000, 1, "counted"), mem_sgd_bits_ratio(2000, 1)
    (2000.0, 1488.372)
    """
    if reading == "counted":
        return d / k
    return 32.0 * d / (k * (32.0 + math.ceil(math.log2(d))))
