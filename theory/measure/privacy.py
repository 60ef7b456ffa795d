"""Privacy with random participation of workers, by the package dp-accounting (``sgd-theory[privacy]``)."""

from __future__ import annotations

from ..core import require
from ..core.arguments import finite_number, whole_number

LEAST = 1e-3
FINEST, POINTS = 1e-4, 2e5  # of the grid of privacy losses
MISSING = "dp-accounting, which accounts for chance, is not installed (pip install 'sgd-theory[privacy]')"


def sampled_privacy(
    epsilon: float,
    noise: float,
    steps: int = 1,
    share: float = 1.0,
    *,
    clients: int | None = None,
    workers: int | None = None,
) -> float:
    """The delta of (epsilon, delta)-differential privacy of messages that a worker sends only in some rounds.

    In each round every worker takes part independently with the same probability (Poisson sampling); or, with
    ``clients`` and ``workers``, a fixed number of them is drawn, as in `FedAvg`. The participants of a round are
    secret.

    Parameters
    ----------
    epsilon : float
        At least 0.
    noise : float
        sigma, the standard deviation of the noise in units of C, the norm to which vectors are clipped; at least 0.001.
    steps : int
        T, the number of rounds.
    share : float
        The probability, above 0 and at most 1; with 1 it is :func:`theory.bounds.gaussian_privacy`.
    clients, workers : int, optional
        m of N are drawn without replacement, in place of ``share``.

    Returns
    -------
    float
        An upper bound, up to the accuracy of the accountant's grid; 1 if it is vacuous.  With a fixed number the bound
        is loose: for one round in three cases it was 3 to 25 times the delta of the worst pair of inputs.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    ImportError
        If dp-accounting is not installed.

    Notes
    -----
    The package dp-accounting (Google) computes it. With a probability it uses privacy loss distributions, for a worker
    that is added or removed. With a fixed public number it uses the Rényi accountant of Wang, Balle, Kasiviswanathan,
    "Subsampled Rényi differential privacy and analytical moments accountant" (2019), for a worker whose data are
    replaced, so that a clipped vector moves by up to 2 C.

    Examples
    --------
    >>> from theory import bounds
    >>> all_take_part = sampled_privacy(1.0, 2.0, steps=10)
    >>> abs(all_take_part / bounds.gaussian_privacy(1.0, 2.0, steps=10) - 1.0) < 1e-3
    True
    >>> sampled_privacy(1.0, 2.0, steps=10, share=0.1) < all_take_part
    True
    >>> few, all_of_them = (sampled_privacy(1.0, 8.0, 10, clients=m, workers=64) for m in (8, 64))
    >>> few < all_of_them
    True
    """
    require(finite_number("epsilon", epsilon) >= 0.0, "epsilon", epsilon, "a number, at least 0")
    seen = "with less, delta is the probability to take part"
    require(finite_number("noise", noise) >= LEAST, "noise", noise, f"a number, at least {LEAST:g}; {seen}")
    require(0.0 < finite_number("share", share) <= 1.0, "share", share, "a number above 0 and at most 1")
    whole_number("steps", steps)
    fixed = clients is not None or workers is not None
    if fixed:
        require(share == 1.0, "share", share, "left out with a number of clients")
        few, many = whole_number("clients", clients), whole_number("workers", workers)
        require(few <= many, "clients", clients, f"at most the {many} workers")
    try:
        import dp_accounting
        from dp_accounting import pld, rdp
    except ImportError:
        raise ImportError(MISSING) from None
    if fixed:
        halved = dp_accounting.GaussianDpEvent(noise / 2.0)  # in units of 2 C
        event = dp_accounting.SampledWithoutReplacementDpEvent(many, few, halved)
        accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    else:
        event = dp_accounting.PoissonSampledDpEvent(share, dp_accounting.GaussianDpEvent(noise))
        widest = 1.0 / noise**2 + 20.0 / noise  # the losses that matter
        grid = max(FINEST, widest / POINTS)
        accountant = pld.PLDAccountant(value_discretization_interval=grid)
    accountant.compose(event, steps)
    return min(1.0, float(accountant.get_delta(epsilon)))
