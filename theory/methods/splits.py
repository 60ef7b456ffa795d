"""Splits of a data set among clients: sorted or Dirichlet, by label, by topic or by groups of your own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core import require
from ..core.arguments import finite_number, whole_number
from ..core.random import generator, key
from ..data.dataset import DataError
from ..data.twin import NAME as TWIN
from ..data.twin import topics
from .sampling import Split


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
        What has labels: ``data.y``, or ``problem.b``.
    by : {"label", "topic"} or array_like, shape (n,)
        The groups: rows of equal label; of equal topic, which the synthetic twin of RCV1 knows, and data of
        `rcv1_topics` have as labels; or of equal number in an array.
    workers : int
        N, at most the number of rows.
    alpha : float, optional
        Of each group's rows, worker w gets a share p_w, where p is drawn from a symmetric Dirichlet distribution with
        this parameter, for each group anew: parts of unequal size, whose mix of groups differs the more the smaller
        alpha is.  If omitted, the rows are sorted by group and cut into N runs of equal length (up to one row).
    seed : int
        The same seed draws the same shares, and the same order of the rows within a group.
    smallest : int
        With ``alpha``, a worker whose shares come to fewer rows gets the missing ones of those who have most.

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
    Shares for each label from a Dirichlet distribution: Yurochkin et al., "Bayesian nonparametric federated learning of
    neural networks" (ICML 2019).

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
