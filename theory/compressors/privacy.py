"""Clipping and Gaussian noise before a compressor: differential privacy, which compression afterwards preserves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..core import kernel, require, setting
from ..core.random import derive, normal
from .base import capacity, quantize
from .closed_forms import check_stateless, reference
from .full_precision import Identity
from .kernels.norms import norm_of
from .quantizers.qsgd import QSGD
from .registry import check_compressor, register
from .wrappers.forward import forwards

f64, u64 = np.float64, np.uint64


@forwards
@setting
class Private(NamedTuple):
    """The message of ``inner`` for the vector after clipping and noise.

    Parameters
    ----------
    inner : compressor
        A compressor without state.
    clip : float
        Largest norm, above 0: a longer vector is scaled to this norm.
    noise : float
        Standard deviation of the Gaussian noise of an entry, in units of ``clip``; at least 0.

    Notes
    -----
    A worker's T messages are (epsilon, :func:`theory.bounds.gaussian_privacy`)-private with respect to its
    participation; the compressor ``inner`` does not change that. Noise and messages follow from the seed of the run, so
    that runs can be repeated: this is for experiments and does not protect data. Clipping makes it biased, so it has no
    omega and is not a contraction.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> quiet = Private(th.Identity(), clip=1.0, noise=0.0)
    >>> th.compress(quiet, np.array([3.0, 4.0]), 0)
    array([0.6, 0.8])
    """

    inner: NamedTuple
    clip: float
    noise: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_compressor("inner", self.inner)
        require(0.0 < self.clip < math.inf, "clip", self.clip, "a finite number above 0")
        require(0.0 <= self.noise < math.inf, "noise", self.noise, "a finite number, 0 or more")

    def reference(c, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
        x, key = v.astype(float), derive(stream, 0)
        x = x * min(1.0, c.clip / max(norm_of(x, 2.0), 1e-300))
        x += c.clip * c.noise * np.array([normal(key, j) for j in range(v.size)])
        return reference(c.inner, x, derive(stream, 1), wire)

    def capacity(c, d):
        indices, values, levels, scratch = capacity(c.inner, d)
        return indices, values, levels, scratch + 2 * d  # what is sent, in double precision

    def quantize(c, state, v, stream, symbols):
        x, key = _work(symbols, v.size), derive(stream, u64(0))
        for j in range(v.size):
            x[j] = v[j]
        factor = min(1.0, c.clip / max(norm_of(x, 2.0), 1e-300))
        for j in range(x.size):
            x[j] = factor * x[j] + c.clip * c.noise * normal(key, j)
        quantize(c.inner, state, x, derive(stream, u64(1)), symbols)

    def check(c, d: int) -> None:
        check_stateless("Private: inner", c.inner, d)

    def expected_nonzeros(c, v: np.ndarray) -> float:
        raise TypeError(f"{type(c).__name__}: no closed form for the non-zeros of a vector with noise")


# --- the fast path ----------------------------------------------------------------------------------------------------


@kernel
def _work(symbols, d):
    """The end of the scratch, behind that of the inner compressor."""
    return symbols.scratch[symbols.scratch.size - 2 * d :].view(f64)


register(Private, 61, lambda d: [Private(Identity(), 1.0, 0.5), Private(QSGD(7), 1.0, 0.5)])
