"""Numbers that others published, each with its source, beside what this package gives: rows of docs/outside-checks.md.

``python tests/peers/numbers_of_others.py`` writes the table of that page again.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import theory as th
from theory import bounds
from theory.worst import CASES, solution_of

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "outside-checks.md"
START, END = "<!-- the table -->", "<!-- end of the table -->"

EQUAL, OTHER, THEIRS, OURS = "equal", "another definition", "theirs is wrong", "ours is wrong"

SOURCES = {
    "rates": ("error-feedback-tight", "github.com/DanielBergThomsen/error-feedback-tight, 8772016, MIT"),
    "PEPit": ("PEPit", "github.com/PerformanceEstimation/PEPit, examples, 27dbd73, MIT"),
    "ByzFL": ("ByzFL", "github.com/LPD-EPFL/byzfl, tests/unit_test_aggregators.py, 69bd1ac, MIT"),
    "dp": ("dp-accounting", "dp-accounting 0.6.0, *_test.py, Apache 2.0"),
    "Opacus": ("Opacus", "opacus 1.6.0, tests/accountants_test.py, Apache 2.0"),
    "Flower": ("Flower", "github.com/adap/flower, framework/py/flwr/server/strategy/fedadagrad_test.py, Apache 2.0"),
}


class Check(NamedTuple):
    """A number of others and ours.

    Attributes
    ----------
    what : str
        What is computed, in a few words.
    whose : str
        A key of `SOURCES`.
    theirs : float
        As printed.
    ours : callable
        Computes ours.
    within : float
        The largest difference that their digits allow.
    verdict : str
        `EQUAL`, or who is right where they differ.
    why : str
        What explains a difference.
    """

    what: str
    whose: str
    theirs: float
    ours: Callable[[], Any]
    within: float = 0.0
    verdict: str = EQUAL
    why: str = ""


# --- exact rates of error feedback ------------------------------------------------------------------------------------


def exact_rates() -> dict[str, Any]:
    """Rates by performance estimation and best steps on a grid, of the authors' data files."""
    return json.loads((HERE / "exact_rates.json").read_text(encoding="utf-8"))


EPSILON = np.linspace(0.01, 0.99, 200)
RATES = {
    "compressed gradient descent": ("rhos_cgd_optimal", bounds.compressed_descent_rate, 1e-6),
    "error feedback": ("rhos_ef_optimal", bounds.exact_feedback_rate, 1e-6),
    "EF21": ("rhos_ef21_optimal", bounds.exact_feedback_rate, 5e-5),  # their solver is less accurate near 0.99
}

AT = int(np.argmin(np.abs(EPSILON - 0.2562311557788945)))


def rate_checks() -> list[Check]:
    """At one epsilon for each method and mu; a test compares all 1,800."""
    found = []
    for name, (key, rate, within) in RATES.items():
        for mu, values in exact_rates()["rates"][key].items():
            ours = lambda rate=rate, mu=mu: rate(1.0 - EPSILON[AT], 1.0 / float(mu))  # noqa: E731
            found.append(
                Check(f"rate of {name}, ε = 0.25623, κ = {1 / float(mu):g}", "rates", values[AT], ours, within)
            )
    return found


# --- worst cases ------------------------------------------------------------------------------------------------------

BEST = 2.0 / 1.1  # 2/(L + mu)
NEAR = {"mu": 0.1, "lipschitz": 1.0, "gap": 1.0}


def _descent(steps: int) -> Callable[[], float]:
    return lambda: bounds.gd_strongly_convex(steps, step=BEST, **NEAR)


def _in_place(steps: int) -> Callable[[], float]:
    return lambda: bounds.sgd_constant_step_exact(steps, mu=0.1, step=1.0, variance=0.0, distance=1.0)


def _lojasiewicz() -> float:
    return bounds.pl_gd(1, mu=0.2, lipschitz=1.0, step=1.0, gap=1.0, form="sharp")


