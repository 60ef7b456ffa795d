"""Adaptive steps: Adam, LAMB, signs of momenta, and the memory and communication of ZeRO.

The bounds on Adam and LAMB limit the length of a step. `momentum_memory` combines momentum with error feedback. The
bound on signs of momenta has a term for noise, for momentum and for workers whose data differ.

ZeRO divides parameters, gradients and moments over the workers.  Stage 0 is data parallelism: every worker holds
everything.  Stage 1 divides the optimizer's state over the workers, stage 2 also the gradients, stage 3 also the
parameters. The memory of an error feedback rule is different on each worker, so no stage can divide it.
"""

from __future__ import annotations

import math

import numpy as np

from .closed_form import formula

# --- Adam and LAMB ---------------------------------------------------------------------------------------------------

LARGEST = 700.0  # a little less than the logarithm of the largest float


@formula("eta > 0", "0 <= beta1 < 1", "0 < beta2 < 1")
def adam_step(beta1: float, beta2: float, steps: int, eta: float = 1.0) -> float:
    r"""The longest step of Adam in a coordinate.

    Title: The longest step of Adam.
    Setting: Adam with bias correction and eps = 0, any gradients g_1, ..., g_t that are not all 0.
    Statement: |x_{t+1} - x_t| <= gamma (1 - beta1)/(1 - beta1^t) sqrt((1 - beta2^t)/(1 - beta2)) sqrt((1 - r^t)/(1 -
    r)), r = beta1^2/beta2.
    Kind: tight (g_s proportional to (beta1/beta2)^(t - s): gradients that grow by beta2/beta1 in every step).
    Latex:
    |x_{t+1}-x_t|\le\gamma\,\frac{1-\beta_1}{1-\beta_1^t}\sqrt{\frac{1-\beta_2^t}{1-\beta_2}\cdot\frac{1-r^t}{1-r}},\quad
    r=\frac{\beta_1^2}{\beta_2}
    Attained: gradients that grow by beta2/beta1 in every step; the same gradients attain it for all t.
    Proof: Cauchy-Schwarz: sum beta1^k g_{t-k} = sum (beta1/sqrt(beta2))^k (sqrt(beta2)^k g_{t-k}).
    Source: derived: Cauchy-Schwarz for the sums m = (1 - beta1) sum beta1^k g_{t-k} and v = (1 - beta2) sum beta2^k
    g_{t-k}^2.
    beta1: In [0, 1).
    beta2: In (0, 1).
    steps: t.
    eta: Step size gamma.

    Returns
    -------
    float
        Infinite where it exceeds the largest float.

    >>> adam_step(0.9, 0.999, 1), round(adam_step(0.9, 0.999, 10**6), 4)
    (1.0, 7.2703)
    """
    r = beta1 * beta1 / beta2
    if r > 1.0 and steps * math.log(r) > LARGEST:
        return math.inf
    # sum of r^k, k < t
    powers = float(steps) if r == 1.0 else math.expm1(steps * math.log(r)) / (r - 1.0) if r > 0.0 else 1.0
    first, second = (1.0 - beta1) / (1.0 - beta1**steps), (1.0 - beta2**steps) / (1.0 - beta2)
    return eta * first * math.sqrt(second * powers)


@formula("eta > 0", "0 <= beta1 < 1", "0 < beta2 < 1")
def adam_step_in_print(beta1: float, beta2: float, eta: float = 1.0) -> float:
    r"""The longest step of Adam in a coordinate, as printed.

    Title: The longest step of Adam, as printed.
    Setting: Adam with bias correction and eps = 0.
    Statement: A step of Adam with eps = 0 is at most gamma (1 - beta1)/sqrt(1 - beta2) where this is above gamma, and
    at most gamma otherwise.
    Kind: upper (refuted: `adam_step` is attained).
    Latex: |\Delta_t|\le\alpha\max\Big(1,\frac{1-\beta_1}{\sqrt{1-\beta_2}}\Big)
    Proof: The printed bound is the step after a single gradient that follows zeros. Longer steps exist: gradients that
    grow by beta2/beta1 in every step reach sqrt((1 - beta1)^2/((1 - beta2)(1 - beta1^2/beta2))), which is 7.27 for the
    recommended factors, where the printed bound is 3.16.
    Source: [kingma2015adam], section 2.1.
    beta1: In [0, 1).
    beta2: In (0, 1).
    eta: Step size gamma.

    >>> round(adam_step_in_print(0.9, 0.999), 4)
    3.1623
    """
    return eta * max(1.0, (1.0 - beta1) / math.sqrt(1.0 - beta2))


