"""Every benchmark runs, at sizes that take seconds: what nobody runs for a while stops running."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import ROOT, run_mpi

from benchmarks.__main__ import BENCHMARKS, STUDIES

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

ROWS = """
import sys
import numpy as np
import scipy.sparse as sp
from benchmarks import replicas, waits
from benchmarks.__main__ import BENCHMARKS, Given
from theory.data.dataset import make_dataset
rng = np.random.default_rng(0)
X = sp.random(2000, 60, 0.1, format="csr", random_state=rng)
replicas.REPLICAS = 100
# the commands themselves run in tests of their own
waits.COMMANDS = {"one compressor": (("theory.experiment", "audit", "--quick", "TopK"), 10.0)}
given = Given(make_dataset(X, np.where(rng.random(2000) < 0.5, 1.0, -1.0), "small"), None, 1)
for name in sys.argv[1:]:
    rows = list(BENCHMARKS[name](given))
    assert all("not installed" in row.what or (row.values > 0.0).all() for row in rows), name
    print(name, len(rows))
"""
ON_RANKS = {"exchange": 2, "overlap": 3, "gossip": 2, "flagship": 2}  # jobs, which have tests of their own


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


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("name", STUDIES)
def test_what_is_measured_on_ranks_is_shown_and_drawn(name):
    text = command("-m", "benchmarks", name, "--quick")
    assert "(our comparison)" in text and "not written" in text


@pytest.mark.slow
def test_every_row_of_one_process_is_measured():
    names = [name for name in BENCHMARKS if name not in ON_RANKS]
    found = dict(line.split() for line in command("-c", ROWS, *names).splitlines())
    assert list(found) == names and all(int(rows) > 0 for rows in found.values())


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("job", "arguments", "names"),
    [
        ("exchange_job", [1], ["bare", "gather", "round"]),
        ("gossip_job", [1], ["bare", "exchange", "round"]),
        ("overlap_job", [50, 1.0], ["ratios"]),
        ("full_size_job", [2000, 2], []),
    ],
)
def test_every_job_on_ranks_prints_what_was_measured(job, arguments, names):
    done = run_mpi(2, "-m", f"benchmarks.{job}", *map(str, arguments), timeout=400)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    found = found if isinstance(found, list) else [found]
    assert len(found) == (1 if job == "overlap_job" else 2)
    if job == "full_size_job":
        assert all(most > shard > 0.0 and private > 0.0 for shard, most, private in found)
        return
    for one in found:
        assert all(len(one[name]) >= 1 and min(one[name]) > 0.0 for name in names)


@pytest.mark.mpi
def test_ranks_say_how_much_memory_they_held(tmp_path):
    arguments = ["--methods", "sgd", "--steps", "5", "--data", "breast_cancer", "--out", str(tmp_path)]
    done = run_mpi(2, "-m", "benchmarks.rank_memory", *arguments, timeout=400)
    assert done.returncode == 0, done.stderr
    peaks = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("peak ")]
    assert len(peaks) == 2 and all(50.0 < mb < 2000.0 for mb in peaks)
