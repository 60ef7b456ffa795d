"""Every formula occurs in a claim, and a formula that is a sum gives its summands: a claim can then miss each of them.

A sum is what a formula returns, or a name that it returns, if no summand is subtracted or an integer constant.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from theory import bounds

PACKAGE = Path(bounds.__file__).parents[1]
EXCEPTIONS = {
    "chord_positions": "positions of entries among the levels: an integer part and a fraction",
    "exact_feedback_multiplier": "a root of a polynomial: its parts mean nothing by themselves",
    "exact_feedback_rate": "a root of a polynomial: its parts mean nothing by themselves",
    "optimal_ratio": "the middle of an interval that is halved",
    "overlap_gain": "the seconds of a round in a ratio: without one of its two parts there is nothing to overlap",
    "pl_sgd_decreasing_exact": "a recursion: what stands in the last line is one step of it",
    "sgd_scaled_inverse_time": "a recursion: what stands in the last line is one step of it",
}


def formulas() -> dict[str, ast.FunctionDef]:
    """The public formulas by name, as syntax trees."""
    found = {}
    for path in sorted((PACKAGE / "bounds").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name in bounds.__all__:
                found[node.name] = node
    return found


FORMULAS = formulas()


def summands(value: ast.expr) -> list[ast.expr]:
    """The summands of a + b + ...; a factor beside a sum in parentheses is left out."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return summands(value.left) + summands(value.right)
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        for side in (value.left, value.right)[: 2 if isinstance(value.op, ast.Mult) else 1]:
            inner = summands(side)
            if len(inner) > 1:
                return inner
    return [value]


def negative(term: ast.expr) -> bool:
    """Whether a summand is subtracted."""
    subtracted = isinstance(term, ast.BinOp) and isinstance(term.op, ast.Sub)
    return subtracted or (isinstance(term, ast.UnaryOp) and isinstance(term.op, ast.USub))


def plain_sums(function: ast.FunctionDef) -> list[str]:
    """The sums of at least two terms, none subtracted and none a constant, that a function returns."""
    own = [node for node in ast.walk(function) if isinstance(node, (ast.Return, ast.Assign))]
    assigned = {
        node.targets[0].id: node.value
        for node in own
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    found = []
    for node in own:
        if isinstance(node, ast.Return) and node.value is not None:
            value = assigned.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value
            terms = summands(value)
            if len(terms) > 1 and not any(negative(t) or isinstance(t, ast.Constant) for t in terms):
                found.append(ast.unparse(value))
    return found


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_a_sum_gives_its_summands(name):
    found = plain_sums(FORMULAS[name])
    if name in EXCEPTIONS:
        assert found and len(EXCEPTIONS[name]) > 20, "an exception that is no longer one, or without a reason"
    else:
        assert not found, f"return total(name=..., ...) for {found}"


def test_sums_are_found():
    """The test of the test."""
    (function,) = ast.parse("def f(a, b):\n    x = 2 * (a + b)\n    return x").body
    assert isinstance(function, ast.FunctionDef) and plain_sums(function) == ["2 * (a + b)"]
    for text in ("a - b", "1.0 + a", "total(a=a, b=b)", "max(a + b, 0)"):
        (function,) = ast.parse(f"def f(a, b):\n    return {text}").body
        assert isinstance(function, ast.FunctionDef) and plain_sums(function) == []


def test_every_formula_occurs_in_a_claim():
    claims = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "claims").rglob("*.py"))
    missing = [name for name in FORMULAS if not re.search(rf"\bbounds\.{name}\b", claims)]
    assert not missing, "a claim whose prediction each of these is, or out of the public names"
