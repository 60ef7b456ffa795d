"""What is compiled ahead is found by the next process; work for several processes is done, in any order."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
from conftest import ROOT, run_group

import theory as th
from theory.compressors import registered
from theory.core.arguments import usable_cores
from theory.experiment.cli import main
from theory.experiment.compile_ahead import COMMON, FIRST, NoSuchJob, chosen, do, jobs
from theory.experiment.ranks import each

AGAIN = """
import os, sys
from theory.core import when_compiling
from theory.experiment.compile_ahead import do
when_compiling(lambda *_: (print("compiles", flush=True), os._exit(3)))
for name in sys.argv[1:]:
    do(name)
print("done")
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing(fresh_cache):
    environment = {"PYTHONPATH": ROOT}
    answer = run_group([sys.executable, "-m", "theory.experiment", "warm", "sign"], timeout=300, env=environment)
    assert answer.returncode == 0, answer.stderr
    assert re.search(rf"1 jobs? in \d+ s, 1 at a time; compiled code is in {fresh_cache}", answer.stdout)
    again = run_group([sys.executable, "-c", AGAIN, "Sign"], timeout=120, env=environment)
    assert again.stdout == "done\n", again.stdout + again.stderr
    other = run_group([sys.executable, "-c", AGAIN, "TopK"], timeout=120, env=environment)
    assert other.stdout == "compiles\n", "what was not warmed would be seen"


def test_everything_has_a_job():
    names = chosen()
    assert names[0] == COMMON and len(names) == len(set(names)) == len(jobs())
    assert {cls.__name__ for cls in registered() if cls.__module__.startswith("theory.")} <= set(names)
    assert set(FIRST) <= set(names)
    rules = {name for name in th.__all__ if name.endswith("Feedback")} - {"NoFeedback", "ErrorFeedback"}
    assert rules <= set(names)


def test_names_are_taken_in_any_case_and_wrong_ones_answered(capsys):
    assert chosen(["topk", "COMMON"]) == [COMMON, "TopK"]
    with pytest.raises(NoSuchJob, match="TopK"):
        chosen(["TopKay"])
    assert main(["warm", "--list", "qsgd"]) == 0
    assert capsys.readouterr().out == "QSGD\n"


@pytest.mark.parametrize("name", ["quadratic", "PermK", "flagship"])  # PermK is made for a number of workers
def test_a_job_says_how_long_it_took(name):
    assert 0.0 <= do(name) < 300.0


# --- processes --------------------------------------------------------------------------------------------------------


def square(x: int) -> int:
    if x < 0:
        raise ValueError(f"x: got {x}")
    return x * x


def stop(x: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_every_item_is_done_once():
    assert sorted(each(square, range(5), 2)) == [(k, k * k) for k in range(5)]
    assert list(each(square, [], 2)) == [] and usable_cores() >= 1


def test_an_error_in_a_process_is_an_error_here():
    with pytest.raises(ValueError, match="x: got -1"):
        list(each(square, [-1], 2))
    with pytest.raises(RuntimeError, match=r"killed while it ran one of \[7\]"):
        list(each(stop, [7], 2))
