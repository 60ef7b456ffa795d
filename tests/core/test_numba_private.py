"""The parts of Numba that are not public: where they are named, that they are there, and what happens without them."""

from __future__ import annotations

import ast
import os
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import theory
from theory.core import bound_calls as argument_layout
from theory.core import numba_private

PACKAGE = Path(theory.__file__).parent
ROOT = Path(__file__).resolve().parents[2]

RUN = """
import sys
import numba
import numpy as np
if sys.argv[1] == "another":
    numba.version_info = numba.version_info._replace(short=(0, 999))
import theory as th
from theory.core import inlined_kernels
assert inlined_kernels.TRIED == (sys.argv[1] == "tried")
problem = th.function(lambda x: 0.5 * float(x @ x), lambda x: x, d=6)
method = th.ParallelSGD(th.TopK(2), step=th.Constant(0.1), feedback=th.ErrorFeedback())
print(th.run(method, problem, workers=2, steps=50, x0=np.arange(6.0)).x.tobytes().hex())
"""


def test_private_names_stand_in_one_module():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            private = [name for name in names if name.startswith(("numba.core", "llvmlite.binding"))]
            assert not private or path.name == "numba_private.py", f"{path}: {private}"


def test_what_is_used_is_there():
    missing = [(cls, name) for cls, names in numba_private.used.items() for name in names if not hasattr(cls, name)]
    assert not missing, missing


def test_the_versions_that_are_allowed_are_those_that_were_tried():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lowest, above = re.search(r"numba>=([\d.]+),<([\d.]+)", " ".join(wanted)).groups()
    (zero, last), oldest = numba_private.NEWEST, numba_private.OLDEST
    assert lowest == ".".join(map(str, oldest)) and above == f"{zero}.{last + 1}"


@pytest.mark.parametrize("fault", ["shape before the address", "eight bytes more", "an unaligned number"])
def test_another_layout_is_an_error(fault, monkeypatch):
    argument_layout.check_layout()
    right = argument_layout.encode

    def wrong(value):
        data = right(value)
        if fault == "an unaligned number":
            return np.concatenate([data[:-4], np.zeros(8, np.uint8)])
        if fault == "eight bytes more":
            return np.concatenate([np.zeros(8, np.uint8), data])
        numbers = list(struct.unpack("@8q", data[8:72]))  # of the first array
        numbers[4:6] = numbers[5], numbers[4]
        data[8:72] = np.frombuffer(struct.pack("@8q", *numbers), np.uint8)
        return data

    monkeypatch.setattr(argument_layout, "encode", wrong)
    with pytest.raises(RuntimeError, match="numba .* another way than theory expects"):
        argument_layout.check_layout.__wrapped__()


@pytest.mark.slow
def test_without_private_parts_the_bits_are_the_same(tmp_path):
    """As with a version of Numba that was not tried, and nothing stored."""

    def bits(which, **more):
        command = [sys.executable, "-c", RUN, which]
        return subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=True).stdout

    assert bits("another", THEORY_CACHE=str(tmp_path)) == bits("tried")
