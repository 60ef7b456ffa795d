"""Worst cases by semidefinite programs, and their comparison with formulas.

The programs are solved by PEPit with an open-source solver, ``pip install "sgd-theory[pepit]"``.  The comparison of a
formula with a worst case gives a gap and a verdict.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from ..reporting.scale import FAILS, HOLDS, LOOSELY, OPEN, SHARP, UNJUDGED, VACUOUS
from .cases import Case, Solution
from .interpolation import LEMMAS
from .programs import MEASURES, PROGRAMS, State, World

# --- Worst cases by semidefinite programs ----------------------------------------------------------------------------

SOLVER = "CLARABEL"

INSIDE = 1e-7  # so that the points of an instance are those of a function of the class in spite of rounding

PRECISION = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


class Unknowns(World):
    """A world of unknown vectors and values: each request of a program adds a variable or a constraint.

    Parameters
    ----------
    case : Case
    inside : float
        The relative margin by which functions and compressor stay inside their class.
    """

    def __init__(self, case: Case, inside: float = 0.0) -> None:
        import PEPit
        from PEPit import functions

        super().__init__(len(case.constants), case.s)
        self._pepit, self._kinds, self._inside = PEPit, functions, inside
        self.pep = PEPit.PEP()
        self.zero = PEPit.Point(is_leaf=False, decomposition_dict={})
        self.no_value = PEPit.Expression(is_leaf=False, decomposition_dict={})
        self.leaves: list[Any] = []
        self.values: list[Any] = []
        if case.runs:
            self._length = case.options["step"]
            self._functions = [self._of_class(mu, top) for mu, top in case.constants]
            self.start = self.unknown()

    def _of_class(self, mu: float, top: float) -> Any:
        if np.isinf(top):
            return self.function("StronglyConvexFunction", mu=mu * (1.0 + self._inside))
        kept = self._inside * (top - mu)
        return self.function("SmoothStronglyConvexFunction", mu=mu + kept, L=top - kept)

    def leaf(self, name: str, **constants: float) -> Any:
        """A function of one of PEPit's classes."""
        return self.pep.declare_function(getattr(self._kinds, name), **constants)

    def function(self, name: str, **constants: float) -> Any:
        """A function with its minimum 0 at ``zero``."""
        f = self.leaf(name, **constants)
        f.add_point((self.zero, self.zero, self.no_value))
        return f

    def unknown(self) -> Any:
        """An unknown vector."""
        self.leaves.append(self._pepit.Point())
        return self.leaves[-1]

    def assume(self, constraint: Any) -> None:
        """Add a constraint."""
        self.pep.add_constraint(constraint)

    def look(self, i: int, x: Any) -> tuple[Any, Any]:
        """A gradient and a value; for a Moreau envelope, they come from a subgradient at the end of its step."""
        f, g, value = self._functions[i], self.unknown(), self._pepit.Expression()
        if "L" in vars(f):
            f.add_point((x, g, value))
        else:
            f.add_point((x - self._length * g, g, value - self._length / 2.0 * g**2))
        self.values.append(value)
        return g, value

    def send(self, i: int, v: Any) -> Any:
        """The message of worker i for v."""
        c = self.unknown()
        self.assume((c - v) ** 2 <= (self.s * (1.0 - self._inside)) ** 2 * v**2)
        return c

    def square(self, v: Any) -> Any:
        """||v||^2."""
        return v**2


def solve(case: Case, inside: float = INSIDE) -> Solution:
    """Solve the semidefinite program of a case.

    Parameters
    ----------
    case : Case
    inside : float
        The relative margin by which functions and compressor of the instance stay inside their class.

    Returns
    -------
    Solution

    Raises
    ------
    ImportError
        If PEPit is not installed.
    RuntimeError
        If the solver found no solution.
    """
    if importlib.util.find_spec("PEPit") is None:
        raise ImportError("PEPit, which makes worst cases, is not installed (pip install 'sgd-theory[pepit]')")
    w, value = _solved(case)
    attained = value
    gram: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    if case.runs:
        w, attained = _solved(case, inside)
        found = np.array([leaf.eval() for leaf in w.leaves])
        gram = tuple(float(x) for x in (found @ found.T)[np.tril_indices(len(found))])
        values = tuple(float(one.eval()) for one in w.values)
    names = ", ".join(f"{name} {version(name)}" for name in ("PEPit", "cvxpy", "clarabel"))
    return Solution(case.id, value, attained, gram, values, names, case.digest)


