"""A random rotation before a compressor and its inverse after it, so that a quantizer's error does not depend on v.

The message begins with the key of its rotation, so that a receiver needs nothing else. Every message has a new
rotation: with one rotation for all workers their errors would be the same, and averaging would not reduce them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ... import bounds
from ...core import kernel, require, setting
from ...core.random import bits, derive, normal
from ...core.vectors import add_entry
from ...wire.bits import read, write
from .. import base
from ..closed_forms import check_stateless, delta, expected_payload_bits, omega, reference
from ..kernels.norms import padded, rotate, rotate_back
from ..quantizers.qsgd import QSGD
from ..quantizers.scaled_levels import LloydMax
from ..quantizers.sign import ScaledSign, Sign
from ..registry import check_compressor, check_dimension, register

f64, u32, u64 = np.float64, np.uint32, np.uint64

KEY_BITS = 64
LARGEST_UNIFORM = 2**13  # a uniform rotation takes d^2/2 normal numbers
SAME_LENGTH = (Sign, ScaledSign, LloydMax)  # for every vector


@setting
class Rotated(NamedTuple):
    """The ``inner`` compressor on the vector rotated at random; the receiver rotates back.

    Parameters
    ----------
    inner : compressor
        The compressor of the rotated vector, without state.
    uniform : bool
        False: random signs times Hadamard's matrix, in d log d operations. The vector is padded with zeros to a power
        of two, and the padding is also sent.
        True: a uniform rotation, for which the formulas are exact, in d^2 operations; d is at most 8192.

    Notes
    -----
    The omega and the delta of ``inner`` also hold here. For the scaled sign delta is 1/2 instead of 1/d, and after a
    uniform rotation 1 - (1 - 1/d)(1 - 2/pi): "DRIVE" (NeurIPS 2021). :func:`eden` makes the unbiased compressors.

    Examples
    --------
    >>> import theory as th
    >>> drive = Rotated(th.ScaledSign())
    >>> drive, th.delta(th.ScaledSign(), 1000), th.delta(drive, 1000)
    (Rotated(inner=ScaledSign(norm=1), uniform=False), 0.001, 0.5)
    """

    inner: NamedTuple
    uniform: bool = False

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_compressor("inner", self.inner)

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        key, n = derive(stream, 0), padded(v.size, c.uniform)
        sign = plain_signs(key, n)
        x = sign * np.append(v.astype(float), np.zeros(n - v.size))
        if not c.uniform:
            inside = reference(c.inner, plain_hadamard(x), derive(stream, 1), wire)
            return (sign * plain_hadamard(inside))[: v.size]
        R = plain_rotation(key, n)
        return sign * (R.T @ reference(c.inner, R @ x, derive(stream, 1), wire))

    def capacity(c, d):
        n = padded(d, c.uniform)
        indices, values, levels, scratch = base.capacity(c.inner, n)
        return indices + 2, values, levels, scratch + 2 * n  # the key; the rotated vector in double precision

    def parts(c, d):
        return 1 + base.parts(c.inner, padded(d, c.uniform))

    def quantize(c, state, v, stream, symbols):
        key = derive(stream, u64(0))
        symbols.index[0], symbols.index[1] = u32(key), u32(key >> u64(32))
        symbols.count[0], symbols.count[1], symbols.count[2] = 2, 0, 0
        x = _rotated(c, symbols, v.size)
        for j in range(v.size):
            x[j] = v[j]
        x[v.size :] = 0.0
        rotate(key, c.uniform, x)
        base.quantize(c.inner, state, x, derive(stream, u64(1)), _inside(symbols, x.size))

    def accumulate(c, symbols, weight, out):
        x = _rotated(c, symbols, out.size)
        x[:] = 0.0
        base.accumulate(c.inner, _inside(symbols, x.size), 1.0, x)
        rotate_back(_key(symbols), c.uniform, x)
        for j in range(out.size):
            add_entry(out, j, weight * x[j])

    def payload_bits(c, symbols, d):
        n = padded(d, c.uniform)
        return KEY_BITS + base.payload_bits(c.inner, _inside(symbols, n), n)

    def max_payload_bits(c: Any, d: int, float_bits: int) -> int:
        return KEY_BITS + base.max_payload_bits(c.inner, padded(d, c.uniform), float_bits)

    def pack(c, symbols, d, buffer, cursor):
        n = padded(d, c.uniform)
        cursor = write(buffer, cursor, _key(symbols), KEY_BITS)
        return base.pack(c.inner, _inside(symbols, n), n, buffer, cursor)

    def unpack(c, buffer, cursor, end, d, symbols):
        if cursor + KEY_BITS > end:
            return -1
        key, n = read(buffer, cursor, KEY_BITS), padded(d, c.uniform)
        symbols.index[0], symbols.index[1] = u32(key), u32(key >> u64(32))
        symbols.count[0], symbols.count[1], symbols.count[2] = 2, 0, 0
        return base.unpack(c.inner, buffer, cursor + KEY_BITS, end, n, _inside(symbols, n))

    def check(c, d: int) -> None:
        check_dimension(d)
        if c.uniform:
            allowed = f"at most {LARGEST_UNIFORM} with uniform=True, which takes d^2 operations (see uniform=False)"
            require(d <= LARGEST_UNIFORM, "d", d, allowed)
        check_stateless("Rotated: inner", c.inner, padded(d, c.uniform))

    def omega(c, d: int) -> float:
        if not isinstance(c.inner, LloydMax) or not c.inner.unbiased:
            return omega(c.inner, padded(d, c.uniform))
        if not c.uniform:
            raise TypeError(f"{c!r} is biased, by bounds.hadamard_sign_bias at least; uniform=True is unbiased")
        if c.inner.bits > 1:
            raise TypeError(f"{c!r} is unbiased, but omega has no closed form: bounds.eden_variance is its limit")
        return bounds.rotated_sign_variance(d)

    def delta(c, d: int) -> float:
        n = padded(d, c.uniform)
        if c.inner not in (ScaledSign(), LloydMax(1)):
            return delta(c.inner, n)
        return 1.0 - bounds.rotated_sign_error(d) if c.uniform else bounds.hadamard_sign_contraction(n)

    def expected_payload_bits(c, v: np.ndarray) -> float:
        if not isinstance(c.inner, SAME_LENGTH):
            raise TypeError(f"{type(c.inner).__name__}: no closed form for the expected payload after a rotation")
        return KEY_BITS + expected_payload_bits(c.inner, np.ones(padded(len(v), c.uniform)))


def eden(bits: int, unbiased: bool = True, uniform: bool = False) -> Rotated:
    """Lloyd-Max levels after a random rotation: the compressor of "EDEN", or of "DRIVE" with one bit.

    Parameters
    ----------
    bits : int
        Bits per coordinate, from 1 to 8.
    unbiased : bool
        Whether to use EDEN's scale, with which the mean is v if the rotation is uniform; otherwise the scale with the
        least error.
    uniform : bool
        Whether the rotation is uniform; otherwise it is random signs times Hadamard's matrix, after which EDEN's scale
        is biased for vectors with few large entries (:func:`theory.bounds.hadamard_sign_bias`).

    Returns
    -------
    Rotated

    Notes
    -----
    Vargaftik et al., "EDEN: communication-efficient and robust distributed mean estimation" (ICML 2022).

    Examples
    --------
    >>> eden(2)
    Rotated(inner=LloydMax(bits=2, unbiased=True), uniform=False)
    """
    return Rotated(LloydMax(bits, unbiased), uniform)


# --- the plain reference ----------------------------------------------------------------------------------------------


def plain_signs(key: Any, n: int) -> np.ndarray:
    """The random signs of n coordinates."""
    words = [int(bits(derive(key, 0), i)) for i in range((n + 63) // 64)]
    return np.array([1 - 2 * (words[j // 64] >> j % 64 & 1) for j in range(n)])


def plain_hadamard(x: np.ndarray) -> np.ndarray:
    """Hadamard's matrix over sqrt(n) times x, added up in the order of the fast transform."""
    n, half = x.size, 1
    while half < n:
        pairs = x.reshape(-1, 2, half)
        x, half = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel(), 2 * half
    return x * (1.0 / math.sqrt(n))


def plain_rotation(key: Any, n: int) -> np.ndarray:
    """A uniform rotation up to the signs: the orthogonal factor of a Gaussian matrix, as a product of reflections."""
    R = np.eye(n)
    for k in range(n - 2, -1, -1):
        w = np.array([normal(derive(key, k + 1), i) for i in range(n - k)])
        w[0] += math.copysign(float(np.linalg.norm(w)), w[0])
        R[k:] -= np.outer(2.0 * w / (w @ w), w @ R[k:])
    return R


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _rotated(c, symbols, d):
    """Work space for the rotated vector."""
    n = padded(d, c.uniform)
    return symbols.scratch[: 2 * n].view(f64)


@kernel
def _inside(symbols, n):
    """The symbols of the inner message, for a rotated vector of length n."""
    return base.Symbols(symbols.count[3:], symbols.index[2:], symbols.value, symbols.level, symbols.scratch[2 * n :])


@kernel
def _key(symbols):
    return u64(symbols.index[0]) | (u64(symbols.index[1]) << u64(32))


register(Rotated, 55, lambda d: [Rotated(ScaledSign()), Rotated(LloydMax(2)), Rotated(QSGD(7))])
