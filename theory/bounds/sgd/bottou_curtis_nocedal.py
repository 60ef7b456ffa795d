"""The theorems on SGD of Bottou, Curtis and Nocedal, "Optimization methods for large-scale machine learning".

Formulas in the docstrings use the paper's notation: c is the constant of strong convexity, the argument ``mu`` here;
their mu and M_G, which measure bias and noise of the gradients, are the arguments ``first`` and ``second``, both 1 for
unbiased gradients whose variance is at most M everywhere.  Their w_1 is our x_0, so their w_k is our x_T with T = k -
1.
"""

from __future__ import annotations

from ..closed_form import formula

CONSTANT = (  # what the theorems with a constant step size ask for
    "form in ('sharp', 'paper')",
    "first > 0",
    "second >= first ** 2",
    "0 < step <= first / (lipschitz * second)",
)


@formula("0 < mu <= lipschitz", "noise >= 0", *CONSTANT)
def bottou_constant_step_floor(
    *,
    mu: float,
    lipschitz: float,
    step: float,
    noise: float,
    first: float = 1.0,
    second: float = 1.0,
    form: str = "sharp",
) -> float:
    r"""Limit of the bound on f - f* for SGD with a constant step size.

    Setting: as for :func:`bottou_constant_step`.
    Statement: The floor is the limit of :func:`bottou_constant_step` as T grows.

    Statement (sharp): The floor is alpha L M/(2 c (2 mu - alpha L M_G)).
    Kind (sharp): tight.
    Attained (sharp): f = (L/2)||x||^2 with noise of variance M, at its stationary law, for every alpha.
    Source (sharp): derived.

    Statement (paper): The floor is alpha L M/(2 c mu).
    Kind (paper): upper.
    Source (paper): [bottou2018optimization], Theorem 4.6.

    Title (minibatch): A mini-batch or a smaller step.
    Statement (minibatch): A batch of m with the step alpha and single gradients with alpha/m have the same floor in
    Theorem 4.6 and need, to first order in alpha, the same number of gradients per factor e. On (L/2)||x||^2 the exact
    ratio of the floors is (2 - alpha L/m)/(2 - alpha L), but the batch needs fewer gradients per factor e, m/(-2 log(1
    - alpha L)) instead of 1/(-2 log(1 - alpha L/m)). With steps for equal floors it still needs fewer: the ratio is m
    artanh(y/m)/artanh(y), y = alpha L/(2 - alpha L).
    Kind (minibatch): identity.
    Latex (minibatch): \frac{\alpha L(M/m)}{2c}=\frac{(\alpha/m)LM}{2c}
    Proof (minibatch): alpha M/(2 (2 - alpha L)) is the floor on that quadratic, and (1 - alpha L)^2 the factor of a
    step; floors are equal if alpha' L = 2x/(1 + x) with x = y/m, and then -log(1 - alpha' L) = 2 artanh(x).
    Source (minibatch): [bottou2018optimization], section 4.2, after Theorem 4.7; the exact results are derived.

    mu: c.
    step: alpha in (0, mu/(L M_G)].
    noise: M.
    first, second: Their mu, above 0, and M_G, at least its square.
    form ({"sharp", "paper"}):

    >>> [bottou_constant_step_floor(mu=1.0, lipschitz=1.0, step=0.5, noise=6.0, form=form)
    ...  for form in ("sharp", "paper")]
    [1.0, 1.5]
    """
    slope = 2.0 * first - step * lipschitz * second if form == "sharp" else first
    return step * lipschitz * noise / (2.0 * mu * slope)


