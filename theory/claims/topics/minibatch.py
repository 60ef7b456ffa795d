"""Claims about mini-batches: one step, computed exactly by enumerating all batches."""

from __future__ import annotations

import itertools

import numpy as np

from ... import bounds
from ...problems import batch_bound, batch_gradient, gradient, logistic, second_moment
from ..base import claim
from ..checks import Measurement, identity

YIN = "Yin, Pananjady, Lam, Papailiopoulos, Ramchandran, Bartlett, Gradient diversity, AISTATS 2018"


def with_replacement(n, size):
    """All ordered batches, equally likely, if rows are drawn i.i.d."""
    return itertools.product(range(n), repeat=size)


def without_replacement(n, size):
    """All batches, equally likely, of different rows."""
    return itertools.combinations(range(n), size)


def _mean(problem, batch, x):
    return batch_gradient(problem, batch, x)


def _sum(problem, batch, x):
    return len(batch) * batch_gradient(problem, batch, x)


def _one_short(problem, batch, x):
    return len(batch) / max(1, len(batch) - 1) * batch_gradient(problem, batch, x)


def _measure(context, n_in_formula):
    batches, direction = context.subject
    rng = np.random.default_rng(context.stream())
    problem = logistic((rng.standard_normal((4, 3)), np.array([1.0, -1.0, 1.0, 1.0])), l2=0.1)
    x, target, step, checks = rng.standard_normal(3), rng.standard_normal(3), 0.7, []
    second, diversity = second_moment(problem, x), batch_bound(problem, x)
    for size in (3, 4, 1):
        steps = [x - step * direction(problem, list(batch), x) for batch in batches(4, size)]
        measured = float(np.mean([np.sum((y - target) ** 2) for y in steps]))
        predicted = bounds.minibatch_step(
            float(np.sum((x - target) ** 2)),
            float(gradient(problem, x) @ (x - target)),
            second,
            second / diversity,
            batch=size,
            step=step,
            n=n_in_formula,
        )
        checks.append(identity(f"E||x+ - x*||^2, n=4, B={size}, B_D={diversity:.3g}", measured, predicted))
    return Measurement(*checks, note="all batches enumerated; gradients averaged over the batch (the source sums them)")


@claim(
    "minibatch.step",
    title="One mini-batch step",
    statement="A step with the mean of B gradients drawn with replacement gives E||x+ - x*||^2 = ||x - x*||^2"
    " - 2 eta <grad f, x - x*> + eta^2 (1 + (B-1)/B_D) M^2/B.",
    latex=r"\mathbb{E}\|x_+-x^*\|^2=\|x-x^*\|^2-2\eta\langle\nabla f,x-x^*\rangle+\tfrac{\eta^2}{B}"
    r"\Big(1+\tfrac{B-1}{B_D}\Big)M^2",
    source=f"{YIN}, Lemma 1 (which sums the gradients: its step times B)",
    bibtex="yin2018gradient",
    kind="identity",
    tight_where="everywhere",
    proof="Two different draws of a batch are independent, so their gradients have the mean product ||grad f||^2 ="
    " M^2/B_D; there are B (B-1) such pairs.",
    bound=bounds.minibatch_step,
    subject=(with_replacement, _mean),
    mutants={
        "rows drawn without replacement": (without_replacement, _mean),
        "gradients summed": (with_replacement, _sum),
        "divided by B - 1": (with_replacement, _one_short),
    },
)
def _(context):
    return _measure(context, None)


@claim(
    "minibatch.step.without-replacement",
    title="One mini-batch step, rows without replacement",
    statement="As minibatch.step with the last term eta^2 (1 + ((B-1)/(n-1)) (n/B_D - 1)) M^2/B.",
    latex=r"\mathbb{E}\|x_+-x^*\|^2=\|x-x^*\|^2-2\eta\langle\nabla f,x-x^*\rangle+\tfrac{\eta^2}{B}"
    r"\Big(1+\tfrac{B-1}{n-1}(\tfrac n{B_D}-1)\Big)M^2",
    source=f"derived; the variant of {YIN}, Lemma 1",
    bibtex="yin2018gradient",
    kind="identity",
    tight_where="everywhere; for B = n the noise is gone",
    proof="Two different rows have the mean product (n ||grad f||^2 - M^2)/(n - 1).",
    bound=bounds.minibatch_step,
    subject=(without_replacement, _mean),
    mutants={
        "rows drawn with replacement": (with_replacement, _mean),
        "gradients summed": (without_replacement, _sum),
    },
)
def _(context):
    return _measure(context, 4)
