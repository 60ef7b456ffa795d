"""The cache folder: who may write to it, damaged files, disks that are full, folders that are not there."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from small_package import SmallPackage

from theory.core import private_files
from theory.core.private_files import cache_root, private_folder, read, unsafe, write
from theory.data.cache import load_entry, store_entry

CHAIN = {"chain": 40}


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    monkeypatch.setattr(private_files, "_said", set())
    private_files._usable.cache_clear()
    yield
    private_files._usable.cache_clear()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files, of this process and of those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(private_files.tempfile, "tempdir", None)
    return folder


@pytest.fixture
def package(tmp_path):
    return SmallPackage(tmp_path)


# --- files ------------------------------------------------------------------------------------------------------------


def cut(data: bytes) -> bytes:
    return data[:-100]


def garbage(data: bytes) -> bytes:
    return np.random.default_rng(0).bytes(len(data))


def empty(data: bytes) -> bytes:
    return b""


def flipped(data: bytes) -> bytes:
    return data[:-50] + bytes([data[-50] ^ 4]) + data[-49:]


def flipped_head(data: bytes) -> bytes:
    return data[:60] + bytes([data[60] ^ 4]) + data[61:]


DAMAGES = [cut, garbage, empty, flipped, flipped_head]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_a_miss(tmp_path, capsys, damage):
    path = tmp_path / "a" / "b"
    assert write(path, {"n": [1]}, bytes(1000)) and read(path) == ({"n": [1]}, bytes(1000))
    assert path.parent.stat().st_mode & 0o777 == 0o700 and path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(damage(path.read_bytes()))
    assert read(path) is None and read(path) is None
    assert capsys.readouterr().err == f"theory: {path} is damaged: it is not used and written again\n"
    assert write(path, {"n": [1]}) and read(path) == ({"n": [1]}, b"")


def test_all_lengths_and_all_bits_are_noticed(tmp_path, capsys):
    path = tmp_path / "file"
    write(path, {"a": 1}, b"code")
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        assert read(path) is None
        for bit in range(8):
            path.write_bytes(whole[:n] + bytes([whole[n] ^ 1 << bit]) + whole[n + 1 :])
            assert read(path) is None
    path.unlink()
    assert read(path) is None


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_compiled_again_and_named(package, damage):
    package.run("chain")
    names = package.stored()
    assert len(names) == 3
    for path in names:
        path.write_bytes(damage(path.read_bytes()))
    found = package.run("chain")
    assert found.values == CHAIN and found.again == {"chain"}
    assert sorted(found.said) == [f"theory: {path} is damaged: it is not used and written again" for path in names]
    again = package.run("chain")
    assert again.said == [] and again.again == set() and package.stored() == names


def test_code_that_does_not_load_is_compiled_again(package):
    package.run("chain")
    for path in package.stored():
        about, _ = read(path)
        write(path, about, pickle.dumps("whole, and no code"))
    found = package.run("chain")
    assert found.values == CHAIN and len(found.said) == 3 and "cannot be loaded" in found.said[0]
    assert package.run("chain").said == []


def test_processes_at_once_on_a_cold_cache(package):
    found = [package.answer(process) for process in [package.start("chain", "scaled") for _ in range(4)]]
    assert [answer.values for answer in found] == [{"chain": 40, "scaled": 6}] * 4
    assert all(answer.said == [] for answer in found)
    assert len(package.stored()) == 4 and not list(package.cache.rglob(".*"))
    assert package.run("chain", "scaled").again == set()


# --- folders ----------------------------------------------------------------------------------------------------------


class Bomb:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def open_to_all(folder: Path) -> None:
    folder.chmod(0o777)


def open_to_the_group(folder: Path) -> None:
    folder.chmod(0o775)


def of_another_user(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("another owner: only root can give a folder away")
    os.chown(folder, 12345, -1)


UNSAFE = {
    link: "is a link",
    open_to_all: "can be written by others (chmod go-w)",
    open_to_the_group: "can be written by others (chmod go-w)",
    of_another_user: "belongs to another user",
}


@pytest.mark.parametrize("part", ["", "compiled", "data"])
@pytest.mark.parametrize("spoil", UNSAFE)
def test_a_folder_that_is_not_private_is_not_used(tmp_path, temporary, monkeypatch, capsys, spoil, part):
    root = tmp_path / "cache"
    monkeypatch.setenv("THEORY_CACHE", str(root))
    assert private_folder(root / part) is None and cache_root() == root
    private_files._usable.cache_clear()
    spoil(root / part)
    used = cache_root()
    assert used == temporary / f"theory-{os.geteuid()}" and used.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err == f"theory: {root / part} {UNSAFE[spoil]}: {used} is used instead\n"
    private_files._usable.cache_clear()
    spoil(used)  # a name that others can guess
    fresh = cache_root()
    assert fresh not in (used, root) and fresh.parent == temporary and unsafe(fresh) is None
    assert cache_root() == fresh and capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("level", [0, 1, 2, 3], ids=["cache", "compiled", "versions", "kernel"])
@pytest.mark.parametrize("spoil", UNSAFE)
def test_code_in_a_folder_of_others_is_not_unpickled(package, temporary, tmp_path, spoil, level):
    package.run("scaled")
    (path,) = package.stored()
    about, _ = read(path)
    write(path, about, pickle.dumps(Bomb(tmp_path / "exploded")))
    folder = path.parents[3 - level]
    spoil(folder)
    found = package.run("scaled")
    assert found.values == {"scaled": 6} and found.again == {"scaled"}
    assert len(found.said) == 1 and str(folder) in found.said[0] and UNSAFE[spoil] in found.said[0]
    assert not (tmp_path / "exploded").exists()


def test_a_bomb_explodes_where_the_folder_is_private(package, tmp_path):
    """The test above would notice."""
    package.run("scaled")
    (path,) = package.stored()
    about, _ = read(path)
    write(path, about, pickle.dumps(Bomb(tmp_path / "exploded")))
    package.run("scaled")
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("spoil", UNSAFE)
def test_a_data_set_in_a_folder_of_others_is_not_read(tmp_path, temporary, monkeypatch, capsys, spoil):
    monkeypatch.setenv("THEORY_CACHE", str(tmp_path / "cache"))
    X, y = sp.csr_array(np.eye(3)), np.ones(3)
    assert store_entry("name", X, y) and load_entry("name") is not None
    entry = tmp_path / "cache" / "data" / "name"
    assert all(level.stat().st_mode & 0o777 == 0o700 for level in (entry, *entry.parents[:2]))
    spoil(entry)
    assert load_entry("name") is None and load_entry("name") is None
    assert capsys.readouterr().err == f"theory: {entry} {UNSAFE[spoil]}: it is not read\n"


# --- no place to store ------------------------------------------------------------------------------------------------


def test_a_full_disk(package, tmp_path):
    """Really full, where a file system can be mounted; otherwise, files cannot become larger than a few bytes."""
    package.cache.mkdir(0o700)
    command = ["mount", "-t", "tmpfs", "-o", "size=16k,mode=0700", "none", str(package.cache)]
    mounted = sys.platform == "linux" and subprocess.run(command, capture_output=True).returncode == 0
    small = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    try:
        found = package.run("chain", "scaled", first="" if mounted else small)
    finally:
        if mounted:
            subprocess.run(["umount", str(package.cache)], check=True)
    assert found.values == {"chain": 40, "scaled": 6}
    assert len(found.said) == 1 and found.said[0].endswith("): continues without storing"), found.said


@pytest.mark.parametrize("number", [28, 30, 122], ids=["full", "read-only", "quota"])
def test_errors_of_the_disk_are_said_once(package, number):
    patch = f"import os\ndef fail(*_): raise OSError({number}, os.strerror({number}))\nos.fsync = fail"
    found = package.run("chain", "scaled", first=patch)
    assert found.values == {"chain": 40, "scaled": 6}
    assert len(found.said) == 1 and os.strerror(number) in found.said[0]
    assert package.stored() == [] and not list(package.cache.rglob(".*"))


READ_ONLY = "import os\nos.access = lambda path, mode, **_: not str(path).startswith({!r})"


def test_a_read_only_folder(package, temporary):
    package.cache.mkdir(0o500)
    first = READ_ONLY.format(str(package.cache)) if os.geteuid() == 0 else ""  # root may write everywhere
    found = package.run("chain", first=first)
    assert found.values == CHAIN
    used = temporary / f"theory-{os.geteuid()}"
    assert found.said == [f"theory: {package.cache} cannot be written: {used} is used instead"]
    assert package.run("chain", first=first).again == set() and not any(package.cache.iterdir())


def test_no_home(package, temporary):
    first = "import pathlib\ndef fail(): raise RuntimeError\npathlib.Path.home = fail"
    found = package.run("chain", first=first, THEORY_CACHE=None, XDG_CACHE_HOME=None)
    assert found.values == CHAIN
    used = temporary / f"theory-{os.geteuid()}"
    assert found.said == [f"theory: there is no home folder: {used} is used instead"]


def test_no_folder_at_all(package):
    first = (
        "import tempfile, os\nos.access = lambda *_, **__: False\ndef fail(*_, **__): raise OSError(30, 'read-only')\n"
    )
    found = package.run("chain", first=f"{first}tempfile.mkdtemp = fail")
    assert found.values == CHAIN and len(found.said) == 1 and found.said[0].endswith(": nothing is stored")
    assert package.stored() == []


def test_data_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("theory.data.cache.cache_root", lambda: None)
    assert not store_entry("name", np.eye(3), np.ones(3)) and load_entry("name") is None
