"""Registry of compressors with class, code in messages and example instances; and shared checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core import require
from ..wire.frame import register_wire
from .base import quantize

# --- Checks that several compressors share ---------------------------------------------------------------------------

LARGEST_D = 2**31 - 1  # positions are uint32 on the wire, and Python's len is signed on some systems


def check_dimension(d: int) -> None:
    """Raise ValueError for a length outside the range that compressors accept."""
    require(isinstance(d, int) and 1 <= d <= LARGEST_D, "d", d, f"an integer from 1 to {LARGEST_D}")


def check_kept(c: Any, d: int) -> None:
    """Raise ValueError if the compressor keeps more coordinates than there are."""
    check_dimension(d)
    require(c.k <= d, "k", c.k, f"at most the length of the vector, {d}")


def check_compressor(name: str, c: Any) -> None:
    """Raise an error, with the name of the argument, unless c is a compressor."""
    require(quantize.implements(type(c)), name, c, "a compressor, such as QSGD(7)", TypeError)


# --- Registry of compressors -----------------------------------------------------------------------------------------

_examples: dict[type, Callable[[int], list]] = {}


def register(cls: type, code: int, examples: Callable[[int], list]) -> type:
    """Register a compressor for messages, the property tests, the audit and the documentation.

    Parameters
    ----------
    cls : type
        A NamedTuple made with `setting`; the type itself, not an instance.
    code : int
        Its code in messages; 128 or more for classes outside this package.
    examples : callable
        ``examples(d)`` returns instances for vectors of length d >= 1.

    Returns
    -------
    type
        The class.

    Examples
    --------
    >>> from theory import TopK
    >>> register(TopK, 2, lambda d, made=TopK: [made(max(1, d // 10))])
    <class 'theory.compressors.sparsifiers.random_and_top_k.TopK'>
    """
    register_wire(code, cls)
    for known in [old for old in _examples if old.__qualname__ == cls.__qualname__]:
        del _examples[known]  # a notebook cell that is run twice defines its class twice
    _examples[cls] = examples
    return cls


def registered() -> tuple[type, ...]:
    """The classes of all registered compressors, in the order of registration.

    Returns
    -------
    tuple of type
        NamedTuples made with `setting`.

    Examples
    --------
    >>> from theory import TopK
    >>> TopK in registered()
    True
    """
    return tuple(_examples)


def compressor_examples(d: int) -> Iterator[NamedTuple]:
    """Example instances of every registered compressor, for vectors of length ``d``.

    Parameters
    ----------
    d : int
        Length of the vectors, at least 1.

    Yields
    ------
    NamedTuple
        A compressor.

    Examples
    --------
    >>> from theory import TopK
    >>> TopK(1) in compressor_examples(10)
    True
    """
    for examples in _examples.values():
        yield from examples(d)
