"""Cases: a method, a class of functions and parameters; what is stated of them, and what a solver found.

Everything that a case says is computed from its fields: the formulas of `theory.bounds` that are stated for it are
called with its own parameters.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .lemmas import LEMMAS
from .programs import MEASURES, PROGRAMS

RECORDS = Path(__file__).with_name("solutions.jsonl")


class Case(NamedTuple):
    """A method on a class of functions, at parameters.

    Attributes
    ----------
    id : str
    method, functions : str
        In words: the method, and the class of functions.
    program : str
        One of `PROGRAMS`, which are run, or of `LEMMAS`, which are one step from any state.
    options : dict
        What the program is called with.
    constants : tuple of (float, float)
        mu and L of each worker's function.
    s : float
        sqrt(1 - delta) of the compressor.
    measure : str
        One of `MEASURES`, relative to the start's.
    ours, printed : callable or None
        What the formula of the package says, and the one in print if that is another.
    claims : tuple of str
        The claims about the formula.
    contracts : bool
        Whether the formula is a factor: the smaller its logarithm, the more steps it asks for.
    stated_for : str
        The functions for which the formula is stated, if it is not for these.
    derived : bool
        Whether the formula follows from what the claims state, and is not in print itself.
    relaxed : bool
        Whether the conditions on points of a function are known to be necessary only: the program is then from above.
    """

    id: str
    method: str
    functions: str
    program: str
    options: dict[str, Any]
    constants: tuple[tuple[float, float], ...] = ((1.0, 4.0),)
    s: float = 0.0
    measure: str = "distance"
    ours: Callable[[], float] | None = None
    printed: Callable[[], float] | None = None
    claims: tuple[str, ...] = ()
    contracts: bool = False
    stated_for: str = ""
    derived: bool = False
    relaxed: bool = False

    @property
    def runs(self) -> bool:
        """Whether there is an instance to run."""
        return self.program in PROGRAMS

    @property
    def family(self) -> str:
        """The id without the number of steps."""
        return self.id.rsplit(".", 1)[0]

    @property
    def steps(self) -> int:
        """Number of steps; of a lemma 1."""
        return int(self.options.get("steps", 1))

    @property
    def regime(self) -> str:
        """The parameters in words."""
        functions = "; ".join(f"mu={mu:g}, L={top:g}" for mu, top in dict.fromkeys(self.constants))
        known = [functions] if self.runs else []
        known += [f"N={len(self.constants)}"] * (len(self.constants) > 1) + [f"s={self.s:g}"] * (self.s > 0)
        return ", ".join(known + [f"{name}={value:.4g}" for name, value in self.options.items()])

    @property
    def measured(self) -> str:
        """What is compared, in words."""
        return MEASURES[self.measure][0] if self.runs else self.measure

    @property
    def digest(self) -> str:
        """Of what a solution depends on: the parameters and the program's source."""
        program = PROGRAMS.get(self.program) or LEMMAS[self.program]
        measures = [MEASURES[self.measure][1]] if self.runs else []
        text = [line for function in (program, *measures) for line in _source(function)]
        facts = [self.program, self.options, self.constants, self.s, text]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _source(function: Callable) -> list[str]:
    """The statements of a function, and of those of its file that it calls, without docstrings and comments."""
    (tree,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(tree, ast.FunctionDef)
    called = [vars(inspect.getmodule(function)).get(name) for name in function.__code__.co_names]
    here = [one for one in called if inspect.isfunction(one) and one.__module__ == function.__module__]
    return [ast.unparse(line) for line in tree.body[1:]] + [line for one in here for line in _source(one)]


class Solution(NamedTuple):
    """What a solver found for a case.

    Attributes
    ----------
    case : str
        Its id.
    value : float
        The worst case, from the dual: from above, up to the solver's tolerance.
    attained : float
        The worst case of the functions and compressors a little inside the class, whose solution is kept.
    gram : tuple of float
        Inner products of the vectors of the solution, the lower triangle; empty where nothing is run.
    values : tuple of float
        Function values, in the order of evaluation.
    solver : str
        Names and versions.
    digest : str
        Of the case that was solved.
    """

    case: str
    value: float
    attained: float
    gram: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    solver: str = ""
    digest: str = ""


@functools.cache
def kept_solutions() -> dict[str, Solution]:
    """The solutions that come with the package, by case."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    return {one["case"]: Solution(**one) for one in map(json.loads, lines)}


def solution_of(case: Case) -> Solution:
    """The kept solution of a case.

    Raises
    ------
    ValueError
        If there is none, or it is that of another version of the case.
    """
    found = kept_solutions().get(case.id)
    if found is None or found.digest != case.digest:
        state = "no solution is kept" if found is None else "the solution that is kept is of another version"
        raise ValueError(f"{case.id}: {state}; python -m theory.experiment atlas --solve {case.id} (extra pepit)")
    return found
