"""The benchmarks that have a table and a figure of their own run, at sizes that take seconds."""

from __future__ import annotations

import subprocess
import sys

from conftest import ROOT

WHOLE = """
import sys
import numpy as np
import scipy.sparse as sp
from benchmarks import growth, report, whole
from theory.data.dataset import make_dataset
rng = np.random.default_rng(0)
X = sp.random(300, 60, 0.1, format="csr", random_state=rng)
y = np.where(np.asarray(X @ rng.standard_normal(60)) > 0, 1.0, -1.0)
found = whole.measure(make_dataset(X, y, "small"), quick=True)
print(report.plain_table(whole.table(found)))
whole.draw(found)
lines = [tuple(growth.Grown("a line", "n", [1, 2, 4, 8], [1.0, 2.0, 4.0, 8.0], [5, 5, 5, 9], (0.5, 1.0)))] * 2
growth.draw({"lines": lines})
print("cells", *growth.cells(growth.Grown(*lines[0])), sep="|")
"""


def command(*arguments):
    """What Python prints: in a process of its own, since the package sets the number of threads."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_growth_measures_every_line():
    text = command("-m", "benchmarks", "growth", "--quick")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == 1 + 8 and "not written" in text
    for against in ("n", "nnz", "d", "N", "replicas", "bits"):
        assert any(line.split("|")[2].strip() == against for line in lines[1:]), against


def test_the_whole_measures_every_contestant():
    text = command("-c", WHOLE)
    for name in ("SGDClassifier", "SAGA", "L-BFGS", "plain SGD", "Mem-SGD", "QSGD"):
        assert name in text
    assert "cells|a line|n|1 to 8|1.00|0.5|**above**|0.85|1||" in text


def test_all_rows_are_measured_beside_others_in_parts_and_on_ranks():
    text = command("-m", "benchmarks", "full-size", "--quick")
    lines = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert lines[1:7] == ["SGDClassifier", "scikit-learn's SAGA", "scikit-learn's L-BFGS", "plain SGD",
                          "Mem-SGD, top 10", "QSGD, 4 bits"]  # fmt: skip
    assert lines[7:] == ["rows", "1,000", "2,000", "ranks", "1", "2"] and "not written" in text
