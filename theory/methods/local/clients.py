"""Clients that take part in some rounds (FedAvg, FedProx, SCAFFOLD), and splits of a data set among them.

The splits are sorted or Dirichlet, by label, by topic or by given groups.  A round, in the notation of the
papers: S has m of the N clients, drawn without replacement, w_i is the weight of client i, and the state of an absent
client does not change::

    for each client i in S:  y = x
                             H times: y = y - gamma d
                             p = (x - y) + e_i,  send Q(p),  e_i = p - Q(p)
    x = x - (mean of Q(p) over S, with the weights w_i), or by another server rule

    FedAvg:   d = g, the mean of the batch's gradients of f_i at y
    FedProx:  d = g + mu (y - x)
    SCAFFOLD: d = g - c_i + c, and instead of p the client sends the change of its c_i, (x - y)/(H gamma) - c;
              c is the sum of w_i c_i over all clients

FedAvg is local SGD with partial participation, and runs the same round function.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...compressors.full_precision import Identity
from ...core import require, traits
from ...core.arguments import finite_number, is_whole, whole_number
from ...core.random import generator, key
from ...data.dataset import DataError
from ...data.twin import NAME as TWIN
from ...data.twin import topics
from ..custom import check_method, method
from ..gradients import Split
from ..memory.error_feedback import NoFeedback
from ..server import Mean
from ..topology import ParameterServer
from ..types import Run, Vector
from .local_sgd import LocalSGD

# --- Splits of a data set among clients ------------------------------------------------------------------------------


def split(
    data: Any,
    by: str | ArrayLike = "label",
    *,
    workers: int,
    alpha: float | None = None,
    seed: int = 0,
    smallest: int = 1,
) -> Split:
    """Divide the rows of data among workers whose data differ: the ``shards`` of a method.

    Parameters
    ----------
    data : Dataset or problem
        The labels are ``data.y`` or ``problem.b``.
    by : {"label", "topic"} or array_like, shape (n,)
        The groups: rows with equal label; rows with equal topic, which the synthetic twin of RCV1 and data of
        `rcv1_topics` have; or rows with equal number in an array.
    workers : int
        N, at most the number of rows.
    alpha : float, optional
        Worker w receives a fraction p_w of each group's rows, where p is drawn for each group from a symmetric
        Dirichlet distribution with this parameter. The parts have unequal sizes, and their mixtures of groups differ
        more if alpha is smaller. If omitted, the rows are sorted by group and cut into N runs of equal length (up to
        one row).
    seed : int
        The seed determines the fractions and the order of the rows within a group.
    smallest : int
        With ``alpha``, a worker with fewer rows than this receives the missing ones from the workers with the most
        rows.

    Returns
    -------
    Split

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    DataError
        If the data have no labels or topics.

    Notes
    -----
    Dirichlet fractions for each label: Yurochkin et al., "Bayesian nonparametric federated learning of neural networks"
    (ICML 2019).

    Examples
    --------
    >>> import theory as th
    >>> data = th.load_data("digits-10")
    >>> equal, uneven = th.split(data, workers=10), th.split(data, workers=10, alpha=0.3, seed=0)
    >>> equal.sizes.tolist()
    [179, 180, 180, 179, 180, 180, 179, 180, 180, 180]
    >>> int(uneven.sizes.sum()), bool(uneven.sizes.max() > 2 * uneven.sizes.min())
    (1797, True)
    >>> th.EF21(th.TopK(3), th.Constant(0.1), shards=uneven).shards is uneven
    True
    """
    groups = _groups(data, by)
    n = groups.size
    workers = whole_number("workers", workers, high=n)
    smallest = whole_number("smallest", smallest, high=n // workers)
    order = np.argsort(groups, kind="stable")
    ends = np.arange(1, workers + 1, dtype=np.int64) * n // workers
    if alpha is None:
        return Split(order, ends)
    require(finite_number("alpha", alpha) > 0.0, "alpha", alpha, "a number above 0")
    edges = [*np.flatnonzero(np.diff(groups[order])) + 1, n]
    rng, owner, begin = generator(key(seed, "split")), np.empty(n, np.int64), 0
    for end in edges:  # the rows of a group in a new order, cut where the shares end
        cuts = np.round(np.cumsum(rng.dirichlet(np.full(workers, float(alpha)))) * (end - begin))
        owner[rng.permutation(order[begin:end])] = np.searchsorted(cuts[:-1], np.arange(end - begin), side="right")
        begin = end
    sizes = np.bincount(owner, minlength=workers)
    while sizes.min() < smallest:
        poor, rich = int(sizes.argmin()), int(sizes.argmax())
        owner[rng.choice(np.flatnonzero(owner == rich))] = poor
        sizes[rich], sizes[poor] = sizes[rich] - 1, sizes[poor] + 1
    return Split(np.argsort(owner, kind="stable"), np.cumsum(sizes))


def _groups(data: Any, by: Any) -> np.ndarray:
    """The group of each row, as integers."""
    labels = getattr(data, "y", getattr(data, "b", None))
    if labels is None:
        raise DataError(f"split: {type(data).__name__} has no labels; give data, or a problem made of data")
    labels = np.asarray(labels)
    if isinstance(by, str):
        require(by in ("label", "topic"), "by", by, "'label', 'topic' or an array with the group of each row")
        if by == "topic" and getattr(data, "name", "") == TWIN:
            labels = topics()
        elif by == "topic" and np.unique(labels).size < 3:
            raise DataError("split: these data have no topics; take rcv1_topics(file), or give an array of groups")
    given = labels if isinstance(by, str) else np.asarray(by)
    n = labels.shape[0]
    fitting = given.shape == labels.shape and given.ndim == 1 and given.dtype.kind in "iufbUS"
    require(fitting, "by", f"shape {given.shape}, {given.dtype}", f"a number or name for each of {n} rows")
    return np.unique(given, return_inverse=True)[1]


# --- Clients that take part in some rounds ---------------------------------------------------------------------------


def take_part(method: Any, run: Run) -> None:
    """Activate the clients of this round: all of them, or the method's number, drawn without replacement."""
    if method.clients is not None or getattr(method, "epochs", None) is not None:
        run.choose(method.clients or run.workers)


