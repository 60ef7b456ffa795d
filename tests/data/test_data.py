"""Loading: what is accepted, what is refused and how, what is cached on disk, and how close the twin is to RCV1."""

import bz2
import gzip
import hashlib
import logging
import os
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import ROOT
from thread_ranks import on_ranks

import theory as th
from theory.data import DataError, epsilon, load, load_data, make_dataset, require_binary, twin
from theory.data import examples as bundled
from theory.data.cache import data_folder, entry_name, store_entry
from theory.data.description import REAL, describe, outlines
from theory.data.svmlight import read_svmlight

TEXT = "+1 1:0.5 3:2\n-1 2:1e-3\n+1 1:-1.25 4:7\n"


@pytest.fixture(autouse=True)
def cache(request, tmp_path, monkeypatch):
    """An empty cache for every test that does not share one."""
    if "twin_data" not in request.fixturenames:
        monkeypatch.setenv("THEORY_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.svm"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def dense(data):
    return data.X.toarray()


def bases(array):
    while array is not None:
        yield array
        array = getattr(array, "base", None)


def is_mapped(array):
    return any(isinstance(part, np.memmap) for part in bases(array))


def digest(X, y):
    parts = (X.data, X.indices, X.indptr, y)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


# --- LIBSVM text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pack"),
    [("d.svm", lambda b: b), ("d.svm.gz", gzip.compress), ("d.bz2", bz2.compress)],
    ids=["plain", "gzip", "bzip2"],
)
def test_a_file_plain_or_compressed(write, name, pack):
    data = load_data(write(pack(TEXT.encode()), name))
    assert (data.n, data.d, data.nnz, data.task, data.name) == (3, 4, 5, "binary", "d")
    assert dense(data).tolist() == [[0.5, 0, 2, 0], [0, 1e-3, 0, 0], [-1.25, 0, 0, 7]]
    assert data.y.tolist() == [1, -1, 1] and data.notes == ()
    assert data.X.dtype == np.float64 and data.X.indices.dtype == np.int32 and data.X.has_canonical_format


def test_compression_is_told_by_content(write):
    assert load_data(write(gzip.compress(TEXT.encode()), "plain.svm")).n == 3
    assert load_data(write(bz2.compress(TEXT.encode()), "other.gz")).n == 3
    assert load_data(write(TEXT, "not_really.bz2")).n == 3


def test_layout_of_lines(write):
    text = "# a file\n\n+1 qid:3 1:1 2:2 # note 9:9\r\n  -1\t2:5\t\n-1\n+1 #\n-1 4:1.5"
    data = load_data(write(text))
    assert dense(data).tolist() == [[1, 2, 0, 0], [0, 5, 0, 0], [0] * 4, [0] * 4, [0, 0, 0, 1.5]]


def test_duplicate_and_unsorted_indices(write):
    data = load_data(write("1 5:1 2:3 5:0.25 1:4\n-1 1:1 1:1\n"))
    assert dense(data).tolist() == [[4, 3, 0, 0, 1.25], [2, 0, 0, 0, 0]]
    assert data.X.indices.tolist() == [0, 1, 4, 0]


def test_n_features_and_zero_based(write):
    path = write(TEXT)
    assert load_data(path, n_features=10).d == 10
    assert load_data(path, n_features=4).d == 4
    assert load_data(path, zero_based=True).d == 5
    assert dense(load_data(write("1 0:2\n-1 1:3\n", "zero.svm"), zero_based=True)).tolist() == [[2, 0], [0, 3]]


def test_numbers_are_those_of_python(write):
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**63, 400, dtype=np.int64).view(np.float64)
    numbers = [repr(v) for v in bits[np.isfinite(bits)].tolist()]
    numbers += [f"{v:.{k}f}" for k in range(1, 20) for v in rng.normal(size=20) * 10.0 ** rng.integers(-6, 7)]
    numbers += ["1", "+2", "-3.", ".5", "-.25", "1e5", "1E-5", "9007199254740993", "0.1", "1e22", "1e23", "1e-22"]
    numbers += [
        "123456789012345678901234567890",
        "0.000000000000000000000000000001",
        "4.9e-324",
        "0e999",
        "-0",
        "00012.50",
    ]
    path = write("".join(f"{number} 1:{number}\n" for number in numbers))
    X, labels = read_svmlight(path)
    expected = np.array([float(number) for number in numbers])
    assert X.data.tobytes() == expected.tobytes() == labels.tobytes()


