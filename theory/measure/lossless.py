"""Baselines: a general lossless compressor, and the entropy, a lower bound for codes of single symbols."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from ..compressors.codec import encode
from ..wire.frame import open_frame


class Deflated(NamedTuple):
    """Bits after zlib: of the packed payload, and of the vector as float32.

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
