"""Every formula is tried with drawn arguments: inside its domain, at the edges of it, and outside.

Inside it is a finite number, or an infinite one where its docstring says so; and it raises nothing but ValueError, for
what only its body can check.  Outside it raises ValueError, which names an argument.
"""

import ast
import inspect
import math
import random

import numpy as np
import pytest

from theory import bounds
from theory.bounds.domains import KNOWN, ROUNDING

pytestmark = pytest.mark.filterwarnings("error")
FORMULAS = {name: one for name in bounds.__all__ if hasattr(one := getattr(bounds, name), "domain")}
DRAWS, ENOUGH = 600, 25  # tries for a formula, and calls that return something
FLOATS = (0.0, 1e-12, 1e-6, 0.1, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0, 7.5, 100.0, 1e6, 1e12)
INTEGERS = (0, 1, 2, 3, 4, 5, 8, 9, 16, 100, 1000, 10**6)
MOST = {  # the largest number that formulas get which visit so many pairs or batches, or matrices of that size
    "async_moment": 1000,
    "delay_factor": 30,
    "delay_variance": 30,
    "ecd_second_moment": 1000,
    "fastest_k": 100,
    "geometric_levels": 1000,
    "growing_batches": 1000,
    "nuqsgd_code_length": 1000,
    "nuqsgd_variance_attained": 100,
    "qsgd_variance_attained": 1000,
    "sampled_fedavg_gap": 1000,
    "scaffold_factor": 100,
}
VECTORS = ([1.0], [0.0, 1.0], [0.5, 0.5], [0.25, 0.5, 1.0], [1.0, 2.0, 3.0], [-3.0, 4.0, 0.0], [1e-12, 1e12], [0.0] * 3)
ARRAYS = {
    "eigenvalues": ([1.0, 0.0], [1.0, 0.5, 0.5], [1.0, -0.5, 0.25], [1.0, -1.0 + 1e-12], [1.0, 1.0 - 1e-12, 0.0]),
    "curvatures": ([1.0, 2.0], [0.5, 1e-12], [1e6, 1.0], np.array([np.eye(2), np.diag([0.5, 2.0])])),
    "minimisers": ([0.0, 1.0], [-1.0, 1e6], np.array([[0.0, 1.0], [2.0, 0.0]])),
    "levels": ([0.0, 1.0], [1.0], [0.0, 1e-12, 1.0], [0.25, 0.5, 1.0]),
    "positions": ([0], [0, 1], [0, 2, 3]),
    "residuals": ([[1.0, 0.0], [0.0, 2.0]], [[0.0, 0.0]], [[1e12, 1e-12], [1.0, 1.0]]),
    "A": ([[1.0, 2.0], [3.0, 1.0]], [[1e-12]], [[1e6, 1.0]]),
    "b": ([1.0, -1.0], [1e12], [0.0]),
    "hessian": ([1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]], [1e-12]),
    "covariance": (1.0, [1.0, 0.0], [[2.0, 1.0], [1.0, 2.0]]),
    "batches": ([1.0], [1, 2, 4], [1e12, 1e-12]),
    "first": ((1.0, 2.0), (1e-12, 1e12), (1.0, 1.0)),
    "second": ((0.5, 2.0), (1e-6, 1.0)),
}


def drawn(name, argument, rng):
    """A value of the right kind, often outside the domain."""
    words = [word for one in argument.conditions for word in one.words]
    if argument.optional and rng.random() < 0.4:
        return None
    if words:
        return rng.choice(words)
    if argument.kind.startswith("str"):
        default = FORMULAS[name].domain.signature.parameters[argument.name].default
        return "sharp" if default is inspect.Parameter.empty else default
    if argument.kind == "bool":
        return rng.random() < 0.5
    if not argument.number:
        return rng.choice(ARRAYS.get(argument.name, VECTORS))
    if argument.integer:
        return min(rng.choice(INTEGERS), MOST.get(name, INTEGERS[-1]))
    return min(rng.choice(FLOATS), MOST.get(name, FLOATS[-1])) * rng.choice((1.0, 1.0, 1.0 + ROUNDING, 1.0 - 1e-9))


def fitted(name, one, argument, values, rng):
    """A value of the condition's subject within its limits: at an edge, next to it, or between."""
    edges = {limit.operator: float(eval(limit.code, KNOWN, dict(values))) for limit in one.limits}
    low = next((e for o, e in edges.items() if o in (ast.Gt, ast.GtE)), None)
    high = next((e for o, e in edges.items() if o in (ast.Lt, ast.LtE)), None)
    if ast.Eq in edges:
        return edges[ast.Eq]
    if low is None and high is None:
        return rng.choice(FLOATS)
    if low is None:
        low = min(0.0, high - 1.0)
    if high is None or math.isinf(high):
        high = 2.0 * max(low, 1.0)
    if argument.integer:
        return rng.choice((math.ceil(low), max(math.ceil(low), min(math.floor(high), MOST.get(name, 10**6)))))
    share = rng.choice((0.0, 1.0, 1e-12, 1.0 - 1e-12, 0.5, 0.1))
    return low + share * (high - low)


