"""What privacy costs: accuracy against epsilon, with clipped and noisy messages, quantized or not.

Each client is one worker, and hides whether it took part at all.  The noise is the least with which all messages of a
run are (epsilon, delta)-private, by the exact law.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from ... import bounds
from ...cluster import run
from ...compressors import QSGD, Identity, Private, RandK
from ...core import require, setting
from ...methods import DCGD, split
from ...methods.schedules import Constant
from ...plots.appearance import number
from ...problems import accuracy, lipschitz, logistic
from ...reporting.progress import track
from ..shared.conef_training import most_frequent
from ..shared.curves import canvas, looks
from ..shared.problems import rcv1, real_or_twin
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import Statement, below, counted

L2 = 1e-3
HELD_OUT = 0.25  # of the rows, for the accuracy
DELTA = 1e-5
STEPS = (0.25, 1.0, 4.0, 16.0)  # over L: the best for each epsilon, by a seed of its own
MARGIN = 0.02  # of the accuracy: what counts as a loss
MESSAGES: dict[str, Any] = {
    "float32": lambda d: Identity(),
    "QSGD 4 bits": lambda d: QSGD(7),
    "rand-10 %": lambda d: RandK(max(1, d // 10), unbiased=True),
}
FIRST = "float32"


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    rounds : tuple of int
        Of a run: each spends privacy.
    rows, features : int
        Documents, and the most frequent words.
    clients : int
        Among whom three quarters of the rows are cut.
    epsilons : tuple of float
    clip : float
        C, the longest message.
    seeds : int
    """

    rounds: tuple = (10, 40)
    rows: int = 4096
    features: int = 100
    clients: int = 512
    epsilons: tuple = (1.0, 3.0, 10.0, 30.0)
    clip: float = 0.1
    seeds: int = 10

    def domain(self):
        """Reject values outside the domain."""
        for name in ("features", "seeds", "clients"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        require(self.rows * (1.0 - HELD_OUT) >= self.clients, "rows", self.rows, "enough for all clients")
        for name in ("rounds", "epsilons"):
            given = getattr(self, name)
            require(bool(given) and all(v > 0 for v in given), name, given, "numbers above 0")
        require(0.0 < self.clip < math.inf, "clip", self.clip, "a finite number above 0")


class Outcome(NamedTuple):
    """One kind of messages with its best step: accuracy on held-out rows, seed by seed; epsilon is inf without noise.

    ``noise`` is that of a message, in units of its longest length.
    """

    messages: str
    rounds: int
    epsilon: float
    noise: float
    step: float
    accuracy: list
    bits: float


def least_noise(epsilon: float, rounds: int) -> float:
    """The least noise with which so many messages are private."""
    if math.isinf(epsilon):
        return 0.0
    unit = math.sqrt(rounds)
    return float(brentq(lambda noise: bounds.gaussian_privacy(epsilon, noise, rounds) - DELTA, 0.1 * unit, 20.0 * unit))


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """All kinds of messages at every epsilon."""
    if quick:
        options = options._replace(rounds=(10,), rows=1024, features=40, clients=64, epsilons=(3.0, 30.0), seeds=2)
    known, unseen = most_frequent(rcv1(real_or_twin(data), options.rows), options.features).split(
        1.0 - HELD_OUT, seed=0
    )
    problem, test = logistic(known, L2), logistic(unseen, L2)
    shards = split(known, np.random.default_rng(0).permutation(known.n), workers=options.clients)
    whole: Any = {"shards": shards, "batch": math.ceil(known.n / options.clients), "sampling": "shuffle"}

    def trial(messages: str, rounds: int, noise: float, times: float, seed: int) -> tuple[float, float]:
        compressor = Private(MESSAGES[messages](problem.d), options.clip, noise)
        method = DCGD(compressor, Constant(times / lipschitz(problem)), **whole)
        found = run(method, problem, workers=options.clients, steps=rounds, seed=seed)
        fine = np.isfinite(found.last).all()
        return (accuracy(test, found.last) if fine else 0.0), found.history["bits_up"][-1]

    rows = []
    with ThreadPoolExecutor(2) as pool:  # kernels release the GIL
        cases = list(product(MESSAGES, options.rounds, (*options.epsilons, math.inf)))
        for messages, rounds, epsilon in track(cases, "privacy"):
            noise = least_noise(epsilon, rounds)
            tried = [trial(messages, rounds, noise, times, seed + options.seeds)[0] for times in STEPS]
            times = STEPS[int(np.argmax(tried))]
            found = list(pool.map(partial(trial, messages, rounds, noise, times), range(seed, seed + options.seeds)))
            values = [round(float(a), 6) for a, _ in found]
            rows.append(Outcome(messages, rounds, epsilon, noise, times, values, float(np.mean([b for _, b in found]))))
    return {"rows": rows, "source": known.name.split(" (")[0], "options": options}


def report(rows: list, source: str, options: Any) -> Study:
    """The study of these runs."""
    rows, options = [Outcome(*row) for row in rows], Options(*options)
    by = {(row.messages, row.rounds, row.epsilon): 1.0 - np.asarray(row.accuracy) for row in rows}
    rounds, levels = (sorted({getattr(row, name) for row in rows}) for name in ("rounds", "epsilon"))
    private = [epsilon for epsilon in levels if math.isfinite(epsilon)]

    table = [
        ("costs", f"Privacy with epsilon = {private[0]:g} costs more than {MARGIN:g} of the accuracy.",
         [below(by[m, T, math.inf], by[m, T, private[0]], MARGIN) for m in MESSAGES for T in rounds]),
        ("larger", f"With epsilon = {private[-1]:g} it costs less than with {private[0]:g}.",
         [below(by[m, T, private[-1]], by[m, T, private[0]]) for m in MESSAGES for T in rounds]),
        ("longer", f"At epsilon = {private[0]:g} more rounds give less accuracy.",
         [below(by[m, rounds[0], private[0]], by[m, rounds[-1], private[0]]) for m in MESSAGES if len(rounds) > 1]),
    ]  # fmt: skip
    for id, kind in (("quantized", "QSGD 4 bits"), ("sparse", "rand-10 %")):
        found = [below(by[kind, T, e], by[FIRST, T, e] + MARGIN) for T in rounds for e in levels]
        table.append(
            (id, f"Private messages lose at most {MARGIN:g} of the accuracy if {kind} then codes them.", found)
        )
    said = [Statement(id, text, found, counted(found), OURS) for id, text, found in table]
    cells = [
        (r.messages, str(r.rounds), "no noise" if math.isinf(r.epsilon) else f"{r.epsilon:g}", number(r.noise),
         f"{r.step:g}", f"{np.mean(r.accuracy):.3f} ({min(r.accuracy):.3f} to {max(r.accuracy):.3f})", f"{r.bits:,.0f}")
        for r in rows
    ]  # fmt: skip
    head = ("messages", "rounds", "epsilon", "noise", "step times L", "accuracy (range)", "bits of a client")
    setting = (
        f"Logistic regression (l2 = {L2:g}) on the {options.features} most frequent words of {options.rows:,} documents"
        f" of {source}, three quarters of them among {options.clients} clients, the others for the accuracy. Every"
        f" client sends in each round the gradient of its rows, clipped to {options.clip:g}, with normal noise in each"
        f" entry; its deviation, in units of this norm, is the least for which the whole run is (epsilon, {DELTA:g})-"
        f"private with respect to clients; then it is coded. The step is the best of {list(STEPS)}/L by another seed"
        f" (which uses the accuracy, and is not accounted for); {options.seeds} seeds."
    )

    def draw() -> Any:
        with canvas(1, len(rounds), 2.6) as (figure, axes):
            for place, T in zip(axes[0], rounds, strict=True):
                for k, messages in enumerate(MESSAGES):
                    mine = [r for r in rows if (r.messages, r.rounds) == (messages, T)]
                    noisy = np.array([r.accuracy for r in mine if math.isfinite(r.epsilon)])
                    mean = noisy.mean(axis=1)
                    error = mean - noisy.min(axis=1), noisy.max(axis=1) - mean
                    bar = place.errorbar(
                        private, mean, error, label=messages, zorder=3 + k, **looks(MESSAGES)[messages]
                    )
                    (calm,) = (np.mean(r.accuracy) for r in mine if math.isinf(r.epsilon))
                    place.axhline(calm, color=bar[0].get_color(), linestyle=":", linewidth=0.9)
                place.set(xscale="log", xlabel=rf"$\epsilon$, with $\delta$ = {DELTA:g}", title=f"{T} rounds")
                place.set_xticks(private, [f"{e:g}" for e in private])
                place.minorticks_off()
            axes[0, 0].set_ylabel("accuracy (dotted: no noise)")
            axes[0, -1].legend()
        return figure

    alt = "Accuracy against epsilon for three kinds of messages, with the accuracy without noise as dotted lines"
    return Study(
        "privacy", "What privacy costs", setting, {"rows": rows}, [Table("Accuracy", head, cells)], said, draw, alt
    )
