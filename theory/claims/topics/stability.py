"""Claims about the stability of mini-batch SGD: two runs whose data differ in one row, with the same draws."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import expit

from ... import bounds
from ...measure import mean_interval
from ...problems import ridge
from ..base import claim
from ..checks import Measurement, equality, identity, upper
from .diversity import YIN, by_definition, rows_of


class Losses:
    """Losses of the margins w'x_i: the slope of each, and an l2 term within every f_i."""

    def __init__(self, slope, X, b, l2=0.0, radius=np.inf):
        self.slope, self.X, self.b, self.l2, self.radius = slope, X, b, l2, radius

    def step(self, w, rows, gamma):
        """One round for all replicas: the gradients of the rows are summed; projected onto the ball."""
        X = self.X[rows]
        slopes = self.slope(np.einsum("rbd,rd->rb", X, w), self.b[rows])
        w = w - gamma * (np.einsum("rb,rbd->rd", slopes, X) + rows.shape[1] * self.l2 * w)
        size = np.linalg.norm(w, axis=1, keepdims=True)
        return w * np.minimum(1.0, self.radius / np.maximum(size, 1e-300)) if np.isfinite(self.radius) else w


def logistic_slope(m, b):
    """The derivative of log(1 + exp(-b m))."""
    return -b * expit(-b * m)


def linear_slope(m, b):
    """The derivative of b m."""
    return b


