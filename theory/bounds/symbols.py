"""The symbols that formulas share: what each means, and the condition that holds wherever it is an argument."""

from __future__ import annotations

from typing import NamedTuple


class Symbol(NamedTuple):
    """A common argument: what it means, and its domain."""

    meaning: str
    condition: str


SYMBOLS = {
    "batch": Symbol("B", "batch >= 1"),
    "batch_bound": Symbol("B_D", "1 <= batch_bound <= inf"),
    "beta": Symbol("Share of the memory that is not fed back", "0 <= beta < 1"),
    "d": Symbol("Dimension", "d >= 1"),
    "delta": Symbol("Contraction: error <= (1 - delta) ||v||^2", "0 < delta <= 1"),
    "distance": Symbol("||x_0 - x*||^2 (squared)", "distance >= 0"),
    "gap": Symbol("f(x_0) - f*", "gap >= 0"),
    "kappa": Symbol("L/mu", "kappa >= 1"),
    "lipschitz": Symbol("L", "lipschitz > 0"),
    "local_steps": Symbol("H", "local_steps >= 1"),
    "mu": Symbol("", "mu > 0"),
    "omega": Symbol("Variance factor: E||Q(v) - v||^2 <= omega ||v||^2", "omega >= 0"),
    "p": Symbol("", "0 < p <= 1"),
    "residual": Symbol("1 - delta of the gradient compressor", "0 <= residual < 1"),
    "s": Symbol("Number of levels above zero", "s >= 1"),
    "second_moment": Symbol("G^2", "second_moment >= 0"),
    "step": Symbol("gamma", "step > 0"),
    "steps": Symbol("T", "steps >= 1"),
    "theta": Symbol("omega of the error compressor", "theta >= 0"),
    "v": Symbol("Finite numbers", ""),
    "variance": Symbol("sigma^2", "variance >= 0"),
    "workers": Symbol("N", "workers >= 1"),
}