@formula("0 < mu <= lipschitz", "eta > 0", "0 <= beta1 < 1")
def frozen_adam_rate(mu: float, lipschitz: float, eta: float, beta1: float) -> float:
    r"""The rate of Adam with a frozen variance on quadratics.

    Title: Adam with a frozen variance is preconditioned momentum.
    Setting: x+ = x - gamma P m, m = beta1 m + (1 - beta1) g, exact gradients; the preconditioned curvatures, the
    eigenvalues of P^{1/2} A P^{1/2}, lie in [mu, L].
    Statement: After the warm-up of 1-bit Adam with a lossless compressor, the iterates are those of heavy ball in the
    coordinates P^(-1/2) x with P = 1/(sqrt(v) + eps), the momentum beta1 and the step gamma (1 - beta1).
    Kind: identity (in the limit of many steps, for every start with a component in the slowest direction).
    Latex: x_{t+1}=x_t-\gamma P m_{t+1},\quad m_{t+1}=\beta_1m_t+(1-\beta_1)\nabla f(x_t)
    Proof: With x = P^(1/2) y and n = P^(1/2) m: y+ = y - gamma n, n = beta1 n + (1 - beta1) grad of f(P^(1/2) y).
    Source: derived: with x = P^{1/2} y the recursion is heavy ball on f(P^{1/2} y); Polyak 1964.
    mu, lipschitz: Above 0, mu <= L.

    >>> frozen_adam_rate(1.0, 1.0, 0.5, 0.0)
    0.5
    """
    return max(_largest_root(1.0 + beta1 - eta * (1.0 - beta1) * h, beta1) for h in (mu, lipschitz))


def _largest_root(b: float, c: float) -> float:
    """The largest modulus of the roots of z^2 - b z + c."""
    inside = b * b - 4.0 * c
    return math.sqrt(c) if inside < 0.0 else (abs(b) + math.sqrt(inside)) / 2.0


@formula("eta > 0", "size > 0", "low >= 0", "low <= high", "0 <= high <= inf")
def lamb_step(eta: float, size: float, low: float = 0.0, high: float = math.inf) -> float:
    r"""Length of LAMB's step in a layer.

    Title: LAMB's step is proportional to the norm of the layer.
    Setting: a layer of x with norm ``size``, above 0, and a direction u that is not 0.
    Statement: LAMB moves every layer that is not 0 by gamma min(max(||x||, low), high), whatever the gradients are, as
    long as its direction is not 0.
    Kind: identity.
    Latex: \|x^{(l)}_{t+1}-x^{(l)}_t\|=\gamma\,\phi(\|x^{(l)}_t\|)
    Proof: The direction is divided by its norm, whatever the gradients, the moments and the compressor are.
    Source: [you2020large], Algorithm 2.
    eta: Step size gamma.
    size: Norm of the layer.
    low, high: Bounds of phi.

    >>> lamb_step(0.1, 20.0), lamb_step(0.1, 20.0, high=10.0)
    (2.0, 1.0)
    """
    return eta * min(max(size, low), high)


@formula("error >= 0")
def momentum_memory(error: float, beta: float) -> float:
    r"""Distance between heavy-ball iterates with and without error feedback.

    Title: Momentum with error feedback.
    Setting: error feedback whose server has heavy-ball momentum beta; the mean of the memories is e_t, with ||e_t|| <=
    error.
    Statement: With error feedback and heavy-ball momentum at the server, x_t - z_t follows heavy ball with the
    gradients at x_t, where z_t = beta z_{t-1} + e_t sums the mean memories; so the distance of x_t from it is at most
    max ||e|| / (1 - beta).
    Kind: tight (a memory that no longer changes).
    Latex: x_t-z_t=\tilde x_t,\quad z_t=\beta z_{t-1}+\bar e_t,\quad\|z_t\|\le\max_s\|\bar e_s\|/(1-\beta)
    Attained: a constant gradient and a compressor C(v) = c v with a constant c.
    Proof: What is sent is gamma g_t + e_t - e_{t+1}. The velocity is linear in it; summation by parts turns the
    differences of the memories into z_t.
    Source: derived.
    error: Largest norm of the mean memory.

    >>> momentum_memory(0.5, 0.75)
    2.0
    """
    return error / (1.0 - beta)


# --- Signs of momenta ------------------------------------------------------------------------------------------------


