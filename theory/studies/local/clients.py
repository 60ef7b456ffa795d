"""64 clients, 8 in a round: FedAvg, FedProx and SCAFFOLD over local steps and both step sizes, beside the exact law.

Ridge regression on text that is sorted by topic, or by the heaviest word.  With whole gradients each client's local
steps are linear, so that E f after so many rounds is known exactly, also with absent clients.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ... import bounds
from ...cluster import run
from ...compressors import QSGD
from ...core import require, setting
from ...data import Dataset
from ...methods import SCAFFOLD, FedAvg, FedProx, OuterStep
from ...methods.differences.steps import worker_constants
from ...methods.schedules import Constant
from ...plots.appearance import number
from ...problems import ridge, solve, value
from ...reporting.progress import track
from ..differences.send_the_difference import Options as Texts
from ..differences.send_the_difference import texts
from ..shared.curves import canvas, legend_below
from ..shared.report import OURS, Study, Table
from ..shared.verdicts import Statement, Trial, at_most_times, count, counted, within

L2 = 1e-3
STEPS = (0.25, 0.5, 1.0, 1.5)  # of a client, over the largest L_i
SERVER = (0.5, 1.0, 2.0)
NEAR = 2.0  # a law names a good setting if it ends within this factor of the best one
METHODS: dict[str, Any] = {
    "FedAvg": (FedAvg, {}),
    "FedAvg, all clients": (FedAvg, {"clients": None}),
    "FedProx": (FedProx, {"mu": 0.1}),
    "SCAFFOLD": (SCAFFOLD, {}),
    "FedAvg, 4 bits both ways": (FedAvg, {"compressor": QSGD(7), "down": QSGD(7)}),
}
SAMPLED, ALL = "FedAvg", "FedAvg, all clients"


@setting
class Options(NamedTuple):
    """Options of a configuration.

    Parameters
    ----------
    rounds : int
    rows, features : int
        Documents, a multiple of the number of clients, and the most frequent words.
    clients, present : int
        How many clients there are, and how many of them take part in a round.
    local_steps : tuple of int
        H, those that are tried.
    seeds : int
    """

    rounds: int = 100
    rows: int = 2048
    features: int = 100
    clients: int = 64
    present: int = 8
    local_steps: tuple = (1, 2, 4, 8, 16)
    seeds: int = 6

    def domain(self):
        """Reject values outside the domain."""
        for name in ("rounds", "features", "seeds"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "an integer, at least 1")
        require(1 <= self.present <= self.clients, "present", self.present, f"from 1 to {self.clients}, the clients")
        whole = self.rows >= self.clients >= 2 and self.rows % self.clients == 0
        require(whole, "rows", self.rows, f"a multiple of {self.clients}, the clients")
        good = all(isinstance(h, int) and h >= 1 for h in self.local_steps)
        require(good and {1} < set(self.local_steps), "local_steps", self.local_steps, "1, and integers above")


class Outcome(NamedTuple):
    """One method with one setting: f - f* at the end over f(0) - f*, seed by seed; ``law`` is its expectation."""

    method: str
    local_steps: int
    step: float
    server_step: float
    gap: list
    law: float


def quadratics(source: Dataset, clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Curvatures and minimisers of the clients."""
    parts = np.split(source.X.toarray().astype(float), clients)
    rows, unit = len(parts[0]), np.eye(source.X.shape[1])
    curvatures = np.array([p.T @ p / rows + L2 * unit for p in parts])
    right = np.array([p.T @ t / rows for p, t in zip(parts, np.split(source.y, clients), strict=True)])
    return curvatures, np.linalg.solve(curvatures, right[..., None])[..., 0]


