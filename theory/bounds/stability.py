"""Stability and generalization of mini-batch SGD.

The source *sums* the gradients of a batch; the methods of this package *average* them: ``step`` is gamma, the step for
a single gradient, and ``Constant(gamma B)`` is the same run.  ``gradients`` is T, the number of gradients, T/B rounds.
"""

from __future__ import annotations

import math

from ..core import require
from .closed_form import formula


def _form(form: str, batch: int, n: int | None) -> float:
    """The superfluous term of the printed conditions: 1/(n - 1) for B > 1."""
    if form == "derived":
        return 0.0
    require(n is not None and n >= 2, "n", n, "the number of rows, at least 2, for the printed form")
    assert n is not None
    return 1.0 / (n - 1) if batch > 1 else 0.0


def _printed_limit(batch: int, mu: float) -> float:
    """The step of the printed B <= 1/(2 gamma mu)."""
    return 1.0 / (2.0 * mu * batch) if mu > 0 else math.inf


@formula("smoothness > 0", "1 - 1e-12 <= batch_bound <= inf", "0 <= mu <= smoothness", "form in ('derived', 'printed')")
def stability_step(
    smoothness: float, *, batch: int, batch_bound: float, mu: float = 0.0, form: str = "derived", n: int | None = None
) -> float:
    r"""Largest step size for which a batch of B is as stable as single gradients.

    Title (derived): One round draws two runs together.
    Title (round): One round does not part two runs.
    Setting: f_i convex and beta-smooth (mu-strongly convex if mu > 0), gradients of a batch *summed*, rows drawn with
    replacement, Bbar = inf over w != w' of the differential B_D(w, w').
    Statement: derived: gamma <= 2/((beta + mu) (1 + (B - 1)/Bbar)). printed: the same with 1/(n - 1) added to the
    bracket if B > 1, and at most 1/(2 mu B) if mu > 0, neither of which the proof needs.
    Statement (derived): For lambda-strongly convex f_i and gamma <= 2/((beta + lambda) (1 + (B - 1)/B_D(w, w'))), E||w+
    - w'+||^2 <= (1 - 2 gamma B beta lambda/(beta + lambda)) ||w - w'||^2.
    Statement (round): For convex beta-smooth f_i and gamma <= 2/(beta (1 + (B - 1)/B_D(w, w'))), E||w+ - w'+||^2 <= ||w
    - w'||^2 with the same B draws, gradients summed.
    Kind: tight (E||step from w - step from w'||^2 <= ||w - w'||^2 up to this step and, for mu = 0, not beyond it:
    orthogonal rows with the same curvature, for every B).
    Latex (derived): \mathbb{E}\|w_+-w'_+\|^2\le\Big(1-\frac{2\gamma B\beta\lambda}{\beta+\lambda}\Big)\|w-w'\|^2
    Latex (round): \gamma\le\frac{2}{\beta(1+\frac{B-1}{B_D(w,w')})}\ \Rightarrow\ \mathbb{E}\|w_+-w'_+\|^2\le\|w-w'\|^2
    Attained (derived): at the largest step: f_i whose Hessian is lambda or beta along w - w'.
    Proof (derived): As stability.round, with <g_i, u> >= beta lambda ||u||^2/(beta + lambda) + ||g_i||^2/(beta +
    lambda).
    Proof (round): Lemma 1 for the differences g_i of gradients: -2 gamma B <g, w - w'> + gamma^2 B (1 + (B - 1)/B_D)
    mean ||g_i||^2, and ||g_i||^2 <= beta <g_i, w - w'> (co-coercivity).
    Source: [yin2018gradient], Propositions 7 and 8 (printed; B <= 1/(2 gamma mu) is 8's); derived: their Lemma 1 for
    the differences of gradients, and co-coercivity.
    Source (derived): [yin2018gradient], Proposition 8, here without 1/(n - 1) and without B <= 1/(2 gamma lambda):
    derived.
    Source (round): [yin2018gradient], Proposition 7, here without the term 1/(n - 1) of its condition: derived.
    smoothness: beta.
    batch_bound: Bbar, or a lower bound of it such as :func:`glm_batch_bound`; at least 1, may be infinite.
    form ({"derived", "printed"}):
    n (int, optional): Number of rows, for the printed form.

    Returns
    -------
    float
        gamma.

    >>> stability_step(0.5, batch=5, batch_bound=4.0), stability_step(0.5, batch=1, batch_bound=4.0)  # 4/(1 + 4/4)
    (2.0, 4.0)
    """
    extra = _form(form, batch, n)
    step = 2.0 / ((smoothness + mu) * (1.0 + (batch - 1) / max(1.0, batch_bound) + extra))
    return min(step, _printed_limit(batch, mu)) if form == "printed" else step


