"""Results of one method with several seeds: their mean, and its interval."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..core import require
from ..core.arguments import is_whole
from ..core.repetitions import SHOWN_LEVEL, Spread, spread
from ..core.result import History, Result, collection, save_several


def seeds_of(seed: Any) -> tuple[int, ...]:
    """One seed, or several different ones."""
    several = (seed,) if is_whole(seed) or not np.iterable(seed) or isinstance(seed, str) else tuple(seed)
    require(several and len(set(several)) == len(several), "seed", seed, "an integer, or several different ones")
    return several


@collection("runs")
class Runs(tuple):
    """What `theory.run` returns with several seeds: a tuple of the results, that prints.

    Attributes
    ----------
    seeds : tuple of int
    fun : Spread
        The mean of f at the end over the seeds, and half of its interval (95 %); ``runs.fun - optimum.fun`` is one,
        too.
    history : History
        Of shape (rows, seeds): ``runs.history["f"][-1]`` has the last f of each seed.  A run that ended earlier than
        another keeps its last row.

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
        """The mean of f at the end over the seeds, and half of its interval."""
        return spread([result.fun for result in self])

    @property
    def history(self) -> History:
        """The histories, with a column for each seed."""
        rows = max(len(result.history) for result in self)
        places = [np.minimum(np.arange(rows), len(result.history) - 1) for result in self]
        several = [np.asarray(result.history)[at] for result, at in zip(self, places, strict=True)]
        return np.stack(several, axis=1).view(History)

    def to_pandas(self) -> Any:
        """The histories below each other as a ``pandas.DataFrame``, with a column ``seed``."""
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
        """What `save` wrote."""
        return cls.of(results, plain["seeds"])

    def __repr__(self) -> str:
        lines = [
            f"seed {seed}: f = {result.fun:.6g}, {result.message}"
            for seed, result in zip(self.seeds, self, strict=True)
        ]
        return "\n".join([*lines, f"mean of {len(self)} seeds: f = {self.fun} ({SHOWN_LEVEL:.0%})"])


def run_seeds(run: Callable[..., Result], seeds: Any, replicas: int, **kept: Any) -> Runs:
    """A run for each seed; checkpoints are of one run."""
    for seed in seeds:  # a text is a sequence of texts, without an end
        require(is_whole(seed), "seed", seed, "an integer from 0 to 2**64 - 1, or several different ones")
    for name, given in kept.items():
        require(given is None, name, given, "None with several seeds")
    require(replicas == 1, "replicas", replicas, "1 with several seeds")
    return Runs.of([run(seed) for seed in seeds], seeds)
