"""EF21-Muon: what Newton-Schulz steps make of a singular value, and the rate of steps of a fixed length in a norm."""

from __future__ import annotations

import math

from ...core import require
from ..closed_form import formula


@formula("0 <= value <= 1", "iterations >= 0")
def newton_schulz_value(value: float, iterations: int) -> float:
    r"""What Newton-Schulz steps make of a singular value.

    Setting: X = G/||G||_F, then so many steps X <- X (15 - 10 X'X + 3 (X'X)^2)/8; G = U S V'.
    Statement: U and V stay, and a singular value s of G/||G||_F becomes p(p(...p(s))), p(s) = s (15 - 10 s^2 + 3
    s^4)/8. It increases to 1 for s > 0. So X has the spectral norm <= 1, and <G, X> >= e ||G||_*, the sum of the
    singular values, where e is what becomes of the least one that is not 0.
    Kind: identity.
    Latex: s\leftarrow\tfrac18\,s\,(15-10s^2+3s^4),\qquad 1-s\leftarrow\tfrac18(1-s)^3(8+9s+3s^2)
    Proof: The polynomial is odd, so it acts on the singular values. p' = 15 (1 - s^2)^2/8 >= 0 and p(1) = 1.
    Source: derived; that Newton-Schulz steps stand for the singular value decomposition is Muon's, from memory.
    value: s, of a matrix with the Frobenius norm 1.

    >>> newton_schulz_value(0.5, 1), round(newton_schulz_value(0.5, 4), 9)
    (0.793, 1.0)
    """
    for _ in range(iterations):
        value = value * (15.0 - 10.0 * value**2 + 3.0 * value**4) / 8.0
    return value


@formula("growth >= 0", "0 < exact <= 1", "start >= 0", "ratio > 0", "dual >= 1")
def muon_gradient(
    steps: int,
    *,
    step: float,
    gap: float,
    lipschitz: float,
    growth: float = 0.0,
    exact: float = 1.0,
    delta: float = 1.0,
    start: float = 0.0,
    ratio: float = 1.0,
    dual: float = 1.0,
) -> float:
    r"""Mean gradient of EF21-Muon, steps of the length t in any norm, under generalised smoothness.

    Setting: EF21-Muon without momentum (a = 1), exact gradients, the model sent in full precision; x moves by t Z,
    ||Z|| <= 1 and <G, Z> <= -e ||G||_*, the dual norm; E||C(v) - v||^2 <= q^2 ||v||^2 in the Euclidean norm, q = sqrt(1
    - delta); on the way from x to the next model a gradient changes, over the distance s in the norm, by at most (L_0 +
    L_1 ||grad f(x)||_*) s in the dual norm, and those of the f_i in the mean by r times that in the Euclidean one.
    Statement: (1/K) sum_k E||grad f(x_k)||_* is at most the sum of (f(x_0) - f*)/(t K), L_0 t/2 and (1 + e) c (q B H +
    r t L_0 q/(1 - q) (1 - B)), over e - L_1 t/2 - (1 + e) c r t L_1 q/(1 - q). H = mean_i ||grad f_i(x_0)||_2, c is
    max ||v||_*/||v||_2, and B = (1 - q^K)/(K (1 - q)). With t of order 1/sqrt(K) the rate is 1/sqrt(K).
    Kind: tight (without compression).
    Latex: \frac1K\sum_k\mathbb{E}\|\nabla f(x_k)\|_*\le\frac{\frac{f(x_0)-f^*}{tK}+\frac{L_0t}2
    +(1+e)c\big(qBH+rtL_0\frac q{1-q}(1-B)\big)}{e-\frac{L_1t}2-(1+e)crt\frac{L_1q}{1-q}}
    Attained: for e = 1 and L_1 t < 1 by a function of one number that is quadratic between 0, t, 2t, ... with the
    curvature L_0 + L_1 |f'| at the upper end, from K t. On x^2/2 x alternates between y and y - t from a y in (0, t),
    and the mean tends to t/2.
    Proof: <grad f, Z> <= -e ||grad f||_* + (1 + e) ||grad f - G||_*, so f(y) <= f(x) - t e n + (1 + e) t c E + (L_0 +
    L_1 n) t^2/2, n = ||grad f(x)||_*, E = mean_i ||G_i - grad f_i||_2. E_0 <= q H, and E_{j+1} <= q (E_j + r t (L_0 +
    L_1 n_j)). Sum over the steps; each n_j is in later E with the weights q, q^2, ...
    Source: derived; the method is [gruntkowska2025muon], whose constants were not read here. It has momentum, noise and
    compression of the model, too.
    steps: K.
    step: t.
    lipschitz: L_0.
    growth: L_1.
    exact: e; 1 for an exact oracle, else :func:`newton_schulz_value`.
    start: H.
    ratio: r; at most 1 if the workers' functions are alike, as ||v||_2 <= ||v||_*.
    dual: c; the root of the sum of the ranks for spectral norms, of d for signs, of m for Euclidean norms of m layers.

    >>> [muon_gradient(4, step=0.5, gap=2.0, lipschitz=1.0, growth=one) for one in (0.0, 2.0)]
    [1.25, 2.5]
    """
    q = math.sqrt(1.0 - delta)
    late = q / (1.0 - q)
    mean = (1.0 - q**steps) / (steps * (1.0 - q))
    wrong = (1.0 + exact) * dual
    rest = exact - growth * step * (0.5 + wrong * ratio * late)
    require(rest > 0.0, "step", step, "one with e - L_1 t/2 - (1 + e) c r t L_1 q/(1 - q) > 0")
    errors = wrong * (q * mean * start + ratio * step * lipschitz * late * (1.0 - mean))
    return (gap / (step * steps) + lipschitz * step / 2.0 + errors) / rest