@formula("gradients >= 0", "n >= 1", "lipschitz >= 0")
def sgd_stability(gradients: int, *, n: int, step: float, lipschitz: float) -> float:
    r"""Uniform stability of mini-batch SGD on convex losses.

    Title: Stability is lost at most at this rate.
    Setting: f_i convex, beta-smooth and L-Lipschitz; constant step gamma at most :func:`stability_step`, gradients of a
    batch summed, T gradients in all, projections allowed.
    Statement: abs(E f(w_T; z) - E f(w'_T; z)) <= 2 gamma L^2 T/n for every z, if w' comes from data with one row of n
    exchanged; for E||w_T - w'_T|| divide by L.
    Kind: identity (linear losses: row I has the gradient L v, or -L v after the exchange, so w_T - w'_T grows by 2
    gamma L whenever I is drawn).
    Title (logistic): Stability of logistic regression.
    Kind (logistic): tight.
    Latex: \mathbb{E}\|w_T-w'_T\|\le\frac{2\gamma LT}{n}
    Latex (logistic): \epsilon_{\mathrm{stab}}\le\frac{2\gamma L^2T}{n}
    Attained (logistic): nearly, far from the minimum, where the losses of two nearly opposite rows are linear.
    Proof (logistic): stability.round, and 2 gamma L for every draw of the row that differs.
    Proof: Row I is drawn T/n times on average, and parts the runs by at most 2 gamma L each time.
    Source: [yin2018gradient], Proposition 7; with B = 1: Hardt, Recht, Singer, ICML 2016, Theorem 3.8.
    gradients: T.
    n: Number of rows.

    >>> sgd_stability(100, n=50, step=0.25, lipschitz=2.0)  # 2 * 0.25 * 4 * 2
    4.0
    """
    return 2.0 * step * lipschitz**2 * gradients / n


@formula("n >= 1", "lipschitz >= 0", "smoothness >= mu")
def sgd_stability_strongly_convex(*, n: int, mu: float, lipschitz: float, smoothness: float | None = None) -> float:
    r"""Uniform stability of mini-batch SGD on strongly convex losses, for any number of steps.

    Title: Stability of strongly convex losses.
    Setting: f_i mu-strongly convex, beta-smooth and L-Lipschitz where the iterates are (a projection sees to that);
    constant step at most :func:`stability_step` with mu.
    Statement: abs(E f(w_T; z) - E f(w'_T; z)) <= 4 L^2/(mu n), and with beta 2 L^2 (beta + mu)/(beta mu n), which is
    smaller; for E||w_T - w'_T|| divide by L.
    Kind: upper.
    Latex: \epsilon_{\mathrm{stab}}\le\frac{2L^2(\beta+\lambda)}{\beta\lambda n}\le\frac{4L^2}{\lambda n}
    Attained: nearly, for large T and beta/lambda: losses that differ by linear ones along the least curvature
    Source: [yin2018gradient], Proposition 8 (the first; there with B <= 1/(2 gamma mu)); the second is derived: in a
    round the distance shrinks by the factor 1 - gamma B beta mu/(beta + mu) and grows by 2 gamma L B/n.
    n: Number of rows.
    smoothness (float, optional): beta, at least mu.

    >>> sgd_stability_strongly_convex(n=8, mu=0.5, lipschitz=1.0)
    1.0
    >>> sgd_stability_strongly_convex(n=8, mu=0.5, lipschitz=1.0, smoothness=1.0)  # 2 * 1.5/(0.5 * 8)
    0.75
    """
    if smoothness is None:
        return 4.0 * lipschitz**2 / (mu * n)
    unit = 2.0 * lipschitz**2 / n
    return unit / mu + unit / smoothness


