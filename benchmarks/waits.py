"""What a person waits for: commands and tests with compiled code cached, and a first picture with an empty cache.

Each runs once in a process of its own, on all cores.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from . import ENVIRONMENT
from .pairing import Row

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "`verify --quick`, all claims": (("theory.experiment", "verify", "--quick"), 120.0),
    "`audit`, all compressors": (("theory.experiment", "audit"), 150.0),
    "the tests of slopes": (("pytest", "-q", "-n", "auto", "tests/test_slopes.py"), 60.0),
}
PICTURE = """
import json, sys, time, jupytext, nbclient
begin, notebook = time.perf_counter(), jupytext.read(sys.argv[1])
client = nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3")
with client.setup_kernel():
    for number, cell in enumerate(notebook.cells):
        client.execute_cell(cell, number)
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", ())):
            break
    else:
        raise SystemExit("no picture")
print(json.dumps(time.perf_counter() - begin))
"""


def child(program: str, *arguments: str, **variables: str):
    """What a program in a process of its own prints, as JSON."""
    environment = ENVIRONMENT | {"PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def command(*arguments: str, **variables: str) -> tuple[float, float]:
    """Seconds by the clock and of the processor that a module takes; NaN if it fails, whose errors are shown."""
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=ENVIRONMENT | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
    )
    wall, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        print(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-3000:]}", file=sys.stderr)
        return math.nan, math.nan
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent


def waits(given):
    """The commands and the tests, warm, and the first picture of lecture 4 from an empty cache."""
    for what, (arguments, most) in COMMANDS.items():
        wall, spent = command(*arguments)
        what = f"{what}, compiled code cached, {os.cpu_count()} cores: wall time"
        yield Row(what, "", np.array([wall]), ("at most", most), f"{spent:.0f} s of a processor", " s")
    lecture = str(*(ROOT / "notebooks").glob("04-*.md"))
    with tempfile.TemporaryDirectory() as folder:
        picture = child(PICTURE, lecture, THEORY_CACHE=folder)
    what = "lecture 4, nothing compiled or cached: its first picture, wall time"
    yield Row(what, "", np.array([picture]), ("at most", 20.0), "", " s")
