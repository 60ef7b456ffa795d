"""Code lines of the package, its tests and its benchmarks: each part has a budget, and who raises one says why."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from conftest import ROOT

BUDGETS = {  # code lines: no docstrings, comments and blank lines; what is measured, rounded up
    "theory": 58_570,
    "theory/bounds": 3_830,
    "theory/claims": 14_780,
    "theory/cluster": 4_630,
    "theory/compressors": 4_690,
    "theory/core": 2_340,
    "theory/data": 1_730,
    "theory/experiment": 4_070,
    "theory/measure": 1_520,
    "theory/methods": 6_200,
    "theory/plots": 1_350,
    "theory/problems": 2_430,
    "theory/reporting": 560,
    "theory/studies": 8_230,
    "theory/wire": 1_330,
    "theory/worst": 950,
    "tests": 26_400,
    "benchmarks": 2_370,
}


def code_lines(text: str) -> int:
    """Lines of a module with code; those of a text that is no docstring count all."""
    lines = enumerate(text.splitlines(), 1)
    found = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        first = node.body[0] if isinstance(getattr(node, "body", None), list) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            documented |= set(range(first.lineno, first.end_lineno + 1))
        elif isinstance(node, (ast.Constant, ast.JoinedStr)) and node.lineno < node.end_lineno:
            found |= set(range(node.lineno, node.end_lineno + 1))
    return len(found - documented)


@functools.cache
def lines_of(path: Path) -> int:
    return code_lines(path.read_text(encoding="utf-8"))


def lines_in(folder: Path) -> int:
    return sum(map(lines_of, folder.rglob("*.py")))


def test_only_code_is_counted():
    head = '"""A module.\n\nWith words."""\n\n# a comment\n\n'
    text = head + 'x = [\n    1,  # one\n\n]\ny = """a\n\n# b"""\n\n\ndef f():\n    """Words."""\n    return x\n'
    assert code_lines(text) == 8  # x = [, 1, ], three lines of y, def, return


def test_each_part_stays_within_its_budget():
    found = {name: lines_in(ROOT / name) for name in BUDGETS}
    assert {name: n for name, n in found.items() if n > BUDGETS[name]} == {}
    parts = {f"theory/{path.parent.name}" for path in (ROOT / "theory").glob("*/__init__.py")}
    assert parts == {name for name in BUDGETS if "/" in name}
