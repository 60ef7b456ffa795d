"""The minimum of ridge regression, from its dual."""

from __future__ import annotations

from .closed_form import formula


@formula("product > 0", "l2 > 0")
def ridge_minimum(product: float, *, l2: float) -> float:
    r"""Minimum of ridge regression, from the solution of its dual system.

    Title (minimum.rcv1): The minimum of ridge regression on RCV1.
    Setting: f(x) = (1/2n)||Ax - b||^2 + (lambda/2)||x||^2; alpha solves (AA' + n lambda I) alpha = b.
    Statement: f* = (lambda/2) b'alpha, at x* = A'alpha.
    Statement (minimum.rcv1): With lambda = 1/n, f* = (lambda/2) b'alpha for (AA' + n lambda I) alpha = b: what
    conjugate gradients give for the dual is the certified minimum of the primal.
    Kind: identity.
    Latex (minimum.rcv1): f^*=\frac\lambda2\,b^{\!\top}(AA^{\!\top}+n\lambda I)^{-1}b
    Source: folklore; at x* = A'alpha the residual is -n lambda alpha, so that f* = (n lambda^2/2)||alpha||^2 +
    (lambda/2)||A'alpha||^2 = (lambda/2) alpha'(AA' + n lambda I) alpha.
    Source (minimum.rcv1): folklore; the identity is derived at bounds.ridge_minimum.
    product: b'alpha.
    l2: lambda.

    >>> ridge_minimum(1.0 / (1.0 + 3.0), l2=3.0)  # one row, a = b = 1: f = (x - 1)^2/2 + 3 x^2/2 at x = 1/4
    0.375
    """
    return 0.5 * l2 * product