def test_many_blocks_give_the_same_matrix(write, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 50), density=0.2, rng=rng, format="csr")
    rows = [" ".join(f"{j + 1}:{v!r}" for j, v in zip(r.indices, r.data.tolist(), strict=True)) for r in X]
    path = write("".join(f"{1 if i % 3 else -1} {row}\n" for i, row in enumerate(rows)))
    monkeypatch.setattr("theory.data.svmlight.BLOCK", 97)  # shorter than most lines
    found, labels = read_svmlight(path, n_features=50)
    assert (found != X).nnz == 0 and labels[:4].tolist() == [-1, 1, 1, -1]
    path = write(path.read_text() + "1 3:x\n", "bad.svm")
    with pytest.raises(DataError, match="line 301"):
        read_svmlight(path)


def test_a_wrong_file_is_named(write):
    path = write("1 1:x\n", "named.svm")
    with pytest.raises(DataError, match=r"named\.svm, line 1.*found '1:x'; give a file of lines 'label index:value"):
        load_data(path)


def test_index_past_n_features(write):
    with pytest.raises(DataError, match=r"line 3: the index in '4:7' is past n_features = 3; raise n_features"):
        load_data(write(TEXT), n_features=3)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
@pytest.mark.parametrize("end", [b"garbage", b"BZh9 more", None])
def test_an_archive_of_two_parts_is_read_to_its_end(write, pack, end):
    """`bz2.open` takes what is damaged after the first part for garbage, and garbage for nothing."""
    first, second = pack(TEXT.encode()), pack(TEXT.encode() * 2)
    assert load_data(write(first + second, "whole")).n == 9
    damaged = bytes([*second[:2], second[2] ^ 1, *second[3:]]) if end is None else second + end
    with pytest.raises(DataError, match="the archive is truncated or damaged"):
        load_data(write(first + damaged, "damaged"))


def test_a_file_that_was_replaced_is_read_again(write, tmp_path):
    """Also with the same size and the same time, as by ``cp -p`` and ``mv``."""
    path = write(TEXT)
    before, stat = load_data(path), path.stat()
    other = write(TEXT.replace("0.5", "0.7"), "other.svm")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(other, path)
    assert path.stat().st_size == stat.st_size and path.stat().st_mtime_ns == stat.st_mtime_ns
    assert not np.array_equal(load_data(path).X.data, before.X.data)
    path.write_text(TEXT.replace("0.5", "0.9"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert 0.9 in load_data(path).X.data


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may read every file")
def test_unreadable_file(write):
    path = write(TEXT)
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read.*permissions"):
        load_data(path)


# --- names ----------------------------------------------------------------------------------------------------------


def test_missing_files_and_folders(write, tmp_path):
    write(TEXT, "mushrooms.svm")
    with pytest.raises(DataError, match=r"nearest there: mushrooms\.svm"):
        load_data(tmp_path / "mushroom.svm")
    with pytest.raises(DataError, match="nothing in .* has a similar name"):
        load_data(tmp_path / "q.zzzzzzzzz")
    with pytest.raises(DataError, match="there is no folder"):
        load_data(tmp_path / "nowhere" / "a.svm")
    with pytest.raises(DataError, match=r"is a folder; give a file in it \(mushrooms\.svm"):
        load_data(tmp_path)


@pytest.mark.parametrize(
    ("name", "n", "d", "task"),
    [("breast_cancer", 569, 30, "binary"), ("digits", 1797, 64, "binary"), ("diabetes", 442, 10, "regression")],
)
def test_bundled(name, n, d, task):
    data = load_data(name)
    assert (data.n, data.d, data.task, data.name) == (n, d, task, name)
    assert data.X.flags.c_contiguous and data.X.dtype == data.y.dtype == np.float64
    assert load_data(name, n_features=d).d == d
    with pytest.raises(DataError, match=f"{name} has {d} columns, not 7"):
        load_data(name, n_features=7)


def test_digits_are_even_against_odd():
    from sklearn.datasets import load_digits

    assert np.array_equal(load_data("digits").y, 1.0 - 2.0 * (load_digits().target % 2))


def fake_rcv1(calls):
    names = ["C11", "CCAT", "E11", "ECAT", "GCAT", "MCAT"]
    topics = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]]
    topics += [[0, 0, 0, 0, 1, 1], [0, 1, 0, 1, 0, 0]]

    def fetch_rcv1(*, subset):
        calls.append(subset)
        X = sp.csr_matrix(np.diag(np.arange(1.0, 8.0)))
        return SimpleNamespace(data=X, target=sp.csr_matrix(np.array(topics, np.uint8)), target_names=np.array(names))

    return fetch_rcv1


