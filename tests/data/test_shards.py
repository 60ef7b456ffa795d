"""Shards: the same bits as data in memory, little memory while they are made, and what is refused before a step."""

import bz2
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import shard_job as job
from conftest import ROOT
from thread_ranks import first_of, on_ranks

import theory as th
from theory.core.digests import digest
from theory.core.private_files import known_rows, map_of
from theory.core.stored_arrays import MANIFEST, read_manifest
from theory.data import DataError, Dataset, epsilon, load_data, shard, svmlight, twin
from theory.data.shard_files import TYPES, open_shards
from theory.data.twin_shards import full_size
from theory.experiment.cli import main
from theory.problems import evaluate as row_blocks

TEXT = "+1 3:0.5 1:2 3:0.25\n-1\n# nothing\n+1 2:1e-3 qid:7\n-1 4:1 2:-3\n-1 1:7\n"
N = 4096  # rows of synthetic data: four blocks, which two ranks share as they share the workers


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache of data; that of compiled code is the usual one."""
    monkeypatch.setattr("theory.data.cache.cache_root", lambda: tmp_path / "cache")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shards of a small twin."""
    place = tmp_path_factory.mktemp("twin") / "shards"
    shard("rcv1-like", place, workers=4, rows=N)
    return place


def in_memory(data):
    return Dataset(data.X.copy(), np.array(data.y), data.name, data.task, data.notes)


def require_same(a, b):
    assert (a.n, a.d, a.name, a.task, a.notes) == (b.n, b.d, b.name, b.task, b.notes)
    arrays = lambda data: (data.X.data, data.X.indices, data.X.indptr) if sp.issparse(data.X) else (data.X,)  # noqa: E731
    for mine, theirs in zip((*arrays(a), a.y), (*arrays(b), b.y), strict=True):
        assert mine.dtype == theirs.dtype and np.array_equal(mine, theirs)
    assert np.array_equal(a.column_scales, b.column_scales)