def collect(quick: bool, seed: int, topics: str | None, options: Options) -> dict:
    """All methods over local steps, steps of the clients and of the server."""
    if quick:
        options = options._replace(rounds=20, rows=512, features=30, local_steps=(1, 4), seeds=2)
    as_texts = Texts(rows=options.rows, features=options.features, workers=(2,))
    (order, source), *_ = ((k, v) for k, v in texts(as_texts, topics).items() if k in ("topic", "word"))
    problem = ridge(source, L2)
    best, n = solve(problem, 1e-12), options.rows // options.clients
    how: Any = {"shards": "contiguous", "batch": n, "sampling": "shuffle"}
    of_clients = worker_constants(FedAvg(step=Constant(1.0), **how), problem, options.clients)
    first = value(problem, np.zeros(problem.d)) - best.fun
    functions = quadratics(source, options.clients)
    trials = 1 + options.seeds

    def law(name: str, H: int, eta: float, beta: float) -> float:
        m = {SAMPLED: options.present, ALL: options.clients}.get(name)
        if m is None:
            return math.nan
        plan: Any = {"step": eta, "local_steps": H, "rounds": options.rounds, "clients": m, "server_step": beta}
        with np.errstate(over="ignore", invalid="ignore"):
            found = bounds.sampled_fedavg_gap(*functions, **plan) / first
        return found if math.isfinite(found) else math.inf

    def ends(name: str, H: int, eta: float, beta: float) -> list[float]:
        cls, more = METHODS[name]
        fields = {"clients": options.present, "step": Constant(eta), "local_steps": H, "server": OuterStep(beta)}
        method, found = cls(**(fields | more), **how), []
        for s in range(seed, seed + (1 if name == ALL else trials)):
            x = run(method, problem, workers=options.clients, steps=options.rounds * H, seed=s).last
            gap = (value(problem, x) - best.fun) / first if np.isfinite(x).all() else math.inf
            found.append(float(f"{gap:.6g}") if math.isfinite(gap) else math.inf)
        return found * trials if name == ALL else found

    grid = list(product(options.local_steps, STEPS, SERVER))
    rows = []
    with ThreadPoolExecutor(2) as pool:  # kernels release the GIL
        for name in track(METHODS, "clients"):
            settings = [(H, c / of_clients.largest, beta) for H, c, beta in grid]
            found = pool.map(lambda one, name=name: (ends(name, *one), law(name, *one)), settings)
            for (H, eta, beta), (gaps, exact) in zip(settings, found, strict=True):
                rows.append(Outcome(name, H, eta * of_clients.largest, beta, gaps, exact))
    differ = of_clients.largest / of_clients.lipschitz, of_clients.mean / of_clients.lipschitz
    return {"rows": rows, "differ": differ, "source": source.name.split(" (")[0], "order": order, "options": options}


def chosen(rows: list[Outcome], by: Any) -> dict[str, Outcome]:
    """Of each method the setting that is best by the first seed, or by the law; its other seeds remain."""
    found = {}
    for name in dict.fromkeys(row.method for row in rows):
        row = min((row for row in rows if row.method == name), key=by)
        found[name] = row._replace(gap=row.gap[1:])
    return found


def first_seed(row: Outcome) -> float:
    """By which a setting is chosen."""
    return row.gap[0]