def test_rcv1_by_the_rule_of_libsvm(monkeypatch):
    calls = []
    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", fake_rcv1(calls))
    for _ in range(2):
        data = load_data("rcv1")
        assert data.y.tolist() == [1, 1, -1, -1, 1] and data.X.data.tolist() == [1, 2, 3, 6, 7]
        assert "2 documents of both or neither are dropped" in data.notes[0]
        assert is_mapped(data.X.data)
    assert calls == ["train"]  # the second time it was mapped


def test_rcv1_without_a_network(monkeypatch):
    from urllib.error import URLError

    def fetch_rcv1(**_):
        raise URLError("Name or service not known")

    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", fetch_rcv1)
    with pytest.raises(DataError, match=r"could not download it \(Name or service.*Alternatives: .*LIBSVM.*rcv1-like"):
        load_data("rcv1")


# --- labels, checks, splits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (2, 4), (-1, 1)])
def test_two_labels_are_mapped_and_said(write, caplog, pair):
    with caplog.at_level(logging.INFO, logger="theory.data"):
        data = load_data(write(f"{pair[1]} 1:1\n{pair[0]} 2:1\n{pair[1]} 1:2\n"))
    assert data.y.tolist() == [1, -1, 1] and data.task == "binary" and require_binary(data) is data
    said = [f"labels {pair[0]} and {pair[1]} are read as -1 and +1 (1 and 2 rows)"] if pair != (-1, 1) else []
    assert list(data.notes) == said
    assert [record.message for record in caplog.records] == [f"data: {note}" for note in said]


def test_one_class_only(write):
    data = load_data(write("1 1:1\n1 2:1\n"))
    assert data.task == "regression" and data.y.tolist() == [1, 1]
    with pytest.raises(DataError, match="one class only: all 2 labels are 1.*needs two"):
        require_binary(data)


def test_more_than_two_labels(write):
    data = load_data(write("".join(f"{i} 1:1\n" for i in range(8))))
    assert data.task == "regression" and data.y.tolist() == list(range(8))
    with pytest.raises(
        DataError, match=r"8 different labels \(0, 1, 2, 3, 4, \.\.\..*two classes are needed.*th.ridge"
    ):
        require_binary(data)


