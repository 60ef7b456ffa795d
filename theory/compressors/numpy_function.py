"""A compressor given by one Python function: nothing is compiled for it, so it starts at once but runs slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core import require, setting
from ..core.arguments import finite_number
from ..core.random import generator
from ..core.settings import wants_two
from .base import accumulate, capacity, compress_into, max_payload_bits, pack, payload_bits, quantize, restore, unpack
from .closed_forms import delta, omega
from .lossless import Lossless

WIRE = Lossless()  # the encoding of its vectors


@setting
class FunctionCompressor(NamedTuple):
    """The result of a Python function on a vector, sent in full precision; see `compressor`.

    Parameters
    ----------
    function : callable
        ``function(v)`` or ``function(v, rng)``.
    random : bool
        Which of the two.
    factors : dict
        The known factors: ``omega``, ``delta``.
    """

    function: Any
    random: bool
    factors: dict

    def __repr__(self) -> str:
        return f"compressor({getattr(self.function, '__name__', type(self.function).__name__)})"

    def apply(self, v: np.ndarray, stream: Any) -> np.ndarray:
        """The vector that is sent for v."""
        v = np.array(v)  # the function may modify it
        found = np.asarray(self.function(v, generator(stream)) if self.random else self.function(v), float)
        require(found.shape == v.shape, "function", f"shape {found.shape}", f"an array of shape {v.shape}")
        return found


def compressor(function: Callable, *, omega: float | None = None, delta: float | None = None) -> FunctionCompressor:
    """Make a compressor of a Python function, for every method, in the simulator and over MPI.

    Its vectors are sent in full precision, as all numbers or as non-zeros with positions, whichever is shorter.  For
    codes of your own, and for speed, write a class: see "Add a compressor" in the documentation.

    Parameters
    ----------
    function : callable
        ``function(v)`` returns what is sent for the vector v, an array of its shape; ``function(v, rng)`` may draw
        with the ``numpy.random.Generator`` rng.
    omega : float, optional
        The variance factor, where the function is unbiased.
    delta : float, optional
        The contraction, where it is known.

    Returns
    -------
    FunctionCompressor
        The compressor.

    Raises
    ------
    TypeError
        If function cannot be called.
    ValueError
        If omega or delta is outside its domain.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> half = th.compressor(lambda v: np.where(np.abs(v) > np.median(np.abs(v)), v, 0.0))
    >>> half
    compressor(<lambda>)
    >>> th.compress(half, np.array([1.0, -4.0, 2.0, 0.5]), 0)
    array([ 0., -4.,  2.,  0.])
    """
    require(callable(function), "function", function, "a function of a vector", TypeError)
    require(delta is None or 0.0 <= finite_number("delta", delta) <= 1.0, "delta", delta, "a number from 0 to 1")
    require(omega is None or 0.0 <= finite_number("omega", omega) < np.inf, "omega", omega, "a number, at least 0")
    return FunctionCompressor(function, wants_two(function), {"omega": omega, "delta": delta})


def check_parts(name: str, c: Any) -> None:
    """Raise ``TypeError`` if a function is inside another compressor, whose kernels cannot call it."""
    for part in c if isinstance(c, tuple) and not isinstance(c, FunctionCompressor) else ():
        require(
            not isinstance(part, FunctionCompressor),
            name,
            f"a function within {type(c).__name__}",
            "a function by itself, or a class (see add-a-compressor)",
            TypeError,
        )
        check_parts(name, part)


def _stated(c: FunctionCompressor, name: str) -> float:
    if c.factors[name] is None:
        raise TypeError(f"{name}: nothing is known of a function, unless it is stated in compressor(..., {name}=...)")
    return float(c.factors[name])


omega.register(FunctionCompressor)(lambda c, d: _stated(c, "omega"))
delta.register(FunctionCompressor)(lambda c, d: _stated(c, "delta"))
max_payload_bits.register(FunctionCompressor)(lambda c, d, float_bits: max_payload_bits(WIRE, d, float_bits))

for function in (capacity, accumulate, payload_bits, pack, unpack, restore):
    function.in_python(FunctionCompressor)(lambda c, *arguments, function=function: function(WIRE, *arguments))


@quantize.in_python(FunctionCompressor)
def _(c, state, v, stream, symbols):
    quantize(WIRE, state, c.apply(v, stream), stream, symbols)


@compress_into.in_python(FunctionCompressor)
def _(c, state, v, stream, symbols, out):
    quantize(c, state, v, stream, symbols)
    restore(c, symbols, out)
