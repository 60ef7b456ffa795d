"""Input from attacks and from bug reports: an exception of ours names what came, never one of Python's."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT, run_group

import theory as th
from theory.data import DataError
from theory.reporting.files import read_toml

ZEROS = th.ridge((np.zeros((4, 3)), np.zeros(4)), l2=0.0)
PLAIN = th.ParallelSGD(step=0.1)


def run(**changed):
    return th.run(**{"method": PLAIN, "problem": ZEROS, "workers": 1, "steps": 2} | changed)


def sparse(part, size):
    X = sp.csr_matrix(np.eye(3))
    setattr(X, part, getattr(X, part)[:size])
    return th.logistic((X, np.array([1.0, -1.0, 1.0])), l2=0.1)


@pytest.mark.parametrize(("part", "message"), [("data", "2 numbers for 3 indices"), ("indices", "3 numbers for 2")])
def test_what_came_and_what_is_allowed_is_said(part, message):
    with pytest.raises(ValueError, match=f"got {message}"):
        sparse(part, 2)


@pytest.mark.parametrize("method", [th.DelayedSGD(step=0.1, delay=2), th.AsyncSGD(step=0.1), PLAIN])
def test_a_function_without_curvature_has_no_longest_step(method):
    assert run(method=method, workers=2).fun == 0.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("+1 1:0.5\n-1 2:1\n".encode("utf-16"), "text in UTF-16"),
        (b"+1 2147483648:0.5\n-1 2:1\n", "past 2147483647, the most that an index may be"),
    ],
)
def test_a_file_that_is_no_data_is_named(content, message, tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        th.load_data(path)
    path.write_bytes(codecs.BOM_UTF8 + b"+1 1:0.5\n-1 2:1\n")
    assert th.load_data(path).n == 2


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"format":1}', "[]", '{"format":1,"arrays":[{"file":"a"}]}', '{"format":1' + "0" * 6000 + "}"],
    ids=["deep", "no arrays", "a list", "an array without a type", "digits"],
)
def test_a_forged_manifest_is_damaged(text, tmp_path):
    folder = tmp_path / "step-000000000010"
    folder.mkdir()
    content = f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}".encode()
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        th.load_result(folder)
    with pytest.warns(UserWarning, match="is damaged"), pytest.raises(ValueError, match="no complete checkpoint"):
        run(resume=tmp_path)


@pytest.mark.parametrize("read", [th.load_data, th.load_result, read_toml], ids=["data", "result", "toml"])
def test_a_pipe_is_no_file(read, tmp_path):
    """To open it would wait for a writer for ever."""
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "a.toml", tmp_path / "folder" / "manifest.json"):
        os.mkfifo(path)
    for path in (tmp_path / "a.toml", tmp_path / "folder"):
        with pytest.raises(ValueError):
            read(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "code", "said"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">/dev/full", 1, "standard output cannot be written: No space left"),
    ],
)
def test_files_are_written_where_standard_output_is_not(ends, code, said, tmp_path):
    command = f"{sys.executable} -m theory.experiment verify --quick topk.contraction --json a.json {ends}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert json.loads((tmp_path / "a.json").read_text())["results"][0]["verdict"] == "holds"


@pytest.mark.slow
def test_without_docstrings_the_command_says_so():
    done = run_group([sys.executable, "-OO", "-m", "theory.experiment", "list"], timeout=60, env={"PYTHONPATH": ROOT})
    assert done.returncode == 2 and "python -OO removes docstrings" in done.stderr