def _solved(case: Case, inside: float = 0.0) -> tuple[Unknowns, float]:
    """The world of a case after its program was solved, and its value."""
    from cvxpy.error import SolverError

    w = Unknowns(case, inside)
    if case.runs:
        measure = MEASURES[case.measure][1]
        w.pep.set_initial_condition(measure(w, State(w.start)) <= 1.0)
        metric = measure(w, PROGRAMS[case.program](w, **case.options))
    else:
        metric = LEMMAS[case.program](w, **case.options)
    w.pep.set_performance_metric(metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the solver's, of a matrix with an eigenvalue of -1e-11
        try:
            value = w.pep.solve(wrapper="cvxpy", solver=SOLVER, verbose=0, **PRECISION)
        except SolverError as error:
            raise RuntimeError(f"{case.id}: {SOLVER} failed: {error}") from None
    if value is None or not np.isfinite(value):
        raise RuntimeError(f"{case.id}: {SOLVER} found no bound")
    return w, float(value)


# --- Comparison of a formula with the worst case ---------------------------------------------------------------------

ACCURACY = 1e-3  # relative distance of a formula from the worst case that may be the solver's


def gap_between(bound: float, below: float, contracts: bool) -> float:
    """By how much a bound could be improved: 0 if it is attained, negative if it is not a bound.

    Parameters
    ----------
    bound, below : float
        The stated and the reached value, both above 0.
    contracts : bool
        Whether they are factors below 1: then the result is the fraction of the bound's steps that are unnecessary.

    Returns
    -------
    float
        Infinite for a factor of 1 or more, which requires infinitely many steps.

    Examples
    --------
    >>> gap_between(0.9, 0.81, contracts=True), gap_between(3.0, 2.0, contracts=False)
    (1.0, 0.5)
    """
    if not contracts:
        return bound / below - 1.0
    return math.inf if bound >= 1.0 else math.log(below) / math.log(bound) - 1.0


class Comparison(NamedTuple):
    """A case, its worst case and its formulas.

    Attributes
    ----------
    case : Case
    below : float
        The worst case.
    ours, printed : float or None
        The formula of the package, and the printed one if it differs.
    gap, printed_gap : float or None
        The `gap_between` each of them and the worst case.
    verdict : str
        "holds" if the gap is at most 25 %, and otherwise "holds loosely"; "vacuous" for a factor of contraction that is
        not below 1; "fails" below the worst case.  A relaxation cannot refute a formula: one above its value holds
        loosely, and one below it is undecided.  A dash if there is no formula, or one for other functions.
    """

    case: Case
    below: float
    ours: float | None
    printed: float | None
    gap: float | None
    printed_gap: float | None
    verdict: str


def compared(case: Case, solution: Solution) -> Comparison:
    """Compare the formulas of a case with its worst case.

    Parameters
    ----------
    case : Case
    solution : Solution

    Returns
    -------
    Comparison
    """
    ours, printed = (None if formula is None else float(formula()) for formula in (case.ours, case.printed))
    below = solution.value
    gap, printed_gap = (
        None if bound is None else gap_between(bound, below, case.contracts) for bound in (ours, printed)
    )
    verdict = UNJUDGED
    if ours is not None and gap is not None and not case.stated_for:
        if below - ours > ACCURACY * abs(below):
            verdict = OPEN if case.relaxed else FAILS
        elif case.contracts and ours >= 1.0:
            verdict = VACUOUS
        else:
            verdict = LOOSELY if case.relaxed or abs(gap) > SHARP - 1.0 else HOLDS
    return Comparison(case, below, ours, printed, gap, printed_gap, verdict)
