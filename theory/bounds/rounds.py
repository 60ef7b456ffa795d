"""Number of rounds in which each method keeps the rate of parallel SGD with batches of one."""

from __future__ import annotations

import math

from .closed_form import formula

ROUNDS = {
    "parallel SGD": ("T", "every gradient is averaged at once"),
    "local SGD": ("sqrt(N T)", "strongly convex: Stich, ICLR 2019"),
    "local SGD, non-convex": ("N^(3/4) T^(3/4)", "Yu, Yang, Zhu, AAAI 2019"),
    "CR-PSGD": ("log T", "under the PL condition: Yu, Jin, ICML 2019"),
    "CR-PSGD-Catalyst": ("sqrt(N T) log(T/N)", "smooth: Yu, Jin, ICML 2019"),
}


@formula("samples >= 1", "samples >= workers", f"method in {tuple(ROUNDS)}")
def rounds_order(method: str, samples: int, workers: int) -> float:
    r"""The order of the number of rounds in which a method keeps its rate, without constants.

    Title: Rounds that keep the rate, of all methods compared.
    Setting: T gradients for each of N workers; O(1/(N T)) for f - f* where f is strongly convex or PL, O(1/sqrt(N T))
    for ||grad f||^2 where it is neither.
    Statement: With the local steps, batches and budgets of their theorems, parallel SGD takes T rounds, local SGD
    sqrt(N T), or N^(3/4) T^(3/4) without convexity, CR-PSGD log T up to a factor, and CR-PSGD-Catalyst sqrt(N T)
    log(T/N) up to a factor.
    Kind: rate.
    Latex: T,\quad\sqrt{NT},\quad N^{3/4}T^{3/4},\quad\log T,\quad\sqrt{NT}\log(T/N)
    Proof: T/H rounds of local SGD; cr-psgd.rounds; catalyst.rounds.
    Source: [yu2019computation], section 1, where they are compared; [stich2019local]; Yu, Yang, Zhu, AAAI 2019.
    method: A key of ``ROUNDS``.
    samples: T.

    >>> [rounds_order(name, 10_000, 1) for name in ("parallel SGD", "local SGD", "local SGD, non-convex")]
    [10000.0, 100.0, 1000.0]
    """
    T, N = float(samples), float(workers)
    return {
        "parallel SGD": T,
        "local SGD": math.sqrt(N * T),
        "local SGD, non-convex": (N * T) ** 0.75,
        "CR-PSGD": math.log(T),
        "CR-PSGD-Catalyst": math.sqrt(N * T) * math.log(T / N),
    }[method]
