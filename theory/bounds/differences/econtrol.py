"""EControl: what it forgets of its errors in a step, and what gradient noise leaves of it, of EF and of EF21.

q is sqrt(1 - delta).  In EControl u_i = eta e_i + g_i - h_i is what worker i compresses, with the factor eta of its
error e_i.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts load when they are used

from ...core import require
from ..closed_form import formula

KEPT = {"EF": [0, 1], "EF21": [0, 2], "EControl": [0, 1, 2]}  # of (x, e_i, h_i)


@formula("0 < control < (1 - sqrt(1 - delta)) / (1 + sqrt(1 - delta))")
def econtrol_decay(delta: float, control: float) -> float:
    r"""Share of the memories' error that EControl forgets in a step.

    Setting: EControl with E||C(v) - v||^2 <= (1 - delta) ||v||^2; L~ the root of the mean of the L_i^2; exact
    gradients.
    Statement: With V = (||C(u) - u|| + w ||e||)^2, norms being roots of means over workers: the step errs by at most V,
    and V_{t+1} <= (1 - A) V_t + q^2/A L~^2 R. So :func:`difference_step` with r = q/A and its rates hold. A = 1 - max(q
    (1 + eta) + w, 1 - eta + q eta^2/w), w the larger of eta and the number at which the two are equal.
    Kind: upper.
    Latex: A=1-\max\Big(q(1+\eta)+w,\ 1-\eta+\frac{q\eta^2}w\Big),\quad q=\sqrt{1-\delta},\ w\ge\eta
    Proof: r = u - C(u) gives h_+ - g = eta e - r and e_+ = (1 - eta) e + r, so that u_+ = (1 + eta) r - eta^2 e + the
    change of g_i. With Minkowski ||r_+|| <= q ((1 + eta) ||r|| + eta^2 ||e|| + L~ sqrt(R)), ||e_+|| <= (1 - eta) ||e||
    + ||r||; and (a + b)^2 <= a^2/(1 - A) + b^2/A.
    Source: derived; the method is [gao2024econtrol], whose constants are others.
    control: eta; delta/(2 (1 + q)^2), the default of the method, is nearly the best for short steps.

    >>> econtrol_decay(1.0, 0.25), econtrol_decay(0.75, 0.125)
    (0.25, 0.1017)
    """
    q = math.sqrt(1.0 - delta)
    apart = 1.0 - control - q * (1.0 + control)
    w = max(control, (apart + math.sqrt(apart**2 + 4.0 * q * control**2)) / 2.0)
    return 1.0 - max(q * (1.0 + control) + w, 1.0 - control + q * control**2 / w)


@formula(
    "method in ('EControl', 'EF', 'EF21')",
    "form in ('coin', 'multiple')",
    "0 < control <= 1",
    "1e-6 <= delta <= 1",
    "0 < step < 2",
    "spread >= 0",
)
def feedback_floor(
    delta: float,
    *,
    step: float,
    control: float = 0.1,
    variance: float = 1.0,
    spread: float = 0.0,
    workers: int = 1,
    method: str = "EControl",
    form: str = "coin",
) -> float:
    r"""Stationary variance of EControl, of error feedback and of EF21 with noise, on workers whose data differ.

    Title: What noise leaves of EControl, EF and EF21.
    Setting: f_i = x^2/2 - zeta_i x, mean zeta_i = 0, mean zeta_i^2 = zeta^2; gradients with independent noise of
    variance sigma^2; C(v) is v with probability delta, else 0, independently for each worker (coin), or (1 - q) v
    (multiple). With the curvature lambda it is that of the step gamma lambda, over lambda^2.
    Statement: E x^2 = W_11, W = M W M' + S/N: M moves the means of (x, e, h) with the mean factor b of C, S is the
    covariance that the noise and the coin add for a worker, c U v v' + sigma^2 E(e_2 + B v)(e_2 + B v)'. B is the
    factor of C, c its variance, v = (-gamma, -1, 1), and U = E u_i^2 solves a linear equation, as the workers'
    deviations from the mean move by the same M. EF has no h, and zeta^2/b^2 is added to its U; EF21 has no e. For a
    multiple EF and EF21 are one method. For gamma to 0, over SGD's gamma sigma^2/(2 N): EControl and EF 1, EF21 with
    coins (2 - delta)/delta.
    Kind: identity.
    Latex: W=MWM^\top+\frac1N\big(cU\,vv^\top+\sigma^2\,\mathbb E(e_2+Bv)(e_2+Bv)^\top\big),\quad\mathbb{E}x^2=W_{11}
    Source: derived: two discrete Lyapunov equations. [gao2024econtrol] has the leading term sigma^2/(N eps^2) of the
    rounds, from memory.
    step: gamma.
    control: eta, of EControl.
    spread: zeta^2; 0 for one worker.
    workers: N.

    >>> feedback_floor(1.0, step=0.5, control=0.5)  # SGD: gamma/(2 - gamma)
    0.3333
    >>> [round(float(feedback_floor(0.5, step=0.02, workers=4, spread=9.0, method=m)), 4) for m in ("EF", "EF21")]
    [0.0044, 0.0076]
    """
    require(spread == 0.0 or workers > 1, "spread", spread, "0 for one worker")
    b = delta if form == "coin" else 1.0 - math.sqrt(1.0 - delta)
    square, part = delta if form == "coin" else b**2, np.ix_(KEPT[method], KEPT[method])
    u = np.array([1.0, control if method == "EControl" else 1.0, -1.0])[KEPT[method]]
    v, fresh = np.array([[-step, -1.0, 1.0], [0.0, 1.0, 0.0]])[:, KEPT[method]]
    M = np.array([[1.0, 0.0, -step], [1.0, 1.0, -1.0], [0.0, 0.0, 1.0]])[part] + b * np.outer(v, u)
    radius = max(float(np.abs(np.linalg.eigvals(A)).max()) for A in (M, M[1:, 1:]))
    require(radius < 1.0 - 1e-9, "step", step, "a step and a control at which the mean contracts by 1e-9 at least")

    def stationary(S: np.ndarray) -> tuple[float, float]:
        """E x^2 and E u_i^2 if a worker adds S in a step."""
        W = scipy.linalg.solve_discrete_lyapunov(M, S) / workers
        own = W.copy()
        own[1:, 1:] += (1.0 - 1.0 / workers) * scipy.linalg.solve_discrete_lyapunov(M[1:, 1:], S[1:, 1:])
        return float(W[0, 0]), float(u @ own @ u)

    of_coin, of_noise = np.outer(v, v), np.outer(fresh, fresh + b * v) + np.outer(v, b * fresh + square * v)
    (x_coin, u_coin), (x_noise, u_noise) = stationary((square - b**2) * of_coin), stationary(variance * of_noise)
    require(u_coin < 1.0, "step", step, "a step and a control that are stable in mean square")
    known = spread / b**2 if method == "EF" else 0.0
    return x_noise + x_coin * (u_noise + known) / (1.0 - u_coin)
