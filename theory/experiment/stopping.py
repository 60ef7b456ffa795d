"""How an experiment is stopped and goes on: a folder of checkpoints for each of its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..reporting.files import ConfigurationError
from .records import file_name


class Stopping(NamedTuple):
    """The flags ``--checkpoint``, ``--every``, ``--resume`` and ``--patience``.

    A run that was complete has a checkpoint at its end: where the experiment goes on, it is read, and not done again.
    """

    checkpoint: str | None = None
    every: str = "10min"
    resume: str | None = None
    patience: float = 600.0

    def checked(self) -> Stopping:
        """The same, after all that is wrong with it was refused."""
        from ..cluster.checkpoints import interval, stored
        from ..cluster.watch import Watch

        def known(folder: str | None) -> bool:
            return folder is not None and any(stored(path) for path in Path(folder).glob("*") if path.is_dir())

        try:
            interval(self._every, 1)
            Watch(None, self.patience)
        except ValueError as error:
            raise ConfigurationError(f"--{error}") from None
        same = self.resume is not None and self.resume == self.checkpoint
        if self.resume is not None and not same and not known(self.resume):
            raise ConfigurationError(
                f"--resume: got {self.resume}, allowed: a folder with checkpoints, or that of --checkpoint"
            )
        if known(self.checkpoint) and not same:
            raise ConfigurationError(
                f"--checkpoint: {self.checkpoint} has checkpoints; add --resume {self.checkpoint}, or take another"
            )
        return self

    @property
    def _every(self) -> int | str:
        return int(self.every) if self.every.isdecimal() else self.every

    def arguments(self, label: str) -> dict[str, Any]:
        """The arguments for the run with this label."""
        from ..cluster.checkpoints import stored

        name = file_name(label)
        begun = self.resume is not None and bool(stored(Path(self.resume) / name))
        return {
            "checkpoint": None if self.checkpoint is None else Path(self.checkpoint) / name,
            "every": self._every,
            "resume": Path(str(self.resume)) / name if begun else None,
            "patience": self.patience,
        }


class Watcher:
    """The callback of a run: tells the progress, keeps the largest f, and stops the run after a signal.

    Parameters
    ----------
    problem : problem
    bar : Progress
    interruption : Interruption

    Attributes
    ----------
    state : float
        The largest f so far, at the result and at the last iterate; checkpoints have it.
    """

    def __init__(self, problem: Any, bar: Any, interruption: Any) -> None:
        self._problem, self._bar, self._interruption = problem, bar, interruption
        self.state = -np.inf

    def __call__(self, intermediate_result: Any) -> None:
        from ..problems.base import value

        self._bar.at(intermediate_result.history["samples"][-1])
        here, last = intermediate_result.fun, intermediate_result.last
        if not np.array_equal(last, intermediate_result.x):  # where the result is an average of iterates
            here = float(value(self._problem, last))
        self.state = max(self.state, float(here)) if here == here else np.inf
        if self._interruption.signal is not None:
            raise StopIteration
