"""What a check of a lecture says when it fails: what was expected, and what came."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

CLOSE = ("isclose", "allclose")
SEEN_THROUGH = (*CLOSE, "abs", "len", "min", "max", "sum", "all", "any", "isnan", "isinf", "sorted", "type")


class Came:
    """Keeps the values that a condition is made of.

    Examples
    --------
    >>> came = Came()
    >>> came("f(2)", 5.0) == 4
    False
    >>> print(came.said("f(2) == 4"))
    expected: f(2) == 4
    came:     f(2) = 5
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def __call__(self, source: str, value: Any) -> Any:
        """The value; its source is what is named if the check fails."""
        self.values[source] = value
        return value

    def said(self, expected: str, message: object = None) -> str:
        """What was expected, and what came."""
        head = [] if message is None else [str(message)]
        came = [f"{source} = {_short(value)}" for source, value in self.values.items()]
        return "\n".join([*head, f"expected: {expected}", *(f"came:     {line}" for line in came)])


def _short(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = np.array2string(value, precision=5, threshold=10) if isinstance(value, np.ndarray) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _expected(test: ast.expr) -> str:
    """A condition in words, where it says that two numbers are close."""
    match test:
        case ast.Call(args=[one, other, *_]) if _name(test) in CLOSE:
            return f"{ast.unparse(one)} close to {ast.unparse(other)}"
        case ast.Compare(ast.Call(args=[ast.BinOp(one, ast.Sub(), other)]), [ast.Lt() | ast.LtE()], [within]):
            if _name(test.left) == "abs":  # type: ignore[arg-type]
                return f"{ast.unparse(one)} = {ast.unparse(other)}, within {ast.unparse(within)}"
    return ast.unparse(test)


class _Keep(ast.NodeTransformer):
    """Puts the names and calls of a condition into a `Came`; no constants, and nothing inside of calls."""

    def _kept(self, node: ast.expr) -> ast.expr:
        came = ast.Name("__came__", ast.Load())
        return ast.Call(came, [ast.Constant(ast.unparse(node)), node], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _name(node) not in SEEN_THROUGH:
            return self._kept(node)
        node.args = [self.visit(argument) for argument in node.args]
        if isinstance(node.func, ast.Attribute) and not node.args:  # (a == b).all()
            node.func.value = self.visit(node.func.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._kept(node)

    visit_Attribute = visit_Subscript = visit_ListComp = visit_SetComp = visit_DictComp = visit_Name  # type: ignore

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return node

    visit_Lambda = visit_Starred = visit_NamedExpr = visit_Constant = visit_GeneratorExp  # type: ignore


class ExplainAsserts(ast.NodeTransformer):
    """Rewrites each ``assert`` so that its error says what was expected and what came; for IPython's transformers.

    Examples
    --------
    >>> tree = ast.fix_missing_locations(ExplainAsserts().visit(ast.parse("assert abs(g(3) - 9) < 1e-9")))
    >>> try:
    ...     exec(compile(tree, "a cell", "exec"), {"g": lambda x: 2 * x})
    ... except AssertionError as error:
    ...     print(error)
    expected: g(3) = 9, within 1e-09
    came:     g(3) = 6
    """

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Each part of a conjunction is a check of its own."""
        both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        parts = node.test.values if both else [node.test]  # type: ignore[attr-defined]
        made = []
        for part in parts:
            said = [repr(_expected(part)), *([ast.unparse(node.msg)] if node.msg else [])]
            kept, error = ast.unparse(_Keep().visit(part)), f"AssertionError(__came__.said({', '.join(said)}))"
            check = ast.parse(
                "__came__ = __import__('theory.plots.failed_checks', fromlist=['Came']).Came()\n"
                f"if not ({kept}):\n    raise {error}"
            )
            for inner in ast.walk(check):
                ast.copy_location(inner, node)
            made += check.body
        return made
