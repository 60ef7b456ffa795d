"""Where a run stops before its last step: at a gap, a value or a gradient norm, or when bits or seconds are spent.

All of it is decided by rank 0 from a row of the history, and told to the other ranks with that row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core import require
from ..core.arguments import finite_number
from .history import DONE, MISSED, REACHED, SPENT, ended

GOALS = ("gap", "f", "gradient_norm")
BUDGETS = {"bits": "payload_bits_up", "seconds": "seconds", "samples": "samples", "rounds": "rounds"}
ALLOWED = f"a number, the gap f - f*, or a dict with some of {', '.join((*GOALS, *BUDGETS))}"


class Targets(NamedTuple):
    """What is to be reached, and what may be spent; ``lower`` bounds f* from below if it is ``certified``."""

    goals: dict[str, float]
    budgets: dict[str, float]
    lower: float = np.nan
    certified: bool = True

    def value(self, name: str, row: Any) -> float:
        """What a row of the history has for a goal."""
        return float(row["f"]) - self.lower if name == "gap" else float(row[name])

    def look(self, row: Any) -> tuple[int, str]:
        """Whether a run may go on after a row: status and message."""
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
        """Status and message of the result: a goal that was not reached is no success."""
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
    """Read the arguments ``tol`` and ``target`` of a run; a gap needs the optimum, which is computed here."""
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
