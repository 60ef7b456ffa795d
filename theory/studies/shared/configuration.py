"""Configuration of a study by a TOML file, and the names of the entries that its statements are about.

A key is the name of an entry of ``docs/sources/index.toml``, by which a statement says what it is about.

The TOML file has the key ``study``: the study, its data, and its options.  The study is one of this package, or a
Python file, whose path is relative to the TOML file.  A study with options declares them in its module as a setting
named ``Options``; ``collect`` then gets one as a further argument.  Every other key of the file is a field of it, so
that every key is read, and one that the study does not take is refused.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import NamedTuple

from ...reporting.files import (
    ConfigurationError,
    FileRefused,
    UnreadableError,
    find_toml,
    nearest,
    read_toml,
    run_file,
    shipped,
)

# --- Keys ------------------------------------------------------------------------------------------------------------


def slug(text: object) -> str:
    """The text in lower case with hyphens for everything but letters and digits.

    Examples
    --------
    >>> slug("Figure 3, RCV1: loss against bits"), slug(0.25)
    ('figure-3-rcv1-loss-against-bits', '0-25')
    """
    return re.sub(r"[^a-z0-9]+", "-", str(text).lower()).strip("-")


def entry_key(source: str, id: str) -> str:
    """The key of an entry of the index of sources, by its source and its id.

    Examples
    --------
    >>> entry_key("mem-sgd", "Figure 3, RCV1: loss against bits")
    'mem-sgd/figure-3-rcv1-loss-against-bits'
    """
    return f"{source}/{slug(id)}"


# --- Configuration by a TOML file with the key ``study`` -------------------------------------------------------------

FOLDER = Path(__file__).resolve().parents[1]  # every file in its folders of subjects is a study

FILES = {
    path.stem.replace("_", "-"): path
    for path in sorted(FOLDER.glob("*/[a-z]*.py"), key=lambda path: path.stem)
    if path.parent.name != "shared"
}

STUDIES = {name: path.read_text(encoding="utf-8").partition("\n")[0].strip().strip('"') for name, path in FILES.items()}

GIVEN = ("seed", "data", "topics")  # to a study that takes them

COMMON = ("study", "about", *GIVEN)  # keys of every such file

TAKES = ("quick", *GIVEN, "options", "comm")  # what `collect` may take

SEED_LIMIT = 2**62  # studies add small integers to it


class StudyConfiguration(NamedTuple):
    """One experiment that is a study.

    Attributes
    ----------
    name : str
        Name of the experiment, its figure and its page.
    study : str
        A key of ``STUDIES``, or a Python file.
    about : str
        One line.
    seed : int
    data, topics : str, optional
        As for `run_study`.
    options : NamedTuple, optional
        The study's ``Options``, if it has any.
    """

    name: str
    study: str
    about: str
    seed: int = 0
    data: str | None = None
    topics: str | None = None
    options: NamedTuple | None = None

    @classmethod
    def from_dict(cls, values: dict, name: str | None = None, folder: str | Path = ".") -> StudyConfiguration:
        """Check the contents of a file; ``folder`` is that of a study that is a file.

        Raises
        ------
        ConfigurationError
            For an unknown study or key, with the nearest known one, a key that the study does not take, or a value
            outside its domain.

        Examples
        --------
        >>> StudyConfiguration.from_dict({"study": "ternary-dimension", "seed": 1}).seed
        1
        >>> StudyConfiguration.from_dict({"study": "ternary-dimension", "sed": 1})
        Traceback (most recent call last):
            ...
        theory.reporting.files.ConfigurationError: unknown key 'sed': did you mean seed ...?
        """
        if "study" not in values:
            raise ConfigurationError("there is no key study, which names a study or a Python file with one")
        study = str(values["study"])
        if study.endswith(".py"):
            study = str(Path(folder) / study)
            described = own_study(study).about
        elif study in STUDIES:
            described = STUDIES[study]
        else:
            raise ConfigurationError(f"unknown study {study!r}: {nearest(study, STUDIES)}; or a Python file, mine.py")
        own = {key: value for key, value in values.items() if key not in COMMON}
        common = {key: value for key, value in values.items() if key in COMMON}
        for key in ("about", "data", "topics"):
            if not isinstance(common.get(key, ""), str):
                raise ConfigurationError(f"{key}: got {common[key]!r}, allowed: a string")
        seed = common.get("seed", 0)
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < SEED_LIMIT:
            raise ConfigurationError(f"seed: got {seed!r}, allowed: an integer from 0 to 2**62 - 1")
        for key in GIVEN:
            if key in common and key not in takes(study):
                raise ConfigurationError(f"{key}: {study} takes none, as its collect has no parameter {key}")
        common = {"name": name or Path(study).stem, "about": described} | common | {"study": study}
        return cls(**common, options=make_options(study, own))

    @classmethod
    def from_toml(cls, path) -> StudyConfiguration:
        """Read a file, or a configuration of this package by its name."""
        path = find_toml(path)
        try:
            return cls.from_dict(read_toml(path), path.stem, path.parent)
        except UnreadableError:
            raise
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None


def module_of(study: str):
    """The module of a study of this package, or of a user's file."""
    if study.endswith(".py"):
        loaded = sys.modules.get(Path(study).stem)
        here = getattr(loaded, "__file__", None)
        return loaded if here and Path(here).resolve() == Path(study).resolve() else run_file(study)
    return importlib.import_module(f"theory.studies.{FILES[study].parent.name}.{FILES[study].stem}")


