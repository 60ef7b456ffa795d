"""The plain reference of a compressor, its closed forms, and the domain of d; in Python only."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from ..core import python_generic, require
from .base import fixed_bits, opening, quantize, shares_stream, state_size
from .registry import check_dimension


@python_generic
def reference(c: Any, v: np.ndarray, stream: Any, wire: DTypeLike) -> np.ndarray:
    """The vector that the receiver decodes for ``v``, computed in NumPy from the definition: slow but readable.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    v : ndarray of float32 or float64, shape (d,)
        The vector.
    stream : uint64
        Stream of the random numbers, see :func:`theory.key`.
    wire : dtype
        Floats of the message: float32 or float64.

    Returns
    -------
    ndarray of float64, shape (d,)
        Rounded to the dtype of v it equals the result of :func:`theory.compress`, except for the sign of zeros; a
        compressor whose kernels compute differently documents the difference.

    Examples
    --------
    >>> from theory import TopK
    >>> reference(TopK(2), np.array([1.0, -3.0, 2.0]), 0, np.float32)
    array([ 0., -3.,  2.])
    """
    index, value = sent_entries(c, v.astype(float), stream)
    out = np.zeros(v.size)
    out[index] = value.astype(wire)
    return out


@python_generic
def sent_entries(c: Any, v: np.ndarray, stream: Any) -> tuple[np.ndarray, np.ndarray]:
    """The positions that a sparsifier sends of ``v`` (float64), and the values there before rounding."""
    raise TypeError(f"{type(c).__name__} has no plain reference; write one and decorate it with @reference.register")


@python_generic
def check(c: Any, d: int) -> None:
    """Raise ``ValueError`` if the compressor ``c`` cannot be used on vectors of length ``d``.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.

    Examples
    --------
    >>> from theory import TopK, check
    >>> check(TopK(3), 2)
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    check_dimension(d)


def check_stateless(name: str, c: Any, d: int) -> None:
    """Raise ValueError unless the part of a compressor fits vectors of length d, has no state and shares no numbers.

    That is, it stores nothing between messages, and workers share no numbers before them.
    """
    check(c, d)
    free = not state_size(c, d) and not opening(c, d)
    require(free, name, c, "a compressor without a state of its own and without numbers that workers share")


@python_generic
def for_workers(c: Any, workers: int) -> Any:
    """The compressor ``c`` for this number of workers, for compressors that depend on it, such as `PermK`.

    Parameters
    ----------
    c : compressor
        A setting such as ``PermK()``.
    workers : int
        Number of workers.

    Returns
    -------
    compressor
        By default ``c`` itself.

    Raises
    ------
    ValueError
        If it is made for another number of workers, or contains such a compressor, whose parts cannot know the worker.
    """
    for name, part in zip(getattr(c, "_fields", ()), c if hasattr(c, "_fields") else (), strict=True):
        divided = for_workers.dispatch(type(part)) is not for_workers.dispatch(object)
        require(not divided, name, part, "a compressor that does not depend on the worker, within another one")
    return c


@python_generic
def first_state(c: Any, d: int, worker: int) -> tuple[float, ...]:
    """The initial state of a worker, for compressors with a state; by default zeros.

    Parameters
    ----------
    c : compressor
        A setting such as ``PermK(4)``.
    d, worker : int
        Length of the vectors, and the number of the worker, from 0 on.

    Returns
    -------
    tuple of float
        As many as ``state_size(c, d)``.
    """
    return (0.0,) * int(state_size(c, d))


@python_generic
def omega(c: Any, d: int) -> float:
    """Variance factor of an unbiased compressor: sup E||Q(v) - v||^2 / ||v||^2 over vectors of length d.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.

    Returns
    -------
    float
        omega, at least 0.

    Examples
    --------
    >>> from theory import QSGD, omega
    >>> omega(QSGD(s=1), 16)
    3.0
    """
    _missing(c, "omega", "unbiased", delta, "delta")


@python_generic
def mean_error(c: Any, d: int, workers: float) -> float:
    """The smallest known a with E||mean (Q(v_i) - v_i)||^2 <= a mean ||v_i||^2 for the messages of all workers.

    Parameters
    ----------
    c : compressor
        An unbiased one, such as ``QSGD(3)``.
    d : int
        Length of the vectors.
    workers : float
        N, or 1 over the largest weight.

    Returns
    -------
    float
        omega/N for independent messages; omega if all workers draw the same random numbers.
    """
    return omega(c, d) / (1.0 if shares_stream(c) else workers)


@python_generic
def delta(c: Any, d: int) -> float:
    """Contraction factor: the largest delta with E||C(v) - v||^2 <= (1 - delta) ||v||^2 for vectors of length d.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    d : int
        Length of the vectors.

    Returns
    -------
    float
        delta, above 0 and at most 1.

    Examples
    --------
    >>> from theory import TopK, delta
    >>> delta(TopK(3), 12)
    0.25
    """
    _missing(c, "delta", "a contraction", omega, "omega")


def _missing(c: Any, factor: str, what: str, other: Any, other_name: str) -> NoReturn:
    """Raise a ``TypeError`` that mentions the other factor only if it is defined."""
    name = type(c).__name__
    require(quantize.implements(type(c)), "c", c, "a compressor, such as TopK(10)", TypeError)
    there = other.dispatch(type(c)) is not other.dispatch(object)
    way = f"see {other_name}" if there else f"{other_name} is not either; audit({name}(...), d) measures bias and error"
    raise TypeError(f"{name} is not {what} (or has no closed form): {factor} is not defined, {way}")


@python_generic
def expected_nonzeros(c: Any, v: np.ndarray) -> float:
    """Expected number of non-zero coordinates of the decoded vector, for this vector ``v``.

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    v : ndarray, shape (d,)
        The vector.

    Returns
    -------
    float
        The mean over the compressor's random numbers.

    Examples
    --------
    >>> from theory import TopK, expected_nonzeros
    >>> expected_nonzeros(TopK(3), np.array([0.0, 1.0, -2.0, 0.0]))
    2.0
    """
    raise TypeError(f"{type(c).__name__}: no closed form for the expected non-zeros")


@python_generic
def expected_payload_bits(c: Any, v: np.ndarray) -> float:
    """Expected payload of one message in bits, for this vector ``v`` (float32 in the message).

    Parameters
    ----------
    c : compressor
        A setting such as ``TopK(10)``.
    v : ndarray, shape (d,)
        The vector.

    Returns
    -------
    float
        Without the frame around the payload.

    Examples
    --------
    >>> from theory import Identity, expected_payload_bits
    >>> expected_payload_bits(Identity(), np.ones(10))
    320.0
    """
    if not fixed_bits.implements(type(c)):
        raise TypeError(f"{type(c).__name__}: no closed form for the expected payload")
    return float(fixed_bits(c, len(v), 32))