def report(rows: list, differ: tuple, source: str, order: str, options: Any) -> Study:
    """The study of these runs."""
    rows, options = [Outcome(*row) for row in rows], Options(*options)
    every = [row for row in rows if row.method == ALL]
    best = chosen(rows, first_seed)
    named = chosen([row for row in rows if row.method in (SAMPLED, ALL)], lambda row: row.law)
    agree = [row for row in every if 1e-9 < row.law < 1e9]
    apart = [abs(row.gap[0] / row.law - 1.0) for row in agree]
    exact = [one < 0.01 for one in apart]
    noisy = [row for row in rows if row.method == SAMPLED and row.law < 1.0]
    meets = [within(row.gap, np.full(len(row.gap), row.law), 2.0) for row in noisy]
    last = max(options.local_steps)
    long = {H: chosen([r for r in rows if r.local_steps == H], first_seed) for H in options.local_steps}

    def versus(a: Outcome, b: Outcome, factor: float = 1.0) -> Trial:
        return at_most_times(a.gap, b.gap, factor)

    def shown(row: Outcome) -> str:
        return f"{np.mean(row.gap):.3g} with H = {row.local_steps}, {row.step:g}/L_max, {row.server_step:g}"

    two = (SAMPLED, ALL)
    more = {m: min((v[m] for H, v in long.items() if H > 1), key=lambda r: np.mean(r.gap)) for m in two}
    table: Any = (
        ("law", "With all clients the run ends at the value of the law, to 1 %.", exact,
         f"In {count(exact)} of {len(exact)} settings; the largest difference is {max(apart):.2g}."),
        ("law-sampled", f"With {options.present} of {options.clients} a typical run ends within a factor 2 of the law.",
         meets, f"{counted(meets)} They are the settings that end below f(0)."),
        ("law-names", f"The setting that is best by the law ends within {NEAR:g} times the f - f* of the best one.",
         [versus(named[m], best[m], NEAR) for m in two],
         "; ".join(f"{m}: {shown(named[m])}, the best {shown(best[m])}" for m in two) + "."),
        ("local", "FedAvg ends lower with more than one local step.", [versus(more[m], long[1][m]) for m in two],
         "; ".join(f"{m}: {shown(more[m])}, against {shown(long[1][m])}" for m in two) + "."),
        ("absent", "Absent clients cost FedAvg accuracy.", [versus(best[ALL], best[SAMPLED])],
         f"{shown(best[ALL])}; of {options.present}: {shown(best[SAMPLED])}."),
    )  # fmt: skip
    said = [Statement(id, text, trials, shown, OURS) for id, text, trials, shown in table]
    for id, text, a, b, where in (
        ("scaffold", f"With {last} local steps SCAFFOLD ends lower than FedAvg.", "SCAFFOLD", SAMPLED, long[last]),
        ("scaffold-best", "SCAFFOLD ends lower also with the best setting of each.", "SCAFFOLD", SAMPLED, best),
        ("prox", f"With {last} local steps FedProx ends lower than FedAvg.", "FedProx", SAMPLED, long[last]),
    ):
        said.append(Statement(id, text, [versus(where[a], where[b])], f"{shown(where[a])}; {shown(where[b])}.", OURS))
    coded = best["FedAvg, 4 bits both ways"]
    text = f"Messages of 4 bits both ways end within {NEAR:g} times FedAvg's f - f*."
    said.append(Statement("coded", text, [versus(coded, best[SAMPLED], NEAR)], f"{shown(coded)}.", OURS))
    cells = [
        (m, f"{row.local_steps}", f"{row.step:g}", f"{row.server_step:g}", number(np.mean(row.gap)), number(row.law))
        for m, row in best.items()
    ]
    head = ("method", "H", "step times L_max", "server's step", "measured", "law")
    lines = [(m, *(number(float(np.mean(long[H][m].gap))) for H in options.local_steps)) for m in METHODS]
    tables = [
        Table("f - f* with the best setting", head, cells),
        Table("f - f* with the best steps, by H", ("method", *(f"H = {H}" for H in options.local_steps)), lines),
    ]  # fmt: skip
    setting = (
        f"Ridge regression (l2 = {L2:g}) on {options.rows:,} documents of {source}, their {options.features} most"
        f" frequent words, sorted by {order} and cut among {options.clients} clients: L_max/L ="
        f" {differ[0]:.3g}, mean L_i/L = {differ[1]:.3g}. {options.rounds} rounds with {options.present} clients, whole"
        f" gradients. f - f* is relative to that at 0: mean over {options.seeds} seeds; the setting is chosen by"
        f" another seed, of H in {list(options.local_steps)}, {list(STEPS)}/L_max and {list(SERVER)} for the server."
    )

    def draw() -> Any:
        with canvas(1, 2, 2.8) as (figure, axes):
            H = list(options.local_steps)
            for k, m in enumerate(METHODS):
                heights = np.array([long[h][m].gap for h in H], float)
                mean, low, high = heights.mean(axis=1), heights.min(axis=1), heights.max(axis=1)
                axes[0, 0].errorbar(H, mean, (mean - low, high - mean), label=m, zorder=3 + k)
            for m, dashes in ((SAMPLED, "k--"), (ALL, "k:")):
                least = [min(r.law for r in rows if r.method == m and r.local_steps == h) for h in H]
                axes[0, 0].plot(H, least, dashes, marker="", zorder=9, label=f"law, {m}")
            axes[0, 0].set(xscale="log", yscale="log", xlabel="local steps H", ylabel="f - f*, relative to 0")
            axes[0, 0].set_xticks(H, H)
            axes[0, 0].minorticks_off()
            for m, mark in ((ALL, "C1s"), (SAMPLED, "C0o")):
                fine = [r for r in rows if r.method == m and r.law < 10.0]
                axes[0, 1].plot(
                    [r.law for r in fine], [np.mean(r.gap[1:]) for r in fine], mark, label=m, fillstyle="none"
                )
            ends = [min(r.law for r in every), 1.0]
            axes[0, 1].plot(ends, ends, "k--", marker="", label="equal")
            axes[0, 1].set(xscale="log", yscale="log", xlabel="law", ylabel="measured f - f*")
            axes[0, 1].legend()
            legend_below(figure, axes[0, 0], 3)
        return figure

    alt = (
        "Left: f - f* at the end against the number of local steps: SCAFFOLD ends far below FedAvg with several. Right:"
        " measured f - f* of FedAvg against its law, on the line where they are equal"
    )
    return Study("clients", "Clients that are often absent", setting, {"rows": rows}, tables, said, draw, alt)
