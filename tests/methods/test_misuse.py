"""Whatever a round function does with the operations of a run, it gets an exception, and never a signal.

Each example is a run (dense, with models of their own, or sparse with a memory, a velocity, local models or a ball) and
up to twenty steps: operations with arrays, numbers, messages and settings of all kinds, a third of them not allowed,
and what may be done behind the run's back to messages, shapes, owners and attributes.  ``misuse_job.py`` has the steps.
They are taken in a process of its own, whose kernels check bounds: an index beyond an array fails the test as well.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).with_name("misuse_job.py")


@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(400, marks=pytest.mark.slow),
        pytest.param(50_000, marks=[pytest.mark.slow, pytest.mark.full]),
    ],
)
def test_an_exception_and_never_a_signal(examples, tmp_path):
    steps = tmp_path / "steps"
    done = subprocess.run([sys.executable, str(JOB), str(examples), str(steps)], capture_output=True, text=True)
    last = steps.read_text().rpartition("---")[2]
    died = signal.Signals(-done.returncode).name if done.returncode < 0 else ""
    assert not died, f"{died} in the last of these steps:\n{last}\n{done.stderr[-2000:]}"
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    found = re.search(r"(\d+) examples, (\d+) calls accepted, (\d+) refused", done.stdout)
    assert int(found[1]) >= examples and int(found[2]) > examples and int(found[3]) > examples, done.stdout