def send_differences(method: Any, run: Run, y: Vector) -> None:
    """Send x - y, compressed and with the feedback of local SGD, and move x."""
    p = method.feedback.load(run)  # p = e_i
    run.add(p, run.x, minus=y)  # p = e_i + x - y
    message = method.topology.compress(run, method.compressor, p)  # Q(p)
    method.feedback.store(run, p, message)  # e_i = p - Q(p)
    received = method.topology.exchange(run, message)  # their mean, which the server sends to all
    method.server.update(run, received)  # the server moves x


def check_clients(method: Any) -> None:
    """Reject values outside the domain of methods with clients."""
    check_method(method)
    known = method.clients is None or (is_whole(method.clients) and method.clients >= 1)
    require(known, "clients", method.clients, "an integer, at least 1, or None for all")
    ParameterServer(method.down).domain()
    if (epochs := getattr(method, "epochs", None)) is not None:
        require(is_whole(epochs) and epochs >= 1, "epochs", epochs, "an integer, at least 1, or None for local_steps")
        passes = method.local_steps == 1 and method.sampling == "shuffle" and is_whole(method.batch)
        given = (method.local_steps, method.sampling, method.batch)
        require(passes, "local_steps, sampling and batch", given, "with epochs 1, 'shuffle' and an integer")


def topology_of(method: Any) -> ParameterServer:
    """A server that compresses what it sends with ``down``."""
    return ParameterServer(method.down)


def through_server(cls: type) -> type:
    """Add the common parts of methods with the fields ``clients`` and ``down``."""
    made: Any = cls
    made.listed, made.one_by_one = True, True
    made.topology = property(topology_of)
    made.step_factors, made.local_models, made.state = LocalSGD.step_factors, True, ("down",)
    made.domain = getattr(cls, "domain", check_clients)
    return made