def takes(study: str) -> list[str]:
    """What a study's ``collect`` takes of ``TAKES``.

    Raises
    ------
    ConfigurationError
        If it has another parameter without a default.
    """
    given = inspect.signature(module_of(study).collect).parameters.values()
    for one in given:
        needed = one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if needed and one.name not in TAKES:
            raise ConfigurationError(f"{study}: collect takes {one.name!r}, allowed: some of {', '.join(TAKES)}")
    return [one.name for one in given if one.name in TAKES]


def own_study(path: str) -> StudyConfiguration:
    """The study defined in a Python file: `collect` and `report`, and its ``Options`` with their defaults.

    Raises
    ------
    ConfigurationError
        If there is no such file, it lacks these functions, `collect` takes what there is not, or it takes ``options``
        and there are no ``Options``, or the other way round.
    """
    try:
        module = run_file(path)
    except FileRefused as error:
        raise ConfigurationError(str(error)) from None
    for name in ("collect", "report"):
        if not callable(getattr(module, name, None)):
            raise ConfigurationError(f"{path}: there is no function {name}, which a study must have")
    if ("options" in takes(str(path))) != hasattr(module, "Options"):
        raise ConfigurationError(f"{path}: allowed: a class Options and a parameter options of collect, or neither")
    if not hasattr(getattr(module, "Options", StudyConfiguration), "_fields"):
        raise ConfigurationError(f"{path}: Options is no NamedTuple; allowed: one whose fields have defaults")
    about = (module.__doc__ or "").strip().partition("\n")[0]
    name = Path(path).stem.replace("_", "-")
    return StudyConfiguration(name, str(path), about, options=make_options(str(path), {}))


def make_options(study: str, values: dict):
    """The study's ``Options`` with these values; None if it has none.

    Raises
    ------
    ConfigurationError
        For an unknown name, or a value outside its domain.
    """
    options = getattr(module_of(study), "Options", None)
    known = () if options is None else options._fields
    for key in values:
        if key not in known:
            raise ConfigurationError(f"unknown key {key!r}: {nearest(key, [*COMMON, *known])}")
    try:
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return None if options is None else options(**given)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(str(error)) from None


def shipped_studies() -> dict[str, str]:
    """The experiments of this package that are studies: name and study."""
    found = {name: read_toml(path).get("study") for name, path in shipped().items()}
    return {name: study for name, study in found.items() if study is not None}


def about(name: str) -> str:
    """One line on an experiment of this package."""
    values = read_toml(shipped()[name])
    return values.get("about") or STUDIES.get(values.get("study", ""), "")


def experiment_of(name: str) -> StudyConfiguration:
    """The experiment of a name, of a TOML file, or of a Python file with a study."""
    return own_study(name) if name.endswith(".py") else StudyConfiguration.from_toml(name)


def chosen(names) -> list[str]:
    """The experiments with these names: experiments, studies for all of theirs, or files; without names, all shipped.

    Raises
    ------
    ConfigurationError
        For an unknown name, with the nearest known one.
    """
    known = shipped_studies()
    found: list = []
    for name in names or known:
        if name.endswith((".py", ".toml")):
            found.append(name)
            continue
        of_study = [experiment for experiment, study in known.items() if study == name]
        if name not in known and not of_study:
            raise ConfigurationError(f"unknown study {name!r}: {nearest(name, dict.fromkeys([*known, *STUDIES]))}")
        found += [name] if name in known else of_study
    return list(dict.fromkeys(found))
