"""``load_data`` returns a checked `Dataset` for a name or a path, and caches it on disk if that saves time."""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arguments import flag, is_whole
from ..core.settings import shown
from . import epsilon, twin
from . import examples as bundled
from .cache import entry_name, load_entry, state_of, store_entry
from .dataset import DataError, Dataset, make_dataset
from .shard_files import is_shard_folder, open_shards
from .svmlight import MAX_INDEX, read_svmlight

log = logging.getLogger("theory.data")

NAMES = ("rcv1-like", "rcv1", "epsilon-like", "breast_cancer", "digits", "digits-10", "diabetes")
LONGEST_PATH, LONGEST_NAME = 4096, 255  # bytes, of Linux
TABLES = (".csv", ".csv.gz", ".csv.bz2", ".parquet")  # which pandas reads
SUFFIXES = (".gz", ".bz2", ".svm", ".libsvm", ".svmlight", ".txt")  # removed from a data set's name


def load_data(
    name_or_path: str | os.PathLike[str] = "rcv1-like",
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    target: str | int | None = None,
    comm: Any = None,
) -> Dataset:
    """Load and check a data set.

    A file is parsed once: its arrays are stored in the cache folder (``THEORY_CACHE``, or the user's), keyed by its
    path, size and time, and are mapped into memory from then on, so that all ranks of a machine share one copy.  The
    same holds for "rcv1" and "rcv1-like".

    Parameters
    ----------
    name_or_path : str or path-like
        "rcv1-like" (synthetic), "rcv1" (downloaded by scikit-learn), "epsilon-like" (synthetic, dense, 20,000 x 2,000),
        "breast_cancer", "digits" (even or odd), "digits-10" (ten classes), "diabetes" (regression), or the path of a
        LIBSVM file (plain, gzip or bzip2), of a folder that `shard` made, or of a CSV or parquet table, which pandas
        reads (``pip install pandas``, and pyarrow for parquet).
    n_features : int, optional
        Number of columns of a file; by default the highest index in it, up to 2**27.
    zero_based : bool
        Whether the indices of a file count from 0.  LIBSVM counts from 1, and an index 0 raises DataError unless this
        is set.
    target : str or int, optional
        The column of a table with the labels, by name or number; the other columns form the rows.  Texts are numbered.
    comm : mpi4py communicator, optional
        Rank 0 loads the data and fills the cache before the others map it. For a folder of shards each rank maps and
        checks the rows of its workers.  If one rank fails, all raise.

    Returns
    -------
    Dataset
        Two labels are -1 and +1, and ``notes`` states how they were mapped (also logged, at level INFO); with one
        label, or more than two, they are unchanged and the task is "regression" (see `require_binary`).

    Raises
    ------
    DataError
        If the data are invalid; the message states what was found and what to do.

    Examples
    --------
    >>> load_data("digits")
    Dataset(digits: n=1797, d=64, dense, binary)
    """
    options = file_options(n_features, zero_based)
    if _is_table(name_or_path):
        return on_all(comm, lambda: read_table(name_or_path, target))
    if target is not None:
        raise DataError(f"target is {target!r}; leave it out (it is for tables, {', '.join(TABLES)})")
    if is_path_of_shards(name_or_path):
        data = _load_shards(Path(name_or_path).expanduser(), comm, n_features)
    else:
        data = _load(name_or_path, **options) if comm is None else _load_together(comm, name_or_path, **options)
    for note in data.notes:
        log.info("%s: %s", data.name, note)
    return data


def _is_table(given: Any) -> bool:
    return isinstance(given, (str, os.PathLike)) and str(os.fspath(given)).lower().endswith(TABLES)


def read_table(given: Any, target: Any) -> Dataset:
    """Read a table with a column of labels by pandas; columns of texts are refused, and the error names them."""
    _, path = require_known(given)
    try:
        import pandas
    except ImportError:
        raise DataError(f"{path}: pandas, which reads tables, is not installed (pip install pandas)") from None
    try:
        table = pandas.read_parquet(path) if path.suffix.lower() == ".parquet" else pandas.read_csv(path)
    except (ImportError, ValueError, OSError) as error:
        raise DataError(f"{path}: {error}") from None
    names = [str(name) for name in table.columns]
    if is_whole(target) and -len(names) <= target < len(names):
        target = names[target]
    if target not in names:
        near = difflib.get_close_matches(str(target), names, n=1)
        hint = f"did you mean {near[0]!r}" if near else f"its columns are {', '.join(names[:10])}"
        last = names[-1]
        how = f'load_data(path, target="{last}"), or --target {last}'
        raise DataError(f"{path}: target is {target!r}; {hint}? Give it as {how}")
    place = names.index(target)
    rows = table.drop(columns=table.columns[place])
    return make_dataset(rows, table.iloc[:, place].to_numpy(), path.stem, texts=len(table))