def test_make_dataset_leaves_the_callers_arrays_alone():
    X = sp.csr_array((np.ones(3), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    data = make_dataset(sp.vstack([X, X], format="csr"), [0, 1], "two")
    assert dense(data).tolist() == [[2, 0, 1], [2, 0, 1]]
    kept = make_dataset(X, [3.0], "one")
    assert X.indices.tolist() == [2, 0, 0] and X.data.flags.writeable and kept.X.indices.tolist() == [0, 2]
    A, b = np.eye(3), np.array([1.0, -1.0, 1.0])
    data = make_dataset(A, b, "eye")
    assert np.shares_memory(data.X, A) and A.flags.writeable and b.flags.writeable
    for array in (data.X, data.y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_a_data_set_is_a_value(write):
    data = load_data(write(TEXT))
    with pytest.raises(AttributeError):
        data.name = "other"
    assert repr(data) == "Dataset(data: n=3, d=4, nnz=5, binary)"


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.8, 0.999])
def test_split(fraction):
    n = 600
    data = make_dataset(sp.csr_array(np.arange(1.0, n + 1).reshape(-1, 1)), np.arange(n) % 2, "rows")
    for X in (data.X, data.X.toarray()):
        data = make_dataset(X, data.y, "rows")
        train, held_out = data.split(fraction, 3)
        again, _ = data.split(fraction, 3)
        other, _ = data.split(fraction, 4)
        first, second, third, fourth = (np.asarray(part.X.sum(axis=1)) for part in (train, held_out, again, other))
        assert np.array_equal(np.sort(np.concatenate([first, second])), np.arange(1, n + 1))  # disjoint, and all
        assert train.n == round(fraction * n) and np.array_equal(first, third) and not np.array_equal(first, fourth)
        assert np.array_equal(train.y, data.y[first.astype(int) - 1]) and np.all(np.diff(first) > 0)
        assert train.name == "rows" and train.task == "binary" and f"{train.n} of 600 rows" in train.notes[-1]


def test_split_is_the_same_everywhere():
    train, _ = make_dataset(np.arange(12.0).reshape(-1, 1), np.arange(12), "rows").split(0.5, 0)
    assert train.X.ravel().tolist() == [0, 3, 5, 7, 8, 9]


# --- the cache ------------------------------------------------------------------------------------------------------


def test_the_second_load_maps_what_the_first_left(write, monkeypatch):
    path = write("1 3:1 1:2\n2 2:1\n")
    first = load_data(path)
    monkeypatch.setattr(load, "read_svmlight", lambda *_, **__: pytest.fail("parsed again"))
    second = load_data(path)
    for data in (first, second):
        assert all(is_mapped(part) for part in (data.X.data, data.X.indices, data.X.indptr))
        assert not data.X.data.flags.writeable and type(data.X.data) is np.ndarray
    assert digest(first.X, first.y) == digest(second.X, second.y) and first.notes == second.notes
    names = sorted(p.name for p in data_folder().rglob("*") if p.is_file())
    assert names == ["data.npy", "entry.json", "indices.npy", "indptr.npy", "y.npy"]


def test_a_file_that_changed_is_parsed_again(write):
    assert load_data(write("1 1:1\n-1 1:2\n")).n == 2
    assert load_data(write("1 1:1\n-1 1:2\n", "neighbour.svm")).n == 2
    path = write("1 1:1\n-1 1:2\n1 1:3\n")
    assert load_data(path).n == 3
    assert len(list(data_folder().iterdir())) == 2  # the older state is gone, the neighbour is not
    assert load_data(path, n_features=9).d == 9 and load_data(path).d == 1
    assert len(list(data_folder().iterdir())) == 3


def test_same_size_other_time(write):
    path = write("1 1:1\n-1 1:2\n")
    load_data(path)
    write("1 1:1\n-1 1:5\n")
    os.utime(path, ns=(1, 1))
    assert load_data(path).X.data.tolist() == [1, 5]


def _truncate(path):
    path.write_bytes(path.read_bytes()[:-3])


def _pickle(path):
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)


@pytest.mark.parametrize("harm", [os.remove, _truncate, _pickle])
@pytest.mark.parametrize("victim", ["data.npy", "indptr.npy", "entry.json"])
def test_a_damaged_entry_is_made_anew(write, harm, victim):
    path = write(TEXT)
    load_data(path)
    (target,) = data_folder().rglob(victim)
    harm(target)
    assert (
        dense(load_data(path)).tolist()
        == dense(load_data(path)).tolist()
        == [[0.5, 0, 2, 0], [0, 1e-3, 0, 0], [-1.25, 0, 0, 7]]
    )
    assert is_mapped(load_data(path).X.data)


def test_a_cache_that_cannot_be_written(write, monkeypatch):
    monkeypatch.setattr("theory.data.cache.tempfile.mkdtemp", lambda **_: (_ for _ in ()).throw(OSError(28, "full")))
    data = load_data(write(TEXT))
    assert data.n == 3 and not is_mapped(data.X.data)


