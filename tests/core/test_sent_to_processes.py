"""Results, methods and problems, one's own in a script included, go to other processes and come back."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from conftest import ROOT, run_group

import theory as th

PROBLEM = th.logistic((np.eye(3), np.array([1.0, -1.0, 1.0])), l2=0.1)
METHOD = th.ParallelSGD(th.TopK(2), step=0.1, feedback=th.ErrorFeedback())


def go_on(method, problem, before):
    return th.run(method, problem, workers=2, steps=6, resume=before)


def test_a_run_goes_on_in_another_process():
    begun, whole = th.run(METHOD, PROBLEM, workers=2, steps=3), th.run(METHOD, PROBLEM, workers=2, steps=6)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = pool.submit(go_on, METHOD, PROBLEM, begun).result()
    assert np.array_equal(found.x, whole.x) and np.array_equal(found.history["f"], whole.history["f"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: th.run(METHOD, PROBLEM, workers=2, steps=3, seed=range(3)),
        lambda: th.run(METHOD, PROBLEM, workers=2, steps=3, replicas=3),
        lambda: th.compare({"a": METHOD}, PROBLEM, workers=2, steps=3),
    ],
    ids=["seeds", "replicas", "compare"],
)
def test_what_was_returned_is_the_same_after_pickling(make):
    found = make()
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is type(found) and str(again) == str(found)


SCRIPT = """
import sys, cloudpickle, numpy as np, theory as th
from typing import Any, NamedTuple
@th.method
class Halved(NamedTuple):
    step: Any = th.Constant(0.1)
    compressor: Any = th.Identity()
    def round(self, run):
        p = run.scratch()
        run.set_gradient(p, at=run.x)
        run.add(run.x, run.gather(run.compress(self.compressor, p)), scale=-0.5 * run.eta)
problem = th.function(lambda x: 0.5 * float(x @ x), lambda x: x, 3)
result = th.run(Halved(), problem, workers=1, steps=3, x0=np.ones(3))
open(sys.argv[1], "wb").write(cloudpickle.dumps((Halved(), problem, result)))
"""
ELSEWHERE = """
import sys, pickle
method, problem, result = pickle.loads(open(sys.argv[1], "rb").read())
import numpy as np, theory as th
print(result.x[0], th.run(method, problem, workers=1, steps=3, x0=np.ones(3)).x[0])
"""


@pytest.mark.slow
def test_a_method_of_a_script_is_sent_by_value(tmp_path):
    pytest.importorskip(
        "cloudpickle", reason="cloudpickle, with which joblib and dask send functions, is not installed"
    )
    for text in (SCRIPT, ELSEWHERE):
        command = [sys.executable, "-c", text, str(tmp_path / "sent")]
        done = run_group(command, timeout=120, env={"PYTHONPATH": ROOT})
        assert done.returncode == 0, done.stderr
    first, second = map(float, done.stdout.split())
    assert first == second == pytest.approx(0.95**3)