@formula("0 < momentum <= 1", "workers_lipschitz > 0", "apart >= 0")
def sign_momentum_gradient(
    steps: int,
    *,
    step: float,
    d: int,
    gap: float,
    lipschitz: float,
    workers_lipschitz: float,
    momentum: float = 1.0,
    variance: float = 0.0,
    apart: float = 0.0,
    vote: bool = False,
) -> float:
    r"""Bound on the mean gradient norm of Signum, which descends along the signs of the workers' momenta.

    Title: Signs of momenta descend under any noise of finite variance.
    Setting: m_i <- (1 - a) m_i + a g_i, m_i = g_i in the first step; x <- x - gamma mean sign(m_i), or a majority vote
    of the signs; g_i an unbiased gradient of f_i with the variance sigma^2, given the past; f_i L_i-smooth in R^d,
    their mean f L-smooth; a constant gamma.
    Statement: (1/T) sum_t E||grad f(x_t)||_1 <= (f(x_0) - f*)/(gamma T) + gamma L d/2 + c (sqrt(d) mean_t e_t +
    zeta/2), c is 2, or 4 with a vote, e_t = gamma sqrt(d) L~ (1 - a) (1 - (1 - a)^t)/a + sigma sqrt((1 - a)^(2t) + a^2
    (1 - (1 - a)^(2t))/(1 - (1 - a)^2)). After many steps, a T >> 1, noise costs c sigma sqrt(d a/(2 - a)), whatever its
    law.
    Kind: tight (without noise).
    Latex: \frac1T\sum_t\mathbb{E}\|\nabla f(x_t)\|_1\le\frac{f(x_0)-f^*}{\gamma T}+\frac{\gamma Ld}2
    +c\Big(\sqrt d\,\overline{e_t}+\frac\zeta2\Big)
    Attained: by L||x||^2/2 in one step from (gamma, ..., gamma); for gamma to 0 and gamma T to infinity by two workers
    with the gradients x - b and x + b from where one of them vanishes, and with a vote by (x - y)^2/2 + G y and (x -
    y)^2/2 - G y from (G, 0).
    Proof: f(x+) <= f - gamma ||grad f||_1 + 2 gamma sum_j |grad_j f| w_j + gamma^2 L d/2, w_j the share of wrong signs,
    or with a vote 1 where half of the signs or more are wrong, at most 2 w_j. Where a sign is wrong, m_i differs from
    grad_j f by |grad_j f| or more, in the opposite direction; in each coordinate the deviations of the grad f_i from
    their mean cancel, so half of their sum has the opposite sign. E||m_i - grad f_i|| <= e_t: the error of m_i sums the
    changes of the gradient, at most L_i gamma sqrt(d) in a step, and uncorrelated noise. At a = 1 half of the noise
    term suffices.
    Source: derived. The method is [bernstein2018signsgd], Signum, from memory. That momentum makes signs converge, as
    T^(-1/4) for smooth functions and noise of bounded variance, is [jiang2025improved], and earlier of Sun, Wang, Li,
    Wang, "Momentum ensures convergence of SIGNSGD under weaker assumptions" (ICML 2023). Only the abstracts of both
    were read.
    workers_lipschitz: L~, the mean of the L_i.
    momentum: a, the weight of a new gradient; 1 is sign descent.
    variance: sigma^2 of one worker's gradient.
    apart: zeta, the largest over t of the mean of ||grad f_i - grad f||_1 over the workers.
    vote: Whether x moves by the majority vote of the signs.

    Returns
    -------
    float
        The mean over the steps of the expected norm ||grad f||_1.

    >>> sign_momentum_gradient(1, step=0.5, d=4, gap=1.0, lipschitz=2.0, workers_lipschitz=2.0)
    4.0
    """
    kept = (1.0 - momentum) ** np.arange(steps)
    change = step * math.sqrt(d) * workers_lipschitz * (1.0 - momentum) * np.mean(1.0 - kept) / momentum
    share = momentum / (2.0 - momentum)  # a^2/(1 - (1 - a)^2)
    noise = math.sqrt(variance) * np.mean(np.sqrt(kept**2 + share * (1.0 - kept**2)))
    c = 4.0 if vote else 2.0
    return (
        gap / (step * steps)
        + 0.5 * step * lipschitz * d
        + float(c * math.sqrt(d) * change)
        + float(c * math.sqrt(d) * noise)
        + 0.5 * c * apart
    )


# --- ZeRO ------------------------------------------------------------------------------------------------------------

STAGES = (0, 1, 2, 3)