def test_rows_without_entries_are_cached(write):
    for _ in range(2):
        data = load_data(write("1\n-1\n"), n_features=3)
        assert data.nnz == 0 and data.X.shape == (2, 3)


def test_two_writers_leave_one_entry(write):
    name = entry_name("a", "b", "c")
    X, y = sp.csr_array(np.eye(3)), np.ones(3)
    assert store_entry(name, X, y) and store_entry(name, X, y)
    assert [p.name for p in data_folder().iterdir()] == [name]


# --- ranks ----------------------------------------------------------------------------------------------------------


def test_rank_0_parses_and_the_others_map(write, monkeypatch):
    path, parsed = write(TEXT), []
    monkeypatch.setattr(load, "read_svmlight", lambda *a, **k: (parsed.append(1), read_svmlight(*a, **k))[1])
    found = on_ranks(3, lambda comm: load_data(path, comm=comm))
    assert len(parsed) == 1 and all(is_mapped(data.X.data) and data.n == 3 for data in found)


def test_all_ranks_raise_the_same(write):
    path = write("1 1:1\n1 5:oops\n")
    errors = on_ranks(3, lambda comm: load_data(path, comm=comm))
    assert all(type(error) is DataError for error in errors)
    assert len({str(error) for error in errors}) == 1 and "line 2" in str(errors[0])


def test_another_rank_fails(write, monkeypatch):
    path, inner = write(TEXT), load._load
    ranks = iter(range(3))

    def broken(*arguments, **options):  # rank 0 comes first; one of the others does not see the file
        if next(ranks) == 2:
            raise OSError("stale file handle")
        return inner(*arguments, **options)

    monkeypatch.setattr(load, "_load", broken)
    errors = on_ranks(3, lambda comm: load_data(path, comm=comm))
    assert all("stale file handle" in str(error) for error in errors) and all(isinstance(e, Exception) for e in errors)


@pytest.mark.mpi
def test_over_mpi(write, tmp_path, run_mpi):
    script = write(
        "import sys\nfrom mpi4py import MPI\nfrom theory.data import DataError, load_data\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n        said = repr(load_data(path, comm=MPI.COMM_WORLD))\n"
        "    except DataError as error:\n        said = str(error)\n"
        "    sys.stdout.write(said + chr(10))\n    sys.stdout.flush()\n",
        "script.py",
    )
    good, bad = write(TEXT, "good.svm"), write("1 0:1\n", "bad.svm")
    done = run_mpi(2, script, good, bad, timeout=60, env={"PYTHONPATH": str(load.Path(load.__file__).parents[2])})
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert sorted(set(lines))[1:] == ["Dataset(good: n=3, d=4, nnz=5, binary)"] and len(lines) == 4
    assert sum("counts from 1" in line for line in lines) == 2


