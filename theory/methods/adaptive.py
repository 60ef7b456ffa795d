"""Adaptive server rules: Adam and LAMB, of the mean of what was received.

Both take the step themselves: a memory then stores what was left out of the gradient, not of the gradient times the
step size, since their steps do not depend on the scale of what they are given.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..core import require, setting, traits
from ..problems.layer_slices import check_layers, layers
from .types import Messages, Run, Vector


def check_moments(rule: Any) -> None:
    """Reject factors of the moments and eps outside their domains."""
    for name in ("beta1", "beta2"):
        require(0.0 <= getattr(rule, name) < 1.0, name, getattr(rule, name), "a number from 0 to below 1")
    require(0.0 <= rule.eps < math.inf, "eps", rule.eps, "a finite number, at least 0")


def _check_rule(rule: Any) -> None:
    """Reject what `Adam` and `LAMB` have in common outside its domain."""
    check_moments(rule)
    require(0.0 <= rule.decay < math.inf, "decay", rule.decay, "a finite number, at least 0")
    require(0.0 < rule.rate < math.inf, "rate", rule.rate, "a finite number above 0")


def direction(run: Run, received: Messages, rule: Any) -> Vector:
    """Adam's u = m / (sqrt(v) + eps) + decay x, of the moments m and v of the mean g of what was received."""
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
    x = x - eta (m / (sqrt(v) + eps) + decay x), where g is the mean of what was received.

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
        """The names of the vectors that are kept from step to step."""
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
    """LAMB: Adam whose step in each layer is as long as a share of the layer itself.

    u is Adam's direction, with the weight decay; each layer moves by eta phi(||x||) u / ||u||, with
    phi(z) = min(max(z, low), high); by eta u where x or u is 0.

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
        """The names of the vectors that are kept from step to step."""
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