PEPIT = [
    Check(
        "inexact gradient descent, n = 2",
        "PEPit",
        0.5189167,
        lambda: bounds.compressed_descent_rate(0.99, 10.0) ** 2,
        1e-7,
    ),
    Check(
        "inexact gradient, low dimension, n = 6",
        "PEPit",
        0.139731,
        lambda: bounds.compressed_descent_rate(0.99, 10.0) ** 6,
        1e-6,
    ),
    Check(
        "inexact gradient, exact line search, n = 2",
        "PEPit",
        0.518917,
        lambda: bounds.compressed_descent_rate(0.99, 10.0) ** 2,
        1e-6,
    ),
    Check("Polyak step in function value", "PEPit", 0.669421, _descent(1), 1e-6),
    Check("gradient descent, exact line search, n = 2", "PEPit", 0.448125, _descent(2), 1e-6),
    Check("gradient descent, n = 6", "PEPit", (0.9 / 1.1) ** 12, _descent(6), 1e-12),
    Check("proximal gradient, n = 2", "PEPit", 0.6561, _in_place(2), 1e-9),
    Check("contraction of gradient descent", "PEPit", 0.81, _in_place(1), 1e-9),
    Check("PL, cheap conditions", "PEPit", 0.727273, _lojasiewicz, 1e-6),
    Check("PL, expensive conditions", "PEPit", 0.683267, lambda: solution_of(CASES["lojasiewicz_step.1"]).value, 1e-6),
]


def _solved(name: str, *args: Any, **options: Any) -> Callable[[], float]:
    """By the program that checks `th.worst_case`."""
    import programs

    return lambda: float(getattr(programs, name)(*args, **options))


SOLVED = [  # "ours" is the independent program of the tests, which needs the extra `pepit`
    Check(
        "gradient descent, convex, L = 3, n = 4",
        "PEPit",
        0.166667,
        lambda: _solved("gradient_descent", 4, 0.0, 1.0, "per distance")() * 3,
        1e-6,
    ),
    Check("proximal point, step 3, n = 4", "PEPit", 0.0208333, _solved("proximal_point", 4, 0.0, 3.0), 1e-7),
    Check(
        "heavy ball, n = 2", "PEPit", 0.753493, _solved("heavy_ball", 2, 0.1, 0.5, math.sqrt(0.95 * 0.5), "gap"), 1e-6
    ),
    Check("gradient descent, not convex, n = 5", "PEPit", 4.0 / 15.0, _solved("smallest_gradient", 5, 1.0), 1e-6),
    Check(
        "SGD, γ = 0.7, v = 1, R = 2, n = 5",
        "PEPit",
        4.183,
        _solved("one_step_of_sgd", 0.1, 0.7, noise=1.0, distance=2.0, functions=5),
        1e-5,
    ),
    Check(
        "SGD, overparametrised, γ = 2.3, n = 5",
        "PEPit",
        1.69,
        _solved("one_step_of_sgd", 0.1, 2.3, noise=0.0, distance=1.0, functions=5),
        1e-5,
    ),
]

# --- robust rules -----------------------------------------------------------------------------------------------------

ROWS = np.arange(1.0, 10.0).reshape(3, 3)
LINE = [[1.0], [1.5], [2.5], [4.0], [99.0]]


def _first(rule: Any, rows: Any = ROWS) -> Callable[[], float]:
    return lambda: th.robust_mean(rule, rows)[0]


BYZFL = [
    *(
        Check(f"median, entry {i + 1}", "ByzFL", 4.0 + i, lambda i=i: th.robust_mean(th.Median(), ROWS)[i])
        for i in range(3)
    ),
    *(
        Check(
            f"trimmed mean, f = 1, entry {i + 1}",
            "ByzFL",
            4.0 + i,
            lambda i=i: th.robust_mean(th.TrimmedMean(1), ROWS)[i],
        )
        for i in range(3)
    ),
    Check(
        "NNM, f = 1, then the mean of the rows' first entries",
        "ByzFL",
        (2.5 + 2.5 + 5.5) / 3,
        _first(th.NNM(1, th.TrimmedMean(0))),
        1e-12,
    ),
    Check(
        "geometric median, entry 1",
        "ByzFL",
        3.7878876,
        _first(th.GeometricMedian()),
        1e-6,
        OTHER,
        "theirs stops after three Weiszfeld steps from 0; the sum of distances is smallest at the middle row",
    ),
    Check(
        "Krum on 1, 1.5, 2.5, 4, 99 with f = 1",
        "ByzFL",
        2.5,
        _first(th.Krum(1), LINE),
        0.0,
        OTHER,
        "theirs sums the distances to n - f - 1 others, the rule of Blanchard et al. to n - f - 2",
    ),
]

# --- privacy ----------------------------------------------------------------------------------------------------------


def _sampled(*args: float) -> Callable[[], float]:
    from theory.measure.privacy import sampled_privacy

    return lambda: sampled_privacy(*args)