def digests_of(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


# --- what is written ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["plain", "gzip", "bzip2"])
@pytest.mark.parametrize("block", [16, 1 << 22])
def test_a_file_in_shards_is_the_file_in_memory(tmp_path, monkeypatch, pack, block):
    monkeypatch.setattr(svmlight, "BLOCK", block)
    path = tmp_path / "rows.svm"
    path.write_bytes(pack(TEXT.replace("+1", "4").replace("-1", "2").replace("2:2", "2:-2").encode()))
    made = shard(path, tmp_path / "out", workers=3, n_features=6, threads=3)
    whole = load_data(path, n_features=6)
    assert made.notes == ("labels 2 and 4 are read as -1 and +1 (3 and 2 rows)",)
    require_same(made, whole)
    require_same(load_data(tmp_path / "out"), whole)
    assert map_of(made.y) is not None and known_rows(made.X) is not None and known_rows(whole.X) is None


@pytest.mark.parametrize("name", ["diabetes", "digits"])
def test_data_in_memory_in_shards(tmp_path, name):
    require_same(shard(name, tmp_path / "out", workers=5), load_data(name))


def test_synthetic_bits_do_not_depend_on_the_threads(tmp_path):
    found = []
    for threads in (1, 2, 3):
        place = tmp_path / str(threads)
        shard("rcv1-like", place / "a", rows=2 * twin.PART + 5, threads=threads)
        shard("epsilon-like", place / "b", rows=2 * epsilon.BLOCK + 5, threads=threads)
        found.append((digests_of(place / "a"), digests_of(place / "b")))
        shutil.rmtree(place)
    assert found[0] == found[1] == found[2]


def test_in_parts_they_are_what_they_are_as_a_whole(tmp_path, monkeypatch):
    model = twin.Twin(n=N, positive=round(N * twin.Twin().positive / twin.Twin().n))
    X, y, _ = twin.generate(model)
    monkeypatch.setattr(twin, "PART", 1000)
    made = shard("rcv1-like", tmp_path / "twin", rows=N)
    assert np.array_equal(made.X.data, X.data) and np.array_equal(made.X.indices, X.indices)
    assert np.array_equal(made.y, y) and made.name == twin.NAME
    X, y, _ = epsilon.generate(epsilon.Correlated(n=2500))
    made = shard("epsilon-like", tmp_path / "epsilon", rows=2500)
    assert np.array_equal(made.X, X) and np.array_equal(made.y, y) and made.name == epsilon.NAME


CHILD = """
import re, sys
from theory.data import shard

def peak():  # ru_maxrss would have that of the parent in it
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

before = peak()
shard(sys.argv[1], sys.argv[2], threads=2)
print(peak() - before)
"""


def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for megabytes in (48, 144):
        path = tmp_path / f"{megabytes}.svm"
        line = b"1 " + b" ".join(b"%d:0.%d" % (j, j) for j in range(1, 120)) + b"\n-1 5:1\n"
        path.write_bytes(line * (megabytes * 2**20 // len(line)))
        command = [sys.executable, "-c", CHILD, path, tmp_path / f"{megabytes}"]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout))
        stored = sum(file.stat().st_size for file in (tmp_path / f"{megabytes}").iterdir())
    assert stored > 2**27 and peaks[1] < peaks[0] + 2**15  # kilobytes: 32 MB more at most, where 90 MB more were stored


# --- runs on them ---------------------------------------------------------------------------------------------------


def test_runs_on_shards_are_runs_on_memory(folder, monkeypatch):
    for large in (row_blocks.LARGE, 1000):
        monkeypatch.setattr(row_blocks, "LARGE", large)  # before the data are read: f at the start is cached for them
        mapped, plain = (th.logistic(data, 1 / N) for data in (load_data(folder), in_memory(load_data(folder))))
        assert all(map_of(array) is not None for array in (mapped.A.data, mapped.A.indices, mapped.A.indptr, mapped.b))
        assert map_of(plain.A.data) is None
        assert th.max_lipschitz(mapped) == pytest.approx(th.max_lipschitz(plain), rel=1e-15)
        for method in job.methods():
            one, other = (th.run(method, problem, workers=4, steps=40) for problem in (mapped, plain))
            assert np.array_equal(one.x, other.x) and np.array_equal(one.history["f"], other.history["f"])
        assert one.fun == pytest.approx(th.value(plain, one.x), rel=1e-13)


@pytest.mark.mpi
def test_ranks_read_their_rows_and_find_the_same_bits(folder, run_mpi, monkeypatch):
    monkeypatch.setattr(row_blocks, "LARGE", job.LARGE)
    done = run_mpi(2, ROOT / "tests" / "shard_job.py", folder, timeout=500)
    assert done.returncode == 0, done.stderr
    alone = first_of(1)
    assert done.stdout.split() == 2 * [job.runs(folder, None), job.constants(folder, alone)]


def test_the_optimum_over_ranks_is_certified(folder):
    problem = th.logistic(load_data(folder), 1 / N)
    alone, over = th.solve(problem), [result.x for result in on_ranks(3, lambda comm: th.solve(problem, comm=comm))]
    one = th.solve(problem, 1e-10, first_of(1))
    assert one.success and one.gap <= 1e-10 and one.fun == pytest.approx(alone.fun, abs=1e-10)
    assert all(np.array_equal(x, over[0]) for x in over) and np.abs(over[0] - alone.x).max() < 1e-6
    small = th.softmax((np.random.default_rng(0).standard_normal((2500, 4)), np.arange(2500) % 3), 0.1)
    assert np.allclose(on_ranks(2, lambda comm: th.solve(small, comm=comm))[1].x, th.solve(small).x, atol=1e-9)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_means_do_not_depend_on_the_ranks(ranks):
    values = np.random.default_rng(ranks).standard_normal((7000, 5)) * 10.0 ** np.arange(5)

    def mean(comm):
        blocks = row_blocks.RowBlocks(7000, values, lambda first, last: values[first:last], comm)
        return blocks.mean(5, lambda k, part, out: np.add(out, part.mean(axis=0), out=out))

    alone = mean(None)
    assert np.allclose(alone, values.mean(axis=0), rtol=1e-12)
    assert all(np.array_equal(found, alone) for found in on_ranks(ranks, mean))


# --- what is refused ------------------------------------------------------------------------------------------------


def overwrite(path, at, content):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def reseal(folder, change):
    """A manifest that is whole, but says something else."""
    about = read_manifest(folder)
    change(about)
    text = json.dumps(about).encode()
    (folder / MANIFEST).write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)


def forge(folder, name, at, content):
    """Other bytes in the first shard, with the right checksums."""
    overwrite(folder / name, at, content)

    def change(about):
        ends = np.fromfile(folder / "indptr", np.int64)[about["edges"]] * np.dtype(TYPES[name]).itemsize
        about["arrays"][name]["sha256"][0] = hashlib.sha256((folder / name).read_bytes()[: ends[1]]).hexdigest()

    reseal(folder, change)


def overflown(folder):
    """Offsets whose differences, in 64 bits, are above 0 although they leave the file, with the right checksum."""
    overwrite(folder / "indptr", 8 * 5, np.array([2**63 - 1, -2]).tobytes())
    sha = hashlib.sha256((folder / "indptr").read_bytes()).hexdigest()
    reseal(folder, lambda a: a["arrays"]["indptr"].update(sha256=[sha]))


