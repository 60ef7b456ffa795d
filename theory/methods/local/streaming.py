"""Streaming DiLoCo: outer steps on fragments of the model in turn, late and blended.

One round, for the fragment p whose turn it is, x_p being its coordinates, in the notation of the paper::

    L - tau times: x_i = x_i - gamma g_i, g_i the gradient of a batch at x_i
    Delta_i = x_p - x_i,p, whose message Q(Delta_i) is sent
    tau times, while the messages travel: x_i = x_i - gamma g_i
    x_p = outer step of x_p with mean Q(Delta_i)
    x_i,p = alpha x_i,p + (1 - alpha) x_p
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ...compressors.full_precision import Identity
from ...compressors.wrappers.bucketed import Bucketed
from ...compressors.wrappers.forward import SkipZero
from ...core import require, traits
from ...core.arguments import whole_number
from ..custom import check_method, method
from ..gradients import Split
from ..server import OuterStep
from ..topology import travelling
from ..types import Messages, Run, Scale, Vector
from .local_sgd import LocalSGD


class Fragment:
    """The operations of a run that a server rule calls, on a part of the coordinates; messages are 0 elsewhere."""

    def __init__(self, run: Run, part: slice) -> None:
        self.run, self.part = run, part

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def scale(self, y: Vector, factor: Scale) -> None:
        """Multiply: y = factor y."""
        y[..., self.part] *= number(factor)

    def add(self, y: Vector, x: Vector | Messages, scale: Scale = 1.0, *, keep: Scale = 1.0) -> None:
        """Add: y = keep y + scale x."""
        if isinstance(x, np.ndarray):
            y[..., self.part] = number(keep) * y[..., self.part] + number(scale) * x[..., self.part]
        else:
            self.scale(y, keep)
            self.run.add(y, x, scale)


def number(scale: Scale) -> np.float64:
    """A scale in this round, in double precision."""
    return np.float64(float(scale))


@traits(stores=(0, 1), listed=False)
@method
@traits(local_models=True, step_factors=LocalSGD.step_factors)
class StreamingDiLoCo(NamedTuple):
    """Local SGD with outer steps on one fragment of the model at a time, whose messages travel while workers compute.

    The model is cut into P fragments of equal length.  After each L local steps one of them has its outer step, so that
    each has one every H = P L steps.  A message is P times as short as that of `LocalSGD` with H local steps, in whose
    time there are P of them.  A worker stores a model of its own (``memory_bytes``).

    Parameters
    ----------
    compressor : compressor
        Q, of the difference of a fragment; with several fragments one without a state of its own.
    step : Constant or InverseTime
        Step sizes, by the number of the local step.
    local_steps : int
        L, the number of steps between two exchanges, and the length of a round.
    fragments : int
        P; the last fragment is shorter if P does not divide the number of coordinates, and none may be empty.
    delay : int
        tau, from 0 to L - 1: local steps while messages travel.
    blend : float
        alpha, the weight of a worker's own model, from 0 to below 1.
    server : server rule
        The outer step: `OuterStep`, `Mean` or `Momentum`.
    batch, sampling, shards : int, str, and str or Split
        As in `ParallelSGD`.

    Notes
    -----
    Douillard et al., "Streaming DiLoCo with overlapping communication: towards a distributed free lunch" (2025),
    Algorithm 2, as quoted from the code of torchft.  In the paper the local steps are those of AdamW, and each number
    of a message has 4 bits, for a sign and a power of two, from memory; ``QSGD(7, inf)`` has as many, for levels at
    equal distances.  With one fragment, no delay and ``blend=0`` it is DiLoCo, `LocalSGD` with an outer step.
    :func:`theory.bounds.streaming_factor` is its rate on quadratics, :func:`theory.bounds.streaming_limit` the longest
    outer step.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = StreamingDiLoCo(step=th.Constant(0.5), local_steps=1, fragments=2, server=th.OuterStep(1.0))
    >>> th.run(method, problem, workers=2, steps=3, x0=np.ones(4)).x  # exchanged after steps 1 and 3, and after step 2
    array([0.125, 0.125, 0.25 , 0.25 ])
    """

    compressor: NamedTuple = Identity()
    step: Any = None
    local_steps: int = 1
    fragments: int = 1
    delay: int = 0
    blend: float = 0.0
    server: Any = OuterStep(0.7, 0.9, nesterov=True)
    batch: int | NamedTuple = 1
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """Local steps and the exchange of a fragment; each line is for all workers at once."""
        y, p, steps = run.own(run.copies("y", start=run.start)), run.rows("p"), run.local_steps()  # y = x_0 at first
        size = -(-run.d // self.fragments)
        full = (self.fragments - 1) * size < run.d
        require(full, "fragments", self.fragments, f"a number with which no fragment of {size} coordinates is empty")
        begin = run.round % self.fragments * size
        fragment = Fragment(run, slice(begin, begin + size))
        self.walk(run, y, islice(steps, self.local_steps - self.delay))
        run.set(p, 0.0)
        fragment.add(p, run.x)
        fragment.add(p, y, scale=-1.0)  # p = x - y on the fragment, 0 elsewhere
        Q = Bucketed(SkipZero(self.compressor), size) if self.fragments > 1 else self.compressor
        with travelling(run, run.compress(Q, p)) as received:  # Q(p), a bit for each other fragment
            self.walk(run, y, islice(steps, self.delay))
        self.server.update(fragment, received)  # the outer step of x, on the fragment
        fragment.add(y, run.x, scale=1.0 - self.blend, keep=self.blend)  # y = alpha y + (1 - alpha) x on the fragment

    def walk(self, run: Run, y: Vector, steps: Iterator[int]) -> None:
        """Some of the local steps of the round."""
        g = run.scratch()
        for _ in steps:
            run.set_gradient(g, at=y)  # g = gradient at y
            run.add(y, g, scale=-run.eta)  # y = y - eta g

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_method(self)
        whole_number("fragments", self.fragments)
        whole_number("delay", self.delay, 0, self.local_steps - 1)
        require(0.0 <= self.blend < 1.0, "blend", self.blend, "a number from 0 to below 1")
        by_parts = getattr(self.server, "sparse_rows", False) and getattr(self.server, "by_coordinate", False)
        require(by_parts, "server", self.server, "OuterStep(...), Mean() or Momentum(...), which act on parts of x")