# sigma, sensitivity, epsilon, delta: of parameters for GaussianPrivacyLoss.get_delta_for_epsilon, all workers take part
GAUSSIAN = [
    (1.0, 1.0, 1.0, 0.12693674),
    (1.0, 3.0, 1.0, 0.78760074),
    (1.0, 1.0, 2.0, 0.02092364),
    (1.0, 1.0, 0.0, 0.38292492),
]
# the same with a probability to take part, for a worker that is removed
POISSON = [
    (1.0, 1.0, 0.8, 1.0, 0.0816951786585355),
    (1.0, 3.0, 0.7, 1.0, 0.5356298793262404),
    (2.0, 6.0, 0.4, 1.0, 0.2888308005139968),
    (1.0, 1.0, 0.3, 2.0, 0.0003341102928869332),
]

PRIVACY = [
    *(
        Check(
            f"δ of one message, σ = {s / size:.4g}, ε = {e:g}",
            "dp",
            delta,
            lambda s=s, size=size, e=e: bounds.gaussian_privacy(e, s / size),
            5e-9,
        )
        for s, size, e, delta in GAUSSIAN
    ),
    Check(
        "δ of three messages, σ = √3, ε = 1",
        "dp",
        0.126936,
        lambda: bounds.gaussian_privacy(1.0, math.sqrt(3.0), 3),
        1e-6,
    ),
    Check(
        "δ at σ = 4.530877117, ε = 1",
        "dp",
        1e-6,
        lambda: bounds.gaussian_privacy(1.0, 4.530877117),
        1e-12,
        OTHER,
        "theirs goes through Rényi divergences, an upper bound; ours is the exact value below it",
    ),
]
SAMPLED = [
    *(
        Check(
            f"δ, share {q:g}, σ = {s / size:.4g}, ε = {e:g}",
            "dp",
            delta,
            lambda s=s, size=size, q=q, e=e: _sampled(e, s / size, 1, q)(),
            1e-6,
        )
        for s, size, q, e, delta in POISSON
    ),
    Check("δ of three rounds, share 0.2, σ = 0.5, ε = 1", "dp", 0.15594, lambda: _sampled(1.0, 0.5, 3, 0.2)(), 1e-3),
    Check(
        "δ of 2,250 rounds, share 0.04, σ = 1.5, ε = 6.777396 (PRV)",
        "Opacus",
        1e-5,
        lambda: _sampled(6.777395712150674, 1.5, 2250, 0.04)(),
        1e-12,
        OTHER,
        "theirs is the upper end of an interval of width 0.02 for ε; ours lies below it",
    ),
    Check(
        "δ of 2,250 rounds, share 0.04, σ = 1.5, ε = 7.329111 (RDP)",
        "Opacus",
        1e-5,
        lambda: _sampled(7.32911117143, 1.5, 2250, 0.04)(),
        1e-12,
        OTHER,
        "theirs goes through Rényi divergences, an upper bound",
    ),
]

# --- federated averaging ----------------------------------------------------------------------------------------------


def _fed_opt() -> float:
    """A round from 0.1 of clients that end at 0.2 and 1: Adam without moments is the first step of Adagrad."""
    problem = th.ridge((np.ones((2, 1)), np.array([0.2, 1.0])), l2=0.0)
    rule = th.Adam(rate=0.1, beta1=0.0, beta2=0.0, eps=0.5)
    method = th.FedAvg(step=th.Constant(1.0), local_steps=1, server=rule, shards="contiguous")
    return float(th.run(method, problem, workers=2, steps=1, x0=np.array([0.1])).x[0])


FLOWER = [Check("FedAdagrad, the first round", "Flower", 0.15, _fed_opt, 1e-8)]

# --- the page ---------------------------------------------------------------------------------------------------------

ALWAYS = [*rate_checks(), *PEPIT, *BYZFL, *PRIVACY, *FLOWER]  # SAMPLED needs the extra `privacy`
EVERY = [*ALWAYS, *SAMPLED, *SOLVED]


def table() -> str:
    """The table of the page, as Markdown."""
    lines = ["| what | whose | theirs | ours | difference | verdict |", "|---|---|---:|---:|---:|---|"]
    for check in EVERY:
        ours = float(check.ours())
        said = f"{check.verdict}: {check.why}" if check.why else check.verdict
        apart = f"{ours - check.theirs:.1e}"
        lines.append(
            f"| {check.what} | {SOURCES[check.whose][0]} | {check.theirs:.8g} | {ours:.8g} | {apart} | {said} |"
        )
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its table made again."""
    before, rest = text.split(START)
    return f"{before}{START}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len(EVERY)} rows\n")