@formula("smoothness > 0", "0 <= mu <= smoothness", "form in ('derived', 'printed')")
def stability_batch_bound(
    smoothness: float, *, batch: int, step: float, mu: float = 0.0, form: str = "derived", n: int | None = None
) -> float:
    """The batch-size bound required by a batch and a step size: :func:`stability_step`, solved for Bbar.

    Setting: as :func:`stability_step`.
    Statement: derived: Bbar >= (B - 1)/(2/(gamma (beta + mu)) - 1). printed: with 1/(n - 1) taken off the denominator
    if B > 1, and infinity beyond gamma = 1/(2 mu B) if mu > 0.
    Kind: identity.
    Source: [yin2018gradient], Theorems 9 and 10 (printed): the event whose probability is eta.
    smoothness: beta.
    form ({"derived", "printed"}):
    n (int, optional): Number of rows, for the printed form.

    Returns
    -------
    float
        Bbar; a value of at most 1 is always satisfied, infinity never.

    >>> stability_batch_bound(0.5, batch=5, step=2.0)
    4.0
    """
    room = 2.0 / (step * (smoothness + mu)) - 1.0 - _form(form, batch, n)
    if form == "printed" and step > _printed_limit(batch, mu) * (1.0 + 1e-12):
        return math.inf
    if room < 0.0 or (room == 0.0 and batch > 1):
        return math.inf
    return (batch - 1) / room if batch > 1 else 0.0


@formula("stability >= 0", "lipschitz >= 0", "gradients >= 0", "0 <= failure <= 1")
def generalization_gap(
    stability: float, *, gradients: int, step: float, lipschitz: float, failure: float = 0.0
) -> float:
    r"""Expected generalization gap of mini-batch SGD.

    Setting: as :func:`sgd_stability` or :func:`sgd_stability_strongly_convex`; the data are drawn i.i.d., and have too
    little diversity for the step size, Bbar < :func:`stability_batch_bound`, with probability eta.
    Statement: the expected loss f and the mean loss f_S over the data have abs(E f(w_T) - E f_S(w_T)) <= (1 - eta) eps
    + eta 2 gamma L^2 T, eps the stability: without diversity two runs may diverge by 2 gamma L per gradient.
    Kind: upper (attained for eta = 0 by linear losses along many orthogonal directions, with their own stability gamma
    L^2 T/n; the 2 gamma L^2 T/n of :func:`sgd_stability` is for opposite gradients. With linear losses the gap is gamma
    T/n times the variance of their gradients, which are at most L: never more than half of that).
    Latex: |\mathbb{E}f(w_T)-\mathbb{E}f_S(w_T)|\le(1-\eta)\,\epsilon_{\mathrm{stab}}+\eta\,2\gamma L^2T
    Proof: Exchange row i by an independent one: the gap is the mean change of the loss of row i. Without the diversity
    that the step asks for, two runs part by at most 2 gamma L a gradient.
    Source: [yin2018gradient], Theorems 9 (convex) and 10 (strongly convex); eta = 0: Hardt, Recht, Singer, ICML 2016,
    Theorem 2.2.
    stability: eps.
    gradients: T.
    failure: eta.

    >>> generalization_gap(4.0, gradients=100, step=0.25, lipschitz=2.0, failure=0.5)  # 2 + 100
    102.0
    """
    parted = 2.0 * step * lipschitz**2 * gradients
    return (1.0 - failure) * stability + failure * parted