# --- the twin -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def twin_data(tmp_path_factory):
    """Made once for this module, in a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THEORY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield load_data()


@pytest.fixture(scope="module")
def twin_statistics(twin_data):
    return describe(twin_data, splits=1)


def test_the_twin_says_what_it_is(twin_data):
    assert twin_data.name == "rcv1-like (synthetic)" and "synthetic" in twin_data.notes[0]
    assert twin_data.split(0.8, 0)[0].name == "rcv1-like (synthetic)"
    assert is_mapped(twin_data.X.data) and twin_data.X.has_canonical_format and twin_data.task == "binary"
    assert twin_data.X.indices.dtype == twin_data.X.indptr.dtype == np.int32


def test_the_twin_is_deterministic(twin_data):
    X, y, _ = twin.generate()  # anew, not from the cache
    assert digest(X, y) == digest(twin_data.X, twin_data.y)
    small = twin.Twin(n=300, positive=100)
    assert (
        digest(*twin.generate(small)[:2]) == digest(*twin.generate(small)[:2]) != digest(*twin.generate(small, 1)[:2])
    )


def test_the_twin_is_canonical(twin_data):
    fresh = sp.csr_array((twin_data.X.data, twin_data.X.indices, twin_data.X.indptr), shape=twin_data.X.shape)
    assert fresh.has_canonical_format and np.all(fresh.data > 0)


# how far twin / real may be from 1: a measured statistic's own tolerance, about twice what was found
TOLERANCE = {
    "nnz": 0.02,
    "columns_used": 0.02,
    "mean_norm2": 0.06,
    "batch_bound": 0.06,
    "optimum": 0.03,
    "train_accuracy": 0.005,
    "held_out_accuracy": 0.012,
    "nnz_quantiles": 0.04,
    "frequencies": 0.15,
    "row_norms": 1e-5,
    "value_quantiles": 0.07,
}


@pytest.mark.parametrize("what", TOLERANCE)
def test_the_twin_matches_rcv1(twin_statistics, what):
    found, real = (np.array(getattr(statistics, what), dtype=float) for statistics in (twin_statistics, REAL))
    assert found == pytest.approx(real, rel=TOLERANCE[what])


def test_the_twin_matches_rcv1_exactly_or_at_the_top(twin_statistics):
    for what in ("n", "d", "positive", "negative"):
        assert getattr(twin_statistics, what) == getattr(REAL, what)
    assert twin_statistics.singular[0] == pytest.approx(REAL.singular[0], rel=0.05)


def test_twins_that_are_refused():
    for model in (twin.Twin(words=5000), twin.Twin(d=20_000), twin.Twin(positive=0)):
        with pytest.raises(DataError, match="twin: .*give at least 6180 words"):
            twin.generate(model)


def test_the_table_of_the_documentation_is_measured(twin_statistics):
    rows = (ROOT / "docs" / "data.md").read_text(encoding="utf-8").partition("| rows n |")[2].partition("\n\n")[0]
    cells = [line.split(" | ") for line in f"| rows n |{rows}".splitlines()]
    for column, statistics in ((1, REAL), (2, twin_statistics)):
        found = [float(n) for value in statistics for n in np.ravel(value)]
        for row, number in zip(cells, found, strict=True):
            digits = row[column].replace(",", "").removesuffix(" %")
            if row[column].endswith("%"):
                assert float(digits) == pytest.approx(100.0 * number, abs=0.03)  # a row or two, by the solver
            else:
                assert float(digits) == pytest.approx(number, abs=0.51 * 10.0 ** -len(digits.partition(".")[2]))


def test_the_figure_of_the_twin_is_drawn_from_counts(twin_data):
    """Bins hold all rows; the column of rank k has as many entries as k-th largest count says."""
    found = outlines(twin_data, twin_data)
    widths = np.diff(np.log(found["edges"]))
    lengths = np.diff(twin_data.X.indptr)
    for share in found["shares"].values():
        assert np.sum(share * widths) == pytest.approx(np.mean(lengths >= found["edges"][0]))
    counts = sorted(np.bincount(twin_data.X.indices, minlength=twin_data.d).tolist(), reverse=True)
    assert found["ranks"][0] == 1 and found["ranks"][-1] == twin_data.d
    for frequencies in found["frequencies"].values():
        assert frequencies.tolist() == [counts[rank - 1] for rank in found["ranks"]]


# --- the real file --------------------------------------------------------------------------------------------------


def test_real_rcv1(real_data):
    path = real_data("rcv1_subsets_binary.svm.bz2")
    data = load_data(path, n_features=47_236)
    assert (data.n, data.d, data.nnz) == (REAL.n, REAL.d, REAL.nnz) == (23_756, 47_236, 1_784_250)
    assert np.unique(data.y, return_counts=True)[1].tolist() == [11_926, 11_830] and data.notes == ()
    direction, frequencies = data.X.T @ data.y / data.n, np.sort(np.bincount(data.X.indices))[::-1]
    assert 1.0 / (direction @ direction) == pytest.approx(REAL.batch_bound, rel=1e-4)
    assert np.count_nonzero(frequencies) == REAL.columns_used
    assert tuple(frequencies[[0, 9, 99, 999, 9999]].tolist()) == REAL.frequencies


@pytest.mark.parametrize(
    ("name", "n", "d", "nnz", "task"),
    [
        ("mushrooms.svm.bz2", 8_124, 112, 170_604, "binary"),
        ("a9a.svm.bz2", 32_561, 123, 451_592, "binary"),
        ("abalone_scale.svm.bz2", 4_177, 8, 32_080, "regression"),
    ],
)
def test_other_real_files(real_data, name, n, d, nnz, task):
    data = load_data(real_data(name))
    assert (data.n, data.d, data.nnz, data.task) == (n, d, nnz, task)
    assert bool(data.notes) == (name == "mushrooms.svm.bz2")  # labels 1 and 2


def test_a_multilabel_file_is_refused(real_data):
    with pytest.raises(DataError, match="several labels in a row"):
        load_data(real_data("rcv1_subsets_topics.svm.bz2"))


def test_two_classes_wants_the_topics():
    X, y, notes = bundled.two_classes(
        sp.csr_matrix(np.eye(2)), sp.csr_matrix(np.eye(4)[[0, 3]]), ["CCAT", "ECAT", "GCAT", "MCAT"]
    )
    assert y.tolist() == [1, -1] and X.shape == (2, 2) and "0 documents" in notes[0]


# --- epsilon-like -----------------------------------------------------------------------------------------------------


def test_the_dense_set_is_what_it_says():
    model = epsilon.Correlated(n=4500, d=60)
    X, y, notes = epsilon.generate(model)
    assert X.shape == (4500, 60) and set(y) == {-1.0, 1.0} and "synthetic" in notes[0]
    assert np.allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    assert np.abs(X.mean(axis=0)).max() < 5.0 / np.sqrt(60 * 4500) and abs(y.mean()) < 5.0 / np.sqrt(4500)
    again, labels, _ = epsilon.generate(model)
    assert np.array_equal(again, X) and np.array_equal(labels, y)
    assert not np.isclose(epsilon.generate(model, 1)[0], X).any(axis=1).all()
    for small in ({"n": 1}, {"d": 1}):
        with pytest.raises(DataError, match="at least 2"):
            epsilon.generate(model._replace(**small))


def test_the_principal_directions_of_the_dense_set_fall_as_they_should():
    """Before rows are scaled the i-th variance is 1/i; scaling changes ratios of neighbours little."""
    X, _, _ = epsilon.generate(epsilon.Correlated(n=6000, d=100))
    found = np.linalg.eigvalsh(X.T @ X / 6000)[::-1]
    assert found[9] / found[39] == pytest.approx(4.0, rel=0.2) and found[19] / found[79] == pytest.approx(4.0, rel=0.2)
    variances = X.var(axis=0)
    assert variances.max() / variances.min() < 5.0 < found[0] / found[20]


def test_the_labels_of_the_dense_set_are_worth_learning():
    """The minimum of the loss is far from log 2 and from 0."""
    X, y, _ = epsilon.generate(epsilon.Correlated(n=2000, d=100))
    assert 0.2 < th.solve(th.logistic((X, y), 1.0 / 2000)).fun < 0.4


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_with_a_target(ending, tmp_path):
    pandas = pytest.importorskip("pandas")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"a": [0.5, 1.0, 2.0, 4.0], "kind": ["x", "z", "y", "x"], "b": [1, 0, 2, 3]})
    path = tmp_path / f"mine.{ending}"
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    data = load_data(path, target="kind")
    assert data.name == "mine" and data.X.tolist() == [[0.5, 1.0], [1.0, 0.0], [2.0, 2.0], [4.0, 3.0]]
    assert data.y.tolist() == [0.0, 2.0, 1.0, 0.0] and "'z' is 2" in data.notes[0]
    for target, said in (("kinds", "did you mean 'kind'"), (None, "its columns are a, kind, b")):
        with pytest.raises(DataError, match=said):
            load_data(path, target=target)
    with pytest.raises(DataError, match="target is 'y'; leave it out"):
        load_data("digits", target="y")
