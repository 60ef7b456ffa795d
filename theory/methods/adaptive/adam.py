"""Adaptive server rules, Adam and LAMB, applied to the mean of the received messages; also with a divided state.

The row kernels compute moments, the ratio of the first to the root of the second, and trust ratios.  Adam and LAMB
apply the step size themselves, since their steps do not depend on the scale of their input. A memory then stores the
error in the gradient, not in the gradient times the step size.

With a divided state each worker stores a slice of it and moves that slice of the model.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core import require, setting, traits
from ...core.bound_calls import at, operation
from ...problems.network import check_layers, layers
from ..server import check_server, takes_the_step
from ..types import Messages, Run, Vector

# --- Row kernels of adaptive server rules ----------------------------------------------------------------------------


@operation
class Moments(NamedTuple):
    """Update both moments: Y = beta1 Y + (1 - beta1) P and V = beta2 V + (1 - beta2) P**2."""

    P: np.ndarray
    Y: np.ndarray
    V: np.ndarray
    beta1: float
    beta2: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        g, m, v, beta1, beta2 = b.P[r, w], b.Y[r, w], b.V[r, w], b.beta1, b.beta2
        for j in range(g.size):
            m[j] = beta1 * m[j] + (1.0 - beta1) * g[j]
            v[j] = beta2 * v[j] + (1.0 - beta2) * (g[j] * g[j])


@operation
class Adapt(NamedTuple):
    """Set Y = m / (sqrt(v) + eps), m = X / (1 - beta1^(t + 1)), v = V / (1 - beta2^(t + 1)) in round t; 0 where V is 0.

    With the factors 0 the moments are used without correction.
    """

    Y: np.ndarray
    X: np.ndarray
    V: np.ndarray
    beta1: float
    beta2: float
    eps: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        u, m, v = b.Y[r, w], b.X[r, w], b.V[r, w]
        first, second = 1.0 - b.beta1 ** (t + 1.0), 1.0 - b.beta2 ** (t + 1.0)
        for j in range(u.size):
            if v[j] == 0.0:
                u[j] = 0.0
            else:
                u[j] = (m[j] / first) / (np.sqrt(v[j] / second) + b.eps)


@operation
class Trust(NamedTuple):
    """Each layer of Y times phi(||x||)/||y||, phi(z) = min(max(z, low), high); 1 where one of the norms is 0.

    Layer k is from ``edges[k]`` to before ``edges[k + 1]``.
    """

    Y: np.ndarray
    X: np.ndarray
    edges: np.ndarray
    low: float
    high: float

    def _row(pointer, t, r, w):
        b = at(pointer)
        u, x = b.Y[r, w], b.X[r, w]
        for k in range(b.edges.size - 1):
            square, own = 0.0, 0.0
            for j in range(b.edges[k], b.edges[k + 1]):
                square += np.float64(u[j]) * u[j]
                own += np.float64(x[j]) * x[j]
            if square > 0.0 and own > 0.0:
                ratio = min(max(np.sqrt(own), b.low), b.high) / np.sqrt(square)
                for j in range(b.edges[k], b.edges[k + 1]):
                    u[j] *= ratio


# --- Adaptive server rules -------------------------------------------------------------------------------------------


def check_moments(rule: Any) -> None:
    """Reject factors of the moments and eps outside their domains."""
    for name in ("beta1", "beta2"):
        require(0.0 <= getattr(rule, name) < 1.0, name, getattr(rule, name), "a number from 0 to below 1")
    require(0.0 <= rule.eps < math.inf, "eps", rule.eps, "a finite number, at least 0")


def _check_rule(rule: Any) -> None:
    """Reject values of the common fields of `Adam` and `LAMB` outside their domains."""
    check_moments(rule)
    require(0.0 <= rule.decay < math.inf, "decay", rule.decay, "a finite number, at least 0")
    require(0.0 < rule.rate < math.inf, "rate", rule.rate, "a finite number above 0")


def direction(run: Run, received: Messages, rule: Any) -> Vector:
    """Adam's u = m / (sqrt(v) + eps) + decay x, of the moments m and v of the mean g of the received messages."""
    g, u, m, v = run.vector("g"), run.vector("u"), run.vector("m"), run.vector("v")
    run.set(g, received)  # g = mean Q
    run.add(g, run.x, scale=run.local_l2)  # g = g + l2 x, if the l2 term is not in Q
    run.update_moments(m, v, of=g, beta1=rule.beta1, beta2=rule.beta2)  # m of g, v of g^2
    # m' = m / (1 - beta1^t) in step t = 1, 2, ..., and v' likewise
    run.divide(u, m, by_root_of=v, eps=rule.eps, unbias=(rule.beta1, rule.beta2))  # u = m' / (sqrt(v') + eps)
    run.add(u, run.x, scale=rule.decay)  # u = u + decay x
    return u


