"""Claims about QSGD: unbiased, its variance, its non-zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ... import bounds
from ...compressors.qsgd import QSGD
from ..laws import Input, compressor_law, equal_magnitudes, gaussian
from ..mutants.shared import DOWN, INVERTED, NEAREST, WrongQSGD

SOURCE = "Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NIPS 2017"
INVERSE: dict[str, Callable] = {"rounding with the probability inverted": partial(WrongQSGD, fault=INVERTED)}
ROUNDED = INVERSE | {"rounding to the nearest level": partial(WrongQSGD, fault=NEAREST)}
MUTANTS = ROUNDED | {"levels counted with zero, so one too many": lambda s, norm=2.0: QSGD(s + 1, norm=norm)}
MAXIMUM: dict[str, Callable] = {"the largest entry as the norm": partial(QSGD, norm=math.inf)}
VECTORS = [
    (gaussian(1000), {"s": 4, "norm": 2.0}),
    (gaussian(1000, 3), {"s": 16, "norm": 2.0}),
    (gaussian(1000), {"s": 3, "norm": math.inf}),
]


def half_odd(d: int, s: int) -> Input:
    """Coordinates at odd multiples of 1/(2 s), where the variance of QSGD is largest if 2 s > sqrt(d)."""
    return Input(f"odd multiples of 1/(2s), d={d}", lambda context: np.asarray(bounds.qsgd_variance_attained(d, s)))


def spike_beside_equals(d: int, s: int) -> Input:
    """One coordinate 1 and the others 1/(2 s (1 + omega)): the worst vector of QSGD with the maximum norm."""
    small = 1.0 / (2.0 * s * (1.0 + bounds.qsgd_inf_variance(d, s)))
    return Input(f"1 beside equal ones, d={d}", lambda context: np.r_[1.0, np.full(d - 1, small)])


compressor_law(
    "qsgd.unbiased",
    QSGD,
    at=[(gaussian(64), {"s": s, "norm": norm}) for s, norm in ((4, 2.0), (1, 2.0), (3, math.inf))],
    quantity="bias",
    mutants=ROUNDED | {"rounding down": partial(WrongQSGD, fault=DOWN)},
    title="QSGD is unbiased",
    statement="Random rounding to s levels of a norm keeps the mean: E Q(v) = v.",
    latex=r"\mathbb{E}\, Q_s(v) = v",
    source=f"{SOURCE}, Lemma 3.1 (i)",
    bibtex="alistarh2017qsgd",
    kind="equality",
    proof="Coordinate i is rounded up with probability frac(u_i), so E zeta_i = u_i.",
)

compressor_law(
    "qsgd.variance",
    QSGD,
    at=[
        (equal_magnitudes(1024), {"s": 4}),
        (half_odd(1000, 20), {"s": 20}),
        (gaussian(1000), {"s": 4}, "upper"),
        (gaussian(1000, 3), {"s": 4}, "upper"),
    ],
    formula=lambda v, s: bounds.qsgd_variance(v.size, s),
    bound=bounds.qsgd_variance,
    mutants=MUTANTS | MAXIMUM,
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = sqrt(d)/s - 1 if s <= sqrt(d)/2 and d/(4 s^2) otherwise.",
    latex=r"\sup_v \frac{\mathbb{E}\|Q_s(v)-v\|^2}{\|v\|^2} = \frac{\sqrt d}{s}-1 \ (2s\le\sqrt d),\quad"
    r" \frac{d}{4s^2}\ (2s\ge\sqrt d)",
    source=f"derived; sharpens {SOURCE}, Lemma 3.1 (ii)",
    bibtex="alistarh2017qsgd",
    tight_where="equal magnitudes (2 s <= sqrt(d)); coordinates at odd multiples of ||v||/(2s) otherwise, which exist"
    " if 8 divides 4 s^2 - d",
    proof="The variance is (||v||^2/s^2) sum f_i (1 - f_i), f_i = frac(u_i), and sum u_i^2 = s^2. In x = u^2 the"
    " concave envelope of f (1 - f) is sqrt(x) - x up to x = 1/4, then 1/4; Jensen's inequality puts all x_i at s^2/d.",
)

compressor_law(
    "qsgd.variance.exact",
    QSGD,
    at=VECTORS,
    formula=lambda v, s, norm: bounds.qsgd_variance_exact(v, s, norm) / float(v @ v),
    bound=bounds.qsgd_variance_exact,
    mutants=MUTANTS,
    latex=r"\mathbb{E}\|Q_s(v)-v\|^2 = \frac{\|v\|^2}{s^2}\sum_i f_i(1-f_i)",
    kind="equality",
    tight_where="everywhere",
    proof="zeta_i is a Bernoulli variable of variance f_i (1 - f_i); coordinates are rounded independently.",
)

compressor_law(
    "qsgd.variance.paper",
    QSGD,
    at=[(equal_magnitudes(1024), {"s": s}, "upper") for s in (1, 4, 32)],
    formula=lambda v, s: bounds.qsgd_variance(v.size, s, form="paper"),
    bound=partial(bounds.qsgd_variance, form="paper"),
    mutants=INVERSE,
    see=("qsgd.variance",),
    title="Variance of QSGD, as printed",
    statement="E||Q(v) - v||^2 <= min(d/s^2, sqrt(d)/s) ||v||^2.",
    latex=r"\mathbb{E}\|Q_s(v)-v\|^2 \le \min(d/s^2, \sqrt d/s)\,\|v\|^2",
    source=f"{SOURCE}, Lemma 3.1 (ii)",
    bibtex="alistarh2017qsgd",
    kind="upper",
    tight_where="nowhere; nearest for s = 1 and d to infinity (by the factor 1 - 1/sqrt(d)), 4 times too large for"
    " s >= sqrt(d)",
    proof="f (1 - f) <= min(1, u), and sum u_i <= s sqrt(d).",
)

compressor_law(
    "qsgd.inf.variance",
    partial(QSGD, norm=math.inf),
    at=[
        (spike_beside_equals(1000, 1), {"s": 1}),
        (spike_beside_equals(1000, 7), {"s": 7}),
        (gaussian(1000), {"s": 7}, "upper"),
    ],
    formula=lambda v, s: bounds.qsgd_inf_variance(v.size, s),
    bound=bounds.qsgd_inf_variance,
    mutants={name: partial(wrong, norm=math.inf) for name, wrong in MUTANTS.items()} | {"the 2-norm": QSGD},
    statement="E||Q(v) - v||^2 <= omega ||v||^2 with omega = (sqrt(1 + (d-1)/s^2) - 1)/2.",
    latex=r"\sup_v \frac{\mathbb{E}\|Q^\infty_s(v)-v\|^2}{\|v\|^2} = \tfrac12\Big(\sqrt{1+(d-1)/s^2}-1\Big)",
    tight_where="one coordinate 1, the others 1/(2 s (1 + omega))",
    proof="Maximise sum f_i (1 - f_i)/sum u_i^2 with one u_i = s: at the optimal ratio omega each other coordinate"
    " maximises f (1 - f) - omega u^2, at u = 1/(2 (1 + omega)).",
)

compressor_law(
    "qsgd.nonzeros",
    QSGD,
    at=[(equal_magnitudes(1024), {"s": 4}), (gaussian(1024), {"s": 4}, "upper")],
    quantity="nonzeros",
    formula=lambda v, s: bounds.qsgd_nonzeros(v.size, s),
    bound=bounds.qsgd_nonzeros,
    mutants=MUTANTS,
    title="Non-zeros of QSGD",
    statement="E||Q(v)||_0 <= min(d, s sqrt(d)).",
    latex=r"\sup_v \mathbb{E}\|Q_s(v)\|_0 = \min(d, s\sqrt d)",
    source=f"derived; sharpens {SOURCE}, Lemma 3.1 (iii)",
    bibtex="alistarh2017qsgd",
    tight_where="equal magnitudes",
    proof="P(zeta_i > 0) = min(1, u_i), and sum u_i = s ||v||_1/||v||_2 <= s sqrt(d).",
)

compressor_law(
    "qsgd.nonzeros.exact",
    QSGD,
    at=VECTORS,
    quantity="nonzeros",
    formula=lambda v, s, norm: bounds.qsgd_nonzeros_exact(v, s, norm),
    bound=bounds.qsgd_nonzeros_exact,
    mutants=MUTANTS,
    latex=r"\mathbb{E}\|Q_s(v)\|_0 = \sum_i \min(1, s|v_i|/\|v\|)",
    kind="equality",
    tight_where="everywhere",
    proof="A coordinate is zero only if u_i < 1 and it is rounded down.",
)

compressor_law(
    "qsgd.nonzeros.paper",
    QSGD,
    at=[(equal_magnitudes(d), {"s": s}, "upper") for d, s in ((1024, 4), (1024, 1), (4096, 4))],
    quantity="nonzeros",
    formula=lambda v, s: bounds.qsgd_nonzeros(v.size, s, form="paper"),
    bound=partial(bounds.qsgd_nonzeros, form="paper"),
    quick=4_000,
    mutants=INVERSE | MAXIMUM,
    see=("qsgd.nonzeros",),
    title="Non-zeros of QSGD, as printed in Lemma 3.1",
    statement="E||Q(v)||_0 <= s (s + sqrt(d)).",
    latex=r"\mathbb{E}\|Q_s(v)\|_0 \le s(s+\sqrt d)",
    source=f"{SOURCE}, Lemma 3.1 (iii)",
    bibtex="alistarh2017qsgd",
    kind="upper",
    tight_where="nowhere; the term s^2 is not needed",
    proof="At most s^2 coordinates have u_i >= 1; the others contribute sum u_i <= s sqrt(d).",
)
