"""Files: reading TOML and Python, writing text atomically, arrays of a record, versions, and suggestions.

Suggestions are for misspelled names.  Arrays from any source are read safely: nothing is unpickled or decompressed, and
no more memory is allocated than the file has bytes.
"""

from __future__ import annotations

import difflib
import importlib.util
import math
import os
import platform
import stat
import subprocess
import sys
import tomllib
import traceback
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..core import require

# --- Files -----------------------------------------------------------------------------------------------------------

SHIPPED = Path(__file__).parents[1] / "studies" / "configurations"

LARGEST_TOML = 2**20  # bytes

PACKAGES = ("numpy", "numba", "scipy", "mpi4py", "matplotlib")


class ConfigurationError(ValueError):
    """A configuration that cannot be run; the message states what was found and what is allowed."""


class UnreadableError(ConfigurationError):
    """A file that does not exist or is not TOML."""


def shipped() -> dict[str, Path]:
    """The configurations of this package, one for each published experiment: name and file."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def find_toml(name_or_path: str | Path) -> Path:
    """Find a file, or else the configuration of this package with that name."""
    path = Path(name_or_path)
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    known = shipped()
    if path.name not in known:
        raise UnreadableError(f"no file and no configuration {str(name_or_path)!r}: {nearest(path.name, known)}")
    return known[path.name]


def text_of(path: str | Path, most: int) -> str:
    """The text of an ordinary file of up to ``most`` bytes: a device or a pipe may never end.

    Raises
    ------
    OSError
        If it cannot be read.
    FileRefused
        If it is not an ordinary file, or is larger.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # to open a pipe would wait for a writer
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        require(stat.S_ISREG(found.st_mode), "path", str(path), "an ordinary file", FileRefused)
        told = f"{path}, of {found.st_size} bytes"
        require(found.st_size <= most, "path", told, f"up to {most} bytes", FileRefused)
        return file.read(most).decode("utf-8")


def read_toml(path: str | Path) -> dict:
    """Read a TOML file.

    Raises
    ------
    UnreadableError
        If it cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(text_of(path, LARGEST_TOML))
    except (OSError, FileRefused) as error:
        raise UnreadableError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(f"{path} is not a TOML file: {error}") from None


class RecordError(ValueError):
    """A folder that is not a record."""


def nearest(name: str, known: Any, shown: str = "") -> str:
    """The known names nearest to ``name``, as the second half of an error message; if none are, ``shown`` or all."""
    known = {one.lower(): one for one in known}
    near = [known[one] for one in difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)]
    return f"did you mean {' or '.join(near)}?" if near else f"known are {shown or ', '.join(known.values())}"


def versions() -> dict[str, str]:
    """Versions of the software, for the record."""
    from .. import __version__

    found = {"python": platform.python_version(), "platform": platform.platform(terse=True), "theory": __version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit(root: Path = SHIPPED.parents[2]) -> str:
    """The commit of a checkout, with "and changes" if files differ from it; empty where there is none, or no git."""
    git, told = ["git", "-C", str(root)], dict(capture_output=True, text=True, timeout=10, check=True)
    questions = ("rev-parse --show-toplevel", "rev-parse HEAD", "status --porcelain --untracked-files=no")
    try:
        found = [subprocess.run([*git, *words.split()], **told).stdout for words in questions]  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return ""
    here = Path(found[0].strip()).resolve() == Path(root).resolve()  # and not one that this was installed into
    return f"{found[1].strip()}{' and changes' if found[2].strip() else ''}" if here else ""


def rendered(path: Path, **values: Any) -> str:
    """The text of a Jinja2 template with these values, which are escaped in an HTML page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    html = path.suffix == ".html"
    options: dict[str, Any] = dict(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment = Environment(loader=FileSystemLoader(path.parent), autoescape=html, **options)
    return environment.get_template(path.name).render(values)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


class FileRefused(ValueError):
    """A user's file that cannot be run, or that raises an error, which is the cause of this one."""


def run_file(path: str | Path) -> ModuleType:
    """Run a Python file as a module of its name, so that the objects it registers can be found there.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    module

    Raises
    ------
    FileRefused
        If there is no such file, another module of its name is loaded, or the file raises an error: with its line.
    """
    path = Path(path)
    require(path.is_file() and path.suffix == ".py", "path", str(path), "a Python file that exists", FileRefused)
    name, path = path.stem, path.resolve()
    # A name of a standard module would shadow that module in later imports.
    require(
        name not in sys.stdlib_module_names, "path", str(path), f"another name: Python has a module {name}", FileRefused
    )
    taken = sys.modules.get(name)
    if taken is not None:
        here = getattr(taken, "__file__", None)
        same = here is not None and Path(here).resolve() == path
        require(same, "path", str(path), f"another name: there is a module {name} already", FileRefused)
    spec: Any = importlib.util.spec_from_file_location(name, path)  # every .py file has a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # as it is now, whatever bytecode is stored
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        exec(code, vars(module))
    except BaseException as error:  # a file that failed may be fixed and run again
        del sys.modules[name]
        if taken is not None:
            sys.modules[name] = taken
        if not isinstance(error, (Exception, SystemExit)):
            raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f" (line {lines[-1]})" if lines else ""  # a SyntaxError says it itself
        raise FileRefused(f"{path} cannot be run: {type(error).__name__}: {error}{where}") from error
    return module


# --- Arrays of a record from any source ------------------------------------------------------------------------------


def inside(folder: Path, name: str) -> Path:
    """The file of this name in a folder; a link that leads out of it is refused.

    Raises
    ------
    RecordError
        If the file is outside the folder, or is not an ordinary file.
    """
    path = folder / name
    if path.resolve().parent != folder.resolve():
        raise RecordError(f"{path} leads outside of its record, to {path.resolve()}")
    if not path.is_file():
        raise RecordError(f"{folder} is not a complete record: it has no {name}")
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
