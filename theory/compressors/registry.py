"""Registry of compressors: class, wire code and example instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..wire.descriptor import register_wire

_examples: dict[type, Callable[[int], list]] = {}


def register(cls: type, code: int, examples: Callable[[int], list]) -> type:
    """Register a compressor for the wire, the property tests, the audit and the documentation.

    Parameters
    ----------
    cls : type
        A NamedTuple made with `setting`; the type itself, not an instance.
    code : int
        Its code on the wire; 128 or more for classes outside this package.
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
    <class 'theory.compressors.sparsifiers.TopK'>
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