@formula("steps >= 0", "0 < mu <= lipschitz", "noise >= 0", *CONSTANT)
def bottou_constant_step(
    steps: int,
    *,
    mu: float,
    lipschitz: float,
    step: float,
    noise: float,
    gap: float,
    first: float = 1.0,
    second: float = 1.0,
    form: str = "sharp",
) -> float:
    r"""Bound on f - f* for SGD with a constant step size.

    Setting: f is L-smooth and c-strongly convex (||grad f||^2 >= 2 c (f - f*) suffices); <grad f, E g> >= mu ||grad
    f||^2 and E||g||^2 <= M + M_G ||grad f||^2; alpha <= mu/(L M_G).
    Statement: E f(x_T) - f* <= r^T (f(x_0) - f*) + (1 - r^T) F, where F is :func:`bottou_constant_step_floor`.
    Proof: Lemma 4.4 of [bottou2018optimization], E f(x+) <= f - (mu - alpha L M_G/2) alpha ||grad f||^2 + alpha^2 L
    M/2, without halving its factor.

    Title (sharp): Bottou, Curtis, Nocedal: constant step, sharp.
    Statement (sharp): E f(x_T) - f* <= r^T (f(x_0) - f*) + (1 - r^T) alpha L M/(2c (2 - alpha L)), r = 1 - alpha c (2 -
    alpha L).
    Latex (sharp): \mathbb{E}f(x_T)-f^*\le r^T(f(x_0)-f^*)+(1-r^T)\frac{\alpha LM}{2c(2-\alpha L)}
    Attained (sharp): f = (L/2)||x||^2 with noise of variance M, at every T and for every alpha up to 1/L
    Proof (sharp): E f(x+) - f* <= (1 - 2 alpha c (1 - alpha L/2)) (f - f*) + alpha^2 L M/2, by smoothness and ||grad
    f||^2 >= 2c (f - f*).
    Source (sharp): derived; sharpens [bottou2018optimization], Theorem 4.6, by a factor of 2 - alpha L in the floor and
    in the rate.

    Statement (paper): E f(x_T) - f* <= r^T (f(x_0) - f*) + (1 - r^T) F with r = 1 - alpha c mu.
    Kind (paper): upper.

    Title (constant-step.paper): Bottou, Curtis, Nocedal: Theorem 4.6.
    Statement (constant-step.paper): E f(x_T) - f* <= alpha L M/(2c) + (1 - alpha c)^T (f(x_0) - f* - alpha L M/(2c))
    for alpha <= 1/L.
    Latex (constant-step.paper): \mathbb{E}f(x_T)-f^*\le\frac{\alpha LM}{2c}+(1-\alpha c)^T\Big(f(x_0)-f^*-\frac{\alpha
    LM}{2c}\Big)
    Attained (constant-step.paper): alpha = 1/L and f = (L/2)||x||^2; for small alpha the floor is twice the sharp one.
    Proof (constant-step.paper): bottou.constant-step with 2 - alpha L replaced by 1.

    Kind (sharp, constant-step.paper): tight.
    Source (paper, constant-step.paper): [bottou2018optimization], Theorem 4.6.

    mu, lipschitz, step, noise, first, second, form (float or str): As for bottou_constant_step_floor.

    >>> [bottou_constant_step(1, mu=1.0, lipschitz=1.0, step=0.5, noise=6.0, gap=5.0, form=form)
    ...  for form in ("sharp", "paper")]  # 5/4 + 3/4 and 5/2 + 3/4
    [2.0, 3.25]
    """
    floor = bottou_constant_step_floor(
        mu=mu, lipschitz=lipschitz, step=step, noise=noise, first=first, second=second, form=form
    )
    rate = step * mu * (2.0 * first - step * lipschitz * second if form == "sharp" else first)
    left = max(0.0, 1.0 - rate) ** int(steps)
    return left * gap + (1.0 - left) * floor


@formula("first > 0", "lipschitz >= mu", "second >= first ** 2")
def bottou_decreasing_step_plan(
    *, mu: float, lipschitz: float, first: float = 1.0, second: float = 1.0
) -> tuple[float, float]:
    """The beta that minimizes the bound for steps beta/(gamma + k), and the smallest gamma + 1 that it allows.

    Setting: as for :func:`bottou_decreasing_step`.
    Statement: beta^2/(beta c mu - 1) is smallest at beta = 2/(c mu), where the noise term of nu is 2 L M/(c mu)^2;
    alpha_1 <= mu/(L M_G) then requires gamma >= beta L M_G/mu - 1.
    Kind: identity.
    Source: [bottou2018optimization], (4.24).
    mu, lipschitz: c and L.
    first, second: Their mu, above 0, and M_G.

    Returns
    -------
    beta, shift : float
        beta and gamma + 1: ``InverseTime(c=beta * mu, mu=mu, shift=shift)``, as its steps are counted from 0.

    >>> bottou_decreasing_step_plan(mu=0.5, lipschitz=1.0)
    (4.0, 4.0)
    """
    beta = 2.0 / (mu * first)
    return beta, beta * lipschitz * second / first


