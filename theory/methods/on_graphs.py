"""What methods on graphs have in common: a model for each worker, and messages that only neighbours hear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from ..compressors.base import opening
from ..compressors.closed_forms import delta
from ..compressors.identity import Identity
from ..core import require
from ..problems.base import dimension
from .custom import check_method, method
from .graphs import Mixing, mixing

T = TypeVar("T")


def on_graph(*, copies: int = 0, rows: int = 0, descends: bool = True) -> Callable[[type[T]], type[T]]:
    """Make a method on a graph from a NamedTuple with ``round(run)``, ``compressor``, ``step`` and ``graph``.

    Between two steps a worker stores ``copies`` vectors for each that it hears, itself included, and ``rows`` others.
    A method that does not descend has no gradients, and its step size is not used.
    """

    def decorate(cls: type[T]) -> type[T]:
        made: Any = cls
        made.models, made.settled, made.domain = "workers", _settled, _domain
        made.stores, made.descends = (copies, rows), descends
        return cast(type[T], method(made))

    return decorate


def _settled(self: Any, problem: Any) -> Any:
    """The same method, with full precision where there is no compressor."""
    compressor = Identity() if self.compressor is None else self.compressor
    require(
        int(opening(compressor, int(dimension(problem)))) == 0,
        "compressor",
        compressor,
        "on a graph, one whose workers combine nothing before they send: they do not hear all others",
    )
    return self._replace(compressor=compressor)


def _domain(self: Any) -> None:
    """Reject values outside the domain."""
    check_method(self)
    gamma = getattr(self, "gamma", None)
    fitting = isinstance(gamma, (int, float, np.integer, np.floating)) and 0.0 < gamma <= 1.0
    require(gamma is None or fitting, "gamma", gamma, "a number above 0 and at most 1")


def choco_step(gamma: float | None, compressor: Any, W: Mixing, d: int) -> float:
    """The consensus step gamma, by default that of CHOCO's theorem."""
    from .. import bounds

    return bounds.choco_gamma(W.gap, W.beta, delta(compressor, d)) if gamma is None else float(gamma)


def stored_bytes(method: Any, workers: int, d: int, own_bits: int) -> int:
    """Bytes that a worker stores between steps: the copies of what it hears, and what it keeps besides.

    The worker with most neighbours counts.
    """
    copies, rows = method.stores
    heard = int(mixing(method.graph, workers).hears.sum(axis=1).max()) if hasattr(method, "graph") else 0
    return (copies * heard + rows) * d * own_bits // 8
