"""Grading a class: what a student hands in runs apart, within limits, and cannot award itself points."""

from __future__ import annotations

import csv
import json
import socket
import sys

import pytest
from conftest import ROOT

pytest.importorskip("jupytext")
sys.path.insert(0, str(ROOT / "notebooks"))

import grade_class  # noqa: E402
import sheets  # noqa: E402
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook  # noqa: E402

SETUP = "import numpy as np"
RIGHT = ["def double(x):\n    return 2 * x", "def shift(f, v, rng):\n    v += f(v)\n    return rng.random()"]
CHECKS = [
    "import math\nfor x in (1.0, 2.5):\n    assert np.isclose(double(x), 2 * x)",
    "v, rng = np.ones(3), np.random.default_rng(1)\nassert shift(lambda v: v + 1, v, rng) < 1\n"
    "assert v.tolist() == [3.0] * 3 and rng.random() == np.random.default_rng(1).random(2)[1]",
]
SHEET = grade_class.Sheet(
    [SETUP], [(f"Exercise {k + 1}", new_code_cell(RIGHT[k]), [new_code_cell(CHECKS[k])]) for k in (0, 1)], set()
)
SERVER = socket.create_server(("127.0.0.1", 0))  # which a student must not reach
HOW = grade_class.way()
LIMITS = grade_class.Limits(seconds=2.0, check=8.0, megabytes=500, grace=4.0)
REDEFINES = "import builtins\nnp.isclose = lambda *a: True\nbuiltins.AssertionError = KeyError\ndouble = abs"
YES = "class Yes:\n    def __eq__(self, other): return True\n    __array__ = lambda *a, **k: np.ones(())\n"
PICKLE = (
    "import gc, pickle, os\nfrom multiprocessing.connection import Connection\n"
    "class Evil:\n    def __reduce__(self): return os.system, ('exit 3',)\n"
    "(line,) = [x for x in gc.get_objects() if isinstance(x, Connection)]\n"
    "def double(x):\n    line.send_bytes(pickle.dumps(('done', Evil(), [])))\n    return 2 * x"
)
FORGED = PICKLE.replace(  # an array of "objects" whose bytes are any addresses
    "class Evil:\n    def __reduce__(self): return os.system, ('exit 3',)\n",
    "class D:\n    def __reduce__(self): return np.dtype, ('O8', False, True), (3, '|', *[None] * 3, -1, -1, 0)\n"
    "class Evil:\n    def __reduce__(self): return (np._core.multiarray._reconstruct, (np.ndarray, (0,), b'b'),\n"
    "        (1, (1,), D(), False, b'AAAAAAAA'))\n",
)
BLOCKED = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\nwhile True: pass"
CASES = {  # what is written for the first exercise, whether it passes, whether the second then does, and what is said
    "right": (RIGHT[0], True, True, "passed"),
    "wrong": ("double = lambda x: x + 1", False, True, "actual:   double(x) = 3.5"),
    "none": ("def double(x): 2 * x", False, True, "the function double returned None: is `return` missing?"),
    "empty": ("", False, True, "double is not defined"),
    "hangs, and stops the clock": (BLOCKED, False, False, "no answer came in the time that there is"),
    "memory": ("def double(x): return bytearray(1 << 32)", False, True, "MemoryError"),
    "large answer": ("def double(x): return np.zeros(9_000_000)", False, False, "has sent too much"),
    "hangs, and prints": ("while True: print('passed' * 10_000)", False, True, "not finished after 2 s"),
    "exit": ("import sys\ndef double(x): sys.exit(0)", False, True, "SystemExit: 0"),
    "redefines": (REDEFINES, False, True, "expected: double(x) close to 2 * x"),
    "an answer that equals all": (f"{YES}def double(x): return Yes()", False, True, "an answer has a Yes"),
    "writes on the line": (PICKLE, False, False, "an answer has a system"),
    "a forged array": (FORGED, False, False, "an answer has a _reconstruct"),
    "a file of another": (f"open({str(ROOT / 'README.md')!r}, 'a')\n{RIGHT[0]}", False, True, "Read-only"),
    "network": (f"import socket\nsocket.create_connection({SERVER.getsockname()})\n{RIGHT[0]}", False, True, "Error: "),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_student_gets_the_points_of_what_is_right(case, tmp_path):
    source, first, second, said = CASES[case]
    if {"a file of another": "bubblewrap)", "network": "no network"}.get(case, "") not in HOW:
        pytest.skip(f"isolation: here a student's process has {HOW}")
    found = grade_class.graded(SHEET, [(1, source), (2, RIGHT[1])], HOW, tmp_path, LIMITS)
    assert said in found[0].said
    assert (found[0].passed, found[1].passed) == (first, second), found


def test_a_later_answer_may_use_what_a_check_imports(tmp_path):
    second = RIGHT[1].replace("v += f(v)", "v += f(v) * math.cos(0)")
    assert all(one.passed for one in grade_class.graded(SHEET, [(1, RIGHT[0]), (2, second)], HOW, tmp_path, LIMITS))


def test_what_is_no_notebook_is_refused_and_the_cells_of_the_sheet_are_not_the_students(tmp_path):
    path = tmp_path / "one.ipynb"
    cells = [new_code_cell(SETUP), new_markdown_cell("### Exercise 2: b"), new_code_cell("%time\nx = 1")]
    path.write_text(json.dumps(new_notebook(cells=cells)), encoding="utf-8")
    assert grade_class.handed_in(path, {SETUP}) == [(2, "\nx = 1")]
    (tmp_path / "link.ipynb").symlink_to(path)
    for name, text in {"a": "{", "b": "[1]", "c": '{"cells": [3]}', "d": " " * (5 << 20), "link": None}.items():
        wrong = tmp_path / f"{name}.ipynb"
        if text is not None:
            wrong.write_text(text, encoding="utf-8")
        with pytest.raises(grade_class.Refused):
            grade_class.handed_in(wrong, set())


WRONG = {  # a sheet, an exercise, and what a student may well write there
    "02": (1, "def second_moment_without(M2, B_D, B, n): return B * M2 * (1 + (B - 1) / B_D)\nleft = lambda *a: 0.0"),
    "06": (1, "def atomo(values, budget): return np.minimum(1.0, budget * np.abs(values) / np.abs(values).sum())"),
    "07": (2, "waiting, share = lambda p: ((1 - p) / p) ** 2, 0.5"),
    "08": (4, "difference, together = lambda q, gamma: 1 - gamma, lambda q, gamma: None"),
    "10": (3, "received, more = lambda k, d, N: N * k * (32 + math.ceil(math.log2(d))), 16"),
    "11": (3, "draws = lambda c: 50"),
    "12": (5, "longest = lambda least: ((1 + least) ** 2 / 2, 1 + least)"),
    "13": (1, "limit = lambda b1, b2: (1 - b1) / np.sqrt((1 - b2) * (1 - b1**2 / b2))"),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", ["02", *(pytest.param(one, marks=pytest.mark.full) for one in [*WRONG][1:])])
def test_a_class_is_graded(number, tmp_path, capsys):
    read = sheets.read(*sheets.lectures(number))
    made = sheets.write(tmp_path / "made", sheets.lectures(number))
    (tmp_path / "in").mkdir()
    for path, name in zip(made, ("=empty", "right"), strict=True):
        path.rename(tmp_path / "in" / f"{name}.ipynb")
    exercise, source = WRONG[number]
    solved = sheets.sheet(read, solutions=True)
    (cell,) = [one for one in solved.cells if one.source == sheets.groups(read.exercises)[exercise - 1][1][0].source]
    cell.source = source
    (tmp_path / "in" / "wrong.ipynb").write_text(json.dumps(solved), encoding="utf-8")
    (tmp_path / "in" / "broken.ipynb").write_text("{", encoding="utf-8")
    assert grade_class.main(str(tmp_path / "in"), "--sheet", number, "--out", str(tmp_path / "grades.csv")) == 0
    assert "left to you" not in capsys.readouterr().out
    with open(tmp_path / "grades.csv", encoding="utf-8", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    checked = {one.name: one.checked for one in sheets.points(read)}
    right, lost = sum(checked.values()), checked[f"exercise {exercise}"]
    expected = {"'=empty": 0, "broken": 0, "right": right, "wrong": right - lost}
    assert {name: int(row["points"]) for name, row in rows.items()} == expected
    assert rows["wrong"][f"exercise {exercise}"] == "0" and "no Jupyter notebook" in rows["broken"]["remark"]
    assert "is not defined" in (tmp_path / "feedback" / "=empty.txt").read_text(encoding="utf-8")