@formula(
    "steps >= 0",
    "noise >= 0",
    "0 < mu <= lipschitz",
    "first > 0",
    "shift > 1",
    "beta > 0",
    "first * mu * beta > 1",
    "second >= first ** 2",
    "beta <= shift * first / (lipschitz * second)",
)
def bottou_decreasing_step(
    steps: int,
    *,
    mu: float,
    lipschitz: float,
    noise: float,
    gap: float,
    beta: float,
    shift: float,
    first: float = 1.0,
    second: float = 1.0,
) -> float:
    r"""Bound on f - f* for SGD with the step sizes beta/(gamma + k), k = 1, 2, ...: beta/(shift + t), t = 0, 1, ...

    Title: Bottou, Curtis, Nocedal: Theorem 4.7.
    Setting: as for :func:`bottou_constant_step`, with beta > 1/(c mu), gamma > 0, beta/(gamma + 1) <= mu/(L M_G).
    Statement: Steps beta/(gamma + k), beta > 1/c, give E f(x_T) - f* <= nu/(gamma + T + 1), nu = max(beta^2 L M/(2
    (beta c - 1)), (gamma + 1)(f(x_0) - f*)); beta = 2/c is optimal.
    Kind: upper.
    Latex: \mathbb{E}f(x_T)-f^*\le\frac{\nu}{\gamma+T+1}
    Attained: after one step 1/L on f = (c/2) x^2, as beta grows; as T grows, f = (c/2)||x||^2 has 4/3 times sigma^2/(2
    c T), where the bound with beta = 2/c has 4 times this
    Proof: Lemma 4.4 and ||grad f||^2 >= 2c (f - f*); induction on k.
    Source: [bottou2018optimization], Theorem 4.7.
    mu, lipschitz, noise, gap, first, second: As for bottou_constant_step.
    beta, shift: beta, and gamma + 1, above 1, the shift of ``InverseTime``; see :func:`bottou_decreasing_step_plan`.

    >>> bottou_decreasing_step(6, mu=0.5, lipschitz=1.0, noise=1.0, gap=1.0, beta=4.0, shift=4.0)  # max(8, 4)/10
    0.8
    """
    nu = max(beta**2 * lipschitz * noise / (2.0 * (first * mu * beta - 1.0)), shift * gap)
    return nu / (shift + steps)


@formula("noise >= 0", *CONSTANT)
def bottou_nonconvex(
    steps: int,
    *,
    lipschitz: float,
    step: float,
    noise: float,
    gap: float,
    first: float = 1.0,
    second: float = 1.0,
    form: str = "sharp",
) -> float:
    r"""Bound on the mean squared gradient norm of SGD with a constant step size, without convexity.

    Setting: f is L-smooth and at least f_inf; gradients as for :func:`bottou_constant_step`; alpha <= mu/(L M_G).

    Title (sharp): Bottou, Curtis, Nocedal: Theorem 4.8, sharp.
    Statement (sharp): The mean of E||grad f(x_t)||^2 over t < T is at most (alpha L M + 2 (f(x_0) - f_inf)/(T
    alpha))/(2 - alpha L), without convexity.
    Kind (sharp): tight.
    Latex (sharp): \frac1T\sum_{t<T}\mathbb{E}\|\nabla f(x_t)\|^2\le\frac{\alpha
    LM+2(f(x_0)-f_{\inf})/(T\alpha)}{2-\alpha L}
    Attained (sharp): by f = (L/2)||x||^2 for every alpha, up to the term with E f(x_T) - f_inf, which decreases in T
    Proof (sharp): Smoothness gives alpha (1 - alpha L/2) E||grad f||^2 <= f - E f(x+) + alpha^2 L M/2; sum over the
    steps.
    Source (sharp): derived; [bottou2018optimization], Theorem 4.8, has 1 instead of 2 - alpha L.

    Statement (paper): The mean of E||grad f(x_t)||^2 over t < T is at most alpha L M/mu + 2 (f(x_0) - f_inf)/(T mu
    alpha).
    Kind (paper): upper.
    Source (paper): [bottou2018optimization], Theorem 4.8.

    lipschitz, step, noise, first, second, form (float or str): As for bottou_constant_step_floor.
    gap: f(x_0) - f_inf.

    >>> [bottou_nonconvex(4, lipschitz=1.0, step=0.5, noise=1.0, gap=1.0, form=form) for form in ("sharp", "paper")]
    [1.0, 1.5]
    """
    slope = 2.0 * first - step * lipschitz * second if form == "sharp" else first
    return (step * lipschitz * noise + 2.0 * gap / (steps * step)) / slope
