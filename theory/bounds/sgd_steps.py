"""Number of steps of SGD for an accuracy, and the rate of steps c/(mu (t + 1)) for every c.

Steps are counted as in the package: t = 0, 1, ..., T - 1, and x_T is the iterate after T steps.  ``distance`` is the
squared norm ||x_0 - x*||^2.  Papers that start at w_1 write a_{T+1} for E||x_T - x*||^2.
"""

from __future__ import annotations

import math

from ..core import require
from .closed_form import formula


@formula("second_moment > 0", "0 < floor_share < 1", "0 < accuracy <= second_moment / (4 * floor_share * mu ** 2)")
def sgd_steps_for(
    accuracy: float, *, mu: float, second_moment: float, distance: float, floor_share: float = 0.5
) -> tuple[float, int]:
    r"""Constant step size and number of steps for a squared distance to the minimiser.

    Title (steps-for): Step size and number of steps for an accuracy.
    Setting: f is mu-strongly convex, E||g_t||^2 <= M^2, constant step size, projection allowed.
    Statement: gamma = 2 theta eps mu/M^2 and T = M^2 log(D_0/((1 - theta) eps))/(4 theta mu^2 eps), rounded up, give
    E||x_T - x*||^2 <= eps: the floor has the share theta of eps, the start the rest. theta = 1/2 is the slide's gamma =
    eps mu/M^2, T = M^2 log(2 D_0/eps)/(2 mu^2 eps).
    Statement (steps-for): gamma = eps mu/M^2 and T = M^2 log(2 D_0/eps)/(2 mu^2 eps) give E||x_T - x*||^2 <= eps.
    Kind: upper.
    Latex (steps-for): \gamma=\frac{\varepsilon\mu}{M^2},\quad
    T=\frac{M^2}{2\mu^2\varepsilon}\log\frac{2D_0}{\varepsilon}
    Attained (steps-for): as eps falls, on (mu/2) x^2 with noise that fills E g^2 up to M^2.
    Proof (steps-for): Each of the two terms of sgd.constant-step.bound is eps/2.
    Source: [yin2018gradient], Theorem 5 with B = 1 (theta = 1/2); derived from :func:`sgd_constant_step`.
    Source (steps-for): [yin2018gradient], Theorem 5 with B = 1.
    accuracy: eps, above 0, so small that gamma <= 1/(2 mu): eps <= M^2/(4 theta mu^2).
    distance: D_0.
    floor_share: theta in (0, 1).

    Returns
    -------
    step : float
    steps : int

    >>> sgd_steps_for(0.25, mu=1.0, second_moment=1.0, distance=1.0)  # 2 log 8 = 4.16
    (0.25, 5)
    """
    step = 2.0 * floor_share * accuracy * mu / second_moment
    left = distance / ((1.0 - floor_share) * accuracy)
    return step, math.ceil(math.log(left) / (2.0 * step * mu)) if left > 1 else 0


