"""Some workers are hostile: the accuracy that is left, by server, their number, messages and spread of the data.

Each cell has the worst of several attacks, whichever leaves the least accuracy: a server must withstand all of them.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...cluster import run
from ...compressors import QSGD, Identity, TopK
from ...core import require, setting
from ...methods import (
    ALIE,
    NNM,
    Attacked,
    ErrorFeedback,
    GeometricMedian,
    InnerProduct,
    Krum,
    Mean,
    Median,
    NoFeedback,
    OneSided,
    ParallelSGD,
    SignFlip,
    TrimmedMean,
    split,
)
from ...methods.schedules import Constant
from ...methods.theory_steps import LongStepWarning
from ...problems import accuracy, lipschitz, logistic, softmax
from ...reporting.progress import track
from ..shared.conef_training import most_frequent
from ..shared.curves import canvas
from ..shared.problems import digits, rcv1, real_or_twin
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import Compare, Statement, Trial, below, counted

WORKERS = 20
L2 = 1e-3
STEP = 2.0  # over L
HELD_OUT = 0.25  # of the rows, for the accuracy
ALPHA = 0.5  # of the Dirichlet distribution of labels
MARGIN = 0.05  # of the accuracy: what counts as a loss
ATTACKS = {"sign flip": SignFlip(5.0), "ALIE": ALIE(), "inner product": InnerProduct(2.0), "one-sided": OneSided(1.0)}
SERVERS: dict[str, Any] = {
    "mean": lambda f: Mean(),
    "median": lambda f: Median(),
    "trimmed mean": TrimmedMean,
    "geometric median": lambda f: GeometricMedian(),
    "Krum": Krum,
    "mixed trimmed mean": lambda f: NNM(f, TrimmedMean(f)),
}
MESSAGES: dict[str, Any] = {
    "float32": (lambda d: Identity(), NoFeedback()),
    "QSGD 4 bits": (lambda d: QSGD(7), NoFeedback()),
    "top-5 %, memory": (lambda d: TopK(max(1, d // 20)), ErrorFeedback()),
}
SPREADS = ("alike", "differ")


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    steps : int
        Rounds.
    rows, features : int
        Documents, and the most frequent words.
    batch : int
        Rows of each gradient.
    hostile : tuple of int
        How many of the 20 workers are hostile; at most 8, as Krum allows no more.
    seeds : int
    """

    steps: int = 300
    rows: int = 3000
    features: int = 500
    batch: int = 16
    hostile: tuple = (0, 2, 4, 6, 8)
    seeds: int = 6

    def domain(self):
        """Reject values outside the domain."""
        for name in ("steps", "rows", "features", "batch", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        good = all(isinstance(f, int) and 0 <= f <= 8 for f in self.hostile) and 0 in self.hostile
        require(good, "hostile", self.hostile, "integers from 0 to 8, 0 among them")


class Outcome(NamedTuple):
    """One server: the accuracy on held-out rows with the worst attack, seed by seed."""

    task: str
    spread: str
    messages: str
    method: str
    hostile: int
    attack: str
    accuracy: list


def tasks(options: Options, data: str | None) -> list[tuple]:
    """Each with its name, the problem, that of the held-out rows, and shards that are alike and that differ."""
    found = []
    text = most_frequent(rcv1(real_or_twin(data), options.rows), options.features)
    for name, source, make in (("RCV1", text, logistic), ("digits", digits(), softmax)):
        known, unseen = source.split(1.0 - HELD_OUT, seed=0)
        whole, some = make(known, L2), {"workers": WORKERS, "smallest": options.batch}
        alike = split(known, np.random.default_rng(0).permutation(known.n), workers=WORKERS)
        differ = split(known, "label", alpha=ALPHA, seed=0, **some)
        found.append((name, whole, make(unseen, L2), dict(zip(SPREADS, (alike, differ), strict=True))))
    return found


def measure(task: tuple, spread: str, messages: str, options: Options, seed: int, pool: Any) -> list[Outcome]:
    """All servers, numbers of hostile workers and attacks on one task, with one kind of messages."""
    name, problem, unseen, shards = task
    make, feedback = MESSAGES[messages]
    step = Constant(STEP / lipschitz(problem))

    def trial(case: tuple) -> float:
        server, f, attack, seed = case
        rule = SERVERS[server](f)
        hostile = Attacked(rule, ATTACKS[attack], attackers=f) if f else rule
        how: Any = {"batch": options.batch, "shards": shards[spread], "exchange": "gather"}
        method = ParallelSGD(make(problem.d), step=step, feedback=feedback, server=hostile, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LongStepWarning)
            found = run(method, problem, workers=WORKERS, steps=options.steps, seed=seed).last
        return accuracy(unseen, found) if np.isfinite(found).all() else 0.0

    rows, seeds = [], range(seed, seed + options.seeds)
    for server, f in product(SERVERS, options.hostile):
        attacks = list(ATTACKS) if f else ["none"]
        found = np.reshape(list(pool.map(trial, product([server], [f], attacks, seeds))), (len(attacks), -1))
        worst = int(found.mean(axis=1).argmin())
        rows.append(Outcome(name, spread, messages, server, f, attacks[worst], found[worst].round(6).tolist()))
    return rows


def collect(quick: bool, seed: int, data: str | None, options: Options) -> dict:
    """All servers on both data sets."""
    messages = list(MESSAGES)
    if quick:
        options, messages = options._replace(steps=20, rows=800, features=100, hostile=(0, 4), seeds=2), messages[:2]
    rows = []
    with ThreadPoolExecutor(2) as pool:  # kernels release the GIL
        cases = list(product(tasks(options, data), SPREADS, messages))
        for task, spread, kind in track(cases, "adversaries"):
            rows += measure(task, spread, kind, options, seed, pool)
    return {"rows": rows, "options": options}


def errors(row: Outcome) -> np.ndarray:
    """Wrong answers, so that less is better."""
    return 1.0 - np.asarray(row.accuracy)


def statements(rows: list[Outcome]) -> list[Statement]:
    """Verdicts, each for every case."""
    by = {(r.task, r.spread, r.messages, r.method, r.hostile): r for r in rows}
    most = max(row.hostile for row in rows)

    def other(row: Outcome, **changed: Any) -> Outcome:
        key = row._replace(**changed)
        return by[key.task, key.spread, key.messages, key.method, key.hostile]

    def trials(mine: Any, second: Any, rule: Any, where: Any) -> list[Trial]:
        return [rule(mine(row), second(row)) for row in rows if where(row)]

    def keeps(a: Any, b: Any) -> Trial:  # loses less than the margin
        return below(a, b + MARGIN)

    def loses(a: Any, b: Any) -> Trial:
        return below(b, a, by=MARGIN)

    def calm(row: Outcome) -> np.ndarray:
        return errors(other(row, method="mean", hostile=0))

    def even(row: Outcome) -> np.ndarray:
        return errors(other(row, spread="alike"))

    def robust(row: Outcome) -> bool:
        return row.hostile > 0 and row.method != "mean"

    little = f"{MARGIN:g} of the accuracy"
    some = f"more than {little}"
    table = (
        ("mean-breaks", f"The mean loses {some} to the fewest hostile workers.", errors, calm, loses,
         lambda r: r.method == "mean" and r.hostile == min(h for h in {x.hostile for x in rows} if h)),
        ("robust-stand", f"Where data are alike, no robust server loses {some} to 4 hostile workers or fewer.", errors,
         calm, keeps, lambda r: robust(r) and r.spread == "alike" and r.hostile <= 4),
        ("differ-costs", f"Where the data differ, robust servers lose {some} more than where they are alike.", errors,
         even, loses, robust),
        ("mixed-stands", f"Mixed trimmed means lose at most {little}, also where the data differ.", errors, calm,
         keeps, lambda r: r.method == "mixed trimmed mean" and 0 < r.hostile),
        ("unattacked", "Krum costs accuracy also where nobody is hostile.", errors, calm,
         lambda a, b: below(b, a), lambda r: r.method == "Krum" and r.hostile == 0),
        ("compressed", f"Messages of 4 bits cost robust servers at most {little}.", errors,
         lambda r: errors(other(r, messages="float32")), keeps, lambda r: robust(r) and r.messages == "QSGD 4 bits"),
        ("memory", f"Top-k messages with a memory cost them at most {little}.", errors,
         lambda r: errors(other(r, messages="float32")), keeps, lambda r: robust(r) and "memory" in r.messages),
    )  # fmt: skip
    said = []
    for id, text, mine, second, rule, where in table:
        found = trials(mine, second, rule, where)
        said.append(Statement(id, text, found, counted(found), OURS))
    compare = Compare(errors, [("mixed trimmed mean", "trimmed mean")], below, ("task", "messages"),
                      {"spread": "differ", "hostile": most})  # fmt: skip
    text = f"Where the data differ and {most} are hostile, mixing neighbours first leaves fewer wrong answers."
    return [*said, Statement("mixing", text, compare(rows), source=OURS)]


def report(rows: list, options: Any) -> Study:
    """The study of these runs."""
    rows, options = [Outcome(*row) for row in rows], Options(*options)
    cases = list(dict.fromkeys((row.task, row.spread, row.messages) for row in rows))
    hostile = sorted({row.hostile for row in rows})

    def grid(case: tuple) -> list[list[Outcome]]:
        mine = {(r.method, r.hostile): r for r in rows if (r.task, r.spread, r.messages) == case}
        return [[mine[server, f] for f in hostile] for server in SERVERS]

    tables = [
        Table(
            f"{task}, data {spread}, {messages}: accuracy with the worst attack",
            ("server", *(f"{f} hostile" for f in hostile)),
            [(line[0].method, *(f"{np.mean(r.accuracy):.3f}" + f", {r.attack}" * (r.hostile > 0) for r in line))
             for line in grid((task, spread, messages))],
        )
        for task, spread, messages in cases
    ]  # fmt: skip
    setting = (
        f"{WORKERS} workers, {options.steps} steps of {STEP:g}/L, batches of {options.batch}; logistic regression on"
        f" the {options.features} most frequent words of {options.rows:,} documents (RCV1 or its twin), and softmax on"
        f" digits, l2 = {L2:g}. Data are alike (rows at random) or differ (labels by a Dirichlet distribution with"
        f" alpha = {ALPHA:g}). Accuracy on a quarter of the rows, which no worker has; mean over {options.seeds} seeds,"
        " for the attack with the lowest accuracy: "
        + ", ".join(f"{name} ({attack})" for name, attack in ATTACKS.items())
        + ". Servers know how many are hostile; a run that diverged has the accuracy 0."
    )

    def draw() -> Any:
        shown = list(dict.fromkeys((task, spread) for task, spread, _ in cases))
        kinds = list(dict.fromkeys(messages for *_, messages in cases))
        with canvas(len(kinds), len(shown), 1.9 * len(kinds) + 0.4) as (figure, axes):
            for (row, kind), (column, (task, spread)) in product(enumerate(kinds), enumerate(shown)):
                place, cells = axes[row, column], grid((task, spread, kind))
                values = np.array([[np.mean(one.accuracy) for one in line] for line in cells])
                place.imshow(values, vmin=0.0, vmax=1.0, cmap="cividis", aspect="auto")
                for (i, j), v in np.ndenumerate(values):
                    place.text(j, i, f"{v:.2f}", ha="center", va="center", color="black" if v > 0.5 else "white",
                               fontsize=6)  # fmt: skip
                place.set_xticks(range(len(hostile)), hostile)
                place.set_yticks(range(len(SERVERS)), list(SERVERS) if column == 0 else [])
                place.tick_params(length=0)
                place.grid(False)
                if row == 0:
                    place.set_title(f"{task}, data {spread}", fontsize=8)
                if column == 0:
                    place.set_ylabel(f"accuracy, {kind}")
                place.set_xlabel("hostile, of 20")
        return figure

    alt = (
        "Heat maps of the accuracy by server and number of hostile workers, for two data sets, alike and different data"
    )
    return Study(
        "adversaries", "Some workers are hostile", setting, {"rows": rows}, tables, statements(rows), draw, alt
    )
