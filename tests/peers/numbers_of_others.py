"""Numbers that others published, each with its source, beside what this package gives: rows of docs/performance.md.

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
PAGE = HERE.parents[1] / "docs" / "performance.md"
START, END = "<!-- the table -->", "<!-- end of the table -->"

EQUAL, OTHER, THEIRS, OURS = "equal", "another definition", "theirs is wrong", "ours is wrong"

SOURCES = {
    "rates": ("error-feedback-tight", "github.com/DanielBergThomsen/error-feedback-tight, 8772016, MIT"),
    "PEPit": ("PEPit", "github.com/PerformanceEstimation/PEPit, examples, 27dbd73, MIT"),
    "ByzFL": ("ByzFL", "github.com/LPD-EPFL/byzfl, tests/unit_test_aggregators.py and unit_test_attacks.py, MIT"),
    "dp": ("dp-accounting", "dp-accounting 0.6.0, *_test.py, Apache 2.0"),
    "Opacus": ("Opacus", "opacus 1.6.0, tests/accountants_test.py, Apache 2.0"),
    "Flower": ("Flower", "github.com/adap/flower, framework/py/flwr/server/strategy/*_test.py, Apache 2.0"),
}


class Check(NamedTuple):
    """A number of others and ours.

    Attributes
    ----------
    what : str
        What is computed, in a few words.
    whose : str
        A key of `SOURCES`.
    theirs : float or tuple of float
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
    theirs: float | tuple[float, ...]
    ours: Callable[[], Any]
    within: float = 0.0
    verdict: str = EQUAL
    why: str = ""

    def apart(self, ours: Any) -> float:
        """The largest difference, with its sign."""
        differences = np.ravel(np.asarray(ours) - self.theirs)
        return float(differences[np.argmax(np.abs(differences))])


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
            found.append(Check(f"{name}, κ = {1 / float(mu):g}", "rates", values[AT], ours, within))
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


def _mean(rule: Any, rows: Any = ROWS) -> Callable[[], np.ndarray]:
    return lambda: th.robust_mean(rule, rows)


def _first(rule: Any, rows: Any = ROWS) -> Callable[[], float]:
    return lambda: th.robust_mean(rule, rows)[0]


def _forged(attack: Any) -> Callable[[], np.ndarray]:
    """What a fourth worker sends in place of the last row, while the others send the rows."""

    def forged() -> np.ndarray:
        sent, hostile = np.vstack([ROWS, ROWS[-1]]), np.arange(4) == 3
        attack.forge(sent, np.ones(4), hostile)
        return sent[3]

    return forged


