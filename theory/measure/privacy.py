"""Privacy where workers take part at random, by the accountant of dp-accounting: ``pip install "theory[privacy]"``."""

from __future__ import annotations

from ..core import require
from ..core.arguments import finite_number, whole_number

__all__ = ["sampled_privacy"]

MISSING = "dp-accounting, which accounts for chance, is not installed (pip install 'theory[privacy]')"


def sampled_privacy(epsilon: float, noise: float, steps: int = 1, share: float = 1.0) -> float:
    """The delta of (epsilon, delta)-differential privacy of messages that a worker sends in some rounds only.

    In each round every worker takes part with the same probability, independently (Poisson sampling), and nobody sees
    who did.  `FedAvg` draws a fixed number of clients instead: this is not about its runs.

    Parameters
    ----------
    epsilon : float
        At least 0.
    noise : float
        sigma, the deviation of the noise in units of C, the length to which vectors are clipped; above 0.
    steps : int
        T, the number of rounds.
    share : float
        The probability, above 0 and at most 1; with 1 it is :func:`theory.bounds.gaussian_privacy`.

    Returns
    -------
    float
        An upper bound, to the accuracy of the accountant's grid.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    ImportError
        Where dp-accounting is not installed.

    Notes
    -----
    Privacy loss distributions, as the package dp-accounting (Google) computes them; for add or remove of a worker.

    Examples
    --------
    >>> from theory import bounds
    >>> all_take_part = sampled_privacy(1.0, 2.0, steps=10)
    >>> abs(all_take_part / bounds.gaussian_privacy(1.0, 2.0, steps=10) - 1.0) < 1e-3
    True
    >>> sampled_privacy(1.0, 2.0, steps=10, share=0.1) < all_take_part
    True
    """
    require(finite_number("epsilon", epsilon) >= 0.0, "epsilon", epsilon, "a number, at least 0")
    require(finite_number("noise", noise) > 0.0, "noise", noise, "a number above 0")
    require(0.0 < finite_number("share", share) <= 1.0, "share", share, "a number above 0 and at most 1")
    whole_number("steps", steps)
    try:
        import dp_accounting
        from dp_accounting import pld
    except ImportError:
        raise ImportError(MISSING) from None
    event = dp_accounting.PoissonSampledDpEvent(share, dp_accounting.GaussianDpEvent(noise))
    accountant = pld.PLDAccountant()
    accountant.compose(event, steps)
    return float(accountant.get_delta(epsilon))