@method
@through_server
class FedAvg(NamedTuple):
    """Federated averaging: in each round some clients take H local steps, and the server averages their differences.

    Parameters
    ----------
    compressor : compressor
        Q, of the differences that clients send; full precision by default.
    step : Constant or InverseTime
        Step sizes, by the number of the local step.
    local_steps : int
        H.
    clients : int, optional
        m, the number of the N clients that take part in a round, drawn without replacement; all by default.
    feedback : feedback rule
        The rule for the part of a difference that was not sent; the memory of an absent client does not change.
    server : server rule
        `Mean`, ``OuterStep(rate)`` for the server's step size, or a rule of FedOpt: `Momentum`, `Adam`.
    down : compressor
        D, of the mean that the server sends to all clients, with its own memory: see `ParameterServer`.
    batch, sampling, shards : int, str, and str or Split
        As in `ParallelSGD`; :func:`theory.split` makes shards.  In the mean over the participants a client's weight is
        proportional to its number of rows.
    epochs : int, optional
        E, in place of ``local_steps``: a client takes the ceil(E n_i / batch) local steps of E passes over its own n_i
        rows, each in a new order (``sampling="shuffle"``); the last batch has the remaining rows. If ``batch`` is at
        least every n_i, a step with E = 1 has the exact gradient of f_i. A run counts the steps of the largest client.

    Notes
    -----
    McMahan, Moore, Ramage, Hampson, Agüera y Arcas, "Communication-efficient learning of deep networks from
    decentralized data" (AISTATS 2017), Algorithm 1; with another server it is FedOpt of Reddi et al., "Adaptive
    federated optimization" (ICLR 2021).  :func:`theory.bounds.local_sgd_fixed_point` is its fixed point on quadratics.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = FedAvg(step=th.Constant(0.5), local_steps=3, clients=2)
    >>> float(th.run(method, problem, workers=8, steps=6, x0=np.ones(4)).x[0])
    0.015625
    """

    compressor: NamedTuple = Identity()
    step: Any = None
    local_steps: int = 1
    clients: Any = None
    feedback: Any = NoFeedback()
    server: Any = Mean()
    down: NamedTuple = Identity()
    batch: int | NamedTuple = 1
    sampling: str = "iid"
    shards: str | Split = "shared"
    epochs: Any = None

    def round(self, run: Run) -> None:
        """One round of local SGD, of the clients that take part."""
        take_part(self, run)
        LocalSGD.round(self, run)  # type: ignore[arg-type]


@method
@through_server
class FedProx(NamedTuple):
    """FedAvg with the proximal term mu/2 ||y - x||^2 added to f_i, where x is the model at the start of the round.

    Parameters
    ----------
    compressor : compressor
        Q, of the differences that clients send; full precision by default.
    step : Constant or InverseTime
        Step sizes, by the number of the local step.
    local_steps : int
        H.
    clients : int, optional
        m, the number of the N clients that take part in a round; all by default.
    feedback : feedback rule
        The rule for the part of a difference that was not sent.
    server : server rule
        The rule that moves the model, as in `FedAvg`.
    down : compressor
        D, of what the server sends to all clients, as in `FedAvg`.
    mu : float
        The weight of the term, at least 0; with 0 it is FedAvg.
    batch, sampling, shards : int, str, and str or Split
        As in `FedAvg`.
    epochs : int, optional
        As in `FedAvg`.

    Notes
    -----
    Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "Federated optimization in heterogeneous networks" (MLSys 2020),
    Algorithm 2, where the subproblem is solved by H steps.  :func:`theory.bounds.local_sgd_fixed_point` with ``prox``
    is its fixed point on quadratics.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.quadratic(np.ones(4), covariance=0.0)
    >>> method = FedProx(step=th.Constant(0.5), local_steps=2, mu=1.0)  # y = x/2, then 0 x/2 + x/2
    >>> float(th.run(method, problem, workers=2, steps=2, x0=np.ones(4)).x[0])
    0.5
    """

    compressor: NamedTuple = Identity()
    step: Any = None
    local_steps: int = 1
    clients: Any = None
    feedback: Any = NoFeedback()
    server: Any = Mean()
    down: NamedTuple = Identity()
    mu: float = 0.0
    batch: int | NamedTuple = 1
    sampling: str = "iid"
    shards: str | Split = "shared"
    epochs: Any = None

    def round(self, run: Run) -> None:
        """One round; each line is for all clients that take part."""
        take_part(self, run)
        y, g = run.local()
        run.set(y, run.x)  # y = x
        for _ in run.local_steps():
            run.set_gradient(g, at=y)
            run.add(g, y, scale=self.mu)
            run.add(g, run.x, scale=-self.mu)  # g + mu (y - x)
            run.add(y, g, scale=-run.eta)
        send_differences(self, run, y)

    def domain(self) -> None:
        """Reject values outside the domain."""
        check_clients(self)
        require(0.0 <= self.mu < math.inf, "mu", self.mu, "a finite number, at least 0")


