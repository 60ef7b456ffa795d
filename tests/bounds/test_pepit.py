"""Closed forms against worst cases that are computed by semidefinite programs: pip install "theory[pepit]".

A performance estimation problem finds the worst function of a class for a method.  Where a bound is tight, the two
numbers agree; elsewhere the computed one is below.
"""

from __future__ import annotations

import pytest

from theory import bounds

pepit = pytest.importorskip("PEPit", reason='the worst cases want PEPit: pip install "theory[pepit]"')
functions = pytest.importorskip("PEPit.functions")

TOLERANCE = 1e-4  # of the solvers, relative


def setup(kind, **parameters):
    """A problem with a function of this class, its minimum, and a start."""
    problem = pepit.PEP()
    f = problem.declare_function(kind, **parameters)
    minimum = f.stationary_point()
    return problem, f, minimum, problem.set_initial_point()


def solved(problem, metric):
    problem.set_performance_metric(metric)
    return problem.solve(verbose=0)


def descent(kind, steps, gamma, **parameters):
    """The largest f(x_T) - f* of gradient descent where f(x_0) - f* = 1 at most."""
    problem, f, minimum, x = setup(kind, **parameters)
    problem.set_initial_condition(f(x) - f(minimum) <= 1)
    for _ in range(steps):
        x = x - gamma * f.gradient(x)
    return solved(problem, f(x) - f(minimum))


def two_gradients(f, x):
    """An unbiased stochastic gradient with two values, grad f +- e, and e."""
    e = pepit.Point()
    return [f.gradient(x) + e, f.gradient(x) - e], e


@pytest.mark.parametrize("gamma", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("steps", [1, 2])
def test_gradient_descent_on_strongly_convex_functions(gamma, steps):
    worst = descent(functions.SmoothStronglyConvexFunction, steps, gamma, L=1.0, mu=0.2)
    assert worst == pytest.approx(
        bounds.gd_strongly_convex(steps, mu=0.2, lipschitz=1.0, step=gamma, gap=1.0), rel=TOLERANCE
    )


@pytest.mark.parametrize("gamma", [0.3, 0.7, 1.0, 1.4, 1.8, 1.95])
def test_gradient_descent_under_the_polyak_lojasiewicz_inequality(gamma):
    known = dict(mu=0.2, lipschitz=1.0, step=gamma, gap=1.0)
    worst = descent(functions.SmoothQuadraticLojasiewiczFunctionCheap, 1, gamma, L=1.0, mu=0.2)
    assert worst == pytest.approx(bounds.pl_gd(1, form="sharp", **known), rel=TOLERANCE)
    assert worst <= bounds.pl_gd(1, **known) * (1 + TOLERANCE)


def test_two_steps_under_the_polyak_lojasiewicz_inequality():
    worst = descent(functions.SmoothQuadraticLojasiewiczFunctionCheap, 2, 1.0, L=1.0, mu=0.2)
    assert worst <= bounds.pl_gd(2, mu=0.2, lipschitz=1.0, step=1.0, gap=1.0, form="sharp") * (1 + TOLERANCE)


@pytest.mark.parametrize("gamma", [0.1, 0.5])
def test_sgd_on_strongly_convex_functions(gamma):
    """The second moment of the gradients is bounded: squared distance after one step."""
    problem, f, minimum, x = setup(functions.StronglyConvexFunction, mu=1.0)
    draws, _ = two_gradients(f, x)
    problem.set_initial_condition((x - minimum) ** 2 <= 2.0)
    problem.add_constraint(sum(g**2 for g in draws) / 2 <= 5.0)
    worst = solved(problem, sum((x - gamma * g - minimum) ** 2 for g in draws) / 2)
    bound = bounds.sgd_constant_step(1, mu=1.0, step=gamma, second_moment=5.0, distance=2.0)
    assert worst == pytest.approx(bound, rel=TOLERANCE)


@pytest.mark.parametrize("gamma", [0.1, 0.6])
def test_sgd_with_bounded_variance(gamma):
    """The variance is bounded, and f is smooth: quadratics are the worst, up to the step 2/(L + mu)."""
    problem, f, minimum, x = setup(functions.SmoothStronglyConvexFunction, L=2.0, mu=1.0)
    draws, e = two_gradients(f, x)
    problem.set_initial_condition((x - minimum) ** 2 <= 2.0)
    problem.add_constraint(e**2 <= 3.0)
    worst = solved(problem, sum((x - gamma * g - minimum) ** 2 for g in draws) / 2)
    exact = bounds.sgd_constant_step_exact(1, mu=1.0, step=gamma, variance=3.0, distance=2.0)
    assert worst == pytest.approx(exact, rel=TOLERANCE)


@pytest.mark.parametrize("step", [0.1, 0.5])
def test_one_step_of_sgd_on_a_smooth_function(step):
    problem, f, minimum, x = setup(functions.SmoothFunction, L=2.0)
    draws, _ = two_gradients(f, x)
    problem.set_initial_condition(f(x) - f(minimum) == 3.0)
    problem.add_constraint(f.gradient(x) ** 2 == 1.0)
    problem.add_constraint(sum(g**2 for g in draws) / 2 <= 5.0)
    worst = solved(problem, sum(f(x - step * g) - f(minimum) for g in draws) / 2)
    bound = bounds.pl_sgd_step(3.0, lipschitz=2.0, step=step, gradient_squared=1.0, second_moment=5.0)
    assert worst == pytest.approx(bound, rel=TOLERANCE)


@pytest.mark.parametrize("step", [0.2, 1.0])
def test_sgd_under_the_polyak_lojasiewicz_inequality(step):
    """Theorem 4 for one step: an upper bound, and near the worst case where L is near mu."""
    problem, f, minimum, x = setup(functions.SmoothQuadraticLojasiewiczFunctionCheap, L=0.501, mu=0.5)
    draws, _ = two_gradients(f, x)
    problem.set_initial_condition(f(x) - f(minimum) <= 1.0)
    problem.add_constraint(sum(g**2 for g in draws) / 2 <= 5.0)
    worst = solved(problem, sum(f(x - step * g) - f(minimum) for g in draws) / 2)
    bound = bounds.pl_sgd_constant_step(1, mu=0.5, lipschitz=0.501, step=step, second_moment=5.0, gap=1.0)
    assert 0.98 * bound <= worst <= bound * (1 + TOLERANCE)