def file_options(n_features: Any, zero_based: Any) -> dict[str, Any]:
    """Checked options of a file."""
    if n_features is not None:
        if not is_whole(n_features) or not 0 < n_features <= MAX_INDEX + 1:
            raise DataError(f"n_features is {n_features!r}; give an integer of columns, 1 to {MAX_INDEX + 1}")
        n_features = int(n_features)
    return {"n_features": n_features, "zero_based": flag("zero_based", zero_based)}


def is_path_of_shards(given: Any) -> bool:
    """Whether it is the path of a folder of shards, in whatever state they are."""
    if not isinstance(given, (str, os.PathLike)) or os.fspath(given) in NAMES or "\0" in os.fspath(given):
        return False
    try:
        return is_shard_folder(Path(given).expanduser())
    except OSError:  # a name that no file system takes
        return False


def _load_shards(folder: Path, comm: Any, n_features: Any) -> Dataset:
    """Map a folder; a rank checks the shards with its own rows, or all if the ranks do not share one folder."""
    _require_alike(comm, folder, True)
    opened = on_all(comm, lambda: open_shards(folder))
    first, stop, n = 0, opened.data.n, opened.data.n
    if comm is not None:
        mine = np.frombuffer(on_all(comm, opened.identity), np.uint8)
        ours = np.empty(comm.size * mine.size, np.uint8)
        comm.Allgather(mine, ours)
        same = (ours.reshape(comm.size, -1) == mine).all(axis=0)
        if not same[: mine.size // 2].all():
            raise DataError(f"{folder}: other shards on some ranks; give a folder that is the same everywhere")
        if same.all():
            first, stop = comm.rank * n // comm.size, (comm.rank + 1) * n // comm.size
    if n_features not in (None, opened.data.d):
        raise DataError(
            f"{folder} has {opened.data.d} columns, not {n_features}; leave n_features out (it is for files)"
        )
    on_all(comm, lambda: opened.check(first, stop))
    return opened.data


def _require_alike(comm: Any, given: Any, shards: bool) -> None:
    """Raise on all ranks if the path is a folder of shards on some of them only, since these would wait forever."""
    if comm is None:
        return
    seen = np.empty(comm.size, np.int64)
    comm.Allgather(np.array([shards], np.int64), seen)
    if seen.min() != seen.max():
        raise DataError(f"{given}: a folder of shards on some ranks only; give a folder that is the same everywhere")


def on_all(comm: Any, work: Callable[[], Any]) -> Any:
    """Do the work on each rank; a failure on any is raised on all, so that none waits forever."""
    if comm is None:
        return work()
    found, error = None, None
    try:
        found = work()
    except Exception as failed:  # any error must be reported to the others
        error = failed
    _raise_together(comm, error)
    return found


def _load_together(comm: Any, name_or_path: Any, **options: Any) -> Dataset:
    """Load on rank 0 first, then on the others; a failure on any rank is raised on all, so that none waits forever."""
    _require_alike(comm, name_or_path, False)
    first = on_all(comm, lambda: _load(name_or_path, **options) if comm.rank == 0 else None)
    return on_all(comm, lambda: _load(name_or_path, **options) if first is None else first)


def _raise_together(comm: Any, error: Exception | None) -> None:
    """Raise the lowest failing rank's error on every rank; buffer calls only, so nothing is pickled."""
    message = b"" if error is None else (str(error) if isinstance(error, DataError) else repr(error)).encode()
    sizes = np.empty(comm.size, np.int64)
    comm.Allgather(np.array([len(message) + 1 if error is not None else 0], np.int64), sizes)
    failed = np.flatnonzero(sizes)
    if failed.size == 0:
        return
    root = int(failed[0])
    buffer = np.empty(sizes[root] - 1, np.uint8)
    if comm.rank == root:
        buffer[:] = np.frombuffer(message, np.uint8)
    comm.Bcast(buffer, root=root)
    if comm.rank == root and error is not None:
        raise error
    raise DataError(buffer.tobytes().decode())


def _load(name_or_path: Any, *, n_features: Any, zero_based: Any) -> Dataset:
    text, path = require_known(name_or_path)
    if text in NAMES:
        data = _named(text)
        if n_features not in (None, data.d):
            raise DataError(f"{text} has {data.d} columns, not {n_features}; leave n_features out (it is for files)")
        return data
    return _file(path.resolve(), n_features, zero_based)


def require_known(name_or_path: Any) -> tuple[str, Path]:
    """Refuse what is neither a name nor a file, before anything is loaded; return the text, and the path."""
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise DataError(f"name_or_path: got {name_or_path!r}, allowed: the name of a data set or the path of a file")
    text = os.fspath(name_or_path)
    path = Path(text).expanduser()
    longest = max(len(part.encode(errors="surrogateescape")) for part in (*path.parts, ""))
    if len(text) > LONGEST_PATH or longest > LONGEST_NAME:
        raise DataError(f"name_or_path: got {shown(text)}, allowed: names that a file can have")
    if text not in NAMES and ("\0" in text or not (path.is_file() or is_path_of_shards(path))):
        raise _not_found(text, path)
    return text, path


def _not_found(text: str, path: Path) -> DataError:
    """The error for neither a name nor a file, with the nearest matches."""
    names = ", ".join(f'"{name}"' for name in NAMES)
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # bytes that are no UTF-8, which cannot be shown
        return DataError(f"no file {text!a}; give the path of a LIBSVM file, or {names}")
    if "\0" not in text and path.is_dir():
        files = sorted(p.name for p in path.iterdir() if p.is_file())
        return DataError(f"{text} is a folder; give a file in it ({', '.join(files[:8]) or 'it has none'})")
    if os.sep in text or path.suffix:
        folder = path.parent
        if not folder.is_dir():
            return DataError(f"no file {text}: there is no folder {folder}; give the path of a LIBSVM file, or {names}")
        files = sorted(p.name for p in folder.iterdir() if p.is_file())
        near = difflib.get_close_matches(path.name, files, n=3, cutoff=0.4)
        hint = f"nearest there: {', '.join(near)}" if near else f"nothing in {folder} has a similar name"
        return DataError(f"no file {text}; {hint}. Give the path of a LIBSVM file, or one of {names}")
    spelled = {name.replace("-", "_"): name for name in NAMES}
    near = difflib.get_close_matches(text.lower().replace("-", "_"), spelled, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(spelled[name] for name in near)}? " if near else ""
    return DataError(f'unknown data set "{text}": {hint}known are {names}, or give the path of a LIBSVM file')


def cached(name: str, entry: str, make: Callable[..., Any]) -> Dataset:
    """The cached entry; if there is none, the result of ``make() -> (X, y, notes)``, stored and mapped."""
    found = load_entry(entry)
    if found is None:
        X, y, notes = make()
        data = make_dataset(X, y, name, notes)
        if not store_entry(entry, data.X, y, notes):
            return data  # it cannot be stored; use the arrays in memory
        del X, y, data  # free the parsed copy before the map replaces it
        found = load_entry(entry)
        if found is None:  # it was replaced meanwhile
            X, y, _ = make()
            return make_dataset(X, y, name, notes)
    X, y, notes = found
    return make_dataset(X, y, name, notes)


def title_of(path: Path) -> str:
    """What the data of a file are called."""
    name = path.name
    while name.endswith(SUFFIXES) and "." in name[1:]:
        name = name.rpartition(".")[0]
    return name


def _file(path: Path, n_features: Any, zero_based: Any) -> Dataset:
    name = title_of(path)
    entry = entry_name(name, f"{path} {n_features} {zero_based}", state_of(path))
    return cached(name, entry, lambda: (*read_svmlight(path, n_features=n_features, zero_based=zero_based), ()))


def _named(name: str) -> Dataset:
    if name == "rcv1-like":
        return cached(twin.NAME, entry_name(name, "twin", f"{twin.VERSION} {twin.SEED}"), twin.generate)
    if name == "epsilon-like":  # generated each time: it takes a few seconds, and 320 MB
        X, y, notes = epsilon.generate()
        return make_dataset(X, y, epsilon.NAME, notes)
    if name == "rcv1":
        return cached(name, entry_name(name, "fetch_rcv1", "train"), bundled.rcv1)
    X, y, notes = getattr(bundled, name.replace("-", "_"))()
    return make_dataset(X, y, name, notes)
