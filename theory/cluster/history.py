"""The history of a run: its rows, where it stops, and the mean of several seeds.

A run can stop before its last step at a gap, a value or a gradient norm, or when bits or seconds are spent.  Rank 0
decides this from a row of the history, and informs the other ranks with that row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core import require
from ..core.arguments import finite_number, is_whole
from ..core.bound_calls import CODING, EXCHANGE, GRADIENT
from ..core.result import SHOWN_LEVEL, History, Result, Spread, collection, save_several, spread
from ..methods.gradients import drawn
from ..methods.messages import (
    ABSENT,
    BITS,
    BYTES,
    DOWN_BITS,
    DOWN_BYTES,
    HEARD_BITS,
    HEARD_BYTES,
    LINK_BITS,
    LINK_BYTES,
    REDUCED,
    SCATTERED,
    SERVER_BITS,
    SERVER_BYTES,
    SKIPPED,
)
from ..methods.types import Setup

# --- The history of a run --------------------------------------------------------------------------------------------

DONE, WORSE, DIVERGED, MISSED, STOPPED = 0, 1, 2, 3, 99  # status codes; 99 is SciPy's for a stop by the callback

REACHED, SPENT = -1, -2  # while it runs: a target is reached, a budget spent

HOPELESS = 1e9  # a run has diverged if f exceeds this many times 1 + |f(x_0)|

HISTORY = np.dtype(
    [
        ("step", np.int64),
        ("samples", np.int64),
        ("rounds", np.int64),
        (("bits_up", "payload_bits_up"), np.float64),
        (("bits_down", "payload_bits_down"), np.float64),
        ("message_bytes_up", np.float64),
        ("message_bytes_down", np.float64),
        ("seconds", np.float64),
        ("seconds_gradient", np.float64),
        ("seconds_coding", np.float64),
        ("seconds_exchange", np.float64),
        ("f", np.float64),
        ("gradient_norm", np.float64),
    ]
)

COMPRESSION_ERROR = np.dtype([("vector", np.float64), ("error", np.float64)])


def row_of(setup: Setup, rounds: int, sent: np.ndarray, nanoseconds: np.ndarray, seconds: float) -> np.ndarray:
    """A row of the history without f: costs are per worker.

    A worker receives the messages of the model and, unless they go only to the server, of all other workers (on a
    graph: of its neighbours).  Reduced values are sent and received once; of scattered values a worker receives its
    slice.
    """
    row, workers = np.zeros((), HISTORY), setup.workers
    steps = int(rounds) * setup.method.local_steps
    row["step"], row["rounds"] = steps, rounds - sent[SKIPPED]
    row["samples"] = workers * drawn(setup.batches, steps) - sent[ABSENT]
    row["seconds"] = seconds
    for name, alone, both, once, down, links, heard, server in (
        ("payload_bits", *sent[[BITS, REDUCED, SCATTERED, DOWN_BITS, LINK_BITS, HEARD_BITS, SERVER_BITS]]),
        (
            "message_bytes",
            sent[BYTES],
            sent[REDUCED] / 8,
            sent[SCATTERED] / 8,
            *sent[[DOWN_BYTES, LINK_BYTES, HEARD_BYTES, SERVER_BYTES]],
        ),
    ):
        row[f"{name}_up"] = (alone + both + once + links + server) / workers
        row[f"{name}_down"] = (alone * (workers - 1) + both + once / workers + heard) / workers + down
    for name, kind in (("gradient", GRADIENT), ("coding", CODING), ("exchange", EXCHANGE)):
        row[f"seconds_{name}"] = nanoseconds[kind] * 1e-9
    return row


def line_of(history: np.ndarray, k: int, steps: int) -> str:
    """The printed line for row k, with the number of steps of the run."""
    row = history[k]
    norm = f", ||grad f|| = {row['gradient_norm']:.3g}"
    spent = f"{row['payload_bits_up']:.3g} bits up, {row['seconds']:.3g} s"
    return f"step {row['step']:,} of {steps:,}: f = {row['f']:.6g}{norm}, {spent}"


def verdict(history: np.ndarray, k: int) -> tuple[int, str]:
    """Whether a run may continue after row k: status and message."""
    f = history["f"]
    if np.isfinite(f[k]) and (k == 0 or f[k] <= HOPELESS * (1.0 + abs(f[0]))):
        return DONE, "all steps done"
    step, what = history["step"][k], f"is {f[k]:.3g}" if np.isfinite(f[k]) else "is no longer finite"
    before = f"f was {f[k - 1]:.6g} at step {history['step'][k - 1]}" if k else "already at the start"
    return DIVERGED, f"diverged: f {what} at step {step} ({before}); try a smaller step size or more feedback"


def ended(history: np.ndarray, status: int, message: str) -> tuple[int, str]:
    """Status and message at the end: a run that did all its steps but ends above its start is not a success."""
    f = history["f"]
    if status != DONE or f.size < 2 or history["step"][0] != 0 or f[-1] <= f[0]:
        return status, message
    return WORSE, f"all steps done, but f = {f[-1]:.6g} is above f(x_0) = {f[0]:.6g}; try a smaller step size"


# --- Where a run stops before its last step --------------------------------------------------------------------------

GOALS = ("gap", "f", "gradient_norm")

BUDGETS = {"bits": "payload_bits_up", "seconds": "seconds", "samples": "samples", "rounds": "rounds"}

ALLOWED = f"a number, the gap f - f*, or a dict with some of {', '.join((*GOALS, *BUDGETS))}"


class Targets(NamedTuple):
    """The goals and the budgets of a run; ``lower`` bounds f* from below if it is ``certified``."""

    goals: dict[str, float]
    budgets: dict[str, float]
    lower: float = np.nan
    certified: bool = True

    def value(self, name: str, row: Any) -> float:
        """The value for a goal in a row of the history."""
        return float(row["f"]) - self.lower if name == "gap" else float(row[name])

    def look(self, row: Any) -> tuple[int, str]:
        """Whether a run may continue after a row: status and message."""
        for name, goal in self.goals.items():
            found = self.value(name, row)
            if name == "gap" and not self.certified and found < -goal:
                return MISSED, (
                    f"f = {float(row['f']):.6g} is below {self.lower:.6g}, the least f that `solve` found: f* is not "
                    "known; give minimizer= to the function, or target={'f': ...}"
                )
            if found <= goal:
                return REACHED, f"{_named(name)} = {found:.3g} <= {goal:g} after step {row['step']}"
        for name, most in self.budgets.items():
            spent = float(row[BUDGETS[name]])
            if spent >= most:
                return SPENT, f"{spent:,.6g} {name} spent, of {most:,.6g}, after step {row['step']}"
        return DONE, "all steps done"

    def ended(self, history: np.ndarray, status: int, message: str) -> tuple[int, str]:
        """Status and message of the result: a run that misses its goal is not a success."""
        if status == REACHED:
            return DONE, message
        if status not in (DONE, SPENT):
            return status, message
        worse, why = ended(history, DONE, message)
        if worse or not self.goals:
            return worse, why
        missed = [f"{_named(n)} = {self.value(n, history[-1]):.3g} > {goal:g}" for n, goal in self.goals.items()]
        return MISSED, f"{message}, but {' and '.join(missed)}"


def _named(name: str) -> str:
    return {"gap": "f - f*", "gradient_norm": "||grad f||"}.get(name, name)


def read_targets(tol: Any, target: Any, problem: Any) -> Targets:
    """Read the arguments ``tol`` and ``target`` of a run; for a gap the optimum is computed here."""
    given = dict(target) if isinstance(target, Mapping) else {} if target is None else {"gap": target}
    require(bool(given) or target is None, "target", target, ALLOWED)
    for name, number in given.items():
        require(name in GOALS or name in BUDGETS, "target", target, ALLOWED)
        number = finite_number(f"target: {name}", number)
        require(number > 0 or name == "f", f"target: {name}", number, "a number above 0")
    if tol is not None:
        require(finite_number("tol", tol) > 0, "tol", tol, "a number above 0: a norm of the gradient")
        require("gradient_norm" not in given, "tol", tol, "None with the target gradient_norm, which is the same")
        given["gradient_norm"] = tol
    lower, certified = np.nan, True
    if "gap" in given:
        from ..problems import solve

        optimum = solve(problem)
        gap = float(optimum.get("gap", 0.0))
        certified = bool(np.isfinite(gap))  # NaN: the best found, without a certificate
        lower = float(optimum.fun) - (gap if certified else 0.0)
    numbers = {name: float(number) for name, number in given.items()}
    goals = {name: number for name, number in numbers.items() if name in GOALS}
    return Targets(goals, {name: number for name, number in numbers.items() if name in BUDGETS}, lower, certified)


# --- Results of one method with several seeds ------------------------------------------------------------------------


def seeds_of(seed: Any) -> tuple[int, ...]:
    """One seed, or several different ones."""
    several = (seed,) if is_whole(seed) or not np.iterable(seed) or isinstance(seed, str) else tuple(seed)
    require(several and len(set(several)) == len(several), "seed", seed, "an integer, or several different ones")
    return several


@collection("runs")
class Runs(tuple):
    """The result of `theory.run` with several seeds: a tuple of the results, which can be printed.

    Attributes
    ----------
    seeds : tuple of int
    fun : Spread
        The mean of the final f over the seeds, and half of its interval (95 %); ``runs.fun - optimum.fun`` is also of
        this type.
    history : History
        Of shape (rows, seeds): ``runs.history["f"][-1]`` has the last f of each seed. The last row of a run is repeated
        if other runs are longer.

    Examples
    --------
    >>> import theory as th
    >>> problem = th.quadratic([1.0, 2.0], covariance=1.0)
    >>> runs = th.run(th.ParallelSGD(step=0.1), problem, workers=2, steps=50, seed=range(3))
    >>> len(runs), runs.seeds, runs.fun.low < runs[0].fun < runs.fun.high
    (3, (0, 1, 2), True)
    """

    seeds: tuple[int, ...]

    @classmethod
    def of(cls, results: Any, seeds: Any) -> Runs:
        """Results and their seeds."""
        made = cls(results)
        made.seeds = tuple(int(seed) for seed in seeds)
        return made

    @property
    def fun(self) -> Spread:
        """The mean of the final f over the seeds, and half of its interval."""
        return spread([result.fun for result in self])

    @property
    def history(self) -> History:
        """The histories, with a column for each seed."""
        rows = max(len(result.history) for result in self)
        places = [np.minimum(np.arange(rows), len(result.history) - 1) for result in self]
        several = [np.asarray(result.history)[at] for result, at in zip(self, places, strict=True)]
        return np.stack(several, axis=1).view(History)

    def to_pandas(self) -> Any:
        """All histories as one ``pandas.DataFrame`` with a column ``seed``."""
        tables = [result.history.to_pandas() for result in self]
        import pandas  # `History.to_pandas` says if there is none

        return pandas.concat(tables, keys=self.seeds, names=["seed"]).reset_index()

    def __getattr__(self, name: str) -> Any:
        told = f"runs[0].{name} is that of the seed {self.seeds[0]}" if "seeds" in vars(self) else "there is none"
        raise AttributeError(f"{name}: runs of several seeds have seeds, fun, history and success; {told}")

    @property
    def success(self) -> bool:
        """Whether every run was a success."""
        return all(result.success for result in self)

    def save(self, path: str | Path) -> None:
        """Save all results in a folder, for `load_result`."""
        save_several(path, "runs", {"seeds": list(self.seeds)}, self)

    @classmethod
    def loaded(cls, plain: dict, results: list[Result]) -> Runs:
        """The results that `save` wrote."""
        return cls.of(results, plain["seeds"])

    def __repr__(self) -> str:
        lines = [
            f"seed {seed}: f = {result.fun:.6g}, {result.message}"
            for seed, result in zip(self.seeds, self, strict=True)
        ]
        return "\n".join([*lines, f"mean of {len(self)} seeds: f = {self.fun} ({SHOWN_LEVEL:.0%})"])


def run_seeds(run: Callable[..., Result], seeds: Any, replicas: int, **options: Any) -> Runs:
    """Run once for each seed; checkpoints are not supported."""
    for seed in seeds:  # a text is a sequence of texts, without an end
        require(is_whole(seed), "seed", seed, "an integer from 0 to 2**64 - 1, or several different ones")
    for name, given in options.items():
        require(given is None, name, given, "None with several seeds")
    require(replicas == 1, "replicas", replicas, "1 with several seeds")
    return Runs.of([run(seed) for seed in seeds], seeds)
