"""The package without Numba, as in a browser: kernels in plain Python give the same numbers, bit for bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lazy_loader
import pytest
from conftest import ROOT

FOLDER = ROOT / "notebooks" / "browser"
NUMBERS = FOLDER / "same_numbers.py"
PLAIN = f"import runpy, without_numba; runpy.run_path({str(NUMBERS)!r})"


def printed(*command) -> list[str]:
    env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{FOLDER}"}
    done = subprocess.run(list(map(str, command)), env=env, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_plain_kernels_give_the_numbers_of_compiled_ones():
    compiled = printed(sys.executable, NUMBERS)
    assert len(compiled) == 53
    assert printed(sys.executable, "-c", PLAIN) == compiled


def test_pyodide_gives_the_numbers_of_compiled_kernels(tmp_path):
    folder, node = os.environ.get("THEORY_PYODIDE"), shutil.which("node")
    if folder is None or node is None:
        pytest.skip("Pyodide: no node, or no folder of Pyodide with the wheels of NumPy and SciPy in THEORY_PYODIDE")
    shutil.copytree(Path(lazy_loader.__file__).parent, tmp_path / "lazy_loader")
    assert printed(node, FOLDER / "run.mjs", folder, tmp_path, NUMBERS) == printed(sys.executable, NUMBERS)
