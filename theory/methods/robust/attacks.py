"""Hostile workers: what the server decodes of them is replaced by what an attack makes of all messages.

An *attack* is a setting with a kernel, ``forge(attack, sent, weight, hostile)``, which rewrites the rows of hostile
workers in the decoded messages of all.  The adversary knows every honest message of the round and is bound neither by
the compressor nor by the float format: it is at least as strong as one that must send messages.  What hostile workers
keep, such as error memories, is theirs alone, and the bits that are counted are those of the messages that honest
workers in their place would have sent.

:class:`Attacked` wraps a server, so that each attack meets each method with a server, compressor and memory, in the
simulator and on ranks with the same bits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core import generic, kernel, require, setting
from ...core.arguments import is_whole
from ...core.bound_calls import at, in_python, operation
from ..server import check_server, takes_the_step
from ..types import Messages, Run
from .servers import aggregate, decoded, move_robustly

forge = generic(
    "forge",
    "forge(attack, sent, weight, hostile): rewrite the rows of ``sent`` whose worker is ``hostile`` and acts (has a "
    "``weight``), from all rows.",
    inline=False,
)


@operation
class Forge(NamedTuple):
    """Replace the decoded messages of hostile workers."""

    attack: NamedTuple
    others: np.ndarray
    weight: np.ndarray
    hostile: np.ndarray

    def _row(pointer: Any, t: int, r: int, w: int) -> None:
        b = at(pointer)
        forge(b.attack, b.others[r], b.weight, b.hostile)


@kernel
def scale_hostile(sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray, factor: float) -> None:
    """Multiply what hostile workers send."""
    for i in range(hostile.size):
        if hostile[i] and weight[i] > 0.0:
            row = sent[i]
            for j in range(row.size):
                row[j] *= factor


@kernel
def send_honest(sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray, factor: float, deviations: float) -> None:
    """Hostile workers send ``factor`` times the mean of the honest, and so many of their standard deviations more."""
    for j in range(sent.shape[1]):
        mean, square, n = 0.0, 0.0, 0
        for i in range(hostile.size):
            if weight[i] > 0.0 and not hostile[i]:
                mean += sent[i, j]
                n += 1
        mean /= max(n, 1)
        for i in range(hostile.size):
            if weight[i] > 0.0 and not hostile[i]:
                square += (sent[i, j] - mean) ** 2
        lie = factor * mean + deviations * math.sqrt(square / max(n, 1))
        for i in range(hostile.size):
            if hostile[i] and weight[i] > 0.0:
                sent[i, j] = lie


@setting
class SignFlip(NamedTuple):
    """Hostile workers send what they would have sent times -scale.

    Parameters
    ----------
    scale : float
        Above 0.

    Examples
    --------
    >>> SignFlip()
    SignFlip(scale=1.0)
    """

    scale: float = 1.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.scale < math.inf, "scale", self.scale, "a finite number above 0")

    def forge(attack: Any, sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray) -> None:
        scale_hostile(sent, weight, hostile, -attack.scale)


@setting
class Scaling(NamedTuple):
    """Hostile workers send what they would have sent times a factor.

    Parameters
    ----------
    factor : float
        Finite.

    Examples
    --------
    >>> Scaling(1e6).factor
    1000000.0
    """

    factor: float

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(math.isfinite(self.factor), "factor", self.factor, "a finite number")

    def forge(attack: Any, sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray) -> None:
        scale_hostile(sent, weight, hostile, attack.factor)


@setting
class InnerProduct(NamedTuple):
    """Inner product manipulation: hostile workers send -epsilon times the mean of the honest messages.

    Parameters
    ----------
    epsilon : float
        Above 0.  The mean of all N messages points backwards if epsilon > (N - f)/f.

    Notes
    -----
    Xie, Koyejo, Gupta, "Fall of empires: breaking Byzantine-tolerant SGD by inner product manipulation", UAI 2019.

    Examples
    --------
    >>> InnerProduct(0.5)
    InnerProduct(epsilon=0.5)
    """

    epsilon: float = 0.1

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 < self.epsilon < math.inf, "epsilon", self.epsilon, "a finite number above 0")

    def forge(attack: Any, sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray) -> None:
        send_honest(sent, weight, hostile, -attack.epsilon, 0.0)


@setting
class ALIE(NamedTuple):
    """A little is enough: hostile workers send the honest mean less z honest standard deviations, by coordinate.

    Parameters
    ----------
    z : float
        How many; 0 stands for the most that hides among the honest, ``Phi^-1((N - f - s)/(N - f))``, with the s =
        floor(N/2) + 1 - f honest workers whom f hostile ones need for a majority.

    Notes
    -----
    Baruch, Baruch, Goldberg, "A little is enough: circumventing defenses for distributed learning", NeurIPS 2019.  The
    standard deviation is that of the honest numbers, divided by their number.

    Examples
    --------
    >>> round(ALIE().settled(20, 4).z, 4)
    0.1573
    """

    z: float = 0.0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(0.0 <= self.z < math.inf, "z", self.z, "a finite number, at least 0")

    def settled(self, workers: int, bad: int) -> ALIE:
        """The same with z for so many workers, of which some are hostile."""
        if self.z > 0.0:
            return self
        from scipy.special import ndtri  # slow to import

        needed, honest = workers // 2 + 1 - bad, workers - bad
        inside = 1 <= needed < honest
        require(inside, "z", self.z, f"a number above 0, where {bad} of {workers} workers are hostile")
        return ALIE(max(float(ndtri((honest - needed) / honest)), 1e-300))

    def forge(attack: Any, sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray) -> None:
        send_honest(sent, weight, hostile, 1.0, -attack.z)


@setting
class Mimic(NamedTuple):
    """Hostile workers send what one honest worker sends, so that it counts more often.

    Parameters
    ----------
    target : int
        That worker.

    Notes
    -----
    Karimireddy, He, Jaggi, "Byzantine-robust learning on heterogeneous datasets via bucketing", ICLR 2022.

    Examples
    --------
    >>> Mimic(3).target
    3
    """

    target: int = 0

    def domain(self) -> None:
        """Reject values outside the domain."""
        require(self.target >= 0, "target", self.target, "the number of a worker")

    def check_hostile(self, hostile: np.ndarray) -> None:
        """Reject a target that is no honest worker."""
        honest = self.target < hostile.size and not hostile[self.target]
        require(honest, "target", self.target, f"one of the honest workers, {np.flatnonzero(~hostile).tolist()}")

    def forge(attack: Any, sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray) -> None:
        for i in range(hostile.size):
            if hostile[i] and weight[i] > 0.0:
                for j in range(sent.shape[1]):
                    sent[i, j] = sent[attack.target, j]


@setting
class OneSided(NamedTuple):
    """Hostile workers send the same large number in every coordinate.

    Parameters
    ----------
    value : float
        The number; NaN and infinities, too.

    Examples
    --------
    >>> OneSided(-1e9).value
    -1000000000.0
    """

    value: float = 1e6

    def forge(attack: Any, sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray) -> None:
        for i in range(hostile.size):
            if hostile[i] and weight[i] > 0.0:
                sent[i] = attack.value


@setting
class Attack(NamedTuple):
    """An attack of your own, in Python.

    Parameters
    ----------
    function : callable
        ``function(honest, own)`` returns what the hostile workers send, an array that fits the shape (f, d), from the
        honest messages, shape (N - f, d), and what the hostile workers would have sent, shape (f, d).

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> server = th.Attacked(th.Mean(), Attack(lambda honest, own: -3.0 * honest.mean(axis=0)), attackers=1)
    >>> method = th.ParallelSGD(step=th.Constant(0.5), exchange="gather", server=server)
    >>> th.run(method, problem, workers=4, steps=1, x0=np.ones(2)).x  # (3 - 3)/4 = 0 remains of the mean
    array([1., 1.])
    """

    function: Any

    def domain(self) -> None:
        """Reject what is not a function."""
        require(callable(self.function), "function", self.function, "a function of two arrays", TypeError)


@in_python(Forge, Attack)
def _(b: Any, t: int, r: int, w: int) -> None:
    acting = b.weight > 0.0
    hostile, sent = acting & b.hostile, b.others[r]
    if hostile.any():
        found = np.asarray(b.attack.function(sent[acting & ~b.hostile].copy(), sent[hostile].copy()), float)
        shape = (int(hostile.sum()), sent.shape[1])
        own = (1,) * (2 - found.ndim) + found.shape
        fits = len(own) == 2 and all(n in (1, m) for n, m in zip(own, shape, strict=True))
        require(fits, "function", f"shape {found.shape}", f"an array that fits the shape {shape}")
        sent[hostile] = found


@setting
class Attacked(NamedTuple):
    """A server some of whose workers are hostile: their decoded messages are replaced before it sees them.

    Parameters
    ----------
    server : server rule
        `Mean`, `Momentum`, `Adam`, a robust rule such as `TrimmedMean`, `Robust`, or your own.
    attack : attack
        `SignFlip`, `Scaling`, `InnerProduct`, `ALIE`, `Mimic`, `OneSided`, or `Attack` with a function.
    attackers : int or tuple of int
        How many workers are hostile, the last of all; or which.

    Notes
    -----
    The messages of each worker are needed: ``exchange="gather"`` where they could be added.  All else, the memories of
    the hostile workers included, runs as if they were honest.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(2), covariance=0.0)
    >>> for server in (th.Mean(), th.Median()):
    ...     hostile = th.Attacked(server, th.OneSided(8.0), attackers=(1,))
    ...     method = th.ParallelSGD(step=th.Constant(0.5), exchange="gather", server=hostile)
    ...     print(th.run(method, problem, workers=4, steps=2, x0=np.ones(2)).x)
    [-1.234375 -1.234375]
    [0.25 0.25]
    """

    server: Any
    attack: Any
    attackers: Any = 1

    @property
    def state(self) -> tuple[str, ...]:
        """The vectors that the server keeps."""
        return tuple(getattr(self.server, "state", ()))

    @property
    def takes_step(self) -> bool:
        """Whether the server applies the step size."""
        return takes_the_step(self.server)

    @property
    def with_memory(self) -> bool:
        """Whether the server heeds what an error memory adds to the messages."""
        return bool(getattr(self.server, "with_memory", True))

    def domain(self) -> None:
        """Reject values outside the domain."""
        good = hasattr(self.server, "update") and not isinstance(self.server, (type, Attacked))
        require(good, "server", self.server, "a server rule, such as Mean()", TypeError)
        known = isinstance(self.attack, Attack) or forge.implements(type(self.attack))
        require(known, "attack", self.attack, "an attack, such as SignFlip()", TypeError)
        several = self.attackers if isinstance(self.attackers, tuple) else (self.attackers,)
        numbers = all(is_whole(w) and w >= 0 for w in several) and len(set(several)) == len(several)
        require(numbers, "attackers", self.attackers, "how many workers are hostile, or a tuple with their numbers")

    def check(self, problem: Any, d: int) -> None:
        """Check the server."""
        check_server(self.server, problem, d)

    def hostile(self, workers: int) -> np.ndarray:
        """Which of so many workers are hostile: a bool for each."""
        several = self.attackers if isinstance(self.attackers, tuple) else range(workers - self.attackers, workers)
        fits = len(several) < workers and all(0 <= w < workers for w in several)
        require(fits, "attackers", self.attackers, f"fewer than all of the {workers} workers, by their numbers")
        marked = np.zeros(workers, bool)
        marked[list(several)] = True
        return marked

    def update(self, run: Run, received: Messages) -> None:
        """Replace what hostile workers sent, and move x as the server does."""
        hostile = run.once("hostile", lambda: self.hostile(run.workers))
        attack = self.attack
        if isinstance(attack, ALIE):
            attack = attack.settled(run.workers, int(hostile.sum()))
        if isinstance(attack, Mimic):
            attack.check_hostile(hostile)
        sent = decoded(run, received)
        run.call(Forge(attack, sent, run.weight, hostile), run.single)
        if aggregate.implements(type(self.server)):
            move_robustly(self.server, run, sent)
        elif hasattr(self.server, "rule"):
            move_robustly(self.server.rule, run, sent, self.server.server)
        else:
            g = run.vector("mean of the decoded")
            run.set(g, 0.0)
            run.add(g, sent, weights=run.mean_weights)
            self.server.update(run, g)