BYZFL = [
    Check("median", "ByzFL", (4.0, 5.0, 6.0), _mean(th.Median())),
    Check("trimmed mean, f = 1", "ByzFL", (4.0, 5.0, 6.0), _mean(th.TrimmedMean(1))),
    Check("centred clipping, radius 100, one step", "ByzFL", (4.0, 5.0, 6.0), _mean(th.CenteredClipping(100.0)), 1e-12),
    Check("NNM, f = 1, then the median", "ByzFL", (2.5, 3.5, 4.5), _mean(th.NNM(1, th.Median()))),
    Check(
        "NNM, f = 1, then the mean, entry 1",
        "ByzFL",
        (2.5 + 2.5 + 5.5) / 3,
        _first(th.NNM(1, th.TrimmedMean(0))),
        1e-12,
    ),
    Check(
        "geometric median",
        "ByzFL",
        (3.78788764, 4.78788764, 5.78788764),
        _mean(th.GeometricMedian()),
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
    Check("Krum with one neighbour", "ByzFL", (1.0, 2.0, 3.0), _mean(th.Krum(0))),
    Check("multi-Krum with one neighbour, two kept", "ByzFL", (2.5, 3.5, 4.5), _mean(th.MultiKrum(0, 2))),
    Check("inner product manipulation, ε = 2", "ByzFL", (-8.0, -10.0, -12.0), _forged(th.InnerProduct(2.0))),
    Check("mimic of the first worker", "ByzFL", (1.0, 2.0, 3.0), _forged(th.Mimic(0))),
    Check(
        "sign flip",
        "ByzFL",
        (-4.0, -5.0, -6.0),
        _forged(th.SignFlip()),
        0.0,
        OTHER,
        "theirs negates the mean of the honest messages, ours what the hostile worker would have sent: 7, 8, 9",
    ),
    Check(
        "a little is enough, z = 1.5",
        "ByzFL",
        (8.5, 9.5, 10.5),
        _forged(th.ALIE(1.5)),
        1e-9,
        OTHER,
        "theirs adds z standard deviations, with n - 1 in the variance; ours subtracts them, with n",
    ),
]

# --- privacy ----------------------------------------------------------------------------------------------------------


def _sampled(*args: float) -> Callable[[], float]:
    from theory.measure.privacy import sampled_privacy

    return lambda: sampled_privacy(*args)


def _removed(epsilon: float, noise: float, share: float) -> float:
    """One message of a worker who takes part at random, and is removed: by the theorem on Poisson sampling."""
    return share * bounds.gaussian_privacy(math.log1p(math.expm1(epsilon) / share), noise)


def _added(epsilon: float, noise: float, share: float) -> float:
    """The same for a worker who is added."""
    weight = 1.0 - math.exp(epsilon) * (1.0 - share)
    if weight <= 0.0:
        return 0.0
    return weight * bounds.gaussian_privacy(epsilon + math.log(share / weight), noise)


# sigma, sensitivity, epsilon, delta of GaussianPrivacyLoss.get_delta_for_epsilon, where all workers take part; in the
# last three rows data are replaced, which moves a message twice as far
GAUSSIAN = [
    (1.0, 1.0, 0.0, 0.38292492),
    (1.0, 1.0, 1.0, 0.12693674),
    (1.0, 1.0, 2.0, 0.020923636),
    (1.0, 3.0, 1.0, 0.78760074),
    (1.0, 2.0, 0.0, 0.68268949),
    (1.0, 2.0, 1.0, 0.50986166),
    (1.0, 2.0, 2.0, 0.331897999),
]
# the same where a worker takes part with a probability: sigma, sensitivity, probability, epsilon, delta
REMOVED = [
    (1.0, 1.0, 0.8, 1.0, 0.0816951786585355),
    (1.0, 3.0, 0.7, 1.0, 0.5356298793262404),
    (2.0, 6.0, 0.4, 1.0, 0.2888308005139968),
    (1.0, 1.0, 0.3, 2.0, 0.0003341102928869332),
    (1.0, 1.0, 0.2, 0.0, 0.076584985),
    (1.0, 1.0, 0.2, 0.1, 0.051816131),
    (1.0, 1.0, 0.2, 0.2, 0.035738492),
    (1.0, 1.0, 0.2, 0.5, 0.012494629),
    (1.0, 1.0, 0.2, 1.0, 0.00229682),
    (0.67379294682, 1.0, 0.01, 1.0, 1e-5),  # of accountant_test.py, which asks for sigma
]
ADDED = [
    (1.0, 1.0, 0.8, 1.0, 0.0231362104090899),
    (1.0, 3.0, 0.7, 1.0, 0.1195051215523554),
    (2.0, 6.0, 0.4, 1.0, 0.0),
    (1.0, 1.0, 0.2, 0.1, 0.02337934),
    (1.0, 1.0, 0.2, 0.2, 0.00020196),
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
    *(
        Check(
            f"δ, share {q:g}, σ = {s / size:.4g}, ε = {e:g}, a worker is {what}",
            "dp",
            delta,
            lambda s=s, size=size, q=q, e=e, law=law: law(e, s / size, q),
            5e-9,
        )
        for what, law, cases in (("removed", _removed, REMOVED), ("added", _added, ADDED))
        for s, size, q, e, delta in cases
    ),
    Check(
        "δ of 25 messages, σ = 10/6, ε = 1",
        "dp",
        0.78760074,
        lambda: bounds.gaussian_privacy(1.0, 10.0 / 6.0, 25),
        5e-9,
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


def _fed_avg() -> float:
    """A round of clients that end at 1, 2 and 2, and hold two rows, one and one."""
    problem = th.ridge((np.ones((4, 1)), np.array([1.0, 1.0, 2.0, 2.0])), l2=0.0)
    method = th.FedAvg(step=th.Constant(1.0), local_steps=1, shards="contiguous")
    return float(th.run(method, problem, workers=3, steps=1, x0=np.zeros(1)).x[0])


FLOWER = [
    Check("FedAdagrad, the first round", "Flower", 0.15, _fed_opt, 1e-8),
    Check("mean of 2, 1, 2, weighted by 1, 2, 1 examples", "Flower", 1.5, _fed_avg),
    Check("median of 0.2, 1, 0.5", "Flower", 0.5, _first(th.Median(), [[0.2], [1.0], [0.5]])),
    Check("Krum on 0.2, 0.7, 1 with one neighbour", "Flower", 0.7, _first(th.Krum(0), [[0.2], [0.7], [1.0]])),
    Check(
        "multi-Krum on 0.2, 0.5, 1 with one neighbour, two kept",
        "Flower",
        0.35,
        _first(th.MultiKrum(0, 2), [[0.2], [0.5], [1.0]]),
        1e-8,
    ),
]

# --- the page ---------------------------------------------------------------------------------------------------------

RATE_CHECKS = rate_checks()
ALWAYS = [*RATE_CHECKS, *PEPIT, *BYZFL, *PRIVACY, *FLOWER]  # SAMPLED needs the extra `privacy`
TABLES = {
    "Rates of compressed gradient methods with the best step; the compressor has the relative error ε = 0.25623, and "
    "κ = L/μ": RATE_CHECKS,
    "Worst cases of first-order methods after n steps; L = 1 and μ = 0.1, or μ = 0.2 under the Polyak-Łojasiewicz (PL) "
    "inequality, where nothing else is said": [*PEPIT, *SOLVED],
    "Robust rules and attacks on the messages (1, 2, 3), (4, 5, 6), (7, 8, 9), where no others are named": BYZFL,
    "Differential privacy: the δ that belongs to ε, for messages of length 1 with Gaussian noise of deviation σ; share "
    "is the probability to take part in a round": [*PRIVACY, *SAMPLED],
    "Federated averaging and robust rules in it": FLOWER,
}
EVERY = [check for checks in TABLES.values() for check in checks]


def printed(value: Any) -> str:
    """A number, or the entries of a vector."""
    return ", ".join(f"{entry:.8g}" for entry in np.ravel(value))


def table(checks: list[Check]) -> str:
    """A table of the page, as Markdown."""
    lines = ["| what | whose | theirs | ours | difference | verdict |", "|---|---|---:|---:|---:|---|"]
    for check in checks:
        ours = check.ours()
        said = f"{check.verdict}: {check.why}" if check.why else check.verdict
        apart = check.apart(ours)
        difference = f"{apart:.0e}" if apart else "0"
        lines.append(
            f"| {check.what} | {SOURCES[check.whose][0]} | {printed(check.theirs)} | {printed(ours)} | {difference} "
            f"| {said} |"
        )
    return "\n".join(lines)


def tables() -> str:
    """All tables of the page."""
    return "\n\n".join(
        f"**Table {number}.** {caption}.\n\n{table(checks)}"
        for number, (caption, checks) in enumerate(TABLES.items(), 1)
    )


def page(text: str) -> str:
    """The page with its table made again."""
    before, rest = text.split(START)
    return f"{before}{START}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len(EVERY)} rows\n")
