"""Streaming DiLoCo on quadratics, exactly: outer steps on late differences, blended into the workers' models.

A fragment is exchanged every H local steps.  A = alpha (1 - gamma lambda)^H and S = (1 - alpha) (1 - gamma lambda)^(H -
tau) are what a period leaves of a worker's model, through its own weight and through the exchange.
"""

from __future__ import annotations

import numpy as np

from ..closed_form import formula

DOMAIN = (
    "curvature > 0",
    "0 < step <= 1 / curvature",
    "0 <= delay < local_steps",
    "0 <= blend < 1",
    "0 <= momentum < 1",
)


@formula(*DOMAIN, "outer > 0")
def streaming_factor(
    curvature: float,
    step: float,
    local_steps: int,
    *,
    delay: int = 0,
    blend: float = 0.0,
    outer: float = 1.0,
    momentum: float = 0.0,
) -> float:
    r"""Factor of the distance in a period of Streaming DiLoCo.

    Title: How fast Streaming DiLoCo is.
    Setting: (lambda/2) x^2, the same for all workers, local steps gamma <= 1/lambda, exact gradients; every H local
    steps a coordinate is sent, arrives tau steps later, moves the model by an outer step gamma_s with Nesterov's
    momentum beta, and is blended with the worker's own, which has the weight alpha.
    Statement: The factor is the largest |z| with det(M - z I) = (1 - z)(A - z)(beta - z) - gamma_s ((1 + beta) z -
    beta)((1 - S) z - A) = 0; M moves the mean of the workers' models, the model and its velocity from one arrival to
    the next. For gamma_s = 1 and beta = 0 it is A + S; for alpha = 0 that of DiLoCo with H - tau local steps: those of
    the delay are lost.
    Kind: identity (every start with a share in the slowest direction, in the limit of many periods).
    Latex: (z-1)(z-A)(z-\beta)+\gamma_s\big((1+\beta)z-\beta\big)\big((1-S)z-A\big)=0
    Proof: With s = (1 - gamma lambda)^(H - tau), Delta = x - s y, v_+ = beta v + Delta, x_+ = x - gamma_s (Delta + beta
    v_+), and y_+ = A y + (1 - alpha) x_+.
    Source: derived; the method is [douillard2025streaming].
    curvature: lambda.
    step: gamma.
    delay (int): tau.
    blend: alpha.
    outer: gamma_s.
    momentum: beta.

    >>> streaming_factor(1.0, 0.5, 2), streaming_factor(1.0, 0.5, 2, delay=1), streaming_factor(1.0, 0.5, 2, outer=1.5)
    (0.25, 0.5, 0.125)
    """
    left, own = (1.0 - step * curvature) ** (local_steps - delay), blend * (1.0 - step * curvature) ** local_steps
    velocity = np.array([-left, 1.0, momentum])  # of (y, x, v)
    x = np.array([0.0, 1.0, 0.0]) - outer * (np.array([-left, 1.0, 0.0]) + momentum * velocity)
    y = np.array([own, 0.0, 0.0]) + (1.0 - blend) * x
    return float(np.abs(np.linalg.eigvals(np.array([y, x, velocity]))).max())


@formula(*DOMAIN)
def streaming_limit(
    curvature: float, step: float, local_steps: int, *, delay: int = 0, blend: float = 0.0, momentum: float = 0.0
) -> float:
    r"""Outer step from which on Streaming DiLoCo is not stable.

    Title: How long an outer step of Streaming DiLoCo can be.
    Setting: as for `streaming_factor`.
    Statement: stable if and only if 0 < gamma_s < 2 (1 + beta) (1 + A)/((1 + 2 beta) (1 + A - S)).
    Kind: identity.
    Latex: 0<\gamma_s<\frac{2(1+\beta)}{1+2\beta}\cdot\frac{1+A}{1+A-S}
    Proof: The roots are 1, A and beta for gamma_s = 0, and the first one falls as gamma_s grows. On the unit circle
    both terms cancel for a positive gamma_s at z = -1 alone. For 0 < arg z < pi the angle of (z - 1)(z - beta)/(z -
    beta/(1 + beta)) is between that of z - 1 and pi, as complex roots of DiLoCo have the product beta (1 - gamma_s) <
    1; the factor (z - A)/(z - A/(1 - S)) turns it back by less than the angle of z - 1; and cancelling takes the angle
    pi.
    Source: derived; the method is [douillard2025streaming].
    curvature: lambda.
    step: gamma.
    delay (int): tau.
    blend: alpha.
    momentum: beta.

    >>> streaming_limit(1.0, 0.5, 1), round(streaming_limit(1.0, 0.5, 1, momentum=0.9), 4)  # 2/q and 3.8/(2.8 q)
    (4.0, 2.7143)
    """
    left, own = (1.0 - step * curvature) ** (local_steps - delay), blend * (1.0 - step * curvature) ** local_steps
    stays = 1.0 + own - (1.0 - blend) * left
    return 2.0 * (1.0 + momentum) * (1.0 + own) / ((1.0 + 2.0 * momentum) * stays)