def sealed(text):
    """A manifest with its checksum."""
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def linked(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


NEW = hashlib.sha256(b"{}").hexdigest().encode() + b"\n{}"
HARMS = {
    "a bit of the entries": (lambda f: overwrite(f / "data", 0, b"\xff"), "data: shard 0 is damaged, its checksum"),
    "the last shard": (lambda f: overwrite(f / "data", (f / "data").stat().st_size - 2, b"xy"), "data: shard 3 is dam"),
    "a bit of the indices": (lambda f: overwrite(f / "indices", 0, b"\xff"), "indices: shard 0 is damaged"),
    "a bit of the offsets": (lambda f: overwrite(f / "indptr", 8, b"\xff"), "indptr is damaged, its checksum"),
    "a label": (lambda f: overwrite(f / "labels", 0, b"\xff"), "labels is damaged, its checksum"),
    "a scale": (lambda f: overwrite(f / "scales", 0, b"\xff"), "scales is damaged, its checksum"),
    "truncated": (lambda f: os.truncate(f / "data", 1000), "data: truncated or damaged, 1000 bytes where"),
    "longer": (lambda f: (f / "labels").open("ab").write(b"x"), "labels: truncated or damaged"),
    "no indices": (lambda f: (f / "indices").unlink(), "indices: cannot be read .No such file"),
    "a damaged manifest": (lambda f: overwrite(f / MANIFEST, 100, b"?"), "manifest.json is damaged: its checksum"),
    "another program's manifest": (lambda f: (f / MANIFEST).write_text('{"name": "app"}'), "manifest.json is damaged"),
    "another folder": (lambda f: (f / MANIFEST).write_bytes(NEW), "not a folder of shards;"),
    "an older version": (lambda f: reseal(f, lambda a: a.update(version=0)), "shards of an older version, 0 and not 1"),
    "a newer version": (lambda f: reseal(f, lambda a: a.update(version=2)), "shards of a newer version, 2 and not 1"),
    "a manifest without rows": (lambda f: reseal(f, lambda a: a.pop("rows")), "manifest.json lacks what this version"),
    "fewer rows": (lambda f: reseal(f, lambda a: a.update(rows=N - 1)), "shards that do not follow each other"),
    "more columns": (lambda f: reseal(f, lambda a: a.update(columns=50_000)), "contradicts itself about scales"),
    "edges that nothing lies between": (
        lambda f: reseal(f, lambda a: a.update(edges=[0, float("nan"), N])),
        "has counts that are not integers",
    ),
    "a fraction of a row": (lambda f: reseal(f, lambda a: a.update(rows=N + 0.5)), "has counts that are not"),
    "no norm": (lambda f: reseal(f, lambda a: a.update(largest_norm2="1")), "states '1' as the largest squared norm"),
    "a file of another name": (
        lambda f: reseal(f, lambda a: a["arrays"]["labels"].update(file="a\0b")),
        "contradicts itself about labels",
    ),
    "no JSON": (lambda f: (f / MANIFEST).write_bytes(sealed(b"{")), "manifest.json is damaged: Expecting"),
    "nested JSON": (lambda f: (f / MANIFEST).write_bytes(sealed(b"[" * 10**5)), "is damaged: maximum recursion"),
    "offsets that overflow": (overflown, "indptr decreases, or does not end at"),
    "another type": (
        lambda f: reseal(f, lambda a: a["arrays"]["data"].update(dtype=">f8")),
        "data: numbers of type >f8",
    ),
    "an index out of range": (lambda f: forge(f, "indices", 0, b"\xff\xff\xff\x7f"), "out of range or out of order"),
    "an index below 0": (lambda f: forge(f, "indices", 0, b"\xff\xff\xff\xff"), "out of range or out of order"),
    "not a number": (lambda f: forge(f, "data", 0, np.array(np.nan).tobytes()), "a number that is not finite"),
    "a file of others": (lambda f: (f / "data").chmod(0o666), "data: a link, or a file that others can write"),
    "a manifest of others": (lambda f: (f / MANIFEST).chmod(0o666), "manifest.json: a link, or a file that others"),
    "a link": (lambda f: linked(f / "data"), "data: a link, or a file that others can write"),
    "a folder of others": (lambda f: f.chmod(0o777), "can be written by others .chmod go-w.: it is not read"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_shards_that_are_refused(folder, tmp_path, harm):
    place = tmp_path / "harmed"
    shutil.copytree(folder, place)
    act, said = HARMS[harm]
    act(place)
    with pytest.raises(DataError, match=said) as refused:
        load_data(place)
    assert str(place) in str(refused.value)
    told = on_ranks(2, lambda comm: load_data(place, comm=comm))
    assert [str(error) for error in told] == [str(refused.value)] * 2 and {type(e) for e in told} == {DataError}


def test_a_rank_checks_its_own_shards_only(folder, tmp_path, monkeypatch):
    place = tmp_path / "harmed"
    shutil.copytree(folder, place)
    overwrite(place / "data", 0, b"\xff")
    opened = open_shards(place)
    opened.check(N // 2)
    with pytest.raises(DataError, match="shard 0 is damaged"):
        opened.check(0, 1)
    checked = []
    monkeypatch.setattr(type(opened), "check", lambda self, first, stop: checked.append((first, stop)))
    on_ranks(3, lambda comm: load_data(folder, comm=comm))
    assert sorted(checked) == [(0, 1365), (1365, 2730), (2730, 4096)]
    checked.clear()
    on_ranks(2, lambda comm: load_data((place, folder)[comm.rank], comm=comm))  # copies, of which each must be whole
    assert checked == [(0, N), (0, N)]


def test_other_shards_on_some_ranks(folder, tmp_path):
    shard("digits", tmp_path / "digits")
    found = on_ranks(2, lambda comm: load_data((tmp_path / "digits", folder)[comm.rank], comm=comm))
    assert all("other shards on some ranks" in str(error) for error in found)


def test_shards_that_some_ranks_do_not_see(folder):
    found = on_ranks(2, lambda comm: load_data((folder, "digits")[comm.rank], comm=comm))
    assert all("a folder of shards on some ranks only" in str(error) for error in found)
    assert {type(error) for error in found} == {DataError}


def test_a_file_that_is_cut_while_it_is_read_is_named(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "cut")
    opened = open_shards(tmp_path / "cut")
    os.truncate(tmp_path / "cut" / "data", 1001)
    with pytest.raises(DataError, match="data: ends after 1001 bytes, where"):
        opened.check()


def test_a_number_of_workers_may_be_numpys(tmp_path):
    assert shard("digits", tmp_path / "out", workers=np.int64(3)).n == 1797


def test_the_digest_of_shards_is_that_of_their_bytes(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    forge(tmp_path / "copy", "data", 0, np.array(0.5).tobytes())
    one, same, other = (load_data(place).X.data for place in (folder, folder, tmp_path / "copy"))
    assert digest(one) == digest(same) != digest(other)
    assert digest(one[1:]) == digest(np.array(one[1:]))


def test_a_folder_that_exists_is_not_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="out: .* exists already; give another name, or remove it"):
        shard("digits", tmp_path / "out")
    (tmp_path / "bad.svm").write_text(TEXT + "1 5:oops\n")
    with pytest.raises(DataError, match="line 7: not LIBSVM text: expected a number after the colon, found '5:oops'"):
        shard(tmp_path / "bad.svm", tmp_path / "new", threads=2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.svm", "out"]
    with pytest.raises(DataError, match="is a folder; give a file in it"):
        load_data(tmp_path / "out")


# --- the command line -----------------------------------------------------------------------------------------------


def test_the_command_writes_what_an_experiment_takes(tmp_path, capsys):
    (tmp_path / "rows.svm").write_text(TEXT)
    out = str(tmp_path / "out")
    assert main(["shard", str(tmp_path / "rows.svm"), "--out", out, "--workers", "2", "--features", "6"]) == 0
    assert f"Dataset(rows: n=5, d=6, nnz=6, binary) in {out}, 2 shards" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["shard", str(tmp_path / "rows.svm"), "--out", out])
    assert "exists already" in capsys.readouterr().err
    run = ["run", "--data", out, "--methods", "sgd", "--workers", "2", "--batch", "1", "--steps", "4"]
    assert main([*run, "--out", str(tmp_path / "runs")]) == 0
    assert "rows" in capsys.readouterr().out


# --- made once, in the cache folder -----------------------------------------------------------------------------------


def test_data_of_full_size_are_made_once(tmp_path, monkeypatch):
    made = full_size(300, workers=3)
    shard("rcv1-like", tmp_path / "own", workers=3, rows=300)
    require_same(made, load_data(tmp_path / "own"))
    monkeypatch.setattr("theory.data.twin_shards.shard", lambda *a, **how: pytest.fail("generated again"))
    require_same(full_size(300, workers=3), made)


def test_another_process_may_have_made_them_meanwhile(monkeypatch):
    def late(source, out, **how):
        shard(source, out, **how)
        shard(source, out, **how)

    with pytest.raises(ValueError, match="rows"):
        full_size(1)
    monkeypatch.setattr("theory.data.twin_shards.shard", late)
    assert full_size(200).n == 200


def test_data_of_full_size_need_a_folder_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "data").symlink_to(tmp_path)
    with pytest.raises(DataError, match="THEORY_CACHE"):
        full_size(200)
    monkeypatch.setattr("theory.data.cache.cache_root", lambda: None)
    with pytest.raises(DataError, match="THEORY_CACHE"):
        full_size(200)
