"""Warnings about compressed memories that may grow without bound, and the errors of messages in a run.

The warning comes from the closed forms of the compressors.  The mean square of a memory is multiplied by at most kappa
in every step (:mod:`theory.bounds`); for kappa >= 1 it is not bounded for any step size, and a run that seems to work
is only too short.  Without closed forms of both compressors there is no warning.

The error ||p - Q(p)||^2 is recorded with ||p||^2 in chosen rounds of a run.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...compressors import BALANCED, CountSketch, Identity, RandK
from ...compressors.base import accumulate
from ...compressors.closed_forms import delta, omega
from ...core import python_generic
from ...core.arguments import outside
from ...core.bound_calls import OTHER, at, operation
from ...core.vectors import entry
from ..messages import SymbolRows, symbols_of
from ..rows import row_of
from .contractive import ContractiveErrorFeedback, ImprovedContractiveErrorFeedback, LinearSketchFeedback

# --- Warning if a compressed memory grows without bound --------------------------------------------------------------


class UnstableMemoryWarning(UserWarning):
    """The memory of this run may grow without bound: kappa is not below 1."""


class BiasedErrorCompressorWarning(UserWarning):
    """The memory of this run is stored by a biased compressor, which the theory does not cover.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", BiasedErrorCompressorWarning)  # to run it all the same
    """


class Frontier(NamedTuple):
    """Kappa, its terms, and changes that would bring it below 1."""

    kappa: float
    because: str
    allowed: str


def warn_if_unstable(feedback: Any, compressor: Any, d: int) -> None:
    """Warn, at the caller of :func:`theory.run`, if kappa >= 1 for vectors of length d.

    Also if the memory is stored by a compressor with a contraction factor but no variance factor: it is biased, and the
    theory of the rule does not apply.
    """
    level = outside() or 4
    held = getattr(feedback, "error_compressor", None)
    if held is not None and _biased(held, d):
        warnings.warn(
            f"{type(feedback).__name__}: the error compressor {type(held).__name__} is biased; the known results for "
            "this rule (theory.bounds.conef and related bounds) need an unbiased one, such as Natural(), "
            "Bucketed(QSGD(s=15), 64) or CountSketch(...)",
            BiasedErrorCompressorWarning,
            stacklevel=level,
        )
    found = frontier(feedback, compressor, d)
    if found is not None and found.kappa >= 1.0 - 1e-12:
        warnings.warn(
            f"{type(feedback).__name__}: kappa = {found.kappa:.4g} is not below 1; it is {found.because}, so the "
            f"memory may grow without bound; allowed: {found.allowed}",
            UnstableMemoryWarning,
            stacklevel=level,
        )


@python_generic
def sends_evenly(compressor: Any) -> bool:
    """Whether a compressor sends every coordinate with the same probability, whatever the vector."""
    return False


@python_generic
def frontier(feedback: Any, compressor: Any, d: int) -> Frontier | None:
    """Kappa of a feedback rule with this compressor on vectors of length d; None where it has no closed form."""
    return None


@frontier.register
def _(feedback: ContractiveErrorFeedback, compressor: Any, d: int) -> Frontier | None:
    from ... import bounds

    stated = _stated(feedback.error_compressor, compressor, d)
    if stated is None or feedback.beta == 1.0:  # beta = 1: the memory is never fed back
        return None
    theta, residual = stated
    because = f"theta = {theta:.4g}, residual = {residual:.4g}"
    if feedback.beta == 0.0:
        allowed = _allowed(feedback.error_compressor, bounds.conef_frontier(residual), residual, d)
        return Frontier(bounds.conef_factor(theta, residual), f"(1 + theta) residual, {because}", allowed)
    if not sends_evenly(compressor):
        return None
    kept = bounds.partial_factor(0.0, residual, feedback.beta)
    because = f"(1 + theta) (residual + (1 - residual) beta^2), {because}, beta = {feedback.beta:g}"
    allowed = _allowed(feedback.error_compressor, 1.0 / kept - 1.0, kept, d)
    return Frontier(bounds.partial_factor(theta, residual, feedback.beta), because, allowed)


@frontier.register
def _(feedback: ImprovedContractiveErrorFeedback, compressor: Any, d: int) -> Frontier | None:
    from ... import bounds

    stated = _stated(feedback.error_compressor, compressor, d)
    if stated is None:
        return None
    (theta, residual), version = stated, f"v{feedback.version}"
    kappa = bounds.conef_factor(bounds.iconef_variance(theta, residual, version), residual)
    power = "(1 + theta^2) residual" if feedback.version == 1 else "(1 + theta residual) residual"
    allowed = f"theta < {bounds.conef_frontier(residual, version):.4g}"
    return Frontier(kappa, f"{power}, theta = {theta:.4g}, residual = {residual:.4g}", allowed)


@frontier.register
def _(feedback: LinearSketchFeedback, compressor: Any, d: int) -> Frontier | None:
    from ... import bounds

    sketch, beta = feedback.sketch, feedback.beta
    if isinstance(compressor, Identity):
        rate = 1.0
    elif isinstance(compressor, RandK) and not compressor.unbiased:
        rate = compressor.k / d
    else:
        return None
    if sketch.rows > 1 or beta == 1.0:
        return None
    load = math.ceil(d / sketch.width)  # some bucket is at least that full, whatever the hash
    square = bounds.kept_square(load, rate, "random-k", d)
    kappa = bounds.linear_sketch_factor(load, beta, rate, square)
    least = bounds.linear_sketch_frontier(load, rate, square)
    because = f"a bucket has {load} coordinates or more, each sent with probability {rate:.4g}"
    return Frontier(kappa, because, f"beta > {least:.4g} with {load} in every bucket, or a wider sketch")


def _states(factor: Callable[[Any, int], float], compressor: Any, d: int) -> bool:
    try:
        factor(compressor, d)
    except TypeError:
        return False
    return True


def _biased(compressor: Any, d: int) -> bool:
    """Whether a compressor has a closed form for delta but not for omega."""
    return _states(delta, compressor, d) and not _states(omega, compressor, d)


def _stated(error_compressor: Any, compressor: Any, d: int) -> tuple[float, float] | None:
    """Theta and the residual, or None if one of them has no closed form."""
    try:
        return float(omega(error_compressor, d)), 1.0 - float(delta(compressor, d))
    except TypeError:
        return None


def _allowed(error_compressor: Any, theta: float, residual: float, d: int) -> str:
    """The largest allowed theta, and for a count sketch the width that achieves it."""
    from ... import bounds

    text = f"theta < {theta:.4g}"
    if not isinstance(error_compressor, CountSketch) or error_compressor.rows > 1:
        return text
    width = bounds.sketch_frontier(d, residual, "balanced" if error_compressor.hash == BALANCED else "fresh")
    return f"{text}, which is a width of {width} or more" if width <= d else f"{text}, which no sketch of this hash has"


# --- The error of a message ------------------------------------------------------------------------------------------


@operation(kind=OTHER)
class RestoreMessages(NamedTuple):
    """Write Q(P) to V, restored from each worker's own message, in the rounds t with ``place[t]`` >= 0."""

    c: NamedTuple
    symbols: SymbolRows
    V: np.ndarray
    place: np.ndarray
    first: int

    def _row(pointer, t, r, w):
        b = at(pointer)
        if b.place[t] >= 0:
            v = b.V[r, w]
            for j in range(v.size):
                v[j] = 0.0
            accumulate(b.c, symbols_of(b.symbols, r, b.first + w), 1.0, v)


@operation(kind=OTHER, shared=("P",))
class CompareMessages(NamedTuple):
    """found[place[t], w] = (||p||^2, ||p - V||^2) in the same rounds."""

    P: np.ndarray
    V: np.ndarray
    place: np.ndarray
    found: np.ndarray

    def _row(pointer, t, r, w):
        b = at(pointer)
        if b.place[t] >= 0:
            p, v, size2, error2 = row_of(b.P, r, w), b.V[r, w], 0.0, 0.0
            for j in range(v.size):
                here, sent = np.float64(entry(p, j)), np.float64(v[j])
                size2 += here * here
                error2 += (here - sent) * (here - sent)
            b.found[b.place[t], w, 0], b.found[b.place[t], w, 1] = size2, error2
