"""Differential privacy of clipped messages with Gaussian noise: guarantee, cost, and effect of quantization."""

from __future__ import annotations

import math

import scipy  # its parts load when they are used

from .closed_form import formula


@formula("epsilon >= 0", "noise > 0", "steps >= 1")
def gaussian_privacy(epsilon: float, noise: float, steps: int = 1) -> float:
    r"""The delta of (epsilon, delta)-differential privacy of a worker's clipped and noisy messages.

    Title: Privacy of T noisy messages.
    Setting: A message is g min(1, C/|g|) plus Gaussian noise of deviation sigma C in each entry; T of them are
    observed, in any compressed form. An absent worker sends the noise alone.
    Statement: delta = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2), mu = sqrt(T)/sigma, and no smaller
    delta holds for vectors of norm C or more.
    Kind: identity.
    Latex: \delta=\Phi\Big(\frac{\mu}{2}-\frac{\epsilon}{\mu}\Big)-e^{\epsilon}\Phi\Big(-\frac{\mu}{2}-\frac{\epsilon}
        {\mu}\Big),\quad\mu=\frac{\sqrt T}{\sigma}
    Proof: All of them together are a Gaussian vector whose mean moves by at most sqrt(T) C, with the deviation sigma C.
    The logarithm of the ratio of its two densities is normal, with the variance mu^2 and the means mu^2/2 and -mu^2/2;
    the event that attains delta is that it exceeds epsilon.
    Source: derived; Gaussian differential privacy and its composition are known, but those papers were not read.
    noise: sigma, in units of C.
    steps (int): T.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    >>> round(float(gaussian_privacy(0.0, noise=1.0)), 6), round(float(gaussian_privacy(1.0, noise=4.0, steps=16)), 6)
    (0.382925, 0.126937)
    """
    mu = math.sqrt(steps) / noise
    special = scipy.special
    return float(special.ndtr(mu / 2.0 - epsilon / mu) - math.exp(epsilon + special.log_ndtr(-mu / 2.0 - epsilon / mu)))


@formula("step > 0", "step * curvature < 2", "curvature > 0", "clip > 0", "noise >= 0", "d >= 1", "workers >= 1")
def private_floor(step: float, curvature: float, clip: float, noise: float, d: int, workers: int) -> float:
    r"""Limit of the mean squared distance of gradient descent with private messages.

    Title: The error that noise for privacy causes.
    Setting: The mean of N messages as for `gaussian_privacy`, none of which is clipped; f = lambda |x|^2/2.
    Statement: E|x|^2 tends to gamma sigma^2 C^2 d/(N lambda (2 - gamma lambda)).
    Kind: identity.
    Latex: \mathbb{E}\lVert x\rVert^2\to\frac{\gamma\,\sigma^2C^2d}{N\lambda(2-\gamma\lambda)}
    Proof: Each step multiplies it by (1 - gamma lambda)^2 and adds gamma^2 sigma^2 C^2 d/N.
    Source: derived.
    step: gamma, below 2/lambda.
    curvature: lambda.
    clip: C.
    noise: sigma, in units of C.

    >>> private_floor(0.5, 1.0, clip=2.0, noise=0.5, d=12, workers=4)
    1.0
    """
    return step * noise**2 * clip**2 * d / (workers * curvature * (2.0 - step * curvature))


@formula("0.5 < share < 1", "distance > 0", "clip > 0")
def clipped_fixed_point(share: float, distance: float, clip: float) -> float:
    r"""Fixed point of descent along the mean of clipped gradients, with two kinds of workers.

    Title: Clipping moves the minimum.
    Setting: A fraction p of the workers has |x|^2/2, the others have |x - b|^2/2; gradients are exact, and clipped to
    C.
    Statement: Descent ends at the distance (1 - p) min(|b|, C/p) from the minimum of the majority, towards b; the
    minimum of the mean is at (1 - p)|b|. The end point is the same for every step size.
    Kind: identity.
    Latex: \lVert x\rVert=(1-p)\min\Big(\lVert b\rVert,\frac{C}{p}\Big)
    Proof: Unless the others' gradients are clipped, it is x* = (1 - p) b, where they have the length p|b|. If that is
    more than C, p x = (1 - p) C b/|b|, and |x| < C.
    Source: derived.
    share: p.
    distance: |b|.
    clip: C.

    >>> clipped_fixed_point(0.75, 4.0, clip=1.5), clipped_fixed_point(0.75, 4.0, clip=10.0)
    (0.5, 1.0)
    """
    return (1.0 - share) * min(distance, clip / share)


@formula("d >= 1", "1 <= levels <= sqrt(d)")
def quantized_exposure(d: int, levels: int) -> float:
    r"""The delta of a quantizer without noise, for every epsilon.

    Title: Quantizing alone is not private.
    Setting: QSGD with s levels on a vector of d equal entries; an absent worker's vector is 0. Only the decoded vector
    is observed, not the norm in the message.
    Statement: delta = 1 - (1 - s/sqrt(d))^d for every epsilon: nearly 1.
    Kind: identity.
    Latex: \delta(\epsilon)=1-\Big(1-\frac{s}{\sqrt d}\Big)^{d}
    Proof: The vector 0 is always decoded as 0, so the event of a nonzero entry has the probability delta or 0.
    Source: derived.
    d (int): Number of entries.
    levels (int): s.

    >>> quantized_exposure(4, 1)
    0.9375
    """
    return 1.0 - (1.0 - levels / math.sqrt(d)) ** d
