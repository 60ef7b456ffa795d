"""A server rule whose state is divided: each worker keeps a slice of it, and moves that slice of the model."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import require, setting
from .adaptive import Adam
from .server import check_server, takes_the_step
from .types import Messages, Run


@setting
class Sharded(NamedTuple):
    """Each worker keeps a slice of the server's state, moves its slice of x, and sends it to all others.

    The first two stages of ZeRO: in full precision the gradients are scattered, so that a worker gets the sum of its
    slice only; compressed messages are gathered.  The bits are those of the rule itself.

    Parameters
    ----------
    server : server rule
        One that acts on each coordinate alone: `Adam`, `Momentum`, `OuterStep`, `Mean`, `Majority`, or your own
        that states ``by_coordinate = True``.

    Notes
    -----
    Rajbhandari, Rasley, Ruwase, He, "ZeRO: memory optimizations toward training trillion parameter models", SC 2020;
    :func:`theory.bounds.zero_memory`, :func:`theory.bounds.zero_volume`.

    The memories of error feedback belong to their workers and are not divided.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.arange(1.0, 9.0), covariance=1.0)
    >>> known = dict(workers=4, steps=20, x0=np.ones(8))
    >>> whole = th.run(th.ParallelSGD(step=th.Constant(0.1), server=th.Adam()), problem, **known)
    >>> divided = th.run(th.ParallelSGD(step=th.Constant(0.1), server=th.Sharded(th.Adam())), problem, **known)
    >>> np.array_equal(whole.x, divided.x), whole.server_bytes, divided.server_bytes
    (True, 128, 32)
    """

    server: Any = Adam()

    @property
    def divided(self) -> bool:
        """True: each worker keeps a slice of the state."""
        return True

    @property
    def state(self) -> tuple[str, ...]:
        """The vectors of which each worker keeps a slice."""
        return tuple(getattr(self.server, "state", ()))

    @property
    def takes_step(self) -> bool:
        """Whether the rule applies the step size."""
        return takes_the_step(self.server)

    @property
    def with_memory(self) -> bool:
        """Whether the rule heeds what an error memory adds to the messages."""
        return bool(getattr(self.server, "with_memory", True))

    def domain(self) -> None:
        """Reject values outside the domain."""
        good = hasattr(self.server, "update") and not isinstance(self.server, type)
        require(good, "server", self.server, "a server rule, such as Adam()", TypeError)
        require(
            getattr(self.server, "by_coordinate", False),
            "server",
            self.server,
            "a rule that acts on each coordinate alone and states by_coordinate = True, such as Adam()",
        )

    def check(self, problem: Any, d: int) -> None:
        """Check the other rule."""
        check_server(self.server, problem, d)

    def update(self, run: Run, received: Messages) -> None:
        """Apply the rule to the slices here, then gather all."""
        self.server.update(run.shard(), received)
        run.gather_slices()
