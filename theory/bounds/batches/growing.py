"""Growing batches: CR-PSGD under the Polyak-Lojasiewicz condition, and CR-PSGD-Catalyst without it.

CR-PSGD is parallel SGD whose batches grow geometrically. The condition is (1/2)||grad f(x)||^2 >= mu (f(x) - f*) for
all x. In the round s = 1, 2, ..., each of N workers draws a batch of B_s gradients, which are *averaged* over the batch
and over the workers.  q = 1 - nu, nu = gamma mu (2 - L gamma), is the factor of f - f* in a round without noise.

CR-PSGD-Catalyst minimises smooth nonconvex functions by proximal problems.  The outer step k minimises h(x) = f(x) +
(theta/2)||x - y_{k-1}||^2 by CR-PSGD from y_{k-1}.  With theta > L, h is (theta + L)-smooth and (theta - L)-strongly
convex.

``samples`` is T, the budget of gradients of *one* worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...core import require
from ..closed_form import formula
from ..sgd.polyak_lojasiewicz import pl_contraction

# --- CR-PSGD ---------------------------------------------------------------------------------------------------------

DESCENT = ("0 < mu <= lipschitz", "0 < step < 2 / lipschitz")

WHOLE = 1e-12  # powers of rho that are integers up to rounding errors become integers


@formula(*DESCENT)
def growth_limit(mu: float, lipschitz: float, step: float | None = None) -> float:
    """The growth rho = 1/(1 - nu) of batches, from which on f - f* decreases more slowly than the noise.

    Setting: as `cr_psgd`.
    Statement: the theorem requires 1 < rho < 1/(1 - nu), nu = gamma mu (2 - L gamma): the noise, 1/B, must fall more
    slowly than f - f* does without noise.
    Kind: identity.
    Source: [yu2019computation], Theorem 1.
    mu, lipschitz, step (float): As in `pl_contraction`.

    Returns
    -------
    float
        Infinite if one exact gradient step reaches the minimum.

    >>> growth_limit(1.0, 2.0)
    2.0
    """
    left = pl_contraction(mu, lipschitz, step)
    return math.inf if left == 0.0 else 1.0 / left


def _growth(rho: float, mu: float, lipschitz: float, step: float | None) -> float:
    """q, after checking that rho is in its interval."""
    limit, left = growth_limit(mu, lipschitz, step), pl_contraction(mu, lipschitz, step)
    require(1.0 < rho and rho * left < 1.0, "rho", rho, f"a number in (1, 1/(1 - nu)) = (1, {limit:.6g})")
    return left


@formula(*DESCENT)
def optimal_rho(mu: float, lipschitz: float, step: float | None = None) -> float:
    r"""The growth of unrounded batches that minimizes CR-PSGD's noise term.

    Setting: as `cr_psgd_rate` with ``batches="real"``, in the limit of a large budget T. (Its bound for whole batches
    has rho^2 in place of rho, which makes rho = 2/(1 + q) optimal in that bound: it covers the worst budget.)
    Statement: rho/((rho - 1)(1 - q rho)), the factor of CR-PSGD's noise with real batches, is smallest for rho =
    q^(-1/2), where it is 1/(1 - sqrt(q))^2 and alpha = 2.
    Kind: identity.
    Latex: \operatorname*{arg\,min}_{1<\rho<1/q}\frac{\rho}{(\rho-1)(1-q\rho)}=q^{-1/2}
    Proof: The derivative of the logarithm, 1/rho - 1/(rho - 1) + q/(1 - q rho), vanishes where q rho^2 = 1.
    Source: derived.
    mu, lipschitz, step (float): As in `pl_contraction`, with q > 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or q = 0: then any growth is allowed and no growth is optimal.

    >>> optimal_rho(3.0, 4.0)  # q = 1/4
    2.0
    """
    left = pl_contraction(mu, lipschitz, step)
    require(
        left > 0.0,
        "step",
        1.0 / lipschitz if step is None else step,
        "another step: with q = 1 - nu = 0 every rho above 1 is allowed, and none is best",
    )
    return 1.0 / math.sqrt(left)


@formula("first >= 1", "1 < rho < inf", "samples >= first", "rounding in ('floor', 'ceil')")
def growing_batches(samples: float, rho: float, first: int = 1, rounding: str = "floor") -> tuple[int, ...]:
    """The batches floor(rho^t B_1), t = 0, 1, ..., whose sum is at most the budget T.

    Setting: Algorithm 1 of CR-PSGD: a round takes place if it does not exceed the budget.
    Statement: B_{t+1} = floor(rho^t B_1) (or rounded up), t = 0, 1, ..., while their sum is at most T.
    Kind: identity.
    Source: [yu2019computation], Algorithm 1 (down); Bottou, Curtis, Nocedal, 2018, Corollary 5.2 (up).
    samples: T, the budget of one worker, at least ``first``.
    first: B_1.

    Returns
    -------
    tuple of int

    >>> growing_batches(20, 1.5), growing_batches(20, 1.5, rounding="ceil")
    ((1, 1, 2, 3, 5, 7), (1, 2, 3, 4, 6))
    """
    batches, left, size = [], float(samples), int(first)
    while size <= left:
        batches.append(size)
        left -= size
        real = rho ** len(batches) * first
        size = math.floor(real * (1.0 + WHOLE)) if rounding == "floor" else math.ceil(real * (1.0 - WHOLE))
    return tuple(batches)


@formula("first >= 1", "1 < rho < inf", "samples >= first", "batches in ('whole', 'real')")
def growing_rounds(samples: float, rho: float, first: int = 1, batches: str = "whole") -> float:
    r"""Number of rounds of a budget with growing batches.

    Setting: batches rho^t B_1 (real), or rounded down (whole), and a budget of T gradients for each worker.
    Proof: The sum of rho^t B_1 is B_1 (rho^t - 1)/(rho - 1), and (1 + 1/B_1) floor(z) > z for z >= B_1.
    Source: [yu2019computation], Theorem 1, which has O(log T); the constants are derived.

    Title (whole): CR-PSGD takes O(log T) rounds.
    Statement (whole): The number of rounds is at least the floor of log_rho(1 + (rho - 1) T/B_1) and at most log_rho(1
    + (1 + 1/B_1) (rho - 1) T/B_1).
    Kind (whole): upper.
    Latex (whole): \lfloor\log_\rho(1+\tfrac{(\rho-1)T}{B_1})\rfloor\le
    t\le\log_\rho\Big(1+\big(1+\tfrac1{B_1}\big)\frac{(\rho-1)T}{B_1}\Big)

    Statement (real): The number of rounds is log_rho(1 + (rho - 1) T/B_1).
    Kind (real): identity.

    samples: T, at least ``first``.
    first: B_1.

    >>> growing_rounds(31, 2.0, batches="real"), len(growing_batches(31, 2.0))
    (5.0, 5)
    """
    spent = (1.0 + 1.0 / first if batches == "whole" else 1.0) * (rho - 1.0) * samples / first
    return math.log1p(spent) / math.log(rho)


@formula(*DESCENT)
def cr_psgd(
    batches: Iterable[float],
    *,
    mu: float,
    lipschitz: float,
    step: float | None = None,
    variance: float,
    workers: int = 1,
    gap: float,
) -> float:
    r"""Bound on the gap f - f* of CR-PSGD after rounds with given batches.

    Title: CR-PSGD under the PL condition.
    Setting: f is L-smooth and mu-PL; unbiased gradients of variance at most sigma^2, independent over workers and
    draws; constant step size gamma < 2/L; in the round s every worker averages B_s gradients.
    Statement: E f(x_{t+1}) - f* <= q^t (f(x_1) - f*) + (L gamma^2 sigma^2/(2 N)) sum_{s=1}^t q^{t-s}/B_s.
    Kind: upper: an equality for (L/2)||x||^2.
    Latex: \mathbb{E}f(x_{t+1})-f^*\le q^tD_1+\frac{L\gamma^2\sigma^2}{2N}\sum_{s\le t}\frac{q^{t-s}}{B_s},\quad
    q=1-\gamma\mu(2-L\gamma)
    Attained: in one round with short steps, the start in the flattest direction and the noise in the steepest
    Proof: Descent lemma and PL: D+ <= (1 - gamma mu (2 - L gamma)) D + L gamma^2 sigma^2/(2 N B).
    Source: [yu2019computation], Theorem 1; the recursion is derived.

    Title (equality): CR-PSGD on the isotropic quadratic.
    Statement (equality): On (L/2)||x||^2, after rounds with batches B_1, ..., B_t on N workers, E f - f* is exactly q^t
    (f(x_1) - f*) + (L gamma^2 sigma^2/(2 N)) sum q^(t-s)/B_s with q = (1 - gamma L)^2.
    Kind (equality): identity.
    Latex (equality): \mathbb{E}f(x_{t+1})-f^*=q^tD_1+\frac{L\gamma^2\sigma^2}{2N}\sum_{s\le t}\frac{q^{t-s}}{B_s}
    Proof (equality): E f(x - gamma g) = f - gamma (1 - L gamma/2)||grad f||^2 + L gamma^2 sigma^2/(2 N B), and ||grad
    f||^2 = 2 L (f - f*).
    Source (equality): derived; the recursion in [yu2019computation], Theorem 1, holds with equality.

    Title (nonconvex): CR-PSGD on a function that is not convex.
    Statement (nonconvex): On x^2 + 3 sin^2 x, PL with mu = 0.1755 and not convex, E f - f* is below CR-PSGD's bound,
    approaches the bound for the curvature 8 at the minimum, and falls like 1/T and 1/N in the number of rounds of
    cr-psgd.rounds.
    Kind (nonconvex): rate.
    Latex (nonconvex): f(x)=x^2+3\sin^2x
    Attained (nonconvex): by a step from |x| = 2.25; and after many rounds, with the curvature at the minimum in place
    of mu.
    Proof (nonconvex): cr-psgd.bound requires PL alone; near the minimum f is almost quadratic.
    Source (nonconvex): [yu2019computation], Theorem 1; the function: Karimi, Nutini, Schmidt, ECML 2016, section 2.2.

    batches (sequence of float): B_1, B_2, ..., each above 0; none for no round.
    mu, lipschitz, step (float): As in `pl_contraction`.
    gap: f(x_1) - f*.

    >>> cr_psgd((1, 2), mu=1.0, lipschitz=1.0, step=0.5, variance=8.0, workers=2, gap=16.0)  # 1 + 1/8 + 1/4
    1.375
    """
    q = pl_contraction(mu, lipschitz, step)
    gamma, noise = 1.0 / lipschitz if step is None else step, 0.0
    for size in batches:
        require(size > 0, "batches", size, "numbers above 0")
        noise = q * noise + 1.0 / size
        gap = q * gap
    return gap + lipschitz * gamma**2 * variance / (2.0 * workers) * noise


@formula("rounds >= 0", "first > 0", "rho > 1", *DESCENT)
def cr_psgd_geometric(
    rounds: float,
    *,
    rho: float,
    first: float = 1,
    mu: float,
    lipschitz: float,
    step: float | None = None,
    variance: float,
    workers: int = 1,
    gap: float,
) -> float:
    r"""Bound on the gap f - f* after t rounds with the batches rho^(s-1) B_1, not rounded.

    Title: CR-PSGD's recursion, summed.
    Setting: as `cr_psgd`, with 1 < rho < 1/(1 - nu).
    Statement: With B_s = rho^(s-1) B_1 the noise term is (L gamma^2 sigma^2/(2 N B_1)) rho^-(t-1) (1 - (q rho)^t)/(1 -
    q rho), and in terms of the budget T = B_1 (rho^t - 1)/(rho - 1) it is O(1/(N T)).
    Kind: identity: an equality for (L/2)||x||^2.
    Latex: \sum_{s=1}^tq^{t-s}\rho^{-(s-1)}=\rho^{-(t-1)}\frac{1-(q\rho)^t}{1-q\rho}
    Proof: A geometric sum; rho^t = 1 + (rho - 1) T/B_1 and q^t = (rho^t)^-alpha.
    Source: derived; [yu2019computation], Theorem 1 (c_1/T^alpha + c_2/(N T))
    rounds: t.
    rho: In (1, 1/(1 - nu)).
    first: B_1.
    mu, lipschitz, step, variance, workers, gap (float or int): As in `cr_psgd`.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for rho, the message names the interval.

    >>> cr_psgd_geometric(2, rho=2.0, mu=1.0, lipschitz=1.0, step=0.5, variance=8.0, workers=2, gap=16.0)
    1.375
    """
    q = _growth(rho, mu, lipschitz, step)
    gamma = 1.0 / lipschitz if step is None else step
    noise = lipschitz * gamma**2 * variance / (2.0 * workers * first)
    noise *= rho ** (1.0 - rounds) * (1.0 - (q * rho) ** rounds) / (1.0 - q * rho)
    return q**rounds * gap + noise


@formula("batches in ('whole', 'real')", "first >= 1", "samples >= first", "rho > 1", *DESCENT)
def cr_psgd_rate(
    samples: float,
    *,
    rho: float | None = None,
    first: int = 1,
    mu: float,
    lipschitz: float,
    step: float | None = None,
    variance: float,
    workers: int = 1,
    gap: float,
    batches: str = "whole",
) -> float:
    r"""Bound on the gap f - f* after T gradients for each worker: O(1/(N T)) in O(log T) rounds.

    Setting: as `cr_psgd_geometric`; alpha = ln(1/q)/ln(rho) > 1.
    Kind: upper.
    Proof: The last round that the budget allows is less than one before the one that would spend it, which costs the
    factors 1/q and rho; and (1 + 1/B_1) floor(z) > z for z >= B_1.

    Title (whole): CR-PSGD after a budget.
    Statement (whole): With whole batches floor(rho^(s-1) B_1) and any budget T, E f - f* <= (1/q)(f(x_1) - f*)(1 + (rho
    - 1) T/B_1)^-alpha + (1 + 1/B_1) L gamma^2 sigma^2 rho^2/(2 N ((rho - 1) T + B_1)(1 - q rho)).
    Latex (whole):
    \mathbb{E}f-f^*\le\frac{D_1}{q}\Big(1+\tfrac{(\rho-1)T}{B_1}\Big)^{-\alpha}+\Big(1+\frac1{B_1}\Big)\frac{L\gamma^2\sigma^2\rho^2}{2N((\rho-1)T+B_1)(1-q\rho)}
    Attained (whole): approached by a budget that the next round would exceed by 1, for large B_1
    Proof (whole): The next round would exceed the budget: rho^(t+1) > 1 + (rho - 1) T/B_1, which costs the factors 1/q
    and rho compared with a budget that is spent completely; and (1 + 1/B_1) floor(z) > z for z >= B_1.
    Source (whole): derived; [yu2019computation], Theorem 1, with constants.

    Statement (real): With batches rho^(s-1) B_1 and all of T spent, E f - f* <= (f(x_1) - f*) (1 + (rho - 1)
    T/B_1)^(-alpha) + L gamma^2 sigma^2 rho/(2 N ((rho - 1) T + B_1) (1 - q rho)).
    Attained (real): approached to the first order in 1/T, for (L/2)||x||^2.
    Source (real): [yu2019computation], Theorem 1 (c_1/T^alpha + c_2/(N T)); the constants are derived.

    Title (rate): CR-PSGD: the rate 1/(N T)
    Statement (rate): With 1 < rho < 1/(1 - nu), log(E f - f*) falls by 1 per log T and by 1 per log N.
    Kind (rate): rate.
    Latex (rate): \mathbb{E}f-f^*=O\big(\tfrac1{NT}\big)
    Proof (rate): cr-psgd.closed-form.
    Source (rate): [yu2019computation], Theorem 1.

    samples: T, the budget of one worker, at least ``first``.
    rho (float, optional): In (1, 1/(1 - nu)); by default `optimal_rho`, the optimum for real batches.
    first: B_1, at least 1.
    mu, lipschitz, step, variance, workers, gap (float or int): As in `cr_psgd`, with q > 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for rho, the message names the interval.

    >>> known = dict(mu=1.0, lipschitz=1.0, step=0.5, variance=8.0, workers=2, gap=16.0)
    >>> cr_psgd_rate(3, rho=2.0, **known, batches="real")  # two rounds, as 1 + 2 = 3, without (q rho)^2 in the sum
    1.5
    """
    if rho is None:
        rho = optimal_rho(mu, lipschitz, step)
    q = _growth(rho, mu, lipschitz, step)
    require(q > 0.0, "step", step, "a step with q = 1 - nu > 0")
    gamma = 1.0 / lipschitz if step is None else step
    alpha = math.log(1.0 / q) / math.log(rho)
    start = gap * (1.0 + (rho - 1.0) * samples / first) ** -alpha
    noise = lipschitz * gamma**2 * variance * rho
    noise /= 2.0 * workers * ((rho - 1.0) * samples + first) * (1.0 - q * rho)
    if batches == "real":
        return start + noise
    return start / q + (1.0 + 1.0 / first) * rho * noise


# --- CR-PSGD-Catalyst ------------------------------------------------------------------------------------------------


def _curvatures(lipschitz: float, theta: float | None) -> tuple[float, float]:
    """mu_h and L_h."""
    theta = catalyst_theta(lipschitz) if theta is None else theta
    return theta - lipschitz, theta + lipschitz


@formula
def catalyst_theta(lipschitz: float) -> float:
    r"""The weight theta of the proximal term that minimizes the factor in Catalyst's bound.

    Setting: as `catalyst`, with form="distance".
    Statement: (theta + L)^2/(theta - L) is smallest, 8 L, for theta = 3 L; there the proximal problem has the condition
    number 2.
    Kind: identity.
    Latex: \operatorname*{arg\,min}_{\theta>L}\frac{(\theta+L)^2}{\theta-L}=3L
    Proof: The derivative has the sign of 2 (theta - L) - (theta + L).
    Source: derived.

    >>> catalyst_theta(2.0)
    6.0
    """
    return 3.0 * lipschitz


@formula("form in ('sharp', 'distance')", "theta > lipschitz")
def catalyst_factor(lipschitz: float, theta: float | None = None, form: str = "sharp") -> float:
    r"""Factor c in the bound of ||grad f(y)||^2 by the decrease of a proximal step.

    Setting: h(x) = f(x) + (theta/2)||x - y||^2 with minimum h*, f L-smooth, theta > L.
    Statement: ||grad f(y)||^2 <= c (f(y) - h*) with the factor c of the table.

    Title (sharp): A proximal step bounds the gradient.
    Statement (sharp): ||grad f(y)||^2 <= 2 (theta + L)(f(y) - min h), h(x) = f(x) + (theta/2)||x - y||^2: half of the
    bound that the distance between y and the minimiser of h gives for theta = 3 L.
    Kind (sharp): tight.
    Latex (sharp): \|\nabla f(y)\|^2\le2(\theta+L)\big(f(y)-\min_xh(x)\big)
    Attained (sharp): f = (L/2)||x||^2
    Proof (sharp): grad f(y) = grad h(y), and ||grad h(y)||^2 <= 2 (theta + L)(h(y) - min h) for a (theta + L)-smooth h.
    Source (sharp): derived, for the proof of [yu2019computation], Theorem 2.

    Statement (distance): ||grad f(y)||^2 <= 2 (theta + L)^2/(theta - L) (f(y) - h*).
    Kind (distance): upper.
    Proof (distance): ||grad h(y)|| <= (theta + L)||y - argmin h||, and f(y) - h* >= ((theta - L)/2)||y - argmin h||^2.
    Source (distance): derived.

    theta (float, optional): Above L; 3 L by default.

    >>> catalyst_factor(1.0), catalyst_factor(1.0, form="distance")
    (8.0, 16.0)
    """
    mu, top = _curvatures(lipschitz, theta)
    return 2.0 * top if form == "sharp" else 2.0 * top**2 / mu


@formula("outer >= 1", "theta > lipschitz", "form in ('sharp', 'distance')")
def catalyst(
    outer: int,
    batches: Iterable[float],
    *,
    lipschitz: float,
    theta: float | None = None,
    step: float | None = None,
    variance: float,
    workers: int = 1,
    gap: float,
    form: str = "sharp",
) -> float:
    r"""Bound on the mean squared gradient norm over the outer steps of CR-PSGD-Catalyst.

    Setting: f is L-smooth and bounded below; unbiased gradients of variance at most sigma^2; theta > L; every one of
    the K outer steps takes rounds with the batches B_1, ..., B_t and the constant step size gamma.
    Statement: (1/K) sum_{k=1}^K E||grad f(y_{k-1})||^2 <= (c/(1 - a)) ((f(y_0) - f*)/K + b), where c is
    `catalyst_factor`, a = q^t, q = 1 - gamma (theta - L) (2 - (theta + L) gamma), and b is the noise of the inner
    rounds, ((theta + L) gamma^2 sigma^2/(2 N)) sum_{s=1}^t q^(t-s)/B_s.
    Kind: upper.
    Source: derived, for Algorithm 2 of [yu2019computation]: E f(y_k) <= E h(y_k) <= (1 - a) h* + a f(y_{k-1}) + b, and
    `catalyst_factor`; telescope.

    Title (sharp): CR-PSGD-Catalyst.
    Statement (sharp): The mean of E||grad f(y_{k-1})||^2 over the K outer steps is at most (2 (theta + L)/(1 - a))
    ((f(y_0) - f*)/K + b), a = q^t and b the noise of the t inner rounds.
    Latex (sharp): \frac1K\sum_{k=1}^K\mathbb{E}\|\nabla
    f(y_{k-1})\|^2\le\frac{2(\theta+L)}{1-a}\Big(\frac{f(y_0)-f^*}K+b\Big)
    Attained (sharp): where catalyst.progress and cr-psgd.bound are equalities in every outer step, and f(y_K) = f*
    Proof (sharp): E f(y_k) <= (1 - a) min h + a f(y_{k-1}) + b, catalyst.progress; telescope.
    Source (sharp): derived, for [yu2019computation], Algorithm 2 and Theorem 2.

    Title (rate): CR-PSGD-Catalyst: the rate 1/sqrt(N T)
    Statement (rate): The mean of E||grad f||^2 over the outer steps falls like 1/sqrt(N T), in N and in T.
    Kind (rate): rate.
    Latex (rate): \frac1K\sum_k\mathbb{E}\|\nabla f(y_{k-1})\|^2=O\big(1/\sqrt{NT}\big)
    Proof (rate): catalyst.theorem with K = sqrt(N T) and b = O(1/(N sqrt(T/N))).
    Source (rate): [yu2019computation], Theorem 2.

    outer: K.
    batches (sequence of float): B_1, ..., B_t of one outer step, at least one.
    lipschitz, theta (float): L and theta > L (3 L by default).
    step (float, optional): gamma in (0, 2/(theta + L)); 1/(theta + L) by default.
    gap: f(y_0) - f*.
    form ({"sharp", "distance"}): Of `catalyst_factor`.

    >>> catalyst(4, (1,), lipschitz=1.0, variance=0.0, gap=2.0)  # 8/(1/2) 2/4
    8.0
    """
    mu, top = _curvatures(lipschitz, theta)
    sizes = tuple(batches)
    require(len(sizes) > 0, "batches", sizes, "at least one round")
    known: dict[str, Any] = dict(mu=mu, lipschitz=top, step=step)
    left = pl_contraction(**known) ** len(sizes)
    noise = cr_psgd(sizes, **known, variance=variance, workers=workers, gap=0.0)
    factor = float(catalyst_factor(lipschitz, theta, form)) / (1.0 - float(left))
    return factor * gap / outer + factor * float(noise)


@formula("samples >= 1", "samples >= workers")
def catalyst_budget(samples: int, workers: int) -> tuple[int, int]:
    """Number of outer steps, and of gradients of each worker per outer step, for a budget.

    Setting: Algorithm 2 of CR-PSGD-Catalyst, T gradients for each of N workers.
    Statement: K = floor(sqrt(N T)) outer steps, each with floor(sqrt(T/N)) gradients for each worker.
    Kind: identity.
    Source: [yu2019computation], Algorithm 2.
    samples: T.

    Returns
    -------
    (int, int)

    >>> catalyst_budget(400, 4)
    (40, 10)
    """
    return math.isqrt(int(samples) * int(workers)), math.isqrt(int(samples) // int(workers))


@formula("samples >= workers * first ** 2", "rho > 1", "first >= 1")
def catalyst_rounds(samples: int, workers: int, rho: float, first: int = 1) -> float:
    r"""Maximum number of rounds of CR-PSGD-Catalyst.

    Title: CR-PSGD-Catalyst: rounds.
    Setting: Algorithm 2 with `catalyst_budget` and batches floor(rho^t B_1).
    Statement: The rounds of K = sqrt(N T) proximal problems with a budget of sqrt(T/N) each are at most K log_rho(1 +
    (1 + 1/B_1) (rho - 1) sqrt(T/N)/B_1), and each worker takes at most T gradients.
    Kind: upper.
    Latex: \text{rounds}\le\sqrt{NT}\,\log_\rho\Big(1+\big(1+\tfrac1{B_1}\big)\frac{\rho-1}{B_1}\sqrt{T/N}\Big)
    Proof: cr-psgd.rounds, K times.
    Source: [yu2019computation], Theorem 2 (O(sqrt(N T) log(T/N))); constants derived.
    samples: T, at least N B_1^2.
    rho: Above 1.
    first: B_1, at least 1.

    >>> round(catalyst_rounds(9, 1, rho=2.0), 3)  # 3 log2(1 + 6)
    8.422
    """
    outer, inner = catalyst_budget(samples, workers)
    return outer * growing_rounds(inner, rho, first)


@formula("samples >= workers")
def square_root_batch(samples: int, workers: int, *, lipschitz: float, variance: float, gap: float) -> float:
    r"""Bound for parallel SGD with batches of sqrt(T/N) and Catalyst's budget, in sqrt(N T) rounds.

    Title: A fixed batch of sqrt(T/N) needs fewer rounds than Catalyst.
    Setting: f is L-smooth and bounded below; unbiased gradients of variance at most sigma^2; K = floor(sqrt(N T)) steps
    of 1/L with batches of B = floor(sqrt(T/N)), averaged.
    Statement: With sqrt(N T) and sqrt(T/N) whole, parallel SGD with the step 1/L and batches of sqrt(T/N) has a mean of
    E||grad f||^2 of at most (2 L (f(x_0) - f*) + sigma^2)/sqrt(N T), in sqrt(N T) rounds: Catalyst's rate without its
    factor log(T/N).
    Kind: upper (on (L/2)||x||^2 it is attained up to sigma^2/(K N B)).
    Latex: \frac1K\sum_{t<K}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{2L(f(x_0)-f^*)+\sigma^2}{\sqrt{NT}},\quad K=\sqrt{NT}
    Attained: (L/2)||x||^2, up to sigma^2/(K N B)
    Proof: The descent lemma with the variance sigma^2/(N B): f falls by ||grad f||^2/(2 L) and rises by sigma^2/(2 L N
    B).
    Source: derived from the descent lemma; cf. [bottou2018optimization], Theorem 4.8.
    samples: T, at least N.
    variance, gap: sigma^2 and f(x_0) - f*.

    >>> square_root_batch(400, 4, lipschitz=1.0, variance=8.0, gap=2.0)  # 4/40 + 8/(4 10)
    0.3
    """
    steps, batch = catalyst_budget(samples, workers)
    return 2.0 * lipschitz * gap / steps + variance / (workers * batch)
