"""Files that were made to fill memory: refused early, with as little memory as for any block of a good file."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys
import tracemalloc
import zipfile

import pytest

from theory.data import DataError, load_data, svmlight
from theory.experiment.records import LONGEST_LINE, read_record
from theory.reporting.files import RecordError
from theory.reporting.json_values import read_record as read_figure

LINE = b"1 1:0.5 2:0.25\n-1 2:1\n"
MUCH = 10**9
MEMORY = 2**28  # bytes: a line of the greatest length, and what is parsed of it


@pytest.fixture
def peak():
    """The most memory that Python and NumPy had allocated since."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def hole(path, begin: bytes):
    """A file of 10**9 bytes that takes no room on the disk: its beginning, then zeros without a newline."""
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(MUCH)
    return path


@pytest.mark.parametrize(
    "begin", [LINE, b"1 1:", LINE + b"1" * 8192, LINE + b" " * 8192], ids=["pair", "value", "label", "blank"]
)
def test_a_line_of_a_billion_characters(begin, tmp_path, peak):
    path = hole(tmp_path / "long.svm", begin.ljust(8192, b" "))
    with pytest.raises(DataError, match=f"line [13]: longer than {svmlight.LONGEST_LINE} bytes, the most allowed"):
        load_data(path)
    assert peak() < MEMORY


def test_a_record_with_a_line_of_a_billion_characters(tmp_path, peak):
    hole(tmp_path / "record.jsonl", b'{"kind":"experiment","x":1}\n{"kind":"result","run":"')
    with pytest.raises(RecordError, match="line 2: not a line of a record"):
        read_record(tmp_path)
    with pytest.raises(RecordError, match="of 1000000000 bytes'?, allowed: up to"):
        read_figure(hole(tmp_path / "figure.json", b"{"))
    assert peak() < 8 * LONGEST_LINE


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_an_archive_that_expands_too_much(compress, tmp_path, monkeypatch, peak):
    monkeypatch.setattr(svmlight, "ALWAYS", 2**22)
    path = tmp_path / "bomb.svm"
    path.write_bytes(compress(LINE * (2**23 // len(LINE))))
    assert 2**23 > svmlight.EXPANSION * path.stat().st_size
    with pytest.raises(DataError, match="the archive expands to more than 100 times its size; decompress it yourself"):
        load_data(path)
    assert peak() < MEMORY
    path.write_bytes(compress(LINE * (2**21 // len(LINE))))  # smaller than what is always allowed
    assert load_data(path).n == 2 * (2**21 // len(LINE))


def test_a_zip_is_not_opened(tmp_path, peak):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made, made.open("a.svm", "w") as file:
        for _ in range(64):
            file.write(bytes(2**20))
    with pytest.raises(DataError, match="not LIBSVM text but a zip archive"):
        load_data(path)
    assert peak() < 2**24


def test_one_index_makes_no_long_vectors(tmp_path, peak):
    path = tmp_path / "wide.svm"
    path.write_bytes(LINE + b"1 2147483647:1\n")
    with pytest.raises(DataError, match="line 3: the index in '2147483647:1' is past 134217728 columns"):
        load_data(path)
    assert load_data(path, n_features=2**31 - 1).d == 2**31 - 1  # stated, so the reader means it
    assert peak() < 2**24


CHILD = """
import bz2, gzip, resource, sys
from theory.data import DataError, load_data
how = {"gzip": gzip.open, "bz2": bz2.open}[sys.argv[1]]
with how(sys.argv[2], "wb") as file:
    for _ in range(10**9 // (22 * 10_000)):
        file.write(b"1 1:0.5 2:0.25\\n-1 2:1\\n" * 10_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_data(sys.argv[2])
except DataError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, "expands to more than" in str(error))
"""


@pytest.mark.full
@pytest.mark.parametrize("how", ["gzip", "bz2"])
def test_a_billion_bytes_of_text_in_an_archive(how, tmp_path):
    made = [sys.executable, "-c", CHILD, how, str(tmp_path / "bomb")]
    grown, refused = subprocess.run(made, capture_output=True, text=True, check=True).stdout.split()
    assert refused == "True" and int(grown) < 2**19  # kilobytes
