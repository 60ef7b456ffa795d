"""Random-k and top-k."""

from __future__ import annotations

from .closed_form import formula


@formula("1 <= k <= d")
def rand_k_variance(d: int, k: int) -> float:
    r"""Relative variance of unbiased random-k.

    Title (block.unbiased): A random block with the factor d/k.
    Title (unbiased): Random-k with the factor d/k is unbiased
    Setting: any v in R^d; Q keeps k coordinates, drawn without replacement, and multiplies them by d/k.
    Statement: E||Q(v) - v||^2 = (d/k - 1) ||v||^2.
    Statement (block.unbiased): k coordinates one after another from a uniform start, wrapping round, times d/k: E Q(v)
    = v and E||Q(v) - v||^2 = (d/k - 1) ||v||^2, as for random-k.
    Statement (unbiased): k coordinates drawn without replacement and multiplied by d/k: E Q(v) = v.
    Kind: identity.
    Kind (unbiased): identity.
    Latex: \mathbb{E}\|\tfrac dk\,\mathrm{rand}_k(v)-v\|^2 = (\tfrac dk-1)\|v\|^2
    Latex (block.unbiased): \mathbb{E}\|Q(v)-v\|^2 = (\tfrac dk-1)\|v\|^2
    Latex (unbiased): \mathbb{E}\,\tfrac dk\,\mathrm{rand}_k(v) = v
    Attained (block.unbiased): everywhere.
    Proof: A coordinate becomes d/k times itself with probability k/d: its second moment grows by d/k.
    Proof (block.unbiased): Exactly k of the d starts hold a given coordinate.
    Proof (unbiased): Each coordinate is kept with probability k/d.
    Source: derived; [stich2018sparsified], section 2.2.
    Source (block.unbiased): derived; random blocks are what public code of error feedback sends.
    Source (unbiased): [stich2018sparsified], section 2.2.
    k: From 1 to d.

    >>> rand_k_variance(d=100, k=10)
    9.0
    """
    return d / k - 1.0


@formula("1 <= k <= d")
def rand_k_contraction(d: int, k: int) -> float:
    r"""Contraction factor of random-k without the factor d/k.

    Title (block.contraction): A random block contracts.
    Setting: any v in R^d; C keeps k coordinates, drawn without replacement.
    Statement: E||C(v) - v||^2 = (1 - delta) ||v||^2 with delta = k/d.
    Statement (block.contraction): E||C(v) - v||^2 = (1 - k/d) ||v||^2 for k coordinates one after another, as they
    are.
    Kind: identity.
    Latex: \mathbb{E}\|\mathrm{rand}_k(v)-v\|^2 = (1-\tfrac kd)\|v\|^2
    Latex (block.contraction): \mathbb{E}\|C(v)-v\|^2 = (1-\tfrac kd)\|v\|^2
    Attained (block.contraction): everywhere.
    Proof (block.contraction): Each coordinate is lost with probability 1 - k/d.
    Proof: Each coordinate is lost with probability 1 - k/d.
    Source: [stich2018sparsified], Definition 2.1 and the lines below it.
    Source (block.contraction): derived; as for random-k.
    k: From 1 to d.

    Returns
    -------
    float
        delta.

    >>> rand_k_contraction(d=100, k=10)
    0.1
    """
    return k / d


@formula("1 <= k <= d")
def top_k_contraction(d: int, k: int) -> float:
    r"""Contraction factor of top-k.

    Title (contraction): Top-k contracts.
    Setting: any v in R^d; C keeps the k coordinates of largest magnitude.
    Statement: ||C(v) - v||^2 <= (1 - delta) ||v||^2 with delta = k/d.
    Statement (contraction): ||C(v) - v||^2 <= (1 - k/d) ||v||^2 for the k coordinates of largest magnitude.
    Kind: tight (attained if and only if all magnitudes are equal, or k = d).
    Latex (contraction): \|\mathrm{top}_k(v)-v\|^2 \le (1-\tfrac kd)\|v\|^2
    Attained (contraction): vectors of equal magnitudes, and only there (or k = d)
    Proof (contraction): The mean of the d - k smallest squares is at most the mean of all.
    Source: [stich2018sparsified], Definition 2.1; the mean of the d - k smallest squares is at most that of all.
    Source (contraction): [stich2018sparsified], Definition 2.1.
    k: From 1 to d.

    Returns
    -------
    float
        delta.

    >>> top_k_contraction(d=100, k=25)
    0.25
    """
    return k / d
