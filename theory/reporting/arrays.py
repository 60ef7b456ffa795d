"""Arrays of a record, whoever wrote it: no pickle, nothing compressed, no room for what is not there."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import numpy as np

from .files import RecordError


def inside(folder: Path, name: str) -> Path:
    """The file of this name in a folder; a link that leads out of it is refused.

    Raises
    ------
    RecordError
        If the file is somewhere else, or is none.
    """
    path = folder / name
    if path.resolve().parent != folder.resolve():
        raise RecordError(f"{path} leads outside of its record, to {path.resolve()}")
    if not path.is_file():
        raise RecordError(f"{folder} is not a whole record: it has no {name}")
    return path


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file of `numpy.savez`, each at most as large as the file.

    Raises
    ------
    RecordError
        If it is no such file: damaged, compressed, with objects, or with shapes that its bytes do not fill.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:
                    raise RecordError(f"{path}: {member.filename} is compressed; arrays of a record are not")
                with archive.open(member) as file:
                    version = np.lib.format.read_magic(file)
                    first = version == (1, 0)
                    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
                    shape, _, dtype = read(file)
                if dtype.hasobject or math.prod(shape) * dtype.itemsize > path.stat().st_size:
                    raise RecordError(f"{path}: {member.filename} says {shape} of {dtype}, which it does not hold")
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise error if isinstance(error, RecordError) else RecordError(f"{path} holds no arrays: {error}") from None
