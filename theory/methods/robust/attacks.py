"""Hostile workers: an attack replaces their decoded messages at the server, given all messages.

An *attack* is a setting with a kernel, ``forge(attack, sent, weight, hostile)``, which rewrites the rows of hostile
workers in the decoded messages of all.  The adversary knows every honest message of the round and is not limited by the
compressor or by the float format, so it is at least as strong as one that must send messages. The state of hostile
workers, such as error memories, runs as if they were honest, and the counted bits are those of the messages that honest
workers in their place would have sent.

:class:`Attacked` wraps a server, so that each attack meets each method with a server, compressor and memory, with
bit-identical results in the simulator and on ranks.
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
    """Multiply the messages of hostile workers."""
    for i in range(hostile.size):
        if hostile[i] and weight[i] > 0.0:
            row = sent[i]
            for j in range(row.size):
                row[j] *= factor


@kernel
def send_honest(sent: np.ndarray, weight: np.ndarray, hostile: np.ndarray, factor: float, deviations: float) -> None:
    """Hostile workers send ``factor`` times the honest mean plus a multiple of the honest standard deviation."""
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
    """Hostile workers send their honest messages times -scale.

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
    """Hostile workers send their honest messages times a factor.

    Parameters
    ----------
    factor : float
        A finite number.

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
    """A little is enough: in each coordinate hostile workers send the honest mean minus z standard deviations.

    Parameters
    ----------
    z : float
        Number of standard deviations; 0 chooses the largest one that hides among the honest numbers, ``Phi^-1((N - f -
        s)/(N - f))``, with the s = floor(N/2) + 1 - f honest workers that f hostile ones need for a majority.

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
        """The same attack with z for this number of workers and of hostile workers."""
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
    """Hostile workers send the message of one honest worker, which increases its weight.

    Parameters
    ----------
    target : int
        The number of that worker.

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
        """Reject a target that is not an honest worker."""
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
        The number; NaN and infinities are allowed.

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
    """An attack given by a Python function.

    Parameters
    ----------
    function : callable
        ``function(honest, own)`` returns the messages of the hostile workers, an array that broadcasts to the shape (f,
        d). ``honest`` are the honest messages, shape (N - f, d), and ``own`` are the messages that the hostile workers
        would have sent, shape (f, d).

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
        """Reject an argument that is not a function."""
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
    """A server with hostile workers, whose decoded messages are replaced before the server's rule is applied.

    Parameters
    ----------
    server : server rule
        `Mean`, `Momentum`, `Adam`, a robust rule such as `TrimmedMean`, `Robust`, or your own.
    attack : attack
        `SignFlip`, `Scaling`, `InnerProduct`, `ALIE`, `Mimic`, `OneSided`, or `Attack` with a function.
    attackers : int or tuple of int
        The number of hostile workers, which are the last ones; or their numbers.

    Notes
    -----
    The messages of each worker are needed, so use ``exchange="gather"`` if they could be added. Everything else,
    including the memories of the hostile workers, runs as if they were honest.

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
        """The vectors that the server stores."""
        return tuple(getattr(self.server, "state", ()))

    @property
    def takes_step(self) -> bool:
        """Whether the server applies the step size."""
        return takes_the_step(self.server)

    @property
    def with_memory(self) -> bool:
        """Whether the server uses the error memory's part of the messages."""
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
        """Whether each worker is hostile, as an array of bool."""
        several = self.attackers if isinstance(self.attackers, tuple) else range(workers - self.attackers, workers)
        fits = len(several) < workers and all(0 <= w < workers for w in several)
        require(fits, "attackers", self.attackers, f"fewer than all of the {workers} workers, by their numbers")
        marked = np.zeros(workers, bool)
        marked[list(several)] = True
        return marked

    def update(self, run: Run, received: Messages) -> None:
        """Replace the messages of hostile workers, and move x as the server does."""
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