def twins(first, second, *, batch, step, gradients, replicas, seed):
    """||w_T - w'_T|| of two runs from 0 with the same draws, for many replicas."""
    rng, (n, d) = np.random.default_rng(seed), first.X.shape
    w, v = np.zeros((replicas, d)), np.zeros((replicas, d))
    for _ in range(gradients // batch):
        rows = rng.integers(0, n, (replicas, batch))
        w, v = first.step(w, rows, step), second.step(v, rows, step)
    return np.linalg.norm(w - v, axis=1)


def pair_of_data(context, n, d, **options):
    """Logistic regression on unit features, and the same with one row replaced by the worst case: its label flipped."""
    rng = np.random.default_rng(context.stream("data"))
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    b = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    turned = b.copy()
    turned[0] *= -1.0
    diversity = bounds.glm_batch_bound(n, 1.0, float(np.linalg.norm(X, 2)) ** 2)  # also of differences, at every pair
    return Losses(logistic_slope, X, b, **options), Losses(logistic_slope, X, turned, **options), diversity


# --- one round --------------------------------------------------------------------------------------------------------


def _after(problem, w, v, step, batch):
    """The mean of ||w+ - v+||^2 over all batches, gradients summed; and B_D(w, v)."""
    differences = rows_of(problem, w, v)
    after = [
        np.sum((w - v - step * differences[list(rows)].sum(axis=0)) ** 2)
        for rows in itertools.product(range(problem.n), repeat=batch)
    ]
    return float(np.mean(after)), by_definition(differences)


@claim(
    "stability.round",
    title="One round does not part two runs",
    statement="For convex beta-smooth f_i and gamma <= 2/(beta (1 + (B - 1)/B_D(w, w'))), E||w+ - w'+||^2 <="
    " ||w - w'||^2 with the same B draws, gradients summed.",
    latex=r"\gamma\le\frac{2}{\beta(1+\frac{B-1}{B_D(w,w')})}\ \Rightarrow\ \mathbb{E}\|w_+-w'_+\|^2\le\|w-w'\|^2",
    source=f"{YIN}, Proposition 7, here without the term 1/(n - 1) of its condition: derived",
    bibtex="yin2018gradient",
    kind="tight",
    tight_where="orthogonal rows of the same curvature (B_D = n), and equal rows (B_D = 1), for every B",
    proof="Lemma 1 for the differences g_i of gradients: -2 gamma B <g, w - w'> + gamma^2 B (1 + (B - 1)/B_D) mean"
    " ||g_i||^2, and ||g_i||^2 <= beta <g_i, w - w'> (co-coercivity).",
    bound=bounds.stability_step,
    subject=bounds.stability_step,
    mutants={
        "a step 5 % too large": lambda beta, **given: 1.05 * bounds.stability_step(beta, **given),
        "the batch forgotten": lambda beta, *, batch, batch_bound: bounds.stability_step(
            beta, batch=1, batch_bound=batch_bound
        ),
        "with the term 1/(n - 1): a smaller step, for which the equality fails": lambda beta, **given: (
            bounds.stability_step(beta, form="printed", n=3, **given)
        ),
    },
)
def _(context):
    w, v, checks = context.normal(3, "w"), context.normal(3, "v"), []
    away = float(np.sum((w - v) ** 2))
    beta = 0.7
    for name, X in (("orthogonal rows", np.eye(3)), ("equal rows", np.tile([[1.0, 0.0, 0.0]], (3, 1)))):
        problem = ridge((np.sqrt(beta) * X, np.arange(3.0)), 0.0)
        for batch in (3, 2):
            _, diversity = _after(problem, w, v, 0.1, 1)
            after, _ = _after(problem, w, v, context.subject(beta, batch=batch, batch_bound=diversity), batch)
            checks.append(identity(f"E||w+ - w'+||^2, {name}, B={batch}", after, away, 1e-10))
    return Measurement(*checks, note="all batches enumerated")


@claim(
    "stability.round.strongly-convex",
    title="One round draws two runs together",
    statement="For lambda-strongly convex f_i and gamma <= 2/((beta + lambda) (1 + (B - 1)/B_D(w, w'))),"
    " E||w+ - w'+||^2 <= (1 - 2 gamma B beta lambda/(beta + lambda)) ||w - w'||^2.",
    latex=r"\mathbb{E}\|w_+-w'_+\|^2\le\Big(1-\frac{2\gamma B\beta\lambda}{\beta+\lambda}\Big)\|w-w'\|^2",
    source=f"{YIN}, Proposition 8, here without 1/(n - 1) and without B <= 1/(2 gamma lambda): derived",
    bibtex="yin2018gradient",
    kind="tight",
    tight_where="at the largest step: f_i whose Hessian is lambda or beta along w - w'",
    proof="As stability.round, with <g_i, u> >= beta lambda ||u||^2/(beta + lambda) + ||g_i||^2/(beta + lambda).",
    bound=bounds.stability_step,
    subject=bounds.stability_step,
    mutants={
        "a step 5 % too large": lambda beta, **given: 1.05 * bounds.stability_step(beta, **given),
        "a step that is four times too large": lambda beta, **given: 4.0 * bounds.stability_step(beta, **given),
    },
)
def _(context):
    beta, mu, u, checks = 1.0, 0.2, context.normal(2, "u") + 3.0, []
    w, v = u + 1.0, np.ones(2)
    # f_1 and f_2: curvature beta along one axis, mu along the other
    problem = ridge((np.sqrt(beta - mu) * np.eye(2), np.zeros(2)), mu)
    for batch in (4, 2, 1):
        _, diversity = _after(problem, w, v, 0.1, 1)
        allowed = bounds.stability_step(beta, batch=batch, batch_bound=diversity, mu=mu)
        step = context.subject(beta, batch=batch, batch_bound=diversity, mu=mu)
        after, _ = _after(problem, w, v, step, batch)
        shrunk = (1.0 - 2.0 * allowed * batch * beta * mu / (beta + mu)) * float(u @ u)
        checks.append(identity(f"E||w+ - w'+||^2, B={batch}", after, shrunk, 1e-10))
    return Measurement(*checks, note="all batches enumerated")


# --- whole runs -------------------------------------------------------------------------------------------------------


@claim(
    "stability.linear",
    title="Stability is lost at most at this rate",
    statement="E||w_T - w'_T|| <= 2 gamma L T/n, and linear losses attain it: row I with the gradient L v, and -L v in"
    " the other data.",
    latex=r"\mathbb{E}\|w_T-w'_T\|\le\frac{2\gamma LT}{n}",
    source=f"{YIN}, Proposition 7; attained: derived",
    bibtex="yin2018gradient",
    kind="equality",
    tight_where="linear losses, for every B",
    proof="Row I is drawn T/n times on average, and parts the runs by at most 2 gamma L each time.",
    bound=bounds.sgd_stability,
    subject=lambda step, batch: (step, batch),
    mutants={
        "a step 10 % larger": lambda step, batch: (1.1 * step, batch),
        "gradients averaged over the batch, not summed": lambda step, batch: (step / batch, batch),
    },
)
def _(context):
    n, gradients, L, replicas, checks = 10, 40, 1.5, context.samples(8000, 4000), []
    X = np.zeros((n, 3))
    X[:, 1] = 1.0
    X[0] = [L, 0.0, 0.0]
    b, turned = np.ones(n), np.ones(n)
    turned[0] = -1.0
    for batch in (4, 10):
        step, simulated = context.subject(0.1, batch)
        found = twins(
            Losses(linear_slope, X, b),
            Losses(linear_slope, X, turned),
            batch=simulated,
            step=step,
            gradients=gradients,
            replicas=replicas,
            seed=context.stream(batch),
        )
        predicted = bounds.sgd_stability(gradients, n=n, step=0.1, lipschitz=L) / L
        checks.append(
            equality(f"E||w_T - w'_T||, T=40, n=10, B={batch}", mean_interval(found, context.level(2)), predicted)
        )
    return Measurement(*checks, samples=2 * replicas)


@claim(
    "stability.logistic",
    title="Stability of logistic regression",
    statement="For convex beta-smooth L-Lipschitz losses and gamma <= 2/(beta (1 + (B - 1)/Bbar)), data that differ in"
    " one row give runs with E||w_T - w'_T|| <= 2 gamma L T/n.",
    latex=r"\epsilon_{\mathrm{stab}}\le\frac{2\gamma L^2T}{n}",
    source=f"{YIN}, Proposition 7 and Theorem 9, without the term 1/(n - 1) of their condition: derived",
    bibtex="yin2018gradient",
    kind="upper",
    proof="stability.round, and 2 gamma L for every draw of the row that differs.",
    bound=bounds.sgd_stability,
    subject=lambda step: step,
    mutants={"steps a hundred times too large": lambda step: 100.0 * step},
    see=("stability.round", "stability.linear"),
)
def _(context):
    n, d, gradients, replicas, checks = 40, 30, 320, context.samples(400, 100), []
    first, second, diversity = pair_of_data(context, n, d)
    for batch in (16, 4, 1):
        allowed = bounds.stability_step(0.25, batch=batch, batch_bound=diversity)
        found = twins(
            first,
            second,
            batch=batch,
            step=context.subject(allowed),
            gradients=gradients,
            replicas=replicas,
            seed=context.stream(batch),
        )
        bound = bounds.sgd_stability(gradients, n=n, step=allowed, lipschitz=1.0)
        checks.append(upper(f"E||w_T - w'_T||, T=320, n=40, B={batch}", mean_interval(found, context.level(3)), bound))
    return Measurement(
        *checks,
        samples=3 * replicas,
        note="logistic losses, unit features: beta=1/4, L=1; the label of a row is turned",
    )


@claim(
    "stability.strongly-convex",
    title="Stability of strongly convex losses",
    statement="With lambda-strongly convex losses and gamma <= 2/((beta + lambda) (1 + (B - 1)/Bbar)), E||w_T - w'_T||"
    " <= 2 L (beta + lambda)/(beta lambda n) <= 4 L/(lambda n) for every T.",
    latex=r"\epsilon_{\mathrm{stab}}\le\frac{2L^2(\beta+\lambda)}{\beta\lambda n}\le\frac{4L^2}{\lambda n}",
    source=f"{YIN}, Proposition 8 and Theorem 10, without the term 1/(n - 1) of their condition: derived",
    bibtex="yin2018gradient",
    kind="upper",
    proof="stability.round.strongly-convex: a round multiplies the distance by 1 - gamma B beta lambda/(beta + lambda)"
    " and adds 2 gamma L B/n on average.",
    bound=bounds.sgd_stability_strongly_convex,
    subject=lambda l2, radius: {"l2": l2, "radius": radius},
    mutants={"without the l2 term and the ball": lambda l2, radius: {}},
    see=("stability.round.strongly-convex", "stability.linear"),
)
def _(context):
    n, d, l2, radius, gradients, replicas = 40, 30, 0.5, 1.0, 1280, context.samples(400, 100)
    first, second, _ = pair_of_data(context, n, d, **context.subject(l2, radius))
    beta, L, checks = 0.25 + l2, 1.0 + l2 * radius, []
    for batch in (16, 4, 1):
        # differences of gradients are H_i u, lambda <= H_i <= beta, so that B_D(w, w') >= 1 is all that is used here
        step = bounds.stability_step(beta, batch=batch, batch_bound=1.0, mu=l2)
        found = twins(
            first, second, batch=batch, step=step, gradients=gradients, replicas=replicas, seed=context.stream(batch)
        )
        interval = mean_interval(found, context.level(3))
        bound = bounds.sgd_stability_strongly_convex(n=n, mu=l2, lipschitz=L, smoothness=beta) / L
        checks.append(upper(f"E||w_T - w'_T||, T=1280, n=40, B={batch}", interval, bound))
    return Measurement(
        *checks, samples=3 * replicas, note="logistic losses, unit features, lambda=1/2, on the unit ball: L=3/2"
    )
