"""Worst cases by semidefinite programs: PEPit with an open solver, ``pip install "theory[pepit]"``."""

from __future__ import annotations

import importlib.util
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

from .cases import Case, Solution
from .lemmas import LEMMAS
from .programs import MEASURES, PROGRAMS, State, World

SOLVER = "CLARABEL"
INSIDE = 1e-7  # so that the points of an instance are those of a function of the class, in spite of rounding
PRECISION = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


class Unknowns(World):
    """A world of unknown vectors and values: what a program asks for becomes a variable, or a constraint.

    Parameters
    ----------
    case : Case
    inside : float
        The share by which functions and compressor are kept inside their class.
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
        """A vector, of which nothing is known."""
        self.leaves.append(self._pepit.Point())
        return self.leaves[-1]

    def assume(self, constraint: Any) -> None:
        """Require this."""
        self.pep.add_constraint(constraint)

    def look(self, i: int, x: Any) -> tuple[Any, Any]:
        """A gradient and a value; of a Moreau envelope those that a subgradient where its step ends makes."""
        f, g, value = self._functions[i], self.unknown(), self._pepit.Expression()
        if "L" in vars(f):
            f.add_point((x, g, value))
        else:
            f.add_point((x - self._length * g, g, value - self._length / 2.0 * g**2))
        self.values.append(value)
        return g, value

    def send(self, i: int, v: Any) -> Any:
        """What worker i sends for v."""
        c = self.unknown()
        self.assume((c - v) ** 2 <= (self.s * (1.0 - self._inside)) ** 2 * v**2)
        return c

    def square(self, v: Any) -> Any:
        """||v||^2."""
        return v**2


def solve(case: Case) -> Solution:
    """Solve the semidefinite program of a case.

    Parameters
    ----------
    case : Case

    Returns
    -------
    Solution

    Raises
    ------
    ImportError
        If PEPit is not installed.
    RuntimeError
        If the solver found nothing.
    """
    if importlib.util.find_spec("PEPit") is None:
        raise ImportError("PEPit, which makes worst cases, is not installed (pip install 'theory[pepit]')")
    w, value = _solved(case)
    attained = value
    gram: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    if case.runs:
        w, attained = _solved(case, INSIDE)
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