def inside(name, rng):
    """Arguments inside the domain, as it is stated; None if they were not found."""
    domain = FORMULAS[name].domain
    arguments = {one.name: one for one in domain.arguments}
    values = {one.name: drawn(name, one, rng) for one in domain.arguments}
    conditions = [(argument, one) for argument in domain.arguments for one in argument.conditions]
    conditions.sort(key=lambda pair: len(pair[1].names))  # as they are checked
    for _ in range(200):
        given = {n: np.asarray(v, float) if arguments[n].array and v is not None else v for n, v in values.items()}
        absent = {n for n, v in values.items() if v is None and arguments[n].optional}
        broken = ((a, one) for a, one in conditions if not one.names & absent and not one.holds(given))
        argument, one = next(broken, (None, None))
        if one is None:
            return values
        if one.limits and argument.number and not one.words:
            values[argument.name] = fitted(name, one, argument, given, rng)
        else:
            again = rng.choice(sorted(one.names) or sorted(values))
            values[again] = drawn(name, arguments[again], rng)
    return None


def flat(found):
    """All numbers of an answer."""
    if found is None or isinstance(found, str):
        return []
    if isinstance(found, (tuple, list, np.ndarray)):
        return [number for one in found for number in flat(one)]
    return [float(found)]


def refusal(name, values):
    """The argument that the error names; None if there is none."""
    try:
        FORMULAS[name](**values)
    except ValueError as error:
        named = str(error).partition(":")[0]
        assert named in values, f"{name}({values}): {error}"
        return named
    return None


@pytest.mark.parametrize("name", FORMULAS)
def test_inside_its_domain_a_formula_is_a_number(name):
    rng, found = random.Random(name), 0
    said = inspect.getdoc(FORMULAS[name])
    may_be_infinite = "infin" in (said.partition("\nParameters\n")[0] + said.rpartition("\nReturns\n")[2]).lower()
    for _ in range(DRAWS):
        values = inside(name, rng)
        if values is None or refusal(name, values):  # a condition that only the body checks
            continue
        numbers = flat(FORMULAS[name](**values))
        assert not any(map(math.isnan, numbers)), values
        assert may_be_infinite or not any(map(math.isinf, numbers)), values
        if (found := found + 1) == ENOUGH:
            return
    assert found >= 5


def beyond(argument, one, values):
    """Values that break a condition: at an open edge, and past the edge."""
    for limit in one.limits:
        edge = eval(limit.code, KNOWN, dict(values))
        by = 1 if argument.integer else 1e-6 * abs(edge) + 1e-30
        if limit.operator in (ast.Gt, ast.Lt):
            yield edge
        if limit.operator in (ast.GtE, ast.Gt):
            yield edge - by
        if limit.operator in (ast.LtE, ast.Lt):
            yield edge + by


@pytest.mark.parametrize("name", FORMULAS)
def test_outside_its_domain_a_formula_is_refused(name):
    rng = random.Random(name)
    domain = FORMULAS[name].domain
    for _ in range(5):
        values = next(found for found in (inside(name, rng) for _ in range(DRAWS)) if found is not None)
        for argument in domain.arguments:
            wrong = ["a word"]
            if argument.number:
                wrong += [math.nan, *([] if argument.optional else [None]), *([2.5] if argument.integer else [])]
                for one in argument.conditions:
                    if one.limits and not one.words and not any(values[n] is None for n in one.names):
                        wrong += [w for w in beyond(argument, one, values) if math.isfinite(w)]
                if not any("inf" in one.text.replace("< inf", "") for one in argument.conditions):
                    wrong += [math.inf, -math.inf]
            elif not argument.array and not argument.kind.startswith("str"):
                continue
            for given in wrong:
                assert refusal(name, values | {argument.name: given}), f"{argument.name} = {given} in {values}"


def test_whole_numbers_may_come_as_floats_and_numbers_of_numpy():
    for name in (
        "geometric_levels",
        "qsgd_elias_length",
        "nuqsgd_code_length",
        "zero_memory",
        "exponential_order_mean",
    ):
        rng = random.Random(name)
        values = next(found for found in (inside(name, rng) for _ in range(DRAWS)) if found is not None)
        wanted = FORMULAS[name](**values)
        for kind in (float, np.int64, np.float64):
            same = {n: kind(v) if isinstance(v, int) else v for n, v in values.items()}
            assert np.array_equal(FORMULAS[name](**same), wanted)
    assert bounds.nuqsgd_variance(2**20, np.int64(40), form="2^(2s+1)") == bounds.nuqsgd_variance(
        2**20, 40, form="2^(2s+1)"
    )