@formula(
    "memory >= 0",
    "optimizer_bytes >= 0",
    "gradient_bytes >= 0",
    "parameter_bytes >= 0",
    "parameters > 0",
    f"stage in {STAGES}",
)
def zero_memory(
    parameters: float,
    workers: int,
    stage: int = 0,
    memory: float = 0.0,
    optimizer_bytes: float = 12.0,
    gradient_bytes: float = 2.0,
    parameter_bytes: float = 2.0,
) -> float:
    """Bytes that a worker stores under data parallelism or ZeRO, with an error memory.

    Title: Memory under ZeRO with an error memory.
    Setting: Psi parameters on N workers; by default mixed precision with Adam: half-precision parameters and gradients,
    and 12 bytes for a parameter and its two moments in single precision.
    Statement: A worker holds Psi (b_p + b_g + b_o + b_e) bytes, where stage 1 divides b_o by N, stage 2 also b_g, and
    stage 3 also b_p; the bytes b_e of the error memory are never divided.
    Kind: identity.
    Proof: By counting bytes. The memories of the workers differ, so no memory can be restored from those of other
    workers.
    Source: [rajbhandari2020zero], section 5; with a memory: derived.

    Title (example): The example of ZeRO with the memory of error feedback.
    Statement (example): 7.5 billion parameters on 64 workers take 120, 31.4, 16.6 and 1.9 GB a worker in stages 0 to 3;
    stage 3 sends 1.5 times as much as data parallelism. Error feedback in single precision adds 30 GB at every stage,
    so that stage 3 takes 17 times its memory. Gradients compressed to a twentieth of their size save 95 % of the
    communication of data parallelism, and 31.7 % of that of stage 3. Even if its gradients cost nothing, stage 3 sends
    as much as data parallelism without compression.
    Proof (example): By counting bytes.
    Source (example): [rajbhandari2020zero], figure 1 and section 7; with a memory: derived.

    parameters: Psi, above 0.
    stage: 0 (data parallelism), 1, 2 or 3.
    memory: b_e, bytes of the error memory for each parameter: 4 for error feedback in single precision, 4 s for a
        sketch of relative size s, 0 without; ``result.memory_bytes / d`` of a run.
    optimizer_bytes, gradient_bytes, parameter_bytes: b_o, b_g, b_p.

    >>> [round(zero_memory(7.5e9, 64, stage) / 1e9, 1) for stage in range(4)]  # GB
    [120.0, 31.4, 16.6, 1.9]
    >>> round(zero_memory(7.5e9, 64, 3, memory=4.0) / 1e9, 1)
    31.9
    """
    part = parameters / workers
    return (
        parameter_bytes * (part if stage >= 3 else parameters)
        + gradient_bytes * (part if stage >= 2 else parameters)
        + optimizer_bytes * (part if stage >= 1 else parameters)
        + memory * parameters
    )


@formula("0 <= ratio <= 1", "parameters > 0", f"stage in {STAGES}")
def zero_volume(parameters: float, workers: int, stage: int = 0, ratio: float = 1.0) -> float:
    """Numbers that a worker sends in a step under data parallelism and ZeRO, with compressed gradients.

    Title: Communication under ZeRO with compressed gradients.
    Setting: Psi parameters on N workers, exchanged by rings or directly; a compressed gradient takes ``ratio`` times
    the space, and so does the mean of several, as for coordinates that all workers share or if it is compressed again.
    Statement: (N - 1)/N Psi times 2 ratio in stage 0 (gradients are reduced and gathered), ratio + 1 in stages 1 and 2
    (gradients are scattered, new parameters gathered), and ratio + 2 in stage 3 (parameters are gathered before the
    forward and before the backward pass): compressing gradients saves at most a half of it in stages 1 and 2 and at
    most a third in stage 3.
    Kind: identity.
    Proof: A reduction is a scatter and a gather of slices; of the parameters, which no compressor of gradients touches,
    stages 1 and 2 gather one copy in a step and stage 3 two.
    Source: [rajbhandari2020zero], section 7, for ratio = 1; derived.
    parameters: Psi, above 0.
    stage: 0 (data parallelism), 1, 2 or 3.
    ratio: Size of a compressed gradient, from 0 to 1.

    >>> zero_volume(100.0, 2, 3) / zero_volume(100.0, 2), zero_volume(100.0, 2, 3, ratio=0.0) / zero_volume(100.0, 2)
    (1.5, 1.0)
    """
    one = parameters * (workers - 1) / workers
    gathered = (ratio, 1.0, 1.0, 2.0)[stage]
    return ratio * one + gathered * one
