"""Stored solutions against the solver's, solved again: pip install "sgd-theory[pepit]"."""

from __future__ import annotations

import pytest

import theory as th
from theory.worst import CASES, TOLERANCE, compared, solution_of

pytest.importorskip("PEPit", reason='worst cases are solved again with PEPit: pip install "sgd-theory[pepit]"')
SOLVERS = 1e-6  # relative: of two versions of the solvers
# The solver stops short of the supremum at another place on every machine: 7.99936 and 7.99958 so far.
SUPREMUM = {"variance_reduced_gradient": 8.0}
SHORT = 2e-4  # relative


@pytest.mark.parametrize("id", CASES)
def test_a_kept_solution_is_what_the_solver_finds(id):
    from theory.worst.solver import solve

    case = CASES[id]
    found, stored = solve(case), solution_of(case)
    if id in SUPREMUM:
        least, most = (1 - SHORT) * SUPREMUM[id], (1 + SOLVERS) * SUPREMUM[id]
        assert least <= found.value <= most and least <= stored.value <= most
    else:
        assert found.value == pytest.approx(stored.value, rel=SOLVERS)
    assert found.attained <= found.value + SOLVERS * abs(found.value)
    assert len(found.gram) == len(stored.gram)
    assert compared(case, found).verdict == compared(case, stored).verdict


@pytest.mark.parametrize(
    ("method", "steps", "facts"),
    [
        ("gd", 2, {"step": 0.1}),
        ("ef", 3, {"constants": [(1.0, 30.0)], "s": 0.8, "step": 0.01}),
        ("ef-different", 2, {"constants": [(1.0, 2.0), (3.0, 5.0), (0.5, 8.0)]}),
        ("local-gd", 6, {"local_steps": 3}),
    ],
)
def test_a_case_of_your_own_is_solved_and_run(method, steps, facts):
    worst = th.worst_case(method, steps, **facts)
    assert worst.left(worst.run()) == pytest.approx(worst.value, rel=TOLERANCE)


def test_a_larger_class_has_a_worse_case():
    values = [th.worst_case("ef", 2, constants=[(1.0, top)], step=0.25).value for top in (4.0, 6.0, 8.0)]
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("top", [1e-6, 1e8])
@pytest.mark.parametrize(("method", "steps"), [("gd", 2), ("ef", 2), ("ef21", 2), ("compressed-gd", 2)])
def test_the_scale_of_the_functions_changes_nothing(method, steps, top):
    """Solvers need numbers near 1; with L = 1e8 gradient descent was said to leave less than it does."""
    alike = th.worst_case(method, steps, constants=[(0.01, 1.0)], step=0.1)
    found = th.worst_case(method, steps, constants=[(0.01 * top, top)], step=0.1 / top)
    assert found.value == pytest.approx(alike.value, rel=SOLVERS)
    assert found.left(found.run()) == pytest.approx(found.value, rel=TOLERANCE)


def test_a_value_that_its_own_run_does_not_reach_is_refused():
    """What is left is (1 - mu/L)^60 = 0.0017970, and the solver finds less."""
    with pytest.raises(ValueError, match="cannot be solved accurately: it says that 0.0017.* is left, and its own run"):
        th.worst_case("gd", 30, constants=[(0.1, 1.0)], step=1.0)


def test_a_solver_that_fails_is_an_error_of_ours(monkeypatch):
    from cvxpy.error import SolverError
    from PEPit import PEP

    def fails(*_, **__):
        raise SolverError("no solution")

    monkeypatch.setattr(PEP, "solve", fails)
    with pytest.raises(ValueError, match="cannot be solved: gd.7: CLARABEL failed: no solution"):
        th.worst_case("gd", 7)
