"""The annotations: the package passes mypy, and who uses it is told the types of what comes back."""

from __future__ import annotations

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