@traits(listed=False, stores=(0, 1), state=("c", "down"))
@method
@through_server
class SCAFFOLD(NamedTuple):
    """Local steps corrected by control variates, so that clients with different data converge to the common minimum.

    Between two rounds a client stores c_i, the mean gradient of its last local steps (``memory_bytes``), and the server
    stores c (``server_bytes``), which all clients know from its messages.

    Parameters
    ----------
    compressor : compressor
        Q, of the change of c_i that a client sends, which tends to 0; c_i serves as the memory, as in EF21 and DIANA.
    step : Constant or InverseTime
        Step sizes, by the number of the local step; in a round whose steps differ, H gamma uses the first one.
    local_steps : int
        H.
    clients : int, optional
        m, the number of the N clients that take part in a round; all by default.
    server : server rule
        The rule that moves the model, as in `FedAvg`.
    down : compressor
        D, of what the server sends to all clients, as in `FedAvg`.
    batch, sampling, shards : int, str, and str or Split
        As in `FedAvg`.

    Notes
    -----
    Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, "SCAFFOLD: stochastic controlled averaging for federated learning"
    (ICML 2020), Algorithm 1 with option II, started with c_i = c = 0; the global step is ``server=OuterStep(...)``.
    The change of c_i also determines the change of the model, so a client sends one vector, not two.
    :func:`theory.bounds.scaffold_factor` is its rate on quadratics.

    Examples
    --------
    >>> import numpy as np, theory as th
    >>> problem = th.ridge(([[1.0], [2.0]], [1.0, 0.0]), l2=0.0)  # two clients, a row each; x* = 1/5
    >>> method = SCAFFOLD(step=th.Constant(0.1), local_steps=4, clients=1, shards="contiguous")
    >>> round(float(th.run(method, problem, workers=2, steps=1600).x[0]), 6)
    0.2
    """

    compressor: NamedTuple = Identity()
    step: Any = None
    local_steps: int = 1
    clients: Any = None
    server: Any = Mean()
    down: NamedTuple = Identity()
    batch: int | NamedTuple = 1
    sampling: str = "iid"
    shards: str | Split = "shared"

    def round(self, run: Run) -> None:
        """One round; each line is for all clients that take part."""
        take_part(self, run)
        (y, g), p, c_i, c, u = run.local(), run.scratch(), run.rows("c_i"), run.vector("c"), run.vector("u")
        run.set(y, run.x)  # y = x
        for _ in run.local_steps():
            run.set_gradient(g, at=y)
            run.add(g, c_i, scale=-1.0)
            run.add(g, c)  # g - c_i + c
            run.add(y, g, scale=-run.eta)
        length = self.local_steps * run.eta  # H eta
        run.set(p, run.x, scale=1.0 / length)
        run.add(p, y, scale=-1.0 / length)
        run.add(p, c, scale=-1.0)  # (x - y)/(H eta) - c, the change of c_i
        topology = topology_of(self)
        message = topology.compress(run, self.compressor, p)
        run.add(c_i, message)
        received = topology.exchange(run, message)  # its mean, which the server sends to all
        run.set(u, c, scale=length)
        run.add(u, received, scale=length)
        self.server.update(run, u)  # x = x - the mean of x - y
        share = float(run.setup.shards.weight[run.weight > 0.0].sum())  # of those who take part
        run.add(c, received, scale=share)