@traits(by_coordinate=True)
@setting
class Adam(NamedTuple):
    """Adam: x moves by the mean of the gradients over the root of the mean of their squares.

    m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g**2, both divided by 1 - beta**(t + 1), and
    x = x - gamma (m / (sqrt(v) + eps) + decay x), where g is the mean of the received messages.

    Parameters
    ----------
    rate : float
        Factor of the step size.  In `LocalSGD`, whose differences include the step sizes, it is the outer step size.
    beta1, beta2 : float
        Factors of the moments, from 0 to below 1.
    eps : float
        Added to the root, at least 0.
    decay : float
        Weight decay apart from the gradient (AdamW), at least 0.

    Notes
    -----
    Kingma, Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1; Loshchilov, Hutter, "Decoupled
    weight decay regularization", ICLR 2019.  As an outer step of `LocalSGD`: Reddi et al., "Adaptive federated
    optimization", ICLR 2021.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.array([1.0, 100.0]), covariance=0.0)
    >>> method = th.ParallelSGD(step=th.Constant(0.5), server=th.Adam(eps=0.0))
    >>> th.run(method, problem, workers=2, steps=1, x0=np.ones(2)).x  # whatever the curvature
    array([0.5, 0.5])
    """

    rate: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    decay: float = 0.0

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the vectors that are stored from step to step."""
        return "m", "v"

    @property
    def takes_step(self) -> bool:
        """True: the rule applies the step size itself."""
        return True

    def domain(self) -> None:
        """Reject values outside the domain."""
        _check_rule(self)

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta (m / (sqrt(v) + eps) + decay x)."""
        u = direction(run, received, self)
        run.add(run.x, u, scale=-self.rate * run.eta_received)  # x = x - eta u


@setting
class LAMB(NamedTuple):
    """LAMB: Adam with a step in each layer that is proportional to the norm of the layer.

    u is Adam's direction with the weight decay. Each layer moves by gamma phi(||x||) u / ||u||, with phi(z) =
    min(max(z, low), high), or by gamma u if x or u is 0 in the layer.

    Parameters
    ----------
    rate, beta1, beta2, eps, decay : float
        As in `Adam`.
    low, high : float
        Bounds of phi.
    layers : tuple of slice, optional
        The layers; by default those of the problem, :func:`theory.layers`.

    Notes
    -----
    You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020, Algorithm 2.
    Released code often bounds the ratio ||x||/||u|| instead, such as to [0.01, 10].

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(3), covariance=0.0)
    >>> server = th.LAMB(layers=(slice(0, 2), slice(2, 3)))
    >>> method = th.ParallelSGD(step=th.Constant(0.5), server=server)
    >>> th.run(method, problem, workers=2, steps=1, x0=np.array([0.0, 4.0, 2.0])).x.round(6)
    array([0., 2., 1.])
    """

    rate: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-6
    decay: float = 0.0
    low: float = 0.0
    high: float = math.inf
    layers: Any = None

    @property
    def state(self) -> tuple[str, ...]:
        """The names of the vectors that are stored from step to step."""
        return "m", "v"

    @property
    def takes_step(self) -> bool:
        """True: the rule applies the step size itself."""
        return True

    def domain(self) -> None:
        """Reject values outside the domain."""
        _check_rule(self)
        require(0.0 <= self.low < math.inf, "low", self.low, "a finite number, at least 0")
        require(
            self.low <= self.high and self.high > 0.0,
            "high",
            self.high,
            f"a number above 0, at least low = {self.low:g}",
        )
        known = self.layers is None or (
            isinstance(self.layers, tuple) and all(isinstance(part, slice) for part in self.layers)
        )
        require(known, "layers", self.layers, "a tuple of slices, or None for those of the problem")

    def update(self, run: Run, received: Messages) -> None:
        """Move x to x - eta phi(||x||) u / ||u|| in each layer."""
        u = direction(run, received, self)
        run.rescale_layers(u, run.x, layers=self.layers, low=self.low, high=self.high)  # u = phi(||x||) u / ||u||
        run.add(run.x, u, scale=-self.rate * run.eta_received)  # x = x - eta u

    def check(self, problem: Any, d: int) -> None:
        """Reject layers that are not those of d coordinates."""
        check_layers(layers(problem) if self.layers is None else self.layers, d)


# --- A server rule whose state is divided ----------------------------------------------------------------------------


@setting
class Sharded(NamedTuple):
    """Each worker stores a slice of the server's state, moves its slice of x, and sends it to all others.

    These are the first two stages of ZeRO. In full precision the gradients are scattered, so a worker receives only the
    sum of its slice; compressed messages are gathered. The result is bit-identical to that of the rule itself.

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
        """True: each worker stores a slice of the state."""
        return True

    @property
    def state(self) -> tuple[str, ...]:
        """The vectors of which each worker stores a slice."""
        return tuple(getattr(self.server, "state", ()))

    @property
    def takes_step(self) -> bool:
        """Whether the rule applies the step size."""
        return takes_the_step(self.server)

    @property
    def with_memory(self) -> bool:
        """Whether the rule uses the error memory's part of the messages."""
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
        """Apply the rule to the slices of this process, then gather all slices."""
        self.server.update(run.shard(), received)
        run.gather_slices()
