"""The annotations: the package passes mypy, and who uses it is told the types of what comes back."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """\
import numpy as np

import theory as th

data = th.load_data("digits")
problem = th.logistic(data, l2=1.0 / data.n)
method = th.ParallelSGD(th.TopK(10), step=th.Constant(0.1), feedback=th.ErrorFeedback(), batch=4)
result = th.run(method, problem, workers=4, steps=100)
reveal_type(data.n)
reveal_type(problem.d)
reveal_type(result.x)
reveal_type(result.fun)
reveal_type(th.solve(problem).x)
reveal_type(th.lipschitz(problem))
reveal_type(th.omega(th.QSGD(4), problem.d))
reveal_type(th.audit(th.TopK(3)).ok)
reveal_type(th.quadratic(np.ones(4), covariance=0.0).noise)
th.TopK("ten")
th.run(method, problem, workers="four", steps=100)
"""
REVEALED = ["int", "int", "numpy.ndarray", "float", "numpy.ndarray", "float", "float", "bool", "float"]


def mypy(*arguments) -> subprocess.CompletedProcess:
    pytest.importorskip("mypy", reason="types: mypy is not installed (make test installs it)")
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--no-error-summary", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.slow
def test_the_package_and_a_users_script(tmp_path):
    """One cache for both, so that the package is read once; what mypy says of the script is about the script alone."""
    cache = f"--cache-dir={tmp_path / 'cache'}"
    package = mypy(cache)
    assert package.returncode == 0, package.stdout + package.stderr

    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    found = mypy(cache, "--follow-imports=silent", script).stdout
    # Older versions of mypy write builtins.int, and of NumPy other parameters of an array.
    assert re.findall(r'Revealed type is "(?:builtins\.)?([\w.]+).*"', found) == REVEALED, found
    wrong = re.findall(r"script.py:(\d+): error: .*\[(.*)\]", found)
    lines = {text: number for number, text in enumerate(SCRIPT.splitlines(), 1)}
    assert wrong == [
        (str(lines['th.TopK("ten")']), "arg-type"),
        (str(lines['th.run(method, problem, workers="four", steps=100)']), "arg-type"),
    ], found


PARTS = ("problems", "compressors", "wire", "data", "measure", "plots", "reporting", "experiment")
COMPILED = ("kernel", "register", "force_inline", "intrinsic")


def unannotated(path: Path, generics: set[str]) -> list[str]:
    """Public functions and methods of a file without all annotations, except for kernels."""
    found = []

    def look(body, cls: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                look(node.body, node.name)
            if not isinstance(node, ast.FunctionDef) or (node.name.startswith("_") and node.name != "__init__"):
                continue
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if any(word in decorators for word in COMPILED) or (cls and node.name in generics):
                continue
            named = [*node.args.posonlyargs, *node.args.args]
            bound = bool(cls) and "staticmethod" not in decorators  # the first is the setting itself, or self
            rest = [*named[bound:], *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            if node.returns is None or any(one is not None and one.annotation is None for one in rest):
                found.append(f"{path.name}:{node.lineno} {cls + '.' * bool(cls)}{node.name}")

    look(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


def test_public_functions_that_are_no_kernels_are_annotated():
    """mypy sees that no function has some of its annotations only."""
    sources = sorted((ROOT / "theory").rglob("*.py"))
    made = re.compile(r'= generic\(\s*"(\w+)"')
    generics = {name for path in sources for name in made.findall(path.read_text(encoding="utf-8"))}
    assert {"quantize", "add_loss_gradient"} <= generics and "omega" not in generics
    missing = [name for part in PARTS for path in sources if part in path.parts for name in unannotated(path, generics)]
    assert missing == []


def test_a_function_without_annotations_is_noticed(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("class A:\n    def f(self, x): pass\n    def quantize(c, v): pass\n\ndef g(x: int): pass\n")
    assert unannotated(file, {"quantize"}) == ["own.py:2 A.f", "own.py:5 g"]