@formula("form in ('sharp', 'simple', 'quoted')", "c > 0.5")
def sgd_scaled_inverse_time(
    steps: int, *, c: float, mu: float, second_moment: float, distance: float | None = None, form: str = "sharp"
) -> float:
    r"""Squared distance to the minimiser with the step size c/(mu (t + 1)), for every c > 1/2.

    Title (theta): Steps c/(mu t) for any c above 1/2.
    Title (theta.quoted): Steps c/(mu t) for any c above 1/2, as quoted.
    Setting: f is mu-strongly convex, E||g_t||^2 <= G^2, projection allowed; ``InverseTime(c=c, mu=mu, shift=1)``.
    Statement: with Q = c^2 G^2/mu^2, E||x_T - x*||^2 is at most sharp: A_T of A_{t+1} = max(0, 1 - 2c/(t+1)) A_t +
    Q/(t+1)^2, whose first factor is 0, whatever A_0 is; simple: Q max(2, 1/(2c - 1))/(T + 1) for T >= 1, from any
    start; quoted: max(Q/(2c - 1), D_0)/(T + 1), which is false where c > 3/4; if G^2 bounds E||g||^2 on all of W, by a
    factor of at most 9/4, which c = 2 attains at T = 2 (the claim sgd.theta.quoted).
    Statement (theta): E||x_T - x*||^2 <= (c G/mu)^2 max(2, 1/(2c - 1))/(T + 1) for T >= 1, from any start.
    Statement (theta.quoted): E||x_T - x*||^2 <= max(c^2 G^2/(mu^2 (2c - 1)), ||x_0 - x*||^2)/(T + 1), where E||g||^2 <=
    G^2 on all of W: not so for c > 3/4, as the induction multiplies by 1 - 2c, which is negative, in the first step.
    With the factor 9/4 it holds for every c > 1/2.
    Kind: rate and upper.
    Kind (theta): tight.
    Kind (theta.quoted): upper.
    Latex (sharp): \mathbb{E}\|x_T-x^*\|^2\le\frac{c^2G^2}{\mu^2}\,\frac{\max(2,1/(2c-1))}{T+1}
    Latex (theta.quoted):
    \mathbb{E}\|x_{T}-x^*\|^2\le\frac{1}{T+1}\max\Big(\frac{c^2G^2}{\mu^2(2c-1)},\|x_0-x^*\|^2\Big)
    Latex (theta): \mathbb{E}\|x_T-x^*\|^2\le\frac{c^2G^2}{\mu^2}\,\frac{\max(2,1/(2c-1))}{T+1}
    Latex (theta.quoted):
    \mathbb{E}\|x_{T}-x^*\|^2\le\frac{1}{T+1}\max\Big(\frac{c^2G^2}{\mu^2(2c-1)},\|x_0-x^*\|^2\Big)
    Attained (sharp): the sharp form from T = 2c on, and the simple one at T = 1 and for c < 3/4 as T grows: (mu/2) x^2
    with noise that begins in step 2c and then fills E g^2 up to G^2
    Attained (theta): the sharp form from T = 2c on, and the simple one at T = 1 and for c < 3/4 as T grows: (mu/2) x^2
    with noise that begins in step 2c and then fills E g^2 up to G^2.
    Proof (sharp): a_{t+1} <= (1 - 2c/t) a_t + Q/t^2 in texts that start at t = 1. Where t < 2c the factor is negative
    or zero, so that a_{t+1} <= Q/t^2 <= 2Q/(t+1); from t = 2c on, a_t <= A/t gives a_{t+1} <= A/(t+1) if A >= Q/(2c -
    1).
    Proof (theta.quoted): ||x - x*|| <= G/mu on W. With a_T = E||x_T - x*||^2, a_{T+1} <= (1 - 2c/(T+1)) a_T + c^2
    G^2/(mu (T+1))^2. So for T <= 2c the ratio of a_T to what is stated is at most (2c - 1) (T + 1) min(1/c^2, 1/T^2),
    which is largest for c = T, and there 2 + 1/T - 1/T^2: 9/4 at T = 2; then the induction is right and the ratio does
    not grow. It is attained: the second step begins at x*, and its length c/(2 mu) times noise of the size G leads to
    the edge. For every other c > 1: begun on the edge of the disc ||x||^2 <= min(1, c/(2 T)), T = ceil(c/2), with noise
    across x, each of T steps ends on the edge again, and the ratio is (2c - 1) (T + 1)/(2 c T) > 1.
    Proof (theta): a_{t+1} <= (1 - 2c/t) a_t + Q/t^2 in texts that start at t = 1. Where t < 2c the factor is negative
    or zero, so that a_{t+1} <= Q/t^2 <= 2Q/(t+1); from t = 2c on, a_t <= A/t gives a_{t+1} <= A/(t+1) if A >= Q/(2c -
    1).
    Source: derived; quoted: [nemirovski2009robust], (2.9) and (2.10), with theta = c/mu, as remembered (the text was
    not at hand). Its induction multiplies a_t <= A/t by 1 - 2c/t, which is negative at t = 1; there a_2 <= Q, and
    nothing better, so that 2Q has to stand beside Q/(2c - 1). From t >= 2c on the induction is right.
    Source (theta): derived; what the induction of [nemirovski2009robust], (2.9) and (2.10), gives (as remembered)
    Source (theta.quoted): [nemirovski2009robust], (2.9) and (2.10), with theta = c/mu; the formulas were read in a
    fragment of the text, what is assumed of W and G is remembered.
    distance (float, optional): D_0, at least 0; needed only for the quoted form.

    >>> [sgd_scaled_inverse_time(1, c=1.0, mu=1.0, second_moment=1.0, distance=0.0, form=form)
    ...  for form in ("sharp", "simple", "quoted")]
    [1.0, 1.0, 0.5]
    """
    if form == "quoted":
        require(distance is not None, "distance", distance, "a number, at least 0, for the quoted form")
    Q, T = c**2 * second_moment / mu**2, int(steps)
    if form == "simple":
        return Q * max(2.0, 1.0 / (2.0 * c - 1.0)) / (T + 1.0)
    if form == "quoted":
        assert distance is not None
        return max(Q / (2.0 * c - 1.0), distance) / (T + 1.0)
    bound = 0.0  # the first factor is 0, whatever the start
    for t in range(1, T + 1):
        bound = max(0.0, 1.0 - 2.0 * c / t) * bound + Q / t**2
    return bound
